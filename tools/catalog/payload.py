"""A tool table's catalog as data, and as signed bytes. The signature is checked before anything else is read.

Pure functions; Redis is used in store.py.
"""

from __future__ import annotations

import gc
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from quoth.tools.errors import ServerError, UsageError
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.tool import schema_hash
from quoth.tools.storage.atomic import new_file
from quoth.tools.storage.paths import catalog_key_path
from quoth.tools.text import excerpt

# The key that callers and workers share, and its signatures. A process that can write to Redis but does not
# have the key cannot offer, call or answer a tool.


KEY_BYTES = 32


@dataclass(frozen=True)
class Key:
    """A secret of KEY_BYTES bytes. It is never shown."""

    secret: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """8 hex digits that identify the key and reveal nothing of it."""
        return hmac.new(self.secret, b"name", sha256).hexdigest()[:8]

    def sign(self, kind: str, data: bytes) -> bytes:
        """The HMAC-SHA256 (RFC 2104) of ``kind`` and ``data``. It is not valid for the same bytes as another
        kind."""
        return hmac.new(self.secret, kind.encode() + b"\0" + data, sha256).digest()

    def fits(self, kind: str, data: bytes, signature: bytes) -> bool:
        """Whether a signature was made with this key, for this data and kind. Takes constant time."""
        return hmac.compare_digest(self.sign(kind, data), signature)


def kept_key(given: str | Path | None) -> dict[str, str]:
    """The path of the key file, if given, to record in the opening of a session."""
    return {"key-file": str(catalog_key_path(given).resolve())} if given else {}


def read_key(path: Path) -> Key:
    """Read a key. Raises UsageError if the file does not exist or other users may read it."""
    given = path.parent in (
        Path("/dev/fd"),
        Path("/proc/self/fd"),
    )  # opened by a shell, which writes the key to it
    try:
        if not given and not stat.S_ISREG(path.stat().st_mode):  # reading a FIFO would block
            raise UsageError(f"The key {path} is not a regular file.")
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(4096).strip()
    except FileNotFoundError:
        raise UsageError(
            f"There is no key at {path}. Create one (quoth catalog key new), or copy it from the machine that"
            " has it."
        ) from None
    except OSError as error:
        raise UsageError(f"The key {path} cannot be read: {error.strerror}.") from None
    if mode & 0o077:
        raise UsageError(f"Other users may read or write the key {path}. Run: chmod 600 {path}")
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise UsageError(f"{path} is not a key file: a key file contains {KEY_BYTES * 2} hex digits.")
    return Key(secret)


def new_key(path: Path) -> Key:
    """Make a key and write it to a new file that only its owner may read. Raises UsageError if the file
    exists."""
    key = Key(secrets.token_bytes(KEY_BYTES))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        new_file(path, [f"{key.secret.hex()}\n".encode()], 0o600)
    except FileExistsError:
        raise UsageError(f"There is already a key at {path}; it was not overwritten.") from None
    except OSError as error:
        raise UsageError(f"The key {path} cannot be written: {error.strerror}.") from None
    return key


MAX_BLOB: Final = 16 * 1024 * 1024  # maximum size of a catalog, in bytes
KIND: Final = "catalog"
SIGNATURE: Final = 32  # bytes, the last ones of a blob
FIELDS: Final = ("tools", "permissions", "schema_hash", "key", "signature")


class CatalogError(ServerError):
    """A catalog cannot be made, or is malformed or not authentic."""


class ForeignCatalog(CatalogError):
    """A catalog names another key as its signer."""


def build_catalog_payload(registry: ToolTable) -> dict[str, Any]:
    """The data that a caller needs without the tools' code: an entry for each tool, their permissions, and
    the hash of the entries."""
    tools = registry.entries
    return {"tools": tools, "permissions": _permissions(tools), "schema_hash": registry.schema_hash}


def _permissions(tools: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {entry["name"]: entry["users"] for entry in tools if "users" in entry}


def seal(payload: dict[str, Any], key: Key, prefix: str, version: int) -> bytes:
    """The blob of a catalog: a msgpack map that ends with a signature of all bytes before it, the version and
    the prefix. It is valid only for that version and prefix. Raises CatalogError."""
    import msgpack

    where = f"The catalog of {len(payload['tools'])} tools cannot be published"
    try:
        whole: bytes = msgpack.packb({**payload, "key": key.name, "signature": bytes(SIGNATURE)})
    except (ValueError, TypeError, OverflowError) as error:
        raise CatalogError(where, excerpt(str(error), 200).rstrip(".")) from None
    if len(whole) > MAX_BLOB:
        raise CatalogError(where, f"it has {len(whole):,} bytes; the maximum is {MAX_BLOB:,}")
    body = whole[:-SIGNATURE]
    return body + key.sign(KIND, _bound(body, prefix, version))


def _bound(body: bytes, prefix: str, version: int) -> bytes:
    return f"{prefix}\0{version}\0".encode() + body


def unseal(blob: bytes, key: Key, prefix: str, version: int) -> dict[str, Any]:
    """The catalog ``{tools, permissions, schema_hash, version}`` in a blob. Raises CatalogError."""
    import msgpack

    where = f"The catalog v{version} of {prefix} in Redis was refused"
    if len(blob) > MAX_BLOB:
        raise CatalogError(where, f"it has more than {MAX_BLOB:,} bytes")
    body, signature = blob[:-SIGNATURE], blob[-SIGNATURE:]
    if not key.fits(KIND, _bound(body, prefix, version), signature):
        raise _unsigned(where, blob, key)
    try:
        with garbage_left():
            found = msgpack.unpackb(blob)
            why = _mistake(found)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        why = "it contains a value that is not plain data"
    if why:
        raise CatalogError(where, why)
    return {name: found[name] for name in FIELDS[:3]} | {"version": version}


@contextmanager
def garbage_left() -> Iterator[None]:
    """Switch off the garbage collector meanwhile: it would take most of the time of making thousands of
    tools."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


# The end of a blob: unlike the rest, it is read before the signature is checked.
_END: Final = re.compile(rb"\xa3key\xa8([0-9a-f]{8})\xa9signature\xc4\x20.{32}\Z", re.DOTALL)


def _unsigned(where: str, blob: bytes, key: Key) -> CatalogError:
    """Why a blob does not match a key, by the blob's own end. It is not unpacked: 16 MB of empty lists would
    take 1,000 MB of memory."""
    end = _END.search(blob[-64:])
    if end is None:
        return CatalogError(where, "it is not signed, or was cut off")
    made = end[1].decode()
    if made != key.name:
        return ForeignCatalog(where, f"it is signed with the key {made}, and the key here is {key.name}")
    why = "its signature is wrong: it was altered, or signed for another version or prefix"
    return CatalogError(where, why)


def _mistake(found: Any) -> str:
    """What is wrong with a signed catalog; an empty text if nothing is."""
    if not isinstance(found, dict) or set(found) != set(FIELDS):
        return f"it is not a map of {', '.join(FIELDS)}; was it made by another version of quoth?"
    tools, permissions = found["tools"], found["permissions"]
    if not isinstance(tools, list) or not all(_is_entry(one) for one in tools):
        return "its tools are not a list of entries with names"
    names = [one["name"] for one in tools]
    if len(names) != len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        return f"the tool {excerpt(twice)} is given twice"
    if found["schema_hash"] != schema_hash(tools):
        return "its hash does not match its tools"
    if permissions != _permissions(tools):
        return "its permissions do not match its tools"
    return ""


def _is_entry(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str)
