"""Approvals of plan steps: decisions of persons about steps, recorded in the store, and the calls they cover.

An approval is bound to digests of the step and of its tools; the TODO word in the file has no effect. It
covers calls that policy would ask about, if the step's forms contain them with literal arguments and the
person saw them. Each attempt may run each of them once, through the approval of a whole program
(tools/consent/plan_approvals.py). It does not cover calls of a model, calls whose arguments are known only in
flight, or calls that a rule or a guard denies."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from quoth.agent.plan.check import reads_only
from quoth.agent.plan.check_forms import tool_uses
from quoth.agent.plan.model import BUDGETS, Form, Part, Plan
from quoth.agent.plan.reading import called, known_program, knows_all, libraries, unknown_refs, variables
from quoth.agent.run.calls import Calls
from quoth.agent.terminal.output import columns_of, is_terminal, results
from quoth.agent.terminal.question import FileDifference, drawn
from quoth.tools.call.call import Call
from quoth.tools.call.ports import Audit
from quoth.tools.call.redaction import SECRET
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.requests import Decision, decision_row
from quoth.tools.consent.shown import replaced
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import DisplayText, print_value
from quoth.tools.org.babel import Var
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.text import number_of
from quoth.tools.visible import mixed, visible

if TYPE_CHECKING:
    from quoth.agent.run.host import SessionHost


@dataclass(frozen=True)
class Approval:
    """A person's decision about a step. ``at`` is in seconds since the epoch. ``holds`` is False if the step
    or a tool in it changed since; ``step`` is the id at the time of the decision, ``seen`` the digests of the
    shown calls. ``files`` maps each path that these calls replace to the file's content then, or to the
    content that the plan's own calls wrote since."""

    decision: Literal["approve", "deny"]
    user: str
    at: float
    why: str
    holds: bool
    step: str
    seen: frozenset[str]
    files: Mapping[str, str]


def record(
    store: Store,
    audit: Audit,
    plan: Plan,
    path: str,
    step: Part,
    table: ToolTable,
    decision: Decision,
    covered: Coverage | None = None,
    workspace: Workspace | None = None,
) -> None:
    """Record a person's decision about a step in the store and the audit trail, in one transaction.
    ``covered`` are the shown calls; the approval covers no others, and no change of a file in ``workspace``
    whose content differs by then."""
    shown: dict[str, Any] = {"calls": sorted(covered.seen if covered else ()), "files": {}}
    if covered is not None and workspace is not None:
        for one in covered.calls:
            shown["files"] |= replaced(table.get(one.call.tool), one.call.args, workspace)
    denied, digest = decision.kind == "deny", plan.digest(step)
    said = f"step {'denied' if denied else 'approved'} by {decision.by or 'a person'}"
    with store.transaction() as run:
        audit.write(decision_row(decision, said, "fly", digest, f"{plan.source.name} {step.id}"))
        run(
            "INSERT INTO plan_steps (plan, step, digest, tools, decision, user, at, why, body, seen)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                path,
                step.id,
                digest,
                tools_digest(plan, step, table),
                "deny" if denied else "approve",
                decision.by,
                time.time(),
                decision.why,
                body_digest(plan, step),
                json.dumps(shown),
            ),
        )


def approval_of(store: Store, plan: Plan, path: str, step: Part, table: ToolTable) -> Approval | None:
    """Return the last decision about a step. A denial lasts until a person approves the step, even if the
    step changes. It also applies to a step with the same body under another headline, unless that step has a
    valid approval."""
    what = "SELECT digest, tools, decision, user, at, why, step, seen FROM plan_steps AS said WHERE plan = ?"
    if not store.execute("SELECT 1 FROM plan_steps WHERE plan = ? LIMIT 1", (path,)):
        return None  # most plans have no decisions
    own = store.execute(f"{what} AND step = ? ORDER BY seq DESC LIMIT 1", (path, step.id))

    def is_same(digest: str, tools: str) -> bool:
        return digest == plan.digest(step) and tools == tools_digest(plan, step, table)

    found, same = [], bool(own) and own[0][2] != "deny" and is_same(*own[0][:2])
    if not own or (own[0][2] != "deny" and not same):
        latest = "(SELECT max(seq) FROM plan_steps WHERE plan = said.plan AND step = said.step)"
        found = store.execute(
            f"{what} AND body = ? AND body != '' AND decision = 'deny' AND seq = {latest}"
            " ORDER BY seq DESC LIMIT 1",
            (path, body_digest(plan, step)),
        )
    if not (found := found or own):
        return None
    _, _, decision, user, at, why, of, seen = found[0]
    holds, shown = decision == "deny" or same, _shown_in(seen)
    return Approval(decision, user, at, why, holds, of, frozenset(shown["calls"]), shown["files"])


