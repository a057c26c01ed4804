"""What waits for a person is listed, decided and carried on by commands, each in a process of its own."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_GRANT_LASTS_AT_MOST,
    A_PERSON_CHANGED_THE_CALL,
    A_PROGRAM_THAT_A_TOOL,
    ALLOW_THAT_IN_THIS_SESSION,
    AN_EDITED_CALL_KEEPS_ITS,
    IS_NEVER_CLOSED,
    IS_NOT_THERE_ANY_MORE,
    IT_IS_CALLED_AS,
    IT_WOULD_FAIL_NOW,
    IT_WRITES_FILES,
    LEAVE_OUT,
    NO_REQUESTS_ARE_WAITING,
    NOTHING_WAITS_IN_SESSION,
    NOTHING_WAITS_IN_THIS_WORKSPACE,
    QUOTH_PENDING_LISTS_WHAT_IS,
    SAY_SO_WITH_YES,
    THE_PERSON_SAID_NO,
    THEN_CONTINUE_WITH,
    THERE_IS_NO_REQUEST,
    THERE_IS_NO_SESSION,
    TO_CONTINUE,
)
from words import CTRL_C, Said, Terminal, command, files, lines, quoth

from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

WRITE = '(write-file :path "src/a.txt" :content "x")'
OTHER = '(write-file :path "src/b.txt" :content "x")'
COUNT = """
(require quoth [def-cognitive-tool])
(import pathlib [Path])
(def-cognitive-tool count-up "Add one to a number in a file."
  :effects [:writes]
  :body (do (setv file (Path "HERE/count")
                  number (+ 1 (if (.exists file) (int (.read-text file)) 0)))
            (.write-text file (str number))
            number))
(def-cognitive-tool careful "Ask about it."
  :parameters [pin {:type str :secret True}]
  :guard (ask "it costs money")
  :body "done")
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    files(tmp_path, {"src/kept.txt": "", "count.hy": COUNT.replace("HERE", str(tmp_path))})
    return tmp_path


def wait(here: Path, form: str = WRITE, session: str = "s1", *words: str) -> str:
    """Make a call that nobody is there to allow; return the id of its request."""
    said = quoth("call", form, "--session", session, *words, cwd=here)
    assert (said.code, said.out) == (3, "")
    return re.findall(r"\(request (\w{5})\)", said.err)[0]


def done(here: Path, *words: str) -> str:
    """What a command that goes well prints."""
    said = quoth(*words, cwd=here)
    assert said.code == 0, said.err
    return said.out.rstrip("\n")


def told(here: Path, *words: str) -> Any:
    """What it prints as JSON."""
    said = quoth(*words, "--json", cwd=here)
    assert said.out.count("\n") == 1
    return json.loads(said.out)


def refused(here: Path, *words: str) -> str:
    """What it complains of, with exit code 2 and nothing on stdout."""
    said = quoth(*words, cwd=here)
    assert (said.code, said.out) == (2, ""), said
    return said.err.removeprefix("quoth: ").rstrip("\n")


def timeless(text: str) -> str:
    return re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", "WHEN", text)


# Looking


def test_nothing_waits_where_nothing_was_asked(here: Path, state: Path) -> None:
    assert quoth("pending", cwd=here) == Said(0, "", f"quoth: {NO_REQUESTS_ARE_WAITING}.\n")
    assert told(here, "pending") == []
    nothing = f"{THERE_IS_NO_REQUEST} abcde; nothing was ever asked in this workspace."
    for words in (["pending", "abcde"], ["approve", "abcde"], ["deny", "abcde"]):
        assert refused(here, *words) == nothing
    assert refused(here, "resume") == f"{NOTHING_WAITS_IN_THIS_WORKSPACE}."
    assert list(state.iterdir()) == []


def test_what_waits_is_listed_the_oldest_first(here: Path) -> None:
    first, second = (
        wait(here),
        wait(here, '(careful :pin "1234")', "s2", "--tools", "count.hy", "--user", "ann"),
    )
    me = told(here, "pending", first)["user"]
    assert timeless(done(here, "pending")) == lines(
        [f"{first}  {WRITE}", "       new file src/a.txt, 1 line"],
        f"       {IT_WRITES_FILES}; touches src/a.txt",
        f"       {me} (terminal), s1, call, WHEN",
        [f'{second}  (careful :pin "[secret]")', "       it costs money"],
        "       ann (terminal), s2, call, WHEN",
    ).rstrip("\n")
    assert [request["id"] for request in told(here, "pending")] == [first, second]
    assert [request["id"] for request in told(here, "pending", "--session", "s2")] == [second]
    assert "1234" not in json.dumps(told(here, "pending"))


