"""Hostile programs, each named by what it tries, through the real route of one agent: what stops each.

The corpus is tests/tools/data/escapes.hy.txt. Knows nothing of how programs are checked or run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sentences import IT_EXCEEDED_ITS_TIME, IT_HAS_MORE_THAN, THE_PROGRAM_WAS_STOPPED
from words import Spy, agent, files, sandboxes, tool

from quoth import Agent
from quoth.tools.call.call import deny
from quoth.tools.sandbox.pool import MAX_WORKERS, SandboxLimits
from quoth.tools.sandbox.runner import Sandbox

SMALL = SandboxLimits(seconds=0.05, memory=48 * 1024 * 1024, calls=30)
PATIENT = replace(SMALL, seconds=60)  # a busy machine may stop by its time only what nothing else stops
CANARY = ["alive"]  # for programs that reach for this very module
STOPPED = (
    f"{THE_PROGRAM_WAS_STOPPED}: {IT_EXCEEDED_ITS_TIME}.",
    f"{THE_PROGRAM_WAS_STOPPED}: it exceeded its limit of memory or output.",
    "The sandbox stopped the program: it exceeded its limit of time or memory.",
    f"The value is too large: as text {IT_HAS_MORE_THAN} 2000000 characters.",
    "maximum recursion depth exceeded",
)


@dataclass(frozen=True)
class Escape:
    """A hostile program, and how it is to end."""

    name: str
    status: str
    said: str
    program: str


def corpus() -> list[Escape]:
    text = (Path(__file__).parents[1] / "data" / "escapes.hy.txt").read_text(encoding="utf-8")
    found = []
    for entry in text.split("\n> ")[1:]:
        head, _, body = entry.partition("\n")
        name, status, said = head.split(" | ", 2)
        lines = [line for line in body.split("\n") if not line.startswith("* ")]
        found.append(Escape(name, status, said, "\n".join(lines).strip()))
    return found


CORPUS = corpus()


@dataclass
class Host:
    """An agent whose sandbox has small limits, and all of the host that a program must leave as it is."""

    root: Path
    agent: Agent
    sandbox: Sandbox
    launched: Spy
    forbidden: Spy
    rows: int = field(default=0)

    def at_home(self, text: str) -> str:
        """``text`` with the names of the folders of this host."""
        for name in ("OUTSIDE", "WORKSPACE", "STATE"):
            text = text.replace(name, str(self.root / name.lower()))
        return text

    def condition(self) -> dict[str, Any]:
        """What no program may change: files, environment, modules, builtins, and the bodies that ran."""
        folders = (self.root / "outside", self.root / "workspace")
        return {
            "files": {p: p.is_file() and p.read_bytes() for f in folders for p in sorted(f.rglob("*"))},
            "environment": dict(os.environ),
            "builtins": dict(vars(sys.modules["builtins"])),
            "path": list(sys.path),
            "folder": Path.cwd(),
            "module": list(CANARY),
            "ran": (self.launched.ran, self.forbidden.ran),
        }

    def new_rows(self) -> list[dict[str, Any]]:
        kept = self.agent._agent.host.store
        rows = kept.execute("SELECT seq, status, tool FROM audit WHERE seq > ? ORDER BY seq", (self.rows,))
        self.rows = rows[-1][0] if rows else self.rows
        return [{"status": status, "tool": tool} for _, status, tool in rows]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    root = tmp_path_factory.mktemp("host")
    files(root / "outside", {"kept": "kept"})
    files(root / "workspace", {"as.txt": "a" * 60 + "b\n", ".quoth/policy.hy": "(deny (forbidden))"})
    (root / "workspace" / "link").symlink_to(root / "outside")
    launched, forbidden = Spy(), Spy()
    path = {"path": {"type": str}}
    tools = [
        tool("launch", body=launched, effects=["writes"]),
        tool("forbidden", body=forbidden, guard=Spy(deny("never"))),
        tool("open", body=lambda path: f"the tool was given {path}", params=path),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUOTH_STATE", str(root / "state"))
        patch.setenv("QUOTH_CONFIG", str(root / "config"))
        sandbox = Sandbox(PATIENT)
        patch.setattr("quoth.tools.sandbox.runner.Sandbox", lambda: sandbox)
        here = Host(root, agent(root / "workspace", tools=tools), sandbox, launched, forbidden)
        here.agent.eval("(try (launch) (except [Exception] 1))")  # opens the store here
    yield here
    here.agent.close()
    assert sandboxes() == 0


def test_the_corpus_is_large_and_each_program_has_a_name() -> None:
    assert len(CORPUS) >= 400
    assert len({escape.name for escape in CORPUS}) == len(CORPUS)
    assert all(escape.program and escape.said for escape in CORPUS)


@pytest.mark.sampled
@pytest.mark.parametrize("escape", CORPUS, ids=lambda escape: escape.name)
def test_a_hostile_program_is_contained(host: Host, monkeypatch: pytest.MonkeyPatch, escape: Escape) -> None:
    monkeypatch.setenv("CANARY", "alive")
    before = host.condition()
    host.new_rows()

    host.sandbox.limits = SMALL if escape.said == "STOPPED" else PATIENT
    host.agent._agent.session = escape.name  # what one leaves behind is nothing to the next
    result = host.agent.eval(host.at_home(escape.program))

    told = json.dumps(result.value) if result.ok else result.message
    assert (result.status, told) == (escape.status, told)
    if escape.said == "STOPPED":
        assert any(sentence in told for sentence in STOPPED), told
    elif result.ok:
        assert told == host.at_home(escape.said)
    else:
        assert host.at_home(escape.said) in told
    assert "Traceback" not in told
    assert len(told) <= 10_000
    assert host.condition() == before
    assert not [row for row in host.new_rows() if row["status"] == "ok" and row["tool"] in WRITERS]
    following = host.agent.eval('(+ 1 (len (echo :text "ab")))')
    assert (following.status, following.value) == ("ok", 3)


WRITERS = {"write-file", "edit-file", "launch", "forbidden"}


def test_no_more_workers_are_left_than_the_pool_may_keep(host: Host) -> None:
    assert 1 <= sandboxes() <= MAX_WORKERS


def test_the_watch_sees_what_a_program_could_do(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    before = host.condition()
    sentinel = files(host.root / "outside", {"sentinel": "x"}) / "sentinel"
    assert host.condition() != before
    sentinel.unlink()
    monkeypatch.setenv("CANARY", "dead")
    assert host.condition() != before
    monkeypatch.delenv("CANARY")
    assert host.condition() == before
    CANARY.append("dead")
    assert host.condition() != before
    CANARY.remove("dead")


def test_what_a_person_allows_does_run(host: Host, tmp_path: Path) -> None:
    """The bodies that no program of the corpus could reach are there to be reached."""
    body = Spy()
    with agent(tmp_path, tools=[tool("launch", body=body, effects=["writes"])], consent="yes") as willing:
        assert willing.eval("(launch)").ok
    assert body.ran
