"""What a back end costs beside raw httpx, what runs cost each other, and what calls of one reply cost
together. Prints Org tables.

python tests/bench/backends.py [request] [runs] [reads] [start] [--rounds 9] [--requests 60]

The server is a process of its own and answers at once, or after a pause where it says so. All that is
compared is measured in turns within one run; each ratio is that of one round. CPU is that of this process,
all threads. Raw httpx is a client that is kept, posts the same body and parses the same reply.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

WORDS = [f"word{number} " for number in range(120)]  # of each reply, one in each event of a stream
TASK = "Say every line."
TURNS = 3  # requests of a run: two with a call, and the answer
PAUSE = 0.05  # seconds the server thinks, where runs are side by side
READ = 0.2  # seconds of a slow read


# The server: /whole and /stream answer with words; /talk/N with N-1 calls of echo, then in words
# (without a number: TURNS).


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    event = {"id": "c", "object": "chat.completion.chunk", "model": "m", "created": 1,
             "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip
    return b"data: " + json.dumps(event).encode() + b"\n\n"


USAGE = {"prompt_tokens": 100, "completion_tokens": 120, "total_tokens": 220}


def whole(message: dict[str, Any], finish: str = "stop") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"id": "c", "model": "m", "choices": [choice], "usage": USAGE}).encode()


WHOLE = whole({"content": "".join(WORDS)})
STREAM = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": word}) for word in WORDS),
          chunk({}, "stop"), b'data: {"choices": [], "usage": %b}\n\n' % json.dumps(USAGE).encode(),
          b"data: [DONE]\n\n"]  # fmt: skip


def call(number: int, name: str = "echo") -> dict[str, Any]:
    arguments = json.dumps({"text": f"line {number}"})
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


class Server(asyncio.Protocol):
    """Reads requests as far as it must."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            length = next(
                int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"
            )
            if len(rest) < length:
                return
            body, self.buffer = rest[:length], rest[length:]
            self.answer(head.split(b" ", 2)[1].decode(), body)

    def answer(self, path: str, body: bytes) -> None:
        kind = path.split("/")[1]
        if kind == "stream":
            self.send(b"".join(STREAM), b"text/event-stream")
        elif kind == "slow":  # its events come one by one
            self.dripping = asyncio.ensure_future(self.drip())
        elif kind == "reads":
            done = b'"role":"tool"' in body.replace(b" ", b"")
            calls = [call(number, "slow-read") for number in range(3)]
            self.send(
                whole({"content": "Done."})
                if done
                else whole({"content": None, "tool_calls": calls}, "tool_calls")
            )
        elif kind == "talk":
            made = body.replace(b" ", b"").count(b'"role":"tool"')
            wanted = path.split("/")[2]
            last = made >= (int(wanted) if wanted.isdigit() else TURNS) - 1
            reply = (
                whole({"content": "Done."})
                if last
                else whole({"content": None, "tool_calls": [call(made)]}, "tool_calls")
            )
            asyncio.get_running_loop().call_later(PAUSE, self.send, reply)
        else:
            self.send(WHOLE)

    def send(self, body: bytes, kind: bytes = b"application/json") -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n" % (kind, len(body))
        self.transport.write(head + body)

    async def drip(self) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for piece in STREAM[:5]:
            self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(0.02)
        rest = b"".join(STREAM[5:])
        self.transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def server() -> Iterator[str]:
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


# One request

Once = Callable[[], Awaitable[float]]  # makes a request; the seconds until its first text


def raw(client: httpx.AsyncClient, url: str, streams: bool) -> Once:
    body = {
        "model": "m",
        "temperature": 0,
        "messages": [{"role": "user", "content": TASK}],
        "max_tokens": 1024,
    }

    async def once() -> float:
        began, first = time.perf_counter(), 0.0
        if not streams:
            reply = (await client.post(url, json=body)).json()
            assert reply["choices"][0]["message"]["content"]
            return time.perf_counter() - began
        said = []
        asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
        async with client.stream("POST", url, json=asked) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    choices = json.loads(line[6:])["choices"]
                    if choices and (piece := choices[0]["delta"].get("content")):
                        first = first or time.perf_counter() - began
                        said.append(piece)
        assert len(said) == len(WORDS)
        return first

    return once


