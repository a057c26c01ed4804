"""The command: what each subcommand prints, where, with which exit code; one sentence for every mistake."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import fields
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from loopback import QuietServer
from sentences import (
    A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT,
    CANNOT_BE_OPENED,
    CANNOT_BE_REACHED,
    CANNOT_BE_READ,
    CANNOT_BE_USED_IN_A,
    CANNOT_BE_WRITTEN,
    DID_YOU_MEAN,
    DOES_NOT_CLOSE_THE,
    EXPECTED_ONE_FORM_FOUND_A,
    IS_NEVER_CLOSED,
    IS_NOT_A_FOLDER,
    IS_NOT_UTF_8_TEXT,
    IS_ONE_TOO_MANY,
    IS_OUTSIDE_THE_WORKSPACE,
    IT_IS_CALLED_AS,
    IT_WRITES_FILES,
    ITS_NAME_MUST_END,
    NESTED_DEEPER_THAN,
    NOTHING_RUNS_WHILE_A_PROGRAM,
    REFUSED_THE_KEY,
    THE_RUN_WAS_STOPPED,
    THE_TASK_IS_EMPTY,
    THEN_CONTINUE_WITH,
    THERE_IS_NO_COMMAND,
    THERE_IS_NO_FILE,
    THERE_IS_NO_MODEL_FILE,
    THERE_IS_NO_SCRIPT_FILE,
    THERE_IS_NO_TOOL_NAMED,
    TO_CONTINUE,
)
from words import Said, command, files, quoth, started, wait_until

from quoth.agent.cli.main import COMMANDS
from quoth.agent.run.limits import RunLimits
from quoth.agent.settings import CommandSettings
from quoth.tools.history.audit import StoreAudit
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

GREET = """
(require quoth [def-cognitive-tool])
(defmacro def-greeting [name word]
  `(def-cognitive-tool ~name ~(+ "Say " word " to somebody.")
     :parameters [who {:type str}]
     :body (+ ~word ", " who "!")))
(def-greeting hello "Hello")
(def-greeting farewell "Goodbye")
"""
SLOW = """
(require quoth [def-cognitive-tool])
(import asyncio pathlib [Path])
(def-cognitive-tool slow "Wait."
  :parameters [seconds {:type float}]
  :body (do (.touch (Path "started")) (await (asyncio.sleep seconds)) "finished"))
"""
THINKS = """
(import asyncio pathlib [Path])
(defn :async reply [messages]
  (.touch (Path "started"))
  (await (asyncio.sleep 600)))
"""
HOLDS = """
(import asyncio pathlib [Path])
(defn :async reply [messages]
  (.touch (Path "started"))
  (try
    (await (asyncio.sleep 600))
    (except [asyncio.CancelledError]
      (await (asyncio.sleep 600)))))
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A workspace with a few files, and tools and scripts beside them."""
    return files(
        tmp_path,
        {
            "notes.txt": "one\ntwo\nthree\n",
            "replies.txt": '(echo :text "hi")\n---\nIt said hi.\n',
            "greet.hy": GREET,
            "slow.hy": SLOW,
            "thinks.hy": THINKS,
            "holds.hy": HOLDS,
        },
    )


def sentence(said: Said) -> str:
    """The one line of complaint of a command that printed nothing else."""
    assert said.out == ""
    assert said.err.startswith("quoth: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    return said.err.removeprefix("quoth: ").rstrip("\n")


# Each command, well used


def test_call_prints_the_value_alone(here: Path) -> None:
    assert quoth("call", '(echo :text "hi")', cwd=here) == Said(0, "hi\n", "")


def test_call_prints_data_as_lisp(here: Path) -> None:
    assert quoth("call", '(grep-search :pattern "tw" :path "notes.txt")', cwd=here).out == (
        '[{"path" "notes.txt"  "line" 2  "text" "two"}]\n'
    )


def test_call_reads_a_plist_and_stdin(here: Path) -> None:
    plist = '(:target :tool :action :call :tool "echo" :args (:text "hi"))\n'
    assert quoth("call", "-", cwd=here, stdin=plist) == Said(0, "hi\n", "")


def test_a_result_in_json_has_the_promised_keys(here: Path) -> None:
    said = quoth("call", '(echo :text "é")', "--json", cwd=here)
    assert '"é"' in said.out
    result = json.loads(said.out)
    assert list(result) == ["id", "tool", "status", "value", "message", "side_effects", "audit"]
    assert (result["tool"], result["status"], result["value"]) == ("echo", "ok", "é")


def test_eval_prints_the_last_value(here: Path) -> None:
    assert quoth("eval", "(setv x 6) (* x 7)", cwd=here) == Said(0, "42\n", "")
    assert quoth("eval", "-", cwd=here, stdin="(* 6\n   7)\n") == Said(0, "42\n", "")
    (here / "six.hy").write_text("(* 6 7)")
    said = "quoth: six.hy is a file. To run it: quoth eval - < six.hy\n"
    assert quoth("eval", "six.hy", cwd=here) == Said(2, "", said)


def test_eval_composes_tools(here: Path) -> None:
    program = '(lfor h (grep-search :pattern "e" :path "notes.txt") (get h "line"))'
    assert quoth("eval", program, cwd=here).out == "[1 3]\n"


def test_run_prints_the_reply_alone_on_stdout_and_what_happened_on_stderr(here: Path) -> None:
    said = quoth("run", "Say hi.", "--model", "scripted:replies.txt", cwd=here)
    assert (said.code, said.out) == (0, "It said hi.\n")
    first, second = said.err.splitlines()
    assert first == '→ (echo :text "hi")'
    assert second.startswith("← ok, ")
    assert second.endswith(" ms: hi")


def test_run_takes_its_task_from_words_or_stdin(here: Path) -> None:
    files(here, {"says.hy": '(defn reply [messages] (get (get messages -1) "content"))'})
    assert quoth("run", "--model", "scripted:says.hy", "two", "words", cwd=here).out == "two words\n"
    assert (
        quoth("run", "--model", "scripted:says.hy", "-", cwd=here, stdin="from stdin").out == "from stdin\n"
    )


def test_a_run_in_json_is_one_object_with_the_promised_keys(here: Path) -> None:
    said = quoth("run", "Say hi.", "--model", "scripted:replies.txt", "--json", "--session", "s7", cwd=here)
    run = json.loads(said.out)
    assert list(run) == ["session", "status", "reason", "reply", "calls", "usage"]
    assert (run["session"], run["status"], run["reply"]) == ("s7", "done", "It said hi.")
    (call,) = run["calls"]
    assert (call["form"], call["status"], call["value"]) == ('(echo :text "hi")', "ok", "hi")


def test_read_shows_the_calls_of_a_reply(here: Path) -> None:
    said = quoth("read", cwd=here, stdin='I look.\n- (echo :text "a")\n```lisp\n(:tool "echo")\n```\n')
    assert said == Said(0, '(echo :text "a")\n(echo)\n', "")
    files(here, {"reply.txt": 'Look:\n  (echo :text "a")'})
    forms = json.loads(quoth("read", "reply.txt", "--json", cwd=here).out)
    assert forms == {
        "forms": [
            {"tool": "echo", "args": {"text": "a"}, "form": '(echo :text "a")', "line": 2, "column": 3}
        ],
        "text": "Look:",
        "errors": [],
    }


def test_read_tells_what_it_cannot_read_and_shows_the_rest(here: Path) -> None:
    said = quoth("read", cwd=here, stdin='(echo :text "a"\n(echo :text "b")')
    assert (said.code, said.out) == (2, '(echo :text "b")\n')
    assert said.err == (
        'quoth: line 1, column 1: this ( is never closed; add ) before the next form, (echo :text "b")\n'
        '(echo :text "a"\n^\n'
    )
    assert quoth("read", cwd=here, stdin="Nothing.") == Said(0, "", "quoth: This text contains no call.\n")


def test_tools_lists_every_tool_with_its_signature(here: Path) -> None:
    said = quoth("tools", cwd=here)
    for name in ("echo", "edit-file", "eval", "grep-search", "list-files", "read-file", "write-file"):
        assert f"({name} " in said.out
    listed = json.loads(quoth("tools", "--json", cwd=here).out)
    assert [tool["name"] for tool in listed] == sorted(tool["name"] for tool in listed)


def test_a_tool_is_shown_with_schema_source_form_and_expansion(here: Path) -> None:
    page = quoth("tools", "eval", cwd=here).out
    for part in (
        "(eval :form form)",
        "\nSchema\n",
        "\nSource form\n(def-cognitive-tool eval",
        "\nExpansion\n",
    ):
        assert part in page
    assert "hy.I.tools/define.define-tool" in page or "define-tool" in page
    shown = json.loads(quoth("tools", "EVAL", "--json", cwd=here).out)
    assert shown["source"].startswith("(def-cognitive-tool eval")
    assert shown["expansion"]
    assert len(shown["version"]) == 64


@pytest.mark.parametrize("view", ["lisp", "plist"])
def test_the_belt_is_what_a_model_is_told(here: Path, view: str) -> None:
    text = quoth("belt", "--view", view, cwd=here).out
    assert text.startswith("AVAILABLE TOOLS:\n")
    assert (
        json.loads(quoth("belt", "--view", view, "--json", cwd=here).out)["belt"].rstrip("\n") + "\n" == text
    )


def test_the_page_of_a_tool_shows_its_tag(here: Path) -> None:
    files(
        here,
        {
            "rate.hy": """(require quoth [def-cognitive-tool])
(def-cognitive-tool rate "Rate a film." :parameters [stars {:type int}]
  :tag {:prefix "RATE" :pattern "([1-5]) stars" :example "RATE: [1-5] stars"} :body stars)"""
        },
    )
    page = quoth("tools", "rate", "--tools", "rate.hy", cwd=here).out
    assert "\ntag          RATE: [1-5] stars\npattern      ([1-5]) stars for stars\n" in page
    assert "\ntag " not in quoth("tools", "list-files", cwd=here).out.partition("Schema")[0]


def test_tools_made_by_a_users_own_macro_are_in_the_belt_and_can_be_called(here: Path) -> None:
    assert "- farewell: Say Goodbye to somebody.\n" in quoth("belt", "--tools", "greet.hy", cwd=here).out
    said = quoth("call", '(hello :who "Ann")', "--tools", "greet.hy", cwd=here)
    assert said == Said(0, "Hello, Ann!\n", "")
    page = quoth("tools", "hello", "--tools", "greet.hy", cwd=here).out
    assert '(def-greeting hello "Hello")' in page
    assert "(def-cognitive-tool hello" in page


def test_common_options_may_stand_before_and_after_the_command(here: Path) -> None:
    said = quoth("--tools", "greet.hy", "tools", "--tools", "slow.hy", "--json", cwd=here)
    names = [tool["name"] for tool in json.loads(said.out)]
    assert {"hello", "slow", "echo"} <= set(names)
    assert json.loads(quoth("--json", "call", "(echo 1)", cwd=here).out)["status"] == "invalid"


def test_another_workspace_may_be_named(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    said = quoth("call", '(read-file :path "notes.txt")', "--workspace", str(here), cwd=elsewhere)
    assert said == Said(0, "one\ntwo\nthree\n", "")


def test_version_and_help(here: Path) -> None:
    assert quoth("--version", cwd=here).out.startswith("quoth ")
    page = quoth("--help", cwd=here)
    assert page.code == 0
    shown = page.out.splitlines()
    assert len(shown) <= 24
    assert {name for names in COMMANDS.values() for name in names} <= set(page.out.split())
    assert "--redis-ca" not in page.out + quoth("log", "--help", cwd=here).out


def test_calls_leave_their_rows_in_the_store_of_the_workspace(here: Path) -> None:
    quoth("call", '(echo :text "ghp_0123456789abcdef")', "--user", "ann", "--session", "s1", cwd=here)
    quoth("call", '(read-file :path "../x")', "--user", "ann", "--session", "s1", cwd=here)
    quoth("eval", "(echo :text (str (+ 1 2)))", cwd=here)
    quoth("run", "Say hi.", "--model", "scripted:replies.txt", cwd=here)
    store = Store(store_path(here))
    rows = StoreAudit(lambda: store).rows()
    store.close()
    assert [(row["tool"], row["route"], row["status"]) for row in rows] == [
        ("echo", "call", "ok"),
        ("read-file", "call", "denied"),
        ("echo", "program", "ok"),
        ("eval", "eval", "ok"),
        ("echo", "reply", "ok"),
    ]
    assert [(row["user"], row["session"]) for row in rows[:2]] == [("ann", "s1")] * 2
    assert rows[0]["form"] == '(echo :text "[secret]")'
    assert "ghp_" not in str(rows)


# Mistakes: one sentence and exit code 2, nothing on stdout

MISTAKES: list[tuple[list[str], str]] = [
    (["runn"], f"{THERE_IS_NO_COMMAND} runn. Did you mean run?"),
    (
        ["xyz"],
        "There is no command xyz. The commands are run, chat, fly, acp, resume, worktrees, models, test, "
        "call, eval, read, tools, belt, mcp, policy, trust, guard, audit, pending, approve, deny, answer, "
        "sessions, log, diff, undo, stats, gc, rm, replay, lift, fork, export, import, memory, knowledge, "
        "remind, worker, catalog, serve, view, help, doctor, new, completion.",
    ),
    (["ls"], f"{THERE_IS_NO_COMMAND} ls. Did you mean sessions?"),
    (["ask", "What is this?"], f"{THERE_IS_NO_COMMAND} ask. Did you mean run?"),
    (["repl"], f"{THERE_IS_NO_COMMAND} repl. Did you mean quoth, without a command?"),
    (["test", "t.hy"], "There is no action t.hy of quoth test. The actions of quoth test are add, run."),
    (["--modl", "x", "run"], "quoth has no option --modl. Did you mean --model?"),
    (["tools", "test"], "Give the file whose examples to run: quoth tools test FILE"),
    (["tools", "tst", "t.hy"], "quoth tools shows one tool. To test a file: quoth tools test t.hy"),
    (["completion", "bsh"], "There is no completion for bsh. Did you mean bash?"),
    (["new", "tol", "a"], "There is no template tol. Did you mean tool?"),
    (
        ["new", "tool", "../a"],
        "../a is not a name: a name has letters a to z, digits and -. Example: word-count.",
    ),
    (["--max-cost", "1", "run"], "quoth has no option --max-cost; the options of a command go after it."),
    (["tools", "--jsn"], "quoth tools has no option --jsn. Did you mean --json?"),
    (["--workspce=x", "tools"], "quoth tools has no option --workspce. Did you mean --workspace?"),
    (["tools", "--zzz"], "quoth tools has no option --zzz. See: quoth tools --help"),
    (["memory", "edit", "a", "--unshare=x"], "quoth memory has no option --unshare. Did you mean --share?"),
    (["memory", "export", "--out", "x"], "quoth memory has no option --out. See: quoth memory --help"),
    (["tools", "--js"], "quoth tools has no option --js. Did you mean --json?"),
    (["call"], "The following arguments are required: FORM. See: quoth call --help"),
    (["run"], "The following arguments are required: TASK. See: quoth run --help"),
    (["tools", "--model"], "Argument --model: expected one argument. See: quoth tools --help"),
    (
        ["call", "(echo", ":text", "hi)"],
        "quoth call: unexpected argument :text. If it is part of a text or form, put the whole in quotes.",
    ),
    (
        ["run", "x", "--max-steps", "0"],
        f"Argument --max-steps: {A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT} 0. See: quoth run --help",
    ),
    (
        ["run", "x", "--max-steps", "many"],
        f"Argument --max-steps: {A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT} many. See: quoth run --help",
    ),
    (["tools", "ecko"], f"{THERE_IS_NO_TOOL_NAMED} ecko. Did you mean echo?"),
    (
        ["belt", "--view", "lips"],
        "There is no view lips; the views are lisp, plist, json, tags, run, bare, openai, responses, "
        "anthropic, mcp. Did you mean lisp?",
    ),
    (["call", "(ecko)"], f"unknown: {THERE_IS_NO_TOOL_NAMED} ecko. Did you mean echo?"),
    (["call", "(echo)"], f"invalid: echo: :text is missing. {IT_IS_CALLED_AS} (echo :text str)."),
    (
        ["call", "(echo :text 5)"],
        f"invalid: echo: :text should be str, not 5. {IT_IS_CALLED_AS} (echo :text str).",
    ),
    (
        ["call", '(echo :txt "a")'],
        f"invalid: echo: :text is missing; :txt is unknown ({DID_YOU_MEAN} :text?). "
        f"{IT_IS_CALLED_AS} (echo :text str).",
    ),
    (
        ["call", '(echo "a" "b")'],
        f'invalid: echo takes 1 argument; "b" {IS_ONE_TOO_MANY}. {IT_IS_CALLED_AS} (echo :text str).',
    ),
    (
        ["call", '(echo :text "a" :approved t)'],
        f"invalid: echo: :approved is unknown (it takes :text). {IT_IS_CALLED_AS} (echo :text str).",
    ),
    (["call", "hello"], 'invalid: A call is a form such as (echo :text "hi"); this is hello.'),
    (["eval", ""], "invalid: The program is empty."),
    (["call", "(echo 1)", "--workspace", "none"], f"The workspace none {IS_NOT_A_FOLDER}."),
    (["read", "none.txt"], f"{THERE_IS_NO_FILE} none.txt."),
    (["read", "."], f". {CANNOT_BE_READ}: Is a directory."),
    (["tools", "--tools", "none.hy"], f"{THERE_IS_NO_FILE} none.hy."),
    (
        ["tools", "--tools", "notes.txt"],
        f"notes.txt is not a tool file: {ITS_NAME_MUST_END} or .py.",
    ),
    (["run", " ", "--model", "scripted:replies.txt"], f"{THE_TASK_IS_EMPTY}."),
    (["run", "x", "--model", "scripted:none.txt"], f"{THERE_IS_NO_SCRIPT_FILE} none.txt."),
    (
        ["run", "x", "--max-calls", "0"],
        f"Argument --max-calls: {A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT} 0. See: quoth run --help",
    ),
    (
        ["run", "x", "--max-repeats", "few"],
        f"Argument --max-repeats: {A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT} few. See: quoth run --help",
    ),
    (
        ["run", "x", "--repeat-window", "5m"],
        "Argument --repeat-window: expected a whole number of seconds, not 5m. See: quoth run --help",
    ),
    (["run", "x", "--model", "openai:gpt"], None),  # type: ignore[list-item]
    (["run", "x", "--model", "opnai:gpt"], None),  # type: ignore[list-item]
    (["run", "x", "--model", "local:/none.gguf"], f"{THERE_IS_NO_MODEL_FILE} /none.gguf."),
]


@pytest.mark.parametrize(
    ("words", "complaint"), MISTAKES, ids=[" ".join(words) or "''" for words, _ in MISTAKES]
)
def test_a_mistake_is_told_in_one_sentence(here: Path, words: list[str], complaint: str | None) -> None:
    said = quoth(*words, cwd=here)
    assert said.code == 2
    assert complaint is None or sentence(said) == complaint
    sentence(said)


NO_DO_MAC = f"do-mac {CANNOT_BE_USED_IN_A}; {NOTHING_RUNS_WHILE_A_PROGRAM}"
POINTED: list[tuple[list[str], str, str]] = [
    (
        ["call", '(echo :text "a") (echo :text "b")'],
        f"invalid: line 1, column 18: {EXPECTED_ONE_FORM_FOUND_A}; give one at a time",
        '(echo :text "a") (echo :text "b")',
    ),
    (
        ["call", '(echo :text "a"'],
        f"invalid: line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end",
        '(echo :text "a"',
    ),
    (
        ["call", "(echo]"],
        f"invalid: line 1, column 6: this ] {DOES_NOT_CLOSE_THE} ( at line 1, column 1; write ) instead",
        "(echo]",
    ),
    (
        ["call", "(echo :text #.(os.getcwd))"],
        "invalid: line 1, column 13: reader macros are not read here: #.; nothing is evaluated while reading",
        "(echo :text #.(os.getcwd))",
    ),
    (
        ["eval", "(+ 1\n  (do-mac 2))"],
        f"invalid: line 2, column 4: {NO_DO_MAC}",
        "  (do-mac 2))",
    ),
    (
        ["eval", "(hy.R.os.getcwd)"],
        f"invalid: line 1, column 2: the module hy {CANNOT_BE_REACHED} from a program",
        "(hy.R.os.getcwd)",
    ),
    (
        ["eval", 'f"{(do-mac 1)}"'],
        f"invalid: line 1, column 5: {NO_DO_MAC}",
        'f"{(do-mac 1)}"',
    ),
    (
        ["eval", "(+ 1"],
        f"invalid: line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end; write (+ 1)",
        "(+ 1",
    ),
    (
        ["eval", "#.(print 1)"],
        "invalid: line 1, column 1: reader macros are not read here: #.; nothing is evaluated while reading",
        "#.(print 1)",
    ),
]


@pytest.mark.parametrize(("words", "complaint", "line"), POINTED, ids=[words[1] for words, _, _ in POINTED])
def test_an_unreadable_form_is_told_with_a_caret_under_the_fault(
    here: Path, words: list[str], complaint: str, line: str
) -> None:
    said = quoth(*words, cwd=here)
    assert (said.code, said.out) == (2, "")
    told, shown, caret = said.err.rstrip("\n").split("\n")
    assert told == f"quoth: {complaint}"
    assert shown == line
    column = int(complaint.split("column ")[1].split(":")[0])
    assert caret == " " * (column - 1) + "^"


@pytest.mark.parametrize("name", ["call", "eval"])
def test_a_form_300_deep_is_refused(here: Path, name: str) -> None:
    said = quoth(name, "-", cwd=here, stdin="(echo " + "(" * 300 + ")" * 301)
    assert (said.code, said.out) == (2, "")
    assert NESTED_DEEPER_THAN in said.err
    assert "Traceback" not in said.err


def test_five_megabytes_of_parentheses_are_refused_with_a_short_sentence(here: Path) -> None:
    for name in ("call", "eval", "read"):
        said = quoth(name, "-", cwd=here, stdin="(echo :x " + "(" * 5_000_000)
        assert said.code == 2
        assert len(said.err) < 500


@pytest.mark.parametrize("name", ["call", "read", "run", "eval"])
def test_stdin_that_is_no_text_is_told(here: Path, name: str) -> None:
    words = [name, "-", *(["--model", "scripted:replies.txt"] if name == "run" else [])]
    told = f"quoth: Standard input {IS_NOT_UTF_8_TEXT} (byte 6: invalid start byte).\n"
    assert quoth(*words, cwd=here, stdin=b"(echo \xff)") == Said(2, "", told)


@pytest.mark.parametrize("option", ["--user", "--session"])
@pytest.mark.parametrize("words", [("call", "(echo)"), ("audit",)])
def test_a_name_that_is_no_text_is_a_mistake(here: Path, words: tuple[str, ...], option: str) -> None:
    said = quoth(*words, option, "a\udcff", cwd=here)
    assert (said.code, said.out) == (2, "")
    assert f"{option}: expected UTF-8 text, not 'a\\udcff'" in said.err
    assert "Traceback" not in said.err


BAD_TOOLS = {
    "syntax.hy": ("(+ 1\n  [2)\n", "syntax.hy:2:"),
    "macro.hy": (
        "(require quoth [def-cognitive-tool])\n(def-cognitive-tool probe 5\n  :body 1)\n",
        "macro.hy:2:",
    ),
    "option.hy": (
        '(require quoth [def-cognitive-tool])\n(def-cognitive-tool probe "It."\n  :gaurd True)\n',
        "option.hy:3:",
    ),
    "raises.hy": ("(setv x 1)\n(/ x 0)\n", "raises.hy:2:"),
    "import.hy": ("(import no-such-module)\n", "import.hy:1:"),
    "twice.hy": (
        '(require quoth [def-cognitive-tool])\n(def-cognitive-tool echo "It." :body 1)\n',
        "twice.hy:2:",
    ),
}


@pytest.mark.parametrize("name", BAD_TOOLS)
def test_a_bad_tool_file_is_told_once_with_its_place_and_a_caret(here: Path, name: str) -> None:
    text, place = BAD_TOOLS[name]
    files(here, {name: text})
    said = quoth("tools", "--tools", name, cwd=here)
    assert (said.code, said.out) == (2, "")
    told, shown, caret = said.err.rstrip("\n").split("\n")
    assert told.startswith(f"quoth: {place}")
    assert shown.strip() == text.splitlines()[int(place.split(":")[1]) - 1].strip()
    assert caret.strip() == "^"


def test_a_tool_file_that_is_no_text_is_told(here: Path) -> None:
    files(here, {"bin.hy": b"\xff\xfe\0"})
    assert sentence(quoth("tools", "--tools", "bin.hy", cwd=here)).startswith(f"bin.hy {CANNOT_BE_READ}: ")


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("(read-file :path {})", "../secret"),
        ("(read-file :path {})", "/etc/passwd"),
        ("(read-file :path {})", "out"),
        ("(list-files :path {})", "sub/../.."),
        ('(grep-search :path {} :pattern "x")', "~"),
        ('(write-file :path {} :content "x")', "../secret"),
        ('(write-file :path {} :content "x")', "out"),
        ('(edit-file :path {} :old "s" :new "x")', "out"),
    ],
)
def test_no_path_leads_out_of_the_workspace(here: Path, form: str, path: str) -> None:
    outside = here.parent / "secret"
    outside.write_text("secret")
    (here / "out").symlink_to(outside)
    said = quoth("call", form.format(json.dumps(path)), "--yes", cwd=here)
    assert (said.code, said.out) == (1, "")
    assert f"denied: {path} {IS_OUTSIDE_THE_WORKSPACE} {here}." in said.err
    assert outside.read_text() == "secret"


# Exit codes of results


@pytest.mark.parametrize(
    ("form", "options", "code"),
    [
        ('(echo :text "a")', [], 0),
        ('(read-file :path "none")', [], 1),
        ('(read-file :path "..")', [], 1),
        ("(slow :seconds 9)", ["--tools", "quick.hy"], 1),
        ("(echo)", [], 2),
        ('(write-file :path "a" :content "x")', ["--no-input"], 3),
        ('(write-file :path "a" :content "x")', ["--yes"], 0),
    ],
)
def test_the_exit_code_follows_the_result(here: Path, form: str, options: list[str], code: int) -> None:
    files(here, {"quick.hy": SLOW.replace(":body", ":timeout 0.1 :body")})
    assert quoth("call", form, *options, cwd=here).code == code
    assert quoth("eval", form, *options, "--json", cwd=here).code == code


def test_a_pending_call_says_what_to_do_next(here: Path) -> None:
    for place, more in ((here, ()), (here.parent, ("--workspace", here.name))):
        said = quoth("call", '(write-file :path "a" :content "x")', "--session", "s1", *more, cwd=place)
        request = re.findall(r"\(request (\w{5})\)", said.err)[0]
        there = "".join(f" {word}" for word in more)
        assert said == Said(
            3,
            "",
            f"quoth: write-file waits for a person's approval: {IT_WRITES_FILES} (request {request}).\n"
            f"quoth: To decide: quoth approve {request}{there}, or: quoth deny {request}{there} --why TEXT\n"
            f"quoth: {THEN_CONTINUE_WITH}: quoth resume s1{there}\n",
        )
    assert not (here / "a").exists()


BRAKES = [
    # what the model says, one reply after the other; the options; the statuses of its calls; the brakes' rows
    (['(echo :text "a") (echo :text "b")', "Done."], ["--max-calls", "1"], ["ok", "limited"], 1),
    (['(echo :text "a") (echo :text "b")', "Done."], ["--max-calls", "2"], ["ok", "ok"], 0),
    (['(echo :text "a")'] * 3, ["--max-repeats", "1"], ["ok", "ok"], 1),
    (['(echo :text "a")'] * 3, ["--max-repeats", "2"], ["ok", "ok", "ok"], 1),
    ([*['(echo :text "a")'] * 2, "Done."], ["--max-repeats", "2"], ["ok", "ok"], 0),
]


@pytest.mark.parametrize(("replies", "options", "statuses", "brakes"), BRAKES)
def test_the_brakes_of_a_run_can_be_set_and_are_in_the_audit(
    here: Path, replies: list[str], options: list[str], statuses: list[str], brakes: int
) -> None:
    files(here, {"r.txt": "\n---\n".join(replies)})
    said = quoth("run", "Do it.", "--model", "scripted:r.txt", *options, "--json", cwd=here)
    told = json.loads(said.out)
    assert [call["status"] for call in told["calls"]] == statuses
    store = Store(store_path(here))
    trail = StoreAudit(lambda: store).rows()
    rows = [(row["status"], row["message"]) for row in trail if row["stage"] == "host"]
    assert [status for status, _ in rows] == ["limited"] * brakes
    stopped = f'{THE_RUN_WAS_STOPPED}: the model kept repeating the call (echo :text "a").'
    assert (told["reply"] == stopped) is ("kept repeating" in "".join(message for _, message in rows))
    assert told["status"] == ("done" if "Done." in replies and said.code == 0 else "failed")


@pytest.mark.parametrize(("window", "stage"), [("300", "receipt"), ("0", "body")])
def test_how_long_a_call_that_comes_back_is_answered_by_its_receipt_can_be_set(
    here: Path, window: str, stage: str
) -> None:
    files(here, {"r.txt": '(echo :text "a")\n---\n(echo :text "a")\n---\nDone.'})
    words = ["run", "Do it.", "--model", "scripted:r.txt", "--repeat-window", window]
    assert quoth(*words, cwd=here).code == 0
    rows = Store(store_path(here)).execute("SELECT stage FROM audit ORDER BY seq")
    assert [row[0] for row in rows] == ["body", stage]


def test_the_help_tells_the_true_limits_of_a_run(here: Path) -> None:
    told = " ".join(quoth("run", "--help", cwd=here).out.split())
    limits = [one for one in fields(CommandSettings) if one.metadata["row"].group == "limits"]
    assert len(limits) == 8
    for limit in limits:
        option, text = limit.metadata["flags"][0], limit.metadata["help"]
        assert f"{option} " in told
        default = getattr(RunLimits(), limit.name)
        unset = "as known of the model" if limit.name == "context" else "no limit"
        assert f"(default: {unset if default is None else f'{default:g}'}" in text


@pytest.mark.parametrize(
    ("replies", "code", "status"),
    [
        ("Done.", 0, "done"),
        ("(echo :text\n---\n(\n---\n", 1, "failed"),
        ('(write-file :path "a" :content "x")', 3, "pending"),
        ('(echo :text "a")\n---\n(echo :text "b")\n---\n(echo :text "c")', 1, "failed"),
    ],
)
def test_the_exit_code_of_a_run_follows_its_end(here: Path, replies: str, code: int, status: str) -> None:
    files(here, {"r.txt": replies})
    words = ["run", "Do it.", "--model", "scripted:r.txt", "--max-steps", "3"]
    said = quoth(*words, cwd=here)
    assert said.code == code
    assert (said.out == "") is (code != 0)
    assert "Traceback" not in said.err
    ended = quoth(*words, "--json", cwd=here)
    assert ended.code == code
    assert json.loads(ended.out)["status"] == status


# --json: one value on stdout, whatever happens

ASKED = [
    ["call", '(echo :text "a\\nb")'],
    ["call", "(ecko)"],
    ["call", "(echo"],
    ["call", '(write-file :path "a" :content "x")'],
    ["eval", "(+ 1 2)"],
    ["eval", "(do-mac 1)"],
    ["eval", '(print "beside")'],
    ["read"],
    ["tools"],
    ["tools", "echo"],
    ["tools", "ecko"],
    ["tools", "--frob"],
    ["belt"],
    ["belt", "--view", "none"],
    ["run", "x", "--model", "scripted:replies.txt"],
    ["run", "x", "--model", "scripted:none"],
    ["run", "x", "--model", "nonsense"],
    ["memory", "list"],
    ["memory", "show", "none"],
    ["frob"],
    ["--version"],
]


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_json_is_one_value_on_one_line_and_nothing_else(here: Path, words: list[str]) -> None:
    said = quoth(*words, "--json", cwd=here)
    assert said.out.count("\n") == 1
    assert isinstance(json.loads(said.out), list if words in (["tools"], ["memory", "list"]) else dict)
    assert "Traceback" not in said.err


def test_a_mistake_in_json_has_a_status_and_the_sentence(here: Path) -> None:
    said = quoth("tools", "ecko", "--json", cwd=here)
    assert json.loads(said.out) == {
        "status": "invalid",
        "message": f"{THERE_IS_NO_TOOL_NAMED} ecko. Did you mean echo?",
    }
    assert said.code == 2


def test_a_name_that_is_no_text_still_makes_json(here: Path) -> None:
    os.close(os.open(os.fsencode(here) + b"/caf\xe9.txt", os.O_CREAT | os.O_WRONLY))
    for words in (["call", "(list-files)", "--json"], ["tools", os.fsdecode(b"\xe9"), "--json"]):
        assert isinstance(json.loads(quoth(*words, cwd=here).out), dict)
    assert "Traceback" not in quoth("call", "(list-files)", cwd=here).err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_narrow_encoding_of_stdout_does_not_hurt(here: Path, encoding: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    words = [*command(), "call", '(echo :text "h\u00e9 \u4e2d")']
    plain = subprocess.run(words, cwd=here, env=env, capture_output=True, check=False)
    assert (plain.returncode, plain.stderr) == (0, b"")
    assert plain.stdout == "h\u00e9 \u4e2d\n".encode(encoding, "backslashreplace")
    as_json = subprocess.run([*words, "--json"], cwd=here, env=env, capture_output=True, check=False)
    assert json.loads(as_json.stdout.decode(encoding))["value"] == "h\u00e9 \u4e2d"


# Models that fail


class Server(BaseHTTPRequestHandler):
    """A model server that answers every request in the way its class says."""

    status, body, kind = 200, b"", "application/json"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.status)
        self.send_header("content-type", self.kind)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server that answers as the test's parameter says; of none, for None."""
    handler = type("Handler", (Server,), request.param or {})
    httpd = QuietServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    if request.param is None:
        httpd.shutdown()
        httpd.server_close()
    yield f"http://127.0.0.1:{httpd.server_address[1]}/v1"
    if request.param is not None:
        httpd.shutdown()
        httpd.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("server", "part"),
    [
        (None, "Cannot reach http://127.0.0.1:"),
        (
            {"status": 500, "body": b'{"error": {"message": "out of memory"}}'},
            "failed (500). It said: out of memory",
        ),
        ({"body": b"<html>Welcome</html>", "kind": "text/html"}, "is not JSON"),
        ({"body": b"{}"}, "JSON without choices"),
        ({"status": 401, "body": b"{}"}, f"{REFUSED_THE_KEY} (401); check OPENAI_API_KEY."),
        ({"status": 404, "body": b"{}"}, "has no model x, or no such address (404)."),
    ],
    indirect=["server"],
    ids=["down", "500", "html", "empty", "401", "404"],
)
def test_a_model_server_that_fails_is_told_in_a_sentence(here: Path, server: str, part: str) -> None:
    env = {"OPENAI_API_KEY": "sk-secret-key"}
    said = quoth("run", "x", "--model", "openai:x", "--base-url", server, cwd=here, env=env)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("■ failed: ")
    assert part in said.err
    assert said.err.count("\n") == 2
    assert said.err.splitlines()[1].startswith("quoth: To try again: quoth resume s")
    assert "sk-secret-key" not in said.err
    assert "Traceback" not in said.err


CHOICE = b'{"message": {"content": "Done."}, "finish_reason": "stop"}'
CHAT = b'{"choices": [' + CHOICE + b'], "usage": {"prompt_tokens": 7}}'


@pytest.mark.parametrize("server", [{"body": CHAT}], indirect=True)
def test_a_model_server_that_answers_is_heard(here: Path, server: str) -> None:
    words = ["run", "x", "--model", "openai:x", "--base-url", server, "--json"]
    run = json.loads(quoth(*words, cwd=here, env={"OPENAI_API_KEY": "k"}).out)
    assert (run["status"], run["reply"], run["usage"]["input_tokens"]) == ("done", "Done.", 7)


HIDDEN = (
    "import sys; sys.modules['xllamacpp'] = None; "
    "from quoth.agent.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.mark.parametrize(
    ("options", "code", "parts"),
    [
        ([], 2, ["--model", "OPENAI_API_KEY", "pip install 'quoth[local]'"]),
        (["--model", "local"], None, ["pip install 'quoth[local]'"]),
        (["--model", "local-small"], None, ["pip install 'quoth[local-small]'"]),
    ],
)
def test_a_missing_extra_is_named(here: Path, options: list[str], code: int | None, parts: list[str]) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN, "run", "x", *options],
        cwd=here,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    assert done.returncode == code or (code is None and done.returncode in (1, 2))
    sentence, *next_steps = done.stderr.splitlines()
    assert all(part in sentence for part in parts), done.stderr
    assert len(next_steps) == (done.returncode == 1)  # the command that tries again
    assert "Traceback" not in done.stderr


# Interrupts


def test_ctrl_c_while_a_model_thinks_ends_the_run_with_130(here: Path) -> None:
    with started("run", "x", "--model", "scripted:thinks.hy", "--session", "s1", cwd=here) as run:
        wait_until((here / "started").exists)
        run.interrupt()
        told = f"■ interrupted: The run was interrupted.\nquoth: {TO_CONTINUE}: quoth resume s1\n"
        assert run.ended() == Said(130, "", told)


def test_ctrl_c_in_a_run_in_json_still_gives_the_one_object(here: Path) -> None:
    with started("run", "x", "--model", "scripted:thinks.hy", "--json", cwd=here) as run:
        wait_until((here / "started").exists)
        run.interrupt()
        said = run.ended()
    assert (said.code, json.loads(said.out)["status"]) == (130, "interrupted")


def test_ctrl_c_while_a_tool_runs_lets_it_end_if_that_takes_but_a_moment(here: Path) -> None:
    files(here, {"r.txt": "(slow :seconds 0.05)\n---\nnever asked"})
    with started("run", "x", "--model", "scripted:r.txt", "--tools", "slow.hy", cwd=here) as run:
        wait_until((here / "started").exists)
        run.interrupt()
        said = run.ended()
    assert said.code == 130
    assert "ms: finished\n■ interrupted: The run was interrupted.\n" in said.err
    assert rows(here) == [("slow", "ok")]


def test_ctrl_c_stops_a_tool_that_takes_long_and_leaves_its_row(here: Path) -> None:
    files(here, {"r.txt": "(slow :seconds 600.0)"})
    with started("run", "x", "--model", "scripted:r.txt", "--tools", "slow.hy", cwd=here) as run:
        wait_until((here / "started").exists)
        run.interrupt()
        said = run.ended()
    assert said.code == 130
    assert "ms: slow was cancelled.\n■ interrupted: The run was interrupted.\n" in said.err
    assert rows(here) == [("slow", "cancelled")]


def test_a_second_ctrl_c_does_not_wait_for_what_holds_out(here: Path) -> None:
    with started("run", "x", "--model", "scripted:holds.hy", cwd=here) as run:
        wait_until((here / "started").exists)
        run.interrupt()
        run.says("quoth: Still stopping. Press Ctrl-C again to quit at once.\n")
        run.interrupt()
        said = run.ended()
    assert said.code == 130
    assert said.err.endswith("quoth: Interrupted.\n")


@pytest.mark.parametrize("form", ["(slow :seconds 600.0)", "(eval (slow :seconds 600.0))"])
def test_ctrl_c_ends_a_call_at_once_and_leaves_its_row(here: Path, form: str) -> None:
    with started("call", form, "--tools", "slow.hy", cwd=here) as call:
        wait_until((here / "started").exists)
        call.interrupt()
        assert call.ended() == Said(130, "", "quoth: Interrupted.\n")
    assert rows(here)[0] == ("slow", "cancelled")


@pytest.mark.parametrize(
    "words", [["call", "-"], ["read"], ["run", "-", "--model", "scripted:thinks.hy"], []]
)
def test_ctrl_c_while_it_waits_for_stdin_ends_it(here: Path, words: list[str]) -> None:
    with started(*words, cwd=here) as waiting:
        stat = Path(f"/proc/{waiting.process.pid}/wchan")
        wait_until(lambda: "pipe_read" in stat.read_text() or "poll" in stat.read_text())
        waiting.interrupt()
        assert waiting.ended().code == 130


def rows(workspace: Path) -> list[tuple[str, str]]:
    store = Store(store_path(workspace))
    try:
        return [(row["tool"], row["status"]) for row in StoreAudit(lambda: store).rows()]
    finally:
        store.close()


# The world around it


def shell(line: str, here: Path) -> Said:
    """A line of bash in which ``quoth`` is the command, its output buffered as a person's would be."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    line = line.replace("quoth", " ".join(command()))
    done = subprocess.run(
        ["bash", "-c", line], cwd=here, env=env, capture_output=True, text=True, check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("words", ["belt", "tools --json", "--help", "tools eval"])
def test_a_reader_that_has_enough_is_no_mistake(here: Path, words: str) -> None:
    assert shell(f"quoth {words} | true; echo ${{PIPESTATUS[0]}}", here) == Said(0, "0\n", "")


@pytest.mark.parametrize(
    ("line", "code", "complaint"),
    [
        (
            "quoth tools >/dev/full",
            1,
            f"quoth: Standard output {CANNOT_BE_WRITTEN}: No space left on device.\n",
        ),
        (
            "quoth --help >/dev/full",
            1,
            f"quoth: Standard output {CANNOT_BE_WRITTEN}: No space left on device.\n",
        ),
        ("quoth tools >&-", 1, f"quoth: Standard output {CANNOT_BE_WRITTEN}: it is closed.\n"),
        ("quoth doctor >&-", 1, f"quoth: Standard output {CANNOT_BE_WRITTEN}: it is closed.\n"),
        ("quoth call '(list-files)' >&-", 1, f"quoth: Standard output {CANNOT_BE_WRITTEN}: it is closed.\n"),
        ("quoth call - <&-", 2, "quoth: Standard input is closed.\n"),
        ("quoth <&-", 2, "quoth: Standard input is closed.\n"),
        ("quoth tools ecko 2>&-", 2, ""),
        ("quoth run x --model scripted:replies.txt 2>&-", 0, ""),
    ],
)
def test_streams_that_are_closed_or_full_are_told(here: Path, line: str, code: int, complaint: str) -> None:
    said = shell(line, here)
    assert (said.code, said.err) == (code, complaint)


def test_it_works_in_a_folder_that_has_its_own_tools_agent_neuro_and_plans(here: Path) -> None:
    hostile = 'raise SystemExit("the wrong package")\n'
    files(here, {f"{name}/__init__.py": hostile for name in ("tools", "agent", "neuro", "plans", "hy")})
    files(here, {f"{name}.py": hostile for name in ("json", "asyncio", "apsw")})
    for words, told in (
        (["call", '(read-file :path "notes.txt")'], "one\ntwo\nthree\n"),
        (["eval", "(+ 1 2)"], "3\n"),
        (["call", '(hello :who "Ann")', "--tools", "greet.hy"], "Hello, Ann!\n"),
        (["run", "x", "--model", "scripted:replies.txt"], "It said hi.\n"),
    ):
        assert quoth(*words, cwd=here, real=True).out == told


def test_a_state_folder_that_cannot_be_written_is_told(here: Path) -> None:
    files(here, {"state": "a file"})
    said = quoth("call", '(echo :text "a")', cwd=here, env={"QUOTH_STATE": str(here / "state")})
    assert said.code == 2
    assert len(said.err.splitlines()) == 1
    assert f"{CANNOT_BE_OPENED}: " in said.err


def test_a_reply_cannot_break_the_line_of_a_terminal_but_a_pipe_gets_it_as_it_is(here: Path) -> None:
    files(here, {"r.txt": "red \x1b[31m"})
    assert quoth("run", "x", "--model", "scripted:r.txt", cwd=here).out == "red \x1b[31m\n"
