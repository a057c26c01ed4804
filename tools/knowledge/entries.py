"""The entries of the knowledge base as Org text: each is a headline, its properties, and its text in an
example block. Entries written by hand are read, too."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quoth.tools.call.service_types import Origin
from quoth.tools.errors import ToolError
from quoth.tools.org.document import BOM, WORDS, Entry, Org, dump, load
from quoth.tools.org.edit import add_lines, example, property_value, set_property, text_of_example
from quoth.tools.text import short
from quoth.tools.words import WORD, stems

FOLDER: Final = "knowledge"
QUEUE: Final = f"{FOLDER}/queue"
FILES: Final = {
    "note": f"{FOLDER}/inbox.org",
    "claim": f"{FOLDER}/claims.org",
    "learning": f"{FOLDER}/learnings.org",
}
MAX_CHARS: Final = 1_000_000  # of a source, which has its own file
ENTRY_CHARS: Final = 20_000  # of any other entry; these share a file
MOST_ORIGINS: Final = 100  # of an entry; further origins are not recorded
HEADING_CHARS: Final = 80
NAME_CHARS: Final = 48  # of the words in a name; a digest follows them
SEARCHED_CHARS: Final = 50_000  # of a text; the rest is not searched

_GUARD = "\u200b"  # zero width space: Org's own advice to keep text from being markup
_HEADLINE = re.compile(r"^\*+ ", re.MULTILINE)
_UNTEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")  # characters not allowed in a text file
# Characters in a headline that Org would read as a link, a time, a macro or a call, or Emacs as settings in
# the first line; and characters that reorder text.
_MARKUP = re.compile(r"[\[\]<>{}]|-\*-|(?:call|src)_|[^\S ]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_COLON = re.compile(r"(?<!\S):+|(?<=[^\W\d_]):+(?=\S)")  # of a tag, or of a link: ``:new:``, ``https:…``
_SETTINGS = re.compile("(?<=local variables):", re.IGNORECASE)  # beginning of Emacs settings
# Links that Emacs would follow in a property: any text in brackets, and these without brackets.
_LINK = re.compile(
    r"\[\[|<|\b(?:attachment|bbdb|docview|doi|elisp|eww|file\S*|ftp|gnus|help|id|info|irc|mailto|man|mhe|news"
    r"|rmail|shell|w3m|javascript|data):(?=\S)",
    re.IGNORECASE,
)
_OF_ORIGIN: Final = {"BY": "user", "AT": "at", "CHAT": "chat", "IN_SESSION": "session", "CALL": "call"}
_OPEN = re.compile(r"[ \t]*#\+(begin|end)_(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry as written in a file. ``row`` counts from 0. An entry written by hand has no digest."""

    name: str
    kind: str
    title: str
    text: str
    row: int = 0
    category: str = ""
    origins: tuple[Origin, ...] = ()
    addresses: tuple[str, ...] = ()
    digest: str = ""
    children: bool = False  # whether there are headlines below it

    @property
    def origin(self) -> Origin:
        return self.origins[0] if self.origins else Origin("", "")


@dataclass(frozen=True)
class Draft:
    """A new entry to be stored. Raises ToolError if its text is empty or too long."""

    kind: str
    title: str
    text: str
    origin: Origin
    category: str = ""
    addresses: Sequence[str] = ()

    def __post_init__(self) -> None:
        text = _UNTEXT.sub("\ufffd", self.text)
        if not text.strip():
            raise ToolError(f"The text of the {self.kind} is empty. Give the text to keep.")
        if len(text) > (most := ENTRY_CHARS if self.kind in FILES else MAX_CHARS):
            raise ToolError(f"The {self.kind} has {len(text):,} characters; the maximum is {most:,}.")
        object.__setattr__(self, "text", text)
        title = _UNTEXT.sub("\ufffd", self.title).strip() or short(" ".join(text.split()), HEADING_CHARS)
        object.__setattr__(self, "title", title)

    @property
    def digest(self) -> str:
        """A digest of the content, without the title."""
        same = "\0".join((self.kind, self.category, self.text.strip()))
        return hashlib.sha256(same.encode()).hexdigest()[:32]

    @property
    def name(self) -> str:
        """The words of the title and a part of the digest."""
        said = unicodedata.normalize("NFC", self.title[: 4 * NAME_CHARS]).casefold()
        words = "-".join(WORD.findall(said))[:NAME_CHARS].strip("-") or self.kind
        return f"{words}-{self.digest[:8]}"

    @property
    def path(self) -> str:
        return FILES.get(self.kind) or f"{QUEUE}/{self.name}.org"

    def appended(self, data: bytes) -> bytes:
        """The content of a file with the entry at its end."""
        org = load(data)
        heading = _heading(self.title, _todo_words(data))
        values = {"ID": self.name, "KIND": self.kind, "CATEGORY": self.category}
        if _plain(heading) != self.title:
            values["TITLE"] = self.title
        values |= _of_origin(self.origin, "")
        values |= {_nth("ADDRESS", nth): one for nth, one in enumerate(self.addresses, 1)}
        values["DIGEST"] = self.digest
        named = {"claim": "Claims", "learning": "Learnings", "note": "Inbox"}.get(self.kind, _plain(heading))
        head = [] if org.lines else [f"#+TITLE: {named}"]
        blank = [] if org.lines and not org.lines[-1].strip() else [""]
        drawer = [f":{name}: {_value(value)}" for name, value in values.items() if value]
        lines = [*head, *blank, f"* {heading}", ":PROPERTIES:", *drawer, ":END:", *example(self.text)]
        return dump(add_lines(org, lines))


