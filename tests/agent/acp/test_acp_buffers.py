"""``quoth acp`` and the buffers of its client: what is read, shown, asked again, written and put back."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from acp.core import RequestError
from acp.schema import FileSystemCapabilities
from acp_client import Editor, editor
from words import files

from quoth.agent.acp.buffers import ClientBuffers
from quoth.agent.acp.loops import OnLoop, loop_in_thread
from quoth.tools.call.ports import BEGUN_BEFORE

READ = '(read-file :path "a.txt")'
EDIT = '(edit-file :path "a.txt" :old "one" :new "two")'
BOTH = "read write"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a file, and a model that reads and then edits it."""
    files(tmp_path, {"a.txt": "one\n", "r.txt": f"{READ}\n---\n{EDIT}\n---\nDone.\n"})
    return tmp_path


def replies(folder: Path, *texts: str) -> None:
    files(folder, {"r.txt": "\n---\n".join([*texts, "Done.\n"])})


async def talk(
    folder: Path, client: Editor, *prompts: str, fs: str = BOTH, words: tuple[str, ...] = ()
) -> Editor:
    """Say these words in a new session; the client, after the end of both."""
    async with editor(folder, "--model", f"scripted:{folder}/r.txt", *words, client=client, fs=fs):
        session = (await client.agent.new_session(cwd=str(folder))).session_id
        for prompt in prompts:
            await client.say(session, prompt)
    return client


def results(client: Editor) -> list[str]:
    """The text of each call's result."""
    ends = [one for one in client.updates if one.session_update == "tool_call_update" and one.content]
    return [one.content[0].content.text for one in ends]


async def test_an_unsaved_text_is_read_shown_edited_and_put_back(shop: Path) -> None:
    replies(shop, READ, EDIT, '(grep-search :pattern "unsaved")')
    client = Editor("once")
    path = f"{shop}/a.txt"
    client.buffers[path] = "one\nunsaved\n"
    client.formats = lambda text: text.replace("two", "TWO")
    client.on_question = lambda: client.files.append(f"asked {path}")
    await talk(shop, client, "Edit it.", "/undo")
    ((_, difference),) = [one.content for one in client.asked]
    assert (difference.old_text, difference.new_text) == ("one\nunsaved\n", "two\nunsaved\n")
    assert results(client)[0] == "one\nunsaved\n"
    edit, put_back = ["asked", "read", "read", "write", "read"], ["read", "read", "write", "read"]
    assert [one.split()[0] for one in client.files] == ["read", "read", *edit, *put_back]
    assert {*(one.split()[1] for one in client.files)} == {path}, "all paths are absolute"
    assert "Put back: 1 file" in client.words()
    saved = (shop / "a.txt").read_text()
    assert saved == "one\nunsaved\n", "undo wrote the text of the buffer over the formatted edit"


async def test_a_buffer_that_changed_after_the_question_is_asked_about_again(shop: Path) -> None:
    client = Editor("once", "once")
    path = f"{shop}/a.txt"

    def types() -> None:
        client.buffers[path] = "one\ntyped while asked\n"
        client.on_question = lambda: None

    client.on_question = types
    await talk(shop, client, "Edit it.")
    assert [one.content[1].new_text for one in client.asked] == ["two\n", "two\ntyped while asked\n"]
    assert (
        client.asked[1].content[0].content.text.startswith("The change differs from the one you were shown:")
    )
    assert (shop / "a.txt").read_text() == "two\ntyped while asked\n"


@pytest.mark.parametrize("fs", ["", "write"])
async def test_a_client_that_reads_no_files_is_not_asked_for_them(shop: Path, fs: str) -> None:
    client = Editor("once")
    client.buffers[f"{shop}/a.txt"] = "unsaved\n"
    await talk(shop, client, "Edit it.", fs=fs)
    assert (client.files, (shop / "a.txt").read_text()) == ([], "two\n")


async def test_a_client_that_only_reads_keeps_what_is_unsaved(shop: Path) -> None:
    client = Editor("once", "once")
    client.buffers[f"{shop}/a.txt"] = "one\nunsaved\n"
    await talk(shop, client, "Edit it.", fs="read")
    assert "a.txt has unsaved changes in the editor" in results(client)[-1]
    assert (shop / "a.txt").read_text() == "one\n"
    client.buffers.clear()
    await talk(shop, client, "Edit it.", fs="read")
    assert (shop / "a.txt").read_text() == "two\n"
    assert not any(one.startswith("write") for one in client.files)


async def test_a_client_that_never_answers_holds_up_that_call_only(shop: Path) -> None:
    files(shop, {"b.txt": "other\n", "c.txt": "third\n"})
    replies(shop, READ, '(read-file :path "b.txt")', '(read-file :path "c.txt")')
    client = Editor()
    client.silent.add(f"{shop}/a.txt")
    client.refuses.add(f"{shop}/c.txt")
    await talk(shop, client, "Read them.")
    assert results(client) == [
        "error: a.txt: the editor did not answer within 4 s.",
        "other\n",
        "error: c.txt: the editor refused it: it is locked.",
    ]


