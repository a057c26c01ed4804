"""Shows a step to the person who decides about it: its programs, their variables, its properties, and what
an approval covers.

Knows plans and coverage; it must not know the store, nor decide anything. Everything that the digest of the
step covers is shown. Long lines are broken and indented here, so that no text of a plan can imitate quoth's
own lines, and control characters are shown as escapes. Only an argument or a value longer than WHOLE_CHARS is
shown by its head, length and digest; the JSON holds it whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from quoth.agent.flight.approval import Coverage
from quoth.agent.plan.blocks import called, libraries, variables
from quoth.agent.plan.model import BUDGETS, Form, Part, Plan
from quoth.agent.terminal.output import columns_of, is_terminal, results
from quoth.agent.terminal.question import Difference, drawn
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import DisplayText, print_value
from quoth.tools.text import number_of
from quoth.tools.visible import mixed, visible

WHOLE_CHARS, HEAD_CHARS = 2000, 200
NARROWEST = 40
CHANGED_LINES = 40  # of the difference of one file
LABEL, TEXT, MORE = "    ", "        ", "      … "  # no text of a plan stands left of TEXT


def page(
    plan: Plan, step: Part, word: str, covered: Coverage | None, changes: Sequence[Difference] = ()
) -> str:
    """Return the step as text for a person; ``covered`` is what an approval covers, None for a denial, and
    ``changes`` what its calls would change as the files are now."""
    head = f"{word:<9}{step.id}  {step.title}  (digest {plan.digest(step)[:12]})"
    lines = list(_folded(" ".join(head.split("\n")), ""))
    for label, texts in _parts(plan, step, covered):
        lines.append(f"{LABEL}{label}:")
        for text in texts:
            for line in text.split("\n"):
                lines += _folded(line, TEXT)
    for one in changes:
        shown = drawn(one.lines, _width() - len(TEXT), color=False)
        more = [f"… {len(shown) - CHANGED_LINES} more lines"] if len(shown) > CHANGED_LINES else []
        lines += _folded(f"as the files are now: {one.head}", LABEL)
        lines += [f"{TEXT}{line}" for line in [*shown[:CHANGED_LINES], *more]]
    if warning := mixed("\n".join(text for _, texts in _parts(plan, step, covered) for text in texts)):
        lines += [f"{LABEL}look out:", *_folded(warning, TEXT)]
    return "\n".join(lines)


def as_data(plan: Plan, step: Part) -> dict[str, Any]:
    """Return a step as JSON data, with nothing shortened."""
    return {
        "title": step.title,
        "phase": step.phase,
        "forms": [called(plan, form).text for form in step.running],
        "with": [_with(plan, form) for form in step.running],
        "blocks": {
            name: {"form": block.text, "with": _with(plan, block)}
            for form in step.running
            for name, block in libraries(plan, form).items()
        },
        "objective": step.objective,
        "told": {note.title: note.prose for note in plan.notes(step)} if step.objective else {},
        "properties": properties(step),
    }


def coverage_data(covered: Coverage) -> dict[str, Any]:
    """Return what an approval covers as JSON data; ``times`` is None for any number of calls."""
    calls = [{"call": str(one.call), "times": one.times} for one in covered.calls]
    model = [{"model": covered.model}] if covered.model else []
    return {"covers": [*model, *calls], "asks": list(covered.asks)}


def properties(step: Part) -> dict[str, str]:
    """Return the properties in effect for a step, inherited ones included."""
    budget = [(name, getattr(step.budget, name)) for name in BUDGETS]
    told = {
        "TOOLS": None if step.tools is None else " ".join(step.tools) or "nil",
        "MODEL": step.model,
        "BUDGET": " ".join(f"{name}={value}" for name, value in budget if value is not None),
        "RETRY": str(step.retry or ""),
        "ON-FAIL": "" if step.on_fail == "stop" else step.on_fail,
        "MAY-FAIL": "t" if step.may_fail else "",
        "AFTER": None if step.after is None else " ".join(step.after) or "nil",
        "EXPECT": step.expect,
    }
    given = {name: value for name, value in told.items() if value}
    return given | {f"EXPECT of {group.id}": group.expect for group in step.around if group.expect}


def _parts(plan: Plan, step: Part, covered: Coverage | None) -> Iterator[tuple[str, list[str]]]:
    """What there is to see, each under its label."""
    if remarks := _remarks(step):
        yield "the file remarks", remarks
    for form in step.running:
        yield from _block(plan, form, "runs", called(plan, form).text)
        for name, block in libraries(plan, form).items():
            yield from _block(plan, block, "runs before that, for a value", f"#+NAME: {name}\n{block.text}")
    if step.objective:
        yield "objective", [step.objective]
        if told := [f"{note.title}:\n{note.prose}" for note in plan.notes(step)]:
            yield "its model is told as well", told
    if told := [f":{name}: {value}" for name, value in properties(step).items()]:
        yield "properties", told
    if covered is not None:
        yield from _covers(step, covered)


def _remarks(step: Part) -> list[str]:
    """The comments between the headline and what runs: in a draft, where its addresses come from."""
    if not step.running:
        return []
    rows = step.place.source.lines[step.place.line : step.running[0].place.line]
    return [row.strip()[2:] for row in rows if row.lstrip().startswith("# ")]


def _block(plan: Plan, form: Form, label: str, text: str) -> Iterator[tuple[str, list[str]]]:
    yield label, [text]
    if given := _with(plan, form):
        yield "with", [line for name, value in given.items() for line in _value(name, value)]


def _covers(step: Part, covered: Coverage) -> Iterator[tuple[str, list[str]]]:
    calls = [f"{_times(one.times)}{_brief_call(one.call)}" for one in covered.calls]
    attempts = f"each of up to {step.retry + 1} attempts" if step.retry else "each attempt"
    if covered.model:
        yield "covers", [f"the model {covered.model}"]
    if calls:
        yield f"covers, in {attempts}", calls
    if not (calls or covered.model):
        yield "covers", ["no call" if covered.asks else "no call, for none is asked about"]
    if covered.asks:
        yield "will still ask", list(covered.asks)


def _times(times: int | None) -> str:
    return "" if times == 1 else "any number of times: " if times is None else f"{times} times: "


def _with(plan: Plan, form: Form) -> dict[str, Any]:
    """The variables of a block with their values; of one that is known only in flight, whose result it is."""
    return {
        var.name: {"result-of": var.ref}
        if var.ref and var.ref not in plan.data
        else {"data": var.ref, "value": plan.data[var.ref].value}
        if var.ref
        else {"value": var.value}
        for var in variables(plan, form)
    }


def _value(name: str, given: dict[str, Any]) -> list[str]:
    """A variable in lines: each row of a table has its own."""
    if "value" not in given:
        return [f"{name} = what {given['result-of']} comes to"]
    value, named = given["value"], f"{given['data']}, " if "data" in given else ""
    if isinstance(value, list) and any(isinstance(row, list) for row in value):
        rows = number_of(len(value), "row")
        return [f"{name} = {named}{rows}", *(f"  {_brief(row)}" for row in value)]
    return [f"{name} = {named}{_brief(value)}"]


def _brief_call(call: CallForm) -> str:
    args = {name: DisplayText(_brief(value)) for name, value in call.args.items()}
    return str(replace(call, args=args))


def _brief(value: Any) -> str:
    """A value as it is printed; a huge one by its head, length and digest."""
    text = print_value(value)
    if len(text) <= WHOLE_CHARS:
        return text
    if isinstance(value, list):
        return f"[{' '.join(map(_brief, value))}]"
    whole = value if isinstance(value, str) else text
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
    head = print_value(value[:HEAD_CHARS]) if isinstance(value, str) else text[:HEAD_CHARS]
    return f"{head}… #<{len(whole):,} characters, sha256 {digest}>"


# Lines


def _width() -> int:
    return max(columns_of(results()) - 1, NARROWEST)


def _folded(line: str, first: str) -> Iterator[str]:
    """A line in pieces that fit, so that no terminal breaks it by itself; elsewhere it stays whole."""
    from rich.cells import chop_cells

    text, out = first + visible(line.expandtabs()), results()
    width = _width() if is_terminal(out) else max(len(text) * 2, NARROWEST)
    begin, *more = chop_cells(text, width) or [""]
    yield begin.rstrip()
    for piece in chop_cells("".join(more), width - len(MORE)) if more else ():
        yield MORE + piece
