"""Tools that another system describes by a JSON Schema: our names beside its own, and the check of calls."""

from __future__ import annotations

from typing import Any

import pytest
from words import complaint, form, gateway

from quoth.tools.errors import DefinitionError, InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.define import tool_from_schema
from quoth.tools.registry.schema_params import own_name
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.tool import ServedTool

ISSUES: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "owner": {"type": "string", "description": "Whose"},
        "maxResults": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5},
        "from": {"type": ["string", "null"]},
        "$filter": {"$ref": "#/definitions/filter"},
        "user.name": {"type": "string"},
        "score": {"type": "number"},
    },
    "required": ["owner"],
    "definitions": {
        "filter": {
            "type": "object",
            "properties": {
                "maxDepth": {"type": "integer"},
                "in": {"type": "object", "not": {"required": ["x"]}},
            },
            "additionalProperties": False,
        }
    },
}


def issues(schema: dict[str, Any] = ISSUES, **more: Any) -> CognitiveTool:
    """A tool of a server, whose value is the arguments that the server receives."""
    served = ServedTool("hub", "get_issues", "ab" * 32)
    given = {"effects": ["reads"], "body": lambda arguments, call, ctx: arguments, "served": served, **more}
    return tool_from_schema("hub--get-issues", "Get the issues.", schema, **given)


def schema_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_a_form_speaks_our_names_and_the_server_its_own() -> None:
    assert issues().signature() == (
        "(hub--get-issues :owner str [:max-results int = 5] [:from- str or None] "
        '[:filter {["maxDepth" int]  ["in" dict]}] [:user-name str] [:score float])'
    )
    text = '(hub--get-issues "me" :max-results 3 :from- "x" :filter {"maxDepth" 1} :user-name "u" :score 2)'
    assert gateway(issues()).pass_through(text).value == {
        "owner": "me",
        "maxResults": 3,
        "from": "x",
        "$filter": {"maxDepth": 1},
        "user.name": "u",
        "score": 2,
    }


def test_a_call_may_use_the_servers_names() -> None:
    given = {"maxResults": 3, "from": "x", "$filter": {"maxDepth": 1}, "user.name": "u"}
    made, _ = issues().checked(CallForm("hub--get-issues", given, ("me",)))
    by_form = '(hub--get-issues "me" :maxResults 3 :from "x" :$filter {"maxDepth" 1} :user-name "u")'
    assert made == issues().checked(form(by_form))[0]
    assert made.canonical == (
        '(hub--get-issues :filter {"maxDepth" 1} :from- "x" :max-results 3 :owner "me" :user-name "u")'
    )


def test_an_omitted_argument_stays_omitted_and_a_default_is_not_sent() -> None:
    assert gateway(issues()).pass_through('(hub--get-issues "me")').value == {"owner": "me"}
    said = gateway(issues()).pass_through('(hub--get-issues "me" :max-results None :filter None :from None)')
    assert said.value == {"owner": "me", "from": None}  # this one can be null


def test_the_schema_for_models_is_inline_and_in_the_servers_names() -> None:
    assert issues().schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["owner"],
        "properties": {
            "owner": {"type": "string", "description": "Whose"},
            "maxResults": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5},
            "from": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "$filter": {
                "type": "object",
                "properties": {"maxDepth": {"type": "integer"}, "in": {"type": "object"}},
                "additionalProperties": False,
            },
            "user.name": {"type": "string"},
            "score": {"type": "number"},
        },
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '(hub--get-issues "me" :max-results 0)',
            ":max-results should be greater than or equal to 1, not 0.",
        ),
        ("(hub--get-issues)", ":owner is missing."),
        ('(hub--get-issues "me" :limit 3)', ":limit is unknown"),
        (
            '(hub--get-issues "me" :filter {"maxDeep" 1})',
            ':filter["maxDeep"] is unknown (did you mean "maxDepth"?).',
        ),
        (
            '(hub--get-issues "me" :filter {"in" {"x" 1}})',
            ':filter["in"] must match not {"required" ["x"]}.',
        ),
        ('(hub--get-issues "me" :maxResults 3 :max-results 3)', ":max-results is given twice."),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_sent(text: str, said: str) -> None:
    assert said in complaint(InvalidCallError, lambda: issues().checked(form(text)))


