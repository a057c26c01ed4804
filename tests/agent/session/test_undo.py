"""What a session has written is put back, and nothing of anybody else's is lost by it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from editing import Editing
from examples import many
from processes import in_a_process
from sentences import LIST_FILES_SHOWS_WHAT_IS
from words import agent, complaint, files

from quoth import Agent
from quoth.agent.run.runs import undo_of
from quoth.agent.session.index import fork_session
from quoth.agent.session.undo import Done, Undo, UndoPlan, plan_lines
from quoth.tools.call import workspace as workspace_module
from quoth.tools.call.keeping import MAX_FILE
from quoth.tools.errors import UsageError
from quoth.tools.history import versions as versions_module
from quoth.tools.lisp.forms import CallForm
from quoth.tools.storage.database import Store

NO_REDO = "Session s1 has no undo to redo."
ONE = {"a.txt": "one\ntwo\n"}


@contextlib.contextmanager
def at_work(folder: Path, *replies: str, **options: Any) -> Iterator[Agent]:
    """An agent whose calls are all allowed, in a session s1."""
    given = {"session": "s1", "consent": "yes", "user": "ann", **options}
    with agent(folder, *replies, **given) as one:
        yield one


def write(one: Agent, path: str, content: str) -> None:
    assert one.call(f'(write-file :path "{path}" :content "{content}")').ok


def way_of(one: Agent, session: str = "") -> Undo:
    return undo_of(one._agent.host, session)


def undone(one: Agent, since: int = 0) -> tuple[UndoPlan, Done]:
    way = way_of(one)
    plan = way.plan(since)
    return plan, way.do(plan)


def redone(one: Agent) -> Done:
    way = way_of(one)
    return way.do(way.plan_redo())


def left(plan: UndoPlan) -> dict[str, str]:
    return {one.path: one.why for one in plan.left}


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: the bytes of each file, None for a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


# There and back


def test_a_session_is_put_back_and_written_again(tmp_path: Path) -> None:
    before = tree(files(tmp_path, {**ONE, "b.bin": b"\x00\xff", "empty.txt": ""}))
    (tmp_path / "a.txt").chmod(0o640)
    with at_work(tmp_path) as one:
        write(one, "a.txt", "1")
        assert one.call('(edit-file :path "a.txt" :old "1" :new "2")').ok
        write(one, "b.bin", "text")
        write(one, "empty.txt", "full")
        write(one, "new/deep/c.txt", "c")
        write(one, "new/d.txt", "")
        after = tree(tmp_path)
        plan, done = undone(one)
        assert (tree(tmp_path), plan.left, done.failed) == (before, (), ())
        assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640
        assert plan.files[0].path == "new/d.txt", "the newest comes first"
        redone(one)
        assert tree(tmp_path) == after
        undone(one)
        assert tree(tmp_path) == before
        assert way_of(one).plan().empty
        told = [event.said["text"] for event in one._agent.transcript.events("s1", kind="undo")]
        assert [text.partition(":")[0] for text in told] == [
            "Undid changes (u1)",
            "Redid changes (r1)",
            "Undid changes (u2)",
        ]


def test_what_was_unsaved_in_an_editor_is_put_back_with_a_word_about_it(tmp_path: Path) -> None:
    with at_work(files(tmp_path, {**ONE, "b.txt": "saved\n"})) as one:
        editor = one._agent.workspace.buffers = Editing(a_txt="one\nunsaved\n")
        editor.formats = lambda text: text.replace("2", "two")
        assert one.call('(edit-file :path "a.txt" :old "one" :new "2")').ok
        write(one, "b.txt", "other\n")
        assert (tmp_path / "a.txt").read_text() == "two\nunsaved\n"
        editor.texts["b.txt"] = "typed later\n"
        assert left(way_of(one).plan()) == {"b.txt": "it was changed since by another program"}
        one._agent.workspace.buffers = None  # the editor has gone
        plan, done = undone(one)
        heads = [line for line in plan_lines(plan, color=False) if ".txt" in line]
        unsaved = [
            " a.txt" in line
            for line in heads
            if line.endswith("(this text was in an editor and not yet saved)")
        ]
        assert (len(heads), unsaved, done.failed) == (2, [True], ())
        assert [(tmp_path / name).read_text() for name in ("a.txt", "b.txt")] == ["one\nunsaved\n", "saved\n"]
        redone(one)
        assert (tmp_path / "a.txt").read_text() == "two\nunsaved\n"


def test_the_way_back_can_be_gone_in_steps(tmp_path: Path) -> None:
    with at_work(files(tmp_path, ONE)) as one:
        for number in range(4):
            write(one, "a.txt", str(number))
        places = [event.seq for event in one._agent.transcript.events("s1", kind="call")]
        for number in (3, 2):
            undone(one, places[number])
            assert (tmp_path / "a.txt").read_text() == str(number - 1)
        redone(one)
        assert (tmp_path / "a.txt").read_text() == "2"
        redone(one)
        assert (tmp_path / "a.txt").read_text() == "3"
        assert complaint(UsageError, lambda: redone(one)) == NO_REDO
        undone(one, places[1])
        write(one, "a.txt", "new")
        assert left(way_of(one).plan_redo()) == {"a.txt": "it was written again after that undo"}
        undone(one)
        assert (tmp_path / "a.txt").read_text() == ONE["a.txt"]


def test_sub_agents_programs_and_runs_are_covered(tmp_path: Path) -> None:
    before = tree(files(tmp_path, ONE))
    program = '(eval (do (write-file :path "p.txt" :content "p") (edit-file "a.txt" :old "one" :new "1")))'
    helper = '(cognitive-loop :task "Write h.txt")'
    said = [
        '(read-file :path "a.txt")',
        program,
        helper,
        '(write-file :path "h.txt" :content "h")',
        "It is.",
        "Done.",
    ]
    with at_work(tmp_path, *said) as one:
        assert one.run("Go.").text == "Done."
        assert set(tree(tmp_path)) == {"a.txt", "p.txt", "h.txt"}
        plan, _ = undone(one)
        assert (tree(tmp_path), plan.uncovered) == (before, ())
    with at_work(tmp_path, '(edit-file :path "a.txt" :old "one" :new "1")', "Done.") as one:
        (call,) = one.run("Again.").calls
        assert call.result.message == 'Read it first: (read-file :path "a.txt")'


# What somebody else has done

OTHERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed": (lambda file: file.write_text("mine"), "it was changed since by another program"),
    "removed": (lambda file: file.unlink(), "it was removed since by another program"),
    "a folder": (
        lambda file: (file.unlink(), file.mkdir()),
        f"is a folder; {LIST_FILES_SHOWS_WHAT_IS}",
    ),
    "a link inside": (
        lambda file: (file.unlink(), file.symlink_to("b.txt")),
        "its path now leads to b.txt",
    ),
    "a link outside": (
        lambda file: (file.unlink(), file.symlink_to("/etc/passwd")),
        "its path now leads to a place outside the workspace",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_somebody_else_has_changed_is_not_touched(tmp_path: Path, what: str) -> None:
    act, why = OTHERS[what]
    with at_work(files(tmp_path, {**ONE, "b.txt": "b"})) as one:
        write(one, "a.txt", "1")
        write(one, "c.txt", "c")
        act(tmp_path / "a.txt")
        before = tree(tmp_path)
        plan, done = undone(one)
        assert left(plan) == {"a.txt": why}
        assert done.files == ("c.txt",), "the others are put back"
        assert {"c.txt": b"c", **tree(tmp_path)} == before


def test_the_folder_around_may_have_become_a_link(tmp_path: Path) -> None:
    outside = files(tmp_path / "out", {"a.txt": "1"})
    with at_work(files(tmp_path / "in", {"sub/a.txt": "one"})) as one:
        write(one, "sub/a.txt", "1")
        shutil.rmtree(tmp_path / "in/sub")
        (tmp_path / "in/sub").symlink_to(outside)
        plan, _ = undone(one)
        assert left(plan) == {"sub/a.txt": "its path now leads to a place outside the workspace"}
        assert (outside / "a.txt").read_text() == "1"


def test_a_file_it_made_may_have_become_a_link(tmp_path: Path) -> None:
    with at_work(files(tmp_path, {"b.txt": "b"})) as one:
        write(one, "a.txt", "1")
        (tmp_path / "a.txt").unlink()
        (tmp_path / "a.txt").symlink_to("/etc/passwd")
        plan = way_of(one).plan()
        assert left(plan) == {"a.txt": "its path now leads to a place outside the workspace"}


def test_a_hostile_name_draws_nothing(tmp_path: Path) -> None:
    with at_work(tmp_path) as one:
        name = "a\x1b[2J\nPut back 1 file.txt"
        assert one.call(CallForm("write-file", {"path": name, "content": "\x1b[31mred"})).ok
        plan = way_of(one).plan()
        (tmp_path / name).write_text("\x1b]0;mine\x07")
        for found in (plan, way_of(one).plan()):
            text = "\n".join(plan_lines(found, color=False))
            assert "\x1b" not in text
            assert "\nPut back" not in text


def test_a_change_in_between_stays(tmp_path: Path) -> None:
    with at_work(files(tmp_path, ONE)) as one:
        write(one, "a.txt", "1")
        (tmp_path / "a.txt").write_text("mine")
        one.call('(read-file :path "a.txt")')
        write(one, "a.txt", "2")
        plan, _ = undone(one)
        assert (
            plan.files[0].note == "another program changed it between these writes, so the earlier ones stay"
        )
        assert (tmp_path / "a.txt").read_text() == "mine"
        (why,) = left(way_of(one).plan()).values()
        assert why == "it was changed since by another program"


def test_what_would_have_been_put_back_is_shown(tmp_path: Path) -> None:
    with at_work(files(tmp_path, ONE)) as one:
        write(one, "a.txt", "1\\n")
        (tmp_path / "a.txt").write_text("1\nmine\n")
        ((found,), changed) = way_of(one).plan().left, way_of(one).changed()[0]
        assert found.difference is not None
        assert found.difference.to_json()["diff"] == "@@ line 1 @@\n-1\n-mine\n+one\n+two\n"
        assert changed[0].note == "another program has changed it since, too"


def test_another_session_is_named(tmp_path: Path) -> None:
    with at_work(files(tmp_path, ONE)) as one:
        write(one, "a.txt", "1")
    with at_work(tmp_path, session="s2") as two:
        write(two, "a.txt", "2")
        why = "it was changed since by session s2; run quoth undo s2 first"
        assert left(way_of(two, "s1").plan()) == {"a.txt": why}
        undone(two)
        way = way_of(two, "s1")
        way.do(way.plan())
        assert (tmp_path / "a.txt").read_text() == ONE["a.txt"]


def test_rules_and_rights_are_heeded(tmp_path: Path) -> None:
    files(tmp_path, {**ONE, "b.txt": "b", "keep/c.txt": "c"})
    with at_work(tmp_path) as one:
        for name in ("a.txt", "b.txt", "keep/c.txt"):
            write(one, name, "new")
    rules = files(tmp_path / "rules", {"p.hy": '(deny (write-file :path (under "keep")))'}) / "p.hy"
    (tmp_path / "b.txt").chmod(0o444)
    with at_work(tmp_path, policy=rules) as one:
        plan, done = undone(one)
        assert list(left(plan)) == ["keep/c.txt"]
        assert left(plan)["keep/c.txt"].startswith("the rules forbid it: ")
        assert [(file.path, file.why) for file in done.failed] == [
            ("b.txt", "is read-only (-r--r--r--) and was not changed; chmod u+w makes it writable")
        ]
        assert done.files == ("a.txt",)


def test_what_was_settled_is_not_named_again_when_somebody_changes_the_file(tmp_path: Path) -> None:
    file = files(tmp_path, ONE) / "a.txt"
    with at_work(tmp_path) as one:
        write(one, "a.txt", "red\\n")
        undone(one)
        file.write_text("mine\n")
        assert undone(one)[0].left == ()  # all of it is put back already
        assert way_of(one).plan_redo().left[0].to_json()["diff"] == "@@ line 1 @@\n-mine\n+red\n"
        file.write_text("one\ntwo\n")
        redone(one)
        file.write_text("mine")
        assert complaint(UsageError, lambda: redone(one)) == NO_REDO


# What is not kept


def test_old_contents_make_room_for_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions_module, "KEPT_BYTES", 30_000)
    rng = random.Random(1)
    texts = ["".join(rng.choices("0123456789abcdef", k=10_000)) for _ in range(12)]
    with at_work(files(tmp_path, {f"{n}.txt": text for n, text in enumerate(texts)})) as one:
        for number in range(12):
            write(one, f"{number}.txt", "new")
        ((kept,),) = one._agent.store.execute("SELECT sum(stored) FROM contents")
        assert 10_000 < kept <= 30_000
        plan, done = undone(one)
        assert done.files[0] == "11.txt"
        assert set(left(plan)) | set(done.files) == {f"{n}.txt" for n in range(12)}
        assert all(why.startswith("its earlier content was not kept") for why in left(plan).values())
        assert (tmp_path / "11.txt").read_text() == texts[11]


def test_a_file_that_is_too_large_is_said_at_once(tmp_path: Path) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(MAX_FILE + 1)
    with at_work(tmp_path) as one:
        result = one.call('(write-file :path "big.txt" :content "small")')
        assert result.message == (
            "big.txt was larger than 20,000,000 bytes, too large for quoth undo to restore."
        )
        assert left(way_of(one).plan())["big.txt"].startswith(
            "its earlier content was not kept (files up to 20 MB"
        )


def test_what_programs_did_is_listed(tmp_path: Path) -> None:
    tools = files(
        tmp_path,
        {
            "t.hy": """
            (require quoth [def-cognitive-tool])
            (def-cognitive-tool run-it "Run." :parameters [] :effects [:runs] :body "ran")
            (def-cognitive-tool scribble "Write." :parameters [] :effects [:writes]
              :body (.write (open "/dev/null" "w") "x"))
            (def-cognitive-tool refuse "No." :parameters [] :effects [:runs] :guard (do False) :body "never")
            """
        },
    )
    with at_work(tools, tools=[tools / "t.hy"]) as one:
        for name in ("run-it", "scribble", "refuse"):
            one.call(f"({name})")
        write(one, "a.txt", "a")
        plan = way_of(one).plan()
        assert [(found.form, found.why) for found in plan.uncovered] == [
            ("(run-it)", "it ran a program"),
            ("(scribble)", "the earlier content was not kept"),
        ]


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    key = "-----BEGIN KEY-----\nabcdef\n-----END KEY-----\n"
    before = tree(files(tmp_path, {".env": "PASSWORD=hunter22\nX=1\n", "id.pem": key}))
    with at_work(tmp_path) as one:
        write(one, ".env", "none")
        write(one, "id.pem", "none")
        said = str(way_of(one).plan().to_json()) + str(way_of(one).changed())
        plan = way_of(one).plan()
        assert "hunter22" not in str(plan.to_json())
        assert "abcdef" not in str(plan.to_json())
        assert "[secret]" in said
        way_of(one).do(plan)
        assert tree(tmp_path) == before


NOTHING = {
    "none": "Session s1 has written no file.",
    "fork": "Session FORK has written no file itself. To undo the writes before its fork: quoth undo s1.",
    "import": "Session s1 has written no file here; it was imported.",
}


def test_undo_of_nothing_is_one_sentence(tmp_path: Path) -> None:
    def nothing(one: Agent, session: str = "", since: int = 0) -> str:
        way = way_of(one, session)
        return way.nothing(way.plan(since), since)

    with at_work(tmp_path) as one:
        one.call('(echo :text "hi")')
        assert nothing(one) == NOTHING["none"]
        write(one, "a.txt", "a")
        assert nothing(one, since=50) == "Session s1 has written no file since s1.50."
        fork, _ = fork_session(one._agent.store, "s1")
        assert nothing(one, fork) == NOTHING["fork"].replace("FORK", fork)
        one._agent.transcript.mark_imported("s1", 6)
        one._agent.store.execute("DELETE FROM writes")
        assert nothing(one) == NOTHING["import"]


def test_a_session_that_is_removed_leaves_nothing(tmp_path: Path) -> None:
    with at_work(files(tmp_path, {**ONE, "b.txt": "both"})) as one:
        write(one, "a.txt", "1")
        write(one, "b.txt", "1")
    with at_work(files(tmp_path, {"b.txt": "both"}), session="s2") as two:
        write(two, "b.txt", "2")
        two._agent.transcript.remove("s1")
        assert two._agent.store.execute("SELECT count(*) FROM writes") == [(1,)]
        assert two._agent.store.execute("SELECT count(*) FROM contents") == [(1,)]


# Whatever happens


class Days:
    """Days of several writers in one folder, from a seed: the session s1, another one, a shell, an editor."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.before: dict[str, bytes | None] = {}
        self.touched: set[str] = set()  # by anybody but s1, and what lies around that
        names = ["a", "b", "sub/c", "sub/d", "new/deep/e", "f"]
        self.names = [f"{name}.txt" for name in names]
        files(folder, {name: self.text() for name in self.names[:4]})
        self.before = tree(folder)

    def text(self) -> str:
        return "".join(self.rng.choices(["x\\n", "y\\n", "zz\\n", ""], k=self.rng.randint(0, 4))).replace(
            "\\n", "\n"
        )

    def day(self, one: Agent, other: Agent) -> None:
        name = self.rng.choice(self.names)
        path = self.folder / name
        what = self.rng.choice(
            ["write"] * 6 + ["edit"] * 3 + ["shell", "editor", "other", "undo", "undo", "redo"]
        )
        there = path.is_file()
        match what:
            case "write":
                one.call(f'(read-file :path "{name}")')  # it may have changed
                write(one, name, self.text().replace("\n", "\\n"))
            case "edit" if there and (text := path.read_text()):
                old = text.splitlines()[0]
                one.call(f'(edit-file :path "{name}" :old "{old}" :new "{old}w" :all True)')
            case "shell" if there:
                path.unlink()
                self.touched.add(name)
            case "editor":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self.text() + "!")
                self.touched.add(name)
            case "other":
                other.call(f'(read-file :path "{name}")')
                write(other, name, "other")
                self.touched.add(name)
            case "undo":
                end = one._agent.transcript.last("s1", "receipt")
                undone(one, self.rng.randint(0, end.seq + 1 if end else 1))
            case "redo":
                with contextlib.suppress(UsageError):
                    redone(one)

    def faults(self) -> list[str]:
        """The files that only s1 has touched, and are not as they were."""
        now = tree(self.folder)
        return [
            name
            for name in {*now, *self.before}
            if name not in self.touched and not any(one.startswith(f"{name}/") for one in self.touched)
            if now.get(name, "none") != self.before.get(name, "none")
        ]


