"""The ToolContext, which a tool uses while it runs, the protocols of its parts, and guards for files.

The host sets every field; a model can set none.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import hashlib
import json
import math
import time
import warnings
from collections import UserDict
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from quoth.tools.call.call import ALLOW, Call, CallPreview, Record, ToolResult, ValueOrigin, Verdict, deny
from quoth.tools.call.keeping import KEEPER, Keeper
from quoth.tools.call.redaction import SENT
from quoth.tools.call.services import (
    NO_PERMISSION,
    NO_SERVICES,
    KnowledgeBase,
    MemoryStore,
    ModelProvider,
    PermissionBroker,
    Router,
    Services,
    SharedBlocks,
    SourceManager,
    Team,
    WebSearch,
)
from quoth.tools.errors import Pending, ToolError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, from_model, kebab
from quoth.tools.registry.values import NoDataError, plain, plain_but_secrets

if TYPE_CHECKING:
    from quoth.tools.call.service_types import SearchHit, SearchOptions, SearchScope
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.program.compiler import Program


class Origins(Protocol):
    """The values that a session has seen so far."""

    def find(self, value: Any, call: Call) -> ValueOrigin:
        """The origin of one text or number of this call. Text that a person typed, and forms of a plan that a
        person approved, count as the task."""
        ...

    def intended(self, call: Call) -> bool | None:
        """Whether the person's words need the tool of this call, as the model said before it read anything
        foreign; None if it did not say."""
        ...


class Dispatch(Protocol):
    """Runs a nested call through the same door. ``name`` identifies the call within its body when the
    body is resumed; without a name, calls of the same form are numbered. A ``dry`` call and its inner
    calls may only read; the door enforces that."""

    def __call__(self, form: CallForm, name: str = "", dry: bool = False) -> Awaitable[ToolResult]: ...


class PreviewCall(Protocol):
    """Previews a nested call without running it. ``unknown`` returns whether a value is not known yet; with
    ``guards=False`` the guard does not run."""

    def __call__(
        self, form: CallForm, unknown: Callable[[Any], bool], guards: bool = True
    ) -> Awaitable[CallPreview]: ...


class Catalog(Protocol):
    """Describes the other tools to a tool, in words for a model."""

    def describe(self, name: str) -> str:
        """The full description of one tool. Raises UnknownToolError, which names the nearest tool."""
        ...

    async def search(self, words: str, limit: int) -> list[str]:
        """One line for each of at most ``limit`` tools that match the words, best first."""
        ...


class ProgramRunner(Protocol):
    """Runs programs in another process (tools/sandbox/runner.py)."""

    async def run(
        self,
        program: Program,
        names: Iterable[str],
        call: Callable[[CallForm, str], Awaitable[Any]],
        *,
        state: Mapping[str, Any] | None = None,
        values: bytes | None = None,
        listing: Sequence[dict[str, Any]] = (),
        keep: Callable[[bytes, list[dict[str, Any]]], None] | None = None,
        unnamed: Collection[str] = (),
    ) -> tuple[Any, str]:
        """Run a program and return its value and its printed output; ``call`` runs the calls in it. Error
        messages never mention the ``unnamed`` names."""
        ...

    def worker(self, seconds: float | None = None) -> AbstractAsyncContextManager[Any]:
        """A context manager that waits for a free worker process and reserves it."""
        ...


class Pages(Protocol):
    """Keeps and reads texts of this session that were too long to show to a model in one piece."""

    def keep(self, text: str) -> str:
        """Store a text and return its id; empty when it cannot be stored."""
        ...

    def page(self, id: str, start: int = 1) -> tuple[str, str]:
        """The part that begins at character ``start`` (from 1), and a description of its range. Raises
        ToolError."""
        ...


class Planning(Protocol):
    """Keeps calls as the steps of a plan, instead of running them, in plan mode (agent/run/plan_mode.py)."""

    def enters(self, call: Call) -> None:
        """A program begins; if a call in it becomes a step, that step is the whole program."""
        ...

    def note(self, call: Call, paths: Sequence[str]) -> str:
        """Keep a call as a step, unless it is one already, and return the message for its caller. ``paths``
        are the files it works on."""
        ...

    def changing(self, paths: Sequence[str], perhaps: bool = False) -> int:
        """The number of the last step that changes one of these files, or with ``perhaps`` may change one;
        0 for none."""
        ...


STAMPED = ("tool", "digest", "status", "stage", "duration_ms", "ts", "route", "room_at", "written")
MOST_DETAILS = 4_000  # characters as JSON


class AuditDetails(UserDict[str, Any]):
    """Details that the guard, gate or body of a call adds to its audit: plain data under names that the door
    does not set. Raises ToolError for anything else, and for more than MOST_DETAILS characters."""

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str) or name in STAMPED:
            raise ToolError(f"ctx.audit[{name!r}] is set by the door; choose another name.")
        _details({**self.data, name: value})
        super().__setitem__(name, value)

    def recorded(self) -> dict[str, Any]:
        """All details, for the record; a sentence instead of a list that has grown too long."""
        try:
            return _details(self.data)
        except ToolError as error:
            return {"lost": str(error)}


def _details(data: Mapping[str, Any]) -> dict[str, Any]:
    made = {}
    for name, value in data.items():
        try:
            made[name] = SENT.data(plain(value))
        except NoDataError as error:
            raise ToolError(f"ctx.audit[{name!r}] is {error.sentence}") from None
    if (length := len(json.dumps(made))) > MOST_DETAILS:
        raise ToolError(f"ctx.audit takes {MOST_DETAILS:,} characters of JSON, not {length:,}.")
    return made


def _anything(path: str) -> bool:
    return True


def _nothing(address: str) -> bool:
    return False


@dataclass(frozen=True, eq=False, repr=False)
class ToolContext(Record):
    """The context of a running body or guard; the host sets every field.

    ``dispatch`` runs a nested call through the same door, ``look`` previews one. In a ``dry`` context calls
    may only read, and no approval is asked for. ``knowledge`` is the text that the host's knowledge base has
    on the message, ``confidence`` (0 to 1) is the model's own estimate. ``services`` are the host's services;
    ``permission`` asks a person on behalf of this call. ``talk`` returns the conversation so far as pairs of
    speaker (the model is ``assistant``) and text. ``audit`` receives details for the call's row in the audit:
    ``ctx.audit["score"] = 0.7``. The functions in ``written`` run in the
    transaction that stores the result; each returns a sentence for the model, or "". A tool that walks
    through folders asks ``may_list`` before it names a file and ``may_read`` before it opens one.
    """

    workspace: Workspace
    user: str = ""
    session: str = ""
    user_message: str = ""
    dispatch: Dispatch | None = None
    look: PreviewCall | None = None
    dry: bool = False
    planning: Planning | None = None  # plan mode: a call that does more than read becomes a step of a plan
    known_files: Callable[[], Collection[str]] = tuple  # files that calls of this session read or wrote
    tool_names: tuple[str, ...] = ()
    unnamed: frozenset[str] = frozenset()  # tools that the model is not shown: messages never name them
    sandbox: ProgramRunner | None = None
    snapshots: Snapshots | None = None  # stores suspended programs
    may_list: Callable[[str], bool] = _anything  # whether the rules allow naming this file
    may_read: Callable[[str], bool] = _anything  # whether the rules allow reading this file
    may_look: Callable[[str], bool] = _anything  # the same for a file that the call did not ask for
    may_reach: Callable[[str], bool] = _nothing  # whether a rule names this IP address of the local network
    shown: Callable[[CallForm], str] = str  # a form for people, without declared secrets
    catalog: Catalog | None = None
    pages: Pages | None = None
    side_effects: list[str] = field(default_factory=list)
    audit: AuditDetails = field(default_factory=AuditDetails)
    said: list[str] = field(default_factory=list)
    written: list[Callable[[], str]] = field(default_factory=list)
    clocks: tuple[PausableClock, ...] = ()  # of the enclosing calls
    inner_clocks: tuple[PausableClock, ...] = ()  # ``clocks`` and this call's own, for its inner calls
    seconds_left: Callable[[], float] = lambda: math.inf  # of the run that the call belongs to
    agent_id: str = ""
    knowledge: str | None = None
    confidence: float | None = None
    talk: Callable[[], Sequence[tuple[str, str]]] = tuple
    services: Services = NO_SERVICES
    permission: PermissionBroker = NO_PERMISSION
    tool: str = ""  # the running tool, and its call's route: stores record them as the author of a change
    route: str = ""
    shows: Callable[[str], None] | None = None  # shows a program's output to a person as it arrives
    programs: Callable[[], Any] | None = None  # background programs (tools/shell/background.py)
    boundary: Mapping[str, Any] = field(default_factory=dict)  # the user's additions to the boundary
    chat: str = ""  # the chat that the session belongs to, as its people name it
    keep: Keeper | None = None  # receives a file's content before this call overwrites it
    origins: Origins | None = None  # the values the session has seen; None: origins are not known

    @property
    def chat_id(self) -> str:
        """The chat, or the session id if there is no chat; the name that chat bots use."""
        return self.chat or self.session

    @property
    def permission_broker(self) -> PermissionBroker:
        """The same as ``permission``."""
        return self.permission

    @property
    def memory(self) -> MemoryStore:
        return self.services.memory

    @property
    def router(self) -> Router:
        return self.services.router

    @property
    def model(self) -> ModelProvider:
        return self.services.model

    @property
    def team(self) -> Team:
        return self.services.team

    @property
    def sources(self) -> SourceManager:
        return self.services.sources

    @property
    def shared_blocks(self) -> SharedBlocks:
        return self.services.shared_blocks

    @property
    def knowledge_base(self) -> KnowledgeBase:
        return self.services.knowledge_base

    @property
    def web_search(self) -> WebSearch:
        return self.services.web_search

    async def search(
        self, query: str, scope: SearchScope = "agent", options: SearchOptions | None = None
    ) -> Sequence[SearchHit]:
        """Search what this agent may see: its own data, the data shared with it, or all."""
        from quoth.tools.call.service_types import SearchOptions, check_scope

        check_scope(scope)
        return await self.services.search.search(query, scope, options or SearchOptions())

    def call(self, tool: str | CallForm | Callable[..., Any], /, *args: Any, **named: Any) -> NestedCall:
        """A call of another tool, through the whole door; its value is the call's, as plain data::

            text = await ctx.call("read-file", path="a.txt")        # in an async body
            text = ctx.call("read-file", path="a.txt").wait()       # in any other

        ``tool`` is a name, a function of ``tools=[…]``, or a whole form, ``"(read-file :path \"a.txt\")"``.
        Raises CallFailed, a ToolError whose ``result`` is the ToolResult, where the call is not ok. While a
        person is asked about it, this body waits. Where no person is there, it ends as pending, and runs from
        its beginning when it is resumed; the calls that it has made then keep their values."""
        if self.dispatch is None:
            raise ToolError("This context has no door, through which another tool could be called.")
        return NestedCall(nested_form(tool, args, named), self.dispatch)

    def effect(self, what: str) -> None:
        """Record a side effect, such as ``wrote:src/x.py``, for the result and the audit."""
        self.side_effects.append(SENT.without(what))

    def say(self, text: str) -> None:
        """Add a message for the model, and in a chat for the person. It is returned beside the value if the
        call is ok."""
        self.said.append(SENT.without(text))


class SavedValues(NamedTuple):
    """The saved values of a session: the sandbox's state; name, type and length of each value; and macros.
    ``generation`` identifies the stored version, or the version that the new values are based on."""

    state: bytes
    listing: list[dict[str, Any]]
    generation: str = ""
    macros: Mapping[str, str] = {}  # the definitions of macros, by name


class Snapshots(Protocol):
    """Stores suspended programs, by the key of their call, and the values of sessions."""

    def keep(self, key: str, session: str, digest: str, state: Mapping[str, Any]) -> None: ...

    def find(self, key: str, digest: str) -> dict[str, Any] | None:
        """The saved state of the program with this digest, or None. Raises SnapshotError."""
        ...

    def drop(self, key: str) -> None:
        """Delete the saved state of a call that has ended."""

    def values(self, session: str, user: str) -> SavedValues | None: ...

    def keep_values(self, session: str, user: str, kept: SavedValues) -> Callable[[], str]:
        """A function that saves the values; it returns a sentence if they cannot be saved, or ""."""
        ...


def place_of_wait(call: Call) -> str:
    """The key under which the body of a tool saves where it waits. It is the same for each call with this
    form, user and session."""
    whose = [call.tool, call.form.identity, call.session, call.user]
    return f"wait {hashlib.sha256(json.dumps(whose).encode()).hexdigest()}"


# The context of the call whose guard or body is running.


_current: contextvars.ContextVar[ToolContext | None] = contextvars.ContextVar("quoth_context", default=None)


def current_context() -> ToolContext:
    """The context of the call whose guard or body is running. Raises ToolError outside of one."""
    context = _current.get()
    if context is None:
        raise ToolError("No call is running; this works only inside the guard or body of a tool.")
    return context


def running_context() -> ToolContext | None:
    """The context of the running call, or None outside of one."""
    return _current.get()


def enter_context(context: ToolContext) -> contextvars.Context:
    """A copy of the current contextvars with ``context`` as the running call's; for the door."""
    copy = contextvars.copy_context()
    copy.run(_current.set, context)
    copy.run(KEEPER.set, context.keep)
    copy.run(_unbegun.set, {})
    return copy


