"""Arrows point down only: agent -> neuro -> tools, and inside each the rooms in their order; no circle of
files; and Python reaches a .hy module only by string."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import hy
import pytest
from words import files, hy_forms, python_nodes, rooms, sources

# From the bottom. A room may import what stands on a lower line, and itself; not its neighbours on the line.
ORDER = {
    "tools": [
        "advice text words installing lazy_dataclass lazy_regex",
        "visible",
        "errors",
        "safe_regex lisp storage",
        "org hy_loader",
        "py_loader",
        "registry program",
        "macros",
        "call",
        "origin",
        "policy history sandbox shell web",
        "door dryrun",
        "consent memory knowledge catalog",
        "remote shared mcp",
        "builtin",
        "loading",
        "typed_registry",
    ],
    "neuro": ["reading backends", "embed", "prompt", "think"],
    "agent": [
        "events reply plan settings markup",
        "terminal",
        "session",
        "config manual trace",
        "run",
        "chat flight worker guard",
        "replay evaluation event_types",
        "client",
        "acp serve testing doubles repl",
        "view",
        "pytest_plugin",
        "cli",
        "entry",
        "public",
    ],
}
TOPS = tuple(ORDER)
LEVEL = {
    f"{top}.{room}": (TOPS.index(top), level)
    for top, levels in ORDER.items()
    for level, line in enumerate(levels)
    for room in line.split()
}
PUBLIC = "agent.public"  # what ``import quoth`` gives

QUASIQUOTE = hy.models.Symbol("quasiquote")

Modules = Mapping[str, Iterable[str]]  # each module, and what it imports


def imported_by_python(text: str, package: str = "") -> list[str]:
    """The modules that Python code imports, wherever in it: by statement, and by ``import_module`` of a
    text."""
    found: list[str] = []
    for node in python_nodes(text):
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
        for node in python_nodes(text)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]


def imported_by_hy(text: str, *, expansions: bool = True) -> list[str]:
    """The modules that Hy code imports or requires: forms, ``hy.I``/``hy.R``, and ``import-module`` of a
    text. Without ``expansions`` not those that stand in a quasiquote: they are imported where a macro is
    used."""
    found: list[str] = []
    pending: list[Any] = list(hy_forms(text))
    while pending:
        node = pending.pop()
        if not expansions and isinstance(node, hy.models.Expression) and QUASIQUOTE in node[:1]:
            continue
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


def room_of(module: str) -> str:
    """The room of a module: ``tools.lisp`` of ``tools.lisp.forms``. The loop, which a run goes round in,
    belongs to the run."""
    room = ".".join(module.split(".")[:2])
    return "agent.run" if room == "agent.loop" else room


def inside(name: str) -> str:
    """A module of ours without ``quoth``: ``tools.lisp.forms``; empty for what is not ours."""
    if name == "quoth":
        return PUBLIC
    own = name.removeprefix("quoth.")
    if own == name:
        return ""
    return own if own.split(".")[0] in TOPS else PUBLIC


def upward(module: str, imports: Iterable[str]) -> list[str]:
    """Those of ``imports`` that ``module`` may not import: in a room above, or beside, its own."""
    own = room_of(module)
    return sorted(
        {
            name
            for name in map(inside, imports)
            if name and room_of(name) != own and _level(name) >= _level(own)
        }
    )


def _level(module: str) -> tuple[int, int]:
    """How high its room stands. A package by itself stands below its rooms, what is in no room on top of
    them."""
    if module in TOPS:
        return TOPS.index(module), -1
    return LEVEL.get(room_of(module), (TOPS.index(module.split(".")[0]), len(LEVEL)))


def above(module: str, imports: Iterable[str]) -> list[str]:
    """Those of ``imports`` that are in a package above that of ``module``."""
    top = TOPS.index(module.split(".")[0])
    return sorted({name for name in map(inside, imports) if name and TOPS.index(name.split(".")[0]) > top})


def circles(modules: Modules) -> list[list[str]]:
    """The groups of modules that import each other, by whatever way round (Tarjan's components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in modules[module]:
            if other not in index:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            found.extend([sorted(group)] if len(group) > 1 else [])

    for module in modules:
        if module not in index:
            visit(module)
    return found


def module_of(path: Path) -> str:
    room = next(room for room in rooms() if room in path.parents)
    parts = path.relative_to(room.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports_of(path: Path) -> list[str]:
    text, module = path.read_text(encoding="utf-8"), module_of(path)
    if path.suffix == ".hy":
        return imported_by_hy(text, expansions=False)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return imported_by_python(text, f"quoth.{package}")


@cache
def the_house() -> dict[str, set[str]]:
    """Every module of ours, and those of ours that it imports."""
    paths = [*sources(".py"), *sources(".hy")]
    known = {module_of(path) for path in paths}
    graph: dict[str, set[str]] = {}
    for path in paths:
        own = module_of(path)
        found: set[str] = set()
        for name in map(inside, imports_of(path)):
            while name and name not in known:
                name = name.rpartition(".")[0]
            found.add(name)
        graph[own] = found - {"", own, *TOPS}
    return graph


def test_every_file_stands_in_a_room_of_the_order() -> None:
    assert {room_of(module) for module in the_house()} | {PUBLIC} == {*LEVEL, *TOPS}


def test_no_file_points_upward() -> None:
    found = {
        str(path): upward(module_of(path), imports_of(path))
        for path in [*sources(".py"), *sources(".hy")]
        if module_of(path) not in TOPS
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_no_macro_expands_to_what_is_in_a_package_above() -> None:
    found = {str(path): above(module_of(path), imported_by_hy(path.read_text())) for path in sources(".hy")}
    assert {path: names for path, names in found.items() if names} == {}
    assert above("tools.macros", imported_by_hy("(defmacro m [] `(hy.I.quoth/agent/loop.run-loop))"))


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles(the_house()) == []


def hy_modules() -> set[str]:
    return {f"quoth.{module_of(path)}" for path in sources(".hy")}


def test_python_names_no_hy_module_in_an_import_statement() -> None:
    known = hy_modules()
    assert {"quoth.tools.macros", "quoth.neuro.think", "quoth.agent.loop"} <= known
    found = {str(path): sorted(known & set(named_by_python(path.read_text()))) for path in sources(".py")}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import quoth",
        "import os, quoth.agent.loop as x",
        "from quoth import Agent",
        "from quoth.neuro import think",
        "from quoth.neuro.backends.base import Backend",
        "from quoth.tools import door",
        "from quoth.tools.program.compiler import Program",
        "def f():\n    import quoth.agent.cli",
        "if TYPE_CHECKING:\n    from quoth.agent.run.run import Reply",
        "from importlib import import_module\nimport_module('quoth.neuro.think')",
        "importlib.import_module('quoth.agent.loop')",
        "__import__('quoth.agent.public')",
        "from ...agent import client",
        "from ..call.call import Call",
    ],
)
def test_the_check_of_python_can_fail(text: str) -> None:
    assert upward("tools.registry.table", imported_by_python(text, "quoth.tools.registry"))


@pytest.mark.parametrize(
    "text",
    [
        "(import quoth)",
        "(import os quoth.agent.loop [cognitive-loop])",
        "(import os [path] quoth.neuro.think :as think)",
        "(require quoth.agent.macros [x])",
        "(require quoth [def-cognitive-tool])",
        "(import quoth.tools.door.door [Door])",
        "(defn f [] (import quoth.neuro.think))",
        "(defmacro m [] `(hy.I.quoth/agent/loop.cognitive-loop))",
        "(hy.R.quoth/neuro/think.think 1)",
        "(setv f hy.I.quoth.agent.loop)",
        '(import-module "quoth.agent.loop")',
    ],
)
def test_the_check_of_hy_can_fail(text: str) -> None:
    assert upward("tools.registry.expand", imported_by_hy(text))


def test_downward_and_outward_arrows_are_fine() -> None:
    assert (
        upward("agent.loop", ["quoth.tools.lisp.forms", "quoth.neuro.think", "quoth.agent.run.run", "os"])
        == []
    )
    assert upward("neuro.prompt.belt", ["quoth.tools.door", "quoth.neuro.reading.reply", "httpx"]) == []
    assert upward("neuro.think", ["quoth.agent.run"]) == ["agent.run"]
    assert (
        upward("tools.door.door", imported_by_hy("(import quoth.tools.lisp.forms [show] agents neuron)"))
        == []
    )
    assert upward("tools.lisp.forms", ["quoth.tools.lisp.reader"]) == []


def test_rooms_side_by_side_do_not_know_each_other() -> None:
    assert upward("tools.policy.rules", ["quoth.tools.history.audit"]) == ["tools.history.audit"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("from quoth.tools.lisp import b", "from quoth.tools.lisp import a"),
        ("def f():\n    from quoth.tools.lisp import b", "from quoth.tools.lisp.a import x"),
        ("if TYPE_CHECKING:\n    import quoth.tools.lisp.b", "import quoth.tools.lisp.a"),
    ],
)
def test_a_circle_in_one_room_is_found_also_a_lazy_one(one: str, other: str) -> None:
    known = {"tools.lisp.a": one, "tools.lisp.b": other, "tools.lisp.c": "from quoth.tools.lisp import a"}
    graph = {
        module: [name for name in map(inside, imported_by_python(text)) if name in known]
        for module, text in known.items()
    }
    graph["tools.lisp.b"] += ["tools.lisp.a"] * ("a import x" in other)
    assert circles(graph) == [["tools.lisp.a", "tools.lisp.b"]]


