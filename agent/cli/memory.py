"""The commands ``quoth memory``: see, search and change what is remembered.

Knows their options and output, and the block on one line; what is changed, by an editor or from a file, is in
memory_changes.py. The work is in tools/memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.agent.cli.common import open_store, text_of, write_new
from quoth.agent.cli.options import DONE, Options, argument, option, switch
from quoth.agent.session.render import minute, title
from quoth.agent.terminal.input import is_inside
from quoth.agent.terminal.output import can_print, complain, print_data, print_json, print_line
from quoth.neuro.embed.select import VARIABLE, choose_embedder, embedder_named, wants_none
from quoth.tools.call.service_types import SearchOptions as Wanted
from quoth.tools.call.service_types import bounds, check_scope
from quoth.tools.errors import UsageError
from quoth.tools.memory.transfer import FIELDS, Carried, as_json, as_org
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.tools.call.service_types import Block, SearchHit
    from quoth.tools.memory.transfer import Carried
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
    from quoth.tools.memory.checks import checked_label
    from quoth.tools.memory.sqlite import open_memory
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

    owner = {"owner": block.owner} if block.owner else {}
    return {name: getattr(block, name) for name in FIELDS} | {"size": len(block.text)} | owner


def as_row(block: Block) -> list[str]:
    """A block as the cells of a table, without its text."""

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


BEGIN = (
    'Nothing is remembered here yet. An agent does it with (block :operation "append" :label "preferences"'
    ' :content "…"), you with: quoth memory edit preferences --new'
)


@dataclass(init=False, repr=False, eq=False)
class ListOptions(MemoryOptions):
    of_kind: str | None = option("--kind", "KIND", "only core, working or archival blocks")


@dataclass(init=False, repr=False, eq=False)
class ShowOptions(MemoryOptions):
    label: str = argument("LABEL", LABEL)
    history: bool = switch("--history", "its earlier texts too")


@dataclass(init=False, repr=False, eq=False)
class SearchOptions(MemoryOptions):
    query: str = argument("QUERY", "the words to look for, or a question; - reads it from stdin")
    domain: str = option("--domain", "DOMAIN", "archival_memory, conversations or all", default="all")
    limit: str = option("--limit", "N", "at most so many (default: 10)", default="10")
    since: str = option("--since", "DATE", "nothing older: 2026-01-31 or 2026-01-31T09:30", default="")
    until: str = option("--until", "DATE", "nothing newer: a day, with all of it, or a time", default="")
    scope: str = option("--scope", "SCOPE", "agent: its own; shared: of others; all", default="all")
    explain: bool = switch("--explain", "what each score is the sum of")


@dataclass(init=False, repr=False, eq=False)
class ExportOptions(MemoryOptions):
    file: str = argument("FILE", "where to write it (default: stdout)", nargs="?", default="-")
    format: str | None = option("--format", "FORMAT", "org or json (default: org, with --json json)")
    history: bool = switch("--history", "with the earlier texts")


# Looking


def list_blocks(options: ListOptions) -> int:
    """Print the blocks, one a line."""

    async def found(memory: Any) -> list[Block]:
        shared = await memory.list_shared_blocks()
        kind = options.of_kind
        return [*await memory.list_blocks(kind), *(one for one in shared if kind in (None, one.kind))]

    blocks = asked_of(options, found)
    if options.json:
        print_json([as_listed(block) for block in blocks])
        return DONE
    if not blocks:
        complain(f"There is no {options.of_kind} block." if options.of_kind else BEGIN)
    for line in table([as_row(block) for block in blocks]):
        print_line(line)
    return DONE


def show(options: ShowOptions) -> int:
    """Print the text of a block; what else there is to say of it goes to stderr."""

    async def found(memory: Any) -> tuple[Block, Any]:
        block = await block_of(memory, options.label)
        return block, await memory.history(options.label) if options.history else []

    block, versions = asked_of(options, found)
    if options.json:
        print_json(as_json(Carried(block, versions)) | {"size": len(block.text)})
        return DONE
    print_line(block.text)
    about = f"; {_in_line(block.description)}" if block.description else ""
    complain(f"{in_words(block)}, {minute(block.updated)}, by {_in_line(block.by)}{about}")
    for one in versions:
        complain(f"version {one.version}, {minute(one.at)}, by {_in_line(one.by)}:")
        print_line(one.text)
    return DONE


def _in_line(text: str) -> str:
    return " ".join(text.split())


def search(options: SearchOptions) -> int:
    """Print what was found, the best first."""
    from quoth.tools.memory.passages import is_behind

    times = bounds(options.since, options.until, ("--since", "--until"))
    wanted = Wanted(whole_number("--limit", options.limit), options.domain, *times)  # type: ignore[arg-type]
    check_scope(options.scope)
    query = text_of(options.query)
    with opened(options, searches=True) as (memory, store):
        hits: list[SearchHit] = waited(memory.search(query, options.scope, wanted))
        if is_behind(store):
            complain("The store may only be read; what is newer than its last search is not found.")
    if options.json:
        print_json([_hit(hit) for hit in hits])
        return DONE
    if not hits:
        complain("Nothing was found.")
    for hit in hits:
        print_line(_line(hit, options.explain))
    return DONE


def _hit(hit: SearchHit) -> dict[str, Any]:
    return {name: getattr(hit, name) for name in ("label", "text", "score", "source", "at", "owner")} | {
        "parts": dict(hit.parts)
    }


def _line(hit: SearchHit, explained: bool) -> str:

    of = f"of {hit.owner}" if hit.owner else ""
    about = ", ".join(part for part in (hit.source, minute(hit.at) if hit.at else "", of) if part)
    lines = [f"{hit.label}  ({about})", f"  {title(hit.text, 300)}"]
    if explained:
        parts = " + ".join(f"{name} {value:.3f}" for name, value in hit.parts.items())
        lines.append(f"  {hit.score:.3f} = {parts}" if parts else f"  {hit.score:.3f}")
    return "\n".join(lines)


def status(options: MemoryOptions) -> int:
    """Print how much each agent remembers, how it is searched, and where it is kept."""

    async def found() -> tuple[list[tuple[str, str, int, int]], dict[str, Any]]:
        with opened(options, searches=True) as (memory, store):
            usage = [one for one in await memory.usage() if options.agent in (None, one[0])]
            return usage, await how_kept(memory, store, options.memory_url)

    usage, kept = waited(found())
    if wants_none():
        kept["missing"] = f"{VARIABLE} is none, so that only words are searched."
    if options.json:
        names = ("agent", "kind", "blocks", "characters")
        print_json({"agents": [dict(zip(names, one, strict=True)) for one in usage], **kept})
        return DONE
    if not usage:
        print_line("Nothing is remembered here yet.")
    rows = [
        [agent, kind, number_of(blocks, "block"), f"{number_of(chars, 'character')}"]
        for agent, kind, blocks, chars in usage
    ]
    for line in table(rows) if rows else ():
        print_line(line)
    print_line(f"It is kept in {kept['place']}.")
    model = f" and by meaning ({kept['model']})" if kept["model"] and not kept["missing"] else ""
    print_line(f"It is searched by words{model}.")
    if "passages" in kept:
        told = f"{kept['passages']:,} passages, {kept['embedded']:,} of them with a vector"
        waiting = f"; {number_of(kept['waiting'], 'block')} to be indexed by the next search"
        print_line(f"Index: {told}{waiting if kept['waiting'] else ''}.")
    if kept["missing"]:
        complain(kept["missing"])
    return DONE


async def how_kept(memory: Any, store: Store, url: str | None) -> dict[str, Any]:
    """Where the memory is, and the state of its index, as JSON data."""
    if url:
        from quoth.tools.memory.postgres_search import missing
        from quoth.tools.memory.postgres_server import shown_url

        model = memory.embedder.name if memory.embedder is not None else ""
        return {"place": shown_url(url), "model": model, "missing": await missing(memory)}
    from quoth.tools.memory.search import status as status_of

    place = "no store yet" if store.path == ":memory:" else str(store.path)
    return {"place": place, **vars(status_of(store, memory.embedder))}


# Taking elsewhere


def export(options: ExportOptions) -> int:
    """Print all blocks of the agent, or write them into a new file."""

    form = options.format or ("json" if options.json else "org")
    if form not in ("org", "json"):
        raise UsageError(f"There is no format {form}; use org or json.")

    async def found(memory: Any) -> list[Carried]:
        return [
            Carried(block, await memory.history(block.label) if options.history else [])
            for block in await memory.list_blocks()
        ]

    every = asked_of(options, found)
    if form == "json" and options.file == "-":
        print_json([as_json(one) for one in every])
        return DONE
    if form == "json":
        import json

        text = json.dumps([as_json(one) for one in every], ensure_ascii=False, indent=1) + "\n"
    else:
        text = as_org(every)
    if options.file == "-":
        if not can_print(text):
            raise UsageError("Standard output is not UTF-8; name a file: quoth memory export FILE")
        print_data(text.removesuffix("\n"))
    else:
        write_new(Path(options.file), text)
        complain(f"Wrote {number_of(len(every), 'block')} to {options.file}.")
    return DONE
