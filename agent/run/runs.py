"""The runs of an agent: single tasks, messages of a conversation, and the resuming of unfinished runs.

Knows a host and its session; it must not know flights, replays, commands or the public face.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any, TypedDict

from quoth.agent.reply import CallRecord, Reply
from quoth.agent.run.calls import Calls
from quoth.agent.run.driver import Driver
from quoth.agent.run.host import SessionHost
from quoth.agent.run.observation import waited
from quoth.agent.run.spec import OutputType, RunSpec, TaskFile, attached, facts_of
from quoth.agent.run.subagents import purse_of
from quoth.agent.session.past import Past, has_failed
from quoth.agent.session.session import Unfinished
from quoth.agent.session.undo import Undo
from quoth.neuro.backends.base import takes_images
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.call import ToolResult, new_call
from quoth.tools.call.canonical import checked
from quoth.tools.call.services import NO_KNOWLEDGE
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.history.event import Event, read_form
from quoth.tools.history.versions import StoreVersions
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import ToolTable, cognitive_tools
from quoth.tools.storage.log_sync import own_turn


class RunSettings(TypedDict, total=False):
    """The keywords of ``run`` beside ``output``."""

    files: Iterable[TaskFile]
    instructions: str | None
    temperature: float | None
    timeout: float | None
    api_key: str | None
    reply_tokens: int | None


class Runs:
    """The runs of one host's session, and the conversation that ``say`` continues."""

    def __init__(self, host: SessionHost) -> None:
        self.host = host
        self._driver = Driver(host)
        self._conversation: Messages | None = None
        self._talk: str | None = None  # the run that ``say`` continues; empty: none; None: see the session

    async def run(
        self,
        task: str,
        *,
        output: Any = None,
        files: Iterable[TaskFile] = (),
        instructions: str | None = None,
        temperature: float | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  of the server
        api_key: str | None = None,
        reply_tokens: int | None = None,
    ) -> Reply:
        """Run one task in a conversation of its own; several at once, each but the first in a session of its
        own, which its Reply names.

        With ``output``, a pydantic model or another type with a JSON Schema, the answer is JSON of this type,
        and ``output`` of the Reply is its value: ``output=Person``. A type that is not a class is written
        ``output=Output[int | None]``. The model is shown ``files``, texts and
        images, beside the task: ``files=["notes.txt", "cat.png"]``.

        ``instructions``, ``temperature``, ``timeout``, ``api_key`` and ``reply_tokens``, the longest reply,
        replace those of the agent for this run (ModelOptions, RunLimits)."""
        self.host.require_open()
        await own_turn()
        wanted = None if output is None else self._output(output)
        overrides = {
            "instructions": instructions,
            "temperature": temperature,
            "timeout": timeout,
            "api_key": api_key,
            "reply_tokens": reply_tokens,
        }
        with self.host.free(overrides) as host, host.record.used("run"):
            runs = self if host is self.host else Runs(host)
            await host.renew()
            reply, _ = await runs._first(task, runs._driver.begin_talk(), output=wanted, files=files)
        return reply

    async def say(self, text: str, *, speaker: str | None = None, turn: str | None = None) -> Reply[None]:
        """Run the next message of the conversation that ``say`` continues, in a named session also across
        processes; for a REPL or a chat.

        ``speaker`` is who says it, the user of its calls, where that is not the user of the session. ``turn``
        names the message: one with a name that the session knows is not run again. If its run waits or was
        broken off, it goes on, with the calls that were approved meanwhile; if it has ended, its Reply is as
        it was."""
        with self.host.alone():
            self.host.require_open()
            await self.host.renew()
            if turn:
                from quoth.tools.history.transfer import is_word  # here: few hosts name their messages

                if not is_word(turn):
                    raise UsageError(f"The name of a message is one word, not {turn!r}.")
            if turn and (name := self.host.record.run_of(turn)):
                with self.host.record.driven():
                    past = self.host.record.past(name)
                    if past.end is None or past.end.status in ("pending", "interrupted"):
                        self._require_tools(
                            [one for one in self.host.record.unfinished() if one.name == name]
                        )
                        self.host.record.open(self.host.given)
                        return await self._again(name)
                    return await self._as_it_was(name, past)
            if self._talk is None:
                self._talk = self.host.record.last_talk() if self.host.named else ""
            elif self.host.chat and self._talk and (last := self.host.record.last_talk()) != self._talk:
                self.forget()
                self._talk = last  # another process has gone on with the chat
            elif self._talk and self.host.record.stimulus(self._talk) is None:
                self.forget()
                self.host.events.note(
                    f"Session {self.host.session} was removed. A new conversation begins in it."
                )
            return await self._follow(text, speaker or "", turn or "")

    async def follow(self, text: str) -> Reply[None]:
        """Run the next message of the conversation of the session's last run, however that was begun."""
        with self.host.alone():
            self.host.require_open()
            await self.host.renew()
            if (last := self.host.record.last_run()) != self._talk:
                self.forget()
                self._talk = last
            told = self.host.record.stimulus(last)
            if told is not None and not self.host.chat and (chat := told.data.get("chat")):
                async with self._in_chat(chat) as runs:
                    return await runs.follow(text)
            return await self._follow(text)

    async def _follow(self, text: str, speaker: str = "", turn: str = "") -> Reply[None]:
        if self._conversation is None:
            self._conversation = (
                await self._driver.brought_back(self._talk) if self._talk else self._driver.begin_talk()
            )
        reply, self._talk = await self._first(
            text, self._conversation, self._talk or "", turn or secrets.token_hex(4), speaker, turn
        )
        return reply

    async def resume(self) -> list[Reply | ToolResult]:
        """Resume all unfinished work of this session in order: a Reply for each run, a ToolResult for each
        call. Finished calls are not repeated; calls without a decision keep waiting. Raises UsageError when
        nothing can be resumed, or another process drives the session."""
        with self.host.alone():
            self.host.require_open()
            await self.host.renew()
            done: list[Reply | ToolResult] = []
            with self.host.record.driven():
                unfinished = self.host.record.to_resume()
                if not unfinished:
                    raise UsageError(f"Nothing waits in session {self.host.session}.")
                self._require_tools(unfinished)
                self.host.record.open(self.host.given)
                for one in unfinished:
                    if one.kind == "call":
                        form = read_form(one.event.data["form"])
                        key = f"{self.host.session}/{one.name}"
                        done.append(await Calls(self.host).again(form, one.event.data["route"], key))
                    else:
                        done.append(await self._again(one.name))
            return done

    def unfinished(self) -> list[Unfinished]:
        """The runs and calls of this session that wait or were broken off."""
        return [one for one in self.host.record.unfinished() if one.waits]

    def resumable(self) -> bool:
        """Whether ``resume`` has anything to do."""
        return bool(self.host.record.to_resume())

    def may_ask_again(self) -> bool:
        """Whether the last run ended at a request that failed, which ``resume`` sends again."""
        reply = self.host.transcript.last(self.host.session, "reply", run=self.host.record.last_run())
        return reply is not None and has_failed(reply)

    @property
    def waits(self) -> bool:
        """Whether a run or call of this session waits for a decision or was interrupted."""
        return self.host.parts.store.opened is not None and any(
            one.status in ("pending", "interrupted") for one in self.host.record.unfinished()
        )

    @property
    def broken_off(self) -> bool:
        """Whether a run or call of this session was broken off and is on record, so that it can be
        resumed."""
        try:
            return self.host.parts.store.opened is not None and any(
                not one.status for one in self.host.record.unfinished()
            )
        except StoreError:
            return False

    def _require_tools(self, unfinished: list[Unfinished]) -> None:
        """Raise UsageError when the tool of a waiting call is missing; the call itself is not lost."""
        for one in unfinished:
            for form in self.host.record.waiting_calls(one):
                if form.tool not in self.host.table:
                    raise UsageError(
                        f"A call of {form.tool} waits in session {self.host.session}, and there is no such"
                        " tool here; give its file: --tools FILE"
                    )

    def forget(self) -> None:
        """Let the next ``say`` begin a new conversation."""
        if self._conversation is not None:
            self.host.record.let_go(self._conversation)
        self._conversation, self._talk = None, ""

    def use_tools(self, table: ToolTable) -> None:
        """Have these tools from here on, or those of the table as it has become."""
        self.host.use_tools(table)
        self._go_on_anew()

    def use_model(self, spec: str) -> None:
        """Have another model from now on. Raises UsageError for a spec of none, and keeps the old."""
        self.host.use_model(spec)
        self._go_on_anew()

    def _go_on_anew(self) -> None:
        """Let the next ``say`` bring the conversation back from the transcript, with what is new in it."""
        if self._conversation is not None:
            talk = self._talk
            self.forget()
            self._talk = talk

    @property
    def said(self) -> int:
        """The number of messages in the conversation that ``say`` continues."""
        return (
            self.host.record.said()
            if self._talk is None and self.host.named
            else self.host.record.said_in(self._talk)
        )

    def last_message(self) -> Event | None:
        """The event of the last message of the conversation, which ``take_back`` takes back."""
        last = (self.host.record.last_talk() if self.host.named else "") if self._talk is None else self._talk
        return self.host.record.stimulus(last)

    def take_back(self) -> str:
        """Let the next ``say`` go on from before the last message; its text. What its calls have done stays.
        Raises UsageError where there is none."""
        told = self.last_message()
        if told is None:
            raise UsageError("The conversation has no message that could be taken back.")
        self.forget()
        self._talk = str(told.data.get("after", ""))
        return str(told.data["text"])

    def _output(self, wanted: Any) -> OutputType:
        """The output of a run. Raises UsageError."""
        if self._driver.stops():
            raise UsageError('output goes with after_tags="continue": it is what a run ends with.')
        return OutputType.of(wanted)

    async def _first(
        self,
        task: str,
        messages: Messages,
        after: str = "",
        turn: str = "",
        speaker: str = "",
        key: str = "",
        output: OutputType | None = None,
        files: Iterable[TaskFile] = (),
    ) -> tuple[Reply, str]:
        """Begin and drive a new run in a conversation, after the run ``after`` if one is named. ``turn``
        distinguishes its task from an earlier one in the same words; by ``key`` the run is found again.
        Returns the name of the run too."""
        if not task.strip():
            raise UsageError("The task is empty.")
        # Words from a command line may hold bytes that are no text.
        task = task.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        host = self.host
        backend = host.models.backend()
        purse_of(host).require_price(backend)
        shown = attached(files, host.pages, host.workspace)
        if (images := [one["name"] for one in shown if "media" in one]) and not takes_images(backend):
            raise UsageError(f"{backend.name} reads text only; leave {images[0]} out, or name another model.")
        must_act = host.models.must_act(backend) if not host.chat else bool(host.models.options.must_act)
        if shown and host.models.options.must_act is None:  # there is something to answer from
            must_act = False
        options, dialect = host.models.request_options, host.dialect()
        begun = host.record.stimulus(after)
        news = [self._told_of_plan(begun), self._told_anew(begun), self._news(begun)]
        spec = RunSpec(
            task,
            user=host.user,
            speaker="" if speaker == host.user else speaker,
            turn=turn,
            chat=host.chat,
            hidden=tuple(self._driver.offered_in(dialect, {}, host.table).hidden),
            instructions=host.models.instructions,
            surroundings="" if after else host.record.talk_of(messages).surroundings,
            temperature=None if options is None else options.temperature,
            plan=host.plan,
            news="\n\n".join(filter(None, news)),
            data=await self._known_of(task),
            files=tuple(shown),
            output=None if output is None else output.schema,
            model=facts_of(backend),
            dialect=replace(dialect, stops=self._driver.stops()),
            search=host.models.search,
            must_act=must_act,
            limits=vars(host.limits),
        )
        with host.record.driven():
            host.record.open(host.given)
            name = host.record.begin(spec.written(), after, key)
            past = Past(stimulus=host.record.stimulus(name))
            try:
                reply, ended_with = await self._driver.go(name, past, messages, output=output)
            except BaseException:
                if self._conversation is messages:  # broken off: it is brought back when it goes on
                    self._conversation, self._talk = None, name
                raise
        if self._conversation is messages:
            self._conversation = ended_with  # it may have been shortened
        else:
            self.host.record.let_go(ended_with)
        return reply, name

    async def _again(self, name: str) -> Reply:
        """Resume a run of this session: the transcript answers what has happened in it."""
        past, place = self.host.record.latest_past(name)
        if (chat := _chat_of(past)) and not self.host.chat:
            async with self._in_chat(chat) as runs:
                return await runs._again(name)
        here = bool(self._talk == name and self._conversation is not None)
        messages = self._driver.opened_at(name)
        # A chat that has gone on meanwhile is not taken back: the next message tells what came of the calls.
        over = bool(self.host.chat) and self.host.record.last_talk() != name
        reply, messages = await self._driver.go(name, past, messages, stops=over, place=place)
        if here:
            self.forget()
            self._conversation, self._talk = messages, name
        else:
            self.host.record.let_go(messages)
        return reply

    def for_chat(self, chat: str | int, session: str = "") -> Runs:
        """The runs of one chat, which this agent must outlive: in the session that is named after the chat,
        or in ``session``; with a conversation and memory of its own."""
        return Runs(self.host.for_chat(chat, session))

    @contextlib.asynccontextmanager
    async def _in_chat(self, chat: str) -> AsyncIterator[Runs]:
        """The runs of the chat that this session is of; the chat's memory is closed at the end."""
        made = self.for_chat(chat, self.host.session)
        made.host.events.on_event = self.host.events.on_event
        try:
            yield made
        finally:
            await made.host.own.memory.aclose()

    async def _as_it_was(self, name: str, past: Past) -> Reply:
        """The Reply of a run that has ended."""
        reply, messages = await self._driver.go(
            name, past, self._driver.opened_at(name), live=False, tells=True
        )
        self.host.record.let_go(messages)
        return reply

    def _told_anew(self, begun: Event | None) -> str:
        """What is told of the instructions where they are others than in the run with this stimulus, with
        which the conversation goes on."""
        now = self.host.models.instructions
        if begun is None or begun.data.get("instructions", "") == now:
            return ""
        return f"From here on you have these instructions:\n{now}" if now else "The instructions are lifted."

    def _told_of_plan(self, begun: Event | None) -> str:
        """What is told of plan mode where it begins or ends with the next run."""
        was = begun is not None and bool(begun.data.get("plan"))
        if was == self.host.plan:
            return ""
        from quoth.agent.run.plan_mode import ON, OVER

        return ON if self.host.plan else OVER

    def _news(self, begun: Event | None) -> str:
        """What has become, since the last run began, of calls that waited when the chat went on."""
        if begun is None or not self.host.chat:
            return ""
        told = []
        for event in self.host.transcript.events(self.host.session, kind="receipt", after=begun.seq):
            if event.run in ("", begun.run) or "/" in event.run or event.status == "pending":
                continue
            call = self.host.record.past(event.run).calls[event.key]
            if call.own and call.begun is not None:
                record = CallRecord(read_form(call.begun.data["form"]), call.result())
                told.append(waited(record, self.host.limits.result_chars))
        return "\n\n".join(told)

    async def _known_of(self, text: str) -> str:
        """What the knowledge base holds on a message; a person is told what is wrong with it."""
        base = self.host.services.knowledge_base
        if base is NO_KNOWLEDGE:
            return ""
        from quoth.tools.knowledge.shown import knowledge_for  # here: few agents have a base

        return await knowledge_for(base, text, say=self.host.events.note)


