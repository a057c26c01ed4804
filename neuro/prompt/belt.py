"""The tool list (belt): views of the table for a model. Equal tables give equal views, byte for byte. A tool
that is not ``shown`` appears only in the view for programs, and can be looked up; a hidden tool appears in no
view.

The wording "AVAILABLE TOOLS:", the line of each tool and its "Parameters:" come from the first seed (001),
the lines of tags from another (000)."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import mul
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from quoth.tools.errors import ToolError, UsageError, did_you_mean
from quoth.tools.lisp.forms import plist
from quoth.tools.lisp.printer import Code, print_string, print_value
from quoth.tools.registry.arguments import type_schema
from quoth.tools.registry.openai_schema import openai_tool_dict, wire_name
from quoth.tools.registry.param_types import PLAIN, UNIONS, type_name
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.text import short
from quoth.tools.words import STOP_WORDS, stems

if TYPE_CHECKING:
    from quoth.tools.call.services import Embedder
    from quoth.tools.registry.returns import Returns

HEADS = {
    "lisp": "You can call a tool by writing a Lisp form on a line of its own: "
    "(<name> :<parameter> <value> …)",
    "plist": "You can call tools by returning a Lisp plist: "
    "(:target :tool :action :call :tool <name> :args (...))",
    "json": "You can call a tool by writing a JSON object on a line of its own: "
    '{"tool": <name>, "args": {<parameter>: <value>, …}}',
    "tags": "You can call a tool by writing its tag and what it takes on a line of its own: <TAG>: <text>\n"
    "Where that is not enough, write <TAG>: {<parameter>: <value>, …} in JSON.",
    "run": "They are functions in the Lisp programs you run: (<name> :<parameter> <value> …)",
    "bare": "Most have one line here. Before you call one of those, look at it: (describe :name <name>)\n"
    "To find those for a purpose: (search-tools :words <words>)",
}
LONGEST_LINE = 120  # maximum of characters in a tool's line of the bare view
MOST_LINES = 200  # maximum of these lines: a model that searches need not read thousands
NEAREST, FAR = 20.0, 0.1  # the weight of meaning next to words, and the cosine below which it is 0
SEARCH_TOOLS = ("describe", "search-tools")  # shown in full next to the bare lines


def belt(table: ToolTable, view: str = "lisp") -> str:
    """The tool list as text; JSON text for the JSON views. Raises UsageError for an unknown view."""
    if view in TEXT_VIEWS:
        return str(_view(table, view))
    return json.dumps(belt_data(table, view), ensure_ascii=False, indent=2) + "\n"


def few_belt(table: ToolTable, view: str, names: Collection[str]) -> str:
    """The tool list in a text view with the tools of these ``names`` only, and a line with the names of the
    others."""
    rest = [tool.name for tool in table.shown if tool.name not in names]
    return belt(table.where(lambda tool: tool.name in names), view) + (
        f"\n{REST}{', '.join(rest[:MOST_NAMED])}\n" if rest else ""
    )


def few_text(table: ToolTable, names: Sequence[str]) -> str:
    """The message about further tools that fit the next task; empty if there are none."""
    return "\n".join([FITTING, *(_lisp_tool(table.get(name)) for name in names)]) if names else ""


def belt_view(table: ToolTable, view: str = "lisp") -> str | list[dict[str, Any]]:
    """The tool list in a view: text, or a list of objects for a JSON view. Raises UsageError for an unknown
    view."""
    return belt(table, view) if view in TEXT_VIEWS else belt_data(table, view)


def belt_data(table: ToolTable, view: str) -> list[dict[str, Any]]:
    """The tool list in a JSON view as data. Raises UsageError for any other view."""
    data: list[dict[str, Any]] = json.loads(belt_bytes(table, view))
    return data


def belt_bytes(table: ToolTable, view: str) -> bytes:
    """The tool list in a JSON view, serialised for a provider. Raises UsageError for any other view."""
    if view in TEXT_VIEWS:
        raise UsageError(f"The view {view} is text, not JSON.")
    shown = _view(table, view)
    assert isinstance(shown, bytes)
    return shown


def belt_json(table: ToolTable, view: str) -> dict[str, Any]:
    """The tool list of a view with the view's name, the names of the tools and the hash of their schemas."""
    shown = belt_view(table, view)
    seen = _seen(table, view)
    return {"view": view, "schema_hash": seen.schema_hash, "tools": seen.names(), "belt": shown}


# The tool list of a table is built once, and again when its shown tools have changed. With many tables at
# once, the oldest is built again: a view of a hundred tools has about 50 KB.
_built: dict[tuple[str, str], str | bytes] = {}
MOST_BUILT = 64


