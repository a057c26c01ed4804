"""The script that draws random mutants: what it changes, and that a change is seen by the tests of a room."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from examples import many
from mutants import ROOT, drawn, mutants

FILE = ROOT / "tools" / "sample.py"


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", ["a <= b"]),
        ("a >= b", ["a > b"]),
        ("a == b", ["a != b"]),
        ("a not in b", ["a in b"]),
        ("a is b", ["a is not b"]),
        ("(a) is not (b)", ["(a) is (b)"]),
        ("a and b and c", ["a and b or c", "a or b and c"]),
        ("not a", ["a"]),
        ("f(41)", ["f(42)"]),
        ("'é' < b", ["'é' <= b"]),
        ("True", []),
        ("'a < 1'", []),
        ("a < b < c", []),
        ("@lru_cache(64)\ndef f(): return 7", ["@lru_cache(64)\ndef f(): return 8"]),
        ("functools.lru_cache(maxsize=64)(f)", []),
        ("os.read(pipe, 1 << 20)", []),
        ("file.read(LIMIT + 1)", ["file.read(LIMIT + 2)"]),
        ("run(words, timeout=10)", []),
        ("time.monotonic() - a > 7", ["time.monotonic() - a > 8"]),
        ("lru_cache(64) is a", ["lru_cache(64) is not a"]),
    ],
)
def test_each_place_is_changed_once(source: str, changed: list[str]) -> None:
    text = source.encode()
    assert sorted(one.of(text).decode() for one in mutants(FILE, text)) == sorted(changed)


def test_a_mutant_says_where_it_is() -> None:
    source = b"a = 1\n\nb = a and a\n"
    assert sorted(one.described(source) for one in mutants(FILE, source)) == [
        "tools/sample.py:1: a = 2",
        "tools/sample.py:3: b = a or a",
    ]


def test_the_same_seed_draws_the_same_mutants() -> None:
    first = drawn(["tools/policy"], 20, seed=7)
    assert first == drawn(["tools/policy"], 20, seed=7)
    assert first != drawn(["tools/policy"], 20, seed=8)


def test_every_mutant_of_a_room_is_another_program() -> None:
    for one in drawn(["tools/policy", "tools/door"], many(2), seed=3):
        source = Path(one.file).read_bytes()
        assert ast.dump(ast.parse(one.of(source))) != ast.dump(ast.parse(source))
