"""How many examples a property tries: the profile of the run says it, and a property may ask for a multiple.

Knows hypothesis only.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def examples(times: int, **more: Any) -> settings:
    """Settings with so many times the examples of the profile, for a property in which much can go wrong."""
    return settings(max_examples=times * settings.default.max_examples, **more)
