"""The helpers of a dry run, as plain Python: what is done to an unknown is unknown, all else is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quoth.tools.dryrun import operations as o
from quoth.tools.dryrun import runtime as r


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """A run that takes the last way of each decision, and what it noted."""
    said: list[tuple[str, str]] = []

    def choose(kind: str, text: str, labels: list[str]) -> int:
        said.append((kind, text))
        return len(labels) - 1

    monkeypatch.setattr(r, "STATE", r.STATE | {"unknowns": 0, "loops": 0, "maybe": False, "forks": 0})
    monkeypatch.setattr(o, "STATE", r.STATE)
    monkeypatch.setattr(r, "KNOWN", {})
    for module in (r, o):
        monkeypatch.setattr(module, "note", lambda kind, text: said.append((kind, text)))
    monkeypatch.setattr(r, "choose", choose)
    return said


@pytest.mark.parametrize(
    ("done", "shown"),
    [
        (lambda x: o.binary("+", x, 1), "(+ x 1)"),
        (lambda x: o.binary("+", "a", x), '"a#<x>"'),
        (lambda x: o.binary("%", "%s", (x,)), '(% "%s" [x])'),
        (lambda x: o.changed("+", 1, x), "(+= 1 x)"),
        (lambda x: o.changed("+", [1], [x]), "[1 x]"),
        (lambda x: o.changed("+", [1], x), "a list"),
        (lambda x: o.unary("-", x), "(- x)"),
        (lambda x: o.chain(["<", "<"], [1, x, 3]), "(< x 3)"),
        (lambda x: o.chain(["<", "<"], [2, 1, x]), "False"),
        (lambda x: o.chain(["in"], [1, [1, x]]), "True"),
        (lambda x: o.part({"a": 1}, x), "(get {…} x)"),
        (lambda x: o.part({"a": x}, "a"), "x"),
        (lambda x: o.cut("abc", x, None, None), '(cut "abc" x None)'),
        (lambda x: o.shaped(x, [None, "*"]), "a list"),
        (lambda x: o.call(len, [[x]], {}), "1"),
        (lambda x: o.call(len, [x], {}), "(len x)"),
        (lambda x: o.call(list, [x], {}), "a list"),
        (lambda x: o.builtin(filter, [None, [1, 0]], {}), "[1]"),
        (lambda x: o.builtin(filter, [None, [1, x]], {}), "a list"),
        (lambda x: o.method("upper", x, [], {}), "(.upper x)"),
        (lambda x: o.method("upper", "a", [], {}), "[]"),
        (lambda x: r.negated(x), "(not x)"),
        (lambda x: o.formatted(x, "", ""), "x"),
        (lambda x: o.formatted(7, "", "03d"), '"007"'),
    ],
)
def test_what_is_done_to_an_unknown(done: Callable[[Any], Any], shown: str) -> None:
    assert r.show(done(r.hole("x"))) == shown


def test_a_decision_about_an_unknown_is_asked_once(asked: list[tuple[str, str]]) -> None:
    x = r.hole("x")
    assert [r.truth(x), r.truth(x), r.truth("a" + x), r.truth([])] == [False, False, True, False]
    assert asked == [("if", "x")]


def test_what_a_loop_over_an_unknown_changes_may_be_anything(asked: list[tuple[str, str]]) -> None:
    unknown_times, items, depth = o.loop(r.hole("x"), None, False)
    done: list[Any] = []
    assert (unknown_times, len(items), depth) == (True, 1, 0)
    assert o.method("append", done, [1], {}) is None
    assert r.many(done)
    o.leave(depth)
    assert asked == [("each", "x"), ("end", "")]
