"""Ten first inputs of someone who has just installed quoth, on a screen: what is there next helps them on."""

from __future__ import annotations

from pathlib import Path

import pytest
from screens import TAB, Act, Screen, keys
from words import CTRL_C, files

INPUTS: dict[str, tuple[Act, str]] = {
    "a bare word": (keys("hello\r"), "quoth> hello\n  Hello. I can read your files.\nquoth>"),
    "a question": (keys("What can you do?\r"), "What can you do?\n  Hello. I can read your files.\nquoth>"),
    "a misspelt form": (
        keys('(read-fil "notes.txt")\r'),
        "NameError: there is no name read-fil. Did you mean read-file?\nquoth>",
    ),
    "help": (
        keys("help\r"),
        ",quit           leave quoth; also: exit, Ctrl-D\n"
        "(form)          evaluate Lisp, all of Hy, on this machine; tools are functions\n"
        "any text        send it to the agent as the next message of the conversation\nquoth>",
    ),
    "Ctrl-C": (keys(CTRL_C), "quoth>\nTo leave: exit, or Ctrl-D.\nquoth>"),
    "Ctrl-C in a line": (keys("half a li", CTRL_C), "quoth> half a li\nquoth>"),
    "a paste": (
        lambda screen: (screen.paste("(setv a 1)\n(setv b 2)\n(+ a b)"), screen.type("\r")),
        "quoth> (setv a 1)\n...... (setv b 2)\n...... (+ a b)\n3\nquoth>",
    ),
    "a form of another Lisp": (
        keys("(let ((x 1)) (cond ((= x 2) 3) (t (car [4]))))\r"),
        "(t (car [4]))))\n4\nquoth>",
    ),
    "a program": (
        lambda screen: (
            screen.paste('(setv texts (pmap read-file ["notes.txt"]))\n(first texts)'),
            screen.type("\r"),
        ),
        '...... (first texts)\n"chair 120\n"\nquoth>',
    ),
    "Tab": (keys("(read-f", TAB), "quoth> (read-file"),
    "Unicode": (
        keys("Привет, 世界 🎉!\r"),
        "quoth> Привет, 世界 🎉!\n  Hello. I can read your files.\nquoth>",
    ),
    "curly quotes": (
        keys("(print “hi”)\r"),
        'NameError: there is no name “hi”; a text is in straight quotes: "…".\nquoth>',
    ),
    "nothing": (keys("\r"), "quoth>\nquoth>"),
}


@pytest.mark.parametrize("first", INPUTS)
def test_after_a_first_input_the_screen_says_what_is_next(tmp_path: Path, first: str) -> None:
    act, wanted = INPUTS[first]
    files(
        tmp_path,
        {"notes.txt": "chair 120\n", "says.hy": '(defn reply [messages] "Hello. I can read your files.")'},
    )
    env = {"HOME": str(tmp_path), "EDITOR": "", "VISUAL": ""}
    with Screen("--model", "scripted:says.hy", cwd=tmp_path, env=env) as screen:
        screen.shows("  try      What does notes.txt say?\nquoth>")
        act(screen)
        screen.shows(wanted)


@pytest.mark.parametrize("word", ["exit", "quit()", "/exit"])
def test_who_wants_to_leave_may_leave(tmp_path: Path, word: str) -> None:
    with Screen("--model", "scripted:/dev/null", cwd=tmp_path, env={"HOME": str(tmp_path)}) as screen:
        screen.shows("quoth>")
        screen.type(f"{word}\r")
        assert screen.ended() == 0
