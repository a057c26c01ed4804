"""The command ``quoth models test``: gives a model small tasks and counts the solved ones."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from quoth.agent.cli.options import DONE, FAILED, Options
from quoth.agent.reply import Reply
from quoth.agent.run.options import ModelOptions
from quoth.agent.terminal.output import complain, print_json, print_line, results_only
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.function import cognitive_tool
from quoth.tools.registry.table import ToolTable
from quoth.tools.text import short

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.config.config import Config
    from quoth.agent.events import AgentEvent, Listener
    from quoth.neuro.backends.base import Backend

STEPS = 5  # maximum number of model turns of a task
REPLY_TOKENS = 2048  # of one reply, thoughts included
REPLY_TOKENS_EMBEDDED = 384  # of one reply of an embedded model, which is slow and does not think
SHOWN = 110  # characters of a fault shown


@dataclass(frozen=True)
class TaskOutcome:
    """One task in one dialect: its fault (empty if solved), the tokens, and the seconds the model took."""

    task: str
    fault: str
    input_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True)
class Result:
    """The outcomes of all tasks in one dialect."""

    dialect: str
    outcomes: Sequence[TaskOutcome]

    @property
    def right(self) -> int:
        return sum(not one.fault for one in self.outcomes)

    @property
    def total(self) -> TaskOutcome:
        """The sums of tokens and seconds, as one outcome."""
        tokens_in = sum(one.input_tokens for one in self.outcomes)
        tokens_out = sum(one.output_tokens for one in self.outcomes)
        return TaskOutcome(self.dialect, "", tokens_in, tokens_out, sum(one.seconds for one in self.outcomes))

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key, best first: most tasks solved, then fewest output tokens."""
        return -self.right, self.total.output_tokens

    def to_json(self) -> dict[str, Any]:
        return {"dialect": self.dialect, "right": self.right, "tasks": [asdict(one) for one in self.outcomes]}


class UnansweredError(UsageError):
    """The model gave no reply."""


def test_model(options: Options, spec: str | None, config: Config) -> int:
    """Run the tasks, print a row for each, and return the exit code: 1 if no task was solved or the model did
    not answer. Raises UsageError."""
    with tempfile.TemporaryDirectory(prefix="quoth-models-") as scratch, results_only():
        try:
            usual, results = asyncio.run(_results(options, spec or options.model, config, Path(scratch)))
        except UnansweredError as error:
            complain(str(error))
            return FAILED
    best = min(results, key=lambda one: one.rank)
    if options.json:
        print_json({"best": best.dialect, "usual": usual, "dialects": [one.to_json() for one in results]})
        return DONE if best.right else FAILED
    if len(results) == 1:
        print_line(f"\n{best.right} of {len(TASKS)} tasks solved.")
    else:
        print_line("\nAll tasks, by dialect:")
        for one in sorted(results, key=lambda one: one.rank):
            print_line(_row(one.total, f"{one.right} of {len(TASKS)}"))
    if len(results) > 1 or not best.right:
        print_line(_proposal(best, usual))
    return DONE if best.right else FAILED


def _proposal(best: Result, usual: str) -> str:
    """The advice: what to put into config.hy, if anything."""
    if not best.right:
        return "\nThe model solved no task; quoth cannot work with it."
    if best.dialect == usual:
        return f"\nquoth already uses the best dialect for this model, {usual}."
    return (
        f"\nThe best dialect is {best.dialect}; quoth uses {usual}. To change it, add to config.hy:"
        f' (dialect "{best.dialect}")'
    )


async def _results(
    options: Options, spec: str | None, config: Config, scratch: Path
) -> tuple[str, list[Result]]:
    """The dialect that quoth chooses by itself, and the results of each dialect."""
    from quoth.agent.run.models import Models

    url, timeout, key = options.base_url, options.timeout, options.api_key
    models = Models(ModelOptions(spec, url, timeout=timeout, api_key=key), config)
    try:
        backend = models.backend()
        usual = models.dialect()[0].name
        if not options.json:
            print_line(f"{backend.name}: {len(TASKS)} tasks in each dialect.")
        examiner = Examiner(options, backend, scratch)
        return usual, [await examiner.result(one) for one in _dialects(backend, options.dialect)]
    finally:
        await models.aclose()


def _dialects(backend: Backend, wanted: str | None) -> list[str]:
    """The dialects to test: the wanted one, or all of the model but tags, whose calls have one argument."""
    from quoth.neuro.prompt.dialects import DIALECTS, named_dialect

    if wanted is not None:
        return [named_dialect(wanted).name]
    return [name for name in DIALECTS if name != "tags" and (name != "native" or backend.tool_view)]


