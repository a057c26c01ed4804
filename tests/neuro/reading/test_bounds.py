"""Just as much as is allowed is read, one more is not; and of two conditions each is needed."""

from __future__ import annotations

from typing import Any

import pytest
from sentences import HAS_MORE_THAN, IS_GIVEN_TWICE, IS_NOT_A_VALUE, NESTED_TOO_DEEPLY
from words import calls, faults, heard, tool

from quoth.neuro.reading.json_calls import json_calls
from quoth.neuro.reading.literals import NotRead, read_literal
from quoth.neuro.reading.prose import in_sentence, is_quoted
from quoth.neuro.reading.repair import mend
from quoth.neuro.reading.reply import read_reply
from quoth.tools.errors import InvalidCallError

HI = '(echo :text "hi")'
KNOWN = ["echo", "eval", "read-file", "write-file"]
TOO_MANY = "The rest was not read; too many forms before it are not calls"


# Limits


@pytest.mark.parametrize(
    ("passed", "weight"),
    [
        ("(a b)\n", 1),
        ('{"a": 1}\n', 1),
        ("For example:\n(echo :text 1)\n\n", 1),
        ("(a ]\n", 10),
        ("[1 2]\n", 0),
    ],
)
def test_what_is_no_call_weighs_so_much(passed: str, weight: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.neuro.reading.forms.MAX_FORMS", 3 * weight + 1)
    assert heard(passed * 3 + HI) == [HI]
    assert faults(passed * 3 + HI) == []
    monkeypatch.setattr("quoth.neuro.reading.forms.MAX_FORMS", max(1, 3 * weight))
    said = [fault.partition(": ")[2] for fault in faults(passed * 3 + HI)]
    assert said == ([TOO_MANY] if weight else [])


@pytest.mark.parametrize(("lead", "column"), [("", 1), ("   ", 4), ("- ", 3), ("1. Call: ", 10)])
def test_the_rest_begins_at_its_form(lead: str, column: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.neuro.reading.forms.MAX_CALLS", 1)
    (fault,) = read_reply(f"{HI}\nsee `a` now\n{lead}{HI}\n", KNOWN).errors
    assert (fault.message, fault.line, fault.column) == ("The rest was not read", 3, column)


@pytest.mark.parametrize(("spent", "found"), [(0, [HI]), (-1, [])])
def test_as_much_as_may_be_read_in_vain_is_read(
    spent: int, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"(a\n{HI}"
    monkeypatch.setattr("quoth.neuro.reading.forms.MAX_EFFORT", spent - len(text))
    assert heard(text) == found


@pytest.mark.parametrize(
    ("limit", "text", "problem"),
    [
        ("MAX_VALUES", "[1, [2, 3]]", "there are more than 4 values"),  # 1, 2, 3, the inner list, and itself
        ("MAX_DEPTH", "[[[[[]]]]]", "nested deeper than 4"),
        ("MAX_DIGITS", "12345", f"this number {HAS_MORE_THAN} 4 digits"),
    ],
)
def test_a_value_may_be_just_so_large(
    limit: str, text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"quoth.neuro.reading.literals.{limit}", 5)
    assert read_literal(text, 0).end == len(text)
    monkeypatch.setattr(f"quoth.neuro.reading.literals.{limit}", 4)
    with pytest.raises(NotRead, match=problem):
        read_literal(text, 0)


def test_a_form_that_is_mended_may_have_just_so_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    form = "(echo :xs [1, 2])"
    monkeypatch.setattr("quoth.neuro.reading.repair.MAX_PIECES", 11)
    mended = mend(form, 0, len(form))
    assert mended is not None
    assert mended.text == "(echo :xs [1  2])"
    monkeypatch.setattr("quoth.neuro.reading.repair.MAX_PIECES", 10)
    with pytest.raises(NotRead, match="too many parts"):
        mend(form, 0, len(form))


@pytest.mark.parametrize("place", ["args", "positional"])
def test_no_argument_of_a_call_is_nested_too_deeply(place: str) -> None:
    def call(value: Any) -> Any:
        return {"tool": "echo", "args": {}, "positional": ()} | {
            place: {"x": value} if place == "args" else [value]
        }

    value: Any = []
    for _ in range(90):
        value = [value]
    found = json_calls(call(value), KNOWN)
    assert found is not None
    for _ in range(60):
        value = [value]
    with pytest.raises(InvalidCallError, match=f"{NESTED_TOO_DEEPLY}"):
        json_calls(call(value), KNOWN)


# Values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'\101\x42\q'", r"AB\q"),
        (r"'\1017'", "A7"),
        (r"'\x4\"'", '\\x4"'),
        (r"'\U0001f642'", "🙂"),
        (r"'\U001fffff'", r"\U001fffff"),
        ("0x1F", 31),
        ("-0X1f", -31),
        ("-Infinity", float("-inf")),
        ("1_000", 1000),
    ],
)
def test_a_literal_is_read_as_python_would(text: str, value: object) -> None:
    assert read_literal(text, 0).value == value


@pytest.mark.parametrize(
    ("text", "problem", "incomplete"),
    [
        ("'a", "a text is never closed", True),
        ("'a\nb", "a text is never closed", False),  # in single quotes it would be in one line
        ('"a\nb', "a text is never closed", True),
        ("[1, ", "the text ends inside it", True),
        ("[1,, 2]", "a value was expected, not a comma", False),
        ("[1 2]", "a comma or ] is missing", False),
        ("[1)", r"there is no open bracket for this \)", False),
        ('{"a": }', "a value is missing", False),
        ('{"a"', "a : is missing after a key", True),
        ('{"a" 1}', "a : is missing after a key", False),
        ("{[1]: 2}", "a key must be a text", False),
        ('{"a": 1, "a": 2}', f"a {IS_GIVEN_TWICE}", False),
        ("b'a'", "b'…' is not a plain text", False),
        ("[hello there]", f"hello {IS_NOT_A_VALUE}", False),
        ("[1 ?]", "'\\?' is not allowed here|missing", False),
    ],
)
def test_what_is_no_literal_says_why(text: str, problem: str, incomplete: bool) -> None:
    with pytest.raises(NotRead, match=problem) as caught:
        read_literal(text, 0)
    assert caught.value.incomplete == incomplete


# Repairs


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("(echo a=1 b=2)", "(echo :a 1 :b 2)"),
        ("(echo :a b=2)", None),  # where a value is due, it is one
        ("(a=1)", None),  # the name of a tool is no argument
        ("(:tool echo :args (a=1 b: 2))", "(:tool echo :args (:a 1 :b  2))"),
        ("(:tool a=1)", None),
        ("(echo :x 1,000)", None),
        ("(echo :x [1,000])", "(echo :x [1 000])"),
        ("(echo 1, 2)", "(echo 1  2)"),
        ("(echo '(1, 2))", "(echo '(1  2))"),
        ("(echo (f 1, 2))", None),  # a program keeps its own
        ("(:tool echo :args ((a=1)))", "(:tool echo :args ((:a 1)))"),
        ('(echo :x {"a": 1})', '(echo :x {"a" 1})'),
        ('(echo :x {"a" 1})', None),
    ],
)
def test_a_form_is_mended_only_where_one_reading_is_left(text: str, mended: str | None) -> None:
    found = mend(text, 0, len(text))
    assert (found and found.text) == mended


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ('(echo :x "a"', '(echo :x "a")'),
        ("(echo :x [1 2", "(echo :x [1 2])"),
        ("(echo 1", "(echo 1)"),
        ("(echo True", "(echo True)"),
        ("(echo", None),  # it may have arguments
        ("(echo word", None),  # it may be prose
        ("(echo :x (f 1", None),  # a program may end anywhere
        ("(echo :x [1 :y 2", None),  # the key may be the call's
        ("(:tool echo :args (:x 1", "(:tool echo :args (:x 1))"),
        ("(:tool echo :args (:x 1 :type 2", None),
        ('(echo :x 1 ; and\n', '(echo :x 1)'),
        ('(echo :x 1 ; and :y\n', None),
        ('(echo :x 1 ; and )\n', None),
        ("  (echo :x '(1)\n  (see", None),
        ("(echo :x 1\n(see 1)", None),  # the next line may begin another form
    ],
)  # fmt: skip
def test_a_missing_end_is_supplied_where_it_can_be_in_one_place(text: str, mended: str | None) -> None:
    try:
        found = mend(text, text.index("("), len(text), tail=True)
        said = found.text if found else ""
    except NotRead:
        said = None
    assert said == mended


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(frobnicate :a 1 :b 2)", 1),
        ("(frobnicate :a 1 :b)", 0),
        ("(frobnicate :a :b :c 1)", 0),
        ("(frobnicate a 1)", 0),
        ("(frobnicate a 1 :b 2)", 0),
        ("(frobnicate)", 0),
        ("[frobnicate :a 1]", 0),
        ("[echo :a 1 :b 2]", 1),
        ("[echo :a]", 0),
        ("[echo]", 0),
    ],
)
def test_an_unknown_name_is_called_with_pairs_alone(text: str, found: int) -> None:
    assert len(calls(text)) == found
    assert faults(text) == [] or not found


