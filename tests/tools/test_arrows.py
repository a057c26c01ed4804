"""Arrows point down only: agent -> neuro -> tools; and Python reaches a .hy module only by string."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import hy
import pytest
from words import files, rooms, sources

ROOMS = ("tools", "neuro", "agent")  # from the bottom


def imported_by_python(text: str, package: str = "") -> list[str]:
    """The modules that Python code imports, wherever in it: by statement, and by ``import_module`` of a
    text."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base]).strip(".")
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.append(node.args[0].value)
    return found


def named_by_python(text: str) -> list[str]:
    """The modules that Python code imports by statement, which a type checker would have to find."""
    return [
        name
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]


def imported_by_hy(text: str) -> list[str]:
    """The modules that Hy code imports or requires: forms, ``hy.I``/``hy.R``, and ``import-module`` of a
    text."""
    found: list[str] = []
    pending: list[Any] = list(hy.read_many(text))
    while pending:
        node = pending.pop()
        if isinstance(node, hy.models.Symbol) and str(node).startswith(("hy.I.", "hy.R.")):
            found.append(str(node)[5:].replace("/", "."))
        if not isinstance(node, hy.models.Sequence):
            continue
        pending.extend(node)
        if not isinstance(node, hy.models.Expression) or not node:
            continue
        words = [_dotted(item) for item in node]
        if words[0] in ("import", "require"):
            found += [word for word in words[1:] if word]
        elif (
            words[0] in ("import-module", "import_module", "__import__", "importlib.import-module")
            and len(node) > 1
        ):
            found += [str(node[1])] if isinstance(node[1], hy.models.String) else []
        elif words[0] == "." and words[1:3] in (["hy", "I"], ["hy", "R"]):
            found.append(".".join(word or "" for word in words[3:]).replace("/", "."))
    return [name.replace("-", "_") for name in found]


def _dotted(item: Any) -> str | None:
    """``a.b`` as text, whether it was read as a symbol or as ``(. a b)``."""
    if isinstance(item, hy.models.Symbol):
        return str(item)
    if isinstance(item, hy.models.Expression) and item and item[0] == hy.models.Symbol("."):
        return ".".join(str(part) for part in item[1:])
    return None


def upward(room: str, modules: list[str]) -> list[str]:
    """Those of ``modules`` that live in a room above ``room``."""
    above = ROOMS[ROOMS.index(room) + 1 :]
    return sorted({name for name in modules if name.split(".")[0] in above})


def room_of(path: Path) -> str:
    return next(room.name for room in rooms() if room in path.parents)


def package_of(path: Path) -> str:
    room = next(room for room in rooms() if room in path.parents)
    return ".".join(path.relative_to(room.parent).parent.parts)


def test_no_python_file_points_upward() -> None:
    found = {
        str(path): upward(room_of(path), imported_by_python(path.read_text(), package_of(path)))
        for path in sources(".py")
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_no_hy_file_points_upward() -> None:
    found = {str(path): upward(room_of(path), imported_by_hy(path.read_text())) for path in sources(".hy")}
    assert {path: names for path, names in found.items() if names} == {}


def hy_modules() -> set[str]:
    return {
        ".".join(path.relative_to(room.parent).with_suffix("").parts)
        for room in rooms()
        for path in room.rglob("*.hy")
    }


def test_python_names_no_hy_module_in_an_import_statement() -> None:
    known = hy_modules()
    assert {"quoth.tools.macros", "quoth.neuro.think", "quoth.agent.loop"} <= known
    found = {str(path): sorted(known & set(named_by_python(path.read_text()))) for path in sources(".py")}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import agent",
        "import os, quoth.agent.loop as x",
        "from neuro import think",
        "from quoth.neuro.backends.base import Backend",
        "def f():\n    import quoth.agent.cli.main",
        "if TYPE_CHECKING:\n    from quoth.agent.reply import Reply",
        "from importlib import import_module\nimport_module('quoth.neuro.think')",
        "importlib.import_module('quoth.agent.loop')",
        "__import__('agent')",
        "from ...agent import x",
    ],
)
def test_the_check_of_python_can_fail(text: str) -> None:
    assert upward("tools", imported_by_python(text, "quoth.tools.builtin"))


@pytest.mark.parametrize(
    "text",
    [
        "(import agent)",
        "(import os quoth.agent.loop [cognitive-loop])",
        "(import os [path] quoth.neuro.think :as think)",
        "(require agent.macros [x])",
        "(defn f [] (import neuro))",
        "(defmacro m [] `(hy.I.agent/loop.cognitive-loop))",
        "(hy.R.neuro/macros.think 1)",
        "(setv f hy.I.agent.loop)",
        '(import-module "quoth.agent.loop")',
    ],
)
def test_the_check_of_hy_can_fail(text: str) -> None:
    assert upward("tools", imported_by_hy(text))


def test_downward_and_outward_arrows_are_fine() -> None:
    assert upward("agent", ["quoth.tools.lisp.forms", "quoth.neuro.think", "quoth.agent.run.run", "os"]) == []
    assert upward("neuro", ["quoth.tools.lisp.forms", "quoth.neuro.prompt.belt", "httpx"]) == []
    assert upward("neuro", ["quoth.agent.run.run"]) == ["quoth.agent.run.run"]
    assert upward("tools", imported_by_hy("(import quoth.tools.lisp.forms [show] agents neuron)")) == []


def test_a_hy_module_named_by_python_would_be_found(tmp_path: Path) -> None:
    files(tmp_path, {"a.py": "from quoth.tools.macros import x\nfrom tools import expand\n"})
    assert hy_modules() & set(named_by_python((tmp_path / "a.py").read_text())) == {
        "quoth.tools.macros",
        "quoth.tools.registry.expand",
    }
