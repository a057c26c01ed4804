"""The reader: which text of a model is a call and which is prose, what is unreadable, and that it ends."""

from __future__ import annotations

import string

import pytest
from examples import examples, many
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    BEFORE_THE_NEXT_FORM,
    CANNOT_BE_READ,
    DID_YOU_MEAN,
    DOES_NOT_CLOSE_THE,
    HAS_NO_VALUE,
    IS_GIVEN_TWICE,
    IS_NEVER_CLOSED,
    NESTED_DEEPER_THAN,
    THE_REST_WAS_NOT_READ,
)
from words import calls, faults, heard

from quoth.neuro.reading.forms import MAX_CALLS, MAX_ERRORS, MAX_FORMS
from quoth.neuro.reading.reply import MAX_REPLY, read_reply
from quoth.tools.lisp.forms import CallForm

HI = '(echo :text "hi")'
TICKS = "```"


# What is a call


@pytest.mark.parametrize(
    "reply",
    [
        HI,
        f"  {HI}",
        f"\t{HI}",
        f"I will echo it.\n\n{HI}\n\nThen I am done.",
        f"{HI} and that is all.",
        f"- {HI}",
        f"* {HI}",
        f"• {HI}",
        f"1. {HI}",
        f"12) {HI}",
        f"Call: {HI}",
        f"Tool call 2: {HI}",
        f"**Call:** {HI}",
        f"- Action: {HI}",
        f"Thought: it is simple\nAction: {HI}\nObservation:",
        f"{TICKS}\n{HI}\n{TICKS}",
        f"{TICKS}lisp\n{HI}\n{TICKS}",
        f"{TICKS}hy\n{HI}\n{TICKS}",
        f"{TICKS}clojure\n{HI}\n{TICKS}",
        f"{TICKS}Lisp\r\n{HI}\r\n{TICKS}\r\n",
        f"~~~\n{HI}\n~~~",
        f"````lisp\n{HI}\n````",
        f"  {TICKS}lisp\n  {HI}\n  {TICKS}",
        f"{TICKS}lisp {HI}{TICKS}",
        f"{TICKS}{HI}{TICKS}",
        f"{TICKS}lisp\n{HI}",
        f"#+begin_src lisp\n{HI}\n#+end_src",
        f"#+BEGIN_SRC\n{HI}\n#+END_SRC",
        f"#+begin_example\n{TICKS}lisp\n(no)\n#+end_example\n{HI}",
        f"#+begin_src python :var a=(b)\nprint(1)\n#+end_src\n{HI}",
        f"#+end_src\n{HI}",
        f"{TICKS}lisp\n#+begin_src python\n{HI}\n{TICKS}",
        f"(see above)\n{HI}",
        f"(note (that it {IS_NEVER_CLOSED}\n{HI}",
        f"{TICKS}python\nprint(1)\n{TICKS}\n{HI}",
        f"{TICKS}python\nprint(1)\n{TICKS}lisp\n{HI}\n{TICKS}",
        '(ECHO :TEXT "hi")',
        '(:target :tool :action :call :tool "echo" :args (:text "hi"))',
        '(:TYPE :REQUEST :TARGET :TOOL :ACTION :CALL :TOOL "echo" :ARGS (:TEXT "hi"))',
        '(:tool echo :args (:text "hi"))',
        '(:args (:text "hi") :tool :echo)',
        '(echo\n  :text\n  "hi"\n)',
        '(echo ; say it\n  :text "hi")',
    ],
)
def test_a_call_is_found(reply: str) -> None:
    assert heard(reply) == [HI]
    assert faults(reply) == []


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n ",
        "There is nothing to do.",
        f"Write `{HI}` to echo it.",
        f"I would call {HI} for that.",
        f"> {HI}",
        f"> {TICKS}lisp\n> {HI}\n> {TICKS}",
        f"{TICKS}python\n{HI}\n{TICKS}",
        f"{TICKS}bash\n{HI}\n{TICKS}",
        f"{TICKS}python {HI}{TICKS}",
        f"{TICKS}python\n{HI}",
        f"#+begin_src python\n{HI}\n#+end_src",
        f"  #+BEGIN_SRC python :results (none)\n  {HI}\n  #+END_SRC",
        f"#+begin_example\n{HI}\n#+end_example",
        f"#+begin_quote\n#+end_src\n{HI}\n#+end_quote",
        f"#+begin_example\n{TICKS}lisp\n{HI}\n{TICKS}\n#+end_example",
        f"For example:\n#+begin_src lisp\n{HI}\n#+end_src",
        f"{TICKS}org\n#+begin_src lisp\n{HI}\n#+end_src\n{TICKS}",
        f"~~~sh\n{HI}\n{TICKS}\n{HI}\n~~~",
        f"{TICKS}\n{TICKS}python\n{HI}\n{TICKS}\n{TICKS}",
        f"{TICKS}markdown\n{TICKS}lisp\n{HI}\n{TICKS}\n{TICKS}",
        f"````md\n{TICKS}lisp\n{HI}\n{TICKS}\n````",
        "It is in the file (see above).\n(see above) it says so.",
        "(a) is the first\n(b) is the second",
        "(i.e. :this is prose) and more",
        f"For example: {HI}",
        f"You could write this: {HI}",
        "So you define it:\n(defn twice [x]\n  (echo :text x))",
        f"So you define it:\n{TICKS}lisp\n(defn twice [x]\n  {HI})\n{TICKS}",
        f"So you begin:\n(defn twice [x]\n  {HI}\nand so on",
        '"(echo :text 1)" is a call',
    ],
)
def test_prose_is_no_call(reply: str) -> None:
    assert heard(reply) == []
    assert faults(reply) == []
    assert read_reply(reply, ["echo"]).text == reply.strip()


