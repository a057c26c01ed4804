"""The data that services and tools exchange: memory blocks, search hits, search options, sources.

It knows no service, no store and no door.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from quoth.tools.errors import ToolError

BlockKind = Literal["core", "working", "archival"]
BlockPermission = Literal["read_only", "partner", "human", "append", "read_write", "admin"]
SearchScope = Literal["agent", "shared", "all"]
SearchDomain = Literal["archival_memory", "conversations", "all"]


@dataclass(frozen=True)
class Block:
    """A named piece of memory. ``permission`` limits who may change it without a person's approval."""

    label: str
    text: str = ""
    kind: BlockKind = "working"
    permission: BlockPermission = "read_write"
    description: str = ""
    owner: str = ""  # the agent it belongs to, when it is shared


@dataclass(frozen=True)
class SearchHit:
    """One search result; a higher ``score`` is a better match."""

    label: str
    text: str
    score: float = 0.0
    source: str = ""  # "archival_memory", "conversations", or whatever else the searcher knows


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search. Raises ToolError for a limit below 1 or an unknown domain."""

    limit: int = 10
    domain: SearchDomain = "all"

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ToolError(f"The limit of a search is at least 1, not {self.limit}.")
        _one_of("search domain", self.domain, get_args(SearchDomain))


@dataclass(frozen=True)
class Source:
    """A named source of data that can be read: a feed, a document, a folder the host has opened."""

    name: str
    description: str = ""


def check_scope(scope: str) -> None:
    """Raise ToolError unless ``scope`` is a SearchScope."""
    _one_of("search scope", scope, get_args(SearchScope))


def _one_of(what: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        raise ToolError(f"There is no {what} {word}; use {', '.join(known[:-1])} or {known[-1]}.")
