"""Our numbers against pycocoevalcap's, on real COCO captions: the first caption against the other four."""

from __future__ import annotations

import numpy as np
import pytest

from deixis.metrics.captions.scores import CaptionScores, score_captions

Captions = dict[str, list[str]]


@pytest.fixture(scope="module")
def ours(coco: Captions) -> CaptionScores:
    return score_captions({k: v[0] for k, v in coco.items()}, {k: v[1:] for k, v in coco.items()})


def theirs(ptb: Captions) -> tuple[Captions, Captions]:
    return {k: v[1:] for k, v in ptb.items()}, {k: v[:1] for k, v in ptb.items()}


def test_bleu_is_theirs_from_text_to_score(ours: CaptionScores, ptb: Captions) -> None:
    from pycocoevalcap.bleu.bleu import Bleu

    corpus, each = Bleu(4).compute_score(*theirs(ptb), verbose=0)
    assert len(ours.ids) >= 1000
    for order in range(4):
        assert ours.corpus[f"BLEU-{order + 1}"] == pytest.approx(corpus[order], rel=1e-6)
        np.testing.assert_allclose(ours.per_caption[f"BLEU-{order + 1}"], each[order], rtol=1e-6, atol=0)


def test_rouge_is_theirs_from_text_to_score(ours: CaptionScores, ptb: Captions) -> None:
    from pycocoevalcap.rouge.rouge import Rouge

    corpus, each = Rouge().compute_score(*theirs(ptb))
    assert ours.corpus["ROUGE-L"] == pytest.approx(corpus, rel=1e-6)
    np.testing.assert_allclose(ours.per_caption["ROUGE-L"], each, rtol=1e-6, atol=0)


def test_cider_is_theirs_from_text_to_score(ours: CaptionScores, ptb: Captions) -> None:
    from pycocoevalcap.cider.cider import Cider

    corpus, each = Cider().compute_score(*theirs(ptb))
    assert ours.corpus["CIDEr"] == pytest.approx(corpus, rel=1e-6)
    np.testing.assert_allclose(ours.per_caption["CIDEr"], each, rtol=1e-6, atol=1e-12)


@pytest.mark.recipe
def test_meteor_equals_theirs(coco: Captions, ptb: Captions) -> None:
    from pycocoevalcap.meteor.meteor import Meteor

    gts, res = theirs(ptb)
    names = list(gts)[:1000]
    scorer = Meteor()
    corpus, each = scorer.compute_score({k: gts[k] for k in names}, {k: res[k] for k in names})
    del scorer
    got = score_captions({k: coco[k][0] for k in names}, {k: coco[k][1:] for k in names}, ("meteor",))
    assert got.corpus["METEOR"] == corpus
    assert got.per_caption["METEOR"].tolist() == each


@pytest.mark.parametrize("candidate", ["", "dog", "a dog", "unheard words only", "a a a a a a a a a a"])
def test_odd_captions_score_as_theirs(candidate: str) -> None:
    pytest.importorskip("pycocoevalcap")
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    references = {"1": ["a dog runs", "dog", ""], "2": ["a red cat sits on a mat", "one cat"], "3": ["a man"]}
    captions = {"1": candidate, "2": "a cat on a red mat", "3": candidate}
    got = score_captions(captions, references)
    res = {k: [v] for k, v in captions.items()}
    bleu, bleus = Bleu(4).compute_score(references, res, verbose=0)
    np.testing.assert_allclose([got.corpus[f"BLEU-{n}"] for n in range(1, 5)], bleu, rtol=1e-9)
    np.testing.assert_allclose([got.per_caption[f"BLEU-{n}"] for n in range(1, 5)], bleus, rtol=1e-9)
    np.testing.assert_allclose(got.per_caption["ROUGE-L"], Rouge().compute_score(references, res)[1], rtol=1e-9)
    np.testing.assert_allclose(got.per_caption["CIDEr"], Cider().compute_score(references, res)[1], rtol=1e-9)
