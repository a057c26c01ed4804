"""quoth acp: serve an editor by the Agent Client Protocol on standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import stat
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import agent_of, open_store
from quoth.agent.cli.options import DONE, RunOptions, take_over
from quoth.agent.run.crowd import search_seldom
from quoth.agent.terminal.output import StderrLog, results_only
from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra
from quoth.tools.policy.project import find_project

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.tools.storage.database import Store


class AcpOptions(RunOptions):
    """The settings of all sessions; the client names the folder of each."""

    works_in_workspace = False


def acp(options: AcpOptions) -> int:
    gc.set_threshold(1_000_000)  # the classes of the protocol stay; see search_seldom
    try:
        from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES, run_agent
        from acp.stdio import stdio_streams

        from quoth.agent.acp.loops import OnLoop, loop_in_thread, run_on
        from quoth.agent.acp.server import AcpServer
    except ImportError:
        said = f"quoth acp needs the package agent-client-protocol: {install_extra('acp')}"
        raise UsageError(said) from None

    def at(folder: Path, session: str | None = None) -> AcpOptions:
        return replace(options, workspace=str(find_project(folder).root), session=session, no_input=True)

    def reading(folder: Path) -> AbstractContextManager[Store | None]:
        one = at(folder)
        one.project.require_rules()
        return open_store(one)

    def opening(
        folder: Path, session: str | None, consent: Any, channel: str, servers: Sequence[Path]
    ) -> AsyncAgent:
        one = at(folder, session)
        if session:
            with open_store(one) as store:
                one = take_over(one, store, session, one.asker)
        one = replace(one, mcp=[*options.mcp, *map(str, servers)])
        agent = agent_of(one, channel=channel, **({"consent": consent} if not one.yes else {}))
        agent.deliver = None  # standard output is the client's; messages are among the updates
        return agent

    async def serve() -> None:
        server = AcpServer(opening, reading)
        with loop_in_thread() as loop, contextlib.ExitStack() as stack:
            try:
                if not _is_pipe(0):
                    raise ValueError("standard input")
                reader, writer = await run_on(loop, stdio_streams(limit=DEFAULT_STDIO_BUFFER_LIMIT_BYTES))
            except (ValueError, OSError):  # a file, or closed
                raise UsageError(
                    "quoth acp is started by an editor, with pipes for input and output."
                ) from None
            stack.enter_context(results_only())  # what a tool prints must not get among the messages
            served: Any = OnLoop(server, asyncio.get_running_loop(), server.answered)
            try:
                await run_on(loop, run_agent(served, writer, reader, use_unstable_protocol=True))
            except (AttributeError, TypeError, ValueError) as error:
                said = f"The client sent a message that is not of the protocol ({type(error).__name__})."
                raise UsageError(said) from error
            finally:
                await server.aclose()

    if not options.debug:
        logging.basicConfig(handlers=[StderrLog(brief=True)])  # of the protocol's package
    search_seldom()
    asyncio.run(serve())
    return DONE


def _is_pipe(number: int) -> bool:
    """Whether an event loop can wait for this descriptor; for ``/dev/null`` it would wait for ever. Raises
    OSError if it is closed."""
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(number)
