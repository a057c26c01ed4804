"""Which option of a request a server refuses, by its words; and the tools without a key that it refuses.

Knows names of options and of JSON Schema; it sends nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import Any

from quoth.neuro.backends.messages import to_json
from quoth.neuro.backends.output_schema import DATA, NAMED

# Options without which a request asks for the same.
OPTIONS = (
    "stream_options",
    "temperature",
    "parallel_tool_calls",
    "tool_choice",
    "cache_control",
    "include",
    "store",
)
# Keys of the tools' schemas without which a model is shown nearly the same; the door checks arguments anyway.
KEYS = (
    *("strict", "additionalProperties", "anyOf", "oneOf", "allOf", "const", "default", "format", "type"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "prefixItems", "propertyNames"),
    *("title", "$schema", "examples"),
)
_REFUSAL = re.compile(
    r"\b(?:un(?:supported|known|recogni[sz]ed|expected|permitted)|not|cannot|can't|extra|deprecated|invalid|forbidden"
    r"|incompatible|only|remove|must|requires)\b",
    re.IGNORECASE,
)


def refused_name(error: Mapping[str, Any], names: Collection[str]) -> str:
    """The first of the names that an error is about; empty if it is about none of them."""
    words = f"'{error.get('param')}' {error.get('code')} {error.get('message')}"
    if not _REFUSAL.search(words.replace("_", " ")):
        return ""
    places = {name: found.start() for name in names if (found := _named(name).search(words))}
    return min(places, key=places.__getitem__, default="")


@cache
def _named(name: str) -> re.Pattern[str]:
    """Finds a name as the words of an error quote it, or at the end of a path; one that is an option, or can
    only be a key, also without quotes. ``anyOf`` may be written ``any_of``."""
    spelt = re.sub(r"(?<=[a-z])([A-Z])", r"_?\1", name).replace("$", r"\$")
    plain = name in OPTIONS or spelt != name
    begin = r"(?<!\w)" if plain else r"(?:(?<=[\"'`“.])|(?<=-> )|(?<=: ))"
    return re.compile(rf"{begin}{spelt}(?![\w.\[-])", re.IGNORECASE)


@lru_cache(maxsize=8)
def tools_without(tools: bytes, keys: frozenset[str]) -> bytes:
    """The tools of a request without these keys of their schemas."""
    return to_json(_without(json.loads(tools), keys)) if keys else tools


def _without(node: Any, keys: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_without(item, keys) for item in node]
    if not isinstance(node, dict):
        return node
    left: dict[str, Any] = {}
    for key, value in node.items():
        if key in NAMED and isinstance(value, dict):
            left[key] = {name: _without(item, keys) for name, item in value.items()}
        elif key == "type" and "type" in keys and isinstance(value, list):
            left[key] = next((kind for kind in value if kind != "null"), "string")
        elif key in DATA and key not in keys:
            left[key] = value
        elif key not in keys or key == "type":
            left[key] = _without(value, keys)
        elif key == "const":
            left["enum"] = [value]
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            branches = [_without(one, keys) for one in value if one != {"type": "null"}]
            left |= branches[0] if len(branches) == 1 or (branches and key == "allOf") else {}
    return left
