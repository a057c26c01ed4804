"""What a run makes of its model's habits: repeated calls, which may stop any run, and the coach of small
models, which must look before they answer.

Each rule of the coach helped an embedded model. Strong models have none, and are told less. Knows a run and
the records of its calls as data; it calls neither model nor tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quoth.agent.reply import CallRecord
from quoth.neuro.prompt.memory import FROM_MEMORY, is_from_memory, may_tell
from quoth.neuro.prompt.surroundings import may_compute
from quoth.neuro.reading.result import FoundCall
from quoth.tools.call.call import PROGRAMS
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool, ToolTable

if TYPE_CHECKING:
    from quoth.agent.run.run import Run, Turn

LOOK_BACK = 40  # calls
MUST_LOOK_TURNS = 3  # after so many turns without any success the model may answer anyway

# Repeated calls


@dataclass
class Repeats:
    """The calls of a turn that were made before."""

    records: list[CallRecord] = field(default_factory=list)  # that changed nothing now
    same: set[str] = field(default_factory=set)  # keys of those that may be repeated and had the same result
    stuck: CallRecord | None = None  # that was repeated more often than the run allows


def find_repeats(turn: Turn, run: Run) -> Repeats:
    """The repeated calls of a turn, counted in the state of the run."""
    state, limit = run.state, run.limits.repeats
    # One record for each different call: the same call twice in one reply is no repetition.
    made = {call_digest(record.form, run): record for record in turn.records}
    # One that has changed something now was no repetition: it had failed before.
    again = {
        one: record for one, record in made.items() if one in turn.old and not record.result.side_effects
    }
    same = same_results(turn.records, state.calls, run.door.table)
    found = Repeats(list(again.values()), set(same))
    for digest, record in again.items():
        state.repeated[digest] = state.repeated.get(digest, 0) + 1
        if state.repeated[digest] >= limit:
            found.stuck = record
    if found.stuck is None and not run.past.answers:  # a recorded run that continued then continues now
        found.stuck = next((one for one in turn.records if same.get(one.key, 0) >= limit), None)
    return found


def known_calls(calls: Sequence[FoundCall], run: Run) -> set[str]:
    """The digests of a reply's calls that the run has made before."""
    return {call_digest(found.form, run) for found in calls} & set(run.state.seen)


def remember(record: CallRecord, run: Run) -> CallRecord:
    """Keep a record, tell of it, and return it. A call with side effects makes earlier results out of date,
    so they are forgotten."""
    state, digest = run.state, call_digest(record.form, run)
    state.calls.append(record)
    if record.result.side_effects:
        state.seen.clear()
        state.repeated.clear()
        state.forgotten = len(state.calls) - 1
    state.seen[digest] = record
    run.tell("result", record)
    return record


def call_digest(form: CallForm, run: Run) -> str:
    """The identity of a call, whatever the order of its arguments. Each call of a tool that may be repeated
    has its own."""
    table = run.door.table
    repeatable = form.tool in table and table.get(form.tool).allow_repeat
    return f"{form.digest}-{len(run.state.calls)}" if repeatable else form.digest


def same_results(
    records: Sequence[CallRecord], calls: Sequence[CallRecord], table: ToolTable
) -> dict[str, int]:
    """For the records of a turn, the last of ``calls``: how many earlier turns made the same call with the
    same result, by the key of the call. A call counts that may be repeated and does not report that its
    program still runs."""
    end = len(calls) - len(records)
    earlier = calls[max(0, end - LOOK_BACK) : end]
    counted = (one for one in records if _may_be_repeated(one, table) and not _still_runs(one))
    return {one.key: turns for one in counted if (turns := _turns_with(one, earlier))}


def _turns_with(record: CallRecord, earlier: Sequence[CallRecord]) -> int:
    """How many turns have made this call with this result since a new call changed something."""
    turns = set[str]()
    for place in range(len(earlier) - 1, -1, -1):
        before = earlier[place]
        if _is_same(before, record):
            turns.add(before.key.rpartition(".")[0])
        elif before.form.digest == record.form.digest:
            break  # it had another result
        elif before.result.side_effects and not any(_is_same(one, before) for one in earlier[:place]):
            break
    return len(turns)


def _may_be_repeated(record: CallRecord, table: ToolTable) -> bool:
    tool = record.form.tool
    return tool in table and table.get(tool).allow_repeat


def _still_runs(record: CallRecord) -> bool:
    value = record.result.value
    return isinstance(value, dict) and value.get("running") is True


