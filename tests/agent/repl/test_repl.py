"""The REPL: lines piped into it, and a person at a real terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import SHOP
from sentences import (
    A_GRANT_LASTS_AT_MOST,
    A_PROGRAM_THAT_A_TOOL,
    ALLOW_THAT_IN_THIS_SESSION,
    AN_EDITED_CALL_KEEPS_ITS,
    DID_YOU_MEAN,
    DOES_NOT_CLOSE_THE,
    DOES_NOT_FIT_HERE,
    IS_NEVER_CLOSED,
    IT_ONLY_READS,
    IT_WRITES_FILES,
    NO_REQUESTS_ARE_WAITING,
    NOTHING_WAITS_IN_SESSION,
    QUOTH_PENDING_LISTS_WHAT_IS,
    THE_PERSON_SAID_NO,
    THERE_IS_NO_COMMAND,
    THERE_IS_NO_MODEL,
    THERE_IS_NO_REQUEST,
    THERE_IS_NO_TOOL_NAMED,
)
from words import CTRL_A, CTRL_C, CTRL_D, CTRL_K, Said, Terminal, files, lines, quoth, started, wait_until

from quoth.agent.repl.repl import _smallest_text
from quoth.agent.terminal.ask import HELP, seconds_of
from quoth.agent.terminal.input import StdinLines
from quoth.agent.terminal.question import CHANGED
from quoth.tools.consent.decisions import LONGEST_SECONDS
from quoth.tools.errors import UsageError

SLOW = """
(require quoth [def-cognitive-tool])
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
             "dawdle" "(slow :seconds 600.0)"})
