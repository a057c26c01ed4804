"""The pages of the memory: the blocks of each agent, and one block with its earlier texts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any
from urllib.parse import quote, urlencode

from quoth.agent.markup import Child, Html, el, html
from quoth.agent.session.html import MOST_CHARS, drawn_difference, pairs
from quoth.agent.session.render import minute
from quoth.agent.session.undo import difference
from quoth.agent.view.page import ViewPage, ViewPlace, Visit
from quoth.agent.view.sessions import table
from quoth.tools.call.service_types import Block, BlockVersion
from quoth.tools.errors import UsageError
from quoth.tools.text import number_of, short

LIST = "/view/memory"
MOST = 200  # blocks in the list
VERSIONS = 20  # earlier texts of one block


def require_owner(visit: Visit) -> None:
    """Raise UsageError unless the visitor is the owner of the workspace: these pages show all users."""
    if visit.desk.owner not in visit.users:
        raise UsageError(f"The key {visit.visitor.name} sees its own sessions and requests only.")


def memory(visit: Visit) -> ViewPage:
    """The blocks of all agents in this workspace, or in its database of the memory."""
    require_owner(visit)
    parts: list[Child] = []
    for agent, count, rows in asyncio.run(_outlines(visit)):
        heads = ("label", "kind", "permission", "characters", "version", "changed", "by", "about")
        parts += [
            el("h2", f"Agent {agent}"),
            table(f"Blocks of {agent}", heads, [_row(agent, row) for row in rows]),
        ]
        if count > MOST:
            parts.append(
                el("p", f"{number_of(count - MOST, 'more block')}: ", el("code", "quoth memory list"))
            )
    how = el("p", "The memory in this workspace is empty.")
    return ViewPage("Memory", html(el("h1", "Memory"), parts or how), live=True)


async def _outlines(visit: Visit) -> list[tuple[str, int, Sequence[Sequence[Any]]]]:
    """The agents, with the number of their blocks and the first of these."""
    with visit.desk.memory("agent") as every:
        counts = Counter[str]()
        for agent, _, blocks, _ in await every.usage() if every is not None else ():
            counts[agent] += blocks
    found = []
    for agent, count in counts.items():
        with visit.desk.memory(agent) as own:
            found.append((agent, count, await own.outline(MOST)))
    return found


def _row(agent: str, found: Sequence[Any]) -> list[Child]:
    """A row of the outline of a memory."""
    label, kind, permission, size, version, updated, writer, about = found
    link = el("a", label, href=f"{LIST}/{quote(agent, safe='')}?{urlencode({'label': label})}")
    when = el("time", minute(updated), datetime=updated)
    return [link, kind, permission, f"{size:,}", str(version), when, writer, short(about, 200)]


def block(visit: Visit) -> ViewPage:
    """One block: its text, and what each change has changed."""
    require_owner(visit)
    agent, label = visit.params["agent"], visit.query.get("label", "")

    async def read() -> tuple[Block | None, Sequence[BlockVersion]]:
        with visit.desk.memory(agent) as own:
            found = await own.get_block(label) if own is not None else None
            return found, await own.history(label) if found is not None else ()

    found, earlier = asyncio.run(read())
    if found is None:
        raise UsageError(f"The agent {short(agent, 80)} has no block {short(label, 80)}.")
    told: dict[str, Child] = {
        "agent": agent,
        "kind": found.kind,
        "permission": found.permission,
        "about": found.description,
        "characters": f"{len(found.text):,} of {found.limit:,}",
        "version": f"{found.version}, {minute(found.updated)}, by {found.by}",
    }
    body = html(
        el("h1", label), pairs(told), el("h2", "Its text"), _text(found.text), _history(found, earlier)
    )
    return ViewPage(f"Memory: {short(label, 80)}", body, live=True)


def _text(text: str) -> Html:
    if not text:
        return el("p", "It is empty.", class_="quiet")
    more = len(text) - MOST_CHARS
    rest = (
        el("p", f"… {number_of(more, 'more character')}. All of it: quoth memory show") if more > 0 else None
    )
    return html(el("pre", text[:MOST_CHARS]), rest)


def _lines(text: str) -> bytes:
    """A text as a file with whole lines."""
    return f"{text}\n".encode(errors="replace")


def _history(found: Block, earlier: Sequence[BlockVersion]) -> Html | None:
    """The changes, the latest first, each as the difference from the text before it."""
    if not earlier:
        return None
    versions = [BlockVersion(found.version, found.text, found.updated, found.by), *earlier]
    parts: list[Child] = []
    for new, old in islice(pairwise(versions), VERSIONS):
        head = el("summary", f"Version {new.version}, {minute(new.at)}, by {new.by}")
        change = difference(found.label, _lines(old.text), _lines(new.text))
        parts.append(el("details", head, drawn_difference(change), id=f"v{new.version}"))
    if len(earlier) > VERSIONS:
        parts.append(
            el("p", f"{number_of(len(earlier) - VERSIONS, 'older version')}: quoth memory show --history")
        )
    return el("section", el("h2", "Its changes, the latest first"), parts)


PLACES = (
    ViewPlace(LIST, memory, "Memory"),
    ViewPlace(f"{LIST}/{{agent:path}}", block),
)
