"""A session as one HTML page: a tree of its events, with durations, verdicts and tokens.

The page contains no script and loads nothing; all words of models, tools and people are escaped text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from quoth.agent.session.render import (
    QUIET,
    Node,
    call_text,
    event_text,
    minute,
    result_text,
    title,
    tree,
)
from quoth.tools.history.event import Event
from quoth.tools.text import number_of
from quoth.tools.visible import visible

Rows = Mapping[str, Mapping[str, Any]]  # audit rows by the id of their call
VERDICTS = ("policy", "rule", "guard", "gate", "consent")
WAYS = ("input", "output")
TITLE_CHARS = 110
OPEN_CHARS = 2000  # longer texts are folded
STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
pre{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0}
details,.leaf{margin:.2rem 0 .2rem 1.2rem}summary{cursor:pointer}
.run{font-weight:600}
.took{color:GrayText;font-size:.85em}
.said{border-left:3px solid #8884;padding-left:.6rem}
.ok{color:#1a7f37}.pending{color:#9a6700}.bad{color:#cf222e}
.bar{display:inline-block;width:8rem;height:.55rem;background:#8882;margin:0 .4rem;position:relative}
.bar i{position:absolute;top:0;bottom:0;background:#0969da;min-width:2px}
table{border-collapse:collapse}td,th{text-align:left;padding:.1rem .9rem .1rem 0}
"""
HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Session {name}</title><style>{style}</style></head><body>
<h1>Session {name}</h1>
"""


def as_html(events: Sequence[Event], session: str, rows: Rows) -> Iterator[str]:
    """The pieces of the page. ``rows`` have the verdicts and durations; an event without a row has none."""
    yield HEAD.format(name=escape(session), style=STYLE)
    yield _summary(events)
    yield from _Page(rows).nodes(tree(events))
    yield "</body></html>\n"


def _summary(events: Sequence[Event]) -> str:
    calls = [one for one in events if one.kind == "call"]
    replies = [one for one in events if one.kind == "reply"]
    tokens = [sum(one.said.get("usage", {}).get(f"{way}_tokens", 0) for one in replies) for way in WAYS]
    told = {
        "begun": minute(events[0].at) if events else "",
        "runs": str(sum(one.kind == "stimulus" and "/" not in one.run for one in events)),
        "replies": str(len(replies)),
        "calls": str(len(calls)),
        "tokens": f"{tokens[0]:,} in, {tokens[1]:,} out" if any(tokens) else "not reported",
    }
    cells = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in told.items())
    return f"<table>{cells}</table>\n"


class _Page:
    """Draws the nodes of the tree. The bar of a call shows its duration relative to the longest call."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._longest = max((row["duration_ms"] for row in rows.values()), default=0)

    def nodes(self, nodes: Iterable[Node]) -> Iterator[str]:
        for node in nodes:
            if node.event.kind == "call":
                yield from self._call(node)
                continue
            yield _reply(node.event) if node.event.kind == "reply" else _leaf(node.event)
            yield from self.nodes(node.inside)

    def _call(self, node: Node) -> Iterator[str]:
        """A call: its form and result, its verdicts, and the events inside it."""
        event = node.event
        results = [one for one in node.inside if one.event.kind == "receipt" and one.event.key == event.key]
        status = results[-1].event.status if results else "no result"
        row = self._rows.get(str(event.said.get("id", "")), {})
        form = visible(call_text(event), lines=True)
        brief = title(form, TITLE_CHARS)
        opened = " open" if any(one.event.kind == "call" for one in node.inside) else ""
        color = {"ok": "ok", "pending": "pending"}.get(status, "bad")
        took = self._bar(row["duration_ms"]) if "duration_ms" in row else ""
        yield f"<details{opened}><summary><code>{escape(brief)}</code> "
        yield f'<b class="{color}">{escape(status)}</b>{took}</summary>\n'
        if form != brief:
            yield f"<pre>{escape(form)}</pre>"
        said = [f"{name}: {row[name]}" for name in VERDICTS if row.get(name)]
        if said:
            yield f'<p class="said">{escape(visible("; ".join(said)))}</p>'
        for one in results:
            yield _folded(visible(result_text(one.event), lines=True))
        yield from self.nodes(one for one in node.inside if one not in results)
        yield "</details>\n"

    def _bar(self, ms: int) -> str:
        share = round(100 * ms / self._longest) if self._longest else 0
        return f' <span class="bar"><i style="width:{share}%"></i></span><span class="took">{ms:,} ms</span>'


def _reply(event: Event) -> str:
    """The tokens of a reply, and its words unless it consists only of calls."""
    usage = event.said.get("usage", {})
    told = [f"{usage[f'{way}_tokens']:,} tokens {way}" for way in WAYS if f"{way}_tokens" in usage]
    told += [f"{usage['seconds']:.1f} s"] if usage.get("seconds") else []
    return _leaf(event, ", ".join(told))


def _leaf(event: Event, more: str = "") -> str:
    """An event that is not a call; empty if its words are shown elsewhere."""
    sign, text = event_text(event)
    if (not sign and not more) or event.kind in QUIET:
        return ""
    kind = "leaf run" if event.kind in ("session", "stimulus", "flight", "step") else "leaf said"
    at = " ".join(filter(None, [event.at[11:19], more]))
    words = _folded(visible(text, lines=True))
    return f'<div class="{kind}"><span class="took">{escape(at)}</span> {words}</div>\n'


def _folded(text: str) -> str:
    if len(text) <= OPEN_CHARS:
        return f"<pre>{escape(text)}</pre>" if text else ""
    more = number_of(len(text), "character")
    return (
        f"<details><summary>{escape(title(text, 100))} ({more})</summary><pre>{escape(text)}</pre></details>"
    )
