"""The masked language model: masking, the loop without images, loading, and padding."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from deixis.errors import BadFileError
from deixis.objectives.masked_words import MaskedWords, MaskingOptions
from deixis.text.masked_model import MaskedLanguageModel, MaskedModelConfig, WordTransformer, find_language_model
from deixis.text.vocabulary import END, UNKNOWN, Entry, Vocabulary


def test_masking_is_80_10_10() -> None:
    words = torch.arange(4, 24).repeat(2000, 1)  # 20 words
    words[:, -2:] = torch.tensor([UNKNOWN, END])
    real = words != END
    rng = torch.Generator().manual_seed(0)
    seen, asked = MaskedWords().mask(words, real, 24, rng)
    assert not asked[:, -2:].any()
    assert asked.any(1).all()
    share = asked[:, :-2].float().mean()
    expected = 0.15 + 0.85**18 / 18  # and one word of each caption that would have none
    assert float(share) == pytest.approx(expected, abs=0.01)
    hidden, kept = (seen == 24) & asked, (seen == words) & asked
    assert float(hidden.sum() / asked.sum()) == pytest.approx(0.8, abs=0.02)
    assert float(kept.sum() / asked.sum()) == pytest.approx(0.1 + 0.1 / 20, abs=0.02)  # a random word may be the same
    assert torch.equal(seen[~asked], words[~asked])
    assert int(seen.max()) == 24
    assert int(seen[asked].min()) >= UNKNOWN + 1


def test_masking_options_are_checked() -> None:
    with pytest.raises(ValueError, match="share"):
        MaskingOptions(share=0.0)
    with pytest.raises(ValueError, match="at most 1"):
        MaskingOptions(hidden=0.8, replaced=0.3)
    with pytest.raises(ValueError, match="multiple of heads"):
        MaskedModelConfig(width=10, heads=4)


def test_padding_changes_nothing(animal_words: Vocabulary) -> None:
    torch.manual_seed(0)
    body = WordTransformer(MaskedModelConfig(8, 2, 2), animal_words).eval()
    words = torch.tensor([[4, 6, 5, 9], [4, 7, END, 0]])
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    states = body(words, mask)
    alone = body(words[1:, :2], mask[1:, :2])
    torch.testing.assert_close(states[1:, :2], alone)
    junk = words.clone()
    junk[1, 2:] = 8
    torch.testing.assert_close(body(junk, mask)[mask], states[mask])
    assert torch.isfinite(body(words, torch.zeros_like(mask))).all()  # no word at all


def test_it_learns_what_fits_where(masked_run: Path) -> None:
    model = MaskedLanguageModel.load(str(masked_run))
    captions = [["a", "dog", "barks", "in", "a", "street"], ["a", "pony", "gallops", "in", "a", "field"]]
    p = model.probabilities(captions, [1, 1], hide=True)
    torch.testing.assert_close(p.sum(1), torch.ones(2))
    for row, words in enumerate([{"dog", "puppy"}, {"horse", "pony"}]):
        assert {model.words[at] for at in p[row].topk(2).indices.tolist()} == words
    q = model.probabilities(captions, [1, 1], hide=False)
    own = [0, 1], [model.vocabulary.id("dog"), model.vocabulary.id("pony")]
    assert float(q[own].sum()) > float(p[own].sum())  # a word that is seen is believed more
    assert not p[:, : UNKNOWN + 1].any()
    torch.testing.assert_close(
        model.probabilities([captions[1][:3]], [1], hide=True),
        model.probabilities([captions[1][:3], captions[0]], [1, 1], hide=True)[:1],
    )


def test_two_runs_of_a_recipe_are_the_same(train_masked: Callable[..., Path], tmp_path: Path) -> None:
    from deixis.training.run import Run

    weights = []
    for name in ("one", "two"):
        last = Run(train_masked(tmp_path / name, "stages.0.epochs=1")).pointer("last")
        assert last is not None
        weights.append(load_file(last / "model.safetensors"))
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_other_words_take_the_rows_of_their_spelling(masked_run: Path) -> None:
    trained = MaskedLanguageModel.load(str(masked_run))
    words = Vocabulary([Entry("pony", 3, "NN"), Entry("zebra", 2, "NN"), Entry("a", 1, "DT")])
    body = WordTransformer(trained.body.config, words)
    body.copy_from(trained.body, words, trained.vocabulary)
    table, old = body.embed.weight, trained.body.embed.weight
    assert torch.equal(table[4], old[trained.vocabulary.id("pony")])
    assert torch.equal(table[5], old[UNKNOWN])  # a word it does not know
    assert torch.equal(table[:4], old[:4])
    assert torch.equal(table[-1], old[-1])  # the hidden word
    with pytest.raises(BadFileError, match="16 wide with 1 layers and 2 heads, the recipe asks for 8 wide"):
        WordTransformer(MaskedModelConfig(8, 1, 2), words).copy_from(trained.body, words, trained.vocabulary)


def test_damage_and_absence_are_told(masked_run: Path, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="deixis train text/masked"):
        MaskedLanguageModel.load(str(tmp_path / "nothing"))
    folder = tmp_path / "copy"
    shutil.copytree(find_language_model(str(masked_run)), folder)
    weights = folder / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(bytes(raw))
    with pytest.raises(BadFileError, match="checksum"):
        MaskedLanguageModel.load(str(folder))
    facts = json.loads((folder / "config.json").read_text())
    facts["recipe"]["model"]["kind"] = "captioner"
    (folder / "config.json").write_text(json.dumps(facts))
    with pytest.raises(BadFileError, match="'captioner', not a masked"):
        MaskedLanguageModel.load(str(folder))
    (folder / "config.json").write_text("{")
    with pytest.raises(BadFileError, match="broken JSON"):
        MaskedLanguageModel.load(str(folder))