(defn :async reply [messages]
  (setv last (get (get messages -1) "content")
        asked (lfor  m messages  :if (= (get m "role") "user")  (get m "content")))
  (when (= last "ponder")
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


# The banner


def test_the_smallest_text_of_the_folder_is_suggested_as_a_first_task(tmp_path: Path) -> None:
    assert _smallest_text(tmp_path) == ""
    files(
        tmp_path, {"empty.txt": "", "long.txt": "x" * 5000, "b.org": "12345", "c.txt": "1234", ".d.txt": "1"}
    )
    (tmp_path / "e\x1b[31m.txt").write_text("1")
    (tmp_path / "f.txt").symlink_to("/etc/hostname")
    assert _smallest_text(tmp_path) == "c.txt"


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
    said = piped(here, "(+ 1]", "(cond 1)", "(+ 1 2)", "(+ 1")
    assert (said.code, said.out) == (0, "3\n")
    assert said.err == lines(
        f"invalid: line 1, column 5: this ] {DOES_NOT_CLOSE_THE} ( at line 1, column 1; write ) instead",
        "(+ 1]",
        "    ^",
        f'invalid: line 1, column 1: cond {DOES_NOT_FIT_HERE}; write (cond (= x 1) "a"  True "b")',
        "(cond 1)",
        "^",
        f"invalid: line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end",
        "(+ 1",
        "^",
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (",hlp", f"{THERE_IS_NO_COMMAND} ,hlp. Did you mean help? To list commands: ,help"),
        (",", f"{THERE_IS_NO_COMMAND} ,. To list commands: ,help"),
        (",tool", ",tool needs the name of a tool. To list them: ,tools"),
        (",tool ecko", f"{THERE_IS_NO_TOOL_NAMED} ecko. Did you mean echo?"),
        (",approve", ",approve needs the ID of a request. To list them: ,pending"),
        (",deny", ",deny needs the ID of a request. To list them: ,pending"),
        (",deny abcde no", f"{THERE_IS_NO_REQUEST} abcde. {QUOTH_PENDING_LISTS_WHAT_IS}."),
        (",approve abcde for 30", "A time is written 30s, 10m, 2h or 1d, not 30."),
        (",approve abcde for", "A time is written 30s, 10m, 2h or 1d, not nothing."),
        (",approve abcde 30m", "Type ,approve ID, or ,approve ID for 30m; not 30m."),
        (",pending abcde", f"{THERE_IS_NO_REQUEST} abcde. {QUOTH_PENDING_LISTS_WHAT_IS}."),
        (",resume", f"{NOTHING_WAITS_IN_SESSION} s1."),
    ],
)
def test_an_unknown_command_is_told(here: Path, line: str, complaint: str) -> None:
    assert piped(here, line, options=("--session", "s1")) == Said(0, "", complaint + "\n")


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
    assert said.err.count(f"write-file waits for a person's approval: {IT_WRITES_FILES} (request ") >= 2
    assert not (here / "a.txt").exists()
    assert piped(here, "write", options=("--yes",)).code == 0
    assert (here / "a.txt").read_text() == "x"


WRITE = '(write-file :path "a.txt" :content "x")'
QUESTION = "Allow it? y, n (default), s, e, ? for help, or a reason to refuse:"


def waiting(here: Path) -> str:
    """The id of the one request that is open in the workspace."""
    (request,) = json.loads(quoth("pending", "--json", cwd=here).out)
    return str(request["id"])


def test_what_waits_is_listed_decided_and_carried_on(here: Path) -> None:
    again = ("--session", "s1", "--user", "ann")
    piped(here, WRITE, options=again)
    request = waiting(here)
    assert piped(here, ",pending", options=again).out.startswith(
        f"{request}  {WRITE}\n       new file a.txt, 1 line\n       {IT_WRITES_FILES};"
    )
    assert (
        "\nasked by     ann (repl), session s1, route repl\n"
        in piped(here, f",pending {request}", options=again).out
    )
    said = piped(here, f",approve {request}", ",pending", ",resume", ",resume", options=again)
    assert said.out == f"Approved once: {WRITE}\n{NO_REQUESTS_ARE_WAITING}.\nCreated a.txt, 1 byte.\n"
    assert said.err == "To continue: ,resume\nNothing waits in session s1.\n"
    assert (here / "a.txt").read_text() == "x"


def test_a_call_may_be_approved_for_a_while_and_a_denial_is_told(here: Path) -> None:
    again = ("--session", "s1")
    piped(here, WRITE, options=again)
    said = piped(here, f",approve {waiting(here)} for 10m", WRITE, WRITE, options=again)
    assert said.out == f"Approved for 10 minutes: {WRITE}\n" + lines(
        "Created a.txt, 1 byte.", "Replaced a.txt, 1 byte."
    )
    again = ("--session", "s2")
    piped(here, WRITE, options=again)
    said = piped(here, f",deny {waiting(here)} use b.txt instead", ",resume", options=again)
    assert said.out == f"Denied: {WRITE}\n"
    assert "write-file was denied: the person said: use b.txt instead." in said.err


def test_a_run_that_waited_goes_on_and_the_conversation_with_it(here: Path) -> None:
    with Terminal("--model", "scripted:says.hy", "--session", "s1", cwd=here) as terminal:
        terminal.prompted()
        terminal.enter("write")
        terminal.see(QUESTION)
        terminal.type(CTRL_C)
        terminal.see("interrupted: The run was interrupted.")
        terminal.prompted()
        terminal.enter(f",approve {waiting(here)}")
        terminal.see("Approved once: ")
        terminal.prompted()
        terminal.enter(",resume")
        terminal.see("← ok, ")
        terminal.see("I heard 1: write")
        terminal.prompted()
        assert (here / "a.txt").exists()
        terminal.enter("and now")
        terminal.see("I heard 2: and now")


def test_a_program_that_a_tool_runs_decides_nothing_in_the_repl(here: Path) -> None:
    piped(here, WRITE, options=("--session", "s1"))
    request = waiting(here)
    for line in (f",approve {request}", f",deny {request}", f",approve {request} for 1h"):
        said = quoth("--session", "s1", cwd=here, stdin=line + "\n", env={"QUOTH_INSIDE": "1"})
        assert said == Said(0, "", f"{A_PROGRAM_THAT_A_TOOL}.\n")
    assert waiting(here) == request


def test_without_a_model_lisp_still_works(here: Path) -> None:
    said = quoth("--model", "nonsense", cwd=here, stdin="hello\n(+ 1 2)\n")
    assert (said.code, said.out) == (0, "3\n")
    assert said.err.startswith(f"{THERE_IS_NO_MODEL} nonsense.")


def test_in_json_every_entry_is_one_line(here: Path) -> None:
    said = piped(here, "(+ 1 2)", "hello", "(+ 1", ")", ",help", options=("--json",))
    first, second, third = [json.loads(line) for line in said.out.splitlines()]
    assert (first["status"], first["value"]) == ("ok", 3)
    assert (second["status"], second["reply"]) == ("done", "I heard 1: hello")
    assert (third["status"], third["value"]) == ("ok", 1)
    assert ",quit" in said.err


def test_ctrl_c_ends_an_evaluation_and_not_the_repl(here: Path) -> None:
    with started("--tools", "slow.hy", cwd=here) as repl:
        repl.stdin.write("(slow :seconds 600.0)\n")
        repl.stdin.flush()
        wait_until((here / "started").exists)
        repl.interrupt()
        repl.says("Interrupted.\n")
        repl.stdin.write("(+ 1 2)\n")
        repl.stdin.close()
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
    for line in (
        ",approve ID     approve a request once",
        ",resume         resume",
        ",quit           leave quoth; also: exit",
    ):
        terminal.see(line)
    terminal.prompted()
    terminal.enter(",hlp")
    terminal.see(f"{THERE_IS_NO_COMMAND} ,hlp. Did you mean help? To list commands: ,help")
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
        ("n", f"write-file was denied: {THE_PERSON_SAID_NO}.", False),
        ("", f"write-file was denied: {THE_PERSON_SAID_NO}.", False),
        ("use b.txt instead", "write-file was denied: the person said: use b.txt instead.", False),
    ],
)
def test_a_write_is_asked_and_the_answer_is_obeyed(
    here: Path, terminal: Terminal, answer: str, told: str, written: bool
) -> None:
    terminal.enter("write")
    terminal.see('(write-file :path "a.txt" :content "x")')
    terminal.see(f"asked because {IT_WRITES_FILES}")
    terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
    assert not (here / "a.txt").exists()
    terminal.type(answer + "\n")
    terminal.see(told)
    terminal.prompted()
    assert (here / "a.txt").exists() is written


