"""The catalogue of a table as data, and as signed bytes that are checked before anything in them is believed.

Pure: it must not know Redis, nor where a key lies.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from quoth.tools.catalog.signing import Key
from quoth.tools.errors import ServerError
from quoth.tools.registry.entry import schema_hash
from quoth.tools.registry.table import ToolTable
from quoth.tools.text import excerpt

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
