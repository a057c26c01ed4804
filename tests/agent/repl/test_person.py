"""The person's module at the prompt: all of Hy, tools as functions, files, and the commands beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    CHARACTERS_LEFT_OUT,
    DID_YOU_MEAN,
    DOES_NOT_FIT_HERE,
    HAS_MORE_THAN,
    IS_IN_USE_BY,
    IS_NOT_KNOWN_HERE,
    IT_ONLY_READS,
    IT_WRITES_FILES,
    THERE_IS_NO_FILE,
    THERE_IS_NO_MODEL,
    WRITE_FIRST,
)
from words import files, scripted

from quoth.agent.client import AsyncAgent
from quoth.agent.repl.entries import is_open, kind_of
from quoth.agent.repl.person import LeftBehind, PromptNames
from quoth.agent.repl.repl import Repl
from quoth.agent.repl.values import MOST, as_hy
from quoth.tools.errors import UsageError
from quoth.tools.storage.file_lock import in_use

SHOP = """
(require quoth [def-cognitive-tool])
(import os)
(setv rate 2)
(defmacro twice [form] `(do ~form ~form))
(def-cognitive-tool price "The price of a thing."
  :parameters [name {:type str :doc "Its name"} fast {:type bool :default False :doc "At once"}]
  :body (* rate (len name)))
"""


@pytest.fixture
async def repl(tmp_path: Path) -> AsyncIterator[Repl]:
    files(tmp_path, {"shop.hy": SHOP, "notes.txt": "one\ntwo\n"})
    async with AsyncAgent(workspace=tmp_path, model=scripted(*["Heard."] * 9), session="s1") as agent:
        yield Repl(agent)


async def said(repl: Repl, capsys: pytest.CaptureFixture[str], *entries: str) -> str:
    """All that the REPL says to these entries, what went wrong after a mark."""
    told = []
    for entry in entries:
        try:
            await repl.one(entry)
        except UsageError as error:
            told.append(f"! {error}\n")
        shown = capsys.readouterr()
        told += [shown.out, f"! {shown.err}" if shown.err else ""]
    return "".join(told)


def asked(repl: Repl) -> str:
    """The last request to the model."""
    backend: Any = repl.agent.models.backend()
    return str(backend.seen[-1])


# What an entry is

KINDS = {
    "lisp": ["(+ 1 2)", "'x", "'(a b)", "`(a ~b)", "[1 2]", "{1 2}", '"text"', '"many words"', "3", "-1.5",
             ":key", "bound", "bound.attr", "*1", 'f"{bound}"', "#(1 2)", "#{1}", "True", "(unclosed",
             ")", "}]", "; a note"],
    "prose": ["hello", "hello you", "list", "[a note] read this", '"Foo" is what?', "'tis the season",
              "10:30", "2026-11-23", "it's", "What is (+ 1 2)?", ":)", "# Title", "- item", "a, b", "x.y",
              "help me"],
    "command": [",help", ",x y"],
    "word": ["exit", "quit", "exit()", "/exit", ":q", "help", "/help", "?", "help policy"],
    "nothing": ["", "  "],
}  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), [(text, kind) for kind in KINDS for text in KINDS[kind]])
def test_what_an_entry_is(text: str, kind: str) -> None:
    assert kind_of(text, lambda name: name in ("bound", "*1")) == kind


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [("(+ 1", True), ("'(a", True), ('(print "a', True), ("(+ 1 2)", False), ("(+ 1]", False), ("[a", False)],
)
def test_lisp_goes_on_until_it_is_closed(text: str, goes_on: bool) -> None:
    assert is_open(text) is goes_on


# Evaluating

