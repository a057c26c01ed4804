"""Turns values of the prompt into text: as Hy for a person, plainly for a program that reads them.

Knows values, of any class at all; it must not know the terminal.
"""

from __future__ import annotations

from typing import Any

from quoth.agent.terminal.forms import in_quotes, shortened, show_value
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import number_of

LONGEST = 20_000  # characters of a value on a screen
MOST = 1_000  # items of one that are shown


def as_hy(value: Any) -> str:
    """The value as a form that can be taken and read again; a text keeps its lines. Bounded."""
    if type(value) is str:
        return in_quotes(shortened(value, LONGEST))
    return shortened(_repr(value), LONGEST)


def as_plain(value: Any) -> str:
    """The value for whoever reads the output: texts as they are, data as Lisp, all of it."""
    return show_value(value).rstrip("\n") if _is_data(value) else _repr(value)


def _repr(value: Any) -> str:
    import hy

    if isinstance(value, CognitiveTool):
        return f"<tool {value.signature()}>"
    if type(value) in (list, tuple) and len(value) > MOST:
        return f"{hy.repr(value[:MOST])}\n… and {number_of(len(value) - MOST, 'more item')}"
    return str(hy.repr(value))


def _is_data(value: Any, depth: int = 0) -> bool:
    if type(value) in (str, int, float, bool, type(None)):
        return True
    if depth > 20 or type(value) not in (list, dict):
        return False
    inner = [*value, *value.values()] if type(value) is dict else value
    return all(_is_data(item, depth + 1) for item in inner)
