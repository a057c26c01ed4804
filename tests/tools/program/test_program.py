"""Programs: what Lisp can do in the sandbox, how its inner calls pass the door, and that nothing gets out."""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import os
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hy
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    CANNOT_BE_USED_IN_A,
    CANNOT_LEAVE_THE_PROGRAM,
    DID_NOT_FINISH_WITHIN,
    IS_NESTED_DEEPER_THAN,
    IS_NEVER_CLOSED,
    IT_EXCEEDED_ITS_TIME,
    IT_HAS_MORE_THAN,
    IT_IS_CALLED_AS,
    IT_WRITES_FILES,
    ITS_GUARD_REFUSED_THESE_ARGUMENTS,
    NESTED_DEEPER_THAN,
    NESTED_TOO_DEEPLY,
    NOTHING_RUNS_WHILE_A_PROGRAM,
    THE_PROGRAM_IS_NESTED_TOO,
    THE_PROGRAM_USES,
    THE_PROGRAM_WAS_STOPPED,
    THERE_ARE_MORE_THAN,
    THERE_IS_NO_FILE,
    WHICH_IS_NOT_DEFINED,
)
from words import Gateway, Spy, complaint, files, shipped, tool

from quoth.tools.call.call import ALLOW, ask, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import ToolFailure
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code, print_string
from quoth.tools.program import compiler as program
from quoth.tools.program.compiler import PURE_MACROS, ProgramError, compile_program, free_names
from quoth.tools.sandbox.pool import SandboxLimits
from quoth.tools.sandbox.runner import Sandbox
from quoth.tools.sandbox.wall import bounded

SMALL = SandboxLimits(seconds=0.4, memory=48 * 1024 * 1024, calls=50)


class Worker:
    """One sandbox for a whole module, and the loop it lives in."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.sandbox = Sandbox(SMALL)
        self.calls: list[CallForm] = []

    async def _call(self, form: CallForm, name: str) -> Any:
        self.calls.append(form)
        if form.tool == "fails":
            raise ToolFailure("denied", "fails was denied: it always is.")
        return form.args.get("text", list(form.positional))

    def run(self, text: str) -> Any:
        return self.both(text)[0]

    def both(self, text: str) -> tuple[Any, str]:
        """The program's value and what it printed."""
        self.calls.clear()
        names = ["echo", "eval", "fails", "read-file"]
        return self.loop.run_until_complete(self.sandbox.run(compile_program(text), names, self._call))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    here = Worker()
    yield here
    here.loop.run_until_complete(here.sandbox.aclose())
    here.loop.close()


# What works