def _view(table: ToolTable, view: str) -> str | bytes:
    if view not in VIEWS:
        raise UsageError(
            f"There is no view {view}; the views are {', '.join(VIEWS)}." + did_you_mean(view, VIEWS)
        )
    table = _seen(table, view)
    key = (view, table.schema_hash)
    if key not in _built:
        while len(_built) >= MOST_BUILT:
            _built.pop(next(iter(_built)), None)
        _built[key] = VIEWS[view](table)
    return _built[key]


def _seen(table: ToolTable, view: str) -> ToolTable:
    """The tools that a view shows; programs may also use tools that are not for replies."""
    return table.in_programs if view == "run" else table.shown


# Text views


def _bare_view(table: ToolTable) -> str:
    """One line for each tool (local tools first, if there are too many), and the tools that find the others
    in full."""
    known = [tool for tool in table if tool.name in SEARCH_TOOLS]
    others = [tool for tool in table if tool.name not in SEARCH_TOOLS]
    if len(others) > MOST_LINES:
        others.sort(key=lambda tool: (bool(tool.remote), tool.name))
    lines = [_bare_line(tool) for tool in others[:MOST_LINES]]
    if more := others[MOST_LINES:]:
        lines.append(f"… and {len(more):,} more, which search-tools finds.")
    return _text("bare", [*map(_lisp_tool, known), *(["\n".join(lines)] if lines else [])])


def _text(head: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"AVAILABLE TOOLS:\n{HEADS[head]}", *parts]) + "\n"


# As JSON Schema: for OpenAI's two APIs, for Anthropic, for MCP, and one line for each tool for a prompt.
# Every schema is inline (no ``$ref``). The APIs accept every tool name, unless it is too long.


def openai_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    return [openai_tool_dict(tool.entry) for tool in tools]


def responses_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    """As for OpenAI's chat, but the fields of the function are in the tool itself."""
    return [{**tool.pop("function"), **tool} for tool in openai_tools(tools)]


def anthropic_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    return [
        {"name": wire_name(tool.name), "description": tool.description, "input_schema": tool.schema}
        for tool in tools
    ]


