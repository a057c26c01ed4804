"""What the hosts of one agent share: no chat, and no run beside another, may change it for the others. Plan
mode, the model, the tools and the conversation are each its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest
from words import async_agent, files, tool

from quoth import ask
from quoth.agent.client import AsyncAgent
from quoth.agent.run.host import Belongings, SessionHost
from quoth.agent.run.parts import AgentParts
from quoth.agent.session.session import Session
from quoth.neuro.backends.base import Backend
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.requests import Decision
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.storage.shared_store import WorkspaceStore

# What one agent has for all its sessions and what keeps them apart in it; the walk does not look inside.
ONE_FOR_ALL: dict[type, str] = {
    Store: "rows have their session",
    WorkspaceStore: "opens the store once",
    Transcript: "append-only; events have their session; the rest is an index of them",
    Workspace: "the files that no tool may touch: protection is only ever added",
    Backend: "a model: each request has its whole conversation",
    CognitiveTool: "frozen; what is computed of it is kept",
    MemoryAudit: "append-only; rows have their session",
}
# Attributes of shared objects that may change: caches, and records whose entries name their session.
MAY_CHANGE = {
    ("Offers", "_offered"): "a cache: the same for everyone who asks",
    ("BeltCatalog", "_other"): "a cache",
    ("RulesPolicy", "_index"): "a cache: the rules about a tool",
    ("StoreCallLog", "_secrets"): "parameters that are never written; only added to",
    ("Broker", "_table"): "the newest tools; a request is bound to the version that was asked about",
    ("Broker", "_tables"): "entries name their session",
    ("SessionHost", "_beside"): "the hosts of runs in progress, which an interrupt stops too",
}
ATOMS = (str, bytes, int, float, bool, type(None), Path, type, ModuleType, BuiltinFunctionType)


def parts_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """The values that an object holds, each with its name: attributes, elements, variables of a closure."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from enumerate(value)
    elif isinstance(value, MethodType):
        yield "self", value.__self__
    elif isinstance(value, FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            yield name, cell.cell_contents
    else:
        yield from getattr(value, "__dict__", {}).items()
        for kind in type(value).__mro__:
            for name in kind.__dict__.get("__slots__", ()):
                if hasattr(value, name):
                    yield name, getattr(value, name)


def lasting(value: Any) -> Iterator[tuple[Any, Any]]:
    """The same, without what may change."""
    return ((name, part) for name, part in parts_of(value) if (type(value).__name__, name) not in MAY_CHANGE)


def reachable(root: Any, stop: tuple[type, ...]) -> dict[int, tuple[str, Any]]:
    """Every object that can be reached from this one, by its identity, with the path to it. Not looked into:
    atoms, and instances of ``stop``."""
    found: dict[int, tuple[str, Any]] = {}
    pending = [("host", root)]
    while pending:
        path, value = pending.pop()
        if id(value) in found or isinstance(value, (*ATOMS, *stop)):
            continue
        found[id(value)] = path, value
        pending += [(f"{path}.{name}", part) for name, part in lasting(value)]
    return found


class Watch:
    """What two hosts share, as it is now; ``changed`` tells what of it has changed since."""

    def __init__(self, one: SessionHost, other: SessionHost, *also: type) -> None:
        stop = (*ONE_FOR_ALL, *also)
        theirs = reachable(other, stop)
        self.shared = {key: found for key, found in reachable(one, stop).items() if key in theirs}
        self._before = {key: dict(lasting(value)) for key, (_, value) in self.shared.items()}

    def changed(self) -> list[str]:
        """The paths of the shared values that were replaced, added or removed."""
        return [
            f"{path}.{name}"
            for key, (path, value) in self.shared.items()
            for before, now in [(self._before[key], dict(lasting(value)))]
            for name in before.keys() | now.keys()
            if not (name in before and name in now and is_same(before[name], now[name]))
        ]


def is_same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, ATOMS) and one == other)


async def used_in_every_way(agent: AsyncAgent) -> None:
    """Change what a chat can change, and talk."""
    await agent.say("What is the code?")
    agent.host.use_plan_mode(not agent.host.plan)
    agent.runs.use_tools(agent.table.where(lambda tool: tool.name != "echo"))
    await agent.runs.use_model(f"scripted:{agent.workspace.root / 'r.txt'}")
    await agent.run("Say it.", temperature=0.5)
    await agent.call('(read-file :path "a.txt")')
    agent.knowledge = "It is 4711."
    agent.on_event = agent.deliver = print
    agent.host._trouble = "The catalog is down."
    agent.forget()


async def used(folder: Path) -> AsyncAgent:
    """A host in plan mode that has had a conversation of its own."""
    files(folder, {"a.txt": "one\n", "r.txt": "Other."})
    host = async_agent(folder, "First.", "Second.", "Third.", "Fourth.", plan=True)
    await host.say("The code is 4711.")
    return host


