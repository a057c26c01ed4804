"""Repositories that a confined program tries to turn against the git outside: one row a layout or spelling.

Each is made by a person's git, attacked by a program of the tool shell, and looked at by git outside. An
attack that got through has run a program there, which leaves the file PWNED. git_trials.py tries them, and
compares a day's work inside with one outside.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

# What a model's program has at hand: `evil FILE` writes settings of git that run a program at `git status`,
# and `evil_repository FOLDER` a whole repository with such settings.
TOOLS = """
evil() {
  printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "touch %s; false"\\n' "$PWNED" >> "$1"
}
evil_repository() {
  mkdir -p "$1/objects" "$1/refs/heads" && echo 'ref: refs/heads/master' > "$1/HEAD" && evil "$1/config"
}
"""
SUBMODULE = "git -c protocol.file.allow=always submodule add -q {beside}/library lib"
COMMIT = "git -c user.name=a -c user.email=a@b.c commit -q"
EVIL_LIB = "evil_repository lib/.git"


class Attack(NamedTuple):
    """``made`` by the person, ``does`` what the program runs, ``looks`` what is run outside then; ``where``
    is the workspace from the top of the repository."""

    made: str
    does: str
    looks: str = "git status; git -C . diff --stat"
    where: str = "."


ATTACKS = {
    "settings of a work tree": Attack(
        "git config extensions.worktreeConfig true; touch .git/config.worktree", "evil .git/config.worktree"
    ),
    "settings after a sparse checkout": Attack(
        "git sparse-checkout set --cone src", "evil .git/config.worktree"
    ),
    "a common folder": Attack(
        "true", "evil_repository evil; echo ../evil > .git/commondir"
    ),
    "settings of a linked work tree": Attack(
        "git config extensions.worktreeConfig true; git worktree add -q ../shop/tree",
        "evil .git/worktrees/tree/config.worktree",
        "git -C tree status",
    ),
    "the common folder of a linked work tree": Attack(
        "git worktree add -q tree",
        "evil_repository evil; echo ../../../evil > .git/worktrees/tree/commondir",
        "git -C tree status",
    ),
    "the file that leads to a linked work tree": Attack(
        "git worktree add -q tree",
        "evil_repository evil; echo 'gitdir: ../evil' > tree/.git",
        "git -C tree status",
    ),
    "a repository and its work tree beside each other": Attack(
        "mkdir plain; mv .git a.txt src plain; git -C plain worktree add -q ../tree",
        "evil plain/.git/config",
        "git -C tree status; git -C plain status",
    ),
    "settings of a submodule": Attack(
        SUBMODULE, "evil .git/modules/lib/config", "git status; git -C lib status"
    ),
    "the file that leads to a submodule": Attack(
        SUBMODULE, "evil_repository evil; echo 'gitdir: ../evil' > lib/.git", "git -C lib status"
    ),
    "a submodule that was not fetched": Attack(f"{SUBMODULE}; git submodule -q deinit -f lib", EVIL_LIB),
    "a submodule that was not fetched, of a submodule": Attack(
        "git clone -q . ../other; git -C ../library -c protocol.file.allow=always submodule add -q"
        f" {{beside}}/other lib; git -C ../library commit -qm lib; {SUBMODULE}",
        "evil_repository lib/lib/.git",
    ),
    "a submodule that was not fetched, of a linked work tree": Attack(
        f"{SUBMODULE}; git commit -qm lib; git worktree add -q tree", "evil_repository tree/lib/.git",
        "git -C tree status",
    ),
    "a submodule whose folder is missing": Attack(
        f"{SUBMODULE}; git submodule -q deinit -f lib; rmdir lib", EVIL_LIB
    ),
    "a submodule outside of a sparse checkout": Attack(
        f"{SUBMODULE}; git commit -qm lib; git submodule -q deinit -f lib;"
        " git sparse-checkout set --cone src; rm -rf lib",
        EVIL_LIB,
    ),
    "a submodule whose folder is a file": Attack(
        f"{SUBMODULE}; git submodule -q deinit -f lib; rmdir lib; touch lib", f"rm lib; {EVIL_LIB}"
    ),
    "a submodule that was not fetched, in a folder of the repository": Attack(
        "git -c protocol.file.allow=always submodule add -q {beside}/library src/lib;"
        " git submodule -q deinit -f src/lib", EVIL_LIB, where="src",
    ),
    "a submodule that was not fetched, in a linked work tree": Attack(
        f"{SUBMODULE}; git commit -qm lib; git worktree add -q tree", EVIL_LIB, "git -C tree status", "tree"
    ),
    "a submodule behind a renamed folder": Attack(
        "git -c protocol.file.allow=always submodule add -q {beside}/library in/lib;"
        " git submodule -q deinit -f in/lib",
        "mv in old; evil_repository in/lib/.git",
    ),
    "a submodule in a split index": Attack(
        f"{SUBMODULE}; git submodule -q deinit -f lib; git update-index --split-index", EVIL_LIB
    ),
    "a submodule of the program's": Attack(
        "true", f"git init -q lib; cd lib; {COMMIT} --allow-empty -m x;"
        " cd ..; git add lib; evil lib/.git/config",
    ),
    "a submodule that the program has committed": Attack(
        "true", f"git init -q lib; cd lib; {COMMIT} --allow-empty -m x;"
        f" cd ..; git add lib; {COMMIT} -m lib; evil lib/.git/config",
    ),
    "a .git that is a link": Attack(
        "mv .git store; ln -s store .git", "evil_repository evil; rm .git; ln -s evil .git"
    ),
    "settings behind a link": Attack(
        "mv .git/config own; ln -s ../here .git/config; ln -s own here", "rm here; cp own here; evil here"
    ),
    "hooks behind a link": Attack(
        "rm -rf .git/hooks; mkdir hooks; ln -s ../here .git/hooks; ln -s hooks here",
        "rm here; mkdir here; printf '#!/bin/sh\\ntouch %s\\n' $PWNED > here/post-checkout; chmod +x here/*",
        "git checkout -q -B other",
    ),
    "a separate git folder in the workspace": Attack(
        "git init -q --separate-git-dir store", "evil store/config; evil store/config.worktree"
    ),
    "settings of a nested repository": Attack("git clone -q . vendor/lib", "evil vendor/lib/.git/config",
                                              "git -C vendor/lib status"),
    "a nested repository behind a renamed folder": Attack(
        "git clone -q . vendor/lib", "mv vendor old; mkdir -p vendor/lib; evil_repository vendor/lib/.git",
        "git -C vendor/lib status",
    ),
    "a nested repository that is a link": Attack(
        "git clone -q . vendor/lib; mv vendor/lib/.git store; ln -s ../../store vendor/lib/.git",
        "evil_repository evil; rm vendor/lib/.git; ln -s ../../evil vendor/lib/.git",
        "git -C vendor/lib status",
    ),
    "a bare repository": Attack(
        "git clone -q --bare . mirror", "printf '[alias]\\n\\tst = !touch %s\\n' $PWNED >> mirror/config",
        "git -C mirror st",
    ),
    "a hook of the person's that runs the Makefile": Attack(
        "printf '#!/bin/sh\\nexec make -s check\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "evil_repository evil; printf 'check:\\n\\techo ../evil > .git/commondir\\n' > Makefile;"
        f" git add Makefile; {COMMIT} -m evil",
    ),
    "hooks where there were none": Attack(
        "rm -rf .git/hooks",
        "mkdir .git/hooks; printf '#!/bin/sh\\ntouch %s\\n' $PWNED > .git/hooks/post-checkout;"
        " chmod +x .git/hooks/post-checkout",
        "git checkout -q -B other",
    ),
    "steps of a rebase that stopped": Attack(
        "git switch -qc topic; echo 1 > a.txt; git commit -qam one; git switch -q master; echo 2 > a.txt;"
        " git commit -qam two; git rebase topic || true; test -d .git/rebase-merge",
        "echo \"exec touch $PWNED\" >> .git/rebase-merge/git-rebase-todo",
        "git checkout -q --theirs a.txt; git add a.txt; GIT_EDITOR=true git rebase --continue",
    ),
    "steps of a rebase that the program begins": Attack(
        "true",
        "mkdir .git/rebase-merge; cd .git/rebase-merge; echo refs/heads/master > head-name;"
        " git rev-parse HEAD | tee onto > orig-head; echo \"exec touch $PWNED\" > git-rebase-todo;"
        " touch interactive done; echo 1 > end; echo 0 > msgnum",
        "git status; GIT_EDITOR=true git rebase --continue",
    ),
    "branches in a reftable": Attack(
        "mkdir .git/reftable; git config extensions.worktreeConfig true; touch .git/config.worktree",
        "evil .git/config.worktree",
    ),
    "settings of a repository in a folder with a dot": Attack(
        "git clone -q . .cache/lib", "evil .cache/lib/.git/config", "git -C .cache/lib status"
    ),
    **{
        f"an entry {name} of the index": Attack(
            "true", f"$PYTHON $FORGER {name}", "git checkout -- .; git checkout -q -B b"
        )
        for name in (
            ".git/hooks/post-checkout", "src/../.git/hooks/post-checkout", "./.git/hooks/post-checkout"
        )
    },
}  # fmt: skip


# A day's work, each line one program; after it the repository must be as git outside would have left it.
HOOK = "printf '#!/bin/sh\\nexec make -s check\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
DAY = (
    "echo x >> a.txt; git add a.txt",
    "git commit -qm second",
    "echo y >> a.txt; git stash; git status --porcelain; git stash pop",
    "git commit -qam third",
    "echo z >> a.txt; git stash",
    "git switch -q -c other HEAD~1; echo o > o.txt; git add .; git commit -qm other",
    "git switch -q master; git merge -q -m merged other",
    "git tag -a v1 -m one; git tag light; git branch -d other; git notes add -m note",
    "git switch -q -c topic HEAD~1; echo t > t.txt; git add t.txt; git commit -qm topic",
    "git rebase -q master",
    "git switch -q master; git branch -D topic; git branch topic/a; git branch deep/er",
    "git branch -D topic/a deep/er; git branch topic; git branch deep",
    "git mv src/b.txt src/c.txt; git rm -q o.txt; git commit -qm moved; git revert --no-edit HEAD",
    "git cherry-pick topic~1 || git cherry-pick --abort",
    "git commit -q --amend -m amended; git reset -q --hard HEAD~1; git checkout -q --detach; git switch -q -",
    "echo 1 > a.txt; git commit -qam ours; git switch -q -c theirs HEAD~1; echo 2 > a.txt; git commit -qam x",
    "git merge master; git status --porcelain",
    "git checkout -q --ours a.txt; git add a.txt; git commit -qm resolved",
    "git pack-refs --all; git branch -D theirs; git switch -q master; git branch -D theirs",
    "git gc -q; git branch last; git update-index --assume-unchanged a.txt",
    "git merge theirs; git merge topic; echo n > new.txt; git add -N new.txt; echo 3 > src/b.txt",
)
STATE = (
    "git for-each-ref --format='%(refname) %(objecttype) %(contents:subject)'",
    "git log --all --format=%s | sort",
    "git status --porcelain; git diff --stat; git diff --cached --stat; git ls-files -v; cat .git/HEAD",
    "git stash list --format=%gs; git reflog --format=%gs; git fsck --no-dangling 2>&1; cat .git/MERGE_MSG",
    "ls .git; find .git -name '*.lock'",
)


class Place(NamedTuple):
    shop: Path
    pwned: Path
    env: dict[str, str]

    def sh(self, script: str) -> str:
        words = ["sh", "-c", script]
        done = subprocess.run(
            words,
            cwd=self.shop,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        return done.stdout + done.stderr


def repository(base: Path) -> Place:
    """A person's repository in ``base``/shop, with one commit, and a library beside it."""
    shop, home = base / "shop", base / "home"
    (shop / "src").mkdir(parents=True)
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = master\n"
    )
    names = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    place = Place(shop, base / "PWNED", {**names, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"})
    (shop / "a.txt").write_text("one\n")
    (shop / "src/b.txt").write_text("two\n")
    place.sh("git init -q && git add . && git commit -qm first && git clone -q . ../library")
    return place


def forge(name: str) -> None:
    """Put an entry into the index that git itself refuses."""
    subprocess.run(
        ["git", "update-index", "--no-split-index", "--index-version", "2", "--force-write-index"], check=True
    )
    stand_in = "x" * len(name.split("/")[0]) + name[len(name.split("/")[0]) :].replace(
        "/../", "/yy/"
    ).replace("/.git/", "/zzzz/")
    file = Path(stand_in)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\ntouch {os.environ['PWNED']}\n")
    file.chmod(0o755)
    subprocess.run(["git", "add", stand_in], check=True)
    index = Path(".git/index")
    data = index.read_bytes()[:-20].replace(stand_in.encode(), name.encode())
    entries, at = [], 12
    for _ in range(struct.unpack(">I", data[8:12])[0]):
        length = struct.unpack(">H", data[at + 60 : at + 62])[0] & 0xFFF
        end = at + ((62 + length + 8) & ~7)
        entries.append((data[at + 62 : at + 62 + length], data[at:end]))
        at = end
    data = data[:12] + b"".join(entry for _, entry in sorted(entries))
    index.write_bytes(data + hashlib.sha1(data).digest())
    file.unlink()


def a_day(base: Path, made: str = "true") -> tuple[list[str], list[str]]:
    """What git outside says after a day's work inside, and after the same day outside. Meanwhile an editor
    asks for the status all the time."""
    (base / "twin").mkdir()
    inside, outside = repository(base), repository(base / "twin")
    for place in (inside, outside):
        (place.shop / "Makefile").write_text("check:\n\ttest -f a.txt\n")
        place.sh(f"git config user.name ann; git config user.email a@b.c; {HOOK}; {made}")
    for script in DAY:
        outside.sh(script)
    over = threading.Event()

    def poll() -> None:
        while not over.wait(0.02):
            inside.sh("git status --porcelain")

    editor = threading.Thread(target=poll)
    editor.start()
    try:
        said = asyncio.run(_worked(inside))
    finally:
        over.set()
        editor.join()
    states = [
        [re.sub("[0-9a-f]{7,40}", "ID", place.sh(script)) for script in STATE] for place in (inside, outside)
    ]
    return [*said, *states[0]], states[1]


async def _worked(place: Place) -> list[str]:
    """Run the day inside; what was said of it but for what a program leaves out as usual."""
    from quoth.agent.client import AsyncAgent
    from quoth.tools.lisp.printer import print_value

    said = []
    async with AsyncAgent(workspace=place.shop, consent="yes") as agent:
        for script in DAY:
            result = await agent.call(f"(shell :argv {print_value(['sh', '-c', script])})")
            if not result.ok or "was kept" in result.message:
                said.append(f"{script}: {result.message}")
    return said


if __name__ == "__main__":
    forge(sys.argv[1])
