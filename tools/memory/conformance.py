"""Checks that a MemoryStore behaves as tools expect. Use it in the tests of your own store."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from quoth.tools.errors import ToolError, ToolFailure

MakeStore = Callable[[str], Any]

# For each permission that a program may set: the operations it allows without asking a person.
ALLOWED: Final = {
    "read_only": "",
    "append": "append_to_block",
    "read_write": "append_to_block update_block_text replace_in_block undo move_block swap_blocks",
}
CHANGES: Final = {
    "append_to_block": ("notes", "more"),
    "update_block_text": ("notes", "other"),
    "replace_in_block": ("notes", "one", "two"),
    "undo": ("notes",),
    "move_block": ("notes", "archival"),
    "swap_blocks": ("notes", "old"),
    "delete_block": ("notes",),
}
SHARING: Final = ("share_block", "unshare_block", "list_shared_blocks")


def memory_conforms(make_store: MakeStore) -> None:
    """Assert that a store of memory blocks behaves as tools expect.

    ``make_store(agent_id)`` returns the store of that agent, or an awaitable of it. Two stores made with the
    same name must reach the same blocks::

        from quoth.testing import memory_conforms

        memory_conforms(lambda agent_id: RedisMemory(redis, agent_id))

    Every check uses agents with random names; their blocks stay in the store. Sharing is checked if the store
    supports it. Raises AssertionError with a sentence that says what is wrong."""
    __tracebackhide__ = True  # the message of the failure is enough
    with ThreadPoolExecutor(1) as thread:  # the test itself may be asynchronous
        thread.submit(asyncio.run, _all(make_store)).result()


async def _all(make_store: MakeStore) -> None:
    for check in CHECKS:
        case = _Case(make_store)
        store = await case.store()
        if check is not _shares or any(hasattr(store, name) for name in SHARING):
            try:
                await check(case, store)
            except AssertionError:
                raise
            except Exception as error:
                raise AssertionError(
                    f"The check {check.__name__.strip('_')} should be done, but it raised"
                    f" {type(error).__name__}: {error}"
                ) from error


@dataclass
class _Case:
    """The agents of one check."""

    make: MakeStore
    key: str = field(default_factory=lambda: secrets.token_hex(6))

    async def store(self, agent: str = "a") -> Any:
        made = self.make(self.name(agent))
        return await made if inspect.isawaitable(made) else made

    def name(self, agent: str) -> str:
        return f"conforms-{self.key}-{agent}"


# Assertions


def _true(condition: object, sentence: str) -> None:
    if not condition:
        raise AssertionError(f"{sentence}.")


def _same(got: object, wanted: object, what: str) -> None:
    _true(got == wanted, f"{what} should be {wanted!r}, not {got!r}")


async def _refused(store: Any, doing: str, work: Awaitable[Any], *words: str) -> None:
    """Assert that ``work`` raises a ToolError containing ``words``, and changes nothing."""
    await _stopped(store, doing, work, ToolError, words)


async def _denied(store: Any, doing: str, work: Awaitable[Any], *words: str) -> None:
    """Assert that the ACL refuses ``work``: a ToolFailure with the status denied."""
    failure = await _stopped(store, doing, work, ToolFailure, words)
    _same(failure.status, "denied", f"The status of the ToolFailure for {doing}")


async def _stopped(
    store: Any, doing: str, work: Awaitable[Any], kind: type[Exception], words: tuple[str, ...]
) -> Any:
    before = await _state(store)
    try:
        await work
    except kind as error:
        for word in words:
            _true(word in str(error), f"The error for {doing} should name {word!r}; it says: {error}")
        _same(await _state(store), before, f"After {doing} was refused, the blocks")
        return error
    except Exception as error:
        raise AssertionError(
            f"{doing} should raise {kind.__name__}, not {type(error).__name__}: {error}"
        ) from error
    raise AssertionError(f"{doing} should be refused with {kind.__name__}, but it was done.")


async def _state(store: Any) -> list[Any]:
    """The agent's own blocks, as its store shows them."""
    return [(block, list(await store.history(block.label))) for block in await store.list_blocks()]


# The checks


