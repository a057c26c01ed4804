"""The words of a text, as searches compare them."""

from __future__ import annotations

import re
from typing import Final

WORD: Final = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?<=..)(?:ing|ed|es|s|e)$")

# English words without meaning for a search. They are dropped only from queries: they stay in an index.
# Measured by tests/bench/memory.py.
_STOP: Final = """
    a about after am an and are as at be been before by can could did do does for from had has have he her his
    how i if in into is it its my no not of on or our s she should so t than that the their then there these
    they this those to was we were what when where which who whose why will with would you your
"""
STOP_WORDS: Final = frozenset(_STOP.split())


def stem(word: str) -> str:
    """A word in lower case with its end cut off, so that file finds files and edits finds editing."""
    return _ENDING.sub("", word.lower())


def stems(text: str) -> set[str]:
    return {_ENDING.sub("", word) for word in WORD.findall(text.lower())}
