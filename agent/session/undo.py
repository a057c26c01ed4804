"""Undoes the file writes of a session's calls, and shows their changes.

It uses the kept versions (tools/history/versions.py), and changes files only through the workspace. Later
changes of others are never lost: only writes that are still unchanged in the file are undone. Each file is
replaced atomically. Repeating an interrupted undo completes it, and ``redo`` reverts an undo.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import PurePosixPath
from typing import Any

from quoth.agent.session.render import call_text
from quoth.agent.terminal.question import FileDifference, differences, drawn
from quoth.tools.call.call import Change, Changes
from quoth.tools.call.keeping import MAX_FILE, kept_by
from quoth.tools.call.redaction import redact
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.history.event import Event
from quoth.tools.history.transcript import Transcript
from quoth.tools.history.versions import KEPT_BYTES, StoreVersions, Written
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.text import file_name, number_of, short
from quoth.tools.visible import visible

# The effect of an undo, and the changes of a session, as lines for a person. Contents of files have a margin.


MOST = 10  # maximum number of uncovered calls shown one by one


def file_lines(one: FileDifference, note: str, *, color: bool) -> list[str]:
    """One file: its change, and the lines that differ."""
    width = max(shutil.get_terminal_size().columns, 40)
    return [one.head + (f" ({note})" if note else ""), *drawn(one.lines, width, color=color)]


def plan_lines(plan: UndoPlan, *, color: bool) -> Iterator[str]:
    """The changes of an undo, the files that it leaves unchanged, and the calls that it does not cover."""
    yield from changed_lines(plan.files, plan.left, color=color)
    yield from uncovered_lines(plan)


def left_lines(left: Iterable[Left], *, color: bool) -> Iterator[str]:
    for one in left:
        yield f"left unchanged: {visible(one.path)}; {visible(one.why)}"
        if one.difference is not None and one.difference.lines:
            yield "  putting it back would change:"
            yield from file_lines(one.difference, "", color=color)[1:]


def uncovered_lines(plan: UndoPlan) -> Iterator[str]:
    yield from (f"not covered: {one}" for one in plan.uncovered[:MOST])
    if len(plan.uncovered) > MOST:
        yield f"not covered: {number_of(len(plan.uncovered) - MOST, 'more call')} (all: --json)"


def changed_lines(found: Iterable[PutBack], left: Iterable[Left], *, color: bool) -> Iterator[str]:
    """The changes of a session, and the files whose changes are unknown."""
    for one in found:
        yield from file_lines(one.difference, one.note, color=color)
    yield from left_lines(left, color=color)


def done_text(way: Undo, plan: UndoPlan, done: Done) -> str:
    """The result of an undo or redo, and the command that reverts an undo."""
    files = number_of(len(done.files), "file")
    if plan.redo:
        return f"Redid the changes of {files}."
    return f"Put back {files}. To redo: {way.typed('undo', plan.session, '--redo')}"


# The plan and the result of an undo, as data.


@dataclass(frozen=True)
class PutBack:
    """A file to put back: its contents ``now`` and ``then``, None for no file. ``back`` is the oldest write
    to undo; ``note`` names the writes that stay."""

    path: str
    now: bytes | None
    then: bytes | None
    back: Written
    note: str = ""

    @property
    def difference(self) -> FileDifference:
        return difference(self.path, self.now, self.then)

    def to_json(self) -> dict[str, Any]:
        return {**self.difference.to_json(), "note": self.note}


@dataclass(frozen=True)
class Left:
    """A file that is left unchanged, the reason, and the change of putting it back, if that is known."""

    path: str
    why: str
    difference: FileDifference | None = None

    def to_json(self) -> dict[str, Any]:
        diff = {} if self.difference is None else {"diff": self.difference.to_json()["diff"]}
        return {"path": visible(self.path), "why": self.why, **diff}


@dataclass(frozen=True)
class Uncovered:
    """A call that may have changed files without a kept version."""

    id: str
    form: str
    why: str

    def __str__(self) -> str:
        return f"{self.id} {self.form}: {self.why}"


@dataclass(frozen=True)
class UndoPlan:
    """The plan of an undo. A ``redo`` has the same fields, in the other direction."""

    session: str
    files: tuple[PutBack, ...]
    left: tuple[Left, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()
    redo: bool = False

    @property
    def empty(self) -> bool:
        return not self.files and not self.left

    def to_json(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "redo": self.redo,
            "files": [one.to_json() for one in self.files],
            "left": [one.to_json() for one in self.left],
            "not_covered": [vars(one) for one in self.uncovered],
        }


@dataclass(frozen=True)
class Done:
    """The result of an undo or redo: its name, the files put back, the failed files, and notes about them."""

    act: str
    files: tuple[str, ...]
    failed: tuple[Left, ...]
    said: tuple[str, ...]


def difference(path: str, old: bytes | None, new: bytes | None) -> FileDifference:
    """The difference of two contents of a file, without probable secrets."""
    before, after = _text(old), _text(new)
    if (before is None) != (old is None) or (after is None) != (new is None):
        sizes = [number_of(len(data), "byte") if data is not None else "no file" for data in (old, new)]
        return FileDifference(visible(path), f"{visible(path)}, a binary file: {' to '.join(sizes)}", ())
    (found,) = differences(Changes((Change(path, before, after),)))
    if after is not None and "-----BEGIN " in after:
        return replace(found, head=f"{found.head}, contains a key that is not shown", lines=())
    return replace(found, lines=tuple(replace(line, text=redact(line.text)) for line in found.lines))


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None or b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


NOT_KEPT = (
    f"its earlier content was not kept (files up to {MAX_FILE // 1_000_000} MB are kept, the latest"
    f" {KEPT_BYTES // 1_000_000} MB in all)"
)
UNSAVED_THEN = "this text was in an editor and not yet saved"
CHANGING = frozenset({"writes", "runs", "deletes"})
FORM_CHARS = 100
NAMED = 10  # maximum number of files in the message of an event; its data lists all


@dataclass
class _CurrentFile:
    """The current state of a file."""

    digest: str | None = None
    data: bytes | None = None
    trouble: str = ""


def _standing(rows: Sequence[Written], now: str | None) -> Iterator[tuple[Written, bool]]:
    """The writes of one file (by calls, undo and redo) that are in its content ``now``, the latest first. If
    others have changed the file since, the last one is a write that is not in it.

    Skips undone writes, and writes that were recorded but not carried out."""
    taken_back = rows[-1].seq + 1 if rows else 0
    for row in reversed(rows):
        if row.seq >= taken_back:
            continue
        if now != row.after:
            if now == row.before:
                continue
            yield row, False
            return
        yield row, True
        if row.act:
            taken_back = row.back
        else:
            now = row.before


def _not_taken_back(rows: Sequence[Written], act: str = "") -> Iterator[Written]:
    """The writes of calls, or of one undo, that were not undone, the latest first; the current content of the
    file does not matter."""
    taken_back = rows[-1].seq + 1
    for row in reversed(rows):
        if row.seq < taken_back:
            if row.act == act:
                yield row
            if row.act:
                taken_back = row.back


@dataclass
class Undo:
    """The undo of one session. ``forbids`` returns why the rules forbid writing a text to a file, empty if
    they allow it. ``ships`` returns whether a tool is built in: these write only through the workspace.
    ``typed`` returns a ``quoth`` command of these words, as a person types it."""

    versions: StoreVersions
    workspace: Workspace
    transcript: Transcript
    session: str
    user: str
    forbids: Callable[[str, str], str] = lambda path, text: ""
    ships: Callable[[str], bool] = lambda tool: True
    record: Callable[[str], None] = lambda said: None
    typed: Callable[..., str] = lambda *words: shlex.join(["quoth", *words])
    _rows: list[Written] = field(default_factory=list)

    def plan(self, since: int = 0) -> UndoPlan:
        """The plan to undo the writes from event ``since`` on."""
        files = [self._put_back(path, rows, since) for path, rows in self._by_path()]
        return self._plan(files, uncovered=tuple(self._uncovered(since)))

    def plan_redo(self) -> UndoPlan:
        """The plan to revert the last undo that was not reverted yet. Raises UsageError."""
        by_path = self._by_path()
        acts = dict.fromkeys(row.act for row in reversed(self._rows) if row.act.startswith("u"))
        plans = [
            self._plan([self._again(path, rows, act) for path, rows in by_path], redo=True) for act in acts
        ]
        for found in (*(one for one in plans if one.files), *(one for one in plans if one.left)):
            return found
        raise UsageError(f"Session {self.session} has no undo to redo.")

    def _plan(self, files: Iterable[PutBack | Left | None], **more: Any) -> UndoPlan:
        found = [self._checked(one) if isinstance(one, PutBack) else one for one in files if one is not None]
        back = sorted((one for one in found if isinstance(one, PutBack)), key=lambda one: -one.back.seq)
        left = tuple(one for one in found if isinstance(one, Left))
        return UndoPlan(self.session, tuple(back), left, **more)

    def _by_path(self) -> list[tuple[str, list[Written]]]:
        """The writes of each file, the latest file first."""
        self._rows = self.versions.of(self.session)
        found: dict[str, list[Written]] = {}
        for row in self._rows:
            found.setdefault(row.path, []).append(row)
        return sorted(found.items(), key=lambda item: -item[1][-1].seq)

    def _put_back(self, path: str, rows: list[Written], since: int) -> PutBack | Left | None:
        """The plan for one file; None if there is nothing to do."""
        file = self._file(path)
        if file.trouble:
            open_ones = any(row.event >= since for row in _not_taken_back(rows))
            return Left(path, file.trouble) if open_ones else None
        taken: list[Written] = []
        foreign: Written | None = None
        for row, stands in _standing(rows, file.digest):
            if row.act and stands:
                continue
            if row.event < since and not row.act:
                break
            if not stands:
                foreign = row
                break
            taken.append(row)
        if not taken:
            calls = [one for one in _not_taken_back(rows) if one.event >= since]
            return self._changed_since(path, file, foreign, calls[-1]) if foreign and calls else None
        note = "another program changed it between these writes, so the earlier ones stay" if foreign else ""
        return self._to(path, file, taken[-1], note)

    def _again(self, path: str, rows: list[Written], act: str) -> PutBack | Left | None:
        """The plan to revert an undo in one file."""
        mine = [*_not_taken_back(rows, act)]
        if not mine:
            return None
        file = self._file(path)
        if file.trouble:
            return Left(path, file.trouble)
        for row, stands in _standing(rows, file.digest):
            if row.act == act and stands:
                return self._to(path, file, row)
            if not stands:
                return self._changed_since(path, file, row, mine[-1])
            if not row.act:
                written = row.seq > mine[0].seq
                return Left(path, "it was written again after that undo") if written else None
        return None

    def _to(self, path: str, file: _CurrentFile, row: Written, note: str = "") -> PutBack | Left | None:
        """The plan that restores the content of a file before a write."""
        if row.before == file.digest:
            return None
        then = None if row.before is None else self.versions.content(row.before)
        if row.before is not None and then is None:
            return Left(path, NOT_KEPT)
        if row.unsaved:
            note = f"{note}; {UNSAVED_THEN}" if note else UNSAVED_THEN
        return PutBack(path, file.data, then, row, note)

    def _changed_since(self, path: str, file: _CurrentFile, row: Written, first: Written) -> Left:
        """A file that others have changed after a write; ``first`` is the oldest write to undo."""
        other = self.versions.others(self.session, path, file.digest, row.seq)
        by = f"session {other}; run {self.typed('undo', other)} first" if other else "another program"
        why = f"it was {'removed' if file.digest is None else 'changed'} since by {by}"
        if first.before == file.digest:
            return Left(path, why)
        then = None if first.before is None else self.versions.content(first.before)
        if (then is None) != (first.before is None) or (file.data is None) != (file.digest is None):
            return Left(path, why)
        return Left(path, why, difference(path, file.data, then))

    def _file(self, path: str) -> _CurrentFile:
        """The current state of a file at the path of its write."""
        try:
            real = self.workspace.locate(path)
            if (spelt := self.workspace.spelling(real)) != path:
                where = spelt if self.workspace.holds(real) else "a place outside the workspace"
                return _CurrentFile(trouble=f"its path now leads to {visible(where)}")
            if not self.workspace.exists(path):
                return _CurrentFile()
            with self.workspace.open_read(path) as file:
                digest, data = hashlib.sha256(), b""
                while piece := file.read(MAX_FILE + 1 if not data else MAX_FILE):
                    digest.update(piece)
                    data = data or piece
            return _CurrentFile(digest.hexdigest(), None if len(data) > MAX_FILE else data)
        except ToolError as error:
            return _CurrentFile(trouble=_unnamed(str(error), path))

    def _checked(self, one: PutBack) -> PutBack | Left:
        """The file, or a Left with the reason if the rules forbid writing it."""
        if one.now is not None and len(one.now) > MAX_FILE:
            return Left(one.path, NOT_KEPT)
        why = self.forbids(one.path, "" if one.then is None else one.then.decode("utf-8", "replace"))
        return Left(one.path, f"the rules forbid it: {why}") if why else one

    def nothing(self, plan: UndoPlan, since: int = 0) -> str:
        """Why there is nothing to put back from event ``since`` on."""
        more = f" Not covered: {'; '.join(map(str, plan.uncovered[:3]))}." if plan.uncovered else ""
        if not self._rows:
            opened = self.transcript.last(self.session, "session")
            taken = opened.said.get("from") if opened else None
            if isinstance(taken, dict):
                first = taken["session"]
                return (
                    f"Session {self.session} has written no file itself. To undo the writes before its fork:"
                    f" {self.typed('undo', first)}.{more}"
                )
            if self.transcript.imported(self.session):
                return f"Session {self.session} has written no file here; it was imported.{more}"
            return f"Session {self.session} has written no file.{more}"
        if since and not any(row.event >= since for row in self._rows if not row.act):
            return f"Session {self.session} has written no file since {self.session}.{since}.{more}"
        if any(row.act for row in self._rows):
            again = f"{self.typed('undo', self.session, '--redo')} restores it"
            return f"The writes of session {self.session} are already undone; {again}.{more}"
        return f"Each file that session {self.session} has written has its earlier content.{more}"

    def do(self, plan: UndoPlan) -> Done:
        """Put back the files of a plan, and record it."""
        kind = "r" if plan.redo else "u"
        act = f"{kind}{1 + len({row.act for row in self._rows if row.act.startswith(kind)})}"
        done: list[PutBack] = []
        failed: list[Left] = []
        said: list[str] = []
        try:
            for one in plan.files:
                path = WorkspacePath(one.path)
                with kept_by(self.versions.keep_act(self.session, self.user, act, one.back.seq)):
                    try:
                        if one.then is None:
                            self.workspace.remove(path, one.now or b"")
                        else:
                            mode = stat.S_IMODE(one.back.mode) or None
                            self.workspace.write(
                                path, one.then, before=one.now or b"", say=said.append, mode=mode
                            )
                    except ToolError as error:
                        failed.append(Left(one.path, _unnamed(str(error), one.path)))
                        continue
                    self.workspace.forget(path)
                done.append(one)
            self._remove_folders()
        finally:
            if done:
                self._record(plan, act, done)
        return Done(act, tuple(one.path for one in done), tuple(failed), tuple(said))

    def _remove_folders(self) -> None:
        """Remove empty folders that were created for undone files."""
        made = {
            str(folder)
            for path, rows in self._by_path()
            if rows[-1].act and not any(_not_taken_back(rows))
            for folder in [*PurePosixPath(path).parents][: max(row.folders for row in rows)]
        }
        for folder in sorted(made, key=lambda path: -path.count("/")):
            self.workspace.remove_folder(folder)

    def _record(self, plan: UndoPlan, act: str, done: Sequence[PutBack]) -> None:
        files = [one.path for one in done]
        what = "Redid changes" if plan.redo else "Undid changes"
        more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
        text = f"{what} ({act}): {', '.join(map(file_name, files[:NAMED]))}{more}"
        self.transcript.add(self.session, "undo", {"user": self.user, "text": text, "files": files})
        self.record(text)

    # More information

    def _uncovered(self, since: int) -> Iterator[Uncovered]:
        """The calls from event ``since`` on that may have changed files without a kept version."""
        calls: dict[str, Event] = {}
        ends: dict[str, Event] = {}
        openings = self.transcript.events(self.session, kind="session")
        forked = [event.seq for event in openings if event.data.get("from")]
        taken_over = max((self.transcript.imported(self.session), *forked))
        for event in self.transcript.events(self.session, after=max(since - 1, taken_over)):
            if event.kind == "call" and CHANGING.intersection(event.data.get("does", ())):
                calls[event.key] = event
            elif event.kind == "receipt":
                ends[event.key] = event
        keys = {row.key for row in self._rows}
        for key, event in calls.items():
            end = ends.get(key)
            if end is not None and (end.data.get("stage") or end.status == "pending"):
                continue
            if why := self._why_uncovered(event, end, any(k == key or k.startswith(f"{key}/") for k in keys)):
                yield Uncovered(event.id, short(visible(call_text(event)), FORM_CHARS), why)

    def _why_uncovered(self, call: Event, end: Event | None, kept: bool) -> str:
        if "runs" in call.data.get("does", ()):
            return "it ran a program"
        if end is None or end.status == "unknown":
            return "" if kept else "it was begun, and how that ended is not known"
        tool = call_text(call)[1:].partition(" ")[0].rstrip(")")
        wrote = any(str(one).startswith(("wrote:", "created:")) for one in end.data.get("effects", ()))
        return "the earlier content was not kept" if not kept and (wrote or not self.ships(tool)) else ""

    def changed(self) -> tuple[list[PutBack], list[Left]]:
        """The difference between the first and the current content of each file; and the files for which it
        is unknown."""
        found: list[PutBack] = []
        left: list[Left] = []
        for path, rows in sorted(self._by_path()):
            file, first = self._file(path), rows[0]
            if not file.trouble and file.digest == first.before:
                continue
            then = None if first.before is None else self.versions.content(first.before)
            known = (then is None) == (first.before is None) and (file.data is None) == (file.digest is None)
            if file.trouble or not known:
                left.append(Left(path, file.trouble or NOT_KEPT))
                continue
            ours = any(stands for _, stands in [*_standing(rows, file.digest)][:1])
            note = "" if ours else "another program has changed it since, too"
            found.append(PutBack(path, then, file.data, first, note))
        return found, left

    def event_of(self, wanted: str) -> int:
        """The number of the event that ``wanted`` names: ``N``, ``ID.N`` or the key of a call. Raises
        UsageError."""
        count = 0
        for event in self.transcript.events(self.session):
            count = event.seq
            if event.key == wanted and event.kind == "call":
                return event.seq
        place = re.fullmatch(rf"(?:{re.escape(self.session)}\.)?(\d{{1,18}})", wanted, re.ASCII)
        if place is None:
            raise UsageError(
                f"--to takes the number of an event in quoth log {self.session}, not {visible(wanted)}."
            )
        if not 1 <= int(place[1]) <= count:
            has = f"session {self.session} has {number_of(count, 'event')}"
            raise UsageError(f"There is no event {self.session}.{int(place[1])}; {has}.")
        return int(place[1])

    def last_group(self) -> int:
        """The first event of the last message, or call of a person, whose writes were not undone; 0 if there
        is none."""
        left = [row for _, rows in self._by_path() for row in _not_taken_back(rows)]
        if not left:
            return 0
        last = max(left, key=lambda row: row.seq)
        top = last.key.partition("/")[0]
        for event in self.transcript.events(self.session):
            if event.kind in ("stimulus", "call") and (event.run or event.key) == top:
                return event.seq
        return last.event


def _unnamed(said: str, path: str) -> str:
    """The message about a file, without the file's name, which is already before it."""
    return said.removeprefix(f"{path} ").removeprefix(f"{path}: ").rstrip(".")