def test_one_request_is_shown_in_full(here: Path) -> None:
    long = f'(write-file :path "src/a.txt" :content "{"x" * 222}\\n")'
    files(here, {"r.txt": f"{long}\n---\nDone."})
    quoth("run", "Write it.", "--model", "scripted:r.txt", "--session", "s1", "--user", "ann", cwd=here)
    (request,) = told(here, "pending")
    assert "[… " in done(here, "pending")
    written = ["x" * 75, "x" * 73, "x" * 73, "x"]
    assert timeless(done(here, "pending", request["id"])) == lines(
        [f'{request["id"]}  (write-file :path "src/a.txt" :content …)'],
        ["  new file src/a.txt, 1 line", f"│ + {written[0]}", *[f"│   … {row}" for row in written[1:]]],
        "  path, content: the model's own",
        [f"because      {IT_WRITES_FILES}", "touches      src/a.txt"],
        "asked by     ann (terminal), session s1, route reply",
        ["asked at     WHEN", "in answer to Write it."],
        ["decided      not yet; open until WHEN"],
    ).rstrip("\n")
    assert told(here, "pending", request["id"]) == request
    assert (request["message"], request["form"]) == ("Write it.", long)


FATES = [
    (["approve"], "approved once by bob at WHEN; usable until WHEN"),
    (["approve", "--for", "2h"], "approved for a while by bob at WHEN; lasts until WHEN"),
    (["approve", "--scope", "--yes"], "granted a scope by bob at WHEN; lasts until WHEN"),
    (["approve", "--edit", OTHER], "approved with other arguments by bob at WHEN; usable until WHEN"),
    (["deny"], "denied by bob at WHEN"),
    (["deny", "--why", "not now"], "denied by bob at WHEN: not now"),
]


@pytest.mark.parametrize(("words", "fate"), FATES, ids=[" ".join(words) for words, _ in FATES])
def test_what_was_decided_is_shown_too(here: Path, words: list[str], fate: str) -> None:
    request = wait(here)
    done(here, words[0], request, *words[1:], "--user", "bob")
    assert quoth("pending", cwd=here) == Said(0, "", f"quoth: {NO_REQUESTS_ARE_WAITING}.\n")
    assert timeless(done(here, "pending", request)).endswith(f"\ndecided      {fate}")


# Deciding


def test_a_call_that_is_approved_is_made_once(here: Path) -> None:
    request = wait(here)
    said = quoth("approve", request, cwd=here)
    assert said == Said(0, f"Approved once: {WRITE}\n", "quoth: To continue: quoth resume s1\n")
    assert not (here / "src/a.txt").exists()
    assert quoth("resume", "s1", cwd=here) == Said(0, "Created src/a.txt, 1 byte.\n", "")
    assert done(here, "pending", request).endswith("; used")
    assert refused(here, "resume", "s1") == f"{NOTHING_WAITS_IN_SESSION} s1."
    assert wait(here) != request


def test_what_is_approved_for_a_while_is_asked_no_more(here: Path) -> None:
    request = wait(here)
    assert done(here, "approve", request, "--for", "30m") == f"Approved for 30 minutes: {WRITE}"
    for _ in range(2):
        assert done(here, "call", WRITE, "--session", "s1").endswith(" src/a.txt, 1 byte.")
    wait(here, OTHER, "s1")
    wait(here, WRITE, "s2")


def test_a_scope_is_shown_and_wanted_before_it_counts(here: Path) -> None:
    request = wait(here)
    rule = '(allow (write-file :content _ :path (under "src") :only))'
    question = f"{rule}\nIt leaves :content open.\nAllow that in this session for 8 hours?"
    assert refused(here, "approve", request, "--scope") == f"{question} {SAY_SO_WITH_YES}."
    assert [one["id"] for one in told(here, "pending")] == [request]
    said = quoth("approve", request, "--scope", "--yes", cwd=here)
    assert said == Said(
        0,
        f"Granted in session s1 for 8 hours: {rule}\n",
        f"quoth: {question} Yes.\n".replace("\n", "\n       ", 2) + "quoth: To continue: quoth resume s1\n",
    )
    assert done(here, "resume") == "Created src/a.txt, 1 byte."
    assert done(here, "call", OTHER, "--session", "s1") == "Created src/b.txt, 1 byte."
    wait(here, '(write-file :path "top.txt" :content "x")', "s1")
    wait(here, OTHER, "s2")


