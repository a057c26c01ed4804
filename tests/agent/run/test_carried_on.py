"""Calls that waited and are carried on: what was paid is paid, what was edited stays so, whose it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sentences import NOTHING_WAITS_IN_SESSION
from words import Agent, Spy, Terminal, complaint, desk, files, form, quoth, scripted, tool

from quoth.agent.client import AsyncAgent
from quoth.tools.call.call import ALLOW, ask
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Store


def at(folder: Path, *replies: Any, **options: Any) -> Agent:
    """An agent of ann's in session s, as if in a process of its own."""
    given = {"session": "s", "user": "ann", "model": scripted(*replies), **options}
    return Agent(workspace=folder, **given)


def approve(agent: Agent, kind: Any = "once", **more: Any) -> str:
    """What ann decides of the newest open request; its form."""
    request = agent.broker.requests()[-1]
    return agent.broker.decide(request.id, Decision(kind, "ann", **more)).form


WRITE = '(write-file :path "a.txt" :content "x")'


def test_an_approved_call_is_made_though_the_run_has_had_its_calls(tmp_path: Path) -> None:
    from quoth.agent.run.limits import RunLimits

    with at(tmp_path, WRITE, limits=RunLimits(calls=1)) as first:
        assert first.run("Write.").status == "pending"
        approve(first)
    with at(tmp_path, "Done.", limits=RunLimits(calls=1)) as second:
        (reply,) = second.resume()
    assert (reply.status, (tmp_path / "a.txt").read_text()) == ("done", "x")


def test_a_call_that_waits_in_its_body_takes_one_place_of_its_limit(store: Store) -> None:
    async def body(ctx: ToolContext) -> str:
        await ctx.permission.request("persona", "it is yours")
        return "done"

    here = desk(store, tool(body=body, daily_limit=1), limits=StoreLimits(lambda: store), workspace=".")
    begun = here.pass_through("(probe)", user="ann", session="s")
    assert begun.status == "pending"
    here.decide()
    assert here.pass_through("(probe)", user="ann", session="s", key=begun.id).status == "ok"
    assert here.pass_through("(probe)", user="ann", session="s").status == "limited"


def test_what_is_said_twice_in_a_conversation_is_done_twice_and_a_task_that_is_run_again_is_not(
    tmp_path: Path,
) -> None:
    body = Spy("done")
    table = ToolTable((tool(body=body),))
    with at(tmp_path, *["(probe)", "Done."] * 4, tools=table) as it:
        it.say("Run the tests.")
        it.say("Run the tests.")
        assert body.calls == 2
        it.run("Run the tests.")
        it.run("Run the tests.")
        assert body.calls == 3


def test_an_edited_call_that_comes_to_wait_stays_edited(tmp_path: Path) -> None:
    files(tmp_path, {"p.hy": "(ask (eval))"})
    policy = tmp_path / "p.hy"
    with at(tmp_path, policy=policy) as first:
        assert first.eval('(write-file :path "one" :content "1")').status == "pending"
        approve(first, "edit", form=form('(eval (write-file :path "two" :content "2"))'))
        assert [result.status for result in first.resume()] == ["pending"]
        assert approve(first) == '(write-file :path "two" :content "2")'
    with at(tmp_path, policy=policy) as second:
        assert [result.status for result in second.resume()] == ["ok"]
        assert second.broker.requests() == []
    assert [(tmp_path / name).exists() for name in ("one", "two")] == [False, True]


def test_each_asked_read_of_a_program_is_asked_about_once(tmp_path: Path) -> None:
    files(tmp_path, {"p.hy": "(ask (read-file))", "f": "1", "g": "2"})
    with at(tmp_path, policy=tmp_path / "p.hy") as it:
        asked = []
        results = [it.eval('(+ (read-file "f") (read-file "g"))')]
        while results[-1].status == "pending":
            asked.append(approve(it))
            results += it.resume()
    assert asked == ['(read-file :path "f")', '(read-file :path "g")']
    assert results[-1].value == "12"


def test_a_deadline_stands_still_while_a_person_is_asked_about_an_inner_call(tmp_path: Path) -> None:
    class Slow:
        async def request(self, *_: Any) -> Any:
            await asyncio.sleep(0.6)
            return ALLOW

    async def outer(ctx: ToolContext) -> str:
        assert ctx.dispatch is not None
        return (await ctx.dispatch(form("(inner)"))).status

    inner = tool("inner", guard=Spy(ask("sure?")))
    table = ToolTable((tool("outer", outer, timeout=0.3), inner))

    async def go() -> Any:
        async with AsyncAgent(workspace=tmp_path, tools=table, consent=Slow()) as agent:
            return await agent.call("(outer)")

    assert asyncio.run(go()).value == "ok"
    slow = tool("slow", lambda: asyncio.sleep(5), timeout=0.3)
    with at(tmp_path, tools=ToolTable((slow,))) as it:
        assert it.call("(slow)").status == "timeout"


