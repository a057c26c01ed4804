"""The words tests are written in, so that each reads as a short story. Knows the rooms' public faces only."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import inspect
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import hy
import pytest
from commands import CTRL_A as CTRL_A
from commands import CTRL_C as CTRL_C
from commands import CTRL_D as CTRL_D
from commands import CTRL_K as CTRL_K
from commands import Running as Running
from commands import Said as Said
from commands import Terminal as Terminal
from commands import command as command
from commands import quoth as quoth
from commands import script as script
from commands import started as started
from commands import wait_until as wait_until

from quoth import Agent, HostServices, ModelOptions, PolicyOptions, Services, ToolOptions
from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import Scripted, ScriptedBackend
from quoth.neuro.prompt.belt import belt
from quoth.neuro.reading.reply import read_reply
from quoth.neuro.reading.result import FoundCall
from quoth.tools.call.call import Call, ToolResult, Verdict, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.workspace import Workspace
from quoth.tools.catalog.payload import KEY_BYTES, Key
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.requests import Decision, Request
from quoth.tools.consent.rows import RequestRows
from quoth.tools.door.door import Door
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.receipts import StoreReceipts
from quoth.tools.hy_loader import load_hy_file
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.reader import read_one
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
from quoth.tools.sandbox.pool import SandboxLimits
from quoth.tools.sandbox.runner import Sandbox
from quoth.tools.shared.requests import RedisRequests
from quoth.tools.shared.server import SharedRedis
from quoth.tools.storage.database import Store


def form(text: str) -> CallForm:
    """The call form that ``text`` spells."""
    return from_model(read_one(text))


def tool(
    name: str = "probe",
    body: Callable[..., Any] = lambda: "done",
    guard: Callable[..., Any] | None = None,
    params: dict[str, dict[str, Any]] | None = None,
    table: ToolTable | None = None,
    **options: Any,
) -> CognitiveTool:
    """A tool in ``table`` (or in a table of its own)."""
    with registering_in(table if table is not None else ToolTable()):
        return define_tool(
            name, "A tool for a test.", parameters=params or {}, body=body, guard=guard, **options
        )


class Spy:
    """A function that remembers its calls; a body or guard that must, or must not, have run."""

    def __init__(self, answer: Any = True) -> None:
        self.answer = answer
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    @property
    def ran(self) -> bool:
        return self.calls > 0


class Later:
    """A person who does not answer now."""

    async def request(self, *_: Any) -> None:
        return None


class Person:
    """A person who decides each question alike, and remembers the tools and reasons."""

    def __init__(self, kind: Literal["allow", "deny"]) -> None:
        self.verdict = Verdict(kind, "as I say")
        self.asked: list[str] = []

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict:
        self.asked.append(f"{call.tool}: {reason}")
        return self.verdict


@dataclass
class Gateway:
    """A door on a table of its own, with its audit in memory."""

    door: Door
    workspace: Path
    sandbox_limits: SandboxLimits | None = None
    given: dict[str, Any] = field(default_factory=dict)  # what the host puts into the context

    def pass_through(self, text: str | CallForm, **marks: Any) -> ToolResult:
        """Take one form through the door."""

        return asyncio.run(self.enter(text, **marks))

    async def enter(self, text: str | CallForm, **marks: Any) -> ToolResult:
        """The same, for a test that is itself asynchronous."""
        sandbox = Sandbox(self.sandbox_limits)
        try:
            call = new_call(form(text) if isinstance(text, str) else text, **marks)
            context = ToolContext(Workspace(self.workspace), sandbox=sandbox, **self.given)
            return await self.door.dispatch(call, context)
        finally:
            await sandbox.aclose()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.door.audit.rows()


def gateway(*tools: CognitiveTool, workspace: Path | str = ".", **parts: Any) -> Gateway:
    """A gateway to just these tools."""
    limits, given = parts.pop("sandbox_limits", None), parts.pop("given", {})
    parts.setdefault("audit", MemoryAudit())
    parts.setdefault("consent", Later())
    return Gateway(Door(ToolTable(tools), **parts), Path(workspace), limits, given)


class PausableClock:
    """Seconds since 1970 that stand still until somebody waits."""

    def __init__(self, now: float = 1_773_144_000.0) -> None:  # 2026-03-10 12:00 UTC
        self.now = now

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def __call__(self) -> float:
        return self.now


class SharedStore(Store):
    """A machine's store, where the requests are in a Redis that it shares with others."""

    def __init__(self, path: Path | str, redis: SharedRedis) -> None:
        super().__init__(path)
        self.redis = redis
        self.key = Key(b"k" * KEY_BYTES)

    def rows(self, clock: Callable[[], float]) -> RequestRows:
        return RedisRequests(self.redis, self.key, lambda: self, clock=clock)

    def close(self) -> None:
        super().close()
        self.redis.close()

    def raw(self) -> list[str]:
        """The requests as they are in Redis."""
        client = self.redis._opened()
        return sorted(
            str(client.get(name)) for name in client.scan_iter(self.redis.key("requests", "row", "*"))
        )


