"""Copies a transcript to another session or store, with the receipts that keep its calls from running twice.

The calls of a run are answered by its transcript. The inner calls of an unfinished program are answered by
receipts, which belong to one session: so they are created again here, from the events.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NotRequired,  # pydantic asks for these before Python 3.12
)

from typing_extensions import TypedDict

from quoth.tools.call.call import VOICES
from quoth.tools.call.redaction import SECRET
from quoth.tools.errors import InvalidCallError
from quoth.tools.history.event import Event, Kind, TranscriptError, read_event, read_form, result_text
from quoth.tools.history.receipts import BEGUN, bound_to
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import print_string, print_value
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.storage.database import Store
from quoth.tools.text import short

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORMAT = 1
HEADER = "quoth-session"
SHOWN_CHARS = 40  # of a wrong value
A_WORD = "one word without control characters"

Row = tuple[str, str, str, str, str, bool, str]  # key, bound to, version, call, status, changed, result


def copy_session(store: Store, events: Sequence[Event], session: str) -> None:
    """Copy the events into a new session, with the receipts of unfinished calls. Raises UsageError if the
    session exists, TranscriptError if an event was altered."""
    now = time.time()
    with store.transaction() as execute:
        Transcript(lambda: store).copy(iter(events), session)
        for key, bound, version, call, status, changed, result in receipts_of(events):
            execute(
                "INSERT INTO receipts (key, session, message, digest, version, call, at, repeats, changed,"
                " status, result) VALUES (?, ?, '', ?, ?, ?, ?, 0, ?, ?, ?)",
                (f"{session}/{key}", session, bound, version, call, now, changed, status, result),
            )


def copy_texts(store: Store, session: str, new: str) -> None:
    """Copy the long texts that the events name by id (tools/history/long_results.py)."""
    store.execute(
        "INSERT INTO texts (session, user, id, at, text) SELECT ?, user, id, at, text FROM texts"
        " WHERE session = ?",
        (new, session),
    )


def receipts_of(events: Iterable[Event]) -> Iterator[Row]:
    """The receipts of the inner calls that an unfinished call would repeat when it is resumed. A call that
    had begun, without a result, may have had any effect, unless its tool only reads."""
    users: dict[str, str] = {}  # by run, and by call of a person
    begun: dict[str, Event] = {}
    ended: dict[str, Event] = {}  # by key, until it begins again
    for event in events:
        if event.kind == "stimulus":
            users[event.run] = (said := event.data).get("speaker") or said["user"]
        elif event.kind == "call":
            begun[event.key] = event
            ended.pop(event.key, None)
            if not event.run:
                users[event.key] = event.data["user"]
        elif event.kind == "receipt":
            ended[event.key] = event
    over = {key for key, event in ended.items() if event.status not in ("pending", "cancelled")}
    for key, call in begun.items():
        parts = key.split("/")
        around = [outer for n in range(1, len(parts)) if (outer := "/".join(parts[:n])) in begun]
        if any(outer in over for outer in around or [key]):
            continue
        said = call.data
        user = users[call.run] if call.run else users[key]
        bound, version = bound_to(read_form(said["form"]), user), str(said.get("version", ""))
        end = ended.get(key)
        told = end.data if end is not None else {}
        stage = told.get("stage", "body")
        if key in over and (stage in ("body", "receipt") or (stage, told["status"]) == ("consent", "denied")):
            result = result_text({"value": told.get("value"), "message": told.get("message", "")})
            yield key, bound, version, told["id"], told["status"], bool(told.get("effects")), result
        elif "does" in said and (end is None or (stage, end.status) == ("body", "cancelled")):
            yield key, bound, version, said["id"], BEGUN, False, ""


# As a text


def written(events: Iterable[Event], session: str, count: int, version: str) -> Iterator[str]:
    """A session as lines of text: a header form, then its events without secrets, each with its digest."""
    yield f'({HEADER} :format {FORMAT} :quoth "{version}" :session {print_string(session)} :events {count})'
    for event in events:
        yield f"{event.shown} ; {event.digest}"


def is_word(name: str) -> bool:
    """Whether a text is safe as the name of a session, run or call: one printable word."""
    return bool(name) and " " not in name and name.isprintable()


def read_written(text: str) -> tuple[str, list[Event]]:
    """Parse the text of ``written``: the session's id and its events. Raises TranscriptError, which names
    the first event that is missing or was altered."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    lines = [line for line in lines if line.strip() and not line.startswith(";")]
    try:
        head = from_model(read_one(lines[0] if lines else ""))
    except (ReadError, InvalidCallError):
        head = CallForm("")
    form, session, count = (head.args.get(name) for name in ("format", "session", "events"))
    if head.tool != HEADER or not isinstance(form, int) or not isinstance(count, int) or not session:
        raise TranscriptError(
            f"This is not an exported session: a file of quoth export begins with ({HEADER} …)."
        )
    if not isinstance(session, str) or not is_word(session):
        raise TranscriptError(f"This is not an exported session: its id is not {A_WORD}.")
    if form > FORMAT:
        raise TranscriptError(f"This session was written by a newer quoth, {head.args.get('quoth')}.")
    before = ""
    events: list[Event] = []
    begun: set[str] = set()  # runs
    for place, line in enumerate(lines[1:], 1):
        shown, _, digest = line.rpartition(" ; ")
        try:
            event = read_event(session, shown, before)
            sound = (event.digest, event.seq) == (digest, place) and 0 <= event.parent < place
            if event.kind == "reply":  # its run is read by pairs of the two
                sound = sound and event.parent > 0 and events[event.parent - 1].kind == "request"
        except (TranscriptError, ValueError, TypeError):
            sound = False
        if not sound:
            raise TranscriptError(f"Event {session}.{place} was changed after it was written, or is missing.")
        if not all(is_word(name) for name in (event.run, event.key, event.at) if name):
            raise TranscriptError(f"Event {event.id} cannot be used: its :run, :key or :at is not {A_WORD}.")
        if wrong := _wrong_with(event, begun):
            raise TranscriptError(f"Event {event.id} cannot be used: {wrong}.")
        if event.kind == "stimulus":
            begun.add(event.run)
        events.append(event)
        before = digest
    if len(events) != count:
        raise TranscriptError(f"{len(events)} of the {count} events of session {session} are here.")
    return session, events


