"""``quoth mcp login``: a person opens the address; nothing else may."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from commands import Said, command
from mcp_login import agree, login_server
from sentences import A_PROGRAM_THAT_A_TOOL

from quoth.tools.mcp.oauth import logins_path


async def begun(*words: str, cwd: Path, **env: str) -> asyncio.subprocess.Process:
    """The command, without a screen for a browser."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *command(), *words, cwd=cwd, env={**kept, **env}, stdout=pipe, stderr=pipe, stdin=pipe
    )


async def said(process: asyncio.subprocess.Process) -> Said:
    out, err = await asyncio.wait_for(process.communicate(), 120)
    return Said(process.returncode or 0, out.decode(), err.decode())


async def test_a_person_opens_the_address_and_the_login_is_used(tmp_path: Path) -> None:
    async with login_server() as server:
        assert (await said(await begun("mcp", "add", "far", server.mcp, cwd=tmp_path))).code == 0
        refused = await said(await begun("mcp", "trust", "far", "--yes", cwd=tmp_path))
        assert (refused.code, refused.out) == (2, "")
        assert "The MCP server far requires a login. Type: " in refused.err
        for words, out in (
            ((), f"Logged in to far; the login is in {logins_path()}.\n"),
            (("--json",), '{"status": "logged in", "server": "far"}\n'),
        ):
            login = await begun("mcp", "login", "far", *words, cwd=tmp_path)
            assert login.stderr is not None
            line = (await asyncio.wait_for(login.stderr.readline(), 120)).decode()
            assert line.startswith("quoth: To log in to far, open this address: http://127.0.0.1:")
            await agree(line.split()[-1])
            assert await said(login) == Said(0, out, "")
        trusted = await said(await begun("mcp", "trust", "far", "--yes", cwd=tmp_path))
        assert trusted.code == 0
        for words in (("mcp", "list", "--json"), ("mcp", "list", "far", "--json")):
            listed = await said(await begun(*words, cwd=tmp_path))
            assert json.loads(listed.out)
            assert "token-" not in listed.out
        assert (await said(await begun("mcp", "remove", "far", cwd=tmp_path))).code == 0
        assert logins_path().read_text() == ""


async def test_what_has_no_login_says_so(tmp_path: Path) -> None:
    assert (await said(await begun("mcp", "add", "near", "cat", cwd=tmp_path))).code == 0
    near = await said(await begun("mcp", "login", "near", cwd=tmp_path))
    sentence = "quoth: The MCP server near is a program on this machine; it has no login.\n"
    assert near == Said(2, "", sentence)
    inside = await said(await begun("mcp", "login", "near", cwd=tmp_path, QUOTH_INSIDE="1"))
    assert inside.code == 2
    assert A_PROGRAM_THAT_A_TOOL in inside.err
