"""Who says yes: everybody (``--yes``), a person at a terminal, or nobody.

Knows the door's Consent interface. No tool and no model can reach these; they are given by the host.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable

from tools.context import ALLOW, Call, Verdict, deny
from tools.table import CognitiveTool

ANSWER_SECONDS = 600.0


class SayYes:
    """Allows every question. For ``--yes`` and for hosts that have decided so."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None:
        return ALLOW


class AskTerminal:
    """Shows the form and asks the person at the terminal. An answer that is not yes is the reason to refuse.

    One question at a time; no answer within ANSWER_SECONDS leaves the call pending.
    """

    def __init__(self, ask: Callable[[str], str] = input) -> None:
        self._ask = ask
        self._turn = asyncio.Lock()

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None:
        async with self._turn:
            sys.stderr.write(f"\n{str(call.form)}\n  asked because {reason}\n")
            sys.stderr.flush()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    answer = await self._answer("  Allow it? [y/N, or why not] ")
            except TimeoutError:
                return None
        said = answer.strip()
        if said.lower() in ("y", "yes"):
            return ALLOW
        return deny("the person said no" if said.lower() in ("", "n", "no") else f"the person said: {said}")

    async def _answer(self, prompt: str) -> str:
        """``input`` in a daemon thread, so that an interrupt need not wait for a key."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            try:
                text = self._ask(prompt)
            except (EOFError, KeyboardInterrupt, OSError):
                text = ""
            loop.call_soon_threadsafe(lambda: answered.done() or answered.set_result(text))

        threading.Thread(target=read, daemon=True, name="quoth-question").start()
        return await answered
