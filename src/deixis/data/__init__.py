"""Datasets: one reader per format, all giving the same examples; batching, padding and masks."""
