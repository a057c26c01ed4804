"""What travels with a call: the Call, the ToolContext a tool may use, the uniform ToolResult, the verdicts.

Knows no table and no door. Everything here is set by the host: none of it can be said by a model.
"""

from __future__ import annotations

import contextvars
import dataclasses
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from quoth.tools.errors import QuothError
from quoth.tools.lisp.forms import CallForm, Value

if TYPE_CHECKING:
    from quoth.tools.call.deadline import Clock
    from quoth.tools.call.service_types import SearchHit, SearchOptions, SearchScope
    from quoth.tools.call.services import (
        MemoryStore,
        ModelProvider,
        PermissionBroker,
        Router,
        Services,
        SharedBlocks,
        SourceManager,
        Team,
    )
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.door.preview import Look
    from quoth.tools.sandbox.runner import Sandbox
    from quoth.tools.sandbox.snapshots import Snapshots

Status = Literal["ok", "error", "invalid", "unknown", "denied", "limited", "pending", "timeout", "cancelled"]
STATUSES: tuple[Status, ...] = (
    "ok",
    "error",
    "invalid",
    "unknown",
    "denied",
    "limited",
    "pending",
    "timeout",
    "cancelled",
)


# The ways a call can come to the door. One that is not named here is refused, so that each has its tests:
# a model's reply; a person's form (quoth call), program (quoth eval) or line in the REPL; a Python program; a
# form of a flight plan; from inside of a call, a program in the sandbox, the body of another tool, or a
# sub-agent's model; and the replay of a session, which makes calls that only read again.
Route = Literal["reply", "call", "eval", "repl", "python", "flight", "program", "tool", "agent", "replay"]
ROUTES: tuple[Route, ...] = get_args(Route)


class ToolError(QuothError):
    """Raised by a body for a failure the caller can act on; its text is shown to the model as it is."""


class ToolFailure(Exception):
    """Ends a body with a status of its own; for programs whose inner call was refused. Not for users'
    tools."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


PERMISSION = "permission?"  # names what a body asks for, beside the arguments of its call; no parameter can


class PermissionNeeded(ToolFailure):
    """Ends a body that asks a person first: the door asks, and begins the body again when it is allowed."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__("pending", reason)
        self.what = what


@dataclass(frozen=True)
class Verdict:
    """What a guard, rule or gate says of a call: ``allow``, ``ask`` (a person decides) or ``deny``.

    ``rule`` is the text of the policy's rule that decided, for the audit.
    """

    kind: Literal["allow", "ask", "deny"]
    reason: str = ""
    rule: str = field(default="", compare=False)


@dataclass(frozen=True)
class GateDecision:
    """What a gate says (seed 000): whether the call is approved, and why not."""

    approved: bool
    reason: str = ""


ALLOW = Verdict("allow")


def deny(reason: str = "") -> Verdict:
    """``(deny "why")``: the call is refused and the reason is its result."""
    return Verdict("deny", reason)


def ask(reason: str = "") -> Verdict:
    """``(ask "why")``: the call waits until a person allows it."""
    return Verdict("ask", reason)


@dataclass(frozen=True)
class Call:
    """One passage through the door. All fields but ``form`` are marks set by the host.

    ``depth`` counts nesting (a call made inside a program inside a call …), ``parent`` is the id of the call
    that made this one, ``round`` is the turn of the loop and ``order`` the place within that turn.
    ``message`` is what the user had said when the call was made. ``key`` names the call across interruptions:
    a call that is carried on, ``resumed``, has the key of the one it carries on; a new one its own id.
    ``repairs`` say what was mended when the call was read. ``turn`` tells one wish of the user from another
    in the same words; it is empty where the words are enough. ``run`` is the run of the loop it is of, and
    ``event`` the place in the transcript of what it comes from. ``quoted`` names where the words of a call,
    read from the text of a reply, stand in what the model had read before: a person is asked.
    """

    id: str
    form: CallForm
    route: Route = "python"
    user: str = ""
    session: str = ""
    depth: int = 0
    parent: str | None = None
    round: int = 0
    order: int = 0
    message: str = ""
    key: str = ""
    plan: str = ""  # the key of the run whose program, or a program in that program, makes this very call
    resumed: bool = False
    repairs: tuple[str, ...] = ()
    written: tuple[str, ...] = ()  # how its paths were spelt, where that is not how they are judged
    turn: str = ""
    run: str = ""
    event: int = 0
    quoted: str = ""

    @property
    def tool(self) -> str:
        return self.form.tool


class Dispatch(Protocol):
    """Makes a nested call, through the same door. ``name`` tells this use of the tool from every other of the
    body, whenever it is carried on; without one it is counted. A ``dry`` call, and all that it makes, does
    nothing but read: the door sees to that."""

    def __call__(self, form: CallForm, name: str = "", dry: bool = False) -> Awaitable[ToolResult]: ...


class Looks(Protocol):
    """Says what would become of a nested call, and makes it not. ``unknown`` says which values are not known
    yet; without ``guards`` not even a guard is run."""

    def __call__(
        self, form: CallForm, unknown: Callable[[Any], bool], guards: bool = True
    ) -> Awaitable[Look]: ...


class Catalog(Protocol):
    """What tools may know of the other tools, in words for a model."""

    def describe(self, name: str) -> str:
        """One tool in full. Raises UnknownToolError, which names the nearest."""
        ...

    def search(self, words: str, limit: int) -> list[str]:
        """One line for each tool that fits the words, the best first."""
        ...


