"""The parts of an agent, put together once, and the runs it makes of them.

Knows what a run needs; it must not know flights, replays, commands or the public face.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from quoth.agent.reply import Listener, Reply
from quoth.agent.run.build import build_run
from quoth.agent.run.model_service import check_known, with_own_model
from quoth.agent.run.recorder import Differs, facts_of
from quoth.agent.run.run import RunLimits
from quoth.agent.run.subagents import chosen, services_for
from quoth.agent.session.drift import Changes, changes_of
from quoth.agent.session.index import new_session
from quoth.agent.session.past import Past
from quoth.agent.session.run_log import RunLog
from quoth.agent.session.session import Session, Unfinished, read_messages
from quoth.agent.terminal.person import user_name
from quoth.neuro.backends.base import Backend, PlainBackend, as_backend
from quoth.neuro.backends.messages import Messages
from quoth.neuro.prompt.belt import BeltCatalog
from quoth.neuro.prompt.dialects import CALL_FORM, Dialect, choose_dialect, dialect_named
from quoth.tools.call.call import Route, ToolResult, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import Audit, Gate
from quoth.tools.call.services import Services
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.requests import Person, SayYes
from quoth.tools.door.door import Door
from quoth.tools.errors import InvalidCallError, UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.call_log import StoreCallLog
from quoth.tools.history.event import read_form
from quoth.tools.history.long_results import OnlyNames, StorePages
from quoth.tools.history.receipts import StoreReceipts
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.loading import ToolSource, load_tools, with_search
from quoth.tools.policy.files import load_policy, policy_files
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.policy.quotas import Rule
from quoth.tools.registry.table import ToolTable
from quoth.tools.sandbox.runner import Sandbox
from quoth.tools.sandbox.snapshots import StoreSnapshots
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import cache_dir, state_dir, store_path

BROKEN_OFF = "The run was broken off, and the conversation went on without it."


class Stoppable(Protocol):
    """What an interrupt stops, at its next safe point: a run, or a flight."""

    interrupted: bool

    def interrupt(self) -> None: ...


class Host:
    """What an agent is made of, put together once and held open: table, door, sandbox, model, store,
    session."""

    def __init__(
        self,
        *,
        workspace: str | Path = ".",
        tools: Iterable[ToolSource] = (),
        model: str | PlainBackend | None = None,
        base_url: str | None = None,
        user: str | None = None,
        session: str | None = None,
        consent: Person | Literal["yes"] | None = None,
        gate: Gate | None = None,
        audit: Audit | None = None,
        table: ToolTable | None = None,
        policy: str | Path | None = None,
        limits: RunLimits | None = None,
        max_reply_tokens: int | None = None,
        quotas: Iterable[Rule] = (),
        zone: str = "UTC",
        listener: Listener | None = None,
        dialect: str | None = None,
        belt: Literal["full", "search"] = "full",
        must_act: bool | None = None,
        services: Services | None = None,
        knowledge: str | None = None,
        confidence: float | None = None,
        agent_id: str | None = None,
    ) -> None:
        """Put an agent together. Raises UsageError for what cannot be used, with a sentence.

        ``workspace`` is the one folder its file tools may touch: ``workspace="shop"``.
        ``tools`` are ``.hy`` files or CognitiveTools beside those that ship: ``tools=["shop.hy", double]``;
        ``table`` is a ToolTable in place of them all.
        ``model`` is a spec, ``model="local"``, ``"openai:…"`` or ``"scripted:talk.txt"``; or a Backend, which
        is not closed with the agent; or None for the default, chosen at the first run. ``base_url`` is the
        server of a spec. ``dialect`` is how the model calls tools (neuro/prompt/dialects.py), by its family
        if None; ``belt="search"`` shows it one line a tool, for a table that is too large to show;
        ``must_act=True`` has it look at something before it answers.
        ``policy`` is a file of rules beside those of the user and of the workspace: ``policy="rules.hy"``.
        ``quotas`` are limits beside those the tools and the policy declare; a day of theirs begins in the
        time zone ``zone="Europe/Berlin"``. ``gate`` judges the calls of the tools that ask for one.
        ``consent`` answers what policy and guards ask: ``consent="yes"``, an object with ``request``
        (tools/consent/requests.py, Person), or None: such a call is pending at once, ``broker`` takes the
        decision, and ``resume`` goes on.
        ``limits`` are those of each run, ``limits=RunLimits(steps=10)`` (agent/run/run.py);
        ``max_reply_tokens=2000`` is the one of a reply.
        ``services`` are what tools may use beside the workspace, ``services=Services(memory=notes)``
        (tools/call/services.py; the model is this one if they hold none). They may know ``knowledge``, what
        the host holds on the matter; ``confidence``, how sure it is (0 to 1); and ``agent_id``, who calls.
        ``session`` names the session to go on with or to begin, ``session="monday"``, and ``user`` who
        speaks; without them there is a new one, of the user of this machine. ``audit`` keeps the rows of
        calls in place of the store.
        ``listener`` is told what happens in a run, event by event: ``listener=lambda event, data: …``.
        """
        root = Path(workspace)
        if not root.is_dir():
            raise UsageError(f"The workspace {root} is not a folder.")
        if not (consent is None or consent == "yes" or hasattr(consent, "request")):
            raise UsageError(f'consent is "yes", None or an object with a method request, not {consent!r}.')
        if not (policy is None or isinstance(policy, str | Path)):
            raise UsageError(f"policy is the path of a file of rules, not {policy!r}.")
        self.agent_id = "agent" if agent_id is None else agent_id
        check_known(knowledge, confidence, self.agent_id)
        self.knowledge = knowledge
        self.confidence = confidence
        self.services = with_own_model(services, self.backend)
        self.workspace = Workspace(root, protected=(state_dir(), cache_dir(), *policy_files(root, policy)))
        self.policy = load_policy(self.workspace.root, policy)
        if belt not in ("full", "search"):
            raise UsageError(f"belt is full or search, not {belt!r}.")
        self.table = with_search(load_tools(tools, table)) if belt == "search" else load_tools(tools, table)
        self._search = belt == "search"
        self._catalog = BeltCatalog(self.table)
        self._wanted = dialect
        self._chosen: Dialect | None = None
        self.user = user or user_name()
        self.session = session or new_session()
        self.named = session or ""
        self.limits = limits or RunLimits()
        if max_reply_tokens is not None:
            if type(max_reply_tokens) is not int or max_reply_tokens < 1:
                raise UsageError(f"max_reply_tokens is a whole number from 1, not {max_reply_tokens!r}.")
            self.limits = replace(self.limits, tokens=max_reply_tokens)
        self.listener = listener
        self._must_act = must_act
        self._consent = consent
        self._model = model
        self._options = _options(tools, model, base_url, policy, self.limits) | {
            "dialect": dialect,
            "belt": belt,
        }
        self._base_url = base_url
        self._backend = None if model is None or isinstance(model, str) else as_backend(model)
        self._store: Store | None = None
        self._sandbox = Sandbox()
        self._snapshots = StoreSnapshots(self._opened_store)
        self.pages = StorePages(self._opened_store, self.session, self.user, self.limits.result_chars)
        self._conversation: Messages | None = None
        self._running: Stoppable | None = None
        self._closed = False
        self.audit = audit or StoreAudit(self._opened_store)
        self.broker = Broker(
            self._opened_store,
            self.table,
            self.workspace,
            person=SayYes() if consent == "yes" else consent,
            audit=self.audit,
        )
        self.transcript = Transcript(self._opened_store)
        self.call_log = StoreCallLog(self.transcript, self.table.secrets)
        self._session = Session(self.transcript, self.session, self.user, store_path(self.workspace.root))
        self._talk = ""  # the run that ``say`` goes on from
        self._new_talk = session is None
        self._others: dict[str, Backend] = {}
        counted = [limit.counts for limit in self.policy.limits]
        self.policy.counted = True
        self.door = Door(
            self.table,
            policy=self.policy,
            consent=self.broker,
            gate=gate,
            audit=self.audit,
            receipts=StoreReceipts(self._opened_store, window=self.limits.window),
            log=self.call_log,
            together=lambda: self._opened_store().transaction(),
            limits=StoreLimits(self._opened_store, [*quotas, *counted], zone=zone),
        )

    def _opened_store(self) -> Store:
        if self._store is None:
            self._store = Store(store_path(self.workspace.root))
        return self._store

    @property
    def store(self) -> Store:
        """The store of the workspace, opened at the first use."""
        return self._opened_store()

    def context(self, user_message: str = "") -> ToolContext:
        """The services a call of this agent may use."""
        return ToolContext(
            self.workspace,
            user=self.user,
            session=self.session,
            user_message=user_message,
            sandbox=self._sandbox,
            snapshots=self._snapshots,
            agent_id=self.agent_id,
            knowledge=self.knowledge,
            confidence=self.confidence,
            services=services_for(self),
            catalog=self._catalog,
            pages=self.pages,
        )

    async def call(self, form: str | CallForm, *, route: Route = "call") -> ToolResult:
        """One call form through the door, without a model. An unreadable form is an ``invalid`` result."""
        self._require_open()
        if isinstance(form, str):
            try:
                form = from_model(read_one(form))
            except (ReadError, InvalidCallError) as error:
                caret = f"\n{error.caret()}" if isinstance(error, ReadError) else ""
                empty = new_call(CallForm(""), route=route, user=self.user, session=self.session)
                return self.door.unreadable(empty, self.context(), str(form), f"{error}{caret}")
        return await self._call(form, route)

    async def _call(self, form: CallForm, route: Route, key: str = "") -> ToolResult:
        """Take a call through the door. With ``key`` it is carried on."""
        self._session.open(self.given())
        marks: dict[str, Any] = {"key": key} if key else {}
        call = new_call(form, route=route, user=self.user, session=self.session, **marks)
        if not key:
            call = replace(call, key=f"{self.session}/{call.id}")
        result = await self.door.dispatch(call, self.context())
        if not key and result.status != "pending":
            for other in self.broker.made_again(call):
                said = {"status": "cancelled", "message": f"It was made again as call {call.id}."}
                self.transcript.add(self.session, "receipt", said, key=other, status="cancelled")
        if result.status != "pending":
            self._session.forget_opening()
        return result

    async def eval(
        self, program: str, *, route: Route = "eval", dry_run: bool | Literal["pure"] = False
    ) -> ToolResult:
        """A Lisp program in the sandbox: a call of the ``eval`` tool. Its inner calls pass the door too.

        With ``dry_run`` the value is a plan of what it may call (tools/dryrun/call_plan.py), and nothing is
        done but reading; ``"pure"`` does not even read."""
        more = {"dry-run": dry_run} if dry_run else {}
        return await self.call(CallForm("eval", {"form": Code(program), **more}), route=route)

    def ask_for_plan(self, program: str, plan: Mapping[str, Any]) -> str:
        """Leave a request to approve, as a whole, the plan that a dry run of ``program`` in this session came
        to; the id of the request."""
        self._require_open()
        form, _ = self.table.get("eval").checked(CallForm("eval", {"form": Code(program)}))
        call = new_call(form, route="eval", user=self.user, session=self.session)
        return self.broker.ask_for_plan(call, plan)

    async def run(self, task: str) -> Reply:
        """One task through the loop, in a conversation of its own."""
        self._require_open()
        reply, _ = await self._first(task, self._begin())
        return reply

    async def say(self, text: str) -> Reply:
        """The next message of the conversation that ``say`` keeps, also from one process to the next; for a
        REPL."""
        self._require_open()
        if not self._talk and not self._new_talk:
            self._talk = self._session.last_talk()
        return await self._follow(text)

    async def follow(self, text: str) -> Reply:
        """The next message of the conversation of the session's last run, whoever began it."""
        self._require_open()
        if (last := self._session.last_run()) != self._talk:
            self.forget()
            self._talk, self._new_talk = last, False
        return await self._follow(text)

    async def _follow(self, text: str) -> Reply:
        if self._conversation is None:
            self._conversation = await self._brought_back(self._talk) if self._talk else self._begin()
        reply, self._talk = await self._first(text, self._conversation, self._talk, secrets.token_hex(4))
        return reply

    async def resume(self) -> list[Reply | ToolResult]:
        """Go on with all that is unfinished in this session, in its order: a Reply for each run, a ToolResult
        for each call. What is finished is not done again; what nobody has decided yet waits on. Raises
        UsageError when there is nothing to go on with, or another process is at it."""
        self._require_open()
        done: list[Reply | ToolResult] = []
        with self._session.driven():
            unfinished = self._session.to_resume()
            if not unfinished:
                raise UsageError(f"Nothing waits in session {self.session}.")
            self._require_tools(unfinished)
            self._session.open(self.given())
            for one in unfinished:
                if one.kind == "call":
                    form = read_form(one.event.data["form"])
                    key = f"{self.session}/{one.name}"
                    done.append(await self._call(form, one.event.data["route"], key))
                else:
                    done.append(await self._again(one.name))
        return done

    @contextlib.contextmanager
    def stoppable(self, work: Stoppable) -> Iterator[None]:
        """Within it an interrupt is for this work."""
        before, self._running = self._running, work
        try:
            yield
        finally:
            self._running = before

    def unfinished(self) -> list[Unfinished]:
        """What of this session waits or was broken off."""
        return [one for one in self._session.unfinished() if one.waits]

    def resumable(self) -> bool:
        """Whether ``resume`` has anything to go on with."""
        return bool(self._session.to_resume())

    @property
    def waits(self) -> bool:
        """Whether anything of this session waits for ``resume``."""
        return self._store is not None and any(
            one.status in ("pending", "interrupted") for one in self._session.unfinished()
        )

    def _require_tools(self, unfinished: list[Unfinished]) -> None:
        """Raises UsageError when a call that waits is of a tool that is not here: nothing of it is lost."""
        for one in unfinished:
            for form in self._session.waiting_calls(one):
                if form.tool not in self.table:
                    raise UsageError(
                        f"A call of {form.tool} waits in session {self.session}, and there is no such tool"
                        " here; give its file: --tools FILE.hy"
                    )

    def forget(self) -> None:
        """Begin a new conversation at the next ``say``."""
        if self._conversation is not None:
            self._session.let_go(self._conversation)
        self._conversation, self._talk, self._new_talk = None, "", True

    def _begin(self) -> Messages:
        messages: Messages = import_module("quoth.neuro.think").begin_conversation(
            self.table, dialect=self.dialect(), search=self._search
        )
        return messages

    def dialect(self) -> Dialect:
        """How the model calls tools, chosen with the model at the first use. Raises UsageError for one that
        there is not, or that does not go with the model or the belt."""
        if self._chosen is None:
            backend = self.backend()
            takes_tools = bool(backend.tool_view)
            self._chosen, note = choose_dialect(
                backend.name, self._wanted, takes_tools=takes_tools, search=self._search
            )
            if note and self.listener is not None:
                self.listener("note", note)
        return self._chosen

    async def _first(
        self, task: str, messages: Messages, after: str = "", turn: str = ""
    ) -> tuple[Reply, str]:
        """A new run: a task in a conversation, that of the run ``after`` if one is named. ``turn`` tells it
        from the same words said again. Returns the name of the run too."""
        if not task.strip():
            raise UsageError("The task is empty.")
        # Words from a command line may hold bytes that are no text.
        task = task.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        backend = self.backend()
        told = {
            "text": task,
            "user": self.user,
            "turn": turn,
            **facts_of(backend),
            "dialect": self.dialect().name,
            "in-text": not self.dialect().native,
            "search": self._search,
            "must-act": self.must_act(backend),
            "limits": vars(self.limits),
        }
        with self._session.driven():
            self._session.open(self.given())
            name = self._session.begin(told, after)
            past = Past(stimulus=self.transcript.last(self.session, "stimulus", run=name))
            try:
                reply, ended_with = await self._go(name, past, messages)
            except BaseException:
                if self._conversation is messages:  # broken off: it is brought back when it goes on
                    self._conversation, self._talk = None, name
                raise
        if self._conversation is messages:
            self._conversation = ended_with  # it may have been shortened
        else:
            self._session.let_go(ended_with)
        return reply, name

    async def _again(self, name: str) -> Reply:
        """Go on with a run of this session: all that has happened in it is answered by the transcript."""
        past = self._session.past(name).without_failures()
        here = bool(self._talk == name and self._conversation is not None)
        messages = self._opened_at(name)
        reply, messages = await self._go(name, past, messages)
        if here:
            self.forget()
            self._conversation, self._talk, self._new_talk = messages, name, False
        else:
            self._session.let_go(messages)
        return reply

    def _opened_at(self, name: str) -> Messages:
        """The conversation as a run found it."""
        before = self._session.messages_before(name)
        return read_messages(before) if before else self._begin()

    async def _brought_back(self, name: str) -> Messages:
        """The conversation up to the end of a run. One that was broken off ends here: no call of it is left
        without a result, which says so."""
        past = self._session.past(name)
        messages = await self._broken_off(name) if past.end is None else self._as_it_ended(name)
        if note := self._note(name):
            messages.append("user", note)
        return messages

    async def _broken_off(self, name: str) -> Messages:
        """The conversation of a run that has not ended; it ends here, as far as the transcript reaches."""
        with self._session.driven():  # nobody is at it
            past = self._session.past(name)
            if past.end is None:
                _, messages = await self._go(name, past, self._opened_at(name), live=False, ends=True)
                return messages
        return self._as_it_ended(name)

    def _as_it_ended(self, name: str) -> Messages:
        """The conversation of a run that has ended, all of which is in the transcript."""
        messages = read_messages(self._session.conversation(name))
        self._session.talk_of(messages).count = len(messages)
        return messages

    def changes(self) -> Changes:
        """What is not any more as this user had it when the session was last driven."""
        return changes_of(self._session.given(), self.given())

    def _note(self, run: str) -> str:
        """What the model of a run is to know of tools that were something else when it was asked last."""
        asked = self.transcript.last(self.session, "request", run=run)
        if asked is None:
            return ""
        return changes_of(self._session.given(before=asked.seq), self.given()).told(self.table)

    async def _go(
        self,
        name: str,
        past: Past,
        messages: Messages,
        *,
        live: bool = True,
        ends: bool = False,
        differs: Differs | None = None,
    ) -> tuple[Reply, Messages]:
        """Drive a run of this session from its stimulus; without ``live`` only as far as the transcript
        reaches, where with ``ends`` it ends for good; also one of a sub-agent. Returns the messages it ended
        with, too."""
        assert past.stimulus is not None, "a run begins with a stimulus"
        told = past.stimulus.data
        log = RunLog(self._session, name)
        run = build_run(
            log,
            past,
            told["text"],
            door=self.door.narrowed(self.table_of(told)),
            backend=self.backend if live else None,
            context=self.context(told["text"]),
            services=lambda run: services_for(self, run),
            messages=messages,
            limits=self.limits if live else RunLimits(**told["limits"]),
            pages=self.pages if live else OnlyNames(),
            data=told.get("data", ""),
            turn=told.get("turn", ""),
            must_act=told["must-act"],
            dialect=dialect_named(told["dialect"], in_text=told["in-text"]),
            search=told["search"],
            listener=None if ends else self.listener,
            differs=differs,
            note=self._note(name) if live and past.left else "",
        )
        with self.stoppable(run):
            reply: Reply = await import_module("quoth.agent.loop").run_loop(run)
        if ends:
            waits = any(call.result.status == "pending" for call in reply.calls)
            log.ended(replace(reply, status="pending" if waits else "failed", text=BROKEN_OFF), run.messages)
        return reply, run.messages

    def table_of(self, told: Mapping[str, Any]) -> ToolTable:
        """The tools of a run that was begun so: a sub-agent may have been given fewer."""
        return self.table if told.get("tools") is None else chosen(self.table, told["tools"])

    def given(self) -> dict[str, Any]:
        """What another process needs to make such an agent again, and what it had then."""
        return {
            "user": self.user,
            **self._options,
            "versions": {tool.name: tool.outline for tool in self.table},
            "rules": self.policy.digest,
        }

    def backend(self) -> Backend:
        """The model, chosen at the first use. Raises UsageError when there is none to choose."""
        self._require_open()
        if self._backend is None:
            from quoth.agent.terminal.progress import weights_progress
            from quoth.neuro.backends.select import choose_backend

            spec = self._model if isinstance(self._model, str) else None
            self._backend = choose_backend(spec, base_url=self._base_url, progress=weights_progress())
        return self._backend

    @property
    def model_name(self) -> str:
        """How the model was chosen, or its name; empty if it is not chosen yet."""
        if isinstance(self._model, str):
            return self._model
        return "" if self._backend is None else self._backend.name

    def other_backend(self, spec: str) -> Backend:
        """Another model, for a tool that names it: opened once, closed with the agent. Raises UsageError."""
        self._require_open()
        if spec not in self._others:
            from quoth.neuro.backends.select import choose_backend

            same = spec.partition(":")[0] == self.model_name.partition(":")[0]
            self._others[spec] = choose_backend(spec, base_url=self._base_url if same else None)
        return self._others[spec]

    def must_act(self, backend: Backend) -> bool:
        """Whether a run of that model has to look at something before it answers."""
        return backend.takes_grammar if self._must_act is None else self._must_act

    def dialect_of(self, backend: Backend, table: ToolTable, *, searched: bool) -> tuple[Dialect, bool]:
        """How the model of a sub-agent calls the tools of ``table``, and whether it searches them: as this
        agent's does if it is the same model and these tools can be called so."""
        takes_tools = bool(backend.tool_view) and len(table.shown) > 0
        search = self._search and searched
        for wanted in (self._wanted if backend is self._backend else None, None):
            with contextlib.suppress(UsageError):
                dialect, _ = choose_dialect(backend.name, wanted, takes_tools=takes_tools, search=search)
                dialect.opening(table, search=search)  # refused where no tool can be called so
                return dialect, search
        return CALL_FORM, False

    @property
    def running(self) -> bool:
        """Whether a run or a flight is in progress."""
        return self._running is not None

    @property
    def stopping(self) -> bool:
        """Whether a run has been interrupted and is on its way to its next safe point."""
        return self._running is not None and self._running.interrupted

    def interrupt(self) -> bool:
        """Stop the run in progress at its next safe point; its Reply says ``interrupted``. A question that is
        being asked is taken back, and its call waits.

        False when there is nothing to stop, or it has been told before."""
        asking = bool(getattr(self._consent, "asking", False))
        run = self._running
        if run is not None and not run.interrupted:
            run.interrupt()
        elif not asking:
            return False
        self.broker.interrupt()  # nothing runs while a person is asked, so that is a safe point too
        return True

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("This agent is closed.")

    async def aclose(self) -> None:
        """Stop everything that was started. May be called twice."""
        self._closed = True
        try:
            await self._sandbox.aclose()
        finally:
            opened = list(self._others.values())
            if self._backend is not None and (self._model is None or isinstance(self._model, str)):
                opened.append(self._backend)
            try:
                for ended in await asyncio.gather(
                    *(backend.aclose() for backend in opened), return_exceptions=True
                ):
                    if isinstance(ended, BaseException):
                        raise ended
            finally:
                store, self._store = self._store, None
                if store is not None:
                    store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _options(
    tools: Iterable[ToolSource],
    model: str | PlainBackend | None,
    base_url: str | None,
    policy: str | Path | None,
    limits: RunLimits,
) -> dict[str, Any]:
    """What another process needs to make such an agent again; tools and models that are objects are not in
    it."""
    return {
        "tools": [str(Path(tool).resolve()) for tool in tools if isinstance(tool, str | Path)],
        "model": _with_whole_path(model) if isinstance(model, str) else None,
        "base-url": base_url,
        "policy": None if policy is None else str(Path(policy).resolve()),
        "limits": vars(limits),
    }


def _with_whole_path(model: str) -> str:
    """The spec of a model, to be understood in any folder."""
    kind, _, path = model.partition(":")
    return f"{kind}:{Path(path).expanduser().resolve()}" if kind in ("scripted", "local") and path else model
