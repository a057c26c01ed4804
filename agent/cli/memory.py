"""The commands ``quoth memory``: show, search and change the memory of agents."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.agent.cli.common import open_store, read_text, text_of, write_new
from quoth.agent.cli.options import DONE, FAILED, Actions, Options, argument, option, switch
from quoth.agent.session.render import minute, title
from quoth.agent.settings import whole_number
from quoth.agent.terminal.input import edited, is_inside
from quoth.agent.terminal.output import can_print, complain, print_data, print_json, print_line, print_table
from quoth.neuro.embed.select import VARIABLE, choose_embedder, embedder_named, wants_none
from quoth.tools.call.service_types import Block, SearchHit, SearchOptions, bounds, check_scope
from quoth.tools.errors import UsageError
from quoth.tools.memory.transfer import FIELDS, Carried, as_json, as_org, names, read_carried, traces
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.tools.storage.database import Store


T = TypeVar("T")
LABEL = "the label of a block"


class MemoryOptions(Options):
    groups = "memory asking"
    agent: str | None = option("--agent", "ID", "the agent whose memory it is (default: agent)")


@contextmanager
def opened(
    options: MemoryOptions, *, changes: bool = False, searches: bool = False
) -> Iterator[tuple[Any, Store]]:
    """The agent's memory as a person may use it, and the store of the workspace. If the workspace has no
    store and ``changes`` is false, it is an empty one in memory. Raises UsageError."""
    from quoth.tools.memory.checks import checked_label
    from quoth.tools.memory.sqlite import open_memory
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    if changes and is_inside():
        raise UsageError("A program that a tool runs cannot change the memory with this command.")
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
    """The result of ``work`` on the memory."""

    async def done() -> T:
        with opened(options, **how) as (memory, _):
            if options.agent and not how.get("changes"):
                await _known(memory, options.agent)
            return await work(memory)

    return waited(done())


async def _known(memory: Any, agent: str) -> None:
    """Raise UsageError if that agent has no blocks but others have."""
    agents = dict.fromkeys(one[0] for one in await memory.usage())
    if agents and agent not in agents and not await memory.list_shared_blocks():
        raise UsageError(f"The agent {agent} has no blocks here. Agents with blocks: {', '.join(agents)}.")


def waited(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in a new event loop and return its result."""
    import asyncio  # imported here, because the help must be fast

    return asyncio.run(work)


async def block_of(memory: Any, label: str) -> Block:
    """The block with that label. Raises ToolError that names the nearest label."""
    await memory.persist_block(label)
    block: Block = await memory.get_block(label)
    return block


def as_listed(block: Block) -> dict[str, Any]:
    """A block as JSON data without its text."""
    owner = {"owner": block.owner} if block.owner else {}
    return {name: getattr(block, name) for name in FIELDS} | {"size": len(block.text)} | owner


def as_row(block: Block) -> list[str]:
    """A block as the cells of a table, without its text."""
    more = [f"of {block.owner}" if block.owner else "", title(block.description, 500)]
    return [
        block.label,
        block.kind,
        block.permission,
        f"{len(block.text):,} of {block.limit:,}",
        f"v{block.version}",
        minute(block.updated),
        "  ".join(part for part in more if part),
    ]


def in_words(block: Block) -> str:
    """A block's kind, permission, size and version, in words."""
    size = f"{len(block.text):,} of {block.limit:,} characters"
    return f"{block.kind}, {block.permission}, {size}, version {block.version}"


BEGIN = (
    'The memory is empty. An agent adds a block with (block :operation "append" :label "preferences"'
    ' :content "…"), you with: quoth memory edit preferences --new'
)


class MemoryListOptions(MemoryOptions):
    of_kind: str | None = option("--kind", "KIND", "list only blocks of this kind: core, working or archival")


class MemoryShowOptions(MemoryOptions):
    label: str = argument("LABEL", LABEL)
    history: bool = switch("--history", "show its earlier texts too")


