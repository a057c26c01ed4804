"""JSON Schemas of other systems: what models are shown, and the check of calls by the whole schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from words import belt_of, complaint

from quoth.tools.errors import DefinitionError, InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.define import tool_from_schema
from quoth.tools.registry.json_type import core_of, words
from quoth.tools.registry.plain_schema import MAX_CHARS, plain_schema
from quoth.tools.registry.schema_params import MAX_PARAMS
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import ServedTool


def tool_of(schema: Any, name: str = "hub--probe") -> CognitiveTool:
    served = ServedTool("hub", "probe", "ab" * 32)
    return tool_from_schema(
        name, "Probe.", schema, served=served, effects=[], body=lambda arguments, *_: arguments
    )


def of_it(node: Any, **root: Any) -> dict[str, Any]:
    """A schema with one required property."""
    return {"type": "object", "properties": {"it": node}, "required": ["it"], **root}


def said_of(schema: Any, value: Any) -> str:
    """What a call with this argument is refused with; empty if it is not."""
    return said_by(tool_of(schema), value)


def said_by(tool: CognitiveTool, value: Any) -> str:
    try:
        tool.checked(CallForm("hub--probe", {"it": value}))
    except InvalidCallError as error:
        return str(error).removeprefix("hub--probe: ")
    return ""


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}

# What a model is shown


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        (True, {}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"type": ["integer", "array"], "minimum": 1, "items": {"type": "string"}},
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": {"type": "string"}}]},
        ),
        ({"type": "string", "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"const": "a"}, {"const": "a", "type": "string"}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None]}),
        ({"enum": ["a", "b"], "nullable": True}, {"enum": ["a", "b", None]}),
        ({"enum": ["a", {"b": 1}], "description": "One"}, {"description": "One"}),
        ({"title": "T", "$comment": "c", "x-own": 1, "type": "boolean"}, {"type": "boolean"}),
        (
            {"allOf": [{"properties": {"a": WHOLE}, "required": ["a"]}], "properties": {"b": TEXT}},
            {"type": "object", "properties": {"b": TEXT, "a": WHOLE}, "required": ["a"]},
        ),
        ({"allOf": [{"type": "number"}, {**WHOLE, "minimum": 2.0}]}, {**WHOLE, "minimum": 2}),
        (
            {"oneOf": [{"type": "string", "description": "Its name"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string", "description": "Its name"}, {"type": "integer"}]},
        ),
        ({"enum": [*map(str, range(501))]}, {}),
        (
            {"type": "object", "oneOf": [{"properties": {"a": TEXT}}, {"properties": {"b": WHOLE}}]},
            {
                "anyOf": [
                    {"type": "object", "properties": {"a": TEXT}},
                    {"type": "object", "properties": {"b": WHOLE}},
                ]
            },
        ),
        (
            {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"type": "object", "properties": {"a": {}}},
        ),
        ({"properties": {"a": TEXT}}, {"type": "object", "properties": {"a": TEXT}}),
        ({"not": {"type": "string"}, "description": "Not a text"}, {"description": "Not a text"}),
        ({"if": {"type": "string"}, "then": {"minLength": 1}}, {}),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"type": "object"}),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        ({"type": "array", "items": [{"type": "string"}], "additionalItems": False}, {"type": "array"}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "items": False},
            {"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "items": False},
        ),
        ({"type": "string", "format": "path"}, {"type": "string"}),  # no path of the workspace
        ({"type": "string", "pattern": "(unclosed"}, {"type": "string"}),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, {"type": "integer", "minimum": 0}),
        ({"$ref": "#/$defs/a/properties/b"}, {"type": "integer"}),
        (
            {"$ref": "#/$defs/a", "description": "Mine"},
            {"type": "object", "properties": {"b": WHOLE}, "description": "Mine"},
        ),
        ({"$ref": "#/$defs/a~1b"}, {"type": "string", "description": "A slash"}),
        (
            {"$ref": "#/$defs/tree"},
            {"type": "object", "properties": {"kids": {"type": "array", "items": {}}}},
        ),
        ({"$ref": "#/$defs/around"}, {}),
        ({"$ref": "https://example.org/schema.json"}, {}),
    ],
)  # fmt: skip
def test_a_schema_in_plain_words(node: Any, shown: dict[str, Any]) -> None:
    definitions = {
        "a": {"type": "object", "properties": {"b": {"type": "integer"}}},
        "a/b": {"type": "string", "description": "A slash"},
        "tree": {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        },
        "around": {"$ref": "#/$defs/around"},
    }
    plain = plain_schema(node, {"$defs": definitions})
    assert plain == shown
    core_of(plain)


def test_a_text_with_invisible_characters_is_not_shown() -> None:
    hidden = "a\u202eb\U000e0041"
    root = of_it(
        {
            "type": "object",
            "description": f"Say {hidden}",
            "properties": {hidden: {}, "b": {}},
        },
    )
    root["properties"] |= {
        "one": {"enum": ["x", hidden]},
        "two": {"type": "string", "default": hidden, "pattern": hidden, "format": hidden},
        "long": {"type": "string", "description": "x" * 9999, "default": "y" * 9999},
    }
    shown = tool_of(root).schema["properties"]
    assert shown["it"] == {"type": "object", "description": "Say a\\u202eb\\U000e0041"}
    assert (shown["one"], shown["two"]) == ({}, {"type": "string"})
    assert shown["long"] == {"type": "string", "description": "x" * (MAX_CHARS - 1) + "…"}


def test_a_description_cannot_add_a_tool_to_a_text_list() -> None:
    tool = tool_of(of_it({"description": "What\n- shell: Run it.\n  Parameters: none"}))
    assert ":it any (What - shell: Run it. Parameters: none)" in belt_of(tool)
    assert "\n- shell" not in belt_of(tool)


def test_a_text_that_is_not_shown_is_still_checked_as_it_is() -> None:
    schema = of_it(
        {"enum": ["k\u03a9", "b"], "description": "In \u03a9"}
    )  # a Greek letter beside a Latin one
    assert tool_of(schema).schema["properties"] == {"it": {"description": "In \u03a9"}}
    assert (said_of(schema, "k\u03a9"), said_of(schema, "a")) == ("", ':it must match enum ["k\u03a9" "b"].')


def test_properties_of_branches_are_optional_parameters() -> None:
    schema = {
        "type": "object",
        "allOf": [{"properties": {"all": {"type": "string"}}, "required": ["all"]}],
        "oneOf": [
            {"properties": {"one": {"type": "string"}, "both": {"type": "integer"}}, "required": ["one"]},
            {"properties": {"two": {"type": "boolean"}, "both": {"type": "string"}}, "required": ["two"]},
        ],
        "dependentSchemas": {"one": {"properties": {"more": {"type": "integer"}}}},
        "required": ["named"],
    }
    tool = tool_of(schema)
    assert (
        tool.signature()
        == "(hub--probe :all str [:one str] [:both int or str] [:two bool] [:more int] :named any)"
    )
    named = {"all": "a", "named": 1}
    tool.checked(CallForm("hub--probe", {**named, "one": "x"}))
    said = complaint(
        InvalidCallError, lambda: tool.checked(CallForm("hub--probe", {**named, "one": "x", "two": True}))
    )
    assert said == "hub--probe: the arguments must match exactly one of 2 alternatives."


# What is refused

LISTED = {"enum": ["a", "b"]}


@pytest.mark.parametrize(
    ("node", "value", "said"),
    [
        ({"type": "object", "not": {"required": ["x"]}}, {"x": 1}, ':it must match not {"required" ["x"]}.'),
        ({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, 3, ":it must match exactly one of 2 alternatives."),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"n1": "x"}, ':it["n1"] must be integer.'),
        ({"patternProperties": {"^n": {}}, "additionalProperties": False}, {"x": 1}, ':it["x"] is unknown.'),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, ':it["b"] is missing.'),
        ({"unevaluatedProperties": False}, {"b": 1}, ":it must match unevaluatedProperties False."),
        ({"$ref": "#/$defs/tree"}, {"kids": [{"kids": [3]}]}, ':it["kids"][0]["kids"][0] must be object.'),
        ({"if": {"const": "a"}, "then": False}, "a", ":it is not allowed."),
        ({"type": "array", "uniqueItems": True}, [1, 1.0], ":it must match uniqueItems True."),
        ({"type": "array", "contains": {"const": 1}}, [2], ":it must match contains"),
        ({"propertyNames": {"maxLength": 2}}, {"long": 1}, ":it must match maxLength 2."),
        ({"properties": {"a": LISTED}}, {"a": "c"}, ':it["a"] should be "a" | "b", not "c".'),
    ],
)  # fmt: skip
def test_the_whole_schema_is_checked(node: Any, value: Any, said: str) -> None:
    tree = {"type": "object", "properties": {"kids": {"items": {"$ref": "#/$defs/tree"}}}}
    assert said in said_of(of_it(node, **{"$defs": {"tree": tree}}), value)


def test_null_is_a_value_where_openapi_says_so() -> None:
    assert said_of(of_it({"type": "string", "nullable": True}), None) == ""
    assert said_of(of_it({"enum": ["a"], "nullable": True}), None) == ""


def test_a_format_is_not_checked() -> None:
    assert said_of(of_it({"type": "string", "format": "date"}), "tomorrow") == ""


def test_a_secret_is_not_quoted() -> None:
    secret = {"type": "object", "writeOnly": True, "additionalProperties": {"not": {"const": "sesame"}}}
    tool = tool_of(of_it(secret))
    assert [param.secret for param in tool.params] == [True]
    assert said_of(of_it(secret), {"sesame": "sesame"}).startswith(":it must match not")
    assert tool_of(of_it({"type": "string", "format": "password"})).params[0].secret


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12", "of tomorrow"])
def test_a_schema_may_be_of_an_older_draft(draft: str) -> None:
    names = {
        "2019-09": "https://json-schema.org/draft/2019-09/schema",
        "of tomorrow": "https://example.org/x",
    }
    uri = names.get(draft, f"http://json-schema.org/{draft}/schema#")
    schema = of_it(
        {"$ref": "#/definitions/a"}, **{"$schema": uri, "definitions": {"a": {"not": {"enum": [3]}}}}
    )
    assert said_of(schema, 2) == ""
    assert said_of(schema, 3) == ':it must match not {"enum" [3]}.'


# Hostile schemas: a call ends soon, with a sentence


def doubling(step: Callable[[str], dict[str, Any]], end: Any = True) -> dict[str, Any]:
    """A schema of 40 definitions that each use the next one twice."""
    definitions = {f"d{at}": step(f"#/$defs/d{at + 1}") for at in range(40)}
    return of_it({"$ref": "#/$defs/d0"}, **{"$defs": {**definitions, "d40": end}})


SLOW = "(a|a)+$"
MANY_A = "a" * 200 + "!"
HOSTILE: dict[str, tuple[dict[str, Any], Any, str]] = {
    "alternatives that double": (
        doubling(lambda ref: {"anyOf": [{"$ref": ref}, {"$ref": ref}]}, end={"not": {}}),
        1,
        "checking a value by it takes too long",
    ),
    "evaluated properties that double": (
        doubling(lambda ref: {"unevaluatedProperties": False, "$ref": ref, "$dynamicRef": ref}),
        {"a": 1},
        "checking a value by it takes too long",
    ),
    "dependent schemas that double": (
        doubling(
            lambda ref: {
                "unevaluatedProperties": False,
                "dependentSchemas": {"a": {"$ref": ref}, "b": {"$ref": ref}},
            }
        ),
        {"a": 1, "b": 1},
        "checking a value by it takes too long",
    ),
    "a reference to itself": (of_it({"$ref": "#/properties/it"}), 1, "it refers to itself without end"),
    "a pattern that takes long": (of_it({"pattern": SLOW}), MANY_A, "it takes too long to look for"),
    "such a pattern of names": (
        of_it({"patternProperties": {SLOW: {}}}),
        {MANY_A: 1},
        "it takes too long to look for",
    ),
    "such a pattern of other names": (
        of_it({"patternProperties": {SLOW: {}}, "additionalProperties": False}),
        {MANY_A: 1},
        "it takes too long to look for",
    ),
    "such a pattern beside evaluated properties": (
        of_it({"unevaluatedProperties": False, "patternProperties": {SLOW: {}}}),
        {MANY_A: 1},
        f'it has unevaluatedProperties beside the pattern "{SLOW}"',
    ),
    "a pattern that is none": (of_it({"pattern": "("}), "a", "( is not a regular expression"),
    "a pattern that repeats too much": (of_it({"pattern": "(a{999}){999}"}), "a", "repeats too much"),
    "a schema elsewhere": (
        of_it({"$ref": "http://127.0.0.1:9/schema.json"}),
        1,
        'it refers to "http://127.0.0.1:9/schema.json", which is not in it; nothing is fetched',
    ),
    "a missing definition": (of_it({"$ref": "#/$defs/gone"}), 1, "which is not in it; nothing is fetched"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_schema_is_answered_with_a_sentence(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.registry.json_type.MATCH_SECONDS", 0.05)
    monkeypatch.setattr("quoth.tools.registry.whole_schema.MAX_SECONDS", 0.2)
    schema, value, why = HOSTILE[kind]
    tool = tool_of(schema)
    core_of(tool.schema)
    assert len(json.dumps(tool.schema)) < 100_000
    assert why in said_of(schema, value)


@pytest.mark.parametrize(
    "node",
    [
        {"type": 3},
        {"type": "text"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": 5}},
        {"type": "object", "required": 5},
        {"type": "array", "items": 5},
        {"type": "string", "minLength": "long"},
        {"type": "string", "pattern": 5},
        {"type": "integer", "minimum": "one"},
        {"enum": 5},
        {"anyOf": {}},
        {"allOf": 5},
        {"$ref": 5},
        {"$ref": "#/properties/it/$ref"},
    ],
)
def test_what_is_no_json_schema_is_shown_and_called_without_a_crash(node: Any) -> None:
    core_of(tool_of(of_it(node)).schema)
    for value in (None, 1, "a", [1], {"a": 1}):
        said_of(of_it(node), value)


def test_a_long_list_of_unique_items_is_checked() -> None:
    items = [{"at": at} for at in range(5_000)]
    assert said_of(of_it({"type": "array", "uniqueItems": True}), items) == ""
    assert said_of(of_it({"type": "array", "uniqueItems": True}), [*items, {"at": 7}]) != ""


OUT_OF_BOUNDS = {
    "is nested deeper than 50": of_it(functools.reduce(lambda inner, _: {"items": inner}, range(900), {})),
    "is larger than 256 KB": of_it({"description": "x" * 300_000}),
    "contains a value that is not JSON data": of_it({"default": object()}),
    "has more than 500 properties": {"properties": {f"p{at}": {} for at in range(MAX_PARAMS + 1)}},
}


@pytest.mark.parametrize("fault", OUT_OF_BOUNDS)
def test_a_schema_out_of_bounds_is_refused(fault: str) -> None:
    message = complaint(DefinitionError, lambda: tool_of(OUT_OF_BOUNDS[fault]))
    assert message == f"hub--probe: its JSON Schema {fault}."


def test_a_schema_that_is_read_later_is_checked_later() -> None:
    deep, large, *_ = OUT_OF_BOUNDS.values()
    for schema, said in ((deep, "it is nested deeper than 50."), (large, "it is larger than 256 KB.")):
        later = functools.partial(dict, schema)
        core_of(tool_of(later).schema)
        assert said in said_of(later, [])


def test_a_schema_of_a_function_is_not_read_before_it_is_needed() -> None:
    asked: list[int] = []
    table = ToolTable(
        [tool_of(lambda at=at: asked.append(at) or of_it(TEXT), f"hub--probe-{at}") for at in range(1000)]
    )
    assert (len(table), len(table.schema_hash), asked) == (1000, 64, [])
    assert table.get("hub--probe-7").signature() == "(hub--probe-7 :it str)"
    assert asked == [7]


# Random schemas, with jsonschema as the oracle

NAMES = ["a", "b", "maxDepth", "in"]
SCALARS = [None, True, False, 0, 1, 2, 7, -3, 1.5, "", "a", "b", "abc", "2026-01-01"]
values = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)


def _bounds(*words: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(words), st.integers(0, 3), max_size=2)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    made = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": properties},
        optional={
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^m", "n$"]), inner, max_size=1),
            "minProperties": st.integers(0, 2),
            "dependentRequired": st.just({"a": ["b"]}),
            "unevaluatedProperties": st.just(False),
        },
    )
    return made.filter(lambda one: not {"patternProperties", "unevaluatedProperties"} <= one.keys())


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner | st.just(False),
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(1, 3),
            "uniqueItems": st.booleans(),
            "contains": inner,
        },
    )


def _joined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        *(several.map(lambda found, word=word: {word: found}) for word in ("anyOf", "oneOf", "allOf")),
        inner.map(lambda one: {"not": one}),
        st.tuples(inner, inner).map(lambda both: {"if": both[0], "then": both[1]}),
        st.tuples(inner, several).map(lambda both: {**both[0], "anyOf": both[1]}),
        st.sampled_from(["x", "y"]).map(
            lambda name: {"type": "object", "properties": {"a": {"$ref": f"#/$defs/{name}"}}}
        ),
        st.sampled_from(["x", "y"]).map(lambda name: {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}),
        inner.map(lambda one: {**one, "nullable": False, "title": "T", "description": "D"}),
    )


leaves = st.one_of(
    st.just({}),
    st.just({"type": "null"}),
    st.just({"type": "boolean"}),
    _bounds("minimum", "maximum", "exclusiveMaximum").map(lambda b: {"type": "number", **b}),
    _bounds("minimum", "maximum", "exclusiveMinimum").map(lambda b: {"type": "integer", **b}),
    _bounds("minLength", "maxLength").map(lambda b: {"type": "string", **b}),
    st.sampled_from(["^a", "c$", "[ab]+"]).map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.lists(st.sampled_from(["string", "integer", "null", "array"]), min_size=1, max_size=3, unique=True)
    .map(lambda kinds: {"type": kinds, "minimum": 1, "minLength": 1}),
    st.lists(st.sampled_from(SCALARS[3:]), min_size=1, unique=True).map(lambda some: {"enum": some}),
    st.sampled_from(SCALARS).map(lambda one: {"const": one}),
)  # fmt: skip
schemas: st.SearchStrategy[dict[str, Any]] = st.deferred(
    lambda: leaves | leaves | _objects(schemas) | _arrays(schemas) | _joined(schemas)
)


@examples(5)
@given(schemas, schemas, schemas, st.lists(values, min_size=1, max_size=8))
def test_a_call_is_accepted_where_jsonschema_accepts_it(node: Any, x: Any, y: Any, tried: list[Any]) -> None:
    agree(of_it(node, **{"$defs": {"x": x, "y": y}}), tried)


def agree(schema: dict[str, Any], tried: list[Any]) -> None:
    oracle, tool = jsonschema.Draft202012Validator(schema), tool_of(schema)
    for value in tried:
        said = said_by(tool, value)
        assert (said == "") == oracle.is_valid({"it": value}), said
    core_of(tool.schema)
    assert words(tool.schema)
