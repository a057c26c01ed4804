"""The damage harness: one byte of one text in a store is damaged, and every command is run on it. Each says
what is wrong in a sentence or is not concerned; none shows a traceback, and ``audit verify`` names the row.

    python tests/vocabulary/damage.py             each text column of each table, with both kinds of damage
    python tests/vocabulary/damage.py --seed 7 --cases 20

A byte becomes one that is not UTF-8, or another letter, so that what was JSON, a form or a number is none.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

from commands import Said, quoth  # noqa: E402

from quoth.tools.storage.paths import store_path  # noqa: E402

DAMAGES = {"not UTF-8": b"\xff", "another letter": b"~"}
FILES = {
    "replies.txt": '(read-file :path "a.txt")\n---\n(write-file :path "a.txt" :content "two")\n---\nDone.\n',
    "p.org": "#+TITLE: P\n\n* PLAN One\n#+begin_src hy\n(+ 1 2)\n#+end_src\n* PLAN Ask\n#+begin_src hy\n"
    '(write-file :path "b.txt" :content "b")\n#+end_src\n',
    "a.txt": "one\n",
    "end.txt": "Done.\n",
}
MODEL = ("--model", "scripted:replies.txt")
STORY: list[tuple[str, ...]] = [
    ("call", '(read-file :path "a.txt")', "--session", "c"),
    ("memory", "edit", "me", "--new", "--text", "Ann likes plums."),
    ("memory", "edit", "me", "--text", "Ann likes pears."),
    ("memory", "edit", "more", "--new", "--text", "A walnut.", "--kind", "archival"),
    ("memory", "edit", "me", "--share", "librarian=append"),
    ("run", "Go.", "--session", "s", "--yes", *MODEL),
    ("eval", '(do (setv x 1) (write-file :path "c.txt" :content "c"))', "--session", "e"),
    ("call", '(write-file :path "d.txt" :content "d")', "--session", "w"),
    ("run", "Go on.", "--session", "r", *MODEL),
    ("fly", "p.org", "--session", "f"),
    ("approve", "p.org"),
    ("chat", "--gateway", "stdio", "--model", "scripted:end.txt"),
]
LINE = '{"id": 1, "user": "ann", "chat": "7", "text": "Hello."}\n'
COMMANDS: list[tuple[str, ...]] = [
    ("audit", "verify"),
    ("audit",),
    ("sessions", "--all"),
    *(("log", one) for one in "csewrf"),
    ("log", "s", "--full"),
    ("log", "s", "--org"),
    ("log", "s", "--hy"),
    ("log", "s", "--html", "-"),
    ("log", "s", "--tags"),
    ("export", "s"),
    ("stats",),
    ("replay", "s"),
    ("lift", "s"),
    ("diff", "s"),
    ("undo", "s", "--dry-run"),
    ("memory", "list"),
    ("memory", "show", "me"),
    ("memory", "search", "plums"),
    ("memory", "export"),
    ("pending",),
    ("pending", "--json"),
    ("doctor",),
    ("gc", "--dry-run", "--days", "1"),
    ("remind",),
    ("policy", "explain", '(write-file :path "d.txt" :content "d")'),
    ("fork", "s"),
    ("pending", "ID"),
    ("approve", "ID", "--for", "1h"),
    ("approve", "p.org"),
    ("call", '(read-file :path "a.txt")', "--session", "c"),
    ("eval", "(+ 1 2)", "--session", "e"),
    ("run", "Go.", "--session", "s", "--model", "scripted:end.txt"),
    ("resume", "r", "--model", "scripted:end.txt"),
    ("resume", "w"),
    ("resume", "e"),
    ("fly", "p.org"),
    ("undo", "s", "--yes"),
    ("rm", "s", "--yes"),
]


@dataclass(frozen=True)
class Damage:
    """A damaged byte of one text; ``seed`` chooses the row and the place in it."""

    table: str
    column: str
    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.table}.{self.column}, {self.kind} (seed {self.seed})"


class Shelf:
    """A workspace and a state in which everything has happened once, to be damaged in copies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept = folder / "kept"
        self.request = ""
        self.work, self.state = self._enter(self.kept)
        self.work.mkdir(parents=True)
        for name, text in FILES.items():
            (self.work / name).write_text(text)
        for words in STORY:
            said = self.run(*words)
            assert said.code in (0, 3), (words, said)
        self.request = json.loads(self.run("pending", "--json").out)[0]["id"]
        self.run("approve", json.loads(self.run("pending", "--json").out)[-1]["id"], "--for", "1h")

    def _enter(self, place: Path) -> tuple[Path, Path]:
        os.environ["QUOTH_STATE"], os.environ["QUOTH_CONFIG"] = str(place / "state"), str(place / "config")
        return place / "work", place / "state"

    def run(self, *words: str) -> Said:
        words = tuple(self.request if word == "ID" else word for word in words)
        own = () if words[0] in ("audit", "chat") else ("--user", "ann")
        return quoth(*words, *own, cwd=self.work, stdin=LINE)

    def columns(self) -> Iterator[tuple[str, str]]:
        """The columns in which a text is."""
        self.work, self.state = self._enter(self.kept)
        db = apsw.Connection(str(store_path(self.work)))
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        for (table,) in db.execute(tables).fetchall():
            for column in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]:
                sql = f"SELECT 1 FROM {table} WHERE typeof({column}) = 'text' AND {column} != '' LIMIT 1"
                if not table.startswith("sqlite_") and db.execute(sql).fetchall():
                    yield table, column
        db.close()

    def damaged(self, damage: Damage) -> str:
        """Begin with a copy of the shelf in which one byte is damaged; the text as it is then."""
        place = self.folder / "here"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.kept, place)
        (place / "state" / "workspaces").rename(place / "state" / "before")
        self.work, self.state = self._enter(self.kept)
        old = store_path(self.work).name
        self.work, self.state = self._enter(place)
        path = store_path(self.work)
        path.parent.mkdir()
        for file in (place / "state" / "before").iterdir():
            file.rename(path.parent / file.name.replace(old, path.name))
        chance = random.Random(damage.seed)
        db = apsw.Connection(str(path))
        where = f"typeof({damage.column}) = 'text' AND {damage.column} != ''"
        raw = f"CAST({damage.column} AS BLOB)"
        rows = db.execute(f"SELECT DISTINCT {raw} FROM {damage.table} WHERE {where}").fetchall()
        before = text = chance.choice(sorted(rows))[0]
        spot = chance.randrange(len(text))
        text = text[:spot] + DAMAGES[damage.kind] + text[spot + 1 :]
        db.execute("PRAGMA ignore_check_constraints = ON")
        try:
            db.execute(
                f"UPDATE {damage.table} SET {damage.column} = CAST(? AS TEXT) WHERE {raw} = ?",
                (text, before),
            )
        except apsw.ConstraintError:  # two rows would be the same
            return ""
        finally:
            db.close()
        return repr(text)

    def wrong(self, damage: Damage) -> list[str]:
        """What is wrong with what the commands say of a damage."""
        text, found = self.damaged(damage), []
        if not text:
            return []
        for words in COMMANDS:
            said = self.run(*words)
            told = f"{damage}: quoth {' '.join(words)}: exit code {said.code}"
            if said.code not in (0, 1, 2, 3) or "Traceback" in said.err + said.out:
                found.append(f"{told}, {' / '.join(said.err.strip().splitlines()[-3:])}, {text[:200]}")
            elif words == ("audit", "verify") and said.code == 0 and damage.table in ("audit", "events"):
                found.append(f"{told}: it does not see {text[:200]}")
            elif said.code in (1, 2) and not said.err.strip() + said.out.strip():
                found.append(f"{told}, without a word")
        return found


def damages(shelf: Shelf, seed: int, cases: int) -> list[Damage]:
    every = [Damage(*place, kind, seed) for place in shelf.columns() for kind in DAMAGES]
    return random.Random(seed).sample(every, cases) if cases else every


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=0, help="so many of them (default: all)")
    parser.add_argument("--only", default="", help="those of this table")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        shelf = Shelf(Path(folder))
        chosen = [one for one in damages(shelf, asked.seed, asked.cases) if asked.only in one.table]
        found = [what for damage in chosen for what in shelf.wrong(damage)]
    for what in found:
        print(what)
    tables = Counter(what.partition(",")[0] for what in found)
    print(f"{len(chosen)} damages, {len(COMMANDS)} commands each; {len(found)} wrong", dict(tables))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
