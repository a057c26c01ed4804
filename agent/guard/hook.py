"""The hook's own process: standard input to one answer, before a deadline, and nothing else on stdout.

The command ``quoth guard AGENT`` starts here without the parser of the command line, which would take a third
of the time of a call. The answer is one write and the last act, so that a process which ends before it has
answered nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from quoth.agent.guard.formats import FORMATS, KILL_SECONDS, OWN_SECONDS, AgentFormat

CHUNK = 1 << 20
LATE = "it was not judged within {:g} s"


def parsed_words(words: Sequence[str]) -> tuple[AgentFormat, dict[str, Any]] | None:
    """The agent and the options of ``quoth guard AGENT``; None for any other command line, which the parser
    reads."""
    if not words or words[0] not in FORMATS:
        return None
    options: dict[str, Any] = {}
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if word in ("--strict", "--may-allow"):
            options[word[2:].replace("-", "_")] = True
        elif word in ("--policy", "--user") and rest:
            options[word[2:]] = rest.pop(0)
        else:
            return None
    return FORMATS[words[0]], options


def run(agent: AgentFormat, options: dict[str, Any]) -> int:
    """Answer the call on standard input. Returns 0: another code would let the call through."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the kernel ends us at any point
    signal.alarm(KILL_SECONDS)
    once = _Once()
    late = threading.Timer(OWN_SECONDS, once.say, [_late(agent)])
    late.daemon = True
    late.start()
    try:
        from quoth.agent.guard.judging import MOST_BYTES, GuardSettings, answer

        said = answer(
            agent, _read(MOST_BYTES + 1), GuardSettings(**options, project=os.environ.get(agent.project, ""))
        )
    except Exception as error:
        said = agent.answer("deny", f"quoth denies this call: it failed ({type(error).__name__}).")
    once.say(said)
    return 0


def _late(agent: AgentFormat) -> str:
    return agent.answer("deny", f"quoth denies this call: {LATE.format(OWN_SECONDS)}.")


def _read(most: int) -> bytes:
    """The first bytes of standard input, up to a limit."""
    pieces: list[bytes] = []
    while most > 0 and (piece := os.read(0, min(CHUNK, most))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


class _Once:
    """Writes the first answer that it is given, and ends the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def say(self, answer: str) -> None:
        self._lock.acquire()  # never released: nothing else may answer
        code = 0
        try:
            if answer:
                data = f"{answer}\n".encode()
                while data:  # a pipe may take a part
                    data = data[os.write(1, data) :]
            sys.stderr.flush()
        except OSError:
            code = 1
        os._exit(code)
