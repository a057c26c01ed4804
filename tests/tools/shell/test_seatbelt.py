"""The boundary of macOS by its text: no Mac has run it yet. The profile is read as the kernel reads it: of
the rules for an operation on a path, the last one counts.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import hy
import pytest
from sentences import IT_CANNOT_BE_STARTED
from words import files

from quoth.tools.lisp.reader import read_all
from quoth.tools.shell import boundary as module
from quoth.tools.shell import seatbelt
from quoth.tools.shell.boundary import Boundary, boundary_kind, confined, why_none


class Profile:
    """The rules of the command for a boundary."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.places = dict(argv[at + 1].split("=", 1) for at, word in enumerate(argv) if word == "-D")
        self.rules = [self._plain(form) for form in read_all(argv[argv.index("-p") + 1])]

    def _plain(self, form: Any) -> Any:
        if not isinstance(form, hy.models.Sequence):
            return str(form)
        head, *rest = form
        return self.places[str(rest[0])] if str(head) == "param" else [self._plain(part) for part in form]

    def allows(self, operation: str, path: Path | str = "") -> bool:
        verdict = "deny"
        for head, *rest in self.rules[1:]:
            names = [one for one in rest if isinstance(one, str)]
            filters = [one for one in rest if not isinstance(one, str)]
            if any(one == "default" or fnmatch(operation, one) for one in names) and (
                not filters or any(self._matches(one, str(path)) for one in filters)
            ):
                verdict = head
        return verdict == "allow"

    def _matches(self, found: list[str], path: str) -> bool:
        kind, place = found[0], found[-1]
        if kind == "subpath":
            return Path(path).is_relative_to(place)
        return path == (place if kind == "literal" else f"{kind} {place}")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in a home, which is all that lies there but for another project."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("QUOTH_STATE", "QUOTH_CONFIG", "QUOTH_CACHE"):
        monkeypatch.setenv(name, str(home / name))
        (home / name).mkdir(parents=True)
    kept = {".quoth/policy.hy": "", "own/tools.hy": "", "a/b/secret.txt": "", "till.py": ""}
    files(home / "diary", {"monday.txt": ""})
    return files(home / 'sh"op (1)', kept)


def profile_of(shop: Path, **more: Any) -> Profile:
    command = seatbelt.command(["make", "all"], Boundary(shop, shop, **more))
    command.close()
    assert command.argv[0] == "/usr/bin/sandbox-exec"
    assert command.argv[-2:] == ("make", "all")
    assert command.env["HOME"] == command.env["TMPDIR"]
    return Profile(command.argv)


def test_a_program_writes_in_the_workspace_and_its_scratch_folder_alone(shop: Path) -> None:
    profile = profile_of(shop)
    scratch = next(place for place in profile.places.values() if "quoth-shell-" in place)
    for place in (shop / "new.txt", f"{scratch}/new.txt"):
        assert profile.allows("file-read-data", place)
        assert profile.allows("file-write-create", place)
    for place in ("/usr/bin/env", "/System/Library", "/Library/x", "/etc/hosts"):
        assert profile.allows("file-read-data", place)
        assert not profile.allows("file-write-data", place)
    assert profile.allows("file-write-data", "/dev/null")
    assert not profile.allows("file-read-data", "/dev/disk0")


def test_home_is_not_seen_but_the_way_to_the_workspace_is_looked_up(shop: Path) -> None:
    profile, home = profile_of(shop), shop.parent
    for place in (home / "diary/monday.txt", home, home / "QUOTH_STATE/keys"):
        assert not profile.allows("file-read-data", place)
        assert not profile.allows("file-write-create", place)
        assert not profile.allows("process-exec*", place)
    assert profile.allows("file-read-metadata", home)
    assert not profile.allows("file-read-metadata", home / "diary")
    shown = profile_of(shop, readable=(home / "diary",))
    assert shown.allows("file-read-data", home / "diary/monday.txt")
    assert not shown.allows("file-write-data", home / "diary/monday.txt")


