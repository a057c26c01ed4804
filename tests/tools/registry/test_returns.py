"""What a tool declares to return is shown, and what its body returns is checked."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from words import files, gateway, load, tool

from quoth import StrictModel, belt, cognitive_tool, registering_in, tool_of
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import entry_tool


class Person(StrictModel):
    name: str
    age: int = 3


@dataclass
class Point:
    x: int
    where: Path


class Colour(enum.Enum):
    RED = "red"


def returning(declared: Any, value: Any) -> CognitiveTool:
    """A tool whose function is declared to return one and returns the other."""

    def probe() -> Any:
        """Probe."""
        return value

    probe.__annotations__["return"] = declared
    with registering_in(ToolTable()):
        return tool_of(cognitive_tool(probe))


KEPT: list[tuple[Any, Any, Any]] = [
    (int, 3, 3),
    (float, 3, 3),
    (str | None, None, None),
    (list[str], ["a"], ["a"]),
    (Person, Person(name="ann"), {"name": "ann", "age": 3}),
    (Person, {"name": "ann"}, {"name": "ann"}),
    (list[Person], [Person(name="ann")], [{"name": "ann", "age": 3}]),
    (Point, Point(1, Path("a/b")), {"x": 1, "where": "a/b"}),
    (Path, Path("a/b"), "a/b"),
    (date, date(2026, 1, 2), "2026-01-02"),
    (Colour, Colour.RED, "red"),
    (Decimal, Decimal("1.50"), "1.50"),
    (UUID, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Any, 3, 3),
    (object, "x", "x"),
    (None, None, None),
]


@pytest.mark.parametrize(("declared", "value", "data"), KEPT)
def test_a_value_of_the_declared_type_is_data(declared: Any, value: Any, data: Any) -> None:
    result = gateway(returning(declared, value)).pass_through("(probe)")
    assert (result.status, result.value) == ("ok", data)


WRONG: list[tuple[Any, Any, str]] = [
    (int, "3", "probe returned a str, and it declares int."),
    (int, True, "probe returned a bool, and it declares int."),
    (str, None, "probe returned None, and it declares str."),
    (Person, "ann", 'probe returned a str, and it declares {"name" str  ["age" int = 3]}.'),
    (
        Person,
        {"nam": "ann"},
        'probe returned a value in which ["name"] is missing, and it declares {"name" str  ["age" int = 3]}.',
    ),
    (
        Person,
        {"name": "ann", "agee": 3},
        'probe returned a value in which ["agee"] is unknown, and it declares {"name" str  ["age" int = 3]}.',
    ),
    (list[int], [1, "b"], "probe returned a value in which [1] is a str, and it declares list of int."),
    (
        dict[str, int],
        {"a": None},
        'probe returned a value in which ["a"] is None, and it declares dict of int.',
    ),
]


@pytest.mark.parametrize(("declared", "value", "sentence"), WRONG)
def test_a_value_of_another_type_is_an_error_that_does_not_tell_the_value(
    declared: Any, value: Any, sentence: str
) -> None:
    result = gateway(returning(declared, value)).pass_through("(probe)")
    assert (result.status, result.message) == ("error", sentence)


def test_what_is_returned_stands_in_the_belt_and_travels_in_an_entry() -> None:
    made = returning(Person, None)
    assert '  Returns: {"name" str ["age" int = 3]}\n' in belt(ToolTable((made,)))
    away = entry_tool(made.entry, lambda: None, remote="redis")
    assert str(away.returns) == '{"name" str  ["age" int = 3]}'
    assert away.entry == made.entry
    assert "returns" not in tool("other").entry


def test_a_tool_in_hy_declares_it_too(tmp_path: Path) -> None:
    text = (
        "(require quoth [def-cognitive-tool])\n"
        '(def-cognitive-tool count-it "Count." :returns (get list int) :body ["a"])\n'
    )
    table = load(files(tmp_path, {"my.hy": text}) / "my.hy")
    assert gateway(*table).pass_through("(count-it)").message == (
        "count-it returned a value in which [0] is a str, and it declares list of int."
    )
