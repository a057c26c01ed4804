"""A dry run as a person sees it, and its plan approved as a whole: for that program, those calls, once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    IS_NEVER_CLOSED,
    IT_ONLY_READS,
    IT_RUNS_A_PROGRAM,
    IT_WRITES_FILES,
    ITS_GUARD_WAS_NOT_ASKED,
    NO_REQUESTS_ARE_WAITING,
)
from words import Said, agent, files, lines, quoth, tool

from quoth import Agent
from quoth.tools.consent.requests import Decision

TWO = '(for [f ["a" "b"]] (write-file :path f"{f}.txt" :content "x"))'
DIGEST = re.compile(r"; plan ([0-9a-f]{64})\n")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path, {"kept.txt": "kept"})


# What is printed


def test_a_plan_is_printed_with_its_digest_and_how_to_approve_it(here: Path) -> None:
    said = quoth("eval", TWO, "--dry-run", cwd=here)
    assert DIGEST.search(said.out)
    assert DIGEST.sub("; plan DIGEST\n", said.out) == lines(
        f'(write-file :path "a.txt" :content "x")  ; ask: {IT_WRITES_FILES}; :writes',
        f'(write-file :path "b.txt" :content "x")  ; ask: {IT_WRITES_FILES}; :writes',
        "; plan DIGEST",
    )
    assert said.code == 0
    assert said.err == "quoth: To approve it as a whole, give the dry run a session: --session NAME\n"
    assert not (here / "a.txt").exists()
    assert quoth("pending", cwd=here).err == f"quoth: {NO_REQUESTS_ARE_WAITING}.\n"


def test_what_needs_no_approval_says_so(here: Path) -> None:
    said = quoth("eval", '(echo (read-file "kept.txt"))', "--dry-run", "--session", "s1", cwd=here)
    assert DIGEST.sub("", said.out) == lines(
        f'(read-file :path "kept.txt")  ; allow: {IT_ONLY_READS}; :reads; run now',
        '(echo :text "kept")  ; allow: it touches nothing; no effects; run now',
    )
    assert said.err == "quoth: Nothing in it would be asked.\n"
    pure = quoth("eval", '(echo (read-file "kept.txt"))', "--dry-run=pure", "--session", "s1", cwd=here)
    assert DIGEST.sub("", pure.out) == lines(
        f'(read-file :path "kept.txt")  ; allow: {IT_ONLY_READS}; {ITS_GUARD_WAS_NOT_ASKED}; :reads',
        '(echo :text #<(read-file :path "kept.txt")>)  ; allow: it touches nothing; no effects',
    )


def test_what_the_permissions_of_memory_decide_is_left_open(here: Path) -> None:
    quoth("memory", "edit", "h", "--new", "--permission", "human", "--text", "x", cwd=here)
    append = '(block :operation "append" :label "h" :content "DRY")'
    for program in (append, f"(for [x (range 2)] {append})"):
        assert quoth("eval", program, "--dry-run", cwd=here).err == (
            "quoth: No rule asks about a call in it. Permissions of memory blocks may still ask or deny; to "
            "see them: quoth memory list\n"
        )


def test_a_plan_as_json(here: Path) -> None:
    said = quoth("eval", TWO, "--dry-run", "--json", "--session", "s1", cwd=here)
    plan = json.loads(said.out)
    assert (said.code, said.out.count("\n")) == (0, 1)
    assert sorted(plan) == ["complete", "digest", "program", "request", "shapes", "steps", "text"]
    assert [step["call"] for step in plan["steps"]] == [
        '(write-file :path "a.txt" :content "x")',
        '(write-file :path "b.txt" :content "x")',
    ]
    assert re.fullmatch(r"\w{5}", plan["request"])
    again = json.loads(quoth("eval", TWO, "--dry-run", "--json", "--session", "s1", cwd=here).out)
    assert again == plan  # the same open request


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["(+ 1", "--dry-run"], f"quoth: invalid: line 1, column 1: this ( {IS_NEVER_CLOSED}"),
        (["1", "--dry-run=some"], "quoth: Argument --dry-run: ignored explicit argument 'some'. See: "),
    ],
)
def test_what_cannot_be_looked_at(here: Path, words: list[str], sentence: str) -> None:
    said = quoth("eval", *words, cwd=here)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(sentence)


def test_a_request_shows_its_plan(here: Path) -> None:
    request = json.loads(quoth("eval", TWO, "--dry-run", "--json", "--session", "s1", cwd=here).out)[
        "request"
    ]
    page = quoth("pending", request, cwd=here).out
    assert "because      it is the plan of a program, with 2 calls that need approval\n" in page
    assert (
        f'the plan     (write-file :path "a.txt" :content "x")  ; ask: {IT_WRITES_FILES}; :writes\n'
        f'             (write-file :path "b.txt" :content "x")  ; ask: {IT_WRITES_FILES}; :writes\n'
    ) in page
    assert json.loads(quoth("pending", request, "--json", cwd=here).out)["plan"].startswith("(write-file")


def test_a_plan_is_approved_and_its_program_runs_without_asking(here: Path) -> None:
    request = json.loads(quoth("eval", TWO, "--dry-run", "--json", "--session", "s1", cwd=here).out)[
        "request"
    ]
    approved = quoth("approve", request, "--user", "bob", cwd=here)
    assert (approved.code, approved.out.startswith("Approved once: (eval :form ")) == (0, True)
    assert quoth("eval", TWO, "--session", "s1", cwd=here) == Said(
        0, '["Created a.txt, 1 byte." "Created b.txt, 1 byte."]\n', ""
    )
    assert (here / "a.txt").read_text() == (here / "b.txt").read_text() == "x"
    rows = [json.loads(row) for row in quoth("audit", "--json", cwd=here).out.splitlines()]
    consents = [row["consent"] for row in rows if row["tool"] == "write-file"]
    assert consents == [f"allow: approved with its plan by bob (request {request})"] * 2
    again = quoth("eval", TWO, "--session", "s1", cwd=here)
    assert (again.code, again.err.startswith("quoth: write-file waits for a person's approval")) == (3, True)


# No model can approve, or pretend


def test_a_model_may_look_before_it_acts(here: Path) -> None:
    replies = ['(eval :form (write-file :path "a.txt" :content "x") :dry-run True)', "I would write it."]
    with agent(here, *replies, session="s1") as one:
        reply = one.run("Write it.")
        shown = reply.calls[0].result.value
        waiting = one.broker.requests()
    assert shown == f'(write-file :path "a.txt" :content "x")  ; ask: {IT_WRITES_FILES}; :writes'
    assert (waiting, (here / "a.txt").exists()) == ([], False)


def test_the_option_is_in_no_view_of_the_tools(here: Path) -> None:
    for view in ("lisp", "plist", "json", "openai", "responses", "anthropic", "mcp"):
        assert "dry" not in quoth("belt", "--view", view, cwd=here).out
    assert quoth("call", '(eval "1" "2")', cwd=here).err == (
        'quoth: invalid: eval takes 1 argument; "2" is one too many. It is called as (eval :form form).\n'
    )


# What an approved plan does not allow


class Shop:
    """A workspace with a shell that remembers its calls; each agent in it might be another process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.did: list[str] = []

    def agent(self, *more: Any, **options: Any) -> Agent:
        def sh(x: str) -> str:
            self.did.append(x)
            return x

        text = {"x": {"type": str}}
        shell = tool("sh", sh, params=text, effects=["runs"], gate=True)
        return agent(self.folder, tools=[shell, *more], session="s", user="ann", **options)

    def approves(self, program: str, *more: Any) -> str:
        """The plan of a program, once a person has approved it."""
        with self.agent(*more) as it:
            plan = it.eval(program, dry_run=True).value
            it.broker.decide(it.ask_for_plan(program, plan), Decision("once", "ann"))
            self.did.clear()
            return str(plan["text"])


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_plan_is_not_for_what_a_tool_runs_by_itself(shop: Shop) -> None:
    async def body(ctx: Any) -> str:
        from quoth.tools.lisp.forms import CallForm
        from quoth.tools.lisp.printer import Code

        return str((await ctx.dispatch(CallForm("eval", {"form": Code('(sh "hidden")')}))).status)

    helper = tool("helper", body)
    shop.approves('(setv n (sh "ls")) (helper) (sh n)', helper)
    with shop.agent(helper) as it:
        assert it.eval('(setv n (sh "ls")) (helper) (sh n)').ok
        (waiting,) = it.broker.requests()
    assert (shop.did, waiting.form) == (["ls", "ls"], '(sh :x "hidden")')


