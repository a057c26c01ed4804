"""A chat of one person at a terminal: each line is a message; the reply is printed, then what became of its
calls. A line that starts with ``,`` is a command, as in the REPL.

Knows one chat and a terminal; what a message does is done by the chat.
"""

from __future__ import annotations

from typing import ClassVar

from quoth.agent.client import AsyncAgent
from quoth.agent.repl.commands import COMMANDS, Command
from quoth.agent.repl.repl import Repl
from quoth.agent.reply import Reply
from quoth.tools.call.call import ToolResult


class ChatRepl(Repl):
    """Reads messages and commands until the end of input; Lisp is a message, too. ``chat`` is the agent's
    copy for this chat."""

    commands: ClassVar[dict[str, Command]] = {
        name: command for name, command in COMMANDS.items() if command.chat
    }
    entries = (("any text", "say it in the chat; the conversation goes on from line to line"),)

    lisp = False

    def __init__(self, chat: AsyncAgent, as_json: bool = False) -> None:
        super().__init__(chat, as_json)
        chat.deliver = None  # the Reply has all messages, in their order
        self._told: set[str] = set()  # the follow-ups that were shown, by run and call

    def greeting(self) -> str:
        return "quoth chat. A line is a message, ,help lists commands."

    async def _begin(self) -> None:
        """Evaluate nothing: a chat has no person's module."""

    async def one(self, text: str) -> None:
        if text.startswith(","):
            await self.command(text)
        elif text:
            self.show(await self.agent.say(text))

    def show(self, done: ToolResult | Reply) -> None:
        if isinstance(done, Reply) and not self.as_json:
            if done.status in ("done", "pending"):
                self.speech.finish(done.text)
            for one in done.follow_ups:
                if one.call not in self._told:
                    self._told.add(one.call)
                    self._write(one.text)
            for text in done.messages:
                self._write(text)
            if done.status == "pending":
                self.tell_waiting()
        else:
            super().show(done)

    async def _read(self) -> str:
        return await self._line("quoth> ")

    def _names(self) -> dict[str, object]:
        return {}
