"""What became of the response tags of a session: the status of each call, or why a line was none.

Knows events; it must not know tools, readers or terminals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quoth.tools.history.event import Event


@dataclass(frozen=True)
class TagLine:
    """One line of a reply. ``status`` is that of its call, or ``passed`` for no call; ``why`` says more."""

    id: str  # of the reply
    run: str
    line: int
    text: str
    status: str
    why: str = ""
    call: str = ""

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.run}, line {self.line}: {self.text}\n  {self.status}{why}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def tag_lines(events: Sequence[Event]) -> Iterator[TagLine]:
    """The tag lines of all replies, in order. A call that is still to be made has the status ``waiting``."""
    calls = {(event.parent, _place(event.key)): event for event in events if event.kind == "call"}
    results = {event.key: event for event in events if event.kind == "receipt"}
    for event in events:
        if event.kind != "tags":
            continue
        reply = f"{event.session}.{event.parent}"
        for line, text, what in event.said["lines"]:
            if isinstance(what, str):
                yield TagLine(reply, event.run, line, text, "passed", what)
                continue
            call = calls.get((event.parent, what))
            result = results.get(call.key) if call else None
            why = str(result.said.get("message", "")) if result and result.status != "ok" else ""
            status = result.status if result else "waiting"
            yield TagLine(reply, event.run, line, text, status, why, call.id if call else "")


def _place(key: str) -> int:
    """The place of a loop's call in its turn, which ends its key; -1 for any other call."""
    place = key.rpartition(".")[2]
    return int(place) if place.isdecimal() else -1