ENTRIES = {
    "names stay": (("(setv x 20)", "(+ x 1)", "x"), "21\n20\n"),
    "functions and macros": (
        ("(defn double [n] (* 2 n))", "(defmacro add [a b] `(+ ~a ~b))", "(add (double 4) 1)"),
        "9\n",
    ),
    "imports": (
        ("(import math [floor])", "(floor 2.7)", "(require hyrule [->])" if False else "1"),
        "2\n1\n",
    ),
    "values before": (("1", "2", "3", "[_ *1 *2 *3]"), "1\n2\n3\n3\n3\n2\n1\n"),
    "several forms": (("(setv a 1) (setv b 2) (+ a b)",), "3\n"),
    "data is Hy": (('{"a" [1 2.5 None] "b" \'sym}',), '{"a" [1 2.5 None]  "b" \'sym}\n'),
    "a tool by position and by name": (
        ('(read-file "notes.txt")', '(read-file :path "notes.txt" :start 2)', "(len _)"),
        "one\ntwo\ntwo\n4\n",
    ),
    "an expansion": (("(macroexpand '(when a b))",), "'(if a (do b) None)\n"),
    "a description": (("(describe echo)",), "(echo :text str)\nReturn the text unchanged."),
    "a macro": (
        ("(defmacro twice [form] `(do ~form ~form))", "(source 'twice)", "(describe 'when)"),
        "(defmacro twice [form] `(do ~form ~form))\nwhen(test, *body)\n",
    ),
    "a source": (("(source echo)",), "(def-cognitive-tool echo"),
    "the reply of the agent": (("tell me", "(.upper _)"), "Heard.\nHEARD.\n"),
    "names of other Lisps": (
        ("(first [4  5])", "(last [4 5])", "(car [4 5])", "(cdr [4 5])", "(-> 7 (- 2)  str)", "(progn 1 2)"),
        "4\n5\n4\n[5]\n5\n2\n",
    ),
    "mapping": (
        (
            "(mapcar (fn [x] (* x x)) [1 2])",
            "(pmap str [1 2])",
            "(map first [[1] [2]])",
            "(gather (+ 1 2) 4)",
        ),
        '[1 4]\n["1" "2"]\n[1 2]\n[3 4]\n',
    ),
    "binding": (
        ("(let ((x 1)) x)", "(let [x 2] x)", "(let* ((x 1) (y x)) y)", "(def z 9)", "z"),
        "1\n2\n1\n9\n",
    ),
    "choosing": (
        (
            "[(cond ((= 1 2) 3))]",
            '(cond ((= 1 2) "a") (t "b"))',
            "(cond False 1 True 2)",
            "(if True 5)",
            "(setv fs [(fn [x] (= x 1)) (fn [x] (= x 2))])",
            "(cond ((get fs 0) 2) 7 ((get fs 1) 2) 8)",
            "(cond ((get fs 0) 2) ((get fs 1) 1))",
        ),
        "None\nb\n2\n5\n8\nNone\n" if False else "[None]\nb\n2\n5\n8\n",
    ),
    "functions of other Lisps": (
        (
            "(defun f (a &optional (b 2)) (+ a b))",
            "(f 1)",
            "((lambda (x) (* x x)) 3)",
            "(reduce + 0 [1 2 3])",
        ),
        "3\n9\n6\n",
    ),
    "a name of one's own wins": (
        (
            '(defn first [x] "mine")',
            "(first [4])",
            "(setv nil 3)",
            "nil",
            "(defmacro inc [x] `(+ ~x 10))",
            "(inc 1)",
            "(setv t False)",
            "(cond ((= 1 2) 1) (t 2) (True 3))",
        ),
        "mine\n3\n11\n3\n",
    ),
    "a macro of one's own": (
        (
            "(defmacro both [x] `(+ (first ~x) (last ~x)))",
            "(both [1 2 3])",
            "(defmacro name-of [x] (str x))",
            "(name-of nil)",
        ),
        "4\nnil\n",
    ),
    "Hy stays Hy": (
        ("':k", ":k", "(dict :a 1)", "[(for [x [1]] x)]", "'(first nil)", "(get {:k 5} :k)", "(type nil)"),
        ":k\n:k\n{\"a\" 1}\n[None]\n'(first nil)\n5\n<class 'NoneType'>\n",
    ),
    "a path and a program are arguments": (
        ("(import pathlib [Path])", '(read-file (Path "notes.txt"))', "(eval '(+ 1 2))"),
        "one\ntwo\n3\n",
    ),
}


@pytest.mark.parametrize("story", ENTRIES)
async def test_lisp_is_evaluated(repl: Repl, capsys: pytest.CaptureFixture[str], story: str) -> None:
    entries, told = ENTRIES[story]
    assert (await said(repl, capsys, *entries)).startswith(told)


