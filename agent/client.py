"""Agent and AsyncAgent: the synchronous and the asynchronous client of quoth. Agent wraps AsyncAgent.

This is a façade: agent/run/host.py assembles the parts, and other rooms do the work.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from quoth.agent.events import RunEvent
from quoth.agent.reply import Reply
from quoth.agent.run.conversation import Conversations
from quoth.agent.run.event_stream import EventStream
from quoth.agent.run.options import ModelOptions, ToolOptions
from quoth.agent.session.index import find_session
from quoth.tools.call.call import ToolResult
from quoth.tools.call.ports import Audit
from quoth.tools.consent.broker import Broker
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import ToolTable

if TYPE_CHECKING:
    from quoth.agent.flight.report import FlightReport
    from quoth.agent.replay.again import Opening
    from quoth.agent.replay.replay import Replay
    from quoth.agent.session.latest import Having


T = TypeVar("T")
P = ParamSpec("P")

STREAM = """Run one task as ``run`` does, and iterate over its events (RunEvent) as they happen; the last is
        ``end``, whose data is the Reply. Leaving the loop early stops the run; to be sure that it has
        stopped, close the iterator, as contextlib.aclosing and contextlib.closing do."""


def _streaming(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Reply]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[RunEvent]]:
    """Return a method that iterates over the events of what this one does."""

    def stream(self: Any, /, *args: P.args, **named: P.kwargs) -> AsyncGenerator[RunEvent]:
        return EventStream(self._streams).of(lambda: method(self, *args, **named))

    return _shown(stream, method, "AsyncGenerator[RunEvent]")


def _shown(stream: Callable[P, T], method: Callable[..., Any], gives: str) -> Callable[P, T]:
    """Give a method that streams its name, its docstring and the parameters of ``method``."""
    stream.__name__, stream.__doc__ = "stream", STREAM
    stream.__signature__ = signature(method).replace(return_annotation=gives)  # type: ignore[attr-defined]
    return stream


class AsyncAgent(Conversations):
    """An agent in a workspace. Use it as an async context manager, or call ``aclose``."""

    stream = _streaming(Conversations.run)

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
        """Fly a flight plan: run its steps and write their results into its file.

        A flight that has not ended continues where it stopped; with ``again`` a new one begins. ``start``,
        ``only`` and ``until`` choose steps by id or title, ``until`` also by phase. With ``parallel``
        independent steps run at once. Raises UsageError for a plan with faults, and then runs nothing."""
        self._require_open()
        from quoth.agent.flight.engine import fly
        from quoth.agent.flight.plan_file import PlanFile
        from quoth.agent.flight.report import Wanted

        return await fly(self, PlanFile(path), Wanted(start, only, until, parallel, again), self.named)

    async def replay(self, session: str | Path | None = None, *, live_tools: bool = False) -> Replay:
        """Replay a session with this agent's tools, dialect and belt, and compare the prompts and calls that
        the loop would make now with the recorded ones.

        ``session`` is an id in this workspace (by default this agent's session), or the Path of a file that
        ``quoth export`` wrote. No model is asked, no tool body runs, nothing is written. With ``live_tools``
        calls that only read are made again, through the door, and changed results are reported too. Raises
        UsageError."""
        from quoth.agent.replay.again import session_in_file, session_in_store
        from quoth.agent.replay.replay import replay

        self._require_open()
        if isinstance(session, Path):
            name, events = session_in_file(session)
        else:
            name = find_session(self._opened_store(), session or self.session)
            events = session_in_store(self._opened_store(), name)

        def again(given: Opening) -> Conversations:
            return Conversations(
                workspace=self.workspace.root,
                tools=ToolOptions(self.table, "search" if self.models.search else "full"),
                model=ModelOptions(dialect=self.models.options.dialect),
                user=str(given.said.get("user", "")),
                session=name,
            )

        return await replay(name, events, again, (lambda given: self) if live_tools else None)

    def latest_session(self, having: Having = "work") -> str:
        """The id of this user's latest session in the workspace, as commands choose it: with ``work`` (a run,
        a flight, a form or a call), a ``run``, ``writes`` or something that ``waits``. Raises UsageError if
        there is none."""
        from quoth.agent.session.latest import latest_session

        self._require_open()
        return latest_session(self.store, self.user, having)


def _like(
    method: Callable[Concatenate[Any, P], object],
) -> Callable[[Callable[..., T]], Callable[Concatenate[Any, P], T]]:
    """Decorate a method that passes all its arguments on to ``method`` with that one's signature and
    docstring, for ``help``, completion and type checkers."""
    return functools.wraps(method, assigned=("__doc__", "__name__"), updated=())


def _waiting(
    method: Callable[Concatenate[AsyncAgent, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Agent, P], T]:
    """Return a method for Agent that runs this one of AsyncAgent and waits for its result."""

    @_like(method)
    def wait(self: Agent, *args: P.args, **named: P.kwargs) -> T:
        return self._wait(method(self._agent, *args, **named))

    return wait


def _iterating(
    method: Callable[Concatenate[AsyncAgent, P], AsyncGenerator[RunEvent]],
) -> Callable[Concatenate[Agent, P], Generator[RunEvent]]:
    """Return a method for Agent that iterates over the events that this one of AsyncAgent gives."""

    def stream(self: Agent, /, *args: P.args, **named: P.kwargs) -> Generator[RunEvent]:
        events = method(self._agent, *args, **named)

        async def following() -> RunEvent | None:
            return await anext(events, None)

        try:
            while (event := self._wait(following())) is not None:
                yield event
        finally:
            if not self._closed:
                self._wait(events.aclose())

    return _shown(stream, method, "Generator[RunEvent]")


class Agent:
    """The synchronous client: arguments and methods of AsyncAgent, on an event loop in its own thread."""

    @_like(AsyncAgent.__init__)
    def __init__(self, **options: Any) -> None:
        self._agent = AsyncAgent(**options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="quoth-loop", daemon=True)
        self._thread.start()
        self._closed = False

    @property
    def table(self) -> ToolTable:
        """The tools of the agent."""
        return self._agent.table

    @property
    def session(self) -> str:
        """The id of its session."""
        return self._agent.session

    @property
    def audit(self) -> Audit:
        """The audit trail: every call and its result."""
        return self._agent.audit

    def call(self, form: str | CallForm) -> ToolResult:
        """Make one call through the door, without a model. An unreadable form gives an ``invalid`` result."""
        return self._wait(self._agent.call(form, route="python"))

    def eval(self, program: str, *, dry_run: bool | Literal["pure"] = False) -> ToolResult:
        """Run a Lisp program in the sandbox; each of its calls passes the door. See AsyncAgent.eval."""
        return self._wait(self._agent.eval(program, route="python", dry_run=dry_run))

    run = _waiting(AsyncAgent.run)
    stream = _iterating(AsyncAgent.stream)
    say = _waiting(AsyncAgent.say)
    follow = _waiting(AsyncAgent.follow)
    resume = _waiting(AsyncAgent.resume)
    fly = _waiting(AsyncAgent.fly)
    replay = _waiting(AsyncAgent.replay)

    @_like(AsyncAgent.ask_for_plan)
    def ask_for_plan(self, program: str, plan: Mapping[str, Any]) -> str:
        return self._agent.ask_for_plan(program, plan)

    @property
    def broker(self) -> Broker:
        """The broker, which lists the requests that wait for a person and records decisions."""
        return self._agent.broker

    @_like(AsyncAgent.latest_session)
    def latest_session(self, having: Having = "work") -> str:
        return self._agent.latest_session(having)

    @_like(AsyncAgent.forget)
    def forget(self) -> None:
        self._agent.forget()

    def interrupt(self) -> None:
        """Stop the run in progress, within a second. May be called from any thread."""
        if not self._closed:
            self._loop.call_soon_threadsafe(self._agent.interrupt)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed or threading.current_thread() is self._thread:
            work.close()
            alive = "A listener or an async tool cannot wait for its own agent; use AsyncAgent there."
            raise UsageError("This agent is closed." if self._closed else alive)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except KeyboardInterrupt:  # it may come while the work is being handed over: there is no future yet
            self._loop.call_soon_threadsafe(self._cancel, work)
            raise

    def _cancel(self, work: Coroutine[Any, Any, T]) -> None:
        for task in asyncio.all_tasks(self._loop):
            if task.get_coro() is work:
                task.cancel()

    def close(self) -> None:
        """Close the agent and stop everything it started. May be called twice."""
        if self._closed:
            return
        try:
            self._wait(self._ended())
        finally:
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=10)
            if not self._thread.is_alive():
                self._loop.close()

    async def _ended(self) -> None:
        """Close the agent, and let nobody in another thread wait for what will not come."""
        await self._agent.aclose()
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            _, late = await asyncio.wait(others, timeout=0.5)
            for task in late:
                task.cancel()
            await asyncio.wait(others, timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
