"""``quoth fly``, and ``approve`` and ``deny`` of a plan, as a person types them."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kills import MORTAL
from sentences import (
    A_PROGRAM_THAT_A_TOOL,
    IS_ONE_TOO_MANY,
    IT_WRITES_FILES,
    LEAVE_OUT,
    RETRY_IS_A_WHOLE_NUMBER,
    THEN_CONTINUE_WITH,
    THERE_IS_NO_PHASE,
    THERE_IS_NO_STEP,
    THERE_IS_NO_TOOL_NAMED,
    THERE_IS_NO_TOOL_OR,
)
from words import Running, Said, Terminal, files, lines, quoth, started, wait_until

from quoth.agent.terminal.output import FIRST_TASK

PLANS = Path(__file__).parents[3] / "plans"
TOOLS = (
    """
(require quoth [def-cognitive-tool])
(import time)
(def-cognitive-tool put "Write a number down."
  :parameters [x {:type int}]
  :effects    [:writes]
  :body       (do (with [out (open (/ ctx.workspace.root "puts") "a")] (.write out f"{x}\\n")) x))
(def-cognitive-tool slow "Take long, the first time."
  :effects    [:reads]
  :body       (do
                (setv mark (/ ctx.workspace.root "slow"))
                (when (not (.exists mark))
                  (.touch mark)
                  (time.sleep 60))
                "at last"))
(def-cognitive-tool gate "Wait until it is opened."
  :effects    [:reads]
  :body       (do
                (.touch (/ ctx.workspace.root "at-the-gate"))
                (while (not (.exists (/ ctx.workspace.root "open"))) (time.sleep 0.01))
                "open"))
"""
    + MORTAL
)


TODO = "#+TODO: PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED"


class Desk:
    """A folder with a plan and the tools of the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files(folder, {"tools.hy": TOOLS})

    def plan(self, *parts: str, name: str = "plan.org") -> None:
        files(self.folder, {name: lines(*parts)})

    def fly(self, *words: str, name: str = "plan.org") -> Said:
        return quoth("fly", name, "--tools", "tools.hy", "--user", "ann", *words, cwd=self.folder)

    def does(self, *words: str, **options: dict[str, str]) -> Said:
        return quoth("--tools", "tools.hy", *words, "--user", "ann", cwd=self.folder, **options)  # type: ignore[arg-type]

    @property
    def text(self) -> str:
        return (self.folder / "plan.org").read_text()

    @property
    def words(self) -> list[str]:
        return re.findall(r"^\*+ ([A-Z]+) ", self.text, re.MULTILINE)

    @property
    def puts(self) -> list[str]:
        path = self.folder / "puts"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def step(title: str, form: str, *properties: str) -> str:
    drawer = [":PROPERTIES:", *properties, ":END:"] if properties else []
    return "\n".join([f"* PLAN {title}", *drawer, "#+begin_src hy", form, "#+end_src"])


# Checks


def test_check_tells_faults_so_that_an_editor_finds_them(desk: Desk) -> None:
    desk.plan(step("one", "(pot 1)", ":RETRY: many"))
    said = desk.fly("--check")
    assert (said.code, said.err) == (2, "")
    assert said.out == lines(
        f"plan.org:3:9: {RETRY_IS_A_WHOLE_NUMBER} 10, not many.",
        "  :RETRY: many",
        "          ^",
        f"plan.org:6:2: {THERE_IS_NO_TOOL_OR} pot. Did you mean put?",
        "  (pot 1)",
        "   ^",
    )
    assert desk.words == ["PLAN"]


def test_check_of_a_plan_without_faults_is_one_line(desk: Desk) -> None:
    desk.plan(TODO, step("one", "1"), step("two", "(put 2)"))
    assert desk.fly("--check") == Said(0, "plan.org: 2 steps, no faults.\n", "")
    assert json.loads(desk.fly("--check", "--json").out) == []


def test_check_tells_how_emacs_is_to_know_the_words_of_a_plan(desk: Desk) -> None:
    desk.plan(step("one", "1"))
    assert desk.fly("--check").err == (
        f"quoth: Org reads PLAN here as part of a title. For Emacs, begin plan.org with {TODO}\n"
    )
    assert desk.fly().code == 0


