"""A call that gives a tool's name where something else belongs."""

from __future__ import annotations

from pathlib import Path

import pytest
from words import shipped


@pytest.mark.parametrize(
    ("form", "hint"),
    [
        ('(read-file :path "list-files")', "list-files is a tool: (list-files)"),
        ('(list-files :path "read_file")', "read-file is a tool: (read-file :path …)"),
        ('(shell :argv ["write-file" "a.txt"])', "write-file is a tool: (write-file :path … :content …)"),
    ],
)
def test_the_error_says_that_it_is_a_tool_and_how_to_call_it(tmp_path: Path, form: str, hint: str) -> None:
    result = shipped(tmp_path).pass_through(form)
    assert result.status in ("error", "invalid")
    assert result.message.endswith(hint)
    assert "Did you mean" not in result.message


@pytest.mark.parametrize(
    "form", ['(read-file :path "nothing")', '(grep-search :pattern "shell" :path "none")']
)
def test_an_error_about_something_else_names_no_tool(tmp_path: Path, form: str) -> None:
    assert " is a tool" not in shipped(tmp_path).pass_through(form).message


def test_a_file_with_the_name_of_a_tool_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "shell").write_text("one")
    assert shipped(tmp_path).pass_through('(read-file :path "shell")').value == "one"
