"""The wall of the sandbox: Python source that checks values inside before they leave, bounded copies of the
values on the host's side, and messages for the errors that end a program."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath
from textwrap import indent
from typing import Any

import hy
import hy.models as m

from quoth.tools.errors import ToolFailure
from quoth.tools.lisp.forms import CallForm, canonical
from quoth.tools.lisp.printer import HARD_KEYS, MAX_DEPTH, MAX_EASY_KEY, MAX_HARD_KEYS, Code, FormData, show
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.lisp.syntax import CONSTANTS
from quoth.tools.program import explain as teach
from quoth.tools.program.compiler import ANSWER, BRANCH, FAILED, JOIN, TOO_DEEP, ProgramError
from quoth.tools.program.quoting import FORM, FSTRING, KEYWORD, KINDS, MODELS, SYMBOL
from quoth.tools.registry.values import plain
from quoth.tools.text import short

MAX_VALUE = 2_000_000  # characters of a value that leaves or enters the sandbox, or of an argument
MAX_MESSAGE = 2_000

MAX_NAME = 200  # characters of the name of an argument


# Values that leave the sandbox are checked inside first, within the program's limits. The host rebuilds sets
# and keys, and Python hashes a tuple by all its items: sixty tuples, each twice in the next, would keep this
# process busy for ever, and no deadline could stop it. The same is true of numbers with equal hashes, so the
# squares of their counts are limited. Objects stay inside, because they may contain such a set.
_TOO_LARGE = f"The value is too large: as text it has more than {MAX_VALUE} characters."
_NO_DATA = "cannot leave the program; use texts, numbers, lists and dictionaries."

_TOO_DEEP = f"The value is nested deeper than {MAX_DEPTH}."
MAX_FORM_DEPTH = 90  # nested forms; Monty's recursion limit is 200 levels

# It uses its own names for builtins: a program may redefine len, but cannot write __len.
_WALL = f"""
import datetime as __datetime, pathlib as __pathlib
__dict, __error, __isinstance, __len, __sum, __type = dict, ValueError, isinstance, len, sum, type
__list, __str, __zip, __BaseException, __TypeError = list, str, zip, BaseException, TypeError
__int, __EASY, __HASHED = int, (str, bytes, bool, type(None)), (set, frozenset, type({{}}.keys()))
__PLAIN = (str, int, float, bool, type(None), bytes)
__MANY = (list, tuple, set, frozenset, type({{}}.keys()), type({{}}.values()), type({{}}.items()))
__OTHER = (__datetime.date, __datetime.time, __datetime.timedelta, __pathlib.Path)
__Form = __Sym = __Key = None
def __fits(*level):
    left, hard, deep = {MAX_VALUE // 8}, {10 * MAX_HARD_KEYS**2}, {2 * MAX_FORM_DEPTH}
    while level:
        deep -= 1  # a form and its items are two levels
        if deep < 0:
            raise __error("{_TOO_DEEP}")
        level = [value for value in level if __type(value) not in __PLAIN]
        many = [value for value in level if __type(value) in __MANY]
        left -= __sum([__len(items) for items in many])
        if left < 0:
            raise __error("{_TOO_LARGE}")
        for keys in [items for items in many if __type(items) in __HASHED]:
            keys = [key for key in keys if __type(key) not in __EASY]
            easy = [key for key in keys if __type(key) == __int and -{MAX_EASY_KEY} < key < {MAX_EASY_KEY}]
            number = __len(keys) - __len(easy)
            hard -= number**2 if number <= {MAX_HARD_KEYS} else hard + 1
        if hard < 0:
            raise __error("{HARD_KEYS}")
        odd = [] if __len(many) == __len(level) else [value for value in level if __type(value) not in __MANY]
        level = [item for items in many for item in items]
        for value in odd:
            if __isinstance(value, __dict):
                level += [value.keys(), value.values()]
            elif __type(value) == __Form:
                level += [value.kind, value.items]
            elif __type(value) == __Sym or __type(value) == __Key:
                level.append(value.name)
            elif not __isinstance(value, __OTHER):
                raise __error(f"A {{__type(value).__name__}} {_NO_DATA}")
def __guarded(call):
    def tool(*args, **kwargs):
        __fits(args, kwargs)
        return call(*args, **kwargs)
    return tool
{ANSWER}, {BRANCH}, {JOIN}, {FAILED} = [
    __guarded(call) for call in (__wall_{ANSWER}, __wall_{BRANCH}, __wall_{JOIN}, __wall_{FAILED})
]
"""
# Forms as values. Functions that walk a form keep their own stack, because Monty allows few levels of such
# methods.
_CLASSES = """
class __Sym:
    def __init__(self, name):
        self.name = name
    def __eq__(self, other):
        return __type(other) == __type(self) and self.name == other.name
    def __hash__(self):
        return __hash(self.name)
    def __repr__(self):
        return self.name
class __Key:
    def __init__(self, name):
        self.name = name
    def __eq__(self, other):
        return __type(other) == __type(self) and self.name == other.name
    def __hash__(self):
        return __hash(self.name)
    def __repr__(self):
        return ":" + self.name
class __Form:
    def __init__(self, kind, items):
        self.kind = kind
        self.items = items
    def __getitem__(self, place):
        found = self.items[place]
        return __Form(self.kind, found) if __type(place) == __slice else found
    def __iter__(self):
        return __iter(self.items)
    def __contains__(self, item):
        return item in self.items
    def __add__(self, other):
        return __Form(self.kind, (*self.items, *__parts(other)))
    def __radd__(self, other):
        return __Form(self.kind, (*__parts(other), *self.items))
    def __hash__(self):
        return __hash((self.kind, __len(self.items)))
    def __eq__(self, other):
        pending = [(self, other)]
        while pending:
            one, two = pending.pop()
            if __type(one) == __Form and __type(two) == __Form:
                if one.kind != two.kind or __len(one.items) != __len(two.items):
                    return False
                pending += __zip(one.items, two.items)
            elif __type(one) == __Form or __type(two) == __Form or one != two:
                return False
        return True
    def __repr__(self):
        written, pending = [], [self]
        while pending:
            item = pending.pop()
            if __type(item) == __tuple:
                written.append(item[0])
            elif __type(item) == __Form and item.kind == 'f"':
                written.append(item.items[0])
            elif __type(item) == __Form:
                items, before, after = item.items, item.kind, __CLOSING[item.kind]
                sugar = ""
                if item.kind == "(" and __len(items) == 2 and __type(items[0]) == __Sym:
                    sugar = __SUGAR.get(items[0].name, "")
                if sugar:
                    items, before, after = items[1:], sugar, ""
                elif item.kind == "(" and __len(items) > 2 and items[0] == __Sym("."):
                    if __all([__type(part) == __Sym for part in items]):
                        names = [part.name for part in items[1:]]
                        names[0] = "" if names[0] == "None" else names[0]
                        written.append(".".join(names))
                        continue
                written.append(before)
                pending.append((after,))
                for place in __range(__len(items) - 1, -1, -1):
                    pending.append(items[place])
                    if place:
                        pending.append((" ",))
            elif __type(item) == __str:
                written.append(__json.dumps(item, ensure_ascii=False))
            elif __type(item) == __PLAIN[2]:
                text = __repr(item)
                written.append({"inf": "Inf", "-inf": "-Inf", "nan": "NaN"}.get(text, text))
            elif __type(item) == __PLAIN[-1]:
                text = __repr(item)
                double = text[1] == '"'
                written.append(text if double else 'b"' + text[2:-1].replace('"', '\\\\"') + '"')
            else:
                written.append(__repr(item))
        return "".join(written)
import json as __json
__hash, __iter, __slice, __tuple, __all, __range, __repr = hash, iter, slice, tuple, all, range, repr
__reversed, __set = reversed, set
__CLOSING = {"(": ")", "[": "]", "{": "}", "#{": "}", "#(": ")"}
__SUGAR = {"quote": "'", "quasiquote": "`", "unquote": "~", "unquote-splice": "~@",
    "unpack-iterable": "#* ", "unpack-mapping": "#** "}
def __part(value):
    kind = __type(value)
    if kind in (__Form, __Sym, __Key, *__PLAIN):
        return value
    if kind in (__list, __tuple, __set):
        brackets = "[" if kind == __list else "#(" if kind == __tuple else "#{"
        return __Form(brackets, __tuple([__part(item) for item in value]))
    if kind == __dict:
        return __Form("{", __tuple([__part(part) for item in value.items() for part in item]))
    raise __TypeError(f"A {kind.__name__} cannot be part of a form; unquote forms, texts, numbers or lists")
def __parts(values):
    return () if values is None else [__part(value) for value in values]
def __form_len(value):
    return __len(value.items if __type(value) == __Form else value)
def __form_true(value):
    return value.items if __type(value) == __Form else value
def __form_not(value):
    return not __form_true(value)
def __form_reversed(value):
    return __reversed(value.items if __type(value) == __Form else value)
def __taken(value):
    kind = __type(value)
    if kind == __list:
        return [__taken(item) for item in value]
    if kind == __dict:
        return {__taken(key): __taken(item) for key, item in value.items()}
    if kind == __set:
        return {__taken(item) for item in value}
    if kind != __tuple:
        return value
    if __len(value) == 3 and value[0] == b"form":
        items = __tuple([__taken(item) for item in value[2]])
        named = {"'": __Sym, ":": __Key}.get(value[1])
        return named(*items) if named else __Form(value[1], items)
    return __tuple([__taken(item) for item in value])
def __taking(call):
    return lambda *args, **kwargs: __taken(call(*args, **kwargs))
"""
# Only programs that quote get these classes, to save time in the others.
_FORMS = "if __Form is None:\n" + indent(_CLASSES, "    ") + f"    {BRANCH} = __taking({BRANCH})\n"
FORMS_MARK = b"__form_true"  # one of its names; the state of a session with these classes contains it
# The saved state of a session contains its wall, so another wall is another version of the state.
WALL_VERSION = hashlib.sha256(f"{_WALL}{_FORMS}".encode()).hexdigest()[:16]


def host_name(name: str) -> str:
    """The name of a host function inside the sandbox. The plain name belongs to its guard."""
    return f"__wall_{name}"


def with_guards(python: str, functions: Iterable[str], *, begun: bool, forms: bool = False) -> str:
    """The program with a guard for each of these ``functions`` that it mentions, with the wall unless the
    session has it already (``begun``), and with ``forms`` as values if it uses them."""
    guarded = "__taking(__guarded(%s))" if forms else "__guarded(%s)"
    guards = [f"{name} = {guarded % host_name(name)}\n" for name in functions if name in python]
    return "".join(("" if begun else _WALL, _FORMS if forms else "", *guards, python))


async def raise_wall(session: Any) -> None:
    """Define the wall in a new session."""
    names = map(host_name, (ANSWER, BRANCH, JOIN, FAILED))
    await session.feed_start(_WALL, inputs={name: host_function(name) for name in names})


@lru_cache(maxsize=1024)
def host_function(name: str) -> Any:
    """The host function of this name, passed to the sandbox before it looks it up. The host answers its
    calls."""

    def function(*_: Any, **__: Any) -> None: ...

    function.__name__ = name
    return function


def placeholders(names: Iterable[str]) -> dict[str, Any]:
    """Declare these names to the sandbox as functions. The host answers their calls."""
    return dict.fromkeys(names, _placeholder)


def _placeholder(*_: Any, **__: Any) -> None:
    """Declares a name as a function to the sandbox. ``Sandbox.run`` answers its calls."""


def _text(blob: bytes) -> str:
    return base64.b64encode(blob).decode()


def require_readable(form: CallForm) -> None:
    """Raise ProgramError if the text of a call cannot be read back; an approval request needs that."""
    text = canonical(form)
    if len(text) > 20_000 or "0x" in text or re.search(r"\d{1000}", text):
        try:
            read_one(text)
        except ReadError as error:
            raise ProgramError(f"Its arguments are too large to be kept: {error}.") from None


def given(step: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call from the sandbox. Raises ProgramError if the host cannot hash them."""
    try:
        return step.args, step.kwargs
    except TypeError:
        raise ProgramError("A form cannot leave the program in a set or as a key; use texts.") from None


def bounded(value: Any) -> Any:
    """A copy of a value from the sandbox: plain data of bounded size. Raises ProgramError otherwise.

    It counts while it copies, because a few shared lists can expand to more items than fit in memory."""
    left = MAX_VALUE

    def copy(item: Any, depth: int) -> Any:
        nonlocal left
        left -= len(item) + 8 if isinstance(item, (str, bytes)) else 8
        if left < 0:
            raise ProgramError(_TOO_LARGE)
        if depth > MAX_DEPTH:
            raise ProgramError(_TOO_DEEP)
        if isinstance(item, dict):
            return {hashable(copy(key, depth + 1)): copy(inner, depth + 1) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [copy(inner, depth + 1) for inner in item]
        if isinstance(item, (set, frozenset)):
            return {hashable(copy(inner, depth + 1)) for inner in item}
        if item is None or isinstance(item, (str, bytes, bool, int, float)):
            return item
        if type(item).__name__ == "MontyClassProxy" and item.name in FORM_TYPES:
            return form_of(item, depth)
        if hasattr(item, "isoformat"):
            return item.isoformat()
        if isinstance(item, PurePath):
            return str(item)
        raise ProgramError(f"A {type(item).__name__} {_NO_DATA}")

    def form_of(item: Any, depth: int) -> FormValue:
        given = item.attributes
        items = given.get("items") if item.name == FORM else (given.get("name"),)
        kind = given.get("kind") if item.name == FORM else FORM_TYPES[item.name]
        named = item.name == FORM or isinstance(given.get("name"), str)
        if not named or not isinstance(items, tuple) or not isinstance(kind, str):
            raise ProgramError(f"A {item.name} {_NO_DATA}")
        made = FormValue(kind, tuple(hashable(copy(inner, depth + 1)) for inner in items))
        return made if depth else made.readable()

    return copy(value, 0)


FORM_TYPES = {FORM: "", SYMBOL: "'", KEYWORD: ":"}
FORM_NAMES = {
    FORM: "form",
    SYMBOL: "symbol",
    KEYWORD: "keyword",
}  # names of these types in the list of a session's values


@dataclass(frozen=True)
class FormValue:
    """A form of a program, outside the sandbox. ``kind`` is its opening bracket, or ``'`` for a symbol and
    ``:`` for a keyword, whose only item is the name."""

    kind: str
    items: tuple[Any, ...]

    def model(self) -> Any:
        """The form as a Hy model; ``readable`` checks its names. Raises ProgramError for a value that a form
        cannot contain."""
        try:
            if self.kind in ("'", ":"):
                return (m.Symbol if self.kind == "'" else m.Keyword)(*self.items, from_parser=True)
            if self.kind == FSTRING:
                return read_one(*self.items)
            return MODELS[self.kind](
                item.model() if isinstance(item, FormValue) else hy.as_model(item) for item in self.items
            )
        except (KeyError, ValueError, TypeError, SyntaxError):
            raise ProgramError(f"A {self.kind} form contains a value that cannot be written.") from None

    def readable(self) -> FormValue:
        """This form. Raises ProgramError unless its text reads back as the same form."""
        try:
            if read_one(show(model := self.model())) == model:
                return self
        except ReadError as error:
            raise ProgramError(f"A form cannot be written: {error}.") from None
        raise ProgramError("A form contains a name that cannot be written.")

    def __str__(self) -> str:
        return show(self.model())

    def form_data(self) -> FormData:
        """The form as the value of a call."""
        return FormData(str(self.readable()))

    def data(self) -> Any:
        """The form as plain data: a name becomes its text, a form becomes a list."""
        if self.kind in ("'", ":"):
            return self.items[0]
        items = [item.data() if isinstance(item, FormValue) else item for item in self.items]
        if items[:1] == ["."] and (text := str(self))[0] != "(":  # a dotted name
            return text
        if self.kind == "{":
            return {str(key): item for key, item in zip(items[::2], items[1::2], strict=False)}
        return items


def argument(value: Any) -> Any:
    """A bounded value as an argument of a call: a form becomes a program, or data for a tool that takes
    data."""
    if isinstance(value, FormValue):
        text = str(value)
        code = Code(f"'{text}" if text.startswith("'") else text)  # in a call, '(f) is the program (f)
        code.data = plain(value.data())
        return code
    return plain(_without_forms(value))


def _without_forms(value: Any) -> Any:
    if isinstance(value, FormValue):
        return value.data()
    if isinstance(value, dict):
        return {_without_forms(key): _without_forms(item) for key, item in value.items()}
    return [_without_forms(item) for item in value] if isinstance(value, list) else value


def hashable(item: Any) -> Any:
    """A copied key or set member as a hashable value: lists become tuples, sets become frozensets."""
    if isinstance(item, (list, set)):
        return (tuple if isinstance(item, list) else frozenset)(map(hashable, item))
    return item


def packed(value: Any) -> Any:
    """A program's value as JSON data; ``unpacked`` restores it. A form becomes data for the wall's
    ``__taken``."""
    if isinstance(value, FormValue):
        return {"form": [value.kind, packed(value.items)]}
    if isinstance(value, dict):
        return {"dict": [[packed(key), packed(item)] for key, item in value.items()]}
    if isinstance(value, (set, frozenset)):
        return {"set": [packed(item) for item in value]}
    if isinstance(value, bytes):
        return {"bytes": _text(value)}
    if isinstance(value, int) and value.bit_length() > 10_000:  # more than Python prints
        return {"int": hex(value)}
    return [packed(item) for item in value] if isinstance(value, (list, tuple)) else value


def unpacked(data: Any) -> Any:
    if isinstance(data, list):
        return [unpacked(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, inner),) = data.items()
    if kind == "bytes":
        return base64.b64decode(inner)
    if kind == "int":
        return int(inner, 16)
    if kind == "form":
        return b"form", inner[0], tuple(hashable(unpacked(item)) for item in inner[1])
    if kind == "set":
        return {hashable(unpacked(item)) for item in inner}
    return {hashable(unpacked(key)): unpacked(item) for key, item in inner}


def entering(value: Any, forms: bool) -> Any:
    """The value of a call, for a program: forms as the wall's ``__taken`` reads them, or as in JSON."""
    if isinstance(value, FormData):
        return unpacked(packed(form_value(read_one(str(value))))) if forms else dict(value)
    if isinstance(value, dict):
        return {key: entering(item, forms) for key, item in value.items()}
    return [entering(item, forms) for item in value] if isinstance(value, list) else value


_PLAIN_KINDS: tuple[Any, ...] = (str, int, float, bytes)


def form_value(model: Any) -> Any:
    """A Hy model as a value of a program: a FormValue, or plain data."""
    if isinstance(model, m.Symbol):
        name = CONSTANTS.get(str(model))
        return ast.literal_eval(name) if name else FormValue("'", (str(model),))
    if isinstance(model, m.Keyword):
        return FormValue(":", (str(model.name),))
    if type(model) in KINDS:
        return FormValue(KINDS[type(model)], tuple(map(form_value, model)))
    if isinstance(model, m.FString):
        return FormValue(FSTRING, (show(model),))
    return next(kind(model) for kind in _PLAIN_KINDS if isinstance(model, kind))


def runtime_error(error: Any, failures: list[ToolFailure], tools: Iterable[str], text: str) -> Exception:
    """The ToolFailure that the program did not catch, or a ProgramError that explains ``error``."""
    display = getattr(error, "display", None)
    said = str(display("type-msg")) if callable(display) else str(error)
    for failure in reversed(failures):
        if failure.message in said:
            return failure
    said = short(said, MAX_MESSAGE)
    kind, _, message = said.strip().partition(": ")
    lesson = teach.failed(kind, message.replace(host_name(""), ""), text, tools)
    if lesson is not None:
        return ProgramError(lesson)
    if "cannot suspend in this synchronous context" in message:
        return ProgramError(
            "A tool cannot be passed to map, filter or sorted. Write (lfor x xs (the-tool x))."
        )
    if kind == "TimeoutError" and "limit exceeded" in message:
        return ProgramError("The program was stopped: it exceeded its time limit.")
    if kind == "MemoryError" and ("limit exceeded" in message or "memory limit" in message):
        return ProgramError("The program was stopped: it exceeded its limit of memory or output.")
    if kind == "ValueError" and message.endswith((_TOO_LARGE, _TOO_DEEP, HARD_KEYS, _NO_DATA)):
        return ProgramError(message)
    if "suspension limit" in message:
        return ProgramError("The program was stopped: it exceeded its limit of calls.")
    if kind == "SyntaxError" and "too deeply nested" in message:
        return ProgramError(TOO_DEEP)
    if type(error).__name__ == "MontyCrashedError":
        return ProgramError("The sandbox stopped the program: it exceeded its limit of time or memory.")
    return ProgramError(f"The program failed: {said.strip()}")