def test_what_was_granted_in_a_session_is_listed_and_revoked(here: Path) -> None:
    request = wait(here)
    assert "quoth policy revoke" in refused(here, "policy", "revoke", request)
    done(here, "approve", request, "--scope", "--yes")
    rule = '(allow (write-file :content _ :path (under "src") :only))'
    listed = done(here, "policy", "revoke")
    assert listed.startswith(f"{request}  {rule}  (in session s1, until 2")
    assert [one["granted"] for one in told(here, "policy", "revoke")] == [rule]
    assert "belongs to session s1" in refused(here, "policy", "revoke", request, "--session", "s2")
    assert done(here, "policy", "revoke", request).startswith("Revoked in session s1: ")
    assert told(here, "policy", "revoke") == []
    assert "; ended at " in done(here, "pending", request)
    wait(here, OTHER)


def test_a_scope_may_be_a_rule_of_ones_own_and_for_a_while(here: Path) -> None:
    request = wait(here)
    rule = '(write-file :path (under "src") :content (len (<= 3)))'
    granted = told(here, "approve", request, "--scope", rule, "--for", "10m", "--yes")
    assert (granted["id"], granted["decision"], granted["granted"]) == (request, "scope", f"(allow {rule})")
    assert done(here, "call", OTHER, "--session", "s1") == "Created src/b.txt, 1 byte."
    wait(here, '(write-file :path "src/b.txt" :content "long")', "s1")


def test_another_call_may_be_approved_in_place_of_the_one_that_was_asked_for(here: Path) -> None:
    request = wait(here)
    assert done(here, "approve", request, "--edit", OTHER) == f"Approved instead of {WRITE}: {OTHER}"
    assert quoth("resume", "s1", cwd=here) == Said(
        0,
        "Created src/b.txt, 1 byte.\n",
        f'quoth: {A_PERSON_CHANGED_THE_CALL} (write-file :content "x" :path "src/b.txt").\n',
    )
    assert not (here / "src/a.txt").exists()
    wait(here, OTHER, "s1")


def test_a_denial_is_what_the_caller_is_told(here: Path) -> None:
    first, second = wait(here), wait(here, OTHER)
    said = quoth("deny", first, "--why", "not in src; use doc", cwd=here)
    assert said.out == f"Denied: {WRITE}\n"
    assert said.err == lines(
        f"quoth: Still waiting in this session: {second}", "quoth: To continue: quoth resume s1"
    )
    done(here, "deny", second)
    assert quoth("resume", "s1", cwd=here) == Said(
        1,
        "",
        "quoth: write-file was denied: the person said: not in src; use doc.\n"
        f"quoth: write-file was denied: {THE_PERSON_SAID_NO}.\n",
    )
    assert list((here / "src").iterdir()) == [here / "src/kept.txt"]


def test_a_decision_is_told_with_the_workspace_it_is_for(here: Path) -> None:
    request = wait(here)
    said = quoth("approve", request, "--workspace", f"{here.name}/", cwd=here.parent)
    assert said.err == f"quoth: To continue: quoth resume s1 --workspace {here.name}/\n"


def test_a_rule_is_offered_after_three_equal_approvals_and_not_before(here: Path, state: Path) -> None:
    offers = []
    for number in range(4):
        request = wait(here, f'(write-file :path "src/{number}.txt" :content "x")', f"s{number}")
        if number < 3:
            offers.append(told(here, "approve", request)["offer"])
    rule = '(allow (write-file :content _ :path (under "src") :only))'
    assert offers == ["", "", rule]
    assert quoth("approve", request, cwd=here).err == lines(
        "quoth: You approved calls like this at least 3 times. To allow them without a question, add this "
        f"rule to {state}/config/policy.hy:",
        f"  {rule}",
        "quoth: It leaves :content open.",
        "quoth: To continue: quoth resume s3",
    )
    assert not (state / "config").exists()
    files(state, {"config/policy.hy": rule})
    assert done(here, "call", '(write-file :path "src/9.txt" :content "x")') == "Created src/9.txt, 1 byte."


