"""The messages between a caller and a worker: what they hold, packed, signed and checked.

A worker believes a call, and a caller an answer, only if it is signed with the key they share and is bound to
this very call. Knows keys and plain data; it must not know Redis, doors or tools.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from quoth.tools.catalog.payload import Key
from quoth.tools.errors import QuothError

# The names of what calls leave in Redis, and the scripts of both ends. Knows texts only.


TASK = "quoth.call"  # the one task, as taskiq knows it
GROUP = "workers"  # of those who read the queue
FIELD = b"m"  # of an entry of a stream: one packed message
REVOKED = "revoked"  # in the place of an entry: a grant that its caller took back


def queue(prefix: str) -> str:
    """The stream of the calls that wait, or are at work."""
    return f"{prefix}:tools:calls"


def workers(prefix: str) -> str:
    """A sorted set: the workers that live, by the time when they last said so."""
    return f"{prefix}:tools:workers"


def replies(prefix: str, caller: str) -> str:
    """The stream that one caller reads."""
    return f"{prefix}:tools:replies:{caller}"


def grant(prefix: str, number: str) -> str:
    """The entry of the queue that has used a grant, or REVOKED."""
    return f"{prefix}:tools:grant:{number}"


def inbox(prefix: str, number: str) -> str:
    """A list: what the caller tells the worker that has used a grant."""
    return f"{prefix}:tools:inbox:{number}"


def call(prefix: str, key: str, user: str) -> str:
    """A hash: who has a call, by its key across interruptions and by its user, and how it ended (``ended``, a
    packed Ended)."""
    whose = hashlib.sha256(f"{key}\0{user}".encode("utf-8", "replace")).hexdigest()
    return f"{prefix}:tools:call:{whose}"


def server(prefix: str) -> str:
    """A hash: the run of the server that was seen last, and since when."""
    return f"{prefix}:tools:server"


def dead(prefix: str) -> str:
    """The stream of the calls that nobody tries any more."""
    return f"{prefix}:tools:dead"


# Somebody without a key may have put something else there, which would stop a script for ever.
CLEARED = """
local function cleared(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then redis.call('UNLINK', key) end
end
"""
MOST_REPLIES = 10_000  # that one caller has not read
REPLIES_SECONDS = 3600  # after the last of them
MOST_WAITING = 10_000  # entries in the queue
FULL = f"{MOST_WAITING:,} calls wait for workers already, and no more can be sent."
# queue; MOST_WAITING, FIELD, packed message. The number of the entry, or nothing where the queue is full.
SEND = """
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then return false end
return redis.call('XADD', KEYS[1], '*', ARGV[2], ARGV[3])
"""


MAX_MESSAGE = 4 * 1024 * 1024  # bytes of one message; a longer result is an error of its call
MAX_DEPTH = 100  # of lists and dictionaries in one another


class WireError(QuothError):
    """A message cannot be believed or understood; the text says why."""


@dataclass(frozen=True)
class SignedMessage:
    """One signed message. ``grant`` is the number, used once, of the grant that it belongs to."""

    KIND: ClassVar[str] = ""

    grant: str

    def pack(self, key: Key) -> bytes:
        """The message as msgpack, signed. Raises WireError for one over MAX_MESSAGE, or that msgpack cannot
        hold."""
        import msgpack  # here: most agents call no worker

        try:
            data: bytes = msgpack.packb(vars(self))
        except (ValueError, TypeError, OverflowError) as error:
            raise WireError(f"It cannot be sent: {error}.") from None
        if len(data) > MAX_MESSAGE:
            raise WireError(f"It has {len(data):,} bytes, and {MAX_MESSAGE:,} are the most that are sent.")
        packed: bytes = msgpack.packb([self.KIND, data, key.sign(self.KIND, data)])
        return packed


@dataclass(frozen=True)
class Delegated(SignedMessage):
    """A call on its way to a worker, with the grant to make it once: signed by a caller that has passed it
    through its own door. ``form`` is the canonical form (CallForm.to_json), ``digest`` its digest. The host
    of the caller sets all of it; no model can. ``approved`` are the questions of the worker that a person has
    answered with yes. ``deadline`` and ``expires`` are seconds since 1970 by the clock of Redis: no body
    begins after ``expires``, and none is waited for after ``deadline``. ``replies`` is the stream that the
    caller reads."""

    KIND: ClassVar[str] = "call"

    prefix: str
    schema_hash: str
    form: dict[str, Any]
    digest: str
    id: str
    key: str
    user: str
    session: str
    depth: int
    parent: str
    message: str
    chat: str
    confidence: float | None
    resumed: bool
    approved: list[str]
    deadline: float
    expires: float
    replies: str


@dataclass(frozen=True)
class Ended(SignedMessage):
    """The worker's result of a call, which is kept under the key of the call: the fields of ToolResult that
    travel. ``said`` is what the body told with ctx.say."""

    KIND: ClassVar[str] = "ended"

    key: str
    digest: str
    status: str
    value: Any
    message: str
    said: list[str]
    side_effects: list[str]
    details: dict[str, Any] = field(default_factory=dict)  # of its audit


@dataclass(frozen=True)
class Asks(SignedMessage):
    """The worker's rules, guard or body want a person to say yes to ``reason`` first. With a ``number`` the
    body is suspended and waits for a NestedAnswer of that number. Without one nothing was done, or the body
    will begin again, and the caller sends the call again with ``question`` among its ``approved``."""

    KIND: ClassVar[str] = "asks"

    question: str
    reason: str
    number: int = 0


@dataclass(frozen=True)
class Stale(SignedMessage):
    """The worker has other tools than the caller believes: CATALOG_STALE. ``schema_hash`` is the worker's."""

    KIND: ClassVar[str] = "stale"

    schema_hash: str


@dataclass(frozen=True)
class ProgressReport(SignedMessage):
    """What the body tells of its progress."""

    KIND: ClassVar[str] = "progress"

    text: str


@dataclass(frozen=True)
class Begins(SignedMessage):
    """The worker is about to begin a body that does more than read, and asks whether it is the first to do
    so: what Redis knows of that can be deleted there. ``by`` is another for each delivery."""

    KIND: ClassVar[str] = "begins"

    by: str


@dataclass(frozen=True)
class Nested(SignedMessage):
    """A call that the body makes: it comes back to the caller, and through the caller's door. ``number`` is
    its place among them, ``name`` what names it when the body is resumed."""

    KIND: ClassVar[str] = "nested"

    number: int
    form: dict[str, Any]
    name: str
    dry: bool


@dataclass(frozen=True)
class NestedAnswer(SignedMessage):
    """The caller's answer to a Nested: the result of that call, as ToolResult.to_json gives it."""

    KIND: ClassVar[str] = "answer"

    number: int
    result: dict[str, Any]


@dataclass(frozen=True)
class Begin(SignedMessage):
    """The caller's answer to a Begins: whether it was the first."""

    KIND: ClassVar[str] = "begin"

    by: str
    first: bool


@dataclass(frozen=True)
class Cancel(SignedMessage):
    """The caller does not wait any longer."""

    KIND: ClassVar[str] = "cancel"


FROM_WORKER = (Ended, Asks, Stale, ProgressReport, Begins, Nested)
FROM_CALLER = (NestedAnswer, Begin, Cancel)
_KINDS = {kind.KIND: kind for kind in (Delegated, *FROM_WORKER, *FROM_CALLER)}


def unpack(key: Key, packed: bytes, *expected: type[SignedMessage]) -> SignedMessage:
    """Read a message of one of the ``expected`` kinds. Raises WireError for one that is too long, cut off,
    not signed with the key, of another kind, or has other fields or types than its kind."""
    import msgpack  # here: most agents call no worker

    if len(packed) > MAX_MESSAGE + 1024:
        raise WireError(f"It has {len(packed):,} bytes, and {MAX_MESSAGE:,} are the most that are read.")
    kind, data, signature = _opened(packed)
    if not key.fits(kind, data, signature):
        raise WireError("It is not signed with the key that is used here.")
    made = _KINDS.get(kind)
    if made is None or made not in expected:
        raise WireError(f"It is a message of the kind {kind}, which is not expected here.")
    return made(**_checked(made, msgpack.unpackb(data)))


def _opened(packed: bytes) -> tuple[str, bytes, bytes]:
    """The kind, data and signature of a message. Raises WireError. No list is made of what nobody has signed:
    4 MB of empty ones would take 300."""
    import msgpack

    envelope = msgpack.Unpacker(None, max_buffer_size=len(packed) or 1, max_array_len=0, max_map_len=0)
    try:
        envelope.feed(packed)
        three = envelope.read_array_header() == 3
        kind, data, signature = (envelope.unpack() for _ in range(3))
        whole = three and envelope.tell() == len(packed)
    except Exception:  # msgpack raises a dozen kinds for what is not msgpack
        raise WireError("It is no message of ours, or was cut off.") from None
    if not (whole and isinstance(kind, str) and isinstance(data, bytes) and isinstance(signature, bytes)):
        raise WireError("It is no message of ours, or was cut off.")
    return kind, data, signature


def _checked(made: type[SignedMessage], data: Any) -> dict[str, Any]:
    """The fields of a message, if they are those of its kind and of their types."""
    checks = _CHECKS.get(made.KIND)
    if checks is None:
        hints = get_type_hints(made)
        checks = _CHECKS[made.KIND] = {one.name: _check(hints[one.name]) for one in fields(made)}
    if not isinstance(data, dict) or data.keys() != checks.keys():
        raise WireError(f"A message of the kind {made.KIND} has other fields than this one.")
    for name, fits in checks.items():
        if not fits(data[name]):
            raise WireError(f"The field {name} of a message of the kind {made.KIND} is of another type.")
    if not all(map(_is_plain, data.values())):
        raise WireError(f"A message of the kind {made.KIND} holds what is no plain data.")
    return data


_CHECKS: dict[str, dict[str, Callable[[Any], bool]]] = {}  # by the kind, made once: each call needs them


def _check(hint: Any) -> Callable[[Any], bool]:
    """Tells whether a value is of one of the types that fields have here."""
    parts = get_args(hint)
    if hint is Any:
        return lambda value: True
    if hint is float:
        return lambda value: type(value) in (int, float) and math.isfinite(value)
    if get_origin(hint) is list:
        inner = _check(parts[0])
        return lambda value: type(value) is list and all(map(inner, value))
    if get_origin(hint) is dict:
        return lambda value: type(value) is dict and all(type(name) is str for name in value)
    if parts:  # a union
        checks = [_check(part) for part in parts]
        return lambda value: any(fits(value) for fits in checks)
    return lambda value: type(value) is hint


def _is_plain(value: Any, depth: int = 1) -> bool:
    """Whether a value is made of texts, numbers, truth values, None, lists, and dictionaries with texts as
    keys."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if depth > MAX_DEPTH:
        return False
    if kind is list:
        return all(_is_plain(item, depth + 1) for item in value)
    return kind is dict and all(
        type(name) is str and _is_plain(item, depth + 1) for name, item in value.items()
    )


_PLAIN = (str, int, float, bool, type(None))