@dataclass(frozen=True)
class Examiner:
    """Gives one model the tasks. ``notes`` are the notes already shown to the user."""

    options: Options
    backend: Backend
    scratch: Path
    notes: set[str] = field(default_factory=set)

    async def result(self, dialect: str) -> Result:
        """The outcomes of all tasks; prints each as soon as it is known."""
        if not self.options.json:
            print_line(f"\n{dialect}")
        outcomes = []
        for task in TASKS:
            outcome = await self._outcome(dialect, task)
            outcomes.append(outcome)
            if not self.options.json:
                print_line(_row(outcome, "failed" if outcome.fault else "ok", outcome.fault))
        return Result(dialect, outcomes)

    async def _outcome(self, dialect: str, task: Task) -> TaskOutcome:
        """Run one task. Raises UnansweredError if the model gave no reply at all."""
        from quoth.tools.storage.database import Store

        calls, kinds = NotedCalls(), set[str]()

        def hear(event: AgentEvent) -> None:
            kinds.add(event.kind)
            if event.kind == "note":
                self._show_note(event.data)

        agent = self._agent(calls, dialect, task, hear)
        agent.host.use_store(Store(self.scratch / "store.sqlite"))
        async with agent:
            reply = await agent.run(task.text, output=task.output)
        if reply.error and "thought" not in kinds:
            raise UnansweredError(reply.error)
        fault = short(reply.error.splitlines()[0], SHOWN) if reply.error else task.fault(calls.made, reply)
        usage = reply.usage
        return TaskOutcome(task.name, fault, usage.input_tokens, usage.output_tokens, round(usage.seconds, 2))

    def _agent(self, calls: NotedCalls, dialect: str, task: Task, hear: Listener) -> AsyncAgent:
        from quoth.agent.client import AsyncAgent
        from quoth.agent.run.limits import RunLimits
        from quoth.tools.loading import load_tools

        table = calls.tools()
        table.register(load_tools(()).get("eval"))
        longest = REPLY_TOKENS_EMBEDDED if self.backend.takes_grammar else REPLY_TOKENS
        return AsyncAgent(
            workspace=self.scratch,
            tools=table,
            # Force a call only as any run does; in a task without tools the model decides.
            model=ModelOptions(self.backend, None, dialect, None if task.calls else False),
            limits=RunLimits(steps=STEPS, reply_tokens=self.options.reply_tokens or longest),
            temperature=self.options.temperature or 0.0,
            consent="yes",
            user=self.options.user,
            on_event=hear,
        )

    def _show_note(self, note: str) -> None:
        """Show a note, but only once for all tasks."""
        if note not in self.notes:
            self.notes.add(note)
            complain(note)


def _row(outcome: TaskOutcome, word: str, fault: str = "") -> str:
    tokens = f"{outcome.input_tokens:>6,} in {outcome.output_tokens:>5,} out"
    return f"  {outcome.task:14} {word:8} {tokens} {outcome.seconds:6.1f} s  {fault}".rstrip()


DEGREES = {"oslo": 3, "lima": 19, "bern": 8}
NOTE = """Hello Ann,

1. The report says: "costs rose by 5 % (see table 2)".
2. Its second part is due on 3 May; the path is C:\\reports\\may.
3. Questions? Write to me: a < b && c > d is what puzzles me.

Yours, Ben"""

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class NotedCalls:
    """The calls that reached a tool's body, in order, and the tools that record them here."""

    made: list[Call] = field(default_factory=list)

    def tools(self) -> ToolTable:
        table = ToolTable()
        with registering_in(table):
            self._define()
        return table

    def _define(self) -> None:
        note = self.made.append

        def weather(city: Annotated[str, "Name of the city"]) -> str:
            """Return the temperature in a city."""
            note(("weather", {"city": city}))
            return f"{DEGREES.get(city.lower(), 12)} degrees"

        def distance(start: Annotated[str, "City"], end: Annotated[str, "City"]) -> str:
            """Return the distance between two cities."""
            note(("distance", {"start": start, "end": end}))
            return "1,604 km"

        def set_volume(percent: Annotated[int, "0 to 100"]) -> str:
            """Set the volume of the loudspeaker."""
            note(("set-volume", {"percent": percent}))
            return f"The volume is {percent} %."

        def save_contact(
            name: Annotated[str, "Full name"],
            address: Annotated[dict[str, str], "The keys street and city"],
        ) -> str:
            """Save the name and the address of a person."""
            note(("save-contact", {"name": name, "address": address}))
            return f"{name} is saved."

        def save_note(text: Annotated[str, "The note, word for word"]) -> str:
            """Save a note."""
            note(("save-note", {"text": text}))
            return "The note is saved."

        def unlock(code: Annotated[str, "The code"]) -> str:
            """Open the door by a code."""
            note(("unlock", {"code": code}))
            if code != "0042":
                raise ToolError("The code must have four digits. Put zeros in front, and call unlock again.")
            return "The door is open."

        for tool in (weather, distance, set_volume, save_contact, save_note, unlock):
            cognitive_tool(tool, effects=["reads"])