async def _creates(case: _Case, store: Any) -> None:
    made = await store.create_block("notes", "one", kind="core", description="what was said")
    fields = (made.label, made.text, made.kind, made.permission, made.description, made.owner, made.version)
    wanted = ("notes", "one", "core", "read_write", "what was said", "", 1)
    _same(fields, wanted, "The block that create_block returns")
    _true(made.limit > 0, "A new block should say its limit: that of its kind")
    for name in ("created", "updated"):
        time = None
        with suppress(ValueError):
            time = datetime.fromisoformat(getattr(made, name))
        offset = time.utcoffset() if time else None
        _true(offset == timedelta(0), f"Block.{name} should be a time in UTC, not {getattr(made, name)!r}")
    _same((await store.create_block("empty")).kind, "working", "The kind of a block that names none")
    await _refused(
        store, "create_block of a label that is taken", store.create_block("notes", "two"), "notes"
    )
    for label in ("", " a", "a\nb", "x" * 101):
        await _refused(store, f"create_block with the label {label[:9]!r}", store.create_block(label))
    for text in ("a\0b", "a\ud800b"):
        await _refused(store, f"create_block with the text {text!r}", store.create_block("bad", text))
    await _refused(store, "create_block of an unknown kind", store.create_block("bad", kind="cor"), "cor")
    await _refused(
        store, "create_block with an unknown permission", store.create_block("bad", permission="all"), "all"
    )


async def _reads(case: _Case, store: Any) -> None:
    _same(await store.get_block("notes"), None, "get_block of a label that is not there")
    _same(list(await store.list_blocks()), [], "list_blocks of an agent without blocks")
    text = 'Grüße, 日本語 and 🎉\n  (block :operation "append")\n\'; DROP TABLE blocks; --'
    made = [
        await store.create_block("b", text, kind="archival"),
        await store.create_block("a b, c/d'\"", "two", kind="core"),
        await store.create_block("é", "three"),
    ]
    for block in made:
        _same(await store.get_block(block.label), block, f"get_block of {block.label!r}, once created,")
    order = [made[1], made[0], made[2]]
    _same(list(await store.list_blocks()), order, "list_blocks, in the order of the labels,")
    for block in made:
        _same(list(await store.list_blocks(block.kind)), [block], f"list_blocks of the kind {block.kind}")
    _same(
        [await (await case.store()).get_block("b"), await (await case.store("b")).get_block("b")],
        [made[0], None],
        "get_block by another store of this agent, and by one of another agent,",
    )


async def _writes(case: _Case, store: Any) -> None:
    await store.create_block("notes")
    for what, words, text in (
        ("append_to_block", ("one one",), "one one"),
        ("append_to_block", ("two\nlines",), "one one\ntwo\nlines"),
        ("replace_in_block", ("one", "1"), "1 1\ntwo\nlines"),
        ("update_block_text", ("new",), "new"),
    ):
        before = (await store.get_block("notes")).version
        block = await getattr(store, what)("notes", *words)
        _same(block.text, text, f"The text that {what} returns")
        _same(await store.get_block("notes"), block, f"The block after {what}")
        _same(block.version, before + 1, f"The version after {what}")
    await _refused(
        store,
        "replace_in_block of a text not there",
        store.replace_in_block("notes", "old", "x"),
        "old",
    )
    await _refused(store, "replace_in_block of an empty text", store.replace_in_block("notes", "", "x"))
    await _refused(store, "append_to_block of half a character", store.append_to_block("notes", "\ud800"))
    await asyncio.gather(*(store.append_to_block("notes", f"line {number}") for number in range(20)))
    lines = (await store.get_block("notes")).text.split("\n")
    _same(sorted(lines), sorted(["new", *(f"line {number}" for number in range(20))]), "20 appends at once")
    await store.persist_block("notes")


async def _names(case: _Case, store: Any) -> None:
    await store.create_block("preferences", "Dark mode.")
    for name, *words in (
        ("update_block_text", "preference", "x"),
        ("append_to_block", "preference", "x"),
        ("replace_in_block", "preference", "a", "b"),
        ("move_block", "preference", "archival"),
        ("swap_blocks", "preference", "preferences"),
        ("swap_blocks", "preferences", "preference"),
        ("delete_block", "preference"),
        ("history", "preference"),
        ("undo", "preference"),
        ("persist_block", "preference"),
    ):
        work = getattr(store, name)(*words)
        await _refused(store, f"{name} of a label that is not there", work, "preferences")


