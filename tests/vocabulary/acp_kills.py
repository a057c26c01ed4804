"""Kills the client of ``quoth acp``, or both, with -9 while a question is open, and looks: each effect once,
each request open or decided. ``python tests/vocabulary/acp_kills.py [N] [SEED]`` kills N times, else 100.

The task writes two lines, each behind a question. The client is a process of its own, which starts the agent;
after a kill the session is loaded again, until both lines are written. A question whether a call began before
is answered by what the file says.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from acp.core import RequestError
from acp.schema import AllowedOutcome, RequestPermissionResponse
from acp_client import Editor, editor
from kills import DONE, SAID, alive, kill, note_tool, was_written, written_lines, wrong_requests
from words import files

from quoth.tools.call.ports import asks_fact

KILLS = 4  # of one session, at most
ANSWERS_AFTER = 0.2  # seconds: a kill comes before, during or after the answer
SECONDS = 600.0  # for one life, on a busy machine
VICTIMS = ("client", "both")


# The client, in a process of its own. It reports each step as a line of JSON.


class Answering(Editor):
    """Allows each call after a while; whether it began before, it looks up in the file of effects."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        report(asked=tool_call.title)
        await asyncio.sleep(ANSWERS_AFTER)
        done = asks_fact(tool_call.title) and was_written(self.folder, tool_call.title)
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id="deny" if done else "once")
        )


def report(**said: Any) -> None:
    print(json.dumps(said), flush=True)


async def client(folder: Path, session: str) -> None:
    """One life of the client: load the session, or begin one if nothing of it was recorded, and follow it
    to its end. A recorded session that cannot be loaded is a fault: a second one would note both again."""
    words = ("--tools", str(folder / "note.hy"), "--model", f"scripted:{folder}/r.txt")
    # Not a fork: the warm process of this one life would import all for one agent.
    async with editor(folder, *words, client=Answering(folder), real=True) as opened:
        report(agent=opened.process.pid)
        recorded = await opened.agent.list_sessions(cwd=str(folder))
        if session in {one.session_id for one in recorded.sessions}:
            await opened.agent.load_session(cwd=str(folder), session_id=session)
        else:
            session = str((await opened.agent.new_session(cwd=str(folder))).session_id)
            report(session=session)
            await opened.say(session, "Note both.")
        if "/resume" in opened.words():
            await opened.say(session, "/resume")
        while DONE not in opened.words() and opened.process.returncode is None:
            await asyncio.sleep(0.05)
        report(over=DONE in opened.words())


# The story


async def _life(folder: Path, session: str, victim: str, seconds: float) -> tuple[str, bool, bool]:
    """One life of client and agent. Kills the ``victim``, if there is one, some ``seconds`` after a question
    came. Returns the session, whether it is over, and whether there was a kill."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "client", str(folder), session),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    agent, over, killed = 0, False, False
    try:
        async with asyncio.timeout(SECONDS):
            while line := await process.stdout.readline():
                said = json.loads(line)
                agent, session = said.get("agent", agent), said.get("session", session)
                over = said.get("over", over)
                if "refused" in said:
                    raise RuntimeError(f"refused: {said['refused']}")
                if "asked" in said and victim and not killed:
                    await asyncio.sleep(seconds)
                    killed = True
                    if victim == "both":
                        kill(agent)
                    kill(process.pid)
            await process.wait()
            while alive(agent):  # a client that vanishes ends its agent
                await asyncio.sleep(0.05)
    finally:
        kill(process.pid)
        await process.wait()
    return session, over, killed


async def story(seed: int, kills: int = KILLS, moments: Counter[str] | None = None) -> str:
    """What is wrong after one session with kills; empty for nothing. ``moments`` counts the kills."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="acp-"))
    session, over = "", False
    try:
        files(folder, {"note.hy": note_tool(folder), "r.txt": SAID})
        for number in range(kills + 3):
            victim = chance.choice(VICTIMS) if number < kills else ""
            try:
                life = await _life(folder, session, victim, chance.uniform(0, 2 * ANSWERS_AFTER))
            except (TimeoutError, RuntimeError) as error:
                return f"seed {seed}: life {number} of {session}: {error or 'it did not end'}"
            session, over, killed = life
            if killed and moments is not None:
                moments[victim] += 1
            lines = written_lines(folder)
            if len(set(lines)) < len(lines) or (session and (fault := wrong_requests(folder, lines))):
                return f"seed {seed}, after life {number}: {lines}, {fault}"
            if over:
                break
        lines = written_lines(folder)
        return "" if over and lines == ["one", "two"] else f"seed {seed}: {lines}, over: {over}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(words: list[str]) -> None:
    if words[:1] == ["client"]:
        try:
            asyncio.run(client(Path(words[1]), words[2]))
        except RequestError as error:
            report(refused=str(error))
        return
    wanted, first = (int(word) for word in (*words, *("100", "0")[len(words) :]))
    moments, wrong, seed = Counter[str](), list[str](), first
    with tempfile.TemporaryDirectory(prefix="acp-state-") as state:
        os.environ["QUOTH_STATE"] = state
        while moments.total() < wanted:
            if said := asyncio.run(story(seed, moments=moments)):
                wrong.append(said)
                print(said, flush=True)
            seed += 1
            told = ", ".join(f"{moments[one]} of {one}" for one in VICTIMS)
            print(
                f"{moments.total()} kills ({told}) in {seed - first} sessions, {len(wrong)} wrong.",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
