"""Values of bodies as plain data."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from sentences import RETURN_IT_IN_ANOTHER_SHAPE, THE_VALUE_IS_A_NUMBER
from words import complaint

from quoth.tools.errors import ToolError
from quoth.tools.registry.values import encodable, plain


class Kind(Enum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (2**13_999, 2**13_999),
        (True, True),
        (math.inf, "inf"),
        (1.5, 1.5),
        ({1: (2, {3})}, {"1": [2, [3]]}),
        (b"\xff", "/w=="),
        ("\ud800", "\\ud800"),
        (Path("a"), "a"),
        (Kind.ONE, 1),
        (datetime(2026, 1, 31, tzinfo=UTC), "2026-01-31T00:00:00+00:00"),
    ],
)
def test_a_value_becomes_plain_data(value: Any, data: Any) -> None:
    assert plain(value) == data
    assert type(plain(value)) is type(data)


def test_no_value_is_too_large_or_too_deep() -> None:
    assert complaint(ToolError, lambda: plain(2**14_000)) == (
        f"{THE_VALUE_IS_A_NUMBER}; {RETURN_IT_IN_ANOTHER_SHAPE}."
    )
    for wrap in (lambda value: [value], lambda value: {"a": value}, lambda value: {1: value}):
        value: Any = 1
        for _ in range(100):
            value = wrap(value)
        plain(value)
        assert complaint(ToolError, lambda value=value, wrap=wrap: plain(wrap(value))) == (  # type: ignore[misc]
            "The value is nested deeper than 100."
        )


def test_half_a_character_is_escaped() -> None:
    assert [encodable(text) for text in ("a", "ü", "a\ud800ü")] == ["a", "ü", "a\\ud800ü"]
