"""A question in somebody's own words finds the page of the manual that answers it."""

from __future__ import annotations

import re
import shlex

import pytest
from words import complaint

from quoth.agent.cli.main import parser
from quoth.agent.cli.options import parsed
from quoth.agent.manual.pages import look_up, pages
from quoth.agent.manual.reading import answer
from quoth.agent.manual.search import STOP, SYNONYMS, ranked
from quoth.tools.errors import UsageError

# Each question, and pages of which one must be among the first three places.
QUESTIONS = {
    "how do I take back an edit": "sessions day",
    "revert a file the agent changed": "sessions day",
    "how can I stop it from touching .env": "policy cookbook",
    "forbid a file": "policy cookbook",
    "why was this call denied": "policy approvals cookbook",
    "approve a request from another machine": "approvals machines cookbook",
    "how do I give permission for an hour": "approvals",
    "continue after a crash": "sessions",
    "pick up an old conversation": "sessions",
    "limit what it costs": "models cookbook",
    "how much did it spend today": "models sessions approvals cookbook",
    "which model is used": "models",
    "where do I put my api key": "models",
    "use it without internet": "models shell web cookbook",
    "write my own tool": "tools python tutorial",
    "test a tool": "tools python",
    "call it from python": "python",
    "run several agents at once": "worktrees python",
    "schedule a reminder": "reminders",
    "telegram bot": "chat cookbook",
    "download a web page": "web day",
    "is my shell command sandboxed": "shell security",
    "what leaves my computer": "security data privacy machines",
    "import a markdown plan": "plans",
    "exit codes": "commands",
    "what does guard mean": "terms guard",
    "delete a memory": "memory",
    "log every call to a file": "traces approvals",
}


@pytest.mark.parametrize(("question", "expected"), QUESTIONS.items())
def test_a_question_finds_its_page(question: str, expected: str) -> None:
    first = [section.topic for section in ranked(question.split(), pages().values()).sections[:3]]
    assert {*first} & {*expected.split()}, first


def test_undo_is_the_answer_to_take_back() -> None:
    told = answer(["how", "do", "I", "take", "back", "an", "edit?"])
    assert "quoth undo" in told


def test_each_place_of_a_list_is_read_by_the_command_beside_it() -> None:
    told = answer(["run", "tests"])
    commands = re.findall(r"quoth help .*", told)
    assert 2 < len(commands) <= 8
    for line in commands:
        _, options = parsed(parser(), shlex.split(line)[1:])
        assert look_up(options.words)


@pytest.mark.parametrize("section", [one for page in pages().values() for one in page.sections if one.title])
def test_the_command_of_a_section_shows_that_section(section) -> None:
    found = look_up(shlex.split(section.command)[2:])
    assert found == [section]


def test_the_repl_names_its_own_command() -> None:
    told = answer(["run", "tests"], command=",help")
    assert ",help " in told
    said = complaint(UsageError, lambda: answer(["frobnicate"], command=",help"))
    assert said.endswith("list the pages: ,help")
    assert "quoth help" not in re.sub(r"(?m)^    .*", "", told)


def test_words_that_no_page_has_are_named() -> None:
    assert answer(["undo", "frobnicate"]).startswith('The manual does not mention "frobnicate".')
    said = complaint(UsageError, lambda: answer(["frobnicate", "quux"]))
    assert said == (
        'The manual does not mention "frobnicate" or "quux". Try other words, or list the pages: quoth help'
    )
    assert complaint(UsageError, lambda: answer(["how", "do", "i"])).startswith("Name what you look for.")


def test_synonyms_lead_to_words_of_the_manual() -> None:
    text = "\n".join(page.text for page in pages().values()).lower()
    assert [word for words in SYNONYMS.values() for word in words.split() if word not in text] == []
    assert {*SYNONYMS} & STOP == set()
