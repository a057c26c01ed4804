"""Lisp programs: read, check, compile, run in the sandbox, with every inner call handed back to the host.

Knows the form of programs and the Monty sandbox; it knows no door: whoever runs a program says what a call
means. Compiling Hy expands macros, and expanding the wrong macro runs code in this process; so every node is
checked against an allow-list before Hy sees it, and a new version of Hy adds nothing in silence.
"""

from __future__ import annotations

import ast
import asyncio
import atexit
import builtins
import time
import types
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import hy
import hy.models as m
from hy.compiler import hy_compile

from tools import teach
from tools.context import Status, ToolContext, ToolError, ToolFailure
from tools.form import MAX_DEPTH, CallForm, canonical, kebab
from tools.idioms import rewrite
from tools.sexp import Limits, ReadError, read_all

# Core macros whose expansion is pure: it makes Python syntax and runs nothing while compiling.
PURE_MACROS = frozenset(
    hy.mangle(name)
    for name in """
    and or not is is-not in not-in if cond when do let setv setx fn defn return for while break continue
    lfor sfor dfor gfor get cut del chainc try except else finally raise assert match import
    global nonlocal unpack-iterable unpack-mapping annotate . defclass
    + - * / // % ** @ & | ^ << >> bnot < <= > >= = !=
    += -= *= /= //= %= **= &= |= ^= <<= >>=
    """.split()  # noqa: SIM905
)
INSTEAD = {
    "quote": 'write a text as f"…" outside of it',
    "quasiquote": "write a list as [1 2]",
    "with": "call read-file instead of opening files",
    "require": "only functions can be used here",
    "do_mac": "nothing runs while a program is compiled",
    "eval_and_compile": "nothing runs while a program is compiled",
    "eval_when_compile": "nothing runs while a program is compiled",
    "py": "write Lisp",
    "pys": "write Lisp",
}
# Expanding a macro copies all that is inside it, so the cost of compiling is the number of nodes times their
# depth.
MAX_WORK = 30_000
# Where the program's value is handed over: as an argument it keeps shared parts shared, while the sandbox's
# own result writes them out again and again. A program cannot say this name.
_ANSWER = "__answer"
_ITEMS = "__items"  # nor this one
PROGRAM_LIMITS = Limits(max_chars=100_000, max_depth=60, max_forms=10_000, max_digits=1000, booleans=True)
MAX_OUTPUT = 100_000
MAX_VALUE = 2_000_000  # characters of a value that crosses the sandbox's wall, or of an argument
MAX_MESSAGE = 2_000
MAX_WORKERS = 32  # a program that runs a program keeps its worker meanwhile, so the number of CPUs is too few


class ProgramError(ToolError):
    """The program cannot be run as it is; the text gives line, column, the line itself and a caret."""


@dataclass(frozen=True)
class Program:
    """A checked and compiled program: its text and the Python the sandbox will run."""

    text: str
    python: str


@dataclass(frozen=True)
class SandboxLimits:
    """Bounds of one run: seconds of execution (waiting for calls not counted), bytes, call depth, inner
    calls."""

    seconds: float = 5.0
    memory: int = 128 * 1024 * 1024
    recursion: int = 200
    calls: int = 500


class InnerFailure(Exception):
    """An inner call did not end ok. In the sandbox it is an exception the program may catch."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def compile_program(text: str, names: Iterable[str] = ()) -> Program:
    """Read, rewrite, check and compile. ``names`` are the tools'. Raises ProgramError, with a caret."""
    names = tuple(names)
    try:
        forms = read_all(text, PROGRAM_LIMITS)
    except ReadError as error:
        lesson = teach.unreadable(text, error)
        if lesson is not None:
            raise _at(text, lesson.line, lesson.column, lesson.message) from None
        raise ProgramError(f"{error}\n{error.caret()}") from None
    if not forms:
        raise ProgramError("The program is empty.")
    try:
        forms = rewrite(forms, names)
        lesson = teach.spot(forms, text, names)
    except RecursionError:
        raise ProgramError(_TOO_DEEP) from None
    if lesson is not None:
        raise _at(text, lesson.line, lesson.column, lesson.message)
    for form in forms:  # after the rewriting: nothing comes into a program that is not checked
        check(form, text)
    try:
        whole = m.Expression([m.Symbol("do"), *forms]).replace(forms[0], recursive=False)
        body, value = hy_compile(
            whole, types.ModuleType("program"), get_expr=True, import_stdlib=False, source=text
        )
        uses_hy = any(isinstance(n, ast.Name) and n.id == "hy" for t in (body, value) for n in ast.walk(t))
        statements, answer = (ast.unparse(_Fitted().visit(tree)) for tree in (body, value))
    except RecursionError:
        raise ProgramError(_TOO_DEEP) from None
    except ProgramError:
        raise
    except Exception as error:
        if "maximum recursion depth" in str(error):  # Hy wraps what a macro raises
            raise ProgramError(_TOO_DEEP) from None
        raise _compile_error(error, text) from None
    if uses_hy:
        raise ProgramError('Keywords are only argument names in a program; a text is written "name".')
    return Program(text, f"{statements}\n{_ANSWER}({answer})")


