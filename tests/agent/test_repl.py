"""The REPL: lines piped into it, and a person at a real terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from words import CTRL_C, CTRL_D, Said, Terminal, files, lines, quoth, started, wait_until

from agent.stdin import StdinLines

SLOW = """
(require tools.macros [def-cognitive-tool])
(import asyncio pathlib [Path] time)
(def-cognitive-tool slow "Wait."
  :parameters [seconds {:type float}]
  :body (do (.touch (Path "started")) (await (asyncio.sleep seconds)) "finished"))
(def-cognitive-tool colours "Say something that steers a terminal."
  :body (+ "red " (chr 27) "[31m " (chr 7) "ring"))
"""
SAYS = """
(import asyncio pathlib [Path])
(setv forms {"write" "(write-file :path \\"a.txt\\" :content \\"x\\")"
             "lines" "(read-file :path \\"none\\")"
             "slow" "(slow :seconds 600.0)"})
(defn :async reply [messages]
  (setv last (get (get messages -1) "content")
        asked (lfor  m messages  :if (= (get m "role") "user")  (get m "content")))
  (when (= last "think")
    (.touch (Path "thinking"))
    (await (asyncio.sleep 600)))
  (if (in last forms)
      (get forms last)
      f"I heard {(len (lfor  a asked  :if (not-in "\\n" a)  a))}: {last}"))
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path, {"slow.hy": SLOW, "says.hy": SAYS, "notes.txt": "one\ntwo\n"})


def piped(here: Path, *typed: str, options: tuple[str, ...] = ()) -> Said:
    said = quoth("--model", "scripted:says.hy", "--tools", "slow.hy", *options, cwd=here, stdin=lines(typed))
    assert "Traceback" not in said.err
    return said


# Piped in


def test_lisp_text_and_commands_take_turns(here: Path) -> None:
    said = piped(here, "(+ 1 2)", "", "hello", '(read-file :path "notes.txt")', "again", ",new", "anew")
    assert (said.code, said.err) == (0, "")
    assert said.out == lines(
        ["3", "I heard 1: hello", "one", "two", "I heard 2: again"],
        ["A new conversation.", "I heard 1: anew"],
    )


def test_lisp_goes_on_over_lines_until_it_is_closed(here: Path) -> None:
    said = piped(here, "(lfor x [1 2 3]", "  ; a comment )", '  (* x (len "a', 'b")))', "(+ 1 1)")
    assert said == Said(0, "[3 6 9]\n2\n", "")


def test_a_broken_form_is_told_and_the_next_line_is_read(here: Path) -> None:
    said = piped(here, "(+ 1]", "(do-mac 1)", "(+ 1 2)", "(+ 1")
    assert (said.code, said.out) == (0, "3\n")
    assert said.err == lines(
        "invalid: line 1, column 5: this ] does not close the ( at line 1, column 1; write ) instead",
        "(+ 1]",
        "    ^",
        "invalid: line 1, column 2: do-mac cannot be used in a program; "
        "nothing runs while a program is compiled",
        "(do-mac 1)",
        " ^",
        "invalid: line 1, column 1: this ( is never closed; add ) at the end",
        "(+ 1",
        "^",
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (",hlp", "There is no command ,hlp; ,help lists them. Did you mean help?"),
        (",", "There is no command ,; ,help lists them."),
        (",tool", ",tool needs the name of a tool; ,tools lists them."),
        (",tool ecko", "There is no tool named ecko. Did you mean echo?"),
    ],
)
def test_an_unknown_command_is_told(here: Path, line: str, complaint: str) -> None:
    assert piped(here, line) == Said(0, "", complaint + "\n")


def test_commands_show_what_there_is(here: Path) -> None:
    said = piped(here, ",help", ",tools", ",tool echo", ",belt")
    assert said.err == ""
    for part in (
        ",quit",
        "(echo :text str)\n",
        "\nSource form\n(def-cognitive-tool echo",
        "AVAILABLE TOOLS:\n",
    ):
        assert part in said.out


@pytest.mark.parametrize("word", [",quit", ",q", ",exit", "  ,quit "])
def test_quit_leaves_at_once(here: Path, word: str) -> None:
    assert piped(here, "(+ 1 2)", word, "(+ 3 4)") == Said(0, "3\n", "")


def test_the_last_line_needs_no_end(here: Path) -> None:
    assert quoth(cwd=here, stdin="(+ 1 2)\n(+ 3 4)").out == "3\n7\n"


def test_windows_line_ends_and_bytes_that_are_no_text_do_not_hurt(here: Path) -> None:
    said = quoth(cwd=here, stdin='(+ 1 2)\r\n(echo :text "é\ufffd")\n')
    assert said.out == "3\né\ufffd\n"


def test_what_is_done_is_told_beside_the_reply(here: Path) -> None:
    said = piped(here, "lines")
    assert said.out.startswith("I heard ")
    assert said.err.startswith('→ (read-file :path "none")\n← error, ')