def _shown_in(text: str) -> dict[str, Any]:
    """The calls and files shown for an approval; older stores have only the calls."""
    shown = json.loads(text)
    return shown if isinstance(shown, dict) else {"calls": shown, "files": {}}


def note_left(store: Store, path: str, before: Mapping[str, str], left: Mapping[str, str]) -> None:
    """Record that approved calls of a plan changed files from ``before`` to ``left``, so that later calls of
    the plan may replace the new contents."""
    with store.transaction() as run:
        for seq, seen in run("SELECT seq, seen FROM plan_steps WHERE plan = ?", (path,)):
            shown = _shown_in(seen)
            same = {one for one, held in shown["files"].items() if one in left and before.get(one) == held}
            if same:
                shown["files"] |= {one: left[one] for one in same}
                run("UPDATE plan_steps SET seen = ? WHERE seq = ?", (json.dumps(shown), seq))


def approves(approval: Approval | None) -> TypeGuard[Approval]:
    """Whether a person approved the step in its present form."""
    return approval is not None and approval.holds and approval.decision == "approve"


def approved_words(plan: Plan, step: Part) -> list[Any]:
    """Return the own texts of a step, which an approval turns into words of the person: its title and prose,
    the plan's notes for it, its blocks, and the plan's data that these refer to. Results are excluded."""
    forms = list(step.running)
    for form in step.running:
        forms += [called(plan, form), *libraries(plan, form).values()]
    given = [var for form in forms for var in form.vars]
    data = [plan.data[var.ref].value if var.ref in plan.data else var.value for var in given]
    notes = [note.prose for note in plan.notes(step)] if step.objective else []
    said = [step.title, step.prose, *notes, *(form.text for form in forms), *data]
    return [one for place, one in enumerate(said) if one and one not in said[:place]]


def body_digest(plan: Plan, step: Part) -> str:
    """Return a digest of the forms and the objective of a step, without its id and title; empty for a step
    with only an expectation."""
    forms = [
        [called(plan, form).text, [[var.name, var.text] for var in variables(plan, form)]]
        for form in step.running
    ]
    if not (forms or step.objective):
        return ""
    return hashlib.sha256(json.dumps([step.objective, forms]).encode()).hexdigest()


def tools_digest(plan: Plan, step: Part, table: ToolTable) -> str:
    """Return a digest of the versions of the tools in a step's forms; an approval ends when it changes."""
    found: dict[str, str] = {}
    for form in step.running:
        names = [var.name for var in variables(plan, form)]
        uses = tool_uses(called(plan, form).text, table, names)
        found |= {use.tool.name: use.tool.version for use in uses}
    return hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()


def cover(broker: Broker, call: Call, plan: Mapping[str, Any], by: Approval, why: str) -> None:
    """Approve, for this one run of a program (``call``), the calls of its dry run ``plan`` that have literal
    arguments, that the person saw, and whose files to replace are unchanged since."""
    known, _ = _parted(plan)
    if shapes := [{**shape, "files": dict(by.files)} for shape in known if _seen(plan, shape) in by.seen]:
        request = broker.ask_for_plan(call, {**plan, "shapes": shapes}, bound=True)
        broker.decide(request, Decision("once", by.user, why))