FAULTS = {
    "(read-fil 1)": "NameError: there is no name read-fil. Did you mean read-file?\n",
    "(prnt 1)": "NameError: there is no name prnt. Did you mean print?\n",
    "(wen True 1)": "NameError: there is no name wen. Did you mean when?\n",
    f"(+ 1 {'9' * 5000})": f"The number {'9' * 20}… {HAS_MORE_THAN} 4300 digits. Write it as a text.\n",
    "(print “hi”)": 'NameError: there is no name “hi”; a text is in straight quotes: "…".\n',
    "(last 1 2)": "NameError: there is no name last; write (last [4 5]).\n",
    "(sorted [[1]] :key first)": f"NameError: there is no name first; {WRITE_FIRST}.\n",
    "(setq x 1)": "NameError: there is no name setq; Hy says (setv x 1).\n",
    "(lambda x x)": "NameError: there is no name lambda; write ((lambda (x) (* x x)) 3).\n",
    "(describe when)": "NameError: when is a macro and has no value. To read about it: (describe 'when)\n",
    "(describe)": "TypeError: describe() missing 1 required",
    '(getf {"k" 1} :k)': 'invalid: line 1, column 15: getf is of Common Lisp; write (get {"k" 1} "k").\n',
    ")": "invalid: line 1, column 1: there is no open form for this ); remove it\n",
    "(def-cognitive-tool price)": "invalid: line 1, column 1: price needs a description in quotes before its",
    "(/ 1 0)": "ZeroDivisionError: division by zero\n",
    "(defn f []\n  (/ 1 0))\n(f)": "ZeroDivisionError: division by zero\n  entry 1, line 2: (/ 1 0))\n",
    "(+ 1]": "invalid: line 1, column 5: this ] does not close the ( at line 1, column 1; write ) instead\n"
    "(+ 1]\n    ^\n",
    "(defn)": f"invalid: line 1, column 2: defn {DOES_NOT_FIT_HERE}; write (defn",
    "(let 1)": f"invalid: line 1, column 6: let {DOES_NOT_FIT_HERE}; write (let",
    '(read-file "none.txt")': f"error: {THERE_IS_NO_FILE} none.txt.",
    "(read-file :pat 1)": f"invalid: read-file: :path is missing; :pat is unknown ({DID_YOU_MEAN} :path?)",
    '(write-file "a.txt" "x")': f"write-file waits for a person's approval: {IT_WRITES_FILES} (request ",
    "(source len)": f"The source of len {IS_NOT_KNOWN_HERE}.\n",
    ",load": ",load needs a file: ,load shop.hy\n",
    ",load none.hy": f"{THERE_IS_NO_FILE} none.hy.\n",
    ",fly": ",fly needs a flight plan: ,fly plans/self-test.org\n",
    ",say": ",say needs a text.\n",
    ",trace": "No form has raised an exception yet.\n",
    ",undo": "The conversation has no message to take back.\n",
    ",session s2": "This is session s1. To start another: quoth --session s2\n",
    ",model nonsense": f"{THERE_IS_NO_MODEL} nonsense.",
}


@pytest.mark.parametrize("entry", FAULTS)
async def test_what_went_wrong_is_told(repl: Repl, capsys: pytest.CaptureFixture[str], entry: str) -> None:
    assert (await said(repl, capsys, entry)).startswith("! " + FAULTS[entry])


async def test_the_traceback_is_kept(repl: Repl, capsys: pytest.CaptureFixture[str]) -> None:
    told = await said(repl, capsys, "(defn f [] (/ 1 0))", "(f)", ",trace", "*e")
    assert 'File "<entry 1>", line 1, in f\n    (defn f [] (/ 1 0))\n' in told
    assert told.endswith("ZeroDivisionError('division by zero')\n")
    called = await said(repl, capsys, '(read-file "none.txt")', ",trace")
    assert "functions.py" not in called
    assert called.endswith("To see the traceback inside a tool: quoth --debug\n")


def test_a_long_value_is_cut() -> None:
    assert as_hy(list(range(MOST + 500))).endswith("… and 500 more items")
    assert CHARACTERS_LEFT_OUT in as_hy("x" * 50_000)
    assert as_hy('a "b"\n\x1b[31m') == '"a \\"b\\"\n\\x1b[31m"'


