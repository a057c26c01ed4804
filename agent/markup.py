"""Builds HTML whose texts are escaped by construction: a text becomes words that a person can see, never
markup, and characters that are invisible or reorder text are shown as escapes."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from quoth.tools.visible import visible

EMPTY = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})  # of a graphic, none is
RAW = frozenset({"style", "iframe", "object", "embed", "template"})  # their texts are not words
LINKS = frozenset({"href", "src", "action", "formaction", "poster", "data"})
EXACT = frozenset({"value"})  # is sent back as it is; what a person is to see is also in a text
KEEPING = frozenset({"pre", "textarea"})  # a parser drops a line feed at their beginning


class Html(str):
    """Finished HTML. Joined to a text with ``+`` it is a text again, and would be escaped again."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | Iterable[Child] | None"  # an Html stays, a text is escaped
Attribute: TypeAlias = "str | int | float | bool | None"


def html(*children: Child) -> Html:
    """The children, one after the other."""
    return Html("".join(_text(child) for child in children))


def el(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element: ``el("a", "Log", href="/view/log", class_="quiet", aria_current="page")``. An attribute
    that is None or False is left out; True gives its name alone. Raises ValueError for what could run or
    load something."""
    if name in RAW or (name == "script" and children):
        raise ValueError(f"{name} with a text is not built here")
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in EMPTY:
        return Html(f"<{name}{said}>")
    inner = html(*children)
    kept = "\n" if name in KEEPING and inner.startswith("\n") else ""
    return Html(f"<{name}{said}>{kept}{inner}</{name}>")


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if name.startswith("on") or name in ("style", "srcdoc"):
        raise ValueError(f"the attribute {name} is not built here")
    text = str(value)
    if name in LINKS and (text[:1] not in ("/", "#", "?") or text[1:2] in {*"/\\\t\n\r"}):
        raise ValueError(f"{name} must lead to a path of this server")
    if value is True:
        return f" {name}"
    return f' {name}="{escape(text if name in EXACT | LINKS else visible(text, lines=True))}"'


def _text(child: Child) -> str:
    if isinstance(child, Html):
        return child
    if child is None:
        return ""
    if isinstance(child, str | int | float):
        return escape(visible(str(child), lines=True), quote=False)
    return "".join(map(_text, child))
