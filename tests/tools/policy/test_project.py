"""The project's root is found upwards, as git does: a table of layouts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from powerless import NOBODY, powerless

from quoth.tools.errors import UsageError
from quoth.tools.policy.project import Project, below, find_project
from quoth.tools.shell.bubblewrap import candidates
from quoth.tools.storage.paths import store_path

OTHER = 65534


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home beside the folders of the table."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def laid_out(base: Path, paths: str) -> None:
    """Make these paths: folders end in a slash, ``a -> b`` is a link."""
    for path in paths.split():
        name, link, target = path.partition("->")
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        if link:
            (base / name).symlink_to(target)
        elif name.endswith("/"):
            (base / name).mkdir(parents=True, exist_ok=True)
        else:
            (base / name).write_text("")


FOUND = [  # what is there, where one stands, the root, why
    ("repo/.git/ repo/sub/", "repo/sub", "repo", ".git"),
    ("repo/.git/ repo/sub/", "repo", "repo", ".git"),
    ("repo/.quoth/ repo/a/b/c/", "repo/a/b/c", "repo", ".quoth"),
    ("repo/.quoth/ repo/lib/.git/ repo/lib/src/", "repo/lib/src", "repo", ".quoth"),
    ("repo/.git/ repo/sub/.quoth/ repo/sub/a/", "repo/sub/a", "repo/sub", ".quoth"),
    ("repo/.quoth/ repo/sub/.quoth/ repo/sub/a/", "repo/sub/a", "repo/sub", ".quoth"),
    ("repo/.git/ repo/lib/.git/ repo/lib/src/", "repo/lib/src", "repo/lib", ".git"),
    ("worktree/.git worktree/src/", "worktree/src", "worktree", ".git"),
    ("real/.git/ repo/.git->../real/.git repo/src/", "repo/src", "repo", ".git"),
    ("repo/.git->nowhere repo/src/", "repo/src", "repo", ".git"),
    ("repo/.git/ repo/sub/ short->repo/sub", "short", "repo", ".git"),
    ("plain/sub/", "plain/sub", "plain/sub", "here"),
    ("home/.git/ home/.quoth/ home/docs/a/", "home/docs/a", "home/docs/a", "here"),
    ("home/.git/ home/.quoth/", "home", "home", "here"),
    ("home/repo/.git/ home/repo/a/", "home/repo/a", "home/repo", ".git"),
    ("home/ .git/ home/a/", "home/a", "home/a", "here"),
    ("real/.git/ real/docs/ home->real", "home/docs", "real/docs", "here"),
    ("repo/.gitignore repo/.quoth.bak/ repo/.github/ repo/a/", "repo/a", "repo/a", "here"),
]


@pytest.mark.parametrize(("paths", "here", "root", "why"), FOUND)
def test_the_root_is_found_from_a_subfolder(
    tmp_path: Path, paths: str, here: str, root: str, why: str
) -> None:
    laid_out(tmp_path, paths)
    assert find_project(tmp_path / here) == Project(tmp_path / root, (tmp_path / here).resolve(), why)


STRANGE = [  # what is there, what belongs to another user, where one stands, what is refused
    ("repo/.git/ repo/sub/", "repo repo/.git repo/sub", "repo/sub", "repo/.git"),
    ("repo/.git/ repo/sub/", "repo repo/.git", "repo", "repo/.git"),
    ("repo/.quoth/ repo/sub/", "repo repo/.quoth", "repo/sub", "repo/.quoth"),
    ("repo/.git/ repo/sub/", "repo/.git", "repo/sub", "repo/.git"),
    ("repo/.git/ repo/sub/", "repo", "repo/sub", "repo/.git"),
    ("repo/.git/ repo/shared/mine/", "repo/shared", "repo/shared/mine", "repo/.git"),
    ("tmp/.quoth/ tmp/work/.git/", "tmp/.quoth", "tmp/work", "tmp/.quoth"),
]


@pytest.mark.parametrize(("paths", "others", "here", "refused"), STRANGE if os.geteuid() == 0 else [])
def test_that_of_another_user_is_never_passed_over(
    tmp_path: Path, paths: str, others: str, here: str, refused: str
) -> None:
    laid_out(tmp_path, paths)
    for path in others.split():
        os.chown(tmp_path / path, OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(UsageError) as raised:
        find_project(tmp_path / here)
    folder, marker = (tmp_path / refused).parent, Path(refused).name
    why = f"{folder} may be the root of this project, because it has a {marker}, but {tmp_path}"
    assert str(raised.value).startswith(why)


def test_a_folder_of_another_user_is_taken_only_where_no_project_is_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out(tmp_path, "repo/.git/ repo/sub/")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(UsageError, match="belongs to"):
        find_project(tmp_path / "repo/sub")
    laid_out(tmp_path, "plain/")
    assert find_project(tmp_path / "plain").why == "here"


def test_a_number_without_a_name_and_a_home_that_is_unset_find_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out(tmp_path, "repo/.git/ repo/sub/")
    for home in (None, "", ".", "/"):
        monkeypatch.setenv("HOME", home) if home is not None else monkeypatch.delenv("HOME")
        assert find_project(tmp_path / "repo/sub").root == tmp_path / "repo"
        monkeypatch.setenv("HOME", "/")
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    with pytest.raises(UsageError, match="belongs to"):
        find_project(tmp_path / "repo/sub")


def test_a_folder_that_was_removed_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match=r"^The current folder cannot be used: No such file or directory\."):
        find_project()
    assert below(tmp_path) == ""


@pytest.mark.parametrize(
    ("inside", "here", "root", "why"),
    [((), "", "sub", "here"), (("--dir", "sub/.git", "--dir", "sub/a"), "a", "sub", ".git")],
)
def test_a_mount_is_the_end_and_its_top_is_looked_at(
    tmp_path: Path, inside: tuple[str, ...], here: str, root: str, why: str
) -> None:
    laid_out(tmp_path, "repo/.quoth/ repo/sub/")
    repo = tmp_path / "repo"
    look = "from quoth.tools.policy.project import find_project; it = find_project(); print(it.root, it.why)"
    mounts = ["--dev-bind", "/", "/", "--tmpfs", str(repo / "sub")]
    mounts += [word if word.startswith("-") else str(repo / word) for word in inside]
    words = [*mounts, "--chdir", str(repo / "sub" / here), sys.executable, "-c", look]
    said = subprocess.run([next(iter(candidates())), *words], capture_output=True, text=True, timeout=120)
    assert (said.stdout, said.stderr) == (f"{repo / root} {why}\n", "")


@pytest.fixture
def unsearchable() -> Iterator[Path]:
    """A project whose folder nobody can search."""
    with powerless() as user:
        laid_out(user.home, "repo/.quoth/ repo/sub/")
        for path in (user.home, *user.home.rglob("*")):
            os.chown(path, OTHER if os.geteuid() == 0 else os.getuid(), -1)
        with user.closed(user.home / "repo"):
            yield user.home / "repo"


def test_what_cannot_be_looked_at_is_not_missing(unsearchable: Path) -> None:
    look = "import sys; from quoth.tools.policy.project import find_project as f; f(sys.argv[1])"
    who = NOBODY if os.geteuid() == 0 else ()
    words = [*who, sys.executable, "-c", look, str(unsearchable / "sub")]
    said = subprocess.run(words, cwd="/", capture_output=True, text=True, timeout=120)
    why = f"{unsearchable}/sub cannot be examined, so the workspace is not known: Permission denied."
    assert f"UsageError: {why}" in said.stderr


def test_a_subfolder_with_a_store_keeps_it(tmp_path: Path, state: Path) -> None:
    laid_out(tmp_path, "repo/.git/ repo/sub/a/")
    repo, sub = tmp_path / "repo", tmp_path / "repo/sub"
    store_path(sub).parent.mkdir(parents=True, exist_ok=True)
    store_path(sub).write_bytes(b"")
    assert find_project(sub) == Project(sub, sub, "own store", above=repo)
    assert find_project(sub / "a") == Project(repo, sub / "a", ".git")
    find_project(sub).require_rules()
    laid_out(repo, ".quoth/policy.hy")
    with pytest.raises(UsageError, match="quoth sessions --adopt"):
        find_project(sub).require_rules()