def test_a_decision_in_json_is_the_request_as_it_is_now(here: Path) -> None:
    request = wait(here)
    before = told(here, "pending", request)
    after = told(here, "deny", request, "--why", "no", "--user", "bob")
    assert before.pop("changes")[0]["diff"] == "+x\n\\ no line end at the end of the file\n"
    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"expires"} == {"state", "decision", "decided", "decider", "why"}
    assert set(after) - set(before) == {"granted", "offer"}
    assert (after["decision"], after["decider"], after["why"], after["offer"]) == ("deny", "bob", "no", "")


# Going on


def test_a_run_goes_on_from_the_call_that_waited(here: Path) -> None:
    files(here, {"r.txt": f'{WRITE}\n(echo :text "a")\n---\n{OTHER}\n---\nBoth are written.'})
    began = quoth("run", "Write.", "--model", "scripted:r.txt", "--session", "s1", cwd=here)
    assert (began.code, began.out) == (3, "")
    first = told(here, "pending")[0]["id"]
    done(here, "approve", first)
    went_on = quoth("resume", cwd=here)
    assert (went_on.code, went_on.out) == (3, "")
    assert (here / "src/a.txt").exists()
    (second,) = told(here, "pending")
    assert went_on.err.endswith(
        lines(
            f"quoth: To decide: quoth approve {second['id']}, or: quoth deny {second['id']} --why TEXT",
            f"quoth: {THEN_CONTINUE_WITH}: quoth resume s1",
        )
    )
    done(here, "approve", second["id"])
    ended = told(here, "resume", "s1")
    assert (ended["status"], ended["reply"], ended["session"]) == ("done", "Both are written.", "s1")
    assert [call["status"] for call in ended["calls"]] == ["ok", "ok", "ok"]
    assert refused(here, "resume", "s1") == (
        f"{NOTHING_WAITS_IN_SESSION} s1. {TO_CONTINUE} its conversation: quoth resume s1 TEXT"
    )


def test_a_run_can_be_resumed_from_another_folder(here: Path) -> None:
    files(here, {"r.txt": f"{WRITE}\n---\nWritten."})
    assert quoth("run", "Write.", "--model", "scripted:r.txt", cwd=here).code == 3
    place = ("--workspace", str(here))
    done(here.parent, "approve", told(here, "pending")[0]["id"], *place)
    assert done(here.parent, "resume", *place) == "Written."


def test_a_run_hears_the_reason_of_a_denial(here: Path) -> None:
    files(here, {"r.hy": HEARS.replace("WRITE", WRITE)})
    quoth("run", "Write.", "--model", "scripted:r.hy", cwd=here)
    done(here, "deny", told(here, "pending")[0]["id"], "--why", "too early")
    assert done(here, "resume").startswith(
        f"I was told: {WRITE} -> denied: write-file was denied: the person"
    )
    assert not (here / "src/a.txt").exists()


HEARS = """
(defn reply [messages]
  (setv said (lfor  m messages  :if (= (get m "role") "tool")  (get m "content")))
  (if said  f"I was told: {(get said -1)}"  #[[WRITE]]))
"""


def test_what_nobody_decided_waits_on(here: Path) -> None:
    request = wait(here)
    for _ in range(2):
        assert quoth("resume", "s1", cwd=here) == Said(
            3,
            "",
            f"quoth: write-file waits for a person's approval: {IT_WRITES_FILES} (request {request}).\n"
            f"quoth: To decide: quoth approve {request}, or: quoth deny {request} --why TEXT\n"
            f"quoth: {THEN_CONTINUE_WITH}: quoth resume s1\n",
        )


def test_of_several_calls_those_that_were_decided_are_made_and_the_code_is_the_gravest(here: Path) -> None:
    first, second = wait(here), wait(here, OTHER)
    done(here, "approve", second)
    said = quoth("resume", "--json", cwd=here)
    assert said.code == 3
    assert [json.loads(line)["status"] for line in said.out.splitlines()] == ["pending", "ok"]
    done(here, "approve", first)
    assert done(here, "resume") == "Created src/a.txt, 1 byte."


