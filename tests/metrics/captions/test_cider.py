from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.captions import ngrams
from deixis.metrics.captions.cider import CiderD
from deixis.metrics.captions.frequencies import DocumentFrequencies

Caption = Sequence[str | int]
References = Mapping[str, Sequence[Caption]]

TWO: References = {"1": [["a", "dog"]], "2": [["a", "red", "cat"]]}


def slow_cider(
    captions: Sequence[Caption], ids: Sequence[str], references: References, counted: References, plain: bool = False
) -> list[float]:
    """Equations 1 to 4 written out with dictionaries, nothing shared with the package."""

    def grams(caption: Caption, n: int) -> Counter[tuple[str | int, ...]]:
        return Counter(tuple(caption[i : i + n]) for i in range(len(caption) - n + 1))

    @cache
    def frequency(gram: tuple[str | int, ...]) -> int:
        return sum(any(gram in grams(c, len(gram)) for c in refs) for refs in counted.values())

    def vector(caption: Caption, n: int) -> dict[tuple[str | int, ...], float]:
        return {g: k * math.log(len(counted) / max(1, frequency(g))) for g, k in grams(caption, n).items()}

    scores = []
    for caption, name in zip(captions, ids, strict=True):
        total = 0.0
        for n in range(1, 5):
            ours = vector(caption, n)
            for reference in references[name]:
                theirs = vector(reference, n)
                norm = math.hypot(*ours.values()) * math.hypot(*theirs.values())
                if not norm:
                    continue
                if plain:
                    total += sum(v * theirs.get(g, 0) for g, v in ours.items()) / norm
                    continue
                apart = max(0, len(caption) - 1) - max(0, len(reference) - 1)
                dot = sum(min(v, theirs[g]) * theirs[g] for g, v in ours.items() if g in theirs)
                total += dot / norm * math.exp(-(apart**2) / 72)
        scores.append(10 * total / 4 / len(references[name]))
    return scores


def test_hand_worked() -> None:
    scorer = CiderD.from_references(TWO)
    got = scorer.rewards([["a", "dog"], ["a", "cat"], ["dog", "dog", "dog"]], ["1", "2", "1"])
    # "a" is in both images and weighs ln(2/2) = 0; every other word weighs ln 2.
    # "a dog": one and two words agree fully, three and four words do not exist: 10 (1 + 1) / 4.
    # "a cat": cosine 1 / sqrt 2 on words, nothing on pairs, one word shorter.
    # "dog" three times: clipped to once of three, one word longer.
    penalty = math.exp(-1 / 72)
    np.testing.assert_allclose(got, [5, 10 / 4 / math.sqrt(2) * penalty, 10 / 4 / 3 * penalty], rtol=1e-12)
    plain = CiderD.from_references(TWO, plain=True)
    got = plain.rewards([["a", "cat"], ["dog", "dog", "dog"]], ["2", "1"])
    np.testing.assert_allclose(got, [10 / 4 / math.sqrt(2), 10 / 4], rtol=1e-12)


word = st.sampled_from("abcdefg")
caption = st.lists(word, max_size=9)
reference_sets = st.dictionaries(st.sampled_from("xyzuvw"), st.lists(caption, min_size=1, max_size=3), min_size=1)


@given(
    reference_sets, reference_sets, st.lists(st.lists(st.sampled_from("abcdefgQR"), max_size=9), max_size=6), st.data()
)
def test_equals_the_slow_implementation(
    references: References, training: References, captions: list[list[str]], data: st.DataObject
) -> None:
    ids = [data.draw(st.sampled_from(sorted(references))) for _ in captions]
    own = CiderD.from_references(references)
    np.testing.assert_allclose(own.rewards(captions, ids), slow_cider(captions, ids, references, references), atol=1e-9)
    given_ = CiderD.from_references(references, DocumentFrequencies.from_references(training))
    np.testing.assert_allclose(
        given_.rewards(captions, ids), slow_cider(captions, ids, references, training), atol=1e-9
    )
    plain = CiderD.from_references(references, plain=True)
    expected = slow_cider(captions, ids, references, references, plain=True)
    np.testing.assert_allclose(plain.rewards(captions, ids), expected, atol=1e-9)


@given(reference_sets, st.lists(caption, max_size=6), st.data())
def test_numbers_score_as_words_do(references: References, captions: list[list[str]], data: st.DataObject) -> None:
    ids = [data.draw(st.sampled_from(sorted(references))) for _ in captions]
    number = {letter: at for at, letter in enumerate("abcdefg")}
    as_numbers = {k: [[number[str(w)] for w in c] for c in v] for k, v in references.items()}
    got = CiderD.from_references(as_numbers).rewards([[number[w] for w in c] for c in captions], ids)
    np.testing.assert_allclose(got, CiderD.from_references(references).rewards(captions, ids))


def test_real_captions_equal_the_slow_implementation(coco: dict[str, list[str]]) -> None:
    some = {k: [t.lower().split() for t in v] for k, v in list(coco.items())[:25]}
    references = {k: v[1:] for k, v in some.items()}
    captions, ids = [v[0] for v in some.values()], list(some)
    got = CiderD.from_references(references).rewards(captions, ids)
    np.testing.assert_allclose(got, slow_cider(captions, ids, references, references), rtol=1e-9)
    assert got.mean() > 0.3


