"""What is remembered, as a person sees and changes it: quoth memory."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_NUL_CHARACTER,
    CANNOT_BE_OPENED,
    CHARACTERS_THIS_WOULD_MAKE_IT,
    IS_LIMITED_TO,
    IS_LONGER_THAN,
    IS_STORED_IN,
    LEAVE_OUT,
    MUST_BE_1_TO,
    NO_SERVER_ANSWERS_THERE,
    NOTHING_WAS_CHANGED,
    PRINTABLE_CHARACTERS_WITHOUT_A_SPACE,
    SAY_SO_WITH_YES,
    THERE_IS_A_FILE,
    THERE_IS_NO_BLOCK_NAMED,
    THERE_IS_NO_FILE,
)
from words import Said, Terminal, command, complaint, files, quoth

from quoth.agent.terminal.input import edited
from quoth.tools.errors import UsageError
from quoth.tools.memory.transfer import Traces, traces
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

MINUTE = r"20\d\d-\d\d-\d\d \d\d:\d\d UTC"


@pytest.fixture(autouse=True)
def by_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_EMBEDDER", "none")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A workspace with two blocks."""
    done(tmp_path, "edit", "preferences", "--new", "--text", "User prefers dark mode", "--user", "ann")
    done(tmp_path, "edit", "notes", "--new", "--text", "A duck\n", "--kind", "archival", "--limit", "50")
    return tmp_path


def memory(folder: Path, *words: str, **more: Any) -> Said:
    return quoth("memory", *words, cwd=folder, **more)


def done(folder: Path, *words: str, **more: Any) -> str:
    """What a command that goes well prints."""
    said = memory(folder, *words, **more)
    assert said.code == 0, said.err
    return said.out


def told(folder: Path, *words: str, **more: Any) -> Any:
    """What it prints as JSON."""
    said = memory(folder, *words, "--json", **more)
    assert said.out.count("\n") == 1, said
    return json.loads(said.out)


def refused(folder: Path, *words: str, code: int = 2, **more: Any) -> str:
    """What it complains of, with nothing on stdout."""
    said = memory(folder, *words, **more)
    assert (said.code, said.out) == (code, ""), said
    return said.err.removeprefix("quoth: ").rstrip("\n")


def text(folder: Path, label: str = "preferences") -> str:
    found: str = told(folder, "show", label)["text"]
    return found


# Looking


def test_where_nothing_is_remembered_it_says_how_to_begin(tmp_path: Path, state: Path) -> None:
    said = memory(tmp_path, "list")
    assert said == Said(
        0,
        "",
        'quoth: The memory is empty. An agent adds a block with (block :operation "append" :label'
        ' "preferences" :content "…"), you with: quoth memory edit preferences --new\n',
    )
    assert told(tmp_path, "list") == told(tmp_path, "export") == told(tmp_path, "search", "duck") == []
    assert memory(tmp_path, "search", "duck") == Said(0, "", "quoth: No results.\n")
    assert refused(tmp_path, "show", "x") == f"{THERE_IS_NO_BLOCK_NAMED} x; there are no blocks yet."
    assert done(tmp_path, "export") == "#+TITLE: Memory\n"
    assert f"The memory is empty.\nThe memory {IS_STORED_IN} no store yet.\n" in done(tmp_path, "status")
    assert list(state.iterdir()) == []


def test_blocks_are_listed_one_a_line(here: Path) -> None:
    assert re.fullmatch(
        rf"notes        archival  read_write  7 of 50      v1  {MINUTE}\n"
        rf"preferences  core      read_write  22 of 5,000  v1  {MINUTE}\n",
        done(here, "list"),
    )
    assert done(here, "list", "--kind", "core").startswith("preferences  core")
    assert memory(here, "list", "--kind", "working").err == "quoth: No block is working.\n"
    first, second = told(here, "list")
    assert first | {"created": 0, "updated": 0} == {
        "label": "notes", "description": "", "kind": "archival", "permission": "read_write", "limit": 50,
        "version": 1, "created": 0, "updated": 0, "by": first["by"], "size": 7,
    }  # fmt: skip
    assert second["by"] == "a person (ann)"


