"""Recipes: strict reading, overlays, overrides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import BadRecipeError
from deixis.training.recipe import Recipe
from deixis.training.recipe_files import load_recipe, parse_override, read_recipe, set_dotted

BASE = """
about: {title: Baseline, paper: A paper, table: "2", row: first}
data: {dataset: photos, store: regions}
model: {kind: captioner, width: 1024}
stages:
  - name: words
    epochs: 30
    objectives: [cross_entropy]
    optimizer: {lr: 5e-4}
    schedule: {kind: step, every: 3, factor: 0.8}
sizes:
  cpu: {model.width: 512, stages.words.epochs: 8}
rows:
  second: {about.row: second, stages.0.objectives.cross_entropy.weight: 0.5}
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.yaml"
    path.write_text(BASE)
    return path


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_reads_what_stands_there(base: Path) -> None:
    recipe = load_recipe(base)
    assert recipe.size == "paper"
    assert recipe.model.kind == "captioner"
    assert recipe.model.options == {"width": 1024}
    assert recipe.stages[0].optimizer.lr == 5e-4  # plain YAML would read 5e-4 as text
    assert recipe.stages[0].objectives[0].kind == "cross_entropy"


def test_size_is_one_switch(base: Path) -> None:
    small = load_recipe(base, ["size=cpu"])
    assert (small.model.options["width"], small.stages[0].epochs, small.size) == (512, 8, "cpu")


def test_an_override_wins_over_the_size(base: Path) -> None:
    assert load_recipe(base, ["stages.words.epochs=2", "size=cpu"]).stages[0].epochs == 2


def test_rows(base: Path) -> None:
    file = read_recipe(base)
    assert file.about_row("second").row == "second"
    assert load_recipe(f"{base}:second").stages[0].objectives[0].weight == 0.5
    assert load_recipe(base, ["row=second"]) == load_recipe(f"{base}:second")
    with pytest.raises(BadRecipeError, match="did you mean 'second'"):
        load_recipe(f"{base}:secnd")


def test_plain_form_is_the_inverse(base: Path) -> None:
    recipe = load_recipe(f"{base}:second", ["size=cpu", "data.captions=3"])
    assert Recipe.from_plain(recipe.plain()) == recipe


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stages.0.epoch=3", "unknown key 'epoch' in base.yaml.stages.0: did you mean 'epochs'"),
        ("stagse.0.epochs=3", "unknown key 'stagse' in the overrides: did you mean 'stages'"),
        ("stages.word.epochs=3", "unknown entry 'word'.*did you mean 'words'"),
        ("stages.7.epochs=3", "unknown entry '7'"),
        ("stages.0.epochs=many", "stages.0.epochs should be a whole number, got 'many'"),
        ("stages.0.epochs=2.5", "should be a whole number"),
        ("stages.0.epochs=true", "should be a whole number"),
        ("stages.0.epochs=0", "at least 1"),
        ("data.supervision=1", "should be true or false, got 1"),
        ("stages.0.schedule.kind=plato", "unknown value 'plato'.*did you mean 'plateau'"),
        ("size=cpus", "unknown size 'cpus'.*did you mean 'cpu'"),
        ("seed", "should read key=value"),
        ("stages.0.objectives=[]", "at least one objective"),
        ("stages.0.objectives=[a, a]", "two objectives are called 'a'"),
        ("data.dataset.x=1", "cannot be set"),
        ("seed=.nan", "seed should be a whole number"),
        ("stages.0.optimizer.lr=.inf", "should be a finite number"),
    ],
)
def test_mistakes_are_named(base: Path, override: str, message: str) -> None:
    with pytest.raises(BadRecipeError, match=message):
        load_recipe(base, [override])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BASE + "\nmodle: {}\n", "unknown key 'modle'.*did you mean 'model'"),
        (BASE + "\nseed: 1\nseed: 2\n", "key 'seed' twice"),
        ("- a list", "should hold a mapping"),
        ("{", "is not YAML"),
        ("about: {title: x}\n", "lacks 'data'"),
        (BASE.replace("kind: captioner, ", ""), "model should be a mapping with a 'kind'"),
        ("extends: self.yaml\n", "extends itself"),
        ("!!python/object/apply:os.system ['true']", "is not YAML"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadRecipeError, match=message):
        load_recipe(write(tmp_path / "self.yaml", text))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadRecipeError, match="no recipe at"):
        load_recipe(tmp_path / "none.yaml")


