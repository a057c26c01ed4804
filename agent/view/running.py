"""Where the server of a workspace is: a file with its address, valid while its process holds a lock."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from quoth.tools.errors import BusyError, UsageError
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.file_lock import hold, is_held
from quoth.tools.storage.paths import private_folder, state_dir


@dataclass(frozen=True)
class ViewServer:
    """A server that runs: its port, its id, and the file of its keys."""

    port: int
    server: str
    keys: str

    def url(self, code: str) -> str:
        return f"http://127.0.0.1:{self.port}/view/in?code={code}"


@contextlib.contextmanager
def known_as(folder: Path, running: ViewServer) -> Iterator[bool]:
    """Within it the server of a workspace can be found. False if another one is. Raises UsageError."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(hold(_name(folder), "another server"))
        except BusyError:
            yield False
            return
        path = _path(folder)
        try:
            private_folder(path.parent)
            replace_file(path, [json.dumps(asdict(running)).encode()], 0o600)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
        try:
            yield True
        finally:
            with contextlib.suppress(OSError):
                path.unlink()


def found(folder: Path) -> ViewServer | None:
    """The server of a workspace that runs now."""
    if not is_held(_name(folder)):
        return None
    try:
        data = json.loads(_path(folder).read_bytes())
        return ViewServer(int(data["port"]), str(data["server"]), str(data["keys"]))
    except (OSError, ValueError, KeyError, TypeError):  # it has just begun or ended
        return None


def _name(folder: Path) -> str:
    return f"view {folder.resolve()}"


def _path(folder: Path) -> Path:
    key = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return state_dir() / "view" / f"{key}.json"
