"""Records which text of a workspace's own file a person has trusted: its SHA-256, stored in the state folder.

It knows no rules. Nothing inside a workspace can reach these records, so a workspace cannot trust itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.database import private_folder
from quoth.tools.storage.paths import state_dir


def digest_of(data: bytes) -> str:
    """The SHA-256 of ``data`` in hex."""
    return hashlib.sha256(data).hexdigest()


class Trust:
    """One small file for each workspace whose policy is trusted, or whose file of another ``kind`` is, named
    by the workspace's real path."""

    def __init__(self, folder: Path | None = None, kind: str = "") -> None:
        self._folder, self._kind = folder, kind

    @property
    def folder(self) -> Path:
        return self._folder or state_dir() / "trust"

    def _file(self, root: Path) -> Path:
        return self.folder / f"{digest_of(os.fsencode(root.resolve()))[:32]}{self._kind}.json"

    def trusted(self, root: Path) -> str | None:
        """The trusted SHA-256 of this workspace's file, or None. Raises UsageError when the record
        cannot be read."""
        file = self._file(root)
        try:
            digest = json.loads(file.read_bytes())["sha256"]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError, KeyError):
            digest = None
        if not isinstance(digest, str):
            raise UsageError(f"The record of trust {file} cannot be read; remove it and run: quoth trust")
        return digest

    def trust(self, root: Path, data: bytes) -> str:
        """Trust this text in this workspace, replacing any earlier one; return its SHA-256."""
        digest = digest_of(data)
        record = {"sha256": digest, "workspace": os.fsencode(root.resolve()).decode(errors="replace")}
        try:
            private_folder(self.folder)
            replace_file(self._file(root), [json.dumps(record, ensure_ascii=False).encode()], 0o600)
        except OSError as error:
            raise UsageError(f"The trust cannot be kept in {self.folder}: {error.strerror}.") from None
        return digest

    def forget(self, root: Path) -> bool:
        """Remove the trust of this workspace; False when there was none."""
        try:
            self._file(root).unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise UsageError(f"The trust in {root} cannot be taken back: {error.strerror}.") from None
        return True