def test_each_agent_has_its_own(here: Path) -> None:
    assert (
        refused(here, "list", "--agent", "other")
        == "The agent other has no blocks here. Agents with blocks: agent."
    )
    done(here, "edit", "mine", "--new", "--text", "x", "--agent", "other")
    assert [one["label"] for one in told(here, "list")] == ["notes", "preferences"]


def test_a_shared_block_is_its_owners(here: Path) -> None:
    assert done(here, "edit", "preferences", "--share", "other=append") == (
        "Shared preferences with the agent other. It may read and append.\n"
    )
    assert re.fullmatch(
        rf"preferences  core  append  22 of 5,000  v1  {MINUTE}  of agent\n",
        done(here, "list", "--agent", "other"),
    )
    assert told(here, "list", "--agent", "other")[0]["owner"] == "agent"
    assert told(here, "export", "--agent", "other") == []
    for words in (["edit", "preferences", "--text", "x"], ["forget", "preferences", "--yes"]):
        assert (
            refused(here, *words, "--agent", "other")
            == "preferences belongs to the agent agent. Add: --agent agent"
        )
    assert text(here) == "User prefers dark mode"
    assert told(here, "edit", "preferences", "--share", "third=read_only") == {
        "label": "preferences",
        "shares": {"other": "append", "third": "read_only"},
    }
    assert done(here, "edit", "preferences", "--share", "other=") == (
        "preferences is no longer shared with other.\n"
    )
    assert (
        refused(here, "list", "--agent", "other")
        == "The agent other has no blocks here. Agents with blocks: agent."
    )


def test_a_block_is_shown_with_what_is_known_of_it(here: Path) -> None:
    done(here, "edit", "preferences", "--description", "what\nshe likes", "--text", "Light mode")
    said = memory(here, "show", "preferences", "--history")
    assert said.out == "Light mode\nUser prefers dark mode\n"
    assert re.fullmatch(
        rf"quoth: core, read_write, 10 of 5,000 characters, version 2, {MINUTE}, by a person \(\w+\);"
        rf" what she likes\nquoth: version 1, {MINUTE}, by a person \(ann\):\n",
        said.err,
    )
    shown = told(here, "show", "preferences", "--history")
    assert (shown["text"], [one["text"] for one in shown["versions"]]) == (
        "Light mode",
        ["User prefers dark mode"],
    )
    assert "versions" not in told(here, "show", "preferences")


def test_what_is_remembered_is_found(here: Path) -> None:
    said = done(here, "search", "ducks", "--explain", "--domain", "archival_memory")
    assert re.fullmatch(rf"notes  \(archival_memory, {MINUTE}\)\n  A duck\n  [\d.]+ = words [\d.]+.*\n", said)
    (hit,) = told(here, "search", "-", "--limit", "1", "--scope", "agent", stdin="dark")
    assert (hit["label"], hit["text"], sorted(hit)[0]) == ("preferences", "User prefers dark mode", "at")
    assert told(here, "search", "dark", "--until", "2020-01-01") == []
    today = told(here, "show", "notes")["updated"][:10]
    assert told(here, "search", "ducks", "--since", today, "--until", today)[0]["label"] == "notes"
    assert memory(here, "search", "ducks", "--since", "2026-02-02", "--until", "2026-02-01").err == (
        "quoth: No time is after 2026-02-02 and before 2026-02-01: give --until a later time than --since.\n"
    )


def test_the_status_says_what_there_is(here: Path) -> None:
    done(here, "search", "duck")
    status = told(here, "status")
    assert status["agents"] == [
        {"agent": "agent", "kind": "core", "blocks": 1, "characters": 22},
        {"agent": "agent", "kind": "archival", "blocks": 1, "characters": 7},
    ]
    assert (status["blocks"], status["waiting"], status["place"]) == (2, 0, str(store_path(here)))
    said = memory(here, "status")
    assert said.out.splitlines()[:4] == [
        "agent  core      1 block  22 characters",
        "agent  archival  1 block  7 characters",
        f"The memory {IS_STORED_IN} {store_path(here)}.",
        "It is searched by words.",
    ]


# Changing


