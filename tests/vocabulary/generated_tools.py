"""Tools made up by chance, and calls of them that fit, or nearly fit, or do not fit at all.

Knows how tools are defined, and nothing of what is done with them. Chance is a ``Random`` that hypothesis
seeds: to draw each part from hypothesis takes twenty times as long.
"""

from __future__ import annotations

import enum
from random import Random
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, create_model
from words import tool

from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.tool import COSTS, EFFECTS, CognitiveTool

NAMES = ["a", "b", "of-it", "json", "x2"]  # few, so that calls hit them
FIELDS = ["a", "b", "c", "Name"]
TEXTS = ["", " ", "a", "A b", 'say "x"', "ü\n", "{a}", "[x] = 1", "\\d", "日本", "🦉", "e\u0301", "\u202e"]
VALUES = [None, True, False, -3, 0, 1, 3, 12, 0.25, 1.5, 4.0, "x", "red", "r", "only", "abc", *TEXTS]


DEFAULTS: dict[Any, list[Any]] = {
    str: TEXTS, int: [0, 1], float: [0.5, 1], bool: [True], list: [["a", 1]], dict: [{"a": None}],
}  # fmt: skip
FIT: dict[str, list[Any]] = {
    "integer": [1, 3, 6], "number": [1, 1.5], "string": ["abc", "ab"], "boolean": [True], "null": [None],
}  # fmt: skip


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


SCALARS: list[Any] = [str, int, float, bool, Any]
BOUNDED: list[Any] = [
    Annotated[str, Field(min_length=2, max_length=3)],
    Annotated[str, Field(pattern=r"^[a-z]+$")],
    Annotated[int, Field(ge=1, lt=9)],
    Annotated[int, Field(multiple_of=3)],
    Annotated[float, Field(gt=0.5, le=2)],
    Annotated[list[int], Field(min_length=1, max_length=2)],
    Literal["x", "y", 3],
    Literal["only"],
    Colour,
    tuple[int, str],
]
PLAIN: list[Any] = [*SCALARS, list, dict, WorkspacePath, Literal["r", "w"], Literal[1, "1", None]]


def either(*kinds: Any) -> Any:
    return Union[kinds]  # noqa: UP007 (a list of any is no operand of |)


def any_of(chance: Random, items: Any) -> list[Any]:
    """Some of the items, each once, or none."""
    return chance.sample(list(items), chance.randint(0, min(4, len(items))))


def a_class(chance: Random, depth: int = 1) -> type[BaseModel]:
    """A class with a few fields, some of them classes."""
    fields: dict[str, Any] = {}
    for name in any_of(chance, FIELDS):
        kind = a_class(chance, depth - 1) if depth and chance.random() < 0.3 else _field(chance)
        default: Any = chance.choice([..., ..., None])
        kind = chance.choice([kind, list[kind], dict[str, kind], either(kind, str), either(kind, None)])
        doc = chance.choice([None, "What it is."])
        fields[name] = (either(kind, None) if default is None else kind, Field(default, description=doc))
    made: type[BaseModel] = create_model(
        chance.choice(["In", "Place"]),
        __config__=ConfigDict(extra=chance.choice(["forbid", "ignore", "allow"])),
        __doc__=chance.choice([None, "A thing."]),
        **fields,
    )
    return made


def _field(chance: Random) -> Any:
    return chance.choice([*SCALARS, *BOUNDED])


def a_type(chance: Random, depth: int = 2) -> Any:
    """The type of a parameter."""
    if depth == 2 and chance.random() < 0.1:
        return Code
    if not depth or chance.random() < 0.4:
        bounded = list[chance.choice(BOUNDED[:6])]  # type: ignore[misc]
        return chance.choice([chance.choice(PLAIN), a_class(chance), bounded])
    inner = a_type(chance, depth - 1)
    if inner is Any:
        return Any
    return chance.choice(
        [list[inner], dict[str, inner], either(inner, None), either(inner, a_type(chance, depth - 1))]
    )


