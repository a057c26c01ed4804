"""Values and results as text for people and models: shown, shortened, told.

Knows no terminal and no command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quoth.tools.call.call import ToolResult
from quoth.tools.lisp.printer import print_value


def show_value(value: Any) -> str:
    """A result as a model reads it: texts as they are, a list one item a line, other data as Lisp."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) > 3:
        return "\n".join(item if isinstance(item, str) else print_value(item) for item in value)
    return print_value(value)


# How the sentence of the door already says the status.
_SAID = {
    "denied": "denied",
    "pending": "waits for",
    "limited": "is limited",
    "timeout": "did not finish",
    "cancelled": "was cancelled",
}


def told(result: ToolResult) -> str:
    """What a person is told of a call that is not ok: the status, unless the sentence says it, and the
    sentence."""
    said = _SAID.get(result.status)
    return result.message if said and said in result.message else f"{result.status}: {result.message}"


Aside = Callable[[str, int], str]  # what is said beside a text that is left out, and the length of its head


def shortened(text: str, limit: int, aside: Aside = lambda text, head: "") -> str:
    """Head and tail of a long text, with what was left out said in the middle."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    said = aside(text, head)
    left = len(text) - head - tail
    return f"{text[:head]}\n[… {left:,} characters left out{said} …]\n{text[-tail:]}"
