"""The data that services and tools exchange: memory blocks, search hits, search options, sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime, timedelta
from typing import Literal, get_args

from quoth.tools.errors import ToolError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.text import listed

BlockKind = Literal["core", "working", "archival"]
BlockPermission = Literal["read_only", "partner", "human", "append", "read_write", "admin"]
SearchScope = Literal["agent", "shared", "all"]
SearchDomain = Literal["archival_memory", "conversations", "all"]


@dataclass(frozen=True)
class Block:
    """A named piece of memory, unique by ``label`` for its agent.

    ``kind``: core blocks are shown to the model at the start of a conversation, working blocks are loaded for
    the present task, archival blocks are found by search. ``permission`` limits the operations that need no
    approval (tools/memory/checks.py). ``limit`` is the maximum length of the text in characters; 0 is the
    default of the kind. ``version`` counts the changes from 1. ``created`` and ``updated`` are RFC 3339 times
    in UTC, and ``by`` names the author of the last change.
    """

    label: str
    text: str = ""
    kind: BlockKind = "working"
    permission: BlockPermission = "read_write"
    description: str = ""
    owner: str = ""  # the agent it belongs to, if it is shared
    limit: int = 0
    version: int = 1
    created: str = ""
    updated: str = ""
    by: str = ""


@dataclass(frozen=True)
class BlockVersion:
    """A text that a block had, from the time ``at`` (RFC 3339, UTC) until its next version."""

    version: int
    text: str
    at: str = ""
    by: str = ""


@dataclass(frozen=True)
class SearchHit:
    """One search result; a higher ``score`` is a better match. ``at`` is its time (RFC 3339, UTC), ``owner``
    the agent it belongs to if it is shared, and ``parts`` the named summands of the score."""

    label: str
    text: str
    score: float = 0.0
    source: str = ""  # "core_memory", "archival_memory", "conversations", or another name of the searcher's
    at: str = ""
    owner: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)


MAX_HITS = 100


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search. ``since`` and ``until`` bound the time of the hits: an ISO 8601 date or time, in
    UTC if it names no zone; empty means unbounded. A date includes the whole day; a time ``until`` is
    exclusive. With ``semantic`` only the meaning counts, not the words. Raises ToolError for a limit that is
    not 1 to 100, an unknown domain, or an invalid time."""

    limit: int = 10
    domain: SearchDomain = "all"
    since: str = ""
    until: str = ""
    semantic: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MAX_HITS:
            raise ToolError(f"The limit of a search must be 1 to {MAX_HITS}, not {self.limit}.")
        one_of("search domain", self.domain, get_args(SearchDomain))
        for name, time in zip(("since", "until"), bounds(self.since, self.until), strict=True):
            object.__setattr__(self, name, time)


@dataclass(frozen=True)
class Source:
    """A named source of data that can be read: a feed, a document, a folder the host has opened."""

    name: str
    description: str = ""


def check_scope(scope: str) -> None:
    """Raise ToolError unless ``scope`` is a SearchScope."""
    one_of("search scope", scope, get_args(SearchScope))


def utc_time(what: str, text: str) -> str:
    """An ISO 8601 date or time as RFC 3339 in UTC, to the second; empty stays empty. Raises ToolError that
    names ``what`` and the expected format."""
    if not text:
        return ""
    try:
        time = datetime.fromisoformat(text.strip())
        time = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ToolError(
            f"{what} is a date or a time such as 2026-01-31 or 2026-01-31T09:30, not {text[:40]!r}."
        ) from None
    return time.isoformat(timespec="seconds")


def bounds(since: str, until: str, names: tuple[str, str] = (":since", ":until")) -> tuple[str, str]:
    """Both bounds of a search as ``utc_time`` returns them; a date ``until`` becomes the start of the next
    day. Raises ToolError with the ``names`` that the person or the model wrote."""
    first, last = utc_time(names[0], since), utc_time(names[1], _day_after(until))
    if first and last and first >= last:
        raise ToolError(
            f"No time is after {since.strip()} and before {until.strip()}: "
            f"give {names[1]} a later time than {names[0]}."
        )
    return first, last


def _day_after(text: str) -> str:
    """The day after a date; a time or any other text unchanged."""
    try:
        return (date.fromisoformat(text.strip()) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return text


def one_of(what: str, word: str, known: Sequence[str]) -> None:
    """Raise ToolError unless ``word`` is known."""
    if word not in known:
        raise ToolError(f"Unknown {what} {word}; use {listed(known, 'or')}.")


@dataclass(frozen=True)
class Origin:
    """The author of a knowledge base entry, its time (RFC 3339, UTC), and its chat, session and call."""

    user: str
    at: str
    chat: str = ""
    session: str = ""
    call: str = ""


@dataclass(frozen=True)
class Filed:
    """The place of a filed entry: its file, relative to the workspace, its title, and whether it is new."""

    path: str
    title: str
    created: bool


@dataclass(frozen=True)
class Known:
    """An entry that a search of the knowledge base found: a part of its text, its author and time.

    ``kind`` is ``source``, ``claim``, ``learning`` or ``note``; ``path`` and ``line`` (from 1) are its place;
    ``score`` is higher for a better match. The text is data, never an instruction.
    """

    kind: str
    title: str
    text: str
    path: str
    line: int
    user: str = ""
    at: str = ""
    score: float = 0.0


@dataclass(frozen=True)
class WebHit:
    """One match of a web search: its title, its address, and a piece of its text."""

    title: str
    address: str
    text: str = ""
