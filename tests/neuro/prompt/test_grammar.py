"""The grammar a local model is bound to: whole, naming every tool, and open only where it should be.

That llama.cpp takes it is tested with the embedded model; here its text is checked for missing rules.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any, Literal

import pytest
from words import tool

from quoth.neuro.prompt.grammar import JSON, LISP, PLIST, TAGS, Spelling, grammar
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

ODD = {
    "text": {"type": str},
    "flag": {"type": bool, "default": False},
    "number": {"type": float, "default": 1.5},
    "names": {"type": list[str], "default": []},
    "counts": {"type": list[int], "default": []},
    "table": {"type": dict, "default": {}},
    "maybe": {"type": str | None, "default": None},
    "mode": {"type": Literal["r", "w"], "default": "r"},
    "quote": {"type": str, "choices": ['say "hi"', "back\\slash", "two\nlines"], "default": "back\\slash"},
    "form": {"type": Code, "default": "1"},
    "per-day": {"type": dict[str, int], "default": {}},
}


def rules(text: str) -> dict[str, str]:
    """The rules of a grammar by name. Fails for what llama.cpp would refuse: a rule that is missing, stands
    twice, or is misnamed; quotes and brackets that do not close."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        name, arrow, body = line.partition(" ::= ")
        assert arrow, f"no rule: {line}"
        assert re.fullmatch(r"[a-z][a-z0-9-]*", name), f"bad name: {name}"
        assert name not in found, f"twice: {name}"
        found[name] = body
    for name, body in found.items():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{\d*,?\d*\}', " ", body)
        assert not set(bare) & set('"[]{}\\'), f"unclosed in {name}: {bare}"
        assert bare.count("(") == bare.count(")"), f"unbalanced in {name}: {bare}"
        missing = set(re.findall(r"[a-z][a-z0-9-]*", bare)) - set(found)
        assert not missing, f"{name} needs {missing}"
    assert "root" in found
    return found


def table(*tools: CognitiveTool) -> ToolTable:
    return ToolTable(tools)


def shipped() -> ToolTable:
    import_module("quoth.tools.builtin")
    return cognitive_tools


def test_the_grammar_of_the_tools_that_ship_is_whole_and_names_all_that_are_shown() -> None:
    found = rules(grammar(shipped()))
    assert {"call-think", "call-cognitive-loop"}.isdisjoint(found)
    for name in shipped().shown.names():
        assert found[f"call-{name}"].startswith(f'"({name}"')
        assert re.search(rf"\bcall-{name}\b", found["call"])


def test_the_grammar_of_odd_parameters_is_whole() -> None:
    found = rules(grammar(table(tool("odd", params=ODD))))
    call = " ".join(found.values())
    for name in ODD:
        assert f'" :{name} "' in call
    assert '"\\"say \\\\\\"hi\\\\\\"\\""' in call
    assert '"\\"two\\\\nlines\\""' in call


def test_only_a_required_argument_must_stand() -> None:
    found = rules(grammar(table(tool("two", params={"a": {"type": str}, "b": {"type": int, "default": 1}}))))
    assert found["call-two"] == '"(two" " :a " str opt-0-1 ")"'
    assert found["opt-0-1"] == '(" :b " int)?'


def test_two_tools_never_share_a_rule_whatever_their_names() -> None:
    path, other = {"path": {"type": str, "default": ""}}, {"file-path": {"type": str, "default": ""}}
    found = rules(grammar(table(tool("read", params=other), tool("read-file", params=path))))
    assert language(found, "call-read").fullmatch('(read :file-path "a")')
    assert language(found, "call-read-file").fullmatch('(read-file :path "a")')
    assert not language(found, "call-read-file").fullmatch('(read-file :file-path "a")')


# Each spelling, with one required and two optional arguments; which texts are in the language is found by a
# small matcher of the rules.

THREE = {"a": {"type": str}, "b": {"type": int, "default": 1}, "c": {"type": bool, "default": False}}


def language(found: dict[str, str], name: str = "call-three") -> re.Pattern[str]:
    """The rules as a regular expression, which is possible where none refers to itself."""
    known = {"str": r'"[^"]*"', "form": r"\([^()]*\)", "int": r"-?\d+"}
    known |= {"bool": "True|False", "jbool": "true|false"}

    def expand(body: str) -> str:
        parts = re.findall(r'"(?:[^"\\]|\\.)*"|[a-z][a-z0-9-]*|\[[^]]*\]|[()|?*+]', body)
        return "".join(
            re.escape(json.loads(part)) if part[0] == '"'
            else part if part[0] in "[()|?*+"
            else f"(?:{known.get(part) or expand(found[part])})"
            for part in parts
        )  # fmt: skip

    return re.compile(expand(found[name]))


