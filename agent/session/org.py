"""A session as an Org document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quoth.agent.session.render import (
    Node,
    call_text,
    event_text,
    fold,
    is_calls,
    opening_text,
    title,
    tree,
    words_of,
)
from quoth.tools.history.event import Event, read_form
from quoth.tools.org.edit import escape
from quoth.tools.visible import visible


def as_org(events: Sequence[Event], session: str, *, full: bool = False) -> Iterator[str]:
    """The lines of a session as an Org document: a headline for each run and step, with times and digests."""
    yield f"#+TITLE: Session {session}"
    if events:
        yield f"#+DATE: [{events[0].at[:10]}]"
    yield from _sections(tree(events), 1, full)


def _sections(nodes: Sequence[Node], level: int, full: bool) -> Iterator[str]:
    """Sections of one level: the contents of a run, a step or a call are one level deeper than its start."""
    inside, step = level, 0  # the level of a run's contents, and its latest step
    for node in nodes:
        event, said = node.event, node.event.said
        within = level if not event.run else inside + 1 if step else inside
        match event.kind:
            case "session":
                yield from _headline(level, f"Opened: {opening_text(event)}", event)
            case "stimulus":
                yield from _headline(level, f"{event.run}: {title(said['text'])}", event)
                if title(said["text"]) != said["text"]:
                    yield from _example(said["text"], full)
                inside, step = level + 1, 0
            case "reply":
                step += 1
                yield from _headline(inside, f"Step {step}", event)
                if said.get("text") and not is_calls(words := words_of(said)):
                    yield from _example(words, full)
            case "call":
                yield from _call(node, within, full)
            case "request" | "spent":
                pass
            case "memory" | "tags" if not event_text(event)[0]:  # its calls show the same
                pass
            case "end":
                yield from _headline(inside, f"End: {event.status}", event)
                if event.status != "done":
                    yield from _example(said["text"], full)
            case _:
                yield from _headline(within, event.kind.capitalize(), event)
                yield from _example(event_text(event)[1], full)


def _call(node: Node, level: int, full: bool) -> Iterator[str]:
    """A call: its form, notes about it, its result, and below that the events inside it."""
    event = node.event
    own = [one.event for one in node.inside if one.event.kind in ("repair", "approval", "receipt")]
    yield from _headline(level, f"Call {read_form(event.said['form']).tool}", event, *own)
    yield "#+begin_src hy"
    yield from map(escape, call_text(event).split("\n"))
    yield "#+end_src"
    for one in own:
        yield from _example(event_text(one)[1], full)
    inner = [one for one in node.inside if one.event not in own]
    yield from _sections(inner, level + 1, full)


def _headline(level: int, text: str, *events: Event) -> Iterator[str]:
    # Links in untrusted text are disabled: a person sees only the words, but Org follows the target.
    text = escape(title(visible(text), 200)).replace("[[", "[\u200b[")
    yield f"{'*' * level} {text}{'.' if text.endswith(':') else ''}"  # :a: at its end would be tags
    yield ":PROPERTIES:"
    for event in events:
        name = f"{event.seq}-{event.kind}"
        yield f":{name}: {event.at} {event.digest}"
    yield ":END:"


def _example(text: str, full: bool) -> Iterator[str]:
    yield "#+begin_example"
    yield from map(escape, fold(text, full))
    yield "#+end_example"
