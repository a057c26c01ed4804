"""Named channels: files that get a line, addresses that get a request, and what is wrong with others."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from pathlib import Path
from typing import Any

import disks
import pytest
from loopback import hang_up, loopback, silence, status
from sentences import CANNOT_BE_REACHED, CANNOT_BE_WRITTEN, DID_NOT_ANSWER_WITHIN, THERE_IS_NO_CHANNEL
from words import complaint

from quoth import Agent, HostServices, Services
from quoth.agent.events import AgentEvent
from quoth.agent.run.channels import HostRouter, channels_of
from quoth.tools.errors import ToolError, UsageError

assert disks


def send(channels: dict[str, Any], text: str, to: str) -> None:
    asyncio.run(HostRouter(lambda text: None, channels, "agent").send_message(text, to=to))


def lines_of(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_user_is_told_by_the_host(tmp_path: Path) -> None:
    heard: list[str] = []
    asyncio.run(HostRouter(heard.append, {}).send_message("Hi."))
    assert heard == ["Hi."]


def test_a_file_gets_a_line_for_each_message(tmp_path: Path) -> None:
    file = tmp_path / "ops.jsonl"
    file.write_text('{"text": "a line that was broken off"}')
    send({"ops": file}, "One\ntwo, für", "ops")
    _, line = lines_of(file)
    assert line.pop("at").startswith("20")
    assert line == {"from": "agent", "to": "ops", "text": "One\ntwo, für"}


def _many(file: Path) -> None:
    for _ in range(50):
        send({"ops": file}, "x" * 5000, "ops")


def test_two_processes_lose_no_line(tmp_path: Path) -> None:
    file = tmp_path / "ops.jsonl"
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=_many, args=(file,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [len(line["text"]) for line in lines_of(file)] == [5000] * 100


def test_an_address_gets_a_request(tmp_path: Path) -> None:
    with loopback(status(204)) as server:
        url = server.base_url.replace("http://", "http://bot:tok3n@") + "/hook?key=s3cret"
        send({"ops": url}, "Hi.", "ops")
        path, headers, body = server.requests[0]
    assert (path, json.loads(body)["text"]) == ("/v1/hook?key=s3cret", "Hi.")
    assert {name.lower(): value for name, value in headers.items()}["authorization"].startswith("Basic ")


SECRET = "bot:tok3n@"
LOST = [
    (status(500), "http://127.0.0.1 answered 500"),
    (status(302, location="http://elsewhere.example"), "http://127.0.0.1 answered 302"),
    (hang_up, f"http://127.0.0.1 {CANNOT_BE_REACHED} (RemoteProtocolError)"),
    (silence, f"http://127.0.0.1 {DID_NOT_ANSWER_WITHIN} 0.2 s"),
]


@pytest.mark.parametrize(("answer", "why"), LOST)
def test_what_an_address_does_not_take_is_told_without_its_secrets(
    answer: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.agent.run.channels.POST_SECONDS", 0.2 if answer is silence else 10)
    with loopback(answer) as server:
        url = server.base_url.replace("http://", f"http://{SECRET}") + "/T0K3N"
        said = complaint(ToolError, lambda: send({"ops": url}, "Hi.", "ops"))
    assert said == f"The message did not reach the channel ops: {why}."


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    router = HostRouter(lambda text: None, {"ops": folder / "ops.jsonl"})
    folder.rmdir()
    said = complaint(ToolError, lambda: asyncio.run(router.send_message("Hi.", to="ops")))
    why = f"{folder}/ops.jsonl: No such file or directory"
    assert said == f"The message did not reach the channel ops: {why}."


def test_a_full_disk_leaves_no_half_line() -> None:
    said = complaint(ToolError, lambda: send({"ops": "/dev/full"}, "Hi.", "ops"))
    assert said == "The message did not reach the channel ops: /dev/full: No space left on device."


def test_a_channel_that_is_not_there_is_told_with_the_nearest() -> None:
    said = complaint(ToolError, lambda: send({"ops": "ops.jsonl"}, "Hi.", "opps"))
    assert said == f"{THERE_IS_NO_CHANNEL} opps. Did you mean ops? The channels are user, ops."


# What is given

FORM = "NAME=WHERE, such as ops=ops.jsonl or ops=https://example.org/hook"
NAMES = "its name is letters, digits, dots and hyphens"
WRONG = [
    ("ops", f"--channel takes {FORM}."),
    ("https://u:p@host/T0K3N", f"--channel takes {FORM}."),
    ("https://u:p@host/?key=T0K3N", f"A channel is {FORM}; {NAMES}."),
    ("my ops=a", f"A channel is {FORM}; {NAMES}, not 'my ops'."),
    ("user=a", "The channel user is the user of the session; choose another name."),
    ("ops=", f"The channel ops has no file or address; write {FORM}."),
    ("ops=.", "The channel ops must be a file, but FOLDER is a folder."),
    ("ops=none/a", f"The channel ops {CANNOT_BE_WRITTEN}: there is no folder FOLDER/none."),
    (
        "ops=ftp://u:p@host",
        "The address of the channel ops is not a web address; it must begin with http:// or https://.",
    ),
    (
        "ops=https://",
        "The address of the channel ops is not a web address; it must begin with http:// or https://.",
    ),
    (
        "ops=https://h:99999",
        "The address of the channel ops is not a web address; it must begin with http:// or https://.",
    ),
    (
        "ops=https://h/a b",
        "The address of the channel ops is not a web address; it must begin with http:// or https://.",
    ),
]


@pytest.mark.parametrize(("word", "sentence"), WRONG)
def test_what_is_no_channel_is_told(
    word: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = complaint(UsageError, lambda: channels_of([word]))
    assert said == sentence.replace("FOLDER", str(tmp_path))


def test_options_go_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = channels_of(["b=two"], "a=one, b=one,\nc=https://h/?x=1,2\n")
    assert found == {"a": f"{tmp_path}/one", "b": f"{tmp_path}/two", "c": "https://h/?x=1,2"}
    assert (
        complaint(UsageError, lambda: channels_of(["a=x", "a=y"])) == "--channel names the channel a twice."
    )
    assert complaint(UsageError, lambda: channels_of([], "a")) == f"QUOTH_CHANNELS takes {FORM}."


class Post:
    """A router of the host's own."""

    async def send_message(self, message: str, *, to: str = "user") -> None:
        raise ToolError("The post is closed.")

    async def list_channels(self) -> list[str]:
        return []


def test_a_router_of_the_host_takes_the_place_of_ours(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, services=Services(router=Post())) as here:
        assert here.call('(send-message "Hi.")').message == "The post is closed."
    both = complaint(UsageError, lambda: HostServices(router=Post(), channels={"a": "a"}))
    assert both == "A router delivers every message: leave out channels or router."


def test_a_listener_that_fails_loses_no_message(tmp_path: Path) -> None:
    def fails(event: AgentEvent) -> None:
        raise RuntimeError(event.kind)

    with Agent(workspace=tmp_path, on_event=fails) as here:
        assert here.call('(send-message "Hi.")').ok