def test_a_loop_on_one_way_does_not_lift_the_bound_of_what_comes_after(shop: Shop) -> None:
    files(shop.folder, {"n.txt": "1"})
    program = """
        (setv n (int (read-file "n.txt")))
        (for [x (if (sh "c") (sh "l1") (sh "l2"))] (read-file "n.txt"))
        (for [i (range n)] (sh "pay"))"""
    assert shop.approves(program).count('(sh :x "pay")') == 1
    files(shop.folder, {"n.txt": "5"})
    with shop.agent() as it:
        assert it.eval(program).status == "pending"
    assert shop.did.count("pay") == 1


def test_a_plan_does_not_answer_the_question_of_a_gate(shop: Shop) -> None:
    from quoth.tools.call.call import ask

    class Gate:
        async def check(self, *_: Any) -> Any:
            return ask("it looks odd")

    shop.approves('(sh "x")')
    with shop.agent(gate=Gate()) as it:
        assert it.eval('(do (sh "x") 1)').status == "pending"
    assert shop.did == []


def test_a_program_that_is_not_known_yet_is_told(shop: Shop) -> None:
    assert f"{IT_RUNS_A_PROGRAM} that is unknown so far" in shop.approves('(eval (sh "gen")) (sh "x")')


def test_a_plan_of_a_file_in_a_folder_is_not_for_one_outside() -> None:
    from quoth.tools.dryrun.unknowns import matches

    assert matches({"like": ["out/", ".txt"]}, "out/name.txt")
    assert not matches({"like": ["out/", ".txt"]}, "out/../../up.txt")
    assert matches({"like": ["../", ".txt"]}, "../name.txt")


