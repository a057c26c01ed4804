"""The context of a body that runs on a worker.

The body's own calls and its questions to a person go through the caller's door. Memory and other services of
the caller's host are not available on a worker, and say so when they are used."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, NoReturn

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from quoth.tools.call.call import ALLOW, Call, EditedCall, ToolResult, Verdict, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import Consent, Receipts
from quoth.tools.call.services import Services
from quoth.tools.catalog.payload import Key
from quoth.tools.door.door import Door
from quoth.tools.door.state import CallState
from quoth.tools.errors import PERMISSION, STATUSES, InvalidCallError, Pending, Status, ToolError
from quoth.tools.lisp.forms import CallForm, from_json, to_json
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.values import plain
from quoth.tools.remote import wire
from quoth.tools.remote.wire import (
    FROM_CALLER,
    Asks,
    Begin,
    Begins,
    Cancel,
    Delegated,
    Ended,
    Nested,
    NestedAnswer,
    ProgressReport,
    SignedMessage,
    WireError,
    unpack,
)

ASKED_AGAIN_SECONDS = 30.0  # between two checks whether the caller is still there
LOOK_SECONDS = 1.0
ANSWER_SECONDS = 20.0  # for a caller to allow a body to begin; Redis may be unreachable meanwhile
Lent = AbstractAsyncContextManager[None]


class _Stays:
    """Placeholder for a service that only the caller has: every use of it raises ToolError."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise ToolError(f"{self._what} on a worker. Run the tool that needs it at its caller.")


SERVICES = {
    "memory": "Memory is not available",
    "router": "Messages to people are not available",
    "model": "The model is not available",
    "search": "Search is not available",
    "sources": "Sources are not available",
    "shared_blocks": "Shared blocks are not available",
    "team": "Other agents are not available",
    "knowledge_base": "The knowledge base is not available",
    "web_search": "Web search is not available",
}
_STAYING: dict[str, Any] = {one.name: _Stays(SERVICES[one.name]) for one in dataclasses.fields(Services)}
_SERVICES = Services(**_STAYING)
_OTHERS: dict[str, Any] = {
    "look": _Stays("The preview of a call is not available"),
    "sandbox": _Stays("The sandbox is not available"),
    "snapshots": _Stays("The values of a session are not available"),
    "catalog": _Stays("The table of the caller's tools is not available"),
    "pages": _Stays("The long texts of a session are not available"),
    "talk": _Stays("The conversation is not available"),
}


def context_of(said: Delegated, base: ToolContext) -> ToolContext:
    """The context for a body: the worker's ``base`` with the caller's user, session, message and chat."""
    return dataclasses.replace(
        base,
        user=said.user,
        session=said.session,
        user_message=said.message,
        confidence=said.confidence,
        chat=said.chat,
        services=_SERVICES,
        **{name: stays for name, stays in _OTHERS.items() if name != "look"},
    )


