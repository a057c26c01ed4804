"""What comes back from the private .git of a confined program, and what does not."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from git_layouts import Place, repository
from sentences import IT_HAS_MORE_THAN
from words import agent, quoth, started, wait_until

from quoth.tools.lisp.printer import print_value
from quoth.tools.shell import boundary, private_git
from quoth.tools.storage.paths import state_dir

COMMIT = "git -c user.name=ann -c user.email=ann@example.org commit -q"
INCOMPLETE = "git refuses a name in the index, or the index is incomplete"
NOT_KEPT = "None of the program's changes by git was kept: "
NO_LIST = "is not a list of references"
CHANGED = "HEAD, a branch or the index was changed outside meanwhile"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A repository with a branch master, whose person has a name."""
    found = repository(tmp_path)
    found.sh("git config user.name ann; git config user.email ann@example.org")
    yield found
    assert not list(state_dir().glob("git-*")), "a copy was left"


def shell(*argv: str, more: str = "") -> str:
    return f"(shell :argv {print_value(list(argv))}{more})"


def runs(place: Place, script: str, meanwhile: Callable[[], object] = lambda: None) -> str:
    """What is said of a program; something may happen outside while it waits for the file ``go``."""

    def outside() -> None:
        wait_until((place.shop / "ready").exists)
        meanwhile()
        (place.shop / "go").touch()

    for name in ("ready", "go"):
        (place.shop / name).unlink(missing_ok=True)
    waits = threading.Thread(target=outside)
    if "wait" in script:
        waits.start()
    script = script.replace("wait", "touch ready; while ! test -e go; do sleep 0.01; done")
    with agent(place.shop, consent="yes") as made:
        result = made.call(shell("sh", "-c", script))
    if waits.is_alive():
        waits.join()
    assert result.ok, result.message
    return f"{result.value['output']}{result.message}"


def heads(place: Place) -> str:
    return place.sh("git for-each-ref; git symbolic-ref HEAD; git ls-files -s; git reflog")


def test_a_commit_comes_back_and_settings_do_not(place: Place) -> None:
    said = runs(
        place,
        f"echo x > a.txt; git add a.txt; {COMMIT} -m second; echo ../x > .git/commondir; cd .git; ln -s / x",
    )
    assert said == "Only data is kept from .git; this was dropped: .git/commondir, .git/x."
    assert place.sh("git log --format=%s; git status --porcelain") == "second\nfirst\n"
    assert not (place.shop / ".git/commondir").exists()


def test_a_rebase_that_stops_leaves_everything_as_it_was(place: Place) -> None:
    place.sh("git switch -qc topic; echo 1 > a.txt; git commit -qam one; git switch -q master")
    place.sh("echo 2 > a.txt; git commit -qam two; git switch -q topic")
    before = heads(place)
    said = runs(place, "git rebase -q master 2>/dev/null; true")
    assert (
        f"{NOT_KEPT}a rebase, a sequence of picks or a bisect stopped half-way (.git/rebase-merge)." in said
    )
    assert heads(place) == before
    assert "rebase" not in place.sh("git status")
    place.sh("git checkout -q -- .; git rebase master")  # and so is one that stopped outside, for a program
    before = heads(place)
    assert runs(place, "git status --short; git checkout -q --theirs a.txt").startswith("UU a.txt")
    assert NOT_KEPT in runs(place, "git add a.txt; git -c core.editor=true rebase --continue 2>&1")
    assert heads(place) == before
    assert "could not" not in place.sh("git rebase --abort")


def test_a_merge_with_a_conflict_goes_on_outside(place: Place) -> None:
    place.sh("git switch -qc topic; echo 1 > a.txt; git commit -qam one; git switch -q master")
    place.sh("echo 2 > a.txt; git commit -qam two")
    runs(place, "git merge topic")
    assert place.sh("git status --porcelain; git merge --abort; git status --porcelain") == "UU a.txt\n"


@pytest.mark.parametrize(
    "change",
    [
        "git branch other",
        "git switch -qc other",
        "echo y > y; git add y",
        "git commit -q --allow-empty -m mine",
        "git pack-refs --all",
    ],
)
def test_nothing_comes_back_over_a_change_from_outside(place: Place, change: str) -> None:
    seen: list[str] = []

    def meanwhile() -> None:
        place.sh(change)
        seen.append(heads(place))

    said = runs(place, f"echo x > a.txt; git add a.txt; wait; {COMMIT} -m second", meanwhile)
    assert f"{NOT_KEPT}{CHANGED}" in said
    assert heads(place) == seen[0]