WORKS: list[tuple[str, Any]] = [
    ("42", 42),
    ("(+ 1 2)", 3),
    ("(* 2 (+ 3 4))", 14),
    ("(// 7 2)", 3),
    ("(% -7 3)", 2),
    ("(** 2 100)", 2**100),
    ("(/ 1 4)", 0.25),
    ("(- 5)", -5),
    ("(< 1 2 3)", True),
    ("(and 1 0 2)", 0),
    ("(or 0 None 2)", 2),
    ("(not 1)", False),
    ("(& 6 3)", 2),
    ("(<< 1 4)", 16),
    ("(bnot 5)", -6),
    ("(let [x 1 y 2] (+ x y))", 3),
    ("(setv x 3) (+= x 4) x", 7),
    ("(defn double [n] (* 2 n)) (double 21)", 42),
    ("(defn f [a [b 2] #* c #** d] [a b c d]) (f 1 3 4 :e 5)", [1, 3, [4], {"e": 5}]),
    ("((fn [x] (* x x)) 7)", 49),
    ("(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 15)", 610),
    ("(lfor x (range 5) :if (% x 2) (* x x))", [1, 9]),
    ("(lfor x [1 2] y [3 4] (* x y))", [3, 4, 6, 8]),
    ("(dfor x [1 2] x (* x x))", {1: 1, 2: 4}),
    ("(sorted (sfor x [2 1 2] x))", [1, 2]),
    ("(sum (gfor x [1 2 3] x))", 6),
    ("(cond (= 1 2) :a  True :b)", "b"),
    ('(when (> 2 1) "yes")', "yes"),
    ("(match [1 2] [a b] (+ a b)  _ 0)", 3),
    ('(match 5 n :if (> n 3) "big"  _ "small")', "big"),
    ("(lfor y [1 2] (let [x 1] (+ x y)))", [2, 3]),
    ("(lfor y [1 2] :do (setv z y) z)", [1, 2]),
    ("(dfor y [1 2] y (do (setv q y) q))", {1: 1, 2: 2}),
    ("(sorted (sfor y [2 1] (do (setv q y) q)))", [1, 2]),
    ("(sum (gfor y [2 1] (do (setv q y) q)))", 3),
    ("(lfor y [1 2] (do (setv q y) (lfor z [1 2] :if (do (setv k z) (> k 1)) (+ q z))))", [[3], [4]]),
    ("(defn f [xs] (lfor x xs (let [y x] (* y 2)))) (f [1 2])", [2, 4]),
    ("(lfor y [1 2] (try (/ 1 (- y 1)) (except [ZeroDivisionError] 0)))", [0, 1.0]),
    ("(lfor y [1] (let [x y] (echo :text x)))", [1]),
    ('(try (/ 1 0) (except [e ZeroDivisionError] (str e)) (else "no"))', "division by zero"),
    ("(try (fails) (except [e Exception] (str e)))", "fails was denied: it always is."),
    ('(setv x 2) f"{x :03d} and {(+ x 1)}"', "002 and 3"),
    ("(import math) (math.floor (math.sqrt 17))", 4),
    ("(import math [sqrt]) (sqrt 16)", 4.0),
    ('(import json) (json.dumps {"a" [1 None]})', '{"a": [1, null]}'),
    ('(import re) (re.findall "[0-9]+" "a1b22")', ["1", "22"]),
    ('(get {"path" 1} :path)', 1),
    ('(get [{"path" "a"}] 0 "path")', "a"),
    ("(cut [1 2 3 4] 1 3)", [2, 3]),
    ('(.upper "abc")', "ABC"),
    ('(.join ", " ["a" "b"])', "a, b"),
    ('(len (.splitlines "a\nb"))', 2),
    ("(setv n 0) (while (< n 5) (+= n 1)) n", 5),
    ("(setv n 0) (for [x [1 2 3]] (when (= x 2) (continue)) (+= n x)) n", 4),
    ("(setx y 3)", 3),
    ("(defclass Point [] (setv x 1)) Point.x", 1),
    ("(setv d {}) (setv (get d :k) :v) d", {"k": "v"}),
    ("[:a #(1 2) {:b None} #{3}]", ["a", [1, 2], {"b": None}, {3}]),
    ("(in :a [:a :b])", True),
    (":alone", "alone"),
    ("(list (map echo [1 2]))", [[1], [2]]),
    ("(str (quote a))", "a"),
    ("(chainc 1 < 2 <= 2)", True),
    ("(.pop [1 2 3])", 3),
    ("(sorted [3 1 2] :reverse True)", [3, 2, 1]),
    ("(max (map abs [-3 2]))", 3),
    ("(isinstance 1 int)", True),
    ("None", None),
    ("(do)", None),
    ("(import)", None),
    ("(setv)", None),
    ("(defn f [x] (when x (return 1)) 2) [(f 1) (f 0)]", [1, 2]),
    ("(setv a 1)", None),
    ("(assert (= 1 1))", None),
    ("1 2 3", 3),
    ("; only the last counts\n(+ 1 1) ; two", 2),
]


@pytest.mark.parametrize(("text", "value"), WORKS)
def test_a_program_has_the_value_of_its_last_form(worker: Worker, text: str, value: Any) -> None:
    found = worker.run(text)
    assert found == value
    assert type(found) is type(value)


def test_what_is_printed_comes_beside_the_value(worker: Worker) -> None:
    assert worker.both('(print "a" 1) (print "b") 3') == (3, "a 1\nb\n")


def test_programs_share_nothing(worker: Worker) -> None:
    worker.run("(setv secret 1)")
    assert f"secret, {WHICH_IS_NOT_DEFINED}" in complaint(ProgramError, lambda: worker.run("secret"))


NUMBERS = st.integers(-9, 9).map(str)


def _calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=1, max_size=3).map(" ".join)
    two = st.tuples(inner, inner).map(" ".join)
    return (
        st.tuples(st.sampled_from(["+", "*", "max", "min"]), two).map(lambda t: f"({t[0]} {t[1]})")
        | st.tuples(st.sampled_from(["-", "<", "=", ">=", "and", "or"]), several).map(
            lambda t: f"({t[0]} {t[1]})"
        )
        | st.tuples(inner, inner, inner).map(lambda t: f"(if {t[0]} {t[1]} {t[2]})")
        | st.tuples(inner, inner).map(lambda t: f"(let [x {t[0]}] (+ x {t[1]}))")
        | st.tuples(inner, inner).map(lambda t: f"(cond {t[0]} {t[1]} True 0)")
        | several.map(lambda t: f"(len [{t}])")
        | several.map(lambda t: f"(sum (lfor y [{t}] (* y 2)))")
        | st.tuples(inner, inner).map(lambda t: f"((fn [a] (- a {t[1]})) {t[0]})")
        | st.tuples(inner).map(lambda t: f"(do (setv z {t[0]}) (+ z 1))")
    )


