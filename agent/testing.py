"""For users' tests: a session that went well, kept as a file, is a test.

Knows replays alone; it needs no test framework, only ``assert``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from quoth.agent.replay.again import Opening, rebuilt_agent, session_in_file
from quoth.agent.replay.replay import Replay, replay
from quoth.agent.run.conversation import Conversations
from quoth.tools.loading import ToolSource
from quoth.tools.registry.table import ToolTable


def replays(
    file: str | Path,
    *,
    tools: Iterable[ToolSource] | ToolTable | None = None,
    dialect: str | None = None,
    belt: Literal["full", "search"] | None = None,
) -> Replay:
    """Assert that a session replays as it is recorded.

    ``file`` is what ``quoth export ID > FILE`` wrote::

        from quoth.agent.testing import replays

        def test_the_fix():
            replays("tests/sessions/fix.hy", tools=["my.hy"])

    The model's words and the results of the calls are those of the file: no model, no network and no body of
    a tool is needed, and nothing is written. What is tested is all that lies between: what the model is told
    of the tools and of their results, how its words are read, which calls come of them, and how the run ends.
    So the test fails, with a diff of the forms, when a tool's description or parameters change, or the loop
    does.

    ``tools`` are the files or tools that the session had beside those that ship, for a file of a session
    loads no code by itself; ``dialect`` and ``belt`` count in place of the session's. Returns the Replay,
    whose ``notes`` say what was not compared. Raises UsageError for a file that holds no session, or one that
    was changed."""
    __tracebackhide__ = True  # what failed is in the words of the failure
    session, events = session_in_file(Path(file))
    notes: list[str] = []

    def again(given: Opening) -> Conversations:
        return rebuilt_agent(given, notes, session=session, tools=tools, dialect=dialect, belt=belt)

    replaying = replay(session, events, again, foreign=len(events))
    with ThreadPoolExecutor(1) as thread:  # a test may itself be asynchronous
        found: Replay = thread.submit(asyncio.run, replaying).result()
    found.notes[:0] = dict.fromkeys(notes)
    if not found.same:
        notes_then = "".join(f"\n{note}" for note in found.notes)
        raise AssertionError(f"{found}{notes_then}\n{found.diff}")
    return found
