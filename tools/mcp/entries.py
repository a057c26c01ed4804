"""The trusted tools of a server as entries of a table.

A name is ``SERVER--TOOL`` in kebab case. What a server says of a tool, in descriptions, titles and all texts
of its schemas, is data: capped, with invisible and misleading characters escaped, and marked with the
server's name. Its annotations allow nothing. Effects are ``:net :writes``, unless the person's own rules say
what this tool does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import DefinitionError
from quoth.tools.mcp import results
from quoth.tools.mcp.pins import CHECKED, GET_PROMPT, OFFERED, READ_RESOURCE, Fields, ServerPins, ToolPin
from quoth.tools.mcp.relay import RELAY, relayed
from quoth.tools.mcp.servers import LiveServer, LiveServers
from quoth.tools.policy.model import EffectsOf
from quoth.tools.registry.define import tool_from_schema
from quoth.tools.registry.openai_schema import LONGEST_NAME
from quoth.tools.registry.schema_params import SchemaParams, own_name
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import ServedTool
from quoth.tools.registry.whole_schema import WholeSchema
from quoth.tools.text import short
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.mcp.connection import Connection

DEFAULT_EFFECTS = ("net", "writes")  # unknown: it asks
MAX_DESCRIPTION = 4_000  # characters, of a tool
MAX_TEXT = 1_000  # characters of any other text
TIMEOUT = 330.0  # seconds of a call, with the start of its server; the server's own deadlines are below it

State = str | None  # of a server, with which a request continues
Answers = Mapping[str, Any] | None  # to its questions
Effects = Mapping[str, Iterable[EffectsOf]]  # the person's statements, by the name of the tool


def entry_name(server: str, tool: str) -> str:
    """The name of a server's tool in a table: ``getIssue`` of github is ``github--get-issue``."""
    return f"{server}--{own_name(tool)}"


def escaped(text: str, most: int = MAX_TEXT) -> str:
    """A server's text for models and people: capped, with an escape for each misleading character."""
    return visible(short(text, most), lines=True)


def cleaned(value: Any) -> Any:
    """Data with all its texts escaped. Not for a schema: its texts are compared, and registry/plain_schema.py
    shows none that misleads."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() and len(value) <= MAX_TEXT else escaped(value)
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    return value


def stated_effects(effects: Effects, name: str, pin: ToolPin) -> tuple[tuple[str, ...], str]:
    """The effects of a pinned tool, and the place of the person's rule that says so; empty for none."""
    return _stated(effects, name, pin.digest, renewed=pin.renewed)


def _stated(effects: Effects, name: str, digest: str, *, renewed: bool) -> tuple[tuple[str, ...], str]:
    for said in effects.get(name, ()):
        if said.counts(digest, renewed=renewed):
            return said.effects, str(said.place)
    return DEFAULT_EFFECTS, ""


def schema_fault(fields: Fields) -> str:
    """Why the schemas of a tool cannot be used, as a clause with its full stop; empty if they can."""
    try:
        SchemaParams(fields.get("inputSchema", {}))
        if "outputSchema" in fields:
            WholeSchema(fields["outputSchema"])
    except DefinitionError as error:
        return escaped(str(error))
    except RecursionError:
        return "its JSON Schema is nested too deeply."
    return ""


def described(server: str, text: str) -> str:
    """A description, marked with the name of the server whose words it is."""
    return f"MCP server {server}: {escaped(text.strip(), MAX_DESCRIPTION) or 'no description.'}"


def refused_names(server: str, tools: Iterable[str], taken: Callable[[str], str]) -> dict[str, str]:
    """The tools of a server that can have no entry, by their names there, each with the reason. ``taken`` is
    the owner of a name in the table, as a clause; empty if it is free."""
    names = {tool: entry_name(server, tool) for tool in tools}
    counted = Counter(names.values())
    found = {}
    for tool, name in names.items():
        shown = visible(short(tool, 100))
        if name == f"{server}--":
            found[tool] = (
                f"{shown} of the MCP server {server} is left out: its name has no letters or digits."
            )
        elif len(name) > LONGEST_NAME:
            found[tool] = (
                f"{shown} of the MCP server {server} is left out: its name here, {short(name, 100)}, has"
                f" {len(name)} characters; at most {LONGEST_NAME} are possible."
            )
        elif counted[name] > 1:
            others = [visible(short(one, 100)) for one in names if names[one] == name and one != tool]
            found[tool] = (
                f"{shown} of the MCP server {server} is left out: {name} would also be the name of its tool"
                f" {others[0]}."
            )
        elif owner := taken(name):
            found[tool] = f"{shown} of the MCP server {server} is left out: there is a tool {name} {owner}."
    return found


def with_servers(table: ToolTable, servers: LiveServers, effects: Effects) -> ToolTable:
    """A copy of the table with the trusted tools of the servers. Their notes get the tools that have no
    entry."""
    table = table.copy()
    for server in servers.servers:
        if (pins := server.pins) is not None:
            servers.notes += Entries(server, pins, effects).add_to(table)
    return table


