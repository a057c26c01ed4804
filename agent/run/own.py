"""The memory, the background programs and the sandbox of an agent, each opened at the first use and
closed with the agent.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.reply import CallRecord
from quoth.agent.session.past import remember
from quoth.neuro.prompt.belt import BeltCatalog, news_text
from quoth.neuro.prompt.memory import as_data, differs, memory_text
from quoth.tools.call.services import NO_MEMORY, NO_SEARCH, NO_SHARED_BLOCKS, Services
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.history.audit import row_of_host
from quoth.tools.knowledge.skill_folders import skill_folders
from quoth.tools.registry.table import ToolTable
from quoth.tools.sandbox.snapshots import StoreSnapshots

if TYPE_CHECKING:
    from quoth.agent.run.run import Run
    from quoth.tools.call.ports import Audit
    from quoth.tools.call.service_types import Block
    from quoth.tools.catalog.connection import RedisUrl
    from quoth.tools.catalog.remote_table import LiveCatalog
    from quoth.tools.sandbox.runner import Sandbox
    from quoth.tools.shell.background import Background
    from quoth.tools.storage.database import Store


class OwnMemory:
    """A memory that ``opening`` opens at the first call of a method, because most runs never use it and
    should not wait for its import."""

    def __init__(self, opening: Callable[[], Any]) -> None:
        self._opening = opening
        self._memory: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        async def method(*args: Any, **named: Any) -> Any:
            return await getattr(self.opened(), name)(*args, **named)

        return method

    def opened(self) -> Any:
        """The memory itself."""
        if self._memory is None:
            self._memory = self._opening()
        return self._memory

    async def aclose(self) -> None:
        """Close the memory, if it was opened and has anything to close."""
        memory, self._memory = self._memory, None
        if (close := getattr(memory, "close", None)) is not None:
            close()


def with_own(given: Services, own: Any) -> Services:
    """The services with ``own`` as memory, and as search and shared blocks if the host gave none. Unchanged
    if the host gave a memory, because ``own`` cannot search that."""
    if given.memory is not NO_MEMORY:
        return given
    search = own if given.search is NO_SEARCH else given.search
    shared = own if given.shared_blocks is NO_SHARED_BLOCKS else given.shared_blocks
    return replace(given, memory=own, search=search, shared_blocks=shared)


class OwnPrograms:
    """The programs in the background of one session."""

    def __init__(self) -> None:
        self._background: Background | None = None

    def opened(self) -> Background:
        if self._background is None:
            from quoth.tools.shell.background import Background  # here: most sessions have none

            self._background = Background()
        return self._background

    async def aclose(self) -> None:
        if self._background is not None:
            await self._background.aclose()


class OwnSandbox:
    """The sandbox of one agent (ProgramRunner in tools/call/context.py), imported and started for the first
    program, and the ``snapshots`` of programs that wait, in the agent's store."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self.snapshots = StoreSnapshots(store)
        self._sandbox: Sandbox | None = None

    def _opened(self) -> Sandbox:
        if self._sandbox is None:
            from quoth.tools.sandbox.runner import Sandbox  # here: few calls run a program

            self._sandbox = Sandbox()
        return self._sandbox

    async def run(self, *args: Any, **named: Any) -> tuple[Any, str]:
        return await self._opened().run(*args, **named)

    def worker(self, seconds: float | None = None) -> AbstractAsyncContextManager[Any]:
        return self._opened().worker(seconds)

    async def aclose(self) -> None:
        if self._sandbox is not None:
            await self._sandbox.aclose()


def boundary_of(said: Mapping[str, Any], root: Path, *, skills: bool) -> dict[str, Any]:
    """The files that programs see besides the workspace: the user's settings (``said``), and the files of
    ``skills``."""
    return {**said, "readable": (*said.get("readable", ()), *(skill_folders(root) if skills else ()))}


# The messages of a run about the memory: its core blocks at the start of a conversation, and later the
# changes of others.
#
# Each message is an event of the transcript, so a resumed or replayed run needs no memory.


class NoMemoryError(QuothError):
    """The memory cannot be read at the start of a conversation."""


async def with_memory(messages: Sequence[tuple[str, ...]], run: Run) -> list[tuple[str, ...]]:
    """The messages of a stimulus with news of the memory: before a person's words, but after the results of
    calls, because providers want these right after the calls. Raises NoMemoryError."""
    return with_news(messages, await _news(run))


def with_news(messages: Sequence[tuple[str, ...]], news: str) -> list[tuple[str, ...]]:
    """The messages of a stimulus, with the host's ``news`` at the right place among them, if there is any."""
    place = next((i for i, message in enumerate(messages) if message[0] == "user"), len(messages))
    return [*messages[:place], *([("user", news)] if news else []), *messages[place:]]


