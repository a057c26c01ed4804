"""Formats texts, numbers and times for sentences that people read. Texts on which a person decides go through
``visible`` instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}


def count(number: int, noun: str) -> str:
    """``1 argument``, ``2 arguments``, ``no arguments``."""
    return number_of(number, noun) if number else f"no {noun}s"


def number_of(number: int, noun: str, plural: str = "") -> str:
    """``1 reply``, ``2 replies``, ``0 replies``; the default ``plural`` is the noun with an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``; another ``last`` word is ``or``. Empty for no words."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def short(text: str, chars: int) -> str:
    """The text, cut to at most ``chars`` characters, the last of which is then an ellipsis."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def printable(text: str, kept: str = "", instead: str = "\ufffd") -> str:
    """The text with ``instead`` for every unprintable character that is not in ``kept``."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else instead for char in text)


def file_name(path: str) -> str:
    r"""A path for a sentence: line feeds and other unprintable characters are escapes such as ``\n``."""
    if path.isprintable():
        return str(path)
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in path)


def escape(char: str) -> str:
    r"""A character as an escape that Lisp and Python read, such as ``\u202e``."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def excerpt(text: str, chars: int = 40) -> str:
    """The beginning of an untrusted text, short and printable."""
    return short(printable(text[: chars + 1]), chars)


def one_line(text: str, chars: int) -> str:
    """An untrusted text on one line: printable, without doubled blanks, and cut."""
    line = " ".join(text[: 20 * chars].split())  # there may be many blanks
    return short(printable(line, instead=""), chars)


def exact_time(seconds: float) -> str:
    """A time in the largest unit of which it is a multiple: ``3 days``, ``90 minutes``, ``1 seconds``."""
    for unit in ("day", "hour", "minute"):
        if seconds >= 2 * SECONDS[unit] and seconds % SECONDS[unit] == 0:
            return f"{seconds / SECONDS[unit]:g} {unit}s"
    return f"{seconds:g} seconds"


def rounded_time(seconds: float) -> str:
    """A time rounded up, so that waiting for it is enough: ``10 s``, ``12 minutes``, ``3 hours``."""
    if seconds < 2 * SECONDS["minute"]:
        return f"{seconds:g} s"
    unit = "minute" if seconds < 2 * SECONDS["hour"] else "hour"
    return f"{math.ceil(seconds / SECONDS[unit])} {unit}s"


def money(dollars: float) -> str:
    """An amount of US dollars, with as many digits as it needs: ``$5``, ``$0.25``, ``$0.000375``."""
    text = f"{dollars:.{4 if dollars >= 0.01 else 6}f}".rstrip("0").rstrip(".")
    whole, point, part = text.partition(".")
    return f"${whole}{point}{part.ljust(2, '0') if point else ''}"


def a_kind(value: object) -> str:
    """The kind of a value, without the value, which may be a secret: ``an int``, ``a function``, ``None``."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return "a class"
    if callable(value):
        return "a function"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
