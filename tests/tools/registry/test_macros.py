"""def-cognitive-tool and the macros built on it, from real .hy files: what they make, how they fail."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import QuietServer
from sentences import (
    AN_EXAMPLE_HAS_THE_UNKNOWN,
    ANSWERED_WITH_MORE_THAN,
    CANNOT_BE_REACHED,
    CANNOT_BE_READ,
    DID_NOT_ANSWER,
    DID_NOT_FINISH_WITHIN,
    EXAMPLES_CALL_THE_TOOL_ITSELF,
    HAS_NO_VALUE,
    IS_GIVEN_TWICE,
    IS_NEVER_CLOSED,
    IS_NOT_DEFINED,
    IS_NOT_OF_ITS_TYPE,
    IS_OUTSIDE_THE_WORKSPACE,
    IT_RUNS_A_PROGRAM,
    ITS_GUARD_REFUSED_THESE_ARGUMENTS,
    THE_MODEL_CHOOSES_BY_IT,
    THERE_IS_ALREADY_A_TOOL,
    THERE_IS_NO_FILE,
    THIS_STRING_IS_NEVER_CLOSED,
    TIMEOUT_IS_A_NUMBER_OF,
)
from words import Gateway, complaint, files, form, gateway, load

from quoth.tools.builtin.process import MAX_OUTPUT, run_argv
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import UsageError
from quoth.tools.lisp.reader import read_one
from quoth.tools.registry.parameters import Tag
from quoth.tools.registry.table import ToolTable

HEAD = """\
"Tools of a test."

(require quoth [def-cognitive-tool def-shell-tool def-http-tool])

"""


def written(folder: Path, text: str, head: str = HEAD) -> Path:
    files(folder, {"my.hy": head + text})
    return folder / "my.hy"


def loaded(folder: Path, text: str, **parts: Any) -> Gateway:
    """A gateway to the tools of one file."""
    return gateway(*load(written(folder, text)).tools(), workspace=folder, **parts)


# What they make

FULL = """(def-cognitive-tool pick-line
  "Pick one line
   of a text."
  :parameters [text   {:type str  :doc "The text"}
               number {:type int  :doc "Which"  :default 1  :min 1  :max 99}
               how    {:choices ["raw" "trimmed"]  :default "raw"}
               words  {:type (get list str)  :default []}
               note   {:type (| str None)  :default None}
               code   {:type form  :default "1"}]
  :effects    [:reads :net]
  :cost       :cheap
  :gate       True
  :gate-failure :open
  :cooldown   0.5
  :daily-limit 7
  :timeout    (* 2 4)
  :tag        "LINE"
  :allow-repeat True
  :ends-turn  True
  :shown      False
  :replace    True
  :examples   [(pick-line :text "a" :number 1)
               (pick-line "a")]
  ; a comment inside stays with the source
  :guard      (if (= number 13) (deny "unlucky") True)
  :body       (get (.splitlines text) (- number 1)))
