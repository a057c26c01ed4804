"""Law: nobody's rule is left out in silence. What cannot be reached is not missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import quoth
from powerless import Powerless, powerless
from sentences import CANNOT_BE_READ, IS_NOT_TRUSTED, THERE_IS_NO_POLICY_FILE

from quoth.tools.storage.paths import is_missing, real_path

WRITE = '(write-file :path "a.txt" :content "x")'
TOOL = """(require quoth [def-cognitive-tool])
(def-cognitive-tool two "Two."
  :effects [:reads]
  :body    2)
"""
DENY = '(deny (write-file) :why "mine")'


@pytest.fixture
def user() -> Iterator[Powerless]:
    with powerless() as it:
        yield it


@pytest.mark.parametrize(
    ("words", "first"),
    [(("call", WRITE, "--yes"), "config.hy"), (("policy", "check"), "policy.hy")],
    ids=["call", "check"],
)
def test_a_folder_of_settings_that_cannot_be_searched_stops_the_command(
    user: Powerless, words: tuple[str, ...], first: str
) -> None:
    (user.config / "policy.hy").write_text(DENY)
    with user.closed(user.config):
        said = user.quoth(*words)
    assert (said.code, said.out) == (2, "")
    assert said.err == f"quoth: {user.config}/{first} {CANNOT_BE_READ}: Permission denied.\n"
    assert not (user.workspace / "a.txt").exists()


def test_a_folder_of_rules_of_a_workspace_that_cannot_be_searched_is_told(user: Powerless) -> None:
    own = user.workspace / ".quoth"
    own.mkdir()
    (own / "policy.hy").write_text(DENY)
    with user.closed(own):
        said = user.quoth("call", "(list-files)")
    assert f"{own}/policy.hy {IS_NOT_TRUSTED}" in said.err


def test_settings_and_startup_files_that_cannot_be_reached_are_told(user: Powerless) -> None:
    behind = user.home / "behind"
    behind.mkdir()
    (behind / "x").write_text("")
    for name in ("config.hy", "init.hy"):
        (user.config / name).symlink_to(behind / "x")
    with user.closed(behind):
        said = user.quoth("call", "(list-files)")
    assert (said.code, said.err) == (
        2,
        f"quoth: {user.config}/config.hy {CANNOT_BE_READ}: Permission denied.\n",
    )


@pytest.mark.parametrize("chosen", ["user", "workspace", "given"])
def test_a_policy_that_links_to_itself_is_a_sentence(tmp_path: Path, state: Path, chosen: str) -> None:
    place = {"user": state / "config", "workspace": tmp_path / ".quoth", "given": tmp_path / "rules"}[chosen]
    place.mkdir()
    (place / "policy.hy").symlink_to("policy.hy")
    words = ["--policy", "rules/policy.hy"] if chosen == "given" else []
    said = quoth("call", "(list-files)", *words, cwd=tmp_path)
    if chosen == "workspace":
        assert IS_NOT_TRUSTED in said.err
        said = quoth("trust", cwd=tmp_path)
    assert said.code == 2
    assert said.err.endswith(f"policy.hy {CANNOT_BE_READ}: Too many levels of symbolic links.\n")
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("call", "(list-files)", "--tools", "loop.hy"),
        ("call", "(list-files)", "--tools", "loop.py"),
        ("call", "(list-files)", "--gate", "loop.hy"),
        ("policy", "check", "loop.hy"),
    ],
    ids=" ".join,
)
def test_a_named_file_that_links_to_itself_is_a_sentence(tmp_path: Path, words: tuple[str, ...]) -> None:
    name = words[-1]
    (tmp_path / name).symlink_to(name)
    said = quoth(*words, cwd=tmp_path)
    assert (said.code, said.err.count("\n")) == (2, 1), said.err
    assert "Too many levels of symbolic links" in said.err


@pytest.mark.parametrize("words", [("undo", "--yes"), ("undo", "--redo", "--yes"), ("undo", "--dry-run")])
def test_rules_of_a_session_that_have_gone_stop_its_undo(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "rules.hy").write_text("(allow (write-file))")
    said = quoth("call", WRITE, "--policy", "rules.hy", "--session", "s", cwd=tmp_path)
    assert said.code == 0, said.err
    if "--redo" in words:
        assert quoth("undo", "s", "--yes", cwd=tmp_path).code == 0
    (tmp_path / "rules.hy").unlink()
    before = {path.name for path in tmp_path.iterdir()}
    gone = quoth(words[0], "s", *words[1:], cwd=tmp_path)
    assert (gone.code, gone.out) == (2, "")
    assert gone.err.startswith(f"quoth: {THERE_IS_NO_POLICY_FILE} ")
    assert {path.name for path in tmp_path.iterdir()} == before
    (tmp_path / "others.hy").write_text("(allow (write-file))")
    assert quoth(words[0], "s", *words[1:], "--policy", "others.hy", cwd=tmp_path).code == 0


def test_tools_of_a_session_that_cannot_be_reached_are_not_left_out(user: Powerless) -> None:
    shelf = user.home / "shelf"
    shelf.mkdir()
    (shelf / "tools.hy").write_text(TOOL)
    (user.workspace / "replies").write_text("Done.\n")
    model = ("--model", "scripted:replies", "--session", "s")
    first = user.quoth("run", "Begin.", *model, "--tools", str(shelf / "tools.hy"))
    assert first.code == 0, first.err
    with user.closed(shelf):
        said = user.quoth("resume", "s", "Again.")
    assert said.code == 2
    assert said.err.startswith("quoth: ")
    assert "Permission denied" in said.err
    assert "Traceback" not in said.err


def test_only_a_name_that_is_not_there_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    names = ("file", "loop", "dangling", "no", "file/no")
    assert [name for name in names if is_missing(tmp_path / name)] == ["no", "file/no"]
    assert not is_missing(tmp_path / ("x" * 300))
    assert not is_missing(tmp_path / "a\0b")
    assert not is_missing(tmp_path / "loop" / "x")


def test_where_a_link_leads_is_looked_up_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        monkeypatch.chdir(tmp_path / name)
        assert (real_path(link), real_path(".")) == (tmp_path / name, tmp_path / name)


def test_locks_that_cannot_be_read_are_told_before_a_decision(user: Powerless) -> None:
    (user.workspace / "AGENTS.md").write_text("Be brief.")
    assert user.quoth("trust", "--yes").code == 0
    locks = user.home / "state" / "locks"
    locks.mkdir(exist_ok=True)
    with user.closed(locks):
        said = user.quoth("trust", "--yes")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"quoth: {locks}/")
    assert said.err.endswith("so quoth cannot tell whether a tool started it: Permission denied.\n")
