"""Programs that stand still at an inner call: decided by a person, carried on at that very call by another
process, on another machine, after an upgrade; and what a session keeps between its programs."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    CANNOT_LEAVE_THE_PROGRAM,
    IT_USES_THE_NETWORK,
    IT_WAS_BEGUN_BEFORE_AND,
    ITS_GUARD_REFUSED_THESE_ARGUMENTS,
    THE_PERSON_SAID_NO,
    THE_PROGRAM_USES,
    THE_PROGRAM_WAS_STOPPED,
    WHICH_IS_NOT_DEFINED,
)
from words import Said, Spy, agent, files, script, tool

from quoth import Agent
from quoth.tools.call.call import ToolResult
from quoth.tools.consent.requests import Decision
from quoth.tools.history.audit import StoreAudit
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.sandbox import snapshots
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import state_dir, store_path

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


class Desk:
    """A workspace with a tool that only reads and one that a person is asked about; each agent in it might be
    another process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.looked: list[int] = []
        self.sent: list[Any] = []
        self.version = "1"

    @property
    def tools(self) -> list[CognitiveTool]:
        def look(n: int) -> int:
            self.looked.append(n)
            return n * 10

        def send(what: Any) -> str:
            self.sent.append(what)
            return f"sent {what}"

        number = {"n": {"type": int, "default": 1}}
        what = {"what": {"type": Any, "default": None}}
        return [
            tool("look", look, params=number, effects=["reads"]),
            tool("send", send, params=what, effects=["net"], source=self.version),
        ]

    def agent(self, **options: Any) -> Agent:
        return Agent(workspace=self.folder, tools=self.tools, session="s", user="ann", **options)

    def eval(self, program: str, **options: Any) -> ToolResult:
        with self.agent(**options) as it:
            return it.eval(program)

    def resume(self) -> ToolResult:
        """What waits, carried on by another agent."""
        with self.agent() as it:
            (result,) = it.resume()
        assert isinstance(result, ToolResult)
        return result

    def decide(self, kind: Any = "once", place: int = 0, **more: Any) -> str:
        with self.agent() as it:
            return it.broker.decide(it.broker.requests()[place].id, Decision(kind, "ann", **more)).form

    @property
    def waiting(self) -> list[str]:
        with self.agent() as it:
            return [request.form for request in it.broker.requests()]

    def store(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        store = Store(store_path(self.folder))
        found = store.execute(sql, values)
        store.close()
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "work").mkdir()
    return Desk(tmp_path / "work")


# Standing still, and going on


def test_a_program_goes_on_at_the_very_call_it_stood_at(desk: Desk) -> None:
    begun = desk.eval("""
        (setv seen (lfor n [1 2 3] (look n)))
        (print "before")
        (setv told (send (sum seen)))
        (print "after")
        [told (look 4)]""")
    assert begun.status == "pending"
    assert begun.message.startswith(f"send waits for a person's approval: {IT_USES_THE_NETWORK} (request ")
    assert (desk.looked, desk.sent, desk.waiting) == ([1, 2, 3], [], ["(send :what 60)"])
    desk.decide()
    ended = desk.resume()
    assert (ended.status, ended.value) == ("ok", ["sent 60", 40])
    assert ended.message == "before\nafter"
    assert (desk.looked, desk.sent) == ([1, 2, 3, 4], [60])


def test_all_that_python_holds_is_there_again(desk: Desk) -> None:
    desk.eval("""
        (defclass Cart [] (setv kind "cart"))
        (setv cart (Cart) items [] counts {"a" #{1 2}})
        (defn adder [items] (fn [x] (.append items x) (len items)))
        (setv add (adder items))
        (add "one")
        (try
          (for [n (range 3)]
            (when (= n 1) (send n))
            (add n))
          (finally (add "end")))
        [cart.kind items (sorted (get counts "a"))]""")
    desk.decide()
    assert desk.resume().value == ["cart", ["one", 0, 1, 2, "end"], [1, 2]]


def test_a_no_is_an_exception_the_program_may_catch(desk: Desk) -> None:
    desk.eval("[(try (send 1) (except [e PermissionError] (str e))) (look 2)]")
    desk.decide("deny", why="not today")
    told = "send was denied: the person said: not today. (in (send 1))"
    assert desk.resume().value == [told, 20]
    assert desk.sent == []