async def _news(run: Run) -> str:
    """The message about the memory at this turn; empty if the model knows all of it."""
    said = _recorded(run)
    if said is None and run.log.live and run.parts.memory is not None and not run.past.answers:
        said = await _look(run)
        if said is not None:
            run.log.add("memory", said, parent=run.log.reply)
    run.state.looked = len(run.state.calls)
    if said is None:
        return ""
    if said.get("unread"):
        raise NoMemoryError(said["unread"])
    text = memory_text(said, first=not run.state.known, must_act=run.must_act)
    remember(run.state.known, said)
    return text


def _recorded(run: Run) -> Mapping[str, Any] | None:
    """The recorded message about the memory at this turn."""
    event = run.past.memory.get(run.state.step)
    return None if event is None else event.data


async def _look(run: Run) -> dict[str, Any] | None:
    """The data of an event with news for the model; None if there is nothing new."""
    assert run.parts.memory is not None, "the caller checks that the run has a memory"
    try:
        core: Sequence[Block] = [
            block for block in await run.parts.memory.list_blocks("core") if run.parts.shows(block.label)
        ]
        now = {block.label: as_data(block) for block in core}
        new = [
            data for label, data in now.items() if differs(data, run.state.known.get(label, {"text": None}))
        ]
        gone = [label for label in run.state.known if label not in now]
        if not new and not gone:
            return None
        said: dict[str, Any] = {"step": run.state.step, "blocks": new}
        if gone:
            said["gone"] = gone
        if not run.state.known:
            said |= await _beside(run)
    except Exception as error:
        return _unread(run, error)
    results = run.state.calls[run.state.looked :]
    told = [data["label"] for data in new if _is_told(data, run, results)]
    told += [label for label in gone if any(_named(label, record) for record in results)]
    return {**said, "told": told} if told else said


async def _beside(run: Run) -> dict[str, Any]:
    """The working blocks by label, and the number of archival ones."""
    assert run.parts.memory is not None, "it was just read"
    working = [b.label for b in await run.parts.memory.list_blocks("working") if run.parts.shows(b.label)]
    counted = getattr(run.parts.memory, "count_blocks", None)  # a store of the host may not have it
    archival = await counted("archival") if counted else len(await run.parts.memory.list_blocks("archival"))
    return {name: value for name, value in (("working", working), ("archival", archival)) if value}


def _unread(run: Run, error: Exception) -> dict[str, Any] | None:
    """A conversation does not begin without its memory, because its answers would be invented. A running
    conversation continues with the blocks it has seen, and a person gets a note."""
    reason = str(error) if isinstance(error, QuothError) else f"({type(error).__name__})"
    if run.state.known or any(message["role"] == "assistant" for message in run.messages):
        if not run.state.unread:
            run.tell("note", f"The memory could not be read; the model continues without its news. {reason}")
        run.state.unread = True
        return None
    why = f"The memory could not be read, so the model was not asked. {reason}"
    return {"step": run.state.step, "blocks": [], "unread": why}


# What the model knows from its own calls


def _is_told(data: Mapping[str, Any], run: Run, results: Sequence[CallRecord]) -> bool:
    """Whether the result of the model's own call has just shown it this text of the block."""
    before = run.state.known.get(data["label"], {})
    if before.get("text") == data["text"] or len(data["text"]) > run.limits.result_chars:
        return False
    return any(
        _named(data["label"], record)
        and any(data["text"] in text for text in _texts([record.result.value, record.result.message]))
        for record in results
    )


def _named(label: str, record: CallRecord) -> bool:
    """Whether an ok call names a block."""
    form = record.form
    return record.result.ok and label in (*form.positional, *form.args.values())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


# The remote tools of an agent, and the message for the model when they have changed.
#
# The change is an event of the transcript, so a resumed or replayed run needs no server.


# The message


async def with_tools(messages: Sequence[tuple[str, ...]], run: Run) -> list[tuple[str, ...]]:
    """The messages of a stimulus with news of the tools; from this turn on the run has the new ones."""
    return with_news(messages, await _news_of_remote(run))


async def _news_of_remote(run: Run) -> str:
    event = run.past.tools.get(run.state.step)
    if event is not None:
        return str(event.data["text"])
    renew = run.parts.renew
    if renew is None or not run.log.live or run.past.answers:
        return ""
    before = run.door.table
    known, run.whole = run.whole or before.whole, await renew()
    if run.whole is known:
        return ""
    if before.whole is run.whole:  # it changed before this run began
        before = known.hiding(before.hidden)
    else:
        _use(run, run.whole if before.whole is known else _narrowed(before, run.whole))
    text = news_text(before, run.door.table)
    if text:
        run.log.add("tools", {"step": run.state.step, "text": text}, parent=run.log.reply)
    return text


