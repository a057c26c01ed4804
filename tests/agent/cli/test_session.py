"""Sessions by commands: listed, shown, forked, taken to another store, removed, and gone on with."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    CANNOT_BE_READ,
    CANNOT_BE_USED,
    CANNOT_BE_WRITTEN,
    IS_BEING_DRIVEN_BY_ANOTHER,
    IS_NOT_THERE_ANY_MORE,
    IT_WAS_BEGUN_BEFORE_AND,
    NOTHING_WAITS_IN_SESSION,
    SAY_SO_WITH_YES,
    THE_CHAIN_IS_WHOLE,
    THE_SCRIPT_IS_EXHAUSTED,
    THERE_IS_A_FILE,
    THERE_IS_NO_FILE,
    THERE_IS_NO_SESSION,
    THESE_TOOLS_ARE_GONE_AND,
    THIS_IS_NOT_A_SESSION,
    TO_CONTINUE,
    WAS_CHANGED_AFTER_IT_WAS,
)
from words import Agent, PausableClock, Said, Terminal, complaint, files, lines, quoth, scripted, tool

from quoth.agent.cli.options import Options, reaches_out, take_over
from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.agent.run.limits import RunLimits
from quoth.agent.session.drift import ToolDrift, changes_of
from quoth.agent.session.index import find_event, find_session, fork_session, import_session
from quoth.agent.session.session import Session, alone
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.event import TranscriptError
from quoth.tools.history.long_results import StorePages
from quoth.tools.history.transcript import Transcript
from quoth.tools.history.transfer import written
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

WRITE = '(write-file :path "a.txt" :content "x")'
COUNT = """
(require quoth [def-cognitive-tool])
(import pathlib [Path])
(def-cognitive-tool count-up "Add one to a number in a file."
  :effects [:writes]
  :body (do (setv file (Path "HERE/count")
                  number (+ 1 (if (.exists file) (int (.read-text file)) 0)))
            (.write-text file (str number))
            number))
