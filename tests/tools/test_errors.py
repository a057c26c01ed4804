"""The sentences of errors, and the tree of their classes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

import pytest
from sentences import NO_TOOLS_ARE_REGISTERED
from words import python_nodes, sources

from quoth.tools import errors
from quoth.tools.errors import SURE, UnknownToolError, did_you_mean, nearest, no_such


@pytest.mark.parametrize(
    ("word", "close"),
    [
        ("raed-file", "read-file"),
        ("READ-FILE", "read-file"),
        ("GREP-serch", "grep-Search"),
        ("zebra", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_found_in_any_case(word: str, close: str | None) -> None:
    known = ["read-file", "write-file", "grep-Search"]
    assert nearest(word, known) == close
    assert did_you_mean(word, iter(known)) == (f" Did you mean {close}?" if close else "")


def test_a_word_much_longer_than_all_names_is_near_to_none() -> None:
    assert nearest("read-file" * 10_000, ["read-file"]) is None
    assert nearest("read-file", []) is None


def test_a_sure_guess_is_nearer_than_a_close_one() -> None:
    assert nearest("reed", ["write-read"]) is None
    assert nearest("red-fle-it", ["read-file"]) == "read-file"
    assert nearest("red-fle-it", ["read-file"], SURE) is None
    assert nearest("raed-file", ["read-file"], SURE) == "read-file"


def test_all_names_follow_a_lead_where_none_is_near() -> None:
    assert did_you_mean("zebra", iter(["on", "off"]), "There are", ":") == " There are :on, :off."
    assert did_you_mean("onn", iter(["on", "off"]), "There are", ":") == " Did you mean :on?"
    assert did_you_mean("zebra", [], "There are") == did_you_mean("zebra", ["on"]) == ""


def test_an_unknown_name_is_one_sentence_that_helps() -> None:
    assert no_such("mode", "onn", ["on", "off"]) == "There is no mode onn. Did you mean on?"
    assert no_such("mode", "zebra", ["on", "off"]) == "There is no mode zebra. The choices are on, off."
    assert (
        no_such("mode", "zebra", ["on"], "Its modes are", " of it")
        == "There is no mode zebra of it. Its modes are on."
    )
    assert no_such("mode", "\x1b[2J", []) == r"There is no mode '\x1b[2J'."


def importers(name: str) -> set[str]:
    """The product's files that import this module of Python, or names of it."""
    found = set()
    for path in sources(".py"):
        for node in python_nodes(path.read_text(encoding="utf-8")):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if name in [*names, node.module if isinstance(node, ast.ImportFrom) else ""]:
                found.add("/".join(path.parts[-2:]))
    return found


def test_only_the_adviser_guesses_names() -> None:
    """difflib is imported by the adviser, and by the three files that show the differences of texts."""
    assert importers("difflib") == {"tools/errors.py", "call/call.py", "replay/replay.py", "mcp/pins.py"}


def test_an_unknown_tool_names_the_nearest_or_all() -> None:
    assert UnknownToolError("raed", iter(["read"])).nearest == "read"
    assert "Available tools: copy, read." in str(UnknownToolError("zebra", iter(["read", "copy"])))
    assert f"{NO_TOOLS_ARE_REGISTERED}." in str(UnknownToolError("zebra", []))


def tree_of(texts: Iterable[str], roots: Sequence[str]) -> list[str]:
    """The classes of these modules that derive from the roots, one a line, indented below their base."""
    below: dict[str, set[str]] = {}
    for text in texts:
        for node in python_nodes(text):
            for base in node.bases if isinstance(node, ast.ClassDef) else ():
                name = ast.unparse(base).rpartition(".")[2]
                below.setdefault(name, set()).add(node.name)

    def lines(name: str, depth: int) -> list[str]:
        inner = [line for one in sorted(below.get(name, ())) for line in lines(one, depth + 1)]
        return [f"{'  ' * depth}{name}", *inner]

    return [line for root in roots for line in lines(root, 2)]


def test_the_docstring_draws_the_tree_of_errors() -> None:
    """A new error that a person or a model sees is a line in the docstring of tools/errors.py."""
    drawn = [line for line in (errors.__doc__ or "").split("\n") if line.startswith("    ")]
    texts = [path.read_text(encoding="utf-8") for path in sources(".py")]
    assert drawn == tree_of(texts, ["QuothError", "ToolFailure"])


def test_the_check_of_the_tree_can_fail() -> None:
    texts = ["class A(Root): ...\nclass C(m.A, ValueError): ...", "class B(Root): ...\nclass D: ..."]
    assert tree_of(texts, ["Root"]) == ["    Root", "      A", "        C", "      B"]
