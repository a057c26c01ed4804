"""The packages of the extras serve and mcp are imported only where they are spoken to, and by no file that
starts without them."""

from __future__ import annotations

import ast

from words import python_nodes, rooms, sources

EXTRAS = {"mcp", "mcp_types", "starlette", "uvicorn"}
AT_THE_TOP = ("agent/serve/", "agent/view/", "tools/mcp/")  # rooms that are themselves imported late
WITHIN_FUNCTIONS = ("agent/cli/",)


def test_the_extras_are_imported_in_their_rooms_alone() -> None:
    found = {name for name in imports() if not name[0].startswith((*AT_THE_TOP, *WITHIN_FUNCTIONS))}
    assert found == set()
    top = {name for name in imports(top=True) if not name[0].startswith(AT_THE_TOP)}
    assert top == set()
    assert {package for _, package in imports()} == EXTRAS  # each is found at all


def imports(*, top: bool = False) -> set[tuple[str, str]]:
    """Each file with a package of the extras that it imports: anywhere, or when it is itself imported."""
    found = set()
    root = rooms()[0].parent
    for path in sources(".py"):
        nodes = ast.parse(path.read_text()).body if top else python_nodes(path.read_text())
        for node in nodes:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            packages = {name.partition(".")[0] for name in names} & EXTRAS
            found |= {(path.relative_to(root).as_posix(), one) for one in packages}
    return found
