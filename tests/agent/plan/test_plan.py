"""Plans as data: what a headline in Org comes to, in which order steps run, and what a digest covers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import THERE_IS_NO_STEP
from words import complaint

from quoth.agent.plan.model import TODO_WORDS, Part, Plan, StepBudget
from quoth.agent.plan.org_reader import plan_of, read_plan
from quoth.tools.errors import UsageError
from quoth.tools.org.document import Org, dump, load
from quoth.tools.org.edit import add_to_drawer, put_results, set_todo

DATA = Path(__file__).parents[1] / "data"
SELF_TEST = Path(__file__).parents[3] / "plans" / "self-test.org"


def plan(text: str) -> Plan:
    return read_plan(text.encode(), "p.org")[1]


def step(text: str) -> Part:
    """The last step of a plan."""
    return plan(text).steps[-1]


def ids(parts: object) -> list[str]:
    return [part.id for part in parts]  # type: ignore[attr-defined]


def test_the_self_test_has_its_phases_and_steps() -> None:
    _, found = read_plan(SELF_TEST.read_bytes(), "plans/self-test.org")
    assert found.title == "Self-test: one table, one door, recursive eval"
    assert [part.phase for part in found.parts if part.is_phase] == ["Demand", "Blueprint", "Build", "Tester"]
    assert ids(found.steps) == ["demand-table", "build-eval", "tester-loop", "tester-nested"]
    loop = found.find("tester-loop")
    assert (loop.phase, loop.tools, loop.budget) == ("Tester", ("eval",), StepBudget(steps=6))
    assert loop.objective.startswith("First add 5 and 5 with eval.")
    assert ids(found.notes(loop)) == ["blueprint"]
    assert [form.text for form in found.find("build-eval").forms] == ['(eval "(+ 5 5)")']
    assert found.faults == ()


def test_a_small_plan_of_everything() -> None:
    _, found = read_plan((DATA / "morning.org").read_bytes(), "morning.org")
    assert ids(found.parts) == [
        "demand",
        "build",
        "count-the-marks",
        "say-what-stands-there",
        "tester",
        "it-came-to-something",
    ]
    count, say = found.find("Count the marks"), found.find("say-what-stands-there")
    assert count.budget == StepBudget(steps=8)  # from the file
    assert count.tools == ("grep-search", "list-files")  # from the phase
    assert [(var.name, var.ref) for var in count.forms[0].vars] == [("table", "words")]
    assert found.data["words"].value == [["word", "weight"], ["TODO", 2], ["FIXME", 3.5]]
    assert say.objective.startswith(
        "- one sentence, *bold* only if it must be;\n- no more.\n\n#+begin_example"
    )
    assert found.steps[-1].forms[0].call == "marks"


@pytest.mark.parametrize(
    ("title", "phase"),
    [
        ("Demand", "Demand"),
        ("Build: the thing", "Build"),
        ("tester", "Tester"),
        ("Phase A: Demand (Verify State)", "Demand"),
        ("Build the thing", ""),
        ("Builder", ""),
    ],
)
def test_a_phase_is_a_headline_that_begins_with_its_name(title: str, phase: str) -> None:
    assert step(f"* PLAN {title}\nDo it.").phase == phase


def test_what_is_a_part_of_a_plan() -> None:
    text = "* Notes\nx\n* PLAN a\nx\n** Details\ny\n* COMMENT PLAN b\n"
    text += "* PLAN c :ARCHIVE:\n** PLAN d\n* Build\nz\n"
    assert ids(plan(text).parts) == ["a", "details", "build"]
    assert ids(plan(text).steps) == ["details", "build"]


def test_forms_are_without_their_margin_and_commas_and_know_where_they_came_from() -> None:
    text = '* PLAN a\n  #+begin_src hy\n    (echo :text "\n  ,* x")\n\n     (f)\n  #+end_src\n'
    (form,) = step(text).forms
    assert form.text == '  (echo :text "\n* x")\n\n   (f)'
    assert [(form.at(line, 1).line, form.at(line, 1).column) for line in (1, 2, 4)] == [
        (3, 3),
        (4, 4),
        (6, 3),
    ]


def test_prose_beside_forms_is_for_people() -> None:
    assert step("* PLAN a\nIt says hello.\n#+begin_src hy\n1\n#+end_src\n").objective == ""
    assert step("* PLAN a\nSay hello.\n#+begin_src hy :eval no\n1\n#+end_src\n").objective == "Say hello."


def test_a_block_of_lisp_that_is_not_run_is_a_text_for_the_model_as_one_of_python_is() -> None:
    for language in ("lisp", "python", "common-lisp"):
        block = f"#+begin_src {language} :eval no\n(f 1)\n#+end_src"
        assert step(f"* PLAN a\nSay what it does:\n{block}\n").objective == f"Say what it does:\n{block}"
        assert step(f"* PLAN a\n{block}\n").objective == block


def test_an_objective_holds_no_results_logs_or_keywords() -> None:
    text = (
        "* PLAN a\nSCHEDULED: <2026-01-01>\n:PROPERTIES:\n:ID: x\n:END:\n:LOGBOOK:\n- x\n:END:\n"
        "Say *it*,\n# remark\n\n\n\ntwice.\n#+RESULTS: x\n: said\n"
    )
    assert step(text).objective == "Say *it*,\n\ntwice."


def test_properties_reach_the_steps_below_as_org_users_expect() -> None:
    text = (
        "#+PROPERTY: RETRY 1\n#+PROPERTY: TOOLS echo\n#+PROPERTY: header-args:hy :var n=1\n"
        "* Build\n:PROPERTIES:\n:TOOLS+: eval\n:EXPECT: (f)\n:header-args: :var m=2\n:END:\n"
        "** PLAN a\n:PROPERTIES:\n:RETRY: nil\n:END:\n#+begin_src hy :var n=3\nn\n#+end_src\n"
    )
    found = step(text)
    assert (found.retry, found.tools, found.expect) == (0, ("echo", "eval"), "")
    assert {var.name: var.value for var in found.forms[0].vars} == {"n": 3, "m": 2}


def test_a_headline_without_todo_word_hands_down_what_holds_below_it() -> None:
    text = "* Group\n:PROPERTIES:\n:TOOLS: echo\n:END:\n** PLAN a\nx\n* PLAN b\ny\n"
    assert [one.tools for one in plan(text).steps] == [("echo",), None]


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("-1.5", -1.5), ('"a b"', "a b"), ("'(1 2)", [1, 2]), ('[1 [2 "x"]]', [1, [2, "x"]])],
)
def test_the_values_of_variables(text: str, value: object) -> None:
    (var,) = step(f"* PLAN a\n#+begin_src hy :var x={text}\nx\n#+end_src\n").forms[0].vars
    assert (var.name, var.value, var.ref) == ("x", value, "")


def test_variables_become_a_let_around_the_form() -> None:
    (form,) = step("* PLAN a\n#+begin_src hy\n(f x) ; so\n#+end_src\n").forms
    assert form.program({}) == "(f x) ; so"
    assert form.program({"x": ['"', 1], "y": None}) == '(let [x ["\\"" 1]  y None]\n(f x) ; so\n)'


# Order


def ordered(*steps: tuple[str, str]) -> Plan:
    """Steps by id, each with what its :AFTER: says."""
    drawer = "* PLAN {0}\n:PROPERTIES:\n:ID: {0}\n{1}:END:\nDo it.\n"
    return plan("".join(drawer.format(name, f":AFTER: {after}\n" if after else "") for name, after in steps))


def test_steps_run_in_the_order_of_the_file_unless_they_say_otherwise() -> None:
    assert ids(ordered(("a", ""), ("b", ""), ("c", "")).order) == ["a", "b", "c"]
    assert ids(ordered(("a", "c"), ("b", "nil"), ("c", "")).order) == ["b", "c", "a"]
    found = ordered(("a", ""), ("b", "a"), ("c", "a"), ("d", "b c"))
    assert found.waits == {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}  # b and c, side by side
    assert found.earlier(found.find("d")) == {"a", "b", "c"}


def test_what_is_after_a_phase_waits_for_all_its_steps() -> None:
    text = "* Demand\n** PLAN a\nx\n** PLAN b\nx\n* Blueprint\nPlans.\n* Build\n** PLAN c\nx\n"
    assert plan(text).waits == {"a": (), "b": ("a",), "c": ("a", "b")}


def test_a_file_read_without_the_words_of_plans_is_a_plan_all_the_same() -> None:
    assert ids(plan_of(load(b"* PLAN a\nx\n"), "p.org").steps) == ["a"]


def test_steps_that_wait_for_themselves_have_no_order() -> None:
    assert ids(ordered(("a", ""), ("b", "c"), ("c", "b"), ("d", "")).order) == ["a"]


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=1, max_size=8))
def test_an_order_keeps_every_promise(after: list[list[int]]) -> None:
    names = [f"s{n}" for n in range(len(after))]
    text = [
        (name, " ".join(f"s{n}" for n in of if n < len(names))) for name, of in zip(names, after, strict=True)
    ]
    found = ordered(*text)
    seen: set[str] = set()
    for one in found.order:
        assert set(found.waits[one.id]) <= seen
        seen.add(one.id)


def test_a_step_is_found_by_its_id_or_title() -> None:
    found = plan("* PLAN Say hello\nx\n* PLAN b\ny\n")
    assert found.find("say-hello") is found.find("say Hello")
    said = f"{THERE_IS_NO_STEP} say-helo in p.org. Did you mean say-hello?"
    assert complaint(UsageError, lambda: found.find("say-helo")) == said


# Digests

TEXT = """#+TITLE: t
* PLAN a
:PROPERTIES:
:ID: a
:RETRY: 1
:END:
#+begin_src hy :var x=rows
(f x)
#+end_src
* PLAN b
Do *it*.
#+NAME: rows
| 1 |
"""


def digests(org: Org) -> list[str]:
    found = plan_of(org, "p.org")
    return [found.digest(one) for one in found.steps]


def test_todo_words_results_and_logs_do_not_count() -> None:
    org = load(TEXT.encode(), TODO_WORDS)
    before = digests(org)
    for edit in (
        lambda org: set_todo(org, 1, "DONE"),
        lambda org: put_results(org, 1, 0, "7"),
        lambda org: add_to_drawer(org, 2, "LOGBOOK", "done"),
        lambda org: load(dump(org).replace(b":ID: a\n", b":ID: a\n:CREATED: today\n"), org.words),
        lambda org: load(dump(org).replace(b"\n", b"\r\n"), org.words),
    ):
        org = edit(org)
        assert digests(org) == before


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("(f x)", "(f y)", [True, False]),
        ("RETRY: 1", "RETRY: 2", [True, False]),
        ("x=rows", "x=5", [True, False]),
        ("| 1 |", "| 2 |", [True, True]),  # the table is prose of b, too
        ("Do *it*", "Do it", [False, True]),
        ("TITLE: t", "TITLE: u", [False, True]),
        ("* PLAN b", "* PLAN c", [False, True]),
        (":ID: a", ":ID: a\n:EXPECT: True", [True, False]),
        (":ID: a", ":ID: a\n:TOOLS: echo", [True, False]),
        (":ID: a", ":ID: a\n:BUDGET: steps=1", [True, False]),
        (":ID: a", ":ID: a\n:MODEL: local", [True, False]),
        (":ID: a", ":ID: a\n:AFTER: nil", [True, False]),
        (":ID: a", ":ID: a\n:ON-FAIL: skip", [True, False]),
        (":ID: a", ":ID: a\n:MAY-FAIL: t", [True, False]),
        (":ID: a", ":ID: a\n:MAY-FAIL: nil", [False, False]),
    ],
)
def test_what_counts_changes_the_digest_of_its_step(old: str, new: str, changed: list[bool]) -> None:
    before, after = (digests(load(text.encode(), TODO_WORDS)) for text in (TEXT, TEXT.replace(old, new, 1)))
    assert [one != other for one, other in zip(before, after, strict=True)] == changed


@given(st.binary(max_size=600))
def test_any_bytes_make_a_plan_with_or_without_faults(data: bytes) -> None:
    org, found = read_plan(b"* PLAN a\n#+begin_src hy :var " + data, "p.org")
    for fault in found.faults:
        assert str(fault).startswith("p.org:")
    assert isinstance(found.whole_digest, str)
    assert dump(org).endswith(data)


@pytest.mark.parametrize("none", ["nil", "none", "NIL"])
def test_a_step_without_tools_has_none_whatever_stands_around_it(none: str) -> None:
    text = (
        "* PLAN Build\n  :PROPERTIES:\n  :TOOLS: echo\n  :END:\n"
        f"** PLAN Say it\n   :PROPERTIES:\n   :TOOLS: {none}\n   :END:\n   Say it.\n"
    )
    _, plan = read_plan(text.encode(), "p.org")
    assert [step.tools for step in plan.steps] == [()]


def test_the_title_of_a_note_that_a_model_is_told_counts() -> None:
    def digest(title: str) -> str:
        text = f"* PLAN Blueprint: {title}\n  Words.\n* PLAN Build: do it\n  Do it.\n"
        _, plan = read_plan(text.encode(), "p.org")
        return plan.digest(plan.steps[0])

    assert digest("careful") != digest("use write-file at once")