def test_end_token_takes_part() -> None:
    scorer = CiderD.from_references(TWO, end="<end>")
    by_hand = {k: [[*c, "<end>"] for c in v] for k, v in TWO.items()}
    captions, ids = [["a", "dog"], ["a", "dog"], ["a", "red"]], ["1", "1", "2"]
    ended = [["a", "dog", "<end>"], ["a", "dog"], ["a", "red", "<end>"]]
    expected = slow_cider(ended, ids, by_hand, by_hand)
    np.testing.assert_allclose(scorer.rewards(ended, ids), expected)
    np.testing.assert_allclose(scorer.rewards(captions, ids, finished=[True, False, True]), expected)
    assert expected[0] > expected[1]
    with pytest.raises(DeixisError, match="counted with end token None"):
        CiderD.from_references(TWO, DocumentFrequencies.from_references(TWO), end="<end>")


def test_many_captions_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = CiderD.from_references(TWO)
    captions, ids = [["a", "dog"], ["red"], [], ["a", "cat"]] * 5, ["1", "2", "1", "2"] * 5
    whole = scorer.rewards(captions, ids)
    monkeypatch.setattr(ngrams, "_BLOCK", 3)
    np.testing.assert_array_equal(scorer.rewards(captions, ids), whole)
    np.testing.assert_array_equal(scorer(captions, ids).numpy(), whole.astype(np.float32))


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
@pytest.mark.parametrize("end", [None, "<end>"])
def test_frequencies_survive_saving(tmp_path: Path, suffix: str, end: str | None) -> None:
    words: References = {**TWO, "3": [["a", "naïve", "dog"], ["dog"]], "4": [[]]}
    before = DocumentFrequencies.from_references(words, end=end)
    before.save(tmp_path / f"new/frequencies{suffix}")
    after = DocumentFrequencies.load(tmp_path / f"new/frequencies{suffix}")
    assert (after.documents, after.end) == (4, end)
    assert dict(zip(after.table.ngrams(), after.counts, strict=True)) == dict(
        zip(before.table.ngrams(), before.counts, strict=True)
    )
    one, two = (CiderD.from_references(TWO, f, end=end) for f in (before, after))
    captions, ids = [["a", "dog"], ["the", "red", "cat"]], ["1", "2"]
    np.testing.assert_array_equal(one.rewards(captions, ids), two.rewards(captions, ids))
    assert [p.name for p in (tmp_path / "new").iterdir()] == [f"frequencies{suffix}"]


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_frequencies_of_numbers_survive_saving(tmp_path: Path, suffix: str) -> None:
    before = DocumentFrequencies.from_references({"1": [[5, 6, 0]], "2": [[6, 7, 0]]})
    before.save(tmp_path / f"f{suffix}")
    after = DocumentFrequencies.load(tmp_path / f"f{suffix}")
    assert dict(zip(after.table.ngrams(), after.counts, strict=True))[(6,)] == 2


def test_bad_frequency_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="no such file"):
        DocumentFrequencies.load(tmp_path / "none.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(BadFileError, match="not a file of document frequencies"):
        DocumentFrequencies.load(tmp_path / "list.json")
    head = '{"format": "deixis-document-frequencies", "version": 1, "tokens": "str", "end": null, '
    (tmp_path / "many.json").write_text(head + '"documents": 2, "ngrams": {"a dog": 3}}')
    with pytest.raises(BadFileError, match="occurs in 3 of 2"):
        DocumentFrequencies.load(tmp_path / "many.json")
    (tmp_path / "zero.json").write_text(head + '"documents": 0, "ngrams": {}}')
    with pytest.raises(BadFileError, match="'documents' is 0"):
        DocumentFrequencies.load(tmp_path / "zero.json")
    (tmp_path / "cut.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(BadFileError, match="not a file of document frequencies"):
        DocumentFrequencies.load(tmp_path / "cut.safetensors")
    with pytest.raises(DeixisError, match=r"end it in \.safetensors or \.json"):
        DocumentFrequencies.from_references(TWO).save(tmp_path / "x.pkl")
    with pytest.raises(DeixisError, match="holds white space"):
        DocumentFrequencies.from_references({"1": [["a dog"]]}).save(tmp_path / "x.json")


def test_bad_input_is_named() -> None:
    scorer = CiderD.from_references(TWO)
    with pytest.raises(DeixisError, match="image '9' has no references"):
        scorer.rewards([["a"]], ["9"])
    with pytest.raises(DeixisError, match="2 captions for 1 images"):
        scorer.rewards([["a"], ["b"]], ["1"])
    with pytest.raises(DeixisError, match="'a dog' is not cut into words"):
        scorer.rewards(["a dog"], ["1"])
    with pytest.raises(DeixisError, match=r"starts with tensor\(3\)"):
        scorer.rewards([torch.tensor([3, 4])], ["1"])  # type: ignore[list-item]
    with pytest.raises(DeixisError, match="no end token"):
        scorer.rewards([["a"]], ["1"], finished=[True])
    with pytest.raises(DeixisError, match="image '1' has no reference captions"):
        CiderD.from_references({"1": []})
    with pytest.raises(DeixisError, match="no references"):
        CiderD.from_references({})
    with pytest.raises(DeixisError, match="sigma is 0"):
        CiderD.from_references(TWO, sigma=0)
    assert scorer.rewards([], []).shape == (0,)
    assert scorer.rewards([[]], ["1"]).tolist() == [0]
