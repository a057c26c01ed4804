"""A form as a person reads it: laid out over lines, with what is long folded, and still the same form."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from sentences import CHARACTERS_LEFT_OUT
from words import form, lines

from quoth.agent.terminal.forms import brief, command_line, folded, laid_out, margined

PROGRAM = (
    '(eval :form (do (setv files (list-files :path "src" :pattern "*.py"))'
    " (for [file files] (print (len (read-file :path file)))) (len files)))"
)
TEXT = 'one\n\ttwo "x" \\ three\n' + "four " * 20

SAME = [
    '(write-file :path "a.txt" :content "x")',
    f'(write-file :path "a.txt" :content "{"x" * 300}")',
    '(write-file :path "a.txt" :content "' + 'one\\n\\ttwo \\"x\\" \\\\\\n' * 20 + '")',
    PROGRAM,
    '(shell :argv ["git" "log" "--format=' + "%h " * 40 + '"] :cwd ".")',
    '(probe "a place without a name, and so long that it has a line of its own" :more [1 2 {"a" None}])',
]


@pytest.mark.parametrize("text", SAME)
def test_a_form_that_is_laid_out_is_the_same_form(text: str) -> None:
    assert form(laid_out(form(text), 60)).digest == form(text).digest


def test_a_short_form_stays_on_its_line() -> None:
    assert laid_out(form(SAME[0])) == SAME[0]


def test_a_program_is_indented() -> None:
    assert laid_out(form(PROGRAM), 70) == lines(
        "(eval",
        '  :form (do (setv files (list-files :path "src" :pattern "*.py"))',
        "          (for [file files] (print (len (read-file :path file))))",
        "          (len files)))",
    ).rstrip("\n")


def test_the_lines_of_a_text_are_lines() -> None:
    text = '(write-file :path "a.txt" :content "' + "one\\n" * 2 + "x" * 80 + '")'
    assert laid_out(form(text)) == '(write-file\n  :path "a.txt"\n  :content "one\none\n' + "x" * 80 + '")'


def test_a_long_argument_is_folded_and_says_how_long_it_is() -> None:
    numbers = list(range(500))
    text = f'(send :to "ann" :text "{"a" * 3120}" :ids [{" ".join(map(str, numbers))}])'
    head = f"[{' '.join(map(str, numbers))}"[:60]
    assert str(folded(form(text))) == (
        f'(send :to "ann" :text "{"a" * 60}… 3,120 characters" :ids {head} … 1,891 characters)'
    )
    assert str(folded(form(text), {"text"})).startswith('(send :to "ann" :text … :ids [0')
    assert folded(form(text), {"text"}, others=False).args["ids"] == numbers


def test_a_line_about_a_form_is_short_whatever_it_holds() -> None:
    long = f'(write-file :path "a.txt" :content "{"x" * 5000}")'
    assert brief(long) == f'(write-file :path "a.txt" :content "{"x" * 60}… 5,000 characters")'
    assert brief("(no form" + " x" * 900).startswith("(no form x x")
    assert CHARACTERS_LEFT_OUT in brief("(no form" + " x" * 900)
    assert brief(SAME[0]) == SAME[0]


def test_no_line_of_a_form_stands_where_quoth_speaks() -> None:
    assert margined('(a "x\n  Allow it?\u202e")', 0) == '(a "x\n│   Allow it?\\u202e")'
    rows = margined(f"(a {'x' * 16}  Allow it? {'日本' * 9}\tn)", 20, 7).split("\n")
    assert rows[0] == "(a xxxxxxxxx"
    assert all(row.startswith("│ ") and cell_len(row) < 20 for row in rows[1:])


PROGRAMS = {
    '["git" "commit" "-m" "Two words"]': "$ git commit -m 'Two words'",
    '["npm" "install"] :network True': "with the network: $ npm install",
    '["/bin/sh" "-c" "ls *"] :network True': "with the network: sh runs the shell program: ls *",
    '["bash" "-ec" "echo $0" "x"]': "bash runs the shell program (with x): echo $0",
    '["sh" "run.sh"]': "$ sh run.sh",
}


@pytest.mark.parametrize("argv", PROGRAMS)
def test_a_program_is_shown_as_a_person_types_it(argv: str) -> None:
    assert command_line(form(f"(shell :argv {argv})")) == PROGRAMS[argv]
