"""The worktrees of a person's repository: what comes into them and back, and that no program of it runs."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from git_layouts import Place, repository
from words import complaint

from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.shell import own_git, program, view, worktrees
from quoth.tools.shell.view import Access, Boundary
from quoth.tools.shell.worktrees import Worktrees

EVIL = """
printf '#!/bin/sh\\ntouch "%s"\\n' "$PWNED" > .git/evil; chmod +x .git/evil
for hook in post-checkout reference-transaction post-index-change pre-commit post-merge commit-msg; do
  cp .git/evil .git/hooks/$hook
done
git config core.fsmonitor "$PWD/.git/evil"; git config commit.gpgsign true
git config gpg.program "$PWD/.git/evil"
git config core.pager "$PWD/.git/evil"; git config core.sshCommand "$PWD/.git/evil"
for name in clean smudge process; do git config filter.x.$name "$PWD/.git/evil"; done
git config diff.x.textconv "$PWD/.git/evil"; git config diff.x.command "$PWD/.git/evil"
git config merge.x.driver "$PWD/.git/evil"; git config diff.external "$PWD/.git/evil"
mkdir -p .git/info; echo '* filter=x diff=x merge=x' > .git/info/attributes
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return repository(tmp_path)


def changed(trees: Worktrees, name: str, **texts: str) -> str:
    """The commit of a worktree after these files, with dots for underscores, were written in it."""
    made, _ = trees.open(name)
    for file, text in texts.items():
        (made.folder / file.replace("_", ".")).write_text(text)
    return trees.commit(name, f"Change by {name}")


def merged(trees: Worktrees, name: str, commit: str) -> None:
    trees.merge(name, commit, f"Merge {name}")


def test_no_program_of_a_repository_runs(place: Place) -> None:
    place.sh(f"PWNED={place.pwned}; git config user.name ann; git config user.email a@b; {EVIL}")
    trees = Worktrees(place.shop)
    first = changed(trees, "s1", a_txt="one\nfrom s1\n")
    second = changed(trees, "s2", a_txt="two\nthree\n", new_txt="new\n")
    merged(trees, "s1", first)
    assert trees.known("s2").ahead == 1
    assert trees.outside() == 0
    assert "conflicts" in complaint(ToolError, lambda: merged(trees, "s2", second))
    trees.remove("s2")
    assert not place.pwned.exists()
    assert (place.shop / "a.txt").read_text() == "one\nfrom s1\n"
    place.sh("git status")
    assert place.pwned.exists(), "its settings run no program, so this shows nothing"


def test_a_worktree_begins_with_the_commit_and_comes_back_as_one(place: Place) -> None:
    (place.shop / "mine.txt").write_text("not committed")
    trees = Worktrees(place.shop)
    made, new = trees.open("s1")
    assert new
    assert sorted(one.name for one in made.folder.iterdir()) == [".git", "a.txt", "src"]
    assert trees.outside() == 1
    assert trees.open("s1")[1] is False
    (made.folder / "src/b.txt").unlink()
    (made.folder / ".gitignore").write_text("*.log\n")
    (made.folder / "x.log").write_text("ignored")
    place.sh(
        f"git init -q {made.folder}/nested && cd {made.folder}/nested && git commit -q --allow-empty -m x"
    )
    (made.folder / ".git").write_text("gitdir: /nonexistent\n")  # what a program may do without a boundary
    assert trees.known("s1").uncommitted == 2
    commit = trees.commit("s1", "Work")
    assert place.sh(f"git show --stat --format=%s {commit}").splitlines()[0] == "Work"
    assert [one[0] for one in trees.since_base(commit)] == [".gitignore", "src/b.txt"]
    trees.open("s1")  # which puts the file .git right
    assert place.sh(f"git -C {made.folder} status --short") == "?? nested/\n"
    merged(trees, "s1", commit)
    assert place.sh("git status --short") == "?? mine.txt\n"
    assert not (place.shop / "src").exists()
    assert trees.known("s1").ahead == 0
    assert "nothing to merge" in complaint(ToolError, lambda: merged(trees, "s1", commit))


def test_a_merge_that_is_not_possible_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktrees, "LOCK_SECONDS", 0.2)
    trees = Worktrees(place.shop)
    one, two = changed(trees, "s1", a_txt="1\n"), changed(trees, "s2", a_txt="2\n", c_txt="c\n")
    three = changed(trees, "s3", c_txt="other\n", a_txt="1\n")
    merged(trees, "s1", one)
    before = place.sh("git rev-parse HEAD; git ls-files -s; cat a.txt")
    assert "in a.txt" in complaint(ToolError, lambda: merged(trees, "s2", two))
    (place.shop / ".git/info/exclude").write_text("c.txt\n")
    (place.shop / "c.txt").write_text("mine, and ignored\n")
    assert "c.txt" in complaint(ToolError, lambda: merged(trees, "s3", three))
    (place.shop / "c.txt").unlink()
    assert "at commit" in complaint(ToolError, lambda: merged(trees, "s3", two))
    (place.shop / ".git/MERGE_HEAD").write_text(one)
    assert "MERGE_HEAD" in complaint(ToolError, lambda: merged(trees, "s3", three))
    (place.shop / ".git/MERGE_HEAD").unlink()
    (place.shop / ".git/index.lock").touch()
    assert "locked" in complaint(ToolError, lambda: merged(trees, "s3", three))
    (place.shop / ".git/index.lock").unlink()
    assert place.sh("git rev-parse HEAD; git ls-files -s; cat a.txt; git status --short") == before
    (place.shop / "src/b.txt").write_text("mine\n")  # a change elsewhere stays
    os.utime(place.shop / "a.txt", (1, 1))  # touched, and not changed
    merged(trees, "s3", three)
    assert place.sh("git status --short") == " M src/b.txt\n"
    assert place.sh("git log -1 --format=%P").split() == [one, three]


