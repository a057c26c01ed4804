"""The workspace: the one folder that file tools may touch. All access to its files is here.

Paths are resolved through symlinks first; files are then opened from the root, component by component,
without following links, so that a link swapped in meanwhile cannot lead out.

Other people's changes are never lost: a writer locks the file's real path from reading to writing, and
compares the file once more right before replacing it, because an editor does not take our locks. An editor
may offer its ``buffers``: then text files are read and written through them, after all checks of a path.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from quoth.tools.call.buffers import Buffer, Buffers, buffer_of, is_behind, is_text
from quoth.tools.call.keeping import KEEPER, FileWrite, Held, held, held_bytes, kept, writable
from quoth.tools.errors import ToolError, UsageError, did_you_mean
from quoth.tools.registry.param_types import WorkspacePath, written
from quoth.tools.storage.atomic import replace_in
from quoth.tools.storage.file_lock import hold, is_held
from quoth.tools.storage.paths import is_missing, real_path, shared_path, worktree_place
from quoth.tools.text import file_name

if TYPE_CHECKING:
    from quoth.tools.call.ignored import Ignored

TURN_SECONDS = 25.0  # the time a writer waits for earlier writers
TURNS = 64  # locks for all files together: few, because lock files are never removed
REMEMBERED = 2000  # files that were read

_THREAD = threading.local()  # the turns this thread has, by the workspace that took each


def flight_lock(plan: Path) -> str:
    """The name of the lock that is held while a flight plan runs; ``plan`` is the real path of its file."""
    return f"flight of {plan}"


def _shared(path: Path) -> Path:
    """The real path, one object for all workspaces."""
    return shared_path(str(real_path(path)))


class Workspace:
    """A root folder. Tools cannot write its ``protected`` folders, ``.git`` folders, or a flight plan while
    it runs; they cannot even read its ``secret`` files, such as keys."""

    home: Path  # the project whose rules and records apply; the root itself, except in a git worktree
    loaded: tuple[Path, ...] = ()  # files whose code runs in this process: no program may change them

    def __init__(
        self, root: Path | str = ".", protected: tuple[Path, ...] = (), secret: Iterable[Path] = ()
    ) -> None:
        try:
            self.root = _shared(Path(root))
        except OSError as error:  # the current folder may have been deleted
            raise UsageError(f"The workspace {root} cannot be used: {_why(error)}.") from None
        self.home = self.root
        self._secret = {_shared(file.expanduser()) for file in secret}
        self.protected = (*map(_shared, protected), *self._secret)
        self._seen: dict[tuple[str, Path], bytes] = {}  # digests, by reader and file, the latest at the end
        self.buffers: Buffers | None = None  # of an editor; they come before the disk
        self._both: dict[Path, bytes] = {}  # digests of what editor and disk had last

    def on_disk(self) -> Workspace:
        """The same folder without the buffers of an editor."""
        if self.buffers is None:
            return self
        plain = Workspace(self.root, self.protected, self._secret)
        plain.home = self.home
        plain._seen = self._seen
        return plain

    def of_session(self, session: str) -> Workspace:
        """The workspace of a session: its git worktree if it has one, otherwise this one."""
        place = worktree_place(self.home, session)
        return self if place is None or place == self.root else self.at(place)

    def at(self, place: Path) -> Workspace:
        """The same workspace in a git worktree. Protected files of the project are protected there, too,
        and an absolute path into the project, in a rule or a call, is the one in the worktree."""
        made = Workspace(place, (), ())
        made.home = self.home
        made._secret = {*self._secret, *self._mirrored(place, self._secret)}
        around = {made.root, *made.root.parents}
        kept = [folder for folder in self.protected if folder not in around]
        made.protected = (*kept, *self._mirrored(place, self.protected))
        made.loaded = self.loaded
        return made

    def _mirrored(self, place: Path, files: Iterable[Path]) -> list[Path]:
        inside = (file for file in files if self.home in file.parents)
        return [place / file.relative_to(self.home) for file in inside]

    def locate(self, path: str | Path) -> Path:
        """The real path of ``path``, which is relative to the root. Raises ToolError for an invalid path."""
        path = os.fspath(path)
        if "\0" in path:
            raise ToolError("A path cannot contain a NUL character.")
        if self._leads_straight(path):
            return self.root / path
        try:
            real = (self.root / os.path.expanduser(path)).resolve()  # noqa: PTH111  the user of "~x" may not exist
            if self.home != self.root and not self.holds(real) and real.is_relative_to(self.home):
                real = (self.root / real.relative_to(self.home)).resolve()
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.stat(real)  # noqa: PTH116  raises for an impossible path, on every Python
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolError(f"{written(path)} cannot be resolved: {_why(error)}.") from None
        return real

    def _leads_straight(self, path: str) -> bool:
        """Whether a path is its own spelling, without links: a fast check that is true for most paths."""
        parts = path.split("/")
        if path.startswith("~") or not {"", ".", ".."}.isdisjoint(parts):
            return False
        place = str(self.root)
        try:
            for part in parts:
                place = f"{place}/{part}"
                if stat.S_ISLNK(os.lstat(place).st_mode):
                    return False
        except (FileNotFoundError, NotADirectoryError):  # nothing there, so no link either
            return True
        except (OSError, ValueError):
            return False
        return True

    def resolve(self, path: str | Path) -> Path:
        """The real path of ``path``. Raises ToolError when it is outside the workspace, or when a path
        that the policy has judged now leads elsewhere."""
        real = self.locate(path)
        if not self.holds(real):
            raise ToolError(f"{written(path)} is outside the workspace {self.root}.")
        return self.unmoved(path, real)

    def unmoved(self, path: str | Path, real: Path) -> Path:
        """Return ``real``. Raises ToolError when ``path`` was resolved before and led elsewhere then."""
        now = self.spelling(real)
        if isinstance(path, WorkspacePath) and now != path:
            raise ToolError(f"{path} now leads to {now}, which was not judged; repeat the call.")
        return real

    def holds(self, real: Path) -> bool:
        """Whether a real path is the root or below it."""
        return real == self.root or self.root in real.parents

    def spelling(self, real: Path) -> str:
        """The canonical spelling of a real path, which ``locate`` maps back to it: relative to the root if
        inside, absolute otherwise. A first name that begins with ``~`` is prefixed by ``./``."""
        if not self.holds(real):
            return str(real)
        shown = self.shown(real)
        return f"./{shown}" if shown.startswith("~") else shown

    def goes_through_link(self, path: str) -> bool:
        """Whether a path goes through a link, whose target may change. Raises ToolError."""
        real = self.locate(path)
        return os.path.normpath(self.root / os.path.expanduser(path)) != str(real)  # noqa: PTH111

    def canonical(self, path: str) -> WorkspacePath:
        """The canonical spelling of a path, together with the original one. Raises ToolError."""
        if "\0" not in path and self._leads_straight(path):
            return WorkspacePath(path, path)
        return WorkspacePath(self.spelling(self.locate(path)), path)

    def shown(self, path: Path) -> str:
        """A path inside the workspace as people and models see it: relative, with slashes."""
        return path.relative_to(self.root).as_posix() if path != self.root else "."

    def hide(self, file: Path | None) -> None:
        """Forbid tools to read or write a file, if there is one."""
        if file is not None and (real := real_path(file.expanduser())) not in self._secret:
            self._secret.add(real)
            self.protected = (*self.protected, real)

    def protect(self, files: Iterable[Path]) -> None:
        """Forbid tools to write these files, if they are in the workspace."""
        inside = (real for file in files if self.holds(real := real_path(file)))
        self.protected = (*self.protected, *inside)

    def is_secret(self, path: Path) -> bool:
        """Whether a path, in the workspace or outside, leads to a secret file."""
        return real_path(path.expanduser()) in self._secret

    def open_read(self, path: str | Path) -> BinaryIO:
        """Open a regular file for reading. Raises ToolError with the reason."""
        real, path = self.resolve(path), written(path)
        if real == self.root:
            raise ToolError(f"{path} is a folder; list-files shows what is in it.")
        if real in self._secret:
            raise ToolError(f"{path} is a secret of quoth's, which no tool may read.")
        try:
            return self._opened(path, real)
        except OSError as error:
            raise ToolError(self._failure(path, real, error)) from None

    def _opened(self, path: str, real: Path) -> BinaryIO:
        try:
            with self._parent(real) as parent:
                descriptor = os.open(real.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        except FileNotFoundError:
            if (buffer := self._buffer(real, None)) is None:
                raise
            return BytesIO(buffer.data)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            kind = "a folder; list-files shows what is in it" if real.is_dir() else "not a regular file"
            raise ToolError(f"{path} is {kind}.")
        file = os.fdopen(descriptor, "rb")
        if self.buffers is None or status.st_size > MAX_BYTES:
            return file
        with file:
            data = file.read()
        buffer = self._buffer(real, data)
        return BytesIO(data if buffer is None else buffer.data)

    def exists(self, path: str | Path) -> bool:
        """Whether there is a file or folder, on the disk or as a new file in an editor. Raises ToolError."""
        real = self.resolve(path)
        try:
            return real.exists() or self._buffer(real, None) is not None
        except OSError as error:
            raise ToolError(self._failure(written(path), real, error)) from None

    def _buffer(self, real: Path, disk: bytes | None, *, latest: bool = False) -> Buffer | None:
        """The file as an editor has it; None where the content of the disk counts (None for no file), as for
        files that are binary or that no tool may write: no editor is asked for them. Raises OSError."""
        if self.buffers is None or self._owner(real) or not is_text(disk or b""):
            return None
        text = self.buffers.read(real, latest=latest)
        if text is None or (disk is None and not text):
            return None
        return None if is_behind(real, buffer := buffer_of(text, disk), self._both) else buffer

    def _present(
        self, real: Path, parent: int, *, whole: bool, latest: bool = True
    ) -> tuple[Held | None, Buffer | None]:
        """The present content of a file, None if there is none; and the buffer that has it, if it does not
        come from the disk. Raises OSError."""
        there = held(real.name, parent, whole=whole or self.buffers is not None)
        if there is not None and (there.data is None or there.size > MAX_BYTES):
            return there, None
        buffer = self._buffer(real, None if there is None else there.data, latest=latest)
        return (there, None) if buffer is None else (held_bytes(buffer.data), buffer)

    def saw(self, reader: str, path: str, data: bytes) -> None:
        """Remember the content that ``reader`` has read, so that its next write may replace it."""
        self._saw((reader, self.resolve(path)), data)

    def has_seen(self, reader: str, path: str) -> bool:
        """Whether ``reader`` has read this file, or written it."""
        return (reader, self.resolve(path)) in self._seen

    def forget(self, path: str) -> None:
        """Forget the content that was read from this file, after a person has changed it."""
        real = self.resolve(path)
        for key in [key for key in self._seen if key[1] == real]:
            del self._seen[key]

    def _saw(self, key: tuple[str, Path], data: bytes) -> None:
        self._seen.pop(key, None)
        self._seen[key] = hashlib.sha256(data).digest()
        if len(self._seen) > REMEMBERED:
            self._seen.pop(next(iter(self._seen)), None)

    def alone(self, path: str) -> contextlib.AbstractContextManager[None]:
        """Lock the file against other calls, as a context. Raises ToolError after TURN_SECONDS."""
        return self._alone(path, self.resolve(path))

    @contextlib.contextmanager
    def _alone(self, path: str, real: Path) -> Iterator[None]:
        turn = int.from_bytes(hashlib.sha256(os.fsencode(real)).digest()[:4]) % TURNS
        mine: set[tuple[int, int]] = _THREAD.__dict__.setdefault("turns", set())
        with contextlib.ExitStack() as stack:
            if (id(self), turn) not in mine:
                busy = f"{path} is locked by other writers; try again."
                try:
                    stack.enter_context(hold(f"turn {turn}", busy, TURN_SECONDS))
                except UsageError as error:
                    raise ToolError(str(error)) from None
                mine.add((id(self), turn))
                stack.callback(mine.discard, (id(self), turn))
            yield

    def write(
        self,
        path: str | Path,
        data: bytes,
        *,
        before: bytes | None = None,
        reader: str = "",
        say: Callable[[str], None] = lambda text: None,
        mode: int | None = None,
    ) -> bool:
        """Replace the file with ``data`` atomically, creating parent folders; True if the file is new.

        The file must still contain ``before`` (empty also means no file), or the content that ``reader`` last
        read; if neither is known, any content is replaced. Mode and owner are preserved; ``say`` receives a
        sentence for each that is lost; a new file has ``mode``, or 0o666 less the umask. Hard links are
        broken, because the file's other name may be outside the workspace or under a stricter rule. The
        keeper of the running call receives the old content first. Raises ToolError.
        """
        real, name = self.resolve(path), written(path)
        if real == self.root or real.is_dir():
            raise ToolError(f"{name} is a folder.")
        if name.endswith("/"):
            raise ToolError(f"{name} names a folder; name a file in it.")
        self._require_open_to_tools(name, real)
        known = self._seen.get((reader, real)) if before is None else hashlib.sha256(before).digest()
        lost, made = list[str](), list[str]()
        try:
            with self._alone(name, real), self._parent(real, made) as parent:
                found = writable(name, real.name, parent)
                old = (0o666 if mode is None else mode) if found is None else found.st_mode & 0o777

                def keep(descriptor: int) -> None:
                    if found is not None:
                        lost.extend(kept(found, descriptor))
                    elif mode is not None:
                        os.fchmod(descriptor, mode)

                def sure(in_editor: bool = False) -> bool:
                    if is_held(flight_lock(real)):
                        raise ToolError(
                            f"{name} is a running flight plan; tools cannot change it until it ends."
                        )
                    keeps = KEEPER.get() is not None
                    if known is None and not keeps and self.buffers is None:
                        return True
                    # ``_through`` has just asked the editor.
                    there, buffer = self._present(real, parent, whole=keeps, latest=not in_editor)
                    if bool(before) if there is None else known not in (None, there.digest):
                        raise ToolError(_changed(name))
                    if buffer is not None and not (buffer.saved or in_editor):
                        raise ToolError(_unsaved(name))
                    after, place = hashlib.sha256(data).digest(), self.spelling(real)
                    unsaved = buffer is not None and not buffer.saved
                    _keep(FileWrite(self.root, place, there, after, old, len(made), unsaved), say)
                    return True

                alone = mode is None if found is None else found.st_nlink == 1  # it changes no other name
                through = self._through(real, parent, data) if alone else None
                if through is None:
                    replace_in(parent, real.name, [data], old, keep, sure)
                else:
                    assert self.buffers is not None, "it has the buffer"
                    data = through.as_saved(text := through.as_edited(data))
                    sure(in_editor=True)
                    self.buffers.write(real, text)
                    data = self._saved(name, real, parent, data, say)
        except OSError as error:
            raise ToolError(self._failure(name, real, error)) from None
        if reader:
            self._saw((reader, real), data)
        for what in lost:
            say(f"{name} {what}.")
        return found is None and (through is None or not through.data)

    def _through(self, real: Path, parent: int, data: bytes) -> Buffer | None:
        """The buffer of a file, empty for a new one; None if it is written to the disk. Raises OSError."""
        if self.buffers is None or not self.buffers.writes(real) or not is_text(data):
            return None
        there, buffer = self._present(real, parent, whole=True)
        return Buffer(b"") if there is None else buffer

    def _saved(self, name: str, real: Path, parent: int, data: bytes, say: Callable[[str], None]) -> bytes:
        """The content after an editor wrote ``data``; its own change is a write of the call, too."""
        with contextlib.suppress(OSError):  # the file is written; only the second look has failed
            there, _ = self._present(real, parent, whole=True)
            if there is not None and there.data is not None and there.data != data:
                say(f"{name} was changed by the editor as it was saved.")
                _keep(FileWrite(self.root, self.spelling(real), held_bytes(data), there.digest), say)
                return there.data
        return data

    def remove(self, path: str, before: bytes) -> None:
        """Remove a file that still contains ``before``. Raises ToolError."""
        real, path = self.resolve(path), written(path)
        self._require_open_to_tools(path, real)
        try:
            with self._alone(path, real), self._parent(real) as parent:
                there, buffer = self._present(real, parent, whole=True)
                if there is None or there.data != before:
                    raise ToolError(_changed(path))
                if buffer is not None and not buffer.saved:
                    raise ToolError(_unsaved(path))
                mode = stat.S_IMODE(os.stat(real.name, dir_fd=parent, follow_symlinks=False).st_mode)
                _keep(FileWrite(self.root, self.spelling(real), there, None, mode & 0o777))
                os.unlink(real.name, dir_fd=parent)
        except OSError as error:
            raise ToolError(self._failure(path, real, error)) from None

    def remove_folder(self, path: str) -> bool:
        """Remove a folder if it is empty; returns whether it was removed. Raises ToolError."""
        real = self.resolve(path)
        self._require_open_to_tools(path, real)
        try:
            with self._parent(real) as parent:
                os.rmdir(real.name, dir_fd=parent)
        except OSError:
            return False
        return True

    def adopted(self, path: str, before: bytes, reader: str = "") -> bytes:
        """The content of a file after a program of the user's changed it from ``before`` in the running call.
        The change counts as a write of the call, and the content as read by ``reader``. Raises ToolError."""
        real, path = self.resolve(path), written(path)
        try:
            with self._alone(path, real), self._parent(real) as parent:
                there = held(real.name, parent, whole=True)
                if there is None or there.data is None:
                    raise ToolError(_changed(path))
                if there.data != before:
                    _keep(FileWrite(self.root, self.spelling(real), held_bytes(before), there.digest))
        except OSError as error:
            raise ToolError(self._failure(path, real, error)) from None
        if reader:
            self._saw((reader, real), there.data)
        return there.data

    def _require_open_to_tools(self, path: str, real: Path) -> None:
        if owner := self._owner(real):
            raise ToolError(f"{path} belongs to {owner} itself and cannot be written by a tool.")

    def _owner(self, real: Path) -> str:
        """The program that a file belongs to, so that no tool may write it; empty if there is none."""
        if any(real == folder or folder in real.parents for folder in self.protected):
            return "quoth"
        names = {name.lower() for name in real.parts[len(self.root.parts) :]}
        if ".quoth" in names:  # below the root it would create a project without this project's rules
            return "quoth"
        return "git" if ".git" in names else ""  # git runs what its settings name

    @contextlib.contextmanager
    def _parent(self, real: Path, made: list[str] | None = None) -> Iterator[int]:
        """A descriptor of the parent folder of ``real``, reached from the root without following links. With
        a list ``made``, missing folders are created and appended to it."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in real.relative_to(self.root).parts[:-1]:
                if made is not None:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                        made.append(part)
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _failure(self, path: str | Path, real: Path, error: OSError) -> str:
        if isinstance(error, FileNotFoundError):
            siblings: list[str] = []
            with contextlib.suppress(OSError):
                siblings = [file_name(self.shown(item)) for item in real.parent.iterdir()]
            if real == self.root / self.root.name:  # models confuse the folder's name with a path in it
                return f'There is no file {path}; the folder itself is ".".'
            return f"There is no file {path}." + did_you_mean(self.shown(real), siblings)
        return f"{path}: {_why(error)}."

    def walk(self, path: str | Path, *, all: bool = False, ignored: Ignored | None = None) -> Iterator[Path]:
        """The regular files under a folder (or the file itself), sorted, without hidden folders, links and
        secret files. Unless ``all``, also without the SKIPPED folders and files that .gitignore names;
        ``ignored`` counts these. Raises ToolError."""
        start, path = self.resolve(path), written(path)
        if start.is_file():
            if start not in self._secret:
                yield start
            return
        if start.exists() and not start.is_dir():
            raise ToolError(f"{path} is not a regular file.")
        if not start.is_dir():
            raise ToolError(self._failure(path, start, FileNotFoundError()))
        from quoth.tools.call.ignored import Ignored, files_below  # here: most calls walk through no folder

        ignored = ignored or Ignored(self.root)
        ignored.heeded = not all
        for file in files_below(start, ignored):
            if not self._secret or file not in self._secret:
                yield file


