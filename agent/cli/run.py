"""The commands that ask a model: ``quoth run``, ``chat``, ``resume``, and ``quoth`` alone, the REPL."""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quoth.agent.cli.common import (
    EventLines,
    listener_for,
    messages_of,
    named_or_latest,
    open_store,
    show_reply,
    show_result,
    tell_how_to_go_on,
    tell_plan,
    tell_what_waits,
    tell_worktree,
    text_of,
    with_agent,
)
from quoth.agent.cli.options import (
    DONE,
    FAILED,
    INTERRUPTED,
    Options,
    ReplOptions,
    RunOptions,
    StreamOptions,
    argument,
    as_user,
    option,
    switch,
    take_over,
)
from quoth.agent.run.crowd import search_seldom
from quoth.agent.settings import at_least_one
from quoth.agent.terminal.output import complain
from quoth.tools.errors import UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.reply import Reply
    from quoth.agent.terminal.speech import Speech
    from quoth.tools.call.call import ToolResult
    from quoth.tools.storage.database import Store


class TaskOptions(StreamOptions):
    task: Sequence[str] = argument("TASK", "the task in words; - reads it from stdin", nargs="+")
    no_stdin: bool = switch(
        "--no-stdin", "do not read stdin (default: a pipe or file on stdin is shown to the model)"
    )
    files: Sequence[str] = option(
        "--file",
        "PATH",
        "show the model a text file or an image; may be repeated",
        action="append",
        default=(),
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
        tell_worktree(agent, options)
        tell_how_to_go_on(agent, reply, options)
        tell_what_waits(agent, options, code)
        return code

    return with_agent(options, work, on_event=listener)


def _piped() -> list[tuple[str, bytes]]:
    """Standard input as a list with one name and content, as data beside the task; empty if it has no
    data."""
    from quoth.agent.run.spec import TEXT_BYTES
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
            raise UsageError("Standard input is neither UTF-8 text nor an image. To ignore it: --no-stdin")
        if longer:
            told = f"the first {len(data):,} bytes of stdin, which is longer"
    complain(f"The model sees {told}.")
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
    """For a REPL in an existing session: the options completed with those of its conversation, and a sentence
    about it; an empty sentence for a new conversation in a new session."""
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
            f"Continuing the conversation of session {session}, {messages} so far. For a new one, type: ,new"
        )
    new = f"A new conversation in session {session}"
    return options, f"{new}. To continue that of its last run: {again}"


# The tools of every agent that chats keep; the knowledge base adds its own.
SHIPPED = ("block", "recall", "ask-person")


class ChatOptions(RunOptions):
    gateway: Literal["stdio"] | None = option(
        "--gateway",
        "KIND",
        "stdio: serve many chats with JSON lines on stdin and stdout",
        choices=("stdio",),
        rivals="gateway",
    )
    listen: str | None = option(
        "--listen", "unix:PATH", "serve many chats with JSON lines on a Unix socket", rivals="gateway"
    )
    approvers: str | None = option(
        "--approvers", "NAMES", "users who may approve and deny requests, such as ann,ben (default: none)"
    )
    waiting: int | None = option(
        "--waiting", "N", "maximum number of waiting messages in one chat (default: 20)", type=at_least_one
    )


def chat(options: ChatOptions) -> int:
    options.dialect = options.dialect or "tags"
    options.knowledge = True
    options.without = [*_left_out(), *options.without]
    if options.gateway or options.listen:
        return _serve(options)
    for given, flag in ((options.approvers, "--approvers"), (options.waiting, "--waiting")):
        if given is not None:
            raise UsageError(f"{flag} needs --gateway or --listen.")
    return _talk(options)


def _left_out() -> Sequence[str]:
    """The tools that ship with quoth but are not for chats."""
    from quoth.tools.loading import load_tools

    return [tool.name for tool in load_tools(()) if tool.name not in SHIPPED]


def _serve(options: ChatOptions) -> int:
    from quoth.agent.chat.gateway import BROKEN_OFF, ENDED, Gateway

    if options.session:
        raise UsageError("A gateway has a session for each chat; leave out --session.")
    approvers = _names(options.approvers)
    path = _socket_path(options.listen)
    options.no_input = True  # standard input carries messages; only the approvers decide

    async def work(agent: AsyncAgent) -> int:
        agent.host.dialect()  # report an unusable model now
        search_seldom()
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
        chat = agent.for_chat(agent.session.removeprefix("chat-"))  # as the list of sessions shows it
        return await ChatRepl(chat, options.json).run()

    return with_agent(options, work, draws=True, channel="chat")


def _names(given: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (given or "").split(","))
    if given is not None and not all(names):
        raise UsageError("--approvers takes names separated by commas, such as ann,ben.")
    return names if given is not None else ()


def _socket_path(given: str | None) -> str:
    kind, _, path = (given or "").partition(":")
    if given is not None and (kind != "unix" or not path):
        raise UsageError(f"--listen takes unix:PATH, such as unix:chat.sock, not {given or 'nothing'}.")
    return path


SHOWN = 5  # maximum number of sessions named in a message


class ResumeOptions(StreamOptions):
    of: str | None = argument("ID", "id of the session (default: your only session that waits)", nargs="?")
    text: Sequence[str] = argument(
        "TEXT", "your next message, sent when no call waits", nargs="*", default=()
    )
    last: bool = switch("--last", "the session that began to wait last; if none waits, your latest run")


