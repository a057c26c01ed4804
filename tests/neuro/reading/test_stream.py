"""A reply that streams in: a call is reported as soon as it is whole, and never one the whole has not."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st
from words import tool

from quoth.neuro.reading import reply as streams
from quoth.neuro.reading.reply import ReplyStream, read_reply
from quoth.neuro.reading.result import FoundCall

KNOWN = ["echo", "eval", "write-file"]
LEARN = tool(
    "learn",
    params={"a": {}, "b": {}},
    tag={"prefix": "LEARN", "pattern": r"(\w+) (.+)", "groups": ["a", "b"]},
)
TAGS = {"PROBE": "echo", "LEARN": LEARN}
TICKS = "```"


def streamed(text: str, *cuts: int) -> tuple[list[FoundCall], ReplyStream]:
    """What a stream reports when the text comes in pieces cut at these offsets; no cut is every one."""
    reply = ReplyStream(KNOWN, TAGS)
    places = sorted({0, len(text), *(cuts or range(len(text)))})
    found = [call for a, b in pairwise(places) for call in reply.feed(text[a:b])]
    return found, reply


AT_ONCE = [
    '(echo :text "a")',
    '- (echo :text "a")',
    'Call: (echo :text "a")',
    '(echo :text "a (b) ; [c \\" {" ; no ) here\n)',
    "(echo :text #[[ it's ) “so” \" ]] :n 1)",
    "(echo :text #[x[ ]] ) ]x])",
    '(eval :form (do (f {"a" [1 2]}) #{3}))',
    '(:tool "echo" :args (:text "a"))',
    f'{TICKS}lisp\n(echo :text "a")',
    f'{TICKS}python\n(echo :no 1)\n{TICKS}\n(echo :text "a")',
    '(see this)\n(echo :text "a")',
    '#+begin_src python\n(echo :no 1)\n#+end_src\n#+begin_src lisp\n(echo :text "a")',
    '(echo :text "first") (echo :text "a")',
    '{"tool": "echo", "args": {"text": "}"}}',
    '{\n  "tool": "echo",\n  "args": {}\n}',
    "{'tool': 'echo', 'args': {'text': '}'}}",
    '[{"name": "echo", "arguments": {}}]',
    '[echo :text "a"]',
    "(echo :text [1, 2])",
    '(echo :text """a "b (c)" d""")',
    "[1] see (there)\n(echo :text 1)",
]
AFTER_THE_LINE = [
    'echo(text="a")\n',
    "[echo(text=')')]\n",
    "PROBE: words (and more\n",
    "LEARN: a b (c\n",
    "LEARN: no\nLEARN: a b\n",
    f'{TICKS}{{"tool": "echo", "args": {{}}}}{TICKS}\n',
]


@pytest.mark.parametrize("text", AT_ONCE + AFTER_THE_LINE)
def test_a_call_is_reported_with_its_last_character(text: str) -> None:
    reply = ReplyStream(KNOWN, TAGS)
    before = [call for char in text[:-1] for call in reply.feed(char)]
    last = reply.feed(text[-1])
    whole = read_reply(text, KNOWN, TAGS)
    assert len(last) == 1
    assert before + last == whole.calls
    assert reply.end() == whole


def test_what_only_the_end_can_tell_is_in_the_final_reading() -> None:
    text = '(see the note\n(echo :text "a")\n(echo :text "b"'
    found, reply = streamed(text)
    assert found == []
    assert reply.reported == 0
    assert [str(call.form) for call in reply.end().calls] == ['(echo :text "a")', '(echo :text "b")']
    assert [str(call.form) for call in reply.end(cut=True).calls] == ['(echo :text "a")']


def test_a_call_of_a_stream_says_where_it_stands_in_the_whole() -> None:
    text = "words\n" * 500 + '\n  (echo :text "a")\n' + "more\n" * 500 + '(echo :text "b") (echo :text "c")'
    found, _ = streamed(text)
    assert [(call.line, call.column) for call in found] == [(502, 3), (1003, 1), (1003, 18)]
    assert [text[call.start : call.end] for call in found] == [str(call.form) for call in found]


PIECES = [
    *(
        "(echo :text “a”)",
        "(echo :text “a ) b”)",
        "“",
        "”",
        ",",
        ";",
        "'",
        '"',
        "\\",
        "#",
        "#[[",
        "]]",
        "#.",
        "#|",
    ),
    *("(", ")", "[", "]", "{", "}", "\n", "\n\n", "\r\n", " ", "\t", ":", "=", "> ", "- ", "`", "<", ">"),
    *(
        '(echo :text "hi")',
        "(echo :x 1,2)",
        "(echo text=1)",
        '(echo :text """',
        '"""',
        "(see above)",
        "(frob :x 1)",
        "(eval (+ 1",
        "(echo",
    ),
    *(
        "```",
        "```lisp\n",
        "```json\n",
        "```python\n",
        "#+begin_src lisp\n",
        "#+begin_example\n",
        "#+end_example\n",
        "#+end_src\n",
        "~~~\n",
        "```json ",
        "words",
        "Call: ",
        "For example:\n",
    ),
    *(
        '{"tool": "echo", "args": {}}',
        '{"name": "echo", "arguments": {',
        '[{"name": "echo", "arguments": {}}]',
    ),
    *(
        "<tool_call>",
        "</tool_call>",
        "[TOOL_CALLS]",
        '{"a": 1}',
        "echo(",
        "echo(text=1)",
        "[echo(text='x')]",
        "[echo :x 1]",
    ),
    *(
        "PROBE: x",
        "PROBE:",
        "LEARN: a b",
        "LEARN: a",
        "CONFIDENCE: 0.5",
        "you wrote:\n",
        "you wrote:\nwords\n",
        *("“", "”", "<!-- ", "-->", "``", "<pre>\n", "</pre>", "\n\nPROBE: x\n", "words " * 100),
        "é",
        '"""',
        "; ",
        "text=",
        "1,2",
        ":x",
    ),
]
REPLIES = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


