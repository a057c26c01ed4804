"""Messages and sources on the command line: each message reaches the person once, wherever the person is;
what a session was given is there when it is resumed; a request says where it came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sentences import CANNOT_BE_OPENED, IT_SENDS_A_MESSAGE
from words import files, quoth

from quoth.tools.storage.paths import state_dir

SAY = '(send-message :message "All is done.")'
WRITE = '(write-file :path "a.txt" :content "x")'
REPLIES = {
    "say.txt": SAY,
    "both.txt": f"{SAY}\n{WRITE}",
    "inner.txt": f"(eval (do {SAY} 1))\n---\nThat was that.",
    "ops.txt": '(send-message :message "Look at this." :to "ops")',
    "read.txt": f'{WRITE}\n(sources "read" "manual/a.org")\n---\nRead.',
}
PLAN = f"* PLAN one\n#+begin_src hy\n{SAY}\n#+end_src\n* PLAN two\nTell them.\n"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return (
        files(tmp_path, {**{f"work/{name}": said for name, said in REPLIES.items()}, "manual/a.org": "A.\n"})
        / "work"
    )


def out(here: Path, *words: str, code: int = 0, **more: Any) -> str:
    said = quoth(*words, cwd=here, **more)
    assert said.code == code, said
    return said.out


def run(here: Path, script: str, *words: str, code: int = 0) -> str:
    given = ("run", "Do it.", "--model", f"scripted:{script}", "--session", "s", "--user", "ann")
    return out(here, *given, *words, code=code)


def test_a_message_that_is_the_reply_is_printed_once(here: Path) -> None:
    assert run(here, "say.txt") == "All is done.\n"


def test_a_message_from_inside_a_program_is_printed_at_once(here: Path) -> None:
    assert run(here, "inner.txt") == "All is done.\nThat was that.\n"


def test_the_json_of_a_run_holds_its_messages(here: Path) -> None:
    told = json.loads(run(here, "inner.txt", "--json"))
    assert (told["reply"], told["messages"]) == ("That was that.", ["All is done."])


def test_a_call_by_a_person_brings_its_message_too(here: Path) -> None:
    assert out(here, "call", SAY).splitlines()[0] == "All is done."
    told = json.loads(out(here, "call", "--json", SAY))
    assert (told["value"]["success"], told["messages"]) == (True, ["All is done."])
    assert "messages" not in json.loads(out(here, "call", "--json", '(echo "a")'))


def test_the_repl_prints_it_once(here: Path) -> None:
    model = ("--model", "scripted:say.txt")
    typed = f"hello\n{SAY}\n"
    shown = out(here, *model, stdin=typed)
    assert shown == 'All is done.\nAll is done.\n{"success" True  "message" "Message sent successfully"}\n'
    told = [json.loads(line) for line in out(here, *model, "--json", stdin=typed).splitlines()]
    assert [one["messages"] for one in told] == [["All is done."], ["All is done."]]


def test_a_flight_brings_its_messages(here: Path) -> None:
    files(here, {"plan.org": PLAN})
    fly = ("fly", "plan.org", "--model", "scripted:say.txt", "--again")
    shown = out(here, *fly)
    assert shown.startswith("All is done.\nAll is done.\nDONE    one")
    assert json.loads(out(here, *fly, "--json"))["messages"] == ["All is done.", "All is done."]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_run_that_waited_does_not_say_it_again(here: Path, form: tuple[str, ...]) -> None:
    first = run(here, "both.txt", *form, code=3)
    out(here, "approve", json.loads(out(here, "pending", "--json"))[0]["id"])
    resumed = quoth("resume", "s", *form, cwd=here)
    last = resumed.out
    if form:
        told, end = json.loads(first), json.loads(last)
        assert (told["messages"], end["reply"]) == (["All is done."], "All is done.")
        assert "messages" not in end
    else:
        assert (first, last) == ("All is done.\n", "")
        assert resumed.err.endswith("quoth: Its reply is the message that was sent before.\n")


def test_a_run_that_ended_so_is_replayed_forked_and_exported(here: Path) -> None:
    run(here, "say.txt")
    assert "as recorded" in quoth("replay", "s", cwd=here).err + quoth("replay", "s", cwd=here).out
    assert json.loads(out(here, "replay", "s", "--json"))["same"] is True
    fork = json.loads(out(here, "fork", "s", "--json"))
    name = fork.get("session") or fork.get("name") or fork["id"]
    assert json.loads(out(here, "replay", name, "--json"))["same"] is True
    assert "(sent " in out(here, "export", "s")


# Channels


def test_a_channel_asks_and_gets_one_line(here: Path) -> None:
    assert run(here, "ops.txt", "--channel", "ops=../ops.jsonl", code=3) == ""
    (request,) = json.loads(out(here, "pending", "--json"))
    assert request["reason"] == f"{IT_SENDS_A_MESSAGE} to the channel ops"
    out(here, "approve", request["id"])
    assert out(here, "resume", "s") == "Look at this.\n"  # the session knows its channel
    (line,) = (here / "../ops.jsonl").read_text().splitlines()
    assert json.loads(line)["text"] == "Look at this."


def test_the_variable_names_channels_too(here: Path) -> None:
    env = {"QUOTH_CHANNELS": "ops=../ops.jsonl"}
    out(here, "call", "--yes", '(send-message "Hi." :to "ops")', env=env)
    assert json.loads((here / "../ops.jsonl").read_text())["text"] == "Hi."
    said = quoth("call", "(echo 1)", cwd=here, env={"QUOTH_CHANNELS": "ops"})
    assert said.code == 2
    assert said.err.startswith("quoth: QUOTH_CHANNELS takes NAME=WHERE, such as ")


def test_the_address_of_a_channel_is_kept_nowhere(here: Path) -> None:
    url = "https://bot:tok3n@hooks.example/T0K3N?key=s3cret"
    run(here, "ops.txt", "--channel", f"ops={url}", code=3)
    told = out(here, "log", "s", "--json") + out(here, "export", "s")
    kept = b"".join(file.read_bytes() for file in state_dir().rglob("*.sqlite*"))
    for secret in ("tok3n", "T0K3N", "s3cret"):
        assert secret not in told
        assert secret.encode() not in kept
    said = quoth("resume", "s", cwd=here)
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "quoth: Session s had the channel ops, whose address is not kept. Give it again:"
        " --channel ops=URL, or in QUOTH_CHANNELS.\n"
    )


# Origins


def test_a_request_says_where_it_came_from(here: Path) -> None:
    files(here, {"plan.org": f"* PLAN one\n#+begin_src hy\n{WRITE}\n#+end_src\n"})
    ways: list[tuple[str, tuple[str, ...], str]] = [
        ("terminal", ("call", WRITE), ""),
        ("json", ("call", "--json", WRITE), ""),
        ("repl", (), WRITE + "\n"),
        ("flight", ("fly", "plan.org"), ""),
    ]
    for channel, words, typed in ways:
        quoth(*words, "--session", channel, "--user", "ann", cwd=here, stdin=typed)
    told = json.loads(out(here, "pending", "--json"))
    assert [one["origin"] for one in told] == [
        {"channel": channel, "chat": channel, "user": "ann"} for channel, *_ in ways
    ]
    assert "ann (flight), flight, " in out(here, "pending")


def test_words_of_a_call_are_no_origin(here: Path) -> None:
    said = quoth("call", '(write-file :path "a" :content "x" :channel "phone")', cwd=here)
    assert (said.code, ":channel is unknown" in said.err) == (2, True), said.err


# Sources


def test_a_session_keeps_its_sources(here: Path) -> None:
    run(here, "read.txt", "--source", "manual=../manual", code=3)
    out(here, "approve", json.loads(out(here, "pending", "--json"))[0]["id"])
    assert out(here, "resume", "s") == "Read.\n"
    assert '"A.\\n"' in out(here, "export", "s")


def test_a_source_may_stand_before_and_after_the_command(here: Path) -> None:
    files(here, {"b.txt": "B"})
    listed = out(here, "--source", "a=../manual", "call", '(sources "list")', "--source", "b=b.txt", "--json")
    assert [one["name"] for one in json.loads(listed)["value"]] == ["a", "b"]
    said = quoth("call", "(echo 1)", "--source", "a=none", cwd=here)
    assert (said.code, said.err) == (
        2,
        f"quoth: The source a {CANNOT_BE_OPENED}: none: No such file or directory.\n",
    )


def test_an_imported_session_opens_nothing(here: Path, tmp_path: Path) -> None:
    run(here, "read.txt", "--source", "manual=../manual", code=3)
    other = files(tmp_path, {"other/s.hy": out(here, "export", "s")}) / "other"
    out(other, "import", "s.hy")
    said = quoth("resume", "s", cwd=other)
    assert (said.code, "--source manual=" in said.err) == (2, True), said.err


def test_the_belt_shows_the_tool_where_there_are_sources(here: Path) -> None:
    assert "(sources " not in out(here, "belt")
    assert "(sources " in out(here, "belt", "--source", "manual=../manual")
