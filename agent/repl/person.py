"""The module of the person at the prompt: Hy without a fence, on their own machine, in a thread of its own.

Only what a person has typed, or a file that they have named or trusted, is evaluated here. Nothing that a
model, a tool or another program says may become a ``text`` of this file; programs of models run in the
sandbox and see none of these names. Knows no terminal.
"""

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
from dataclasses import dataclass, field
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
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable

MODULE = "quoth_person"
PATIENCE = 1.0  # seconds in which a form that Ctrl-C has reached ends
_KEPT = 200  # entries whose text a traceback can show
_SETUP = "(require quoth [def-cognitive-tool def-shell-tool def-http-tool])"


@dataclass
class EntryOutcome:
    """What came of an entry: a value or an exception, and the results of the calls that it has made."""

    value: Any = None
    error: BaseException | None = None
    results: list[ToolResult] = field(default_factory=list)
    printed: str = ""  # the value as text


class LeftBehind(UsageError):
    """A form does not end although Ctrl-C has reached it; its thread goes on without the prompt."""


class _PromptTable(ToolTable):
    """The agent's table as the forms of the prompt see it: a tool that was made here may be made again."""

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
    """The names, macros and tools of the prompt. ``show`` turns a value into text, in the thread of the
    form, so that Ctrl-C ends that too."""

    def __init__(
        self, agent: AsyncAgent, loop: asyncio.AbstractEventLoop, show: Callable[[Any], str]
    ) -> None:
        self.agent = agent
        self.changed = False  # whether a tool was made that the agent's parts do not know of yet
        self._show = show
        self._caller = FormCaller(self._made, loop)
        self._placed: dict[str, ToolFunction] = {}
        self._worker = _Worker()
        self._given: dict[str, Any] = {}  # what the prompt has by itself
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
        """Give each tool its name, unless the person has given that another meaning."""
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
        """Whether a name, as it is written, has a value here. What Python itself has does not count, and
        neither does the name of a tool: ``more`` and ``search`` are words of a person, too."""
        import hy

        mangled = hy.mangle(name)
        own = mangled in self.names and self.names[mangled] is not self._placed.get(mangled)
        return own and not name.startswith("__")

    def bound(self) -> Mapping[str, Any]:
        """The names, as they are written, with their values: of tools, variables, functions and macros."""
        self.prepare()
        macros = getattr(self.module, "_hy_macros", {})
        return {
            _written(name): value
            for name, value in {**macros, **self.names}.items()
            if not name.startswith(("__", "_hy_"))
        }

    def prepare(self) -> None:
        """Bind what every prompt has: macros and helpers. Once; it loads Hy's compiler."""
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
        """Bind a value that was shown to ``_`` and ``*1``, and those before it to ``*2`` and ``*3``."""
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
        """Evaluate all forms of an entry, or of a file that is called ``name``, and return what came of the
        last. Raises LeftBehind after Ctrl-C for one that does not end."""
        if not name:
            self._count += 1
            name = f"<entry {self._count}>"
        self._keep(name, text)
        return await self.do(lambda: self._evaluated(text, name))

    async def load(self, path: Path) -> Loaded:
        """Load a file of tools, whose names and macros join those of the prompt. Raises UsageError."""
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
        """Have work done in the thread of the forms, where Ctrl-C ends it. Raises LeftBehind."""
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
        """The files that tools and names came from."""
        self.prepare()
        return LoadedFiles(self.agent, self.names, self.module.__dict__.setdefault("_hy_macros", {}))

    async def _break_off(self, job: _Job, done: asyncio.Future[None]) -> None:
        if not self._caller.interrupt():
            self._worker.interrupt(job)
        await asyncio.wait([done], timeout=PATIENCE)
        if not done.done():
            self._worker = _Worker()
            raise LeftBehind(
                "The form has not stopped: it waits in code that Ctrl-C cannot reach. It is left behind, and "
                "what it still does may show later."
            )

    def _evaluated(self, text: str, name: str) -> EntryOutcome:
        """In the thread of the forms: what came of an entry."""
        import hy
        from hy.compiler import hy_eval

        outcome = EntryOutcome()
        self._caller.results = outcome.results
        try:
            self.prepare()
            if long := long_number(text):
                most = sys.get_int_max_str_digits()
                raise UsageError(f"The number {long[:20]}… has more than {most} digits; write it as a text.")
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
        except BaseException as error:  # also SystemExit, and KeyboardInterrupt of Ctrl-C
            outcome.error = error
            self.fail(error)
        return outcome

    def _rewritten(self, form: Any) -> Any:
        """The form with the idioms of programs rewritten to Hy; a name that the person has defined wins."""
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
    """A name of Python as a person of Lisp writes it: ``read-file`` for ``read_file``."""
    import hy

    plain = str(hy.unmangle(name))
    return plain[:1] + plain[1:].replace("_", "-")


def _leave(code: int = 0) -> None:
    """Leave the prompt, as ``,quit`` does."""
    raise SystemExit(code)


class _Job:
    """Work for the thread, and what came of it."""

    def __init__(self, work: Callable[[], EntryOutcome]) -> None:
        self.work = work
        self.outcome = EntryOutcome()


class _Worker:
    """One daemon thread for all forms, since some values live in the thread that made them, as connections
    of sqlite3 do."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[_Job, Callable[[], None]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._now: _Job | None = None

    def give(self, job: _Job) -> asyncio.Future[None]:
        """Have it done; the future is settled on the loop of the caller."""
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
            with contextlib.suppress(KeyboardInterrupt):  # one that came too late for its form
                job, tell = self._jobs.get()
                try:
                    with self._lock:
                        self._now = job
                    job.outcome = job.work()
                except BaseException as error:  # what loading a file raises, or Ctrl-C
                    job.outcome = EntryOutcome(error=error)
                finally:
                    with self._lock:
                        self._now = None
                    tell()

    def interrupt(self, job: _Job) -> None:
        """Raise KeyboardInterrupt in a job that is being done."""
        with self._lock:
            if self._now is job and self._thread is not None and self._thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident), ctypes.py_object(KeyboardInterrupt)
                )
