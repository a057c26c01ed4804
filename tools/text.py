"""Small words about texts, numbers and times for sentences that people read; what decides goes through
``visible``.

Knows nothing else of quoth.
"""

from __future__ import annotations

import math

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}


def count(number: int, noun: str) -> str:
    """``1 argument``, ``2 arguments``, ``no arguments``."""
    return number_of(number, noun) if number else f"no {noun}s"


def number_of(number: int, noun: str, plural: str = "") -> str:
    """``1 reply``, ``2 replies``, ``0 replies``; without ``plural`` an s makes it."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def short(text: str, chars: int) -> str:
    """The text if it has no more than ``chars`` characters, or as many of it with an ellipsis as the last."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def printable(text: str, kept: str = "", instead: str = "\ufffd") -> str:
    """``text`` with no character that could steer a terminal but those that are ``kept``."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else instead for char in text)


def escape(char: str) -> str:
    r"""A character as an escape that Lisp and Python read, such as ``\u202e``."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def excerpt(text: str, chars: int = 40) -> str:
    """The beginning of a text that somebody else wrote, short and printable."""
    return short(printable(text[: chars + 1]), chars)


def exact_time(seconds: float) -> str:
    """``3 days``, ``90 minutes``, ``1 seconds``: in the largest unit that it is a multiple of."""
    for unit in ("day", "hour", "minute"):
        if seconds >= 2 * SECONDS[unit] and seconds % SECONDS[unit] == 0:
            return f"{seconds / SECONDS[unit]:g} {unit}s"
    return f"{seconds:g} seconds"


def rounded_time(seconds: float) -> str:
    """``10 s``, ``12 minutes``, ``3 hours``: rounded up, so that whoever waits so long has waited enough."""
    if seconds < 2 * SECONDS["minute"]:
        return f"{seconds:g} s"
    unit = "minute" if seconds < 2 * SECONDS["hour"] else "hour"
    return f"{math.ceil(seconds / SECONDS[unit])} {unit}s"