class Entries:
    """Makes the entries of one server. ``effects`` are the statements of the person's own rules."""

    def __init__(self, server: LiveServer, pins: ServerPins, effects: Effects) -> None:
        self._server, self._pins, self._effects = server, pins, effects
        self._name = server.config.name
        self._checked = pins.checked == CHECKED  # else a version with other bounds has checked the schemas

    def add_to(self, table: ToolTable) -> list[str]:
        """Add the entries to a table. Returns a sentence for each tool that is left out."""

        def taken(name: str) -> str:
            return table.get(name).origin if name in table else ""

        refused = refused_names(self._name, self._pins.tools, taken)
        notes = list(refused.values())
        for name, pin in self._pins.tools.items():
            if name in refused:
                continue
            if not (fault := pin.fault if self._checked else schema_fault(pin.fields)):
                table.register(self._tool(pin))
                continue
            notes.append(f"{visible(name)} of the MCP server {self._name} is left out: {fault}")
        for tool in self._more():
            if tool.name not in table:  # a server's own tool of that name wins
                table.register(tool)
        return notes

    def _tool(self, pin: ToolPin) -> CognitiveTool:
        server, hides = self._server, "writeOnly" in pin.text or "password" in pin.text

        async def body(arguments: dict[str, Any], call: Call, ctx: ToolContext) -> Any:
            async def send(one: Connection, start: int, state: State, answers: Answers) -> Any:
                more: dict[str, Any] = {"start": start, "state": state, "answers": answers}
                return await one.call(
                    pin.name, arguments, on_progress=relay.progress if relay else None, **more
                )

            relay = RELAY.get()
            answer = await server.call(pin.name, pin.digest, send, call, ctx)
            relayed(answer, call, ctx, secret=hides)
            return results.value_of(answer, ctx, self._name, declared=pin.declares)

        return self._entry(
            entry_name(self._name, pin.name),
            pin.about,
            lambda: pin.fields["inputSchema"],
            ServedTool(self._name, pin.name, pin.digest, pin.says),
            body,
            renewed=pin.renewed,
            hides=hides,
            output_schema=(lambda: pin.fields["outputSchema"]) if pin.declares else None,
            free_text=None if pin.declares else True,
        )

    def _entry(
        self,
        name: str,
        description: str,
        schema: Callable[[], Fields],
        served: ServedTool,
        body: Callable[..., Any],
        *,
        renewed: bool = False,
        hides: bool = False,
        **more: Any,
    ) -> CognitiveTool:
        """An entry; its guard denies what the pins deny now, before a person is asked. ``hides``: a parameter
        of it may be secret, so that its schema is read now."""
        effects, _ = _stated(self._effects, name, served.digest, renewed=renewed)

        async def guard() -> Any:  # else it would run in a thread
            from quoth.tools.call.call import deny

            why = self._server.refusal(served.tool, served.digest)
            return deny(why) if why else True

        return tool_from_schema(
            name,
            described(self._name, description),
            schema() if hides else schema,
            effects=effects,
            body=body,
            served=served,
            timeout=TIMEOUT,
            _guard=guard,
            **more,
        )

    # Resources and prompts

    def _more(self) -> Iterator[CognitiveTool]:
        """The entries for the server's resources and prompts, if it offers these."""
        bodies = {READ_RESOURCE: self._read, GET_PROMPT: self._prompt}
        for name, digest in self._pins.offered.items():
            fields = OFFERED[name]
            yield self._entry(
                entry_name(self._name, name),
                fields["description"],
                lambda fields=fields: fields["inputSchema"],  # type: ignore[misc]
                ServedTool(self._name, "", digest),
                partial(bodies[name], digest),
                free_text=True,
            )

    async def _read(self, digest: str, arguments: dict[str, Any], call: Call, ctx: ToolContext) -> Any:
        async def send(one: Connection, start: int, state: State, answers: Answers) -> Any:
            if uri := arguments.get("uri"):
                return await one.read_resource(uri, state=state, answers=answers)
            return [*(await one.resources()), *(await one.resource_templates())]

        answer = await self._server.call("", digest, send, call, ctx)
        if isinstance(answer, list):
            return [_listed(one) for one in answer]
        relayed(answer, call, ctx)
        return results.resources(answer.contents, ctx)

    async def _prompt(self, digest: str, arguments: dict[str, Any], call: Call, ctx: ToolContext) -> Any:
        async def send(one: Connection, start: int, state: State, answers: Answers) -> Any:
            if name := arguments.get("name"):
                given = arguments.get("arguments", {})
                return await one.get_prompt(name, given, state=state, answers=answers)
            return await one.prompts()

        answer = await self._server.call("", digest, send, call, ctx)
        if isinstance(answer, list):
            return [_listed(one) for one in answer]
        relayed(answer, call, ctx)
        return [
            {"role": one.role, "content": results.parts_of([one.content], ctx)} for one in answer.messages
        ]


_LISTED = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "arguments")


def _listed(one: Any) -> dict[str, Any]:
    """A resource or prompt of a list as data."""
    said = one.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {key: cleaned(said[key]) for key in _LISTED if key in said}
