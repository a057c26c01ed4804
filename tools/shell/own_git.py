"""Git for our own work in a person's repository, which runs no program that a repository names.

It runs outside every boundary. Commands that read or write files of a work tree run with a git folder of
our own (OwnGit): it has no hooks and only plain settings, and the real objects. The real repository is asked
about references and worktrees only, without hooks. So no filter, driver, monitor, hook or signature runs.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from quoth.tools.errors import ToolError
from quoth.tools.shell.plain_git import CLOSED, LINK, SYSTEM, USUAL
from quoth.tools.storage.paths import real_path, repository_top

LEAST = (2, 38)  # of git: the first whose merge-tree writes a tree
SECONDS = 300.0  # for one command of git: a checkout may write a million files
OFF = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false")
# Settings of the person and the repository that are data, and change what git reads from files.
PLAIN = re.compile(
    r"core\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode|excludesfile|longpaths)"
    r"|user\.(name|email)|extensions\.objectformat"
)
NO_REPOSITORY = "{} is not in a git repository, so it cannot have worktrees. To make it one: git init"
NO_COMMIT = "The repository {} has no commit, so a worktree has nothing to begin with. Commit once."
NO_GIT = "Worktrees need git {}.{} or newer{}."
GIT_LINK = f"{LINK:o}"


class Changed(NamedTuple):
    """One file that differs between two commits: modes and ids, zeros for no file."""

    path: str
    before: tuple[str, str]
    after: tuple[str, str]


class Repository:
    """The repository of the project ``home``: its work tree ``top``, that one's folder ``git``, and the
    folder ``common`` of all its work trees. All methods raise ToolError."""

    def __init__(self, home: Path) -> None:
        """Find the repository of the project ``home``."""
        self.home = real_path(home)
        self._program = _program()
        if repository_top(self.home) is None:
            raise ToolError(NO_REPOSITORY.format(self.home))
        asked = ("--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir")
        top, git, common = self.real("rev-parse", *asked).splitlines()
        self.top, self.git, self.common = Path(top), Path(git), Path(common)

    def real(self, *words: str, cwd: Path | None = None) -> str:
        """The output of git in the real repository: for references and worktrees only."""
        off = [word for one in OFF for word in ("-c", one)]
        made = self.ran([*off, *words], cwd or self.home, {})
        return made.decode("utf-8", "surrogateescape").strip()

    def ran(
        self,
        words: Sequence[str],
        cwd: Path,
        env: dict[str, str],
        stdin: bytes = b"",
        codes: Sequence[int] = (0,),
        personal: bool = False,
    ) -> bytes:
        """The output of git. Only with ``personal`` does it read the person's settings."""
        home = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
        usual = {**USUAL, "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
        try:
            done = subprocess.run(  # noqa: S603
                [self._program, *words],
                cwd=cwd,
                env={**usual, **(home if personal else CLOSED), **env},
                input=stdin,
                capture_output=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"git did not finish within {SECONDS:g} s.") from None
        except OSError as error:
            raise ToolError(f"git cannot be started: {error.strerror}.") from None
        if done.returncode not in codes:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            why = next((line for line in said if line.startswith(("fatal:", "error:"))), "".join(said[-1:]))
            raise ToolError(f"git failed: {why.partition(': ')[2] or why or done.returncode}.")
        return done.stdout

    @cached_property
    def plain(self) -> dict[str, str]:
        """The person's and the repository's settings that are data."""
        listed = self.ran(["config", "--null", "--list"], self.home, {}, personal=True).decode(
            "utf-8", "replace"
        )
        rows = (row.partition("\n") for row in listed.split("\0"))
        return {name: value for name, _, value in rows if PLAIN.fullmatch(name)}

    @contextlib.contextmanager
    def own(self, tree: Path, index: Path | None = None) -> Iterator[OwnGit]:
        """Git with a folder of our own, for the files of ``tree`` and a copy of ``index``."""
        with tempfile.TemporaryDirectory(prefix="quoth-") as name:
            yield OwnGit(self, Path(name), tree, index)

    def head(self) -> str:
        """The commit of the project's current branch."""
        try:
            return self.real("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except ToolError:
            raise ToolError(NO_COMMIT.format(self.top)) from None


class OwnGit:
    """Git with a folder of our own, for the files of one work tree."""

    def __init__(self, repository: Repository, folder: Path, tree: Path, index: Path | None) -> None:
        self._repository, self._tree = repository, tree
        self._index = folder / "index"
        common, plain = repository.common, repository.plain
        for name in ("objects", "refs", "info"):
            (folder / name).mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        for name in ("info/exclude", "info/attributes", "shallow"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(common / name, folder / name)
        if index is not None and index.exists():
            shutil.copyfile(index, self._index)
            for part in index.parent.glob("sharedindex.*"):
                (folder / part.name).symlink_to(part)
        sha256 = plain.get("extensions.objectformat", "") == "sha256"
        default = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config", "git/ignore").expanduser()
        said = {"core.excludesfile": str(default), **plain}
        said |= {"core.bare": "false", "core.repositoryformatversion": "1" if sha256 else "0"}
        said |= {"core.splitindex": "false", "core.untrackedcache": "false", "submodule.recurse": "false"}
        lines = [
            f"[{name.partition('.')[0]}]\n\t{name.partition('.')[2]} = {_quoted(said[name])}" for name in said
        ]
        (folder / "config").write_text("\n".join([*lines, ""]))
        who = plain.get("user.name") or getpass.getuser()
        email = plain.get("user.email") or f"{getpass.getuser()}@localhost"
        self._env = {
            "GIT_DIR": str(folder),
            "GIT_OBJECT_DIRECTORY": str(common / "objects"),
            "GIT_INDEX_FILE": str(self._index),
            "GIT_WORK_TREE": str(tree),
            **{f"GIT_{role}_NAME": who for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": email for role in ("AUTHOR", "COMMITTER")},
        }

    def __call__(self, *words: str, stdin: bytes = b"", codes: Sequence[int] = (0,)) -> bytes:
        return self._repository.ran(words, self._tree, self._env, stdin, codes)

    def line(self, *words: str, stdin: bytes = b"") -> str:
        return self(*words, stdin=stdin).decode().strip()

    def keep_index(self, place: Path) -> None:
        """Make this index the one at ``place``, which nothing else writes."""
        new = place.with_name("index.quoth")
        self.copy_index(new)
        new.replace(place)

    def copy_index(self, place: Path) -> None:
        with place.open("r+b" if place.exists() else "wb") as file:
            file.write(self._index.read_bytes())
            file.truncate()
            file.flush()
            os.fsync(file.fileno())

    def refresh(self) -> None:
        """Compare files with the index by content where their times differ."""
        self("update-index", "-q", "--refresh", codes=(0, 1))

    def changed(self, commit: str) -> set[str]:
        """The files of the work tree that differ from a commit, without ignored ones and repositories in it.
        Its submodules are not asked: git would run commands from their settings."""
        self.refresh()
        names = [
            *self(
                "diff-index", "-z", "--name-only", "--ignore-submodules=all", "--no-ext-diff", commit
            ).split(b"\0"),
            *self("ls-files", "-z", "--others", "--exclude-standard").split(b"\0"),
        ]
        return {os.fsdecode(name) for name in names if name and not name.endswith(b"/")}

    def ignored_changes(self) -> set[str]:
        """The files whose changes a setting of git ignores, so that ``changed`` does not see them."""
        rows = os.fsdecode(self("ls-files", "-v", "-z")).split("\0")
        return {row[2:] for row in rows if row[:1] == "S" or row[:1].islower()}

    def differing(self, before: str, after: str) -> list[Changed]:
        """The files that differ between two commits or trees."""
        rows = os.fsdecode(self("diff-tree", "-r", "-z", "--no-renames", before, after)).split("\0")
        found = []
        for facts, path in zip(rows[::2], rows[1::2], strict=False):
            old_mode, new_mode, old, new, _ = facts.removeprefix(":").split()
            found.append(Changed(path, (old_mode, old), (new_mode, new)))
        return found

    def blob(self, side: tuple[str, str]) -> bytes | None:
        mode, id = side
        if is_missing_side(side):
            return None
        return id.encode() if mode == GIT_LINK else self("cat-file", "blob", id)

    def on_disk(self, one: Changed) -> tuple[bytes | None, bytes | None]:
        """The contents before and after a change, as a checkout writes them."""

        def written(side: tuple[str, str]) -> bytes | None:
            mode, id = side
            if is_missing_side(side) or mode == GIT_LINK:
                return None
            if mode == "120000":
                return self.blob(side)
            return self("cat-file", "--filters", f"--path={one.path}", id)

        return written(one.before), written(one.after)

    def lacks(self, changes: Sequence[Changed]) -> bool:
        """Whether the index has one of these files otherwise than after its change."""
        rows = (row.partition("\t") for row in os.fsdecode(self("ls-files", "-s", "-z")).split("\0"))
        has = {path: tuple(facts.split()[:2]) for facts, _, path in rows if path}
        return any(
            has.get(one.path) != (None if is_missing_side(one.after) else one.after) for one in changes
        )


def _program() -> str:
    """The git that runs here. Raises ToolError if there is none, or if it is too old."""
    program = shutil.which("git", path=SYSTEM)
    if program is None:
        raise ToolError(NO_GIT.format(*LEAST, ", and no git was found"))
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30)  # noqa: S603
    found = re.search(r"(\d+)\.(\d+)", said.stdout)
    if found is None or (int(found[1]), int(found[2])) < LEAST:
        raise ToolError(NO_GIT.format(*LEAST, f"; this is {said.stdout.strip()}"))
    return program


def shown_change(one: Changed, before: bytes | None, after: bytes | None) -> list[str | bytes | None]:
    """A change for a person. A link, a program, a binary file and a repository are described."""
    mode = {"100755": "executable", "120000": "a link", GIT_LINK: "a repository"}
    path = one.path
    if one.after[0] != one.before[0] and (what := mode.get(one.after[0], "")):
        path += f" ({what})"
    if after is None:
        return [path, before, None]
    try:
        text = after.decode() if b"\0" not in after else ""
    except UnicodeDecodeError:
        text = ""
    if after and not text:
        text = f"(a binary file of {len(after)} bytes, git's {one.after[1]})\n"
    return [path, before, text]


def is_missing_side(side: tuple[str, str]) -> bool:
    return not side[1].strip("0")


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def content_of(path: Path) -> bytes | None:
    """The content of a file, or the target of a link; None if there is neither."""
    try:
        return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
