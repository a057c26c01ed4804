"""Spellings: however a call is written, it is one form; what was mended is said, what is doubtful is left."""

from __future__ import annotations

import json

import pytest
from sentences import CANNOT_BE_READ, IS_NEVER_CLOSED, IS_NOT_A_VALUE, THE_REST_WAS_NOT_READ
from words import calls, faults, heard

from quoth.neuro.reading import forms, literals, repair
from quoth.neuro.reading.reply import read_reply
from quoth.tools.lisp.forms import CallForm

TICKS = "```"
KNOWN = ["echo", "eval", "grep-search", "write-file"]
WANTED = CallForm("grep-search", {"pattern": "a", "limit": 3})
TAIL = literals.tail_repair
ARGS = '{"pattern": "a", "limit": 3}'
TEXT_ARGS = r'"{\"pattern\": \"a\", \"limit\": 3}"'

# text, what was mended
SPELLINGS = [
    # Lisp
    ('(grep-search :pattern "a" :limit 3)', ()),
    ('(GREP_SEARCH :LIMIT 3 :PATTERN "a")', ()),
    ('(:target :tool :action :call :tool "grep-search" :args (:pattern "a" :limit 3))', ()),
    ('(:TARGET :TOOL :ACTION :CALL :TOOL "GREP-SEARCH" :ARGS (:PATTERN "a" :LIMIT 3))', ()),
    ('(:TOOL GREP-SEARCH :ARGS \'(:PATTERN "a" :LIMIT 3))', ()),
    (f'(:tool "grep-search" :args {ARGS})', ()),
    ('(grep-search pattern="a" limit=3)', (repair.KEYS,)),
    ('(grep-search :pattern="a" :limit=3)', (repair.KEYS,)),
    ('(grep-search pattern: "a" limit: 3)', (repair.KEYS,)),
    ('(:tool "grep-search" :args (pattern="a" limit=3))', (repair.KEYS,)),
    ('(grep-search :pattern "a", :limit 3)', (repair.COMMAS,)),
    ('(grep-search, pattern="a", limit=3,)', (repair.COMMAS, repair.KEYS)),
    ("(grep-search :pattern “a” :limit 3)", (literals.SMART_QUOTES,)),
    ("(grep-search :pattern „a“ :limit 3)", (literals.SMART_QUOTES,)),
    ("(grep-search :pattern 'a' :limit 3)", (literals.SINGLE_QUOTES,)),
    ("(grep-search :pattern “a”, :limit 3", (literals.SMART_QUOTES, repair.COMMAS, TAIL(")"))),
    ('(grep-search :pattern """a""" :limit 3)', (repair.TRIPLES,)),
    ("(grep-search :pattern #'a :limit 3)", (repair.SHARPS,)),
    ('(grep-search :pattern #p"a" :limit 3)', (repair.SHARPS,)),
    (
        "(:tool \"grep-search\" :args {'pattern': 'a', 'limit': 3,})",
        (literals.SINGLE_QUOTES, literals.TRAILING_COMMA),
    ),
    ('(functions.grep-search :pattern "a" :limit 3)', ()),
    ('(functions.grep_search :pattern "a" :limit 3', (TAIL(")"),)),
    (f'{{"name": "functions.grep_search", "arguments": {ARGS}}}', ()),
    ('[grep-search :pattern "a" :limit 3]', (forms.BRACKETS,)),
    ('(grep-search\u00a0:pattern\u00a0"a" :limit\u202f3)', (repair.SPACES,)),
    ('\ufeff(grep-search :pattern "a" :limit 3)', ()),
    ('(grep-search :pattern "a" :limit 3', (TAIL(")"),)),
    ('(grep-search :pattern "a" :limit 3 ; the first\n', (TAIL(")"),)),
    ('(:tool "grep-search" :args (:pattern "a" :limit 3)', (TAIL(")"),)),
    ('(:tool "grep-search" :args (:pattern "a" :limit 3', (TAIL("))"),)),
    (f'{TICKS}lisp\n(grep-search :pattern "a" :limit 3\n{TICKS}\nThat is all (so far).', (TAIL(")"),)),
    # JSON
    (f'{{"tool": "grep-search", "args": {ARGS}}}', ()),
    (f'{{"tool":"grep_search","args":{ARGS.replace(" ", "")}}}', ()),
    (f'{{"name": "grep-search", "arguments": {ARGS}}}', ()),
    (f'{{"name": "grep-search", "arguments": {TEXT_ARGS}}}', ()),
    (json.dumps({"name": "grep-search", "arguments": json.dumps(json.dumps(json.loads(ARGS)))}), ()),
    (f'{{"name": "grep-search", "parameters": {ARGS}}}', ()),
    (
        '{"id": "c1", "type": "function", "function": '
        f'{{"name": "grep-search", "arguments": {TEXT_ARGS}}}}}',
        (),
    ),
    (f'{{"type": "tool_use", "id": "c1", "name": "grep-search", "input": {ARGS}}}', ()),
    (f'{{"action": "grep-search", "action_input": {ARGS}}}', ()),
    (f'{{"type": "request", "target": "tool", "action": "call", "tool": "grep-search", "args": {ARGS}}}', ()),
    (f'[{{"name": "grep-search", "arguments": {ARGS}}}]', ()),
    (f'{{"tool_calls": [{{"function": {{"name": "grep-search", "arguments": {ARGS}}}}}]}}', ()),
    ('{"tool": "grep-search", "pattern": "a", "limit": 3}', ()),
    (f'{{\n  "tool": "grep-search",\n  "args": {ARGS}\n}}', ()),
    (f'{TICKS}json\n{{"tool": "grep-search", "args": {ARGS}}}\n{TICKS}', ()),
    (f'{TICKS}\n{{"tool": "grep-search", "args": {ARGS}}}\n{TICKS}', ()),
    (f'{TICKS}json {{"tool": "grep-search", "args": {ARGS}}}{TICKS}', ()),
    (f'<tool_call>\n{{"name": "grep-search", "arguments": {ARGS}}}\n</tool_call>', ()),
    (f'Then. <tool_call>{{"name": "grep-search", "arguments": {ARGS}}}</tool_call>', ()),
    (f'<|python_tag|>{{"name": "grep-search", "parameters": {ARGS}}}', ()),
    (f'[TOOL_CALLS] [{{"name": "grep-search", "arguments": {ARGS}}}]', ()),
    ('<tool_call>\n(grep-search :pattern "a" :limit 3)\n</tool_call>', ()),
    ('{"tool": "grep-search", "args": {"pattern": "a", "limit": 3,},}', (literals.TRAILING_COMMA,)),
    ("{'tool': 'grep-search', 'args': {'pattern': 'a', 'limit': 3}}", (literals.SINGLE_QUOTES,)),
    ("{“tool”: “grep-search”, “args”: {“pattern”: “a”, “limit”: 3}}", (literals.SMART_QUOTES,)),
    ('{tool: "grep-search", args: {pattern: "a", limit: 3}}', (literals.BARE_KEYS,)),
    (f'{{"tool": "grep-search", "args": {ARGS}', (TAIL("}"),)),
    (f'{TICKS}json\n{{"tool": "grep-search", "args": {ARGS[:-1]}\n{TICKS}', (TAIL("}}"),)),
    # Python
    ('grep_search(pattern="a", limit=3)', ()),
    ("grep-search(pattern='a', limit=3)", ()),
    ('grep_search(\n    pattern="""a""",\n    limit=3,\n)', ()),
    ('[grep_search(pattern="a", limit=3)]', ()),
    ('Action: grep_search(pattern="a", limit=3)', ()),
    (f'{TICKS}tool_code\ngrep_search(pattern="a", limit=3)\n{TICKS}', ()),
    ("grep_search(pattern=“a”, limit=3)", (literals.SMART_QUOTES,)),
    ('grep_search(pattern="a", limit=3', (TAIL(")"),)),
]


