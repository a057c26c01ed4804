"""What each call of a session has changed in files, from the kept versions."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence

from quoth.agent.session.undo import difference
from quoth.agent.terminal.question import FileDifference
from quoth.tools.call.call import Change
from quoth.tools.call.keeping import MAX_FILE
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.history.versions import StoreVersions, Written
from quoth.tools.visible import visible

NOT_KEPT = "{}: the written content is no longer kept"
MOST_BYTES = 1_000_000  # of a file whose lines are compared


class CallChanges:
    """The changes by the calls of one session, or by the call with this key. A content is known while it is
    kept, or is still in the file."""

    def __init__(
        self, versions: StoreVersions, workspace: Workspace, session: str, key: str | None = None
    ) -> None:
        self._versions = versions
        self._workspace = workspace
        self._by_key: dict[str, list[Written]] = {}
        for row in versions.of(session, key):
            if not row.act:
                self._by_key.setdefault(row.key, []).append(row)

    @property
    def keys(self) -> Collection[str]:
        """The keys of the calls that have written a file."""
        return self._by_key.keys()

    def of(self, key: str) -> Sequence[FileDifference]:
        """The changes by the call with this key, in order. Several writes of one file are one change."""
        return [self._of(*change) for change in self._changed(key)]

    def texts(self, key: str) -> Iterator[Change]:
        """The texts before and after the call with this key, of the files where both are known."""
        for path, before, after in self._changed(key):
            try:
                old, new = self._contents(path, before, after)
                texts = [None if data is None else data.decode() for data in (old, new)]
            except (LookupError, UnicodeDecodeError):
                continue
            if max(map(len, filter(None, texts)), default=0) <= MOST_BYTES:
                yield Change(path, texts[0], texts[1])

    def _changed(self, key: str) -> Iterator[tuple[str, str | None, str | None]]:
        """Each path with the digests of its first and last content."""
        first: dict[str, Written] = {}
        last: dict[str, Written] = {}
        for row in self._by_key.get(key, ()):
            first.setdefault(row.path, row)
            last[row.path] = row
        return ((path, first[path].before, last[path].after) for path in first)

    def _contents(
        self, path: str, before: str | None, after: str | None
    ) -> tuple[bytes | None, bytes | None]:
        """The contents with these digests. Raises LookupError if one is not kept."""
        old = None if before is None else self._versions.content(before)
        new = None if after is None else self._versions.content(after) or self._present(path, after)
        if (old is None) != (before is None) or (new is None) != (after is None):
            raise LookupError(path)
        return old, new

    def _of(self, path: str, before: str | None, after: str | None) -> FileDifference:
        try:
            old, new = self._contents(path, before, after)
        except LookupError:
            return FileDifference(visible(path), NOT_KEPT.format(visible(path)), ())
        if max(len(old or b""), len(new or b"")) > MOST_BYTES:
            return FileDifference(visible(path), f"{visible(path)}: too large to be compared here", ())
        return difference(path, old, new)

    def _present(self, path: str, digest: str) -> bytes | None:
        """The present content of a file if it has this digest."""
        try:
            with self._workspace.open_read(path) as file:
                data = file.read(MAX_FILE + 1)
        except (ToolError, OSError):
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None