@pytest.mark.parametrize("seed", range(200 if many(1) > 30 else 6))
def test_after_undo_each_untouched_file_is_as_it_was(tmp_path: Path, seed: int) -> None:
    days = Days(tmp_path / "work", seed)
    with at_work(days.folder) as one, at_work(days.folder, session="s2") as other:
        for _ in range(days.rng.randint(3, 14)):
            days.day(one, other)
        mine = {
            name: (days.folder / name).read_bytes() for name in days.touched if (days.folder / name).exists()
        }
        plan, done = undone(one)
        assert (days.faults(), done.failed) == ([], ())
        for name, data in mine.items():
            if name in left(plan):
                assert (days.folder / name).read_bytes() == data
        again = way_of(one).plan()
        assert not again.files, "one undo takes all back that can be"


def test_the_days_would_tell_of_a_write_that_was_not_kept(tmp_path: Path) -> None:
    days = Days(tmp_path / "work", 1)
    with at_work(days.folder) as one:
        one._agent.door.versions = None
        write(one, "a.txt", "lost")
        assert way_of(one).plan().empty
        assert days.faults() == ["a.txt"]


# Killed


def killed_at(place: int, act: Callable[[], object]) -> bool:
    """Do it in a process that is killed before its ``place``-th change of a file or of the store; whether it
    came to that."""

    def work() -> None:
        count = 0

        def before(real: Callable[..., Any]) -> Callable[..., Any]:
            def instead(*given: Any, **more: Any) -> Any:
                nonlocal count
                count += 1
                if count == place:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*given, **more)

            return instead

        Store.transaction = before(Store.transaction)  # type: ignore[method-assign]
        workspace_module.os.replace = before(os.replace)  # type: ignore[attr-defined]
        os.unlink = before(os.unlink)
        os.rmdir = before(os.rmdir)
        act()

    return os.waitpid(in_a_process(work), 0)[1] != 0


