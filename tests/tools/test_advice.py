"""The table of what to write instead: each row is accepted where it says."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest
from words import complaint

from quoth.agent.cli.main import parser
from quoth.agent.plan.check import check
from quoth.agent.plan.model import LANGUAGES
from quoth.agent.plan.org_reader import read_plan
from quoth.tools import advice
from quoth.tools.advice import instead
from quoth.tools.errors import UsageError
from quoth.tools.lisp.reader import ReadError, read_all, read_one
from quoth.tools.loading import load_tools
from quoth.tools.org.babel import KNOWN
from quoth.tools.program.compiler import ProgramError, compile_program
from quoth.tools.program.idioms import RULES

PLACES = set(advice._ROWS)
FORM = re.compile(r'f?"[^"]*"|\[[\w ]+\]|\([^()]*(?:\([^()]*\)[^()]*)*\)')  # in a sentence
VALUES = {
    "AFTER": "nil",
    "EXPECT": "(= 1 1)",
    "TOOLS": "nil",
    "MODEL": "local",
    "RETRY": "1",
    "ON-FAIL": "stop",
    "MAY-FAIL": "t",
}


def rows(place: str) -> Any:
    return pytest.mark.parametrize(("word", "text"), sorted(instead(place).items()))


def test_each_place_of_the_table_is_tested_here() -> None:
    here = "head refused usage dispatch escape shell command property header language"
    assert set(here.split()) == PLACES


@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_word_has_one_row_of_a_place(place: str) -> None:
    words = [word for words in advice._ROWS[place] for word in words.split()]
    assert len(words) == len(set(words)) == len(instead(place))


@rows("head")
def test_what_is_written_for_a_head_compiles(word: str, text: str) -> None:
    compile_program(text)
    assert word not in RULES


@rows("usage")
def test_the_usage_of_a_special_form_compiles(word: str, text: str) -> None:
    compile_program(text)
    assert word in text


@rows("refused")
def test_the_forms_that_serve_for_a_refused_macro_compile(word: str, text: str) -> None:
    said = complaint(ProgramError, lambda: compile_program(f"({word} x y)"))
    assert re.search(rf" cannot be used (?:in a program|inside another form); {re.escape(text)}", said)
    for form in FORM.findall(text):
        compile_program(form.replace("…", "x"))


@rows("dispatch")
def test_a_reader_macro_is_refused_with_what_is_read(word: str, text: str) -> None:
    with pytest.raises(ReadError) as refused:
        read_all(f'#{word} " ')
    assert refused.value.hint == text
    if written := {"|": ";", '"': 'r"…"', "t": "True", "f": "False"}.get(word):
        assert written in text
        read_all(written)


@rows("escape")
def test_an_escape_is_refused_with_one_that_is_read(word: str, text: str) -> None:
    with pytest.raises(ReadError) as refused:
        read_one(f'"\\{word}{"77" if word.isdigit() else "z"}"')
    assert refused.value.hint == text
    for escape in re.findall(r"\\(?:N\{[A-Z ]+\}|\w+)", text):
        assert len(str(read_one(f'"{escape}"'))) == 1


@rows("shell")
def test_a_word_of_a_shell_has_what_serves(word: str, text: str) -> None:
    parameters = {one.name for one in load_tools([]).get("shell").params}
    assert shutil.which("sh")
    assert text.endswith("LINE") or text.partition(":")[2] in parameters


@rows("command")
def test_a_command_that_is_meant_exists(word: str, text: str) -> None:
    whole = parser()
    commands = next(action.choices for action in whole._actions if action.dest == "command")
    first = text.partition(",")[0].removeprefix("quoth").split()[:1]
    assert word not in commands
    assert set(first) <= {*commands, *whole._option_string_actions}
    with pytest.raises(UsageError, match=re.escape(f"Did you mean {text}?")):
        parser([word]).parse_args([word])


@rows("property")
def test_a_property_that_is_meant_is_one_of_plans(word: str, text: str) -> None:
    name, _, example = text.partition(", as in ")
    plan = f"* PLAN a\n:PROPERTIES:\n:{name}: {example or VALUES[name]}\n:END:\nDo it.\n"
    table = load_tools([])
    assert not list(check(read_plan(plan.encode(), "p.org")[1], table))
    faults = check(read_plan(plan.replace(name, word).encode(), "p.org")[1], table)
    assert f"Did you mean {text}?" in " ".join(fault.message for fault in faults)


@rows("header")
def test_a_header_argument_that_serves_is_one_of_org(word: str, text: str) -> None:
    assert word in KNOWN
    assert set(re.findall(r":(\w+)", text)) <= KNOWN


@rows("language")
def test_a_block_of_another_lisp_is_told_of_ours(word: str, text: str) -> None:
    named = re.search(r"A block of (\w+)", text)
    assert named
    assert named[1] in LANGUAGES
    assert word not in LANGUAGES
