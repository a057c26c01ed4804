"""What search finds, and what it costs. Prints Org tables.

python tests/bench/memory.py [retrieval] [sizes] [writes] [--entries 1000 10000] [--rounds N] [--data DIR]

retrieval: the questions of five LoCoMo conversations (../shared/data/locomo; it says so when they are
missing), put to the product's own search over the transcripts' events, one turn an event. A question is
answered when a turn of its evidence is among the first k hits (any@k), or all are (all@k). The weights were
tuned on the first three conversations; the other two tell whether that was luck.
sizes: search and append beside raw FTS5 and raw sqlite-vec on the same data, in the same run.
writes: appends to blocks beside raw transactions, all of them synced.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quoth.neuro.embed.select import choose_embedder
from quoth.tools.call.service_types import SearchOptions
from quoth.tools.call.services import Embedder
from quoth.tools.history.transcript import Transcript
from quoth.tools.memory.sqlite import SqliteMemory
from quoth.tools.storage.database import Store

DATA = Path(__file__).parents[3] / "shared/data/locomo"
TUNED = ("26", "30", "41")
OTHERS = ("42", "43")
AT = (5, 10, 20)
GOALS = {"any@10": 0.84, "all@10": 0.71}


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


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("parts", nargs="*", default=["retrieval"])
    options.add_argument("--data", type=Path, default=DATA)
    given = options.parse_args()
    if "retrieval" in given.parts:
        asyncio.run(retrieval(given.data))


if __name__ == "__main__":
    main()
