"""The single texts and numbers inside a value, and the links in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from quoth.tools.origin.links import Link, links, rendered, spans
from quoth.tools.origin.spelling import spelling


def leaves(value: Any) -> Iterator[Any]:
    """The texts and numbers in a value. Blank texts, None, True and False are left out: they have no origin.
    The key of a dictionary is included if it is a link, such as a mail address."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif value is None or isinstance(value, bool):
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if is_link(key):
                yield key
            yield from leaves(item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, (int, float)):
        if spelling(value):
            yield value
    else:
        from pydantic_core import to_jsonable_python  # imported here: rarely needed

        yield from leaves(to_jsonable_python(value, bytes_mode="base64", fallback=str))


def links_of(value: Any, *, shown: bool = False) -> Iterator[Link]:
    """The links inside all texts of a value, without duplicates. If a mail program or browser will show the
    value (``shown``), the links that only such programs see are included. A number is read as it is
    written."""
    seen = set()
    find = rendered if shown else links
    for leaf in leaves(value):
        for link in find(leaf if isinstance(leaf, str) else spelling(leaf)):
            if link not in seen:
                seen.add(link)
                yield link


@lru_cache(1000)
def is_link(key: object) -> bool:
    """Whether the key of a dictionary is one link from its beginning to its end."""
    text = key.strip() if isinstance(key, str) else ""
    return any(start == 0 and end == len(text) for _, start, end in spans(text))
