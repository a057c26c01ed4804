"""The tools of quoth for a client of the Model Context Protocol, with the client of the SDK."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_client import ERAS, YES, Person, client, process, says, text_of
from words import files, quoth, tool

from quoth.agent.client import AsyncAgent
from quoth.agent.serve import mcp_offers, mcp_server
from quoth.agent.serve.mcp_server import PAGE
from quoth.tools.registry.table import ToolTable

ORDER = {"item": {"type": str, "doc": "What"}}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a file and a plan."""
    plan = '#+TITLE: Look\n* TODO Look\n#+begin_src hy\n(read-file :path "a.txt")\n#+end_src\n'
    return files(tmp_path, {"a.txt": "one\n", "plans/look.org": plan})


@pytest.fixture
def orders() -> list[str]:
    return []


@pytest.fixture
def table(orders: list[str]) -> ToolTable:
    """A table with a tool that asks before each order."""
    made = ToolTable()
    tool(
        "order",
        lambda item: orders.append(item) or f"Ordered {item}.",
        params=ORDER,
        effects=["pays"],
        table=made,
    )  # type: ignore[func-returns-value]
    tool("stock", lambda: {"tea": 3}, effects=["reads"], table=made)
    return made


def waiting(folder: Path) -> list[str]:
    return [one["id"] for one in json.loads(quoth("pending", "--json", cwd=folder).out)]


@pytest.mark.parametrize("mode", ERAS)
async def test_what_only_reads_is_served_and_a_program_of_it(shop: Path, mode: str) -> None:
    async with client(shop, mode=mode) as at:
        names = {one.name: one for one in (await at.list_tools()).tools}
        assert {"read-file", "run"} <= names.keys()
        assert not {"write-file", "shell", "eval"} & names.keys()
        assert names["read-file"].annotations is not None
        assert names["read-file"].annotations.read_only_hint
        assert text_of(await at.call_tool("read-file", {"path": "a.txt"})) == "one\n"
        program = '(+ 1 (len (read-file :path "a.txt")))'
        heard: list[str | None] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            heard.append(message)

        result = await at.call_tool("run", {"program": program}, progress_callback=progress)
        assert text_of(result) == "5"
        assert heard == ['(read-file :path "a.txt")']


async def test_a_program_has_only_the_tools_that_are_served(shop: Path) -> None:
    async with client(shop) as at:
        result = await at.call_tool("run", {"program": '(write-file :path "b.txt" :content "two")'})
        assert result.is_error
        assert not (shop / "b.txt").exists()


async def test_a_wrong_call_is_an_error_with_a_sentence_and_an_unknown_tool_one_of_the_protocol(
    shop: Path,
) -> None:
    async with client(shop) as at:
        result = await at.call_tool("read-file", {"pth": "a.txt"})
        assert result.is_error
        assert "did you mean :path" in text_of(result)
        for name in ("raed-file", "write-file"):
            with pytest.raises(MCPError, match="Unknown tool") as found:
                await at.call_tool(name, {"path": "a.txt"})
            assert found.value.error.code == types.INVALID_PARAMS


