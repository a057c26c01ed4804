"""Thoughts are not replies: what a model thinks is not a call, an answer, a tag or a quotation."""

from __future__ import annotations

import itertools

import pytest
from examples import examples
from families import KNOWN, SPELLINGS
from hypothesis import given
from hypothesis import strategies as st

from quoth.neuro.reading.prose import ReplyWords
from quoth.neuro.reading.reply import IN_DOUBT, ReplyStream, read_reply
from quoth.neuro.reading.result import Reading

TICKS = "```"
WRITE = '(write-file :path "x" :content "y")'
LIST = "(list-files)"
TAGS = {"PROBE": "echo"}
DRAFTS = [
    WRITE,
    '{"name": "write-file", "arguments": {"path": "x", "content": "y"}}',
    'So <tool_call>{"name": "write-file", "arguments": {"path": "x"}}</tool_call> is wrong.',
    "<function=write-file>\n<parameter=path>\nx\n</parameter>\n</function>",
    "PROBE: x\nCONFIDENCE: 0.1",
    f"{TICKS}lisp\n{WRITE}\n{TICKS}",
    "For example:",
    '{"name": "write-file", "arguments": {...}}',
    '(write-file :path "x" :content "it never ends',
]
MARKS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<Thought>", "</Thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel>thought", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
]


def read(text: str, **options: bool) -> Reading:
    return read_reply(text, KNOWN, TAGS, **options)


def forms(reading: Reading) -> list[str]:
    return [str(call.form) for call in reading.calls]


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize(("begin", "end"), MARKS)
def test_nothing_in_a_thought_is_a_call_or_an_answer(begin: str, end: str, draft: str) -> None:
    reading = read(f"{begin}\nI could\n{draft}\nbut no.\n{end}\n{LIST}\nIt stays.")
    assert forms(reading) == [LIST]
    assert (reading.errors, reading.sure, reading.passed) == ([], [], [])
    assert reading.text == "It stays."
    assert reading.content == f"{LIST}\nIt stays."
    assert reading.reasoning.startswith("I could")
    assert "but no." in reading.reasoning


@pytest.mark.parametrize(("begin", "end"), MARKS)
def test_a_thought_that_never_ends_is_all_that_there_is_and_the_fault_says_so(begin: str, end: str) -> None:
    reading = read(f"{begin}\nPerhaps\n{WRITE}\nor")
    assert (forms(reading), reading.text, reading.content) == ([], "", "")
    assert [error.message for error in reading.errors] == ["The reply ends inside a thought"]
    (fault,) = read(f"{begin}\nThat is all.\n{end}").errors
    assert fault.message == "The reply is only a thought"


@pytest.mark.parametrize("draft", list(DRAFTS[:7]))
@pytest.mark.parametrize("end", [end for _, end in MARKS[:9]])
def test_a_thought_that_the_template_began_ends_with_its_mark(end: str, draft: str) -> None:
    reading = read(f"I could\n{draft}\nbut no.\n{end}\n\n{LIST}\nIt stays.")
    assert (forms(reading), reading.text, reading.errors) == ([LIST], "It stays.", [])
    assert reading.content == f"{LIST}\nIt stays."
    assert reading.reasoning == f"I could\n{draft}\nbut no."


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "write-file", "arguments": {...}}',
        '{"tool": "echo", "args": {"text": …}}',
        '<tool_call>\n{"name": "write-file", "arguments": {...}}\n</tool_call>',
        "<tool_call>\n<function=write-file>\n<parameter=path>\n...\n</tool_call>",
        "(echo :text ...)",
    ],
)
def test_drafts_that_cannot_be_read_are_thoughts_too(text: str) -> None:
    reading = read(f"Hm.\n{text}\nbut no.\n</think>\n{LIST}\nIt stays.")
    assert (forms(reading), reading.text, reading.errors) == ([LIST], "It stays.", [])


def test_what_may_be_in_a_text_of_an_unreadable_call_is_not_read() -> None:
    text = f'(write-file :content "it never ends\n</think>\n{LIST}'
    assert forms(read(text)) == []
    text = f'{{"name": "write-file", "arguments": {{"content": "say "so\n</think>\n{LIST}\n"}}}}'
    assert forms(read(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        f"<think>a\n<think>\n{WRITE}\n</think>\n{WRITE}\n</think>\nIt stays.",
        f"<think>a <think>b\n{WRITE}</think> still\n{WRITE}\n</think>\nIt stays.",
        f"<think><think>\n{WRITE}\n</think>\nIt stays.",
        f"<think>a</think>\n<think>\n{WRITE}\n</think>\nIt stays.",
        f"a\n</think>\n{WRITE}\n</think>\nIt stays.",
        f"<think>{WRITE}</think>It stays.",
        f"Well. <think>hm\n{WRITE}\n</think>It stays.",
        f"Hm.\n{WRITE}\nSo no, </think> It stays.",
        f'Hm.\n{WRITE}\nIt is 5" long.</think>"It" means it.\nIt stays.',
        f"Hm.\n{TICKS}lisp\n{WRITE}\n</think>\nIt stays.",
        f"<think>a\n{TICKS}lisp\n{WRITE}\n</think>\nIt stays.",
    ],
)
def test_thoughts_may_be_nested_and_follow_each_other(text: str) -> None:
    reading = read(text)
    assert forms(reading) == []
    assert reading.text.endswith("It stays.")
    assert "write-file" in reading.reasoning


