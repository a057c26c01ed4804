"""Agent and AsyncAgent: the two clients of the whole machine, like httpx's two. The async one is the core.

They put the parts together (table, door, sandbox, model, store) and hold them open; the work is in the rooms.
"""

from __future__ import annotations

import asyncio
import getpass
import secrets
import threading
from collections.abc import Coroutine, Iterable
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, cast

from agent.consent import SayYes
from agent.run import Listener, Reply, Run, RunLimits
from agent.table import ToolSource, load_tools
from neuro.backends.base import Backend, Messages
from tools.audit import Audit, StoreAudit
from tools.context import ToolContext, ToolResult
from tools.door import Consent, Door, Gate, new_call
from tools.errors import InvalidCallError, UsageError
from tools.form import CallForm, Code, from_model
from tools.hycache import cache_dir
from tools.limits import By, Cooldown, Quota, Rule, StoreLimits
from tools.policy import RulesPolicy, load_policy, policy_files
from tools.program import Sandbox
from tools.sexp import ReadError, read_one
from tools.store import Store, state_dir, store_path
from tools.table import ToolTable
from tools.workspace import Workspace

T = TypeVar("T")


class AsyncAgent:
    """An agent in a workspace. Use it as an async context manager, or call ``aclose``.

    ``workspace`` is the one folder its file tools may touch. ``tools`` are ``.hy`` files or CognitiveTools
    beside those that ship (``table`` replaces them all). ``model`` is a spec (``local``, ``openai:…``,
    ``scripted:…``), a Backend (which is not closed with the agent), or None for the default, chosen at the
    first run. ``policy`` is a file of rules beside those of the user and of the workspace (tools/policy.py).
    ``consent`` answers what policy and guards ask: ``"yes"``, an object with ``request``, or None
    (such a call is pending). ``quotas`` are limits beside those the tools and the policy declare, ``zone`` is
    where a day of theirs begins. Raises UsageError for what cannot be used, with a sentence.
    """

    def __init__(
        self,
        *,
        workspace: str | Path = ".",
        tools: Iterable[ToolSource] = (),
        model: str | Backend | None = None,
        base_url: str | None = None,
        user: str | None = None,
        session: str | None = None,
        consent: Consent | Literal["yes"] | None = None,
        gate: Gate | None = None,
        audit: Audit | None = None,
        table: ToolTable | None = None,
        policy: str | Path | None = None,
        limits: RunLimits | None = None,
        quotas: Iterable[Rule] = (),
        zone: str = "UTC",
        listener: Listener | None = None,
        must_act: bool | None = None,
    ) -> None:
        root = Path(workspace)
        if not root.is_dir():
            raise UsageError(f"The workspace {root} is not a folder.")
        if not (consent is None or consent == "yes" or hasattr(consent, "request")):
            raise UsageError(f'consent is "yes", None or an object with a method request, not {consent!r}.')
        if not (policy is None or isinstance(policy, str | Path)):
            raise UsageError(f"policy is the path of a file of rules, not {policy!r}.")
        self.workspace = Workspace(root, protected=(state_dir(), cache_dir(), *policy_files(root, policy)))
        self.policy = load_policy(self.workspace.root, policy)
        self.table = load_tools(tools, table)
        self.user = user or _user_name()
        self.session = session or f"s{secrets.token_hex(4)}"
        self.limits = limits or RunLimits()
        self.listener = listener
        self._must_act = must_act
        self._model = model
        self._base_url = base_url
        self._backend: Backend | None = None if isinstance(model, str) else model
        self._store: Store | None = None
        self._sandbox = Sandbox()
        self._conversation: Messages | None = None
        self._running: Run | None = None
        self._closed = False
        self.audit = audit or StoreAudit(self._opened_store)
        self.door = Door(
            self.table,
            policy=self.policy,
            consent=SayYes() if consent == "yes" else consent,
            gate=gate,
            audit=self.audit,
            limits=StoreLimits(self._opened_store, [*quotas, *_counted(self.policy)], zone=zone),
        )

    def _opened_store(self) -> Store:
        if self._store is None:
            self._store = Store(store_path(self.workspace.root))
        return self._store

    def context(self, user_message: str = "") -> ToolContext:
        """The services a call of this agent may use."""
        return ToolContext(
            self.workspace,
            user=self.user,
            session=self.session,
            user_message=user_message,
            sandbox=self._sandbox,
        )

    async def call(self, form: str | CallForm, *, route: str = "call") -> ToolResult:
        """One call form through the door, without a model. An unreadable form is an ``invalid`` result."""
        self._require_open()
        if isinstance(form, str):
            try:
                form = from_model(read_one(form))
            except ReadError as error:
                return _unread(f"{error}\n{error.caret()}")
            except InvalidCallError as error:
                return _unread(str(error))
        call = new_call(form, route=route, user=self.user, session=self.session)
        return await self.door.dispatch(call, self.context())

    async def eval(self, program: str, *, route: str = "eval") -> ToolResult:
        """A Lisp program in the sandbox: a call of the ``eval`` tool. Its inner calls pass the door too."""
        return await self.call(CallForm("eval", {"form": Code(program)}), route=route)

    async def run(self, task: str) -> Reply:
        """One task through the loop, in a conversation of its own."""
        self._require_open()
        return await self._go(task, self._begin())

    async def say(self, text: str) -> Reply:
        """The next message of the conversation that ``say`` keeps; for a REPL."""
        self._require_open()
        if self._conversation is None:
            self._conversation = self._begin()
        return await self._go(text, self._conversation)

    def forget(self) -> None:
        """Begin a new conversation at the next ``say``."""
        self._conversation = None

    def _begin(self) -> Messages:
        messages: Messages = import_module("neuro.think").begin_conversation(self.table)
        return messages

    async def _go(self, task: str, messages: Messages) -> Reply:
        if not task.strip():
            raise UsageError("The task is empty.")
        # Words from a command line may hold bytes that are no text.
        task = task.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        backend = self.backend()
        loop = import_module("agent.loop")
        run = Run(
            task=task,
            session=self.session,
            door=self.door,
            context=self.context(task),
            backend=backend,
            messages=messages,
            user=self.user,
            must_act=backend.takes_grammar if self._must_act is None else self._must_act,
            limits=self.limits,
            listener=self.listener,
        )
        before, self._running = self._running, run
        try:
            reply: Reply = await loop.run_loop(run)
            return reply
        finally:
            self._running = before

    def backend(self) -> Backend:
        """The model, chosen at the first use. Raises UsageError when there is none to choose."""
        if self._backend is None:
            from agent.progress import weights_progress
            from neuro.backends.choose import choose_backend

            spec = self._model if isinstance(self._model, str) else None
            self._backend = choose_backend(spec, base_url=self._base_url, progress=weights_progress())
        return self._backend

    @property
    def running(self) -> bool:
        return self._running is not None

    @property
    def stopping(self) -> bool:
        """Whether a run has been interrupted and is on its way to its next safe point."""
        return self._running is not None and self._running.interrupted

    def interrupt(self) -> bool:
        """Stop the run in progress at its next safe point; its Reply says ``interrupted``.

        False when there is nothing to stop, or it has been told before."""
        run = self._running
        if run is None or run.interrupted:
            return False
        run.interrupt()
        take_back = getattr(self.door.consent, "interrupt", None)
        if callable(take_back):  # nothing runs while a person is asked, so that is a safe point too
            take_back()
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
            try:
                if self._backend is not None and (self._model is None or isinstance(self._model, str)):
                    await self._backend.aclose()
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


