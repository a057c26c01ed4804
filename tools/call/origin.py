"""Where a value of a call comes from, as data, and the index that knows it, as a protocol.

It knows calls; it must not know how values are indexed (tools/origin), transcripts or policies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from quoth.tools.call.call import Call

OriginKind = Literal["task", "field", "text", "model"]


@dataclass(frozen=True)
class Origin:
    """Where one value comes from. ``fields`` are the tools in whose results it is the whole value of a field;
    ``text`` names the text in which it stands, ``read-file mail.txt``, and is looked for only where the value
    is neither in the person's words nor in a field."""

    in_task: bool = False
    fields: tuple[str, ...] = ()
    text: str = ""

    @property
    def kind(self) -> OriginKind:
        """The strongest that holds; ``model`` is a value that stands nowhere."""
        return "task" if self.in_task else "field" if self.fields else "text" if self.text else "model"

    @property
    def known(self) -> bool:
        """Whether it comes from the person or from a field, and from no text that somebody else wrote."""
        return self.in_task or bool(self.fields)

    def __str__(self) -> str:
        """In about three words, for a person: ``in your task``, ``field of search-contacts``."""
        words = {"task": "in your task", "model": "the model's own"}
        words |= {"field": f"field of {', '.join(self.fields)}", "text": f"in the text of {self.text}"}
        return words[self.kind]


MODEL = Origin()  # of a value that stands nowhere


class Origins(Protocol):
    """What a session has seen so far."""

    def find(self, value: Any, call: Call) -> Origin:
        """Where one text or number of this call comes from. What a person has typed, or approved as the form
        of a plan, is in the task."""
        ...
