"""The catalogue of a table as data, and as signed bytes that are checked before anything in them is believed.

Pure: it must not know Redis, nor where a key lies.
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
from quoth.tools.storage.paths import state_dir
from quoth.tools.text import excerpt

# The key that callers and workers share, and the signatures made with it.
#
# Whoever can write to Redis but has no key can neither offer a tool, nor make a call, nor answer one. Knows
# bytes and one file; it must not know what is signed.


KEY_BYTES = 32
VARIABLE = "QUOTH_CATALOG_KEY"  # the path of the key file


@dataclass(frozen=True)
class Key:
    """A secret of KEY_BYTES bytes, which is never shown."""

    secret: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """8 hex digits that tell one key from another, and nothing of it."""
        return hmac.new(self.secret, b"name", sha256).hexdigest()[:8]

    def sign(self, kind: str, data: bytes) -> bytes:
        """The HMAC-SHA256 (RFC 2104) of data, as data of this kind: it does not fit the same bytes as
        another kind."""
        return hmac.new(self.secret, kind.encode() + b"\0" + data, sha256).digest()

    def fits(self, kind: str, data: bytes, signature: bytes) -> bool:
        """Whether a signature was made with this key, for this data and kind. Takes the same time in any
        case."""
        return hmac.compare_digest(self.sign(kind, data), signature)


def key_path(given: str | Path | None = None) -> Path:
    """The file of the key: the one given, or that of QUOTH_CATALOG_KEY, or ``catalog.key`` beside the
    stores."""
    return Path(given or os.environ.get(VARIABLE) or state_dir() / "catalog.key").expanduser()


def kept_key(given: str | Path | None) -> dict[str, str]:
    """The file of the key, if one was given, for the opening of a session."""
    return {"key-file": str(key_path(given).resolve())} if given else {}


def read_key(path: Path) -> Key:
    """Read a key. Raises UsageError where there is none, or where others may read it."""
    given = path.parent in (Path("/dev/fd"), Path("/proc/self/fd"))  # by a shell, which writes to it
    try:
        if not given and not stat.S_ISREG(path.stat().st_mode):  # a fifo would be waited for
            raise UsageError(f"The key {path} is not a regular file.")
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(4096).strip()
    except FileNotFoundError:
        raise UsageError(
            f"There is no key at {path}; make one with quoth catalog key new, or copy it from the machine"
            " that has it."
        ) from None
    except OSError as error:
        raise UsageError(f"The key {path} cannot be read: {error.strerror}.") from None
    if mode & 0o077:
        raise UsageError(f"Others may read or write the key {path}; type chmod 600 {path}.")
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise UsageError(f"{path} is no key: it holds {KEY_BYTES * 2} hex digits.")
    return Key(secret)


def new_key(path: Path) -> Key:
    """Make a key and write it to a new file, which only its owner may read. Raises UsageError for a file that
    is there."""
    key = Key(secrets.token_bytes(KEY_BYTES))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        new_file(path, [f"{key.secret.hex()}\n".encode()], 0o600)
    except FileExistsError:
        raise UsageError(f"There is a key at {path} already; it is not overwritten.") from None
    except OSError as error:
        raise UsageError(f"The key {path} cannot be written: {error.strerror}.") from None
    return key


MAX_BLOB: Final = 16 * 1024 * 1024  # bytes of one catalogue
KIND: Final = "catalog"
SIGNATURE: Final = 32  # bytes, the last ones of a blob
FIELDS: Final = ("tools", "permissions", "schema_hash", "key", "signature")


class CatalogError(ServerError):
    """A catalogue cannot be made, or cannot be believed."""


class ForeignCatalog(CatalogError):
    """A catalogue says itself that it is signed with another key."""


def build_catalog_payload(registry: ToolTable) -> dict[str, Any]:
    """All that must be known of the tools where their code is not: an entry for each, who may call which,
    and the hash of the entries."""
    tools = registry.entries
    return {"tools": tools, "permissions": _permissions(tools), "schema_hash": registry.schema_hash}


def _permissions(tools: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {entry["name"]: entry["users"] for entry in tools if "users" in entry}


def seal(payload: dict[str, Any], key: Key, prefix: str, version: int) -> bytes:
    """The blob of a catalogue: a msgpack map, whose last bytes are a signature of all before them, and of the
    version and the prefix, for which alone it is good. Raises CatalogError."""
    import msgpack

    where = f"The catalogue of {len(payload['tools'])} tools cannot be published"
    try:
        whole: bytes = msgpack.packb({**payload, "key": key.name, "signature": bytes(SIGNATURE)})
    except (ValueError, TypeError, OverflowError) as error:
        raise CatalogError(where, excerpt(str(error), 200).rstrip(".")) from None
    if len(whole) > MAX_BLOB:
        raise CatalogError(where, f"it has {len(whole):,} bytes, and {MAX_BLOB:,} are the most")
    body = whole[:-SIGNATURE]
    return body + key.sign(KIND, _bound(body, prefix, version))


def _bound(body: bytes, prefix: str, version: int) -> bytes:
    return f"{prefix}\0{version}\0".encode() + body


def unseal(blob: bytes, key: Key, prefix: str, version: int) -> dict[str, Any]:
    """The catalogue ``{tools, permissions, schema_hash, version}`` of a blob. Raises CatalogError."""
    import msgpack

    where = f"The catalogue v{version} of {prefix} in Redis is refused"
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
        why = "it holds what is no plain data"
    if why:
        raise CatalogError(where, why)
    return {name: found[name] for name in FIELDS[:3]} | {"version": version}


@contextmanager
def garbage_left() -> Iterator[None]:
    """Within it nobody looks for garbage: while thousands of tools are made, that takes most of the time."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


# How a blob ends: unlike the rest of it, it can be read before anything is believed.
_END: Final = re.compile(rb"\xa3key\xa8([0-9a-f]{8})\xa9signature\xc4\x20.{32}\Z", re.DOTALL)


def _unsigned(where: str, blob: bytes, key: Key) -> CatalogError:
    """Why a blob does not fit a key, as far as it says so itself. It is not unpacked: 16 MB of empty lists
    would take 1,000."""
    end = _END.search(blob[-64:])
    if end is None:
        return CatalogError(where, "it is not signed, or was cut off")
    made = end[1].decode()
    if made != key.name:
        return ForeignCatalog(where, f"it is signed with the key {made}, and the key here is {key.name}")
    why = "its signature does not fit: it was altered, or signed for another version or prefix"
    return CatalogError(where, why)


def _mistake(found: Any) -> str:
    """What is wrong with a catalogue that is signed; an empty text if nothing is."""
    if not isinstance(found, dict) or set(found) != set(FIELDS):
        return f"it is not a map of {', '.join(FIELDS)}; was it made by another version of quoth?"
    tools, permissions = found["tools"], found["permissions"]
    if not isinstance(tools, list) or not all(_is_entry(one) for one in tools):
        return "its tools are not a list of entries with names"
    names = [one["name"] for one in tools]
    if len(names) != len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        return f"the tool {excerpt(twice)} stands in it twice"
    if found["schema_hash"] != schema_hash(tools):
        return "its hash is not that of its tools"
    if permissions != _permissions(tools):
        return "its permissions are not those of its tools"
    return ""


def _is_entry(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str)
