"""Calls of one reply that only read run side by side; everything else waits for its turn. Their results are
told in the order of the reply."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sentences import IT_RUNS_A_PROGRAM, IT_USES_THE_NETWORK
from words import Later, TalkingFunction, async_agent, grouped, native, scripted, tool

from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.agent.run.limits import RunLimits
from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.call import deny
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import ToolError
from quoth.tools.history.event import read_form
from quoth.tools.registry.table import CognitiveTool

TEXT = {"text": {"type": str, "default": ""}}


class Room:
    """A room in which the bodies of calls are at work; the diary says who came and went."""

    def __init__(self) -> None:
        self.diary: list[str] = []
        self.inside = self.most = 0
        self.came = asyncio.Event()
        self.waits_for = 1  # so many must be inside before anybody goes

    async def work(self, text: str) -> str:
        self.diary.append(f"+{text}")
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside >= self.waits_for:
            self.came.set()
        try:
            await asyncio.wait_for(self.came.wait(), 30)
            await asyncio.sleep(0.002)
            if text == "bad":
                raise ToolError("It is bad.")
            return f"<{text}>"
        finally:
            self.inside -= 1
            self.diary.append(f"-{text}")

    def tools(self, **more: Any) -> list[CognitiveTool]:
        return [
            tool("look", self.work, params=TEXT, effects=["reads"]),
            tool("other", self.work, params=TEXT, **more),
        ]


@pytest.fixture
def room() -> Room:
    return Room()


async def runs(folder: Path, room: Room, *replies: Any, **options: Any) -> Reply:
    given = {"tools": room.tools(), "session": "s", "user": "ann", "policy": None, **options}
    given.setdefault("model", scripted(*replies))
    async with AsyncAgent(**grouped(workspace=folder, **given)) as agent:
        return await agent.run("Look.")


def looks(*texts: str) -> str:
    return "\n".join(f'(look :text "{text}")' for text in texts)


def said(reply: Reply) -> list[Any]:
    return [call.result.value if call.result.ok else call.result.status for call in reply.calls]


async def test_calls_that_only_read_run_side_by_side_and_are_told_in_the_order_of_the_reply(
    tmp_path: Path, room: Room
) -> None:
    room.waits_for = 3
    async with async_agent(tmp_path, looks("a", "b", "c"), "Done.", tools=room.tools()) as agent:
        reply = await agent.run("Look.")
        rows, events = agent.audit.rows(), list(agent.transcript.events(agent.session))
    assert room.diary[:3] == ["+a", "+b", "+c"]
    assert said(reply) == ["<a>", "<b>", "<c>"]
    assert sorted((row["place"], row["status"], row["stage"]) for row in rows) == [
        (place, "ok", "body") for place in range(3)
    ]
    forms = [str(read_form(event.data["form"])) for event in events if event.kind == "call"]
    assert forms == looks("a", "b", "c").splitlines()
    receipts = {event.data["id"] for event in events if event.kind == "receipt"}
    assert receipts == {row["id"] for row in rows} == {call.result.id for call in reply.calls}


async def test_native_calls_run_side_by_side_too(tmp_path: Path, room: Room) -> None:
    room.waits_for = 2
    calls = native(("look", {"text": "a"}), ("look", {"text": "b"}))
    reply = await runs(tmp_path, room, calls, "Done.", dialect="native")
    assert said(reply) == ["<a>", "<b>"]


@pytest.mark.parametrize("most", [1, 2, 4])
async def test_so_many_run_at_once_as_the_run_allows(tmp_path: Path, room: Room, most: int) -> None:
    room.waits_for = most
    reply = await runs(tmp_path, room, looks(*"abcdef"), "Done.", limits=RunLimits(parallel=most))
    assert room.most == most
    assert said(reply) == [f"<{text}>" for text in "abcdef"]


ALONE = {
    "it writes": {"effects": ["writes"]},
    IT_RUNS_A_PROGRAM: {"effects": ["reads", "runs"]},
    IT_USES_THE_NETWORK: {"effects": ["net"]},
    "it changes memory": {"effects": ["memory"]},
    "it says nothing of its effects": {},
    "it is expensive": {"effects": ["reads"], "cost": "expensive"},
    "it has a cooldown": {"effects": ["reads"], "cooldown": 0.001},
    "it has a daily limit": {"effects": ["reads"], "daily_limit": 5},
}


@pytest.mark.parametrize("why", ALONE)
async def test_what_may_do_more_than_read_runs_alone_and_nothing_behind_it_begins_before_it_has_ended(
    tmp_path: Path, room: Room, why: str
) -> None:
    reply = await runs(
        tmp_path,
        room,
        f'{looks("a", "b")}\n(other :text "x")\n{looks("c", "d")}',
        "Done.",
        tools=room.tools(**ALONE[why]),
        consent="yes",
    )
    assert said(reply) == ["<a>", "<b>", "<x>", "<c>", "<d>"]
    place = room.diary.index("+x")
    assert sorted(room.diary[:place]) == ["+a", "+b", "-a", "-b"]
    assert room.diary[place + 1] == "-x"


async def test_a_call_that_a_rule_asks_about_stops_none_beside_it(tmp_path: Path, room: Room) -> None:
    rules = tmp_path / "p.hy"
    rules.write_text('(ask (look :text "x"))')
    reply = await runs(tmp_path, room, looks("a", "x", "b"), "Done.", policy=rules, consent=Later())
    assert said(reply) == ["<a>", "pending", "<b>"]
    assert sorted(room.diary) == ["+a", "+b", "-a", "-b"]


async def test_a_guard_that_denies_stops_a_call_among_others(tmp_path: Path, room: Room) -> None:
    guarded = tool("look", room.work, guard=lambda text: deny("no") if text == "x" else True, params=TEXT,
                   effects=["reads"])  # fmt: skip
    reply = await runs(tmp_path, room, looks("a", "x", "b"), "Done.", tools=[guarded])
    assert said(reply) == ["<a>", "denied", "<b>"]
    assert "+x" not in room.diary


async def test_one_failing_call_cancels_nobody(tmp_path: Path, room: Room) -> None:
    room.waits_for = 3
    reply = await runs(tmp_path, room, looks("a", "bad", "c"), "Done.")
    assert said(reply) == ["<a>", "error", "<c>"]
    assert reply.calls[1].result.message == "It is bad."


async def test_the_same_call_twice_in_a_reply_is_still_made_once(tmp_path: Path, room: Room) -> None:
    reply = await runs(tmp_path, room, looks("a", "a", "b"), "Done.")
    assert said(reply) == ["<a>", "<a>", "<b>"]
    assert sorted(room.diary) == ["+a", "+b", "-a", "-b"]
    assert [call.result.audit["stage"] for call in reply.calls] == ["body", "receipt", "body"]


async def test_no_more_calls_begin_than_the_run_has_left(tmp_path: Path, room: Room) -> None:
    reply = await runs(tmp_path, room, looks("a", "b", "c", "d"), "Done.", limits=RunLimits(calls=2))
    assert said(reply) == ["<a>", "<b>", "limited", "limited"]
    assert sorted(room.diary) == ["+a", "+b", "-a", "-b"]


async def test_a_run_with_calls_side_by_side_is_replayed_as_it_was(tmp_path: Path, room: Room) -> None:
    await runs(tmp_path, room, looks("a", "b", "bad"), looks("c", "d"), "Done.")
    came = len(room.diary)
    async with AsyncAgent(workspace=tmp_path, tools=room.tools(), session="s", user="ann") as agent:
        found = await agent.replay("s")
    assert found.differences == []
    assert len(room.diary) == came


class Counting(TalkingFunction):
    """A model each of whose replies costs ten tokens."""

    async def complete(self, messages: Messages, **options: Any) -> Completion:
        return replace(await super().complete(messages), usage=Usage(8, 2))


async def test_what_calls_side_by_side_ask_of_the_model_is_recorded_once(tmp_path: Path) -> None:
    async def ponder(text: str, ctx: ToolContext) -> str:
        await asyncio.sleep(0.01)
        return await ctx.model.complete(text)

    def reply(messages: Messages) -> str:
        if messages[-1]["content"] in "abc":
            return "Hm."
        return "Done." if len(messages) > 3 else '(ponder "a")\n(ponder "b")\n(ponder "c")'

    asking = tool("ponder", ponder, params=TEXT, effects=["reads"])
    async with AsyncAgent(workspace=tmp_path, model=Counting(reply), tools=[asking], session="s") as agent:
        ended = await agent.run("Ponder.")
        events = list(agent.transcript.events("s"))
    assert said(ended) == ["Hm."] * 3
    assert ended.usage.tokens == 50
    assert sum(sum(one.data["usage"].values()) for one in events if one.kind == "spent") == 30


async def test_a_message_of_a_call_side_by_side_belongs_to_that_call(tmp_path: Path) -> None:
    async def tell(text: str, ctx: ToolContext) -> str:
        await asyncio.sleep(0.01)
        await ctx.router.send_message(text)
        return text

    telling = tool("tell", tell, params=TEXT, effects=["reads"])
    async with async_agent(tmp_path, '(tell "a")\n(tell "b")', "Done.", tools=[telling]) as agent:
        reply = await agent.run("Tell.")
        sent = [one for one in agent.transcript.events(agent.session) if one.kind == "sent"]
    assert {(one.data["text"], one.key) for one in sent} == {
        (call.result.value, call.key) for call in reply.calls
    }