def test_a_hy_module_named_by_python_would_be_found(tmp_path: Path) -> None:
    files(tmp_path, {"a.py": "from quoth.tools.macros import x\nfrom quoth.tools.registry import expand\n"})
    assert hy_modules() & set(named_by_python((tmp_path / "a.py").read_text())) == {
        "quoth.tools.macros",
        "quoth.tools.registry.expand",
    }


def misdirections(table: str, root: Path) -> list[str]:
    """The files that a table of the manual names and that are not there, and the names that are not in the
    file it gives for them. A bare file is in the folder of the path before it."""
    wrong = []
    for row in table.splitlines():
        folder, name = root, ""
        for word in re.findall(r"=([^=|]+)=", row):
            if re.fullmatch(r"[A-Z_]+", word):
                name = word
            elif re.fullmatch(r"\w[\w./-]*(?:\.\w+|/)", word):
                path = root / word if "/" in word else folder / word
                folder = path if word.endswith("/") else path.parent
                if "NAME" in word:
                    continue
                if not path.exists():
                    wrong.append(word)
                elif name and path.is_file() and not re.search(rf"(?m)^{name}\b", path.read_text()):
                    wrong.append(f"{name} of {word}")
                name = ""
    return wrong


def test_the_manual_sends_authors_to_files_that_are_there() -> None:
    agent = next(room for room in rooms() if room.name == "agent")
    page = (agent / "manual/house.org").read_text(encoding="utf-8")
    for heading in ("| topic ", "| new "):
        table = page.partition(heading)[2].partition("\n\n")[0]
        assert table.count("|") > 20
        assert misdirections(table, agent.parent) == []


def test_the_check_of_the_manual_can_fail(tmp_path: Path) -> None:
    files(tmp_path, {"tools/a.py": "ROWS = 1\n", "tools/b.py": "", "tools/text": ""})
    row = "| a tool | a row in =ROWS= of =tools/{}=, its word in =WORDS= of =b.py=, its text in =c.py= |"
    assert misdirections(row.format("a.py"), tmp_path) == ["WORDS of b.py", "c.py"]
    assert misdirections(row.format("none.py"), tmp_path) == ["tools/none.py", "WORDS of b.py", "c.py"]