@dataclass
class Desk(Gateway):
    """A gateway whose questions are kept in a store until somebody decides them."""

    broker: Broker = field(kw_only=True)
    clock: PausableClock = field(kw_only=True)

    @property
    def waiting(self) -> list[Request]:
        return self.broker.requests()

    def decide(self, kind: Any = "once", request: str = "", **more: Any) -> Request:
        """What ann decides of a request, of the only open one if none is named."""
        if not request:
            (only,) = self.waiting
            request = only.id
        return self.broker.decide(request, Decision(kind, "ann", **more))


def desk(
    store: Store,
    *tools: CognitiveTool,
    person: Any = None,
    clock: PausableClock | None = None,
    window: float = 0,
    workspace: Path | str = ".",
    **parts: Any,
) -> Desk:
    """A desk for just these tools, with audit and receipts in the store; ``window`` is that of repeats."""
    clock, given = clock or PausableClock(), parts.pop("given", {})
    table, audit = ToolTable(tools), parts.pop("audit", None) or StoreAudit(lambda: store)
    rows = store.rows(clock) if isinstance(store, SharedStore) else None
    broker = Broker(
        lambda: store, table, Workspace(workspace), person=person, audit=audit, clock=clock, rows=rows
    )
    receipts = StoreReceipts(lambda: store, window=window, clock=clock)
    door = Door(table, consent=broker, audit=audit, receipts=receipts, **parts)
    return Desk(door, Path(workspace), None, given, broker=broker, clock=clock)


def complaint(kind: type[BaseException], act: Callable[[], Any]) -> str:
    """What ``act`` complains of, with an error of just this kind."""
    with pytest.raises(kind) as caught:
        act()
    assert caught.type is kind, f"{caught.type.__name__}: {caught.value}"
    return str(caught.value)


def shipped(workspace: Path | str, *more: CognitiveTool, **parts: Any) -> Gateway:
    """A gateway to the tools that ship, and to ``more``."""
    import_module("quoth.tools.builtin")
    return gateway(*cognitive_tools.tools(), *more, workspace=workspace, **parts)


def load(path: Path, table: ToolTable | None = None) -> ToolTable:
    """The table that a user's ``.hy`` file fills."""
    with registering_in(table if table is not None else ToolTable()) as filled:
        load_hy_file(path)
    return filled


def scripted(*replies: Scripted) -> ScriptedBackend:
    return ScriptedBackend(list(replies))


def grouped(**options: Any) -> dict[str, Any]:
    """The keywords of an agent, where a test names an option of a group by itself: ``dialect="native"``."""

    def taken(*names: str) -> dict[str, Any]:
        return {name: options.pop(name) for name in names if name in options}

    if model := taken("base_url", "dialect", "must_act", "after_tags"):
        options["model"] = ModelOptions(options.get("model"), **model)
    if belt := taken("belt"):
        options["tools"] = ToolOptions(options.get("tools", ()), **belt)
    if policy := taken("gate", "quotas", "zone"):
        options["policy"] = PolicyOptions(options.get("policy"), **policy)
    known, services = (
        taken("audit", "knowledge", "confidence", "agent_id"),
        options.get("services", Services()),
    )
    if known and isinstance(services, Services):
        options["services"] = HostServices(**vars(services) | known)
    return options


def agent(workspace: Path, *replies: str, **options: Any) -> Agent:
    """A synchronous agent whose model says ``replies`` one after the other."""
    given = {"audit": MemoryAudit(), **options}
    return Agent(**grouped(workspace=workspace, model=scripted(*replies), **given))


def async_agent(workspace: Path, *replies: str, **options: Any) -> AsyncAgent:
    given = {"audit": MemoryAudit(), **options}
    return AsyncAgent(**grouped(workspace=workspace, model=scripted(*replies), **given))


