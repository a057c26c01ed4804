"""Kills an agent in a worktree, its git included, with -9 and looks: nothing of the person's is lost or
changed, what is left is shown, and the next start finishes it. ``python tests/vocabulary/worktree_kills.py
[N]`` kills at N moments, else 60; with ``full`` git's disk is full at each of them instead.

The story is one process: open a worktree, write in it, commit, merge beside a commit and an uncommitted
change of the person, remove it. A moment is before, during or after one of its commands of git.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from git_layouts import Place, repository
from words import agent

from quoth.agent.run.worktrees import commit_work
from quoth.tools.errors import QuothError, ToolError
from quoth.tools.shell import own_git
from quoth.tools.shell.worktrees import Worktrees

SECONDS = 120.0
FILES = 30
WHEN = ("before", "during", "after")
WRITES = [
    *(f'(write-file :path "new{n}.txt" :content "{n}\\n")' for n in range(3)),
    '(read-file :path "f1.txt")',
    '(write-file :path "f1.txt" :content "by the agent\\n")',
    "Done.",
]


def prepared(base: Path) -> Place:
    """A person's repository with some files."""
    place = repository(base)
    for n in range(FILES):
        (place.shop / f"f{n}.txt").write_text(f"{n}\n" * 1000)
    place.sh("git add . && git commit -q -m files")
    return place


def story(shop: Path) -> None:
    """Do what is not yet done: run, merge, remove."""
    trees = Worktrees(shop)
    if not (shop / "new2.txt").exists():
        with agent(shop, *WRITES, consent="yes", session="s1", worktree=True) as made:
            done = made._agent.transcript.last("s1", "end", run="r1")
            if done is None and made._agent.runs.resumable():
                made.resume()
            elif done is None or done.status != "done":
                made.run("Change the files.")
        place = Place(shop, shop.parent / "PWNED", dict(os.environ))
        place.sh(
            "test -e beside.txt || { echo beside > beside.txt; git add beside.txt; } && "
            "{ git diff --cached --quiet beside.txt ||"
            " git -c user.name=a -c user.email=a@b commit -qm beside beside.txt; }"
        )
        (shop / "a.txt").write_text("not committed\n")
    with agent(shop, consent="yes") as made:
        if "s1" in trees.names():
            if trees.known("s1").uncommitted:  # as the command does
                commit_work(made._agent.workspace, "s1", "")
            if not trees.finish("s1") and trees.known("s1").ahead:
                result = made.call(f'(merge-worktree :name "s1" :commit "{trees.tip("s1")}")')
                if not result.ok:
                    raise ToolError(result.message)
            trees.remove("s1")


def child(shop: Path, number: int, when: str) -> None:
    """The story, in which command ``number`` of git is the last thing that happens."""
    real, count = subprocess.run, 0

    def run(*words: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        if count != number:
            return real(*words, **more)
        if when == "full":
            return real(["sh", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "sh", *words[0]], **more)
        if when == "during":
            for name in ("timeout", "capture_output", "text"):
                more.pop(name, None)
            stdin = more.pop("input", b"")
            begun = subprocess.Popen(*words, **more, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            assert begun.stdin is not None
            begun.stdin.write(stdin)
            begun.stdin.close()
            time.sleep(random.Random(number).random() * 0.006)
        elif when == "after":
            real(*words, **more)
        return os.killpg(0, signal.SIGKILL)

    only = SimpleNamespace(run=run, TimeoutExpired=subprocess.TimeoutExpired)
    own_git.subprocess = only  # type: ignore[misc]
    try:
        story(shop)
    except QuothError as error:
        print(error)
    finally:
        print("commands", count)


def begun(shop: Path, number: int, when: str) -> tuple[int, str]:
    words = [sys.executable, __file__, "child", str(shop), str(number), when]
    done = subprocess.run(words, capture_output=True, text=True, start_new_session=True, timeout=SECONDS)
    return done.returncode, done.stdout + done.stderr


def commands(base: Path) -> int:
    """The number of commands of git in the whole story."""
    code, said = begun(prepared(base).shop, 0, "before")
    assert code == 0, said
    return int(said.split()[-1])


def faults(base: Path, number: int, when: str) -> list[str]:
    """What is wrong after a kill at a moment, and after the next start."""
    place = prepared(base)
    code, said = begun(place.shop, number, when)
    found = []
    if when == "full":
        if "Traceback" in said:
            found.append(f"a traceback: {said}")
    elif code != -signal.SIGKILL:
        found.append(f"not killed: {code} {said}")
    if broken := place.sh("git fsck --no-dangling 2>&1 | grep -v '^notice\\|dangling'"):
        found.append(f"fsck: {broken}")
    status = place.sh("git status --short 2>&1")
    if "fatal" in status:
        found.append(f"status: {status}")
    trees = Worktrees(place.shop)
    left = (trees.folder / "s1").exists() or "quoth/s1" in place.sh("git branch; git worktree list")
    if left and "s1" not in trees.names():
        found.append("what is left is not shown")
    code, said = begun(place.shop, 0, "before")
    if code != 0 or "Traceback" in said:
        found.append(f"the next start: {said[-1500:]}")
    if (rest := place.sh("git status --short")) != " M a.txt\n":
        found.append(f"status at the end: {rest}")
    for name, text in (
        ("new0.txt", "0\n"),
        ("new2.txt", "2\n"),
        ("f1.txt", "by the agent\n"),
        ("a.txt", "not committed\n"),
    ):
        if not (place.shop / name).exists() or (place.shop / name).read_text() != text:
            found.append(f"{name} is wrong")
    git = place.shop / ".git"
    rest = [*git.glob("*.lock"), *git.glob("index.quoth*"), *git.glob("worktrees/*"), *trees.folder.glob("*")]
    if rest:
        found.append(f"left: {[str(one) for one in rest]}")
    if place.sh("git branch").split() != ["*", "master"]:
        found.append("a branch is left")
    return found


def moments(total: int, many: int) -> list[tuple[int, str]]:
    every = [(number, when) for number in range(1, total + 1) for when in WHEN]
    return [every[at * len(every) // many] for at in range(min(many, len(every)))]


def main(words: list[str]) -> int:
    full = "full" in words
    many = next((int(word) for word in words if word.isdigit()), 60)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUOTH_STATE"] = f"{folder}/state"
        os.environ["QUOTH_CONFIG"] = f"{folder}/config"
        total = commands(Path(folder, "count"))
        chosen = [(n, "full") for n in range(1, total + 1)] if full else moments(total, many)
        for at, (number, when) in enumerate(chosen):
            said = faults(Path(folder, str(at)), number, when)
            wrong += bool(said)
            for one in said:
                print(f"{when} command {number} of {total}: {one}")
        print(f"{len(chosen)} moments of {total} commands of git, {wrong} with faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        sys.exit(main(sys.argv[1:]))
