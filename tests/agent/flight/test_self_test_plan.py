"""The plan the first registry was built by, as its own proof: its phases stand, its Tester phase comes true.

Here its forms are done by the agent itself; that it flies is in test_fly_cli.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sentences import IS_NESTED_DEEPER_THAN
from words import TalkingFunction

from quoth import Agent, HostServices
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.ports import MemoryAudit

PLAN = Path(__file__).parents[3] / "plans" / "self-test.org"


def phases() -> dict[str, str]:
    """The phases of the plan by name, each with its text."""
    parts = re.split(r"^\* PLAN (\w+).*$", PLAN.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def forms(phase: str) -> list[str]:
    """The forms a phase would run."""
    return [
        form.strip() for form in re.findall(r"#\+begin_src hy\n(.*?)#\+end_src", phases()[phase], re.DOTALL)
    ]


def doubling(messages: Messages) -> str:
    """A model that adds, looks at the result it was shown, doubles just that, and says what came out."""
    shown = [message["content"] for message in messages if message["role"] == "tool"]
    results = [int(found) for text in shown for found in re.findall(r"-> ok:\n(\d+)", text)]
    if not results:
        return "(eval (+ 5 5))"
    if len(results) == 1:
        return f"(eval (* 2 {results[0]}))"
    return f"The answer is {results[-1]}."


def test_the_plan_has_its_four_phases_in_order() -> None:
    assert list(phases()) == ["Demand", "Blueprint", "Build", "Tester"]


def test_an_agent_told_5_plus_5_then_doubled_makes_two_eval_steps(tmp_path: Path) -> None:
    with Agent(
        workspace=tmp_path, model=TalkingFunction(doubling), services=HostServices(audit=MemoryAudit())
    ) as agent:
        reply = agent.run("5+5, then doubled. Use eval.")
        rows = agent.audit.rows()
    assert (reply.status, reply.text) == ("done", "The answer is 20.")
    assert [str(call.form) for call in reply.calls] == ["(eval (+ 5 5))", "(eval (* 2 10))"]
    assert [call.result.value for call in reply.calls] == [10, 20]
    assert [(row["tool"], row["route"], row["round"]) for row in rows] == [
        ("eval", "reply", 1),
        ("eval", "reply", 2),
    ]


def test_the_second_step_really_depends_on_the_first(tmp_path: Path) -> None:
    def lying(messages: Messages) -> str:
        return doubling(messages).replace("(+ 5 5)", "(+ 5 6)")

    with Agent(
        workspace=tmp_path, model=TalkingFunction(lying), services=HostServices(audit=MemoryAudit())
    ) as agent:
        assert agent.run("5+5, then doubled.").text == "The answer is 22."


@pytest.mark.parametrize(
    ("program", "value", "evals"),
    [
        ('(* 2 (eval "(+ 5 5)"))', 20, 2),
        ('(eval "(* 2 (eval \\"(+ 5 5)\\"))")', 20, 3),
        ('(sum (lfor n [1 2 3] (eval (+ "(* " (str n) " 10)"))))', 60, 4),
    ],
)
def test_one_program_evaluates_inside_itself_through_the_door(
    tmp_path: Path, program: str, value: int, evals: int
) -> None:
    with Agent(workspace=tmp_path, services=HostServices(audit=MemoryAudit())) as agent:
        result = agent.eval(program)
        rows = agent.audit.rows()
    assert (result.status, result.value) == ("ok", value)
    assert [row["tool"] for row in rows] == ["eval"] * evals
    inner = [row for row in rows if row["parent"]]
    assert len(inner) == evals - 1
    assert all(row["route"] == "program" and row["depth"] >= 1 for row in inner)


def test_the_forms_of_the_tester_phase_run_as_they_are_written(tmp_path: Path) -> None:
    assert forms("Tester")
    with Agent(workspace=tmp_path, services=HostServices(audit=MemoryAudit())) as agent:
        for form in [*forms("Demand"), *forms("Build"), *forms("Tester")]:
            assert agent.eval(form).ok, form


def test_an_eval_that_evaluates_itself_for_ever_comes_to_an_end(tmp_path: Path) -> None:
    program = '(defn deeper [] (eval "(do (defn f [p] (eval p)) (f \\"(eval 1)\\"))")) (deeper)'
    with Agent(workspace=tmp_path, services=HostServices(audit=MemoryAudit())) as agent:
        assert agent.eval(program).value == 1
        nested = "1"
        for _ in range(12):
            nested = '(eval "' + nested.replace("\\", "\\\\").replace('"', '\\"') + '")'
        result = agent.eval(nested)
    assert result.status == "denied"
    assert f"eval {IS_NESTED_DEEPER_THAN} 10 calls." in result.message
