"""House rules that no formatter keeps: how .hy files look, and that every file says what it is for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import hy
import pytest
from hy.reader.exceptions import LexException
from words import hy_forms, sources

WIDTH = 110
ONE_TEXT = re.compile(r'\s*"[^"]*"\Z')  # a description that is one line for the model stays one line here
TESTS = Path(__file__).parent.parent


def faults(text: str, *, rules: bool = False) -> list[str]:
    """What is wrong with the looks of a Hy file, as ``line: what``. A file of policy ``rules`` can hold no
    docstring, so it opens with a comment."""
    found = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            found.append(f"{number}: a tab")
        if line != line.rstrip():
            found.append(f"{number}: trailing space")
        if len(line) > WIDTH and not ONE_TEXT.match(line):
            found.append(f"{number}: longer than {WIDTH}")
        ends_a_text = line.startswith("]]")  # #[[ … ]]
        if line.strip() and not line.strip(" )]}") and not ends_a_text:
            found.append(f"{number}: closers only")
    if text and not text.endswith("\n"):
        found.append(f"{len(lines)}: no line feed at the end")
    if text.endswith("\n\n"):
        found.append(f"{len(lines)}: blank lines at the end")
    try:
        forms = list(hy_forms(text))
    except LexException as error:
        return [*found, f"{error.lineno}: unreadable"]
    if not text.startswith(";;") if rules else not forms or not isinstance(forms[0], hy.models.String):
        found.append("1: no docstring")
    return found + _in_forms(forms)


def _in_forms(forms: list[Any]) -> list[str]:
    found = []
    pending = list(forms)
    while pending:
        node = pending.pop()
        if isinstance(node, hy.models.Symbol) and str(node).endswith("#"):
            found.append(f"{node.start_line}: {node} is no gensym")
        requires = isinstance(node, hy.models.Expression) and node and node[0] == hy.models.Symbol("require")
        if requires and hy.models.Symbol("*") in node:
            found.append(f"{node.start_line}: requires everything")
        if isinstance(node, hy.models.Sequence):
            pending.extend(node)
    return found


def hy_files() -> list[Path]:
    return [*sources(".hy"), *sorted(TESTS.rglob("*.hy"))]


def test_every_hy_file_keeps_the_house_rules() -> None:
    found = {
        str(path): faults(path.read_text(encoding="utf-8"), rules=path.stem.endswith("_rules"))
        for path in hy_files()
    }
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def test_there_are_hy_files_to_look_at() -> None:
    assert len(sources(".hy")) >= 7


def test_every_python_file_opens_with_what_it_is_for() -> None:
    silent = [
        str(path)
        for path in [*sources(".py"), *sorted(TESTS.rglob("*.py"))]
        if not path.read_text(encoding="utf-8").startswith(('"""', 'r"""'))
    ]
    assert silent == []


def missing_files(text: str, known: Iterable[str]) -> list[str]:
    """The files that comments and docstrings send to, as ``(file.py)`` or by a path of a room, and that are
    not there."""
    sent = re.findall(r"\((\w+\.(?:py|hy))\)|\b((?:agent|neuro|tools)/[\w/]+\.(?:py|hy))\b", text)
    return [
        path or name
        for name, path in sent
        if not any(f"/{one}".endswith(f"/{path or name}") for one in known)
    ]


def test_comments_send_to_files_that_are_there() -> None:
    files = [*sources(".py"), *sources(".hy")]
    known = [path.as_posix() for path in files]
    found = {path.name: missing_files(path.read_text(encoding="utf-8"), known) for path in files}
    assert {name: files for name, files in found.items() if files} == {}


def test_a_missing_file_is_found() -> None:
    text = "See (a.py), (b.py), tools/c.py and tools/x/c.py."
    assert missing_files(text, ["/q/tools/a.py", "/q/tools/c.py"]) == ["b.py", "tools/x/c.py"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('"Doc."\n(f\t1)\n', "2: a tab"),
        ('"Doc."\n(f 1) \n', "2: trailing space"),
        (f'"Doc."\n(f "{"x" * 110}")\n', "2: longer than 110"),
        (f'"Doc."\n"{"x" * 110}" "y"\n', "2: longer than 110"),
        ('"Doc."\n(f 1\n  )\n', "3: closers only"),
        ('"Doc."\n(f [1\n    ])\n', "3: closers only"),
        ('"Doc."\n(f 1)', "2: no line feed at the end"),
        ('"Doc."\n(f 1)\n\n', "4: blank lines at the end"),
        ('"Doc."\n(f 1\n', "2: unreadable"),
        ("(f 1)\n", "1: no docstring"),
        ("", "1: no docstring"),
        ('"Doc."\n(setv x# 1)\n', "2: x# is no gensym"),
        ('"Doc."\n(when a (require b *))\n', "2: requires everything"),
    ],
)
def test_the_check_of_the_house_rules_can_fail(text: str, fault: str) -> None:
    assert fault in faults(text)


def test_a_file_of_rules_opens_with_a_comment() -> None:
    assert faults("(allow (f))\n", rules=True) == ["1: no docstring"]
    assert faults(";; What is allowed.\n\n(allow (f))\n", rules=True) == []


def test_a_tidy_file_passes() -> None:
    assert faults('"Doc."\n\n(require quoth [def-cognitive-tool])\n\n(f [1 2] {"a" 1})\n') == []