def test_locks_that_a_killed_git_left_are_removed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktrees, "LOCK_SECONDS", 0.2)
    trees = Worktrees(place.shop)
    commit = changed(trees, "s1", a_txt="1\n")
    for lock in ("HEAD.lock", "refs/heads/master.lock", "refs/heads/quoth/s1.lock"):
        (place.shop / ".git" / lock).touch()
    head = place.sh("git rev-parse HEAD").strip()
    note = trees.folder / "s1.merging"
    note.write_text(json.dumps({"head": head, "new": commit}))
    os.utime(note, (time.time() - 5, time.time() - 5))
    assert trees.finish("s1") == ""
    changed(trees, "s1", a_txt="2\n")
    assert list((place.shop / ".git").rglob("*.lock")) == []
    (place.shop / ".git/HEAD.lock").touch()  # without a merge of ours it is another's
    assert "HEAD.lock" in complaint(ToolError, lambda: merged(trees, "s1", trees.tip("s1")))
    assert (place.shop / ".git/HEAD.lock").exists()


def test_the_lock_of_a_branch_that_was_being_removed_goes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees, lock = Worktrees(place.shop), place.shop / ".git/packed-refs.lock"
    trees.open("s1")
    ask = trees.repo.real

    def killed(*words: str) -> str:
        if words[:2] != ("update-ref", "-d"):
            return ask(*words)
        lock.touch()
        lock.with_suffix(".new").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trees.repo, "real", killed)
        with pytest.raises(KeyboardInterrupt):
            trees.remove("s1")
    monkeypatch.setattr("quoth.tools.shell.worktrees.LOCK_SECONDS", 0.0)
    trees.remove("s1")
    place.sh("git branch other; git pack-refs --all; git branch -d other")
    assert (trees.names(), lock.exists()) == ([], False)
    lock.touch()  # another's
    trees.open("s2")
    assert lock.exists()


@pytest.mark.parametrize("other", ["-b other", "--detach"])
def test_nothing_is_committed_for_a_person_on_another_branch(place: Place, other: str) -> None:
    trees = Worktrees(place.shop)
    tip = changed(trees, "s1", a_txt="1\n")
    folder = trees.known("s1").folder
    place.sh(f"git -C {folder} checkout -q {other}")
    (folder / "a.txt").write_text("by the person\n")
    for act in (lambda: trees.commit("s1", "Work"), lambda: trees.open("s1")):
        assert "git switch quoth/s1" in complaint(ToolError, act)
    assert (trees.tip("s1"), (folder / "a.txt").read_text()) == (tip, "by the person\n")
    place.sh(f"git -C {folder} switch -q quoth/s1")
    assert trees.commit("s1", "Work") != tip


@pytest.mark.parametrize("ignored", ["", "notes\n"])
def test_a_merge_leaves_a_file_that_a_new_folder_or_file_would_replace(place: Place, ignored: str) -> None:
    trees = Worktrees(place.shop)
    (place.shop / ".git/info/exclude").write_text("")
    file = changed(trees, "s1", notes="by the agent\n", a_txt="1\n")
    made, _ = trees.open("s2")
    (made.folder / "notes").mkdir()
    folder = changed(trees, "s2", **{"notes/c_txt": "by the agent\n"}, a_txt="2\n")
    (place.shop / ".git/info/exclude").write_text(ignored)
    mine = place.shop / "notes"
    mine.write_text("mine\n")
    assert "change notes." in complaint(ToolError, lambda: merged(trees, "s2", folder))
    assert mine.read_text() == "mine\n"
    mine.unlink()
    mine.symlink_to("src")
    assert "change notes." in complaint(ToolError, lambda: merged(trees, "s2", folder))
    mine.unlink()
    mine.mkdir()
    (mine / "d.txt").write_text("mine\n")
    assert "notes/d.txt" in complaint(ToolError, lambda: merged(trees, "s1", file))
    assert (mine / "d.txt").read_text() == "mine\n"
    assert [trees.known(name).state for name in ("s1", "s2")] == ["", ""]
    merged(trees, "s2", folder)  # beside the other file of the folder
    assert sorted(one.name for one in mine.iterdir()) == ["c.txt", "d.txt"]


