"""What the files for contributors name exists, and what they demand of a version holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import quoth

ROOT = Path(__file__).parent.parent
PAGES = ("CONTRIBUTING.org", "SECURITY.org")


@pytest.mark.parametrize("page", PAGES)
def test_paths_that_a_page_names_exist(page: str) -> None:
    named = re.findall(
        r"=((?:agent|neuro|tools|plans|tests|\.ci)/[\w./-]*|[A-Z]+\.org)=", (ROOT / page).read_text()
    )
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_makefile_has_the_targets_that_are_named() -> None:
    targets = set(re.findall(r"(?m)^(\w+):", (ROOT / "Makefile").read_text()))
    named = set(re.findall(r"(?m)^make (\w+)", (ROOT / "CONTRIBUTING.org").read_text()))
    assert named
    assert named <= targets


def test_the_workflow_runs_the_one_check_and_tests_that_exist() -> None:
    flow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    steps = {name: [step.get("run", "") for step in job["steps"]] for name, job in flow["jobs"].items()}
    assert ".ci/run" in steps["linux"]
    tested = re.findall(r"tests/\S+", " ".join(steps["macos"]))
    assert tested
    assert [path for path in tested if not (ROOT / path).is_dir()] == []


def test_the_hooks_are_the_linters_of_the_project() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"].split()[0] for hook in hooks] == ["ruff", "ruff", "mypy", "typos"]


def versions() -> dict[str, str]:
    """The text of each version of the changelog."""
    parts = re.split(r"(?m)^\* (\S+).*\n", (ROOT / "CHANGELOG.org").read_text())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_changelog_has_the_version_and_breaking_changes_first() -> None:
    found = versions()
    assert {"Unreleased", quoth.__version__} <= set(found)
    assert {name: len(text.encode()) for name, text in found.items() if len(text.encode()) > 10_000} == {}
    for text in found.values():
        heads = re.findall(r"(?m)^\*\* (.+)", text)
        assert [head for head in heads[1:] if head.startswith("Breaking")] == []
