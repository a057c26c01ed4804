"""Finds the words of a call in texts that the model read before: then the call may be a quotation and no
intention.

Knows the texts of calls (tools/origin/quotations.py compares them); it decides nothing. What it finds is
passed on in ``Call.quoted``, and the door asks a person.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import hy.models as m

from quoth.tools.call.call import PROGRAMS
from quoth.tools.call.redaction import Redactor
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, canonical, from_model, head_name, kebab
from quoth.tools.lisp.printer import print_string, show
from quoth.tools.lisp.reader import ReadError, read_all
from quoth.tools.origin.quotations import ReadText, close, letters, words
from quoth.tools.policy.effects import only_reads
from quoth.tools.registry.arguments import bind
from quoth.tools.registry.table import ToolTable
from quoth.tools.text import short

MAX_INNER = 100  # calls of one program that are looked for by themselves
SHOWN = 60  # characters of what a result is called
KEYED_WORDS, BARE_WORDS, PROGRAM_WORDS = 3, 4, 5  # fewer are found anywhere by chance
# What names a result best: the first of these arguments, else the first text.
_NAMING = ("path", "file", "url", "name", "id", "query", "pattern")


def label_of(form: CallForm, table: ToolTable) -> str:
    """The name of a call's result, for a person: ``read-file mail.txt``."""
    params = table.get(form.tool).params if form.tool in table else ()
    form = Redactor(form, params, table.secrets).form
    texts = [form.args[name] for name in _NAMING if name in form.args]
    texts += [*form.positional, *form.args.values()]
    texts = [" ".join(text) if _is_listed(text) else text for text in texts]
    main = next((text for text in texts if isinstance(text, str) and text), "")
    main = main if main.isprintable() else print_string(main)[1:-1]
    return f"{form.tool} {short(main, SHOWN)}".rstrip()


def _is_listed(value: Any) -> bool:
    """Whether a value is the words of a command."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def quoted(form: CallForm, text: str, table: ToolTable, read: Iterable[ReadText]) -> str:
    """The name of the text that contains the words of a call; empty if none does, and for a call that only
    reads. ``text`` is the call as the model wrote it."""
    if form.tool not in table:
        return ""
    tool = table.get(form.tool)
    if tool.name != PROGRAMS and only_reads(tool):
        return ""
    exact, spelt = needles(form, text, table)
    typed = {letters(text), letters(str(form))} - {""}
    return next((one.name for one in read if one.quotes(typed, exact, spelt)), "")


def stands(line: str, read: Iterable[ReadText]) -> bool:
    """Whether a line that is no call stands, letter by letter, in one of the texts."""
    typed, folded = [letters(line)], [close(line)]
    return any(one.quotes(typed, folded) for one in read)


def needles(form: CallForm, text: str, table: ToolTable) -> tuple[set[str], set[str]]:
    """What to search for: normalised texts, and sequences of words."""
    exact, spelt = {close(text), close(str(form))}, _rows(form, table)
    if form.tool == PROGRAMS:
        program = next((value for value in (*form.args.values(), *form.positional)), "")
        exact_inner, spelt_inner = _of_program(str(program), table)
        exact, spelt = exact | exact_inner, spelt_inner
    return {needle for needle in exact if needle}, spelt


def _rows(form: CallForm, table: ToolTable) -> set[str]:
    """The words of a call with the names of its arguments, in every usual order, and without."""
    tool, named = table.get(form.tool), [form]
    with contextlib.suppress(InvalidCallError):  # the door will say so
        bound = bind(tool.name, tool.params, form.args, form.positional)
        named += [CallForm(tool.name, bound)]
        named += [CallForm(tool.name, {p.name: bound[p.name] for p in tool.params if p.name in bound})]
    keyed = {words(spell(one)) for one in named if one.args for spell in (str, canonical)}
    bare = {words(str(CallForm(one.tool, {}, (*one.positional, *one.args.values())))) for one in named}
    return {row for row in keyed if row.count(" ") > KEYED_WORDS} | {
        row for row in bare if row.count(" ") > BARE_WORDS
    }


def _of_program(program: str, table: ToolTable) -> tuple[set[str], set[str]]:
    """The same for a program, and for those of its calls that do more than read."""
    exact = {close(program)} if program.lstrip().startswith("(") else set()
    row = words(program)
    spelt = {row} if row.count(" ") > PROGRAM_WORDS else set()
    for call in _calls_in(program, table):
        exact.add(close(show(call)))
        with contextlib.suppress(InvalidCallError):
            spelt |= _rows(from_model(call), table)
    return exact, spelt


def _calls_in(program: str, table: ToolTable) -> list[Any]:
    """The calls in a program that do more than read."""
    found: list[Any] = []
    pending = _read(program)
    while pending and len(found) < MAX_INNER:
        node = pending.pop()
        if not isinstance(node, m.Sequence):
            continue
        name = kebab((head_name(node[0]) or "") if isinstance(node, m.Expression) and node else "")
        if name in table and not only_reads(table.get(name)):
            found.append(node)
        pending.extend(node)
        if name == PROGRAMS:  # a program may be a text
            pending.extend(form for item in node if isinstance(item, m.String) for form in _read(str(item)))
    return found


def _read(program: str) -> list[Any]:
    try:
        return list(read_all(program))
    except ReadError:
        return []