def test_check_tells_what_a_block_of_lisp_is_read_as(desk: Desk) -> None:
    common = step("one", "(defun double (x) (* 2 x))\n(double 4)").replace("_src hy", "_src lisp")
    desk.plan(TODO, common, step("two", "(+ 1 2)").replace("_src hy", "_src lisp"))
    assert desk.fly("--check").err == (
        "quoth: plan.org:3: this block of lisp is read as Hy: (defn double [x] (* 2 x)) (double 4)\n"
    )


def test_a_copy_is_flown_and_the_plan_stays_as_it_is(desk: Desk) -> None:
    desk.plan(TODO, step("one", "(+ 1 2)"))
    before = desk.text
    said = desk.fly("--copy")
    assert (said.code, said.out.splitlines()[0], desk.text) == (0, "DONE    one: 3", before)
    found = re.search(r"plan.org is left unchanged; quoth flies this copy: (/\S+/plan.org)\n", said.err)
    assert found
    assert "* DONE one" in Path(found[1]).read_text()
    assert said.err.splitlines()[-4:] == [
        f"quoth: The copy with its results: {found[1]}",
        "quoth: To get the examples: quoth new example",
        f"quoth: Then, to give a task in words: quoth run '{FIRST_TASK}' --workspace shop",
        "quoth: To start the REPL: quoth --workspace shop",
    ]
    assert desk.fly("--copy", "--check").err == (
        "quoth: --check runs nothing, so --copy has no effect with it; leave one of them out.\n"
    )


def test_check_tells_how_many_steps_a_name_is_for(desk: Desk) -> None:
    desk.plan(TODO, step("one", "1"), step("two", "2"), step("three", "3"))
    for words, number in ((["--only", "two"], 1), (["--from", "two"], 2), (["--until", "three"], 3)):
        said = f"plan.org: 3 steps, no faults; {number} of them would run.\n"
        assert desk.fly("--check", *words) == Said(0, said, "")


def test_check_as_data(desk: Desk) -> None:
    desk.plan(step("one", "(pot 1)"))
    said = desk.fly("--check", "--json")
    (fault,) = json.loads(said.out)
    assert said.code == 2
    assert (fault["file"], fault["line"], fault["column"]) == ("plan.org", 3, 2)


def test_a_plan_with_faults_does_not_fly(desk: Desk) -> None:
    desk.plan(step("one", "(put 1)"), step("two", "(pot 1)"))
    said = desk.fly("--yes")
    assert (said.code, said.out) == (2, "")
    assert f"plan.org:7:2: {THERE_IS_NO_TOOL_OR} pot." in said.err
    assert desk.puts == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fly", "none.org"], "There is no plan none.org."),
        (["fly", "."], ". is a folder; a plan is a file."),
        (["approve", "none.org"], "There is no plan none.org."),
        (
            ["approve", "plan.org", "--for", "2h"],
            "--for applies to requests, not to plans. Approve steps of a plan with --step.",
        ),
        (["approve", "plan.org", "--step", "oen"], f"{THERE_IS_NO_STEP} oen in plan.org. Did you mean one?"),
        (
            ["deny", "abcde", "--step", "one"],
            "--step names a step of a plan, but abcde is not a plan. Give a file: PLAN.org",
        ),
        (["fly", "plan.org", "--only", "x"], f"{THERE_IS_NO_STEP} x in plan.org. They are: one."),
        (
            ["fly", "plan.org", "--check", "--only", "oen"],
            f"{THERE_IS_NO_STEP} oen in plan.org. Did you mean one?",
        ),
        (
            ["fly", "plan.org", "--dry-run", "--until", "bild"],
            f"{THERE_IS_NO_PHASE} bild. Did you mean Build?",
        ),
        (
            ["fly", "plan.org", "--check", "--only", "one", "--from", "one"],
            f"--only selects one step or group; {LEAVE_OUT}from and --until.",
        ),
        (
            ["fly", "plan.org", "--from", ""],
            "Argument --from: expected the name of a step. See: quoth fly --help",
        ),
        (
            ["fly", "plan.org", "--check", "--dry-run"],
            "Use either --check or --dry-run, not both.",
        ),
        (
            ["fly", "plan.org", "--check", "--again"],
            "--check runs nothing, so --again has no effect with it; leave one of them out.",
        ),
        (
            ["fly", "plan.org", "--dry-run", "--parallel"],
            "--dry-run runs nothing, so --parallel has no effect with it; leave one of them out.",
        ),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_a_sentence(desk: Desk, words: list[str], message: str) -> None:
    desk.plan(step("one", "1"))
    assert desk.does(*words) == Said(2, "", f"quoth: {message}\n")


