"""A schema made without an input model is the one that pydantic makes of the model, to the order of words."""

from __future__ import annotations

import enum
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr, ValidationError
from words import form, gateway, tool

from quoth.tools.errors import DefinitionError
from quoth.tools.lisp.printer import Code
from quoth.tools.loading import load_tools
from quoth.tools.registry import tool as tools
from quoth.tools.registry.arguments import check_of, plain_schema
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.parameters import Param, build_model, json_schema, make_param


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
    WorkspacePath | None, Fruit, list[Fruit], Fruit | None, Colour, SecretStr, Annotated[int, Field(gt=1)],
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


def test_it_is_the_schema_of_the_model() -> None:
    made = params()
    assert len(made) > 150
    for param in made:
        assert json.dumps(plain_schema([param])) == json.dumps(json_schema(build_model("probe", [param])))


def test_it_is_that_of_the_tools_that_ship() -> None:
    for known in load_tools([], knowledge=True):
        assert json.dumps(plain_schema(known.params)) == json.dumps(json_schema(known.model))


@pytest.mark.parametrize("spec", [{"type": Literal["a", 1]}, {"type": int | float, "default": 1, "min": 1}])
def test_what_pydantic_has_rules_of_its_own_for_is_left_to_it(spec: dict[str, Any]) -> None:
    assert plain_schema([make_param("probe", "it", spec)]) is None
    schema = tool(params={"it": spec}).schema
    assert schema == json_schema(build_model("probe", [make_param("probe", "it", spec)]))


def test_a_schema_that_somebody_changes_is_nobody_elses() -> None:
    one, other = (tool(params={"it": {"type": list[str]}}) for _ in "ab")
    one.schema["properties"]["it"]["items"]["type"] = "integer"
    assert other.schema["properties"]["it"]["items"] == {"type": "string"}


def test_a_call_compiles_the_check_of_its_own_tool_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def check(params: Sequence[Param], model: Any) -> Any:
        compiled.extend(param.name for param in params)
        return check_of(params, lambda: pytest.fail("It needs no model."))

    monkeypatch.setattr(tools, "check_of", check)
    here = gateway(*(tool(f"tool-{one}", params={f"it-{one}": {"default": "y"}}) for one in "abcdef"))
    assert here.pass_through('(tool-c :it-c "x")').ok
    assert here.rows[0]["schema_hash"] == here.door.table.schema_hash
    assert compiled == ["it-c"]


VALUES: list[Any] = [
    None, "a", "", "b", 2, 0, 1.5, 7, True, False, [], ["a", 1], ["a"], [None], {}, {"a": 1}, {1: [2]},
    float("nan"), "\ud800", {"title": "pear", "x": 1}, [{"colour": "r"}],
]  # fmt: skip


def test_arguments_are_checked_as_by_the_model() -> None:
    for param in params():
        model = build_model("probe", [param])
        check = check_of([param], lambda model=model: model)  # type: ignore[misc]
        for data in ({}, {"other": 1, "it": "a"}, *({"it": value} for value in VALUES)):
            wanted = _outcome(lambda data: vars(model.model_validate(data)), data)  # noqa: B023
            assert _outcome(check, data) == wanted


def _outcome(check: Callable[[Any], Any], data: Any) -> str:
    """What it gives with its types, or the errors."""
    try:
        return repr([(name, type(value), value) for name, value in check(data).items()])
    except ValidationError as error:
        return repr(error.errors())


def test_a_default_that_a_body_changes_is_as_it_was_at_the_next_call() -> None:
    probe = tool(params={"it": {"type": list, "default": [1]}})
    for _ in "ab":
        _, args = probe.checked(form("(probe)"))
        assert args["it"] == [1]
        args["it"].append(2)