"""


def test_a_definition_with_every_option_becomes_that_tool(tmp_path: Path) -> None:
    made = load(written(tmp_path, FULL)).get("pick-line")
    assert made.description == "Pick one line\nof a text."
    assert made.signature() == (
        '(pick-line :text str [:number int = 1] [:how "raw" | "trimmed" = "raw"] [:words list of str = []] '
        '[:note str or None] [:code form = "1"])'
    )
    assert (made.effects, made.cost, made.gate, made.gate_failure) == (
        ("reads", "net"),
        "cheap",
        True,
        "open",
    )
    assert (made.cooldown, made.daily_limit, made.timeout) == (0.5, 7, 8)
    assert made.tag == Tag("LINE")
    assert (made.allow_repeat, made.shown, made.replace, made.guarded) == (True, False, True, True)
    assert made.examples == (form('(pick-line :text "a" :number 1)'), form('(pick-line "a")'))
    assert made.module.startswith("quoth_user_")


def test_the_source_keeps_its_comments_and_the_form_is_one_form(tmp_path: Path) -> None:
    made = load(written(tmp_path, FULL)).get("pick-line")
    assert made.source == FULL.rstrip("\n")
    assert "comment" not in made.form
    assert read_one(made.form) == read_one(FULL)


def test_the_source_is_right_after_a_page_break_and_within_a_line(tmp_path: Path) -> None:
    text = '\f\n(do (def-cognitive-tool a "A." :body 1) (def-cognitive-tool b "B." :body 2))\n'
    table = load(written(tmp_path, text))
    assert table.get("a").source == '(def-cognitive-tool a "A." :body 1)'
    assert table.get("b").source == '(def-cognitive-tool b "B." :body 2)'


def test_guard_and_body_see_parameters_call_and_ctx(tmp_path: Path) -> None:
    here = loaded(
        tmp_path,
        """
        (def-cognitive-tool look-at "Look."
          :parameters [the-path {:type str}]
          :guard (and (= the-path "a") (= call.user "ann") (.is-dir ctx.workspace.root))
          :body [the-path call.tool call.user])
        """,
    )
    assert here.pass_through('(look-at "a")', user="ann").value == ["a", "look-at", "ann"]
    assert here.pass_through('(look-at "a")', user="bob").message == (
        f"look-at was denied: {ITS_GUARD_REFUSED_THESE_ARGUMENTS}."
    )


def test_a_guard_can_deny_and_ask_with_a_reason(tmp_path: Path) -> None:
    here = loaded(
        tmp_path,
        """
        (def-cognitive-tool try-it "Try."
          :parameters [n {:type int}]
          :guard (cond (= n 1) True  (= n 2) (deny "two is wrong")  (= n 3) (ask "three is odd"))
          :body n)
        """,
    )
    said = [here.pass_through(f"(try-it {n})") for n in (1, 2, 3, 4)]
    assert [result.status for result in said] == ["ok", "denied", "pending", "denied"]
    assert [result.message for result in said] == [
        "",
        "try-it was denied: two is wrong.",
        "try-it waits for a person's approval: three is odd.",
        "try-it was denied: its guard returned None; "
        'a guard returns True, False, (deny "why") or (ask "why").',
    ]


@pytest.mark.parametrize(
    "body",
    [
        "(do (import asyncio) (await (asyncio.sleep 0)) 1)",
        '(do (import asyncio) f"{(await (asyncio.sleep 0 1))}" 1)',
        "(do (defn :async gen [] (yield 1)) (lfor :async x (gen) x) 1)",
        "(do (defn :async gen [] (yield 1)) (for [:async x (gen)] x) 1)",
        "(do (defn :async inner [] (await (inner))) 1)",
        "(do (setv f (fn :async [] (await 1))) 1)",
        "'(await 1)",
    ],
)
def test_a_body_is_asynchronous_just_when_it_awaits(tmp_path: Path, body: str) -> None:
    here = loaded(tmp_path, f'(def-cognitive-tool later "Later." :body (do {body} 1))')
    result = here.pass_through("(later)")
    assert (result.status, result.value) == ("ok", 1), result.message


def test_a_user_builds_a_kind_of_tool_of_their_own(tmp_path: Path) -> None:
    here = loaded(
        tmp_path,
        """
        (defmacro def-fact [name sentence]
          `(def-cognitive-tool ~name ~(+ "Tell a fact: " sentence)
             :parameters [loud {:type bool  :default False}]
             :body (if loud (.upper ~sentence) ~sentence)))

        (def-fact sky "The sky is blue.")
        (def-fact sea "The sea is wide.")
        """,
    )
    assert here.door.table.names() == ["sea", "sky"]
    assert here.door.table.get("sky").description == "Tell a fact: The sky is blue."
    assert here.pass_through("(sea :loud t)").value == "THE SEA IS WIDE."
    assert here.door.table.get("sky").source == '(def-fact sky "The sky is blue.")'


def test_a_tool_of_another_table_is_not_touched(tmp_path: Path) -> None:
    table = ToolTable()
    load(written(tmp_path, FULL), table)
    assert ToolTable().names() == []
    assert table.names() == ["pick-line"]


# Mistakes

OPTIONS = [
    "effects",
    "cost",
    "gate",
    "gate-failure",
    "cooldown",
    "daily-limit",
    "timeout",
    "tag",
    "allow-repeat",
    "no-background",
    "ends-turn",
    "asks-first",
    "shown",
    "examples",
    "returns",
    "free-text",
    "replace",
]
KNOWN = " ".join(f":{name}" for name in ["parameters", "guard", "changes", "body", *OPTIONS])
SPEC = ":type :doc :default :choices :min :max :secret :hidden :named :role :outside :wire"

MISUSES: list[tuple[str, str, str]] = [
    # the definition, the text under the caret, the sentence
    (
        '(def-cognitive-tool x "D."\n  :gaurd False\n  :body 1)',
        ":gaurd",
        f"x: there is no option :gaurd; the options are {KNOWN}. Did you mean :guard?",
    ),
    (
        '(def-cognitive-tool x "D." :qqq 1 :body 1)',
        ":qqq",
        f"x: there is no option :qqq; the options are {KNOWN}.",
    ),
    ('(def-cognitive-tool x "D." :body 1\n  :body 2)', ":body 2", f"x: :body {IS_GIVEN_TWICE}."),
    ('(def-cognitive-tool x "D." :body)', ":body)", f"x: :body {HAS_NO_VALUE}."),
    (
        '(def-cognitive-tool x "D." 5 :body 1)',
        "5 ",
        "x: an option such as :parameters is expected here, not 5.",
    ),
    ('(def-cognitive-tool x "D." :effects [])', "x ", "x has no :body."),
    (
        "(def-cognitive-tool x :body 1)",
        ":body",
        "x needs a description in quotes before its options.",
    ),
    (
        "(def-cognitive-tool x [] :body 1)",
        "[]",
        "x needs a description in quotes before its options.",
    ),
    ('(def-cognitive-tool "x" "D." :body 1)', '"x"', 'A tool\'s name is a symbol, not "x".'),
    (
        '(def-cognitive-tool Bad? "D." :body 1)',
        "Bad?",
        "Bad?: a tool's name is lower-case letters, digits and hyphens.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters {} :body 1)',
        "{}",
        'x: :parameters is a list, [name {:type str :doc "…"} …].',
    ),
    (
        '(def-cognitive-tool x "D." :parameters [a?\n  {}] :body 1)',
        "a?",
        "x: a parameter's name is expected here, not a?.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [{}] :body 1)',
        "{}",
        "x: a parameter's name is expected here, not {}.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [my_arg {}] :body 1)',
        "my_arg",
        "x: a parameter's name is expected here, not my_arg. Write my-arg.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [maxResults {}] :body 1)',
        "maxResults",
        "x: a parameter's name is expected here, not maxResults. Write max-results.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters\u00a0[a {}] :body 1)',
        "\u00a0[",
        "the character U+00A0 is not allowed in a name; write a plain space",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [ctx {}] :body 1)',
        "ctx",
        "x: ctx is already bound in guard and body; choose another name.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [a {} a {}] :body 1)',
        "a {}]",
        f"x: the parameter a {IS_GIVEN_TWICE}.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [a] :body 1)',
        "a]",
        'x: a needs a spec such as {:type str :doc "what it is"}.',
    ),
    (
        '(def-cognitive-tool x "D." :parameters [a b {}] :body 1)',
        "b {}",
        'x: a needs a spec such as {:type str :doc "what it is"}.',
    ),
    (
        '(def-cognitive-tool x "D." :parameters [a {:typ int}] :body 1)',
        ":typ",
        f"x, parameter a: there is no option :typ; the options are {SPEC}. Did you mean :type?",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [a {:type}] :body 1)',
        ":type",
        f"x, parameter a: :type {HAS_NO_VALUE}.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [a {"type" str}] :body 1)',
        '"type"',
        'x, parameter a: an option such as :type is expected here, not "type".',
    ),
    (
        '(def-cognitive-tool x "D." :parameters [to {:role :destinaton}] :body 1)',
        ":destinaton",
        "x, parameter to: :role must be :destination, or :content for no destination; not :destinaton. "
        "Did you mean :destination?",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [to {:role destinaton}] :body 1)',
        "destinaton",
        "x, parameter to: :role must be :destination, or :content for no destination; not :destinaton. "
        "Did you mean :destination?",
    ),
    *(
        (
            f'(def-cognitive-tool x "D." :free-text {given} :body 1)',
            given,
            "x: :free-text is True for all of the result, or a list of its fields, such as [body subject]; "
            f"not {given}.",
        )
        for given in ('"body"', "body")
    ),
    (
        '(def-cognitive-tool x "D." :free-text [body (f x)] :body 1)',
        "(f x)",
        "x: the name of a field is expected here, not (f x).",
    ),
    (
        '(def-shell-tool x "D." :body 1)',
        ":body",
        "x: there is no option :body; the options are :argv :cwd :guard :changes :parameters :effects "
        ":cost :gate :gate-failure :cooldown :daily-limit :timeout :tag :allow-repeat :no-background "
        ":ends-turn :asks-first :shown :examples :returns :free-text :replace.",
    ),
    (
        '(def-shell-tool x "D." :argv "ls -l")',
        "x ",
        "x needs :argv, a list of texts and parameters; it is never given to a shell.",
    ),
    ('(def-shell-tool x :argv ["ls"])', ":argv", "x needs a description in quotes before its options."),
    ('(def-http-tool x "D." :method "GET")', "x ", "x needs :url."),
    (
        '(def-cognitive-tool x "D." :tag {:prefix "X"\n  "patern" "(.+)"} :body 1)',
        '"patern"',
        "x, :tag: there is no option :patern; the options are :prefix :pattern :groups :example :strip. "
        "Did you mean :pattern?",
    ),
    (
        '(def-cognitive-tool x "D." :tag {:prefix "X" "prefix" "Y"} :body 1)',
        '"prefix"',
        f"x, :tag: :prefix {IS_GIVEN_TWICE}.",
    ),
]

AT_LOAD: list[tuple[str, str, str]] = [
    # found when the definition runs: the line of the definition is told
    (
        '(def-cognitive-tool x "D." :parameters [a {:type int :default "5"}] :body 1)',
        "(def",
        f'x, parameter a: the default "5" {IS_NOT_OF_ITS_TYPE}, int.',
    ),
    ('(def-cognitive-tool x " " :body 1)', "(def", f"x needs a description: {THE_MODEL_CHOOSES_BY_IT}."),
    ('(def-cognitive-tool x "D." :timeout 0 :body 1)', "(def", f"x: :{TIMEOUT_IS_A_NUMBER_OF}."),
    (
        '(def-cognitive-tool x "D." :effects [:reds] :body 1)',
        "(def",
        "x: unknown effect :reds; the effects are "
        ":reads, :writes, :runs, :net, :memory, :messages, :asks, :deletes, :pays.",
    ),
    (
        '(def-cognitive-tool x "D." :returns str :free-text [body] :body 1)',
        "(def",
        "x: :free-text names body, which is not a field of its result.",
    ),
    (
        '(def-cognitive-tool x "D." :parameters [a {}] :examples [(x :b 1)] :body 1)',
        "(def",
        f"x: {AN_EXAMPLE_HAS_THE_UNKNOWN} :b.",
    ),
    (
        '(def-cognitive-tool x "D." :examples [(y)] :body 1)',
        "(def",
        f"x: an example calls y; {EXAMPLES_CALL_THE_TOOL_ITSELF}.",
    ),
    (
        '(def-cognitive-tool x "D." :body 1)\n(def-cognitive-tool x "D." :body 2)',
        '(def-cognitive-tool x "D." :body 2)',
        f"{THERE_IS_ALREADY_A_TOOL} x, defined at {{file}}:5; write :replace True to replace it.",
    ),
    (
        '(def-cognitive-tool x "D." :tag "T" :body 1)\n(def-cognitive-tool y "D." :tag "T" :body 2)',
        '(def-cognitive-tool y "D." :tag "T" :body 2)',
        "The tools x and y share the tag T.",
    ),
    (
        "(setv a 1)\n(print (undefined-thing a))",
        "undefined-thing",
        f"NameError: name 'undefined_thing' {IS_NOT_DEFINED}",
    ),
    ("(/ 1 0)", "(/", "ZeroDivisionError: division by zero"),
    ("(import nowhere-at-all)", "(import", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
]


def told(path: Path, text: str, place: str, sentence: str) -> None:
    """Loading says ``file:line:column: sentence``, the line, and a caret under ``place``: nothing else."""
    whole = HEAD + text
    before = whole[: len(HEAD) + text.rindex(place)]
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    shown = whole.split("\n")[line - 1]
    said = complaint(UsageError, lambda: load(path))
    sentence = sentence.replace("{file}", str(path))
    assert said == f"{path}:{line}:{column}: {sentence}\n  {shown}\n  {' ' * (column - 1)}^"


@pytest.mark.parametrize(("text", "place", "sentence"), MISUSES)
def test_a_misuse_is_told_with_a_caret_at_the_form(
    tmp_path: Path, text: str, place: str, sentence: str
) -> None:
    path = written(tmp_path, text)
    assert text.count(place) >= 1
    whole = HEAD + text
    said = complaint(UsageError, lambda: load(path))
    first, shown, caret = said.split("\n")
    where, line, column, rest = first.split(":", 3)
    assert (where, rest.strip()) == (str(path), sentence)
    pointed = whole.split("\n")[int(line) - 1][int(column) - 1 :]
    assert pointed.startswith(place), pointed
    assert shown == "  " + whole.split("\n")[int(line) - 1]
    assert caret == "  " + " " * (int(column) - 1) + "^"


@pytest.mark.parametrize(("text", "place", "sentence"), AT_LOAD)
def test_a_mistake_found_while_loading_is_told_at_its_line(
    tmp_path: Path, text: str, place: str, sentence: str
) -> None:
    told(written(tmp_path, text), text, place, sentence)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('(def-cognitive-tool x "D." :body 1', f":5:1: this ( {IS_NEVER_CLOSED}; add ) at the end"),
        ('(def-cognitive-tool x "D." :body (f 1', f":5:34: this ( {IS_NEVER_CLOSED}; add )) at the end"),
        ('(def-cognitive-tool x "D." :body 1))', ":5:36: "),
        ('(def-cognitive-tool x "D.\n :body 1)', f":5:23: {THIS_STRING_IS_NEVER_CLOSED}; "),
        ("(print #nowhere 1)", ":5:8: "),
        (
            "(require quoth [def-cognitve-tool])",
            ":5:17: quoth has no macro def-cognitve-tool. Did you mean def-cognitive-tool?",
        ),
        ("(when True (require quoth [zzz]))", ":5:28: quoth has no macro zzz."),
        ("(require nowhere.macros [x])", ":5:10: No module named 'nowhere'"),
        ("(setv 1 2)", ":5:7: Can't assign or delete a constant"),
        ("(defn f [a a] 1)", ":5:13: duplicate argument 'a' in function definition"),
        ("(return)", ":5:2: 'return' outside function"),
        ("(cond 1)", ":5:1: TypeError: `cond` needs an even number of arguments"),
    ],
)
def test_a_file_that_is_no_hy_is_told_in_one_frame(tmp_path: Path, text: str, words: str) -> None:
    said = complaint(UsageError, lambda: load(written(tmp_path, text)))
    assert words in said
    assert "Traceback" not in said
    assert said.count("\n") == 2
    assert said.endswith("^")


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = written(tmp_path, '(def-cognitive-tool x "D." :body 1)')
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path).names() == ["x"]


def test_a_macro_of_a_file_beside_is_not_found_and_the_sentence_says_how(tmp_path: Path) -> None:
    files(tmp_path, {"mine.hy": "(defmacro inc [x] `(+ 1 ~x))"})
    said = complaint(UsageError, lambda: load(written(tmp_path, "(require mine [inc])")))
    assert said.startswith(f"{tmp_path}/my.hy:5:10: No module named 'mine'\n")
    assert said.endswith(
        f"\nThe folder of the file is not searched; to search it: PYTHONPATH={tmp_path} quoth …"
    )


