"""Response tags: a tagged line is a call, in the order of the text; the old parser's traps are closed."""

from __future__ import annotations

import pytest
from words import table_of, tool

from quoth.neuro.prompt.dialects import TAGS
from quoth.tools.registry.table import ToolTable


def table() -> ToolTable:
    text, number = {"type": str}, {"type": int}
    return table_of(
        tool("research", params={"query": text, "limit": {"type": int, "default": 3}}, tag="RESEARCH"),
        tool(
            "learning",
            params={"category": {"type": str, "choices": ["factual", "style"]}, "content": text},
            tag="LEARNING",
        ),
        tool("add", params={"a": number, "b": number, "all": {"type": list[int]}}, tag="ADD"),
        tool("maybe", params={"when": {"type": str, "default": "now"}}, tag="MAYBE"),
        tool("rest", tag="REST"),
        tool("untagged", params={"text": text}),
    )


def heard(reply: str) -> list[str]:
    return [str(call.form) for call in TAGS.read_text(reply, table()).calls]


@pytest.mark.parametrize(
    ("reply", "forms"),
    [
        ("RESEARCH: futarchy on X", ['(research :query "futarchy on X")']),
        ("RESEARCH:futarchy", []),
        ("RESEARCH: futarchy  \r\n", ['(research :query "futarchy")']),
        ("LEARNING: factual It is: so", ['(learning :category "factual" :content "It is: so")']),
        ('LEARNING: "in style" be "brief"', ['(learning :category "in style" :content "be \\"brief\\"")']),
        ("ADD: 1 -2 [3, 4]", ["(add :a 1 :b -2 :all [3 4])"]),
        ("ADD: one 2", ['(add :a "one" :b 2)']),
        ("MAYBE: tomorrow", ['(maybe :when "tomorrow")']),
        ("MAYBE:", ["(maybe)"]),
        ("REST:", ["(rest)"]),
        ('RESEARCH: {"query": "a\\nb", "limit": 5}', ['(research :query "a\\nb" :limit 5)']),
        ('RESEARCH: {"Query": ""}', ['(research :query "")']),
        ('RESEARCH: {"other": 1}', ['(research :query "{\\"other\\": 1}")']),
        ("RESEARCH: {braces}", ['(research :query "{braces}")']),
        # in the order of the text, not of the tools
        (
            "RESEARCH: a\nLEARNING: style b\nRESEARCH: c",
            [
                '(research :query "a")',
                '(learning :category "style" :content "b")',
                '(research :query "c")',
            ],
        ),
        # an empty tag takes nothing from the next line
        ("RESEARCH:\nNot a query.", ["(research)"]),
        # no calls
        ("I will RESEARCH: a", []),
        ("> RESEARCH: a", []),
        ("research: a", []),
        ("RESEARCHER: a", []),
        ("untagged: x", []),
        ("```\nRESEARCH: a\n```\nRESEARCH: b", ['(research :query "b")']),
    ],
)
def test_which_lines_are_calls(reply: str, forms: list[str]) -> None:
    assert heard(reply) == forms


def test_the_tagged_lines_are_taken_from_the_text() -> None:
    reading = TAGS.read_text("I look.\nRESEARCH: a\nThen I say.", table())
    assert reading.text == "I look.\n\nThen I say."
    (found,) = reading.calls
    assert (found.line, found.column) == (2, 1)


def test_a_reply_holds_so_many_calls_and_no_more() -> None:
    reading = TAGS.read_text("REST:\n" * 300, table())
    assert len(reading.calls) == 200
    assert [str(error).partition("\n")[0] for error in reading.errors] == [
        "line 201, column 1: What follows was not read; a reply holds at most 200 calls"
    ]