def test_only_this_makes_a_block_admin_human_or_partner(here: Path) -> None:
    for permission in ("human", "partner", "admin"):
        assert done(here, "edit", "preferences", "--permission", permission).startswith(
            f"Changed preferences: core, {permission}, 22 of 5,000 characters, version"
        )
        assert told(here, "list")[1]["permission"] == permission
    assert done(here, "edit", "preferences", "--permission", "admin").startswith(
        "Nothing to change in preferences"
    )
    assert told(here, "edit", "notes", "--kind", "working", "--limit", "0")["limit"] == 20_000


def test_a_text_comes_from_the_command_line_or_stdin(here: Path) -> None:
    done(here, "edit", "preferences", "--text", "-", stdin="two\nlines\n")
    assert text(here) == "two\nlines"
    done(here, "edit", "preferences", "--text", "")
    assert text(here) == ""


def test_an_editor_changes_a_text_as_in_git(here: Path) -> None:
    done(here, "edit", "preferences", env={"EDITOR": "sed -i s/dark/light/"})
    assert text(here) == "User prefers light mode"
    done(here, "edit", "preferences", env={"VISUAL": "sed -i s/light/no/", "EDITOR": "false"})
    assert text(here) == "User prefers no mode"
    done(here, "edit", "fresh", "--new", "--permission", "human", env={"EDITOR": "echo Hello >"})
    assert text(here, "fresh") == "Hello"
    assert told(here, "show", "fresh")["permission"] == "human"


@pytest.mark.parametrize(
    ("editor", "sentence"),
    [
        ("true", f"{NOTHING_WAS_CHANGED}."),
        (": >", f"The text is empty: {NOTHING_WAS_CHANGED}."),
    ],
)
def test_what_is_left_as_it_was_changes_nothing(here: Path, editor: str, sentence: str) -> None:
    assert memory(here, "edit", "preferences", env={"EDITOR": editor}) == Said(0, "", f"quoth: {sentence}\n")
    assert told(here, "show", "preferences")["version"] == 1


def test_what_was_typed_is_not_lost_when_it_cannot_be_kept(here: Path) -> None:
    done(here, "edit", "preferences", "--limit", "30")
    said = refused(here, "edit", "preferences", env={"EDITOR": "sed -i 's/$/ and much else/'"})
    path = re.fullmatch(
        rf"preferences {IS_LIMITED_TO} 30 characters; this would make it 36: 6 characters too many\. Nothing"
        r" was changed\. Your text is kept in (\S+)\.",
        said,
    )
    assert path, said
    assert Path(path[1]).read_text() == "User prefers dark mode and much else\n"
    assert Path(path[1]).parent.stat().st_mode & 0o077 == 0


def test_a_block_that_was_changed_meanwhile_is_not_written_over(here: Path) -> None:
    script = 'sed -i s/dark/light/ "$1"; QUOTH memory edit preferences --text "Changed by another"'
    files(here, {"slow.sh": script.replace("QUOTH", " ".join(command()))})
    said = refused(here, "edit", "preferences", env={"EDITOR": "sh slow.sh >/dev/null"})
    assert "preferences was changed by a person (" in said
    assert "Your text is kept in" in said
    assert text(here) == "Changed by another"


def test_without_an_editor_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    assert complaint(UsageError, lambda: edited("x", "x", print)) == (
        "No editor was found: set EDITOR, or give the text with --text TEXT (- reads stdin)."
    )