# What a coverage-guided run once found: a quote that was thought to stand alone, and ended a text later.
@example("(echo 'a :text “b ) c”)' ]\n", [])
@example('[TOOL_CALLS] [{"name": "a"b")\n(echo :text 1)\n', [])
@examples(5)
@given(REPLIES, st.lists(st.integers(0, 200), max_size=12))
def test_however_the_text_is_cut_the_stream_says_what_the_whole_says(text: str, cuts: list[int]) -> None:
    whole = read_reply(text, KNOWN, TAGS)
    for places in ((), tuple(min(cut, len(text)) for cut in cuts) or (0,)):
        found, reply = streamed(text, *places)
        assert found == whole.calls[: len(found)]
        assert reply.reported == len(found)
        assert reply.end() == whole


# Work is linear in the text, whatever the pieces are: counted in characters walked over, not in time


SHAPES: dict[str, str] = {
    "prose": "some words ",
    "lines with brackets": "word (\n",
    "small forms": "(a b)\n",
    "calls": '(echo :text "hi")\n',
    "one text": "x",
    "inner forms": "(a (b) ",
    "inner data": "(echo :xs [1 2] ",
    "open brackets": "(",
    "open braces": '{"a": ',
    "open squares": "[a ",
    "curly quotes": "(echo :text “a ) ",
    "open calls in Python's way": "echo(",
    "calls in Python's way": "echo(x=1); ",
    "a foreign fence": "```python\nf(x)\n(echo :text 1)\n",
    "line feeds": "\n",
    "tags": "PROBE: x\n",
    "open JSON": '{"tool": "echo", \n',
    "quotes": '\\"',
    "examples": "For example:\n(echo :text 1)\n",
}


def walked(unit: str, size: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The characters over which the walk goes while such a text streams in, three at a time."""
    total = 0
    original: Any = streams.Scan.run

    def run(scan: Any) -> None:
        nonlocal total
        total += len(scan.text)
        original(scan)

    with monkeypatch.context() as patch:
        patch.setattr(streams.Scan, "run", run)
        reply = ReplyStream(KNOWN, TAGS)
        text = '(echo :text "' if len(unit) < 3 and unit != "(" and unit != "\n" else ""
        text += unit * (size // len(unit))
        for place in range(0, len(text), 3):
            reply.feed(text[place : place + 3])
    return total


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_stream_is_at_most_twice_the_work(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    once = walked(SHAPES[shape], 30_000, monkeypatch)
    twice = walked(SHAPES[shape], 60_000, monkeypatch)
    assert twice <= 2.2 * once + 5_000


def test_the_count_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CONTEXT", 10**9)  # nothing is ever passed
    once = walked(SHAPES["calls"], 1_500, monkeypatch)
    assert walked(SHAPES["calls"], 3_000, monkeypatch) > 3 * once


def test_a_large_call_streams_in_in_small_pieces() -> None:
    content = "line (of) text\n" * 20_000
    text = f'(write-file :path "a" :content {json.dumps(content)})'
    reply = ReplyStream(KNOWN)
    found = [call for place in range(0, len(text), 4) for call in reply.feed(text[place : place + 4])]
    assert [call.form.args["content"] for call in found] == [content]
