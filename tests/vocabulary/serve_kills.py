"""Kills ``quoth serve``, its client, or both, with -9, and looks: each effect once, and nothing lost that the
client was told. ``python tests/vocabulary/serve_kills.py [N] [SEED]`` kills N times, else 100.

The task writes two lines, each behind a question. By turns a chat client asks the model for both, and a
client of ``/mcp`` calls the tool twice. The client is a process of its own for each request. A kill comes
while an answer streams, a question is open, a call runs, or at any moment of a request. Then the server is
started again, and the client sends the same once more, or goes on after the part that it has. A question
whether a call began before is answered by what the file of effects says; every other one with yes.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commands import Running, started
from kills import DONE, LINES, SAID, kill, note_tool, requests_of, was_written, written_lines
from serving import key_file, token
from words import files

from quoth.tools.call.ports import asks_fact

KILLS = 4  # of one story, at most
OFTEN = 0.7  # of the requests, until then
ROUNDS = 40  # requests of one story, at most
CALL_SECONDS = 0.15  # of a call
SECONDS = 300.0  # for one request, on a busy machine
VICTIMS = ("server", "client", "both")
MOMENTS = ("stream", "question", "call", "any")
REVISION = "2026-07-28"
APPROVE = re.compile(r"approve (\w+), or")
BUSY = 409
MORE = f"---\n{DONE}\n" * 3  # for messages after an answer that was finished meanwhile

# The client: sends a request, and passes on the status, the session, and the body as it comes.
CLIENT = """
import http.client, json, sys
at = http.client.HTTPConnection(sys.argv[1])
at.request("POST", sys.argv[2], sys.stdin.buffer.read(), json.loads(sys.argv[3]))
answer = at.getresponse()
sys.stdout.write(f"{answer.status} {answer.headers.get('X-Session', '')}\\n")
sys.stdout.flush()
while piece := answer.read1():
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
sys.stdout.buffer.write(b"\\n: whole\\n")
"""


@dataclass
class Got:
    """What a client has of an answer."""

    status: int = 0
    session: str = ""
    body: str = ""

    @property
    def whole(self) -> bool:
        return self.body.endswith("\n: whole\n")

    @property
    def text(self) -> str:
        """The words of a stream of chat completions."""
        found = [json.loads(line[6:]) for line in self.body.split("\n\n") if line.startswith("data: {")]
        deltas = [one["choices"][0]["delta"] for one in found if one["choices"]]
        return "".join(delta.get("content") or "" for delta in deltas)


@dataclass
class Story:
    """A task, from its first request to its last."""

    chance: random.Random
    most: int = KILLS
    often: float = OFTEN
    kills: Counter[str] = field(default_factory=Counter)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="serve-")))
    server: Running | None = None
    url: str = ""
    forks: int = 0
    gone: bool = False  # the client of the latest request was killed, which stops its answer
    stopped: bool = False  # and another then wrote on: what ran is not repeated
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Start the server, if it does not run."""
        if self.server is not None:
            return
        keys = key_file(self.folder)
        words = ("--tools", str(self.folder / "note.hy"), "--model", f"scripted:{self.folder}/r.txt")
        at = started(
            *("serve", "--port", "0", "--token-file", str(keys), "--expose", "note", *words),
            cwd=self.folder / "work",
        )
        self.server = self.stack.enter_context(at)
        self.server.says("quoth serves on ")
        found = re.search(r"http://([\d.:]+\d)", self.server.heard)
        assert found, self.server.heard
        self.url = found[1]

    def stop(self) -> None:
        """Kill the server."""
        if self.server is not None:
            kill(self.server.process.pid)
            self.server = None
            self.stack.close()

    async def post(self, path: str, body: Any, moment: str, **headers: str) -> Got:
        """Send a request; kill at a ``moment`` of it, if there is one."""
        self.start()
        self.gone = False
        own = {"Authorization": f"Bearer {token('me')}", "Content-Type": "application/json", **headers}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", CLIENT, self.url, path, json.dumps(own)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        got, begun = Got(), len(written_lines(self.folder, "begun.txt"))
        process.stdin.write(json.dumps(body).encode())
        process.stdin.close()
        reading = asyncio.create_task(read(process.stdout, got))
        try:
            async with asyncio.timeout(SECONDS):
                if moment:
                    await self._until(moment, got, begun, reading)
                    self._kill(moment, process)
                await reading
        finally:
            if process.returncode is None:
                kill(process.pid)
            await process.wait()
        return got

    async def _until(self, moment: str, got: Got, begun: int, reading: asyncio.Task[None]) -> None:
        """Wait for the moment of a kill, or the end of the answer."""
        reached: dict[str, Callable[[], bool]] = {
            "stream": lambda: bool(got.body),
            "question": lambda: reading.done(),
            "call": lambda: len(written_lines(self.folder, "begun.txt")) > begun,
            "any": lambda: True,
        }
        while not reached[moment]() and not reading.done():
            await asyncio.sleep(0.01)
        longest = {"stream": 0.1, "question": 0.0, "call": 1.5 * CALL_SECONDS, "any": 1.0}[moment]
        await asyncio.sleep(self.chance.uniform(0, longest))

    def _kill(self, moment: str, process: asyncio.subprocess.Process) -> None:
        victim = self.chance.choice(VICTIMS) if moment != "question" else "server"
        self.gone = victim != "server"
        self.kills[f"{victim}, {moment}"] += 1
        if victim != "server":
            kill(process.pid)
        if victim != "client":
            self.stop()

    def moment(self) -> str:
        """The moment of the next request's kill; empty for none."""
        more = self.kills.total() < self.most and self.chance.random() < self.often
        return self.chance.choice(MOMENTS) if more else ""

    def careful(self, shown: str) -> bool:
        """Whether a person who reads a question allows its call."""
        return not (asks_fact(shown) and was_written(self.folder, shown))

    # The two tasks. Each returns what is wrong in the end; empty for nothing.

    async def chat(self) -> str:
        """A chat client asks for both lines."""
        talk, message, session = list[str](), "Note both.", ""
        decided = list[str]()
        for _ in range(ROUNDS):
            roles = ("user", "assistant")
            sent = [{"role": roles[at % 2], "content": text} for at, text in enumerate([*talk, message])]
            body = {"model": "quoth", "stream": True, "messages": sent}
            got = await self.post("/v1/chat/completions", body, self.moment())
            if got.status == BUSY:
                await asyncio.sleep(0.1)
                continue
            if got.status not in (0, 200):
                return f"status {got.status}: {got.body}"
            if got.session and session and got.session != session:
                self.forks += 1
            session = got.session or session
            if message.startswith(("approve", "deny")) and f"{message.split()[1]}" in got.text:
                decided.append(message.split()[1])
            if fault := self.lost(decided):
                return fault
            text = got.text
            if "[DONE]" not in got.body:
                if text.strip() and self.chance.random() < 0.3:  # the client keeps the part that it has
                    talk, message = [*talk, message, text], "Go on."
                    self.stopped = self.stopped or self.gone
                continue  # else it sends the same again
            found = APPROVE.search(text)
            if DONE in text and found is None:
                return ""
            talk = [*talk, message, text]
            message = "Go on." if found is None else self.decision(found[1], text)
        return f"not over after {ROUNDS} requests; the last answer: {text!r}"

    def decision(self, id: str, shown: str) -> str:
        return f"approve {id}" if self.careful(shown) else f"deny {id} it was done"

    async def calls(self) -> str:
        """A client of MCP calls the tool for each line."""
        for line in LINES:
            state: str | None = None
            answers: dict[str, Any] | None = None
            for _ in range(ROUNDS):
                got = await self.call(line, state, answers)
                if not got.whole:
                    continue  # the same again
                said = result_of(got.body)
                if said.get("resultType") == "input_required":
                    asked = said["inputRequests"]["question"]["params"]["message"]
                    allow = self.careful(asked)
                    why = {} if allow else {"why": "it was done"}
                    state = said["requestState"]
                    answers = {"question": {"action": "accept", "content": {"allow": allow, **why}}}
                    continue
                if not said.get("isError") and line not in written_lines(self.folder):
                    return f"{line} is told as done and is not"
                if said.get("isError") and line not in written_lines(self.folder):
                    return f"{line} failed: {said}"
                break
            else:
                return f"{line} is not over after {ROUNDS} requests"
        return ""

    async def call(self, line: str, state: str | None, answers: dict[str, Any] | None) -> Got:
        meta = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }
        params: dict[str, Any] = {"name": "note", "arguments": {"text": line}, "_meta": meta}
        if state is not None:
            params |= {"requestState": state, "inputResponses": answers}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"MCP-Protocol-Version": REVISION, "Mcp-Method": "tools/call", "Mcp-Name": "note"}
        accept = "application/json, text/event-stream"
        return await self.post("/mcp", body, self.moment(), Accept=accept, **headers)

    def lost(self, decided: list[str]) -> str:
        """Which decisions that the client was told of are not in the store; empty for none."""
        open_ones = {one.id for one in self.requests() if one.state == "pending"}
        found = [id for id in decided if id in open_ones]
        return f"told as decided and open: {found}" if found else ""

    def requests(self) -> Any:
        return requests_of(self.folder / "work")

    async def play(self, task: Callable[[], Awaitable[str]]) -> str:
        """What is wrong after a task; empty for nothing."""
        files(
            self.folder, {"note.hy": note_tool(self.folder, CALL_SECONDS), "r.txt": SAID + MORE, "work/a": ""}
        )
        fault = await task()
        lines = written_lines(self.folder)
        fits = sorted(lines) == sorted(LINES) or (self.stopped and len({*lines}) == len(lines))
        return fault or ("" if fits else f"{lines} were written")


