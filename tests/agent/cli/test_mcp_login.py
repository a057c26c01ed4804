"""``quoth mcp login``: a person opens the address; nothing else may."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from commands import Said, quoth, started
from mcp_login import agree, login_server
from sentences import A_PROGRAM_THAT_A_TOOL

from quoth.tools.mcp.oauth import logins_path


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a browser."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


async def said(*words: str, cwd: Path, **env: str) -> Said:
    """What the command prints, while the login's server answers in this process."""
    return await asyncio.to_thread(lambda: quoth(*words, cwd=cwd, env=env))


async def test_a_person_opens_the_address_and_the_login_is_used(tmp_path: Path) -> None:
    async with login_server() as server:
        assert (await said("mcp", "add", "far", server.mcp, cwd=tmp_path)).code == 0
        refused = await said("mcp", "trust", "far", "--yes", cwd=tmp_path)
        assert (refused.code, refused.out) == (2, "")
        assert "The MCP server far requires a login. Type: " in refused.err
        for words, out in (
            ((), f"Logged in to far; the login is in {logins_path()}.\n"),
            (("--json",), '{"status": "logged in", "server": "far"}\n'),
        ):
            with started("mcp", "login", "far", *words, cwd=tmp_path) as login:
                line = await asyncio.to_thread(login.stderr.readline)
                assert line.startswith("quoth: To log in to far, open this address: http://127.0.0.1:")
                await agree(line.split()[-1])
                assert await asyncio.to_thread(login.ended) == Said(0, out, "")
        trusted = await said("mcp", "trust", "far", "--yes", cwd=tmp_path)
        assert trusted.code == 0
        for words in (("mcp", "list", "--json"), ("mcp", "list", "far", "--json")):
            listed = await said(*words, cwd=tmp_path)
            assert json.loads(listed.out)
            assert "token-" not in listed.out
        assert (await said("mcp", "remove", "far", cwd=tmp_path)).code == 0
        assert logins_path().read_text() == ""


async def test_what_has_no_login_says_so(tmp_path: Path) -> None:
    assert (await said("mcp", "add", "near", "cat", cwd=tmp_path)).code == 0
    near = await said("mcp", "login", "near", cwd=tmp_path)
    sentence = "quoth: The MCP server near is a program on this machine; it has no login.\n"
    assert near == Said(2, "", sentence)
    inside = await said("mcp", "login", "near", cwd=tmp_path, QUOTH_INSIDE="1")
    assert inside.code == 2
    assert A_PROGRAM_THAT_A_TOOL in inside.err
