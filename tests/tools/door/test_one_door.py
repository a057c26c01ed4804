"""Law: the body and the guard of a tool are unreachable except through tools/door/door.py."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import hy
import pytest
from words import Spy, complaint, gateway, hy_forms, python_nodes, rooms, sources, tool

PRIVATE = {"_body", "_guard"}
TOOLS = rooms()[0]
# The door runs them; the tool only holds them and says whether there is a guard.
ALLOWED = {TOOLS / "door/stages.py", TOOLS / "registry/tool.py"}


def in_python(text: str) -> list[int]:
    """Lines of Python that reach for a body or guard, by attribute or by its name as a text."""
    found = []
    for node in python_nodes(text):
        if (isinstance(node, ast.Attribute) and node.attr in PRIVATE) or (
            isinstance(node, ast.Constant) and node.value in PRIVATE
        ):
            found.append(node.lineno)
    return sorted(found)


def in_hy(text: str) -> list[int]:
    """The same of Hy: any symbol, keyword or text that is, or ends in, one of the names."""
    found = []
    pending: list[Any] = list(hy_forms(text))
    while pending:
        node = pending.pop()
        if isinstance(node, hy.models.Keyword):
            names = {hy.mangle(node.name)} if node.name else set()
        elif isinstance(node, hy.models.Symbol):
            names = {hy.mangle(part) for part in str(node).split(".") if part}
        elif isinstance(node, hy.models.String):
            names = {str(node)}
        else:
            names = set()
        if names & PRIVATE:
            found.append(node.start_line)
        if isinstance(node, hy.models.Sequence):
            pending.extend(node)
    return sorted(found)


def test_only_the_door_touches_a_body_or_a_guard() -> None:
    found = {str(path): in_python(path.read_text()) for path in sources(".py") if path not in ALLOWED}
    found |= {str(path): in_hy(path.read_text()) for path in sources(".hy")}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_tool_holds_them_and_never_calls_them() -> None:
    tree = ast.parse((TOOLS / "registry/tool.py").read_text())
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not [func for func in called if isinstance(func, ast.Attribute) and func.attr in PRIVATE]
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in PRIVATE]
    assert [ast.unparse(node) for node in loads] == ["self._guard"]  # in ``guarded``


def test_the_door_fetches_each_of_them_once() -> None:
    assert len(in_python((TOOLS / "door/stages.py").read_text())) == 2


def test_all_three_rooms_are_looked_at() -> None:
    assert [room.name for room in rooms()] == ["tools", "neuro", "agent"]
    assert {path.parent.name for path in sources(".py")} >= {"tools", "neuro", "agent"}
    assert {path.name for path in sources(".hy")} >= {"macros.hy", "eval.hy", "think.hy", "loop.hy"}


@pytest.mark.parametrize(
    "text",
    [
        "tool._body()",
        "f = tool._guard",
        "def f(tool):\n    return tool._body(1)",
        "getattr(tool, '_body')",
        "attrgetter('_guard')",
        "vars(tool)['_body']",
        "match tool:\n    case CognitiveTool(_body=b): tool._body",
    ],
)
def test_the_check_of_python_can_fail(text: str) -> None:
    assert in_python(text)


@pytest.mark.parametrize(
    "text",
    [
        "(tool._body)",
        "(._body tool)",
        "(. tool _guard)",
        '(getattr tool "_guard")',
        "(f :_body 1)",
        "(defn f [x] (lfor y x (y._guard)))",
    ],
)
def test_the_check_of_hy_can_fail(text: str) -> None:
    assert in_hy(text)


@pytest.mark.parametrize("text", ["tool.body()", "body = 1", "guard(x)", "x = 'the _body of it'"])
def test_the_check_of_python_lets_other_names_be(text: str) -> None:
    assert in_python(text) == []


def test_calling_a_tool_runs_neither_its_body_nor_its_guard() -> None:
    body, guard = Spy(), Spy()
    made = tool(body=body, guard=guard)
    complaint(TypeError, made)
    complaint(TypeError, lambda: made(ctx=None))
    assert not body.ran
    assert not guard.ran
    assert gateway(made).pass_through("(probe)").ok
    assert (body.calls, guard.calls) == (1, 1)


def test_showing_a_tool_gives_no_function_away() -> None:
    made = tool(body=Spy(), guard=Spy())
    shown = repr(made) + str(made.describe()) + str(made.schema)
    assert "Spy" not in shown


def test_the_paths_allowed_exist() -> None:
    assert all(path.is_file() for path in ALLOWED)
    assert Path(TOOLS, "door/stages.py") in ALLOWED
