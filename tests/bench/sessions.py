"""What looking at a large store costs: its sessions, its audit, and one long session resumed and replayed.
Prints an Org table of the CPU time of each command.

python tests/bench/sessions.py [--sessions 10000] [--rows 1000000] [--steps 200 1000 5000] [--rounds 3]
The store is made once: one real run, copied with other names and times, and one long run for each length.
The audit is filled by one statement, without its chain, with rows of 200 tools. ``resume cut5000`` goes on
with a copy that lacks what came after its last receipt, as after a kill. The floor is ``quoth read`` of a
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
from pathlib import Path
from typing import Any

COPIED = "session, seq, at, run, kind, parent, key, form, shown, digest, status"
QUOTH = [sys.executable, "-m", "quoth"]


def scripted(steps: int) -> Any:
    """A model that calls echo so many times and then says that it is done."""
    from quoth.neuro.backends.scripted import ScriptedBackend

    return ScriptedBackend(
        [*(f'(echo :text "This is line {n}.")' for n in range(steps)), "All lines are said."]
    )


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

    store = Store(store_path(work))
    store.execute("CREATE TABLE kept AS SELECT * FROM checkpoints WHERE false")
    store.execute(  # a run that has ended needs none; one that is cut off has them
        "CREATE TRIGGER keep BEFORE DELETE ON checkpoints BEGIN INSERT INTO kept"
        " VALUES (old.session, old.run, old.seq, old.digest, old.format, old.data); END"
    )
    store.close()
    for total in steps:
        run(work, f"long{total}", total)
    run(work, "short", 2)
    with Agent(workspace=work, session="single", user="ann") as agent:
        agent.call('(echo :text "one")')
    store = Store(store_path(work))
    with store.transaction() as execute:
        execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            f" INSERT INTO events ({COPIED}) SELECT printf('s%07x', i * 2654435761 % 268435456), seq,"
            " printf('2026-%02d-%02dT%02d:%02d:00.000+00:00',"
            " 1 + i / 2880 % 12, 1 + i / 120 % 24, i / 60 % 24, i % 60),"
            " run, kind, parent, key, form, shown, digest, status FROM n, events"
            " WHERE session = CASE i % 10 WHEN 0 THEN 'single' ELSE 'short' END",
            (sessions,),
        )
        names = [str(name) for _, name, *_ in execute("PRAGMA table_info(audit)")]
        own = {
            "seq": "(SELECT max(seq) FROM audit) + i",
            "id": "printf('a%09x', i)",
            "tool": "printf('tool-%d', i % 200)",
        }
        execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            f" INSERT INTO audit ({', '.join(names)})"
            f" SELECT {', '.join(own.get(name, name) for name in names)}"
            " FROM n, (SELECT * FROM audit ORDER BY seq LIMIT 1)",
            (rows,),
        )
    store.close()


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


def cost(words: list[str], work: Path, said: str = "") -> tuple[float, float, int]:
    """Seconds of CPU and of wall time and the lines of one command."""
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
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, lines


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=10_000)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--steps", type=int, nargs="+", default=[200, 1000, 5000])
    options.add_argument("--rounds", type=int, default=3)
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
            ["stats", "--since", "1h"],
        ]
        rows += [
            ["audit", "--tool", "tool-7", "--last", "20"],
            ["audit", "--tool", "nothing"],
            ["audit", "--last", "20"],
        ]
        for total in given.steps:
            rows += [["replay", f"long{total}"], ["resume", f"cut{total}", "--model", "scripted:said.hy"]]
        if given.only:
            rows = [row for row in rows if set(row) & set(given.only)] or rows
        (work / "said.hy").write_text('(defn reply [messages] "All lines are said.")')
        found: dict[str, list[tuple[float, float, int]]] = {}
        for _ in range(given.rounds):
            for words in rows:  # interleaved, so that a busy moment hits all alike
                if words[1:] and words[1].startswith("cut"):
                    name = f"cut{secrets.token_hex(4)}"
                    cut(work, words[1].replace("cut", "long"), name)
                    spoken = " ".join(words[:2])
                    found.setdefault(spoken, []).append(cost([words[0], name, *words[2:]], work))
                    continue
                found.setdefault(" ".join(words), []).append(cost(words, work, "Nothing.\n"))
        print("| quoth | s CPU | s wall | lines |\n|-")
        for name, costs in found.items():
            cpu, wall = spread([one[0] for one in costs]), spread([one[1] for one in costs])
            print(f"| {name} | {cpu} | {wall} | {costs[-1][2]} |")


if __name__ == "__main__":
    main()
