"""Pins: the descriptions of a server's tools that a person has trusted, and how the server's present ones
differ.

One file for each server, in the user's state folder. Its first line is the SHA-256 of the rest, so that a
damaged file is refused; it is replaced atomically, and by ``quoth mcp trust`` alone. The digest of a tool is
its version, to which approvals are bound. Nothing here imports the SDK: a tool is its fields as they are on
the wire.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.paths import private_folder, state_dir
from quoth.tools.text import listed, number_of
from quoth.tools.visible import visible

FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
IN_WORDS = {
    "title": "another title",
    "description": "another description",
    "inputSchema": "other arguments",
    "outputSchema": "another result",
    "annotations": "other annotations",
}
OPENED = 2  # levels of a schema that are shown line by line
MAX_SHOWN = 4_000  # characters of one line
MOST_LINES = 300  # of one tool, at a terminal
MAX_FILE = 64_000_000  # bytes
CHECKED = 1  # to be raised where the bounds of schemas (registry/whole_schema.py) are tightened
OWN = ("server", "address", "first", "resources", "prompts", "more", "instructions", "checked", "at")
MORE = ("logging", "completions", "subscriptions")  # what a server may offer beside tools and lists
MAX_SAID = 10_000  # characters of a server's instructions
KEPT = ("name", "digest", "text", "about", "declares", "says", "renewed", "fault")
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
Fields = Mapping[str, Any]
READ_RESOURCE, GET_PROMPT = "read-resource", "get-prompt"
# The entries for a server's resources and prompts, which are not tools there.
OFFERED: Mapping[str, Fields] = {
    READ_RESOURCE: {
        "name": READ_RESOURCE,
        "description": "Read a resource, or list the resources.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "uri": {"type": "string", "description": "URI of the resource; without it, all are listed"}
            },
        },
    },
    GET_PROMPT: {
        "name": GET_PROMPT,
        "description": "Get a prompt, or list the prompts.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Name of the prompt; without it, all are listed"},
                "arguments": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "The prompt's arguments",
                },
            },
        },
    },
}
Kind = Literal["changed", "new", "gone", "renamed", "doubled"]


@dataclass(frozen=True)
class ToolPin:
    """One trusted tool: its name at the server, and its fields as JSON ``text``, which is read when they are
    needed. ``renewed``: its digest has changed since it was first trusted, so that effects which a rule gave
    its first version do not count any more. ``about`` is its description or title; ``declares``: it has an
    ``outputSchema``; ``says`` are the annotations that it claims; ``fault`` says why its schemas cannot be
    used."""

    name: str
    digest: str
    text: str = field(repr=False)
    about: str = field(repr=False)
    declares: bool = False
    says: tuple[str, ...] = ()
    renewed: bool = False
    fault: str = ""

    @classmethod
    def of(cls, fields: Fields, digest: str, *, renewed: bool = False, fault: str = "") -> ToolPin:
        about = str(fields.get("description") or fields.get("title") or "")
        said = fields.get("annotations")
        says = tuple(hint for hint in HINTS if isinstance(said, dict) and said.get(hint) is True)
        text = json.dumps(fields)
        return cls(str(fields["name"]), digest, text, about, "outputSchema" in fields, says, renewed, fault)

    @cached_property
    def fields(self) -> Fields:
        found: Fields = json.loads(self.text)
        return found


@dataclass(frozen=True)
class ServerPins:
    """The trusted tools of one server, by their names at the server. ``address`` is its command or URL, for
    people; ``resources`` and ``prompts`` say whether it offers these, and ``more`` which of MORE.
    ``instructions`` are its words for models. ``first`` are the digests with which tools, present or gone,
    were first trusted; ``checked``: by which bounds their schemas were checked."""

    server: str
    address: str
    tools: Mapping[str, ToolPin]
    first: Mapping[str, str] = field(default_factory=dict, compare=False)
    resources: bool = False
    prompts: bool = False
    more: tuple[str, ...] = ()
    instructions: str = ""
    checked: int = field(default=0, compare=False)
    at: str = field(default="", compare=False)

    @cached_property
    def digest(self) -> str:
        """The digest of all of it: what a person says yes to."""
        said = [self.address, self.resources, self.prompts, sorted(pin.digest for pin in self.tools.values())]
        if self.more or self.instructions:
            said += [*self.more, self.instructions]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    @cached_property
    def offered(self) -> Mapping[str, str]:
        """The digests of the entries for its resources and prompts, by their names."""
        offers = {READ_RESOURCE: self.resources, GET_PROMPT: self.prompts}
        return {name: digest_of(self.address, OFFERED[name]) for name, offer in offers.items() if offer}


@dataclass(frozen=True)
class ToolChange:
    """How a tool of a server differs from its pin. ``before`` and ``after`` are its fields, None if it has
    none; ``moved``: the command or URL of the server is another one."""

    kind: Kind
    tool: str
    before: Fields | None = None
    after: Fields | None = None
    moved: bool = False

    @property
    def what(self) -> str:
        """What happened to the tool, as a clause after its name."""
        if self.kind == "new":
            return "is new"
        if self.kind == "gone":
            return "is gone from the server"
        if self.kind == "doubled":
            return "is listed twice by the server"
        before, after = self.before or {}, self.after or {}
        if self.kind == "renamed":
            return f"is the new name of {visible(str(before['name']))}"
        parts = [said for key, said in IN_WORDS.items() if before.get(key) != after.get(key)]
        parts += ["another command or URL of its server"] if self.moved else []
        return f"has {listed(parts)}"

    def sentence(self) -> str:
        return f"{visible(self.tool)} {self.what}."

    def difference(self) -> Iterator[str]:
        """The lines of a unified difference between its pin and its present fields."""
        yield from unified(*(lines_of(one or {}) for one in (self.before, self.after)))


def unified(trusted: list[str], now: list[str]) -> Iterator[str]:
    """The lines of a unified difference."""
    yield from difflib.unified_diff(trusted, now, "trusted", "now", lineterm="")


def lines_of(fields: Fields) -> list[str]:
    """The fields of a tool as lines for a person, with misleading characters escaped: a schema has a line for
    each of its parameters."""
    return [line for key in FIELDS if (value := fields.get(key)) for line in _lines(key, value)]


def bounded(lines: Iterable[str]) -> Iterator[str]:
    """The first MOST_LINES lines, and a sentence about the others: a server may send any number."""
    rest = iter(lines)
    yield from itertools.islice(rest, MOST_LINES)
    if left := sum(1 for _ in rest):
        yield f"… and {number_of(left, 'more line')} of this tool, not shown here"


def _lines(key: str, value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, dict) and value and depth < OPENED and (depth == 0 or key == "properties"):
        yield _line(f"{key}:")
        for name, item in sorted(value.items()):
            yield from (f"  {line}" for line in _lines(name, item, depth + 1))
        return
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    first, *more = text.split("\n")
    yield _line(f"{key}: {first}")
    yield from (f"  > {_line(line)}" for line in more)  # else it could look like a line of ours


def _line(text: str) -> str:
    left = len(text) - MAX_SHOWN
    return visible(text) if left <= 0 else f"{visible(text[:MAX_SHOWN])}… and {left:,} more characters"


# Comparing


def digest_of(address: str, fields: Fields) -> str:
    """The digest of a tool: over its own description of itself, and the server's command or URL."""
    said = {"server": address, **{key: fields.get(key) for key in FIELDS}}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def by_name(tools: Iterable[Fields]) -> tuple[dict[str, Fields], list[str]]:
    """The tools of a server by name, and the names that it lists more than once, which are in neither."""
    found: dict[str, Fields] = {}
    twice: dict[str, None] = {}
    for fields in tools:
        name = str(fields["name"])
        if name in found:
            twice[name] = None
        found[name] = {key: fields[key] for key in FIELDS if fields.get(key) is not None}
    return {name: fields for name, fields in found.items() if name not in twice}, list(twice)


