"""How many examples a property tries, and how large a load is: the profile of the run says it, and a test
may ask for a multiple.

Knows hypothesis only.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def many(times: int) -> int:
    """How many of a thing a load has: so many times the examples of the profile."""
    return times * settings.default.max_examples


def examples(times: int, **more: Any) -> settings:
    """Settings with so many times the examples of the profile, for a property in which much can go wrong."""
    return settings(max_examples=many(times), **more)
