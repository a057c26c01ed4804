"""Export of memory blocks as Org or JSON, and import of such a text, which a person may have edited."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from quoth.tools.call.service_types import Block, BlockKind, BlockPermission, BlockVersion, utc_time
from quoth.tools.errors import ToolError, UsageError, did_you_mean, no_such
from quoth.tools.history.event import EVENTS, row_texts
from quoth.tools.lisp.printer import print_string
from quoth.tools.memory import checks
from quoth.tools.memory.stored import Blocks, delta
from quoth.tools.org.document import Entry, Org, load
from quoth.tools.org.edit import example, property_value, text_of_example
from quoth.tools.storage.database import Store
from quoth.tools.text import excerpt

TITLE: Final = "Memory"
# The fields of a block besides its text, in the order of the file. A version has only the last three.
FIELDS: Final = ("label", "description", "kind", "permission", "limit", "version", "created", "updated", "by")
OF_VERSION: Final = ("version", "at", "by")
CONTENT: Final = ("text", "description", "kind", "permission", "limit")  # fields that a new version changes
NUMBERS: Final = ("limit", "version")
MOST: Final = 1_000_000_000  # maximum of a number in the file, such as a version
TIMES: Final = ("created", "updated", "at")
KNOWN: Final = {"kind": get_args(BlockKind), "permission": get_args(BlockPermission)}
HEADING = re.compile(r"[^\w .,-]")  # characters of Org links, tags, priorities and keywords


@dataclass(frozen=True)
class Carried:
    """An exported block with its earlier texts, newest first."""

    block: Block
    versions: Sequence[BlockVersion] = ()


# Writing


def as_json(carried: Carried) -> dict[str, Any]:
    """A block as JSON data, with the keys of ``FIELDS``, its text and, if it has any, its versions."""
    data = {name: getattr(carried.block, name) for name in FIELDS} | {"text": carried.block.text}
    if carried.versions:
        data["versions"] = [
            {name: getattr(one, name) for name in OF_VERSION} | {"text": one.text} for one in carried.versions
        ]
    return data


def as_org(every: Sequence[Carried]) -> str:
    """The blocks as an Org file: for each a headline, its properties, and its text in an example block."""
    lines = [f"#+TITLE: {TITLE}"]
    for one in every:
        lines += ["", *_section(1, one.block.label, one.block, FIELDS, one.block.text)]
        for version in one.versions:
            lines += ["", *_section(2, f"Version {version.version}", version, OF_VERSION, version.text)]
    return "".join(f"{line}\n" for line in lines)


def _section(level: int, name: str, of: Block | BlockVersion, fields: Sequence[str], text: str) -> list[str]:
    title = re.sub(r"\s+", " ", HEADING.sub("_", name))
    values = {field: getattr(of, field) for field in fields}
    if title == name and _title_of(title) == name:
        values.pop("label", None)
    if isinstance(of, Block) and of.limit == checks.LIMITS.get(of.kind, 0):
        values.pop("limit")
    lines = [f"{'*' * level} {title}", ":PROPERTIES:"]
    lines += [f":{field.upper()}: {property_value(value)}" for field, value in values.items() if value]
    return [*lines, ":END:", *example(text)]


def _title_of(title: str) -> str:
    """The title that Org reads from such a headline."""
    return load(f"* {title}".encode()).entries[1].title


# Reading


def read_carried(text: str, name: str) -> list[Carried]:
    """The blocks in a text written by ``as_org``, ``as_json`` or a person; ``name`` is the name of its file.
    Raises UsageError that names the place if it cannot be read."""
    found = [*(_of_json(text, name) if text.lstrip()[:1] in ("[", "{") else _of_org(text, name))]
    seen: dict[str, str] = {}
    for where, one in found:
        label = one.block.label
        if label in seen:
            raise UsageError(f"{where}: The block {label} is already given at {seen[label]}.")
        seen[label] = where
    return [one for _, one in found]


def _of_json(text: str, name: str) -> Iterator[tuple[str, Carried]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UsageError(f"{name}{place} is not valid JSON.") from None
    for number, one in enumerate(data if isinstance(data, list) else [data], 1):
        where = f"{name}, block {number}"
        if not isinstance(one, dict):
            raise UsageError(f"{where}: A block is an object with label, kind and text, not {_shown(one)}.")
        versions = one.get("versions", [])
        if not isinstance(versions, list) or not all(isinstance(each, dict) for each in versions):
            raise UsageError(f"{where}: versions must be an array of objects with version and text.")
        fields = {key: value for key, value in one.items() if key != "versions"}
        yield where, _carried(_block(fields, where), [_version(each, where) for each in versions], where)


def _of_org(text: str, name: str) -> Iterator[tuple[str, Carried]]:
    org = load(text.encode())
    if len(org.entries) == 1 and not any(one.value == TITLE for one in org.keywords("TITLE")):
        raise UsageError(
            f"{name} does not contain memory blocks. Write a headline for each, as quoth memory export does."
        )
    for index, entry in enumerate(org.entries):
        if entry.level == 1:
            below = [one for one in org.entries if entry.row < one.row < entry.end]
            where = f"{name}:{entry.row + 1}"
            fields = _fields(org, entry, FIELDS, where)
            block = _block({"label": org.entries[index].title} | fields, where)
            yield where, _carried(block, [_version_of_org(org, one, name) for one in below], where)
        elif entry.level > 1 and org.entries[entry.parent].level != 1:
            raise UsageError(
                f"{name}:{entry.row + 1}: Unexpected headline. One star is a block; two stars, below a block,"
                " are an earlier version of its text."
            )


def _version_of_org(org: Org, entry: Entry, name: str) -> BlockVersion:
    where = f"{name}:{entry.row + 1}"
    return _version(_fields(org, entry, OF_VERSION, where), where)


def _fields(org: Org, entry: Entry, known: Sequence[str], where: str) -> dict[str, Any]:
    """The fields in a headline's properties and its example block."""
    found: dict[str, Any] = {}
    for one in entry.properties:
        field = one.name.lower()
        if field in known:
            found[field] = _value(field, one.value, where)
        elif len(field) > 3 and (near := did_you_mean(one.name, [name.upper() for name in known])):
            raise UsageError(f"{where}: A block has no property {one.name}.{near}")
    blocks = [
        one for one in entry.elements if one.kind == "block" and one.name == "EXAMPLE" and not one.depth
    ]
    if len(blocks) != 1:
        raise UsageError(
            f"{where}: The text of a block must be in one #+begin_example block; this headline has"
            f" {len(blocks) or 'none'}."
        )
    return found | {"text": text_of_example(org, blocks[0])}


