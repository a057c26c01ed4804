"""The parts of a reply: its calls, its text and its faults."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, canonical


@dataclass(frozen=True)
class FoundCall:
    """One call and its position (1-based line and column, character offsets of the text).

    ``repairs`` has a sentence for each repair of its spelling; ``tag`` is its response tag, if any.
    """

    form: CallForm
    line: int
    column: int
    start: int
    end: int
    repairs: tuple[str, ...] = ()
    tag: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.form.tool,
            "args": dict(self.form.args),
            "form": canonical(self.form),
            "line": self.line,
            "column": self.column,
        } | {
            name: list(value)
            for name, value in (("positional", self.form.positional), ("repairs", self.repairs))
            if value
        }


@dataclass(frozen=True)
class Fault:
    """One unreadable part of a reply: the fault, its position (line 0: unknown), a hint, and the line with a
    caret."""

    message: str
    line: int
    column: int
    hint: str = ""
    caret: str = ""

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        shown = f"\n{self.caret}" if self.caret else ""
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{self.message}{hint}{shown}"

    def to_json(self) -> dict[str, Any]:
        return {"message": self.message, "line": self.line, "column": self.column, "hint": self.hint}


@dataclass(frozen=True)
class Passed:
    """A line that looks like a response tag but is not a call, and the reason."""

    line: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text} is not a call: {self.reason}"


@dataclass
class Reading:
    """The contents of a reply: its calls in order, its text without them, and its faults.

    ``display`` is the text for a person: lines of response tags are removed, or kept if their tools want
    that. ``sure`` has each CONFIDENCE, from 0 to 1, with its line. ``passed`` are the lines that look like
    response tags but are not calls. ``reasoning`` is the text of the thoughts, and ``content`` the whole
    reply without them, as it is added to the conversation."""

    calls: list[FoundCall] = field(default_factory=list)
    text: str = ""
    errors: list[Fault] = field(default_factory=list)
    display: str = ""
    sure: list[tuple[float, str]] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    reasoning: str = ""
    content: str = ""

    @property
    def confidence(self) -> float | None:
        """The model's lowest stated confidence, 0 to 1; None without one."""
        return min((sure for sure, _ in self.sure), default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "forms": [call.to_json() for call in self.calls],
            "text": self.text,
            "errors": [error.to_json() for error in self.errors],
        } | ({"reasoning": self.reasoning} if self.reasoning else {})
