"""Arguments are checked strictly, and every fault of a call is told in one sentence with its name."""

from __future__ import annotations

import json
import warnings
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from sentences import (
    CANNOT_BE_WRITTEN,
    IS_NESTED_DEEPER_THAN,
    IS_NOT_OF_ITS_TYPE,
    IS_ONE_TOO_MANY,
    IS_TRUE_OR_FALSE_NOT,
    IT_IS_CALLED_AS,
)
from words import complaint, gateway, tool

from quoth.tools.call.call import ToolResult
from quoth.tools.errors import DefinitionError, InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code


def call(text: str | CallForm, **params: dict[str, Any]) -> ToolResult:
    """Pass ``text`` to a tool with these parameters whose value is what it was given."""
    names = ", ".join(name.replace("-", "_") for name in params)
    pairs = ", ".join(f"{name!r}: {name.replace('-', '_')}" for name in params)
    body = eval(f"lambda {names}: {{{pairs}}}")
    return gateway(tool(body=body, params=params)).pass_through(text)


ACCEPTED: list[tuple[str, dict[str, Any], Any]] = [
    ("(probe :x 5)", {"type": int}, 5),
    ("(probe 5)", {"type": int}, 5),
    ("(probe :X 5)", {"type": int}, 5),
    ("(probe :x 5)", {"type": float}, 5.0),
    ("(probe :x 5.5)", {"type": float}, 5.5),
    ("(probe :x True)", {"type": bool}, True),
    ("(probe :x nil)", {"type": str | None}, None),
    ("(probe)", {"type": str | None, "default": None}, None),
    ("(probe :x nil)", {"type": int, "default": 7}, 7),
    ("(probe)", {"type": int, "default": 7}, 7),
    ('(probe :x "b")', {"choices": ["a", "b"]}, "b"),
    ("(probe :x :b)", {"choices": ["a", "b"]}, "b"),
    ("(probe :x 1)", {"type": int, "min": 1, "max": 1}, 1),
    ('(probe :x ["a" "b"])', {"type": list[str]}, ["a", "b"]),
    ("(probe :x '(a b))", {"type": list[str]}, ["a", "b"]),
    ('(probe :x (list "a" "b"))', {"type": list[str]}, ["a", "b"]),
    ("(probe :x [])", {"type": list}, []),
    ('(probe :x {"a" 1})', {"type": dict[str, int]}, {"a": 1}),
    ("(probe :x [{:a [1 nil]}])", {"type": Any}, [{"a": [1, None]}]),
    ("(probe :x 3)", {"type": int | str}, 3),
    ('(probe :x "r")', {"type": Literal["r", "w"]}, "r"),
    ("(probe :x (+ 1 2))", {"type": Code}, "(+ 1 2)"),
    ('(probe :x "(+ 1 2)")', {"type": Code}, "(+ 1 2)"),
    ("(probe :x 5)", {"type": Code}, "5"),
    ("(probe :x [1 (f)])", {"type": Code}, "[1 (f)]"),
]


@pytest.mark.parametrize(("text", "spec", "value"), ACCEPTED)
def test_a_fitting_argument_arrives_as_its_type(text: str, spec: dict[str, Any], value: Any) -> None:
    result = call(text, x=spec)
    assert (result.status, result.value) == ("ok", {"x": value}), result.message
    assert type(result.value["x"]) is type(value)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ('(probe :x "5")', {"type": int}, ':x should be int, not "5"'),
    ("(probe :x True)", {"type": int}, ":x should be int, not True"),
    ("(probe :x 1.5)", {"type": int}, ":x should be int, not 1.5"),
    ("(probe :x 1.0)", {"type": int}, ":x should be int, not 1.0"),
    ("(probe :x 5)", {"type": str}, ":x should be str, not 5"),
    ("(probe :x 1)", {"type": bool}, ":x should be bool, not 1"),
    ('(probe :x "true")', {"type": bool}, ':x should be bool, not "true"'),
    ('(probe :x "1.5")', {"type": float}, ':x should be float, not "1.5"'),
    ("(probe :x nil)", {"type": str}, ":x should be str, not None"),
    ("(probe)", {"type": str}, ":x is missing"),
    ("(probe :x {})", {"type": list}, ":x should be list, not {}"),
    ("(probe :x [1])", {"type": dict}, ":x should be dict, not [1]"),
    ('(probe :x ["a" 2])', {"type": list[str]}, ":x[1] should be a valid string, not 2"),
    ('(probe :x "c")', {"choices": ["a", "b"]}, ':x should be "a" | "b", not "c"'),
    ("(probe :x 0)", {"type": int, "min": 1}, ":x should be greater than or equal to 1, not 0"),
    ("(probe :x 9)", {"type": int, "max": 8}, ":x should be less than or equal to 8, not 9"),
    (
        '(probe :x "a" :y 1)',
        {"type": str},
        ":y is unknown (it takes :x)",
    ),
    ('(probe :path "a" :x "b")', {"type": str}, ":path is unknown (it takes :x)"),
    ("(probe :x foo)", {"type": str}, ':x takes plain data, not the expression foo; a text is written "foo"'),
    (
        "(probe :x (+ 1 2))",
        {"type": int},
        ":x takes plain data, not the expression (+ 1 2) (programs go into the eval tool)",
    ),
    (
        "(probe :x [1 [(f)]])",
        {"type": list},
        ":x takes plain data, not the expression (f) (programs go into the eval tool)",
    ),
    (
        '(probe :x f"{(f)}")',
        {"type": str},
        ':x takes plain data, not the expression f"{(f)}"; a text is written "f"{(f)}""',
    ),
]


