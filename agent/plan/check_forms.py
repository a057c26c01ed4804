"""Finds faults of a program before it runs: syntax, unknown names, arguments of tools. Runs no call.

Lines and columns refer to the form's own text, and count from 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import hy
import hy.models as m

from quoth.tools.errors import InvalidCallError, did_you_mean
from quoth.tools.lisp.forms import from_model
from quoth.tools.lisp.printer import Code, code_in, show
from quoth.tools.lisp.reader import ReadError, read_all
from quoth.tools.lisp.syntax import begins, bound_in, fixed_arity, head_of, mangled, symbols_in
from quoth.tools.program.compiler import (
    LACKING,
    MACROEXPANDS,
    PRELUDES,
    PROGRAM_LIMITS,
    FreeName,
    ProgramError,
    checked_forms,
    compile_program,
    free_names,
    read_forms,
)
from quoth.tools.program.from_python import BUILTINS
from quoth.tools.program.macros import DEFMACRO, Definitions, MacroError, unseen
from quoth.tools.registry.arguments import bind, validate
from quoth.tools.registry.table import CognitiveTool, ToolTable

_PLACED = re.compile(r"line (\d+), column (\d+): (.*)", re.DOTALL)
_QUOTES = re.compile(r"['`]|\((?:quote|quasiquote)\b")
_SYMBOL = re.compile(r"[^\s()\[\]{}\"';]+")
PROGRAMS = "eval"
_GIVEN = frozenset({*BUILTINS, *PRELUDES, *MACROEXPANDS} - LACKING)  # names of every program


@dataclass(frozen=True)
class FormFault:
    line: int
    column: int
    message: str


@dataclass(frozen=True)
class ToolUse:
    """A call of a tool in a program, and the place of its name."""

    tool: CognitiveTool
    line: int
    column: int


def form_faults(
    text: str, table: ToolTable, names: Iterable[str] = (), hint: Callable[[str], str] = lambda name: ""
) -> list[FormFault]:
    """Return the faults of a program that may use the variables ``names``; only the first if it does not
    compile. ``hint`` returns a text to add to the message about an unknown variable."""
    names = list(names)
    whole, above = _whole(text, names)
    try:
        compile_program(whole, table.tool_names, _given(whole, table))
        free = free_names(whole, table.tool_names, _given(whole, table))
    except ProgramError as error:
        return [_placed(str(error), above)]
    forms = _read(whole, table)
    heads = _heads(forms)
    tools = _tools(table)
    given = _GIVEN | _named_by_macros(whole, table)

    @cache
    def near() -> list[str]:
        return [*table.names(), *names, *sorted(map(hy.unmangle, {*bound_in(forms), *PRELUDES}))]

    found: list[FormFault] = []
    for use in free:
        node, written = heads.get((use.line, use.column)), _written(whole, use)
        if use.name in tools:
            found += _call_faults(node, table.get(tools[use.name]), above) if node is not None else []
        elif use.name not in given:
            close = did_you_mean(written, near())
            if node is not None and head_of(node) == written:
                close = close or did_you_mean(written, filter(str.islower, _GIVEN))
                what = f"There is no tool or function {written}.{close}"
            elif written in sys.stdlib_module_names and _written(whole, use, dots=True) != written:
                what = f"There is no variable {written}. Write (import {written}) first."
            else:
                what = f"There is no variable {written}{hint(written)}.{close}"
            found.append(FormFault(use.line - above, use.column, what))
    return sorted(found, key=lambda fault: (fault.line, fault.column))


def forms_in(text: str) -> int:
    """Return the number of forms in a text; 0 if it cannot be read."""
    try:
        return len(read_all(text, PROGRAM_LIMITS))
    except ReadError:
        return 0


def unknown_in(text: str, table: ToolTable, names: Iterable[str] = ()) -> list[str]:
    """Return the undefined names of a program; none if it does not compile."""
    whole, _ = _whole(text, list(names))
    try:
        free = free_names(whole, table.tool_names, _given(whole, table))
    except ProgramError:
        return []
    known = {*_tools(table), *_GIVEN, *_named_by_macros(whole, table)}
    return list(dict.fromkeys(_written(whole, use) for use in free if use.name not in known))


def tool_uses(text: str, table: ToolTable, names: Iterable[str] = ()) -> Iterator[ToolUse]:
    """Yield the tools that a program refers to, also in literal programs for ``eval``. The program must
    compile."""
    whole, above = _whole(text, list(names))
    heads = _heads(_read(whole, table))
    tools = _tools(table)
    if DEFMACRO in text or (
        PROGRAMS in text and _QUOTES.search(text)
    ):  # the program that runs is known only later
        yield from _named_tools(whole, table, above)
        return
    for use in free_names(whole, table.tool_names, _given(whole, table)):
        if use.name not in tools:
            continue
        tool, node, line = table.get(tools[use.name]), heads.get((use.line, use.column)), use.line - above
        yield ToolUse(tool, line, use.column)
        if tool.name == PROGRAMS and node is not None and isinstance(inner := node[-1], m.String):
            try:
                yield from (ToolUse(it.tool, line, use.column) for it in tool_uses(str(inner), table))
            except (ProgramError, ReadError, RecursionError):
                continue


def _given(text: str, table: ToolTable) -> Definitions | None:
    """The definitions to check a program that defines macros, whose expansions are known only when it
    runs."""
    if DEFMACRO not in text:
        return None
    try:
        return unseen(text, read_forms(text), table.tool_names)
    except MacroError:
        return Definitions()  # the compiler reports the fault


def _named_by_macros(text: str, table: ToolTable) -> set[str]:
    """The names in the macros of a program and in their calls; an expansion may define them."""
    given, pending, found = _given(text, table), list[Any](), set[str]()
    if given is not None:
        macros, pending = {mangled(name) for name in given.macros}, list(read_forms(text))
    while pending:
        node = pending.pop()
        if begins(node, DEFMACRO) or mangled(head_of(node)) in macros:
            found.update(symbols_in(node))
        elif isinstance(node, m.Sequence):
            pending.extend(node)
    return found


def _named_tools(text: str, table: ToolTable, above: int) -> Iterator[ToolUse]:
    """The tools named anywhere in a program, including its quoted forms and macros."""
    tools = _tools(table)
    pending: list[Any] = [m.List(read_forms(text))]
    while pending:
        node = pending.pop()
        if isinstance(node, m.Symbol) and (name := tools.get(mangled(str(node)))):
            yield ToolUse(table.get(name), node.start_line - above, node.start_column)
        elif isinstance(node, m.Sequence):
            pending.extend(reversed(node))


def _whole(text: str, names: Sequence[str]) -> tuple[str, int]:
    """Return the program in a ``let`` of its variables, as it will run, and the number of lines added above.
    A program that cannot be read is returned unchanged, so that faults refer to its own text."""
    try:
        readable = bool(names) and bool(read_all(text, PROGRAM_LIMITS))
    except ReadError:
        readable = False
    return (f"(let [{' '.join(f'{name} None' for name in names)}]\n{text}\n)", 1) if readable else (text, 0)


def _tools(table: ToolTable) -> Mapping[str, str]:
    """Return the names of the tools by their mangled names."""
    return _by_mangled(table.tool_names)


@lru_cache(maxsize=16)
def _by_mangled(names: tuple[str, ...]) -> Mapping[str, str]:
    return {mangled(name): name for name in names}


def _written(text: str, use: FreeName, dots: bool = False) -> str:
    """Return a name in the program's spelling; with ``dots`` also the attributes after it."""
    found = _SYMBOL.match(text.split("\n")[use.line - 1], use.column - 1)
    spelt = found[0] if found else ""
    first = spelt.partition(".")[0]
    if mangled(first) != use.name:
        return str(hy.unmangle(use.name))
    return spelt if dots else first


