"""Make the tables of RESULTS.org again, by the commands that stand beside them there.

python -m tests.bench [WORD …] [--list] [--write] [--minutes 30]

Runs the command of every section whose heading or command holds one of the words; without a word, of all.
With --write a table it prints takes the place of the one with the same head in that section; else it is only
shown. The words between the tables are a person's: it says which sections to read again. What must be fetched
first (a ``pip install`` before the command, a variable given as ``…``) is left to you, and said.
It knows the form of RESULTS.org and nothing of what is measured.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.org")
ROOT = RESULTS.parents[2]
SOURCE = re.compile(r"#\+begin_src sh\n(.*?)#\+end_src", re.DOTALL)
TABLE = re.compile(r"(?:^[ ]*\|.*\n)+", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Section:
    """A heading of RESULTS.org with its text, up to the next heading of any level."""

    start: int
    text: str

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0].lstrip("* ")

    @property
    def commands(self) -> list[str]:
        lines = [line for block in SOURCE.findall(self.text) for line in block.splitlines()]
        runs = [line.split("  #")[0].rpartition("&& ")[2].strip() for line in lines]
        return [run for run in runs if "python" in run and " -m venv " not in run]


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
    return (DATE.sub(today, text, count=1) if count else section), count


def runnable(command: str) -> tuple[list[str], dict[str, str], str]:
    """The arguments and variables of a command, and why it cannot be run, if so."""
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
        return words, given, "it wants an environment of its own"
    return [sys.executable, *words[1:]], given, ""


def run(command: str, minutes: float) -> str:
    """What a command prints; empty if it could not be run or failed, which is then said."""
    words, given, why = runnable(command)
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
    for section in chosen:
        print(f"\n* {section.title}", flush=True)
        if options.list:
            print("\n".join(f"  {command}" for command in section.commands))
            continue
        output = "".join(run(command, options.minutes) for command in section.commands)
        print(output, flush=True)
        printed = TABLE.findall(output)
        if options.write and printed:
            text = RESULTS.read_text()  # read anew: the command may have taken an hour
            new, count = replaced(section.text, printed, date.today().isoformat())
            RESULTS.write_text(text.replace(section.text, new, 1))
            print(
                f"{count} of {len(printed)} tables are written; read the words of this section again.",
                file=sys.stderr,
            )
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever read the output has enough
    sys.exit(main())
