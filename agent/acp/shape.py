"""What quoth has in the shapes of the Agent Client Protocol: calls, results, events of a session, plans.

Sources: the prompt turn, tool calls and agent plan of https://agentclientprotocol.com (protocol 1).
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from acp.helpers import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.schema import PlanEntryStatus, ToolCallLocation, ToolCallStatus, ToolKind

from quoth.agent.events import AgentEvent
from quoth.agent.reply import WrittenPlan
from quoth.agent.session.render import is_calls, result_text, thoughts_of, words_of
from quoth.agent.terminal.forms import show_value
from quoth.tools.call.call import Change
from quoth.tools.call.redaction import Redactor
from quoth.tools.errors import InvalidCallError, UsageError
from quoth.tools.history.event import Event, read_form
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.arguments import bind
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.text import number_of, short

KINDS: Mapping[str, ToolKind] = {
    "deletes": "delete",
    "writes": "edit",
    "runs": "execute",
    "net": "fetch",
    "reads": "read",
}
RESULT_CHARS = 4000  # of a result that the client shows
STEPS: Mapping[str, PlanEntryStatus] = {"begun": "in_progress", "waits": "in_progress", "": "pending"}


def kind_of(tool: CognitiveTool | None) -> ToolKind:
    """The kind of a call, for an icon: by the strongest effect that its tool declares."""
    effects = () if tool is None else tool.effects
    return next((kind for effect, kind in KINDS.items() if effect in effects), "other")


def named_args(tool: CognitiveTool | None, form: CallForm) -> dict[str, Any]:
    """The arguments of a call by name, also those without one; of an invalid call the known ones."""
    if tool is None:
        return dict(form.args)
    try:
        return bind(tool.name, tool.params, form.args, form.positional)
    except InvalidCallError:
        return dict(form.args)


def locations_of(tool: CognitiveTool | None, form: CallForm, root: str) -> list[ToolCallLocation]:
    """The files that a call names, as absolute paths, with the line where it has one."""
    names = [] if tool is None else [param.name for param in tool.path_params]
    args = named_args(tool, form)
    line = args.get("line", args.get("start"))
    line = line if isinstance(line, int) and line >= 0 else None
    paths = [str(args[name]) for name in names if isinstance(args.get(name), str)]
    return [
        ToolCallLocation(path=path if path.startswith("/") else f"{root}/{path}", line=line) for path in paths
    ]


def _title(tool: CognitiveTool | None, form: CallForm) -> str:
    """The call with each argument named, in the order of the parameters: the same text live, where it is as
    the model wrote it, and from a transcript."""
    args = named_args(tool, form)
    if tool is None or len(args) < len(form.args) + len(form.positional):
        return str(form)
    known = [param.name for param in tool.params if param.name in args]
    return str(CallForm(form.tool, {name: args[name] for name in (*known, *args)}))


def call_update(id: str, form: CallForm, table: ToolTable, root: str) -> Any:
    """The update that a call begins."""
    tool = table.find(form.tool)
    return start_tool_call(
        id,
        _title(tool, form),
        kind=kind_of(tool),
        status="in_progress",
        raw_input=named_args(tool, form),
        locations=locations_of(tool, form, root),
    )


def result_update(id: str, status: str, text: str, diffs: Iterable[Any] = ()) -> Any:
    """The update that a call ended, or waits for a person; ``diffs`` are its changes of files."""
    state: ToolCallStatus = "completed" if status == "ok" else "pending" if status == "pending" else "failed"
    shown = text if status == "ok" else f"{status}: {text}"
    return update_tool_call(
        id, status=state, content=[tool_content(text_block(short(shown, RESULT_CHARS))), *diffs]
    )


class Updates:
    """The updates of one session that come of events; a flight's plan is kept to be sent whole. ``changes``
    gives the texts that the call with this key changed."""

    def __init__(self, table: ToolTable, root: str, changes: Callable[[str], Iterable[Change]]) -> None:
        self.table, self._root, self._changes = table, root, changes
        self._steps: dict[str, tuple[str, PlanEntryStatus]] = {}
        self._open: dict[str, list[str]] = {}  # by key, the ids under which a call waits for a person

    def of(self, event: AgentEvent) -> Iterator[Any]:
        data = event.data
        match event.kind:
            case "said":
                yield update_agent_message_text(f"{data}\n\n")
            case "thought" if data.reading.reasoning:
                yield update_agent_thought_text(data.reading.reasoning)
            case "call":
                yield call_update(event.call, data, self.table, self._root)
            case "result":
                result = data.told
                text = show_value(result.value) if result.ok else result.message
                changing, key = result.ok and result.side_effects, data.key or event.call
                diffs = self._diffs(key, data.form) if changing else ()
                yield result_update(event.call, result.status, text, diffs)
                if result.status == "pending":
                    self._open.setdefault(key, []).append(event.call)
                else:  # the call waited before, under another id
                    yield from (result_update(id, result.status, text) for id in self._open.pop(key, ()))
            case "note" | "message":
                yield update_agent_message_text(f"{data}\n\n")
            case "flight":
                self._steps = {step.id: (step.title or step.id, "pending") for step in data.steps}
                yield self._plan()
            case "step":
                self._steps[data.id] = (data.title or data.id, STEPS.get(data.status, "completed"))
                yield self._plan()
            case "end" if data.plan is not None and not event.path:
                yield from self._written(data.plan)

    def _written(self, plan: WrittenPlan) -> Iterator[Any]:
        """The updates that show a plan of plan mode, and what to do with it."""
        from quoth.agent.plan.org_reader import read_plan  # here: few sessions are in plan mode

        if not plan.steps:
            text = f"The plan {plan.file} was changed since its steps were written, so it stays as it is.\n\n"
            yield update_agent_message_text(text)
            return
        with contextlib.suppress(OSError):
            steps = read_plan(Path(self._root, plan.file).read_bytes(), plan.file)[1].steps
            self._steps = {step.id: (step.title, "pending") for step in steps}
            yield self._plan()
        steps_text = number_of(plan.steps, "step")
        lines = (
            f"The plan has {steps_text}; none of its calls has run: {plan.file}",
            f"Edit it as you like. To fly it: change the mode to Ask and send /fly {plan.file}",
            f"To approve it as a whole before, in a terminal: quoth approve {plan.file}",
        )
        yield update_agent_message_text("\n".join(lines) + "\n\n")

    def _diffs(self, key: str, form: CallForm) -> Iterator[Any]:
        """The changes of files by a call, without its declared secrets."""
        tool = self.table.find(form.tool)
        hide = Redactor(form, tool.params if tool else (), by_looks=False)
        for one in self._changes(key):
            before = None if one.before is None else hide.text(one.before)
            yield tool_diff_content(f"{self._root}/{one.path}", hide.text(one.after or ""), before)

    def _plan(self) -> Any:
        return update_plan(plan_entry(title, status=status) for title, status in self._steps.values())

    def of_transcript(self, events: Iterable[Event]) -> Iterator[Any]:
        """The updates that show a session as it was: its tasks, words, thoughts and calls."""
        called: dict[str, str] = {}
        for event in events:
            said = event.said
            match event.kind:
                case "stimulus" if "/" not in event.run:
                    yield update_user_message_text(str(said["text"]))
                case "reply":
                    if thoughts := thoughts_of(said):
                        yield update_agent_thought_text(thoughts)
                    if not is_calls(said["text"]) and (words := words_of(said).strip()):
                        yield update_agent_message_text(f"{words}\n\n")
                case "call":
                    called[event.key] = str(said["id"])
                    yield call_update(called[event.key], read_form(said["form"]), self.table, self._root)
                case "receipt" if event.key in called:
                    yield result_update(called[event.key], event.status, result_text(event))
                    if event.status == "pending":
                        self._open.setdefault(event.key, []).append(called[event.key])


def taken(blocks: Sequence[Any]) -> tuple[str, list[tuple[str, bytes]]]:
    """The person's words in the blocks of a prompt, and the texts and images beside them with their names,
    which are data. Raises UsageError for audio, and for data that is not base64."""
    words, files = [], []
    for number, block in enumerate(blocks, 1):
        match block.type:
            case "text":
                words.append(block.text)
            case "image":
                files.append((f"image-{number}.{block.mime_type.rpartition('/')[2]}", _bytes(block.data)))
            case "resource_link":
                files.append((f"link-{number}.txt", f"{block.name}: {block.uri}\n".encode()))
            case "resource":
                text = getattr(block.resource, "text", None)
                data = _bytes(block.resource.blob) if text is None else text.encode()
                files.append((str(block.resource.uri).rpartition("/")[2] or f"resource-{number}", data))
            case other:
                raise UsageError(f"quoth does not take {other} in a prompt.")
    return "\n".join(words).strip(), files


def _bytes(text: str) -> bytes:
    """The bytes of an attachment. Raises UsageError."""
    try:
        return base64.b64decode(text)
    except ValueError:
        raise UsageError("The data of an attachment is not base64.") from None
