"""Something that a recipe names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from deixis.errors import BadRecipeError


@dataclass(frozen=True, slots=True)
class Component:
    """Something named in a recipe and built from the registry: ``kind`` and its own options, flat in the YAML."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, data: object, where: str) -> Self:
        """Read ``{kind: …, option: …}``, or the bare name of a kind."""
        if isinstance(data, str):
            return cls(data)
        if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str):
            raise BadRecipeError(f"{where} should be a mapping with a 'kind', got {data!r}")
        return cls(str(data["kind"]), {key: value for key, value in data.items() if key != "kind"})

    def plain(self) -> dict[str, Any]:
        """Return the flat form."""
        return {"kind": self.kind, **self.options}