@dataclass(frozen=True)
class AskedPerson:
    name: str
    age: int


@dataclass(frozen=True)
class Task:
    """``fault`` returns the fault of a run's calls and reply, empty if it solved the task. ``output`` is the
    type of an answer in JSON. ``calls`` is whether the task needs a tool."""

    name: str
    text: str
    fault: Callable[[Sequence[Call], Reply], str]
    output: Any = None
    calls: bool = True


def _exactly(*wanted: Call, answer: str = "") -> Callable[[Sequence[Call], Reply], str]:
    """Require exactly these calls, in any order; a repeated call is allowed. The reply must contain
    ``answer``."""

    def fault(made: Sequence[Call], reply: Reply) -> str:
        strange = [call for call in made if call not in wanted]
        missing = [call for call in wanted if call not in made]
        if strange:
            return f"called {_written(strange[0])}"
        if missing:
            return f"did not call {_written(missing[0])}"
        return "" if answer in reply.text else f"answered {short(reply.text, 60)!r}, without {answer}"

    return fault


def _written(call: Call) -> str:
    name, args = call
    return short(f"{name} with {', '.join(f'{key} {value!r}' for key, value in args.items())}", 90)


def _corrected(made: Sequence[Call], reply: Reply) -> str:
    if not made or made[-1] != ("unlock", {"code": "0042"}):
        return f"called {_written(made[-1])} last" if made else "did not call unlock"
    return ""


def _by_program(made: Sequence[Call], reply: Reply) -> str:
    if not any(call.form.tool == "eval" and call.result.ok for call in reply.calls):
        return "ran no program to its end"
    cities = {str(args.get("city")).lower() for name, args in made if name == "weather"}
    if left := DEGREES.keys() - cities:
        return f"its programs did not ask for {', '.join(sorted(left))}"
    return "" if "30" in reply.text else f"answered {short(reply.text, 60)!r}, without 30"


def _is_ann(made: Sequence[Call], reply: Reply) -> str:
    if made:
        return f"called {_written(made[0])}"
    return "" if reply.output == AskedPerson("Ann", 30) else f"answered {reply.output!r}"


def _thought(made: Sequence[Call], reply: Reply) -> str:
    if made:
        return f"called {_written(made[0])}"
    if "think>" in reply.text:
        return "its thoughts are in the answer"
    return "" if "12" in reply.text else f"answered {short(reply.text, 60)!r}, without 12"


TASKS: Sequence[Task] = (
    Task(
        "one argument",
        "What is the temperature in Oslo? Ask the tool weather.",
        _exactly(("weather", {"city": "Oslo"}), answer="3"),
    ),
    Task(
        "two arguments",
        "How far is it from Oslo to Rome? Ask the tool distance.",
        _exactly(("distance", {"start": "Oslo", "end": "Rome"}), answer="604"),
    ),
    Task(
        "two calls",
        "Is Lima warmer than Bern? Ask the tool weather for both.",
        _exactly(("weather", {"city": "Lima"}), ("weather", {"city": "Bern"})),
    ),
    Task("number", "Set the volume to 40 percent.", _exactly(("set-volume", {"percent": 40}))),
    Task(
        "nested value",
        "Save the contact Ann Lee, who lives in Leeds, at 5 Hill Road.",
        _exactly(
            ("save-contact", {"name": "Ann Lee", "address": {"street": "5 Hill Road", "city": "Leeds"}})
        ),
    ),
    Task("no call", "Say hello to Ann. You need no tool for that.", _exactly(answer="Ann"), calls=False),
    Task("long text", f"Save this note, word for word:\n\n{NOTE}", _exactly(("save-note", {"text": NOTE}))),
    Task("correction", "Open the door. The code is 42.", _corrected),
    Task(
        "program",
        "Run one program with eval that asks weather for Oslo, Lima and Bern and adds the three numbers of "
        "degrees. What is their sum?",
        _by_program,
    ),
    Task(
        "JSON output",
        "Ann is 30 years old, and lives in Leeds. What are her name and her age?",
        _is_ann,
        AskedPerson,
        calls=False,
    ),
    Task(
        "thought",
        "How many months has a year? First think between <think> and </think>, and write there the call of "
        "unlock with the code 1 that you decide against. Then answer. Do not call any tool.",
        _thought,
        calls=False,
    ),
)
