"""Runs and calls that wait for a person: put away, decided, carried on by another process, and ended once."""

from __future__ import annotations

import json
import runpy
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_PERSON_CHANGED_THE_CALL,
    IS_BEING_DRIVEN_BY_ANOTHER,
    IT_WRITES_FILES,
    NOTHING_WAITS_IN_SESSION,
    THE_PERSON_SAID_NO,
)
from words import (
    Spy,
    TalkingFunction,
    agent,
    complaint,
    files,
    script,
    scripted,
    tool,
)

from quoth import Agent
from quoth.agent.reply import Reply
from quoth.agent.run.limits import RunLimits
from quoth.agent.session.session import Session, alone
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.call.call import ToolResult, Verdict
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import BusyError, UsageError
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


class Town:
    """A workspace with tools that count what is done; each agent in it might be another process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.looks, self.puts = Spy("seen"), []
        self.models: list[ScriptedBackend] = []

    def put(self, x: int, ctx: ToolContext) -> str:
        self.puts.append(x)
        ctx.effect(f"put:{x}")
        return f"put {x}"

    @property
    def tools(self) -> list[CognitiveTool]:
        number = {"x": {"type": int, "default": 0}}
        return [
            tool("look", self.looks, effects=["reads"]),
            tool("put", self.put, params=number, effects=["writes"]),
            tool("note", self.put, params=number),
        ]

    def agent(self, *replies: str, **options: Any) -> Agent:
        self.models.append(scripted(*replies))
        given = {"session": "s", "user": "ann", "tools": self.tools, "model": self.models[-1], **options}
        return Agent(workspace=self.folder, **given)

    def begins(self, *replies: str, task: str = "Do it.", **options: Any) -> Reply:
        """A run with this script."""
        with self.agent(*replies, **options) as it:
            return it.run(task)

    def goes_on(self, *replies: str, **options: Any) -> list[Reply | ToolResult]:
        """All that waits, carried on by a new agent with this script."""
        with self.agent(*replies, **options) as it:
            return it.resume()

    def ends(self, *replies: str, **options: Any) -> Reply:
        """The one run that waits, carried on."""
        (reply,) = self.goes_on(*replies, **options)
        assert isinstance(reply, Reply)
        return reply

    def decide(self, kind: Any = "once", place: int = 0, **more: Any) -> str:
        """What a person decides of an open request, the oldest if none is named; its form."""
        with self.agent() as it:
            request = it.broker.requests()[place].id
            return it.broker.decide(request, Decision(kind, "ann", **more)).form

    @property
    def waiting(self) -> list[str]:
        with self.agent() as it:
            return [request.form for request in it.broker.requests()]

    @property
    def unfinished(self) -> list[tuple[str, str]]:
        """What of the session is unfinished: its kind, and how it stands."""
        store = Store(store_path(self.folder))
        found = Session(Transcript(lambda: store), "s", "ann", self.folder).unfinished()
        store.close()
        return [(one.kind, one.status) for one in found if one.waits]

    def heard(self, model: int = -1, request: int = -1) -> list[str]:
        """What was new to a model at one of its requests."""
        new: list[str] = []
        for message in json.loads(self.models[model].seen[request]):
            new = [] if message["role"] in ("system", "assistant") else [*new, message["content"]]
        return new

    def requests(self) -> list[bytes]:
        return [request for model in self.models for request in model.seen]


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def one_prefix(requests: list[bytes]) -> bool:
    """Whether each request begins with all of the one before it."""
    return all(later.startswith(earlier[:-1]) for earlier, later in pairwise(requests))


# A run that waits


def test_a_run_waits_is_approved_and_goes_on_from_that_call(town: Town) -> None:
    begun = town.begins("(look) (note 1)", "(look) (put 2) (note 3)")
    assert (begun.status, begun.session) == ("pending", "s")
    assert begun.text.startswith(f"put waits for a person's approval: {IT_WRITES_FILES} (request ")
    assert (town.looks.calls, town.puts) == (2, [1, 3])
    assert town.decide() == "(put :x 2)"
    ended = town.ends("Done.")
    assert (ended.status, ended.text, ended.steps) == ("done", "Done.", 3)
    assert (town.looks.calls, town.puts) == (2, [1, 3, 2])
    statuses = [(str(call.form), call.result.status) for call in ended.calls]
    assert statuses == [
        ("(look)", "ok"),
        ("(note 1)", "ok"),
        ("(look)", "ok"),
        ("(put 2)", "ok"),
        ("(note 3)", "ok"),
    ]
    assert town.unfinished == []
    assert complaint(UsageError, lambda: town.goes_on()) == f"{NOTHING_WAITS_IN_SESSION} s."


def test_the_model_hears_one_result_for_each_call_in_their_order(town: Town) -> None:
    town.begins("(look) (put 2) (note 3)")
    town.decide()
    town.ends("Done.")
    results, cue = town.heard()
    assert results == "(look) -> ok:\nseen\n\n(put 2) -> ok:\nput 2\n\n(note 3) -> ok:\nput 3"
    assert cue.startswith("Do it.\n")


def test_what_was_said_stays_as_it_was(town: Town) -> None:
    town.begins("(look)", "An unreadable (form\n(put 1)")
    town.decide()
    town.ends("(look)\n(put 2)")
    town.decide("deny")
    town.ends("(look)", "Done.")
    assert one_prefix(town.requests())


def test_a_no_is_the_result_of_the_call_and_the_run_goes_on(town: Town) -> None:
    town.begins("(put 1)")
    town.decide("deny", why="use note instead")
    assert town.ends("(note 2)", "Done.").text == "Done."
    assert town.heard(request=0)[0] == "(put 1) -> denied: put was denied: the person said: use note instead."
    assert town.puts == [2]


def test_an_edit_is_made_in_place_of_the_call(town: Town) -> None:
    town.begins("(put 1)")
    town.decide("edit", form=CallForm("put", {"x": 7}))
    assert town.ends("Done.").status == "done"
    assert town.heard()[0] == f"(put 1) -> ok:\nput 7\n({A_PERSON_CHANGED_THE_CALL} (put :x 7).)"
    assert town.puts == [7]


def test_what_is_not_decided_waits_on(town: Town) -> None:
    begun = town.begins("(note 1) (put 2)")
    for _ in range(2):
        assert town.ends().text == begun.text
    assert town.unfinished == [("run", "pending")]
    assert len(town.waiting) == 1
    town.decide()
    assert town.ends("Done.").status == "done"
    assert town.puts == [1, 2]


def test_two_calls_of_a_turn_are_decided_one_after_the_other(town: Town) -> None:
    begun = town.begins("(put 1) (look) (put 2)")
    assert len(begun.text.splitlines()) == 2
    assert town.decide(place=1) == "(put :x 2)"
    assert town.ends().status == "pending"
    assert (town.puts, town.waiting) == ([2], ["(put :x 1)"])
    town.decide("deny")
    assert town.ends("Done.").status == "done"
    assert town.heard()[0] == (
        f"(put 1) -> denied: put was denied: {THE_PERSON_SAID_NO}.\n\n"
        "(look) -> ok:\nseen\n\n(put 2) -> ok:\nput 2"
    )
    assert (town.puts, town.looks.calls) == ([2], 1)


def test_a_call_said_twice_in_one_breath_is_made_once(town: Town) -> None:
    town.begins("(put 1) (put 1)")
    town.decide()
    assert town.ends("Done.").status == "done"
    assert town.heard()[0] == "(put 1) -> ok:\nput 1\n\n(put 1) -> ok:\nput 1"
    assert (town.puts, town.waiting) == ([1], [])


def test_a_run_may_wait_again_and_again(town: Town) -> None:
    town.begins("(put 1)")
    for number in (2, 3, 4):
        town.decide()
        assert town.ends(f"(note {number * 10})", f"(put {number})").status == "pending"
        assert town.unfinished == [("run", "pending")]
    town.decide()
    ended = town.ends("Done.")
    assert (ended.status, ended.steps, len(ended.calls)) == ("done", 8, 7)
    assert town.puts == [1, 20, 2, 30, 3, 40, 4]
    assert one_prefix(town.requests())


def test_a_program_goes_on_without_doing_again_what_it_did(town: Town) -> None:
    town.begins("(eval (do (look) (note 1) (put 2) (note 3) (put 4) 5))")
    assert town.waiting == ["(put :x 2)"]
    town.decide()
    assert town.ends().status == "pending"
    assert town.waiting == ["(put :x 4)"]
    town.decide()
    town.ends("Done.")
    assert town.heard()[0].endswith("-> ok:\n5")
    assert (town.puts, town.looks.calls) == ([1, 2, 3, 4], 1)


def allowing(town: Town, *names: str) -> Path:
    return files(town.folder, {"given.hy": "\n".join(f"(allow ({name}))" for name in names)}) / "given.hy"


def test_a_run_that_goes_on_has_the_limits_and_the_memory_of_its_beginning(town: Town) -> None:
    town.begins("(look)", "(put 1)", limits=RunLimits(steps=4, repeats=9))
    town.decide("deny")
    ended = town.ends("(look)", "(look)", limits=RunLimits(steps=4, repeats=9))
    assert (ended.status, ended.error) == ("failed", "The run was stopped after 4 steps without an answer.")
    assert town.unfinished == []


def test_a_run_that_is_stopped_while_it_goes_on_waits_on(town: Town) -> None:
    town.begins("(put 1)")
    town.decide()
    it = town.agent()

    def stop(messages: Messages) -> str:
        it._agent.interrupt()
        return "(note 2)"

    it.close()
    it = town.agent(model=TalkingFunction(stop))
    (stopped,) = it.resume()
    it.close()
    assert isinstance(stopped, Reply)
    assert (stopped.status, town.puts) == ("interrupted", [1])
    assert town.ends("(note 2)", "Done.").status == "done"
    assert town.puts == [1, 2]


def test_a_model_that_fails_while_a_run_goes_on_ends_it(town: Town) -> None:
    town.begins("(put 1)")
    town.decide()
    assert town.ends().status == "failed"
    assert town.unfinished == []


def test_a_resumed_run_shows_no_declared_secret(town: Town) -> None:
    login = tool("login", Spy("in"), params={"pin": {"secret": True}}, effects=["net"])
    town.begins('(login "hunter2")', tools=[login])
    town.decide()
    ended = town.ends("Done.", tools=[login])
    assert "hunter2" not in json.dumps(ended.to_json())
    assert ended.calls[0].to_json()["form"] == '(login "[secret]")'
    rows = Store(store_path(town.folder))
    kept = [
        str(row) for name in ("requests", "events", "audit") for row in rows.execute(f"SELECT * FROM {name}")
    ]
    rows.close()
    assert "hunter2" not in "\n".join(kept)


def test_another_user_uses_no_approval(town: Town) -> None:
    town.begins("(put 1)")
    town.decide()
    assert complaint(UsageError, lambda: town.goes_on(user="eve")) == f"{NOTHING_WAITS_IN_SESSION} s."
    assert town.puts == []
    assert town.ends("Done.").status == "done"
    assert town.puts == [1]


def test_a_conversation_that_came_to_wait_can_be_gone_on_with(town: Town) -> None:
    with town.agent("(put 1)", "Hello.", "Done.") as it:
        assert it.say("Put it.").status == "pending"
        assert it.say("Hello?").text == "Hello."
        it.broker.decide(it.broker.requests()[0].id, Decision(by="ann"))
        (reply,) = it.resume()
        assert isinstance(reply, Reply)
        assert (reply.text, town.puts) == ("Done.", [1])


# Calls of a person


def test_a_call_waits_and_goes_on_as_the_same_call(town: Town) -> None:
    with town.agent() as it:
        assert it.call("(put 1)").status == "pending"
    assert complaint(UsageError, lambda: town.goes_on(session="t")) == f"{NOTHING_WAITS_IN_SESSION} t."
    assert [result.status for result in town.goes_on()] == ["pending"]  # type: ignore[union-attr]
    town.decide()
    (result,) = town.goes_on()
    assert isinstance(result, ToolResult)
    assert (result.status, result.value, result.audit["route"]) == ("ok", "put 1", "python")
    assert (town.puts, town.unfinished) == ([1], [])


def test_calls_and_runs_go_on_in_the_order_they_came(town: Town) -> None:
    with town.agent("(put 2)") as it:
        it.call("(put 1)")
        it.run("Do it.")
        it.eval("(do (note 3) (put 4))")
    assert [kind for kind, _ in town.unfinished] == ["call", "run", "call"]
    for _ in range(3):
        town.decide()
    done = town.goes_on("Done.")
    assert [type(one) for one in done] == [ToolResult, Reply, ToolResult]
    assert town.puts == [3, 1, 2, 4]


def test_a_call_that_is_denied_has_ended(town: Town) -> None:
    with town.agent() as it:
        it.call("(put 1)")
    town.decide("deny", why="no")
    (result,) = town.goes_on()
    assert isinstance(result, ToolResult)
    assert (result.status, town.unfinished) == ("denied", [])


def test_a_body_that_asks_twice_is_asked_about_once_each(town: Town) -> None:
    async def body(ctx: ToolContext) -> str:
        await ctx.permission.request("a", "one")
        await ctx.permission.request("b", "two")
        return "both"

    made = tool("probe", body, effects=["writes"], asks_first=True)
    with town.agent(tools=[made]) as it:
        it.call("(probe)")
    asked = []
    while town.waiting:
        with town.agent(tools=[made]) as it:
            asked.append(it.broker.decide(it.broker.requests()[0].id, Decision(by="ann")).form)
        (result,) = town.goes_on(tools=[made])
    assert isinstance(result, ToolResult)
    assert (result.value, len(asked)) == ("both", 3)


# One at a time


def test_who_comes_second_is_refused(town: Town) -> None:
    town.begins("(put 1)")
    town.decide()
    with alone(store_path(town.folder), "s"):
        assert complaint(BusyError, lambda: town.goes_on()) == (f"Session s {IS_BEING_DRIVEN_BY_ANOTHER}.")
        assert town.puts == []
        with alone(store_path(town.folder), "t"), alone(store_path(town.folder / "x"), "s"):
            pass
    assert town.ends("Done.").status == "done"


@pytest.mark.parametrize("session", ["a/b", "ä" * 300, "\n", "x" * 10_000])
def test_any_session_can_be_alone(tmp_path: Path, session: str) -> None:
    place = store_path(tmp_path)
    with alone(place, session):
        complaint(BusyError, lambda: alone(place, session).__enter__())
        with alone(place, session + "_"):
            pass


HOLDS = """
import sys
from pathlib import Path
from quoth.agent.session.session import alone
with alone(Path(sys.argv[1]), "s"):
    print("mine", flush=True)
    sys.stdin.readline()
