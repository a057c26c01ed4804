"""Real servers of others, from PyPI and npm, behind the rules of a person, who trusts them by the command."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import npm
from words import files, quoth

from quoth import Agent
from quoth.tools.storage.paths import config_dir

RULES = r"""
(effects time--get-current-time :reads)
(effects git--git-status :reads)
(allow (git--git-add :files ["a.txt"]))
(deny (git--git-commit :message (matches "(?i)wip.*")))
(allow (files--write-file))
(deny (files--write-file :path (matches ".*\\.env")))
(allow (everything--get-sum))
(deny (everything--get-env))
(deny (gitlab--create-issue :project-id "secret"))
"""


def _script(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts"), name))


class House:
    """A workspace, its servers, which are trusted, and the rules."""

    def __init__(
        self, folder: Path, servers: dict[str, list[str]], env: dict[str, str] | None = None
    ) -> None:
        self.folder, self.file = folder / "work", folder / "servers.json"
        self.folder.mkdir()
        files(config_dir(), {"policy.hy": RULES})
        listed = {
            name: {"command": program, "args": args, "env": env or {}}
            for name, (program, *args) in servers.items()
        }
        self.file.write_text(json.dumps({"mcpServers": listed}))

    def said(self, *words: str) -> Any:
        return quoth(*words, "--mcp", str(self.file), cwd=self.folder)

    def trust(self, *servers: str) -> None:
        for server in servers:
            said = self.said("mcp", "trust", server, "--yes")
            assert said.code == 0, said.err

    @contextlib.contextmanager
    def calls(self) -> Iterator[Callable[[str], tuple[str, str]]]:
        """What makes a call: its status, and its value or message. The servers stay until the end."""
        with Agent(workspace=self.folder, mcp=self.file) as agent:

            def call(form: str) -> tuple[str, str]:
                result = agent.call(form)
                return result.status, str(result.value if result.ok else result.message)

            yield call


def test_servers_from_pypi_behind_rules_over_their_arguments(tmp_path: Path) -> None:
    house = House(tmp_path, {"time": [_script("mcp-server-time")], "git": [_script("mcp-server-git")]})
    subprocess.run(["git", "init", "-q", "."], cwd=house.folder, check=True)
    (house.folder / "a.txt").write_text("a")
    (house.folder / "b.txt").write_text("b")
    house.trust("time", "git")
    with house.calls() as call:
        status, value = call('(time--get-current-time :timezone "Europe/Berlin")')
        assert (status, "Europe/Berlin" in value) == ("ok", True)
        assert (
            call('(time--convert-time :source-timezone "UTC" :time 5 :target-timezone "UTC")')[0] == "invalid"
        )
        place = f':repo-path "{house.folder}"'
        assert "Untracked files" in call(f"(git--git-status {place})")[1]
        assert call(f'(git--git-add {place} :files ["a.txt"])')[0] == "ok"
        assert call(f'(git--git-add {place} :files ["b.txt"])')[0] == "pending"
        status, message = call(f'(git--git-commit {place} :message "WIP: all")')
        assert (status, "(deny (git--git-commit" in message) == ("denied", True)
        staged = subprocess.run(
            ["git", "status", "--short"], cwd=house.folder, check=True, capture_output=True, text=True
        )
    assert staged.stdout == "A  a.txt\n?? b.txt\n"


if npm.IS_ASKED:
    FILES = npm.program("@modelcontextprotocol/server-filesystem")
    EVERYTHING = npm.program("@modelcontextprotocol/server-everything")
    GITLAB = npm.program("@zereight/mcp-gitlab", "build/index.js")

    def test_servers_from_npm_behind_rules_over_their_arguments(tmp_path: Path) -> None:
        server = [npm.NODE, FILES, str(tmp_path / "work")]
        house = House(tmp_path, {"files": server, "everything": [npm.NODE, EVERYTHING]})
        house.trust("files", "everything")
        note = house.folder / "note.md"
        with house.calls() as call:
            assert call(f'(files--write-file :path "{note}" :content "hi")')[0] == "ok"
            assert note.read_text() == "hi"
            for path, status in ((house.folder / ".env", "denied"), (tmp_path / "outside.md", "error")):
                assert call(f'(files--write-file :path "{path}" :content "hi")')[0] == status
                assert not path.exists()
            assert call("(everything--get-sum :a 1 :b 2)") == ("ok", "The sum of 1 and 2 is 3.")
            assert call("(everything--get-env)")[0] == "denied"
            assert call('(everything--echo :message "hi")')[0] == "pending"

    def test_a_server_of_more_than_a_hundred_tools(tmp_path: Path) -> None:
        token = {"GITLAB_PERSONAL_ACCESS_TOKEN": "none"}
        house = House(tmp_path, {"gitlab": [npm.NODE, GITLAB]}, token)
        house.trust("gitlab")
        tools = house.said("mcp", "list", "gitlab").out.splitlines()
        assert len(tools) > 100
        with house.calls() as call:
            assert call('(gitlab--create-issue :project-id "secret" :title "x")')[0] == "denied"
            assert call('(gitlab--create-issue :project-id "open" :title "x")')[0] == "pending"
