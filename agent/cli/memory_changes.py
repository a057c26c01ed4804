"""The commands that change what is remembered: ``quoth memory edit``, ``forget`` and ``import``.

Knows options, questions and output; the work is in tools/memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import read_text, text_of
from quoth.agent.cli.memory import (
    LABEL,
    MemoryOptions,
    as_listed,
    asked_of,
    block_of,
    export,
    in_words,
    list_blocks,
    opened,
    search,
    show,
    status,
    waited,
    whole_number,
)
from quoth.agent.cli.options import DONE, FAILED, Actions, argument, option, switch
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.tools.call.service_types import Block


@dataclass(init=False, repr=False, eq=False)
class EditOptions(MemoryOptions):
    label: str = argument("LABEL", LABEL)
    text: str | None = option("--text", "TEXT", "the new text; - reads it from stdin (default: your editor)")
    version: str | None = option("--version", "N", "the text that it had as version N")
    permission: str | None = option(
        "--permission", "NAME", "read_only, partner, human, append, read_write or admin"
    )
    of_kind: str | None = option("--kind", "KIND", "core: in every prompt; working; archival: only found")
    limit: str | None = option("--limit", "N", "the most characters it may have (0: as its kind)")
    description: str | None = option("--description", "TEXT", "what it is for")
    share: str | None = option(
        "--share", "AGENT=NAME", "let another agent use it, at most with that permission; AGENT= ends it"
    )
    new: bool = switch("--new", "make it; without --kind a core block")


@dataclass(init=False, repr=False, eq=False)
class ForgetOptions(MemoryOptions):
    labels: Sequence[str] = argument("LABEL", LABEL, nargs="+")


@dataclass(init=False, repr=False, eq=False)
class ImportOptions(MemoryOptions):
    file: str = argument("FILE", "what quoth memory export wrote, or a person; - reads stdin")
    replace: bool = switch("--replace", "as the next version of the blocks that are there")


def edit(options: EditOptions) -> int:
    """Change a block, or make one; without any option its text is edited in the person's editor."""
    typed = {"permission": options.permission, "kind": options.of_kind, "description": options.description}
    given: dict[str, Any] = {name: value for name, value in typed.items() if value is not None}
    if options.limit is not None:
        given["limit"] = whole_number("--limit", options.limit)
    if options.text is not None:
        given["text"] = text_of(options.text).removesuffix("\n" if options.text == "-" else "")
    with opened(options, changes=True) as (memory, _):
        if options.version is not None and (options.new or options.text is not None):
            raise UsageError("--version brings back an earlier text; it does not go with --text or --new.")
        if options.new:
            return _make(options, memory, given)
        before = waited(block_of(memory, options.label))
        if before.owner:
            raise UsageError(f"{before.label} belongs to {before.owner}: --agent {before.owner}")
        if options.share is not None:
            return _shared(options, memory, before, given)
        if options.version is not None:
            given["text"] = _text_of(memory, before, whole_number("--version", options.version))
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

        from quoth.agent.terminal.input import edited

        edited(before.text, before.label, use)
        return code


def _make(options: EditOptions, memory: Any, given: dict[str, Any]) -> int:
    from quoth.agent.terminal.input import edited

    if not given.get("text", "x").strip():
        raise UsageError("The text is empty; no block was made.")
    given = {"kind": "core"} | given
    there = waited(memory.get_block(options.label))
    if there is not None and not there.owner:
        raise UsageError(f"There is a block {options.label} already; leave --new out to edit it.")

    def use(text: str) -> None:
        if not text.strip():
            complain("The text is empty; no block was made.")
            return
        block = waited(memory.create_block(options.label, **given | {"text": text}))
        _say("Made", block, options.json)

    use(given["text"]) if "text" in given else edited("", options.label, use)
    return DONE


def _changed(options: EditOptions, memory: Any, before: Block, given: dict[str, Any]) -> int:
    block = waited(memory.edit_block(before.label, **given))
    _say("Changed" if block.version != before.version else "It is so already:", block, options.json)
    return DONE


def _text_of(memory: Any, block: Block, version: int) -> str:
    """The text that the block had as that version."""
    texts: dict[int, str] = {one.version: one.text for one in waited(memory.history(block.label))}
    texts[block.version] = block.text
    if version not in texts:
        has = ", ".join(str(one) for one in sorted(texts))
        raise UsageError(f"{block.label} has no version {version}; it has {has}.")
    return texts[version]


