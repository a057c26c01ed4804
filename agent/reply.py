"""The result of a run: the Reply and its calls. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from quoth.neuro.backends.base import Usage
from quoth.tools.call.call import ToolResult
from quoth.tools.call.redaction import SECRET, Redactor, map_texts
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.parameters import Param

T = TypeVar("T")

RunStatus = Literal["done", "failed", "pending", "interrupted"]
# Why a run ended, in a word: protocols of other programs distinguish more than the status does.
ReplyReason = Literal[
    "answered",
    "refused",  # the model refused to answer
    "max-steps",
    "max-tokens",  # its replies were cut off at the limit of a reply
    "budget",  # tokens, cost or seconds of the run, or of its user's day
    "pending",
    "cancelled",
    "failed",
]
REASONS: Mapping[RunStatus, ReplyReason] = {
    "done": "answered",
    "failed": "failed",
    "pending": "pending",
    "interrupted": "cancelled",
}


@dataclass(frozen=True)
class CallRecord:
    """A call of the run and its result. ``shown`` is the form without declared secrets, ``call_id`` the
    provider's id of the call, ``key`` its name in the session, which a resumed session keeps."""

    form: CallForm
    result: ToolResult
    shown: CallForm | None = None
    call_id: str = ""
    key: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"form": str(self.shown or self.form), **self.told.to_json()}

    @cached_property
    def told(self) -> ToolResult:
        """The result without the declared secrets of the call, which a body may have put into it."""
        shown = self.shown or self.form
        secret = {name for name, value in shown.args.items() if value == SECRET}
        if not secret and SECRET not in shown.positional:
            return self.result
        params = [Param(name, secret=name in secret) for name in self.form.args]
        hide = Redactor(self.form, params or [Param("", secret=True)], by_looks=False)
        value = map_texts(self.result.value, hide.text)
        return replace(self.result, value=value, message=hide.text(self.result.message))


@dataclass(frozen=True)
class FollowUp:
    """A message for the person about one call, after the reply: the words of its body, or why it failed.
    ``call`` is the key of the call."""

    call: str
    text: str


@dataclass(frozen=True)
class WrittenPlan:
    """A plan of calls that did not run: its ``file``, relative to the workspace, and its number of ``steps``;
    0 if a person has changed the file since the steps were written."""

    file: str
    steps: int


class Output(Generic[T]):
    """Names the type of an answer if it is not a class: ``output=Output[int | None]``,
    ``output=Output[Literal["yes", "no"]]``. A class needs no Output: ``output=Person``."""


if TYPE_CHECKING:
    import typing_extensions

    T_co = typing_extensions.TypeVar("T_co", covariant=True, default=Any)
else:  # typing_extensions takes 5 ms
    T_co = TypeVar("T_co")


@dataclass(frozen=True)
class Reply(Generic[T_co]):
    """The end of a run.

    ``text``: the answer, or what waits for a person; empty if the last reply had calls only.
    ``error``: why a failed or interrupted run has no answer, or why its end is not on disk.
    ``output``: the value in the answer, if the run was asked for one of a type.
    ``messages``: the messages to the user that no earlier Reply of the run had; in a chat, all.
    ``unsent``: the part of ``text`` that the user did not get as a message; None means all of it.
    ``follow_ups``: one of each call, in order, in a chat and if the run ended with its calls.
    ``spent``: what the run took from its budget; its ``cost`` in US dollars only if that is bounded.
    ``left``: its remaining steps and calls, and ``tokens``, ``cost`` and ``seconds`` if they are bounded;
    under ``today``, the rest of the user's day.
    ``plan``: the plan that a run in plan mode wrote.
    ``reasoning``: the model's thoughts before its answer, if it marked them as thoughts."""

    session: str
    status: RunStatus
    text: str
    calls: tuple[CallRecord, ...] = ()
    usage: Usage = field(default_factory=Usage)
    steps: int = 0  # including those of sub-agents
    messages: tuple[str, ...] = ()
    unsent: str | None = None
    follow_ups: tuple[FollowUp, ...] = ()
    error: str = ""
    spent: Mapping[str, Any] = field(default_factory=dict)
    left: Mapping[str, Any] = field(default_factory=dict)
    output: T_co = None  # type: ignore[assignment]  # None if none was asked for or the run did not reach it
    plan: WrittenPlan | None = None
    reasoning: str = ""
    ended_by: ReplyReason | None = None  # where the status alone does not say why

    @property
    def reason(self) -> ReplyReason:
        """Why the run ended, in a word."""
        return self.ended_by or REASONS[self.status]

    @property
    def ok(self) -> bool:
        """Whether the run has its answer."""
        return self.status == "done"

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer to show, even if the end of the run could not be recorded."""
        return self.ok or (self.status == "failed" and bool(self.text))

    @property
    def said(self) -> str:
        """The text for a person: the answer, or why there is none."""
        return self.error or self.text

    @property
    def bounded(self) -> bool:
        """Whether more than steps and calls were bounded."""
        return bool(self.left.keys() - {"steps", "calls"})

    def to_json(self) -> dict[str, Any]:
        usage = {**vars(self.usage), "seconds": round(self.usage.seconds, 3), "steps": self.steps}
        return {
            "session": self.session,
            "status": self.status,
            "reason": self.reason,
            "reply": self.said,
            "calls": [call.to_json() for call in self.calls],
            "usage": usage,
            **({"spent": _rounded(self.spent), "left": _rounded(self.left)} if self.bounded else {}),
            **({"plan": vars(self.plan)} if self.plan else {}),
            **({"error": self.error} if self.error else {}),
            **({"messages": list(self.messages)} if self.messages else {}),
            **({"follow_ups": [vars(one) for one in self.follow_ups]} if self.follow_ups else {}),
        }


def _rounded(left: Mapping[str, Any]) -> dict[str, Any]:
    """The budget with seconds and US dollars rounded for reading."""
    return {name: _rounded(one) if isinstance(one, Mapping) else round(one, 6) for name, one in left.items()}
