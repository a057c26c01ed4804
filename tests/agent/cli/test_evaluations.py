"""``quoth test``: a session becomes a case, and cases say which model, rule or version got worse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from words import Said, files, lines, quoth, started

from quoth.agent.evaluation.case import case_text, read_case

TALK = ['(read-file :path "notes.txt")', '(write-file :path "out.txt" :content "alpha")', "It has 2 lines."]
WRONG = ['(read-file :path "notes.txt")', "It has no lines."]
FLAKY = """
(import pathlib [Path])
(setv mark (Path "{mark}"))
(defn reply [messages]
  (setv n (if (.exists mark) (len (.read-text mark)) 0))
  (.write-text mark (* "x" (+ n 1)))
  (if (% n 2) "No." "It has 2 lines."))
"""
LOOK = r"""
(defn reply [messages]
  (setv said (.join " " (lfor one messages (str (get one "content")))))
  (cond
    (in "Dry run" said) "It has 2 lines."
    (in "beta" said) "(write-file :path \"out.txt\" :content \"x\")"
    True "(read-file :path \"notes.txt\")"))
"""
EXPECT = '(in "2 lines" result)'


class Bench:
    """A workspace with a recorded session s1, and the case ``count`` of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shop"
        self.state = folder / "state"
        files(self.folder, {"notes.txt": "alpha\nbeta\n", "rules.hy": "(allow (write-file))\n"})
        self.model("talk.txt", *TALK)
        run = ("run", "Count.", "--model", "scripted:talk.txt", "--policy", "rules.hy", "--session", "s1")
        assert self.quoth(*run).code == 0

    def quoth(self, *words: str) -> Said:
        return quoth(*words, cwd=self.folder, env={"QUOTH_STATE": str(self.state)})

    def model(self, name: str, *replies: str) -> None:
        files(self.folder, {name: "\n---\n".join(replies)})

    def add(self, *words: str) -> Said:
        return self.quoth("test", "add", "s1", "--name", "count", *words)

    def run(self, *words: str, model: str = "talk.txt") -> Said:
        given = ["--model", f"scripted:{model}", "--policy", "rules.hy"]
        return self.quoth("test", "run", *given, *words)

    def told(self, *words: str, model: str = "talk.txt") -> dict[str, Any]:
        """The only row of a run."""
        (row,) = json.loads(self.run("--json", *words, model=model).out)["rows"]
        found: dict[str, Any] = row
        return found

    def ended(self, *words: str, model: str = "talk.txt") -> tuple[str, str]:
        """How a single run ended, and why."""
        (only,) = self.told(*words, model=model)["attempts"]
        return only["ended"], only["why"]

    def kept(self) -> dict[Path, bytes]:
        """The files of the state folder, without locks, which last until they are swept."""
        found = (path for path in self.state.rglob("*") if path.is_file() and path.suffix != ".lock")
        return {path: path.read_bytes() for path in found}

    @property
    def case(self) -> Path:
        return self.folder / "evaluations/count.org"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_session_becomes_a_case_whose_live_runs_leave_no_trace(bench: Bench) -> None:
    said = bench.add("--expect", EXPECT, "--expect-file", "out.txt")
    assert (said.code, said.out) == (0, "evaluations/count.org\n"), said
    case = read_case(bench.case)
    assert (case.messages, case.files, case.after) == (["Count."], {"out.txt": None}, {"out.txt": "alpha\n"})
    assert case_text(case) == bench.case.read_text()
    (bench.folder / "out.txt").write_text("mine")
    before = bench.kept()
    row = bench.told("--times", "2")
    assert (row["passed"], row["runs"], row["verdict"]) == (2, 2, "passed"), row
    assert (bench.folder / "out.txt").read_text() == "mine"
    assert bench.kept() == before
    bench.case.write_text(bench.case.read_text().replace("alpha\n#+end", "omega\n#+end"))
    assert bench.ended() == ("failed", "out.txt is not as expected: alpha")


def test_a_seeded_regression_is_found_against_the_baseline(bench: Bench) -> None:
    bench.add("--expect", EXPECT)
    assert bench.run("--times", "4", "--baseline").code == 0
    assert ":PASSED: 4 of 4\n" in bench.case.read_text()
    bench.model("talk.txt", *WRONG)
    said = bench.run("--times", "4")
    assert said.code == 1
    assert "the baseline is 4 of 4: worse than the baseline, p = 0.014." in said.out
    assert f"run 1, 2, 3, 4 failed: {EXPECT} is not true: its value is False" in said.out
    assert bench.run("--confidence", "99", "--times", "2").code == 1  # it fails always
    assert bench.told("--confidence", "99", "--times", "2")["verdict"] == "failed"


