"""A body calls another tool, through the door: ``await ctx.call(…)``, or ``ctx.call(…).wait()``."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import SecretStr
from words import agent, complaint, files, gateway, tool

from quoth import (
    CallFailed,
    Decision,
    Secret,
    StrictModel,
    ToolContext,
    ToolError,
    Workspace,
    cognitive_tool,
    deny,
    registering_in,
    tool_of,
)
from quoth.testing import tool_context
from quoth.tools.call.context import NEVER_AWAITED, ON_THE_LOOP
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import ToolTable


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def sync_sum(first: int, second: int, ctx: ToolContext) -> int:
    """Add doubles."""
    return int(ctx.call("double", number=first).wait() + ctx.call(double, second).wait())


async def async_sum(first: int, second: int, ctx: ToolContext) -> int:
    """Add doubles."""
    return sum(await asyncio.gather(ctx.call("double", first), ctx.call(f"(double :number {second})")))


def own_loop_sum(first: int, second: int, ctx: ToolContext) -> int:
    """Add doubles, in a loop of its own."""

    async def added() -> int:
        return int(await ctx.call(double, number=first) + await ctx.call(CallForm("double", {}, (second,))))

    return asyncio.run(added())


@pytest.mark.parametrize("function", [sync_sum, async_sum, own_loop_sum])
def test_a_body_calls_another_tool_through_the_door(function: Callable[..., Any]) -> None:
    here = gateway(tool_of(double), tool_of(function))
    name = tool_of(function).name
    result = here.pass_through(f"({name} 1 2)", user="ann")
    assert (result.status, result.value) == ("ok", 6)
    rows = [(row["tool"], row["route"], row["user"], row["depth"]) for row in here.rows]
    assert rows == [("double", "tool", "ann", 1), ("double", "tool", "ann", 1), (name, "python", "ann", 0)]


@pytest.mark.parametrize("text", ['(.wait (ctx.call "double" :number n))', '(await (ctx.call "double" n))'])
def test_hy_does_the_same(tmp_path: Path, text: str) -> None:
    form = f'(def-cognitive-tool twice "D." :parameters [n {{:type int}}] :body {text})'
    files(tmp_path, {"t.hy": f"(require quoth [def-cognitive-tool])\n{form}\n"})
    with agent(tmp_path, tools=[double, tmp_path / "t.hy"]) as it:
        assert it.call("(twice 4)").value == 8


def sync_refused(ctx: ToolContext) -> str:
    """Try."""
    try:
        ctx.call("locked").wait()
    except CallFailed as error:
        return f"{error.result.status}: {error}"
    return "open"


async def async_refused(ctx: ToolContext) -> str:
    """Try."""
    try:
        await ctx.call("locked")
    except ToolError as error:
        return f"denied: {error}"
    return "open"


def test_a_call_that_is_not_ok_raises() -> None:
    locked = tool("locked", guard=lambda: deny("it is locked"))
    for function in (sync_refused, async_refused):
        made = tool_of(function)
        said = gateway(locked, made).pass_through(f"({made.name})")
        assert said.value == "denied: locked was denied: it is locked."

    def careless(ctx: ToolContext) -> Any:
        """Try."""
        return ctx.call("locked").wait()

    result = gateway(locked, tool_of(careless)).pass_through("(careless)")
    assert (result.status, result.message) == ("error", "locked was denied: it is locked.")


def test_an_unknown_tool_and_wrong_arguments_are_told() -> None:
    def careless(tool: str, ctx: ToolContext) -> Any:
        """Try."""
        return ctx.call(tool, numbr=1).wait()

    here = gateway(tool_of(double), tool_of(careless))
    assert (
        here.pass_through('(careless "duble")').message
        == "There is no tool named duble. Did you mean double?"
    )
    assert ":numbr is unknown (did you mean :number?)" in here.pass_through('(careless "double")').message
    assert (
        "double :number 1) has its arguments already."
        in here.pass_through('(careless "(double :number 1)")').message
    )


def test_arguments_are_plain_data_and_names_are_normalised() -> None:
    def told(the_day: str, list: list[str]) -> Any:
        """Tell."""
        return [the_day, list]

    def careless(ctx: ToolContext) -> Any:
        """Try."""
        return ctx.call("Told", the_day=date(2026, 1, 2), list=("a", Path("b"))).wait()

    assert gateway(tool_of(told), tool_of(careless)).pass_through("(careless)").value == [
        "2026-01-02",
        ["a", "b"],
    ]


class Login(StrictModel):
    name: str
    key: SecretStr


def log_in(who: Login, token: Annotated[str, Secret("The token")] = "") -> str:
    """Log in."""
    return who.key.get_secret_value()[::-1] + token[::-1]


def test_a_secret_value_arrives_at_a_secret_parameter_and_at_no_other() -> None:
    def careful(ctx: ToolContext) -> Any:
        """Try."""
        who = Login(name="ann", key=SecretStr("xyzzy"))
        return ctx.call("log-in", who=who, token=SecretStr("plugh")).wait()

    def nested(ctx: ToolContext) -> Any:
        """Try."""
        return ctx.call(log_in, {"name": "ann", "key": SecretStr("xyzzy")}).wait()

    def careless(ctx: ToolContext) -> Any:
        """Try."""
        return ctx.call("double", SecretStr("xyzzy")).wait()

    here = gateway(*map(tool_of, (double, log_in, careful, nested, careless)))
    assert here.pass_through("(careful)").value == "yzzyxhgulp"
    assert here.pass_through("(nested)").value == "yzzyx"
    said = here.pass_through("(careless)").message
    assert ":number should be int" in said
    assert "xyzzy" not in said + str(here.rows)


def test_waiting_on_the_event_loop_is_refused() -> None:
    async def careless(ctx: ToolContext) -> Any:
        """Try."""
        return ctx.call("double", 1).wait()

    said = gateway(tool_of(double), tool_of(careless)).pass_through("(careless)").message
    assert said == ON_THE_LOOP


async def test_waiting_in_an_async_test_is_refused_and_in_a_thread_it_is_not() -> None:
    context = tool_context(tools=[double])
    assert complaint(ToolError, lambda: context.call("double", 1).wait()) == ON_THE_LOOP
    assert await asyncio.to_thread(sync_sum, 1, 2, context) == 6


@pytest.mark.parametrize("tool", [7, None, ["double"]])
def test_a_tool_that_is_no_name_is_refused(tool: Any) -> None:
    said = complaint(ToolError, lambda: tool_context(tools=[double]).call(tool))
    assert said == f"ctx.call takes the name of a tool, its function or a whole form, not {tool!r}."


def forgetful(ctx: ToolContext) -> int:
    """Forget."""
    ctx.call("double", 1)
    return 5


async def async_forgetful(ctx: ToolContext) -> int:
    """Forget."""
    await ctx.call("double", 1)
    ctx.call("double", 2)
    return 5


async def returns_call(ctx: ToolContext) -> Any:
    """Forget."""
    return ctx.call("double", 2)


@pytest.mark.parametrize("function", [forgetful, async_forgetful, returns_call])
def test_a_call_that_its_body_never_awaits_is_an_error(function: Callable[..., Any]) -> None:
    made = tool_of(function)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = gateway(tool_of(double), made).pass_through(f"({made.name})")
        gc.collect()
    assert (result.status, result.message) == ("error", f"ctx.call('double', …) {NEVER_AWAITED}")
    assert warned == []


def test_a_call_that_a_sync_body_returns_is_awaited() -> None:
    def lazy(ctx: ToolContext) -> Any:
        """Return it."""
        return ctx.call("double", 2)

    assert gateway(tool_of(double), tool_of(lazy)).pass_through("(lazy)").value == 4


def test_without_a_body_a_call_that_is_never_awaited_is_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="was never awaited"):
        forgetful(tool_context(tools=[double]))


def test_a_body_that_waits_is_stopped_at_its_deadline_and_so_is_its_call() -> None:
    stopped = threading.Event()

    async def slow() -> None:
        """Sleep."""
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    def waiting(ctx: ToolContext) -> Any:
        """Wait."""
        return ctx.call("slow").wait()

    with registering_in(ToolTable()):
        cognitive_tool(timeout=0.3)(waiting)
    assert gateway(tool_of(slow), tool_of(waiting)).pass_through("(waiting)").status == "timeout"
    assert stopped.wait(10)


def test_a_call_that_waits_for_a_person_has_its_caller_wait_and_is_resumed(tmp_path: Path) -> None:
    begun: list[str] = []

    def writing(ctx: ToolContext) -> Any:
        """Write."""
        begun.append("begun")
        return ctx.call("write-file", path="a.txt", content="x").wait()

    with agent(tmp_path, tools=[writing], session="s") as it:
        result = it.call("(writing)")
        assert (result.status, (tmp_path / "a.txt").exists()) == ("pending", False)
        (request,) = it.broker.requests()
        it.broker.decide(request.id, Decision("once", "ann"))
        (again,) = it.resume()
    assert again.status == "ok"
    assert (tmp_path / "a.txt").read_text() == "x"
    assert begun == ["begun", "begun"]


def test_without_a_door_there_is_a_sentence_or_the_doors_double() -> None:
    context = ToolContext(Workspace("."))
    assert complaint(ToolError, lambda: context.call("double", 1)).startswith("This context has no door")

    async def dispatch(form: CallForm, name: str = "", dry: bool = False) -> Any:
        from quoth import ToolResult

        return ToolResult("1", form.tool, "ok", [str(form)])

    context = ToolContext(Workspace("."), dispatch=dispatch)
    assert context.call("double", 1).wait() == ["(double 1)"]
