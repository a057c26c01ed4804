"""What a full disk breaks off is continued by the command that the message names: nothing is lost, nothing is
done twice. The long form is tests/vocabulary/full_disks.py.
"""

from __future__ import annotations

import os
import random
import signal
import time
from itertools import count
from pathlib import Path

import full_disks
import pytest
from processes import in_a_process
from sentences import CANNOT_BE_WRITTEN

from quoth.tools.call.workspace import Workspace
from quoth.tools.storage.atomic import is_scratch


@pytest.mark.parametrize("route", full_disks.ROUTES)
def test_what_a_full_disk_breaks_off_goes_on_where_its_message_leads(tmp_path: Path, route: str) -> None:
    most = full_disks.needed(tmp_path / "whole", route)
    room = random.Random(f"1 {route}").randrange(most)
    assert full_disks.case(tmp_path / "full", route, room).wrong == []


WRITERS = [
    ["new", "tool", "made"],
    ["new", "plan", "made"],
    ["export", "s", "made.jsonl"],
    ["log", "s", "--html", "made.html"],
    ["lift", "s", "-o", "made.hy"],
    ["memory", "export", "made.org"],
]


def test_a_command_that_could_not_write_its_file_leaves_none_in_the_way(tmp_path: Path) -> None:
    place = full_disks.Place(tmp_path / "full")
    assert place.live(*full_disks.ROUTES["eval"]).code == 0
    for words in WRITERS:
        said = place.live(*words, room=0)
        assert (said.code, said.err[-44:]) == (2, f"{CANNOT_BE_WRITTEN}: No space left on device.\n"), words
        assert not list(place.folder.glob("made*"))
        assert place.live(*words).code == 0, words
        for made in place.folder.glob("made*"):
            made.unlink()


@pytest.mark.parametrize("seed", range(3))
def test_a_kill_while_files_are_written_leaves_nothing_after_the_next_write(
    tmp_path: Path, seed: int
) -> None:
    def write() -> None:
        place = Workspace(tmp_path)
        for n in count():
            place.write(f"{n % 3}.txt", bytes([n % 256]) * 1_000_000)

    chance, left = random.Random(seed), 0
    for kills in count(1):
        writer = in_a_process(write)
        while not any(is_scratch(path.name) for path in tmp_path.iterdir()):
            assert os.waitpid(writer, os.WNOHANG) == (0, 0)
        time.sleep(chance.uniform(0, 0.02))
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        left += sum(is_scratch(path.name) for path in tmp_path.iterdir())
        place = Workspace(tmp_path)
        assert all(len(set(path.read_bytes())) <= 1 for path in place.walk("."))
        assert not any(is_scratch(path.name) for path in place.walk("."))
        place.write("next.txt", b"n")
        assert sorted({path.suffix for path in tmp_path.iterdir()}) == [".txt"]
        if kills >= 5 and left:
            break
        assert kills < 100
