"""Where the arguments of one call come from, as a person who decides about it is told.

It knows forms, secrets and the Origins of a session; it must not know questions, rules or terminals. No
secret stands in what it returns. Of a huge argument only so much is looked up as a person would read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from quoth.tools.call.call import ArgumentOrigin, Call, ValueOrigin, _inner
from quoth.tools.call.context import Origins
from quoth.tools.call.redaction import Redactor, redact
from quoth.tools.errors import PERMISSION
from quoth.tools.lisp.forms import CallForm
from quoth.tools.origin.leaves import leaves
from quoth.tools.origin.links import links
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.values import encodable
from quoth.tools.text import short

LOOKED_UP = 100  # values of one argument, and links in it
NAMED = 3  # of those with one origin; the others are counted
VALUE_CHARS, WORDS_CHARS = 60, 120


def origins_of_arguments(
    tool: CognitiveTool, call: Call, args: Mapping[str, Any], origins: Origins
) -> tuple[ArgumentOrigin, ...]:
    """Where each argument that was given comes from, item by item where a list or dictionary has several
    origins; and each link inside a text that is not known itself. What needs no origin, such as an empty text
    or ``True``, is left out. ``args`` are all arguments, as JSON data."""
    hide = Redactor(call.form, tool.params, by_looks=False)
    secret = {param.name for param in tool.params if param.secret}
    defaults = {param.name: param.default for param in tool.params if not param.required}

    def bare(text: str, chars: int) -> str:
        return short(encodable(redact(hide.text(text)[: 20 * chars])), chars)

    told = []
    for name, given in call.form.args.items():
        value = args.get(name, given)
        # The tool's own default stands in the form where it is a path that leads elsewhere.
        if name == PERMISSION or getattr(value, "written", value) == defaults.get(name):
            continue
        for (kind, words), values in _parts(value, lambda one: origins.find(one, call)):
            shown = [] if name in secret else [bare(str(value), VALUE_CHARS) for value in values[:NAMED]]
            more = max(0, len(values) - NAMED) if shown else 0
            told.append(ArgumentOrigin(name, kind, bare(words, WORDS_CHARS), tuple(shown), more))
    return tuple(told)


def origins_of_plan(
    table: ToolTable, call: Call, shapes: Sequence[Mapping[str, Any]], origins: Origins
) -> tuple[ArgumentOrigin, ...]:
    """The same of the calls that a dry run found in the program of ``call``, as far as their arguments are
    known: the dry run has put into them what it has read."""
    told = []
    for shape in shapes:
        args = {name: pattern["is"] for name, pattern in shape["args"].items() if "is" in pattern}
        inner = _inner(call, CallForm(shape["tool"], args), "plan")
        for one in origins_of_arguments(table.get(shape["tool"]), inner, args, origins):
            told.append(one._replace(argument=f"{shape['tool']} {one.argument}"))
    return tuple(told)


_Words = tuple[str, str]  # the kind of an origin, and itself in words


def _parts(value: Any, find: Callable[[Any], ValueOrigin]) -> Iterator[tuple[_Words, list[Any]]]:
    """The origins of an argument, each with the values in it that have it; none where all of it has."""
    items: dict[_Words, list[Any]] = {}
    inside: dict[_Words, dict[str, None]] = {}
    found = leaves(value)
    for leaf in islice(found, LOOKED_UP):
        origin = find(leaf)
        items.setdefault((origin.kind, str(origin)), []).append(leaf)
        if isinstance(leaf, str) and not origin.known:
            for link in islice(links(leaf), LOOKED_UP):
                if link.text != leaf.strip():
                    of = find(link.text)
                    inside.setdefault((of.kind, str(of)), {})[link.text] = None
    if rest := list(found):
        items["model", "not looked up"] = rest
    for words, values in items.items():
        yield words, values if len(items) > 1 else []
    for words, texts in inside.items():
        yield words, list(texts)