# Tools

DOUBLE = '(def-cognitive-tool double "Double." :parameters [n {:type int :doc "Which"}] :body (* FACTOR n))'


async def test_a_tool_that_is_made_is_in_the_belt_at_once(
    repl: Repl, capsys: pytest.CaptureFixture[str]
) -> None:
    await said(repl, capsys, "hello")
    told = await said(repl, capsys, DOUBLE.replace("FACTOR", "2"), "(double 21)", ",belt")
    assert told.startswith("<tool (double :n int)>\n42\n")
    assert "\n- double: Double." in told.partition("AVAILABLE TOOLS")[2]
    await said(repl, capsys, "hello again")
    assert "double" in asked(repl)


async def test_a_tool_that_is_made_is_in_the_belt_unless_the_rules_deny_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path, {"policy.hy": "(deny (send-message)) (deny (treble))"})
    policy, double = tmp_path / "policy.hy", DOUBLE.replace("FACTOR", "2")
    async with AsyncAgent(workspace=tmp_path, model=scripted("Heard."), session="s1", policy=policy) as agent:
        before = await said(Repl(agent), capsys, ",belt")
        after = await said(Repl(agent), capsys, double, double.replace("double", "treble"), ",belt")
    assert "- send-message:" not in before
    assert "\n- double: Double." in after
    assert "- treble:" not in after


