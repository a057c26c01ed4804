"""One id a call: in events, the person's question, the request, the receipt, the result and the audit; and
calls inside other calls make events too, which name the call that made them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from words import files, grouped, scripted, tool

from quoth import Decision, ToolOptions
from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.terminal.progress import INNER_CALLS, Progress
from quoth.tools.registry.table import ToolTable

TEXT = {"text": {"type": str}}


class Person:
    """Says yes, and remembers which calls it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def request(self, tool: Any, call: Any, reason: str) -> Decision:
        self.asked.append(call.id)
        return Decision("once", "ann")


def opened(folder: Path, *replies: Any, **options: Any) -> tuple[AsyncAgent, list[AgentEvent], Person]:
    table = ToolTable()
    tool("put", lambda text: text, params=TEXT, effects=["writes"], table=table)
    tool("look", lambda text: text, params=TEXT, effects=["reads"], table=table)
    files(folder, {"rules.hy": "(ask (put))\n(allow (eval))\n(allow (cognitive-loop))"})
    heard: list[AgentEvent] = []
    person = Person()
    given = {"tools": ToolOptions([*table]), "policy": folder / "rules.hy", "session": "s", "user": "ann"}
    given |= {"model": scripted(*replies), "on_event": heard.append, "consent": person}
    return AsyncAgent(**grouped(workspace=folder, **given | options)), heard, person


def told(heard: list[AgentEvent], kind: str, name: str) -> list[AgentEvent]:
    """The events of the calls of a tool."""
    form = (lambda event: event.data) if kind == "call" else (lambda event: event.data.form)
    return [event for event in heard if event.kind == kind and form(event).tool == name]


async def test_a_call_has_one_id_wherever_it_is_told(tmp_path: Path) -> None:
    agent, heard, person = opened(tmp_path, '(put :text "a")', "Done.")
    async with agent:
        reply = await agent.run("Do it.")
        (request,) = agent.broker.requests(every=True)
        (row,) = [row for row in agent.audit.rows() if row["tool"] == "put" and row["route"] == "reply"]
        receipts = [event.data["id"] for event in agent.transcript.events("s", kind="receipt")]
    (call,), (result,) = told(heard, "call", "put"), told(heard, "result", "put")
    (question,) = [event for event in heard if event.kind == "question"]
    ids = {call.call, result.call, question.call, request.call, row["id"], *person.asked, *receipts}
    assert ids == {reply.calls[0].result.id}
    assert reply.to_json()["calls"][0]["id"] == call.call
    assert (call.to_json()["call"], call.parent) == (call.call, "")


async def test_calls_in_a_program_name_the_call_of_the_program(tmp_path: Path) -> None:
    agent, heard, _ = opened(tmp_path, '(eval (do (setv x (look "a")) (put x)))', "Done.")
    async with agent:
        await agent.run("Do it.")
        rows = {row["tool"]: row for row in agent.audit.rows() if row["route"] != "decision"}
    (program,) = told(heard, "call", "eval")
    for name in ("look", "put"):
        (call,), (result,) = told(heard, "call", name), told(heard, "result", name)
        assert (call.call, call.parent) == (result.call, result.parent) == (rows[name]["id"], program.call)
    (question,) = [event for event in heard if event.kind == "question"]
    assert (question.call, question.parent) == (rows["put"]["id"], program.call)


async def test_calls_of_a_sub_agent_name_the_call_that_it_works_for(tmp_path: Path) -> None:
    agent, heard, _ = opened(tmp_path, '(cognitive-loop :task "Look.")', '(look "a")', "Seen.", "Done.")
    async with agent:
        await agent.run("Do it.")
    (outer,), (inner,) = told(heard, "call", "cognitive-loop"), told(heard, "call", "look")
    assert inner.parent == outer.call
    assert [who.call for who in inner.path] != []


async def test_calls_of_a_flight_make_events(tmp_path: Path) -> None:
    agent, heard, _ = opened(tmp_path)
    files(tmp_path, {"plan.org": '* PLAN a\n#+begin_src hy\n(look "a")\n#+end_src\n'})
    async with agent:
        await agent.fly(tmp_path / "plan.org")
        rows = {row["tool"]: row["id"] for row in agent.audit.rows()}
    assert [event.call for event in told(heard, "call", "look")] == [rows["look"]]


async def test_a_declared_secret_of_an_inner_call_is_in_no_event(tmp_path: Path) -> None:
    secret = tool(
        "unlock", lambda key: "ok", params={"key": {"type": str, "secret": True}}, effects=["reads"]
    )
    agent, heard, _ = opened(tmp_path, '(eval (unlock "tops3cret"))', "Done.", tools=[secret])
    async with agent:
        await agent.run("Do it.")
    (inner,) = told(heard, "call", "unlock")
    assert "tops3cret" not in str(inner.data)
    assert "tops3cret" not in str([event.to_json() for event in heard if event.call == inner.call])


async def test_progress_shows_inner_calls_below_the_program(tmp_path: Path) -> None:
    out = io.StringIO()
    program = '(eval (do (for [n (range 30)] (look (str n))) (put "a")))'
    agent, _, _ = opened(tmp_path, program, "Done.", on_event=Progress(out, color=False))
    async with agent:
        await agent.run("Do it.")
    lines = out.getvalue().splitlines()
    assert sum(line.startswith("  → (look ") for line in lines) == INNER_CALLS
    assert [line for line in lines if line.startswith("  …")] == ["  … more calls"]
    assert [line for line in lines if line.startswith("← ok")]


async def test_progress_shows_no_calls_of_the_forms_of_a_flight(tmp_path: Path) -> None:
    out = io.StringIO()
    agent, _, _ = opened(tmp_path, on_event=Progress(out, color=False))
    files(tmp_path, {"plan.org": '* PLAN a\n#+begin_src hy\n(look "a")\n#+end_src\n'})
    async with agent:
        await agent.fly(tmp_path / "plan.org")
    assert "look" not in out.getvalue()


async def test_progress_shows_the_sub_agent_of_a_program_that_is_not_shown(tmp_path: Path) -> None:
    out = io.StringIO()
    agent, _, _ = opened(tmp_path, '(look "a")', "Seen.", on_event=Progress(out, color=False))
    async with agent:
        await agent.eval('(cognitive-loop "Look." :tools ["look"])')
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert lines[:2] == ["▷ Look.", '→ (look "a")']
    assert lines[2].startswith("← ok")
