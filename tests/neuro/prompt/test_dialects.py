"""Dialects: every one of them ends in the same call form, and each model has one it speaks best."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    CALL_FORMS_IN_TEXT,
    IT_IS_ASKED_FOR,
    NESTED_TOO_DEEPLY,
    TAKES_NO_NATIVE_TOOLS,
    THERE_IS_NO_DIALECT,
)
from words import complaint, form, table_of, tool

from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import NativeCall
from quoth.neuro.prompt.belt import belt
from quoth.neuro.prompt.dialects import (
    CALL_FORM,
    DIALECTS,
    NATIVE,
    RUN,
    RUN_TEXT,
    SEARCHED,
    TAGS,
    Dialect,
    NativeFault,
    call_id,
    choose_dialect,
    refusal_note,
    result_messages,
    without_tools,
)
from quoth.neuro.prompt.instructions import GREP, READ
from quoth.neuro.reading.reply import Reading
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import read_one
from quoth.tools.loading import load_tools
from quoth.tools.registry.openai_schema import wire_name
from quoth.tools.registry.table import ToolTable

ANY = {"type": Any, "default": None}
LONG = "a-very-long-name-" * 5 + "x"


def table() -> ToolTable:
    return table_of(
        tool("probe", params={"a": ANY, "b-c": ANY}, tag="PROBE"),
        tool(
            "strict",
            params={
                "path": {"type": str},
                "limit": {"type": int, "default": 5},
                "names": {"type": list[str], "default": ["x"]},
                "kind": {"type": str, "choices": ["p", "q"], "default": "p"},
                "when": {"type": str | None, "default": "now"},
            },
            tag="STRICT",
        ),
        tool(LONG, params={"a": ANY}, tag="LONG"),
        tool("eval", params={"form": {"type": Code}}, tag="EVAL"),
    )


def native(name: str, arguments: object, id: str = "c1") -> NativeCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return NativeCall(id=id, name=name, arguments=text)


def reply_in(dialect: Dialect, form: CallForm) -> Completion:
    """A model's reply that makes the call."""
    if dialect is NATIVE:
        return Completion("", calls=(native(wire_name(form.tool), dict(form.args)),))
    if dialect is RUN:
        return Completion("", calls=(native("run", {"program": str(form)}),))
    return Completion(dialect.spell(form, table()))


def read(dialect: Dialect, completion: Completion) -> Reading:
    return dialect.read(completion, table())


texts = st.text(max_size=20) | st.sampled_from(
    [
        "",
        " ",
        '"',
        "\\",
        "\n",
        "\r\n",
        "\u2028",
        "()",
        "; x",
        "`",
        "```",
        "7",
        "null",
        "{}",
        "é 漢 🦀",
        "\x00",
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: "\\ud" not in ascii(value))  # a half character is no text anywhere
forms = st.builds(
    lambda name, args: CallForm(name, args),
    st.sampled_from(["probe", LONG]),
    st.dictionaries(st.just("a"), values, max_size=1),
) | st.builds(lambda args: CallForm("probe", args), st.dictionaries(st.sampled_from(["a", "b-c"]), values))

AS_CALLS = [dialect for dialect in DIALECTS.values() if dialect.name != "run"]


@pytest.mark.parametrize("dialect", AS_CALLS, ids=lambda dialect: dialect.name)
@given(form=forms)
def test_every_dialect_ends_in_the_same_call_form(dialect: Dialect, form: CallForm) -> None:
    reading = read(dialect, reply_in(dialect, form))
    assert reading.errors == []
    (found,) = reading.calls
    # None for what may be left out is what a strict schema makes of leaving it out.
    wanted = {name: value for name, value in form.args.items() if value is not None or dialect is not NATIVE}
    got = {name: value for name, value in found.form.args.items() if value is not None or name in wanted}
    assert (found.form.tool, got) == (form.tool, wanted)
    assert {name: type(value) for name, value in got.items()} == {
        name: type(value) for name, value in wanted.items()
    }


@pytest.mark.parametrize("dialect", [RUN, RUN_TEXT], ids=["native", "text"])
@given(form=forms)
def test_in_the_dialect_run_every_call_is_a_program(dialect: Dialect, form: CallForm) -> None:
    (found,) = read(dialect, reply_in(dialect, form)).calls
    assert found.form.tool == "eval"
    assert read_one(found.form.args["form"]) == read_one(str(form))


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("(run :program (+ 1 2))", "(eval :form (+ 1 2))"),
        ("(run (+ 1 2))", "(eval :form (+ 1 2))"),
        ('(run :program "(+ 1 2)")', '(eval :form "(+ 1 2)")'),
        ("(eval :form (+ 1 2))", "(eval :form (+ 1 2))"),
        ('(strict :path "a")', '(eval :form (strict :path "a"))'),
        ("(run :program 1 :user 2)", "(eval :program 1 :user 2)"),
    ],
)
def test_what_is_a_program(reply: str, program: str) -> None:
    (found,) = read(RUN_TEXT, Completion(reply)).calls
    assert str(found.form) == program


