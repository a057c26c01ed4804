"""Turns values and results into text for people and models.

Knows no terminal and no command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quoth.tools.call.call import ToolResult
from quoth.tools.lisp.printer import print_value
from quoth.tools.text import money, number_of


def show_value(value: Any) -> str:
    """Return a value as text: a string as it is, a list of over three items by lines, other data as Lisp. An
    item with a line break in it is quoted, so that each line is one item. A dictionary with one text of
    several lines ends with that, as it is, below its name."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value:
        long = [name for name, one in value.items() if isinstance(one, str) and "\n" in one.rstrip("\n")]
        if len(long) == 1:
            rest = {name: one for name, one in value.items() if name != long[0]}
            head = f"{print_value(rest)}\n" if rest else ""
            return f"{head}{long[0]}:\n{value[long[0]]}"
    if isinstance(value, list) and len(value) > 3:
        return "\n".join(item if _is_line(item) else print_value(item) for item in value)
    return print_value(value)


def _is_line(item: Any) -> bool:
    return isinstance(item, str) and item.splitlines() in ([], [item])


# How the sentence of the door already says the status.
_SAID = {
    "denied": "denied",
    "pending": "waits for",
    "limited": "is limited",
    "timeout": "did not finish",
    "cancelled": "was cancelled",
}


def failure_text(result: ToolResult) -> str:
    """Return the message of a failed call, after its status unless the message implies that."""
    said = _SAID.get(result.status)
    return result.message if said and said in result.message else f"{result.status}: {result.message}"


Aside = Callable[[str, int], str]  # what is said beside a text that is left out, and the length of its head


def shortened(text: str, limit: int, aside: Aside = lambda text, head: "") -> str:
    """Return ``text``, or if it is longer than ``limit`` characters its head and tail with a note between
    them. ``aside`` adds to the note."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    said = aside(text, head)
    left = len(text) - head - tail
    return f"{text[:head]}\n[… {left:,} characters left out{said} …]\n{text[-tail:]}"


def budget_text(spent: Mapping[str, Any], left: Mapping[str, Any]) -> str:
    """What a run has spent and what is left of its budget: ``1,200 tokens, $0.01 spent; $0.04 left``."""
    took = _amounts({name: one for name, one in spent.items() if name != "seconds" or name in left})
    rest, today = _amounts(left), _amounts(left.get("today", {}))
    told = filter(None, (rest and f"{rest} left", today and f"{today} left for today"))
    return f"{took} spent; {' and '.join(told)}"


def _amounts(amounts: Mapping[str, Any]) -> str:
    known: dict[str, Callable[[Any], str]] = {
        "requests": lambda number: number_of(int(number), "request"),
        "tokens": lambda number: f"{number:,.0f} tokens",
        "cost": money,
        "seconds": lambda number: f"{number:.1f} s",
    }
    return ", ".join(say(amounts[name]) for name, say in known.items() if name in amounts)
