"""Places in JSON files: the line named is the line of the value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import BadFileError
from deixis.metrics.files.json_lines import JsonFile, read_json_file, show_path

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def paths_in(value: Any, keys: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [keys]
    if isinstance(value, dict):
        found += [path for key, inner in value.items() for path in paths_in(inner, (*keys, key))]
    elif isinstance(value, list):
        found += [path for at, inner in enumerate(value) for path in paths_in(inner, (*keys, at))]
    return found


@settings(max_examples=100, deadline=None)
@given(values, st.data())
def test_the_line_of_any_value_is_found(value: Any, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(paths_in(value)))
    marked = json.loads(json.dumps(value))
    if path:
        parent = marked
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = "MARK!"
    else:
        marked = "MARK!"
    text = json.dumps(marked, indent=1)
    message = str(JsonFile(Path("f.json"), text, marked).error(path, "is wrong"))
    line = int(message.split("line ")[1].split(":")[0])
    assert "MARK!" in text.split("\n")[line - 1]


def test_a_path_that_ends_early_points_at_its_parent() -> None:
    text = '{"a":\n {"b": 1}}'
    error = JsonFile(Path("f.json"), text, json.loads(text)).error(["a", "c", 3], "is not there")
    assert str(error) == "f.json, line 2: a.c[3] is not there"


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text('{"a": 1}\n\n{"a": [2]}\n')
    read = read_json_file(file)
    assert read.data == [{"a": 1}, {"a": [2]}]
    assert "line 3: a[0] is odd" in str(read.error([1, "a", 0], "is odd"))
    file.write_text('{"a": 1}\n{"a": 1, "a": 2}\n')
    with pytest.raises(BadFileError, match=r'line 2: the key "a" is there twice'):
        read_json_file(file)
    file.write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(BadFileError, match="line 2: not JSON"):
        read_json_file(file)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1,\n"a": 2}', 2),
        ('{"x": [{"b": 1},\n{"b": "a",\n "c": {}, "b": 3}]}', 3),
        ('{"a": {"k": "a"}, "k": ["a", "a"],\n\n"a": 0}', 3),
        ('{"say \\"a\\": ": 1, "b": 1,\n"b": 1}', 2),
    ],
)
def test_a_repeated_key_is_found_where_it_is_repeated(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "f.json"
    file.write_text(text)
    with pytest.raises(BadFileError, match=f"line {line}: the key .* is there twice"):
        read_json_file(file)


def test_paths_are_shown_as_one_would_write_them() -> None:
    assert show_path(["results", "v_1", "0", "clss", 2]) == 'results.v_1["0"].clss[2]'


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(BadFileError, match="nested too deeply"):
        read_json_file(file)
