"""``quoth mcp proxy``: a client of the SDK, the proxy, and a real server behind it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_client import ERAS, YES, Person, behind, in_front, process, proxied, proxy, says, text_of
from mcp_house import SAID, House
from mcp_server import command
from serving import serving, token
from words import quoth

from quoth.agent.serve.mcp_changes import MOST_URIS
from quoth.tools.policy.limits import Quota

READS = "(effects fixture--wait :reads) (allow (fixture--change)) (allow (fixture--die))" + "".join(
    f"(effects fixture--{name} :reads)"
    for name in ("echo", "add", "get-issue", "media", "fail", "read-resource", "get-prompt")
)
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"text": "hi"}),
    ("add", {"a": 1, "b": 2}),
    ("getIssue", {"repoName": "a/b", "issueNumber": 3, "labels": ["x"]}),
    ("media", {}),
    ("fail", {"text": "No"}),
]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    made = House(tmp_path, monkeypatch)
    made.rules(READS)
    return made


def wire(answer: Any) -> str:
    """An answer as JSON, without the name of its server."""
    return json.dumps(answer.model_dump(mode="json", by_alias=True, exclude={"meta"}))


async def everything(at: Client) -> list[str]:
    """What a server answers to all kinds of requests."""
    topic = types.PromptReference(type="ref/prompt", name="summarise")
    return [
        wire(await at.list_tools()),
        *[wire(await at.call_tool(name, args)) for name, args in CALLS],
        wire(await at.list_resources()),
        wire(await at.read_resource("memo://one")),
        wire(await at.read_resource("memo://picture")),
        wire(await at.list_prompts()),
        wire(await at.get_prompt("summarise", {"topic": "tea"})),
        wire(await at.complete(topic, {"name": "topic", "value": "t"})),
    ]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_sees_what_the_server_answers(house: House, mode: str) -> None:
    async with behind(command("--knobs", str(house.knobs)), house.root, mode=mode) as at:
        direct = await everything(at)
    async with proxied(house, mode=mode) as at:
        assert await everything(at) == direct


async def test_rules_quotas_and_audit_are_those_of_the_project(house: House) -> None:
    house.rules(
        '(deny (fixture--echo :text (matches "secret")) :why "it is secret") (effects fixture--echo :reads)'
        "(effects fixture--add :reads)"
    )
    async with proxied(house, quotas=[Quota("fixture--add", 3)]) as at:
        denied = await at.call_tool("echo", {"text": "a secret"})
        assert denied.is_error
        assert "fixture--echo was denied" in text_of(denied)
        assert "it is secret" in text_of(denied)
        sums = [await at.call_tool("add", {"a": number, "b": 1}) for number in range(20)]
        assert [one.is_error for one in sums] == [False] * 3 + [True] * 17
        wrong = await at.call_tool("add", {"a": "one", "b": 1})
        assert wrong.is_error
        with pytest.raises(MCPError, match=r"Unknown tool: ad\. .*add"):
            await at.call_tool("ad", {})
        waits = await at.call_tool("note", {"text": "x"})
        assert "quoth approve" in text_of(waits)
    rows = [json.loads(line) for line in quoth("audit", "--json", cwd=house.root).out.splitlines()]
    assert {(row["route"], row["session"]) for row in rows} == {("mcp", "mcp-editor")}
    assert house.written == []


async def test_what_a_resource_says_is_read_under_the_rules(house: House) -> None:
    house.rules('(deny (fixture--read-resource :uri "memo://one")) (ask (fixture--get-prompt))')
    async with proxied(house) as at:
        with pytest.raises(MCPError, match="fixture--read-resource was denied"):
            await at.read_resource("memo://one")
        with pytest.raises(MCPError, match="quoth approve"):
            await at.get_prompt("summarise", {"topic": "tea"})


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_with_the_right_decides_and_answers_the_server(house: House, mode: str) -> None:
    person = Person(YES, says(answer="size=large"))
    async with proxied(house, mode=mode, person=person, decides=True) as at:
        assert text_of(await at.call_tool("order", {"item": "tea"})) == "Ordered tea, large."
    assert '(fixture--order :item "tea")' in person.asked[0]
    assert "Which size of tea?" in person.asked[1]
    assert house.written == ["order tea large"]


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_and_cancellation_go_through(house: House, mode: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    begun = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))
        begun.set()

    async with proxied(house, mode=mode) as at:
        done = await at.call_tool("wait", {"steps": 2}, progress_callback=progress)
        assert text_of(done) == "2 steps"
        assert heard == [(1, 2, "step 1"), (2, 2, "step 2")]
        begun.clear()
        long = at.call_tool("wait", {"steps": 1, "seconds": 600}, progress_callback=progress)
        calling = asyncio.create_task(long)
        await begun.wait()
        calling.cancel()
        await asyncio.wait({calling})
        assert text_of(await at.call_tool("echo", {"text": "hi"})) == "hi"
    rows = [json.loads(line) for line in quoth("audit", "--json", cwd=house.root).out.splitlines()]
    assert [row["status"] for row in rows] == ["ok", "cancelled", "ok"]


TOUCHED = {"type": "object", "properties": {"uri": {"type": "string"}}}
MORE_TOOLS = {"log": {"description": "Log."}, "touch": {"description": "Touch.", "inputSchema": TOUCHED}}


@pytest.mark.parametrize("behind", [(), ("--handshake",)])
@pytest.mark.parametrize("mode", ERAS)
async def test_the_log_goes_through_from_the_level_that_the_client_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, behind: tuple[str, ...]
) -> None:
    house = House(tmp_path, monkeypatch, *behind)
    house.trust(tools=MORE_TOOLS)
    house.rules("(effects fixture--log :reads)")
    heard: list[Any] = []

    def hear(message: Any) -> None:
        if isinstance(message, types.LoggingMessageNotification):
            heard.append((message.params.level, message.params.data, message.params.logger))

    async with proxied(house, mode=mode, heard=hear, level="info") as at:
        if mode == ERAS[0]:
            assert at.instructions is not None
            assert at.instructions.endswith(SAID)
            for level in ("debug", "info"):
                wish = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))  # type: ignore[arg-type]
                await at.session.send_request(wish, types.EmptyResult)
        assert text_of(await at.call_tool("log", {})) == "logged"
        await until(lambda: len(heard) >= 2)
    assert heard == [("info", "info", "fixture"), ("error", "error", "fixture")]


@pytest.mark.parametrize("behind", [(), ("--handshake",)])
@pytest.mark.parametrize("mode", ERAS)
async def test_a_change_of_a_resource_is_announced_to_who_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, behind: tuple[str, ...]
) -> None:
    house = House(tmp_path, monkeypatch, *behind)
    house.trust(tools=MORE_TOOLS)
    house.rules("(allow (fixture--touch)) (allow (fixture--die))")
    heard: list[str] = []

    def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.append(str(message.params.uri))

    async def touch(at: Client, uri: str) -> None:
        """The stream behind may need a moment to open."""
        for _ in range(200):
            assert text_of(await at.call_tool("touch", {"uri": uri})) == "touched"
            await asyncio.sleep(0.05)
            if heard:
                return
        raise AssertionError("no change was announced")

    async with proxied(house, mode=mode, heard=hear) as at:
        if mode == ERAS[0]:
            offered = at.server_capabilities.resources
            assert offered is not None
            assert offered.subscribe
            asked: Any = types.SubscribeRequestParams(uri="memo://one")
            await at.session.send_request(types.SubscribeRequest(params=asked), types.EmptyResult)
            await touch(at, "memo://one")
            await at.call_tool("die", {})  # it is started again, and announces as before
            heard.clear()
            await touch(at, "memo://one")
            gone: Any = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri="memo://one"))
            await at.session.send_request(gone, types.EmptyResult)
        else:
            async with at.listen(resource_subscriptions=["memo://one"]):
                await touch(at, "memo://one")
        assert {*heard} == {"memo://one"}
        heard.clear()
        for uri in ("memo://one", "memo://two"):
            await at.call_tool("touch", {"uri": uri})
        await at.call_tool("touch", {"uri": "memo://two"})
        assert heard == []


@pytest.mark.parametrize("mode", ERAS)
async def test_what_a_server_says_reaches_no_other_client(house: House, mode: str) -> None:
    house.trust(tools=MORE_TOOLS)
    house.rules("(effects fixture--log :reads) (allow (fixture--touch))")
    heard: dict[str, list[Any]] = {"mine": [], "other": []}
    said = {"LoggingMessageNotification", "ResourceUpdatedNotification"}

    def kinds(name: str) -> set[str]:
        return {type(one).__name__ for one in heard[name]}

    async with (
        proxy(house) as made,
        in_front(made, "mine", heard["mine"].append, mode=mode, log_level="info") as mine,
        in_front(made, "other", heard["other"].append, mode=mode, log_level="info") as other,
    ):
        for at in (mine, other) if mode == ERAS[0] else ():
            wish = types.SetLevelRequest(params=types.SetLevelRequestParams(level="info"))
            await at.session.send_request(wish, types.EmptyResult)
        await other.call_tool("log", {})  # it has a server of its own
        await until(lambda: len(heard["other"]) >= 2)
        heard["other"].clear()
        if mode == ERAS[0]:
            asked: Any = types.SubscribeRequestParams(uri="memo://one")
            for at in (mine, other):
                await at.session.send_request(types.SubscribeRequest(params=asked), types.EmptyResult)
        async with contextlib.AsyncExitStack() as streams:
            if mode != ERAS[0]:
                for at in (mine, other):
                    await streams.enter_async_context(at.listen(resource_subscriptions=["memo://one"]))
            await mine.call_tool("touch", {"uri": "memo://one"})
            await mine.call_tool("log", {})
            await until(lambda: said & kinds("mine") == said)
        assert said <= kinds("mine")
        assert not said & kinds("other")


async def test_a_resource_that_the_server_does_not_know_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxied(House(tmp_path, monkeypatch, "--handshake")) as at:

        async def follow(uri: str) -> None:
            asked = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            await at.session.send_request(asked, types.EmptyResult)

        for _ in range(2):
            with pytest.raises(MCPError, match="Unknown resource"):
                await follow("file:///x")
        for number in range(MOST_URIS):
            await follow(f"memo://{number}")
        await follow("memo://0")
        with pytest.raises(MCPError, match="at most 100 resources"):
            await follow("memo://more")


async def test_a_receipt_gives_what_the_server_gave(house: House) -> None:
    house.rules("(allow (fixture--media))")
    async with behind(command("--knobs", str(house.knobs)), house.root) as at:
        direct = wire(await at.call_tool("media", {}))
    house.rules("")
    async with proxied(house) as at:
        waits = await at.call_tool("media", {})
        [id] = [one["id"] for one in json.loads(quoth("pending", "--json", cwd=house.root).out)]
        assert id in text_of(waits)
        assert quoth("approve", id, "--mcp", str(house.file), cwd=house.root).code == 0
        resumed = quoth("resume", "mcp-editor", "--mcp", str(house.file), cwd=house.root)
        assert resumed.code == 0, resumed.err
        assert wire(await at.call_tool("media", {})) == direct
    rows = [json.loads(line) for line in quoth("audit", "--json", cwd=house.root).out.splitlines()]
    assert [row["stage"] for row in rows if row["tool"] == "fixture--media"][-1] == "receipt"


async def until(met: Any) -> None:
    for _ in range(400):
        if met():
            return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_changed_tool_is_announced_not_listed_and_refused(house: House, mode: str) -> None:
    announced = asyncio.Event()

    def heard(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            announced.set()

    async with proxied(house, mode=mode, heard=heard) as at:
        before = [one.name for one in (await at.list_tools()).tools]
        assert "echo" in before
        if mode == ERAS[0]:
            assert at.server_capabilities.tools == types.ToolsCapability(list_changed=True)
            await change(at)
            await asyncio.wait_for(announced.wait(), 60)
        else:
            async with at.listen(tools_list_changed=True) as events:
                await change(at)
                await asyncio.wait_for(anext(aiter(events)), 60)
        assert [one.name for one in (await at.list_tools()).tools] == [one for one in before if one != "echo"]
        refused = await at.call_tool("echo", {"text": "hi"})
        assert refused.is_error
        assert "echo of the MCP server fixture has another description" in text_of(refused)


async def change(at: Client) -> None:
    fields = {"description": "Return the text, and all files."}
    assert text_of(await at.call_tool("change", {"tool": "echo", "fields": fields})) == "changed"


async def test_a_server_that_ends_is_an_error_and_is_started_again(house: House) -> None:
    async with proxied(house) as at:
        ended = await at.call_tool("die", {})
        assert ended.is_error
        assert "The MCP server fixture" in text_of(ended)
        assert text_of(await at.call_tool("echo", {"text": "hi"})) == "hi"


async def test_a_server_that_is_no_longer_trusted_is_refused(house: House) -> None:
    async with proxied(house) as at:
        await at.list_tools()
        house.pins.unlink()
        with pytest.raises(MCPError, match="is not trusted"):
            await at.list_tools()
        assert "is not trusted" in text_of(await at.call_tool("echo", {"text": "hi"}))


async def test_the_command_stands_between_on_stdio(house: House) -> None:
    async with process(house.root, "fixture", "--mcp", str(house.file), act="proxy") as at:
        assert text_of(await at.call_tool("echo", {"text": "hi"})) == "hi"
        waits = await at.call_tool("note", {"text": "x"})
        [id] = [one["id"] for one in json.loads(quoth("pending", "--json", cwd=house.root).out)]
        assert f"quoth approve {id}" in text_of(waits)
        assert quoth("approve", id, cwd=house.root).code == 0
        assert text_of(await at.call_tool("note", {"text": "x"})) == "noted"
    assert house.written == ["note x"]


async def test_a_server_of_http_has_it_beside_its_own_tools(house: House) -> None:
    person = Person(YES)
    with serving(house.root, "--mcp", str(house.file)) as server:
        for name, decides in (("me", True), ("chat", False)):
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token(name)}"}) as http:
                transport = streamable_http_client(f"{server.url}/mcp/fixture", http_client=http)
                async with Client(transport, elicitation_callback=person.answer) as at:
                    assert text_of(await at.call_tool("echo", {"text": "hi"})) == "hi"
                    assert (await at.call_tool("note", {"text": name})).is_error is not decides
        house.trust(only=["add", "echo"])
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token('me')}"}) as http,
            Client(streamable_http_client(f"{server.url}/mcp/fixture", http_client=http)) as at,
        ):
            assert [one.name for one in (await at.list_tools()).tools] == ["add", "echo"]
        house.pins.unlink()
        with server.client() as http:
            for name in ("fixture", "other"):
                assert http.post(f"/mcp/{name}").status_code == 404
            assert "The output of quoth serve says why." in http.post("/mcp/fixture").text
            house.trust()
            assert http.post("/mcp/fixture").status_code != 404
        with server.client(None) as http:
            assert http.post("/mcp/fixture").status_code == 401
    assert house.written == ["note me"]


async def test_a_call_in_progress_ends_while_its_server_is_trusted_in_another_form(house: House) -> None:
    begun = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        begun.set()

    with serving(house.root, "--mcp", str(house.file)) as server:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token('me')}"}) as http,
            Client(streamable_http_client(f"{server.url}/mcp/fixture", http_client=http)) as at,
        ):
            steps = {"steps": 3, "seconds": 0.5}
            calling = asyncio.create_task(at.call_tool("wait", steps, progress_callback=progress))
            await asyncio.wait_for(begun.wait(), 60)
            house.trust(only=["add", "wait"])
            async with Client(streamable_http_client(f"{server.url}/mcp/fixture", http_client=http)) as other:
                assert len((await other.list_tools()).tools) == 2
            assert text_of(await calling) == "3 steps"


def test_a_server_that_is_not_trusted_is_not_served(house: House) -> None:
    house.pins.unlink()
    said = quoth("mcp", "proxy", "fixture", "--mcp", str(house.file), cwd=house.root)
    assert said.code == 2
    assert "quoth mcp trust" in said.err
    said = quoth("mcp", "proxy", "fixtur", "--mcp", str(house.file), cwd=house.root)
    assert "fixture" in said.err
