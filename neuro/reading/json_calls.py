"""JSON objects -> call forms, where an object can only be a call.

Knows the shapes that models are taught: ``{"tool", "args"}``, ``{"name", "arguments"}`` (also with arguments
as JSON text), OpenAI's ``{"function": {…}}`` and ``{"tool_calls": […]}``, and lists of these. Runs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from quoth.neuro.reading.literals import NotRead
from quoth.neuro.reading.markup import Cursor
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, from_json, kebab, too_deep
from quoth.tools.registry.parameters import is_plain

NAMES: Final = ("tool", "name", "tool_name", "function", "function_name", "action")
ARGUMENTS: Final = ("args", "arguments", "parameters", "params", "input", "tool_input", "action_input")
# What nobody writes but to call a tool, so that a tool that does not exist is called too, and answered.
CALLS: Final = {("tool", "args"), ("tool", "arguments"), ("name", "arguments"), ("function", "arguments")}
# Beside a name and arguments these say nothing; anything else (approved, user, depth, …) is no order.
BESIDE: Final = {"id", "call_id", "tool_call_id", "index", "thought", "thoughts", "reasoning"}
ENVELOPE: Final = {
    "target": ("tool",),
    "action": ("call",),
    "type": ("request", "function", "tool-use", "tool-call"),
}
WRAPPERS: Final = ("tool_calls", "tool_call", "function_call", "function")
KEYS: Final = {*NAMES, *ARGUMENTS, *BESIDE, *ENVELOPE, *WRAPPERS}  # of the outer object

# What may be the name of a tool, of ours or of another host's: ``read-file``, ``uber.ride``, ``files/read``.
CALLED: Final = re.compile(r"[a-z][a-z0-9-]*(?:[./][a-z][a-z0-9-]*)*\Z")
# Some models were trained on tools in a namespace of these names.
NAMESPACE: Final = "functions."
NAMESPACES: Final = (NAMESPACE, "function.", "default_api.", "default-api.", "tools.", "tool.", "api.")
_MARKS = re.compile(r"<\|.*|:\d+\Z", re.DOTALL)  # of a template, or the number of a call, behind a name

NO_ARGUMENTS: Final = "{} was read as no arguments."
ENCODED: Final = "The arguments were encoded as JSON more than once."
MOST_ENCODED: Final = 3

_MEANT = re.compile(r"""["'](?:tool|name|function|tool_name|action)["']\s*:\s*["']([^"'\n]{1,80})["']""")


def bare_name(name: str, known: Collection[str]) -> str:
    """The name of a tool as a model wrote it, without a namespace and a template's marks, unless a tool has
    the whole name."""
    if name in known or kebab(name) in known:
        return name
    bare = _MARKS.sub("", name.strip())
    space = next((one for one in NAMESPACES if bare.lower().startswith(one)), "")
    cut = bare[len(space) :]
    if space == NAMESPACE or kebab(cut) in known:
        return cut
    return bare if kebab(bare) in known else name


def is_meant(text: str, start: int, stop: int, known: Collection[str]) -> bool:
    """Whether ``text[start:stop]`` names a known tool, so that it is meant as a call even if unreadable."""
    found = _MEANT.search(text, start, min(stop, start + 400))
    return found is not None and kebab(bare_name(found[1], known)) in known


def json_calls(value: Any, known: Collection[str], marked: bool = False) -> list[CallForm] | None:
    """The calls that a JSON value represents; None when it is data. ``marked``: it stood where only calls
    stand, as in a ``<tool_call>``.

    Raises InvalidCallError when it is a call with a fault.
    """
    if isinstance(value, list):
        return _several(value, known, marked)
    if isinstance(value, Mapping):
        if isinstance(inner := value.get("tool_calls"), list):
            return _several(inner, known, True)
        call = _call(value, known, marked)
        return None if call is None else [call]
    return None


def _several(items: list[Any], known: Collection[str], marked: bool) -> list[CallForm] | None:
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    calls = [_call(item, known, marked) for item in items]
    return [call for call in calls if call is not None] if None not in calls else None


def _call(data: Mapping[str, Any], known: Collection[str], marked: bool) -> CallForm | None:
    for wrapper in ("function", "tool_call", "function_call"):
        inner = data.get(wrapper)
        if isinstance(inner, Mapping) and set(data) <= {wrapper, "type", *BESIDE}:
            data, marked = inner, True
    key = next((name for name in NAMES if isinstance(data.get(name), str)), None)
    if key is None or (key != "tool" and "description" in data):  # the latter defines a tool
        return None
    given = [name for name in ARGUMENTS if name in data]
    tool = kebab(bare_name(data[key], known))
    if tool not in known and not (
        CALLED.match(tool) and (marked or (key, *given) in CALLS) and _are_arguments(data, given)
    ):
        return None
    rest = {name: value for name, value in data.items() if name != key}
    positional = rest.pop("positional", ()) if key == "tool" else ()
    if not given:
        if key != "tool" and not marked:
            return None
        # {"tool": "echo", "text": "hi"}: whatever is no envelope is an argument.
        args = {name: value for name, value in rest.items() if not _is_envelope(name, value)}
        return _checked(tool, args, positional)
    for name, value in rest.items():
        if name != given[0] and not _is_envelope(name, value):
            if tool not in known:
                return None
            raise InvalidCallError(
                f'A call in JSON has "{key}" and "{given[0]}"; "{name}" has no meaning there.'
            )
    return _checked(tool, data[given[0]], positional)


def _are_arguments(data: Mapping[str, Any], given: list[str]) -> bool:
    return all(isinstance(data[name], Mapping) or str(data[name]).lstrip().startswith("{") for name in given)


def _is_envelope(name: str, value: Any) -> bool:
    return name in BESIDE or (name in ENVELOPE and isinstance(value, str) and kebab(value) in ENVELOPE[name])


def _checked(tool: str, args: Any, positional: Any) -> CallForm:
    if isinstance(args, str) or args == []:
        args = read_arguments(args or "").values
    call = from_json({"tool": tool, "args": {} if args is None else args, "positional": positional})
    if too_deep(call.args) or too_deep(call.positional):
        raise InvalidCallError(f"{tool}: an argument is nested too deeply.")
    return call


# The arguments of native calls, and those that are JSON text in an object


class Arguments(NamedTuple):
    """The arguments by name, and a sentence for each repair of their spelling."""

    values: dict[str, Any]
    repairs: tuple[str, ...] = ()


def read_arguments(text: str, *, cut: bool = False) -> Arguments:
    """The arguments in a text. ``cut``: the reply was cut off, so a missing end is not guessed. Raises
    InvalidCallError."""
    repairs: dict[str, None] = {}
    value: Any = text
    for _ in range(MOST_ENCODED + 1):
        if not isinstance(value, str):
            break
        if value is not text:
            repairs[ENCODED] = None
        value = _value(value, repairs, cut)
    if value is None or value == []:
        repairs[NO_ARGUMENTS.format("null" if value is None else "[]")] = None
        value = {}
    if not isinstance(value, dict):
        raise InvalidCallError("The arguments are an object with a name for each value.")
    return Arguments(value, tuple(repairs))


def _value(text: str, repairs: dict[str, None], cut: bool) -> Any:
    """The value that a text spells. Raises InvalidCallError."""
    try:
        return json.loads(text if text.strip() else "{}")
    except RecursionError:
        raise InvalidCallError("The arguments are nested too deeply.") from None
    except ValueError as error:
        unread = InvalidCallError(f"The arguments are not JSON: {error}.")
    at = Cursor(text, 0, cut=cut)
    try:
        value = at.value()
    except NotRead:
        raise unread from None
    if not isinstance(value, dict | str) or not is_plain(value) or text[at.position :].strip():
        raise unread
    repairs |= at.repairs
    return value


def sound_arguments(text: str, *, cut: bool = False) -> str:
    """The arguments as they go back to a server: JSON, also where they are misspelt and have one reading."""
    try:
        if isinstance(json.loads(text or "{}"), dict):
            return text
    except (ValueError, RecursionError):
        pass
    try:
        return json.dumps(read_arguments(text, cut=cut).values, ensure_ascii=False)
    except InvalidCallError:
        return text
