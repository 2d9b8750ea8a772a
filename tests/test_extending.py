"""The examples of CONTRIBUTING.md, as they stand there: in a package outside the tree, and under a short name."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deixis import registry
from deixis.cli.main import main
from deixis.errors import BadRecipeError, DeixisError
from deixis.models.names import load
from deixis.training.recipe_files import load_recipe

ROOT = Path(__file__).parents[1]
PHOTOS = ROOT / "examples" / "photos"
CAPTIONS = {
    "astronaut.jpg": "a woman in a suit",
    "chelsea.jpg": "a cat with eyes",
    "coffee.jpg": "a cup on a table",
}
BLOCK = re.compile(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", re.S)
Call = Callable[..., None]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """A folder with the examples as files and photos of one's own, and the command line in it."""
    written = dict(BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text()))
    assert set(written) == {
        "mine/sharp.py", "sharp.yaml", "mine/pairs.py", "mine/quarters.py", "mine/colours.py", "colours.yaml",
    }  # fmt: skip
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    photos = tmp_path / "my-photos"
    photos.mkdir()
    for name in CAPTIONS:
        shutil.copy(PHOTOS / name, photos)
    (photos / "pairs.txt").write_text("".join(f"{name}\t{text}\n" for name, text in CAPTIONS.items()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def run(*arguments: str) -> None:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        assert ended.value.code in (0, None), arguments

    yield run
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        del sys.modules[name]


READER = "data.reader=mine.pairs:Pairs"
TRAIN = ("log_every=1", "data.train=all", "data.regions=4", READER, "--threads", "1")


@pytest.fixture
def extracted(call: Call, capsys: pytest.CaptureFixture[str]) -> Path:
    """The regions that the example extractor finds in the photos that the example reader reads."""
    call("data", "info", "my-photos", "--format", "mine.pairs:Pairs", "--json")
    assert json.loads(capsys.readouterr().out)["splits"]["all"]["images"] == len(CAPTIONS)
    how = ("--extractor", "mine.quarters:Quarters", "--format", "mine.pairs:Pairs")
    call("regions", "extract", "my-photos", "-o", "store", "--processes", "0", *how)
    return Path("store")


def test_an_objective_of_ones_own_trains(
    call: Call, extracted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call("train", "sharp.yaml", "data.dataset=my-photos", f"data.store={extracted}", *TRAIN, "-o", "run")
    last = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()][-1]
    assert last["loss"] == pytest.approx(last["cross_entropy"] + 0.1 * last["sharp"], rel=1e-4)
    # in the tree it has a line in the registry, and so a short name
    monkeypatch.setitem(registry.REGISTRY["objective"], "sharp", "mine.sharp:Sharp")
    Path("short.yaml").write_text(Path("sharp.yaml").read_text().replace('"mine.sharp:Sharp"', "sharp"))
    recipe = load_recipe("short.yaml", ["data.dataset=my-photos"])
    assert [one.kind for one in recipe.stages[0].objectives] == ["cross_entropy", "sharp"]


def test_a_method_of_ones_own_trains_and_answers(
    call: Call, extracted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call("train", "colours.yaml", "data.dataset=my-photos", f"data.store={extracted}", *TRAIN, "-o", "run")
    monkeypatch.setattr(registry, "OWN", set())  # as in a process that did not read the recipe
    with pytest.raises(DeixisError, match="code outside Deixis: if you trust it, set DEIXIS_PACKAGES=mine"):
        load("run")
    monkeypatch.setenv(registry.TRUSTED, "mine")
    capsys.readouterr()
    call("ground", "my-photos/coffee.jpg", "a cup", "--model", "run", "--json")
    (phrase,) = json.loads(capsys.readouterr().out)["phrases"]
    assert phrase["text"] == "a cup"
    assert len(phrase["boxes"]) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("mine.sharp:Sharp", "mine.sharp:Blunt"), "cannot be imported"),
        (("mine.sharp:Sharp", "mine.missing:Sharp"), "is the package installed, or on PYTHONPATH"),
        (("mine.sharp:Sharp", "mine.pairs:Pairs"), "is no objective: it should be a subclass of deixis.objectives"),
        (("floor: 0.5", "flor: 0.5"), "unknown option 'flor' .*did you mean 'floor'"),
        (("weight: 0.1", "weigth: 0.1"), "did you mean 'weight'"),
        (("kind: captioner", "kind: captoner"), "unknown model 'captoner' .*did you mean 'captioner'"),
        (("kind: captioner, width", "kind: captioner, widht"), "did you mean 'width'"),
        (("kind: captioner", "kind: captioner, attention: {kind: sfot}"), "did you mean 'soft'"),
        (('"mine.sharp:Sharp", weight: 0.1, floor: 0.5', "matching"), "trains a Scan, but the model .* is a Captioner"),
        (
            ('"mine.sharp:Sharp", weight: 0.1, floor: 0.5', "distillation, teacher: lite"),
            "would train nothing: .*set data.parse to true",
        ),
        (('"mine.sharp:Sharp", weight: 0.1, floor: 0.5', "supervision"), "set data.supervision to true"),
    ],
)
def test_what_cannot_work_is_said_when_the_recipe_is_read(call: Call, change: tuple[str, str], message: str) -> None:
    text = Path("sharp.yaml").read_text()
    assert change[0] in text
    Path("wrong.yaml").write_text(text.replace(*change))
    with pytest.raises(BadRecipeError, match=message):
        load_recipe("wrong.yaml", ["data.dataset=nowhere"])  # not even the dataset is looked for
    with pytest.raises(SystemExit) as ended:
        main(["train", "wrong.yaml", "-o", "run"])
    assert ended.value.code == 2
    assert not Path("run").exists()


def test_a_model_of_somebody_else_brings_no_code(tmp_path: Path, small_bundle: Path) -> None:
    shutil.copytree(small_bundle / "captioner", tmp_path / "theirs")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    config["recipe"]["model"] = {"kind": "subprocess:Popen", "args": ["touch", str(tmp_path / "harm")]}
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(config))
    with pytest.raises(DeixisError, match="code outside Deixis"):
        load(str(tmp_path / "theirs"))
    assert not (tmp_path / "harm").exists()
