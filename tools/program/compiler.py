"""Compiles Lisp programs to the Python that the sandbox runs.

Compiling Hy expands macros, and expanding the wrong macro runs code in this process. So every node is checked
against an allow-list before Hy sees it; a new version of Hy cannot add anything unnoticed. Nothing is run
here."""

from __future__ import annotations

import ast
import builtins
import dis
import hashlib
import sys
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from keyword import iskeyword
from typing import Any

import hy
import hy.models as m
from hy.compiler import hy_compile

from quoth.tools.advice import instead
from quoth.tools.errors import ToolError
from quoth.tools.lisp.printer import MAX_HARD_KEYS, show
from quoth.tools.lisp.reader import ReaderLimits, ReadError, read_all
from quoth.tools.lisp.syntax import ProgramTooLarge, begins, mangle
from quoth.tools.program import explain as teach
from quoth.tools.program.closed_compiler import ClosedCompiler, sealed
from quoth.tools.program.linter import spot
from quoth.tools.program.macros import DEFMACRO, Definitions, GeneratedSymbol, MacroError, function_of, split
from quoth.tools.program.quoting import KEPT_SHIMS, SHIMS, Unquoted, definitions, is_quoted
from quoth.tools.program.rewriter import rewrite

# Core macros whose expansion is pure: it makes Python syntax and does not run code while compiling.
PURE_MACROS = frozenset(
    hy.mangle(name)
    for name in """
    and or not is is-not in not-in if cond when do let setv setx fn defn return for while break continue
    lfor sfor dfor gfor get cut chainc try except else finally raise assert match import
    global nonlocal unpack-iterable unpack-mapping annotate . defclass
    + - * / // % ** @ & | ^ << >> bnot < <= > >= = !=
    += -= *= /= //= %= **= &= |= ^= <<= >>=
    """.split()  # noqa: SIM905
)
# Limit of the nesting of forms: each form is searched once for every form around it, by idioms and by Hy's
# patterns.
MAX_WORK = 30_000
# Functions of the host that compiled programs call. A program cannot write these names.
ANSWER = (
    "__answer"  # passes the value to the host. As an argument, shared parts stay shared; the sandbox's own
)
# result would repeat them
BRANCH = "__branch"  # continues N times, each time with another number, and once more with all the values
JOIN = "__join"  # ends a branch with its value
FAILED = "__failed"  # ends a branch with its exception
_ITEMS = "__items"  # reserved, too
# Python put before a program that uses these names. The names with __ in it are defined by the sandbox's
# wall.
PRELUDES = {
    "pmap": f"""\
def pmap(function, *sequences):
    if not sequences:
        raise __TypeError("pmap takes a function and one or more lists")
    items = __list(__zip(*sequences))
    if not items:
        return []
    place = {BRANCH}(__len(items))
    if __type(place) == __list:
        return place
    try:  # no exception of a branch may reach the code around its pmap
        {JOIN}(function(*items[place]))
    except __BaseException as error:
        {FAILED}(__type(error).__name__, __str(error))
""",
}
MACROEXPANDS = frozenset({"macroexpand", "macroexpand_1"})
SHORT = 2_000  # characters; more programs up to this length are cached
PROGRAM_LIMITS = ReaderLimits(
    max_chars=100_000, max_depth=60, max_forms=10_000, max_digits=1000, booleans=True
)
# Names that run a text, or give the sandbox's names as a dictionary: both would bypass the check of names.
_PAST_THE_CHECK = frozenset({"exec", "locals", "globals", "vars"})


class ProgramError(ToolError):
    """The program cannot be read, compiled or run. If the position is known, the message has line, column and
    caret."""


@dataclass(frozen=True)
class Program:
    """A compiled program: its text, the Python for the sandbox, its global names (the session keeps their
    values), whether it uses ``forms`` as values, and the macros that it defines and ``uses``."""

    text: str
    python: str
    globals: tuple[str, ...] = ()
    forms: bool = False
    macros: Mapping[str, str] = field(default_factory=dict)  # the definitions by name
    uses: frozenset[str] = frozenset()  # including the session's macros


def compile_program(text: str, names: Iterable[str] = (), given: Definitions | None = None) -> Program:
    """Read, rewrite, check and compile a program. ``names`` are the names of the tools; ``given`` are the
    macros. Raises ProgramError with a caret."""
    if given is not None:
        return _compile(text, tuple(names), given)
    return (_compiled if len(text) <= SHORT else _compiled_long)(text, tuple(names))


def _compile(text: str, names: tuple[str, ...], given: Definitions | None = None) -> Program:
    return _program(checked_forms(text, names, given), text, given)


# The same program is often compiled again: resumed, run after a dry run, in a loop, or checked in a plan and
# then run.
_compiled = lru_cache(maxsize=1024)(_compile)
_compiled_long = lru_cache(maxsize=64)(_compile)


