"""``PostgresMemory``: memory blocks in a PostgreSQL database that agents on several machines can share.

Blocks are searched by words (tsvector) and by meaning (pgvector). A query is data: its text is never read as
syntax. Permissions are checked in operations.py; the connection is in postgres_server.py.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeVar

from quoth.tools.call.service_types import (
    Block,
    BlockKind,
    SearchDomain,
    SearchHit,
    SearchOptions,
    SearchScope,
    check_scope,
)
from quoth.tools.call.services import Embedder
from quoth.tools.errors import ToolError
from quoth.tools.memory.blocks import BlockMemory
from quoth.tools.memory.passages import LONGEST, split
from quoth.tools.memory.postgres_server import STATEMENT_SECONDS, Postgres
from quoth.tools.memory.search import NO_MEANING, POOL, added_up, search, words_of
from quoth.tools.memory.stored import Blocks, Delta
from quoth.tools.memory.vectors import BATCH, SECONDS, vectors_of
from quoth.tools.storage.database import Store

if TYPE_CHECKING:
    from pgvector import Vector
    from psycopg import Connection

T = TypeVar("T")

PATIENCE: Final = 3.0 * STATEMENT_SECONDS  # for a server that accepts a statement and never answers

# Each entry migrates the schema from version n to n + 1; a released entry is never edited. Words are stemmed
# as English; words of other languages mostly stay as they are. Stop words are kept, so that a query of stop
# words only still finds something.
MIGRATIONS: Final = (
    """
    CREATE TEXT SEARCH DICTIONARY quoth.stems (TEMPLATE = snowball, LANGUAGE = english);
    CREATE TEXT SEARCH CONFIGURATION quoth.words (COPY = english);
    ALTER TEXT SEARCH CONFIGURATION quoth.words
        ALTER MAPPING FOR asciiword, word, asciihword, hword, hword_asciipart, hword_part WITH quoth.stems;
    CREATE TABLE quoth.blocks (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        agent text COLLATE "C" NOT NULL,
        label text COLLATE "C" NOT NULL,
        text text NOT NULL,
        kind text COLLATE "C" NOT NULL,
        permission text NOT NULL,
        description text NOT NULL,
        size integer NOT NULL,
        version integer NOT NULL,
        created text COLLATE "C" NOT NULL,
        updated text COLLATE "C" NOT NULL,
        writer text NOT NULL,
        UNIQUE (agent, label)
    );
    CREATE INDEX blocks_kind ON quoth.blocks (agent, kind) WHERE kind != 'archival';
    CREATE TABLE quoth.block_versions (
        block bigint NOT NULL REFERENCES quoth.blocks ON DELETE CASCADE,
        version integer NOT NULL,
        head integer NOT NULL,
        tail integer NOT NULL,
        middle text NOT NULL,
        at text NOT NULL,
        writer text NOT NULL,
        PRIMARY KEY (block, version)
    );
    CREATE TABLE quoth.block_shares (
        block bigint NOT NULL REFERENCES quoth.blocks ON DELETE CASCADE,
        agent text COLLATE "C" NOT NULL,
        permission text NOT NULL,
        PRIMARY KEY (agent, block)
    );
    CREATE INDEX block_shares_block ON quoth.block_shares (block);
    CREATE TABLE quoth.passages (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        block bigint NOT NULL REFERENCES quoth.blocks ON DELETE CASCADE,
        start integer NOT NULL,
        length integer NOT NULL,
        words tsvector NOT NULL,
        UNIQUE (block, start)
    );
    CREATE INDEX passages_words ON quoth.passages USING gin (words);
    """,
)

# The column ``size`` is the limit, and ``writer`` is Block.by.
COLUMNS = "label, text, kind, blocks.permission, description, size, version, created, updated, writer"
GET = f"SELECT {COLUMNS} FROM quoth.blocks WHERE agent = %s"  # noqa: S608
ADD = """
    INSERT INTO quoth.blocks (label, text, kind, permission, description, size, version, created, updated,
    writer, agent) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id"""
CHANGE = """
    WITH changed AS (
        UPDATE quoth.blocks SET text = %s, kind = %s, permission = %s, description = %s, size = %s,
        version = %s, created = %s, updated = %s, writer = %s WHERE agent = %s AND label = %s RETURNING id
    )
    INSERT INTO quoth.block_versions (block, version, head, tail, middle, at, writer)
    SELECT id, %s, %s, %s, %s, %s, %s FROM changed RETURNING block"""
BACK = attrgetter("version", "head", "tail", "middle", "at", "by")
SHARED = f"""
    SELECT blocks.agent, block_shares.permission, {COLUMNS} FROM quoth.block_shares
    JOIN quoth.blocks ON blocks.id = block WHERE block_shares.agent = %s"""  # noqa: S608
STORED = attrgetter(
    *("label", "text", "kind", "permission", "description", "limit", "version", "created", "updated", "by")
)

# Search

NO_EXTENSION: Final = "Only words can be searched, because the database cannot compare meanings: {}."

STEMS = "SELECT lexeme FROM unnest(to_tsvector('quoth.words', %s))"
VISIBLE = """
    FROM quoth.passages JOIN quoth.blocks ON blocks.id = passages.block
    WHERE (%(own)s AND agent = %(agent)s OR %(shared)s AND blocks.id IN
        (SELECT block FROM quoth.block_shares WHERE block_shares.agent = %(agent)s))
    AND (%(any)s OR kind = 'archival') AND (%(since)s = '' OR updated >= %(since)s)
    AND (%(until)s = '' OR updated < %(until)s)"""
# The best passage of each of the best blocks.
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
REFERENCES = "CREATE INDEX vectors_passage ON quoth.vectors (passage)"  # for removals
WITHOUT_VECTOR = f"""
    SELECT passages.id, label || ': ' || substr(text, start + 1, length) {VISIBLE}
    AND NOT EXISTS (SELECT FROM quoth.vectors WHERE passage = passages.id AND model = %(model)s)
    ORDER BY passages.id DESC LIMIT %(batch)s"""  # noqa: S608
PUT_VECTOR = """
    INSERT INTO quoth.vectors (passage, model, vector) SELECT id, %s, %s FROM quoth.passages WHERE id = %s
    ON CONFLICT (model, passage) DO NOTHING"""


class PostgresMemory(BlockMemory):
    """MemoryStore, Search and SharedBlocks of one agent in the database at ``url``. Conversations are
    searched in ``store``, the transcripts of the workspace. Without an ``embedder`` or without pgvector, only
    words are searched. Call ``close`` at the end."""

    def __init__(
        self,
        url: str,
        agent_id: str,
        *,
        store: Callable[[], Store] | None = None,
        embedder: Embedder | None = None,
        **options: Any,
    ) -> None:
        super().__init__(agent_id, **options)
        self.server = Postgres(url, MIGRATIONS)
        self.store = store
        self.embedder = embedder

    async def _atomically(self, work: Callable[[Blocks], T]) -> T:
        def in_transaction(connection: Connection[Any], locking: bool) -> tuple[T, bool]:
            blocks = PostgresBlocks(connection, self.agent_id, locking)
            return work(blocks), blocks.wrote

        return await self.in_thread(in_transaction)

    async def in_thread(self, work: Callable[[Connection[Any], bool], tuple[T, bool]]) -> T:
        """Run ``work`` in a transaction (``Postgres.run``), in a thread, while other tasks continue."""
        loop = asyncio.get_running_loop()
        inside = contextvars.copy_context()
        result = loop.run_in_executor(None, lambda: inside.run(self.server.run, work))
        alarm = loop.call_later(PATIENCE, self.server.hang_up)

        def settled(done: asyncio.Future[T]) -> None:
            alarm.cancel()
            done.cancelled() or done.exception()  # its waiter may be gone

        result.add_done_callback(settled)
        return await asyncio.shield(result)

    def close(self) -> None:
        """Close the connection to the server. May be called twice."""
        self.server.close()

    async def count_blocks(self, kind: BlockKind) -> int:
        ((count,),) = await self._rows(
            "SELECT count(*) FROM quoth.blocks WHERE agent = %s AND kind = %s", self.agent_id, kind
        )
        return int(count)

    async def usage(self) -> list[tuple[str, str, int, int]]:
        """For each agent in this database and each kind: the number of blocks and of characters."""
        return await self._rows(
            "SELECT agent, kind, count(*), sum(length(text)) FROM quoth.blocks GROUP BY agent, kind"
            " ORDER BY agent, strpos('core working archival', kind)"
        )

    async def outline(self, limit: int) -> list[tuple[Any, ...]]:
        """The first blocks of the agent without their texts: label, kind, permission, characters, version,
        time and author of the last change, description."""
        return await self._rows(
            "SELECT label, kind, permission, length(text), version, updated, writer, description"
            " FROM quoth.blocks WHERE agent = %s ORDER BY strpos('core working archival', kind), label"
            " LIMIT %s",
            self.agent_id,
            limit,
        )

    async def _rows(self, sql: LiteralString, *values: Any) -> list[Any]:
        return await self.in_thread(lambda connection, _: (connection.execute(sql, values).fetchall(), False))

    async def search_blocks(
        self, query: str, limit: int = 10, domain: SearchDomain = "archival_memory"
    ) -> Sequence[SearchHit]:
        return await self.search(query, "agent", SearchOptions(limit, domain))

    async def search(self, query: str, scope: SearchScope, options: SearchOptions) -> Sequence[SearchHit]:
        """The best hits for a query, in the blocks that the agent may see and, if ``options`` include them,
        in the conversations of the workspace. Raises ToolError."""
        check_scope(scope)
        words = words_of(query)
        hits: list[SearchHit] = []
        if options.domain != "archival_memory" and scope != "shared":
            hits += await self._conversations(query, scope, options)
        if options.domain != "conversations":
            hits += await self._blocks(words, scope, options)
        return sorted(hits, key=lambda hit: -hit.score)[: options.limit]

    async def missing(self) -> str:
        """Why search by meaning is not available, as a sentence; empty if it is available."""
        if self.embedder is None:
            return NO_MEANING
        return await self.in_thread(lambda connection, _: (_prepared(connection), False))

    async def _conversations(
        self, query: str, scope: SearchScope, options: SearchOptions
    ) -> Sequence[SearchHit]:
        if self.store is None:
            if options.domain == "all":
                return []
            raise ToolError("Conversations cannot be searched here: they are in the store of a workspace.")
        here = replace(options, domain="conversations")
        return await search(self.store, self.agent_id, query, scope, here, self.embedder, user=self.user)

    async def _blocks(
        self, words: list[str], scope: SearchScope, options: SearchOptions
    ) -> Sequence[SearchHit]:
        asked = {
            "agent": self.agent_id,
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
            if lack := await self.missing():
                raise ToolError(lack)
            meaning = await self._meaning(text, asked)
        except ToolError:
            if options.semantic:
                raise

        def in_transaction(connection: Connection[Any], _: bool) -> tuple[list[SearchHit], bool]:
            return _found(connection, text, asked, meaning, options), False

        return await self.in_thread(in_transaction)

    async def _meaning(self, text: str, asked: dict[str, Any]) -> Meaning:
        """The vector of a query by the memory's model. New passages are embedded first."""
        embedder = self.embedder
        assert embedder is not None
        await self._embed_new(embedder, asked)
        (vector,) = await embedder.embed([text])
        return Meaning(embedder.name, _vector(vector))

    async def _embed_new(self, embedder: Embedder, asked: dict[str, Any]) -> None:
        """Embed the passages without a vector of this model, newest first, for about SECONDS seconds."""
        end = time.monotonic() + SECONDS
        asked = {**asked, "model": embedder.name}

        def waiting(connection: Connection[Any], _: bool) -> tuple[list[Any], bool]:
            return connection.execute(WITHOUT_VECTOR.encode(), asked).fetchall(), False

        while rows := await self.in_thread(waiting):
            vectors = await vectors_of(embedder, [text for _, text in rows])
            given = [
                (embedder.name, _vector(vector), passage)
                for (passage, _), vector in zip(rows, vectors, strict=True)
            ]

            def put(connection: Connection[Any], _: bool, given: Sequence[Any] = given) -> tuple[None, bool]:
                with connection.cursor() as cursor:
                    cursor.executemany(PUT_VECTOR, given)
                return None, False

            await self.in_thread(put)
            if time.monotonic() >= end:
                return


