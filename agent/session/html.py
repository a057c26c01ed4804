"""A session as HTML: its runs and turns, and each call with its form, duration, verdict, the change of files
and the events inside it. ``quoth log --html`` writes it to a file, and the page of a session shows it.

All words of models, tools and people are escaped texts, and nothing here needs a script. An event has the id
``e12``, its number in ``quoth log``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

from quoth.agent.markup import Child, Html, el, html
from quoth.agent.session.render import (
    QUIET,
    Node,
    call_text,
    event_text,
    minute,
    result_text,
    thoughts_of,
    title,
    tree,
)
from quoth.agent.terminal.question import DiffLine, FileDifference
from quoth.tools.history.event import Event
from quoth.tools.text import number_of

Rows = Mapping[str, Mapping[str, Any]]  # audit rows by the id of their call
VERDICTS: Final = ("policy", "rule", "guard", "gate", "consent")
WAYS: Final = ("input", "output")
COLORS: Final = {"ok": "ok", "done": "ok", "pending": "wait"}  # of a status; all others are bad
CLASSES: Final = {"-": "minus", "+": "plus", "@": "at", "!": "at"}
NO_ROW: Final[Mapping[str, Any]] = {}
TITLE_CHARS: Final = 110
OPEN_CHARS: Final = 2_000  # longer texts are folded
MOST_CHARS: Final = 100_000  # shown of a text
MOST_LINES: Final = 400  # shown of the difference of a file
HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
{style}</style></head><body><main>
"""


@dataclass(frozen=True)
class Facts:
    """The rest of a timeline: audit ``rows``; how the call with this key ``changed`` files; the
    address of the ``undo`` of the writes from a call on; the bytes of events that are too ``large`` to be
    read; and the turns ``before`` the first event, by run."""

    rows: Rows = field(default_factory=dict)
    changed: Callable[[str], Sequence[FileDifference]] = lambda key: ()
    undo: Callable[[Event], str] = lambda call: ""
    large: Mapping[int, int] = field(default_factory=dict)
    before: Mapping[str, int] = field(default_factory=dict)


def as_html(events: Sequence[Event], session: str, facts: Facts) -> Iterator[str]:
    """The pieces of a whole document."""
    yield HEAD.format(title=html(f"Session {session}"), style=stylesheet())
    yield el("h1", f"Session {session}")
    yield summary(events)
    yield from timeline(events, facts)
    yield "</main></body></html>\n"


def stylesheet() -> str:
    """The style of all pages; it is also that of a file."""
    return files("quoth.agent").joinpath("view", "style.css").read_text(encoding="utf-8")


def summary(events: Sequence[Event]) -> Html:
    """When a session began, and what it has used."""
    replies = [one.said for one in events if one.kind == "reply"]
    tokens = [sum(said.get("usage", {}).get(f"{way}_tokens", 0) for said in replies) for way in WAYS]
    told: dict[str, Child] = {
        "begun": minute(events[0].at) if events else "",
        "runs": sum(one.kind == "stimulus" and "/" not in one.run for one in events),
        "replies": len(replies),
        "calls": sum(one.kind == "call" for one in events),
        "tokens": f"{tokens[0]:,} in, {tokens[1]:,} out" if any(tokens) else "not reported",
    }
    return pairs(told)


def pairs(told: Mapping[str, Child]) -> Html:
    """Names and what they are, below each other."""
    return el("dl", ((el("dt", name), el("dd", what)) for name, what in told.items()))


def timeline(events: Sequence[Event], facts: Facts) -> Iterator[Html]:
    """The events: a section for each run and flight, with a heading for each turn and step."""
    drawing = _Drawing(facts)
    inside: list[Html] = []
    for node in tree(events):
        event = node.event
        if event.kind in ("session", "stimulus") or (event.kind == "flight" and not event.status):
            if inside:
                yield el("section", inside)
            inside = [drawing.opening(event)]
        else:
            inside += drawing.node(node)
    if inside:
        yield el("section", inside)