def test_a_program_goes_on_and_what_it_had_done_is_not_done_again(here: Path) -> None:
    program = f"(do (setv n (count-up)) (count-up) {WRITE} [n (count-up)])"
    allowed = files(here, {"p.hy": "(allow (count-up))"}) / "p.hy"
    more = ("--tools", "count.hy", "--policy", str(allowed), "--session", "s1")
    assert quoth("eval", program, *more, cwd=here).code == 3
    (request,) = told(here, "pending")
    assert (request["tool"], request["route"]) == ("write-file", "program")
    assert "\ninside of    call " in done(here, "pending", request["id"])
    assert (here / "count").read_text() == "2"
    done(here, "approve", request["id"])
    assert done(here, "resume") == "[1 3]"
    assert (here / "count").read_text() == "3"
    assert (here / "src/a.txt").exists()


def test_a_users_tools_and_rules_are_found_again(here: Path) -> None:
    files(here, {"rules.hy": "(ask (echo))"})
    count = wait(here, "(count-up)", "s1", "--tools", "count.hy")
    echo = wait(here, '(echo :text "a")', "s2", "--policy", "rules.hy")
    for request in (count, echo):
        done(here.parent, "approve", request, "--workspace", str(here))
    assert done(here.parent, "resume", "s1", "--workspace", str(here)) == "1"
    assert done(here.parent, "resume", "s2", "--workspace", str(here)) == "a"


def test_a_scope_and_an_edit_are_checked_with_the_users_own_tool(here: Path) -> None:
    request = wait(here, "(count-up)", "s1", "--tools", "count.hy")
    assert refused(here, "approve", request, "--edit", "(count-up :by 2)") == (
        f"count-up: :by is unknown (it takes none). {IT_IS_CALLED_AS} (count-up)."
    )
    done(here, "approve", request, "--scope", "--yes")
    assert [
        done(here, "resume"),
        done(here, "call", "(count-up)", "--session", "s1", "--tools", "count.hy"),
    ] == (["1", "2"])


def test_a_request_can_be_decided_though_the_file_of_its_tool_is_gone_and_waits_until_it_is_back(
    here: Path,
) -> None:
    request = wait(here, "(count-up)", "s1", "--tools", "count.hy")
    (here / "count.hy").rename(here / "moved.hy")
    done(here, "approve", request)
    for more in ((), ("--tools", str(files(here, {"none.hy": ""}) / "none.hy"))):
        assert refused(here, "resume", "s1", *more).splitlines() == [
            f"The tool file {here}/count.hy {IS_NOT_THERE_ANY_MORE}.",
            "quoth: The tool careful was removed since the session was last used.",
            "quoth: The tool count-up was removed since the session was last used.",
            "quoth: A call of count-up waits in session s1, and that tool is not loaded; "
            "give its file: --tools FILE",
        ]
    assert done(here, "resume", "--tools", "moved.hy") == "1"


def test_several_sessions_are_named(here: Path) -> None:
    wait(here, WRITE, "s1")
    done(here, "approve", wait(here, OTHER, "s2"))
    assert (
        refused(here, "resume")
        == "Several sessions are waiting: s1, s2. Name one: quoth resume ID, or add --last for the latest."
    )
    assert done(here, "resume", "--last") == "Created src/b.txt, 1 byte."
    assert quoth("resume", cwd=here).code == 3


# Mistakes: one sentence, exit code 2, and nothing is decided

