"""What looking at a large store costs: its sessions, its audit, and one long session resumed and replayed.
Prints an Org table of the CPU time of each command.

python tests/bench/sessions.py [--sessions 10000] [--rows 1000000] [--steps 200 1000 5000] [--rounds 3]
The store is made once: one real run, copied with other names and times, and one long run for each length.
The audit has rows of 200 tools, in a whole chain, about a hundred for each session. ``resume cut5000`` goes
on with a copy that lacks what came after its last receipt, as after a kill. The floor is ``quoth read`` of a
text without a call: a process that is started, imports the command and prints.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quoth.tools.storage.database import Store

COPIED = "session, seq, at, run, kind, parent, key, form, shown, digest, status"
QUOTH = [sys.executable, "-m", "quoth"]


def scripted(steps: int) -> Any:
    """A model that calls echo so many times and then says that it is done."""
    from quoth.neuro.backends.base import Completion, Usage
    from quoth.neuro.backends.scripted import ScriptedBackend

    used = Usage(input_tokens=900, output_tokens=20)
    said = [*(f'(echo :text "This is line {n}.")' for n in range(steps)), "All lines are said."]
    return ScriptedBackend([Completion(text, usage=used) for text in said])


def run(work: Path, session: str, steps: int) -> None:
    from quoth import Agent
    from quoth.agent.run.run import RunLimits

    limits = RunLimits(steps=steps + 1, calls=steps + 1, context=1_000_000_000)
    with Agent(workspace=work, session=session, user="ann", model=scripted(steps), limits=limits) as agent:
        assert agent.run("Say every line.").text == "All lines are said."


def fill(work: Path, sessions: int, rows: int, steps: list[int]) -> None:
    """The store: ``sessions`` runs of two steps, every tenth a person's single call, and the long ones."""
    from quoth import Agent
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
    with store.transaction():
        said = {one: copied(first, store, one, sessions) for one in range(sessions)}
        fill_audit(first, store, said, rows)
    first.close()
    store.close()
    run(work, "short", 2)
    for total in steps:
        run(work, f"long{total}", total)


def copied(first: Store, store: Store, one: int, of: int) -> str:
    """Copy a session with the name and time of this number; the digest of its last receipt."""
    from quoth.tools.history.event import digest_of

    before, receipt, now = "", "", at(one, of)
    events = first.execute(f"SELECT {COPIED} FROM events WHERE session = ?", (kind(one),))
    for _, seq, then, run, what, parent, key, form, _, _, status in events:
        form = form.replace(then, now, 1)
        before = digest_of(before, form)
        receipt = before if what == "receipt" else receipt
        values = (name(one), seq, now, run, what, parent, key, form, None, before, status)
        store.execute(f"INSERT INTO events ({COPIED}) VALUES ({', '.join('?' * len(values))})", values)
    return receipt


def kind(one: int) -> str:
    """The session of which the one with this number is a copy."""
    return "short" if one % 10 else "single"


def name(one: int) -> str:
    return f"s{one * 2654435761 % 2**32:08x}"


def at(one: int, of: int) -> str:
    """A time in the last three hundred days, the later the higher the number."""
    ago = timedelta(days=300) * (of - one) / of
    return (datetime.now(UTC) - ago).isoformat(timespec="milliseconds")


def fill_audit(first: Store, store: Store, said: dict[int, str], rows: int) -> None:
    """Rows in a whole chain, each with the last receipt of a session, those of a session together."""
    from quoth.tools.history.audit import STORED, StoreAudit

    found = first.execute(f"SELECT {', '.join(STORED)} FROM audit ORDER BY seq")
    last = {row["session"]: row for row in (dict(zip(STORED, values, strict=True)) for values in found)}
    audit = StoreAudit(lambda: store)
    for row in range(rows):
        one = row * len(said) // rows
        own = {"id": f"a{row:09x}", "ts": at(row, rows), "session": name(one), "told_there": True}
        own |= {"tool": f"tool-{row % 200}", "side_effects": (), "event_digest": said[one]}
        audit.write(last[kind(one)] | own)


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
    started = time.perf_counter()
    with subprocess.Popen([*QUOTH, *words], cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(said.encode())
        child.stdin.close()
        lines = sum(1 for _ in child.stdout)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode in (0, 1, 2), (words, child.returncode)
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 1024, lines


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