# The content of an event


class _Message(TypedDict):
    role: str
    content: str


class _Fork(TypedDict):
    session: str
    at: int


class _Block(TypedDict):
    label: str
    text: str
    permission: NotRequired[str]
    description: NotRequired[str]
    owner: NotRequired[str]
    by: NotRequired[str]
    updated: NotRequired[str]


# The required fields of an event, because a file may have been written by hand,
NEEDED: Final[dict[Kind, dict[str, Any]]] = {
    "session": {"user": str},
    "stimulus": {
        **dict.fromkeys(("text", "user", "model", "dialect"), str),
        **dict.fromkeys(("in-text", "search", "must-act"), bool),
        "limits": dict[str, int | float | None],
    },
    "memory": {"step": int, "blocks": list[_Block]},
    "tools": {"step": int, "text": str},
    "request": {"talk": int, "from": int, "messages": list[_Message]},
    "reply": {"text": str},
    "tags": {"lines": list[list[int | str]]},
    "call": {"id": str, "form": CallForm},
    "receipt": {"status": str},
    "sent": {"text": str, "to": str},
    "spent": {"usage": dict[str, int], "steps": int, "calls": int},
    "approval": {"said": str},
    "end": {"status": str, "text": str},
    "undo": {"text": str, "files": list[str]},
}
# and its optional fields, which may be empty.
POSSIBLE: Final[dict[Kind, dict[str, Any]]] = {
    "session": {
        **dict.fromkeys(
            ("model", "base-url", "policy", "dialect", "belt", "memory", "after-tags", "chat"), str
        ),
        **dict.fromkeys(("search", "search-keys", "remote", "shared", "prefix", "key-file", "redis-ca"), str),
        "remote-versions": str,
        "knowledge": bool,
        "tools": list[str],
        **dict.fromkeys(("without", "local", "mcp"), list[str]),
        "mcp-sampling": bool,
        "limits": dict[str, int | float | None],
        **dict.fromkeys(("sources", "channels"), dict[str, str]),
        "versions": dict[str, str] | str,
        "from": _Fork,
    },
    "stimulus": {
        **dict.fromkeys(("after", "tool-view", "data", "news", "speaker", "chat", "after-tags"), str),
        **dict.fromkeys(("tools", "hidden"), list[str]),
    },
    "memory": {**dict.fromkeys(("gone", "working", "told"), list[str]), "archival": int, "unread": str},
    "intent": {"asked": list[str], "tools": list[str], "text": str, "usage": dict[str, int | float]},
    "call": {"version": str, "does": list[str]},
    "receipt": {
        **dict.fromkeys(("stage", "message", "user", "route", "outer", "tool", "schema", "repairs"), str),
        **dict.fromkeys((*VOICES, "request", "rule", "shown", "note"), str),
        **dict.fromkeys(("ms", "began", "depth", "round", "place"), int),
        "effects": list[str],
        "confidence": float,
    },
    "end": {"talk": int, "from": int, "messages": list[_Message]},
}


def _fits(hint: Any, value: Any) -> bool:
    try:
        if hint is CallForm:  # the whole form may have been hidden
            return value == SECRET or bool(read_form(value).tool)
        _adapter(hint).validate_python(value, strict=True)
    except (TranscriptError, KeyError, ValueError, TypeError, AttributeError):
        return False
    return True


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(hint)


def _wrong_with(event: Event, begun: Collection[str]) -> str:
    """Why an event cannot be used; empty if it can. ``begun`` are the runs that began before it."""
    said = event.data
    needed = dict(NEEDED.get(event.kind, {}))
    if event.kind == "stimulus" and "/" not in event.run:
        needed["turn"] = str
    if event.kind == "call" and not event.run:
        needed["user"] = str
    if event.kind == "receipt" and (event.run or event.status != "cancelled"):
        needed["id"] = str
    for name in needed:
        if name not in said:
            return f"it has no :{name}"
    for name, hint in (needed | POSSIBLE.get(event.kind, {})).items():
        if not (_fits(hint, said.get(name)) or (name not in needed and said.get(name) is None)):
            return f"its :{name} is {short(print_value(said[name]), SHOWN_CHARS + 1)}"
    if event.kind == "stimulus" and (not event.run or event.run in begun):
        return "it begins no new run"
    if event.kind == "stimulus" and said.get("after") and said["after"] not in begun:
        return f"there is no run {said['after']} before it"
    if event.kind == "call" and event.run and event.run not in begun:
        return f"its run {event.run} has no beginning"
    return ""
