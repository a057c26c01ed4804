"""Queries that would be syntax, or worse, where a search is careless.

Knows nothing of quoth.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

SYNTAX = (
    *("AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR(a b, 3)", '"', '""', "'", "''", "*", "^", ":", "-", "+"),
    *("(", ")", "{", "}", "{text}", "text:", "text : a", "a*", "^a", '"a', 'a"', '"a" + "b"', "a AND"),
    *("OR OR", "- text : a", "rank", "rowid", "passage_words", "%", "_", "?", "?1", ":x", "@x", "$x", ";"),
    *("--", "/*", "*/", "\\", "\0", "; DROP TABLE blocks", "' OR 1=1 --", 'x" OR "y', "\ud800", "\udfff"),
    *("\u202e", "\ufeff", "\u0301", "é", "ß", "\x1b[2J", "\n", "\t", " ", "", "日本語", "🐈", "²", "٣"),
    *("ﬁ", "İ", "a" * 200, "word", "the", "cat"),
)  # fmt: skip
LONG = 1_000_000  # characters


def queries(number: int) -> Iterator[str]:
    """Each piece by itself, then strings of them; every thousandth is very long."""
    rng = random.Random(14)
    for place in range(number):
        if place < len(SYNTAX):
            yield SYNTAX[place]
        elif place % 1000 == 999:
            piece = rng.choice(SYNTAX) or "x"
            yield (piece * LONG)[:LONG]
        else:
            yield rng.choice(["", " "]).join(rng.choices(SYNTAX, k=rng.randint(1, 40)))
