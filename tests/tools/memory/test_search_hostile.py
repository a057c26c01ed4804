"""A query is words, whatever is in it: never syntax of FTS5, never a crash, never a wait."""

from __future__ import annotations

import pytest
from examples import many
from hostile import SYNTAX, queries
from sentences import THE_MAXIMUM_IS
from talk import Concepts, conversation

from quoth.tools.call.service_types import SearchOptions
from quoth.tools.errors import ToolError
from quoth.tools.memory.search import MOST_WORDS, fts_query, words_of
from quoth.tools.memory.sqlite import SqliteMemory
from quoth.tools.storage.database import Store


@pytest.fixture
def store_with_text(store: Store) -> Store:
    conversation(store, "s1", "My cat is grey.", 'She said "meow" AND went NEAR(the door).')
    return store


async def test_hostile_queries_end_as_results_or_as_our_own_error(store_with_text: Store) -> None:
    memory = SqliteMemory(lambda: store_with_text, "a", user="ann", embedder=Concepts(cat=1))
    ends = {"hits": 0, "errors": 0}
    for query in queries(max(many(4), len(SYNTAX))):
        try:
            await memory.search(query, "all", SearchOptions())
            ends["hits"] += 1
        except ToolError:
            ends["errors"] += 1
    assert min(ends.values()) > 0


@pytest.mark.parametrize("query", ["cat " * 250_000, "a" * 1_000_000, '"' * 1_000_000, "\0" * 1_000_000])
async def test_a_megabyte_is_too_much_at_once(store_with_text: Store, query: str) -> None:
    memory = SqliteMemory(lambda: store_with_text, "a", user="ann")

    with pytest.raises(ToolError, match=f"The query has 1,000,000 characters; {THE_MAXIMUM_IS} 10,000"):
        await memory.search(query, "agent", SearchOptions())


@pytest.mark.parametrize(
    "query", ['say "meow"', "meow AND door", "text:meow", "meow*", "-meow", "NEAR(meow)"]
)
async def test_what_looks_like_syntax_is_searched_as_words(store_with_text: Store, query: str) -> None:
    memory = SqliteMemory(lambda: store_with_text, "a", user="ann")

    hits = await memory.search(query, "agent", SearchOptions())

    assert hits[0].label == "s1.2"


def test_fts5_is_given_nothing_but_quoted_words() -> None:
    assert (
        fts_query(words_of('cat" OR rowid:1 NEAR(dog, 2)*'))
        == '"cat" OR "rowid" OR "1" OR "near" OR "dog" OR "2"'
    )


def test_so_many_words_are_searched_and_no_more() -> None:
    assert len(words_of(" ".join(f"w{n}" for n in range(1000)))) == MOST_WORDS
    assert words_of("the cat and the cat") == ["cat"]
    assert words_of("the and") == ["the", "and"]
