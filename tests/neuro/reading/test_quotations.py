"""What is open at the beginning of a line: a quotation, code, a comment or an element, and what closes it."""

from __future__ import annotations

import pytest

from quoth.neuro.reading.prose import Quotations

PLAINLY, OFTEN, CLOSED = (True, True), (True, False), (False, False)
OPEN = {
    "words": CLOSED,
    'She said "no': OFTEN,
    'She said "no"': CLOSED,
    'A board of 5" length': CLOSED,
    'A board of 5 "': CLOSED,
    "``code": OFTEN,
    "``code``": CLOSED,
    "``code```": OFTEN,
    "`code": CLOSED,  # one alone is often an accent
    "```\ncode": CLOSED,  # a fence
    "  ```\ncode": CLOSED,
    "see ```code": OFTEN,
    "“so": PLAINLY,
    "“so”": CLOSED,
    "„so“": CLOSED,
    "„so”": CLOSED,
    "„so": PLAINLY,
    "so”": CLOSED,
    "‘don’t": PLAINLY,
    "‘do’": CLOSED,
    "“a ‘b’ c”": CLOSED,
    "“a ‘b’ c": PLAINLY,
    "“a ‘b c": PLAINLY,
    "“a\n\nb": CLOSED,  # a paragraph ends it
    '"a\n \nb': CLOSED,
    "<!-- a": PLAINLY,
    "<!-- a\n\nb": PLAINLY,
    "<!-- a -->": CLOSED,
    "-->": CLOSED,
    "<!-- “a -->": CLOSED,
    "<!-- <pre> -->": CLOSED,
    "<!-- a\n<pre>\n-->": CLOSED,
    "``a “b``": CLOSED,
    "``a <!-- b``": CLOSED,
    "``a\n\nb": OFTEN,
    "``a\n<pre>\n``": CLOSED,
    "<pre>": PLAINLY,
    "<pre>\n\na": PLAINLY,
    "<PRE>\na</Pre>": CLOSED,
    "a <pre>": CLOSED,  # an element begins its line
    "<pre>a</pre>": CLOSED,
    "<span>": CLOSED,
    "</pre>": CLOSED,
    "<pre>\n<details>\na</pre>": CLOSED,  # and what is in it
    "<pre>\n<details>\na</details>": PLAINLY,
    "<pre>\n“a\n\nb": PLAINLY,
    "<pre>\n</pre>\n<pre>": PLAINLY,
    '"a “b': PLAINLY,
}


@pytest.mark.parametrize("text", OPEN)
def test_what_is_open(text: str) -> None:
    quotations = Quotations()
    quotations.read(text, len(text))
    assert (quotations.is_open(), quotations.is_open(plainly=True)) == OPEN[text]


def test_a_text_is_read_once_however_its_window_moves() -> None:
    text = '“a\n"b\n<!-- c\n”'
    moved = Quotations()
    moved.read(text, 3)
    assert moved.is_open()
    moved.read(text[3:], 3, 3)
    moved.read(text[3:], 3, 3)  # a second time: nothing is new
    moved.read(text[6:], len(text) - 6, 6)
    assert moved.read_to == len(text)
    assert moved.is_open(plainly=True)
    later = Quotations(3)
    later.read(text, 5)
    assert (later.is_open(), later.is_open(plainly=True)) == OFTEN
