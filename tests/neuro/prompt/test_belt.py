"""The belt: what a model is told of the tools. The wording is the first seed's; equal tables, equal texts."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import agent, belt_of, complaint, files, load, tool

from quoth.neuro.prompt.belt import JSON_VIEWS, VIEWS, BeltCatalog, belt, belt_json
from quoth.tools.builtin import search_tools
from quoth.tools.errors import ToolError, UnknownToolError, UsageError
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.openai_schema import strict_schema, wire_name
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.parameters import REQUIRED, Tag
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

belt_module = import_module("quoth.neuro.prompt.belt")

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
        "  Parameters: [form {:type form}]\n"
        "\n"
        "- look: A tool for a test.\n"
        '  Parameters: [path {:type str :doc "Where"} limit {:type int :default 50}]\n'
        '  Example: (:target :tool :action :call :tool "look" :args (:path "src"))\n'
        "\n"
        "- rest: A tool for a test.\n"
        "  Parameters: []\n"
    )


KINDS = {
    "many": {"type": list[str] | None, "default": None},
    "places": {"type": list[WorkspacePath]},
    "counts": {"type": dict[str, list[int]], "doc": "How many"},
    "word": {"type": Literal["a", "b"], "default": "a"},
    "size": {"type": str, "choices": ["S", "M"]},
    "value": {"type": Any, "default": None},
    "share": {"type": float, "min": 0, "max": 1.5, "default": 0.5},
}


def test_the_plist_view_prints_parameters_as_the_macro_reads_them(tmp_path: Path) -> None:
    tools = [*cognitive_tools.shown, tool("kinds", params=KINDS)]
    shown = dict(re.findall(r"^- ([\w-]+):.*\n  Parameters: (.*)$", belt_of(*tools, view="plist"), re.M))
    written = [f'(def-cognitive-tool {name} "X." :parameters {shown[name]} :body 1)' for name in shown]
    text = "\n".join(["(require quoth [def-cognitive-tool])", *written])
    read = load(files(tmp_path, {"my.hy": text}) / "my.hy")
    assert {one.name: _as_shown(one) for one in read} == {one.name: _as_shown(one) for one in tools}


def _as_shown(tool: CognitiveTool) -> list[Any]:
    """What of its parameters a model is told; choices are a Literal's values, too."""
    return [
        (
            one.name,
            type(get_args(one.type)[0]) if get_origin(one.type) is Literal else one.type,
            one.choices or (get_args(one.type) if get_origin(one.type) is Literal else ()),
            (one.doc, one.default, one.min, one.max),
        )
        for one in tool.offered
    ]


@pytest.mark.parametrize("view", VIEWS)
def test_the_order_of_registration_does_not_show(view: str) -> None:
    texts = {belt_of(*order, view=view) for order in itertools.permutations(three())}
    assert len(texts) == 1


@pytest.mark.parametrize("view", VIEWS)
def test_a_change_of_anything_shown_does_show(view: str) -> None:
    plain = belt_of(tool("look", params=PATH, tag="LOOK"), view=view)
    assert belt_of(tool("look", params=PATH, tag="PEEK"), view=view) != plain or view != "tags"
    assert belt_of(tool("peek", params=PATH, tag="LOOK"), view=view) != plain or view == "tags"
    if view != "bare":  # which shows no parameters
        assert belt_of(tool("look", params=PATH | LIMIT, tag="LOOK"), view=view) != plain
        whence = {"path": {"type": str, "doc": "Whence"}}
        assert belt_of(tool("look", params=whence, tag="LOOK"), view=view) != plain


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "tags"])
def test_every_tool_is_named(view: str) -> None:
    text = belt_of(*three(), view=view)
    assert all(name in text for name in ("add", "look", "rest"))
    assert all(name in text for name in ("form", "path", "limit")) or view == "bare"


@pytest.mark.parametrize("view", ["lisp", "plist", "run", "bare"])
def test_a_description_of_many_lines_stays_on_one(view: str) -> None:
    table = ToolTable((tool("rest"),))
    with_lines = CognitiveTool("rest", "A tool\n\n   for a   test.")
    assert belt(ToolTable((with_lines,)), view) == belt(table, view)


