"""A plan's file while it is flown: TODO words, results and log lines put in, whole or not at all.

Knows the disk and edits of Org; must not know tools or how steps run. A change that an editor has made
meanwhile is kept: what is to be written is put into the text as it is now, at steps that are still what was
flown, and nothing is written at others.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quoth.agent.plan.markdown_reader import read_markdown
from quoth.agent.plan.model import Part, Plan
from quoth.agent.plan.org_reader import read_plan
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.org.sections import OrgParts
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.file_lock import hold

MARKDOWN = (".md", ".markdown")
_ATTEMPT = re.compile(r"(\w+) \[[^]]*\] (digest \w+, session .*?)(?:: |$)")
TRIES = 20  # to write while somebody else writes too


class PlanChangedError(QuothError):
    """The file is not what was flown, so nothing was written at this step."""


@dataclass(frozen=True)
class FileEdit:
    """What is to stand at a part: its TODO word, lines of its log (the oldest first), and results by block,
    under None what a model said; a result that is None is taken out. ``digest`` is that of what was flown;
    empty: whatever it is. ``over`` are the words that ``word`` may take the place of; empty: all."""

    id: str
    word: str
    digest: str = ""
    log: Sequence[str] = ()
    results: Mapping[int | None, str | None] = field(default_factory=dict)
    over: Sequence[str] = ()


class PlanFile:
    """The file of a plan. ``shown`` is its path as it was given."""

    def __init__(self, path: str | Path) -> None:
        self.shown = str(path)
        try:
            self.path = Path(path).resolve()
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{self.shown} cannot be found: {error}.") from None
        self.is_org = self.path.suffix.lower() not in MARKDOWN
        self._data = b""
        self._org: OrgParts | None = None
        self.plan = self._taken(self._bytes())

    def _bytes(self) -> bytes:
        try:
            if not stat.S_ISREG(mode := self.path.stat().st_mode) and not stat.S_ISDIR(mode):
                raise UsageError(f"{self.shown} is no file; a plan is a file.")
            return self.path.read_bytes()
        except FileNotFoundError:
            raise UsageError(f"There is no plan {self.shown}.") from None
        except IsADirectoryError:
            raise UsageError(f"{self.shown} is a folder; a plan is a file.") from None
        except OSError as error:
            raise UsageError(f"{self.shown} cannot be read: {error.strerror}.") from None

    def _taken(self, data: bytes) -> Plan:
        self._data = data
        if not self.is_org:
            return read_markdown(data, self.shown)
        org, plan = read_plan(data, self.shown)
        self._org = OrgParts(org)
        return plan

    def place(self, part: Part) -> str:
        """Where a part stands in the file now, for people and editors."""
        now = self.plan.by_id.get(part.id)
        if now is None or self._org is None:
            return str(part.place)
        return f"{self.shown}:{self._org.row(now.entry) + 1}"

    @property
    def notes(self) -> list[str]:
        """Why nothing is written into the file, if a person wants it so."""
        if self.is_org and self._is_protected():
            return [f"{self.shown} is write-protected, so nothing is written into it."]
        return []

    def _is_protected(self) -> bool:
        """Whether it is not to be written to, also by those whom no mode keeps from it."""
        try:
            mode = self.path.stat().st_mode
        except OSError:
            return False  # what is wrong with it is said by who reads it
        return not (mode & 0o222 and os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))

    def put(self, marks: Sequence[FileEdit]) -> list[str]:
        """Write marks into the file; what cannot be written comes back as sentences. A plan in Markdown, or
        one that is write-protected, is left as it is."""
        for _ in range(TRIES):
            try:
                self.look()
            except UsageError as error:
                return [str(error)]
            org, faults = None if self._is_protected() else self._org, []
            for mark in marks:
                try:
                    part = self._part(mark)
                    org = _marked(org, part, mark) if org is not None else None
                except QuothError as error:
                    faults.append(str(error))
            new = self._data if org is None else org.dump()
            if new == self._data:
                return faults
            try:
                if self._replace(new):
                    self._data, self._org = new, org
                    return faults
            except UsageError as error:
                return [*faults, str(error)]
            except OSError as error:
                return [*faults, f"{self.shown} cannot be written: {error.strerror}."]
        return [f"{self.shown} is being written by another program all the time; nothing was written."]

    def look(self) -> Plan:
        """The plan as it is now; the file is read again if it is not what we have written. Raises
        UsageError."""
        data = self._bytes()
        if data != self._data:
            self.plan = self._taken(data)
        return self.plan

    def _part(self, mark: FileEdit) -> Part:
        part = self.plan.by_id.get(mark.id)
        if part is None:
            raise PlanChangedError(
                f"{self.shown} was changed meanwhile: there is no step {mark.id} any more."
            )
        if mark.digest and self.plan.digest(part) != mark.digest:
            raise PlanChangedError(
                f"{part.place}: {self.shown} was changed meanwhile: {mark.id} is not what is flown, so"
                f" {mark.word} is not written there."
            )
        return part

    def _replace(self, new: bytes) -> bool:
        """Put the new text in the place of the one that was read; False if that is no longer there."""
        mode = stat.S_IMODE(self.path.stat().st_mode)
        with hold(f"writing of {self.path}"):  # who flies it and who decides about it may write at once
            return replace_file(self.path, [new], mode, sure=lambda: self._bytes() == self._data)


def _marked(org: OrgParts, part: Part, mark: FileEdit) -> OrgParts:
    """The file with a mark put in. Raises QuothError."""
    index, new = part.entry, org.copy()
    todo = org.entry(index).todo
    if mark.over and todo not in mark.over:
        return org
    if mark.word and todo != mark.word:
        new.set_todo(index, mark.word)
    for block, text in mark.results.items():
        if block is not None:
            new.put_results(index, block, text)
        else:
            new.put_entry_results(index, part.id, text)
    for line in _missing(new.lines(index), mark.log):
        new.add_to_drawer(index, "LOGBOOK", line)
    return new


def _missing(lines: Sequence[str], log: Sequence[str]) -> list[str]:
    """The lines of a log that are not there, whatever time they are written down with."""
    stripped = (line.strip() for line in lines)
    there = Counter(_without_time(line[2:]) for line in stripped if line.startswith("- "))
    found = []
    for line in log:
        there[_without_time(line)] -= 1
        if there[_without_time(line)] < 0:
            found.append(line)
    return found


def _without_time(line: str) -> str:
    """What tells a line of the log from others: which attempt came to what. Not when, for one hour has many
    names; nor why."""
    found = _ATTEMPT.match(line)
    return f"{found[1]} {found[2]}" if found else line