def _use(run: Run, table: ToolTable) -> None:
    table = run.parts.offers(table)
    run.door.use(table)
    if run.gauge is not None:
        run.gauge.tools = None  # their size in the window has changed
    if isinstance(run.context.catalog, BeltCatalog):
        run.context = replace(run.context, catalog=run.context.catalog.of(table))


def _narrowed(table: ToolTable, new: ToolTable) -> ToolTable:
    """The tools of a table in their current versions, without the removed ones."""
    kept = new.where(lambda tool: tool.name in table).copy()
    for tool in table.shown:  # the table may be a choice for this run
        if tool.name in kept and not kept.get(tool.name).shown:
            kept.register(replace(kept.get(tool.name), shown=True), replace=True)
    return kept


# Their source


class RemoteTools:
    """The tools of an agent: the local ones (``here``), and the tools of a catalog except the ``kept``
    ones."""

    def __init__(self, here: ToolTable, catalog: LiveCatalog, kept: Collection[str]) -> None:
        self._here, self._kept = here, kept
        self._catalog = catalog
        self._clash = ""
        self.table = self._merged()

    def _merged(self) -> ToolTable:
        from quoth.tools.catalog.remote_table import merged

        self._of = self._catalog.table
        return merged(self._here, self._of, self._kept)

    @property
    def versions(self) -> str:
        """The versions of the remote tools, one per line; for thousands of tools it is read faster than a
        dictionary."""
        return "\n".join(f"{tool.name} {tool.version[:16]}" for tool in self.table if tool.remote)

    async def newest(self) -> ToolTable:
        """The current tools; the earlier ones if the catalog conflicts with the local tools."""
        if await self._catalog.newest() is not self._of:
            try:
                self.table, self._clash = self._merged(), ""
            except QuothError as error:
                self._clash = str(error)
        return self.table

    @property
    def trouble(self) -> str:
        """Why the tools may be out of date; empty if they are not."""
        return self._clash or self._catalog.trouble

    async def aclose(self) -> None:
        await self._catalog.aclose()


def open_catalog(
    remote: str | RedisUrl | LiveCatalog,
    prefix: str,
    key: str | Path | None,
    audit: Audit | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> LiveCatalog:
    """Read the catalog at ``remote`` now. Refused messages from there are recorded in ``audit``; ``tell``
    receives the progress of calls. Raises UsageError and StoreError."""
    from quoth.tools.catalog.connection import checked_prefix
    from quoth.tools.catalog.payload import read_key
    from quoth.tools.catalog.remote_table import LiveCatalog
    from quoth.tools.remote.sender import Sender
    from quoth.tools.storage.paths import catalog_key_path

    if isinstance(remote, LiveCatalog):
        return remote
    options = (remote_url(remote, typed=False), read_key(catalog_key_path(key)), checked_prefix(prefix))
    sender = Sender(*options, audit=audit, on_progress=lambda call, text: tell(f"{call.tool}: {text}"))
    return LiveCatalog(*options, sender, partial(_record, audit))


def _record(audit: Audit | None, why: str) -> None:
    """Record that a catalog was refused."""
    if audit is not None:
        with contextlib.suppress(QuothError):  # the refusal is reported even if it cannot be recorded
            audit.write(row_of_host("catalog", why))


def place_of(remote: str | RedisUrl | LiveCatalog) -> dict[str, str]:
    """The place of remote tools, without user and password."""
    from quoth.tools.catalog.remote_table import LiveCatalog

    url = remote.url if isinstance(remote, LiveCatalog) else remote_url(remote, typed=False)
    return url.kept("remote")


def remote_url(given: str | RedisUrl, *, ca: str | None = None, typed: bool = True) -> RedisUrl:
    """The server at ``given``; with user and password from QUOTH_REDIS, if that names the same place."""
    from quoth.tools.catalog.connection import VARIABLE, redis_url

    if not isinstance(given, str):
        return given
    if not given.strip():
        raise UsageError("The URL of the catalog is empty; write redis://HOST:PORT.")
    url = redis_url(given, ca=ca, typed=typed)
    if os.environ.get(VARIABLE) and "@" not in given:
        with contextlib.suppress(UsageError):
            own = redis_url(None, ca=ca)
            return own if own.shown == url.shown else url
    return url
