"""Call forms: a tool call as data, and its three text formats.

``(grep-search :pattern "TODO" :path "src")`` is the canonical text; a plist and JSON are other spellings of
the same CallForm. tools/lisp/reader.py parses the text. Nothing is looked up or evaluated here."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import hy.models as m

from quoth.tools.errors import InvalidCallError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.printer import (
    MAX_DEPTH,
    Code,
    Value,
    _print_code,
    print_string,
    print_value,
    show,
    to_value,
)


@dataclass(frozen=True)
class CallForm:
    """A call as data: ``args`` by name (kebab-case), ``positional`` in order."""

    tool: str
    args: Mapping[str, Value] = field(default_factory=dict)
    positional: tuple[Value, ...] = ()

    def __str__(self) -> str:
        """The form as written: positional arguments, then named arguments in their original order."""
        names = list(self.args)
        return self.canonical if names == sorted(names) else _print(self, names)

    @cached_property
    def canonical(self) -> str:
        """The form with its named arguments in alphabetical order."""
        return _print(self, sorted(self.args))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of ``identity``, in hex. Receipts, approvals and call ids are bound to it."""
        return hashlib.sha256(self.identity.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def identity(self) -> str:
        """A text that is equal only for equal calls: the canonical text, or typed JSON if that is ambiguous
        (a program printed differently than it was written, or a name that a form cannot have)."""
        values = (*self.args.values(), *self.positional)
        if _HEAD(self.tool) and all(map(_KEYWORD, self.args)) and all(map(_stands_as_written, values)):
            return canonical(self)
        args = {name: _typed(value) for name, value in self.args.items()}
        return json.dumps([self.tool, args, [_typed(value) for value in self.positional]], sort_keys=True)


def kebab(name: str) -> str:
    """The canonical spelling of a tool or argument name: ``Grep_Search`` -> ``grep-search``."""
    return name.strip().lower().replace("_", "-")


# Printing


def canonical(form: CallForm) -> str:
    """The call form as text, with its named arguments in alphabetical order."""
    return form.canonical


def _print(form: CallForm, names: Sequence[str]) -> str:
    items = [print_value(value) for value in form.positional]
    if not all(map(_KEYWORD, names)) and not items:
        pairs = "  ".join(f"{print_string(name)} {print_value(form.args[name])}" for name in names)
        return f"(:tool {print_string(form.tool)} :args {{{pairs}}})"
    items += [f":{name} {print_value(form.args[name])}" for name in names]
    if _HEAD(form.tool):
        return "(" + " ".join([form.tool, *items]) + ")"
    return f"(:tool {print_string(form.tool)} :args ({' '.join(items)}))"


# Names that can be written as the head of a form and as a keyword. A call with any other name is printed as a
# plist.
_HEAD = re.compile(r"[^\W\d_][\w/+*!?<>=$%&@^|-]*(?:\.[^\W\d_][\w/+*!?<>=$%&@^|-]*)*\Z").match
_KEYWORD = re.compile(r"[\w/+*!?<>=$%&@^|-]+\Z").match


def _stands_as_written(value: Value, depth: int = 0) -> bool:
    """Whether every program in a value is printed as it was written."""
    if isinstance(value, Code):
        return _print_code(str(value)) == value == value.strip()
    inner = _items(value)
    return not inner or (depth <= MAX_DEPTH and all(_stands_as_written(item, depth + 1) for item in inner))


def _items(value: Value) -> Collection[Value]:
    """The items of a value; for a dictionary, its values without the keys."""
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def _typed(value: Value, depth: int = 0) -> Any:
    """A value as JSON in which a program differs from a text, and different keys stay different."""
    if isinstance(value, str):
        return {"code" if isinstance(value, Code) else "text": str(value)}
    if depth > MAX_DEPTH or not isinstance(value, (Mapping, list, tuple)):
        return {"value": print_value(value, depth)}
    inner = [_typed(item, depth + 1) for item in _items(value)]
    return {"keys": [_typed(key) for key in value], "values": inner} if isinstance(value, Mapping) else inner


def plist(form: CallForm) -> str:
    """The call as a plist, ``(:target … :tool "x" :args (…))``. Raises InvalidCallError for positional
    args."""
    args = " ".join(f":{name} {print_value(value)}" for name, value in form.args.items())
    if form.positional:
        raise InvalidCallError(f"{canonical(form)} has arguments without names; a plist needs all names.")
    return f"(:target :tool :action :call :tool {print_value(form.tool)} :args ({args}))"


def to_json(form: CallForm) -> dict[str, Any]:
    """The call as ``{"tool", "args"}``, plus ``positional`` if there are positional arguments."""
    data: dict[str, Any] = {"tool": form.tool, "args": dict(form.args)}
    if form.positional:
        data["positional"] = list(form.positional)
    return data


def too_deep(value: Value) -> bool:
    """Whether data is nested deeper than MAX_DEPTH. Does not recurse."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Value] = []
        for item in level:
            if isinstance(item, Mapping):
                inner.extend(item.values())
            elif isinstance(item, (list, tuple, set, frozenset)):
                inner.extend(item)
        if not inner:
            return False
        level = inner
    return True


# From models


def from_model(model: Any) -> CallForm:
    """The CallForm of a call form or plist, given as the reader's model. Raises InvalidCallError."""
    if not isinstance(model, m.Expression):
        raise InvalidCallError(f'A call is a form such as (echo :text "hi"); this is {show(model)}.')
    if not model:
        raise InvalidCallError('() is empty; a call is a form such as (echo :text "hi").')
    head = model[0]
    if isinstance(head, m.Keyword):
        return _from_plist(model)
    if (name := head_name(head)) is None:
        raise InvalidCallError(f"A call begins with the name of a tool; this begins with {show(head)}.")
    args, positional = _arguments(list(model)[1:], f"({name} …)")
    return CallForm(kebab(name), args, tuple(positional))


def head_name(head: Any) -> str | None:
    """The head of a form as text, for a name such as ``read-file`` or ``uber.ride``; otherwise None."""
    if isinstance(head, m.Symbol):
        return str(head)
    dotted = isinstance(head, m.Expression) and len(head) > 2 and head[0] == m.Symbol(".")
    names = list(head)[1:] if dotted else []
    if not names or names[0] == m.Symbol("None") or not all(isinstance(name, m.Symbol) for name in names):
        return None
    return ".".join(map(str, names))


def is_plist_call(model: Any) -> bool:
    """Whether a form is a plist with the key ``:tool``, in upper or lower case and at any position."""
    if not isinstance(model, m.Expression) or not model or not isinstance(model[0], m.Keyword):
        return False
    return any(isinstance(item, m.Keyword) and kebab(item.name) == "tool" for item in list(model)[::2])


def _from_plist(model: Any) -> CallForm:
    if len(model) % 2:
        raise InvalidCallError("A plist consists of pairs; this one has a key without a value.")
    pairs: dict[str, Any] = {}
    for key, value in zip(model[::2], model[1::2], strict=True):
        if not isinstance(key, m.Keyword):
            raise InvalidCallError(
                f"In a plist the first item of each pair must be a keyword, not {show(key)}."
            )
        if (name := kebab(key.name)) in pairs:
            raise InvalidCallError(f":{name} is given twice in the plist.")
        pairs[name] = value
    if "tool" not in pairs:
        raise InvalidCallError('A plist call names its tool: (:tool "echo" :args (:text "hi")).')
    # The envelope is fixed. Any other key in it (:approved, :user, :depth, …) is an error, not an argument or
    # an order.
    for name, wanted in (("target", "tool"), ("action", "call"), ("type", "request")):
        if name in pairs and kebab(str(_name_of(pairs[name]))) != wanted:
            raise InvalidCallError(f":{name} {show(pairs[name])} is not a tool call; write :{wanted}.")
    known = {"target", "action", "type", "tool", "args"}
    if strange := sorted(set(pairs) - known):
        raise InvalidCallError(
            f"A plist call has only :target :action :tool :args; :{strange[0]} is not allowed there."
        )
    tool = kebab(str(_name_of(pairs["tool"])))
    inner = pairs.get("args", m.Symbol("None"))
    if isinstance(inner, m.Symbol) and to_value(inner) is None:
        return CallForm(tool)
    if isinstance(inner, m.Expression) and len(inner) == 2 and inner[0] == m.Symbol("quote"):
        inner = inner[1]
    if isinstance(inner, m.Expression) and len(inner) == 1 and isinstance(inner[0], m.Expression):
        inner = inner[0]  # ((:x 1)): some models wrap their arguments once more
    if isinstance(inner, m.Dict):
        return CallForm(tool, _by_name(to_value(inner), ":args"))
    if not isinstance(inner, m.Expression):
        raise InvalidCallError(
            f":args must be the arguments in parentheses, (:name value …), not {show(inner)}."
        )
    args, positional = _arguments(list(inner), ":args")
    return CallForm(tool, args, tuple(positional))


def _arguments(items: Sequence[Any], where: str) -> tuple[dict[str, Value], list[Value]]:
    args: dict[str, Value] = {}
    positional: list[Value] = []
    index = 0
    while index < len(items):
        item = items[index]
        if not isinstance(item, m.Keyword):
            positional.append(to_value(item))
            index += 1
            continue
        if index + 1 >= len(items):
            raise InvalidCallError(f"In {where} the argument :{item.name} has no value.")
        name = kebab(item.name)
        if name in args:
            raise InvalidCallError(f"In {where} the argument :{name} is given twice.")
        args[name] = to_value(items[index + 1])
        index += 2
    return args, positional


def _by_name(data: Mapping[Any, Value], where: str) -> dict[str, Value]:
    """Arguments by canonical name; two spellings of one name are an error."""
    args: dict[str, Value] = {}
    for key, value in data.items():
        if (name := kebab(str(key))) in args:
            raise InvalidCallError(f"In {where} the argument :{name} is given twice.")
        args[name] = value
    return args


def _name_of(model: Any) -> str:
    if isinstance(model, m.Keyword):
        return str(model.name)
    if isinstance(model, (m.Symbol, m.String)):
        return str(model)
    raise InvalidCallError(f"A name is expected instead of {show(model)}.")


def halved(value: Any) -> bool:
    """Whether a text inside a value contains an unpaired surrogate: it cannot be written to a file or
    socket."""
    if isinstance(value, str):
        return not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, Mapping):
        return any(halved(key) or halved(item) for key, item in value.items())
    return isinstance(value, list) and any(halved(item) for item in value)