WRONG: dict[str, tuple[list[str], str]] = {
    "unknown label": (
        ["show", "preferenecs"],
        "There is no block named preferenecs. Did you mean preferences? The blocks are: notes, preferences.",
    ),
    "unknown label to edit": (
        ["edit", "note", "--permission", "human"],
        f"{THERE_IS_NO_BLOCK_NAMED} note. Did you mean notes? The blocks are: notes, preferences.",
    ),
    "unknown label to forget": (
        ["forget", "preferences", "x", "--yes"],
        f"{THERE_IS_NO_BLOCK_NAMED} x. The blocks are: notes, preferences.",
    ),
    "label taken": (
        ["edit", "notes", "--new", "--text", "x"],
        f"The block notes already exists. To edit it, {LEAVE_OUT}new.",
    ),
    "no text": (["edit", "fresh", "--new", "--text", " "], "The text is empty; no block was created."),
    "no label": (
        ["edit", " ", "--new", "--text", "x"],
        f"A label {MUST_BE_1_TO} 100 {PRINTABLE_CHARACTERS_WITHOUT_A_SPACE} ' '.",
    ),
    "unknown permission": (
        ["edit", "notes", "--permission", "humen"],
        "Unknown permission humen; use read_only, partner, human, append, read_write or admin.",
    ),
    "unknown kind": (
        ["edit", "notes", "--kind", "cor"],
        "Unknown kind of block cor; use core, working or archival.",
    ),
    "kind that is none": (
        ["list", "--kind", "x"],
        "Unknown kind of block x; use core, working or archival.",
    ),
    "limit passed": (
        ["edit", "notes", "--text", "x" * 51],
        f"notes {IS_LIMITED_TO} 50 {CHARACTERS_THIS_WOULD_MAKE_IT} 51: 1 character too many."
        f" {NOTHING_WAS_CHANGED}.",
    ),
    "limit below the text": (
        ["edit", "notes", "--limit", "5"],
        f"notes {IS_LIMITED_TO} 5 {CHARACTERS_THIS_WOULD_MAKE_IT} 7: 2 characters too many."
        f" {NOTHING_WAS_CHANGED}.",
    ),
    "limit that is none": (
        ["edit", "notes", "--limit", "-5"],
        "Argument --limit: expected a whole number, not -5. See: quoth memory edit --help",
    ),
    "shared with nobody": (
        ["edit", "notes", "--share", "librarian"],
        "--share takes AGENT=PERMISSION, such as librarian=append, and no other option of edit.",
    ),
    "not shared": (["edit", "notes", "--share", "librarian="], "notes is not shared with librarian."),
    "editor that fails": (
        ["edit", "notes"],
        "The editor false ended with exit code 1; nothing was changed.",
    ),
    "forgetting unasked": (
        ["forget", "notes"],
        f"Forget notes, with all earlier texts? {SAY_SO_WITH_YES}.",
    ),
    "unknown domain": (
        ["search", "x", "--domain", "files"],
        "Unknown search domain files; use archival_memory, conversations or all.",
    ),
    "unknown scope": (
        ["search", "x", "--scope", "me"],
        "Unknown search scope me; use agent, shared or all.",
    ),
    "too many hits": (
        ["search", "x", "--limit", "101"],
        f"The limit of a search {MUST_BE_1_TO} 100, not 101.",
    ),
    "date that is none": (
        ["search", "x", "--since", "yesterday"],
        "--since is a date or a time such as 2026-01-31 or 2026-01-31T09:30, not 'yesterday'.",
    ),
    "unknown format": (["export", "--format", "xml"], "Unknown format xml; use org or json."),
    "no file": (["import", "none.org"], f"{THERE_IS_NO_FILE} none.org."),
    "no memory": (
        ["import", "plain.txt"],
        "plain.txt does not contain memory blocks. Write a headline for each, as quoth memory export does.",
    ),
    "memory elsewhere": (
        ["list", "--memory", "mysql://ann:secret@host/db"],
        "The URL of the memory must be postgresql://USER:PASSWORD@HOST/DATABASE (or postgres://…), not mysql://."
        " Without a URL, the memory is in the workspace.",
    ),
    "unknown action": (["lsit"], "There is no action lsit of quoth memory. Did you mean list?"),
    "no action": ([], "The following arguments are required: ACTION. See: quoth memory --help"),
}


def test_bad_input_is_answered_with_a_sentence(here: Path) -> None:
    files(here, {"plain.txt": "x"})
    before = told(here, "export")
    for name, (words, sentence) in WRONG.items():
        assert refused(here, *words, env={"EDITOR": "false"}) == sentence, name
    assert told(here, "export") == before


def test_no_program_of_a_tool_changes_what_is_remembered(here: Path) -> None:
    for words in (["edit", "notes", "--text", "x"], ["forget", "notes", "--yes"], ["import", "m.org"]):
        files(here, {"m.org": done(here, "export")})
        assert refused(here, *words, env={"QUOTH_INSIDE": "1"}) == (
            "A program that a tool runs cannot change the memory with this command."
        )
    assert text(here, "notes") == "A duck\n"


# Forgetting


