"""The plan of a program: all calls that a dry run found, as a tree, as text, and as shapes for approval.

Paths that continue in the same way after a condition are joined again: the common part appears once, after
it. A shape describes the calls that an approval of the plan covers: tool, version, argument patterns, and how
many calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Node = dict[str, Any]
DEEPEST = 20  # levels of nested steps


@dataclass(eq=True)
class Planned:
    """One call that the program may run. ``shape`` describes the calls that an approval would cover,
    ``inside`` are the events of the program in its arguments, ``node["made"]`` is the status of a call that
    the dry run ran."""

    node: Node
    shape: Node | None = None
    inside: list[Event] = field(default_factory=list)


@dataclass(eq=True)
class Note:
    """A point on a path: a loop or filter begins or ends (each, while, where, end), the analysis is
    incomplete from here (lost), or the path ends (fails, cut)."""

    kind: str
    text: str = ""


@dataclass(eq=True)
class Split:
    """A decision by an unknown value: the path splits into several ways, each with a label."""

    kind: str
    text: str
    ways: list[tuple[str, list[Event]]]


Event = Planned | Note | Split


@dataclass(frozen=True)
class CallPlan:
    """The result of a dry run. ``complete`` is true if no path was cut or lost. ``shapes`` are the calls that
    need approval, ``program`` is the digest of the program's text."""

    program: str
    steps: list[Node]
    shapes: list[Node]
    complete: bool
    value: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the program and the shapes. The approval of a plan is bound to it."""
        data = json.dumps([self.program, self.shapes], sort_keys=True)
        return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def text(self) -> str:
        """The tree as text, one line for each call."""
        lines = list(_lines(self.steps, "")) or ["The program runs no call."]
        if not self.complete:
            lines.append("; This plan is incomplete: the program could not be followed everywhere.")
        return "\n".join(lines)

    def to_json(self) -> Node:
        return {
            "digest": self.digest,
            "program": self.program,
            "complete": self.complete,
            "steps": self.steps,
            "shapes": self.shapes,
            "text": self.text,
        }


def make_plan(program: str, events: list[Event]) -> CallPlan:
    """The plan of the program with this digest, with paths joined and the calls of each shape counted."""
    joined = join(events)
    shapes = [shape | {"times": times} for _, (shape, times) in sorted(_count(joined).items())]
    steps = _fold(joined)
    return CallPlan(program, steps, shapes, not _lost(steps))


def join(events: Sequence[Event]) -> list[Event]:
    """The events, with the common end of a split's ways moved after the split, and without empty splits."""
    done: list[Event] = []
    for event in events:
        if not isinstance(event, Split):
            done.append(event)
            continue
        ways = [(label, join(way)) for label, way in event.ways]
        tail: list[Event] = []
        while all(way for _, way in ways) and all(way[-1] == ways[0][1][-1] for _, way in ways):
            tail.insert(0, ways[0][1][-1])
            for _, way in ways:
                way.pop()
        while tail and any(_opened(way) for _, way in ways):
            back = tail.pop(0)
            for _, way in ways:
                way.append(back)
        if any(way for _, way in ways):
            done.append(Split(event.kind, event.text, ways))
        done += tail
    return done


def _opened(way: Sequence[Event]) -> int:
    """The number of loops that begin in the ``way`` but do not end in it."""
    notes = [event.kind for event in way if isinstance(event, Note)]
    return sum(kind in ("each", "while") for kind in notes) - notes.count("end")


Counts = dict[str, tuple[Node, int | None]]


def _count(events: Sequence[Event], loops: int = 0) -> Counts:
    """The maximum number of calls of each shape; None means unlimited."""
    found: Counts = {}
    for event in events:
        if isinstance(event, Note):
            loops += (event.kind in ("each", "while")) - (event.kind == "end")
        elif isinstance(event, Planned):
            if event.shape is not None:
                key = json.dumps(event.shape, sort_keys=True)
                found = _added(found, {key: (event.shape, None if loops else 1)})
            found = _added(found, _count(event.inside, loops))
        else:
            most: Counts = {}
            for _, way in event.ways:
                for key, (shape, times) in _count(way, loops).items():
                    before = most.get(key, (shape, 0))[1]
                    most[key] = (shape, None if times is None or before is None else max(times, before))
            found = _added(found, most)
    return found


