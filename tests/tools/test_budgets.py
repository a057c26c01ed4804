"""The brake: how many lines of code a room may have, how many fields a record, how many parameters a
function. A commit that raises a number says what for."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from words import python_nodes, rooms, sources

# Lines without blanks, comments and docstrings, a little above what there is.
LINES = {
    "agent": 1450,
    "agent/acp": 1167,
    "agent/chat": 699,
    "agent/cli": 6982,
    "agent/config": 461,
    "agent/evaluation": 704,
    "agent/flight": 2186,
    "agent/guard": 996,
    "agent/manual": 450,
    "agent/plan": 1767,
    "agent/repl": 1901,
    "agent/replay": 442,
    "agent/run": 6647,
    "agent/serve": 2759,
    "agent/session": 2865,
    "agent/terminal": 1971,
    "agent/trace": 354,
    "agent/view": 1468,
    "agent/worker": 447,
    "neuro": 105,
    "neuro/backends": 4137,
    "neuro/embed": 229,
    "neuro/prompt": 1023,
    "neuro/reading": 2820,
    "tools": 1043,
    "tools/builtin": 1809,
    "tools/call": 2955,
    "tools/catalog": 774,
    "tools/consent": 1288,
    "tools/door": 1782,
    "tools/dryrun": 1392,
    "tools/history": 1874,
    "tools/knowledge": 1056,
    "tools/lisp": 1272,
    "tools/mcp": 2581,
    "tools/memory": 3181,
    "tools/org": 808,
    "tools/origin": 775,
    "tools/policy": 3144,
    "tools/program": 1783,
    "tools/registry": 3987,
    "tools/remote": 2003,
    "tools/sandbox": 1169,
    "tools/shared": 452,
    "tools/shell": 3387,
    "tools/storage": 1737,
    "tools/web": 301,
}
FIELDS = 20  # of a record that flows through the product
WIDE = {  # records with more, each for a reason
    "Call": 24,  # the record of a call
    "CallState": 27,  # what the stages of the door find out of one call
    "CognitiveTool": 33,  # the options of def-cognitive-tool
    "CommandSettings": 51,  # a row for each option of the command line
    "Request": 22,  # what a person decides on
    "RequestRow": 32,  # the columns of a request in the store
    "RunSpec": 21,  # the stimulus of a run
    "RunState": 21,  # its counts
    "ToolContext": 41,  # its names are public: what a tool's body may use
}
PARAMETERS = 8  # of a function, without self
MANY = {  # functions with more: constructors that a person or one factory fills
    "agent/flight/approval.record": 9,
    "agent/run/driver.go": 10,
    "agent/run/host.open_host": 17,
    "neuro/backends/http.__init__": 13,
    "neuro/backends/openai.__init__": 12,
    "neuro/prompt/grammar.grammar": 9,
    "tools/consent/broker.__init__": 10,
    "tools/registry/define.define_tool": 10,
    "tools/shell/running.start": 9,
}
COPIED = {  # each fills a new object, which nobody has yet
    "agent/settings": ["vars(self).update"],  # the options of a command line, as argparse fills them
    "tools/hy_loader": ["vars(asked).update"],  # a module in the place of inspect
}


def code_lines(text: str, suffix: str) -> int:
    """How many lines are code: neither blank, nor a comment, nor of a docstring."""
    lines = text.splitlines()
    mark = "#" if suffix == ".py" else ";"
    code = {at for at, line in enumerate(lines) if line.strip() and not line.strip().startswith(mark)}
    if suffix == ".py":
        for node in docstrings(text):
            code -= set(range(node.lineno - 1, node.end_lineno or node.lineno))
    return len(code)


def docstrings(text: str) -> Iterator[ast.Expr]:
    for node in python_nodes(text):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield first


def room_of(path: Path) -> str:
    """``tools/policy`` for a file in it, ``agent`` for a file above the rooms."""
    (top,) = (room for room in rooms() if path.is_relative_to(room))
    inside = path.relative_to(top).parts
    return f"{top.name}/{inside[0]}" if len(inside) > 1 else top.name


@cache
def lines_by_room() -> dict[str, int]:
    counted: Counter[str] = Counter()
    for suffix in (".py", ".hy"):
        for path in sources(suffix):
            if path.parent.name == "public":  # it is quoth itself where quoth is installed
                continue
            counted[room_of(path)] += code_lines(path.read_text(encoding="utf-8"), suffix)
    return dict(counted)


def wide_records(text: str) -> dict[str, int]:
    """The classes of Python code with more fields than FIELDS."""
    counted = {
        node.name: sum(isinstance(part, ast.AnnAssign) for part in node.body)
        for node in python_nodes(text)
        if isinstance(node, ast.ClassDef)
    }
    return {name: n for name, n in counted.items() if n > FIELDS}


def many_parameters(text: str, place: str) -> dict[str, int]:
    """The functions of Python code with more parameters than PARAMETERS, by ``place`` and name."""
    found = {}
    for node in python_nodes(text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            number = len([name for name in given if name not in ("self", "cls")])
            if number > PARAMETERS:
                found[f"{place}.{node.name}"] = number
    return found


def live_copies(text: str) -> list[str]:
    """Where code copies a live object, or fills one from another's attributes."""
    found = (
        ast.unparse(node.func)
        for node in python_nodes(text)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    return [one for one in found if re.fullmatch(r"copy\.copy|vars\(.*\)\.update", one)]


def test_no_live_object_is_copied() -> None:
    found = {
        f"{room_of(path)}/{path.stem}": said
        for path in sources(".py")
        if (said := live_copies(path.read_text(encoding="utf-8")))
    }
    assert found == COPIED


def test_a_copied_object_is_found() -> None:
    code = "other = copy.copy(self)\nvars(other).update(vars(this))\nvars(this).items()\nmemo.update(a)"
    assert live_copies(code) == ["copy.copy", "vars(other).update"]


def test_one_function_finds_the_nearest_name() -> None:
    asking = [path.name for path in sources(".py") if "get_close_matches" in path.read_text(encoding="utf-8")]
    assert asking == ["errors.py"]


def classes_of(text: str) -> list[str]:
    """The names of the classes at the top of a file."""
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]


