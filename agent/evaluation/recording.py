"""Makes a case of a recorded session: the messages of the person, the results of calls, the files before it.

The texts of events have no secrets (``session_in_store``); texts of files lose what looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from quoth.agent.evaluation.case import Case, Mode, RecordedCall, case_text
from quoth.agent.flight.plan_file import is_flown
from quoth.agent.plan.model import Form
from quoth.tools.call.call import PROGRAMS
from quoth.tools.call.redaction import SECRET, map_texts, redact
from quoth.tools.errors import UsageError
from quoth.tools.history.event import Event, read_form
from quoth.tools.history.versions import StoreVersions
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.source import Place, SourceText

Files = Mapping[str, str | None]


def case_of(
    name: str,
    session: str,
    events: Sequence[Event],
    expect: Iterable[str],
    mode: Mode,
    files: Files,
    after: Files,
) -> tuple[Case, list[str]]:
    """The case of a session, and notes for a person. Raises UsageError if no person has spoken in it."""
    said = [one for one in events if one.kind == "stimulus" and "/" not in one.run and not is_flown(one.run)]
    messages = [str(one.data["text"]) for one in said]
    if not messages:
        raise UsageError(f"No person gave a task in session {session}, so there is nothing to test.")
    notes = [
        f"Message {place} showed files to the model; they are not in the case."
        for place, one in enumerate(said, 1)
        if one.data.get("files")
    ]
    case = Case(
        name or "-".join(re.findall(r"[a-z0-9]+", messages[0].lower())[:4]) or session,
        messages,
        [_form(text) for text in expect],
        map_texts(dict(files), redact),
        map_texts(dict(after), redact),
        list(recorded_calls(events)),
        mode=mode,
        session=session,
    )
    if SECRET in case_text(case):
        notes.append(f"The case has {SECRET} in place of secrets; a call that needs one may fail.")
    return case, notes


def _form(text: str) -> Form:
    rows = range(text.count("\n") + 1)
    return Form(text, Place(SourceText("--expect", text), 1, 1), tuple((row, 0) for row in rows))


def recorded_calls(events: Iterable[Event]) -> Iterator[RecordedCall]:
    """The calls whose bodies ran, in order, without programs, which run again."""
    begun: dict[str, CallForm] = {}
    for event in events:
        if event.kind == "call":
            begun[event.key] = read_form(event.data["form"])
        elif event.kind == "receipt" and event.key in begun and "stage" not in event.data:
            form, said = begun[event.key], event.data
            if form.tool != PROGRAMS and said["status"] != "pending":
                yield RecordedCall(form, said["status"], said.get("value"), said.get("message", ""))


def files_before(versions: StoreVersions, session: str) -> tuple[dict[str, str | None], list[str]]:
    """The texts that the files written in a session had before it, and notes on those left out."""
    found: dict[str, str | None] = {}
    lost: dict[str, None] = {}
    for row in versions.of(session):
        if row.path in found or row.path in lost:
            continue
        data = versions.content(row.before) if row.before else None
        try:
            found[row.path] = None if data is None else data.decode()
        except UnicodeDecodeError:
            data = None
        if row.before and data is None:
            found.pop(row.path, None)
            lost[row.path] = None
    return found, [f"{path} is not in the case: its earlier text is not kept, or no UTF-8." for path in lost]
