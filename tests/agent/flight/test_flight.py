"""Flight plans flown: what is run, what is told to whom, and what is written into the file."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import disks
import pytest
from field import Field, approve, block, denied, statuses, step
from sentences import (
    CANNOT_BE_READ,
    CANNOT_BE_WRITTEN,
    CHARACTERS_LEFT_OUT,
    COULD_NOT_BE_WRITTEN,
    LEAVE_OUT,
    THE_CALL_WAS_DONE_BUT,
    THE_DISK_IS_FULL,
    THE_RUN_WAS_STOPPED,
    THE_RUN_WAS_STOPPED_BEFORE,
    THE_SCRIPT_IS_EXHAUSTED,
    THERE_IS_NO_PHASE,
    THERE_IS_NO_STEP,
    THERE_IS_NO_TOOL_OR,
)
from words import TalkingFunction, complaint, files, lines, scripted, tool

from quoth import Agent, AsyncAgent, ModelOptions
from quoth.agent.events import AgentEvent
from quoth.agent.flight.report import StepReport
from quoth.agent.run.limits import RunLimits
from quoth.neuro.backends.messages import Messages
from quoth.neuro.prompt.dialects import DIALECTS
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import BusyError, StoreError, UsageError
from quoth.tools.installing import install_extra
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


def tidy(text: str) -> str:
    """The file without times and names of sessions."""
    return re.sub(r"session s\w+", "session s", re.sub(r"\[\d{4}-[^]]*\]", "[now]", text))


# Steps of forms


def test_forms_are_run_without_any_model_and_their_results_stand_below_them(field: Field) -> None:
    field.plan("#+TITLE: T", step("one", block("(+ 1 2)")), step("two", block('(echo :text "hi")')))
    report = field.fly()
    assert (report.status, statuses(report)) == ("done", {"one": "done", "two": "done"})
    assert [each.text for each in report.steps] == ["3", "hi"]
    assert tidy(field.text).replace(field_digest(field, "one"), "D1").replace(
        field_digest(field, "two"), "D2"
    ) == lines(
        "#+TITLE: T",
        "* DONE one",
        ":LOGBOOK:",
        "- DONE [now] digest D1, session s",
        ":END:",
        "#+begin_src hy",
        "(+ 1 2)",
        "#+end_src",
        "",
        "#+RESULTS:",
        ": 3",
        "",
        "* DONE two",
        ":LOGBOOK:",
        "- DONE [now] digest D2, session s",
        ":END:",
        "#+begin_src hy",
        '(echo :text "hi")',
        "#+end_src",
        "",
        "#+RESULTS:",
        ": hi",
    ).replace("\n\n* DONE two", "\n* DONE two")


def field_digest(field: Field, name: str) -> str:
    from quoth.agent.plan.org_reader import read_plan

    _, plan = read_plan(field.path.read_bytes(), "plan.org")
    return plan.digest(plan.by_id[name])[:12]


def test_results_are_passed_on_by_names_of_blocks_of_steps_and_of_data(field: Field) -> None:
    field.plan(
        "#+NAME: table",
        "| a | 1 |",
        step("first", block("(+ 1 2)", name="three"), block('"last"')),
        step("second", block("[7 x y (get z 0 1) w]", head="hy :var x=three y=first z=table w=7")),
        step("third", "#+CALL: three()", block("(+ v 1)", head="hy :var v=three")),
    )
    report = field.fly()
    assert report.ok, report
    assert [each.text for each in report.steps] == ["last", "7\n3\nlast\n1\n7", "4"]


def test_a_call_of_a_named_block_outside_of_all_steps_is_given_its_variables(field: Field) -> None:
    field.plan(
        "* Library",
        block("(* n 10)", head="hy :var n=1", name="tens"),
        step("a", "#+CALL: tens(n=4)"),
        step("b", block("(+ t 1)", head="hy :var t=tens")),
    )
    assert [each.text for each in field.fly().steps] == ["40", "11"]


def test_results_that_are_to_be_silent_are_not_written_and_long_ones_are_cut(field: Field) -> None:
    field.plan(
        step("a", block("42", head="hy :results silent", name="quiet")),
        step("b", block('(* "x" 30000)')),
        step("c", block("q", head="hy :var q=quiet")),
    )
    assert [each.text[:2] for each in field.fly().steps] == ["42", "xx", "42"]
    assert field.text.count("#+RESULTS") == 2
    assert f"[… 10,001 {CHARACTERS_LEFT_OUT} …]" in field.text


def test_what_one_step_defines_no_other_step_sees(field: Field) -> None:
    field.plan(
        step("a", block('(defn hi [] "hi")', "(hi)")), step("b", block('(eval "(hi)")'), on_fail="continue")
    )
    report = field.fly()
    assert statuses(report) == {"a": "done", "b": "failed"}


def test_a_step_that_fails_stops_the_flight_with_the_reason_in_the_file(field: Field) -> None:
    field.plan(step("one", block("(shaky)")), step("two", block("(put 2)")))
    field.fails = 1
    report = field.fly()
    assert (report.status, statuses(report)) == ("failed", {"one": "failed", "two": ""})
    assert "it shook" in report.steps[0].text
    assert field.words == {"one": "FAILED", "two": "PLAN"}
    assert re.search(r"- FAILED \[.*\] digest .*, session s\w+: .*it shook", field.text)
    assert field.puts == []


@pytest.mark.parametrize(
    ("on_fail", "status", "words"),
    [
        ("stop", "failed", ["FAILED", "PLAN", "PLAN"]),
        ("skip", "failed", ["FAILED", "SKIPPED", "DONE"]),
        ("continue", "failed", ["FAILED", "DONE", "DONE"]),
    ],
)
def test_what_comes_of_a_failure_is_said_by_on_fail(
    field: Field, on_fail: str, status: str, words: list[str]
) -> None:
    field.plan(
        step("one", block("(shaky)"), on_fail=on_fail),
        step("two", block("1"), after="one"),
        step("three", block("2"), after="nil"),
    )
    field.fails = 9
    assert field.fly().status == status
    assert list(field.words.values()) == words


@pytest.mark.parametrize(
    ("on_fail", "status", "words"),
    [
        ("stop", "failed", ["FAILED", "PLAN", "PLAN"]),  # what was not reached is not done
        ("skip", "done", ["FAILED", "SKIPPED", "DONE"]),
        ("continue", "done", ["FAILED", "DONE", "DONE"]),
    ],
)
def test_a_step_that_may_fail_does_not_fail_its_flight(
    field: Field, on_fail: str, status: str, words: list[str]
) -> None:
    field.plan(
        step("one", block("(shaky)"), on_fail=on_fail, may_fail="t"),
        step("two", block("1"), after="one"),
        step("three", block("2"), after="nil"),
    )
    field.fails = 9
    assert field.fly().status == status
    assert list(field.words.values()) == words


def test_what_is_skipped_for_two_reasons_is_excused_only_by_both(field: Field) -> None:
    may, must = {"on_fail": "skip", "may_fail": "t"}, {"on_fail": "skip"}
    for properties, status in ((may, "done"), (must, "failed")):
        field.plan(
            step("one", block("(shaky)"), **may),
            step("other", block("(shaky)"), after="nil", **properties),
            step("both", block("1"), after="one other"),
        )
        field.fails = 9
        assert field.fly(wanted={"again": True}).status == status


def test_what_is_skipped_stays_so_when_another_step_that_it_waits_for_ends(field: Field) -> None:
    field.plan(
        step("one", block("(shaky)"), on_fail="skip"),
        step("other", block("1"), after="nil"),
        step("both", block("1"), after="one other"),
    )
    field.fails = 1
    field.fly()
    assert field.words == {"one": "FAILED", "other": "DONE", "both": "SKIPPED"}
    assert field.text.count("- SKIPPED [") == 1
    assert statuses(field.fly()) == {"one": "done", "other": "done", "both": "done"}


@pytest.mark.parametrize(
    ("expect", "status", "word"), [("(= 1 1)", "done", "DONE"), ("(= 1 2)", "failed", "FAILED")]
)
def test_a_phase_is_asked_though_a_step_in_it_failed_as_it_may(
    field: Field, expect: str, status: str, word: str
) -> None:
    field.plan(
        f"* PLAN all\n:PROPERTIES:\n:EXPECT: {expect}\n:END:",
        "*" + step("one", block("(shaky)"), on_fail="skip", may_fail="t"),
        "*" + step("two", block("1"), after="one"),
    )
    field.fails = 9
    assert field.fly().status == status
    assert field.words == {"all": word, "one": "FAILED", "two": "SKIPPED"}


def test_a_step_that_failed_is_flown_again_though_the_flight_went_on(field: Field) -> None:
    field.plan(step("one", block("(shaky)"), on_fail="continue"), step("two", block("1")))
    field.fails = 1
    assert field.fly().status == "failed"
    assert field.fly().status == "done"
    assert field.words == {"one": "DONE", "two": "DONE"}


def test_a_flight_whose_only_failure_was_allowed_is_over(field: Field) -> None:
    field.plan(step("one", block("(shaky)"), on_fail="continue", may_fail="t"), step("two", block("1")))
    field.fails = 1
    first = field.fly()
    second = field.fly()
    assert (first.ok, second.ok, first.session != second.session) == (True, True, True)
    assert field.words == {"one": "DONE", "two": "DONE"}


def test_a_step_that_may_fail_may_be_denied(field: Field) -> None:
    for properties, ok in (({}, False), ({"may_fail": "t"}, True)):
        field.plan(step("one", block("1"), on_fail="continue", **properties), step("two", block("2")))
        denied(field, "one")
        assert field.fly(wanted={"again": True}).ok is ok


def test_a_step_is_tried_again_as_often_as_it_says(field: Field) -> None:
    field.plan(step("one", block("(shaky)"), retry="2"))
    field.fails = 2
    report = field.fly()
    assert (report.status, report.steps[0].attempts) == ("done", 3)
    assert re.findall(r"- (\w+) \[", field.text) == ["DONE", "FAILED", "FAILED"]
    assert "try 3" in field.text
    field.fails = 9
    assert field.fly(wanted={"again": True}).steps[0].attempts == 3


# Results are of the attempt that the file shows


def results(field: Field) -> list[str]:
    """What stands in the file as results, a line each."""
    return re.findall(r"^#\+RESULTS.*\n: (.*)$", field.text, re.MULTILINE)


def test_below_a_step_that_failed_stand_the_results_of_that_attempt_alone(field: Field) -> None:
    field.plan(
        step("one", block("(put 1)"), "Words.", block("(shaky)", name="named"), block("(put 3)")),
        step("two", block("2")),
    )
    before = field.text
    assert field.fly(consent="yes").ok
    assert results(field) == ["put 1", "steady", "put 3", "2"]
    field.fails = 1
    assert not field.fly(consent="yes").ok
    assert results(field) == ["put 1", "2"]  # two was not reached: what it came to is of the flight before
    assert field.fly(consent="yes").ok
    assert results(field) == ["put 1", "steady", "put 3", "2"]
    assert [
        line for line in before.splitlines() if line and "PLAN" not in line and line not in field.text
    ] == []


def test_a_step_that_is_not_flown_shows_no_result_of_an_earlier_flight(field: Field) -> None:
    field.plan(
        step("one", block("(shaky)"), on_fail="skip"),
        step("two", block("2")),
        step("three", block("3"), after="nil"),
        step("four", block("4")),
    )
    assert field.fly().ok
    approve(field, "three", decision=Decision("deny", "ann"))
    field.fails = 1
    field.fly()
    assert field.words == {"one": "FAILED", "two": "SKIPPED", "three": "DENIED", "four": "PLAN"}
    assert results(field) == ["4"]


def test_results_of_an_attempt_whose_expectation_is_not_true_are_shown(field: Field) -> None:
    field.plan(step("one", block("(shaky)"), expect="(= 1 2)"), step("a", "Say it.", expect="(= 1 2)"))
    field.edit(":EXPECT: (= 1 2)", ":ON-FAIL: continue\n:EXPECT: (= 1 2)")
    field.fly("It.")
    assert field.words == {"one": "FAILED", "a": "FAILED"}
    assert results(field) == ["steady", "It."]


def test_while_a_step_runs_again_nothing_of_an_earlier_attempt_stands_below_it(field: Field) -> None:
    seen: list[str] = []

    def say(messages: Messages) -> str:
        seen.append(field.text)
        return "It."

    field.plan(step("a", "Say it."))
    assert field.fly("Before.").ok
    assert results(field) == ["Before."]
    assert field.fly(model=TalkingFunction(say)).ok
    assert "Before." not in seen[0]
    assert results(field) == ["It."]


async def test_a_step_that_is_begun_again_and_interrupted_shows_what_it_has_made_since(field: Field) -> None:
    agents: list[AsyncAgent] = []

    def stop(messages: Messages) -> str:
        agents[-1].interrupt()
        return "(look)"

    field.plan(step("a", block("(put 1)")), step("b", "Do it."))
    given: dict[str, Any] = {"workspace": field.folder, "tools": field.tools, "consent": "yes", "user": "ann"}
    for model, shown in (
        (scripted("Done."), ["put 1", "Done."]),
        (TalkingFunction(stop), ["put 1"]),
        (scripted("Done again."), ["put 1", "Done again."]),
    ):
        async with AsyncAgent(model=model, **given) as agent:
            agents.append(agent)
            await agent.fly(field.path)
        assert results(field) == shown


def test_a_step_that_waits_shows_what_it_has_made_so_far(field: Field) -> None:
    field.plan(step("a", block("1"), block("(put 2)")))
    assert field.fly(consent="yes").ok
    assert field.fly().status == "pending"
    assert results(field) == ["1"]


def test_a_result_belongs_to_its_block_wherever_that_stands(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("(shaky)"), block("x", head="hy :var x=one")))
    field.fails = 1
    assert not field.fly(consent="yes").ok
    field.edit("#+begin_src hy\n(put 1)", "#+begin_src sh :eval no\nls\n#+end_src\n#+begin_src hy\n(put 1)")
    report = field.fly(consent="yes")
    assert [each.text for each in report.steps] == ["put 1", "put 1"]
    assert field.puts == [1]


def test_a_variable_may_be_what_a_call_comes_to(field: Field) -> None:
    field.plan(
        block("(+ n 1)", name="add", head="hy :var n=0"),
        "",
        "#+NAME: five",
        "#+CALL: add(n=4)",
        step("one", block("v", head="hy :var v=five")),
    )
    assert field.fly().steps[0].text == "5"


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            {},
            {"head": "hy :var x=big"},
            "The value of x has 300,002 characters, but a program may have only 100,000. Pass on a part of "
            "it, or write it to a file.",
        ),
        ({"expect": '(in "a" result)'}, {}, ""),
    ],
)
def test_a_value_that_is_too_large_for_a_program_is_told(
    field: Field, first: dict[str, str], second: dict[str, str], text: str
) -> None:
    field.plan(
        step("one", block('(* "a" 300000)', name="big"), **first), step("two", block("(len [1])", **second))
    )
    report = field.fly()
    assert (report.steps[1].text or report.steps[0].text) == (
        text
        or "The value of result has 300,002 characters, but a program may have only 100,000. Pass on a "
        "part of it, or write it to a file."
    )


def test_a_budget_of_steps_is_never_more_than_the_limit_of_the_agent(field: Field) -> None:
    field.plan(step("a", "Do it.", budget="steps=30"))
    replies = [f'(look)\n"{n}"' for n in range(40)]
    report = field.fly(*replies, limits=RunLimits(steps=2, repeats=99))
    assert "2 steps" in report.steps[0].text


# Expectations


def test_a_step_is_done_only_when_its_expectation_is_true(field: Field) -> None:
    field.plan(step("good", block("1"), expect="(= 1 1)"), step("bad", block("(put 1)"), expect="(= 1 2)"))
    report = field.fly(consent="yes")
    assert statuses(report) == {"good": "done", "bad": "failed"}
    assert report.steps[1].text == "(= 1 2) is not true: its value is False."
    assert field.words == {"good": "DONE", "bad": "FAILED"}


def test_an_expectation_may_be_of_what_its_own_step_came_to(field: Field) -> None:
    field.plan(
        step("forms", block("1"), block("[2 3]"), expect="(= result [2 3])"),
        step("prose", "Say it.", expect='(in "20" result)'),
        step("last", block("1"), expect="(> result 1)"),
    )
    report = field.fly('"20" it is.')
    assert statuses(report) == {"forms": "done", "prose": "done", "last": "failed"}
    assert report.steps[2].text == "(> result 1) is not true: its value is False; result was 1"


def test_a_model_that_tries_again_is_told_why_the_last_try_failed(field: Field) -> None:
    asked: list[str] = []

    def say(messages: Messages) -> str:
        asked.append(str(messages[-1]["content"]))
        return f"It is {10 * len(asked)}."

    field.plan(step("sum", "Say the sum.", expect='(in "20" result)', retry="1"))
    assert field.fly(model=TalkingFunction(say)).ok
    assert "earlier attempt" not in asked[0]
    why = '(in "20" result) is not true: its value is False; result was It is 10.'
    assert f"An earlier attempt failed: {why}" in asked[1]
    assert asked[1].endswith("The answer of that attempt was:\nIt is 10.")
    again = 'this was not true afterwards (result is your answer): (in "20" result)'
    assert again not in asked[0]
    assert asked[1].startswith(f"sum\n\nSay the sum.\n\nAn earlier attempt failed, because {again}\n")


def test_a_model_that_tries_again_is_reminded_of_the_expectation_after_each_result(field: Field) -> None:
    model = scripted("It is 10.", "(look)", "It is 20.")
    field.plan(step("sum", "Say the sum.", expect='(in "20" result)', retry="1"))
    assert field.fly(model=model).ok
    assert '(in "20" result)' in json.loads(model.seen[2])[-1]["content"]


def test_a_try_after_one_without_an_answer_is_told_the_reason_alone(field: Field) -> None:
    model = scripted("(look)", "(look)", "It is so.")
    field.plan(step("a", "Look.", expect="(= 1 1)", budget="steps=1", retry="1"))
    field.fly(model=model)
    assert "An earlier attempt failed: " in model.seen[1].decode()
    assert "The answer of that attempt" not in model.seen[1].decode()


def test_an_expectation_of_something_else_than_the_answer_is_told_as_it_is(field: Field) -> None:
    model = scripted("Done.", "Done.")
    field.plan(step("a", "Put 1.", expect="(= 1 2)", retry="1"))
    field.fly(model=model)
    told = json.loads(model.seen[1])[-1]["content"]
    assert "An earlier attempt failed, because this was not true afterwards: (= 1 2)\n" in told


@pytest.mark.parametrize("value", ["0", '""', "[]", "None", "False"])
def test_what_is_not_true_proves_nothing(field: Field, value: str) -> None:
    field.plan(step("a", expect=value))
    assert field.fly().steps[0].status == "failed"


def test_an_expectation_has_no_tool_that_does_more_than_to_read(field: Field) -> None:
    field.plan(step("a", expect='(eval (+ "(put" " 1)"))'))
    report = field.fly(consent="yes")
    assert report.steps[0].status == "failed"
    assert "put" in report.steps[0].text
    assert field.puts == []


def test_a_group_is_done_when_all_in_it_is_and_its_expectation_is_true(field: Field) -> None:
    for value, word, last in (("1", "DONE", "DONE"), ("0", "FAILED", "PLAN")):
        field.plan(
            step("Demand", expect=f"(= 1 {value})"),
            step("a", block("1"), head="**"),
            step("Build"),
            step("b", block("2"), head="**"),
        )
        report = field.fly(wanted={"again": True})
        assert field.words == {"Demand": word, "a": "DONE", "Build": last, "b": last}
        assert report.ok is (value == "1")


def test_a_group_without_an_expectation_is_not_done_when_a_step_in_it_is_not(field: Field) -> None:
    field.plan(
        step("Demand"),
        step("a", block("(shaky)"), head="**", on_fail="continue"),
        step("b", block("1"), head="**"),
    )
    field.fails = 1
    assert not field.fly().ok
    assert field.words == {"Demand": "FAILED", "a": "FAILED", "b": "DONE"}


# Steps of prose


def test_a_step_of_prose_is_a_run_that_is_told_of_the_plan_and_of_what_came_before(field: Field) -> None:
    model = scripted("(look)", "It is 3.")
    field.plan(
        "#+TITLE: The plan",
        step("Demand", "All must be well."),
        step("sum", block("(+ 1 2)"), head="**"),
        step("Blueprint", "First think."),
        step("Build"),
        step("tell", "Say what the sum is.", head="**", tools="look"),
    )
    report = field.fly(model=model)
    assert report.steps[-1].text == "It is 3."
    told = model.seen[0].decode()
    for words in ("The plan", "phase: Build", "First think.", "sum: 3", "Say what the sum is."):
        assert words in told
    assert "All must be well" not in told  # that is of another phase
    assert "(put" not in told
    assert "#+RESULTS: tell\n: It is 3." in field.text


def test_what_the_model_said_stays_when_the_expectation_of_its_step_has_come_true(field: Field) -> None:
    field.plan(step("a", "Say it.", expect="(= 1 1)"), step("b", block("x", head="hy :var x=a")))
    assert [each.text for each in field.fly("It.").steps] == ["It.", "It."]
    assert "#+RESULTS: a\n: It." in field.text


def test_a_step_of_prose_has_the_tools_alone_that_it_names(field: Field) -> None:
    field.plan(step("a", "Do it.", tools="look"))
    report = field.fly("(put 1)", "(look)", "Done.", consent="yes")
    assert report.ok
    assert field.puts == []


def test_a_model_that_does_not_answer_fails_its_step(field: Field) -> None:
    field.plan(step("a", "Do it."))
    report = field.fly("(look)")
    assert (report.status, report.steps[0].status) == ("failed", "failed")
    assert THE_SCRIPT_IS_EXHAUSTED in report.steps[0].text
    assert field.words == {"a": "FAILED"}


def test_the_steps_of_a_budget_are_those_of_the_run(field: Field) -> None:
    field.plan(step("a", "Do it.", budget="steps=2"))
    report = field.fly("(look)", "(put 1)", "Done.", consent="yes")
    assert report.steps[0].text == f"{THE_RUN_WAS_STOPPED} after 2 steps without an answer."


def test_a_step_that_takes_more_tokens_than_it_may_is_not_asked_about_again(field: Field) -> None:
    from quoth.neuro.backends.base import Completion, Usage

    field.plan(step("a", "Do it.", budget="tokens=5000"))
    model = scripted(Completion("(look)", Usage(90, 4810)), "Done.")
    report = field.fly(model=model)
    assert report.steps[0].text.startswith(f"{THE_RUN_WAS_STOPPED_BEFORE} ")
    assert report.steps[0].text.endswith(": 100 of 5,000 are left.")
    assert len(model.seen) == 1
    assert report.steps[0].usage.input_tokens == 90


def test_a_step_that_takes_too_long_is_stopped(field: Field) -> None:
    async def slow(messages: Messages) -> str:
        await asyncio.sleep(60)
        return "Done."

    field.plan(step("a", "Do it.", budget="seconds=1"))
    report = field.fly(model=TalkingFunction(slow))
    assert report.steps[0].text == f"{THE_RUN_WAS_STOPPED}: its time of 1 s is over."


def test_the_forms_of_a_step_are_bounded_by_its_time_too(field: Field) -> None:
    field.plan(step("a", block("(meet)"), budget="seconds=1"))  # for which it takes two
    report = field.fly(consent="yes")
    assert report.steps[0].text.endswith("did not finish in the time left to the run.")


def test_a_cost_that_cannot_be_bounded_is_refused(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    field.plan(step("a", "Do it.", budget="cost=0.10"))
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    report = field.fly(model=TalkingFunction(lambda messages: "Done.", "openai:gpt-9"))
    assert report.steps[0].text == (
        "The cost of openai:gpt-9 cannot be bounded without the package genai-prices: "
        + install_extra("prices")
    )
    assert field.fly("Done.").ok  # a script costs nothing


def test_a_cost_is_bounded_by_the_prices_that_are_known(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys
    from types import SimpleNamespace

    from quoth.neuro.backends.base import Completion, Usage

    def price(tokens: Any, *, model_ref: str, provider_id: str) -> Any:
        assert (model_ref, provider_id) == ("gpt-9", "openai")
        return SimpleNamespace(total_price=tokens.input_tokens / 1000)

    known = SimpleNamespace(Usage=lambda **tokens: SimpleNamespace(**tokens), calc_price=price)
    monkeypatch.setitem(sys.modules, "genai_prices", known)
    field.plan(step("a", "Do it.", budget="cost=5"))
    model = scripted(Completion("(look)", Usage(4900, 0)), "Done.")
    model.name = "openai:gpt-9"
    assert field.fly(model=model).steps[0].text.endswith(": $0.10 of $5 are left.")
    assert len(model.seen) == 1


def test_a_step_may_use_another_model_only_when_it_was_approved(field: Field) -> None:
    files(field.folder, {"other.txt": "I am the other.", "evil.hy": "(defn reply [] (/ 1 0))"})
    field.plan(step("a", "Do it.", model="scripted:other.txt"), step("b", "Do it.", model="scripted:evil.hy"))
    mine: dict[str, Any] = {"model": TalkingFunction(lambda messages: "I am the first.")}
    report = field.fly(**mine)
    assert report.steps[0].status == "denied"
    assert report.steps[0].text.startswith("The step uses another model, scripted:other.txt,")
    approve(field)
    report = field.fly(**mine)
    assert [each.text for each in report.steps] == [
        "I am the other.",
        "evil.hy is a program, which only a person may choose as a model.",
    ]


# When the file is written


@pytest.fixture
def replaced(field: Field, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was written into the file; while nobody waits for it, an hour goes by in between."""
    from quoth.agent.flight.plan_file import PlanFile

    written: list[str] = []
    replace = PlanFile._replace

    def counted(self: PlanFile, new: bytes) -> bool:
        written.append(new.decode())
        return replace(self, new)

    monkeypatch.setattr(PlanFile, "_replace", counted)
    monkeypatch.setattr("quoth.agent.flight.engine.EVERY", 3600)
    return written


