"""``quoth serve`` under load: many chats of many turns with two clients and more at once, readers that take a
byte at a time, calls against a quota, and large bodies. ``python tests/vocabulary/serve_load.py`` plays the
long forms and prints their figures; tests/agent/serve/test_load.py plays small ones.

Each function returns what is wrong, empty for nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
from serving import Served, serving, token
from words import files

QUOTA = 3
# Answers with the texts of the person, or at length.
MODEL = """
(defn reply [messages]
  (setv texts (lfor m messages :if (= (get m "role") "user") (get m "content")))
  (if (in "at length" (get texts -1))
    (* "word " 400000)
    (+ "I saw: " (.join " | " (lfor t texts (get (.splitlines (str t)) 0))))))
"""
RULES = f"(quota list-files {QUOTA} :per :week :by :user)"
REVISION = "2026-07-28"


def load_folder(folder: Path) -> Path:
    """A folder for a server under load."""
    return files(folder / "shop", {"model.hy": MODEL, "rules.hy": RULES, "a.txt": "one\n"})


def load_server(folder: Path) -> Any:
    return serving(load_folder(folder), "--model", "scripted:model.hy", "--policy", "rules.hy")


def client(server: Served, name: str = "me") -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=100)
    own = {"Authorization": f"Bearer {token(name)}"}
    return httpx.AsyncClient(base_url=server.url, headers=own, timeout=600, limits=limits)


async def chat(http: httpx.AsyncClient, number: int, turns: int) -> str:
    """One chat, in which each answer has all that was said, in one session."""
    messages: list[dict[str, str]] = []
    sessions = set()
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{number}-{turn}"})
        answer = await http.post("/v1/chat/completions", json={"model": "quoth", "messages": messages})
        if answer.status_code != 200:
            return f"chat {number}, turn {turn}: {answer.status_code} {answer.text}"
        sessions.add(answer.headers["X-Session"])
        said = answer.json()["choices"][0]["message"]["content"]
        wanted = "I saw: " + " | ".join(f"{number}-{one}" for one in range(turn + 1))
        if said != wanted:
            return f"chat {number}, turn {turn}: {said!r}"
        messages.append({"role": "assistant", "content": said})
    return "" if len(sessions) == 1 else f"chat {number} had the sessions {sorted(sessions)}"


async def chats(server: Served, number: int, turns: int, at_once: int = 4) -> str:
    """Many chats of two keys, some of them at once."""
    room = asyncio.Semaphore(at_once)

    async def one(at: int, http: httpx.AsyncClient) -> str:
        async with room:
            return await chat(http, at, turns)

    async with client(server) as first, client(server, "other") as second:
        found = await asyncio.gather(*(one(at, (first, second)[at % 2]) for at in range(number)))
    return "; ".join(filter(None, found))


async def slow_readers(server: Served, readers: int, others: int) -> str:
    """Readers that take one byte of a long answer, and no more, while others chat."""
    before = memory(server)
    body = json.dumps(
        {"model": "quoth", "stream": True, "messages": [{"role": "user", "content": "speak at length"}]}
    ).encode()
    writers = []
    try:
        for _ in range(readers):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", int(server.url.rpartition(":")[2]), limit=1
            )
            writers.append(writer)
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Authorization: Bearer {token('me')}\r\n\r\n".encode() + body)
            assert await reader.readexactly(1)
        fault = await chats(server, others, 2)
        grown = memory(server) - before
        if grown > 40 + 12 * readers:  # MB: an answer has 2 MB
            return f"{grown} MB more for {readers} slow readers"
        print(f"{readers} slow readers of 2 MB: {grown} MB more", file=sys.stderr)
        return fault
    finally:
        for writer in writers:
            writer.close()


def memory(server: Served) -> int:
    """MB of memory of the server's process."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) // 1000


async def limited_calls(server: Served, number: int, at_once: int = 20) -> str:
    """Calls of one tool by ``/mcp``, of which the quota allows some."""
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": REVISION,
        f"{prefix}clientInfo": {"name": "x", "version": "1"},
        f"{prefix}clientCapabilities": {},
    }
    own = {"MCP-Protocol-Version": REVISION, "Mcp-Method": "tools/call", "Mcp-Name": "list-files"}
    own["Accept"] = "application/json, text/event-stream"
    room = asyncio.Semaphore(at_once)

    async with client(server) as http:

        async def one(at: int) -> bool:
            params = {"name": "list-files", "arguments": {"path": "."}, "_meta": meta}
            body = {"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": params}
            async with room:
                answer = await http.post("/mcp", json=body, headers=own)
            lines = [one.removeprefix("data: ") for one in answer.text.splitlines() if "jsonrpc" in one]
            return not json.loads(lines[-1])["result"].get("isError", False)

        passed = sum(await asyncio.gather(*(one(at) for at in range(number))))
    return "" if passed == QUOTA else f"{passed} of {number} calls passed a quota of {QUOTA}"


async def large_bodies(server: Served, megabytes: int, number: int) -> str:
    """Bodies over the bound, whose senders are refused or cut off, and that the server does not keep."""
    before = memory(server)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(megabytes):
            yield b"x" * 1_000_000

    async def one(http: httpx.AsyncClient, body: Any) -> int:
        try:
            return (await http.post("/v1/chat/completions", content=body)).status_code
        except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
            return 0  # the connection was closed while it was sent

    async with client(server) as http:
        codes = [await one(http, pieces()) for _ in range(number)]
        codes += [await one(http, b"x" * 1_000_000 * megabytes)]
        grown = memory(server) - before
        alive = (await http.get("/health")).status_code
    print(f"bodies of {megabytes} MB: {codes}, {grown} MB more", file=sys.stderr)
    if alive != 200 or not {*codes} <= {0, 413} or grown > 100:
        return f"{codes}, {grown} MB more, /health {alive}"
    return ""


async def long_forms(server: Served) -> None:
    for what, work in (
        ("50 chats of 20 turns", lambda: chats(server, 50, 20)),
        ("20 slow readers", lambda: slow_readers(server, 20, 10)),
        ("1,000 calls against a quota of 3", lambda: limited_calls(server, 1000)),
        ("5 bodies of 100 MB", lambda: large_bodies(server, 100, 4)),
    ):
        began = time.monotonic()
        fault = await work()
        print(f"{what}: {fault or 'all as it should be'}, {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ["QUOTH_STATE"] = f"{name}/state"
        (Path(name) / "work").mkdir()
        with load_server(Path(name) / "work") as server:
            asyncio.run(long_forms(server))


if __name__ == "__main__":
    main()
