"""Turns what is searched for into words: never into the syntax of a search engine.

It knows no store. The words go to FTS5 as quoted strings, so that no operator of its language can be in them.
"""

from __future__ import annotations

from typing import Final

from quoth.tools.errors import ToolError
from quoth.tools.words import STOP_WORDS, WORD

MOST_CHARS: Final = 10_000
MOST_WORDS: Final = 32  # a search takes time for each
LONGEST_WORD: Final = 100


def words_of(query: str) -> list[str]:
    """The words of a query that are searched for, each once, in their order. Raises ToolError."""
    if not isinstance(query, str) or not query.strip():
        raise ToolError('The query is empty; say what to search for, such as "project deadline".')
    if len(query) > MOST_CHARS:
        raise ToolError(
            f"The query has {len(query):,} characters; at most {MOST_CHARS:,} can be searched for. "
            "Use a few words."
        )
    said = [word for word in dict.fromkeys(WORD.findall(query.lower())) if len(word) <= LONGEST_WORD]
    if not said:
        raise ToolError("There is no word in the query; letters or digits are searched for.")
    # A query of nothing else is searched for these too.
    return ([word for word in said if word not in STOP_WORDS] or said)[:MOST_WORDS]


def fts_query(words: list[str]) -> str:
    """The query of FTS5 for passages with any of the words."""
    return " OR ".join(f'"{word}"' for word in words)