def test_a_file_that_leaves_python_does_not_take_us_with_it(tmp_path: Path) -> None:
    said = complaint(UsageError, lambda: load(written(tmp_path, "(import sys)\n(sys.exit 3)")))
    assert ":6:1: SystemExit: 3\n" in said


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "no.hy"
    assert complaint(UsageError, lambda: load(path)) == f"{THERE_IS_NO_FILE} {path}."
    assert CANNOT_BE_READ in complaint(UsageError, lambda: load(tmp_path))
    (tmp_path / "bin.hy").write_bytes(b"\xff\xfe")
    assert CANNOT_BE_READ in complaint(UsageError, lambda: load(tmp_path / "bin.hy"))


def test_a_file_that_fails_leaves_no_module_and_no_bytecode_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    complaint(UsageError, lambda: load(written(tmp_path, "(/ 1 0)")))
    load(written(tmp_path, FULL))
    assert [path.name for path in tmp_path.rglob("*")] == ["my.hy"]


# def-shell-tool


class Yes:
    """Consent that is always given."""

    async def request(self, *_: Any) -> Any:
        from quoth.tools.call.call import ALLOW

        return ALLOW


def shell(folder: Path, definition: str) -> Gateway:
    return loaded(folder, f'(def-shell-tool run-it "Run." {definition})', consent=Yes())