def test_many_quick_steps_are_written_into_the_file_together(field: Field, replaced: list[str]) -> None:
    field.plan(*(step(f"s{n}", block(f"{n}")) for n in range(30)))
    assert field.fly().ok
    assert [tidy(text).count("* DONE") for text in replaced] == [0, 30]
    assert results(field) == [str(n) for n in range(30)]


def test_a_step_that_lasts_shows_what_was_done_before_it_within_a_second(
    field: Field, replaced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.agent.flight.engine.EVERY", 0.001)

    async def wait() -> str:
        while field.words != {"a": "DONE", "b": "RUNNING"}:
            await asyncio.sleep(0.001)
        return "It is there."

    field.plan(step("a", block("1")), step("b", block("(wait)")))
    assert field.fly(tools=[*field.tools, tool("wait", wait)]).ok


@pytest.mark.parametrize("how", ["a question", "a failure", "a model"])
def test_whoever_waits_for_the_file_sees_all_that_has_been_done(
    field: Field, replaced: list[str], how: str
) -> None:
    seen: list[dict[str, str]] = []

    class Person:
        async def request(self, *asked: Any) -> Decision:
            seen.append(field.words)
            return Decision("once", "ann")

    def talk(messages: Messages) -> str:
        seen.append(field.words)
        return "Done."

    def hear(event: Any) -> None:
        if event.kind == "step" and event.data.status == "failed":
            seen.append(field.words)

    body = {"a question": block("(put 1)"), "a failure": block("(shaky)"), "a model": "Do it."}
    field.plan(step("a", block("1")), step("b", body[how]), step("c", block("3")))
    field.fails = 1
    field.fly(model=TalkingFunction(talk), consent=Person(), on_event=hear)
    assert seen[0] == {"a": "DONE", "b": "FAILED" if how == "a failure" else "RUNNING", "c": "PLAN"}


def test_what_an_editor_makes_of_the_file_before_it_is_written_stays(
    field: Field, replaced: list[str]
) -> None:
    def edit() -> str:
        field.edit("* PLAN c", "A remark.\n* PLAN c")
        field.path.write_text(field.text.replace("(+ 1 1)", "(+ 1 2)"))
        return "edited"

    field.plan(step("a", block("(+ 1 1)")), step("b", block("(edit)")), step("c", block("3")))
    report = field.fly(tools=[*field.tools, tool("edit", edit)])
    assert report.ok
    assert "A remark." in field.text
    assert field.words == {"a": "RUNNING", "b": "DONE", "c": "DONE"}
    assert any("a differs from the flown step, so DONE is not written there" in note for note in report.notes)


def test_a_step_costs_as_many_statements_and_looks_in_a_long_plan_as_in_a_short_one(
    field: Field, replaced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from quoth.agent.flight.status import FlightState

    counts: list[int] = []
    for kind, name in ((Store, "execute"), (FlightState, "current")):
        work: Callable[..., Any] = getattr(kind, name)

        def counted(*args: Any, work: Callable[..., Any] = work) -> Any:
            counts[-1] += 1
            return work(*args)

        monkeypatch.setattr(kind, name, counted)
    for steps in (20, 40, 80):
        counts.append(0)
        field.plan(*(step(f"s{n} of {steps}", block(f"{n}")) for n in range(steps)))
        assert field.fly().ok
    first, second, third = counts
    assert third - second <= 2 * (second - first) * 1.05


# What asks


def test_a_group_with_a_waiting_step_waits(field: Field) -> None:
    field.plan("* PLAN both", step("one", block("(put 1)"), head="**"), step("two", block("2"), head="**"))
    assert field.fly().status == "pending"
    assert field.words == {"both": "WAITING", "one": "WAITING", "two": "PLAN"}


def test_a_file_whose_todo_words_lack_waiting_says_running(field: Field) -> None:
    field.plan("#+TODO: PLAN APPROVED RUNNING | DONE FAILED DENIED SKIPPED", step("one", block("(put 1)")))
    report = field.fly()
    assert (report.status, statuses(report)) == ("pending", {"one": "waits"})
    assert field.words == {"one": "RUNNING"}
    field.decide()
    assert field.fly().status == "done"
    assert field.words == {"one": "DONE"}


def test_a_call_that_asks_waits_and_the_flight_goes_on_at_that_call(field: Field) -> None:
    field.plan(step("one", block("(do (look) (+ (put 1) (put 2)))")), step("two", block("2")))
    report = field.fly()
    assert (report.status, statuses(report)) == ("pending", {"one": "waits", "two": ""})
    assert field.words == {"one": "WAITING", "two": "PLAN"}
    assert "waits for a person's approval" in field.text
    field.decide()
    assert field.fly().status == "pending"
    assert field.puts == [1]
    field.decide()
    assert field.fly().status == "done"
    assert field.puts == [1, 2]
    assert field.words == {"one": "DONE", "two": "DONE"}


def test_a_step_of_prose_waits_and_goes_on_with_its_own_conversation(field: Field) -> None:
    field.plan(step("a", "Do it."))
    first = scripted("(put 1)")
    assert field.fly(model=first).status == "pending"
    field.decide()
    second = scripted("Done.")
    assert field.fly(model=second).status == "done"
    assert second.seen[0].startswith(first.seen[0][:-1])
    assert field.puts == [1]


def test_what_a_person_denies_is_denied_and_said_so_in_the_file(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("2")))
    field.fly()
    field.decide("deny", why="not today")
    report = field.fly()
    assert (report.status, statuses(report)) == ("failed", {"one": "denied", "two": ""})
    assert field.words == {"one": "DENIED", "two": "PLAN"}
    assert "not today" in field.text


# What is flown again, and what is not


def test_a_flight_that_failed_goes_on_at_what_failed(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("(shaky)")), step("three", block("(put 3)")))
    field.fails = 1
    assert field.fly(consent="yes").status == "failed"
    assert field.fly(consent="yes").status == "done"
    assert field.puts == [1, 3]


