"""A transcript taken to another session, or to another store, and what keeps its calls from being made twice.

Knows events and the rows of receipts; it must not know runs, models or terminals. What a run has called is
answered by its transcript. The calls inside of a program that had not ended are answered by receipts, which
are kept by session: so they are made anew here, from the events.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence

from tools.errors import InvalidCallError
from tools.form import CallForm, from_model, print_string
from tools.receipts import BEGUN, bound_to
from tools.sexp import ReadError, read_one
from tools.store import Store
from tools.transcript import Event, Transcript, TranscriptError, read_event, read_form

FORMAT = 1
HEADER = "quoth-session"
A_WORD = "one word without control characters"

Row = tuple[str, str, str, str, str, bool, str]  # key, bound to, version, call, status, changed, result


def copy_session(store: Store, events: Sequence[Event], session: str) -> None:
    """Put the events at the beginning of a new session, and the receipts of what had not ended. Raises
    UsageError where there is such a session, TranscriptError where an event is damaged."""
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
    """Keep for a new session, too, the texts that its events name by their ids (tools/pages.py)."""
    store.execute(
        "INSERT INTO texts (session, user, id, at, text) SELECT ?, user, id, at, text FROM texts"
        " WHERE session = ?",
        (new, session),
    )


def receipts_of(events: Iterable[Event]) -> Iterator[Row]:
    """The receipts of the calls that another passage of an unfinished call would make. One that had begun,
    and of which nothing more is known, may have done anything, if its tool does more than to read."""
    users: dict[str, str] = {}  # of each run, and of each call by a person
    begun: dict[str, Event] = {}
    ended: dict[str, Event] = {}  # by key, as long as it is not begun again
    for event in events:
        if event.kind == "stimulus":
            users[event.run] = event.data["user"]
        elif event.kind == "call":
            begun[event.key] = event
            ended.pop(event.key, None)
            if not event.run:
                users[event.key] = event.data["user"]
        elif event.kind == "receipt":
            ended[event.key] = event
    over = {key for key, event in ended.items() if event.status not in ("pending", "cancelled")}
    for key, call in begun.items():
        around = [outer for outer in _around(key) if outer in begun]
        if any(outer in over for outer in around or [key]):
            continue
        said = call.data
        user = users[call.run] if call.run else users[key]
        bound, version = bound_to(read_form(said["form"]), user), str(said.get("version", ""))
        end = ended.get(key)
        told = end.data if end is not None else {}
        stage = told.get("stage", "body")
        if key in over and (stage in ("body", "receipt") or (stage, told["status"]) == ("consent", "denied")):
            result = json.dumps({"value": told.get("value"), "message": told.get("message", "")})
            yield key, bound, version, told["id"], told["status"], bool(told.get("effects")), result
        elif "does" in said and (end is None or (stage, end.status) == ("body", "cancelled")):
            yield key, bound, version, said["id"], BEGUN, False, ""


def _around(key: str) -> Iterator[str]:
    """The keys of the calls that a call is inside of."""
    while "/" in key:
        key = key.rpartition("/")[0]
        yield key


# As a text


def written(events: Iterable[Event], session: str, count: int, version: str) -> Iterator[str]:
    """A session as lines of forms: what it is, then its events without secrets, each with its digest."""
    yield f'({HEADER} :format {FORMAT} :quoth "{version}" :session {print_string(session)} :events {count})'
    for event in events:
        yield f"{event.shown} ; {event.digest}"


def is_word(name: str) -> bool:
    """Whether a text can be the name of a session, a run or a call: it stands in comments, commands and
    lines, and must not break out of them."""
    return bool(name) and " " not in name and name.isprintable()


def read_written(text: str) -> tuple[str, list[Event]]:
    """The session that such a text holds, and its events. Raises TranscriptError, which names the first event
    that is missing or was changed."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    lines = [line for line in lines if line.strip() and not line.startswith(";")]
    try:
        head = from_model(read_one(lines[0] if lines else ""))
    except (ReadError, InvalidCallError):
        head = CallForm("")
    form, session, count = (head.args.get(name) for name in ("format", "session", "events"))
    if head.tool != HEADER or not isinstance(form, int) or not isinstance(count, int) or not session:
        raise TranscriptError(f"This is no session: its first form is not ({HEADER} …).")
    if not isinstance(session, str) or not is_word(session):
        raise TranscriptError(f"This is no session: its id is not {A_WORD}.")
    if form > FORMAT:
        raise TranscriptError(f"This session was written by a newer quoth, {head.args.get('quoth')}.")
    before = ""
    events: list[Event] = []
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
        events.append(event)
        before = digest
    if len(events) != count:
        raise TranscriptError(f"{len(events)} of the {count} events of session {session} are here.")
    return session, events