def mcp_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    """As MCP lists them: tools by our names, which are unique, and parameters by their wire names."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.schema,
            **({} if tool.returns is None else {"outputSchema": output_schema(tool.returns)}),
            "annotations": hints(tool),
        }
        for tool in tools
    ]


WRAPPED = "x-fastmcp-wrap-result"  # FastMCP's mark, by which its clients unwrap a value


def output_schema(returns: Returns) -> dict[str, Any]:
    """The schema of a declared value for MCP, where it is an object: any other is ``result`` in one."""
    schema = type_schema(returns.type)
    doc = {"description": returns.doc} if returns.doc else {}
    if schema.get("type") == "object":
        return {**schema, **doc}
    properties = {"result": {**schema, **doc}}
    return {"type": "object", "properties": properties, "required": ["result"], WRAPPED: True}


def json_lines(tools: Iterable[CognitiveTool]) -> list[str]:
    """One line of JSON for each tool: its name, description and schema."""
    said = ({"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in tools)
    return [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in said]


def hints(tool: CognitiveTool) -> dict[str, bool]:
    """MCP's annotations, from the effects. A tool that takes a program may have the effects of any tool. A
    call that only reads can be repeated; of any other this is unknown."""
    effects = set(tool.effects)
    if any(param.type is Code for param in tool.offered):
        effects |= {"writes", "runs", "net"}
    changes = bool(effects - {"reads", "asks"})
    return {
        "readOnlyHint": not changes,
        "destructiveHint": bool(effects & {"writes", "runs", "deletes", "pays"}),
        "idempotentHint": not changes,
        "openWorldHint": bool(effects & {"runs", "net", "messages", "pays"}),
    }


TEXT_VIEWS: dict[str, Callable[[ToolTable], str]] = {
    "lisp": lambda table: _text("lisp", map(_lisp_tool, table)),
    "plist": lambda table: _text("plist", map(_plist_tool, table)),
    "json": lambda table: _text("json", ["\n".join(json_lines(table))] if len(table) else []),
    # The other tools cannot be called in this dialect.
    "tags": lambda table: _text("tags", (_tags_tool(tool) for tool in table if tool.tag)),
    # The tools for a program; eval runs it.
    "run": lambda table: _text("run", (_lisp_tool(tool) for tool in table if tool.name != "eval")),
    "bare": _bare_view,
}


def _compact(build: Callable[[ToolTable], Any]) -> Callable[[ToolTable], bytes]:
    return lambda table: json.dumps(build(table), ensure_ascii=False, separators=(",", ":")).encode()


JSON_VIEWS: dict[str, Callable[[ToolTable], bytes]] = {
    "openai": _compact(openai_tools),
    "responses": _compact(responses_tools),
    "anthropic": _compact(anthropic_tools),
    "mcp": _compact(mcp_tools),
}
VIEWS: dict[str, Callable[[ToolTable], str | bytes]] = {**TEXT_VIEWS, **JSON_VIEWS}


# One tool


def _lisp_tool(tool: CognitiveTool) -> str:
    return _tool(tool, ", ".join(map(_lisp_param, tool.offered)) or "none", map(str, tool.examples))


def _lisp_param(param: Param) -> str:
    default = "" if param.required else f" = {print_value(param.default)}"
    doc = f" ({param.doc})" if param.doc else ""
    return f":{param.name} {_kind(param)}{default}{doc}"


def _kind(param: Param) -> str:
    return " | ".join(map(print_value, param.choices)) or type_name(param.type, "str", docs=True)


def _plist_tool(tool: CognitiveTool) -> str:
    examples = (plist(example) for example in tool.examples if not example.positional)
    return _tool(tool, f"[{' '.join(map(_plist_param, tool.offered))}]", examples)


def _tool(tool: CognitiveTool, parameters: str, examples: Iterable[str]) -> str:
    lines = [f"- {tool.name}: {_one_line(tool.description)}", f"  Parameters: {parameters}"]
    if tool.returns is not None:
        lines.append(f"  Returns: {_one_line(str(tool.returns))}")
    return "\n".join([*lines, *(f"  Example: {example}" for example in examples)])


def _plist_param(param: Param) -> str:
    """A parameter as ``def-cognitive-tool`` reads it: ``path {:type str :doc "Where"}``."""
    kind, choices = param.type, param.choices
    if get_origin(kind) is Literal and len({type(one) for one in get_args(kind)}) == 1:
        choices = get_args(kind)
        kind = type(choices[0])
    said: dict[str, Any] = {"doc": param.doc} if param.doc else {}
    said |= {} if param.required else {"default": param.default}
    said |= {"choices": list(choices)} if choices else {}
    said |= {key: value for key in ("min", "max") if (value := getattr(param, key)) is not None}
    spec = "".join(f" :{key} {print_value(value)}" for key, value in said.items())
    return f"{param.name} {{:type {_type_form(kind)}{spec}}}"


def _type_form(hint: Any) -> str:
    """A type in Hy, ``(get list str)``; in words if it needs a class of its author."""
    if hint in PLAIN:
        return PLAIN[hint]
    origin, inner = get_origin(hint), " ".join(map(_type_form, get_args(hint)))
    if origin is list:
        return f"(get list {inner})"
    if origin is dict:
        return f"(get dict #({inner}))"
    return f"(| {inner})" if origin in UNIONS else print_string(type_name(hint, docs=True))


def _tags_tool(tool: CognitiveTool) -> str:
    from quoth.neuro.reading.tag_lines import spell_tag, tag_line  # here: few belts have tags

    lines = [tag_line(tool), f"  {_one_line(tool.description)}"]
    if tool.offered:
        lines.append("  Parameters: " + ", ".join(_lisp_param(param)[1:] for param in tool.offered))
    if tool.tag and not tool.tag.pattern:  # a pattern has its own example
        examples = (spell_tag(tool, example) for example in tool.examples if not example.positional)
        lines += [f"  Example: {example}" for example in examples]
    return "\n".join(lines)


def _bare_line(tool: CognitiveTool) -> str:
    first = re.split(r"(?<=[.!?])\s", _one_line(tool.description), maxsplit=1)[0]
    return short(f"- {tool.name}: {first}", LONGEST_LINE)


def _one_line(text: str) -> str:
    return " ".join(text.split())


# Changes

REST = "Other tools: "
FITTING = "TOOLS: these fit the next task, too."
NEWS = "TOOLS: the tools that you can call have changed."
MOST_SHOWN = 10  # maximum of changed tools shown in full; of others only the names
MOST_NAMED = 100


def news_text(before: ToolTable, now: ToolTable) -> str:
    """The message for a model that knows the tools ``before`` about the tools ``now``; empty if nothing
    changed."""
    old, new = ({tool.name: tool for tool in table.shown} for table in (before, now))
    same = {name for name in old if name in new and old[name] is new[name]}
    kept = [name for name in old if name in new and name not in same]
    changed = [name for name in kept if _told_of(old[name]) != _told_of(new[name])]
    added, gone = [name for name in new if name not in old], [name for name in old if name not in new]
    parts = []
    room = MOST_SHOWN
    for head, names in (("Changed, and called so now:", changed), ("New:", added)):
        if names:
            full, rest = names[:room], names[room:]
            parts.append("\n".join([head, *(_lisp_tool(new[name]) for name in full), *_named(rest)]))
            room -= len(full)
    if gone:
        parts.append("\n".join(["Gone, and cannot be called any more:", *_named(gone)]))
    return "\n\n".join([NEWS, *parts]) if parts else ""


def _told_of(tool: CognitiveTool) -> dict[str, Any]:
    """The description of a tool for a model, without its code."""
    return {name: value for name, value in tool.entry.items() if name != "version"}


def _named(names: Sequence[str]) -> list[str]:
    """The names in one line, if there are any; only the first of many."""
    more = f", and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return [", ".join(names[:MOST_NAMED]) + more] if names else []


# Look-ups in the tool list, for describe and search-tools


class BeltCatalog:
    """The table for the tools ``describe`` and ``search-tools`` (Catalog in tools/call/context.py). It also
    searches by meaning, if ``embedder`` returns a model."""

    def __init__(self, table: ToolTable, embedder: Callable[[], Embedder | None] | None = None) -> None:
        self._table = table.visible
        self._embedder = embedder
        self._vectors: list[Sequence[float]] = []
        self._words: list[tuple[str, ...]] = []  # the result of _words_of for each tool
        self._other: BeltCatalog | None = None

    def of(self, table: ToolTable) -> BeltCatalog:
        """The catalog of another table. The last one is kept, because the vectors of its tools are
        computed."""
        if table.visible is self._table:
            return self
        if self._other is None or self._other._table is not table.visible:
            self._other = BeltCatalog(table, self._embedder)
        return self._other

    def describe(self, name: str) -> str:
        """The full description of one tool. Raises UnknownToolError with the nearest name."""
        return _lisp_tool(self._table.get(name))

    async def search(self, words: str, limit: int) -> list[str]:
        """One line for each of the best matching tools, at most ``limit``; a match in a name counts most,
        then the similarity of meaning."""
        wanted = _wanted(words)
        tools = [tool for tool in self._table if tool.name not in SEARCH_TOOLS]
        near = await self._near(words, tools)
        self._words = self._words or list(map(_words_of, tools))
        scored = [
            (_score(known, wanted) + sure, tool)
            for tool, known, sure in zip(tools, self._words, near, strict=True)
        ]
        found = sorted((-score, tool.name) for score, tool in scored if score)
        return [_bare_line(self._table.get(name)) for _, name in found[:limit]]

    async def _near(self, words: str, tools: Sequence[CognitiveTool]) -> list[float]:
        """The similarity of each tool to the words, from 0 to NEAREST; 0 for all if there is no model or it
        does not answer."""
        embedder = None if self._embedder is None else self._embedder()
        if embedder is None:
            return [0.0] * len(tools)
        try:
            if len(self._vectors) != len(tools):
                texts = [f"{tool.name.replace('-', ' ')}: {_one_line(tool.description)}" for tool in tools]
                self._vectors = [array("f", vector) for vector in await embedder.embed(texts)]
            (asked,) = (array("f", vector) for vector in await embedder.embed([words]))
        except ToolError:
            return [0.0] * len(tools)
        cosines = (sum(map(mul, asked, vector)) for vector in self._vectors)
        return [NEAREST * cosine if cosine >= FAR else 0.0 for cosine in cosines]


def word_scores(table: ToolTable, words: str) -> dict[str, int]:
    """How well each shown tool fits these words: 0 for not at all."""
    wanted = _wanted(words)
    return {tool.name: _score(_words_of(tool), wanted) for tool in table.shown}


def named_by(table: ToolTable, words: str) -> set[str]:
    """The shown tools that have one of these words in their names."""
    wanted = _wanted(words)
    return {tool.name for tool in table.shown if any(word in _words_of(tool)[0] for word in wanted)}


def _wanted(words: str) -> list[str]:
    """The stems of the words that mean something, as _score looks for them."""
    meant = stems(" ".join(word for word in words.split() if word.lower() not in STOP_WORDS))
    return [f" {word} " for word in meant]


WEIGHTS = (4, 2, 1)  # for a word in a name, a description, a parameter


def _words_of(tool: CognitiveTool) -> tuple[str, ...]:
    """The stems of a tool's name, description and parameters, as texts: thousands of sets are slow to
    make."""
    docs = " ".join(f"{param.name} {param.doc}" for param in tool.offered)
    return tuple(f" {' '.join(stems(text))} " for text in (tool.name, tool.description, docs))


def _score(known: tuple[str, ...], wanted: Sequence[str]) -> int:
    return sum(weight for weight, text in zip(WEIGHTS, known, strict=True) for word in wanted if word in text)
