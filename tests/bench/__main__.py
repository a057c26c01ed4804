"""Make the tables of RESULTS.org again, by the commands that stand beside them there.

python -m tests.bench [WORD …] [--list] [--write] [--minutes 30]
python -m tests.bench :quote: --write     the sections to quote, in less than an hour

Runs the command of every section whose heading or command holds one of the words; without a word, of all.
With --write a table it prints takes the place of the one with the same head in that section, and a line
says when, how long, on what machine and with which versions; else it is only shown. The other words are a
person's: it says which sections to read again. An environment that a section begins with (``python -m venv
NAME && …``) is made in a folder that goes away. What else must be fetched first (a variable given as ``…``)
is left to you, and said. It knows the form of RESULTS.org and nothing of what is measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.org")
ROOT = RESULTS.parents[2]
SOURCE = re.compile(r"#\+begin_src sh\n(.*?)#\+end_src", re.DOTALL)
TABLE = re.compile(r"(?:^[ ]*\|.*\n)+", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
MEASURED = re.compile(r"^ *Measured on .*\n", re.MULTILINE)
PARTS = ("apsw", "httpx", "hy", "pydantic", "pydantic-monty")  # whose versions are told


@dataclass(frozen=True)
class Section:
    """A heading of RESULTS.org with its text, up to the next heading of any level."""

    start: int
    text: str

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0].lstrip("* ")

    @property
    def lines(self) -> list[str]:
        return [line.split("  #")[0] for block in SOURCE.findall(self.text) for line in block.splitlines()]

    @property
    def environments(self) -> list[str]:
        """The lines that make an environment."""
        return [line for line in self.lines if " -m venv " in line]

    @property
    def commands(self) -> list[str]:
        runs = [line.rpartition("&& ")[2].strip() for line in self.lines if line not in self.environments]
        return [run for run in runs if "python" in run]


def sections(text: str) -> list[Section]:
    starts = [found.start() for found in re.finditer(r"^\*+ ", text, re.MULTILINE)]
    ends = [*starts[1:], len(text)]
    return [Section(start, text[start:end]) for start, end in zip(starts, ends, strict=True)]


def head(table: str) -> tuple[str, ...]:
    """The cells of a table's first line, without markup."""
    return tuple(cell.strip(" =~") for cell in table.strip().splitlines()[0].strip(" |").split("|"))


def replaced(section: str, printed: list[str], today: str) -> tuple[str, int]:
    """The section with every table that was printed again in place of the one with the same head, in their
    order, and how many those are. The first date in it becomes ``today`` if there is one."""
    waiting: dict[tuple[str, ...], Iterator[str]] = {}
    for table in printed:
        waiting.setdefault(head(table), iter([other for other in printed if head(other) == head(table)]))
    count = 0

    def put(found: re.Match[str]) -> str:
        nonlocal count
        new = next(waiting.get(head(found[0]), iter(())), None)
        if new is None:
            return found[0]
        count += 1
        indent = re.match(" *", found[0])[0]  # type: ignore[index]
        return "".join(f"{indent}{line.strip()}\n" for line in new.splitlines())

    text = TABLE.sub(put, section)
    words = next(iter(TABLE.split(text)))  # a date in a table is a result
    return (DATE.sub(today, words, count=1) + text[len(words) :] if count else section), count


def with_measure(section: str, measure: str) -> str:
    """The section with the line that says how it was measured behind its heading."""
    heading, _, rest = MEASURED.sub("", section).partition("\n")
    return f"{heading}\n  {measure}\n{rest}"


