"""Two spellings of one value are equal; what only looks alike is another value."""

from __future__ import annotations

from decimal import Decimal

import pytest

from quoth.tools.origin.spelling import fold, spelling

SAME = [
    (50, 50.0),
    (50, "50"),
    (50, "50.00"),
    (50, Decimal("50.0")),
    (24, " 24 "),
    (-0.0, 0),
    (1.5, "1.50"),
    (10**25, "1" + "0" * 25),
    ("Ann@X.example", "ann@x.example"),
    ("  Ann \n Smith ", "ann smith"),
    ("<x@y.example>", "x@y.example"),
    ('"x@y.example"', "x@y.example"),
    ("“x@y.example”.", "x@y.example"),
    ('""""x""""', "x"),
    ('"x.".', "x"),
    ("100.", 100),
    (-1.5, "-1.50"),
    (Decimal("1E+3"), 1000),
    ("x.example.", "x.example"),
    ("DE89 3704 0044 0532 0130 00", "de89370400440532013000"),
    ("4111-1111-1111-1111", "4111111111111111"),
    ("ÄRGER", "ärger"),
]
DIFFERENT = [
    ("007", 7),
    ("1e3", 1000),
    (0.1, "0.10000001"),
    ("1.2.3", "1.2"),
    ("\u212aim", "kim"),  # the Kelvin sign
    ("x@evil.example", "x@еvil.example"),  # a Cyrillic letter
    ("x@evil.example", "x@evil\u200b.example"),
    ("x@evil.example", "x%40evil.example"),
    ("bücher.example", "xn--bcher-kva.example"),
    ("evil", "ｅｖｉｌ"),
    ("50", "５０"),
    ("a\u00a0b", "a b"),
    ("cafe\u0301", "caf\u00e9"),
    ("..", "."),
    ('"""""x"""""', "x"),  # quotes in quotes, but not without end
    ('""', "x"),
    ("<>", "x"),
    ('"x>', "x"),
    ("İ", "i"),
    ("straße", "strasse"),
    ("STRAẞE", "straße"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_value_are_equal(one: object, other: object) -> None:
    assert spelling(one) == spelling(other) != ""


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_only_looks_alike_is_another_value(one: object, other: object) -> None:
    assert spelling(one) != spelling(other)


def test_what_comes_from_nowhere_has_no_spelling() -> None:
    assert [spelling(value) for value in ("", " \n", None, True, False)] == [""] * 5
    assert [spelling(value) for value in ("..", "\u200b")] == ["..", "\u200b"]


def test_numbers_of_any_size_are_spelt() -> None:
    assert spelling(10**5000).startswith("0x")
    assert [spelling(value) for value in (10**40 - 1, 10**40, -(10**40))] == [
        "9" * 40,
        hex(10**40),
        hex(-(10**40)),
    ]
    assert [spelling(value) for value in (1e39, 1e40, 1e-39, 1e-40)] == [
        "1" + "0" * 39,
        "1E+40",
        f"0.{'0' * 38}1",
        "1E-40",
    ]
    spelt = [spelling(value) for value in (float("inf"), 1e300, 12345678901.25)]
    assert spelt == ["inf", "1E+300", "12345678901.25"]


def test_folding_keeps_the_length() -> None:
    text = "İ K ẞ Σ ΟΔΟΣ ǅ Ä"
    assert len(fold(text)) == len(text)
