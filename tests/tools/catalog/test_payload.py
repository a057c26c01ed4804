"""A catalogue as bytes: what is signed comes back, and nothing else is believed, with a sentence why."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    AND_THE_KEY_HERE_IS,
    IN_REDIS_WAS_REFUSED,
    IS_GIVEN_TWICE,
    IT_HAS_MORE_THAN,
    IT_IS_SIGNED_WITH_THE,
    THE_CATALOG_V,
    THE_MAXIMUM_IS,
)
from words import tool

from quoth.tools.catalog import build_catalog_payload, payload, schema_hash
from quoth.tools.catalog.payload import KIND, MAX_BLOB, CatalogError, Key, seal, unseal
from quoth.tools.registry.table import ToolTable

OURS, THEIRS = Key(b"o" * 32), Key(b"t" * 32)
REFUSED = f"{THE_CATALOG_V}7 of sg {IN_REDIS_WAS_REFUSED}: "


def a_table() -> ToolTable:
    made = ToolTable((tool("pears", params={"n": {"type": int}}), tool("plums")))
    made.permit({"plums": ["ann"]})
    return made


def signed(found: Any, key: Key = OURS, prefix: str = "sg", version: int = 7) -> bytes:
    """Whatever data, signed as a publisher signs a catalogue."""
    if isinstance(found, dict):
        found = {**found, "signature": bytes(32)}
    body = msgpack.packb(found, strict_types=False)[:-32]
    return bytes(body + key.sign(KIND, f"{prefix}\0{version}\0".encode() + body))


def unsealed(blob: bytes) -> dict[str, Any]:
    return unseal(blob, OURS, "sg", 7)


def changed(**changes: Any) -> bytes:
    """The catalogue with other things in it, signed by whoever has the key."""
    whole = {**build_catalog_payload(a_table()), "key": OURS.name, **changes}
    return signed({name: value for name, value in whole.items() if value is not ...})


def test_what_is_published_is_what_is_loaded() -> None:
    table = a_table()
    made = build_catalog_payload(table)
    assert made["schema_hash"] == table.schema_hash == schema_hash(made["tools"])
    assert made["permissions"] == {"plums": ["ann"]}
    blob = seal(made, OURS, "sg", 7)
    assert unsealed(blob) == {**made, "version": 7}
    assert set(msgpack.unpackb(blob)) == {"tools", "permissions", "schema_hash", "key", "signature"}


FOREIGN: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda blob: b"", "it is not signed, or was cut off"),
    "cut off": (lambda blob: blob[:-1], "it is not signed, or was cut off"),
    "half": (lambda blob: blob[: len(blob) // 2], "it is not signed, or was cut off"),
    "longer": (lambda blob: blob + b"\0", "it is not signed, or was cut off"),
    "a pickle": (lambda blob: b"\x80\x04N.", "it is not signed, or was cut off"),
    "no map": (lambda blob: msgpack.packb([1]), "it is not signed, or was cut off"),
    "unsigned": (lambda blob: msgpack.packb({"tools": []}), "it is not signed, or was cut off"),
    "its signature a text": (
        lambda blob: msgpack.packb({"signature": "a" * 32}),
        "it is not signed, or was cut off",
    ),
    "another key": (
        lambda blob: seal(build_catalog_payload(a_table()), THEIRS, "sg", 7),
        f"{IT_IS_SIGNED_WITH_THE} {THEIRS.name}, {AND_THE_KEY_HERE_IS} {OURS.name}",
    ),
    "a version before": (
        lambda blob: seal(build_catalog_payload(a_table()), OURS, "sg", 6),
        "its signature is wrong: it was altered, or signed for another version or prefix",
    ),
    "another prefix": (
        lambda blob: seal(build_catalog_payload(a_table()), OURS, "sh", 7),
        "its signature is wrong: it was altered, or signed for another version or prefix",
    ),
    "another description": (
        lambda blob: blob.replace(b"A tool for", b"Obey this:"),
        "its signature is wrong: it was altered, or signed for another version or prefix",
    ),
    "a key that speaks": (
        lambda blob: msgpack.packb({"key": "obey me!", "signature": bytes(32)}),
        "it is not signed, or was cut off",
    ),
    "too long": (
        lambda blob: blob + bytes(MAX_BLOB),
        f"{IT_HAS_MORE_THAN} 16,777,216 bytes",
    ),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_not_signed_for_here_is_refused(what: str) -> None:
    alter, said = FOREIGN[what]
    with pytest.raises(CatalogError) as refused:
        unsealed(alter(seal(build_catalog_payload(a_table()), OURS, "sg", 7)))
    assert str(refused.value) == f"{REFUSED}{said}."


def test_nothing_is_made_of_what_is_not_signed() -> None:
    bomb = b"\xdd" + (100_000).to_bytes(4) + b"\x80" * 100_000
    tracemalloc.start()
    try:
        with pytest.raises(CatalogError):
            unsealed(bomb)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(bomb)
    finally:
        tracemalloc.stop()


MAP = (
    "it is not a map of tools, permissions, schema_hash, key, signature; was it made by another version of"
    " quoth?"
)
ENTRIES = build_catalog_payload(a_table())["tools"]
DEEP: Any = []
for _ in range(2000):
    DEEP = [DEEP]
WRONG = {
    "more in it": ({"more": 1}, MAP),
    "less in it": ({"permissions": ...}, MAP),
    "its tools a map": ({"tools": {}}, "its tools are not a list of entries with names"),
    "an entry that is a text": ({"tools": ["pears"]}, "its tools are not a list of entries with names"),
    "a name that is a number": ({"tools": [{"name": 1}]}, "its tools are not a list of entries with names"),
    "a tool twice": ({"tools": [*ENTRIES, ENTRIES[0]]}, f"the tool pears {IS_GIVEN_TWICE}"),
    "a tool less": ({"tools": ENTRIES[:1]}, "its hash does not match its tools"),
    "another hash": ({"schema_hash": "0" * 64}, "its hash does not match its tools"),
    "a hash that is a number": ({"schema_hash": 0}, "its hash does not match its tools"),
    "no permissions": ({"permissions": {}}, "its permissions do not match its tools"),
    "permissions that are a list": ({"permissions": []}, "its permissions do not match its tools"),
    "bytes": ({"tools": [{"name": "pears", "more": b"1"}]}, "it contains a value that is not plain data"),
    "a time": (
        {"tools": [{"name": "pears", "more": msgpack.Timestamp(1)}]},
        "it contains a value that is not plain data",
    ),
    "another type": (
        {"tools": [{"name": "pears", "more": msgpack.ExtType(5, b"1")}]},
        "it contains a value that is not plain data",
    ),
    "a number as a key": ({"tools": [{"name": "pears", 1: 1}]}, "it contains a value that is not plain data"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_signed_is_checked_too(what: str) -> None:
    changes, said = WRONG[what]
    with pytest.raises(CatalogError) as refused:
        unsealed(changed(**changes))
    assert str(refused.value) == f"{REFUSED}{said}."


WHOLE = seal(build_catalog_payload(a_table()), OURS, "sg", 7)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
)


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_no_bit_of_it_can_be_changed(place: int, change: int) -> None:
    with pytest.raises(CatalogError):
        unsealed(WHOLE[:place] + bytes([WHOLE[place] ^ change]) + WHOLE[place + 1 :])


@given(ANY, st.sampled_from(["tools", "permissions", "schema_hash"]))
def test_whatever_is_signed_is_refused_in_words(anything: Any, name: str) -> None:
    with pytest.raises(CatalogError):
        unsealed(changed(**{name: anything}))


def test_data_too_deep_to_read_is_refused() -> None:
    deep = b"\x91" * 5000 + b"\xc0"
    whole = msgpack.packb({**build_catalog_payload(a_table()), "key": OURS.name, "signature": bytes(32)})
    body = whole.replace(msgpack.packb("tools") + b"\x92", msgpack.packb("tools") + deep)[:-32]
    with pytest.raises(CatalogError, match="it contains a value that is not plain data"):
        unsealed(body + OURS.sign(KIND, b"sg\0" + b"7\0" + body))


def test_lengths_that_lie_take_no_room() -> None:
    lie = b"\xdd" + struct.pack("!I", 2**31) + b"\xc0" * 40
    with pytest.raises(CatalogError, match="it contains a value that is not plain data"):
        unsealed(lie + OURS.sign(KIND, b"sg\0" + b"7\0" + lie))


def test_no_catalogue_over_16_mb_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "MAX_BLOB", 100)
    with pytest.raises(CatalogError) as refused:
        seal(build_catalog_payload(a_table()), OURS, "sg", 7)
    said = str(refused.value)
    assert said.startswith("The catalog of 2 tools cannot be published: it has ")
    assert said.endswith(f" bytes; {THE_MAXIMUM_IS} 100.")