class _Drawing:
    """Draws the nodes of a tree. The bar of a call shows its duration relative to the longest call."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._longest = max((row["duration_ms"] for row in facts.rows.values()), default=0)
        self._turns = {**facts.before}

    def opening(self, event: Event) -> Html:
        """The heading of a section."""
        if event.seq in self._facts.large:
            return self._large(event, "h2")
        _, text = event_text(event)
        brief = title(text, TITLE_CHARS)
        level = "p" if event.kind == "session" else "h2"
        more = _folded(text, event) if brief != text else None
        return el("div", el(level, _marks(event), brief), more, id=anchor(event.seq), class_="run")

    def node(self, node: Node) -> Iterator[Html]:
        event = node.event
        if event.kind == "call":
            yield self._call(node)
        elif event.seq in self._facts.large:
            yield self._large(event)
        elif event.kind == "reply":
            yield from self._reply(event)
        elif event.kind == "step":
            _, text = event_text(event)
            level = "h3" if event.status == "begun" else "p"
            yield el(level, _marks(event), text, id=anchor(event.seq), class_="step")
        else:
            yield from _leaf(event)

    def _nodes(self, nodes: Iterable[Node]) -> Iterator[Html]:
        for one in nodes:
            yield from self.node(one)

    def _call(self, node: Node) -> Html:
        """A call: its form, the rule that decided, its result, its changes, and the events inside it."""
        event, large = node.event, self._facts.large
        results = [
            one.event for one in node.inside if one.event.kind == "receipt" and one.event.key == event.key
        ]
        inner = [one for one in node.inside if one.event not in results]
        status = results[-1].status if results else "no result"
        form, row = "", NO_ROW
        if event.seq not in large:
            form, row = call_text(event), self._facts.rows.get(str(event.said.get("id", "")), NO_ROW)
        brief = title(form, TITLE_CHARS) if form else f"A call of {_size(large[event.seq])}"
        took = self._bar(row["duration_ms"]) if "duration_ms" in row else None
        said = [f"{name}: {row[name]}" for name in VERDICTS if row.get(name)]
        if row.get("rule") and row["rule"] in row["policy"]:  # it is quoted there
            said.remove(f"rule: {row['rule']}")
        head = el("summary", event.seq, " ", _time(event), " ", el("code", brief), " ", _status(status), took)
        return el(
            "details",
            head,
            _folded(form, event) if form != brief else self._rest(event) if event.seq in large else None,
            el("p", "; ".join(said), class_="quiet") if said else None,
            [self._result(one) for one in results],
            self._changes(event),
            el("p", _link(event, f"Event {event.id}")),  # not in the summary, which is itself pressed
            self._nodes(inner),
            id=anchor(event.seq),
            class_="call",
            open=bool(inner) or status not in ("ok", "no result"),
        )

    def _result(self, event: Event) -> Html:
        if event.seq in self._facts.large:
            return self._large(event)
        return el("div", _folded(result_text(event), event), id=anchor(event.seq))

    def _changes(self, event: Event) -> Html | None:
        found = self._facts.changed(event.key)
        if not found:
            return None
        undo = self._facts.undo(event)
        link = el("p", el("a", "Undo this and all later writes", href=undo)) if undo else None
        return html([drawn_difference(one) for one in found], link)

    def _bar(self, ms: int) -> Html:
        share = round(100 * ms / self._longest) if self._longest else 0
        shape = el("rect", width=max(share, 1), height=8)
        bar = el("svg", shape, viewBox="0 0 100 8", class_="bar", aria_hidden="true")
        return html(" ", bar, el("span", f" {ms:,} ms", class_="quiet"))

    def _reply(self, event: Event) -> Iterator[Html]:
        """A turn: its tokens, the model's thoughts, and its words unless it consists only of calls."""
        usage, nested = event.said.get("usage", {}), "/" in event.run
        told = [f"{usage[f'{way}_tokens']:,} tokens {way}" for way in WAYS if f"{way}_tokens" in usage]
        told += [f"{usage['seconds']:.1f} s"] if usage.get("seconds") else []
        turn = self._turns[event.run] = self._turns.get(event.run, 0) + 1
        detail = el("span", f" {', '.join(told)}", class_="quiet") if told else None
        yield el(
            "p" if nested else "h3",
            _marks(event),
            f"Turn {turn}",
            detail,
            id=anchor(event.seq),
            class_="turn",
        )
        if thought := thoughts_of(event.said):
            head = el("summary", f"Thoughts ({number_of(len(thought), 'character')})")
            yield el("details", head, _text(thought, event), class_="thoughts")
        _, text = event_text(event)
        if text:
            yield el("div", _folded(text, event), class_="said")

    def _large(self, event: Event, name: str = "p") -> Html:
        size = _size(self._facts.large[event.seq])
        status = (" ", _status(event.status)) if event.status else ()
        head = el(
            name, _marks(event), f"{event.kind.capitalize()} of {size}, too large to be shown here", status
        )
        return el("div", head, self._rest(event), id=anchor(event.seq))

    @staticmethod
    def _rest(event: Event) -> Html:
        return el("p", "All of it: ", el("code", f"quoth log {event.id}"), class_="quiet")


