"""Tasks and reminders as headlines of an Org file: reads and edits them without changing any other byte.

Each edit returns the changed file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TypeVar

from quoth.tools.call.workspace import Workspace, change_file, read_whole
from quoth.tools.errors import ToolError, did_you_mean
from quoth.tools.memory.due_times import (
    When,
    exact_text,
    in_words,
    instant_of,
    local_zone,
    read_stamp,
    stamp,
    zone_name,
    zone_named,
)
from quoth.tools.org.document import Entry, Org, dump, load
from quoth.tools.org.edit import add_lines, add_to_drawer, set_todo
from quoth.tools.org.sections import OrgParts
from quoth.tools.text import excerpt, number_of, short

FILE = "memory.org"
TITLE_CHARS = 300
LISTED = 20  # maximum number of tasks in a message
REMINDER = "reminder"  # tag of a headline that is done when it is delivered
_GUARD = "\u200b"  # zero width space: Org's own advice to keep text from being markup
_BEFORE = r"[ \t]*(?:(?:CLOSED|DEADLINE|SCHEDULED):[ \t]*[<\[][^>\]]*[>\]][ \t]*)*?"
_TIMES = [re.compile(rf"{_BEFORE}({word}):[ \t]*(.*)") for word in ("SCHEDULED", "DEADLINE")]
_WANTED = "<2030-12-01 Sun 09:00>"


@dataclass(frozen=True, slots=True)
class OrgTask:
    """A headline with a TODO keyword. ``due`` is its SCHEDULED time, otherwise its DEADLINE. ``delivered`` is
    the due time for which it was delivered. ``entry`` is its index in the file, ``line`` its line, from 1."""

    entry: int
    line: int
    id: str
    title: str
    word: str
    done: bool
    reminder: bool = False
    due: When | None = None
    repeats: bool = False
    delivered: str = ""
    call: str = ""

    @property
    def name(self) -> str:
        """Its id, or its title if a person wrote it without an id."""
        return self.id or self.title


@dataclass(frozen=True)
class By:
    """The author of a change: user, time, session and call."""

    now: datetime
    user: str = ""
    session: str = ""
    call: str = ""


class TaskFile:
    """The tasks of a file. ``faults`` are messages about headlines that cannot be read; they are not tasks
    and are never edited. Raises ToolError if the file cannot be read."""

    def __init__(self, data: bytes, name: str = FILE) -> None:
        self.name, self.new = name, not data
        self.org = load(data)
        self._check_text(data)
        self.zone = zone_of(self.org, name)
        self.faults: list[str] = []
        self.open_word, self.done_words = self._words()
        self.tasks = self._tasks()

    def place(self, row: int) -> str:
        return f"{self.name}:{row + 1}"

    def _check_text(self, data: bytes) -> None:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            row = data.count(b"\n", 0, error.start)
            raise ToolError(f"{self.place(row)}: this is not UTF-8 text. The file was not changed.") from None
        if b"\0" in data:
            row = data.count(b"\n", 0, data.index(b"\0"))
            raise ToolError(f"{self.place(row)}: a NUL character. The file was not changed.")

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """The keyword of open tasks and the keywords of done tasks: the file's own or Org's defaults."""
        opens: list[str] = []
        dones: list[str] = []
        declared = [*self.org.keywords("TODO", "SEQ_TODO", "TYP_TODO")]
        for key in declared:
            before, bar, after = key.value.partition("|")
            first, last = before.split(), after.split()
            if not bar:
                first, last = first[:-1], first[-1:]
            opens += [word.partition("(")[0] for word in first]
            dones += [word.partition("(")[0] for word in last]
        if declared and not (opens and dones):
            raise ToolError(
                f"{self.place(declared[0].first)}: this does not declare keywords for open and done tasks. "
                "Example: #+TODO: TODO | DONE."
            )
        return (opens or ["TODO"])[0], tuple(dones or ["DONE"])

    def _tasks(self) -> list[OrgTask]:
        found: list[OrgTask] = []
        rows: dict[str, int] = {}  # by id
        for index, entry in enumerate(self.org.entries):
            if not entry.todo or self.org.is_dead(index):
                continue
            task, fault = self._task(index, entry)
            if task.id.lower() in rows:
                fault = f"line {rows[task.id.lower()] + 1} has the same ID {excerpt(task.id)}"
            elif task.id:
                rows[task.id.lower()] = entry.row
            if fault:
                self.faults.append(f"{self.place(entry.row)}: {fault}. This headline was skipped.")
            else:
                found.append(task)
        return found

    def _task(self, index: int, entry: Entry) -> tuple[OrgTask, str]:
        lines, due, repeats, fault = self.org.lines, None, False, ""
        values = {one.name.upper(): one.value for one in reversed(entry.properties)}
        planned = [one.match(lines[entry.row + 1]) for one in _TIMES if entry.planning]
        if found := next(filter(None, planned), None):
            if said := read_stamp(found[2], values.get("AT", ""), self.zone):
                due, repeats = said
            else:
                fault = f"{excerpt(found[2].strip())!r} is not a time, such as {found[1]}: {_WANTED}"
        body = lines[entry.body].strip(" \t") if entry.body < entry.stop else ""
        if not entry.drawer and body.upper() == ":PROPERTIES:":
            fault = "its properties are not lines of :NAME: value that end with :END:"
        elif entry.drawer and (late := re.match("(?:SCHEDULED|DEADLINE):", body)):
            fault = f"{late[0]} must be right below the headline, above the properties ({late[0]} {_WANTED})"
        done = entry.todo in self.done_words
        title = entry.title.replace(_GUARD, "").strip()
        known = values.get("ID", ""), title, entry.todo, done, REMINDER in entry.tags
        return OrgTask(
            index, entry.row + 1, *known, due, repeats, values.get("DELIVERED", ""), values.get("CALL", "")
        ), fault

    # Reading

    @property
    def open(self) -> list[OrgTask]:
        """The open tasks, earliest due time first; then those without a time, in the order of the file."""
        some = [task for task in self.tasks if not task.done]
        return sorted(some, key=lambda task: (task.due is None, task.due and instant_of(task.due, self.zone)))

    def is_due(self, task: OrgTask, now: datetime) -> bool:
        return task.due is not None and instant_of(task.due, self.zone) <= now

    def undelivered(self) -> list[OrgTask]:
        """The open tasks with a due time not delivered for that time yet, earliest first."""
        return [task for task in self.open if task.due and task.delivered != exact_text(task.due)]

    def find(self, words: str, *, done: bool | None = None) -> OrgTask:
        """The task with this id or title, or the only task with these words in its title. With ``done``, done
        or open tasks are searched first. Raises ToolError that lists the tasks."""
        wanted = " ".join(words.split()).casefold()
        some = [task for task in self.tasks if task.done is done] or self.tasks
        listed = f" The tasks are {_named(some)}." if some else " There are no tasks yet."
        if not wanted:
            raise ToolError(f"Name the task by its id or title.{listed}")
        for tasks in (some, self.tasks):
            same_id = [task for task in tasks if task.id.casefold() == wanted]
            same_title = [task for task in tasks if task.title.casefold() == wanted]
            like = [task for task in tasks if wanted in task.title.casefold()]
            for found in (same_id, same_title, like):
                if len(found) == 1:
                    return found[0]
            if like:
                raise ToolError(f"{len(like)} tasks match {excerpt(words)!r}: {_named(like)}. Give the id.")
        known = [word for task in some for word in (task.id, task.title, *task.title.split()) if word]
        raise ToolError(f"Unknown task {excerpt(words)!r}.{did_you_mean(words, known)}{listed}")

    def shown(self, task: OrgTask, now: datetime) -> dict[str, object]:
        """A task as data for a model or a program."""
        return {
            "id": task.id,
            "title": task.title,
            "state": task.word,
            "due": exact_text(task.due) if task.due else "",
            "overdue": not task.done and self.is_due(task, now),
            "line": task.line,
        }

    def words_of(self, task: OrgTask, now: datetime) -> str:
        """A task as text: its id, title and time."""
        due = f", due {in_words(task.due, now, self.zone)}" if task.due else ""
        return f"{task.title}{due}"

    # Editing

    def add(self, title: str, by: By, due: When | None = None, *, reminder: bool = False) -> tuple[Org, str]:
        """Add an open task at the end of the file and return its id. A task is due by DEADLINE, a reminder is
        SCHEDULED. If this call has already added one and was interrupted before it was recorded, nothing is
        added."""
        if by.call and (made := next((task for task in self.tasks if task.call == by.call), None)):
            return self.org, made.id
        title, local = clean_title(title), by.now.astimezone(self.zone)
        id = self._free_id(title)
        tag = f" :{REMINDER}:" if reminder else ""
        lines = [f"* {self.open_word} {_guarded(title)}{tag}"]
        if due:
            lines.append(f"{'SCHEDULED' if reminder else 'DEADLINE'}: {stamp(due)}")
        said = {"ID": id, "CREATED": stamp(local, "[]")}
        if isinstance(due, datetime):
            said["AT"] = exact_text(due)
        said |= {"BY": by.user, "IN_SESSION": by.session, "CALL": by.call}  # Babel has a SESSION of its own
        lines += [":PROPERTIES:", *(f":{name}: {_line(value)}" for name, value in said.items() if value)]
        return add_lines(self.org, [*self._opening(), *lines, ":END:"]), id

    def _opening(self) -> list[str]:
        """The first lines of a new file."""
        if not self.new:
            return []
        name = zone_name(self.zone)
        zone = [f"#+PROPERTY: ZONE {name}"] if name else []
        return ["#+TITLE: Tasks and reminders", "#+TODO: TODO | DONE", *zone, ""]

    def _free_id(self, title: str) -> str:
        """An id made from the words of a title and not used in this file yet."""
        words = "-".join(re.findall(r"[^\W_]+", title.casefold()))[:40].strip("-") or "task"
        taken = {one.value.lower() for entry in self.org.entries for one in entry.properties}
        number, id = 2, words
        while id in taken:
            number, id = number + 1, f"{words}-{number}"
        return id

    def set_done(self, task: OrgTask, done: bool, by: By) -> Org:
        """Close a task or reopen it, with a line in its log. Raises ToolError if it repeats."""
        if task.done is done:
            return self.org
        if task.repeats and done:
            raise ToolError(
                f"{self.place(task.line - 1)}: {task.title} repeats. Mark it done in Emacs (C-c C-t), which "
                "moves it to its next time."
            )
        word = self.done_words[0] if done else self.open_word
        log = f'State "{word}" from "{task.word}" {self._signed(by)}'
        return add_to_drawer(set_todo(self.org, task.entry, word), task.entry, "LOGBOOK", log)

    def note(self, task: OrgTask, text: str, by: By) -> Org:
        """Add a note to the log of a task."""
        log = f"{_checked('note', ' '.join(text.split()), 2000)} {self._signed(by)}"
        return add_to_drawer(self.org, task.entry, "LOGBOOK", log)

    def _signed(self, by: By) -> str:
        who = ", ".join(filter(None, (by.user, by.session and f"session {by.session}")))
        return _line(f"{stamp(by.now.astimezone(self.zone), '[]')} {who}")

    def deliver(self, tasks: Iterable[OrgTask]) -> Org:
        """Mark tasks as delivered for their due times; reminders become done."""
        parts = OrgParts(self.org)  # avoids parsing all sections again after each edit
        for task in tasks:
            if task.due:
                parts.set_property(task.entry, "DELIVERED", exact_text(task.due))
            if task.reminder and not task.repeats:
                parts.set_todo(task.entry, self.done_words[0])
        return parts.whole()


def zone_of(org: Org, name: str) -> tzinfo:
    """The zone of ``#+PROPERTY: ZONE Europe/Berlin`` in a file, or the zone of the process. ``name`` is the
    file's. Raises ToolError for an unknown zone."""
    for key in org.keywords("PROPERTY"):
        word, _, value = key.value.partition(" ")
        if word.upper() == "ZONE":
            zone = zone_named(value.strip())
            if zone is None:
                raise ToolError(
                    f"{name}:{key.first + 1}: unknown time zone {excerpt(value.strip())!r}. Write a zone as"
                    " UTC or Europe/Berlin."
                )
            return zone
    return local_zone()


