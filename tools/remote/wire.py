"""The messages between a caller and a worker: their fields, packing, signatures and checks.

A worker accepts a call, and a caller accepts an answer, only if it is signed with their shared key and bound
to this call. This module does not use Redis, doors or tools."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from quoth.tools.catalog.payload import Key
from quoth.tools.errors import QuothError

# Names of Redis keys, and the scripts that both ends use.


TASK = "quoth.call"  # name of the only taskiq task
GROUP = "workers"  # consumer group that reads the queue
FIELD = b"m"  # field of a stream entry: one packed message
REVOKED = "revoked"  # value of a grant that its caller took back


def queue(prefix: str) -> str:
    """Stream of the calls that wait or are running."""
    return f"{prefix}:tools:calls"


def workers(prefix: str) -> str:
    """Sorted set of the live workers, scored by their last heartbeat (seconds since 1970)."""
    return f"{prefix}:tools:workers"


def replies(prefix: str, caller: str) -> str:
    """Stream that one caller reads."""
    return f"{prefix}:tools:replies:{caller}"


def grant(prefix: str, number: str) -> str:
    """String: the queue entry that used a grant, or REVOKED."""
    return f"{prefix}:tools:grant:{number}"


def inbox(prefix: str, number: str) -> str:
    """List: messages from the caller to the worker that used a grant."""
    return f"{prefix}:tools:inbox:{number}"


def call(prefix: str, key: str, user: str) -> str:
    """Hash: the worker that owns a call, and how the call ended (``ended``, a packed Ended). The name is
    derived from the call's user and from its key, which stays the same across interruptions."""
    whose = hashlib.sha256(f"{key}\0{user}".encode("utf-8", "replace")).hexdigest()
    return f"{prefix}:tools:call:{whose}"


def server(prefix: str) -> str:
    """Hash: the run id of the Redis server seen last, and since when."""
    return f"{prefix}:tools:server"


def dead(prefix: str) -> str:
    """Stream of dead letters: calls that are not retried."""
    return f"{prefix}:tools:dead"


# A process without the key may have stored another type there, which would make a script fail each time.
CLEARED = """
local function cleared(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then redis.call('UNLINK', key) end
end
"""
MOST_REPLIES = 10_000  # maximum number of unread replies per caller
REPLIES_SECONDS = 3600  # lifetime of a reply stream after its last reply
MOST_WAITING = 10_000  # maximum number of entries in the queue
FULL = f"The queue is full: {MOST_WAITING:,} calls already wait for workers. Try again later."
# Keys: queue. Arguments: MOST_WAITING, FIELD, packed message. Returns the entry id, or nil if the queue is
# full.
SEND = """
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then return false end
return redis.call('XADD', KEYS[1], '*', ARGV[2], ARGV[3])
"""


MAX_MESSAGE = 4 * 1024 * 1024  # bytes of one message; a call with a longer result fails
MAX_DEPTH = 100  # nesting depth of lists and dictionaries


NOT_OURS = "It is not a message of quoth, or it was cut off."


class WireError(QuothError):
    """A message is malformed or not authentic; the text says why."""


@dataclass(frozen=True)
class SignedMessage:
    """A signed message. ``grant`` is the single-use number of the grant that the message belongs to."""

    KIND: ClassVar[str] = ""

    grant: str

    def pack(self, key: Key) -> bytes:
        """The signed message as msgpack. Raises WireError if it is over MAX_MESSAGE bytes or msgpack cannot
        encode it."""
        import msgpack  # imported here: most agents never call a worker

        try:
            data: bytes = msgpack.packb(vars(self))
        except (ValueError, TypeError, OverflowError) as error:
            raise WireError(f"It cannot be sent: {error}.") from None
        if len(data) > MAX_MESSAGE:
            raise WireError(f"It has {len(data):,} bytes; at most {MAX_MESSAGE:,} can be sent.")
        packed: bytes = msgpack.packb([self.KIND, data, key.sign(self.KIND, data)])
        return packed


@dataclass(frozen=True)
class Delegated(SignedMessage):
    """A call sent to a worker, with a grant to run it once. The caller signs it after the call has passed the
    caller's own door. The caller's host sets every field; a model cannot.

    ``form`` is the canonical form (CallForm.to_json), ``digest`` its digest. ``approved`` lists the worker's
    questions that a person has approved. ``deadline`` and ``expires`` are seconds since 1970 by the clock of
    Redis: no body begins after ``expires``, and the caller stops waiting at ``deadline``. ``replies`` is the
    stream that the caller reads."""

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
    """The worker's result of a call: the fields of ToolResult that are sent back. It is kept under the key of
    the call. ``said`` lists the texts that the body passed to ctx.say."""

    KIND: ClassVar[str] = "ended"

    key: str
    digest: str
    status: str
    value: Any
    message: str
    said: list[str]
    side_effects: list[str]
    details: dict[str, Any] = field(default_factory=dict)  # of its audit row


