"""Search of the memory blocks in PostgreSQL: by their words (tsvector) and by their meaning (pgvector).

It knows tables and ranks; it must not know the ACL, tools or models. What is searched for is data: no text of
a query is ever read as syntax.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from quoth.tools.call.service_types import SearchHit, SearchOptions, SearchScope, check_scope
from quoth.tools.call.services import Embedder
from quoth.tools.errors import ToolError

if TYPE_CHECKING:
    from pgvector import Vector
    from psycopg import Connection

    from quoth.tools.memory.postgres import PostgresMemory

LONGEST: Final = 10_000  # characters of a query
WORDS: Final = 100  # of a query that are looked for
NEAREST: Final = 100  # by words, and by meaning, of which the best are chosen
MEANING: Final = 0.3  # what the meaning weighs where the words of the best hit weigh 1; measured
EMBEDDED: Final = 4_000  # characters of a text that make its vector
BATCH: Final = 256  # texts that are embedded at once
SECONDS: Final = 3.0  # of one search that go into embedding what is new; the rest waits for the next one

# The stems of a query; its stop words count only when it has no others.
STEMS = """
    SELECT lexeme FROM unnest(CASE WHEN to_tsvector('english', %(query)s) = '' THEN
    to_tsvector('quoth.words', %(query)s) ELSE to_tsvector('english', %(query)s) END) LIMIT %(words)s"""
MINE = """
    SELECT id FROM quoth.blocks WHERE (%(own)s AND agent = %(agent)s OR %(shared)s AND id IN
        (SELECT block FROM quoth.block_shares WHERE block_shares.agent = %(agent)s))
    AND (%(any)s OR kind = 'archival') AND (%(since)s = '' OR updated >= %(since)s)
    AND (%(until)s = '' OR updated < %(until)s)"""
BY_WORDS = f"""
    SELECT id, ts_rank(words, %(stems)s::tsquery) FROM quoth.blocks WHERE words @@ %(stems)s::tsquery
    AND id IN ({MINE}) ORDER BY 2 DESC, id LIMIT %(nearest)s"""  # noqa: S608
BY_MEANING = f"""
    SELECT block, -(vector <#> %(vector)s) FROM quoth.vectors WHERE model = %(model)s
    AND block IN ({MINE}) ORDER BY vector <#> %(vector)s, block LIMIT %(nearest)s"""  # noqa: S608
MEANINGS = """
    SELECT block, -(vector <#> %(vector)s) FROM quoth.vectors WHERE model = %(model)s
    AND block = ANY(%(ids)s)"""
CHOSEN = "SELECT id, agent, label, text, kind, updated FROM quoth.blocks WHERE id = ANY(%(ids)s)"
PATH = """
    SELECT set_config('search_path', 'quoth, public, ' || quote_ident(nspname), false)
    FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"""
VECTORS = """
    CREATE TABLE IF NOT EXISTS quoth.vectors (
        block bigint NOT NULL REFERENCES quoth.blocks ON DELETE CASCADE,
        model text NOT NULL,
        version integer NOT NULL,
        vector vector NOT NULL,
        PRIMARY KEY (model, block)
    )"""
WITHOUT_VECTOR = f"""
    SELECT id, version, label || E'\\n' || left(text, {EMBEDDED}) FROM quoth.blocks
    WHERE id IN ({MINE}) AND NOT EXISTS (SELECT FROM quoth.vectors WHERE block = id AND model = %(model)s
    AND vectors.version = blocks.version) ORDER BY id DESC LIMIT %(batch)s"""  # noqa: S608
PUT_VECTOR = """
    INSERT INTO quoth.vectors (block, model, version, vector) SELECT id, %s, %s, %s FROM quoth.blocks
    WHERE id = %s ON CONFLICT (model, block) DO UPDATE SET version = excluded.version,
    vector = excluded.vector"""


async def search(
    memory: PostgresMemory, query: str, scope: SearchScope, options: SearchOptions
) -> Sequence[SearchHit]:
    """The best hits for a query, in the blocks that the agent may see and, where ``options`` name them, in
    the conversations of the workspace. Raises ToolError."""
    check_scope(scope)
    if len(query) > LONGEST:
        raise ToolError(f"A query has at most {LONGEST:,} characters, and this one has {len(query):,}.")
    hits: list[SearchHit] = []
    if options.domain != "archival_memory" and scope != "shared":
        hits += await _conversations(memory, query, scope, options)
    if options.domain != "conversations":
        hits += await _blocks(memory, query, scope, options)
    return sorted(hits, key=lambda hit: -hit.score)[: options.limit]


async def missing(memory: PostgresMemory) -> str:
    """What the search for meaning lacks; empty when it lacks nothing."""
    if memory.embedder is None:
        return "a model for meanings: pip install 'quoth[vectors]'"
    return await memory.in_thread(lambda connection, _: (_prepared(connection), False))


async def _conversations(
    memory: PostgresMemory, query: str, scope: SearchScope, options: SearchOptions
) -> Sequence[SearchHit]:
    if memory.store is None:
        if options.domain == "all":
            return []
        raise ToolError("There are no conversations to search here: they are in the store of a workspace.")
    here = replace(options, domain="conversations")
    searching = import_module("quoth.tools.memory.search")
    hits: Sequence[SearchHit] = await searching.search(
        memory.store, memory.agent_id, query, scope, here, memory.embedder
    )
    return hits


@dataclass(frozen=True)
class Meaning:
    """What a query means to a model."""

    model: str
    vector: Vector


async def _blocks(
    memory: PostgresMemory, query: str, scope: SearchScope, options: SearchOptions
) -> Sequence[SearchHit]:
    text = query.replace("\0", " ").encode(errors="replace").decode()
    asked = {
        "query": text,
        "agent": memory.agent_id,
        "own": scope != "shared",
        "shared": scope != "agent",
        "any": options.domain == "all",
        "since": options.since,
        "until": options.until,
        "words": WORDS,
        "nearest": max(NEAREST, options.limit),
    }
    meaning = None
    lack = await missing(memory)
    if memory.embedder is not None and not lack and text.strip():
        await _embed_new(memory, memory.embedder, asked)
        (vector,) = await memory.embedder.embed([text])
        meaning = Meaning(memory.embedder.name, _vector(vector))
    elif options.semantic and lack:
        raise ToolError(f"The search for meaning lacks {lack}. Search for words instead.")

    def in_transaction(connection: Connection[Any], _: bool) -> tuple[list[SearchHit], bool]:
        return _found(connection, asked, meaning, options), False

    return await memory.in_thread(in_transaction)


def _found(
    connection: Connection[Any], asked: dict[str, Any], meaning: Meaning | None, options: SearchOptions
) -> list[SearchHit]:
    """The best hits by words and meaning together: the rank of the words, as part of the best one, and the
    nearness of the meaning are added."""
    by_words: dict[int, float] = {}
    by_meaning: dict[int, float] = {}
    stems = [] if options.semantic else connection.execute(STEMS, asked).fetchall()
    if stems:
        ranks = connection.execute(BY_WORDS.encode(), {**asked, "stems": _any_of(stems)}).fetchall()
        best = max((rank for _, rank in ranks), default=0.0) or 1.0
        by_words = {row: rank / best for row, rank in ranks}
    if meaning is not None:
        _prepared(connection)
        asked = {**asked, "vector": meaning.vector, "model": meaning.model, "ids": list(by_words)}
        for sql in (BY_MEANING, MEANINGS):
            by_meaning |= dict(connection.execute(sql.encode(), asked).fetchall())
    parts: dict[int, dict[str, float]] = {row: {} for row in {**by_words, **by_meaning}}
    weight = 1.0 if options.semantic else MEANING
    for row, part in parts.items():
        if row in by_words:
            part["words"] = by_words[row]
        if row in by_meaning:
            part["meaning"] = weight * by_meaning[row]
    chosen = sorted(parts, key=lambda row: (-sum(parts[row].values()), row))[: options.limit]
    rows = {row[0]: row for row in connection.execute(CHOSEN, {"ids": chosen}).fetchall()}
    return [_hit(rows[row], parts[row], asked["agent"]) for row in chosen]


def _hit(row: tuple[Any, ...], parts: dict[str, float], agent: str) -> SearchHit:
    _, owner, label, text, kind, updated = row
    source = "archival_memory" if kind == "archival" else f"{kind} memory"
    return SearchHit(
        label, text, sum(parts.values()), source, updated, owner if owner != agent else "", parts
    )


def _any_of(stems: Sequence[tuple[str]]) -> str:
    """The tsquery that asks for any of these lexemes, each quoted."""
    quoted = (stem.replace("\\", "\\\\").replace("'", "''") for (stem,) in stems)
    return " | ".join(f"'{stem}'" for stem in quoted)


# Vectors


def _prepared(connection: Connection[Any]) -> str:
    """Make the table of vectors if it is not there, and vectors known to the connection. What is missing for
    that; empty when nothing is."""
    from pgvector.psycopg import register_vector
    from psycopg import errors

    if connection.adapters.types.get("vector") is not None:
        return ""
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            connection.execute(PATH)  # somebody may have added it to another schema
            if connection.execute("SELECT to_regclass('quoth.vectors')").fetchall() == [(None,)]:
                connection.execute(VECTORS)
    except (errors.UndefinedFile, errors.FeatureNotSupported):
        return "the extension vector, which the server does not have (pgvector)"
    except errors.InsufficientPrivilege:
        return "the extension vector, which the owner of the database adds: CREATE EXTENSION vector"
    register_vector(connection)
    return ""


async def _embed_new(memory: PostgresMemory, embedder: Embedder, asked: dict[str, Any]) -> None:
    """Give vectors to the texts that have none of this model, the newest first, for some seconds."""
    ends = time.monotonic() + SECONDS
    model = embedder.name
    while time.monotonic() < ends:
        rows = await memory.in_thread(
            lambda connection, _: (
                connection.execute(
                    WITHOUT_VECTOR.encode(), {**asked, "model": model, "batch": BATCH}
                ).fetchall(),
                False,
            )
        )
        if not rows:
            return
        vectors = await embedder.embed([text for _, _, text in rows])
        given = [
            (model, version, _vector(vector), row)
            for (row, version, _), vector in zip(rows, vectors, strict=True)
        ]

        def put(connection: Connection[Any], _: bool, given: Sequence[Any] = given) -> tuple[None, bool]:
            with connection.cursor() as cursor:
                cursor.executemany(PUT_VECTOR, given)
            return None, False

        await memory.in_thread(put)


def _vector(stored: bytes) -> Vector:
    from pgvector import Vector

    numbers = array("f")
    numbers.frombytes(stored)
    return Vector(numbers.tolist())
