"""Scopes: the rule that is offered for a call, the rule a person may grant, and what either covers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import complaint, files, form, tool

from quoth.tools.call.call import Call
from quoth.tools.call.canonical import arguments, bound_form, touched
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import InvalidCallError, ToolError, UsageError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.scope import covers, read_scope, suggested
from quoth.tools.registry.table import CognitiveTool

ANY = tool(
    "act",
    params={
        "path": {"default": ""},
        "log-file": {"default": ""},
        "argv": {"type": list, "default": None},
        "text": {"default": ""},
        "n": {"type": float | int | bool | None, "default": None},
        "data": {"type": dict, "default": None},
        "program": {"type": str, "default": ""},
        "pin": {"default": "", "secret": True},
    },
    effects=["writes", "runs"],
)


def bound(text: str | CallForm, of: CognitiveTool = ANY) -> CallForm:
    return bound_form(of, form(text) if isinstance(text, str) else text, Workspace("."))


def covered(rule: str, call: CallForm, workspace: Path, of: CognitiveTool = ANY) -> bool:
    return covers(read_scope(rule, of), of, Call("c", call), Workspace(workspace))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ('(act :path "src/a.txt")', '(allow (act :path (under "src") :only))'),
        ('(act :path "src/a/b.txt" :text "x")', '(allow (act :path (under "src/a") :text _ :only))'),
        ('(act :path "a.txt")', '(allow (act :path "a.txt" :only))'),
        ('(act :path "./a.txt")', '(allow (act :path "./a.txt" :only))'),
        ('(act :path "/etc/passwd")', '(allow (act :path "/etc/passwd" :only))'),
        ('(act :path "/vmlinuz")', '(allow (act :path "/vmlinuz" :only))'),
        ('(act :path "/")', '(allow (act :path "/" :only))'),
        ('(act :path ".")', '(allow (act :path "." :only))'),
        ('(act :path "..")', '(allow (act :path ".." :only))'),
        ('(act :path "src/..")', '(allow (act :path "src/.." :only))'),
        ('(act :path "../a.txt")', '(allow (act :path "../a.txt" :only))'),
        ('(act :path "../../a.txt")', '(allow (act :path "../../a.txt" :only))'),
        ('(act :path "~/a.txt")', '(allow (act :path "~/a.txt" :only))'),
        ('(act :path "./~/a.txt")', '(allow (act :path "./~/a.txt" :only))'),
        ('(act :path "~/x/a.txt")', '(allow (act :path "~/x/a.txt" :only))'),
        (
            '(act :path "a/b" :log-file "c/d")',
            '(allow (act :log-file (under "c") :path (under "a") :only))',
        ),
        ('(act :path "")', '(allow (act :path "" :only))'),
        ('(act :argv ["ls"])', '(allow (act :argv ["ls"] :only))'),
        ('(act :argv ["git" "push"])', '(allow (act :argv ["git" "push"] :only))'),
        ('(act :argv ["git" "push" "origin"])', '(allow (act :argv ["git" "push" ...] :only))'),
        (
            '(act :argv ["cp" "a" "b"] :path "src/x")',
            '(allow (act :argv ["cp" "a" ...] :path (under "src") :only))',
        ),
        ("(act :argv [])", "(allow (act :argv [] :only))"),
        ('(act :argv [1 "a" None])', '(allow (act :argv [1 "a" None] :only))'),
        ('(act :text "say \\"x\\"\\n")', '(allow (act :text "say \\"x\\"\\n" :only))'),
        ("(act :n 3)", "(allow (act :n 3 :only))"),
        ("(act :n 2.5)", "(allow (act :n 2.5 :only))"),
        ('(act :argv ["sh" "-c" "ls"])', '(allow (act :argv ["sh" "-c" "ls"] :only))'),
        ('(act :argv ["/bin/bash" "a" "b"])', '(allow (act :argv ["/bin/bash" "a" "b"] :only))'),
        ('(act :argv ["git" "-c" "a=b" "log"])', '(allow (act :argv ["git" "-c" "a=b" "log"] :only))'),
        ('(act :argv ["uv" "run" "x" "y"])', '(allow (act :argv ["uv" "run" "x" "y"] :only))'),
        (
            '(act :argv ["python" "-m" "pytest" "-q"])',
            '(allow (act :argv ["python" "-m" "pytest" ...] :only))',
        ),
        ("(act :n True)", "(allow (act :n True :only))"),
        ("(act :n None)", "(allow (act :n None :only))"),
        ('(act :data {"a" [1 {"b" "c"}]})', '(allow (act :data {"a" [1 {"b" "c"}]} :only))'),
        ("(act)", "(allow (act :only))"),
        ('(act :pin "1234")', "(allow (act :pin _ :only))"),
        ('(act :pin "1234" :text "x")', '(allow (act :pin _ :text "x" :only))'),
        ('(act :pin "1234" :path "a/b")', '(allow (act :path (under "a") :pin _ :only))'),
    ],
)
def test_the_rule_that_is_offered_is_narrow_covers_its_call_and_holds_no_secret(
    tmp_path: Path, call: str, rule: str
) -> None:
    asked = bound(call)
    assert suggested(ANY, asked) == rule
    assert read_scope(rule, ANY).text == rule
    assert covered(rule, asked, tmp_path)


def test_the_rule_that_is_offered_leaves_no_destination_open() -> None:
    params: dict[str, dict[str, Any]] = {"to": {}, "path": {}, "note": {"default": ""}}
    sends = tool("send-file", params=params, effects=["net"])
    asked = bound('(send-file :to "ann@home.example" :path "src/a" :note "x")', sends)
    assert suggested(sends, asked) == (
        '(allow (send-file :note _ :path (under "src") :to "ann@home.example" :only))'
    )


def test_the_rule_for_a_program_is_its_text(tmp_path: Path) -> None:
    from quoth.tools.lisp.printer import Code

    made = tool("run-it", params={"form": {"type": Code}})
    asked = bound("(run-it (+ 1 (* 2 3)))", made)
    rule = suggested(made, asked)
    assert rule == '(allow (run-it :form "(+ 1 (* 2 3))" :only))'
    assert covered(rule, asked, tmp_path, made)
    assert not covered(rule, bound("(run-it (+ 1 2))", made), tmp_path, made)


names = st.sampled_from(["a", "b.txt", "src", ".", "..", "~", "x y", 'q"q', "ä", "...", "-f"])
paths = st.builds(
    lambda start, parts: start + "/".join(parts), st.sampled_from(["", "/", "./"]), st.lists(names)
)
data = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**6) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "path": paths,
            "log-file": paths,
            "argv": st.lists(st.text(max_size=4) | data, max_size=4),
            "text": st.text(max_size=8),
            "n": st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
            "data": st.dictionaries(st.text(max_size=3), data, max_size=3),
            "pin": st.just("hunter2"),
        },
    )
)
def test_whatever_is_called_the_rule_that_is_offered_covers_it(args: dict[str, Any]) -> None:
    try:
        asked = bound(CallForm("act", args))
    except InvalidCallError:  # what is no text never comes to a question
        return
    rule = suggested(ANY, asked)
    assert covered(rule, asked, Path(__file__).parent), rule
    assert "hunter2" not in rule


def test_a_path_that_leads_through_a_link_is_covered_where_it_really_is(tmp_path: Path) -> None:
    files(tmp_path, {"src/a": "", "doc/b": ""})
    (tmp_path / "src/link").symlink_to(tmp_path / "doc")
    call = bound('(act :path "src/link/b")')
    assert not covered('(act :path (under "src"))', call, tmp_path)
    assert covered('(act :path (under "doc"))', call, tmp_path)


def test_what_cannot_be_decided_is_not_covered(tmp_path: Path) -> None:
    assert not covered('(act :path (matches "a"))', CallForm("act", {"nonsense": 1}), tmp_path)
    assert not covered('(act :text "x")', bound("(act)"), tmp_path)
    assert not covered("(act :data (len > 1))", bound("(act :n 1)"), tmp_path)


@pytest.mark.parametrize("name", ["allow-list", "ask", "deny", "quota", "asks"])
@pytest.mark.parametrize("written", ["(allow ({} :x 1))", "({} :x 1)", "  ( {} :x 1)", "(allow\n({} :x 1))"])
def test_the_word_allow_may_be_left_out_whatever_the_tool_is_called(name: str, written: str) -> None:
    made = tool(name, params={"x": {"type": int}})
    assert read_scope(written.format(name), made).text == f"(allow ({name} :x 1))"


def test_circumstances_may_narrow_a_scope(tmp_path: Path) -> None:
    rule = read_scope('(allow (act) (route "reply") (user "ann"))', ANY)
    call = Call("c", CallForm("act"), "reply", "ann")
    place = Workspace(tmp_path)
    assert covers(rule, ANY, call, place)
    assert not covers(rule, ANY, replace(call, route="call"), place)
    assert not covers(rule, ANY, replace(call, user="eve"), place)


@pytest.mark.parametrize("text", ["", "(allow)", "act", "(allow (act :pin 1))", "(allow act)"])
def test_what_is_no_scope_is_told(text: str) -> None:
    assert complaint(UsageError, lambda: read_scope(text, ANY))


# What a call touches


def test_what_is_touched_is_told_where_it_really_is(tmp_path: Path) -> None:
    place = tmp_path / "shop"
    files(tmp_path, {"shop/src/a": "", "out/b": ""})
    (place / "link").symlink_to(tmp_path / "out")
    args = {
        "path": "src/../src/a",
        "log-file": "link/b",
        "target-folder": ".",
        "cwd": "new/x",
        "source": "",
        "file": "a\0b",
        "text": "src/a",
        "profile": "src/a",
        "dir": 3,
    }
    assert touched(ANY, args, Workspace(place)) == ["src/a", str(tmp_path / "out/b"), ".", "new/x"]


def test_the_arguments_are_as_the_body_sees_them() -> None:
    made = tool("t", params={"path": {"default": "."}, "n": {"type": int}})
    here = Workspace(".")
    assert arguments(made, form("(t :n 1)"), here) == {"path": ".", "n": 1}
    assert bound_form(made, form('(t "a" 2)'), here) == form('(t :path "a" :n 2)')
    with pytest.raises(InvalidCallError):
        arguments(made, form("(t)"), here)
    with pytest.raises(ToolError):
        Workspace(".").locate("\0")
