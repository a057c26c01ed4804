"""Finds all faults of a flight plan, each with file, line, column and the nearest name. Runs no call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from quoth.agent.plan.check_forms import form_faults, forms_in, tool_uses, unknown_in
from quoth.agent.plan.model import RESULT, TODO_LINE, Data, Form, Part, Plan, PlanFault, Setting
from quoth.neuro.backends.providers import NONE, Provider, names
from quoth.tools.errors import did_you_mean, no_such
from quoth.tools.lisp.source import Place
from quoth.tools.registry.table import CognitiveTool, ToolTable

# What an expectation may refer to, for a step without and with a result.
_KNOWN = (
    "an expectation may use tools, but not results of steps",
    f"an expectation may use tools, and {RESULT}, the result of its own step",
)


def check(plan: Plan, table: ToolTable, models: Mapping[str, Provider] = NONE) -> list[PlanFault]:
    """Return all faults of the plan, including those of reading, in the order of the file. ``models`` are the
    configured providers."""
    found = [*plan.faults, *_empty(plan)]
    for part in plan.parts:
        found += [*_part(plan, part, table), *_model(part.settings.get("MODEL"), models)]
    for form in plan.library.values():
        found += [*_form(plan, None, form, table)]
    found += _names(plan)
    found += _circles(plan)
    found += _order(plan)
    unique = {(fault.place.line, fault.place.column, fault.message): fault for fault in found}
    return [unique[key] for key in sorted(unique)]


def reads_only(tool: CognitiveTool) -> bool:
    """Whether an expectation may call the tool: it must change nothing and ask no model."""
    return set(tool.effects) <= {"reads"} and tool.cost != "expensive"


def _empty(plan: Plan) -> Iterator[PlanFault]:
    if not plan.steps:
        mark = "#" if plan.source.name.endswith((".md", ".markdown")) else "*"
        what = f"This plan has no steps. A step is a headline such as {mark} PLAN Say hello. The first"
        what += f" word is one of {TODO_LINE}."
        yield PlanFault(Place(plan.source, 1, 1), what)


def _part(plan: Plan, part: Part, table: ToolTable) -> Iterator[PlanFault]:
    settings = part.settings
    yield from _tools(settings.get("TOOLS"), table)
    yield from _after(plan, part)
    yield from _expect(plan, part, table)
    for form in part.forms:
        yield from _form(plan, part, form, table)
    if part.inside and part.forms:
        what = "A headline with steps below it cannot have its own forms. Put them below another headline."
        yield PlanFault(part.forms[0].place, what)
    yield from _bare(part, table)
    if part.todo and part.prose and not part.forms:
        yield from _displaced(part)
    if part.is_step and not (part.prose or part.running or part.expect):
        if part.is_phase:
            what = f"The phase {part.phase} is empty. Add steps, an objective, forms or an :EXPECT:."
        else:
            what = "This step is empty. Add an objective, forms or an :EXPECT:."
        yield PlanFault(part.place, what)


def _bare(part: Part, table: ToolTable) -> Iterator[PlanFault]:
    """An objective that is only the call of a tool, which a model would read as text."""
    text = part.objective.removeprefix(": ")
    head = re.match(r"\(([^\s()]+)", text)
    if head and head[1] in table and text.endswith(")"):
        what = "This is text for a model. To run it, put it between #+begin_src hy and #+end_src."
        for number, line in enumerate(part.place.source.lines[part.place.line :], part.place.line + 1):
            if line.strip().lstrip(": ").startswith(head[0]):
                yield PlanFault(Place(part.place.source, number, line.index(head[0]) + 1), what)
                return


def _displaced(part: Part) -> Iterator[PlanFault]:
    """Headlines that may be meant as part of a step's text, but would run instead of it."""
    for inner in part.inside:
        if not inner.todo and not inner.is_phase and inner.is_step:
            what = (
                "Because of this step below it, the text above is not a step; only this step's model reads it"
            )
            yield PlanFault(
                inner.place, f"{what}. Write PLAN {inner.title}, or make this headline part of the text."
            )


