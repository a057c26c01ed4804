"""One run of a case: a throwaway copy of the workspace, the messages of the person, then the expectations.

The door, its rules and its guards are the real ones. No person is asked: a call that would ask ends the run.
In the modes ``recorded`` and ``dry`` only the bodies of tools are replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from quoth.agent.evaluation.case import FOLDER, Case, Mode, RecordedCall
from quoth.agent.plan.check import expectation_faults, reads_only
from quoth.agent.plan.model import Form
from quoth.agent.reply import CallRecord, Reply
from quoth.agent.run.budget import price_of
from quoth.agent.run.calls import Calls
from quoth.agent.run.host import SessionHost
from quoth.agent.run.runs import Runs
from quoth.agent.terminal.forms import failure_text, shortened, show_value
from quoth.neuro.backends.base import Usage
from quoth.tools.call.call import PROGRAMS, Call, new_call
from quoth.tools.call.canonical import bound_form
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import STATUSES, InvalidCallError, ToolError, ToolFailure, UsageError
from quoth.tools.lisp.forms import CallForm, canonical
from quoth.tools.policy.files import lent_trust
from quoth.tools.policy.limits import only_reads
from quoth.tools.policy.policy import Walk
from quoth.tools.policy.project import WORKSPACE_FOLDER
from quoth.tools.registry.annotations import WorkspacePath
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import forgotten

MOST_FILES, MOST_BYTES = 20_000, 500_000_000  # of a workspace that is copied for each run
NAMES = ("result", "status", "called", "calls")  # what an EXPECT form may refer to, besides tools
KNOWN = f"an expectation may use tools, and {', '.join(NAMES)}"
SHOWN = 200  # characters of a value in a reason
GRACE = 5.0  # seconds for a run to end by its own limit, and to report its tokens
READER, LISTER = "read-file", "list-files"

Ended = Literal["passed", "failed", "asked", "late", "unanswered", "budget"]
UNKNOWN: tuple[Ended, ...] = ("unanswered", "budget")  # these runs prove nothing


@dataclass(frozen=True)
class CaseRun:
    """The end of one run of a case, and the reason unless it passed. ``asked``: a call would have asked a
    person; ``unanswered``: the model gave no reply; ``budget``: that of all runs or of the day was used up,
    not the run's own. ``cost`` is in US dollars, None if unknown; ``unrecorded`` are the calls that have no
    record."""

    ended: Ended
    why: str = ""
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    seconds: float = 0.0
    unrecorded: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        told = {"input_tokens": self.usage.input_tokens, "output_tokens": self.usage.output_tokens}
        more = {"cost": self.cost, "seconds": round(self.seconds, 3), "unrecorded": list(self.unrecorded)}
        return {"ended": self.ended, "why": self.why, **told, **more}


# The copy of the workspace


@dataclass(frozen=True)
class Original:
    """The workspace that is copied, and the files in it that the rules let a tool read."""

    root: Path
    name: str  # of its folder, which some models take for a part of paths
    files: Sequence[str]

    @classmethod
    def of(cls, host: SessionHost) -> Original:
        """The workspace of an agent, without its cases. Raises UsageError if it is too large."""
        reader, lister = (host.table.find(name) or cognitive_tools.find(name) for name in (READER, LISTER))
        assert lister is not None, "it ships with quoth"
        here = {"path": WorkspacePath(".")}
        call = new_call(CallForm(LISTER, here), user=host.user, session=host.session)
        walk = Walk(host.policy, lister, call, here, host.workspace, reader, lister)
        files, size = [], 0
        for path in host.workspace.walk("."):
            name = host.workspace.shown(path)
            if name.startswith(f"{FOLDER}/") or not walk.may_read(name):
                continue
            files.append(name)
            size += path.stat().st_size
            if len(files) > MOST_FILES or size > MOST_BYTES:
                raise UsageError(
                    f"{host.workspace.root} is too large to copy for each run: more than {MOST_FILES:,} files"
                    f" or {MOST_BYTES // 1_000_000} MB. Name a smaller one: --workspace DIR"
                )
        return cls(host.workspace.root, host.workspace.root.resolve().name, files)

    def copy(self, to: Path, case: Case) -> None:
        """Copy the files, then put the files of the case as they were. Raises UsageError."""
        to.mkdir()
        if (own := self.root / WORKSPACE_FOLDER).is_dir():
            shutil.copytree(own, to / WORKSPACE_FOLDER, symlinks=True)
        for name in self.files:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # removed since
                shutil.copy2(self.root / name, to / name)
        workspace = Workspace(to)
        for name, text in case.files.items():
            try:
                path = workspace.resolve(name)
                path.unlink(missing_ok=True)
                if text is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8", newline="")
            except (ToolError, OSError) as error:
                raise UsageError(f"The case {case.name} cannot put its file {name}: {error}") from None


# Tools whose bodies are replaced


class RecordedAnswers:
    """Answers calls from a case. Equal calls get their results in order, then the last one again."""

    def __init__(self, host: SessionHost, record: Sequence[RecordedCall]) -> None:
        self._table = host.table
        self._left: dict[str, list[RecordedCall]] = {}
        self.missed: list[str] = []
        for one in record:
            form = one.form
            with contextlib.suppress(InvalidCallError):  # it is written by hand, or the tool has changed
                if (tool := host.table.find(form.tool)) is not None:
                    form = bound_form(tool, form, host.workspace)
            self._left.setdefault(canonical(form), []).append(one)

    def answer(self, call: Call, **args: Any) -> Any:
        found = self._left.get(canonical(call.form))
        if not found:
            self.missed.append(str(Redactor.of(call.form, self._table).form))
            raise ToolError("This call is not in the recorded session, so it has no result here.")
        one = found.pop(0) if len(found) > 1 else found[0]
        if one.status != "ok":
            raise ToolFailure(next((s for s in STATUSES if s == one.status), "error"), one.message)
        return one.value


def _dry(call: Call, **args: Any) -> str:
    return f"Dry run: {call.tool} was not run. Assume that it succeeded."


def table_of(mode: Mode, table: ToolTable, answers: RecordedAnswers) -> ToolTable:
    """The tools of a run: in the mode ``recorded`` only pure functions and programs run, in ``dry`` also
    tools that only read."""

    def stays(tool: CognitiveTool) -> bool:
        return tool.name == PROGRAMS or not tool.effects or (mode == "dry" and only_reads(tool))

    if mode == "live":
        return table
    made, body = table.copy(), answers.answer if mode == "recorded" else _dry
    for tool in table:
        if not stays(tool):
            other = replace(tool, _body=body, _changes=None, returns=None, input_model=None)
            made.register(other, replace=True)
    return made


# A run


async def attempt(
    case: Case,
    mode: Mode,
    original: Original,
    make: Callable[[Path], SessionHost],
    bounds: Mapping[str, float] | None = None,
) -> CaseRun:
    """Run a case once. ``make`` opens an agent in the copy of the workspace; ``bounds`` lower its limits, by
    name. Raises UsageError."""
    with tempfile.TemporaryDirectory(prefix="quoth-case-", ignore_cleanup_errors=True) as scratch:
        place = Path(scratch) / original.name
        await asyncio.to_thread(original.copy, place, case)
        store = Store(Path(scratch) / "store.sqlite")
        with lent_trust(original.root, place), forgotten(store.path):
            host = make(place)
            host.use_store(store)
            async with host:
                return await _RunningCase(case, mode, host, bounds or {}).go()


class _RunningCase:
    def __init__(self, case: Case, mode: Mode, host: SessionHost, bounds: Mapping[str, float]) -> None:
        self.case, self.host, self.mode = case, host, mode
        self.tools = host.table
        self.answers = RecordedAnswers(host, case.record)
        if mode != "live":
            host.use_tools(table_of(mode, host.table, self.answers))
        self.bounds = bounds
        self.own = host.limits
        self.replies: list[Reply] = []

    async def go(self) -> CaseRun:
        began = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.case.seconds + GRACE):
                await self._talk(began)
        seconds = time.monotonic() - began
        ended, why = await self._ended(late=seconds >= self.case.seconds)
        missed = tuple(dict.fromkeys(self.answers.missed))
        return CaseRun(ended, why, self._usage, self._cost, seconds, missed)

    @property
    def _usage(self) -> Usage:
        return sum((reply.usage for reply in self.replies), Usage())

    @property
    def _cost(self) -> float | None:
        return price_of(self.host.models.backend().name, self._usage)

    async def _talk(self, began: float) -> None:
        runs, own = Runs(self.host), self.own
        for message in self.case.messages:
            left = {"seconds": max(0.001, began + self.case.seconds - time.monotonic())}
            left |= {name: most - (self._cost or 0.0) for name, most in self.bounds.items()}
            lower: dict[str, Any] = {
                name: min(most, getattr(own, name) or most) for name, most in left.items()
            }
            self.host.limits = replace(own, **lower)
            self.replies.append(await runs.say(message))
            if self.replies[-1].status != "done":
                return

    async def _ended(self, late: bool) -> tuple[Ended, str]:
        if late or not self.replies:
            return "late", f"It did not end within {self.case.seconds:g} s."
        last = self.replies[-1]
        silent = last.status == "failed" and not (last.calls or last.usage.output_tokens or last.text)
        if last.reason == "budget" and self._used_up():
            return "budget", last.said
        if silent:
            return "unanswered", last.said
        why = next(filter(None, [*[await self._untrue(form) for form in self.case.expect], self._file()]), "")
        judged = any(re.search(r"\bstatus\b", form.text) for form in self.case.expect)
        if not why and (judged or last.status == "done"):
            return "passed", ""
        if last.status == "pending":
            asked = ", ".join(str(x.shown or x.form) for x in last.calls if x.result.status == "pending")
            return "asked", f"A person would be asked: {asked}"
        return "failed", why if last.status == "done" else f"{last.said} {why}".rstrip()

    def _used_up(self) -> bool:
        """Whether the bound that ended the run was that of all runs or of the day, not the run's own."""
        *_, last = self.host.transcript.events(self.host.session, kind="reply")
        bound = str(last.said["bound"])
        lowered = bound in self.bounds and getattr(self.host.limits, bound) != getattr(self.own, bound)
        return bound == "day" or lowered

    async def _untrue(self, form: Form) -> str:
        """Why an EXPECT form is not true; empty if it is."""
        made = [record for reply in self.replies for record in reply.calls]
        values: dict[str, Any] = {
            "result": self.replies[-1].said,
            "status": self.replies[-1].status,
            "called": [one.form.tool for one in made if one.result.ok],
            "calls": [_data(one) for one in made],
        }
        self.host.use_own_tools(self.tools.where(reads_only))
        result = await Calls(self.host).eval(form.program(values))
        if not result.ok:
            return f"{form.text}: {failure_text(result)}"
        if result.value:
            return ""
        value = shortened(show_value(result.value), SHOWN) or "an empty text"
        said = shortened(values["result"], SHOWN) or "an empty text"
        return f"{form.text} is not true: its value is {value}; result was {said}"

    def _file(self) -> str:
        """The first expected file that is not as expected; empty if there is none, or nothing was written."""
        for name, wanted in self.case.after.items() if self.mode == "live" else ():
            try:
                path = self.host.workspace.resolve(name)
                found = path.read_text(encoding="utf-8") if path.is_file() else None
            except (ToolError, OSError, UnicodeDecodeError) as error:
                return f"{name} cannot be compared: {error}"
            if found is None or wanted is None:
                if found is not wanted:
                    return f"{name} does not exist." if found is None else f"{name} exists."
            elif found.rstrip("\n") != wanted.rstrip("\n"):
                return f"{name} is not as expected: {shortened(show_value(found), SHOWN)}"
        return ""


def _data(record: CallRecord) -> dict[str, Any]:
    """A call as data for EXPECT forms."""
    form = record.shown or record.form
    return {"tool": form.tool, "args": dict(form.args), "status": record.result.status}


def faults(case: Case, mode: Mode, table: ToolTable) -> Iterator[str]:
    """Why a case cannot be run in a mode; faults of its EXPECT forms with their places."""
    if mode != "live" and not case.expect:
        yield f"The case {case.name} expects only files, and only a live run writes them: --mode live"
    for form in case.expect:
        yield from map(str, expectation_faults(form, table, NAMES, KNOWN))