def add_origin(data: bytes, of: Stored, origin: Origin) -> bytes:
    """The content of a file with one more origin for an entry. The same call counts as one origin."""
    if len(of.origins) >= MOST_ORIGINS or any(one == origin or same_call(one, origin) for one in of.origins):
        return data
    before, section, after = _cut(data, of)
    org = load(section)
    for name, value in _of_origin(origin, f"_{len(of.origins) + 1}" if of.origins else "").items():
        org = set_property(org, 1, name, _value(value))
    return before + dump(org) + after


def same_call(one: Origin, other: Origin) -> bool:
    return bool(one.call) and (one.session, one.call) == (other.session, other.call)


def without(data: bytes, gone: Stored) -> bytes:
    """The content of a file without an entry."""
    before, _, after = _cut(data, gone)
    return before + after


def _cut(data: bytes, of: Stored) -> tuple[bytes, bytes, bytes]:
    """The content before an entry's headline, and the content after its section."""
    org = load(data)
    stop = next(
        (row for row in range(of.row + 1, len(org.lines)) if _HEADLINE.match(org.lines[row])), len(org.lines)
    )
    parts = [Org(org.lines[a:b], org.ends[a:b]) for a, b in ((0, of.row), (of.row, stop), (stop, None))]
    before, section, after = map(dump, parts)
    return (BOM.encode() if org.bom else b"") + before, section, after


# Reading


@dataclass(frozen=True, slots=True)
class EntrySection:
    """A headline and its own text, parsed separately, with the words for searches."""

    level: int
    dead: bool
    entry: Stored | None
    faults: tuple[tuple[int, str], ...]
    title_stems: frozenset[str] = frozenset()
    stems: frozenset[str] = frozenset()


class KnowledgeFile:
    """The entries of a file. ``faults`` are sentences about parts that cannot be read. ``before`` is the file
    as parsed earlier; unchanged parts are not parsed again."""

    def __init__(self, data: bytes, path: str, before: KnowledgeFile | None = None) -> None:
        self.path = path
        self.entries: list[tuple[Stored, EntrySection]] = []
        self.faults: list[str] = []
        self.sections: dict[bytes, EntrySection] = {}  # by the digest of their text
        self.todo_words: Sequence[str] = ()
        try:
            text = data.decode("utf-8").removeprefix(BOM)
        except UnicodeDecodeError as error:
            self._fault(data.count(b"\n", 0, error.start), "this is not UTF-8 text")
            return
        if "\0" in text:
            self._fault(text.count("\n", 0, text.index("\0")), "this line contains a NUL character")
            return
        self.todo_words = _todo_words(data)
        self._read(text, before if before and before.todo_words == self.todo_words else None)

    def _fault(self, row: int, what: str) -> None:
        self.faults.append(f"{self.path}:{row + 1}: {what}. Nothing is changed in this file.")

    def _read(self, text: str, before: KnowledgeFile | None) -> None:
        known, placed = (before.sections, before.entries) if before else ({}, [])
        starts = [found.start() for found in _HEADLINE.finditer(text)]
        row, dead = 0, 0  # level below which all headlines are commented out or archived
        for first, stop in zip([0, *starts], [*starts, len(text)], strict=True):
            source = text[first:stop]
            digest = hashlib.blake2b(source.encode(), digest_size=16).digest()
            section = known.get(digest) or _section(source, self.todo_words, self.path)
            self.sections[digest] = section
            dead = 0 if section.level <= dead else dead
            dead = dead or (section.level if section.dead else 0)
            for at, what in section.faults:
                self._fault(row + at, what)
            if section.entry and not dead and not section.faults:
                below = stop < len(text) and text[stop : stop + section.level + 1].strip("*") == ""
                nth = len(self.entries)
                if nth < len(placed) and _is_at(placed[nth], section, row, below):
                    self.entries.append(placed[nth])
                else:
                    self.entries.append((replace(section.entry, row=row, children=below), section))
            row += source.count("\n")

    def with_digest(self, digest: str) -> Stored | None:
        return next((one for one, _ in self.entries if one.digest == digest), None)


def _is_at(placed: tuple[Stored, EntrySection], section: EntrySection, row: int, children: bool) -> bool:
    return placed[1] is section and placed[0].row == row and placed[0].children == children


