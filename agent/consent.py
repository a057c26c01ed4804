"""Who says yes: everybody (``--yes``), a person at a terminal, or nobody.

Knows the door's Consent interface. No tool and no model can reach these; they are given by the host.
"""

from __future__ import annotations

import asyncio
import sys

from agent.run import shortened
from agent.stdin import StdinLines
from tools.context import ALLOW, Call, Verdict, deny
from tools.redact import Redactor
from tools.table import CognitiveTool

ANSWER_SECONDS = 600.0
SHOWN_CHARS = 4000


class SayYes:
    """Allows every question. For ``--yes`` and for hosts that have decided so."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None:
        return ALLOW


class AskTerminal:
    """Shows the form and asks the person at the terminal. An answer that is not yes is the reason to refuse.

    One question at a time. The question goes to stderr, for stdout belongs to the result, and what was typed
    before it is no answer. No answer within ANSWER_SECONDS, or an interrupt, leaves the call pending.
    """

    def __init__(self, lines: StdinLines | None = None) -> None:
        self._lines = lines or StdinLines()
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Task[str] | None = None
        self._interrupted = False

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None:
        async with self._turn:
            self._lines.forget_unread()
            hide = Redactor(call.form, tool.params, by_looks=False)
            form = shortened(str(hide.form), SHOWN_CHARS)
            _say(f"\n{form}\n  asked because {hide.text(reason)}\n  Allow it? [y/N, or why not] ")
            self._interrupted = False
            self._waiting = asyncio.ensure_future(self._lines.read())
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    said = (await self._waiting).strip()
            except EOFError:
                said = ""
                _say("\n")
            except TimeoutError:
                return None
            except asyncio.CancelledError:
                if not self._interrupted:
                    raise
                _say("\n")
                return None
            finally:
                self._waiting = None
        if said.lower() in ("y", "yes"):
            return ALLOW
        return deny("the person said no" if said.lower() in ("", "n", "no") else f"the person said: {said}")

    def interrupt(self) -> None:
        """Take the question back."""
        if self._waiting is not None:
            self._interrupted = True
            self._waiting.cancel()


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