def files(root: Path, contents: dict[str, str | bytes]) -> Path:
    """Put files under ``root``."""
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def lines(*parts: Iterable[str] | str) -> str:
    """Text made of lines."""
    flat: Sequence[str] = [p for part in parts for p in ([part] if isinstance(part, str) else part)]
    return "\n".join(flat) + "\n"


# Reading replies


def calls(reply: str, known: Sequence[str] = ("echo", "eval", "read-file", "write-file")) -> list[FoundCall]:
    """The calls a reader finds in a model's reply."""
    return read_reply(reply, known).calls


def heard(reply: str) -> list[str]:
    """Those calls, as they print."""
    return [str(call.form) for call in calls(reply)]


def faults(reply: str) -> list[str]:
    """What could not be read in a reply, as a person or a model is told."""
    return [str(error) for error in read_reply(reply, ["echo", "eval", "read-file", "write-file"]).errors]


def belt_of(*tools: CognitiveTool, view: str = "lisp") -> str:
    """What a model is shown of just these tools."""
    return belt(ToolTable(tools), view)


# Runs of the loop


@dataclass(frozen=True)
class Story:
    """A run that is over: how it ended, what the model was shown at each turn, and the audit rows."""

    reply: Reply
    requests: Sequence[bytes]
    rows: list[dict[str, Any]]

    def shown(self, turn: int) -> str:
        """What was new to the model at its ``turn``, counted from 1: all after its own last words."""
        new: list[str] = []
        for message in json.loads(self.requests[turn - 1]):
            new = [] if message["role"] in ("system", "assistant") else [*new, message["content"]]
        return "\n".join(new)

    @property
    def statuses(self) -> list[str]:
        return [call.result.status for call in self.reply.calls]


def native(*calls: tuple[str, Any], text: str = "") -> dict[str, Any]:
    """A reply with native calls: name and arguments of each; their ids are c1, c2 …"""
    return {
        "text": text,
        "tool_calls": [
            {"id": f"c{place}", "name": name, "arguments": arguments}
            for place, (name, arguments) in enumerate(calls, 1)
        ],
    }


def story(workspace: Path, *replies: Scripted, task: str = "Do it.", **options: Any) -> Story:
    """Tell a run in which the model says ``replies`` one after the other."""
    model = scripted(*replies)
    with Agent(**grouped(workspace=workspace, model=model, audit=MemoryAudit(), **options)) as agent:
        return Story(agent.run(task), model.seen, agent.audit.rows())


class TalkingFunction:
    """A model that is a function of the messages, and keeps nothing: for runs too long to remember."""

    takes_grammar = False

    def __init__(self, reply: Callable[[Messages], Any], name: str = "function") -> None:
        self.name = name
        self._reply = reply

    async def complete(self, messages: Messages, **options: Any) -> Completion:
        answer = self._reply(messages)
        return Completion(await answer if inspect.isawaitable(answer) else answer)

    async def aclose(self) -> None:
        """Nothing to free."""


def table_of(*tools: CognitiveTool) -> ToolTable:
    """A table of just these tools."""
    return ToolTable(tools)


# What is left running


def threads() -> int:
    """The threads of this process that are still alive; not those that wait for a body, which any agent may
    end that is closed."""
    return len([one for one in threading.enumerate() if one.is_alive() and one.name != "quoth-idle"])


def sandboxes() -> int:
    """The sandbox workers this process has started and not ended."""
    found = 0
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            for child in (thread / "children").read_text().split():
                with contextlib.suppress(OSError):
                    found += b"monty" in Path("/proc", child, "cmdline").read_bytes()
    return found


def rooms() -> list[Path]:
    """The folders of the three packages, wherever they are installed."""
    return [Path(str(import_module(f"quoth.{name}").__file__)).parent for name in ("tools", "neuro", "agent")]


@cache
def python_nodes(text: str) -> tuple[ast.AST, ...]:
    """Every node of Python code. Several tests look through all that we have; it is parsed once for them, and
    no search for garbage looks at the nodes: that took three times as long as to make them."""
    gc.disable()
    try:
        return tuple(ast.walk(ast.parse(text)))
    finally:
        gc.freeze()
        gc.enable()


@cache
def hy_forms(text: str) -> tuple[Any, ...]:
    """The forms of Hy code, parsed once."""
    return tuple(hy.read_many(text))


def sources(suffix: str) -> list[Path]:
    """Every source file of the three packages with this suffix (``.py`` or ``.hy``)."""
    return sorted(path for room in rooms() for path in room.rglob(f"*{suffix}"))