def test_a_no_nobody_catches_ends_the_program_with_its_reason(desk: Desk) -> None:
    desk.eval("(do (send 1) (look 2))")
    desk.decide("deny", why="not today")
    ended = desk.resume()
    assert (ended.status, ended.message) == (
        "denied",
        "send was denied: the person said: not today. (in (send 1))",
    )
    assert desk.looked == []


def test_a_call_that_waits_is_no_failure_to_be_caught(desk: Desk) -> None:
    assert desk.eval('(try (send 1) (except [] "caught"))').status == "pending"


def test_what_nobody_has_decided_waits_on(desk: Desk) -> None:
    desk.eval("(do (look 1) (send 1))")
    for _ in range(3):
        assert desk.resume().status == "pending"
    assert (desk.looked, desk.waiting) == ([1], ["(send :what 1)"])


def test_equal_calls_before_and_after_are_each_made(desk: Desk) -> None:
    desk.eval("[(send 1) (send 1) (send 1)]")
    for sent in range(3):
        assert (desk.sent, desk.waiting) == ([1] * sent, ["(send :what 1)"])
        desk.decide()
        ended = desk.resume()
    assert (ended.value, desk.sent) == (["sent 1"] * 3, [1, 1, 1])


def test_an_edited_call_is_what_the_program_goes_on_with(desk: Desk) -> None:
    from words import form

    desk.eval("[(send 1)]")
    desk.decide("edit", form=form("(send 2)"))
    assert desk.resume().value == ["sent 2"]


def test_programs_inside_of_programs_stand_still_together(desk: Desk) -> None:
    desk.eval("""(do (look 1) [(eval "(do (look 2) [(eval \\"(do (look 3) (send 1))\\")])") (look 4)])""")
    desk.decide()
    assert desk.resume().value == [["sent 1"], 40]
    assert (desk.looked, desk.sent) == ([1, 2, 3, 4], [1])


# Branches


def test_branches_stand_still_each_for_itself(desk: Desk) -> None:
    desk.eval("(do (look 9) (print 0) (pmap (fn [n] (print n) (send (look n)) (look (+ n 4))) [1 2 3]))")
    assert sorted(desk.looked) == [1, 2, 3, 9]
    assert sorted(desk.waiting) == ["(send :what 10)", "(send :what 20)", "(send :what 30)"]
    desk.decide(place=desk.waiting.index("(send :what 20)"))
    assert desk.resume().status == "pending"
    assert (desk.sent, desk.looked[4:]) == ([20], [6])
    desk.decide()
    desk.decide()
    ended = desk.resume()
    assert (ended.value, ended.message) == ([50, 60, 70], "0\n1\n2\n3")
    assert sorted(desk.sent) == [10, 20, 30]
    assert sorted(desk.looked) == [1, 2, 3, 5, 6, 7, 9]


def test_the_values_of_branches_that_ended_are_kept_as_they_are(desk: Desk) -> None:
    values = '[#{1 2} {1 [b"x" None] #(1 2) 3} (float "nan") -0.5 "é" b"" {}]'
    desk.eval(f"(pmap (fn [n] (if (= n 1) (send 1) {values})) [0 1])")
    desk.decide()
    from math import isnan

    (kept, sent) = desk.resume().value
    assert isnan(float(kept.pop(2)))
    assert kept == [[1, 2], {"1": ["eA==", None], "(1, 2)": 3}, -0.5, "é", "", {}]
    assert sent == "sent 1"


BRANCHES: list[tuple[str, Any]] = [
    ("(pmap look [1 2 3])", [10, 20, 30]),
    ("(pmap look [])", []),
    ("(pmap (fn [a b] (+ (look a) b)) [1 2] [5 6 7])", [15, 26]),
    ("(pmap (fn [n] (* n n)) (range 4))", [0, 1, 4, 9]),
    ("(pmap (fn [n] (pmap (fn [m] (look (* n m))) [1 2])) [1 2])", [[10, 20], [20, 40]]),
    ("(sum (pmap look [1 2 3]))", 60),
    ("(do (setv k 5) (defn f [x] (+ k (look x))) (pmap f [1 2]))", [15, 25]),
    ("(lfor n [1 2] (pmap look [n]))", [[10], [20]]),
    ("(do (setv seen []) (pmap (fn [n] (.append seen n)) [1 2]) seen)", []),
    ('(try (pmap (fn [n] (/ 1 n)) [1 0]) (except [e ZeroDivisionError] "caught"))', "caught"),
    ('(try (pmap (fn [n] (get {} n)) [1 0]) (except [e KeyError] "caught"))', "caught"),
    ('(pmap (fn [n] (try (/ 1 n) (except [e ZeroDivisionError] "none"))) [1 0])', [1.0, "none"]),
    ("(gather (look 1) (+ 2 3) (look 2))", [10, 5, 20]),
    ("(gather)", []),
    ('(do (defn pmap [f xs] "mine") (pmap look [1]))', "mine"),
]


