"""The errors that people and models see: one clear sentence each, never a traceback. These are all of them;
any other exception of ours is caught in its own room.

    QuothError
      DefinitionError
        DuplicateToolError
      EditError
      HeaderError
      InvalidCallError
      LineError
      LostError
      ModelError
        BudgetError
        ContextFullError
        MovedError
        RequestRefusedError
        RolesRefusedError
        ToolsRefusedError
      NoMemoryError
      NotRead
      OutputError
      PlanChangedError
      PlanningError
      ReadError
      StoreError
        ServerError
          CatalogError
            ForeignCatalog
      ToolError
        CallFailed
        GateError
        McpError
          LoginNeeded
          McpTimeout
          RestartedError
        NoDataError
        ProgramError
        UndeliveredError
      ToolRateLimited
      UnknownToolError
      UsageError
        BusyError
        ChangeDiffersError
        LeftBehind
        NoFolderError
        NoHomeError
        NoKeyError
        SnapshotError
        TranscriptError
        UnansweredError
        UnknownResponseError
      WireError
    ToolFailure
      CatalogStale
      Pending

A ToolFailure ends a body, or an inner call of a program, with a status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from quoth.tools.text import short

if TYPE_CHECKING:
    from datetime import datetime


class QuothError(Exception):
    """A mistake that one sentence can explain; ``str(error)`` is that sentence."""


class UsageError(QuothError):
    """A command, option or file that a person gave cannot be used."""


class BusyError(UsageError):
    """Another process is using it; a later attempt may succeed."""


class StoreError(QuothError):
    """The store could not be written or read; ``why`` is only the reason."""

    def __init__(self, sentence: str, why: str = "") -> None:
        self.why = why
        super().__init__(f"{sentence}: {why}." if why else sentence)


class ServerError(StoreError):
    """A server, such as Redis or PostgreSQL, could not be used. The records of this workspace are not
    affected, so a call that fails because of it ends with an error; any other StoreError aborts the call."""


def raise_if_broken(error: Exception) -> None:
    """Raise a failure of the workspace's own store again: a call that cannot be recorded is aborted, as by a
    kill, so that it can be resumed."""
    if isinstance(error, StoreError) and not isinstance(error, ServerError):
        raise error


class DefinitionError(QuothError, ValueError):
    """A tool definition is wrong; the text names the tool and the option. ``parameter`` is the name of the
    parameter at fault, ``place`` its file, line and column in Python, if known."""

    parameter = ""
    place: tuple[str, int, int] | None = None


class DuplicateToolError(DefinitionError):
    """A second tool of the same name was registered without ``replace``."""


class UnknownToolError(QuothError, KeyError):
    """There is no tool of that name. It is a KeyError (seed 002) whose text is still a clean sentence."""

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


ToolNotFound = UnknownToolError  # the name for callers of ``Door.execute``


class ToolRateLimited(QuothError):
    """A call is over a limit (seed 000); ``room_at`` is when it is possible again, if known."""

    def __init__(self, sentence: str, room_at: datetime | None = None) -> None:
        super().__init__(sentence)
        self.room_at = room_at


class InvalidCallError(QuothError, ValueError):
    """The call names a tool, but its arguments are invalid; the text names each argument at fault."""


CLOSE = 0.6  # the similarity from which a word is taken for a misspelt name, 0 to 1, as difflib measures it
SURE = 0.75  # the same for texts in which most words are correct


def nearest(word: str, known: Iterable[str], likeness: float = CLOSE) -> str | None:
    """The known text closest to ``word``, ignoring case, or None if none reaches ``likeness`` (0 to 1)."""
    from difflib import get_close_matches  # here: few runs have a misspelt name

    spelt = {name.lower(): name for name in known}
    return next((spelt[close] for close in get_close_matches(word.lower(), spelt, 1, likeness)), None)


def _shown(name: str) -> str:
    """A name from outside, fit for a sentence: short, and without control characters."""
    name = short(name, 80)
    return name if name.isprintable() and name.strip() else ascii(name)


def did_you_mean(word: str, known: Iterable[str], lead: str = "", mark: str = "") -> str:
    """The text `` Did you mean X?`` with its leading space. If no name is close: all names after ``lead``, as
    in `` There are X, Y.``; empty without a lead or names. ``mark`` precedes each name."""
    names = list(known)
    if close := nearest(word, names):
        return f" Did you mean {mark}{close}?"
    return f" {lead} {', '.join(f'{mark}{name}' for name in names)}." if lead and names else ""


def no_such(
    what: str, word: str, known: Iterable[str], lead: str = "The choices are", where: str = ""
) -> str:
    """The sentence ``There is no WHAT WORD.``, with the nearest of the known names or all after ``lead``.
    ``where`` follows the word."""
    return f"There is no {what} {_shown(word)}{where}.{did_you_mean(word, known, lead)}"


Status = Literal["ok", "error", "invalid", "unknown", "denied", "limited", "pending", "timeout", "cancelled"]
STATUSES: tuple[Status, ...] = get_args(Status)


class ToolError(QuothError):
    """A body raises this for a failure that the caller can act on; the model sees its text unchanged."""


class ToolFailure(Exception):
    """Ends a body, or an inner call of a program, with ``status``; the program may catch it. It is not for
    users' tools. ``request`` is the id of the request that it waits for, of a pending one."""

    def __init__(self, status: Status, message: str, *, request: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.request = request


class CatalogStale(ToolFailure):
    """A worker has other tools than the catalog of a call; ``schema_hash`` is the worker's."""

    def __init__(self, message: str, schema_hash: str = "") -> None:
        super().__init__("error", message)
        self.schema_hash = schema_hash


PERMISSION = "permission?"  # names a body's requested permission in a form; no parameter can have this name
ANSWER = "answer?"  # likewise, a question that a body asks a person


class Pending(ToolFailure):
    """Ends a body that waits for a person's decision; the text says which one.

    ``state`` is the state of its program as JSON data, to resume from (empty: it runs again from its
    beginning). With ``permission`` the body itself requests that permission, with ``question`` an answer in
    words (tools/call/question.py).
    """

    def __init__(
        self,
        message: str,
        *,
        state: Mapping[str, Any] | None = None,
        permission: str = "",
        question: Any = None,
    ) -> None:
        super().__init__("pending", message)
        self.state = state or {}
        self.permission = permission
        self.question = question
