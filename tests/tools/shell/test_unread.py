"""What the rules keep from being read, no program sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from powerless import powerless
from words import files, quoth, scripted

from quoth import Agent
from quoth.tools.shell.guarded import unread

RULES = r"""
(allow (shell :argv ["sh" "-c" _]))
(allow (shell :argv ["sh" "-c" _] :background True))
(deny (any-tool :path (matches "\\.env$")))
(ask (read-file :path (under "drawer")))
"""
TREE = {".env": "KEY=1", "sub/.env": "KEY=2", "drawer/a": "till", "drawer/in/b": "till", "open.txt": "open"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return files(tmp_path, {**TREE, "rules.hy": RULES})


def test_only_what_the_rules_forbid_is_hidden_and_a_whole_folder_at_once(tmp_path: Path) -> None:
    files(tmp_path, TREE)
    (tmp_path / "link").symlink_to(".env")

    def may_read(path: str) -> bool:
        return not path.endswith(".env") and not path.startswith("drawer/")

    found = sorted(place.relative_to(tmp_path).as_posix() for place in unread(tmp_path, may_read))
    assert found == [".env", "drawer", "sub"]
    assert unread(tmp_path, lambda path: True) == []
    assert {place.name for place in unread(tmp_path, lambda path: False)} == {
        ".env", "sub", "drawer", "open.txt", "link",
    }  # fmt: skip


@pytest.mark.parametrize(
    "path", [".env", "sub/.env", "drawer/a", "drawer/in/b", "sub/../.env", "/proc/self/cwd/.env"]
)
def test_no_program_reads_it(path: str, shop: Path) -> None:
    said = quoth(
        "call", f'(shell :argv ["sh" "-c" "cat {path}; cat open.txt"])', "--policy", "rules.hy", cwd=shop
    )
    assert said.code == 0, said.err
    assert "KEY" not in said.out
    assert "till" not in said.out
    assert "open" in said.out


@pytest.mark.parametrize("mode", [0, 0o200])
def test_a_file_that_only_its_owner_could_open_again_is_hidden_too(mode: int) -> None:
    with powerless() as nobody:
        files(nobody.workspace, {".env": "KEY=1"})
        (nobody.workspace / ".env").chmod(mode)
        (nobody.home / "rules.hy").write_text(RULES)
        script = '(shell :argv ["sh" "-c" "chmod 600 .env; cat .env; echo ended"])'
        said = nobody.quoth("call", script, "--policy", str(nobody.home / "rules.hy"))
    assert "ended" in said.out, said.err
    assert "KEY" not in said.out


def test_the_failure_names_the_files_that_it_did_not_see_and_the_rule(shop: Path) -> None:
    said = quoth("call", '(shell :argv ["sh" "-c" "cat .env"])', "--policy", "rules.hy", cwd=shop)
    assert said.err == (
        r'quoth: Programs cannot see .env, sub: rules.hy:4 says (deny (any-tool :path (matches "\\.env$"))).'
        '\nPrograms cannot see drawer: rules.hy:5 says (ask (read-file :path (under "drawer"))).\n'
    )


def test_policy_check_says_whose_programs_see_it(shop: Path) -> None:
    files(shop, {"t.hy": """(require quoth [def-shell-tool])
(def-shell-tool show "Show the keys." :argv ["cat" ".env"])"""})  # fmt: skip
    said = quoth("policy", "check", "rules.hy", "--tools", "t.hy", cwd=shop)
    assert (
        "quoth: Programs that show runs are not confined: they see the files that rules.hy:4 forbids reading."
        in said.err
    )
    (shop / "rules.hy").write_text("(allow (read-file :path _)) (deny (show))")
    assert "not confined" not in quoth("policy", "check", "rules.hy", "--tools", "t.hy", cwd=shop).err


def test_a_program_in_the_background_does_not_see_it(shop: Path) -> None:
    with Agent(workspace=shop, policy=shop / "rules.hy", user="ann", model=scripted()) as agent:
        begun = agent.call('(shell :argv ["sh" "-c" "cat .env drawer/a open.txt"] :background True)')
        said = agent.call(f'(process :id "{begun.value["id"]}" :operation "wait" :timeout 20)')
    assert "open" in str(said.value)
    assert "KEY" not in str(said.value)
    assert "till" not in str(said.value)
