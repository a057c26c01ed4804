"""Families of models: each one's markup is a call, in every spelling; what cannot be read is a fault."""

from __future__ import annotations

from typing import Any

import pytest
from families import ARGS, CALL, FAMILIES, JSON, KNOWN, READ, TICKS, Source
from sentences import IS_NEVER_CLOSED

from quoth.neuro.reading.families import family_at
from quoth.neuro.reading.reply import ReplyStream, read_reply

each_family = pytest.mark.parametrize("source", FAMILIES.values(), ids=FAMILIES)
MARKUP = ("tool_call", "<function", "<parameter", "arg_key", "｜", "<|", "|>", "[TOOL", "[ARGS", "invoke")


def heard(text: str) -> list[str]:
    return [str(call.form) for call in read_reply(text, KNOWN).calls]


@each_family
def test_a_spelling_of_a_family_is_read(source: Source) -> None:
    for spelling in source.spellings:
        reading = read_reply(spelling.text, KNOWN)
        assert [str(call.form) for call in reading.calls] == list(spelling.calls), spelling
        assert bool(reading.errors) is not bool(spelling.calls), spelling
        if spelling.calls:
            assert [mark for mark in MARKUP if mark in reading.text] == [], spelling


def test_every_family_has_five_spellings_and_a_source() -> None:
    for source in FAMILIES.values():
        assert len(source.spellings) >= 5
        assert "http" in source.address
        assert source.date


@each_family
def test_a_spelling_is_text_in_a_code_span_a_string_and_a_fence_of_words(source: Source) -> None:
    for text in (spelling.text for spelling in source.spellings):
        line = " ".join(text.split())
        if "`" not in line:
            assert heard(f"It looks like `{line[:300]}` there.") == []
        assert heard(f"{TICKS}python\n{text}\n{TICKS}") == [] or TICKS in text
        assert heard(f"> {line}") == []
        content = text.replace("\\", "\\\\").replace('"', '\\"')
        assert heard(f'(echo :text "{content}")') == [f'(echo :text "{content}")'.replace("\n", "\\n")]


def test_a_fence_counts_only_where_it_holds_nothing_else() -> None:
    call = '<tool_call>\n{"name": "list-files", "arguments": {}}\n</tool_call>'
    assert heard(f"{TICKS}\n{call}\n{TICKS}") == ["(list-files)"]
    assert heard(f"{TICKS}\n{call}\n{call}\n{TICKS}") == ["(list-files)", "(list-files)"]
    assert heard(f"{TICKS}\nYou write\n{call}\n{TICKS}") == []
    section = "<function=list-files>\n</function>"
    assert heard(f"{TICKS}\n{section}\n{TICKS}") == ["(list-files)"]
    assert heard(f"{TICKS}\n{section}\nis how you write\n{TICKS}") == []
    faulty = read_reply(f"{TICKS}\n<function=\nso\n{TICKS}", KNOWN)
    assert faulty.calls == []
    assert faulty.errors != []


def test_a_fence_of_words_before_a_call_stays_whole() -> None:
    words = f"{TICKS}python\nx = 1\n{TICKS}"
    assert read_reply(f"{words}\n(list-files)", KNOWN).text == words
    assert read_reply(f"{words}\n\n(list-files)\n(list-files)", KNOWN).text == words


def test_an_announced_example_is_none() -> None:
    assert read_reply(f"For example:\n{FAMILIES['qwen'].spellings[0].text}", KNOWN).calls == []
    assert read_reply("For example:\n<tool_call>\nnonsense\n</tool_call>", KNOWN).errors == []


def test_a_fault_shows_how_the_family_calls_and_nothing_behind_it_is_read() -> None:
    reading = read_reply(f"<tool_call>\n<function=read-file>\n<parameter=path>\na\n\n{CALL}", KNOWN)
    assert reading.calls == []
    assert f"a value {IS_NEVER_CLOSED}; write <tool_call><function=NAME>" in str(reading.errors[0])


def test_with_the_calls_before_a_fault_begins_what_is_certain() -> None:
    text = "<function=list-files>\n</function>\n<function=read-file>\n<parameter=path>\na"
    reading = read_reply(text, KNOWN)
    assert [str(call.form) for call in reading.calls] == ["(list-files)"]
    assert len(reading.errors) == 1


