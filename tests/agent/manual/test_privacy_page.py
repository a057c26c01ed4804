"""The page privacy says what leaves the machine: commands connect to nothing, a run to its model's server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from loopback import loopback, status
from pages import SHOP
from words import quoth

# Runs in each Python before all else, and notes each address that it looks up or connects to.
NOTED = """
import os, socket, sys
def note(event, given):
    if event == "socket.connect" and given[0].family != socket.AF_UNIX:
        address = given[1][0]
    elif event == "socket.getaddrinfo":
        address = given[0]
    else:
        return
    with open(os.environ["NOTED"], "a") as file:
        file.write(f"{address}\\n")
sys.addaudithook(note)
"""
# The command, which is watched before anything of ours is imported.
COMMAND = f"""{NOTED}
from quoth.agent.entry import main
sys.exit(main())
"""
HEADERS = {
    *("host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length"),
    "authorization",
}
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
WITHOUT_A_SERVER = [
    ("help", "privacy"),
    ("call", '(grep-search :pattern "pears")'),
    ("eval", "(+ 1 2)"),
    ("run", "How many?", "--model", "scripted:fruit.replies", "--no-stdin"),
    ("fly", "week.org", "--model", "scripted:slow.hy", "--yes"),
    ("replay", "--last"),
    ("memory", "search", "pears"),
    ("undo", "--yes"),
]


class Watched:
    """A folder of the shop in which commands run and the hosts that they look for are noted."""

    def __init__(self, place: Path) -> None:
        self.shop, self._noted, self._command = place / "shop", place / "noted", place / "command.py"
        self._command.write_text(COMMAND)
        shutil.copytree(SHOP, self.shop)
        model = self.shop / "slow.hy"
        model.write_text(model.read_text().replace("asyncio.sleep 3", "asyncio.sleep 0"))
        (place / "site").mkdir()
        (place / "site" / "sitecustomize.py").write_text(NOTED)
        self._env = {"PYTHONPATH": str(place / "site"), "NOTED": str(self._noted), "LOGNAME": "zoe-lee"}

    def hosts_of(self, *words: str, **more: str) -> set[str]:
        """The hosts that a command has looked up or connected to."""
        self._noted.write_text("")
        said = quoth(str(self._command), *words, cwd=self.shop, env={**self._env, **more}, bare=True)
        assert said.code == 0, said
        return {*self._noted.read_text().split()}


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_commands_connect_to_no_host(watched: Watched) -> None:
    found = {words: watched.hosts_of(*words) for words in WITHOUT_A_SERVER}
    assert {words: hosts for words, hosts in found.items() if hosts} == {}


@pytest.mark.parametrize("command", ["models", "doctor"])
def test_a_list_of_models_asks_this_machine_alone(command: str, watched: Watched) -> None:
    found = watched.hosts_of(command, ANTHROPIC_API_KEY="sk-ant-12345678")
    assert found
    assert found <= LOOPBACK


def test_a_run_connects_to_its_server_and_tells_it_no_more_than_the_page_says(watched: Watched) -> None:
    reply = {"choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}]}
    with loopback(status(200, reply)) as server:
        model = ("--model", "openai:any", "--base-url", server.base_url)
        assert watched.hosts_of("run", "How many?", *model, "--no-stdin", OPENAI_API_KEY="sk-12345678") == {
            "127.0.0.1"
        }
        ((_, headers, body),) = server.requests
    assert {*headers} == HEADERS
    text = body.decode()
    assert "monday.txt" in text
    for private in (str(watched.shop), "zoe-lee", "sk-12345678"):
        assert private not in text
