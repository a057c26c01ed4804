"""What the manual shows of more than one machine happens: with a Redis, and with processes that are killed.

Each line after ``shop$`` is typed in the folder of the workers, each after ``till$`` in an empty one. Workers
stay in the background, and what they say is shown with the command that they say it after.
``PYTHONPATH=tests/vocabulary python tests/agent/worker/test_machines.py --write`` puts the real output in;
read it before it is committed.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

import pytest
from pages import ROOT, Names, page, tangled
from servers import redis_server
from words import Running, quoth, started

from quoth.agent.cli.machines import WorkerOptions
from quoth.agent.cli.options import Options
from quoth.tools.org.edit import unescape

TOPICS = ("machines", "cookbook")
URL = "redis://127.0.0.1"
SIGNALS = {"-HUP": signal.SIGHUP, "-9": signal.SIGKILL, "-TERM": signal.SIGTERM}
# What is different each time, and what stands for it in the manual.
PASSING = (
    (r"(?<=hash )[0-9a-f]{12}\b", "5d0c4b1a9e7f"),
    (r"\b[0-9a-f]{64}\b", "8ebbed846c68bdba…"),
    (r"\b20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d|)( UTC|)", r"2026-11-22 09:30\2"),
    (r" +\d+ ms\b", " 120 ms"),
    (r"\bkey [0-9a-f]{8}\b", "key 1c9e4a07"),
)


class Laptop:
    """Two terminals in two folders, and one Redis, whose real address is not the one that is typed."""

    def __init__(self, place: Path, redis: str, stack: ExitStack) -> None:
        self._place, self._redis, self._stack = place, redis, stack
        self._jobs: dict[str, list[Running]] = {"shop": [], "till": []}  # in the background, %1 first
        self._names = Names()
        for name in ("shop", "till"):
            (place / name).mkdir()

    def write(self, name: str, text: str) -> None:
        (self._place / "shop" / name).write_text(text)

    def type(self, where: str, line: str) -> str:
        """Type a line, and all that is said until the next one."""
        line = self._names.in_truth(line).replace(URL, self._redis)
        words, folder = shlex.split(line), self._place / where
        given = {
            "QUOTH_STATE": str(self._place / "state"),
            "QUOTH_CONFIG": str(self._place / "config"),
            "LOGNAME": "ann",
            "COLUMNS": "100",
        }
        if words[-1] == "&":
            running = self._stack.enter_context(started(*words[1:-1], cwd=folder, env=given))
            self._jobs[where].append(running)
            heard = _until("Started", running) if "worker" in words else ""
        elif words[0] == "kill":
            heard = self._kill(self._jobs[where], *words[1:])
        elif words[0] == "wait":
            said = self._jobs[where].pop().ended()
            heard = said.err + said.out
        elif words[0] == "quoth":
            heard = quoth(*words[1:], cwd=folder, env=given, together=True).out
        else:
            heard = subprocess.run(
                ["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=True
            ).stdout
        return self._in_the_manual(heard)

    def _kill(self, jobs: list[Running], *words: str) -> str:
        number, how = int(words[-1][1:]) - 1, SIGNALS[words[0]] if len(words) > 1 else signal.SIGTERM
        jobs[number].process.send_signal(how)
        if how == signal.SIGHUP:
            return _until("", jobs[number])
        running = jobs.pop(number)
        before = len(running.heard)
        return running.ended().err[before:]

    def _in_the_manual(self, text: str) -> str:
        text = text.replace(self._redis, URL).replace(str(self._place / "state"), "~/.local/share/quoth")
        text = text.replace(str(self._place), "/home/ann")
        for pattern, fixed in PASSING:
            text = re.sub(pattern, fixed, text)
        return self._names.on_the_page(text)


def _until(words: str, running: Running) -> str:
    """What it says on stderr, up to the line that holds the words."""
    heard = ""
    while words not in heard or not heard:
        line = running.stderr.readline()
        assert line, f"it ended after {running.heard!r}"
        heard += line
    running.heard += heard
    return heard


def _played(text: str, laptop: Laptop) -> str:
    """The page with the real output under every command."""

    def play(found: re.Match[str]) -> str:
        lines = [line for line in found[0].splitlines() if re.match(r"(shop|till)\$ ", line)]
        if not lines:
            return found[0]
        told = [f"{line}\n{laptop.type(*line.split('$ ', 1))}" for line in lines]
        return f"#+begin_example\n{''.join(told)}#+end_example\n"

    typed = "".join(re.findall(r"^(?:shop|till)\$ .*", text, re.M))
    for name, body in re.findall(r"^#\+begin_src \w+ :tangle (\S+)\n(.*?)^#\+end_src", text, re.M | re.S):
        if name in typed:
            laptop.write(name, unescape(body))
    return re.sub(r"^#\+begin_example\n.*?^#\+end_example\n", play, text, flags=re.M | re.S)


def _today(topic: str, place: Path, redis: str) -> str:
    with ExitStack() as stack:
        laptop = Laptop(place, redis, stack)
        laptop.write("stock.txt", tangled("start", "stock.txt"))
        laptop.write("shop.hy", tangled("tools", "shop.hy"))
        return _played(page(topic), laptop)


@pytest.mark.parametrize("topic", TOPICS)
def test_what_the_manual_shows_of_more_machines_happens(topic: str, tmp_path: Path, redis: str) -> None:
    assert _today(topic, tmp_path, redis) == page(topic)


def test_the_table_of_options_has_each_of_a_worker() -> None:
    told = {*re.findall(r"=(--[a-z]+)[ =]", "".join(re.findall(r"^\| .*", page("machines"), re.MULTILINE)))}
    own = {one.metadata["flags"][0] for one in fields(WorkerOptions) if one not in fields(Options)}
    assert own <= told, "of its own"
    assert told <= {one.metadata["flags"][0] for one in fields(WorkerOptions) if one.metadata}


if __name__ == "__main__" and "--write" in sys.argv:
    for topic in TOPICS:
        with tempfile.TemporaryDirectory() as place, redis_server() as server:
            (ROOT / "agent" / "manual" / f"{topic}.org").write_text(_today(topic, Path(place), server))