def _unread(message: str) -> ToolResult:
    return ToolResult(secrets.token_hex(5), "", "invalid", message=message)


def _counted(policy: RulesPolicy) -> list[Rule]:
    """The quotas and cooldowns of the policy files, for the one who counts; the policy learns of it."""
    policy.counted = True
    by = {"user": "user", "session": "session", "workspace": "all"}
    week = 7 * 24 * 3600.0
    rules: list[Rule] = [
        Quota(found.tool, found.count, week if found.per == "week" else found.per, cast("By", by[found.by]))
        for found in policy.quotas
    ]
    return rules + [
        Cooldown(found.tool, found.seconds, cast("By", by[found.by])) for found in policy.cooldowns
    ]


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


class Agent:
    """The synchronous twin of AsyncAgent: same arguments and methods, on an event loop in its own thread."""

    def __init__(self, **options: Any) -> None:
        self._agent = AsyncAgent(**options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="quoth-loop", daemon=True)
        self._thread.start()
        self._closed = False

    @property
    def table(self) -> ToolTable:
        return self._agent.table

    @property
    def session(self) -> str:
        return self._agent.session

    @property
    def audit(self) -> Audit:
        return self._agent.audit

    def call(self, form: str | CallForm) -> ToolResult:
        return self._wait(self._agent.call(form, route="python"))

    def eval(self, program: str) -> ToolResult:
        return self._wait(self._agent.eval(program, route="python"))

    def run(self, task: str) -> Reply:
        return self._wait(self._agent.run(task))

    def say(self, text: str) -> Reply:
        return self._wait(self._agent.say(text))

    def forget(self) -> None:
        self._agent.forget()

    def interrupt(self) -> None:
        """Stop the run in progress, from any thread."""
        if not self._closed:
            self._loop.call_soon_threadsafe(self._agent.interrupt)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed or threading.current_thread() is self._thread:
            work.close()
            raise UsageError(
                "This agent is closed."
                if self._closed
                else "A listener or an async tool cannot wait for its own agent; use AsyncAgent there."
            )
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop everything that was started. May be called twice."""
        if self._closed:
            return
        try:
            self._wait(self._agent.aclose())
        finally:
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=10)
            if not self._thread.is_alive():
                self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
