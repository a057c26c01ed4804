"""The kinds of git's files, and a git for our own queries: in a repository of ours, without any settings that
could make it run a program.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

# The folders of programs that start outside: a folder of PATH may be in the workspace, where others write.
SYSTEM = os.pathsep.join((os.defpath, "/usr/local/bin", "/run/current-system/sw/bin"))
USUAL = {"PATH": SYSTEM, "LC_ALL": "C"}  # variables of each git of ours
# And those with which it reads no settings of a person or of the system.
CLOSED = {"HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
LIST = ("ls-files", "-s", "-z")
MOST_INDEX = 256 << 20  # bytes: of two million files
LINK = 0o160000  # the mode of an entry that is a repository of its own
# The files of .git that are data, and files that show that an operation has stopped half-way.
DATA = re.compile(
    r"index|HEAD|ORIG_HEAD|FETCH_HEAD|MERGE_[A-Z]+|AUTO_MERGE|CHERRY_PICK_HEAD|REVERT_HEAD|SQUASH_MSG"
    r"|COMMIT_EDITMSG|packed-refs|shallow"
)
HALFWAY = re.compile(r"rebase-.*|sequencer|BISECT_.*")
# A reference's name, as git check-ref-format has it, and what may be in its file.
NAME = r"(?:(?!\.)(?:(?!\.\.|@\{)[^\x00-\x20\x7f~^:?*\[\\/])+(?<!\.lock)(?<!\.)/)*" \
       r"(?!\.)(?:(?!\.\.|@\{)[^\x00-\x20\x7f~^:?*\[\\/])+(?<!\.lock)(?<!\.)"  # fmt: skip
REFERENCE = re.compile(rf"(?:refs|logs)/{NAME}")
ID = "[0-9a-f]{40}(?:[0-9a-f]{24})?"
VALUE = re.compile(rf"(?:ref:\s*refs/{NAME}|{ID})\n?")
LISTED = re.compile(rf"#.*|\^?{ID}|{ID} refs/{NAME}")  # a line of packed-refs or shallow


def is_data(name: str) -> bool:
    """Whether a name in .git belongs to a file that git only reads."""
    return bool(DATA.fullmatch(name) or REFERENCE.fullmatch(name))


def not_data(name: str, content: bytes) -> str:
    """The fault of a file of references, as part of a sentence: with it, git outside would write to the
    file's target, or stop working. "" for none, and for any other file."""
    text = content.decode("utf-8", "surrogateescape")
    if name in ("packed-refs", "shallow"):
        fits = all(map(LISTED.fullmatch, text.removesuffix("\n").split("\n"))) if text else True
        return "" if fits else "is not a list of references"
    whole = name == "HEAD" or name.startswith("refs/")
    leads = name.endswith("_HEAD") or name == "AUTO_MERGE"
    if (whole or (leads and text.startswith("ref:"))) and not VALUE.fullmatch(text):
        return "is not a reference"
    return ""


def settings() -> dict[str, str]:
    """The variables of a program with a private git: nothing may depend on data that is not carried back."""
    wanted = {"gc.auto": "0", "core.splitIndex": "false"}
    found = {"GIT_CONFIG_COUNT": str(len(wanted))}
    for number, (name, value) in enumerate(wanted.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


class IndexReader:
    """Reads indexes of a repository; ``folder`` is an empty one for its own files."""

    def __init__(self, git: Path, folder: Path) -> None:
        self._folder, own = folder, folder / "own"
        for name in ("objects", "refs"):
            (own / name).mkdir(parents=True)
        (own / "HEAD").write_text("ref: refs/heads/none\n")
        sha256 = _setting(git / "config", "extensions.objectformat") == "sha256"
        version = "1\n[extensions]\n\tobjectformat = sha256\n" if sha256 else "0\n"
        (own / "config").write_text(f"[core]\n\tbare = false\n\trepositoryformatversion = {version}")
        for part in git.glob("sharedindex.*"):
            (own / part.name).symlink_to(part)
        self._env = {"GIT_DIR": str(own), "GIT_OBJECT_DIRECTORY": str(git / "objects")}

    def is_plain(self, index: Path) -> bool:
        """Whether git accepts each entry of an index in an empty one. An index that needs other files, such
        as a split index, is not plain."""
        listed = self._ask(*LIST, index=index)
        again = self._folder / "again"
        if (
            listed is None
            or self._ask("update-index", "-z", "--index-info", index=again, stdin=listed) is None
        ):
            return False
        return listed == (self._ask(*LIST, index=again) if again.exists() else b"")

    def same(self, one: Path, other: Path) -> bool:
        """Whether two indexes have equal entries, ignoring cached data about the files on disk."""
        if not (one.exists() and other.exists()):
            return one.exists() == other.exists()
        said = self._ask(*LIST, "-v", index=one)
        return said is not None and said == self._ask(*LIST, "-v", index=other)

    def links(self, index: Path) -> set[str]:
        """The paths of an index that are separate repositories: git asks each for its state. Raises
        ValueError if git cannot read the index."""
        if not may_have_links(index):
            return set()
        if (listed := self._ask(*LIST, index=index)) is None:
            raise ValueError("git cannot read the index")
        rows = (row.partition(b"\t") for row in listed.split(b"\0"))
        return {os.fsdecode(name) for facts, _, name in rows if facts.startswith(b"%o " % LINK)}

    def _ask(self, *words: str, index: Path, stdin: bytes = b"") -> bytes | None:
        return _git(*words, cwd=self._folder, more={**self._env, "GIT_INDEX_FILE": str(index)}, stdin=stdin)


def may_have_links(index: Path) -> bool:
    """Whether an index may name a separate repository: a fast check, because every program waits for it.
    Raises OSError, and ValueError for a huge index."""
    parts = (index, *index.parent.glob("sharedindex.*"))
    return any(_holds(part, LINK.to_bytes(4, "big")) for part in parts if part.is_file())


def _holds(file: Path, wanted: bytes) -> bool:
    if file.stat().st_size > MOST_INDEX:
        raise ValueError("it is too large")
    rest = b""
    with file.open("rb") as reading:
        while piece := reading.read(1 << 20):
            if wanted in (rest := rest[-len(wanted) :] + piece):
                return True
    return False


def common_folders(root: Path) -> tuple[Path, ...]:
    """The git folders that a linked work tree or a submodule uses; none unless they also name it: any user
    may have written the file ``.git``."""
    with contextlib.suppress(OSError, ValueError):
        named = (root / ".git").read_text().removeprefix("gitdir:").strip()
        folder = Path(os.path.realpath(root / named))
        back = folder / "gitdir"
        if back.is_file():
            common = Path(os.path.realpath(folder / (folder / "commondir").read_text().strip()))
            return (common, folder) if Path(back.read_text().strip()) == root / ".git" else ()
        tree = _setting(folder / "config", "core.worktree")
        return (folder,) if tree and Path(os.path.realpath(folder / tree)) == root else ()
    return ()


def _setting(file: Path, name: str) -> str:
    words = ("config", "--file", str(file), "--no-includes", "--get", name)
    return (_git(*words, cwd=Path("/")) or b"").decode("utf-8", "replace").strip()


def _git(*words: str, cwd: Path, more: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes | None:
    """The output of git, None if it fails."""
    if (program := shutil.which("git", path=SYSTEM)) is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603
            [program, *words],
            cwd=cwd,
            env={**USUAL, **CLOSED, **(more or {})},
            input=stdin,
            capture_output=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