# Flights


def test_a_flight_tells_each_step_in_a_line_and_ends_with_all_of_them(desk: Desk) -> None:
    desk.plan(step("one", "(+ 1 2)"), step("two", "(/ 1 0)"), step("three", "3"))
    said = desk.fly()
    assert said.code == 1
    begins, first, begun, second = said.err.splitlines()
    assert begins == "plan.org:1: RUNNING one"
    assert re.fullmatch(r"plan.org:\d+: RUNNING two", begun)
    assert re.fullmatch(r"plan.org:1: DONE one, \d+\.\d s", first)
    assert re.fullmatch(r"plan.org:11: FAILED two, \d+\.\d s: error: .*division by zero.*", second)
    assert desk.text.splitlines()[10] == "* FAILED two"
    assert said.out.startswith("DONE    one: 3\nFAILED  two: ")
    assert re.search(
        r"^PLAN    three\nplan.org: failed: 1 plan, 1 done, 1 failed; session s\w+, .* s\.$", said.out, re.M
    )
    assert desk.words == ["DONE", "FAILED", "PLAN"]


def test_a_flight_as_data_is_one_object(desk: Desk) -> None:
    desk.plan(step("one", "(+ 1 2)"))
    said = desk.fly("--json")
    told = json.loads(said.out)
    assert (said.code, told["status"], told["plan"]) == (0, "done", "plan.org")
    (one,) = told["steps"]
    assert (one["id"], one["status"], one["text"], one["attempts"]) == ("one", "done", "3", 1)


def test_a_flight_that_waits_says_how_to_go_on(desk: Desk) -> None:
    desk.plan(step("one", "(put 1)"), step("two", "2"))
    said = desk.fly()
    assert said.code == 3
    found = re.search(r"To decide: quoth approve (\w+), or: quoth deny \1 --why TEXT", said.err)
    assert found
    assert said.err.endswith(f"{THEN_CONTINUE_WITH}: quoth fly plan.org --user ann\n")
    told = desk.does("approve", found[1])
    assert f"To continue: quoth fly {desk.folder / 'plan.org'} --user ann\n" in told.err
    assert desk.fly().code == 0
    assert (desk.puts, desk.words) == (["1"], ["DONE", "DONE"])


def test_parts_of_a_plan_and_all_of_it_anew(desk: Desk) -> None:
    desk.plan(step("one", "(put 1)"), step("two", "(put 2)"), step("three", "(put 3)"))
    assert desk.fly("--yes", "--until", "two").code == 0
    assert desk.fly("--yes", "--from", "three").code == 0
    assert desk.fly("--yes", "--only", "one").code == 0
    assert desk.fly("--yes", "--again", "--parallel").code == 0
    assert desk.puts == ["1", "2", "3", "1", "1", "2", "3"]


def test_a_plan_in_markdown_tells_its_results_on_stdout_alone(desk: Desk) -> None:
    text = "# T\n## PLAN one\n```hy\n(+ 1 2)\n```\n"
    files(desk.folder, {"plan.md": text})
    said = desk.fly(name="plan.md")
    assert (said.code, said.out.splitlines()[0]) == (0, "DONE    one: 3")
    assert (desk.folder / "plan.md").read_text() == text