@pytest.mark.parametrize(("program", "value"), BRANCHES)
def test_branches_come_to_a_list_in_their_order(desk: Desk, program: str, value: Any) -> None:
    result = desk.eval(program)
    assert (result.message, result.value) == ("", value)


def test_branches_run_side_by_side(tmp_path: Path) -> None:
    """Each waits until all of them have come."""
    import asyncio

    here: list[int] = []

    async def meet(n: int) -> int:
        here.append(n)
        while len(here) < 4:
            await asyncio.sleep(0.01)
        return n

    meeting = tool("meet", meet, params={"n": {"type": int}}, effects=["reads"])
    with agent(tmp_path, tools=[meeting]) as it:
        assert it.eval("(pmap meet [1 2 3 4])").value == [1, 2, 3, 4]


def test_no_more_branches_run_at_once_than_the_bound(tmp_path: Path) -> None:
    import asyncio

    from quoth.tools.sandbox.runner import MAX_AT_ONCE

    now, most = 0, 0

    async def work() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(200):  # until as many are there as may be, so that a slow machine sees them all
            if most == MAX_AT_ONCE:
                break
            await asyncio.sleep(0.01)
        now -= 1

    with agent(tmp_path, tools=[tool("work", work, effects=["reads"])]) as it:
        assert it.eval("(len (pmap (fn [_] (work)) (range 30)))").value == 30
    assert most == MAX_AT_ONCE


def test_a_failing_branch_hurts_no_other(desk: Desk) -> None:
    result = desk.eval("(pmap (fn [n] (look n) (/ 1 (- n 2))) [1 2 3])")
    assert (result.status, result.message) == (
        "error",
        "The program failed: ZeroDivisionError: division by zero",
    )
    assert sorted(desk.looked) == [1, 2, 3]


def test_a_denied_call_in_a_branch_is_what_ends_the_program(tmp_path: Path) -> None:
    with agent(tmp_path, tools=[tool("closed", guard=Spy(False))]) as it:
        result = it.eval("(pmap (fn [n] (closed)) [1 2])")
    assert (result.status, result.message) == (
        "denied",
        f"closed was denied: {ITS_GUARD_REFUSED_THESE_ARGUMENTS}. (in (closed))",
    )


def test_branches_count_as_calls(desk: Desk) -> None:
    result = desk.eval("(pmap (fn [n] (pmap (fn [m] m) (range 100))) (range 100))")
    assert (result.status, result.message) == (
        "error",
        f"{THE_PROGRAM_WAS_STOPPED}: it exceeded its limit of calls.",
    )


def test_a_branch_cannot_answer_for_the_program(desk: Desk) -> None:
    """What stands around a pmap is not run again by each of its branches."""
    program = '(try (pmap (fn [n] (raise (ValueError "x"))) [1 2]) (except [e ValueError] (send (str e))))'
    assert desk.eval(program).status == "pending"
    assert desk.waiting == ['(send :what "x")']


LEAVING = "(try (pmap (fn [i] (if i i (fn [] 1))) [1 0]) (except [e Exception] None)) (look 7)"


def test_no_branch_leaves_its_pmap_to_go_on_as_the_program(desk: Desk) -> None:
    assert desk.eval(LEAVING).value == 70
    assert desk.looked == [7]


def test_a_branch_whose_value_cannot_leave_hurts_no_other(desk: Desk) -> None:
    result = desk.eval("(pmap (fn [i] (if (= i 0) (fn [] 1) (look i))) [1 2 0])")
    assert result.message.startswith(f"A function {CANNOT_LEAVE_THE_PROGRAM}; ")
    assert sorted(desk.looked) == [1, 2]


