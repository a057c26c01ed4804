"""``quoth chat``: a chat with the model at the terminal, or many chats through a gateway.

Knows its options; the work is in agent/chat and agent/repl.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from quoth.agent.cli.common import begin_to_serve, with_agent
from quoth.agent.cli.options import DONE, FAILED, INTERRUPTED, Commands, RunOptions, option
from quoth.agent.settings import at_least_one
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent

# Of the tools that every agent has; those of the knowledge base come with it.
SHIPPED = ("block", "recall", "ask-person")


@dataclass(init=False, repr=False, eq=False)
class ChatOptions(RunOptions):
    gateway: Literal["stdio"] | None = option(
        "--gateway",
        "KIND",
        "stdio: serve many chats, a JSON object a line",
        choices=("stdio",),
        rivals="gateway",
    )
    listen: str | None = option(
        "--listen", "unix:PATH", "serve many chats at a socket, with the same lines", rivals="gateway"
    )
    approvers: str | None = option(
        "--approvers", "NAMES", "the users who may decide requests, such as ann,ben (default: nobody)"
    )
    waiting: int | None = option(
        "--waiting", "N", "at most so many messages of a chat wait (default: 20)", type=at_least_one
    )


def add(commands: Commands) -> None:
    commands.add("chat", "Chat with the model, or serve many chats through a gateway.", ChatOptions, chat)


def chat(options: ChatOptions) -> int:
    options.dialect = options.dialect or "tags"
    options.knowledge = True
    options.without = [*_left_out(), *options.without]
    if options.gateway or options.listen:
        return _serve(options)
    for given, flag in ((options.approvers, "--approvers"), (options.waiting, "--waiting")):
        if given is not None:
            raise UsageError(f"{flag} goes with --gateway or --listen.")
    return _talk(options)


def _left_out() -> Sequence[str]:
    """The tools that ship and are not for chats."""
    from quoth.tools.loading import load_tools

    return [tool.name for tool in load_tools(()) if tool.name not in SHIPPED]


def _serve(options: ChatOptions) -> int:
    from quoth.agent.chat.gateway import BROKEN_OFF, ENDED, Gateway

    if options.session:
        raise UsageError("A gateway has a session for each chat; leave --session out.")
    approvers = _names(options.approvers)
    path = _socket_path(options.listen)
    options.no_input = True  # standard input is for lines; who may decide is among the approvers

    async def work(agent: AsyncAgent) -> int:
        agent.host.dialect()  # a model that cannot be used is said now
        begin_to_serve()
        waiting = {} if options.waiting is None else {"waiting": options.waiting}
        gateway = Gateway(agent.runs, lambda: agent.store, approvers=approvers, **waiting)
        how = await (gateway.listen(path) if path else gateway.stdio())
        return {ENDED: DONE, BROKEN_OFF: INTERRUPTED}.get(how, FAILED)

    return with_agent(options, work, channel="chat")


def _talk(options: ChatOptions) -> int:
    from quoth.agent.repl.repl import ChatRepl

    if sys.stdin is None:
        raise UsageError("Standard input is closed.")

    async def work(agent: AsyncAgent) -> int:
        agent.host.dialect()
        chat = agent.for_chat(agent.session.removeprefix("chat-"))  # as sessions are listed
        return await ChatRepl(chat, options.json).run()

    return with_agent(options, work, draws=True, channel="chat")


def _names(given: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (given or "").split(","))
    if given is not None and not all(names):
        raise UsageError("--approvers takes names with commas between them, such as ann,ben.")
    return names if given is not None else ()


def _socket_path(given: str | None) -> str:
    kind, _, path = (given or "").partition(":")
    if given is not None and (kind != "unix" or not path):
        raise UsageError(f"--listen takes unix:PATH, such as unix:chat.sock, not {given or 'nothing'}.")
    return path
