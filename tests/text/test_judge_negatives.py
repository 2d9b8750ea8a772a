"""The judge of negatives, with a table in place of a language model, and its command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from deixis.cli.main import main
from deixis.errors import DeixisError
from deixis.text.judge_negatives import judge
from deixis.text.negative_table import CorpusCaption
from deixis.text.negatives import NegativeOptions
from deixis.text.vocabulary import Entry, Vocabulary

NOUNS = ("man", "person", "woman", "women", "tree", "sky")
LEMMAS = {"women": "woman"}
VOCABULARY = Vocabulary([Entry("a", 9, "DT", "a"), *(Entry(word, 5, "NN", LEMMAS.get(word, word)) for word in NOUNS)])


@dataclass
class Toy:
    """Finds the same nouns likely everywhere; with the noun visible it knows that a man is a person."""

    knows: bool
    name: str = "toy"
    words: tuple[str, ...] = VOCABULARY.words
    vocabulary: Vocabulary = VOCABULARY

    def to(self, device: object) -> None:
        """It computes nothing."""

    def probabilities(self, captions: Sequence[Sequence[str]], places: Sequence[int], *, hide: bool) -> Tensor:
        p = {word: 0.3 - 0.01 * at for at, word in enumerate(NOUNS)}
        if not hide:
            p = {word: 0.9 if word == "person" and self.knows else 0.01 for word in NOUNS}
        return torch.tensor([[p.get(word, 0.0) for word in self.words] for _ in captions])


def caption(name: str, *words: str) -> CorpusCaption:
    return CorpusCaption(name, tuple(VOCABULARY.id(word) for word in words), (1,))


CAPTIONS = [caption("x#0", "a", "man"), caption("x#1", "a", "women"), caption("y#0", "a", "tree")]


@pytest.mark.parametrize("knows", [False, True])
def test_wider_names_that_are_kept_are_counted(knows: bool) -> None:
    found = judge(CAPTIONS, VOCABULARY, Toy(knows), NegativeOptions("re-ranked", 5, 3, allow_said=True))
    assert found.captions == 3
    assert found.judged == 2  # man and women are persons; nothing wider than a tree is listed
    assert found.wider_proposed == 1.0
    assert found.wider_kept == (0.0 if knows else 1.0)  # the own noun and one of the others go
    assert [noun for _, noun, _ in found.examples] == ([] if knows else ["man", "women"])
    assert all(wider == ("person",) for _, _, wider in found.examples)


def test_negatives_that_are_said_are_counted() -> None:
    model = Toy(knows=True)
    loose = judge(CAPTIONS, VOCABULARY, model, NegativeOptions("plausible", 4, 4, allow_said=True))
    # x#0: person, woman, women; x#1: man, person, woman; y#0: all four
    assert loose.kept == pytest.approx(10 / 3)
    assert loose.said == pytest.approx((2 + 2) / 10)
    assert loose.same_lemma == pytest.approx(1 / 10)
    strict = judge(CAPTIONS, VOCABULARY, model, NegativeOptions("plausible", 4, 3))
    assert strict.said == strict.same_lemma == 0


def test_captions_without_a_noun_cannot_be_judged() -> None:
    bare = CorpusCaption("x#0", (VOCABULARY.id("a"),), ())
    with pytest.raises(DeixisError, match="nothing to judge"):
        judge([bare], VOCABULARY, Toy(knows=True), NegativeOptions("plausible", 4, 3))


def run(*arguments: object) -> object:
    with pytest.raises(SystemExit) as end:
        main(["text", "judge", *map(str, arguments)])
    return end.value.code


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.tsv").write_text("1\ta man sits on a bench\n1\ta person on a bench\n2\ttwo dogs run\n")
    assert run(tmp_path, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["captions"] == 3
    assert facts["kept"] == 25
    assert facts["said"] == 0
    assert run(tmp_path, "--keep", "40") == 2
    assert "--keep 40" in capsys.readouterr().err