def test_what_is_forgotten_is_nowhere_in_the_file(here: Path) -> None:
    done(here, "edit", "notes", "--text", "A newer duck")
    done(here, "search", "duck")
    assert done(here, "forget", "notes", "--yes") == "Forgot notes, with all earlier texts.\n"
    assert [one["label"] for one in told(here, "list")] == ["preferences"]
    assert told(here, "search", "duck") == []
    beside = [path for path in store_path(here).parent.iterdir() if path.is_file()]
    assert [path.name for path in beside if b"duck" in path.read_bytes()] == []


def test_what_the_records_still_hold_is_said(here: Path) -> None:
    quoth("call", '(echo :text "see notes, not my-notes")', "--session", "s1", cwd=here)
    quoth("call", '(echo :text "footnotes")', "--session", "s2", cwd=here)
    said = memory(here, "forget", "notes", "preferences", "--yes")
    assert said.err.splitlines() == [
        "quoth: The transcripts of 1 session still name notes. To remove them: quoth rm s1",
        "quoth: The audit trail still names notes in 1 call. Its rows are never removed; to remove the "
        f"trail, delete the whole store {store_path(here)}.",
    ]
    done(here, "edit", "notes", "--new", "--text", "x")
    assert told(here, "forget", "notes", "--yes") == {
        "forgotten": [{"label": "notes", "calls": 1, "sessions": ["s1"]}],
        "waiting": [],
        "copies": [],
        "erased": True,
    }
    store = Store(store_path(here))
    assert traces(store, "notes") == Traces(1, ("s1",))
    assert traces(store, "otes") == Traces(0, ())
    store.close()


def test_a_person_is_asked_before_anything_is_forgotten(here: Path) -> None:
    with Terminal("memory", "forget", "notes", cwd=here) as terminal:
        terminal.see("Forget notes, with all earlier texts? [y/N]")
        terminal.enter("n")
        terminal.see("Nothing was forgotten.")
        assert terminal.ended() == 1
    assert text(here, "notes") == "A duck\n"


# Taking elsewhere


def test_another_workspace_takes_it_all_in(here: Path) -> None:
    done(
        here,
        "edit",
        "preferences",
        "--permission",
        "human",
        "--text",
        "* dark\n#+end_example\n\r\nمرحبا 🦆  ",
    )
    other = here / "other"
    other.mkdir()
    done(here, "export", "m.org", "--history")
    assert done(here, "import", "m.org", "--workspace", "other") == "2 new blocks.\n"
    assert told(other, "list") == told(here, "list")
    assert told(other, "export", "--history") == told(here, "export", "--history")
    assert told(here, "import", "m.org", "--workspace", "other") == {"new": [], "replaced": []}
    done(other, "edit", "notes", "--text", "changed")
    assert refused(here, "import", "m.org", "--workspace", "other") == (
        "1 block exists already: notes. Nothing was changed. To replace, add --replace."
    )
    assert done(here, "import", "m.org", "--workspace", "other", "--replace") == (
        "0 new blocks, 1 replaced, 1 unchanged.\n"
    )
    assert told(other, "show", "notes", "--history")["versions"][0]["text"] == "changed"
    assert told(other, "show", "notes", "--history")["text"] == text(here, "notes")
    assert done(here, "import", "m.org", "--workspace", "other", "--replace") == (
        "0 new blocks, 2 unchanged.\n"
    )


def test_any_earlier_text_is_brought_back_by_its_version(here: Path) -> None:
    for words in ("second", "third"):
        done(here, "edit", "preferences", "--text", words)
    assert done(here, "edit", "preferences", "--version", "1", "--permission", "human") == (
        "Changed preferences: core, human, 22 of 5,000 characters, version 4.\n"
    )
    assert text(here) == "User prefers dark mode"
    done(here, "edit", "preferences", "--version", "3")
    assert text(here) == "third"
    assert refused(here, "edit", "preferences", "--version", "9") == (
        "preferences has no version 9; it has 1, 2, 3, 4, 5."
    )
    assert refused(here, "edit", "preferences", "--version", "1", "--text", "x") == (
        f"--version restores an earlier text; {LEAVE_OUT}text and --new."
    )


