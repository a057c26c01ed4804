"""Dry runs: executes a program on all its paths to find the calls it may run. Only reading calls are run.

A call is run if its tool only reads, it is allowed without a limit, and all its arguments are known. So the
plan matches the existing files. The value of any other call is unknown. If the program decides by an unknown
value, its state is saved and every branch is taken. Data that an earlier call may have written is not read.
Programs are instrumented by tools/dryrun/instrument.py."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from time import monotonic
from typing import Any

import hy

from quoth.tools.call.call import Call, CallPreview, ToolResult, owner
from quoth.tools.call.context import SavedValues, ToolContext
from quoth.tools.call.redaction import SECRET
from quoth.tools.dryrun.call_plan import CallPlan, Event, Note, Planned, Split, make_plan
from quoth.tools.dryrun.instrument import CHOOSE, NOTE, NotFollowedError, for_dry_run
from quoth.tools.dryrun.unknowns import UnknownMarks, digest, hidden
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.lisp.forms import CallForm, canonical, kebab
from quoth.tools.program.compiler import (
    ANSWER,
    TOO_DEEP,
    Program,
    ProgramError,
    alias,
    program_digest,
)
from quoth.tools.sandbox.macros import compile_expanded
from quoth.tools.sandbox.runner import MAX_DUMPED, MAX_OUTPUT, OWN, VALUES, not_called
from quoth.tools.sandbox.wall import (
    MAX_MESSAGE,
    MAX_VALUE,
    argument,
    bounded,
    given,
    host_name,
    placeholders,
    require_readable,
    runtime_error,
    with_guards,
)
from quoth.tools.text import short

MAX_SECONDS = 60.0  # for one dry run, on all paths
MAX_PATHS = 64
MAX_DECISIONS = 20  # unknown decisions in a row
MAX_CALLS = 500  # on all paths
MAX_PROGRAMS = 8  # levels of nested programs
PROGRAMS = "eval"
_NOT_FILES = {"reads", "net", "messages", "asks", "pays"}
_RAISES = {"deny": "PermissionError", "invalid": "TypeError", "unknown": "NameError"}


@dataclass
class _Path:
    """One path: the events found so far, and the file paths that its calls may have written (None: any)."""

    events: list[Event]
    changed: list[str] | None = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)
    decisions: int = 0

    def to(self, events: list[Event]) -> _Path:
        changed = None if self.changed is None else list(self.changed)
        return _Path(events, changed, Counter(self.made), self.decisions + 1)

    def add(self, kind: str, text: str) -> None:
        self.events.append(Note(kind, text))


Begin = Callable[[Any], Awaitable[Any]]


@dataclass
class _Walk:
    """One program being explored: the current path, the paths still to take, and how to resume one."""

    path: _Path
    way: Callable[[bytes, int], Begin]
    todo: list[tuple[Begin, _Path]]
    answers: list[Any] = field(default_factory=list)


async def dry_run(text: str, ctx: ToolContext, call: Call, *, pure: bool = False) -> CallPlan:
    """The plan of the program ``text``, as the body of ``call``. If ``pure``, neither reading tools nor
    guards are run. Raises ToolFailure if the program does not compile."""
    if ctx.sandbox is None or ctx.dispatch is None or ctx.look is None:
        raise ToolError("This agent has no sandbox to run programs in.")
    whose = owner(call) if ctx.snapshots is not None else None
    kept = ctx.snapshots.values(*whose) if ctx.snapshots is not None and whose else None
    try:
        program = await compile_expanded(text, ctx.tool_names, ctx.sandbox, kept)
    except ProgramError as error:
        raise ToolFailure("invalid", str(error)) from None
    look = _DryRun(ctx, pure, kept)
    events: list[Event] = []
    await look.program(program, _Path(events))
    return await asyncio.to_thread(make_plan, program_digest(text), events)


class _DryRun:
    """One dry run, with all programs that run inside it."""

    def __init__(self, ctx: ToolContext, pure: bool, kept: SavedValues | None) -> None:
        assert ctx.sandbox is not None, "asked before"
        self.ctx = ctx
        self.pure = pure
        self.until = monotonic() + MAX_SECONDS
        self.sandbox = ctx.sandbox
        self.marks = UnknownMarks(secrets.token_hex(8))
        self.tools = {alias(hy.mangle(name)): name for name in ctx.tool_names}
        self.kept = kept
        self.paths = self.calls = self.programs = self.chars = 0
        self.secrets: set[str] = set()  # values of declared secrets
        self.dumped = 0
        self.read: dict[str, ToolResult] = {}  # results of the calls run so far
        self.raised: list[ToolFailure] = []  # failures of calls reported to the program

    async def program(self, program: Program, start: _Path) -> list[Any]:
        """Take all paths of a program and return the values at their ends."""
        import pydantic_monty as monty

        functions = (*self.tools, CHOOSE, NOTE)
        try:  # in a thread, because a long program takes a second
            instrumented = await asyncio.to_thread(for_dry_run, program, self.marks.word)
        except NotFollowedError as error:
            start.add("cut", str(error))
            return []
        python = with_guards(instrumented, functions, begun=self.kept is not None, forms=program.forms)
        lookup = placeholders((*map(host_name, (*functions, *OWN)), VALUES))

        async def begin(session: Any) -> Any:
            if self.kept is not None:
                await session.load_session(self.kept.state)
                self._known_functions(program, start)
            return await session.feed_start(python, external_lookup=lookup, print_callback=_quiet())

        def way(blob: bytes, number: int) -> Begin:
            async def go_on(session: Any) -> Any:
                step = await session.load_snapshot(blob, external_lookup=lookup, print_callback=_quiet())
                return await step.resume({"return_value": number})

            return go_on

        walk = _Walk(start, way, [(begin, start)])
        while walk.todo:
            begins, walk.path = walk.todo.pop()
            if self.paths >= MAX_PATHS:
                walk.path.add("cut", f"there are more than {MAX_PATHS} paths")
                continue
            self.paths += 1
            try:
                self._require_time()
                async with self.sandbox.worker() as session:
                    step = await begins(session)
                    while not isinstance(step, monty.MontyComplete):
                        step = await self._step(step, walk)
            except _Cut as cut:
                walk.path.add("cut", str(cut))
            except monty.MontyError as error:
                tools = [tool for tool in self.tools.values() if tool not in self.ctx.unnamed]
                said = str(runtime_error(error, self.raised, tools, program.text))
                kind = "fails"
                if isinstance(error, monty.MontySyntaxError):  # perhaps only because of the added code
                    kind, said = (
                        "cut",
                        said if said == TOO_DEEP else "the program is too long for the sandbox",
                    )
                walk.path.add(kind, self.marks.text(said))
            except ProgramError as error:  # a value that cannot leave the sandbox
                walk.path.add("fails", self.marks.text(str(error)))
        return walk.answers

    async def _step(self, step: Any, walk: _Walk) -> Any:
        """Answer one call from the sandbox to the host."""
        import pydantic_monty as monty

        self._require_time()

        if not isinstance(step, monty.AsyncFunctionSnapshot):
            return await step.resume_auto()
        if step.is_os_function:
            return await step.resume_not_handled()
        name, path = step.function_name.removeprefix(host_name("")), walk.path
        answer: Any = None
        if name == ANSWER:
            walk.answers.append(bounded(given(step)[0][0]))
        elif name == NOTE and step.args[0] == "cut":
            raise _Cut(self._line(step.args[1]))
        elif name == NOTE:
            path.add(str(step.args[0]), self._line(step.args[1]))
        elif name == CHOOSE:
            kind, text, labels = (bounded(value) for value in step.args)
            if path.decisions >= MAX_DECISIONS:
                raise _Cut(f"there are more than {MAX_DECISIONS} unknown decisions in a row")
            split = Split(kind, self._line(text), [(label, []) for label in labels])
            path.events.append(split)
            blob = step.dump()
            self.dumped += len(blob)
            if self.dumped > MAX_DUMPED:
                raise _Cut("its states are too large to follow both ways")
            for number in range(len(labels) - 1, 0, -1):
                walk.todo.append((walk.way(blob, number), path.to(split.ways[number][1])))
            walk.path, answer = path.to(split.ways[0][1]), 0
        elif name == VALUES:
            answer = self.kept.listing if self.kept is not None else []
        elif name in self.tools:
            called = await self._call(self.tools[name], step, path)
            return await step.resume(called)
        else:
            message = f"name '{name}' is not defined"
            return await step.resume({"exc_type": "NameError", "message": message})
        return await step.resume({"return_value": answer})

    async def _call(self, tool: str, step: Any, path: _Path) -> Any:
        """Record one call of the program, and run it if it only reads."""
        assert self.ctx.look is not None, "asked before"
        self._count()
        try:
            positional, by_name = given(step)
            named = {kebab(name): argument(bounded(value)) for name, value in by_name.items()}
            form = CallForm(tool, named, tuple(argument(bounded(value)) for value in positional))
            require_readable(form)
        except (ProgramError, ToolError) as error:
            return not_called(tool, error)
        look = await self.ctx.look(form, self.marks.within, not self.pure)
        planned = self._planned(look, path)
        self.chars += len(planned.node["call"])
        if self.chars > MAX_VALUE:
            raise _Cut(f"its calls are longer than {MAX_VALUE} characters")
        path.events.append(planned)
        path.made[tool] += 1
        if look.verdict in _RAISES:
            said = f"{tool} would be denied: {look.reason}." if look.verdict == "deny" else look.reason
            return self._raise(_RAISES[look.verdict], said)
        unknown = self.marks.within([*look.form.args.values()])
        if tool == PROGRAMS and not unknown:
            return await self._inner(look, planned, path)
        if tool == PROGRAMS:
            path.add("lost", "it runs a program that is unknown so far")
        if not self.pure and not unknown and self._may_read(look, path):
            return await self._read(look, planned)
        self._changes(look, path)
        return {"return_value": self.marks.of_call(self._shown(look))}

    def _require_time(self) -> None:
        if monotonic() > self.until:
            raise _Cut(f"the dry run took longer than {MAX_SECONDS:g} s")

    def _count(self) -> None:
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise _Cut(f"there are more than {MAX_CALLS} calls")

    def _may_read(self, look: CallPreview, path: _Path) -> bool:
        """Whether the call is run. A call with a limit is not, because a dry run must not use up the
        limit."""
        harmless = set(look.effects) <= {"reads"} and look.cost != "expensive" and look.form.tool != PROGRAMS
        if not harmless or look.verdict != "allow" or look.left or look.gate:
            return False
        if not look.effects or path.changed == []:
            return True
        if path.changed is None or look.paths is None:
            return False
        return not any(_overlap(one, other) for one in look.paths for other in path.changed)

    async def _read(self, look: CallPreview, planned: Planned) -> dict[str, Any]:
        assert self.ctx.dispatch is not None, "asked before"
        digest = look.form.digest
        result = self.read.get(digest)
        if result is None:
            result = await self.ctx.dispatch(look.form, f"dry-{digest[:16]}", dry=True)
            self.read[digest] = result
        planned.node["made"] = result.status
        if result.ok:
            return {"return_value": result.value}
        kinds = {"denied": "PermissionError", "timeout": "TimeoutError", "invalid": "TypeError"}
        said = f"{short(result.message, MAX_MESSAGE)} (in {short(canonical(self._shown(look)), 300)})"
        return self._raise(kinds.get(result.status, "RuntimeError"), said)

    def _raise(self, kind: str, said: str) -> dict[str, Any]:
        self.raised.append(ToolFailure("error", said))
        return {"exc_type": kind, "message": said}

    def _changes(self, look: CallPreview, path: _Path) -> None:
        """Record the paths that a call that was not run may change."""
        felt = set(look.effects) - _NOT_FILES
        if not felt:
            return
        if felt == {"writes"} and look.paths is not None and path.changed is not None:
            path.changed.extend(look.paths)
        else:
            path.changed = None

    async def _inner(self, look: CallPreview, planned: Planned, path: _Path) -> dict[str, Any]:
        """Explore a program inside the program."""
        if look.form.args.get("dry-run", False):
            return {"return_value": self.marks.of_call(self._shown(look))}
        if self.programs >= MAX_PROGRAMS:
            raise _Cut(f"programs are nested deeper than {MAX_PROGRAMS} levels")
        try:
            text = str(look.form.args.get("form", ""))
            program = await compile_expanded(text, self.ctx.tool_names, self.sandbox, self.kept)
        except ProgramError as error:
            return self._raise("TypeError", str(error))
        self.programs += 1
        inside = _Path(planned.inside, path.changed, path.made, path.decisions)
        try:
            paths = self.paths
            answers = await self.program(program, inside)
        finally:
            self.programs -= 1
        effects = [effect for event in planned.inside for effect in _effects(event)]
        if set(effects) - _NOT_FILES:
            path.changed = None
        if self.paths == paths + 1 and len(answers) == 1:
            return {"return_value": answers[0]}
        last = planned.inside[-1] if planned.inside else None
        if self.paths == paths + 1 and isinstance(last, Note) and last.kind == "fails":
            return self._raise("RuntimeError", last.text)
        return {"return_value": self.marks.of_call(self._shown(look))}

    def _line(self, text: Any) -> str:
        line = short(" ".join(self._without_secrets(self.marks.text(str(text))).split()), 300)
        self.chars += len(line)
        if self.chars > MAX_VALUE:
            raise _Cut(f"its plan is longer than {MAX_VALUE} characters")
        return line

    def _without_secrets(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, SECRET)
        return text

    def _planned(self, look: CallPreview, path: _Path) -> Planned:
        values = (look.form.args.get(name) for name in look.secret)
        self.secrets.update(value for value in values if isinstance(value, str) and len(value) > 3)
        left = []
        for one in look.left:
            count = one.count
            left.append(
                one.words if count is None else f"{max(0, count - path.made[look.form.tool])} {one.words}"
            )
        shown = self._shown(look)
        node = {
            "call": str(shown),
            "tool": look.form.tool,
            "verdict": look.verdict,
            "reason": self._without_secrets(look.reason),
            "effects": list(look.effects),
            "cost": look.cost,
            "left": left,
            "made": "",
        }
        if look.verdict != "ask":
            return Planned(node)
        patterns = {name: self.marks.pattern(value) for name, value in sorted(look.form.args.items())}
        args = {name: hidden(one) if name in look.secret else one for name, one in patterns.items()}
        shape = {"tool": look.form.tool, "version": look.version, "args": args}
        return Planned(node, shape | ({"leads": digest(look.leads)} if look.leads else {}))

    def _shown(self, look: CallPreview) -> CallForm:
        """A call as shown to people."""
        shown = self.marks.shown_form(look.form)
        args = {name: SECRET if name in look.secret else value for name, value in shown.args.items()}
        return CallForm(shown.tool, args, shown.positional)

    def _known_functions(self, program: Program, path: _Path) -> None:
        """Record the functions defined by earlier programs of the session: these are not instrumented."""
        for row in self.kept.listing if self.kept is not None else ():
            name = str(hy.mangle(row["name"]))
            if row["type"] == "function" and name not in program.globals and f"{name}(" in program.python:
                path.add("lost", f"{row['name']} was defined by an earlier program of the session")


class _Cut(Exception):
    """Raised to stop following the current path."""


def _effects(event: Event) -> list[str]:
    if isinstance(event, Planned):
        own = [] if event.node["made"] else list(event.node["effects"])
        return own + [effect for inner in event.inside for effect in _effects(inner)]
    if isinstance(event, Split):
        return [effect for _, way in event.ways for inner in way for effect in _effects(inner)]
    return []


def _overlap(one: str, other: str) -> bool:
    """Whether one file path may be inside the other."""
    parts, others = (tuple(p for p in PurePosixPath(path).parts if p != ".") for path in (one, other))
    if ".." in (*parts, *others) or one.startswith(("/", "~")) or other.startswith(("/", "~")):
        return True
    shorter = min(len(parts), len(others))
    return parts[:shorter] == others[:shorter]


def _quiet() -> Any:
    import pydantic_monty as monty

    return monty.CollectString(MAX_OUTPUT)
