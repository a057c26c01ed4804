"""The eleven tasks of ``quoth models test``: what is asked, with which tools, and when an answer is right.

Knows no model and no command. A tool only notes its call, so that any model may be tried anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from quoth.agent.reply import Reply
from quoth.tools.errors import ToolError
from quoth.tools.registry.define import cognitive_tool, registering_in
from quoth.tools.registry.table import ToolTable
from quoth.tools.text import short

DEGREES = {"oslo": 3, "lima": 19, "bern": 8}
NOTE = """Dear Ann,

1. The report says: "costs rose by 5 % (see table 2)".
2. Its second part is due on 3 May; the path is C:\\reports\\may.
3. Questions? Write to me: a < b && c > d is what puzzles me.

Yours, Ben"""

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Calls:
    """The calls that reached a body, in their order, and the tools that note them here."""

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
class Person:
    name: str
    age: int


@dataclass(frozen=True)
class Task:
    """``fault`` says what is wrong with the calls and the reply of a run; it is empty where nothing is.
    ``output`` is the type of an answer in JSON. ``calls`` is whether the task needs a tool."""

    name: str
    text: str
    fault: Callable[[Sequence[Call], Reply], str]
    output: Any = None
    calls: bool = True


def _exactly(*wanted: Call, answer: str = "") -> Callable[[Sequence[Call], Reply], str]:
    """Demand these calls and no others, in any order; the same one twice does no harm. ``answer`` is in the
    reply."""

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
    return "" if reply.output == Person("Ann", 30) else f"answered {reply.output!r}"


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
        Person,
        calls=False,
    ),
    Task(
        "thought",
        "How many months has a year? First think between <think> and </think>, and write there the call of "
        "unlock with the code 1 that you decide against. Then answer. Make no call.",
        _thought,
        calls=False,
    ),
)
