"""Which memory an agent has: its workspace's, its host's, or that of a database; and that none is opened, or
told of, before it is used."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from words import Agent, agent, complaint, quoth, scripted, tool

from quoth import HostServices, Services, UsageError
from quoth.agent.run.own import OwnMemory, with_own
from quoth.tools.call.context import ToolContext
from quoth.tools.call.service_types import Block, SearchOptions
from quoth.tools.call.services import NO_SERVICES
from quoth.tools.memory.sqlite import SqliteMemory
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

AWAY = "postgresql://ann:s3cr3t-pw@127.0.0.1:1/memory"  # nobody listens there
SECRET = "s3cr3t-pw"


async def labels(ctx: ToolContext, label: str) -> list[str]:
    await ctx.memory.create_block(label, "Hello.")
    await ctx.services.search.search("hello", "agent", SearchOptions())
    assert await ctx.services.shared_blocks.list_shared_blocks() == []
    return [block.label for block in await ctx.memory.list_blocks()]


LABELS = tool("labels", labels, params={"label": {"type": str}}, effects=["reads"])


def test_an_agent_has_the_memory_of_its_workspace_and_no_other_agents(tmp_path: Path) -> None:
    def of(agent_id: str, label: str) -> Any:
        with agent(tmp_path, tools=[LABELS], agent_id=agent_id) as one:
            return one.call(f'(labels :label "{label}")').value

    assert of("librarian", "a") == ["a"]
    assert of("agent", "b") == ["b"]
    assert of("librarian", "c") == ["a", "c"]


def test_a_memory_of_the_hosts_is_used_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "own.sqlite")
    notes = SqliteMemory(lambda: store, "agent")
    given = Services(memory=notes)
    assert with_own(given, object()) is given
    with agent(tmp_path, "Hi.", services=given, session="s") as one:
        one.run("Hello.")
        opened = next(one._agent.transcript.events("s")).data
    assert opened["memory"] == "given"
    store.close()


def test_a_service_that_the_host_gave_stays(tmp_path: Path) -> None:
    search: Any = OwnMemory(dict)
    own: Any = OwnMemory(dict)
    filled = with_own(Services(search=search), own)
    assert (filled.memory, filled.search, filled.shared_blocks) == (own, search, own)
    assert with_own(NO_SERVICES, own).search is own


class Closing:
    closed = 0

    async def list_blocks(self, kind: str | None = None) -> list[Block]:
        return []

    def close(self) -> None:
        self.closed += 1


def test_a_memory_is_opened_once_at_its_first_use_and_closed_with_the_agent() -> None:
    made: list[Closing] = []

    def make() -> Closing:
        made.append(Closing())
        return made[-1]

    async def use() -> None:
        unused = OwnMemory(make)
        await unused.aclose()
        assert made == []
        used = OwnMemory(make)
        await used.list_blocks("core")
        await used.list_blocks()
        await used.aclose()
        await used.aclose()

    asyncio.run(use())
    assert [one.closed for one in made] == [1]


def test_a_call_that_uses_no_memory_does_not_load_it(tmp_path: Path) -> None:
    program = (
        "import sys; from quoth.agent.cli.main import main; code = main();"
        "print(*sorted(m for m in sys.modules if m.startswith(('quoth.tools.memory.', 'quoth.neuro.embed.'))"
        " or m in ('numpy', 'wordllama', 'sqlite_vec', 'psycopg')), file=sys.stderr); sys.exit(code)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, "call", "(list-files)"], cwd=tmp_path, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert said.stderr.strip() == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"memory_url": 7}, "memory_url is the URL of a database or None."),
        (
            {"memory_url": AWAY, "memory": OwnMemory(dict)},
            "An agent has one memory: give memory or memory_url, not both.",
        ),
    ],
)
def test_what_cannot_be_the_memory_is_a_sentence(options: dict[str, Any], sentence: str) -> None:
    assert complaint(UsageError, lambda: HostServices(**options)) == sentence


URLS = [
    (f"mysql://ann:{SECRET}@db/x", "not mysql://"),
    (f"ann:{SECRET}@db", "not text without ://"),
]


@pytest.mark.parametrize(("url", "sentence"), URLS)
def test_a_url_that_is_none_is_told_at_once_and_not_repeated(tmp_path: Path, url: str, sentence: str) -> None:
    for words, more in ((("--memory", url), {}), ((), {"QUOTH_MEMORY": url})):
        said = quoth("call", "(list-files)", *words, cwd=tmp_path, env=more)
        assert (said.code, sentence in said.err, SECRET in said.err + said.out) == (2, True, False)


def test_the_password_of_a_memory_is_nowhere(tmp_path: Path, state: Path) -> None:
    (tmp_path / "says.txt").write_text("Hello.\n---\nHello.\n")
    model = ("--model", f"scripted:{tmp_path / 'says.txt'}")
    run = quoth("run", "Hi.", *model, "--session", "s", "--memory", AWAY, "--json", cwd=tmp_path)
    call = quoth("call", '(recall :operation "read" :label "x")', "--session", "s", cwd=tmp_path,
                 env={"QUOTH_MEMORY": AWAY})  # fmt: skip
    assert (run.code, call.code) == (1, 1)
    assert "The memory could not be read, so the model was not asked." in run.out
    log = quoth("log", "s", cwd=tmp_path)
    assert "memory postgresql" in log.out
    said = [run, call, log, quoth("log", "s", "--hy", cwd=tmp_path), quoth("audit", "--json", cwd=tmp_path)]
    assert SECRET not in "".join(one.out + one.err for one in said)
    kept = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert b"postgresql" in kept
    assert SECRET.encode() not in kept


def test_a_session_that_had_another_memory_says_so_when_it_goes_on_without(tmp_path: Path) -> None:
    (tmp_path / "says.txt").write_text("Hello.\n")
    model = ("--model", f"scripted:{tmp_path / 'says.txt'}")
    quoth("run", "Hi.", *model, "--session", "s", "--memory", AWAY, cwd=tmp_path)
    resumed = quoth("resume", "s", cwd=tmp_path)
    assert (resumed.code, resumed.out) == (0, "Hello.\n")
    assert (
        "The memory is that of the workspace; earlier it was another (postgresql). "
        "To use the earlier one: --memory URL, or QUOTH_MEMORY." in resumed.err
    )


def test_a_replay_asks_for_no_memory(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, model=scripted("Hello."), session="s") as one:
        one.run("Hi.")
    assert quoth("replay", "s", cwd=tmp_path, env={"QUOTH_MEMORY": AWAY}).code == 0
    assert store_path(tmp_path).exists()
