"""The core of a dry run's helpers in the sandbox: functions that create and test unknown values.

This file is read as source (tools/dryrun/instrument.py) and runs in the sandbox, with a prefix on each of its
names. The host answers the two functions at its end. An unknown value is a text with a mark in it. So it can
leave the sandbox, be an item of any list, and stay part of a text that it is joined to. The mark contains a
word that only this run knows, so data cannot imitate it. The result of an operation on an unknown is unknown.
A list, dictionary or set that contains the mark "*" may contain any items in any number; a collection changed
in a loop over unknown items becomes one of these."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

BEGIN, END = "\ue000", "\ue001"
WORD = "@@"  # replaced by the word of this run
MARK = BEGIN + WORD
STATE: dict[str, Any] = {"unknowns": 0, "loops": 0, "maybe": False, "forks": 0}
KNOWN: dict[str, bool] = {}  # decisions about unknowns on this path
GO: list[Any] = []  # the result that means: call the method
BUILTIN, CLASS, MODULE = type(len), type(int), type(math)
TYPES = {str: 1, int: 1, float: 1, bool: 1, list: 1, dict: 1, set: 1, tuple: 1, bytes: 1, frozenset: 1}
CHANGES = (
    "append insert extend update add pop popitem clear remove discard setdefault sort reverse".split()  # noqa: SIM905
)


# ---- unknown values


def unknown(x: Any) -> bool:
    return isinstance(x, str) and MARK in x


def deep(x: Any, depth: int = 0) -> bool:
    """Whether any part of a value is unknown."""
    if isinstance(x, str):
        return MARK in x
    if isinstance(x, dict):
        x = [*x.keys(), *x.values()]
    elif isinstance(x, Exception):
        x = x.args
    if depth > 20 or not isinstance(x, (list, tuple, set, frozenset)):
        return False
    return any(deep(item, depth + 1) for item in x)


def many(x: Any) -> bool:
    """Whether a collection may have any number of items."""
    if isinstance(x, (list, tuple)):
        return any(isinstance(item, str) and item.startswith(MARK + "*") for item in x)
    return isinstance(x, (dict, set, frozenset)) and any(deep(item) for item in x)


def vague(x: Any) -> bool:
    return unknown(x) or many(x)


def show(x: Any) -> str:
    """A value as short text, for labels of unknowns and for notes."""
    if isinstance(x, str):
        if MARK in x:
            return show_unknown(x)
        short = x if len(x) < 40 else x[:39] + "…"
        return '"' + short.replace("\\", "\\\\").replace('"', "'").replace("\n", "\\n") + '"'
    if x is None or isinstance(x, (bool, int, float)):
        return str(x)[:40]
    if isinstance(x, (list, tuple)):
        if many(x):
            return "a list"
        return "[" + " ".join([show(item) for item in x[:3]]) + (" …]" if len(x) > 3 else "]")
    if isinstance(x, dict):
        return "{…}" if x else "{}"
    return type(x).__name__ if isinstance(x, Exception) else "…"


def show_unknown(x: str) -> str:
    parts = x.split(MARK)
    shown = parts[0]
    only = not shown
    for part in parts[1:]:
        inner = part[part.index(":") + 1 : part.index(END)]
        after = part[part.index(END) + 1 :]
        only = only and not after and len(parts) == 2
        shown = shown + (inner if only else "#<" + inner + ">") + after
    return shown if only else '"' + shown + '"'


def hole(text: str, flag: str = "-") -> str:
    """A new unknown, labelled ``text``; ``flag`` is "*" for any number of items."""
    STATE["unknowns"] += 1
    text = text.replace("\ue000", "").replace("\ue001", "")
    if len(text) > 80:
        text = text[:79] + "…"
    return MARK + flag + str(STATE["unknowns"]) + ":" + text + END


def holes(texts: list[str]) -> list[str]:
    return [hole(text) for text in texts]


def form(name: str, items: Iterable[Any]) -> str:
    """A new unknown: the result of calling ``name`` on these items."""
    return hole("(" + " ".join([name] + [show(item) for item in items]) + ")")


def anything() -> str:
    return hole("anything", "*")


def blur(x: Any, depth: int = 0) -> None:
    """Make a collection, and all collections in it, contain an unknown number of unknown items."""
    if depth > 10 or not isinstance(x, (list, dict, set)):
        return
    for item in list(x.values()) if isinstance(x, dict) else list(x):
        blur(item, depth + 1)
    x.clear()
    if isinstance(x, list):
        x.append(anything())
    elif isinstance(x, set):
        x.add(anything())
    else:
        x[anything()] = anything()


def stop(said: str) -> None:
    """End this path, because it cannot be followed further."""
    note("cut", said)


# ---- decisions


def pick(kind: str, text: str, labels: list[str]) -> int:
    STATE["forks"] += 1
    return choose(kind, text, labels)


def sure(x: Any) -> bool | None:
    """Whether a value is true; None if that is unknown."""
    if not STATE["unknowns"]:
        return bool(x)
    if isinstance(x, str) and MARK in x:
        known = any(part and not part.endswith(END) for part in x.split(MARK))
        return True if known else KNOWN.get(x)
    return None if many(x) else bool(x)


def truth(x: Any) -> bool:
    found = sure(x)
    if found is None:
        found = pick("if", show(x), ["yes", "no"]) == 0
        if isinstance(x, str):
            KNOWN[x] = found
    return found


def negated(x: Any) -> Any:
    found = sure(x)
    return form("not", [x]) if found is None else not found


def assumed(x: Any) -> bool:
    return sure(x) is not False


# ---- answered by the host


def choose(kind: str, text: str, labels: list[str]) -> int:
    """The number of the way that this path takes. The host takes the other ways later."""
    raise NotImplementedError


def note(kind: str, text: str) -> None:
    """Tell the host that a loop begins or ends, or that the path cannot be followed."""
    raise NotImplementedError
