"""What two chats of one host share may not be changed by either of them: plan mode, the model and the
conversation are each chat's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from words import async_agent, files

from quoth.agent.client import AsyncAgent
from quoth.agent.session.session import Session
from quoth.tools.consent.requests import Decision

# The parts that are one for all chats, each with what keeps chats apart in it, or why nothing need.
ONE_FOR_ALL = {
    "workspace": "the folder, and the files that no tool may touch: protection is only ever added",
    "_opened_store": "the file of the workspace; rows have their session",
    "audit": "append-only; rows have their session",
    "transcript": "append-only; events have their session",
    "call_log": "events have the session of their call",
    "origins": "answers for the session of a call",
    "_snapshots": "rows have their session and user",
    "broker": "requests have their session",
    "door": "calls have their session; a host that takes other tools makes another door",
    "table": "a host that takes other tools has another table",
    "catalog": "of the table",
    "policy": "the rules, read once",
    "config": "the settings, read once",
    "models": "a host that takes another model has other Models",
    "offers": "a cache: the same for whoever asks",
    "funds": "what one user may spend a day, in whatever chat",
    "_sandbox": "the pool of workers; a program has a worker of its own",
    "_embedder": "a model that is loaded once",
    "_given": "the services that the program has given; frozen",
    "limits": "replaced as a whole",
}
ATOMS = (str, bytes, int, float, bool, type(None), Path, MappingProxyType)


def shared(one: AsyncAgent, other: AsyncAgent) -> Iterator[tuple[str, Any]]:
    """What both hosts hold and one of them may change, by its name."""
    for name, value in vars(one).items():
        if vars(other).get(name) is value and not is_fixed(value):
            yield name, value


def is_fixed(value: Any) -> bool:
    return isinstance(value, ATOMS) or (isinstance(value, tuple | frozenset) and all(map(is_fixed, value)))


async def used(folder: Path) -> AsyncAgent:
    """A host in plan mode that has had a conversation of its own."""
    files(folder, {"a.txt": "one\n"})
    host = async_agent(folder, "First.", "Second.", "Third.", "Fourth.", plan=True)
    await host.say("The code is 4711.")
    return host


async def test_two_chats_and_their_host_share_only_parts_that_keep_them_apart(tmp_path: Path) -> None:
    async with await used(tmp_path) as host:
        one, other = host.for_chat("1"), host.for_chat("2")
        for pair in ((one, other), (host, one)):
            assert {name for name, _ in shared(*pair)} <= ONE_FOR_ALL.keys()
        found = {name for name, _ in shared(one, other)}
        assert {"broker", "door", "models", "transcript"} <= found  # the walk sees


async def test_a_chat_that_leaves_plan_mode_leaves_the_others_and_their_record_in_it(tmp_path: Path) -> None:
    async with await used(tmp_path) as host:
        one, other = host.for_chat("1"), host.for_chat("2")
        one.use_plan_mode(False)
        await one.say("a")
        await other.say("b")
        known = [Session(host.transcript, chat.session, host.user, Path()) for chat in (host, one, other)]
        assert [chat.plan for chat in (host, one, other)] == [True, False, True]
        assert [bool(session.given().get("plan")) for session in known] == [True, False, True]


async def test_the_model_that_a_chat_takes_is_recorded_in_its_session_alone(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("Other.")
    async with await used(tmp_path) as host:
        one, other = host.for_chat("1"), host.for_chat("2")
        one.use_model(f"scripted:{tmp_path / 'r.txt'}")
        assert (await one.say("a")).text == "Other."
        await other.say("b")
        known = [Session(host.transcript, chat.session, host.user, Path()) for chat in (one, other)]
        assert [str(session.given().get("model", "")).endswith("r.txt") for session in known] == [True, False]


async def test_a_chat_does_not_go_on_with_the_conversation_of_its_host(tmp_path: Path) -> None:
    async with await used(tmp_path) as host:
        one = host.for_chat("1")
        await one.say("What is the code?")
        (request,) = host.transcript.events(one.session, kind="request")
        assert "4711" not in request.text
        (stimulus,) = host.transcript.events(one.session, kind="stimulus")
        assert "after" not in stimulus.data


async def test_the_flight_of_a_chat_saves_its_plan_before_its_person_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.agent.flight.engine.EVERY", 600)  # nothing else writes the file meanwhile
    step = "#+begin_src hy\n{}\n#+end_src\n"
    first, then = step.format("(+ 1 1)"), step.format('(write-file :path "{}.txt" :content "x")')
    plans = [tmp_path / f"{chat}.org" for chat in "12"]
    for plan in plans:
        plan.write_text(f"* PLAN a\n{first}* PLAN b\n{then.format(plan.stem)}")
    seen: list[list[bool]] = []
    both = asyncio.Event()

    class Person:
        async def request(self, *_: Any) -> Decision:
            seen.append(["* DONE a" in plan.read_text() for plan in plans])
            both.set() if len(seen) == 2 else await both.wait()
            return Decision("once", "ann")

    async with async_agent(tmp_path, consent=Person()) as host:
        flown = [host.for_chat(plan.stem).fly(plan) for plan in plans]
        assert all(report.ok for report in await asyncio.gather(*flown))
    assert any(seen[0])
    assert seen[1] == [True, True]