@pytest.mark.parametrize(
    ("wire", "own"),
    [
        ("maxResults", "max-results"),
        ("max_results", "max-results"),
        ("HTTPServer", "http-server"),
        ("userID2", "user-id2"),
        ("$filter", "filter"),
        ("user.name", "user-name"),
        ("First Name", "first-name"),
        ("_meta", "meta"),
        ("名前", ""),
    ],
)
def test_our_spelling_of_a_name(wire: str, own: str) -> None:
    assert own_name(wire) == own


def test_a_name_that_we_cannot_use_gets_another() -> None:
    schema = schema_of(**{name: {"type": "string"} for name in ("class", "call", "2fa", "名前", "as")})
    assert [(one.name, one.shown) for one in issues(schema).params] == [
        ("class-", "class"),
        ("call-", "call"),
        ("arg-2fa", "2fa"),
        ("arg-4", "名前"),
        ("as", "as"),
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ["maxResults", "max_results"],
            '"maxResults" and "max_results" have the same name in a call, :max-results.',
        ),
        (
            ["maxResults", "maxresults"],
            '"maxResults" and "maxresults" have the same name in a call, :maxresults.',
        ),
        (["a\u202eb"], 'the name of the parameter "a\\u202eb" cannot be written or is too long.'),
        (["a" * 129], "cannot be written or is too long."),
    ],
)
def test_two_parameters_with_one_name_are_refused(names: list[str], said: str) -> None:
    message = complaint(DefinitionError, lambda: issues(schema_of(**{name: {} for name in names})))
    assert message.startswith("hub--get-issues: ")
    assert message.endswith(said)


def test_a_value_is_checked_by_the_output_schema() -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    right = issues(output_schema=schema, body=lambda arguments, call, ctx: {"count": 1})
    wrong = issues(output_schema=schema, body=lambda arguments, call, ctx: {"count": "one"})
    assert str(right.returns) == '{"count" int}'
    assert gateway(right).pass_through('(hub--get-issues "me")').value == {"count": 1}
    said = gateway(wrong).pass_through('(hub--get-issues "me")')
    assert (said.status, said.message) == (
        "error",
        'hub--get-issues returned a value that its JSON Schema refuses: ["count"] must be integer.',
    )


def test_approvals_are_bound_to_the_digest_of_the_server() -> None:
    assert (issues().version, issues().outline) == ("ab" * 32, "ab" * 8)


def test_its_name_at_the_server_is_among_its_facts() -> None:
    assert (issues().wire, issues().describe()["wire"]) == ("get_issues", "get_issues")


# In the shape of schemas that servers in the field send: from zod, from pydantic, written by hand.
FIELD: dict[str, tuple[dict[str, Any], str]] = {
    "pydantic": (
        {
            "type": "object",
            "title": "searchArguments",
            "$defs": {
                "Order": {"type": "string", "enum": ["asc", "desc"], "title": "Order"},
                "Span": {
                    "type": "object",
                    "title": "Span",
                    "properties": {"start": {"type": "string", "format": "date-time", "title": "Start"}},
                    "required": ["start"],
                },
            },
            "properties": {
                "order": {"$ref": "#/$defs/Order", "default": "asc"},
                "span": {
                    "anyOf": [{"$ref": "#/$defs/Span"}, {"type": "null"}],
                    "default": None,
                    "title": "Span",
                },
                "page_size": {"type": "integer", "exclusiveMinimum": 0, "default": 10, "title": "Page Size"},
            },
        },
        '(hub--get-issues [:order "asc" | "desc" = "asc"] [:span {"start" datetime} or None]'
        " [:page-size int = 10])",
    ),
    "zod": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
                        "required": ["oldText", "newText"],
                        "additionalProperties": False,
                    },
                },
                "dryRun": {"type": "boolean", "default": False},
                "lines": {"type": "number"},
            },
            "required": ["edits"],
            "additionalProperties": False,
        },
        '(hub--get-issues :edits list of {"oldText" str  "newText" str}'
        " [:dry-run bool = False] [:lines float])",
    ),
    "by hand": (
        {
            "type": "object",
            "properties": {
                "comments": {
                    "items": {
                        "anyOf": [
                            {"type": "object", "properties": {"position": {"type": "number"}}},
                            {"type": "object", "properties": {"line": {"type": "number"}}},
                        ]
                    }
                },
                "labels": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                "filter": {"type": "object"},
            },
        },
        '(hub--get-issues [:comments list of {["position" float]} or {["line" float]}]'
        " [:labels list of str] [:filter dict])",
    ),
}


@pytest.mark.parametrize("kind", FIELD)
def test_a_schema_of_the_field_is_a_short_signature(kind: str) -> None:
    schema, signature = FIELD[kind]
    assert issues(schema).signature() == signature
