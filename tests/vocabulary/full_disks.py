"""The harness for disks that are full: a program, a run, a flight and a run in plan mode on a disk with room
for N writes, then with room again, continued by the command that the message named.

    python tests/vocabulary/full_disks.py              each route at 20 sizes of the disk, and a table
    python tests/vocabulary/full_disks.py --sizes 5    fewer

Each life is a process of its own. A tool writes each of its effects into a file beside the disk, so that the
truth is known: each effect is there once, whatever was written down. Nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

from commands import Said, quoth  # noqa: E402
from sentences import THEN_CONTINUE_WITH  # noqa: E402

LIVES = 12
TOOLS = """(require quoth [def-cognitive-tool])
(import pathlib [Path])
(def-cognitive-tool act
  "Do it."
  :parameters [n {:type int  :doc "What"}]
  :effects    [:writes]
  :body       (with [file (.open (Path "../done") "a")] (.write file f"{n}\\n") n))
(def-cognitive-tool look
  "Look."
  :effects    [:reads]
  :body       1)
"""
DO = "(try (act :n {}) (except [error PermissionError] None))"
PROGRAM = f"(do {DO.format(1)} (look) {DO.format(2)} (look) {DO.format(3)})"
REPLIES = "(act :n 1)\n---\n(act :n 2)\n---\n(look)\n---\n(act :n 3)\n---\nDone.\n"
STEP = "* PLAN {0}\n:PROPERTIES:\n:ID: s{0}\n:END:\n#+begin_src hy\n{1}\n#+end_src\n"
BEGIN = ["--tools", "tools.hy", "--policy", "policy.hy", "--session", "s"]
ROUTES = {
    "eval": ["eval", PROGRAM, *BEGIN],
    "run": ["run", "Go.", "--model", "scripted:replies.txt", *BEGIN],
    "fly": ["fly", "plan.org", *BEGIN],
    "plan": ["run", "Go.", "--model", "scripted:replies.txt", "--plan", *BEGIN],
}
# The command on a disk with room for so many writes, of stores and of the workspace's files.
LIFE = """import contextlib, errno, json, os, sys
from pathlib import Path
import apsw, disks
from quoth.agent.cli.main import main
from quoth.tools.storage import atomic

disk = disks.FullDisk("full")
disk.room = json.loads(sys.argv[1])
connection = apsw.Connection

class Connection(connection):
    def __init__(self, path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE):
        super().__init__(path, flags=flags, vfs="full")

    def close(self, force=False):
        with contextlib.suppress(apsw.FullError):  # SQLite itself minds none at its tidying up
            super().close(force)

fill = atomic._fill

def filled(*given):
    try:
        disk.take()
    except apsw.FullError:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
    fill(*given)

