"""Negatives by hand with a table in place of a language model, the table on disk, and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from deixis.cli.main import main
from deixis.errors import BadFileError, DeixisError
from deixis.home import cache_home
from deixis.text.negative_table import FACTS, TENSORS, CorpusCaption, NegativeTable, said_lemmas
from deixis.text.negatives import Candidate, NegativeMaker, NegativeOptions, choose_noun, corpus_nouns
from deixis.text.vocabulary import Entry, Vocabulary

P = {"man": 0.30, "guy": 0.20, "boy": 0.15, "woman": 0.14, "girl": 0.10, "car": 0.001, "the": 0.9}
Q = {"man": 0.90, "guy": 0.05, "boy": 0.01, "woman": 0.001, "girl": 0.002, "car": 0.0, "the": 0.0}
VOCABULARY = Vocabulary(
    [Entry("the", 9, "DT"), Entry("walks", 8, "VBZ"), Entry("has", 7, "NN")]
    + [Entry(word, 5, "NN") for word in ("man", "guy", "boy", "woman", "girl", "car")]
)
CAPTION = ["the", "man", "walks"]


@dataclass
class Toy:
    """Says the same of every caption."""

    name: str = "toy"
    words: tuple[str, ...] = VOCABULARY.words
    vocabulary: Vocabulary = VOCABULARY
    asked: int = 0

    def to(self, device: object) -> None:
        """It computes nothing."""

    def probabilities(self, captions: Sequence[Sequence[str]], places: Sequence[int], *, hide: bool) -> Tensor:
        self.asked += len(captions)
        said = P if hide else Q
        return torch.tensor([[said.get(word, 0.0) for word in self.words] for _ in captions])


def make(kind: str, candidates: int, keep: int, said: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
    options = NegativeOptions(kind, candidates, keep)  # type: ignore[arg-type]
    (found,) = NegativeMaker(Toy(), corpus_nouns(VOCABULARY), options)([CAPTION], [1], [said])
    assert found.place == 1
    return [c.word for c in found.kept], [c.word for c in found.rejected]


def test_only_nouns_of_the_corpus_are_candidates() -> None:
    assert corpus_nouns(VOCABULARY) == ["man", "guy", "boy", "woman", "girl", "car"]  # not 'the', not 'has'


def test_plausible_ones_come_by_p_without_the_own_word() -> None:
    assert make("plausible", 5, 3) == (["guy", "boy", "woman"], ["man", "girl"])


def test_re_ranking_rejects_what_is_true_as_well() -> None:
    # p / (q + 1e-6): woman 139.9, girl 50.0, boy 15.0, guy 4.0, man 0.3; car is not among the five likeliest
    assert make("re-ranked", 5, 3) == (["woman", "girl", "boy"], ["man", "guy"])


def test_what_is_said_of_the_photo_is_no_candidate() -> None:
    # guy and woman are said, so the five likeliest of the others are man, boy, girl and car
    assert make("plausible", 5, 3, ("guy", "woman")) == (["boy", "girl", "car"], ["man"])
    # p / (q + 1e-6): car 1000, girl 50, boy 15, man .3
    assert make("re-ranked", 5, 2, ("guy", "woman")) == (["car", "girl"], ["man", "boy"])


def test_the_own_word_is_never_kept() -> None:
    assert make("re-ranked", 5, 5) == (["woman", "girl", "boy", "guy"], ["man"])
    assert make("plausible", 5, 5) == (["guy", "boy", "woman", "girl"], ["man"])


def test_the_score_of_a_word_the_model_rules_out_is_finite() -> None:
    assert Candidate("car", 0.001, 0.0).score == pytest.approx(1000.0)


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="keep 26"):
        NegativeOptions("re-ranked", 25, 26)
    with pytest.raises(DeixisError, match="random negatives need no language model"):
        NegativeMaker(Toy(), ["man"], NegativeOptions("random"))
    with pytest.raises(DeixisError, match="knows 1 nouns of the corpus"):
        NegativeMaker(Toy(), ["man"], NegativeOptions("re-ranked", 3, 2))
    with pytest.raises(DeixisError, match="no word 3 in a caption of 3 words"):
        NegativeMaker(Toy(), P, NegativeOptions("re-ranked", 3, 2))([CAPTION], [3])


def test_a_caption_keeps_its_noun() -> None:
    chosen = [choose_noun([2, 5, 9], f"image#{at}", seed=3) for at in range(60)]
    assert chosen == [choose_noun([2, 5, 9], f"image#{at}", seed=3) for at in range(60)]
    assert set(chosen) == {2, 5, 9}
    assert chosen != [choose_noun([2, 5, 9], f"image#{at}", seed=4) for at in range(60)]
    assert choose_noun([], "image#0") is None


def numbers(*words: str) -> tuple[int, ...]:
    return tuple(VOCABULARY.id(word) for word in words)


CAPTIONS = [
    CorpusCaption("b#0", numbers("the", "man", "walks", "the", "street"), (1, 4)),  # the street is unknown
    CorpusCaption("a#0", numbers("the", "girl", "has"), (1, 2)),
    CorpusCaption("a#1", numbers("the", "walks"), ()),
    CorpusCaption("c#0", numbers("has"), (0,)),
]


def test_the_table_of_a_corpus() -> None:
    options = NegativeOptions("re-ranked", 5, 3, allow_said=True)
    table = NegativeTable.make(CAPTIONS, VOCABULARY, Toy(), options, batch=1)
    assert table.ids == ("a#0", "b#0")  # the others have no noun that is known
    assert table.place.tolist() == [1, 1]
    assert [[VOCABULARY.words[at] for at in row] for row in table.words.tolist()] == [
        ["woman", "boy", "guy"],
        ["woman", "girl", "boy"],
    ]


def test_captions_of_a_photo_keep_its_nouns_from_each_other() -> None:
    words = Vocabulary([*VOCABULARY.entries, Entry("women", 4, "NNS", "woman"), Entry("kid", 3, "NN", "kid")])

    def told(*said: str) -> tuple[int, ...]:
        return tuple(words.id(word) for word in said)

    captions = [
        CorpusCaption("a#0", told("the", "man"), (1,)),
        CorpusCaption("a#1", told("the", "women", "walks"), (1,)),  # so no woman can be untrue of photo a
        CorpusCaption("b#0", told("the", "man", "walks", "the"), (1,)),
    ]
    assert said_lemmas(captions, words)["a"] == {"the", "man", "woman", "walk"}
    # what is said makes room for the next likeliest: the car, of which p / (q + 1e-6) is 1000
    first = {False: ["car", "girl", "boy"], True: ["woman", "girl", "boy"]}
    other = {False: ["car", "woman", "girl"], True: ["woman", "girl", "boy"]}  # of another photo only its man is said
    for allowed in (False, True):
        options = NegativeOptions("re-ranked", 5, 3, allow_said=allowed)
        seen: list[tuple[int, int]] = []
        model = Toy(words=words.words)
        table = NegativeTable.make(
            captions, words, model, options, batch=2, on_progress=lambda *done, seen=seen: seen.append(done)
        )
        rows = dict(zip(table.ids, [[words.words[at] for at in row] for row in table.words.tolist()], strict=True))
        assert rows["a#0"] == first[allowed]
        assert rows["b#0"] == other[allowed]
        assert seen == [(2, 3), (3, 3)]


def test_a_table_is_made_once_for_a_model_and_a_corpus() -> None:
    model, options = Toy(), NegativeOptions("re-ranked", 5, 3)
    first = NegativeTable.cached(CAPTIONS, VOCABULARY, model, options)
    asked = model.asked
    assert asked == 4
    again = NegativeTable.cached(CAPTIONS, VOCABULARY, model, options)
    assert model.asked == asked
    assert again.ids == first.ids
    assert torch.equal(again.words, first.words)
    NegativeTable.cached(CAPTIONS[:1], VOCABULARY, model, options)
    NegativeTable.cached(CAPTIONS, VOCABULARY, model, options, seed=1)
    NegativeTable.cached(CAPTIONS, VOCABULARY, Toy("other"), options)
    assert model.asked == asked + 2 + 4
    folders = list((cache_home() / "negatives").iterdir())
    assert len(folders) == 4
    assert all({file.name for file in folder.iterdir()} == {TENSORS, FACTS} for folder in folders)
    (folders[0] / TENSORS).write_bytes(b"nothing")
    with pytest.raises(BadFileError, match="delete the folder"):
        NegativeTable.load(folders[0])


def negatives(*arguments: object) -> int:
    try:
        main(["text", "negatives", *map(str, arguments)])
    except SystemExit as left:
        return int(left.code or 0)
    return 0


def test_the_command_shows_kept_and_rejected(masked_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "A dog barks in a street."
    options = ["--model", masked_run, "--candidates", 3, "--keep", 2, "--allow-said"]
    assert negatives(sentence, *options, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["model"].startswith("masked-")
    assert [sentence[entry["start"] : entry["end"]] for entry in answer["negatives"]] == ["dog", "street"]
    for entry in answer["negatives"]:
        assert [len(entry["kept"]), len(entry["rejected"])] == [2, 1]
        assert entry["word"] not in [candidate["word"] for candidate in entry["kept"]]
        assert all(c["score"] == pytest.approx(c["p"] / (c["q"] + 1e-6)) for c in entry["kept"] + entry["rejected"])
        scores = [candidate["score"] for candidate in entry["kept"]]
        assert scores == sorted(scores, reverse=True)
    place = answer["negatives"][1]
    assert {c["word"] for c in place["kept"]} == {"field", "garden"}
    assert negatives(sentence, *options, "--word", "Dog") == 0
    shown = capsys.readouterr().out
    assert "Rejected" in shown
    assert "dog" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["", "--model", "RUN"], "has no word"),
        (["🐕", "--model", "RUN"], "has no word"),
        (["in a", "--model", "RUN"], "found no noun"),
        (["A dog barks", "--model", "RUN", "--word", "cat"], "there is no word 'cat'"),
        (["A dog barks", "--model", "RUN", "--keep", "31"], "--keep 31 is more than --candidates 30"),
        (["A dog barks", "--model", "nothing"], "found no masked language model 'nothing'"),
        (["A dog barks", "--model", "RUN"], "knows 9 nouns"),
    ],
)
def test_the_command_tells_what_is_wrong(
    arguments: list[str], message: str, masked_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert negatives(*(str(masked_run) if part == "RUN" else part for part in arguments)) == 2
    errors = capsys.readouterr().err
    assert message in " ".join(errors.split())
    assert "Traceback" not in errors
