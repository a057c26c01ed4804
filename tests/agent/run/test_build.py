"""Every run of the product is put together in one place."""

from __future__ import annotations

import ast

from words import sources

PARTS = {"Run", "RecordedBackend", "RecordedDoor"}


def test_only_the_builder_makes_a_run_and_its_recorded_parts() -> None:
    makers: dict[str, set[str]] = {part: set() for part in PARTS}
    for path in sources(".py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if any(f"{part}(" in text for part in PARTS) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PARTS:
                makers[node.func.id].add(f"{path.parent.name}/{path.name}")
    assert makers == {part: {"run/recorder.py"} for part in PARTS}