def anchor(seq: int) -> str:
    """The id of an event in a page."""
    return f"e{seq}"


def _size(number: int) -> str:
    return f"{number / 1_000_000:,.1f} MB"


def _status(status: str) -> Html:
    return el("b", status, class_=COLORS.get(status, "bad"))


def _marks(event: Event) -> Html:
    """The number of an event, which leads to it, and its time of day."""
    return html(_link(event, event.seq), " ", _time(event), " ")


def _link(event: Event, words: str | int) -> Html:
    return el("a", words, href=f"#{anchor(event.seq)}", class_="seq", title=f"Event {event.id}")


def _time(event: Event) -> Html:
    return el("time", event.at[11:19], datetime=event.at, class_="quiet")


def _leaf(event: Event) -> Iterator[Html]:
    """An event that is neither a call nor a turn; none if its words are shown elsewhere."""
    sign, text = event_text(event)
    if not sign or event.kind in QUIET:
        return
    if event.kind == "stimulus":  # of a sub-agent
        yield el("p", _marks(event), title(text, TITLE_CHARS), id=anchor(event.seq), class_="run")
        if title(text, TITLE_CHARS) != text:
            yield _text(text, event)
        return
    short = len(text) <= TITLE_CHARS and "\n" not in text
    words = el("p", _marks(event), text) if short else html(el("p", _marks(event)), _folded(text, event))
    yield el("div", words, id=anchor(event.seq), class_="event")


def _folded(text: str, event: Event) -> Html | None:
    """A text; a long one is folded."""
    if not text:
        return None
    if len(text) <= OPEN_CHARS:
        return _text(text, event)
    more = number_of(len(text), "character")
    return el("details", el("summary", f"{title(text[:MOST_CHARS], 100)} ({more})"), _text(text, event))


def _text(text: str, event: Event) -> Html:
    """A text, without the end of a very long one."""
    if len(text) <= MOST_CHARS:
        return el("pre", text)
    more = number_of(len(text) - MOST_CHARS, "more character")
    rest = el("p", f"… {more}. All of it: ", el("code", f"quoth log {event.id}"), class_="quiet")
    return html(el("pre", text[:MOST_CHARS]), rest)


def drawn_difference(one: FileDifference) -> Html:
    """What becomes of one file: a sentence, and its lines in colours."""
    lines = [_line(line) for line in one.lines[:MOST_LINES]]
    if len(one.lines) > MOST_LINES:
        lines.append(el("span", f"[… {number_of(len(one.lines) - MOST_LINES, 'more line')} …]", class_="at"))
    return el("div", el("p", one.head), el("pre", lines, class_="diff") if lines else None, class_="change")


def _line(line: DiffLine) -> Html:
    text = line.text if line.kind in "@!" else f"{line.kind} {line.text}"
    return el("span", text, class_=CLASSES.get(line.kind))