@dataclass(frozen=True)
class Asks(SignedMessage):
    """The worker's rules, guard or body need a person to approve ``reason`` first. With a ``number`` the body
    is suspended and waits for a NestedAnswer with that number. Without one, nothing was done or the body will
    begin again; after approval the caller sends the call again with ``question`` in ``approved``."""

    KIND: ClassVar[str] = "asks"

    question: str
    reason: str
    number: int = 0


@dataclass(frozen=True)
class Stale(SignedMessage):
    """The worker's tools differ from those the caller knows (CATALOG_STALE). ``schema_hash`` is the
    worker's."""

    KIND: ClassVar[str] = "stale"

    schema_hash: str


@dataclass(frozen=True)
class ProgressReport(SignedMessage):
    """A progress message of the body."""

    KIND: ClassVar[str] = "progress"

    text: str


@dataclass(frozen=True)
class Begins(SignedMessage):
    """The worker is about to begin a body that does more than read, and asks whether it is the first to begin
    it. Redis alone cannot answer that, because its record can be deleted. ``by`` is unique for each
    delivery."""

    KIND: ClassVar[str] = "begins"

    by: str


@dataclass(frozen=True)
class Nested(SignedMessage):
    """A call from inside the body. It is sent back to the caller and passes the caller's door. ``number``
    counts the body's calls; ``name`` identifies the call when the body is resumed."""

    KIND: ClassVar[str] = "nested"

    number: int
    form: dict[str, Any]
    name: str
    dry: bool


@dataclass(frozen=True)
class NestedAnswer(SignedMessage):
    """The caller's answer to a Nested: the result of that call (ToolResult.to_json)."""

    KIND: ClassVar[str] = "answer"

    number: int
    result: dict[str, Any]


@dataclass(frozen=True)
class Begin(SignedMessage):
    """The caller's answer to a Begins: whether that delivery is the first."""

    KIND: ClassVar[str] = "begin"

    by: str
    first: bool


@dataclass(frozen=True)
class Cancel(SignedMessage):
    """The caller no longer waits for the call."""

    KIND: ClassVar[str] = "cancel"


FROM_WORKER = (Ended, Asks, Stale, ProgressReport, Begins, Nested)
FROM_CALLER = (NestedAnswer, Begin, Cancel)
_KINDS = {kind.KIND: kind for kind in (Delegated, *FROM_WORKER, *FROM_CALLER)}


def unpack(key: Key, packed: bytes, *expected: type[SignedMessage]) -> SignedMessage:
    """Read a message of one of the ``expected`` kinds. Raises WireError if it is too long, cut off, not
    signed with the key, of another kind, or has wrong fields or types."""
    import msgpack  # imported here: most agents never call a worker

    if len(packed) > MAX_MESSAGE + 1024:
        raise WireError(f"It has {len(packed):,} bytes; at most {MAX_MESSAGE:,} are read.")
    kind, data, signature = _opened(packed)
    if not key.fits(kind, data, signature):
        raise WireError("It is not signed with the key that is used here.")
    made = _KINDS.get(kind)
    if made is None or made not in expected:
        raise WireError(f"It is a message of kind {kind}, which is not expected here.")
    return made(**_checked(made, msgpack.unpackb(data)))


def _opened(packed: bytes) -> tuple[str, bytes, bytes]:
    """The kind, data and signature of a message. Raises WireError. Unsigned data is not decoded into lists: 4
    MB of empty lists would take 300 MB of memory."""
    import msgpack

    envelope = msgpack.Unpacker(None, max_buffer_size=len(packed) or 1, max_array_len=0, max_map_len=0)
    try:
        envelope.feed(packed)
        three = envelope.read_array_header() == 3
        kind, data, signature = (envelope.unpack() for _ in range(3))
        whole = three and envelope.tell() == len(packed)
    except Exception:  # msgpack raises a dozen kinds of exception for malformed input
        raise WireError(NOT_OURS) from None
    if not (whole and isinstance(kind, str) and isinstance(data, bytes) and isinstance(signature, bytes)):
        raise WireError(NOT_OURS)
    return kind, data, signature


def _checked(made: type[SignedMessage], data: Any) -> dict[str, Any]:
    """The fields of a message. Raises WireError if names or types differ from those of its kind."""
    checks = _CHECKS.get(made.KIND)
    if checks is None:
        hints = get_type_hints(made)
        checks = _CHECKS[made.KIND] = {one.name: _check(hints[one.name]) for one in fields(made)}
    if not isinstance(data, dict) or data.keys() != checks.keys():
        raise WireError(f"The fields of a message of kind {made.KIND} are wrong.")
    for name, fits in checks.items():
        if not fits(data[name]):
            raise WireError(f"The field {name} of a message of kind {made.KIND} has the wrong type.")
    if not all(map(_is_plain, data.values())):
        raise WireError(f"A message of kind {made.KIND} contains a value that is not plain data.")
    return data


_CHECKS: dict[str, dict[str, Callable[[Any], bool]]] = {}  # by kind; cached, because every call needs them


def _check(hint: Any) -> Callable[[Any], bool]:
    """A function that checks whether a value has the type ``hint``."""
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
    """Whether a value consists only of texts, numbers, truth values, None, lists, and dictionaries with text
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
