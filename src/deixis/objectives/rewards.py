"""What sampled captions are rewarded for: CIDEr-D, BLEU, and how well grounders think they match, in any mix."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from deixis.data.batch import Batch
from deixis.errors import BadFileError
from deixis.home import cache_home
from deixis.interfaces import Grounder
from deixis.metrics.captions.bleu import bleu
from deixis.metrics.captions.cider import CiderD
from deixis.metrics.captions.frequencies import DocumentFrequencies
from deixis.metrics.captions.ngrams import ReferenceNgrams
from deixis.text.vocabulary import END, PAD, Vocabulary


class CaptionRewards:
    """Weighted sum of rewards (POS-SCAN eq. 19), each computed in one call for a whole batch of captions.

    Captions and references are compared as word ids, each ending with the end token, so that stopping in the middle of
    a sentence costs something. Document frequencies come from ``references`` once.
    """

    def __init__(
        self,
        references: Mapping[str, Sequence[Sequence[int]]],
        vocabulary: Vocabulary,
        *,
        cider: float = 1.0,
        bleu: float = 0.0,
        grounders: Mapping[str, tuple[Grounder, float]] | None = None,
        frequencies: DocumentFrequencies | None = None,
    ) -> None:
        """``references``: the captions of each training image as word ids, end token included or not.

        ``frequencies``: those of the references, if they were counted before (:func:`kept_frequencies`).
        """
        self.weights = {"cider": cider, "bleu": bleu}
        self.cider = CiderD.from_references(references, frequencies, end=END) if cider else None
        self.bleu = ReferenceNgrams({name: [_ended(c) for c in group] for name, group in references.items()})
        self.grounders = dict(grounders or {})
        self.kinds = torch.tensor(vocabulary.kinds)  # (V,)

    def __call__(self, words: Tensor, image_of: Tensor, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Score captions (C, T) about images ``image_of`` (C,) of a batch: the weighted sum (C,), and each part."""
        captions = [row[row != PAD].tolist() for row in words.cpu()]
        ids = [batch.regions.ids[image] for image in image_of.tolist()]
        parts: dict[str, Tensor] = {}
        if self.cider is not None:
            parts["cider"] = torch.from_numpy(self.cider.rewards(captions, ids)).float()
        if self.weights["bleu"]:
            parts["bleu"] = torch.from_numpy(bleu(captions, ids, self.bleu).per_caption[:, 3]).float()
        total = sum((self.weights[name] * part for name, part in parts.items()), torch.zeros(len(captions)))
        total = total.to(words.device)
        if self.grounders:
            said = replace(
                batch, words=words, image_of=image_of, tags=self.kinds.to(words.device)[words], phrases=None,
                relations=None, phrase_boxes=None, caption_ids=(), cached={},
            )  # fmt: skip
            with torch.no_grad():
                for name, (grounder, weight) in self.grounders.items():
                    parts[name] = grounder.match(said).float()
                    total = total + weight * parts[name]
        return total, parts


def kept_frequencies(references: Mapping[str, Sequence[Sequence[int]]]) -> DocumentFrequencies:
    """Return the document frequencies of training references, counted once and kept under ``$DEIXIS_HOME``."""
    mark = hashlib.sha256()
    for name in sorted(references):
        mark.update(repr((name, [tuple(caption) for caption in references[name]])).encode())
    path = cache_home() / "frequencies" / f"{mark.hexdigest()[:32]}.safetensors"
    if path.is_file():
        try:
            return DocumentFrequencies.load(path)
        except BadFileError:
            path.unlink(missing_ok=True)  # ours and damaged: it is made again
    counted = DocumentFrequencies.from_references(references, end=END)
    counted.save(path)
    return counted


def _ended(caption: Sequence[int]) -> list[int]:
    return list(caption) if len(caption) and caption[-1] == END else [*caption, END]