def test_what_an_editor_asks_meanwhile_is_no_change(place: Place) -> None:
    (place.shop / "src/b.txt").touch()
    said = runs(
        place, f"echo x > a.txt; wait; git add a.txt; {COMMIT} -m second", lambda: place.sh("git status")
    )
    assert said == ""
    assert place.sh("git log --format=%s") == "second\nfirst\n"


def test_a_lock_of_git_outside_is_waited_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = place.shop / ".git/index.lock"
    free = threading.Timer(0.5, lock.unlink)

    def meanwhile() -> None:
        lock.touch()
        free.start()

    assert runs(place, f"echo x > a.txt; wait; git add a.txt; {COMMIT} -m two", meanwhile) == ""
    monkeypatch.setattr(private_git, "LOCK_SECONDS", 0.2)
    said = runs(place, f"echo y > a.txt; wait; git add a.txt; {COMMIT} -m three", lock.touch)
    assert said.startswith(f"{NOT_KEPT}git outside has locked index.lock.")
    lock.unlink()
    assert place.sh("git log --format=%s; find .git -name '*.lock'") == "two\nfirst\n"


def test_the_copy_of_another_container_stays_while_it_is_used(place: Place) -> None:
    """Its process has a number that is nobody's here."""
    (copy := state_dir() / "git-99999999-x").mkdir(parents=True)
    lock = os.open(copy, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    runs(place, "true")
    assert copy.exists()
    os.close(lock)
    runs(place, "true")
    assert not copy.exists()


def test_nothing_came_back_where_quoth_was_killed(place: Place) -> None:
    before = heads(place)
    script = (
        f"echo x > a.txt; git add a.txt; {COMMIT} -m two; echo ../x > .git/commondir; touch ready; sleep 90"
    )
    rules = place.shop.parent / "rules.hy"
    rules.write_text("(allow (shell :argv _))")
    form = f'(shell :argv ["sh" "-c" "{script}"])'
    with started("call", form, "--policy", str(rules), cwd=place.shop) as running:
        wait_until((place.shop / "ready").exists)
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
    assert heads(place) == before
    assert place.sh("git status --porcelain") == " M a.txt\n?? ready\n"
    assert list(state_dir().glob("git-*")), "there was no copy"
    runs(place, "true")  # the next program removes that


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("rm .git/HEAD", "the program removed HEAD or all references"),
        ("rm -rf .git/refs; ln -s /etc .git/refs", "the program removed HEAD or all references"),
        ("echo 'ref: refs/../config' > .git/HEAD", "HEAD is not a reference"),
        ("echo 'ref: config' > .git/refs/heads/master", "refs/heads/master is not a reference"),
        ("echo $(git rev-parse HEAD) x > .git/refs/heads/master", "refs/heads/master is not a reference"),
        ("echo 'ref: commondir' > .git/ORIG_HEAD", "ORIG_HEAD is not a reference"),
        ("echo 'ref:hooks/pre-commit' > .git/AUTO_MERGE", "AUTO_MERGE is not a reference"),
        (
            "git pack-refs --all; echo commondir >> .git/packed-refs",
            f"packed-refs {NO_LIST}",
        ),
        (
            "echo $(git rev-parse HEAD) refs/../x > .git/packed-refs",
            f"packed-refs {NO_LIST}",
        ),
        ("echo ../x > .git/shallow", f"shallow {NO_LIST}"),
        ("GIT_CONFIG_COUNT=0 git update-index --split-index; rm .git/sharedindex.*", INCOMPLETE),
        ("printf nothing > .git/index", INCOMPLETE),
    ],
)
def test_what_git_would_not_take_takes_all_with_it(place: Place, script: str, why: str) -> None:
    before = heads(place)
    assert f"{NOT_KEPT}{why}." in runs(place, f"git tag t; {script}")
    assert heads(place) == before


@pytest.mark.parametrize(
    "script",
    [
        "rm .git/refs/heads/master; ln -s {secret} .git/refs/heads/master",
        "rm .git/COMMIT_EDITMSG; ln -s {secret} .git/COMMIT_EDITMSG",
        "mkfifo .git/MERGE_MSG",
        "cd .git/refs/heads; echo x > x.lock; mkdir ' y'; cp master ' y/z'",
        "mkdir -p .git/logs/refs/heads/..y; echo x > .git/logs/refs/heads/..y/z",
    ],
)
def test_what_is_no_data_is_left_out(place: Place, tmp_path: Path, script: str) -> None:
    place.sh("git commit -q --allow-empty -m second")
    (tmp_path / "secret").write_text("secret")
    files = place.sh("find .git -type f | sort | grep -v objects; git branch | cat; cat .git/refs/heads/*")
    runs(place, script.format(secret=tmp_path / "secret"))
    assert place.sh(
        "find .git -type f | sort | grep -v objects; git branch | cat; cat .git/refs/heads/*"
    ) in (
        files,
        files.replace(".git/refs/heads/master\n", ""),
    )
    assert "secret" not in place.sh("cat .git/COMMIT_EDITMSG .git/refs/heads/*")