def test_a_flight_that_is_done_begins_anew_and_puts_the_words_back(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("(shaky)")))
    first = field.fly(consent="yes")
    field.fails = 1
    second = field.fly(consent="yes")
    assert (field.puts, second.status) == ([1, 1], "failed")
    assert first.session != second.session
    third = field.fly(consent="yes", wanted={"again": True})
    assert field.puts == [1, 1, 1]
    assert third.session != second.session


def test_a_step_that_was_changed_is_flown_again_though_it_was_done(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("(shaky)")))
    field.fails = 1
    field.fly(consent="yes")
    field.edit("(put 1)", "(put 5)")
    assert field.fly(consent="yes").ok
    assert field.puts == [1, 5]


def test_what_was_proven_of_something_else_is_proven_again(field: Field) -> None:
    field.plan(
        step("one", block("(put 1)")),
        step("two", block("(put 2)")),
        step("Tester", block('(when (!= n "put 1") (raise (ValueError "not 1")))', head="hy :var n=one")),
    )
    assert field.fly(consent="yes", wanted={"only": "one"}).ok
    assert field.fly(consent="yes").ok
    field.edit("(put 1)", "(put 5)")
    report = field.fly(consent="yes")
    assert [(one.id, one.status) for one in report.steps][-1] == ("tester", "failed")
    assert "* FAILED Tester" in field.text
    assert field.puts == [1, 2, 5, 2]


