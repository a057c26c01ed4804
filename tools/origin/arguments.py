"""The origins of a call's arguments, for the person who decides about the call.

The result contains no secrets. Of a huge argument, only as much is looked up as a person would read.
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
from quoth.tools.registry.roles import DestinationRole, destinations
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.values import encodable
from quoth.tools.text import short

LOOKED_UP = 100  # maximum number of values, and of links, looked up in one argument
NAMED = 3  # values named for each origin; the others are only counted
VALUE_CHARS, WORDS_CHARS = 60, 120


def origins_of_arguments(
    tool: CognitiveTool, call: Call, args: Mapping[str, Any], origins: Origins
) -> tuple[ArgumentOrigin, ...]:
    """The origin of each given argument, item by item if a list or dictionary has several origins; also the
    origin of each link inside a text of unknown origin. Values without an origin, such as an empty text or
    ``True``, are left out. ``args`` are all arguments, as JSON data."""
    hide = Redactor(call.form, tool.params, by_looks=False)
    secret = {param.name for param in tool.params if param.secret}
    defaults = {param.name: param.default for param in tool.params if not param.required}

    def bare(text: str, chars: int) -> str:
        return short(encodable(redact(hide.text(text)[: 20 * chars])), chars)

    aims = {one.name: one for one in destinations(tool)}
    told = []
    for name, given in call.form.args.items():
        value = args.get(name, given)
        # The form contains the tool's own default if that is a path that leads elsewhere.
        if name == PERMISSION or getattr(value, "written", value) == defaults.get(name):
            continue
        role = aims.get(name)
        for (kind, words), values, is_aim in _parts(value, role, lambda one: origins.find(one, call)):
            shown = [] if name in secret else [bare(str(value), VALUE_CHARS) for value in values[:NAMED]]
            more = max(0, len(values) - NAMED) if shown else 0
            told.append(ArgumentOrigin(name, kind, bare(words, WORDS_CHARS), tuple(shown), more, is_aim))
    return tuple(told)


def origins_of_plan(
    table: ToolTable, call: Call, shapes: Sequence[Mapping[str, Any]], origins: Origins
) -> tuple[ArgumentOrigin, ...]:
    """Like ``origins_of_arguments``, for the calls that a dry run found in the program of ``call``. Only
    arguments known to the dry run are included; it has inserted the values it read."""
    told = []
    for shape in shapes:
        args = {name: pattern["is"] for name, pattern in shape["args"].items() if "is" in pattern}
        inner = _inner(call, CallForm(shape["tool"], args), "plan")
        for one in origins_of_arguments(table.get(shape["tool"]), inner, args, origins):
            told.append(one._replace(argument=f"{shape['tool']} {one.argument}"))
    return tuple(told)


_Words = tuple[str, str]  # the kind of an origin, and the origin in words


def _parts(
    value: Any, role: DestinationRole | None, find: Callable[[Any], ValueOrigin]
) -> Iterator[tuple[_Words, list[Any], bool]]:
    """The origins of an argument, each with its values in the argument, no values if all of them have it; and
    whether these values are links or say where something goes."""
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
        aims = values is rest or any(_aims(one, role) for one in values)
        yield words, values if len(items) > 1 else [], aims
    for words, texts in inside.items():
        yield words, list(texts), any(_aims(one, None) for one in texts)


def _aims(value: Any, role: DestinationRole | None) -> bool:
    """Whether a value is a link or says where something goes. A path does so outside of the workspace."""
    if role is not None and not role.outside:
        return True
    text = str(value)
    return text.startswith(("/", "~", "..")) or any(
        one.kind != "path" and one.text == text.strip() for one in links(text)
    )