def _chat_of(past: Past) -> str:
    """The chat that a run is of; empty for none."""
    return "" if past.stimulus is None else str(past.stimulus.data.get("chat", ""))


# The way back of a session, with the workspace and the rules of its host.
#
# Must not know how it is asked for or shown.


WRITER = "write-file"  # the tool whose rules hold for what is put back


def undo_of(host: SessionHost, session: str = "") -> Undo:
    """The way back of the host's session, or of another one in its store."""

    def forbids(path: str, text: str) -> str:
        """Why a call that wrote this would be denied; asking is left to whoever undoes."""
        table = host.table if WRITER in host.table else cognitive_tools
        tool = table.get(WRITER)
        form, args = checked(tool, CallForm(WRITER, {"path": path, "content": text}), host.workspace)
        call = new_call(form, user=host.user, session=host.session, route="call")
        verdict = host.policy.judge(tool, call, args, host.context())
        return verdict.reason if verdict.kind == "deny" else ""

    def ships(name: str) -> bool:
        return name in host.table and host.table.get(name).ships

    def record(said: str) -> None:
        host.door.record("undo", said, route="call", status="ok", session=name, user=host.user)

    name = session or host.session
    versions = StoreVersions(lambda: host.store, host.workspace.root)
    return Undo(versions, host.workspace, host.transcript, name, host.user, forbids, ships, record)
