"""Where a mark of a thought is a mark, and where it is a word that the reply speaks of."""

from __future__ import annotations

import pytest

from quoth.neuro.reading import prose

MARK = "<think>"
WORD = [
    '"<think>" is a mark',
    "“<think>” is a mark",
    "`<think>` is a mark",
    "*<think>* is a mark",
    "(<think>) is a mark",
    "We use <think>, then more",
    "We use\t<think>, then more",
    "We use <think> often",
    "Here, <think> opens",
    "Here; <think> opens",
    "a:<think>, then",
    "a:<think>; then",
    "- <think> opens",
    "1. <think>: opens",
    "| <think> | opens",
    'x = "<think> It"',
    f'"{"y" * 399}{MARK}Z"',
    f'"{MARK}{"Z" * 399}"',
]
A_MARK = [
    "<think>",
    '<think>"Hm"',
    "<think>, then",
    '“<think>" It',
    "We use <think>",
    "We use <think>It",
    "We use <think> 5",
    "So. <think> opens",
    "- <think> Opens",
    '"a" <think> "b"',
    'x = "<think>\n"',
    'x = <think> It"',
    'x = "\n<think>It"',
    f'"{"y" * 400}{MARK}Z"',
    f'"{MARK}{"Z" * 400}"',
]


@pytest.mark.parametrize("text", [*WORD, *A_MARK])
def test_a_mark_that_is_spoken_of_is_a_word(text: str) -> None:
    start = text.index(MARK)
    assert prose.is_word(text, start, start + len(MARK)) == (text in WORD)


def test_an_end_in_brackets_is_no_word() -> None:
    assert not prose.is_word("(</think>) It", 1, 9)


ALONE = {"<think>", "  <think>\t", "a\n<think>\nb"}


@pytest.mark.parametrize("text", [*sorted(ALONE), "a <think>", "<think> b", "a\n- <think>\nb"])
def test_a_mark_may_be_all_that_a_line_holds(text: str) -> None:
    start = text.index(MARK)
    assert prose.is_alone(text, start, start + len(MARK)) == (text in ALONE)


ENDS_WORDS = {"I use <think>", "I use <think> \nb", "so, <think>", "so: <think>", "Hm.\nI use <think>"}


@pytest.mark.parametrize(
    "text", [*sorted(ENDS_WORDS), "I use<think>", "Done. <think>", "I use <think> b", "<think>", "I\n<think>"]
)
def test_a_mark_may_end_words_that_speak_of_it(text: str) -> None:
    start = text.index(MARK)
    assert prose.ends_words(text, start, start + len(MARK)) == (text in ENDS_WORDS)


@pytest.mark.parametrize(
    ("thought", "whole"),
    [
        ("a</think>b</think>", "a</think>"),
        ("a\n<think>\nb</think>c</think>d</think>", "a\n<think>\nb</think>c</think>"),
        ("a\n<think>\n<think>\nb</think>c</think>d</think>", "a\n<think>\n<think>\nb</think>c</think>"),
        ("a\n<think>\nb</think>c", "a\n<think>\nb</think>"),  # the last, where they do not match
        ("a `<think>` b</think>c</think>", "a `<think>` b</think>"),
    ],
)
def test_a_thought_ends_where_those_in_it_have_ended(thought: str, whole: str) -> None:
    span = prose.end_of_thought(thought, 0, 0)
    assert span is not None
    assert thought[: span[1]] == whole
    assert thought[span[0] : span[1]] == "</think>"


def test_a_thought_without_an_end_has_none() -> None:
    assert prose.end_of_thought("a\n<think>\nb", 0, 0) is None
    assert prose.closed("b", 0) == -1
    assert prose.closed("a</think>b", 1) == 9


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("a", True, True),
        ("a", False, False),
        ("<think>Hm", False, True),
        ("Hm</think>", True, False),
        ("`</think>` is", True, True),
        ("<think>Hm</think>", False, False),
    ],
)
def test_a_line_opens_a_thought_or_closes_it(line: str, before: bool, after: bool) -> None:
    assert prose.is_open(line, before) == after


@pytest.mark.parametrize(
    ("draft", "behind", "is_one"),
    [
        ('(a "b" [c] {d})', "</think>", True),
        ('(a "b)', "</think>", False),
        ("(a", "</think>", False),
        ("[a", "</think>", False),
        ("{a", "</think>", False),
        ("(a)", "", False),
        ("(a)", "<think>", False),
        ("(a)", " `</think>` b", False),
        ("(a)", " `<think>` b</think>", True),
    ],
)
def test_a_draft_is_whole_and_its_thought_ends_behind_it(draft: str, behind: str, is_one: bool) -> None:
    assert prose.is_draft(f"x{draft}{behind}", 1, 1 + len(draft)) == is_one