def ours(backend: Any, streams: bool) -> Once:
    from quoth.neuro.backends.messages import Messages

    async def once() -> float:
        messages = Messages()
        messages.append("user", TASK)
        began, first = time.perf_counter(), []
        hear = (lambda piece: first.append(time.perf_counter())) if streams else None
        completion = await backend.complete(messages, on_text=hear)
        assert completion.text == "".join(WORDS)
        return (first[0] if first else time.perf_counter()) - began

    return once


@contextlib.asynccontextmanager
async def ways(base: str) -> AsyncIterator[dict[str, tuple[Once, Once]]]:
    """For each kind of reply raw httpx and the back end."""
    from quoth.neuro.backends.openai import OpenAIBackend

    async with httpx.AsyncClient() as client:
        found, opened = {}, []
        for kind in ("whole", "stream", "slow"):
            backend = OpenAIBackend("m", f"{base}/{kind}/v1", "sk-none")
            opened.append(backend)
            url = f"{base}/{kind}/v1/chat/completions"
            found[kind] = raw(client, url, kind != "whole"), ours(backend, kind != "whole")
        yield found
        for backend in opened:
            await backend.aclose()


async def measured(once: Once, count: int) -> tuple[float, float]:
    """CPU seconds of a request, and the median of the seconds until its first text."""
    gc.collect()
    began, first = time.process_time(), []
    for _ in range(count):
        first.append(await once())
    return (time.process_time() - began) / count, statistics.median(first)


async def request(rounds: int, count: int) -> None:
    with server() as base:
        async with ways(base) as kinds:
            rows = []
            for kind, name in (("whole", "whole"), ("stream", "streamed, 120 events")):
                pair = kinds[kind]
                for once in pair:
                    await measured(once, 5)
                found = [[await measured(once, count) for once in pair] for _ in range(rounds)]
                cpus = [[one[0] * 1000 for one in turn] for turn in found]
                ratio = spread([mine / theirs for theirs, mine in cpus])
                rows.append(
                    [
                        name,
                        *(f"{statistics.median(turn[place] for turn in cpus):.2f}" for place in (0, 1)),
                        ratio,
                        "1.3",
                    ]
                )
            table(["one request", "raw httpx, ms of CPU", "back end", "ratio (least-most)", "aim"], rows)
            first = [[(await measured(once, 10))[1] * 1000 for once in kinds["slow"]] for _ in range(rounds)]
            more = spread([mine - theirs for theirs, mine in first], " ms")
            table(
                ["first text", "raw httpx, ms", "back end", "more (least-most)", "aim"],
                [
                    [
                        "20 ms between events",
                        *(f"{statistics.median(turn[place] for turn in first):.1f}" for place in (0, 1)),
                        more,
                        "5 ms",
                    ]
                ],
            )


# Runs side by side


async def side_by_side(base: str, count: int) -> dict[str, float]:
    """So many runs of one agent at once, each of TURNS requests."""
    from quoth import ModelOptions
    from quoth.agent.client import AsyncAgent

    with tempfile.TemporaryDirectory() as folder:
        model = ModelOptions("openai:m", base_url=f"{base}/talk/v1", dialect="native")
        async with AsyncAgent(workspace=folder, model=model, session=None) as agent:
            await agent.run(TASK)
            gc.collect()
            before, began, took = resident(), time.perf_counter(), []

            async def one() -> None:
                start = time.perf_counter()
                reply = await agent.run(TASK)
                assert reply.text == "Done.", reply
                took.append(time.perf_counter() - start)

            await asyncio.gather(*(one() for _ in range(count)))
            seconds = time.perf_counter() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took.sort()
    return {
        "a second": count / seconds,
        "median": statistics.median(took),
        "p99": took[min(int(count * 0.99), count - 1)],
        "KB": max(peak - before, 0) / count,
    }


