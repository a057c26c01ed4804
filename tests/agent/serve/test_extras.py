"""The packages of the extras serve and mcp are imported only where they are spoken to, and by no file that
starts without them."""

from __future__ import annotations

import ast

from words import python_nodes, rooms, sources

EXTRAS = {"mcp", "mcp_types", "starlette", "uvicorn"}
AT_THE_TOP = ("agent/serve/", "agent/view/", "tools/mcp/")  # rooms that are themselves imported late
WITHIN_FUNCTIONS = ("agent/cli/",)


def test_the_extras_are_imported_in_their_rooms_alone() -> None:
    found = imports()
    assert {one for one in found if not one[0].startswith((*AT_THE_TOP, *WITHIN_FUNCTIONS))} == set()
    assert {one for one in found if one[2] and not one[0].startswith(AT_THE_TOP)} == set()
    assert {package for _, package, _ in found} == EXTRAS  # each is found at all


def imports() -> set[tuple[str, str, bool]]:
    """Each file with a package of the extras that it imports; and whether at its top."""
    found = set()
    root = rooms()[0].parent
    for path in sources(".py"):
        for node in python_nodes(path.read_text()):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for package in {name.partition(".")[0] for name in names} & EXTRAS:
                found.add((path.relative_to(root).as_posix(), package, node.col_offset == 0))  # type: ignore[attr-defined]
    return found
