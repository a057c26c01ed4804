"""The arguments of a native call: JSON text -> data, also where it is misspelt and has one reading only.

Runs nothing and must not know tools. What the values should be, values.py knows.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from quoth.neuro.reading.literals import NotRead, read_literal
from quoth.tools.errors import InvalidCallError
from quoth.tools.registry.parameters import is_plain

NO_ARGUMENTS = "{} was read as no arguments."
FENCED = "The arguments were read without the fence around them."
ENCODED = "The arguments were encoded as JSON more than once."
EXTRA = "{} was dropped behind the arguments."
MOST_ENCODED: Final = 3
FENCE: Final = "```"

_CLOSERS = re.compile(r"[\s}\])]*\Z").match


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
    bare = _unfenced(text)
    try:
        read = read_literal(bare, 0, tail=None if cut else ())
    except NotRead:
        raise unread from None
    rest = bare[read.end :]
    ended = not any("reply broke off" in repair for repair in read.repairs)
    whole = isinstance(read.value, dict | str) and is_plain(read.value) and _CLOSERS(rest)
    if not whole or not (ended or _is_flat(read.value)):
        raise unread
    repairs |= dict.fromkeys(([FENCED] if bare is not text else []) + list(read.repairs))
    if extra := "".join(rest.split()):
        repairs[EXTRA.format(extra[:20])] = None
    return read.value


def _unfenced(text: str) -> str:
    """The text in a fence that is all there is, else the text itself."""
    bare = text.strip()
    if not (bare.startswith(FENCE) and bare.endswith(FENCE) and "\n" in bare):
        return text
    return bare.removesuffix(FENCE).partition("\n")[2]


def _is_flat(value: Any) -> bool:
    """Whether a missing brace can have stood at the end only: in an object within another one, the second key
    may belong to the outer."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all((not isinstance(one, dict) or len(one) < 2) and _is_flat(one) for one in inner)


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
