"""Searches memory blocks and conversations in the store of a workspace, by words and by meaning.

The score of a hit is the sum of two parts between 0 and 1: how well its words match, relative to the best
match, and how near it is in meaning. The words of its neighbours count too, but less. The weights are the
best ones measured by tests/bench/memory.py. One SQL condition on agent, user and shares decides which blocks
and conversations are visible; the ACL is checked elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from quoth.tools.call.context import running_context
from quoth.tools.call.service_types import SearchHit, SearchOptions, SearchScope, check_scope
from quoth.tools.call.services import Embedder
from quoth.tools.errors import StoreError, ToolError
from quoth.tools.history.outline import opened_by
from quoth.tools.installing import install_extra
from quoth.tools.memory import vectors
from quoth.tools.memory.passages import catch_up, turns_at
from quoth.tools.storage.database import Store
from quoth.tools.words import STOP_WORDS, WORD

# Reading the passages found, with the parts of their scores.


PLACES: Final = """
    SELECT passages.id, block, passages.session, indexed_sessions.session, passages.seq, start, length,
    label, kind, description, agent, updated, substr(text, start + 1, length),
    start > 0 OR substr(text, start + length + 1, 1) != ''
    FROM passages LEFT JOIN blocks ON blocks.id = block
    LEFT JOIN indexed_sessions ON indexed_sessions.id = passages.session WHERE passages.id IN ({})"""

Parts = Callable[[int], Mapping[str, float]]


@dataclass(frozen=True)
class Passage:
    """A passage with its text: a part of the block or turn ``whole``."""

    id: int
    whole: object
    label: str
    about: str
    text: str
    source: str
    at: str
    owner: str
    has_neighbours: bool

    @property
    def embedded(self) -> str:
        """The text to embed: the passage, preceded by its speaker or its label."""
        return self.text if self.source == "conversations" else f"{self.label}: {self.text}"


def read_passages(store: Store, ids: Sequence[int]) -> Iterator[Passage]:
    """Yield these passages; missing ones are left out."""
    marks = ", ".join("?" * len(ids))
    rows = store.execute(PLACES.format(marks), ids)
    wanted: dict[str, list[int]] = {}
    for row in rows:
        if row[2]:
            wanted.setdefault(row[3], []).append(row[4])
    said = {
        (session, turn.seq): turn
        for session, seqs in wanted.items()
        for turn in turns_at(store.execute, session, seqs)
    }
    for id, block, _, session, seq, start, length, *of_block in rows:
        if block:
            label, kind, description, owner, updated, text, more = of_block
            about, source = f"{label} {description}", f"{kind}_memory"
            yield Passage(id, block, label, about, text, source, updated, owner, bool(more))
        elif (turn := said.get((session, seq))) is not None:
            name, text = f"{session}.{seq}", f"{turn.speaker}: {turn.text[start : start + length]}"
            yield Passage(id, name, name, turn.about, text, "conversations", turn.at, "", True)


def read_hits(
    store: Store, ranked: Sequence[int], parts: Parts, limit: int, agent: str, words: Sequence[str]
) -> list[SearchHit]:
    """The hits for the best passages: one for each block and each turn. A turn that a forked session repeats
    is one hit."""
    found: list[Passage] = []
    known: set[object] = set()
    for start in range(0, len(ranked), limit):
        page = {one.id: one for one in read_passages(store, ranked[start : start + limit])}
        for one in filter(None, map(page.get, ranked[start : start + limit])):
            twice = one.source == "conversations" and one.text in known
            if one.whole not in known and not twice and len(found) < limit:
                found.append(one)
                known |= {one.whole, one.text}
        if len(found) == limit:
            break
    said = _shares(store, found, words)
    return [
        SearchHit(
            one.label,
            one.text,
            sum(parts(one.id).values()),
            one.source,
            one.at,
            "" if one.owner == agent else one.owner,
            _told(parts(one.id), said[one.id]),
        )
        for one in found
    ]


def _shares(store: Store, found: Sequence[Passage], words: Sequence[str]) -> dict[int, float]:
    """For each passage, the share of the words' part that its own words have, not its neighbours'. FTS5 gives
    only the sum; here a neighbour's word counts half as much as one of the passage."""
    share = {one.id: 1.0 for one in found}
    some = [one for one in found if one.has_neighbours]
    if not some:
        return share
    stems = store.tokenizer("porter", ["unicode61"])
    asked = {word: set(stems(word)) for word in words}
    own = {one.id: set(stems(f"{one.text} {one.about}")) for one in some}
    near = dict.fromkeys(own, 0)
    marks = ", ".join("?" * len(own))
    sql = f"SELECT rowid FROM passage_words WHERE passage_words MATCH ? AND rowid IN ({marks})"  # noqa: S608
    for word, parts in asked.items():
        lacking = [id for id, said in own.items() if not parts <= said]
        if lacking:
            for (id,) in store.execute(sql, (f'{{near far}} : "{word}"', *own)):
                near[id] += id in lacking
    for id, said in own.items():
        mine = sum(parts <= said for parts in asked.values())
        share[id] = mine / (mine + near[id] / 2) if mine or near[id] else 1.0
    return share


