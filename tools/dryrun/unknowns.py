"""Unknown values on the host's side: finding them in values, showing them to people, and patterns of them.

A pattern describes the values that an argument may have. It is JSON data that can be stored and matched
against a later call. The marks are made by tools/dryrun/runtime.py."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from quoth.tools.dryrun.runtime import BEGIN, END
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import DisplayText, print_value

SHOWN_CHARS = 60
ANY: dict[str, Any] = {"any": True}
Pattern = dict[str, Any]


class UnknownMarks:
    """Creates and finds the unknown values of one run. ``word`` marks them and must be secret."""

    def __init__(self, word: str) -> None:
        self.word = word
        self._made = 0
        self._mark = re.compile(f"{BEGIN}{word}([-*])[^:]*:([^{END}]*){END}")

    def new(self, text: str) -> str:
        """A new unknown value with the label ``text``."""
        self._made += 1
        text = text.replace(BEGIN, "").replace(END, "")
        return f"{BEGIN}{self.word}-h{self._made}:{text}{END}"

    def of_call(self, form: CallForm) -> str:
        """The unknown result of a call that was not run."""
        text = str(self.shown_form(form))
        return self.new(text if len(text) <= SHOWN_CHARS else f"({form.tool} …)")

    def within(self, value: Any) -> bool:
        """Whether any part of a value is unknown."""
        if isinstance(value, str):
            return self._mark.search(value) is not None
        if isinstance(value, Mapping):
            return any(self.within(key) or self.within(item) for key, item in value.items())
        return isinstance(value, (list, tuple, set, frozenset)) and any(map(self.within, value))

    def _whole(self, value: Any) -> re.Match[str] | None:
        return self._mark.fullmatch(value) if isinstance(value, str) else None

    def _loose(self, items: Any) -> bool:
        """Whether the collection may have any number of other items, too."""
        return any((mark := self._whole(item)) is not None and mark[1] == "*" for item in items)

    def text(self, text: str) -> str:
        """A text with each unknown replaced by its label, on one line: ``#<(get hit "path")>``."""
        return self._mark.sub(lambda mark: f"#<{' '.join(mark[2].split())}>", text)

    def shown(self, value: Any) -> Any:
        """A value with each unknown replaced by its label."""
        if isinstance(value, str):
            text = self.text(value)
            return DisplayText(text) if self._whole(value) else type(value)(text)
        if isinstance(value, Mapping):
            return {self.shown(key): self.shown(item) for key, item in value.items()}
        if isinstance(value, (set, frozenset)):
            return sorted(map(self.shown, value), key=str)
        if isinstance(value, (list, tuple)):
            return DisplayText("#<a list>") if self._loose(value) else [self.shown(item) for item in value]
        return value

    def shown_form(self, form: CallForm) -> CallForm:
        """A call with each unknown replaced by its label."""
        args = {name: self.shown(value) for name, value in form.args.items()}
        return CallForm(form.tool, args, tuple(map(self.shown, form.positional)))

    def pattern(self, value: Any) -> Pattern:
        """The pattern of an argument: the values that it may have when the program runs."""
        if not self.within(value):
            return {"is": value}
        if isinstance(value, str):
            return ANY if self._whole(value) else {"like": self._mark.split(value)[::3]}
        if isinstance(value, Mapping) and not any(map(self.within, value)):
            return {"dict": {str(key): self.pattern(item) for key, item in value.items()}}
        if isinstance(value, (list, tuple)) and not self._loose(value):
            return {"list": [self.pattern(item) for item in value]}
        return ANY


def hidden(pattern: Pattern) -> Pattern:
    """A pattern for a secret argument: the hash of a known value, otherwise any value."""
    return {"sha256": digest(pattern["is"])} if "is" in pattern else ANY


def matches(pattern: Pattern, value: Any) -> bool:
    """Whether a value matches the pattern."""
    if "any" in pattern:
        return True
    if "is" in pattern:
        return print_value(pattern["is"]) == print_value(value)
    if "sha256" in pattern:
        return bool(pattern["sha256"] == digest(value))
    if "like" in pattern:
        return isinstance(value, str) and _like(pattern["like"], value)
    if "list" in pattern:
        return _same_length(pattern["list"], value, (list, tuple)) and all(
            map(matches, pattern["list"], value)
        )
    inner = pattern["dict"]
    return _same_length(inner, value, (dict,)) and all(
        key in value and matches(part, value[key]) for key, part in inner.items()
    )


def _like(pieces: list[str], value: str) -> bool:
    """Whether the value consists of these pieces in this order, with other text between them that does not
    lead out of a folder: the first piece at the beginning, the last at the end."""
    first, *middle, last = pieces
    if ".." in re.split(r"[/\\]", value) and not any(".." in piece for piece in pieces):
        return False
    at, end = len(first), len(value) - len(last)
    if at > end or not value.startswith(first) or not value.endswith(last):
        return False
    for piece in middle:
        if (found := value.find(piece, at, end)) < 0:
            return False
        at = found + len(piece)
    return True


def _same_length(pattern: Any, value: Any, kinds: tuple[type, ...]) -> bool:
    return type(value) in kinds and len(value) == len(pattern)


def digest(value: Any) -> str:
    return hashlib.sha256(print_value(value).encode("utf-8", "surrogatepass")).hexdigest()