"""
PROGRAM = f"(eval (do (count-up) (count-up) {WRITE} (count-up)))"
HOW = ("--tools", "count.hy", "--policy", "allow.hy", "--user", "ann")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(
        tmp_path,
        {
            "count.hy": COUNT.replace("HERE", str(tmp_path)),
            "allow.hy": "(allow (count-up))",
            "program.txt": f"{PROGRAM}\n---\nIt is done.",
            "talk.txt": "One.\n---\nTwo.\n---\nThree.",
        },
    )


def done(here: Path, *words: str, **more: Any) -> str:
    """What a command that goes well prints."""
    said = quoth(*words, cwd=here, **more)
    assert said.code == 0, said.err
    return said.out.rstrip("\n")


def told(here: Path, *words: str, **more: Any) -> Any:
    """What it prints as JSON."""
    said = quoth(*words, "--json", cwd=here, **more)
    assert said.out.count("\n") == 1, said
    return json.loads(said.out)


def refused(here: Path, *words: str, **more: Any) -> str:
    """What it complains of, with exit code 2 and nothing on stdout."""
    said = quoth(*words, cwd=here, **more)
    assert (said.code, said.out) == (2, ""), said
    return said.err.removeprefix("quoth: ").rstrip("\n")


def talk(here: Path, session: str = "s1", *words: str) -> None:
    """A run that is done at once."""
    done(here, "run", "Say one.", "--model", "scripted:talk.txt", "--session", session, *words)


def wait(here: Path, session: str = "s1") -> int:
    """A run whose program waits after it has counted twice; returns the place of the second receipt."""
    said = quoth("run", "Count.", "--model", "scripted:program.txt", "--session", session, *HOW, cwd=here)
    assert said.code == 3, said
    receipts = [event["seq"] for event in told(here, "log", session) if event.get("value") == 2]
    return int(receipts[0])


def approve(here: Path, **more: Any) -> None:
    """Approve what waits."""
    for request in told(here, "pending", **more):
        done(here, "approve", request["id"], **more)


def digests(here: Path, session: str = "s1", **more: Any) -> list[str]:
    return [event["digest"] for event in told(here, "log", session, **more)]


def kept(here: Path, work: Any) -> Any:
    """What ``work`` makes of the store of the workspace."""
    store = Store(store_path(here))
    try:
        return work(store)
    finally:
        store.close()


# Looking


def test_where_nothing_was_done_there_is_nothing_to_see(here: Path, state: Path) -> None:
    assert quoth("sessions", cwd=here) == Said(0, "", f"quoth: {THERE_IS_NO_SESSION} in this workspace.\n")
    assert told(here, "sessions") == []
    for words in (["log"], ["log", "--last"], ["resume", "--last", "hello"]):
        assert refused(here, *words) in (
            f"{THERE_IS_NO_SESSION} in this workspace.",
            "Nothing waits in this workspace.",
        )
    for words in (["log", "s1"], ["fork", "s1"], ["export", "s1"], ["rm", "s1"], ["log", "s1.2"]):
        assert refused(here, *words) == f"{THERE_IS_NO_SESSION} s1 in this workspace."
    assert list(state.iterdir()) == []


def test_sessions_are_listed_one_a_line(here: Path) -> None:
    talk(here)
    done(here, "call", '(echo :text "a")', "--session", "other", "--user", "bob")
    listing = r"s1  20\d\d-\d\d-\d\d \d\d:\d\d UTC  done         1 run  0 calls  Say one\."
    assert re.fullmatch(listing + r"  \(latest for log, replay, lift\)", done(here, "sessions"))
    every = done(here, "sessions", "--all").splitlines()
    assert [line.split()[0] for line in every] == ["s1", "other"]
    assert re.search(r"  calls        0 runs  1 call$", every[1])
    (only,) = told(here, "sessions")
    assert (only["id"], only["status"], only["runs"], only["waits"]) == ("s1", "done", 1, 0)
    assert [one["id"] for one in told(here, "sessions", "--all")] == ["s1", "other"]


def test_a_long_id_widens_its_own_line_alone(here: Path) -> None:
    for session in ("s1", "chat-" + "x" * 60):
        done(here, "call", '(echo :text "a")', "--session", session)
    short, long = done(here, "sessions", "--all").splitlines()
    assert len(short) < 80
    assert long.split()[0] == "chat-" + "x" * 60


def test_single_calls_alone_are_said_to_be_there(here: Path) -> None:
    done(here, "call", '(echo :text "a")', "--session", "s1", "--user", "bob")
    assert quoth("sessions", cwd=here) == Said(
        0,
        "",
        "quoth: There is no session with a run in this workspace. To show those of single calls: --all\n",
    )
    quoth("call", '(write-file :path "a" :content "")', "--session", "s2", cwd=here)
    assert [one["id"] for one in told(here, "sessions")] == ["s2"]  # it waits for a person


def test_a_log_is_shown_in_every_way(here: Path) -> None:
    talk(here, "s1", "--user", "ann")
    text = done(here, "log", "--user", "ann")
    assert text.splitlines()[2:] == ["4 ‹ One.", "5 ■ done in 1 step"]
    assert done(here, "log", "--last", "--user", "ann") == done(here, "log", "s") == text
    assert done(here, "log", "s1", "--org").startswith("#+TITLE: Session s1\n#+DATE: [20")
    forms = done(here, "log", "s1", "--hy").splitlines()
    assert [form[1:].split()[0] for form in forms] == ["session", "stimulus", "request", "reply", "end"]
    events = told(here, "log", "s1")
    assert [event["seq"] for event in events] == [1, 2, 3, 4, 5]
    assert told(here, "log", "s1.4") == events[3]
    assert done(here, "log", "s1.4", "--hy") == forms[3]
    assert done(here, "log", "s1.4").endswith(f"\n; s1.4, digest {events[3]['digest']}")


def test_ids_may_be_cut_short_and_hold_dots(store: Store) -> None:
    clock = PausableClock()
    transcript = Transcript(lambda: store, clock)
    for name in ("sa1", "sb2", "sb3", "my.chat", "my.3"):
        clock.wait(1)
        transcript.add(name, "session", {"user": "ann"})
    assert [find_session(store, name) for name in ("sa1", "sa", "my.c")] == ["sa1", "sa1", "my.chat"]
    assert find_event(store, "sa.1") == ("sa1", 1)
    assert find_event(store, "my.3") == ("my.3", None)
    assert find_event(store, "my.3.2") == ("my.3", 2)
    several = complaint(UsageError, lambda: find_session(store, "s"))
    assert several == "Several sessions begin with s: sa1, sb2, sb3."
    unknown = complaint(UsageError, lambda: find_session(store, "sx1"))
    assert unknown == f"{THERE_IS_NO_SESSION} sx1 in this workspace. Did you mean sa1?"
    no_text = complaint(UsageError, lambda: find_event(store, "x\udcff.2"))
    assert no_text.startswith(rf"{THERE_IS_NO_SESSION} x\udcff in this workspace.")


MISTAKES = [
    (["log", "s1.99"], "There is no event s1.99; session s1 has 5 events."),
    (["log", "s1.0"], "There is no event s1.0; session s1 has 5 events."),
    (["log", f"s1.{'9' * 5000}"], f"There is no event s1.{'9' * 18}; session s1 has 5 events."),
    (["log", "s1", "--last"], "quoth log takes an ID or --last, not both."),
    (["log", "s2"], f"{THERE_IS_NO_SESSION} s2 in this workspace. The latest are s1."),
    (["log", "--org", "--hy"], "Argument --hy: not allowed with argument --org. See: quoth log --help"),
    (["fork", "s1", "--at", "6"], "There is no event s1.6; session s1 has 5 events."),
    (["fork", "s1", "--at", "9" * 5000], f"There is no event s1.{'9' * 18}; session s1 has 5 events."),
    (["fork", "s1", "--at", "0"], "--at takes the number of an event, 1 or more, not 0."),
    (["fork", "s1", "--at", "x"], "--at takes the number of an event, 1 or more, not x."),
    (["fork"], "The following arguments are required: ID. See: quoth fork --help"),
    (["export", "s1", "talk.txt"], f"{THERE_IS_A_FILE} talk.txt already."),
    (["export", "s1", "no/file"], f"no/file {CANNOT_BE_WRITTEN}: No such file or directory."),
    (["import", "none.hy"], f"{THERE_IS_NO_FILE} none.hy."),
    (
        ["import", "talk.txt"],
        f"{THIS_IS_NOT_A_SESSION}: a file of quoth export begins with (quoth-session …).",
    ),
    (["import", "."], f". {CANNOT_BE_READ}: Is a directory."),
    (["rm", "s1"], f"Remove session s1, and everything that waits there? {SAY_SO_WITH_YES}."),
    (["rm", "s1", "s2", "--yes"], f"{THERE_IS_NO_SESSION} s2 in this workspace. The latest are s1."),
    (
        ["resume", "s1"],
        f"{NOTHING_WAITS_IN_SESSION} s1. {TO_CONTINUE} its conversation: quoth resume s1 TEXT",
    ),
    (["resume", "s1", "--max-steps", "0"], None),
]


def test_a_mistake_is_told_in_one_sentence(here: Path) -> None:
    talk(here)
    before = digests(here)
    for words, sentence in MISTAKES:
        said = refused(here, *words)
        assert said == sentence or (sentence is None and said.startswith("Argument --max-steps: "))
    assert digests(here) == before


# Forking


def test_a_fork_goes_on_from_its_place_and_makes_no_call_twice(here: Path) -> None:
    place = wait(here)
    forked = quoth("fork", "s1", "--at", str(place), cwd=here)
    new = forked.out.strip()
    assert forked.err == lines(
        f"quoth: It has the first {place} events of session s1.",
        f"quoth: To continue: quoth resume {new}",
    )
    assert digests(here, new)[:place] == digests(here)[:place]
    assert done(here, "log", f"{new}.{place + 1}").endswith(f", digest {digests(here, new)[place]}")
    assert f'{{"session" "s1"  "at" {place}}}' in done(here, "log", f"{new}.{place + 1}", "--hy")
    assert quoth("resume", new, cwd=here).code == 3
    assert (here / "count").read_text() == "2"
    approve(here)
    assert done(here, "resume", new) == "It is done."
    assert (here / "count").read_text() == "3"
    assert quoth("resume", "s1", cwd=here).code == 3  # the file is there by now, which was not shown
    approve(here)
    assert done(here, "resume", "s1") == "It is done."  # and the other goes on by itself
    assert (here / "count").read_text() == "4"
    for session in ("s1", new):
        kept(here, lambda store, session=session: Transcript(lambda: store).verify(session))


def test_a_call_that_had_begun_is_unknown_in_a_fork(here: Path) -> None:
    place = wait(here)
    new = told(here, "fork", "s1", "--at", str(place - 1))["session"]  # without the second receipt
    said = quoth("resume", new, cwd=here)
    assert said.code == 3
    assert IT_WAS_BEGUN_BEFORE_AND in said.err
    assert (here / "count").read_text() == "2"


def test_a_fork_of_a_fork_says_so(store: Store) -> None:
    transcript = Transcript(lambda: store)
    transcript.add("s", "session", {"user": "ann", "tools": ["a.hy"]})
    first, _ = fork_session(store, "s")
    second, count = fork_session(store, first)
    assert count == 2
    last = transcript.last(second, "session")
    assert last is not None
    assert last.data == {"user": "ann", "tools": ["a.hy"], "from": {"session": first, "at": 2}}
    store.execute("UPDATE events SET form = replace(form, 'ann', 'bob') WHERE session = 's'")
    changed = complaint(TranscriptError, lambda: fork_session(store, "s"))
    assert changed == f"Event s.1 {WAS_CHANGED_AFTER_IT_WAS}."


def test_a_fork_of_all_keeps_what_programs_have_left(tmp_path: Path) -> None:
    given = {"workspace": tmp_path, "user": "ann"}
    with Agent(session="s", **given) as agent:
        agent.eval("(defn twice [x] (* 2 x))")
    new, _ = kept(tmp_path, lambda store: fork_session(store, "s"))
    early, _ = kept(tmp_path, lambda store: fork_session(store, "s", 1))
    with Agent(session=new, **given) as agent:
        assert agent.eval("(twice 21)").value == 42
    with Agent(session=early, **given) as agent:
        assert agent.eval("(twice 21)").status == "error"


def test_what_was_too_long_to_show_is_there_in_a_fork(store: Store) -> None:
    Transcript(lambda: store).add("s", "session", {"user": "ann"})
    id = StorePages(lambda: store, "s", "ann", 100).keep("far too long")
    for new in (fork_session(store, "s")[0], fork_session(store, "s", 1)[0]):
        assert StorePages(lambda: store, new, "ann", 100).page(id)[0] == "far too long"
        assert "has no stored text" in complaint(
            ToolError, lambda new=new: StorePages(lambda: store, new, "bob", 100).page(id)
        )


# To another store


def test_a_session_is_the_same_in_another_store_and_goes_on_there(here: Path, tmp_path_factory: Any) -> None:
    wait(here)
    other = {"env": {"QUOTH_STATE": str(tmp_path_factory.mktemp("other"))}}
    assert quoth("export", "s1", "s1.hy", cwd=here).err.startswith("quoth: Wrote ")
    assert done(here, "export", "s1") == (here / "s1.hy").read_text().rstrip("\n")
    taken = quoth("import", "s1.hy", cwd=here, **other)
    assert (taken.code, taken.out) == (0, "s1\n")
    assert taken.err.endswith("quoth: To continue: quoth resume s1\n")
    assert digests(here, **other) == digests(here)
    for way in ("--hy", "--org", "--full"):
        assert done(here, "log", "s1", way, **other) == done(here, "log", "s1", way)
    again = told(here, "import", "s1.hy", **other)
    assert again == {"session": "s1", "events": len(digests(here)), "new": False}
    assert done(here, "import", "-", "--as", "s2", stdin=(here / "s1.hy").read_text(), **other) == "s2"

    had = f"--model scripted:{here}/program.txt --tools {here}/count.hy --policy {here}/allow.hy"
    assert refused(here, "resume", "s1", **other) == (
        "Session s1 was imported, and what runs code, makes rules or names a server is for you to choose: "
        f"it had {had}. Give these, or others."
    )
    how = ("--model", "scripted:program.txt", "--tools", "count.hy", "--policy", "allow.hy")
    assert quoth("resume", "s1", *how, cwd=here, **other).code == 3
    assert (here / "count").read_text() == "2"
    approve(here, **other)
    assert done(here, "resume", "s1", **other) == "It is done."  # with what was given here
    assert (here / "count").read_text() == "3"
    other_one = "Another session is named s1; give this one an id: --as ID"
    assert refused(here, "import", "s1.hy", **other) == other_one
    assert THE_CHAIN_IS_WHOLE in done(here, "audit", "verify", **other)


def test_what_was_imported_chooses_no_code_no_rules_and_no_server(store: Store) -> None:
    chosen = {
        ("tools", "x.hy"): True,
        ("policy", "/x/p.hy"): True,
        ("gate", "/x/g.hy"): True,
        ("base_url", "http://localhost:1/v1"): True,
        ("model", "scripted:/x/reply.hy"): True,
        ("model", "local:/x/m.gguf"): True,
        ("model", "scripted:/x/reply.txt"): True,
        ("model", "scripted:reply.hy"): True,
        ("model", "local:m.gguf"): True,
        ("model", "openai:gpt-5"): True,
        ("model", "local-large"): True,
        ("model", "local"): False,
        ("model", "local-small"): False,
        ("dialect", "native"): False,
        ("belt", "search"): False,
    }
    assert {key: reaches_out(*key) for key in chosen} == chosen
    transcript = Transcript(lambda: store)
    transcript.add("s", "session", {"user": "ann"})
    assert import_session(store, "t", list(transcript.events("s")))
    assert (transcript.imported("s"), transcript.imported("t")) == (0, 1)
    new, _ = fork_session(store, "t")
    assert transcript.imported(new) == 2
    transcript.add("t", "session", {"user": "ann", "belt": "full"})  # chosen here
    new, _ = fork_session(store, "t")
    assert transcript.imported(new) == 1
    early, _ = fork_session(store, "t", 1)
    assert transcript.imported(early) == 2
    own, _ = fork_session(store, "s")
    assert transcript.imported(own) == 0


def test_another_users_part_of_an_imported_session_stays_foreign_in_a_fork(store: Store) -> None:
    transcript = Transcript(lambda: store)
    for user in ("ann", "bob"):
        transcript.add("s", "session", {"user": user, "tools": ["/elsewhere/evil.hy"]})
    assert import_session(store, "t", list(transcript.events("s")))
    transcript.add("t", "session", {"user": "ann", "tools": []})  # chosen here
    new, _ = fork_session(store, "t")
    foreign = {user: Session(transcript, new, user, Path()).foreign() for user in ("ann", "bob")}
    assert foreign == {"ann": False, "bob": True}


def test_limits_of_elsewhere_and_unknown_ones_are_not_taken_over(store: Store) -> None:
    limits = {"steps": 7, "of-another-version": 1}
    Transcript(lambda: store).add("s", "session", {"user": "ann", "limits": limits})
    import_session(store, "t", list(Transcript(lambda: store).events("s")))
    options = {session: take_over(Options(), store, session, "ann") for session in ("s", "t")}
    assert RunLimits.of(options["s"].limits or {}) == RunLimits(steps=7)
    assert options["t"].limits is None


@pytest.mark.parametrize(
    ("now", "taken"),
    [
        ({}, ("redis://a", "shop", "a.key")),
        ({"remote": "redis://b"}, ("redis://b", None, None)),  # which has a prefix and a key of its own
    ],
)
def test_prefix_and_key_of_a_session_go_with_its_own_catalogue(
    store: Store, now: dict[str, Any], taken: tuple[Any, ...]
) -> None:
    place = {"remote": "redis://a", "prefix": "shop", "key-file": "a.key"}
    Transcript(lambda: store).add("s", "session", {"user": "ann", **place})
    options = take_over(replace(Options(), **now), store, "s", "ann")
    assert (options.remote, options.prefix, options.key) == taken


def test_a_session_written_by_hand_breaks_no_command(here: Path, store: Store) -> None:
    Transcript(lambda: store).add("s", "session", {"tools": []})
    text = lines(written(Transcript(lambda: store).events("s"), "s", 1, "0"))
    files(here, {"hand.hy": text})
    assert refused(here, "import", "hand.hy") == f"Event s.1 {CANNOT_BE_USED}: it has no :user."
    assert told(here, "sessions") == []


def test_a_secret_is_not_exported(here: Path) -> None:
    files(
        here,
        {
            "pay.hy": '(require quoth [def-cognitive-tool])\n(def-cognitive-tool pay "Pay."\n'
            '  :parameters [pin {:type str  :secret True}]\n  :body "paid")',
            "pay.txt": f'(pay :pin "hunter2x")\n---\n{WRITE}',
        },
    )
    said = quoth(
        "run", "Pay.", "--model", "scripted:pay.txt", "--tools", "pay.hy", "--session", "s1", cwd=here
    )
    assert said.code == 3
    exported = quoth("export", "s1", cwd=here)
    assert "hunter2x" not in exported.out
    assert exported.err == (
        "quoth: The export leaves out declared secrets, so waiting calls that contain them cannot be run "
        "from it.\n"
    )
    for way in ("--hy", "--org", "--json", "--full"):
        assert "hunter2x" not in done(here, "log", "s1", way)


# Removing


def test_a_session_is_removed_with_what_waits_in_it_and_the_audit_stays(here: Path) -> None:
    wait(here)
    talk(here, "s2")
    audit = done(here, "audit")
    assert len(told(here, "pending")) == 1
    assert done(here, "rm", "s1", "--yes") == "Removed session s1."
    assert told(here, "pending") == []
    assert [one["id"] for one in told(here, "sessions")] == ["s2"]
    assert refused(here, "resume", "s1") == f"{THERE_IS_NO_SESSION} s1 in this workspace. The latest are s2."
    assert done(here, "audit") == audit
    assert THE_CHAIN_IS_WHOLE in done(here, "audit", "verify")
    left = kept(here, lambda store: store.execute("SELECT count(*) FROM receipts WHERE session = 's1'"))
    assert left == [(0,)]
    assert told(here, "rm", "s2", "--yes") == {"removed": ["s2"]}


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_a_person_is_asked_at_a_terminal(here: Path, answer: str, code: int) -> None:
    kept(here, lambda store: Transcript(lambda: store).add("s1", "session", {"user": "ann"}))
    with Terminal("rm", "s", cwd=here) as terminal:
        terminal.see("Remove session s1, and everything that waits there? [y/N]")
        terminal.type(answer + "\n")
        terminal.see("Removed session s1." if code == 0 else "quoth: Nothing was removed.")
        assert terminal.ended() == code


def test_a_session_that_another_process_drives_is_not_removed(here: Path) -> None:
    kept(here, lambda store: Transcript(lambda: store).add("s1", "session", {"user": "ann"}))
    with alone(store_path(here), "s1"):
        assert refused(here, "rm", "s1", "--yes") == f"Session s1 {IS_BEING_DRIVEN_BY_ANOTHER}."
    assert done(here, "rm", "s1", "--yes") == "Removed session s1."


def test_a_program_that_a_tool_runs_removes_and_imports_nothing(here: Path) -> None:
    inside = {"env": {"QUOTH_INSIDE": "1"}}
    assert refused(here, "rm", "s1", "--yes", **inside) == (
        "A program that a tool runs cannot remove sessions."
    )
    assert refused(here, "import", "x", **inside) == "A program that a tool runs cannot import sessions."


# Going on


def test_a_conversation_goes_on_with_more_words(here: Path) -> None:
    talk(here)
    assert done(here, "resume", "s1", "And", "two?") == "Two."
    assert told(here, "resume", "--last", "Three?")["reply"] == "Three."
    events = told(here, "log", "s1")
    stimuli = [(event["text"], event.get("after")) for event in events if event["kind"] == "stimulus"]
    assert stimuli == [("Say one.", None), ("And two?", "r1"), ("Three?", "r2")]
    last = [event for event in events if event["kind"] == "request"][-1]
    assert [message["content"] for message in last["messages"]] == ["Three?"]
    over = quoth("resume", "--session", "s1", "Four?", cwd=here)
    assert (over.code, over.out) == (1, "")
    assert THE_SCRIPT_IS_EXHAUSTED in over.err


def test_words_wait_for_what_is_unfinished(here: Path) -> None:
    wait(here)
    said = quoth("resume", "s1", "Go", "on.", cwd=here)
    assert said.code == 3
    assert "quoth: Session s1 still waits, so this was not sent: Go on.\n" in said.err
    approve(here)
    files(here, {"program.txt": f"{PROGRAM}\n---\nIt is done.\n---\nSo it goes."})
    assert done(here, "resume", "s1", "Go", "on.") == "It is done.\nSo it goes."


def test_a_run_that_was_stopped_goes_on_with_more_steps(here: Path) -> None:
    files(here, {"long.txt": '(echo "a")\n---\n(echo "b")\n---\nBoth.'})
    how = ("--model", "scripted:long.txt", "--session", "s1", "--max-steps", "2")
    assert quoth("run", "Say both.", *how, cwd=here).code == 1
    assert quoth("resume", "s1", cwd=here).code == 1
    assert done(here, "resume", "s1", "--max-steps", "5") == "Both."


# What has changed


@pytest.mark.parametrize(
    ("then", "now", "sentences"),
    [
        ({}, {"versions": {"a": "1"}, "rules": "x"}, []),
        ({"versions": {"a": "1"}, "rules": "x"}, {"versions": {"a": "1"}, "rules": "x"}, []),
        ({"versions": {"a": "1"}, "rules": "x"}, {"versions": "a 1", "rules": "x"}, []),
        (
            {"versions": "a 1\nb 1", "rules": "x"},
            {"versions": "a 1\nb 2", "rules": "x"},
            ["The tool b has changed since the session was last used."],
        ),
        (
            {"versions": {"a": "1", "b": "1"}, "rules": "x", "tools": ["/none/t.hy", "/"]},
            {"versions": {"b": "2", "c": "1"}, "rules": "y"},
            [
                f"The tool file /none/t.hy {IS_NOT_THERE_ANY_MORE}.",
                "The tool b has changed since the session was last used.",
                "The tool a was removed since the session was last used.",
                "The tool c was added since the session was last used.",
                "The policy has changed since the session was last used.",
            ],
        ),
    ],
    ids=["first", "same", "same as lines", "lines", "all"],
)
def test_what_has_changed_is_one_sentence_each(then: Any, now: Any, sentences: list[str]) -> None:
    assert list(changes_of(then, now)) == sentences


def test_a_changed_tool_file_and_policy_are_reported(here: Path) -> None:
    wait(here)
    source = (here / "count.hy").read_text()
    files(
        here, {"count.hy": source.replace("Add one", "Add 1"), "allow.hy": "(allow (count-up))(ask (echo))"}
    )
    assert quoth("resume", "s1", cwd=here).err.splitlines()[:2] == [
        "quoth: The tool count-up has changed since the session was last used.",
        "quoth: The policy has changed since the session was last used.",
    ]
    (here / "count.hy").unlink()
    approve(here)
    said = quoth("resume", "s1", cwd=here)
    assert said.err.splitlines()[:2] == [
        f"quoth: The tool file {here}/count.hy {IS_NOT_THERE_ANY_MORE}.",
        "quoth: The tool count-up was removed since the session was last used.",
    ]


def versions(here: Path, *names: str, doc: str = "") -> dict[str, Any]:
    """An agent's options with tools of these names."""
    made = [tool(name, lambda: "done", source=doc) for name in names]
    return {"workspace": here, "session": "s", "user": "ann", "tools": made}