def _keep(write: FileWrite, say: Callable[[str], None] = lambda text: None) -> None:
    """Give a file's old content to the keeper of the running call; ``say`` receives its complaint, if any."""
    if (keeper := KEEPER.get()) is not None and (said := keeper(write)):
        say(said)


def _changed(path: str) -> str:
    return f"{path} has changed since it was read. Read it again, then change it."


def _unsaved(path: str) -> str:
    return (
        f"{path} has unsaved changes in the editor, so it was not changed on the disk. Save it there first."
    )


def _why(error: BaseException) -> str:
    if isinstance(error, RuntimeError) or getattr(error, "errno", None) == errno.ELOOP:
        return "symlink loop"  # Python up to 3.12 raises RuntimeError
    text = getattr(error, "strerror", None) or str(error)
    return str(text)[:1].lower() + str(text)[1:]


class Elsewhere(Workspace):
    """The folder of another machine: paths are only normalised, because its files are unknown here."""

    def locate(self, path: str | Path) -> Path:
        path = os.fspath(path)
        if "\0" in path:
            raise ToolError("A path cannot contain a NUL character.")
        outside = "/" if path.startswith("~") else ""  # a home is outside every workspace
        return Path(os.path.normpath(self.root / (outside + path)))

    def canonical(self, path: str) -> WorkspacePath:
        self.locate(path)
        plain = os.path.normpath(path)
        like_home = plain.startswith("~") and not path.startswith("~")
        return WorkspacePath(f"./{plain}" if like_home else plain, path)


