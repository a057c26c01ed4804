"""For users' tests: turns the file of an exported session into a test, and checks a memory store.

It needs no test framework, only ``assert``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from quoth.agent.replay.again import Opening, rebuilt_agent, session_in_file
from quoth.agent.replay.replay import Replay, replay
from quoth.agent.run.host import SessionHost
from quoth.tools.loading import ToolSource
from quoth.tools.memory.conformance import memory_conforms as memory_conforms
from quoth.tools.registry.table import ToolTable


def replays(
    file: str | Path,
    *,
    tools: Iterable[ToolSource] | ToolTable | None = None,
    dialect: str | None = None,
    belt: Literal["full", "few", "search"] | None = None,
) -> Replay:
    """Assert that a session replays as it was recorded.

    ``file`` is what ``quoth export ID > FILE`` wrote::

        from quoth.testing import replays

        def test_the_fix():
            replays("tests/sessions/fix.hy", tools=["my.hy"])

    The replies of the model and the results of the calls come from the file: no model, network or tool body
    is used, and nothing is written. The test covers everything in between: the prompts, how replies are read,
    the calls, and how the run ends. It fails, with a diff of the forms, when the loop changes, or the
    description or the parameters of a tool.

    ``tools`` are the files or tools that the session had besides the built-in ones, because its file loads no
    code; ``dialect`` and ``belt`` replace those of the session. Returns the Replay; its ``notes`` list the
    parts that were not compared. Raises UsageError if the file was altered or contains no session."""
    __tracebackhide__ = True  # the message of the failure says enough
    session, events = session_in_file(Path(file))
    notes: list[str] = []

    def again(given: Opening) -> SessionHost:
        chosen = {"tools": tools, "dialect": dialect, "belt": belt}
        return rebuilt_agent(given, notes, session=session, chosen=chosen)

    replaying = replay(session, events, again, foreign=len(events))
    with ThreadPoolExecutor(1) as thread:  # a test may itself be asynchronous
        found: Replay = thread.submit(asyncio.run, replaying).result()
    found.notes[:0] = dict.fromkeys(notes)
    if not found.same:
        notes_then = "".join(f"\n{note}" for note in found.notes)
        raise AssertionError(f"{found}{notes_then}\n{found.diff}")
    return found