def test_forms_come_in_the_order_they_are_written_in_whatever_their_spelling() -> None:
    reply = (
        'First (echo :text "no") this:\n(echo :text "1") (echo :text "2")\n\n'
        f'{TICKS}lisp\n(echo :text "3")\n(see this)\n(:tool "echo" :args (:text "4"))\n{TICKS}\n'
        f'{TICKS}python\n(echo :text "no")\n{TICKS}\n'
        '- (echo :text "5")\n- (echo :text "6")(echo :text "7")'
    )
    assert heard(reply) == [f'(echo :text "{n}")' for n in range(1, 8)]


def test_a_call_says_where_it_stands() -> None:
    reply = f"Now:\n  - {HI} {HI}\n"
    found = calls(reply)
    assert [(call.line, call.column) for call in found] == [(2, 5), (2, 23)]
    assert [reply[call.start : call.end] for call in found] == [HI, HI]


def test_the_text_of_a_reply_is_what_is_left_when_its_calls_are_cut_out() -> None:
    reply = f"I look.\n{TICKS}lisp\n{HI}\n{HI}\n{TICKS}\nWait.\n{TICKS}\nkept\n{TICKS}"
    assert read_reply(reply, ["echo"]).text == f"I look.\n\nWait.\n{TICKS}\nkept\n{TICKS}"


def test_an_unknown_tool_with_named_arguments_is_a_call_for_the_door_to_answer() -> None:
    assert heard('(frobnicate :what "x" :times 2)') == ['(frobnicate :what "x" :times 2)']
    assert heard('(frobnicate "x")\nis what I would write.') == []


def test_a_known_tool_may_have_positional_arguments_or_none() -> None:
    assert heard('(echo "hi")\n(echo)') == ['(echo "hi")', "(echo)"]


# What stands inside a form is not a call of its own


@pytest.mark.parametrize(
    "content",
    [
        "one\n(eval :form (danger))\ntwo",
        f"# Title\n{TICKS}lisp\n(eval :form (danger))\n{TICKS}\n",
        f"{TICKS}\n(eval :form (danger))\n",
        f"{TICKS}python\nprint()\n",
    ],
)
def test_a_call_or_a_fence_inside_a_string_is_only_text(content: str) -> None:
    reply = f'(write-file :path "a.md" :content "{content}")\n{HI}'
    found = calls(reply)
    assert [call.form.tool for call in found] == ["write-file", "echo"]
    assert found[0].form.args["content"] == content
    assert faults(reply) == []


