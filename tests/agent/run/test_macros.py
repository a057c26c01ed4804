"""Programs with macros and forms, through the door: kept, waiting for a person, recorded, shown, dry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sentences import IS_NOT_DEFINED
from words import Spy, agent, quoth, scripted, tool

from quoth import Agent
from quoth.agent.reply import Reply
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.sandbox.macros import MAX_MACROS


class Desk:
    """A workspace whose tool ``put`` waits for a person."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.puts: list[int] = []
        self.looks = Spy("seen")

    def put(self, x: int, ctx: ToolContext) -> str:
        self.puts.append(x)
        return f"put {x}"

    def agent(self, *replies: str) -> Agent:
        tools = [
            tool("look", self.looks, effects=["reads"]),
            tool("put", self.put, params={"x": {"type": int}}, effects=["writes"]),
        ]
        return Agent(workspace=self.folder, session="s", user="ann", tools=tools, model=scripted(*replies))

    def decide(self) -> None:
        with self.agent() as it:
            (request,) = it.broker.requests()
            it.broker.decide(request.id, Decision("once", "ann"))

    def resumed(self, *replies: str) -> Any:
        with self.agent(*replies) as it:
            return it.resume()


def test_a_program_waits_within_an_expansion_and_continues(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with desk.agent("(eval (do (defmacro with-look [x] `[(look) ~x]) (with-look (put 2))))") as it:
        assert it.run("Go.").status == "pending"
    desk.decide()
    (reply,) = desk.resumed("Done.")
    assert isinstance(reply, Reply)
    assert (reply.calls[-1].result.value, desk.puts, desk.looks.calls) == (["seen", "put 2"], [2], 1)


def test_a_macro_that_was_changed_while_a_program_waited_is_not_used(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with desk.agent("(eval (m))") as it:
        it.eval("(defmacro m [] '(put 1))")
        assert it.run("Go.").status == "pending"
        it.eval("(defmacro m [] '(put 9))")
    desk.decide()
    (reply,) = desk.resumed("Done.")
    result = reply.calls[-1].result
    assert (result.status, desk.puts) == ("error", [])
    assert "macros of the session that it uses may have changed" in result.message


def test_a_session_keeps_macros_and_what_it_evaluates_sees_its_values(tmp_path: Path) -> None:
    with agent(tmp_path, session="s") as it:
        it.eval("(defmacro twice [x] `(* 2 ~x)) (setv n 4)")
    with agent(tmp_path, session="s") as it:
        assert it.eval("(twice n)").value == 8
        assert it.eval("(eval '(twice n))").value == 8
        assert it.eval("(setv inside 1) (eval 'inside)").status == "error"
        assert it.eval("(eval '(setv n 5)) n").value == 4
    with agent(tmp_path, session="other") as it:
        assert it.eval("(twice 1)").status == "error"


def test_a_quoted_form_is_the_program_of_a_call(tmp_path: Path) -> None:
    with agent(tmp_path) as it:
        calls = ["(eval '(+ 1 2))", "(eval (+ 1 2))", '(eval "(+ 1 2)")']
        results = [it.call(call) for call in calls]
        assert [result.value for result in results] == [3, 3, 3]
        assert len({result.audit["digest"] for result in results}) == 1
        for call in ['(eval "\'(+ 1 2)")', "(eval ''(+ 1 2))"]:
            assert it.call(call).value == {"$form": "(+ 1 2)"}


def test_a_form_is_lisp_in_the_record_and_an_object_in_json(tmp_path: Path) -> None:
    (tmp_path / "replies.txt").write_text('(eval "\'(setv x 1)")\n---\nDone.')
    said = quoth("run", "--model", "scripted:replies.txt", "--session", "s", "Go.", cwd=tmp_path)
    assert "'(setv x 1)" in said.err
    assert "ok: '(setv x 1)" in quoth("log", "s", cwd=tmp_path).out
    told = json.loads(quoth("eval", "--json", "'(setv x 1)", cwd=tmp_path).out)
    assert told["value"] == {"$form": "(setv x 1)"}


def test_a_dry_run_expands_macros(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with desk.agent() as it:
        it.eval("(defmacro m [x] `(put ~x))")
        for program in ["(m 3)", "(eval '(m 3))"]:
            assert "(put :x 3)" in json.dumps(it.eval(program, dry_run=True).value)
    assert desk.puts == []


def test_a_macro_prints_nothing_and_knows_no_tools(tmp_path: Path) -> None:
    said = quoth("eval", '(defmacro m [x] (print "spoof") 5) (m 1)', cwd=tmp_path)
    assert (said.out, said.code) == ("5\n", 0)
    said = quoth("eval", '(defmacro m [x] (read-file "a")) (m 1)', cwd=tmp_path)
    assert f"m failed while it was expanded: NameError: read-file {IS_NOT_DEFINED}" in said.err


def test_a_lifted_program_has_the_macros_of_its_session(tmp_path: Path) -> None:
    for program in ["(defmacro twice [x] `(* 2 ~x)) 1", "(twice 4)"]:
        quoth("eval", "--session", "s", program, cwd=tmp_path)
    (tmp_path / "lifted.hy").write_text(quoth("lift", "s", cwd=tmp_path).out)
    assert quoth("eval", "-", cwd=tmp_path, stdin=(tmp_path / "lifted.hy").read_text()).out == "8\n"


def test_a_function_that_a_session_keeps_goes_on_to_make_its_own_forms(tmp_path: Path) -> None:
    with agent(tmp_path) as it:
        it.eval('(defn look [] \'(read-file "a")) (defn put [x] `(put ~x))')
        it.eval('(setv other \'(write-file "a" "") more `(f ~1 ~2))')
        assert it.eval("[(look) (put 1)]").value == [{"$form": '(read-file "a")'}, {"$form": "(put 1)"}]


def test_a_session_keeps_forms_under_names_of_lisp_and_functions_of_its_own(tmp_path: Path) -> None:
    with agent(tmp_path) as it:
        it.eval("(defn len [x] 7) (setv form '(a) name 'a key ':k)")
        it.eval("(setv other '(b))")
        assert it.eval("[(len form) (len other)]").value == [7, 7]
        kinds = {row["name"]: row["type"] for row in it.eval("(values)").value}
    assert kinds == {"len": "function", "form": "form", "name": "symbol", "key": "keyword", "other": "form"}


@pytest.mark.parametrize(("changed", "puts"), [(False, [1, 2]), (True, [1])])
def test_a_program_that_waited_evaluates_with_the_macros_that_it_began_with(
    tmp_path: Path, changed: bool, puts: list[int]
) -> None:
    desk = Desk(tmp_path)
    with desk.agent("(eval (do (put 1) (eval '(m))))") as it:
        it.eval("(defmacro m [] '(put 2))")
        assert it.run("Go.").status == "pending"
        if changed:
            it.eval("(defmacro m [] '(put 9))")
    desk.decide()
    (reply,) = desk.resumed("Done.")
    assert (reply.status == "pending") is not changed
    if not changed:
        desk.decide()
        desk.resumed("Done.")
    assert desk.puts == puts


def test_a_function_takes_the_place_of_a_macro_in_the_next_program(tmp_path: Path) -> None:
    with agent(tmp_path, session="s") as it:
        it.eval("(defmacro my-f [x] 1)")
        it.eval("(defn my-f [x] 2)")
        assert it.eval("(my-f 0)").value == 2


def test_a_form_deep_in_what_a_session_keeps_is_one_for_the_next_program(tmp_path: Path) -> None:
    with agent(tmp_path, session="s") as it:
        it.eval("(setv xs ['()])")
        assert it.eval("(if (get xs 0) 1 2)").value == 2


def test_a_session_has_a_bounded_number_of_macros(tmp_path: Path) -> None:
    with agent(tmp_path, session="s") as it:
        many = " ".join(f"(defmacro m{n} [] {n})" for n in range(MAX_MACROS + 1))
        assert f"more than {MAX_MACROS} macros" in it.eval(many).message
        work = "(defmacro d [n] (if (= n 0) 1 `(d ~(- n 1)))) (d 49)" + " (+ 1 2)" * 2_400
        assert "too many rounds" in it.eval(work).message
