"""What ``quoth help`` and the REPL answer: the list of pages, a page, a section, or where words stand.

Knows pages and how they are shown; must not know the command line.
"""

from __future__ import annotations

import os
import pydoc
import sys
from collections.abc import Sequence
from typing import Any

from quoth.agent.manual.pages import TOPICS, Page, PageSection, look_up, pages
from quoth.agent.terminal.output import may_draw
from quoth.tools.text import one_line

MOST = 20  # places that are listed
WAYS = """A page: quoth help TOPIC; as Org text: --org. To search: quoth help WORDS.
The options of a command: quoth COMMAND --help
"""


def answer(words: Sequence[str], width: int = 100, *, org: bool = False) -> str:
    """The text for the words, or the list of pages. UsageError if the manual says nothing of them."""
    from quoth.agent.manual.shown import shown

    found = look_up(words) if words else None
    if found is None:
        return _contents()
    if isinstance(found, list) and len(found) > 1 and not org:
        return _places(found, words, width)
    text = found.text if isinstance(found, Page) else "\n".join(section.text for section in found)
    return text if org else shown(text, width, may_draw(sys.stdout))


def as_data(words: Sequence[str]) -> Any:
    """The same as JSON data: a list of pages, a page with its text, or a list of sections with theirs."""
    found = look_up(words) if words else [*pages().values()]
    if isinstance(found, Page):
        return {**_page(found), "text": found.text}
    return [_page(one) if isinstance(one, Page) else vars(one) for one in found]


def page_by_page(text: str) -> None:
    """Show a text in the user's pager, or as it is where one screen holds it."""
    os.environ.setdefault("LESS", "-FRX")
    pydoc.pager(text)


def _page(page: Page) -> dict[str, str]:
    return {"topic": page.topic, "title": page.title, "about": page.about}


def _contents() -> str:
    groups = [
        f"{group}\n" + "".join(f"  {name:<10} {pages()[name].about}\n" for name in names)
        for group, names in TOPICS.items()
    ]
    return "\n".join([*groups, WAYS])


def _places(sections: Sequence[PageSection], words: Sequence[str], width: int) -> str:
    """Where the words stand, a line each, and how one is read."""
    wanted = words[1:] if words[0].lower() in pages() else words
    rows = [
        f"{section.topic:<10} {section.title or pages()[section.topic].title}\n"
        f"           {one_line(section.line_with(wanted), width - 12)}\n"
        for section in sections[:MOST]
    ]
    more = f"… and {len(sections) - MOST} more; a further word narrows it.\n" if len(sections) > MOST else ""
    one = sections[0]
    return "".join(rows) + more + f"To read one: quoth help {one.topic} {one.title.lower()}".rstrip() + "\n"