class MemorySearchOptions(MemoryOptions):
    query: str = argument("QUERY", "the words to look for, or a question; - reads it from stdin")
    domain: str = option(
        "--domain",
        "DOMAIN",
        "where to search: archival_memory, conversations or all (default: all)",
        default="all",
    )
    limit: int = option(
        "--limit", "N", "maximum number of results (default: 10)", default=10, type=whole_number
    )
    since: str = option(
        "--since", "DATE", "only results since this date or time, 2026-01-31 or 2026-01-31T09:30", default=""
    )
    until: str = option(
        "--until", "DATE", "only results up to the end of this day, or up to this time", default=""
    )
    scope: str = option(
        "--scope",
        "SCOPE",
        "blocks of the agent itself (agent), of others (shared) or all (default: all)",
        default="all",
    )
    explain: bool = switch("--explain", "show how each score is computed")


class MemoryExportOptions(MemoryOptions):
    file: str = argument("FILE", "file to write (default: stdout)", nargs="?", default="-")
    format: str | None = option("--format", "FORMAT", "org or json (default: org, or json with --json)")
    history: bool = switch("--history", "include the earlier texts")


# Showing


def list_blocks(options: MemoryListOptions) -> int:
    """Print the blocks, one per line."""

    async def found(memory: Any) -> list[Block]:
        shared = await memory.list_shared_blocks()
        kind = options.of_kind
        return [*await memory.list_blocks(kind), *(one for one in shared if kind in (None, one.kind))]

    blocks = asked_of(options, found)
    if options.json:
        print_json([as_listed(block) for block in blocks])
        return DONE
    if not blocks:
        complain(f"No block is {options.of_kind}." if options.of_kind else BEGIN)
    print_table([as_row(block) for block in blocks])
    return DONE


def show(options: MemoryShowOptions) -> int:
    """Print the text of a block to stdout, and its other fields to stderr."""

    async def found(memory: Any) -> tuple[Block, Any]:
        block = await block_of(memory, options.label)
        return block, await memory.history(options.label) if options.history else []

    block, versions = asked_of(options, found)
    if options.json:
        print_json(as_json(Carried(block, versions)) | {"size": len(block.text)})
        return DONE
    print_line(block.text)
    about = f"; {title(block.description, 500)}" if block.description else ""
    complain(f"{in_words(block)}, {minute(block.updated)}, by {title(block.by, 500)}{about}")
    for one in versions:
        complain(f"version {one.version}, {minute(one.at)}, by {title(one.by, 500)}:")
        print_line(one.text)
    return DONE


def search(options: MemorySearchOptions) -> int:
    """Print the results, best first."""
    from quoth.tools.memory.passages import is_behind

    times = bounds(options.since, options.until, ("--since", "--until"))
    wanted = SearchOptions(options.limit, options.domain, *times)  # type: ignore[arg-type]
    check_scope(options.scope)
    query = text_of(options.query)
    with opened(options, searches=True) as (memory, store):
        hits: list[SearchHit] = waited(memory.search(query, options.scope, wanted))
        if is_behind(store):
            complain("The store is read-only, so texts newer than its last search are not found.")
    if options.json:
        print_json([_hit(hit) for hit in hits])
        return DONE
    if not hits:
        complain("No results.")
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
    """Print the size of each agent's memory, its kind of search, and its place."""

    async def found() -> tuple[list[tuple[str, str, int, int]], dict[str, Any]]:
        with opened(options, searches=True) as (memory, store):
            usage = [one for one in await memory.usage() if options.agent in (None, one[0])]
            return usage, await how_kept(memory, store, options.memory_url)

    usage, kept = waited(found())
    if wants_none():
        kept["missing"] = f"{VARIABLE} is none, so memory is searched only by words."
    if options.json:
        names = ("agent", "kind", "blocks", "characters")
        print_json({"agents": [dict(zip(names, one, strict=True)) for one in usage], **kept})
        return DONE
    if not usage:
        print_line("The memory is empty.")
    print_table(
        [
            [agent, kind, number_of(blocks, "block"), number_of(chars, "character")]
            for agent, kind, blocks, chars in usage
        ]
    )
    print_line(f"The memory is stored in {kept['place']}.")
    model = f" and by meaning ({kept['model']})" if kept["model"] and not kept["missing"] else ""
    print_line(f"It is searched by words{model}.")
    if "passages" in kept:
        told = f"{kept['passages']:,} passages, {kept['embedded']:,} of them with a vector"
        waiting = f"; the next search indexes {number_of(kept['waiting'], 'block')}"
        print_line(f"Index: {told}{waiting if kept['waiting'] else ''}.")
    if kept["missing"]:
        complain(kept["missing"])
    return DONE