def _added(one: Counts, other: Counts) -> Counts:
    both = dict(one)
    for key, (shape, times) in other.items():
        before = both.get(key, (shape, 0))[1]
        both[key] = (shape, None if times is None or before is None else times + before)
    return both


def _lost(steps: Sequence[Node]) -> bool:
    """Whether any path was cut or lost."""
    return any(
        "cut" in step
        or "lost" in step
        or _lost(step.get("steps", ()))
        or _lost(step.get("inside", ()))
        or any(_lost(way["steps"]) for way in step.get("ways", ()))
        for step in steps
    )


def _fold(events: Sequence[Event], depth: int = 0) -> list[Node]:
    """The events as JSON data; loops contain their steps."""
    if depth > DEEPEST:
        return [{"cut": "it is nested too deeply to be shown"}]
    top: list[Node] = []
    open_steps = [top]
    for event in events:
        here = open_steps[-1]
        if isinstance(event, Planned):
            here.append(
                event.node
                | ({"inside": _fold(event.inside, depth + len(open_steps))} if event.inside else {})
            )
        elif isinstance(event, Split):
            ways = [{"way": label, "steps": _fold(way, depth + len(open_steps))} for label, way in event.ways]
            if any(way["steps"] for way in ways):
                here.append({"split": event.kind, "on": event.text, "ways": ways})
        elif event.kind in ("each", "while"):
            if len(open_steps) + depth > DEEPEST:
                here.append({"cut": "it is nested too deeply to be shown"})
                break
            node: Node = {event.kind: event.text, "steps": []}
            here.append(node)
            open_steps.append(node["steps"])
        elif event.kind == "end":
            if len(open_steps) > 1:
                open_steps.pop()
                if not open_steps[-1][-1]["steps"]:
                    open_steps[-1].pop()
            else:
                here.append({"after": "loop"})
        elif event.kind == "where":
            here.append({"where": event.text})
        else:
            here.append({event.kind: event.text})
    return _tidy(top)


def _tidy(steps: list[Node]) -> list[Node]:
    """Drop ``after`` and ``where`` at the end, and empty loops."""
    while steps and ("after" in steps[-1] or "where" in steps[-1]):
        steps.pop()
    return [step for step in steps if step.get("steps", True)]


def _lines(steps: Sequence[Node], pad: str) -> Iterator[str]:
    for step in steps:
        if "call" in step:
            yield f"{pad}{_indented(step['call'], pad)}  ; {_said(step)}"
            yield from _lines(step.get("inside", ()), pad + "  ")
        elif "split" in step:
            yield from _ways(step, pad)
        elif "each" in step or "while" in step:
            yield pad + (f"for each of {step['each']}" if "each" in step else f"while {step['while']}")
            yield from _lines(step["steps"], pad + "  ")
        elif "where" in step:
            yield f"{pad}where {step['where']}"
        elif "after" in step:
            yield f"{pad}after the loop"
        else:
            ((kind, text),) = step.items()
            said = {"fails": "it ends here", "cut": "not followed further", "lost": "unknown from here"}[kind]
            yield f"{pad}; {said}: {_indented(text, pad)}"


def _ways(step: Node, pad: str) -> Iterator[str]:
    for place, way in enumerate(step["ways"]):
        if not way["steps"]:
            continue
        label, text = way["way"], step["on"]
        if step["split"] == "if":
            empty = not step["ways"][0]["steps"]
            head = f"if {text}" if place == 0 else f"if not {text}" if empty else "else"
        elif step["split"] == "loop":
            head = f"if there is any of {text}" if place == 0 else f"if there is none of {text}"
        else:
            head = f"if that fails with {label}" if place else "if that succeeds"
        yield pad + head
        yield from _lines(way["steps"], pad + "  ")


def _indented(text: str, pad: str) -> str:
    return text.replace("\n", "\n" + pad + "  ")


def _said(step: Node) -> str:
    """The verdict on a call, with its effects and its cost, as text."""
    parts = [f"{step['verdict']}: {step['reason']}" if step["reason"] else step["verdict"]]
    effects = " ".join(f":{effect}" for effect in step["effects"]) or "no effects"
    parts.append(effects if step["cost"] == "free" else f"{effects}, :{step['cost']}")
    parts += step["left"]
    if step["made"]:
        parts.append("run now" if step["made"] == "ok" else f"run now, with the status {step['made']}")
    return "; ".join(parts)