def test_a_native_call_may_name_its_tool_with_the_namespace_of_functions() -> None:
    (found,) = read(NATIVE, Completion("", calls=(native("functions.strict", {"path": "a"}),))).calls
    assert found.form == CallForm("strict", {"path": "a"})


def test_a_native_run_may_call_another_tool_and_that_is_a_program_too() -> None:
    (found,) = read(RUN, Completion("", calls=(native("strict", {"path": "a"}),))).calls
    assert str(found.form) == '(eval :form (strict :path "a"))'


# Native calls


def test_parallel_calls_keep_their_order_and_their_ids() -> None:
    calls = (native("probe", {"a": 1}, "c1"), native("probe", {"a": 2}, "c2"))
    reading = read(NATIVE, Completion(" I look. ", calls=calls))
    assert [(str(found.form), found.id) for found in reading.calls] == [  # type: ignore[attr-defined]
        ("(probe :a 1)", "c1"),
        ("(probe :a 2)", "c2"),
    ]
    assert reading.text == "I look."


def test_a_null_for_what_may_be_left_out_is_left_out() -> None:
    given = {"path": "a", "limit": None, "names": None, "kind": None, "when": None}
    (found,) = read(NATIVE, Completion("", calls=(native("strict", given),))).calls
    assert str(found.form) == '(strict :path "a" :when None)'  # there None means something of its own
    (found,) = read(NATIVE, Completion("", calls=(native("strict", {"path": None}),))).calls
    assert str(found.form) == "(strict :path None)"  # the door says that it is needed


@pytest.mark.parametrize(
    ("arguments", "finish", "fault"),
    [
        ('{"a": ', "stop", "The arguments of probe are not JSON: Expecting value: line 1 column 7 (char 6)"),
        ('{"a": ', "length", "the reply was cut off before its end; be brief"),
        ("[1]", "stop", "The arguments of probe are an object with a name for each value"),
        ("[" * 100_000, "stop", f"The arguments of probe are {NESTED_TOO_DEEPLY}"),
    ],
)
def test_a_native_call_that_cannot_be_read_is_a_fault_with_its_id(
    arguments: str, finish: str, fault: str
) -> None:
    calls = (native("probe", arguments, "c1"), native("probe", {"a": 2}, "c2"))
    reading = read(NATIVE, Completion("", finish=finish, calls=calls))
    (error,) = reading.errors
    assert isinstance(error, NativeFault)
    assert error.id == "c1"
    assert fault in str(error)
    assert [str(found.form) for found in reading.calls] == ["(probe :a 2)"]


def test_an_unknown_name_is_a_call_that_the_door_answers() -> None:
    (found,) = read(NATIVE, Completion("", calls=(native("No_Such", {}),))).calls
    assert found.form == form("(no-such)")


@pytest.mark.parametrize("name", ["native", "json", "tags"])
def test_a_model_that_writes_a_call_form_all_the_same_is_understood(name: str) -> None:
    reading = read(DIALECTS[name], Completion("(probe :a 1)"))
    assert [str(found.form) for found in reading.calls] == ["(probe :a 1)"]


def test_beside_native_calls_text_is_text() -> None:
    completion = Completion("(probe :a 1)", calls=(native("probe", {"a": 2}),))
    assert [str(found.form) for found in read(NATIVE, completion).calls] == ["(probe :a 2)"]


# How results go back