def test_a_dry_run_shows_each_call_with_its_verdict_and_does_nothing(desk: Desk) -> None:
    desk.plan(
        step("one", "(put 1)"),
        "* PLAN two\n:PROPERTIES:\n:TOOLS: read-file\n:EXPECT: (= 1 1)\n:END:\nDo it.",
        "* PLAN three\n#+begin_src hy :var x=one\n(put x)\n#+end_src",
    )
    said = desk.fly("--dry-run")
    assert said.out == lines(
        "plan.org:1: one",
        f"  (put :x 1)  ; ask: {IT_WRITES_FILES}; :writes",
        "plan.org:5: two",
        "  ; a model may use: read-file",
        "  ; expects: (= 1 1)",
        "plan.org:11: three",
        "  ; it uses the result of one, and may call: put",
    )
    assert (said.code, desk.puts, desk.words) == (0, [], ["PLAN", "PLAN", "PLAN"])
    told = json.loads(desk.fly("--dry-run", "--json").out)
    assert [each["id"] for each in told] == ["one", "two", "three"]


def test_a_dry_run_shows_what_expectations_call_those_of_groups_too(desk: Desk) -> None:
    look = '(= (read-file :path "a") "b")'
    desk.plan(
        f"* PLAN Build\n:PROPERTIES:\n:EXPECT: {look}\n:END:",
        f"** PLAN one\n:PROPERTIES:\n:EXPECT: {look}\n:END:\nDo it.",
        "** PLAN two\n:PROPERTIES:\n:EXPECT: (= (read-file :path result) 1)\n:END:\nDo it.",
    )
    files(desk.folder, {"deny.hy": '(deny (read-file) :why "not here")'})
    said = desk.fly("--dry-run", "--policy", "deny.hy", "--only", "two")
    assert said.out.splitlines()[2:6] == [
        "  ; expects: (= (read-file :path result) 1)",
        "plan.org:1: build",
        f"  ; expects: {look}",
        '  (read-file :path "a")  ; deny: deny.hy:1 says (deny (read-file) :why "not here"); :reads',
    ]
    assert said.code == 0


def test_a_dry_run_shows_the_steps_that_would_be_flown(desk: Desk) -> None:
    desk.plan(step("one", "1"), step("two", "2"), step("three", "3"))

    def shown(*words: str) -> list[str]:
        return [each["id"] for each in json.loads(desk.fly("--dry-run", "--json", *words).out)]

    assert shown("--only", "two") == ["two"]
    assert shown("--from", "two") == ["two", "three"]
    assert shown("--until", "two") == ["one", "two"]
    assert shown("--from", "two", "--until", "two") == ["two"]


def test_a_flight_is_a_session_that_can_be_listed_and_read(desk: Desk) -> None:
    desk.plan(step("one", "(+ 1 2)"), step("two", "(/ 1 0)"))
    desk.fly("--session", "mine")
    listed = desk.does("sessions").out
    assert "mine" in listed
    assert "flight of plan.org" in listed
    told = desk.does("log", "mine").out
    for line in (
        r"▶ f1, .*: flight of .*plan.org",
        "▷ one: begun",
        "■ one: done",
        "■ two: failed: ",
        "■ f1: failed",
    ):
        assert re.search(line, told), line
    assert "The steps of a flight are not replayed" in str(desk.does("replay", "mine"))
    how = f"quoth fly {desk.folder / 'plan.org'} --user ann"
    assert desk.does("resume", "mine").err.endswith(f"is the flight of a plan. To continue it: {how}\n")


# Killed and interrupted


def test_a_flight_that_is_killed_in_a_step_goes_on_at_the_call(desk: Desk) -> None:
    desk.plan(step("one", "[(put 1) (mortal) (put 2)]"), step("two", "2"))
    assert desk.fly("--yes").code == -9
    assert desk.words == ["RUNNING", "PLAN"]
    assert "  broken off   1 run" in desk.does("sessions").out
    said = desk.fly("--yes")
    assert (said.code, desk.puts, desk.words) == (0, ["1", "2"], ["DONE", "DONE"])
    assert said.out.startswith('DONE    one: [1 "alive" 2]\n')
    assert "  done         1 run" in desk.does("sessions").out