def test_the_inside_of_a_program_is_not_done_twice() -> None:
    assert heard('(eval (do\n(setv x 1)\n(echo :text "in")))') == ['(eval (do (setv x 1) (echo :text "in")))']


def test_what_is_indented_under_an_unreadable_call_belongs_to_it() -> None:
    reply = f'(eval (do\n  (setv x 1)\n  {HI}\n\n(echo :text "next")'
    assert heard(reply) == ['(echo :text "next")']
    assert len(faults(reply)) == 1


def test_after_a_fault_in_a_string_nothing_is_read_because_it_may_be_the_string() -> None:
    reply = '(write-file :path "a" :content "\\d\n(eval (danger))\n")'
    assert heard(reply) == []
    assert faults(reply) == [
        'line 1, column 33: \\d is not an escape here; write \\\\ for a backslash, or r"…"\n'
        '(write-file :path "a" :content "\\d\n                                ^',
        f"line 2, column 1: {THE_REST_WAS_NOT_READ}; "
        "it may be inside a text of the call at line 1; fix that call first",
    ]


def test_the_sibling_of_an_unclosed_call_is_still_read() -> None:
    reply = '(echo :text "a"\n(echo :text "b")'
    assert heard(reply) == ['(echo :text "b")']
    assert faults(reply) == [
        f"line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) {BEFORE_THE_NEXT_FORM}, "
        '(echo :text "b")\n'
        '(echo :text "a"\n^'
    ]


# What cannot be read

UNREADABLE = [
    (
        '(eval :form (do (f "a")',
        f"line 1, column 13: this ( {IS_NEVER_CLOSED}; add )) at the end\n"
        '(eval :form (do (f "a")\n            ^',
    ),
    (
        "Well.\n  (echo :text [1 2)",
        f"line 2, column 19: this ) {DOES_NOT_CLOSE_THE} [ at line 2, column 15; add ] before it\n"
        "  (echo :text [1 2)\n                  ^",
    ),
    (
        '(echo :text "a)',
        'line 1, column 13: this string is never closed; add ") at the end, or write \\" for a quote inside\n'
        '(echo :text "a)\n            ^',
    ),
    (
        '(echo :text "he said "hi" there")',
        "line 1, column 23: no string has the prefix hi; "
        'put a space before the quote, or, inside a string, write \\" for it\n'
        '(echo :text "he said "hi" there")\n                      ^',
    ),
    (
        "(echo :text #.(os.getcwd))",
        "line 1, column 13: reader macros are not read here: #.; nothing is evaluated while reading\n"
        "(echo :text #.(os.getcwd))\n            ^",
    ),
    (
        "(frobnicate :text (a)",
        f"line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end\n(frobnicate :text (a)\n^",
    ),
    (
        '(:tool "echo" :args (:text))',
        f'line 1, column 1: In :args the argument :text {HAS_NO_VALUE}\n(:tool "echo" :args (:text))\n^',
    ),
    (
        '(:tool "echo" :approved t :args (:text "a"))',
        "line 1, column 1: A plist call has only :target :action :tool :args; "
        ":approved is not allowed there\n"
        '(:tool "echo" :approved t :args (:text "a"))\n^',
    ),
    (
        "(echo :text",
        f"line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end\n(echo :text\n^",
    ),
    (
        '(echo :text "a" :text "b")',
        f'line 1, column 1: In (echo …) the argument :text {IS_GIVEN_TWICE}\n(echo :text "a" :text "b")\n^',
    ),
]


@pytest.mark.parametrize(("reply", "sentence"), UNREADABLE)
def test_an_unreadable_call_is_told_with_line_column_caret_and_hint(reply: str, sentence: str) -> None:
    assert heard(reply) == []
    assert faults(reply) == [sentence]


