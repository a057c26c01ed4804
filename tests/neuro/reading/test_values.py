"""Values of a call in another type than declared are read where one reading is left; the old one is told."""

from __future__ import annotations

import re
from typing import Any

import pytest
from words import tool

from quoth.neuro.reading.json_calls import fitted
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.json_type import json_type
from quoth.tools.registry.param_types import WorkspacePath

OPTIONAL = {"default": None}


def fit(value: Any, hint: Any, **more: Any) -> Any:
    """The value of one argument of this type as it is read."""
    one = tool("probe", params={"a": {"type": hint, **more}})
    form, repairs = fitted(CallForm("probe", {"a": value}), one)
    assert bool(repairs) == (form.args["a"] is not value)
    return form.args["a"]


NESTED = json_type({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]})

READ: list[tuple[Any, Any, Any]] = [
    ("5", int, 5),
    ("-5", int, -5),
    ("0", int, 0),
    (5.0, int, 5),
    (-5.0, int, -5),
    ("5", float, 5),
    ("5.5", float, 5.5),
    ("true", bool, True),
    ("False", bool, False),
    ("5", int | bool, 5),
    ("true", int | bool, True),
    ("5", int | None, 5),
    ("null", int | None, None),
    ("5", int | float, 5),
    ('["a", "b"]', list[str], ["a", "b"]),
    ('["a"]', list[WorkspacePath], ["a"]),
    ("[1, 2.0]", list[int], [1, 2]),
    (["1", "2"], list[int], [1, 2]),
    ('[1, "x"]', list, [1, "x"]),
    ('{"a": "1"}', dict[str, int], {"a": 1}),
    ({"a": "1"}, dict[str, int], {"a": 1}),
    ('{"a": [1]}', dict, {"a": [1]}),
    ('{"x": 1}', NESTED, {"x": 1}),
    ("5", json_type({"type": "integer", "maximum": 5}), 5),
    (5.0, json_type({"type": "integer"}), 5),
    ("5.5", json_type({"type": "number"}), 5.5),
    ("true", json_type({"type": "boolean"}), True),
    ("[1]", json_type({"type": "array", "items": {"type": "integer"}}), [1]),
]


@pytest.mark.parametrize(("given", "hint", "meant"), READ)
def test_one_reading_is_taken(given: Any, hint: Any, meant: Any) -> None:
    found = fit(given, hint)
    assert (found, type(found)) == (meant, type(meant))


AS_IT_IS: list[tuple[Any, Any]] = [
    ("007", int),
    ("+5", int),
    ("-0", int),
    (" 5", int),
    ("1e3", int),
    ("1e3", float),
    ("5.0", int),
    ("5.50", float),
    ("1_000", int),
    ("٥", int),
    ("9" * 400, int),
    (5.5, int),
    (-0.0, int),
    (float("nan"), int),
    (1e300, int),
    (True, int),
    (1, bool),
    ("yes", bool),
    ("TRUE", bool),
    ("1", bool),
    (5, str),
    (True, str),
    ("null", int),
    ("5", int | str),
    ('["a"]', list[str] | str),
    ('["a"]', str),
    ("a", list[str]),
    ("['a']", list[str]),
    ('["a", 1]', list[str]),
    ('["a"', list[str]),
    ('{"a": 1, "a": 2}', dict),
    ("[" * 100_000, list),
    ("5", Any),
    ("5", int | Any),
    ("[1]", Any),
    ('{"x": "1"}', NESTED),
    ("5", NESTED),
    ("5", json_type({"type": "integer", "maximum": 4})),
    ("5", json_type({"type": "string"})),
    ("5", json_type({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
    (5.5, json_type({"type": "number"})),
    (Code("(f)"), int),
]


@pytest.mark.parametrize(("given", "hint"), AS_IT_IS)
def test_where_there_is_no_reading_or_another_one_the_value_stays(given: Any, hint: Any) -> None:
    assert fit(given, hint) is given


def test_choices_and_bounds_are_part_of_the_type() -> None:
    assert fit("2", int, choices=[1, 2]) == 2
    assert fit("3", int, choices=[1, 2]) == "3"
    assert fit("3", int, min=1, max=3) == 3
    assert fit("4", int, min=1, max=3) == "4"
    assert [fit(given, int, min=1) for given in ("0", "1")] == ["0", 1]
    assert [fit(given, int | None, min=2) for given in ("null", "1", "2")] == [None, "1", 2]


def test_a_secret_is_never_changed() -> None:
    assert fit("1234", int, secret=True) == "1234"


@pytest.mark.parametrize("name", ["to", "account-number", "id"])
def test_a_destination_is_never_changed(name: str) -> None:
    one = tool("send", params={name: {"type": int}, "limit": {"type": int}}, effects=["messages"])
    form, repairs = fitted(CallForm("send", {name: "5", "limit": "5"}), one)
    assert (form.args, repairs) == ({name: "5", "limit": 5}, (':limit "5" was read as 5.',))


def test_values_without_names_are_read_in_the_order_of_the_parameters() -> None:
    params = {"a": {"type": str}, "b": {"type": int}, "c": {"type": bool, "hidden": True, "default": False}}
    one = tool("probe", params=params)
    form, repairs = fitted(CallForm("probe", {}, ("5", "5", "true")), one)
    assert (form.positional, repairs) == (("5", 5, "true"), (':b "5" was read as 5.',))
    form, _ = fitted(CallForm("probe", {"a": "x"}, ("5",)), one)
    assert form.positional == (5,)


def test_a_call_that_is_right_stays_the_same_object() -> None:
    one = tool("probe", params={"a": {"type": int}})
    call = CallForm("probe", {"a": 5, "other": "5"})
    assert fitted(call, one) == (call, ())
    assert fitted(call, one)[0] is call


def test_a_long_value_is_told_in_short() -> None:
    one = tool("probe", params={"a": {"type": list[int]}})
    _, (repair,) = fitted(CallForm("probe", {"a": "[" + "1," * 500 + "1]"}), one)
    assert len(repair) < 200
    assert re.match(r':a "\[1,1,.*….* was read as \[1 1 .*…\.', repair)
