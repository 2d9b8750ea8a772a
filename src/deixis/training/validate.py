"""Validation during training: greedy captions of the validation images, scored, with a few samples for the report."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from deixis.captioning.model.captioner import Captioner
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.data.sampler import split
from deixis.errors import DeixisError
from deixis.images import load_image
from deixis.metrics.captions.densecap import events_of_clips, score_dense_captions
from deixis.metrics.captions.scores import score_captions
from deixis.processes import gather_rows
from deixis.text.tokens import detokenise
from deixis.training.dataset import ExampleSet, TrainingData
from deixis.training.recipe import ValidationRecipe
from deixis.types import Example, ImageFile

if TYPE_CHECKING:
    from accelerate import Accelerator

THUMBNAIL = 240


class CaptionValidation:
    """BLEU-4, ROUGE-L and CIDEr of greedy captions; the images are shared out among the processes."""

    def __init__(self, recipe: ValidationRecipe, data: TrainingData) -> None:
        if data.validation is None:
            raise DeixisError("the recipe has no validation split")
        self.recipe, self.data, self.images = recipe, data, data.validation
        self.references = {example.id: list(example.references) for example in self.images.examples}
        self._thumbnails: dict[str, str | None] = {}

    def __call__(self, model: Captioner, accelerator: Accelerator) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Return the scores by recipe name (``cider``) and samples for the report."""
        rows = torch.arange(len(self.images)).numpy()
        mine = split(rows, accelerator.num_processes)[accelerator.process_index]
        words = caption_words(model, self.images, mine.tolist(), self.recipe.batch, accelerator.device)
        everyone = gather_rows(words.to(accelerator.device)).tolist()
        vocabulary = self.data.vocabulary
        texts = {
            example.id: detokenise(vocabulary.decode(ids))[0]
            for example, ids in zip(self.images.examples, everyone, strict=True)
        }
        scores = self.score(texts)
        metrics = {name.lower().replace("-", ""): value for name, value in scores.items()}
        kept = {"cider": metrics["cider"], "bleu4": metrics["bleu4"], "rougel": metrics["rougel"]}
        return kept, self._samples(model, accelerator) if accelerator.is_main_process else []

    def score(self, texts: Mapping[str, str]) -> Mapping[str, float]:
        """Return the scores of captions by printed name."""
        return score_captions(texts, self.references).corpus

    def _samples(self, model: Captioner, accelerator: Accelerator) -> list[dict[str, Any]]:
        """Return a few captions with the box of each groundable word, and a thumbnail the first time."""
        count = min(self.recipe.samples, len(self.images))
        if count == 0:
            return []
        chosen = [at * len(self.images) // count for at in range(count)]
        regions = self.images.source.regions([self.images.examples[row].id for row in chosen])
        generated = model.generate(regions.to(accelerator.device), Strategy())
        samples = []
        for at, row in enumerate(chosen):
            example = self.data.validation_examples[row]
            samples.append(
                {
                    "id": example.id,
                    "size": [int(side) for side in regions.sizes[at].tolist()],
                    "words": self._words(generated, at, regions.boxes[at]),
                    "references": list(self.images.examples[row].references),
                    "thumbnail": self._thumbnail(example),
                }
            )
        return samples

    def _words(self, generated: Generated, row: int, boxes: Tensor) -> list[dict[str, Any]]:
        attention = generated.attention[:, row, 0].float().mean(0).cpu()  # (T, N)
        vocabulary = self.data.vocabulary
        words = []
        for at, number in enumerate(generated.words[row, 0].tolist()):
            spoken = vocabulary.decode([number])
            if not spoken:
                break
            best = int(attention[at].argmax())
            box = [round(side, 1) for side in boxes[best].tolist()] if vocabulary.is_groundable[number] else None
            words.append({"text": spoken[0], "box": box})
        return words

    def _thumbnail(self, example: Example) -> str | None:
        """Return a small JPEG in base64 the first time an image is asked for."""
        if example.id in self._thumbnails:
            return None
        text = None
        if isinstance(example.source, ImageFile):
            try:
                image = load_image(example.source)
                image.thumbnail((THUMBNAIL, THUMBNAIL))
                buffer = io.BytesIO()
                image.save(buffer, "JPEG", quality=70)
                text = base64.b64encode(buffer.getvalue()).decode()
            except DeixisError:  # regions can be trained on without the photos
                text = None
        self._thumbnails[example.id] = text
        return text


class ClipValidation(CaptionValidation):
    """The same for segments of clips, by the rules of ActivityNet Captions: scores per video (``densecap.py``).

    CIDEr's document frequencies come from each video alone, so these numbers are not those of ``kind: captions``.
    """

    def score(self, texts: Mapping[str, str]) -> Mapping[str, float]:
        """Return the scores, averaged over videos and time overlaps."""
        said, written = events_of_clips(self.data.validation_examples, texts)
        return score_dense_captions(said, [written]).corpus


def caption_words(
    model: Captioner, images: ExampleSet, rows: Sequence[int], batch: int, device: torch.device
) -> Tensor:
    """Return greedy captions as word ids, (images, T)."""
    strategy = Strategy()
    found = [torch.zeros(0, strategy.max_length + 1, dtype=torch.long)]
    for first in range(0, len(rows), batch):
        ids = [images.examples[row].id for row in rows[first : first + batch]]
        words = model.generate(images.source.regions(ids).to(device), strategy).words[:, 0].cpu()  # (B, T)
        found.append(pad(words, (0, strategy.max_length + 1 - words.shape[1])))
    return torch.cat(found)
