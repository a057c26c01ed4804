"""What a full disk breaks off is continued by the command that the message names: nothing is lost, nothing is
done twice. The long form is tests/vocabulary/full_disks.py.
"""

from __future__ import annotations

import random
from pathlib import Path

import full_disks
import pytest


@pytest.mark.parametrize("route", full_disks.ROUTES)
def test_what_a_full_disk_breaks_off_goes_on_where_its_message_leads(tmp_path: Path, route: str) -> None:
    most = full_disks.needed(tmp_path / "whole", route)
    room = random.Random(f"1 {route}").randrange(most)
    assert full_disks.case(tmp_path / "full", route, room).wrong == []
