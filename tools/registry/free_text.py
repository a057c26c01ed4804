"""Which part of a tool's result is text that somebody wrote, as its ``:free-text`` declares it.

Knows declared types; it must not know results, or what is made of their values (tools/origin).
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from quoth.tools.errors import DefinitionError, did_you_mean
from quoth.tools.lisp.forms import kebab
from quoth.tools.registry.json_type import in_short
from quoth.tools.registry.param_types import PLAIN, is_json
from quoth.tools.registry.parameters import as_word
from quoth.tools.registry.returns import Returns

FreeText = tuple[str, ...] | bool
HOW = ":free-text is True for all of the result, or a list of its fields, such as [body subject]"


def declared_free_text(tool: str, given: Any, returns: Returns | None) -> FreeText | None:
    """The declaration as the tool keeps it: True, or the names of fields; none of them where nothing is text.
    Raises DefinitionError, also for a field that is not in what the tool declares to return."""
    if given is None or given is True:
        return given
    if given is False:
        return ()
    if not isinstance(given, (list, tuple)):
        raise DefinitionError(f"{tool}: {HOW}; not {in_short(given)}.")
    names = tuple(map(as_word, given))
    known = _told(returns.type) if returns else None
    folded = None if known is None else {kebab(name) for name in known}
    for name, as_given in zip(names, given, strict=True):
        if not (isinstance(as_given, str) or hasattr(as_given, "name")) or not name.strip():
            raise DefinitionError(f"{tool}: {HOW}; {in_short(as_given)} names no field.")
        if names.count(name) > 1:
            raise DefinitionError(f"{tool}: :free-text names the field {name} twice.")
        if known is not None and folded is not None and kebab(name) not in folded:
            hint = did_you_mean(name, known) or (f" It has {', '.join(sorted(known))}." if known else "")
            raise DefinitionError(
                f"{tool}: :free-text names {name}, which is no field of what it returns.{hint}"
            )
    return names


def free_text_words(declared: FreeText | None) -> str:
    """The declaration in words, for a person; empty where there is none."""
    if declared is None or isinstance(declared, bool):
        return "all of its result" if declared else ""
    return ", ".join(declared) or "nothing"


def _told(hint: Any) -> set[str] | None:
    """The names of all fields in values of a type; None where they may have fields that it does not tell."""
    if is_json(hint):
        return _fields(hint.schema)
    if hint in PLAIN:
        return set() if hint in (str, int, float, bool, type(None), None) else None
    args = typing.get_args(hint)
    if typing.get_origin(hint) is dict:
        return None
    found: set[str] = set()
    for arg in args if typing.get_origin(hint) is not typing.Literal else ():
        inner = _told(arg)
        if inner is None:
            return None
        found |= inner
    return found


def _fields(node: Any) -> set[str] | None:
    if not isinstance(node, Mapping):
        return None
    if "enum" in node or "const" in node:
        return set()
    inner: list[Any] = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    found: set[str] = set()
    kind = node.get("type")
    if kind == "object":
        if "properties" not in node or node.get("additionalProperties"):
            return None
        found |= set(node["properties"])
        inner += node["properties"].values()
    elif kind == "array":
        if "prefixItems" not in node and not node.get("items"):
            return None
        inner += [*node.get("prefixItems", ()), *([node["items"]] if node.get("items") else [])]
    elif kind is None and not inner:
        return None
    for one in inner:
        more = _fields(one)
        if more is None:
            return None
        found |= more
    return found
