"""Reads HTML as a browser would, to show that no text in it is markup. Knows nothing of quoth."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

SCRIPT = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
HOSTILE = (
    f"{SCRIPT} </pre></details></main><svg onload=alert(1)><a href='javascript:alert(1)'>&lt;b&gt; "
    "[m](javascript:alert(1)) ![x](http://evil.example/x.png) *[[http://evil.example]]* "
    "\u202egnp.exe \x1b[31mred \x07\u200b\u2066x\u2069 \ufeff"
)
WORD = "<b onclick=x>\u202ew"  # where a text must be short
ELEMENTS = frozenset(
    """
    a b body br button caption code dd details div dl dt figcaption figure form h1 h2 h3 head header html
    input label li line link main meta nav ol p pre progress rect script section span strong style summary svg
    table tbody td textarea th thead time title tr ul
    """.split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(
    """
    action aria-current aria-hidden aria-label autocomplete charset class content data-head data-live datetime
    defer for height href http-equiv id lang max maxlength method name open rel role rows scope src spellcheck
    tabindex title type value viewbox width x x1 x2 y y1 y2
    """.split()  # noqa: SIM905
)
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def elements(page: str) -> list[tuple[str, dict[str, str]]]:
    """The elements of a page, each with its attributes."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.found


def words_in(page: str) -> str:
    """What a page says, without its markup."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return "".join(reader.words)


def foreign(page: str) -> list[str]:
    """What a page contains that only a hostile text would have brought into it."""
    found = [f"unseen {match!r}" for match in UNSEEN.findall(page)]
    for tag, attributes in elements(page):
        if tag not in ELEMENTS:
            found.append(f"<{tag}>")
        found += [f"<{tag} {name}>" for name in attributes.keys() - ATTRIBUTES]
        for name in ("href", "src", "action"):
            if name in attributes and not re.match(r"/view(/|\?|$)|#e?\w+$|\?", attributes[name]):
                found.append(f"<{tag} {name}={attributes[name]!r}>")
        if tag == "script" and attributes.get("src") != "/view/view.js":
            found.append("<script>")
    return found


def without_names(page: str) -> list[str]:
    """The faults of a page for those who do not see it: tables without heads, graphics and fields without a
    name, a second main heading, a level left out, an id given twice."""
    found, tags = [], elements(page)
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch("h[1-6]", tag)]
    if levels.count(1) != 1:
        found.append(f"{levels.count(1)} main headings")
    found += [f"h{b} after h{a}" for a, b in pairwise(levels) if b > a + 1]
    counts = {name: sum(tag == name for tag, _ in tags) for name in ("table", "caption", "thead")}
    if len({*counts.values()}) > 1:
        found.append(f"tables: {counts}")
    named = {attributes["for"] for tag, attributes in tags if tag == "label" and "for" in attributes}
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    found += [f"id {id} twice" for id in {*ids} if ids.count(id) > 1]
    for tag, attributes in tags:
        if tag == "svg" and not ("aria-hidden" in attributes or "aria-label" in attributes):
            found.append("svg has no name")
        if tag == "th" and "scope" not in attributes:
            found.append("th without scope")
        if (
            tag in ("input", "textarea")
            and attributes.get("type") != "hidden"
            and attributes.get("id") not in named
        ):
            found.append(f"{tag} without a label")
    return found
