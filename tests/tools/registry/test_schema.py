"""The schema of parameters is the one that pydantic makes of a model with such fields, to the order of words,
and the arguments that it takes are those that the model takes."""

from __future__ import annotations

import enum
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args

import pytest
from pydantic import BaseModel, Field, SecretStr, ValidationError, create_model
from words import complaint, form, gateway, tool

from quoth import StrictModel
from quoth.tools.errors import DefinitionError, InvalidCallError
from quoth.tools.lisp.printer import Code
from quoth.tools.loading import load_tools
from quoth.tools.registry import tool as tools
from quoth.tools.registry.arguments import check_of, parameters_schema
from quoth.tools.registry.json_type import inline
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.parameters import Param, make_param


class Colour(enum.Enum):
    """What it looks like."""

    red = "r"
    blue = "b"


class Fruit(BaseModel):
    """A fruit."""

    title: str = Field("pear", description="Its name")
    colour: Colour = Colour.red
    like: list[int] | None = None


TYPES: list[Any] = [
    str, int, float, bool, list, dict, Any, Code, WorkspacePath, list[str], list[Any], dict[str, int],
    dict[str, Any], str | None, int | None, str | int | None, str | WorkspacePath, list[str | None],
    Literal["a", "b"], Literal["a"], Literal[1], bool | int, str | Any, dict[str, list[int]],
    WorkspacePath | None, date, Decimal, Decimal | None, Literal["a", 1, None], dict[date, int],
    Fruit, list[Fruit], Fruit | None, Colour, SecretStr, Annotated[int, Field(gt=1)],
]  # fmt: skip
SPECS: list[dict[str, Any]] = [
    {}, {"doc": "What it is"}, {"default": None}, {"default": None, "doc": "d"}, {"min": 1},
    {"min": 1.5, "max": 5}, {"default": None, "min": 1}, {"default": 3, "max": 4}, {"default": "x"},
    {"default": []}, {"default": True}, {"choices": ["a", "b"]}, {"choices": [2]},
    {"choices": ["a"], "default": None}, {"choices": [True, False]},
]  # fmt: skip


def params() -> list[Param]:
    found = []
    for hint, spec in itertools.product(TYPES, SPECS):
        try:
            found.append(make_param("probe", "it", {"type": hint, **spec}))
        except DefinitionError:
            continue
    return found


def bare(hint: Any) -> Any:
    """The type as pydantic knows it: programs and paths are texts."""
    if hint in (Code, WorkspacePath):
        return str
    inner = tuple(map(bare, get_args(hint)))
    return Union[inner] if str | WorkspacePath == hint or get_args(hint)[:1] == (WorkspacePath,) else hint  # noqa: UP007


def model_of(params: Iterable[Param]) -> type[BaseModel]:
    """The strict model of pydantic with a field for each parameter."""
    fields: dict[str, Any] = {}
    for param in params:
        kind: Any = Literal[param.choices] if param.choices else bare(param.type)
        told = {"alias": param.name, "description": param.doc or None, "ge": param.min, "le": param.max}
        default = ... if param.required else param.default
        told = {key: value for key, value in told.items() if value is not None}
        fields[f"arg_{param.name}"] = (kind | None if default is None else kind, Field(default, **told))
    return create_model("Probe", __base__=StrictModel, **fields)


def schema_of_model(params: Iterable[Param]) -> dict[str, Any]:
    return inline(model_of(params).model_json_schema(by_alias=True))


def test_it_is_the_schema_of_the_model() -> None:
    made = params()
    assert len(made) > 150
    for param in made:
        assert json.dumps(parameters_schema([param])) == json.dumps(schema_of_model([param]))


def test_it_is_that_of_the_tools_that_ship() -> None:
    for known in load_tools([], knowledge=True):
        assert parameters_schema(known.params) == {"properties": {}, **schema_of_model(known.params)}


def test_the_bounds_of_a_union_are_those_of_its_numbers() -> None:
    made = tool(params={"it": {"type": int | float | None, "min": 1}})
    assert made.schema["properties"]["it"]["anyOf"] == [
        {"type": "integer", "minimum": 1},
        {"type": "number", "minimum": 1},
        {"type": "null"},
    ]
    assert complaint(InvalidCallError, lambda: made.checked(form("(probe 0)")))


def test_a_schema_that_somebody_changes_is_nobody_elses() -> None:
    one, other = (tool(params={"it": {"type": list[str]}}) for _ in "ab")
    one.schema["properties"]["it"]["items"]["type"] = "integer"
    assert other.schema["properties"]["it"]["items"] == {"type": "string"}


def test_a_call_compiles_the_check_of_its_own_tool_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def check(params: Sequence[Param]) -> Any:
        compiled.extend(param.name for param in params)
        return check_of(params)

    monkeypatch.setattr(tools, "check_of", check)
    here = gateway(*(tool(f"tool-{one}", params={f"it-{one}": {"default": "y"}}) for one in "abcdef"))
    assert here.pass_through('(tool-c :it-c "x")').ok
    assert here.rows[0]["schema_hash"] == here.door.table.schema_hash
    assert compiled == ["it-c"]


VALUES: list[Any] = [
    None, "a", "", "b", 2, 0, 1.5, 7, True, False, [], ["a", 1], ["a"], [None], {}, {"a": 1}, {"1": [2]},
    float("nan"), "\ud800", {"title": "pear", "x": 1}, [{"colour": "r"}],
]  # fmt: skip


def test_arguments_are_checked_as_by_the_model() -> None:
    for param in params():
        model, check = model_of([param]), check_of([param])
        for data in ({}, {"other": 1, "it": "a"}, *({"it": value} for value in VALUES)):
            wanted = _outcome(lambda data: vars(model.model_validate(data)), data)  # noqa: B023
            assert _outcome(check, data) == wanted, (param, data)


def _outcome(check: Callable[[Any], Any], data: Any) -> str:
    """What it gives with its types, or that it is refused."""
    try:
        return repr([(type(value), value) for value in check(data).values()])
    except ValidationError:
        return "refused"


def test_a_default_that_a_body_changes_is_as_it_was_at_the_next_call() -> None:
    probe = tool(params={"it": {"type": list, "default": [1]}})
    for _ in "ab":
        _, args = probe.checked(form("(probe)"))
        assert args["it"] == [1]
        args["it"].append(2)