@pytest.mark.parametrize(
    ("wanted", "puts", "then"),
    [
        ({"only": "b"}, [2], [1, 2, 3]),
        ({"start": "b"}, [2, 3], [1, 2, 3]),
        ({"until": "Demand"}, [1], [2, 3]),
        ({"until": "build"}, [1, 2], [3]),
        ({"start": "b", "until": "Build"}, [2], [1, 2, 3]),
        ({"only": "C"}, [3], [1, 2, 3]),
    ],
)
def test_a_part_of_a_plan_can_be_flown(
    field: Field, wanted: dict[str, str], puts: list[int], then: list[int]
) -> None:
    field.plan(
        step("Demand"),
        step("a", block("(put 1)"), head="**"),
        step("Build"),
        step("b", block("(put 2)"), head="**"),
        step("Tester"),
        step("c", block("(put 3)"), head="**"),
    )
    assert field.fly(consent="yes", wanted=wanted).ok
    assert field.puts == puts
    assert field.fly(consent="yes").ok  # the rest, and what comes after it
    assert field.puts == puts + then


def test_a_step_alone_is_flown_though_what_it_comes_after_has_failed_or_was_changed(field: Field) -> None:
    field.plan(step("one", block("(shaky)")), step("two", block("(put 2)")))
    field.fails = 9
    assert not field.fly(consent="yes").ok
    assert field.fly(consent="yes", wanted={"only": "two"}).ok
    assert field.words == {"one": "FAILED", "two": "DONE"}
    field.edit("(shaky)", '"changed"')
    assert field.fly(consent="yes", wanted={"only": "two"}).ok
    assert field.puts == [2, 2]
    assert field.fly(consent="yes").ok  # two has been proven of something else
    assert field.puts == [2, 2, 2]


