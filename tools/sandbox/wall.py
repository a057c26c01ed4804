"""The sandbox's side of the wall: Python source that checks values inside before they leave.

Knows the host's functions by name only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from quoth.tools.lisp.printer import HARD_KEYS, MAX_EASY_KEY, MAX_HARD_KEYS
from quoth.tools.program.compiler import ANSWER, BRANCH, FAILED, JOIN
from quoth.tools.sandbox.transfer import _NO_DATA, _TOO_LARGE, MAX_VALUE

# It uses its own names for what it needs: a program may give len another meaning, but cannot say __len.
_WALL = f"""
import datetime as __datetime, pathlib as __pathlib
__dict, __error, __isinstance, __len, __sum, __type = dict, ValueError, isinstance, len, sum, type
__list, __str, __zip, __BaseException, __TypeError = list, str, zip, BaseException, TypeError
__int, __EASY, __HASHED = int, (str, bytes, bool, type(None)), (set, frozenset, type({{}}.keys()))
__PLAIN = (str, int, float, bool, type(None), bytes)
__MANY = (list, tuple, set, frozenset, type({{}}.keys()), type({{}}.values()), type({{}}.items()))
__OTHER = (__datetime.date, __datetime.time, __datetime.timedelta, __pathlib.Path)
def __fits(*level):
    left, hard = {MAX_VALUE // 8}, {10 * MAX_HARD_KEYS**2}
    while level:
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
# What a session keeps has its wall in it; another wall is another version of what is kept.
WALL_VERSION = hashlib.sha256(_WALL.encode()).hexdigest()[:16]


def host_name(name: str) -> str:
    """The name of a host function inside the sandbox; the plain name is that of its guard."""
    return f"__wall_{name}"


def with_guards(python: str, functions: Iterable[str], *, begun: bool) -> str:
    """The program with a guard in front of each of these ``functions`` that it mentions, and with the wall
    itself unless the session has it already (``begun``)."""
    guards = [f"{name} = __guarded({host_name(name)})\n" for name in functions if name in python]
    return "".join(("" if begun else _WALL, *guards, python))


async def raise_wall(session: Any) -> None:
    """Have the wall stand in a new session."""
    names = map(host_name, (ANSWER, BRANCH, JOIN, FAILED))
    await session.feed_start(_WALL, inputs={name: host_function(name) for name in names})


@lru_cache(maxsize=1024)
def host_function(name: str) -> Any:
    """The host's function of this name, to hand to the sandbox before it asks; the host answers its calls."""

    def function(*_: Any, **__: Any) -> None: ...

    function.__name__ = name
    return function


def placeholders(names: Iterable[str]) -> dict[str, Any]:
    """Declares these names to the sandbox as functions; the host answers their calls."""
    return dict.fromkeys(names, _placeholder)


def _placeholder(*_: Any, **__: Any) -> None:
    """Tells the sandbox that a name is a function; its calls are answered by ``Sandbox.run``."""