@pytest.mark.parametrize(("text", "repairs"), SPELLINGS)
def test_every_spelling_is_the_same_form_and_says_what_was_mended(
    text: str, repairs: tuple[str, ...]
) -> None:
    reading = read_reply(text, KNOWN)
    assert [call.form for call in reading.calls] == [WANTED]
    assert reading.calls[0].form.digest == WANTED.digest
    assert reading.calls[0].repairs == repairs
    assert reading.errors == []


def test_the_repairs_are_in_the_json_of_a_reading_only_when_there_are_any() -> None:
    plain, mended = read_reply('(echo :text "a")\n(echo :text “b”)', KNOWN).to_json()["forms"]
    assert "repairs" not in plain
    assert mended["repairs"] == ["Curly quotes were read as straight ones."]


# Values

VALUES = [
    ('(echo :x {"a": 1, "b": [true, null, {"c": -1.5}]})', {"a": 1, "b": [True, None, {"c": -1.5}]}),
    ('(echo :x {"a":1})', {"a": 1}),
    ('(echo :x {"a":true,"b":"c"})', {"a": True, "b": "c"}),
    ('(echo :x {"a" : 1})', {"a": 1}),
    ("(echo :x {'a': 'b'})", {"a": "b"}),
    ("(echo :x {a: 1})", {"a": 1}),
    ('(echo :x {"a" 1 :b 2})', {"a": 1, "b": 2}),
    ('(echo :x {"a" :b})', {"a": "b"}),
    ('(echo :x ["a", "b"])', ["a", "b"]),
    ('(echo :x ["a", "b",])', ["a", "b"]),
    ("(echo :x [1,2,3])", [1, 2, 3]),
    ("(echo :x [1, [2, 3]])", [1, [2, 3]]),
    ("(echo :x 1,000)", 1000),
    ("(echo :x NIL)", None),
    ("(echo :x T)", True),
    ("(echo :x :FAST)", "FAST"),
    ("(echo :x 'name)", "name"),
    ("(echo :x #'car)", "car"),
    ("(echo :x a=b.txt)", "a=b.txt"),
    ("(echo :x TODO:)", "TODO:"),
    ('(echo :x """a (b) "c" \\n;d\ne""")', 'a (b) "c" \n;d\ne'),
    ('(echo :x r"""a "b" \\d""")', 'a "b" \\d'),
    ('(echo :x ["""a""" """b\nc"""])', ["a", "b\nc"]),
    ('(echo :x """""")', ""),
    ('(echo :x #P"/tmp/a")', "/tmp/a"),
    ('(echo :x “say "hi", ) and (”)', 'say "hi", ) and ('),
    ("(echo :x ‘don’t’)", "don’t"),
    ('(echo :x "a, b = c: “d”")', "a, b = c: “d”"),
    ("(echo :x #[[a, “b” ) x=1]])", "a, “b” ) x=1"),
    ('(echo :x ["a" ; one, two\n "b"])', ["a", "b"]),
    ("echo(x={\"a\": [1, (2, 3)], 'b': None})", {"a": [1, [2, 3]], "b": None}),
    (r"echo(x='it\'s \u00e9 \x41 \d')", r"it's é A \d"),
    (r"echo(x=r'\d\n')", r"\d\n"),
    ("echo(x=-1.5e3)", -1500.0),
    ("echo(x=0xFF)", 255),
    ('{"tool": "echo", "args": {"x": "\\ud83d\\ude42\\/"}}', "🙂/"),
    ('{"tool": "echo", "args": {"x": "007"}}', "007"),
    ('{"tool": "echo", "args": {"x": ""}}', ""),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_value_arrives_as_it_was_meant(text: str, value: object) -> None:
    (call,) = calls(text)
    assert call.form.args == {"x": value}
    assert repr(call.form.args["x"]) == repr(value)
    assert faults(text) == []


def test_a_call_inside_a_call_is_an_expression_which_is_not_run_here() -> None:
    for text in ('(echo :text (read-file :path "a"))', 'echo(text=read_file(path="a"))'):
        assert heard(text) == ['(echo :text (read-file :path "a"))']


def test_positional_arguments_keep_their_order() -> None:
    for text in ('(echo "a" 2)', 'echo("a", 2)', '{"tool": "echo", "args": {}, "positional": ["a", 2]}'):
        assert [call.form.positional for call in calls(text)] == [("a", 2)]


def test_a_program_keeps_its_own_commas_and_signs() -> None:
    text = '(eval :form (do (setv x= 1) `(a ,b) (print #(1, 2) {"a" :b})))'
    assert heard(text) == ['(eval :form (do (setv x= 1) `(a ,b) (print #(1 2) {"a" :b})))']
    assert calls(text)[0].repairs == ()


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("(grep-search :pattern a=b.txt :limit 3)", {"pattern": "a=b.txt", "limit": 3}),
        ("(grep-search :old x=1 :new x=2 :path “f”)", {"old": "x=1", "new": "x=2", "path": "f"}),
        ('(grep-search :pattern TODO: :path "src")', {"pattern": "TODO:", "path": "src"}),
        ("(grep-search :old [1] new=2)", {"old": [1], "new": 2}),
        ("(grep-search :old “a” new=2)", {"old": "a", "new": 2}),
        ('(grep-search :old """a""" new=2)', {"old": "a", "new": 2}),
        ('(grep-search :old {"a": 1} new=2)', {"old": {"a": 1}, "new": 2}),
    ],
)
def test_a_key_is_none_where_a_value_is_due(text: str, args: dict[str, object]) -> None:
    (call,) = calls(text, KNOWN)
    assert call.form.args == args