PROGRAMS = st.recursive(NUMBERS, _calls, max_leaves=12)


@given(PROGRAMS)
def test_a_pure_program_means_what_hy_says_it_means(worker: Worker, text: str) -> None:
    assert worker.run(text) == hy.eval(hy.read(text), module=types.ModuleType("pure"))


def test_every_macro_that_is_allowed_is_one_of_hys(worker: Worker) -> None:
    known = set(builtins._hy_macros)  # type: ignore[attr-defined]
    assert known >= PURE_MACROS - {"hyx_Xfull_stopX"}
    assert not PURE_MACROS & {"do_mac", "eval_and_compile", "defmacro", "require", "py", "pys", "pragma"}


# Inner calls


class Yes:
    """Consent that is always given."""

    async def request(self, *_: Any) -> Any:
        return ALLOW


def evaluate(here: Gateway, text: str, **marks: Any) -> Any:
    return here.pass_through(CallForm("eval", {"form": Code(text)}), **marks)


def test_a_tool_is_a_function_and_its_call_a_passage_of_the_door(tmp_path: Path) -> None:
    here = shipped(files(tmp_path, {"a.txt": "one\ntwo\n"}))
    result = evaluate(here, '(len (.splitlines (read-file :path "a.txt")))', user="ann")
    assert (result.status, result.value) == ("ok", 2)
    inner, outer = here.rows
    assert (inner["tool"], inner["parent"], inner["depth"], inner["route"]) == (
        "read-file",
        outer["id"],
        1,
        "program",
    )
    assert (outer["tool"], outer["parent"], outer["depth"]) == ("eval", None, 0)
    assert inner["user"] == "ann"
    assert inner["digest"] == CallForm("read-file", {"path": "a.txt"}).digest


def test_tools_compose(tmp_path: Path) -> None:
    here = shipped(files(tmp_path, {"a.py": "guard\n", "b.py": "x\nguard\n"}))
    result = evaluate(here, '(lfor h (grep-search :pattern "guard") (get h "path"))')
    assert result.value == ["a.py", "b.py"]


def test_positional_and_named_arguments_reach_the_tool(tmp_path: Path) -> None:
    params: dict[str, dict[str, Any]] = {"a-b": {}, "c": {"type": int, "default": 1}}
    here = shipped(tmp_path, tool("probe", params=params, body=lambda a_b, c: [a_b, c]))
    assert evaluate(here, '[(probe "x") (probe :a-b "y" :c 2) (probe "z" :c 3)]').value == [
        ["x", 1],
        ["y", 2],
        ["z", 3],
    ]


def test_an_inner_denial_arrives_at_that_call_and_can_be_caught(tmp_path: Path) -> None:
    body = Spy()
    here = shipped(tmp_path, tool("closed", body=body, guard=Spy(deny("keep out"))))
    result = evaluate(here, '[1 (try (closed) (except [e PermissionError] (str e))) (echo "after")]')
    assert result.value == [1, "closed was denied: keep out. (in (closed))", "after"]
    assert [(row["tool"], row["status"]) for row in here.rows] == [
        ("closed", "denied"),
        ("echo", "ok"),
        ("eval", "ok"),
    ]
    assert not body.ran


@pytest.mark.parametrize(
    ("guard", "effects", "status", "message"),
    [
        (Spy(False), [], "denied", f"probe was denied: {ITS_GUARD_REFUSED_THESE_ARGUMENTS}. (in (probe))"),
        (None, ["writes"], "pending", f"probe waits for a person's approval: {IT_WRITES_FILES}."),
        (Spy(ask("sure?")), [], "pending", "probe waits for a person's approval: sure?."),
    ],
)
def test_an_inner_refusal_nobody_catches_is_that_of_the_program(
    tmp_path: Path, guard: Any, effects: list[str], status: str, message: str
) -> None:
    after = Spy()
    here = shipped(tmp_path, tool("probe", guard=guard, effects=effects), tool("after", body=after))
    result = evaluate(here, "(probe) (after)")
    assert (result.status, result.message) == (status, message)
    assert not after.ran


