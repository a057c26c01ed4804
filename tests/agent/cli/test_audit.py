"""``quoth audit``: what was called, filtered and printed, and whether anybody changed it since."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_WHOLE_NUMBER_FROM_1,
    CANNOT_BE_OPENED,
    IS_NOT_A_FOLDER,
    IT_WRITES_FILES,
    LEAVE_OUT,
    THE_CHAIN_IS_WHOLE,
    THERE_IS_NO_TOOL_NAMED,
    WAS_CHANGED_AFTER_IT_WAS,
)
from words import Said, command, quoth

from quoth.tools.history.audit import StoreAudit
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A workspace in which four things were called."""
    quoth("call", '(echo :text "token=abc")', "--user", "ann", "--session", "s1", cwd=tmp_path)
    quoth("call", '(write-file :path "a" :content "x")', "--user", "ann", "--session", "s2", cwd=tmp_path)
    quoth("call", '(write-file :path "a" :content "x")', "--user", "bob", "--yes", cwd=tmp_path)
    quoth("call", "(eco 1)", "--user", "bob", cwd=tmp_path)
    return tmp_path


def listed(here: Path, *words: str) -> list[dict[str, Any]]:
    """The rows that ``quoth audit`` gives to a program."""
    said = quoth("audit", "--json", *words, cwd=here)
    assert (said.code, said.err) == (0, "")
    return [json.loads(line) for line in said.out.splitlines()]


def tamper(here: Path, sql: str) -> None:
    store = Store(store_path(here))
    store.execute(sql)
    store.close()


