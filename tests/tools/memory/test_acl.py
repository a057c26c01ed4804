"""The ACL at the store: each operation, on a block of each permission, own or shared with each bound, does
what is written here by hand; and an ACL that denies stops each of them before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from examples import many
from memory import Approver, Make, contents, done, in_a_call, said, writes_of
from sentences import ONLY_A_PERSON_CAN

from quoth.tools.call.call import Verdict, deny
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.memory import checks

# Whether an agent may read, append, overwrite and delete: yes, no, or a person is asked. It is written by
# hand, and not taken from checks.TABLE.
BY_HAND = {
    "read_only": "yes no no no",
    "partner": "yes ask ask no",
    "human": "yes ask ask no",
    "append": "yes yes no no",
    "read_write": "yes yes yes no",
    "admin": "yes yes yes yes",
}
WANTED = {
    name: dict(zip(["read", "append", "overwrite", "delete"], row.split(), strict=True))
    for name, row in BY_HAND.items()
}
STRICTEST_FIRST = ["read_only", "partner", "human", "append", "read_write", "admin"]

# Each operation on the block "x", with the kind it has before, and the accesses it needs on an own block. The
# agent has blocks of its own beside it: "old" is archival, "desk" working, "now" is core and admin.
OPERATIONS: dict[str, tuple[str, list[str], Callable[[Any], Any]]] = {
    "get": ("core", ["read"], lambda m: m.get_block("x")),
    "history": ("core", ["read"], lambda m: m.history("x")),
    "append": ("core", ["append"], lambda m: m.append_to_block("x", "more")),
    "update": ("core", ["overwrite"], lambda m: m.update_block_text("x", "other")),
    "replace": ("core", ["overwrite"], lambda m: m.replace_in_block("x", "second", "2")),
    "undo": ("core", ["overwrite"], lambda m: m.undo("x")),
    "archive": ("core", ["overwrite"], lambda m: m.move_block("x", "archival")),
    "archive to another label": ("core", ["delete"], lambda m: m.move_block("x", "archival", to="new")),
    "archive over it": ("archival", ["overwrite"], lambda m: m.move_block("now", "archival", to="x")),
    "load": ("archival", ["read"], lambda m: m.move_block("x", "working")),
    "load to another label": ("archival", ["read"], lambda m: m.move_block("x", "working", to="new")),
    "load over it": ("working", ["overwrite"], lambda m: m.move_block("old", "working", to="x")),
    "swap it out": ("core", ["overwrite"], lambda m: m.swap_blocks("x", "old")),
    "load into core": ("archival", ["overwrite"], lambda m: m.move_block("x", "core")),
    "working to core": ("working", ["overwrite"], lambda m: m.move_block("x", "core")),
    "swap it in": ("archival", ["overwrite"], lambda m: m.swap_blocks("now", "x")),
    "swap it in for a working one": ("archival", ["read"], lambda m: m.swap_blocks("desk", "x")),
    "swap it in elsewhere": ("archival", ["read"], lambda m: m.swap_blocks("now", "x", to="new")),
    "swap over it": ("working", ["overwrite"], lambda m: m.swap_blocks("now", "old", to="x")),
    "delete": ("core", ["delete"], lambda m: m.delete_block("x")),
}
OWNERS = {"history", "undo"}  # what the owner erased before sharing is for the owner alone
IN_PLACE = {"load", "swap it in for a working one"}  # another agent's block is not moved without Overwrite
RELATIONS = ["own", *(f"shared {bound}" for bound in STRICTEST_FIRST)]


def wanted(operation: str, permission: str, relation: str) -> str:
    """What becomes of an operation: done, asked, denied, or for its owner only."""
    if relation != "own" and operation in OWNERS:
        return "for its owner"
    needs = OPERATIONS[operation][1]
    held = permission
    if relation != "own":
        held = min(permission, relation.removeprefix("shared "), key=STRICTEST_FIRST.index)
        if operation in IN_PLACE:
            needs = ["overwrite"]
    answers = [WANTED[held][need] for need in needs]
    return "denied" if "no" in answers else "asked" if "ask" in answers else "done"


def prepare(make: Make, kind: str, permission: str, relation: str, key: str) -> tuple[str, str]:
    """An agent that sees a block "x" of this kind and permission; returns it and the block's owner."""

    async def go() -> tuple[str, str]:
        agent = f"agent {key}"
        owner = agent if relation == "own" else f"owner {key}"
        await make(agent).create_block("old", "archived", kind="archival")
        await make(agent).create_block("desk", "at hand")
        await make(agent).create_block("now", "present", kind="core")
        await make(owner).create_block("x", "first", kind=kind)
        await make(owner).update_block_text("x", "first\nsecond")
        await make(agent, person=True).edit_block("now", permission="admin")
        person = make(owner, person=True)
        await person.edit_block("x", permission=permission)
        if owner != agent:
            await person.share_block("x", agent, relation.removeprefix("shared "))
        return agent, owner

    return done(go())


def test_the_table_is_the_one_written_here() -> None:
    assert {name: dict(zip(checks.ACCESSES, row, strict=True)) for name, row in checks.TABLE.items()} == {
        name: {access: {"yes": "allow", "no": "deny", "ask": "ask"}[word] for access, word in row.items()}
        for name, row in WANTED.items()
    }
    assert list(checks.TABLE) == STRICTEST_FIRST