INNER_FAULTS = [
    ("(echo)", "invalid", f"echo: :text is missing. {IT_IS_CALLED_AS} (echo :text str). (in (echo))"),
    (
        "(echo 1 2)",
        "invalid",
        "echo takes 1 argument; 2 is one too many. It is called as (echo :text str). (in (echo 1 2))",
    ),
    ('(read-file "no")', "error", f'{THERE_IS_NO_FILE} no. (in (read-file :path "no"))'),
    ("(slow)", "timeout", f"slow {DID_NOT_FINISH_WITHIN} 0.05 s. (in (slow))"),
]


@pytest.mark.parametrize(("text", "status", "message"), INNER_FAULTS)
def test_an_inner_fault_is_told_with_its_call(tmp_path: Path, text: str, status: str, message: str) -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    here = shipped(tmp_path, tool("slow", body=slow, timeout=0.05))
    result = evaluate(here, text)
    assert (result.status, result.message) == (status, message.replace(':path "no"', '"no"'))


def test_eval_inside_eval_is_one_level_deeper(tmp_path: Path) -> None:
    here = shipped(tmp_path, tool("depth", body=lambda call: call.depth))
    assert evaluate(here, '(+ 1 (eval "(* 2 (depth))"))').value == 5
    assert [row["depth"] for row in here.rows] == [2, 1, 0]


def test_eval_without_end_stops_at_the_depth_limit(tmp_path: Path) -> None:
    here = shipped(tmp_path)
    text = "1"
    for _ in range(8):
        text = f"(+ 1 (eval {print_string(text)}))"
    assert evaluate(here, text).value == 9
    assert {row["depth"] for row in here.rows} == set(range(9))
    here = shipped(tmp_path, max_depth=3)
    result = evaluate(here, text)
    assert result.status == "denied"
    assert result.message.startswith(f"eval {IS_NESTED_DEEPER_THAN} 3 calls. (in (eval ")
    assert len(here.rows) == 5


def test_a_program_cannot_mark_its_calls(tmp_path: Path) -> None:
    body = Spy()
    here = shipped(tmp_path, tool("probe", body=body, effects=["writes"]))
    for mark in (":approved True", ':user "root"', ":depth 0", ":ctx None", ":call None"):
        assert evaluate(here, f"(probe {mark})").status == "invalid"
    assert not body.ran


def test_calls_in_one_program_are_counted(worker: Worker) -> None:
    assert len(worker.run("(lfor i (range 50) (echo :text i))")) == 50
    said = complaint(ProgramError, lambda: worker.run("(lfor i (range 51) (echo :text i))"))
    assert said == f"{THE_PROGRAM_WAS_STOPPED}: it exceeded its limit of calls."


def test_a_cancelled_program_leaves_the_sandbox_usable() -> None:
    async def go() -> Any:
        sandbox = Sandbox()

        async def call(_: CallForm, name: str) -> Any:
            await asyncio.sleep(60)

        try:
            for text in ("(echo)", "(while True 1)"):
                running = asyncio.create_task(sandbox.run(compile_program(text), ["echo"], call))
                await asyncio.sleep(0.1)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
            return await sandbox.run(compile_program("(+ 1 2)"), [], call)
        finally:
            await sandbox.aclose()
            await sandbox.aclose()

    assert asyncio.run(go()) == (3, "")


def test_many_programs_run_side_by_side() -> None:
    async def go() -> Any:
        sandbox = Sandbox()

        async def call(form: CallForm, name: str) -> Any:
            await asyncio.sleep(0.01)
            return form.args["text"]

        try:
            runs = (sandbox.run(compile_program(f"(echo :text {n})"), ["echo"], call) for n in range(4))
            return await asyncio.gather(*runs)
        finally:
            await sandbox.aclose()

    assert asyncio.run(go()) == [(n, "") for n in range(4)]


def test_without_a_sandbox_there_is_a_sentence(tmp_path: Path) -> None:
    here = shipped(tmp_path)

    async def go() -> Any:
        from quoth.tools.call.call import new_call
        from quoth.tools.call.workspace import Workspace

        return await here.door.dispatch(
            new_call(CallForm("eval", {"form": Code("1")})), ToolContext(Workspace(tmp_path))
        )

    assert asyncio.run(go()).message == "This agent has no sandbox to run programs in."


def test_what_is_printed_is_the_value_when_there_is_no_other(tmp_path: Path) -> None:
    here = shipped(tmp_path)
    assert evaluate(here, '(print "hi")').value == "hi"
    result = evaluate(here, '(print "hi") 1')
    assert (result.value, result.message) == (1, "hi")


# Mistakes

