"""Tasks in an Org file: nothing else in it changes, whoever else writes; what is broken is told by line."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from emacs import EMACS, emacs
from examples import examples, many
from hypothesis import given
from hypothesis import strategies as st
from org_lines import LINES
from processes import ended_well, in_a_process
from sentences import (
    HAS_CHANGED_SINCE_IT_WAS_READ,
    IS_NOT_A_TIME_SUCH_AS,
    IS_OUTSIDE_THE_WORKSPACE,
    READ_IT_AGAIN_THEN_CHANGE,
    THIS_HEADLINE_WAS_SKIPPED,
    THIS_IS_NOT_UTF_8,
)
from words import complaint, files

from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.memory.due_times import exact_text, read_when
from quoth.tools.memory.org_tasks import By, OrgTask, TaskFile, change_tasks, clean_title, read_tasks, summary
from quoth.tools.org.document import Org, dump

NOON = datetime(2026, 11, 22, 11, 0, tzinfo=UTC)  # 12:00 in Berlin
ANN = By(NOON, "ann", "s1", "c1")
BERLIN = "#+PROPERTY: ZONE Europe/Berlin\n"


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")


def tasks(text: str) -> TaskFile:
    return TaskFile(text.encode())


def task(**parts: str) -> str:
    """A headline with these properties; ``at`` is its stamp."""
    at, word, title = parts.pop("at", ""), parts.pop("word", "TODO"), parts.pop("title", "Call mum")
    drawer = "".join(f":{name}: {value}\n" for name, value in parts.items())
    scheduled = f"SCHEDULED: {at}\n" if at else ""
    return f"* {word} {title}\n{scheduled}:PROPERTIES:\n{drawer}:END:\n"


def add(file: TaskFile, title: str, at: str = "", by: By = ANN, **more: bool) -> TaskFile:
    due = read_when(":at", at, by.now, file.zone)[0] if at else None
    return again(file.add(title, by, due, **more)[0])


def again(org: Org) -> TaskFile:
    """The file as it is read after an edit."""
    return TaskFile(dump(org))


def only(file: TaskFile) -> OrgTask:
    (found,) = file.tasks
    return found


# Writing


def test_a_new_file_is_made_for_people() -> None:
    file = add(tasks(""), "Call mum", "tomorrow 9:00", reminder=True)
    assert dump(file.org).decode() == (
        "#+TITLE: Tasks and reminders\n#+TODO: TODO | DONE\n#+PROPERTY: ZONE Europe/Berlin\n\n"
        "* TODO Call mum :reminder:\nSCHEDULED: <2026-11-23 Mon 09:00>\n:PROPERTIES:\n:ID: call-mum\n"
        ":CREATED: [2026-11-22 Sun 12:00]\n:AT: 2026-11-23T09:00:00+01:00\n:BY: ann\n:IN_SESSION: s1\n"
        ":CALL: c1\n:END:\n"
    )


def test_it_uses_the_words_that_the_file_declares() -> None:
    file = add(tasks("#+TODO: NEXT(n) WAIT | OFF(o) GONE\n"), "Call mum")
    assert only(file).word == "NEXT"
    file = again(file.set_done(only(file), True, ANN))
    assert (only(file).word, only(file).done) == ("OFF", True)
    assert "OFF" in dump(file.org).decode().splitlines()[1]
    assert tasks("#+TODO: A B C\n* B x\n* C y\n").done_words == ("C",)


def test_what_is_done_may_be_opened_again_and_both_are_logged() -> None:
    file = add(tasks(""), "Pay")
    file = again(file.set_done(only(file), True, ANN))
    assert file.set_done(only(file), True, ANN) is file.org
    file = again(file.set_done(only(file), False, ANN))
    file = again(file.note(only(file), "* asked\nBob", ANN))
    assert dump(file.org).decode().split(":END:\n", 1)[1] == (
        ":LOGBOOK:\n- * asked Bob [2026-11-22 Sun 12:00] ann, session s1\n"
        '- State "TODO" from "DONE" [2026-11-22 Sun 12:00] ann, session s1\n'
        '- State "DONE" from "TODO" [2026-11-22 Sun 12:00] ann, session s1\n:END:\n'
    )


def test_a_call_that_was_broken_off_adds_once() -> None:
    file = add(tasks(""), "Pay")
    assert file.add("Pay", ANN) == (file.org, "pay")
    assert file.add("Pay", By(NOON, call="c2"))[1] == "pay-2"
    assert file.add("Pay", By(NOON))[1] == "pay-2"


def test_ids_are_words_and_free() -> None:
    file = tasks("")
    for title in ("Übung 1: läuft!", "🎉", "🎉", "x" * 300):
        file = add(file, title, by=By(NOON))
    assert [one.id for one in file.tasks] == ["übung-1-läuft", "task", "task-2", "x" * 40]


@pytest.mark.parametrize(
    "title",
    ["TODO buy", "[#A] pay", "COMMENT x", "a :b:c:", ":a:", "* x", "<2026-01-01 Thu>", "#+x", "a  \n b"],
)
def test_a_title_is_a_title_whatever_it_looks_like(title: str) -> None:
    found = only(add(tasks(""), title, reminder=True, at="tomorrow 9:00"))
    assert (found.title, found.word, found.reminder) == (" ".join(title.split()), "TODO", True)


@given(st.text(max_size=60))
def test_any_title_comes_back_or_is_refused(title: str) -> None:
    file = tasks("* TODO before\n")
    try:
        title = clean_title(title)
    except ToolError:
        complaint(ToolError, lambda: file.add(title, ANN))
        return
    assert [one.title for one in add(file, title).tasks] == ["before", title.replace("\u200b", "").strip()]


@pytest.mark.parametrize(
    ("title", "said"),
    [
        (" \n\t", "The title is empty. Describe in a few words what it is about."),
        ("x" * 307, "The title has 307 characters, 7 too many (maximum: 300)."),
        ("a\0b", "The title contains an invalid character (a control character or an unpaired surrogate)."),
        (
            "a\ud800b",
            "The title contains an invalid character (a control character or an unpaired surrogate).",
        ),
    ],
)
def test_a_title_that_is_none(title: str, said: str) -> None:
    assert complaint(ToolError, lambda: tasks("").add(title, ANN)) == said


EDITS: dict[str, Callable[[TaskFile, OrgTask], Org]] = {
    "done": lambda file, task: file.set_done(task, not task.done, ANN),
    "note": lambda file, task: file.note(task, "* a note", ANN),
    "deliver": lambda file, task: file.deliver([task]),
}
OWN = [
    task(at="<2026-12-01 Tue>"),
    task(at="<2026-12-01 Tue 09:00>", ID="x"),
    "* TODO Call mum\n",
    "* DONE Call\n",
]


@given(
    st.lists(st.sampled_from([line for line in LINES if "\x00" not in line]), max_size=20),
    st.lists(st.sampled_from([line for line in LINES if "\x00" not in line]), max_size=20),
    st.sampled_from(OWN),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([*EDITS, "add"]),
)
@examples(3)
def test_all_else_in_the_file_stays_byte_for_byte(
    before: list[str], after: list[str], own: str, newline: str, ended: bool, edit: str
) -> None:
    text = "".join(f"{line}\n" for line in before) + own + "".join(f"{line}\n" for line in after)
    data = (text if ended else text[:-1]).replace("\n", newline).encode()
    file = TaskFile(data)
    if edit == "add":
        new = dump(file.add("New", ANN)[0])
        assert new.startswith(data)
        assert TaskFile(new).tasks[-1].title == "New"
        return
    place = next(index for index, one in enumerate(file.org.entries) if "Call" in one.title)
    for one in (one for one in file.tasks if one.entry == place):
        new = dump(EDITS[edit](file, one))
        entry = file.org.entries[place]
        kept = file.org.lines
        head = "".join(f"{line}{newline}" for line in kept[: entry.row]).encode()
        tail = newline.join(kept[entry.stop :]).encode()
        bom = data[:3] if file.org.bom else b""
        assert new.startswith(bom + head)
        assert new.removesuffix(newline.encode()).endswith(tail.removesuffix(newline.encode()))
        assert len(TaskFile(new).org.entries) == len(file.org.entries)


# Reading


def test_a_person_who_moves_the_stamp_in_emacs_wins() -> None:
    made = add(tasks(""), "Call mum", "2026-12-01T09:00+01:00")
    moved = TaskFile(dump(made.org).replace(b"<2026-12-01 Tue 09:00>", b"<2026-12-02 Wed 10:30>"))
    gone = TaskFile(dump(made.org).replace(b"DEADLINE: <2026-12-01 Tue 09:00>\n", b""))
    assert [str(only(one).due) for one in (made, moved, gone)] == [
        "2026-12-01 09:00:00+01:00",
        "2026-12-02 10:30:00+01:00",
        "None",
    ]


def test_what_was_told_is_told_again_when_it_is_moved() -> None:
    file = add(tasks(""), "Call mum", "tomorrow 9:00")
    told = again(file.deliver(file.undelivered()))
    assert not told.undelivered()
    moved = TaskFile(dump(told.org).replace(b"Mon 09:00>", b"Mon 09:05>"))
    assert [exact_text(one.due) for one in moved.undelivered() if one.due] == ["2026-11-23T09:05:00+01:00"]


def test_a_reminder_is_done_once_it_was_told_and_a_task_is_not() -> None:
    file = add(add(tasks(""), "a", "tomorrow 9:00", reminder=True), "b", "tomorrow 9:00", By(NOON))
    assert [one.done for one in again(file.deliver(file.undelivered())).tasks] == [True, False]


def test_what_is_overdue_comes_first_and_what_has_no_time_last() -> None:
    file = tasks(
        BERLIN + "* TODO none\n* TODO later\nSCHEDULED: <2026-12-02 Wed>\n* DONE over\n"
        "* TODO late\nSCHEDULED: <2026-11-22 Sun 11:59>\n* no task\n"
        "* TODO today\nSCHEDULED: <2026-11-22 Sun>\n"
        "* COMMENT x\n** TODO hidden\n* TODO old :ARCHIVE:\n"
    )
    assert [(one.title, file.is_due(one, NOON)) for one in file.open] == [
        ("today", True),
        ("late", True),
        ("later", False),
        ("none", False),
    ]
    assert summary(file, file.open, NOON) == "4 tasks open, 2 of them due. Next: today, due today."
    assert summary(file, [], NOON) == "No open tasks."


THREE = task(ID="call-mum") + task(ID="pay-rent", title="Pay rent") + "* DONE Pay tax\n"


@pytest.mark.parametrize(
    ("words", "done", "title"),
    [
        ("call-mum", None, "Call mum"),
        ("CALL  MUM", None, "Call mum"),
        ("rent", None, "Pay rent"),
        ("pay", False, "Pay rent"),
        ("pay", True, "Pay tax"),
        ("tax", False, "Pay tax"),
    ],
)
def test_a_task_is_found_by_what_is_at_hand(words: str, done: bool | None, title: str) -> None:
    assert tasks(THREE).find(words, done=done).title == title


LIST = "The tasks are call-mum, pay-rent, Pay tax."


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (THREE, "cal-mum", f"Unknown task 'cal-mum'. Did you mean call-mum? {LIST}"),
        (THREE, "xyz", f"Unknown task 'xyz'. {LIST}"),
        (THREE, "", f"Name the task by its id or title. {LIST}"),
        (THREE, "pay", "2 tasks match 'pay': pay-rent, Pay tax. Give the id."),
        ("", "xyz", "Unknown task 'xyz'. There are no tasks yet."),
    ],
)
def test_a_task_that_is_not_found(text: str, words: str, said: str) -> None:
    assert complaint(ToolError, lambda: tasks(text).find(words)) == said


# What is broken is told by its line, and left alone

STAMP = "such as SCHEDULED: <2030-12-01 Sun 09:00>"
FAULTS = [
    ("* TODO a\nSCHEDULED: <2026-13-45 Mon>\n", f"memory.org:1: '<2026-13-45 Mon>' is not a time, {STAMP}"),
    ("\n* TODO a\n  SCHEDULED: tomorrow\n", f"memory.org:2: 'tomorrow' is not a time, {STAMP}"),
    (
        "* TODO a\n:PROPERTIES:\n:ID: x\n",
        "memory.org:1: its properties are not lines of :NAME: value that end with :END:",
    ),
    (
        "* TODO a\n:PROPERTIES:\n:ID: x\n:END:\nSCHEDULED: <2026-12-01 Tue>\n",
        "memory.org:1: SCHEDULED: must be right below the headline, above the properties "
        "(SCHEDULED: <2030-12-01 Sun 09:00>)",
    ),
    (task(ID="x") + task(ID="X"), "memory.org:5: line 1 has the same ID X"),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_a_headline_that_cannot_be_read(text: str, said: str) -> None:
    file = tasks(text + "* TODO fine\n")
    assert file.faults == [f"{said}. {THIS_HEADLINE_WAS_SKIPPED}."]
    assert file.tasks[-1].title == "fine"
    assert len(file.tasks) == text.count("TODO")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"* TODO a\n* \xff\n", f"memory.org:2: {THIS_IS_NOT_UTF_8}. The file was not changed."),
        (b"* TODO a\n\n\0\n", "memory.org:3: a NUL character. The file was not changed."),
        (
            b"#+TODO: TODO\n",
            "memory.org:1: this does not declare keywords for open and done tasks. Example: "
            "#+TODO: TODO | DONE.",
        ),
        (
            b"\n#+PROPERTY: ZONE Europe/Berln\n",
            "memory.org:2: unknown time zone 'Europe/Berln'. Write a zone as UTC or Europe/Berlin.",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, data: bytes, said: str) -> None:
    files(tmp_path, {"memory.org": data})
    assert complaint(ToolError, lambda: change(tmp_path, lambda file: file.add("x", ANN))) == said
    assert (tmp_path / "memory.org").read_bytes() == data


def test_what_repeats_is_closed_in_emacs() -> None:
    file = tasks("* TODO water\nSCHEDULED: <2026-12-01 Tue 09:00 +1w>\n")
    assert complaint(ToolError, lambda: file.set_done(only(file), True, ANN)) == (
        "memory.org:1: water repeats. Mark it done in Emacs (C-c C-t), which moves it to its next time."
    )


# Others write too


def change(root: Path, edit: Callable[[TaskFile], tuple[Org, str]]) -> str:
    return change_tasks(Workspace(root), edit)


def test_two_processes_add_a_hundred_tasks_each(tmp_path: Path) -> None:
    files(tmp_path, {"memory.org": "* mine\n"})

    def adding(who: str) -> None:
        for number in range(100):
            change(tmp_path, lambda file, n=number: file.add(f"{who} {n}", By(NOON)))  # type: ignore[misc]

    children = [in_a_process(lambda who=who: adding(who)) for who in ("ann", "bob")]  # type: ignore[misc]
    assert ended_well(children)
    found = read_tasks(Workspace(tmp_path))
    assert {one.title for one in found.tasks} == {f"{who} {n}" for who in ("ann", "bob") for n in range(100)}
    assert len({one.id for one in found.tasks}) == 200
    assert (tmp_path / "memory.org").read_text().startswith("* mine\n")


@pytest.mark.parametrize("there", [True, False])
def test_an_editor_that_writes_in_between_loses_nothing(tmp_path: Path, there: bool) -> None:
    path = files(tmp_path, {"memory.org": "* TODO old\n"} if there else {}) / "memory.org"
    seen = []

    def edit(file: TaskFile) -> tuple[Org, str]:
        seen.append(len(file.tasks))
        if len(seen) == 1:
            path.write_text("* TODO old\n* TODO from the editor\n")
        return file.add("ours", ANN)

    change(tmp_path, edit)
    assert seen == [int(there), 2]
    assert [one.title for one in read_tasks(Workspace(tmp_path)).tasks] == ["old", "from the editor", "ours"]


def test_an_editor_that_writes_all_the_time_is_told(tmp_path: Path) -> None:
    path = files(tmp_path, {"memory.org": ""}) / "memory.org"

    def edit(file: TaskFile) -> tuple[Org, str]:
        path.write_text(f"{file.org.text}#\n")
        return file.add("ours", ANN)

    assert complaint(ToolError, lambda: change(tmp_path, edit)) == (
        f"memory.org {HAS_CHANGED_SINCE_IT_WAS_READ}. {READ_IT_AGAIN_THEN_CHANGE}."
    )
    assert "ours" not in path.read_text()


def test_who_is_killed_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    files(tmp_path, {"memory.org": "* mine\n"})
    chance = random.Random(14)

    def adding() -> None:
        for number in range(10_000):
            change(tmp_path, lambda file, n=number: file.add(f"task {n}", By(NOON)))  # type: ignore[misc]

    for _ in range(many(1)):
        before = len(read_tasks(Workspace(tmp_path)).tasks)
        child = in_a_process(adding)
        time.sleep(chance.uniform(0.005, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        now = read_tasks(Workspace(tmp_path))
        assert not now.faults
        assert [one.title for one in now.tasks[before:]] == [
            f"task {n}" for n in range(len(now.tasks) - before)
        ]
        assert dump(now.org).startswith(b"* mine\n")
        assert dump(now.org).endswith((b":END:\n", b"* mine\n"))
    assert now.tasks


def test_the_file_must_be_in_the_workspace(tmp_path: Path) -> None:
    files(tmp_path, {"out.org": "* TODO a\n", "home/a.txt": ""})
    (tmp_path / "home" / "memory.org").symlink_to("../out.org")
    said = complaint(ToolError, lambda: change(tmp_path / "home", lambda file: file.add("x", ANN)))
    assert said == f"memory.org {IS_OUTSIDE_THE_WORKSPACE} {tmp_path / 'home'}."


def test_a_file_that_is_too_long_is_told(tmp_path: Path) -> None:
    files(tmp_path, {"memory.org": "x" * 5_000_001})
    assert complaint(ToolError, lambda: read_tasks(Workspace(tmp_path))) == (
        "memory.org is larger than 5000000 bytes; move finished entries to another file."
    )


if EMACS:

    def test_org_lint_has_nothing_to_say_of_it(tmp_path: Path) -> None:
        file = add(add(tasks(""), "[#A] a :b:", "tomorrow 9:00", reminder=True), "b", "tomorrow", By(NOON))
        for one in (0, 1):
            file = again(file.set_done(file.tasks[one], True, ANN))
            file = again(file.note(file.tasks[one], "* [1/2] ~x", ANN))
            file = again(file.deliver([file.tasks[one]]))
        files(tmp_path, {"memory.org": dump(file.org)})
        script = """
          (require 'org) (require 'org-lint) (find-file (pop command-line-args-left))
          (dolist (one (org-lint)) (princ (format "%s: %s\n" (aref (cadr one) 0) (aref (cadr one) 2))))
          (org-map-entries (lambda ()
            (princ (format "%s|%s|%s|%s|%s\n" (org-get-heading t t t t) (org-get-todo-state)
                     (org-entry-get nil "SCHEDULED") (org-entry-get nil "DEADLINE")
                     (org-entry-get nil "ID")))))
        """
        assert emacs(tmp_path, tmp_path / "memory.org", script=script) == (
            "\u200b[#A] a :b:\u200b|DONE|<2026-11-23 Mon 09:00>|nil|a-a-b\nb|DONE|nil|<2026-11-23 Mon>|b\n"
        )

    def test_emacs_saves_between_our_reading_and_our_writing(tmp_path: Path) -> None:
        path = files(tmp_path, {"memory.org": "* TODO old\n"}) / "memory.org"
        script = """
          (require 'org) (find-file (pop command-line-args-left))
          (org-schedule nil "2026-12-24 18:00") (goto-char (point-max)) (insert "* TODO mine\n") (save-buffer)
        """
        came = []

        def edit(file: TaskFile) -> tuple[Org, str]:
            if not came:
                came.append(emacs(tmp_path, path, script=script))
            return file.add("ours", ANN)

        change(tmp_path, edit)
        found = read_tasks(Workspace(tmp_path)).tasks
        assert [one.title for one in found] == ["old", "mine", "ours"]
        assert str(found[0].due) == "2026-12-24 18:00:00+01:00"

    def test_emacs_notices_what_we_wrote_below_its_unsaved_changes(tmp_path: Path) -> None:
        path = files(tmp_path, {"memory.org": "* TODO old\n"}) / "memory.org"
        go = tmp_path / "go"
        script = f"""
          (find-file "{path}") (goto-char (point-max)) (insert "* TODO mine\\n")
          (write-region "" nil "{go}") (while (file-exists-p "{go}") (sleep-for 0.02))
          (princ (format "%s " (if (verify-visited-file-modtime) "unseen" "seen")))
          (let ((mine (buffer-string))) (revert-buffer t t) (princ (buffer-string))
            (goto-char (point-max)) (insert (substring mine 11)) (save-buffer))
        """
        said: list[str] = []
        child = in_a_process(lambda: files(tmp_path, {"said": emacs(tmp_path, script=script)}))
        while not go.exists():
            time.sleep(0.01)
        change_tasks(Workspace(tmp_path), lambda file: file.add("ours", ANN), say=said.append)
        go.unlink()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert said == ["memory.org has unsaved changes in Emacs, which will say that the file was changed."]
        assert (tmp_path / "said").read_text().startswith("seen * TODO old\n* TODO ours\n")
        assert [one.title for one in read_tasks(Workspace(tmp_path)).tasks] == ["old", "ours", "mine"]


@pytest.mark.parametrize(
    ("planning", "due"),
    [
        ("DEADLINE: <2026-12-01 Tue>", "2026-12-01"),
        ("CLOSED: [2026-01-01 Thu] DEADLINE: <2026-12-01 Tue 09:00>", "2026-12-01T09:00:00"),
        ("DEADLINE: <2026-12-05 Sat> SCHEDULED: <2026-12-01 Tue>", "2026-12-01"),
        ("SCHEDULED: <2026-12-01 Tue> DEADLINE: <2026-12-05 Sat>", "2026-12-01"),
    ],
)
def test_a_deadline_is_due_where_nothing_is_scheduled(planning: str, due: str) -> None:
    (task,) = tasks(f"* TODO rent\n{planning}\n").undelivered()
    assert task.due is not None
    assert exact_text(task.due).startswith(due)


def test_a_deadline_that_is_no_time_is_told() -> None:
    assert tasks("* TODO rent\nDEADLINE: soon\n").faults == [
        f"memory.org:1: 'soon' {IS_NOT_A_TIME_SUCH_AS} DEADLINE: <2030-12-01 Sun 09:00>. "
        f"{THIS_HEADLINE_WAS_SKIPPED}."
    ]


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("pay", "Pay"),
        ("pay rent", "Pay rent"),
        ("PAY", "Pay"),
        ("b", "Pay rent"),
        ("rent now", "Pay rent now"),
    ],
)
def test_an_id_counts_before_a_title_and_a_whole_title_before_a_part(words: str, title: str) -> None:
    text = task(ID="a", title="Pay") + task(ID="b", title="Pay rent") + task(ID="c", title="Pay rent now")
    assert tasks(text).find(words).title == title


@pytest.mark.parametrize(("many", "more"), [(20, ""), (21, " and 1 more")])
def test_of_many_tasks_the_first_are_named(many: int, more: str) -> None:
    text = "".join(task(ID=f"t{number}", title=f"Task {number}") for number in range(many))
    said = complaint(ToolError, lambda: tasks(text).find("xyz"))
    assert said.endswith(f"t18, t19{more}.")


def test_a_task_is_shown_as_data() -> None:
    file = tasks(
        BERLIN + "* TODO late\nSCHEDULED: <2026-11-22 Sun 11:59>\n* DONE over\nSCHEDULED: <2026-11-22 Sun>\n"
    )
    shown = [file.shown(one, NOON) for one in file.tasks]
    assert [(one["title"], one["overdue"], one["line"]) for one in shown] == [
        ("late", True, 2),
        ("over", False, 4),
    ]
    assert file.is_due(file.tasks[0], NOON)
    assert not tasks("* TODO none\n").is_due(tasks("* TODO none\n").tasks[0], NOON)


@pytest.mark.parametrize(
    ("data", "line"), [(b"\0", 1), (b"* TODO a\n\0", 2), (b"\xff", 1), (b"* TODO a\n\xff", 2)]
)
def test_a_file_that_is_no_text_is_told_by_the_line(data: bytes, line: int) -> None:
    assert complaint(ToolError, lambda: TaskFile(data)).startswith(f"memory.org:{line}: ")


def test_a_note_may_be_just_so_long() -> None:
    file = tasks(THREE)
    one = file.find("call-mum")
    assert b"x" * 2_000 in dump(file.note(one, "x" * 2_000, By(NOON)))
    said = complaint(ToolError, lambda: file.note(one, "x" * 2_001, By(NOON)))
    assert said == "The note has 2001 characters, 1 too many (maximum: 2000)."