def _told(parts: Mapping[str, float], own: float) -> dict[str, float]:
    """The parts of a score, with the neighbours' words as a part of their own."""
    split = dict(parts)
    if split.get("words") and own < 1:
        split |= {"words": parts["words"] * own, "neighbours": parts["words"] * (1 - own)}
    return {name: split[name] for name in ("words", "neighbours", "meaning") if split.get(name)}


# Turning a query into words. The words are passed to FTS5 as quoted strings, so that none is read as an
# operator.


MOST_CHARS: Final = 10_000
MOST_WORDS: Final = 32  # maximum number of words, because each takes time
LONGEST_WORD: Final = 100


def words_of(query: str) -> list[str]:
    """The words to search for, in order, without duplicates. Raises ToolError."""
    if not isinstance(query, str) or not query.strip():
        raise ToolError('The query is empty. Give words to search for, such as "project deadline".')
    if len(query) > MOST_CHARS:
        raise ToolError(
            f"The query has {len(query):,} characters; the maximum is {MOST_CHARS:,}. Use a few words."
        )
    said = [word for word in dict.fromkeys(WORD.findall(query.lower())) if len(word) <= LONGEST_WORD]
    if not said:
        raise ToolError("The query contains no word: it needs letters or digits.")
    # If the query has only stop words, these are searched for.
    return ([word for word in said if word not in STOP_WORDS] or said)[:MOST_WORDS]


def fts_query(words: list[str]) -> str:
    """The FTS5 query for passages with any of the words."""
    return " OR ".join(f'"{word}"' for word in words)


WEIGHTS: Final = "1.0, 1.0, 0.5, 0.3"  # of the columns text, about, near (neighbours) and far (theirs)
MEANING: Final = 1.0  # weight of nearness in meaning, relative to words
NEAR: Final = 0.15  # minimum nearness of a hit whose words do not match
POOL: Final = 100  # minimum number of the best passages, by words and by meaning, that are ranked
NO_MEANING: Final = (
    "Only words can be searched, because no embedding model is installed. Install one with "
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
    """The state of the index: how much is indexed and embedded, by which model, and what is missing."""

    blocks: int
    turns: int
    passages: int
    waiting: int  # number of blocks that the next search will index first
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
    """The best hits in the blocks that the agent may see and in the user's conversations. ``older`` returns
    the embedder of a model used before. Raises ToolError if the query is invalid."""
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


def said_by(store: Store, users: Collection[str], query: str, limit: int) -> list[SearchHit]:
    """The best hits by words in the indexed conversations of these users, in sessions opened by these
    users only. Raises ToolError if the query is invalid."""
    own, values = opened_by(users)
    theirs = f"passages.session != 0 AND passages.user IN ({', '.join('?' * len(users))})"
    alone = f"SELECT {own} FROM indexed_sessions AS e WHERE e.id = passages.session"  # noqa: S608
    visible = _Condition(f"{theirs} AND ({alone})", (*users, *values))
    return _hits(store, words_of(query), None, visible, SearchOptions(limit, "conversations"), "")


async def _nearest(
    store: Store,
    words: list[str],
    embedder: Embedder,
    older: Callable[[str], Embedder | None],
    *,
    needed: bool,
) -> vectors.Nearest | None:
    """The nearest passages in meaning; None if that is not available, and the search uses words only."""
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
    """The texts of these passages to embed, by id."""
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
        if present := _present(store):  # the present conversation is not a memory
            number = "(SELECT id FROM indexed_sessions WHERE indexed_sessions.session = ?)"
            sides[-1] += f" AND NOT (passages.session IS {number} AND passages.seq >= ?)"
            values += present
    return _Condition(" OR ".join(f"({side})" for side in sides) or "0", tuple(values))


def _between(column: str, options: SearchOptions) -> tuple[str, list[str]]:
    times = [(f" AND {column} >= ?", options.since), (f" AND {column} < ?", options.until)]
    return "".join(sql for sql, bound in times if bound), [bound for _, bound in times if bound]


def _present(store: Store) -> tuple[str, int] | None:
    """The session of the running call and the first event of its present run; None if there is none."""
    context = running_context()
    if context is None:
        return None
    ((seq,),) = store.execute(
        "SELECT max(seq) FROM events WHERE session = ? AND kind = 'stimulus' AND instr(run, '/') = 0",
        (context.session,),
    )
    return (context.session, seq) if seq else None


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
    """The parts of the score of each hit: how well its words match, relative to the best match, and how near
    its meaning is. A passage whose words do not match is a hit only from NEAR on."""
    best = max(said.values(), default=0.0)
    words = {id: score / best if best > 0 else 0.0 for id, score in said.items()}
    means = {id: MEANING * near for id, near in meant.items() if near > 0}
    means = {id: near for id, near in means.items() if id in words or near >= MEANING * NEAR}
    of = {id: {"words": words.get(id, 0.0), "meaning": means.get(id, 0.0)} for id in {**words, **means}}
    return {id: {name: part for name, part in parts.items() if part} for id, parts in of.items()}


# Maintenance


def status(store: Store, embedder: Embedder | None) -> Status:
    """The state of the index, for a person."""

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
    """Rewrite the index and the file without removed texts, which SQLite would leave there until it reuses
    the space. Returns False if another process that uses the store prevented it; the next call then does
    it."""
    with suppress(StoreError):
        store.execute("INSERT INTO passage_words (passage_words) VALUES ('optimize')")
        store.compact()
        return True
    return False
