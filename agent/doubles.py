"""Test doubles for users' tests of their tools: a context with its own door and memory, a model, a person.

They need no test framework and touch none of the user's files.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, overload

from pydantic import BaseModel

from quoth.agent.run.options import ToolOptions
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import Scripted, ScriptedBackend
from quoth.tools.call.call import Call, ToolResult, Verdict, allow, deny, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import Consent, NoLimits, PersonAnswer, Reservation
from quoth.tools.call.question import Question
from quoth.tools.call.services import Services
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.errors import QuothError, ToolError, ToolFailure, UsageError, did_you_mean
from quoth.tools.lisp.forms import CallForm
from quoth.tools.loading import ToolSource
from quoth.tools.memory.in_memory import InMemoryStore as InMemoryStore
from quoth.tools.registry.define import current_table
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.typed_registry import Registry


class FakeModel(ScriptedBackend):
    """A model that gives these replies in order, or the replies of a function::

        Agent(model=FakeModel("Hi."))
        tool_context(model=FakeModel("Hi."))

    ``asked`` lists the prompts; of a conversation, its last message. Raises ModelError when no reply is
    left."""

    def __init__(self, *replies: Scripted | Callable[[Messages], Any], name: str = "fake") -> None:
        only = replies[0] if len(replies) == 1 else None
        super().__init__(only if callable(only) else replies, name)
        self.asked: list[str] = []

    @overload
    async def complete(self, messages: str, *, system: str = "", max_tokens: int = 1024) -> str: ...

    @overload
    async def complete(self, messages: Messages, **options: Any) -> Completion: ...

    async def complete(self, messages: Any, *, system: str = "", **options: Any) -> Any:
        """The next reply: text for the prompt of a tool, a Completion for a conversation."""
        if not isinstance(messages, str):
            self.asked.append(str([*messages][-1]["content"]))
            return await super().complete(messages, **options)
        self.asked.append(messages)
        asked = Messages()
        asked.append("system", system)
        asked.append("user", messages)
        return (await super().complete(asked, **options)).text


class FakePerson(Consent):
    """A person who allows everything or nothing, and gives these answers to questions in order. ``asked``
    lists the requests (a form and the reason) and the questions."""

    def __init__(self, allows: bool = True, answers: Iterable[str] = ()) -> None:
        self.allows = allows
        self.asked: list[tuple[str, str]] = []
        self._answers = iter(answers)

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict:
        self.asked.append((str(call.form), reason))
        return allow() if self.allows else deny("the person says no")

    async def answer(self, tool: CognitiveTool, call: Call, question: Question) -> PersonAnswer | Verdict:
        try:
            return PersonAnswer(self.reply(question))
        except QuothError as error:
            return deny(str(error))

    def reply(self, question: Question) -> str:
        """The next answer. Raises ToolError if none is left, and UsageError for one that does not fit."""
        self.asked.append((question.text, ""))
        if not self.allows:
            raise ToolError("the person says no")
        if (said := next(self._answers, None)) is None:
            raise ToolError(f"No answer to {question.text!r} is left: tool_context(answers=[…]).")
        return question.answer(said)


class FakePermission:
    """``ctx.permission`` of a FakePerson, for a body that is called without a door."""

    def __init__(self, person: FakePerson) -> None:
        self.person = person

    async def request(self, what: str, reason: str) -> None:
        self.person.asked.append((what, reason))
        if not self.person.allows:
            raise ToolFailure("denied", "the person says no")

    async def ask(self, question: Question) -> str:
        return self.person.reply(question)


class FakeRouter:
    """Keeps the messages that tools send: ``sent`` lists each with its receiver."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    async def send_message(self, message: str, *, to: str = "user") -> None:
        self.sent.append((to, message))

    async def list_channels(self) -> Sequence[str]:
        return ()


class PartialServices(Services):
    """Services that need only the methods that a test calls."""

    def __post_init__(self) -> None:
        """Check nothing: a missing method is an AttributeError when it is called."""


