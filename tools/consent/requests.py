"""Requests, decisions, and the interface of the person who decides, as data. The broker stores them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from quoth.tools.call.call import ALLOW, ArgumentOrigin, Call, Route, Verdict, deny
from quoth.tools.call.redaction import redact
from quoth.tools.history.audit import row_of_host
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool

if TYPE_CHECKING:
    from quoth.tools.call.question import Question

QUESTION = "it asks a person"  # the reason of a request for an answer
Kind = Literal["once", "duration", "scope", "edit", "deny", "answer"]
OUTCOMES: dict[str, str] = {
    "once": "approved once",
    "duration": "approved for a while",
    "scope": "granted a scope",
    "edit": "approved with other arguments",
    "deny": "denied",
    "answer": "answered",
}


@dataclass(frozen=True)
class Decision:
    """A person's decision on a request. ``by`` is the person; ``seconds`` is its duration (None: the
    default); ``rule`` is a scope's rule (empty: the suggested one), or of a denial the scope whose calls are
    denied from now on in this session; ``form`` is the edited call; ``answer`` is the person's answer to a
    question, which allows nothing."""

    kind: Kind = "once"
    by: str = ""
    why: str = ""
    seconds: float | None = None
    rule: str = ""
    form: CallForm | None = None
    answer: str = ""


class Person(Protocol):
    """A person who is asked at once. The answer is a Decision, a Verdict (allow means once), or None for not
    now.

    If ``human`` is False, no requests are stored and no rules suggested. Optional methods: ``answer``
    receives the tool, the call and the Question (tools/call/question.py) of a body, and returns a text, or
    None for not now. ``show_changes_by`` receives a function that returns the changes of a call. ``withdraw``
    is called before a question is cancelled because it was answered elsewhere.
    """

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Decision | Verdict | None: ...


class SayYes:
    """Allows every call; for ``--yes`` and for hosts that choose so."""

    human = False

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict:
        return Verdict("allow", "everything was allowed beforehand")


@dataclass(frozen=True)
class Request:
    """A request for display, without declared secrets. Times are seconds since 1970."""

    id: str
    tool: str
    form: str
    reason: str
    touches: tuple[str, ...]
    user: str
    session: str
    route: Route
    call: str
    parent: str | None
    message: str
    rule: str
    asked: float
    expires: float
    state: Literal["pending", "decided", "used"]
    decision: str
    decided: float | None
    decider: str
    why: str
    channel: str = ""  # the host's name for the place where the user is reached
    origins: tuple[ArgumentOrigin, ...] = ()  # the origins of its arguments when it was asked
    question: Question | None = None  # the question in words; None for a request for approval

    @property
    def outcome(self) -> str:
        """The decision and its author: ``approved once by ann``."""
        return f"{OUTCOMES[self.decision]} by {_who(self.decider)}"

    @property
    def origin(self) -> dict[str, str]:
        """The source of the call, as the host marked it: channel, chat and user."""
        return {"channel": self.channel, "chat": self.session, "user": self.user}

    def to_json(self) -> dict[str, Any]:
        times = {name: _iso(getattr(self, name)) for name in ("asked", "expires", "decided")}
        said = {name: value for name, value in vars(self).items() if name not in ("channel", "question")}
        asked = {} if self.question is None else self.question.to_data()
        said |= {"kind": "question" if asked else "approval", **asked}
        said |= {"touches": list(self.touches), "origin": self.origin}
        return said | times | {"origins": [one.to_data() for one in self.origins]}


def request_digest(
    form: CallForm, version: str, session: str, leads: Mapping[str, str] = MappingProxyType({})
) -> str:
    """SHA-256 over everything that an approval is bound to: the form, the tool's version, the session, and
    ``leads``, the targets of paths that are recognised only by their names. Other paths are resolved in the
    form."""
    bound = [form.identity, version, session, *([dict(leads)] if leads else [])]
    return hashlib.sha256(json.dumps(bound).encode()).hexdigest()


def decision_row(decision: Decision, consent: str, tool: str, digest: str, form: str) -> dict[str, Any]:
    """The audit row of a decision about a call, or about a step of a flight plan."""
    marks = {
        "user": decision.by,
        "route": "decision",
        "parent": None,
        "tool": tool,
        "digest": digest,
        "status": "denied" if decision.kind == "deny" else "ok",
        "rule": redact(decision.rule)[:2000],
        "consent": consent,
        "form": redact(form)[:2000],
    }
    return row_of_host("consent", redact(decision.why)[:2000], **marks)


def _decision(said: Any) -> Decision:
    if isinstance(said, Decision):
        return said
    if isinstance(said, Verdict) and said.kind in ("allow", "deny"):
        return Decision("once" if said.kind == "allow" else "deny", why=said.reason)
    raise TypeError(f"{said!r} is not a decision")


def _verdict(said: Any) -> Verdict | None:
    """The answer of a person who is not ``human``, as a verdict."""
    if isinstance(said, Decision) and said.kind == "deny":
        return deny(said.why)
    if isinstance(said, Decision) and said.kind in ("once", "duration", "scope"):
        return ALLOW
    if said is None or isinstance(said, Verdict):
        return said
    raise TypeError(f"{said!r} is not a decision")


def _who(name: str) -> str:
    return name or "somebody"


def _iso(when: float | None) -> str | None:
    return None if when is None else datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds")


def _clock_time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M UTC")
