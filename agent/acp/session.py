"""One session of an ACP client: its updates in order, its mode and options, and what stops its prompts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from acp.helpers import update_agent_message_text
from acp.schema import (
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfoUpdate,
    SessionMode,
    SessionModeState,
)

from quoth.agent.acp.shape import Updates
from quoth.agent.acp.usage import Spent
from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.reply import Reply
from quoth.agent.session.render import title
from quoth.agent.session.session import is_driven
from quoth.neuro.backends.select import named_model
from quoth.neuro.prompt.dialects import DIALECTS
from quoth.tools.call.call import PROGRAMS, Change
from quoth.tools.errors import QuothError, UsageError, did_you_mean
from quoth.tools.history.versions import StoreVersions
from quoth.tools.policy.limits import only_reads
from quoth.tools.text import listed

T = TypeVar("T")
Choice = tuple[str, str, str | None]  # of an option: its value, its label and what it means

MODES = (
    SessionMode(id="ask", name="Ask", description="Ask about each call that the rules do not allow."),
    SessionMode(id="read", name="Read only", description="Use only tools that read."),
    SessionMode(id="plan", name="Plan", description="Only read; other calls become steps of a plan."),
)
OPTIONS = ("mode", "model", "dialect")
CHOSEN = "auto"  # the dialect that suits the model
READS = "reads"  # the setting that keeps the mode ``read`` in the session's opening


class AcpSession:
    """One session of a client: sends what happens as updates, in order. It is ``loaded`` if it has a record
    of an earlier process, which also has its mode."""

    def __init__(self, agent: AsyncAgent, client: Any, *, loaded: bool = False) -> None:
        self.agent, self.tools = agent, agent.table
        # Programs and sub-agents have these tools alone, too.
        self.reading = agent.table.where(lambda tool: only_reads(tool) or tool.name == PROGRAMS)
        self.updates = Updates(agent.table, str(agent.workspace.root), self._changes)
        self.titled = False
        self._client = client
        self._waiting: asyncio.Queue[Any] = asyncio.Queue()
        self._tasks = [asyncio.create_task(self._send())]
        self._resuming: asyncio.Task[None] | None = None
        self._command: asyncio.Task[Any] | None = None  # a command in progress
        self._turns: set[asyncio.Event] = set()  # prompts in progress; set: cancelled by the client
        self._closed = False
        self._models: list[str] = []  # specs to choose from
        self._default = ""  # the default model that needs a stored key or the embedded one
        self._spent = Spent(agent.host)
        if loaded and agent.host.record.given().get(READS) and "read" in self._modes():
            self._use_mode("read")
        self._options = self.options()  # as the client knows them
        if loaded:
            tasks = agent.transcript.events(agent.session, kind="stimulus")
            if task := next((one.said["text"] for one in tasks if "/" not in one.run), ""):
                self.show_title(task)

    # Modes and options

    @property
    def mode(self) -> str:
        host = self.agent.host
        return "plan" if host.plan else "read" if host.settings.get(READS) else "ask"

    def _modes(self) -> list[str]:
        """The mode ``read`` has a fixed list of tools, which the tools of ``--remote`` would replace before
        each turn."""
        remote = self.agent.host.parts.remote is not None
        return [mode.id for mode in MODES if mode.id != "read" or not remote]

    def modes(self) -> SessionModeState:
        """The modes, with the present one."""
        known = self._modes()
        return SessionModeState(
            current_mode_id=self.mode, available_modes=[mode for mode in MODES if mode.id in known]
        )

    def options(self) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
        """The options of the session, each with its present value. No model is opened for it."""
        models, config = self.agent.models, self.agent.config
        modes: list[Choice] = [
            (mode.id, mode.name, mode.description) for mode in self.modes().available_modes
        ]
        found: list[SessionConfigOptionSelect | SessionConfigOptionBoolean] = []
        found.append(_select("mode", "Mode", "mode", self.mode, modes))
        if spec := models.name or named_model(config=config) or self._default:
            specs = dict.fromkeys((spec, *self._models))
            found.append(_select("model", "Model", "model", spec, [(one, one, None) for one in specs]))
        dialects: list[Choice] = [(CHOSEN, "Automatic", "The notation of calls that suits the model.")]
        dialects += [(name, name, None) for name in DIALECTS]
        dialect = models.options.dialect or config.dialect or CHOSEN
        return [*found, _select("dialect", "Dialect", "model_config", dialect, dialects)]

    def use_mode(self, mode: str) -> None:
        """Change the mode between turns. Raises UsageError."""
        self._require_idle("mode")
        if mode not in (known := self._modes()):
            raise UsageError(f"Unknown mode {mode}. The modes are {listed(known)}.")
        self._use_mode(mode)
        self._record()

    def _record(self) -> None:
        """Record what was chosen: a later process finds it, also if no turn follows."""
        host = self.agent.host
        with host.record.used("call"):
            host.record.open(host.given)

    def _use_mode(self, mode: str) -> None:
        self.agent.host.keep(plan=mode == "plan", **{READS: mode == "read"})
        self.agent.runs.use_tools(self.reading if mode == "read" else self.tools)

    async def use_option(self, option: str, value: Any) -> None:
        """Change an option between turns. Raises UsageError."""
        self._require_idle(option)
        match option:
            case "mode":
                self.use_mode(str(value))
                self.show(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=self.mode))
            case "model":
                await self.agent.runs.use_model(str(value))
                self._record()
            case "dialect":
                self.agent.runs.use_dialect(None if value == CHOSEN else str(value))
                self._record()
            case _:
                raise UsageError(f"Unknown option {option}.{did_you_mean(option, OPTIONS)}")
        self._options = self.options()  # the answer to the client has them

    def show_options(self) -> None:
        """Send the options if the client does not know them: a command or another mode changed them."""
        if (options := self.options()) != self._options:
            self._options = options
            self.show(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    def _require_idle(self, what: str) -> None:
        if self._turns or self.agent.host.running:
            raise UsageError(f"A turn is in progress. Wait for its end or cancel it, then change the {what}.")

    def look_for_models(self) -> None:
        """List the models that can be chosen, beside other work: keys are read, and servers of this machine
        are asked."""
        if not self._closed:
            self._tasks.append(asyncio.create_task(self._look_for_models()))

    async def _look_for_models(self) -> None:
        from quoth.agent.terminal.model_list import specs_of  # here: few sessions outlive it

        with contextlib.suppress(QuothError):  # then only the present model is offered
            self._default, self._models = await specs_of(self.agent.config)
            self.show_options()

    # Turns

    @contextlib.contextmanager
    def turn(self) -> Iterator[asyncio.Event]:
        """A prompt is answered in this context; the event is set when the client cancels it."""
        if not self._turns:
            self.agent.broker.listen()  # an earlier cancel does not apply to this turn
        turn = asyncio.Event()
        self._turns.add(turn)
        try:
            yield turn
        finally:
            self._turns.discard(turn)

    async def until_cancelled(self, work: Coroutine[Any, Any, T], turn: asyncio.Event) -> T | None:
        """The result of a command; None if the client cancels it first."""
        command = self._command = asyncio.create_task(work)
        try:
            result: T = await command
            return result
        except asyncio.CancelledError:
            if turn.is_set() and command.cancelled():
                return None
            raise
        finally:
            command.cancel()
            self._command = None

    async def cancel(self) -> None:
        """Stop the prompts in progress, also those whose run has not yet begun."""
        turns = [*self._turns]
        for turn in turns:
            turn.set()
        while not self._stop() and self._turns.intersection(turns):  # noqa: ASYNC110  a run begins
            await asyncio.sleep(0.05)

    def _stop(self) -> bool:
        """Stop a run, a flight, a question or a command; whether there was one."""
        if self.agent.interrupt():
            return True
        return self._command is not None and self._command.cancel()

    def end_turn(self) -> None:
        """Send what changed in a turn besides its words: the options, and the tokens in the context."""
        self.show_options()
        with contextlib.suppress(QuothError):  # without a model the size of its context is unknown
            if (usage := self._spent.update()) is not None:
                self.show(usage)

    # Updates

    def _changes(self, key: str) -> Iterator[Change]:
        """The texts that the call with this key changed."""
        from quoth.agent.session.changes import CallChanges  # here: most calls change no file

        agent, session = self.agent, self.agent.session
        versions = StoreVersions(lambda: agent.store, agent.workspace.root)
        return CallChanges(versions, agent.workspace.on_disk(), session, key).texts(key)

    def hear(self, event: AgentEvent) -> None:
        for update in self.updates.of(event):
            self.show(update)

    def show(self, update: Any) -> None:
        if not self._closed:
            self._waiting.put_nowait(update)

    def show_title(self, task: str) -> None:
        """Send the title of the session, once: its first task."""
        if not self.titled:
            self.titled = True
            self.show(SessionInfoUpdate(session_update="session_info_update", title=title(task)))

    async def shown(self) -> None:
        """Wait until all updates are sent: they come before the answer to a request."""
        await self._waiting.join()

    async def _send(self) -> None:
        while True:
            update = await self._waiting.get()
            try:
                with contextlib.suppress(Exception):  # a client that has gone ends the connection
                    await self._client.session_update(session_id=self.agent.session, update=update)
            finally:
                self._waiting.task_done()

    # Work of an earlier process

    def resume_later(self) -> None:
        """Ask again about what waits in a session that was loaded, and continue it. A turn that was broken
        off is continued by the person."""
        if is_driven(Path(self.agent.store.path), self.agent.session):
            self.show(update_agent_message_text("Another process continues this session.\n"))
        elif self.agent.runs.waits:
            self._resuming = asyncio.create_task(self._resumed())
        elif self.agent.runs.unfinished():
            self.show(update_agent_message_text("The last turn was broken off. To continue it: /resume\n"))

    async def _resumed(self) -> None:
        try:
            for done in await self.agent.resume():
                if isinstance(done, Reply) and not done.ok:  # the words of an answer came as events
                    self.show(update_agent_message_text(f"{done.said}\n"))
        except QuothError as error:
            self.show(update_agent_message_text(f"{error}\n"))

    async def aclose(self) -> None:
        for turn in self._turns:
            turn.set()
        self._stop()
        if self._resuming is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait([self._resuming], timeout=5)
            self._resuming.cancel()
        await self.agent.aclose()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.shown(), 1)
        self._closed = True
        for task in self._tasks:
            task.cancel()
        while not self._waiting.empty():  # a prompt that still ends waits for none of them
            self._waiting.get_nowait()
            self._waiting.task_done()


def _select(
    id: str, name: str, category: Any, value: str, choices: Sequence[Choice]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        id=id,
        name=name,
        category=category,
        type="select",
        current_value=value,
        options=[
            SessionConfigSelectOption(value=one, name=label, description=about)
            for one, label, about in choices
        ],
    )