def test_a_killed_undo_leaves_old_or_new_and_is_finished_by_the_next(tmp_path: Path) -> None:
    place, killed = 0, True
    while killed:
        place += 1
        work = tmp_path / str(place)
        before = tree(files(work, {**ONE, "b.txt": "b"}))
        with at_work(work) as one:
            write(one, "a.txt", "1")
            write(one, "new/c.txt", "c")
            assert one.call('(edit-file :path "b.txt" :old "b" :new "B")').ok
        after = tree(work)

        def undo(work: Path = work) -> None:
            with at_work(work) as one:
                undone(one)

        killed = killed_at(place, undo)
        for name, data in tree(work).items():
            if name.endswith(".quoth"):
                (work / name).unlink()  # what was being written; no file of anybody's
            else:
                assert data in (before.get(name), after.get(name)), (place, name)
        with at_work(work) as one:
            plan, _ = undone(one)
            assert (tree(work), plan.left) == (before, ()), place
    assert place > 8


def test_a_killed_write_can_be_put_back(tmp_path: Path) -> None:
    place, killed = 0, True
    while killed:
        place += 1
        work = tmp_path / str(place)
        before = files(work, ONE) and tree(work)

        def act(work: Path = work) -> None:
            with at_work(work) as one:
                one.call('(edit-file :path "a.txt" :old "one" :new "1")')

        killed = killed_at(place, act)
        for scratch in work.glob("*.quoth"):
            scratch.unlink()
        with at_work(work) as one:
            undone(one)
            assert tree(work) == before, place
            write(one, "a.txt", "2")
            undone(one)
            assert tree(work) == before, place
    assert place > 3
