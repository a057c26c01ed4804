"""The index of rules about paths: it changes no verdict, sees what changes on the disk, saves looks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from words import files, tool

from quoth.tools.call.call import Verdict, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy import path_index
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.policy.scope import checked
from quoth.tools.policy.walking import Walk
from quoth.tools.registry.param_types import WorkspacePath

PATHS = {"path": {"type": WorkspacePath}, "to": {"type": WorkspacePath, "default": None}}
TOOLS = {
    "move": tool("move", params=PATHS, effects=["writes"]),
    "pack": tool("pack", params={"path": {"type": list[WorkspacePath]}}, effects=["reads"]),
    "guess": tool("guess", params={"path": {}, "text": {"default": ""}}, effects=["reads"]),
    "plain": tool("plain", params={"text": {}}, effects=["reads"]),
}


def policy(rules: str) -> RulesPolicy:
    return RulesPolicy([parse_layer("given", rules.encode(), "policy.hy")])


def both(rules: RulesPolicy, name: str, args: dict[str, Any], root: Path) -> tuple[Verdict, Verdict]:
    """The verdict by the index, and that of all rules tried in turn."""
    workspace, made = Workspace(root), TOOLS[name]
    bound, found = checked(made, CallForm(name, args), workspace)
    call, context = new_call(bound), ToolContext(workspace)
    return rules.judge(made, call, found, context), rules.explain(made, call, found, context).verdict


def verdict(rules: RulesPolicy, path: str, root: Path) -> str:
    """The verdict on a move from here, which is the same with and without the index."""
    by_index, in_turn = both(rules, "move", {"path": path}, root)
    assert by_index == in_turn
    return by_index.kind


def settle() -> None:
    """Wait until what was just changed may be remembered."""
    time.sleep(path_index.TICK_NS / 1e9 * 1.5)


@pytest.fixture(autouse=True, scope="module")
def quick() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_index, "TICK_NS", 20_000_000)
        yield


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with links of every kind, which nobody changes."""
    root = tmp_path_factory.mktemp("town")
    files(root, {"a/f": "1", "a/b/g": "2", "c/é": "3", "c/A": "4", "~home/x": "5"})
    outside = tmp_path_factory.mktemp("outside")
    for name, target in {
        "l": "a",
        "c/up": "..",
        "c/l": "../a/b",
        "out": str(outside),
        "nowhere": "missing",
        "loop": "loop",
    }.items():
        (root / name).symlink_to(target)
    (root / "twin").hardlink_to(root / "a/f")
    settle()
    return root


NAMES = (
    "a",
    "b",
    "c",
    "f",
    "g",
    "é",
    "e\u0301",
    "A",
    "l",
    "up",
    "out",
    "nowhere",
    "loop",
    "twin",
    "new",
    "~home",
)
PLACES = st.builds(
    lambda before, parts, after: before + "/".join(parts) + after,
    st.sampled_from(["", "", "", "", "./", "/", "~", "../"]),
    st.lists(st.sampled_from([*NAMES, *NAMES, "..", ".", ""]), min_size=1, max_size=3),
    st.sampled_from(["", "", "", "/"]),
)
TEXTS = PLACES.map(lambda text: f'"{text}"')
PREDICATES = st.recursive(
    TEXTS | TEXTS.map(lambda text: f"(under {text})"),
    lambda inner: (
        st.builds(
            lambda head, parts: f"({head} {' '.join(parts)})",
            st.sampled_from(["or", "and"]),
            st.lists(inner | st.just('(matches "a")'), min_size=1, max_size=3),
        )
        | inner.map(lambda one: f"(not {one})")
        | inner.map(lambda one: f"(any {one})")
    ),
    max_leaves=3,
)
RULES = st.builds(
    lambda kind, name, argument, predicate: f"({kind} ({name} :{argument} {predicate}))",
    st.sampled_from(["deny", "ask", "allow"]),
    st.sampled_from(["move", "pack", "guess", "any-tool"]),
    st.sampled_from(["path", "path", "path", "to", "text"]),
    PREDICATES,
)
CALLS = st.one_of(
    st.tuples(st.just("move"), st.fixed_dictionaries({"path": PLACES}, optional={"to": PLACES})),
    st.tuples(st.just("pack"), st.fixed_dictionaries({"path": st.lists(PLACES, max_size=3)})),
    st.tuples(st.just("guess"), st.fixed_dictionaries({"path": PLACES}, optional={"text": PLACES})),
    st.tuples(st.just("plain"), st.fixed_dictionaries({"text": PLACES})),
)


@examples(4)
@given(st.lists(RULES, min_size=1, max_size=12), st.lists(CALLS, min_size=1, max_size=6))
def test_every_verdict_is_that_of_all_rules_tried_in_turn(
    town: Path, rules: list[str], calls: list[tuple[str, dict[str, Any]]]
) -> None:
    made = policy("\n".join(rules))
    for name, args in calls:
        try:
            by_index, in_turn = both(made, name, args, town)
        except InvalidCallError:
            continue
        assert by_index == in_turn, f"{name} {args}"