def test_extending(base: Path, tmp_path: Path) -> None:
    more = write(
        tmp_path / "more.yaml",
        "extends: base.yaml\nabout: {title: More}\nmodel: {attention: {kind: distributed}}\nsizes: {cpu: {seed: 9}}\n",
    )
    recipe = load_recipe(more, ["size=cpu"])
    assert (recipe.about.title, recipe.about.paper) == ("More", "A paper")
    assert recipe.model.options == {"width": 512, "attention": {"kind": "distributed"}}
    assert (recipe.seed, recipe.stages[0].epochs) == (9, 8)


def test_extending_with_other_stages_drops_their_sizes(base: Path, tmp_path: Path) -> None:
    more = write(
        tmp_path / "more.yaml",
        "extends: base.yaml\nstages: [{name: one, epochs: 5, objectives: [cyclical]}]\n"
        "sizes: {cpu: {stages.one.epochs: 2}}\n",
    )
    recipe = load_recipe(more, ["size=cpu"])
    assert [(stage.name, stage.epochs) for stage in recipe.stages] == [("one", 2)]
    assert recipe.model.options["width"] == 512


def test_changes_deep_inside_keep_the_rest(base: Path, tmp_path: Path) -> None:
    text = "extends: base.yaml\nchange: {stages.words.objectives: [cross_entropy, {kind: cyclical, weight: 0.4}]}\n"
    recipe = load_recipe(write(tmp_path / "more.yaml", text), ["size=cpu", "stages.0.objectives.cyclical.weight=0.6"])
    assert [(o.kind, o.weight) for o in recipe.stages[0].objectives] == [("cross_entropy", 1.0), ("cyclical", 0.6)]
    assert recipe.stages[0].epochs == 8  # the base's size still applies
    assert load_recipe(base).stages[0].objectives[0].kind == "cross_entropy"
    with pytest.raises(BadRecipeError, match="change should be a mapping"):
        load_recipe(write(tmp_path / "more.yaml", "extends: base.yaml\nchange: [1]\n"))


def test_differences_are_dotted(base: Path) -> None:
    a, b = load_recipe(base), load_recipe(base, ["seed=3", "stages.0.clip.at=1.0"])
    assert a.differences(b) == ["seed", "stages.0.clip.at"]
    assert a.differences(a) == []


@given(st.one_of(st.integers(), st.booleans(), st.none(), st.lists(st.integers(), max_size=3)))
def test_override_values_are_what_they_look_like(value: object) -> None:
    assert parse_override(f"a.b={json.dumps(value)}") == ("a.b", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_python_prints_is_read_as_one(value: float) -> None:
    assert parse_override(f"seed={value!r}") == ("seed", value)


def test_dotted_keys_make_mappings() -> None:
    data: dict[str, object] = {}
    set_dotted(data, "model.attention.kind", "soft", "here")
    assert data == {"model": {"attention": {"kind": "soft"}}}


def test_a_recipe_of_ones_own_extends_one_that_ships(tmp_path: Path) -> None:
    own = write(tmp_path / "own.yaml", "extends: captioning/continued\nchange: {stages.point.epochs: 7}\n")
    shipped = load_recipe("captioning/continued")
    recipe = load_recipe(own)
    assert recipe.stages[1].epochs == 7 != shipped.stages[1].epochs
    assert recipe.model == shipped.model
    with pytest.raises(BadRecipeError, match="did you mean 'captioning/continued'"):
        load_recipe(write(tmp_path / "wrong.yaml", "extends: captioning/continud\n"))
    with pytest.raises(BadRecipeError, match=f"no recipe at {tmp_path}/none.yaml"):
        load_recipe(write(tmp_path / "lost.yaml", "extends: none.yaml\n"))
