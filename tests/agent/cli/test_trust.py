"""What a workspace has to be trusted: a person is told of it, shown it and asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentences import (
    IS_NOT_TRUSTED_SO,
    IS_TRUSTED_IN_ITS,
    ITS_TRUST_WAS_REMOVED,
    NO_LONGER_HAS,
    READ_IT_THEN_RUN,
    SAY_SO_WITH_YES,
    WAS_TRUSTED_AND_IS_GONE,
)
from words import Terminal, files, quoth

from quoth.tools.mcp.config import load_servers

NOTE = f"AGENTS.md {IS_NOT_TRUSTED_SO} models do not see it; {READ_IT_THEN_RUN}: quoth trust"
SKILL = "---\nname: x\ndescription: Write notes.\n---\nWrite."


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path, {"AGENTS.md": "Use tabs.\u202e\n", "r.txt": "Done."})


def test_a_run_and_the_doctor_tell_of_an_agents_md_that_is_not_trusted(here: Path) -> None:
    told = quoth("run", "Go.", "--model", "scripted:r.txt", cwd=here)
    assert (told.out, told.err.count(NOTE)) == ("Done.\n", 1)
    found = json.loads(quoth("doctor", "--json", cwd=here).out)
    assert [one["detail"] for one in found if "AGENTS.md" in one["detail"]] == [NOTE]
    assert quoth("trust", "--yes", cwd=here).code == 0
    assert NOTE not in quoth("run", "Go.", "--model", "scripted:r.txt", cwd=here).err


def test_the_doctor_tells_of_those_in_folders_too(here: Path) -> None:
    files(here, {"sub/AGENTS.md": "Use blanks.", "sub/b/AGENTS.md": "Use both."})
    told = [NOTE.replace("AGENTS.md", file) for file in ("AGENTS.md", "sub/AGENTS.md", "sub/b/AGENTS.md")]
    found = json.loads(quoth("doctor", "--json", cwd=here).out)
    assert [one["detail"] for one in found if "AGENTS.md" in one["detail"]] == told
    assert quoth("trust", "--yes", cwd=here).code == 0
    assert "AGENTS.md" not in quoth("doctor", cwd=here).out


def test_the_repl_tells_of_all_that_is_not_trusted_in_one_line(here: Path) -> None:
    files(here, {".quoth/skills/x/SKILL.md": SKILL})
    told = [line for line in quoth(cwd=here, stdin="1\n").err.splitlines() if "trust" in line]
    assert told == [
        "AGENTS.md, .quoth/skills/x are not trusted, so models do not see them; "
        "read them, then run: quoth trust"
    ]


def test_trust_shows_what_it_would_trust_and_asks_first(here: Path) -> None:
    for answer, code, end in (
        ("n", 1, "Nothing was trusted."),
        ("y", 0, f"AGENTS.md {IS_TRUSTED_IN_ITS}."),
    ):
        with Terminal("trust", cwd=here) as terminal:
            terminal.see("AGENTS.md would be trusted in its present form, and shown to models, SHA-256 ")
            terminal.see("  Use tabs.\\u202e")
            terminal.see("[y/N]")
            terminal.type(f"{answer}\r")
            terminal.see(end)
            assert terminal.ended() == code
        untold = NOTE not in quoth("run", "Go.", "--model", "scripted:r.txt", cwd=here).err
        assert untold == (answer == "y")


def test_the_mcp_servers_of_a_workspace_are_shown_and_trusted(here: Path) -> None:
    files(here, {".mcp.json": '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'})
    said = quoth("trust", "--yes", cwd=here)
    assert f".mcp.json {IS_TRUSTED_IN_ITS}, SHA-256 " in said.out
    assert '  {"mcpServers": {"time": {"command": "uvx"' in said.out
    assert set(load_servers(here).configs) == {"time"}
    files(here, {".mcp.json": '{"mcpServers": {"time": {}}}'})
    assert quoth("trust", "--yes", cwd=here).err == (
        "quoth: .mcp.json: mcpServers.time needs either a command or a url.\n"
    )
    (here / ".mcp.json").unlink()
    assert (
        f"{here} {NO_LONGER_HAS} .mcp.json; {ITS_TRUST_WAS_REMOVED}.\n"
        in quoth("trust", "--yes", cwd=here).out
    )


def test_without_a_person_nothing_is_trusted_or_forgotten_unasked(here: Path) -> None:
    refused = quoth("trust", cwd=here)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.endswith(f"quoth: Trust this in {here}? {SAY_SO_WITH_YES}.\n")
    files(here, {".quoth/policy.hy": "(deny (echo))"})
    assert quoth("trust", "--yes", cwd=here).code == 0
    (here / ".quoth/policy.hy").unlink()
    assert quoth("trust", cwd=here).code == 2
    assert WAS_TRUSTED_AND_IS_GONE in quoth("call", '(echo "x")', cwd=here).err
