"""OpenAI's strict rules: every property is required, and an optional one may be null."""

from __future__ import annotations

from typing import Any

import pytest

from quoth.tools.registry.openai_schema import LONGEST_NAME, openai_tool_dict, strict_schema, wire_name

TEXT, COUNT, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def object_of(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    said = {"type": "object", "properties": properties, "additionalProperties": False}
    return said if required is None else said | {"required": required}


@pytest.mark.parametrize(
    ("node", "needed", "optional"),
    [
        (TEXT, TEXT, {"type": ["string", "null"]}),
        (NULL, NULL, NULL),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a"]}, {"enum": ["a"]}, {"enum": ["a", None]}),
        (
            {"type": "string", "enum": ["a"]},
            {"type": "string", "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"const": "a"}, {"const": "a"}, {"enum": ["a", None]}),
        ({"anyOf": [TEXT, COUNT]}, {"anyOf": [TEXT, COUNT]}, {"anyOf": [TEXT, COUNT, NULL]}),
        ({"anyOf": [TEXT, NULL]}, {"anyOf": [TEXT, NULL]}, {"anyOf": [TEXT, NULL]}),
        (
            {"type": "array", "items": TEXT},
            {"type": "array", "items": TEXT},
            {"type": ["array", "null"], "items": TEXT},
        ),
        (
            {"type": "string", "default": "x"},
            {"type": "string", "description": '(default "x")'},
            {"type": ["string", "null"], "description": '(default "x")'},
        ),
        (
            {"type": "string", "default": "x", "description": "A text."},
            {"type": "string", "description": 'A text. (default "x")'},
            {"type": ["string", "null"], "description": 'A text. (default "x")'},
        ),
        ({"type": "string", "default": None}, TEXT, {"type": ["string", "null"]}),
        ({"type": "integer", "default": 0}, COUNT | {"description": "(default 0)"}, None),
    ],
)
def test_a_property_is_required_or_may_be_null(node: Any, needed: Any, optional: Any) -> None:
    said = strict_schema(object_of(["a"], a=node))
    assert said == object_of(["a"], a=needed)
    said = strict_schema(object_of([], a=node))
    assert said is not None
    assert said["required"] == ["a"]
    assert optional is None or said["properties"]["a"] == optional


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"description": "anything"},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"anyOf": [TEXT, {}]},
        {"type": "string", "format": "uri-of-ours"},
        {"type": "object"},
        {"type": "object", "properties": {"a": TEXT}},
        {"type": "object", "additionalProperties": TEXT},
        object_of(a={}),
    ],
)
def test_what_the_rules_cannot_express_is_not_strict(node: dict[str, Any]) -> None:
    assert strict_schema(object_of(["a"], a=node)) is None
    assert strict_schema(object_of(["b"], b=TEXT, a=node)) is None


def test_an_object_within_one_is_strict_too() -> None:
    inner = object_of(["x"], x=TEXT, y=COUNT) | {"description": "Within."}
    said = strict_schema(object_of(a=inner))
    assert said is not None
    assert said["properties"]["a"] == {
        "type": ["object", "null"],
        "description": "Within.",
        "properties": {"x": TEXT, "y": {"type": ["integer", "null"]}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    assert strict_schema({"additionalProperties": False}) == object_of([])
    assert strict_schema({"type": "object", "properties": {}}) is None


def test_a_tool_says_whether_it_is_strict() -> None:
    entry = {"name": "look", "description": "Look.", "parameters": object_of(["a"], a=TEXT)}
    told = openai_tool_dict(entry)
    assert told == {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look.",
            "parameters": object_of(["a"], a=TEXT),
            "strict": True,
        },
    }
    anything = {"type": "object"}
    told = openai_tool_dict(entry | {"parameters": anything})
    assert (told["function"]["parameters"], told["function"]["strict"]) == (anything, False)


@pytest.mark.parametrize("length", [1, LONGEST_NAME, LONGEST_NAME + 1, 200])
def test_a_name_is_no_longer_than_the_apis_take(length: int) -> None:
    name = "x" * length
    wired = wire_name(name)
    assert len(wired) == min(length, LONGEST_NAME)
    assert (wired == name) == (length <= LONGEST_NAME)
    assert wire_name(name + "y") != wired