def repeated(files: Iterable[str]) -> set[str]:
    """The class names that more than one of the files has."""
    counted = Counter(name for text in files for name in set(classes_of(text)))
    return {name for name, files in counted.items() if files > 1}


def test_a_class_name_is_unique() -> None:
    assert repeated(path.read_text(encoding="utf-8") for path in sources(".py")) == set()


def test_a_repeated_class_name_is_found() -> None:
    assert repeated(["class A: ...\nclass B: ...", "def a():\n    class B: ...", "class A: ..."]) == {"A"}


def test_no_room_has_more_lines_than_its_budget() -> None:
    counted = lines_by_room()
    assert {room: lines for room, lines in counted.items() if lines > LINES.get(room, 0)} == {}
    assert set(LINES) == set(counted)


def test_no_record_has_more_fields_than_can_be_known_by_heart() -> None:
    """An exception that is no longer needed fails too."""
    found: dict[str, int] = {}
    for path in sources(".py"):
        found |= wide_records(path.read_text(encoding="utf-8"))
    assert found == WIDE


def test_no_function_has_more_parameters_than_can_be_read() -> None:
    found: dict[str, int] = {}
    for path in sources(".py"):
        found |= many_parameters(path.read_text(encoding="utf-8"), f"{room_of(path)}/{path.stem}")
    assert found == MANY


@pytest.mark.parametrize(
    ("text", "suffix", "lines"),
    [
        ('"""Doc."""\n\nx = 1  # one\n# two\n', ".py", 1),
        ('def f():\n    """Doc.\n\n    More.\n    """\n    return """a\n\nb"""\n', ".py", 3),
        ("class C:\n    'Doc.'\n    x: int\n", ".py", 2),
        (";; what\n(f\n  1)\n\n", ".hy", 2),
    ],
)
def test_lines_of_code_are_counted(text: str, suffix: str, lines: int) -> None:
    assert code_lines(text, suffix) == lines


def test_what_is_too_wide_is_found() -> None:
    fields = "".join(f"    f{at}: int\n" for at in range(FIELDS))
    assert wide_records(f"class C:\n{fields}") == {}
    assert wide_records(f"class C:\n{fields}    one_more: int\n") == {"C": FIELDS + 1}
    names = ", ".join(f"p{at}" for at in range(PARAMETERS))
    assert many_parameters(f"def f(self, {names}): ...", "a/b") == {}
    assert many_parameters(f"async def f({names}, *, q): ...", "a/b") == {"a/b.f": PARAMETERS + 1}