def _value(field: str, text: str, where: str) -> Any:
    if field in NUMBERS:
        return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else text
    if not text.startswith('"'):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise UsageError(f"{where}: {field.upper()} begins with a quote but is not a JSON string.") from None


# Import


def take_in(
    stored: Blocks, every: Sequence[Carried], now: str, by: str, replace_them: bool
) -> tuple[list[str], list[str]]:
    """Store all blocks in one transaction. Returns the labels of the new blocks and of the replaced blocks.

    A block that is already the same stays. A replaced block gets the text of the file as its next version,
    and the stricter of both permissions; it keeps its own earlier versions, not those of the file. Raises
    UsageError if a label is taken and may not be replaced, ToolError if a block cannot be stored; then
    nothing is changed."""
    wanted = [(_whole(one.block, now, by), one.versions) for one in every]
    there = {block.label: found for block, _ in wanted if (found := stored.get(block.label))}
    wanted = [(_no_looser(block, there.get(block.label)), versions) for block, versions in wanted]
    wanted = [one for one in wanted if not _same(one[0], there.get(one[0].label))]
    taken = [block.label for block, _ in wanted if block.label in there]
    if taken and not replace_them:
        blocks = "blocks exist" if len(taken) > 1 else "block exists"
        raise UsageError(
            f"{len(taken)} {blocks} already: {', '.join(taken)}. Nothing was changed."
            " To replace, add --replace."
        )
    for block, versions in wanted:
        if old := there.get(block.label):  # its old text stays as an earlier version
            new = replace(block, version=old.version + 1, created=old.created, updated=now, by=by)
            stored.put(new, delta(BlockVersion(old.version, old.text, old.updated, old.by), new.text))
            continue
        texts = [*reversed(versions), BlockVersion(block.version, block.text, block.updated, block.by)]
        for older, newer in zip([None, *texts], texts, strict=False):
            step = replace(block, text=newer.text, version=newer.version, updated=newer.at, by=newer.by)
            stored.put(step, delta(older, newer.text) if older else None)
    return [block.label for block, _ in wanted if block.label not in there], taken


def _no_looser(block: Block, there: Block | None) -> Block:
    """The block with the stricter permission of the two: a file may change a block's text, but only a person
    may loosen its permission."""
    return replace(block, permission=checks.stricter(block.permission, there.permission)) if there else block


def _same(block: Block, there: Block | None) -> bool:
    """Whether the blocks differ only in author and times."""
    return there is not None and all(getattr(block, name) == getattr(there, name) for name in CONTENT)


def _whole(block: Block, now: str, by: str) -> Block:
    checks.checked_label(block.label)
    given = {name: getattr(block, name) for name in ("text", "limit", "description")}
    checks.checked_changes(given)
    checks.fits(block)
    limit = 0 if block.limit == checks.LIMITS.get(block.kind, 0) else block.limit  # as it is stored
    made = block.created or block.updated or now
    return replace(block, limit=limit, created=made, updated=block.updated or made, by=block.by or by)


