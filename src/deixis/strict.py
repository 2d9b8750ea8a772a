"""Plain data into frozen dataclasses, strictly: an unknown key or a wrong value is an error that says where.

Recipes and the options of models and objectives come through here, so a misspelt key never passes unnoticed: the
message names the nearest right one.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from deixis.errors import BadRecipeError

T = TypeVar("T")


def unknown_key(key: object, known: Iterable[str], where: str, what: str = "key") -> BadRecipeError:
    """Return the error for ``key``, with the nearest right name among ``known``."""
    names = sorted(known)
    nearest = difflib.get_close_matches(str(key), names, n=1, cutoff=0.5)
    hint = f"did you mean '{nearest[0]}'?" if nearest else f"known: {', '.join(names) or 'none'}"
    return BadRecipeError(f"unknown {what} '{key}' in {where}: {hint}")


def to_dataclass(kind: type[T], data: object, where: str, also: Iterable[str] = ()) -> T:
    """Build dataclass ``kind`` from a mapping; ``where`` is its place and ``also`` further keys, for messages."""
    if not isinstance(data, Mapping):
        raise BadRecipeError(f"{where} should be a mapping, got {_shown(data)}")
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    for key in data:
        if key not in fields:
            raise unknown_key(key, (*fields, *also), where)
    values = {key: to_type(hints[key], value, f"{where}.{key}") for key, value in data.items()}
    for name, field in fields.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in values:
            raise BadRecipeError(f"{where} lacks '{name}'")
    try:
        return kind(**values)
    except ValueError as error:  # what the dataclass itself checks
        raise BadRecipeError(f"{where}: {error}") from error


def to_type(hint: Any, value: object, where: str) -> Any:
    """Return ``value`` as the annotated type ``hint``, or raise BadRecipeError naming ``where``."""
    if hint is Any or hint is object:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _to_union(hint, arguments, value, where)
    if origin is Literal:
        if value not in arguments or type(value) not in {type(option) for option in arguments}:
            if isinstance(value, str):
                raise unknown_key(value, [str(option) for option in arguments], where, "value")
            raise BadRecipeError(f"{where} should be one of {', '.join(map(str, arguments))}, got {_shown(value)}")
        return value
    if origin is tuple or origin is list:
        return _to_sequence(origin, arguments, value, where)
    if origin in (dict, Mapping) or hint in (dict, Mapping):
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise BadRecipeError(f"{where} should be a mapping, got {_shown(value)}")
        entry = arguments[1] if arguments else Any
        return {key: to_type(entry, item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        read = getattr(hint, "read", None)  # a class with its own way of reading a mapping
        return read(value, where) if read is not None else to_dataclass(hint, value, where)
    return _to_scalar(hint, value, where)


def _to_union(hint: Any, arguments: tuple[Any, ...], value: object, where: str) -> Any:
    if value is None and type(None) in arguments:
        return None
    options = [option for option in arguments if option is not type(None)]
    errors: list[BadRecipeError] = []
    for option in options:
        try:
            return to_type(option, value, where)
        except BadRecipeError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise BadRecipeError(f"{where} should be {_named(hint)}, got {_shown(value)}")


def _to_sequence(origin: Any, arguments: tuple[Any, ...], value: object, where: str) -> Any:
    if not isinstance(value, list | tuple):
        raise BadRecipeError(f"{where} should be a list, got {_shown(value)}")
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            raise BadRecipeError(f"{where} should have {len(arguments)} entries, got {_shown(value)}")
        return tuple(
            to_type(hint, item, f"{where}.{at}") for at, (hint, item) in enumerate(zip(arguments, value, strict=True))
        )
    entry = arguments[0] if arguments else Any
    return origin(to_type(entry, item, f"{where}.{at}") for at, item in enumerate(value))


def _to_scalar(hint: Any, value: object, where: str) -> Any:
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise BadRecipeError(f"{where} should be a finite number, got {_shown(value)}")
        return float(value)
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if hint in (bool, str, type(None)) and type(value) is hint:
        return value
    if isinstance(hint, type) and hint not in (int, float, bool, str) and isinstance(value, hint):
        return value
    raise BadRecipeError(f"{where} should be {_named(hint)}, got {_shown(value)}")


def _named(hint: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "nothing"}
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_named(option) for option in get_args(hint))
    return names.get(hint, getattr(hint, "__name__", str(hint)))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def to_plain(value: Any) -> Any:
    """Return dataclasses, tuples and mappings as what JSON and YAML hold; the inverse of :func:`to_dataclass`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        dump = getattr(value, "plain", None)
        if dump is not None:
            return to_plain(dump())
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value
