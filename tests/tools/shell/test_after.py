"""Which program runs after a file was written, with which words, and what of its output is new."""

from __future__ import annotations

import pytest

from quoth.tools.shell.after import AfterWrite, beside, new_lines
from quoth.tools.shell.plain_git import is_data, not_data

ID = "0123456789" * 4


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("a.py", "src/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**", "src/deep/a.py", True),
    ],
)
def test_a_pattern_fits_the_name_or_with_a_slash_the_path(pattern: str, path: str, fits: bool) -> None:
    assert AfterWrite(pattern, ("fmt", None)).fits(path) == fits


def test_no_name_of_a_file_is_an_option() -> None:
    program = AfterWrite("*", ("fmt", "-q", None, "--", None))
    assert program.words("a b") == ["fmt", "-q", "a b", "--", "a b"]
    assert program.words("-rf") == ["fmt", "-q", "./-rf", "--", "./-rf"]
    assert program.shown("a b") == "fmt -q 'a b' -- 'a b'"


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        ("", "a.py:1: bad", ["a.py:1: bad"]),
        ("old.py:1: bad", "a.py:7: bad", []),  # other lines, and the name it had then
        ("old.py:1: bad", "a.py:1: bad\na.py:2: bad", ["a.py:2: bad"]),
        ("old.py:1: bad\nold.py:2: bad", "a.py:1: bad", []),
        ("old.py:1: bad", "a.py:1: worse", ["a.py:1: worse"]),
        ("old.py:1: E501", "a.py:1: E502", ["a.py:1: E502"]),  # the number of a word is a part of it
        ("", "  \n\na.py: x  ", ["a.py: x"]),
        ("found 1 error", "found 2 errors", ["found 2 errors"]),
        ("found 2 errors", "found 3 errors", []),
    ],
)
def test_of_an_output_only_new_lines_are_told(before: str, now: str, new: list[str]) -> None:
    assert new_lines(now, before, "a.py", "old.py") == new


def test_a_text_is_put_beside_for_a_moment() -> None:
    assert beside("src/a.py", "x") == "src/quoth-before-x/a.py"
    assert beside("a.py", "x") == "quoth-before-x/a.py"


# Files that git only reads


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("refs/heads/main", True),
        ("logs/refs/heads/main", True),
        ("refs/heads/a.lock", False),
        ("refs/heads/.a", False),
        ("refs/heads/a..b", False),
        ("hooks/pre-commit", False),
        ("config", False),
    ],
)
def test_references_are_data(name: str, is_one: bool) -> None:
    assert is_data(name) == is_one


@pytest.mark.parametrize(
    ("name", "content", "wrong"),
    [
        ("HEAD", f"{ID}\n", ""),
        ("HEAD", "ref: refs/heads/main\n", ""),
        ("HEAD", "ref: ../x\n", "is not a reference"),
        ("HEAD", "", "is not a reference"),
        ("refs/heads/main", ID, ""),
        ("refs/heads/main", "what", "is not a reference"),
        ("ORIG_HEAD", "what", ""),  # git reads it, and writes nowhere
        ("ORIG_HEAD", "ref: ../x", "is not a reference"),
        ("AUTO_MERGE", "ref: ../x", "is not a reference"),
        ("COMMIT_EDITMSG", "ref: ../x", ""),
        ("packed-refs", "", ""),
        ("packed-refs", f"# pack-refs\n{ID} refs/heads/main\n^{ID}\n", ""),
        ("packed-refs", f"{ID} ../x\n", "is not a list of references"),
        ("packed-refs", f"{ID} refs/heads/main\n\n", "is not a list of references"),
        ("shallow", f"{ID}\n", ""),
        ("shallow", "what", "is not a list of references"),
    ],
)
def test_a_file_of_references_leads_nowhere_else(name: str, content: str, wrong: str) -> None:
    assert not_data(name, content.encode()) == wrong