async def test_a_write_that_was_broken_off_is_not_repeated_without_a_person(shop: Path) -> None:
    client = Editor("once")
    words = ("--model", f"scripted:{shop}/r.txt")
    async with editor(shop, *words, client=client, fs=BOTH):
        session = (await client.agent.new_session(cwd=str(shop))).session_id
        client.on_write = lambda: client.process.kill()
        with contextlib.suppress(ConnectionError, RequestError):
            await client.say(session, "Edit it.")
    assert (shop / "a.txt").read_text() == "two\n", "the client wrote it after the agent was killed"
    later = Editor("deny")
    async with editor(shop, *words, client=later, fs=BOTH):
        await later.agent.load_session(cwd=str(shop), session_id=session)
        await later.say(session, "/resume")
        await later.say(session, "/undo")
    assert [BEGUN_BEFORE in one.title for one in later.asked] == [True]
    assert (shop / "a.txt").read_text() == "one\n", "undo knows a write that was only begun"
    assert [one for one in later.files if one.startswith("write")] == [f"write {shop}/a.txt"]


async def test_a_file_that_no_tool_may_read_is_never_asked_of_the_client(shop: Path) -> None:
    files(shop, {"s.txt": "secret\n", "p.hy": '(deny (read-file :path "s.txt"))', ".git/config": "[core]\n"})
    (shop / "link.txt").symlink_to("/etc/hostname")
    paths = ["s.txt", "p.hy", ".git/config", "link.txt", "../x.txt"]
    replies(shop, *(f'(read-file :path "{path}")' for path in paths))
    client = await talk(shop, Editor(), "Read them.", words=("--policy", f"{shop}/p.hy"))
    assert (len(results(client)), client.files) == (len(paths), [])


# The port itself, with a client on a loop of its own.


class Files:
    """A client's side of fs: answers with ``texts``, or fails as they say, and never where there is None."""

    def __init__(self, **texts: Any) -> None:
        self.texts, self.paths = texts, list[str]()
        self.late: Future[str] = Future()

    async def read_text_file(self, path: str, session_id: str) -> Any:
        self.paths.append(path)
        said = self.texts[Path(path).stem]
        if isinstance(said, BaseException):
            raise said
        return type("Answer", (), {"content": said or await asyncio.wrap_future(self.late)})

    async def write_text_file(self, path: str, session_id: str, content: str) -> None:
        await asyncio.wrap_future(self.late)


def buffers(client: Files, loop: asyncio.AbstractEventLoop, folder: Path) -> ClientBuffers:
    fs = FileSystemCapabilities(read_text_file=True, write_text_file=True)
    return ClientBuffers(OnLoop(client, loop), "s", folder, fs)


async def turns_of_the_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def why(work: Any) -> str:
    with pytest.raises(OSError) as caught:
        work()
    return str(caught.value)


def test_paths_are_as_the_client_named_its_folder_and_none_is_outside_of_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "seen").symlink_to("real")
    client = Files(a="text")
    with loop_in_thread() as loop:
        port = buffers(client, loop, tmp_path / "seen")
        assert port.read(tmp_path / "real/a.txt") == "text"
        assert port.read(tmp_path / "a.txt") is None
        assert port.read(tmp_path / "real/\udcff.txt") is None, "the name is not text"
        assert not port.writes(tmp_path / "a.txt")
    assert client.paths == [f"{tmp_path}/seen/a.txt"]


def test_a_text_is_used_again_until_a_person_may_have_typed(tmp_path: Path) -> None:
    file, client = tmp_path / "a.txt", Files(a="one")
    with loop_in_thread() as loop:
        port = buffers(client, loop, tmp_path)
        assert port.read(file) == "one"
        client.texts["a"] = "two"
        assert port.read(file) == "one"
        assert [port.read(file, latest=True), port.read(file)] == ["two", "two"]
        client.texts["a"] = "three"
        port.forget()
        assert port.read(file) == "three"
        client.late.set_result("")
        port.write(file, "four")
        client.texts["a"] = "four"
        assert port.read(file) == "four", "a formatter may have changed what was written"


def test_each_failure_of_a_client_has_its_sentence(tmp_path: Path) -> None:
    files(tmp_path, {"gone.txt": "", "bad.txt": "", "odd.txt": "", "missing.txt": ""})
    client = Files(
        gone=ConnectionError("Connection closed"),
        bad=RequestError.internal_error({"details": "it is locked"}),
        odd=ValueError("no content"),
        missing=RequestError.resource_not_found("missing.txt"),
        new=RequestError.internal_error(),
    )
    with loop_in_thread() as loop:
        port = buffers(client, loop, tmp_path)
        assert why(lambda: port.read(tmp_path / "gone.txt")) == "the editor has closed the connection"
        assert why(lambda: port.read(tmp_path / "bad.txt")) == "the editor refused it: it is locked"
        assert "not of the protocol (ValueError)" in why(lambda: port.read(tmp_path / "odd.txt"))
        assert port.read(tmp_path / "missing.txt") is None
        assert port.read(tmp_path / "new.txt") is None, "clients refuse missing files in many words"
    assert why(lambda: port.read(tmp_path / "a.txt")) == "the editor has closed the connection"


def test_a_silent_client_is_asked_about_a_file_again_once_it_has_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.agent.acp.buffers.READ_SECONDS", 0.01)
    monkeypatch.setattr("quoth.agent.acp.buffers.WRITE_SECONDS", 0.01)
    client = Files(a=None, b="text")
    with loop_in_thread() as loop:
        port = buffers(client, loop, tmp_path)
        assert why(lambda: port.read(tmp_path / "a.txt")) == "the editor did not answer within 0.01 s"
        assert "an earlier request" in why(lambda: port.read(tmp_path / "a.txt"))
        assert port.read(tmp_path / "b.txt") == "text"
        assert "did not confirm the write" in why(lambda: port.write(tmp_path / "c.txt", "x"))
        assert client.paths == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
        client.late.set_result("late")
        asyncio.run_coroutine_threadsafe(turns_of_the_loop(), loop).result(60)
        assert port.read(tmp_path / "a.txt") == "late"
