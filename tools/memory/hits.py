"""Reads the passages that a search found, and says of each what its score is made of.

It must not know how passages are ranked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quoth.tools.call.service_types import SearchHit
from quoth.tools.memory.passages import turns_at
from quoth.tools.storage.database import Store

PLACES: Final = """
    SELECT passages.id, block, passages.session, indexed_sessions.session, passages.seq, start, length,
    label, kind, description, agent, updated, substr(text, start + 1, length),
    start > 0 OR substr(text, start + length + 1, 1) != ''
    FROM passages LEFT JOIN blocks ON blocks.id = block
    LEFT JOIN indexed_sessions ON indexed_sessions.id = passages.session WHERE passages.id IN ({})"""

Parts = Callable[[int], Mapping[str, float]]


@dataclass(frozen=True)
class Passage:
    """A passage as it is read: a part of the block or turn ``whole``."""

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
        """What is embedded of it: the text with its speaker, or its label, before it."""
        return self.text if self.source == "conversations" else f"{self.label}: {self.text}"


def read_passages(store: Store, ids: Sequence[int]) -> Iterator[Passage]:
    """These passages, as far as they are still there."""
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
    """The hits for the best passages: one for each block and each turn, and but one where a fork of a session
    says the same once more."""
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
    """How much of the words' part is owed to a passage's own words, and not to its neighbours. FTS5 tells but
    the sum: here a word of a neighbour counts half as much as one of the passage."""
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
    """The parts of a score, with what neighbours add to the words as a part of its own."""
    split = dict(parts)
    if split.get("words") and own < 1:
        split |= {"words": parts["words"] * own, "neighbours": parts["words"] * (1 - own)}
    return {name: split[name] for name in ("words", "neighbours", "meaning") if split.get(name)}
