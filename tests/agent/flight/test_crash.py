"""Flights that are killed (SIGKILL): wherever that happens, the next one ends with the same file as one that
was never broken off."""

from __future__ import annotations

import re
from pathlib import Path

from broken_flights import PLAN, World
from words import files

STRIDE = 3  # every third place; with 1 it takes minutes


def world(tmp_path: Path, name: str) -> World:
    return World(files(tmp_path / name, {"plan.org": PLAN}))


def test_a_flight_that_is_killed_anywhere_ends_with_the_same_file_as_an_unbroken_one(tmp_path: Path) -> None:
    unbroken = world(tmp_path, "unbroken")
    assert unbroken.life() == (False, "done")
    assert re.findall(r"^\*+ (\w+)", unbroken.text, re.MULTILINE) == [
        "DONE",
        "DONE",
        "FAILED",
        "DONE",
        "DONE",
    ]
    for kill in range(2, 1000, STRIDE):
        broken = world(tmp_path, f"w{kill}")
        killed, _ = broken.life(kill)
        if not killed:
            break
        assert broken.life() == (False, "done"), kill
        assert broken.text == unbroken.text, kill
        broken.verify()
    assert kill > 20


def test_a_flight_that_is_killed_again_and_again_comes_to_its_end(tmp_path: Path) -> None:
    unbroken, broken = world(tmp_path, "unbroken"), world(tmp_path, "broken")
    unbroken.life()
    lives, killed = 0, True
    while killed:
        lives += 1
        killed, said = broken.life(5 + lives)
    assert said == "done"
    assert lives > 3
    assert broken.text == unbroken.text
    broken.verify()