def test_native_calls_are_answered_each_by_its_id_and_all_else_in_one() -> None:
    reading = read(NATIVE, Completion("", calls=(native("probe", {}, "c1"), native("probe", "{", "c2"))))
    heard = [(call_id(reading.calls[0]), "eins"), (call_id(reading.errors[0]), "zwei")]
    assert result_messages(heard) == [("tool", "eins", "c1"), ("tool", "zwei", "c2")]
    in_text = read(CALL_FORM, Completion("(probe :a 1)\n(probe :a 2)\n(probe :a"))
    ids = [call_id(found) for found in [*in_text.calls, *in_text.errors]]
    told = zip(ids, ["eins", "zwei", "drei"], strict=True)
    assert result_messages(told) == [("tool", "eins\n\nzwei\n\ndrei", "")]
    assert result_messages([]) == []


# A reply that streams in


@pytest.mark.parametrize("dialect", [*DIALECTS.values(), RUN_TEXT], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "text", ["(probe :a 1)\n", "PROBE: some words\n", "PROBE:\n", "(run :program (probe))\n"]
)
def test_a_call_is_told_while_it_streams_in_as_it_is_read_at_the_end(dialect: Dialect, text: str) -> None:
    stream = dialect.stream(table())
    told = [form for char in text for form in stream(char)]
    whole = [call.form for call in read(dialect, Completion(text)).calls]
    assert told == ([] if dialect.native else whole)


# What a model is told


@pytest.mark.parametrize("name", ["call-form", "plist", "json"])
def test_the_example_in_the_rules_is_in_the_dialect(name: str) -> None:
    dialect = DIALECTS[name]
    assert dialect.spell(READ) in dialect.rules
    assert dialect.spell(GREP) in dialect.rules


def test_the_rules_of_tags_name_the_tags_there_are() -> None:
    shipped = load_tools(())
    files = [replace(shipped.get(name), tag=name.upper()) for name in ("read-file", "grep-search", "eval")]
    told = TAGS.opening(table_of(*files, tool("rest", tag="REST")))
    assert "If the task names a file, begin with READ-FILE" in told
    assert '\nGREP-SEARCH: {"pattern": "open_door", "path": "lib"}\n' in told
    assert "To compute with numbers that you know, use EVAL" in told
    assert "\nEVAL: (…)\n" in told  # a model copies the brackets of [form]
    assert "To change a file" not in told  # needs two tools, of which there is none
    bot = TAGS.opening(table_of(tool("rest", tag="REST")))
    assert "file" not in bot
    assert "EXAMPLE:" not in bot


def test_the_rules_of_tags_tell_when_the_results_come() -> None:
    rest = table_of(tool("rest", tag="REST"), replace(load_tools(()).get("eval"), tag="EVAL"))
    at_once, later = TAGS.opening(rest), replace(TAGS, stops=True).opening(rest)
    assert "its result is the next message" in at_once
    assert "EXAMPLE:" in at_once
    assert "to\nyou with the next message: do not tell of a result that you have not seen." in later
    assert "its result is the next message" not in later
    another = r'("\n" call)'  # one call a reply, as the rules say, where its result is the next message
    assert another in str(replace(TAGS, stops=True).grammar(rest))
    assert another not in str(TAGS.grammar(rest))
    assert "EXAMPLE:" not in later  # there a model goes on to an answer


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain words", "PROBE: plain words"),
        ("{brace", 'PROBE: {"text": "{brace"}'),
        ('"quoted"', 'PROBE: {"text": "\\"quoted\\""}'),
        ("two\nlines", 'PROBE: {"text": "two\\nlines"}'),
        (" blanks ", 'PROBE: {"text": " blanks "}'),
        ("", 'PROBE: {"text": ""}'),
    ],
)
def test_a_tagged_line_is_plain_where_it_is_read_so(text: str, line: str) -> None:
    one = table_of(tool("probe", params={"text": {"type": str}}, tag="PROBE"))
    call = CallForm("probe", {"text": text})
    assert TAGS.spell(call, one) == line
    assert [found.form for found in TAGS.read_text(line, one).calls] == [call]


@pytest.mark.parametrize("name", ["call-form", "plist", "json", "run"])
def test_the_system_message_is_the_belt_and_the_rules(name: str) -> None:
    dialect = DIALECTS[name]
    assert dialect.opening(table()) == belt(table(), dialect.view) + dialect.rules.rstrip()