# Several in one

SEVERAL = [
    '[{"name": "echo", "arguments": {"text": "1"}}, {"name": "echo", "arguments": {"text": "2"}}]',
    '{"name": "echo", "arguments": {"text": "1"}}\n{"name": "echo", "arguments": {"text": "2"}}',
    '{"name": "echo", "arguments": {"text": "1"}}, {"name": "echo", "arguments": {"text": "2"}}',
    '<tool_call>{"name": "echo", "arguments": {"text": "1"}}</tool_call>'
    '<tool_call>{"name": "echo", "arguments": {"text": "2"}}</tool_call>',
    '<tool_call>\n{"name": "echo", "arguments": {"text": "1"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "echo", "arguments": {"text": "2"}}\n</tool_call>',
    '<tool_call>(echo :text "1")</tool_call><tool_call>(echo :text "2")</tool_call>',
    '<tool_call>(echo :text "1")</tool_call> <tool_call>\n(echo :text "2")\n</tool_call>',
    '[echo(text="1"), echo(text="2")]',
    'echo(text="1"); echo(text="2")',
    'echo(text="1")\necho(text="2")',
    '(echo :text "1")(:tool echo :args (:text "2"))',
    '(echo :text "1")\n{"tool": "echo", "args": {"text": "2"}}',
]