async def read(stream: asyncio.StreamReader, got: Got) -> None:
    """Read what a client passes on."""
    first = (await stream.readline()).decode().split(" ")
    if len(first) == 2:
        got.status, got.session = int(first[0]), first[1].strip()
    data = b""
    while piece := await stream.read(65536):
        data += piece
        got.body = data.decode("utf-8", "ignore")


def result_of(body: str) -> dict[str, Any]:
    """The result of an answer of MCP, in one piece or as a stream."""
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith(("{", "data: {"))]
    said: dict[str, Any] = next(one for one in map(json.loads, lines) if "id" in one)
    assert "result" in said, said
    found: dict[str, Any] = said["result"]
    return found


async def story(
    seed: int, kills: int = KILLS, moments: Counter[str] | None = None, often: float = OFTEN
) -> str:
    """What is wrong after one task with kills; empty for nothing. ``moments`` counts the kills."""
    told = Story(random.Random(seed), kills, often)
    try:
        said = await told.play(told.calls if seed % 2 else told.chat)
    except TimeoutError:
        said = "a request did not end"
    finally:
        told.stop()
        told.stack.close()
        shutil.rmtree(told.folder, ignore_errors=True)
    if moments is not None:
        moments.update(told.kills)
        moments.update({"fork": told.forks} if told.forks else {})
    return f"seed {seed}: {said} ({dict(told.kills)}, {told.forks} forks)" if said else ""


def main(words: list[str]) -> None:
    wanted, first = (int(word) for word in (*words, *("100", "0")[len(words) :]))
    moments, wrong, seed = Counter[str](), 0, first
    with tempfile.TemporaryDirectory(prefix="serve-state-") as state:
        os.environ["QUOTH_STATE"] = state
        while moments.total() - moments["fork"] < wanted:
            if said := asyncio.run(story(seed, moments=moments)):
                wrong += 1
                print(said, flush=True)
            seed += 1
            told = ", ".join(f"{moments[one]} {one}" for one in sorted(moments))
            total = moments.total() - moments["fork"]
            print(f"{total} kills in {seed - first} stories, {wrong} wrong: {told}.", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
