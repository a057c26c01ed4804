"""What the approval of a plan covers: that program, those calls, as often as it says, in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from words import agent, complaint, files, tool

from quoth import Agent
from quoth.tools.call.call import ToolResult
from quoth.tools.consent.plan_approvals import PLAN
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

WHERE = '(setv name (get (sh "ls") 0)) (write-file :path f"out/{name}.txt" :content (sh "cat"))'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path, {"kept.txt": "kept"})


class Room:
    """An agent whose ``sh`` answers what it is told to, for one session after another process's fashion."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.says: dict[str, Any] = {}
        self.did: list[str] = []
        self.effects = ["runs"]
        self.user, self.session, self.policy = "ann", "s1", ""

    def agent(self) -> Agent:
        def sh(cmd: str) -> Any:
            self.did.append(cmd)
            return self.says.get(cmd, cmd)

        made = tool("sh", body=sh, params={"cmd": {"type": str}}, effects=self.effects)
        return agent(
            self.here, tools=[made], user=self.user, session=self.session, policy=self.policy or None
        )

    def plan(self, text: str, dry: Any = True) -> str:
        """Look at a program and leave a request for its plan."""
        with self.agent() as here:
            return here.ask_for_plan(text, here.eval(text, dry_run=dry).value)

    def approve(self, text: str, kind: Any = "once") -> str:
        request = self.plan(text)
        self.decide(request, kind)
        return request

    def decide(self, request: str, kind: Any = "once") -> None:
        with self.agent() as here:
            here.broker.decide(request, Decision(kind, "bob"))

    def run(self, text: str) -> ToolResult:
        self.did.clear()
        with self.agent() as here:
            return here.eval(text)

    def resume(self) -> Any:
        with self.agent() as here:
            return here.resume()[0]

    @property
    def waiting(self) -> list[str]:
        with self.agent() as here:
            return [request.form for request in here.broker.requests()]


@pytest.fixture
def room(here: Path) -> Room:
    return Room(here)


def test_a_run_within_its_plan_is_not_asked(room: Room) -> None:
    room.says = {"ls": ["q"], "cat": "content"}
    room.approve(WHERE)
    assert room.run(WHERE).status == "ok"
    assert (room.here / "out/q.txt").read_text() == "content"
    assert room.did == ["ls", "cat"]


LEAVES = [
    ("another argument", '(sh (if (= (sh "x") "x") "b" "c"))', '(sh (+ (sh "x") "b"))'),
    ("another program", '(sh "a")', '(do (sh "a"))'),
    ("another call", '(sh "a")', '(sh "a") (sh "b")'),
]


@pytest.mark.parametrize(("planned", "run"), [case[1:] for case in LEAVES], ids=[case[0] for case in LEAVES])
def test_another_program_than_the_one_approved_is_asked(room: Room, planned: str, run: str) -> None:
    room.approve(planned)
    assert room.run(run).status == "pending"
    assert room.did == []


def test_what_leaves_the_shape_asks_again_and_the_run_goes_on_within_it(room: Room) -> None:
    text = '(setv where (read-file "kept.txt")) (sh "first") (sh where) (sh "last")'
    room.approve(text)
    files(room.here, {"kept.txt": "changed"})
    assert room.run(text).status == "pending"
    assert room.did == ["first"]
    (waits,) = room.waiting
    assert waits == '(sh :cmd "changed")'
    with room.agent() as here:
        (request,) = here.broker.requests()
        here.broker.decide(request.id, Decision("once", "bob"))
    room.did.clear()
    assert room.resume().status == "ok"
    assert room.did == ["changed", "last"]


def test_a_shape_comes_as_often_as_the_plan_says(room: Room) -> None:
    text = '(for [x (range (int (read-file "kept.txt")))] (sh "a"))'
    files(room.here, {"kept.txt": "2"})
    room.approve(text)
    files(room.here, {"kept.txt": "3"})
    assert room.run(text).status == "pending"
    assert room.did == ["a", "a"]


def test_what_is_repeated_in_the_plan_comes_any_number_of_times(room: Room) -> None:
    text = '(for [x (sh "ls")] (sh f"rm {x}"))'
    room.says = {"ls": ["a", "b", "c"]}
    room.approve(text)
    assert room.run(text).status == "ok"
    assert room.did == ["ls", "rm a", "rm b", "rm c"]


def test_a_program_in_the_program_is_part_of_the_plan(room: Room) -> None:
    text = '(eval "(sh \\"deep\\")")'
    room.approve(text)
    assert room.run(text).status == "ok"
    assert room.did == ["deep"]


def test_an_approved_plan_is_for_one_run(room: Room) -> None:
    room.approve('(sh "a")')
    assert [room.run('(sh "a")').status for _ in range(2)] == ["ok", "pending"]


def test_a_plan_is_of_one_user_in_one_session(room: Room) -> None:
    room.approve('(sh "a")')
    room.session = "s2"
    assert room.run('(sh "a")').status == "pending"
    room.session, room.user = "s1", "eve"
    assert room.run('(sh "a")').status == "pending"
    room.user = "ann"
    assert room.run('(sh "a")').status == "ok"


def test_a_tool_that_has_changed_asks_again(room: Room) -> None:
    room.approve('(sh "a")')
    room.effects = ["runs", "net"]
    assert room.run('(sh "a")').status == "pending"
    assert room.did == []


def test_a_rule_that_denies_still_denies(room: Room) -> None:
    room.approve('(sh "a")')
    room.policy = str(files(room.here, {"p.hy": '(deny (sh :cmd "a"))'}) / "p.hy")
    assert room.run('(sh "a")').status == "denied"
    assert room.did == []


def test_what_was_allowed_when_the_plan_was_made_is_not_part_of_the_approval(room: Room) -> None:
    text = '(sh "a") (sh "b")'
    room.policy = str(files(room.here, {"p.hy": '(allow (sh :cmd "a"))'}) / "p.hy")
    room.approve(text)
    room.policy = ""
    assert room.run(text).status == "pending"
    assert room.waiting == ['(sh :cmd "a")']


def test_a_plan_that_was_denied_or_has_expired_allows_nothing(room: Room) -> None:
    room.approve('(sh "a")', "deny")
    assert room.run('(sh "a")').status == "pending"
    request = room.approve('(sh "b")')
    store = Store(store_path(room.here))
    store.execute("UPDATE requests SET expires = 1 WHERE id = ?", (request,))
    store.close()
    assert room.run('(sh "b")').status == "pending"


def test_a_plan_is_approved_as_it_is(room: Room) -> None:
    request = room.plan('(sh "a")')
    for kind in ("duration", "scope", "edit"):
        said = complaint(UsageError, lambda kind=kind: room.decide(request, kind))  # type: ignore[misc]
        assert said == "A plan can only be approved unchanged, for one run of its program, or denied."


def test_a_call_of_a_tool_itself_is_no_part_of_the_plan_of_a_program(room: Room) -> None:
    room.approve('(sh "a")')
    with room.agent() as here:
        assert here.call('(sh "a")').status == "pending"


def test_no_model_and_no_program_can_leave_a_request_for_a_plan(room: Room) -> None:
    for text in (f'(eval :form (sh "a") :{PLAN} "x")', '(eval "(sh 1)" :dry-run "yes")'):
        with room.agent() as here:
            assert here.call(text).status == "invalid"
    with room.agent() as here:
        assert here.call('(eval :form (sh "a") :dry-run True)').status == "ok"
        assert here.eval('(eval "(sh \\"a\\")" :dry-run True)').value.startswith("(sh ")
    assert room.waiting == []