def test_what_a_branch_raises_is_told_briefly(desk: Desk) -> None:
    assert len(desk.eval('(pmap (fn [i] (raise (ValueError (* "a" 100000)))) [1])').message) < 3000


def test_more_branches_than_can_be_kept_are_run_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.sandbox.runner.MAX_DUMPED", 10_000)
    desk.eval("(do (look 1) (pmap (fn [n] (send n)) [1 2 3]))")
    assert desk.store("SELECT name FROM snapshots") == []
    for _ in range(3):
        desk.decide()
    assert desk.resume().value == ["sent 1", "sent 2", "sent 3"]
    assert (desk.looked, sorted(desk.sent)) == ([1], [1, 2, 3])


def test_a_denial_from_before_the_wait_is_still_one_after_it(desk: Desk) -> None:
    closed = tool("closed", guard=Spy(False))
    with Agent(workspace=desk.folder, tools=[*desk.tools, closed], session="s", user="ann") as it:
        it.eval("(pmap (fn [n] (if n (send n) (closed))) [0 1])")
    desk.decide()
    with Agent(workspace=desk.folder, tools=[*desk.tools, closed], session="s", user="ann") as it:
        (ended,) = it.resume()
    assert isinstance(ended, ToolResult)
    assert (ended.status, ended.message) == (
        "denied",
        f"closed was denied: {ITS_GUARD_REFUSED_THESE_ARGUMENTS}. (in (closed))",
    )


ARGUMENTS: list[tuple[str, Any]] = [
    ('#{"b" "a"}', ["a", "b"]),
    ('b"ab"', "YWI="),
    ("{#(1 2) 3}", {"(1, 2)": 3}),
    ("(** 10 900)", 10**900),
    ('(* "x" 30000)', "x" * 30000),
    ('(float "inf")', "inf"),
]


@pytest.mark.parametrize(("written", "value"), ARGUMENTS, ids=[written for written, _ in ARGUMENTS])
def test_an_argument_is_the_same_after_the_wait(desk: Desk, written: str, value: Any) -> None:
    assert desk.eval(f"(do (send {written}) 1)").status == "pending"
    desk.decide()
    assert desk.resume().value == 1
    assert desk.sent == [value]


@pytest.mark.parametrize("written", ["(** 10 2000)", "(list (range 120000))"])
def test_what_could_not_be_read_back_is_not_asked_about(desk: Desk, written: str) -> None:
    refused = desk.eval(f"(do (send {written}) 1)")
    assert (refused.status, desk.waiting) == ("error", [])
    assert "send was not called. Its arguments are too large to be kept" in refused.message


def test_a_large_number_of_a_branch_is_kept(desk: Desk) -> None:
    desk.eval("(do (setv [big _] (pmap (fn [i] (if i (send 1) (** 2 20000))) [0 1])) (= big (** 2 20000)))")
    desk.decide()
    assert desk.resume().value is True


def test_no_declared_secret_is_told_or_left_in_the_store(tmp_path: Path) -> None:
    params = {"pw": {"type": str, "secret": True}}
    login = tool("login", params=params, effects=["net"])

    def here() -> Agent:
        return Agent(workspace=tmp_path, tools=[login], session="s", user="ann")

    with here() as it:
        it.eval('(do (setv told "x") (login :pw "hunter2hunter2"))')
    with here() as it:
        it.broker.decide(it.broker.requests()[0].id, Decision("deny", "ann"))
        (ended,) = it.resume()
    assert isinstance(ended, ToolResult)
    assert THE_PERSON_SAID_NO in ended.message
    assert "hunter2" not in ended.message
    store = Store(store_path(tmp_path))
    assert store.execute("SELECT name FROM snapshots") == []
    store.close()


# Another process, another machine, another version