def test_a_write_typed_as_lisp_is_asked_too(here: Path, terminal: Terminal) -> None:
    terminal.enter('(write-file :path "b.txt" :content "y")')
    terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
    terminal.type("y\n")
    terminal.see("Created b.txt")
    terminal.prompted()
    assert (here / "b.txt").read_text() == "y"


def test_help_stands_beside_the_question_and_decides_nothing(here: Path, terminal: Terminal) -> None:
    terminal.enter("write")
    terminal.see(QUESTION)
    terminal.type("?\n")
    for line in HELP.splitlines():
        terminal.see(line)
    terminal.see(QUESTION)
    terminal.type("v\n")
    terminal.see(WRITE)
    terminal.see(QUESTION)
    terminal.type("n too soon\n")
    terminal.see("write-file was denied: the person said: too soon.")


def test_a_call_allowed_for_a_while_is_asked_no_more(here: Path, terminal: Terminal) -> None:
    terminal.enter(WRITE)
    terminal.see(QUESTION)
    terminal.type("y 10m\n")
    terminal.see("Created a.txt")
    for _ in range(2):
        terminal.prompted()
        terminal.enter(WRITE)
        assert "Allow it?" not in terminal.see("Replaced a.txt, 1 byte.")
    terminal.prompted()
    terminal.enter('(write-file :path "b.txt" :content "x")')
    terminal.see(QUESTION)


def test_a_kind_of_calls_may_be_allowed_by_a_rule_that_is_shown_first(here: Path, terminal: Terminal) -> None:
    terminal.enter('(write-file :path "src/a.txt" :content "x")')
    terminal.see(QUESTION)
    for answer in ("n", "no", ""):  # back to the question, as often as one likes
        terminal.type("s\n")
        terminal.see('(allow (write-file :content _ :path (under "src") :only))')
        terminal.see("It leaves :content open.")
        terminal.see(f"{ALLOW_THAT_IN_THIS_SESSION} 8 hours? [y/N, or another rule]")
        terminal.type(answer + "\n")
        terminal.see(QUESTION)
    assert not (here / "src").exists()
    terminal.type("s\n")
    terminal.see("another rule]")
    terminal.type('(write-file :path (under "doc"))\n')
    terminal.see('(allow (write-file :path (under "doc"))) does not cover this call.')
    terminal.see(QUESTION)
    terminal.type('s (write-file :path (under "."))\n')
    terminal.see('(allow (write-file :path (under ".")))')
    terminal.see("another rule]")
    terminal.type("y\n")
    terminal.see("Created src/a.txt")
    terminal.prompted()
    terminal.enter(WRITE)
    assert "Allow it?" not in terminal.see("Created a.txt")


