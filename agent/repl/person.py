"""The module of the person at the prompt: unrestricted Hy, on their own machine, in its own thread.

Evaluates only text that a person typed, or a file that they named or trusted. A text of a model, a tool or
another program must never become the argument ``text`` of this file. Programs of models run in the sandbox
and see none of these names."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import ctypes
import linecache
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from quoth.agent.client import AsyncAgent
from quoth.agent.repl.entries import long_number
from quoth.agent.repl.functions import FormCaller, ToolFunction, helpers
from quoth.agent.repl.loaded import Loaded, LoadedFiles
from quoth.tools.call.call import ToolResult
from quoth.tools.errors import UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable

MODULE = "quoth_person"
PATIENCE = 1.0  # seconds that a form may take to end after Ctrl-C
_KEPT = 200  # number of entries whose text a traceback can show
_SETUP = "(require quoth [def-cognitive-tool def-shell-tool def-http-tool])"


@dataclass
class EntryOutcome:
    """The outcome of an entry: a value or an exception, and the results of its calls."""

    value: Any = None
    error: BaseException | None = None
    results: list[ToolResult] = field(default_factory=list)
    printed: str = ""  # the value as text


class LeftBehind(UsageError):
    """A form did not end after Ctrl-C; its thread continues without the prompt."""


class _PromptTable(ToolTable):
    """The agent's table for forms of the prompt, which may define their own tools again."""

    def __init__(self, person: PromptNames) -> None:
        super().__init__()
        self._person = person

    def register(self, tool: CognitiveTool, *, replace: bool = False) -> CognitiveTool:
        table = self._person.agent.table
        known = table.find(tool.name)
        again = known is not None and known.module == tool.module and known.name == tool.name
        table.register(tool, replace=replace or again)
        self._person.place_tools()
        self._person.changed = True
        return tool