# What stands around a call


def test_an_example_hides_no_call_behind_it() -> None:
    assert heard(f"For example:\n(echo :text “a ) b)\n\n{HI}") == [HI]
    assert faults(f"For example:\n(echo :text “a ) b)\n\n{HI}") == []


@pytest.mark.parametrize("text", ['{"a": b} (see it)', "{a b} (c)", "[1 2](x)", "see(1 2) (so)"])
def test_data_in_prose_is_no_fault(text: str) -> None:
    assert faults(text) == []
    assert read_reply(text, KNOWN).text == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<tool_response>x</tool_response> words", "words"),
        ("<tool_response>x", ""),
        (f"{HI}\n<tool_response>x</tool_response> words", ""),  # behind a call all is made up
    ],
)
def test_a_result_that_is_made_up_ends_with_its_element(text: str, left: str) -> None:
    assert read_reply(text, KNOWN).text == left


@pytest.mark.parametrize(("blanks", "found"), [(399, []), (400, [HI])])
def test_an_example_reaches_so_far(blanks: int, found: list[str]) -> None:
    call = '{"tool": "echo", "args": {"text": "hi"}}'
    assert heard(f"For example:\n(echo :text 1){' ' * blanks}\n{call}") == found


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("echo(text=hi)", "write ECHO: [text]"),
        ("[echo(text=hi)]", "write ECHO: [text]"),
        ('{"tool": "echo", "args": {"text": "a" "b"}}', "write the line of its tag, TAG: and what it takes"),
    ],
)
def test_who_calls_by_tags_is_shown_the_line_of_the_tag(text: str, hint: str) -> None:
    echo = tool("echo", params={"text": {"type": str}}, tag={"prefix": "ECHO"})
    (fault,) = read_reply(text, KNOWN, {"ECHO": echo}).errors
    assert fault.hint == hint


