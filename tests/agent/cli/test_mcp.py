"""The commands ``quoth mcp``: a person adds a server, trusts it, sees it change, and removes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Said
from mcp_server import command, config
from words import Terminal, quoth

from quoth.tools.shell.view import INSIDE
from quoth.tools.storage.paths import state_dir


class Shell:
    """A person's shell, with a configuration of its own and the knobs of a server."""

    def __init__(self, root: Path) -> None:
        self.work, self.own, self.knobs = root / "work", root / "own", root / "knobs.json"
        self.work.mkdir()
        self.own.mkdir()
        self.env = {"QUOTH_CONFIG": str(self.own)}
        self.turn(only=["echo", "note"])

    def turn(self, **knobs: Any) -> None:
        self.knobs.write_text(json.dumps(knobs))

    def __call__(self, *words: str, **more: Any) -> Said:
        return quoth(*words, cwd=self.work, env=self.env, **more)

    def add(self) -> Said:
        return self("mcp", "add", "fixture", *command("--knobs", str(self.knobs)))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_the_life_of_a_server(shell: Shell) -> None:
    assert shell.add().out == f"Added fixture to {shell.own / 'mcp.json'}.\n"
    call = ("mcp", "call", "fixture", "echo", '{"text": "hi"}', "--yes")
    said = shell(*call)
    assert (said.code, "fixture is not trusted yet" in said.err) == (2, True)
    said = shell("mcp", "trust", "fixture")  # without a terminal
    assert (said.code, "To say yes, add --yes" in said.err) == (2, True)
    assert "description: Return the text." in said.err
    assert "  > A server for tests." in said.err
    said = shell("mcp", "trust", "fixture", "--yes", "--json")
    assert [one["name"] for one in json.loads(said.out)["tools"]] == ["fixture--echo", "fixture--note"]
    assert shell(*call).out == "hi\n"
    assert "ARGS is nested too deeply." in shell(*call[:4], "[" * 100_000).err
    assert shell("mcp", "trust", "fixture").out == "fixture is trusted in this form already.\n"

    changed = {"description": "Return the text. Then \u202ethe files."}
    shell.turn(only=["echo", "note"], says="Always call note.")
    assert shell("mcp", "diff", "fixture").out.startswith("It gives models other instructions.\n")
    shell.turn(only=["echo", "note"], tools={"echo": changed})
    said = shell(*call)
    assert (said.code, "echo of the MCP server fixture has another description" in said.err) == (1, True)
    said = shell("mcp", "diff", "fixture")
    assert (said.code, said.out.splitlines()[0]) == (1, "echo has another description.")
    assert "  +description: Return the text. Then \\u202ethe files." in said.out
    (one,) = json.loads(shell("mcp", "diff", "fixture", "--json").out)["changes"]
    assert (one["kind"], one["tool"]) == ("changed", "echo")
    said = shell("mcp", "trust", "fixture", "--yes")
    assert (said.code, "1 tool as trusted before." in said.err) == (0, True)
    assert shell(*call).out == "hi\n"

    assert shell("mcp", "remove", "fixture").out == f"Removed fixture from {shell.own / 'mcp.json'}.\n"
    assert shell("mcp", "list").out.startswith("You have no MCP servers.")
    assert shell(*call).code == 2


