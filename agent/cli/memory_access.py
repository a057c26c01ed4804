"""Opens the memory of an agent for the commands of a person, and says what a block is on one line.

Knows options and the store of the workspace; it must not know what a command does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.agent.cli.common import open_store
from quoth.agent.cli.options import Options, option
from quoth.agent.terminal.input import is_inside
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.tools.call.service_types import Block
    from quoth.tools.storage.database import Store

T = TypeVar("T")
LABEL = "the label of a block"


@dataclass(init=False, repr=False, eq=False)
class MemoryOptions(Options):
    groups = "memory asking"
    agent: str | None = option("--agent", "ID", "whose memory (default: agent)")


@contextmanager
def opened(
    options: MemoryOptions, *, changes: bool = False, searches: bool = False
) -> Iterator[tuple[Any, Store]]:
    """The memory of the agent, for a person, and the store of the workspace. Where that has none, one that
    only looks gets an empty one. Raises UsageError."""
    from quoth.neuro.embed.select import choose_embedder, embedder_named
    from quoth.tools.memory.checks import checked_label
    from quoth.tools.memory.opening import open_memory
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    if changes and is_inside():
        raise UsageError("A program that a tool runs cannot change what is remembered this way.")
    checked_label("agent" if options.agent is None else options.agent, "The name of an agent")
    checked_label(options.asker, "The name of a user")
    with open_store(options, lists=not changes) as found, ExitStack() as ending:
        store = found
        if store is None:
            makes = changes and not options.memory_url
            store = Store(store_path(options.folder) if makes else ":memory:")
            ending.callback(store.close)
        opened_store = store
        memory = open_memory(
            options.memory_url,
            lambda: opened_store,
            options.agent or "agent",
            user=options.asker,
            embedder=choose_embedder() if searches else None,
            older=embedder_named,
            person=True,
        )
        if close := getattr(memory, "close", None):
            ending.callback(close)
        yield memory, store


def asked_of(options: MemoryOptions, work: Callable[[Any], Awaitable[T]], **how: bool) -> T:
    """What ``work`` gets of the memory."""

    async def done() -> T:
        with opened(options, **how) as (memory, _):
            if options.agent and not how.get("changes"):
                await _known(memory, options.agent)
            return await work(memory)

    return waited(done())


async def _known(memory: Any, agent: str) -> None:
    """Raise UsageError if that agent has no blocks, and others have."""
    agents = dict.fromkeys(one[0] for one in await memory.usage())
    if agents and agent not in agents and not await memory.list_shared_blocks():
        are = "are" if len(agents) > 1 else "is"
        raise UsageError(f"No agent {agent} has blocks here; there {are}: {', '.join(agents)}.")


def waited(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns, in an event loop of its own."""
    import asyncio  # here: it takes longer than the help does

    return asyncio.run(work)


async def block_of(memory: Any, label: str) -> Block:
    """The block of that label. Raises ToolError that names the nearest."""
    await memory.persist_block(label)
    block: Block = await memory.get_block(label)
    return block


def as_listed(block: Block) -> dict[str, Any]:
    """A block as JSON data without its text."""
    from quoth.tools.memory.transfer import FIELDS

    owner = {"owner": block.owner} if block.owner else {}
    return {name: getattr(block, name) for name in FIELDS} | {"size": len(block.text)} | owner


def as_row(block: Block) -> list[str]:
    """A block as the cells of a table, without its text."""
    from quoth.agent.session.render import minute

    more = [f"of {block.owner}" if block.owner else "", " ".join(block.description.split())]
    return [
        block.label,
        block.kind,
        block.permission,
        f"{len(block.text):,} of {block.limit:,}",
        f"v{block.version}",
        minute(block.updated),
        "  ".join(part for part in more if part),
    ]


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows as lines whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def in_words(block: Block) -> str:
    """What there is to say of a block beside its label and its text."""
    size = f"{len(block.text):,} of {block.limit:,} characters"
    return f"{block.kind}, {block.permission}, {size}, version {block.version}"


def whole_number(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise UsageError(f"{name} takes a whole number, not {text}.")
    return int(text)
