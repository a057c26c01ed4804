"""The destinations among a tool's parameters, and which tools always ask: declared, or inferred.

If a tool sends something, each text may be a destination, unless its name means content. For other tools
names and types decide, from the lists here.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import kebab
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.json_type import nodes
from quoth.tools.registry.param_types import is_json
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.tool import HARMLESS, CognitiveTool

# Words in a parameter's name that make it a destination: the last word decides, in singular or plural.
DESTINATIONS = frozenset(
    ("to", "cc", "bcc", "recipient", "receiver", "addressee", "payee", "beneficiary", "participant",
     "attendee", "invitee", "guest", "member", "assignee", "user", "username", "contact", "email", "mail",
     "address", "url", "uri", "link", "endpoint", "webhook", "host", "hostname", "domain", "server", "ip",
     "account", "iban", "with", "channel", "chat", "room", "group", "thread", "conversation", "subscriber",
     "merchant", "person", "people", "who", "whom", "phone", "mobile", "number", "handle", "repo",
     "repository", "bucket", "target", "dest", "destination", "id")
)  # fmt: skip
# Words that make a parameter of a sending tool a content: the last word decides.
CONTENTS = frozenset(
    ("subject", "body", "text", "message", "content", "title", "description", "note", "notes", "comment",
     "query", "caption", "summary", "prompt", "question", "reason")
)  # fmt: skip
SENDING = frozenset(("net", "messages", "pays"))
NAMING = frozenset(("name", "number", "list"))  # before such a word, another decides: account-number
# The formats of a JSON Schema, in pydantic's names, that make it a destination.
FORMATS = frozenset(
    ("email", "idn-email", "name-email", "uri", "uri-reference", "iri", "url", "hostname", "idn-hostname",
     "ipv4", "ipv6", "ipvanyaddress", "ipvanynetwork", "uuid", "uuid1", "uuid3", "uuid4", "uuid5")
)  # fmt: skip
# Words in a tool's name that show what it does, if its effects do not.
DELETING = frozenset(("delete", "remove", "erase", "purge", "wipe", "drop", "destroy", "cancel"))
PAYING = frozenset(("pay", "buy", "purchase", "donate", "refund"))
PASSWORDS = frozenset(("password", "passwd", "passphrase", "passcode", "pin"))


@dataclass(frozen=True)
class DestinationRole:
    """A parameter whose values are destinations, and how that is known: ``declared``, ``by its name``, ``by
    its type``. A path is a destination only ``outside`` the workspace. An ``assumed`` destination, of a tool
    that sends something, does not count if its value is a date, a time or an amount."""

    name: str
    why: str
    outside: bool = False
    assumed: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.why})"


def destinations(tool: CognitiveTool) -> tuple[DestinationRole, ...]:
    """The destinations of a tool, in the order of its parameters; none for a tool that only reads and
    asks."""
    if HARMLESS.issuperset(tool.effects):
        return ()
    sends = not SENDING.isdisjoint(tool.effects)
    texts = frozenset(map(kebab, tool.texts)) if isinstance(tool.texts, tuple) else frozenset()
    found = (_destination(param, sends, texts) for param in tool.params)
    return tuple(one for one in found if one is not None)


def always_asks(tool: CognitiveTool) -> str:
    """Why calls of a tool need a person if nothing else is known about it, such as ``it deletes``; empty for
    none."""
    effects = frozenset(tool.effects)
    if effects <= HARMLESS:
        return ""
    said = _words(tool.name)
    reasons = []
    if "deletes" in effects or not DELETING.isdisjoint(said):
        reasons.append("it deletes")
    if "pays" in effects or not PAYING.isdisjoint(said):
        reasons.append("it pays")
    if not PASSWORDS.isdisjoint(said):
        reasons.append("it is about a password")
    else:
        reasons += [f"it takes a secret ({param.name})" for param in tool.params if _is_password(param)][:1]
    return " and ".join(reasons)


def roles_data(tool: CognitiveTool) -> dict[str, Any]:
    """Both as JSON data."""
    found = [{"name": one.name, "why": one.why} for one in destinations(tool)]
    return {"destinations": found, "always_asks": always_asks(tool)}


def _destination(param: Param, sends: bool, texts: frozenset[str]) -> DestinationRole | None:
    """A parameter's role as a destination, or None. If a tool declares fields of its result as free
    ``texts``, a parameter with the name of such a field is content."""
    if param.role:
        return DestinationRole(param.name, "declared") if param.role == "destination" else None
    if param.secret or param.type in (bool, Code):
        return None
    if param.holds_paths and not any(map(_tells_one, _schemas(param.type))):
        return DestinationRole(param.name, "only where it leads out of the workspace", outside=True)
    if names_destination(param.name):
        return DestinationRole(param.name, "by its name")
    if any(map(_tells_one, _schemas(param.type))):
        return DestinationRole(param.name, "by its type")
    is_content = names_content(param.name) or kebab(param.name) in texts
    if sends and not param.choices and not is_content and _may_hold_text(param.type):
        return DestinationRole(param.name, "a text of a tool that sends", assumed=True)
    return None


def _may_hold_text(hint: Any) -> bool:
    parts = typing.get_args(hint)
    return any(map(_may_hold_text, parts)) if parts else hint not in (int, float, bool, type(None))


@lru_cache(1000)
def names_content(name: str) -> bool:
    """Whether a parameter, or a field in one, of this name is always content."""
    return (_words(name) or [""])[-1] in CONTENTS


def _is_password(param: Param) -> bool:
    return param.secret or not PASSWORDS.isdisjoint(_words(param.name))


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


@lru_cache(1000)
def names_destination(name: str) -> bool:
    """Whether a parameter, or a field in one, of this name is a destination."""
    words = _words(name) or [""]
    while len(words) > 1 and words[-1] in NAMING:
        words.pop()
    last = words[-1]
    one = f"{last[:-3]}y" if last.endswith("ies") else last.removesuffix("s")
    return not DESTINATIONS.isdisjoint((last, one, last.removesuffix("es")))


def fields_of(param: Param) -> frozenset[str]:
    """The names of all fields that the type of a parameter declares."""
    return frozenset(name for node in _schemas(param.type) for name in node.get("properties") or ())


def _schemas(hint: Any) -> Iterator[Mapping[str, Any]]:
    """The JSON Schemas in a type."""
    if is_json(hint):
        yield from nodes(hint.schema)
    for arg in typing.get_args(hint):
        yield from _schemas(arg)


def _tells_one(schema: Mapping[str, Any]) -> bool:
    """Whether values of a schema are a destination by its format, or contain one by the name of a field."""
    if isinstance(schema.get("format"), str) and schema["format"] in FORMATS:
        return True
    return any(map(names_destination, schema.get("properties") or ()))
