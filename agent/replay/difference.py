"""Differences between a recording and its replay: events as forms, compared line by line.

Knows forms and how they are printed; it must not know sessions or agents.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from quoth.agent.terminal.forms import shortened
from quoth.tools.call.redaction import SECRET
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_string, print_value

CALL_CHARS = 100  # of a call in the head of a diff
What = Literal["stimulus", "request", "call", "end", "receipt"]


@dataclass(frozen=True)
class Difference:
    """One difference. ``event`` is the id of the event, or the key of a call without one; ``recorded`` and
    ``now`` are forms of several lines, one of which is empty if its side has no event. ``call`` is the call
    of a receipt."""

    event: str
    what: What
    run: str
    recorded: str
    now: str
    call: str = ""

    @property
    def diff(self) -> str:
        """A unified diff of ``recorded`` and ``now``."""
        of = f": {shortened(self.call, CALL_CHARS)}" if self.call else ""
        lines = difflib.unified_diff(
            self.recorded.splitlines(),
            self.now.splitlines(),
            f"{self.event} recorded{of}",
            f"{self.event} now{of}",
            n=2,
            lineterm="",
        )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "diff": self.diff}


def is_same(recorded: str, now: str) -> bool:
    """Whether two texts are equal; a hidden secret in ``recorded`` matches any text."""
    if recorded == now:
        return True
    first, *parts = recorded.split(SECRET)
    if not parts or not now.startswith(first):
        return False
    place = len(first)
    for part in parts[:-1]:
        place = now.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return len(now) - len(parts[-1]) >= place and now.endswith(parts[-1])


def _spread(value: Any) -> str:
    """A value as Lisp text that reads back equal; a text keeps its lines."""
    if type(value) is str:
        return '"' + "\n".join(print_string(line)[1:-1] for line in value.split("\n")) + '"'
    return print_value(value)


def request_text(data: Mapping[str, Any]) -> str:
    """The new messages of a request as a form, each on its own lines."""
    marks = [f":from {data['from']}"]
    marks += [f":{name} {print_value(data[name])}" for name in ("tools", "choice") if name in data]
    if data["talk"] != 1:
        marks.append(f":talk {data['talk']}")
    return "\n".join([f"(request {' '.join(marks)}", *(f"  {_message(m)}" for m in data["messages"])]) + ")"


def _message(message: Mapping[str, Any]) -> str:
    more = [
        f"\n    :{name} {print_value(message[name])}"
        for name in ("call_id", "calls", "kept")
        if message.get(name)
    ]
    return f"({message['role']} {_spread(message['content'])}{''.join(more)})"


def call_text(form: CallForm) -> str:
    """A call with one argument a line."""
    values = [_spread(value) for value in form.positional]
    values += [f":{name} {_spread(value)}" for name, value in form.args.items()]
    return "\n  ".join([f"({form.tool}", *values]) + ")"


def result_text(status: str, value: Any, message: str) -> str:
    """A receipt as a form, each item of a list on its own line."""
    parts = [f"(receipt :status {print_value(status)}"]
    if status == "ok" and isinstance(value, list) and value:
        parts.append("  :value [" + "\n          ".join(_spread(item) for item in value) + "]")
    elif status == "ok":
        parts.append(f"  :value {_spread(value)}")
    if message:
        parts.append(f"  :message {_spread(message)}")
    return "\n".join(parts) + ")"


def end_text(status: str, text: str) -> str:
    return f"(end :status {print_value(status)}\n  :text {_spread(text)})"


def dialect_text(name: str, in_text: bool = True) -> str:
    return f"(stimulus :dialect {print_value(name)} :in-text {in_text})"