MISTAKES = [
    (["approve", "zzzzz"], f"{THERE_IS_NO_REQUEST} zzzzz. {QUOTH_PENDING_LISTS_WHAT_IS}."),
    (["approve"], "The following arguments are required: ID. See: quoth approve --help"),
    (["deny", "REQUEST", "--why"], "Argument --why: expected one argument. See: quoth deny --help"),
    (["approve", "REQUEST", "--for", "30"], "A time is written 30s, 10m, 2h or 1d, not 30."),
    (["approve", "REQUEST", "--for", "0m"], "A time is written 30s, 10m, 2h or 1d, not 0m."),
    (
        ["approve", "REQUEST", "--for", "-1h"],
        "Argument --for: expected one argument. See: quoth approve --help",
    ),
    (["approve", "REQUEST", "--for", ""], "A time is written 30s, 10m, 2h or 1d, not nothing."),
    (["approve", "REQUEST", "--for", "31d"], f"{A_GRANT_LASTS_AT_MOST} 30 days, not 31d."),
    (
        ["approve", "REQUEST", "--edit", OTHER, "--for", "2h"],
        f"--edit approves one other call; {LEAVE_OUT}for and --scope.",
    ),
    (
        ["approve", "REQUEST", "--edit", '(read-file :path "x")'],
        f"{AN_EDITED_CALL_KEEPS_ITS}, write-file; this one calls read-file.",
    ),
    (
        ["approve", "REQUEST", "--edit", '(write-file :path "x"'],
        f'line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end\n(write-file :path "x"\n^',
    ),
    (["approve", "REQUEST", "--edit", "x"], 'A call is a form such as (echo :text "hi"); this is x.'),
    (
        ["approve", "REQUEST", "--edit", '(write-file :path "x" :contents "y")'],
        "write-file: :content is missing; :contents is unknown (did you mean :content?). It is called as "
        "(write-file :path path :content str).",
    ),
    (
        ["approve", "REQUEST", "--scope", "(read-file)", "--yes"],
        "A scope allows only calls of write-file, the requested tool; not (allow (read-file)).",
    ),
    (
        ["approve", "REQUEST", "--scope", '(write-file :path (under "doc"))', "--yes"],
        f'(allow (write-file :path (under "doc"))) does not cover the requested call, {WRITE}.',
    ),
    (
        ["approve", "REQUEST", "--scope", '(write-file :pth "x")', "--yes"],
        "scope:1:20: write-file has no argument :pth.\n"
        '  (allow (write-file :pth "x"))\n'
        "                     ^",
    ),
    (["pending", "REQUEST", "--session", "s9"], "Request REQUEST belongs to session s1, not s9."),
    (["approve", "REQUEST", "--session", "s9"], "Request REQUEST belongs to session s1, not s9."),
    (["resume", "s2"], f"{THERE_IS_NO_SESSION} s2 in this workspace. The latest are s1."),
    (["resume", "--session", "other"], f"{THERE_IS_NO_SESSION} other in this workspace. The latest are s1."),
    (["resume", "s1", "--user", "root2"], "Session s1 belongs to ann; root2 cannot resume it."),
]


def test_a_mistake_is_told_in_one_sentence_and_decides_nothing(here: Path) -> None:
    request = wait(here, WRITE, "s1", "--user", "ann")
    for words, sentence in MISTAKES:
        said = refused(here, *[word.replace("REQUEST", request) for word in words])
        assert said == sentence.replace("REQUEST", request)
    assert [one["id"] for one in told(here, "pending")] == [request]
    assert not (here / "src/a.txt").exists()


def test_a_mistake_in_json_is_one_object_with_the_sentence(here: Path) -> None:
    request = wait(here)
    for words, sentence in (
        (["approve", "zzzzz"], f"{THERE_IS_NO_REQUEST} zzzzz. {QUOTH_PENDING_LISTS_WHAT_IS}."),
        (["approve", request, "--for", "30"], "A time is written 30s, 10m, 2h or 1d, not 30."),
        (["resume", "s9"], f"{THERE_IS_NO_SESSION} s9 in this workspace. The latest are s1."),
    ):
        assert told(here, *words) == {"status": "invalid", "message": sentence}


def test_a_request_is_decided_once(here: Path) -> None:
    first, second = wait(here), wait(here, OTHER)
    done(here, "approve", first, "--user", "bob")
    done(here, "deny", second, "--user", "bob")
    for request, fate in ((first, "approved"), (second, "denied")):
        for words in (["approve", request], ["deny", request], ["approve", request, "--scope", "--yes"]):
            assert timeless(refused(here, *words)) == f"Request {request} was {fate} before, by bob at WHEN."


def test_a_request_expires_and_so_does_an_approval(here: Path) -> None:
    store = Store(store_path(here))

    def expire(request: str) -> None:
        store.execute("UPDATE requests SET expires = ? WHERE id = ?", (time.time() - 1, request))

    request = wait(here)
    expire(request)
    assert timeless(refused(here, "approve", request)) == f"Request {request} expired at WHEN."
    assert timeless(done(here, "pending", request)).endswith("\ndecided      never; it expired at WHEN")
    assert told(here, "pending") == []
    second = wait(here)
    assert second != request
    done(here, "approve", second)
    expire(second)
    assert done(here, "pending", second).endswith("; not used in time")
    assert quoth("resume", cwd=here).code == 3
    store.close()