@pytest.mark.parametrize(
    ("spelling", "right", "wrong"),
    [
        (
            LISP,
            [
                '(three :a "x")',
                '(three :a "x" :b 1)',
                '(three :a "x" :c True :b 1)',
                '(three :a "x" :b 1 :c False)',
            ],
            [
                "(three)",
                '(three :b 1 :a "x")',
                '(three :a "x" :b 1 :b 2)',
                '(three :a "x" :b True)',
                '(three :a "x"',
            ],
        ),
        (
            PLIST,
            [
                '(:target :tool :action :call :tool "three" :args (:a "x"))',
                '(:target :tool :action :call :tool "three" :args (:a "x" :c True :b 1))',
            ],
            ['(:target :tool :action :call :tool "three" :args ())'],
        ),
        (
            JSON,
            [
                '{"tool": "three", "args": {"a": "x"}}',
                '{"tool": "three", "args": {"a": "x", "c": true, "b": 1}}',
            ],
            ['{"tool": "three", "args": {"a": "x",}}', '{"tool": "three", "args": {"a": "x", "c": True}}'],
        ),
    ],
    ids=["lisp", "plist", "json"],
)
def test_optional_arguments_come_in_any_order_and_once(
    spelling: Spelling, right: list[str], wrong: list[str]
) -> None:
    pattern = language(rules(grammar(table(tool("three", params=THREE)), spelling=spelling)))
    assert [text for text in right if not pattern.fullmatch(text)] == []
    assert [text for text in wrong if pattern.fullmatch(text)] == []


TAGGED = [
    (
        {"query": {"type": str}},
        ["RESEARCH: two words", "RESEARCH: Fix 0 of X-17: f0.txt", 'RESEARCH: {"query": "x"}'],
        ["RESEARCH: ", "RESEARCH: a\nb", 'RESEARCH: "x"'],
    ),
    ({"form": {"type": Code}}, ["RESEARCH: (+ 1 2)"], ["RESEARCH: (+ 1 2) -> ok", "RESEARCH: 1 + 2"]),
    ({"n": {"type": int}}, ['RESEARCH: {"n": 3}'], ["RESEARCH: 3", 'RESEARCH: {"n": "3"}']),
    (
        {"a": {"type": str}, "b": {"type": str}},
        ['RESEARCH: {"a": "x", "b": "y"}'],
        ["RESEARCH: x y", 'RESEARCH: {"a": "x"}'],
    ),
]


@pytest.mark.parametrize(("params", "right", "wrong"), TAGGED)
def test_a_tagged_call_is_a_line_or_names_its_arguments(
    params: dict[str, dict[str, Any]], right: list[str], wrong: list[str]
) -> None:
    found = rules(grammar(table(tool("research", tag="RESEARCH", params=params)), spelling=TAGS))
    pattern = language(found, "call-research")
    assert [text for text in right if not pattern.fullmatch(text)] == []
    assert [text for text in wrong if pattern.fullmatch(text)] == []


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        (r"(good|so so)\s+(.+)", ["X: good it is", "X: so so a"], ["X: bad it", "X: good", 'X: {"a": "x"}']),
        (r"(\d+) (\w+)", ["X: 3 pears"], ["X: three pears", "X: 3 pears and more"]),
        (r"([a-z]{3}) by (.+)", ["X: any line"], ["X: ", 'X: {"a": "x"}']),  # beyond the grammar
    ],
)
def test_a_tag_with_a_pattern_is_bound_to_it_where_a_grammar_can_say_it(
    pattern: str, right: list[str], wrong: list[str]
) -> None:
    tag = {"prefix": "X", "pattern": pattern, "groups": ["a", "b"]}
    found = rules(grammar(table(tool("x", tag=tag, params={"a": {}, "b": {}})), spelling=TAGS))
    spoken = language(found, "call-x")
    assert [text for text in right if not spoken.fullmatch(text)] == []
    assert [text for text in wrong if spoken.fullmatch(text)] == []