def test_a_value_that_holds_an_end_mark_is_no_call_with_half_of_it() -> None:
    end = "\n</parameter>\n</function>"
    text = f"<function=write-file>\n<parameter=content>\nx{end}\nmore{end}"
    assert heard(text) == []


def test_a_cut_reply_makes_no_call_of_what_may_go_on() -> None:
    text = '<tool_call>\n{"name": "read-file", "arguments": {"path": "notes.txt"'
    assert heard(text) == [CALL]
    assert read_reply(text, KNOWN, cut=True).calls == []
    whole = FAMILIES["qwen"].spellings[0].text
    assert len(read_reply(whole, KNOWN, cut=True).calls) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It is 3.<|im_end|>",
        "It is 3.</s>",
        "It is 3.<|eot_id|>",
        "It is 3.<end_of_turn>",
        "<|channel|>final<|message|>It is 3.<|return|>",
        "analysisCounting.assistantfinalIt is 3.",
        "It is 3.<｜end▁of▁sentence｜>",
        "<|START_RESPONSE|>It is 3.<|END_RESPONSE|>",
        "It is 3.<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n(list-files)",
        "It is 3.<|observation|>\n3 pears",
        ">>>all\nIt is 3.",
    ],
)
def test_the_marks_of_turns_are_no_text_and_a_made_up_turn_is_none(text: str) -> None:
    reading = read_reply(text, KNOWN)
    assert (reading.text, reading.content, reading.calls, reading.errors) == ("It is 3.", "It is 3.", [], [])


def test_a_result_that_the_model_makes_up_is_cut_and_all_that_it_concludes() -> None:
    call = '<tool_call>\n{"name": "list-files", "arguments": {}}\n</tool_call>\n'
    for result in (
        "<tool_response>\n3\n</tool_response>\nThere are 3.",
        "[TOOL_RESULTS]3",
        "<|tool_response>3",
    ):
        reading = read_reply(f"{call}{result}\n{CALL}", KNOWN)
        assert [str(one.form) for one in reading.calls] == ["(list-files)"]
        assert (reading.text, reading.content) == ("", call.strip())
    assert read_reply("<tool_response>\n3\n</tool_response>\nThere are 3.", KNOWN).text == "There are 3."


@pytest.mark.parametrize(
    "text",
    [
        '<｜DSML｜parameter name="path" string="true">notes.txt</｜DSML｜parameter>\n</｜DSML｜invoke>',
        "<parameter=path>\nnotes.txt\n</parameter>\n</function>",
        "<arg_value>notes.txt</arg_value>\n</tool_call>",
        '<|tool_call_argument_begin|>{"path": "notes.txt"}<|tool_call_end|>',
        f"{TICKS}tool_code\nimport os\nprint(os.listdir())\n{TICKS}",
    ],
)
def test_markup_whose_beginning_is_missing_is_no_answer(text: str) -> None:
    reading = read_reply(text, KNOWN)
    assert reading.calls == []
    assert len(reading.errors) == 1


def test_a_form_may_follow_a_mark_in_its_line() -> None:
    for before in (
        "<think>so</think>",
        "<|channel|>final<|message|>",
        "so.\n</think> ",
        "<|START_RESPONSE|>",
    ):
        for form in (
            "(list-files)",
            '{"name": "list-files", "arguments": {}}',
            f"{TICKS}lisp\n(list-files)\n{TICKS}",
        ):
            assert heard(f"{before}{form}") == ["(list-files)"]


def test_prose_may_speak_of_marks() -> None:
    for text in (
        "The <tool_call> tag holds JSON.",
        'Write "<tool_call>" before it.',
        "It ends in `<|im_end|>`.",
        "Use `<function=name>` here.",
        "Usage: prog [OPTIONS] [ARGS]",
        "prog[ARGS]",
        "Call: me {later}.",
        'The element <function name="f"> has a body.',
        "I call functools.reduce(f, [1]).",
        "Press Ctrl-C <- there.",
        "a < b and b > c, a<b>c",
        ">>> read_file\n{}",
        f"The tag <tool_call>{JSON}</tool_call> is what Hermes uses.",
        f"Mistral writes [TOOL_CALLS][{JSON}] in one line.",
        f"Qwen writes <function=read-file>{ARGS}</function>, and so do others.",
        "Write **<tool_call>** before it.",
        "The mark <function=name> opens a call.",
        "- <tool_call>: opens a call\n- <function=NAME>: names the tool\n- [TOOL_CALLS]: opens calls",
        "A list, functools[0], is not one.",
    ):
        reading = read_reply(text, KNOWN)
        assert (reading.text, reading.calls, reading.errors) == (text, [], [])


