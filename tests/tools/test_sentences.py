"""A sentence that users see is written in few test files, so that it can be improved;
tests/vocabulary/sentences.py has those that many tests look for."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from words import python_nodes, sources

TESTS = Path(__file__).parent.parent
FEW = 2  # test files that may write the same words
FROZEN = 166  # sentences that more files have today: never more


def texts(code: str) -> Iterator[str]:
    """The texts of Python code, without docstrings."""
    nodes = python_nodes(code)
    docs = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def sentences(code: Iterable[str]) -> set[str]:
    """The pieces of texts that are three words or more: what is between a period, colon or line's end and the
    next, and between the values of an f-string."""
    pieces = (
        piece.strip(" .:;,")
        for one in code
        for text in texts(one)
        for piece in re.split(r"(?<=[.:;?])\s+|\n", text)
    )
    return {piece for piece in pieces if len(piece) >= 12 and len(piece.split()) >= 3}


def frozen(product: Iterable[str], tests: Mapping[str, str]) -> dict[str, int]:
    """The sentences of the product that are written in more than FEW test files, and in how many."""
    written = ["\n".join(texts(code)) for code in tests.values()]
    files: dict[str, set[int]] = defaultdict(set)  # those with a word
    for number, text in enumerate(written):
        for word in set(text.split()):
            files[word].add(number)
    counted = {}
    for one in sentences(product):
        inner = one.split()[1:-1]  # these are whole words wherever the sentence stands
        where = set.intersection(*(files.get(word, set()) for word in inner))
        counted[one] = sum(one in written[number] for number in where)
    return {one: n for one, n in counted.items() if n > FEW}


def test_no_more_sentences_are_frozen_than_today() -> None:
    product = [path.read_text(encoding="utf-8") for path in sources(".py")]
    tests = {
        str(path): path.read_text(encoding="utf-8")
        for path in sorted(TESTS.rglob("*.py"))
        if path.parts[-2] != "bench" and path.name != "sentences.py"
    }
    found = frozen(product, tests)
    assert len(found) <= FROZEN, sorted(found.items(), key=lambda one: -one[1])[:10]


def test_a_sentence_in_three_files_is_found() -> None:
    product = ['"""The whole doc of it."""\nraise ValueError(f"{x} cannot be read: it is closed.")']
    written = 'assert said == "a.txt cannot be read: it is closed."'
    assert frozen(product, {"a": written, "b": written}) == {}
    assert frozen(product, {"a": written, "b": written, "c": written}) == {
        "cannot be read": 3,
        "it is closed": 3,
    }
    named = 'assert said == f"a.txt {CANNOT_BE_READ}: {IT_IS_CLOSED}."'
    assert frozen(product, {"a": written, "b": written, "c": named}) == {}
