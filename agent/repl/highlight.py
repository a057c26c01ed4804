"""The colours of what is typed at the prompt, and the bracket that belongs to the one at the cursor.

Only the sixteen colours of the terminal's own palette are used, so that all can be read on a dark screen and
on a light one. Knows text and prompt_toolkit; it must not know tools or agents.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from prompt_toolkit.application import get_app
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from quoth.agent.repl.typed import is_form, read_typed

STYLE = Style.from_dict(
    {
        "lisp.comment": "italic ansibrightblack",
        "lisp.string": "ansigreen",
        "lisp.keyword": "ansicyan",
        "lisp.number": "ansimagenta",
        "lisp.head": "bold ansiblue",
        "lisp.prefix": "ansimagenta",
        "lisp.wrong": "bold ansired",
        "command": "bold ansicyan",
        "matching-bracket.cursor": "bold underline",
        "matching-bracket.other": "bold reverse",
    }
)
_SHOWN = ("comment", "string", "keyword", "number", "prefix")


class LispLexer(Lexer):
    """Colours forms and commands; prose has none."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = _coloured(document.text)
        return lambda number: lines[number] if number < len(lines) else []


@lru_cache(maxsize=4)
def _coloured(text: str) -> list[StyleAndTextTuples]:
    """The lines of the text in pieces, each with its style."""
    lines: list[StyleAndTextTuples] = [[]]
    for style, piece in _pieces(text):
        first, *more = piece.split("\n")
        lines[-1].append((style, first))
        lines.extend([(style, line)] for line in more)
    return lines


def _pieces(text: str) -> list[tuple[str, str]]:
    if text.lstrip().startswith(","):
        word, blank, rest = text.partition(" ")
        return [("class:command", word), ("", blank + rest)]
    if not is_form(text):
        return [("", text)]
    typed = read_typed(text)
    return [
        (
            "class:lisp.wrong"
            if start in typed.wrong
            else "class:lisp.head"
            if start in typed.heads
            else f"class:lisp.{kind}"
            if kind in _SHOWN
            else "",
            piece,
        )
        for kind, piece, start in typed.tokens
    ]


class MatchingBracket(Processor):
    """Marks the bracket under the cursor, or before it, and its partner; those in strings are none."""

    def apply_transformation(self, given: TransformationInput) -> Transformation:
        document = given.document
        if get_app().is_done or not is_form(document.text):
            return Transformation(given.fragments)
        fragments = given.fragments
        partners, at = read_typed(document.text).partners, document.cursor_position
        here = at if at in partners else at - 1
        if here in partners:
            for place, style in ((here, "cursor"), (partners[here], "other")):
                row, column = document.translate_index_to_position(place)
                if row == given.lineno:
                    fragments = explode_text_fragments(fragments)
                    shown = given.source_to_display(column)
                    old, text, *_ = fragments[shown]
                    fragments[shown] = (f"{old} class:matching-bracket.{style} ", text)
        return Transformation(fragments)
