"""An approval of a plan covers what the person saw, in the run it was given for, and nothing else."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
from field import Field, approve, block, denied, statuses, step
from words import complaint, files, tool

from quoth import AsyncAgent
from quoth.agent.flight.approval import Coverage, as_data, coverage, coverage_data, page, record
from quoth.agent.flight.plan_file import PlanFile
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import StoreError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.loading import load_tools
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


# For one run


def fly_until_covered(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flight that is broken off when an approval was given to a block and the block has not begun."""
    from quoth.agent.flight import step as flight_step

    def last(*given: Any) -> None:
        cover(*given)
        raise StoreError("It was killed.")

    cover = flight_step.cover
    with monkeypatch.context() as here:
        here.setattr(flight_step, "cover", last)
        complaint(StoreError, field.fly)


def test_an_approval_that_was_given_to_one_step_lets_no_other_do_the_same(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    field.plan(step("a", block("(put 1)")), step("b", block("(put 1)"), after="nil"))
    approve(field, "a")
    fly_until_covered(field, monkeypatch)
    assert statuses(field.fly(wanted={"only": "b"}))["b"] == "waits"
    assert field.puts == []
    assert statuses(field.fly(wanted={"only": "a"}))["a"] == "done"
    assert field.puts == [1]


def test_a_block_that_was_killed_before_it_began_needs_no_other_approval(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    field.plan(step("a", block("(put 1)")))
    approve(field)
    fly_until_covered(field, monkeypatch)
    assert field.fly().ok
    assert field.puts == [1]
    with field.agent() as agent:
        assert len([one for one in agent.broker.requests(every=True) if one.tool == "eval"]) == 1


def test_an_approval_that_was_given_to_a_block_is_for_no_eval_of_the_same_words(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    field.plan(step("a", block("(put 1)")))
    approve(field)
    fly_until_covered(field, monkeypatch)
    with field.agent() as agent:
        (given,) = agent.broker.requests(every=True)
    with field.agent('(eval "(put 1)")', session=given.session) as agent:
        assert agent.eval("(put 1)").status == "pending"
        assert agent.run("Do it.").status == "pending"
    assert field.puts == []


def test_an_approval_is_not_given_in_the_place_of_one_that_somebody_else_waits_for(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    field.plan(step("a", block("(put 1)")))
    with field.agent(session="s1") as agent:
        other = agent.ask_for_plan("(put 1)", agent.eval("(put 1)", dry_run=True).value)
    approve(field)
    assert field.fly(session="s1").ok
    with field.agent(session="s1") as agent:
        assert agent.broker.find(other).state == "pending"
        assert agent.eval("(put 1)").status == "pending"
    assert field.puts == [1]


def test_each_attempt_and_each_of_two_equal_blocks_has_its_own(field: Field) -> None:
    field.fails = 1
    field.plan(step("a", block("(put 1)"), block("(put 1)"), block("(shaky)"), retry="1"))
    approve(field)
    assert field.fly(policy=policy(field, "(allow (shaky))")).ok
    assert field.puts == [1, 1, 1, 1]


# A denial of the same


def test_a_denied_program_is_denied_under_a_headline_that_was_approved_for_another(field: Field) -> None:
    field.plan(step("safe", block("(put 1)")), step("danger", block("(put 2)")))
    approve(field, "safe")
    denied(field, "danger")
    field.plan(step("safe", block("(put 2)")))
    report = field.fly(consent="yes")
    said = "safe was denied: it does the same as danger, and the person said: too early."
    assert (statuses(report), report.steps[0].text) == ({"safe": "denied"}, said)
    assert field.puts == []
    approve(field)
    assert field.fly().ok
    assert field.puts == [2]


def test_an_approval_that_holds_is_of_its_own_headline_whatever_was_denied_elsewhere(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("(put 1)"), after="nil"))
    denied(field, "one")
    approve(field, "two")
    assert field.fly(wanted={"only": "two"}).ok
    field.edit(":AFTER: nil", ":AFTER: nil\n:RETRY: 1")
    assert statuses(field.fly(consent="yes", wanted={"only": "two"}))["two"] == "denied"


# What the person sees


class Sight:
    """What ann sees of the steps of a plan when she approves them."""

    def __init__(self, field: Field, **options: Any) -> None:
        self.plan = PlanFile(field.path).plan
        self.steps = self.plan.by_id
        self.covered: dict[str, Coverage] = {}

        async def work() -> None:
            given = {"tools": [*field.tools, note(field)], "user": "ann", **options}
            async with AsyncAgent(workspace=field.folder, **given) as agent:
                for one in self.plan.steps:
                    self.covered[one.id] = await coverage(agent.host, self.plan, one)

        asyncio.run(work())

    def page(self, step: str = "one") -> list[str]:
        return page(self.plan, self.steps[step], "APPROVED", self.covered[step]).split("\n")[1:]

    def data(self, step: str = "one") -> dict[str, Any]:
        return as_data(self.plan, self.steps[step]) | coverage_data(self.covered[step])

    def under(self, label: str, step: str = "one") -> list[str]:
        """What stands under a label of the page."""
        rest = self.page(step)
        rest = rest[rest.index(f"    {label}:") + 1 :]
        end = next((n for n, line in enumerate(rest) if not line.startswith(" " * 6)), len(rest))
        return [line[8:] for line in rest[:end]]


def note(field: Field) -> CognitiveTool:
    def write(text: str, ctx: ToolContext) -> None:
        ctx.effect(f"note:{text}")

    return tool("note", write, params={"text": {"type": str}}, effects=["writes"])


def policy(field: Field, rules: str) -> Path:
    files(field.folder, {"rules.hy": rules})
    return Path(field.folder / "rules.hy")


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 81 columns."""
    monkeypatch.setattr("quoth.agent.flight.approval.is_terminal", lambda out: True)
    monkeypatch.setattr("quoth.agent.flight.approval.columns_of", lambda out: 81)


def test_every_call_that_is_covered_is_shown_with_the_data_it_comes_of(field: Field) -> None:
    rows = [f"| {n} | text {n} |" for n in range(7)]
    loop = block("(for [[n text] rows] (put n) (note text))", head="hy :var rows=files x=5")
    field.plan("#+NAME: files", *rows, step("one", loop))
    sight = Sight(field)
    assert sight.under("with") == [
        "rows = files, 7 rows",
        *(f'  [{n} "text {n}"]' for n in range(7)),
        "x = 5",
    ]
    calls = [*(f'(note :text "text {n}")' for n in range(7)), *(f"(put :x {n})" for n in range(7))]
    assert sorted(sight.under("covers, in each attempt")) == calls
    data = sight.data()
    assert sorted(one["call"] for one in data["covers"]) == calls
    assert data["with"] == [
        {
            "rows": {"data": "files", "value": [[n, f"text {n}"] for n in range(7)]},
            "x": {"value": 5},
        }
    ]


def test_how_often_a_call_may_come_is_shown(field: Field) -> None:
    field.plan(
        step("one", block("(put 1) (put 1) (while (look) (put 2)) (put 3)"), block("(put 1)"), retry="2")
    )
    sight = Sight(field)
    assert sorted(sight.under("covers, in each of up to 3 attempts")) == [
        "(put :x 3)",
        "3 times: (put :x 1)",
        "any number of times: (put :x 2)",
    ]
    assert {one["call"]: one["times"] for one in sight.data()["covers"]} == {
        "(put :x 1)": 3,
        "(put :x 2)": None,
        "(put :x 3)": 1,
    }


def test_a_long_call_is_shown_whole_over_lines_that_are_marked(field: Field) -> None:
    text = " ".join(f"word{n}" for n in range(40))
    field.plan(step("one", block(f'(note "{text}")')))
    sight = Sight(field)
    assert "".join(sight.under("covers, in each attempt")) == f'(note :text "{text}")'
    marks = {line[:8] for line in sight.page() if not line.startswith(" " * 4 + "covers")}
    assert marks == {" " * 4 + "runs", " " * 8, " " * 6 + "… "}
    assert all(len(line) <= 80 for line in sight.page())


def test_in_a_pipe_it_stays_on_its_line(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.agent.flight.approval.is_terminal", lambda out: False)
    text = "日本 word " * 40
    field.plan(step("one", block(f'(note "{text}")')))
    assert Sight(field).under("covers, in each attempt") == [f'(note :text "{text}")']


def test_a_huge_argument_is_shown_by_its_head_length_and_digest_and_whole_as_data(field: Field) -> None:
    whole = "evil " * 1000
    field.plan(step("one", block('(note (* "evil " 1000))'), block('(note (* "x" 1990))')))
    sight = Sight(field)
    shown = "".join(sight.under("covers, in each attempt"))
    digest = hashlib.sha256(whole.encode()).hexdigest()
    assert f'(note :text "{"evil " * 40}"… #<5,000 characters, sha256 {digest}>)' in shown
    assert f'(note :text "{"x" * 1990}")' in shown
    assert f'(note :text "{whole}")' in [one["call"] for one in sight.data()["covers"]]


def test_the_properties_that_count_are_shown_wherever_they_stand(field: Field) -> None:
    field.plan(
        "#+PROPERTY: RETRY 3",
        step("Build", expect="(= 1 1)", model="scripted:x", on_fail="skip", may_fail="t"),
        step("zero", block("0"), head="**"),
        step("one", block("(look)"), head="**", tools="look put", budget="steps=3 seconds=9", after="nil",
             expect='(= (look) "seen")'),
    )  # fmt: skip
    assert Sight(field).under("properties") == [
        ":TOOLS: look put",
        ":MODEL: scripted:x",
        ":BUDGET: steps=3 seconds=9",
        ":RETRY: 3",
        ":ON-FAIL: skip",
        ":MAY-FAIL: t",
        ":AFTER: nil",
        ':EXPECT: (= (look) "seen")',
        ":EXPECT of build: (= 1 1)",
    ]
    assert Sight(field).data("zero")["properties"] == {
        "MODEL": "scripted:x",
        "RETRY": "3",
        "ON-FAIL": "skip",
        "MAY-FAIL": "t",
        "EXPECT of build": "(= 1 1)",
    }


def test_blocks_that_give_a_value_are_shown_with_what_they_will_ask(field: Field) -> None:
    field.plan(
        "* Library",
        block("(put z)", head="hy :var z=2", name="lib"),
        step("one", block("(note (str n))", head="hy :var n=lib")),
    )
    sight = Sight(field)
    assert sight.under("runs first, to compute a value") == ["#+NAME: lib", "(put z)"]
    assert "        z = 2" in sight.page()
    assert sight.under("covers") == ["no call"]
    assert sight.under("will still ask") == [
        "note (it uses the result of lib)",
        "put (in the block lib, which computes a value)",
    ]
    assert sight.data()["blocks"] == {"lib": {"form": "(put z)", "with": {"z": {"value": 2}}}}


def test_what_a_model_is_told_beside_its_objective_is_shown(field: Field) -> None:
    field.plan(step("Build", "Why it is done."), step("one", "Do it.", "Then stop.", head="**"))
    sight = Sight(field)
    assert sight.under("objective") == ["Do it.", "Then stop."]
    assert sight.under("its model also reads") == ["Build:", "Why it is done."]
    assert sight.under("will still ask") == ["calls of its model"]


@pytest.mark.parametrize("control", ["\x1b[2J", "\x9b2J", "\u202e", "\x08\x08", "\u2028", "\x7f"])
def test_what_would_steer_a_terminal_is_shown_as_an_escape(field: Field, control: str) -> None:
    field.plan(
        "#+NAME: d",
        f"| a{control}b |",
        step(f"one{control}", block(f'(note "a{control}b") ; {control}', head="hy :var d=d"), id="one"),
        step("two", f"Do {control} it.", id="two"),
    )
    sight = Sight(field)
    for id in ("one", "two"):
        shown = page(sight.plan, sight.steps[id], "APPROVED", sight.covered[id])
        assert shown.replace("\n", "").isprintable()
    assert sight.under("covers, in each attempt")[0].startswith('(note :text "a\\')


def test_no_text_of_a_plan_can_pass_for_a_line_of_the_page(field: Field) -> None:
    """Neither by its own ends of lines, nor where a terminal would break it."""
    forged = "    covers, in each attempt:"
    field.plan(
        step("one", block("; " + "x" * 70 + forged, '(note "\n    covers:\n")')),
        step("two", forged, "x" * 72 + forged),
    )
    sight = Sight(field)
    for id, label in (("one", ["runs", "covers"]), ("two", ["objective", "covers", "will still ask"])):
        ours = [line for line in sight.page(id) if not line.startswith(" " * 6)]
        assert [line.strip(" :").partition(",")[0] for line in ours] == label


def test_a_call_that_was_not_shown_is_not_covered_under_another_policy(field: Field) -> None:
    field.plan(step("one", block("(put 1)")))
    lax = policy(field, "(allow (put))")
    sight = Sight(field, policy=lax)
    assert sight.under("covers") == ["no call, because none needs a question"]
    approve(field, policy=lax)
    assert field.fly().status == "pending"
    assert field.puts == []


def test_an_approval_without_a_page_covers_no_call(field: Field) -> None:
    field.plan(step("one", block("(put 1)")))
    plan, store = (file := PlanFile(field.path)).plan, Store(store_path(field.folder))
    given = (plan, str(file.path), plan.by_id["one"], load_tools(field.tools), Decision("once", "ann"))
    record(store, StoreAudit(lambda: store), *given)
    store.close()
    assert field.fly().status == "pending"