def test_what_failed_is_begun_anew_and_nothing_else_though_another_step_was_flown_since(field: Field) -> None:
    field.plan(
        step("one", block("(put 1)")),
        step("two", block("(shaky)")),
        step("three", block("(put 3)"), after="nil"),
    )
    field.fails = 1
    assert not field.fly(consent="yes").ok
    first = field.fly(consent="yes", wanted={"only": "three"})
    assert first.ok
    second = field.fly(consent="yes")
    assert (second.status, second.session) == ("done", first.session)
    assert field.puts == [1, 3]


def test_a_step_alone_is_flown_with_the_results_of_an_earlier_flight(field: Field) -> None:
    field.plan(step("a", block("(+ 1 2)")), step("b", block("(* n 2)", head="hy :var n=a")))
    assert field.fly(wanted={"only": "b"}).steps[1].text == "a has no result yet, and this step needs it."
    assert field.fly().ok
    assert field.fly(wanted={"only": "b"}).steps[1].text == "6"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"only": "x"}, f"{THERE_IS_NO_STEP} x in plan.org. They are: one, two."),
        ({"only": "oen"}, f"{THERE_IS_NO_STEP} oen in plan.org. Did you mean one?"),
        ({"until": "Bild"}, f"{THERE_IS_NO_PHASE} Bild. Did you mean Build?"),
        ({"until": "Build"}, "plan.org has no step in the phase Build."),
        ({"only": "one", "start": "two"}, f"--only selects one step or group; {LEAVE_OUT}from and --until."),
        ({"start": "two", "until": "one"}, "two comes after one."),
    ],
)
def test_a_part_that_is_not_there_is_said(field: Field, wanted: dict[str, str], message: str) -> None:
    field.plan(step("one", block("1")), step("two", block("2")))
    said = complaint(UsageError, lambda: field.fly(wanted=wanted))
    assert said.replace(f"{field.folder}/", "") == message


def test_a_plan_with_faults_is_not_flown(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("(pot 1)")))
    said = complaint(UsageError, lambda: field.fly(consent="yes"))
    assert f"plan.org:7:2: {THERE_IS_NO_TOOL_OR} pot. Did you mean put?" in said
    assert field.puts == []


def test_the_first_flight_of_a_named_session_is_in_it_and_goes_on_in_it(field: Field) -> None:
    field.plan(step("one", block("(put 1)")))
    assert field.fly(session="mine").session == "mine"
    field.decide()
    assert field.fly().session == "mine"
    assert field.fly(session="mine", consent="yes").session == "mine"
    assert field.puts == [1, 1]


# Several at once


def test_steps_without_order_between_them_run_at_once_on_request(field: Field) -> None:
    field.plan(step("a", block("(meet)")), step("b", block("(meet)"), after="nil"), step("c", block("1")))
    report = field.fly(wanted={"parallel": True})
    assert report.ok
    assert [each.text for each in report.steps] == ["met", "met", "1"]


def test_prose_and_forms_run_at_once_each_with_its_own_conversation(field: Field) -> None:
    def answer(messages: Messages) -> str:
        text = messages[1]["content"]
        return f"This is {text.splitlines()[0]}."

    field.plan(*[step(name, "Say it.", after="nil") for name in "abcd"])
    report = field.fly(model=TalkingFunction(answer), wanted={"parallel": True})
    assert [each.text for each in report.steps] == [f"This is {name}." for name in "abcd"]


# The file


def test_what_an_editor_changes_meanwhile_is_kept(field: Field) -> None:
    def change(messages: Messages) -> str:
        field.edit("A note.", "Another note.")
        return "Done."

    field.plan("A note.", step("a", "Do it."), step("b", block("1")))
    report = field.fly(model=TalkingFunction(change))
    assert (report.status, report.notes) == ("done", ())
    assert field.text.startswith("Another note.\n* DONE a")
    assert field.words == {"a": "DONE", "b": "DONE"}


def test_nothing_is_written_at_a_step_that_was_changed_meanwhile(field: Field) -> None:
    def change(messages: Messages) -> str:
        field.edit("Do it.", "Do something else.")
        return "Done."

    field.plan(step("a", "Do it."), step("b", block("1")))
    report = field.fly(model=TalkingFunction(change))
    assert field.words["a"] == "RUNNING"
    assert "Done." not in field.text
    assert any(
        "plan.org was changed meanwhile: a differs from the flown step" in note for note in report.notes
    )