apsw.Connection, atomic._fill = Connection, filled
code = main(sys.argv[2:])
Path("../writes").write_text(str(disk.written))
sys.exit(code)
"""
NEXT = re.compile(rf"To continue(?: it)?: quoth (.*)|{THEN_CONTINUE_WITH}: quoth (.*)")


@dataclass
class Case:
    """One route on one disk. ``said`` is what the first life said at its end."""

    route: str
    room: int
    lives: int = 0
    asked: int = 0
    said: str = ""
    wrong: list[str] = field(default_factory=list)


class Place:
    """A workspace with a store of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "work"
        self.most = 0  # the writes of its longest life
        self.folder.mkdir(parents=True)
        files = {"tools.hy": TOOLS, "policy.hy": "(allow (act :n _))", "replies.txt": REPLIES}
        files["plan.org"] = "".join(STEP.format(n, DO.format(n)) for n in (1, 2, 3))
        files["life.py"] = LIFE
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self.live("call", "(look)", "--tools", "tools.hy")  # the store is there, as it mostly is

    def live(self, *words: str, room: int | None = None) -> Said:
        env = {"QUOTH_STATE": str(self.root / "state"), "QUOTH_CONFIG": str(self.root / "config")}
        said = quoth("life.py", json.dumps(room), *words, cwd=self.folder, env=env)
        self.most = max(self.most, int((self.root / "writes").read_text()))
        return said

    @property
    def done(self) -> list[int]:
        file = self.root / "done"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def decide(self) -> int:
        """Decide what waits, as a person does who looks: whether it was done before."""
        waiting = json.loads(self.live("pending", "--json").out)
        for one in waiting:
            number = int(re.search(r"act (?::n )?(\d)", str(one["form"]))[1])  # type: ignore[index]
            self.live("deny" if number in self.done else "approve", one["id"])
        return len(waiting)

    def missing(self, route: str) -> list[str]:
        """What is not as it would be had there been room all the time."""
        wrong = []
        if self.done != ([] if route == "plan" else [1, 2, 3]):
            wrong.append(f"done: {self.done}")
        if route == "plan":
            plan = self.folder / ".quoth/plans/s.org"
            steps = re.findall(r"\(act :n (\d)\)", plan.read_text()) if plan.exists() else []
            wrong += [] if steps == ["1", "2", "3"] else [f"planned: {steps}"]
        if route == "fly":
            words = re.findall(r"(?m)^\* (\w+) ", (self.folder / "plan.org").read_text())
            wrong += [] if words == ["DONE"] * 3 else [f"in the plan: {words}"]
        if route != "fly" and (over := self.live("resume", "s")).code != 2:
            wrong.append(f"afterwards something waits: {over}")
        wrong += [f"left: {one.name}" for one in self.folder.rglob(".*.quoth") if one.is_file()]
        return wrong


def case(root: Path, route: str, room: int) -> Case:
    """Begin on a disk with so much room, then continue as the messages say, until all is done."""
    place, found = Place(root), Case(route, room)
    words, end = ROUTES[route], Said(1, "", "")
    for life in range(LIVES):
        end = place.live(*words, room=None if life else room)
        found.lives += 1
        found.said = found.said or end.err.strip().rpartition("\n")[2]
        if "Traceback" in end.err:
            found.wrong.append(end.err)
            return found
        if not life and end.code not in (0, 1):
            found.wrong.append(f"the first life ended with {end}")
        if end.code == 0:
            break
        if end.code == 3:
            found.asked += place.decide()
        if said := NEXT.findall(end.err):
            words = shlex.split("".join(said[-1]))
        elif life:
            found.wrong.append(f"nothing is said of how to go on: {end}")
            return found
    found.wrong += [f"it does not end: {end}"] if end.code else place.missing(route)
    return found


def needed(root: Path, route: str) -> int:
    """The number of writes that a route needs where there is room."""
    place = Place(root)
    end = place.live(*ROUTES[route])
    if end.code:
        raise SystemExit(f"{route} does not end well where there is room: {end}")
    return place.most


def cases(root: Path, sizes: int) -> Iterator[Case]:
    """Each route at so many sizes, from none to all but one of the writes that it needs."""
    for route in ROUTES:
        most = needed(root / route, route)
        for room in sorted({most * n // sizes for n in range(sizes)}):
            yield case(root / f"{route}-{room}", route, room)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, default=20)
    found = []
    with tempfile.TemporaryDirectory(prefix="quoth-full-") as folder:
        for one in cases(Path(folder), parser.parse_args().sizes):
            found.append(one)
            said = re.sub(r"/\S+sqlite", "…", one.said)
            print(f"{one.route:5} room {one.room:>4}: {one.lives} lives, {one.asked} asked; {said[:90]}")
            print(*(f"      WRONG {wrong}\n" for wrong in one.wrong), sep="", end="", flush=True)
    wrong = sum(bool(one.wrong) for one in found)
    lives, asked = sum(one.lives for one in found), sum(one.asked for one in found)
    print(f"{len(found)} disks, {lives} lives, {asked} questions, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
