"""Memory survives: processes that write at once, a kill at any moment of a swap, and a disk that is full."""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import disks
import pytest
from examples import many
from memory import Make, Place, contents, done, said, sqlite_memory, writes_of
from sentences import COULD_NOT_BE_USED, THE_DISK_IS_FULL

from quoth.tools.storage.database import Store

FULL = THE_DISK_IS_FULL


@contextmanager
def process(work: Callable[[], None]) -> Iterator[int]:
    """Another process that does ``work`` while this lasts."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    try:
        yield child
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_two_processes_that_append_to_one_block_lose_no_line(place: Place) -> None:
    each = min(many(7), 1000)

    def append(who: str) -> None:
        memory = place.open()("a")
        for number in range(each):
            done(memory.append_to_block("log", f"{who} {number}"))

    done(place.open()("a").create_block("log", limit=100_000))
    with process(lambda: append("one")) as one, process(lambda: append("two")) as two:
        ended = [os.waitpid(child, 0)[1] for child in (one, two)]
    assert ended == [0, 0]
    memory = place.open()("a")
    lines = done(memory.get_block("log")).text.split("\n")
    for who in ("one", "two"):
        assert [line for line in lines if line.startswith(who)] == [f"{who} {n}" for n in range(each)]
    assert len(done(memory.history("log"))) == 2 * each


def test_a_kill_at_any_moment_of_a_swap_leaves_the_old_or_the_new_state(place: Place) -> None:
    chance = random.Random(14)
    memory = place.open()("a")
    done(memory.create_block("one", "1" * 3000, kind="core"))
    done(memory.create_block("two", "2" * 3000, kind="archival"))
    version = 1

    def swap_for_ever(done_one: int) -> None:
        memory = place.open()("a")
        core, archived = sorted(done(memory.list_blocks()), key=lambda block: block.kind != "core")
        names = [core.label, archived.label]
        while True:
            done(memory.swap_blocks(*names))
            names.reverse()
            os.write(done_one, b".")

    for _ in range(many(2) // 3):  # 20, or 200
        seen, done_one = os.pipe()
        with process(lambda done_one=done_one: swap_for_ever(done_one)) as child:
            os.close(done_one)
            assert os.read(seen, 1), "the other process has failed"
            begun = time.monotonic()
            assert os.read(seen, 1), "the other process has failed"
            time.sleep(chance.uniform(0, 2 * (time.monotonic() - begun)))  # some moment of the next two swaps
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(seen)
        place.settled()
        one, two = done(memory.list_blocks())
        assert {one.kind, two.kind} == {"core", "archival"}
        assert (one.text, two.text, one.version) == ("1" * 3000, "2" * 3000, two.version)
        assert len(done(memory.history("one"))) == one.version - 1
        assert one.version >= version + 2  # it was killed while it was swapping
        version = one.version


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.create_block("new", "x" * 20_000),
        lambda m: m.append_to_block("log", "x" * 9_000),
        lambda m: m.swap_blocks("log", "old"),
        lambda m: m.delete_block("old"),
    ],
    ids=["create", "append", "swap", "delete"],
)
def test_a_full_disk_is_a_sentence_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., object]
) -> None:
    with disks.every_store_on(disks.FullDisk("full-memory"), monkeypatch) as disk:
        store = Store(tmp_path / "s.sqlite")
        make = sqlite_memory(store)
        done(make("a").create_block("log", "one"))
        done(make("a").create_block("old", "two", kind="archival"))
        before = contents(make, "a")
        disk.fill()
        sentence = f"StoreError: The store {store.path} {COULD_NOT_BE_USED}: {FULL}."
        assert said(change(make("a", person=True))) == sentence
        assert contents(make, "a") == before
        disk.room = None
        done(change(make("a", person=True)))
        store.close()


def test_a_failure_between_the_two_writes_of_a_swap_undoes_the_first(make: Make) -> None:
    memory = make("a")
    done(memory.create_block("log", "one"))
    done(memory.create_block("old", "two", kind="archival"))
    before = contents(make, "a")
    with writes_of(memory, room=1) as writes, pytest.raises(RuntimeError, match="the power is gone"):
        done(memory.swap_blocks("log", "old"))
    assert writes == ["put"]
    assert contents(make, "a") == before