class Pages(Protocol):
    """Shows texts of this session that a model was not shown whole."""

    def page(self, id: str, start: int = 1) -> tuple[str, str]:
        """A part of the text, from its character ``start`` on, and which part that is. Raises ToolError."""
        ...


def _anything(path: str) -> bool:
    return True


def _no_services() -> Services:
    from quoth.tools.call.services import (
        NO_SERVICES,  # here: it imports this module, and a start need not wait for it
    )

    return NO_SERVICES


def _no_permission() -> PermissionBroker:
    from quoth.tools.call.services import NO_PERMISSION

    return NO_PERMISSION


@dataclass(frozen=True)
class ToolContext:
    """What a body or guard may know and use, all of it set by the host.

    ``dispatch`` makes a nested call, through the same door, and ``look`` only looks at one. In a ``dry``
    context no call does more than read, and nobody is asked. ``knowledge`` is what the host's knowledge base
    holds on the message, ``confidence`` how sure the model said it is (0 to 1). ``services`` holds what the
    host gave; ``permission`` asks a person on behalf of this one call. ``written`` is written down together
    with the result, or not at all; each of it returns a sentence to be said, or nothing. A tool that walks
    through folders asks ``may_list`` before it names a file and ``may_read`` before it opens one.
    """

    workspace: Workspace
    user: str = ""
    session: str = ""
    user_message: str = ""
    dispatch: Dispatch | None = None
    look: Looks | None = None
    dry: bool = False
    tool_names: tuple[str, ...] = ()
    sandbox: Sandbox | None = None
    snapshots: Snapshots | None = None  # where programs wait
    may_list: Callable[[str], bool] = _anything  # whether the rules let a file be named, for what walks
    may_read: Callable[[str], bool] = _anything  # and whether they let it be read
    shown: Callable[[CallForm], str] = str  # a form as people may see it, without declared secrets
    catalog: Catalog | None = None
    pages: Pages | None = None
    side_effects: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    written: list[Callable[[], str]] = field(default_factory=list)
    clocks: tuple[Clock, ...] = ()  # of the calls around this one
    inner_clocks: tuple[Clock, ...] = ()  # those, and that of this call, for the calls it makes
    agent_id: str = ""
    knowledge: str | None = None
    confidence: float | None = None
    services: Services = field(default_factory=_no_services)
    permission: PermissionBroker = field(default_factory=_no_permission)

    @property
    def chat_id(self) -> str:
        """The session, as a chat bot calls it."""
        return self.session

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

    async def search(
        self, query: str, scope: SearchScope = "agent", options: SearchOptions | None = None
    ) -> Sequence[SearchHit]:
        """Search what this agent may see: its own things, those shared with it, or all."""
        from quoth.tools.call.service_types import SearchOptions, check_scope

        check_scope(scope)
        return await self.services.search.search(query, scope, options or SearchOptions())

    def effect(self, what: str) -> None:
        """Record something done to the world, as ``wrote:src/x.py``; it goes into the result and the
        audit."""
        self.side_effects.append(what)

    def say(self, text: str) -> None:
        """A message that goes with an ok result, beside its value."""
        self.said.append(text)


@dataclass(frozen=True)
class ToolResult:
    """What every call gets, exactly once, whatever happened to it.

    ``value`` is plain JSON data when ``status`` is ok. ``message`` is a sentence for a person or model when
    it is not. ``audit`` carries tool, digest, status, duration_ms and ts (UTC).
    """

    id: str
    tool: str
    status: Status
    value: Any = None
    message: str = ""
    side_effects: tuple[str, ...] = ()
    audit: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tool": self.tool,
            "status": self.status,
            "value": self.value,
            "message": self.message,
            "side_effects": list(self.side_effects),
            "audit": dict(self.audit),
        }


_current: contextvars.ContextVar[ToolContext | None] = contextvars.ContextVar("quoth_context", default=None)


def current_context() -> ToolContext:
    """The context of the call whose guard or body is running. Raises ToolError outside of one."""
    context = _current.get()
    if context is None:
        raise ToolError("There is no call running; this works only inside the guard or body of a tool.")
    return context


def running_context() -> ToolContext | None:
    """The context of the call that is running, if one is."""
    return _current.get()


def enter_context(context: ToolContext) -> contextvars.Context:
    """A copy of the present contextvars in which ``context`` is current; for the door."""
    copy = contextvars.copy_context()
    copy.run(_current.set, context)
    return copy


def encodable(text: str) -> str:
    """The text, with lone surrogates escaped: nothing that cannot be written to a file or a socket."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def plain(value: Value, depth: int = 0) -> Any:
    """``value`` as JSON data. Raises ToolError for what has no honest JSON shape."""
    if depth > 100:
        raise ToolError("The value is nested deeper than 100.")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > 14_000:  # Python prints, and JSON holds, no more than 4300 digits
            raise ToolError("The value is a number of more than 4000 digits; return it in another shape.")
        return int(value)
    if isinstance(value, str):
        return encodable(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {encodable(str(key)): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return [plain(item, depth + 1) for item in sorted(value, key=repr)]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(), depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value), depth + 1)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise ToolError(f"A tool returned a {type(value).__name__}, which is no plain data.")
