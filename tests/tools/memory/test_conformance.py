"""memory_conforms: our stores pass it, and each broken one fails with a sentence about what is broken."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from memory import DictMemory, Make, dict_memory

from quoth.agent.testing import memory_conforms
from quoth.tools.call.service_types import Block, BlockVersion
from quoth.tools.errors import ToolError
from quoth.tools.memory import checks


def test_a_store_of_ours_conforms(make: Make) -> None:
    memory_conforms(make)


def test_it_runs_inside_of_a_running_loop_and_takes_an_awaitable_store() -> None:
    make = dict_memory()

    async def later(agent_id: str) -> Any:
        return make(agent_id)

    async def go() -> None:
        memory_conforms(later)

    asyncio.run(go())


def test_a_store_that_shares_nothing_may_conform() -> None:
    make = dict_memory()

    class Alone:
        def __init__(self, agent_id: str) -> None:
            self._memory = make(agent_id)

        def __getattr__(self, name: str) -> Any:
            if "share" in name:
                raise AttributeError(name)
            return getattr(self._memory, name)

    memory_conforms(Alone)


# Broken stores


class Overwrites(DictMemory):
    async def create_block(self, label: str, text: str = "", **options: Any) -> Block:
        if await self.get_block(label):
            return await self.update_block_text(label, text)
        return await super().create_block(label, text, **options)


class Unordered(DictMemory):
    async def list_blocks(self, kind: Any = None) -> Any:
        return list(await super().list_blocks(kind))[::-1]


class OfAll(DictMemory):
    async def get_block(self, label: str) -> Block | None:
        found = [block for (_, name), block in self.tables["blocks"].items() if name == label]
        return await super().get_block(label) or (found[0] if found else None)


class Glues(DictMemory):
    async def append_to_block(self, label: str, text: str) -> Block:
        block = await self.get_block(label)
        return await self.update_block_text(label, (block.text if block else "") + text)


class Races(DictMemory):
    async def append_to_block(self, label: str, text: str) -> Block:
        block = await self.get_block(label)
        await asyncio.sleep(0)
        if block and block.text and text.startswith("line"):
            return await self.update_block_text(label, f"{block.text}\n{text}")
        return await super().append_to_block(label, text)


class Shrugs(DictMemory):
    async def replace_in_block(self, label: str, old: str, new: str) -> Block:
        try:
            return await super().replace_in_block(label, old, new)
        except ToolError:
            block = await self.get_block(label)
            assert block
            return block


class Cuts(DictMemory):
    async def update_block_text(self, label: str, text: str) -> Block:
        block = await self.get_block(label)
        return await super().update_block_text(label, text[: block.limit] if block else text)


class Nameless(DictMemory):
    async def undo(self, label: str) -> Block:
        try:
            return await super().undo(label)
        except ToolError:
            raise ToolError("No.") from None


class Bare(DictMemory):
    async def undo(self, label: str) -> Block:
        if await self.get_block(label) is None:
            raise KeyError(label)
        return await super().undo(label)


class Halves(DictMemory):
    async def swap_blocks(self, archive_label: str, load_label: str, *, to: str = "") -> Block:
        await self.move_block(archive_label, "archival")
        return await self.move_block(load_label, "core", to=to)


class Copies(DictMemory):
    async def move_block(self, label: str, kind: Any, *, to: str = "") -> Block:
        block = await self.get_block(label)
        if block and to and kind == "archival":
            await self.create_block(to, block.text, kind=kind)
        return await super().move_block(label, kind, to=to)


class Forgetful(DictMemory):
    async def history(self, label: str) -> list[BlockVersion]:
        return list(await super().history(label))[:1]


class Loud(DictMemory):
    async def search_blocks(self, query: str, limit: int = 10, domain: Any = "archival_memory") -> Any:
        return await super().search_blocks(query, 100, domain)


class Anywhere(DictMemory):
    async def search_blocks(self, query: str, limit: int = 10, domain: Any = "archival_memory") -> Any:
        return await super().search_blocks(query, limit, "all")


class Lax(DictMemory):
    async def delete_block(self, label: str) -> None:
        self.tables["blocks"].pop((self.agent_id, label), None)


class Anybody(DictMemory):
    async def create_block(self, label: str, text: str = "", **options: Any) -> Block:
        if options.get("permission") in checks.BY_PERSON:
            options["permission"] = "read_write"
        return await super().create_block(label, text, **options)


class Unbound(DictMemory):
    async def share_block(self, label: str, agent_id: str, permission: Any = "read_only") -> None:
        await super().share_block(label, agent_id, "read_write")


BROKEN: list[tuple[type[DictMemory], str]] = [
    (Overwrites, "create_block of a label that is taken should be refused with ToolError, but it was done."),
    (Unordered, "list_blocks, in the order of the labels, should be ["),
    (OfAll, "get_block of a label that is not there should be None, not Block("),
    (Glues, "The text that append_to_block returns should be 'one one\\ntwo\\nlines', not 'one onetwo\\nl"),
    (Races, "20 appends at once should be ["),
    (Shrugs, "replace_in_block of a text not there should be refused with ToolError, but it was done."),
    (Cuts, "update_block_text beyond the limit should be refused with ToolError, but it was done."),
    (Nameless, "The error for undo of a label that is not there should name 'preferences'; it says: No."),
    (Bare, "undo of a label that is not there should raise ToolError, not KeyError: 'preference'"),
    (Halves, "After swap_blocks of a label that is not there was refused, the blocks should be ["),
    (Copies, "After move_block of a block to the archive under another label, where it may not be deleted,"),
    (Forgetful, "The texts that history gives, the newest first, should be ["),
    (Anywhere, "Whether search_blocks without a domain finds a core block should be False, not True."),
    (Loud, "The number of hits search_blocks gives for 2 should be 2, not 3."),
    (Lax, "delete_block of a label that is not there should be refused with ToolError, but it was done."),
    (Anybody, "create_block with the permission admin, which only a person sets, should be refused with"),
    (Unbound, "The shared blocks, each with the stricter of its permission and its bound, should be ["),
]


@pytest.mark.parametrize(("broken", "sentence"), [pytest.param(b, s, id=b.__name__) for b, s in BROKEN])
def test_a_broken_store_fails_with_a_sentence(broken: type[DictMemory], sentence: str) -> None:
    tables: dict[str, dict[Any, Any]] = {"blocks": {}, "versions": {}, "shares": {}}
    with pytest.raises(AssertionError) as caught:
        memory_conforms(lambda agent_id: broken(tables, agent_id))
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("access", ["append", "overwrite", "delete"])
@pytest.mark.parametrize("permission", ["read_only", "append", "read_write"])
def test_a_wrong_answer_of_the_acl_is_found(
    monkeypatch: pytest.MonkeyPatch, permission: Any, access: Any
) -> None:
    row = list(checks.TABLE[permission])
    place = checks.ACCESSES.index(access)
    row[place] = {"allow": "deny", "deny": "allow"}[row[place]]
    monkeypatch.setitem(checks.TABLE, permission, tuple(row))
    with pytest.raises(AssertionError):
        memory_conforms(dict_memory())