def compile_macro(name: str, definition: Any, text: str, given: Definitions) -> str:
    """The Python that adds the function of a macro to the sandbox's ``__macros``. It cannot use tools. Raises
    ProgramError."""
    forms = _checked([function_of(definition)], text, (), given)
    pending = [*forms]
    while pending:
        if begins(node := pending.pop(), "import"):
            raise refusal(
                node, text, "a macro cannot import: the same call must always have the same expansion"
            )
        pending.extend(node if isinstance(node, m.Sequence) else ())
    return _program(forms, text, given, macro=name).python


def _program(forms: Sequence[Any], text: str, given: Definitions | None, *, macro: str = "") -> Program:
    body, value = _trees(text, forms)
    used = {node.id for tree in (body, value) for node in ast.walk(tree) if isinstance(node, ast.Name)}
    try:
        quotes = definitions(forms)
        functions = given.functions if given is not None and MACROEXPANDS & used else ""
        with_forms = bool(quotes or functions or "eval" in used or (given is not None and given.forms))
        fitted = [_Fitted().visit(tree) for tree in (body, value)]
        if with_forms:
            fitted = [Unquoted().visit(tree) for tree in fitted]
        before = "".join(source for name, source in PRELUDES.items() if name in used)
        if with_forms:
            before += (SHIMS if macro else KEPT_SHIMS) + functions + quotes
        if macro:
            python = f"{ast.unparse(_macro(macro, before, *fitted))}\n"
        else:
            statements, answer = map(ast.unparse, fitted)
            python = f"{before}{statements}\n{ANSWER}({answer})"
    except RecursionError:
        raise ProgramError(TOO_DEEP) from None
    except ValueError:
        raise _unwritable(fitted, text) from None
    if "hy" in used:
        raise ProgramError('In a program a keyword can only be an argument name; a text is written "name".')
    given = given or Definitions()
    names = tuple(dict.fromkeys(_globals(body.body)))
    return Program(text, python, names, with_forms, given.defined, given.used)


def _macro(name: str, before: str, statements: Any, value: Any) -> ast.Module:
    """The function of a macro, in its own scope, so that its quoted forms are separate from those of other
    macros."""
    made = ast.parse(f"def __macro():\n    pass\n__macros[{name!r}] = __macro()\n")
    made.body[0].body = [*ast.parse(before).body, *statements.body, ast.Return(value.body)]  # type: ignore[attr-defined]
    return ast.fix_missing_locations(made)


def _unwritable(trees: Iterable[ast.AST], text: str) -> ProgramError:
    """The error for an f-string: before Python 3.12 its expressions cannot contain backslashes or all kinds
    of quotes."""
    for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        try:
            ast.unparse(node)
        except ValueError:
            said = 'this f"…" contains a text with \\ or quotes; first name it, (setv x …) f"{x}"'
            return _at(text, node.lineno, node.col_offset, said)
    return ProgramError(TOO_DEEP)


def checked_forms(text: str, names: tuple[str, ...], given: Definitions | None = None) -> Sequence[Any]:
    """The forms of a program, read, rewritten, expanded and checked, ready for Hy."""
    if given is None:
        return _checked_forms(text, names)
    try:
        _, forms = split(read_forms(text), names)
    except MacroError as error:
        raise refusal(error.node, text, str(error)) from None
    return _checked(forms, text, names, given)


@lru_cache(maxsize=2)  # a block of a plan is compiled, then searched for names
def _checked_forms(text: str, names: tuple[str, ...]) -> Sequence[Any]:
    return _checked(read_forms(text), text, names)


def read_forms(text: str) -> list[Any]:
    """The forms of a program as they are written. Raises ProgramError with a caret."""
    try:
        forms = read_all(text, PROGRAM_LIMITS)
    except ReadError as error:
        lesson = teach.unreadable(text, error)
        if lesson is not None:
            raise _at(text, lesson.line, lesson.column, lesson.message) from None
        raise ProgramError(f"{error}\n{error.caret()}") from None
    if not forms:
        raise ProgramError("The program is empty.")
    return forms


def _checked(
    forms: Sequence[Any], text: str, names: tuple[str, ...], given: Definitions | None = None
) -> Sequence[Any]:
    try:
        forms = rewrite(forms, names, given)
        lesson = spot(forms, text, names)
    except ProgramTooLarge as error:
        raise refusal(error.node, text, "the program is too long; split it in two") from None
    except MacroError as error:
        raise refusal(error.node, text, str(error)) from None
    except RecursionError:
        raise ProgramError(TOO_DEEP) from None
    if lesson is not None:
        raise _at(text, lesson.line, lesson.column, lesson.message)
    for form in forms:  # after the rewriting, so that added forms are checked, too
        check(form, text)
    _check_numbers(forms, text)
    return forms


