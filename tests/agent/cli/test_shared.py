"""Limits and requests that machines share: asked on one, decided on another, each with a store of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_PASSWORD_ON_THE_COMMAND,
    CANNOT_BE_USED,
    IS_NOT_SIGNED_WITH_THE,
    ITS_CALLS_CANNOT_BE_COUNTED,
    NO_SERVER_ANSWERS_THERE,
    THE_REDIS_AT,
)
from words import Said, files, quoth

from quoth.tools.catalog.payload import new_key
from quoth.tools.shared.server import SharedRedis

WRITE = '(write-file :path "a.txt" :content "x")'
PING = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool ping "Answer." :parameters [] :daily-limit 2 :body "pong")
"""


class Machine:
    """A folder, a state and settings of its own; and what machines share."""

    def __init__(self, folder: Path, shared: SharedRedis) -> None:
        files(folder, {"work/ping.hy": PING})
        self.work = folder / "work"
        self.url = shared.url.full
        self.shares = ["--prefix", shared.prefix, "--key", str(folder.parent / "key")]
        self._env = {"QUOTH_STATE": str(folder / "state"), "QUOTH_CONFIG": str(folder / "config")}

    def types(self, *words: str, url: str | None = None) -> Said:
        place = ["--shared", self.url if url is None else url, *self.shares]
        return quoth(*words, *place, cwd=self.work, env=self._env)

    def waiting(self) -> list[Any]:
        found: list[Any] = json.loads(self.types("pending", "--json").out)
        return found


@pytest.fixture
def machines(shared: SharedRedis, tmp_path: Path) -> tuple[Machine, Machine]:
    new_key(tmp_path / "key")
    return Machine(tmp_path / "one", shared), Machine(tmp_path / "two", shared)


def test_a_call_waits_here_and_is_approved_there(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    asked = here.types("call", WRITE, "--session", "s", "--no-input")
    (request,) = re.findall(r"\(request (\w{5})\)", asked.err)
    assert asked.code == 3
    assert f"quoth approve {request} --shared {here.url} --prefix" in asked.err
    assert [one["id"] for one in there.waiting()] == [request]
    said = there.types("approve", request)
    assert (said.code, said.out) == (0, f"Approved once: {WRITE}\n")
    assert (
        said.err
        == "quoth: The decision applies where session s is stored. To continue there: quoth resume s\n"
    )
    assert here.types("resume", "s").out == "Created a.txt, 1 byte.\n"
    assert (here.work / "a.txt").read_text() == "x"
    assert here.types("call", WRITE, "--session", "s", "--no-input").code == 3
    for machine in machines:
        assert quoth("audit", "verify", cwd=machine.work, env=machine._env).code == 0


def test_a_plan_is_approved_there_and_run_here_once(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    program = f'(do {WRITE} (write-file :path "b.txt" :content "y"))'
    here.types("eval", program, "--dry-run", "--session", "p", "--no-input")
    (plan,) = there.waiting()
    assert there.types("approve", plan["id"]).code == 0
    runs = [here.types("eval", program, "--session", "p", "--no-input").code for _ in range(2)]
    assert runs == [0, 3]
    assert (here.work / "b.txt").read_text() == "y"


def test_a_session_keeps_where_its_requests_are(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    here.types("call", WRITE, "--session", "s", "--no-input")
    there.types("deny", there.waiting()[0]["id"], "--why", "not on Mondays")
    said = quoth("resume", "s", cwd=here.work, env=here._env)
    assert said.err == "quoth: write-file was denied: the person said: not on Mondays.\n"


def test_machines_have_a_limit_together(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    said = [machine.types("call", "(ping)", "--tools", "ping.hy") for machine in (here, there, here)]
    assert [one.out for one in said] == ["pong\n", "pong\n", ""]
    assert said[2].err.startswith("quoth: ping is limited: 2 of 2 used today")


def test_a_request_that_was_altered_is_told(machines: tuple[Machine, Machine], shared: SharedRedis) -> None:
    here, _ = machines
    here.types("call", WRITE, "--no-input")
    (request,) = [one["id"] for one in here.waiting()]
    row, client = shared.key("requests", "row", request), shared._opened()
    client.set(row, client.get(row).replace(b"a.txt", b"b.txt"))
    unbelieved = f"{IS_NOT_SIGNED_WITH_THE}, or was put back to an earlier state; it counts"
    assert here.types("pending").err == (
        f"quoth: Request {request} was skipped: it {unbelieved} as undecided.\nquoth: No requests are "
        "waiting.\n"
    )
    said = here.types("approve", request)
    assert (said.code, said.err) == (
        2,
        f"quoth: Request {request} at {shared.url.shown} {unbelieved} as undecided.\n",
    )


GONE = "redis://127.0.0.1:1"
UNUSABLE = f"{THE_REDIS_AT} {GONE} {CANNOT_BE_USED}: {NO_SERVER_ANSWERS_THERE}"


@pytest.mark.parametrize(
    ("words", "url", "said"),
    [
        (
            ["call", "(ping)", "--tools", "ping.hy"],
            GONE,
            f"ping is limited: {ITS_CALLS_CANNOT_BE_COUNTED}. {UNUSABLE}.",
        ),
        (["pending"], GONE, f"{UNUSABLE}."),
        (
            ["call", WRITE, "--no-input"],
            GONE,
            f"write-file was denied: consent could not be asked ({UNUSABLE}).",
        ),
        (
            ["pending"],
            "redis://ann:hunter2@127.0.0.1",
            f"{A_PASSWORD_ON_THE_COMMAND}; set QUOTH_SHARED to the"
            " whole URL, or write @FILE, a file with the URL that only you may read.",
        ),
    ],
)
def test_what_cannot_be_shared_is_told(
    machines: tuple[Machine, Machine], words: list[str], url: str, said: str
) -> None:
    result = machines[0].types(*words, url=url)
    assert result.err == f"quoth: {said}\n"
    assert result.code in (1, 2)


def test_without_the_key_nothing_is_shared(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    (tmp_path / "key").unlink()
    assert machines[0].types("pending").err == (
        f"quoth: There is no key at {tmp_path / 'key'}. Create one (quoth catalog key new), or copy it from"
        " the machine that has it.\n"
    )