def test_the_fault_of_a_tag_is_told_once() -> None:
    echo = tool("echo", params={"text": {"type": str}}, tag={"prefix": "ECHO"})
    reading = read_reply("ECHO: [text]\nECHO: [text]\nECHO: a", KNOWN, {"ECHO": echo})
    assert [fault.message for fault in reading.errors] == ["This line only repeats how ECHO is written"]
    assert ([str(call.form) for call in reading.calls], reading.display) == (['(echo :text "a")'], "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nECHO: x\nb", "a\nb"),
        ("a\n\nECHO: x\n\nb", "a\n\nb"),  # of the blank lines around it one stays
        ("a\n\n\nECHO: x\nb", "a\n\nb"),
        ("a\nECHO: x\n\n\nb", "a\n\nb"),
        ("a\n\nECHO: x\nECHO: y\n\nb", "a\n\nb"),
        ("ECHO: x\n\nb", "b"),
        ("a\nECHO: x", "a"),
        ("ECHO: x\nb\nECHO: y", "b"),
        ("a (echo :text 1) b\nECHO: x\nc", "a (echo :text 1) b\nc"),
        ("```\nECHO: x\n```\nECHO: y", "```\nECHO: x\n```"),
        ("a\n```\nx\n```\nECHO: y\n\nb", "a\n```\nx\n```\n\nb"),
        ("a\n\n(echo :text 1)\n\nb\n\nECHO: y\n\nc", "a\n\n\n\nb\n\nc"),
    ],
)
def test_the_line_of_a_tag_goes_with_the_blank_lines_around_it(text: str, shown: str) -> None:
    echo = tool("echo", params={"text": {"type": str}}, tag={"prefix": "ECHO"})
    assert read_reply(text, KNOWN, {"ECHO": echo}).display == shown


@pytest.mark.parametrize(
    ("before", "goes_on"),
    [
        ("a ", True),
        ("5 ", True),
        ("a\t", True),
        (", ", True),
        ("; ", True),
        ("Here, a ", True),
        (". ", False),
        (") ", False),
        ("a", False),
        (" ", False),
        ("", False),
    ],
)
@pytest.mark.parametrize(
    ("after", "spoken"),
    [
        (".", True),
        (",", True),
        ("!)", True),
        (" x", True),
        (" 5", False),
        ("x", False),
        (" ", False),
        ("", False),
    ],
)
def test_a_sentence_goes_on_around_a_mark(before: str, goes_on: bool, after: str, spoken: bool) -> None:
    mark = "<think>"
    text = f"{before}{mark}{after}"
    assert in_sentence(text, len(before), len(before) + len(mark)) == (goes_on and spoken)


@pytest.mark.parametrize(
    ("text", "start", "end", "quoted"),
    [
        ('"<think>"', 1, 8, True),
        ('"<think>', 1, 8, False),
        ('<think>"', 0, 7, False),
        ('a"<think>"', 2, 9, True),
        ("“<think>”", 1, 8, True),
        ("“<think>“", 1, 8, False),
        ("`<think>`", 1, 8, True),
    ],
)
def test_a_mark_between_quotation_marks_is_quoted(text: str, start: int, end: int, quoted: bool) -> None:
    assert is_quoted(text, start, end) == quoted