_TOO_DEEP = "The program is nested too deeply, or one operator has too many operands."

# The sandbox has Python's builtins; a tool of the same name (eval) goes by another one inside.
_BUILTINS = frozenset(dir(builtins))


def _alias(name: str) -> str:
    return f"TOOL_{name}" if name in _BUILTINS else name  # no tool has a name in capitals


class _Fitted(ast.NodeTransformer):
    """What Hy makes, as the sandbox takes it: ``eval`` means the tool, and a comprehension with statements in
    it, which Hy writes as a generator, collects its items in a list."""

    inside = 0  # so many functions

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if not self.inside:
            raise ProgramError(
                "return stands outside of a function; a program's value is that of its last form."
            )
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.inside += 1
        self.generic_visit(node)
        self.inside -= 1
        if any(isinstance(inner, ast.Yield) for inner in ast.walk(node)):  # a program itself cannot say yield
            node.body = [
                *ast.parse(f"{_ITEMS} = []").body,
                *(_Collected().visit(statement) for statement in node.body),
                *ast.parse(f"return {_ITEMS}").body,
            ]
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(_alias(node.id), node.ctx), node) if node.id == "eval" else node


class _Collected(ast.NodeTransformer):
    def visit_Yield(self, node: ast.Yield) -> ast.Call:
        items = ast.Attribute(ast.Name(_ITEMS, ast.Load()), "append", ast.Load())
        return ast.copy_location(ast.Call(items, [node.value or ast.Constant(None)], []), node)


def check(form: Any, text: str) -> None:
    """Refuse every node whose compilation could reach this process, or would take too long. The walk keeps
    its own stack."""
    pending, work = [(form, 0)], 0
    while pending:
        node, depth = pending.pop()
        work += depth
        if work > MAX_WORK:
            raise _refusal(
                form, text, "the program has too many forms inside forms; make parts of it functions"
            )
        if isinstance(node, m.Symbol):
            _check_symbol(node, text)
        elif isinstance(node, m.Expression) and node and isinstance(node[0], m.Symbol):
            _check_head(node, text)
        if isinstance(node, m.Sequence):
            pending.extend((item, depth + isinstance(node, m.Expression)) for item in node)


def _check_symbol(node: Any, text: str) -> None:
    """No name leads to Hy's own module or to Python's internals, however it is spelt."""
    for part in str(node).split("."):
        try:
            name = hy.mangle(part) if part else ""
        except Exception:
            raise _refusal(node, text, f"{part} is no name") from None
        if name == "hy":
            raise _refusal(node, text, "the module hy cannot be reached from a program")
        if name.startswith(("__", "_hy")):
            raise _refusal(node, text, f"{part} is internal and cannot be used in a program")


def _check_head(node: Any, text: str) -> None:
    name = hy.mangle(str(node[0])) if str(node[0]).strip(".") else str(node[0])
    name = hy.mangle(name) if name == "." else name
    if name in _core_macros() and name not in PURE_MACROS:
        hint = INSTEAD.get(name)
        raise _refusal(node[0], text, f"{node[0]} cannot be used in a program", hint)


def _core_macros() -> dict[str, Any]:
    macros: dict[str, Any] = getattr(builtins, "_hy_macros", {})
    return macros


def _refusal(node: Any, text: str, why: str, hint: str | None = None) -> ProgramError:
    line, column = getattr(node, "start_line", 1) or 1, getattr(node, "start_column", 1) or 1
    return _at(text, line, column, why + (f"; {hint}" if hint else ""))


