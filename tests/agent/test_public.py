"""Whatever a signature of the public API names can be imported from quoth."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import typing
from collections.abc import Iterator
from typing import Any

import quoth

# Names that nobody writes down: type variables, aliases of literals, parts of data, and parts of the host.
UNNAMED = {
    *("Data", "Kind", "P", "R", "T_co"),
    *("By", "Per", "Why", "Value", "Tags", "Defaults", "Progress", "Caller"),
    *("Fault", "Passed", "Form", "Part", "PlanFault", "SourceText", "Stored", "Carried", "Ignored"),
    *("Config", "GateProgram", "Key", "OutputType", "RemoteTools", "RemoteToolTable", "Shared", "_Written"),
    "BaseModel",  # pydantic's
}


def named(annotation: object) -> Iterator[str]:
    """The names in an annotation; the texts in Literal are not names."""
    if not isinstance(annotation, str):
        return
    pending: list[ast.AST] = [ast.parse(annotation, mode="eval")]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            yield node.id
        elif not (isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "Literal"):
            pending += ast.iter_child_nodes(node)


def annotations_of(thing: Any) -> Iterator[tuple[str, object]]:
    """The annotations of a function, or of the fields and public methods of a class, with their modules."""
    for name, annotation in getattr(thing, "__annotations__", {}).items():
        if not name.startswith("_"):
            yield getattr(thing, "__module__", ""), annotation
    if inspect.isclass(thing):
        for name, member in vars(thing).items():
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if callable(function) and not inspect.isclass(function) and not name.startswith("_"):
                yield from annotations_of(inspect.unwrap(function))


def ours() -> dict[str, Any]:
    found = {name: getattr(quoth, name) for name in quoth.__all__}
    return {name: it for name, it in found.items() if str(getattr(it, "__module__", "")).startswith("quoth")}


def test_what_signatures_name_can_be_imported_from_quoth() -> None:
    known = {*quoth.__all__, *dir(builtins), *dir(typing), *UNNAMED}
    missing: dict[str, str] = {}
    for name, thing in ours().items():
        for module, annotation in annotations_of(thing):
            for word in set(named(annotation)) - known:
                it = getattr(sys.modules[module], word, None)
                home = getattr(it, "__module__", "")
                if not inspect.ismodule(it) and (not home or home.startswith("quoth")):
                    missing[word] = name
    assert missing == {}


def test_names_are_found_in_annotations() -> None:
    assert {*named('Callable[[Call], "x"] | Literal["full"] | None')} == {"Callable", "Call"}
    assert {word for _, hint in annotations_of(quoth.Registry) for word in named(hint)} >= {
        "ToolContext",
        "R",
    }


def test_agents_name_what_a_person_writes() -> None:
    wanted = {
        "WorkspacePath",
        "BusyError",
        "Listener",
        "Reply",
        "RunEvent",
        "Output",
        "ToolChoice",
        "TaskFile",
    }
    assert wanted <= {*quoth.__all__}
