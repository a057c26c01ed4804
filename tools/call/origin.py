"""Where a value comes from, and what a person is told of where the arguments of a call do, as data.

It must not know how that is found (tools/origin), calls or terminals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

OriginKind = Literal["task", "field", "text", "model"]
KINDS: tuple[OriginKind, ...] = get_args(OriginKind)  # the strongest first


class Origin(NamedTuple):
    """Where one value comes from. ``fields`` are the tools in whose results it is the whole value of a field;
    ``text`` names the text in which it stands, ``read-file mail.txt``, and is looked for only where the value
    is neither in the person's words nor in a field."""

    in_task: bool = False
    fields: tuple[str, ...] = ()
    text: str = ""

    @property
    def kind(self) -> OriginKind:
        """The strongest that holds; ``model`` is a value that stands nowhere."""
        return "task" if self.in_task else "field" if self.fields else "text" if self.text else "model"

    @property
    def known(self) -> bool:
        """Whether it comes from the person or from a field, and from no text that somebody else wrote."""
        return self.in_task or bool(self.fields)

    def __str__(self) -> str:
        """In about three words, for a person: ``in your task``, ``field of search-contacts``."""
        words = {"task": "in your task", "model": "the model's own"}
        words |= {"field": f"field of {', '.join(self.fields)}", "text": f"in the text of {self.text}"}
        return words[self.kind]


MODEL = Origin()  # of a value that stands nowhere


class ArgumentOrigin(NamedTuple):
    """Where an argument comes from, in a few ``words``; or, if there are ``values``, where these in it do,
    and so many ``more``. Nothing in it is a secret."""

    argument: str
    kind: str
    words: str
    values: tuple[str, ...] = ()
    more: int = 0

    @property
    def known(self) -> bool:
        """Whether it comes from the person or from a field; all else is marked."""
        return self.kind in ("task", "field")

    def to_data(self) -> dict[str, Any]:
        more = {"values": list(self.values), "more": self.more}
        said = {"argument": self.argument, "origin": self.kind, "words": self.words, "known": self.known}
        return said | {name: value for name, value in more.items() if value}


def to_text(origins: Sequence[ArgumentOrigin]) -> str:
    """The origins as a store keeps them; an empty text for none."""
    return json.dumps([one.to_data() for one in origins]) if origins else ""


def of_text(text: str) -> tuple[ArgumentOrigin, ...]:
    """The origins that a store kept. What cannot be read, in a row that somebody changed, is left out."""
    try:
        return tuple(_of_data(one) for one in json.loads(text)) if text else ()
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def _of_data(said: dict[str, Any]) -> ArgumentOrigin:
    values = tuple(str(value) for value in said.get("values", ()))
    return ArgumentOrigin(
        str(said["argument"]), str(said["origin"]), str(said["words"]), values, int(said.get("more", 0))
    )