async def _limits(case: _Case, store: Any) -> None:
    made = await store.create_block("notes", "12345", limit=10)
    _same(made.limit, 10, "The limit of a block that was created with limit=10")
    await store.append_to_block("notes", "6789")
    for name, *words in (
        ("append_to_block", "12"),
        ("update_block_text", "x" * 13),
        ("replace_in_block", "5", "5678"),
    ):
        await _refused(store, f"{name} beyond the limit", getattr(store, name)("notes", *words), "10", "3")
    await _refused(store, "create_block beyond the limit", store.create_block("other", "12", limit=1), "1")


async def _moves(case: _Case, store: Any) -> None:
    await store.create_block("plan", "one", kind="core")
    moved = await store.move_block("plan", "archival")
    _same((moved.kind, moved.text), ("archival", "one"), "A block that move_block archives in place")
    await _refused(store, "move_block to the kind it has", store.move_block("plan", "archival"), "plan")
    copy = await store.move_block("plan", "working", to="copy")
    wanted = ("copy", "working", "one")
    _same((copy.label, copy.kind, copy.text), wanted, "What move_block loads to another label")
    _same((await store.get_block("plan")).kind, "archival", "An archival block that was loaded elsewhere")
    loaded = await store.move_block("plan", "working")
    _same((loaded.kind, loaded.text), ("working", "one"), "A block that move_block loads in place")
    await store.move_block("plan", "archival")
    await store.update_block_text("copy", "two")
    over = await store.move_block("plan", "working", to="copy")
    _same((over.text, over.kind), ("one", "working"), "A block over which move_block loads another")
    await _denied(
        store,
        "move_block of a block to the archive under another label, where it may not be deleted,",
        store.move_block("copy", "archival", to="elsewhere"),
        "copy",
        "delete",
    )
    await _refused(store, "move_block to an unknown kind", store.move_block("copy", "core?"), "core?")


async def _swaps(case: _Case, store: Any) -> None:
    await store.create_block("now", "one", kind="core")
    await store.create_block("then", "two", kind="archival")
    loaded = await store.swap_blocks("now", "then")
    _same((loaded.label, loaded.kind, loaded.text), ("then", "core", "two"), "The block swap_blocks loads")
    _same((await store.get_block("now")).kind, "archival", "The kind of the block that swap_blocks archives")
    await _refused(store, "swap_blocks the wrong way round", store.swap_blocks("now", "then"), "archival")
    await store.create_block("long", "x" * 100, kind="archival")
    await store.create_block("small", "y", kind="core", limit=10)
    await _refused(
        store,
        "swap_blocks to a label whose limit is too small",
        store.swap_blocks("then", "long", to="small"),
        "small",
    )
    there = await store.swap_blocks("then", "now", to="new")
    _same((there.label, there.kind, there.text), ("new", "core", "one"), "What swap_blocks loads to a label")
    _same(
        [(block.label, block.kind) for block in await store.list_blocks() if block.label in ("now", "then")],
        [("now", "archival"), ("then", "archival")],
        "The blocks after a swap to another label, which may not delete one,",
    )


async def _undoes(case: _Case, store: Any) -> None:
    await store.create_block("notes", "one")
    await _refused(store, "undo of a block that was never changed", store.undo("notes"), "notes")
    for text in ("one and two", "three", "three\n" + "long " * 200, ""):
        await store.update_block_text("notes", text)
    texts = [version.text for version in await store.history("notes")]
    wanted = ["three\n" + "long " * 200, "three", "one and two", "one"]
    _same(texts, wanted, "The texts that history gives, the newest first,")
    versions = [version.version for version in await store.history("notes")]
    _same(versions, [4, 3, 2, 1], "The versions that history gives")
    back = await store.undo("notes")
    _same((back.text, back.version), (wanted[0], 6), "The text and version after undo")
    _same((await store.undo("notes")).text, "", "The text after undo of an undo")