def resume(options: ResumeOptions) -> int:
    """Continue a session; the exit code is the worst of its calls and runs."""
    words, of = list(options.text), options.of
    if of is not None and (options.last or options.session not in (None, of)):
        words.insert(0, of)  # another option gives the session
        of = None
    listener = listener_for(options)
    with open_store(options) as store:
        session, user, runs = _waiting_session(options, of or options.session, store)
        own = take_over(options, store, session, user)
        work = _Continuation(own, session, " ".join(words), runs, listener)
        return with_agent(own, work.done, on_event=listener, store=store)


@dataclass
class _Continuation:
    """Continues a session: resumes its waiting runs and calls, then gives ``text`` to the model unless it is
    empty. ``runs`` says whether the session has runs."""

    options: ResumeOptions
    session: str
    text: str
    runs: bool
    listener: Speech | EventLines
    code: int = DONE

    async def done(self, agent: AsyncAgent) -> int:
        self.listener.watch(agent)
        try:
            return await self._done(agent)
        finally:
            self.listener.stop()

    async def _done(self, agent: AsyncAgent) -> int:
        for change in agent.host.changes():
            complain(change)
        unfinished = agent.runs.unfinished()
        if not self.text and not agent.runs.resumable():
            self._refuse(agent)
        if unfinished or not self.text:
            sent = messages_of(agent, self.options.json)
            done = await agent.resume()
            for one in done:
                for text in getattr(one, "messages", ()):  # a run reports its own messages
                    sent.remove(text) if text in sent else None
            for one in done:
                self._show(agent, one, sent)
        if self.text and agent.runs.unfinished():
            complain(f"Session {self.session} still waits, so this was not sent: {self.text}")
        elif self.text:
            self._show(agent, await agent.follow(self.text), [])
        tell_what_waits(agent, self.options, self.code)
        return self.code

    def _show(self, agent: AsyncAgent, one: Reply | ToolResult, sent: list[str]) -> None:
        from quoth.tools.call.call import ToolResult

        as_json = self.options.json
        if isinstance(one, ToolResult):
            code = show_result(one, as_json, sent, self.listener)
            sent.clear()
        else:
            code = show_reply(one, as_json, self.listener)
            tell_plan(one, self.options)
            tell_worktree(agent, self.options)
            tell_how_to_go_on(agent, one, self.options)
        self.code = max(self.code, code)

    def _refuse(self, agent: AsyncAgent) -> None:
        """Raise UsageError with the command to use instead, if there is one."""
        from quoth.agent.flight.plan_file import flown_in

        if plan := flown_in(agent.transcript, self.session):
            how = self.options.typed("fly", plan, *as_user(self.options.user))
            raise UsageError(f"Session {self.session} is the flight of a plan. To continue it: {how}")
        if self.runs:
            how = self.options.typed("resume", self.session, also=" TEXT")
            raise UsageError(f"Nothing waits in session {self.session}. To continue its conversation: {how}")


def _waiting_session(
    options: ResumeOptions, wanted: str | None, store: Store | None
) -> tuple[str, str, bool]:
    """The session to continue, its user, and whether it has runs."""
    from quoth.agent.session.index import users_of, waiting_sessions
    from quoth.tools.history.transcript import Transcript

    found = waiting_sessions(store, options.asker) if store is not None and not wanted else []
    if not wanted and not found and not options.last:
        raise UsageError(_nothing(options, store))
    if len(found) > 1 and not options.last:
        raise UsageError(
            f"Several sessions are waiting: {', '.join(found)}. Name one: quoth resume ID, or add"
            " --last for the latest."
        )
    session = named_or_latest(options, store, wanted, "waits" if found else "run")
    assert store is not None, "a session was found in it"
    transcript = Transcript(lambda: store)
    users = users_of(transcript, session) if wanted else [options.asker]
    return session, _one_user(options, session, users), transcript.last(session, "stimulus") is not None


def _nothing(options: ResumeOptions, store: Store | None) -> str:
    """Why no session was chosen: only a flight, a chat or sessions of others wait, or nothing does."""
    from quoth.agent.session.index import unfinished_sessions, waiting_flight

    if store is not None and (plan := waiting_flight(store, options.asker)):
        how = options.typed("fly", plan, *as_user(options.user))
        return f"No run or call of {options.asker} waits, but a flight does. To continue it: {how}"
    others = unfinished_sessions(store) if store is not None else []
    if not others:
        return "Nothing waits in this workspace."
    named = ", ".join(f"{session} (of {user})" for session, user in others[-SHOWN:])
    return (
        f"No session of {options.asker} waits. Waiting sessions of others and of chats: {named}."
        " To resume one of them: quoth resume ID"
    )


def _one_user(options: Options, session: str, users: list[str]) -> str:
    """The user whose calls to continue; an approval applies only to calls of its own user. Raises
    UsageError."""
    named = options.user
    if named is None and len(users) == 1:
        return users[0]
    if named is None:
        raise UsageError(f"In session {session}, calls of {', '.join(users)} wait. Choose one: --user NAME")
    if named not in users:
        raise UsageError(f"Session {session} belongs to {', '.join(users)}; {named} cannot resume it.")
    return named