# Guards for tools that touch files.


def inside_workspace(path: str | Path) -> Verdict:
    """A guard that allows a ``path`` inside the workspace and denies any other, with the reason."""
    try:
        current_context().workspace.resolve(path)
    except ToolError as error:
        return deny(str(error))
    return ALLOW


# A clock for deadlines that stops while a person is asked.


class PausableClock:
    """Measures how long something waited for a person's answers. Pauses may overlap."""

    def __init__(self) -> None:
        self._asking = 0
        self._since = 0.0
        self._held = 0.0

    def pause(self) -> None:
        if not self._asking:
            self._since = time.monotonic()
        self._asking += 1

    def go_on(self) -> None:
        self._asking -= 1
        if not self._asking:
            self._held += time.monotonic() - self._since

    @property
    def held(self) -> float:
        """Seconds paused so far."""
        return self._held + (time.monotonic() - self._since if self._asking else 0.0)


async def within(future: asyncio.Future[Any], seconds: float, clock: PausableClock | None = None) -> bool:
    """Wait for ``future`` up to ``seconds``, not counting pauses of ``clock``; whether it is done."""
    end = time.monotonic() + seconds
    while True:
        left = end + (clock.held if clock else 0.0) - time.monotonic()
        done, _ = await asyncio.wait({future}, timeout=max(0.0, left))
        if done or left <= 0:
            return bool(done)