def test_the_tags_view_shows_the_tools_that_have_a_tag() -> None:
    research = tool(
        "research",
        params={"query": {"type": str, "doc": "Search query"}, "limit": {"type": int, "default": 3}},
        tag="RESEARCH",
    )
    learning = tool(
        "learning",
        params={"category": {"type": str, "choices": ["factual", "style"]}, "content": {"type": str}},
        tag="LEARNING",
    )
    _, *tools = belt_of(research, learning, tool("rest"), view="tags").split("\n\n")
    assert tools == [
        "LEARNING: [factual|style] [content]\n"
        "  A tool for a test.\n"
        '  Parameters: category "factual" | "style", content str',
        "RESEARCH: [query]\n  A tool for a test.\n  Parameters: query str (Search query), limit int = 3\n",
    ]


def test_the_tags_view_spells_the_examples_as_lines_except_where_the_tag_has_a_pattern() -> None:
    look = tool("look", params=PATH, tag="LOOK", examples=['(look :path "a.txt")', '(look :path " b")'])
    assert belt_of(look, view="tags").endswith('  Example: LOOK: a.txt\n  Example: LOOK: {"path": " b"}\n')
    bound = replace(look, tag=Tag("LOOK", "at (.+)", example="LOOK: at a.txt"))
    assert "Example:" not in belt_of(bound, view="tags")


def test_the_bare_view_is_one_line_a_tool_and_in_full_those_that_tell_of_the_others() -> None:
    long = CognitiveTool("long", "See the e.g. first sentence only. " + "And more. " * 50)
    longer = CognitiveTool("longer", "word " * 50)
    head, describe, search, lines = belt_of(*search_tools(), long, longer, view="bare").split("\n\n")
    assert head.startswith("AVAILABLE TOOLS:\n")
    assert describe.startswith("- describe: ")
    assert "Parameters: :name str" in describe
    assert search.startswith("- search-tools: ")
    assert lines.splitlines() == [
        "- long: See the e.g.",
        "- longer: " + "word " * 21 + "word…",
    ]


def test_a_view_is_built_once_for_equal_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[ToolTable] = []
    monkeypatch.setitem(VIEWS, "lisp", lambda table: str(built.append(table)))
    tables = [ToolTable((tool("once-built"),)), ToolTable((tool("once-built"),))]
    for table in tables * 2:
        belt(table)
    assert built == tables[:1]
    tables[1].register(tool("another-one"))
    belt(tables[1])
    assert built == tables


def test_what_is_built_is_bounded() -> None:
    for number in range(200):
        belt(ToolTable((tool(f"tool-{number}"),)))
    assert len(belt_module._built) <= belt_module.MOST_BUILT


# JSON views


def test_the_openai_view_is_strict() -> None:
    (shown,) = json.loads(belt_of(three()[0], view="openai"))
    assert shown == {
        "type": "function",
        "function": {
            "name": "look",
            "description": "A tool for a test.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Where"},
                    "limit": {"type": ["integer", "null"], "description": "(default 50)"},
                },
                "required": ["path", "limit"],
                "additionalProperties": False,
            },
            "strict": True,
        },
    }


@pytest.mark.parametrize("hint", [list, dict, Any, list[dict[str, int]], dict[str, int]])
def test_open_arguments_cannot_be_strict(hint: Any) -> None:
    (shown,) = json.loads(belt_of(tool("odd", params={"data": {"type": hint}}), view="openai"))
    assert shown["function"]["strict"] is False
    assert shown["function"]["parameters"]["required"] == ["data"]


def test_the_responses_view_is_the_openai_view_with_the_function_in_the_tool_itself() -> None:
    (chat,), (shown,) = (json.loads(belt_of(three()[0], view=view)) for view in ("openai", "responses"))
    assert shown == {"type": "function", **chat["function"]}


def test_the_anthropic_view() -> None:
    (shown,) = json.loads(belt_of(three()[0], view="anthropic"))
    assert shown == {
        "name": "look",
        "description": "A tool for a test.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where"},
                "limit": {"type": "integer", "default": 50},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    }


@pytest.mark.parametrize(
    ("options", "read_only", "destructive", "open_world"),
    [
        ({}, True, False, False),
        ({"effects": ["reads"]}, True, False, False),
        ({"effects": ["reads", "writes"]}, False, True, False),
        ({"effects": ["memory"]}, False, False, False),
        ({"effects": ["messages"]}, False, False, True),
        ({"effects": ["net"]}, False, False, True),
        ({"effects": ["runs"]}, False, True, True),
        ({"params": {"form": {"type": Code}}}, False, True, True),
    ],
)
def test_the_mcp_view_tells_what_a_tool_may_do(
    options: dict[str, Any], read_only: bool, destructive: bool, open_world: bool
) -> None:
    (shown,) = json.loads(belt_of(tool("look", **options), view="mcp"))
    assert list(shown) == ["name", "description", "inputSchema", "annotations"]
    assert shown["annotations"] == {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": read_only,
        "openWorldHint": open_world,
    }


