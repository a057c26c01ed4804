"""Law: an allow covers no file that other programs obey, unless it names the part that makes them obey it."""

from __future__ import annotations

from pathlib import Path

import pytest
from words import agent, files

WIDE = (
    "(allow (write-file))",
    '(allow (write-file :path (under ".")))',
    '(allow (write-file :path (under "src")))',
    '(allow (write-file :path (not (under ".github"))))',
    '(allow (write-file :path (matches "")))',
    '(allow (write-file :path (matches "(^|/)[.]")))',
    '(allow (any-tool :path (under "src")))',
    "(allow _)",
    "(allow (effects :reads :writes))",
    "(careful)",
)


def status(shop: Path, rules: str, path: str, content: str = "x") -> str:
    """How a write ends where nobody can be asked."""
    (file := shop.parent / "rules.hy").write_text(rules)
    with agent(shop, policy=str(file)) as made:
        return made.call(f'(write-file :path "{path}" :content "{content}")').status


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    files(tmp_path / "shop", {"src/a.py": "", "elsewhere/.vscode/x": ""})
    return tmp_path / "shop"


@pytest.mark.parametrize("rules", WIDE)
def test_a_rule_that_does_not_name_it_does_not_allow_it(shop: Path, rules: str) -> None:
    for path in ("src/.vscode/tasks.json", "src/x.code-workspace", "src/./.envrc", "src/../src/.npmrc"):
        assert status(shop, rules, path) == "pending"
    (shop / "src/link").symlink_to("../elsewhere/.vscode")
    if "src" not in rules:
        assert status(shop, rules, "src/link/tasks.json") == "pending"
    if "[.]" not in rules:
        assert [status(shop, rules, path) for path in ("src/b.py", "src/.gitignore")] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        ('(allow (write-file :path ".github/workflows/x.yml"))', ".github/workflows/x.yml"),
        ('(allow (write-file :path (under ".github")))', ".github/workflows/x.yml"),
        ('(allow (write-file :path (under "./src/../.github/")))', ".github/workflows/x.yml"),
        ('(allow (write-file :path "{here}/.envrc"))', ".envrc"),
        ('(allow (write-file :path (under "{here}/.github")))', ".github/x"),
        ('(allow (write-file :path (one-of ".env" ".npmrc")))', ".npmrc"),
        ('(allow (write-file :path (matches "^[.]github/")))', ".github/x"),
        ('(allow (any-tool :path (under "src/.vscode")))', "src/.vscode/tasks.json"),
        ('(allow (write-file :path (matches "[.]code-workspace$")))', "a.code-workspace"),
        ('(allow (write-file :path "mise.toml"))', "./mise.toml"),
    ],
)
def test_a_rule_that_names_it_does(shop: Path, rules: str, path: str) -> None:
    assert status(shop, rules.replace("{here}", str(shop)), path) == "ok"


@pytest.mark.parametrize(
    ("pattern", "path", "ordinary"),
    [
        ("[.](json|js|md)$", ".mcp.json", "mcp.json"),
        ("[.](json|js|md)$", "src/.eslintrc.js", "src/eslintrc.js"),
        ("[.]toml$", "mise.toml", "a.toml"),
        (r"^[.]?\\w+/", ".vscode/tasks.json", "vscode/tasks.json"),
    ],
)
def test_a_rule_that_names_an_ending_does_not(shop: Path, pattern: str, path: str, ordinary: str) -> None:
    rules = f'(allow (write-file :path (matches "{pattern}")))'
    assert [status(shop, rules, one) for one in (path, ordinary)] == ["pending", "ok"]


@pytest.mark.parametrize("rule", ['"src/link.txt"', '(under "src/link.txt")', '(matches "link")'])
def test_a_rule_that_names_a_link_to_it_does_not(shop: Path, rule: str) -> None:
    (shop / "src/link.txt").symlink_to("../.envrc")
    assert status(shop, f"(allow (write-file :path {rule}))", "src/link.txt") == "pending"
    (shop / "src/link.txt").unlink()
    assert status(shop, f"(allow (write-file :path {rule}))", "src/link.txt") == "ok"


def test_each_part_must_be_named(shop: Path) -> None:
    assert (
        status(shop, '(allow (write-file :path (under ".github")))', ".github/.vscode/tasks.json")
        == "pending"
    )


@pytest.mark.parametrize(
    "rules", ["(careful)", "(allow (write-file))", '(allow (write-file :path (under "docs")))']
)
def test_a_repository_is_not_made_of_a_plain_folder_unasked(shop: Path, rules: str) -> None:
    parts = ("docs/config", "docs/HEAD", "docs/objects/x", "docs/refs/x")
    assert [status(shop, rules, path) for path in parts] == ["ok", "ok", "ok", "pending"]
    files(shop, {"docs/refs/x": ""})
    assert status(shop, rules, "docs/config", "fsmonitor") == "pending"


def test_nor_one_whose_data_are_in_another_folder(shop: Path) -> None:
    assert status(shop, "(careful)", "docs/HEAD") == "ok"
    assert status(shop, "(careful)", "docs/commondir", "../src") == "pending"


def test_the_question_says_why(shop: Path) -> None:
    (rules := shop.parent / "rules.hy").write_text("(careful)")
    with agent(shop, policy=str(rules)) as made:
        said = made.call('(write-file :path ".envrc" :content "")').message
    assert "and other programs obey .envrc" in said
