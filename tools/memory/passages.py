"""Splits blocks and conversation turns into passages, and keeps the word index of the passages up to date.

A passage is the unit of a search: a text of at most 1,000 characters. It is found by its own words, by the
words about it (label or speaker, date), and by the words of its neighbours. The index contains no text:
passages are read from their block or event.

A trigger records changed blocks, and new events are found by their numbers. So a write has no extra cost; the
next search indexes new passages.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from quoth.tools.history.event import Event, TranscriptError
from quoth.tools.storage.database import Statement, Store

LONGEST: Final = 1_000  # characters of a passage
BATCH: Final = 1_000  # blocks or events indexed in one transaction
AROUND: Final = 2  # number of neighbours before and after a passage

NEW_BLOCKS: Final = "SELECT 1 FROM unindexed_blocks LIMIT 1"
NEW_EVENTS: Final = """
    SELECT session, session_ends.seq - coalesce(indexed_sessions.seq, 0) AS new
    FROM session_ends LEFT JOIN indexed_sessions USING (session) WHERE new > 0"""
# The turns of people and models. A sub-agent's turns are left out: it talks to its caller.
TURNS: Final = """
    SELECT session, seq, at, run, kind, coalesce(shown, form) FROM events
    WHERE session = ? AND kind IN ('stimulus', 'reply') AND instr(run, '/') = 0"""
WORDS: Final = "INSERT OR REPLACE INTO passage_words (rowid, text, about, near, far) VALUES (?, ?, ?, ?, ?)"


@dataclass(frozen=True)
class Utterance:
    """One turn of a person or a model in a conversation."""

    seq: int
    at: str
    user: str  # owner of the conversation
    speaker: str
    text: str

    @property
    def about(self) -> str:
        """The speaker and the date, as words that people search for."""
        try:
            date = datetime.fromisoformat(self.at)
        except ValueError:  # an imported session may have any text here
            return self.speaker
        return f"{self.speaker} {date:%A} {date.day} {date:%B %Y}"


@dataclass(frozen=True)
class _Passage:
    id: int
    text: str
    about: str


_BREAK = re.compile(r"\s\S*\Z")


def split(text: str) -> Iterator[tuple[int, int]]:
    """The start and length of each passage of a text. Passages end at line ends if possible, otherwise
    between words."""
    start = 0
    while len(text) - start > LONGEST:
        end = start + LONGEST
        line = text.rfind("\n", start + LONGEST // 2, end)
        word = line if line >= 0 else text.rfind(" ", start + LONGEST // 2, end)
        end = word + 1 if word >= 0 else end
        yield start, end - start
        start = end
    if text[start:].strip():
        yield start, len(text) - start


def catch_up(store: Store, seconds: float = math.inf) -> bool:
    """Index new passages for at most ``seconds``. Returns whether all are indexed. A read-only store
    keeps its index as it is."""
    if store.read_only:
        return not is_behind(store)
    end = time.monotonic() + seconds
    while store.execute(NEW_BLOCKS):
        with store.transaction() as run:
            for (block,) in run("SELECT block FROM unindexed_blocks LIMIT ?", (BATCH,)):
                _index_block(run, block)
    for sessions in _batches(store.execute(NEW_EVENTS)):
        with store.transaction():
            longer = [one for one in sessions if _index_session(store, one)]
        for session in longer:
            while _index_session(store, session):
                pass
        if time.monotonic() > end:
            return False
    return True


def _batches(rows: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """The sessions in groups with about BATCH new events each."""
    group, size = list[str](), 0
    for session, new in rows:
        group.append(session)
        size += new
        if size >= BATCH:
            yield group
            group, size = [], 0
    if group:
        yield group


def is_behind(store: Store) -> bool:
    """Whether the store has new passages that a search could not index."""
    return store.read_only and bool(store.execute(NEW_BLOCKS) or store.execute(NEW_EVENTS))


# Blocks


def _index_block(run: Statement, block: int) -> None:
    run("DELETE FROM unindexed_blocks WHERE block = ?", (block,))
    run("DELETE FROM passages WHERE block = ? AND block != 0", (block,))
    for label, description, text in run("SELECT label, description, text FROM blocks WHERE id = ?", (block,)):
        places = list(split(text))
        about = f"{label} {description}"
        passages = [
            _Passage(_added(run, start, length, block=block), text[start : start + length], about)
            for start, length in places or [(0, 0)]  # an empty block is found by its label
        ]
        _index(run, passages)


def _added(
    run: Statement,
    start: int,
    length: int,
    *,
    block: int = 0,
    session: int = 0,
    seq: int = 0,
    user: str = "",
    at: str = "",
) -> int:
    ((id,),) = run(
        "INSERT INTO passages (block, session, seq, start, length, user, at) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " RETURNING id",
        (block, session, seq, start, length, user, at),
    )
    return int(id)


def _index(run: Statement, passages: Sequence[_Passage], after: int = 0) -> None:
    """Index the passages from index ``after``, each with its neighbours in the sequence."""
    for place in range(after, len(passages)):
        near, far = (
            "\n".join(passages[at].text for at in (place - n, place + n) if 0 <= at < len(passages))
            for n in range(1, AROUND + 1)
        )
        one = passages[place]
        run(WORDS, (one.id, one.text, one.about, near, far))


# Conversations


def _index_session(store: Store, session: str) -> bool:
    """Index the next events of a session in one transaction. Returns whether there may be more."""
    with store.transaction() as run:
        run("INSERT OR IGNORE INTO indexed_sessions (session, seq) VALUES (?, 0)", (session,))
        ((id, seen),) = run("SELECT id, seq FROM indexed_sessions WHERE session = ?", (session,))
        rows = run(f"{TURNS} AND seq > ? ORDER BY seq LIMIT {BATCH}", (session, seen))
        full = len(rows) == BATCH
        last = rows[-1][1] if full else run("SELECT max(seq) FROM events WHERE session = ?", (session,))[0][0]
        if rows:
            passages = _last(run, id, session)
            known = len(passages)
            for turn in turns(run, rows):
                passages += (
                    _Passage(
                        _added(run, start, length, session=id, seq=turn.seq, user=turn.user, at=turn.at),
                        turn.text[start : start + length],
                        turn.about,
                    )
                    for start, length in split(turn.text)
                )
            _index(run, passages, max(0, known - AROUND))  # the last known passages have new neighbours
        run("UPDATE indexed_sessions SET seq = ? WHERE id = ?", (last or seen, id))
    return full


def _last(run: Statement, id: int, session: str) -> list[_Passage]:
    """The last indexed passages of a session, as many as needed to give the last ones their new
    neighbours."""
    rows = run(
        "SELECT id, seq, start, length FROM passages WHERE session = ? AND session != 0"
        " ORDER BY seq DESC, start DESC LIMIT ?",
        (id, 2 * AROUND),
    )
    said = {turn.seq: turn for turn in turns_at(run, session, [row[1] for row in rows])}
    return [
        _Passage(passage, said[seq].text[start : start + length], said[seq].about)
        for passage, seq, start, length in reversed(rows)
        if seq in said
    ]


def turns_at(run: Statement, session: str, seqs: Sequence[int]) -> Iterator[Utterance]:
    """The turns of a session with these sequence numbers."""
    marks = ", ".join("?" * len(seqs))
    return turns(run, run(f"{TURNS} AND seq IN ({marks}) ORDER BY seq", (session, *seqs)))


def turns(run: Statement, rows: Sequence[tuple[object, ...]]) -> Iterator[Utterance]:
    """The turns in rows of TURNS, without secrets. Turns that cannot be read are left out."""
    runs: dict[object, tuple[str, str, str]] = {}
    for session, seq, at, name, kind, form in rows:
        said = _said(session, seq, kind, form)
        if kind == "stimulus":
            runs[name] = _people(said, session)
        elif name not in runs:
            first = run(f"{TURNS} AND kind = 'stimulus' AND run = ? LIMIT 1", (session, name))
            runs[name] = _people(_said(*(first[0][n] for n in (0, 1, 4, 5))) if first else {}, session)
        text = said.get("text")
        if isinstance(text, str) and text.strip() and "raised" not in said:
            user, speaker, model = runs[name]
            yield Utterance(int(str(seq)), str(at), user, speaker if kind == "stimulus" else model, text)


def _people(stimulus: dict[str, object], session: object) -> tuple[str, str, str]:
    """The owner of a run's conversation (the user, otherwise the session of a chat), its speaker, and its
    model without the provider."""
    user = str(stimulus.get("user", ""))
    whose = str(session) if stimulus.get("chat") else user
    return whose, str(stimulus.get("speaker") or user), str(stimulus.get("model", "")).rpartition(":")[2]


def _said(session: object, seq: object, kind: object, form: object) -> dict[str, object]:
    event = Event(str(session), int(str(seq)), "", "", kind, 0, "", "", str(form), "")  # type: ignore[arg-type]
    try:
        return event.said
    except TranscriptError:
        return {}
