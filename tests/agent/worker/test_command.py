"""The command ``quoth worker``: what it says when it cannot begin, at its work, and when told to end."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    CANNOT_BE_USED,
    CREATED_THE_KEY,
    NO_SERVER_ANSWERS_THERE,
    THE_REDIS_AT,
    THERE_IS_NO_KEY_AT,
)
from words import Running, Said, files, quoth, started, wait_until

from quoth.tools.catalog.connection import redis_url, sync_client

SHOP = """(require quoth [def-cognitive-tool])
(import os time)
(def-cognitive-tool nap "Sleep." :parameters [until {:type str}] :effects [:memory]
  :body (do (while (not (os.path.exists until)) (time.sleep 0.01)) "slept"))
(def-cognitive-tool eat "Eat memory." :parameters [mb {:type int}] :body (len (bytearray (* mb 1048576))))
"""
NIGHT, NOON = '(nap :until "morning")', '(nap :until ".")'


@pytest.fixture
def shop(tmp_path: Path, redis: str) -> Shop:
    return Shop(files(tmp_path / "shop", {"shop.hy": SHOP}), redis, f"t{abs(hash(tmp_path)):x}"[:20])


class Shop:
    """A folder with a file of tools, and a place in Redis of its own."""

    def __init__(self, folder: Path, redis: str, prefix: str) -> None:
        self.folder, self.place = folder, ["--redis", redis, "--prefix", prefix]
        self.remote = ["--remote", redis, "--prefix", prefix]

    @contextmanager
    def opened(self, *words: str) -> Iterator[Running]:
        """A worker at its work."""
        with started("worker", "--tools", "shop.hy", *self.place, *words, cwd=self.folder) as running:
            if "--json" not in words:
                running.says("Started with 2 tools")
            yield running

    @contextmanager
    def asked(self, form: str) -> Iterator[Running]:
        """A call that is on its way."""
        till = self.folder.parent / "till"
        till.mkdir(exist_ok=True)
        with started("call", form, *self.remote, cwd=till) as running:
            yield running

    def morning(self) -> None:
        """Who naps until morning wakes up."""
        files(self.folder, {"morning": ""})

    def ask(self, form: str) -> Said:
        with self.asked(form) as running:
            return running.ended()


def health(said: str) -> Any:
    """What a worker that has said where answers to /ready."""
    at = said.split("Its health is at ")[1].split()[0].rstrip(".")
    try:
        with urllib.request.urlopen(f"{at}/ready") as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def test_who_is_told_to_end_ends_what_it_does_first(shop: Shop) -> None:
    with shop.opened("--health", "0") as worker, shop.asked(NIGHT) as call:
        wait_until(lambda: health(worker.heard)["running"] == 1)
        worker.process.send_signal(signal.SIGTERM)
        worker.says("Ending after 1 running call; a second signal ends the worker at once.\n")
        assert health(worker.heard)["why"] == "it is ending"
        shop.morning()
        assert call.ended().out == "slept\n"
        said = worker.ended()
    assert (said.code, said.err.splitlines()[-1]) == (0, "quoth: Ended.")


def test_the_second_signal_ends_it_at_once(shop: Shop) -> None:
    with shop.opened("--health", "0") as worker, shop.asked(NIGHT):
        wait_until(lambda: health(worker.heard)["running"] == 1)
        worker.interrupt()
        worker.says("Ending")
        worker.interrupt()
        said = worker.ended()
    assert (said.code, said.err.splitlines()[-1]) == (
        130,
        "quoth: Ended at once. Another worker takes over the running calls.",
    )


def test_a_call_that_wants_too_much_memory_fails_and_no_other(shop: Shop) -> None:
    with shop.opened("--memory", "900"):
        said = shop.ask("(eat :mb 2000)")
        told = "quoth: error: eat failed: there is not enough memory for it, at shop.hy:5.\n"
        assert (said.code, said.err) == (1, told)
        assert shop.ask("(eat :mb 1)").out == "1048576\n"


def test_changes_are_lines_of_json(shop: Shop) -> None:
    with shop.opened("--json") as worker:
        begun = json.loads(worker.stdout.readline())
        assert (begun["event"], begun["tools"], begun["version"]) == ("started", 2, 1)
        files(shop.folder, {"shop.hy": SHOP + "("})
        worker.process.send_signal(signal.SIGHUP)
        refused = json.loads(worker.stdout.readline())
        assert (refused["event"], "never closed" in refused["message"]) == ("refused", True)
        files(shop.folder, {"shop.hy": SHOP.replace("Sleep.", "Sleep well.")})
        worker.process.send_signal(signal.SIGHUP)
        again = json.loads(worker.stdout.readline())
        assert (again["event"], again["version"], again["hash"] == begun["hash"]) == ("reloaded", 2, False)
        worker.process.send_signal(signal.SIGTERM)
        ended = worker.ended()
    events = [json.loads(line)["event"] for line in ended.out.splitlines()]
    assert (ended.code, events) == (0, ["draining", "ended"])


def test_a_call_in_work_ends_with_the_tools_it_began_with(shop: Shop) -> None:
    with shop.opened("--health", "0") as worker, shop.asked(NIGHT) as call:
        wait_until(lambda: health(worker.heard)["running"] == 1)
        files(shop.folder, {"shop.hy": SHOP.replace('"slept"', '"dozed"')})
        worker.says("Reloaded: 2 tools, version 2")  # the hash is the same, the version of the code is not
        assert shop.ask(NOON).out == "dozed\n"
        shop.morning()
        assert call.ended().out == "slept\n"


def test_another_worker_with_other_tools_has_the_calls(shop: Shop) -> None:
    files(shop.folder, {"other.hy": SHOP.replace("Sleep.", "Sleep well.")})
    with shop.opened() as old:
        with started("worker", "--tools", "other.hy", *shop.place, cwd=shop.folder) as new:
            new.says("Started with 2 tools, version 2")
            old.says("Another worker has published other tools, version 2, and gets the calls now.")
            assert shop.ask(NOON) == Said(0, "slept\n", "")
        old.process.send_signal(signal.SIGHUP)
        old.says("Reloaded: 2 tools, version 3")
        old.says("Back at work: 2 tools, version 3")
        assert shop.ask(NOON).out == "slept\n"


def test_calls_that_were_left_to_another_worker_are_taken_again_when_it_is_gone(shop: Shop) -> None:
    files(shop.folder, {"other.hy": SHOP.replace("Sleep.", "Sleep well.")})
    # One that has just started has so long to give its first sign of life.
    with shop.opened("--takeover", "3") as old:
        with started("worker", "--tools", "other.hy", *shop.place, cwd=shop.folder) as new:
            new.says("Started with 2 tools, version 2")
            old.says("Another worker has published other tools, version 2, and gets the calls now.")
            new.process.send_signal(signal.SIGTERM)
            new.says("Ended.")
        old.says("Published again: 2 tools, version 3")
        old.says("Back at work: 2 tools, version 3")
        assert shop.ask(NOON).out == "slept\n"


def test_a_catalogue_that_redis_has_lost_is_published_again(shop: Shop, redis: str) -> None:
    with shop.opened() as worker, sync_client(redis_url(redis, typed=False)) as there:
        prefix = shop.place[-1]
        there.delete(*there.scan_iter(f"{prefix}:*"))
        there.publish(f"{prefix}:pubsub:tools:catalog", b"")
        worker.says("Published again: 2 tools, version 1")
        assert shop.ask(NOON).out == "slept\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--redis", "redis://127.0.0.1:1"],
            f"{THE_REDIS_AT} redis://127.0.0.1:1 {CANNOT_BE_USED}: {NO_SERVER_ANSWERS_THERE}.",
        ),
        (["--redis", "redis://:hush@127.0.0.1"], "A password on the command line can be seen by everybody"),
        (["--key", "key.txt"], f"{THERE_IS_NO_KEY_AT} key.txt. Create one (quoth catalog key new)"),
        (
            ["--memory", "5"],
            "--memory 5 is too low: with these tools and 10 calls at once the worker needs",
        ),
        (["--memory", "much"], "--memory of a worker takes a number of megabytes, such as 2000, not much."),
        (["--remote", "redis://127.0.0.1"], "quoth worker does not use --remote. See: quoth worker --help"),
        (["--prefix", "a b"], "The prefix a b is invalid."),
        (["--allow", "nab=ann"], "--allow names an unknown tool, nab. Did you mean nap?"),
    ],
)
def test_what_cannot_begin_says_why(shop: Shop, words: list[str], said: str) -> None:
    told = quoth("worker", "--tools", "shop.hy", *shop.place, *words, cwd=shop.folder)
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1 + (CREATED_THE_KEY in told.err))
    assert said in told.err
    assert "hush" not in told.err


def test_a_catalogue_of_another_key_is_left_alone(shop: Shop, state: Path) -> None:
    with shop.opened():
        pass
    (state / "catalog.key").unlink()
    told = quoth("worker", "--tools", "shop.hy", *shop.place, cwd=shop.folder)
    assert told.code == 2
    assert "Give this worker the key of the other workers with --key FILE, or its own --prefix." in told.err


def test_one_that_was_altered_is_published_again(shop: Shop, redis: str) -> None:
    with sync_client(redis_url(redis, typed=False)) as there:
        stem = f"{shop.place[-1]}:tools:catalog:"
        there.mset({f"{stem}seq": 7, f"{stem}current": 7, f"{stem}v7": b"tools"})
        with shop.opened() as worker:
            assert "version 8" in worker.heard
