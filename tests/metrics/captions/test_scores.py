from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from deixis.errors import DeixisError
from deixis.metrics.captions.frequencies import DocumentFrequencies
from deixis.metrics.captions.scores import score_captions

REFERENCES = {"1": ["A dog runs.", "the dog is running"], "2": ["A red cat sits on a mat", "one cat"]}


def test_every_python_metric_for_corpus_and_caption() -> None:
    scores = score_captions({"2": "a cat", "1": "a dog runs"}, REFERENCES, ("bleu", "rouge", "cider", "cider_plain"))
    names = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr", "CIDEr-plain"]
    assert list(scores.corpus) == names
    assert scores.ids == ("2", "1")
    assert all(values.shape == (2,) for values in scores.per_caption.values())
    for name in names[4:]:
        assert scores.corpus[name] == pytest.approx(scores.per_caption[name].mean())
    plain = json.loads(json.dumps(scores.as_dict()))
    assert plain["per_caption"]["1"]["ROUGE-L"] == 1.0
    assert plain["captions"] == 2


def test_order_of_images_does_not_matter() -> None:
    one = score_captions({"1": "a dog", "2": "a cat on a mat"}, REFERENCES)
    two = score_captions({"2": "a cat on a mat", "1": "a dog"}, dict(reversed(REFERENCES.items())))
    assert one.corpus == pytest.approx(two.corpus)
    np.testing.assert_allclose(one.per_caption["CIDEr"], two.per_caption["CIDEr"][::-1])


def test_a_caption_without_words_scores_nothing() -> None:
    scores = score_captions({"1": "", "2": " ... "}, REFERENCES, ("bleu", "rouge", "cider", "cider_plain"))
    assert set(scores.corpus.values()) == {0.0}


def test_given_frequencies_change_cider_only() -> None:
    words = {str(at): [text.split()] for at, text in enumerate(["a dog", "a dog", "a cat", "the mat"])}
    frequencies = DocumentFrequencies.from_references(words)
    captions = {"1": "a dog runs", "2": "a cat"}
    own, given = score_captions(captions, REFERENCES), score_captions(captions, REFERENCES, frequencies=frequencies)
    assert own.corpus["BLEU-2"] == given.corpus["BLEU-2"]
    assert own.corpus["CIDEr"] != given.corpus["CIDEr"]


@pytest.mark.parametrize(
    ("captions", "references", "message"),
    [
        ({}, REFERENCES, "no captions"),
        ({"1": "a"}, REFERENCES, "image '2' has references but no caption"),
        ({"1": "a", "2": "b", "7": "c"}, REFERENCES, "image '7' has captions but no references"),
        ({str(n): "a" for n in range(9)}, {}, r"9 images \('0', '1', '2', \.\.\.\) have captions but no references"),
        ({"1": "a", "2": None}, REFERENCES, r"caption of image '2' is None \(NoneType\), must be text"),
        ({"1": "a"}, {"1": "a dog"}, "references of image '1' are 'a dog', must be a list"),
        ({"1": "a"}, {"1": []}, "image '1' has no reference captions"),
        ({"1": "a"}, {"1": ["a", 3]}, r"a reference of image '1' is 3 \(int\)"),
    ],
)
def test_what_cannot_be_scored_is_named(captions: Any, references: Any, message: str) -> None:
    with pytest.raises(DeixisError, match=message):
        score_captions(captions, references)


def test_an_unknown_metric_is_named() -> None:
    with pytest.raises(DeixisError, match="unknown caption metric 'blue': choose among bleu, rouge"):
        score_captions({"1": "a"}, {"1": ["a"]}, ("blue",))