@dataclass
class Found:
    """What a search returns."""

    path: Path
    lines: list[int]


@pytest.mark.parametrize(
    ("returns", "schema"),
    [
        (
            Found,
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "format": "path"},
                    "lines": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["path", "lines"],
                "additionalProperties": False,
                "description": "What a search returns.",
            },
        ),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            list[str],
            {
                "type": "object",
                "properties": {"result": {"type": "array", "items": {"type": "string"}}},
                "required": ["result"],
                "x-fastmcp-wrap-result": True,
            },
        ),
        (
            Found | None,
            {
                "type": "object",
                "properties": {"result": {"anyOf": [ANY, {"type": "null"}]}},
                "required": ["result"],
                "x-fastmcp-wrap-result": True,
            },
        ),
    ],
)
def test_the_mcp_view_tells_what_a_tool_returns(returns: Any, schema: dict[str, Any]) -> None:
    (shown,) = json.loads(belt_of(tool("look", returns=returns), view="mcp"))
    assert shown["outputSchema"] == schema


def test_an_agent_gives_its_tool_list_as_objects(tmp_path: Path) -> None:
    with agent(tmp_path) as own:
        shown = own.belt("mcp")
        assert isinstance(shown, list)
        assert [one["name"] for one in shown] == own.table.shown.names()
        assert own.belt() == belt(own.table, "lisp")
        assert "There is no view mpc" in complaint(UsageError, lambda: own.belt("mpc"))


def test_a_name_too_long_for_a_provider_is_cut_and_stays_its_own() -> None:
    names = {"a" * 64: "a" * 64, "a" * 65: "", "a" * 64 + "b": ""}
    shown = {name: wire_name(name) for name in names}
    assert shown["a" * 64] == "a" * 64
    assert len(set(shown.values())) == 3
    assert all(len(name) <= 64 and re.fullmatch(r"[a-zA-Z0-9_-]+", name) for name in shown.values())


def test_no_view_holds_a_reference() -> None:
    import_module("quoth.tools.builtin")
    for view in JSON_VIEWS:
        assert "$ref" not in belt(cognitive_tools, view)


# Every schema of every type a parameter may have, by OpenAI's rules.

types = st.recursive(
    st.sampled_from([str, int, float, bool, Literal["a", "b"], Literal[1]]),
    lambda inner: st.one_of(inner.map(lambda hint: list[hint]), inner.map(lambda hint: hint | None)),  # type: ignore[valid-type]
    max_leaves=4,
)


@given(hints=st.lists(st.tuples(types, st.booleans()), max_size=4))
def test_a_strict_schema_keeps_the_rules(hints: list[tuple[Any, bool]]) -> None:
    params = {
        f"p{place}": {"type": hint, "doc": "D", **({"default": None} if optional else {})}
        for place, (hint, optional) in enumerate(hints)
    }
    schema = tool("any-tool", params=params).schema
    strict = strict_schema(schema)
    assert strict is not None
    broken = []
    pending: list[Any] = [strict]
    while pending:
        node = pending.pop()
        broken += [key for key in node if key in ("$ref", "default", "allOf", "oneOf", "title")]
        if node.get("type") == "object":
            assert node["required"] == list(node["properties"])
            assert node["additionalProperties"] is False
            pending += node["properties"].values()
        pending += [*node.get("anyOf", ()), *([node["items"]] if "items" in node else [])]
    assert broken == []
    for place, (_, optional) in enumerate(hints):
        node = strict["properties"][f"p{place}"]
        assert not optional or "null" in str(node)


# Looking tools up


def catalog() -> BeltCatalog:
    import_module("quoth.tools.builtin")
    return BeltCatalog(ToolTable((*cognitive_tools.tools(), *search_tools())))


def found(words: str, limit: int) -> list[str]:
    return asyncio.run(catalog().search(words, limit))