class _Told(list[str]):
    """The texts that the body passes to ctx.say; each is sent to the caller at once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def append(self, text: str) -> None:
        super().append(text)
        self._tell(text)


class Away:
    """The connection of one call back to its caller. While the call waits for the caller, ``lent`` lets other
    calls run in its place."""

    def __init__(
        self, redis: Redis, key: Key, prefix: str, said: Delegated, lent: Callable[[], Lent]
    ) -> None:
        self._redis, self._key, self.lent = redis, key, lent
        self._said = said
        self._inbox = wire.inbox(prefix, said.grant)
        self._answers: dict[int | str, asyncio.Future[Any]] = {}
        self._loop = asyncio.get_running_loop()
        self._questions = 0
        self._sending: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self.cancelled = asyncio.Event()
        self.said = _Told(self._tell)

    def receive(self, packed: bytes) -> str:
        """Take a message from the caller. Returns why it was rejected, or an empty text."""
        try:
            message = unpack(self._key, packed, *FROM_CALLER)
            if message.grant != self._said.grant:
                raise WireError("It belongs to another call.")
            if isinstance(message, Cancel):
                self.cancelled.set()
            elif isinstance(message, Begin):
                self._answered(message.by, message.first)
            elif isinstance(message, NestedAnswer):
                self._answered(message.number, _result(message.result))
        except WireError as error:
            return str(error)
        return ""

    def _answered(self, what: int | str, answer: Any) -> None:
        waits = self._answers.get(what)
        if waits is not None and not waits.done():
            waits.set_result(answer)

    async def send(self, message: SignedMessage) -> Any:
        packed, stream = message.pack(self._key), self._said.replies
        async with self._redis.pipeline() as pipe:
            pipe.xadd(stream, {wire.FIELD: packed}, maxlen=wire.MOST_REPLIES, approximate=True)
            pipe.expire(stream, wire.REPLIES_SECONDS)
            return (await pipe.execute())[0]

    async def nested(self, number: int, form: CallForm, name: str, dry: bool) -> ToolResult:
        """Have the caller run a call. Raises ToolError if the caller no longer reads its replies."""
        args = {name: plain(value) for name, value in form.args.items()}
        said = to_json(CallForm(form.tool, args, tuple(map(plain, form.positional))))
        return await self._answer(number, Nested(self._said.grant, number, said, name, dry), form.tool)

    async def ask(self, question: str, reason: str) -> ToolResult:
        """Have the caller ask a person while the body waits. The status ok means yes. Raises ToolError."""
        self._questions += 1
        message = Asks(self._said.grant, question, reason, -self._questions)
        return await self._answer(message.number, message, "the question")

    async def _answer(self, number: int, message: SignedMessage, what: str) -> ToolResult:
        waits = self._answer_to(number)
        try:
            while True:
                try:
                    entry = await self.send(message)
                    await asyncio.wait({waits}, timeout=ASKED_AGAIN_SECONDS)
                    if waits.done():
                        result: ToolResult = waits.result()
                        return result
                    if await self._redis.xrange(self._said.replies, entry, entry):
                        raise ToolError(f"{what} was not called: the caller does not answer.")
                except WireError as error:
                    raise ToolError(f"{what} was not called. {error}") from None
                except ResponseError:
                    raise ToolError(f"{what} was not called. Redis refuses the message.") from None
                except (RedisError, OSError):  # wait for Redis; the worker cancels a lost call
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            del self._answers[number]

    async def begins(self, by: str) -> bool | None:
        """Whether this delivery is the first to begin, according to the caller. None if the caller does not
        answer or has given the call up. Other calls run in this one's place meanwhile."""
        waits = self._answer_to(by)
        try:
            for place, seconds in ((nullcontext, LOOK_SECONDS), (self.lent, ANSWER_SECONDS)):
                async with place():
                    until = self._loop.time() + seconds
                    while not self.cancelled.is_set() and self._loop.time() < until:
                        with suppress(RedisError, OSError):
                            await self.send(Begins(self._said.grant, by))
                        await asyncio.wait({waits}, timeout=LOOK_SECONDS)
                        if waits.done():
                            return bool(waits.result())
            return None
        finally:
            del self._answers[by]

    def _answer_to(self, what: int | str) -> asyncio.Future[Any]:
        waits: asyncio.Future[Any] = self._loop.create_future()
        self._answers[what] = waits
        if self._reading is None or self._reading.done():
            self._reading = self._loop.create_task(self._read())
        return waits

    async def _read(self) -> None:
        """Read the inbox while the body waits for an answer. At other times the worker polls it."""
        while self._answers:
            try:
                popped: Any = await self._redis.blpop([self._inbox], timeout=LOOK_SECONDS)
                if popped:
                    self.receive(popped[1])
            except (RedisError, OSError):
                await asyncio.sleep(LOOK_SECONDS)

    def _tell(self, text: str) -> None:
        """Send a progress message. The body may run in another thread."""

        def start() -> None:
            task = self._loop.create_task(self._progress(text))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

        self._loop.call_soon_threadsafe(start)

    async def _progress(self, text: str) -> None:
        try:
            await self.send(ProgressReport(self._said.grant, text))
        except (WireError, RedisError, OSError):
            return  # the result contains the text, too


def _result(data: dict[str, Any]) -> ToolResult:
    """The result in a NestedAnswer. Raises WireError."""
    wanted = {field.name for field in dataclasses.fields(ToolResult)} - {"follow_up"}
    effects, audit = data.get("side_effects"), data.get("audit")
    texts = [data.get(name) for name in ("id", "tool", "message")]
    if (
        set(data) != wanted
        or data["status"] not in STATUSES
        or not all(isinstance(text, str) for text in texts)
        or not (isinstance(effects, list) and all(isinstance(effect, str) for effect in effects))
        or not isinstance(audit, dict)
    ):
        raise WireError("An answer does not contain the result of a call.")
    return ToolResult(**data | {"side_effects": tuple(effects)})


def begun_question(reason: str, begun: str) -> str:
    """The question that the caller's person approves, for a ``reason`` of the worker. ``begun`` makes it
    different for each body that has begun."""
    return f"worker: {reason} (call {begun})" if begun else f"worker: {reason}"


class AskTheCaller(Consent):
    """Sends questions to the caller, which asks a person. An approval is valid for this call only. A body
    that asks is suspended meanwhile. If a body has ``begun`` once more, the question is asked again."""

    def __init__(self, approved: list[str], begun: str, away: Away) -> None:
        self._approved = approved
        self._begun = begun
        self._away = away
        self.asked: tuple[str, str] | None = None  # question and reason
        self.waiting: CognitiveTool | None = None  # the tool whose body is suspended

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None:
        permission = call.form.args.get(PERMISSION)
        question = str(permission) if permission is not None else begun_question(reason, self._begun)
        if question in self._approved:
            return ALLOW
        if permission is None:
            self.asked = question, reason
            return None
        self.waiting = tool
        async with self._away.lent():
            answer = await self._away.ask(question, reason)
        self.waiting = None
        return ALLOW if answer.ok else deny(answer.message)

    def asked_inside(self, tool: CognitiveTool, call: Call) -> list[Pending]:
        names = (one for one in self._approved if not one.startswith("worker: "))
        return [Pending("", permission=name) for name in names]


