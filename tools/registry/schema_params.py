"""The parameters of a tool that another system describes by a JSON Schema: our names beside the system's own.

Only the names are read when the tool is defined, because a server may have a thousand tools; parameters,
types and the check of a call are built at first use.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, Final, overload

from quoth.tools.errors import DefinitionError, InvalidCallError, ToolError
from quoth.tools.lisp.forms import kebab
from quoth.tools.lisp.printer import print_value
from quoth.tools.registry.json_type import nodes, values
from quoth.tools.registry.parameters import REQUIRED, RESERVED, Param, checked_default, is_wire
from quoth.tools.registry.plain_schema import RootProperties, Schema, plain_type, root_names, takes_null
from quoth.tools.registry.whole_schema import GivenSchema, SchemaFault, WholeSchema
from quoth.tools.text import short

MAX_PARAMS: Final = 500


class SchemaParams(Sequence[Param]):
    """The parameters of a JSON Schema. Raises DefinitionError for a schema out of bounds, and for two
    parameters with one name."""

    def __init__(self, schema: GivenSchema) -> None:
        self.whole = WholeSchema(schema)
        self.hides_nothing = callable(schema)  # its caller knows that no parameter is secret
        if not callable(schema):
            _ = self.wires

    @cached_property
    def wires(self) -> dict[str, str]:
        """The system's names by ours."""
        return own_names(root_names(self.whole.given))

    @cached_property
    def _shown(self) -> tuple[dict[str, Schema], frozenset[str]]:
        """The plain schema of each parameter by the system's name, and the names of required ones."""
        root = RootProperties(self.whole.given)
        return root.plain(), root.required

    @cached_property
    def _made(self) -> tuple[Param, ...]:
        plain, required = self._shown
        return tuple(_param(own, wire, plain[wire], wire in required) for own, wire in self.wires.items())

    def __len__(self) -> int:
        return len(self.wires)

    def __iter__(self) -> Iterator[Param]:
        return iter(self._made)

    @overload
    def __getitem__(self, index: int) -> Param: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Param, ...]: ...
    def __getitem__(self, index: int | slice) -> Param | tuple[Param, ...]:
        return self._made[index]

    @cached_property
    def schema(self) -> Schema:
        """The schema that models are shown: by the system's names, inline, in plain words."""
        plain, needed = self._shown
        required = [wire for wire in self.wires.values() if wire in needed]
        made = {"additionalProperties": False, "properties": plain}
        return {**made, **({"required": required} if required else {}), "type": "object"}

    def given(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """The bound arguments, without an optional None that cannot be null: it omits the argument."""
        plain, required = self._shown
        return {
            name: value
            for name, value in bound.items()
            if value is not None
            or (wire := self.wires.get(name)) is None
            or wire in required
            or takes_null(plain[wire])
        }

    def require(self, tool: str, args: Mapping[str, Any]) -> None:
        """Raise InvalidCallError unless the whole schema accepts the arguments of a call."""
        try:
            faults = self.whole.faults(self.sent(args))
        except ToolError as error:
            why = str(error)
            raise InvalidCallError(f"{tool} cannot be called, because of its JSON Schema: {why}.") from None
        if faults:
            raise InvalidCallError(f"{tool}: {'; '.join(map(self._words, faults))}.")

    def sent(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by the names that the system gives them."""
        return {self.wires[name]: value for name, value in args.items()}

    def _words(self, fault: SchemaFault) -> str:
        """A fault of the arguments as a clause; of a secret one without its keys."""
        own = next((param for param in self if fault.path and param.shown == fault.path[0]), None)
        if own is None:
            place = "".join(f"[{short(print_value(part), 40)}]" for part in fault.path)
            return f"{place} {fault.text}" if place else f"the arguments {fault.text}"
        keys = fault.path[1:] if not own.secret else ()
        return f":{own.name}{''.join(f'[{short(print_value(part), 40)}]' for part in keys)} {fault.text}"


def _param(own: str, wire: str, plain: Schema, required: bool) -> Param:
    """The parameter of a plain schema. A default that is not of the type is not shown."""
    keywords = {word: value for word, value in plain.items() if word not in ("description", "default")}
    param = Param(
        own,
        doc=" ".join(plain.get("description", "").split()),  # a line of a text tool list
        default=REQUIRED if required else None,
        secret=any(node.get("writeOnly") or node.get("format") == "password" for node in nodes(plain)),
        wire="" if wire == own else wire,
        **_typed(keywords),
    )
    if required or plain.get("default") is None:
        return param
    param = replace(param, default=plain["default"])
    try:
        return replace(param, default=checked_default(own, param))
    except DefinitionError:
        return replace(param, default=None)


def _typed(plain: Schema) -> dict[str, Any]:
    """The type of a plain schema, simple where it is simple, with its choices and bounds."""
    kind, words = plain.get("type", ""), plain.keys()
    if not words:
        return {"type": Any}
    if words <= {"type", "enum", "const"} and kind == "string" and (choices := values(plain)):
        return {"type": str, "choices": tuple(choices)}  # of numbers, 1 would be True
    if words <= {"type", "minimum", "maximum"} and kind == "integer":
        return {"type": int, "min": plain.get("minimum"), "max": plain.get("maximum")}
    if words == {"type"} and kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    items = plain.get("items")
    if words == {"type", "items"} and items and items.keys() == {"type"} and items["type"] in _LISTS:
        return {"type": _LISTS[items["type"]]}
    return {"type": plain_type(plain)}


_LISTS = {"string": list[str], "integer": list[int], "boolean": list[bool]}
_SIMPLE = {"string": str, "boolean": bool, "array": list, "object": dict}


# Names


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_APART = re.compile(r"[^a-z0-9]+")


def own_name(wire: str) -> str:
    """Our spelling of a name of another system: ``maxResults`` and ``max.results`` are ``max-results``; empty
    for a name without Latin letters or digits."""
    return _APART.sub("-", _HUMP.sub("-", wire).lower()).strip("-")


@lru_cache(4096)
def _usable_name(wire: str) -> str:
    if not is_wire(wire):
        raise DefinitionError(
            f"the name of the parameter {print_value(wire)} cannot be written or is too long."
        )
    name = own_name(wire)
    name = f"arg-{name}" if name[:1].isdigit() else name
    return f"{name}-" if name in RESERVED else name


def own_names(wires: Collection[str]) -> dict[str, str]:
    """The names of parameters by our spelling, in order. A reserved one ends in a hyphen, like ``from_`` in
    Python; one without a first letter begins with ``arg-``. Raises DefinitionError for two with one spelling,
    and for a name that cannot be shown."""
    found: dict[str, str] = {}
    if len(wires) > MAX_PARAMS:
        raise DefinitionError(f"its JSON Schema has more than {MAX_PARAMS} properties.")
    taken: dict[str, str] = {}
    for place, wire in enumerate(wires, 1):
        name = _usable_name(wire) or f"arg-{place}"
        for spelling in {name, kebab(wire)}:
            if (other := taken.setdefault(spelling, wire)) != wire:
                both = f"{print_value(other)} and {print_value(wire)}"
                raise DefinitionError(f"the parameters {both} have the same name in a call, :{spelling}.")
        found[name] = wire
    return found
