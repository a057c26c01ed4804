"""A question and its answers: what a person saw is what is decided on, and nothing else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from sentences import IS_NEVER_CLOSED, IT_WRITES_FILES, NOTHING_WAS_CHANGED
from words import form, tool

from quoth.agent.terminal.ask import AskTerminal
from quoth.agent.terminal.forms import stands
from quoth.tools.call.call import ArgumentOrigin, Call, Change, Changes
from quoth.tools.consent.requests import Decision
from quoth.tools.lisp.printer import print_string
from quoth.tools.registry.table import CognitiveTool

PUT = tool(
    "put",
    params={
        "path": {"type": str},
        "text": {"type": str},
        "pin": {"type": str, "secret": True, "default": ""},
    },
)
CALL = '(put :path "a.txt" :text "two\\n")'


class Person:
    """Answers the questions of one call in turn, and remembers what stood there to be changed."""

    def __init__(self, *answers: str | Callable[[], str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.given = ""

    async def ask(self, question: str, text: str = "") -> str:
        self.asked.append(question.strip())
        self.given = text
        answer = self._answers.pop(0)
        return answer if isinstance(answer, str) else answer()


@pytest.fixture(autouse=True)
def no_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)


def decided(
    person: Person,
    call: str = CALL,
    find: Callable[..., Changes | None] | None = None,
    of: CognitiveTool = PUT,
) -> Decision | None:
    terminal = AskTerminal(person)
    if find is not None:
        terminal.show_changes_by(find)
    return asyncio.run(terminal.request(of, Call("c", form(call)), IT_WRITES_FILES))


def change(before: str | None, after: str = "two\n") -> Callable[..., Changes]:
    return lambda tool, call: Changes((Change("a.txt", before, after),))


def test_the_question_shows_what_would_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert decided(Person("y"), find=change("one\n")) == Decision("once")
    assert capsys.readouterr().err == (
        '\n(put :path "a.txt" :text …)\n'
        "  replaces the only line of a.txt with 1 line\n│ @@ line 1 @@\n│ - one\n│ + two\n"
        f"  asked because {IT_WRITES_FILES}\n\n\n"
    )


def test_the_question_shows_where_each_argument_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    origins = (
        ArgumentOrigin("path", "text", "in the text of read-file mail.txt"),
        ArgumentOrigin("text", "task", "in your task"),
    )
    call = Call("c", form(CALL), "reply", origins=lambda: origins)
    asyncio.run(AskTerminal(Person("n")).request(PUT, call, IT_WRITES_FILES))
    assert capsys.readouterr().err == (
        f"\n{CALL}\n"
        "  ! path: in the text of read-file mail.txt\n"
        "    text: in your task\n"
        f"  asked because {IT_WRITES_FILES}\n\n\n"
    )


def test_a_form_that_stands_there_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    stands(CALL)
    decided(Person("v", "n"), find=change("one\n"))
    brief, _, whole = capsys.readouterr().err.partition("asked because")
    assert brief.startswith("  replaces the only line of a.txt")
    assert CALL in whole
    decided(Person("n"))
    assert capsys.readouterr().err.startswith(f"\n{CALL}\n")


def test_what_changed_since_it_was_shown_is_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["one\n"]
    person = Person(lambda: texts.insert(0, "three\nfour\n") or "y", "y")
    assert decided(person, find=lambda *of: change(texts[0])(*of)) == Decision("once")
    assert person.asked[0] == person.asked[1]
    said = capsys.readouterr().err
    assert "  The change differs from the one you were shown:\n" in said
    assert said.index("│ - one") < said.index("replaces all 2 lines of a.txt with 1 line")


def test_a_no_is_taken_though_it_has_changed() -> None:
    texts = ["one\n"]
    person = Person(lambda: texts.insert(0, "three\n") or "n")
    assert decided(person, find=lambda *of: change(texts[0])(*of)) == Decision("deny")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (",undo", "  A command of the prompt is not an answer."),
        (", but not this one", "  A command of the prompt is not an answer."),
        ("(read-file)", "  A form is not an answer. To run it instead of this call: e FORM."),
        ("(I would rather not)", "  A form is not an answer."),
        ("x", "  x is not an answer. Please answer y (allow), n (refuse) or ? (help).\n"),
    ],
)
def test_a_command_or_a_form_is_not_taken_as_the_reason_of_a_no(
    said: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert decided(Person(said, f"n {said}")) == Decision("deny", why=said)
    assert told in capsys.readouterr().err


def test_a_question_is_set_off_and_says_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    person = Person("")
    assert decided(person, find=change("one\n")) == Decision("deny")
    said = capsys.readouterr().err
    assert "n (default)" in person.asked[0]
    assert said.startswith("\n(put ")
    assert said.endswith(f"  asked because {IT_WRITES_FILES}\n\n\n")  # one below it, one after the answer


def test_the_line_of_a_call_stands_for_the_form_where_the_rest_is_in_the_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "a line of text\n" * 3
    call = f'(put :path "a.txt" :text {print_string(text)})'
    stands(call)
    decided(Person("n"), call, change(None, text))
    assert capsys.readouterr().err.startswith("  new file a.txt, 3 lines\n")
    stands(call)
    decided(Person("n"), call)  # nothing shows the text
    assert capsys.readouterr().err.startswith(f"\n{call}\n")


HIDDEN = "Allow it? v to view all, then y or s; n (default), e, ?, or a reason:"
LONG = '(put :path "a.txt" :text "' + "x" * 3120 + '")'


@pytest.mark.parametrize(
    ("call", "find"),
    [
        (LONG, None),  # an argument is folded
        (LONG, change(None, "else\n")),  # and the difference shows another text
        (CALL, change(None, "line\n" * 100)),  # the difference is longer than the screen
    ],
)
def test_a_yes_counts_only_once_all_was_shown(
    call: str, find: Callable[..., Changes] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    person = Person("y", "s", "v", "y")
    assert decided(person, call, find) == Decision("once")
    assert person.asked[:3] == [HIDDEN] * 3
    assert person.asked[3] != HIDDEN
    said = capsys.readouterr().err.replace("\n│   … ", "")
    text = form(call).args["text"].replace("\n", "\\n")
    assert any(text in said.replace("\n│ ", row_end) for row_end in ("", "\\n"))


def test_a_text_that_the_difference_shows_needs_no_second_look(capsys: pytest.CaptureFixture[str]) -> None:
    text = "line of text\n" * 6
    person = Person("y")
    call = f'(put :path "a.txt" :text "{text}")'
    assert decided(person, call, change(None, text)) == Decision("once")
    assert '(put :path "a.txt" :text …)' in capsys.readouterr().err


def test_a_text_that_is_only_a_part_of_a_file_is_not_taken_as_shown() -> None:
    hidden = "rm -rf / " * 60
    call = f'(put :path "a.txt" :text "{hidden}")'
    person = Person("n")
    decided(person, call, change(None, f"{hidden}\n"))
    assert person.asked == [HIDDEN]


def test_a_form_is_changed_in_the_line_where_it_stands() -> None:
    person = Person("e", '(put :path "b.txt" :text "2")')
    found = decided(person)
    assert person.given == CALL
    assert found == Decision("edit", form=form('(put :path "b.txt" :text "2")'))


def test_a_form_that_was_refused_stands_there_again(capsys: pytest.CaptureFixture[str]) -> None:
    person = Person("e", '(put :path "b.txt"', "e", lambda: f'{person.given} :text "x")')
    assert decided(person) == Decision("edit", form=form('(put :path "b.txt" :text "x")'))
    assert f"this ( {IS_NEVER_CLOSED}" in capsys.readouterr().err


def test_a_form_that_is_left_as_it_is_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert decided(Person("e", CALL, "n")) == Decision("deny")
    assert f"  {NOTHING_WAS_CHANGED}.\n" in capsys.readouterr().err


def test_a_secret_stays_hidden_and_stays_itself(capsys: pytest.CaptureFixture[str]) -> None:
    person = Person("e", '(put :path "a.txt" :text "2" :pin "[secret]")')
    found = decided(person, '(put :path "a.txt" :text "1" :pin "hunter2")', change(None, "pin=hunter2\n"))
    assert person.given == '(put :path "a.txt" :text "1" :pin "[secret]")'
    assert found is not None
    assert found.form == form('(put :path "a.txt" :text "2" :pin "hunter2")')
    assert "hunter2" not in capsys.readouterr().err


def test_a_hidden_secret_cannot_be_moved(capsys: pytest.CaptureFixture[str]) -> None:
    person = Person("e", '(put :path "a.txt" :text "[secret]" :pin "1234")', "n")
    decided(person, '(put :path "a.txt" :text "1" :pin "hunter2")')
    assert "[secret] stands for a value that is not shown; write the value itself there." in (
        capsys.readouterr().err
    )


def test_a_form_is_changed_in_the_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(
        f'#!/bin/sh\ncp "$1" {tmp_path}/seen; echo "$1" > {tmp_path}/name\nsed -i s/two/2/ "$1"\n'
    )
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    monkeypatch.setattr("quoth.agent.terminal.ask.is_terminal", lambda stream: True)
    monkeypatch.setattr("quoth.agent.terminal.input.is_terminal", lambda stream: True)
    long = f'(put :path "a.txt" :text "two\\n{"x" * 90}")'
    found = decided(Person("e"), long)
    assert found == Decision("edit", form=form(long.replace("two", "2")))
    assert (tmp_path / "seen").read_text() == f'(put\n  :path "a.txt"\n  :text "two\n{"x" * 90}")\n'
    assert re.search(r"/put\.hy$", (tmp_path / "name").read_text())


def test_a_question_that_is_answered_elsewhere_goes_away(capsys: pytest.CaptureFixture[str]) -> None:
    class Slow:
        async def ask(self, question: str, text: str = "") -> str:
            waits.set()
            await asyncio.Event().wait()
            return ""

    async def story() -> None:
        terminal, call = AskTerminal(Slow()), Call("c", form(CALL))
        asking = asyncio.ensure_future(terminal.request(PUT, call, IT_WRITES_FILES))
        await waits.wait()
        terminal.withdraw(Call("other", form(CALL)), "denied by ben")
        terminal.withdraw(call, "approved once by ann\x1b")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not terminal.asking

    waits = asyncio.Event()
    asyncio.run(story())
    assert capsys.readouterr().err.endswith("  Decided elsewhere: approved once by ann\\x1b.\n")
