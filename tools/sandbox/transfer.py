"""The host's side of the sandbox wall: bounded copies of the values that leave the sandbox.

Knows plain data; it must not know what programs mean.
"""

from __future__ import annotations

import base64
import re
from pathlib import PurePath
from typing import Any

from quoth.tools.lisp.forms import CallForm, canonical
from quoth.tools.lisp.printer import MAX_DEPTH
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.program.compiler import ProgramError

MAX_VALUE = 2_000_000  # characters of a value that crosses the sandbox's wall, or of an argument
MAX_MESSAGE = 2_000

MAX_NAME = 200  # characters of the name of an argument


# What leaves the sandbox is looked at in there first, within the program's limits. The host rebuilds sets and
# keys, and Python hashes a tuple by all that it holds: sixty tuples, each twice in the next, would keep this
# process busy for ever, out of reach of any deadline; so would numbers that all have one hash (the squares of
# how many there may be are counted). Objects stay inside, for one may hold such a set.
_TOO_LARGE = f"The value is too large: written out it has more than {MAX_VALUE} characters."
_NO_DATA = "cannot leave the program; use texts, numbers, lists and dictionaries."


def _text(blob: bytes) -> str:
    return base64.b64encode(blob).decode()


def require_readable(form: CallForm) -> None:
    """Raise ProgramError for a call whose text cannot be read back, as an approval request needs it."""
    text = canonical(form)
    if len(text) > 20_000 or "0x" in text or re.search(r"\d{1000}", text):
        try:
            read_one(text)
        except ReadError as error:
            raise ProgramError(f"Its arguments are too large to be kept: {error}.") from None


def bounded(value: Any) -> Any:
    """A copy of a value from the sandbox: plain data of bounded size. Raises ProgramError otherwise.

    It counts while it copies: a few shared lists can expand to more items than any memory holds."""
    left = MAX_VALUE

    def copy(item: Any, depth: int) -> Any:
        nonlocal left
        left -= len(item) + 8 if isinstance(item, (str, bytes)) else 8
        if left < 0:
            raise ProgramError(_TOO_LARGE)
        if depth > MAX_DEPTH:
            raise ProgramError(f"The value is nested deeper than {MAX_DEPTH}.")
        if isinstance(item, dict):
            return {hashable(copy(key, depth + 1)): copy(inner, depth + 1) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [copy(inner, depth + 1) for inner in item]
        if isinstance(item, (set, frozenset)):
            return {hashable(copy(inner, depth + 1)) for inner in item}
        if item is None or isinstance(item, (str, bytes, bool, int, float)):
            return item
        if hasattr(item, "isoformat"):
            return item.isoformat()
        if isinstance(item, PurePath):
            return str(item)
        raise ProgramError(f"A {type(item).__name__} {_NO_DATA}")

    return copy(value, 0)


def hashable(item: Any) -> Any:
    """A copied key or member of a set, made hashable: lists become tuples, sets frozensets."""
    if isinstance(item, (list, set)):
        return (tuple if isinstance(item, list) else frozenset)(map(hashable, item))
    return item


def packed(value: Any) -> Any:
    """A program's value as JSON data; ``unpacked`` restores it."""
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
    if kind == "set":
        return {hashable(unpacked(item)) for item in inner}
    return {hashable(unpacked(key)): unpacked(item) for key, item in inner}
