"""What a step costs as a run grows: quoth with all it keeps, raw httpx, and a floor written by hand. Prints
Org tables of CPU time and memory.

python tests/bench/growth.py [--steps 10 100 200 1000 5000] [--rounds N]
A server of its own answers with a call of echo so many times and then in words. Each run is a process of its
own, warm before it is measured, so that what one keeps is not in another's memory. All send the same messages
and the same tool; "raw httpx" keeps a list and lets httpx write all of it at each step, the floor sends bytes
it keeps. CPU is that of the client, user and system together.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = [10, 100, 200, 1000, 5000]
LONG = 3000  # steps; so long a run is made once
WARM = 20  # steps before the measured ones
TASK = "Say every line."
DONE = "All lines are said."
RULES = "Call echo for every line."
ECHO = {
    "type": "function",
    "function": {
        "name": "echo",
        "description": "Return the given text unchanged.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What to return"}},
            "required": ["text"],
            "additionalProperties": False,
        },
    },
}


# The server


class Server(asyncio.Protocol):
    """Reads requests as far as it must, and answers by their number in their run. The path is
    /run/steps/v1/chat/completions."""

    served: dict[bytes, int] = {}  # noqa: RUF012  how many requests each run has made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.head = b""
        self.wanted = 0  # bytes of the body still to come

    def data_received(self, data: bytes) -> None:
        if not self.wanted:
            head, end, body = (self.head + data).partition(b"\r\n\r\n")
            if not end:
                self.head = head
                return
            self.head, self.path = b"", head.split(b" ", 2)[1]
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self.wanted, data = int(length.split(b":")[1]), body
        self.wanted -= len(data)
        if not self.wanted:
            self.answer()

    def answer(self) -> None:
        _, run, steps, last, *_ = self.path.split(b"/")
        number = self.served[run] = self.served.get(run, 0) + 1
        message: dict[str, Any] = {"role": "assistant", "content": DONE}
        if number <= int(steps) or last == b"final_answer":  # whoever ends by a call says so in the path
            call = {"name": "echo", "arguments": json.dumps({"text": f"This is line {number} of the run."})}
            if number > int(steps):
                call = {"name": "final_answer", "arguments": json.dumps({"answer": DONE})}
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
            }
        reply = json.dumps(
            {
                "id": f"chatcmpl-{number}",
                "object": "chat.completion",
                "created": 1700000000,
                "model": "gpt-5",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {
                    "prompt_tokens": 50 * number,
                    "completion_tokens": 20,
                    "total_tokens": 50 * number + 20,
                },
            }
        ).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(reply)}\r\n\r\n"
        assert isinstance(self.transport, asyncio.WriteTransport)
        self.transport.write(head.encode() + reply)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# The clients: each makes one run and tells at each request what time it is


Tick = Callable[[], None]


def with_quoth(url: str, steps: int, tick: Tick, *, tools: str = "echo") -> str:
    """The whole loop: door, policy, receipts and audit, in a store on disk."""
    from quoth import AsyncAgent
    from quoth.agent.run.limits import RunLimits
    from quoth.neuro.backends.base import Completion
    from quoth.neuro.backends.openai import OpenAIBackend
    from quoth.tools.registry.table import ToolTable

    class Ticking(OpenAIBackend):
        async def complete(self, *args: Any, **more: Any) -> Completion:
            tick()
            return await super().complete(*args, **more)

    async def run(root: str) -> str:
        async with AsyncAgent(workspace=root, model="scripted:none") as agent:  # it loads the tools that ship
            table = () if tools == "all" else ToolTable((agent.table.get("echo"),))
        async with AsyncAgent(
            workspace=root,
            tools=table,
            model=Ticking("gpt-5", url, api_key="k"),
            limits=RunLimits(steps=steps + 1, calls=steps + 1, context=1_000_000_000),
        ) as agent:
            return (await agent.run(TASK)).text

    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUOTH_STATE"] = f"{folder}/state"
        Path(folder, "home").mkdir()
        return asyncio.run(run(f"{folder}/home"))


def with_quoth_and_its_tools(url: str, steps: int, tick: Tick) -> str:
    """The same with all the tools that ship in every request."""
    return with_quoth(url, steps, tick, tools="all")


def opening() -> list[dict[str, Any]]:
    return [{"role": "system", "content": RULES}, {"role": "user", "content": TASK}]


def body_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "gpt-5", "temperature": 0, "max_tokens": 600, "tools": [ECHO], "messages": messages}


def result_of(call: dict[str, Any]) -> dict[str, Any]:
    text = json.loads(call["function"]["arguments"])["text"]
    return {"role": "tool", "tool_call_id": call["id"], "content": f'(echo :text "{text}") -> ok:\n{text}'}


def with_httpx(url: str, steps: int, tick: Tick) -> str:
    """A list of messages, written anew at each step; nothing is kept or checked."""
    import httpx

    messages = opening()
    with httpx.Client(headers={"authorization": "Bearer k"}, timeout=120) as client:
        while True:
            tick()
            reply = client.post(f"{url}/chat/completions", json=body_of(messages)).json()
            message = reply["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            messages += [result_of(call) for call in message["tool_calls"]]


def with_bytes(url: str, steps: int, tick: Tick) -> str:
    """The floor: what was written stays written, and goes out over http.client."""

    def written(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=120)
    body = bytearray(written(body_of(opening())).removesuffix(b"]}"))
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    while True:
        tick()
        body += b"]}"
        connection.request("POST", f"/{path}/chat/completions", bytes(body), headers)
        del body[-2:]
        message = json.loads(connection.getresponse().read())["choices"][0]["message"]
        if not message.get("tool_calls"):
            connection.close()
            return str(message["content"])
        for new in (message, *map(result_of, message["tool_calls"])):
            body += b"," + written(new)


CLIENTS: dict[str, Callable[[str, int, Tick], str]] = {
    "quoth": with_quoth,
    "quoth, all its tools": with_quoth_and_its_tools,
    "raw httpx": with_httpx,
    "floor": with_bytes,
}
RAW = "raw httpx"
HEADS = (
    "what",
    "steps",
    "ms CPU a step",
    "of it system",
    "first tenth",
    "last tenth",
    "raw httpx = 1",
    "KB a step",
    "peak, MB",
)


def one(name: str, url: str, steps: int) -> dict[str, float]:
    """One run in this process: seconds of CPU, of that in the system, milliseconds a step in its first and
    last tenth, and by how many KB the peak of memory grew, and to how many."""
    ticks: list[float] = []
    client = CLIENTS[name]
    assert client(f"{url}/warm{os.getpid()}/{WARM}/v1", WARM, lambda: None) == DONE
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    system = resource.getrusage(resource.RUSAGE_SELF).ru_stime
    started = time.process_time()
    said = client(f"{url}/run{os.getpid()}/{steps}/v1", steps, lambda: ticks.append(time.process_time()))
    cpu = time.process_time() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert (said, len(ticks)) == (DONE, steps + 1), (said, len(ticks))
    tenth = max(1, steps // 10)
    return {
        "cpu": cpu,
        "system": after.ru_stime - system,
        "first": (ticks[tenth] - ticks[0]) / tenth * 1e3,
        "last": (ticks[-1] - ticks[-1 - tenth]) / tenth * 1e3,
        "memory": after.ru_maxrss - memory,
        "peak": after.ru_maxrss,
    }


# The measurement


def spread(values: list[float], digits: int = 2) -> str:
    """The median and, of several, the lowest and the highest."""
    middle = f"{statistics.median(values):.{digits}f}"
    return f"{middle} ({min(values):.{digits}f} to {max(values):.{digits}f})" if len(values) > 1 else middle


def exponent(found: dict[int, float]) -> float:
    """The slope of the logarithms: 1 where a run twice as long costs twice as much."""
    points = [(math.log(steps), math.log(cpu)) for steps, cpu in found.items()]
    return statistics.linear_regression(*zip(*points, strict=True)).slope


Found = dict[tuple[str, int], list[dict[str, float]]]


def here(_name: str) -> list[str]:
    """The command that is one client."""
    return [sys.executable, __file__]


def measure(
    steps: list[int], rounds: int, names: list[str], command: Callable[[str], list[str]] = here
) -> Found:
    """All of it, each length shown as it is done; the longest runs are made once."""
    found: Found = {}
    print(f"| {' | '.join(HEADS)} |\n|{'+'.join('---' for _ in HEADS)}|", flush=True)
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            for total in steps:
                for _ in range(rounds if total < LONG else 1):
                    for name in names:  # interleaved, so that a busy moment hits all alike
                        told = [*command(name), "--client", name, "--url", url, "--steps", str(total)]
                        said = subprocess.run(told, stdout=subprocess.PIPE, check=True).stdout
                        found.setdefault((name, total), []).append(json.loads(said))
                for name in names:
                    print(row(name, total, found[name, total], found.get((RAW, total), [])), flush=True)
        finally:
            server.terminate()
    return found


def row(name: str, steps: int, runs: list[dict[str, float]], raw: list[dict[str, float]]) -> str:
    ratios = [run["cpu"] / other["cpu"] for run, other in zip(runs, raw, strict=False)]
    cells = [
        spread([run["cpu"] / steps * 1e3 for run in runs]),
        spread([run["system"] / steps * 1e3 for run in runs]),
        spread([run["first"] for run in runs]),
        spread([run["last"] for run in runs]),
        spread(ratios) if ratios else "-",
        spread([run["memory"] / steps for run in runs], 1),
        spread([run["peak"] / 1024 for run in runs], 0),
    ]
    return f"| {name} | {steps} | {' | '.join(cells)} |"


def show_exponents(found: Found, names: list[str]) -> None:
    long = sorted({steps for _, steps in found if steps >= 100})
    if len(long) < 2:
        return
    print(f"\n| what | exponent of CPU from {long[0]} to {long[-1]} steps |\n|---+---|")
    for name in names:
        typical = {steps: statistics.median(run["cpu"] for run in found[name, steps]) for steps in long}
        print(f"| {name} | {exponent(typical):.3f} |")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, nargs="+", default=STEPS)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    options.add_argument("--url", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        asyncio.run(serve())
    elif given.client:
        print(json.dumps(one(given.client, given.url, given.steps[0])))
    else:
        show_exponents(measure(given.steps, given.rounds, given.only), given.only)


if __name__ == "__main__":
    main()
