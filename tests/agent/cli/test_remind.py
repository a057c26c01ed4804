"""quoth remind: each reminder is told once, by whoever is first, and rather twice than never."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sentences import (
    IS_NOT_A_TIME_SUCH_AS,
    IS_OUTSIDE_THE_WORKSPACE,
    THERE_IS_NO_CHANNEL,
    THERE_IS_NO_FILE,
    THIS_HEADLINE_WAS_SKIPPED,
    THIS_IS_NOT_UTF_8,
)
from words import Running, files, quoth, started, wait_until

from quoth.agent.cli import remind as command
from quoth.tools.call.workspace import Workspace

UTC_FILE = "#+PROPERTY: ZONE UTC\n"


def headline(title: str, at: str, tag: str = "") -> str:
    return f"* TODO {title}{tag}\nSCHEDULED: {at}\n"


def in_seconds(seconds: float) -> str:
    """A headline's stamp and exact time, so many seconds from now."""
    at = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds")
    return f"<{at[:10]} Mon {at[11:16]}>\n:PROPERTIES:\n:AT: {at}\n:END:"


PAST = headline("Call mum", "<2026-03-10 Tue 09:00>", " :reminder:")
OLDER = headline("Pay", "<2026-03-09 Mon>")
LATER = headline("Sleep", "<2999-01-01 Tue>")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return files(tmp_path, {"memory.org": UTC_FILE + PAST + LATER + OLDER})


def text(home: Path) -> str:
    return (home / "memory.org").read_text()


def test_what_is_due_is_told_once_the_oldest_first(home: Path) -> None:
    said = quoth("remind", cwd=home)
    assert (said.code, said.out, said.err) == (
        0,
        "Pay, due 2026-03-09 Mon\nCall mum, due 2026-03-10 Tue 09:00\n",
        "",
    )
    assert text(home) == (
        UTC_FILE
        + "* DONE Call mum :reminder:\nSCHEDULED: <2026-03-10 Tue 09:00>\n"
        + ":PROPERTIES:\n:DELIVERED: 2026-03-10T09:00:00+00:00\n:END:\n"
        + LATER
        + OLDER
        + ":PROPERTIES:\n:DELIVERED: 2026-03-09\n:END:\n"
    )
    said = quoth("remind", cwd=home)
    assert (said.code, said.out) == (0, "")
    assert said.err == "quoth: Nothing is due. Next: Sleep, due 2999-01-01 Tue.\n"


def test_json_is_one_object_on_a_line(home: Path) -> None:
    said = quoth("remind", "--json", cwd=home)
    assert [json.loads(line) for line in said.out.splitlines()][1] == {
        "id": "",
        "title": "Call mum",
        "state": "TODO",
        "due": "2026-03-10T09:00:00+00:00",
        "overdue": True,
        "line": 2,
        "file": "memory.org",
    }
    assert quoth("remind", "--json", cwd=home).out == ""


def test_a_folder_without_the_file_has_nothing_due(tmp_path: Path) -> None:
    said = quoth("remind", cwd=tmp_path)
    assert (said.code, said.out, said.err) == (0, "", "quoth: Nothing is due.\n")
    assert not [*tmp_path.iterdir()]


def test_another_file_of_the_workspace(home: Path) -> None:
    files(home, {"work.org": PAST})
    assert quoth("remind", "work.org", cwd=home).out == "Call mum, due 2026-03-10 Tue 09:00\n"
    assert "DELIVERED" not in text(home)


MISTAKES: list[tuple[list[str], str | bytes, int, str]] = [
    (["none.org"], "", 2, f"{THERE_IS_NO_FILE} none.org."),
    (["../x.org"], "", 2, f"../x.org {IS_OUTSIDE_THE_WORKSPACE} {{home}}."),
    ([], b"\xff", 2, f"memory.org:1: {THIS_IS_NOT_UTF_8}. The file was not changed."),
    (
        [],
        "* TODO a\nSCHEDULED: <soon>\n",
        1,
        f"memory.org:1: '<soon>' {IS_NOT_A_TIME_SUCH_AS} SCHEDULED: <2030-12-01 Sun 09:00>. "
        f"{THIS_HEADLINE_WAS_SKIPPED}.",
    ),
]


@pytest.mark.parametrize(("words", "data", "code", "sentence"), MISTAKES)
def test_a_mistake_is_told_in_one_sentence(
    tmp_path: Path, words: list[str], data: str | bytes, code: int, sentence: str
) -> None:
    files(tmp_path, {"memory.org": data})
    said = quoth("remind", *words, cwd=tmp_path)
    assert (said.code, said.err.splitlines()[0]) == (code, f"quoth: {sentence.format(home=tmp_path)}")


def test_what_can_be_read_is_told_beside_what_cannot(home: Path) -> None:
    files(home, {"memory.org": "* TODO a\nSCHEDULED: <soon>\n" + PAST})
    said = quoth("remind", cwd=home)
    assert (said.code, said.out) == (1, "Call mum, due 2026-03-10 Tue 09:00\n")


# Sent to a channel too


def test_it_is_sent_to_a_channel_too(home: Path) -> None:
    said = quoth("remind", "--to", "ops", "--channel", "ops=ops.jsonl", cwd=home)
    assert (said.code, said.out.splitlines()[0]) == (0, "Pay, due 2026-03-09 Mon")
    sent = [json.loads(line) for line in (home / "ops.jsonl").read_text().splitlines()]
    assert [(one["from"], one["to"], one["text"]) for one in sent] == [
        ("quoth remind", "ops", "Pay, due 2026-03-09 Mon"),
        ("quoth remind", "ops", "Call mum, due 2026-03-10 Tue 09:00"),
    ]


