"""Datasets: one reader per format, all giving the same examples; batching, padding and masks."""

from deixis.data.dataset import BadExampleError, Dataset, Problems
from deixis.data.open import open_dataset

__all__ = ["BadExampleError", "Dataset", "Problems", "open_dataset"]
