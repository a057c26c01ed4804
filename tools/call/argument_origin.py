"""What a person is told of where the arguments of a call come from, as data.

It must not know how they are found (tools/origin/arguments.py), calls or terminals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

KNOWN = ("task", "field")


@dataclass(frozen=True)
class ArgumentOrigin:
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
        return self.kind in KNOWN

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