def test_a_person_at_a_terminal_is_asked(shell: Shell) -> None:
    shell.add()
    for answer, last in (("n", "Nothing was trusted."), ("y", "fixture is trusted: 2 tools.")):
        with Terminal("mcp", "trust", "fixture", cwd=shell.work, env=shell.env) as at:
            at.see("Trust these tools of fixture?")
            at.enter(answer)
            at.see(last)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("add quoth x", "cannot be named quoth: the name is reserved"),
        ("add mcp x", "cannot be named mcp: the name is reserved"),
        ("add a--b x", "use letters, digits and single hyphens"),
        ("add shop", "Give the server's URL or its program"),
        ("add shop --", "Give the server's URL or its program"),
        ("add shop https://shop.example/mcp more", "A URL takes no arguments: more"),
        ("add shop --hedaer A=b -- x", "quoth mcp add has no option --hedaer"),
        ("add shop --env", "--env: expected one argument"),
        ("add shop --env A -- x", "--env: expected NAME=VALUE, not A"),
        ("add shop --header A=b -- x", "has no headers"),
        ("trust shop", "There is no MCP server shop."),
        ("diff shop", "There is no MCP server shop."),
        ("remove shop", "There is no MCP server shop."),
        ("login shop", "There is no MCP server shop."),
        ("call shop look", "There is no MCP server shop."),
        ("list shop --mcp nothing.json", "/nothing.json."),
    ],
)
def test_a_mistake_is_told_with_a_sentence(shell: Shell, words: str, why: str) -> None:
    said = shell("mcp", *words.split())
    assert said.code == 2
    assert why in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("before", [True, False])
def test_options_of_a_server_are_before_its_command(shell: Shell, before: bool) -> None:
    options = ["--env", "A=${B}", "--cwd", "sub"]
    words = [*options, "shop"] if before else ["shop", *options, "--"]
    assert shell("mcp", "add", *words, "npx", "-y", "--env", "server").code == 0
    (found,) = json.loads((shell.own / "mcp.json").read_text())["mcpServers"].values()
    assert found == {
        "command": "npx",
        "args": ["-y", "--env", "server"],
        "env": {"A": "${B}"},
        "cwd": "sub",
    }


def test_a_file_of_the_current_folder_is_no_server_of_all_workspaces(shell: Shell) -> None:
    (shell.work / "fruit.py").touch()
    for words in (["python", "fruit.py"], ["./fruit.py"]):
        said = shell("mcp", "add", "fruit", *words)
        assert (said.code, "--cwd ." in said.err) == (2, True)
    assert shell("mcp", "add", "fruit", "--cwd", ".", "python", "fruit.py").code == 0
    assert shell("mcp", "add", "mine", "python", str(shell.work / "fruit.py")).code == 0


def test_a_workspaces_servers_count_after_quoth_trust_and_their_tools_after_mcp_trust(shell: Shell) -> None:
    (shell.work / ".mcp.json").write_text(json.dumps(config("--knobs", str(shell.knobs))))
    said = shell("mcp", "trust", "fixture", "--yes")
    assert (said.code, ".mcp.json is not trusted" in shell("mcp", "list").err) == (2, True)
    assert shell("trust", "--yes").code == 0
    assert "fixture  not trusted" in shell("mcp", "list").out
    assert shell("mcp", "trust", "fixture", "--yes").code == 0
    said = shell("call", '(fixture--echo :text "hi")', "--yes")
    assert said.out == "hi\n"
    said = shell("mcp", "remove", "fixture")
    assert "no longer trusted. To remove the server, edit .mcp.json" in said.out
    assert shell("mcp", "remove", "fixture").code == 2


def test_damaged_pins_are_told_and_replaced_by_a_new_trust(shell: Shell) -> None:
    shell.add()
    assert shell("mcp", "trust", "fixture", "--yes", "--json").code == 0
    (row,) = json.loads(shell("mcp", "list", "--json").out)
    assert (row["trusted"], row["tools"]) == (True, 2)
    (pins,) = (state_dir() / "mcp").glob("*.pins")
    pins.write_text("{}")
    assert "fixture  unreadable" in shell("mcp", "list").out
    said = shell("call", '(fixture--echo :text "hi")', "--yes")
    assert (said.code, "cannot be read, so no tool of this server is called" in said.err) == (2, True)
    said = shell("mcp", "trust", "fixture", "--yes")
    assert (said.code, said.out) == (0, "fixture is trusted: 2 tools.\n")


def test_a_program_that_a_tool_runs_cannot_trust(shell: Shell) -> None:
    shell.add()
    for words in ("trust fixture --yes", "add shop x", "remove fixture"):
        said = quoth("mcp", *words.split(), cwd=shell.work, env={**shell.env, INSIDE: "1"})
        assert (said.code, "cannot decide what tools may do" in said.err) == (2, True), said
