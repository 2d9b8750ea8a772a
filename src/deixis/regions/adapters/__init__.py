"""Detectors of other libraries as extractors: they want a download and, better, a GPU."""
