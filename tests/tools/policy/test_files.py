"""Policy files as they are found, read and trusted."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest
from sentences import (
    CANNOT_BE_READ,
    IS_EMPTY_WRITE_AT_LEAST,
    IS_NOT_A_REGULAR_FILE,
    TAKES_NOTHING,
    TAKES_ONE_VALUE,
)
from words import complaint, files

from quoth.tools.errors import UsageError
from quoth.tools.policy.files import (
    MAX_BYTES,
    Trust,
    digest_of,
    load_policy,
    own_policy,
    parse_layer,
    read_bytes,
    shipped_layer,
    trusted_bytes,
)
from quoth.tools.policy.language import read_orders
from quoth.tools.policy.project import below, has_rules, user_policy, workspace_policy


def test_a_file_of_rules_has_at_most_a_million_bytes(tmp_path: Path) -> None:
    home = files(tmp_path, {"a.hy": ";" * MAX_BYTES, "b.hy": ";" * (MAX_BYTES + 1), "sub/c": ""})
    assert len(read_bytes(home / "a.hy", "none")) == MAX_BYTES
    said = complaint(UsageError, lambda: read_bytes(home / "b.hy", "none"))
    assert said.endswith("b.hy is larger than 1000000 bytes.")
    assert complaint(UsageError, lambda: read_bytes(home / "d.hy", "There is none.")) == "There is none."
    assert complaint(UsageError, lambda: read_bytes(home / "a.hy/x", "There is none.")) == "There is none."
    assert complaint(UsageError, lambda: read_bytes(home / "sub", "none")).endswith(
        f"{IS_NOT_A_REGULAR_FILE}."
    )
    said = complaint(UsageError, lambda: read_bytes(home / ("x" * 300), "none"))
    assert said.endswith(f" {CANNOT_BE_READ}: File name too long.")
    assert f"{CANNOT_BE_READ}: embedded null byte" in complaint(
        UsageError, lambda: read_bytes(home / "a\0", "none")
    )
    assert complaint(UsageError, lambda: parse_layer("user", b"\xff", "p.hy")) == "p.hy is not UTF-8 text."


def test_trust_is_a_small_file_of_ones_own(tmp_path: Path) -> None:
    work = files(tmp_path / "work", {"a": ""})
    trust = Trust(tmp_path / "trust", ".kind")
    assert (trust.trusted(work), trust.each(work), trust.remembers(work), trust.forget(work)) == (
        None,
        {},
        False,
        False,
    )
    trust.trust(work, b"rules")
    assert trust.trusted(work) == digest_of(b"rules")
    (file,) = (tmp_path / "trust").iterdir()
    assert re.fullmatch(r"[0-9a-f]{32}\.kind\.json", file.name)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Trust(tmp_path / "trust").trusted(work) is None, "another kind"
    trust.trust_each(work, {"a": "1", "b": "2"})
    assert trust.each(work) == {"a": "1", "b": "2"}
    trust.trust_each(work, {})
    assert (trust.each(work), trust.remembers(work)) == ({}, False)
    trust.trust(work, b"rules")
    assert (trust.forget(work), trust.trusted(work)) == (True, None)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"sha256": 1}', "{"])
def test_a_damaged_record_of_trust_is_told(text: str, tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trust")
    trust.trust(tmp_path, b"rules")
    (file,) = (tmp_path / "trust").iterdir()
    file.write_text(text)
    assert f"{CANNOT_BE_READ}; remove it and run: quoth trust" in complaint(
        UsageError, lambda: trust.trusted(tmp_path)
    )


def test_rules_of_a_workspace_count_once_they_are_trusted_as_they_are(tmp_path: Path) -> None:
    own, trust = workspace_policy(tmp_path), Trust()
    assert (own_policy(tmp_path), has_rules(tmp_path)) == (None, False)
    assert trusted_bytes(tmp_path, own, trust, "so") == (None, [])
    own.parent.mkdir(exist_ok=True)
    own.write_bytes(b"(deny (echo))")
    data, notes = trusted_bytes(tmp_path, own, trust, "so")
    assert (data, len(notes), has_rules(tmp_path)) == (None, 1, True)
    assert load_policy(tmp_path).layers == ()
    trust.trust(tmp_path, own.read_bytes())
    assert trusted_bytes(tmp_path, own, trust, "so") == (b"(deny (echo))", [])
    assert [layer.kind for layer in load_policy(tmp_path).layers] == ["workspace"]
    found = own_policy(tmp_path)
    assert found is not None
    assert (found[0].kind, found[1]) == ("workspace", b"(deny (echo))")
    own.write_bytes(b"(deny (eval))")
    assert "has changed since" in complaint(UsageError, lambda: load_policy(tmp_path))
    own.unlink()
    assert "is gone" in complaint(UsageError, lambda: load_policy(tmp_path))


def test_a_person_s_own_rules_come_before_those_that_are_given(tmp_path: Path) -> None:
    mine = user_policy()
    files(mine.parent, {mine.name: "(ask (echo))"})
    files(tmp_path, {"given.hy": "(allow (echo))"})
    layers = load_policy(tmp_path, tmp_path / "given.hy").layers
    assert [layer.kind for layer in layers] == ["user", "given"]
    assert has_rules(tmp_path)
    assert has_rules(tmp_path / "none", "given.hy")


def test_a_rule_is_told_with_the_name_of_its_file_in_the_package() -> None:
    import quoth.tools.policy.files as policy_files

    file = Path(policy_files.__file__).parents[2] / "tools" / "policy" / "files.py"
    said = complaint(UsageError, lambda: shipped_layer(file))
    assert said.startswith("quoth/tools/policy/files.py:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(deny (confidence < 0))", ""),
        ("(deny (confidence < 1))", ""),
        ("(deny (confidence < 0.5))", ""),
        ("(deny (confidence < 2))", "Confidence must be a number from 0 to 1, not 2."),
        ("(deny (confidence < -1))", "Confidence must be a number from 0 to 1, not -1."),
        ("(cooldown echo 878400 :hours)", ""),
        ("(cooldown echo 878401 :hours)", "A cooldown can be at most 878,400 hours."),
        ("(cooldown echo 0 :hours)", "A cooldown must be a number above 0, not 0."),
        ("(cooldown echo 1)", "A cooldown needs its unit: :seconds, :minutes or :hours."),
        ("(quota echo 0 :per :day)", "A quota must be a whole number, 1 or more, not 0."),
        ("(quota echo 1.5 :per :day)", "A quota must be a whole number, 1 or more, not 1.5."),
        ("(quota echo 1 :per :day)", ""),
        ("(quota echo 1)", "A quota needs its window: :per :day, or :minute, :hour, :week."),
        ("(deny (echo :x (and)))", f"(and{IS_EMPTY_WRITE_AT_LEAST}."),
        ("(deny (echo :x (> 1 2)))", f"(> {TAKES_ONE_VALUE}."),
        ('(deny (echo :x {"a"}))', "This dictionary has a key without a value."),
        ('(deny (echo :x {"a" 1 "b" 2}))', ""),
        ("(deny (echo :x (in-task)))", ""),
        ("(deny (echo :x (in-task mail)))", f"(in-task{TAKES_NOTHING}."),
        ("(deny (echo :x (in-field)))", ""),
        ("(deny (echo :x (in-field mail contacts)))", ""),
    ],
)
def test_the_bounds_of_orders(text: str, said: str) -> None:
    if said:
        assert said in complaint(UsageError, lambda: read_orders(text, "p.hy"))
    else:
        read_orders(text, "p.hy")


def test_the_place_in_a_project_is_told_below_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, {"a/b/c": ""})
    for folder, inner in (("a/b", "a/b"), ("", "")):
        monkeypatch.chdir(tmp_path / folder)
        assert below(tmp_path) == inner
    monkeypatch.chdir(tmp_path.parent)
    assert below(tmp_path) == ""
    assert os.getcwd()