def test_what_is_protected_or_hidden_stays_so_under_another_name_of_a_folder_above(shop: Path) -> None:
    profile = profile_of(shop, protected=(shop / "own",), hidden=(shop / "a/b/secret.txt",))
    for place in (shop / "own/tools.hy", shop / ".quoth/policy.hy"):
        assert profile.allows("file-read-data", place)
        assert not profile.allows("file-write-data", place)
        assert not profile.allows("file-write-unlink", place.parent)
    assert not profile.allows("file-read-data", shop / "a/b/secret.txt")
    for folder in (shop / "a/b", shop / "a", shop):  # a rename unlinks the old name
        assert not profile.allows("file-write-unlink", folder)
        assert profile.allows("file-write-create", folder / "new.txt")
    assert profile.allows("file-write-unlink", shop / "till.py")


def test_there_is_no_network_but_where_it_is_allowed(shop: Path) -> None:
    without, with_it = profile_of(shop), profile_of(shop, network=True)
    resolver, docker = "/private/var/run/mDNSResponder", "/var/run/docker.sock"
    for place in ("remote ip", resolver):
        assert not without.allows("network-outbound", place)
        assert with_it.allows("network-outbound", place)
    assert not with_it.allows("network-outbound", docker)


def test_it_reaches_no_keychain_and_no_process_outside(shop: Path) -> None:
    profile = profile_of(shop, network=True)
    for service in ("SecurityServer", "securityd.xpc", "coreservices.launchservicesd"):
        assert not profile.allows("mach-lookup", f"global-name com.apple.{service}")
    assert profile.allows("mach-lookup", "global-name com.apple.system.opendirectoryd.libinfo")
    assert profile.allows("signal", "target same-sandbox")
    assert not profile.allows("signal", "target others")
    assert not profile.allows("mach-register")


def test_a_name_of_a_place_is_never_read_as_a_rule(shop: Path) -> None:
    command = seatbelt.command(["true"], Boundary(shop, shop))
    command.close()
    text = command.argv[command.argv.index("-p") + 1]
    assert 'sh"op' not in text
    assert str(shop) in Profile(command.argv).places.values()


def test_places_are_written_as_the_kernel_spells_them(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a Mac a name typed in capitals is the same file; realpath leaves it so."""
    real = {os.stat(path).st_ino: path for path in (shop, shop / "till.py")}

    def path_of(number: int, how: int, room: bytes) -> bytes:
        assert how == 50
        return os.fsencode(real[os.fstat(number).st_ino]).ljust(len(room), b"\0")

    os.link(shop / "till.py", shop / "TILL.PY")
    monkeypatch.setattr(fcntl, "F_GETPATH", 50, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", path_of)
    assert seatbelt.canonical(shop / "TILL.PY") == shop / "till.py"
    assert seatbelt.canonical(shop / "Gone") == shop / "Gone"


# Which boundary is used


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "platform", "darwin")
    cached = (module._found, module._seatbelt)
    for one in cached:
        one.cache_clear()
    yield
    for one in cached:
        one.cache_clear()


@pytest.mark.usefixtures("mac")
def test_on_a_mac_nothing_is_confined_unless_it_is_chosen(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wish in ("", "bubblewrap", "landlock"):
        monkeypatch.setenv("QUOTH_BOUNDARY", wish)
        assert boundary_kind() == ""
        assert (
            why_none()
            == "No boundary for programs has been tested on macOS yet: --boundary seatbelt tries one."
        )


@pytest.mark.usefixtures("mac")
def test_chosen_it_is_used_if_no_program_escapes_from_it(
    shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QUOTH_BOUNDARY", "seatbelt")
    assert why_none() == (
        f"Seatbelt does not work here ({IT_CANNOT_BE_STARTED}: [Errno 2] No such file or directory:"
        " '/usr/bin/sandbox-exec')."
    )
    files(tmp_path, {"sandbox-exec": '#!/bin/sh\nwhile [ "$1" != -p ]; do shift; done; shift 2; exec "$@"\n'})
    (tmp_path / "sandbox-exec").chmod(0o755)
    monkeypatch.setattr(seatbelt, "PROGRAM", str(tmp_path / "sandbox-exec"))
    for cached in (module._found, module._seatbelt):
        cached.cache_clear()
    assert why_none() == "Seatbelt does not work here (a program reads a hidden file in it)."
    monkeypatch.setattr(module, "_seatbelt", lambda: "")
    module._found.cache_clear()
    assert boundary_kind() == "seatbelt"
    command = confined(["true"], Boundary(shop, shop), "seatbelt")
    command.close()
    assert Profile(command.argv).allows("file-write-create", shop / "new.txt")