def _trees(text: str, forms: Sequence[Any]) -> tuple[Any, Any]:
    """The statements and the value of a checked program, as Python syntax with the positions of the
    program."""
    try:
        whole = m.Expression([m.Symbol("do"), *forms]).replace(forms[0], recursive=False)
        body, value = hy_compile(
            sealed(whole), None, get_expr=True, import_stdlib=False, compiler=_compiler(text)
        )
    except RecursionError:
        raise ProgramError(TOO_DEEP) from None
    except ProgramError:
        raise
    except Exception as error:
        if "maximum recursion depth" in str(error):  # Hy wraps what a macro raises
            raise ProgramError(TOO_DEEP) from None
        raise _compile_error(error, text) from None
    return body, value


@dataclass(frozen=True)
class FreeName:
    """A use of a name that the program does not define: the mangled name and its position."""

    name: str
    line: int
    column: int


def free_names(text: str, names: Iterable[str] = (), given: Definitions | None = None) -> list[FreeName]:
    """The names that a program uses but does not define: tools, builtins and undefined names. Python's own
    compiler resolves them. Raises ProgramError."""
    body, value = _trees(text, checked_forms(text, tuple(names), given))
    try:
        tree = ast.fix_missing_locations(ast.Module([*body.body, ast.Expr(value.body)], []))
    except RecursionError:
        raise ProgramError(TOO_DEEP) from None
    for node in ast.walk(tree):
        if isinstance(
            node, (ast.expr, ast.stmt, ast.excepthandler, ast.pattern, ast.arg, ast.keyword, ast.alias)
        ):
            node.end_lineno, node.end_col_offset = (
                node.lineno,
                node.col_offset,
            )  # Hy's end may come before the start
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            codes = [compile(tree, "program", "exec", dont_inherit=True)]
    except SyntaxError as error:
        raise _at(text, error.lineno or 1, max(1, (error.offset or 1) - 1), str(error.msg)) from None
    except RecursionError:
        raise ProgramError(TOO_DEEP) from None
    uses: list[FreeName] = []
    own_names: set[str] = set()
    for code in codes:
        codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
        steps = list(dis.get_instructions(code))
        own = {step.argval for step in steps if step.opname == "STORE_NAME"}
        own_names |= {step.argval for step in steps if step.opname == "STORE_GLOBAL"}
        own_names |= own if code is codes[0] else set()  # otherwise names of a class, visible only in it
        for step in steps:
            place = step.positions
            if step.opname in _LOADS and step.argval not in own and place and place.lineno:
                uses.append(FreeName(step.argval, place.lineno, place.col_offset or 1))
    return sorted(
        {use for use in uses if use.name not in own_names and not use.name.startswith("__")},
        key=lambda use: (use.line, use.column, use.name),
    )


_LOADS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})


def _globals(statements: Iterable[ast.AST]) -> Iterator[str]:
    """The names that are assigned or defined outside functions, except names generated by Hy."""
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names, inside = [node.name], []
        elif isinstance(node, ast.Lambda):
            continue
        else:
            names = [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []
            inside = list(ast.iter_child_nodes(node))
        yield from (name for name in names if not name.startswith("_hy"))
        yield from _globals(inside)


TOO_DEEP = "The program is nested too deeply, or one operator has too many operands."

# Builtins that some version of Python has and the sandbox does not. A test compares this with the sandbox.
LACKING = frozenset(
    """
    BaseExceptionGroup BlockingIOError BrokenPipeError BufferError BytesWarning ChildProcessError
    ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning
    EOFError EncodingWarning EnvironmentError ExceptionGroup FloatingPointError FutureWarning GeneratorExit
    IOError ImportWarning IndentationError InterruptedError PendingDeprecationWarning ProcessLookupError
    PythonFinalizationError ReferenceError ResourceWarning RuntimeWarning StopAsyncIteration SyntaxWarning
    SystemError TabError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning Warning aiter anext
    ascii breakpoint bytearray callable classmethod compile copyright credits delattr dir exec exit
    globals help input issubclass license locals memoryview quit staticmethod super vars
    """.split()  # noqa: SIM905
)
# The sandbox has Python's builtins; a tool with the name of one (eval) has another name inside.
_BUILTINS = frozenset(dir(builtins))


def alias(name: str) -> str:
    return f"TOOL_{name}" if name in _BUILTINS else name  # no tool has a name in capitals


class _Fitted(ast.NodeTransformer):
    """Adapts Hy's output to the sandbox: ``eval`` means the tool, and a comprehension with statements in it,
    which Hy writes as a generator, collects its items in a list."""

    inside = 0  # number of functions around the node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if not self.inside:
            raise ProgramError(
                "return is outside a function; a program's value is the value of its last form."
            )
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.inside += 1
        self.generic_visit(node)
        self.inside -= 1
        if any(isinstance(inner, ast.Yield) for inner in ast.walk(node)):  # a program itself cannot use yield
            node.body = [
                *ast.parse(f"{_ITEMS} = []").body,
                *(_Collected().visit(statement) for statement in node.body),
                *ast.parse(f"return {_ITEMS}").body,
            ]
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        """An argument named by a Python keyword, such as ``:as``, is passed in a dictionary."""
        self.generic_visit(node)
        if node.arg is None or not iskeyword(node.arg):
            return node
        return ast.keyword(None, ast.Dict([ast.Constant(node.arg)], [node.value]))

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(alias(node.id), node.ctx), node) if node.id == "eval" else node