def _at(text: str, line: int, column: int, why: str) -> ProgramError:
    lines = text.split("\n")
    error = ReadError(why, line, column, source_line=lines[min(line, len(lines)) - 1])
    return ProgramError(f"{error}\n{error.caret()}")


def _compile_error(error: Exception, text: str) -> ProgramError:
    message = str(getattr(error, "msg", None) or error).strip()
    last = [line.strip() for line in message.splitlines() if line.strip()] or [type(error).__name__]
    why = last[-1].split(": ", 1)[-1]
    line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
    if any(words in why for words in ("end of macro call", "[ … ]", "some(", "binding target")):  # Hy's own
        why = teach.misused(text, line, column) or why
    return _at(text, line, column, why)


def _let_threads_leave() -> None:
    """Monty's own threads wake our event loop and may still be inside Python when the program ends. One that
    is there when the interpreter shuts down aborts the process (seen: exit code 134, one run in twenty on a
    busy machine); a moment without the GIL lets them out."""
    time.sleep(0.1)


class Sandbox:
    """A pool of crash-isolated Monty workers, started at the first program and stopped with ``aclose``."""

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self.limits = limits or SandboxLimits()
        self._pool: Any = None
        self._starting = asyncio.Lock()

    async def run(
        self,
        program: Program,
        names: Iterable[str],
        call: Callable[[CallForm], Awaitable[Any]],
    ) -> tuple[Any, str]:
        """The program's value and what it printed. ``call`` answers each use of one of the tool ``names``: it
        returns the value or raises InnerFailure. Raises ProgramError, or the InnerFailure nobody caught."""
        import pydantic_monty as monty

        tools = {_alias(hy.mangle(name)): name for name in names}
        printed = monty.CollectString(MAX_OUTPUT)
        failures: list[InnerFailure] = []
        answer: Any = None
        pool = await self._started()
        try:
            async with pool.checkout(limits=self._resource_limits()) as session:
                step = await session.feed_start(
                    program.python,
                    external_lookup=dict.fromkeys((*tools, _ANSWER), _placeholder),
                    print_callback=printed,
                )
                while not isinstance(step, monty.MontyComplete):
                    if isinstance(step, monty.AsyncFunctionSnapshot) and step.function_name == _ANSWER:
                        answer = across(step.args[0])
                        step = await step.resume({"return_value": None})
                    elif isinstance(step, monty.AsyncFunctionSnapshot) and step.function_name in tools:
                        tool = tools[step.function_name]
                        step = await step.resume(await _inner(call, tool, step.args, step.kwargs, failures))
                    elif isinstance(step, monty.AsyncFunctionSnapshot) and not step.is_os_function:
                        message = f"name '{step.function_name}' is not defined"
                        step = await step.resume({"exc_type": "NameError", "message": message})
                    elif isinstance(step, monty.AsyncFunctionSnapshot):
                        step = await step.resume_not_handled()
                    else:
                        step = await step.resume_auto()
                return answer, printed.output
        except monty.MontyError as error:
            raise _runtime_error(error, failures, tools.values(), program.text) from None

    def _resource_limits(self) -> Any:
        return {
            "max_feed_duration_secs": self.limits.seconds,
            "max_memory": self.limits.memory,
            "max_recursion_depth": self.limits.recursion,
            "max_suspensions": self.limits.calls + 1,
            "max_total_sleep_secs": self.limits.seconds,
        }

    async def _started(self) -> Any:
        async with self._starting:
            if self._pool is None:
                import pydantic_monty as monty

                pool = monty.AsyncMonty(
                    max_processes=MAX_WORKERS, checkout_timeout=30.0, request_timeout=60.0
                )
                await pool.__aenter__()
                self._pool = pool
                atexit.unregister(_let_threads_leave)
                atexit.register(_let_threads_leave)
        return self._pool

    async def aclose(self) -> None:
        """Stop the workers. May be called twice."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)


async def run_in_context(text: str, ctx: ToolContext) -> Any:
    """The body of the ``eval`` tool: run ``text`` with every tool of the table callable through the door."""
    if ctx.sandbox is None or ctx.dispatch is None:
        raise ToolError("There is no sandbox here to run programs in.")
    dispatch = ctx.dispatch

    async def call(form: CallForm) -> Any:
        result = await dispatch(form)
        if result.ok:
            return result.value
        raise InnerFailure(result.status, f"{_short(result.message)} (in {_short(canonical(form), 300)})")

    try:
        program = compile_program(text, ctx.tool_names)
    except ProgramError as error:
        raise ToolFailure("invalid", str(error)) from None
    try:
        value, printed = await ctx.sandbox.run(program, ctx.tool_names, call)
    except InnerFailure as failure:
        raise ToolFailure(failure.status, failure.message) from None
    if value is None and printed:
        return printed.rstrip("\n")
    if printed:
        ctx.say(printed.rstrip("\n"))
    return value


def _placeholder(*_: Any, **__: Any) -> None:
    """Tells the sandbox that a name is a function; its calls are answered by ``Sandbox.run``."""


def across(value: Any) -> Any:
    """A copy of what the sandbox handed over: plain data of bounded size. Raises ProgramError otherwise.

    A few shared lists can stand for more items than there are atoms, so the copy counts while it goes.
    """
    left = MAX_VALUE

    def copy(item: Any, depth: int) -> Any:
        nonlocal left
        left -= len(item) + 8 if isinstance(item, (str, bytes)) else 8
        if left < 0:
            raise ProgramError(
                f"The value is too large: written out it has more than {MAX_VALUE} characters."
            )
        if depth > MAX_DEPTH:
            raise ProgramError(f"The value is nested deeper than {MAX_DEPTH}.")
        if isinstance(item, dict):
            return {copy(key, depth + 1): copy(inner, depth + 1) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [copy(inner, depth + 1) for inner in item]
        if isinstance(item, (set, frozenset)):
            return {copy(inner, depth + 1) if not isinstance(inner, tuple) else inner for inner in item}
        if item is None or isinstance(item, (str, bytes, bool, int, float)):
            return item
        if hasattr(item, "isoformat"):
            return item.isoformat()
        if isinstance(item, PurePath):
            return str(item)
        raise ProgramError(
            f"A {type(item).__name__} cannot leave the program; use texts, numbers, lists and dictionaries."
        )

    return copy(value, 0)


async def _inner(
    call: Callable[[CallForm], Awaitable[Any]],
    tool: str,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    failures: list[InnerFailure],
) -> Any:
    """Answer one use of a tool: its value, or the exception it is inside the program."""
    try:
        named = {kebab(name): across(value) for name, value in kwargs.items()}
        form = CallForm(tool, named, tuple(across(value) for value in args))
    except ProgramError as error:
        return {"exc_type": "ValueError", "message": f"{tool} was not called. {error}"}
    try:
        return {"return_value": await call(form)}
    except InnerFailure as failure:
        failures.append(failure)
        kinds = {"denied": "PermissionError", "timeout": "TimeoutError", "invalid": "TypeError"}
        return {"exc_type": kinds.get(failure.status, "RuntimeError"), "message": failure.message}


def _short(text: str, limit: int = MAX_MESSAGE) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _runtime_error(error: Any, failures: list[InnerFailure], tools: Iterable[str], text: str) -> Exception:
    """What ended the program: the inner call nobody caught, or its own mistake in one sentence."""
    display = getattr(error, "display", None)
    said = str(display("type-msg")) if callable(display) else str(error)
    for failure in reversed(failures):
        if failure.message in said:
            return failure
    said = _short(said)
    kind, _, message = said.strip().partition(": ")
    lesson = teach.failed(kind, message, text, tools)
    if lesson is not None:
        return ProgramError(lesson)
    if "cannot suspend in this synchronous context" in message:
        return ProgramError(
            "A tool cannot be handed to map, filter or sorted; write (lfor x xs (the-tool x))."
        )
    if kind == "TimeoutError" and "limit exceeded" in message:
        return ProgramError("The program was stopped: it ran longer than it may.")
    if kind == "MemoryError" and ("limit exceeded" in message or "memory limit" in message):
        return ProgramError("The program was stopped: it used more memory, or printed more, than it may.")
    if "suspension limit" in message:
        return ProgramError("The program was stopped: it made more calls than it may.")
    if kind == "SyntaxError" and "too deeply nested" in message:
        return ProgramError(_TOO_DEEP)
    if type(error).__name__ == "MontyCrashedError":
        return ProgramError("The sandbox stopped the program: it used more time or memory than it may.")
    return ProgramError(f"The program failed: {said.strip()}")
