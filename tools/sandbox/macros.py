"""Expands the macros of a program in a session of the sandbox without tools, clock or randomness.

The macro calls of a round are expanded in one feed, outermost first, until none is left. The same text always
expands to the same forms. The result is compiled and checked like any other program
(tools/program/compiler.py)."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

import hy

from quoth.tools.call.context import ProgramRunner, SavedValues
from quoth.tools.lisp.printer import show
from quoth.tools.lisp.syntax import ProgramTooLarge, head_of, mangled, symbols_in
from quoth.tools.program.compiler import (
    ANSWER,
    MACROEXPANDS,
    TOO_DEEP,
    Program,
    ProgramError,
    compile_macro,
    compile_program,
    read_forms,
    refusal,
)
from quoth.tools.program.macros import DEFMACRO, Definitions, MacroError, function_of, size_of, split
from quoth.tools.program.quoting import SHIMS, UnquotableError, constant
from quoth.tools.program.rewriter import rewritten
from quoth.tools.sandbox.runner import MAX_OUTPUT, lisp_name
from quoth.tools.sandbox.wall import (
    FORMS_MARK,
    FormValue,
    bounded,
    host_name,
    raise_wall,
    runtime_error,
    with_guards,
)

MAX_ROUNDS = 50
MAX_MACROS = 200  # in a program and its session
MAX_WORK = 200_000  # nodes of the program, counted again in each round
MAX_NODES = 10_000  # nodes of all expansions of a program
MAX_SECONDS = 0.5  # for one round
MAX_ALL_SECONDS = 2.0  # for all rounds of a program, including the wait for a worker

# The names made by ``gensym`` are unique to the program, because a function kept in the session may use one.
_PRELUDE = """\
__macros, __generated = {{}}, []
def gensym(name="g"):
    __generated.append(0)
    name = "".join([char if char.isalnum() else "_" for char in __str(name)])
    return __Sym(f"_hy_gensym_{{name}}_{{__len(__generated)}}_{digest}")
def macroexpand_1(form):
    if __type(form) == __Form and form.kind == "(" and form.items and __type(form.items[0]) == __Sym:
        if form.items[0].name in __macros:
            return __part(__macros[form.items[0].name](*form.items[1:]))
    return form
def macroexpand(form):
    while True:
        expanded = macroexpand_1(form)
        if expanded == form:
            return form
        form = expanded