def test_a_forgotten_label_does_not_come_back_by_an_old_approval(here: Path) -> None:
    done(here, "edit", "preferences", "--permission", "human")
    form = '(block :operation "append" :label "preferences" :content "And tea")'
    assert quoth("call", form, "--session", "s", cwd=here).code == 3
    request = json.loads(quoth("pending", "--json", cwd=here).out)[0]["id"]
    said = memory(here, "forget", "preferences", "--yes")
    assert (
        f"A call that names preferences still waits for approval. To deny it: quoth deny {request}\n"
        in said.err
    )
    assert quoth("approve", request, cwd=here).code == 0
    went_on = quoth("resume", "s", cwd=here)
    assert went_on.code == 1
    assert (
        "The block preferences was forgotten after the question was asked, so it was not created."
        in went_on.err
    )
    assert [one["label"] for one in told(here, "list")] == ["notes"]


def test_json_goes_the_same_way(here: Path) -> None:
    assert memory(here, "export", "m.json", "--format", "json").err == "quoth: Wrote 2 blocks to m.json.\n"
    assert json.loads((here / "m.json").read_text()) == told(here, "export")
    assert refused(here, "export", "m.json") == f"{THERE_IS_A_FILE} m.json already."
    (here / "other").mkdir()
    done(here, "import", "-", "--workspace", "other", stdin=json.dumps(told(here, "export")))
    assert told(here / "other", "list") == told(here, "list")


def test_a_memory_in_postgresql_is_seen_and_changed_alike(tmp_path: Path, memory_url: str) -> None:
    where = {"QUOTH_MEMORY": memory_url}
    done(tmp_path, "edit", "preferences", "--new", "--text", "dark mode", env=where)
    done(tmp_path, "edit", "preferences", "--text", "light mode", "--permission", "human", env=where)
    assert done(tmp_path, "search", "mode", env=where).startswith("preferences  (core_memory, ")
    assert told(tmp_path, "status", env=where)["agents"] == [
        {"agent": "agent", "kind": "core", "blocks": 1, "characters": 10}
    ]
    assert told(tmp_path, "list") == []
    done(tmp_path, "export", "m.org", "--history", env=where)
    assert done(tmp_path, "import", "m.org") == "1 new block.\n"
    assert told(tmp_path, "list") == told(tmp_path, "list", env=where)
    done(tmp_path, "forget", "preferences", "--yes", env=where)
    assert told(tmp_path, "list", env=where) == []


def test_a_url_of_a_memory_is_shown_without_its_password(tmp_path: Path) -> None:
    away = {"QUOTH_MEMORY": "postgresql://ann:s3cr3t@127.0.0.1:1/memory"}
    assert refused(tmp_path, "status", code=1, env=away) == (
        f"The memory at postgresql://127.0.0.1:1/memory {CANNOT_BE_OPENED}: {NO_SERVER_ANSWERS_THERE}."
    )


def test_an_output_that_cannot_hold_it_is_refused(here: Path) -> None:
    done(here, "edit", "notes", "--text", "🦆")
    assert refused(here, "export", env={"PYTHONIOENCODING": "ascii"}, real=True) == (
        "Standard output is not UTF-8. Give a file: quoth memory export FILE"
    )


# What a mistake looks like


SURROGATE = "an unpaired surrogate (character 1)."
TOO_LARGE = "version must be a whole number, at most 1,000,000,000, not {}."
NO_MEMORY: dict[str, tuple[dict[str, Any], str]] = {
    "half a character in by": ({"by": "\ud800"}, f"a: by contains {SURROGATE}"),
    "a NUL in by": ({"by": "x\0"}, f"a: by contains {A_NUL_CHARACTER} 2)."),
    "half a character in an earlier text": (
        {"version": 2, "versions": [{"version": 1, "text": "\ud800"}]},
        f" text contains {SURROGATE}",
    ),
    "half a character in the by of an earlier text": (
        {"version": 2, "versions": [{"version": 1, "by": "\udfff"}]},
        f" by contains {SURROGATE}",
    ),
    "a version that no store can count to": ({"version": 10**22}, f"a: {TOO_LARGE.format(10**22)}"),
    "a version that cannot be counted on": ({"version": 2**63 - 1}, f"a: {TOO_LARGE.format(2**63 - 1)}"),
}


def test_what_no_store_can_hold_is_not_taken_in(here: Path) -> None:
    before = told(here, "export")
    for name, (more, sentence) in NO_MEMORY.items():
        files(here, {"m.json": json.dumps({"label": "a", "kind": "core", "text": ""} | more)})
        said = refused(here, "import", "m.json")
        assert said == f"m.json, block 1:{' ' * (sentence[0] != ' ')}{sentence}", name
    assert told(here, "export") == before


