"""Kills ``quoth acp`` with -9 at chance moments, a question open or not, and looks: each effect once.
``python tests/vocabulary/acp_kills.py [N]`` plays N sessions (default: 30), each killed up to ten times.

The task writes two lines, each behind a question; the session is loaded again after each kill and approved
until it is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from acp.core import RequestError
from acp_client import Editor, editor
from words import files

TOOL = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool note "Append a line."
  :parameters [text {:type str}]
  :effects [:writes]
  :body (with [file (open "HERE/effects.txt" "a")] (.write file (+ text "\\n"))))
"""
SAID = '(note "one")\n---\n(note "two")\n---\nBoth are noted.\n'
LIVES = 12  # of one session, at most


async def _life(folder: Path, session: str | None, seconds: float | None) -> tuple[str, bool]:
    """One life of client and agent, killed after ``seconds``; the session, and whether its run is over."""
    words = ("--tools", str(folder / "note.hy"), "--model", f"scripted:{folder}/r.txt")
    client = Editor(*["once"] * 4)
    over = False
    with contextlib.suppress(ConnectionError, asyncio.CancelledError):
        async with editor(folder, *words, client=client) as opened:
            killing = None
            if seconds is not None:
                loop = asyncio.get_running_loop()
                killing = loop.call_later(seconds, opened.process.send_signal, signal.SIGKILL)
            with contextlib.suppress(Exception):
                if session is not None:
                    with contextlib.suppress(RequestError):  # nothing of it was recorded
                        await opened.agent.load_session(cwd=str(folder), session_id=session)
                if not any(one.session_update == "user_message_chunk" for one in opened.updates):
                    session = str((await opened.agent.new_session(cwd=str(folder))).session_id)
                    await asyncio.wait_for(opened.say(session, "Note both."), 60)
                elif "/resume" in opened.words():
                    await asyncio.wait_for(opened.say(str(session), "/resume"), 60)
                async with asyncio.timeout(60):
                    while "Both are noted." not in opened.words():
                        if opened.process.returncode is not None:
                            break
                        await asyncio.sleep(0.05)
                over = "Both are noted." in opened.words()
            if killing is not None:
                killing.cancel()
            with contextlib.suppress(ProcessLookupError):
                opened.process.kill()
    return session or "", over


async def story(seed: int) -> str:
    """What is wrong after one session with kills; empty for nothing."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="acp-"))
    try:
        files(folder, {"note.hy": TOOL.replace("HERE", str(folder)), "r.txt": SAID})
        session: str | None = None
        for life in range(LIVES):
            seconds = chance.uniform(0.3, 3.0) if life < LIVES - 2 else None
            name, over = await _life(folder, session, seconds)
            session = name or session
            if over:
                break
        else:
            return f"seed {seed}: not over after {LIVES} lives"
        effects = folder / "effects.txt"
        found = effects.read_text().split() if effects.exists() else []
        # A body that was killed may have written; it is begun again only after the person has said so.
        return "" if sorted(set(found)) == ["one", "two"] and len(found) <= 3 else f"seed {seed}: {found}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    wrong = [said for seed in range(number) if (said := asyncio.run(story(seed)))]
    print(*wrong, sep="\n")
    print(f"{number} sessions, {len(wrong)} wrong.")
