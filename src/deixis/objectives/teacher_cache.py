"""A frozen teacher's attention, asked for once per caption and kept in half precision: in memory, or on disk for later.

Only the words that count are kept (the nouns, about four in a caption), so the 158,915 captions of Flickr30k with 100
regions take some 130 MB. The teacher always computes in 32 bits, whatever the precision of the run, and what it says
goes through half precision also the first time: a caption is taught the same in every epoch and after every resume.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import pad

from deixis.atomic import whole_file
from deixis.data.batch import Batch
from deixis.errors import BadFileError
from deixis.interfaces import Grounder


class TaughtAttention:
    """The attention of ``teacher`` at the words that ``counted(batch)``, (C, T), marks.

    ``keep=False`` asks the teacher at every step.
    """

    def __init__(self, teacher: Grounder, counted: Callable[[Batch], Tensor], *, keep: bool = True) -> None:
        self.teacher, self.counted, self.keep = teacher, counted, keep
        self._kept: dict[str, Tensor] = {}  # caption id -> (words that count, regions of its image), half precision

    def __len__(self) -> int:
        return len(self._kept)

    def __call__(self, batch: Batch) -> Tensor:
        """Return the teacher's attention, (C, T, N); it is 0 at words that do not count."""
        with torch.no_grad(), torch.autocast(batch.words.device.type, enabled=False):
            return self._taught(batch)

    def _taught(self, batch: Batch) -> Tensor:
        counted = self.counted(batch)
        if not self.keep or not batch.caption_ids:
            return self._ask(batch) * counted.unsqueeze(-1)
        if any(name not in self._kept for name in batch.caption_ids):
            self._learn(batch, counted)
        width = batch.regions.mask.shape[1]
        kept = [self._kept[name].float() for name in batch.caption_ids]  # bf16 autocast joins no half precision
        rows = [pad(row, (0, width - row.shape[1])) for row in kept]
        taught = torch.zeros(*counted.shape, width, device=counted.device)
        taught[counted] = torch.cat(rows).to(taught)  # in order of captions, then words, as the mask is read
        return taught

    def _learn(self, batch: Batch, counted: Tensor) -> None:
        attention = self._ask(batch).half().cpu()
        real = batch.regions.mask.sum(1).tolist()
        for row, (name, image) in enumerate(zip(batch.caption_ids, batch.image_of.tolist(), strict=True)):
            self._kept[name] = attention[row, counted[row].cpu(), : real[image]].clone()

    def _ask(self, batch: Batch) -> Tensor:
        return self.teacher.attention(batch).float()

    def save(self, path: Path) -> None:
        """Write everything asked so far, whole or not at all."""
        names = list(self._kept)
        width = max((row.shape[1] for row in self._kept.values()), default=0)
        rows = [pad(self._kept[name], (0, width - self._kept[name].shape[1])) for name in names]
        shapes = torch.tensor([self._kept[name].shape for name in names], dtype=torch.int32).reshape(-1, 2)
        tensors = {
            "attention": torch.cat([torch.zeros(0, width, dtype=torch.half), *rows]),
            "shapes": shapes,
            "names": torch.frombuffer(bytearray("\n".join(names).encode()), dtype=torch.uint8)
            if names
            else torch.zeros(0, dtype=torch.uint8),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            save_file(tensors, partial)

    def load(self, path: Path) -> None:
        """Read what :meth:`save` wrote."""
        try:
            with safe_open(path, "pt") as file:
                attention, shapes = file.get_tensor("attention"), file.get_tensor("shapes")
                text = bytes(file.get_tensor("names").tolist()).decode()
            names = text.split("\n") if text else []
            kept: dict[str, Tensor] = {}
            first = 0
            for name, (words, regions) in zip(names, shapes.tolist(), strict=True):
                kept[name] = attention[first : first + words, :regions]
                first += words
            if first != len(attention):
                raise ValueError(f"{len(attention)} rows for {first} words")
        except (OSError, SafetensorError, TypeError, ValueError) as error:
            raise BadFileError(f"{path} is no kept teacher ({error}): delete it, and it is made again") from error
        self._kept |= kept
