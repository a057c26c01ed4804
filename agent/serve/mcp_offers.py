"""What a client of the Model Context Protocol can read beside calling tools: sessions and flight plans as
resources, flight plans as prompts, and completions of their names.

The files of plans are listed and read by calls of tools, so that the rules judge them.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from quoth.agent.client import AsyncAgent
from quoth.agent.session.index import summaries, users_of
from quoth.agent.session.render import as_text, title
from quoth.tools.history.outline import SessionRow
from quoth.tools.lisp.forms import CallForm

SESSION, PLAN = "quoth://session/", "quoth://plan/"
PLANS = "plans"  # the folder of flight plans
COMPLETED = 100  # as many names as the protocol allows in one answer
LONGEST = 10_000  # lines of a plan
LIST, READ = "list-files", "read-file"
SUFFIXES = (".org", ".md")

TEMPLATES = [
    types.ResourceTemplate(
        name="session",
        uri_template=f"{SESSION}{{id}}",
        description="The log of a session",
        mime_type="text/plain",
    ),
    types.ResourceTemplate(
        name="plan", uri_template=f"{PLAN}{{name}}", description="A flight plan", mime_type="text/org"
    ),
]


async def plans_of(agent: AsyncAgent) -> list[str]:
    """The names of the files of ``plans/``, if the agent has the tools that list and read them."""
    if not {LIST, READ} <= {*agent.table.names()}:
        return []
    found = await agent.call(CallForm(LIST, {"path": PLANS}), route="mcp")
    names = found.value if found.ok and isinstance(found.value, list) else []
    files = [Path(str(name)) for name in names]
    return [file.name for file in files if file.parent == Path(PLANS) and file.suffix in SUFFIXES]


def marks_of(agent: AsyncAgent) -> dict[str, Hashable]:
    """A mark for each list of a client, which changes when the list may have changed."""
    try:
        files = tuple(sorted(one.name for one in Path(agent.workspace.root, PLANS).iterdir()))
    except OSError:
        files = ()
    return {
        "tools": agent.table.schema_hash,
        "resources": (files, agent.transcript.outline.count()),
        "prompts": files,
    }


async def plan_text(agent: AsyncAgent, name: str) -> str:
    """The text of a flight plan. Raises MCPError if it cannot be read."""
    if name not in await plans_of(agent):
        raise MCPError(types.INVALID_PARAMS, f"There is no flight plan {name} in {PLANS}/.")
    read = await agent.call(CallForm(READ, {"path": f"{PLANS}/{name}", "limit": LONGEST}), route="mcp")
    if not read.ok:
        raise MCPError(types.INVALID_PARAMS, read.message)
    return str(read.value)


def sessions_of(agent: AsyncAgent) -> list[str]:
    """The ids of the sessions of the agent's user, the latest first."""
    found = [id for id, *_ in agent.transcript.sessions()][::-1]
    return [id for id in found if agent.user in users_of(agent.transcript, id)]


async def resources_of(agent: AsyncAgent) -> list[types.Resource]:
    plans = [
        types.Resource(
            name=name, uri=f"{PLAN}{quote(name)}", description="A flight plan", mime_type="text/org"
        )
        for name in await plans_of(agent)
    ]
    mine = {*sessions_of(agent)}
    rows = (SessionRow(*row) for row in agent.transcript.sessions()[::-1] if row[0] in mine)
    return plans + [
        types.Resource(
            name=one.id,
            uri=f"{SESSION}{quote(one.id)}",
            title=title(one.task) or None,
            mime_type="text/plain",
        )
        for one in summaries(agent.store, rows)
    ]


async def read_resource(agent: AsyncAgent, uri: str) -> types.ReadResourceResult:
    """The text of a resource. Raises MCPError for an unknown one."""
    if uri.startswith(PLAN):
        return _text(uri, await plan_text(agent, unquote(uri.removeprefix(PLAN))), "text/org")
    id = unquote(uri.removeprefix(SESSION))
    if not uri.startswith(SESSION) or id not in sessions_of(agent):
        raise MCPError(types.INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
    return _text(uri, "\n".join(as_text([*agent.transcript.events(id)])), "text/plain")


def _text(uri: str, text: str, kind: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=kind)])


async def prompts_of(agent: AsyncAgent) -> list[types.Prompt]:
    return [types.Prompt(name=name, description=f"The flight plan {name}") for name in await plans_of(agent)]


async def prompt_of(agent: AsyncAgent, name: str) -> types.GetPromptResult:
    """A flight plan as the words of a user. Raises MCPError."""
    text = f"Work through this flight plan step by step.\n\n{await plan_text(agent, name)}"
    content = types.TextContent(type="text", text=text)
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def completed(agent: AsyncAgent, params: types.CompleteRequestParams) -> types.CompleteResult:
    """The names of sessions or plans that begin as the argument does."""
    uri = getattr(params.ref, "uri", "")
    known = sessions_of(agent) if uri.startswith(SESSION) else []
    known = await plans_of(agent) if uri.startswith(PLAN) else known
    found = [name for name in known if name.startswith(params.argument.value)]
    return types.CompleteResult(
        completion=types.Completion(
            values=found[:COMPLETED], total=len(found), has_more=len(found) > COMPLETED
        )
    )