def test_the_catalog_describes_a_tool_as_the_lisp_view_does() -> None:
    assert catalog().describe("Read_File") in belt(cognitive_tools)
    with pytest.raises(UnknownToolError, match=r"There is no tool named red-file\. Did you mean read-file\?"):
        catalog().describe("red-file")


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("read a text file", "read-file"),
        ("searching regular expressions", "grep-search"),
        ("listing folders", "list-files"),
        ("run programs", "eval"),
    ],
)
def test_the_catalog_finds_tools_by_words(words: str, first: str) -> None:
    assert found(words, 3)[0].startswith(f"- {first}: ")


def test_a_search_without_a_hit_finds_nothing_and_never_more_than_asked() -> None:
    assert found("xylophone", 10) == []
    assert len(found("file", 2)) == 2


def test_of_very_many_tools_a_belt_to_search_lists_some_and_says_how_many_more() -> None:
    many = ToolTable((*(tool(f"t{number:04}") for number in range(1500)), *search_tools()))
    *_, last, more = belt(many, "bare").splitlines()
    assert (last, more) == ("- t0199: A tool for a test.", "… and 1,300 more, which search-tools finds.")
    assert "- describe: " in belt(many, "bare")


class Kinds:
    """A model for which all texts with one of these words are one, and all others another."""

    name, dimensions = "kinds", 2
    texts = 0

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.texts += len(texts)
        fruit = [float(any(word in text for word in ("fruit", "apples", "pears"))) for text in texts]
        return [array("f", [one, 1 - one]).tobytes() for one in fruit]


def meant(words: str, model: Any, *tools: str) -> list[str]:
    """The names that are found for the words, of these tools."""
    table = ToolTable(tuple(map(tool, tools)))
    lines = asyncio.run(BeltCatalog(table, lambda: model).search(words, 5))
    return [line.removeprefix("- ").removesuffix(": A tool for a test.") for line in lines]


def test_with_a_model_for_it_the_catalog_finds_tools_by_meaning_and_by_words_first() -> None:
    assert meant("apples", None, "count-fruit", "probe") == []
    assert meant("apples", Kinds(), "count-fruit", "probe") == ["count-fruit"]
    assert meant("the apples", Kinds(), "count-fruit", "see-apples", "the") == ["see-apples", "count-fruit"]


def test_the_tools_are_given_to_the_model_once() -> None:
    model = Kinds()
    catalog = BeltCatalog(ToolTable((tool("count-fruit"), tool("probe"))), lambda: model)
    for words in ("apples", "pears"):
        assert len(asyncio.run(catalog.search(words, 5))) == 1
    assert model.texts == 2 + 2


def test_where_the_model_fails_words_are_searched() -> None:
    class Broken(Kinds):
        async def embed(self, texts: Sequence[str]) -> list[bytes]:
            raise ToolError("The model cannot be loaded.")

    assert meant("apples", Broken(), "count-fruit", "see-apples") == ["see-apples"]


def test_choices_are_shown_instead_of_their_type() -> None:
    odd = tool("odd", params={"kind": {"type": str, "choices": ["a", "b"], "default": "a"}})
    assert '  Parameters: :kind "a" | "b" = "a"\n' in belt_of(odd)


def test_a_parameter_whose_default_is_nothing_may_be_left_out() -> None:
    maybe = tool("maybe", params={"name": {"type": str | None, "default": None}})
    needed = tool("maybe", params={"name": {"type": str | None, "default": REQUIRED}})
    assert belt_of(maybe) != belt_of(needed)


def test_an_empty_table_is_still_a_belt() -> None:
    assert belt_of().startswith("AVAILABLE TOOLS:\n")


THE_VIEWS = "the views are lisp, plist, json, tags, run, bare, openai, responses, anthropic, mcp."


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        ("lips", f"There is no view lips; {THE_VIEWS} Did you mean lisp?"),
        ("xml", f"There is no view xml; {THE_VIEWS}"),
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
    assert belt_json(table, "mcp")["belt"] == json.loads(belt(table, "mcp"))


@pytest.mark.parametrize("view", VIEWS)
def test_echo_is_for_tests_and_stands_in_no_belt(view: str) -> None:
    import_module("quoth.tools.builtin")
    assert "echo" in cognitive_tools
    assert "read-file" in cognitive_tools.shown
    assert '"echo"' not in belt(cognitive_tools, view)
    assert "- echo:" not in belt(cognitive_tools, view)