async def how_kept(memory: Any, store: Store, url: str | None) -> dict[str, Any]:
    """The place of the memory and the state of its index, as JSON data."""
    if url:
        from quoth.tools.memory.postgres_server import shown_url

        model = memory.embedder.name if memory.embedder is not None else ""
        return {"place": shown_url(url), "model": model, "missing": await memory.missing()}
    from quoth.tools.memory.search import status as status_of

    place = "no store yet" if store.path == ":memory:" else str(store.path)
    return {"place": place, **vars(status_of(store, memory.embedder))}


# Exporting


def export(options: MemoryExportOptions) -> int:
    """Print all blocks of the agent, or write them to a new file."""
    form = options.format or ("json" if options.json else "org")
    if form not in ("org", "json"):
        raise UsageError(f"Unknown format {form}; use org or json.")

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
        text = json.dumps([as_json(one) for one in every], ensure_ascii=False, indent=1) + "\n"
    else:
        text = as_org(every)
    if options.file == "-":
        if not can_print(text):
            raise UsageError("Standard output is not UTF-8. Give a file: quoth memory export FILE")
        print_data(text.removesuffix("\n"))
    else:
        write_new(Path(options.file), text)
        complain(f"Wrote {number_of(len(every), 'block')} to {options.file}.")
    return DONE


# Changing


class EditOptions(MemoryOptions):
    label: str = argument("LABEL", LABEL)
    text: str | None = option("--text", "TEXT", "new text; - reads it from stdin (default: open your editor)")
    version: int | None = option("--version", "N", "restore the text of version N", type=whole_number)
    permission: str | None = option(
        "--permission",
        "NAME",
        "permission of the block: the agent's permission: read_only, partner, human, append, read_write or "
        "admin",
    )
    of_kind: str | None = option(
        "--kind", "KIND", "core (in every prompt), working or archival (only found by a search)"
    )
    limit: int | None = option(
        "--limit", "N", "maximum number of characters (0: the limit of its kind)", type=whole_number
    )
    description: str | None = option("--description", "TEXT", "what the block is for")
    share: str | None = option(
        "--share",
        "AGENT=NAME",
        "let another agent use it with at most this permission; AGENT= takes that back",
    )
    new: bool = switch("--new", "create the block (a core block unless --kind says otherwise)")


class MemoryForgetOptions(MemoryOptions):
    labels: Sequence[str] = argument("LABEL", LABEL, nargs="+")


class MemoryImportOptions(MemoryOptions):
    file: str = argument("FILE", "file from quoth memory export, or written by hand; - reads stdin")
    replace: bool = switch("--replace", "replace blocks that exist, as their next version")


