"""A flight plan as data: phases and steps, their forms, their dependencies, and digests of their content.

Reading never fails: an error becomes a fault with its place. check.py finds further faults.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from quoth.tools.errors import UsageError, no_such
from quoth.tools.lisp.printer import print_value
from quoth.tools.lisp.source import Place, SourceText
from quoth.tools.org.babel import Var

TODO_WORDS = ("PLAN", "APPROVED", "RUNNING", "WAITING", "DONE", "FAILED", "DENIED", "SKIPPED")
TODO_LINE = "PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED"
PHASES = ("Demand", "Blueprint", "Build", "Tester")
LANGUAGES = ("hy", "quoth", "lisp")
INHERITED = ("TOOLS", "MODEL", "BUDGET", "RETRY", "ON-FAIL", "MAY-FAIL", "PARALLEL")
OWN = ("EXPECT", "AFTER", "ID", "CUSTOM_ID")
BUDGETS = ("steps", "tokens", "cost", "seconds")
ON_FAIL = ("stop", "skip", "continue")
# Org's own properties, which a plan may contain even if they look like misspelt ones of quoth.
ORGS = frozenset(
    """
    ARCHIVE ATTACH_DIR CATEGORY CLOCK_MODELINE_TOTAL COLUMNS COOKIE_DATA CREATED DESCRIPTION DIR EFFORT
    LAST_REPEAT LOGGING LOG_INTO_DRAWER NOBLOCKING ORDERED STYLE SUMMARY UNNUMBERED VISIBILITY
    """.split()  # noqa: SIM905
)
MAX_RETRY = 10
LOOP = "cognitive-loop"
ANSWER = -1  # the index of a form whose result is written as a model's answer
RESULT = "result"  # the name of a step's result in its expectation
_PHASE = re.compile(rf"(?:Phase\s+\w+\s*:\s*)?({'|'.join(PHASES)})\s*(?::|\(|$)", re.IGNORECASE)


@dataclass(frozen=True)
class PlanFault:
    """An error in a plan and its place. ``str`` also shows the line, with a caret below it."""

    place: Place
    message: str

    def __str__(self) -> str:
        return self.place.complaint(self.message)

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.place.source.name,
            "line": self.place.line,
            "column": self.place.column,
            "message": self.message,
            "shown": str(self),
        }


@dataclass(frozen=True)
class Setting:
    """A property as written. ``more`` means that it extends the previous one (``:NAME+:``)."""

    name: str
    value: str
    place: Place
    more: bool = False

    @property
    def name_place(self) -> Place:
        """The place of its name; ``place`` is the place of its value."""
        column = self.place.text.rfind(self.name, 0, self.place.column) + 1
        return Place(self.place.source, self.place.line, column or self.place.column)


@dataclass(frozen=True)
class Form:
    """A block of forms, or a call of a named block. ``rows`` contains the row and column in the file, from 0,
    of each line of ``text``; ``block`` is its index among the code blocks of its headline, for edits."""

    text: str
    place: Place
    rows: tuple[tuple[int, int], ...] = ()
    language: str = "hy"
    name: str = ""
    call: str = ""
    vars: tuple[Var, ...] = ()
    runs: bool = True
    block: int = 0

    def at(self, line: int, column: int) -> Place:
        """Return the place in the file of a line and column of ``text``; both count from 1."""
        row, shift = self.rows[min(max(line, 1), len(self.rows)) - 1]
        return Place(self.place.source, row + 1, column + shift)

    def var_place(self, var: Var) -> Place:
        """Return the place where a variable gets its value; for inherited header arguments, that of the
        block."""
        return self.places.get(var, self.place)

    places: Mapping[Var, Place] = field(default_factory=dict, compare=False, hash=False, repr=False)
    silent: bool = False  # its results are not written into the file
    name_place: Place | None = field(default=None, compare=False)

    def program(self, values: Mapping[str, Any], text: str | None = None) -> str:
        """Return the program to run: ``text`` (default: the form's own) in a ``let`` that binds ``values``.
        The ``let`` adds one line above the text."""
        body = self.text if text is None else text
        if not values:
            return body
        bound = "  ".join(f"{name} {print_value(value)}" for name, value in values.items())
        return f"(let [{bound}]\n{body}\n)"


@dataclass(frozen=True)
class Data:
    """A named table, list, example or text that forms may refer to."""

    name: str
    value: Any
    place: Place
    name_place: Place | None = None


@dataclass
class PlanSection:
    """A headline in the form in which every reader gives it to the builder."""

    place: Place
    level: int
    title: str = ""
    title_place: Place | None = None
    todo: str = ""
    skipped: bool = False  # commented out or archived
    settings: list[Setting] = field(default_factory=list)
    prose: str = ""
    forms: list[Form] = field(default_factory=list)
    entry: int = 0


@dataclass(frozen=True)
class StepBudget:
    """The limits of a step; None means no own limit."""

    steps: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: int | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """A headline of the plan: a group if it has parts ``inside``, a note, or a step, whose ``prose`` is its
    objective. ``tools`` is None for all tools of the agent, ``after`` is None if the part waits for the
    previous one at its level, and ``entry`` is the index of its headline in the file. ``on_fail`` decides
    which parts run after a failure, and ``may_fail`` whether the flight can still end as done."""

    id: str
    title: str
    phase: str
    place: Place
    todo: str = ""
    prose: str = ""
    forms: tuple[Form, ...] = ()
    tools: tuple[str, ...] | None = None
    model: str = ""
    budget: StepBudget = StepBudget()
    expect: str = ""
    after: tuple[str, ...] | None = None
    retry: int = 0
    on_fail: str = "stop"
    may_fail: bool = False
    parent: Part | None = None
    is_phase: bool = False
    settings: Mapping[str, Setting] = field(default_factory=dict, repr=False)
    entry: int = 0
    inside: list[Part] = field(default_factory=list, repr=False)

    @property
    def has_id(self) -> bool:
        """Whether the file gives its id; otherwise the id is made from the title."""
        return "ID" in self.settings or "CUSTOM_ID" in self.settings

    @property
    def is_note(self) -> bool:
        """Whether it is a Blueprint phase with only prose, which does not run; models of later steps read
        it."""
        only_prose = not (self.inside or self.forms or self.expect)
        return self.is_phase and self.phase == "Blueprint" and only_prose

    @property
    def is_step(self) -> bool:
        return not self.inside and not self.is_note

    @property
    def objective(self) -> str:
        """The task for a model; empty if the step has forms to run, or only an expectation."""
        return self.prose if self.is_step and not self.running else ""

    @property
    def apart(self) -> bool:
        """Whether its objective is the task of a sub-agent in a git worktree, beside others."""
        return "PARALLEL" in self.settings

    @cached_property
    def running(self) -> tuple[Form, ...]:
        """The forms that run. Results are recorded by index in this tuple."""
        forms = tuple(form for form in self.forms if form.runs)
        if forms or not (self.apart and self.prose and self.is_step):
            return forms
        tools = [name for name in self.tools or () if name != LOOP]
        chosen = "" if self.tools is None else f" :tools {print_value(tools)}"
        task = "\n\n".join([self.prose, *(f"{one.title}:\n{one.prose}" for one in self.around if one.prose)])
        text = f"({LOOP} :task {print_value(task)} :worktree True{chosen})"
        return (Form(text, self.place, ((self.place.line - 1, 0),), block=ANSWER),)

    @property
    def gives_result(self) -> bool:
        """Whether the step has a result: the value of its last block, or the model's answer."""
        return self.is_step and bool(self.prose or self.running)

    @property
    def says_result(self) -> bool:
        """Whether its expectation refers to its result."""
        return self.gives_result and RESULT in re.findall(r"[\w-]+", self.expect)

    @property
    def around(self) -> Iterator[Part]:
        """The groups that contain it, outermost first."""
        if self.parent is not None:
            yield from self.parent.around
            yield self.parent

    def expectation(self) -> Form | None:
        """Return the form of ``:EXPECT:`` with its place, if there is one."""
        setting = self.settings.get("EXPECT")
        if setting is None or not self.expect:
            return None
        rows = ((setting.place.line - 1, setting.place.column - 1),)
        return Form(self.expect, setting.place, rows)


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan: its parts in the order of the file, the faults of reading, and data and blocks by name."""

    source: SourceText
    title: str
    parts: tuple[Part, ...]
    faults: tuple[PlanFault, ...] = ()
    data: Mapping[str, Data] = field(default_factory=dict)
    library: Mapping[str, Form] = field(default_factory=dict)  # named blocks outside of all steps
    left_out: frozenset[str] = frozenset()  # ids of headlines outside the plan
    _earlier: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False)
    # Keyed by the part itself, because an unchecked plan may have duplicate ids.
    _digests: dict[Part, str] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def steps(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.is_step)

    @cached_property
    def by_id(self) -> dict[str, Part]:
        return {part.id: part for part in reversed(self.parts)}

    @cached_property
    def blocks(self) -> dict[str, tuple[Part, Form]]:
        """The named blocks inside parts, each with its part."""
        return {form.name: (part, form) for part in self.parts for form in part.forms if form.name}

    def block(self, name: str) -> Form | None:
        """Return the block of that name, from ``library`` or from a part; None if there is none."""
        if name in self.library:
            return self.library[name]
        return self.blocks[name][1] if name in self.blocks else None

    def find(self, name: str) -> Part:
        """Return the part with that id or title. Raises UsageError, naming the nearest id."""
        if name in self.by_id:
            return self.by_id[name]
        titled = [part for part in self.parts if part.title.lower() == name.strip().lower()]
        if len(titled) == 1:
            return titled[0]
        ids = [part.id for part in self.parts]
        raise UsageError(no_such("step", name, ids, "They are:", f" in {self.source.name}"))

    @cached_property
    def waits(self) -> dict[str, tuple[str, ...]]:
        """For each step, the ids of the steps that must end before it: those named by ``:AFTER:`` of the step
        and of its groups, or otherwise the previous part at the same level."""
        siblings: dict[str, list[Part]] = {}
        for part in self.parts:
            siblings.setdefault(part.parent.id if part.parent else "", []).append(part)
        before = {part.id: one for group in siblings.values() for one, part in pairwise(group)}
        found: dict[str, tuple[str, ...]] = {}
        for step in self.steps:
            names: dict[str, None] = {}
            for part in (*step.around, step):
                for one in self._predecessors(part, before):
                    names |= dict.fromkeys(self._ended(one, before, frozenset()))
            found[step.id] = tuple(names)
        return found

    def _predecessors(self, part: Part, before: Mapping[str, Part]) -> list[Part]:
        if part.after is not None:
            return [self.by_id[name] for name in part.after if name in self.by_id]
        return [before[part.id]] if part.id in before else []

    def _ended(self, part: Part, before: Mapping[str, Part], seen: frozenset[str]) -> list[str]:
        """Return the steps that must end before this part has ended; a note ends when the parts it waits for
        do."""
        if leaves := self.leaves(part):
            return [leaf.id for leaf in leaves]
        if part.id in seen:
            return []
        earlier = self._predecessors(part, before)
        return [name for one in earlier for name in self._ended(one, before, seen | {part.id})]

    def leaves(self, part: Part) -> list[Part]:
        """Return the steps that a part contains; for a step, the step itself."""
        return [part] if part.is_step else [leaf for inner in part.inside for leaf in self.leaves(inner)]

    @cached_property
    def order(self) -> tuple[Part, ...]:
        """The steps in an order in which they can run, as close to the file's order as possible. Steps of a
        dependency cycle, and steps that wait for them, are left out."""
        done: set[str] = set()
        found: list[Part] = []
        left = list(self.steps)
        while ready := next((step for step in left if done.issuperset(self.waits[step.id])), None):
            left.remove(ready)
            found.append(ready)
            done.add(ready.id)
        return tuple(found)

    def earlier(self, step: Part) -> frozenset[str]:
        """Return the ids of all steps that this one depends on, directly or indirectly."""
        if step.id not in self._earlier:
            self._earlier[step.id] = self._find_earlier(step)
        return self._earlier[step.id]

    def _find_earlier(self, step: Part) -> frozenset[str]:
        found: set[str] = set()
        pending = list(self.waits[step.id])
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += self.waits[name]
        return frozenset(found)

    def notes(self, step: Part) -> list[Part]:
        """Return the parts whose prose the model reads besides the objective: groups that contain the step,
        and notes above it."""
        place = self.parts.index(step)
        around = list(step.around)
        return [part for part in self.parts[:place] if part.prose and (part in around or part.is_note)]

    def digest(self, step: Part) -> str:
        """Return the SHA-256 of a step's forms, objective, notes and properties. TODO word, results and log
        are excluded."""
        if step not in self._digests:
            self._digests[step] = self._find_digest(step)
        return self._digests[step]

    def _find_digest(self, step: Part) -> str:
        told: list[Any] = []
        if step.objective:
            told = [self.title, *([part.title, part.prose] for part in self.notes(step))]
        after = None if step.after is None else sorted(step.after)
        budget = list(vars(step.budget).values())
        excused = ["may-fail"] if step.may_fail else []  # without it, digests of older versions stay valid
        data = [
            "step 1",
            [step.id, step.title, step.phase, step.objective, told],
            [self._counts(form, frozenset()) for form in step.running],
            [step.tools, step.model, budget, step.expect, after, step.retry, step.on_fail, *excused],
            [group.expect for group in step.around],
        ]
        return hashlib.sha256(json.dumps(data, ensure_ascii=True).encode()).hexdigest()

    def _counts(self, form: Form, seen: frozenset[str]) -> list[Any]:
        """Return, for the digest, a form and all data and library blocks that it refers to."""
        named: list[Any] = []
        for name in dict.fromkeys([form.call, *(var.ref for var in form.vars)]):
            if name in self.data:
                named.append([name, self.data[name].value])
            elif name in self.library and name not in seen:
                named.append([name, self._counts(self.library[name], seen | {name})])
            elif name == form.call and name in self.blocks and name not in seen:
                named.append([name, self._counts(self.blocks[name][1], seen | {name})])
        given = [[var.name, var.text] for var in form.vars]
        return [form.language, form.text, form.name, form.call, given, named]

    @cached_property
    def whole_digest(self) -> str:
        """The SHA-256 of the title and the digests of all steps, in order."""
        data = [self.title, [self.digest(step) for step in self.steps]]
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def phase_of(title: str) -> str:
    """Return the phase in a title, or "": ``Demand``, ``Phase A: Demand (…)``."""
    found = _PHASE.match(title)
    return found[1].capitalize() if found else ""