def _tools(setting: Setting | None, table: ToolTable) -> Iterator[PlanFault]:
    if setting is None or setting.value.lower() in ("nil", "none"):
        return
    if not setting.value:
        yield PlanFault(setting.place, "TOOLS is empty. Name tools, or write nil for none.")
    seen: set[str] = set()
    for name, place in _words(setting):
        if name not in table:
            hint = did_you_mean(name, table.names())
            if name.lower() in ("all", "*", "any"):
                hint = " Without the property a step has all tools."
            yield PlanFault(place, f"There is no tool named {name}.{hint}")
        elif name in seen:
            yield PlanFault(place, f"The tool {name} is given twice.")
        seen.add(name)


def _words(setting: Setting) -> Iterator[tuple[str, Place]]:
    """The names in a property with their places; a value of several lines has one place."""
    words = setting.value.replace(",", " ").split()
    for name in dict.fromkeys(words):
        column = setting.place.text.find(name, setting.place.column - 1)
        yield name, Place(setting.place.source, setting.place.line, max(column + 1, setting.place.column))
    yield from ((name, setting.place) for name in dict.fromkeys(words) if words.count(name) > 1)


def _model(setting: Setting | None, models: Mapping[str, Provider]) -> Iterator[PlanFault]:
    if setting is None:
        return
    if not setting.value:
        yield PlanFault(setting.place, "MODEL is empty. Name a model, such as local or openai:NAME.")
        return
    provider, colon, model = setting.value.partition(":")
    known = names(models)
    if provider not in known:
        shown = provider or "before the colon"
        yield PlanFault(setting.place, no_such("model provider", shown, known, "The providers are"))
    elif not model and (colon or provider not in ("local", "local-small")):
        yield PlanFault(setting.place, f"MODEL needs a name after the colon, as in {provider}:NAME.")


def _after(plan: Plan, part: Part) -> Iterator[PlanFault]:
    setting = part.settings.get("AFTER")
    if setting is None or setting.value.lower() in ("nil", "none"):
        return
    if not setting.value:
        yield PlanFault(setting.place, "AFTER is empty. Name ids, or write nil to wait for no step.")
    titled = [one.id for one in plan.parts if one.title.lower() == setting.value.lower() != one.id]
    if titled and " " in setting.value:
        yield PlanFault(setting.place, f"AFTER needs ids, but this is a title. Write {titled[0]}.")
        return
    for name, place in _words(setting):
        if name in plan.by_id:
            yield from _twins(plan, name, place)
        elif name in plan.left_out:
            yield PlanFault(
                place, f"{name} is not part of this plan: it is a comment, archived or without a TODO word."
            )
        else:
            phases = [one.id for one in plan.parts if one.is_phase and one.phase == name.capitalize()]
            hint = f" Did you mean {phases[0]}?" if phases else did_you_mean(name, plan.by_id)
            yield PlanFault(place, f"There is no step with the id {name}.{hint}")


def _twins(plan: Plan, name: str, place: Place) -> Iterator[PlanFault]:
    """An id made from a title that two headlines have."""
    one = plan.by_id[name]
    same = [part.id for part in plan.parts if part.title == one.title and not part.has_id]
    if len(same) > 1 and name == same[0]:
        yield PlanFault(
            place, f"{name} may mean {' or '.join(same)}, which have the same title. Give each its own :ID:."
        )


def _expect(plan: Plan, part: Part, table: ToolTable) -> Iterator[PlanFault]:
    setting, form = part.settings.get("EXPECT"), part.expectation()
    if setting is not None and form is None:
        yield PlanFault(setting.place, "EXPECT is empty. Write a form that must be true.")
    if form is not None:
        names = [RESULT] if part.gives_result else []
        yield from expectation_faults(form, table, names, _KNOWN[part.gives_result])


