"""The first session of ``quoth acp`` beside a bare agent of the protocol's package that only answers: from
the start of the process to ``session/new``, in turn. Prints a ratio with its spread.

python tests/bench/editors.py [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from acp import spawn_agent_process
from acp.schema import Implementation

BARE = """
import asyncio
from acp.core import run_agent
from acp.schema import InitializeResponse, NewSessionResponse

class Bare:
    def on_connect(self, conn): ...
    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=1)
    async def new_session(self, cwd, **_):
        return NewSessionResponse(session_id="s1")

asyncio.run(run_agent(Bare()))
"""
AGENTS = {"quoth": ("-m", "quoth", "acp"), "bare": ("-c", BARE)}


class Silent:
    """A client that shows nothing."""

    def on_connect(self, conn: object) -> None: ...

    async def session_update(self, **_: object) -> None: ...


async def until_session(folder: Path, name: str) -> float:
    """Seconds until the first session is there."""
    began = time.perf_counter()
    command, env = (sys.executable, *AGENTS[name]), dict(os.environ)
    async with spawn_agent_process(Silent(), *command, env=env, cwd=folder) as (agent, _):  # type: ignore[arg-type]
        await agent.initialize(protocol_version=1, client_info=Implementation(name="bench", version="1"))
        await agent.new_session(cwd=str(folder))
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = [
            (asyncio.run(until_session(folder, "quoth")), asyncio.run(until_session(folder, "bare")))
            for _ in range(rounds + 1)
        ][1:]  # the first fills caches
    ratios = sorted(one / other for one, other in pairs)
    ours, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
    print(f"session/new {ours * 1000:.0f} ms, a bare agent {theirs * 1000:.0f} ms:", end=" ")
    print(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) times, {rounds} rounds.")


if __name__ == "__main__":
    main()