def test_a_model_that_is_gone_on_with_is_told_once(tmp_path: Path) -> None:
    with Agent(model=scripted("One."), **versions(tmp_path, "look", "stay")) as agent:
        agent.say("First.")
    script = scripted("Two.", "Three.")
    with Agent(model=script, **versions(tmp_path, "stay", "fresh")) as agent:
        agent.say("Second.")
        agent.say("Third.")
    gone, new = f"{THESE_TOOLS_ARE_GONE_AND}: look.", "(fresh): A tool for a test."
    note = f"{gone} These tools are new: {new}"
    said = [message["content"] for message in json.loads(script.seen[-1])][1:]
    assert said == ["First.", "One.", note, "Second.", "Two.", "Third."]
    with Agent(model=scripted("Four."), **versions(tmp_path, "stay", "fresh")) as agent:
        agent.say("Fourth.")
        assert agent._agent.host.changes() == ToolDrift()


def test_a_model_whose_run_is_resumed_is_told_after_the_result(tmp_path: Path) -> None:
    with Agent(model=scripted("(put)"), **waiting(tmp_path, "old")) as agent:
        assert agent.run("Put.").status == "pending"
        agent.broker.decide(agent.broker.requests()[0].id, Decision(by="ann"))
    script = scripted("Done.")
    with Agent(model=script, **waiting(tmp_path, "new")) as agent:
        (reply,) = agent.resume()
        assert isinstance(reply, Reply)
        assert reply.status == "done"
    (request,) = script.seen
    assert json.loads(request)[-1] == {
        "role": "user",
        "content": "These tools have changed since you saw them; they are called as (peek :new str).",
    }