@dataclass(frozen=True)
class Covered:
    """A call that an approval covers, without declared secrets, and how many times it may run in one attempt;
    None means any number. ``seen`` are the digests of the calls that it represents."""

    call: CallForm
    times: int | None
    seen: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """The scope of an approval of a step: a model and calls. ``asks`` describes, with reasons, the calls that
    will still need a question."""

    model: str
    calls: tuple[Covered, ...]
    asks: tuple[str, ...]

    @property
    def seen(self) -> frozenset[str]:
        return frozenset(digest for one in self.calls for digest in one.seen)


async def coverage(agent: SessionHost, plan: Plan, step: Part) -> Coverage:
    """Find the scope of an approval of a step. Calls no tool and reads only the plan."""
    calls: dict[str, Covered] = {}
    asks: dict[str, None] = {}
    for form in step.running:
        inner, other = await _coverage(agent, plan, form)
        for one in inner:
            known = calls.setdefault(str(one.call), replace(one, times=0, seen=()))
            both = None if known.times is None or one.times is None else known.times + one.times
            calls[str(one.call)] = replace(one, times=both, seen=(*known.seen, *one.seen))
        asks |= dict.fromkeys(other)
    if step.objective and step.tools != ():
        asks["calls of its model"] = None
    return Coverage(step.model, tuple(calls.values()), tuple(asks))


async def _coverage(agent: SessionHost, plan: Plan, form: Form) -> tuple[list[Covered], list[str]]:
    given, text = variables(plan, form), called(plan, form).text
    if not knows_all(plan, form):
        refs = unknown_refs(plan, form)
        asks = [f"{name} (it uses the result of {refs})" for name in _changing(agent.table, text, given)]
        for block in libraries(plan, form).values():
            names = _changing(agent.table, block.text, block.vars)
            asks += [f"{name} (in the block {block.name}, which computes a value)" for name in names]
        return [], asks
    found = await Calls(agent).eval(known_program(plan, form), route="flight", dry_run="pure")
    if not found.ok:
        return [], [f"every call ({found.message})"]
    known, unknown = _parted(found.value)
    asks = [f"{shape['tool']} ({_unknown(shape)} known only in flight)" for shape in unknown]
    if not found.value["complete"]:
        asks.append("further calls (the program cannot be followed completely)")
    shown = [(_shown(shape, agent.table), shape["times"], (_seen(found.value, shape),)) for shape in known]
    return [Covered(*one) for one in shown], asks


def _changing(table: ToolTable, text: str, given: Sequence[Var]) -> list[str]:
    """Return the names of a program's tools that do more than read."""
    uses = [use.tool for use in tool_uses(text, table, [var.name for var in given])]
    return list(dict.fromkeys(tool.name for tool in uses if not reads_only(tool)))