@pytest.mark.parametrize(("size", "kept"), [(99_999, True), (100_000, True), (100_001, False)])
def test_a_giant_is_left_out(place: Place, monkeypatch: pytest.MonkeyPatch, size: int, kept: bool) -> None:
    monkeypatch.setattr("quoth.tools.shell.private_git.MOST_BYTES", 100_000)
    said = runs(place, f"yes | tr -d '\\n' | head -c {size} > .git/COMMIT_EDITMSG")
    assert ((place.shop / ".git/COMMIT_EDITMSG").stat().st_size == size) == kept
    assert ("this was dropped: .git/COMMIT_EDITMSG." in said) != kept


ALL_BUT = "Only data is kept from .git; this was dropped: "


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("rebase-merge/a rebase-merge/b", ".git/rebase-merge."),
        ("a b", ".git/a, .git/b."),
        ("a b c d e", ".git/a, .git/b, .git/c, .git/d, .git/e."),
        ("a b c d e f", ".git/a, .git/b, .git/c, .git/d, .git/e and 1 more."),
        ("a.lock", None),
    ],
)
def test_what_was_left_out_is_named(place: Place, names: str, told: str | None) -> None:
    said = runs(place, f"cd .git; mkdir rebase-merge; for n in {names}; do echo x > $n; done")
    assert said == (f"{ALL_BUT}{told}" if told else "")


LIB = "git -c protocol.file.allow=always submodule add -q ../library lib; git commit -qm lib;"
LINKED = f"git init -q inner; cd inner; {COMMIT} --allow-empty -m x; cd ..; git add inner"
LEFT = "Exclude it, for example by .gitignore, or add it outside"


def test_a_repository_that_a_program_adds_to_the_index_takes_all_with_it(place: Place) -> None:
    before = heads(place)
    said = runs(place, f"git tag t; {LINKED} 2>&1")
    assert f"{NOT_KEPT}the index names inner, which is a separate repository. {LEFT}." in said
    assert heads(place) == before


def test_a_repository_with_a_submodule_takes_a_commit(place: Place) -> None:
    place.sh(f"{LIB} git -C lib commit -q --allow-empty -m x")
    assert runs(place, f"git add lib; {COMMIT} -m more") == ""
    assert place.sh("git log --format=%s; git status --porcelain") == "more\nlib\nfirst\n"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("mv lib other; ln -s other lib", "lib is in the place of the submodule lib"),
        ("printf xxxx | dd conv=notrunc of=.git/index", "git cannot read the index of .git"),
    ],
)
def test_a_submodule_that_cannot_be_protected_asks(place: Place, change: str, why: str) -> None:
    place.sh(f"{LIB} git submodule -q deinit -f lib")
    rules = place.shop.parent / "rules.hy"
    rules.write_text("(allow (shell :argv _))")
    with agent(place.shop, policy=str(rules)) as made:
        assert made.call(shell("touch", "lib/x")).value["exit"] == 1
        place.sh(change)
        asked = made.call(shell("true"))
    assert (asked.status, why in asked.message) == ("pending", True), asked.message


@pytest.mark.parametrize("change", ["true", "rmdir lib", "rmdir lib; git sparse-checkout set --cone src"])
def test_no_repository_is_made_in_the_folder_of_a_submodule(place: Place, change: str) -> None:
    place.sh(f"{LIB} git submodule -q deinit -f lib; {change}")
    said = runs(place, "rm -rf lib; mkdir -p lib/.git; git status --short")
    assert "cannot create directory" in said
    assert place.sh("git status --short; ls -A lib") == ""


READ_ONLY = {
    # how the workspace is made beside the repository: what is said where git would write
    "git worktree add -q ../tree": ("tree", "Git's folder is outside the workspace, and is read-only"),
    "git -c protocol.file.allow=always submodule add -q ../library lib": (
        "shop/lib",
        "Git's folder is outside the workspace, and is read-only",
    ),
    "true": ("shop/src", "The repository is in {base}/shop, a folder above the workspace, and"),
    "mkdir .git/reftable": (
        "shop",
        "Git's folder is not copied, because it keeps its branches in a reftable",
    ),
    "mv .git/logs x; ln -s ../../x .git/logs": ("shop", "Git's folder is not copied, because logs is a link"),
}


