"""Reads forms as data, for policy files, ``config.hy`` and scopes. Each error names file, line and column,
and shows a caret. Nothing is evaluated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import hy.models as m

from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.lisp.printer import show
from quoth.tools.lisp.reader import ReaderLimits, ReadError, read_all
from quoth.tools.lisp.source import Place, SourceText

FILE_LIMITS = ReaderLimits(max_chars=1_000_000, max_depth=50, max_forms=100_000, max_digits=300)


def read_forms(text: str, source: SourceText) -> Sequence[Any]:
    """The forms of a file's text; errors quote ``source``. Raises UsageError."""
    try:
        return read_all(text, FILE_LIMITS)
    except ReadError as error:
        hint = f"; {error.hint}" if error.hint else ""
        place = Place(source, error.line, error.column)
        raise UsageError(place.complaint(f"{error.message}{hint}")) from None


class Fields:
    """Reads the parts of the forms of one file."""

    def __init__(self, source: SourceText) -> None:
        self.source = source

    def place(self, node: Any) -> Place:
        return Place(self.source, node.start_line or 1, node.start_column or 1)

    def fault(self, node: Any, message: str) -> UsageError:
        """The error for a mistake at this form, to be raised by the caller."""
        return UsageError(self.place(node).complaint(message))

    def unknown(self, node: Any, what: str, word: str, known: Collection[str], mark: str = "") -> UsageError:
        """The error for a word that is not ``known``. It names the nearest known word, or all of them,
        prefixed with ``mark``."""
        return self.fault(node, f"{what}.{did_you_mean(word, known, 'The choices are', mark)}")

    def head(self, form: Any, known: Collection[str], noun: str, example: str) -> str:
        """The first word of a form, which must be one of ``known``."""
        if not isinstance(form, m.Expression) or not form:
            raise self.fault(form, f"{show(form)} is not a {noun}. Example: {example}")
        head = str(form[0]) if isinstance(form[0], m.Symbol) else ""
        if head not in known:
            raise self.unknown(form[0], f"There is no {noun} {show(form[0])}", head, known)
        return head

    def text(self, node: Any, what: str = "") -> str:
        """A text that is not blank; ``what`` names it in the error."""
        if not isinstance(node, m.String) or isinstance(node, m.FString):
            needed = f'{what} must be a text, written "x", not' if what else "Expected a text in quotes, not"
            raise self.fault(node, f"{needed} {show(node)}.")
        return str(node)

    def word(self, node: Any, known: Collection[str], where: str) -> str:
        """A word from a closed set, written :word or word."""
        name = str(node.name) if isinstance(node, m.Keyword) else str(node)
        if not isinstance(node, (m.Keyword, m.Symbol, m.String)) or name not in known:
            raise self.unknown(node, f"{where} does not accept {show(node)}", name, known, ":")
        return name

    def pairs(
        self, form: Any, known: Collection[str], start: int = 1, *, words: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """The keywords of a form from index ``start``, with their values. Each must be ``known`` and given
        once. A value must not be a keyword, unless values are ``words``."""
        seen = set()
        rest = iter(form[start:])
        for key in rest:
            if not isinstance(key, m.Keyword):
                raise self.fault(key, f"Expected a keyword before {show(key)}, one of {keywords(known)}.")
            name = str(key.name)
            if name not in known:
                raise self.unknown(key, f"({form[0]} …) does not accept :{name}", name, known, ":")
            if name in seen:
                raise self.fault(key, f":{name} is given twice.")
            seen.add(name)
            if (value := next(rest, None)) is None or (isinstance(value, m.Keyword) and not words):
                raise self.fault(key, f":{name} has no value.")
            yield name, value


def keywords(names: Collection[str]) -> str:
    return ", ".join(f":{name}" for name in names)