def test_a_step_that_was_changed_before_it_begins_is_not_begun(field: Field) -> None:
    def change(messages: Messages) -> str:
        field.edit("(put 1)", "(put 2)")
        return "Done."

    field.plan(step("a", "Do it."), step("b", block("(put 1)")))
    report = field.fly(model=TalkingFunction(change), consent="yes")
    assert (report.status, field.puts) == ("failed", [])
    assert report.notes[-1] == "b was not started."
    assert field.fly("Done.", consent="yes").ok
    assert field.puts == [2]


def test_a_step_that_is_changed_just_after_it_was_flown_holds_up_no_other(field: Field) -> None:
    def change(event: AgentEvent) -> None:
        if isinstance(event.data, StepReport) and (event.data.id, event.data.status) == ("b", "done"):
            field.edit("(+ 1 1)", "(+ 2 2)")

    field.plan(step("a", block("1")), step("b", block("(+ 1 1)")), step("c", block("3")))
    report = field.fly(on_event=change)
    assert (report.status, statuses(report)) == ("done", {"a": "done", "b": "done", "c": "done"})
    assert field.words["c"] == "DONE"
    assert report.notes
    assert all(
        "plan.org was changed meanwhile: b differs from the flown step" in note for note in report.notes
    )


def test_a_file_that_is_removed_meanwhile_is_not_made_again(field: Field) -> None:
    def change(messages: Messages) -> str:
        field.path.unlink()
        return "Done."

    field.plan(step("a", "Do it."))
    report = field.fly(model=TalkingFunction(change))
    assert not field.path.exists()
    assert report.notes == (f"There is no plan {field.path}.",)


def self_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (folder, "{} is a folder; a plan is a file."),
        (pipe, "{} is not a file; a plan is a file."),
        (self_link, f"{{}} {CANNOT_BE_READ}: Too many levels of symbolic links."),
    ],
)
def test_a_file_that_becomes_something_else_meanwhile_is_told_in_a_sentence(
    field: Field, act: Callable[[Path], None], said: str
) -> None:
    def change(messages: Messages) -> str:
        act(field.path)
        return "Done."

    field.plan(step("a", "Do it."), step("b", block("(put 1)")))
    report = field.fly(model=TalkingFunction(change), consent="yes")
    assert (report.status, statuses(report)) == ("failed", {"a": "done", "b": ""})
    assert report.notes == (said.format(field.path), "b was not started.")
    assert field.puts == []