@pytest.mark.parametrize(("made", "told"), READ_ONLY.items(), ids=list(READ_ONLY))
def test_a_repository_that_is_read_only_is_read_and_said(
    place: Place, monkeypatch: pytest.MonkeyPatch, made: str, told: tuple[str, str]
) -> None:
    base = place.shop.parent
    monkeypatch.setenv("HOME", str(base))
    place.sh(made)
    if "logs" in made:
        (base / "x").mkdir()
    where, said = told
    there = place._replace(shop=base / where)
    found = runs(there, f"git log --format=%s; git status >&2; {COMMIT} --allow-empty -m x; exit 1")
    assert found.startswith("first\n")
    assert said.format(base=base) in found


def test_a_file_that_names_the_git_of_another_shows_nothing_of_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place.sh("cp -r .git ../home/private; git worktree add -q ../tree; mkdir ../plain")
    plain = place._replace(shop=tmp_path / "plain")
    (plain.shop / ".git").write_text(f"gitdir: {tmp_path}/home/private\n")
    assert "not a git repository" in runs(plain, "git log 2>&1; true")
    (plain.shop / ".git").write_text(f"gitdir: {place.shop}/.git/worktrees/tree\n")
    assert "first" in runs(place._replace(shop=tmp_path / "tree"), "git log")


@pytest.mark.parametrize(
    "how",
    [
        "git init -q --object-format=sha256",
        "git init -q; git config core.splitIndex true",
        "git init -q; git config index.version 4",
        "git init -q; git config feature.manyFiles true",
    ],
)
def test_repositories_of_other_kinds_take_a_commit(place: Place, how: str) -> None:
    place.sh(f"rm -rf .git; {how}; git add .; git commit -qm first")
    said = runs(place, f"echo x > a.txt; git add a.txt; {COMMIT} -m second")
    assert NOT_KEPT not in said
    assert place.sh("git log --format=%s; git status --porcelain; git fsck") == "second\nfirst\n"


def test_a_sparse_checkout_takes_a_commit(place: Place) -> None:
    place.sh(
        "mkdir other; echo x > other/x; git add .; git commit -qm two;"
        " git sparse-checkout set --cone --sparse-index src"
    )
    assert runs(place, f"echo y > src/b.txt; git add src; {COMMIT} -m three") == ""
    assert place.sh("git log --format=%s; git status --porcelain; git ls-files -t") == (
        "three\ntwo\nfirst\nH a.txt\nS other/x\nH src/b.txt\n"
    )


def test_a_program_in_the_background_says_what_was_left_out(place: Place) -> None:
    script = "git tag t; echo x > .git/commondir"
    with agent(place.shop, consent="yes") as made:
        id = made.call(shell("sh", "-c", script, more=" :background True")).value["id"]
        said = made.call(f'(process :id "{id}" :operation "wait")').value
    assert said == {
        "exit": 0,
        "output": "\nquoth: Only data is kept from .git; this was dropped: .git/commondir.\n",
    }
    assert place.sh("git tag") == "t\n"


def test_a_copy_that_cannot_be_made_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.shell.private_git.MOST_FILES", 3)
    said = runs(place, "git tag t; exit 1")
    assert f"{IT_HAS_MORE_THAN} 3 files beside its objects" in said


