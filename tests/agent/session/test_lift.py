"""Lift: a session's successful calls as one program, which does them again through the door."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import CANNOT_BE_WRITTEN, THERE_IS_A_FILE
from words import Agent, complaint, files, lines, quoth, scripted, tool

from quoth.agent.session.lift import Lifted, lifted
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError
from quoth.tools.history.event import Event, read_event, written_form
from quoth.tools.history.receipts import WINDOW_SECONDS
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.program.compiler import compile_program
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path


def agent(folder: Path, *replies: Any, **options: Any) -> Agent:
    given = {"session": "s", "user": "ann", "model": scripted(*replies), "consent": "yes", **options}
    return Agent(workspace=folder, **given)


def lift(folder: Path, run: str | None = None) -> Lifted | None:
    """What is lifted from the session s of a workspace."""
    store = Store(store_path(folder))
    events = list(Transcript(lambda: store).events("s"))
    store.close()
    return lifted("s", events, run)


def program(folder: Path, run: str | None = None) -> str:
    """The program without its head, checked as the sandbox would."""
    found = lift(folder, run)
    assert found is not None
    compile_program(found.program, ["read-file", "write-file", "list-files", "echo", "eval"])
    body = [line for line in found.program.splitlines() if not line.startswith(";")]
    return "\n".join(line for line in body if not line.startswith("  ; ")).strip()


def happened(*calls: tuple[CallForm, Any], task: str = "") -> list[Event]:
    """The events of a session in which these calls were made and had these results."""
    from quoth.tools.history.event import event_form

    events: list[Event] = []

    def add(kind: str, key: str, data: dict[str, Any]) -> None:
        text = event_form(kind, len(events) + 1, "2026-01-01", "r1", 0, key, data)
        events.append(read_event("s", text, events[-1].digest if events else ""))

    add("stimulus", "", {"text": task})
    for place, (form, value) in enumerate(calls):
        add("call", f"r1/1.{place}", {"form": written_form(form)})
        add("receipt", f"r1/1.{place}", {"status": "ok", "value": value})
    return events


COPY = ['(read-file :path "a.txt")', '(write-file :path "b.txt" :content "one\\ntwo\\n")', "Copied."]


# Again, in another place


def test_a_copied_file_is_copied_again_in_another_workspace(tmp_path: Path) -> None:
    here, there = (files(tmp_path / name, {"a.txt": text}) for name, text in COPIED.items())
    files(here, {"r.txt": "\n---\n".join(COPY)})
    words = ["--model", "scripted:r.txt", "--session", "s", "--yes"]
    assert quoth("run", "Copy a.txt to b.txt.", *words, cwd=here).code == 0
    said = quoth("lift", "s", cwd=here)
    assert (said.code, said.err) == (0, "")
    assert said.out == lines(
        "; Lifted from session s: 2 calls.",
        "; The task: Copy a.txt to b.txt.",
        '(defn copy-a-txt-to [[path "a.txt"] [path-2 "b.txt"]]',
        "  ; r1/1.0",
        "  (setv read-file-result (read-file :path path))",
        "  ; r1/2.0",
        "  (write-file :path path-2 :content read-file-result))",
        "",
        "(copy-a-txt-to)",
    )
    again = quoth("eval", "-", "--yes", cwd=there, stdin=said.out)
    assert (again.code, again.out) == (0, "Created b.txt, 15 bytes.\n")
    assert (there / "b.txt").read_text() == COPIED["there"]
    rows = [json.loads(row) for row in quoth("audit", "--json", cwd=there).out.splitlines()]
    made = [row["form"] for row in rows if row["tool"] != "eval"]
    assert made == ['(read-file :path "a.txt")', '(write-file :content "three\\nfour\\nfive" :path "b.txt")']


COPIED = {"here": "one\ntwo\n", "there": "three\nfour\nfive"}


def test_a_lifted_call_that_asks_stands_still_like_any(tmp_path: Path) -> None:
    files(tmp_path, {"a.txt": "one\ntwo\n"})
    with agent(tmp_path, *COPY) as it:
        it.run("Copy a.txt to b.txt.")
    (tmp_path / "b.txt").unlink()
    found = lift(tmp_path)
    assert found is not None
    with agent(tmp_path, session="t", consent=None) as it:
        assert it.eval(found.program).status == "pending"
        (request,) = it.broker.requests()
        assert request.form == '(write-file :path "b.txt" :content "one\\ntwo\\n")'
        it.broker.decide(request.id, Decision("once", "ann"))
        assert [result.status for result in it.resume()] == ["ok"]
    assert (tmp_path / "b.txt").read_text() == "one\ntwo\n"


# What is in it


HALF = '(eval (do (setv x (read-file :path "a.txt")) (write-file :path "b.txt" :content x) (len x)))'


def test_while_a_program_waits_its_calls_that_have_ended_are_lifted(tmp_path: Path) -> None:
    files(tmp_path, {"a.txt": "one\ntwo\n"})
    with agent(tmp_path, HALF, "It waits.", "Done.", consent=None) as it:
        assert it.run("Copy it.").status == "pending"
        found = lift(tmp_path)
        assert found is not None
        assert found.calls == 1
        assert '(read-file :path "a.txt")' in found.program
        assert "write-file" not in found.program
        (request,) = it.broker.requests()
        it.broker.decide(request.id, Decision("once", "ann"))
        it.resume()
    found = lift(tmp_path)  # and now that it has ended, it is the program
    assert found is not None
    assert (found.calls, found.program.count("(setv x (read-file")) == (1, 1)


def test_a_program_at_work_is_lifted_as_far_as_it_has_come(tmp_path: Path) -> None:
    files(tmp_path, {"a.txt": "one\n"})

    def look() -> list[Any]:
        found = lift(tmp_path)
        assert found is not None
        return [found.calls, found.program.count("read-file")]

    with agent(tmp_path, tools=[tool("look", look)]) as it:
        assert it.eval('(do (read-file :path "a.txt") (look))').value == [1, 1]


def test_what_did_not_go_well_or_was_answered_before_is_left_out(tmp_path: Path) -> None:
    files(tmp_path, {"a.txt": "x"})
    read = '(read-file :path "a.txt")'
    said = ['(read-file :path "no.txt")', "(nothing)", read, "(eval (+ 1 2))", read, "Read."]
    with agent(tmp_path, *said) as it:
        it.run("Read.")
        it.eval("(write-file :path 1)")
        it.eval('(read-file "a.txt")', dry_run=True)
    assert WINDOW_SECONDS > 0
    assert program(tmp_path) == '(defn read []\n  (read-file :path "a.txt")\n  (+ 1 2))\n\n(read)'


def test_calls_of_a_person_are_lifted_in_their_order(tmp_path: Path) -> None:
    with agent(tmp_path, '(echo :text "two")', "Two.") as it:
        it.call('(echo "one")')
        it.run("Say 2.")
        it.eval("(setv x 3) ; three\n(echo (str x))")
    wanted = lines(
        "(defn say []",
        '  (echo :text "one")',
        '  (echo :text "two")',
        "  (do",
        "(setv x 3) ; three",
        "(echo (str x))",
        "  ))",
        "",
        "(say)",
    )
    assert program(tmp_path) == wanted.strip()
    assert program(tmp_path, "r1") == '(defn say []\n  (echo :text "two"))\n\n(say)'


def test_of_a_call_that_a_person_changed_it_is_the_changed_one(tmp_path: Path) -> None:
    class Person:
        async def request(self, *_: Any) -> Decision:
            return Decision("edit", "ann", form=CallForm("write-file", {"path": "b", "content": "2"}))

    files(tmp_path, {"p.hy": '(ask (write-file :path "a"))\n(allow (write-file :path "b"))'})
    with agent(tmp_path, consent=Person(), policy=tmp_path / "p.hy") as it:
        assert it.call('(write-file :path "a" :content "1")').ok
    assert '(write-file :content "2" :path "b")' in program(tmp_path)


# What varies


ECHO = CallForm("echo", {"text": "one"})
# The calls and their results, the task, and the program.
VARYING: dict[str, tuple[list[tuple[CallForm, Any]], str, str]] = {
    "a word of the task": (
        [(CallForm("echo", {"text": "red"}), "red"), (CallForm("echo", {"text": "blue"}), "blue")],
        "Say red, not bluebells.",
        '(defn say-red-not-bluebells [[text "red"]] (echo :text text) (echo :text "blue"))',
    ),
    "a number of the task": (
        [(CallForm("look", {"limit": 12, "all": True}), [])],
        "At most 12",
        "(defn at-most [[limit 12]] (look :limit limit :all True))",
    ),
    "what is said twice": (
        [(CallForm("look", {"path": "x"}), []), (CallForm("list", {"name": "x", "n": 1}), [])],
        "",
        '(defn lifted [[path "x"]] (look :path path) (list :name path :n 1))',
    ),
    "what is said twice in lists": (
        [(CallForm("look", {"paths": ["x", "x", ""]}), []), (CallForm("look", {"by": {"a": 1, "b": 1}}), [])],
        "",
        '(defn lifted [[paths "x"] [by 1]] (look :paths [paths paths ""]) (look :by {"a" by  "b" by}))',
    ),
    "1 is not True, and not a text": (
        [(CallForm("look", {"a": 1, "b": True, "c": "1"}), [])],
        "",
        '(defn lifted [] (look :a 1 :b True :c "1"))',
    ),
    "a result that is handed on": (
        [(CallForm("look", {}), ["a", "b"]), (CallForm("see", {"all": ["a", "b"]}), None)],
        "",
        "(defn lifted [] (setv look-result (look)) (see :all look-result))",
    ),
    "a result in a list": (
        [(CallForm("look", {}), "here"), (CallForm("see", {"all": ["here"]}), None)],
        "",
        "(defn lifted [] (setv look-result (look)) (see :all [look-result]))",
    ),
    "a result that the task speaks of": (
        [(CallForm("look", {}), "here"), (CallForm("see", {"all": "here"}), None)],
        "See here",
        '(defn see-here [[all-2 "here"]] (look) (see :all all-2))',
    ),
    "a result that is no data to hand on": (
        [(CallForm("look", {}), 3), (CallForm("see", {"n": 3}), None)],
        "",
        "(defn lifted [] (look) (see :n 3))",
    ),
    "an expression": (
        [(CallForm("look", {"form": Code("(+ 1 2)")}), 3)],
        "",
        '(defn lifted [] (look :form "(+ 1 2)"))',
    ),
    "names that mean something already": (
        [
            (CallForm("eval", {"form": Code("(setv path 1)")}), None),
            (CallForm("look", {"path": "x", "from": "y", "list": "z"}), None),
        ],
        "look: x y z",
        '(defn look-x-y-z [[path-2 "x"] [from-2 "y"] [list-2 "z"]]'
        " (setv path 1) (look :path path-2 :from from-2 :list list-2))",
    ),
    "programs that mean something else inside of a function": (
        [
            (CallForm("eval", {"form": Code(text)}), None)
            for text in ("(defn f [] (global x) (setv x 1)) (f)", "(setv x (list)) (len x)")
        ],
        "",
        '(defn lifted [] (eval "(defn f [] (global x) (setv x 1)) (f)") (do (setv x (list)) (len x) ))',
    ),
    "a program that is none any more": (
        [(CallForm("eval", {"form": "1 + 2"}), 3)],
        "",
        '(defn lifted [] (eval "1 + 2"))',
    ),
    "a program that hides a tool": (
        [(CallForm("eval", {"form": "(setv look 1)"}), 1), (CallForm("look", {}), None)],
        "",
        '(defn lifted [] (eval "(setv look 1)") (look))',
    ),
    "a task with the name of a tool": (
        [(CallForm("look", {}), None)],
        "Look!",
        "(defn look-2 [] (look))",
    ),
}


@pytest.mark.parametrize("case", VARYING)
def test_what_varies_is_a_parameter_and_what_is_handed_on_a_variable(case: str) -> None:
    calls, task, wanted = VARYING[case]
    found = lifted("s", happened(*calls, task=task))
    assert found is not None
    compile_program(found.program, ["look", "see", "echo", "eval"])
    body = [line.strip() for line in found.program.splitlines() if not line.strip().startswith(";")]
    assert " ".join(body).strip() == f"{wanted}  ({found.name})"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(
    st.tuples(st.dictionaries(st.sampled_from(["a", "path", "if"]), VALUES, max_size=3), VALUES), max_size=6
)


@given(CALLS, st.text(max_size=30))
def test_whatever_was_called_can_be_lifted_and_passes_the_check(
    calls: list[tuple[dict[str, Any], Any]], task: str
) -> None:
    found = lifted("s", happened(*((CallForm("look", args), value) for args, value in calls), task=task))
    assert (found is None) is (not calls)
    if found is not None:
        compile_program(found.program, ["look"])


def test_one_of_the_words_that_an_argument_chooses_from_is_no_parameter() -> None:
    form = CallForm("block", {"operation": "append", "label": "append", "content": "Likes tea"})
    found = lifted("s", happened((form, ""), (form, ""), task="append it"), words={"block": {"operation"}})
    assert found is not None
    assert found.program.count('(block :operation "append" :label label :content content)') == 2


def keys_made(monkeypatch: pytest.MonkeyPatch, calls: int) -> int:
    """How many values are looked up to lift so many calls, each with the result of the one before."""
    from quoth.agent.session import lift

    made: list[Any] = []
    key = lift._key
    monkeypatch.setattr(lift, "_key", lambda value: (made.append(value), key(value))[1])
    chain = [(CallForm("look", {"at": f"r{n}", "all": [f"x{n}"]}), f"r{n + 1}") for n in range(calls)]
    found = lifted("s", happened(*chain))
    monkeypatch.undo()
    assert found is not None
    assert found.program.count(":at look-result") == calls - 1
    return len(made)


def test_each_value_is_looked_up_a_few_times_however_many_calls_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, twice = keys_made(monkeypatch, 10), keys_made(monkeypatch, 20)
    assert keys_made(monkeypatch, 40) - twice == 2 * (twice - few) > 0


# Secrets


def test_a_secret_is_a_parameter_without_a_default(tmp_path: Path) -> None:
    pins: list[Any] = []
    params = {"pin": {"type": str, "secret": True}, "door": {"type": str}}
    unlock = tool("unlock", lambda pin, door: pins.append(pin), params=params)
    said = ['(unlock :pin "hunter22" :door "a")', '(eval (do (unlock "hunter22" "b") 1))', "Open."]
    with agent(tmp_path, *said, tools=[unlock]) as it:
        it.run("Unlock with hunter22.")
    found = lift(tmp_path)
    assert found is not None
    assert "hunter22" not in found.program
    told = '; Its secrets are not kept: write (lifted :pin "…" :secret "…") in the last line.'
    assert found.program.splitlines()[1] == told
    with agent(tmp_path, tools=[unlock]) as it:
        assert "missing" in it.eval(found.program).message
        filled = found.program.replace("\n(lifted)", '\n(lifted :pin "hunter33" :secret "hunter44")')
        assert it.eval(filled).value == 1
    assert pins == ["hunter22", "hunter22", "hunter33", "hunter44"]


# The command


def test_the_command_writes_a_file_and_says_how_to_run_it(tmp_path: Path) -> None:
    assert quoth("call", '(echo "a")', "--session", "s", cwd=tmp_path).code == 0
    said = quoth("lift", "--session", "s", "-o", "out.hy", cwd=tmp_path)
    assert (said.code, said.out, said.err) == (
        0,
        "",
        "quoth: out.hy contains 1 call of session s as the function lifted. To run it: quoth eval - < "
        "out.hy\n",
    )
    assert quoth("eval", "-", cwd=tmp_path, stdin=(tmp_path / "out.hy").read_text()).out == "a\n"
    data = json.loads(quoth("lift", "s", "--json", cwd=tmp_path).out)
    assert data == {
        "session": "s",
        "runs": [],
        "name": "lifted",
        "calls": 1,
        "program": (tmp_path / "out.hy").read_text(),
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["s"], "There is nothing to extract: no call of session s succeeded."),
        (["s", "--run", "r2"], "There is no run r2 in session s. Its runs are r1."),
        (["s", "--run", "all"], "There is no run all in session s. Its runs are r1."),
        (["s", "--run", "r1"], "There is nothing to extract: no call of session s, run r1 succeeded."),
        ([], "Give a session, or --last. See: quoth lift --help"),
    ],
)
def test_what_cannot_be_lifted_is_said_in_a_sentence(tmp_path: Path, words: list[str], message: str) -> None:
    with agent(tmp_path, "Nothing to do.") as it:
        it.run("Do nothing.")
    said = quoth("lift", *words, cwd=tmp_path)
    assert (said.code, said.out, said.err) == (2, "", f"quoth: {message}\n")


def test_a_file_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    quoth("call", '(echo "a")', "--session", "s", cwd=tmp_path)
    said = quoth("lift", "s", "-o", "no/such/out.hy", cwd=tmp_path)
    message = f"quoth: no/such/out.hy {CANNOT_BE_WRITTEN}: No such file or directory.\n"
    assert (said.code, said.err) == (2, message)


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    quoth("call", '(echo "a")', "--session", "s", cwd=tmp_path)
    files(tmp_path, {"mine.hy": "(mine)"})
    said = quoth("lift", "s", "-o", "mine.hy", cwd=tmp_path)
    assert (said.code, said.err) == (2, f"quoth: {THERE_IS_A_FILE} mine.hy already.\n")
    assert (tmp_path / "mine.hy").read_text() == "(mine)"


def test_a_run_that_is_not_there_is_a_complaint() -> None:
    events: Callable[[], Any] = lambda: lifted("s", happened((ECHO, "one")), "x")  # noqa: E731
    assert complaint(UsageError, events) == "There is no run x in session s. Its runs are r1."