def go_on_and_die(folder: str, where: str) -> None:
    """Run as a program: carry on what waits, and die at a point on the way."""
    import os

    here = Desk(Path(folder))

    def die(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    made: dict[str, Callable[..., Any]] = {"send": here.tools[1]._body, "look": here.tools[0]._body}  # type: ignore[dict-item]

    def send(what: Any) -> str:
        with (Path(folder) / "sent.txt").open("a") as file:
            file.write(f"{what}\n")
        if where == "in the body":
            die()
        return f"sent {what}"

    def look(n: int) -> int:
        if where == "after the call" and n == 2:
            die()
        with (Path(folder) / "looked.txt").open("a") as file:
            file.write(f"{n}\n")
        return int(made["look"](n=n))

    def note(n: int) -> int:
        with (Path(folder) / "noted.txt").open("a") as file:
            file.write(f"{n}\n")
        return int(die() or 0) if where == "in the note" else n

    number = {"n": {"type": int, "default": 1}}
    tools = [
        tool("note", note, params=number, effects=["writes"], source="1"),
        tool("look", look, params=number, effects=["reads"], source="1"),
        tool("send", send, params={"what": {"type": Any, "default": None}}, effects=["net"], source="1"),
    ]
    rules = Path(folder) / "rules.hy"
    policy = rules if rules.exists() else None
    with Agent(workspace=folder, tools=tools, session="s", user="ann", policy=policy) as it:
        if where == "begin and note":
            print(it.eval("(do (send 1) (note 1))").status)
        elif where == "begin":
            print(it.eval("(do (look 1) [(send 1) (look 2) (send 1)])").status)
        else:
            (result,) = it.resume()
            print(result.status, getattr(result, "value", None))


def process(folder: Path, where: str) -> Said:
    code = f"import runpy; runpy.run_path({__file__!r})['go_on_and_die']({str(folder)!r}, {where!r})"
    return script(f"import sys; sys.path[:0] = {sys.path!r}; {code}", cwd=folder)


def test_it_goes_on_through_kill_9(desk: Desk) -> None:
    said = process(desk.folder, "begin")
    assert said.out.strip() == "pending", said.err
    desk.decide()
    # Killed in the look that follows: what was sent has its receipt, and is not sent again.
    assert process(desk.folder, "after the call").code == -signal.SIGKILL
    assert (desk.folder / "sent.txt").read_text() == "1\n"
    assert process(desk.folder, "").out.split() == ["pending", "None"]
    desk.decide()
    assert process(desk.folder, "").out.strip() == "ok ['sent 1', 20, 'sent 1']"
    assert (desk.folder / "sent.txt").read_text() == "1\n1\n"
    assert (desk.folder / "looked.txt").read_text() == "1\n2\n"


def test_an_effect_nobody_was_asked_about_is_asked_about_when_its_end_is_not_known(desk: Desk) -> None:
    (desk.folder / "rules.hy").write_text("(allow (note))")
    said = process(desk.folder, "begin and note")
    assert said.out.strip() == "pending", said.err
    desk.decide()
    assert process(desk.folder, "in the note").code == -signal.SIGKILL
    assert (desk.folder / "noted.txt").read_text() == "1\n"
    assert process(desk.folder, "").out.split() == ["pending", "None"]
    (asked,) = desk.store("SELECT reason FROM requests WHERE state = 'pending'")
    assert asked[0] == IT_WAS_BEGUN_BEFORE_AND
    assert (desk.folder / "noted.txt").read_text() == "1\n"


def test_an_approval_is_used_by_the_body_that_was_killed(desk: Desk) -> None:
    process(desk.folder, "begin")
    desk.decide()
    assert process(desk.folder, "in the body").code == -signal.SIGKILL
    assert process(desk.folder, "").out.split() == ["pending", "None"]
    (asked,) = desk.store("SELECT reason FROM requests WHERE state = 'pending'")
    assert "how that ended is not known" in asked[0]


def test_an_upgraded_tool_is_asked_about_again(desk: Desk) -> None:
    desk.eval("(do (look 1) (send 1))")
    desk.decide()
    desk.version = "2"
    assert desk.resume().status == "pending"
    assert desk.sent == []
    desk.decide()
    assert desk.resume().value == "sent 1"
    assert desk.looked == [1]


def test_another_version_of_the_sandbox_runs_the_program_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.eval("(do (look 1) (print 1) [(send 1) (look 2)])")
    desk.decide()
    monkeypatch.setattr(snapshots, "sandbox_version", lambda: "another")
    ended = desk.resume()
    assert (ended.value, ended.message) == (["sent 1", 20], "1")
    assert (desk.looked, desk.sent) == ([1, 2], [1])  # the first look was answered by its receipt


def test_another_machine_goes_on_with_the_store_alone(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.eval("(do (look 1) [(send 1) (look 2)])")
    desk.decide()
    place = store_path(desk.folder).relative_to(state_dir())
    kept = tmp_path / "elsewhere" / place
    kept.parent.mkdir(parents=True)
    shutil.copy(state_dir() / place, kept)
    monkeypatch.setenv("QUOTH_STATE", str(tmp_path / "elsewhere"))
    assert desk.resume().value == ["sent 1", 20]
    assert (desk.looked, desk.sent) == ([1, 2], [1])


def test_another_machine_with_the_key_goes_on_at_the_call(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.eval("(do (look 1) [(send 1) (look 2)])")
    desk.decide()
    shutil.copytree(state_dir(), tmp_path / "elsewhere")
    monkeypatch.setenv("QUOTH_STATE", str(tmp_path / "elsewhere"))
    desk.store("DELETE FROM receipts")  # nothing else could answer the first look
    assert desk.resume().value == ["sent 1", 20]
    assert desk.looked == [1, 2]


SPOILT: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("a changed byte", lambda state: state[:-9] + bytes([state[-9] ^ 1]) + state[-8:]),
    ("cut short", lambda state: state[:-20]),
    ("longer", lambda state: state + b"x"),
    ("nothing but the name of the key", lambda state: state[:8]),
    ("another seal", lambda state: state[:8] + bytes(32) + state[40:]),
]


@pytest.mark.parametrize("spoil", [spoil for _, spoil in SPOILT], ids=[name for name, _ in SPOILT])
def test_a_state_that_was_changed_is_refused(desk: Desk, spoil: Callable[[bytes], bytes]) -> None:
    desk.eval("(do (look 1) (send 1))")
    desk.decide()
    ((name, state),) = desk.store("SELECT name, state FROM snapshots")
    desk.store("UPDATE snapshots SET state = ? WHERE name = ?", spoil(bytes(state)), name)
    ended = desk.resume()
    assert (ended.status, ended.message) == (
        "error",
        "The saved state of the program was changed in the store and cannot be loaded.",
    )
    assert desk.sent == []


def test_the_state_of_one_call_is_not_that_of_another(desk: Desk) -> None:
    desk.eval("(do (look 1) (send 1))")
    desk.eval("(do (look 2) (send 2))")
    (one, two) = desk.store("SELECT name, state FROM snapshots ORDER BY at")
    desk.store("UPDATE snapshots SET state = ? WHERE name = ?", two[1], one[0])
    desk.decide()
    with desk.agent() as it:
        first, _ = it.resume()
    assert isinstance(first, ToolResult)
    assert first.status == "error"
    assert desk.sent == []


def test_no_file_tool_can_read_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_STATE", str(tmp_path / "state"))
    here = Desk(files(tmp_path, {"a.txt": "a"}))
    here.eval("[(send 1)]")
    assert (tmp_path / "state" / "snapshots.key").stat().st_mode & 0o777 == 0o600
    result = here.eval('(read-file "state/snapshots.key")')
    assert result.status in ("denied", "error")
    assert "snapshots.key" in result.message


def test_a_damaged_key_is_a_sentence(desk: Desk) -> None:
    desk.eval("[(send 1)]")
    (state_dir() / "snapshots.key").write_bytes(b"short")
    desk.decide()
    ended = desk.resume()
    assert ended.status == "error"
    assert ended.message.startswith("The key of the snapshots, ")


def test_what_has_ended_leaves_nothing_behind(desk: Desk) -> None:
    desk.eval('[(eval "[(send 1)]")]')
    assert len(desk.store("SELECT name FROM snapshots")) == 2
    desk.decide()
    desk.resume()
    assert desk.store("SELECT name FROM snapshots") == []


# What a session keeps


def test_values_stay_for_the_next_program_of_the_session(desk: Desk) -> None:
    desk.eval('(setv text "a long text") (defn words [] (.split text)) (setv [a b] [1 2]) (len text)')
    assert desk.eval("[(words) (+ a b)]").value == [["a", "long", "text"], 3]
    assert desk.eval("(values)").value == [
        {"name": "text", "type": "str", "length": 11},
        {"name": "words", "type": "function", "length": None},
        {"name": "a", "type": "int", "length": None},
        {"name": "b", "type": "int", "length": None},
    ]
    desk.eval("(setv text [1 2])")
    assert desk.eval("(values)").value[0] == {"name": "text", "type": "list", "length": 2}


def test_inner_programs_see_them_and_other_sessions_and_users_do_not(desk: Desk) -> None:
    desk.eval("(setv secret 1)")
    for marks in ({"session": "t"}, {"user": "bob"}):
        with Agent(workspace=desk.folder, **{"session": "s", "user": "ann"} | marks) as it:
            assert it.eval("(values)").value == []
            assert it.eval("secret").message == f"{THE_PROGRAM_USES} secret, {WHICH_IS_NOT_DEFINED}."
    assert desk.eval('[(eval "secret")]').value == [1]


def test_a_program_that_fails_leaves_the_values_as_they_were(desk: Desk) -> None:
    desk.eval("(setv x 1)")
    assert desk.eval("(do (setv x 2) (/ 1 0))").status == "error"
    assert desk.eval("x").value == 1


def test_a_program_that_stood_still_leaves_its_values_when_it_ends(desk: Desk) -> None:
    desk.eval("(setv x 1)")
    desk.eval("(do (setv y (+ x 1)) (send y) (setv z (+ y 1)))")
    assert desk.eval("y").status == "error"
    desk.decide()
    desk.resume()
    assert desk.eval("[x y z]").value == [1, 2, 3]


def test_a_value_hides_a_tool_from_its_own_program_only(desk: Desk) -> None:
    assert desk.eval("(setv look 1) look").value == 1
    assert desk.eval("(defn spoil [] (global look) (setv look 2)) (spoil) look").value == 2
    assert desk.eval("(look 3)").value == 30


def test_what_a_session_calls_len_does_not_move_the_wall(desk: Desk) -> None:
    desk.eval(
        "(defn len [_] 0) (defn type [_] str) (setv dict 1 ValueError 2 list 3 zip 4 str 5 isinstance 6)"
    )
    endless = desk.eval("(setv x 1) (for [_ (range 60)] (setv x #(x x))) #{x}")
    assert endless.status == "error"
    assert desk.eval("(pmap (fn [n] n) [1 2])").value == [1, 2]


def test_what_was_kept_and_changed_is_refused(desk: Desk) -> None:
    desk.eval("(setv x 1)")
    desk.store("UPDATE snapshots SET state = substr(state, 1, 60)")
    refused = desk.eval("x")
    assert (refused.status, refused.message) == (
        "error",
        "The values of this session were changed in the store and cannot be loaded. Use another session.",
    )


def test_a_value_too_large_to_be_kept_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MAX_BYTES", 1 << 20)
    result = desk.eval('(setv x (* "a" 3000000)) 1')
    assert (result.value, result.message) == (
        1,
        "The values of the session are larger than 1 MiB and were not saved.",
    )
    assert desk.eval("(values)").value == []


def test_values_that_changed_meanwhile_are_not_overwritten(desk: Desk) -> None:
    desk.eval("(setv a 1)")
    desk.eval("(setv b (send 1))")
    desk.eval("(setv c 3)")
    desk.decide()
    assert desk.resume().message == (
        "Another program saved values of this session; those of this program were not."
    )
    assert [value["name"] for value in desk.eval("(values)").value] == ["a", "c"]
    assert desk.eval("[a c]").value == [1, 3]


def test_a_large_value_never_enters_the_result(desk: Desk) -> None:
    files(desk.folder, {"large.txt": "line\n" * 30_000})
    assert desk.eval('(setv large (read-file "large.txt")) (len large)').value > 0
    assert desk.eval("(cut large 0 4)").value == "line"


def test_the_audit_tells_each_inner_call_of_its_program(desk: Desk) -> None:
    desk.eval("(pmap (fn [n] (send (look n))) [1 2])")
    desk.decide()
    desk.decide()
    desk.resume()
    store = Store(store_path(desk.folder))
    rows = StoreAudit(lambda: store).rows()
    store.close()
    programs = [row["id"] for row in rows if row["tool"] == "eval"]
    sent = [row for row in rows if row["tool"] == "send" and row["stage"] == "body"]
    assert {row["parent"] for row in sent} == {programs[-1]}
    assert {row["route"] for row in sent} == {"program"}
