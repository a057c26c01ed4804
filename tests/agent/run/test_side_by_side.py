"""Calls that only read run side by side, and begin while their reply still arrives; everything else waits for
its turn, and what is told and recorded is as if each had been made after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from words import Later, TalkingFunction, async_agent, files, grouped, native, scripted, tool

from quoth import HostServices, ModelOptions
from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.agent.run.run import RunLimits
from quoth.neuro.backends.base import Completion, ModelError
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.call import ask, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import ToolError
from quoth.tools.history.event import read_form
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool, ToolTable

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
    assert [(row["place"], row["status"], row["stage"]) for row in rows] == [
        (place, "ok", "body") for place in range(3)
    ]
    forms = [str(read_form(event.data["form"])) for event in events if event.kind == "call"]
    assert forms == looks("a", "b", "c").splitlines()
    kinds = [event.kind for event in events if event.kind in ("call", "receipt")]
    assert kinds == ["call", "receipt"] * 3
    ids = [event.data["id"] for event in events if event.kind == "receipt"]
    assert ids == [row["id"] for row in rows] == [call.result.id for call in reply.calls]


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
    "it runs a program": {"effects": ["reads", "runs"]},
    "it uses the network": {"effects": ["net"]},
    "it changes memory": {"effects": ["memory"]},
    "it says nothing of its effects": {},
    "it is expensive": {"effects": ["reads"], "cost": "expensive"},
    "it has a cooldown": {"effects": ["reads"], "cooldown": 0.001},
    "it has a daily limit": {"effects": ["reads"], "daily_limit": 5},
    "its guard asks": {"effects": ["reads"], "guard": lambda: ask("may it?")},
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


async def test_a_call_that_a_rule_asks_about_waits_for_its_turn(tmp_path: Path, room: Room) -> None:
    rules = tmp_path / "p.hy"
    rules.write_text('(ask (look :text "x"))')
    reply = await runs(tmp_path, room, looks("a", "x", "b"), "Done.", policy=rules, consent=Later())
    assert said(reply) == ["<a>", "pending", "<b>"]
    assert room.diary == ["+a", "-a", "+b", "-b"]


async def test_a_guard_that_denies_stops_a_call_that_is_begun_early(tmp_path: Path, room: Room) -> None:
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


async def test_the_calls_of_a_body_that_was_begun_early_wait_for_its_turn(tmp_path: Path) -> None:
    """They are recorded, and may do more than read."""
    diary: list[str] = []

    async def first() -> str:
        await asyncio.sleep(0.01)
        diary.append("first")
        return "1"

    async def second(ctx: ToolContext) -> str:
        diary.append("second begins")
        assert ctx.dispatch is not None
        ctx.say("It wrote.")
        return str((await ctx.dispatch(CallForm("write"))).value)

    table = ToolTable(
        (
            tool("first", first, effects=["reads"]),
            tool("second", second, effects=["reads"]),
            tool("write", lambda: diary.append("write") or "w", effects=["writes"]),
        )
    )
    async with async_agent(tmp_path, "(first)\n(second)", "Done.", tools=table, consent="yes") as agent:
        reply = await agent.run("Do it.")
        rows = [row["tool"] for row in agent.audit.rows()]
    assert diary == ["second begins", "first", "write"]
    assert said(reply) == ["1", "w"]
    assert reply.calls[1].result.message == "It wrote."
    assert rows == ["first", "write", "second"]


# * While the reply still arrives


class Streaming(TalkingFunction):
    """A model that says a part of its reply, waits for ``until``, and says the rest, or fails."""

    def __init__(self, head: str, tail: str | None, until: Callable[[], bool]) -> None:
        super().__init__(lambda messages: "Done.")
        self.head, self.tail, self.until = head, tail, until

    async def complete(self, messages: Messages, *, on_text: Any = None, **options: Any) -> Completion:
        if len(messages) > 2:
            return await super().complete(messages)
        for letter in self.head:
            on_text(letter)
        for _ in range(2000):
            if self.until():
                break
            await asyncio.sleep(0.001)
        if self.tail is None:
            raise ModelError("The stream broke off.")
        on_text(self.tail)
        return Completion(self.head + self.tail)


async def streamed(
    folder: Path,
    room: Room,
    head: str,
    tail: str | None,
    until: Callable[[], bool],
    dialect: str | None = None,
    **more: Any,
) -> tuple[Reply, list[dict[str, Any]], list[str]]:
    model = ModelOptions(Streaming(head, tail, until), dialect=dialect)
    given: dict[str, Any] = {"tools": room.tools(effects=["writes"]), "consent": "yes", **more}
    async with AsyncAgent(
        workspace=folder, model=model, session="s", on_event=lambda event: None, **given
    ) as agent:
        reply = await agent.run("Look.")
        kinds = [event.kind for event in agent.transcript.events("s")]
        return reply, agent.audit.rows(), kinds


async def test_a_call_that_only_reads_begins_as_soon_as_it_is_written(tmp_path: Path, room: Room) -> None:
    ended: list[str] = []

    def until() -> bool:
        ended[:] = room.diary
        return "-a" in room.diary

    reply, rows, kinds = await streamed(tmp_path, room, looks("a") + "\n", looks("b"), until)
    assert ended == ["+a", "-a"]  # before the reply had ended
    assert said(reply) == ["<a>", "<b>"]
    assert [(row["status"], row["stage"]) for row in rows] == [("ok", "body")] * 2
    assert kinds[2:9] == ["request", "reply", "call", "receipt", "call", "receipt", "request"]


async def test_nothing_begins_in_a_thought(tmp_path: Path, room: Room) -> None:
    for head in (f"<think>\n{looks('a')}\n", f"Hm.\n{looks('a')}\nNo.\n"):  # its template began the second
        moments = count()
        reply, _, _ = await streamed(
            tmp_path, room, head, "</think>\nDone.", lambda moments=moments: next(moments) > 20
        )
        assert (reply.text, reply.calls, room.diary) == ("Done.", (), [])


async def test_what_stands_behind_a_call_that_does_more_waits_for_the_end_of_the_reply(
    tmp_path: Path, room: Room
) -> None:
    seen: list[str] = []
    head = f'{looks("a")}\n(other :text "x")\n{looks("b")}\n'

    def until() -> bool:
        seen[:] = room.diary
        return "-a" in room.diary

    reply, _, _ = await streamed(tmp_path, room, head, "So.", until)
    assert seen == ["+a", "-a"]
    assert room.diary == ["+a", "-a", "+x", "-x", "+b", "-b"]
    assert said(reply) == ["<a>", "<x>", "<b>"]


async def test_a_call_waits_for_the_end_of_a_reply_that_may_tell_how_sure_it_is(
    tmp_path: Path, room: Room
) -> None:
    rules = files(tmp_path, {"rules.hy": "(deny (look) (confidence < 0.5))"}) / "rules.hy"
    tools, moments = [tool("look", room.work, params=TEXT, effects=["reads"], tag="LOOK")], count()
    reply, _, _ = await streamed(
        tmp_path,
        room,
        "LOOK: a\n",
        "CONFIDENCE: 0.2",
        lambda: next(moments) > 20,
        "tags",
        tools=tools,
        policy=rules,
        services=HostServices(confidence=0.9),
    )
    assert (said(reply), room.diary) == (["denied"], [])


async def test_what_was_begun_for_a_reply_that_broke_off_is_stopped_and_only_the_audit_tells_of_it(
    tmp_path: Path, room: Room
) -> None:
    room.waits_for = 99
    reply, rows, kinds = await streamed(tmp_path, room, looks("a") + "\n", None, lambda: "+a" in room.diary)
    assert (reply.status, reply.error, reply.calls) == ("failed", "The stream broke off.", ())
    assert room.diary == ["+a", "-a"]
    assert kinds == ["session", "stimulus", "request", "reply", "end"]
    (row,) = rows
    assert (row["tool"], row["status"], row["stage"], row["message"]) == (
        "look", "cancelled", "body", "look was begun early, and its call was not made."
    )  # fmt: skip
    assert len(asyncio.all_tasks()) == 1
