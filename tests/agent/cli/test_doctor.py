"""quoth doctor: what is wrong is found, with its cure; no secret is told and nothing is made."""

from __future__ import annotations

import errno
import json
import os
import pwd
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from sentences import (
    CANNOT_BE_OPENED,
    CANNOT_BE_WRITTEN,
    DID_YOU_MEAN_OPENAI,
    IS_NEVER_CLOSED,
    IS_NOT_A_FOLDER,
    IS_NOT_A_REGULAR_FILE,
    THERE_IS_NO_MODEL,
)
from words import files, quoth

from quoth.agent.cli.doctor import TrialError, try_folder
from quoth.tools.storage.paths import agents_dir, how_to_write

SECRET = "sk-do-not-tell-1234567890"


def found(cwd: Path, *words: str, **env: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    said = quoth("doctor", "--json", *words, cwd=cwd, env=env)
    assert SECRET not in said.out + said.err
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(said.out):
        rows.setdefault(row["name"], []).append(row)
    return said.code, rows


OR_STATE = ", or: export QUOTH_STATE=DIR (a folder that you can write to)"


def test_what_another_user_owns_is_not_for_you_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    owner = pwd.getpwuid(os.geteuid()).pw_name
    cures = []
    for user in (os.geteuid(), os.geteuid() + 1):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.raises(TrialError) as told:
            try_folder(tmp_path)
        cures.append(told.value.cure)
    asked = f"ask {owner}, who owns {tmp_path}, for the right to write"
    assert cures == [f"chmod u+rwx {tmp_path}", asked]


def test_a_home_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "gone"
    monkeypatch.setenv("HOME", str(home))
    wanted = f"set HOME to a folder of yours ({home} does not exist){OR_STATE}"
    assert how_to_write(home / ".local" / "quoth", errno.EACCES, "QUOTH_STATE") == wanted
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "HOME" not in how_to_write(home / ".local" / "quoth", errno.EACCES, "QUOTH_STATE")


def test_a_user_without_a_home_is_told_what_to_type(tmp_path: Path) -> None:
    places = (
        "QUOTH_STATE",
        "QUOTH_CACHE",
        "QUOTH_CONFIG",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
    )
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", *places)}
    unknown = "import pwd; pwd.getpwuid = {}.__getitem__"  # as of a container's user with a number alone
    start = "from quoth.agent.entry import main; sys.argv[1:] = WORDS; sys.exit(main())"
    for words, code in ((["call", "(list-files)"], 2), (["doctor"], 1)):
        program = f"import sys; {unknown}; {start.replace('WORDS', repr(words))}"
        said = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert "Traceback" not in said.stderr
        assert said.returncode == code
        assert "You have no home folder" in said.stdout + said.stderr
        assert "export HOME=DIR" in said.stdout + said.stderr


def test_it_looks_at_everything_and_makes_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (tmp_path / "r.txt").write_text("Hello.")
    said = quoth("doctor", "--model", "scripted:r.txt", cwd=tmp_path, env={"QUOTH_STATE": str(state)})
    code, rows = found(tmp_path, "--model", "scripted:r.txt", QUOTH_STATE=str(state))
    assert (said.code, code) == (0, 0), rows
    assert set(rows) == {
        *(
            "quoth",
            "platform",
            "workspace",
            "model",
            "store",
            "cache",
            "sandbox",
            "boundary",
            "extras",
            "keys",
        ),
        *("rights", "terminal", "Emacs"),
    }
    assert rows["sandbox"][0]["detail"] == "programs run in it: (* 6 7) is 42"
    assert not state.exists()
    assert said.out.endswith("\n\nNothing is wrong.\n")


def test_a_key_is_told_of_by_its_place_alone(tmp_path: Path) -> None:
    _, rows = found(tmp_path, OPENAI_API_KEY=SECRET)
    assert "openai (OPENAI_API_KEY)" in rows["keys"][0]["detail"]
    assert rows["model"][0]["detail"].startswith("Without --model: openai:gpt-5-mini: key: OPENAI_API_KEY")


def test_a_folder_in_the_way_of_the_store_is_found(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("I am a file.")
    code, rows = found(tmp_path, QUOTH_STATE=str(tmp_path / "state"))
    assert (code, rows["store"][0]["state"]) == (1, "wrong")
    assert rows["store"][0]["cure"] == f"remove the file {tmp_path}/state{OR_STATE}"


def store_in(tmp_path: Path) -> Path:
    """The store of the workspace, made by a call."""
    quoth("call", '(echo :text "a")', cwd=tmp_path, env={"QUOTH_STATE": str(tmp_path / "state")})
    (store,) = (tmp_path / "state" / "workspaces").glob("*.sqlite")
    return store


@pytest.mark.parametrize("part", ["", "workspaces", "locks"])
@pytest.mark.parametrize("place", ["/proc", "file"])
def test_a_folder_of_the_state_that_cannot_be_written_is_found(tmp_path: Path, part: str, place: str) -> None:
    (tmp_path / "file").write_text("in the way")
    there = tmp_path / "state" / part
    there.parent.mkdir(exist_ok=True)
    there.symlink_to(Path(tmp_path, place))  # in /proc not even root can make a file
    code, rows = found(tmp_path, QUOTH_STATE=str(tmp_path / "state"))
    assert (code, rows["store"][0]["state"]) == (1, "wrong")
    assert f"{there} {CANNOT_BE_WRITTEN}: " in rows["store"][0]["detail"]
    assert rows["store"][0]["cure"].endswith(OR_STATE)


def test_a_cache_that_cannot_be_written_is_found(tmp_path: Path) -> None:
    code, rows = found(tmp_path, QUOTH_CACHE="/proc/quoth")
    assert (code, rows["cache"][0]["state"]) == (1, "wrong")
    assert rows["cache"][0]["detail"].startswith(f"/proc/quoth {CANNOT_BE_WRITTEN}: ")


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_file_of_the_store_that_cannot_be_written_is_found(tmp_path: Path, ending: str) -> None:
    store = store_in(tmp_path)
    beside = store.with_name(store.name + ending)
    beside.unlink(missing_ok=True)
    beside.mkdir()
    code, rows = found(tmp_path, QUOTH_STATE=str(tmp_path / "state"))
    assert (code, rows["store"][0]["state"]) == (1, "wrong"), rows["store"]


def test_a_pipe_in_the_place_of_the_store_holds_nobody_up(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.unlink()
    os.mkfifo(store)
    code, rows = found(tmp_path, QUOTH_STATE=str(tmp_path / "state"))
    told = f"The store {store} {CANNOT_BE_OPENED}: it {IS_NOT_A_REGULAR_FILE}."
    assert (code, rows["store"][0]["detail"]) == (1, told)


@pytest.mark.parametrize("ending", ["use", "lock"])
def test_a_folder_in_the_place_of_a_lock_is_found(tmp_path: Path, ending: str) -> None:
    store_in(tmp_path)
    lock = tmp_path / "state" / "locks" / f"0123456789abcdef.{ending}"
    lock.unlink(missing_ok=True)
    lock.mkdir(parents=True)
    code, rows = found(tmp_path, QUOTH_STATE=str(tmp_path / "state"))
    assert (code, rows["store"][0]["detail"]) == (1, f"The lock {lock} {IS_NOT_A_REGULAR_FILE}.")
    assert rows["store"][0]["cure"] == f"remove {lock}"


def test_what_is_tried_leaves_nothing_behind(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    found(tmp_path, QUOTH_STATE=str(tmp_path / "state"))
    assert sorted(tmp_path.rglob("*")) == before
    with closing(apsw.Connection(str(store))) as db:
        assert not db.execute("SELECT * FROM sqlite_schema WHERE name LIKE '%doctor%'").fetchall()


def test_a_damaged_store_is_found(tmp_path: Path) -> None:
    env = {"QUOTH_STATE": str(tmp_path / "state")}
    quoth("call", '(echo :text "a")', cwd=tmp_path, env=env)
    (store,) = (tmp_path / "state" / "workspaces").glob("*.sqlite")
    store.write_bytes(b"no database, but long enough to be taken for one" * 100)
    code, rows = found(tmp_path, **env)
    assert (code, rows["store"][0]["state"]) == (1, "wrong")
    assert rows["store"][0]["cure"].startswith("restore a copy of the file")


WRONG = [
    ("model", ["--model", "gpt-4o"], f"{THERE_IS_NO_MODEL} gpt-4o. {DID_YOU_MEAN_OPENAI}:gpt-4o?"),
    ("rights", ["--policy", "rules.hy"], f"rules.hy:1:1: this ( {IS_NEVER_CLOSED}"),
    ("store", ["--workspace", "none"], f"The workspace none {IS_NOT_A_FOLDER}."),
]


@pytest.mark.parametrize(("name", "words", "detail"), WRONG)
def test_a_mistake_is_a_finding_and_the_others_are_still_made(
    name: str, words: list[str], detail: str, tmp_path: Path
) -> None:
    (tmp_path / "rules.hy").write_text("(deny (write-file)")
    said = quoth("doctor", *words, cwd=tmp_path)
    assert said.code == 1
    assert f"!!  {name} " in said.out
    assert detail in said.out
    assert "Emacs" in said.out
    assert said.out.endswith(" to fix.\n")


def test_rules_that_wait_for_trust_are_told_of(tmp_path: Path) -> None:
    (tmp_path / ".quoth").mkdir()
    (tmp_path / ".quoth" / "policy.hy").write_text("(deny (write-file))")
    _, rows = found(tmp_path)
    assert [row["cure"] for row in rows["rights"]] == ["", "read it, then: quoth trust"]


def test_an_agent_that_cannot_be_used_is_found(tmp_path: Path) -> None:
    files(agents_dir(), {"reader.hy": '(tools "read-*")', "bad.hy": '(modle "x")'})
    code, rows = found(tmp_path)
    (fault,) = rows["agents"]
    assert (code, fault["state"]) == (1, "wrong")
    assert "bad.hy:1:2: " in fault["detail"]