def changes(pins: ServerPins, address: str, tools: Iterable[Fields]) -> dict[str, ToolChange]:
    """How the present tools of a server at ``address`` differ from its pins, by name."""
    now, twice = by_name(tools)
    found = {name: ToolChange("doubled", name) for name in twice}
    moved = address != pins.address
    new: dict[str, Fields] = {}
    for name, fields in now.items():
        if (pin := pins.tools.get(name)) is None:
            new[name] = fields
        elif pin.digest != digest_of(address, fields):
            found[name] = ToolChange("changed", name, pin.fields, fields, moved)
    gone = {name: pin for name, pin in pins.tools.items() if name not in now and name not in found}
    for name, fields in new.items():
        before = next((pin.fields for pin in gone.values() if _same_but_name(pin.fields, fields)), None)
        found[name] = ToolChange("new" if before is None else "renamed", name, before, fields)
    return found | {name: ToolChange("gone", name, pin.fields) for name, pin in gone.items()}


def _same_but_name(one: Fields, other: Fields) -> bool:
    return all(one.get(key) == other.get(key) for key in FIELDS if key != "name")


def pinned(
    server: str,
    address: str,
    tools: Iterable[Fields],
    before: ServerPins | None = None,
    *,
    resources: bool = False,
    prompts: bool = False,
    fault: Callable[[Fields], str] = lambda fields: "",
) -> ServerPins:
    """The pins of a server's present tools, to be written after a person has said yes. A tool that it lists
    twice has none. ``fault`` says why the schemas of a tool cannot be used."""
    pins, first = {}, dict(before.first) if before else {}
    for name, fields in by_name(tools)[0].items():
        digest = digest_of(address, fields)
        renewed = first.setdefault(name, digest) != digest
        pins[name] = ToolPin.of(fields, digest, renewed=renewed, fault=fault(fields))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return ServerPins(server, address, pins, first, resources, prompts, checked=CHECKED, at=now)


