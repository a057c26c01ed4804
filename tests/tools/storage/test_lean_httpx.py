"""httpx comes without its command line, and nothing of ours imports it otherwise."""

from __future__ import annotations

import ast
import subprocess
import sys

from words import python_nodes, sources

FRESH = """
import sys
from quoth.neuro.backends import openai
import httpx
print(httpx.AsyncClient.__name__, *sorted({"rich", "click", "httpx._main"} & set(sys.modules)))
"""


def imports_httpx(text: str) -> bool:
    return any(
        isinstance(node, ast.Import) and any(alias.name == "httpx" for alias in node.names)
        for node in python_nodes(text)
    )


def test_a_back_end_imports_no_command_line() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["AsyncClient"]


def test_nobody_else_imports_httpx() -> None:
    assert imports_httpx("def f():\n    import json, httpx")
    texts = {path.name: path.read_text() for path in sources(".py")}
    ours = [name for name, text in texts.items() if "httpx" in text and imports_httpx(text)]
    assert ours == ["lean_httpx.py"]
