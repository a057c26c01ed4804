"""The result of a run: the Reply and its calls.

Data only; it knows no door, no session and no loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from quoth.neuro.backends.base import Usage
from quoth.tools.call.call import ToolResult
from quoth.tools.call.redaction import SECRET, Redactor, map_texts
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.parameters import Param

T = TypeVar("T")

RunStatus = Literal["done", "failed", "pending", "interrupted"]


@dataclass(frozen=True)
class CallRecord:
    """A call of the run and its result; ``shown`` is the form without declared secrets, ``call_id`` the id
    that the provider gave the call, ``key`` its name within the session, also when it is resumed."""

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
    """What a person is told of one call, after the reply: what its body said, or why it failed. ``call`` is
    the key of the call."""

    call: str
    text: str


@dataclass(frozen=True)
class WrittenPlan:
    """A plan of calls that were not made: its ``file``, from the workspace, and how many ``steps`` it has; 0
    where a person has changed the file since its steps were written."""

    file: str
    steps: int


class Output(Generic[T]):
    """Names the type of an answer that is not a class: ``output=Output[int | None]``,
    ``output=Output[Literal["yes", "no"]]``. For a class it is not needed: ``output=Person``."""


if TYPE_CHECKING:
    import typing_extensions

    T_co = typing_extensions.TypeVar("T_co", covariant=True, default=Any)
else:  # typing_extensions takes 5 ms
    T_co = TypeVar("T_co")


@dataclass(frozen=True)
class Reply(Generic[T_co]):
    """How a run ended. ``text`` is the answer, or of a run that waits for a person, what waits; it is empty
    where a reply of calls alone ends the run. ``error`` is the sentence why a run that failed or was
    interrupted has no answer, or why its end is not on disk. ``output`` is the value in the answer, where
    the run was to have one of a type. ``messages`` are those to the user that no earlier Reply of the run has
    told of; in a chat, all. ``unsent`` is the part of ``text`` that the user has not had as a message; None
    is all of it. ``follow_ups`` are those of all calls in their order, in a chat and where the run ended with
    its calls. ``spent`` is what it took of its budget, its ``cost`` where that is bounded, and ``left`` what
    is left of its steps and calls, and of ``tokens``, ``cost`` and ``seconds`` as far as they are bounded; of
    the user's day under ``today``. ``plan`` is what a run in plan mode has written. ``reasoning`` is what the
    model thought before its answer, if it marked that as a thought."""

    session: str
    status: RunStatus
    text: str
    calls: tuple[CallRecord, ...] = ()
    usage: Usage = field(default_factory=Usage)
    steps: int = 0  # those of sub-agents are among them
    messages: tuple[str, ...] = ()
    unsent: str | None = None
    follow_ups: tuple[FollowUp, ...] = ()
    error: str = ""
    spent: Mapping[str, Any] = field(default_factory=dict)
    left: Mapping[str, Any] = field(default_factory=dict)
    output: T_co = None  # type: ignore[assignment]  # a run that was to have none, or did not get to it
    plan: WrittenPlan | None = None
    reasoning: str = ""

    @property
    def ok(self) -> bool:
        """Whether the run has its answer."""
        return self.status == "done"

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer to show, though the end of the run may not be recorded."""
        return self.ok or (self.status == "failed" and bool(self.text))

    @property
    def said(self) -> str:
        """What a person is shown: the answer, or why there is none."""
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
    """Seconds and US dollars to as many places as anybody reads."""
    return {name: _rounded(one) if isinstance(one, Mapping) else round(one, 6) for name, one in left.items()}
