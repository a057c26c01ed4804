"""Types that are JSON Schemas: what fits them, what they are in words, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest
from words import complaint

from quoth.tools.errors import DefinitionError
from quoth.tools.registry.json_type import LARGEST, core_of, json_type, words

TEXT, COUNT = {"type": "string"}, {"type": "integer"}
PAIR = {"type": "object", "properties": {"a": COUNT, "b": TEXT}, "required": ["a"]}


def fits(schema: Any, value: Any) -> bool:
    from pydantic_core import SchemaValidator, ValidationError

    try:
        SchemaValidator(core_of(schema)).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({}, [1, "a", None, [1]], []),
        (TEXT, ["", "a"], [1, None]),
        (TEXT | {"minLength": 1, "maxLength": 2}, ["a", "ab"], ["", "abc"]),
        (TEXT | {"minLength": 0}, [""], []),
        (TEXT | {"pattern": "^a"}, ["a", "ab"], ["ba"]),
        (COUNT, [1], [1.5, "1", True]),
        (COUNT | {"minimum": 1, "maximum": 2}, [1, 2], [0, 3]),
        (COUNT | {"exclusiveMinimum": 1, "exclusiveMaximum": 3}, [2], [1, 3]),
        (COUNT | {"multipleOf": 2}, [0, 4], [3]),
        ({"type": "number", "multipleOf": 0.5}, [1.5], [1.25]),
        ({"type": "number"}, [1, 1.5], ["1"]),
        ({"type": "boolean"}, [True], [1]),
        ({"type": "null"}, [None], [0]),
        ({"const": 1}, [1], [2]),
        ({"enum": ["a", 1, None]}, ["a", 1, None], ["b"]),
        ({"type": "array"}, [[], [1, "a"]], ["a"]),
        (
            {"type": "array", "items": COUNT, "minItems": 1, "maxItems": 2},
            [[1], [1, 2]],
            [[], [1, 2, 3], ["a"]],
        ),
        ({"type": "array", "prefixItems": [COUNT, TEXT]}, [[1, "a"]], [[1], ["a", 1], [1, "a", 2]]),
        ({"type": "array", "prefixItems": [COUNT], "items": False}, [[1]], [[1, 2]]),
        ({"type": "array", "prefixItems": [COUNT], "items": TEXT}, [[1], [1, "a", "b"]], [[1, 2]]),
        ({"type": "object"}, [{}, {"a": 1}], [[], {1: 2}]),
        ({"type": "object", "additionalProperties": COUNT}, [{}, {"a": 1}], [{"a": "b"}]),
        ({"type": "object", "additionalProperties": False}, [{}], [{"a": 1}]),
        ({"type": "object", "minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        (PAIR, [{"a": 1}, {"a": 1, "b": "x", "c": 1}], [{}, {"b": "x"}, {"a": "x"}]),
        (PAIR | {"additionalProperties": False}, [{"a": 1, "b": "x"}], [{"a": 1, "c": 1}]),
        (PAIR | {"additionalProperties": TEXT}, [{"a": 1, "c": "x"}], [{"a": 1, "c": 1}]),
        ({"anyOf": [COUNT, TEXT]}, [1, "a"], [None, 1.5]),
        ({"oneOf": [COUNT, {"type": "null"}]}, [1, None], ["a"]),
        ({"anyOf": [{"type": "null"}]}, [None], [1]),
        ({"anyOf": [COUNT]}, [1], ["a"]),
    ],
)
def test_a_value_fits_its_schema(schema: Any, good: list[Any], bad: list[Any]) -> None:
    assert [fits(schema, value) for value in good] == [True] * len(good)
    assert [fits(schema, value) for value in bad] == [False] * len(bad)
    assert json_type(schema).schema == schema


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (1, "is not valid"),
        ({"type": "text"}, "has an unknown type"),
        ({"type": ["string", "null"]}, "has an unknown type"),
        ({"enum": []}, "has values other than texts and numbers"),
        ({"enum": "a"}, "has values other than texts and numbers"),
        ({"enum": [[1]]}, "has values other than texts and numbers"),
        ({"enum": ["a"], "minLength": 1}, 'has the keyword "minLength", which is not supported'),
        ({"minLength": 1}, 'has the keyword "minLength", which is not supported'),
        ({"anyOf": []}, "has no list in anyOf"),
        ({"oneOf": TEXT}, "has no list in oneOf"),
        ({"anyOf": [TEXT], "pattern": "a"}, 'has the keyword "pattern", which is not supported'),
        (TEXT | {"minLength": -1}, "has no size in minLength"),
        (TEXT | {"minLength": 1.5}, "has no size in minLength"),
        (TEXT | {"maxLength": LARGEST}, "has no size in maxLength"),
        (TEXT | {"maxLength": True}, "has no number in maxLength"),
        (COUNT | {"minimum": "1"}, "has no number in minimum"),
        ({"type": "number", "minimum": float("nan")}, "has no number in minimum"),
        (COUNT | {"multipleOf": 0}, "has no multipleOf above 0"),
        (TEXT | {"pattern": 1}, "has a pattern that is not a text"),
        (TEXT | {"description": 1}, "has a description that is not a text"),
        ({"type": "array", "prefixItems": []}, "has no list in prefixItems"),
        ({"type": "object", "properties": [1]}, "has properties that are not a dictionary"),
        ({"type": "object", "properties": {1: TEXT}}, "has properties that are not a dictionary"),
        (
            {"type": "object", "properties": {}, "required": ["a"]},
            "requires an undeclared property",
        ),
        (PAIR | {"required": "a"}, "requires an undeclared property"),
    ],
)
def test_a_schema_that_is_not_checked_here_is_refused(schema: Any, said: str) -> None:
    assert said in complaint(DefinitionError, lambda: json_type(schema))


@pytest.mark.parametrize("bound", [TEXT | {"maxLength": LARGEST - 1}, COUNT | {"multipleOf": 1}])
def test_a_bound_may_be_just_so_large(bound: Any) -> None:
    core_of(bound)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "any"),
        (TEXT, "str"),
        ({"enum": ["a", 1]}, '"a" | 1'),
        ({"const": "a"}, '"a"'),
        ({"anyOf": [TEXT, {"type": "null"}]}, "str or None"),
        ({"oneOf": [TEXT, COUNT]}, "str or int"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {}}, "list"),
        ({"type": "array", "items": COUNT}, "list of int"),
        ({"type": "array", "prefixItems": [COUNT, TEXT]}, "[int str]"),
        ({"type": "object"}, "dict"),
        ({"type": "object", "additionalProperties": True}, "dict"),
        ({"type": "object", "additionalProperties": {}}, "dict"),
        ({"type": "object", "additionalProperties": COUNT}, "dict of int"),
        (PAIR, '{"a" int  ["b" str]}'),
        (PAIR | {"properties": {"a": COUNT, "b": COUNT | {"default": 1}}}, '{"a" int  ["b" int = 1]}'),
        ({"type": "number"}, "float"),
        ({"type": "odd"}, "odd"),
    ],
)
def test_a_schema_is_told_in_words(schema: Any, said: str) -> None:
    assert words(schema) == said


def test_the_words_of_fields_are_told_on_demand() -> None:
    schema = {"type": "object", "properties": {"a": COUNT | {"description": "How\n many."}, "b": TEXT}}
    assert words(schema) == '{["a" int]  ["b" str]}'
    assert words(schema, docs=True) == '{["a" int] (How many.)  ["b" str]}'
    assert words(schema | {"required": ["a"]}, docs=True) == '{"a" int (How many.)  ["b" str]}'