def test_another_call_may_be_made_in_its_place(here: Path, terminal: Terminal) -> None:
    terminal.enter(WRITE)
    terminal.see(QUESTION)
    for typed, sentence in (
        ('(write-file :path "b.txt"', f"this ( {IS_NEVER_CLOSED}; add ) at the end"),
        ('(read-file :path "b.txt")', f"{AN_EDITED_CALL_KEEPS_ITS}, write-file."),
        ('(write-file :pat "b.txt" :content "y")', f":pat is unknown ({DID_YOU_MEAN} :path?)"),
    ):
        terminal.type("e\n")
        terminal.see("The call to run instead:")
        terminal.type(CTRL_A + CTRL_K + typed + "\n")  # over what stands there
        terminal.see(sentence)
        terminal.see(QUESTION)
    terminal.type("e\n")
    terminal.see("The call to run instead:")
    terminal.type("\n")  # nothing: back to the question
    terminal.see(QUESTION)
    terminal.type('e (write-file :path "b.txt" :content "y")\n')
    terminal.see("Created b.txt")
    assert not (here / "a.txt").exists()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("yes please", "A time is written 30s, 10m, 2h or 1d, not please."),
        ("y 0m", "A time is written 30s, 10m, 2h or 1d, not 0m."),
        ("y 31d", f"{A_GRANT_LASTS_AT_MOST} 30 days, not 31d."),
        ("yy", "yy is not an answer. Please answer y (allow), n (refuse) or ? (help)."),
        ("ok", "ok is not an answer. Please answer y (allow), n (refuse) or ? (help)."),
    ],
)
def test_what_is_neither_yes_nor_a_reason_is_asked_again(
    here: Path, terminal: Terminal, answer: str, sentence: str
) -> None:
    terminal.enter(WRITE)
    terminal.see(QUESTION)
    terminal.type(answer + "\n")
    terminal.see(sentence)
    terminal.see(QUESTION)
    assert not (here / "a.txt").exists()


def test_no_yes_is_taken_to_what_was_not_shown(here: Path) -> None:
    content = "".join(f"{number:06}" for number in range(3000))
    with Terminal("call", f'(write-file :path "a.txt" :content "{content}")', cwd=here) as terminal:
        brief = terminal.see(f"asked because {IT_WRITES_FILES}")
        assert '(write-file :path "a.txt" :content …)' in brief
        assert "  new file a.txt, 1 line\n│ + 000000000001" in brief
        assert "more lines; v shows all …]" in brief
        assert content[-6:] not in brief
        for answer in ("y", "yes", "y 10m", "s", 's (write-file :path "a.txt")', "Y"):
            terminal.see("Allow it? v to view all, then y or s; n (default), e, ?, or a reason:")
            terminal.type(answer + "\n")
            terminal.see("You have seen only a part of it. Type v to view all of it.")
        terminal.see("Allow it? v to view all, then y or s; n (default), e, ?, or a reason:")
        terminal.type("v\n")
        assert content in terminal.see(QUESTION).replace("\n│ ", "")
        assert not (here / "a.txt").exists()
        terminal.type("y\n")
        terminal.see("Created a.txt")
        assert terminal.ended() == 0
    assert (here / "a.txt").read_text() == content


def test_what_was_not_shown_can_be_refused(here: Path) -> None:
    with Terminal("call", f'(write-file :path "a.txt" :content "{"x" * 20000}")', cwd=here) as terminal:
        terminal.see("or a reason:")
        terminal.type("far too long\n")
        terminal.see("write-file was denied: the person said: far too long.")
        assert terminal.ended() == 1


def test_a_form_of_several_lines_cannot_pass_for_the_question(here: Path) -> None:
    files(here, {"asks.hy": "(ask (eval))"})
    form = f'(do "x\n  asked because {IT_ONLY_READS}\n  Allow it?")\n'
    with Terminal("eval", form, "--policy", "asks.hy", cwd=here) as terminal:
        shown = terminal.see(QUESTION)
        asked = [line for line in shown.splitlines() if line.startswith("  ")]
        assert len([line for line in asked if line.startswith("  asked because")]) == 1
        assert f"│   asked because {IT_ONLY_READS}" in shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("10m", 600), ("2h", 7200), ("1d", 86400), (" 1.5 h ", 5400), ("30d", LONGEST_SECONDS)],
)
def test_times_are_written_with_their_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "m", "10", "-1m", "10 minutes", "1w", "1e3s", "0s", "31d", "٣m", "inf", "10m10s"]
)
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(
        UsageError, match=rf"A time is written 30s, 10m, 2h or 1d, not|{A_GRANT_LASTS_AT_MOST} 30 days"
    ):
        seconds_of(text)


