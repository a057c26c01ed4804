"""What the pages of ``quoth serve`` show of its workspace, read as the commands read it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.consent import agent_of_session, continuing, opened, require_no_agent, tools_of_session
from quoth.agent.cli.options import Options
from quoth.agent.cli.undo import agent_for_undo, undo_alone
from quoth.agent.terminal.requests import decide
from quoth.tools.errors import QuothError
from quoth.tools.policy.files import layers_to_check
from quoth.tools.storage.paths import store_path

if TYPE_CHECKING:
    from quoth.agent.session.undo import Undo
    from quoth.tools.consent.broker import Broker
    from quoth.tools.consent.decisions import Proposal
    from quoth.tools.consent.requests import Decision, Request
    from quoth.tools.consent.shown import Files
    from quoth.tools.policy.policy import Layer
    from quoth.tools.storage.database import Store

TOOLS_SECONDS = 30.0  # in which a page that is fetched again does not load the tools again


class WorkspaceDesk:
    """The workspace of these options. Its store is opened once there is one."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._path = store_path(options.folder)
        self._lock = threading.Lock()
        self._open = contextlib.ExitStack()
        self._found: tuple[Store | None, Broker | None] = (None, None)
        self._loaded: dict[str, float] = {}  # until when the tools of a session are shown as they were

    @property
    def folder(self) -> Path:
        return self.options.folder

    @property
    def owner(self) -> str:
        return self.options.asker

    @contextlib.contextmanager
    def memory(self, agent: str) -> Iterator[Any]:
        from quoth.tools.memory.sqlite import open_memory

        url, store = self.options.memory_url, self.store()
        if url is None and store is None:
            yield None
            return
        with contextlib.ExitStack() as ending:
            opened = open_memory(url, lambda: store, agent, person=True)  # type: ignore[arg-type, return-value]
            ending.callback(getattr(opened, "close", lambda: None))
            yield opened

    def layers(self) -> tuple[Sequence[Layer], Sequence[str]]:
        return layers_to_check(self.folder.resolve(), self.options.policy)

    def _opened(self) -> tuple[Store | None, Broker | None]:
        with self._lock:
            if self._found[0] is None:
                self._open.close()
                self._found = self._open.enter_context(opened(self.options))
            return self._found

    def store(self) -> Store | None:
        return self._opened()[0]

    def broker(self) -> Broker | None:
        return self._opened()[1]

    def looking(self, asked: Request, *, decides: bool) -> tuple[Broker, str]:
        store, broker = self._opened()
        assert broker is not None, "a request was found in it"
        if decides or self._loaded.get(asked.session, 0.0) < time.monotonic():
            try:
                broker.use_in(asked.session, tools_of_session(self.options, store, asked))
            except QuothError as error:
                return broker, f"Its changes are not known: {error}"
            self._loaded[asked.session] = time.monotonic() + TOOLS_SECONDS
        return broker, ""

    def preview(self, asked: Request, decision: Decision) -> tuple[Decision, Proposal | None]:
        with self._deciding(asked, decision) as broker:
            full = broker.preview(asked.id, decision)
            return full, None if full.form is None else broker.edited(asked.id, full.form)

    def decide(self, asked: Request, decision: Decision, shown: Files | None) -> None:
        if asked.route == "guard":
            require_no_agent()
        with self._deciding(asked, decision) as broker:
            decide(broker, asked.id, decision, shown)

    @contextlib.contextmanager
    def _deciding(self, asked: Request, decision: Decision) -> Iterator[Broker]:
        """The broker that can check a decision: a scope or an edit needs the tool."""
        if decision.kind not in ("scope", "edit"):
            yield self.looking(asked, decides=True)[0]
            return
        agent = agent_of_session(self.options, self.store(), asked)
        try:
            yield agent.broker
        finally:
            asyncio.run(agent.aclose())

    @contextlib.contextmanager
    def undoing(self, session: str, user: str) -> Iterator[Undo]:
        require_no_agent()
        agent = agent_for_undo(replace(self.options, user=user), self.store(), session)
        try:
            with undo_alone(agent, self.options, session) as undo:
                yield undo
        finally:
            asyncio.run(agent.aclose())

    def resuming(self, asked: Request) -> str:
        from quoth.agent.flight.plan_file import flown_in
        from quoth.agent.session.index import read_leniently

        if (store := self.store()) is None:
            return ""
        plan = read_leniently(store, lambda found: flown_in(found, asked.session))
        return continuing(self.options, store, asked, plan)

    def version(self) -> str:
        seen = []
        # Two commits within a tick of the clock leave the same times, and a log that begins again its size.
        with contextlib.suppress(QuothError):  # a store that cannot be read is looked at again
            seen += [store.mark] if (store := self.store()) is not None else []
        for name in (self._path, Path(f"{self._path}-wal")):
            with contextlib.suppress(OSError):
                found = name.stat()
                seen.append(f"{found.st_mtime_ns} {found.st_size}")
        broker = self.broker() if self.options.shares else None
        seen += [one.id for one in broker.requests()] if broker else []
        return ", ".join(seen)

    def close(self) -> None:
        self._open.close()