def clean_title(text: str) -> str:
    """A title on one line. Raises ToolError if it is empty, too long or contains invalid characters."""
    return _checked("title", " ".join(text.split()), TITLE_CHARS)


def _checked(what: str, text: str, most: int) -> str:
    if not text.replace(_GUARD, "").strip():
        raise ToolError(f"The {what} is empty. Describe in a few words what it is about.")
    if len(text) > most:
        raise ToolError(
            f"The {what} has {len(text)} characters, {len(text) - most} too many (maximum: {most})."
        )
    if any(char < " " or "\ud800" <= char <= "\udfff" or char == "\x7f" for char in text):
        raise ToolError(
            f"The {what} contains an invalid character (a control character or an unpaired surrogate)."
        )
    return text


def _guarded(title: str) -> str:
    """A title protected so that Org does not read a priority, a comment or tags in it."""
    title = title.replace(_GUARD, "")
    before = _GUARD if re.match(r"\[#.\]|COMMENT(?:[ \t]|$)", title) else ""
    return before + title + (_GUARD if re.search(r"(?:^|[ \t]):[\w@#%:]+:$", title) else "")


def _line(text: str) -> str:
    return " ".join(text.split())


def _named(tasks: Sequence[OrgTask]) -> str:
    """A list of tasks for a message: each by its id, otherwise by its title."""
    names = [short(task.name, 60) for task in tasks[:LISTED]]
    more = f" and {len(tasks) - LISTED} more" if len(tasks) > LISTED else ""
    return ", ".join(names) + more