@pytest.mark.parametrize(("text", "spec", "fault"), REFUSED)
def test_an_argument_that_does_not_fit_is_named(text: str, spec: dict[str, Any], fault: str) -> None:
    result = call(text, x=spec)
    assert result.status == "invalid"
    signature = tool(params={"x": spec}).signature()
    assert result.message == f"probe: {fault}. {IT_IS_CALLED_AS} {signature}."


def test_every_fault_of_a_call_is_told_at_once() -> None:
    result = call('(probe :limt 3 :path 4 :deep "x")', pattern={}, path={}, limit={"type": int, "default": 1})
    assert result.message == (
        "probe: :pattern is missing; :path should be str, not 4; :limt is unknown (did you mean :limit?); "
        ":deep is unknown (it takes :pattern, :path, :limit). "
        f"{IT_IS_CALLED_AS} (probe :pattern str :path str [:limit int = 1])."
    )


def test_a_tool_without_parameters_says_so() -> None:
    assert call("(probe :x 1)").message == f"probe: :x is unknown (it takes none). {IT_IS_CALLED_AS} (probe)."
    assert call("(probe 1)").message == (
        f"probe takes no arguments; 1 {IS_ONE_TOO_MANY}. {IT_IS_CALLED_AS} (probe)."
    )


def test_positional_arguments_fill_what_is_not_named() -> None:
    result = call('(probe "a" :x "b" "c")', x={}, y={}, z={})
    assert result.value == {"x": "b", "y": "a", "z": "c"}


def test_data_nested_beyond_reason_is_refused_before_anything_walks_it() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    result = call(CallForm("probe", {"x": value}), x={"type": Any})
    assert (result.status, result.message) == (
        "invalid",
        f"probe: an argument {IS_NESTED_DEEPER_THAN} 100. {IT_IS_CALLED_AS} (probe :x any).",
    )


def test_a_huge_value_is_shown_short() -> None:
    result = call(CallForm("probe", {"x": "y" * 100_000}), x={"type": int})
    assert len(result.message) < 200


def test_odd_numbers_and_surrogates_are_faults_and_not_crashes() -> None:
    assert call(CallForm("probe", {"x": 10**5000}), x={"type": str}).status == "invalid"
    halved = call(CallForm("probe", {"x": ["a", {"b": "\ud800"}]}), x={"type": list})
    assert halved.message.startswith("probe: :x contains a lone surrogate character. ")
    assert call(CallForm("probe", {"\ud800": 1}), x={"type": str}).status == "invalid"


@pytest.mark.parametrize(
    "name", ["json", "copy", "schema", "dict", "model-config", "model-dump", "construct"]
)
def test_words_that_pydantic_keeps_for_itself_are_free(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(f'(probe :{name} "a")', **{name: {}}).value == {name: "a"}


@given(st.text(), st.integers(), st.lists(st.text(), max_size=3))
def test_what_is_given_is_what_arrives(text: str, number: int, texts: list[str]) -> None:
    params = {"a": {}, "b": {"type": int}, "c": {"type": list[str]}}
    result = call(CallForm("probe", {"a": text, "b": number, "c": texts}), **params)
    assert result.value == {"a": text, "b": number, "c": texts}


# The schema


class Place(BaseModel):
    """Where."""

    title: str
    line: int


class Tree(BaseModel):
    inner: Tree | None = None


def test_the_schema_is_inline_and_closed() -> None:
    params: dict[str, dict[str, Any]] = {
        "title": {"doc": "What it is called"},
        "place": {"type": Place},
        "places": {"type": list[Place]},
        "default": {"type": dict, "default": {"title": "kept"}},
        "limit": {"type": int, "default": 5, "min": 1, "max": 9},
        "mode": {"choices": ["a", "b"]},
    }
    schema = tool(params=params).schema
    place = {
        "type": "object",
        "description": "Where.",
        "properties": {"title": {"type": "string"}, "line": {"type": "integer"}},
        "required": ["title", "line"],
    }
    assert schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "title": {"type": "string", "description": "What it is called"},
            "place": place,
            "places": {"type": "array", "items": place},
            "default": {
                "type": "object",
                "additionalProperties": True,
                "default": {"title": "kept"},
            },
            "limit": {"type": "integer", "default": 5, "minimum": 1, "maximum": 9},
            "mode": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["title", "place", "places", "mode"],
    }
    json.dumps(schema)