@pytest.mark.parametrize("permission", checks.TABLE)
def test_each_operation_is_done_asked_or_denied_as_the_table_says(
    make: Make, permission: str, request: pytest.FixtureRequest
) -> None:
    cases = [(relation, operation) for relation in RELATIONS for operation in OPERATIONS]
    if "postgres" in request.node.name:  # each takes as long as ten in a file: all when exploring
        cases = cases[len(permission) % 6 :: max(1, 180 // many(1))]
    found = {case: outcome(make, permission, *case) for case in cases}
    assert found == {(relation, name): wanted(name, permission, relation) for relation, name in cases}


def outcome(make: Make, permission: str, relation: str, operation: str) -> str:
    """What becomes of an operation: nothing is written before a person was asked, or if it is denied."""
    kind, _, act = OPERATIONS[operation]
    agent, owner = prepare(make, kind, permission, relation, f"{relation}, {operation}")
    memory, person = make(agent), Approver()
    before = contents(make, agent, owner)
    with writes_of(memory) as writes:
        person.first = lambda: writes.append("asked")
        try:
            in_a_call(lambda: act(memory), person)
        except ToolFailure as failure:
            assert (writes, contents(make, agent, owner)) == ([], before), operation
            return failure.status
        except ToolError as error:
            assert (writes, contents(make, agent, owner)) == ([], before), operation
            return "for its owner" if str(error).startswith(f"x belongs to {owner}, so only") else str(error)
    if not person.asked:
        return "done"
    assert writes[0] == "asked", f"{operation} wrote before it asked"
    assert writes.count("asked") == 1
    return "asked"


@pytest.mark.parametrize("relation", ["own", "shared admin"])
def test_an_acl_that_denies_stops_every_operation(
    make: Make, monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    for operation, (kind, _, act) in OPERATIONS.items():
        agent, owner = prepare(make, kind, "admin", relation, operation)
        memory, before = make(agent), contents(make, agent, owner)
        asked: list[str] = []

        def no(permission: str, access: str, asked: list[str] = asked) -> Verdict:
            asked.append(access)
            return deny("the spy says no")

        with monkeypatch.context() as spy, writes_of(memory) as writes:
            spy.setattr(checks, "judge", no)
            assert said(act(memory)).endswith("the spy says no.")
        assert asked
        assert (writes, contents(make, agent, owner)) == ([], before)


def test_a_list_leaves_out_what_may_not_be_read(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, _ = prepare(make, "core", "read_only", "own", "list")
    monkeypatch.setitem(checks.TABLE, "read_only", ("deny", "deny", "deny", "deny"))
    assert [block.label for block in done(make(agent).list_blocks())] == ["desk", "now", "old"]


# Who sets permissions


@pytest.mark.parametrize("permission", ["partner", "human", "admin"])
def test_only_a_person_sets_the_permissions_that_bind_to_a_person(make: Make, permission: str) -> None:
    sentence = (
        f"ToolError: Only a person can set the permission {permission}:"
        f" quoth memory edit x --permission {permission}."
    )
    assert said(make("a").create_block("x", permission=permission)) == sentence
    done(make("a").create_block("x"))
    assert said(make("a").share_block("x", "b", permission)) == sentence
    with pytest.raises(ToolError, match=f"{ONLY_A_PERSON_CAN} edit blocks: quoth memory edit LABEL"):
        done(make("a").edit_block("x", permission=permission))
    made = done(make("a", person=True).edit_block("x", permission=permission))
    assert (made.permission, made.by) == (permission, "a person")


@pytest.mark.parametrize("bound", ["read_only", "append", "human", "read_write"])
def test_what_a_person_has_shared_an_agent_only_tightens(make: Make, bound: str) -> None:
    done(make("a").create_block("x"))
    done(make("a", person=True).share_block("x", "b", bound))
    sentence = f"denied: A person shared x with b ({bound}); only a person can change that."
    for looser in ("append", "read_write"):
        if STRICTEST_FIRST.index(looser) > STRICTEST_FIRST.index(bound):
            assert said(make("a").share_block("x", "b", looser)) == sentence
    assert said(make("a").unshare_block("x", "b")) == sentence
    assert done(make("a").shares("x")) == {"b": bound}
    done(make("a").share_block("x", "b", "read_only"))
    assert said(make("a").share_block("x", "b", "append")).startswith("denied: A person shared x with b")
    done(make("a", person=True).share_block("x", "b", "append"))
    assert done(make("a").shares("x")) == {"b": "append"}
    assert done(make("b").get_block("x")).permission == "append"
    done(make("a", person=True).unshare_block("x", "b"))
    assert done(make("a").shares("x")) == {}


def test_what_an_agent_has_shared_it_shares_otherwise(make: Make) -> None:
    done(make("a").create_block("x"))
    for bound in ("read_only", "read_write", "append"):
        done(make("a").share_block("x", "b", bound))
        assert done(make("a").shares("x")) == {"b": bound}
    done(make("a").unshare_block("x", "b"))
    assert done(make("b").get_block("x")) is None


def test_the_acl_does_not_bind_a_person(make: Make) -> None:
    for operation, (kind, _, act) in OPERATIONS.items():
        agent, _ = prepare(make, kind, "read_only", "own", operation)
        done(act(make(agent, person=True)))
