"""The table: tools by name, one of each, and a hash that changes when anything a model is shown changes."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    NO_TOOLS_ARE_REGISTERED,
    THE_MODEL_CHOOSES_BY_IT,
    THERE_IS_ALREADY_A_TOOL,
    THERE_IS_NO_TOOL_NAMED,
    TIMEOUT_IS_A_NUMBER_OF,
)
from words import complaint, form, gateway, tool

from quoth import cognitive_tools
from quoth.tools.errors import DefinitionError, DuplicateToolError, UnknownToolError, nearest
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import schema_hash


def test_a_registered_tool_is_got_by_its_name() -> None:
    table = ToolTable()
    probe = tool(table=table)
    assert table.get("probe") is probe
    assert "probe" in table
    assert len(table) == 1


@pytest.mark.parametrize("spelling", ["read-it", "READ-IT", "read_it", " Read_It "])
def test_a_tool_is_found_whatever_its_case_and_hyphens(spelling: str) -> None:
    table = ToolTable((tool("read-it"),))
    assert table.get(spelling).name == "read-it"
    assert spelling in table
    assert gateway(tool("read-it")).pass_through("(READ_IT)").ok


def test_names_and_tools_come_sorted() -> None:
    table = ToolTable((tool("b"), tool("c"), tool("a")))
    assert table.names() == ["a", "b", "c"]
    assert [found.name for found in table.tools()] == ["a", "b", "c"]
    assert [found.name for found in table] == ["a", "b", "c"]


def test_a_second_tool_of_a_name_is_refused_and_the_first_stays() -> None:
    table = ToolTable()
    first = tool(table=table)
    said = complaint(DuplicateToolError, lambda: tool(table=table))
    where = f"defined at {first.place}; write replace=True to replace it."
    assert said == f"{THERE_IS_ALREADY_A_TOOL} probe, {where}"
    assert table.get("probe") is first


def test_a_second_tool_that_says_so_takes_the_place() -> None:
    table = ToolTable()
    tool(table=table)
    second = tool(table=table, replace=True)
    assert table.get("probe") is second
    third = tool()
    assert table.register(third, replace=True) is third
    assert table.names() == ["probe"]


@pytest.mark.parametrize(
    ("name", "known", "sentence"),
    [
        ("read-fil", ["read-file", "echo"], f"{THERE_IS_NO_TOOL_NAMED} read-fil. Did you mean read-file?"),
        ("READ-FIL", ["read-file"], f"{THERE_IS_NO_TOOL_NAMED} READ-FIL. Did you mean read-file?"),
        ("zzz", ["echo", "eval"], f"{THERE_IS_NO_TOOL_NAMED} zzz. Available tools: echo, eval."),
        ("zzz", [], f"{THERE_IS_NO_TOOL_NAMED} zzz. {NO_TOOLS_ARE_REGISTERED}."),
        ("a\x1b[31m\n", [], f"{THERE_IS_NO_TOOL_NAMED} 'a\\x1b[31m\\n'. {NO_TOOLS_ARE_REGISTERED}."),
        ("", [], f"{THERE_IS_NO_TOOL_NAMED} ''. {NO_TOOLS_ARE_REGISTERED}."),
        ("x" * 500, [], f"{THERE_IS_NO_TOOL_NAMED} {'x' * 79}…. {NO_TOOLS_ARE_REGISTERED}."),
    ],
)
def test_an_unknown_tool_is_told_in_a_clean_sentence(name: str, known: list[str], sentence: str) -> None:
    table = ToolTable(tuple(tool(one) for one in known))
    assert complaint(UnknownToolError, lambda: table.get(name)) == sentence


def test_an_unknown_tool_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        ToolTable().get("nobody")


def test_the_nearest_name_ignores_case_and_keeps_the_spelling() -> None:
    assert nearest("READM.org", ["README.org", "echo"]) == "README.org"
    assert nearest("readme.org", ["README.org"]) == "README.org"
    assert nearest("xyz", ["README.org"]) is None


def test_private_tables_do_not_know_each_other_nor_the_global_one() -> None:
    before = cognitive_tools.names()
    one, other = ToolTable(), ToolTable()
    tool("only-here", table=one)
    assert "only-here" not in other
    assert cognitive_tools.names() == before


def test_a_copy_goes_its_own_way() -> None:
    table = ToolTable((tool("a"),))
    copy = table.copy()
    tool("b", table=copy)
    assert table.names() == ["a"]


# The hash


def test_equal_tables_have_equal_hashes_whatever_the_order() -> None:
    tools = [tool(name) for name in "abc"]
    hashes = {ToolTable(tuple(order)).schema_hash for order in itertools.permutations(tools)}
    assert len(hashes) == 1


VISIBLE: list[dict[str, Any]] = [
    {"effects": ["reads"]},
    {"effects": ["writes"]},
    {"cost": "cheap"},
    {"gate": True},
    {"gate_failure": "open"},
    {"cooldown": 1},
    {"daily_limit": 1},
    {"timeout": 5},
    {"tag": "RESEARCH"},
    {"allow_repeat": True},
    {"shown": False},
    {"no_background": True},
    {"ends_turn": True},
    {"free_text": True},
    {"free_text": []},
    {"free_text": ["body"]},
    {"params": {"x": {"role": "destination"}}},
    {"params": {"x": {"secret": True}}},
    {"params": {"x": {"default": "", "hidden": True}}},
    {"params": {"x": {"type": dict, "default": {"a": 1, "b": 2}}}},
    {"params": {"x": {"type": dict, "default": {"b": 2, "a": 1}}}},
    {"guard": lambda: True},
    {"params": {"x": {}}},
    {"params": {"x": {"type": int}}},
    {"params": {"x": {"doc": "it"}}},
    {"params": {"x": {"default": "a"}}},
    {"params": {"x": {"choices": ["a"]}}},
    {"params": {"x": {"type": int, "min": 1}}},
    {"params": {"x": {}}, "examples": ['(probe :x "1")']},
]


def test_every_visible_change_changes_the_hash() -> None:
    tables = [ToolTable((tool(**change),)) for change in [{}, *VISIBLE]]
    tables.append(ToolTable((dataclasses.replace(tool(), description="Another."),)))
    tables.append(ToolTable((tool("other"),)))
    tables.append(ToolTable())
    hashes = [table.schema_hash for table in tables]
    assert len(set(hashes)) == len(hashes)


def test_the_hash_follows_a_registration() -> None:
    table = ToolTable((tool("a"),))
    before = table.schema_hash
    tool("b", table=table)
    assert table.schema_hash != before
    assert table.schema_hash == ToolTable((tool("b"), tool("a"))).schema_hash


def test_what_a_model_is_not_shown_does_not_change_the_hash_but_the_version() -> None:
    one, other = tool(body=lambda: 1), tool(body=lambda: 2, source="(…)")
    assert ToolTable((one,)).schema_hash == ToolTable((other,)).schema_hash
    assert one.version != other.version


# The tool itself


def test_a_tool_cannot_be_called_like_a_function() -> None:
    ran: list[int] = []
    said = complaint(TypeError, lambda: tool(body=lambda: ran.append(1))())
    assert said == "probe is called through the door: agent.call('(probe …)')."
    assert not ran


def test_the_signature_reads_like_a_call() -> None:
    params: dict[str, dict[str, Any]] = {
        "pattern": {"type": str},
        "path": {"type": str, "default": "."},
        "mode": {"choices": ["a", "b"], "default": "a"},
        "note": {"type": str | None, "default": None},
        "many": {"type": list[int]},
    }
    assert tool(params=params).signature() == (
        '(probe :pattern str [:path str = "."] [:mode "a" | "b" = "a"] [:note str or None] :many list of int)'
    )


DEFINITIONS: list[tuple[dict[str, Any], str]] = [
    ({"name": "Bad"}, "Bad: a tool's name is lower-case letters, digits and hyphens."),
    ({"name": "1a"}, "1a: a tool's name is lower-case letters, digits and hyphens."),
    ({"name": "a\n"}, "a\n: a tool's name is lower-case letters, digits and hyphens."),
    ({"name": 3}, "3: a tool's name is lower-case letters, digits and hyphens."),
    ({"description": " "}, f"x needs a description: {THE_MODEL_CHOOSES_BY_IT}."),
    ({"description": None}, f"x needs a description: {THE_MODEL_CHOOSES_BY_IT}."),
    (
        {"effects": ("reds",)},
        "x: unknown effect :reds; the effects are "
        ":reads, :writes, :runs, :net, :memory, :messages, :asks, :deletes, :pays.",
    ),
    ({"cost": "dear"}, "x: :cost is :free, :cheap or :expensive, not :dear."),
    ({"gate_failure": "ajar"}, "x: :gate-failure is :closed or :open."),
    ({"timeout": 0}, f"x: :{TIMEOUT_IS_A_NUMBER_OF}."),
    ({"timeout": "5"}, f"x: :{TIMEOUT_IS_A_NUMBER_OF}."),
    ({"timeout": float("nan")}, f"x: :{TIMEOUT_IS_A_NUMBER_OF}."),
    ({"timeout": True}, f"x: :{TIMEOUT_IS_A_NUMBER_OF}."),
    ({"cooldown": -1}, "x: :cooldown and :daily-limit are not negative."),
    ({"daily_limit": float("nan")}, "x: :cooldown and :daily-limit are not negative."),
    ({"daily_limit": "3"}, "x: :cooldown and :daily-limit are numbers."),
    ({"gate": "no"}, "x: :gate is True or False."),
    ({"allow_repeat": 1}, "x: :allow-repeat is True or False."),
    ({"ends_turn": "yes"}, "x: :ends-turn is True or False."),
    ({"shown": "no"}, "x: :shown is True or False."),
    ({"replace": None}, "x: :replace is True or False."),
]


@pytest.mark.parametrize(("fields", "sentence"), DEFINITIONS)
def test_a_wrong_definition_is_told_in_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    whole = {"name": "x", "description": "A tool."} | fields
    assert complaint(DefinitionError, lambda: CognitiveTool(**whole)) == sentence


@given(st.text(max_size=12))
def test_a_name_is_accepted_just_when_it_is_canonical(name: str) -> None:
    try:
        made = CognitiveTool(name, "A tool.")
    except DefinitionError:
        return
    assert form(f"({name})").tool == made.name == name


def test_a_tool_has_the_outline_that_older_sessions_were_opened_with() -> None:
    params: dict[str, dict[str, Any]] = {
        "path": {"type": WorkspacePath, "default": "."},
        "paths": {"type": list[WorkspacePath]},
        "limit": {"type": int | None, "default": None},
        "sort": {"choices": ["a", "b"]},
        "code": {"type": Code},
        "data": {"type": dict[str, Any], "secret": True},
    }
    assert tool(params=params, body=lambda **given: 1).outline == "e3d5e38116e2e933"


def test_the_hash_is_that_of_the_entries_whatever_becomes_of_the_table() -> None:
    table = ToolTable(tool(name) for name in "bd")
    hidden = table.hiding(["b"])
    for change in (
        lambda: tool("a", table=table),
        lambda: tool("c", table=table),
        lambda: table.permit({"c": ["ann"]}),
        lambda: hidden.permit({"d": ["ben"]}),
        lambda: tool("b", table=table, replace=True, effects=["writes"]),
    ):
        change()
        assert table.schema_hash == hidden.schema_hash == schema_hash(table.entries)
        assert table.copy().schema_hash == table.schema_hash
    assert table.names() == ["a", "b", "c", "d"]