def test_the_schema_of_no_parameters_is_an_empty_object() -> None:
    assert tool().schema == {"type": "object", "additionalProperties": False, "properties": {}}


def test_a_type_that_contains_itself_is_refused() -> None:
    said = complaint(DefinitionError, lambda: tool(params={"x": {"type": Tree}}))
    assert said == "probe, parameter x: the type Tree contains itself, which cannot be shown."


# Definitions

HINT = (
    "use str, int, float, bool, list, dict, tuple, set, frozenset, bytes, date, datetime, time, timedelta, "
    "Decimal, UUID, an Enum, Literal, a dataclass, a TypedDict, a pydantic model, path, form, "
    "(get list str) or (| str None)"
)
KEYS = ":type, :doc, :default, :choices, :min, :max, :secret, :hidden, :named, :role, :outside, :wire"
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("maxResults", {}, "a parameter's name is lower-case letters, digits and hyphens. Write max-results."),
    ("1a", {}, "a parameter's name is lower-case letters, digits and hyphens."),
    ("ctx", {}, "ctx is reserved; choose another name."),
    ("call", {}, "call is reserved; choose another name."),
    ("ask", {}, "ask is reserved; choose another name."),
    ("class", {}, "class is reserved; choose another name."),
    ("x", {"typ": int}, f"unknown key :typ; the keys are {KEYS}. Did you mean type?"),
    ("x", {"zzz": int}, f"unknown key :zzz; the keys are {KEYS}."),
    ("x", {"hidden": True}, "a :hidden parameter needs a :default, as callers do not see it."),
    (
        "x",
        {"role": "recipient"},
        ':role must be :destination, or :content for no destination; not "recipient".',
    ),
    ("x", {"named": True}, "a :named parameter needs a :default, which every rule covers."),
    ("x", {"hidden": "yes"}, f':hidden {IS_TRUE_OR_FALSE_NOT} "yes".'),
    ("x", {"type": "str"}, f'values of type "str" {CANNOT_BE_WRITTEN} as JSON; {HINT}.'),
    ("x", {"type": int, "default": "5"}, f'the default "5" {IS_NOT_OF_ITS_TYPE}, int.'),
    ("x", {"type": int, "default": True}, f"the default True {IS_NOT_OF_ITS_TYPE}, int."),
    ("x", {"type": int, "default": 1.5}, f"the default 1.5 {IS_NOT_OF_ITS_TYPE}, int."),
    ("x", {"type": str, "default": 5}, f"the default 5 {IS_NOT_OF_ITS_TYPE}, str."),
    ("x", {"type": bool, "default": 0}, f"the default 0 {IS_NOT_OF_ITS_TYPE}, bool."),
    ("x", {"type": float, "default": False}, f"the default False {IS_NOT_OF_ITS_TYPE}, float."),
    ("x", {"choices": ["a"], "default": "b"}, 'the default "b" is not among its choices.'),
    ("x", {"choices": "abc"}, ':choices is a list with at least one value, not "abc".'),
    ("x", {"choices": []}, ":choices is a list with at least one value, not []."),
    ("x", {"choices": [1]}, f"the choice 1 {IS_NOT_OF_ITS_TYPE}, str."),
    ("x", {"type": float, "choices": [1.5]}, ":choices are for str, int and bool, not for float."),
    ("x", {"type": int, "min": "1"}, ':min is a number, not "1".'),
    ("x", {"type": int, "max": True}, ":max is a number, not True."),
    ("x", {"type": str, "min": 1}, ":min is for int and float, not for str."),
    ("x", {"type": int, "min": 0.5}, ":min of an int is a whole number, not 0.5."),
    ("x", {"type": int, "min": 1, "default": 0}, "the default 0 is outside its :min and :max."),
    ("x", {"type": int, "max": 1, "default": 2}, "the default 2 is outside its :min and :max."),
]


def test_a_hidden_parameter_is_taken_by_name_and_stands_in_no_view() -> None:
    params: dict[str, Any] = {"a": {}, "b": {"type": bool, "default": False, "hidden": True}}
    made = tool(params=params)
    assert made.checked(CallForm("probe", {"a": "x", "b": True}))[1] == {"a": "x", "b": True}
    assert made.checked(CallForm("probe", {}, ("x",)))[1] == {"a": "x", "b": False}
    assert (made.signature(), list(made.schema["properties"])) == ("(probe :a str)", ["a"])
    assert complaint(InvalidCallError, lambda: made.checked(CallForm("probe", {}, ("x", True)))) == (
        f"probe takes 1 argument; True {IS_ONE_TOO_MANY}."
    )
    assert complaint(InvalidCallError, lambda: made.checked(CallForm("probe", {"a": "x", "q": 1}))) == (
        "probe: :q is unknown (it takes :a)."
    )


@pytest.mark.parametrize(("name", "spec", "sentence"), WRONG)
def test_a_wrong_parameter_is_refused_at_definition(name: str, spec: dict[str, Any], sentence: str) -> None:
    said = complaint(DefinitionError, lambda: tool(params={name: spec}))
    assert said == f"probe, parameter {name}: {sentence}"
