"""The coach: guides a small model that answers before it looks, changes before it reads, computes in its
head, stops after the first of two steps, or repeats itself. Strong models have no coach and get fewer notes.

Each rule helped an embedded model in tests/bench/everyday.py; tests/bench/coach.py measures the model without
each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quoth.agent.reply import CallRecord
from quoth.agent.run.evidence import (
    Asked,
    asked_by,
    files_touched,
    found_among,
    has_read,
    has_shown,
    has_written,
    hit_files,
    is_file_name,
    listed_in,
    numbers_in,
    numbers_shown,
    quotes_in,
    texts_shown,
    words_in,
)
from quoth.agent.run.observation import Repeats, call_digest, is_hitless, is_informative
from quoth.agent.run.run import Run, Turn
from quoth.neuro.prompt.memory import FROM_MEMORY, is_from_memory, may_tell
from quoth.neuro.prompt.surroundings import may_compute
from quoth.tools.call.call import PROGRAMS
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.printer import print_string
from quoth.tools.registry.table import CognitiveTool

READER, LISTER = "read-file", "list-files"
LISTS = r"files|folder|a file|file named"  # words of a task about the files themselves
TABLES = (".csv", ".tsv")
HEAD_COUNT = 20  # a model may count fewer in its head
MUST_LOOK_TURNS = 3  # turns without success after which the model may answer anyway


@dataclass(frozen=True)
class Advice:
    """Changes to the next request to a model."""

    must_act: bool = False  # it may not answer yet
    without: frozenset[str] = frozenset()  # tools to leave out
    lead: str = ""  # words with which it may answer although it must act
    paths: tuple[str, ...] = ()  # the only files for its calls
    arithmetic: bool = False  # its programs are of numbers alone


@dataclass(frozen=True)
class Lesson:
    """The notes for a model after a turn."""

    again: frozenset[str] = frozenset()  # keys of calls that were repeated in vain
    complaint: str = ""  # why its answer is not accepted
    next: str = ""  # the next step, for the text after the results


class Step(NamedTuple):
    """A step of the task that is still open: what to do, for the model, and the tools that it may use for it
    now."""

    next: str
    may_use: Callable[[CognitiveTool], bool]
    paths: tuple[str, ...] = ()


class Coach:
    """Guides a model that answers before it looks, or repeats itself. It has no state: its counts are in the
    state of the run."""

    def before_turn(self, run: Run) -> Advice:
        """The changes to the next request."""
        looks, step = _must_look(run), open_step(run)
        # A model that must look first may answer from its memory instead. It gets one try.
        recalls = run.state.faults == 0 and not run.output and may_tell(run.state.known, run.spec.task)
        without = run.state.avoided | (_unlooked(run) if looks else set())
        if run.must_act and asked_by(run.spec.task).only_asks:
            without |= {tool.name for tool in run.door.table.shown if _writes(tool)}
        if step is not None:
            names = set(run.door.table.shown.names())
            useful = {tool.name for tool in run.door.table.shown if step.may_use(tool)}
            if step.may_use is not _any:
                useful = (useful & set(run.spec.few)) or useful
            without = (without if useful - without else set()) | (names - useful)
        must = looks or step is not None
        lead = FROM_MEMORY if recalls else ""
        paths = step.paths if step is not None else ()
        arithmetic = step is not None and step.may_use is _computes
        return Advice(must, frozenset(without), lead, paths, arithmetic)

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
        step = open_step(run)
        if step is not None:
            state.must_answer = False
        return Lesson(frozenset(again), said, "" if step is None else step.next)


COACH = Coach()


def coach_of(run: Run) -> Coach | None:
    """The coach of the run's current model: for a model whose task is repeated with each result, or that must
    act; None for any other."""
    return COACH if run.dialect.reminds or run.must_act else None


# The steps of a task. The first that is open says what the model must do next.


class TaskState(NamedTuple):
    """What a run knows when its next step is looked for: what its task asks for, the files that it names and
    that may exist, the files of the place, and the calls so far."""

    task: str
    asked: Asked
    named: tuple[str, ...]
    listed: tuple[str, ...]
    calls: Sequence[CallRecord]
    doubted: bool  # the last answer was doubted


def open_step(run: Run) -> Step | None:
    """The next step of the task that is still open; None if nothing is known to be open, a call was denied,
    or the model has no tries left."""
    if not run.must_act or not run.dialect.takes_few or run.parts.planning is not None:
        return None
    if any(call.result.status == "denied" for call in run.state.calls):
        return None
    seen = _seen(run)
    asked, doubts = seen.asked, run.state.doubted >= 0
    tries = MUST_LOOK_TURNS + len(asked.files) + asked.changes + asked.computes + 2 * doubts
    if run.state.step > tries:
        return None
    return next((step for rule in STEPS if (step := rule(seen)) and _can(step, run)), None)


def _seen(run: Run) -> TaskState:
    asked, listed = asked_by(run.spec.task), listed_in(run.spec.surroundings)
    named = tuple(filter(None, (_file_named(name, asked, listed) for name in asked.files)))
    doubted = run.state.doubted == len(run.state.calls)
    return TaskState(run.spec.task, asked, named, listed, tuple(run.state.calls), doubted)


def _can(step: Step, run: Run) -> bool:
    return any(map(step.may_use, run.door.table.shown))


def _file_named(name: str, asked: Asked, listed: Sequence[str]) -> str:
    """The file that a task names, if it exists or may exist; empty if it does not."""
    if found := found_among(name, listed):
        return found
    if name in asked.made:
        return ""
    unknown = any(line.startswith("… and ") for line in listed) or any(
        name.startswith(line.split(" (")[0]) for line in listed if line.endswith((" files)", " file)"))
    )
    return name if unknown else ""


def _look(seen: TaskState) -> Step | None:
    """Look into each file that the task names, and read it if a part is not enough."""
    whole = seen.asked.changes or seen.asked.computes or any(map(_is_in_vain, seen.calls))
    for file in seen.named:
        if whole and not has_read(file, seen.calls):
            return Step(f"Next: read {file}.", _reads, (file,))
        if not whole and not has_shown(file, seen.calls) and not has_read(file, seen.calls):
            return Step(f"Next: look into {file}.", _only_looks, (file,))
    return None


def _search_first(seen: TaskState) -> Step | None:
    """A question that names no file begins with a search, not with a guess of the file."""
    if seen.named or seen.calls or not seen.listed or not seen.asked.only_asks or may_compute(seen.task):
        return None
    return Step("", _searches if re.search(LISTS, seen.task) else _searches_texts)


def _search_on(seen: TaskState) -> Step | None:
    """After a search without hits: read the file that it names or that was searched, or try another word."""
    if not seen.calls or not _is_in_vain(last := seen.calls[-1]):
        return None
    unread = [file for file in seen.listed if not has_read(file, seen.calls)]
    named = [file for file in unread if print_string(file) in last.result.message]
    if named and f"({READER} " in last.result.message:
        return Step(f"Next: read {named[0]}.", _reads, (named[0],))
    path = str(last.form.args.get("path", "."))
    if (
        is_file_name(path)
        and not has_read(path, seen.calls)
        and path in texts_shown(seen.task, seen.calls[:-1])
    ):
        return Step(f"Next: read {path}.", _reads, (path,))
    tried = [str(call.form.args.get("pattern", "")).lower() for call in seen.calls if _is_in_vain(call)]
    words = [word for word in words_in(seen.task) if not any(word in one for one in tried)]
    if not words or len(tried) >= MUST_LOOK_TURNS:
        return None
    return Step(f"Next: search for another word, such as {', '.join(words[:3])}.", _searches, (".",))


def _read_hit(seen: TaskState) -> Step | None:
    """Read a file that a search found: a table, whose rows need its head, or after a doubt."""
    near = [file for file in hit_files(seen.calls) if not has_read(file, seen.calls)]
    first = next((file for file in near if seen.doubted or file.endswith(TABLES)), "")
    return Step(f"Next: read {first}.", _reads, (first,)) if first else None


def _compute(seen: TaskState) -> Step | None:
    """Compute with a program once the numbers are known, with all numbers of an expression; two programs are
    enough."""
    programs = [call for call in seen.calls if call.form.tool == PROGRAMS]
    if not seen.asked.computes or len(programs) > 1:
        return None
    given = list(numbers_in(seen.task))
    if any(call.result.ok for call in programs):
        used = set(numbers_in(str(programs[0].form)))
        left = [number for number in given if number not in used] if seen.asked.expression else []
        return Step(f"Next: compute it again with eval, also with {left[0]}.", _computes) if left else None
    numbers = numbers_shown("", seen.calls) if seen.named else set(given if seen.asked.expression else ())
    return Step("Next: compute it with eval, from these numbers.", _computes) if len(numbers) > 1 else None


def _change(seen: TaskState) -> Step | None:
    """Change each file that the task asks to change, and write each that it asks to make. No other file is
    forced on the model."""
    for file in (found_among(name, seen.named) for name in seen.asked.changed):
        if file and not has_written(file, seen.calls):
            return Step(f"Next: make the change in {file}.", _edits, (file,))
    for name in seen.asked.made if seen.listed else ():
        if not found_among(name, seen.named) and not has_written(name, seen.calls):
            return Step(
                f"Next: write {name}.", _creates if seen.named else _any, (name,) if seen.named else ()
            )
    return None


STEPS: tuple[Callable[[TaskState], Step | None], ...] = (
    _look,
    _search_on,
    _search_first,
    _read_hit,
    _compute,
    _change,
)


def _is_in_vain(call: CallRecord) -> bool:
    return call.result.ok and call.result.value == [] and "pattern" in call.form.args


def _reads(tool: CognitiveTool) -> bool:
    return tool.name == READER


def _only_looks(tool: CognitiveTool) -> bool:
    return not _writes(tool) and tool.name != PROGRAMS


def _searches(tool: CognitiveTool) -> bool:
    return tool.name != READER and _only_looks(tool)


def _searches_texts(tool: CognitiveTool) -> bool:
    return tool.name != LISTER and _searches(tool)


def _computes(tool: CognitiveTool) -> bool:
    return tool.name == PROGRAMS


def _any(_: CognitiveTool) -> bool:
    return True


def _writes(tool: CognitiveTool) -> bool:
    return bool({"writes", "deletes"} & set(tool.effects))


def _edits(tool: CognitiveTool) -> bool:
    """Whether a tool changes a part of a file: it also reads it. Small models that wrote the whole file
    lost the rest of it."""
    return _writes(tool) and "reads" in tool.effects


def _creates(tool: CognitiveTool) -> bool:
    return _writes(tool) and "reads" not in tool.effects


# Doubts


def _doubt(text: str, run: Run) -> str:
    """Why an answer is doubted, once in a run: no result contains a number, a quotation or any new word of
    it, or it names a file that was not looked into."""
    task, calls = run.spec.task, run.state.calls
    if not run.must_act or run.output or run.state.doubted >= 0 or not calls or run.budget.steps_left <= 0:
        return ""
    if run.state.faults + 1 >= run.limits.faults:
        return ""
    known = "\n".join(str(block) for block in run.state.known.values())  # the memory
    shown = numbers_shown(f"{task}\n{known}", calls)
    if "how many" in task.lower() and any(call.form.tool == READER and call.result.ok for call in calls):
        shown.update(range(HEAD_COUNT))
    if new := [number for number in numbers_in(text) if number not in shown]:
        return f"No result contains {new[0]}. Look further, or compute it with eval."
    told, before = texts_shown(f"{task}\n{known}", calls), task.lower()
    words = [word for word in words_in(text) if word[:4] not in before] if asked_by(task).only_asks else []
    words = [] if any(numbers_in(text)) else words
    unknown = [] if any(word[:4] in told for word in words) else words
    if made_up := unknown or [quoted for quoted in quotes_in(text) if quoted not in told]:
        return f"No result contains {print_string(made_up[0])}. Look further."
    touched = files_touched(calls)
    unseen = [file for file in listed_in(run.spec.surroundings) if file in text and file not in touched]
    return f"You have not looked into {unseen[0]}." if unseen else ""


# Looking first


def _must_look(run: Run) -> bool:
    """Whether the model may not answer yet: no result was informative, and it has tries left."""
    state = run.state
    return (
        run.must_act
        and state.step <= MUST_LOOK_TURNS
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