class _Collected(ast.NodeTransformer):
    def visit_Yield(self, node: ast.Yield) -> ast.Call:
        items = ast.Attribute(ast.Name(_ITEMS, ast.Load()), "append", ast.Load())
        return ast.copy_location(ast.Call(items, [node.value or ast.Constant(None)], []), node)


def check(form: Any, text: str) -> None:
    """Raise ProgramError if the compilation of any node could run code in this process or take too long. It
    does not recurse."""
    pending, work = [(form, 0)], 0
    while pending:
        node, depth = pending.pop()
        work += depth
        if work > MAX_WORK:
            raise refusal(form, text, "the program is nested too deeply; make parts of it functions")
        if isinstance(node, m.Symbol):
            _check_symbol(node, text)
        elif isinstance(node, m.Expression) and node:
            _check_head(node, text)
            if is_quoted(node):
                pending.extend((item, depth + 1) for item in node[1:])
                continue
        if isinstance(node, m.Sequence):
            pending.extend((item, depth + isinstance(node, m.Expression)) for item in node)


def _check_numbers(forms: list[Any], text: str) -> None:
    """Python's compiler keeps the numbers of a program in a dictionary."""
    pending, huge = list(forms), 0
    while pending:
        node = pending.pop()
        huge += isinstance(node, m.Integer) and abs(node) > sys.hash_info.modulus
        if huge > MAX_HARD_KEYS:
            raise refusal(
                node, text, f"a program can have at most {MAX_HARD_KEYS} numbers as large as this one"
            )
        if isinstance(node, m.Sequence):
            pending.extend(reversed(node))


def _check_symbol(node: Any, text: str) -> None:
    """Refuse names, in any spelling, that lead to Hy's own module or to Python's internals."""
    if isinstance(node, GeneratedSymbol):
        return
    for part in str(node).split("."):
        try:
            name = mangle(part) if part else ""
        except Exception:
            raise refusal(node, text, f"{part} is not a name") from None
        if name == "hy":
            raise refusal(node, text, "the module hy cannot be reached from a program")
        if name.startswith(("__", "_hy")):
            raise refusal(node, text, f"{part} is internal and cannot be used in a program")
    if mangle(str(node).partition(".")[0] or "_") in _PAST_THE_CHECK:
        raise refusal(node, text, f"{node} cannot be used in a program", "write the forms themselves")


def _check_head(node: Any, text: str) -> None:
    """Refuse a head that Hy would expand as a macro, unless that macro is allowed."""
    head = node[0]
    try:
        name = _expanded_name(head)
    except Exception:
        return  # a part of it is not a name; another check refuses that
    if name in _core_macros() and name not in PURE_MACROS:
        said = head if isinstance(head, m.Symbol) else head[1]
        where = "inside another form" if name == DEFMACRO else "in a program"
        raise refusal(head, text, f"{said} cannot be used {where}", instead("refused").get(name))
    if name is not None and isinstance(head, m.Expression) and len(head) < 3:
        raise refusal(head, text, f"{show(head)} is not an attribute of a value", "a call is (f x)")


def _expanded_name(head: Any) -> str | None:
    """The name that Hy's macroexpand looks up for this head, or None."""
    if isinstance(head, m.Symbol):
        return mangle(str(head))
    dotted = isinstance(head, m.Expression) and head and head[0] == m.Symbol(".")
    if dotted and all(isinstance(part, m.Symbol) for part in head):
        return ".".join(map(mangle, map(str, head[1:])))
    return None


def _core_macros() -> dict[str, Any]:
    macros: dict[str, Any] = getattr(builtins, "_hy_macros", {})
    return macros


def _compiler(text: str) -> ClosedCompiler:
    core = _core_macros()
    return ClosedCompiler({name: core[name] for name in PURE_MACROS & core.keys()}, text)


def refusal(node: Any, text: str, why: str, hint: str | None = None) -> ProgramError:
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
    if any(words in why for words in teach.HYS_WORDS):
        why = teach.misused(text, line, column) or why
    return _at(text, line, column, why)


def program_digest(text: str) -> str:
    """SHA-256 of a program's text, in hex. Approved plans and suspended programs are bound to it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
