"""JSON objects -> call forms, if an object can only be a call.

The shapes are those of models' training: ``{"tool", "args"}``, ``{"name", "arguments"}`` (also with arguments
as JSON text), OpenAI's ``{"function": {…}}`` and ``{"tool_calls": […]}``, and lists of these.
"""

from __future__ import annotations

import contextlib
import json
import re
import typing
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple

from quoth.neuro.reading.literals import NotRead
from quoth.neuro.reading.markup import Cursor
from quoth.tools import lazy_regex
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, from_json, kebab, too_deep
from quoth.tools.lisp.printer import Code, print_value
from quoth.tools.registry.arguments import own_names
from quoth.tools.registry.param_types import TEXTS, UNIONS, is_json
from quoth.tools.registry.parameters import Param, is_plain
from quoth.tools.registry.roles import destinations
from quoth.tools.registry.tool import CognitiveTool
from quoth.tools.text import short

NAMES: Final = ("tool", "name", "tool_name", "function", "function_name", "action")
ARGUMENTS: Final = ("args", "arguments", "parameters", "params", "input", "tool_input", "action_input")
# Keys that occur only in calls, so that a call of an unknown tool also counts and gets an answer.
CALLS: Final = {("tool", "args"), ("tool", "arguments"), ("name", "arguments"), ("function", "arguments")}
# Keys without meaning next to a name and arguments; other keys (approved, user, depth, …) are never obeyed.
BESIDE: Final = {"id", "call_id", "tool_call_id", "index", "thought", "thoughts", "reasoning"}
ENVELOPE: Final = {
    "target": ("tool",),
    "action": ("call",),
    "type": ("request", "function", "tool-use", "tool-call"),
}
WRAPPERS: Final = ("tool_calls", "tool_call", "function_call", "function")
KEYS: Final = {*NAMES, *ARGUMENTS, *BESIDE, *ENVELOPE, *WRAPPERS}  # of the outer object

# Possible names of tools, here or on another host: ``read-file``, ``uber.ride``, ``files/read``.
CALLED: Final = lazy_regex.compile(r"[a-z][a-z0-9-]*(?:[./][a-z][a-z0-9-]*)*\Z")
# Some models were trained on tools in these namespaces.
NAMESPACE: Final = "functions."
NAMESPACES: Final = (NAMESPACE, "function.", "default_api.", "default-api.", "tools.", "tool.", "api.")
_PLACEHOLDER = lazy_regex.compile(r"<([\w.-]+)>\Z")
# A template's mark, or the number of a call, after a name.
_MARKS = lazy_regex.compile(r"<\|.*|:\d+\Z", re.DOTALL)

NO_ARGUMENTS: Final = "{} was read as no arguments."
ENCODED: Final = "The arguments were encoded as JSON more than once."
MOST_ENCODED: Final = 3

_MEANT = lazy_regex.compile(
    r"""["'](?:tool|name|function|tool_name|action)["']\s*:\s*["']([^"'\n]{1,80})["']"""
)


def bare_name(name: str, known: Collection[str]) -> str:
    """A tool's name written by a model, without a namespace, a template's marks and the brackets of a
    placeholder, ``<read-file>``, unless a tool has the whole name."""
    if name in known or kebab(name) in known:
        return name
    bare = _PLACEHOLDER.sub(r"\1", _MARKS.sub("", name.strip()))
    space = next((one for one in NAMESPACES if bare.lower().startswith(one)), "")
    cut = bare[len(space) :]
    if space == NAMESPACE or kebab(cut) in known:
        return cut
    return bare if kebab(bare) in known else name


def is_meant(text: str, start: int, stop: int, known: Collection[str]) -> bool:
    """Whether ``text[start:stop]`` names a known tool: then it is meant as a call even if unreadable."""
    found = _MEANT.search(text, start, min(stop, start + 400))
    return found is not None and kebab(bare_name(found[1], known)) in known


