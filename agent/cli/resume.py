"""The command ``quoth resume``: continues the waiting or interrupted work of a session, or its conversation.

Knows options and how results are printed; the work is in agent/run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoth.agent.cli.common import (
    listener_for,
    messages_of,
    named_or_latest,
    open_store,
    show_reply,
    show_result,
    tell_how_to_go_on,
    tell_plan,
    tell_what_waits,
    with_agent,
)
from quoth.agent.cli.options import (
    DONE,
    Commands,
    Options,
    StreamOptions,
    argument,
    as_user,
    switch,
)
from quoth.agent.cli.taking_over import take_over
from quoth.agent.terminal.output import complain
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.reply import Reply
    from quoth.agent.terminal.progress import EventLines
    from quoth.agent.terminal.speech import Speech
    from quoth.tools.call.call import ToolResult
    from quoth.tools.storage.database import Store


SHOWN = 5  # sessions that are named in a sentence


@dataclass(init=False, repr=False, eq=False)
class ResumeOptions(StreamOptions):
    of: str | None = argument("ID", "the session (default: your only one that waits)", nargs="?")
    text: Sequence[str] = argument("TEXT", "what to say when nothing waits any more", nargs="*", default=())
    last: bool = switch(
        "--last", "your session that came to wait last; if none waits, your latest with a run"
    )


def add(commands: Commands) -> None:
    about = "Go on with what waited or was broken off, or with the conversation."
    commands.add("resume", about, ResumeOptions, resume)


def resume(options: ResumeOptions) -> int:
    """Continue a session; the exit code is the worst of its calls and runs."""
    words, of = list(options.text), options.of
    if of is not None and (options.last or options.session not in (None, of)):
        words.insert(0, of)  # the session is named otherwise
        of = None
    listener = listener_for(options)
    with open_store(options) as store:
        session, user, runs = _waiting_session(options, of or options.session, store)
        own = take_over(options, store, session, user)
        work = _Continuation(own, session, " ".join(words), runs, listener)
        return with_agent(own, work.done, on_event=listener, store=store)


@dataclass
class _Continuation:
    """Continues a session: resumes what waits in it, then gives the model ``text``, if there is any. ``runs``
    says whether the session has runs."""

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
                for text in getattr(one, "messages", ()):  # a run tells of its own
                    sent.remove(text) if text in sent else None
            for one in done:
                self._show(agent, one, sent)
        if self.text and agent.runs.unfinished():
            complain(f"Session {self.session} still waits, so this was not said: {self.text}")
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
            tell_how_to_go_on(agent, one, self.options)
        self.code = max(self.code, code)

    def _refuse(self, agent: AsyncAgent) -> None:
        """Raise UsageError with what can be done instead, if anything is known."""
        from quoth.agent.flight.log import flown_in

        if plan := flown_in(agent.transcript, self.session):
            how = self.options.typed("fly", plan, *as_user(self.options.user))
            raise UsageError(f"Session {self.session} is the flight of a plan; to go on with it: {how}")
        if self.runs:
            how = self.options.typed("resume", self.session, also=" TEXT")
            raise UsageError(
                f"Nothing waits in session {self.session}. To go on with its conversation: {how}"
            )


def _waiting_session(
    options: ResumeOptions, wanted: str | None, store: Store | None
) -> tuple[str, str, bool]:
    """The session to go on with, its user, and whether it has runs."""
    from quoth.agent.session.index import users_of
    from quoth.agent.session.latest import waiting_sessions
    from quoth.tools.history.transcript import Transcript

    found = waiting_sessions(store, options.asker) if store is not None and not wanted else []
    if not wanted and not found and not options.last:
        raise UsageError(_nothing(options, store))
    if len(found) > 1 and not options.last:
        raise UsageError(f"Several sessions wait: {', '.join(found)}. Name one, or say --last.")
    session = named_or_latest(options, store, wanted, "waits" if found else "run")
    assert store is not None, "a session was found in it"
    transcript = Transcript(lambda: store)
    users = users_of(transcript, session) if wanted else [options.asker]
    return session, _one_user(options, session, users), transcript.last(session, "stimulus") is not None


def _nothing(options: ResumeOptions, store: Store | None) -> str:
    """Why no session is taken: only a flight, a chat or others' sessions wait, or nothing."""
    from quoth.agent.session.index import unfinished_sessions
    from quoth.agent.session.latest import waiting_flight

    if store is not None and (plan := waiting_flight(store, options.asker)):
        how = options.typed("fly", plan, *as_user(options.user))
        return f"No run or call of {options.asker} waits, but a flight. To go on with it: {how}"
    others = unfinished_sessions(store) if store is not None else []
    if not others:
        return "Nothing waits in this workspace."
    named = ", ".join(f"{session} (of {user})" for session, user in others[-SHOWN:])
    return (
        f"No session of {options.asker} waits. Sessions of others and of chats wait: {named}."
        " To resume one of them, name it: quoth resume ID"
    )


def _one_user(options: Options, session: str, users: list[str]) -> str:
    """Whose calls to go on with: what was approved for one user is nothing to another."""
    named = options.user
    if named is None and len(users) == 1:
        return users[0]
    if named is None:
        raise UsageError(f"In session {session} calls of {', '.join(users)} wait; name one with --user.")
    if named not in users:
        raise UsageError(f"Session {session} is {', '.join(users)}'s, and not to be resumed as {named}.")
    return named
