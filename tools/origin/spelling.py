"""Normalizes a value, to make different spellings of it equal: blanks, case, quotes around it, a full stop
after it, and numbers. Values that only look alike stay different: homoglyphs, invisible characters,
full-width letters, percent-encoding and punycode."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

BLANKS: Final = " \t\n\r\f\v"  # any other blank, such as a no-break space, is part of the value
QUOTES: Final = (
    ('"', '"'),
    ("'", "'"),
    ("`", "`"),
    ("<", ">"),
    ("“", "”"),
    ("„", "“"),
    ("‘", "’"),
    ("«", "»"),
)
_ROWS = re.compile(r"[ \t\n\r\f\v]{2,}|[\t\n\r\f\v]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?")
# An account number in groups of four: an IBAN or a card number.
_GROUPED = re.compile(r"[a-z]{2}[0-9]{2}(?: [a-z0-9]{4}){2,7}(?: [a-z0-9]{1,3})?|[0-9]{4}(?:[ -][0-9]{4}){3}")
_PLAIN_DIGITS = 40  # a longer number is compared by its hexadecimal digits or its exponent


class _Folds(dict[int, int]):
    """Letters in lower case, if the upper case of the result is the same letter: the Kelvin sign does not
    become k. Results are cached."""

    def __missing__(self, code: int) -> int:
        char = chr(code)
        lower = char.lower()
        self[code] = ord(lower) if len(lower) == 1 and lower.upper() == char else code
        return self[code]


_FOLDS = _Folds()


def fold(text: str) -> str:
    """The text in lower case, with the same length."""
    return text.lower() if text.isascii() else text.translate(_FOLDS)


def spelling(value: object) -> str:
    """The normalized text of a value; ``50``, ``50.0`` and ``"50.00"`` give ``50``. Empty for a blank text,
    None, True and False, which have no origin."""
    if isinstance(value, str):
        return _of_text(value)
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return str(value) if abs(value) < 10**_PLAIN_DIGITS else hex(value)
    if isinstance(value, (float, Decimal)):
        return _of_number(value)
    return _of_text(str(value))


def number(text: str) -> str:
    """The normalized spelling of a number; ``""`` if the text is not a number. ``50.00`` gives ``50``. A text
    that begins with a zero, such as ``007``, is not a number."""
    if not _NUMBER.fullmatch(text):
        return ""
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def ungrouped(text: str) -> str:
    """An account number without the blanks between its groups; any other text unchanged."""
    return re.sub("[ -]", "", text) if _GROUPED.fullmatch(text) else text


def _of_text(text: str) -> str:
    text = _ROWS.sub(" ", fold(text)).strip(BLANKS)
    kept = _bare(text)
    return number(kept) or ungrouped(kept)


def _bare(text: str) -> str:
    """The text without full stops after it and quotes around it, unless nothing is left: ``..`` is a path."""
    for _ in range(4):
        inner = text.rstrip(".")
        if len(inner) > 2 and (inner[0], inner[-1]) in QUOTES:
            inner = inner[1:-1].strip(BLANKS)
        if not inner or inner == text:
            break
        text = inner
    return text


def _of_number(value: float | Decimal) -> str:
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(repr(value)) if isinstance(value, float) else value
    if exact and abs(exact.adjusted()) >= _PLAIN_DIGITS:
        return str(exact.normalize())
    return number(format(exact, "f")) or format(exact, "f")
