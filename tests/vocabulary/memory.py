"""Memory blocks in tests: stores of them, who is asked about them, and what is in them.

Knows the memory rooms; it must not know models or commands.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sentences import THE_PERSON_SAID_NO

from quoth.tools.call.context import ToolContext, enter_context
from quoth.tools.call.service_types import Block
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import QuothError, ToolFailure
from quoth.tools.memory.blocks import BlockMemory, Blocks
from quoth.tools.memory.in_memory import InMemoryStore, Tables
from quoth.tools.memory.postgres import PostgresMemory
from quoth.tools.memory.sqlite import SqliteMemory
from quoth.tools.storage.database import Store

T = TypeVar("T")
Make = Callable[..., Any]  # make(agent_id, person=…, user=…, clock=…) is a store of memory blocks


def sqlite_memory(store: Store) -> Make:
    """Makes the memories of agents in one store."""
    return lambda agent_id="a", **options: SqliteMemory(lambda: store, agent_id, **options)


def postgres_memory(url: str) -> Make:
    """Makes the memories of agents in a PostgreSQL database, which share a connection."""
    server = PostgresMemory(url, "").server

    def make(agent_id: str = "a", **options: Any) -> PostgresMemory:
        memory = PostgresMemory(url, agent_id, **options)
        memory.server = server
        return memory

    return make


@dataclass
class Place:
    """Where memory is kept that several processes use: each opens it anew."""

    open: Callable[[], Make]
    settled: Callable[[], None] = lambda: None  # returns when nothing that a killed process began goes on


class DictMemory(InMemoryStore):
    """Blocks in a dict, as a user's own store may keep them."""

    def __init__(self, tables: Tables, agent_id: str = "a", **options: Any) -> None:
        super().__init__(agent_id, tables=tables, **options)


def dict_memory() -> Make:
    tables: Tables = {"blocks": {}, "versions": {}, "shares": {}}
    return lambda agent_id="a", **options: DictMemory(tables, agent_id, **options)


# What is done, and what comes of it


_LOOPS = [asyncio.Runner()]  # the last one is for all tests of a process: there are thousands of small works
# A forked process shares the events of its parent's loop, and has none of its threads.
os.register_at_fork(after_in_child=lambda: _LOOPS.append(asyncio.Runner()))


def done(work: Awaitable[T], context: contextvars.Context | None = None) -> T:
    """The result of work that is awaited."""

    async def go() -> T:
        return await work

    return _LOOPS[-1].run(go(), context=context)


def said(work: Awaitable[Any]) -> str:
    """What the work is refused with: the kind of the error and its sentence."""
    try:
        done(work)
    except (QuothError, ToolFailure) as error:
        kind = f"{type(error).__name__}"
        return f"{kind}: {error}" if kind != "ToolFailure" else f"{error.status}: {error}"  # type: ignore[union-attr]
    raise AssertionError("It was done.")


@dataclass
class Approver:
    """A person who is asked for permissions, and who always answers the same."""

    answer: bool = True
    asked: list[tuple[str, str]] = field(default_factory=list)
    first: Callable[[], None] = lambda: None  # happens before the answer

    async def request(self, what: str, reason: str) -> None:
        self.asked.append((what, reason))
        self.first()
        if not self.answer:
            raise ToolFailure("denied", THE_PERSON_SAID_NO)


def in_a_call(work: Callable[[], Coroutine[Any, Any, T]], person: Any, **given: Any) -> T:
    """Do the work as the body of a call does, where ``person`` is asked for permissions."""
    context = ToolContext(Workspace(Path.cwd()), permission=person, **given)
    return done(work(), enter_context(context))


def contents(make: Make, *agents: str) -> list[Block]:
    """All blocks of these agents; each change shows in the version of a block."""

    async def look() -> list[Block]:
        return [block for agent in agents for block in await make(agent).list_blocks()]

    return done(look())


@contextmanager
def writes_of(memory: BlockMemory, room: int = 1000) -> Iterator[list[str]]:
    """The changes that reach what is stored, while this lasts. After ``room`` of them it breaks."""
    seen: list[str] = []
    real = memory._atomically

    async def watched(work: Callable[[Blocks], T]) -> T:
        return await real(lambda blocks: work(_Watched(blocks, seen, room)))  # type: ignore[arg-type]

    memory._atomically = watched  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        del memory._atomically  # type: ignore[method-assign]


class _Watched:
    """Blocks that remember what is changed in them."""

    def __init__(self, blocks: Blocks, seen: list[str], room: int) -> None:
        self._blocks, self._seen, self._room = blocks, seen, room

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "remove", "share"):
            if len(self._seen) >= self._room:
                raise RuntimeError("the power is gone")
            self._seen.append(name)
        return getattr(self._blocks, name)
