"""Chats side by side, on a host that answers from a script: queues, order, what is told once, and what a new
start goes on with."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chats import Host, echo
from words import async_agent, tool

from quoth.agent.chat.chats import Chats
from quoth.agent.chat.inbox import KEPT_SECONDS, Inbox
from quoth.agent.chat.lines import ChatMessage, Choice, Outgoing
from quoth.agent.reply import FollowUp
from quoth.tools.errors import BusyError, UsageError
from quoth.tools.storage.database import Store


class Room:
    """The chats of a host, and what they said; ``deaf`` says that nobody is there to hear."""

    def __init__(self, store: Store, host: Host, **more: Any) -> None:
        self.inbox = Inbox(lambda: store)
        self.said: list[Outgoing] = []
        self.deaf = False
        self.crash = (-1, False)  # the process ends at the line with this number, gone out or not
        self.chats = Chats(host, self.inbox, self._hear, **more)

    async def _hear(self, line: Outgoing) -> bool:
        at, went_out = self.crash
        crashes = at == len(self.said)
        if not self.deaf and (went_out or not crashes):
            self.said.append(line)
        if crashes:
            raise asyncio.CancelledError
        return not self.deaf

    def send(self, text: str, id: int | str = 1, chat: str = "7", user: str = "ann") -> Outgoing | None:
        return self.chats.accept(ChatMessage(id, user, chat, text))

    @property
    def texts(self) -> list[tuple[Any, str, str]]:
        return [(line.id, line.kind, line.text) for line in self.said]


def test_messages_of_a_chat_are_answered_in_their_order_by_who_said_them(store: Store) -> None:
    async def story() -> None:
        host = Host(echo)
        room = Room(store, host)
        for number, user in enumerate(["ann", "ben", "ann"]):
            assert room.send(f"m{number}", number, user=user) is None
        await room.chats.finish()
        assert room.texts == [(0, "reply", "m0!"), (1, "reply", "m1!"), (2, "reply", "m2!")]
        assert host.heard == [("7", "ann", "m0"), ("7", "ben", "m1"), ("7", "ann", "m2")]

    asyncio.run(story())


def test_a_slow_chat_holds_up_no_other(store: Store) -> None:
    async def story() -> None:
        go_on = asyncio.Event()

        async def slowly(text: str) -> str:
            if text == "slow":
                await go_on.wait()
            return text

        room = Room(store, Host(slowly))
        room.send("slow", 1, "7")
        room.send("after it", 2, "7")
        for number in range(50):
            room.send("quick", number, f"other {number}")
        await room.chats.finish({f"other {number}" for number in range(50)})
        assert len(room.said) == 50
        go_on.set()
        await room.chats.finish()
        assert [line.text for line in room.said[50:]] == ["slow", "after it"]

    asyncio.run(story())


def test_more_than_so_many_do_not_wait(store: Store) -> None:
    async def story() -> None:
        room = Room(store, Host(echo), waiting=2)
        room.send("in work", 0)
        refused = [room.send(f"m{number}", number) for number in range(1, 5)]
        await room.chats.finish()
        assert [line and line.text for line in refused] == [
            None,
            None,
            *["Chat 7 already has 2 messages waiting. Send this one again later."] * 2,
        ]
        assert [line.id for line in room.said] == [0, 1, 2]
        assert room.send("m3", 3) is None  # it was not accepted, so it is no repetition
        await room.chats.finish()
        assert room.texts[-1] == (3, "reply", "m3!")

    asyncio.run(story())


def test_an_id_is_answered_once_in_its_chat(store: Store) -> None:
    async def story() -> None:
        host = Host(echo)
        room = Room(store, host)
        for id, chat in ((1, "7"), (1, "7"), ("1", "7"), (1, "8")):
            assert room.send("Hello", id, chat) is None
        await room.chats.finish()
        assert room.send("Hello again", 1) is None
        again = Room(store, host)  # after a new start, too
        again.chats.start()
        assert again.send("Hello again", 1) is None
        await again.chats.finish()
        assert sorted((line.chat or "", str(line.id)) for line in room.said) == [
            ("7", "1"),
            ("7", "1"),
            ("8", "1"),
        ]
        assert (len(host.heard), again.said) == (3, [])

    asyncio.run(story())


def test_follow_ups_come_after_the_reply_and_once(store: Store) -> None:
    async def story() -> None:
        host = Host(echo, follow_ups=(FollowUp("r1/1.0", "Found."), FollowUp("r1/1.1", "Filed.")))
        room = Room(store, host)
        room.send("Look")
        await room.chats.finish()
        assert room.texts == [(1, "reply", "Look!"), (1, "followup", "Found."), (1, "followup", "Filed.")]

    asyncio.run(story())


@pytest.mark.parametrize("went_out", [False, True], ids=["not gone", "gone"])
@pytest.mark.parametrize("line", range(4))
def test_a_start_goes_on_with_what_was_accepted(store: Store, line: int, went_out: bool) -> None:
    """The process ends at one of the lines, before that has gone out or before this is written down: each
    line comes, and no more than that one twice."""

    async def story() -> None:
        host = Host(echo, follow_ups=(FollowUp("r1/1.0", "Found."),))
        room = Room(store, host)
        room.crash = line, went_out
        room.send("one", 1)
        room.send("two", 2)
        await asyncio.gather(*room.chats._working.values(), return_exceptions=True)
        again = Room(store, host)
        again.chats.start()
        await again.chats.finish()
        whole = [
            (1, "reply", "one!"),
            (1, "followup", "Found."),
            (2, "reply", "two!"),
            (2, "followup", "Found."),
        ]
        assert room.texts == whole[: line + went_out]
        assert again.texts == whole[line:]

    asyncio.run(story())


def test_lines_that_nobody_hears_are_kept(store: Store) -> None:
    async def story() -> None:
        room = Room(store, Host(echo, follow_ups=(FollowUp("r1/1.0", "two\nlines"),)))
        room.deaf = True
        room.send("Hello", 1)
        room.send("And you", 2)
        room.send("Others", 1, "8")
        await room.chats.finish()
        taken: list[bytes] = []

        async def take(line: bytes) -> bool:
            taken.append(line)
            return len(taken) != 3  # who listens is gone with the third line

        await room.chats.hand_over(take, "7")
        assert len(taken) == 3
        taken.clear()
        taken += [b""] * 3
        await room.chats.hand_over(take, "7")
        assert [line.count(b"\n") for line in taken[3:]] == [1] * 2  # the second message's, once more
        assert b'"text": "And you!"' in taken[3]
        await room.chats.hand_over(take, "7")
        assert len(taken) == 5
        await room.chats.hand_over(take)
        assert len(taken) == 7

    asyncio.run(story())


def test_an_approved_call_that_cannot_be_made_now_is_told_and_tried_at_the_next_start(store: Store) -> None:
    async def broken(text: str) -> str:
        raise UsageError("There is no such tool.")

    async def start(host: Host) -> Room:
        room = Room(store, host)
        room.chats.start()
        await room.chats.finish()
        return room

    async def story() -> None:
        inbox = Inbox(lambda: store)
        one = inbox.accept(ChatMessage(1, "ann", "7", "Do it."))
        one.state, one.told = "asked", {"reply 0", "request r1"}
        inbox.save(one)
        assert (await start(Host(broken))).texts == [(1, "error", "There is no such tool.")]
        assert (await start(Host(broken))).texts == []  # it was told
        assert (await start(Host(echo))).texts == [(1, "reply", "Do it.!")]
        assert inbox.unfinished() == []

    asyncio.run(story())


def test_one_that_cannot_be_answered_ends_no_other(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    async def broken(text: str) -> str:
        if text == "usage":
            raise UsageError("That cannot be.")
        if text == "bug":
            raise OSError("/home/ann/key is empty")
        return text

    async def story() -> None:
        room = Room(store, Host(broken))
        for number, text in enumerate(["usage", "bug", "fine"]):
            room.send(text, number)
        await room.chats.finish()
        assert room.texts == [
            (0, "error", "That cannot be."),
            (1, "error", "The message could not be answered (OSError)."),
            (2, "reply", "fine"),
        ]

    asyncio.run(story())
    assert capsys.readouterr().err == "quoth: chat 7: OSError: /home/ann/key is empty\n"  # for the host alone


@pytest.mark.parametrize(
    ("looks", "said"), [(2, (1, "reply", "Hello.")), (9, (1, "error", "Session chat-7 is busy."))]
)
def test_a_chat_that_another_process_drives_is_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch, looks: int, said: tuple[int, str, str]
) -> None:
    monkeypatch.setattr("quoth.agent.chat.chats.WATCH_SECONDS", 0)
    monkeypatch.setattr("quoth.agent.chat.chats.BUSY_LOOKS", 5)

    async def busy(text: str) -> str:
        nonlocal looks
        looks -= 1
        if looks >= 0:
            raise BusyError("Session chat-7 is busy.")
        return "Hello."

    async def story() -> None:
        room = Room(store, Host(busy))
        room.send("Hi.")
        await room.chats.finish()
        assert room.texts == [said]

    asyncio.run(story())


def test_at_the_end_a_message_that_waits_for_another_process_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.agent.chat.chats.WATCH_SECONDS", 0)

    async def busy(text: str) -> str:
        raise BusyError("Session chat-7 is busy.")

    async def story() -> None:
        room = Room(store, Host(busy))
        room.send("Hi.")
        await asyncio.sleep(0)
        assert await room.chats.stop(5)
        assert room.texts == []
        assert [one.message.text for one in Inbox(lambda: store).unfinished()] == ["Hi."]

    asyncio.run(story())


@pytest.mark.parametrize("late", [False, True])
def test_at_the_end_what_is_in_work_is_answered_and_no_more(store: Store, late: bool) -> None:
    async def story() -> None:
        go_on = asyncio.Event()

        async def slowly(text: str) -> str:
            await go_on.wait()
            return text

        room = Room(store, Host(slowly))
        room.send("in work", 1)
        room.send("waits", 2)
        await asyncio.sleep(0)
        if not late:
            asyncio.get_running_loop().call_soon(go_on.set)
        assert await room.chats.stop(0 if late else 60) is not late
        assert [line.text for line in room.said] == ([] if late else ["in work"])
        left = [one.message.text for one in room.inbox.unfinished()]
        assert left == (["in work", "waits"] if late else ["waits"])

    asyncio.run(story())


def test_what_is_answered_leaves_its_id_and_no_text(store: Store) -> None:
    async def story() -> None:
        room = Room(store, Host(echo))
        room.send("my secret words")
        await room.chats.finish()
        assert store.execute("SELECT id, text, state, lines FROM inbox") == [("1", "", "answered", "")]

    asyncio.run(story())


def test_ids_are_forgotten_after_half_a_year(store: Store) -> None:
    now = [1e9]
    inbox = Inbox(lambda: store, lambda: now[0])
    old, waits = (ChatMessage(id, "ann", "7", "Hello") for id in (1, 2))
    done = inbox.accept(old)
    done.state = "answered"
    inbox.save(done)
    inbox.accept(waits)
    now[0] += KEPT_SECONDS + 1
    assert [one.message for one in inbox.unfinished()] == [waits]
    assert (inbox.has(old), inbox.has(waits)) == (False, True)


def test_chats_that_were_idle_for_long_are_let_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.agent.chat.chats.IDLE_CHATS", 3)

    async def story() -> None:
        room = Room(store, Host(echo))
        for number in range(10):
            room.send("Hello", 1, str(number))
            await room.chats.finish()
        assert list(room.chats._talkers) == ["7", "8", "9"]

    asyncio.run(story())


def test_who_decides_at_once_is_heard(store: Store, tmp_path: Path) -> None:
    """The decision comes while the line that asks is still going out."""
    pressed: list[str] = []
    press = tool(
        "press",
        lambda text: pressed.append(text),
        params={"text": {"type": str}},
        effects=["writes"],
        tag="PRESS",
    )

    async def story() -> None:
        async with async_agent(tmp_path, "PRESS: one", tools=[press], dialect="tags") as agent:
            said: list[tuple[str, str]] = []

            async def hear(line: Outgoing) -> bool:
                said.append((line.kind, line.text))
                if line.request:
                    assert chats.decide(Choice(None, "ann", "7", line.request["id"], True)) is None
                return True

            chats = Chats(agent.runs, Inbox(lambda: agent.store), hear, approvers=["ann"])
            chats.accept(ChatMessage(1, "ben", "7", "Please press it."))
            await chats.finish()
            assert said[0] == ("reply", "")
            assert [kind for kind, _ in said] == ["reply", "asked"]
            assert pressed == ["one"]

    asyncio.run(story())


def test_who_approves_another_change_than_was_shown_sees_the_new_one(tmp_path: Path) -> None:
    async def story() -> None:
        write = '(write-file :path "a.txt" :content "new")'
        async with async_agent(tmp_path, write, dialect="call-form", after_tags="stop") as agent:
            asked: list[str] = []

            async def hear(line: Outgoing) -> bool:
                asked.extend([line.request["id"]] if line.request else [])
                return True

            chats = Chats(agent.runs, Inbox(lambda: agent.store), hear, approvers=["ann"])
            chats.accept(ChatMessage(1, "ben", "7", "Please write it."))
            while not asked:
                await asyncio.sleep(0.01)
            (tmp_path / "a.txt").write_text("mine\n")
            told = chats.decide(Choice(2, "ann", "7", asked[0], True))
            assert told is not None
            assert (told.kind, "- mine" in told.text) == ("error", True)
            again = chats.decide(Choice(3, "ann", "7", asked[0], True))
            assert again is not None
            assert again.kind == "reply"
            await chats.finish()
        assert (tmp_path / "a.txt").read_text() == "new"

    asyncio.run(story())
