"""The command ``quoth memory``: what an agent remembers, as a person sees and changes it.

Knows options and output; the work is in tools/memory. What only looks makes no store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.agent.cli.common import open_store, read_text, text_of, write_new
from quoth.agent.cli.options import DONE, FAILED, Commands, Options, argument, option, switch
from quoth.agent.terminal.output import can_print, complain, print_json, print_line
from quoth.agent.terminal.person import is_inside
from quoth.tools.errors import UsageError
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.tools.call.service_types import Block, SearchHit
    from quoth.tools.memory.transfer import Carried
    from quoth.tools.storage.database import Store

T = TypeVar("T")
LABEL = "the label of a block"
BEGIN = """\
Nothing is remembered here yet. An agent remembers with (block :operation "append" :label "preferences" :content
"…"), and you with: quoth memory edit preferences --new"""


@dataclass(init=False, repr=False, eq=False)
class MemoryOptions(Options):
    agent: str = option("--agent", "ID", "whose memory (default: agent)", default="agent")


@dataclass(init=False, repr=False, eq=False)
class ListOptions(MemoryOptions):
    kind: str | None = option("--kind", "KIND", "only core, working or archival blocks")


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
    until: str = option("--until", "DATE", "only what is older than this", default="")
    scope: str = option("--scope", "SCOPE", "agent: its own; shared: of others; all", default="all")
    explain: bool = switch("--explain", "what each score is the sum of")


@dataclass(init=False, repr=False, eq=False)
class EditOptions(MemoryOptions):
    label: str = argument("LABEL", LABEL)
    text: str | None = option("--text", "TEXT", "the new text; - reads it from stdin (default: your editor)")
    permission: str | None = option(
        "--permission", "NAME", "read_only, partner, human, append, read_write or admin"
    )
    kind: str | None = option("--kind", "KIND", "core: in every prompt; working; archival: only found")
    limit: str | None = option("--limit", "N", "the most characters it may have (0: as its kind)")
    description: str | None = option("--description", "TEXT", "what it is for")
    new: bool = switch("--new", "make it; without --kind a core block")


@dataclass(init=False, repr=False, eq=False)
class ForgetOptions(MemoryOptions):
    labels: Sequence[str] = argument("LABEL", LABEL, nargs="+")


@dataclass(init=False, repr=False, eq=False)
class ExportOptions(MemoryOptions):
    file: str = argument("FILE", "where to write it (default: stdout)", nargs="?", default="-")
    format: str | None = option("--format", "FORMAT", "org or json (default: org, with --json json)")
    history: bool = switch("--history", "with the earlier texts")


@dataclass(init=False, repr=False, eq=False)
class ImportOptions(MemoryOptions):
    file: str = argument("FILE", "what quoth memory export wrote, or a person; - reads stdin")
    replace: bool = switch("--replace", "in place of the blocks that are there")


def add(commands: Commands) -> None:
    memory = commands.group("memory", "See, search and change what is remembered.")
    memory.add("list", "List the blocks.", ListOptions, list_blocks)
    memory.add("show", "Show the text of a block.", ShowOptions, show)
    memory.add("search", "Search blocks and conversations.", SearchOptions, search)
    about = "Edit a block, or make one. Only this makes a block human, partner or admin."
    memory.add("edit", about, EditOptions, edit)
    memory.add("forget", "Remove blocks with all their earlier texts.", ForgetOptions, forget)
    memory.add("export", "Write all blocks as an Org file, or as JSON.", ExportOptions, export)
    memory.add("import", "Take in what an export wrote: all of it, or nothing.", ImportOptions, import_blocks)
    memory.add("status", "Show how much is remembered, and how it is searched.", MemoryOptions, status)


@contextmanager
def opened(options: MemoryOptions, *, changes: bool = False) -> Iterator[tuple[Any, Store]]:
    """The memory of the agent, for a person, and the store of the workspace. Where that has none, one that
    only looks gets an empty one. Raises UsageError."""
    from quoth.tools.memory.opening import open_memory
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    if changes and is_inside():
        raise UsageError("A program that a tool runs cannot change what is remembered this way.")
    with open_store(options) as found:
        store = found or Store(store_path(options.folder) if changes else ":memory:")
        try:
            yield open_memory(None, lambda: store, options.agent, user=options.asker, person=True), store
        finally:
            store.close()


def asked_of(options: MemoryOptions, work: Callable[[Any], Awaitable[T]], *, changes: bool = False) -> T:
    """What ``work`` gets of the memory."""

    async def done() -> T:
        with opened(options, changes=changes) as (memory, _):
            return await work(memory)

    return asyncio.run(done())


# Looking


def list_blocks(options: ListOptions) -> int:
    """Print the blocks, one a line."""

    async def found(memory: Any) -> list[Block]:
        shared = await memory.list_shared_blocks()
        kind = options.kind
        return [*await memory.list_blocks(kind), *(one for one in shared if kind in (None, one.kind))]

    blocks = asked_of(options, found)
    if options.json:
        print_json([as_listed(block) for block in blocks])
        return DONE
    if not blocks:
        complain(f"There is no {options.kind} block." if options.kind else BEGIN.replace("\n", " "))
    width = max((len(block.label) for block in blocks), default=0)
    for block in blocks:
        print_line(f"{block.label:<{width}}  {_told(block)}")
    return DONE


def as_listed(block: Block) -> dict[str, Any]:
    """A block as JSON data without its text."""
    from quoth.tools.memory.transfer import FIELDS

    owner = {"owner": block.owner} if block.owner else {}
    return {name: getattr(block, name) for name in FIELDS} | {"size": len(block.text)} | owner


def _told(block: Block) -> str:
    """What there is to say of a block beside its text, on one line."""
    from quoth.agent.session.render import minute

    parts = [
        f"{block.kind:<8}",
        f"{block.permission:<10}",
        f"{len(block.text):,} of {block.limit:,}",
        f"v{block.version}",
        minute(block.updated),
        f"of {block.owner}" if block.owner else "",
        " ".join(block.description.split()),
    ]
    return "  ".join(part for part in parts if part.strip())


def show(options: ShowOptions) -> int:
    """Print the text of a block; what else there is to say of it goes to stderr."""
    from quoth.agent.session.render import minute

    async def found(memory: Any) -> tuple[Block, Any]:
        block = await _block(memory, options.label)
        return block, await memory.history(options.label) if options.history else []

    block, versions = asked_of(options, found)
    if options.json:
        from quoth.tools.memory.transfer import Carried, as_json

        print_json(as_json(Carried(block, versions)) | {"size": len(block.text)})
        return DONE
    print_line(block.text)
    complain(f"{_told(block)}, by {block.by}".replace("  ", " "))
    for one in versions:
        complain(f"version {one.version}, {minute(one.at)}, by {one.by}:")
        print_line(one.text)
    return DONE


async def _block(memory: Any, label: str) -> Block:
    """The block of that label. Raises ToolError that names the nearest."""
    await memory.persist_block(label)
    block: Block = await memory.get_block(label)
    return block


def search(options: SearchOptions) -> int:
    """Print what was found, the best first."""
    from quoth.tools.call.service_types import SearchOptions as Wanted
    from quoth.tools.call.service_types import check_scope

    wanted = Wanted(_number("--limit", options.limit), options.domain, options.since, options.until)  # type: ignore[arg-type]
    check_scope(options.scope)
    query = text_of(options.query)
    hits: list[SearchHit] = asked_of(options, lambda memory: memory.search(query, options.scope, wanted))
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
    from quoth.agent.session.render import minute, title

    of = f"of {hit.owner}" if hit.owner else ""
    about = ", ".join(part for part in (hit.source, minute(hit.at) if hit.at else "", of) if part)
    lines = [f"{hit.label}  ({about})", f"  {title(hit.text, 300)}"]
    if explained:
        parts = " + ".join(f"{name} {value:.3f}" for name, value in hit.parts.items())
        lines.append(f"  {hit.score:.3f} = {parts}" if parts else f"  {hit.score:.3f}")
    return "\n".join(lines)


def status(options: MemoryOptions) -> int:
    raise NotImplementedError


# Changing


def edit(options: EditOptions) -> int:
    """Change a block, or make one; without any option its text is edited in the person's editor."""
    given: dict[str, Any] = {
        name: value
        for name in ("permission", "kind", "description")
        if (value := getattr(options, name)) is not None
    }
    if options.limit is not None:
        given["limit"] = _number("--limit", options.limit)
    if options.text is not None:
        given["text"] = text_of(options.text).removesuffix("\n" if options.text == "-" else "")
    with opened(options, changes=True) as (memory, _):
        if options.new:
            return _make(options, memory, given)
        before = asyncio.run(_block(memory, options.label))
        if before.owner:
            raise UsageError(f"{before.label} belongs to {before.owner}: --agent {before.owner}")
        if given:
            return _changed(options, memory, before, given)
        code = DONE

        def use(text: str) -> None:
            nonlocal code
            if text.strip() and text != before.text:
                code = _changed(options, memory, before, {"text": text})
            else:
                complain("The text is empty; nothing was changed." if not text.strip() else "Nothing was changed.")

        from quoth.agent.terminal.editor import edited

        edited(before.text, before.label, use)
        return code