def test_ctrl_c_breaks_a_flight_off_and_it_goes_on(desk: Desk) -> None:
    desk.plan(step("one", "1"), step("two", "[(put 1) (slow)]"))
    with started("fly", "plan.org", "--tools", "tools.hy", "--user", "ann", "--yes", cwd=desk.folder) as it:
        it.says("DONE one")
        while not (desk.folder / "slow").exists():
            pass
        it.interrupt()
        ended = it.ended()
    assert ended.code == 130
    assert ended.err.endswith("quoth: To continue: quoth fly plan.org --tools tools.hy\n")
    assert desk.words == ["DONE", "RUNNING"]
    assert "- interrupted [" in desk.text
    assert desk.fly("--yes").code == 0
    assert desk.puts == ["1"]


# Approval


def test_approve_shows_what_is_approved_and_the_plan_then_flies(desk: Desk) -> None:
    desk.plan(step("one", "(put 1)"), "* PLAN two\nSay it.")
    said = desk.does("approve", "plan.org", "--step", "one")
    head, *rest = said.out.splitlines()
    assert re.fullmatch(r"APPROVED one  one  \(digest [0-9a-f]{12}\)", head)
    assert rest == ["    runs:", "        (put 1)", "    covers, in each attempt:", "        (put :x 1)"]
    assert "To fly it: quoth fly plan.org" in said.err
    assert desk.words == ["APPROVED", "PLAN"]
    files(desk.folder, {"script.txt": "It."})
    assert desk.fly("--model", "scripted:script.txt").code == 0
    assert desk.puts == ["1"]


def test_deny_keeps_a_plan_from_being_flown(desk: Desk) -> None:
    desk.plan(step("one", "(put 1)"))
    said = desk.does("deny", "plan.org", "--why", "not now", "--json")
    (told,) = json.loads(said.out)
    assert (told["id"], told["decision"], told["why"]) == ("one", "denied", "not now")
    assert "- DENIED [" in desk.text
    said = desk.fly("--yes")
    assert said.code == 1
    assert "one was denied: the person said: not now." in said.err
    assert (desk.puts, desk.words) == ([], ["DENIED"])


def test_a_program_that_a_tool_has_started_approves_nothing(desk: Desk) -> None:
    desk.plan(step("one", "(put 1)"))
    for word in ("approve", "deny"):
        said = desk.does(word, "plan.org", env={"QUOTH_INSIDE": "1"})
        assert said == Said(2, "", f"quoth: {A_PROGRAM_THAT_A_TOOL}.\n")
    assert desk.words == ["PLAN"]


def test_approve_says_of_each_step_what_it_covers_and_what_will_still_ask(desk: Desk) -> None:
    long = "x" * 200
    files(desk.folder, {"other.txt": "It."})
    desk.plan(
        "#+NAME: known\n| 7 |",
        step("literal", '(do (put 1) (put 2) (mortal) (write-file :path "a" :content "b"))'),
        "* PLAN data\n#+begin_src hy :var t=known n=8\n[(put (get t 0 0)) (put n)]\n#+end_src",
        step("value", '(put (int (read-file "n")))'),
        "* PLAN result\n#+NAME: r\n#+begin_src hy :var x=value\n[(put x) (mortal)]\n#+end_src",
        step("loop", "(lfor n (range 9) (put n))"),
        step("long", f'(write-file :path "a" :content "{long}")'),
        step("nothing", "(+ 1 2)"),
        "* PLAN prose\nDo it.",
        "* PLAN other\n:PROPERTIES:\n:TOOLS: nil\n:MODEL: scripted:other.txt\n:END:\nSay it.",
    )
    said = desk.does("approve", "plan.org")
    told: dict[str, list[str]] = {}
    label = ""
    for line in said.out.splitlines():
        if line.startswith("APPROVED "):
            told[name := line.split()[1]] = []
        elif re.match("    [a-z]", line):
            label = line.strip()
        elif label.startswith(("covers", "will")):
            told[name].append(line.removeprefix("        ").removeprefix("      … "))
    assert (said.code, desk.puts) == (0, []), said.err
    assert told == {
        "literal": ['(write-file :path "a" :content "b")', "(put :x 1)", "(put :x 2)"],
        "data": ["(put :x 7)", "(put :x 8)"],
        "value": ["no call", "put (:x is known only in flight)"],
        "result": ["no call", "put (it uses the result of value)"],
        "loop": [f"(put :x {n})" for n in range(9)],
        "long": told["long"],
        "nothing": ["no call, because none needs a question"],
        "prose": ["no call", "calls of its model"],
        "other": ["the model scripted:other.txt"],
    }
    assert "".join(told["long"]) == f'(write-file :path "a" :content "{long}")'
    one = json.loads(desk.does("approve", "plan.org", "--step", "value", "--json").out)[0]
    assert (one["covers"], one["asks"]) == ([], ["put (:x is known only in flight)"])


