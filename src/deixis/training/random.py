"""The random generators of a process as plain tensors: Python's, numpy's, torch's, and those a run owns itself."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deixis.errors import BadFileError


def seed_everything(seed: int, rank: int = 0) -> None:
    """Seed all global generators; each process draws its own numbers."""
    mixed = int(np.random.SeedSequence([seed, rank]).generate_state(1)[0])
    random.seed(mixed)
    np.random.seed(mixed)  # noqa: NPY002 - libraries may draw from the global generator, so it must be fixed and saved
    torch.manual_seed(mixed)


def capture(own: Mapping[str, torch.Generator] | None = None) -> dict[str, Tensor]:
    """Return the state of every generator. Shapes are the same in every process, so states can be gathered."""
    version, words, gauss = random.getstate()
    numbers: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    if numbers["bit_generator"] != "MT19937":
        raise BadFileError(f"numpy's global generator is {numbers['bit_generator']}, expected MT19937")
    state = {
        "python": torch.tensor([version, *words], dtype=torch.int64),
        "python_gauss": torch.tensor([gauss is not None, gauss or 0.0], dtype=torch.float64),
        "numpy": torch.tensor([*numbers["state"]["key"].tolist(), numbers["state"]["pos"]], dtype=torch.int64),
        "numpy_gauss": torch.tensor([numbers["has_gauss"], numbers["gauss"]], dtype=torch.float64),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    for name, generator in (own or {}).items():
        state[f"own.{name}"] = generator.get_state()
    return state


def restore(state: Mapping[str, Tensor], own: Mapping[str, torch.Generator] | None = None) -> None:
    """Set every generator to a captured state."""
    try:
        words, gauss = state["python"].tolist(), state["python_gauss"].tolist()
        random.setstate((words[0], tuple(words[1:]), gauss[1] if gauss[0] else None))
        *keys, position = state["numpy"].tolist()
        has_gauss, cached = state["numpy_gauss"].tolist()
        np.random.set_state(("MT19937", np.array(keys, dtype=np.uint32), position, int(has_gauss), cached))  # noqa: NPY002
        torch.set_rng_state(state["torch"].cpu())
        if torch.cuda.is_available() and "cuda" in state:
            torch.cuda.set_rng_state(state["cuda"].cpu())
        for name, generator in (own or {}).items():
            generator.set_state(state[f"own.{name}"].cpu())
    except (KeyError, ValueError, RuntimeError, TypeError) as error:
        raise BadFileError(f"the saved random generators cannot be restored: {error}") from error
