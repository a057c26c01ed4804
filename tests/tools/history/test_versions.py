"""What files held before calls wrote them, as the store keeps it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from sentences import COULD_NOT_BE_USED, THE_DISK_IS_FULL
from words import complaint, files, form

from quoth.tools.call.call import new_call
from quoth.tools.call.keeping import FileWrite, kept_by
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import StoreError
from quoth.tools.history.versions import StoreVersions
from quoth.tools.storage.database import Store

CALL = new_call(form('(write-file :path "a.txt" :content "x")'), session="s1", user="ann")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(files(tmp_path / "work", {"a.txt": "one", "b.txt": "one"}))


@pytest.fixture
def versions(place: Workspace) -> StoreVersions:
    store = Store(":memory:")
    return StoreVersions(lambda: store, place.root)


def test_each_content_is_kept_once(place: Workspace, versions: StoreVersions) -> None:
    with kept_by(lambda write: versions.keep(CALL, write)):
        place.write("a.txt", b"two")
        place.write("b.txt", b"two")
        place.write("sub/deep/c.txt", b"two")
        place.write("a.txt", b"two")
        place.remove("b.txt", b"two")
    assert [(row.path, row.before, row.after, row.folders) for row in versions.of("s1")] == [
        ("a.txt", digest("one"), digest("two"), 0),
        ("b.txt", digest("one"), digest("two"), 0),
        ("sub/deep/c.txt", None, digest("two"), 2),
        ("a.txt", digest("two"), digest("two"), 0),
        ("b.txt", digest("two"), None, 0),
    ]
    assert versions.content(digest("one")) == b"one"
    assert versions._store().execute("SELECT count(*) FROM contents") == [(2,)]
    assert {row.tool for row in versions.of("s1")} == {"write-file"}
    assert (versions.of("s2"), versions.content(digest("three"))) == ([], None)


def test_it_is_kept_before_the_file_changes(place: Workspace, versions: StoreVersions) -> None:
    seen: list[bytes] = []

    def keep(write: FileWrite) -> str:
        seen.append((place.root / "a.txt").read_bytes())
        raise StoreError(f"The store {COULD_NOT_BE_USED}", THE_DISK_IS_FULL)

    with kept_by(keep):
        complaint(StoreError, lambda: place.write("a.txt", b"two"))
        complaint(StoreError, lambda: place.remove("a.txt", b"one"))
    assert (seen, (place.root / "a.txt").read_bytes()) == ([b"one", b"one"], b"one")
    assert sorted(path.name for path in place.root.iterdir()) == ["a.txt", "b.txt"]


def test_what_a_formatter_makes_of_a_file_is_a_write_of_the_call(
    place: Workspace, versions: StoreVersions
) -> None:
    with kept_by(lambda write: versions.keep(CALL, write)):
        place.write("a.txt", b"two", reader="ann")
        (place.root / "a.txt").write_bytes(b"two\n")
        assert place.adopted("a.txt", b"two", "ann") == b"two\n"
        assert place.adopted("a.txt", b"two\n", "ann") == b"two\n"
        place.write("a.txt", b"three", reader="ann")  # it knows the text
    assert [(row.before, row.after) for row in versions.of("s1")] == [
        (digest("one"), digest("two")),
        (digest("two"), digest("two\n")),
        (digest("two\n"), digest("three")),
    ]


def test_only_calls_of_a_session_in_this_folder_are_kept(place: Workspace, versions: StoreVersions) -> None:
    nobody = new_call(CALL.form)
    other = StoreVersions(versions._store, place.root / "sub")
    with kept_by(lambda write: versions.keep(nobody, write) + other.keep(CALL, write)):
        place.write("a.txt", b"two")
    place.write("a.txt", b"three")
    assert versions.of("s1") == []


def test_a_damaged_content_is_none(place: Workspace, versions: StoreVersions) -> None:
    with kept_by(lambda write: versions.keep(CALL, write)):
        place.write("a.txt", b"two")
    for data in (b"no zlib", b""):
        versions._store().execute("UPDATE contents SET data = ?", (data,))
        assert versions.content(digest("one")) is None


def test_the_contents_that_were_there_longest_go_once_they_are_too_many(place: Workspace) -> None:
    store = Store(":memory:")
    versions = StoreVersions(lambda: store, place.root, most=1_000)
    sizes: list[list[int]] = []
    with kept_by(lambda write: versions.keep(CALL, write)):
        for number in range(40):
            place.write("a.txt", hashlib.sha512(b"%d" % number).digest())
            sizes.append([size for (size,) in store.execute("SELECT stored FROM contents ORDER BY used")])
    one = sizes[-1][-1]
    held = [sum(each) for each in sizes]
    assert max(held) <= 1_000
    assert max(held) + one > 1_000, "as many are kept as may be"
    assert {total + one > 900 for total, more in zip(held[1:], held, strict=False) if total < more} == {True}
    assert all(total <= 900 for total, before in zip(held[1:], held, strict=False) if total < before)
    assert versions.content(hashlib.sha256(b"one").hexdigest()) is None
    assert versions.content(hashlib.sha256(hashlib.sha512(b"38").digest()).hexdigest()) is not None


def test_a_content_that_does_not_change_or_is_too_large_is_not_kept(
    place: Workspace, versions: StoreVersions, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with kept_by(lambda write: versions.keep(CALL, write)):
        place.write("a.txt", b"one")
        assert versions._store().execute("SELECT count(*) FROM contents") == [(0,)]
        monkeypatch.setattr("quoth.tools.call.keeping.MAX_FILE", 3)
        place.write("a.txt", b"four", say=said.append)
        place.write("a.txt", b"five", say=said.append)
    assert versions._store().execute("SELECT count(*) FROM contents") == [(1,)]
    assert said == ["a.txt was larger than 20,000,000 bytes, too large for quoth undo to restore."]