def _is_same(one: CallRecord, other: CallRecord) -> bool:
    a, b = one.result, other.result
    return (
        one.form.digest == other.form.digest
        and a.status == b.status
        and a.value == b.value
        and (a.ok or a.message == b.message)  # an ok one may say how many calls are left
    )


def is_informative(record: CallRecord) -> bool:
    """Whether a call is ok and its result is not empty, nor a search without hits; or it has become a step of
    a plan."""
    result = record.result
    if result.audit.get("stage") == "plan":
        return True
    return result.ok and result.value not in (None, "", [], {}) and not _is_hitless(result.value)


def _is_hitless(value: Any) -> bool:
    return isinstance(value, dict) and value.get("hits") == []


# The coach of small models


@dataclass(frozen=True)
class Advice:
    """How a model is to be asked."""

    must_act: bool = False  # it may not answer yet
    without: frozenset[str] = frozenset()  # tools that it is not offered
    lead: str = ""  # words with which it may answer although it must act


@dataclass(frozen=True)
class Lesson:
    """What a model is told after a turn."""

    again: frozenset[str] = frozenset()  # keys of calls that were repeated in vain
    complaint: str = ""  # why its answer is not taken


class Coach:
    """Coaxes a model that answers before it looks, or repeats itself. It keeps nothing; what it has counted
    is in the state of the run."""

    def before_turn(self, run: Run) -> Advice:
        """How the model is to be asked next."""
        looks = _must_look(run)
        # A model that must look first may instead answer from its memory. It gets one try.
        recalls = run.state.faults == 0 and not run.output and may_tell(run.state.known, run.spec.task)
        without = run.state.avoided | (_unlooked(run) if looks else set())
        return Advice(looks, frozenset(without), FROM_MEMORY if recalls else "")

    def after_turn(self, turn: Turn, repeats: Repeats, run: Run) -> Lesson:
        """What it is told. A model that repeats an informative call has what it needs and must answer, unless
        a change of its is still to be made; one that repeats another must avoid that tool."""
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
        return Lesson(frozenset(again), said)


COACH = Coach()


def coach_of(run: Run) -> Coach | None:
    """The coach of the model that a run has now: of one whose task has to be repeated with each result, or
    that must act; None for any other."""
    return COACH if run.dialect.reminds or run.must_act else None


def _must_look(run: Run) -> bool:
    """Whether the model may not answer yet: no result has told it anything, and it has tries left."""
    state = run.state
    return (
        run.must_act
        and state.step <= MUST_LOOK_TURNS
        and not any(_is_news(record, run) for record in state.calls)
    )


def _is_news(record: CallRecord, run: Run) -> bool:
    """Whether a result tells more than the model was told of its place: a list of the same files does not,
    and small models made up what is in them."""
    value, here = record.result.value, f"{run.spec.surroundings}\n"
    known = isinstance(value, list) and all(isinstance(one, str) and f"| {one}\n" in here for one in value)
    return is_informative(record) and not known


def _is_made_up(text: str, run: Run) -> bool:
    """Whether a model that must look first says that it remembers what its memory does not hold."""
    lead = FROM_MEMORY.strip()
    return (
        text.startswith(lead)
        and _must_look(run)
        and not is_from_memory(text.removeprefix(lead), run.state.known, run.spec.task)
    )


def _unlooked(run: Run) -> set[str]:
    """The tools that show nothing new, while the model has others: those that end a run, or touch nothing but
    the memory and messages. Small models put a guess into a note and answered from it. A program computes
    with what was seen, so where nothing was and the task has no numbers of its own, it waits too: they called
    functions that they wished there were."""
    shown = run.door.table.shown
    blind = {tool.name for tool in shown if _is_blind(tool, run)}
    return blind if len(blind) < len(shown) else set()


def _is_blind(tool: CognitiveTool, run: Run) -> bool:
    if tool.ends_turn or (tool.effects and set(tool.effects) <= {"memory", "messages", "asks"}):
        return True
    if tool.name == PROGRAMS and not may_compute(run.spec.task):
        return True
    # The memory was searched, and nothing is there.
    return any(one.form.tool == tool.name and _is_hitless(one.result.value) for one in run.state.calls)


def _is_change_open(run: Run) -> bool:
    """Whether a change was tried, failed, and none was made since. A model that had to answer there said that
    it was made."""
    state, table = run.state, run.door.table
    for record in state.calls[state.weighed :]:
        tool = record.form.tool
        if record.result.side_effects:
            state.tried = False
        elif record.result.status == "error" and tool in table and "writes" in table.get(tool).effects:
            state.tried = True
    state.weighed = len(state.calls)
    return state.tried
