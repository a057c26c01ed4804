"""Agent and AsyncAgent: the two clients of the whole machine, like httpx's two. The async one is the core.

A façade: the parts are put together in agent/run/host.py, and the work is in the rooms.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from quoth.agent.reply import Reply
from quoth.agent.run.host import Host
from quoth.agent.session.index import find_session
from quoth.tools.call.call import ToolResult
from quoth.tools.call.ports import Audit
from quoth.tools.consent.broker import Broker
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import ToolTable

if TYPE_CHECKING:
    from quoth.agent.flight.report import FlightReport
    from quoth.agent.replay.replay import Given, Replay


T = TypeVar("T")


class AsyncAgent(Host):
    """An agent in a workspace. Use it as an async context manager, or call ``aclose``.

    ``workspace`` is the one folder its file tools may touch. ``tools`` are ``.hy`` files or CognitiveTools
    beside those that ship (``table`` replaces them all). ``model`` is a spec (``local``, ``openai:…``,
    ``scripted:…``), a Backend (which is not closed with the agent), or None for the default, chosen at the
    first run. ``dialect`` is how it is to call tools (neuro/prompt/dialects.py), by the model's family if
    None; a ``belt`` to search shows one line a tool, for a table that is too large to show. ``policy`` is a
    file of rules beside those of the user and of the workspace (tools/policy/policy.py). ``consent`` answers
    what policy and guards ask: ``"yes"``, an object with ``request`` (tools/consent/broker.py, Person), or
    None: such a call is pending at once, ``broker`` takes the decision, and ``resume`` goes on. ``limits``
    are those of each run; ``max_reply_tokens`` is the one of a reply (agent/run/run.py, RunLimits).
    ``quotas`` are limits beside those the tools and the policy declare, ``zone`` is where a day of theirs
    begins. ``services`` are what tools may use beside the workspace (tools/call/services.py; the model is
    this one if they hold none); ``knowledge``, ``confidence`` and ``agent_id`` are what they may know. Raises
    UsageError for what cannot be used, with a sentence.
    """

    async def fly(
        self,
        path: str | Path,
        *,
        start: str = "",
        only: str = "",
        until: str = "",
        parallel: bool = False,
        again: bool = False,
    ) -> FlightReport:
        """Fly a flight plan: its steps are run and what they come to is written into its file.

        A flight that has not ended goes on where it stood, with ``again`` all is flown anew. ``start``,
        ``only`` and ``until`` choose the steps; with ``parallel`` those without order between them run at
        once. Raises UsageError for a plan with faults: then nothing is run."""
        self._require_open()
        from quoth.agent.flight.engine import fly
        from quoth.agent.flight.report import Wanted

        return await fly(self, path, Wanted(start, only, until, parallel, again), self.named)

    async def replay(self, session: str | Path | None = None, *, live_tools: bool = False) -> Replay:
        """Replay a session of this workspace (this one if none is named), or one in a file that ``quoth
        export`` wrote, with the tools, the dialect and the belt of this agent: what the loop would tell the
        model and call now is compared with what is recorded. No model is asked, no body runs, nothing is
        written. With ``live_tools`` calls that only read are made again, through the door, and what changed
        is reported too. Raises UsageError."""
        from quoth.agent.replay.replay import replay, session_in_file, session_in_store

        self._require_open()
        if isinstance(session, Path):
            name, events = session_in_file(session)
        else:
            name = find_session(self._opened_store(), session or self.session)
            events = session_in_store(self._opened_store(), name)

        def again(given: Given) -> AsyncAgent:
            return AsyncAgent(
                workspace=self.workspace.root,
                table=self.table,
                user=str(given.said.get("user", "")),
                session=name,
                dialect=self._wanted,
                belt="search" if self._search else "full",
            )

        return await replay(name, events, again, (lambda given: self) if live_tools else None)


class Agent:
    """The synchronous twin of AsyncAgent: same arguments and methods, on an event loop in its own thread."""

    def __init__(self, **options: Any) -> None:
        self._agent = AsyncAgent(**options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="quoth-loop", daemon=True)
        self._thread.start()
        self._closed = False

    @property
    def table(self) -> ToolTable:
        return self._agent.table

    @property
    def session(self) -> str:
        return self._agent.session

    @property
    def audit(self) -> Audit:
        return self._agent.audit

    def call(self, form: str | CallForm) -> ToolResult:
        return self._wait(self._agent.call(form, route="python"))

    def eval(self, program: str, *, dry_run: bool | Literal["pure"] = False) -> ToolResult:
        return self._wait(self._agent.eval(program, route="python", dry_run=dry_run))

    def ask_for_plan(self, program: str, plan: Mapping[str, Any]) -> str:
        return self._agent.ask_for_plan(program, plan)

    def run(self, task: str) -> Reply:
        return self._wait(self._agent.run(task))

    def say(self, text: str) -> Reply:
        return self._wait(self._agent.say(text))

    def follow(self, text: str) -> Reply:
        return self._wait(self._agent.follow(text))

    def resume(self) -> list[Reply | ToolResult]:
        return self._wait(self._agent.resume())

    def fly(self, path: str | Path, **wanted: Any) -> FlightReport:
        return self._wait(self._agent.fly(path, **wanted))

    def replay(self, session: str | Path | None = None, *, live_tools: bool = False) -> Replay:
        return self._wait(self._agent.replay(session, live_tools=live_tools))

    @property
    def broker(self) -> Broker:
        """The requests that wait for a person, and what can be decided of them."""
        return self._agent.broker

    def forget(self) -> None:
        self._agent.forget()

    def interrupt(self) -> None:
        """Stop the run in progress, from any thread."""
        if not self._closed:
            self._loop.call_soon_threadsafe(self._agent.interrupt)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed or threading.current_thread() is self._thread:
            work.close()
            raise UsageError(
                "This agent is closed."
                if self._closed
                else "A listener or an async tool cannot wait for its own agent; use AsyncAgent there."
            )
        tasks: list[asyncio.Task[Any] | None] = []
        interrupted = threading.Event()

        async def watched() -> T:
            tasks.append(asyncio.current_task())
            if interrupted.is_set():
                work.close()
                raise asyncio.CancelledError
            return await work

        def cancel() -> None:
            for task in tasks:
                if task is not None:
                    task.cancel()

        try:
            return asyncio.run_coroutine_threadsafe(watched(), self._loop).result()
        except KeyboardInterrupt:  # it may come while the work is being handed over: there is no future yet
            interrupted.set()
            self._loop.call_soon_threadsafe(cancel)
            raise

    def close(self) -> None:
        """Stop everything that was started. May be called twice."""
        if self._closed:
            return
        try:
            self._wait(self._agent.aclose())
        finally:
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=10)
            if not self._thread.is_alive():
                self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