class PromptNames:
    """The names, macros and tools of the prompt. ``show`` turns a value into text; it runs in the thread of
    the forms, so that Ctrl-C can stop it too."""

    def __init__(
        self, agent: AsyncAgent, loop: asyncio.AbstractEventLoop, show: Callable[[Any], str]
    ) -> None:
        self.agent = agent
        self.changed = False  # whether the agent's parts lack a newly defined tool
        self._show = show
        self._caller = FormCaller(self._made, loop)
        self._placed: dict[str, ToolFunction] = {}
        self._worker = _Worker()
        self._given: dict[str, Any] = {}  # the prompt's own names
        self._count = 0
        self._ready = False
        self.module = ModuleType(MODULE)
        self.names: dict[str, Any] = vars(self.module)
        self.names["__builtins__"] = builtins
        self.names |= {"exit": _leave, "quit": _leave}
        self.place_tools()

    async def _made(self, form: CallForm) -> ToolResult:
        return await self.agent.call(form, route="repl")

    # Names

    def place_tools(self) -> None:
        """Bind each tool to its name, unless the person bound the name to another value."""
        import hy

        wanted = {hy.mangle(name): name for name in self.agent.table.names()}
        for mangled in self._placed.keys() - wanted.keys():
            if self.names.get(mangled) is self._placed[mangled]:
                del self.names[mangled]
            del self._placed[mangled]
        for mangled, name in wanted.items():
            if mangled not in self._placed and mangled not in self.names:
                function = ToolFunction(name, lambda: self.agent.table, self._caller)
                self.names[mangled] = self._placed[mangled] = function

    def is_bound(self, name: str) -> bool:
        """Whether a name, in Hy's spelling, has a value here. Python's builtins and names of tools do not
        count, because words such as ``more`` and ``search`` may be prose."""
        import hy

        mangled = hy.mangle(name)
        own = mangled in self.names and self.names[mangled] is not self._placed.get(mangled)
        return own and not name.startswith("__")

    def bound(self) -> Mapping[str, Any]:
        """The names of tools, variables, functions and macros, in Hy's spelling, with their values."""
        self.prepare()
        macros = getattr(self.module, "_hy_macros", {})
        return {
            _written(name): value
            for name, value in {**macros, **self.names}.items()
            if not name.startswith(("__", "_hy_"))
        }

    def prepare(self) -> None:
        """Bind the macros and helpers of every prompt, once; this loads Hy's compiler."""
        if self._ready:
            return
        self._ready = True
        import hy

        sys.modules[MODULE] = self.module
        self.names["hy"] = hy
        for form in hy.read_many(_SETUP):
            hy.eval(form, module=self.module)
        for name, helper in helpers(self.module, lambda: self.agent.table).items():
            self._given[hy.mangle(name)] = self.names.setdefault(hy.mangle(name), helper)

    def remember(self, value: Any) -> None:
        """Bind the last shown value to ``_`` and ``*1``, and the values before it to ``*2`` and ``*3``."""
        import hy

        stars = [hy.mangle(f"*{number}") for number in (1, 2, 3)]
        for newer, older in zip(stars[-2::-1], stars[:0:-1], strict=True):
            if newer in self.names:
                self.names[older] = self.names[newer]
        self.names[stars[0]] = self.names["_"] = value

    def fail(self, error: BaseException) -> None:
        """Bind the last exception to ``*e``."""
        import hy

        self.names[hy.mangle("*e")] = error

    # Evaluating

    async def evaluate(self, text: str, name: str = "") -> EntryOutcome:
        """Evaluate all forms of an entry, or of the file ``name``, and return the outcome of the last form.
        Raises LeftBehind for a form that does not end after Ctrl-C."""
        if not name:
            self._count += 1
            name = f"<entry {self._count}>"
        self._keep(name, text)
        return await self.do(lambda: self._evaluated(text, name))

    async def load(self, path: Path) -> Loaded:
        """Load a file of tools, and add its names and macros to the prompt. Raises UsageError."""
        loaded: list[Loaded] = []

        def work() -> EntryOutcome:
            loaded.append(self.files.load(path))
            return EntryOutcome()

        outcome = await self.do(work)
        if outcome.error is not None:
            raise outcome.error
        self.agent.runs.use_tools(loaded[0].table)
        self.place_tools()
        return loaded[0]

    async def do(self, work: Callable[[], EntryOutcome]) -> EntryOutcome:
        """Run work in the thread of the forms, where Ctrl-C can end it. Raises LeftBehind."""
        job = _Job(work)
        done = self._worker.give(job)
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            await self._break_off(job, done)
            raise
        finally:
            if self.changed:
                self.changed = False
                self.agent.runs.use_tools(self.agent.table)
        return job.outcome

    @cached_property
    def files(self) -> LoadedFiles:
        """The files from which tools and names were loaded."""
        self.prepare()
        return LoadedFiles(self.agent, self.names, self.module.__dict__.setdefault("_hy_macros", {}))

    async def _break_off(self, job: _Job, done: asyncio.Future[None]) -> None:
        if not self._caller.interrupt():
            self._worker.interrupt(job)
        await asyncio.wait([done], timeout=PATIENCE)
        if not done.done():
            self._worker = _Worker()
            raise LeftBehind(
                "The form did not stop: it waits in code that Ctrl-C cannot interrupt. It continues in the "
                "background, so its output may appear later."
            )

    def _evaluated(self, text: str, name: str) -> EntryOutcome:
        """The outcome of an entry; called in the thread of the forms."""
        import hy
        from hy.compiler import hy_eval

        outcome = EntryOutcome()
        self._caller.results = outcome.results
        try:
            self.prepare()
            if long := long_number(text):
                most = sys.get_int_max_str_digits()
                raise UsageError(f"The number {long[:20]}… has more than {most} digits. Write it as a text.")
            with registering_in(_PromptTable(self)):
                for form in hy.read_many(text, filename=name):
                    outcome.value = hy_eval(
                        self._rewritten(form),
                        self.names,
                        self.module,
                        filename=name,
                        source=text,
                        import_stdlib=False,
                    )
            if outcome.value is not None:
                outcome.printed = self._show(outcome.value)
                self.remember(outcome.value)
        except BaseException as error:  # includes SystemExit, and KeyboardInterrupt of Ctrl-C
            outcome.error = error
            self.fail(error)
        return outcome

    def _rewritten(self, form: Any) -> Any:
        """The form with the idioms of programs rewritten to Hy, except names that the person defined."""
        import hy

        from quoth.tools.program.rewriter import rewrite_typed

        macros = getattr(self.module, "_hy_macros", {})

        def expand(node: Any) -> Any:
            macro = macros.get(hy.mangle(node[0]))
            if macro is None:
                return node
            return hy.macroexpand_1(node, self.module) if macro.__module__ == MODULE else None

        own = (name for name, value in self.names.items() if value is not self._given.get(name))
        return rewrite_typed(form, {*own, *self._placed, *macros}, expand)

    def _keep(self, name: str, text: str) -> None:
        """Let tracebacks show the lines of an entry."""
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        linecache.cache.pop(f"<entry {self._count - _KEPT}>", None)


def _written(name: str) -> str:
    """A Python name in Hy's spelling: ``read-file`` for ``read_file``."""
    import hy

    plain = str(hy.unmangle(name))
    return plain[:1] + plain[1:].replace("_", "-")


def _leave(code: int = 0) -> None:
    """Leave the prompt, as ``,quit`` does."""
    raise SystemExit(code)


class _Job:
    """Work for the thread, and its outcome."""

    def __init__(self, work: Callable[[], EntryOutcome]) -> None:
        self.work = work
        self.outcome = EntryOutcome()


class _Worker:
    """One daemon thread for all forms, because some values are bound to their thread, such as connections of
    sqlite3."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[_Job, Callable[[], None]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._now: _Job | None = None

    def give(self, job: _Job) -> asyncio.Future[None]:
        """Queue work; its future is completed on the caller's loop."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle)

        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="quoth-forms", daemon=True)
            self._thread.start()
        self._jobs.put((job, tell))
        return done

    def _run(self) -> None:
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C came after the end of its form
                job, tell = self._jobs.get()
                try:
                    with self._lock:
                        self._now = job
                    job.outcome = job.work()
                except BaseException as error:  # an error of loading a file, or Ctrl-C
                    job.outcome = EntryOutcome(error=error)
                finally:
                    with self._lock:
                        self._now = None
                    tell()

    def interrupt(self, job: _Job) -> None:
        """Raise KeyboardInterrupt in a running job."""
        with self._lock:
            if self._now is job and self._thread is not None and self._thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident), ctypes.py_object(KeyboardInterrupt)
                )
