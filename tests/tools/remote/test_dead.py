"""The dead letters: calls that ended three workers, as people see them, try them again and forget them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from caller import KEY, Caller, at_work, calling
from sentences import IS_NOT_SIGNED_WITH_THE, IT_RUNS_A_PROGRAM
from words import Said, quoth, tool

from quoth.tools.catalog.payload import Key
from quoth.tools.remote import wire
from quoth.tools.remote.dead import signature

COUNT = '(count-fruit :fruit "hush-hush")'
PARAMS = {"fruit": {"type": str, "secret": True}}


def count(**options: Any) -> Any:
    return tool("count-fruit", lambda fruit: 30, params=PARAMS, **options)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    key = tmp_path / "catalog.key"
    key.touch(mode=0o600)
    key.write_text(KEY.secret.hex())
    return tmp_path


async def buried(caller: Caller, what: bytes = b"", by: Key = KEY, **changes: str) -> str:
    """A call that nobody tries any more; its number. Its row was changed after it had been signed."""
    packed = what or caller.call(COUNT).pack(KEY)
    signed = signature(by, packed, "1773144000000-0", "3")
    fields = {wire.FIELD: packed, "entry": "1773144000000-0", "tries": "3", "signature": signed, **changes}
    return bytes(await caller.redis.xadd(wire.dead(caller.prefix), fields)).decode()


async def typed(caller: Caller, here: Path, *words: str) -> Said:
    """A person types ``quoth catalog …``."""
    place = ["--redis", caller.url.full, "--prefix", caller.prefix, "--key", str(here / "catalog.key")]
    return await asyncio.to_thread(quoth, "catalog", *words, *place, cwd=here)


async def test_they_are_listed_without_what_may_be_secret(redis: str, here: Path) -> None:
    async with calling(redis, count()) as caller:
        assert (await typed(caller, here, "dead")).out == "There are no dead letters.\n"
        id, other = await buried(caller), await buried(caller, b"junk")
        listed = await typed(caller, here, "dead")
        data = json.loads((await typed(caller, here, "dead", "--json")).out)
    assert listed.out == (f"{id}  count-fruit, ann, 2026-03-10 12:00 UTC, 3 times\n{other}  not signed\n")
    assert data[0] == {
        "id": id,
        "sent": 1773144000.0,
        "tries": 3,
        "tool": "count-fruit",
        "user": "ann",
        "session": "s1",
    }


async def test_one_is_made_once_more_and_is_dead_no_longer(redis: str, here: Path) -> None:
    async with calling(redis, count()) as caller, at_work(caller):
        id = await buried(caller)
        said = await typed(caller, here, "retry", id)
        assert (said.code, said.out) == (0, "30\n")
        assert not await caller.redis.xlen(wire.dead(caller.prefix))


async def test_one_that_was_made_since_is_not_made_again(redis: str, here: Path) -> None:
    async with calling(redis, count()) as caller, at_work(caller) as worker:
        packed = caller.call(COUNT).pack(KEY)
        await typed(caller, here, "retry", await buried(caller, packed))
        rows = len(worker.door.audit.rows())
        again = await buried(caller, packed)  # by somebody who has kept the row
        said = await typed(caller, here, "retry", again)
        assert len(worker.door.audit.rows()) == rows
    assert said.err == f"quoth: The call {again} has been run since; it can only be dropped.\n"


@pytest.mark.parametrize("change", [{"tries": "9" * 5000}, {"entry": "9" * 30}, {"signature": "x" * 32}])
async def test_one_that_no_worker_has_buried_is_not_believed(
    redis: str, here: Path, change: dict[str, str]
) -> None:
    async with calling(redis, count()) as caller:
        id = await buried(caller, **change)
        assert (await typed(caller, here, "dead")).out == f"{id}  not signed\n"


async def test_one_is_forgotten(redis: str, here: Path) -> None:
    async with calling(redis, count()) as caller:
        id = await buried(caller)
        assert (await typed(caller, here, "drop", id)).out == f"Dropped {id}.\n"
        assert not await caller.redis.xlen(wire.dead(caller.prefix))


MISTAKES = {
    "unknown": ("drop", "7-0", 2, "No dead letter 7-0. quoth catalog dead lists them."),
    "not signed": (
        "retry",
        "ID",
        2,
        f"The call ID {IS_NOT_SIGNED_WITH_THE}; it can only be dropped.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_is_told_in_a_sentence(redis: str, here: Path, mistake: str) -> None:
    action, word, code, sentence = MISTAKES[mistake]
    async with calling(redis, count()) as caller:
        id = await buried(caller, b"junk")
        said = await typed(caller, here, action, word.replace("ID", id))
    assert (said.code, said.err.removeprefix("quoth: ").strip()) == (code, sentence.replace("ID", id))


async def test_one_that_asks_or_whose_tools_have_changed_is_called_anew(redis: str, here: Path) -> None:
    async with calling(redis, count(effects=["runs"])) as caller, at_work(caller):
        asks = await typed(caller, here, "retry", await buried(caller))
        old = caller.call(COUNT, schema_hash="0" * 64).pack(KEY)
        stale = await typed(caller, here, "retry", await buried(caller, old))
    assert asks.err.removeprefix("quoth: ").strip() == (
        f"count-fruit needs a person's approval ({IT_RUNS_A_PROGRAM}); call it again."
    )
    assert (
        stale.err.removeprefix("quoth: ").strip()
        == "The tools have changed since count-fruit was called; call it again."
    )
