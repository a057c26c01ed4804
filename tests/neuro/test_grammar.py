"""The grammar a local model is bound to: whole, naming every tool, and open only where it should be.

That llama.cpp takes it is tested with the embedded model; here its text is checked for missing rules.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Literal

import pytest
from words import tool

from neuro.grammar import grammar
from tools.form import Code
from tools.table import CognitiveTool, ToolTable, cognitive_tools

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
    import_module("tools.builtin")
    return cognitive_tools


def test_the_grammar_of_the_tools_that_ship_is_whole_and_names_them_all() -> None:
    found = rules(grammar(shipped()))
    for name in shipped().names():
        assert found[f"call-{name}"].startswith(f'"({name}"')
        assert re.search(rf"\bcall-{name}\b", found["call"])


def test_the_grammar_of_odd_parameters_is_whole() -> None:
    found = rules(grammar(table(tool("odd", params=ODD))))
    call = found["call-odd"]
    for name in ODD:
        assert f'" :{name} "' in call
    assert '"\\"say \\\\\\"hi\\\\\\"\\""' in call
    assert '"\\"two\\\\nlines\\""' in call


def test_only_a_required_argument_must_stand() -> None:
    found = rules(grammar(table(tool("two", params={"a": {"type": str}, "b": {"type": int, "default": 1}}))))
    call = " ".join(found["call-two"].split())
    assert call == '"(two" " :a " str (" :b " int)? ")"'


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