def test_a_receipt_answers_nothing_that_a_rule_denies_by_now(tmp_path: Path) -> None:
    files(tmp_path, {"f": "1", "no.hy": "(deny (read-file))"})
    for policy, status, stage in (
        (None, "ok", "body"),
        (None, "ok", "receipt"),
        ("no.hy", "denied", "receipt"),
    ):
        options = {} if policy is None else {"policy": tmp_path / policy}
        with at(tmp_path, '(read-file :path "f")', "Done.", **options) as it:
            (call,) = it.run("Look.").calls
            assert (call.result.status, call.result.audit["stage"]) == (status, stage)


def test_two_users_of_one_session_wait_apart(tmp_path: Path) -> None:
    with at(tmp_path) as ann:
        ann.call(WRITE)
    with at(tmp_path, user="bob", consent="yes") as bob:
        assert complaint(UsageError, bob.resume) == f"{NOTHING_WAITS_IN_SESSION} s."
    with at(tmp_path, user="bob") as bob:
        bob.call('(write-file :path "b.txt" :content "x")')
    with at(tmp_path) as ann:
        approve(ann, "deny", why="no")  # the newest is bob's
        assert [request.user for request in ann.broker.requests()] == ["ann"]
        approve(ann)
        assert [result.status for result in ann.resume()] == ["ok"]
    said = quoth("resume", "s", "--user", "bob", cwd=tmp_path)
    assert (said.code, said.err) == (1, "quoth: write-file was denied: the person said: no.\n")


def test_a_call_that_is_made_again_by_hand_does_not_wait_any_more(tmp_path: Path) -> None:
    with at(tmp_path) as it:
        it.call(WRITE)
        approve(it)
        assert it.call(WRITE).ok
        assert complaint(UsageError, it.resume) == f"{NOTHING_WAITS_IN_SESSION} s."


def telling(token: str) -> Any:
    return ask(f"send with {token}")


def test_what_a_guard_asks_hides_declared_secrets_from_everybody(store: Store) -> None:
    with registering_in(ToolTable()):
        made: CognitiveTool = define_tool(
            "probe",
            "A tool for a test.",
            parameters={"token": {"type": str, "secret": True}},
            body=lambda: "done",
            guard=telling,
        )
    result = desk(store, made).pass_through('(probe :token "hunter2x")')
    assert result.status == "pending"
    assert "send with [secret]" in result.message


def test_a_program_that_a_tool_has_started_is_asked_nothing_at_a_terminal(tmp_path: Path) -> None:
    inside = {"QUOTH_INSIDE": "1"}
    with Terminal("call", WRITE, cwd=tmp_path, env=inside) as terminal:
        terminal.see("waits for a person's approval")
        assert terminal.ended() == 3
    assert not (tmp_path / "a.txt").exists()


def test_the_repl_says_where_another_session_goes_on_and_takes_its_words_apart(tmp_path: Path) -> None:
    with at(tmp_path, session="my chat") as other:
        other.call(WRITE)
        (request,) = other.broker.requests()
    with Terminal("--session", "here", "--user", "ann", cwd=tmp_path) as terminal:
        terminal.prompted()
        terminal.enter(f",approve {request.id}")
        terminal.see("To continue: quoth resume 'my chat'")
        terminal.prompted()
        terminal.enter(", resume")
        terminal.see(f"{NOTHING_WAITS_IN_SESSION} here.")
        terminal.prompted()
        terminal.enter(",resume now")
        terminal.see(",resume continues this session. For another: quoth resume now")
        terminal.prompted()
        terminal.enter(",quit now")
        assert terminal.ended() == 0


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_a_clock_that_was_never_held_up_adds_nothing(seconds: float) -> None:
    from quoth.tools.call.context import PausableClock, within

    async def go() -> tuple[bool, bool]:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        clock = PausableClock()
        missed = await within(never, seconds, clock)
        clock.pause()
        clock.pause()
        clock.go_on()
        held = asyncio.ensure_future(within(never, seconds + 0.01, clock))
        await asyncio.sleep(0.2)
        waited = not held.done()
        clock.go_on()
        await held
        return missed, waited

    assert asyncio.run(go()) == (False, True)
