"""All faults of a flight plan, each with file, line, column and the nearest name. It runs nothing.

Knows plans, and tools by their table; must not know the file's format, the door or any model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.plan import TODO_LINE, Fault, Form, Part, Plan, Setting, line_of
from agent.plan_forms import form_faults, tool_uses
from neuro.backends.choose import PROVIDERS
from tools.errors import did_you_mean
from tools.rules import Place
from tools.table import CognitiveTool, ToolTable


def check(plan: Plan, table: ToolTable) -> list[Fault]:
    """Every fault, in the order of the file."""
    found = [*plan.faults, *_empty(plan)]
    for part in plan.parts:
        found += _part(plan, part, table)
    for form in plan.library.values():
        found += [*_form(plan, None, form, table)]
    found += _order(plan)
    unique = {(fault.place.line, fault.place.column, fault.message): fault for fault in found}
    return [unique[key] for key in sorted(unique)]


def reads_only(tool: CognitiveTool) -> bool:
    """Whether a tool may stand in an expectation: it changes nothing, and asks no model."""
    return set(tool.effects) <= {"reads"} and tool.cost != "expensive"


def _empty(plan: Plan) -> Iterator[Fault]:
    if not plan.steps:
        what = (
            f"There is no step in this plan. A step is a headline such as * PLAN Say hello; see {TODO_LINE}."
        )
        yield Fault(Place(plan.source, 1, 1), what)


def _part(plan: Plan, part: Part, table: ToolTable) -> Iterator[Fault]:
    settings = part.settings
    yield from _tools(settings.get("TOOLS"), table)
    yield from _model(settings.get("MODEL"))
    yield from _after(plan, part)
    yield from _expect(plan, part, table)
    for form in part.forms:
        yield from _form(plan, part, form, table)
    if part.inside and part.forms:
        what = "A headline with steps in it has no forms of its own; give them a headline, too."
        yield Fault(part.forms[0].place, what)
    if part.is_step and not (part.prose or any(form.runs for form in part.forms) or part.expect):
        if part.is_phase:
            what = f"The phase {part.phase} is empty; give it steps, an objective, forms or an :EXPECT:."
        else:
            what = "This step does nothing; give it an objective, forms or an :EXPECT:."
        yield Fault(part.place, what)


def _tools(setting: Setting | None, table: ToolTable) -> Iterator[Fault]:
    if setting is None or setting.value.lower() in ("nil", "none"):
        return
    if not setting.value:
        yield Fault(setting.place, "TOOLS is empty; name tools, or write nil for none.")
    seen: set[str] = set()
    for name, place in _words(setting):
        if name not in table:
            yield Fault(place, f"There is no tool named {name}.{did_you_mean(name, table.names())}")
        elif name in seen:
            yield Fault(place, f"The tool {name} stands twice.")
        seen.add(name)


def _words(setting: Setting) -> Iterator[tuple[str, Place]]:
    """The names in a property with their places; a value put together from several lines has one place."""
    line = line_of(setting.place)
    for name in dict.fromkeys(setting.value.replace(",", " ").split()):
        column = line.find(name, setting.place.column - 1)
        yield name, Place(setting.place.source, setting.place.line, max(column + 1, setting.place.column))
    words = setting.value.replace(",", " ").split()
    yield from ((name, setting.place) for name in dict.fromkeys(words) if words.count(name) > 1)


def _model(setting: Setting | None) -> Iterator[Fault]:
    if setting is None:
        return
    provider, colon, model = setting.value.partition(":")
    if provider not in PROVIDERS:
        hint = did_you_mean(provider, PROVIDERS) or f" They are {', '.join(PROVIDERS)}."
        yield Fault(setting.place, f"There is no provider of models {provider or 'without a name'}.{hint}")
    elif not model and (colon or provider not in ("local", "local-small")):
        yield Fault(setting.place, f"MODEL needs a name after the colon, as in {provider}:NAME.")


def _after(plan: Plan, part: Part) -> Iterator[Fault]:
    setting = part.settings.get("AFTER")
    if setting is None or setting.value.lower() in ("nil", "none"):
        return
    if not setting.value:
        yield Fault(setting.place, "AFTER is empty; name ids, or write nil to wait for nothing.")
    for name, place in _words(setting):
        if name in plan.by_id:
            continue
        if name in plan.left_out:
            yield Fault(
                place, f"{name} is no part of this plan: it is a comment, archived or without TODO word."
            )
        else:
            yield Fault(place, f"There is no step with the id {name}.{did_you_mean(name, plan.by_id)}")


def _expect(plan: Plan, part: Part, table: ToolTable) -> Iterator[Fault]:
    setting, form = part.settings.get("EXPECT"), part.expectation()
    if setting is not None and form is None:
        yield Fault(setting.place, "EXPECT is empty; write a form that must be true.")
    if form is None:
        return
    faults = form_faults(form.text, table)
    yield from (Fault(form.at(fault.line, fault.column), fault.message) for fault in faults)
    if faults:
        return
    for use in tool_uses(form.text, table):
        if not reads_only(use.tool):
            why = "it asks a model" if use.tool.cost == "expensive" else f"it {_does(use.tool)}"
            what = f"EXPECT may only look, with tools that read; {use.tool.name} may not stand here: {why}."
            yield Fault(form.at(use.line, use.column), what)


def _does(tool: CognitiveTool) -> str:
    said = {
        "writes": "writes",
        "runs": "runs programs",
        "net": "uses the network",
        "memory": "changes memory",
    }
    return " and ".join(said[effect] for effect in tool.effects if effect in said)


def _form(plan: Plan, part: Part | None, form: Form, table: ToolTable) -> Iterator[Fault]:
    if not form.runs:
        return
    yield from _refs(plan, part, form)
    if form.call:
        known = {**plan.library, **{name: one for name, (_, one) in plan.blocks.items()}}
        if form.call not in known:
            what = f"There is no block named {form.call}.{did_you_mean(form.call, known)}"
            if form.call in plan.data:
                what = f"{form.call} is no block of forms; a call needs one."
            yield Fault(form.place, what)
        return
    if not form.text.strip():
        yield Fault(form.place, "This block is empty.")
        return
    names = [var.name for var in form.vars]
    faults = form_faults(form.text, table, names)
    yield from (Fault(form.at(fault.line, fault.column), fault.message) for fault in faults)
    if faults or part is None or part.tools is None:
        return
    allowed = {table.get(name).name for name in part.tools if name in table}
    for use in tool_uses(form.text, table, names):
        if use.tool.name not in allowed:
            has = ", ".join(sorted(allowed)) or "none"
            what = f"{use.tool.name} is not among the :TOOLS: of this step ({has})."
            yield Fault(form.at(use.line, use.column), what)


def _refs(plan: Plan, part: Part | None, form: Form) -> Iterator[Fault]:
    """Names that variables refer to: they must exist, and what they are results of must have run before."""
    known = {*plan.data, *plan.blocks, *plan.library, *(step.id for step in plan.steps)}
    for var in form.vars:
        if not var.ref or var.ref in plan.data or var.ref in plan.library:
            continue
        place = form.var_place(var)
        if var.ref not in known:
            hint = did_you_mean(var.ref, known) or f' A text is written "{var.ref}".'
            yield Fault(place, f"There is nothing named {var.ref}.{hint}")
            continue
        if part is None or not part.is_step:
            continue
        source, block = plan.blocks.get(var.ref, (plan.by_id.get(var.ref), None))
        if source is None:
            continue
        if source is part:
            before = block is not None and block.block < form.block
        else:
            before = source.id in plan.earlier(part)
        if not before:
            yield Fault(
                place, f"{var.ref} is not known here: it comes later, or nothing says that it comes before."
            )


def _order(plan: Plan) -> Iterator[Fault]:
    ready = {step.id for step in plan.order}
    rings: dict[str, list[str]] = {}
    for step in plan.steps:
        if step.id not in ready and (way := _ring(step.id, plan.waits)):
            rings[step.id] = way
    told: set[str] = set()
    for step in plan.steps:
        if step.id in ready:
            continue
        place = _after_place(step)
        if ring := rings.get(step.id):
            if not told.intersection(ring):
                yield Fault(place, f"This waits for itself: {' after '.join(ring)}.")
            told.update(ring)
        else:
            stuck = next(name for name in plan.waits[step.id] if name not in ready)
            yield Fault(step.place, f"This step is never reached: it waits for {stuck}, which cannot begin.")


def _ring(start: str, waits: Mapping[str, tuple[str, ...]]) -> list[str]:
    """A way from a step back to itself, the shortest; empty when there is none."""
    came: dict[str, str] = {}
    pending = [start]
    for name in pending:
        for earlier in waits[name]:
            if earlier == start:
                way = [name]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return [*reversed(way), start]
            if earlier not in came:
                came[earlier] = name
                pending.append(earlier)
    return []


def _after_place(step: Part) -> Place:
    """Where the waiting is written down: at the step, or at the nearest group around it."""
    for part in (step, *reversed(list(step.around))):
        if "AFTER" in part.settings:
            return part.settings["AFTER"].place
    return step.place