MISTAKES = [
    ("", "The program is empty."),
    ("; nothing", "The program is empty."),
    ("(+ 1", f"line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end; write (+ 1)\n(+ 1\n^"),
    ("(+ 1\n   (foo", f"line 2, column 4: this ( {IS_NEVER_CLOSED}; add )) at the end\n   (foo\n   ^"),
    ("(/ 1 0)", "The program failed: ZeroDivisionError: division by zero"),
    ("(ehco 1)", f"{THE_PROGRAM_USES} ehco, {WHICH_IS_NOT_DEFINED}. Did you mean echo?"),
    ("read-fil", f"{THE_PROGRAM_USES} read-fil, {WHICH_IS_NOT_DEFINED}. Did you mean read-file?"),
    ("(get [1] 5)", "The program failed: IndexError: list index out of range"),
    ('(+ 1 "a")', "The program failed: TypeError: unsupported operand type(s) for +: 'int' and 'str'"),
    ('(raise (ValueError "mine"))', "The program failed: ValueError: mine"),
    (
        "(sorted [1 2] :key echo)",
        "A tool cannot be passed to map, filter or sorted. Write (lfor x xs (the-tool x)).",
    ),
    ("(setv 1 2)", "line 1, column 7: Can't assign or delete a constant\n(setv 1 2)\n      ^"),
    (
        "(return 5)",
        "line 1, column 1: a program's value is the value of its last form; write 5",
    ),
    ("(import nowhere)", "The program failed: ModuleNotFoundError: No module named 'nowhere'"),
    (
        "\f(quasiquote)",
        f"line 1, column 3: quasiquote {CANNOT_BE_USED_IN_A}; it takes one form",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), MISTAKES)
def test_a_mistake_is_told_in_a_sentence(worker: Worker, text: str, sentence: str) -> None:
    assert complaint(ProgramError, lambda: worker.run(text)).startswith(sentence)
    assert worker.run("(+ 1 2)") == 3


def test_an_unreadable_program_is_an_invalid_call(tmp_path: Path) -> None:
    result = evaluate(shipped(tmp_path), "(do-mac 1)")
    assert result.status == "invalid"
    assert result.message.splitlines() == [
        f"line 1, column 2: do-mac {CANNOT_BE_USED_IN_A}; {NOTHING_RUNS_WHILE_A_PROGRAM}",
        "(do-mac 1)",
        " ^",
    ]


# Nothing gets out

REFUSED = r"""
(do-mac (open "SENTINEL" "w"))
(do_mac (open "SENTINEL" "w"))
(ｄo-mac (open "SENTINEL" "w"))
(𝐝𝐨-𝐦𝐚𝐜 (open "SENTINEL" "w"))
(eval-and-compile (open "SENTINEL" "w"))
(eval-when-compile (open "SENTINEL" "w"))
(defmacro m [] (open "SENTINEL" "w")) (m)
(defreader r (open "SENTINEL" "w"))
(require hyrule [->])
(require os)
(get-macro do-mac)
(local-macros)
(pragma :hy "1")
(py "open('SENTINEL', 'w')")
(pys "open('SENTINEL', 'w')")
(hy.R.os.system "touch SENTINEL")
(hy.I.os.system "touch SENTINEL")
(hy.eval '(open "SENTINEL" "w"))
(hy.macroexpand '(do-mac (open "SENTINEL" "w")))
(hy.read "#.(open)")
(. hy eval)
((. hy I os) system "touch SENTINEL")
(.eval hy 1)
(setv h hy)
(import hy)
(import hy.core.macros)
(import os :as hy)
(import hy [eval])
(ｈｙ.R.os.system "touch SENTINEL")
(ℎ𝑦.I.os.system "touch SENTINEL")
(fn [hy] hy)
(do (setv hy 1))
(lfor hy [1] hy)
(match 1 (hy.R.os) 2)
f"{(do-mac (open \"SENTINEL\" \"w\"))}"
f"{1 :{(do-mac 1)}}"
f"{hy.R.os}"
(defn f [[x (do-mac (open "SENTINEL" "w"))]] x)
(defn #^ (do-mac 1) f [] 1)
(defn f [#^ (do-mac 1) x] 1)
(defn [(do-mac 1)] f [] 1)
(defclass A [(do-mac 1)] 1)
(defclass [(hy.eval 1)] A [])
`(a ~(do-mac 1))
`(a ~(do-mac 1))
~x
(unquote (do-mac 1))
#{(do-mac 1)}
{(do-mac 1) 1}
[(do-mac 1)]
#((do-mac 1))
(. x [(do-mac 1)])
(get x (do-mac 1))
(.foo x :bar (do-mac 1))
(try (except [e (do-mac 1)]))
(await (echo))
(yield 1)
(with [f (open "SENTINEL" "w")] 1)
(deftype X (do-mac 1))
(. "" __class__)
(. "" __class__ __base__ __subclasses__)
(.__class__ "")
"".__class__
(__import__ "os")
__builtins__
(setv __answer 1)
(__answer 5)
(defn __answer [x] 1)
_hy_macros
#.(open "SENTINEL" "w")
#boom 1
"""

