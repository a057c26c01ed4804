"""The reader's lexical tables: token patterns, brackets and prefixes, and escapes.

With re.ASCII, ``\\s`` is exactly Hy's white space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from json import JSONDecoder
from typing import Any, Final

from hy.models import Dict, Expression, FComponent, FString, List, Object, Set, Tuple

SPACE = " \t\n\r\f\v"
_NAME = r"""[^\s()\[\]{};"'`~]"""  # a character of a symbol or keyword
_PLAIN = r"[\w!#$%&*+,\-/:<=>?@\\^|]"  # the characters that need no further check
_STOP = r"""(?=[\s()\[\]{};'`~]|\Z)"""  # not '"': it would make the atom a string prefix

SYMBOL, KEYWORD, STRING, OPEN, CLOSE, INTEGER, OTHER = range(1, 8)
# Each group is a whole token. OTHER handles symbols that begin like a number (sign, dot, Inf, NaN, j).
TOKEN = re.compile(
    rf"""(?:\s++|;[^\n]*+)*+(?:
      ((?![jJIN])[A-Za-z_*/<>=!?$%&@^|]{_PLAIN}*+{_STOP})
    | (:{_PLAIN}*+(?!{_NAME}))
    | (")
    | (\#?[({{]|\[)
    | ([)\]}}])
    | (-?[1-9][0-9]*+{_STOP}|0{_STOP})
    | ([^\s;])
    )""",
    re.ASCII | re.VERBOSE,
).match
BLANK = re.compile(r"\s*+", re.ASCII).match
ATOM = re.compile(f"{_NAME}*+", re.ASCII).match
# \d without re.ASCII, because Python reads the digits of any script.
NUMBERISH = re.compile(r"[+\-._,]*(?:\d|Inf|NaN|[jJ][_,]*\Z)").match
FIELD_TAIL = re.compile(r"\s*+(?:!([rsa]))?+\s*+([:}]?)", re.ASCII).match
BRACKET = re.compile(r"#\[([^\[\]\n\r]*+)\[\r?\n?").match
JSON = JSONDecoder(strict=False).raw_decode
SURROGATE = re.compile("[\ud800-\udfff]").search

# Python's escapes, without the ones for unpaired surrogates and octals above \377 (Python warns of these).
_BYTE_ESCAPE = r"""[\n\r\\'"abfnrtv]|[0-3][0-7]{2}|[0-7]{1,2}(?![0-7])|x[0-9a-fA-F]{2}"""
_ESCAPE = (
    _BYTE_ESCAPE + r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|N\{[-A-Za-z0-9 ]+\}"
    r"|U(?!0000[dD][89a-fA-F])00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}"
)
TEXT = re.compile(rf'(?:[^"\\]++|\\(?:{_ESCAPE}))*+').match
BYTES = re.compile(rf'(?:[^"\\]++|\\(?:{_BYTE_ESCAPE}))*+').match
RAW = re.compile(r'(?:[^"\\]++|\\.?)*+', re.DOTALL).match
# Hy reads the N{ of \\N{ as a name although its backslash is escaped. It is refused, because the meaning
# would differ.
F_TEXT = re.compile(rf'(?:[^"\\{{}}]++|\{{\{{|\}}\}}|\\(?!\\N\{{)(?:{_ESCAPE}))*+').match
SPEC_TEXT = re.compile(r'[^"\\{}]*+').match
BODIES: Final = {"": TEXT, "b": BYTES, "r": RAW, "rb": RAW, "br": RAW}

FORMS, TAIL, LITERAL, SPEC = range(4)  # what a frame expects next
F_OPENER, FIELD_OPENER = 'f"', "{ of an f-string"
# opener -> model (for a prefix: the name of its head), closer, number of forms if fixed, what it expects
# first
SHAPES: Final[dict[str, tuple[Any, str, int, int]]] = {
    "(": (Expression, ")", 0, FORMS),
    "[": (List, "]", 0, FORMS),
    "{": (Dict, "}", 0, FORMS),
    "#(": (Tuple, ")", 0, FORMS),
    "#{": (Set, "}", 0, FORMS),
    "'": ("quote", "", 1, FORMS),
    "`": ("quasiquote", "", 1, FORMS),
    "~": ("unquote", "", 1, FORMS),
    "~@": ("unquote-splice", "", 1, FORMS),
    "#*": ("unpack-iterable", "", 1, FORMS),
    "#**": ("unpack-mapping", "", 1, FORMS),
    "#^": ("annotate", "", 2, FORMS),
    "#_": (None, "", 1, FORMS),
    F_OPENER: (FString, '"', 0, LITERAL),
    FIELD_OPENER: (FComponent, "}", 1, FORMS),
}


class OpenForm:
    """A form whose end has not been read yet: its closer, its items so far, and what it expects next."""

    __slots__ = (
        "closer", "column", "conversion", "expect", "expression", "items", "line",
        "make", "mark", "need", "offset", "opener",
    )  # fmt: skip

    def __init__(self, opener: str, offset: int, line: int, column: int) -> None:
        self.make, self.closer, self.need, self.expect = SHAPES[opener]
        self.opener = opener
        self.offset = offset
        self.line = line
        self.column = column
        self.items: list[Object] = []
        self.mark = offset + 1  # in an f-string: start of the field's text or of the literal text
        self.conversion: str | None = None
        self.expression = ""


def form_after(stack: Sequence[OpenForm]) -> tuple[int, int] | None:
    """Finds the form that is probably the next one: it begins on a later line than the outermost open form,
    and no further to the right. Returns how many frames were open where it begins, and how many lines below
    it is; None if no form is found."""
    outer = stack[0]
    for depth, frame in enumerate(stack, 1):
        found = [_place(item) for item in frame.items if isinstance(item, Expression)]
        if depth < len(stack) and stack[depth].opener == "(":
            found.append((stack[depth].line, stack[depth].column))
        for line, column in found:
            if line > outer.line and column == outer.column:
                return depth, line - outer.line
    return None


def _place(item: Object) -> tuple[int, int]:
    return item.start_line, item.start_column
