"""Call forms: whatever a call is spelt like, it is one form with one text and one digest."""

from __future__ import annotations

import json
import math
from typing import Any

import hy.models as m
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sentences import HAS_NO_VALUE, IS_GIVEN_TWICE, NESTED_TOO_DEEPLY
from words import complaint, form

from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import (
    CallForm,
    canonical,
    from_json,
    from_model,
    is_plist_call,
    kebab,
    plist,
    to_json,
    too_deep,
)
from quoth.tools.lisp.printer import (
    _SIMPLE_CALL,
    Code,
    _print_code,
    _print_read,
    pretty,
    print_string,
    print_value,
    show,
    to_value,
)
from quoth.tools.lisp.reader import ReaderLimits, ReadError, read_one

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,4})?", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=30)  # lone surrogates too
CLEAN_TEXTS = st.text(max_size=30)
NUMBERS = st.integers() | st.integers(-(10**900), 10**900) | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | CLEAN_TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(CLEAN_TEXTS, inner, max_size=4),
    max_leaves=12,
)
ARGS = st.dictionaries(NAMES, VALUES, max_size=4)
FORMS = st.builds(CallForm, NAMES, ARGS)


# Round trips


@given(FORMS, st.lists(VALUES, max_size=3))
def test_the_canonical_text_reads_back_as_the_same_form(call: CallForm, positional: list[Any]) -> None:
    whole = CallForm(call.tool, call.args, tuple(positional))
    again = form(canonical(whole))
    assert (again.tool, dict(again.args), again.positional) == (call.tool, dict(call.args), tuple(positional))
    assert canonical(again) == canonical(whole)


@given(st.from_regex(_SIMPLE_CALL, fullmatch=True) | FORMS.map(canonical))
def test_a_simple_call_is_printed_without_reading_it_as_if_it_were_read(text: str) -> None:
    assert _print_code(text) == _print_read(text)


@pytest.mark.parametrize("name", ["quote", "list", "nil", "unpack-iterable", "do"])
@pytest.mark.parametrize("rest", ["", " :a 1", ' "x"', " x", ' :a "(" :b -5'])
def test_a_call_is_printed_as_if_it_were_read_whatever_its_name(name: str, rest: str) -> None:
    assert _print_code(f"({name}{rest})") == _print_read(f"({name}{rest})")


@pytest.mark.parametrize("text", ['(f :a "x\\")', "(quote x)", '(f :a "\x00")', "(f :a 1", "(f) (g)"])
def test_no_other_text_is_taken_for_a_simple_call(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("quoth.tools.lisp.printer._print_read", lambda read: f"read {read}")
    assert _print_code(text) == f"read {text}"
    assert _print_code("(f :a 1)") == "(f :a 1)"


@given(FORMS)
def test_the_plist_reads_back_as_the_same_form(call: CallForm) -> None:
    assert form(plist(call)) == call


@given(FORMS)
def test_json_brings_back_the_same_form(call: CallForm) -> None:
    assert from_json(json.loads(json.dumps(to_json(call)))) == call
    assert from_json({"name": call.tool, "arguments": json.dumps(dict(call.args))}) == call


@given(TEXTS)
def test_every_text_prints_as_lisp_and_has_no_character_a_terminal_obeys(text: str) -> None:
    printed = print_string(text)
    assert printed[1:-1].isprintable()
    printed.encode()
    if text.isascii() or text.encode("utf-8", "ignore").decode() == text:
        assert str(read_one(printed)) == text
    else:
        with pytest.raises(ReadError):  # a lone surrogate is nobody's text
            read_one(printed)


@given(st.binary(max_size=30))
def test_bytes_print_as_lisp_that_reads_back(data: bytes) -> None:
    assert bytes(read_one(print_value(data))) == data
    assert show(m.Bytes(data)) == print_value(data)


@pytest.mark.parametrize(
    "value",
    [0, -1, 2**64, 10**999, 0.1, -0.0, 1e300, 5e-324, 1.5e-7, True, False, None, "", "a\0b\x1b[0m", "é🙂"],
)
def test_odd_values_come_back_from_their_text(value: Any) -> None:
    again = to_value(read_one(print_value(value), ReaderLimits(max_digits=1000)))
    assert again == value
    assert repr(again) == repr(value)


@pytest.mark.parametrize(("value", "text"), [(math.nan, "NaN"), (math.inf, "Inf"), (-math.inf, "-Inf")])
def test_numbers_that_json_has_not_come_back_too(value: float, text: str) -> None:
    assert print_value(value) == text
    assert repr(to_value(read_one(text))) == repr(value)


def test_a_number_too_long_for_decimal_still_has_a_text_and_a_digest() -> None:
    call = CallForm("echo", {"text": 10**5000})
    assert canonical(call).startswith("(echo :text 0x")
    assert len(call.digest) == 64


def test_data_without_a_bottom_still_has_a_text_and_a_digest() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert "…" in canonical(CallForm("echo", {"text": endless}))
    assert len(CallForm("echo", {"text": endless}).digest) == 64


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("depth", "deep"), [(0, False), (1, False), (100, False), (101, True), (50_000, True)]
)
def test_depth_is_measured_without_recursion(depth: int, deep: bool) -> None:
    assert too_deep(nested(depth)) is deep
    assert too_deep({"a": nested(max(0, depth - 1))}) is (depth > 100)


