"""The short way for plain calls finds in every reply what the reader of forms finds, and takes only those."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from quoth.neuro.reading import forms
from quoth.neuro.reading.forms import plain_call
from quoth.neuro.reading.reply import read_reply
from quoth.neuro.reading.stream import ReplyStream
from quoth.tools.lisp.forms import CallForm

KNOWN = ("echo", "read-file", "quote")
HEADS = (
    "echo",
    "read-file",
    "Read_File",
    "read_file",
    "quote",
    "unknown",
    "functions.echo",
    "functions.read-file",
)
ATOMS = st.sampled_from(
    [
        '"a"',
        '"src/a.py"',
        '""',
        '"a\nb"',
        '"é"',
        '"“a”"',
        '"\\n"',
        '"\r"',
        '"\ud800"',
        '"a""b"',
        '"a" "b"',
        "'a'",
        "0",
        "7",
        "-7",
        "007",
        "-0",
        "1.5",
        "1,000",
        "1234567890",
        "True",
        "False",
        "None",
        "nil",
        "true",
        "x",
        "Trueish",
        ":path",
        "[1 2]",
        "[1,2]",
        "(list 1)",
        '{"a" 1}',
        "; note\n1",
        "#_ 1 2",
        "*",
        '"(echo :text 1)"',
    ]
)
KEYS = st.sampled_from(
    [
        ":text",
        ":path",
        ":a-b",
        ":a_b",
        ":A",
        ":a-",
        ":b--c",
        ":1",
        ":text:",
        ":é",
        ": text",
        "text",
        ":tool",
        ":ok?",
    ]
)
BLANKS = st.sampled_from([" ", " ", " ", "  ", "\n  ", "\t", "", "\x0b", "\xa0", " ; note\n"])
CALLS = st.builds(
    lambda head, pairs, blank, end: (
        f"({head}{''.join(f'{b}{key}{c}{atom}' for b, key, c, atom in pairs)}{blank}{end}"
    ),
    st.sampled_from(HEADS),
    st.lists(st.tuples(BLANKS, KEYS, BLANKS, ATOMS), max_size=3),
    st.sampled_from(["", "", " ", "\n"]),
    st.sampled_from([")", ")", ")", ")", "))", "", "]"]),
)
AROUND = st.sampled_from(
    [
        "",
        "",
        "\n",
        "- ",
        "I look: ",
        "For example:\n",
        "```lisp\n",
        "\n```\n",
        "```python\n",
        "Action: ",
        " (a b) ",
    ]
)
REPLIES = st.lists(st.tuples(AROUND, CALLS, AROUND), min_size=1, max_size=3).map(
    lambda parts: "".join("".join(part) for part in parts)
)


@contextmanager
def the_long_way() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "plain_call", lambda text, start, known: None)
        yield


def streamed(text: str) -> tuple[Any, ...]:
    stream = ReplyStream(KNOWN)
    said = [stream.feed(piece) for piece in (text[: len(text) // 2], text[len(text) // 2 :])]
    return (*said, stream.end())


@examples(5)
@given(REPLIES, st.booleans())
def test_a_reply_is_read_the_same_with_and_without_it(text: str, cut: bool) -> None:
    found = read_reply(text, KNOWN, cut=cut), streamed(text)
    with the_long_way():
        assert (read_reply(text, KNOWN, cut=cut), streamed(text)) == found


@pytest.mark.parametrize(
    "text",
    [
        "(echo)",
        '(echo :text "a b")',
        '(read-file :path "a"\n :start 1 :all True\t:end -2 )',
        '(echo :text "a\nb" :x None)',
    ],
)
def test_a_plain_call_goes_the_short_way(text: str) -> None:
    call, end = plain_call(text, 0, KNOWN) or (None, 0)
    with the_long_way():
        assert [one.form for one in read_reply(text, KNOWN).calls] == [call]
    assert end == len(text)
    assert call is not None
    assert all(type(value) in (str, int, bool, type(None)) for value in call.args.values())


@pytest.mark.parametrize(
    "text",
    [
        '(echo :text "a\\n")',
        "(echo :text 1.5)",
        '(Echo :text "a")',
        '(unknown :text "a")',
        '(echo :text "a" :text "b")',
        '(echo :text "a"',
        '(echo "a")',
        "(echo :text (f))",
        "(echo :text x)",
        '(echo :text "\ud800")',
        "(echo :n 01)",
    ],
)
def test_anything_else_goes_the_long_way(text: str) -> None:
    assert plain_call(text, 0, KNOWN) is None


@pytest.mark.parametrize(
    ("size", "number", "short"), [(1000, 1, True), (1001, 1, False), (1, 20, True), (1, 21, False)]
)
def test_a_long_call_goes_the_long_way(size: int, number: int, short: bool) -> None:
    form = CallForm("echo", {f"a{n}": "b" * size for n in range(number)})
    assert plain_call(str(form), 0, KNOWN) == ((form, len(str(form))) if short else None)
    assert [call.form for call in read_reply(str(form), KNOWN).calls] == [form]
