"""The manual as data: its pages, their sections, and what somebody finds in them by words.

Knows the Org text of the pages only; how it is shown on a terminal and who asks are others' work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from quoth.agent.settings import as_org
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.text import number_of

# As they are listed: what everybody needs, what some need, and what is looked up.
TOPICS = {
    "First": (
        *("start", "tutorial", "day", "repl", "models", "tools", "policy", "approvals", "programs", "shell"),
        *("plans", "sessions"),
    ),
    "Then": (
        *("lisp", "skills", "web", "python", "emacs", "memory", "reminders", "chat", "machines"),
        *("traces", "dialects"),
    ),
    "To look up": ("commands", "settings", "terms", "security", "house"),
}
_HEADLINE = re.compile(r"^\*+ (.+)$")
_BLOCK = re.compile(r"^#\+(begin|end)_\w+", re.IGNORECASE)
_ENTRY = re.compile(r"^(?:- (.+?) ::|\| (.+?) +\|) ")


@dataclass(frozen=True)
class PageSection:
    """A part of a page: its headline, or "" for what stands before the first one, and its Org text."""

    topic: str
    title: str
    text: str

    def line_with(self, words: Sequence[str]) -> str:
        """The first line that has most of the words."""
        lines = [line.strip() for line in self.text.splitlines() if not line.startswith(("#+", "|-"))]
        return max(lines, key=lambda line: (_has(_entry(line), words), _how_many(line, words)), default="")


@dataclass(frozen=True)
class Page:
    topic: str
    text: str

    @property
    def title(self) -> str:
        return self._keyword("TITLE")

    @property
    def about(self) -> str:
        """What the page is about, in a few words."""
        return self._keyword("DESCRIPTION")

    @cached_property
    def sections(self) -> tuple[PageSection, ...]:
        titles: list[str] = [""]
        lines: list[list[str]] = [[]]
        inside = False
        for line in self.text.splitlines():
            if block := _BLOCK.match(line):
                inside = block[1].lower() == "begin"
            if not inside and (headline := _HEADLINE.match(line)):
                titles.append(headline[1])
                lines.append([])
            lines[-1].append(line)
        texts = ["\n".join(one).strip() + "\n" for one in lines]
        return tuple(PageSection(self.topic, title, text) for title, text in zip(titles, texts, strict=True))

    def _keyword(self, name: str) -> str:
        found = re.search(rf"^#\+{name}: (.*)$", self.text, re.MULTILINE)
        return found[1] if found else ""


@cache
def pages() -> Mapping[str, Page]:
    """All pages by topic, in the order in which they are listed."""
    folder = files(__package__)
    names = [name for group in TOPICS.values() for name in group]
    return {
        name: Page(name, as_org() if name == "settings" else (folder / f"{name}.org").read_text("utf-8"))
        for name in names
    }


def look_up(words: Sequence[str]) -> Page | list[PageSection]:
    """The page, or the sections, that the words name; UsageError if there is none.

    A topic alone is its page. Otherwise the sections whose headline, or an entry of which (a term, the first
    cell of a table) has all the words; else those whose text has them all. A topic before the words is where
    they are looked for first."""
    topic = words[0].lower()
    if topic in pages() and len(words) == 1:
        return pages()[topic]
    inside = topic in pages()
    searched, rest = ([pages()[topic]], words[1:]) if inside else ([*pages().values()], words)
    for by in (_by_name, _by_text):
        if found := [section for page in searched for section in page.sections if by(section, rest)]:
            return found
    if inside:
        return look_up(rest)
    raise UsageError(
        f'The manual says nothing about "{" ".join(words)}".{did_you_mean(topic, [*pages()])} '
        f"It has {number_of(len(pages()), 'page')}: {', '.join(pages())}."
    )


def _by_name(section: PageSection, words: Sequence[str]) -> bool:
    return any(_has(name, words) for name in (section.title, *map(_entry, section.text.splitlines())))


def _by_text(section: PageSection, words: Sequence[str]) -> bool:
    return _has(section.text, words)


def _entry(line: str) -> str:
    """The term, or the first cell of a table, that a line begins with."""
    found = _ENTRY.match(line)
    return (found[1] or found[2]) if found else ""


def _has(text: str, words: Sequence[str]) -> bool:
    return _how_many(text, words) == len(words)


def _how_many(text: str, words: Sequence[str]) -> int:
    low = text.lower()
    return sum(word.lower() in low for word in words)
