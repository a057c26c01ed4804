"""The steps of a task for a small model: look into each file that it names, search, read, compute, change.
The first that is open says what the model must do next (coach.py). Each rule reads a TaskState alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from quoth.agent.reply import CallRecord
from quoth.agent.run.evidence import (
    READER,
    Asked,
    asked_by,
    dates_in,
    found_among,
    has_read,
    has_shown,
    has_written,
    hit_files,
    is_file_name,
    is_in_vain,
    numbers_in,
    numbers_shown,
    results_in,
    texts_shown,
    words_in,
)
from quoth.neuro.prompt.grammar import NO_BOUNDS, Bounds
from quoth.neuro.prompt.surroundings import may_compute
from quoth.tools.call.call import PROGRAMS
from quoth.tools.lisp.printer import print_string
from quoth.tools.lisp.reader import read_one
from quoth.tools.registry.table import CognitiveTool

LISTER = "list-files"
LISTS = r"files|folder|a file|file named"  # words of a task about the files themselves
COMPARES = r"(?i)\b(?:both|but|compar\w+|differ\w*|missing|only|same)\b"
EXPLAINS = r"(?i)\b(?:explain|meaning|means?|purpose|stand for|why)\b"
EVERYWHERE = r"(?i)\b(?:all|both|each|every|everywhere|rename|throughout|where)\b"
MEAN = r"(?i)\b(?:average|mean)\b"
NOW = r"(?i)\b(?:ago|left|now|since|till|today|until)\b"
TABLES = (".csv", ".tsv")
PARTED = (*TABLES, ".cfg", ".ini", ".json", ".org", ".toml", ".yaml", ".yml")  # a line needs its head
ARITHMETIC = Bounds(arithmetic=True)
MOST_DATES = 8  # each pair of them is one way to write the program
MOST_WORDS = 3  # that are searched in vain


class Step(NamedTuple):
    """A step of the task that is still open: what to do, for the model, and the tools that it may use for it
    now."""

    next: str
    may_use: Callable[[CognitiveTool], bool]
    bounds: Bounds = NO_BOUNDS


class TaskState(NamedTuple):
    """What a run knows when its next step is looked for: what its task asks for, the files that it names and
    that may exist, the files of the place, and the calls so far."""

    task: str
    asked: Asked
    named: tuple[str, ...]
    listed: tuple[str, ...]
    calls: Sequence[CallRecord]
    doubted: bool  # the last answer was doubted
    today: str  # ISO


def named_files(task: str, listed: Sequence[str]) -> tuple[str, ...]:
    """The files that a task names and that may exist, in its order; then those without an ending, like
    LICENSE."""
    asked = asked_by(task)
    bare = [name for name in listed if re.fullmatch(r"[A-Z]\w+", name) and re.search(rf"\b{name}\b", task)]
    spaced = [name for name in listed if " " in name and name in task]  # "my notes.txt" names no notes.txt
    whole = [name for name in asked.files if not any(one.endswith(f" {name}") for one in spaced)]
    return tuple(filter(None, (_file_named(name, asked, listed) for name in (*whole, *spaced, *bare))))


def _file_named(name: str, asked: Asked, listed: Sequence[str]) -> str:
    """The file that a task names, if it exists or may exist; empty if it does not."""
    if found := found_among(name, listed):
        return found
    if name in asked.made:
        return ""
    unknown = any(line.startswith("… and ") for line in listed) or any(
        name.startswith(line.split(" (")[0]) for line in listed if line.endswith((" files)", " file)"))
    )
    return name if unknown else ""


def _look(seen: TaskState) -> Step | None:
    """Look into each file that the task names, and read it if a part is not enough."""
    whole = (
        seen.asked.changes
        or seen.asked.computes
        or re.search(COMPARES, seen.task)
        or any(map(is_in_vain, seen.calls))
    )
    for file in seen.named:
        if has_read(file, seen.calls):
            continue
        if whole or file.endswith(TABLES):
            return Step(f"Next: read {file}.", _reads, _at(file))
        if not has_shown(file, seen.calls):
            return Step(f"Next: look into {file}.", _looks_into, _at(file))
    return None


def _search_first(seen: TaskState) -> Step | None:
    """A question that names no file begins with a search, not with a guess of the file."""
    if seen.named or seen.calls or not seen.listed or not seen.asked.only_asks or may_compute(seen.task):
        return None
    if re.search(LISTS, seen.task):
        return Step("", _searches)
    return Step("", _searches_texts, _at("."))


def _search_on(seen: TaskState) -> Step | None:
    """After a search without hits: read the file that it names or that was searched, or try another word."""
    if not seen.calls or not is_in_vain(last := seen.calls[-1]):
        return None
    unread = [file for file in seen.listed if not has_read(file, seen.calls)]
    named = [file for file in unread if print_string(file) in last.result.message]
    if named and f"({READER} " in last.result.message:
        return Step(f"Next: read {named[0]}.", _reads, _at(named[0]))
    path = str(last.form.args.get("path", "."))
    if (
        is_file_name(path)
        and not has_read(path, seen.calls)
        and path in texts_shown(seen.task, seen.calls[:-1])
    ):
        return Step(f"Next: read {path}.", _reads, _at(path))
    tried = [str(call.form.args.get("pattern", "")).lower() for call in seen.calls if is_in_vain(call)]
    words = [word for word in words_in(seen.task) if not any(word in one for one in tried)]
    if not words or len(tried) >= MOST_WORDS:
        return None
    return Step(f"Next: search for another word, such as {', '.join(words[:3])}.", _searches, _at("."))


def _read_hit(seen: TaskState) -> Step | None:
    """Read a file that a search found: one whose lines need their head; after a doubt, or for
    an explanation, any."""
    near = [file for file in hit_files(seen.calls) if not has_read(file, seen.calls)]
    always = seen.doubted or re.search(EXPLAINS, seen.task)
    first = next((file for file in near if always or file.endswith(PARTED)), "")
    return Step(f"Next: read {first}.", _reads, _at(first)) if first else None


def _rows(seen: TaskState) -> Step | None:
    """Search a table that was read for the rows that the task asks for: small models named all of them."""
    tables = [file for file in seen.named if file.endswith(TABLES) and not seen.asked.computes]
    searched = {str(call.form.args.get("path")) for call in seen.calls if "pattern" in call.form.args}
    left = next((file for file in tables if has_read(file, seen.calls) and file not in searched), "")
    if not left or seen.asked.changed:
        return None
    return Step(f"Next: search {left} for the rows of the task.", _searches_texts, _at(left))


def _reckon(seen: TaskState) -> Step | None:
    """Compute with the dates that were read: a weekday, or the days from one date to a later one."""
    if not (seen.asked.days or seen.asked.weekday) or any(call.form.tool == PROGRAMS for call in seen.calls):
        return None
    dates = dates_in([seen.task, *results_in(seen.calls)])
    now = [seen.today] if re.search(NOW, seen.task) else []
    days = sorted(dict.fromkeys([*dates, *now]))
    programs = [f'(weekday "{day}")' for day in dates] if seen.asked.weekday else []
    if seen.asked.days:
        programs += [f'(days-between "{one}" "{later}")' for one, later in combinations(days, 2)]
    if not dates or not programs or len(days) > MOST_DATES:
        return None
    return Step("Next: compute it with eval.", _computes, Bounds(only={"form": tuple(programs)}))


def _compute(seen: TaskState) -> Step | None:
    """Compute with a program once the numbers are known, with all numbers of an expression; two programs are
    enough."""
    programs = [call for call in seen.calls if call.form.tool == PROGRAMS]
    if not seen.asked.computes or len(programs) > 1:
        return None
    given = list(numbers_in(seen.task))
    if any(call.result.ok for call in programs):
        used = set(numbers_in(str(programs[0].form)))
        left = [number for number in given if number not in used] if seen.asked.expression else []
        return (
            Step(f"Next: compute it again with eval, also with {left[0]}.", _computes, ARITHMETIC)
            if left
            else None
        )
    numbers = numbers_shown("", seen.calls) if seen.named else set(given if seen.asked.expression else ())
    if len(numbers) < 2:
        return None
    how = ", as (mean [1 2 3])" if re.search(MEAN, seen.task) else ""
    return Step(f"Next: compute it with eval, from these numbers{how}.", _computes, ARITHMETIC)


def _change(seen: TaskState) -> Step | None:
    """Change each file that the task asks to change, and write each that it asks to make. No other file is
    forced on the model."""
    if seen.doubted:  # the doubt lets it answer
        return None
    for file in (found_among(name, seen.named) for name in seen.asked.changed):
        if file and has_read(file, seen.calls) and not has_written(file, seen.calls):
            if all(map(_fails, seen.calls[-2:])) and len(seen.calls) > 1:
                continue
            if seen.asked.adds:
                add = _at(file, needed=("new",), unused=("old", "edits", "all"))
                return Step(f"Next: add it at the end of {file}.", _edits, add)
            if places := _places(seen.calls[-1]) if seen.calls else ():
                one = _at(file, unused=("old", "new", "all"))
                one = one._replace(only={**one.only, "edits": places})
                return Step(f"Next: choose the place for the change in {file}.", _edits, one)
            unused = ("edits",) if re.search(EVERYWHERE, seen.task) else ("edits", "all")
            return Step(
                f"Next: make the change in {file}.", _edits, _at(file, needed=("old", "new"), unused=unused)
            )
    for name in seen.asked.made if seen.listed else ():
        if not found_among(name, seen.named) and not has_written(name, seen.calls):
            how = (creates, _at(name)) if seen.named else (any_tool, NO_BOUNDS)
            return Step(f"Next: write {name}.", *how)
    return None


STEPS: tuple[Callable[[TaskState], Step | None], ...] = (
    _look,
    _search_on,
    _search_first,
    _read_hit,
    _rows,
    _reckon,
    _compute,
    _change,
)


def _fails(call: CallRecord) -> bool:
    return call.result.status in ("error", "invalid")


def _places(call: CallRecord) -> tuple[Any, ...]:
    """The edits that an edit may have meant whose text is there a few times: one for each place that its
    message names."""
    old, new = call.form.args.get("old"), call.form.args.get("new")
    said = call.result.message.removeprefix(f"{call.form.args.get('path')} contains that text ")
    listed = said.partition(" times; give more of it, such as :old ")[2]
    if said == call.result.message or not (isinstance(old, str) and isinstance(new, str)):
        return ()
    ways = [str(read_one(way)) for way in re.findall(r'"(?:[^"\\]|\\.)*"', listed)]
    if not any(old in way for way in ways):  # the file has CRLF
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    return tuple([[way, way.replace(old, new)]] for way in ways if old in way)


def _at(path: str, needed: Collection[str] = (), unused: Collection[str] = ()) -> Bounds:
    return Bounds(only={"path": (path,)}, needed=needed, unused=unused)


def _reads(tool: CognitiveTool) -> bool:
    return tool.name == READER


def _looks(tool: CognitiveTool) -> bool:
    return not (changes(tool) or tool.ends_turn)


def _looks_into(tool: CognitiveTool) -> bool:
    return _looks(tool) and tool.name not in (PROGRAMS, LISTER)


def _searches(tool: CognitiveTool) -> bool:
    return _looks(tool) and tool.name not in (PROGRAMS, READER)


def _searches_texts(tool: CognitiveTool) -> bool:
    return tool.name != READER and _looks_into(tool)


def _computes(tool: CognitiveTool) -> bool:
    return tool.name == PROGRAMS


def any_tool(_: CognitiveTool) -> bool:
    return True


def writes(tool: CognitiveTool) -> bool:
    return bool({"writes", "deletes"} & set(tool.effects))


def changes(tool: CognitiveTool) -> bool:
    """Whether a tool changes anything, also outside of files."""
    return bool({"deletes", "memory", "messages", "runs", "writes"} & set(tool.effects))


def _edits(tool: CognitiveTool) -> bool:
    """Whether a tool changes a part of a file: it also reads it. Small models that wrote the whole file
    lost the rest of it."""
    parameters = {one.name for one in tool.params}
    return writes(tool) and "reads" in tool.effects and {"path", "old", "new"} <= parameters


def creates(tool: CognitiveTool) -> bool:
    return writes(tool) and "reads" not in tool.effects