async def test_no_chat_changes_what_it_shares_with_another_or_with_its_agent(tmp_path: Path) -> None:
    async with await used(tmp_path) as agent:
        one, other = agent.for_chat("1"), agent.for_chat("2")
        watches = [Watch(one.host, other.host), Watch(one.host, agent.host)]
        await used_in_every_way(one)
        assert [watch.changed() for watch in watches] == [[], []]
        kinds = {type(value) for _, value in watches[0].shared.values()}
        assert {AgentParts} <= kinds  # the walk sees
        assert not {SessionHost, Session, Belongings} & kinds


async def test_no_run_changes_what_it_shares_with_another_beside_it(tmp_path: Path) -> None:
    async with await used(tmp_path) as agent:
        with agent.host.working(), agent.host.free({}) as host:
            made = object.__new__(AsyncAgent)._compose(host)
            watch = Watch(host, agent.host, Belongings)
            made.host._working = 0
            await made.say("What is the code?")
            made.runs.use_tools(made.table.where(lambda tool: tool.name != "echo"))
            made.host.use_plan_mode(False)
            assert watch.changed() == []
            assert not {SessionHost, Session} & {type(value) for _, value in watch.shared.values()}


def plant_settings_changed_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    real, one = SessionHost.for_chat, dict[str, Any](plan=True)

    def for_chat(self: SessionHost, chat: str, session: str = "") -> SessionHost:
        made = real(self, chat, session)
        made.settings = one
        return made

    def use_plan_mode(self: SessionHost, on: bool) -> None:
        settings: Any = self.settings if self.settings is one else {**self.settings}
        settings["plan"] = on

    monkeypatch.setattr(SessionHost, "for_chat", for_chat)
    monkeypatch.setattr(SessionHost, "use_plan_mode", use_plan_mode)


def plant_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def for_chat(self: SessionHost, chat: str, session: str = "") -> SessionHost:
        made = object.__new__(SessionHost)
        vars(made).update(vars(self), chat=chat, session=f"chat-{chat}")
        return made

    monkeypatch.setattr(SessionHost, "for_chat", for_chat)


def plant_attribute(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A chat takes this attribute of the host that it is made of."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        real = SessionHost.for_chat

        def for_chat(self: SessionHost, chat: str, session: str = "") -> SessionHost:
            made = real(self, chat, session)
            setattr(made, name, getattr(self, name))
            return made

        monkeypatch.setattr(SessionHost, "for_chat", for_chat)

    return plant


def plant_replaced_part(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SessionHost.use_model

    async def use_model(self: SessionHost, spec: str) -> None:
        await real(self, spec)
        object.__setattr__(self.parts, "models", self.models)

    monkeypatch.setattr(SessionHost, "use_model", use_model)


def plant_models_changed_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use_model(self: SessionHost, spec: str) -> None:
        self.models.options = self.models.with_model(spec).options

    monkeypatch.setattr(SessionHost, "use_model", use_model)


@pytest.mark.parametrize(
    "plant",
    [
        plant_settings_changed_in_place,
        plant_copy,
        plant_attribute("own"),
        plant_attribute("record"),
        plant_replaced_part,
        plant_models_changed_in_place,
    ],
)
async def test_the_walk_finds_a_planted_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    async with await used(tmp_path) as agent:
        one, other = agent.for_chat("1"), agent.for_chat("2")
        watches = [Watch(one.host, other.host), Watch(one.host, agent.host)]
        with contextlib.suppress(AssertionError):  # the fault may break the story, too
            await used_in_every_way(one)
        assert watches[0].changed() or watches[1].changed()


async def test_the_widest_records_stay_small(tmp_path: Path) -> None:
    async with await used(tmp_path) as agent:
        assert len(fields(AgentParts)) <= 20
        assert len(vars(agent.host)) <= 20
        assert set(vars(agent)) == {"host", "runs", "calls"}


async def test_a_chat_that_leaves_plan_mode_leaves_the_others_and_their_record_in_it(tmp_path: Path) -> None:
    async with await used(tmp_path) as host:
        one, other = host.for_chat("1"), host.for_chat("2")
        one.host.use_plan_mode(False)
        await one.say("a")
        await other.say("b")
        known = [Session(host.transcript, chat.session, host.user, Path()) for chat in (host, one, other)]
        assert [chat.host.plan for chat in (host, one, other)] == [True, False, True]
        assert [bool(session.given().get("plan")) for session in known] == [True, False, True]


async def test_the_model_that_a_chat_takes_is_recorded_in_its_session_alone(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("Other.")
    async with await used(tmp_path) as host:
        one, other = host.for_chat("1"), host.for_chat("2")
        await one.runs.use_model(f"scripted:{tmp_path / 'r.txt'}")
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


async def test_a_request_is_decided_by_the_tools_of_its_own_chat(tmp_path: Path) -> None:
    own = tool("own", body=lambda: "mine", guard=lambda: ask("may I?"))
    async with async_agent(tmp_path) as it:
        chat, other = it.for_chat("a"), it.for_chat("b")
        chat.host.use_tools(ToolTable([*it.host.table, own]))
        assert (await chat.call("(own)")).status == "pending"
        other.host.use_tools(it.host.table)
        (request,) = it.broker.requests()
        it.broker.decide(request.id, Decision("once", "ann"))
        (result,) = await chat.resume()
        assert (result.status, result.value) == ("ok", "mine")
