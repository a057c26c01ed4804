"""The manual as data: its pages, their sections, and where words are found in them.

Knows the Org text of the pages only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files

from quoth.agent.settings import as_org
from quoth.tools.lazy_dataclass import dataclass

# The pages in the order of the list: for everybody, for some, and for reference.
TOPICS = {
    "First": (
        *("start", "tutorial", "day", "repl", "models", "tools", "policy", "approvals", "programs", "shell"),
        *("plans", "sessions", "evaluations", "cookbook"),
    ),
    "Then": (
        *(
            "lisp",
            "skills",
            "web",
            "mcp",
            "guard",
            "python",
            "emacs",
            "acp",
            "serve",
            "view",
            "memory",
            "reminders",
            "worktrees",
        ),
        *("chat", "machines", "traces", "dialects"),
    ),
    "Coming from": tuple(f"coming-from-{one}" for one in ("claude-code", "aider", "llm", "gptel")),
    "To look up": (
        *("errors", "commands", "settings", "terms", "data", "privacy", "upgrade", "security", "house"),
    ),
}
_HEADLINE = re.compile(r"^\*+ (.+)$")
_BLOCK = re.compile(r"^#\+(begin|end)_\w+", re.IGNORECASE)
ENTRY = re.compile(r"^(?:- (.+?) ::|\| (.+?) +\|) ")


@dataclass(frozen=True)
class PageSection:
    """A part of a page: its headline, or "" for the part before the first one, and its Org text."""

    topic: str
    title: str
    text: str

    @property
    def name(self) -> tuple[str, ...]:
        """The words of the headline in small letters."""
        return words_of(self.title)

    @property
    def entries(self) -> list[str]:
        """The terms of its lists, and the first cells of its tables."""
        return [entry for line in self.text.splitlines() if (entry := _entry(line))]

    @property
    def command(self) -> str:
        """The command that shows this section alone."""
        return " ".join(["quoth help", self.topic, *self.name])


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


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in small letters, without marks."""
    return tuple(re.findall(r"[\w-]*\w", text.lower()))


def look_up(words: Sequence[str]) -> Page | list[PageSection]:
    """The page or the sections that the words name, or no sections.

    A topic alone is its page. Otherwise sections with these words as their headline or as an entry (a term,
    the first cell of a table); a topic before the words names the page, whose text is searched too."""
    topic = words[0].lower()
    if (page := pages().get(topic)) and len(words) == 1:
        return page
    searched, rest = ([page], words[1:]) if page else ([*pages().values()], words)
    sections = [section for one in searched for section in one.sections]
    wanted = words_of(" ".join(rest))
    by: list[Callable[[PageSection], bool]] = [
        lambda one: one.name == wanted,
        lambda one: wanted in map(words_of, one.entries),
        *([lambda one: _has(one.title, rest), lambda one: _has(one.text, rest)] if page else []),
    ]
    return next((found for fits in by if (found := [one for one in sections if fits(one)])), [])


def _entry(line: str) -> str:
    """The term, or the first cell of a table, that a line begins with."""
    found = ENTRY.match(line)
    return (found[1] or found[2]) if found else ""


def _has(text: str, words: Sequence[str]) -> bool:
    low = text.lower()
    return all(word.lower() in low for word in words)