def _shared(options: EditOptions, memory: Any, block: Block, given: dict[str, Any]) -> int:
    """Share the block as ``--share`` says, or end that."""
    agent, sign, permission = (options.share or "").partition("=")
    if given or not sign:
        raise UsageError("--share stands alone, and says AGENT=PERMISSION, such as librarian=append.")
    if permission:
        waited(memory.share_block(block.label, agent, permission))
    else:
        waited(memory.unshare_block(block.label, agent))
    if options.json:
        print_json({"label": block.label, "shares": waited(memory.shares(block.label))})
    elif permission:
        from quoth.tools.memory.acl import may

        print_line(f"Shared {block.label} with {agent}, who may {may(permission)}.")
    else:
        print_line(f"{block.label} is not shared with {agent} any more.")
    return DONE


def _say(what: str, block: Block, as_json: bool) -> None:
    if as_json:
        print_json(as_listed(block))
    else:
        print_line(f"{what} {block.label}: {in_words(block)}.")


def forget(options: ForgetOptions) -> int:
    """Remove blocks, after a person has confirmed it, and say what is still held of them elsewhere."""
    from quoth.agent.terminal.ask import confirmed
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.consent.broker import Broker
    from quoth.tools.memory.transfer import names, traces
    from quoth.tools.registry.table import ToolTable
    from quoth.tools.visible import visible

    labels = list(dict.fromkeys(options.labels))
    with opened(options, changes=True) as (memory, store):
        texts: set[str] = set()
        for label in labels:
            block = waited(block_of(memory, label))
            if block.owner:
                raise UsageError(f"{label} belongs to {block.owner}: --agent {block.owner}")
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
        complain(f"A call that names {label} still waits to be approved: {options.typed('deny', request)}")
    if not erased:
        complain("Another process uses the store; until it ends, the file may still hold the text.")
    if copies:
        complain(f"The same text is still in: {', '.join(map(visible, copies))}.")
    for label, of in left.items():
        if of.sessions:
            complain(
                f"The transcripts of {number_of(len(of.sessions), 'session')} still name {label}; to remove"
                f" them: {options.typed('rm', *of.sessions)}"
            )
        if of.calls:
            complain(
                f"The audit still names {label} in {number_of(of.calls, 'call')}; it is kept whole, and goes"
                f" only with all else that is in {store.path}."
            )
    return DONE


def import_blocks(options: ImportOptions) -> int:
    """Take in the blocks of a file."""
    from quoth.tools.memory.transfer import read_carried
    from quoth.tools.storage.in_use import not_in_use
    from quoth.tools.storage.paths import store_path

    every = read_carried(read_text(options.file), "stdin" if options.file == "-" else options.file)

    async def work(memory: Any) -> tuple[list[str], list[str], list[str]]:
        new, replaced = await memory.import_blocks(every, replace=options.replace)
        given = {one.block.label: one.block.permission for one in every}
        there = {label: (await memory.get_block(label)).permission for label in replaced}
        return new, replaced, [label for label in replaced if there[label] != given[label]]

    store = store_path(options.folder)
    with not_in_use(store) if options.replace else nullcontext():  # a run would go on with the old texts
        new, replaced, kept = asked_of(options, work, changes=True)
    for label in kept:
        complain(
            f"{label} keeps its stricter permission. To change it: quoth memory edit {label} --permission P"
        )
    if options.json:
        print_json({"new": new, "replaced": replaced})
        return DONE
    said = [number_of(len(new), "new block")]
    said += [f"{len(replaced)} replaced"] if replaced else []
    same = len(every) - len(new) - len(replaced)
    said += [f"{same} there already"] if same else []
    print_line(f"{', '.join(said)}.")
    return DONE


ACTIONS: Actions = {
    "list": (list_blocks, "List the blocks."),
    "show": (show, "Show the text of a block."),
    "search": (search, "Search blocks and conversations."),
    "edit": (edit, "Edit a block, or make one. Only this makes a block human, partner or admin."),
    "forget": (forget, "Remove blocks with all their earlier texts."),
    "export": (export, "Write all blocks as an Org file, or as JSON."),
    "import": (import_blocks, "Take in what an export wrote: all of it, or nothing."),
    "status": (status, "Show how much is remembered, and how it is searched."),
}