def _section(source: str, words: Sequence[str], path: str) -> EntrySection:
    org = load(source.encode(), words)
    entry = org.entries[-1]
    faults = tuple(_faults(org, entry))
    stored = _stored(org, entry, path)
    if stored is None:
        return EntrySection(entry.level, False, None, faults)
    dead = entry.commented or "ARCHIVE" in entry.tags
    title = frozenset(stems(f"{stored.title} {stored.category}"))
    return EntrySection(
        entry.level, dead, stored, faults, title, title | frozenset(stems(stored.text[:SEARCHED_CHARS]))
    )


def _faults(org: Org, entry: Entry) -> Iterator[tuple[int, str]]:
    if entry.body < entry.stop and org.lines[entry.body].strip(" \t").upper() == ":PROPERTIES:":
        yield entry.body, "these properties are not lines of :NAME: value that end with :END:"
    for one in entry.elements:
        if one.kind == "text" and (found := _OPEN.match(org.lines[one.first])):
            other, where = ("end", "below") if found[1].lower() == "begin" else ("begin", "above")
            yield one.first, f"{found[0].strip()} has no #+{other}_{found[2]} {where} it"


def _stored(org: Org, entry: Entry, path: str) -> Stored | None:
    values: dict[str, str] = {}
    for one in entry.properties:
        values.setdefault(one.name.upper(), _read_value(one.value))
    kind = values.get("KIND") or next((kind for kind, file in FILES.items() if file == path), "")
    kind = kind or ("source" if path.startswith(QUEUE) else "note")
    title = _plain(entry.title)
    if "TITLE" in values and _plain(_heading(values["TITLE"], ())) == title:
        title = values["TITLE"]  # unless a person changed the headline
    text = _text(org, entry, bool(values.get("DIGEST")))
    if entry.level == 0:
        named = [one.value for one in org.keywords("TITLE")]
        title = " ".join(named) or path.rpartition("/")[2].removesuffix(".org")
        if not text:
            return None
    return Stored(
        values.get("ID") or title,
        kind,
        title,
        text,
        category=values.get("CATEGORY", ""),
        origins=tuple(_origins(values)),
        addresses=tuple(_numbered(values, "ADDRESS")),
        digest=values.get("DIGEST", ""),
    )


def _text(org: Org, entry: Entry, ours: bool) -> str:
    """The text of an entry: its example block, and the text that a person wrote below it."""
    rows = {*range(entry.body, entry.stop)}
    block = None
    for one in entry.elements:
        here = range(one.first, one.last + 1)
        if block is None and ours and one.kind == "block" and one.name == "EXAMPLE" and not one.depth:
            block = text_of_example(org, one)
            rows.difference_update(here)
        elif entry.level == 0 and one.kind in ("keyword", "comment"):
            rows.difference_update(here)
    more = "\n".join(org.lines[row] for row in sorted(rows)).strip()
    return "\n".join(part for part in (block, more) if part)


def _origins(values: Mapping[str, str]) -> Iterator[Origin]:
    nth = 1
    while any(_nth(name, nth) in values for name in _OF_ORIGIN):
        given = {field: values.get(_nth(name, nth), "") for name, field in _OF_ORIGIN.items()}
        yield Origin(**given)
        nth += 1


def _numbered(values: Mapping[str, str], name: str) -> Iterable[str]:
    nth = 1
    while found := values.get(_nth(name, nth)):
        yield found
        nth += 1


# Words of Org


def _nth(name: str, nth: int) -> str:
    return name if nth == 1 else f"{name}_{nth}"


def _of_origin(origin: Origin, ending: str) -> dict[str, str]:
    given = {f"{name}{ending}": getattr(origin, field) for name, field in _OF_ORIGIN.items()}
    return {name: value for name, value in given.items() if value}


def _value(value: str) -> str:
    """A value as written in a property. Emacs follows links in properties, so a link that could run code is
    written in a form that is not a link."""
    value = _UNTEXT.sub("\ufffd", value)
    if not _LINK.search(value):
        return property_value(value)
    return re.sub(r"[:\[<]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value))


def _read_value(text: str) -> str:
    if text.startswith('"'):
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return found if isinstance(found, str) else text
    return text


def _todo_words(data: bytes) -> Sequence[str]:
    return load(data).todo_words if re.search(rb"#\+\w*TODO:", data, re.IGNORECASE) else WORDS


def _heading(title: str, todo_words: Sequence[str]) -> str:
    """A title as a headline without markup, for people. If it is shortened, the property TITLE has the whole
    title."""
    plain = _MARKUP.sub(" ", _UNTEXT.sub(" ", _plain(title[: 8 * HEADING_CHARS])))
    words = " ".join(_COLON.sub(" ", plain).split())
    words = short(_SETTINGS.sub("", words), HEADING_CHARS).strip() or "Untitled"
    first = words.split(" ", 1)[0]
    return f"{_GUARD}{words}" if first in (*WORDS, *todo_words, "COMMENT") else words


def _plain(heading: str) -> str:
    return heading.replace(_GUARD, "").strip()
