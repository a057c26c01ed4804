"""Options, modes, usage and commands of a session of ``quoth acp``, and what a restart keeps of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp.core import RequestError
from acp.helpers import text_block
from acp.schema import ResourceContentBlock
from acp_client import WRITE, Editor, editor, refused, scripted
from words import files

from quoth.agent.acp.server import AcpServer
from quoth.agent.acp.shape import call_update
from quoth.agent.client import AsyncAgent
from quoth.agent.doubles import FakeModel
from quoth.neuro.backends.base import Completion, Usage
from quoth.tools.lisp.forms import from_model
from quoth.tools.lisp.reader import read_one
from quoth.tools.loading import load_tools
from quoth.tools.storage.database import existing_store


def values(options: Any) -> dict[str, str]:
    return {one.id: one.current_value for one in options}


def latest(client: Editor, kind: str) -> Any:
    return [one for one in client.updates if one.session_update == kind][-1]


async def test_options_choose_mode_model_and_dialect(shop: Path) -> None:
    spec = f"scripted:{shop}/r.txt"
    files(shop, {"s.txt": "Other.\n"})
    async with editor(shop, *scripted(shop), client=Editor()) as client:
        agent = client.agent
        opened = await agent.new_session(cwd=str(shop))
        session = opened.session_id
        assert values(opened.config_options) == {"mode": "ask", "model": spec, "dialect": "auto"}
        assert [one.category for one in opened.config_options] == ["mode", "model", "model_config"]

        async def choose(option: str, value: str) -> dict[str, str]:
            done = await agent.set_config_option(config_id=option, session_id=session, value=value)
            return values(done.config_options)

        assert (await choose("dialect", "plist"))["dialect"] == "plist"
        assert (await choose("mode", "plan"))["mode"] == "plan"
        assert latest(client, "current_mode_update").current_mode_id == "plan"
        await agent.set_session_mode(session_id=session, mode_id="ask")
        await client.say(session, f"/model scripted:{shop}/s.txt")
        known = values(latest(client, "config_option_update").config_options)
        assert known == {"mode": "ask", "model": f"scripted:{shop}/s.txt", "dialect": "auto"}
        await client.say(session, "Hello.")
        assert client.words().endswith("Other.\n\n")
        said = [
            await refused(lambda: choose("dialect", "plst")),
            await refused(lambda: choose("model", "opnai:x")),
            await refused(lambda: choose("mod", "x")),
        ]
    assert "There is no dialect plst" in said[0]
    assert "opnai" in said[1]
    assert said[2] == "Unknown option mod. Did you mean mode?"


async def test_a_dialect_is_spoken_by_the_same_model_from_the_next_turn(shop: Path) -> None:
    call = '(:target :tool :action :call :tool "read-file" :args (:path "a.txt"))'
    files(shop, {"r.txt": f"Hello.\n---\n{call}\n---\nIt says one.\n"})
    async with editor(shop, *scripted(shop), client=Editor()) as client:
        session = (await client.agent.new_session(cwd=str(shop))).session_id
        await client.say(session, "Hello.")
        await client.agent.set_config_option(config_id="dialect", session_id=session, value="plist")
        await client.say(session, "Read it.")
    assert client.calls() == [('(read-file :path "a.txt")', "completed")]


async def test_a_turn_ends_with_the_tokens_in_the_context_and_the_cost(tmp_path: Path) -> None:
    replies = Completion("(list-files)", Usage(1000, 20)), Completion("Two.", Usage(1100, 5))
    parts = {"workspace": tmp_path, "session": "s"}
    for name, priced in (("openai:gpt-4o", True), ("fake", False)):
        server, client = server_of(lambda name=name: FakeModel(*replies, name=name), parts)
        session = (await server.new_session(str(tmp_path))).session_id
        await server.prompt(session, [text_block("List them.")])
        usage = latest(client, "usage_update")
        assert (usage.used, usage.cost is not None) == (1105, priced)
        assert usage.size > usage.used
        await server.aclose()
        parts["session"] = "t"


async def test_a_loaded_session_without_a_model_has_its_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    parts = {"workspace": tmp_path, "session": "s"}
    server, _ = server_of(lambda: FakeModel(Completion("Two.", Usage(1100, 5))), parts)
    await server.new_session(str(tmp_path))
    await server.prompt("s", [text_block("How many?")])
    await server.aclose()
    server, client = server_of(lambda: "openai:gpt", parts)
    await server.load_session(str(tmp_path), "s")
    await server.prompt("s", [text_block("/eval (+ 1 2)")])
    assert client.words() == "Two.\n\n3\n"
    await server.aclose()


def server_of(model: Callable[[], Any], options: dict[str, Any]) -> tuple[AcpServer, Editor]:
    """A server in this process, whose agents have this model and these options; and its client."""
    client = Editor()
    server = AcpServer(lambda *_: AsyncAgent(**options, model=model()), existing_store)
    server.on_connect(client)
    return server, client


async def test_a_restart_keeps_title_mode_and_rules_of_the_session(shop: Path) -> None:
    files(shop, {"r.txt": f"{WRITE}\n---\nNo.\n---\n{WRITE}\n---\nStill no.\n"})
    async with editor(shop, *scripted(shop), client=Editor("never")) as client:
        session = (await client.agent.new_session(cwd=str(shop))).session_id
        await client.say(session, "Write it.")
        await client.agent.set_session_mode(session_id=session, mode_id="read")
    for _ in range(2):
        async with editor(shop, client=Editor()) as client:
            loaded = await client.agent.load_session(cwd=str(shop), session_id=session)
            assert (loaded.modes.current_mode_id, values(loaded.config_options)["mode"]) == ("read", "read")
            assert latest(client, "session_info_update").title == "Write it."
    async with editor(shop, client=Editor()) as client:
        await client.agent.load_session(cwd=str(shop), session_id=session)
        await client.agent.set_session_mode(session_id=session, mode_id="ask")
    async with editor(shop, *scripted(shop), client=Editor()) as client:
        resumed = await client.agent.resume_session(cwd=str(shop), session_id=session)
        assert resumed.modes.current_mode_id == "ask"
        await client.say(session, "Write it again.")
    assert (client.asked, client.calls()) == ([], [(WRITE, "failed")])


async def test_a_session_that_is_loaded_shows_the_titles_that_its_calls_had(tmp_path: Path) -> None:
    files(tmp_path, {"a.txt": "x\n"})
    said = ("(eval (+ 1 2))", '(read-file "a.txt")', '(grep-search :path "a.txt" :pattern "x")', "Done.")
    seen = []
    for work in ("prompt", "load"):
        server, client = server_of(lambda: FakeModel(*said), {"workspace": tmp_path, "session": "s"})
        if work == "load":
            await server.load_session(str(tmp_path), "s")
        else:
            await server.new_session(str(tmp_path))
            await server.prompt("s", [text_block("Look.")])
        await server.aclose()
        seen.append(client.calls())
    live, loaded = seen
    assert len(live) == 3
    assert loaded == live


async def test_a_login_that_is_not_offered_is_refused_with_those_that_are(tmp_path: Path) -> None:
    server, _ = server_of(lambda: FakeModel("Hi."), {"workspace": tmp_path})
    offered = (await server.initialize(1)).auth_methods
    for method in offered:
        await server.authenticate(method.id)
    with pytest.raises(RequestError) as wrong:
        await server.authenticate("logn")
    assert wrong.value.code == -32602
    assert "logn" in str(wrong.value)
    assert all(method.id in str(wrong.value) for method in offered)


async def test_a_restart_keeps_what_was_chosen_before_the_first_turn(shop: Path) -> None:
    async def server(work: Any) -> Any:
        def opening(folder: Path, session: str | None, *_: Any) -> AsyncAgent:
            return AsyncAgent(workspace=shop, session=session, model=FakeModel("Hi."))

        one = AcpServer(opening, existing_store)
        one.on_connect(Editor())
        try:
            return await work(one)
        finally:
            await one.aclose()

    async def choose(one: AcpServer) -> str:
        opened = await one.new_session(str(shop))
        await one.set_session_mode("read", opened.session_id)
        return str(opened.session_id)

    session = await server(choose)
    loaded = await server(lambda one: one.load_session(str(shop), session))
    assert loaded.modes.current_mode_id == "read"


async def test_a_session_without_a_turn_is_not_found_and_begun_again(tmp_path: Path) -> None:
    server, _ = server_of(lambda: FakeModel("Hi."), {"workspace": tmp_path})
    with pytest.raises(RequestError) as missing:
        await server.load_session(str(tmp_path), "s1")
    said = "There is no session s1 in this workspace."
    assert (missing.value.code, said in str(missing.value)) == (-32002, True)
    assert missing.value.data == {"details": str(missing.value)}


def test_arguments_without_a_name_are_shown_by_name() -> None:
    form = from_model(read_one('(read-file "a.txt" 3)'))
    update = call_update("c", form, load_tools([]), "/w")
    assert update.raw_input == {"path": "a.txt", "start": 3}
    assert [(one.path, one.line) for one in update.locations] == [("/w/a.txt", 3)]
    many = from_model(read_one("(read-file 1 2 3 4)"))
    assert call_update("c", many, load_tools([]), "/w").raw_input == {}


async def test_a_waiting_call_cannot_be_resumed_in_a_mode_without_its_tool(shop: Path) -> None:
    async with editor(shop, *scripted(shop), client=Editor(None)) as client:
        session = (await client.agent.new_session(cwd=str(shop))).session_id
        await client.say(session, "Write it.")
        await client.agent.set_session_mode(session_id=session, mode_id="read")
        said = await refused(lambda: client.say(session, "/resume"))
    assert said == (
        f"A call of write-file waits in session {session}, which has fewer tools now. Leave the mode that"
        " only reads, then resume."
    )


async def test_a_command_takes_an_attached_plan_and_refuses_other_attachments(shop: Path) -> None:
    files(shop, {"my week.org": '* PLAN Look\n#+begin_src hy\n(read-file :path "a.txt")\n#+end_src\n'})
    plan = ResourceContentBlock(type="resource_link", name="week", uri=f"file://{shop}/my%20week.org")
    async with editor(shop, *scripted(shop), client=Editor()) as client:
        session = (await client.agent.new_session(cwd=str(shop))).session_id
        await client.say(session, "/fly", plan)
        said = await refused(lambda: client.say(session, text_block("/eval (+ 1 2)"), plan))
    assert "my week.org: done: 1 done" in client.words()
    assert said == "/eval takes no attachments. Send it without, or write the task in words."


async def test_a_computing_program_is_cancelled(shop: Path) -> None:
    async with editor(shop, *scripted(shop), client=Editor()) as client:
        session = (await client.agent.new_session(cwd=str(shop))).session_id
        turn = asyncio.create_task(client.say(session, '/eval (do (read-file :path "a.txt") (while True))'))
        async with asyncio.timeout(60):
            while [state for _, state in client.calls()] != ["completed"]:
                await asyncio.sleep(0.05)
        await client.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        assert client.words() == ""
        await client.say(session, "/eval (+ 1 2)")
    assert client.words() == "3\n"
