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
from typing import Any, Literal, Self, TypeVar

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
from tools.program import Sandbox
from tools.sexp import ReadError, read_one
from tools.store import Store, state_dir, store_path
from tools.table import ToolTable
from tools.workspace import Workspace

T = TypeVar("T")


class AsyncAgent:
    """An agent in a workspace. Use it as an async context manager, or call ``aclose``.

    ``workspace`` is the one folder its file tools may touch. ``tools`` are ``.hy`` files or CognitiveTools beside
    those that ship (``table`` replaces them all). ``model`` is a spec (``local``, ``openai:…``, ``scripted:…``), a
    Backend, or None for the default, chosen at the first run. ``consent`` answers what policy and guards ask:
    ``"yes"``, an object with ``request``, or None (such a call is pending). Raises UsageError for what cannot be
    used, with a sentence.
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
        limits: RunLimits | None = None,
        listener: Listener | None = None,
        must_act: bool | None = None,
    ) -> None:
        root = Path(workspace)
        if not root.is_dir():
            raise UsageError(f"The workspace {root} is not a folder.")
        self.workspace = Workspace(root, protected=(state_dir(), cache_dir()))
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
        self.audit = audit or StoreAudit(self._opened_store)
        self.door = Door(
            self.table,
            consent=SayYes() if consent == "yes" else consent,
            gate=gate,
            audit=self.audit,
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
        """One call form through the door, without a model. A form that cannot be read is an ``invalid`` result."""
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
        """A Lisp program in the sandbox: a call of the ``eval`` tool; its inner calls pass the door one by one."""
        return await self.call(CallForm("eval", {"form": Code(program)}), route=route)

    async def run(self, task: str) -> Reply:
        """One task through the loop, in a new conversation."""
        return await self._go(task, None)

    async def say(self, text: str) -> Reply:
        """The next message of the conversation that ``say`` keeps; for a REPL."""
        return await self._go(text, self._conversation)

    def forget(self) -> None:
        """Begin a new conversation at the next ``say``."""
        self._conversation = None

    async def _go(self, task: str, conversation: Messages | None) -> Reply:
        if not task.strip():
            raise UsageError("The task is empty.")
        backend = self.backend()
        think = import_module("neuro.think")
        loop = import_module("agent.loop")
        messages = conversation if conversation is not None else think.begin_conversation(self.table)
        self._conversation = messages
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
        self._running = run
        try:
            reply: Reply = await loop.run_loop(run)
            return reply
        finally:
            self._running = None

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

    def interrupt(self) -> None:
        """Stop the run in progress at its next safe point; its Reply says ``interrupted``."""
        if self._running is not None:
            self._running.interrupt()

    async def aclose(self) -> None:
        """Stop everything that was started. May be called twice."""
        await self._sandbox.aclose()
        if self._backend is not None and (isinstance(self._model, str) or self._model is None):
            await self._backend.aclose()
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


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


class Agent:
    """The synchronous twin of AsyncAgent: same arguments, same methods, on an event loop in a thread of its own."""

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

    def interrupt(self) -> None:
        self._loop.call_soon_threadsafe(self._agent.interrupt)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed:
            work.close()
            raise UsageError("This agent is closed.")
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
        self._wait(self._agent.aclose())
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
