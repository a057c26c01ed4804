"""The coach: guides a small model that answers before it looks, changes before it reads, computes in its
head, stops after the first of two steps, or repeats itself. Strong models have no coach and get fewer notes.

Each rule helped an embedded model in tests/bench/everyday.py; tests/bench/coach.py measures the model without
each.
"""

from __future__ import annotations

import re

from quoth.agent.reply import CallRecord
from quoth.agent.run.doubts import ModelAnswer, doubt_of
from quoth.agent.run.evidence import asked_by, dates_in, listed_in
from quoth.agent.run.observation import Repeats, call_digest, is_hitless, is_informative
from quoth.agent.run.run import Run, Turn
from quoth.agent.run.steps import (
    LISTS,
    STEPS,
    Step,
    TaskState,
    any_tool,
    changes,
    creates,
    named_files,
    writes,
)
from quoth.neuro.prompt.grammar import NO_BOUNDS, Bounds
from quoth.neuro.prompt.memory import FROM_MEMORY, is_from_memory, may_tell
from quoth.neuro.prompt.surroundings import may_compute
from quoth.tools.call.call import PROGRAMS
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.registry.table import CognitiveTool

MUST_LOOK_TURNS = 3  # turns without success after which the model may answer anyway
MOST_FILES = 4  # for each of which it has one more


@dataclass(frozen=True)
class Advice:
    """Changes to the next request to a model."""

    must_act: bool = False  # it may not answer yet
    bounds: Bounds = NO_BOUNDS


@dataclass(frozen=True)
class Lesson:
    """The notes for a model after a turn."""

    again: frozenset[str] = frozenset()  # keys of calls that were repeated in vain
    complaint: str = ""  # why its answer is not accepted
    next: str = ""  # the next step, for the text after the results


class Coach:
    """Guides a model that answers before it looks, or repeats itself. It has no state: its counts are in the
    state of the run."""

    def before_turn(self, run: Run) -> Advice:
        """The changes to the next request."""
        looks, step = _must_look(run), open_step(run, run.state.step)
        # A model that must look first may answer from its memory instead. It gets one try.
        recalls = run.state.faults == 0 and not run.output and may_tell(run.state.known, run.spec.task)
        without = run.state.avoided | (_unlooked(run) if looks else set())
        if step is not None:
            names, useful = set(run.door.table.shown.names()), _useful(step, run)
            if step.may_use is not any_tool:
                useful = (useful & set(run.spec.few)) or useful
            without = (without if useful - without else set()) | (names - useful)
        without |= _harmful(run)
        must = looks or step is not None
        lead = FROM_MEMORY if recalls else ""
        bounds = step.bounds if step is not None else NO_BOUNDS
        return Advice(must, bounds._replace(without=frozenset(without), lead=lead))

    def after_turn(self, turn: Turn, repeats: Repeats, run: Run) -> Lesson:
        """The notes after a turn. A model that repeats an informative call must answer, unless a change that
        it tried is still open; one that repeats another call must avoid that tool."""
        state, open = run.state, _is_change_open(run)
        news = [one for one in repeats.records if _is_news(one, run)]
        state.must_answer = bool(news) and not open
        state.avoided = {one.form.tool for one in repeats.records if open or one not in news}
        again = {
            one.key
            for one in turn.records
            if not is_informative(one) and call_digest(one.form, run) in state.repeated
        }
        made_up = not turn.records and _is_made_up(turn.text, run)
        said = "That is not in your memory. Look first, with a call." if made_up else ""
        if not turn.records and not said and (doubt := _doubt(turn.text, run)):
            state.doubted, said = len(state.calls), doubt
        step = open_step(run, state.step + 1)
        if step is not None:
            state.must_answer = False
        return Lesson(frozenset(again), said, "" if step is None else step.next)


COACH = Coach()


def coach_of(run: Run) -> Coach | None:
    """The coach of the run's current model: for a model whose task is repeated with each result, or that must
    act; None for any other."""
    return COACH if run.dialect.reminds or run.must_act else None


def _doubt(text: str, run: Run) -> str:
    """Why an answer is doubted, once in a run, if the model may still do something about it."""
    if not run.must_act or run.output or run.state.doubted >= 0 or run.budget.steps_left <= 0:
        return ""
    if not run.state.calls or run.state.faults + 1 >= run.limits.faults:
        return ""
    known = "\n".join(str(block) for block in run.state.known.values())
    listed, plans = listed_in(run.spec.surroundings), run.parts.planning is not None
    return doubt_of(ModelAnswer(text, run.spec.task, tuple(run.state.calls), known, listed, plans))