def test_a_write_is_pending_where_nobody_can_be_asked(here: Path) -> None:
    said = piped(here, '(write-file :path "a.txt" :content "x")', "write")
    assert said.err.count("write-file waits for a person's approval: it writes files.") >= 2
    assert not (here / "a.txt").exists()
    assert piped(here, "write", options=("--yes",)).code == 0
    assert (here / "a.txt").read_text() == "x"


def test_without_a_model_lisp_still_works(here: Path) -> None:
    said = quoth("--model", "nonsense", cwd=here, stdin="hello\n(+ 1 2)\n")
    assert (said.code, said.out) == (0, "3\n")
    assert said.err.startswith("There is no model nonsense.")


def test_in_json_every_entry_is_one_line(here: Path) -> None:
    said = piped(here, "(+ 1 2)", "hello", "(+ 1", ")", ",help", options=("--json",))
    first, second, third = [json.loads(line) for line in said.out.splitlines()]
    assert (first["status"], first["value"]) == ("ok", 3)
    assert (second["status"], second["reply"]) == ("done", "I heard 1: hello")
    assert (third["status"], third["value"]) == ("ok", 1)
    assert ",quit" in said.err


def test_ctrl_c_ends_an_evaluation_and_not_the_repl(here: Path) -> None:
    with started("--tools", "slow.hy", cwd=here) as repl:
        assert repl.process.stdin
        repl.process.stdin.write("(slow :seconds 600.0)\n")
        repl.process.stdin.flush()
        wait_until((here / "started").exists)
        repl.interrupt()
        repl.says("Interrupted.\n")
        repl.process.stdin.write("(+ 1 2)\n")
        repl.process.stdin.close()
        assert repl.ended() == Said(0, "3\n", "Interrupted.\n")


# At a terminal


@pytest.fixture
def terminal(here: Path) -> Iterator[Terminal]:
    with Terminal("--model", "scripted:says.hy", "--tools", "slow.hy", cwd=here) as terminal:
        terminal.prompted()
        yield terminal


def test_a_line_of_lisp_is_answered_and_ctrl_d_leaves_with_0(terminal: Terminal) -> None:
    terminal.enter("(+ 1 2)")
    terminal.see("\n3\n")
    terminal.prompted()
    terminal.type(CTRL_D)
    assert terminal.ended() == 0


def test_lisp_over_lines_has_a_prompt_of_its_own(terminal: Terminal) -> None:
    terminal.enter("(lfor x [1 2 3]")
    terminal.see("......")
    terminal.enter("(* x x))")
    terminal.see("[1 4 9]")
    terminal.prompted()


def test_ctrl_c_at_the_prompt_drops_what_was_typed(terminal: Terminal) -> None:
    terminal.enter("(lfor x [1 2 3]")
    terminal.see("......")
    terminal.type(CTRL_C)
    terminal.prompted()
    terminal.type("(never finished" + CTRL_C)
    terminal.prompted()
    terminal.enter("(+ 20 22)")
    terminal.see("\n42\n")


def test_help_and_a_command_there_is_not(terminal: Terminal) -> None:
    terminal.enter(",help")
    terminal.see(",quit          leave (Ctrl-D does too)")
    terminal.prompted()
    terminal.enter(",hlp")
    terminal.see("There is no command ,hlp; ,help lists them. Did you mean help?")
    terminal.prompted()


def test_a_conversation_goes_on_from_line_to_line(terminal: Terminal) -> None:
    for number, text in enumerate(["hello", "and again"], 1):
        terminal.enter(text)
        terminal.see(f"I heard {number}: {text}")
        terminal.prompted()


@pytest.mark.parametrize(
    ("answer", "told", "written"),
    [
        ("y", "← ok, ", True),
        ("yes", "← ok, ", True),
        ("n", "write-file was denied: the person said no.", False),
        ("", "write-file was denied: the person said no.", False),
        ("use b.txt instead", "write-file was denied: the person said: use b.txt instead.", False),
    ],
)
def test_a_write_is_asked_and_the_answer_is_obeyed(
    here: Path, terminal: Terminal, answer: str, told: str, written: bool
) -> None:
    terminal.enter("write")
    terminal.see('(write-file :path "a.txt" :content "x")')
    terminal.see("asked because it writes files")
    terminal.see("Allow it? [y/N, or why not] ")
    assert not (here / "a.txt").exists()
    terminal.type(answer + "\n")
    terminal.see(told)
    terminal.prompted()
    assert (here / "a.txt").exists() is written


def test_a_write_typed_as_lisp_is_asked_too(here: Path, terminal: Terminal) -> None:
    terminal.enter('(write-file :path "b.txt" :content "y")')
    terminal.see("Allow it? [y/N, or why not] ")
    terminal.type("y\n")
    terminal.see("Created b.txt")
    terminal.prompted()
    assert (here / "b.txt").read_text() == "y"