# Checking


def _block(given: Mapping[str, Any], where: str) -> Block:
    if "label" not in given:
        raise UsageError(f"{where}: The block has no label.")
    where = f"{where}: {excerpt(str(given['label']))}"
    if "kind" not in given:
        raise UsageError(f"{where} has no kind: core, working or archival.")
    return Block(**_checked(given, (*FIELDS, "text"), where))


def _carried(block: Block, versions: list[BlockVersion], where: str) -> Carried:
    versions.sort(key=lambda one: -one.version)
    newer = block.version
    for older in versions:
        if not 0 < older.version < newer:
            raise UsageError(
                f"{where}: {excerpt(block.label)} is version {block.version}; its earlier versions must be"
                f" numbered 1 to {block.version - 1}, each once, not {older.version}."
            )
        newer = older.version
    return Carried(block, versions)


def _version(given: Mapping[str, Any], where: str) -> BlockVersion:
    if "version" not in given:
        raise UsageError(f"{where}: An earlier version of a text has no version number.")
    return BlockVersion(**_checked({"text": ""} | dict(given), (*OF_VERSION, "text"), where))


def _checked(given: Mapping[str, Any], names: Sequence[str], where: str) -> dict[str, Any]:
    found: dict[str, Any] = dict(given)
    for name, value in given.items():
        if name not in names:
            hint = did_you_mean(name, names, "There are")
            raise UsageError(f"{where}: A block has no {excerpt(name)}.{hint}")
        if not _fits(name, value):
            kind = "a whole number" if name in NUMBERS else "text"
            kind += f", at most {MOST:,}" if isinstance(value, int) and value > MOST else ""
            raise UsageError(f"{where}: {name} must be {kind}, not {_shown(value)}.")
        if name not in NUMBERS and (fault := checks.fault_of(value)):
            raise UsageError(f"{where}: {name} contains {fault}.")
        if name in KNOWN and value not in KNOWN[name]:
            raise UsageError(f"{where}: {no_such(name, value, KNOWN[name])}")
        if name in TIMES:
            try:
                found[name] = utc_time(name, value)
            except ToolError as error:
                raise UsageError(f"{where}: {error}") from None
    return found


def _fits(name: str, value: Any) -> bool:
    if name in NUMBERS:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST
    return isinstance(value, str)


def _shown(value: Any) -> str:
    return excerpt(json.dumps(value, ensure_ascii=False))


# Traces of a forgotten block in the records of a workspace.


@dataclass(frozen=True)
class Traces:
    """The number of audited calls that name a label, and the sessions whose transcripts name it."""

    calls: int
    sessions: tuple[str, ...]


def names(text: str, label: str) -> bool:
    """Whether a text contains a label as a separate word, plain or escaped as in a Lisp string."""
    written = print_string(label)[1:-1]
    word = rf"(?<![\w-])(?:{re.escape(label)}|{re.escape(written)})(?![\w-])"
    return re.search(word, text) is not None


def _texts_in_events(store: Store, *words: str) -> Iterator[tuple[str, str]]:
    """The texts of audit rows that are stored in events, if they contain one of the words. Only sessions with
    such events are read, because nearly all of a million rows have none."""
    sql = (
        f"SELECT * FROM (SELECT {EVENTS[0]} AS result, {EVENTS[1]} AS called FROM audit"  # noqa: S608
        " WHERE said != '' AND session IN (SELECT session FROM events WHERE kind IN ('call', 'receipt')"
        " AND (instr(coalesce(shown, form), ?1) OR instr(coalesce(shown, form), ?2))))"
        " WHERE instr(result || called, ?1) OR instr(result || called, ?2)"
    )
    for told in store.execute(sql, words):
        if (texts := row_texts(*told)) is not None:
            yield texts


def traces(store: Store, label: str) -> Traces:
    """Where a label still appears as a separate word, plain or escaped as in a Lisp string."""
    written = print_string(label)[1:-1]
    audit = store.execute(
        "SELECT form || ' ' || message FROM audit"
        " WHERE instr(form || message, ?) OR instr(form || message, ?)",
        (label, written),
    )
    audit += [(f"{form} {message}",) for form, message in _texts_in_events(store, label, written)]
    # Requests are left out: they repeat other events and the examples of the tools.
    events = store.execute(
        "SELECT session, coalesce(shown, form) FROM events WHERE kind != 'request'"
        " AND (instr(coalesce(shown, form), ?) OR instr(coalesce(shown, form), ?)) ORDER BY at",
        (label, written),
    )
    calls = sum(1 for (text,) in audit if names(text, label))
    return Traces(calls, tuple(dict.fromkeys(session for session, text in events if names(text, label))))