def test_an_approval_without_anything_put_away_says_what_it_is_good_for(here: Path) -> None:
    request = wait(here)
    store = Store(store_path(here))
    store.execute("DELETE FROM events")
    store.close()
    assert quoth("approve", request, cwd=here).err == (
        "quoth: There is nothing to resume. The decision applies where the question is on a screen, or when "
        "session s1 repeats the call.\n"
    )
    assert done(here, "call", WRITE, "--session", "s1") == "Created src/a.txt, 1 byte."


# A program that a tool runs decides nothing

SNEAKY = """
(require quoth [def-shell-tool])
(def-shell-tool sneak "Run the command."
  :parameters [words {:type list}]
  :argv [QUOTH words])
"""
NO = f"{A_PROGRAM_THAT_A_TOOL}."


@pytest.mark.parametrize(
    "words",
    [
        ["approve", "ID"],
        ["approve", "ID", "--for", "2h"],
        ["approve", "ID", "--scope", "--yes"],
        ["approve", "ID", "--edit", OTHER],
        ["deny", "ID"],
        ["policy", "revoke", "ID"],
        ["trust"],
        ["call", WRITE, "--yes"],
        ["resume", "s1", "--yes"],
        ["run", "x", "--model", "scripted:r.txt", "--yes"],
    ],
    ids=" ".join,
)
def test_a_program_that_a_tool_runs_cannot_decide(here: Path, words: list[str]) -> None:
    argv = " ".join(json.dumps(word) for word in command())
    files(
        here, {"sneak.hy": SNEAKY.replace("QUOTH", argv), "r.txt": WRITE, ".quoth/policy.hy": "(deny (echo))"}
    )
    request = wait(here)
    given = json.dumps([word.replace("ID", request) for word in words], ensure_ascii=False)
    called = f"(sneak :words {given.replace(',', '')})"
    said = quoth("call", called, "--tools", "sneak.hy", "--yes", cwd=here)
    assert (said.code, said.out) == (1, "")
    assert said.err.rstrip("\n").endswith(NO)
    assert [one["id"] for one in told(here, "pending")] == [request]
    assert not (here / "src/a.txt").exists()
    assert done(here, "call", '(echo :text "a")') == "a"


def test_a_program_that_a_tool_runs_may_look(here: Path) -> None:
    argv = " ".join(json.dumps(word) for word in command())
    files(here, {"sneak.hy": SNEAKY.replace("QUOTH", argv)})
    request = wait(here)
    assert request in done(here, "call", '(sneak :words ["pending"])', "--tools", "sneak.hy", "--yes")


# At a terminal


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_a_scope_is_asked_at_a_terminal(here: Path, answer: str, code: int) -> None:
    request = wait(here)
    with Terminal("approve", request, "--scope", cwd=here) as terminal:
        terminal.see('(allow (write-file :content _ :path (under "src") :only))')
        terminal.see("It leaves :content open.")
        terminal.see(f"{ALLOW_THAT_IN_THIS_SESSION} 8 hours? [y/N]")
        terminal.type(answer + "\n")
        terminal.see(
            "quoth: To continue: quoth resume s1" if code == 0 else "quoth: No permission was granted."
        )
        assert terminal.ended() == code
    assert (told(here, "pending") == []) is (code == 0)


def test_what_was_not_decided_is_asked_when_it_is_resumed_at_a_terminal(here: Path) -> None:
    wait(here)
    with Terminal("resume", cwd=here) as terminal:
        terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
        terminal.type("y\n")
        terminal.see("Created src/a.txt, 1 byte.")
        assert terminal.ended() == 0
    assert told(here, "pending") == []
    assert refused(here, "resume") == f"{NOTHING_WAITS_IN_THIS_WORKSPACE}."


