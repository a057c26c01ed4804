"""Where a person must approve a change: they are asked before the first one, and it is then done once."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from memory import Approver, Make, contents, done, in_a_call, said, writes_of
from sentences import DOES_NOT_CONTAIN_THE_TEXT, THE_PERSON_SAID_NO
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
    with pytest.raises(ToolFailure, match=THE_PERSON_SAID_NO):
        in_a_call(lambda: make("a").append_to_block("x", "two"), Approver(answer=False))
    assert contents(make, "a") == before


def test_without_anybody_to_ask_it_is_denied(make: Make) -> None:
    human(make, "x")
    assert said(make("a").append_to_block("x", "two")) == (
        "denied: x was not changed: it requires human approval to append, and outside a call no person can"
        " be asked."
    )


def test_every_block_that_is_touched_is_asked_for_before_any_is_changed(make: Make) -> None:
    human(make, "now", "target")
    done(make("a").create_block("old", "two", kind="archival"))
    memory, person = make("a"), Approver()
    with writes_of(memory) as writes:
        person.first = lambda: writes.append("asked")
        in_a_call(lambda: memory.swap_blocks("now", "old", to="target"), person)
    assert [re.sub("text [0-9a-f]{24}", "text …", what) for what, _ in person.asked] == [
        "MemoryEdit now (overwrite version 2, kind archival)",
        "MemoryEdit target (overwrite version 2, text …)",
    ]
    assert writes == ["asked", "asked", "put", "put"]


@pytest.mark.parametrize(
    ("what", "work", "sentence"),
    [
        ("text", lambda m: m.replace_in_block("x", "two", "2"), DOES_NOT_CONTAIN_THE_TEXT),
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


OVERWRITES = {
    "load": (lambda m: m.move_block("draft", "working", to="x"), "new\ntext"),
    "swap": (lambda m: m.swap_blocks("now", "draft", to="x"), "new\ntext"),
    "archive": (lambda m: m.move_block("mine", "archival", to="old"), "to be kept"),
    "undo": (lambda m: m.undo("x"), "zero"),
    "replace": (lambda m: m.replace_in_block("x", "o", "0"), "0ne"),
    "update": (lambda m: m.update_block_text("x", "a" * 300), "a" * 300),
}


@pytest.fixture
def desk(make: Make) -> Make:
    """A block x that a person guards, with an earlier text, and what could come over it."""

    async def go() -> None:
        await make("a").create_block("x", "zero", kind="core")
        await make("a").update_block_text("x", "one")
        await make("a").create_block("draft", "new\ntext", kind="archival")
        await make("a").create_block("old", "old", kind="archival")
        await make("a").create_block("now", "now", kind="core")
        await make("a").create_block("mine", "to be kept")
        await make("a", person=True).edit_block("mine", permission="admin")
        for label in ("x", "old"):
            await make("a", person=True).edit_block(label, permission="human")

    done(go())
    return make


@pytest.mark.parametrize("name", OVERWRITES)
def test_a_person_sees_what_a_block_would_hold(desk: Make, name: str) -> None:
    work, text = OVERWRITES[name]
    person = Approver()
    in_a_call(lambda: work(desk("a")), person)
    ((what, reason),) = person.asked
    label = "old" if name == "archive" else "x"
    assert re.match(rf"MemoryEdit {label} \(overwrite version \d, text [0-9a-f]{{24}}\)$", what)
    seen = "a" * 199 + "…" if name == "update" else text.replace("\n", " ")
    assert reason == (
        f'Requires human approval to overwrite; {label} would then contain {len(text)} characters: "{seen}"'
    )
    assert done(desk("a").get_block(label)).text == text


@pytest.mark.parametrize("name", OVERWRITES)
@pytest.mark.parametrize("whose", ["the block", "what comes"])
def test_an_approval_covers_the_text_it_approves_and_no_other(desk: Make, name: str, whose: str) -> None:
    """Whatever changed while a person thought: the approved overwrite is either made as it was approved, or
    asked for anew."""
    changed = {"load": "draft", "swap": "draft", "archive": "mine"}.get(name, "x")
    if whose == "the block":
        changed = "old" if name == "archive" else "x"
    person = Approver()

    def meanwhile() -> None:
        person.first = lambda: None
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(asyncio.run, desk("a", person=True).edit_block(changed, text="oEVIL")).result()

    person.first = meanwhile
    in_a_call(lambda: OVERWRITES[name][0](desk("a")), person)
    (first, _), (second, reason) = person.asked
    assert first != second
    text = done(desk("a").get_block("old" if name == "archive" else "x")).text
    assert reason.endswith(
        f' would then contain {len(text)} characters: "{text[:199]}{"…" * (len(text) > 200)}"'.replace(
            "\n", " "
        )
    )


def test_an_approval_to_append_is_none_to_overwrite(make: Make) -> None:
    """In one call of a tool of one's own, and for a shared block of the same label neither."""
    human(make, "h")

    async def go() -> None:
        await make("b").create_block("h", "theirs")
        await make("b", person=True).edit_block("h", permission="human")
        await make("b", person=True).share_block("h", "c", "admin")

    done(go())
    person = Approver()
    in_a_call(lambda: make("a").append_to_block("h", "two"), person)
    in_a_call(lambda: make("a").update_block_text("h", "three"), person)
    in_a_call(lambda: make("c").append_to_block("h", "two"), person)
    in_a_call(lambda: make("c").update_block_text("h", "three"), person)
    assert [re.sub("text [0-9a-f]{24}", "text …", what) for what, _ in person.asked] == [
        "MemoryEdit h",
        "MemoryEdit h (overwrite version 3, text …)",
        "MemoryEdit h (of b)",
        "MemoryEdit h (of b, overwrite version 3, text …)",
    ]


def test_a_label_that_looks_like_an_approval_is_in_quotes(make: Make) -> None:
    human(make, "h (of b)")
    person = Approver()
    in_a_call(lambda: make("a").append_to_block("h (of b)", "two"), person)
    assert person.asked[0][0] == 'MemoryEdit "h (of b)"'


def test_what_is_shown_of_a_long_text_is_its_change(make: Make) -> None:
    human(make, "x")
    done(make("a", person=True).edit_block("x", text="a" * 400))
    person = Approver()
    in_a_call(lambda: make("a").update_block_text("x", "a" * 400 + "\x1b[2K\u202eEVIL"), person)
    assert person.asked[0][1] == (
        "Requires human approval to overwrite; x would then contain 409 characters:"
        f' "…{"a" * 20}\ufffd[2K\ufffdEVIL"'
    )


def test_a_person_sees_where_a_block_would_be(make: Make) -> None:
    human(make, "x", kind="archival")
    person = Approver()
    in_a_call(lambda: make("a").move_block("x", "core"), person)
    assert person.asked == [
        (
            "MemoryEdit x (overwrite version 2, kind core)",
            "Requires human approval to overwrite; x would then be core",
        )
    ]


def test_nobody_is_asked_to_leave_a_text_as_it_is(make: Make) -> None:
    human(make, "x")
    person = Approver()
    assert in_a_call(lambda: make("a").update_block_text("x", "one"), person).version == 2
    assert person.asked == []


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