def test_a_copy_that_would_be_a_giant_is_not_made(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.shell.private_git.MOST_BYTES", 2 << 20)
    place.sh(f"head -c {2 << 20} /dev/zero > .git/objects/giant")
    assert runs(place, "git tag s") == ""
    place.sh(f"head -c {2 << 20} /dev/zero > .git/packed-refs.lock")
    assert runs(place, "git tag t; exit 0") == ""
    place.sh(f"rm .git/packed-refs.lock; head -c {2 << 20} /dev/zero > .git/logs/giant")
    assert f"{IT_HAS_MORE_THAN} 2 MB beside its objects" in runs(place, "git tag u; exit 1")


PROJECT = {
    "test_it.py": "def test_it(tmp_path):\n    assert tmp_path.exists()\n",
    ".gitignore": "__pycache__\n.ruff_cache\n",
    "package.json": '{"scripts": {"test": "node check.js"}}',
    "check.js": "require('assert').equal(1 + 1, 2)\n",
    ".pre-commit-config.yaml": "repos: [{repo: local, hooks: [{id: ruff, name: ruff, language: system, "
    "entry: ruff check, types: [python]}]}]\n",
}
UNASKED = [
    ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    ["ruff", "check", "."],
    *([["npm", "test"]] if shutil.which("npm") else []),
    ["git", "add", "."],
    ["git", "commit", "-m", "tested"],  # pre-commit is its hook
    ["git", "status", "--short"],
]
ASKED = [
    ["git", "tag", "v1"],
    ["git", "switch", "-c", "topic"],
    ["git", "stash"],
    ["git", "stash", "pop"],
    ["git", "commit", "-am", "changed"],
    ["git", "switch", "master"],
    ["git", "merge", "topic"],
    ["git", "rebase", "v1"],
    ["pre-commit", "run", "--all-files"],
]


def test_a_day_with_the_rules_that_quoth_prints(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests, linters, add and commit are not asked about; the rest works once it is allowed."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name, text in PROJECT.items():
        (place.shop / name).write_text(text)
    assert "installed" in place._replace(env={**place.env, "PATH": os.environ["PATH"]}).sh(
        "pre-commit install"
    )
    rules = place.shop.parent / "rules.hy"
    rules.write_text(quoth("policy", "example", cwd=place.shop).out)
    with agent(place.shop, policy=str(rules)) as alone, agent(place.shop, consent="yes") as asked:
        for argv in UNASKED:
            result = alone.call(shell(*argv))
            assert result.ok, result.message
            assert result.value["exit"] == 0, result.value
        (place.shop / "a.txt").write_text("changed\n")
        for argv in ASKED:
            assert alone.call(shell(*argv)).status == "pending"
            result = asked.call(shell(*argv))
            assert (result.value["exit"], result.message) == (0, ""), result.value
    assert place.sh("git log --format=%s; git status --porcelain; git stash list; git branch; git tag") == (
        "changed\ntested\nfirst\n* master\n  topic\nv1\n"
    )


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (
            "true",
            "Landlock cannot protect the repository .git, so git outside may run commands from the program",
        ),
        ("mkdir plain; git clone -q . lib; rm -rf .git", "Landlock cannot protect the repository lib/.git"),
        ("rm -rf .git", ""),
    ],
)
def test_landlock_asks_in_a_workspace_with_a_repository(
    place: Place, monkeypatch: pytest.MonkeyPatch, made: str, why: str
) -> None:
    monkeypatch.setenv("QUOTH_BOUNDARY", "landlock")
    for answer in (boundary._found, boundary._bwrap, boundary._landlock):
        answer.cache_clear()
    place.sh(made)
    (rules := place.shop.parent / "rules.hy").write_text("(allow (shell :argv _))")
    with agent(place.shop, policy=str(rules)) as asked:
        result = asked.call(shell("true"))
    assert (result.status, why in result.message) == ("pending" if why else "ok", True)
    boundary._found.cache_clear()


def test_a_workspace_that_is_a_bare_repository_asks(place: Place, tmp_path: Path) -> None:
    place.sh("git clone -q --bare . ../mirror")
    with agent(tmp_path / "mirror") as asked:
        assert "itself a bare repository" in asked.call(shell("true")).message


def test_what_others_obey_is_named(place: Place) -> None:
    script = "mkdir -p a/.vscode docs/objects docs/refs; touch a/.vscode/tasks.json .envrc docs/HEAD b.py"
    assert runs(place, script) == (
        "It wrote files that other programs obey: docs (a git repository), .envrc, a/.vscode/tasks.json."
        " Review them before these run."
    )


def test_what_is_hidden_in_git_is_hidden_in_the_copy(place: Place) -> None:
    (place.shop / ".git/info").mkdir(exist_ok=True)
    (place.shop / ".git/info/secret").write_text("secret")
    secret = place.shop / ".git/info/secret"
    command = boundary.confined(
        ["sh", "-c", "cat .git/info/secret .git/config; git tag t"],
        boundary.Boundary(place.shop, place.shop, hidden=(secret,), protected=(secret.parent,)),
        "bubblewrap",
    )
    done = subprocess.run(
        command.argv, env=command.env, pass_fds=command.pass_fds, capture_output=True, text=True
    )
    assert command.finish() == []
    command.close()
    assert "secret" not in done.stdout
    assert "ann@example.org" in done.stdout
    assert place.sh("git tag") == "t\n"


def test_settings_are_changed_outside(place: Place) -> None:
    said = runs(place, "git config user.name eve; exit 1")
    assert said.endswith("The settings of git are read-only here: change them outside.")
    assert place.sh("git config user.name") == "ann\n"