@each_family
@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("It holds\n<pre>\n", "\n</pre>"),
        ("It holds\n<blockquote>\n", "\n</blockquote>\nand no more."),
    ],
)
def test_markup_in_an_element_that_quotes_is_no_call(before: str, behind: str, source: Source) -> None:
    for text in (spelling.text for spelling in source.spellings):
        found = family_at(text, 0)
        if found and found[0].name != "harmony" and ">>>all" not in text:  # these two hold words too
            assert heard(f"{before}{text}{behind}") == []


def test_what_a_call_contains_does_not_quote_the_next_one() -> None:
    for content in ("<!-- to do", "say “ so", "«", "<pre>\\nx"):
        first = f'<tool_call>{{"name": "echo", "arguments": {{"text": "{content}"}}}}</tool_call>'
        assert heard(f"{first}\n{READ}")[1:] == [CALL]


@pytest.mark.parametrize(
    "text", [f"functions.read_file:0{ARGS}", "<read_file>\n<path>a</path>\n</read_file>"]
)
def test_what_is_nearly_a_call_is_no_answer(text: str) -> None:
    assert "This names the tool read_file, but does not call it" in str(read_reply(text, KNOWN).errors[0])


@each_family
def test_reading_while_streaming_says_what_reading_at_the_end_says(source: Source) -> None:
    for spelling in source.spellings:
        text = f"Now:\n{spelling.text}\n(list-files)\n"
        whole = read_reply(text, KNOWN)
        for size in (1, 3, 7):
            stream = ReplyStream(KNOWN)
            found = [call for at in range(0, len(text), size) for call in stream.feed(text[at : at + size])]
            assert found == whole.calls[: len(found)], text
            assert stream.end() == whole, text


@pytest.mark.parametrize(
    "text",
    [
        f"[/THINK]{CALL}\n(list-files)",
        f"[read_file(path=1)]>>>read_file\n{ARGS}<tool_call>\n{JSON}\n</tool_call>",
        f"For example:\n<tool_call>\n{JSON}}}\n</tool_call>(list-files)\n",
        f"For example:\n[TOOL_CALLS]read-file[ARGS]{ARGS}[TOOL_CALLS]{JSON}",
        f"<!-- <tool_call>{JSON}</tool_call><tool_call>{JSON}</tool_call>",
        f"I use <tool_call>{JSON}</tool_call>, and then\n(list-files)",
    ],
)
def test_no_call_is_reported_early_that_is_none_or_has_another_before_it(text: str) -> None:
    for size in (1, 2, 7, 20):
        stream = ReplyStream(KNOWN)
        found = [call for at in range(0, len(text), size) for call in stream.feed(text[at : at + size])]
        calls = stream.end().calls
        assert [call for call in found if call in calls] in ([], calls[: len(found)])
        assert all(call in calls for call in found) or "THINK" in text


class Searched(str):
    """A text that counts the characters over which it is searched from behind."""

    total = 0

    def rfind(self, *given: Any) -> int:
        found = super().rfind(*given)
        start, end = (*given[1:], *(0, len(self))[len(given) - 1 :])
        type(self).total += min(end, len(self)) - max(found, start)
        return found


@pytest.mark.parametrize("unit", ["<|channel|>final<|message|>a", "word <think>\n", "<think>", f"{READ}b"])
def test_twice_the_marks_on_a_line_are_searched_through_twice_as_long(unit: str) -> None:
    totals = []
    for size in (20_000, 40_000):
        Searched.total = 0
        read_reply(Searched(unit * (size // len(unit))), KNOWN)
        totals.append(Searched.total)
    assert totals[1] <= 2.2 * totals[0] + 1_000