async def test_a_rule_denies_a_call_of_this_route(shop: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.hy"
    rules.write_text('(deny (read-file :path "a.txt") (route "mcp"))')
    async with client(shop, policy=rules) as at:
        result = await at.call_tool("read-file", {"path": "a.txt"})
        assert result.is_error
    rows = [json.loads(line) for line in quoth("audit", "--json", cwd=shop).out.splitlines()]
    assert [(row["route"], row["status"]) for row in rows] == [("mcp", "denied")]


@pytest.mark.parametrize("mode", ERAS)
async def test_by_default_the_owner_decides_and_the_same_call_goes_on(
    shop: Path, table: ToolTable, orders: list[str], mode: str
) -> None:
    async with client(shop, "*", tools=table, mode=mode, person=Person(YES)) as at:
        result = await at.call_tool("order", {"item": "tea"})
        [id] = waiting(shop)
        assert result.is_error
        assert f"quoth approve {id}" in text_of(result)
        assert text_of(await at.call_tool("order", {"item": "tea"})) == text_of(result)
        assert quoth("approve", id, cwd=shop).code == 0
        assert orders == []
        assert text_of(await at.call_tool("order", {"item": "tea"})) == "Ordered tea."
        assert orders == ["tea"]
        assert (await at.call_tool("order", {"item": "tea"})).is_error  # another one is asked about anew
        assert orders == ["tea"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_with_the_right_decides(
    shop: Path, table: ToolTable, orders: list[str], mode: str
) -> None:
    person = Person(YES, says(allow=False, why="too dear"), says("decline"), says("cancel"))
    async with client(shop, "*", tools=table, mode=mode, person=person, decides=True) as at:
        assert text_of(await at.call_tool("order", {"item": "tea"})) == "Ordered tea."
        assert '(order :item "tea")' in person.asked[0]
        denied = await at.call_tool("order", {"item": "gold"})
        assert denied.is_error
        assert "too dear" in text_of(denied)
        assert (await at.call_tool("order", {"item": "salt"})).is_error
        assert orders == ["tea"]
        assert waiting(shop) == []


async def asked(at: Client, item: str) -> types.InputRequiredResult:
    result = await at.session.call_tool("order", {"item": item}, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def retried(at: Client, item: str, state: str | None, answer: types.ElicitResult = YES) -> Any:
    return await at.session.call_tool(
        "order",
        {"item": item},
        request_state=state,
        input_responses={"question": answer},
        allow_input_required=True,
    )


async def test_an_answer_counts_in_a_later_process_and_made_again_returns_the_receipt(
    shop: Path, table: ToolTable, orders: list[str]
) -> None:
    settings: dict[str, Any] = {"tools": table, "mode": ERAS[1], "person": Person(), "decides": True}
    async with client(shop, "*", **settings) as at:
        state = (await asked(at, "tea")).request_state
    async with client(shop, "*", **settings) as at:
        for _ in range(2):
            assert text_of(await retried(at, "tea", state)) == "Ordered tea."
    assert orders == ["tea"]


async def test_a_state_is_good_for_its_call_its_client_its_project_and_its_key_alone(
    shop: Path, table: ToolTable, orders: list[str], tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"tools": table, "mode": ERAS[1], "person": Person(), "decides": True}
    other = files(tmp_path / "other", {"a.txt": "one\n"})
    async with client(shop, "*", **settings) as at:
        state = (await asked(at, "tea")).request_state
        assert state
        for item, forged in (("gold", state), ("tea", state[:-4] + "AAAA"), ("tea", '{"request": "x"}')):
            with pytest.raises(MCPError, match="requestState"):
                await retried(at, item, forged)
    for changed in ({"name": "stranger"}, {"secret": b"x" * 32}):
        async with client(shop, "*", **settings, **changed) as at:
            with pytest.raises(MCPError, match="requestState"):
                await retried(at, "tea", state)
    async with client(other, "*", **settings) as at:
        with pytest.raises(MCPError, match="requestState"):
            await retried(at, "tea", state)
    assert orders == []
    assert len(waiting(shop)) == 1


async def test_a_client_that_has_lost_the_right_decides_nothing_with_an_earlier_state(
    shop: Path, table: ToolTable, orders: list[str]
) -> None:
    settings: dict[str, Any] = {"tools": table, "mode": ERAS[1], "person": Person()}
    async with client(shop, "*", **settings, decides=True) as at:
        state = (await asked(at, "tea")).request_state
    async with client(shop, "*", **settings) as at:
        assert "quoth approve" in text_of(await retried(at, "tea", state))
    assert orders == []
    assert len(waiting(shop)) == 1


async def test_the_state_of_a_process_is_good_in_its_folder_alone(shop: Path, tmp_path: Path) -> None:
    (rules := tmp_path / "rules.hy").write_text('(ask (read-file) (route "mcp"))')
    other = files(tmp_path / "elsewhere", {".git/HEAD": "", "a.txt": "two\n"})
    files(shop, {".git/HEAD": ""})
    words = ("--may-decide", "--policy", str(rules))
    args = {"path": "a.txt"}
    async with process(shop, *words, mode=ERAS[1], person=Person()) as at:
        first = await at.session.call_tool("read-file", args, allow_input_required=True)
    assert isinstance(first, types.InputRequiredResult)
    answer: dict[str, Any] = {"request_state": first.request_state, "input_responses": {"question": YES}}
    async with process(other, *words, mode=ERAS[1], person=Person()) as at:
        with pytest.raises(MCPError, match="requestState"):
            await at.session.call_tool("read-file", args, **answer, allow_input_required=True)


async def test_an_answer_for_one_client_decides_nothing_for_another(
    shop: Path, table: ToolTable, orders: list[str]
) -> None:
    async with client(shop, "*", tools=table, person=Person(YES), decides=True) as at:
        assert not (await at.call_tool("order", {"item": "tea"})).is_error
    async with client(shop, "*", tools=table, name="stranger") as at:
        assert (await at.call_tool("order", {"item": "tea"})).is_error
    assert orders == ["tea"]


async def test_a_difference_that_has_changed_is_asked_about_anew(shop: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.hy"
    rules.write_text('(ask (edit-file) (route "mcp"))')
    args = {"path": "a.txt", "old": "one", "new": "two"}
    async with client(shop, "*", policy=rules, mode=ERAS[1], person=Person(), decides=True) as at:
        await at.call_tool("read-file", {"path": "a.txt"})
        first = await at.session.call_tool("edit-file", args, allow_input_required=True)
        assert isinstance(first, types.InputRequiredResult)
        (shop / "a.txt").write_text("one\nand more\n")
        again = await at.session.call_tool(
            "edit-file",
            args,
            request_state=first.request_state,
            input_responses={"question": YES},
            allow_input_required=True,
        )
        assert isinstance(again, types.InputRequiredResult)
        assert (shop / "a.txt").read_text() == "one\nand more\n"


async def test_a_question_inside_a_program_reaches_the_client_and_the_program_goes_on(
    shop: Path, table: ToolTable, orders: list[str]
) -> None:
    for mode in ERAS:
        person = Person(YES, YES)
        async with client(shop, "*", tools=[*table], mode=mode, person=person, decides=True) as at:
            program = f'[(order :item "a{mode}") (order :item "b{mode}")]'
            assert not (await at.call_tool("run", {"program": program})).is_error
        assert len(person.asked) == 2
    assert len(orders) == 4


async def test_a_cancelled_call_stops_in_its_body(shop: Path) -> None:
    table, begun, stopped = ToolTable(), asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return "late"

    tool("wait", wait, effects=["reads"], table=table)
    async with client(shop, tools=[*table]) as at:
        calling = asyncio.create_task(at.call_tool("wait"))
        await begun.wait()
        calling.cancel()
        await asyncio.wait_for(stopped.wait(), 20)
        assert text_of(await at.call_tool("run", {"program": "(+ 1 1)"})) == "2"


async def test_long_lists_come_in_pages(shop: Path) -> None:
    table = ToolTable()
    for number in range(PAGE + 5):
        tool(f"t{number}", lambda: 1, effects=["reads"], table=table)
    async with client(shop, tools=table) as at:
        first = await at.list_tools()
        rest = await at.list_tools(cursor=first.next_cursor)
        names = {one.name for one in (*first.tools, *rest.tools)}
        assert len(first.tools) == PAGE
        assert names == {f"t{number}" for number in range(PAGE + 5)}
        assert rest.next_cursor is None
        with pytest.raises(MCPError, match="cursor"):
            await at.list_tools(cursor="x")


async def test_plans_are_resources_and_prompts_and_sessions_are_resources(shop: Path) -> None:
    async with client(shop) as at:
        await at.call_tool("read-file", {"path": "a.txt"})
        found = {str(one.uri) for one in (await at.list_resources()).resources}
        assert found == {"quoth://plan/look.org", "quoth://session/mcp-editor"}
        plan = (await at.read_resource("quoth://plan/look.org")).contents[0]
        log = (await at.read_resource("quoth://session/mcp-editor")).contents[0]
        assert isinstance(plan, types.TextResourceContents)
        assert isinstance(log, types.TextResourceContents)
        assert "* TODO Look" in plan.text
        assert '(read-file :path "a.txt")' in log.text
        [prompt] = (await at.list_prompts()).prompts
        content = (await at.get_prompt(prompt.name)).messages[0].content
        assert isinstance(content, types.TextContent)
        assert plan.text in content.text
        template = types.ResourceTemplateReference(type="ref/resource", uri="quoth://session/{id}")
        said = await at.complete(template, {"name": "id", "value": "mcp-"})
        assert said.completion.values == ["mcp-editor"]
        for uri in ("quoth://session/nobody", "quoth://plan/..%2Fa.txt", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await at.read_resource(uri)


async def test_a_plan_that_the_rules_keep_unread_is_no_prompt(shop: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.hy"
    rules.write_text('(deny (read-file :path (under "plans")))')
    async with client(shop, policy=rules) as at:
        with pytest.raises(MCPError):
            await at.get_prompt("look.org")


@pytest.mark.parametrize("mode", ERAS)
async def test_the_command_serves_on_stdio_and_goes_on_after_a_restart(shop: Path, mode: str) -> None:
    words, argv = ("--expose", "*"), {"argv": ["touch", "made"]}
    async with process(shop, *words, mode=mode) as at:
        assert text_of(await at.call_tool("read-file", {"path": "a.txt"})) == "one\n"
        assert (await at.call_tool("shell", argv)).is_error
    [id] = waiting(shop)
    assert quoth("approve", id, cwd=shop).code == 0
    assert not (shop / "made").exists()
    async with process(shop, *words, mode=mode) as at:
        assert not (await at.call_tool("shell", argv)).is_error
        assert (shop / "made").exists()
        assert (await at.call_tool("shell", argv)).is_error  # the yes was for one call


async def test_with_the_right_the_person_at_the_client_decides(shop: Path) -> None:
    person = Person(YES)
    async with process(shop, "--expose", "shell", "--may-decide", person=person, name="zed") as at:
        assert [one.name for one in (await at.list_tools()).tools] == ["shell"]
        assert not (await at.call_tool("shell", {"argv": ["true"]})).is_error
    assert "(mcp zed)" in person.asked[0]


def test_a_person_at_a_terminal_reads_what_to_do(shop: Path) -> None:
    said = quoth("mcp", "serve", "--remote", "redis://localhost", cwd=shop)
    assert said.code == 2
    assert "remote" in said.err


async def test_changes_are_announced_again_after_any_error(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    marks, broken = mcp_server.offers.marks_of, [True, True, True]

    def marked(agent: AsyncAgent) -> Any:
        if broken and broken.pop():
            raise RuntimeError("odd")
        return marks(agent)

    monkeypatch.setattr(mcp_server, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(mcp_server.offers, "marks_of", marked)
    heard = asyncio.Event()
    async with client(shop, heard=lambda message: heard.set()) as at:
        await at.list_tools()
        while broken:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        (shop / "plans").mkdir(exist_ok=True)
        (shop / "plans" / "new.org").write_text("* New\n")
        await asyncio.wait_for(heard.wait(), 60)
    assert capsys.readouterr().err.count("RuntimeError: odd") == 1


@pytest.mark.parametrize("mode", ERAS)
async def test_a_list_that_changes_is_announced(
    shop: Path, table: ToolTable, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "WATCH_SECONDS", 0.1)
    agents: list[AsyncAgent] = []
    heard: asyncio.Queue[Any] = asyncio.Queue()

    def change() -> None:
        (shop / "plans" / "more.org").write_text("#+TITLE: More\n")
        made = table.copy()
        tool("tea", lambda: 1, effects=["reads"], table=made)
        agents[0].runs.use_tools(made)

    async def kinds(wanted: set[str]) -> None:
        while wanted:
            name = type(await asyncio.wait_for(heard.get(), 60)).__name__
            wanted.discard(name.removesuffix("Notification").replace("List", "sList"))

    all_kinds = {"ToolsListChanged", "PromptsListChanged", "ResourcesListChanged"}
    given: dict[str, Any] = {"tools": table, "opened": agents.append, "heard": heard.put_nowait}
    async with client(shop, mode=mode, **given) as at:
        await at.list_prompts()
        if mode == ERAS[0]:
            can = at.server_capabilities
            assert can.tools == types.ToolsCapability(list_changed=True)
            assert can.prompts == types.PromptsCapability(list_changed=True)
            assert can.resources == types.ResourcesCapability(list_changed=True, subscribe=False)
            change()
            await kinds(all_kinds)
        else:
            every = {f"{kind}_list_changed": True for kind in ("tools", "prompts", "resources")}
            async with at.listen(**every) as events:
                change()
                while all_kinds:
                    all_kinds.discard(type(await asyncio.wait_for(anext(aiter(events)), 60)).__name__)
        assert "tea" in [one.name for one in (await at.list_tools()).tools]


async def test_a_change_right_after_a_clients_first_list_is_not_missed(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    marks_of = mcp_offers.marks_of

    def looked(agent: AsyncAgent) -> dict[str, Any]:
        order.append("looked")
        return marks_of(agent)

    monkeypatch.setattr(mcp_offers, "marks_of", looked)
    soon = asyncio.get_running_loop().call_soon
    async with client(shop, opened=lambda agent: soon(order.append, "could change")) as at:
        await at.list_tools()
    assert order[:2] == ["looked", "could change"]


async def test_the_text_of_an_exception_stays_here(shop: Path) -> None:
    def broken(agent: AsyncAgent) -> None:
        raise ZeroDivisionError("a secret")

    async with client(shop, opened=broken) as at:
        with pytest.raises(MCPError, match="tools/list failed inside quoth") as found:
            await at.list_tools()
        assert "secret" not in str(found.value)