def test_end_of_input_is_no_yes(here: Path, terminal: Terminal) -> None:
    terminal.enter("write")
    terminal.see("Allow it? [y/N, or why not] ")
    terminal.type(CTRL_D)
    terminal.see("the person said no")
    terminal.prompted()
    assert not (here / "a.txt").exists()


def test_ctrl_c_takes_a_question_back_and_the_next_line_is_ours_again(here: Path, terminal: Terminal) -> None:
    terminal.enter("write")
    terminal.see("Allow it? [y/N, or why not] ")
    terminal.type(CTRL_C)
    terminal.see("interrupted: The run was interrupted.")
    terminal.prompted()
    terminal.enter("(+ 20 22)")
    terminal.see("\n42\n")
    assert not (here / "a.txt").exists()


def test_ctrl_c_stops_a_run_as_often_as_it_is_pressed_and_comes_back_to_the_prompt(
    here: Path, terminal: Terminal
) -> None:
    for _ in range(3):
        terminal.enter("think")
        wait_until((here / "thinking").exists)
        (here / "thinking").unlink()
        terminal.type(CTRL_C)
        terminal.see("interrupted: The run was interrupted.")
        terminal.prompted()
    terminal.enter("(+ 20 22)")
    terminal.see("\n42\n")


def test_ctrl_c_stops_an_evaluation_and_comes_back_to_the_prompt(here: Path, terminal: Terminal) -> None:
    terminal.enter("(slow :seconds 600.0)")
    wait_until((here / "started").exists)
    terminal.type(CTRL_C)
    terminal.see("Interrupted.")
    terminal.prompted()
    terminal.type(CTRL_D)
    assert terminal.ended() == 0


def test_a_tool_that_runs_on_is_stopped_by_the_second_ctrl_c(here: Path, terminal: Terminal) -> None:
    terminal.enter("slow")
    wait_until((here / "started").exists)
    terminal.type(CTRL_C)
    terminal.see("Waiting for the call in progress; Ctrl-C again stops it at once.")
    terminal.type(CTRL_C)
    terminal.see("Interrupted.")
    terminal.prompted()


def test_what_a_tool_says_does_not_steer_the_terminal(terminal: Terminal) -> None:
    terminal.enter("(colours)")
    terminal.see("red \ufffd[31m \ufffdring")


def test_a_command_asks_at_the_terminal_too(here: Path) -> None:
    with Terminal("call", '(write-file :path "a.txt" :content "x")', cwd=here) as terminal:
        terminal.see("Allow it? [y/N, or why not] ")
        terminal.type("y\n")
        terminal.see("Created a.txt")
        assert terminal.ended() == 0
    with Terminal("call", '(write-file :path "b.txt" :content "x")', cwd=here) as terminal:
        terminal.see("Allow it? [y/N, or why not] ")
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
    assert not (here / "b.txt").exists()
    with Terminal("call", '(write-file :path "b.txt" :content "x")', "--no-input", cwd=here) as terminal:
        assert terminal.ended() == 3


def test_what_is_typed_before_a_question_is_no_answer_to_it(here: Path) -> None:
    form = '(eval (do (slow :seconds 1.0) (write-file :path "a.txt" :content "x")))'
    with Terminal("call", form, "--tools", "slow.hy", cwd=here) as terminal:
        wait_until((here / "started").exists)
        terminal.type("y\n")
        terminal.see("Allow it? [y/N, or why not] ")
        assert not (here / "a.txt").exists()
        terminal.type("n\n")
        terminal.see("denied")
        assert terminal.ended() == 1
    assert not (here / "a.txt").exists()


def test_the_history_is_kept_for_the_next_day(here: Path, state: Path) -> None:
    for _ in range(2):
        with Terminal(cwd=here) as terminal:
            terminal.prompted()
            terminal.enter("(+ 40 2)")
            terminal.see("\n42\n")
            terminal.prompted()
            terminal.type(CTRL_D)
            assert terminal.ended() == 0
    assert "+(+ 40 2)\n" in (state / "history").read_text()


# Lines


async def test_lines_come_whole_from_a_pipe_however_they_are_cut() -> None:
    read, write = os.pipe()
    source = StdinLines(read)
    os.write(write, "one\ntwo é\nthr".encode())
    assert [await source.read(), await source.read()] == ["one", "two é"]
    os.write(write, b"ee\n\nlast")
    os.close(write)
    assert [await source.read(), await source.read(), await source.read()] == ["three", "", "last"]
    with pytest.raises(EOFError):
        await source.read()
    os.close(read)


async def test_lines_come_from_a_plain_file_too(tmp_path: Path) -> None:
    files(tmp_path, {"typed": "one\ntwo"})
    with (tmp_path / "typed").open() as file:
        source = StdinLines(file.fileno())
        assert [await source.read(), await source.read()] == ["one", "two"]
        with pytest.raises(EOFError):
            await source.read()