def test_what_approve_says_it_covers_is_not_asked_and_the_rest_is(desk: Desk) -> None:
    files(desk.folder, {"n": "7"})
    desk.plan(
        "#+NAME: known\n| 5 |",
        "* PLAN data\n#+begin_src hy :var t=known\n(put (get t 0 0))\n#+end_src",
        step("both", '(do (put 6) (put (int (read-file "n"))))'),
    )
    desk.does("approve", "plan.org")
    said = desk.fly()
    assert (said.code, desk.puts) == (3, ["5", "6"])
    assert "put" in said.out


# While it flies


@contextlib.contextmanager
def at_the_gate(desk: Desk) -> Iterator[Running]:
    """A flight that has come to the step gate, in a process of its own."""
    with started("fly", "plan.org", "--tools", "tools.hy", "--user", "ann", "--yes", cwd=desk.folder) as it:
        wait_until((desk.folder / "at-the-gate").exists)
        yield it


def ended(desk: Desk, flight: Running) -> Said:
    (desk.folder / "open").touch()
    return flight.ended()


WRITE = '(write-file :path "{}" :content "mine")'


def test_nobody_changes_or_flies_a_plan_that_another_process_flies(desk: Desk) -> None:
    desk.plan(step("one", "(gate)"), step("two", "(put 2)"))
    above = desk.folder.parent
    inner = f"{desk.folder.name}/plan.org"
    with at_the_gate(desk) as flight:
        said = desk.does("call", WRITE.format("plan.org"), "--yes")
        assert (said.code, said.err) == (
            1,
            "quoth: error: plan.org is a running flight plan; tools cannot change it until it ends.\n",
        )
        said = quoth("call", WRITE.format(inner), "--yes", cwd=above)
        assert "is a running flight plan" in said.err
        assert desk.fly() == Said(2, "", "quoth: Another process is flying plan.org.\n")
        assert quoth("fly", inner, cwd=above) == Said(2, "", f"quoth: Another process is flying {inner}.\n")
        assert ended(desk, flight).code == 0
    assert (desk.words, desk.puts) == (["DONE", "DONE"], ["2"])
    assert desk.does("call", WRITE.format("plan.org"), "--yes").code == 0


def test_a_plan_whose_flight_was_killed_is_locked_by_nobody(desk: Desk) -> None:
    desk.plan(step("one", "[(put 1) (gate)]"), step("two", "(put 2)"))
    with at_the_gate(desk) as flight:
        assert desk.fly().code == 2
        flight.process.kill()
        flight.process.wait()
        said = desk.does("call", '(edit-file :path "plan.org" :old "(put 2)" :new "(put 3)")', "--yes")
        assert said.code == 0, said.err
    (desk.folder / "open").touch()
    assert desk.fly("--yes").code == 0
    assert desk.puts == ["1", "3"]


def test_what_is_decided_while_a_plan_flies_counts_for_what_has_not_begun(desk: Desk) -> None:
    desk.plan(step("one", "(gate)"), step("two", "(put 2)"), step("three", "(put 3)"))
    note = "quoth: A flight of plan.org is running; this applies to steps that have not started.\n"
    with at_the_gate(desk) as flight:
        said = desk.does("approve", "plan.org")
        assert (said.code, said.err.splitlines(keepends=True)[0]) == (0, note)
        assert desk.words == ["RUNNING", "APPROVED", "APPROVED"]
        said = desk.does("deny", "plan.org", "--step", "three", "--why", "enough")
        assert (said.code, said.err) == (0, note)
        assert desk.words == ["RUNNING", "APPROVED", "DENIED"]
        said = ended(desk, flight)
    assert (said.code, desk.words, desk.puts) == (1, ["DONE", "DONE", "DENIED"], ["2"])
    assert "three was denied: the person said: enough." in said.err