CONTAINED = r"""
(do‑mac (open "SENTINEL" "w"))
(open "SENTINEL" "w")
(.write (open "SENTINEL" "w") "x")
(.read (open "/etc/passwd"))
(do (import os) (os.system "touch SENTINEL"))
(do (import os) (os.listdir "/"))
(do (import os) (get os.environ "PATH"))
(do (import os) (os.remove "KEPT"))
(do (import subprocess) (subprocess.run ["touch" "SENTINEL"]))
(do (import sys) (get sys.modules "os"))
(do (import sys) (sys.exit 3))
(do (import socket) 1)
(do (import ctypes) 1)
(do (import importlib) 1)
(do (import pathlib) (.write-text (pathlib.Path "SENTINEL") "x"))
(do (import pathlib) (.read-text (pathlib.Path "/etc/passwd")))
(getattr "" "__class__")
(getattr (fn [] 1) "__globals__")
(.format "{0.__class__}" 1)
(globals)
(vars)
(compile "1" "" "eval")
(breakpoint)
(input)
(exit)
(quit)
(raise (SystemExit "bye"))
(raise KeyboardInterrupt)
(raise (BaseException "b"))
(raise 3)
(while True 1)
(try (while True 1) (except [e BaseException] (while True 2)))
(do (defn f [] (f)) (f))
(sum (range (** 10 12)))
(list (range (** 10 12)))
(* [0] (** 10 9))
(* "x" (** 10 9))
(do (setv x []) (while True (.append x (* "a" 1000))))
(do (setv x "x") (for [i (range 60)] (+= x x)) x)
(** 10 (** 10 8))
(** (** 10 (** 10 2)) (** 10 7))
(<< 1 (** 10 12))
(while True (print (* "a" 100)))
(do (import time) (time.sleep 1000))
(do (import re) (re.match "((((a{100}){100}){100}){100}){100}" "b"))
(do (setv x 1) (for [_ (range 60)] (setv x [x x])) x)
(do (setv x 1) (for [_ (range 60)] (setv x [x x])) (echo :text x))
(do (setv x 1) (for [_ (range 60)] (setv x {1 x 2 x})) x)
(do (setv x 1) (for [_ (range 60)] (setv x #(x x))) (print x))
(do (setv x []) (for [_ (range 5000)] (setv x [x])) x)
(do (setv x []) (for [_ (range 5000)] (setv x [x])) (echo :text x))
(* "x" 20000000)
(raise (ValueError (* "x" 10000000)))
(eval-nothing)
(fn)
(let [a] a)
(cond 1)
(except)
(return 1)
(when True (return 1))
(for [x [1]] (return x))
(break)
(defn)
"""

HARMLESS = r"""
(echo :__class__ 1)
(eval "1")
(exec "open('SENTINEL', 'w')")
(locals)
(setattr "" "x" 1)
(do (import os) (os.getcwd))
(do (import asyncio) (asyncio.sleep 1000))
(do (import re) (re.match "(a+)+$" (+ (* "a" 60) "b")))
(do (setv x []) (.append x x) x)
(do (setv eval 1) eval)
(do (defn echo [] 1) (echo))
(fn [] 1)
(hy．eval 1)
(type "A" #() {})
(** 10 5000)
"""


