"""What a tool declares to return: shown to models and people, and checked when the body has ended.

Knows types and values; it must not know calls or doors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import DefinitionError, ToolError
from quoth.tools.lisp.printer import print_value
from quoth.tools.registry.param_types import portable, type_data, type_name, type_of
from quoth.tools.text import a_kind, short

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_ABSENT: Any = object()
UNDECLARED = (Any, object, None, type(None))  # types that say nothing


@dataclass(frozen=True)
class Returns:
    """A declared type of the value, and words for it. ``type`` is one that any machine can show; ``own`` is
    the type as its author wrote it, by which the value is checked where the body runs."""

    type: Any
    doc: str = ""
    own: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return type_name(self.type) + (f" ({self.doc})" if self.doc else "")

    def to_data(self) -> dict[str, Any]:
        """The declaration as JSON data, of which ``returns_of_data`` makes it again."""
        return {"type": type_data(self.type), **({"doc": self.doc} if self.doc else {})}

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter

        return TypeAdapter(self.own)

    def check(self, tool: str, value: Any) -> None:
        """Raise ToolError if a value is not of the type."""
        if self.own is None or (isinstance(self.own, type) and type(value) is self.own):
            return
        from pydantic import ValidationError

        try:
            self._adapter.validate_python(value, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            missing = first["type"] == "missing"
            places = [*_data_places(value, first["loc"]), *(first["loc"][-1:] if missing else ())]
            declared = short(type_name(self.type), 300)
            if not places:
                raise ToolError(f"{tool} returned {a_kind(value)}, and it declares {declared}.") from None
            place = "".join(f"[{short(print_value(part), 40)}]" for part in places)
            unknown = "unknown" if first["type"] == "extra_forbidden" else a_kind(first["input"])
            wrong = f"{place} is {'missing' if missing else unknown}"
            raise ToolError(
                f"{tool} returned a value in which {wrong}, and it declares {declared}."
            ) from None


def declared_returns(tool: str, hint: Any, doc: str = "") -> Returns | None:
    """The declaration that an annotation makes; None for one that says nothing. Raises DefinitionError."""
    if hint in UNDECLARED:
        return None
    try:
        kind = portable(hint, mode="serialization")
    except DefinitionError as error:
        raise DefinitionError(f"{tool}, what it returns: {error}") from None
    return Returns(kind, doc, own=hint)


def returns_of_data(data: Any) -> Returns:
    """The declaration that an entry holds, which may be anybody's. Raises DefinitionError."""
    if not isinstance(data, dict) or "type" not in data or not isinstance(data.get("doc", ""), str):
        raise DefinitionError("returns is a dictionary with a type.")
    return Returns(type_of(data["type"]), data.get("doc", ""))


def _data_places(value: Any, location: Sequence[int | str]) -> list[int | str]:
    """The places in the value that a location names; pydantic names the branches of unions too."""
    places: list[int | str] = []
    for part in location:
        if isinstance(value, dict):
            value = value.get(part, _ABSENT)
        elif isinstance(value, (list, tuple)) and isinstance(part, int):
            value = value[part] if part < len(value) else _ABSENT
        else:
            value = getattr(value, str(part), _ABSENT)
        if value is _ABSENT:
            break
        places.append(part)
    return places