# The next step


def open_step(run: Run, turn: int) -> Step | None:
    """The next step of the task that is open in a turn of a run; None if nothing is known to be open, a call
    was denied, or the model has no tries left."""
    if not run.must_act or not run.dialect.takes_few or run.parts.planning is not None:
        return None
    if _is_denied(run):
        return None
    seen = _seen(run)
    asked, doubts = seen.asked, run.state.doubted >= 0
    files = min(len(asked.files), MOST_FILES)
    tries = MUST_LOOK_TURNS + files + asked.changes + asked.computes + 2 * doubts
    if turn > tries:
        return None
    return next((step for rule in STEPS if (step := rule(seen)) and _useful(step, run)), None)


def _seen(run: Run) -> TaskState:
    task, listed = run.spec.task, listed_in(run.spec.surroundings)
    today = next(iter(dates_in([run.spec.surroundings.partition("\n")[0]])), "")
    doubted = run.state.doubted == len(run.state.calls)
    return TaskState(
        task, asked_by(task), named_files(task, listed), listed, tuple(run.state.calls), doubted, today
    )


def _is_denied(run: Run) -> bool:
    return any(call.result.status == "denied" for call in run.state.calls)


def _useful(step: Step, run: Run) -> set[str]:
    """The tools for a step."""
    return {tool.name for tool in run.door.table.shown if step.may_use(tool)} - _harmful(run)


def _harmful(run: Run) -> set[str]:
    """The tools that the task does not want: none that changes something for a question, and none that
    replaces a whole file where a part is to be changed. Small models lost the rest of it."""
    if not run.must_act:
        return set()
    asked, shown = asked_by(run.spec.task), run.door.table.shown
    if asked.only_asks:
        return {
            tool.name for tool in shown if writes(tool) or (changes(tool) and tool.name not in run.spec.few)
        }
    return {tool.name for tool in shown if creates(tool) and asked.changed and not asked.made}


# Looking first


def _must_look(run: Run) -> bool:
    """Whether the model may not answer yet: no result was informative, and it has tries left."""
    state = run.state
    return (
        run.must_act
        and state.step <= MUST_LOOK_TURNS
        and not _is_denied(run)
        and not any(_is_news(record, run) for record in state.calls)
    )


def _is_news(record: CallRecord, run: Run) -> bool:
    """Whether a result contains more than the files listed in the prompt. Such a list alone is news only for
    a task about files: small models invented the contents of the files."""
    value, here = record.result.value, f"{run.spec.surroundings}\n"
    known = isinstance(value, list) and all(isinstance(one, str) and f"| {one}\n" in here for one in value)
    about_files = run.must_act and re.search(LISTS, run.spec.task) is not None
    return is_informative(record) and (about_files or not known)


def _is_made_up(text: str, run: Run) -> bool:
    """Whether a model that must look first claims to remember something that its memory does not contain."""
    lead = FROM_MEMORY.strip()
    return (
        text.startswith(lead)
        and _must_look(run)
        and not is_from_memory(text.removeprefix(lead), run.state.known, run.spec.task)
    )


def _unlooked(run: Run) -> set[str]:
    """The tools that show nothing new, if the model has others: tools that end a run, or touch only the
    memory and messages. Small models put a guess into a note and answered from it. Programs are left out too,
    if nothing was seen yet and the task contains no numbers: small models called functions that do not
    exist."""
    shown = run.door.table.shown
    blind = {tool.name for tool in shown if _is_blind(tool, run)}
    return blind if len(blind) < len(shown) else set()


def _is_blind(tool: CognitiveTool, run: Run) -> bool:
    if tool.ends_turn or (tool.effects and set(tool.effects) <= {"memory", "messages", "asks"}):
        return True
    if tool.name == PROGRAMS and not may_compute(run.spec.task):
        return True
    # The memory was searched without a hit.
    return any(one.form.tool == tool.name and is_hitless(one.result.value) for one in run.state.calls)


def _is_change_open(run: Run) -> bool:
    """Whether a change was tried and failed, and none succeeded since. A model that had to answer there
    claimed that it had succeeded."""
    state, table = run.state, run.door.table
    for record in state.calls[state.weighed :]:
        tool = record.form.tool
        if record.result.side_effects:
            state.tried = False
        elif record.result.status == "error" and tool in table and "writes" in table.get(tool).effects:
            state.tried = True
    state.weighed = len(state.calls)
    return state.tried