def test_a_program_is_run_and_its_output_returned(tmp_path: Path) -> None:
    here = shell(tmp_path, ':parameters [n {:type int}] :argv ["printf" "%s-%s" n "é"]')
    result = here.pass_through("(run-it 5)")
    assert (result.status, result.value, result.side_effects) == ("ok", "5-é", ("ran:printf",))


def test_a_program_asks_first_unless_its_effects_say_otherwise(tmp_path: Path) -> None:
    here = loaded(tmp_path, '(def-shell-tool run-it "Run." :argv ["true"])')
    assert here.pass_through("(run-it)").message == (
        f"run-it waits for a person's approval: {IT_RUNS_A_PROGRAM}."
    )


@pytest.mark.parametrize(
    "text", ["; rm -rf .", "$(touch x)", "`touch x`", "a b", "*", "-n", "", "'", "| cat", "\n"]
)
def test_a_parameter_is_one_argument_and_never_a_command(tmp_path: Path, text: str) -> None:
    (tmp_path / "kept").touch()
    here = shell(tmp_path, ':parameters [x {:type str}] :argv ["printf" "[%s]" x]')
    call = form("(run-it)")
    result = here.pass_through(type(call)("run-it", {"x": text}))
    assert (result.status, result.value) == ("ok", f"[{text}]")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "my.hy"]


