"""Shows a transcript as text for a person.

It shows ``Event.said``, which has no declared secrets. Inner calls and the events of a sub-agent are indented
under their call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from quoth.agent.terminal.forms import budget_text, show_value
from quoth.agent.terminal.output import colored, shown
from quoth.neuro.prompt.memory import memory_text
from quoth.neuro.reading.result import Reading
from quoth.tools.errors import InvalidCallError
from quoth.tools.history.event import LIMITS, Event, TranscriptError, read_form
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code, pretty, print_value
from quoth.tools.lisp.reader import ReadError, read_all, read_one
from quoth.tools.text import listed, number_of
from quoth.tools.visible import visible

HEAD_LINES, TAIL_LINES = 8, 3
LINE_CHARS = 300
TITLE_CHARS = 70
QUIET = ("request", "spent")  # the events around them have the same words


@dataclass
class Node:
    """An event; for a call also the events inside it."""

    event: Event
    inside: list[Node] = field(default_factory=list)


def tree(events: Sequence[Event]) -> list[Node]:
    """The events in order, each inside its call."""
    calls: dict[str, Node] = {}  # the latest node of each key
    found: list[Node] = []
    for event in events:
        node, key = Node(event), event.key or event.run
        around = calls.get(key) if event.kind != "call" else None
        while around is None and "/" in key:
            key = key.rpartition("/")[0]
            around = calls.get(key)
        (found if around is None else around.inside).append(node)
        if event.kind == "call":
            calls[event.key] = node
    return found


def minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def title(text: str, chars: int = TITLE_CHARS) -> str:
    """The beginning of a text, on one line of at most ``chars`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1].rstrip()}…"


def summary_line(one: Any, width: int, taken_by: Sequence[str] = ()) -> str:
    """The Summary of a session (index.py) as a line; its id takes ``width`` columns. ``taken_by`` are the
    commands for which it is the default."""
    parts = [
        f"{one.id:<{width}}",
        minute(one.last),
        f"{one.status:<11}",
        number_of(one.runs, "run"),
        number_of(one.calls, "call"),
        "(worktree)" if one.worktree else "",
        title(one.task),
    ]
    if taken_by:
        parts.append(f"(latest for {', '.join(taken_by)})")
    return "  ".join(part for part in parts if part).rstrip()


def call_text(event: Event) -> str:
    """The form of an event's call; a program keeps its lines."""
    form = read_form(event.said["form"])
    code = [value for value in (*form.args.values(), *form.positional) if isinstance(value, Code)]
    return str(form) if not any("\n" in value for value in code) else _spread(form)


def _spread(form: CallForm) -> str:
    parts = [form.tool, *(_value(value) for value in form.positional)]
    parts += [f" :{name}{_value(value)}" for name, value in form.args.items()]
    return f"({''.join(parts)})"


def _value(value: Any) -> str:
    text = print_value(value)
    return "".join(f"\n  {line}" for line in text.split("\n")) if isinstance(value, Code) else f" {text}"


def result_text(event: Event) -> str:
    """The value and the message of a receipt."""
    said = event.said
    parts = [show_value(said["value"])] if said.get("value") is not None else []
    return "\n".join([*parts, *([said["message"]] if said.get("message") else [])])


def is_calls(text: str) -> bool:
    """Whether a reply consists only of calls, which are shown anyway."""
    try:
        for form in read_all(text, LIMITS):
            from_model(form)
    except (ReadError, InvalidCallError):
        reading = _read(text) if "<" in text or "[" in text else None
        return reading is not None and bool(reading.calls) and not (reading.text or reading.errors)
    return True


def words_of(reply: Mapping[str, Any]) -> str:
    """The words of a reply, without the model's thoughts."""
    text = str(reply["text"])
    return _read(text).content if _may_think(text) else text


def thoughts_of(reply: Mapping[str, Any]) -> str:
    """The model's thoughts before a reply: in marks, or in a field of the provider."""
    from quoth.neuro.backends.answers import reasoning_in  # here: seldom needed

    text = str(reply.get("text", ""))
    marked = _read(text).reasoning if _may_think(text) else ""
    return "\n\n".join(filter(None, [reasoning_in(reply.get("kept")), marked]))


def _may_think(text: str) -> bool:
    from quoth.neuro.reading.prose import may_think  # here: a single call shows no reply

    return may_think(text)


def _read(text: str) -> Reading:
    from quoth.neuro.reading.reply import read_reply  # here: few replies contain thoughts

    return read_reply(text)


def fold(text: str, full: bool) -> list[str]:
    """The lines of a text; of a long text only the first and last lines, and the number of lines between."""
    lines = text.split("\n")
    if full:
        return lines
    lines = [
        line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}… {len(line) - LINE_CHARS} more characters"
        for line in lines
    ]
    rest = len(lines) - HEAD_LINES - TAIL_LINES
    if rest <= 1:
        return lines
    return [*lines[:HEAD_LINES], f"[… {rest} lines folded …]", *lines[-TAIL_LINES:]]


def fault_of(event: Event, needed: Iterable[str] = ()) -> str:
    """Why an event cannot be shown, or lacks one of the fields ``needed``; empty if neither."""
    try:
        for _ in (*map(event.data.__getitem__, needed), event.said, *as_text([event])):
            pass
    except TranscriptError as error:
        return str(error)
    except (LookupError, TypeError, ValueError, AttributeError):
        return f"Event {event.id} cannot be read: it lacks fields of its kind."
    return ""


# As text

COLORS = {
    "▶": "bold",
    "▷": "magenta",
    "→": "cyan",
    "←": "green",
    "×": "red",
    **dict.fromkeys("…!■?~¬", "yellow"),
}


def as_text(
    events: Sequence[Event], *, full: bool = False, color: bool = False, thoughts: bool = False
) -> Iterator[str]:
    """The lines of a session for a person; each event begins with its number. ``thoughts`` adds the model's
    thoughts, dimmed."""
    width = len(str(events[-1].seq)) if events else 1

    def lines(nodes: Sequence[Node], depth: int) -> Iterator[str]:
        for node in nodes:
            if thoughts and node.event.kind == "reply" and (thought := thoughts_of(node.event.said)):
                yield from laid_out(node.event, depth, "∴", thought, "dim")
            if node.event.kind not in QUIET:
                yield from line_of(node.event, depth)
            yield from lines(node.inside, depth + 1)

    def line_of(event: Event, depth: int) -> Iterator[str]:
        if event.kind == "receipt" and event.key:
            depth -= 1  # at the level of its call
        sign, text = event_text(event)
        if not sign:
            return
        yield from laid_out(event, depth, sign, text, "bold" if sign == "▶" else "")

    def laid_out(event: Event, depth: int, sign: str, text: str, style: str) -> Iterator[str]:
        first, *rest = fold(shown(text) if color else text, full)
        pad = "  " * max(depth, 0)
        mark = colored(sign, COLORS[sign]) if color and sign in COLORS else sign
        if color and style:
            first = colored(first, style)
            rest = [colored(line, style) for line in rest] if style == "dim" else rest
        yield f"{event.seq:>{width}} {pad}{mark} {first}".rstrip()
        yield from (f"{'':>{width}} {pad}  {line}".rstrip() for line in rest)

    return lines(tree(events), 0)


def event_text(event: Event) -> tuple[str, str]:
    """The sign and the words of an event; no sign if its words are shown elsewhere."""
    said = event.said
    match event.kind:
        case "session":
            return "§", opening_text(event)
        case "stimulus" if "/" in event.run:
            return "▷", str(said["text"])
        case "stimulus":
            after = f", after {said['after']}" if said.get("after") else ""
            who = f", {visible(said['speaker'])}" if said.get("speaker") else ""
            files = (
                f"\nwith {', '.join(visible(one['name']) for one in said['files'])}"
                if "files" in said
                else ""
            )
            return "▶", f"{event.run}{after}, {minute(event.at)}{who}: {said['text']}{files}"
        case "reply" if said.get("raised") == "moved":
            return "!", str(said["text"])
        case "reply" if said.get("raised") == "budget":
            return "", ""  # nothing was asked; its end says why
        case "reply" if "raised" in said:
            return "!", f"The model did not answer: {said['text']}"
        case "reply":
            words = words_of(said)
            return ("", "") if is_calls(words) else ("‹", words)
        case "call":
            return "→", visible(call_text(event), lines=True)
        case "receipt":
            sign = {"ok": "←", "pending": "…"}.get(event.status, "×")
            return sign, f"{event.status}: {result_text(event)}".rstrip("\n")
        case "memory":
            return ("◦", _memory(said)) if memory_text(said, first=True) else ("", "")
        case "tools":
            return "◦", f"message to the model: {visible(said['text'], lines=True)}"
        case "intent":
            return "◇", _intent(said)
        case "tags":
            passed = [f"no call: {text} ({why})" for _, text, why in said["lines"] if isinstance(why, str)]
            return ("¬", "\n".join(passed)) if passed else ("", "")
        case "sent" if said.get("follow-up"):
            return "›", f"sent: {said['text']}"
        case "repair":
            return "~", f"repaired: {'; '.join(said['what'])}"
        case "fault":
            return "!", f"not read: {said.get('message', '')}"
        case "approval":
            return "?", str(said["said"])
        case "interrupt":
            return "!", "A person interrupted the run" + (
                f". The model's reply so far:\n{said['text']}" if said.get("text") else "."
            )
        case "flight" if event.status:
            return "■", f"{event.key}: {event.status}"
        case "flight":
            return "▶", f"{event.key}, {minute(event.at)}: flight of {said['plan']}"
        case "step":
            reason = f": {said['text']}" if said.get("text") else ""
            return "▷" if said["status"] == "begun" else "■", f"{said['id']}: {said['status']}{reason}"
        case "undo":
            return "!", visible(said["text"])
        case "plan" if "step" in said:
            return "▷", f"step {said['step']} of the plan"
        case "plan":
            return "■", f"the plan was written, steps {said['first']} to {said['last']}"
        case "end" if event.status == "done":
            return "■", f"done in {number_of(said.get('steps', 0), 'step')}{_budget(said)}"
        case "end":
            return "■", (f"{event.status}: {said['text']}" if said["text"] else event.status) + _budget(said)
        case _:
            return "!", f"{event.kind}: {said.get('text') or event.shown}"


def _intent(said: Mapping[str, Any]) -> str:
    """The model's answer to which tools the person's words need."""
    if "tools" in said:
        return f"the task needs {listed(said['tools']) or 'no tool that does more than read'}"
    return f"the model did not say which tools the task needs: {said['text']}"


def _budget(said: Mapping[str, Any]) -> str:
    """The spent and remaining budget of a run, if it was bounded."""
    if "spent" not in said:
        return ""
    return f"\n{budget_text(said['spent'], said['left'])}"


def _memory(said: Mapping[str, Any]) -> str:
    """The memory blocks that a model was shown, each on its own lines."""
    told = said.get("told", ())
    blocks = [
        visible(f"{block['label']}: {block['text']}", lines=True)
        for block in said["blocks"]
        if block["label"] not in told
    ]
    gone = [f"{visible(label)} is no longer shown" for label in said.get("gone", ()) if label not in told]
    return "\n".join(["the model was shown its memory", *blocks, *gone])


def opening_text(event: Event) -> str:
    said = event.said
    parts = [f"{said.get('user') or 'unknown user'}, {minute(event.at)}"]
    if said.get("model"):
        parts.append(f"model {said['model']}")
    parts += [f"tools {file}" for file in said.get("tools") or ()]
    parts += [f"without {name}" for name in said.get("without") or ()]
    if said.get("remote"):
        parts.append(f"remote {said['remote']}")
    if said.get("instructions"):
        parts.append(f"instructions {said['instructions']}")
    if said.get("policy"):
        parts.append(f"policy {said['policy']}")
    if said.get("memory"):
        parts.append(f"memory {said['memory']}")
    if said.get("from"):
        parts.append(f"forked from {said['from']['session']} at {said['from']['at']}")
    return ", ".join(parts)


def one_event(event: Event) -> str:
    """One event in full."""
    return f"{pretty(read_one(event.shown, LIMITS))}\n; {event.id}, digest {event.digest}"