@pytest.mark.parametrize("mark", ["assume-unchanged", "skip-worktree"])
def test_a_merge_leaves_a_change_that_git_was_told_to_ignore(place: Place, mark: str) -> None:
    trees = Worktrees(place.shop)
    commit = changed(trees, "s1", a_txt="1\n")
    place.sh(f"git update-index --{mark} a.txt")
    (place.shop / "a.txt").write_text("mine\n")
    assert "change a.txt." in complaint(ToolError, lambda: merged(trees, "s1", commit))
    assert ((place.shop / "a.txt").read_text(), trees.known("s1").state) == ("mine\n", "")
    place.sh(f"git update-index --no-{mark} a.txt; git checkout -q a.txt")
    merged(trees, "s1", commit)
    assert (place.shop / "a.txt").read_text() == "1\n"


def test_a_merge_turns_files_into_folders_and_back(place: Place) -> None:
    trees = Worktrees(place.shop)
    made, _ = trees.open("s1")
    shutil.rmtree(made.folder / "src")
    (made.folder / "a.txt").unlink()
    (made.folder / "a.txt").mkdir()
    merged(trees, "s1", changed(trees, "s1", src="a file\n", **{"a_txt/b_txt": "b\n"}))
    assert (place.shop / "src").read_text() == "a file\n"
    assert (place.shop / "a.txt/b.txt").read_text() == "b\n"
    assert place.sh("git status --short") == ""
    made, _ = trees.open("s2")
    (made.folder / "a.txt").rename(made.folder / "moved")
    (made.folder / "a.txt").symlink_to("moved")
    merged(trees, "s2", trees.commit("s2", "A link for a folder"))
    assert (place.shop / "a.txt").readlink() == Path("moved")
    assert place.sh("git status --short; git ls-files") == "a.txt\nmoved/b.txt\nsrc\n"


def test_a_tree_that_leads_outside_is_refused(place: Place) -> None:
    (place.shop.parent / "victim").write_text("v\n")
    trees = Worktrees(place.shop)
    trees.open("s1")
    blob = place.sh("printf 'v\nmore\n' | git hash-object -w --stdin").strip()
    inner = place.sh(f"printf '100644 blob {blob}\tvictim\n' | git mktree").strip()
    tree = place.sh(f"printf '040000 tree {inner}\t..\n' | git mktree").strip()
    commit = place.sh(f"git commit-tree {tree} -p HEAD -m x").strip()
    place.sh(f"git update-ref refs/heads/quoth/s1 {commit}")
    complaint(ToolError, lambda: merged(trees, "s1", commit))
    assert (place.shop.parent / "victim").read_text() == "v\n"
    assert place.sh("git status --short") == ""


def test_a_program_in_a_worktree_sees_of_the_project_only_git(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project has files that the rules forbid reading, and files that are in no commit."""
    bounds: list[Boundary] = []
    monkeypatch.setattr(view, "COVERED", ())
    monkeypatch.setattr(program, "boundary_kind", lambda: "")
    monkeypatch.setattr(program, "environment", lambda bound: bounds.append(bound) or {})
    made, _ = Worktrees(place.shop).open("s1")
    workspace = Workspace(place.shop)
    for one in (workspace, workspace.at(made.folder)):
        program.command_for(["true"], one.root, one, network=False, more={"readable": (place.shop / ".git",)})
    inside, beside = (dict(view.places(bound)) for bound in bounds)
    assert inside[place.shop] == Access.WRITE
    assert (beside[place.shop], beside[place.shop / ".git"]) == (Access.COVERED, Access.READ)
    assert beside[made.folder] == Access.WRITE


def test_a_folder_without_commits_or_without_git_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(tmp_path) in complaint(ToolError, lambda: Worktrees(tmp_path))
    empty = tmp_path / "empty"
    shutil.copytree(repository(tmp_path).shop, empty)
    shutil.rmtree(empty / ".git/refs/heads")
    (empty / ".git/refs/heads").mkdir()
    assert "no commit" in complaint(ToolError, lambda: Worktrees(empty).open("s1"))
    monkeypatch.setattr(own_git, "LEAST", (99, 1))
    assert "99.1" in complaint(ToolError, lambda: Worktrees(empty))


def test_what_is_left_of_a_worktree_is_shown_and_removed(place: Place) -> None:
    trees = Worktrees(place.shop)
    changed(trees, "s1", a_txt="1\n")
    shutil.rmtree(trees.folder / "s1")
    assert trees.known("s1").state == "no folder"
    made, new = trees.open("s1")  # it goes on from its branch
    assert new
    assert (made.folder / "a.txt").read_text() == "1\n"
    (place.shop / ".git/worktrees/s1/index").unlink()  # as if it was killed while it was made
    assert trees.known("s1").state == "incomplete"
    trees.remove("s1")
    assert trees.names() == []
    assert place.sh("git worktree list; git branch").count("s1") == 0
    assert "s1" in complaint(ToolError, lambda: trees.known("s1"))
    for name in ("../..", "..", "", "a/b", "x.lock"):
        assert "name of a worktree" in complaint(ToolError, lambda name=name: trees.remove(name))  # type: ignore[misc]