def test_what_a_channel_does_not_take_is_not_marked(home: Path) -> None:
    said = quoth("remind", "--to", "ops", "--channel", "ops=http://127.0.0.1:9/secret", cwd=home)
    assert (said.code, said.out) == (1, "")
    sentence = "The message did not reach the channel ops: http://127.0.0.1 cannot be reached (ConnectError)."
    assert said.err == f"quoth: {sentence}\n"
    assert "DELIVERED" not in text(home)


@pytest.mark.parametrize(
    ("channels", "sentence"),
    [
        ([], f"{THERE_IS_NO_CHANNEL} opps. Define it: --channel NAME=WHERE"),
        (
            ["--channel", "ops=ops.jsonl"],
            f"{THERE_IS_NO_CHANNEL} opps. Did you mean ops? The channels are ops.",
        ),
    ],
)
def test_a_channel_that_there_is_not(home: Path, channels: list[str], sentence: str) -> None:
    said = quoth("remind", "--to", "opps", *channels, cwd=home)
    assert (said.code, said.out, said.err) == (2, "", f"quoth: {sentence}\n")


# Two at once, and killed in between


def test_two_at_once_tell_each_reminder_once(tmp_path: Path) -> None:
    many = [f"job {number}" for number in range(40)]
    files(tmp_path, {"memory.org": UTC_FILE + "".join(headline(one, "<2026-03-09 Mon>") for one in many)})
    with started("remind", cwd=tmp_path) as one, started("remind", cwd=tmp_path) as other:
        told = one.ended().out + other.ended().out
    assert sorted(told.splitlines()) == sorted(f"{one}, due 2026-03-09 Mon" for one in many)


def test_who_is_killed_after_telling_and_before_marking_tells_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = text(home)
    out = home / "out"
    child = os.fork()
    if child == 0:
        with out.open("w") as stream:
            monkeypatch.setattr("sys.stdout", stream)
            monkeypatch.setattr(command.Reminders, "_mark", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            command.Reminders(Workspace(home), "memory.org").deliver()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert out.read_text().startswith("Pay, due")
    assert text(home) == before
    assert quoth("remind", cwd=home).out == out.read_text()


def test_what_was_not_told_is_not_marked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def tell(self: object, file: object, task: command.Task) -> None:
        if told:
            raise BrokenPipeError
        told.append(task.title)

    monkeypatch.setattr(command.Reminders, "_tell", tell)
    with pytest.raises(BrokenPipeError):
        command.Reminders(Workspace(home), "memory.org").deliver()
    assert (told, text(home).count("DELIVERED")) == (["Pay"], 1)


def test_what_cannot_be_marked_is_told_once_by_one_process(home: Path) -> None:
    (home / "memory.org").chmod(0o444)
    sentence = "memory.org is read-only (-r--r--r--) and was not changed; chmod u+w makes it writable."
    with started("remind", "--watch", cwd=home) as watching:
        hears(watching, ["Pay", "Call mum"])
        watching.says(sentence)
        (home / "memory.org").chmod(0o644)
        os.utime(home / "memory.org")
        wait_until(lambda: text(home).count("DELIVERED") == 2)
        watching.interrupt()
        assert watching.ended().out == ""


def test_what_is_moved_while_it_is_told_is_told_again_then(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(self: object, file: object, task: command.Task) -> None:
        (home / "memory.org").write_text(text(home).replace("03-09 Mon", "03-08 Sun"))

    with monkeypatch.context() as patched:
        patched.setattr(command.Reminders, "_tell", tell)
        command.Reminders(Workspace(home), "memory.org").deliver()
    assert quoth("remind", cwd=home).out == "Pay, due 2026-03-08 Sun\n"


# Staying


def hears(watching: Running, words: Sequence[str]) -> None:
    for word in words:
        assert watching.stdout.readline().startswith(word)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_who_watches_tells_what_is_due_what_comes_due_and_what_is_new(home: Path, ending: int) -> None:
    with started("remind", "--watch", cwd=home) as watching:
        hears(watching, ["Pay", "Call mum"])
        wait_until(lambda: text(home).count("DELIVERED") == 2)
        with (home / "memory.org").open("a") as file:
            file.write(headline("Soon", in_seconds(1)) + "\n" + headline("New", "<2026-03-09 Mon>"))
        hears(watching, ["New", "Soon"])
        wait_until(lambda: text(home).count("DELIVERED") == 4)
        watching.process.send_signal(ending)
        said = watching.ended()
    assert (said.code, said.out, said.err) == (130, "", "quoth: Interrupted.\n")


def test_who_watches_is_not_ended_by_a_file_that_cannot_be_read(home: Path) -> None:
    good = text(home)
    files(home, {"memory.org": b"\xff"})
    with started("remind", "--watch", cwd=home) as watching:
        watching.says(f"memory.org:1: {THIS_IS_NOT_UTF_8}")
        files(home, {"memory.org": good})
        hears(watching, ["Pay", "Call mum"])
        watching.interrupt()
        assert watching.ended().err.count("UTF-8") == 1


def test_who_watches_sleeps_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    files(tmp_path, {"memory.org": LATER})
    read = []
    monkeypatch.setattr(command.Reminders, "deliver", lambda self: read.append(1))
    monkeypatch.setattr(command.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        command.Reminders(Workspace(tmp_path), "memory.org").watch()
    assert (slept, read) == ([1.0, 1.0, 1.0], [1])
