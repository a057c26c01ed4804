"""What ``quoth help`` and the REPL answer: the list of pages, a page, a section, or the places of words.

Knows pages and how they are shown; must not know the command line.
"""

from __future__ import annotations

import os
import pydoc
import sys
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from quoth.agent.manual.pages import TOPICS, Page, PageSection, look_up, pages
from quoth.agent.manual.search import line_of, ranked
from quoth.agent.terminal.output import may_draw
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.text import one_line
from quoth.tools.visible import visible

MOST = 8  # places that are listed
EXAMPLE = "how do I take back an edit"
WAYS = f"""A page: quoth help TOPIC; as Org text: --org
A question: quoth help {EXAMPLE}
The options of a command: quoth COMMAND --help
"""


def answer(words: Sequence[str], width: int = 100, *, org: bool = False, command: str = "quoth help") -> str:
    """The text for a topic or a question, or the list of pages. ``command`` is how the reader asks. Raises
    UsageError if the manual does not mention any of the words."""
    from quoth.agent.manual.shown import shown

    words = " ".join(words).split()
    if not words:
        return _contents(width)
    found, note = _found(words, command)
    if isinstance(found, list) and len(found) > 1 and not org:
        return note + _places(found, words, width, command)
    text = found.text if isinstance(found, Page) else "\n".join(section.text for section in found)
    return text if org else note + shown(text, width, may_draw(sys.stdout))


def _found(words: Sequence[str], command: str = "quoth help") -> tuple[Page | list[PageSection], str]:
    """The page, or the sections, the best first; and a sentence about words that no page has."""
    if found := look_up(words):
        return found, ""
    fit = ranked(words, pages().values())
    if (page := pages().get(words[0].lower())) and not ranked(words[1:], [page]).sections:
        fit = ranked(words[1:], pages().values())
    unknown = " or ".join(f'"{visible(word)}"' for word in fit.unknown)
    note = f"The manual does not mention {unknown}." if unknown else ""
    if not fit.sections:
        near = did_you_mean(words[0].lower(), [*pages()]) if len(words) == 1 else ""
        near = near or f" Try other words, or list the pages: {command}"
        raise UsageError(
            f"{note}{near}" if unknown else f"Name what you look for. Example: {command} {EXAMPLE}"
        )
    return fit.sections[
        : 1 if fit.clear else MOST
    ], f"{note} Pages about the other words:\n\n" if note else ""


def as_data(words: Sequence[str]) -> Any:
    """The same as JSON data: a list of pages, a page with its text, or a list of sections with theirs."""
    words = " ".join(words).split()
    found = _found(words)[0] if words else [*pages().values()]
    if isinstance(found, Page):
        return {**_page(found), "text": found.text}
    return [_page(one) if isinstance(one, Page) else vars(one) for one in found]


def page_by_page(text: str) -> None:
    """Show a text in the user's pager, or print it if it fits on one screen."""
    os.environ.setdefault("LESS", "-FRX")
    pydoc.pager(text)


def _page(page: Page) -> dict[str, str]:
    return {"topic": page.topic, "title": page.title, "about": page.about}


def _contents(width: int) -> str:
    """The pages by group, each with its description, which is wrapped at ``width``."""
    lines = []
    for group, names in TOPICS.items():
        column = max(10, *map(len, names)) + 3
        lines.append(group)
        for name in names:
            indent = " " * column
            rows = fill(pages()[name].about, width, initial_indent=indent, subsequent_indent=indent)
            lines.append(f"  {name:<{column - 2}}{rows[column:]}")
        lines.append("")
    return "\n".join([*lines, WAYS])


def _places(sections: Sequence[PageSection], words: Sequence[str], width: int, command: str) -> str:
    """Each section with the command that shows it and its line about the words."""
    from quoth.agent.manual.shown import plain

    rows = (
        f"{section.command.replace('quoth help', command, 1)}\n"
        f"    {one_line(plain(line_of(section, words)), width - 4)}\n"
        for section in sections
    )
    return "".join(rows)