def test_a_disk_that_is_full_meanwhile_is_told_in_a_sentence(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(messages: Messages) -> str:
        monkeypatch.setattr("quoth.tools.storage.atomic.os.fsync", full)
        return "Done."

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    field.plan(step("a", "Do it."), step("b", block("(put 1)")))
    report = field.fly(model=TalkingFunction(fill), consent="yes")
    assert report.notes == (
        f"{field.path} {CANNOT_BE_WRITTEN}: No space left on device.",
        "b was not started.",
    )
    assert field.words == {"a": "RUNNING", "b": "PLAN"}
    assert sorted(path.name for path in field.folder.iterdir()) == ["plan.org"]
    assert field.puts == []


def test_what_could_not_be_written_at_the_end_is_written_by_the_next_flight(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill() -> int:
        patch.setattr("quoth.tools.storage.atomic.os.fsync", full)
        return 7

    field.plan(step("a", block("(put 1)")), step("b", block("(fill)")))
    tools = [*field.tools, tool("fill", fill)]
    with monkeypatch.context() as patch:
        report = field.fly(tools=tools, consent="yes")
    assert (report.status, statuses(report)) == ("failed", {"a": "done", "b": "done"})
    assert report.notes == (f"{field.path} {CANNOT_BE_WRITTEN}: No space left on device.",)
    assert field.words["b"] != "DONE"
    report = field.fly(tools=tools, consent="yes")
    assert (report.status, report.notes, field.puts) == ("done", (), [1])
    assert field.words == {"a": "DONE", "b": "DONE"}
    assert ": 7" in field.text


def test_a_fault_that_is_over_at_the_end_is_not_told(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    real, full = os.fsync, [True]

    def fsync(descriptor: int) -> None:
        if full and full.pop():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    def fill(messages: Messages) -> str:
        monkeypatch.setattr("quoth.tools.storage.atomic.os.fsync", fsync)
        return "Done."

    field.plan(step("a", "Do it."))
    report = field.fly(model=TalkingFunction(fill))
    assert (report.status, report.notes, field.words) == ("done", (), {"a": "DONE"})


def test_on_a_read_only_disk_no_step_begins_and_a_later_flight_flies(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ReadOnly:
        f_flag = os.ST_RDONLY

    def refuse(*given: object, **more: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    field.plan(step("a", block("(put 1)")))
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda path: ReadOnly)
        patch.setattr("quoth.agent.flight.plan_file.replace_file", refuse)
        report = field.fly(consent="yes")
    assert (report.status, field.puts) == ("failed", [])
    assert report.notes == (f"{field.path} {CANNOT_BE_WRITTEN}: Read-only file system.", "a was not started.")
    assert field.fly(consent="yes").status == "done"
    assert (field.puts, field.words) == ([1], {"a": "DONE"})


@pytest.mark.parametrize(
    ("where", "what"),
    [("in a form", f"{THE_CALL_WAS_DONE_BUT} receipt"), ("in a model", "The transcript")],
)
def test_a_store_that_has_no_room_breaks_a_flight_off_and_it_goes_on(
    field: Field, monkeypatch: pytest.MonkeyPatch, where: str, what: str
) -> None:
    def fill() -> str:
        if where != "nowhere":
            full.fill()
        return "filled"

    def talk(messages: Messages) -> str:
        return fill() if where == "in a model" else "Done."

    field.plan(
        step("a", block("(put 1)")),
        step("b", block("(fill)") if where == "in a form" else "Do it."),
        step("c", block("(put 3)")),
    )
    with disks.every_store_on(disks.FullDisk("full-flight"), monkeypatch) as full:
        tools = [*field.tools, tool("fill", fill)]
        flight: dict[str, Any] = {"tools": tools, "consent": "yes", "model": TalkingFunction(talk)}
        said = complaint(StoreError, lambda: field.fly(**flight))
        assert said == f"{what} {COULD_NOT_BE_WRITTEN}: {THE_DISK_IS_FULL}."
        assert field.words == {"a": "DONE", "b": "RUNNING", "c": "PLAN"}
        where, full.room = "nowhere", None
        assert field.fly(**flight).status == "done"
    assert field.words == {"a": "DONE", "b": "DONE", "c": "DONE"}
    assert field.puts == [1, 3]


def test_a_plan_that_is_write_protected_is_flown_and_not_written_to(field: Field) -> None:
    field.plan(step("a", block("(put 1)")), step("b", block("(shaky)")))
    before = field.text
    field.path.chmod(0o444)
    report = field.fly(consent="yes")
    assert (report.status, field.puts) == ("done", [1])
    assert report.notes == (f"{field.path} is write-protected, so no results are written to it.",)
    assert (field.text, field.path.stat().st_mode & 0o777) == (before, 0o444)
    field.path.chmod(0o644)
    assert field.fly(consent="yes").notes == ()
    assert field.words == {"a": "DONE", "b": "DONE"}


def test_a_plan_that_is_write_protected_meanwhile_is_left_as_it_was_then(field: Field) -> None:
    def protect(messages: Messages) -> str:
        field.path.chmod(0o444)
        return "Done."

    field.plan(step("a", "Do it."), step("b", block("1")))
    report = field.fly(model=TalkingFunction(protect))
    assert (report.status, statuses(report)) == ("done", {"a": "done", "b": "done"})
    assert field.words == {"a": "RUNNING", "b": "PLAN"}
    assert len(report.notes) == 1


def test_a_change_of_a_write_protected_plan_is_seen(field: Field) -> None:
    def change(messages: Messages) -> str:
        field.edit("(put 1)", "(put 2)")
        return "Done."

    field.plan(step("a", "Do it."), step("b", block("(put 1)")))
    field.path.chmod(0o444)
    field.edit = lambda old, new: rewrite(field.path, old, new)  # type: ignore[method-assign]
    report = field.fly(model=TalkingFunction(change), consent="yes")
    assert (field.puts, report.notes[-1]) == ([], "b was not started.")


def rewrite(path: Path, old: str, new: str) -> None:
    """What an editor does to a file that is write-protected, when told to do it nevertheless."""
    scratch = path.with_name("scratch")
    scratch.write_text(path.read_text().replace(old, new))
    scratch.chmod(path.stat().st_mode)
    scratch.replace(path)


def test_what_two_write_at_once_is_all_in_the_file(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    from quoth.agent.flight.plan_file import FileEdit, PlanFile

    field.plan(step("a", block("1")), step("b", block("2")))
    one, other = PlanFile(field.path), PlanFile(field.path)
    faults: list[str] = []
    calls: list[int] = []
    writing = threading.Thread(target=lambda: faults.extend(other.write([FileEdit("b", "DONE")])))
    read = one._bytes

    def meanwhile() -> bytes:
        data = read()
        calls.append(0)
        if len(calls) == 2:  # it has seen that nothing was changed
            writing.start()
            writing.join(0.3)  # … and who does not wait has written now
        return data

    monkeypatch.setattr(one, "_bytes", meanwhile)
    assert one.write([FileEdit("a", "DONE")]) == []
    writing.join()
    assert faults == []
    assert field.words == {"a": "DONE", "b": "DONE"}


def test_mode_line_ends_and_all_other_bytes_are_kept(field: Field) -> None:
    before = b"* PLAN a\r\n#+begin_src hy\r\n1\r\n#+end_src\r\n* Some more \t \r\nno end"
    field.path.write_bytes(before)
    field.path.chmod(0o640)
    assert field.fly().ok
    assert field.path.stat().st_mode & 0o777 == 0o640
    after = field.path.read_bytes()
    assert after.endswith(b"* Some more \t \r\nno end")
    assert after.count(b"\r\n") == after.count(b"\n")
    assert sorted(path.name for path in field.folder.iterdir()) == ["plan.org"]


@pytest.mark.parametrize(
    "call",
    [
        '(write-file :path "plan.org" :content "mine")',
        '(edit-file :path "plan.org" :old "PLAN b" :new "mine" :all True)',
        '(write-file :path "sub/../plan.org" :content "mine")',
        '(write-file :path "link.org" :content "mine")',
    ],
)
@pytest.mark.parametrize("way", ["forms", "prose"])
def test_no_tool_can_change_a_plan_that_is_flying(field: Field, call: str, way: str) -> None:
    (field.folder / "sub").mkdir()
    (field.folder / "link.org").symlink_to("plan.org")
    body = block(call) if way == "forms" else "Change the plan."
    field.plan(step("a", body, on_fail="continue"), step("b", block("1")))
    report = field.fly(call, "I could not.", consent="yes")
    assert report.steps[1].status == "done"
    assert field.words["b"] == "DONE"
    assert "mine" not in field.text.replace(call, "")
    if way == "forms":
        assert "is a running flight plan" in report.steps[0].text


def test_no_tool_of_another_workspace_can_change_a_plan_that_is_flying(field: Field) -> None:
    said: list[str] = []

    def write(messages: Messages) -> str:
        with Agent(workspace=field.folder.parent, tools=[], consent="yes", user="bob") as other:
            path = field.path.relative_to(field.folder.parent)
            said.append(other.call(f'(write-file :path "{path}" :content "mine")').message)
        return "Done."

    field.plan(step("a", "Do it."))
    assert field.fly(model=TalkingFunction(lambda m: _in_thread(write, m))).ok
    assert said == [
        f"{field.folder.name}/plan.org is a running flight plan; tools cannot change it until it ends."
    ]
    assert field.words == {"a": "DONE"}


def test_a_plan_that_does_not_fly_is_a_file_like_any_other(field: Field) -> None:
    field.plan(step("a", block("1")))
    with field.agent(consent="yes") as agent:
        agent.fly(field.path)
        assert agent.call('(write-file :path "plan.org" :content "mine")').ok


def test_a_plan_is_flown_by_one_process_at_a_time(field: Field) -> None:
    said: list[str] = []

    def fly_too(messages: Messages) -> str:
        said.append(complaint(BusyError, lambda: field.fly()))
        with Agent(workspace=field.folder.parent, user="bob") as other:
            said.append(complaint(BusyError, lambda: other.fly(field.path)))
        return "Done."

    field.plan(step("a", "Do it."))
    assert field.fly(model=TalkingFunction(lambda m: _in_thread(fly_too, m))).ok
    assert said == [f"Another process is flying {field.path}."] * 2


async def _in_thread(work: Callable[[Messages], str], messages: Messages) -> str:
    return await asyncio.to_thread(work, messages)


def test_a_plan_in_markdown_is_flown_and_not_written_to(field: Field) -> None:
    text = "# My plan\n## PLAN Build: count\n```hy\n(+ 1 2)\n```\n## PLAN Tester: say it\nSay it.\n"
    field.path = field.folder / "plan.md"
    field.path.write_text(text)
    report = field.fly("Three.")
    assert [each.text for each in report.steps] == ["3", "Three."]
    assert field.path.read_text() == text


# Interrupts


async def test_an_interrupt_stops_a_flight_at_a_safe_point_and_it_goes_on_there(field: Field) -> None:
    agents: list[AsyncAgent] = []

    def stop(messages: Messages) -> str:
        agents[-1].interrupt()
        return "(put 1)"

    field.plan(step("a", block("(put 0)")), step("b", "Do it."), step("c", block("2")))
    given: dict[str, Any] = {"workspace": field.folder, "tools": field.tools, "consent": "yes", "user": "ann"}
    async with AsyncAgent(model=TalkingFunction(stop), **given) as agent:
        agents.append(agent)
        report = await agent.fly(field.path)
    assert (report.status, statuses(report)) == ("interrupted", {"a": "done", "b": "interrupted", "c": ""})
    assert field.words == {"a": "DONE", "b": "RUNNING", "c": "PLAN"}
    async with AsyncAgent(model=scripted("Done."), **given) as agent:
        assert (await agent.fly(field.path)).ok
    assert field.puts == [0, 1]  # what the model had asked for is done then


# Approval


def test_the_forms_of_an_approved_step_are_not_asked_about_once_in_each_flight(field: Field) -> None:
    field.plan(step("one", block("(put 1) (put 2)")), step("two", block("(put 3)")))
    approve(field, "one")
    report = field.fly()
    assert (report.status, statuses(report)) == ("pending", {"one": "done", "two": "waits"}), report
    assert field.puts == [1, 2]
    approve(field)
    assert field.fly().ok
    assert field.fly(wanted={"again": True}).ok
    assert field.puts == [1, 2, 3, 1, 2, 3]


def test_who_approved_is_in_the_audit(field: Field) -> None:
    field.plan(step("one", block("(put 1)")))
    approve(field)
    with field.agent(user="bob") as agent:
        assert agent.fly(field.path).ok
        rows = agent.audit.rows()
    assert [row["consent"] for row in rows if row["tool"] == "fly"] == ["step approved by ann"]
    (put,) = [row for row in rows if row["tool"] == "put" and row["route"] == "program"]
    assert re.match(r"allow: approved with its plan by ann \(request \w+\)", put["consent"])


PLAN = lines(
    "#+TITLE: T",
    "#+NAME: data",
    "| 1 |",
    "* Library",
    block("(+ 0 0)", head="hy :var z=0", name="lib"),
    "* PLAN Build",
    ":PROPERTIES:",
    ":EXPECT: (= 1 1)",
    ":END:",
    "** PLAN one",
    ":PROPERTIES:",
    ":ID: one",
    ":TOOLS: put",
    ":RETRY: 0",
    ":BUDGET: seconds=99",
    ":END:",
    block("(put (get d 0 0))", head="hy :var d=data"),
    "#+CALL: lib()",
)
CHANGES = {
    "a form": ("(put (get", "(put  (get"),
    "the data it works with": ("| 1 |", "| 2 |"),
    "the block it calls": ("(+ 0 0)", "(+ 0 1)"),
    "a variable of the block it calls": (":var z=0", ":var z=1"),
    "a variable": (":var d=data", ":var d=data e=1"),
    "its title": ("PLAN one", "PLAN other"),
    "its tools": (":TOOLS: put", ":TOOLS: put look"),
    "its retries": (":RETRY: 0", ":RETRY: 1"),
    "its budget": ("seconds=99", "seconds=98"),
    "the expectation of its group": ("(= 1 1)", "(= 2 2)"),
    "its phase": ("PLAN Build", "PLAN Tester"),
    "its end": (":END:\n#+begin", ":ON-FAIL: skip\n:END:\n#+begin"),
    "when it comes": (":END:\n#+begin", ":AFTER: nil\n:END:\n#+begin"),
    "its own expectation": (":END:\n#+begin", ":EXPECT: 1\n:END:\n#+begin"),
    "its model": (":END:\n#+begin", ":MODEL: local\n:END:\n#+begin"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_any_part_of_a_step_voids_its_approval(field: Field, what: str) -> None:
    field.path.write_text(PLAN)
    approve(field)
    field.edit(*CHANGES[what])
    assert field.fly().status == "pending"
    assert field.puts == []


@pytest.mark.parametrize(
    "change",
    [("PLAN one", "DONE one"), ("* Library", "Words.\n* Library"), ("#+CALL", "\n#+CALL")],
)
def test_what_does_not_count_leaves_the_approval_as_it_is(field: Field, change: tuple[str, str]) -> None:
    field.path.write_text(PLAN)
    approve(field)
    field.edit(*change)
    assert field.fly().ok
    assert field.puts == [1]


def test_the_word_approved_in_the_file_approves_nothing(field: Field) -> None:
    field.plan(step("one", block("(put 1)")))
    field.edit("PLAN", "APPROVED")
    assert field.fly().status == "pending"
    assert field.puts == []


def test_another_version_of_a_tool_voids_the_approval(field: Field) -> None:
    field.plan(step("one", block("(put 1)")))
    approve(field)
    number = {"x": {"type": int, "default": 1}}
    other = tool("put", field.put, params=number, effects=["memory", "writes"])
    assert field.fly(tools=[other]).status == "pending"


def test_an_approved_step_does_nothing_that_a_rule_denies(field: Field) -> None:
    files(field.folder, {"no.hy": "(deny (put))"})
    field.plan(step("one", block("(put 1)")))
    approve(field)
    report = field.fly(policy=field.folder / "no.hy")
    assert (report.steps[0].status, field.puts) == ("denied", [])
    assert field.words == {"one": "DENIED"}


def test_the_calls_of_models_are_never_covered(field: Field) -> None:
    field.plan(step("one", "Do it."))
    approve(field)
    assert field.fly("(put 1)").status == "pending"


def test_a_value_that_nobody_has_seen_is_not_covered(field: Field) -> None:
    files(field.folder, {"n": "7"})
    field.plan(step("one", block('(put (int (read-file "n")))')))
    approve(field)
    assert field.fly().status == "pending"
    field.plan(step("a", block("7")), step("b", block("(put x)", head="hy :var x=a")))
    approve(field)
    assert field.fly().status == "pending"
    assert field.puts == []


def test_a_step_that_a_person_denied_is_not_flown_until_it_is_approved(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("2")))
    approve(field, "one", decision=Decision("deny", "ann", why="too early"))
    report = field.fly(consent="yes")
    assert (report.status, statuses(report)) == ("failed", {"one": "denied", "two": ""})
    assert report.steps[0].text == "one was denied: the person said: too early."
    field.edit("(put 1)", "(put 2)")
    assert field.fly(consent="yes").steps[0].status == "denied"
    approve(field)
    assert field.fly().ok
    assert field.puts == [2]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "PLAN one",
            "PLAN other",
            "other was denied: it does the same as one, and the person said: too early.",
        ),
        (
            "PLAN one",
            "PLAN one more",
            "one-more was denied: it does the same as one, and the person said: too early.",
        ),
        ("(put 1)", "(put 2)", "one was denied: the person said: too early."),
        (":RETRY: 0", ":RETRY: 1", "one was denied: the person said: too early."),
    ],
)
def test_a_denial_outlives_a_change_of_the_headline_or_of_the_forms(
    field: Field, old: str, new: str, said: str
) -> None:
    field.plan(step("one", block("(put 1)"), retry="0"))
    denied(field)
    field.edit(old, new)
    report = field.fly(consent="yes")
    assert (report.steps[0].status, report.steps[0].text) == ("denied", said)
    assert field.puts == []
    approve(field)
    assert field.fly().ok


def test_a_denial_of_an_objective_outlives_its_headline(field: Field) -> None:
    field.plan(step("one", "Do it."))
    denied(field)
    field.edit("PLAN one", "PLAN Build: other")
    assert field.fly("Done.").steps[0].status == "denied"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("PLAN one\n#+begin_src hy\n(put 1)", "PLAN other\n#+begin_src hy\n(put 2)"),
        ("PLAN one\n#+begin_src hy\n", "PLAN other\n#+begin_src hy :var x=1\n"),
    ],
)
def test_what_has_another_name_and_does_something_else_was_not_denied(
    field: Field, old: str, new: str
) -> None:
    field.plan(step("one", block("(put 1)")))
    denied(field)
    field.edit(old, new)
    assert field.fly(consent="yes").ok


def test_a_denial_is_over_when_its_step_was_approved_and_each_step_has_its_own(field: Field) -> None:
    field.plan(step("one", block("(put 1)")), step("two", block("(put 1)")), step("t", expect="(= 1 1)"))
    denied(field, "one")
    approve(field, "two")
    assert statuses(field.fly()) == {"one": "denied", "two": "", "t": ""}
    assert field.fly(wanted={"only": "two"}).ok  # though it is the same as one
    approve(field, "one")
    field.edit("DENIED one", "PLAN other")
    assert field.fly(consent="yes").ok


def test_steps_of_expectations_alone_are_not_taken_for_each_other(field: Field) -> None:
    field.plan(step("one", expect="(= 1 1)"), step("two", expect="(= 2 2)", after="nil"))
    denied(field, "one")
    field.edit("PLAN one", "PLAN other")
    assert field.fly().ok


def test_no_tool_can_write_an_approval(field: Field) -> None:
    field.plan(step("one", block("(put 1)")))
    with field.agent(consent="yes") as agent:
        store = store_path(field.folder)
        assert agent.call(f'(write-file :path "{store}" :content "")').status == "denied"


def test_what_is_declared_secret_does_not_come_into_the_file(field: Field) -> None:
    from quoth.tools.registry.define import define_tool, registering_in
    from quoth.tools.registry.table import ToolTable

    with registering_in(ToolTable()):
        tell = define_tool(
            "tell",
            "A tool for a test.",
            parameters={"key": {"type": str, "secret": True}},
            body=lambda key: f"the key is {key}",
        )
    field.plan(step("one", block('(tell :key "hunter2x")')), step("two", block("x", head="hy :var x=one")))
    assert field.fly(tools=[tell]).ok
    assert field.text.count("hunter2x") == 1
    assert field.text.count("the key is [secret]") == 2


@pytest.mark.parametrize("dialect", [None, *DIALECTS])
def test_a_step_without_tools_is_told_of_none(dialect: str | None, tmp_path: Path) -> None:
    files(tmp_path, {"p.org": "* PLAN Greet\n:PROPERTIES:\n:TOOLS: nil\n:END:\nSay hello.\n"})
    model = scripted("", "Hello.")
    with Agent(
        workspace=tmp_path,
        model=ModelOptions(model, dialect=dialect),
    ) as it:
        report = it.fly(tmp_path / "p.org")
    assert (report.status, report.steps[0].text) == ("done", "Hello.")
    assert model.tools == [None, None]
    told = [(message["role"], message["content"]) for message in json.loads(model.seen[-1])]
    assert [role for role, _ in told if role == "system"] == []
    assert not re.search(r"\btools?\b|\bcalls?\b|\blisp\b|read-file", str(told), re.IGNORECASE), told
