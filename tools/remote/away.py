"""The surroundings of a body that runs on a worker: what goes back to its caller, and what does not travel.

Calls that the body makes, and questions to a person, go through the caller's door; memory and other services
of the caller's host do not come along, and say so. Knows messages and one stream; it must not know the queue.
"""

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

ASKED_AGAIN_SECONDS = 30.0  # whether the caller is still there
LOOK_SECONDS = 1.0
ANSWER_SECONDS = 20.0  # for a caller to say that a body may begin; Redis may be away meanwhile
Lent = AbstractAsyncContextManager[None]


class _Stays:
    """In place of something that stays with the caller: whatever a body wants of it raises ToolError."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise ToolError(f"{self._what} to a worker; a tool that needs it is kept at its caller.")


SERVICES = {
    "memory": "Memory does not travel",
    "router": "Messages to people do not travel",
    "model": "A model does not travel",
    "search": "A search does not travel",
    "sources": "Sources do not travel",
    "shared_blocks": "Shared blocks do not travel",
    "team": "Other agents do not travel",
    "knowledge_base": "A knowledge base does not travel",
    "web_search": "A web search does not travel",
}
_STAYING: dict[str, Any] = {one.name: _Stays(SERVICES[one.name]) for one in dataclasses.fields(Services)}
_SERVICES = Services(**_STAYING)
_OTHERS: dict[str, Any] = {
    "look": _Stays("A preview of a call does not travel"),
    "sandbox": _Stays("The sandbox of programs does not travel"),
    "snapshots": _Stays("The values of a session do not travel"),
    "catalog": _Stays("The table of the other tools does not travel"),
    "pages": _Stays("A long text of the session does not travel"),
    "talk": _Stays("The conversation does not travel"),
}


def context_of(said: Delegated, base: ToolContext) -> ToolContext:
    """What a body may know of its caller."""
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
    """What the body says with ctx.say, of which its caller hears at once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def append(self, text: str) -> None:
        super().append(text)
        self._tell(text)


class Away:
    """The way back of one call to its caller. While it waits there, its place is ``lent`` to other calls."""

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
        """Take a message from the caller; why it is not believed, or an empty text."""
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
        """Have a call made by the caller. Raises ToolError when nobody reads there any more."""
        args = {name: plain(value) for name, value in form.args.items()}
        said = to_json(CallForm(form.tool, args, tuple(map(plain, form.positional))))
        return await self._answer(number, Nested(self._said.grant, number, said, name, dry), form.tool)

    async def ask(self, question: str, reason: str) -> ToolResult:
        """Have a person asked by the caller, while the body waits: ok is a yes. Raises ToolError."""
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
                        raise ToolError(f"The caller does not answer, so {what} was not called.")
                except WireError as error:
                    raise ToolError(f"{what} was not called. {error}") from None
                except ResponseError:
                    raise ToolError(f"{what} was not called. Redis refuses the message.") from None
                except (RedisError, OSError):  # the worker waits for Redis; a lost call is cancelled
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            del self._answers[number]

    async def begins(self, by: str) -> bool | None:
        """Whether the caller knows of no other delivery that has begun; None if it does not answer, or has
        given the call up. While that lasts, other calls have the place of this one."""
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
        """Read the inbox while a call of the body is out; otherwise the worker looks into it at times."""
        while self._answers:
            try:
                popped: Any = await self._redis.blpop([self._inbox], timeout=LOOK_SECONDS)
                if popped:
                    self.receive(popped[1])
            except (RedisError, OSError):
                await asyncio.sleep(LOOK_SECONDS)

    def _tell(self, text: str) -> None:
        """Send what the body says; it may run in a thread."""

        def start() -> None:
            task = self._loop.create_task(self._progress(text))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

        self._loop.call_soon_threadsafe(start)

    async def _progress(self, text: str) -> None:
        try:
            await self.send(ProgressReport(self._said.grant, text))
        except (WireError, RedisError, OSError):
            return  # it comes with the result, too


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
        raise WireError("An answer holds no result of a call.")
    return ToolResult(**data | {"side_effects": tuple(effects)})


def begun_question(reason: str, begun: str) -> str:
    """What a caller's person says yes to, for a reason of the worker's; another for each body that has
    ``begun``."""
    return f"worker: {reason} (call {begun})" if begun else f"worker: {reason}"


class AskTheCaller(Consent):
    """Questions go back to the caller, who asks a person; what was allowed there holds for this call only.
    A body that asks is suspended meanwhile. A new question is asked where a body has ``begun`` once more."""

    def __init__(self, approved: list[str], begun: str, away: Away) -> None:
        self._approved = approved
        self._begun = begun
        self._away = away
        self.asked: tuple[str, str] | None = None  # question and reason
        self.waiting: CognitiveTool | None = None  # whose body is suspended

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
    """The door of a worker for one call, whose body's own calls go back to the caller."""

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


# What a worker believes of a message, and what it says of one that it does not.
#
# Knows keys, messages and forms; it must not know Redis or doors.


class Refused(Exception):
    """A call that does not come as far as the door: how it ends, and whether its caller is told."""

    def __init__(self, status: Status, message: str, *, silent: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.silent = status, message, silent


def believed(key: Key, prefix: str, packed: bytes) -> Delegated:
    """The call, if it is signed and meant for here. Raises Refused."""
    try:
        said = unpack(key, packed, Delegated)
    except WireError as error:
        raise Refused("denied", f"A call was refused. {error}", silent=True) from None
    assert isinstance(said, Delegated)
    why = ""
    if said.prefix != prefix:
        why = f"It was granted for the prefix {said.prefix}, and this worker has {prefix}."
    elif not said.replies.startswith(wire.replies(prefix, "")):
        why = "Its reply is wanted in another place than the stream of a caller."
    if why:  # its caller, if there is one, does not read here
        raise Refused("denied", f"A call was refused. {why}", silent=True)
    return said


def form_of(said: Delegated) -> CallForm:
    """The form of a call. Raises Refused for one that is not what was granted."""
    try:
        form = from_json(said.form)
    except InvalidCallError as error:
        raise Refused("invalid", str(error)) from None
    if form.digest != said.digest:
        raise Refused("denied", f"{form.tool} was refused: its grant is for another form.")
    return form


def kept_result(key: Key, said: Delegated, packed: bytes) -> Ended | None:
    """The result that an earlier delivery has kept, if there is one. Raises Refused for one that is not of
    this call."""
    if not packed:
        return None
    try:
        ended = unpack(key, packed, Ended)
        assert isinstance(ended, Ended)
        if (ended.key, ended.digest) != (said.key, said.digest) or ended.status not in STATUSES:
            raise WireError("It belongs to another call.")
        return ended
    except WireError as error:
        raise Refused("error", f"The kept result of {tool_of(said)} is not believed. {error}") from None


def tool_of(said: Delegated) -> str:
    return str(said.form.get("tool", "The call"))[:100]


def call_of(said: Delegated, form: CallForm) -> Call:
    """The call as the door of the worker sees it. It is always one that may have been begun before."""
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