@pytest.mark.parametrize("text", SEVERAL)
def test_several_calls_come_in_the_order_of_the_text_each_at_its_place(text: str) -> None:
    found = calls(text)
    assert [str(call.form) for call in found] == ['(echo :text "1")', '(echo :text "2")']
    assert all(str(number) in text[call.start : call.end] for number, call in enumerate(found, 1))
    assert read_reply(text, KNOWN).text == ""


def test_the_place_of_a_call_is_that_of_its_first_character() -> None:
    call = '{"name": "echo", "arguments": {}}'
    text = f"é:\r\n  - {call}\n[{call},\n  {call}]"
    found = calls(text)
    assert [(call.line, call.column) for call in found] == [(2, 5), (3, 2), (4, 3)]
    assert [text[found.start : found.end] for found in found] == [call] * 3
    tail = calls('one\n (echo :text "a" \n')[0]
    assert (tail.line, tail.column, tail.start, tail.end) == (2, 2, 5, 20)


# What is no call

PROSE = [
    '{"name": "Ann", "age": 7}',
    '{"name": "echo"}',
    '{"name": "Ann", "parameters": {"a": 1}}',
    '{"name": "echo", "description": "Says it.", "parameters": {"type": "object"}}',
    '{"type": "function", "function": {"name": "echo", "description": "Says it.", "parameters": {}}}',
    '[{"name": "echo", "arguments": {}}, {"name": "Ann"}]',
    '{"text": "(echo :text 1)", "tool": 3}',
    '{"log": "\n(echo :text 1)\n"}',
    f'{TICKS}python\necho(text="a")\n{TICKS}',
    f'{TICKS}yaml\n{{"tool": "echo", "args": {{}}}}\n{TICKS}',
    'Use `{"tool": "echo", "args": {}}` for it.',
    'It is {"tool": "echo", "args": {}} in JSON.',
    '> {"tool": "echo", "args": {}}',
    'The tag `<tool_call>{"name": "echo", "arguments": {}}</tool_call>` is for calls.',
    '> <tool_call>{"name": "echo", "arguments": {}}</tool_call>',
    "echo(text) says the text.",
    "echo(text=...) says the text.",
    'echo(text="\n(echo :text 1)\n") says it.',
    'See:\n[echo "\n(echo :text 1)\n"]',
    'echo "a" says a.',
    'echo :text "a" -> ok: a',  # as results are told
    "echo",
    f'{TICKS}bash\necho "a"\n{TICKS}',
    'echo(text="a") says a.',
    'frobnicate(what="x")',
    "[1] see there\n[echo] is a name",
    "- [ ] a task (open)\n- [x] another",
    "[see also (this]",
    "{curly} words",
]