@given(st.text(max_size=20))
def test_kebab_is_its_own_fixed_point(name: str) -> None:
    assert kebab(kebab(name)) == kebab(name)


# Digest


@given(ARGS, st.randoms())
def test_the_digest_knows_no_order(args: dict[str, Any], chance: Any) -> None:
    shuffled = list(args.items())
    chance.shuffle(shuffled)
    assert CallForm("x", args).digest == CallForm("x", dict(shuffled)).digest


SPELLINGS = [
    '(grep-search :pattern "a" :limit 3)',
    '(grep-search :limit 3 :pattern "a")',
    '(Grep_Search :LIMIT 3 :Pattern "a")',
    '(GREP-SEARCH   :limit 0x3\n :pattern "\\x61")  ; a comment',
    '(:target :tool :action :call :tool "grep-search" :args (:pattern "a" :limit 3))',
    '(:TARGET :TOOL :ACTION :CALL :TOOL "grep-search" :ARGS (:PATTERN "a" :LIMIT 3))',
    '(:tool grep-search :args (:pattern "a" :limit 3))',
    '(:args (:pattern "a" :limit 3) :tool :grep-search)',
    '(:tool "grep_search" :args ((:pattern "a" :limit 3)))',
    '(:tool "grep-search" :args \'(:pattern "a" :limit 3))',
    '(:tool "grep-search" :args {"pattern" "a" :limit 3})',
    '(:type :request :target :tool :action :call :tool "grep-search" :args (:pattern "a" :limit 3))',
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_every_spelling_is_one_form_with_one_digest(text: str) -> None:
    assert form(text).digest == CallForm("grep-search", {"pattern": "a", "limit": 3}).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('(echo :text "a")', '(echo :text "b")'),
        ('(echo :text "1")', "(echo :text 1)"),
        ("(echo :text 1)", "(echo :text 1.0)"),
        ("(echo :text True)", "(echo :text 1)"),
        ('(echo :text "None")', "(echo :text None)"),
        ("(echo :text [])", "(echo :text {})"),
        ('(echo :text ["a" "b"])', '(echo :text ["a\\" \\"b"])'),
        ('(echo "a")', '(echo :text "a")'),
        ("(eval :form (+ 1 2))", '(eval :form "(+ 1 2)")'),
    ],
)
def test_what_differs_has_another_digest(one: str, other: str) -> None:
    assert form(one).digest != form(other).digest


# Spellings of values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("NIL", None),
        ("None", None),
        ("null", None),
        ("t", True),
        ("T", True),
        ("true", True),
        ("True", True),
        ("false", False),
        ("False", False),
        (":fast", "fast"),
        ("[1 [2] {}]", [1, [2], {}]),
        ("#(1 2)", [1, 2]),
        ('{"a" 1  :b 2  c 3  4 5}', {"a": 1, "b": 2, "c": 3, 4: 5}),
        ("'name", "name"),
        ("'NIL", None),
    ],
)
def test_literals_become_plain_data(text: str, value: Any) -> None:
    found = to_value(read_one(text))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text", ["x", "a.b", "(+ 1 2)", "(do-mac 1)", 'f"{x}"', 'b"x"', "1j", "#{1}", "`(a ~b)"]
)
def test_what_is_no_data_stays_a_text_and_is_never_evaluated(text: str) -> None:
    found = to_value(read_one(text))
    assert isinstance(found, Code)
    assert show(read_one(str(found))) == show(read_one(text))