def resident() -> int:
    """KB of memory that this process has now."""
    words = Path("/proc/self/statm").read_text().split()
    return int(words[1]) * resource.getpagesize() // 1024


def runs(rounds: int) -> None:
    rows = []
    with server() as base:
        for count in (1, 50, 500):
            found = []
            for _ in range(min(rounds, 3)):
                done = subprocess.run(
                    [sys.executable, __file__, "side", base, str(count)],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                found.append(json.loads(done.stdout))
            fair = spread([one["p99"] / one["median"] for one in found])
            medians = [
                f"{statistics.median(one[name] for one in found):.2f}"
                for name in ("a second", "median", "p99")
            ]
            memory = f"{statistics.median(one['KB'] for one in found):.0f}" if count > 1 else ""
            rows.append([str(count), *medians, fair, memory])
    table(
        [
            "runs at once",
            "runs a second",
            "median, s",
            "p99, s",
            "p99 / median (aim 3)",
            "KB a run (aim 300)",
        ],
        rows,
    )


# Calls of one reply


async def reads(rounds: int) -> None:
    from quoth import ModelOptions, cognitive_tool
    from quoth.agent.client import AsyncAgent

    @cognitive_tool(name="slow-read", effects=["reads"], allow_repeat=True)
    async def slow_read(text: str) -> str:
        """Read slowly."""
        await asyncio.sleep(READ)
        return text

    took = []
    with server() as base, tempfile.TemporaryDirectory() as folder:
        model = ModelOptions("openai:m", base_url=f"{base}/reads/v1", dialect="native")

        def hear(event: Any) -> None:
            if event.kind in ("call", "result"):
                heard.append((event.kind, time.perf_counter()))

        async with AsyncAgent(workspace=folder, model=model, tools=[slow_read], on_event=hear) as agent:
            for _ in range(rounds):
                heard: list[tuple[str, float]] = []
                assert (await agent.run(TASK)).text == "Done."
                took.append((heard[-1][1] - heard[0][1]) * 1000)
    table(
        ["three reads of 200 ms in one reply", "ms (least-most)", "aim"],
        [["first call to last result", spread(took), "260"]],
    )


def start(rounds: int) -> None:
    """Imports and --help: what they import beyond what they need is in tests/agent/cli/test_starts.py."""
    rows = []
    for name, words in {
        "import json": ["-c", "import json"],
        "import quoth.neuro.backends.select": ["-c", "import quoth.neuro.backends.select"],
        "quoth --help": ["-m", "quoth", "--help"],
        "quoth models": ["-m", "quoth", "models"],
    }.items():
        took = []
        for _ in range(rounds):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
        rows.append([name, spread(took)])
    table(["start", "ms of CPU (least-most)"], rows)


# Tables


def spread(found: Sequence[float], unit: str = "") -> str:
    return f"{statistics.median(found):.2f}{unit} ({min(found):.2f}-{max(found):.2f})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + "+".join("---" for _ in head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve())
        return
    if sys.argv[1:2] == ["side"]:
        print(json.dumps(asyncio.run(side_by_side(sys.argv[2], int(sys.argv[3])))))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=["request", "runs", "reads", "start", []], default=[])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=60)
    given = parser.parse_args()
    wanted = given.what or ["request", "runs", "reads", "start"]
    if "request" in wanted:
        asyncio.run(request(given.rounds, given.requests))
    if "runs" in wanted:
        runs(given.rounds)
    if "reads" in wanted:
        asyncio.run(reads(given.rounds))
    if "start" in wanted:
        start(given.rounds)


if __name__ == "__main__":
    main()
