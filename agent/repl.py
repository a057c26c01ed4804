"""The REPL: a line that starts with ``(`` is Lisp, one with ``,`` a command, anything else goes to the agent.

Knows one agent and a terminal; what a line does is done by the agent.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agent.agent import AsyncAgent
from agent.progress import Transcript
from agent.run import show_value
from tools.errors import QuothError, did_you_mean
from tools.sexp import ReadError, read_all
from tools.store import state_dir

HELP = """\
(form)         run Lisp in the sandbox; tools are functions, each call passes the door
any text       give it to the agent; the conversation goes on from line to line
,help          this text
,tools         list the tools
,tool NAME     show a tool: schema, source form, expansion
,belt          what the model is shown
,new           forget the conversation
,quit          leave (Ctrl-D does too)"""
COMMANDS = ("help", "tools", "tool", "belt", "new", "quit")


class Repl:
    """Reads lines until the end of input. Without a terminal it reads stdin plainly, without a prompt."""

    def __init__(self, agent: AsyncAgent) -> None:
        self.agent = agent
        agent.listener = Transcript()
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self._prompt: Any = None

    async def run(self) -> int:
        """The REPL itself; returns the exit code."""
        if self.interactive:
            self._write("quoth. (form) runs Lisp, text goes to the agent, ,help lists commands.")
        while True:
            try:
                text = await self._read()
            except EOFError:
                return 0
            except KeyboardInterrupt:
                continue
            if text.strip() == ",quit":
                return 0
            try:
                await self.one(text.strip())
            except QuothError as error:
                self._complain(str(error))

    async def one(self, text: str) -> None:
        """Do one line."""
        if not text:
            return
        if text.startswith(","):
            self._command(text[1:])
        elif text.startswith("("):
            result = await self.agent.eval(text, route="repl")
            if not result.ok:
                self._complain(f"{result.status}: {result.message}")
                return
            if result.message:
                self._write(result.message)
            if result.value is not None:
                self._write(show_value(result.value).rstrip("\n"))
        else:
            reply = await self.agent.say(text)
            if reply.status == "done":
                self._write(reply.text)

    def _command(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        if name == "help":
            self._write(HELP)
        elif name == "tools":
            self._write("\n".join(tool.signature() for tool in self.agent.table))
        elif name == "tool":
            from agent.show import tool_page

            self._write(tool_page(self.agent.table.get(rest.strip())))
        elif name == "belt":
            from neuro.belt import belt

            self._write(belt(self.agent.table).rstrip("\n"))
        elif name == "new":
            self.agent.forget()
            self._write("A new conversation.")
        else:
            self._complain(f"There is no command ,{name}; ,help lists them." + did_you_mean(name, COMMANDS))

    async def _read(self) -> str:
        """One entry; Lisp goes on over lines until its parentheses are closed."""
        text = await self._line("quoth> ")
        while text.lstrip().startswith("("):
            try:
                read_all(text)
                break
            except ReadError as error:
                if not error.incomplete:
                    break
            try:
                text += "\n" + await self._line("...... ")
            except EOFError:
                break
        return text

    async def _line(self, prompt: str) -> str:
        if not self.interactive:
            line = await asyncio.to_thread(sys.stdin.readline)
            if not line:
                raise EOFError
            return line.rstrip("\n")
        if self._prompt is None:
            from prompt_toolkit import PromptSession
            from prompt_toolkit.history import FileHistory

            folder = state_dir()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._prompt = PromptSession(history=FileHistory(str(folder / "history")))
        line = await self._prompt.prompt_async(prompt)
        return str(line)

    def _write(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def _complain(self, text: str) -> None:
        sys.stdout.flush()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
