"""The README and the pages of the manual, executed: a line after ``$`` is run, one after ``quoth>`` is typed
at the REPL of that block, and what follows must be what is shown then. Files are made and Python is
run on the way; each page has a folder and a store of its own.

``PYTHONPATH=tests/vocabulary python tests/vocabulary/pages.py [PAGE.org …]`` puts the real output in; read it
before it is committed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from commands import calls, quoth
from screens import Screen
from servers import redis_program

from quoth.tools.org.edit import escape, unescape

ROOT = Path(__file__).parents[2]
README = ROOT / "README.org"
PAGES = sorted((ROOT / "agent" / "manual").glob("*.org"))
_BLOCK = re.compile(r"^#\+begin_(src|example)[ \t]*([^\n]*)\n(.*?)^#\+end_\1\n", re.MULTILINE | re.DOTALL)
_QUESTION = r"Allow it\? [^\n:]*:"
_PROMPT = re.compile(rf"^(?:quoth>|  {_QUESTION})", re.MULTILINE)
_TYPED = re.compile(rf"^(?:quoth>|  {_QUESTION}) (.+)$", re.MULTILINE)
_WAITS = re.compile(rf"(?:\nquoth>|{_QUESTION})$")
# A command that a shell has to lead: it reads a file, and is written into one, or piped on.
_LED = re.compile(r"(quoth .+?)(?: < ([\w.-]+))?(?: > ([\w.-]+)|( 2>&1)? \| (.+))?")
SHOP = ROOT / "plans" / "examples" / "shop"
_KILL = re.compile(r"\$ kill (-9 )?%(\d)")
_USES = re.compile(r"^#\+USES: (\S+)$", re.MULTILINE)  # a file of the shop, or * for the whole folder

# What a shell, or quoth itself, starts: a fork of a process that has imported all, where it is a script.
PROGRAMS = {
    "quoth": '#!/bin/sh\nexec {forked} "$@"\n',
    "python": '#!/bin/sh\ncase "$1" in *.py) exec {forked} "$@";; *) exec {python} "$@";; esac\n',
}


# A program without an end is given half a second of the five: its sentence alone counts.
ENDLESS = "(while True 1)"
HURRIED = """
from quoth.agent.entry import main
from quoth.tools.sandbox.pool import SandboxLimits
SandboxLimits.__init__.__defaults__ = (0.5, *SandboxLimits.__init__.__defaults__[1:])
raise SystemExit(main())
"""


class Names:
    """What is different in each run is always the same on a page: ids of requests, times, hashes.
    A command that is given such a name is run with the real one."""

    FIXED = (
        ("hm4kq", "w7t2d", "c9xpe", "n3vbz", "g6ysa", "p2rwf", "k8duh", "x4mce", "b7rdt"),
        (
            "s5e0c81f2",
            "s9b37d04a",
            "s22c6e95b",
            "s70f1ad3c",
            "sd81b6e40",
            "s4fa92c7e",
            "s6b20d7f9",
            "s18e3c5a4",
            "s3d96f07b",
        ),
    )
    REAL = (
        re.compile(
            r"(?<=request )[2-9a-z]{5}\b|(?<=quoth approve )[2-9a-z]{5}\b|^[2-9a-z]{5}(?=  \()"
            r'|(?<="request": {"id": ")[2-9a-z]{5}\b',
            re.MULTILINE,
        ),
        re.compile(r"\bs[0-9a-f]{8}\b"),
    )
    PASSING = (
        (r"\b20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d|)( UTC|)", r"2026-11-22 09:30\2"),
        (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\b", "2026-11-22T09:30:00"),
        (r'(?<="score" )[\d.]+', "1.25"),
        (r" +\d+ ms\b", " 120 ms"),
        (r"(?m)^20\d\d-\d\d-\d\d(?=  )", "2026-11-22"),
        (r"\[20\d\d-\d\d-\d\d \w{3} \d\d:\d\d\]", "[2026-11-22 Sun 09:30]"),
        (r"(?<=, )\d+\.\d s\b", "0.1 s"),
        (r"(?<=[$]0\.0000  )\d\.\d\b", "0.1"),
        (r"(?<=:RECORDED: )20\d\d-\d\d-\d\d", "2026-11-22"),
        (r"(?<= in )\d+\.\d{3}s\b", "0.001s"),
        (r"(?<=workspaces/shop-)[0-9a-f]{16}", "5d0c4b1a9e7f3826"),
        (r"(?<=, hash )[0-9a-f]{12}\b", "5d0c4b1a9e7f"),
        (r"(?<=as call )[0-9a-f]{10}\b", "23a396caf7"),
        (r"\b[0-9a-f]{64}\b", "8ebbed846c68bdba…"),
        (r"(?<=digest )[0-9a-f]{12}\b", "3f9a21c04b7e"),
        (r'(?:(?<=digest )|(?<=digest "))[0-9a-f]{32}\b', "3f9a21c04b7e5d186a90c2e4f1b7d835"),
        (r"(?<=, in )\d+ (hours?|minutes?|seconds?|s)(?=\.)", "8 hours"),
    )

    def __init__(self) -> None:
        self.real: dict[str, str] = {}  # by their names on the page

    def on_the_page(self, output: str) -> str:
        for fixed, pattern in zip(self.FIXED, self.REAL, strict=True):
            for found in pattern.findall(output):
                if found not in self.real.values():
                    self.real[next(name for name in fixed if name not in self.real)] = found
        for name, found in self.real.items():
            output = output.replace(found, name)
        for pattern, fixed_text in self.PASSING:
            output = re.sub(pattern, fixed_text, output)
        return output

    def in_truth(self, line: str) -> str:
        for name, found in self.real.items():
            line = line.replace(name, found)
        return line


def _environment(state: Path) -> dict[str, str]:
    path = os.pathsep.join([f"{state.parent / 'bin'}", f"{Path(sys.executable).parent}", os.environ["PATH"]])
    own = {"QUOTH_STATE": str(state), "QUOTH_CONFIG": str(state / "config"), "LOGNAME": "ann"}
    return {**os.environ, **own, "PATH": path, "COLUMNS": "100"}


def _run(line: str, folder: Path, state: Path, names: Names | None = None) -> str:
    names = names or Names()
    line = names.in_truth(line)
    before, _, last = line.rpartition(" | ")
    if (words := _words(last))[:1] == ["quoth"]:
        stdin = _shell(before, folder, state) if before else None
        if ENDLESS in words:
            words.insert(1, str(state.parent / "hurried.py"))
            Path(words[1]).write_text(HURRIED)
        out = quoth(*words[1:], cwd=folder, stdin=stdin, env=_environment(state), together=True).out
    elif (found := _LED.fullmatch(line)) and (words := _words(found[1])):
        stdin = (folder / found[2]).read_text() if found[2] else None
        merged = bool(found[4]) or not (found[3] or found[5])
        said = quoth(*words[1:], cwd=folder, stdin=stdin, env=_environment(state), together=merged)
        out = said.out
        if found[3]:
            (folder / found[3]).write_text(out)
            out = ""
        out = said.err + (_shell(found[5], folder, state, out) if found[5] else out)
    else:
        out = _shell(line, folder, state)
    return _told(out, folder, state, names)


def _told(text: str, folder: Path, state: Path, names: Names) -> str:
    """What was said, as it stands on a page."""
    places = {
        folder.resolve(): "/home/ann/shop",
        state / "config": "~/.config/quoth",
        state: "~/.local/share/quoth",
    }
    for place, told in places.items():
        text = text.replace(str(place), told)
    return names.on_the_page(text)


def _shell(line: str, folder: Path, state: Path, stdin: str = "") -> str:
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, env=_environment(state), input=stdin,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    ).stdout  # fmt: skip


def _words(line: str) -> list[str]:
    """The words of a line that is one command and needs no shell; none of any other."""
    split = shlex.shlex(line, posix=True, punctuation_chars=True)
    split.whitespace_split = True
    words = [*split]
    return words if words == shlex.split(line) and not {"|", "<", ">", ";"} & {*words} else []


def page(topic: str) -> str:
    """The text of a page of the manual."""
    return next(one for one in PAGES if one.stem == topic).read_text()


def files_of(text: str) -> dict[str, str]:
    """The files that a page makes."""
    blocks = ((options.partition(":tangle ")[2].split(), body) for _, options, body in _BLOCK.findall(text))
    return {name[0]: unescape(body) for name, body in blocks if name}


def tangled(topic: str, name: str) -> str:
    """The file that a page makes."""
    return files_of(page(topic))[name]


class Job:
    """A command of a page that runs in the background."""

    def __init__(self, line: str, folder: Path, state: Path, number: int) -> None:
        self._heard, self._seen = state.parent / f"job{number}", 0
        with self._heard.open("wb") as heard:
            self._process = subprocess.Popen(
                ["sh", "-c", f"exec {line}"], cwd=folder, env=_environment(state),
                stdin=subprocess.DEVNULL, stdout=heard, stderr=heard, start_new_session=True,
            )  # fmt: skip

    def says(self, lines: int) -> str:
        """Its output once it has printed so many lines, or has ended."""
        deadline = time.monotonic() + 60
        while self._heard.read_bytes().count(b"\n") < lines and time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        return self._more()

    def ended(self, by: int) -> str:
        """What it printed when this signal ended it; a killed one had nothing to say."""
        assert self._process.poll() is None, "it ended before it was killed"
        os.killpg(self._process.pid, by)
        self._process.wait(60)
        return "" if by == signal.SIGKILL else self._more()

    def kill(self) -> None:
        if self._process.poll() is None:
            self.ended(signal.SIGKILL)

    def _more(self) -> str:
        text = self._heard.read_text()
        more, self._seen = text[self._seen :], len(text)
        return more


class Page:
    """A page while it is executed: its folder and store, its names, and what runs in the background."""

    def __init__(self, place: Path) -> None:
        self.folder, self.state = place / "shop", place / "state"
        self.folder.mkdir()
        self.names = Names()
        self.jobs: list[Job] = []
        (place / "bin").mkdir()
        for name, text in PROGRAMS.items():
            program = place / "bin" / name
            program.write_text(text.format(forked=shlex.join(calls()), python=shlex.quote(sys.executable)))
            program.chmod(0o755)

    def typed(self, body: str) -> str:
        """The lines that are typed in a block, each with what it prints now."""
        if _TYPED.search(body):
            return self._at_the_prompt(body)
        parts = re.split(r"^(?=\$ )", body, flags=re.MULTILINE)[1:]
        return "".join(self._command(*part.split("\n", 1)) for part in parts)

    def _command(self, line: str, expected: str) -> str:
        self._hasten(3 if line.endswith(" &") else 0)
        if line.endswith(" &"):
            self.jobs.append(Job(line[2:-2], self.folder, self.state, len(self.jobs) + 1))
            out = self._told(self.jobs[-1].says(expected.count("\n")))
        elif killed := _KILL.fullmatch(line):
            job = self.jobs[int(killed[2]) - 1]
            out = self._told(job.ended(signal.SIGKILL if killed[1] else signal.SIGTERM))
        else:
            out = _run(line[2:], self.folder, self.state, self.names)
        return f"{line}\n{escape(out)}"

    def _hasten(self, seconds: int) -> None:
        """Let the shop's slow model think so long: only what is killed meanwhile needs its three seconds."""
        if (model := self.folder / "slow.hy").exists():
            model.write_text(re.sub(r"(asyncio\.sleep) \d", rf"\1 {seconds}", model.read_text()))

    def _at_the_prompt(self, body: str) -> str:
        """The screen of a REPL in which the lines of the block that follow a prompt were typed."""
        line, _, shown = body.partition("\n")
        typed = [found[1] for found in _TYPED.finditer(shown)]
        with Prompt(
            *_words(line[2:])[1:], cwd=self.folder, env=_environment(self.state), size=(200, 300)
        ) as at:
            for number, entry in enumerate(typed, 1):
                at.waits(number)
                at.enter(self.names.in_truth(entry))
            at.waits(len(typed) + 1)
            text = at.text.removesuffix("quoth>").rstrip()
        return f"{line}\n{escape(self._told(text))}\n"

    def _told(self, text: str) -> str:
        return _told(text, self.folder, self.state, self.names)