def waiting(here: Path, name: str) -> dict[str, Any]:
    put = tool("put", lambda: "put", effects=["writes"])
    peek = tool("peek", lambda **_: "seen", params={name: {"type": str}}, effects=["reads"])
    return {"workspace": here, "session": "s", "user": "ann", "tools": [put, peek]}


# In the REPL


def test_the_repl_says_with_which_conversation_it_goes_on(here: Path) -> None:
    first = quoth("--session", "s1", "--model", "scripted:talk.txt", cwd=here, stdin="hi\nyou\n")
    assert first == Said(0, "One.\nTwo.\n", "")
    again = quoth("--session", "s1", cwd=here, stdin="more\n")
    assert again == Said(
        0,
        "Three.\n",
        "Continuing the conversation of session s1, 2 messages so far. For a new one, type: ,new\n",
    )
    talk(here, "s2")
    other = quoth("--session", "s2", cwd=here, stdin="")
    assert other.err == (
        "A new conversation in session s2. To continue that of its last run: quoth resume s2 TEXT\n"
    )


def test_an_agent_tells_what_it_can_resume(tmp_path: Path) -> None:
    agent = AsyncAgent(workspace=tmp_path, session="s", model=scripted())
    assert (agent.runs.unfinished(), agent.runs.resumable()) == ([], False)
    assert kept(tmp_path, lambda store: StoreAudit(lambda: store).verify().ok)