def test_a_program_begins_with_a_tool_or_a_word_of_the_language() -> None:
    found = rules(grammar(table(tool("look", params={"n": {"type": int}})), programs=True))
    assert found["call"] == '"(run :program " program ")"'
    assert found["program"] == "call-look | known"
    assert language(found, "call-look").fullmatch("(look :n 3)")
    assert '"let"' in found["head"]
    assert '"look-up"' not in found["head"]


@pytest.mark.parametrize("spelling", [LISP, PLIST, JSON], ids=["lisp", "plist", "json"])
def test_a_tool_may_have_no_argument_and_the_first_may_be_left_out(spelling: Spelling) -> None:
    found = rules(
        grammar(table(tool("none"), tool("all", params={n: THREE[n] for n in "bc"})), spelling=spelling)
    )
    pattern = language(found, "call-all")
    spelt = {
        LISP: ["(all)", "(all :c True)"],
        PLIST: [f'(:target :tool :action :call :tool "all" :args ({args}))' for args in ("", ":c True :b 2")],
        JSON: [f'{{"tool": "all", "args": {{{args}}}}}' for args in ("", '"c": true', '"c": true, "b": 2')],
    }
    assert [text for text in spelt[spelling] if not pattern.fullmatch(text)] == []


def test_many_optional_arguments_keep_the_order_of_the_signature() -> None:
    params = {name: {"type": int, "default": 1} for name in "abcdefgh"}
    found = rules(grammar(table(tool("many", params=params))))
    pattern = language(found, "call-many")
    assert pattern.fullmatch("(many :a 1 :d 2 :g 3 :h 4 :f 5)")
    assert not pattern.fullmatch("(many :d 2 :a 1)")
    assert len(found) < 100


def test_an_answer_in_the_dialect_tags_does_not_begin_like_a_tag() -> None:
    found = rules(grammar(table(tool("research", tag="RESEARCH")), spelling=TAGS))
    assert found["root"] == "calls | untagged"
    spoken = language(found, "untagged")
    for answer in ("Two.", "X", "USA", "3: so many", "Ähnlich: ja", "Ports: 1"):
        assert spoken.fullmatch(answer), answer
    for call in ("TODO: five", "RESEARCH: a -> ok", "RESEARCH (", "EVAL, (f)"):
        assert not spoken.fullmatch(call), call
    assert spoken.fullmatch("CONFIDENCE: 0.7\nTwo.")
    assert not spoken.fullmatch("CONFIDENCE: 0.7\nRESEARCH: a -> ok")


def test_a_reply_in_the_dialect_tags_may_tell_how_sure_it_is_and_end_its_line() -> None:
    one = table(tool("research", tag="RESEARCH"))
    found = rules(grammar(one, spelling=TAGS))
    assert found["calls"] == r'sure call ("\n" call){0,7} "\n"?'
    assert rules(grammar(one, spelling=TAGS, several=False))["calls"] == r'sure call "\n"?'
    sure = language(found, "sure")
    for line in ("", "CONFIDENCE: 1\n", "CONFIDENCE: 0.25\n", "CONFIDENCE: high\n", "0.7\n"):
        assert bool(sure.fullmatch(line)) == (line not in ("CONFIDENCE: high\n", "0.7\n")), line
    assert rules(grammar(one))["calls"] == r'call ("\n" call){0,7}'


def test_an_answer_may_be_forbidden_and_so_may_calls() -> None:
    one = table(tool("one"))
    assert rules(grammar(one))["root"] == "calls | words"
    assert rules(grammar(one, may_answer=False))["root"] == "calls"
    assert rules(grammar(one, may_call=False))["root"] == "words"


@pytest.mark.parametrize("may_answer", [True, False])
def test_without_tools_there_are_only_words(may_answer: bool) -> None:
    assert rules(grammar(table(), may_answer=may_answer))["root"] == "words"


def test_the_order_of_registration_does_not_show() -> None:
    one, two = tool("one"), tool("two")
    assert grammar(table(one, two)) == grammar(table(two, one))


@pytest.mark.parametrize(
    "broken",
    ["root ::= missing", 'root ::= "open', "root ::= (a", 'a ::= "x"\na ::= "y"', "root ::= [a", 'a ::= "x"'],
)
def test_the_check_of_a_grammar_can_fail(broken: str) -> None:
    with pytest.raises(AssertionError):
        rules(broken)
