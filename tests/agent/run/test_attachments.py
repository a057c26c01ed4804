"""Files of a task: texts are shown as data, images as each provider takes them, and again when resumed."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pictures import png
from sentences import (
    CANNOT_BE_READ,
    IT_WRITES_FILES,
    THE_DATA_GIVEN_WITH_THE,
    THE_MAXIMUM_IS,
    THESE_WORDS_ARE_IN,
)
from words import Agent, agent, complaint, quoth, scripted

from quoth.agent.run.spec import IMAGE_BYTES, MOST_FILES, TEXT_BYTES, images_message
from quoth.neuro.backends import wire
from quoth.neuro.backends.base import IMAGE_TOKENS, Completion, ModelError, message_tokens
from quoth.neuro.backends.local import LocalBackend
from quoth.neuro.backends.messages import Image, Messages
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
IN_BASE64 = base64.b64encode(PNG).decode()
URL = f"data:image/png;base64,{IN_BASE64}"


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    path.write_bytes(PNG)
    return path


def first_words(model: Any) -> dict[str, Any]:
    """What a person said first to a scripted model."""
    said: dict[str, Any] = next(one for one in json.loads(model.seen[0]) if one["role"] == "user")
    return said


def test_a_text_stands_behind_the_task_and_an_image_beside_it(tmp_path: Path, cat: Path) -> None:
    (tmp_path / "notes.txt").write_text("Cats purr.\n")
    model = scripted("They purr.")
    with Agent(workspace=tmp_path, model=model) as it:
        assert it.run("What do cats do?", files=[tmp_path / "notes.txt", str(cat)]).text == "They purr."
    said = first_words(model)
    assert said["content"] == "What do cats do?\n\nThe file notes.txt:\nCats purr.\n"
    ((name, media),) = [(image["name"], image["media"]) for image in said["images"]]
    assert (name, media) == ("cat.png", "image/png")
    assert IN_BASE64 not in json.dumps(said)  # a transcript names it only


def test_one_file_need_not_be_a_list(tmp_path: Path, cat: Path) -> None:
    model = scripted("A cat.")
    with Agent(workspace=tmp_path, model=model) as it:
        assert it.run("What is this?", files=str(cat)).ok
    assert len(first_words(model)["images"]) == 1


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        ("a.bin", b"\x00\x01", "is neither text in UTF-8 nor an image (PNG, JPEG, GIF or WebP)."),
        ("a.txt", b"\xff\xfe", "is neither text in UTF-8 nor an image (PNG, JPEG, GIF or WebP)."),
        (
            "a.txt",
            b"a" * (TEXT_BYTES + 1),
            "has 200,001 bytes; the maximum of a text in a task is 200,000. Put it into the workspace: the"
            " model can read it there in parts.",
        ),
        ("a.png", PNG + b"0" * IMAGE_BYTES, f"has 5,000,014 bytes; {THE_MAXIMUM_IS} 5,000,000."),
        ("none.txt", None, f"{CANNOT_BE_READ}: No such file or directory."),
    ],
)
def test_a_file_that_cannot_be_shown_is_told_before_the_model_is_asked(
    tmp_path: Path, name: str, data: bytes | None, fault: str
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with agent(tmp_path, "Never.") as it:
        said = complaint(UsageError, lambda: it.run("What is this?", files=[path]))
        kind = "image" if name == "a.png" else "file"
        assert said == f"The {kind} {path} {fault}"
        assert it.session not in [one.id for one in it._agent.host.record.unfinished()]


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with agent(tmp_path, "Never.") as it:
        for path in (tmp_path, tmp_path / "pipe"):
            said = complaint(UsageError, lambda path=path: it.run("Look.", files=[path]))
            assert said == f"{path} is not a file."


def test_there_is_an_end_to_files(tmp_path: Path, cat: Path) -> None:
    with agent(tmp_path, "Never.") as it:
        for wrong in (3, None, ("a.png",), ("a.png", "text"), (1, b"x")):
            said = complaint(UsageError, lambda wrong=wrong: it.run("Look.", files=[wrong]))
            assert said.startswith("files are paths, or names with bytes"), wrong
        said = complaint(UsageError, lambda: it.run("Look.", files=[cat] * (MOST_FILES + 1)))
    assert said == "A task takes at most 20 files, not 21."


def test_a_model_that_reads_text_only_is_given_no_image(tmp_path: Path, cat: Path) -> None:
    model = LocalBackend()
    with Agent(workspace=tmp_path, model=model) as it:
        said = complaint(UsageError, lambda: it.run("What is this?", files=[cat]))
    assert said == "local reads text only: leave out cat.png, or choose another model."
    image = Image(name="cat.png", media="image/png", id="abc")
    said = complaint(ModelError, lambda: asyncio.run(model.complete(conversation(image))))
    assert said == "The model local reads text only, and the task contains an image."


# How each server is sent an image


def conversation(image: Image) -> Messages:
    messages = Messages()
    messages.append("user", "What is this?", images=[image])
    return messages


def sent(writes: Any, data: str = IN_BASE64) -> Any:
    image = Image(name="cat.png", media="image/png", id="abc")
    image.data = data
    return json.loads(conversation(image).written(writes))[0]["content"]


BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IN_BASE64}}


@pytest.mark.parametrize(
    ("writes", "kind", "part"),
    [
        (wire.openai, "text", {"type": "image_url", "image_url": {"url": URL}}),
        (wire.text, "text", {"type": "image_url", "image_url": {"url": URL}}),
        (wire.text_as_user, "text", {"type": "image_url", "image_url": {"url": URL}}),
        (wire.responses, "input_text", {"type": "input_image", "image_url": URL}),
        (wire.anthropic, "text", BLOCK),
        (wire.anthropic_text, "text", BLOCK),
    ],
)
def test_each_wire_has_a_part_for_an_image(writes: Any, kind: str, part: dict[str, Any]) -> None:
    assert sent(writes) == [{"type": kind, "text": "What is this?"}, part]
    gone = {"type": kind, "text": "(The image cat.png is kept no longer.)"}
    assert sent(writes, "") == [{"type": kind, "text": "What is this?"}, gone]


def test_an_image_takes_room_in_the_window() -> None:
    with_image = conversation(Image(name="cat.png", media="image/png", id="abc"))[0]
    assert message_tokens(with_image) > IMAGE_TOKENS


# Another process


class Eyes:
    """A model that remembers the images it is sent, and makes the calls it is given."""

    name, takes_grammar, tool_view, context, takes_images = "eyes", False, "", None, True

    def __init__(self, *replies: str) -> None:
        self.seen: list[list[str]] = []
        self.replies = list(replies)

    async def complete(self, messages: Messages, **_: Any) -> Completion:
        self.seen.append([image.data for one in messages for image in one.get("images", ())])
        return Completion(self.replies.pop(0))

    async def aclose(self) -> None:
        """Nothing to free."""


def test_a_resumed_run_and_the_next_message_show_the_image_again(tmp_path: Path, cat: Path) -> None:
    before, after = Eyes('(write-file :path "a" :content "b")'), Eyes("A cat.", "Still a cat.")
    with Agent(workspace=tmp_path, model=before) as it:
        reply = it.run("What is this?", files=[cat])
        (request,) = it.broker.requests()
        it.broker.decide(request.id, Decision("once", "ann"))
    cat.unlink()
    with Agent(workspace=tmp_path, model=after, session=reply.session) as again:
        assert again.resume()[0].status == "done"
    with Agent(workspace=tmp_path, model=after, session=reply.session) as later:
        assert later.follow("Are you sure?").text == "Still a cat."
        assert later.replay().same
    assert (before.seen, after.seen) == ([[IN_BASE64]], [[IN_BASE64], [IN_BASE64]])


# Images that a call gives

LOOK = '(read-file :path "red.png")'
IMAGE = {"name": "red.png", "media": "image/png", "size": "8x6"}


def looked(tmp_path: Path, model: Any) -> tuple[Any, list[Any]]:
    """What a model said of a picture that it read by a call, and all messages of its last request."""
    (tmp_path / "red.png").write_bytes(png(8, 6))
    with Agent(workspace=tmp_path, model=model) as it:
        reply = it.run("What is in red.png?")
        assert it.replay().same
        ((call),) = reply.calls
        assert call.result.message == "An image, 8x6."
        return reply, [one for request in getattr(model, "seen", ()) for one in request]


def test_a_model_that_can_see_is_shown_what_it_reads(tmp_path: Path) -> None:
    model = scripted(LOOK, "It is red.")
    _, _ = looked(tmp_path, model)
    said = json.loads(model.seen[-1])[-2:]
    (shown,) = [one for one in said if "images" in one]
    assert shown["content"] == 'Shown as a result: "red.png"'
    ((image),) = shown["images"]
    assert {**image, "id": ""} == IMAGE | {"id": ""}


def test_the_image_of_a_call_is_sent_and_kept_for_a_resumed_run(tmp_path: Path) -> None:
    whole = base64.b64encode(png(8, 6)).decode()
    before, after = Eyes(LOOK, '(write-file :path "a" :content "b")'), Eyes("Red.")
    (tmp_path / "red.png").write_bytes(png(8, 6))
    with Agent(workspace=tmp_path, model=before) as it:
        reply = it.run("What is in red.png?")
        (request,) = it.broker.requests()
        it.broker.decide(request.id, Decision("once", "ann"))
    (tmp_path / "red.png").unlink()
    with Agent(workspace=tmp_path, model=after, session=reply.session) as again:
        assert again.resume()[0].status == "done"
        assert again.replay().same
    assert (before.seen, after.seen) == ([[], [whole]], [[whole]])


class Blind(Eyes):
    takes_images = False


def test_a_model_that_reads_text_is_told_the_size(tmp_path: Path) -> None:
    model = Blind(LOOK, "I cannot see it.")
    told: list[str] = []
    ask = model.complete

    async def complete(messages: Messages, **more: Any) -> Completion:
        told.append("".join(one["content"] for one in messages))
        return await ask(messages, **more)

    model.complete = complete  # type: ignore[method-assign]
    looked(tmp_path, model)
    assert model.seen == [[], []]
    assert "An image, 8x6." in told[-1]
    assert "You read text only: what it shows cannot be shown to you." in told[-1]


def test_an_id_that_names_no_image_shows_none(tmp_path: Path) -> None:
    forged = {"image": "", "name": "x.png", "type": "image/png", "width": 1, "height": 1}
    with Agent(workspace=tmp_path, model=scripted()) as it:
        forged["image"] = it._agent.host.pages.keep("a long text, and no image")
        ((_, _, _, (image,)),) = images_message([forged], it._agent.host.pages)
    assert image.data == ""


def test_a_wire_without_images_tells_their_size() -> None:
    image = Image(name="cat.png", media="image/png", id="abc", size="8x6")
    said = json.loads(conversation(image).written(wire.without_images(wire.anthropic)))[0]["content"]
    assert said == [{"type": "text", "text": "What is this?\n(an image, 8x6, which you cannot see)"}]


def test_calls_that_stand_in_a_file_are_quotations(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text('To begin: (write-file :path "a" :content "hello from afar")')
    with agent(tmp_path, '(write-file :path "a" :content "hello from afar")', consent=None) as it:
        it.run("What stands here?", files=[tmp_path / "notes.txt"])
        (request,) = it.broker.requests()
    assert request.reason == f"{IT_WRITES_FILES}; {THESE_WORDS_ARE_IN} {THE_DATA_GIVEN_WITH_THE}"


def test_files_of_a_task_may_be_given_on_the_command_line(tmp_path: Path, cat: Path) -> None:
    (tmp_path / "talk.txt").write_text("A cat.")
    options = ["--model", "scripted:talk.txt", "--workspace", str(tmp_path)]
    done = quoth("run", "What is this?", "--file", str(cat), *options, cwd=tmp_path)
    assert (done.code, done.out) == (0, "A cat.\n")
    sessions = json.loads(quoth("sessions", "--json", "--workspace", str(tmp_path), cwd=tmp_path).out)
    log = quoth("log", sessions[0]["id"], "--workspace", str(tmp_path), cwd=tmp_path).out
    assert "What is this?\n" in log
    assert "with cat.png" in log
    failed = quoth("run", "What is this?", "--file", "none.png", *options, cwd=tmp_path)
    assert (failed.code, failed.out) == (2, "")
    assert f"The file none.png {CANNOT_BE_READ}: No such file or directory." in failed.err
