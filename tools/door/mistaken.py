"""The hint for a failed call that gives a tool's name where a program, a path or another name belongs.

Knows forms, outcomes and the table; it must not know models or stages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from quoth.tools.door.state import Outcome
from quoth.tools.lisp.forms import CallForm, kebab
from quoth.tools.registry.table import ToolTable

FAILURES = ("error", "invalid")
_GUESS = re.compile(r" Did you mean [^?]+\?$")  # of another program or file


def with_tool_named(outcome: Outcome, form: CallForm, table: ToolTable) -> Outcome:
    """The outcome; where its error quotes an argument that is the name of a tool, it says how to call that
    tool."""
    if outcome.status not in FAILURES:
        return outcome
    for text in _texts([*form.args.values(), *form.positional]):
        name = kebab(text)
        if name in table.visible and name != form.tool and _is_quoted(text, outcome.message):
            hint = f"{name} is a tool: {_shape(table, name)}"
            return replace(outcome, message=f"{_GUESS.sub('', outcome.message)} {hint}")
    return outcome


def _texts(values: list[Any]) -> Iterator[str]:
    for value in values:
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str))


def _is_quoted(text: str, message: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", message) is not None


def _shape(table: ToolTable, name: str) -> str:
    """A call of the tool with its required arguments left open."""
    required = [f":{one.name} …" for one in table.get(name).offered if one.required]
    return f"({' '.join([name, *required])})"