def measure(today: str, seconds: float, load: float) -> str:
    """When, how long, on what and with what; ``load`` is that of the minute before."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    parts = ", ".join(f"{name} {version(name)}" for name in PARTS)
    return (
        f"Measured on {today} in {seconds:.0f} s, quoth at {commit.stdout.strip() or version('quoth')}: "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before; "
        f"CPython {platform.python_version()}, {parts}."
    )


def make_environments(section: Section, folder: Path) -> None:
    for line in section.environments:
        line = line.replace("python", shlex.quote(sys.executable), 1).replace(
            " . ", f" {shlex.quote(str(ROOT))} "
        )
        subprocess.run(["sh", "-c", line], cwd=folder, check=True, timeout=900)


def runnable(command: str, folder: Path) -> tuple[list[str], dict[str, str], str]:
    """The arguments and variables of a command, and why it cannot be run, if so. ``folder`` contains the
    environments."""
    words, given = shlex.split(command), {}
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        name, _, value = words.pop(0).partition("=")
        if "…" in value:
            if name not in os.environ:
                return words, given, f"set {name} first"
        else:
            given[name] = value
    words = [word for word in words if not (word.startswith("[") or word.endswith("]"))]
    if any(word.startswith("FOLDER") or "…" in word for word in words):
        return words, given, "name the folder it asks for, and run it by hand"
    if words and words[0].endswith("python") and "/" in words[0]:
        own = folder / words[0]
        why = "" if own.exists() else "it wants an environment of its own"
        return [str(own), *words[1:]], given, why
    return [sys.executable, *words[1:]], given, ""


def run(command: str, minutes: float, folder: Path) -> str:
    """What a command prints; empty if it could not be run or failed, which is then said."""
    words, given, why = runnable(command, folder)
    if why:
        print(f"left out: {command}: {why}", file=sys.stderr)
        return ""
    begun = time.monotonic()
    try:
        done = subprocess.run(
            words,
            cwd=ROOT,
            env=os.environ | given,
            stdout=subprocess.PIPE,
            text=True,
            timeout=minutes * 60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"stopped after {minutes:g} minutes: {command}", file=sys.stderr)
        return ""
    print(f"{time.monotonic() - begun:.0f} s, exit {done.returncode}: {command}", file=sys.stderr)
    return done.stdout if done.returncode == 0 else ""


def again(section: Section, folder: Path, minutes: float, *, write: bool) -> None:
    """Run the commands of a section, show what they print, and write its tables if asked."""
    load, begun = os.getloadavg()[0], time.monotonic()
    make_environments(section, folder)
    output = "".join(run(command, minutes, folder) for command in section.commands)
    print(output, flush=True)
    printed = TABLE.findall(output)
    if not (write and printed):
        return
    today = date.today().isoformat()
    new, count = replaced(section.text, printed, today)
    if count:
        new = with_measure(new, measure(today, time.monotonic() - begun, load))
    text = RESULTS.read_text()  # read anew: the command may have taken an hour
    RESULTS.write_text(text.replace(section.text, new, 1))
    print(
        f"{count} of {len(printed)} tables are written; read the words of this section again.",
        file=sys.stderr,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="Make the tables of RESULTS.org again."
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="only sections with one of these words")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.org")
    parser.add_argument("--minutes", type=float, default=30, help="the longest time of a command")
    options = parser.parse_args()
    wanted = [word.casefold() for word in options.words]
    chosen = [
        section
        for section in sections(RESULTS.read_text())
        if section.commands
        and (
            not wanted
            or any(word in "\n".join((section.title, *section.commands)).casefold() for word in wanted)
        )
    ]
    if not chosen:
        print(
            f"No section of {RESULTS.name} has {' or '.join(options.words)} in its heading or command.",
            file=sys.stderr,
        )
        return 2
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="quoth-bench-") as folder:
        for section in chosen:
            print(f"\n* {section.title}", flush=True)
            if options.list:
                print("\n".join(f"  {command}" for command in section.commands))
            else:
                again(section, Path(folder), options.minutes, write=options.write)
    if not options.list:
        print(f"{len(chosen)} sections in {(time.monotonic() - begun) / 60:.0f} minutes.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever read the output has enough
    sys.exit(main())