@pytest.mark.parametrize(
    ("text", "data"),
    [("'(1 2)", [1, 2]), ("(list 1 2)", [1, 2]), ("'(a (b))", ["a", ["b"]]), ("(list)", []), ("'()", [])],
)
def test_a_quoted_list_is_code_that_also_says_its_data(text: str, data: list[Any]) -> None:
    found = to_value(read_one(text))
    assert isinstance(found, Code)
    assert found.data == data


def test_a_form_prints_as_it_was_written_and_canonically_in_order() -> None:
    call = form('(grep-search :pattern "a" :limit 3)')
    assert str(call) == '(grep-search :pattern "a" :limit 3)'
    assert canonical(call) == '(grep-search :limit 3 :pattern "a")'


def test_a_pretty_form_reads_back_the_same() -> None:
    text = '(def-cognitive-tool probe "A tool." :parameters [path {:doc "File"}] :body (do (f path) 1))'
    model = read_one(text)
    shown = pretty(model, width=40)
    assert "\n" in shown
    assert read_one(shown) == model


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("(:tool x)", True),
        ("(:A 1 :TOOL x)", True),
        ("(:a :tool)", False),
        ("(echo :tool x)", False),
        ("()", False),
    ],
)
def test_a_plist_call_is_told_from_other_lists(text: str, yes: bool) -> None:
    assert is_plist_call(read_one(text)) is yes


# Failures

EXAMPLE = '(echo :text "hi")'
FAILURES = [
    ("42", f"A call is a form such as {EXAMPLE}; this is 42."),
    ('"x"', f'A call is a form such as {EXAMPLE}; this is "x".'),
    ("[echo]", f"A call is a form such as {EXAMPLE}; this is [echo]."),
    ("()", f"() is empty; a call is a form such as {EXAMPLE}."),
    ("(1 2)", "A call begins with the name of a tool; this begins with 1."),
    ('("echo" 1)', 'A call begins with the name of a tool; this begins with "echo".'),
    ("((f) 1)", "A call begins with the name of a tool; this begins with (f)."),
    ("(echo :text)", f"In (echo …) the argument :text {HAS_NO_VALUE}."),
    ("(echo :text 1 :TEXT 2)", f"In (echo …) the argument :text {IS_GIVEN_TWICE}."),
    ("(echo :a_b 1 :a-b 2)", f"In (echo …) the argument :a-b {IS_GIVEN_TWICE}."),
    ("(echo :x {1 2 3})", "{1 2 3} is not a dictionary: it has a key without a value."),
    ("(echo :x {[1] 2})", "[1] cannot be a key of a dictionary."),
    ("(:tool)", "A plist consists of pairs; this one has a key without a value."),
    ("(:tool x 1 2)", "In a plist the first item of each pair must be a keyword, not 1."),
    ("(:tool x :Tool y)", f":tool {IS_GIVEN_TWICE} in the plist."),
    ("(:args (:x 1))", 'A plist call names its tool: (:tool "echo" :args (:text "hi")).'),
    ("(:tool 1)", "A name is expected instead of 1."),
    ("(:tool (f))", "A name is expected instead of (f)."),
    ("(:tool x :target :emacs)", ":target :emacs is not a tool call; write :tool."),
    ("(:tool x :action :run)", ":action :run is not a tool call; write :call."),
    ("(:tool x :type :event)", ":type :event is not a tool call; write :request."),
    ("(:tool x :args 1)", ":args must be the arguments in parentheses, (:name value …), not 1."),
    ("(:tool x :args [1])", ":args must be the arguments in parentheses, (:name value …), not [1]."),
    ("(:tool x :args (:a))", f"In :args the argument :a {HAS_NO_VALUE}."),
    ("(:tool x :args (:a 1 :A 2))", f"In :args the argument :a {IS_GIVEN_TWICE}."),
    ('(:tool x :args {"a_b" 1 "a-b" 2})', f"In :args the argument :a-b {IS_GIVEN_TWICE}."),
]
MARKS = [
    "approved t",
    'user "root"',
    "depth 0",
    "permission :admin",
    'session "s"',
    "route :repl",
    "parent nil",
]


