"""``quoth help``: pages are listed, shown, given as Org and as JSON, and found by words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pages import PAGES, README, ROOT, page
from words import complaint, quoth

from quoth.agent.cli.main import COMMANDS
from quoth.agent.manual.pages import TOPICS, pages
from quoth.agent.manual.reading import answer
from quoth.agent.manual.shown import shown
from quoth.tools.errors import UsageError


def test_all_pages_are_listed_with_what_they_are_about(tmp_path: Path) -> None:
    assert sorted(name for group in TOPICS.values() for name in group) == sorted(
        ["settings", *(path.stem for path in PAGES)]
    )
    listed = quoth("help", cwd=tmp_path, env={"COLUMNS": "80"}).out
    assert [line for line in listed.splitlines() if len(line) > 80] == []
    for name, one in pages().items():
        assert one.title, name
        about = re.search(rf"^  {name} +(\S.*\n(?:   +\S.*\n)*)", listed, re.MULTILINE)
        assert about, name
        assert " ".join(about[1].split()) == one.about


def test_a_page_is_shown_given_as_org_and_as_json(tmp_path: Path) -> None:
    told = quoth("help", "policy", cwd=tmp_path).out
    assert told.startswith("POLICY\n\nA policy decides ")
    assert re.search(r"^    \(deny \(", told, re.MULTILINE)
    assert "#+" not in told
    assert quoth("help", "policy", "--org", cwd=tmp_path).out == page("policy")
    data = json.loads(quoth("help", "policy", "--json", cwd=tmp_path).out)
    assert (data["topic"], data["title"], data["text"]) == ("policy", "Policy", page("policy"))
    assert [one["topic"] for one in json.loads(quoth("help", "--json", cwd=tmp_path).out)] == [*pages()]


@pytest.mark.parametrize(
    ("words", "beginning"),
    [
        ("policy predicates", "Predicates\n"),  # a headline of that page
        ("what bounds it", "What bounds it\n"),  # of any page
        ("policy one-of", "Predicates\n"),  # the first cell of a table
        ("receipt", "TERMS\n"),  # a term
        ("POLICY", "POLICY\n"),
        ("policy appendfsync", "MACHINES\n"),  # elsewhere, in the text
    ],
)
def test_words_find_the_section_that_has_them(words: str, beginning: str) -> None:
    assert answer(words.split()).startswith(beginning)


def test_several_sections_are_listed_with_the_command_that_shows_each() -> None:
    places = answer(["run", "tests"]).splitlines()
    assert len(places) > 3
    assert [line for line in places[::2] if not line.startswith("quoth help ")] == []
    assert [line for line in places[1::2] if not line.startswith("    ")] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("polcy", 'The manual does not mention "polcy". Did you mean policy?'),
        ("policy zzz", 'The manual does not mention "zzz". Try other words, or list the pages: quoth help'),
    ],
)
def test_words_that_no_page_has_are_answered_with_what_to_do(words: str, said: str) -> None:
    assert complaint(UsageError, lambda: answer(words.split())) == said


@pytest.mark.parametrize(
    ("org", "text"),
    [
        ("* Head\nSome =code= and *bold*\nwords.\n", "Head\nSome code and bold words.\n"),
        ("It is ~(= 3)~ or =a=, =b=.\n", "It is (= 3) or a, b.\n"),
        ("=--dry-run=pure= reads nothing.\n", "--dry-run=pure reads nothing.\n"),
        ("See [[file:plans]] and [[https://example.org][this]].\n", "See plans and this.\n"),
        (
            "- belt :: what is shown,\n  in a dialect.\n- door\n",
            " - belt  what is shown, in a dialect.\n - door\n",
        ),
        (
            "| a | b |\n|---+---|\n| =x= | 1 |\n",
            " a   b\n ─────\n x   1",
        ),
        ("#+begin_src hy :tangle a.hy\n(+ 1 2)\n\n,* 3\n#+end_src\n", "  a.hy\n    (+ 1 2)\n\n    * 3\n"),
        ("#+begin_example\n$ quoth\n# no keyword\n#+end_example\n", "$ quoth\n    # no keyword\n"),
    ],
)
def test_org_is_shown_as_text(org: str, text: str) -> None:
    assert text.strip() in "\n".join(line.rstrip() for line in shown(org, 60, False).splitlines())


BLOCKS = re.compile(
    r"^[ \t]*#\+begin_(\w+).*?^[ \t]*#\+end_\1[ \t]*$", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
CODE = re.compile(r"\x1b\[(?:\d+;)*36m.*?\x1b\[0m", re.DOTALL)
ANSI = re.compile(r"\x1b\[[\d;]*m")
RENDERED = [("README", README.read_text("utf-8")), *((name, one.text) for name, one in pages().items())]


def stray_markers(text: str) -> list[str]:
    """The words with =, ~ or * in a rendered text, without its blocks and its code. A code that ends too
    early, as in =f(a="x")=, leaves its last marker."""
    drawn = shown(BLOCKS.sub("", text), 100, True)
    return re.findall(r"\S*[=~*]\S*", ANSI.sub("", CODE.sub("", drawn)))


@pytest.mark.parametrize(("name", "text"), RENDERED, ids=[name for name, _ in RENDERED])
def test_a_rendered_page_has_no_broken_markup(name: str, text: str) -> None:
    assert stray_markers(text) == []


@pytest.mark.parametrize(
    "text",
    [
        'See =f(a="x")= now.',
        "A =b = c.",
        "* Head =x\n",
        "| =a | b |\n",
        "It is *bold.",
        '=g(x="a", y="b")= is',
    ],
)
def test_broken_markup_is_found(text: str) -> None:
    assert stray_markers(text)


def test_a_long_line_of_code_is_left_whole() -> None:
    line = "x" * 300
    assert f"    {line}\n" in shown(f"#+begin_src text\n{line}\n#+end_src\n", 60, False)


def test_colours_are_for_terminals_that_have_them() -> None:
    assert "\x1b" not in shown(page("policy"), 80, False)
    assert "\x1b[1;35mPOLICY" in shown(page("policy"), 80, True)


def test_every_command_stands_on_the_page_of_commands() -> None:
    told = re.findall(r"^\| =quoth ([a-z]+)", page("commands"), re.MULTILINE)
    assert {name for rows in COMMANDS.values() for name in rows} - {*told} == set()


def test_what_the_words_send_somebody_to_is_there() -> None:
    """Each ``quoth help TOPIC`` in the product, the README and the manual."""
    sources = [
        README,
        *PAGES,
        *(one for room in ("agent", "neuro", "tools") for one in (ROOT / room).rglob("*.py")),
    ]
    sent = {
        topic
        for one in sources
        for topic in re.findall(r"quoth help ([a-z]+(?:-[a-z]+)*)", one.read_text("utf-8"))
    }
    assert sent - {*pages(), "how"} == set()  # "how …" is a question


def test_the_files_that_pages_name_are_there() -> None:
    named = {
        path
        for one in [README, *PAGES]
        for path in re.findall(
            r"[=:]((?:agent|neuro|tools|plans|tests)/[\w./-]*\w)[=\]]", one.read_text("utf-8")
        )
    }
    assert [path for path in sorted(named) if "NAME" not in path and not (ROOT / path).exists()] == []
    assert "tools/door/door.py" in named


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 250
