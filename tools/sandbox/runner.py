"""The sandbox: runs a compiled program in Monty workers and passes its inner calls to a function of the
caller.

A run is a tree of paths. The program itself is the path "", and each branch of a ``pmap`` is a path below it.
When a path branches, its whole state is copied (Monty can serialize a suspended program), and every copy
continues in its own worker. So any function can be mapped, and any call in it can wait. A path that waits for
its branches, or that waits while other paths need a worker, is serialized and returns its worker. So programs
that run programs cannot starve each other."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import hy

from quoth.tools.errors import Pending, ToolError, ToolFailure
from quoth.tools.lisp.forms import CallForm, from_model, kebab
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import read_one
from quoth.tools.program.compiler import ANSWER, BRANCH, FAILED, JOIN, Program, ProgramError, alias
from quoth.tools.sandbox.pool import SandboxLimits, WorkerPool
from quoth.tools.sandbox.wall import (
    FORM_NAMES,
    MAX_MESSAGE,
    MAX_NAME,
    _placeholder,
    _text,
    argument,
    bounded,
    entering,
    given,
    host_function,
    host_name,
    packed,
    placeholders,
    raise_wall,
    require_readable,
    runtime_error,
    unpacked,
    with_guards,
)
from quoth.tools.text import short

MAX_OUTPUT = 100_000
MAX_DUMPED = 64 * 1024 * 1024  # bytes of all suspended paths of a program
MAX_AT_ONCE = 8  # branches of one pmap that run in parallel
OWN = (ANSWER, BRANCH, JOIN, FAILED)
VALUES = "values"  # the function that lists the values kept by the session


# Runs an inner call. The name identifies this use of the tool and stays the same when the program is resumed.
# Returns the value, or raises ToolFailure; raises Pending if the program must be suspended.
InnerCall = Callable[[CallForm, str], Awaitable[Any]]
_Answer = dict[str, Any]  # the result of a call, as Monty takes it
# Receives the values that a program leaves: the sandbox's state, and name, type and length of each value.
KeepValues = Callable[[bytes, list[dict[str, Any]]], None]


@dataclass
class _RunState:
    """The state of one run, shared by all its paths."""

    outside: dict[str, str]  # tools, by the names of the host functions
    call: InnerCall
    limits: SandboxLimits
    values: list[dict[str, Any]]
    calls: int = 0
    made: dict[str, Counter[str]] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    failures: list[ToolFailure] = field(default_factory=list)
    answer: Any = None
    dumped: int = 0  # bytes of the suspended paths
    forms: bool = False  # whether a form returned by a call is a form inside, too
    finish: Callable[[Any], Awaitable[None]] | None = None

    def count(self, calls: int = 1) -> None:
        self.calls += calls
        if self.calls > self.limits.calls:
            raise ProgramError("The program was stopped: it exceeded its limit of calls.")

    def name(self, path: str, form: CallForm) -> str:
        """The name of the next use of this call on a path."""
        made = self.made.setdefault(path, Counter())
        made[form.digest] += 1
        return f"{path}{form.digest[:16]}.{made[form.digest]}"

    def written(self) -> dict[str, Any]:
        made = {path: dict(counter) for path, counter in self.made.items()}
        failures = [[failure.status, failure.message] for failure in self.failures]
        return {"calls": self.calls, "made": made, "printed": dict(self.printed), "failures": failures}

    def read(self, state: Mapping[str, Any]) -> None:
        self.calls = state["calls"]
        self.made = {path: Counter(counter) for path, counter in state["made"].items()}
        self.printed = dict(state["printed"])
        self.failures = [ToolFailure(status, message) for status, message in state["failures"]]


@dataclass(frozen=True)
class _Suspended:
    """A suspended path. ``node`` is its state as JSON data, ``messages`` are the questions it waits for."""

    node: dict[str, Any]
    messages: Sequence[str]

    def at(self, run: _RunState, blob: bytes) -> _Suspended:
        """The same with the path's serialized state. If the states of the run exceed MAX_DUMPED, the state is
        left out, and the program will be run again from its beginning."""
        run.dumped += len(blob)
        kept = _text(blob) if run.dumped <= MAX_DUMPED else ""
        return _Suspended({**self.node, "blob": kept}, self.messages)


@dataclass(frozen=True)
class _Branch:
    """The result of a branch of a pmap."""

    value: Any = None
    failure: tuple[str, str] | None = None  # the exception's class and message


class Sandbox(WorkerPool):
    """Runs programs in the workers of a pool until they end or are suspended."""

    _wall = b""  # the state of a new session

    async def run(
        self,
        program: Program,
        names: Iterable[str],
        call: InnerCall,
        *,
        state: Mapping[str, Any] | None = None,
        values: bytes | None = None,
        listing: Sequence[dict[str, Any]] = (),
        keep: KeepValues | None = None,
        unnamed: Collection[str] = (),
    ) -> tuple[Any, str]:
        """Run or resume a program, and return its value and its output. ``call`` runs its inner calls of the
        tools ``names``; hints do not mention the tools ``unnamed``.

        ``state`` is the state of an earlier Pending, to resume from. ``values`` and ``listing`` are what the
        session's last program passed to ``keep``: Monty's state, and name, type and length of each value.
        Raises ProgramError, the ToolFailure of an inner call that the program did not catch, or Pending while
        a call waits. The ``state`` of Pending is empty if it is too large to keep."""
        tools = _by_alias(tuple(names))
        outside = {host_name(name): tool for name, tool in tools.items()}
        run = _RunState(outside, call, self.limits, list(listing), forms=program.forms)
        if keep is not None and (program.globals or program.macros):
            known = dict.fromkeys([*(hy.mangle(value["name"]) for value in listing), *program.globals])
            run.finish = lambda session: _keep(session, known, keep)
        import pydantic_monty as monty

        try:
            if state is not None:
                run.read(state)
                ended = await self._go_on(run, "", state["node"])
            else:

                async def begin(session: Any, printed: Any) -> Any:
                    await self._open(session, values)
                    used = [name for name in tools if name in program.python]
                    return await session.feed_start(
                        with_guards(program.python, used, begun=True, forms=program.forms),
                        inputs={name: host_function(name) for name in map(host_name, used)},
                        external_lookup=_lookup(run),
                        print_callback=printed,
                    )

                ended = await self._drive(run, "", begin)
        except monty.MontyError as error:
            told = [tool for tool in tools.values() if tool not in unnamed]
            raise runtime_error(error, run.failures, told, program.text) from None
        if isinstance(ended, _Suspended):
            # One sentence for each question, because a person decides each separately.
            message = "\n".join(dict.fromkeys(ended.messages))
            state = {**run.written(), "node": ended.node} if run.dumped <= MAX_DUMPED else {}
            raise Pending(message, state=state)
        return run.answer, run.printed.get("", "")

    async def _open(self, session: Any, values: bytes | None) -> None:
        """Start a session with ``values``, or with only the wall, which is built once and then loaded."""
        if values is not None or self._wall:
            await session.load_session(values or self._wall)
        else:
            await raise_wall(session)
            self._wall = await session.dump()

    async def _drive(
        self, run: _RunState, path: str, begin: Callable[[Any, Any], Awaitable[Any]]
    ) -> _Branch | _Suspended:
        """Run a path until it ends or is suspended; its worker may change."""
        import pydantic_monty as monty

        while True:
            printed = monty.CollectString(MAX_OUTPUT)
            earlier = run.printed.get(path, "")
            try:
                async with self.worker() as session:
                    step = await begin(session, printed)
                    ended = await self._until_it_waits(run, path, session, step)
            finally:
                run.printed[path] = (earlier + printed.output)[:MAX_OUTPUT]
            if isinstance(ended, _Branch | _Suspended):
                return ended
            blob, coming = ended
            answer = await coming()
            if isinstance(answer, _Suspended):
                return answer.at(run, blob)
            begin = _resumed(run, blob, answer)

    async def _until_it_waits(
        self, run: _RunState, path: str, session: Any, step: Any
    ) -> _Branch | _Suspended | tuple[bytes, Callable[[], Awaitable[_Answer | _Suspended]]]:
        """Run until the path ends, is suspended, or must return its worker. In the last case, returns its
        serialized state and a function that gets the answer it waits for."""
        import pydantic_monty as monty

        while True:
            if path and (isinstance(step, monty.MontyComplete) or _is(step, ANSWER)):
                raise ProgramError("A branch of the program left its pmap.")
            if isinstance(step, monty.MontyComplete):
                if run.finish is not None:
                    await run.finish(session)
                return _Branch()
            if not isinstance(step, monty.AsyncFunctionSnapshot):
                step = await step.resume_auto()
            elif step.is_os_function:
                step = await step.resume_not_handled()
            elif step.function_name == host_name(ANSWER):
                run.answer = bounded(given(step)[0][0])
                step = await step.resume({"return_value": None})
            elif step.function_name == host_name(BRANCH):
                blob = step.dump()
                return blob, partial(self._branches, run, path, blob, step.args[0])
            elif step.function_name == host_name(JOIN):
                return _Branch(bounded(given(step)[0][0]))
            elif step.function_name == host_name(FAILED):
                return _Branch(
                    failure=(short(str(step.args[0]), MAX_NAME), short(str(step.args[1]), MAX_MESSAGE))
                )
            elif step.function_name in run.outside:
                answer = asyncio.ensure_future(_inner(run, path, step))
                if not await self._done_or_wanted(answer):
                    return step.dump(), partial(_of, answer)
                told: Any = answer.result()
                if isinstance(told, _Suspended):
                    return told.at(run, step.dump())
                step = await step.resume(told)
            elif step.function_name == VALUES:
                step = await step.resume({"return_value": run.values})
            else:
                message = f"name '{step.function_name}' is not defined"
                step = await step.resume({"exc_type": "NameError", "message": message})

    async def _done_or_wanted(self, answer: asyncio.Future[Any]) -> bool:
        """Wait until a call is answered or another path needs a worker. Returns whether it is answered."""
        wanted = self._when_wanted()
        try:
            await asyncio.wait({answer, wanted}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            answer.cancel()
            await asyncio.wait({answer}, timeout=2.0)
            raise
        finally:
            wanted.cancel()
        return answer.done()

    async def _branches(self, run: _RunState, path: str, blob: bytes, number: int) -> _Answer | _Suspended:
        """Run every branch. The answer is the list of their values, or the first failure. If a branch waits,
        the path is suspended after the other branches have ended."""
        run.count(number)
        made = run.made.setdefault(path, Counter())
        made["branches"] += 1
        fork = f"{path}{made['branches']}"
        return await self._join(run, path, blob, fork, [None] * number)

    async def _join(
        self, run: _RunState, path: str, blob: bytes, fork: str, nodes: Sequence[dict[str, Any] | None]
    ) -> _Answer | _Suspended:
        turns = asyncio.Semaphore(MAX_AT_ONCE)

        async def go(place: int, node: dict[str, Any] | None) -> dict[str, Any]:
            below = f"{fork}-{place}/"
            if node is not None and "ended" in node:
                return node
            async with turns:
                if node is None:
                    ended = await self._drive(run, below, _resumed(run, blob, {"return_value": place}))
                else:
                    ended = await self._go_on(run, below, node)
            if isinstance(ended, _Suspended):
                return {**ended.node, "messages": list(ended.messages)}
            return {"ended": True, "value": packed(ended.value), "failure": ended.failure}

        tasks = [asyncio.ensure_future(go(place, node)) for place, node in enumerate(nodes)]
        try:
            await asyncio.wait(tasks)  # a failing branch does not affect the others
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        ended = [task.result() for task in tasks]
        if messages := [message for node in ended for message in node.get("messages", ())]:
            return _Suspended({"at": "branches", "fork": fork, "nodes": ended}, messages)
        for place in range(len(nodes)):  # their output, in order
            below = f"{fork}-{place}/"
            run.printed[path] = (run.printed.get(path, "") + run.printed.pop(below, ""))[:MAX_OUTPUT]
        for node in ended:
            if node["failure"] is not None:
                return _exception(*node["failure"])
        return {"return_value": [unpacked(node["value"]) for node in ended]}

    async def _go_on(self, run: _RunState, path: str, node: Mapping[str, Any]) -> _Branch | _Suspended:
        """Resume a serialized path."""
        blob = base64.b64decode(node["blob"])
        if node["at"] == "branches":
            answer = await self._join(run, path, blob, node["fork"], node["nodes"])
        else:
            form = from_model(read_one(node["form"]))
            for code, data in zip(_values(form), node.get("data", ()), strict=False):
                if isinstance(code, Code):
                    code.data = data
            answer = await _answered(run, form, node["name"])
        if isinstance(answer, _Suspended):
            return answer.at(run, blob)
        return await self._drive(run, path, _resumed(run, blob, answer))


@lru_cache(maxsize=16)
def _by_alias(names: tuple[str, ...]) -> Mapping[str, str]:
    """The tools, by their names inside the sandbox."""
    return {alias(hy.mangle(name)): name for name in names}


def _resumed(run: _RunState, blob: bytes, answer: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    """A function that loads a serialized path into a session and passes it the answer."""

    async def begin(session: Any, printed: Any) -> Any:
        step = await session.load_snapshot(blob, external_lookup=_lookup(run), print_callback=printed)
        return await step.resume(answer)

    return begin


async def _of(answer: asyncio.Future[_Answer | _Suspended]) -> _Answer | _Suspended:
    return await answer


def _is(step: Any, function: str) -> bool:
    return getattr(step, "function_name", None) == host_name(function)


def _lookup(run: _RunState) -> dict[str, Any]:
    return placeholders((*run.outside, *map(host_name, OWN), VALUES))


# Inner calls


async def _inner(run: _RunState, path: str, step: Any) -> _Answer | _Suspended:
    """Run one inner call. Returns its value, or the exception to raise inside the program."""
    tool = run.outside[step.function_name]
    run.count()
    try:
        positional, by_name = given(step)
        named: dict[str, Any] = {}
        for spelt, value in by_name.items():
            if (name := kebab(spelt)) in named or len(name) > MAX_NAME:
                why = "is given twice" if name in named else "is not a valid name"
                raise ProgramError(f"The argument :{short(name, MAX_NAME)} {why}.")
            named[name] = argument(bounded(value))
        form = CallForm(tool, named, tuple(argument(bounded(value)) for value in positional))
        require_readable(form)
    except (ProgramError, ToolError) as error:
        return not_called(tool, error)
    return await _answered(run, form, run.name(path, form))


def not_called(tool: str, error: Exception) -> _Answer:
    return {"exc_type": "ValueError", "message": f"{tool} was not called. {error}"}


def _values(form: CallForm) -> tuple[Any, ...]:
    return (*form.positional, *form.args.values())


async def _answered(run: _RunState, form: CallForm, name: str) -> _Answer | _Suspended:
    try:
        return {"return_value": entering(await run.call(form, name), run.forms)}
    except Pending as pending:
        data = [value.data if isinstance(value, Code) else None for value in _values(form)]
        more = (
            {"data": data} if any(one is not None for one in data) else {}
        )  # data that the text does not contain
        return _Suspended({"at": "call", "form": str(form), "name": name, **more}, [pending.message])
    except ToolFailure as failure:
        run.failures.append(failure)
        kinds = {"denied": "PermissionError", "timeout": "TimeoutError", "invalid": "TypeError"}
        return {"exc_type": kinds.get(failure.status, "RuntimeError"), "message": failure.message}


_EXCEPTIONS = frozenset(
    """ArithmeticError AssertionError AttributeError IndexError KeyError LookupError NameError OSError
    OverflowError PermissionError RecursionError RuntimeError StopIteration TimeoutError TypeError
    UnicodeError ValueError ZeroDivisionError""".split()  # noqa: SIM905
)


def _exception(kind: str, message: str) -> dict[str, Any]:
    """The failure of a branch, as an exception to raise at its pmap."""
    if kind in _EXCEPTIONS:
        return {"exc_type": kind, "message": message}
    return {"exc_type": "RuntimeError", "message": f"{kind}: {message}"}


# Values that a session keeps


async def _keep(session: Any, names: Iterable[str], keep: KeepValues) -> None:
    """Pass to ``keep`` the values that a program leaves for the next program of its session."""
    state = await session.dump()
    known = {host_name(ANSWER): _placeholder}
    step = await session.feed_start(_looks(names), external_lookup=known)
    while getattr(step, "function_name", None) != host_name(ANSWER):
        step = await step.resume_auto()
    rows = [(name, FORM_NAMES.get(kind, kind), length) for name, kind, length in bounded(step.args[0])]
    keep(state, [dict(zip(("name", "type", "length"), row, strict=True)) for row in rows])


def lisp_name(name: str) -> str:
    """A Python name in the program's spelling: ``read_file`` -> ``read-file``."""
    try:
        return str(hy.unmangle(name)).replace("_", "-")
    except KeyError:  # it only looks mangled
        return name


def _looks(names: Iterable[str]) -> str:
    """A program that reports the type and length of each of these values."""
    sized = "__type(%s) in (*__PLAIN[:1], *__PLAIN[-1:], *__MANY[:3], __dict)"
    looks = "\n".join(
        f"try:\n    __seen.append([{lisp_name(name)!r}, __type({name}).__name__,"
        f" __len({name}) if {sized % name} else None])\nexcept NameError:\n    pass"
        for name in names
    )
    return f"__seen = []\n{looks}\n{ANSWER}(__seen)"