class PostgresBlocks:
    """``Blocks`` in the tables ``blocks``, ``block_versions`` and ``block_shares``. With ``locking``, a block
    read here is locked against other writers until this transaction ends."""

    def __init__(self, connection: Connection[Any], agent: str, locking: bool = False) -> None:
        self._connection = connection
        self._agent = agent
        self._lock = " FOR UPDATE OF blocks" if locking else ""
        self._held: dict[tuple[str, str], Block] = {}  # blocks read so far, by owner and label
        self.wrote = False

    def _run(self, sql: str, *values: Any) -> list[Any]:
        cursor = self._connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def _write(self, sql: str, *values: Any) -> list[Any]:
        self.wrote = True
        return self._run(sql, *values)

    def get(self, label: str, owner: str = "") -> Block | None:
        rows = self._run(GET + " AND label = %s" + self._lock, owner or self._agent, label)
        if not rows:
            return None
        self._held[owner, label] = block = _block(rows[0], owner)
        return block

    def all(self, kind: BlockKind | None = None) -> list[Block]:
        where, values = "", [self._agent]
        if kind is not None:
            where = " AND kind = %s" + (" AND kind != 'archival'" if kind != "archival" else "")  # its index
            values.append(kind)
        return [_block(row) for row in self._run(GET + where, *values)]

    def labels(self, beginning: str, most: int) -> list[str]:
        rows = self._run(
            "SELECT label FROM quoth.blocks WHERE agent = %s AND label >= %s AND starts_with(label, %s)"
            " ORDER BY label LIMIT %s",
            *(self._agent, beginning, beginning, most),
        )
        return [str(label) for (label,) in rows]

    def put(self, block: Block, before: Delta | None = None) -> None:
        owner = block.owner or self._agent
        values = STORED(block)
        if before is None:
            ((row,),) = self._write(ADD, *values, owner)
            self._index(row, block, 0)
            return
        ((row,),) = self._write(CHANGE, *values[1:], owner, block.label, *BACK(before))
        held = self._held.pop((block.owner, block.label), None)
        if held is None or held.description != block.description:  # every passage contains it
            self._index(row, block, 0)
        elif held.text != block.text:
            self._index(row, block, before.head)

    def _index(self, row: int, block: Block, head: int) -> None:
        """Index the passages of a block, except the ones that end well within the first ``head`` characters:
        these are unchanged."""
        self._run("DELETE FROM quoth.passages WHERE block = %s AND start >= %s", row, head - LONGEST)
        start = 0
        if head > LONGEST:
            ((start,),) = self._run(
                "SELECT coalesce(max(start + length), 0) FROM quoth.passages WHERE block = %s", row
            )
        rest = block.text[start:]
        about = f"{block.label} {block.description} "
        passages = [
            (row, start + place, length, about + rest[place : place + length])
            for place, length in [*split(rest)] or ([] if start else [(0, 0)])  # an empty block has its label
        ]
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO quoth.passages (block, start, length, words)"
                " VALUES (%s, %s, %s, to_tsvector('quoth.words', %s))",
                passages,
            )

    def remove(self, label: str, owner: str = "") -> None:
        self._write("DELETE FROM quoth.blocks WHERE agent = %s AND label = %s", owner or self._agent, label)

    def versions(self, label: str, owner: str = "") -> list[Delta]:
        rows = self._run(
            "SELECT v.version, head, tail, middle, at, v.writer FROM quoth.block_versions AS v"
            " JOIN quoth.blocks ON id = block WHERE agent = %s AND label = %s ORDER BY v.version DESC",
            *(owner or self._agent, label),
        )
        return [Delta(*row) for row in rows]

    def shared(self, label: str = "") -> list[tuple[Block, str]]:
        where, values = (" AND label = %s" + self._lock, [label]) if label else ("", [])
        rows = self._run(SHARED + where, self._agent, *values)
        found = [(_block(row, owner), bound) for owner, bound, *row in rows]
        self._held |= {(block.owner, block.label): block for block, _ in found}
        return found

    def shares(self, label: str) -> dict[str, str]:
        rows = self._run(
            "SELECT s.agent, s.permission FROM quoth.block_shares AS s JOIN quoth.blocks AS b ON id = block"
            " WHERE b.agent = %s AND label = %s ORDER BY s.agent",
            *(self._agent, label),
        )
        return dict(rows)

    def share(self, label: str, agent: str, permission: str | None) -> None:
        if permission is None:
            self._write(
                "DELETE FROM quoth.block_shares AS s USING quoth.blocks AS b WHERE id = block"
                " AND b.agent = %s AND label = %s AND s.agent = %s",
                *(self._agent, label, agent),
            )
            return
        self._write(
            "INSERT INTO quoth.block_shares (block, agent, permission)"
            " SELECT id, %s, %s FROM quoth.blocks WHERE agent = %s AND label = %s"
            " ON CONFLICT (agent, block) DO UPDATE SET permission = excluded.permission",
            *(agent, permission, self._agent, label),
        )