def test_an_approval_while_a_plan_flies_is_all_that_its_next_step_needs(desk: Desk) -> None:
    desk.plan(step("one", "(gate)"), step("two", "(put 2)"))
    with started("fly", "plan.org", "--tools", "tools.hy", "--user", "ann", cwd=desk.folder) as flight:
        wait_until((desk.folder / "at-the-gate").exists)
        desk.does("approve", "plan.org", "--step", "two")
        assert ended(desk, flight).code == 0
    assert (desk.words, desk.puts) == (["DONE", "DONE"], ["2"])


def test_decisions_of_many_processes_at_once_are_all_in_the_file(desk: Desk) -> None:
    names = ["a", "b", "c", "d"]
    desk.plan(*(step(name, f"(put {n})") for n, name in enumerate(names)))
    with ThreadPoolExecutor() as pool:
        said = list(pool.map(lambda name: desk.does("approve", "plan.org", "--step", name), names))
    assert [each.code for each in said] == [0] * 4
    assert desk.words == ["APPROVED"] * 4


def test_a_write_protected_plan_is_decided_about_and_flown_and_not_written_to(desk: Desk) -> None:
    desk.plan(step("one", "(put 1)"))
    before = desk.text
    (desk.folder / "plan.org").chmod(0o444)
    note = "quoth: plan.org is write-protected, so no results are written to it."
    said = desk.does("approve", "plan.org")
    assert (said.code, said.err.splitlines()[0]) == (0, note)
    said = desk.fly()
    assert (said.code, said.err.splitlines()[-1], desk.puts) == (0, note, ["1"])
    assert desk.text == before


# At a terminal


def test_a_terminal_shows_a_tree_and_asks_beside_it(desk: Desk) -> None:
    desk.plan("#+TITLE: My plan", step("one", "(put 1)"), step("two", "(mortal)"))
    (desk.folder / "died").touch()
    words = ["fly", "plan.org", "--tools", "tools.hy", "--user", "ann"]
    with Terminal(*words, cwd=desk.folder) as terminal:
        terminal.see("My plan")
        terminal.see("(put :x 1)")
        terminal.see("Allow it?")
        terminal.enter("y")
        terminal.see("DONE    two")
        assert terminal.ended() == 0
    assert (desk.puts, desk.words) == (["1"], ["DONE", "DONE"])


# The plans that ship


def shipped(folder: Path, name: str) -> None:
    shutil.copy(PLANS / name, folder / name)


def repository(folder: Path) -> None:
    """A git repository with two commits and a change."""
    import subprocess

    def git(*words: str) -> None:
        who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    for text in ("one", "two"):
        files(folder, {"a.txt": f"{text}\n"})
        git("add", "a.txt")
        git("commit", "-q", "-m", f"Say {text}")
    files(folder, {"a.txt": "three\n"})


@pytest.mark.parametrize("name", sorted(path.name for path in PLANS.glob("*.org")))
def test_every_plan_that_ships_has_no_fault(tmp_path: Path, name: str) -> None:
    said = quoth("fly", str(PLANS / name), "--check", "--tools", str(PLANS / "git-tools.hy"), cwd=tmp_path)
    assert (said.code, said.err) == (0, "")


def test_first_flight_comes_to_its_end_whatever_the_model_says(tmp_path: Path) -> None:
    shipped(tmp_path, "first-flight.org")
    for script, word in (("(eval (+ 55 45))\n---\nIt is 100.", "DONE"), ("(nothing)", "FAILED")):
        files(tmp_path, {"script.txt": script})
        said = quoth("fly", "first-flight.org", "--model", "scripted:script.txt", cwd=tmp_path)
        assert said.code == 0, said.err
        text = (tmp_path / "first-flight.org").read_text()
        assert f"** {word} A task for the model" in text
        assert "** DONE The sum is right" in text
        assert ("#+RESULTS: model\n   : It is 100." in text) is (word == "DONE")