def edit(options: EditOptions) -> int:
    """Change or create a block; without options, edit its text in the person's editor."""
    typed = {name: getattr(options, name) for name in ("permission", "description", "limit")}
    typed |= {"kind": options.of_kind}
    given: dict[str, Any] = {name: value for name, value in typed.items() if value is not None}
    if options.text is not None:
        given["text"] = text_of(options.text).removesuffix("\n" if options.text == "-" else "")
    with opened(options, changes=True) as (memory, _):
        if options.version is not None and (options.new or options.text is not None):
            raise UsageError("--version restores an earlier text; leave out --text and --new.")
        if options.new:
            return _make(options, memory, given)
        before = waited(block_of(memory, options.label))
        if before.owner:
            raise UsageError(
                f"{before.label} belongs to the agent {before.owner}. Add: --agent {before.owner}"
            )
        if options.share is not None:
            return _shared(options, memory, before, given)
        if options.version is not None:
            given["text"] = _text_of(memory, before, options.version)
        if given:
            return _changed(options, memory, before, given)
        code = DONE

        def use(text: str) -> None:
            nonlocal code
            if text.strip() and text != before.text:
                code = _changed(options, memory, before, {"text": text, "version": before.version})
            else:
                if options.json:
                    print_json(as_listed(before))
                complain(f"{'' if text.strip() else 'The text is empty: '}Nothing was changed.")

        edited(before.text, before.label, use)
        return code


def _make(options: EditOptions, memory: Any, given: dict[str, Any]) -> int:
    if not given.get("text", "x").strip():
        raise UsageError("The text is empty; no block was created.")
    given = {"kind": "core"} | given
    there = waited(memory.get_block(options.label))
    if there is not None and not there.owner:
        raise UsageError(f"The block {options.label} already exists. To edit it, leave out --new.")

    def use(text: str) -> None:
        if not text.strip():
            complain("The text is empty; no block was created.")
            return
        block = waited(memory.create_block(options.label, **given | {"text": text}))
        _say("Created", block, options.json)

    use(given["text"]) if "text" in given else edited("", options.label, use)
    return DONE


def _changed(options: EditOptions, memory: Any, before: Block, given: dict[str, Any]) -> int:
    block = waited(memory.edit_block(before.label, **given))
    _say("Changed" if block.version != before.version else "Nothing to change in", block, options.json)
    return DONE


def _text_of(memory: Any, block: Block, version: int) -> str:
    """The block's text in that version. Raises UsageError for an unknown version."""
    texts: dict[int, str] = {one.version: one.text for one in waited(memory.history(block.label))}
    texts[block.version] = block.text
    if version not in texts:
        has = ", ".join(str(one) for one in sorted(texts))
        raise UsageError(f"{block.label} has no version {version}; it has {has}.")
    return texts[version]


def _shared(options: EditOptions, memory: Any, block: Block, given: dict[str, Any]) -> int:
    """Share the block as ``--share`` says, or stop sharing it."""
    agent, sign, permission = (options.share or "").partition("=")
    if given or not sign:
        raise UsageError(
            "--share takes AGENT=PERMISSION, such as librarian=append, and no other option of edit."
        )
    if permission:
        waited(memory.share_block(block.label, agent, permission))
    else:
        waited(memory.unshare_block(block.label, agent))
    if options.json:
        print_json({"label": block.label, "shares": waited(memory.shares(block.label))})
    elif permission:
        from quoth.tools.memory.checks import may

        print_line(f"Shared {block.label} with the agent {agent}. It may {may(permission)}.")
    else:
        print_line(f"{block.label} is no longer shared with {agent}.")
    return DONE


def _say(what: str, block: Block, as_json: bool) -> None:
    if as_json:
        print_json(as_listed(block))
    else:
        print_line(f"{what} {block.label}: {in_words(block)}.")


