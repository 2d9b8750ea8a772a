from __future__ import annotations

import time
from pathlib import Path

import pytest

from deixis.errors import BadFileError
from deixis.reading.yaml import MAX_YAML_BYTES, MAX_YAML_VALUES, parse_yaml, read_yaml

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    ["a: 2001-13-45", "a: !!bool maybe", "a: " + "[" * 5000, "? [a, b]\n: c", "a: !!python/object:os.system {}",
     "a: *b", "a: 1\na: 2", "\0", "a: &a [*a]", "--- a\n--- b", "a: !!timestamp x", "!!set [a]", "a: !!int 0x"],
)  # fmt: skip
def test_yaml_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(BadFileError, match="here is not YAML"):
        parse_yaml(text, "here")


def test_aliases_are_counted_as_they_would_be_written_out() -> None:
    began = time.process_time()
    with pytest.raises(BadFileError, match=f"more than {MAX_YAML_VALUES:,} values"):
        parse_yaml(LAUGHS, "here")
    assert time.process_time() - began < 1
    assert parse_yaml("a: &a [1, 2]\nb: *a", "here") == {"a": [1, 2], "b": [1, 2]}


def test_yaml_knows_numbers_as_people_write_them() -> None:
    assert parse_yaml("[5e-4, 1e5, .5e1, -2.5E+3, 1e, e5]", "here") == [5e-4, 1e5, 5.0, -2500.0, "1e", "e5"]
    assert parse_yaml("", "here") is None
    began = time.process_time()
    assert isinstance(parse_yaml("'" + "1" * 200_000 + "'", "here"), str)
    with pytest.raises(BadFileError):  # a number of so many digits: refused, and not by trying it in every way
        parse_yaml("1" * 200_000, "here")
    assert time.process_time() - began < 2


def test_yaml_files_are_small(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: " + "x" * MAX_YAML_BYTES)
    with pytest.raises(BadFileError, match="more than 262,144 bytes"):
        read_yaml(tmp_path / "a.yaml")
