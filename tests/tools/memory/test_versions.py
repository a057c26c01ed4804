"""Earlier texts are kept as differences: every one of them comes back, and many appends cost little."""

from __future__ import annotations

from itertools import pairwise

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from memory import dict_memory, done, sqlite_memory

from quoth.tools.call.service_types import BlockVersion
from quoth.tools.memory.stored import common, delta, unrolled
from quoth.tools.storage.database import Store

# Texts that often share a beginning, an end, or both with overlaps.
TEXTS = st.one_of(
    st.text("ab\n", max_size=12), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)


@given(st.lists(TEXTS, min_size=1, max_size=6))
@examples(5)
def test_every_earlier_text_comes_back(texts: list[str]) -> None:
    versions = [BlockVersion(n, text, f"at {n}", f"by {n}") for n, text in enumerate(texts, 1)]
    deltas = [delta(old, new.text) for old, new in pairwise(versions)]
    assert list(unrolled(texts[-1], reversed(deltas))) == versions[-2::-1]


@given(TEXTS, TEXTS)
@examples(5)
def test_only_what_is_not_there_any_more_is_stored(older: str, newer: str) -> None:
    found = delta(BlockVersion(1, older), newer)
    assert found.head + len(found.middle) + found.tail == len(older)
    assert found.head + found.tail <= len(newer)
    rest_old, rest_new = older[found.head :], newer[found.head :]
    assert not rest_old or not rest_new or rest_old[0] != rest_new[0]
    assert not found.middle or len(rest_new) == found.tail or found.middle[-1] != newer[-found.tail - 1]


def test_a_thousand_appends_cost_what_they_add_and_come_back_one_by_one(store: Store) -> None:
    memory = sqlite_memory(store)("a")
    times = 1000

    async def fill() -> None:
        await memory.create_block("log", limit=100_000)
        for number in range(times):
            await memory.append_to_block("log", f"line {number:03}")

    done(fill())
    ((kept,),) = store.execute("SELECT sum(length(middle)) FROM block_versions")
    assert kept == 0
    history = done(memory.history("log"))
    assert [one.text.count("line") for one in history] == list(range(times - 1, -1, -1))
    assert [one.version for one in history] == list(range(times, 0, -1))


@given(st.lists(st.sampled_from(["update a", "update b", "append", "archive", "load", "undo"]), max_size=8))
@examples(1)
def test_undo_gives_the_text_before_the_last_change_of_it_as_a_new_version(steps: list[str]) -> None:
    memory = dict_memory()("a")

    async def go() -> None:
        block = await memory.create_block("x", "start")
        texts = [block.text]
        for number, step in enumerate(steps, 2):
            before = block.version
            if step == "append":
                block = await memory.append_to_block("x", f"line {number}")
            elif step in ("archive", "load"):
                kind = "archival" if step == "archive" else "working"
                block = block if block.kind == kind else await memory.move_block("x", kind)
            elif step == "undo" and len(texts) > 1:
                block = await memory.undo("x")
                assert block.text == texts[-2]
            else:
                block = await memory.update_block_text("x", step)
            if block.text != texts[-1]:
                texts.append(block.text)
                assert block.version == before + 1
        past = await memory.history("x")
        assert [one.version for one in past] == list(range(block.version - 1, 0, -1))
        seen = [one.text for one in reversed(past)] + [block.text]
        assert [text for at, text in enumerate(seen) if not at or text != seen[at - 1]] == texts

    done(go())


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("abcXdef", "abcYdef", (3, 3, "X")),
        ("abcdef", "abcXdef", (3, 3, "")),
        ("abcXdef", "abcdef", (3, 3, "X")),
        ("abc", "abcdef", (3, 0, "")),
        ("abc", "", (0, 0, "abc")),
        ("aaa", "aa", (2, 0, "a")),
        ("abc", "xbc", (0, 2, "a")),
        ("ab", "ab", (2, 0, "")),
    ],
)
def test_of_an_older_text_only_what_differs_is_kept(old: str, new: str, kept: tuple[int, int, str]) -> None:
    found = delta(BlockVersion(1, old), new)
    assert (found.head, found.tail, found.middle) == kept
    assert found.before(new) == old


@pytest.mark.parametrize(
    ("one", "other", "many"),
    [("", "", 0), ("a", "b", 0), ("ab", "abc", 2), ("x" * 99 + "a", "x" * 99 + "b", 99)],
)
def test_what_two_texts_begin_with_is_counted(one: str, other: str, many: int) -> None:
    assert common(one, other) == common(other, one) == many