def sentence(said: Said) -> str:
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("quoth: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("quoth: ").rstrip("\n")


def test_a_person_reads_what_was_called_and_what_became_of_it(here: Path) -> None:
    said = quoth("audit", cwd=here)
    assert (said.code, said.err) == (0, "")
    first, second, *notes = said.out.splitlines()
    assert first.split()[0] == "1"
    assert first.endswith('ann  s1  call  (echo :text "token=[secret]")')
    assert second.split()[3] == "pending"
    told = [re.sub(r"request \w{5}", "request ID", note.strip()) for note in notes if note[:7].isspace()]
    assert told == [
        f"policy: ask: {IT_WRITES_FILES}",
        "consent: pending",
        f"write-file waits for a person's approval: {IT_WRITES_FILES} (request ID).",
        f"policy: ask: {IT_WRITES_FILES}",
        "consent: allow: everything was allowed beforehand",
        "did created:a",
        f"{THERE_IS_NO_TOOL_NAMED} eco. Did you mean echo?",
    ]


def test_a_program_reads_one_object_a_line(here: Path) -> None:
    rows = listed(here)
    assert [(row["seq"], row["tool"], row["status"]) for row in rows] == [
        (1, "echo", "ok"),
        (2, "write-file", "pending"),
        (3, "write-file", "ok"),
        (4, "eco", "unknown"),
    ]
    assert all(row["id"] and row["hash"] for row in rows)
    assert rows[2]["side_effects"] == ["created:a"]


def test_rows_are_filtered(here: Path) -> None:
    def seqs(*words: str) -> list[int]:
        return [row["seq"] for row in listed(here, *words)]

    assert seqs("--tool", "Write_File") == [2, 3]
    assert seqs("--tool", "write-file", "--last", "1") == [3]
    assert seqs("--status", "ok") == [1, 3]
    assert seqs("--user", "ann") == [1, 2]
    assert seqs("--session", "s2") == [2]
    assert seqs("--user", "ann", "--status", "denied") == []
    assert seqs("--last", "2") == [3, 4]
    assert seqs("--last", "99") == [1, 2, 3, 4]
    assert seqs("--last", "9" * 20) == [1, 2, 3, 4]
    first = listed(here, "--last", "4")[1]["ts"]
    assert seqs("--since", first) == [2, 3, 4]
    assert seqs("--since", first.replace("+00:00", "Z")) == [2, 3, 4]
    assert seqs("--since", "1h") == seqs("--since", "2020-01-01") == seqs("--since", "2020-01-01T00:00+09:00")
    assert seqs("--since", "2999-01-01") == []
    said = quoth("audit", "--tool", "write-fil", cwd=here)
    assert said == Said(0, "", "quoth: The audit has no such call of write-fil. Did you mean write-file?\n")
    said = quoth("audit", "--tool", "echo", "--status", "denied", cwd=here)
    assert said.err == "quoth: The audit has no such call of echo.\n"


def test_a_name_is_not_empty_and_a_session_has_no_slash(here: Path) -> None:
    for words, why in (
        (("--user", ""), "expected a name, not an empty text"),
        (("--session", " "), "expected a name, not an empty text"),
        (("--session", "../x"), "The name of a session has no slash: ../x."),
    ):
        said = quoth("call", '(echo "x")', *words, cwd=here)
        assert (said.code, why in said.err) == (2, True), said


def test_a_name_that_is_like_none_gets_no_wrong_guess(here: Path) -> None:
    said = quoth("models", "test", "nope", cwd=here)
    assert (said.code, "There is no model nope." in said.err) == (2, True)
    assert "Did you mean" not in said.err


def test_a_trail_nobody_touched_is_whole(here: Path) -> None:
    said = quoth("audit", "verify", cwd=here)
    head = listed(here)[-1]["hash"]
    assert said == Said(0, f"4 rows, {THE_CHAIN_IS_WHOLE}. Head: {head}\n", "")
    assert json.loads(quoth("audit", "verify", "--json", cwd=here).out) == {
        "ok": True,
        "rows": 4,
        "head": head,
        "faults": [],
    }
    assert quoth("audit", "verify", "--head", head[:10].upper(), cwd=here).code == 0


def test_a_changed_row_is_named(here: Path) -> None:
    name = listed(here)[1]["id"]
    tamper(here, "UPDATE audit SET status = 'ok' WHERE seq = 2")
    said = quoth("audit", "verify", cwd=here)
    assert said == Said(
        1,
        f"Row 2 (call {name}) {WAS_CHANGED_AFTER_IT_WAS}.\n",
        f"quoth: The audit trail {WAS_CHANGED_AFTER_IT_WAS}: 1 fault in 4 rows.\n",
    )
    found = json.loads(quoth("audit", "verify", "--json", cwd=here).out)
    assert (found["ok"], [(fault["seq"], fault["id"]) for fault in found["faults"]]) == (False, [(2, name)])


def test_missing_rows_are_named(here: Path) -> None:
    tamper(here, "DELETE FROM audit WHERE seq IN (1, 4)")
    said = quoth("audit", "verify", cwd=here)
    assert (said.code, said.out) == (1, "Row 1 is missing.\nRow 4 is missing at the end.\n")


def test_a_trail_that_was_made_anew_lacks_the_head_that_was_noted(here: Path) -> None:
    head = listed(here)[-1]["hash"]
    store_path(here).unlink()
    quoth("call", '(echo :text "a")', cwd=here)
    assert quoth("audit", "verify", cwd=here).code == 0
    said = quoth("audit", "verify", "--head", head, cwd=here)
    assert (said.code, said.out) == (1, f"No row has the hash {head}, which was noted from this trail.\n")


def test_where_nothing_was_called_there_is_nothing_and_nothing_is_made(tmp_path: Path, state: Path) -> None:
    assert quoth("audit", cwd=tmp_path) == Said(0, "", "")
    assert quoth("audit", "verify", cwd=tmp_path) == Said(0, f"0 rows, {THE_CHAIN_IS_WHOLE}.\n", "")
    assert quoth("audit", "verify", "--head", "deadbeef", cwd=tmp_path).code == 1
    assert list(state.rglob("*.sqlite")) == []


def test_another_workspace_has_another_trail(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    assert listed(other) == []
    assert len(listed(other, "--workspace", str(here))) == 4


def test_a_reader_that_has_enough_ends_it_quietly(here: Path) -> None:
    for number in range(3):
        quoth("call", f'(echo :text "{number}")', cwd=here)
    shell = f"{' '.join(command())} audit --json | head -n 1"
    done = subprocess.run(shell, shell=True, cwd=here, capture_output=True, text=True, check=False)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


def test_what_was_written_cannot_steer_a_terminal(here: Path) -> None:
    quoth("call", '(nobody :x "\\x1b[31m")', cwd=here)
    assert "\x1b" not in quoth("audit", cwd=here).out


MISTAKES = [
    (["verfy"], "Unknown action of quoth audit: verfy. Did you mean verify?"),
    (["everything"], "Unknown action of quoth audit: everything. The only action is: quoth audit verify."),
    (["--status", "okay"], "There is no status okay. Did you mean ok?"),
    (["--last", "0"], f"--last takes {A_WHOLE_NUMBER_FROM_1}, not 0."),
    (["--last", "-1"], None),
    (["--last", "x"], f"--last takes {A_WHOLE_NUMBER_FROM_1}, not x."),
    (
        ["--since", "yesterday"],
        "--since takes a time such as 2026-03-10 or 2026-03-10T14:05 (UTC), or 30m, 2h, 7d; not yesterday.",
    ),
    (["--since", "999999w"], None),
    (["--head", "deadbeef"], "--head needs verify: quoth audit verify --head HASH"),
    (
        ["verify", "--head", "xyz"],
        "--head must be a hash that quoth audit verify printed, or at least its first 8 digits.",
    ),
    (["verify", "--tool", "echo"], f"quoth audit verify checks every row; {LEAVE_OUT}tool."),
    (["--workspace", "nowhere"], f"The workspace nowhere {IS_NOT_A_FOLDER}."),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_mistake_is_told_in_one_sentence(tmp_path: Path, words: list[str], said: str | None) -> None:
    told = sentence(quoth("audit", *words, cwd=tmp_path))
    assert said is None or told == said


def test_a_store_that_cannot_be_read_is_told(here: Path) -> None:
    store_path(here).write_text("a letter" * 1000)
    assert f" {CANNOT_BE_OPENED}: " in sentence(quoth("audit", cwd=here))


def test_what_python_reads_is_what_the_command_prints(here: Path) -> None:
    store = Store(store_path(here))
    rows = list(StoreAudit(lambda: store).select())
    store.close()
    assert rows == listed(here)
