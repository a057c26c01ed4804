"""What runs after a file was written: a formatter counts as the same write, and of a linter only what is new
is told to the model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import quoth
from sentences import DID_NOT_FINISH_WITHIN, IT_CANNOT_BE_STARTED, THERE_IS_NO_FILE
from words import files, story

from quoth.agent.config.loading import user_config
from quoth.tools.door import after
from quoth.tools.shell import boundary
from quoth.tools.shell.after import AfterWrite, new_lines

WRITE = '(write-file :path "{}" :content "{}")'
UPPER = """sh" "-c" "tr a-z A-Z <\\"$1\\" >t && cat t >\\"$1\\"; rm t" "upper"""
# It complains of each line that holds a word with a digit, by its number.
LINT = """sh" "-c" "! grep -nH '[a-z][0-9]' \\"$1\\"" "lint"""


def hooks(*said: str) -> None:
    """The user's settings are these."""
    user_config().parent.mkdir(parents=True, exist_ok=True)
    user_config().write_text("\n".join(said))


def told(place: Path, *calls: str, **options: str) -> list[str]:
    """What a model is told beside the values of its calls, all of which are allowed."""
    run = story(place, *calls, "Done.", consent="yes", **options)
    assert run.statuses == ["ok"] * len(calls)
    return [call.result.message for call in run.reply.calls]


def test_a_formatter_is_a_part_of_the_write(tmp_path: Path) -> None:
    """The model may go on with what it made of the file, and all of it is put back by one command."""
    hooks(f'(after "*.txt" ["{UPPER}" file])')
    place = files(tmp_path / "home", {"a.txt": "old\n", "b.org": ""})
    edit = '(edit-file :path "a.txt" :old "NEW" :new "newer")'
    said = told(
        place,
        '(read-file :path "a.txt")',
        WRITE.format("a.txt", "new"),
        edit,
        WRITE.format("c.org", "c"),
        session="s1",
    )
    assert (place / "a.txt").read_text() == "NEWER"
    assert (place / "c.org").read_text() == "c"
    changed = "a.txt was changed after the write by: sh -c "
    assert [changed in message for message in said] == [False, True, True, False]
    assert quoth("undo", "s1", "--yes", cwd=place).code == 0
    assert (place / "a.txt").read_text() == "old\n"


def test_only_new_faults_are_told(tmp_path: Path) -> None:
    hooks(f'(after "*.txt" ["{LINT}" file])')
    place = files(tmp_path / "home", {"in/a.txt": "one\nbad1\n"})
    read = '(read-file :path "in/a.txt")'
    same, more, good = (
        WRITE.format("in/a.txt", text) for text in (r"one\ntwo\nbad1\n", r"bad2\nbad1\n", "good")
    )
    _, first, second, third, new = told(place, read, same, more, good, WRITE.format("b.txt", "bad3"))
    assert first == ""
    assert second.endswith("lint in/a.txt:\n| in/a.txt:1:bad2")
    assert third == ""
    assert new.endswith("lint b.txt:\n| b.txt:1:bad3")
    assert sorted(os.listdir(place / "in")) == ["a.txt"]


@pytest.mark.parametrize(
    ("now", "before", "new"),
    [
        ("a.py:3:1 F401 os", "old/a.py:1:9 F401 os", []),
        ("a.py:3:1 F401 os", "old/a.py:1:9 F811 os", ["a.py:3:1 F401 os"]),
        ("a.py:3 x\na.py:9 x", "old/a.py:1 x", ["a.py:9 x"]),
        ("Found 3 errors.\n\n", "Found 2 errors.", []),
        ("one", "", ["one"]),
    ],
)
def test_a_fault_is_the_same_whatever_its_line(now: str, before: str, new: list[str]) -> None:
    assert new_lines(now, before, "a.py", "old/a.py") == new


