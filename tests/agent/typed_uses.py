"""What users write in Python, for mypy --strict and pyright (test_types.py): each line with an ignore must be
a mistake to both, and all others none."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Literal, assert_type

from quoth import (
    Agent,
    AsyncAgent,
    Call,
    CallFailed,
    CallForm,
    CallRecord,
    CognitiveTool,
    Compaction,
    FlightReport,
    Output,
    Plan,
    Registry,
    Reply,
    Request,
    RunEvent,
    StepReport,
    StrictModel,
    Thought,
    ToolContext,
    ToolResult,
    Usage,
    Verdict,
    Waiting,
    WorkspacePath,
    cognitive_tool,
    deny,
    tool_of,
)


class Fruit(StrictModel):
    name: str


# Decorated functions stay what they are.


@cognitive_tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def never(number: int) -> bool | Verdict:
    return deny("never") if number > 3 else True


@cognitive_tool(effects="reads", guard=never, timeout=5, examples=["later(1)", {"number": 2}])
async def later(number: int, *, unit: str = "g") -> str:
    """Say a number."""
    return f"{number} {unit}"


@cognitive_tool(effects=["net", "messages"], tag={"prefix": "PAY"}, gate_failure="open")
def counted(up_to: int) -> Generator[str, None, int]:
    """Count."""
    yield "begun"
    return up_to


@cognitive_tool
def asked(path: WorkspacePath, call: Call, ctx: ToolContext) -> str:
    """Ask."""
    try:
        return str(ctx.call("read-file", path=path).wait())
    except CallFailed as error:
        assert_type(error.result, ToolResult)
        return f"{call.user}: {error.result.status}"


class Shop:
    @cognitive_tool
    def count(self, fruit: str) -> int:
        """Count."""
        return len(fruit)

    @cognitive_tool(effects="reads")
    async def look(self, fruit: str, ctx: ToolContext) -> list[str]:
        """Look."""
        return [str(await ctx.call(double, number=1)), fruit]


assert_type(double(21), int)
assert_type(counted(3), Generator[str, None, int])
assert_type(Shop().count("pears"), int)
assert_type(tool_of(double), CognitiveTool)
assert_type(tool_of(double).name, str)

double("21")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
name = double(21).schema  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
name = double.schema  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
Shop().count(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
cognitive_tool(efects="reads")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
cognitive_tool(cost="dear")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


# A function from one model to another.

registry = Registry()


@registry.register("ripe", Fruit, effects="reads")
def ripe(given: Fruit, ctx: ToolContext) -> bool:
    """Say whether it is ripe."""
    return bool(given.name and ctx.user)


def use_ripe(ctx: ToolContext) -> None:
    assert_type(ripe(Fruit(name="pear"), ctx), bool)
    ripe("pear", ctx)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# Agents and their replies.


def use(agent: Agent) -> None:
    assert_type(agent.run("Count."), Reply[None])
    assert_type(agent.run("Count.", files=["a.txt"], temperature=0.2).output, None)
    assert_type(agent.run("Count.", output=Fruit).output, Fruit)
    assert_type(agent.run("Count.", output=list[Fruit]).output, list[Fruit])
    assert_type(agent.run("Count.", output=Output[int | None]).output, int | None)
    assert_type(agent.run("Say.", output=Output[Literal["yes", "no"]]).output, Literal["yes", "no"])
    assert_type(agent.call("(double 21)"), ToolResult)
    agent.run("Count.", outptu=Fruit)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    for event in agent.stream("Count."):
        assert_type(event, RunEvent)


async def use_later(agent: AsyncAgent) -> None:
    assert_type(await later(1, unit="kg"), str)
    assert_type(await Shop().look("pears", agent.context()), list[str])
    assert_type(await agent.run("Count."), Reply[None])
    assert_type((await agent.run("Count.", output=Fruit)).output, Fruit)
    assert_type((await agent.run("Count.", output=Output[int | str])).output, int | str)
    async for event in agent.stream("Count.", output=Fruit):
        assert_type(event, RunEvent)


def any_reply(reply: Reply) -> str:
    return reply.text


def of_fruit(reply: Reply[Fruit]) -> str:
    return any_reply(reply) + reply.output.name


def progress() -> Iterator[str]:
    """Show progress."""
    yield "begun"


with Agent(
    workspace=".",
    tools=[
        double,
        Shop().count,
        partial(later, unit="kg"),
        progress,
        tool_of(counted),
        "shop.hy",
        Path("b.py"),
    ],
    on_event=lambda event: None,
    belt="search",
    steps=3,
) as one:
    use(one)


# The events of a run.


def hear(event: RunEvent) -> None:
    match event.kind:
        case "turn":
            assert_type(event.data, int)
        case "text" | "said" | "written" | "output" | "note" | "message" | "fault":
            assert_type(event.data, str)
        case "thought":
            assert_type(event.data, Thought)
            assert_type(event.data.usage, Usage)
        case "call":
            assert_type(event.data, CallForm)
        case "result":
            assert_type(event.data, CallRecord)
        case "usage":
            assert_type(event.data, Usage)
        case "question":
            assert_type(event.data, Request)
        case "waiting":
            assert_type(event.data, Waiting)
        case "compaction":
            assert_type(event.data, Compaction)
        case "end":
            assert_type(event.data.text, str)
        case "flight":
            assert_type(event.data, Plan)
        case "step":
            assert_type(event.data, StepReport)
        case "landed":
            assert_type(event.data, FlightReport)
    if event.kind == "turn":
        assert_type(event.data, int)


Agent(workspace=".", on_event=hear).close()
