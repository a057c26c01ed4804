"""Response tags as they are defined, a text or a dictionary; and every mistake in a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sentences import IS_GIVEN_TWICE, IS_NOT_A_REGULAR_EXPRESSION
from words import complaint, load, tool

from quoth import cognitive_tool, tool_of
from quoth.tools.errors import DefinitionError, DuplicateToolError
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.parameters import Tag
from quoth.tools.registry.table import ToolTable

KINDS = r"(factual|communication|structured_data)\s+(.+)"
WHOLE = {
    "prefix": "LEARNING",
    "pattern": KINDS,
    "groups": ["category", "content"],
    "example": "LEARNING: [category] [what]",
    "strip": False,
}
LEARNING = Tag("LEARNING", KINDS, ("category", "content"), "LEARNING: [category] [what]", False)

HY = r"""(require quoth [def-cognitive-tool])
(setv SPARE {:prefix "SPARE"})
(def-cognitive-tool learning "Record." :parameters [category {} content {}]
  :tag {:prefix "LEARNING" :pattern r"(factual|communication|structured_data)\s+(.+)"
        "groups" ["category" "content"] "example" "LEARNING: [category] [what]" :strip (not True)}
  :body content)
(def-cognitive-tool spare "Spare." :tag SPARE :body 1)
"""


def test_hy_and_python_make_the_same_tag_of_a_dictionary(tmp_path: Path) -> None:
    (tmp_path / "bot.hy").write_text(HY)
    table = load(tmp_path / "bot.hy")
    with registering_in(ToolTable()):

        @cognitive_tool(tag=WHOLE)
        def learning(category: str, content: str) -> str:
            """Record."""
            return content

    assert table.get("learning").tag == tool_of(learning).tag == LEARNING
    assert table.get("spare").tag == Tag("SPARE")
    assert replace(tool_of(learning), tag="OTHER").tag == Tag("OTHER")
    assert replace(tool_of(learning), tag="").tag is None


def two(**tag: Any) -> Any:
    """The tag of a tool with the parameters a and b, of which a is required."""
    return tool("x", params={"a": {}, "b": {"default": ""}}, tag={"prefix": "X", **tag}).tag


def test_what_is_left_out_is_filled_in() -> None:
    assert two(pattern=r"\d+ (.*)") == Tag("X", r"\d+ (.*)", ("a",))
    assert two(groups=["a"]) == Tag("X", "(.+)", ("a",))
    assert two() == Tag("X")


@pytest.mark.parametrize(("tag", "said"), [(None, ""), ("X", "X"), ({"prefix": "X"}, "X"), (WHOLE, WHOLE)])
def test_a_tag_is_described_as_it_was_written(tag: Any, said: Any) -> None:
    made = tool("x", params={"category": {}, "content": {}}, tag=tag)
    assert made.describe()["tag"] == said
    assert replace(made, tag=said).tag == made.tag


PREFIXES = (
    "a prefix is upper-case letters, digits, hyphens and underscores after a first letter, "
    "such as RESEARCH, not"
)
MISTAKES: list[tuple[Any, str]] = [
    (3, "x: :tag is a text such as RESEARCH, or a dictionary with :prefix."),
    ("A+ (b", f"x, :tag: {PREFIXES} 'A+ (b'."),
    ("research", f"x, :tag: {PREFIXES} 'research'."),
    ("X\n", f"x, :tag: {PREFIXES} 'X\\n'."),
    ({}, "x, :tag: :prefix is a text."),
    (
        {"prefix": "X", "group": []},
        "x, :tag: there is no option :group; the options are :prefix :pattern :groups :example :strip. "
        "Did you mean :groups?",
    ),
    ({"prefix": "X", "pattern": 3}, "x, :tag: :pattern is a text."),
    ({"prefix": "X", "strip": "no"}, "x, :tag: :strip is True or False."),
    (
        {"prefix": "X", "groups": "a"},
        'x, :tag: :groups is a list of parameters, such as ["category" "content"].',
    ),
    (
        {"prefix": "X", "groups": ["ab"]},
        "x, :tag: the group ab is not a parameter; the parameters are a, b. Did you mean b?",
    ),
    ({"prefix": "X", "groups": ["a", "a"]}, f"x, :tag: the group a {IS_GIVEN_TWICE}."),
    (
        {"prefix": "X", "pattern": "a (b"},
        f"x, :tag: a (b {IS_NOT_A_REGULAR_EXPRESSION}: missing ) at position 4.",
    ),
    (
        {"prefix": "X", "pattern": "((a{9999}){99})"},
        "x, :tag: ((a{9999}){99}) repeats too much; use smaller counts.",
    ),
    (
        {"prefix": "X", "pattern": "(a)|(b)"},
        "x, :tag: (a)|(b) has 2 groups in brackets, and the parameters for them are a; each group is one "
        "parameter. To group without a parameter, write (?:.",
    ),
    (
        {"prefix": "X", "groups": ["a", "b"]},
        "x, :tag: (.+) has 1 group in brackets, and the parameters for them are a, b; each group is one "
        "parameter. To group without a parameter, write (?:.",
    ),
    (
        {"prefix": "X", "pattern": "(.+)", "groups": ["b"]},
        "x, :tag: the required parameter a has no group in (.+).",
    ),
    ({"prefix": "X", "example": "Y: a"}, "x, :tag: :example is one line that begins with X: and a blank."),
    ({"prefix": "X", "example": "X: a\nb"}, "x, :tag: :example is one line that begins with X: and a blank."),
]


@pytest.mark.parametrize(("tag", "sentence"), MISTAKES)
def test_a_wrong_tag_is_told_when_the_tool_is_defined(tag: Any, sentence: str) -> None:
    params = {"a": {}, "b": {"default": ""}}
    assert complaint(DefinitionError, lambda: tool("x", params=params, tag=tag)) == sentence


def test_a_tag_belongs_to_one_tool_of_a_table() -> None:
    table = ToolTable()
    tool("research", tag="RESEARCH", table=table)
    said = complaint(DuplicateToolError, lambda: tool("search", tag="RESEARCH", table=table))
    assert said == "The tools research and search share the tag RESEARCH."
    assert table.names() == ["research"]
    tool("research", tag="LOOK", replace=True, table=table)  # which frees the tag it had
    search = tool("search", tag="RESEARCH", table=table)
    assert table.tags["RESEARCH"] is search
    assert sorted(table.copy().tags) == ["LOOK", "RESEARCH"]