def test_a_flaky_case_is_told_as_flaky(bench: Bench) -> None:
    bench.add("--expect", EXPECT)
    files(bench.folder, {"flaky.hy": FLAKY.format(mark=bench.state / "mark")})
    said = bench.run("--times", "3", model="flaky.hy")
    assert said.code == 0
    assert "2 of 3 passed, 95 %: 21 to 94 %: it passes only sometimes. To know its rate" in said.out


def test_models_are_compared_with_the_first(bench: Bench) -> None:
    bench.add("--expect", EXPECT)
    bench.model("wrong.txt", *WRONG)
    said = bench.run("--model", "scripted:wrong.txt", "--times", "4")
    assert said.code == 1
    told = "scripted:wrong.txt: 0 of 4 passed; scripted:talk.txt: 4 of 4: worse than scripted:talk.txt, "
    assert said.out.splitlines()[-1] == f"{told}p = 0.014."


def test_a_call_that_would_be_asked_is_not_approved(bench: Bench) -> None:
    bench.add("--expect", EXPECT)
    (bench.folder / "rules.hy").write_text("")
    assert bench.ended() == (
        "asked",
        'A person would be asked: (write-file :path "out.txt" :content "alpha")',
    )
    assert bench.run("--yes").code == 2


def test_rules_of_a_trusted_workspace_hold_in_the_copy(bench: Bench) -> None:
    bench.add("--expect", EXPECT)
    files(
        bench.folder, {".quoth/policy.hy": '(deny (read-file :path "notes.txt"))\n', "evaluations/x.txt": ""}
    )
    assert bench.quoth("trust", "--yes").code == 0
    files(bench.folder, {"look.txt": '(read-file :path "notes.txt")\n---\n2 lines'})
    bench.case.write_text(
        bench.case.read_text().replace(
            EXPECT, '(and (= (lfor c calls (get c "status")) ["denied"]) (= (list-files) "answer"))'
        )
    )
    ended, why = bench.ended(model="look.txt")
    assert ended == "failed"
    assert "notes.txt" not in why
    assert "evaluations" not in why
    assert len(list((bench.state / "trust").iterdir())) == 1


def test_recorded_tools_answer_from_the_case(bench: Bench) -> None:
    bench.add("--expect", EXPECT, "--mode", "recorded")
    (bench.folder / "notes.txt").unlink()
    assert bench.ended() == ("passed", "")
    bench.model("more.txt", '(read-file :path "other.txt")', *TALK)
    said = bench.run(model="more.txt")
    assert 'not recorded: (read-file :path "other.txt")' in said.out
    assert bench.ended("--mode", "live", model="more.txt") == ("passed", "")


def test_a_dry_run_reads_and_does_not_write(bench: Bench) -> None:
    exists = '(and (in "write-file" called) (not-in "out.txt" (str (list-files))))'
    bench.add("--expect", exists, "--expect", EXPECT, "--mode", "dry")
    (bench.folder / "out.txt").unlink()
    files(bench.folder, {"look.hy": LOOK, "rules.hy": "(allow (write-file))"})
    assert bench.ended(model="look.hy") == ("passed", "")
    assert bench.ended() == ("passed", "")
    assert bench.ended("--mode", "live")[0] == "failed"


def test_equal_calls_get_their_results_in_order(bench: Bench) -> None:
    look = '(read-file :path "out.txt")'
    bench.model("talk.txt", look, TALK[1], look, "It has 2 lines.")
    run = ("run", "Look.", "--model", "scripted:talk.txt", "--policy", "rules.hy", "--session", "s1")
    (bench.folder / "out.txt").unlink()
    assert bench.quoth("rm", "s1", "--yes").code == 0
    assert bench.quoth(*run).code == 0
    bench.add("--expect", '(= (lfor c calls (get c "status")) ["error" "ok" "ok"])', "--mode", "recorded")
    assert bench.ended() == ("passed", "")


def test_a_case_has_no_secrets(bench: Bench) -> None:
    key = "sk-" + "a1B2c3D4" * 4
    files(bench.folder, {"notes.txt": f"the key is {key}\n"})
    run = ("run", f"Use {key}.", "--model", "scripted:talk.txt", "--policy", "rules.hy", "--session", "s2")
    assert bench.quoth(*run).code == 0
    said = bench.quoth(
        "test", "add", "s2", "--expect", EXPECT, "--expect-file", "notes.txt", "--name", "count"
    )
    assert "[secret]" in said.err
    assert key not in bench.case.read_text()