def test_end_of_input_is_no_yes(here: Path, terminal: Terminal) -> None:
    terminal.enter("write")
    terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
    terminal.type(CTRL_D)
    terminal.see(THE_PERSON_SAID_NO)
    terminal.prompted()
    assert not (here / "a.txt").exists()


def test_ctrl_c_takes_a_question_back_and_the_next_line_is_ours_again(here: Path, terminal: Terminal) -> None:
    terminal.enter("write")
    terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
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
        terminal.enter("ponder")
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


def test_ctrl_c_stops_a_tool_that_takes_long_and_comes_back_to_the_prompt(
    here: Path, terminal: Terminal
) -> None:
    terminal.enter("dawdle")
    wait_until((here / "started").exists)
    terminal.type(CTRL_C)
    terminal.see("slow was cancelled.")
    terminal.see("interrupted: The run was interrupted.")
    terminal.prompted()


def test_what_a_tool_says_does_not_steer_the_terminal(terminal: Terminal) -> None:
    terminal.enter("(colours)")
    terminal.see('"red \\x1b[31m \\x07ring"')
    terminal.enter("(print (colours))")
    terminal.see("red  \ufffdring")
    assert b"red \x1b[31m \xef\xbf\xbdring\x1b[0m" in terminal.raw  # a colour ends with its text
    terminal.enter('(print "\\x1b[8mno\\rquoth> ")')
    terminal.see("no\ufffdquoth> \n")


def test_a_command_asks_at_the_terminal_too(here: Path) -> None:
    with Terminal("call", '(write-file :path "a.txt" :content "x")', cwd=here) as terminal:
        terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
        terminal.type("y\n")
        terminal.see("Created a.txt")
        assert terminal.ended() == 0
    with Terminal("call", '(write-file :path "b.txt" :content "x")', cwd=here) as terminal:
        terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
        terminal.type(CTRL_C)
        terminal.see(f"write-file waits for a person's approval: {IT_WRITES_FILES} (request ")
        terminal.see("To decide: quoth approve ")
        assert terminal.ended() == 130
    assert not (here / "b.txt").exists()
    with Terminal("call", '(write-file :path "b.txt" :content "x")', "--no-input", cwd=here) as terminal:
        assert terminal.ended() == 3


def test_what_is_typed_before_a_question_is_no_answer_to_it(here: Path) -> None:
    form = '(eval (do (slow :seconds 1.0) (write-file :path "a.txt" :content "x")))'
    with Terminal("call", form, "--tools", "slow.hy", cwd=here) as terminal:
        wait_until((here / "started").exists)
        terminal.type("y\n")
        terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
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


def test_a_change_that_was_not_shown_is_shown_before_it_is_approved(here: Path) -> None:
    marks = ("--session", "s")
    assert quoth("call", '(write-file :path "a.txt" :content "new\\n")', *marks, cwd=here).code == 3
    (request,) = json.loads(quoth("pending", "--json", *marks, cwd=here).out)
    (here / "a.txt").write_text("mine\n")
    approve = f",approve {request['id']}\n"
    said = quoth(*marks, cwd=here, stdin=approve + approve)
    assert said.err.startswith(f"{CHANGED} nothing was decided.\n")
    assert "- mine\n" in said.out
    assert "Approved once: " in said.out


def test_a_program_of_the_shop_can_be_pasted_at_the_prompt(tmp_path: Path) -> None:
    files(tmp_path, {"monday.txt": "apples 12\npears 30\n", "tuesday.txt": "apples 3\nplums 9\n"})
    said = quoth(
        "--yes", "--model", "scripted:/dev/null", cwd=tmp_path, stdin=(SHOP / "total.hy").read_text()
    )
    assert (tmp_path / "total.txt").read_text() == "54", said
