"""Search of the memory blocks in PostgreSQL: by their words (tsvector) and by their meaning (pgvector).

It knows tables and ranks; it must not know the ACL, tools or models. What is searched for is data: no text of
a query is ever read as syntax.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, LiteralString, Protocol, TypeVar

from quoth.tools.call.service_types import SearchHit, SearchOptions, SearchScope, check_scope
from quoth.tools.call.services import Embedder
from quoth.tools.errors import ToolError
from quoth.tools.memory.search import NO_MEANING, POOL, added_up, words_of
from quoth.tools.memory.vectors import BATCH, SECONDS, vectors_of
from quoth.tools.storage.database import Store

if TYPE_CHECKING:
    from pgvector import Vector
    from psycopg import Connection


T = TypeVar("T")

NO_EXTENSION: Final = "The database cannot compare meanings, so that only words can be searched: {}."

STEMS = "SELECT lexeme FROM unnest(to_tsvector('quoth.words', %s))"
VISIBLE = """
    FROM quoth.passages JOIN quoth.blocks ON blocks.id = passages.block
    WHERE (%(own)s AND agent = %(agent)s OR %(shared)s AND blocks.id IN
        (SELECT block FROM quoth.block_shares WHERE block_shares.agent = %(agent)s))
    AND (%(any)s OR kind = 'archival') AND (%(since)s = '' OR updated >= %(since)s)
    AND (%(until)s = '' OR updated < %(until)s)"""
# The best passages of as many blocks, one of each.
BY_WORDS = f"""
    SELECT id, score FROM (
        SELECT DISTINCT ON (blocks.id) passages.id, ts_rank(words, %(stems)s::tsquery) AS score
        {VISIBLE} AND words @@ %(stems)s::tsquery ORDER BY blocks.id, score DESC
    ) AS best ORDER BY score DESC, id DESC LIMIT %(pool)s"""  # noqa: S608
WITH_VECTOR = "JOIN quoth.vectors ON passage = passages.id WHERE model = %(model)s AND"
EMBEDDED = VISIBLE.replace("WHERE", WITH_VECTOR, 1)
BY_MEANING = f"""
    SELECT passage, score FROM (
        SELECT DISTINCT ON (blocks.id) passage, -(vector <#> %(vector)s) AS score
        {EMBEDDED}
        ORDER BY blocks.id, score DESC
    ) AS best ORDER BY score DESC, passage DESC LIMIT %(pool)s"""  # noqa: S608
MEANINGS = """
    SELECT passage, -(vector <#> %(vector)s) FROM quoth.vectors WHERE model = %(model)s
    AND passage = ANY(%(ids)s)"""
CHOSEN = """
    SELECT passages.id, block, agent, label, kind, substr(text, start + 1, length), updated
    FROM quoth.passages JOIN quoth.blocks ON blocks.id = block WHERE passages.id = ANY(%s)"""
EXTENSION: LiteralString = "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"
PATH = """
    SELECT set_config('search_path', 'quoth, public, ' || quote_ident(nspname), false)
    FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"""
VECTORS = """
    CREATE TABLE IF NOT EXISTS quoth.vectors (
        passage bigint NOT NULL REFERENCES quoth.passages ON DELETE CASCADE,
        model text COLLATE "C" NOT NULL,
        vector vector NOT NULL,
        PRIMARY KEY (model, passage)
    )"""
REFERENCES = "CREATE INDEX vectors_passage ON quoth.vectors (passage)"  # for what is removed
WITHOUT_VECTOR = f"""
    SELECT passages.id, label || ': ' || substr(text, start + 1, length) {VISIBLE}
    AND NOT EXISTS (SELECT FROM quoth.vectors WHERE passage = passages.id AND model = %(model)s)
    ORDER BY passages.id DESC LIMIT %(batch)s"""  # noqa: S608
PUT_VECTOR = """
    INSERT INTO quoth.vectors (passage, model, vector) SELECT id, %s, %s FROM quoth.passages WHERE id = %s
    ON CONFLICT (model, passage) DO NOTHING"""


class Searched(Protocol):
    """The memory of an agent, and what is searched with it."""

    agent_id: str
    user: str
    store: Callable[[], Store] | None
    embedder: Embedder | None

    async def in_thread(self, work: Callable[[Connection[Any], bool], tuple[T, bool]]) -> T: ...


async def search(
    memory: Searched, query: str, scope: SearchScope, options: SearchOptions
) -> Sequence[SearchHit]:
    """The best hits for a query, in the blocks that the agent may see and, where ``options`` name them, in
    the conversations of the workspace. Raises ToolError."""
    check_scope(scope)
    words = words_of(query)
    hits: list[SearchHit] = []
    if options.domain != "archival_memory" and scope != "shared":
        hits += await _conversations(memory, query, scope, options)
    if options.domain != "conversations":
        hits += await _blocks(memory, words, scope, options)
    return sorted(hits, key=lambda hit: -hit.score)[: options.limit]


async def missing(memory: Searched) -> str:
    """What the search by meaning lacks, as a sentence; empty when it lacks nothing."""
    if memory.embedder is None:
        return NO_MEANING
    return await memory.in_thread(lambda connection, _: (_prepared(connection), False))


async def _conversations(
    memory: Searched, query: str, scope: SearchScope, options: SearchOptions
) -> Sequence[SearchHit]:
    if memory.store is None:
        if options.domain == "all":
            return []
        raise ToolError("There are no conversations to search here: they are in the store of a workspace.")
    here = replace(options, domain="conversations")
    searching = import_module("quoth.tools.memory.search")
    hits: Sequence[SearchHit] = await searching.search(
        memory.store, memory.agent_id, query, scope, here, memory.embedder, user=memory.user
    )
    return hits


@dataclass(frozen=True)
class Meaning:
    """What a query means to a model."""

    model: str
    vector: Vector


async def _blocks(
    memory: Searched, words: list[str], scope: SearchScope, options: SearchOptions
) -> Sequence[SearchHit]:
    asked = {
        "agent": memory.agent_id,
        "own": scope != "shared",
        "shared": scope != "agent",
        "any": options.domain == "all",
        "since": options.since,
        "until": options.until,
        "pool": POOL,
        "batch": BATCH,
    }
    text, meaning = " ".join(words), None
    try:
        if lack := await missing(memory):
            raise ToolError(lack)
        meaning = await _meaning(memory, text, asked)
    except ToolError:
        if options.semantic:
            raise

    def in_transaction(connection: Connection[Any], _: bool) -> tuple[list[SearchHit], bool]:
        return _found(connection, text, asked, meaning, options), False

    return await memory.in_thread(in_transaction)


async def _meaning(memory: Searched, text: str, asked: dict[str, Any]) -> Meaning:
    """What a query means to the model of the memory, which has embedded what is new before."""
    embedder = memory.embedder
    assert embedder is not None
    await _embed_new(memory, embedder, asked)
    (vector,) = await embedder.embed([text])
    return Meaning(embedder.name, _vector(vector))


def _found(
    connection: Connection[Any],
    text: str,
    asked: dict[str, Any],
    meaning: Meaning | None,
    options: SearchOptions,
) -> list[SearchHit]:
    """The best hits, one for each block: how well the words match, beside the best match there is, and how
    near the meaning is are added."""
    said: dict[int, float] = {}
    meant: dict[int, float] = {}
    stems = [] if options.semantic else connection.execute(STEMS, (text,)).fetchall()
    if stems:
        said = dict(connection.execute(BY_WORDS.encode(), {**asked, "stems": _any_of(stems)}).fetchall())
    if meaning is not None:
        _prepared(connection)
        asked = {**asked, "vector": meaning.vector, "model": meaning.model, "ids": list(said)}
        for sql in (BY_MEANING, MEANINGS):
            meant |= dict(connection.execute(sql.encode(), asked).fetchall())
    parts = added_up(said, meant)
    ranked = sorted(parts, key=lambda id: (-sum(parts[id].values()), -id))[: 2 * options.limit]
    rows = {row[0]: row for row in connection.execute(CHOSEN, (ranked,)).fetchall()}
    hits = {rows[id][1]: _hit(rows[id], parts[id], asked["agent"]) for id in reversed(ranked)}
    return sorted(hits.values(), key=lambda hit: -hit.score)[: options.limit]


def _hit(row: tuple[Any, ...], parts: dict[str, float], agent: str) -> SearchHit:
    _, _, owner, label, kind, text, updated = row
    shown = owner if owner != agent else ""
    return SearchHit(label, text, sum(parts.values()), f"{kind}_memory", updated, shown, parts)


def _any_of(stems: Sequence[tuple[str]]) -> str:
    """The tsquery that asks for any of these lexemes, each quoted."""
    quoted = (stem.replace("\\", "\\\\").replace("'", "''") for (stem,) in stems)
    return " | ".join(f"'{stem}'" for stem in quoted)


# Vectors


def _prepared(connection: Connection[Any]) -> str:
    """Make the table of vectors if it is not there, and vectors known to the connection. Returns what is
    missing for that, as a sentence; empty when nothing is."""
    from pgvector.psycopg import register_vector
    from psycopg import errors

    if connection.adapters.types.get("vector") is not None:
        return ""
    try:
        with connection.transaction():
            connection.execute(EXTENSION)
            connection.execute(PATH)  # somebody may have added it to another schema
            if connection.execute("SELECT to_regclass('quoth.vectors')").fetchall() == [(None,)]:
                connection.execute(VECTORS)
                connection.execute(REFERENCES)
    except (errors.UndefinedFile, errors.FeatureNotSupported):
        return NO_EXTENSION.format("the server does not have pgvector")
    except errors.InsufficientPrivilege:
        return NO_EXTENSION.format("a person who owns the database must do CREATE EXTENSION vector")
    register_vector(connection)
    return ""


async def _embed_new(memory: Searched, embedder: Embedder, asked: dict[str, Any]) -> None:
    """Embed the passages that have no vector of this model, the newest first, for about SECONDS."""
    end = time.monotonic() + SECONDS
    asked = {**asked, "model": embedder.name}

    def waiting(connection: Connection[Any], _: bool) -> tuple[list[Any], bool]:
        return connection.execute(WITHOUT_VECTOR.encode(), asked).fetchall(), False

    while rows := await memory.in_thread(waiting):
        vectors = await vectors_of(embedder, [text for _, text in rows])
        given = [
            (embedder.name, _vector(vector), passage)
            for (passage, _), vector in zip(rows, vectors, strict=True)
        ]

        def put(connection: Connection[Any], _: bool, given: Sequence[Any] = given) -> tuple[None, bool]:
            with connection.cursor() as cursor:
                cursor.executemany(PUT_VECTOR, given)
            return None, False

        await memory.in_thread(put)
        if time.monotonic() >= end:
            return


def _vector(stored: bytes) -> Vector:
    from pgvector import Vector

    numbers = array("f")
    numbers.frombytes(stored)
    return Vector(numbers.tolist())