def from_json(data: Any) -> CallForm:
    """The CallForm of ``{"tool", "args"}`` or OpenAI's ``{"name", "arguments"}``. Raises InvalidCallError."""
    if not isinstance(data, Mapping):
        raise InvalidCallError('A call in JSON must be an object: {"tool": "echo", "args": {"text": "hi"}}.')
    tool = data.get("tool", data.get("name"))
    if not isinstance(tool, str):
        raise InvalidCallError('A call in JSON must name its tool: {"tool": "echo", "args": {…}}.')
    args = data.get("args", data.get("arguments", {}))
    try:
        args = json.loads(args or "{}") if isinstance(args, str) else args
        half = halved(tool) or halved(args)
    except ValueError as error:
        raise InvalidCallError(f"The arguments of {tool} are not JSON: {error}.") from None
    except RecursionError:
        raise InvalidCallError(f"The arguments of {tool} are nested too deeply.") from None
    if half:  # it could not be recorded
        raise InvalidCallError("A call contains an invalid character (an unpaired surrogate).")
    if not isinstance(args, Mapping):
        raise InvalidCallError(f"The arguments of {tool} must be an object with a name for each value.")
    positional = data.get("positional", ())
    if not isinstance(positional, Sequence) or isinstance(positional, str):
        raise InvalidCallError(f"The positional arguments of {tool} must be a list.")
    return CallForm(kebab(tool), _by_name(args, f"({tool} …)"), tuple(positional))
