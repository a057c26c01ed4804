"""Law: nobody goes round the ACL of memory blocks. The table of the fourth seed, operation by permission by
relation, holds on every way in which memory can be reached, and what is denied or asked changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from words import async_agent, form, tool

from quoth import HostServices
from quoth.tools.call.call import ALLOW
from quoth.tools.call.context import ToolContext
from quoth.tools.call.service_types import BlockKind, BlockPermission
from quoth.tools.errors import ToolFailure
from quoth.tools.memory.sqlite import open_memory

# As the seed has it, for a block of one's own, and for another agent's with that bound.
SEED: dict[str, tuple[str, str, str]] = {
    # append, overwrite, delete
    "read_only": ("denied", "denied", "denied"),
    "partner": ("pending", "pending", "denied"),
    "human": ("pending", "pending", "denied"),
    "append": ("ok", "denied", "denied"),
    "read_write": ("ok", "ok", "denied"),
    "admin": ("ok", "ok", "ok"),
}
APPEND, OVERWRITE, DELETE = 0, 1, 2
OWNERS = 3  # the owner's alone, whatever the ACL says
# Each operation on the block LABEL: its kind, and what it needs of the ACL: of one's own block, of another's.
OPERATIONS: dict[str, tuple[str, BlockKind, int | None, int | None]] = {
    "append": ('(block :operation "append" :label "LABEL" :content "new")', "core", APPEND, APPEND),
    "replace": (
        '(block :operation "replace" :label "LABEL" :old-content "text" :new-content "new")',
        "working",
        OVERWRITE,
        OVERWRITE,
    ),
    "undo": ('(block :operation "undo" :label "LABEL")', "core", OVERWRITE, OWNERS),
    "archive": ('(block :operation "archive" :label "LABEL")', "core", OVERWRITE, OVERWRITE),
    "archive away": ('(block :operation "archive" :label "LABEL" :to "LABEL 2")', "core", DELETE, DELETE),
    "load": ('(block :operation "load" :label "LABEL")', "archival", None, OVERWRITE),
    "load a copy": ('(block :operation "load" :label "LABEL" :to "LABEL 2")', "archival", None, None),
    "load over it": ('(block :operation "load" :label "shelf" :to "LABEL")', "core", OVERWRITE, OVERWRITE),
    "swap": (
        '(block :operation "swap" :archive-label "LABEL" :load-label "shelf" :to "LABEL 2")',
        "core",
        OVERWRITE,
        OVERWRITE,
    ),
    "recall append": (
        '(recall :operation "append" :label "LABEL" :content "new")',
        "archival",
        APPEND,
        APPEND,
    ),
    "recall delete": ('(recall :operation "delete" :label "LABEL")', "archival", DELETE, DELETE),
    "read": ('(recall :operation "read" :label "LABEL")', "archival", None, None),
}
ONE_FOR_EACH = ("append", "replace", "recall delete")  # append, overwrite, delete
RELATIONS = ("own", "shared")


def label_of(operation: str, permission: str) -> str:
    return f"{operation} {permission}".replace("_", " ")


class World:
    """An agent, the blocks it may or may not change, and a spy that sees which are."""

    def __init__(self, agent: Any, url: str | None, relation: str, operations: tuple[str, ...]) -> None:
        self.agent, self.url, self.relation = agent, url, relation
        self.cases = [(operation, permission) for permission in SEED for operation in operations]
        self.written: set[str] = set()

    def person(self, agent_id: str) -> Any:
        return open_memory(self.url, lambda: self.agent.store, agent_id, person=True)

    async def furnish(self) -> None:
        """Make a block for each case."""
        owner = self.person("agent" if self.relation == "own" else "other")
        for operation, permission in self.cases:
            label, kind = label_of(operation, permission), OPERATIONS[operation][1]
            own = permission if self.relation == "own" else "admin"
            await owner.create_block(label, "first", kind=kind, permission=own)
            await owner.edit_block(label, text="text")
            if self.relation == "shared":
                await owner.share_block(label, "agent", permission)
        await self.person("agent").create_block("shelf", "from the shelf", kind="archival")

    def forms(self) -> dict[tuple[str, str], str]:
        return {case: OPERATIONS[case[0]][0].replace("LABEL", label_of(*case)) for case in self.cases}

    def expected(self) -> dict[tuple[str, str], str]:
        needed = {name: row[2 if self.relation == "own" else 3] for name, row in OPERATIONS.items()}
        return {
            (operation, permission): "ok"
            if (need := needed[operation]) is None
            else [*SEED[permission], "error"][need]
            for operation, permission in self.cases
        }

    def audited(self) -> dict[tuple[str, str], str]:
        """How the calls ended, by the audit."""
        by_label = {label_of(*case): case for case in self.cases}
        found = {}
        for row in self.agent.audit.rows():
            if row["tool"] in ("block", "recall"):
                named = [label for label in by_label if f'"{label}"' in row["form"]]
                found[by_label[named[0]]] = row["status"]
        return found

    @contextmanager
    def spied(self) -> Iterator[None]:
        """Remember the label of each block that is written or removed in the store."""
        memory = self.agent.host.services.memory.opened()
        real, world = memory._atomically, self

        class Watched:
            def __init__(self, blocks: Any) -> None:
                self._blocks = blocks

            def __getattr__(self, name: str) -> Any:
                if name not in ("put", "remove"):
                    return getattr(self._blocks, name)

                def change(first: Any, *more: Any) -> Any:
                    world.written.add(first if name == "remove" else first.label)
                    return getattr(self._blocks, name)(first, *more)

                return change

        memory._atomically = lambda work: real(lambda blocks: work(Watched(blocks)))
        try:
            yield
        finally:
            del memory._atomically


# The ways


async def by_tool(world: World) -> dict[tuple[str, str], str]:
    return {case: (await world.agent.call(text)).status for case, text in world.forms().items()}


async def by_program(world: World) -> dict[tuple[str, str], str]:
    """A program in the sandbox; where a person is asked, it waits as a whole."""
    found = {}
    for case, text in world.forms().items():
        result = await world.agent.eval(f'(try (do {text} "ok") (except [PermissionError] "denied"))')
        found[case] = result.value if result.ok else result.status
    return found


async def by_text(world: World) -> dict[tuple[str, str], str]:
    await world.agent.run("Do it.")
    return world.audited()


async def by_sub_agent(world: World) -> dict[tuple[str, str], str]:
    await world.agent.call('(cognitive-loop "Do it.")')
    return world.audited()


async def by_python(world: World) -> dict[tuple[str, str], str]:
    """Python reaches the memory without a call; where a person would be asked, there is none."""
    memory = world.agent.host.services.memory
    found = {}
    for operation, permission in world.cases:
        label = label_of(operation, permission)
        work = {
            "append": lambda label=label: memory.append_to_block(label, "new"),
            "replace": lambda label=label: memory.replace_in_block(label, "text", "new"),
            "recall delete": lambda label=label: memory.delete_block(label),
        }[operation]
        try:
            await work()
            found[operation, permission] = "ok"
        except ToolFailure as failure:
            asked = "no person can be asked" in str(failure)
            found[operation, permission] = "pending" if asked else failure.status
    return found


async def by_own_tool(world: World) -> dict[tuple[str, str], str]:
    found = {}
    for operation, permission in world.cases:
        text = f'(keep "{operation}" "{label_of(operation, permission)}")'
        found[operation, permission] = (await world.agent.call(text)).status
    return found


async def keep(what: str, label: str, ctx: ToolContext) -> None:
    """The body of a user's own tool."""
    if what == "append":
        await ctx.memory.append_to_block(label, "new")
    elif what == "replace":
        await ctx.memory.replace_in_block(label, "text", "new")
    else:
        await ctx.memory.delete_block(label)


