"""Rules about paths: judging and explaining agree, and a change on the disk counts at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from words import files, tool

from quoth.tools.call.call import Verdict, new_call
from quoth.tools.call.canonical import checked
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
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
    """The verdict of ``judge``, and that of ``explain``."""
    workspace, made = Workspace(root), TOOLS[name]
    bound, found = checked(made, CallForm(name, args), workspace)
    call, context = new_call(bound), ToolContext(workspace)
    return rules.judge(made, call, found, context), rules.explain(made, call, found, context).verdict


def verdict(rules: RulesPolicy, path: str, root: Path) -> str:
    """The verdict on a move from here, which its explanation repeats."""
    judged, explained = both(rules, "move", {"path": path}, root)
    assert judged == explained
    return judged.kind


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
def test_every_verdict_is_that_of_its_explanation(
    town: Path, rules: list[str], calls: list[tuple[str, dict[str, Any]]]
) -> None:
    made = policy("\n".join(rules))
    for name, args in calls:
        try:
            judged, explained = both(made, name, args, town)
        except InvalidCallError:
            continue
        assert judged == explained, f"{name} {args}"


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
    names = ("secret", "keys", "file", "deep/in", "deep/in/twin")
    rules = policy("\n".join(f'(deny (move :path (under "{name}")))' for name in names))
    assert verdict(rules, "src/a", tmp_path) == "ask"
    change(tmp_path)
    path = "src/a" if (tmp_path / "src").exists() else "deep/in/a"
    assert verdict(rules, path, tmp_path) == "deny"


@pytest.mark.parametrize(
    "name",
    ["missing/no\0", "missing/" + "no/" * 2000, "./" * 3000 + "missing"],
    ids=["a NUL", "too long", "much of nothing"],
)
def test_a_place_that_cannot_be_looked_up_whole_is_undecided(tmp_path: Path, name: str) -> None:
    files(tmp_path, {"src/a": "1"})
    assert verdict(policy(f'(deny (move :path "{name}"))'), "src/a", tmp_path) == "deny"


def test_a_root_that_has_become_a_link_hides_no_other_name_of_a_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    files(root, {"secret/a": "1"})
    (root / "twin").hardlink_to(root / "secret/a")
    workspace, made = Workspace(root), TOOLS["move"]
    root.rename(tmp_path / "elsewhere")
    root.symlink_to("elsewhere")
    call, context = new_call(CallForm("move", {"path": "twin"})), ToolContext(workspace)
    rules = policy('(deny (move :path "secret/a"))')
    assert rules.judge(made, call, {"path": WorkspacePath("twin")}, context).kind == "deny"
