"""What looking at a large store costs: its sessions, its audit, and one long session resumed and replayed.
Prints an Org table of the CPU time of each command.

python tests/bench/sessions.py [--sessions 10000] [--rows 1000000] [--steps 200 1000 5000] [--rounds 3]
The store is made once: one real run, copied with other names and times, and one long run for each length.
The audit has rows of 200 tools, in a whole chain, about a hundred for each session, each with the two events
of its call. ``resume cut5000`` goes on with a copy that lacks what came after its last receipt, as after
a kill. The floor is ``quoth read`` of a text without a call: a process that is started, imports the command
and prints.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quoth.tools.storage.database import Store

TOOLS = 200
COPIED = "session, seq, at, run, kind, parent, key, form, shown, digest, status"
QUOTH = [sys.executable, "-m", "quoth"]
# The peak of a process begins with that of the one which started it, so that a small one starts the command.
SMALL = [
    *(sys.executable, "-I", "-S", "-c"),
    """if True:
    import os, sys, time
    tell = int(sys.argv[1])
    os.set_inheritable(tell, False)
    begun = time.perf_counter()
    child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
    _, status, used = os.wait4(child, 0)
    wall, cpu = time.perf_counter() - begun, used.ru_utime + used.ru_stime
    os.write(tell, f"{os.waitstatus_to_exitcode(status)} {cpu} {wall} {used.ru_maxrss}".encode())
    """,
]


def scripted(steps: int) -> Any:
    """A model that calls echo so many times and then says that it is done."""
    from quoth.neuro.backends.base import Completion, Usage
    from quoth.neuro.backends.select import ScriptedBackend

    used = Usage(input_tokens=900, output_tokens=20)
    said = [*(f'(echo :text "This is line {n}.")' for n in range(steps)), "All lines are said."]
    return ScriptedBackend([Completion(text, usage=used) for text in said])


def run(work: Path, session: str, steps: int) -> None:
    from quoth import Agent
    from quoth.agent.run.limits import RunLimits

    limits = RunLimits(steps=steps + 1, calls=steps + 1, context=1_000_000_000)
    with Agent(workspace=work, session=session, user="ann", model=scripted(steps), limits=limits) as agent:
        assert agent.run("Say every line.").text == "All lines are said."


def fill(work: Path, sessions: int, rows: int, steps: list[int]) -> None:
    """The store: ``sessions`` runs of two steps, every tenth a person's single call, and the long ones."""
    from quoth import Agent
    from quoth.tools.history.audit import StoreAudit
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    (model := work.parent / "model").mkdir()
    run(model, "short", 2)
    with Agent(workspace=model, session="single", user="ann") as agent:
        agent.call('(echo :text "one")')
    first, store = Store(store_path(model)), Store(store_path(work))
    store.execute("CREATE TABLE kept AS SELECT * FROM checkpoints WHERE false")
    store.execute(  # a run that has ended needs none; one that is cut off has them
        "CREATE TRIGGER keep BEFORE DELETE ON checkpoints BEGIN INSERT INTO kept"
        " VALUES (old.session, old.run, old.seq, old.digest, old.format, old.data); END"
    )
    audit = StoreAudit(lambda: store)
    with store.transaction():
        for one in range(sessions):
            mine = range(rows * one // sessions, rows * (one + 1) // sessions)
            for row in copied(first, store, one, sessions, [(row, at(row, rows)) for row in mine]):
                audit.write(row)
    first.close()
    store.close()
    run(work, "short", 2)
    for total in steps:
        run(work, f"long{total}", total)


def copied(
    first: Store, store: Store, one: int, of: int, calls: Sequence[tuple[int, str]]
) -> Iterator[dict[str, Any]]:
    """Copy a session with the name and time of this number. In place of its last call it has these, each
    with its number and time; gives their rows of the audit."""
    from quoth.tools.history.audit import STORED
    from quoth.tools.history.event import digest_of, digest_of_texts, with_marks

    insert = f"INSERT INTO events ({COPIED}) VALUES ({', '.join('?' * len(COPIED.split(', ')))})"
    digests = [""]

    def add(now: str, run: str, what: str, parent: int, key: str, said: str, status: str) -> None:
        seq = len(digests)
        form = with_marks(what, seq, now, run, parent, key, said)
        digests.append(digest_of(digests[-1], form))
        store.execute(insert, (name(one), seq, now, run, what, parent, key, form, None, digests[-1], status))

    sql = f"SELECT {', '.join(STORED)} FROM audit WHERE session = ? ORDER BY seq DESC LIMIT 1"
    row = dict(zip(STORED, first.execute(sql, (kind(one),))[0], strict=True))
    events = first.execute(f"SELECT {COPIED} FROM events WHERE session = ? ORDER BY seq", (kind(one),))
    asked = ""
    for _, seq, then, run, what, parent, key, form, _, _, status in events:
        said = form.removeprefix(with_marks(what, seq, then, run, parent, key, "")[:-1])[:-1]
        if not calls or seq not in (row["event"] - 1, row["event"]):
            above = parent + len(digests) - seq if parent > row["event"] else parent  # later by those calls
            add(at(one, of), run, what, above, key, said, status)
        elif what == "call":
            asked, replied = said, parent
        else:
            for number, now in calls:
                id, tool = f"a{number:09x}", f"tool-{number % TOOLS}"
                own = f"{key}.{number}" if run else id
                text = asked.replace(row["id"], id).replace("(echo ", f"({tool} ")
                add(now, run, "call", replied, own, text, "")
                text_of_result = re.sub(" :ms [0-9]+( :began [0-9]+)?", " :ms 0", said.replace(row["id"], id))
                add(now, run, what, len(digests) - 1, own, text_of_result, status)
                called = text[text.index(f"({tool} ") : text.index(")") + 1]
                yield row | {
                    "id": id,
                    "ts": now,
                    "session": name(one),
                    "tool": tool,
                    "digest": hashlib.sha256(called.encode()).hexdigest(),
                    "duration_ms": 0,
                    "side_effects": (),
                    "event": len(digests) - 1,
                    "event_digest": digests[-1],
                    "said": digest_of_texts(called, ""),
                    "told_there": True,
                }


def kind(one: int) -> str:
    """The session of which the one with this number is a copy."""
    return "short" if one % 10 else "single"


def name(one: int) -> str:
    return f"s{one * 2654435761 % 2**32:08x}"


def at(one: int, of: int) -> str:
    """A time in the last three hundred days, the later the higher the number."""
    ago = timedelta(days=300) * (of - one) / of
    return (datetime.now(UTC) - ago).isoformat(timespec="milliseconds")


def cut(work: Path, long: str, name: str) -> None:
    """A copy of a session, broken off after its last receipt."""
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    store = Store(store_path(work))
    store.execute(
        f"INSERT INTO events ({COPIED}) SELECT ?, {COPIED.removeprefix('session, ')} FROM events"
        " WHERE session = ? AND seq <= (SELECT max(seq) FROM events WHERE session = ? AND kind = 'receipt')",
        (name, long, long),
    )
    store.execute(
        "INSERT INTO checkpoints SELECT ?, run, seq, digest, format, data FROM kept WHERE session = ?",
        (name, long),
    )
    store.close()


def cost(words: list[str], work: Path, said: str = "") -> tuple[float, float, float, int]:
    """Seconds of CPU and of wall time, MB of memory at most, and the lines of one command."""
    told, tell = os.pipe()
    command = [*SMALL, str(tell), *QUOTH, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=work, stdin=pipe, stdout=pipe, pass_fds=[tell]) as child:
        os.close(tell)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(said.encode())
        child.stdin.close()
        lines = sum(1 for _ in child.stdout)
    with open(told) as answer:
        status, cpu, wall, memory = map(float, answer.read().split())
    assert status in (0, 1, 2), (words, status)
    return cpu, wall, memory / 1024, lines


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=10_000)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--steps", type=int, nargs="+", default=[200, 1000, 5000])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--gc", action="store_true", help="at the end remove half of the sessions")
    options.add_argument("--only", nargs="+", help="only commands that have one of these words")
    options.add_argument("--keep", help="a folder for the store, which is made there unless it is there")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(given.keep or folder)
        os.environ["QUOTH_STATE"], os.environ["QUOTH_CONFIG"] = f"{root}/state", f"{root}/config"
        work = root / "work"
        if not work.exists():
            work.mkdir(parents=True)
            fill(work, given.sessions, given.rows, given.steps)
        rows: list[list[str]] = [["read", "-"]]
        rows += [["sessions"], ["sessions", "--all"], ["sessions", "--json"]]
        rows += [
            ["log", "short"],
            ["log", "shor"],
            ["log", "--last", "--json"],
            ["resume"],
            ["stats"],
            ["stats", "--since", "52w"],
            ["gc", "--dry-run"],
        ]
        rows += [
            ["audit", "--tool", "tool-7", "--last", "20"],
            ["audit", "--tool", "nothing"],
            ["audit", "--session", name(given.sessions // 2)],
            ["audit", "--last", "20"],
            ["audit", "--since", "1h"],
            ["audit", "--status", "denied"],
            ["audit", "verify"],
        ]
        for total in given.steps:
            rows += [["replay", f"long{total}"], ["resume", f"cut{total}", "--model", "scripted:said.hy"]]
        if given.only:
            rows = [row for row in rows if set(row) & set(given.only)] or rows
        (work / "said.hy").write_text('(defn reply [messages] "All lines are said.")')
        found: dict[str, list[tuple[float, float, float, int]]] = {}
        for turn in range(given.rounds):
            for words in rows:  # interleaved, so that a busy moment hits all alike
                if words[1:] and words[1].startswith("cut"):
                    new = f"cut{secrets.token_hex(4)}"
                    cut(work, words[1].replace("cut", "long"), new)
                    spoken = " ".join(words[:2])
                    found.setdefault(spoken, []).append(cost([words[0], new, *words[2:]], work))
                    continue
                found.setdefault(" ".join(words), []).append(cost(words, work, "Nothing.\n"))
            removed = name(given.sessions // 3 + turn)
            found.setdefault("rm, a session", []).append(cost(["rm", removed, "--yes"], work))
        if given.gc:
            found["gc --days 150"] = [cost(["gc", "--days", "150", "--yes"], work)]
        print("| quoth | s CPU | s wall | MB | lines |\n|-")
        for what, costs in found.items():
            cpu, wall, memory, lines = zip(*costs, strict=True)
            print(f"| {what} | {spread(cpu)} | {spread(wall)} | {max(memory):.0f} | {lines[-1]} |")


if __name__ == "__main__":
    main()