KEEP = tool("keep", keep, params={"what": {}, "label": {}}, effects=["memory"])


def native(forms: list[str]) -> Any:
    """A reply with native calls."""
    calls = [form(text) for text in forms]
    return {"tool_calls": [{"name": call.tool, "arguments": dict(call.args)} for call in calls]}


Way = Callable[[World], Awaitable[dict[tuple[str, str], str]]]
WAYS: dict[str, tuple[Way, Callable[[list[str]], list[Any]], dict[str, Any]]] = {
    # how it is reached, what the model says, and how the agent is made
    "tool": (by_tool, lambda forms: [], {}),
    "call form": (by_text, lambda forms: ["\n".join(forms), "Done."], {}),
    "native call": (by_text, lambda forms: [native(forms), "Done."], {"dialect": "native"}),
    "program": (by_program, lambda forms: [], {}),
    "sub-agent": (by_sub_agent, lambda forms: ["\n".join(forms), "Done."], {}),
    "Python": (by_python, lambda forms: [], {}),
    "a user's tool": (by_own_tool, lambda forms: [], {"tools": [KEEP]}),
}


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Where the memory is: in the workspace, or in a database of the test's own."""
    return None if request.param == "sqlite" else str(request.getfixturevalue("database"))


@pytest.mark.sampled
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("way", WAYS)
async def test_the_acl_holds_on_every_way(tmp_path: Path, url: str | None, way: str, relation: str) -> None:
    reach, says, options = WAYS[way]
    operations = tuple(OPERATIONS) if way == "tool" else ONE_FOR_EACH
    blank = World(None, url, relation, operations)
    replies = says(list(blank.forms().values()))
    async with async_agent(tmp_path, *replies, services=HostServices(memory_url=url), **options) as agent:
        world = World(agent, url, relation, operations)
        await world.furnish()
        with world.spied():
            found = await reach(world)
        assert found == world.expected()
        refused = {label_of(*case) for case, status in found.items() if status != "ok"}
        assert not world.written & refused
        owner = world.person("agent" if relation == "own" else "other")
        for label in refused:
            block = await owner.get_block(label)
            assert (block.text, block.version) == ("text", 2)


async def test_the_spy_sees_what_an_acl_without_denials_lets_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.memory.checks.judge", lambda permission, access: ALLOW)
    async with async_agent(tmp_path) as agent:
        world = World(agent, None, "own", ONE_FOR_EACH)
        await world.furnish()
        with world.spied():
            found = await by_tool(world)
        assert set(found.values()) == {"ok"}
        assert world.written == {label_of(*case) for case in world.cases}


def test_the_table_has_every_permission_and_each_kind_of_access() -> None:
    assert set(SEED) == set(get_args(BlockPermission))
    assert {OPERATIONS[name][2] for name in ONE_FOR_EACH} == {APPEND, OVERWRITE, DELETE}