@pytest.mark.parametrize(
    ("option", "who"), [("--agent", "an agent"), ("--user", "a user")], ids=["agent", "user"]
)
@pytest.mark.parametrize("name", ["a\udcff", "a\nb", " "])
def test_a_name_that_is_none_is_refused(here: Path, option: str, who: str, name: str) -> None:
    for words in (["list"], ["edit", "notes", "--text", "x"], ["forget", "notes", "--yes"]):
        said = f"The name of {who} {MUST_BE_1_TO} 100 {PRINTABLE_CHARACTERS_WITHOUT_A_SPACE} {name!a}."
        if option == "--user" and "\udcff" in name:
            said = f"Argument --user: expected UTF-8 text, not {name!a}. See: quoth memory {words[0]} --help"
        if option == "--user" and not name.strip():
            said = f"Argument --user: expected a name, not an empty text. See: quoth memory {words[0]} --help"
        assert refused(here, *words, option, name) == said
    assert text(here, "notes") == "A duck\n"


def test_an_agent_has_a_name(here: Path) -> None:
    assert refused(here, "list", "--agent", "").endswith(", not ''.")


def test_a_file_that_never_ends_is_refused(here: Path) -> None:
    assert refused(here, "import", "/dev/zero") == f"/dev/zero {IS_LONGER_THAN} 100,000,000 bytes."


def test_a_pipe_is_a_file_like_any_other(here: Path) -> None:
    file = json.dumps({"label": "a", "kind": "core", "text": "x"})
    reading, writing = os.pipe()
    os.write(writing, file.encode())
    os.close(writing)
    assert done(here, "import", f"/proc/{os.getpid()}/fd/{reading}") == "1 new block.\n"
    os.close(reading)


def test_a_label_with_quotes_is_found_in_the_records(here: Path) -> None:
    for number, label in enumerate(['a "b"', "a\\b"]):
        done(here, "edit", label, "--new", "--text", "x")
        quoth("call", f"(echo :text {json.dumps(f'see {label} there')})", "--session", f"s{number}", cwd=here)
        assert told(here, "forget", label, "--yes")["forgotten"] == [
            {"label": label, "calls": 1, "sessions": [f"s{number}"]}
        ]


def test_where_no_meaning_is_wanted_none_is_advertised(here: Path) -> None:
    assert (
        memory(here, "status").err == "quoth: QUOTH_EMBEDDER is none, so memory is searched only by words.\n"
    )


def test_what_is_said_of_a_block_is_one_line(here: Path) -> None:
    files(here, {"m.json": json.dumps({"label": "a", "kind": "core", "text": "", "by": "x\ny"})})
    done(here, "import", "m.json")
    assert memory(here, "show", "a").err.endswith(", by x y\n")


def test_copies_of_what_is_forgotten_are_named(here: Path) -> None:
    for label in ("one", "two"):
        done(here, "edit", label, "--new", "--text", "A duck")
    said = memory(here, "forget", "notes", "--yes")
    assert said.err == "quoth: The same text is still in: one, two.\n"
    assert told(here, "forget", "one", "--yes")["copies"] == ["two"]
    assert memory(here, "forget", "two", "--yes").err == ""


def test_options_may_stand_before_the_action_too(here: Path) -> None:
    assert quoth("memory", "--json", "list", cwd=here).out.startswith('[{"label": "notes"')
    said = quoth("memory", "--memory", "postgresql://ann:secret@127.0.0.1:1/x", "list", cwd=here)
    assert said.code == 1
    assert NO_SERVER_ANSWERS_THERE in said.err
    assert "secret" not in said.out + said.err


def test_an_import_says_which_block_keeps_its_permission(here: Path) -> None:
    done(here, "edit", "notes", "--permission", "read_write")
    done(here, "export", "m.org")
    done(here, "edit", "notes", "--permission", "read_only")
    done(here, "edit", "notes", "--text", "changed")
    said = quoth("memory", "import", "m.org", "--replace", cwd=here)
    assert "notes keeps its stricter permission" in said.err
    assert told(here, "show", "notes")["permission"] == "read_only"