LISP = (
    "line 1, column 1: This is Lisp, but no call of a tool; "
    "to run a program, write (eval :form (…)); to answer, write plain words"
)


@pytest.mark.parametrize(
    "reply",
    [
        "(+ 1 2)",
        "()",
        '(do (echo :text "a"))',
        f"'{HI}",
        f"[{HI}]",
        f"`{HI}`",
        f"{TICKS}lisp\n(+ 1 2)\n{TICKS}",
        "(setv x 1) (print x)",
    ],
)
def test_a_reply_of_lisp_without_a_call_is_not_taken_for_an_answer(reply: str) -> None:
    assert heard(reply) == []
    assert [fault.removeprefix("line 2").removeprefix("line 1") for fault in faults(reply)] == [
        LISP.removeprefix("line 1")
    ]


@pytest.mark.parametrize(
    ("reply", "line", "tool", "near"),
    [
        ('(wrte-file "a" "b")', 1, "wrte-file", "write-file"),
        ('(write_flie "a" "b")', 1, "write_flie", "write-file"),
        ("(ech)", 1, "ech", "echo"),
        (f'{TICKS}lisp\n(wrte-file "a" "b")\n{TICKS}', 2, "wrte-file", "write-file"),
    ],
)
def test_a_misspelt_tool_is_told_with_the_nearest(reply: str, line: int, tool: str, near: str) -> None:
    assert heard(reply) == []
    assert faults(reply) == [
        f"line {line}, column 1: Unknown tool {tool}; {DID_YOU_MEAN} {near}? write (name :key value …)"
    ]


@pytest.mark.parametrize(
    "reply",
    [
        '[echo "a"]',
        "[echo]",
        '{echo :text "a"}',
        'echo :text "a"',
        'ECHO "a"',
        'echo {"text": "a"}',
        'functions.echo :text "a"',
        'Action: echo\nAction Input: {"text": "a"}',
        'Thought: it is simple\n**Action:** echo\n**Action Input:** {"text": "a"}',
        f'{TICKS}\necho :text "a"\n{TICKS}',
    ],
)
def test_a_reply_that_is_nearly_a_call_is_not_taken_for_an_answer(reply: str) -> None:
    assert heard(reply) == []
    (fault,) = faults(reply)
    assert fault.partition(": ")[2].lower() == (
        "this names the tool echo, but does not call it; write (name :key value …)"
    )


@pytest.mark.parametrize("answer", ["[1 2 3]", "[(1, 2), (3, 4)]", "'quoted'", "42", "(42) it is", "[(a b)]"])
def test_data_is_an_answer(answer: str) -> None:
    assert faults(answer) == []


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        ("(", f"this ( {IS_NEVER_CLOSED}; add ) at the end"),
        ("(defn f [x]\n  (echo :text x)", f"this ( {IS_NEVER_CLOSED}; add ) at the end"),
    ],
)
def test_broken_lisp_is_not_taken_for_an_answer_even_if_it_is_no_call(reply: str, sentence: str) -> None:
    assert faults(reply) == [
        f"line 1, column 1: This form {CANNOT_BE_READ}: {sentence}; to answer, write plain words"
    ]


def test_a_form_300_deep_is_refused_with_its_place() -> None:
    reply = "(echo :text " + "(" * 299 + ")" * 300
    (fault,) = faults(reply)
    assert fault.startswith(f"line 1, column 112: {NESTED_DEEPER_THAN} 100; split it into smaller forms\n")
    assert heard(reply) == []


def test_a_caret_stands_under_the_fault_in_a_very_long_line() -> None:
    (fault,) = faults("(echo :text [" + "1 " * 5000 + "))")
    _, line, caret = fault.split("\n")
    assert len(line) < 100
    assert line[caret.index("^")] == ")"


def test_a_terminal_is_not_steered_by_a_fault() -> None:
    (fault,) = faults('(echo :text \x1b[2J "a"')
    assert "\x1b" not in fault


