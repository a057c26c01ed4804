"""The commands that ask a model: ``quoth run``, and the REPL, which is ``quoth`` without a command.

Knows their options and output; the work is in agent/run and agent/repl.
"""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import (
    listener_for,
    open_store,
    show_reply,
    tell_how_to_go_on,
    tell_plan,
    tell_what_waits,
    text_of,
    with_agent,
)
from quoth.agent.cli.options import Commands, Options, ReplOptions, StreamOptions, argument, option, switch
from quoth.agent.cli.taking_over import take_over
from quoth.agent.terminal.output import complain
from quoth.tools.errors import UsageError
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.tools.storage.database import Store


@dataclass(init=False, repr=False, eq=False)
class TaskOptions(StreamOptions):
    task: Sequence[str] = argument("TASK", "what to do; - reads it from stdin", nargs="+")
    no_stdin: bool = switch("--no-stdin", "do not show the model what a pipe or file on stdin gives")
    files: Sequence[str] = option(
        "--file", "PATH", "a text or an image to show the model; may be repeated", action="append", default=()
    )


def add(commands: Commands) -> None:
    commands.add(
        "run", "Give one task to the model and let it use tools; the reply goes to stdout.", TaskOptions, run
    )


def run(options: TaskOptions) -> int:
    task, listener = text_of(" ".join(options.task)), listener_for(options)
    shown = options.no_stdin or list(options.task) == ["-"]
    files = [*options.files, *(() if shown else _piped())]

    async def work(agent: AsyncAgent) -> int:
        listener.watch(agent)
        try:
            reply = await agent.run(task, files=files)
            code = show_reply(reply, options.json, listener)
        finally:
            listener.stop()
        tell_plan(reply, options)
        tell_how_to_go_on(agent, reply, options)
        tell_what_waits(agent, options, code)
        return code

    return with_agent(options, work, on_event=listener)


def _piped() -> list[tuple[str, bytes]]:
    """The name and content of standard input, as data beside the task; empty where it gives nothing."""
    from quoth.agent.run.attachments import TEXT_BYTES
    from quoth.agent.terminal.input import piped, use_terminal
    from quoth.tools.call.images import MAX_BYTES, media_of

    data = piped(MAX_BYTES, complain)
    if not data:
        return []
    use_terminal()
    told = f"{number_of(len(data), 'byte')} of stdin"
    if media_of(data):
        if len(data) > MAX_BYTES:
            raise UsageError(f"The image on standard input has more than {MAX_BYTES:,} bytes.")
    else:
        longer, data = len(data) > TEXT_BYTES, data[:TEXT_BYTES]
        try:
            data = getincrementaldecoder("utf-8")().decode(data, not longer).encode()
        except UnicodeDecodeError:
            data = b"\0"
        if b"\0" in data:
            raise UsageError(
                "Standard input is neither UTF-8 text nor an image; --no-stdin leaves it unread."
            )
        if longer:
            told = f"the first {len(data):,} bytes of stdin, which is longer"
    complain(f"The model is shown {told}.")
    return [("stdin", data)]


def repl(options: ReplOptions) -> int:
    from quoth.agent.repl.repl import Repl

    if sys.stdin is None:
        raise UsageError("Standard input is closed.")
    with open_store(options) as store:
        chosen, said = _pick_up(options, store)

        def work(agent: AsyncAgent) -> Coroutine[Any, Any, int]:
            entered = Repl(agent, options.json, said)
            entered.speech.thoughts = options.thoughts
            return entered.run()

        return with_agent(chosen, work, draws=True, store=store, channel="repl")


def _pick_up(options: Options, store: Store | None) -> tuple[Options, str]:
    """For a REPL in a session that is known: the options with those its conversation was begun with, and the
    sentence that says so; no sentence for a new conversation in a new session."""
    from quoth.agent.session.session import Session
    from quoth.tools.history.transcript import Transcript

    session = options.session
    if store is None or not session:
        return options, ""
    known = Session(Transcript(lambda: store), session, options.asker, Path())
    said, runs = known.said(), known.last_run()
    if not runs:
        return options, ""
    again = options.typed("resume", session, also=" TEXT")
    options = take_over(options, store, session, options.asker)
    if said:
        messages = number_of(said, "message")
        return options, (
            f"Going on with the conversation of session {session}, {messages} so far; ,new begins another."
        )
    new = f"A new conversation in session {session}"
    return options, f"{new}; to go on with that of its last run: {again}"
