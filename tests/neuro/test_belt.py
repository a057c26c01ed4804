"""The belt: what a model is told of the tools. The wording is the first seed's; equal tables, equal texts."""

from __future__ import annotations

import itertools
import json

import pytest
from words import belt_of, complaint, tool

from neuro.belt import VIEWS, belt, belt_json
from tools.errors import UsageError
from tools.form import Code
from tools.schema import REQUIRED
from tools.table import CognitiveTool, ToolTable

PATH = {"path": {"type": str, "doc": "Where"}}
LIMIT = {"limit": {"type": int, "default": 50}}


def three() -> list[CognitiveTool]:
    return [
        tool("look", params=PATH | LIMIT, examples=['(look :path "src")']),
        tool("add", params={"form": {"type": Code}}),
        tool("rest"),
    ]


def test_the_lisp_view_word_for_word() -> None:
    head, *tools = belt_of(*three()).split("\n\n")
    assert head.startswith("AVAILABLE TOOLS:\n")
    assert "\n\n".join(tools) == (
        "- add: A tool for a test.\n"
        "  Parameters: :form form\n"
        "\n"
        "- look: A tool for a test.\n"
        "  Parameters: :path str (Where), :limit int = 50\n"
        '  Example: (look :path "src")\n'
        "\n"
        "- rest: A tool for a test.\n"
        "  Parameters: none\n"
    )


def test_the_plist_view_is_the_seeds_own_wording() -> None:
    assert belt_of(*three(), view="plist") == (
        "AVAILABLE TOOLS:\n"
        "You can call tools by returning a Lisp plist: "
        "(:target :tool :action :call :tool <name> :args (...))\n"
        "\n"
        "- add: A tool for a test.\n"
        "  Parameters: ((form :type :form))\n"
        "\n"
        "- look: A tool for a test.\n"
        '  Parameters: ((path :type :str :description "Where") (limit :type :int :default 50))\n'
        '  Example: (:target :tool :action :call :tool "look" :args (:path "src"))\n'
        "\n"
        "- rest: A tool for a test.\n"
        "  Parameters: ()\n"
    )


@pytest.mark.parametrize("view", VIEWS)
def test_the_order_of_registration_does_not_show(view: str) -> None:
    texts = {belt_of(*order, view=view) for order in itertools.permutations(three())}
    assert len(texts) == 1


@pytest.mark.parametrize("view", VIEWS)
def test_a_change_of_anything_shown_does_show(view: str) -> None:
    plain = belt_of(tool("look", params=PATH), view=view)
    assert belt_of(tool("look", params=PATH | LIMIT), view=view) != plain
    assert belt_of(tool("look", params={"path": {"type": str, "doc": "Whence"}}), view=view) != plain
    assert belt_of(tool("peek", params=PATH), view=view) != plain


@pytest.mark.parametrize("view", VIEWS)
def test_every_tool_and_every_parameter_is_named(view: str) -> None:
    text = belt_of(*three(), view=view)
    assert all(f"- {name}: " in text for name in ("add", "look", "rest"))
    assert all(name in text for name in ("form", "path", "limit"))


@pytest.mark.parametrize("view", VIEWS)
def test_a_description_of_many_lines_stays_on_one(view: str) -> None:
    table = ToolTable((tool("rest"),))
    with_lines = CognitiveTool("rest", "A tool\n\n   for a   test.")
    assert belt(ToolTable((with_lines,)), view) == belt(table, view)


def test_choices_are_shown_instead_of_their_type() -> None:
    odd = tool("odd", params={"kind": {"type": str, "choices": ["a", "b"], "default": "a"}})
    assert '  Parameters: :kind "a" | "b" = "a"\n' in belt_of(odd)


def test_a_parameter_whose_default_is_nothing_may_be_left_out() -> None:
    maybe = tool("maybe", params={"name": {"type": str | None, "default": None}})
    needed = tool("maybe", params={"name": {"type": str | None, "default": REQUIRED}})
    assert belt_of(maybe) != belt_of(needed)


def test_an_empty_table_is_still_a_belt() -> None:
    assert belt_of().startswith("AVAILABLE TOOLS:\n")


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        ("lips", "There is no view lips; the views are lisp, plist. Did you mean lisp?"),
        ("xml", "There is no view xml; the views are lisp, plist."),
    ],
)
def test_an_unknown_view_is_told_with_those_there_are(view: str, sentence: str) -> None:
    assert complaint(UsageError, lambda: belt(ToolTable(), view)) == sentence


def test_the_belt_as_json_carries_the_hash_of_what_it_shows() -> None:
    table = ToolTable(tuple(three()))
    data = json.loads(json.dumps(belt_json(table, "lisp")))
    assert data == {
        "view": "lisp",
        "schema_hash": table.schema_hash,
        "tools": ["add", "look", "rest"],
        "belt": belt(table),
    }
