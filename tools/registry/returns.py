"""The declared return type of a tool: shown to models and people, and checked after the body has ended."""

from __future__ import annotations

import builtins
import typing
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import DefinitionError, ToolError, did_you_mean
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import kebab
from quoth.tools.lisp.printer import print_value
from quoth.tools.registry.arguments import places_in
from quoth.tools.registry.json_type import in_short
from quoth.tools.registry.param_types import PLAIN, is_json, portable, type_data, type_name, type_of
from quoth.tools.registry.parameters import as_word
from quoth.tools.registry.whole_schema import WholeSchema
from quoth.tools.text import a_kind, short

if TYPE_CHECKING:
    from pydantic import TypeAdapter


UNDECLARED = (Any, object, None, type(None))  # types without information


@dataclass(frozen=True)
class Returns:
    """A declared type of the value, and its description. ``declared`` is a portable type or the schema of
    another system; ``own`` is the author's type, by which the value is checked on the machine that runs the
    body."""

    declared: Any
    doc: str = ""
    own: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def type(self) -> Any:
        """The type, which can be shown on any machine."""
        return self.declared.type if isinstance(self.declared, WholeSchema) else self.declared

    def __str__(self) -> str:
        return type_name(self.type) + (f" ({self.doc})" if self.doc else "")

    def to_data(self) -> dict[str, Any]:
        """The declaration as JSON data, for ``returns_of_data``."""
        return {"type": type_data(self.type), **({"doc": self.doc} if self.doc else {})}

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter

        return TypeAdapter(self.own)

    def check(self, tool: str, value: Any) -> None:
        """Raise ToolError if a value is not of the type."""
        if isinstance(self.declared, WholeSchema):
            return _require_whole(tool, self.declared, value)
        if self.own is None or (isinstance(self.own, builtins.type) and builtins.type(value) is self.own):
            return None
        from pydantic import ValidationError

        try:
            self._adapter.validate_python(value, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            missing = first["type"] == "missing"
            places = places_in(value, first["loc"], missing=missing)
            declared = short(type_name(self.type), 300)
            if not places:
                raise ToolError(f"{tool} returned {a_kind(value)}, and it declares {declared}.") from None
            place = "".join(f"[{short(print_value(part), 40)}]" for part in places)
            unknown = "unknown" if first["type"] == "extra_forbidden" else a_kind(first["input"])
            wrong = f"{place} is {'missing' if missing else unknown}"
            raise ToolError(
                f"{tool} returned a value in which {wrong}, and it declares {declared}."
            ) from None


def _require_whole(tool: str, schema: WholeSchema, value: Any) -> None:
    try:
        faults = schema.faults(value)
    except ToolError as error:
        raise ToolError(f"The value of {tool} cannot be checked by its JSON Schema: {error}.") from None
    if faults:
        first = faults[0]
        place = "".join(f"[{short(print_value(part), 40)}]" for part in first.path) or "the value"
        raise ToolError(f"{tool} returned a value that its JSON Schema refuses: {place} {first.text}.")


def declared_returns(tool: str, hint: Any, doc: str = "") -> Returns | None:
    """The declaration in an annotation; None for one without information. Raises DefinitionError."""
    if hint in UNDECLARED:
        return None
    try:
        kind = portable(hint, mode="serialization")
    except DefinitionError as error:
        raise DefinitionError(f"{tool}, what it returns: {error}") from None
    return Returns(kind, doc, own=hint)


def returns_of_data(data: Any) -> Returns:
    """The declaration in an entry, which is untrusted. Raises DefinitionError."""
    if not isinstance(data, dict) or "type" not in data or not isinstance(data.get("doc", ""), str):
        raise DefinitionError("returns is a dictionary with a type.")
    return Returns(type_of(data["type"]), data.get("doc", ""))


# The parts of a tool's result that are free text, as its ``:free-text`` declares them. tools/origin uses
# them.


FreeText = tuple[str, ...] | bool
HOW = ":free-text is True for all of the result, or a list of its fields, such as [body subject]"


def declared_free_text(tool: str, given: Any, returns: Returns | None) -> FreeText | None:
    """The checked declaration: True, or the names of fields (empty: no free text). Raises DefinitionError,
    also for a field that the declared return type does not have."""
    if given is None or given is True:
        return given
    if given is False:
        return ()
    if not isinstance(given, (list, tuple)):
        raise DefinitionError(f"{tool}: {HOW}; not {in_short(given)}.")
    names = tuple(map(as_word, given))
    known = _told(returns.type) if returns else None
    folded = None if known is None else {kebab(name) for name in known}
    for name, as_given in zip(names, given, strict=True):
        if not (isinstance(as_given, str) or hasattr(as_given, "name")) or not name.strip():
            raise DefinitionError(f"{tool}: {HOW}; {in_short(as_given)} names no field.")
        if names.count(name) > 1:
            raise DefinitionError(f"{tool}: :free-text names the field {name} twice.")
        if known is not None and folded is not None and kebab(name) not in folded:
            hint = did_you_mean(name, sorted(known), "It has")
            raise DefinitionError(
                f"{tool}: :free-text names {name}, which is not a field of its result.{hint}"
            )
    return names


def free_text_words(declared: FreeText | None) -> str:
    """The declaration in words, for a person; empty if there is none."""
    if declared is None or isinstance(declared, bool):
        return "all of its result" if declared else ""
    return ", ".join(declared) or "nothing"


def _told(hint: Any) -> set[str] | None:
    """The names of all fields in values of a type; None if they may have undeclared fields."""
    if is_json(hint):
        return _fields(hint.schema)
    if hint in PLAIN:
        return set() if hint in (str, int, float, bool, type(None), None) else None
    args = typing.get_args(hint)
    if typing.get_origin(hint) is dict:
        return None
    found: set[str] = set()
    for arg in args if typing.get_origin(hint) is not typing.Literal else ():
        inner = _told(arg)
        if inner is None:
            return None
        found |= inner
    return found


def _fields(node: Any) -> set[str] | None:
    if not isinstance(node, Mapping):
        return None
    if "enum" in node or "const" in node:
        return set()
    inner: list[Any] = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    found: set[str] = set()
    kind = node.get("type")
    if kind == "object":
        if "properties" not in node or node.get("additionalProperties"):
            return None
        found |= set(node["properties"])
        inner += node["properties"].values()
    elif kind == "array":
        if "prefixItems" not in node and not node.get("items"):
            return None
        inner += [*node.get("prefixItems", ()), *([node["items"]] if node.get("items") else [])]
    elif kind is None and not inner:
        return None
    for one in inner:
        more = _fields(one)
        if more is None:
            return None
        found |= more
    return found