def _parted(plan: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Split the calls that policy would ask about: those with only literal arguments, and the others."""
    parted: tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] = ([], [])
    for shape in plan["shapes"]:
        parted[not all(map(_is_literal, shape["args"].values()))].append(shape)
    return parted


def _unknown(shape: Mapping[str, Any]) -> str:
    """The arguments of a call that contain results; the others are the plan's own words."""
    names = [f":{name}" for name, pattern in shape["args"].items() if not _is_literal(pattern)]
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _shown(shape: Mapping[str, Any], table: ToolTable) -> CallForm:
    given = shape["args"]
    names = [param.name for param in table.get(shape["tool"]).params if param.name in given]
    return CallForm(shape["tool"], {name: given[name].get("is", SECRET) for name in names})


def _seen(plan: Mapping[str, Any], shape: Mapping[str, Any]) -> str:
    """Return a digest of a program's call, and the number of times it may run."""
    data = json.dumps([plan["program"], shape], sort_keys=True)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()


def _is_literal(pattern: Mapping[str, Any]) -> bool:
    return "is" in pattern or "sha256" in pattern


# Shows a step to the person who decides about it: its programs, their variables, its properties, and the
# scope of an approval.
#
# The page shows everything that the digest of the step covers. Long lines are broken and indented here, so
# that no text of a plan can imitate quoth's own lines; control characters are shown as escapes. Only an
# argument or a value longer than WHOLE_CHARS is shortened to its head, length and digest; the JSON has all of
# it.


WHOLE_CHARS, HEAD_CHARS = 2000, 200
NARROWEST = 40
CHANGED_LINES = 40  # lines shown of the difference of one file
LABEL, TEXT, MORE = "    ", "        ", "      … "  # texts of a plan begin at the column of TEXT


def page(
    plan: Plan, step: Part, word: str, covered: Coverage | None, changes: Sequence[FileDifference] = ()
) -> str:
    """Return the step as text for a person. ``covered`` is the scope of an approval, None for a denial;
    ``changes`` are the changes that its calls would make to the present files."""
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
        lines += _folded(f"with the present files: {one.head}", LABEL)
        lines += [f"{TEXT}{line}" for line in [*shown[:CHANGED_LINES], *more]]
    if warning := mixed("\n".join(text for _, texts in _parts(plan, step, covered) for text in texts)):
        lines += [f"{LABEL}look out:", *_folded(warning, TEXT)]
    return "\n".join(lines)


def as_data(plan: Plan, step: Part) -> dict[str, Any]:
    """Return a step as JSON data, without shortening."""
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
    """Return the scope of an approval as JSON data; ``times`` is None for any number of calls."""
    calls = [{"call": str(one.call), "times": one.times} for one in covered.calls]
    model = [{"model": covered.model}] if covered.model else []
    return {"covers": [*model, *calls], "asks": list(covered.asks)}


def properties(step: Part) -> dict[str, str]:
    """Return the properties in effect for a step, including inherited ones."""
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
    """The parts of the page, each with its label."""
    if remarks := _remarks(step):
        yield "comments in the file", remarks
    for form in step.running:
        yield from _block(plan, form, "runs", called(plan, form).text)
        for name, block in libraries(plan, form).items():
            yield from _block(plan, block, "runs first, to compute a value", f"#+NAME: {name}\n{block.text}")
    if step.objective:
        yield "objective", [step.objective]
        if told := [f"{note.title}:\n{note.prose}" for note in plan.notes(step)]:
            yield "its model also reads", told
    if told := [f":{name}: {value}" for name, value in properties(step).items()]:
        yield "properties", told
    if covered is not None:
        yield from _covers(step, covered)


def _remarks(step: Part) -> list[str]:
    """The comments between the headline and the forms; in a draft, they name the sources of its addresses."""
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
        yield "covers", ["no call" if covered.asks else "no call, because none needs a question"]
    if covered.asks:
        yield "will still ask", list(covered.asks)


def _times(times: int | None) -> str:
    return "" if times == 1 else "any number of times: " if times is None else f"{times} times: "


def _with(plan: Plan, form: Form) -> dict[str, Any]:
    """The variables of a block with their values, or for a value known only in flight, the source of the
    result."""
    return {
        var.name: {"result-of": var.ref}
        if var.ref and var.ref not in plan.data
        else {"data": var.ref, "value": plan.data[var.ref].value}
        if var.ref
        else {"value": var.value}
        for var in variables(plan, form)
    }


def _value(name: str, given: dict[str, Any]) -> list[str]:
    """A variable as lines, one for each row of a table."""
    if "value" not in given:
        return [f"{name} = the result of {given['result-of']}"]
    value, named = given["value"], f"{given['data']}, " if "data" in given else ""
    if isinstance(value, list) and any(isinstance(row, list) for row in value):
        rows = number_of(len(value), "row")
        return [f"{name} = {named}{rows}", *(f"  {_brief(row)}" for row in value)]
    return [f"{name} = {named}{_brief(value)}"]


def _brief_call(call: CallForm) -> str:
    args = {name: DisplayText(_brief(value)) for name, value in call.args.items()}
    return str(replace(call, args=args))


def _brief(value: Any) -> str:
    """A value as text; a huge one as its head, length and digest."""
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
    """A line in pieces that fit the terminal, so that the terminal does not break it; elsewhere the whole
    line."""
    from rich.cells import chop_cells

    text, out = first + visible(line.expandtabs()), results()
    width = _width() if is_terminal(out) else max(len(text) * 2, NARROWEST)
    begin, *more = chop_cells(text, width) or [""]
    yield begin.rstrip()
    for piece in chop_cells("".join(more), width - len(MORE)) if more else ():
        yield MORE + piece
