"""Python's regular expressions in JavaScript's words, so that a pattern is written once and cuts alike in both.

The result wants JavaScript's flag ``u`` and no other: letters that match in both cases say so themselves.
"""

from __future__ import annotations

import re
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_WORD = r"\p{L}\p{N}_"
_SPACE = r"\s\x1c-\x1f\x85"
_CLASSES = {"WORD": _WORD, "DIGIT": r"\p{Nd}", "SPACE": _SPACE}
"""What stands between square brackets; classes are not nested, which needs newer browsers and fails in some of them."""
_BOUNDARY = f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"


def in_javascript(pattern: re.Pattern[str]) -> str:
    """Return the source of an equal pattern; groups capture nothing. Raises ValueError for what it cannot say."""
    return _sequence(parser.parse(pattern.pattern, pattern.flags), bool(pattern.flags & re.IGNORECASE))


def _sequence(parsed: Any, either: bool) -> str:
    """Write what stands in a row; ``either`` lets letters match in both cases."""
    return "".join(_part(str(kind), what, either) for kind, what in parsed)


def _part(kind: str, what: Any, either: bool) -> str:
    match kind:
        case "LITERAL":
            return f"[{_letters(what, what, either)}]" if either and chr(what).isalpha() else _letter(what)
        case "IN":
            return _set(what, either)
        case "BRANCH":
            return f"(?:{'|'.join(_sequence(way, either) for way in what[1])})"
        case "SUBPATTERN":
            _, added, removed, inside = what
            return f"(?:{_sequence(inside, (either or bool(added & re.I)) and not removed & re.I)})"
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, inside = what
            times = f"{{{least},{'' if most == parser.MAXREPEAT else most}}}"
            return f"(?:{_sequence(inside, either)}){times}{'?' if kind == 'MIN_REPEAT' else ''}"
        case "ASSERT" | "ASSERT_NOT":
            way, inside = what
            return f"(?{'<' if way < 0 else ''}{'=' if kind == 'ASSERT' else '!'}{_sequence(inside, either)})"
        case "AT" if str(what) == "AT_BOUNDARY":
            return _BOUNDARY
        case _:
            raise ValueError(f"{kind} {what} of a regular expression is not known in JavaScript")


def _set(items: Any, either: bool) -> str:
    found, negated, others = "", False, []
    for kind, what in items:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found += _letters(what, what, either)
            case "RANGE":
                first, last = what
                found += _letters(first, last, either)
            case "CATEGORY":
                name = str(what).removeprefix("CATEGORY_")
                if name.startswith("NOT_"):
                    others.append(_CLASSES[name.removeprefix("NOT_")])
                else:
                    found += _CLASSES[name]
            case other:
                raise ValueError(f"{other} in a set of characters is not known in JavaScript")
    if not others:
        return f"[{'^' if negated else ''}{found}]"
    if len(others) == 1 and negated:  # none of these, and nothing outside the class: a letter that is no digit
        return f"(?:(?![{found}])[{others[0]}])" if found else f"[{others[0]}]"
    if len(others) == 1 and not found:
        return f"[^{others[0]}]"
    raise ValueError(f"the set {items} is not known in JavaScript")


def _letters(first: int, last: int, either: bool) -> str:
    """Write a range of characters; English letters in both cases where ``either`` is asked for."""
    span = f"{_letter(first)}-{_letter(last)}" if first < last else _letter(first)
    ends = chr(first) + chr(last)
    other = ends.swapcase()
    return (
        span + _letters(ord(other[0]), ord(other[1]), False) if either and ends.isascii() and ends.isalpha() else span
    )


def _letter(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\u{{{code:x}}}"
