"""Plan mode: records the calls that are not run as steps, in the transcript, and writes them as a flight
plan.

The door refuses the calls (tools/door/stages.py). The steps are events, so a killed run keeps them when it is
resumed, and the file is made from them alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from quoth.agent.plan.check_forms import unknown_in
from quoth.agent.plan.drafting import DraftStep, draft
from quoth.agent.reply import WrittenPlan
from quoth.agent.session.session import Session
from quoth.tools.call.call import Call
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.history.event import Event, read_form, written_form
from quoth.tools.history.receipts import StoreCallLog, key_in
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.project import WORKSPACE_FOLDER
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.atomic import replace_file

FOLDER = f"{WORKSPACE_FOLDER}/plans"
ON = (
    "This is plan mode. Calls that only read are made. Any other call is not made: it becomes a step of a"
    " plan, which a person reads and carries out later. So send each call that the task needs, once, in its"
    " order; then say in plain words what the plan does."
)
OVER = "Plan mode is over: calls run again. The calls noted as steps of the plan were not run."
MOST_FILES = 1000  # plans of one session


@dataclass(frozen=True)
class PlannedStep:
    """A call that was not run. ``paths`` are the files it works on; unknown for a program."""

    number: int
    key: str
    form: CallForm
    paths: frozenset[str]

    def may_matter(self, paths: Sequence[str]) -> bool:
        """Whether it may change the effect of a call that works on these files."""
        return not self.paths or not paths or self.is_about(paths)

    def is_about(self, paths: Sequence[str]) -> bool:
        """Whether it works on one of these files, or on a folder of one."""
        return any(
            one == other or one in other.parents or other in one.parents
            for one in map(PurePath, self.paths)
            for other in map(PurePath, paths)
        )


class PlanMode:
    """The plan of one ``session``, while its ``run`` is in plan mode (Planning in tools/call/context.py). Its
    steps are calls of ``tools``, and its file is in the ``workspace``; ``log`` keeps secrets out of it."""

    def __init__(
        self,
        session: Session,
        run: str,
        tools: Callable[[], ToolTable],
        workspace: Workspace,
        log: StoreCallLog,
    ) -> None:
        self._session, self._transcript = session.id, session.transcript
        self._run = run
        self._tools = tools
        self._workspace = workspace
        self._log = log
        self._programs: dict[str, Call] = {}
        self._steps = [
            PlannedStep(
                number, event.key, read_form(event.data["form"]), frozenset(event.data.get("paths", ()))
            )
            for number, event in enumerate(_steps_in(self._events()), 1)
        ]

    def _events(self) -> list[Event]:
        """The events of the plan, without the plans of other machines."""
        transcript, session = self._transcript, self._session
        return list(transcript.events(session, kind="plan", after=transcript.imported(session)))

    # Steps

    def enters(self, call: Call) -> None:
        self._programs[call.key or call.id] = call

    def changing(self, paths: Sequence[str], perhaps: bool = False) -> int:
        for step in reversed(self._steps):
            if step.may_matter(paths) if perhaps else step.is_about(paths):
                return step.number
        return 0

    def note(self, call: Call, paths: Sequence[str]) -> str:
        tool, program = call.tool, self._program(call)
        if program is not None:
            call, paths = program, []
            names = unknown_in(_text(program.form), self._tools())
            if names:
                return (
                    f"{tool} was not run, and the program is not a step of the plan: each step runs alone,"
                    f" and {names[0]} was defined by another program. Define it in this program too."
                )
        it = "The call" if program is None else "The whole program"
        what = f"{tool} was not run: this is plan mode. {it} is"
        if (step := self._known(call, paths)) is not None:
            return f"{what} step {step.number} of the plan already; do not repeat it."
        return f"{what} now step {self._add(call, paths).number} of the plan."

    def _program(self, call: Call) -> Call | None:
        """The outermost program that contains the call; None if the call comes from a model or a tool."""
        found = None
        while call.route == "program" and (outer := self._programs.get(call.key.rpartition("/")[0])):
            found = call = outer
        return found

    def _known(self, call: Call, paths: Sequence[str]) -> PlannedStep | None:
        """The existing step for this call: the same call, with no later step that may change its effect."""
        key, digest, open = key_in(call), call.form.digest, True
        for step in reversed(self._steps):
            if (key and step.key == key) or (open and step.form.digest == digest):
                return step
            open = open and not step.may_matter(paths)
        return None

    def _add(self, call: Call, paths: Sequence[str]) -> PlannedStep:
        table = self._tools()
        step = PlannedStep(len(self._steps) + 1, key_in(call), call.form, frozenset(paths))
        data: dict[str, Any] = {"step": step.number, "form": written_form(call.form)}
        if paths:
            data["paths"] = list(dict.fromkeys(paths))
        if call.quoted:
            data["quoted"] = call.quoted
        if call.tool in table and (led := _led(call, table.get(call.tool))):
            data["origins"] = led
        self._log.hide(table.find(call.tool), call)
        self._transcript.add(self._session, "plan", data, run=call.run or self._run, key=step.key)
        self._steps.append(step)
        return step

    # The file

    def written(self) -> WrittenPlan | None:
        """Write the plan, if this run has noted a step, and return its place. A file that a person has
        changed or flown since stays unchanged: further steps are written to another file. Raises
        ToolError."""
        events = self._events()
        steps = _steps_in(events)
        mine = [event for event in steps if event.run.partition("/")[0] == self._run.partition("/")[0]]
        if not mine:
            return None
        try:
            part, first = self._place(events)
            chosen = steps[first - 1 :]
            if not chosen:  # all were written, and a person has changed the file since
                return WrittenPlan(self._name(part), 0)
            remark = (
                f"Session {self._session} in plan mode; nothing of this has run. Edit it, approve it, fly it."
            )
            drafted = [_drafted(number, event) for number, event in enumerate(chosen, first)]
            text = draft(self._title(chosen[0]), [remark], drafted)
            data = text.encode("utf-8", "backslashreplace")
            self._save(part, first, data)
        except (ToolError, OSError) as error:
            why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            raise ToolError(f"The plan could not be written: {why.rstrip('.')}.") from None
        return WrittenPlan(self._name(part), len(chosen))

    def _place(self, events: Sequence[Event]) -> tuple[int, int]:
        """The number of the file to write, and of its first step."""
        saved = [event.said for event in events if "file" in event.said]
        if not saved:
            return self._free(1), 1
        part = int(saved[-1]["file"])
        now = _digest_of(self._path(part))
        if now is None or now in {one["digest"] for one in saved if one["file"] == part}:
            return part, int(saved[-1]["first"])
        return self._free(part + 1), int(saved[-1]["last"]) + 1

    def _free(self, part: int) -> int:
        """The next number without a file."""
        return next((n for n in range(part, part + MOST_FILES) if not self._path(n).exists()), part)

    def _name(self, part: int) -> str:
        more = f"-{part}" if part > 1 else ""
        return f"{FOLDER}/{self._session}{more}.org"

    def _path(self, part: int) -> Path:
        return self._workspace.resolve(self._name(part))

    def _save(self, part: int, first: int, data: bytes) -> None:
        """Write the file. The event with its digest comes first, so that it identifies the file after a
        crash."""
        path, last = self._path(part), len(self._steps)
        said = {"file": part, "digest": hashlib.sha256(data).hexdigest(), "first": first, "last": last}
        if _digest_of(path) != said["digest"]:
            self._transcript.add(self._session, "plan", said, run=self._run)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, [data])

    def _title(self, step: Event) -> str:
        run = step.run.partition("/")[0]
        told = self._transcript.last(self._session, "stimulus", run=run)
        return "A plan" if told is None else str(told.said["text"])


def _steps_in(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if "step" in event.said]


def _led(call: Call, tool: CognitiveTool) -> list[str]:
    """The origins of the destinations of a call, and of links in its texts, that no person has named."""
    from quoth.agent.terminal.question import origin_lines  # here: few runs make a plan
    from quoth.tools.registry.roles import destinations

    aims = {one.name for one in destinations(tool) if not one.outside}
    unknown = [one for one in call.origins() if not one.known]
    led = [one for one in unknown if one.argument in aims or (one.kind == "text" and one.values)]
    return origin_lines(led, call.route)


def _drafted(number: int, event: Event) -> DraftStep:
    said: Mapping[str, Any] = event.said
    quoted = said.get("quoted")
    remarks = [f"The model may have copied this call: its words are in {quoted}"] if quoted else []
    return DraftStep(number, read_form(said["form"]), (*remarks, *said.get("origins", ())))


def _text(form: CallForm) -> str:
    """The text of a program."""
    return str(next(iter((*form.positional, *form.args.values())), ""))


def _digest_of(path: Path) -> str | None:
    """The digest of a file; None if it does not exist, and empty if it is not a regular file."""
    try:
        if path.exists() and not path.is_file():
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