@dataclasses.dataclass(eq=False, repr=False)
class AwayDoor(Door):
    """A worker's door for one call. Calls from inside the body are sent to the caller."""

    _: dataclasses.KW_ONLY
    away: Away

    @classmethod
    def of(cls, door: Door, away: Away, consent: Consent, receipts: Receipts) -> AwayDoor:
        parts = {one.name: getattr(door, one.name) for one in dataclasses.fields(Door)}
        return cls(**{**parts, "consent": consent, "receipts": receipts}, away=away)

    def _context(self, state: CallState, given: ToolContext) -> ToolContext:
        state.said = self.away.said

        def nested(form: CallForm, name: str = "", dry: bool = False) -> Awaitable[ToolResult]:
            state.made[form.digest] += 1
            named = name or f"{form.digest[:16]}.{state.made[form.digest]}"
            return self._waited_for(state, state.made.total(), form, named, dry)

        return dataclasses.replace(super()._context(state, given), dispatch=nested, look=_OTHERS["look"])

    async def _waited_for(
        self, state: CallState, number: int, form: CallForm, name: str, dry: bool
    ) -> ToolResult:
        state.clock.pause()  # a person may be asked there
        try:
            async with self.away.lent():
                return await self.away.nested(number, form, name, dry)
        finally:
            state.clock.go_on()


# How a worker checks a message, and how it answers one that it refuses.


class Refused(Exception):
    """A call was refused before it reached the door. ``status`` and ``message`` are its result; if
    ``silent``, the caller is not notified."""

    def __init__(self, status: Status, message: str, *, silent: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.silent = status, message, silent


def believed(key: Key, prefix: str, packed: bytes) -> Delegated:
    """The call in a message, if it is signed and sent to this prefix. Raises Refused."""
    try:
        said = unpack(key, packed, Delegated)
    except WireError as error:
        raise Refused("denied", f"A call was refused. {error}", silent=True) from None
    assert isinstance(said, Delegated)
    why = ""
    if said.prefix != prefix:
        why = f"It was granted for the prefix {said.prefix}; this worker uses {prefix}."
    elif not said.replies.startswith(wire.replies(prefix, "")):
        why = "The key for its reply is not a caller's stream."
    if why:  # no caller reads a reply under this prefix
        raise Refused("denied", f"A call was refused. {why}", silent=True)
    return said


def form_of(said: Delegated) -> CallForm:
    """The form of a call. Raises Refused if it differs from the granted form."""
    try:
        form = from_json(said.form)
    except InvalidCallError as error:
        raise Refused("invalid", str(error)) from None
    if form.digest != said.digest:
        raise Refused("denied", f"{form.tool} was refused: its grant is for another form.")
    return form


def kept_result(key: Key, said: Delegated, packed: bytes) -> Ended | None:
    """The result kept by an earlier delivery, or None. Raises Refused if it belongs to another call."""
    if not packed:
        return None
    try:
        ended = unpack(key, packed, Ended)
        assert isinstance(ended, Ended)
        if (ended.key, ended.digest) != (said.key, said.digest) or ended.status not in STATUSES:
            raise WireError("It belongs to another call.")
        return ended
    except WireError as error:
        raise Refused("error", f"The kept result of {tool_of(said)} was rejected. {error}") from None


def tool_of(said: Delegated) -> str:
    return str(said.form.get("tool", "The call"))[:100]


def call_of(said: Delegated, form: CallForm) -> Call:
    """The call as the worker's door sees it. It counts as resumed: an earlier delivery may have begun it."""
    return Call(
        id=said.id,
        form=form,
        route="remote",
        user=said.user,
        session=said.session,
        depth=said.depth,
        parent=said.parent or None,
        message=said.message,
        key=said.key,
        resumed=True,
        confidence=said.confidence,
    )


def ended_of(
    key: Key,
    said: Delegated,
    status: Status,
    message: str,
    value: Any = None,
    told: list[str] | None = None,
    effects: list[str] | None = None,
    details: Mapping[str, Any] | None = None,
) -> bytes:
    """A packed result; one that is too long or no plain data is an error."""
    more = dict(details or {})
    ended = Ended(said.grant, said.key, said.digest, status, value, message, told or [], effects or [], more)
    try:
        return ended.pack(key)
    except WireError as error:
        what = f"{tool_of(said)} was done, but its result cannot be sent. {error}"
        short = dataclasses.replace(ended, status="error", value=None, message=what, said=[])
        return dataclasses.replace(short, side_effects=short.side_effects[:100]).pack(key)
