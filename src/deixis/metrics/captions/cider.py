"""CIDEr and CIDEr-D, for evaluation and as a reward.

Vedantam et al., "CIDEr: Consensus-based Image Description Evaluation" (CVPR 2015). A caption and a reference are
vectors of n-gram counts, each weighted by how rare the n-gram is among the images (eq. 1). Plain CIDEr is their
cosine (eq. 2), averaged over references and over n = 1..4 (eq. 3). CIDEr-D (section 6, eq. 4) counts an n-gram at
most as often as the reference has it and punishes another length with a Gaussian (sigma 6), so that neither repeating
rare words nor long captions pay. **What the COCO evaluation prints as "CIDEr" is CIDEr-D**; so does everybody else,
and so do we. Plain CIDEr is here as ``CiderD(..., plain=True)`` and is called "CIDEr-plain" in tables. Both are
multiplied by 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError
from deixis.metrics.captions.frequencies import DocumentFrequencies, with_end
from deixis.metrics.captions.ngrams import ORDERS, Matches, NgramCounts, ReferenceNgrams, Token, Tokens

if TYPE_CHECKING:
    from torch import Tensor


class CiderD:
    """CIDEr-D against references that were prepared once.

    Make it from the training references, then call :meth:`rewards` for every batch of sampled captions.

    >>> scorer = CiderD.from_references({"1": [["a", "dog"]], "2": [["a", "red", "cat"]]})
    >>> scorer.rewards([["a", "dog"], ["a", "cat"]], ["1", "2"]).round(3).tolist()
    [5.0, 1.743]
    """

    def __init__(
        self,
        references: ReferenceNgrams,
        frequencies: NDArray[np.int64],
        documents: int,
        *,
        end: Token | None = None,
        sigma: float = 6.0,
        plain: bool = False,
    ) -> None:
        if not sigma > 0:
            raise DeixisError(f"sigma is {sigma}, must be above 0")
        self.references = references
        self.end = end
        self.sigma = sigma
        self.plain = plain
        self._rarest = np.log(float(documents))  # weight of an n-gram no reference has
        self._idf = self._rarest - np.log(np.maximum(frequencies, 1.0))  # (G,)
        value = references.count * self._idf[references.ngram]  # (E,)
        cell = references.reference.astype(np.int64) * ORDERS + references.order
        self._scale = _inverse_norms(cell, value, len(references.lengths))  # (R * 4,)

    @classmethod
    def from_references(
        cls,
        references: Mapping[str, Sequence[Tokens]],
        frequencies: DocumentFrequencies | None = None,
        *,
        end: Token | None = None,
        sigma: float = 6.0,
        plain: bool = False,
    ) -> CiderD:
        """Prepare tokenised references, image by image.

        Args:
            references: For each image its references, as lists of words or of numbers.
            frequencies: Document frequencies of other references (the training set's); those of ``references`` if None.
            end: Token to end every reference with, so that ending at the right place is rewarded too. A sampled caption
                ends with it only if the model ended it: see ``finished`` of :meth:`rewards`.
            sigma: Width of the length penalty in words.
            plain: Plain CIDEr (eq. 3) without clipping and length penalty.
        """
        if frequencies is not None and frequencies.end != end:
            raise DeixisError(
                f"the document frequencies were counted with end token {frequencies.end!r}, the references have "
                f"{end!r}: count them again with the same end token"
            )
        known = ReferenceNgrams(with_end(references, end), frequencies.table if frequencies else None)
        if frequencies is None or known.moved is None:
            return cls(known, known.document_frequencies(), len(known.row_of), end=end, sigma=sigma, plain=plain)
        counts = np.zeros(len(known.table), np.int64)
        counts[known.moved] = frequencies.counts
        return cls(known, counts, frequencies.documents, end=end, sigma=sigma, plain=plain)

    def rewards(
        self, captions: Sequence[Tokens], ids: Sequence[str], *, finished: Sequence[bool] | None = None
    ) -> NDArray[np.float64]:
        """Score tokenised captions of the images ``ids``, (C,). A caption without words scores 0.

        Captions are taken as they are. With ``finished``, those marked True get the end token the references have.
        """
        if len(captions) != len(ids):
            raise DeixisError(f"{len(captions)} captions for {len(ids)} images: give one image id for each caption")
        if finished is not None:
            if self.end is None:
                raise DeixisError("finished was given, but the references have no end token: prepare them with end=...")
            if len(finished) != len(captions):
                raise DeixisError(f"{len(captions)} captions but {len(finished)} values of finished: give one for each")
            captions = [[*c, self.end] if done else c for c, done in zip(captions, finished, strict=True)]
        rows = self.references.rows(ids)
        blocks = [self._block(block) for block in self.references.blocks(captions, rows)]
        return np.concatenate([np.zeros(0), *blocks])

    def __call__(self, captions: Sequence[Tokens], image_ids: Sequence[str]) -> Tensor:
        """Return the rewards as a tensor, (C,): this makes it a :class:`deixis.interfaces.Reward`."""
        import torch

        return torch.from_numpy(self.rewards(captions, image_ids)).float()

    def _block(self, block: Matches) -> NDArray[np.float64]:
        known, counts = self.references, block.counts
        value, scale = self._weigh(counts)
        ours = value[block.entry]
        theirs = known.count[block.reference_entry] * self._idf[known.ngram[block.reference_entry]]
        reference = known.reference[block.reference_entry]
        caption, order = counts.caption[block.entry], counts.order[block.entry]
        both = ours * theirs if self.plain else np.minimum(ours, theirs) * theirs
        both = both * scale[caption * ORDERS + order] * self._scale[reference * np.int64(ORDERS) + order]
        if not self.plain:
            # The original measures length in pairs of words, so one word is as short as none.
            apart = np.maximum(counts.lengths - 1, 0)[caption] - np.maximum(known.lengths - 1, 0)[reference]
            both *= np.exp(-(apart**2) / (2 * self.sigma**2))
        number = known.first[block.rows + 1] - known.first[block.rows]
        total = np.bincount(caption, both, minlength=len(block.rows))
        return np.asarray(10 * total / (ORDERS * number), np.float64)

    def _weigh(self, counts: NgramCounts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weighted counts of the captions (E,) and one over the length of each vector (C * 4,)."""
        known = counts.ngram < len(self._idf)
        idf = np.full(len(known), self._rarest)
        idf[known] = self._idf[counts.ngram[known]]
        value = counts.count * idf
        cell = counts.caption * ORDERS + counts.order
        return value, _inverse_norms(cell, value, len(counts.lengths))


def _inverse_norms(cell: NDArray[np.int64], value: NDArray[np.float64], captions: int) -> NDArray[np.float64]:
    """Return one over the length of each caption's vector of each order, and 0 for a vector that is all zero."""
    squares = np.bincount(cell, value * value, minlength=captions * ORDERS).astype(np.float64)
    positive = squares > 0
    return np.where(positive, 1 / np.sqrt(np.where(positive, squares, 1.0)), 0.0)
