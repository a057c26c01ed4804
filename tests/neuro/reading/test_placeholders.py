"""The plist belt of seed 001 writes ``:tool <name>``, and a model may copy the brackets."""

from __future__ import annotations

import pytest

from quoth import read_reply

KNOWN = ["read-file", "<kept>"]


@pytest.mark.parametrize(
    "text",
    [
        '(:target :tool :action :call :tool <read-file> :args (:path "a"))',
        '(:TARGET :TOOL :ACTION :CALL :TOOL <Read_File> :ARGS (:path "a"))',
        '(:target :tool :action :call :tool "<read-file>" :args (:path "a"))',
        '(<read-file> :path "a")',
        '{"tool": "<read_file>", "args": {"path": "a"}}',
    ],
)
def test_a_tool_in_the_brackets_of_the_placeholder_is_read(text: str) -> None:
    reading = read_reply(text, KNOWN)
    assert ([str(call.form) for call in reading.calls], reading.errors) == (['(read-file :path "a")'], [])


def test_an_unknown_name_and_one_that_a_tool_has_stay_as_they_are() -> None:
    for name in ("<nope>", "<kept>"):
        (call,) = read_reply(f"(:target :tool :action :call :tool {name} :args (:x 1))", KNOWN).calls
        assert call.form.tool == name