"""


def test_a_process_that_is_killed_holds_nothing(town: Town) -> None:
    town.begins("(put 1)")
    words = [sys.executable, "-c", HOLDS, str(store_path(town.folder))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "mine\n"
        complaint(BusyError, lambda: town.goes_on())
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert town.ends().status == "pending"


# A process that is killed while a run goes on

LIVES = """
import os, signal, sys
from pathlib import Path
from quoth import Agent
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.consent.requests import Decision
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.registry.table import ToolTable

REPLIES = ["(put 1)", "(put 2) (look) (put 3)", "(put 2) (put 4)", "Done."]


def live(folder, point):
    def reached(label):
        if label == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def reply(messages):
        turn = sum(message["role"] == "assistant" for message in messages)
        reached(f"turn {turn + 1}")
        return REPLIES[turn]

    def put(x, ctx):
        reached(f"put {x}")
        with (folder / "ran").open("a") as out:
            out.write(f"{x} ")
        ctx.effect(f"put:{x}")
        reached(f"put {x} done")
        return x

    with registering_in(ToolTable()):
        made = [
            define_tool("put", "Put.", parameters={"x": {"type": int}}, body=put, effects=["writes"]),
            define_tool("look", "Look.", parameters={}, body=lambda: "seen", effects=["reads"]),
        ]
    options = dict(workspace=folder / "w", session="s", user="ann", tools=made, policy=folder / "policy.hy")
    with Agent(model=ScriptedBackend(reply), **options) as it:
        if point == "begin":
            begun = it.run("Do it.")
            it.broker.decide(it.broker.requests()[0].id, Decision(by="ann"))
            return begun
        return it.resume()[0]