CHANGES: dict[str, Callable[[Path], object]] = {
    "a link is made where a rule names nothing": lambda root: (root / "secret").symlink_to("src"),
    "a folder becomes a link": lambda root: ((root / "keys").rmdir(), (root / "keys").symlink_to("src")),
    "a link is put in its place at once": lambda root: os.replace(root / "spare", root / "file"),
    "a folder is renamed": lambda root: (
        (root / "deep/in").rename(root / "away"),
        (root / "src").rename(root / "deep/in"),
    ),
    "a file gets another name": lambda root: (root / "deep/in/twin").hardlink_to(root / "src/a"),
    "a folder on the way becomes a link": lambda root: (
        (root / "deep").rename(root / "old"),
        (root / "deep").symlink_to("hall"),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_what_changes_on_the_disk_counts_at_once(tmp_path: Path, change: Callable[[Path], object]) -> None:
    files(tmp_path, {"src/a": "1", "deep/in/x": "2", "file": "3", "hall/y": "4"})
    (tmp_path / "keys").mkdir()
    (tmp_path / "hall/in").symlink_to("../src")
    (tmp_path / "spare").symlink_to("src")
    settle()
    names = ("secret", "keys", "file", "deep/in", "deep/in/twin")
    rules = policy("\n".join(f'(deny (move :path (under "{name}")))' for name in names))
    assert verdict(rules, "src/a", tmp_path) == "ask"
    change(tmp_path)
    path = "src/a" if (tmp_path / "src").exists() else "deep/in/a"
    assert verdict(rules, path, tmp_path) == "deny"
    settle()
    assert verdict(rules, path, tmp_path) == "deny"


@pytest.mark.parametrize(
    "name",
    ["missing/no\0", "missing/" + "no/" * 2000, "./" * 3000 + "missing"],
    ids=["a NUL", "too long", "much of nothing"],
)
def test_a_place_that_cannot_be_looked_up_whole_is_undecided(tmp_path: Path, name: str) -> None:
    files(tmp_path, {"src/a": "1"})
    settle()
    assert verdict(policy(f'(deny (move :path "{name}"))'), "src/a", tmp_path) == "deny"


def test_a_root_that_has_become_a_link_hides_no_other_name_of_a_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    files(root, {"secret/a": "1"})
    (root / "twin").hardlink_to(root / "secret/a")
    settle()
    workspace, made = Workspace(root), TOOLS["move"]
    root.rename(tmp_path / "elsewhere")
    root.symlink_to("elsewhere")
    call, context = new_call(CallForm("move", {"path": "twin"})), ToolContext(workspace)
    rules = policy('(deny (move :path "secret/a"))')
    assert rules.judge(made, call, {"path": WorkspacePath("twin")}, context).kind == "deny"


def test_what_is_remembered_and_not_compared_would_be_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, {"src/a": "1"})
    settle()
    rules = policy('(deny (move :path (under "secret")))')
    assert verdict(rules, "src/a", tmp_path) == "ask"
    (tmp_path / "secret").symlink_to("src")
    with monkeypatch.context() as broken:
        broken.setattr(path_index, "_changed", lambda stamps: False)
        by_index, in_turn = both(rules, "move", {"path": "src/a"}, tmp_path)
        assert (by_index.kind, in_turn.kind) == ("ask", "deny")
    assert verdict(rules, "src/a", tmp_path) == "deny"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [(0, False), (-10_000_001, False), (-20_000_001, True), (5_000_000_001, False), (-20_000_000_001, True)],
)
def test_a_folder_that_has_just_changed_is_not_remembered(changed: int, expected: bool) -> None:
    now = 1_800_000_000_000_000_001
    assert path_index._settled(now + changed, now) is expected


def test_whole_seconds_are_taken_for_a_clock_that_has_no_others() -> None:
    changed = 1_800_000_000_000_000_000
    assert not path_index._settled(changed, changed + 2_500_000_000)
    assert path_index._settled(changed, changed + 3_500_000_000)


def test_a_call_looks_at_its_own_path_and_not_at_those_of_all_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, {"src/a": "1", **{f"here{n}/x": "" for n in range(100)}})
    settle()
    rules = policy(
        "\n".join(f'(deny (move :path (under "{n}")))' for m in range(100) for n in (f"here{m}", f"no{m}"))
    )
    looks: list[object] = []
    assert verdict(rules, "src/a", tmp_path) == "ask"
    for name in ("stat", "lstat"):
        known = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda path, known=known, **more: (looks.append(path), known(path, **more))[1]
        )
    workspace, made = Workspace(tmp_path), TOOLS["move"]
    bound, found = checked(made, CallForm("move", {"path": "src/a"}), workspace)
    looks.clear()
    assert rules.judge(made, new_call(bound), found, ToolContext(workspace)).kind == "ask"
    assert len(looks) <= 5  # and a HEAD beside it and above, which would make a repository of the folder
    looks.clear()
    walk = Walk(rules, TOOLS["pack"], new_call(bound), {"path": [WorkspacePath(".")]}, workspace, made)
    assert [walk.may_read(path) for path in ("src/a", "here7/x", "no1")] == [True, False, False]
    assert len(looks) < 250  # each place once for the walk, whatever the number of files
    looks.clear()
    assert all(walk.may_read("src/a") for _ in range(10))
    assert len(looks) <= 30