def summary(file: TaskFile, tasks: Iterable[OrgTask], now: datetime) -> str:
    """The number of open tasks and of due tasks, and the next task, as text."""
    some = list(tasks)
    if not some:
        return "No open tasks."
    late = sum(file.is_due(task, now) for task in some)
    overdue = f", {late} of them due" if late else ""
    return f"{number_of(len(some), 'task')} open{overdue}. Next: {file.words_of(some[0], now)}."


# Reading and changing the task file of a workspace, which Emacs and other processes may change too.


T = TypeVar("T")


def read_tasks(workspace: Workspace, path: str = FILE) -> TaskFile:
    """The tasks of a file; none if the file does not exist. Raises ToolError."""
    return TaskFile(read_whole(workspace, path), workspace.spelling(workspace.resolve(path)))


def change_tasks(
    workspace: Workspace,
    change: Callable[[TaskFile], tuple[Org, T]],
    path: str = FILE,
    say: Callable[[str], None] = lambda text: None,
) -> T:
    """Apply ``change`` to the current file and return its second result. If another program has written the
    file in the meantime, ``change`` is applied again. Raises ToolError."""
    name = workspace.spelling(workspace.resolve(path))

    def changed(data: bytes) -> tuple[bytes, T]:
        org, result = change(TaskFile(data, name))
        return dump(org), result

    return change_file(workspace, path, changed, say)