def programs(table: str, folder: Path) -> list[str]:
    return [
        line.replace("SENTINEL", str(folder / "sentinel")).replace("KEPT", str(folder / "kept"))
        for line in table.strip().splitlines()
    ]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder where nothing may appear, vanish or change; and no process may be started."""
    (tmp_path / "kept").write_text("kept")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert sorted(os.listdir(tmp_path)) == ["kept"]


def test_the_corpus_is_large_enough() -> None:
    assert len(REFUSED.strip().splitlines()) + len(CONTAINED.strip().splitlines()) >= 100


@pytest.mark.parametrize("index", range(len(REFUSED.strip().splitlines())))
def test_a_program_that_reaches_for_the_host_is_refused_before_it_is_compiled(
    watched: Path, monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    text = programs(REFUSED, watched)[index]

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("Hy has seen it")

    monkeypatch.setattr(program, "hy_compile", never)
    said = complaint(ProgramError, lambda: compile_program(text))
    first, *rest = said.split("\n")
    assert first.startswith("line 1, column ")
    assert "Hy has seen it" not in first
    assert rest[-1].strip() == "^"
    assert len(first) < 250


@pytest.mark.sampled
@pytest.mark.parametrize("index", range(len(CONTAINED.strip().splitlines())))
def test_a_hostile_program_ends_with_a_sentence_and_the_next_one_works(
    watched: Path, worker: Worker, index: int
) -> None:
    text = programs(CONTAINED, watched)[index]
    said = complaint(ProgramError, lambda: worker.run(text))
    assert "Traceback" not in said
    assert len(said) <= 2200
    assert worker.run("(+ 1 2)") == 3


@pytest.mark.parametrize("index", range(len(HARMLESS.strip().splitlines())))
def test_what_only_looks_dangerous_does_no_harm(watched: Path, worker: Worker, index: int) -> None:
    text = programs(HARMLESS, watched)[index]
    with contextlib.suppress(ProgramError):
        worker.run(text)
    assert worker.run("(+ 1 2)") == 3


def test_the_sentinel_would_appear_if_a_macro_ran(tmp_path: Path) -> None:
    text = f'(do-mac (do (open "{tmp_path}/sentinel" "w") None))'
    hy.eval(hy.read(text), module=types.ModuleType("open_door"))
    assert (tmp_path / "sentinel").exists()


def test_a_huge_number_is_no_value_of_a_tool(tmp_path: Path) -> None:
    here = shipped(tmp_path)
    assert evaluate(here, "(** 10 5000)").message == (
        "The value is a number of more than 4000 digits; return it in another shape."
    )
    assert "echo was not called." in evaluate(here, "(echo (** 10 5000))").message


BOMBS = {
    "(while True 1)": f"{THE_PROGRAM_WAS_STOPPED}: {IT_EXCEEDED_ITS_TIME}.",
    "(* [0] (** 10 9))": f"{THE_PROGRAM_WAS_STOPPED}: it exceeded its limit of memory or output.",
    "(do (setv x (* [1] 1000)) (* [x] 1000))": (
        f"The value is too large: as text {IT_HAS_MORE_THAN} 2000000 characters."
    ),
    "(do (setv x []) (for [_ (range 5000)] (setv x [x])) x)": f"The value {IS_NESTED_DEEPER_THAN} 100.",
    "(defclass A []) (A)": (f"A A {CANNOT_LEAVE_THE_PROGRAM}; use texts, numbers, lists and dictionaries."),
    '(while True (print "aaaaaaaaaaaaaaaaaaaa"))': (
        f"{THE_PROGRAM_WAS_STOPPED}: it exceeded its limit of memory or output."
    ),
}


@pytest.mark.parametrize(("text", "sentence"), BOMBS.items())
def test_a_bomb_is_told_in_a_sentence(worker: Worker, text: str, sentence: str) -> None:
    assert complaint(ProgramError, lambda: worker.run(text)) == sentence


WIDE = [
    ("(" * 300 + ")" * 300, f"line 1, column 61: {NESTED_DEEPER_THAN} 60; split it into smaller forms"),
    ("[" * 300, f"line 1, column 61: {NESTED_DEEPER_THAN} 60; split it into smaller forms"),
    ("(do " * 61 + ")" * 61, f"line 1, column 241: {NESTED_DEEPER_THAN} 60; split it into smaller forms"),
    ('"' + "x" * 100_000 + '"', "line 1, column 1: "),
    ("1 " * 10_001, f"line 1, column 20001: {THERE_ARE_MORE_THAN} 10000 forms here; read it in parts"),
    ("1" * 1001, "line 1, column 1: "),
    ("(+ " + "1 " * 9_990 + ")", "The program is nested too deeply, or one operator has too many operands."),
    (
        "(and " + "1 " * 9_990 + ")",
        f"The program is {NESTED_TOO_DEEPLY}, or one operator has too many operands.",
    ),
    (
        "(cond " + "False 1 " * 2_000 + ")",
        f"The program is {NESTED_TOO_DEEPLY}, or one operator has too many operands.",
    ),
    (
        "(let [a 1] " * 50 + "[" + "x " * 5_000 + "]" + ")" * 50,
        f"line 1, column 1: {THE_PROGRAM_IS_NESTED_TOO}; make parts of it functions",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), WIDE, ids=lambda value: str(value)[:30])
def test_a_program_too_large_to_compile_is_told(worker: Worker, text: str, sentence: str) -> None:
    assert complaint(ProgramError, lambda: worker.run(text)).startswith(sentence)


def test_a_large_honest_program_is_compiled(worker: Worker) -> None:
    functions = "\n".join(f"(defn f{n} [x] (if (> x 0) (+ x {n}) (* x {n})))" for n in range(200))
    assert worker.run(f"{functions} (+ (f1 1) (f199 1))") == 202


# What crosses the wall


def test_shared_parts_are_counted_as_often_as_they_are_written_out() -> None:
    part: Any = "x"
    for _ in range(60):
        part = [part, part]
    assert complaint(ProgramError, lambda: bounded(part)).startswith("The value is too large")
    assert complaint(ProgramError, lambda: bounded(["x" * 1_000_000] * 3)).startswith(
        "The value is too large"
    )
    assert bounded(["x" * 1_000] * 3) == ["x" * 1_000] * 3


@pytest.mark.parametrize("value", [object(), print, Exception("x"), 1j, [object()], {"a": {1: [object()]}}])
def test_only_plain_data_crosses(value: Any) -> None:
    assert CANNOT_LEAVE_THE_PROGRAM in complaint(ProgramError, lambda: bounded(value))


# The walk itself


@examples(2)
@given(st.text(alphabet="()[]{}'`~#^:.\" hyRIdo-macｄｈx1\n", max_size=40))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    try:
        made = compile_program(text)
    except ProgramError:
        return
    names = {node.id for node in ast.walk(ast.parse(made.python)) if isinstance(node, ast.Name)}
    assert "hy" not in names
    assert made.text == text


# What a program takes from outside


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("(setv a 1) (+ a b)", ["b 1:17"]),
        ("(let [x 1]\n  [x y])\nx", ["y 2:6", "x 3:1"]),
        ("(defn f [a * [b c] #** k] [a b k f d])", ["c 1:17", "d 1:36"]),
        ("(lfor x xs :if (> x n) :setv y x [x y])", ["xs 1:9", "n 1:21"]),
        ("(fn [x] (fn [] (+ x z)))", ["z 1:21"]),
        ('(defn f [] f"{a} {f}") ', ["a 1:15"]),
        ("(try 1 (except [e Mine] e))", ["Mine 1:19"]),
        ('(match 1 [v #* rest] rest {"a" u} u)', []),
        ("(defn f [] (global n) (setv n 1)) n", []),
        ("(defclass C [] (setv k 1) k) k", ["k 1:30"]),
        ("(import a.b :as c json [loads]) [c loads json.x]", ["json 1:42"]),
        ('(read-file "x") (.strip o.p)', ["read_file 1:2", "o 1:25"]),
    ],
)
def test_the_names_that_a_program_takes_from_outside(text: str, free: list[str]) -> None:
    found = free_names(text, ["read-file"])
    assert [f"{use.name} {use.line}:{use.column}" for use in found] == free


def test_the_names_of_a_program_that_python_would_not_have() -> None:
    said = "line 1, column 5: 'break' outside loop\n(do (break))\n    ^"
    assert complaint(ProgramError, lambda: free_names("(do (break))")) == said


@pytest.mark.parametrize("text", ["(+ a 1)", "(let [x 1] x) x", "(defn f [] missing) (f)", "(lfor i [1] j)"])
def test_a_free_name_is_what_the_sandbox_has_no_value_for(worker: Worker, text: str) -> None:
    (use,) = free_names(text)
    said = complaint(ProgramError, lambda: worker.run(text))
    assert said.startswith(f"{THE_PROGRAM_USES} {use.name}, {WHICH_IS_NOT_DEFINED}.")


def test_what_the_sandbox_lacks_of_python_is_known(worker: Worker) -> None:
    lacking = set()
    for name in sorted(name for name in dir(builtins) if not name.startswith("_")):
        try:
            worker.run(f"(do {name} 1)")
        except ProgramError:
            lacking.add(name)
    assert lacking == program.LACKING & set(dir(builtins))


@pytest.mark.parametrize("text", [text for text, _ in WORKS])
def test_what_works_takes_tools_and_builtins_from_outside_and_nothing_else(text: str) -> None:
    outside = {use.name for use in free_names(text, ["echo", "eval", "fails", "read-file"])}
    assert (
        outside <= {"echo", "eval", "fails", "read_file", *dir(builtins), *program.PRELUDES} - program.LACKING
    )