def test_many_pieces_are_matched_in_no_time() -> None:
    from quoth.tools.dryrun.unknowns import matches

    assert not matches({"like": ["a"] * 8 + ["b"]}, "a" * 100_000)
    assert matches({"like": ["a", "b", ""]}, "a-b-")


def test_no_declared_secret_is_in_a_plan(tmp_path: Path) -> None:
    from quoth.tools.call.call import ask

    params = {"token": {"type": str, "secret": True}}
    login = tool("login", params=params, effects=["net"], guard=lambda token: ask(f"token {token}?"))
    with agent(tmp_path, tools=[login], session="s") as it:
        plan = it.eval('(if (login :token "hunter2xyz") (= "hunter2xyz" (read-file "a")) 1)', dry_run=True)
    assert "hunter2xyz" not in json.dumps(plan.value)


@pytest.mark.parametrize("odd", ["#{1 2}", 'b"abc"', "{#(1 2) 3}", "(** 7 20000)"])
def test_odd_values_do_not_end_a_dry_run(shop: Shop, odd: str) -> None:
    with shop.agent() as it:
        assert it.eval(f"(sh {odd})", dry_run=True).ok


def test_a_function_called_pmap_is_the_programs_own(shop: Shop) -> None:
    assert '(sh :x "mine")' in shop.approves('(defn pmap [f xs] (sh "mine")) (pmap 1 2)')
