"""What a reply can cost to read: work grows with its length, whatever its shape, and no faster.

Work is counted in calls of functions, Python's and C's, not in time; where one call of C is the work, four
times the text may take twelve times as long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module

import pytest
from sentences import CANNOT_BE_READ, IT_IS_CALLED_AS
from words import gateway, tool

from quoth.agent.session.origins import close, words
from quoth.neuro.reading.reply import read_reply
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import HARD_KEYS
from quoth.tools.registry.table import cognitive_tools

KNOWN = ("echo", "eval", "write-file")
HASH = 2**61 - 1  # its multiples have one hash: in a dictionary each costs as much as all before it


def pairs(spelt: str, between: str = " ") -> Callable[[int], str]:
    return lambda size: between.join(spelt.format(i) for i in range(size))


def within(opening: str, inner: Callable[[int], str], closing: str) -> Callable[[int], str]:
    return lambda size: opening + inner(size) + closing


SHAPES: dict[str, Callable[[int], str]] = {
    "keys of a dictionary": within("(echo :text {", pairs('"k{}" 1'), "})"),
    "arguments": within("(echo ", pairs(":k{} 1"), ")"),
    "arguments of a plist": within('(:tool "echo" :args (', pairs(":k{} 1"), "))"),
    "keys of a plist": within('(:tool "echo" ', pairs(":k{} 1"), ")"),
    "keys of JSON": within('{"tool": "echo", "args": {', pairs('"k{}": 1', ", "), "}}"),
    "JSON in a form": within("(echo :text {", pairs('"k{}": 1', ", "), "})"),
    "keyword arguments": within("echo(", pairs("k{}=1", ", "), ")"),
    "dictionaries": within("(echo :text [", pairs('{{"k{}": 1}}'), "])"),
    f"dictionaries that {CANNOT_BE_READ}": within("(echo :text [", pairs('{{"k{}": x}}'), "])"),
    "a deep dictionary": within("(echo :text " + '{"a" ' * 90, pairs('"k{}" 1'), "}" * 90 + ")"),
    "deep lists": within("(echo :text " + "(list " * 45, pairs("x{}"), ")" * 45 + ")"),
    "dotted names": within("(echo ", pairs("a.b{}"), ")"),
    "texts in curly quotes": within("(echo :text [", pairs("“k{}”"), "])"),
    "commas": within("(echo :text [", pairs("{},"), "])"),
    "calls": pairs("(echo :text {})", "\n"),
    "forms that are no calls": pairs("(f {})", "\n"),
    "forms that are never closed": pairs("(echo :a{} (", "\n"),
    "objects that are never closed": pairs('{{"a{}":', "\n"),
    "calls that are never closed": pairs("echo(a{}=(", "\n"),
    "calls in Python's way": within("", pairs("echo(a={})", "; "), "; x"),
    "fences": pairs("```\n(echo :text {})\n```", "\n"),
    "blocks of Org": pairs("#+begin_src hy\n(f {})\n#+end_src", "\n"),
    "announced examples": pairs("For example:\n(echo :text {})", "\n"),
    "tags": pairs("ECHO: {}", "\n"),
    "markers": pairs("<tool_call>({})", " "),
}


def work(act: Callable[[], object]) -> int:
    """How many functions are called."""
    count = 0

    def called(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_reply_and_no_faster(shape: str) -> None:
    small, large = (SHAPES[shape](size) for size in (120, 480))
    read_reply(small, KNOWN, {"ECHO": "echo"})  # what is made once is made now
    few, many = (work(lambda text=text: read_reply(text, KNOWN, {"ECHO": "echo"})) for text in (small, large))
    assert many <= 8 * few


# Where a pattern or a search does all of the work
RUNS = {
    "backticks": "`",
    "blanks": " ",
    "line feeds": "\n",
    "brackets": "(",
    "braces": "{",
    "quotes": '"',
    "pieces of a marker": "<tool_call",
    "list marks": "- 1. ",
    "labels": "Action: ",
    "thoughts": "Thought: x\n",
    "fences and NULs": "```lisp\n\0 ",
    "bracket strings": "#[a",
    "dotted words": "a.b/c-",
    "escapes": "\\",
    "a dotted head": "(a.",
}


def seconds(act: Callable[[], object]) -> float:
    best = 9e9
    for _ in range(2):
        started = time.process_time()
        act()
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.parametrize("lead", ["", "(echo :a 1", '(echo :a "'])
@pytest.mark.parametrize("run", RUNS)
def test_no_pattern_goes_back_and_forth(run: str, lead: str) -> None:
    small, large = (lead + RUNS[run] * (size // len(RUNS[run])) for size in (4_000, 16_000))
    few, many = (seconds(lambda text=text: read_reply(text, KNOWN)) for text in (small, large))
    assert many <= 12 * few + 0.05


@pytest.mark.parametrize("run", RUNS)
def test_nor_does_the_search_for_quotations(run: str) -> None:
    small, large = (RUNS[run] * (size // len(RUNS[run])) for size in (20_000, 80_000))
    few, many = (seconds(lambda text=text: (close(text), words(text))) for text in (small, large))
    assert many <= 12 * few + 0.05


# Dictionaries whose keys collide


TOO_LARGE = HARD_KEYS.rstrip(".")


def numbers(spelt: str, step: int, between: str = " ") -> str:
    return between.join(spelt.format(step * (i + 1)) for i in range(4_000))


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (f"(echo :text {{{numbers('{} 1', HASH)}}})", TOO_LARGE),
        (f"(echo :text [{{{numbers('{} 1', HASH)}}}])", TOO_LARGE),
        (f"(:tool echo :args {{{numbers('{} 1', HASH)}}})", TOO_LARGE),
        (f'{{"tool": "echo", "args": {{"text": {{{numbers("{}: 1", HASH, ", ")}}}}}}}', TOO_LARGE),
        (f"echo(text={{{numbers('{}: 1', HASH, ', ')}}})", TOO_LARGE),
        (f"(echo :text {{{numbers('{}.0 1', HASH)}}})", TOO_LARGE),
        (f"(echo :text {{{numbers('-{} 1', HASH)}}})", TOO_LARGE),
        (f"(echo :text {{{numbers('{} 1', 2**32)}}})", TOO_LARGE),
        (f"echo(text={{{numbers('{}: 1', 2**32, ', ')}}})", TOO_LARGE),
    ],
    ids=lambda value: value[:24],
)
def test_keys_that_are_numbers_cannot_be_chosen_to_collide(reply: str, said: str) -> None:
    reading = read_reply(reply, KNOWN)
    assert reading.calls == []
    assert said in str(reading.errors[0])


def test_numbers_are_keys_where_they_are_few_and_small() -> None:
    (call,) = read_reply("(echo :text {1 2  2.5 3  -4 5})", KNOWN).calls
    assert call.form.args["text"] == {1: 2, 2.5: 3, -4: 5}


def test_of_thousands_of_faults_twenty_are_told() -> None:
    import_module("quoth.tools.builtin")
    door = gateway(cognitive_tools.get("echo"), tool("sums", params={"of": {"type": list[int]}}))
    for call in (
        CallForm("echo", {f"k{i}": i for i in range(5_000)}),
        CallForm("sums", {"of": [f"x{i}" for i in range(5_000)]}),
    ):
        result = door.pass_through(call)
        assert result.status == "invalid"
        assert result.message.count("; ") == 20
        assert f"; and more. {IT_IS_CALLED_AS}" in result.message
