"""The line of a response tag: how it is written, what its words mean, and when one is no call."""

from __future__ import annotations

from typing import Any

import pytest
from sentences import IS_NOT_A_NUMBER
from words import form, tool

from quoth.neuro.reading.reply import read_reply
from quoth.neuro.reading.tag_lines import (
    EXAMPLE,
    MAX_PASSED,
    SHOWN,
    confidence_of,
    is_template,
    spell_tag,
    tag_arguments,
    tag_line,
    takes_line,
)
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.table import CognitiveTool

TEXT: dict[str, Any] = {"type": str}
NUMBER: dict[str, Any] = {"type": int}
CHOICE = TEXT | {"choices": ["new", "old"]}


def tagged(pattern: str = "", groups: list[str] | None = None, **params: dict[str, Any]) -> CognitiveTool:
    tag: dict[str, Any] = {"prefix": "LOOK"}
    if pattern:
        tag |= {"pattern": pattern, "groups": groups}
    return tool("look", params=params, tag=tag)


@pytest.mark.parametrize(
    ("params", "line", "words_do"),
    [
        ({"query": TEXT}, "LOOK: [query]", True),
        ({"query": TEXT, "limit": NUMBER | {"default": None}}, "LOOK: [query]", True),
        ({"query": TEXT | {"default": None}}, "LOOK: [query]", False),
        ({"form": {"type": Code}}, "LOOK: (…)", True),
        ({"limit": NUMBER}, "LOOK: [limit]", False),
        ({"kind": CHOICE}, "LOOK: [new|old]", False),
        ({"kind": CHOICE, "query": TEXT}, "LOOK: [new|old] [query]", False),
        ({"name": TEXT, "query": TEXT}, 'LOOK: {"name": [name], "query": [query]}', False),
        ({}, "LOOK: ", False),
        ({"name": TEXT | {"default": None}, "query": TEXT | {"default": None}}, "LOOK: [name]", False),
    ],
)
def test_a_line_shows_what_a_model_fills_in(params: Any, line: str, words_do: bool) -> None:
    looks = tagged(**params)
    assert tag_line(looks) == line
    assert takes_line(looks) == words_do


def test_words_do_not_make_a_call_where_a_pattern_reads_them() -> None:
    assert not takes_line(tagged(r"(\w+)", ["query"], query=TEXT))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ('(look :query "red boat")', "LOOK: red boat"),
        ('(look :query "a")', "LOOK: a"),
        ('(look :query "{a")', 'LOOK: {"query": "{a"}'),
        ('(look :query " a")', 'LOOK: {"query": " a"}'),
        ('(look :query "a ")', 'LOOK: {"query": "a "}'),
        ('(look :query "a" :limit 2)', 'LOOK: {"query": "a", "limit": 2}'),
    ],
)
def test_a_call_is_spelt_as_a_line_that_is_read_as_the_call(call: str, line: str) -> None:
    looks = tagged(query=TEXT, limit=NUMBER | {"default": None})
    assert spell_tag(looks, form(call)) == line
    assert tag_arguments(looks, line.removeprefix("LOOK: ")) == form(call).args


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("3 red boat", {"limit": 3, "name": "red", "query": "boat"}),
        ('"3" "red boat" a  boat', {"limit": "3", "name": "red boat", "query": "a  boat"}),
        ('3 " a', {"limit": 3, "name": '"', "query": "a"}),
        ("many red", {"limit": "many", "name": "red"}),
        ("3 12 13", {"limit": 3, "name": "12", "query": "13"}),
        ('3 "" "a', {"limit": 3, "name": "", "query": '"a'}),
        ("3", {"limit": 3}),
        ("", {}),
        ('{"limit": 3}', {"limit": 3}),
        ('{"size": 3}', {"limit": '{"size":', "name": "3}"}),
        ("{limit", {"limit": "{limit"}),
    ],
)
def test_each_parameter_but_the_last_gets_a_word(words: str, arguments: dict[str, Any]) -> None:
    assert tag_arguments(tagged(limit=NUMBER, name=TEXT, query=TEXT), words) == arguments


def test_a_group_of_a_pattern_that_met_nothing_is_no_argument() -> None:
    looks = tagged(r"(\w+)(?: (\d+))?", ["query", "limit"], query=TEXT, limit=NUMBER | {"default": None})
    assert tag_arguments(looks, "boat") == {"query": "boat"}
    assert tag_arguments(looks, "boat 3") == {"query": "boat", "limit": 3}
    assert tag_arguments(looks, "boat and") is None


@pytest.mark.parametrize(
    ("words", "confidence"),
    [
        ("0.5", 0.5),
        ("50%", 0.5),
        ("50 %", 0.5),
        ("1", 1.0),
        ("1.5", 1.0),
        ("-1", 0.0),
        ("101%", 1.0),
        (".5", 0.5),
        ("high", None),
        ("0.5 or so", None),
    ],
)
def test_a_confidence_is_a_share_or_a_percentage(words: str, confidence: float | None) -> None:
    assert confidence_of(words) == confidence


def test_a_line_as_it_is_shown_is_a_template() -> None:
    looks = tagged(query=TEXT)
    assert is_template(looks, "[query]")
    assert not is_template(looks, "[quest]")
    assert not is_template(tagged(form={"type": Code}), "(…)")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("look: a", "a tag is written in capitals, LOOK"),
        ("```\nlook: a\n```", None),
        ("LOOM: a", "no tool has the tag LOOM. Did you mean LOOK?"),
        ("L: a", None),
        ("Loom: a", None),
        ("LOOM:a", None),
        ("- LOOM: a", None),
        ("*LOOM*: a", None),
        ("```\nLOOM: a\n```", None),
        ("```\nLOOK: a\n```", "it is in a fence"),
        ("> LOOK: a", "it is quoted"),
        ("- LOOK: a", "it is in a list or headline"),
        ("# LOOK: a", "it is in a list or headline"),
        ("**LOOK**: a", "it is set in bold, italics or as code"),
        ("LOOK:a", "there is no blank after its colon"),
        ("For example:\nLOOK: a", EXAMPLE),
        ("CONFIDENCE: high", f"its confidence {IS_NOT_A_NUMBER}"),
        ("- CONFIDENCE: high", None),
        ("confidence: high", None),
    ],
)
def test_a_line_that_is_no_call_says_why(line: str, reason: str | None) -> None:
    reading = read_reply(line, ["look"], {"LOOK": tagged(query=TEXT)})
    assert reading.calls == []
    assert [passed.reason for passed in reading.passed] == ([] if reason is None else [reason])


def test_lines_that_are_no_calls_are_told_up_to_a_limit() -> None:
    reading = read_reply("- LOOK: a\n" * (MAX_PASSED + 1), ["look"], {"LOOK": tagged(query=TEXT)})
    assert [passed.line for passed in reading.passed] == list(range(1, MAX_PASSED + 1))
    (passed,) = read_reply(f"- LOOK: {'a' * 400}", ["look"], {"LOOK": tagged(query=TEXT)}).passed
    assert len(passed.text) == SHOWN
