"""Bodies that are generators: their pieces are shown as they come, their value is what they return."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from words import agent, gateway, wait_until

from quoth import cognitive_tool, registering_in, tool_of
from quoth.tools.registry.parameters import Secret
from quoth.tools.registry.table import ToolTable


def counted(up_to: int) -> Generator[str, None, int]:
    """Count."""
    for number in range(up_to):
        yield f"{number + 1} of {up_to}"
    return up_to


def listed(up_to: int) -> Iterator[int]:
    """List."""
    yield from range(up_to)


async def later(up_to: int) -> AsyncIterator[str]:
    """List, later."""
    for number in range(up_to):
        await asyncio.sleep(0)
        yield f"piece {number}"


def lazy(up_to: int) -> Iterator[int]:
    """Give a generator."""
    return (number for number in range(up_to))


def shown_by(function: Callable[..., Any], call: str) -> tuple[Any, list[str]]:
    shown: list[str] = []
    made = gateway(tool_of(function), given={"shows": shown.append})
    result = made.pass_through(call)
    return result.value if result.ok else result.message, shown


@pytest.mark.parametrize(
    ("function", "value", "shown"),
    [
        (counted, 2, ["1 of 2\n", "2 of 2\n", ""]),
        (listed, [0, 1], ["0\n", "1\n", ""]),
        (later, ["piece 0", "piece 1"], ["piece 0\n", "piece 1\n", ""]),
        (lazy, [0, 1], ["0\n", "1\n", ""]),
    ],
)
def test_the_pieces_are_progress(function: Callable[..., Any], value: Any, shown: list[str]) -> None:
    assert shown_by(function, f"({function.__name__} 2)") == (value, shown)


def test_a_generator_without_a_piece_shows_nothing() -> None:
    assert shown_by(counted, "(counted 0)") == (0, [])
    assert shown_by(listed, "(listed 0)") == ([], [])


def test_what_a_generator_returns_is_declared() -> None:
    assert str(tool_of(counted).returns) == "int"
    assert str(tool_of(listed).returns) == "list of int"
    assert str(tool_of(later).returns) == "list of str"


def test_an_error_comes_after_the_pieces_before_it() -> None:
    def broken() -> Iterator[str]:
        """Break."""
        yield "begun"
        raise ValueError("no")

    said, shown = shown_by(broken, "(broken)")
    assert said.startswith("broken failed: ValueError: no")
    assert shown == ["begun\n", ""]


def test_a_generator_is_stopped_at_its_deadline_and_puts_things_away() -> None:
    ended: list[str] = []

    def endless() -> Iterator[int]:
        """Go on."""
        try:
            while True:
                yield 1
        finally:
            ended.append("sync")

    async def endless_later() -> AsyncIterator[int]:
        """Go on."""
        try:
            while True:
                await asyncio.sleep(0.01)
                yield 1
        finally:
            ended.append("async")

    with registering_in(ToolTable()):
        tools = [tool_of(cognitive_tool(timeout=0.2)(one)) for one in (endless, endless_later)]
    for made in tools:
        assert gateway(made).pass_through(f"({made.name})").status == "timeout"
    wait_until(lambda: sorted(ended) == ["async", "sync"])


def test_no_secret_is_shown() -> None:
    def login(word: Annotated[str, Secret("The word")]) -> Iterator[str]:
        """Log in."""
        yield f"with {word}"

    _, shown = shown_by(login, '(login "open-sesame")')
    assert shown == ["with [secret]\n", ""]


def test_a_stream_of_a_run_has_the_pieces(tmp_path: Path) -> None:
    with agent(tmp_path, "(counted 2)", "There are 2.", tools=[counted]) as it:
        events = [(event.kind, event.data) for event in it.stream("Count.")]
    assert [data for kind, data in events if kind == "output"] == ["1 of 2\n", "2 of 2\n", ""]
