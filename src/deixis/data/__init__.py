"""Datasets: one reader per format, all giving the same examples; batching, padding and masks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deixis.data.dataset import BadExampleError, Dataset, Problems
    from deixis.data.open import open_dataset

__all__ = ["BadExampleError", "Dataset", "Problems", "open_dataset"]


def __getattr__(name: str) -> object:
    """Import the readers when first asked for: answering a photo needs batches, and neither readers nor PyAV."""
    if name in __all__:
        from deixis.data import dataset, open

        return getattr(open if name == "open_dataset" else dataset, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