def test_a_case_written_by_hand_with_several_messages(bench: Bench) -> None:
    files(
        bench.folder / "evaluations",
        {
            "hand.org": lines(
                "* Messages",
                "Any prose is for people.",
                "#+begin_example",
                "Hi.",
                "#+end_example",
                "#+begin_example",
                "And?",
                "#+end_example",
                "* COMMENT Ideas",
                "* Expect",
                "  #+begin_src hy",
                '  (= result "two")',
                "  #+end_src",
            )
        },
    )
    bench.model("two.txt", "one", "two")
    assert bench.ended(model="two.txt") == ("passed", "")


CASE = """:PROPERTIES:
:MODE: live
:END:
* Messages
#+begin_example
Hi.
#+end_example
* Expect
#+begin_src hy
(= result "x")
#+end_src
"""
FAULTS = [
    (("MODE: live", "MODE: lively"), "count.org:2:1: There is no mode lively. Did you mean live?"),
    (("MODE: live", "MOD: dry"), "property MOD. Did you mean MODE?"),
    (("MODE: live", "SECONDS: 0"), "count.org:2:1: SECONDS is a number from 1, not 0."),
    (("* Expect", "* Expects"), "There is no section Expects. Did you mean Expect?"),
    (("* Messages", "* COMMENT Messages"), 'no block below "* Messages".'),
    (("(= result", "(= reslt"), "count.org:10:4: "),
    (('(= result "x")', '(write-file "a" "b")'), "count.org:10:2: EXPECT may only call tools that read"),
    (('(= result "x")', "(= 1 1) (= 1 2)"), "count.org:10:1: EXPECT must be a single form."),
    (("* Expect", "* Baseline a, live\n* Expect"), "A baseline has the property PASSED, such as 9 of 10."),
    (("* Expect", "* Record\n#+begin_src hy\n(a)\n#+end_src\n* Expect"), "A recorded call is two forms"),
    (("* Expect", "* Files\n** ../up.txt\n* Expect"), "cannot put its file ../up.txt"),
]


@pytest.mark.parametrize(("change", "told"), FAULTS)
def test_a_fault_in_a_case_is_told_with_its_place(change: tuple[str, str], told: str, tmp_path: Path) -> None:
    files(tmp_path, {"evaluations/count.org": CASE.replace(*change), "talk.txt": "x"})
    said = quoth("test", "run", "--model", "scripted:talk.txt", cwd=tmp_path)
    assert (said.code, told in said.err) == (2, True), said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run"], "There is no case in evaluations. To add one:"),
        (["run", "x", "--confidence", "20"], "--confidence is a percentage from 50 to 99.9, not 20."),
        (["add", "s1"], "Say what must be true:"),
        (["add", "--expect", "1"], "See: quoth test add --help"),
        (["add", "s1", "--expect", "1", "--name", "a/b"], "The name of a case has letters"),
    ],
)
def test_bad_words_are_refused(words: list[str], told: str, tmp_path: Path) -> None:
    said = quoth("test", *words, cwd=tmp_path)
    assert (said.code, told in said.err) == (2, True), said


def test_a_model_that_does_not_answer_proves_nothing(bench: Bench) -> None:
    bench.add("--expect", EXPECT)
    said = bench.quoth("test", "run", "--model", "ollama:x", "--base-url", "http://127.0.0.1:9", "--baseline")
    assert said.code == 1
    assert "run 1 unanswered: " in said.out
    assert "PASSED" not in bench.case.read_text()


def test_runs_count_in_the_budget_of_the_day(bench: Bench) -> None:
    bench.add("--expect", EXPECT)
    files(bench.state, {"config/config.hy": '(budget :per "day" :requests 8)\n'})
    words = ("test", "run", "--model", "scripted:talk.txt", "--policy", "rules.hy", "--times", "4")
    env = {"QUOTH_STATE": str(bench.state), "QUOTH_CONFIG": str(bench.state / "config")}
    said = quoth(*words, cwd=bench.folder, env=env)
    assert "  2 of 2  " in said.out  # three requests each
    assert "run 3 budget: " in said.out


def test_ctrl_c_shows_what_is_known(bench: Bench) -> None:
    bench.add("--expect", EXPECT)
    words = ["test", "run", "--model", "scripted:talk.txt", "--policy", "rules.hy", "--times", "500"]
    with started(*words, cwd=bench.folder, env={"QUOTH_STATE": str(bench.state)}) as it:
        it.says("run 2 of 500")
        it.interrupt()
        said = it.ended()
    assert said.code == 130
    assert re.search(r"^count +scripted:talk.txt +live +(\d+) of \1 ", said.out, re.MULTILINE)