def test_a_question_that_is_taken_back_leaves_a_call_that_can_be_resumed(here: Path) -> None:
    with Terminal("call", WRITE, "--session", "s1", cwd=here) as terminal:
        terminal.see("Allow it? y, n (default), s, e, ? for help, or a reason to refuse:")
        terminal.type(CTRL_C)
        terminal.see(f"{THEN_CONTINUE_WITH}: quoth resume s1")
        assert terminal.ended() == 130
    (request,) = told(here, "pending")
    done(here, "approve", request["id"])
    assert done(here, "resume") == "Created src/a.txt, 1 byte."


# With what it would change

CARE = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool stamp "Stamp a file."
  :parameters [path {:type path}  pin {:type str :secret True}]
  :effects [:writes]
  :changes [[path None (+ "pin " pin "\n")]]
  :body "done")
"""


def test_a_request_shows_what_its_call_would_change_as_the_file_is_now(here: Path) -> None:
    files(here, {"src/a.txt": "one\ntwo\n"})
    request = wait(here, '(edit-file :path "src/a.txt" :old "two" :new "2")')
    assert "\n       replaces 1 of 2 lines of src/a.txt with 1\n" in done(here, "pending")
    assert "\n│ @@ line 1 @@\n│   one\n│ - two\n│ + 2\nbecause " in done(here, "pending", request)
    (change,) = told(here, "pending", request)["changes"]
    assert (change["summary"], change["added"]) == ("replaces 1 of 2 lines of src/a.txt with 1", 1)
    assert told(here, "pending") == [told(here, "pending", request)]
    files(here, {"src/a.txt": "two\n"})
    assert "replaces the only line of src/a.txt with 1 line" in done(here, "pending", request)
    files(here, {"src/a.txt": "three\n"})
    trouble = f"{IT_WOULD_FAIL_NOW}: src/a.txt does not contain that text; read the file and copy it exactly."
    assert trouble in " ".join(done(here, "pending", request).split())
    assert told(here, "pending", request)["trouble"] == trouble
    done(here, "deny", request)
    assert "changes" not in told(here, "pending", request)


def test_the_tools_of_the_session_tell_too_and_no_secret_is_shown(here: Path) -> None:
    files(here, {"care.hy": CARE})
    request = wait(here, '(stamp :path "a" :pin "hunter2")', "s1", "--tools", "care.hy")
    said = done(here, "pending", request)
    assert '(stamp :path "a" :pin "[secret]")\n  new file a, 1 line\n│ + pin [secret]\n' in said
    assert told(here, "pending", request)["changes"][0]["diff"] == "+pin [secret]\n"
    files(here, {"care.hy": CARE.replace("done", "all done")})
    assert "  stamp has changed since this was asked.\n" in done(here, "pending", request)
    files(here, {"care.hy": "(no"})
    said = quoth("pending", request, cwd=here)
    assert said.code == 0
    assert said.err.startswith("quoth: Its changes are not known: ")


def test_an_approval_at_a_terminal_shows_the_difference(here: Path) -> None:
    request = wait(here)
    with Terminal("approve", request, cwd=here) as terminal:
        terminal.see(f"Approved once: {WRITE}\n  new file src/a.txt, 1 line\n│ + x\n")
        assert b"\x1b[32m+ x" in terminal.raw
        assert terminal.ended() == 0


def test_an_approval_may_go_on_at_once_with_the_output_of_resume(here: Path) -> None:
    request = wait(here)
    said = quoth("approve", request, "--resume", "--user", "bob", cwd=here)
    assert said == Said(0, "Created src/a.txt, 1 byte.\n", f"quoth: Approved once: {WRITE}\n")
    request = wait(here, OTHER, "s2")
    result = told(here, "approve", request, "--resume")
    assert (result["status"], result["tool"]) == ("ok", "write-file")


def test_what_is_not_approved_is_not_gone_on_with(here: Path) -> None:
    request = wait(here)
    assert quoth("approve", request, "--scope", "--resume", cwd=here).code == 2
    assert not (here / "src/a.txt").exists()


def test_a_question_answered_in_another_terminal_goes_away_and_the_work_goes_on(here: Path) -> None:
    with Terminal("call", WRITE, "--session", "s1", cwd=here) as terminal:
        terminal.see("Allow it?")
        (request,) = told(here, "pending")
        done(here, "approve", request["id"], "--user", "ann")
        terminal.see("Decided elsewhere: approved once by ann.")
        terminal.see("Created src/a.txt, 1 byte.")
        assert terminal.ended() == 0