class Uncounted(NoLimits):
    """Limits that refuse no call, for tools that declare some."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation:
        return Reservation()


class DoorOfContext:
    """Calls from a test through a door of its own, with the user and session of a context."""

    def __init__(self, door: Door, person: FakePerson) -> None:
        self.door, self.person = door, person
        self.context: ToolContext | None = None

    def __call__(self, form: CallForm, name: str = "", dry: bool = False) -> Awaitable[ToolResult]:
        assert self.context is not None, "tool_context sets it"
        call = new_call(form, user=self.context.user, session=self.context.session)
        return self.door.dispatch(call, self.context.changed(dry=dry))


class FakeContext(ToolContext):
    """The context that ``tool_context`` makes."""

    @property
    def person(self) -> FakePerson:
        """The person who is asked; ``person.asked`` lists the questions."""
        assert isinstance(self.dispatch, DoorOfContext), "tool_context sets it"
        return self.dispatch.person

    @property
    def sent(self) -> list[tuple[str, str]]:
        """The sent messages, each with its receiver. Raises UsageError if you passed a router of your own."""
        if not isinstance(self.router, FakeRouter):
            raise UsageError("ctx.sent belongs to FakeRouter; your router has its own messages.")
        return self.router.sent


SERVICES = tuple(one.name for one in fields(Services))
OURS = ("services", "dispatch", "workspace")
FIELDS = tuple(one.name for one in fields(ToolContext) if one.name not in OURS)


def tool_context(
    workspace: str | Path | None = None,
    *,
    tools: ToolSource | Iterable[ToolSource] | ToolTable | None = None,
    allows: bool = True,
    answers: Iterable[str] = (),
    **given: Any,
) -> FakeContext:
    """A context for a test of a tool::

        assert double(21, ctx=tool_context()) == 42
        assert await tool_context(tools=[double]).call("double", number=21) == 42

    The workspace is a new folder, removed with the context. Memory is an InMemoryStore, also for searches and
    sharing; messages are in ``ctx.sent``. A person allows each request, unless ``allows`` is False, and
    gives the ``answers``; ``ctx.person.asked`` lists the questions. ``given`` contains services by name, such
    as ``memory=`` and ``model=`` (an object needs only the methods that the tool calls), and fields of the
    context, such as ``user=``. Calls pass a door to ``tools`` and the built-in tools; without ``tools``, to
    every tool that this process has defined. No limit counts them and no rule judges them. Raises UsageError
    for an unknown name in ``given``."""
    for name in given:
        if name not in (*SERVICES, *FIELDS):
            known = [*SERVICES, *FIELDS]
            raise UsageError(f"tool_context takes no {name}.{did_you_mean(name, known)}")
    person = FakePerson(allows, answers)
    table = current_table() if tools is None else ToolOptions(tools).load()
    calls = DoorOfContext(Door(table, consent=person, limits=Uncounted()), person)
    root = Path(tempfile.mkdtemp(prefix="quoth-test-")) if workspace is None else Path(workspace)
    if not root.is_dir():
        raise UsageError(f"The workspace {root} is not a folder.")
    context = FakeContext(
        Workspace(root),
        dispatch=calls,
        services=_services({name: given.pop(name) for name in SERVICES if name in given}),
        **{"permission": FakePermission(person), "user": "tester", **given},
    )
    calls.context = context
    if workspace is None:
        weakref.finalize(context, shutil.rmtree, root, ignore_errors=True)
    return context


def _services(given: Mapping[str, Any]) -> Services:
    """The given services; in-memory ones replace the rest."""
    own: dict[str, Any] = {"router": FakeRouter()}
    if "memory" not in given:
        memory = InMemoryStore()
        own |= {"memory": memory, "search": memory, "shared_blocks": memory}
    return PartialServices(**own | dict(given))


def dispatch(
    tool: str | Callable[..., Any],
    args: Mapping[str, Any] | BaseModel | None = None,
    context: ToolContext | None = None,
) -> Any:
    """The value of one call of a tool by its name or function, in ``context`` or a new ``tool_context()``::

        assert dispatch("block", {"operation": "append", "label": "a", "content": "b"})["success"]

    Raises as ``quoth.dispatch`` does."""
    context = tool_context() if context is None else context
    calls = context.dispatch
    table = calls.door.table if isinstance(calls, DoorOfContext) else current_table()
    return Registry(table).dispatch(tool, {} if args is None else args, context)