@pytest.mark.parametrize(("text", "sentence"), FAILURES)
def test_what_is_no_call_is_told_in_a_sentence(text: str, sentence: str) -> None:
    assert complaint(InvalidCallError, lambda: from_model(read_one(text))) == sentence


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_trust_in_the_envelope_is_an_error(mark: str) -> None:
    said = complaint(InvalidCallError, lambda: form(f"(:target :tool :tool echo :{mark} :args (:text 1))"))
    assert (
        said == f"A plist call has only :target :action :tool :args; :{mark.split()[0]} is not allowed there."
    )


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_trust_among_the_arguments_is_an_argument(mark: str) -> None:
    name = mark.split()[0]
    assert set(form(f"(echo :{mark})").args) == {name}
    assert set(form(f"(:tool echo :args (:{mark}))").args) == {name}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], 'A call in JSON must be an object: {"tool": "echo", "args": {"text": "hi"}}.'),
        ({}, 'A call in JSON must name its tool: {"tool": "echo", "args": {…}}.'),
        ({"tool": 3}, 'A call in JSON must name its tool: {"tool": "echo", "args": {…}}.'),
        ({"tool": "x", "args": [1]}, "The arguments of x must be an object with a name for each value."),
        ({"tool": "x", "args": "[1]"}, "The arguments of x must be an object with a name for each value."),
        (
            {"tool": "x", "args": "["},
            "The arguments of x are not JSON: Expecting value: line 1 column 2 (char 1).",
        ),
        ({"tool": "x", "args": "[" * 100_000}, f"The arguments of x are {NESTED_TOO_DEEPLY}."),
        (
            {"tool": "x", "args": '{"a": ["\\ud800"]}'},
            "A call contains an invalid character (an unpaired surrogate).",
        ),
        ({"tool": "x\ud800"}, "A call contains an invalid character (an unpaired surrogate)."),
        ({"tool": "x", "positional": "abc"}, "The positional arguments of x must be a list."),
        ({"tool": "x", "args": {"a_b": 1, "a-b": 2}}, f"In (x …) the argument :a-b {IS_GIVEN_TWICE}."),
    ],
)
def test_json_that_is_no_call_is_told_in_a_sentence(data: Any, sentence: str) -> None:
    assert complaint(InvalidCallError, lambda: from_json(data)) == sentence


def test_a_plist_cannot_hold_arguments_without_names() -> None:
    said = complaint(InvalidCallError, lambda: plist(form('(echo "a")')))
    assert said == '(echo "a") has arguments without names; a plist needs all names.'


@examples(2)
@given(st.text(alphabet="()[]{}'`~:\"\\ aT1.#-", max_size=30))
def test_any_text_is_a_form_or_one_of_our_errors(text: str) -> None:
    try:
        call = form(text)
    except (InvalidCallError, ReadError) as error:
        said = str(error).strip()
    else:
        said = canonical(call)
        assert form(said).digest == call.digest
    assert said


# Names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uber.ride", '(uber.ride :loc "x")'),
        ("a.b-c.d1", '(a.b-c.d1 :loc "x")'),
        ("files/read", '(files/read :loc "x")'),
        ("files.read/all", '(files.read/all :loc "x")'),
        ("mcp--files--read", '(mcp--files--read :loc "x")'),
        ("math.2d", '(:tool "math.2d" :args (:loc "x"))'),
        ("files:read", '(:tool "files:read" :args (:loc "x"))'),
        ("read file", '(:tool "read file" :args (:loc "x"))'),
        ("a..b", '(:tool "a..b" :args (:loc "x"))'),
        ("", '(:tool "" :args (:loc "x"))'),
        ('") (eval', '(:tool "\\") (eval" :args (:loc "x"))'),
    ],
)
def test_a_form_that_is_printed_is_read_whatever_its_name(name: str, text: str) -> None:
    form = CallForm(name, {"loc": "x"})
    assert str(form) == text
    assert from_model(read_one(text)) == form


@given(st.text(max_size=12), st.dictionaries(st.text(max_size=8), st.integers(), max_size=3))
def test_any_name_of_a_tool_and_of_its_arguments_is_read_as_it_was(name: str, args: dict[str, int]) -> None:
    form = CallForm(kebab(name), {kebab(key): value for key, value in args.items()})
    assert from_model(read_one(str(form))) == form