if __name__ == "__main__":
    live(Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.parametrize(
    ("points", "ran", "said"),
    [
        (["turn 2", "turn 3"], "1 2 3 2 4 ", "Done."),
        (["turn 3", "turn 4"], "1 2 3 2 4 ", "Done."),
        # Here nobody can know how far it came: the call is asked about, again if it was approved.
        (["turn 2", "put 3"], "1 2 ", "put waits for a person's approval: it was begun before"),
        (["turn 3", "put 4"], "1 2 3 2 ", "put waits for a person's approval: it was begun before"),
        (["put 4 done"], "1 2 3 2 4 ", "put waits for a person's approval: it was begun before"),
        (["put 1"], "", "put waits for a person's approval"),
        (["put 1 done"], "1 ", "put waits for a person's approval"),
    ],
    ids=lambda points: ", ".join(points) if isinstance(points, list) else "",
)
def test_a_run_that_is_killed_while_it_goes_on_does_nothing_twice(
    tmp_path: Path, points: list[str], ran: str, said: str
) -> None:
    files(tmp_path, {"lives.py": LIVES, "policy.hy": "(allow (put :x (> 1)))", "w/.keep": "", "ran": ""})
    live = runpy.run_path(str(tmp_path / "lives.py"))["live"]
    assert live(tmp_path, "begin").status == "pending"
    for point in points:
        died = script(LIVES, tmp_path, point, cwd=tmp_path)
        assert (died.code, died.err) == (-9, "")
    assert live(tmp_path, "never").text.startswith(said)
    assert (tmp_path / "ran").read_text() == ran


# What is kept of it


def test_an_agent_that_was_put_together_from_words_says_with_which(town: Town) -> None:
    script = files(town.folder, {"replies.txt": "(put 1)"}) / "replies.txt"
    town.begins(model=f"scripted:{script}", policy=allowing(town, "look"))
    store = Store(store_path(town.folder))
    given = Session(Transcript(lambda: store), "s", "ann", town.folder).given()
    store.close()
    assert (given["model"], given["policy"]) == (f"scripted:{script}", str(town.folder / "given.hy"))
    assert given["limits"]["steps"] == 25
    assert given["tools"] == []


def test_a_person_who_is_there_now_decides_what_waited(town: Town) -> None:
    class Yes:
        async def request(self, *_: Any) -> Verdict:
            return Verdict("allow")

    town.begins("(put 1)")
    assert town.ends("Done.", consent=Yes()).status == "done"
    assert (town.puts, town.waiting) == ([1], [])


def test_who_says_yes_to_everything_says_it_to_what_waited(town: Town) -> None:
    town.begins("(put 1)")
    assert town.ends("Done.", consent="yes").status == "done"
    assert town.puts == [1]


def test_an_agent_without_a_store_of_its_own_waits_as_any(tmp_path: Path) -> None:
    put = Spy("put")
    options: dict[str, Any] = {"session": "s", "user": "ann", "tools": [tool("put", put, effects=["writes"])]}
    with agent(tmp_path, "(put)", **options) as it:
        assert it.run("Do it.").status == "pending"
        it.broker.decide(it.broker.requests()[0].id, Decision(by="ann"))
    with agent(tmp_path, "Done.", **options) as it:
        (reply,) = it.resume()
    assert isinstance(reply, Reply)
    assert (reply.status, put.calls) == ("done", 1)