@pytest.mark.parametrize("text", PROSE)
def test_what_could_be_data_or_prose_is_no_call(text: str) -> None:
    assert heard(text) == []
    assert faults(text) == []


EXAMPLES = [
    "For example:\n{}",
    "For example:\n\n{}",
    "You could, for instance, write:\n{}",
    "**Example:**\n{}",
    "Here is an example of a call:\n{}",
    "You can also use:\n{}",
    "You wrote:\n{}",
    "The user said:\n{}",
    "Your message was:\n{}",
    "For example:\n- {}",
    "For example:\n{0}\n{0}",
    "For example:\n```lisp\n{}\n```",
    "You can write:\n\n```\n{}\n```",
    "To say it, you can write:\n{}",
    "In Lisp you could also say:\n{}",
    "As you wrote:\n{}",
    "Note: for example:\n{}",
    "Done. For example, I will say:\n{}",
    "Example call:\n{}",
    "### Example usage:\n{}",
    "Example 1:\n{}",
    "Here are some examples:\n{}",
    "Usage:\n{}",
    "Syntax:\n```lisp\n{}\n```",
    "A call looks like this:\n{}",
]


@pytest.mark.parametrize("text", EXAMPLES)
@pytest.mark.parametrize(
    "call", ['(echo :text "hi")', '{"tool": "echo", "args": {"text": "hi"}}', 'echo(text="hi")']
)
def test_what_is_announced_as_an_example_or_as_a_quotation_is_no_call(text: str, call: str) -> None:
    assert heard(text.format(call)) == []
    assert faults(text.format(call)) == []


@pytest.mark.parametrize(
    "text",
    [
        "For example it is this. Now:\n{}",
        "I take the example file:\nIt is short.\n{}",
        "For example:\n(echo :text 1)\n\n{}",
        "Next I will call:\n{}",
        "As you asked, I search:\n{}",
        "To answer your question, I look into the examples folder:\n{}",
        "You said it is short. So I read it:\n{}",
        "It looks like I have to search first:\n{}",
        "I will write a script that you can run:\n{}",
        "I will look for an example of its use:\n{}",
        "I'll add the examples:\n{}",
        "I'll fix the bug in the code you sent:\n{}",
        "I will save your words:\n{}",
        "First, let me see an example:\n{}",
        "For the bug you sent:\n{}",
        "Here is the tool call you should run:\n{}",
        "Adding the examples:\n{}",
        "I will make a file that looks like this:\n{}",
        "Call:\n{}",
        "Next step:\n{}",
    ],
)
def test_words_like_example_elsewhere_do_not_make_a_call_an_example(text: str) -> None:
    assert heard(text.format('(echo :text "hi")')) == ['(echo :text "hi")']


