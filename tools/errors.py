"""The errors people and models are shown: one clear sentence each, never a traceback.

This file knows no tool, no table and no command; it only says what a mistake looks like.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from quoth.tools.text import short


class QuothError(Exception):
    """A mistake that can be told in a sentence. ``str(error)`` is that sentence."""


class UsageError(QuothError):
    """The command, option or file given by a person cannot be used as it is."""


class StoreError(QuothError):
    """What had to be written down or read again could not be; ``why`` is the reason alone."""

    def __init__(self, sentence: str, why: str = "") -> None:
        self.why = why
        super().__init__(f"{sentence}: {why}." if why else sentence)


class DefinitionError(QuothError, ValueError):
    """A tool definition is wrong; it names the tool and the option at fault."""


class DuplicateToolError(DefinitionError):
    """A second tool of the same name, registered without ``replace``."""


class UnknownToolError(QuothError, KeyError):
    """No tool of that name. A KeyError (seed 002) whose text is nevertheless a clean sentence."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        self.name = name
        self.nearest = nearest(name, names)
        if self.nearest:
            hint = f"Did you mean {self.nearest}?"
        elif names:
            hint = "Available tools: " + ", ".join(names) + "."
        else:
            hint = "No tools are registered."
        self.sentence = f"There is no tool named {_shown(name)}. {hint}"
        super().__init__(self.sentence)

    def __str__(self) -> str:  # KeyError would print the repr
        return self.sentence


class InvalidCallError(QuothError, ValueError):
    """The call names a tool, but its arguments do not fit; the text names each argument at fault."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name closest to ``word``, or None when nothing is close."""
    spelt = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), list(spelt), n=1, cutoff=0.6)
    return spelt[matches[0]] if matches else None


def _shown(name: str) -> str:
    """A name somebody made up, fit to stand in a sentence: short, and nothing a terminal would obey."""
    name = short(name, 80)
    return name if name.isprintable() and name.strip() else ascii(name)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` Did you mean X?`` with its leading space, or the empty string."""
    close = nearest(word, known)
    return f" Did you mean {close}?" if close else ""


Status = Literal["ok", "error", "invalid", "unknown", "denied", "limited", "pending", "timeout", "cancelled"]
STATUSES: tuple[Status, ...] = get_args(Status)


class ToolError(QuothError):
    """Raised by a body for a failure the caller can act on; its text is shown to the model as it is."""


class ToolFailure(Exception):
    """Ends a body with a status of its own, or an inner call of a program, which may catch it there. Not for
    users' tools."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


PERMISSION = "permission?"  # names what a body asks for, beside the arguments of its call; no parameter can


class Pending(ToolFailure):
    """Ends a body that waits for a person's decision; the text says which.

    ``state`` is where its program stands, as JSON data to go on from (empty: it is run again). With
    ``permission`` it is the body itself that asks: the door asks, and begins it again when that is allowed.
    """

    def __init__(self, message: str, *, state: Mapping[str, Any] | None = None, permission: str = "") -> None:
        super().__init__("pending", message)
        self.state = state or {}
        self.permission = permission