def a_spec(chance: Random) -> dict[str, Any]:
    """The spec of a parameter."""
    kind = a_type(chance)
    spec: dict[str, Any] = {"type": kind, "doc": chance.choice(TEXTS), "secret": chance.random() < 0.2}
    spec["role"] = chance.choice(["", "destination", "content"])
    if kind in (str, int) and chance.random() < 0.5:
        spec["choices"] = chance.sample(TEXTS if kind is str else range(-5, 6), chance.randint(1, 4))
    elif kind in (int, float):
        spec |= {"min": chance.choice([None, -2, 0]), "max": chance.choice([None, 1, 3])}
    if chance.random() < 0.5:
        spec["default"] = chance.choice(spec.get("choices") or DEFAULTS.get(kind, [None]))
        spec["hidden"] = chance.random() < 0.2
    return spec


def a_tool(chance: Random) -> CognitiveTool:
    """A tool named probe with any parameters, options and examples."""
    params = {name: a_spec(chance) for name in any_of(chance, NAMES)}
    needed = [name for name, spec in params.items() if "default" not in spec]
    tag: Any = chance.choice([None, "TAG"])
    if tag and params and len(needed) < 2:
        pattern = chance.choice(["", r"(\w+)", "(a|b)"])
        groups = needed or list(params)[:1]
        tag = {"prefix": "TAG", "pattern": pattern, "groups": groups, "example": "TAG: é", "strip": False}
    given = {name: a_value(chance) for name in {*needed, *any_of(chance, params)}}
    flags = ("gate", "allow_repeat", "no_background", "ends_turn", "shown")
    return tool(
        guard=chance.choice([None, lambda: True]),
        params=params,
        effects=any_of(chance, EFFECTS),
        cost=chance.choice(COSTS),
        cooldown=chance.choice([0, 0.5]),
        daily_limit=chance.choice([0, 3]),
        timeout=chance.choice([30.0, 1]),
        tag=tag,
        examples=chance.choice([[], [CallForm("probe", given)]]),
        source=chance.choice(TEXTS),
        free_text=chance.choice([None, True, False, ["name"]]),
        **{flag: chance.random() < 0.5 for flag in flags},
    )


def a_value(chance: Random, depth: int = 3) -> Any:
    """JSON data that a parameter may take, or may not."""
    kind = chance.random() if depth else 0
    if kind < 0.4:
        return chance.choice(VALUES)
    if kind < 0.6:
        return [a_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    return {name: a_value(chance, depth - 1) for name in any_of(chance, [*FIELDS, "other"])}


def fitting(chance: Random, schema: dict[str, Any]) -> Any:
    """JSON data that the schema takes, as far as it goes, with a slip now and then."""
    if chance.random() < 0.05:
        return a_value(chance)
    if branches := schema.get("anyOf"):
        return fitting(chance, chance.choice(branches))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return chance.choice(values)
    if schema.get("type") == "array":
        inner = schema.get("prefixItems") or [schema.get("items", {})] * chance.randint(0, 2)
        return [fitting(chance, one) for one in inner]
    if schema.get("type") == "object":
        more = schema.get("additionalProperties", False)
        fields = dict(schema.get("properties", {}))
        if isinstance(more, dict):
            fields |= dict.fromkeys(any_of(chance, FIELDS), more)
        return {
            name: fitting(chance, node)
            for name, node in fields.items()
            if name in schema.get("required", fields) or chance.random() < 0.5
        }
    return chance.choice(FIT.get(schema.get("type", ""), VALUES))


def a_call(chance: Random, tool: CognitiveTool) -> CallForm:
    """A call of the tool with any arguments, some of them programs."""
    given = {name: fitting(chance, node) for name, node in tool.schema["properties"].items()}
    for name in any_of(chance, [*NAMES, "of_it", "zzz"]) if chance.random() < 0.2 else []:
        given[name] = a_value(chance)
    for name in list(given):
        if chance.random() < 0.05:
            del given[name]
        elif chance.random() < 0.05:
            given[name] = Code(chance.choice(["(f 1)", "name", "(+ 1 (g :a 2))"]))
    return CallForm("probe", given, tuple(any_of(chance, VALUES)) if chance.random() < 0.1 else ())
