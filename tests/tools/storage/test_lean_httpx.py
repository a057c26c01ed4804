"""httpx comes without its command line, nothing of ours imports it otherwise, and httpx2 can replace it."""

from __future__ import annotations

import ast
import subprocess
import sys

from on_httpx2 import on_httpx2
from words import python_nodes, rooms, sources

from quoth.tools.storage.lean_httpx import USER_AGENT, WIRE_LOGS, httpx

FRESH = """
import sys
from quoth.neuro.backends import openai
import httpx
print(httpx.AsyncClient.__name__, *sorted({"rich", "click", "httpx._main"} & set(sys.modules)))
"""
LIBRARIES = {"httpx", "httpx2", "httpcore", "httpcore2"}
# What each of the ways to the net does: a client, a transport, a proxy, the log, addresses, redirects.
SOME = (
    "tests/neuro/backends/test_transport.py",
    "tests/neuro/backends/test_openai.py",
    "tests/tools/web",
    "tests/tools/storage/test_lean_httpx.py::test_names_that_are_made_of_its_own",
    "-k",
    "own or proxy or password or sent or nor_does or redirect or certificate or checked_address",
)


def imports_httpx(text: str) -> bool:
    """Whether it imports httpx or what is below it, as a whole or in part."""
    names: list[str] = []
    for node in python_nodes(text):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
    return any(name.partition(".")[0] in LIBRARIES for name in names)


def test_a_back_end_imports_no_command_line() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["AsyncClient"]


def test_nobody_else_imports_httpx() -> None:
    assert imports_httpx("def f():\n    import json, httpx")
    assert imports_httpx("from httpx import Client")
    assert imports_httpx("import httpcore._sync")
    assert not imports_httpx("from quoth.tools.storage.lean_httpx import httpx")
    plans = (rooms()[0].parent / "plans").rglob("*.py")
    others = [path for path in (*sources(".py"), *plans) if path.parent.name != "mcp"]  # its SDK uses httpx2
    texts = {path.name: path.read_text() for path in others}
    assert "telegram.py" in texts
    ours = [name for name, text in texts.items() if "http" in text and imports_httpx(text)]
    assert ours == ["lean_httpx.py"]


def test_names_that_are_made_of_its_own() -> None:
    known = {"httpx": "httpcore", "httpx2": "httpcore2"}
    assert f"python-{httpx.__name__}/{httpx.__version__}" == USER_AGENT
    assert (f"{known[httpx.__name__]}.http11", f"{known[httpx.__name__]}.http2") == WIRE_LOGS


def test_back_ends_and_web_pass_on_its_continuation() -> None:
    done = on_httpx2([*SOME, "-p", "no:xdist"])
    assert (done.returncode, "passed" in done.stdout) == (0, True), done.stdout
