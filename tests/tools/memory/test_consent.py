"""Where a person must approve a change: they are asked before the first one, and it is then done once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from memory import Approver, Make, contents, done, in_a_call, said, writes_of
from words import gateway, tool

from quoth import Services
from quoth.tools.call.call import ALLOW, Call, Verdict
from quoth.tools.errors import ToolError, ToolFailure


def human(make: Make, *labels: str, permission: str = "human", kind: str = "core") -> None:
    """Blocks that a person protects."""

    async def go() -> None:
        for label in labels:
            await make("a").create_block(label, "one", kind=kind)
            await make("a", person=True).edit_block(label, permission=permission)

    done(go())


@pytest.mark.parametrize("permission", ["human", "partner"])
def test_a_person_is_asked_once_and_the_change_is_done_once(make: Make, permission: str) -> None:
    human(make, "x", permission=permission)
    memory, person = make("a"), Approver()
    with writes_of(memory) as writes:
        person.first = lambda: writes.append("asked")
        block = in_a_call(lambda: memory.append_to_block("x", "two"), person)
    assert block.text == "one\ntwo"
    assert person.asked == [("MemoryEdit x", f"Requires {permission} approval to append")]
    assert writes == ["asked", "put"]


def test_what_a_person_refuses_is_not_done(make: Make) -> None:
    human(make, "x")
    before = contents(make, "a")
    with pytest.raises(ToolFailure, match="the person said no"):
        in_a_call(lambda: make("a").append_to_block("x", "two"), Approver(answer=False))
    assert contents(make, "a") == before


def test_without_anybody_to_ask_it_is_denied(make: Make) -> None:
    human(make, "x")
    assert said(make("a").append_to_block("x", "two")) == (
        "denied: x was not changed: it requires human approval to append, and no person can be asked here,"
        " outside of a call."
    )


def test_every_block_that_is_touched_is_asked_for_before_any_is_changed(make: Make) -> None:
    human(make, "now", "target")
    done(make("a").create_block("old", "two", kind="archival"))
    memory, person = make("a"), Approver()
    with writes_of(memory) as writes:
        person.first = lambda: writes.append("asked")
        in_a_call(lambda: memory.swap_blocks("now", "old", to="target"), person)
    assert [what for what, _ in person.asked] == ["MemoryEdit now", "MemoryEdit target"]
    assert writes == ["asked", "asked", "put", "put"]


@pytest.mark.parametrize(
    ("what", "work", "sentence"),
    [
        ("text", lambda m: m.replace_in_block("x", "two", "2"), "does not hold the text"),
        ("limit", lambda m: m.append_to_block("x", "y" * 5000), "4 characters too many"),
        ("delete", lambda m: m.move_block("x", "archival", to="y"), "does not let you delete"),
        ("nothing", lambda m: m.append_to_block("x", ""), "nothing to append"),
        ("load", lambda m: m.swap_blocks("x", "long"), "1,000 characters too many"),
        ("load elsewhere", lambda m: m.swap_blocks("x", "long", to="new"), "1,000 characters too many"),
        ("swap over it", lambda m: m.swap_blocks("x", "long", to="small"), "5,990 characters too many"),
        ("load over it", lambda m: m.move_block("long", "working", to="x"), "1,000 characters too many"),
    ],
)
def test_nobody_is_asked_for_what_cannot_be_done(make: Make, what: str, work: Any, sentence: str) -> None:
    human(make, "x")
    done(make("a").create_block("long", "y" * 6000, kind="archival"))
    done(make("a").create_block("small", limit=10))
    person = Approver()
    with pytest.raises((ToolError, ToolFailure), match=sentence):
        in_a_call(lambda: work(make("a")), person)
    assert person.asked == []


def test_what_changed_while_the_person_thought_is_checked_again(make: Make) -> None:
    human(make, "x")
    person = Approver()

    def meanwhile() -> None:
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(
                asyncio.run, make("a", person=True).edit_block("x", permission="read_only")
            ).result()

    person.first = meanwhile
    with pytest.raises(ToolFailure, match="its permission is read_only, which does not let you append"):
        in_a_call(lambda: make("a").append_to_block("x", "two"), person)
    assert done(make("a").get_block("x")).text == "one"


def test_a_call_asks_through_the_door_and_says_who_wrote(make: Make) -> None:
    human(make, "x")

    async def body(ctx: Any) -> str:
        return str((await ctx.memory.append_to_block("x", "two")).text)

    class Person:
        async def request(self, _: Any, call: Call, reason: str) -> Verdict:
            asked.append(f"{call.form} because {reason}")
            return ALLOW

    asked: list[str] = []
    services = Services(memory=make("a"))
    here = gateway(tool("note", body), consent=Person(), given={"services": services, "user": "ann"})
    assert here.pass_through("(note)", session="s1", route="reply").value == "one\ntwo"
    assert asked == ['(note :permission? "MemoryEdit x") because Requires human approval to append']
    block = done(make("a").get_block("x"))
    assert (block.text, block.by) == ("one\ntwo", "ann (note, reply)")
