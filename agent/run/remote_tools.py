"""The remote tools of an agent beside its own, and what a run tells its model when they have changed.

The change is an event of the transcript, from which a run that is resumed or replayed is answered, so that it
needs no server. Knows tables and runs; it must not know how a catalogue is read or a call sent.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.run.own import is_recorded, with_news
from quoth.neuro.prompt.belt import BeltCatalog, news_text
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.history.audit import row_of_host
from quoth.tools.registry.table import ToolTable

if TYPE_CHECKING:
    from quoth.agent.run.run import Run
    from quoth.tools.call.ports import Audit
    from quoth.tools.catalog.connection import RedisUrl
    from quoth.tools.catalog.remote_table import LiveCatalog


# What a run tells


async def with_tools(messages: Sequence[tuple[str, ...]], run: Run) -> list[tuple[str, ...]]:
    """The messages of a stimulus with what is new among the tools; from this turn on the run has these."""
    return with_news(messages, await _news(run))


async def _news(run: Run) -> str:
    event = run.past.tools.get(run.state.step)
    if event is not None:
        return str(event.data["text"])
    renew = run.parts.renew
    if renew is None or not run.log.live or is_recorded(run):
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
        run.gauge.tools = None  # they take another part of the window
    if isinstance(run.context.catalog, BeltCatalog):
        run.context = replace(run.context, catalog=run.context.catalog.of(table))


def _narrowed(table: ToolTable, new: ToolTable) -> ToolTable:
    """The tools of a table as they are now, without those that are gone."""
    kept = new.where(lambda tool: tool.name in table).copy()
    for tool in table.shown:  # it may have been chosen for this run alone
        if tool.name in kept and not kept.get(tool.name).shown:
            kept.register(replace(kept.get(tool.name), shown=True), replace=True)
    return kept


# Where they come from


class RemoteTools:
    """The tools of an agent: those that are ``here`` and those of a catalogue, except the ``kept`` ones."""

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
        """The versions of the remote tools, a line each: for a table of thousands, read faster than a
        dictionary."""
        return "\n".join(f"{tool.name} {tool.version[:16]}" for tool in self.table if tool.remote)

    async def newest(self) -> ToolTable:
        """The tools as they are now; as they were, where those of the catalogue do not go with those here."""
        if await self._catalog.newest() is not self._of:
            try:
                self.table, self._clash = self._merged(), ""
            except QuothError as error:
                self._clash = str(error)
        return self.table

    @property
    def trouble(self) -> str:
        """Why the tools may not be the newest; empty if they are."""
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
    """Read the catalogue at ``remote`` now. What is not believed of what comes from there is recorded in
    ``audit``; ``tell`` is told of the progress of calls. Raises UsageError and StoreError."""
    from quoth.tools.catalog.connection import checked_prefix
    from quoth.tools.catalog.payload import key_path, read_key
    from quoth.tools.catalog.remote_table import LiveCatalog
    from quoth.tools.remote.sender import Sender

    if isinstance(remote, LiveCatalog):
        return remote
    options = (remote_url(remote, typed=False), read_key(key_path(key)), checked_prefix(prefix))
    sender = Sender(*options, audit=audit, on_progress=lambda call, text: tell(f"{call.tool}: {text}"))
    return LiveCatalog(*options, sender, partial(_record, audit))


def _record(audit: Audit | None, why: str) -> None:
    """Record that a catalogue was refused."""
    if audit is not None:
        with contextlib.suppress(QuothError):  # who cannot write it down is told of it all the same
            audit.write(row_of_host("catalog", why))


def place_of(remote: str | RedisUrl | LiveCatalog) -> dict[str, str]:
    """Where remote tools are, without user and password."""
    from quoth.tools.catalog.remote_table import LiveCatalog

    url = remote.url if isinstance(remote, LiveCatalog) else remote_url(remote, typed=False)
    return url.kept("remote")


def remote_url(given: str | RedisUrl, *, ca: str | None = None, typed: bool = True) -> RedisUrl:
    """The server at ``given``; by the URL in QUOTH_REDIS, if that names the same place and how to get in."""
    from quoth.tools.catalog.connection import VARIABLE, redis_url

    if not isinstance(given, str):
        return given
    if not given.strip():
        raise UsageError("The URL of the catalogue is empty; write redis://HOST:PORT.")
    url = redis_url(given, ca=ca, typed=typed)
    if os.environ.get(VARIABLE) and "@" not in given:
        with contextlib.suppress(UsageError):
            own = redis_url(None, ca=ca)
            return own if own.shown == url.shown else url
    return url
