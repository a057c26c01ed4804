"""What a run leaves behind is freed when it is over, without a search for garbage: where hundreds of agents
work in one process, such a search holds up all of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from words import async_agent, files, native, tool

from quoth.agent.run.run import Run
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import ToolError

TEXT = {"text": {"type": str}}
READS = native(("read-file", {"path": "a.txt"}), ("read-file", {"path": "b.txt"}))


@pytest.fixture(autouse=True)
def no_search() -> Iterator[None]:
    gc.freeze()  # else each search looks at all that the tests have imported
    gc.disable()
    yield
    gc.enable()


async def left_behind(work: Callable[[str], Awaitable[Any]]) -> set[str]:
    """The classes of quoth whose objects only a search finds after this work, which is done twice: what is
    made at the first use only is kept."""
    await work("Go on.")
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await work("And again.")
        gc.collect()
        return {type(one).__name__ for one in gc.garbage if type(one).__module__.startswith("quoth.")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def refuse(text: str) -> str:
    raise ToolError(f"{text} is not for you.")


async def refuse_later(text: str) -> str:
    await asyncio.sleep(0)
    return refuse(text)


def fail(text: str) -> float:
    return 1 / len(text[:0])


@pytest.mark.parametrize(
    "replies",
    [
        ["Done."],
        ['(echo :text "one")', '(echo :text "two")', "Done."],
        ['(read-file :path "a.txt")', "Done."],
        [READS, "Done."],
        ['(refuse :text "x")', '(refuse-later :text "x")', '(fail :text "x")', "Done."],
        ["(no-such-tool)", "(echo :text 1", '(echo :txt "x")', "Done."],
        ['(eval :program "(echo :text \\"a\\")")', "Done."],
        ['(cognitive-loop :task "Look.")', '(echo :text "below")', "Looked.", "Done."],
    ],
    ids=[
        "no call",
        "calls",
        "a read",
        "reads side by side",
        "errors",
        "mistakes",
        "a program",
        "a sub-agent",
    ],
)
async def test_a_run_leaves_nothing_to_be_searched_for(tmp_path: Path, replies: list[Any]) -> None:
    files(tmp_path, {"a.txt": "a\n", "b.txt": "b\n"})
    dialect = "native" if READS in replies else "call-form"
    tools = [tool(one.__name__.replace("_", "-"), one, params=TEXT) for one in (refuse, refuse_later, fail)]
    async with async_agent(tmp_path, *replies * 2, tools=tools, dialect=dialect) as agent:
        assert await left_behind(agent.run) == set()


async def test_a_call_without_a_run_leaves_nothing_either(tmp_path: Path) -> None:
    async with async_agent(tmp_path) as agent:
        assert await left_behind(lambda text: agent.call(f'(echo :text "{text}")')) == set()


async def test_it_is_noticed_if_something_does(tmp_path: Path) -> None:
    """A tool that keeps its own context, and a run that holds itself."""

    def keeps(ctx: ToolContext) -> str:
        vars(ctx)["ring"] = ctx
        return "kept"

    tools = [tool("keeps", keeps)]
    async with async_agent(tmp_path, *["(keeps)", "Done."] * 2, tools=tools) as agent:
        assert "ToolContext" in await left_behind(agent.run)


async def test_a_context_that_is_kept_keeps_its_run_as_it_was(tmp_path: Path) -> None:
    """What goes on after its run has all that it had."""
    kept: list[ToolContext] = []

    def keep(ctx: ToolContext) -> str:
        kept.append(ctx)
        return "kept"

    async with async_agent(tmp_path, "(keep)", "Done.", tools=[tool("keep", keep)]) as agent:
        reply = await agent.run("Go on.")
        (context,) = kept
        assert [text for who, text in context.talk()][:1] == ["Go on."]
        assert context.seconds_left() > 0
        assert context.may_read("a.txt")
        assert reply.ok
        runs = [ref(one) for one in gc.get_objects() if isinstance(one, Run) and one.session == agent.session]
        assert len(runs) == 1
        del kept[:], context
        assert runs[0]() is None
