"""The words of a reply come block by block, without its calls, and each once, however the reply is cut up."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import WAS_NOT_READ

from quoth.neuro.reading.prose import ReplyWords
from quoth.neuro.reading.reply import read_reply

KNOWN = {"echo", "write-file"}
CALL = '(echo :text "a\n\nb")'
FENCE = "```python\nx = 1\n\ny = 2\n```"


def words() -> ReplyWords:
    return ReplyWords(lambda text: read_reply(text, KNOWN))


def heard(reply: str, size: int) -> tuple[list[str], str]:
    """The blocks of a reply that comes in pieces of so many characters, and what its end adds."""
    hears = words()
    blocks = [block for at in range(0, len(reply), size) for block in hears.feed(reply[at : at + size])]
    return blocks, hears.rest(read_reply(reply, KNOWN).text)


REPLIES = [
    ("One paragraph.", [], "One paragraph."),
    ("One.\n\nTwo.\n\n\nThree.", ["One.", "Two."], "Three."),
    ("- a\n\n  more of a\n- b\n\nEnd", ["- a\n\n  more of a\n- b"], "End"),
    (f"So:\n{FENCE}\nThat is all.", ["So:", FENCE], "That is all."),
    (f"I look.\n\n{CALL}\n\nAnd then?", ["I look."], "And then?"),
    (f"I look.\n{CALL}", ["I look."], ""),
    (f"{FENCE}\n\n{CALL}", [FENCE], ""),
    (CALL, [], ""),
    (f"For example:\n\n{CALL}\n\nSo it is.", ["For example:"], f"{CALL}\n\nSo it is."),
    ("It is (as you know) late.\n\nYes.", ["It is (as you know) late."], "Yes."),
    ("", [], ""),
    (f"{FENCE}\n\n{CALL}\n\nEnd.", [FENCE], "End."),
    (f"<tool_call>\n\n{CALL}", [], ""),
    ('echo(text="a")\r\n\r\nYes.', [], "Yes."),
]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(("reply", "blocks", "rest"), REPLIES)
def test_the_words_come_in_blocks(reply: str, blocks: list[str], rest: str, size: int) -> None:
    assert heard(reply, size) == (blocks, rest)


# What replies are made of; what stands before a call may belong to it.
PARTS = ["Some words.", "For example:", CALL, FENCE, "```lisp\n", "```", "~~~", "<tool_call>", "</tool_call>",
         '(echo :text "unclosed', 'echo(text="a")', '{"tool": "echo", "args": {"text": "a"}}', "- a\n- b",
         "    indented", "; ```", "(unknown :x 1)", "| a | b |\n|---|---|\n| 1 | 2 |", "日本語",
         "````md\n```\nx\n````",
         '`(echo :text "a")`', "TAG: cats", ""]  # fmt: skip
BREAKS = ["\n", "\n\n", "\n\n\n", "\r\n", "\n \n", " ", "\n  "]


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(BREAKS)), max_size=6),
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
)
def test_no_word_comes_twice_and_none_is_lost(parts: list[tuple[str, str]], sizes: list[int]) -> None:
    reply, hears, blocks, at = "".join(map("".join, parts)), words(), [], 0
    for size in itertools.cycle(sizes):
        if at >= len(reply):
            break
        blocks += hears.feed(reply[at : at + size])
        at += size
    whole = read_reply(reply, KNOWN).text
    assert "".join("".join([*blocks, hears.rest(whole)]).split()) == "".join(whole.split())


def test_a_mark_that_was_said_and_belongs_to_a_call_brings_no_word_twice() -> None:
    hears = words()
    assert hears.feed("One.\n\n\u2028```\n\nMore.") == ["One.\n\n\u2028```"]
    assert hears.rest("One.\n\nMore.") == "More."


UNREAD = f"[… a call that {WAS_NOT_READ} …]"
BROKEN_OFF = [
    ("One.\n\nTw", "One.\n\nTw", "Tw"),
    ('I look.\n\n(write-file :key "hu', f"I look.\n\n{UNREAD}", ""),
    ('I look.\n\n(echo :text "a")\nmo', f"I look.\n\n{UNREAD}", ""),
    ('I look.\n\n(echo :text "a")\n\nmore', f"I look.\n\n{UNREAD}", ""),
    ("<tool_call>{", UNREAD, ""),
    ("PASSWORD: hu", UNREAD, ""),
    ("", "", ""),
]


@pytest.mark.parametrize(("came", "no_call", "tail"), BROKEN_OFF)
def test_of_a_reply_that_is_broken_off_no_beginning_of_a_call_is_told(
    came: str, no_call: str, tail: str
) -> None:
    hears = words()
    for char in came:
        hears.feed(char)
    assert (hears.so_far(calls=True), hears.so_far(calls=False), hears.tail()) == (came, no_call, tail)


def test_a_reply_of_many_lines_takes_no_longer_a_line() -> None:
    reads: list[int] = []

    def read(text: str):  # type: ignore[no-untyped-def]
        reads.append(len(text))
        return read_reply(text, KNOWN)

    hears = ReplyWords(read)
    for _ in range(1000):
        hears.feed("A line.\n\n")
    assert sum(reads) < 1000 * 20