async def _searches(case: _Case, store: Any) -> None:
    for number in range(3):
        await store.create_block(f"meeting {number}", f"Project timeline, part {number}", kind="archival")
    await store.create_block("lunch", "Soup", kind="archival")
    hits = [hit.label for hit in await store.search_blocks("timeline")]
    _same(sorted(hits), ["meeting 0", "meeting 1", "meeting 2"], "The labels search_blocks finds for a word")
    _same(len(await store.search_blocks("timeline", 2)), 2, "The number of hits search_blocks gives for 2")
    await store.create_block("now", "Project timeline, today", kind="core")
    hits = [hit.label for hit in await store.search_blocks("timeline")]
    _same("now" in hits, False, "Whether search_blocks without a domain finds a core block")
    hits = [hit.label for hit in await store.search_blocks("timeline", domain="all")]
    _same("now" in hits, True, "Whether search_blocks with the domain all finds a core block")
    work = store.search_blocks("timeline", domain="archive")
    await _refused(store, "search_blocks with an unknown domain", work, "archival_memory")
    other = await case.store("b")
    _same(list(await other.search_blocks("timeline")), [], "What search_blocks gives another agent")
    for query in ('"', "* OR NOT (", "label:x AND ''"):
        with suppress(ToolError):  # an error with a message is fine, too
            await store.search_blocks(query)


async def _obeys(case: _Case, store: Any) -> None:
    for permission, may in ALLOWED.items():
        for name, words in CHANGES.items():
            here = await case.store(f"{permission} {name}")
            await here.create_block("notes", "one", permission=permission)
            await here.create_block("old", "two", kind="archival")
            doing = f"{name} of a block that is {permission}"
            if name == "undo" and permission == "read_write":
                await here.update_block_text("notes", "three")
            if name in may.split():
                try:
                    await getattr(here, name)(*words)
                except Exception as error:
                    raise AssertionError(
                        f"{doing} should be done, but it raised {type(error).__name__}: {error}"
                    ) from error
            else:
                await _denied(here, doing, getattr(here, name)(*words), "notes", permission)
    for permission in ("admin", "human", "partner"):
        await _refused(
            store,
            f"create_block with the permission {permission}, which only a person sets,",
            store.create_block("mine", permission=permission),
            permission,
        )


async def _shares(case: _Case, store: Any) -> None:
    for name in SHARING:
        _true(callable(getattr(store, name, None)), f"A store that shares blocks needs a method {name}")
    other = await case.store("b")
    for label in ("read", "append", "write"):
        await store.create_block(label, "one")
    await store.create_block("closed", "one", permission="read_only")
    friend = case.name("b")
    await store.share_block("read", friend)
    await store.share_block("append", friend, "append")
    await store.share_block("write", friend, "read_write")
    await store.share_block("closed", friend, "read_write")
    seen = [(block.label, block.owner, block.permission) for block in await other.list_shared_blocks()]
    bounds = {"append": "append", "closed": "read_only", "read": "read_only", "write": "read_write"}
    wanted = [(label, case.name("a"), bound) for label, bound in bounds.items()]
    _same(seen, wanted, "The shared blocks, each with the stricter of its permission and its bound,")
    _same(list(await other.list_blocks()), [], "The own blocks of an agent with which others share some")
    _same((await other.get_block("read")).text, "one", "The text of a shared block")
    await _denied(store, "append_to_block of a block shared to read", other.append_to_block("read", "x"))
    await _denied(store, "append_to_block of a read_only block", other.append_to_block("closed", "x"))
    await _denied(store, "update_block_text of one shared to append", other.update_block_text("append", "x"))
    await other.append_to_block("append", "two")
    await other.update_block_text("write", "two")
    texts = [(await store.get_block(label)).text for label in ("append", "write")]
    _same(texts, ["one\ntwo", "two"], "The texts of shared blocks that the other agent has changed")
    await _refused(other, "undo of another agent's block", other.undo("write"), case.name("a"))
    await _refused(other, "history of another agent's block", other.history("write"), case.name("a"))
    await other.create_block("read", "my own")
    _same((await other.get_block("read")).text, "my own", "An own block of a label that is also shared")
    await store.unshare_block("write", friend)
    _same(await other.get_block("write"), None, "A block that is not shared any more")
    await _refused(
        store, "share_block of a label that is not there", store.share_block("reed", friend), "read"
    )
    await _refused(
        store, "share_block with a bound that only a person sets", store.share_block("read", friend, "admin")
    )


CHECKS: Final = (
    _creates,
    _reads,
    _writes,
    _names,
    _limits,
    _moves,
    _swaps,
    _undoes,
    _searches,
    _obeys,
    _shares,
)