# The files


def pin_file(server: str, source: str) -> Path:
    """The file of the pins of a server that the configuration ``source`` names."""
    key = hashlib.sha256(f"{source}\n{server}".encode()).hexdigest()[:16]
    return state_dir() / "mcp" / f"{server}-{key}.pins"


def read_pins(path: Path) -> ServerPins | None:
    """The pins in a file; None if there is none. Raises UsageError if they cannot be read."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise ValueError("too large")
        said, _, data = path.read_bytes().partition(b"\n")
        if hashlib.sha256(data).hexdigest().encode() != said:
            raise ValueError("another digest")
        whole = json.loads(data)
        tools = {one[0]: _pin(*one) for one in whole.pop("tools")}
        return ServerPins(tools=tools, more=tuple(whole.pop("more", ())), **whole)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(f"The pins {path} cannot be read, so no tool of this server is called.") from None


def _pin(*kept: Any) -> ToolPin:
    name, digest, text, about, declares, says, renewed, fault = kept
    return ToolPin(name, digest, text, about, declares, tuple(says), renewed, fault)


def write_pins(path: Path, pins: ServerPins) -> None:
    """Replace the pins of a server. Raises UsageError."""
    whole = {
        **{key: getattr(pins, key) for key in OWN},
        "tools": [[getattr(pin, key) for key in KEPT] for pin in pins.tools.values()],
    }
    data = json.dumps(whole, ensure_ascii=True).encode()
    try:
        private_folder(path.parent)
        replace_file(path, [hashlib.sha256(data).hexdigest().encode(), b"\n", data], 0o600)
    except OSError as error:
        raise UsageError(f"The pins cannot be stored in {path.parent}: {error.strerror}.") from None


def forget_pins(path: Path) -> bool:
    """Remove the pins of a server; False if there were none. Raises UsageError."""
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UsageError(f"The pins {path} cannot be removed: {error.strerror}.") from None
    return True