# What is not mended, because it could be meant in two ways, or may not be whole

DOUBTFUL = [
    '(echo :text "a',
    "(echo :text “a)",
    '(echo :text """a")',
    '(grep-search :pattern a="b" :path "c")',
    "(echo :text",
    "(echo",
    "(echo :items [1 2 :limit 3",
    '(write-file :path "a" :text "b"; :append True)',
    '(write-file :path "a" :text "b" ;; mode append :overwrite False)',
    '(write-file :path "a" :text "b", ; the last one)',
    '(write-file :path "a" :text "b" ; an argument\n ; :overwrite False',
    '(:tool "echo" :args (:text "a" :action :call',
    "(eval :form (do (f x) (g y)",
    "(eval (+ 1",
    '(echo :text "a"\n\nThat is all.',
    '(frobnicate :text "a"',
    "(echo :text [1 2)",
    '(echo ,, :text [ "a")',
    '{"tool": "echo", "args": {"text": "a',
    '{"tool": "echo", "args": {"text": "a", "type": "call"',
    '{"tool": "echo", "args": {"text": "a" "b"}}',
    'echo(text="a',
    'echo(text="a", text="b")',
    '{"tool": "echo", "args": {"text": 1, "text": 2}}',
    '{"tool": "echo", "args": {}, "approved": true}',
    '{"tool": "echo", "args": [1]}',
]


@pytest.mark.parametrize("text", DOUBTFUL)
def test_what_has_two_readings_is_a_fault_and_no_call(text: str) -> None:
    reading = read_reply(text, KNOWN)
    assert reading.calls == []
    assert len(reading.errors) == 1


@pytest.mark.parametrize(
    "text", ['(echo :text "a"', '{"tool": "echo", "args": {"text": "a"}', 'echo(text="a"']
)
def test_the_end_of_a_reply_that_was_cut_off_is_not_guessed(text: str) -> None:
    assert len(read_reply(text, KNOWN).calls) == 1
    reading = read_reply(text, KNOWN, cut=True)
    assert reading.calls == []
    assert len(reading.errors) == 1


FAULTS = [
    (
        '(echo :text """a")',
        f"line 1, column 13: this text in three quotes {IS_NEVER_CLOSED}; "
        'write one quote, "so", and \\" for a quote inside\n'
        '(echo :text """a")\n            ^',
    ),
    (
        '{"tool": "echo", "args": {"text": "a" "b"}}',
        f"line 1, column 39: This call {CANNOT_BE_READ}: a comma or }} is missing; "
        'write {"tool": "name", "args": {…}}\n'
        '{"tool": "echo", "args": {"text": "a" "b"}}\n                                      ^',
    ),
    (
        "Now\n echo(text=hi)",
        f"line 2, column 12: This call {CANNOT_BE_READ}: hi {IS_NOT_A_VALUE}; put a text in quotes; "
        "write (name :key value …)\n echo(text=hi)\n           ^",
    ),
    (
        '{"tool": "echo", "args": {}, "approved": true}',
        'line 1, column 1: A call in JSON has "tool" and "args"; "approved" has no meaning there\n'
        '{"tool": "echo", "args": {}, "approved": true}\n^',
    ),
]


@pytest.mark.parametrize(("text", "sentence"), FAULTS)
def test_a_call_that_cannot_be_read_is_told_whatever_its_spelling(text: str, sentence: str) -> None:
    assert faults(text) == [sentence]


def test_behind_a_json_call_that_cannot_be_read_nothing_is_read_because_it_may_be_its_text() -> None:
    text = '{"tool": "write-file", "args": {"content": "a"b\n(eval :form (danger))\n"}}'
    assert heard(text) == []
    assert faults(text)[-1] == (
        f"line 2, column 1: {THE_REST_WAS_NOT_READ}; "
        "it may be inside a text of the call at line 1; fix that call first"
    )


# Response tags

TAGS = {"RESEARCH": "research", "TO-DO": "note"}


