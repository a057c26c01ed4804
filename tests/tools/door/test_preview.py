"""What would become of a call, some of whose arguments are not known yet: no body runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sentences import IT_ASKS_FIRST, IT_DEPENDS_ON, IT_WRITES_FILES
from words import Spy, files, gateway, tool

from quoth.tools.call.call import ALLOW, CallPreview, Verdict, ask, deny, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.inner import preview_call
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.param_types import WorkspacePath

HOLE = "a value that is not known"
PARAMS = {
    "path": {"type": WorkspacePath},
    "text": {"type": str, "default": ""},
    "near-path": {"type": str, "default": ""},
    "pin": {"type": str, "default": "", "secret": True},
}


def look(
    folder: Path,
    args: dict[str, Any],
    *,
    name: str = "put",
    rules: str = "",
    guards: bool = True,
    judge: Any = None,
    **options: Any,
) -> CallPreview:
    body = Spy()
    options = {"effects": ["writes"], "params": PARAMS, **options}
    policy: dict[str, Any] = (
        {"policy": RulesPolicy([parse_layer("user", rules.encode(), "p.hy")])} if rules else {}
    )
    here = gateway(tool("put", body, **options), workspace=folder, gate=judge, **policy)
    context = ToolContext(Workspace(folder), dry=True)
    call = new_call(CallForm(name, args))
    seen = asyncio.run(preview_call(here.door, call, context, lambda value: value == HOLE, guards))
    assert not body.ran
    return seen


@pytest.fixture
def home(tmp_path: Path) -> Path:
    files(tmp_path, {"a": "", "b/c": ""})
    (tmp_path / "link").symlink_to(tmp_path / "b")
    return tmp_path


def test_a_call_is_seen_with_what_it_would_touch(home: Path) -> None:
    seen = look(home, {"path": "./a", "near-path": "link/c"}, cost="expensive")
    assert (str(seen.form), seen.verdict, seen.reason) == (
        '(put :path "a" :near-path "link/c")',
        "ask",
        IT_WRITES_FILES,
    )
    assert (seen.effects, seen.cost, seen.gate, seen.paths) == (
        ("writes",),
        "expensive",
        False,
        ("a", "link/c"),
    )
    assert (seen.leads, seen.secret) == ({"near-path": "b/c"}, {"pin"})


@pytest.mark.parametrize(
    ("args", "form", "paths", "reason"),
    [
        ({"path": "a", "text": HOLE}, '(put :path "a" :text "?")', ("a",), IT_WRITES_FILES),
        ({"path": HOLE}, '(put :path "?")', None, IT_WRITES_FILES),
        ({"path": "./a", "near-path": HOLE}, '(put :path "a" :near-path "?")', None, IT_WRITES_FILES),
        ({"path": "link", "text": HOLE}, '(put :path "b" :text "?")', ("b",), IT_WRITES_FILES),
    ],
)
def test_what_is_known_of_it_is_resolved(
    home: Path, args: dict[str, Any], form: str, paths: Any, reason: str
) -> None:
    seen = look(home, args)
    assert (str(seen.form).replace(HOLE, "?"), seen.paths) == (form, paths)
    assert (seen.verdict, seen.reason) == ("ask", reason)


@pytest.mark.parametrize(
    ("name", "args", "verdict", "reason"),
    [
        ("putt", {}, "unknown", "There is no tool named putt. Did you mean put?"),
        ("put", {}, "invalid", "put: :path is missing. It is called as"),
        ("put", {"text": HOLE}, "invalid", "put: :path is missing."),
        ("put", {"path": "a", "texts": HOLE}, "invalid", "put: :texts is unknown."),
        ("put", {"path": "a", "text": 1}, "invalid", "put: :text"),
        ("put", {"path": "../x", "text": HOLE}, "deny", "../x"),
        ("put", {"path": "../x"}, "deny", "../x"),
    ],
)
def test_a_call_that_cannot_be_is_told(
    home: Path, name: str, args: dict[str, Any], verdict: str, reason: str
) -> None:
    seen = look(home, args, name=name)
    assert (seen.verdict, seen.reason.startswith(reason)) == (verdict, True), seen.reason


@pytest.mark.parametrize(
    ("rules", "args", "verdict", "reason"),
    [
        ("(allow (put))", {"path": "a"}, "allow", ""),
        ('(allow (put :path "a"))', {"path": "a", "text": HOLE}, "allow", ""),
        ('(allow (put :text "x"))', {"path": "a", "text": HOLE}, "ask", IT_WRITES_FILES),
        ('(deny (put :path "a"))', {"path": "a", "text": HOLE}, "deny", "p.hy:1 says"),
        ('(deny (put :text "x"))', {"path": "a", "text": HOLE}, "ask", f"{IT_DEPENDS_ON} :text"),
        ('(ask (put) :why "so")', {"path": "a"}, "ask", "p.hy:1 says"),
    ],
)
def test_a_rule_decides_on_what_is_known(
    home: Path, rules: str, args: dict[str, Any], verdict: str, reason: str
) -> None:
    seen = look(home, args, rules=rules)
    assert (seen.verdict, seen.reason[: len(reason)]) == (verdict, reason), seen.reason


@pytest.mark.parametrize(
    ("guard", "guards", "verdict", "reason"),
    [
        (Spy(ALLOW), True, "ask", IT_WRITES_FILES),
        (Spy(ALLOW), False, "ask", f"{IT_WRITES_FILES}; its guard was not asked"),
        (Spy(deny("not that")), True, "deny", "not that"),
        (Spy(ask("sure?")), True, "ask", f"{IT_WRITES_FILES}; sure?"),
        (Spy(Verdict("ask")), True, "ask", f"{IT_WRITES_FILES}; {IT_ASKS_FIRST}"),
    ],
)
def test_a_guard_is_asked_where_it_may_be(
    home: Path, guard: Any, guards: bool, verdict: str, reason: str
) -> None:
    seen = look(home, {"path": "a"}, guard=guard, guards=guards)
    assert (seen.verdict, seen.reason) == (verdict, reason)
    assert guard.ran == guards


def test_a_call_that_is_denied_asks_no_guard(home: Path) -> None:
    guard = Spy(ALLOW)
    assert look(home, {"path": "a"}, guard=guard, rules="(deny (put))").verdict == "deny"
    assert not guard.ran


@pytest.mark.parametrize(
    ("guard", "guards", "reason"),
    [
        (Spy(ALLOW), False, "p.hy:1 says (allow (put)); its guard was not asked"),
        (Spy(ask("sure?")), True, "sure?"),
    ],
)
def test_what_a_rule_allows_may_still_be_asked(home: Path, guard: Any, guards: bool, reason: str) -> None:
    seen = look(home, {"path": "a"}, rules="(allow (put))", guard=guard, guards=guards)
    assert (seen.verdict, seen.reason) == ("allow" if "not asked" in reason else "ask", reason)


def test_what_only_reads_is_allowed_by_its_effects(home: Path) -> None:
    seen = look(home, {"path": "a"}, effects=["reads"], guard=Spy(ALLOW), guards=False)
    assert (seen.verdict, seen.reason) == ("allow", "it only reads; its guard was not asked")
    assert look(home, {"path": "a"}, effects=["reads"]).reason == "it only reads"


class Gate:
    async def check(self, *_: Any) -> Verdict:
        raise AssertionError("a call that is only looked at asks no gate")


@pytest.mark.parametrize(
    ("gate", "judge", "judged"), [(True, Gate(), True), (False, Gate(), False), (True, None, False)]
)
def test_a_call_that_a_gate_will_judge_says_so(home: Path, gate: bool, judge: Any, judged: bool) -> None:
    assert look(home, {"path": "a"}, judge=judge, gate=gate).gate == judged