async def test_a_tool_may_be_made_again_here_but_not_one_that_ships(
    repl: Repl, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [DOUBLE.replace("FACTOR", factor) for factor in ("2", "3")]
    assert (await said(repl, capsys, *made, "(double 7)")).endswith("21\n")
    assert "already a tool named echo" in await said(repl, capsys, made[0].replace("double", "echo"))


async def test_the_body_of_a_tool_may_call_others_as_functions(
    repl: Repl, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = '(def-cognitive-tool first-of "F." :parameters [p {:type path}] :body (get (read-file p) 0))'
    waits = plain.replace("first-of", "last-of").replace(
        "(get (read-file p) 0)", "(get (await (read-file p)) -2)"
    )
    told = await said(repl, capsys, plain, waits, '(first-of "notes.txt")', '(last-of "notes.txt")')
    assert told.endswith("\no\no\n")
    rows = [row for row in repl.agent.audit.rows() if row["tool"] == "read-file"]
    assert [(row["route"], row["depth"]) for row in rows] == [("tool", 1)] * 2


# Files


async def test_a_file_is_loaded_with_its_tools_names_and_macros(
    repl: Repl, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = repl.agent.workspace.root / "shop.hy"
    told = await said(repl, capsys, f",load {shop}", '(price "plum")', "rate", "(twice (+ 1 1))", ",reload")
    assert told == "shop.hy: 1 tool: price\n8\n2\n2\nNo file has changed since it was loaded.\n"


async def test_a_changed_file_is_told_and_loaded_again_or_the_old_tools_stay(
    repl: Repl, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = repl.agent.workspace.root / "shop.hy"
    await said(repl, capsys, f",load {shop}")
    assert repl.person.files.news() == []
    shop.write_text(SHOP.replace("(setv rate 2)", "(setv rate 3"))
    assert (repl.person.files.news(), repl.person.files.news()) == ([shop], [])
    told = await said(repl, capsys, ",reload", '(price "plum")')
    assert told.startswith(f"! {shop}:")
    assert told.endswith("8\n")
    shop.write_text(SHOP.replace("(setv rate 2)", "(setv rate 3)").replace("price", "cost"))
    told = await said(repl, capsys, ",reload", '(cost "plum")', "price")
    assert told.startswith("shop.hy: 1 tool: cost\n12\n")
    assert "price" not in repl.agent.table


async def test_the_startup_file_of_the_user_is_evaluated(
    repl: Repl, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTH_CONFIG", str(tmp_path))
    files(tmp_path, {"init.hy": "(defn hi [] 7)\n(setv x"})
    await repl._begin()
    assert "init.hy was only partly evaluated." in capsys.readouterr().err
    files(tmp_path, {"init.hy": "(defn hi [] 7)"})
    await repl._begin()
    assert await said(repl, capsys, "(hi)") == "7\n"


# Commands


async def test_commands_tell_of_the_session(repl: Repl, capsys: pytest.CaptureFixture[str]) -> None:
    told = await said(
        repl, capsys, "hello", ",session", ",model", ",tokens", ",policy", ',policy (read-file "x")'
    )
    assert told == (
        "Heard.\n"
        f"s1, {repl.agent.workspace.root}, 1 message so far\n"
        "scripted, calls as call-form\n"
        "This session used 0 input and 0 output tokens in 1 request.\n"
        "You have no rules; quoth asks you before it changes anything.\n"
        f"allow: {IT_ONLY_READS}.\nNo rule matches.\n"
    )
    assert "▶ r1" in await said(repl, capsys, ",log")
    assert (await said(repl, capsys, ",sessions")).startswith("s1  ")


async def test_the_last_message_is_taken_back(repl: Repl, capsys: pytest.CaptureFixture[str]) -> None:
    told = await said(repl, capsys, "one please", "two please", ",undo", "three please")
    assert "Taken back: two please\n" in told
    assert "one please" in asked(repl)
    assert "three please" in asked(repl)
    assert "two please" not in asked(repl)


async def test_a_message_is_not_taken_back_while_another_writes_to_the_session(
    repl: Repl, capsys: pytest.CaptureFixture[str]
) -> None:
    await said(repl, capsys, "one please", '(write-file "b.txt" "by hand")')
    with in_use(repl.agent.store.path, "s1"):
        told = await said(repl, capsys, ",undo")
    assert told.startswith(f"! Session s1 {IS_IN_USE_BY} process ")
    assert "Taken back: one please\n" in await said(repl, capsys, ",undo")


async def test_what_was_written_since_a_message_is_put_back_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = (
        '(write-file :path "a.txt" :content "one")',
        "It is.",
        '(edit-file "a.txt" "one" "two")',
        "Now.",
    )
    given = {"model": scripted(*replies), "session": "s1", "consent": "yes"}
    async with AsyncAgent(workspace=files(tmp_path, {}), **given) as agent:
        repl = Repl(agent)
        await said(repl, capsys, "one please", "two please")
        assert "new file a.txt, 1 line\n│ + two\n" in await said(repl, capsys, ",diff")
        told = await said(repl, capsys, ",undo")
        assert told == (
            "Taken back: two please\nPut back: 1 file\n  replaces the only line of a.txt with 1 line\n"
            "! The next message continues from before it.\n"
        )
        assert (tmp_path / "a.txt").read_text() == "one"
        assert (await said(repl, capsys, ",redo")).startswith("Written again: 1 file\n")
        assert (tmp_path / "a.txt").read_text() == "two"
        assert "The effects of its calls remain." in await said(repl, capsys, ",undo message")
        assert (tmp_path / "a.txt").read_text() == "two"
        await said(repl, capsys, '(write-file "b.txt" "by hand")', ",undo files")
        assert not (tmp_path / "b.txt").exists()
        await said(repl, capsys, ",undo files", ",undo files")
        assert not (tmp_path / "a.txt").exists()
        assert await said(repl, capsys, ",undo") == "! The conversation has no message to take back.\n"
        assert await said(repl, capsys, ",undo all") == (
            "! Type ,undo, ,undo files or ,undo message; not ,undo all.\n"
        )


# Ctrl-C


@pytest.mark.parametrize("form", ["(while True)", "(while True (try (/ 1 0) (except [ZeroDivisionError])))"])
async def test_a_form_that_does_not_end_is_stopped(repl: Repl, form: str) -> None:
    person = repl.person
    await person.evaluate("1")
    task = asyncio.ensure_future(person.evaluate(form))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await person.evaluate("(+ 1 1)")).value == 2


async def test_a_form_that_cannot_be_stopped_is_left_behind(
    repl: Repl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.agent.repl.person.PATIENCE", 0.05)
    person: PromptNames = repl.person
    await person.evaluate("(import time threading) (setv gate (threading.Event))")
    task = asyncio.ensure_future(person.evaluate("(.acquire (threading.Lock)) (.wait gate)"))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(LeftBehind, match="It continues in the background"):
        await task
    assert (await person.evaluate("(.set gate) 5")).value == 5
