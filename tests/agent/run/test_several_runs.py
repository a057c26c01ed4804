"""Several runs of one agent at once: each has a session of its own, and an interrupt stops them all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sentences import AND_ONE_MORE_WAS_ASKED, THE_SCRIPT_IS_EXHAUSTED
from words import TalkingFunction, async_agent

from quoth import HostServices
from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.call import Call
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import BusyError
from quoth.tools.registry.table import CognitiveTool


class Crowd:
    """A model that answers with its task once so many ask it at the same time."""

    def __init__(self, size: int) -> None:
        self.waiting, self.size = 0, size
        self.all_here = asyncio.Event()

    async def reply(self, messages: Messages) -> str:
        self.waiting += 1
        if self.waiting == self.size:
            self.all_here.set()
        await self.all_here.wait()
        return messages[-1]["content"].upper()


def crowd(folder: Path, size: int) -> AsyncAgent:
    model, kept = TalkingFunction(Crowd(size).reply), HostServices(audit=MemoryAudit())
    return AsyncAgent(workspace=folder, model=model, services=kept)


async def test_runs_at_once_have_sessions_of_their_own_and_the_first_that_of_the_agent(
    tmp_path: Path,
) -> None:
    async with crowd(tmp_path, 3) as it:
        replies = await asyncio.gather(*(it.run(task) for task in "abc"))
        assert [reply.text for reply in replies] == ["A", "B", "C"]
        assert replies[0].session == it.session
        assert len({reply.session for reply in replies}) == 3
        told = [it.transcript.last(reply.session, "end") for reply in replies]
        assert [end.data["text"] for end in told if end] == ["A", "B", "C"]


async def test_a_run_beside_a_message_of_the_conversation_leaves_that_alone(tmp_path: Path) -> None:
    async with crowd(tmp_path, 2) as it:
        said, ran = await asyncio.gather(it.say("hello"), it.run("apart"))
        assert (said.session, said.text) == (it.session, "HELLO")
        assert (ran.session != it.session, ran.text) == (True, "APART")
        assert (await it.say("again")).text == "AGAIN"


async def test_messages_of_one_conversation_at_once_are_refused_in_a_sentence(tmp_path: Path) -> None:
    async with crowd(tmp_path, 1) as it:
        first, second = await asyncio.gather(it.say("one"), it.say("two"), return_exceptions=True)
        assert isinstance(first, Reply)
        assert first.text == "ONE"
        assert isinstance(second, BusyError)
        assert str(second).startswith("This agent's session is busy: a conversation answers one message ")
        assert (await it.say("two")).text == "TWO"


async def test_runs_one_after_the_other_share_the_session(tmp_path: Path) -> None:
    async with crowd(tmp_path, 1) as it:
        assert {(await it.run("one")).session, (await it.run("two")).session} == {it.session}


async def test_an_interrupt_stops_all_of_them(tmp_path: Path) -> None:
    async with crowd(tmp_path, 9) as it:
        runs = asyncio.gather(*(it.run(task) for task in "abc"))
        while not all(one.running for one in (it.host, *it.host._beside)) or len(it.host._beside) < 2:
            await asyncio.sleep(0)
        assert it.interrupt()
        assert [reply.status for reply in await runs] == ["interrupted"] * 3
        assert not it.interrupt()


class Crowded:
    """A person who is asked several questions at once, and answers none."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}
        self.interrupted = asyncio.Event()

    @property
    def asking(self) -> bool:
        return bool(self.asked)

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> None:
        self.asked[call.session] = reason
        try:
            await self.interrupted.wait()
        finally:
            del self.asked[call.session]

    def interrupt(self) -> None:
        self.interrupted.set()


async def test_an_interrupt_leaves_the_questions_of_other_chats(tmp_path: Path) -> None:
    person = Crowded()
    async with async_agent(tmp_path, consent=person) as it:
        first, second, third = (it.for_chat(name) for name in "abc")
        calls = [
            asyncio.ensure_future(chat.call('(write-file :path "a.txt" :content "x")'))
            for chat in (first, second)
        ]
        while len(person.asked) < 2:
            await asyncio.sleep(0)
        assert not third.interrupt()
        assert not it.interrupt()
        assert {*person.asked} == {first.session, second.session}
        assert first.interrupt()
        assert (await calls[0]).status == "pending"
        assert list(person.asked) == [second.session]
        assert not first.interrupt()
        assert second.interrupt()
        assert (await calls[1]).status == "pending"
        assert person.interrupted.is_set()
        assert len(it.broker.requests()) == 2


async def test_what_waits_in_a_session_beside_is_gone_on_with_there(tmp_path: Path) -> None:
    write = '(write-file :path "a.txt" :content "hello")'
    async with async_agent(tmp_path, write, '(write-file :path "b.txt" :content "hello")') as it:
        first, second = await asyncio.gather(it.run("one"), it.run("two"))
        assert (first.status, second.status, it.runs.waits) == ("pending", "pending", True)
        (request,) = it.broker.requests(session=second.session)
        it.broker.decide(request.id, Decision("once", "ann"))
    async with async_agent(tmp_path, "Done.", session=second.session) as again:
        (resumed,) = await again.resume()
    assert (resumed.status, (tmp_path / "b.txt").read_text()) == ("done", "hello")
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("status", ["done", "failed"])
async def test_a_reply_says_whether_it_is_an_answer(tmp_path: Path, status: str) -> None:
    replies = ("Forty-two.",) if status == "done" else ()
    async with async_agent(tmp_path, *replies) as it:
        reply = await it.run("What is it?")
    if status == "done":
        assert (reply.ok, reply.text, reply.error, reply.said) == (True, "Forty-two.", "", "Forty-two.")
        assert "error" not in reply.to_json()
    else:
        why = f"{THE_SCRIPT_IS_EXHAUSTED}: it has 0 replies {AND_ONE_MORE_WAS_ASKED}."
        assert (reply.ok, reply.text, reply.error, reply.said) == (False, "", why, why)
        assert (reply.to_json()["reply"], reply.to_json()["error"]) == (why, why)
