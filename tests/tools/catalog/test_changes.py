"""What differs between two catalogues is told as a person reads it."""

from __future__ import annotations

from typing import Any

import pytest
from words import tool

from quoth.tools.catalog.store import changes
from quoth.tools.registry.table import ToolTable

FRUIT = {"fruit": {"type": str, "doc": "Which fruit"}}


def entries(**options: Any) -> list[dict[str, Any]]:
    """The catalogue of one tool."""
    users = options.pop("users", ())
    made = ToolTable((tool("pears", **{"params": FRUIT, **options}),))
    if users:
        made.permit({"pears": users})
    return made.entries


def told(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    return list(changes(before, after).lines())


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({"timeout": 60}, ["timeout: 30.0 → 60"]),
        ({"effects": ["writes"]}, ['effects: [] → ["writes"]']),
        ({"users": ["ann"]}, ['users: None → ["ann"]']),
        ({"allow_repeat": True}, ["allow-repeat: False → True"]),
        (
            {"params": {"fruit": {"type": str, "doc": "Which fruit"}, "n": {"type": int, "default": 1}}},
            ["- (pears :fruit str)", "+ (pears :fruit str [:n int = 1])"],
        ),
        ({"params": {"fruit": {"type": str, "doc": "Another"}}}, ["fruit, doc: Which fruit → Another"]),
        (
            {"params": {"fruit": {"type": str, "doc": "Which fruit " * 10}}},
            ["- fruit, doc: Which fruit", f"+ fruit, doc: {('Which fruit ' * 10)[:99]}…"],
        ),
        (
            {"params": {"fruit": {"type": str, "doc": "Which fruit", "secret": True}}},
            ["fruit, secret: None → True"],
        ),
    ],
)
def test_a_tool_that_changed_shows_what_did(options: dict[str, Any], lines: list[str]) -> None:
    assert told(entries(), entries(**options)) == ["~ pears", *(f"    {line}" for line in lines)]


def test_tools_that_came_and_went() -> None:
    made = changes(ToolTable((tool("apples"), tool("pears"))).entries, [*entries(), tool("plums").entry])
    assert list(made.lines()) == [
        "+ (plums)",
        "- (apples)",
        "~ pears",
        "    - (pears)",
        "    + (pears :fruit str)",
    ]
    assert made.summary() == "1 added: plums; 1 removed: apples; 1 changed: pears"
    assert made.names() == {"added": ["plums"], "removed": ["apples"], "changed": ["pears"], "code": []}


def test_code_alone_is_told_apart() -> None:
    made = changes(entries(), [{**entries()[0], "version": "another"}])
    assert list(made.lines()) == ["Only the code changed: pears."]
    assert made.summary() == "1 with other code: pears"


def test_the_same_tools() -> None:
    made = changes(entries(), entries())
    assert not made
    assert made.summary() == "the same tools"
