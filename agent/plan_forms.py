"""What is wrong with a form before it runs: unreadable, not to be compiled, unknown names, arguments.

Knows tools by their table and programs as they are compiled; it runs nothing and knows no plans or files.
Lines and columns are those of the form's own text, from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import hy.models as m

from tools.errors import InvalidCallError, did_you_mean
from tools.form import Code, from_model
from tools.program import PRELUDES, PROGRAM_LIMITS, ProgramError, compile_program
from tools.rewrite import rewrite
from tools.schema import bind, validate
from tools.sexp import ReadError, read_all
from tools.shapes import bound_in, head_of, is_core, mangled, plain, symbols_in
from tools.table import CognitiveTool, ToolTable
from tools.translate import BUILTINS

_PLACED = re.compile(r"line (\d+), column (\d+): (.*)", re.DOTALL)
PROGRAMS = "eval"


@dataclass(frozen=True)
class FormFault:
    line: int
    column: int
    message: str


@dataclass(frozen=True)
class ToolUse:
    """A call of a tool in a program, and where its name stands."""

    tool: CognitiveTool
    line: int
    column: int


def form_faults(text: str, table: ToolTable, names: Iterable[str] = ()) -> list[FormFault]:
    """What is wrong with a program that may use the variables ``names``; of what cannot be compiled the first
    fault only."""
    try:
        compile_program(text, [*table.names(), *names])
    except ProgramError as error:
        return [_placed(str(error))]
    forms = _read(text, table, names)
    known = {*map(mangled, names), *_said(forms), *bound_in(forms), *PRELUDES}
    found: list[FormFault] = []
    for node in _expressions(forms):
        name = head_of(node)
        if not name or mangled(name) in known:
            continue
        if name in table:
            found += _call_faults(node, table.get(name))
        elif _undefined(name):
            what = f"There is no tool or function {name}.{did_you_mean(name, [*table.names(), *known])}"
            found.append(FormFault(node[0].start_line, node[0].start_column, what))
    return sorted(found, key=lambda fault: (fault.line, fault.column))


def tool_uses(text: str, table: ToolTable, names: Iterable[str] = ()) -> Iterator[ToolUse]:
    """The calls of tools in a program that compiles, those in literal programs for eval among them."""
    forms = _read(text, table, names)
    own = {*map(mangled, names), *bound_in(forms)}
    for node in _expressions(forms):
        name = head_of(node)
        if name not in table or mangled(name) in own:
            continue
        tool = table.get(name)
        line, column = node[0].start_line, node[0].start_column
        yield ToolUse(tool, line, column)
        if tool.name == PROGRAMS and isinstance(inner := node[-1], m.String):
            try:
                yield from (ToolUse(use.tool, line, column) for use in tool_uses(str(inner), table))
            except (ReadError, RecursionError):
                continue


def _placed(said: str) -> FormFault:
    """The place and message of what a ProgramError says; without its line and caret, which the file has."""
    found = _PLACED.match(said)
    if not found:
        return FormFault(1, 1, said)
    message = "\n".join(found[3].split("\n")[:-2])
    return FormFault(int(found[1]), int(found[2]), _sentence(message))


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else text + "."


def _read(text: str, table: ToolTable, names: Iterable[str]) -> Sequence[Any]:
    return rewrite(read_all(text, PROGRAM_LIMITS), [*table.names(), *names])


def _expressions(forms: Sequence[Any]) -> Iterator[Any]:
    """Every expression, outermost first, in the order of the text."""
    pending = list(reversed(forms))
    while pending:
        node = pending.pop()
        if isinstance(node, m.Sequence):
            if isinstance(node, m.Expression):
                yield node
            if head_of(node) != "quote":
                pending.extend(reversed(node))


def _said(forms: Sequence[Any]) -> Iterator[str]:
    """The names that stand anywhere but at the head of a form: the program may have bound them."""
    for node in [m.List(forms), *_collections(forms)]:
        items = node[1:] if isinstance(node, m.Expression) else node
        yield from (name for item in items if isinstance(item, m.Symbol) for name in symbols_in(item))


def _collections(forms: Sequence[Any]) -> Iterator[Any]:
    pending = list(forms)
    while pending:
        node = pending.pop()
        if isinstance(node, m.Sequence):
            yield node
            pending.extend(node)


def _undefined(name: str) -> bool:
    """Whether nothing gives this head of a form a meaning."""
    plainly = re.fullmatch(r"[A-Za-z][\w-]*[?!]?", name)
    return bool(plainly) and not is_core(name) and mangled(name) not in BUILTINS


def _call_faults(node: Any, tool: CognitiveTool) -> Iterator[FormFault]:
    """What is wrong with the arguments of a call, as far as they are literal."""
    if not plain(node[1:]):
        return
    try:
        form = from_model(node)
        bound = bind(tool.name, tool.params, form.args, form.positional)
        kinds = {param.name: param.type for param in tool.params}
        later = {name for name, value in bound.items() if kinds.get(name) is not Code and _is_later(value)}
        validate(tool.name, tool.params, tool.model, bound, {name for name in later if name in kinds})
    except InvalidCallError as error:
        yield FormFault(node.start_line, node.start_column, str(error))


def _is_later(value: Any) -> bool:
    """Whether a value holds something that is computed while the program runs."""
    if isinstance(value, dict):
        return any(_is_later(item) for item in value.values())
    return any(map(_is_later, value)) if isinstance(value, list) else isinstance(value, Code)
