"""The runs of an agent: single tasks, messages of a conversation, and the resuming of unfinished runs."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

from quoth.agent.reply import CallRecord, Reply
from quoth.agent.run.calls import Calls
from quoth.agent.run.host import SessionHost
from quoth.agent.run.subagents import purse_of
from quoth.agent.session.past import Past, has_failed
from quoth.agent.session.session import Unfinished, had_worktree
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

if TYPE_CHECKING:
    from quoth.agent.run.driver import Driver
    from quoth.agent.run.spec import OutputType, TaskFile
    from quoth.agent.session.undo import Undo
    from quoth.neuro.prompt.dialects import Dialect


class RunSettings(TypedDict, total=False):
    """The keywords of ``run`` besides ``output``."""

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
        self._conversation: Messages | None = None
        self._talk: str | None = None  # the run that ``say`` continues; empty: none; None: see the session

    @cached_property
    def _driver(self) -> Driver:
        from quoth.agent.run.driver import Driver  # here: a call of a person has no run

        return Driver(self.host)

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
        """Run one task in a new conversation. Several tasks may run at once: each except the first gets its
        own session, which its Reply names.

        With ``output``, a pydantic model or another type with a JSON Schema, the answer is JSON of this type,
        and ``output`` of the Reply is its value: ``output=Person``. Write a type that is not a class as
        ``output=Output[int | None]``. ``files`` are texts and images that the model sees with the task:
        ``files=["notes.txt", "cat.png"]``.

        ``instructions``, ``temperature``, ``timeout``, ``api_key`` and ``reply_tokens`` (maximum tokens of a
        reply) replace those of the agent for this run (ModelOptions, RunLimits)."""
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
            await host.models.open()
            reply, _ = await runs._first(task, runs._driver.begin_talk(task=task), output=wanted, files=files)
        return reply

    async def say(
        self,
        text: str,
        *,
        speaker: str | None = None,
        turn: str | None = None,
        files: Iterable[TaskFile] = (),
        output: OutputType | None = None,
    ) -> Reply:
        """Run the next message of a conversation, for a REPL or a chat. In a named session the conversation
        continues across processes.

        ``speaker`` is the user of the message and its calls; by default the user of the session. ``turn``
        names the message: a message with a known name is not run again. If its run waits or was broken off,
        it is resumed, with the calls that were approved since; if it has ended, the same Reply is
        returned. ``files`` are shown beside it, as in ``run``, and ``output`` is the type of the answer."""
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
                self._talk = last  # another process has continued the chat
            elif self._talk and self.host.record.stimulus(self._talk) is None:
                self.forget()
                self.host.events.note(
                    f"Session {self.host.session} was removed. A new conversation begins in it."
                )
            return await self._follow(text, speaker or "", turn or "", files, output)

    async def follow(self, text: str, *, files: Iterable[TaskFile] = ()) -> Reply[None]:
        """Run the next message of the conversation of the session's last run, by any command. ``files`` are
        shown beside it, as in ``run``."""
        with self.host.alone():
            self.host.require_open()
            await self.host.renew()
            if (last := self.host.record.last_run()) != self._talk:
                self.forget()
                self._talk = last
            told = self.host.record.stimulus(last)
            if told is not None and not self.host.chat and (chat := told.data.get("chat")):
                async with self._in_chat(chat) as runs:
                    return await runs.follow(text, files=files)
            return await self._follow(text, files=files)

    async def _follow(
        self,
        text: str,
        speaker: str = "",
        turn: str = "",
        files: Iterable[TaskFile] = (),
        output: OutputType | None = None,
    ) -> Reply:
        await self.host.models.open()
        if self._conversation is None:
            self._conversation = (
                await self._driver.brought_back(self._talk)
                if self._talk
                else self._driver.begin_talk(task=text)
            )
        reply, self._talk = await self._first(
            text,
            self._conversation,
            self._talk or "",
            turn or secrets.token_hex(4),
            speaker,
            turn,
            output=output,
            files=files,
        )
        return reply

    def name_of_message(self, call: str) -> str:
        """The name of the message (``turn`` of ``say``) whose run contains a call; empty for none."""
        for event in self.host.transcript.events(self.host.session, kind="call"):
            if event.data.get("id") == call:
                begun = self.host.record.stimulus(event.run.partition("/")[0])
                return "" if begun is None else str(begun.key)
        return ""

    async def resume(self) -> list[Reply | ToolResult]:
        """Resume all unfinished work of this session in order. Returns a Reply for each run and a ToolResult
        for each call. Finished calls are not repeated; calls without a decision keep waiting. Raises
        UsageError if nothing can be resumed, or another process drives the session."""
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
        """Whether a recorded run or call of this session was broken off and can be resumed."""
        try:
            return self.host.parts.store.opened is not None and any(
                not one.status for one in self.host.record.unfinished()
            )
        except StoreError:
            return False

    def _require_tools(self, unfinished: list[Unfinished]) -> None:
        """Raise UsageError if the tool of a waiting call is missing; the call is not lost."""
        for one in unfinished:
            for form in self.host.record.waiting_calls(one):
                if form.tool in self.host.table:
                    continue
                if form.tool in self.host.parts.door.table and self.host.parts.remote is None:
                    raise UsageError(
                        f"A call of {form.tool} waits in session {self.host.session}, which has fewer tools"
                        " now. Leave the mode that only reads, then resume."
                    )
                raise UsageError(
                    f"A call of {form.tool} waits in session {self.host.session}, and that tool is not"
                    " loaded; give its file: --tools FILE"
                )

    def forget(self) -> None:
        """Let the next ``say`` begin a new conversation."""
        if self._conversation is not None:
            self.host.record.let_go(self._conversation)
        self._conversation, self._talk = None, ""

    def use_tools(self, table: ToolTable) -> None:
        """Use these tools from now on; without an argument, the current ones of the table."""
        self.host.use_tools(table)
        self._go_on_anew()

    def use_own_tools(self, table: ToolTable) -> None:
        """Use these tools from now on in this session alone."""
        self.host.use_own_tools(table)
        self._go_on_anew()

    async def use_model(self, spec: str) -> None:
        """Use another model from now on. Raises UsageError for an unknown spec, and then keeps the old
        one."""
        await self.host.use_model(spec)
        self._go_on_anew()

    def use_dialect(self, dialect: str | None) -> None:
        """Let the model call tools in another notation from now on; None is the usual one. Raises
        UsageError."""
        self.host.use_dialect(dialect)
        self._go_on_anew()

    def _go_on_anew(self) -> None:
        """Let the next ``say`` read the conversation again from the transcript, with its new events."""
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
        """The event of the last message of the conversation, which ``take_back`` removes."""
        last = (self.host.record.last_talk() if self.host.named else "") if self._talk is None else self._talk
        return self.host.record.stimulus(last)

    def take_back(self) -> str:
        """Let the next ``say`` continue from before the last message. Returns the text of that message. The
        effects of its calls stay. Raises UsageError if there is no message."""
        told = self.last_message()
        if told is None:
            raise UsageError("The conversation has no message to take back.")
        self.forget()
        self._talk = str(told.data.get("after", ""))
        return str(told.data["text"])

    def _output(self, wanted: Any) -> OutputType:
        """The output of a run. Raises UsageError."""
        if self._driver.stops():
            raise UsageError(
                'output needs after_tags="continue", because the last reply of the run must be the answer.'
            )
        from quoth.agent.run.spec import OutputType

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
        """Begin and drive a new run in a conversation, after the run ``after`` if it is given. ``turn``
        distinguishes its task from an equal earlier one; ``key`` finds the run again. Returns the Reply and
        the name of the run."""
        from quoth.agent.run.spec import RunSpec, attached, facts_of, require_images  # here: as _driver

        if not task.strip():
            raise UsageError("The task is empty.")
        # Words from a command line may contain bytes that are not UTF-8.
        task = task.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        host = self.host
        backend = host.models.backend()
        purse_of(host).require_price(backend)
        shown = attached(files, host.pages, host.workspace)
        require_images(backend, [one for one in shown if "media" in one])
        must_act = host.models.must_act(backend) if not host.chat else bool(host.models.options.must_act)
        if shown and host.models.options.must_act is None:  # the files may contain the answer
            must_act = False
        options, dialect = host.models.request_options, host.dialect()
        begun = host.record.stimulus(after)
        table = self._driver.offered_in(dialect, {}, host.table)
        few, fitting = self._few(task, dialect, table, begun, messages)
        news = [self._told_of_plan(begun), self._told_anew(begun), fitting, self._news(begun)]
        spec = RunSpec(
            task,
            user=host.user,
            speaker="" if speaker == host.user else speaker,
            turn=turn,
            chat=host.chat,
            hidden=tuple(table.hidden),
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
            few=few,
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
                if self._conversation is messages:  # broken off: the next run reads it from the transcript
                    self._conversation, self._talk = None, name
                raise
        if self._conversation is messages:
            self._conversation = ended_with  # it may have been shortened
        else:
            self.host.record.let_go(ended_with)
        return reply, name

    async def _again(self, name: str) -> Reply:
        """Resume a run of this session: the transcript answers its earlier requests and calls."""
        past, place = self.host.record.latest_past(name)
        if (chat := _chat_of(past)) and not self.host.chat:
            async with self._in_chat(chat) as runs:
                return await runs._again(name)
        here = bool(self._talk == name and self._conversation is not None)
        messages = self._driver.opened_at(name)
        with contextlib.suppress(UsageError):  # raised again if the run asks the model
            await self.host.models.open()
        # A chat that has continued since is not changed: its next message reports the results of the calls.
        over = bool(self.host.chat) and self.host.record.last_talk() != name
        reply, messages = await self._driver.go(name, past, messages, stops=over, place=place)
        if here:
            self.forget()
            self._conversation, self._talk = messages, name
        else:
            self.host.record.let_go(messages)
        return reply

    def for_chat(self, chat: str | int, session: str = "") -> Runs:
        """The runs of one chat, with its own conversation and memory. Its session is ``session``, by default
        one named after the chat. Close it before this agent."""
        return Runs(self.host.for_chat(chat, session))

    @contextlib.asynccontextmanager
    async def _in_chat(self, chat: str) -> AsyncIterator[Runs]:
        """The runs of this session's chat; closes the chat's memory at the end."""
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
        """The message about new instructions, if they differ from those of ``begun``, the last run of the
        conversation."""
        now = self.host.models.instructions
        if begun is None or begun.data.get("instructions", "") == now:
            return ""
        return f"From here on you have these instructions:\n{now}" if now else "The instructions are lifted."

    def _few(
        self, task: str, dialect: Dialect, table: ToolTable, begun: Event | None, messages: Messages
    ) -> tuple[tuple[str, ...], str]:
        """The tools that the model sees in full for a task (empty: all), and the message about the tools
        that are new since ``begun``, the last run of the conversation."""
        if begun is None:
            return self.host.record.talk_of(messages).few, ""
        if not (before := begun.data.get("few", ())) or not dialect.takes_few:
            return (), ""
        from quoth.agent.run.few import also_fitting  # here: a large model needs no choice

        return also_fitting(table, before, self._driver.few_for(task, dialect, table))

    def _told_of_plan(self, begun: Event | None) -> str:
        """The message about plan mode, if it begins or ends with the next run."""
        was = begun is not None and bool(begun.data.get("plan"))
        if was == self.host.plan:
            return ""
        from quoth.agent.run.plan_mode import ON, OVER

        return ON if self.host.plan else OVER

    def _news(self, begun: Event | None) -> str:
        """The results, since the last run began, of calls that waited while the chat continued."""
        if begun is None or not self.host.chat:
            return ""
        from quoth.agent.run.observation import waited

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
        """The entries of the knowledge base about a message; a person gets notes about its faults."""
        base = self.host.services.knowledge_base
        if base is NO_KNOWLEDGE:
            return ""
        from quoth.tools.knowledge.shown import knowledge_for  # here: few agents have a base

        return await knowledge_for(base, text, say=self.host.events.note)


def _chat_of(past: Past) -> str:
    """The chat of a run; empty for none."""
    return "" if past.stimulus is None else str(past.stimulus.data.get("chat", ""))


# The undo of a session, with the workspace and the rules of its host.


WRITER = "write-file"  # its rules apply to restored files


def undo_of(host: SessionHost, session: str = "") -> Undo:
    """The undo of the host's session, or of another session in its store. Raises UsageError for a session
    whose worktree was removed."""
    from quoth.agent.session.undo import Undo  # here: few processes take anything back

    name = session or host.session
    workspace = host.workspace.of_session(name)
    if workspace.root == workspace.home and had_worktree(host.transcript, name):
        raise UsageError(
            f"The git worktree of session {name} was removed, and with it what undo would restore."
        )

    def forbids(path: str, text: str) -> str:
        """Why the rules would deny a call that writes this text; empty if they allow it or ask."""
        table = host.table if WRITER in host.table else cognitive_tools
        tool = table.get(WRITER)
        form, args = checked(tool, CallForm(WRITER, {"path": path, "content": text}), workspace)
        call = new_call(form, user=host.user, session=host.session, route="call")
        verdict = host.policy.judge(tool, call, args, host.context())
        return verdict.reason if verdict.kind == "deny" else ""

    def ships(name: str) -> bool:
        return name in host.table and host.table.get(name).ships

    def record(said: str) -> None:
        host.door.record("undo", said, route="call", status="ok", session=name, user=host.user)

    versions = StoreVersions(lambda: host.store, workspace.root)
    return Undo(versions, workspace, host.transcript, name, host.user, forbids, ships, record)
