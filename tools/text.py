"""Small words about texts and numbers for sentences that people read.

Knows nothing else of quoth.
"""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """``1 argument``, ``2 arguments``, ``no arguments``."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