def test_the_self_test_flies(tmp_path: Path) -> None:
    shipped(tmp_path, "self-test.org")
    files(tmp_path, {"script.txt": "(eval (+ 5 5))\n---\n(eval (* 2 10))\n---\nThe answer is 20."})
    said = quoth("fly", "self-test.org", "--model", "scripted:script.txt", cwd=tmp_path)
    assert said.code == 0, said.err
    assert "DONE    tester-loop: The answer is 20." in said.out


def test_review_looks_at_what_is_not_committed(tmp_path: Path) -> None:
    repository(tmp_path)
    shipped(tmp_path, "review.org")
    files(tmp_path, {"script.txt": f'(read-file :path "a.txt")\n---\na.txt:1: three {IS_ONE_TOO_MANY}.'})
    given = ["--tools", str(PLANS / "git-tools.hy"), "--model", "scripted:script.txt"]
    assert quoth("fly", "review.org", *given, cwd=tmp_path).code == 3
    approved = quoth("approve", "review.org", cwd=tmp_path)  # with the tools it was begun with
    assert approved.err.endswith(f"quoth: To fly it: quoth fly review.org --tools {given[1]}\n")
    said = quoth("fly", "review.org", cwd=tmp_path)  # goes on with the tools and the model it was begun with
    assert said.code == 0, said.err
    assert "+three" in (tmp_path / "review.org").read_text()
    assert f"a.txt:1: three {IS_ONE_TOO_MANY}." in said.out


def test_a_flight_that_is_over_hands_nothing_on_to_the_next(tmp_path: Path) -> None:
    repository(tmp_path)
    shipped(tmp_path, "release-notes.org")
    files(tmp_path, {"script.txt": "- It says two now."})
    given = ["--tools", str(PLANS / "git-tools.hy"), "--model", "scripted:script.txt", "--yes"]
    assert quoth("fly", "release-notes.org", *given, cwd=tmp_path).code == 0
    for anew in ([], ["--again"]):
        said = quoth("fly", "release-notes.org", *anew, cwd=tmp_path)
        assert (said.code, f"{THERE_IS_NO_TOOL_NAMED} git-log." in said.err) == (2, True)


def test_release_notes_are_written_when_somebody_has_seen_them(tmp_path: Path) -> None:
    repository(tmp_path)
    shipped(tmp_path, "release-notes.org")
    files(tmp_path, {"script.txt": "- It says two now."})
    given = ["--tools", str(PLANS / "git-tools.hy"), "--model", "scripted:script.txt"]
    quoth("approve", "release-notes.org", *given[:2], cwd=tmp_path)
    said = quoth("fly", "release-notes.org", *given, cwd=tmp_path)
    assert said.code == 3
    assert "DONE    notes: - It says two now." in said.out
    assert quoth("fly", "release-notes.org", "--yes", *given, cwd=tmp_path).code == 0
    assert (tmp_path / "RELEASE-NOTES.txt").read_text() == "- It says two now.\n"


def test_git_takes_no_option_from_a_call(tmp_path: Path) -> None:
    repository(tmp_path)
    tools = ["--tools", str(PLANS / "git-tools.hy"), "--yes"]
    said = quoth("call", '(git-log :of "--output=x")', *tools, cwd=tmp_path)
    assert said.err == "quoth: git-log was denied: --output=x is an option of git, not a revision.\n"
    assert quoth("call", "(git-log :count 1)", *tools, cwd=tmp_path).out.endswith("Say two\n")
    assert "+three" in quoth("call", "(git-diff)", *tools, cwd=tmp_path).out
    assert "+three" in quoth("call", '(git-diff :but "plans")', *tools, cwd=tmp_path).out
    assert quoth("call", '(git-diff :but "a.txt")', *tools, cwd=tmp_path).out.strip() == ""