def test_a_run_whose_replies_could_not_be_used_goes_on_with_the_command_that_it_names(here: Path) -> None:
    (here / "bad.txt").write_text("(list-files\n---\n" * 3 + "Sorry. Done.")
    model = ("--model", "scripted:bad.txt")
    how = "quoth: To continue the conversation: quoth resume s TEXT"
    failed = quoth("run", "go", "--session", "s", *model, cwd=here)
    assert (failed.code, failed.err.splitlines()[-1]) == (1, how)
    again = quoth("resume", "s", *model, cwd=here)
    assert (again.code, again.err.splitlines()[-1]) == (1, how)
    assert done(here, "resume", "s", "Try it in words.", *model) == "Sorry. Done."


def test_a_run_that_was_stopped_at_a_repeated_call_stops_there_again_unless_more_are_allowed(
    here: Path,
) -> None:
    (here / "loop.txt").write_text('(process :id "x")\n---\n' * 6 + "Enough.")
    model = ("--model", "scripted:loop.txt")
    for words in (("run", "go", "--session", "s"), ("resume", "s")):
        said = quoth(*words, *model, cwd=here)
        assert "the model kept repeating the call (process" in said.err.splitlines()[-2], said
    assert done(here, "resume", "s", "--max-repeats", "9", *model) == "Enough."
