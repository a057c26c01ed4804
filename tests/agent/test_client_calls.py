"""A program that serves others makes a call for each of them: under their name, with their request's id, and
is told what a call waits for and why a run ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from words import Spy, grouped, scripted, tool

from quoth import RunLimits, ToolOptions, UsageError
from quoth.agent.client import AsyncAgent
from quoth.neuro.backends.base import Completion, Usage
from quoth.tools.consent.requests import Decision
from quoth.tools.registry.table import ToolTable


class Served:
    """An agent with one tool that writes, and one that reads."""

    def __init__(self, folder: Path, rules: str = "(allow (put))") -> None:
        self.folder, self.put, self.look = folder, Spy(), Spy()
        (folder / "rules.hy").write_text(rules)

    def agent(self, *replies: Any, **options: Any) -> AsyncAgent:
        table = ToolTable()
        text = {"text": {"type": str}}
        tool("put", self.put, params=text, effects=["writes"], table=table)
        tool("look", self.look, params=text, effects=["reads"], table=table)
        given = {"session": "s", "user": "ann", "policy": self.folder / "rules.hy"}
        tools = ToolOptions([*table])
        given |= {"tools": tools, "model": scripted(*replies)}
        return AsyncAgent(**grouped(workspace=self.folder, **given | options))


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)


@pytest.mark.parametrize("name", ["put", "look"])
async def test_a_call_made_again_under_its_key_returns_the_receipt(served: Served, name: str) -> None:
    form = f'({name} :text "a")'
    async with served.agent() as agent:
        first = await agent.call(form, route="python", key="7")
    async with served.agent() as agent:
        again = await agent.call(form, route="python", key="7")
        other = await agent.call(form, route="python", key="8")
    assert (first.status, again.status, other.status) == ("ok", "ok", "ok")
    assert [first.audit["stage"], again.audit["stage"], other.audit["stage"]] == ["body", "receipt", "body"]
    assert getattr(served, name).calls == 2


async def test_a_key_belongs_to_one_call_of_one_user(served: Served) -> None:
    async with served.agent() as agent:
        await agent.call('(put :text "a")', route="python", key="7")
        with pytest.raises(UsageError) as refused:
            await agent.call('(put :text "b")', route="python", key="7")
        assert str(refused.value) == (
            'The key 7 belongs to the call (put :text "a"). Give each call a key of its own.'
        )
        assert (await agent.call('(put :text "b")', route="python", user="zoe", key="7")).ok
    assert served.put.calls == 2


async def test_a_call_made_twice_at_once_under_its_key_runs_once(served: Served) -> None:
    async with served.agent() as agent:
        made = [agent.call('(put :text "a")', route="python", key="7") for _ in range(3)]
        stages = [result.audit["stage"] for result in await asyncio.gather(*made)]
    assert (sorted(stages), served.put.calls) == (["body", "receipt", "receipt"], 1)


async def test_a_key_finds_a_call_with_a_secret_and_one_of_an_unknown_tool(tmp_path: Path) -> None:
    login, table = Spy(), ToolTable()
    params = {"token": {"type": str, "secret": True}}
    tool("login", login, params=params, effects=["writes"], table=table)
    async with Served(tmp_path, "(allow (login))").agent(tools=ToolOptions([*table])) as agent:
        for _ in range(2):
            assert (await agent.call('(login :token "s3cret")', key="7")).ok
            assert (await agent.call("(nope)", key="8")).status == "unknown"
        with pytest.raises(UsageError, match="belongs to the call") as refused:
            await agent.call('(login :token "0ther")', key="7")
    assert (login.calls, "s3cret" in str(refused.value)) == (1, False)


async def test_a_call_is_judged_and_recorded_under_its_user(tmp_path: Path) -> None:
    served = Served(tmp_path, '(allow (put) (user "ann"))\n(deny (put) (user "zoe") :why "not zoe")')
    async with served.agent() as agent:
        assert (await agent.call('(put :text "a")', route="python")).ok
        denied = await agent.call('(put :text "a")', route="python", user="zoe")
        rows = [(row["user"], row["status"]) for row in agent.audit.rows()]
        with pytest.raises(UsageError, match="an unpaired surrogate"):
            await agent.call("(put)", user="\udc80")
        with pytest.raises(UsageError, match="The user is a text, not 5"):
            await agent.call("(put)", user=5)
    assert (denied.status, rows) == ("denied", [("ann", "ok"), ("zoe", "denied")])


async def test_a_call_that_waits_names_its_request_and_its_key_continues_it(tmp_path: Path) -> None:
    served = Served(tmp_path, "(ask (put))")
    async with served.agent() as agent:
        waits = await agent.call('(put :text "a")', route="python", user="zoe", key="7")
        (request,) = agent.broker.requests()
        assert (waits.status, waits.request, waits.to_json()["request"]) == (
            "pending",
            request.id,
            request.id,
        )
        agent.broker.decide(request.id, Decision("once"))
        done = await agent.call('(put :text "a")', route="python", user="zoe", key="7")
        rows = [(row["user"], row["status"]) for row in agent.audit.rows() if row["tool"] == "put"]
    assert (done.status, done.request) == ("ok", "")
    assert rows[-1] == ("zoe", "ok")


@pytest.mark.parametrize(
    "program", ['(put :text "a")', '(eval (quote (put :text "a")))', '(pmap put ["a" "b"])']
)
async def test_a_program_that_waits_names_the_request_inside(tmp_path: Path, program: str) -> None:
    served = Served(tmp_path, "(ask (put))\n(allow (eval))")
    async with served.agent() as agent:
        waits = await agent.eval(f"(do (+ 1 2) {program})", route="python")
        ids = [request.id for request in agent.broker.requests()]
    assert (waits.status, waits.request in ids) == ("pending", True)


async def test_a_run_of_a_sub_agent_that_waits_names_the_request(tmp_path: Path) -> None:
    served = Served(tmp_path, "(ask (put))\n(allow (cognitive-loop))")
    async with served.agent('(put :text "a")') as agent:
        waits = await agent.call('(cognitive-loop "Do it.")', route="python")
        (request,) = agent.broker.requests()
    assert (waits.status, waits.request) == ("pending", request.id)


async def test_a_recalled_result_has_the_request_that_it_waits_for(tmp_path: Path) -> None:
    model = scripted('(cognitive-loop :task "Put it.")', '(write-file :path "a" :content "b")', "Done.")
    async with AsyncAgent(**grouped(workspace=tmp_path, model=model, session="s")) as agent:
        reply = await agent.run("Put it.")
        (request,) = agent.broker.requests()
    async with AsyncAgent(**grouped(workspace=tmp_path, model=scripted(), session="s")) as agent:
        past = agent.host.record.past("r1")
        results = [one.result() for one in past.calls.values()]
    assert [call.result.request for call in reply.calls] == [request.id]
    assert [one.request for one in results] == [request.id]


REFUSED = Completion("I cannot help.", Usage(), "refused")
CUT = Completion('(put :text "aaaa', Usage(), "length")


@pytest.mark.parametrize(
    ("replies", "limits", "reason"),
    [
        (["Fine."], {}, "answered"),
        (['(put :text "a")', "Fine."], {}, "pending"),
        (['(look :text "a")'] * 3, {"steps": 2}, "max-steps"),
        ([CUT] * 3, {}, "max-tokens"),
        (["(((", "(((", "((("], {}, "failed"),
        ([REFUSED], {}, "refused"),
        (["Fine."], {"tokens": 1}, "budget"),
    ],
)
async def test_a_reply_has_the_reason_why_it_ended(
    tmp_path: Path, replies: list[Any], limits: dict[str, Any], reason: str
) -> None:
    served = Served(tmp_path, "(ask (put))")
    async with served.agent(*replies, limits=RunLimits(**limits)) as agent:
        reply = await agent.run("Do it.")
    assert (reply.reason, reply.to_json()["reason"]) == (reason, reason)


async def test_an_interrupted_run_was_cancelled(served: Served) -> None:
    async with served.agent('(look :text "a")', "Fine.") as agent:
        agent.on_event = lambda event: agent.interrupt() if event.kind == "call" else None
        reply = await agent.run("Do it.")
    assert (reply.status, reply.reason) == ("interrupted", "cancelled")
