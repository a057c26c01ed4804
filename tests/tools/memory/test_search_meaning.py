"""Search by meaning: vectors are added to words, made bit by bit, and made again for another model."""

from __future__ import annotations

from typing import Any

import pytest
from talk import Concepts, conversation, labels

from quoth.tools.call.service_types import SearchOptions
from quoth.tools.errors import StoreError, ToolError
from quoth.tools.memory import vectors
from quoth.tools.memory.search import NO_MEANING, status
from quoth.tools.memory.sqlite import SqliteMemory
from quoth.tools.storage.database import Store

PETS = {"cat": 1, "kitten": 1, "pet": 1, "car": 2, "wheel": 2, "driver": 2}


@pytest.fixture
def model() -> Concepts:
    return Concepts(**PETS)


def remembering(store: Store, model: Any, **options: Any) -> SqliteMemory:
    return SqliteMemory(lambda: store, "a", user="ann", embedder=model, **options)


@pytest.fixture
async def memory(store: Store, model: Concepts) -> SqliteMemory:
    memory = remembering(store, model)
    await memory.create_block("home", "The kitten sleeps.", kind="archival")
    await memory.create_block("work", "The driver waits.", kind="archival")
    return memory


async def test_what_means_the_same_is_found_without_its_words(memory: SqliteMemory) -> None:
    (hit,) = await memory.search("cat", "agent", SearchOptions())

    assert hit.label == "home"
    assert list(hit.parts) == ["meaning"]


async def test_words_and_meaning_add_up(memory: SqliteMemory) -> None:
    await memory.create_block("both", "The cat is a pet.", kind="archival")

    hits = await memory.search("cat", "agent", SearchOptions())

    assert [hit.label for hit in hits] == ["both", "home"]
    assert list(hits[0].parts) == ["words", "meaning"]
    assert hits[0].score == pytest.approx(sum(hits[0].parts.values()))


async def test_semantic_search_asks_for_the_meaning_alone(memory: SqliteMemory) -> None:
    await memory.create_block("list", "cat car wheel driver wheel car wheel", kind="archival")

    hits = await memory.search("cat", "agent", SearchOptions(semantic=True))

    assert [hit.label for hit in hits][:2] == ["home", "list"]
    assert all(list(hit.parts) == ["meaning"] for hit in hits[:2])


async def test_what_is_far_in_meaning_is_no_hit_of_a_semantic_search(memory: SqliteMemory) -> None:
    hits = await memory.search("wheel", "agent", SearchOptions(semantic=True))

    assert [hit.label for hit in hits] == ["work"]


async def test_conversations_are_found_by_meaning(store: Store, memory: SqliteMemory) -> None:
    conversation(store, "s1", "My kitten is grey.", "And the wheel is round.")

    found = await labels(memory, "pet", domain="conversations")

    assert found[0] == "s1.1"


async def test_meaning_shows_nothing_that_is_not_the_agents(store: Store, memory: SqliteMemory) -> None:
    other = SqliteMemory(lambda: store, "b", user="bob", embedder=memory.embedder)
    with store.transaction():
        for number in range(150):
            await other.create_block(f"b{number}", "A cat, a cat.", kind="archival")
    conversation(store, "s1", "My kitten is grey.", user="bob")

    assert await labels(memory, "cat") == ["home"]


async def test_forgetting_takes_the_vector_too(store: Store, memory: SqliteMemory) -> None:
    person = remembering(store, memory.embedder, person=True)
    await labels(memory, "cat")
    assert status(store, memory.embedder).embedded == 2

    await person.forget("home")

    assert status(store, memory.embedder).embedded == 1
    assert await labels(memory, "cat") == []


async def test_each_text_is_embedded_once_and_again_when_it_changes(
    memory: SqliteMemory, model: Concepts
) -> None:
    await labels(memory, "cat")
    await labels(memory, "cat")
    assert model.asked.count("home: The kitten sleeps.") == 1

    await memory.append_to_block("home", "And eats.")
    await labels(memory, "cat")

    assert model.asked.count("home: The kitten sleeps.\nAnd eats.") == 1


# Where it cannot be done


async def test_without_a_model_words_are_searched_and_the_status_says_what_is_missing(
    store: Store, memory: SqliteMemory
) -> None:
    plain = remembering(store, None)

    assert await labels(plain, "kittens") == ["home"]
    assert status(store, None).missing == NO_MEANING
    with pytest.raises(ToolError) as told:
        await plain.search("kitten", "agent", SearchOptions(semantic=True))
    assert str(told.value) == NO_MEANING


async def test_without_sqlite_vec_words_are_searched(
    store: Store, memory: SqliteMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "find_spec", lambda name: None)

    assert await labels(memory, "kittens") == ["home"]
    assert status(store, memory.embedder).missing == NO_MEANING
    with pytest.raises(ToolError, match="pip install"):
        await memory.search("kitten", "agent", SearchOptions(semantic=True))


async def test_an_extension_that_cannot_be_loaded_is_none(
    store: Store, memory: SqliteMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match="SQLite cannot load /nowhere"):
        store.load_extension("/nowhere")
    monkeypatch.setattr("sqlite_vec.loadable_path", lambda: "/nowhere")

    assert await labels(memory, "kittens") == ["home"]