def expectation_faults(form: Form, table: ToolTable, names: Sequence[str], known: str) -> Iterator[PlanFault]:
    """Find the faults of a form that must be true. ``known`` says what it may refer to, beside ``names``."""
    if "(" not in form.text and '"' not in form.text and len(form.text.split()) > 1:
        yield PlanFault(form.place, "EXPECT must be a form, such as (= (+ 1 1) 2).")
        return
    if forms_in(form.text) > 1:
        yield PlanFault(form.place, "EXPECT must be a single form. Combine several with (and …).")
        return
    faults = form_faults(form.text, table, names, lambda name: f"; {known}")
    yield from (PlanFault(form.at(fault.line, fault.column), fault.message) for fault in faults)
    if faults:
        return
    if re.fullmatch(r'"(?:[^"\\]|\\.)+"', form.text):
        yield PlanFault(form.place, "A text is always true. EXPECT must be a form that can be false.")
    for use in tool_uses(form.text, table, names):
        if not reads_only(use.tool):
            why = "it asks a model" if use.tool.cost == "expensive" else f"it {_does(use.tool)}"
            what = f"EXPECT may only call tools that read; {use.tool.name} is not allowed here: {why}."
            yield PlanFault(form.at(use.line, use.column), what)


def _does(tool: CognitiveTool) -> str:
    said = {
        "writes": "writes",
        "runs": "runs programs",
        "net": "uses the network",
        "memory": "changes memory",
        "messages": "sends messages",
        "asks": "asks a person",
        "deletes": "deletes",
        "pays": "pays",
    }
    return " and ".join(said[effect] for effect in tool.effects if effect in said)


def _form(plan: Plan, part: Part | None, form: Form, table: ToolTable) -> Iterator[PlanFault]:
    if not form.runs:
        return
    yield from _refs(plan, part, form)
    shadows = [var for var in form.vars if var.name in table]
    for var in shadows:
        yield PlanFault(form.var_place(var), f"{var.name} is a tool. Give the variable another name.")
    if shadows:
        return
    if form.call:
        faults = list(_call(plan, form, table))
        block = plan.block(form.call)
        yield from faults if faults or block is None else _outside(part, block, form.place, table)
        return
    if not form.text.strip():
        yield PlanFault(form.place, "This block is empty.")
        return
    names = [var.name for var in form.vars]
    given = [] if part is not None else _lent(plan, form)
    found = form_faults(form.text, table, [*names, *given], lambda name: _given(plan, name))
    yield from (PlanFault(form.at(fault.line, fault.column), fault.message) for fault in found)
    if not found:
        yield from _outside(part, form, None, table)


def _outside(part: Part | None, block: Form, call: Place | None, table: ToolTable) -> Iterator[PlanFault]:
    """Tools in a block that its step may not use; for a block called elsewhere, at the place of the
    ``call``."""
    if part is None or part.tools is None:
        return
    allowed = {table.get(name).name for name in part.tools if name in table}
    for use in tool_uses(block.text, table, [var.name for var in block.vars]):
        if use.tool.name not in allowed:
            has = ", ".join(sorted(allowed)) or "none"
            what = f"{use.tool.name} is not among the :TOOLS: of this step ({has})."
            yield PlanFault(call or block.at(use.line, use.column), what)


def _given(plan: Plan, name: str) -> str:
    """A hint how a block gets a variable."""
    if name.startswith("<<"):
        return "; plans do not insert blocks into others: use #+CALL: or :var"
    known = {*plan.data, *plan.blocks, *plan.library, *plan.by_id}
    return f"; to define it: :var {name}={name if name in known else 'NAME'}"


def _lent(plan: Plan, block: Form) -> list[str]:
    """The variables that calls give to a block of the library that runs only for calls."""
    forms = [*plan.library.values(), *(form for part in plan.parts for form in part.forms)]
    if any(var.ref == block.name for form in forms for var in form.vars):
        return []
    return [var.name for form in forms if form.runs and form.call == block.name for var in form.vars]


