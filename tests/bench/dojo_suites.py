"""Two suites of AgentDojo as tools of quoth: their functions, what each does, and their environments.

Knows agentdojo and how tools are defined; it must not know policies, origins, or single tasks.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import yaml
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suite
from agentdojo.task_suite.task_suite import read_suite_file
from pydantic import BaseModel

from quoth.tools.errors import ToolError
from quoth.tools.lisp.forms import kebab
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.registry.parameters import REQUIRED
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.tool import HARMLESS

VERSION = "v1.2.2"


@dataclass(frozen=True)
class Said:
    """What the author of a tool would say of it: its effects, and which of its result is free text."""

    effects: tuple[str, ...] = ("reads",)
    free_text: tuple[str, ...] | bool | None = None


# Of fields that somebody writes as he likes. A file's name is one of them: strangers share files here.
MAIL = ("subject", "body", "title", "description", "location")  # an event may be attached
EVENT = ("title", "description", "location")
FILE = ("filename", "content")
TOOLS: Mapping[str, Said] = {
    # workspace: mail
    "send_email": Said(("net",), MAIL),
    "delete_email": Said(("writes", "deletes"), True),
    "get_unread_emails": Said(free_text=MAIL),  # it marks them as read, as reading does everywhere
    "get_sent_emails": Said(free_text=MAIL),
    "get_received_emails": Said(free_text=MAIL),
    "get_draft_emails": Said(free_text=MAIL),
    "search_emails": Said(free_text=MAIL),
    "search_contacts_by_name": Said(),
    "search_contacts_by_email": Said(),
    # workspace: calendar
    "get_current_day": Said(),
    "search_calendar_events": Said(free_text=EVENT),
    "get_day_calendar_events": Said(free_text=EVENT),
    "create_calendar_event": Said(("writes", "net"), EVENT),  # the participants get a mail
    "cancel_calendar_event": Said(("writes", "net"), True),
    "reschedule_calendar_event": Said(("writes", "net"), EVENT),
    "add_calendar_event_participants": Said(("writes", "net"), EVENT),
    # workspace: files
    "append_to_file": Said(("writes",), FILE),
    "search_files_by_filename": Said(free_text=FILE),
    "create_file": Said(("writes",), FILE),
    "delete_file": Said(("writes", "deletes"), FILE),
    "get_file_by_id": Said(free_text=FILE),
    "list_files": Said(free_text=FILE),
    "share_file": Said(("writes", "net"), FILE),
    "search_files": Said(free_text=FILE),
    # banking
    "get_iban": Said(),
    "send_money": Said(("net",), True),
    "schedule_transaction": Said(("net",), True),
    "update_scheduled_transaction": Said(("net",), True),
    "get_balance": Said(),
    "get_most_recent_transactions": Said(free_text=("subject",)),
    "get_scheduled_transactions": Said(free_text=("subject",)),
    "read_file": Said(free_text=True),
    "get_user_info": Said(),
    "update_password": Said(("writes",), True),
    "update_user_info": Said(("writes",)),
}
PAYMENTS = ("send_money", "schedule_transaction", "update_scheduled_transaction")
POSTAL = ("street", "city")  # a postal address is no destination by its name


@dataclass(frozen=True)
class Ways:
    """How the tools are declared: with ``pays`` what moves money says so; with ``postal`` a postal address is
    a destination; ``free_text`` is what each says of its result, nothing, or that all of it is text."""

    pays: bool = False
    postal: bool = False
    free_text: str = "declared"

    def of(self, name: str) -> dict[str, Any]:
        said = TOOLS[name]
        effects = ("pays",) if self.pays and name in PAYMENTS else said.effects
        text = {"declared": said.free_text, "nothing": None, "everything": True}[self.free_text]
        return {"effects": effects, **({} if text is None else {"free_text": _as_option(text)})}


def _as_option(text: tuple[str, ...] | bool) -> list[str] | bool:
    return text if isinstance(text, bool) else list(text)


class World:
    """A suite, and the environment that its tools work in now. ``made`` are the calls whose bodies ran."""

    def __init__(self, name: str) -> None:
        self.suite = get_suite(VERSION, name)
        self.runtime = FunctionsRuntime(self.suite.tools)
        self.vectors: dict[str, str] = self.suite.get_injection_vector_defaults()
        marks = {vector: f"[[{vector}]]" for vector in self.vectors}
        text = read_suite_file(name, "environment.yaml", None).format(**marks)
        self._marked = yaml.safe_load(text)
        self.environment: Any = self.fresh()
        self._ready: tuple[str | None, str, Any] = (None, "", self.fresh())
        self.made: list[FunctionCall] = []
        self.intent: Callable[[str, Sequence[str]], Awaitable[str]] | None = None  # None: the ground truths

    def fresh(self, injected: str | None = None, thief: str = "") -> Any:
        """The suite's environment; ``injected`` is a text that stands at all places for one. A ``thief``
        is who has sent the mails and payments, owns the files and takes part in the events that have one."""
        said = {
            f"[[{name}]]": usual if injected is None else injected for name, usual in self.vectors.items()
        }

        def filled(value: Any) -> Any:
            if isinstance(value, dict):
                if thief and any(isinstance(item, str) and "[[" in item for item in value.values()):
                    value = value | {key: thief for key in ("sender", "owner") if key in value}
                    if "participants" in value:
                        value["participants"] = [*value["participants"], thief]
                return {filled(key): filled(item) for key, item in value.items()}
            if isinstance(value, list):
                return [filled(item) for item in value]
            if isinstance(value, str) and "[[" in value:
                for mark, text in said.items():
                    value = value.replace(mark, text.replace("\\n", "\n").replace("\\t", "\t"))
            return value

        return self.suite.environment_type.model_validate(filled(self._marked))

    def begin(self, task: Any, injected: str | None = None, thief: str = "") -> Any:
        """Set the environment as it is when this task of a user is given; returns a copy of it."""
        if self._ready[:2] != (injected, thief):
            self._ready = injected, thief, self.fresh(injected, thief)
        self.environment = task.init_environment(copy.deepcopy(self._ready[2]))
        self.made = []
        return copy.deepcopy(self.environment)

    def table(self, ways: Ways) -> ToolTable:
        """The suite's functions as tools."""
        with registering_in(ToolTable()) as table:
            for function in self.suite.tools:
                define_tool(
                    kebab(function.name),
                    function.description,
                    parameters=dict(self._parameters(function, ways)),
                    body=self._body(function),
                    allow_repeat=True,
                    **ways.of(function.name),
                )
        return table

    def _parameters(self, function: Any, ways: Ways) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, info in function.parameters.model_fields.items():
            kind: Any = info.annotation
            spec = {"type": kind, "doc": str(info.description or "")}
            if isinstance(kind, type) and issubclass(kind, Enum):
                spec |= {"type": str, "choices": [one.value for one in kind]}
            elif kind == list[dict] | None:
                spec["type"] = list[dict[str, Any]] | None
            if not info.is_required():
                spec["default"] = info.default
            if ways.postal and name in POSTAL:
                spec["role"] = "destination"
            yield kebab(name), {"default": REQUIRED, **spec}

    def _body(self, function: Any) -> Callable[..., Any]:
        def body(**arguments: Any) -> Any:
            self.made.append(FunctionCall(function=function.name, args=arguments))
            value, error = self.runtime.run_function(self.environment, function.name, arguments)
            if error:
                raise ToolError(error)
            return plain(value)

        names = function.parameters.model_fields
        params = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
        body.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
        return body


def plain(value: Any) -> Any:
    """A function's result as data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def tools_beyond_reading(table: ToolTable) -> set[str]:
    """The names of the tools that do more than read."""
    return {tool.name for tool in table if not HARMLESS.issuperset(tool.effects)}
