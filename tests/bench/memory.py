"""What search finds, and what it costs. Prints Org tables.

python tests/bench/memory.py [retrieval] [sizes] [writes] [hostile] [--entries N …] [--rounds N] [--data DIR]

retrieval: the questions of five LoCoMo conversations (in the folder $QUOTH_LOCOMO or --data), put to the
product's own search over the transcripts' events, one turn an event. A question is
answered when a turn of its evidence is among the first k hits (any@k), or all are (all@k). The weights were
tuned on the first three conversations; the other two tell whether that was luck.
sizes: search and append beside raw FTS5 and raw sqlite-vec on the same data, in the same run.
hostile: 10,000 queries that are no queries, among 1,000 entries; the slowest.
writes: appends to blocks beside raw transactions, all of them synced.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import apsw

from quoth.neuro.embed.select import choose_embedder
from quoth.tools.call.service_types import SearchOptions
from quoth.tools.call.services import Embedder
from quoth.tools.errors import ToolError
from quoth.tools.history.transcript import Transcript
from quoth.tools.memory.passages import catch_up
from quoth.tools.memory.search import texts_of
from quoth.tools.memory.sqlite import SqliteMemory
from quoth.tools.memory.vectors import embed_new, loaded
from quoth.tools.storage.database import Store

DATA = Path(os.environ.get("QUOTH_LOCOMO", "locomo"))
TUNED = ("26", "30", "41")
OTHERS = ("42", "43")
AT = (5, 10, 20)


# Retrieval


@dataclass
class Conversation:
    """A conversation as sessions of a store, its questions, and the turns that answer them."""

    store: Store
    user: str
    turns: int
    questions: list[tuple[str, set[str]]]  # with the labels of the hits that answer it


def read(data: Path, name: str, folder: Path) -> Conversation:
    said = json.loads((data / f"{name}.json").read_text())
    user, other = said["speaker_a"], said["speaker_b"]
    store = Store(folder / f"{name}.sqlite")
    now = [0.0]
    transcript = Transcript(lambda: store, lambda: now[0])
    labels: dict[str, str] = {}
    with store.transaction():
        for number in range(1, 1000):
            session = f"session_{number}"
            if session not in said:
                break
            date = datetime.strptime(said[f"{session}_date_time"], "%I:%M %p on %d %B, %Y")
            now[0] = date.replace(tzinfo=UTC).timestamp()
            run = "r0"
            transcript.add(
                session, "stimulus", {"text": "", "user": user, "model": f"openai:{other}"}, run=run
            )
            for place, turn in enumerate(said[session], 1):
                text = " ".join(filter(None, (turn["text"], turn.get("blip_caption"))))
                if turn["speaker"] == user:
                    run = f"r{place}"
                    told = {"text": text, "user": user, "model": f"openai:{other}"}
                    seq = transcript.add(session, "stimulus", told, run=run)
                else:
                    seq = transcript.add(session, "reply", {"text": text}, run=run)
                labels[turn["dia_id"]] = f"{session}.{seq}"
    asked = []
    for question in said["qa"]:
        evidence = re.findall(r"D\d+:\d+", " ".join(question["evidence"]))
        if question["category"] != 5 and evidence:
            asked.append((question["question"], {labels.get(turn, turn) for turn in evidence}))
    return Conversation(store, user, len(labels), asked)


async def ask(talk: Conversation, embedder: Embedder | None, *, semantic: bool = False) -> Counter[str]:
    """How many of its questions are answered, at each k."""
    memory = SqliteMemory(lambda: talk.store, "bench", user=talk.user, embedder=embedder)
    options = SearchOptions(max(AT), "conversations", semantic=semantic)
    found: Counter[str] = Counter()
    for question, evidence in talk.questions:
        hits = [hit.label for hit in await memory.search(question, "agent", options)]
        for k in AT:
            found[f"any@{k}"] += not evidence.isdisjoint(hits[:k])
            found[f"all@{k}"] += evidence.issubset(hits[:k])
    return found


async def retrieval(data: Path) -> None:
    if not data.is_dir():
        print(f"The conversations of LoCoMo are not here ({data}), so that retrieval is not measured.")
        return
    embedder = choose_embedder()
    ways: list[tuple[str, Embedder | None, bool]] = [("words", None, False)]
    if embedder is not None:
        ways += [("meaning", embedder, True), ("both", embedder, False)]
    columns = [f"{kind}@{k}" for kind in ("any", "all") for k in AT]
    print(f"| conversations | questions | search by | {' | '.join(columns)} |")
    print(f"|{'---+' * (len(columns) + 2)}---|")
    with tempfile.TemporaryDirectory(prefix="quoth-memory-") as folder:
        talks = {name: read(data, name, Path(folder)) for name in (*TUNED, *OTHERS)}
        found = {
            way: {name: await ask(talk, way[1], semantic=way[2]) for name, talk in talks.items()}
            for way in ways
        }
        for title, names in (
            ("all five", TUNED + OTHERS),
            ("the three tuned on", TUNED),
            ("the other two", OTHERS),
        ):
            count = sum(len(talks[name].questions) for name in names)
            for way in ways:
                total: Counter[str] = sum((found[way][name] for name in names), Counter())
                shown = " | ".join(f"{total[column] / count:.3f}" for column in columns)
                print(f"| {title} | {count} | {way[0]} | {shown} |")


# Sizes


VOCABULARY = 30_000
WORDS_OF_AN_ENTRY = 18
ASKED = 20  # queries of a round
APPENDED = 50  # entries of a round, each synced by itself; the next search indexes them
SYNCED = 200  # writes of a round


def texts(number: int) -> Iterator[str]:
    """Sentences of made-up words, as frequent as words are."""
    rng = random.Random(14)
    parts = ["ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "den", "gar", "hol", "pin", "tam"]
    words = ["".join(rng.choices(parts, k=rng.randint(2, 4))) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / place for place in range(1, VOCABULARY + 1)))
    for _ in range(number):
        yield " ".join(rng.choices(words, cum_weights=weights, k=WORDS_OF_AN_ENTRY))


class Raw:
    """FTS5 and sqlite-vec by hand: the same columns, and the same question asked."""

    def __init__(self, path: Path, embedder: Embedder | None) -> None:
        self.path, self.embedder = path, embedder
        self.db = apsw.Connection(str(path))
        self.db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        self.db.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, label TEXT, text TEXT)")
        self.db.execute(
            "CREATE VIRTUAL TABLE words USING fts5 (text, about, near, far, content = '',"
            " contentless_delete = 1, tokenize = 'porter unicode61')"
        )
        if embedder is not None:
            import sqlite_vec

            self.db.enable_load_extension(True)
            self.db.load_extension(sqlite_vec.loadable_path())
            self.db.execute(
                "CREATE VIRTUAL TABLE vectors USING vec0 (vector float[256] distance_metric=cosine)"
            )

    async def add(self, entries: list[tuple[str, str]]) -> None:
        """All in one transaction."""
        vectors = await self.embedder.embed([f"{a}: {b}" for a, b in entries]) if self.embedder else []
        with self.db:
            for place, (label, text) in enumerate(entries):
                self.db.execute("INSERT INTO entries (label, text) VALUES (?, ?)", (label, text))
                id = self.db.last_insert_rowid()
                self.db.execute("INSERT INTO words (rowid, text, about) VALUES (?, ?, ?)", (id, text, label))
                if vectors:
                    self.db.execute("INSERT INTO vectors (rowid, vector) VALUES (?, ?)", (id, vectors[place]))

    async def search(self, query: str) -> list[Any]:
        asked = " OR ".join(f'"{word}"' for word in query.split())
        found = dict(
            self.db.execute(
                "SELECT rowid, -bm25(words, 1.0, 1.0, 0.5, 0.3) AS score FROM words WHERE words MATCH ?"
                " ORDER BY score DESC LIMIT 200",
                (asked,),
            )
        )
        best = max(found.values(), default=1)
        scores = {id: score / best for id, score in found.items()}
        if self.embedder is not None:
            ((vector),) = await self.embedder.embed([query])
            near = "SELECT rowid, distance FROM vectors WHERE vector MATCH ? AND k = 200"
            for id, distance in self.db.execute(near, (vector,)):
                scores[id] = scores.get(id, 0) + 1 - distance
        ten = sorted(scores, key=lambda id: -scores[id])[:10]
        marks = ", ".join("?" * len(ten))
        return list(self.db.execute(f"SELECT * FROM entries WHERE id IN ({marks})", ten))


async def seconds(
    work: Callable[[], Awaitable[Any]], clock: Callable[[], float] = time.perf_counter
) -> float:
    start = clock()
    await work()
    return clock() - start


def shown(numbers: list[float], unit: float, digits: int = 2) -> str:
    """The median with the least and the most."""
    low, middle, high = min(numbers) * unit, statistics.median(numbers) * unit, max(numbers) * unit
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def size(path: Path) -> int:
    return sum(Path(f"{path}{end}").stat().st_size for end in ("", "-wal") if Path(f"{path}{end}").exists())


async def sizes(entries: list[int], rounds: int) -> None:
    installed = choose_embedder()
    print(
        "| entries | search by | search, ms of CPU | raw, ms of CPU | ratio"
        " | append and index, ms | raw, ms | ratio | bytes an entry | raw |"
    )
    print("|---+---+---+---+---+---+---+---+---+---|")
    for number in entries:
        for embedder in [None] if installed is None else [None, installed]:
            with tempfile.TemporaryDirectory(prefix="quoth-memory-") as folder:
                await one_size(Path(folder), number, rounds, embedder)


async def one_size(folder: Path, number: int, rounds: int, embedder: Embedder | None) -> None:
    store, raw = Store(folder / "store.sqlite"), Raw(folder / "raw.sqlite", embedder)
    memory = SqliteMemory(lambda: store, "bench", user="ann", embedder=embedder)
    source = texts(number + 2 * rounds * APPENDED)
    batch: list[tuple[str, str]] = []
    for place, text in enumerate(islice(source, number)):
        batch.append((f"note {place}", text))
        if len(batch) == 10_000 or place == number - 1:
            with store.transaction():  # one for all, so that filling takes minutes and not hours
                for label, said in batch:
                    await memory.create_block(label, said, kind="archival")
            await raw.add(batch)
            batch.clear()
    catch_up(store)
    if embedder is not None:
        loaded(store)
        await embed_new(store, embedder, lambda ids: texts_of(store, ids), seconds=math.inf)
    for each in (store.execute, raw.db.execute):
        each("PRAGMA wal_checkpoint(TRUNCATE)")
    each_entry = size(folder / "store.sqlite") / number, size(folder / "raw.sqlite") / number
    rng = random.Random(41)
    known = [text.split() for text in texts(200)]
    queries = [" ".join(rng.sample(rng.choice(known), 4)) for _ in range(ASKED)]
    ours: dict[str, list[float]] = {"search": [], "append": []}
    theirs: dict[str, list[float]] = {"search": [], "append": []}
    options = SearchOptions(10, "archival_memory")

    async def ask_ours(query: str) -> None:
        await memory.search(query, "agent", options)

    for query in queries:
        await ask_ours(query)
        await raw.search(query)
    for turn in range(rounds):  # interleaved, so that a busy moment hits both alike
        asked = [0.0, 0.0]
        for query in queries:
            asked[0] += await seconds(partial(ask_ours, query), time.process_time)
            asked[1] += await seconds(partial(raw.search, query), time.process_time)
        ours["search"].append(asked[0] / ASKED)
        theirs["search"].append(asked[1] / ASKED)
        new = [(f"new {turn} {place}", text) for place, text in enumerate(islice(source, APPENDED))]

        spent = [0.0, 0.0]
        for label, text in new:
            spent[0] += await seconds(partial(memory.create_block, label, text, kind="archival"))
            spent[1] += await seconds(partial(raw.add, [(label, text)]))
        late = await seconds(partial(ask_ours, queries[0]))  # it indexes what is new
        spent[0] += max(0.0, late - await seconds(partial(ask_ours, queries[0])))
        ours["append"].append(spent[0] / APPENDED)
        theirs["append"].append(spent[1] / APPENDED)
    cells = [f"{number:,}", "words" if embedder is None else "both"]
    for what in ("search", "append"):
        ratio = statistics.median(ours[what]) / statistics.median(theirs[what])
        cells += [shown(ours[what], 1e3), shown(theirs[what], 1e3), f"{ratio:.2f}"]
    print(f"| {' | '.join(cells)} | {each_entry[0]:.0f} | {each_entry[1]:.0f} |", flush=True)
    store.close()
    raw.db.close()


# Writes


async def writes(rounds: int) -> None:
    """The rate of synced appends to a block, beside transactions by hand that do the least they must."""
    with tempfile.TemporaryDirectory(prefix="quoth-memory-", dir=Path.cwd()) as folder:
        store = Store(Path(folder, "store.sqlite"))
        memory = SqliteMemory(lambda: store, "bench", user="ann")
        raw = apsw.Connection(str(Path(folder, "raw.sqlite")))
        raw.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        raw.execute(
            "CREATE TABLE entries (label TEXT PRIMARY KEY, text TEXT); CREATE TABLE versions (at, was)"
        )
        ours, theirs = [], []
        for turn in range(rounds):
            await memory.create_block(f"notes {turn}", kind="archival", limit=1_000_000)
            raw.execute("INSERT INTO entries VALUES (?, '')", (f"notes {turn}",))

            async def append(label: str = f"notes {turn}") -> None:
                for _ in range(SYNCED):
                    await memory.append_to_block(label, "A line of a meeting, as long as such lines are.")

            async def by_hand(label: str = f"notes {turn}") -> None:
                for _ in range(SYNCED):
                    raw.execute("BEGIN IMMEDIATE")
                    ((text,),) = raw.execute("SELECT text FROM entries WHERE label = ?", (label,))
                    text += "\nA line of a meeting, as long as such lines are."
                    raw.execute("UPDATE entries SET text = ? WHERE label = ?", (text, label))
                    raw.execute("INSERT INTO versions VALUES (?, ?)", (time.time(), len(text)))
                    raw.execute("COMMIT")

            ours.append(SYNCED / await seconds(append))
            theirs.append(SYNCED / await seconds(by_hand))
        print("| synced appends | a second | by hand | ratio |\n|---+---+---+---|")
        ratio = statistics.median(ours) / statistics.median(theirs)
        print(f"| {rounds} x {SYNCED} | {shown(ours, 1, 0)} | {shown(theirs, 1, 0)} | {ratio:.2f} |")


async def hostile() -> None:
    """10,000 queries of tests/vocabulary/hostile.py."""
    sys.path.append(str(Path(__file__).parents[1] / "vocabulary"))
    from hostile import queries

    with tempfile.TemporaryDirectory(prefix="quoth-memory-") as folder:
        store = Store(Path(folder, "store.sqlite"))
        memory = SqliteMemory(lambda: store, "bench", user="ann", embedder=choose_embedder())
        with store.transaction():
            for place, text in enumerate(texts(1_000)):
                await memory.create_block(f"note {place}", f"{text} word cat near a b", kind="archival")
        await memory.search("warm", "agent", SearchOptions())
        slow: list[float] = []
        errors = 0
        for query in queries(10_000):
            start = time.perf_counter()
            try:
                await memory.search(query, "all", SearchOptions())
            except ToolError:
                errors += 1
            slow.append(time.perf_counter() - start)
        print("| hostile queries | ended as results | as our own error | median, ms | slowest, ms |")
        print("|---+---+---+---+---|")
        middle, most = statistics.median(slow) * 1e3, max(slow) * 1e3
        print(f"| {len(slow):,} | {len(slow) - errors:,} | {errors:,} | {middle:.1f} | {most:.0f} |")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("parts", nargs="*", default=["retrieval", "sizes", "writes"])
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--entries", type=int, nargs="+", default=[1_000, 10_000])
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    if "retrieval" in given.parts:
        asyncio.run(retrieval(given.data))
    if "sizes" in given.parts:
        asyncio.run(sizes(given.entries, given.rounds))
    if "writes" in given.parts:
        asyncio.run(writes(given.rounds))
    if "hostile" in given.parts:
        asyncio.run(hostile())


if __name__ == "__main__":
    main()