def _placed(said: str, above: int) -> FormFault:
    """The place and message of a ProgramError, without its line and caret."""
    found = _PLACED.match(said)
    if not found:
        return FormFault(1, 1, said)
    message = "\n".join(found[3].split("\n")[:-2])
    message = message[:1].upper() + message[1:] + ("" if message.endswith((".", "?", "!")) else ".")
    return FormFault(max(1, int(found[1]) - above), int(found[2]), message)


def reading_of(text: str, table: ToolTable) -> str:
    """The Hy that a block of another Lisp is read as; empty if the block is already in Hy. The block must
    have no faults."""
    if DEFMACRO in text:
        return ""
    read = [show(form) for form in _read(text, table)]
    return "" if read == [show(form) for form in read_all(text, PROGRAM_LIMITS)] else " ".join(read)


def _read(text: str, table: ToolTable) -> Sequence[Any]:
    return checked_forms(text, table.tool_names, _given(text, table))


def _heads(forms: Sequence[Any]) -> dict[tuple[int, int], Any]:
    """Return the calls of a program by the line and column of their heads."""
    found: dict[tuple[int, int], Any] = {}
    pending = list(reversed(forms))
    while pending:
        node = pending.pop()
        if isinstance(node, m.Sequence):
            if head := head_of(node):
                found[node[0].start_line, node[0].start_column] = node
            if head != "quote":
                pending.extend(reversed(node))
    return found


def _call_faults(node: Any, tool: CognitiveTool, above: int) -> Iterator[FormFault]:
    """The faults of the literal arguments of a call."""
    if not fixed_arity(node[1:]):
        return
    try:
        form = from_model(node)
        bound = bind(tool.name, tool.params, form.args, form.positional)
        kinds = {param.name: param.type for param in tool.params}
        later = {name for name, value in bound.items() if kinds.get(name) is not Code and code_in(value)}
        validate(tool.name, tool.params, tool.check, bound, {name for name in later if name in kinds})
    except InvalidCallError as error:
        yield FormFault(node.start_line - above, node.start_column, str(error))
