"""Blocks and their operations: what each does, and what each says when it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memory import Make, contents, done, in_a_call, said
from sentences import (
    A_NUL_CHARACTER,
    DOES_NOT_CONTAIN_THE_TEXT,
    IS_LIMITED_TO,
    MUST_BE_1_TO,
    NOTHING_WAS_CHANGED,
    ONLY_A_PERSON_CAN,
    PRINTABLE_CHARACTERS_WITHOUT_A_SPACE,
    THERE_IS_NO_BLOCK_NAMED,
)
from words import PausableClock

from quoth.tools.call.service_types import Block
from quoth.tools.errors import UsageError
from quoth.tools.memory import checks
from quoth.tools.memory.sqlite import SqliteMemory, open_memory
from quoth.tools.memory.stored import Blocks, Delta
from quoth.tools.storage.database import Store

LISTED = "The blocks are: archive, plan, preferences, small, tasks."

# What cannot be done to the blocks of ``furnished``, and the sentence that says so.
FAILURES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "unknown label": (
        lambda m: m.append_to_block("preference", "x"),
        f"{THERE_IS_NO_BLOCK_NAMED} preference. Did you mean preferences? {LISTED}",
    ),
    "unknown label, nothing near": (
        lambda m: m.undo("zzz"),
        f"{THERE_IS_NO_BLOCK_NAMED} zzz. {LISTED}",
    ),
    "unknown label with what no label can hold": (
        lambda m: m.get_or_fail("a\n\x1bb"),
        f"{THERE_IS_NO_BLOCK_NAMED} a��b. {LISTED}",
    ),
    "unknown label with half a character": (
        lambda m: m.undo("\ud800"),
        f"{THERE_IS_NO_BLOCK_NAMED} �. {LISTED}",
    ),
    "label taken": (
        lambda m: m.create_block("plan"),
        "There is already a block named plan (core). Change that one, or choose another label.",
    ),
    "label": (
        lambda m: m.create_block(" plan\n"),
        rf"A label {MUST_BE_1_TO} 100 {PRINTABLE_CHARACTERS_WITHOUT_A_SPACE} ' plan\n'.",
    ),
    "label to copy to": (
        lambda m: m.move_block("archive", "working", to="x" * 101),
        f"A label {MUST_BE_1_TO} 100 {PRINTABLE_CHARACTERS_WITHOUT_A_SPACE} '" + "x" * 40 + "'.",
    ),
    "kind": (
        lambda m: m.create_block("new", kind="cold"),
        "Unknown kind of block cold; use core, working or archival.",
    ),
    "permission": (
        lambda m: m.create_block("new", permission="rw"),
        "Unknown permission rw; use read_only, partner, human, append, read_write or admin.",
    ),
    "limit": (
        lambda m: m.create_block("new", limit=-1),
        f"The limit of a block {MUST_BE_1_TO} 10,000,000 characters, not -1.",
    ),
    "NUL": (
        lambda m: m.append_to_block("plan", "a\0"),
        f"A block cannot contain {A_NUL_CHARACTER} 2).",
    ),
    "surrogate": (
        lambda m: m.replace_in_block("plan", "First", "\udce9"),
        "A block cannot contain an unpaired surrogate (character 1).",
    ),
    "description": (
        lambda m: m.create_block("new", description="a\0"),
        f"A block cannot contain {A_NUL_CHARACTER} 2).",
    ),
    "nothing to append": (
        lambda m: m.append_to_block("plan", ""),
        "There is nothing to append to plan: the text is empty.",
    ),
    "old text not there": (
        lambda m: m.replace_in_block("plan", "Third", "3"),
        f"plan {DOES_NOT_CONTAIN_THE_TEXT} 'Third', so nothing was replaced.",
    ),
    "limit passed": (
        lambda m: m.append_to_block("small", "1234567"),
        f"small {IS_LIMITED_TO} 10 characters; this would make it 11: 1 character too many. Nothing was"
        " changed.",
    ),
    "limit passed by a new block": (
        lambda m: m.create_block("new", "x" * 5020, kind="core"),
        f"new {IS_LIMITED_TO} 5,000 characters; this would make it 5,020: 20 characters too many. Nothing"
        " was changed.",
    ),
    "limit passed by a copy": (
        lambda m: m.move_block("archive", "working", to="small"),
        f"small {IS_LIMITED_TO} 10 characters; this would make it 15: 5 characters too many. Nothing was"
        " changed.",
    ),
    "limit passed by loading": (
        lambda m: m.swap_blocks("plan", "tasks"),
        f"tasks {IS_LIMITED_TO} 5,000 characters; this would make it 6,000: 1,000 characters too many."
        f" {NOTHING_WAS_CHANGED}.",
    ),
    "archival already": (lambda m: m.move_block("archive", "archival"), "archive is archival already."),
    "working already": (lambda m: m.move_block("small", "working"), "small is working already."),
    "archival already, under another label": (
        lambda m: m.move_block("archive", "archival", to="other"),
        "archive is archival already.",
    ),
    "load of what is not archival": (
        lambda m: m.move_block("plan", "working", to="other"),
        "plan is core; only an archival block can be loaded to another label.",
    ),
    "swap of an archival block": (
        lambda m: m.swap_blocks("archive", "tasks"),
        "archive is archival already; swap archives only a core or working block.",
    ),
    "swap for a block that is not archival": (
        lambda m: m.swap_blocks("plan", "small"),
        "small is working; swap loads only an archival block.",
    ),
    "swap onto the archived block": (
        lambda m: m.swap_blocks("plan", "archive", to="plan"),
        "plan is the block to be archived; load the other block to another label.",
    ),
    "nothing to undo": (
        lambda m: m.undo("archive"),
        "The text of archive was never changed, so there is nothing to undo.",
    ),
    "share with itself": (
        lambda m: m.share_block("plan", "a"),
        "An agent needs a name (agent_id) to share blocks, and shares them with others.",
    ),
    "share with nobody": (
        lambda m: m.share_block("plan", " "),
        f"The name of an agent {MUST_BE_1_TO} 100 {PRINTABLE_CHARACTERS_WITHOUT_A_SPACE} ' '.",
    ),
    "unshare what is not shared": (lambda m: m.unshare_block("plan", "b"), "plan is not shared with b."),
    "forget as a program": (
        lambda m: m.forget("plan"),
        f"{ONLY_A_PERSON_CAN} forget blocks: quoth memory forget LABEL.",
    ),
}


@pytest.fixture
def furnished(make: Make) -> Any:
    """The memory of agent a with five blocks."""
    memory = make("a")

    async def fill() -> None:
        await memory.create_block("plan", "First\nSecond", kind="core")
        await memory.create_block("preferences", "Dark mode", kind="core")
        await memory.create_block("small", "123", limit=10)
        await memory.create_block("archive", "What was before", kind="archival")
        await memory.create_block("tasks", "x" * 6000, kind="archival")

    done(fill())
    memory.get_or_fail = memory.persist_block
    return memory


@pytest.mark.parametrize("case", FAILURES)
def test_what_cannot_be_done_says_why_and_changes_nothing(make: Make, furnished: Any, case: str) -> None:
    work, sentence = FAILURES[case]
    before = contents(make, "a")
    assert said(work(furnished)) == f"ToolError: {sentence}"
    assert contents(make, "a") == before


def test_the_labels_of_an_error_are_few_and_name_shared_ones(make: Make) -> None:
    assert said(make("a").undo("x")) == f"ToolError: {THERE_IS_NO_BLOCK_NAMED} x; there are no blocks yet."

    async def fill() -> None:
        for number in range(30):
            await make("a").create_block(f"note {number:02}")
        await make("b").create_block("about b")
        await make("b").share_block("about b", "a")

    done(fill())
    shown = ", ".join(["about b", *(f"note {number:02}" for number in range(19))])
    assert said(make("a").undo("about a")) == (
        f"ToolError: There is no block named about a. Did you mean about b? The blocks are: {shown} and more."
    )


def test_the_nearest_of_very_many_labels_is_found_among_those_that_begin_alike(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.memory.checks.COMPARED", 10)

    async def fill() -> None:
        for number in range(20):
            await make("a").create_block(f"a {number:02}")
        await make("a").create_block("preferences")

    done(fill())
    assert "Did you mean preferences?" in said(make("a").undo("prefrences"))


# What a block says of itself


def test_a_block_says_when_it_was_written_and_by_whom(make: Make) -> None:
    clock = PausableClock()
    memory = make("a", clock=clock)
    done(memory.create_block("x", "one"))
    clock.wait(61)
    in_a_call(
        lambda: memory.append_to_block("x", "two"),
        None,
        user="ann",
        session="s1",
        tool="block",
        route="reply",
    )
    clock.wait(60)
    done(make("a", person=True, user="bo", clock=clock).edit_block("x", description="notes", limit=500))
    block = done(memory.get_block("x"))
    assert block == Block(
        "x",
        "one\ntwo",
        "working",
        "read_write",
        "notes",
        limit=500,
        version=3,
        created="2026-03-10T12:00:00+00:00",
        updated="2026-03-10T12:02:01+00:00",
        by="a person (bo)",
    )
    assert [(one.version, one.text, one.at[11:19], one.by) for one in done(memory.history("x"))] == [
        (2, "one\ntwo", "12:01:01", "ann in session s1 (block, reply)"),
        (1, "one", "12:00:00", "the host"),
    ]


def test_what_another_agent_writes_names_that_agent(make: Make) -> None:
    done(make("a").create_block("x", "one"))
    done(make("a").share_block("x", "b", "append"))
    done(make("b").append_to_block("x", "two"))
    assert done(make("a").get_block("x")).by == "agent b: the host"
    assert done(make("b").get_block("x")).owner == "a"


def test_a_change_that_changes_nothing_is_no_version(furnished: Any) -> None:
    before = done(furnished.get_block("plan"))
    assert done(furnished.update_block_text("plan", before.text)) == before


def test_the_limit_follows_the_kind_unless_it_was_given(make: Make, furnished: Any) -> None:
    assert done(furnished.get_block("plan")).limit == 5_000
    assert done(furnished.move_block("plan", "archival")).limit == 100_000
    assert done(furnished.move_block("plan", "working")).limit == 20_000
    assert done(furnished.move_block("small", "archival")).limit == 10
    done(make("a").create_block("same", limit=20_000))  # that of its kind
    assert done(furnished.move_block("same", "archival")).limit == 100_000
    person = make("a", person=True)
    assert done(person.edit_block("small", limit=100_000)).limit == 100_000  # that of its kind, again
    assert done(person.edit_block("small", kind="core")).limit == 5_000


# Moving and swapping


def test_an_archived_block_under_another_label_is_the_same_block(make: Make, furnished: Any) -> None:
    done(make("a", person=True).edit_block("plan", permission="admin"))
    moved = done(furnished.move_block("plan", "archival", to="old plan"))
    assert (moved.label, moved.kind, moved.permission) == ("old plan", "archival", "admin")
    assert done(furnished.get_block("plan")) is None


def test_a_loaded_copy_belongs_to_the_agent(make: Make, furnished: Any) -> None:
    done(make("a", person=True).edit_block("archive", permission="human", description="what was"))
    copy = done(furnished.move_block("archive", "core", to="now"))
    assert (copy.kind, copy.permission, copy.description) == ("core", "read_write", "what was")
    assert done(furnished.get_block("archive")).permission == "human"


def test_a_copy_of_a_shared_block_is_the_agents_own(make: Make) -> None:
    done(make("b").create_block("x", "theirs", kind="archival", limit=50))
    done(make("b").share_block("x", "a"))
    copy = done(make("a").move_block("x", "working", to="y"))
    assert (copy.owner, copy.text, copy.limit) == ("", "theirs", 50)
    assert [block.label for block in done(make("a").list_blocks())] == ["y"]
    assert [block.label for block in done(make("b").list_blocks())] == ["x"]


def test_two_changes_of_a_block_in_one_transaction_are_both_there(make: Make, furnished: Any) -> None:
    def twice(blocks: Blocks) -> None:
        block = blocks.get("small")
        assert block
        blocks.put(replace(block, kind="archival", version=2), Delta(1, 3, 0, ""))
        blocks.put(replace(block, kind="working", version=3), Delta(2, 3, 0, ""))

    done(furnished._atomically(twice))
    block = done(furnished.get_block("small"))
    assert (block.kind, block.version) == ("working", 3)
    assert [one.version for one in done(furnished.history("small"))] == [2, 1]


def test_a_copy_over_a_block_in_view_leaves_it_where_it_is(furnished: Any) -> None:
    assert done(furnished.move_block("archive", "working", to="plan")).kind == "core"


def test_a_swap_elsewhere_deletes_the_archived_source_with_admin_alone(make: Make, furnished: Any) -> None:
    done(furnished.swap_blocks("plan", "archive", to="new"))
    assert done(furnished.get_block("archive")) is not None
    done(make("a", person=True).edit_block("archive", permission="admin"))
    loaded = done(furnished.swap_blocks("new", "archive", to="newer"))
    assert (loaded.kind, loaded.permission) == ("core", "read_write")
    assert done(furnished.get_block("archive")) is None


# People


def test_a_person_edits_all_of_a_block_at_once(make: Make, furnished: Any) -> None:
    edited = done(
        make("a", person=True).edit_block(
            "plan", text="New", kind="working", permission="human", limit=50, description="d"
        )
    )
    assert (edited.text, edited.kind, edited.permission, edited.limit, edited.description) == (
        "New",
        "working",
        "human",
        50,
        "d",
    )
    assert edited.version == 2


def test_a_person_is_bound_by_the_limit_and_by_what_a_block_can_hold(make: Make, furnished: Any) -> None:
    person = make("a", person=True)
    assert "1 character too many" in said(person.edit_block("small", limit=2))
    assert "NUL" in said(person.edit_block("small", text="\0"))
    assert "Unknown kind of block x" in said(person.edit_block("small", kind="x"))
    assert "Unknown permission x" in said(person.edit_block("small", permission="x"))
    done(make("b").create_block("theirs"))
    done(make("b").share_block("theirs", "a", "read_write"))
    assert said(person.edit_block("theirs", text="x")) == (
        "ToolError: theirs belongs to b, so only b can edit it."
    )


def test_what_is_forgotten_leaves_nothing(make: Make, store: Store) -> None:
    secret = "the secret word is xyzzy"
    memory = make("a")
    done(memory.create_block("x", secret))
    done(memory.search_blocks("xyzzy"))
    done(memory.update_block_text("x", "nothing"))
    done(memory.share_block("x", "b"))
    done(memory.search_blocks("nothing"))
    done(make("a", person=True).forget("x"))
    assert done(make("b").list_shared_blocks()) == []
    done(memory.create_block("x", "again"))
    assert done(memory.history("x")) == []
    assert done(make("b").get_block("x")) is None
    if isinstance(memory, SqliteMemory):
        files = [Path(f"{store.path}{beside}") for beside in ("", "-wal")]
        assert not any(b"xyzzy" in file.read_bytes() for file in files)


# Several blocks of one label


def test_an_own_block_goes_before_shared_ones_and_none_of_these_before_another(make: Make) -> None:
    for owner in ("c", "b", "d"):
        done(make(owner).create_block("x", f"of {owner}"))
        done(make(owner).share_block("x", "a", "read_write"))
    for work in (
        make("a").get_block("x"),
        make("a").append_to_block("x", "two"),
        make("a").move_block("x", "core"),
    ):
        assert said(work) == (
            "ToolError: Several agents share a block named x with this one: b, c, d. All but one of them must"
            " unshare it first: quoth memory edit x --agent OWNER --share AGENT="
        )
    assert [block.owner for block in done(make("a").list_shared_blocks())] == ["b", "c", "d"]
    done(make("a").create_block("x", "mine"))
    assert done(make("a").get_block("x")).text == "mine"
    assert [block.owner for block in done(make("a").list_shared_blocks())] == ["b", "c", "d"]


# Values of a wrong type, from a tool of one's own

WRONG_TYPES: dict[str, tuple[Any, str]] = {
    "label": (lambda m: m.get_block(5), "A label must be a text, not 5."),
    "label of a change": (lambda m: m.delete_block(None), "A label must be a text, not None."),
    "label of another": (
        lambda m: m.move_block("archive", "working", to=5),
        "A label must be a text, not 5.",
    ),
    "new label": (lambda m: m.create_block(5), "A label must be a text, not 5."),
    "text": (lambda m: m.create_block("x", 5), "The content of a block must be a text, not 5."),
    "text of bytes": (
        lambda m: m.update_block_text("plan", b"x"),
        "The content of a block must be a text, not b'x'.",
    ),
    "appended": (
        lambda m: m.append_to_block("plan", None),
        "The content of a block must be a text, not None.",
    ),
    "old text": (
        lambda m: m.replace_in_block("plan", 5, "x"),
        "The content of a block must be a text, not 5.",
    ),
    "description": (
        lambda m: m.create_block("x", description=5),
        "The content of a block must be a text, not 5.",
    ),
    "limit in words": (
        lambda m: m.create_block("x", limit="5"),
        "The limit of a block must be a whole number, not '5'.",
    ),
    "half a limit": (
        lambda m: m.create_block("x", limit=5.5),
        "The limit of a block must be a whole number, not 5.5.",
    ),
    "limit True": (
        lambda m: m.create_block("x", limit=True),
        "The limit of a block must be a whole number, not True.",
    ),
    "kind": (lambda m: m.create_block("x", kind=[]), "The kind of a block must be a text, not []."),
    "kinds": (lambda m: m.list_blocks(5), "The kind of a block must be a text, not 5."),
    "permission": (lambda m: m.share_block("plan", "b", 5), "A permission must be a text, not 5."),
    "agent": (lambda m: m.share_block("plan", 5), "The name of an agent must be a text, not 5."),
    "agent of a list": (
        lambda m: m.unshare_block("plan", []),
        "The name of an agent must be a text, not [].",
    ),
}


@pytest.mark.parametrize("what", WRONG_TYPES)
def test_a_value_of_a_wrong_type_is_a_sentence(make: Make, furnished: Any, what: str) -> None:
    work, sentence = WRONG_TYPES[what]
    before = contents(make, "a")
    assert said(work(make("a"))) == f"ToolError: {sentence}"
    assert contents(make, "a") == before


# Which store


def test_a_url_chooses_the_store(store: Store) -> None:
    assert isinstance(open_memory(None, lambda: store, "a"), SqliteMemory)
    assert isinstance(open_memory("", lambda: store, "a", person=True, user="ann"), SqliteMemory)


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("mysql://ann:secret@host/db", "mysql://"),
        ("host", "text without ://"),
        ("postgresql:/x", "text without ://"),
    ],
)
def test_a_url_of_no_store_is_told_without_its_password(store: Store, url: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_memory(url, lambda: store, "a")
    assert str(caught.value) == (
        "The URL of the memory must be postgresql://USER:PASSWORD@HOST/DATABASE (or postgres://…), not"
        f" {what}. Without a URL, the memory is in the workspace."
    )


def test_concurrent_appends_of_one_process_lose_nothing(make: Make) -> None:
    async def go() -> str:
        await make("a").create_block("x")
        await asyncio.gather(*(make("a").append_to_block("x", f"{n}") for n in range(30)))
        return str((await make("a").get_block("x")).text)

    assert sorted(done(go()).split("\n"), key=int) == [f"{n}" for n in range(30)]


COMPOSED, PARTED = "Caf\u00e9", "Cafe\u0301"  # which look the same


def test_a_label_is_one_in_either_form_of_unicode(make: Make) -> None:
    memory = make("a", person=True)
    made = done(memory.create_block(PARTED, "tea", kind="archival"))
    assert made.label == COMPOSED
    for label in (COMPOSED, PARTED):
        assert done(memory.get_block(label)) == made
    assert "There is already a block" in said(memory.create_block(COMPOSED))
    done(memory.append_to_block(PARTED, "and milk"))
    assert (done(memory.move_block(COMPOSED, "working", to=PARTED))).kind == "working"
    done(memory.delete_block(PARTED))
    assert done(memory.list_blocks()) == []


def test_a_label_that_is_stored_in_the_other_form_is_found_too(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make("a", person=True)
    with monkeypatch.context() as before:
        before.setattr(checks, "composed", lambda label: label)
        done(memory.create_block(PARTED, "tea"))
    assert (done(memory.append_to_block(COMPOSED, "and milk"))).text == "tea\nand milk"
    assert "There is already a block" in said(memory.create_block(COMPOSED))
    done(memory.delete_block(COMPOSED))
    assert done(memory.list_blocks()) == []
