"""Shared by the readers of plans: places, faults, names, and the header arguments of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from quoth.agent.plan.model import Form, Plan, PlanFault
from quoth.tools.lisp.source import Place, SourceText
from quoth.tools.org import babel
from quoth.tools.org.babel import Header, HeaderError, Var


class PlanReading:
    """The base class of a reader of one file. Rows and columns count from 0."""

    def __init__(self, source: SourceText, lines: Sequence[str]) -> None:
        self.source = source
        self.lines = lines
        self.faults: list[PlanFault] = []
        self.names: dict[str, int] = {}
        for row, line in enumerate(lines):
            if not line.isascii() and (bad := re.search("[\ud800-\udfff]", line)):
                self.fault(row, bad.start(), "This is not UTF-8 text. Save the plan as UTF-8.")
                break

    def place(self, row: int, column: int = 0) -> Place:
        return Place(self.source, row + 1, column + 1)

    def fault(self, row: int, column: int, message: str) -> None:
        self.faults.append(PlanFault(self.place(row, column), message))

    def named(self, name: str, row: int, column: int) -> Place:
        """Record the name of a block or of data, and return its place. A duplicate name is a fault."""
        if name in self.names:
            what = f"The name {name} is used twice; its first use is in line {self.names[name] + 1}."
            self.fault(row, column, what)
        self.names.setdefault(name, row)
        return self.place(row, column)

    def variables(self, headers: Iterable[tuple[Header, int]]) -> tuple[dict[str, Var], dict[Var, Place]]:
        """Return the variables in header arguments by name (the last one wins), and their places."""
        found: dict[str, Var] = {}
        places: dict[Var, Place] = {}
        for header, row in headers:
            if header.name != "var":
                continue
            if not header.value:
                what = ":var has no name or value. Write :var x=name or :var x=5."
                self.fault(row, header.column, what)
            try:
                for var in babel.variables(header.value, header.value_column):
                    found[var.name] = var
                    places[var] = self.place(row, var.column)
            except HeaderError as error:
                self.fault(row, error.column, str(error))
                found |= {var.name: var for var in babel.unreadable(header.value)}
        return found, places


# Resolves the references of a plan's code blocks: to other blocks, variables, libraries.


def called(plan: Plan, form: Form) -> Form:
    """Return the block whose text runs: ``form`` itself, or the named block that it calls."""
    block = plan.block(form.call) if form.call else form
    assert block is not None, "the plan was checked before"
    return block


def variables(plan: Plan, form: Form) -> list[Var]:
    """Return the variables of a block. Those of a call override those of the block it calls."""
    return list({var.name: var for var in (*called(plan, form).vars, *form.vars)}.values())


def knows_all(plan: Plan, form: Form) -> bool:
    """Whether every variable of a block has a value in the plan, so none is the result of another block."""
    return all(not var.ref or var.ref in plan.data for var in variables(plan, form))


def unknown_refs(plan: Plan, form: Form) -> str:
    """Return the names of the results a block needs that exist only in flight, joined by commas."""
    return ", ".join(dict.fromkeys(v.ref for v in variables(plan, form) if v.ref and v.ref not in plan.data))


def known_program(plan: Plan, form: Form) -> str:
    """Return the program of a block for which ``knows_all`` is true."""
    given = variables(plan, form)
    values = {var.name: plan.data[var.ref].value if var.ref else var.value for var in given}
    return form.program(values, called(plan, form).text)


def libraries(plan: Plan, form: Form) -> dict[str, Form]:
    """Return, by name, the blocks outside all steps that a block's variables refer to, transitively."""
    found: dict[str, Form] = {}
    pending = [var.ref for var in variables(plan, form)]
    while pending:
        name = pending.pop(0)
        if name in plan.library and name not in found:
            found[name] = plan.library[name]
            pending += [var.ref for var in plan.library[name].vars]
    return found
