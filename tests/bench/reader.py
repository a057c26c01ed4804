"""The reader beside hy.read_many, sexpdata and json.loads, on the same calls in one run. Prints Org tables.

python tests/bench/reader.py [--rounds N]; sexpdata (pip install sexpdata) is measured where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import hy

from quoth.neuro.reading.reply import ReplyStream, read_reply
from quoth.tools.lisp.forms import CallForm, canonical, from_model
from quoth.tools.lisp.reader import read_all

KNOWN = ("grep-search", "read-file", "write-file", "edit-file", "eval", "echo")
LONG = '    total += price * (1 + rate)  # so far, "net"\n'
SAMPLES: dict[str, list[CallForm]] = {
    "one text": [CallForm("echo", {"text": "hello"})],
    "a small call": [CallForm("grep-search", {"pattern": "TODO", "path": "src", "limit": 20})],
    "six calls": [
        CallForm("grep-search", {"pattern": "def \\w+", "path": "src", "limit": 20}),
        CallForm("read-file", {"path": "src/app.py", "start": 10, "limit": 40}),
        CallForm("edit-file", {"path": "src/app.py", "old": "a = 1\n", "new": "a = 2\n"}),
        CallForm("write-file", {"path": "notes.org", "content": "* To do\n- [ ] one\n"}),
        CallForm("echo", {"text": "done", "list": [1, 2, [3, 4]], "more": {"a": True, "b": None}}),
        CallForm("echo", {"text": "é 変 🙂"}),
    ],
    "200 KB in a string": [
        CallForm("write-file", {"path": "a.py", "content": LONG * (200_000 // len(LONG))})
    ],
    "the same, no escapes": [CallForm("write-file", {"path": "a", "content": "words in a row " * 13_334})],
    "a list of 10,000": [CallForm("echo", {"list": list(range(10_000))})],
}


def readers(lisp: str, as_json: str) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        "hy.read_many": lambda: list(hy.read_many(lisp)),
        "read_all": lambda: read_all(lisp),
        "read_reply": lambda: read_reply(lisp, KNOWN),
        "form to CallForm": lambda: [from_model(form) for form in read_all(lisp)],
        "json.loads": lambda: json.loads(as_json),
    }
    if importlib.util.find_spec("sexpdata"):
        parse = import_module("sexpdata").loads
        found["sexpdata"] = lambda: parse(f"({lisp})")
    return found


def seconds(act: Callable[[], Any], budget: float = 0.02) -> float:
    """The time of one act; short ones are repeated to fill the budget."""
    started = time.process_time()
    act()
    once = time.process_time() - started
    number = max(1, min(2_000, int(budget / max(once, 1e-7))))
    started = time.process_time()
    for _ in range(number):
        act()
    return (time.process_time() - started) / number


def compare(rounds: int) -> None:
    print("| calls | reader | us | json.loads = 1 | faster than hy.read_many |\n|---+---+---+---+---|")
    for name, calls in SAMPLES.items():
        lisp = "\n".join(canonical(form) for form in calls)
        as_json = json.dumps([{"tool": form.tool, "args": form.args} for form in calls])
        acts = readers(lisp, as_json)
        assert [call.form for call in read_reply(lisp, KNOWN).calls] == calls
        times: dict[str, list[float]] = {reader: [] for reader in acts}
        for _ in range(rounds):  # interleaved, so that a busy moment hits all alike
            for reader, act in acts.items():
                times[reader].append(seconds(act))
        median = {reader: statistics.median(found) for reader, found in times.items()}
        for reader, found in median.items():
            ratio, faster = found / median["json.loads"], median["hy.read_many"] / found
            print(f"| {name} | {reader} | {found * 1e6:.1f} | {ratio:.1f} | {faster:.1f} |")


SHAPES = {
    "prose": "some words ",
    "small calls": '(echo :text "hi")\n',
    "one string": "x",
    "open parentheses": "(",
    "inner forms": "(a (b) ",
    "an unclosed call a line": "(echo :x\n",
    "curly quotes": "(echo :text “a ) ",
    "open braces": '{"a": ',
    "broken JSON a line": '{"a" 1}\n',
    "calls in JSON": '{"tool": "echo", "args": {}}\n',
    "calls in Python's way": "echo(x=1); ",
    "fences": "```\n",
    "blank lines": "\n",
    "examples": "For example:\n(echo :text 1)\n\n",
}


def grow() -> None:
    """Twice the text takes twice the time, read whole or in pieces of eight characters."""
    print("\n| shape | 2.5 MB, s | 5 MB, s | ratio | stream of 0.5 MB, s | of 1 MB, s | ratio |")
    print("|---+---+---+---+---+---+---|")
    for name, unit in SHAPES.items():
        row = []
        for size in (2_500_000, 5_000_000):
            text = ('(echo :text "' if name == "one string" else "") + unit * (size // len(unit))
            row.append(seconds(lambda text=text: read_reply(text, KNOWN), 0))  # type: ignore[misc]
        for size in (500_000, 1_000_000):
            text = ('(echo :text "' if name == "one string" else "") + unit * (size // len(unit))
            row.append(seconds(lambda text=text: _stream(text), 0))  # type: ignore[misc]
        one, two, three, four = row
        print(
            f"| {name} | {one:.2f} | {two:.2f} | {two / one:.1f} "
            f"| {three:.2f} | {four:.2f} | {four / three:.1f} |"
        )


def _stream(text: str) -> None:
    reply = ReplyStream(KNOWN)
    for place in range(0, len(text), 8):
        reply.feed(text[place : place + 8])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    compare(options.parse_args().rounds)
    grow()


if __name__ == "__main__":
    main()
