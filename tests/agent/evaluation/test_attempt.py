"""One run of a case in this process: its deadline, the budget of all runs, and files that reach out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from words import files

from quoth.agent.doubles import FakeModel
from quoth.agent.evaluation.attempt import CaseRun, Ended, Original
from quoth.agent.evaluation.case import Case, case_text, find_cases, read_case
from quoth.agent.evaluation.suite import CaseRow, Suite
from quoth.agent.plan.model import Form
from quoth.agent.run.host import open_host
from quoth.agent.run.run import RunLimits
from quoth.neuro.backends.base import Completion, Usage
from quoth.tools.errors import UsageError
from quoth.tools.lisp.source import Place, SourceText
from quoth.tools.policy.files import Trust


def form(text: str) -> Form:
    return Form(text, Place(SourceText("--expect", text), 1, 1), ((0, 0),))


TRUE = form('(= result "Yes.")')
PRICED = Completion("Yes.", usage=Usage(1000, 100))


def run(folder: Path, model: Callable[[], FakeModel], times: int = 1, **options: Any) -> Suite:
    """Run a case with new models, one for each run; ``options`` are of the case, ``cost`` of the suite."""
    cost, limits = options.pop("cost", None), options.pop("limits", RunLimits())
    case = Case("it", options.pop("messages", ["Is it so?"]), options.pop("expect", [TRUE]), **options)
    suite = Suite(lambda name, place: open_host(workspace=place, model=model(), limits=limits), times, cost)

    async def go() -> None:
        await suite.run([(case, case.mode)], ["fake"], await copied(folder))

    asyncio.run(go())
    return suite


async def copied(folder: Path) -> Original:
    async with open_host(workspace=folder, model=FakeModel()) as host:
        return Original.of(host)


def endings(suite: Suite) -> list[str]:
    (row,) = suite.rows
    return [one.ended for one in row.attempts]


def test_a_run_ends_at_its_deadline(tmp_path: Path) -> None:
    async def sleep(messages: Any) -> str:
        await asyncio.sleep(60)
        return "Yes."

    assert endings(run(tmp_path, lambda: FakeModel(sleep), seconds=0.1)) == ["late"]


def test_a_budget_ends_the_runs_and_an_unknown_price_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")

    def priced() -> FakeModel:
        return FakeModel(PRICED, name="openai:gpt-4o-mini")

    whole = run(tmp_path, priced, 3, cost=1.0)
    assert endings(whole) == ["passed"] * 3
    (row,) = whole.rows
    spent = sum(one.cost or 0 for one in row.attempts)
    assert 0 < spent < 0.01
    for cost in (0.000001, spent / 3 * 1.5, spent / 3):
        cut = run(tmp_path, priced, 3, cost=cost)
        assert cut.stopped.startswith("The budget is used up")
        assert len(endings(cut)) < 3
        assert (cut.rows[0].score.passed, cut.rows[0].score.runs) in ((0, 0), (1, 1))
    with pytest.raises(UsageError, match="price is not known"):
        run(tmp_path, lambda: FakeModel("Yes."), cost=1.0)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (RunLimits(tokens=200), "of 200 are left"),
        (RunLimits(cost=0.00001), "of $0.00001 are left"),
        (RunLimits(seconds=1e-6), "its time of 1e-06 s is over"),
    ],
)
def test_a_run_that_its_own_bound_ends_does_not_end_the_others(
    limits: RunLimits, said: str, tmp_path: Path
) -> None:
    pytest.importorskip("genai_prices")

    def priced() -> FakeModel:
        return FakeModel(PRICED, name="openai:gpt-4o-mini")

    whole = run(tmp_path, priced, 2, cost=1.0, limits=limits)
    assert (endings(whole), whole.stopped) == (["unanswered"] * 2, "")
    assert all(said in one.why for one in whole.rows[0].attempts), whole.rows[0].attempts


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ('(not (in "write-file" called))', "asked"),
        ('(= status "pending")', "passed"),
        ('(= status "done")', "asked"),
    ],
)
def test_an_unfinished_run_passes_only_if_its_status_is_expected(
    text: str, ended: str, tmp_path: Path
) -> None:
    def writer() -> FakeModel:
        return FakeModel('(write-file :path "a" :content "b")', "Yes.")

    assert endings(run(tmp_path, writer, expect=[form(text)])) == [ended]


@pytest.mark.parametrize(
    "name", ["TODO", "TODO list.txt", "COMMENT a.txt", "a :b:", '"a"', "[#A] \\x", "b/c.md"]
)
def test_a_case_keeps_the_names_of_its_files(name: str, tmp_path: Path) -> None:
    files(tmp_path, {"it.org": case_text(Case("it", ["?"], [TRUE], {name: "x\n"}))})
    assert read_case(tmp_path / "it.org").files == {name: "x\n"}


def test_two_cases_of_the_same_name_are_refused(tmp_path: Path) -> None:
    files(tmp_path, {"evaluations/it.org": "", "old/it.org": ""})
    with pytest.raises(UsageError, match="Rename one of"):
        find_cases(tmp_path, ["it", str(tmp_path / "old/it.org")])
    assert len(find_cases(tmp_path, ["it", "it"])) == 1


def test_all_messages_of_a_case_share_the_budget(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")

    def priced() -> FakeModel:
        return FakeModel(*[PRICED] * 4, name="openai:gpt-4o-mini")

    (one,) = run(tmp_path, priced, cost=1.0).rows[0].attempts
    assert one.cost
    cut = run(tmp_path, priced, cost=one.cost * 2.5, messages=["Is it so?"] * 4)
    assert endings(cut) == ["budget"]
    assert (cut.rows[0].attempts[0].cost or 0) < one.cost * 2.5


def test_models_are_compared_by_the_cases_that_both_have_run() -> None:
    def row(case: str, model: str, ended: Ended) -> CaseRow:
        return CaseRow(Case(case, ["?"]), model, "live", [CaseRun(ended)] * 10)

    suite = Suite(lambda name, place: open_host(workspace=place))
    ends: dict[str, list[Ended]] = {"easy": ["passed", "passed"], "hard": ["failed", "budget"]}
    suite.rows = [
        row(case, model, end) for case, both in ends.items() for model, end in zip("ab", both, strict=True)
    ]
    assert list(suite.comparisons(0.95)) == [
        "b: 10 of 10 passed; a: 10 of 10: no difference to a is shown, p = 1."
    ]


def test_a_case_cannot_replace_the_rules_of_its_copy(tmp_path: Path) -> None:
    files(tmp_path, {".quoth/policy.hy": "(deny (write-file))\n"})
    Trust().trust(tmp_path, b"(deny (write-file))\n")
    for text in ("(allow (write-file))\n", None):
        with pytest.raises(UsageError, match="was trusted"):
            run(tmp_path, lambda: FakeModel("Yes."), files={".quoth/policy.hy": text})


def test_hidden_and_ignored_files_are_not_copied(tmp_path: Path) -> None:
    given = {".gitignore": "*.log\n", "a.log": "", "a.txt": "", ".git/config": "", "evaluations/it.org": ""}
    files(tmp_path, given)
    (tmp_path / "up").symlink_to("/etc")
    assert sorted(asyncio.run(copied(tmp_path)).files) == [".gitignore", "a.txt"]


def test_a_file_that_a_rule_names_by_its_whole_path_is_not_copied(tmp_path: Path) -> None:
    rule = f'(deny (read-file :path "{tmp_path}/b.txt"))\n'
    files(tmp_path, {"a.txt": "", "b.txt": "", ".quoth/policy.hy": rule})
    Trust().trust(tmp_path, rule.encode())
    assert asyncio.run(copied(tmp_path)).files == ["a.txt"]