def test_lists_are_spliced_into_the_arguments_and_none_left_out(tmp_path: Path) -> None:
    here = shell(tmp_path, ':parameters [xs {:type (get list str)}] :argv ["printf" "%s," "a" xs None 3]')
    assert here.pass_through('(run-it ["b c" "d"])').value == "a,b c,d,3,"


def test_a_program_runs_in_the_workspace_or_a_folder_of_it(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    here = shell(tmp_path, ':parameters [where {:type str :default "."}] :cwd where :argv ["pwd"]')
    assert here.pass_through("(run-it)").value == f"{tmp_path}\n"
    assert here.pass_through('(run-it "inner")').value == f"{tmp_path}/inner\n"
    assert IS_OUTSIDE_THE_WORKSPACE in here.pass_through('(run-it "..")').message
    assert here.pass_through('(run-it "no")').message == "There is no folder no to run pwd in."


FAILING = [
    ('["no-such-program-here"]', "There is no program no-such-program-here on this machine."),
    ('["sh" "-c" "echo out; echo bad >&2; exit 3"]', "sh ended with 3: bad"),
    ('["sh" "-c" "echo out; exit 3"]', "sh ended with 3: out"),
    ('["false"]', "false ended with 1: without output"),
    ('["sh" "-c" "kill -9 $$"]', "sh ended with -9: without output"),
    ("[]", "There is no program to run."),
    ('["a\\0b"]', "a\0b cannot be started: embedded null byte."),
    ('["/etc"]', "/etc cannot be started: permission denied."),
]


@pytest.mark.parametrize(("argv", "sentence"), FAILING)
def test_a_failing_program_is_told_with_what_it_said(tmp_path: Path, argv: str, sentence: str) -> None:
    result = shell(tmp_path, f":argv {argv}").pass_through("(run-it)")
    assert (result.status, result.message) == ("error", sentence)


def test_of_too_much_output_the_middle_is_dropped_and_said_so(tmp_path: Path) -> None:
    here = shell(tmp_path, ':argv ["sh" "-c" "yes | head -c 149996; echo end"]')
    value = here.pass_through("(run-it)").value
    assert "\n[50000 bytes not kept]\n" in value
    assert value.endswith("y\nend\n")
    assert len(value) < MAX_OUTPUT + 100


def gone(pid: int) -> bool:
    """Whether a process has ended (it may still wait to be reaped by the init of this machine)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def ends(path: Path) -> bool:
    """Wait until the process whose id stands in ``path`` is gone."""
    pid = int(path.read_text())
    for _ in range(1500):
        if gone(pid):
            return True
        time.sleep(0.02)
    return False


def test_the_check_for_a_surviving_process_can_fail() -> None:
    assert not gone(os.getpid())


def test_past_its_deadline_a_program_and_its_children_are_stopped(tmp_path: Path) -> None:
    here = shell(
        tmp_path, ':timeout 2 :argv ["sh" "-c" "sleep 100 & echo $! > child; echo $$ > parent; wait"]'
    )
    result = here.pass_through("(run-it)")
    assert result.status == "timeout"
    assert re.fullmatch(rf"(run-it|sh) {DID_NOT_FINISH_WITHIN} 2(\.0)? s\.", result.message)
    assert ends(tmp_path / "parent")
    assert ends(tmp_path / "child")


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
def test_what_a_program_leaves_running_behind_it_is_stopped_too(tmp_path: Path, redirect: str) -> None:
    here = shell(tmp_path, f':timeout 2 :argv ["sh" "-c" "sleep 100 {redirect} & echo $! > child"]')
    result = here.pass_through("(run-it)")
    assert result.status == ("ok" if redirect else "timeout")
    assert ends(tmp_path / "child")


def test_a_cancelled_call_stops_its_program(tmp_path: Path) -> None:
    here = shell(tmp_path, ':argv ["sh" "-c" "echo $$ > parent; sleep 100"]')

    async def cancel() -> None:
        call = asyncio.create_task(here.enter("(run-it)"))
        while not (tmp_path / "parent").exists() or not (tmp_path / "parent").read_text():
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    assert ends(tmp_path / "parent")


async def test_a_program_is_put_away_however_often_its_call_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def remember(*words: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*words, **options))
        return started[0]

    monkeypatch.setattr("asyncio.create_subprocess_exec", remember)
    call = asyncio.create_task(run_argv(["sleep", "100"], ctx=ToolContext(Workspace(tmp_path))))
    while not started:
        await asyncio.sleep(0.01)
    while not call.done():
        call.cancel()
        await asyncio.sleep(0)
    assert call.cancelled()
    assert started[0].returncode is not None
    assert started[0]._transport.is_closing()  # type: ignore[attr-defined]


async def test_a_call_that_is_cancelled_while_its_program_starts_leaves_no_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(*words: str, **options: Any) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr("asyncio.create_subprocess_exec", cancelled)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(asyncio.CancelledError):
        await run_argv(["sleep", "100"], ctx=ToolContext(Workspace(tmp_path)))
    assert os.listdir("/proc/self/fd") == before


# def-http-tool


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind, body, status, packed = "text/plain", f"{self.command} {self.path}".encode(), 200, ""
        if self.path.startswith("/json"):
            kind = "application/json"
            body = json.dumps({"path": self.path, "agent": self.headers.get("x-agent")}).encode()
        elif self.path.startswith("/broken"):
            kind, body = "application/json", b"{"
        elif self.path.startswith("/missing"):
            status, body = 404, b"nothing here"
        elif self.path.startswith("/away"):
            status, body = 302, b""
        elif self.path.startswith("/huge"):
            body = b"x" * (MAX_OUTPUT + 1)
        elif self.path.startswith("/slow"):
            time.sleep(1)
        elif self.path.startswith("/odd"):
            kind, body = "text/plain; charset=no-such-thing", b"\xff"
        elif self.path.startswith("/packed"):
            packed = self.path.removeprefix("/packed/")
            inner = gzip.compress(b"x" * (10**8 if "bomb" in packed else 9))
            packed = packed.removeprefix("bomb/").replace("-", ", ")
            body = b"no" if packed == "GZIP" else gzip.compress(inner) if "," in packed else inner
        self.send_response(status)
        self.send_header("content-type", kind)
        if packed:
            self.send_header("content-encoding", packed)
        self.send_header("content-length", str(len(body)))
        self.send_header("location", "http://example.invalid/")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    here = QuietServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=here.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{here.server_port}"
    here.shutdown()
    here.server_close()
    thread.join()


def web(folder: Path, definition: str) -> Gateway:
    return loaded(folder, f'(def-http-tool fetch "Fetch." {definition})', consent=Yes())


def test_json_comes_back_as_data_and_text_as_text(tmp_path: Path, server: str) -> None:
    here = web(tmp_path, f':parameters [p {{:type str}}] :url f"{server}/{{p}}" :headers {{"x-agent" "q"}}')
    result = here.pass_through('(fetch "json")')
    assert result.value == {"path": "/json", "agent": "q"}
    assert result.side_effects == (f"requested:GET {server}/json",)
    assert here.pass_through('(fetch "text")').value == "GET /text"
    assert here.pass_through('(fetch "broken")').value == "{"
    assert here.pass_through('(fetch "odd")').value == "\ufffd"
    assert here.pass_through('(fetch "packed/gzip")').value == "x" * 9


def test_the_query_is_escaped(tmp_path: Path, server: str) -> None:
    here = web(tmp_path, f':parameters [q {{:type str}}] :url "{server}/json" :query {{"q" q  "n" 1}}')
    assert here.pass_through('(fetch "a&b=c d/é#x")').value["path"] == "/json?q=a%26b%3Dc+d%2F%C3%A9%23x&n=1"


def test_json_is_posted(tmp_path: Path, server: str) -> None:
    here = web(tmp_path, f':parameters [x {{:type dict}}] :method "post" :url "{server}/" :json {{"x" x}}')
    assert here.pass_through('(fetch {"a" [1 nil]})').value == {"x": {"a": [1, None]}}


def test_a_request_asks_first(tmp_path: Path, server: str) -> None:
    here = loaded(tmp_path, f'(def-http-tool fetch "Fetch." :url "{server}/json")')
    assert here.pass_through("(fetch)").message == "fetch waits for a person's approval: it uses the network."


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("missing", "answered 404: nothing here"),
        ("away", "answered 302: "),
        ("huge", f"{ANSWERED_WITH_MORE_THAN} {MAX_OUTPUT:,} bytes."),
        ("packed/bomb/gzip", f"{ANSWERED_WITH_MORE_THAN} {MAX_OUTPUT:,} bytes."),
        ("packed/bomb/gzip-gzip", "answered with the compression gzip, gzip, which was not requested."),
        ("packed/br", "answered with the compression br, which was not requested."),
        ("packed/GZIP", "answered with data that cannot be decompressed."),
    ],
)
def test_an_answer_that_is_none_is_told(tmp_path: Path, server: str, path: str, sentence: str) -> None:
    result = web(tmp_path, f':url "{server}/{path}"').pass_through("(fetch)")
    assert (result.status, result.message) == ("error", f"{server}/{path} {sentence}")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1/x", f"http://127.0.0.1:1/x {CANNOT_BE_REACHED}: "),
        ("http://[::1", "http://[::1 is not an address: "),
        ("ftp://127.0.0.1/x", f"ftp://127.0.0.1/x {CANNOT_BE_REACHED}: "),
    ],
)
def test_a_server_that_is_not_there_is_told(tmp_path: Path, url: str, words: str) -> None:
    result = web(tmp_path, f':url "{url}"').pass_through("(fetch)")
    assert result.status == "error"
    assert result.message.startswith(words)
    assert "\n" not in result.message


def test_a_slow_server_is_not_waited_for(tmp_path: Path, server: str) -> None:
    result = web(tmp_path, f':timeout 0.2 :url "{server}/slow"').pass_through("(fetch)")
    assert result.status == "timeout"  # whichever deadline is heard of first, the tool's or the request's
    assert re.fullmatch(
        rf"(fetch did not finish|http://127.0.0.1:\d+/slow {DID_NOT_ANSWER}) within 0\.2 s\.", result.message
    )