def tagged(text: str) -> list[str]:
    return [str(call.form) for call in read_reply(text, ["research", "note", "echo"], TAGS).calls]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("RESEARCH: how tides work", ['(research "how tides work")']),
        ("RESEARCH:   spaces \t ", ['(research "spaces")']),
        ("RESEARCH: a line end\r\nRESEARCH: b\r\n", ['(research "a line end")', '(research "b")']),
        ("I look.\n  RESEARCH: x: y (z)\nDone.", ['(research "x: y (z)")']),
        ('TO-DO: b\n(echo :text "a")\nRESEARCH: c', ['(note "b")', '(echo :text "a")', '(research "c")']),
        ('RESEARCH: "quoted"', ['(research "\\"quoted\\"")']),
        ("RESEARCH:\nnot me", ["(research)"]),
        ("RESEARCH: \n\nnot me", ["(research)"]),
        ("research: x", []),
        ("RESEARCH:x", []),
        ("MY RESEARCH: x", []),
        ("> RESEARCH: x", []),
        ("`RESEARCH: x`", []),
        (f"{TICKS}\nRESEARCH: x\n{TICKS}", []),
        ("For example:\nRESEARCH: x\nRESEARCH: y", []),
        ('For example:\n(echo :text "a")\n\nRESEARCH: x', ['(research "x")']),
        ('(echo :text "\nRESEARCH: x\n")', ['(echo :text "\\nRESEARCH: x\\n")']),
        ("RESEARCHER: x", []),
    ],
)
def test_a_response_tag_is_a_call_with_the_rest_of_its_line(text: str, wanted: list[str]) -> None:
    assert tagged(text) == wanted


def test_an_empty_tag_is_a_call_without_arguments_and_swallows_nothing() -> None:
    reading = read_reply("RESEARCH:\nnext line", (), TAGS)
    assert [str(call.form) for call in reading.calls] == ["(research)"]
    assert reading.text == "next line"


def test_the_text_of_a_reply_is_free_of_its_tags() -> None:
    assert read_reply("One.\nRESEARCH: x \nTwo.", (), TAGS).text == "One.\n \nTwo."


def test_without_tags_a_tag_is_prose() -> None:
    assert read_reply("RESEARCH: x", ["research"]).calls == []


# Names with dots and slashes: tools of other hosts, which this one may not have


RIDE = CallForm("uber.ride", {"loc": "x"})


@pytest.mark.parametrize("known", [[], ["uber.ride"]])
@pytest.mark.parametrize(
    "text",
    [
        '(uber.ride :loc "x")',
        '(Uber.Ride :LOC "x")',
        '(functions.uber.ride :loc "x")',
        '(:tool "uber.ride" :args (:loc "x"))',
        '{"tool": "uber.ride", "args": {"loc": "x"}}',
        '{"name": "uber.ride", "arguments": {"loc": "x"}}',
        "(uber.ride :loc “x”)",
    ],
)
def test_a_dotted_name_is_a_name(text: str, known: list[str]) -> None:
    reading = read_reply(text, known)
    assert ([call.form for call in reading.calls], reading.errors) == ([RIDE], [])
    assert [call.form for call in read_reply(str(RIDE), known).calls] == [RIDE]


@pytest.mark.parametrize("text", ['uber.ride(loc="x")', '[uber.ride(loc="x")]', '[uber.ride :loc "x"]'])
def test_as_in_python_where_it_is_known(text: str) -> None:
    assert [call.form for call in read_reply(text, ["uber.ride"]).calls] == [RIDE]
    assert read_reply(text, []).calls == []


@pytest.mark.parametrize(
    "text",
    ["(i.e. :this is prose) and more", "(e.g. this)", "(obj.method 1)", "(.method :key 1)", "(os.getcwd)"],
)
def test_dotted_prose_and_programs_are_no_calls(text: str) -> None:
    assert read_reply(text, KNOWN).calls == []


def test_an_empty_object_may_come_as_an_empty_list() -> None:
    assert heard('{"name": "echo", "arguments": []}') == ["(echo)"]