def _make(options: EditOptions, memory: Any, given: dict[str, Any]) -> int:
    from quoth.agent.terminal.editor import edited

    given = {"kind": "core"} | given
    if asyncio.run(memory.get_block(options.label)) is not None:
        raise UsageError(f"There is a block {options.label} already; leave --new out to edit it.")

    def use(text: str) -> None:
        if not text.strip():
            complain("The text is empty; no block was made.")
            return
        block = asyncio.run(memory.create_block(options.label, **given | {"text": text}))
        _say("Made", block, options.json)

    use(given["text"]) if "text" in given else edited("", options.label, use)
    return DONE


def _changed(options: EditOptions, memory: Any, before: Block, given: dict[str, Any]) -> int:
    block = asyncio.run(memory.edit_block(before.label, **given))
    _say("Changed" if block.version != before.version else "It is so already:", block, options.json)
    return DONE


def _say(what: str, block: Block, as_json: bool) -> None:
    if as_json:
        print_json(as_listed(block))
    else:
        print_line(f"{what} {block.label}: {' '.join(_told(block).split())}.")


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise UsageError(f"{name} takes a whole number, not {text}.")
    return int(text)


def forget(options: ForgetOptions) -> int:
    """Remove blocks, after a person has confirmed it, and say what the records still hold of them."""
    from quoth.agent.terminal.ask import confirmed
    from quoth.tools.memory.traces import traces
    from quoth.tools.visible import visible

    labels = list(dict.fromkeys(options.labels))
    with opened(options, changes=True) as (memory, store):
        for label in labels:
            block = asyncio.run(_block(memory, label))
            if block.owner:
                raise UsageError(f"{label} belongs to {block.owner}: --agent {block.owner}")
        what = f"{', '.join(visible(label) for label in labels)}, with all earlier texts"
        if not (options.yes or confirmed(f"Forget {what}?", no_input=options.no_input)):
            complain("Nothing was forgotten.")
            return FAILED
        for label in labels:
            asyncio.run(memory.forget(label))
        left = {label: traces(store, label) for label in labels}
    if options.json:
        found = [{"label": label, "calls": of.calls, "sessions": [*of.sessions]} for label, of in left.items()]
        print_json({"forgotten": found})
        return DONE
    print_line(f"Forgot {what}.")
    for label, of in left.items():
        if of.sessions:
            complain(
                f"The transcripts of {number_of(len(of.sessions), 'session')} still name {label}; to remove them:"
                f" {options.typed('rm', *of.sessions)}"
            )
        if of.calls:
            complain(
                f"The audit still names {label} in {number_of(of.calls, 'call')}; it is kept whole, and goes"
                f" only with all else that is in {store.path}."
            )
    return DONE


# Taking elsewhere


def export(options: ExportOptions) -> int:
    """Print all blocks of the agent, or write them into a new file."""
    from quoth.tools.memory.transfer import Carried, as_json, as_org

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
        print_line(text.removesuffix("\n"))
    else:
        write_new(Path(options.file), text)
        complain(f"Wrote {number_of(len(every), 'block')} to {options.file}.")
    return DONE


def import_blocks(options: ImportOptions) -> int:
    """Take in the blocks of a file."""
    from quoth.tools.memory.transfer import read_carried

    every = read_carried(read_text(options.file), "stdin" if options.file == "-" else options.file)
    new, replaced = asked_of(
        options, lambda memory: memory.import_blocks(every, replace=options.replace), changes=True
    )
    if options.json:
        print_json({"new": new, "replaced": replaced})
        return DONE
    said = [number_of(len(new), "new block")] if new or not replaced else []
    print_line(" and ".join([*said, *([f"{len(replaced)} replaced"] if replaced else [])]) + ".")
    return DONE