"""


async def compile_expanded(
    text: str, names: Iterable[str], sandbox: ProgramRunner, kept: SavedValues | None = None
) -> Program:
    """The program ``text`` with its macros and the macros ``kept`` by its session expanded. ``names`` are the
    names of the tools. Raises ProgramError."""
    macros = kept.macros if kept is not None else {}
    forms = kept is not None and FORMS_MARK in kept.state
    return compile_program(text, names, await expand(text, names, sandbox, macros, forms=forms))


async def expand(
    text: str,
    names: Iterable[str],
    sandbox: ProgramRunner,
    kept: Mapping[str, str] | None = None,
    *,
    forms: bool = False,
) -> Definitions | None:
    """The Definitions for compiling the program ``text``; None if it has no macros and its session has no
    ``forms``. ``names`` are the names of the tools, ``kept`` the definitions of the session's macros by name.
    Raises ProgramError."""
    kept = kept or {}
    spelt = text.replace("_", "-")  # macro names are written with -
    if DEFMACRO not in text and not any(name.replace("_", "-") in spelt for name in (*kept, "macroexpand")):
        return Definitions(forms=True) if forms else None
    tools = tuple(names)
    try:
        defined, rest = split(written := read_forms(text), tools)
    except MacroError as error:
        raise refusal(error.node, text, str(error)) from None
    symbols = set(symbols_in(hy.models.List(written)))
    if not defined and symbols.isdisjoint({*map(mangled, kept), *MACROEXPANDS}):
        return Definitions(forms=True) if forms else None
    macros = {**kept, **{name: show(form) for name, form in defined.items()}}
    if len(macros) > MAX_MACROS:
        raise ProgramError(f"The session and the program together have more than {MAX_MACROS} macros.")
    expander = _Expander(text, macros, forms)
    async with sandbox.worker(MAX_SECONDS) as session:
        await expander.begin(session)
        for name, form in defined.items():  # even if unused, its errors are reported
            await expander.function(name, form, text)
        if not MACROEXPANDS.isdisjoint(symbols):
            for name in expander.given.macros:
                await expander.function(name)
        await expander.settle(rest, tools, text)
    own = {name: expander.given.macros[name] for name in defined}
    return replace(expander.given, defined=own, used=frozenset(expander.compiled), functions=expander.python)


class _Expander:
    """The expansion of one program, in one session of the sandbox."""

    def __init__(self, text: str, macros: Mapping[str, str], forms: bool) -> None:
        self.given = Definitions(macros, forms=forms)
        self.python = _PRELUDE.format(digest=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8])
        self.compiled: dict[str, bool] = {}  # macros found so far; False while their bodies are compiled
        self.names = {mangled(name): name for name in macros}
        self.nodes = self.work = 0
        self.seconds = MAX_ALL_SECONDS
        self.session: Any = None

    async def begin(self, session: Any) -> None:
        self.session = session
        await raise_wall(session)
        await self.feed(with_guards(SHIMS + self.python, (), begun=True, forms=True))

    async def settle(self, forms: list[Any], names: tuple[str, ...], text: str) -> None:
        """Expand every call of a macro in ``forms``."""
        size = size_of(forms)
        for _ in range(MAX_ROUNDS + 1):
            self.work += size + self.nodes
            if self.work > MAX_WORK:
                raise ProgramError(
                    "The macros take too many rounds for the length of the program; split it in two."
                )
            try:
                _, unknown = rewritten(forms, names, self.given)
            except ProgramTooLarge as error:
                raise refusal(
                    error.node, text, "the program is too long after its macros are expanded"
                ) from None
            except RecursionError:
                raise ProgramError(TOO_DEEP) from None
            if not unknown:
                return
            await self.round(unknown, text)
        node = next(iter(unknown.values()))
        raise refusal(node, text, f"{head_of(node)} still expands after {MAX_ROUNDS} rounds")

    async def round(self, calls: Mapping[str, Any], text: str) -> None:
        """Expand ``calls``, given by their text, and store the expansions."""
        lines = ["__made = []"]
        for call in calls.values():
            name = self.names[mangled(head_of(call))]
            await self.function(name, at=call, text=text)
            try:
                given = [ast.unparse(constant(item)) for item in call[1:]]
            except UnquotableError:
                raise refusal(call, text, f"{name} takes only forms that are data") from None
            except RecursionError:
                raise ProgramError(TOO_DEEP) from None
            lines.append(f"__made.append(__part(__macros[{name!r}]({', '.join(given)})))")
        done: list[Any] = []
        try:
            done = await self.feed("\n".join([*lines, f"{ANSWER}(__made)"]))
        except _FailedMacroError as error:
            first = next(iter(calls.values()))
            name = head_of(first) if len(calls) == 1 else "a macro"
            said = str(error).removeprefix("The program failed: ").replace("<lambda>()", name)
            raise refusal(first, text, f"{name} failed while it was expanded: {said}") from None
        made = dict(zip(calls, map(_model, done), strict=True))
        self.nodes += size_of(made.values())
        if self.nodes > MAX_NODES:
            node = next(iter(calls.values()))
            raise refusal(node, text, f"the expansions have more than {MAX_NODES} nodes")
        self.given = replace(self.given, expansions={**self.given.expansions, **made})

    async def function(self, name: str, form: Any = None, text: str = "", at: Any = None) -> None:
        """Define the function of a macro in the session. Macros that its body calls are expanded first."""
        if name in self.compiled:
            if not self.compiled[name]:
                why = f"the macro {name} is used in its own body; write a function inside it"
                raise refusal(form if at is None else at, text, why)
            return
        self.compiled[name] = False
        if form is None:
            text = self.given.macros[name]
            form = read_forms(text)[0]
        await self.settle([function_of(form)], (), text)
        python = compile_macro(name, form, text, self.given)
        await self.feed(python)
        self.python += python
        self.compiled[name] = True

    async def feed(self, python: str) -> list[Any]:
        """Run Python in the session and return the values it answers. Raises _FailedMacroError,
        ProgramError."""
        import pydantic_monty as monty

        answer: list[Any] = []
        began = monotonic()
        try:
            unseen = monty.CollectString(MAX_OUTPUT)  # discards the output of a macro
            step = await self.session.feed_start(python, print_callback=unseen)
            while not isinstance(step, monty.MontyComplete):
                if getattr(step, "function_name", "") == host_name(ANSWER):
                    answer = bounded(step.args[0])
                    step = await step.resume({"return_value": None})
                elif isinstance(step, monty.AsyncFunctionSnapshot):
                    said = f"{lisp_name(step.function_name)} is not defined: a macro has no tools or clock"
                    step = await step.resume({"exc_type": "NameError", "message": said})
                else:
                    step = await step.resume_auto()
        except monty.MontyError as error:
            raise _FailedMacroError(str(runtime_error(error, [], (), "")).rstrip(".")) from None
        self.seconds -= monotonic() - began
        if self.seconds < 0:
            raise ProgramError(f"The macros of the program take longer than {MAX_ALL_SECONDS:g} s.")
        return answer


class _FailedMacroError(Exception):
    """The function of a macro raised an exception, or was stopped."""


def _model(value: Any) -> Any:
    """An expansion as a form. Raises ProgramError."""
    return value.readable().model() if isinstance(value, FormValue) else hy.as_model(value)