@pytest.mark.parametrize(
    "text",
    [
        '(write-file :path "a" :content "say <think>plan</think> first")',
        '(write-file :path "a" :content "one\\n</think>\\ntwo")',
        '(write-file :path "a" :content "one\n<think>\ntwo")',
        '{"name": "write-file", "arguments": {"path": "a", "content": "</think>\\n<think>"}}',
        "<function=write-file>\n<parameter=content>\n<think>\n</parameter>\n</function>",
    ],
)
def test_a_mark_in_a_string_of_a_call_is_a_word(text: str) -> None:
    reading = read(text)
    assert len(reading.calls) == 1
    assert (reading.errors, reading.reasoning) == ([], "")
    assert "think>" in str(reading.calls[0].form)


@pytest.mark.parametrize(
    "text",
    [
        "Use `<think>` and `</think>` here.",
        "The <think> tag opens, and </think> closes.",
        'He said "say <think>plan</think> first" to me.',
        f"{TICKS}xml\n<think>x</think>\n{TICKS}\nThat is it.",
        "> <think>",
        'The marks are "<think>" and "</think>".',
        "| mark | |\n|---|---|\n| <think> | opens |\n| </think> | closes |",
        "- <think>: opens a thought\n- </think>: closes it",
        "1. It opens.\n2. <think> is its mark.",
        "Marks: <think>, [THINK], <thinking>; and more.",
        "It is **<think>** (<think>) there.",
    ],
)
def test_who_speaks_of_marks_does_not_think(text: str) -> None:
    reading = read(text)
    assert (reading.text, reading.content, reading.reasoning, reading.errors) == (text, text, "", [])


@pytest.mark.parametrize(
    "words", ["Models begin with <think>", "The mark is: <think>", "Well, <thinking> \t", "a [THINK]"]
)
def test_a_mark_at_the_end_of_words_that_never_ends_is_a_word_and_hides_no_draft(words: str) -> None:
    text = f"{words}\nand end with another.\n\nIt is 3."
    reading = read(text)
    assert (reading.text, reading.reasoning, reading.calls, reading.errors) == (text, "", [], [])
    reading = read(f"{LIST}\n{words}\nI could\n{WRITE}\nso")
    assert forms(reading) == [LIST]
    assert [(error.message, error.line) for error in reading.errors] == [(IN_DOUBT, 2)]
    assert forms(read(f"{words}\n{WRITE}\n</think>\n[/THINK]</thinking>\n{LIST}")) == [LIST]


def test_a_mark_behind_a_whole_sentence_begins_a_thought() -> None:
    reading = read(f"It is 3. <think>\nOr\n{WRITE}")
    assert (forms(reading), reading.text, reading.reasoning) == ([], "It is 3.", f"Or\n{WRITE}")


def test_what_a_thought_announces_is_announced_to_nobody() -> None:
    assert forms(read(f"<think>\nFor example:\n</think>\n{LIST}")) == [LIST]
    assert forms(read(f"<think>\nThe user said “so\n</think>\n{LIST}")) == [LIST]


def test_a_thought_leaves_what_stands_around_it_where_it_was() -> None:
    text = f"Hello.\n<think>\na\nb\n</think>\n{LIST}"
    (call,) = read(text).calls
    assert (call.line, text[call.start : call.end]) == (6, LIST)


PIECES = st.sampled_from(
    [
        *(mark for pair in MARKS for mark in pair),
        *DRAFTS,
        LIST,
        "\n",
        "\n\n",
        "words ",
        f"{TICKS}\n",
        "`",
        '"',
        *[spelling.text for _, spelling in SPELLINGS][::3],
    ]
)


@examples(8)
@given(st.lists(PIECES, max_size=8).map("".join), st.lists(st.integers(0, 400), max_size=8))
def test_however_thoughts_and_markup_are_cut_the_stream_says_what_the_whole_says(
    text: str, cuts: list[int]
) -> None:
    whole, stream = read(text), ReplyStream(KNOWN, TAGS)
    places = [0, *sorted({min(cut, len(text)) for cut in cuts}), len(text)]
    found = [call for a, b in itertools.pairwise(places) for call in stream.feed(text[a:b])]
    assert stream.end() == whole
    # What was reported and is no call stands before the end of a thought that had no beginning.
    last = max((text.rfind(end) for _, end in MARKS[:9]), default=-1)
    kept = [call for call in found if call in whole.calls]
    assert all(call.end <= last for call in found if call not in kept)
    assert kept in ([], whole.calls[: len(kept)])


def test_words_are_told_without_thoughts_while_they_come() -> None:
    text = f"<think>\nI may\n\n{WRITE}\n\nso no.\n</think>\n\nIt is 3.\n\nAnd this\nis it.\n\nThe end."
    words = ReplyWords(read)
    assert [block for char in text for block in words.feed(char)] == ["It is 3.", "And this\nis it."]
    assert words.rest(read(text).text) == "The end."