def json_calls(value: Any, known: Collection[str], marked: bool = False) -> list[CallForm] | None:
    """The calls that a JSON value represents; None if it is data. ``marked``: it was in a place for calls,
    such as a ``<tool_call>``.

    Raises InvalidCallError if it is a call with a fault.
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
        # {"tool": "echo", "text": "hi"}: all keys except those of the envelope are arguments.
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


# The arguments of native calls, and arguments as JSON text in an object


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
    """The value of a text. Raises InvalidCallError."""
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
    """The arguments to send back to a server: as JSON, even if they are misspelt but have only one
    reading."""
    try:
        if isinstance(json.loads(text or "{}"), dict):
            return text
    except (ValueError, RecursionError):
        pass
    try:
        return json.dumps(read_arguments(text, cut=cut).values, ensure_ascii=False)
    except InvalidCallError:
        return text


# Converts values of a call to the declared types if a model wrote them in another type: ``"5"`` for 5.
#
# This is done once, when a model's reply is read, before a rule or a person sees the call. The check is done
# by the door. A value is converted only if exactly one member of the declared type accepts it, and printing
# the result gives the same text. Values of free types, secrets and destinations are never converted.


SHOWN = 80  # maximum of characters of a value in a sentence
MOST: Final = 10**18  # maximum of a whole number in a text
EXACT: Final = 2**53  # up to here each whole number has its own float
_WORDS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_KINDS: Final[dict[str, type]] = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "array": list,
}


def fitted(form: CallForm, tool: CognitiveTool) -> tuple[CallForm, tuple[str, ...]]:
    """The call with values of the declared types, and a sentence for each conversion."""
    params = {param.name: param for param in tool.params}
    if any(param.wire for param in tool.params):
        with contextlib.suppress(InvalidCallError):  # the door reports its fault
            form = replace(form, args=own_names(tool.name, tool.params, form.args))
    repairs: list[str] = []

    def fit(name: str, value: Any) -> Any:
        found = _readings(tool, params[name], value) if name in params else []
        if len(found) != 1:
            return value
        given, meant = (short(print_value(one), SHOWN) for one in (value, found[0]))
        repairs.append(f":{name} {given} was read as {meant}.")
        return found[0]

    args = {name: fit(kebab(name), value) for name, value in form.args.items()}
    free = [one.name for one in tool.params if not one.hidden and one.name not in map(kebab, args)]
    positional = (*map(fit, free, form.positional), *form.positional[len(free) :])
    return (replace(form, args=args, positional=positional) if repairs else form), tuple(repairs)


def _readings(tool: CognitiveTool, param: Param, value: Any) -> list[Any]:
    """The possible intended values in the parameter's type; empty if it accepts the value unchanged."""
    hint = param.type | None if param.default is None and isinstance(param.type, type) else param.type
    if _takes(hint, value) or param.secret or param.name in {one.name for one in destinations(tool)}:
        return []
    found = _members_read(hint, value)
    if len(found) != 1:
        return []
    if param.choices:
        return found if (type(found[0]), found[0]) in [(type(one), one) for one in param.choices] else []
    if isinstance(found[0], int | float):
        low, high = param.min, param.max
        return found if (low is None or found[0] >= low) and (high is None or found[0] <= high) else []
    return found


def _members_read(hint: Any, value: Any) -> list[Any]:
    """The different conversions of a value to the members of a type; empty for a type that accepts any value,
    or a program."""
    members = typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)
    found: dict[tuple[type, str], Any] = {}
    if Any in members or Code in members:
        return []
    for member in members:
        kind = _KINDS.get(member.schema.get("type")) if is_json(member) else member
        if kind is None:
            continue
        with suppress(ValueError, RecursionError):  # this member cannot convert it
            one = _converted(kind, value)
            if _fits_schema(member, one) if is_json(member) else _takes(member, one):
                found[type(one), print_value(one)] = one
    return list(found.values())


def _converted(hint: Any, value: Any) -> Any:
    """The value converted to one type. Raises ValueError."""
    kind, args, given = typing.get_origin(hint) or hint, typing.get_args(hint), value
    if isinstance(value, str):
        value = _decoded(value)
    if kind is list and isinstance(value, list):
        return [_fit(one, item) for one in args or (Any,) for item in value]
    if kind is dict and isinstance(value, Mapping):
        return {key: _fit((args or (Any, Any))[1], item) for key, item in value.items()}
    if value is not given:
        return value
    whole = isinstance(value, float) and value.is_integer() and abs(value) < EXACT and str(value) != "-0.0"
    if not whole or kind is not int:
        raise ValueError
    return int(value)


def _fits_schema(hint: Any, value: Any) -> bool:
    from pydantic_core import SchemaValidator

    return bool(SchemaValidator(hint.core).isinstance_python(value))


def _fit(hint: Any, item: Any) -> Any:
    if _takes(hint, item):
        return item
    (found,) = _members_read(hint, item)  # a ValueError unless there is exactly one
    return found


def _decoded(text: str) -> Any:
    """The data of a JSON text, if printing it gives the same text and no key is given twice. Raises
    ValueError."""

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(given)) < len(given):
            raise ValueError
        return dict(given)

    if text in _WORDS:
        return _WORDS[text]
    found = json.loads(text, object_pairs_hook=pairs)
    if isinstance(found, int | float):
        same = repr(found) == text and (isinstance(found, float) or abs(found) < MOST)
    else:
        same = isinstance(found, list | dict) and not too_deep(found)
    if not same:
        raise ValueError
    return found


def _takes(hint: Any, value: Any) -> bool:
    """Whether a type clearly accepts a value unchanged; a program is never converted."""
    if isinstance(value, Code) or hint in (Any, Code):
        return True
    if is_json(hint):
        kind = _KINDS.get(hint.schema.get("type"))
        return kind is None or not isinstance(value, str if kind is float else str | float)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        return any(_takes(one, value) for one in args)
    if origin is list:
        return isinstance(value, list) and all(_takes(args[0], one) for one in value)
    if origin is dict:
        return isinstance(value, Mapping) and all(_takes(args[1], one) for one in value.values())
    if hint in TEXTS:
        return isinstance(value, str)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is hint or hint not in (int, bool, type(None), list, dict)