# Nothing it is given makes it raise, or takes for ever

BIG = many(10_000)  # three million characters under ``explore``
HOSTILE = {
    "an empty page": " " * BIG,
    "blank lines": "\n " * (BIG // 2),
    "prose": "some words " * (BIG // 11),
    "one unclosed form": '(echo :text "x" ' + "word " * (BIG // 5),
    "unclosed parentheses": "(" * BIG,
    "an unclosed parenthesis a line": "(\n" * (BIG // 2),
    "an unclosed call a line": "(echo :x\n" * (BIG // 9),
    "unclosed strings": '(echo :text "' * (BIG // 13),
    "an unclosed string a line": '(see "\n' * (BIG // 7),
    "unclosed bracket strings": "(echo :text #[[ " * (BIG // 16),
    "an unclosed bracket string a line": "(see #[[\n" * (BIG // 9),
    "wrong closers": "(see ]\n" * (BIG // 7),
    "closers": ")" * BIG,
    "quotes": '"' * BIG,
    "bad escapes": '(see "\\q\n' * (BIG // 9),
    "f-strings": '(f"{\n' * (BIG // 5),
    "small forms": "(a b)\n" * (BIG // 6),
    "small calls": "(echo :text 1)\n" * (BIG // 15),
    "fences": "```\n" * (BIG // 4),
    "open fences with unclosed forms": "```lisp\n(a\n" * (BIG // 11),
    "list marks": "- " * (BIG // 2),
    "stars": "*" * BIG,
    "a label": "A" * BIG + ":",
    "digits": "(echo :n " + "1" * BIG + ")",
    "a long string": '(echo :text "' + "x" * BIG + '")',
    "deep and long": ("(" * 99 + '"' + "x" * 50_000 + '"\n') * 95,
    "curly quotes": "(echo :text “a ) b\n" * (BIG // 18),
    "one text in curly quotes": "(echo :text “" + "a ) b\n" * (BIG // 6) + "”)",
    "unclosed texts in three quotes": '(echo :text """a")\n' * (BIG // 19),
    "three quotes in one form": "(echo :xs [" + '"""a"b""" ' * 30_000 + "])",
    "commas": "(echo :xs [" + "1, " * 30_000 + "])" + "," * BIG,
    "keys": "(echo " + 'a="b" ' * 30_000 + ")\n" + "(echo a=\n" * (BIG // 9),
    "braces": '{"a": ' * (BIG // 6),
    "an open brace a line": '{"a":\n' * (BIG // 6),
    "calls in JSON": '{"tool": "echo", "args": {}}\n' * (BIG // 29),
    "broken JSON a line": '{"a" 1}\n' * (BIG // 8),
    "broken calls in JSON": '{"tool": "echo", "args": {"a": }}\n' * (BIG // 34),
    "brackets": "[" * BIG,
    "an open bracket a line": "[echo(\n" * (BIG // 7),
    "data in JSON": "[" + '{"a": [1, 2]},\n' * (BIG // 16) + "{}]",
    "calls in Python's way": 'echo(text="x"); ' * (BIG // 16),
    "open calls in Python's way": 'echo(text="x\n' * (BIG // 13),
    "markers": "<tool_call>" * (BIG // 11),
    "angles": "<" * BIG,
    "examples": "For example:\n(echo :text 1)\n\n" * (BIG // 29),
    "tags": "PROBE: x\n" * (BIG // 9),
    "empty tags": "PROBE:\n" * (BIG // 7),
    "nothing but Lisp": "(a " + "(b) " * 10_000 + ")" + "(" * BIG,
}


@pytest.mark.sampled
@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", HOSTILE)
def test_megabytes_of_anything_are_read_to_an_end(shape: str) -> None:
    reading = read_reply(HOSTILE[shape], ["echo"], {"PROBE": "echo"})
    assert len(reading.calls) <= MAX_CALLS
    assert len(reading.errors) <= MAX_ERRORS + 1


def test_a_long_string_arrives_whole() -> None:
    (call,) = calls(HOSTILE["a long string"])
    assert call.form.args == {"text": "x" * BIG}


def test_a_reply_beyond_all_measure_is_not_read_at_all() -> None:
    text = HI + " " * MAX_REPLY
    assert heard(text) == []
    assert faults(text) == [
        f"line 1, column 1: The reply has {len(text)} characters, more than the {MAX_REPLY} that are read; "
        "answer in fewer words"
    ]


def test_a_reply_of_just_the_measure_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.neuro.reading.reply.MAX_REPLY", len(HI))
    assert heard(HI) == [HI]
    assert heard(f"{HI} ") == []


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (f"{HI}\n" * (MAX_CALLS + 1), f"a reply may contain at most {MAX_CALLS} calls"),
        ("(echo :x)\n" * MAX_ERRORS + HI, "there are too many errors before it"),
        ("(a b)\n" * MAX_FORMS + HI, "too many forms before it are not calls"),
        ("(a\n" * 20 + ("x" * 99 + " ") * 10_000 + f"\n{HI}", f"too much before it {CANNOT_BE_READ}"),
    ],
)
def test_a_call_that_is_left_out_is_never_left_out_in_silence(reply: str, why: str) -> None:
    assert faults(reply)[-1].endswith(f"{THE_REST_WAS_NOT_READ}; {why}")


def test_just_as_many_calls_as_are_allowed_are_read_without_a_word() -> None:
    reply = f"{HI}\n" * MAX_CALLS
    assert len(heard(reply)) == MAX_CALLS
    assert faults(reply) == []


SPICY = st.text(alphabet="()[]{}\"'`~#;:\\ \n\t-*>.|,@^ab01é\u202e\ud800\0", max_size=200)


@examples(3)
@given(
    st.text(max_size=200)
    | SPICY
    | st.lists(
        st.sampled_from(
            [
                HI,
                "(echo :text",
                "```",
                "```lisp\n",
                "```python\n",
                "\n",
                " ",
                "(",
                ")",
                '"',
                "#[[",
                "]]",
                "#.",
                "> ",
                "- ",
                "(see above)",
                '(:tool "echo")',
                "words",
                "Call:",
                "'",
                "\\",
                "(eval (+ 1",
                "~~~\n",
                '{"tool": "echo", "args": {',
                '"a": 1}}',
                "[echo(text=",
                "'x')",
                "“",
                "”",
                ",",
                "<tool_call>",
                "PROBE: x",
                "For example:\n",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_no_text_makes_it_raise_and_every_call_is_where_it_says(text: str) -> None:
    reading = read_reply(text, ["echo", "eval"], {"PROBE": "echo"})
    for call in reading.calls:
        assert text[call.start] in "([{eP"
        assert text[call.end - 1] in ")]}" or call.repairs or text[call.start] == "P"
        assert not text[call.start : call.end].endswith((" ", "\n"))
    ends = [place for call in reading.calls for place in (call.start, call.end)]
    assert ends == sorted(ends)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(max_size=30).filter(lambda text: text.isprintable() or max(text) < "\ud800")
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc-é ", max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FORMS = st.builds(
    CallForm,
    st.sampled_from(["echo", "eval", "read-file"]),
    st.dictionaries(st.sampled_from(["text", "path", "limit", "pattern"]), VALUES, max_size=3),
)
PROSE = st.text(alphabet=string.ascii_letters + string.digits + " .,:!?*-é", max_size=60)


@examples(2)
@given(st.lists(FORMS, max_size=6), st.lists(PROSE, min_size=7, max_size=7), st.booleans())
def test_calls_printed_between_any_lines_of_prose_are_found_in_order_and_equal(
    forms: list[CallForm], prose: list[str], fenced: bool
) -> None:
    written = [f"```lisp\n{form}\n```" if fenced else str(form) for form in forms]
    reply = "\n".join(part for pair in zip(prose, [*written, *[""] * 7], strict=False) for part in pair)
    assert [call.form for call in calls(reply, ["echo", "eval", "read-file"])] == forms
