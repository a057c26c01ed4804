"""Records which text of a workspace's own file a person has trusted: its SHA-256, stored in the state folder.

It knows no rules. Nothing inside a workspace can reach these records, so a workspace cannot trust itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.paths import state_dir
from quoth.tools.storage.private import private_folder
from quoth.tools.storage.same_file import is_missing


def digest_of(data: bytes) -> str:
    """The SHA-256 of ``data`` in hex."""
    return hashlib.sha256(data).hexdigest()


class Trust:
    """One small file for each workspace whose policy is trusted, or whose file, or files, of another ``kind``
    are, named by the workspace's real path."""

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
        digest = self._record(root, "sha256", str)
        return None if digest is None else str(digest)

    def each(self, root: Path) -> dict[str, str]:
        """The trusted SHA-256 of each of several files or folders of this workspace, by name. Raises
        UsageError when the record cannot be read."""
        return {**(self._record(root, "each", dict) or {})}

    def _record(self, root: Path, key: str, kind: type) -> Any:
        """What the record of a workspace says; None where there is none."""
        file = self._file(root)
        try:
            said = json.loads(file.read_bytes())[key]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError, KeyError):
            said = None
        if not isinstance(said, kind):
            raise UsageError(f"The record of trust {file} cannot be read; remove it and run: quoth trust")
        return said

    def trust(self, root: Path, data: bytes) -> str:
        """Trust this text in this workspace, replacing any earlier one; return its SHA-256."""
        digest = digest_of(data)
        self._keep(root, {"sha256": digest})
        return digest

    def trust_each(self, root: Path, digests: Mapping[str, str]) -> None:
        """Trust these files or folders of this workspace, by name, and no others of this kind."""
        if not digests:
            self.forget(root)
            return
        self._keep(root, {"sha256": digest_of(repr(sorted(digests.items())).encode()), "each": dict(digests)})

    def _keep(self, root: Path, said: dict[str, object]) -> None:
        record = {**said, "workspace": os.fsencode(root.resolve()).decode(errors="replace")}
        try:
            private_folder(self.folder)
            replace_file(self._file(root), [json.dumps(record, ensure_ascii=False).encode()], 0o600)
        except OSError as error:
            raise UsageError(f"The trust cannot be kept in {self.folder}: {error.strerror}.") from None

    def remembers(self, root: Path) -> bool:
        """Whether there is a record of this workspace, also one that cannot be read."""
        return not is_missing(self._file(root))

    def forget(self, root: Path) -> bool:
        """Remove the trust of this workspace; False when there was none."""
        try:
            self._file(root).unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise UsageError(f"The trust in {root} cannot be taken back: {error.strerror}.") from None
        return True