async def test_a_model_that_fails_leaves_the_words(memory: SqliteMemory, model: Concepts) -> None:
    model.broken = "The server is away."

    assert await labels(memory, "kittens") == ["home"]
    with pytest.raises(ToolError, match="The server is away"):
        await memory.search("kitten", "agent", SearchOptions(semantic=True))
    model.broken = ""
    assert await labels(memory, "cat") == ["home"]


ODD = {
    "of another size": lambda texts: [b"\0" * 12 for _ in texts],
    "that are no numbers": lambda texts: [b"\0" * 7 for _ in texts],
    "fewer than texts": lambda texts: [],
}


@pytest.mark.parametrize("how", ODD)
async def test_vectors_that_are_none_leave_the_words(memory: SqliteMemory, model: Concepts, how: str) -> None:
    await labels(memory, "cat")
    model.embed = lambda texts: answer(ODD[how](texts))  # type: ignore[method-assign]
    await memory.create_block("new", "A third thing, a kitten.", kind="archival")

    assert sorted(await labels(memory, "kittens")) == ["home", "new"]
    with pytest.raises(ToolError, match="The embedding model returned"):
        await memory.search("kitten", "agent", SearchOptions(semantic=True))


async def answer(vectors: list[bytes]) -> list[bytes]:
    return vectors


# Bit by bit, and again


async def test_what_was_interrupted_goes_on_where_it_was(
    store: Store, memory: SqliteMemory, model: Concepts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "BATCH", 3)
    for number in range(8):
        await memory.create_block(f"more {number}", f"Thing {number}.", kind="archival")
    real, left = model.embed, [2]

    async def dies(texts: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return await real(texts)

    model.embed = dies  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        await vectors_of(memory)
    assert status(store, model).embedded == 6  # two batches are on disk
    model.embed = real  # type: ignore[method-assign]
    before = len(model.asked)

    await vectors_of(memory)

    assert status(store, model).embedded == 10
    assert len(model.asked) - before == 4


async def vectors_of(memory: SqliteMemory) -> None:
    from quoth.tools.memory.passages import catch_up
    from quoth.tools.memory.search import texts_of

    store = memory.store()
    catch_up(store)
    assert memory.embedder is not None
    await vectors.embed_new(store, memory.embedder, lambda ids: texts_of(store, ids))


async def test_one_search_embeds_for_a_bounded_time(
    store: Store, memory: SqliteMemory, model: Concepts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "BATCH", 1)
    monkeypatch.setattr(vectors.embed_new, "__defaults__", (0.0,))

    await labels(memory, "cat")
    assert status(store, model).embedded == 1
    await labels(memory, "cat")
    assert status(store, model).embedded == 2


async def test_old_vectors_are_asked_with_the_old_model_until_all_are_new(
    store: Store, memory: SqliteMemory, model: Concepts, monkeypatch: pytest.MonkeyPatch
) -> None:
    await labels(memory, "cat")
    monkeypatch.setattr(vectors, "BATCH", 1)
    monkeypatch.setattr(vectors.embed_new, "__defaults__", (0.0,))
    new = Concepts("concepts-2", directions=5, **PETS)
    changed = remembering(store, new, older={"concepts-1": model}.get)

    assert await labels(changed, "cat") == ["home"]
    assert await labels(changed, "wheel") == ["work"]  # one is of the old model, or was until now
    assert [one.name for one in vectors.models(store)] == ["concepts-2", "concepts-1"]
    asked = len(model.asked)
    await labels(changed, "cat")
    assert [one.name for one in vectors.models(store)] == ["concepts-2"]
    assert len(model.asked) == asked  # the old model is not needed any more
    assert await labels(changed, "cat") == ["home"]
    assert await labels(changed, "wheel") == ["work"]


async def test_an_old_model_that_is_gone_leaves_the_words(store: Store, memory: SqliteMemory) -> None:
    await labels(memory, "cat")
    new = Concepts("concepts-2", directions=5, **PETS)
    new.broken = "Not yet."

    assert await labels(remembering(store, new), "kittens") == ["home"]


async def test_one_may_go_back_to_the_first_model(
    store: Store, memory: SqliteMemory, model: Concepts
) -> None:
    await labels(memory, "cat")
    await labels(remembering(store, Concepts("concepts-2", directions=5, **PETS)), "cat")

    assert await labels(memory, "cat") == ["home"]
    assert [one.name for one in vectors.models(store)] == ["concepts-1"]


def test_a_vector_keeps_its_direction_in_a_byte_for_each_part() -> None:
    from array import array

    parts = [0.6, -0.8, 0.0, 0.001]
    small = array("b", vectors.small(array("f", parts).tobytes()))

    assert list(small) == [95, -127, 0, 0]
    assert vectors.small(array("f", [0.0, 0.0]).tobytes()) == b"\x01\x00"


async def test_what_words_found_has_its_meaning_though_it_is_not_among_the_nearest(
    memory: SqliteMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.memory.search.POOL", 1)
    await memory.create_block("list", "A cat, a car, a wheel, a driver.", kind="archival")

    for number in range(2):
        await memory.create_block(f"near {number}", "A kitten.", kind="archival")

    hits = await memory.search("cat", "agent", SearchOptions(limit=1))

    assert [(hit.label, list(hit.parts)) for hit in hits] == [("list", ["words", "meaning"])]
