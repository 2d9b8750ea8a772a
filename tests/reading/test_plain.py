from __future__ import annotations

import pytest

from deixis.errors import BadFileError
from deixis.reading import plain
from deixis.reading.plain import parse_json


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"a": 1,}', "line 1, column 9"),
        ("1" * 5000, "broken JSON"),
        (b"\xff\xfe", "not UTF-8"),
        ("", "line 1, column 1"),
    ],
)
def test_json_that_cannot_be_read_is_placed(text: str | bytes, says: str) -> None:
    with pytest.raises(BadFileError, match=f"here.*{says}"):
        parse_json(text, "here")


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (plain.expect_list, [], [{}, "a", None, 5]),
        (plain.expect_object, {}, [[], "a", None, True]),
        (plain.expect_text, "a", [5, None, ["a"]]),
        (plain.expect_texts, ["a"], ["a", ["a", 5], {}]),
        (plain.expect_count, 5, [-1, 2.0, True, "5", None, 10**5000]),
        (plain.expect_number, 5, [True, "5", None, float("nan"), float("inf"), 10**5000]),
    ],
)
def test_values_of_another_kind_are_named(check: object, good: object, bad: list[object]) -> None:
    assert callable(check)
    assert check(good, "here") == good
    for value in bad:
        with pytest.raises(BadFileError, match=r"^here"):
            check(value, "here")


def test_keys_that_miss_or_are_unknown_are_named() -> None:
    plain.expect_keys({"a": 1, "b": 2}, {"a", "b"}, "here")
    with pytest.raises(BadFileError, match="missing or unknown b, c"):
        plain.expect_keys({"a": 1, "b": 2}, {"a", "c"}, "here")