def test_native_tools_go_beside_the_messages() -> None:
    assert "AVAILABLE TOOLS" not in NATIVE.opening(table())
    for view in ("openai", "responses", "anthropic"):
        shown = NATIVE.tools(table(), view)
        assert shown is not None
        assert json.loads(shown) == json.loads(belt(table(), view))
    assert CALL_FORM.tools(table(), "openai") is None
    assert NATIVE.tools(table(), "") is None


def test_the_dialect_run_has_one_native_tool_and_shows_the_others_as_functions() -> None:
    shown = RUN.tools(table(), "anthropic")
    assert shown is not None
    (only,) = json.loads(shown)
    assert (only["name"], list(only["input_schema"]["properties"])) == ("run", ["program"])
    assert "- probe: " in RUN.opening(table())
    assert "- eval: " not in RUN.opening(table())


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("run", "The dialect run needs the tool eval, and this table has none."),
        ("tags", "The dialect tags needs tools with a :tag, and this table has none."),
    ],
)
def test_a_table_a_dialect_cannot_use(name: str, sentence: str) -> None:
    assert complaint(UsageError, lambda: DIALECTS[name].opening(table_of(tool("rest")))) == sentence


# Which model speaks which


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("local", "call-form"),
        ("local-small", "call-form"),
        ("local:/models/my.gguf", "call-form"),
        ("llamacpp:gpt-oss", "call-form"),
        ("anthropic:claude-haiku-5-5", "native"),
        ("openai:gpt-5-mini", "native"),
        ("openai-responses:gpt-5-mini", "native"),
        ("openai:o4-mini", "native"),
        ("openai:qwen3", "call-form"),
        ("ollama:qwen3:8b", "call-form"),
        ("ollama:gpt-oss:20b", "native"),
        ("openai:openai/gpt-oss-120b", "native"),
        ("scripted:replies.txt", "call-form"),
        ("mine", "call-form"),
    ],
)
def test_each_model_has_a_dialect_of_its_own(model: str, name: str) -> None:
    assert choose_dialect(model) == (DIALECTS[name], "")


@pytest.mark.parametrize("name", DIALECTS)
def test_the_dialect_may_be_chosen(name: str) -> None:
    assert choose_dialect("mine", name) == (DIALECTS[name], "")


def test_a_dialect_there_is_not_is_told_with_those_there_are() -> None:
    assert complaint(UsageError, lambda: choose_dialect("mine", "jason")) == (
        f"{THERE_IS_NO_DIALECT} jason; the dialects are call-form, plist, json, tags, native, run. "
        "Did you mean json?"
    )


@pytest.mark.parametrize(
    ("name", "spoken", "words"),
    [("native", CALL_FORM, CALL_FORMS_IN_TEXT), ("run", RUN_TEXT, "programs in text")],
)
def test_where_no_tools_are_taken_text_is_spoken_and_the_user_is_told(
    name: str, spoken: Dialect, words: str
) -> None:
    note = f"local {TAKES_NO_NATIVE_TOOLS}. {IT_IS_ASKED_FOR} {words}."
    assert choose_dialect("local", name, takes_tools=False) == (spoken, note)
    assert without_tools(DIALECTS[name]) is spoken
    assert refusal_note(DIALECTS[name], "No.") == f"No. {IT_IS_ASKED_FOR} {words}."


def test_nobody_is_told_of_what_he_did_not_want() -> None:
    assert choose_dialect("openai:gpt-5", takes_tools=False) == (CALL_FORM, "")


def test_a_belt_to_search_goes_with_forms_and_programs() -> None:
    assert choose_dialect("openai:gpt-5", search=True) == (RUN, "")
    assert choose_dialect("openai:gpt-5", "native", search=True) == (RUN, SEARCHED)
    assert choose_dialect("local", "native", search=True, takes_tools=False) == (
        RUN_TEXT,
        f"{SEARCHED} local {TAKES_NO_NATIVE_TOOLS}. {IT_IS_ASKED_FOR} programs in text.",
    )
    assert choose_dialect("local", search=True) == (CALL_FORM, "")
    assert CALL_FORM.opening(table(), search=True).startswith(belt(table(), "bare"))
    assert complaint(UsageError, lambda: choose_dialect("local", "json", search=True)) == (
        "--belt search needs the dialect call-form or run, not json."
    )