class Prompt(Screen):
    """A REPL at whose prompts, and questions, one types."""

    def waits(self, number: int) -> None:
        """Wait until so many prompts were shown, and nothing stands behind the last one."""
        self.wait(
            lambda: len(_PROMPT.findall(self.text)) >= number and bool(_WAITS.search(self.text)),
            f"{number} prompts",
            30,
        )


def executed(text: str, place: Path) -> str:
    """A page with the real output under every command."""
    page = Page(place)
    try:
        return _executed(text, page)
    finally:
        for job in page.jobs:
            job.kill()


def _executed(text: str, page: Page) -> str:
    if "$ redis-server" in text:
        (page.state.parent / "bin" / "redis-server").symlink_to(redis_program())
    for name in _USES.findall(text):
        if name == "*":
            shutil.copytree(SHOP, page.folder, dirs_exist_ok=True)
        else:
            shutil.copy(SHOP / name, page.folder)
    parts, position = [], 0
    for block in _BLOCK.finditer(text):
        kind, options, body = block.groups()
        parts.append(text[position : block.start(3)])
        if kind == "example" and body.startswith("$ "):
            body = page.typed(body)
        elif ":tangle" in options:
            target = page.folder / options.split(":tangle")[1].split()[0]
            target.parent.mkdir(exist_ok=True)
            target.write_text(unescape(body))
        elif options.startswith("sh :name reply"):
            assert _run(body, page.folder, page.state) == ""
        elif options.startswith("python"):
            (page.folder / "example.py").write_text(body)
            said = quoth("example.py", cwd=page.folder, env=_environment(page.state), together=True)
            assert (said.code, said.out) == (0, "")
        parts.append(body)
        position = block.end(3)
    return "".join([*parts, text[position:]])


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else [README, *PAGES]:
        with tempfile.TemporaryDirectory() as made:
            path.write_text(executed(path.read_text(), Path(made).resolve()))