ELSEWHERE = Elsewhere("/dev/null/elsewhere")  # a path that cannot exist


# Changes a file of the workspace that editors and other processes change too. An editor takes none of our
# locks, so a change applies to the present content, and is repeated if the content has changed meanwhile.


MAX_BYTES = 5_000_000
MOVE = "move finished entries to another file"
TRIES = 20  # while another process keeps writing

T = TypeVar("T")


def read_whole(workspace: Workspace, path: str) -> bytes:
    """The content of a file on the disk; empty if it does not exist. Raises ToolError, also for more than
    MAX_BYTES."""
    workspace = workspace.on_disk()
    if not workspace.resolve(path).exists():
        return b""
    with workspace.open_read(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ToolError(f"{path} is larger than {MAX_BYTES} bytes; {MOVE}.")
    return data


def change_file(
    workspace: Workspace,
    path: str,
    change: Callable[[bytes], tuple[bytes | None, T]],
    say: Callable[[str], None] = lambda text: None,
) -> T:
    """Apply ``change`` to the present content on the disk and return its second result; new content None
    removes the file. It is applied again if an editor has written meanwhile. Raises ToolError."""
    workspace = workspace.on_disk()
    for attempt in range(TRIES):
        with workspace.alone(path):
            data = read_whole(workspace, path)
            new, result = change(data)
            if new == data:
                return result
            if new is not None and len(new) > MAX_BYTES:  # the file would be too large to read
                raise ToolError(f"{path} would be larger than {MAX_BYTES} bytes; {MOVE}.")
            try:
                if new is None:
                    workspace.remove(path, data)
                    return result
                workspace.write(path, new, before=data, say=say)
            except ToolError:
                if attempt + 1 == TRIES or read_whole(workspace, path) == data:
                    raise
                continue
        real = workspace.resolve(path)
        if not is_missing(real.with_name(f".#{real.name}")):  # Emacs's own lock
            name = workspace.spelling(real)
            say(f"{name} has unsaved changes in Emacs, which will say that the file was changed.")
        return result
    raise AssertionError("the last attempt returns or raises")