def _block(row: Sequence[Any], owner: str = "") -> Block:
    return Block(*(*row[:5], owner, *row[5:]))


# Searching


@dataclass(frozen=True)
class Meaning:
    """The vector of a query, and the model it belongs to."""

    model: str
    vector: Vector


def _found(
    connection: Connection[Any],
    text: str,
    asked: dict[str, Any],
    meaning: Meaning | None,
    options: SearchOptions,
) -> list[SearchHit]:
    """The best hits, one for each block. A score is the sum of two parts: how well the words match, relative
    to the best match, and how near the meaning is."""
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
    """The tsquery for any of these lexemes, each quoted."""
    quoted = (stem.replace("\\", "\\\\").replace("'", "''") for (stem,) in stems)
    return " | ".join(f"'{stem}'" for stem in quoted)


# Vectors


def _prepared(connection: Connection[Any]) -> str:
    """Create the table of vectors if it is missing, and register the vector type with the connection. Returns
    why that is not possible, as a sentence, or an empty text."""
    from pgvector.psycopg import register_vector
    from psycopg import errors

    if connection.adapters.types.get("vector") is not None:
        return ""
    try:
        with connection.transaction():
            connection.execute(EXTENSION)
            connection.execute(PATH)  # the extension may be in another schema
            if connection.execute("SELECT to_regclass('quoth.vectors')").fetchall() == [(None,)]:
                connection.execute(VECTORS)
                connection.execute(REFERENCES)
    except (errors.UndefinedFile, errors.FeatureNotSupported):
        return NO_EXTENSION.format("the server does not have pgvector")
    except errors.InsufficientPrivilege:
        return NO_EXTENSION.format("the owner of the database must run CREATE EXTENSION vector")
    register_vector(connection)
    return ""


def _vector(stored: bytes) -> Vector:
    from pgvector import Vector

    numbers = array("f")
    numbers.frombytes(stored)
    return Vector(numbers.tolist())