def forget(options: MemoryForgetOptions) -> int:
    """Remove blocks after a person confirms it, and print where copies of their texts remain."""
    from quoth.agent.terminal.ask import confirmed
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.consent.broker import Broker
    from quoth.tools.registry.table import ToolTable
    from quoth.tools.visible import visible

    labels = list(dict.fromkeys(options.labels))
    with opened(options, changes=True) as (memory, store):
        texts: set[str] = set()
        for label in labels:
            block = waited(block_of(memory, label))
            if block.owner:
                raise UsageError(f"{label} belongs to the agent {block.owner}. Add: --agent {block.owner}")
            texts.add(block.text.strip())
        what = f"{', '.join(visible(label) for label in labels)}, with all earlier texts"
        if not (options.yes or confirmed(f"Forget {what}?", no_input=options.no_input)):
            complain("Nothing was forgotten.")
            return FAILED
        erased = [waited(memory.forget(label)) for label in labels][-1]
        texts.discard("")
        copies = [one.label for one in waited(memory.list_blocks()) if one.text.strip() in texts]
        asked = [
            (one.id, label)
            for one in Broker(lambda: store, ToolTable(), Workspace(options.folder)).requests()
            for label in labels
            if names(one.form, label)
        ]
        left = {label: traces(store, label) for label in labels}
    if options.json:
        found = [
            {"label": label, "calls": of.calls, "sessions": [*of.sessions]} for label, of in left.items()
        ]
        waiting = [request for request, _ in asked]
        print_json({"forgotten": found, "waiting": waiting, "copies": copies, "erased": erased})
        return DONE
    print_line(f"Forgot {what}.")
    for request, label in asked:
        complain(
            f"A call that names {label} still waits for approval. To deny it: "
            f"{options.typed('deny', request)}"
        )
    if not erased:
        complain("Another process uses the store; until it ends, the file may still contain the text.")
    if copies:
        complain(f"The same text is still in: {', '.join(map(visible, copies))}.")
    for label, of in left.items():
        if of.sessions:
            complain(
                f"The transcripts of {number_of(len(of.sessions), 'session')} still name {label}."
                f" To remove them: {options.typed('rm', *of.sessions)}"
            )
        if of.calls:
            complain(
                f"The audit trail still names {label} in {number_of(of.calls, 'call')}. Its rows are never "
                "removed;"
                f" to remove the trail, delete the whole store {store.path}."
            )
    return DONE


def import_blocks(options: MemoryImportOptions) -> int:
    """Import the blocks of a file."""
    from quoth.tools.storage.file_lock import not_in_use
    from quoth.tools.storage.paths import store_path

    every = read_carried(read_text(options.file), "stdin" if options.file == "-" else options.file)

    async def work(memory: Any) -> tuple[list[str], list[str], list[str]]:
        new, replaced = await memory.import_blocks(every, replace=options.replace)
        given = {one.block.label: one.block.permission for one in every}
        there = {label: (await memory.get_block(label)).permission for label in replaced}
        return new, replaced, [label for label in replaced if there[label] != given[label]]

    store = store_path(options.folder)
    with not_in_use(store) if options.replace else nullcontext():  # a run would continue with the old texts
        new, replaced, kept = asked_of(options, work, changes=True)
    for label in kept:
        complain(
            f"{label} keeps its stricter permission. To change it: quoth memory edit {label} --permission "
            "NAME"
        )
    if options.json:
        print_json({"new": new, "replaced": replaced})
        return DONE
    said = [number_of(len(new), "new block")]
    said += [f"{len(replaced)} replaced"] if replaced else []
    same = len(every) - len(new) - len(replaced)
    said += [f"{same} unchanged"] if same else []
    print_line(f"{', '.join(said)}.")
    return DONE


ACTIONS: Actions = {
    "list": (list_blocks, "List the blocks."),
    "show": (show, "Show the text of a block."),
    "search": (search, "Search blocks and conversations."),
    "edit": (
        edit,
        "Edit or create a block. Only this command sets the permissions human, partner and admin.",
    ),
    "forget": (forget, "Remove blocks with all their earlier texts."),
    "export": (export, "Write all blocks as an Org file, or as JSON."),
    "import": (import_blocks, "Import all blocks of an exported file; if one cannot be imported, none is."),
    "status": (status, "Show how many blocks there are and how they are searched."),
}
