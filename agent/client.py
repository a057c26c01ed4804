"""Agent and AsyncAgent: the synchronous and the asynchronous client of quoth. Agent wraps AsyncAgent.

This is a façade: agent/run/parts.py and host.py assemble an agent, and other rooms do the work.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    overload,
)

from quoth.agent.config.config import Config
from quoth.agent.events import Listener
from quoth.agent.reply import Output, Reply
from quoth.agent.run.calls import Calls
from quoth.agent.run.event_stream import Events, EventStream
from quoth.agent.run.host import SessionHost, open_host
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.models import Models
from quoth.agent.run.options import ModelOptions, ToolOptions
from quoth.agent.run.runs import Runs, RunSettings
from quoth.agent.session.index import Having, find_session, latest_session
from quoth.tools.call.call import ToolResult
from quoth.tools.call.ports import Audit
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.broker import Broker
from quoth.tools.door.door import Door
from quoth.tools.errors import UsageError
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.database import Store

if TYPE_CHECKING:
    from quoth.agent.event_types import RunEvent
    from quoth.agent.flight.report import FlightReport
    from quoth.agent.replay.again import Opening
    from quoth.agent.replay.replay import Replay


A = TypeVar("A")
S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")

STREAM = """Run one task as ``run`` does, and iterate over its events (RunEvent) as they happen; the last is
        ``end``, whose data is the Reply. Leaving the loop early stops the run; to be sure that it has
        stopped, close the iterator, as contextlib.aclosing and contextlib.closing do."""


def _shown(stream: Callable[P, T], method: Callable[..., Any], gives: str) -> Callable[P, T]:
    """Give a method that streams its name, its docstring and the parameters of ``method``."""
    stream.__name__, stream.__doc__ = "stream", STREAM
    stream.__signature__ = signature(method).replace(return_annotation=gives)  # type: ignore[attr-defined]
    return stream


def _like(
    method: Callable[Concatenate[Any, P], object],
) -> Callable[[Callable[..., T]], Callable[Concatenate[Any, P], T]]:
    """Decorate a method that passes all its arguments on to ``method`` with that one's signature and
    docstring, for ``help``, completion and type checkers."""
    return functools.wraps(method, assigned=("__doc__", "__name__"), updated=())


def _streaming(
    method: Callable[Concatenate[Runs, P], Coroutine[Any, Any, Reply]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[RunEvent]]:
    """Return a method that does the work of this one and iterates over its events."""

    def stream(self: AsyncAgent, /, *args: P.args, **named: P.kwargs) -> AsyncGenerator[RunEvent]:
        events = self.host.events.streams
        return EventStream(events).of(lambda: method(self.runs, *args, **named))

    return _shown(stream, method, "AsyncGenerator[RunEvent]")


def _opening(
    make: Callable[P, SessionHost],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Give an ``__init__`` that passes its arguments to ``make`` the parameters and docstring of ``make``."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        own, taken = signature(init), signature(make).parameters.values()
        init.__doc__ = make.__doc__
        init.__signature__ = own.replace(parameters=[own.parameters["self"], *taken])  # type: ignore[attr-defined]
        return init

    return decorate


def _of(owner: Callable[[A], S], method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[A, P], T]:
    """Make the method of ``owner`` a method of its agent."""

    @_like(method)
    def call(self: A, *args: P.args, **named: P.kwargs) -> T:
        return method(owner(self), *args, **named)

    return call


class _Part(Generic[T]):
    """An attribute of an agent that forwards to the attribute of ``owner`` with the same name."""

    def __init__(self, owner: Callable[[Any], object], doc: str) -> None:
        self._owner, self.__doc__ = owner, doc

    def __set_name__(self, agent: type, name: str) -> None:
        self._name = name

    def __get__(self, agent: object, kind: type) -> T:
        return self if agent is None else getattr(self._owner(agent), self._name)  # type: ignore[return-value]

    def __set__(self, agent: object, value: T) -> None:
        setattr(self._owner(agent), self._name, value)


def _host(agent: AsyncAgent) -> SessionHost:
    return agent.host


def _runs(agent: AsyncAgent) -> Runs:
    return agent.runs


def _calls(agent: AsyncAgent) -> Calls:
    return agent.calls


def _events(agent: AsyncAgent) -> Events:
    return agent.host.events


def _inner(agent: Agent) -> AsyncAgent:
    return agent._agent


class AsyncAgent:
    """An agent in a workspace. Use it as an async context manager, or call ``aclose``."""

    @_opening(open_host)
    def __init__(self, **settings: Any) -> None:
        self._compose(open_host(**settings))

    def _compose(self, host: SessionHost) -> Self:
        self.host, self.runs, self.calls = host, Runs(host), Calls(host)
        return self

    table = _Part[ToolTable](_host, "The tools of the agent.")
    session = _Part[str](_host, "The id of its session.")
    user = _Part[str](_host, "The user's name.")
    knowledge = _Part[str | None](_host, "Text of the host for the model; may be replaced at any time.")
    workspace = _Part[Workspace](_host, "The folder that its file tools may read and write.")
    config = _Part[Config](_host, "The user's config.hy.")
    policy = _Part[RulesPolicy](_host, "The rules that judge its calls.")
    door = _Part[Door](_host, "The door: every call passes it.")
    limits = _Part[RunLimits](_host, "What each run may spend.")
    models = _Part[Models](_host, "Its model, and the models that its tools ask.")
    audit = _Part[Audit](lambda agent: agent.host.door, "The audit trail: every call and its result.")
    broker = _Part[Broker](_host, "The requests that wait for a person, and the decisions.")
    store = _Part[Store](_host, "The store of the workspace, opened at the first use.")
    transcript = _Part[Transcript](_host, "The events of all sessions in the store.")
    on_event = _Part[Listener | None](_events, "The listener; may be replaced.")
    deliver = _Part[Callable[[str], object] | None](_events, "Brings a message to the user.")

    if TYPE_CHECKING:  # ``output`` determines the type of Reply.output

        @overload
        async def run(
            self, task: str, *, output: None = None, **settings: Unpack[RunSettings]
        ) -> Reply[None]: ...
        @overload
        async def run(
            self, task: str, *, output: type[Output[T]], **settings: Unpack[RunSettings]
        ) -> Reply[T]: ...
        @overload
        async def run(self, task: str, *, output: type[T], **settings: Unpack[RunSettings]) -> Reply[T]: ...
        async def run(self, task: str, *, output: Any = None, **settings: Unpack[RunSettings]) -> Any: ...
    else:
        run = _of(_runs, Runs.run)
    stream = _streaming(Runs.run)
    say = _of(_runs, Runs.say)
    follow = _of(_runs, Runs.follow)
    resume = _of(_runs, Runs.resume)
    forget = _of(_runs, Runs.forget)
    call = _of(_calls, Calls.call)
    eval = _of(_calls, Calls.eval)
    ask_for_plan = _of(_calls, Calls.ask_for_plan)
    context = _of(_calls, Calls.context)
    interrupt = _of(_host, SessionHost.interrupt)
    aclose = _of(_host, SessionHost.aclose)

    def belt(self, view: str = "lisp") -> str | list[dict[str, Any]]:
        """The tool list as ``quoth belt --view`` prints it: text, or a list of objects for the views
        ``openai``, ``responses``, ``anthropic`` and ``mcp``. Raises UsageError for an unknown view."""
        from quoth.neuro.prompt.belt import belt_view

        return belt_view(self.table, view)

    def for_chat(self, chat: str | int, session: str = "") -> AsyncAgent:
        """An agent for one chat, with its own conversation and memory. Its session is ``session``, by default
        one named after the chat. Close it before this agent."""
        return object.__new__(AsyncAgent)._compose(self.host.for_chat(chat, session))

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

        An unfinished flight continues where it stopped; ``again`` begins a new one. ``start``, ``only`` and
        ``until`` choose steps by id or title, ``until`` also by phase. With ``parallel``, independent steps
        run at the same time. Raises UsageError, before any step, if the plan has faults."""
        self.host.require_open()
        from quoth.agent.flight.engine import fly
        from quoth.agent.flight.plan_file import PlanFile
        from quoth.agent.flight.report import Wanted

        return await fly(
            self.host, PlanFile(path), Wanted(start, only, until, parallel, again), self.host.named
        )

    async def replay(self, session: str | Path | None = None, *, live_tools: bool = False) -> Replay:
        """Replay a session with this agent's tools, dialect and tool list, and compare the prompts and calls
        of the loop now with the recorded ones.

        ``session`` is an id in this workspace (by default this agent's session), or the Path of a file that
        ``quoth export`` wrote. No model is asked, no tool body runs, nothing is written. With ``live_tools``,
        calls that only read are run again, through the door, and changed results are reported too. Raises
        UsageError."""
        from quoth.agent.replay.again import session_in_file, session_in_store
        from quoth.agent.replay.replay import replay

        self.host.require_open()
        if isinstance(session, Path):
            name, events = session_in_file(session)
        else:
            name = find_session(self.store, session or self.session)
            events = session_in_store(self.store, name)

        def again(given: Opening) -> SessionHost:
            return open_host(
                workspace=self.workspace.root,
                tools=ToolOptions(self.table, self.models.belt),
                model=ModelOptions(dialect=self.models.options.dialect),
                user=str(given.said.get("user", "")),
                session=name,
            )

        return await replay(name, events, again, (lambda given: self.host) if live_tools else None)

    def latest_session(self, having: Having = "work") -> str:
        """The id of this user's latest session in the workspace that contains ``having``: ``work`` (a run, a
        flight, a form or a call), ``run``, ``writes`` or ``waits`` (something waits for a person). Raises
        UsageError if there is none."""
        self.host.require_open()
        return latest_session(self.store, self.user, having)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


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

    table = _Part[ToolTable](_inner, "The tools of the agent.")
    session = _Part[str](_inner, "The id of its session.")
    audit = _Part[Audit](_inner, "The audit trail: every call and its result.")
    broker = _Part[Broker](_inner, "The requests that wait for a person, and the decisions.")

    def call(self, form: str | CallForm, *, user: str = "", key: str = "") -> ToolResult:
        """Run one call through the door, without a model. An unreadable form gives an ``invalid`` result.
        ``user`` and ``key`` are as in AsyncAgent.call."""
        return self._wait(self._agent.call(form, route="python", user=user, key=key))

    def eval(self, program: str, *, dry_run: bool | Literal["pure"] = False) -> ToolResult:
        """Run a Lisp program in the sandbox; each of its calls passes the door. See AsyncAgent.eval."""
        return self._wait(self._agent.eval(program, route="python", dry_run=dry_run))

    if TYPE_CHECKING:  # ``output`` determines the type of Reply.output

        @overload
        def run(self, task: str, *, output: None = None, **settings: Unpack[RunSettings]) -> Reply[None]: ...
        @overload
        def run(self, task: str, *, output: type[Output[T]], **settings: Unpack[RunSettings]) -> Reply[T]: ...
        @overload
        def run(self, task: str, *, output: type[T], **settings: Unpack[RunSettings]) -> Reply[T]: ...
        def run(self, task: str, *, output: Any = None, **settings: Unpack[RunSettings]) -> Any: ...
    else:
        run = _waiting(AsyncAgent.run)
    stream = _iterating(AsyncAgent.stream)
    say = _waiting(AsyncAgent.say)
    follow = _waiting(AsyncAgent.follow)
    resume = _waiting(AsyncAgent.resume)
    fly = _waiting(AsyncAgent.fly)
    replay = _waiting(AsyncAgent.replay)
    ask_for_plan = _of(_inner, AsyncAgent.ask_for_plan)
    latest_session = _of(_inner, AsyncAgent.latest_session)
    forget = _of(_inner, AsyncAgent.forget)
    belt = _of(_inner, AsyncAgent.belt)

    def interrupt(self) -> None:
        """Stop the current run within a second. May be called from any thread."""
        if not self._closed:
            self._loop.call_soon_threadsafe(self._agent.interrupt)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed or threading.current_thread() is self._thread:
            work.close()
            alive = "A listener or an async tool cannot wait for its own agent; use AsyncAgent there."
            raise UsageError("This agent is closed." if self._closed else alive)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except KeyboardInterrupt:  # it may arrive before the work has a future
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
        """Close the agent, and end the wait of other threads for work that will not finish."""
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