def test_they_run_inside_the_boundary_unless_the_user_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, outside = files(tmp_path / "home", {"x": ""}), tmp_path / "outside"
    touch = f'(after "*.txt" ["touch" "{outside}"]{{}})'
    hooks(touch.format(""))
    told(place, WRITE.format("a.txt", "a"))
    assert not outside.exists()
    monkeypatch.setattr(boundary, "boundary_kind", lambda: "")
    monkeypatch.setattr(boundary, "why_none", lambda: "There is no bwrap.")
    (message,) = told(place, WRITE.format("b.txt", "b"))
    assert message == (
        f"After the write: touch {outside}: it was not run, because no boundary works here"
        " (There is no bwrap); :confined False in config.hy runs it anyway."
    )
    assert not outside.exists()
    hooks(touch.format(" :confined False"))
    told(place, WRITE.format("c.txt", "c"))
    assert outside.exists()


def test_they_do_not_see_what_the_rules_forbid_reading(tmp_path: Path) -> None:
    hooks('(after "*.txt" ["sh" "-c" "cat .env vendor/x; exit 1"])')
    place = files(tmp_path / "home", {".env": "KEY=1", "vendor/x": "seen"})
    rules = files(tmp_path, {"rules.hy": """(allow (write-file))
(deny (read-file :path ".env"))
(deny (write-file :path (under "vendor")))"""})  # fmt: skip
    (message,) = told(place, WRITE.format("a.txt", "a"), policy=str(rules / "rules.hy"))
    assert "KEY" not in message
    assert "| seen" in message


def test_they_are_refused_where_git_outside_could_run_what_they_say(tmp_path: Path) -> None:
    hooks('(after "*.txt" ["touch" "it-ran"])')
    place = files(tmp_path / "home", {"store/x": ""})
    (place / ".git").symlink_to("store")
    (message,) = told(place, WRITE.format("a.txt", "a"))
    assert message == (
        "After the write: touch it-ran: it was not run, because .git is a link, which cannot be protected, so"
        " git outside may run commands from the program; :confined False in config.hy runs it anyway."
    )
    assert not (place / "it-ran").exists()


def test_what_they_write_that_others_obey_is_named(tmp_path: Path) -> None:
    hooks('(after "*.txt" ["touch" ".envrc"])')
    (message,) = told(files(tmp_path / "home", {"x": ""}), WRITE.format("a.txt", "a"))
    assert "After the write: touch .envrc: It wrote files that other programs obey: .envrc." in message


def test_one_that_fails_is_told_and_the_write_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after, "SECONDS", 0.5)
    hooks(
        '(after "*.txt" ["no-such-program" file] :confined False)',
        '(after "*.txt" ["sleep" "60"] :confined False)',
        '(after "*.txt" ["false"] :confined False)',
        '(after "*.txt" ["rm" file] :confined False)',
    )
    (message,) = told(files(tmp_path / "home", {"x": ""}), WRITE.format("-a.txt", "a"))
    assert message.splitlines() == [
        f"After the write: no-such-program ./-a.txt: {IT_CANNOT_BE_STARTED}: No such file or directory.",
        f"After the write: sleep 60: it {DID_NOT_FINISH_WITHIN} 0.5 s, and was stopped.",
        f"After -a.txt was written: {THERE_IS_NO_FILE} -a.txt.",
    ]


def test_a_pattern_with_a_slash_is_of_the_whole_path() -> None:
    def fits(pattern: str, path: str) -> bool:
        return AfterWrite(pattern, ("true",)).fits(path)

    assert fits("*.py", "src/a.py")
    assert fits("src/*.py", "src/a.py")
    assert not fits("src/*.py", "test/a.py")
    assert not fits("*.py", "a.pyc")
    assert not fits("src*", "src/a.py")
    assert fits("**/*.py", "a.py")
    assert fits("**/*.py", "src/new/a.py")
    assert fits("src/**/*.py", "src/a.py")
    assert not fits("src/**/*.py", "test/src/a.py")
    assert not fits("**/src.py", "a/my-src.py")