def _call(plan: Plan, form: Form, table: ToolTable) -> Iterator[PlanFault]:
    """Check the call of a block: the block must exist, and get exactly the variables it needs."""
    block = plan.block(form.call)
    if block is None:
        what = f"There is no block named {form.call}.{did_you_mean(form.call, [*plan.library, *plan.blocks])}"
        if form.call in plan.data:
            what = f"{form.call} is not a block of forms, which a call needs."
        yield PlanFault(form.place, what)
        return
    if block.call:
        yield PlanFault(form.place, f"{form.call} is itself a call; a call must name a block of forms.")
        return
    if not block.runs:
        yield PlanFault(form.place, f"{form.call} cannot be called: its :eval forbids running it.")
        return
    has = [var.name for var in block.vars]
    needs = unknown_in(block.text, table, has)
    for var in form.vars:
        place = form.var_place(var)
        if var.name not in (*has, *needs) and place.line == form.place.line:  # not from header-args
            hint = did_you_mean(var.name, [*has, *needs])
            yield PlanFault(place, f"The block {form.call} has no variable {var.name}.{hint}")
    given = [var.name for var in form.vars]
    for name in needs:
        if name not in given and form.call in plan.library and name in _lent(plan, block):
            yield PlanFault(form.place, f"The block {form.call} needs {name}, as in {form.call}({name}=5).")


def _names(plan: Plan) -> Iterator[PlanFault]:
    """Names that are also ids of steps, so that a variable could mean either result."""
    free: list[Data | Form] = [*plan.data.values(), *plan.library.values()]
    named: list[tuple[Data | Form, Part | None]] = [(one, None) for one in free]
    named += [(one, part) for part, one in plan.blocks.values()]
    for one, own in named:
        step = plan.by_id.get(one.name)
        if step is not None and step is not own:
            what = f"{one.name} is also the id of the step in line {step.place.line}. Use another name."
            yield PlanFault(one.name_place or one.place, what)


def _refs(plan: Plan, part: Part | None, form: Form) -> Iterator[PlanFault]:
    """Check names that variables refer to: they must exist, and be results of earlier steps."""
    known = {*plan.data, *plan.blocks, *plan.library, *(step.id for step in plan.steps)}
    dead = {one.name for one in plan.library.values() if not one.runs}
    dead |= {name for name, (_, one) in plan.blocks.items() if not one.runs}
    for var in form.vars:
        place = form.var_place(var)
        if var.ref in dead:
            yield PlanFault(place, f"{var.ref} has no result: its :eval forbids running it.")
            continue
        if not var.ref or var.ref in plan.data or var.ref in plan.library:
            continue
        if var.ref not in known:
            hint = did_you_mean(var.ref, known) or f' For a text, write "{var.ref}".'
            what = f"There is no block, table or step named {var.ref}.{hint}"
            if var.ref in plan.by_id:
                what = f"{var.ref} is a group of steps, which has no result. Name a step or a block."
            yield PlanFault(place, what)
            continue
        if var.ref not in plan.blocks:
            yield from _twins(plan, var.ref, place)
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
            yield PlanFault(
                place, f"{var.ref} is not known here: its step runs later, or this step does not wait for it."
            )


def _order(plan: Plan) -> Iterator[PlanFault]:
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
                around = [one.id for one in step.around if one.id in (step.after or ())]
                what = f"This step waits for itself: {' after '.join(ring)}."
                if around:
                    what = f"This step waits for {around[0]}, which contains it."
                yield PlanFault(place, what)
            told.update(ring)
        else:
            stuck = next(name for name in plan.waits[step.id] if name not in ready)
            yield PlanFault(
                step.place, f"This step can never begin: it waits for {stuck}, which cannot begin."
            )


def _circles(plan: Plan) -> Iterator[PlanFault]:
    """Blocks of the library that need their own value."""
    needs = {
        name: tuple(var.ref for var in form.vars if var.ref in plan.library)
        for name, form in plan.library.items()
    }
    told: set[str] = set()
    for name, form in plan.library.items():
        if name not in told and (ring := _ring(name, needs)):
            told.update(ring)
            yield PlanFault(form.place, f"{name} needs its own value: {' needs '.join(ring)}.")


def _ring(start: str, waits: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The shortest path from a step back to itself; empty if there is none."""
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
    """The place of the :AFTER: property: at the step, or at the nearest group that contains it."""
    for part in (step, *reversed(list(step.around))):
        if "AFTER" in part.settings:
            return part.settings["AFTER"].place
    return step.place
