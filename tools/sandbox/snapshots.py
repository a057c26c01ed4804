"""Stores suspended programs, and the values a session keeps between its programs.

A snapshot is loaded only if this machine wrote it: each row is authenticated (HMAC-SHA-256, RFC 2104) with a
key in the user's data folder, outside every workspace. A changed row raises SnapshotError. A row of another
machine, or of another version of the sandbox, is ignored, and the program is run again."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
import zlib
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from quoth.tools.call.context import SavedValues
from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import hold
from quoth.tools.storage.paths import private_folder, state_dir

KEPT_SECONDS = 30 * 86400.0  # how long a waiting call can be resumed
SWEPT_SECONDS = 3600.0  # between two searches for expired rows
MAX_BYTES = 64 * 1024 * 1024
MAX_REMEMBERED = 1024 * 1024  # bytes of the snapshot opened last, which is cached
NAME_BYTES, MAC_BYTES = 8, 32


class SnapshotError(UsageError):
    """A snapshot was changed in the store and is not loaded."""


class StoreSnapshots:
    """Snapshots in the store of a workspace: of suspended calls by key, of values by session and user."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._last: tuple[str, bytes, dict[str, Any]] = (
            "",
            b"",
            {},
        )  # name, bytes and state of the snapshot opened or written last
        self._swept = 0.0  # when expired rows were last removed

    @cached_property
    def _key(self) -> bytes:
        return _secret()

    def keep(self, key: str, session: str, digest: str, state: Mapping[str, Any]) -> None:
        sealed = _sealed(self._key, name := f"call {key}", {"digest": digest, **state})
        if sealed is not None:
            self._put(name, session, sealed)

    def find(self, key: str, digest: str) -> dict[str, Any] | None:
        state = self._get(f"call {key}")
        return state if state is not None and state.pop("digest") == digest else None

    def drop(self, key: str) -> None:
        self._store().execute("DELETE FROM snapshots WHERE name = ?", (f"call {key}",))

    def values(self, session: str, user: str) -> SavedValues | None:
        found = self._get(_place(session, user), "The values of this session were", " Use another session.")
        if found is None:
            return None
        return SavedValues(found["state"], found["listing"], found["generation"], found.get("macros", {}))

    def keep_values(self, session: str, user: str, kept: SavedValues) -> Callable[[], str]:
        place, generation = _place(session, user), secrets.token_hex(8)
        state = {"listing": kept.listing, "generation": generation, "macros": dict(kept.macros)}
        sealed = _sealed(self._key, place, state, kept.state)

        def write() -> str:
            if sealed is None:
                return f"The values of the session are larger than {MAX_BYTES >> 20} MiB and were not saved."
            try:
                found = self._get(place)
            except SnapshotError:
                return "The session's values were changed in the store; the new values were not saved."
            if (found["generation"] if found else "") != kept.generation:
                return "Another program saved values of this session; those of this program were not."
            self._put(place, session, sealed)
            self._remember(place, sealed, {**state, "state": kept.state})
            return ""

        return write

    def _put(self, name: str, session: str, sealed: bytes) -> None:
        with self._store().transaction() as run:
            if self._swept < time.time() - SWEPT_SECONDS:  # the deletion reads every row
                run("DELETE FROM snapshots WHERE at < ?", (time.time() - KEPT_SECONDS,))
                self._swept = time.time()
            run(
                "INSERT OR REPLACE INTO snapshots (name, session, at, state) VALUES (?, ?, ?, ?)",
                (name, session, time.time(), sealed),
            )

    def _get(
        self, name: str, what: str = "The saved state of the program was", more: str = ""
    ) -> dict[str, Any] | None:
        found = self._store().execute("SELECT state FROM snapshots WHERE name = ?", (name,))
        if not found:
            return None
        sealed = bytes(found[0][0])
        if self._last[:2] == (name, sealed):
            return self._last[2]
        key = self._key
        packed = sealed[NAME_BYTES + MAC_BYTES :]
        if sealed[:NAME_BYTES] != _key_name(key):
            return None  # another machine wrote it
        if not hmac.compare_digest(sealed[NAME_BYTES : NAME_BYTES + MAC_BYTES], _mac(key, name, packed)):
            raise SnapshotError(f"{what} changed in the store and cannot be loaded.{more}")
        state = _unpacked(zlib.decompress(packed))
        if state.pop("sandbox") != sandbox_version():
            return None
        if "generation" in state:
            self._remember(name, sealed, state)
        return state

    def _remember(self, name: str, sealed: bytes, state: dict[str, Any]) -> None:
        """Cache the values of a session, because each of its programs opens them. A row with other bytes is
        opened again."""
        self._last = (name, sealed, state) if len(sealed) <= MAX_REMEMBERED else ("", b"", {})


def _sealed(key: bytes, name: str, state: Mapping[str, Any], values: bytes = b"") -> bytes | None:
    """The authenticated snapshot of a state and of the ``values`` of a session; None if it is too large."""
    text = json.dumps({**state, "sandbox": sandbox_version()}).encode()
    if len(text) + len(values) > 2 * MAX_BYTES:
        return None
    packed = zlib.compress(b"".join((len(text).to_bytes(4), text, values)), 1)
    return _key_name(key) + _mac(key, name, packed) + packed


def _unpacked(data: bytes) -> dict[str, Any]:
    """The state in a snapshot. An old one has no length at its beginning, and its values as base64."""
    if data.startswith(b"{"):
        state: dict[str, Any] = json.loads(data)
        return state | ({"state": b64decode(state["state"])} if "generation" in state else {})
    length = 4 + int.from_bytes(data[:4])
    state = json.loads(data[4:length])
    return state | ({"state": data[length:]} if "generation" in state else {})


def _place(session: str, user: str) -> str:
    return "values " + json.dumps([session, user])


@cache
def sandbox_version() -> str:
    """The version of the snapshot format; snapshots of another version are not loaded."""
    from importlib.metadata import version  # imported here, because it imports email

    from quoth.tools.sandbox.wall import WALL_VERSION

    return f"{version('pydantic-monty')} {version('pydantic-monty-runtime')} {WALL_VERSION}"


def _key_name(key: bytes) -> bytes:
    return hashlib.sha256(b"name of " + key).digest()[:NAME_BYTES]


def _mac(key: bytes, name: str, packed: bytes) -> bytes:
    return hmac.digest(key, name.encode() + b"\0" + packed, "sha256")


def _secret() -> bytes:
    """This user's key on this machine, created once. Processes that create it at the same time get the same
    key."""
    path = state_dir() / "snapshots.key"
    if (key := _read(path)) is None:
        private_folder(path.parent)
        with hold(f"making of {path}"):
            if (key := _read(path)) is None:
                key = secrets.token_bytes(32)
                replace_file(path, [key], 0o600)
    return key


def _read(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != 32:
        raise UsageError(
            f"The key of the snapshots, {path}, is damaged. Remove the file; a new key will be made."
        )
    return key
