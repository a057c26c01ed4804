"""One event of a transcript as a form: written, parsed, and chained to the previous event by its digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from quoth.tools.call.redaction import SECRET, kept_text
from quoth.tools.errors import InvalidCallError, UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code, contains_form, form_data, forms_as_code, print_value, to_value
from quoth.tools.lisp.reader import ReaderLimits, ReadError, read_one
from quoth.tools.registry.values import encodable
from quoth.tools.storage.database import Statement

Kind = Literal[
    "session",  # its user, tools, policy and model
    "stimulus",  # a task, and the settings of its run
    "memory",  # the blocks that a model was shown, or that were changed since
    "tools",  # a message to the model about changed remote tools
    "intent",  # the tools that a person's words need, as the model said before it read anything foreign
    "request",  # the messages that were new to the model
    "reply",  # the model's reply, or why there is none
    "tags",  # the lines of a reply that are response tags, or look like one
    "call",  # a call whose body is about to begin, or that was refused
    "receipt",  # the result of a call
    "repair",  # the reader's correction of a call
    "fault",  # a text that could not be read
    "approval",  # a person's decision about a call
    "spent",  # additional costs of a call
    "sent",  # a message that a call has sent
    "cleared",  # old results that are no longer shown in full
    "summary",  # the summary with which the model continues instead of the earlier messages
    "interrupt",  # a person stopped the run
    "end",  # how the run ended
    "flight",  # a flight plan is flown, or how that ended
    "step",  # the state of a step of it
    "undo",  # files were restored to their content before calls of the session
    "plan",  # in plan mode: a call as a step instead of running it; or the file with the steps
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# None of them is the last event of a run.
GOING_ON: Final[tuple[Kind, ...]] = ("memory", "tools", "request", "reply", "call", "receipt", "fault")

MARKS = ("seq", "at", "run", "parent", "key")  # of every event, besides its content
LIMITS = ReaderLimits(max_chars=200_000_000, max_forms=20_000_000, max_digits=20_000)

_HEAD: Final = re.compile(r"\(([a-z][a-z0-9-]*)[ )]")
LONGEST_KEPT: Final = 20_000  # characters of an event that is cached after parsing

_HALF: Final = re.compile(r"(\\\\)|\\(ud[89a-f])")  # an unpaired surrogate, which is invalid in a text


class TranscriptError(UsageError):
    """A transcript was altered or cannot be read; the text says which event and what is wrong."""


@dataclass(frozen=True)
class Event:
    """One event. ``seq`` is its sequence number, from 1; ``parent`` that of the event it belongs to (0:
    none); ``run`` is its run (empty for a call by a person); ``key`` names a call within the session and
    is the same when the call is resumed. ``at`` is UTC. ``text`` is the true form, ``shown`` the form
    without secrets."""

    session: str
    seq: int
    at: str
    run: str
    kind: Kind
    parent: int
    key: str
    text: str
    shown: str
    digest: str
    status: str = ""  # of a receipt or an end

    @property
    def data(self) -> dict[str, Any]:
        """The content, without the fields in MARKS. Raises TranscriptError if it cannot be parsed."""
        return self._content(self.text)

    def _content(self, text: str) -> dict[str, Any]:
        known = len(text) <= LONGEST_KEPT
        args = _fresh(_read_once(text, self.id).args) if known else _read(text, self.id).args
        return {name: value for name, value in args.items() if name not in MARKS}

    @property
    def said(self) -> dict[str, Any]:
        """The content without secrets, for display."""
        return self._content(self.shown)

    def says(self, data: Mapping[str, Any]) -> bool:
        """Whether its content would be written like ``data``. If so, it need not be parsed."""
        return self.text == event_form(self.kind, self.seq, self.at, self.run, self.parent, self.key, data)

    @property
    def id(self) -> str:
        return f"{self.session}.{self.seq}"

    def to_json(self) -> dict[str, Any]:
        """The event as JSON data without secrets, for display."""
        return {
            "id": self.id,
            "seq": self.seq,
            "at": self.at,
            "kind": self.kind,
            "run": self.run,
            "parent": self.parent,
            "key": self.key,
            **{name.replace("-", "_"): value for name, value in self.said.items()},
            "digest": self.digest,
        }


def event_form(kind: str, seq: int, at: str, run: str, parent: int, key: str, data: Mapping[str, Any]) -> str:
    """The text of an event. Fields of MARKS that are empty are left out."""
    return with_marks(kind, seq, at, run, parent, key, written_data(data))


def written_data(data: Mapping[str, Any]) -> str:
    """The content of an event as its text contains it."""
    return "".join([f" :{name} {print_value(value)}" for name, value in data.items()])


def with_marks(kind: str, seq: int, at: str, run: str, parent: int, key: str, written: str) -> str:
    """The text of an event with its content already written."""
    marks = {"seq": seq, "at": at, "run": run, "parent": parent, "key": key}
    said = "".join([f" :{name} {print_value(value)}" for name, value in marks.items() if value])
    text = f"({kind}{said}{written})"
    return _HALF.sub(lambda found: found[1] or rf"\\{found[2]}", text) if r"\ud" in text else text


def digest_of(before: str, shown: str) -> str:
    """The digest of an event: SHA-256 over the digest before it and its form without secrets."""
    return hashlib.sha256(f"{before}\n{shown}".encode("utf-8", "surrogatepass")).hexdigest()


def read_event(session: str, text: str, before: str) -> Event:
    """Parse an event; ``before`` is the digest of the previous one. Raises TranscriptError."""
    form = _read(text)
    marks = {name: form.args.get(name) for name in MARKS}
    if form.tool not in KINDS or not isinstance(marks["seq"], int) or not isinstance(marks["at"], str):
        raise TranscriptError(f"This is not an event of a transcript: {text[:80]}")
    kind: Any = form.tool
    return Event(
        session,
        marks["seq"],
        marks["at"],
        str(marks["run"] or ""),
        kind,
        int(marks["parent"] or 0),
        str(marks["key"] or ""),
        text,
        text,
        digest_of(before, text),
        str(form.args.get("status", "")),
    )


def is_marked(event: Event) -> bool:
    """Whether the columns of an event agree with the fields in its form. A form with another spelling than
    ours is parsed."""
    return _as_we_write(event) or _as_read(event)


def _as_we_write(event: Event) -> bool:
    """Whether the form begins with the fields and contains its status once. False for a call with a status,
    because the text may be an argument. Ten times as fast as parsing the form, for verifying a whole
    store."""
    marks = event_form(event.kind, event.seq, event.at, event.run, event.parent, event.key, {})[:-1]
    status = f':status "{event.status}"' if event.status else ""
    said_once = event.shown.count(":status") == bool(status) and status in event.shown
    return event.shown.startswith(f"{marks} ") and said_once and not (status and event.kind == "call")


def _as_read(event: Event) -> bool:
    """The same, for any form."""
    try:
        said = read_event(event.session, event.shown, "")
    except TranscriptError:  # an unreadable form is another fault
        return True
    return all(getattr(event, name) == getattr(said, name) for name in (*MARKS, "kind", "status"))


def _read(text: str, id: str = "", *, call: bool = False) -> CallForm:
    """An event, or a ``call`` in one: quoted data in a call is data, in an event it is a form."""
    try:
        read: Any = read_one(text, LIMITS)
        return from_model(read if call or "'" not in text else type(read)(map(forms_as_code, read)))
    except (ReadError, InvalidCallError) as error:
        which = f"Event {id}" if id else "An event of the transcript"
        raise TranscriptError(f"{which} cannot be read: {error}") from None


@lru_cache(maxsize=256)
def _read_once(text: str, id: str) -> CallForm:
    """The same, cached, for short texts: the last events of a session are read repeatedly."""
    return _read(text, id)


def _fresh(value: Any) -> Any:
    """A copy of the lists and dictionaries in a value, which the caller may change."""
    if isinstance(value, Mapping):
        return {name: _fresh(one) for name, one in value.items()}
    return [_fresh(one) for one in value] if type(value) is list else value


def written_form(form: CallForm) -> Any:
    """A call as content of an event: normally the form itself, as code. A form with a program in it that
    would not parse back to the same form is stored as a dictionary instead."""
    if not any(isinstance(value, Code) for value in (*form.args.values(), *form.positional)):
        return Code(str(form))
    try:
        back = from_model(read_one(str(form), LIMITS))
        if str(back) == str(form) and _kinds(back) == _kinds(form):
            return Code(str(form))
    except (ReadError, InvalidCallError):
        pass
    args = {name: _spelt(value) for name, value in form.args.items()}
    return {"tool": form.tool, "args": args, "positional": [_spelt(value) for value in form.positional]}


def _kinds(form: CallForm) -> list[bool]:
    """Which arguments are programs; a program and a string can have the same text."""
    return [isinstance(value, Code) for value in (*form.positional, *form.args.values())]


def _spelt(value: Any) -> Any:
    return {"code": str(value)} if isinstance(value, Code) else {"value": value}


def content_of(text: str) -> Mapping[str, Any]:
    """The content of an event, including its marks. Raises TranscriptError."""
    return _read(text).args


def value_in(content: Mapping[str, Any]) -> Any:
    """The value of a call, from the content of its receipt."""
    return form_data(content.get("value"))


def result_text(said: Mapping[str, Any]) -> str:
    """The value, message and follow-up of a receipt as JSON, which ``read_result`` reads; a value with a
    form in it is written in Lisp."""
    value = said.get("value")
    told = {"lisp": print_value(value)} if contains_form(value) else {"value": value}
    more = {"follow-up": said["follow-up"]} if said.get("follow-up") else {}
    return json.dumps({**told, "message": said.get("message", ""), **more})


def read_result(text: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(text)
    if "lisp" in said:
        said["value"] = form_data(to_value(forms_as_code(read_one(said.pop("lisp"), LIMITS))))
    return said


def one_field(text: str, name: str) -> Any:
    """A field of an event; None if it is missing. The others are not parsed if the fields before it are
    plain: texts, numbers and dictionaries of these. Raises TranscriptError."""
    if found := _plain(name)(text):
        try:
            return to_value(read_one(found[1], LIMITS))
        except ReadError as error:
            raise TranscriptError(f"An event of the transcript cannot be read: {error}") from None
    return content_of(text).get(name)


@lru_cache(maxsize=16)
def _plain(name: str) -> Callable[[str], re.Match[str] | None]:
    text, atom = r'"(?:[^"\\]++|\\.)*+"', r"[\w.+-]++"
    value = rf"(?:{text}|{atom}|\{{(?:{text}|{atom}|[ ]++)*+\}})"
    before = rf"\([a-z-]++(?: :(?!{name} )[\w-]++ {value})*+ :{name} "
    return re.compile(rf"{before}({value})[ )]", re.DOTALL | re.ASCII).match


def read_form(data: Any) -> CallForm:
    """The call that ``written_form`` stored."""
    if not isinstance(data, Mapping):
        return _read(str(data), call=True)
    args = {name: _meant(value) for name, value in data["args"].items()}
    return CallForm(data["tool"], args, tuple(_meant(value) for value in data["positional"]))


def tool_of(data: Any) -> str:
    """The tool of the call that ``written_form`` stored."""
    if not isinstance(data, Mapping) and (head := _HEAD.match(data)):
        return head[1]
    return read_form(data).tool


def _meant(spelt: Mapping[str, Any]) -> Any:
    return Code(spelt["code"]) if "code" in spelt else spelt["value"]


# An audit row and the two events of its call, from which ``row_of`` computes the whole row.
#
# The event of the result has a field for each column with an unusual value; the form of the call and its
# message are only in the events. Before the events of a session are removed, these texts are copied to the
# rows; their digest, which is part of the audit's chain, shows whether they are still the same.


# Columns for which the event of the result has a field if their value is unusual, and the usual values.
USUAL: Final[Mapping[str, Any]] = {
    "side_effects": [],
    "stage": "body",
    "user": "",
    "route": "reply",
    "parent": None,
    "depth": 0,
    "round": 0,
    "place": 0,
    "tool": "",  # or the call's
    "policy": "",  # or allow, if the body was reached
    "rule": "",
    "guard": "",
    "gate": "",
    "consent": "",
    "repairs": "",
    "confidence": None,
    "details": {},
    "schema_hash": "",
    "form": "",  # or the call's
    "message": "",  # or the result's
}
OTHER: Final = {
    "side_effects": "effects",
    "parent": "outer",
    "schema_hash": "schema",
    "form": "shown",
    "message": "note",
}
WORDS: Final = {name: OTHER.get(name, name) for name in USUAL}
SAID: Final = ("route", "user")  # fields of the event of a call outside any run
# Columns that may contain text that is hidden in the events, or less text than the events.
HIDES: Final = frozenset(
    (
        "side_effects",
        "details",
        "digest",
        "user",
        "tool",
        "policy",
        "rule",
        "guard",
        "gate",
        "consent",
        "repairs",
    )
)
_MS: Final = timedelta(milliseconds=1)
# Exceptions while reading an event that a person has changed: its content may be anything.
UNREADABLE: Final = (TranscriptError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
# The events with the result and the call of an audit row, without secrets;
TOLD: Final = (
    "(SELECT coalesce(shown, form) FROM events WHERE events.session = audit.session AND seq = audit.event)",
    "(SELECT coalesce(called.shown, called.form) FROM events JOIN events AS called"
    " ON called.session = events.session AND called.seq = events.parent AND called.kind = 'call'"
    " WHERE events.session = audit.session AND events.seq = audit.event)",
)
# the same, but none if the row contains its texts.
EVENTS: Final = tuple(f"CASE WHEN audit.said != '' AND audit.form = '' THEN {told} END" for told in TOLD)

_content = lru_cache(maxsize=4)(content_of)  # a row is compared with its events twice


def usual_row(form: CallForm, message: str, stage: str) -> dict[str, Any]:
    """The values of these columns if the events of a call have no fields for them."""
    return {
        **USUAL,
        "tool": encodable(form.tool)[:200],
        "policy": "allow" if stage == "body" else "",
        "form": kept_text(form.canonical),
        "message": kept_text(message),
    }


def words_of(row: Mapping[str, Any], at: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """The fields about a row in an event written ``at`` this time: its unusual values."""
    words = {"ms": row["duration_ms"]}
    began = (datetime.fromisoformat(at) - datetime.fromisoformat(row["ts"])) // _MS
    if began != words["ms"]:  # the two are measured by different clocks
        words["began"] = began
    return words | {word: row[name] for name, word in WORDS.items() if row[name] != usual[name]}


def row_of(session: str, result: str, call: str | None) -> dict[str, Any] | None:
    """The audit row that the two events of a call describe; an unreadable call has no ``call``. None for
    events of an older version, which do not contain everything. Raises TranscriptError."""
    said, called = _content(result), _content(call) if call else {}
    if "ms" not in said:
        return None
    form = read_form(called["form"]) if called else CallForm("")
    usual = usual_row(form, str(said.get("message", "")), said.get("stage", "body"))
    usual |= {name: called[name] for name in SAID if name in called}
    row = {name: said.get(word, usual[name]) for name, word in WORDS.items()}
    began = datetime.fromisoformat(said["at"]) - said.get("began", said["ms"]) * _MS
    return row | {
        "id": said["id"],
        "ts": began.isoformat(timespec="milliseconds"),
        "session": session,
        "digest": form.digest,
        "status": said["status"],
        "side_effects": [kept_text(effect) for effect in row["side_effects"]],
        "duration_ms": said["ms"],
    }


def differences(row: Mapping[str, Any], result: str, call: str | None) -> list[str]:
    """The columns of a row that differ from its events, except texts that its digest ``said`` covers."""
    hidden = any(SECRET in text for text in (result, call or "", row["form"], row["message"]))
    try:
        made = row_of(row["session"], result, call)
    except UNREADABLE:
        return [] if hidden else ["form"]  # all of the form may be hidden
    if made is None:
        return []
    left = {"form", "message"} | (HIDES if hidden else set())
    return [name for name, value in made.items() if name not in left and row[name] != value]


def digest_of_texts(form: str, message: str) -> str:
    """The digest of the two texts that an audit row leaves to the events."""
    return hashlib.sha256(f"{form}\n{message}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def texts_of(result: str, call: str) -> tuple[str, str]:
    """The form and the message of an audit row from its two events. Raises TranscriptError."""
    said = _content(result)
    form = said["shown"] if "shown" in said else kept_text(read_form(_content(call)["form"]).canonical)
    return str(form), str(said["note"]) if "note" in said else kept_text(str(said.get("message", "")))


def row_texts(result: str | None, call: str | None) -> tuple[str, str] | None:
    """The same for the columns EVENTS of a row; None if the events are missing or cannot be read."""
    if result is None or call is None:
        return None
    try:
        return texts_of(result, call)
    except UNREADABLE:
        return None


def keep_texts(execute: Statement, session: str) -> None:
    """Copy the texts into the audit rows of a session, before its events are removed."""
    sql = (
        f"SELECT seq, {', '.join(EVENTS)} FROM audit"  # noqa: S608
        " WHERE session = ? AND said != '' AND form = ''"
    )
    rows: Sequence[tuple[Any, ...]] = execute(sql, (session,))
    for seq, *told in rows:
        if (texts := row_texts(*told)) is not None:
            execute("UPDATE audit SET form = ?, message = ? WHERE seq = ?", (*texts, seq))
