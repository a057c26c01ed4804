"""The call log: writes each call and its result into the transcript.

It knows the transcript; it must not know the door.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from quoth.tools.call.call import PROGRAMS, Call, Decided, EditedCall, ToolResult, verdict_text
from quoth.tools.call.ports import Logged
from quoth.tools.call.redaction import Redactor
from quoth.tools.history.event import usual_row, words_of, written_form
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import HARMLESS, CognitiveTool


@dataclass
class _Open:
    """A call whose body has begun; ``seq`` is the sequence number of its event, once that is written."""

    tool: CognitiveTool
    call: Call
    consent: Decided | None
    seq: int = 0
    plain: bool = True  # nothing was hidden in it
    undone: int = 0  # how many transactions had been undone when it was written


class StoreCallLog:
    """Logs calls in the transcript of their session. The event of a call that only reads is written
    together with its receipt: if the process dies before, the call is simply made again. ``secrets`` are
    all parameters that tools have declared secret."""

    def __init__(self, transcript: Transcript, secrets: Collection[str] = ()) -> None:
        self._transcript = transcript
        self._secrets = frozenset(secrets)
        self._open: dict[str, _Open] = {}

    def also_hide(self, secrets: Collection[str]) -> None:
        """Hide these parameters too, from now on: those of tools that came later."""
        self._secrets |= frozenset(secrets)

    def begins(self, tool: CognitiveTool, call: Call, consent: Decided | None) -> bool:
        if not call.session:
            return False
        self._open[call.id] = _Open(tool, call, consent)
        if HARMLESS.issuperset(tool.effects) and (call.run or tool.name != PROGRAMS):
            return False  # in a run, the reply that it was written in is on record
        self.place(call.id)
        return True

    def running(self, call: str) -> Call | None:
        """The call with this id, while its body runs."""
        found = self._open.get(call)
        return None if found is None else found.call

    def place(self, call: str | None) -> int:
        """The sequence number of the event of a running call, which is written now if necessary; 0 for an
        unknown call."""
        found = self._open.get(call or "")
        if found is None:
            return 0
        if found.seq and found.undone != self._transcript.undone:
            found.undone = self._transcript.undone
            if not self._transcript.holds(found.call.session, found.seq, key_in(found.call)):
                found.seq = 0
        if not found.seq:
            found.undone = self._transcript.undone
            found.seq, found.plain = self._called(found.tool, found.call, found.consent)
        return found.seq

    def ends(
        self,
        tool: CognitiveTool | None,
        call: Call,
        result: ToolResult,
        consent: Decided | None,
        row: Mapping[str, Any],
    ) -> Logged | None:
        if not call.session:
            return None
        begun = self._open.get(call.id)
        if begun is not None and begun.seq:
            seq, plain = self.place(call.id), begun.plain
        else:
            seq, plain = self._called(tool, call, consent)
        self._open.pop(call.id, None)
        stage, at = str(row["stage"]), self._transcript.now()
        data: dict[str, Any] = {"id": call.id, "status": result.status}
        if result.ok:
            data["value"] = result.value
        if result.message:
            data["message"] = result.message
        if result.ok and result.follow_up:
            data["follow-up"] = result.follow_up
        own = {"user": call.user, "route": call.route} if call.tool and not call.run else {}
        usual = usual_row(call.form, result.message, stage) | own
        data |= words_of({**row, "side_effects": list(result.side_effects)}, at, usual)
        written = self._transcript.append(
            call.session,
            "fault" if stage == "reader" else "receipt",
            data,
            run=call.run,
            parent=seq,
            key=key_in(call),
            status=result.status,
            at=at,
        )
        return Logged(written.seq, written.digest, plain and written.shown is written.text)

    def settled(self, call: Call, result: ToolResult, consent: Decided | None) -> None:
        if call.session and not call.run and call.parent is None and result.status != "pending":
            self._transcript.forget_secrets(call.session, key=key_in(call), asked=consent is not None)

    def _called(self, tool: CognitiveTool | None, call: Call, consent: Decided | None) -> tuple[int, bool]:
        """Write the event of a call: its sequence number, and whether nothing was hidden in it."""
        if not call.tool:  # it could not be read
            return call.event, False
        self.hide(tool, call)
        data: dict[str, Any] = {"id": call.id, "form": written_form(call.form)}
        if not call.run:
            data |= {"route": call.route, "user": call.user}
        if call.edited:
            data["edited"] = True
        if tool is not None:
            data["version"] = tool.version[:16]
            if not HARMLESS.issuperset(tool.effects):
                data["does"] = list(tool.effects)
        parent = call.event or self.place(call.parent)
        marks = {"run": call.run, "key": key_in(call)}
        written = self._transcript.append(call.session, "call", data, parent=parent, **marks)
        seq = written.seq
        if call.repairs:
            what = {"what": list(call.repairs)}
            self._transcript.add(call.session, "repair", what, parent=seq, **marks)
        if isinstance(consent, EditedCall) or (consent is not None and consent.kind != "ask"):
            said = {"said": verdict_text("consent", consent)}
            self._transcript.add(call.session, "approval", said, parent=seq, **marks)
        return seq, written.shown is written.text

    def hide(self, tool: CognitiveTool | None, call: Call) -> None:
        """Hide the secrets of a call in what is written from now on."""
        self._transcript.hide(call.session, secrets_in(call.form, tool, self._secrets))


def secrets_in(form: CallForm, tool: CognitiveTool | None, names: Collection[str]) -> list[str]:
    """The values of declared secrets in a call. ``names`` are the secret parameters of all tools."""
    params = tool.params if tool is not None else ()
    if not names and not any(param.secret for param in params):
        return []
    return Redactor(form, params, names, by_looks=False).found


def key_in(call: Call) -> str:
    """The call's key without the session's prefix: its name within the session."""
    return call.key.removeprefix(f"{call.session}/")