# The calls of other tools inside a body (``ctx.call``): awaited, or waited for in the body's thread.


STEP = 0.1  # seconds between two looks of a thread that waits, at which it can be stopped
ON_THE_LOOP = (
    "wait() would block the event loop. Write await ctx.call(…), or run the function that waits in a thread: "
    "await asyncio.to_thread(…)."
)
NEVER_AWAITED = (
    "was never awaited, so the call did not run. Write await ctx.call(…) in an async body, "
    "ctx.call(…).wait() in any other."
)

_loop: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "quoth_loop", default=None
)


# The calls of the body that have not begun, by their identity.
_unbegun: contextvars.ContextVar[dict[int, NestedCall] | None] = contextvars.ContextVar(
    "quoth_unbegun", default=None
)


def require_begun(inside: contextvars.Context) -> None:
    """Raise ToolError if a body that ran in this context has forgotten to await a call."""
    unbegun = [*(inside[_unbegun] or {}).values()]
    for call in unbegun:
        call.begun = True  # it is reported once
    if unbegun:
        raise ToolError(f"{unbegun[0]} {NEVER_AWAITED}")


def use_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run the calls of a body that has its own thread in this event loop."""
    _loop.set(loop)


class CallFailed(ToolError):
    """A call within a body, or a form, did not end well; ``result`` is its ToolResult."""

    def __init__(self, result: ToolResult, sentence: str = "") -> None:
        super().__init__(sentence or result.message)
        self.result = result


class NestedCall(Awaitable[Any]):
    """A call of another tool: ``await`` it in an async body, and ``wait()`` for it in any other. Both return
    the value of the call, and raise CallFailed if it is not ok."""

    def __init__(self, form: CallForm, dispatch: Callable[[CallForm], Awaitable[ToolResult]]) -> None:
        self.form, self._dispatch, self.begun = form, dispatch, False
        self._unbegun = _unbegun.get()
        if self._unbegun is not None:
            self._unbegun[id(self)] = self

    def __str__(self) -> str:
        return f"ctx.call({self.form.tool!r}, …)"

    def __del__(self) -> None:
        if not self.begun:
            warnings.warn(f"{self} {NEVER_AWAITED}", RuntimeWarning, stacklevel=2)

    def __await__(self) -> Generator[Any, Any, Any]:
        self._begin()
        loop = _loop.get()
        if loop is None or asyncio.get_running_loop() is loop:
            return self._value().__await__()
        return asyncio.wrap_future(self._begun(loop)).__await__()  # the body's thread has a loop of its own

    def wait(self) -> Any:
        """The value, for a body without ``async``; its thread is blocked meanwhile."""
        self._begin()
        loop, here = _loop.get(), asyncio.events._get_running_loop()
        if here is not None and loop in (None, here):
            raise ToolError(ON_THE_LOOP)
        if loop is None:
            return asyncio.run(self._value())
        future = self._begun(loop)
        try:
            while not future.done():
                concurrent.futures.wait([future], STEP)
            return future.result()
        finally:
            future.cancel()

    def _begin(self) -> None:
        self.begun = True
        if self._unbegun is not None:
            self._unbegun.pop(id(self), None)

    def _begun(self, loop: asyncio.AbstractEventLoop) -> concurrent.futures.Future[Any]:
        return asyncio.run_coroutine_threadsafe(self._value(), loop)

    async def _value(self) -> Any:
        result = await self._dispatch(self.form)
        if result.ok:
            return result.value
        if result.status == "pending":
            raise Pending(result.message)
        raise CallFailed(result)


def nested_form(tool: Any, args: Sequence[Any], named: Mapping[str, Any]) -> CallForm:
    """The form of a call of a tool, which is its name, its function, or the text of a whole form."""
    if isinstance(tool, str) and tool.lstrip().startswith("("):
        from quoth.tools.lisp.reader import read_one  # here: it imports Hy

        tool = from_model(read_one(tool))
    if isinstance(tool, CallForm):
        if args or named:
            raise ToolError(f"{tool} has its arguments already.")
        return tool
    if callable(tool):
        from quoth.tools.registry.function import tool_of  # here: most bodies name a tool

        tool = tool_of(tool).name
    if not isinstance(tool, str):
        raise ToolError(f"ctx.call takes the name of a tool, its function or a whole form, not {tool!r}.")
    given = {kebab(name): _argument(value) for name, value in named.items()}
    return CallForm(kebab(tool), given, tuple(map(_argument, args)))


def _argument(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else plain_but_secrets(value)
