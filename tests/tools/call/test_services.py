"""Services: what a host may give its tools, what each missing one says, and that no form can set any."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sentences import MUST_BE_1_TO
from words import Later, Spy, complaint, files, gateway, load, shipped, tool

from quoth import Block, SearchHit, SearchOptions, Services, Source, ToolContext, Workspace
from quoth.tools.call.call import ALLOW, Call, Verdict, deny
from quoth.tools.call.question import Question
from quoth.tools.call.service_types import Origin
from quoth.tools.call.services import NO_SERVICES, PROTOCOLS, PermissionBroker
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.lisp.forms import CallForm

# What a missing service says

MEMORY = "No memory is configured; give the agent one: Agent(services=Services(memory=…))."
ROUTER = "No router for messages is configured; give the agent one: Agent(services=Services(router=…))."
MODEL = "No model for tools is configured; give the agent one: Agent(services=Services(model=…))."
SEARCH = "No search is configured; give the agent one: Agent(services=Services(search=…))."
SOURCES = (
    "No sources are open; open one with --source NAME=PATH, or from Python:"
    " Agent(services=Services(sources=…))."
)
SHARED = "No shared blocks are configured; give the agent some: Agent(services=Services(shared_blocks=…))."
TEAM = "No other models or agents are configured; give the agent a team: Agent(services=Services(team=…))."
KNOWLEDGE = (
    "No knowledge base is open; open one with --knowledge, or from Python:"
    " Agent(services=Services(knowledge_base=…))."
)
WEB = (
    "No search is configured; name a server or folder with --search, or from Python:"
    " Agent(services=Services(web_search=…))."
)
PERMISSION = "No person can be asked for permission; give the agent a consent: Agent(consent=…)."

ANN = Origin("ann", "2026-03-10T12:00:00Z")

MISSING: list[tuple[str, Callable[[ToolContext], Any], str]] = [
    ("create_block", lambda ctx: ctx.memory.create_block("persona", "Kind.", kind="core"), MEMORY),
    ("get_block", lambda ctx: ctx.memory.get_block("persona"), MEMORY),
    ("list_blocks", lambda ctx: ctx.memory.list_blocks(), MEMORY),
    ("update_block_text", lambda ctx: ctx.memory.update_block_text("persona", "Kind."), MEMORY),
    ("append_to_block", lambda ctx: ctx.memory.append_to_block("persona", "Kind."), MEMORY),
    ("replace_in_block", lambda ctx: ctx.memory.replace_in_block("persona", "Kind", "Calm"), MEMORY),
    ("move_block", lambda ctx: ctx.memory.move_block("persona", "archival"), MEMORY),
    ("swap_blocks", lambda ctx: ctx.memory.swap_blocks("persona", "task"), MEMORY),
    ("delete_block", lambda ctx: ctx.memory.delete_block("persona"), MEMORY),
    ("history", lambda ctx: ctx.memory.history("persona"), MEMORY),
    ("undo", lambda ctx: ctx.memory.undo("persona"), MEMORY),
    ("search_blocks", lambda ctx: ctx.memory.search_blocks("kind", 3), MEMORY),
    ("persist_block", lambda ctx: ctx.memory.persist_block("persona"), MEMORY),
    ("send_message", lambda ctx: ctx.router.send_message("Hello.", to="user"), ROUTER),
    ("list_channels", lambda ctx: ctx.router.list_channels(), ROUTER),
    ("complete", lambda ctx: ctx.model.complete("Which colour?", system="Be brief."), MODEL),
    ("search", lambda ctx: ctx.search("colour", "all"), SEARCH),
    ("list_sources", lambda ctx: ctx.sources.list_sources(), SOURCES),
    ("read_source", lambda ctx: ctx.sources.read_source("news"), SOURCES),
    ("share_block", lambda ctx: ctx.shared_blocks.share_block("persona", "b"), SHARED),
    ("unshare_block", lambda ctx: ctx.shared_blocks.unshare_block("persona", "b"), SHARED),
    ("list_shared_blocks", lambda ctx: ctx.shared_blocks.list_shared_blocks(), SHARED),
    ("may_use", lambda ctx: ctx.team.may_use("openai:gpt-5-mini"), TEAM),
    ("model", lambda ctx: ctx.team.model("openai:gpt-5-mini"), TEAM),
    ("run", lambda ctx: ctx.team.run("Look.", call=Call("c1", CallForm("probe")), context=ctx), TEAM),
    ("add_source", lambda ctx: ctx.knowledge_base.add_source("Cells", "…", ANN), KNOWLEDGE),
    ("add_claim", lambda ctx: ctx.knowledge_base.add_claim("It is blue.", ANN), KNOWLEDGE),
    ("add_learning", lambda ctx: ctx.knowledge_base.add_learning("factual", "Blue.", ANN), KNOWLEDGE),
    ("add_note", lambda ctx: ctx.knowledge_base.add_note("Talk", "…", ANN), KNOWLEDGE),
    ("look_up", lambda ctx: ctx.knowledge_base.look_up("blue"), KNOWLEDGE),
    ("find", lambda ctx: ctx.web_search.find("solar cells"), WEB),
    ("ask", lambda ctx: ctx.permission.ask(Question("And?")), PERMISSION),
    ("request", lambda ctx: ctx.permission.request("edit persona", "it is yours"), PERMISSION),
]


@pytest.mark.parametrize(("use", "sentence"), [pytest.param(u, s, id=i) for i, u, s in MISSING])
def test_a_missing_service_says_what_is_missing_and_how_to_give_it(
    use: Callable[[ToolContext], Any], sentence: str
) -> None:
    async def go() -> None:
        await use(ToolContext(Workspace(".")))

    assert complaint(ToolError, lambda: asyncio.run(go())) == sentence


def test_every_method_of_every_service_has_its_row_above() -> None:
    methods = {
        name
        for protocol in (*PROTOCOLS, PermissionBroker)
        for name, part in vars(protocol).items()
        if callable(part) and not name.startswith("_")
    }
    assert {name for name, _, _ in MISSING} == methods


def test_what_a_missing_service_says_is_the_result_of_the_call() -> None:
    result = gateway(tool(body=lambda ctx: ctx.memory.get_block("persona"))).pass_through("(probe)")
    assert (result.status, result.message) == ("error", MEMORY)


def test_a_missing_service_has_no_other_methods() -> None:
    assert not hasattr(NO_SERVICES.memory, "get_blok")


# Services that are there


class Memory:
    """Blocks in a dict."""

    def __init__(self, *blocks: Block) -> None:
        self.blocks = {block.label: block for block in blocks}
        self.safe: list[str] = []

    async def create_block(self, label: str, text: str = "", **options: Any) -> Block:
        self.blocks[label] = Block(label, text, **options)
        return self.blocks[label]

    async def get_block(self, label: str) -> Block | None:
        return self.blocks.get(label)

    async def list_blocks(self) -> list[Block]:
        return list(self.blocks.values())

    async def update_block_text(self, label: str, text: str) -> None:
        self.blocks[label] = replace(self.blocks[label], text=text)

    async def append_to_block(self, label: str, text: str) -> None:
        await self.update_block_text(label, f"{self.blocks[label].text}\n{text}")

    async def replace_in_block(self, label: str, old: str, new: str) -> None:
        await self.update_block_text(label, self.blocks[label].text.replace(old, new))

    async def move_block(self, label: str, kind: Any, *, to: str = "") -> Block:
        self.blocks[to or label] = replace(self.blocks[label], label=to or label, kind=kind)
        return self.blocks[to or label]

    async def swap_blocks(self, archive_label: str, load_label: str, *, to: str = "") -> Block:
        await self.move_block(archive_label, "archival")
        return await self.move_block(load_label, "working", to=to)

    async def delete_block(self, label: str) -> None:
        del self.blocks[label]

    async def history(self, label: str) -> list[Any]:
        return []

    async def undo(self, label: str) -> Block:
        return self.blocks[label]

    async def search_blocks(self, query: str, limit: int = 10) -> list[SearchHit]:
        return [SearchHit(b.label, b.text) for b in self.blocks.values() if query in b.text][:limit]

    async def persist_block(self, label: str) -> None:
        self.safe.append(label)


class Outbox:
    """A router that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    async def send_message(self, message: str, *, to: str = "user") -> None:
        self.sent.append((to, message))

    async def list_channels(self) -> list[str]:
        return ["ann"]


class Parrot:
    """A model that says what it was asked."""

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        return f"{system}|{prompt}|{max_tokens}"


class Shelf:
    """A search that finds its own question."""

    async def search(self, query: str, scope: str, options: SearchOptions) -> list[SearchHit]:
        return [SearchHit(query, f"{scope} {options.domain} {options.limit}")]


class Feeds:
    """One source."""

    async def list_sources(self) -> list[Source]:
        return [Source("news", "What is new")]

    async def read_source(self, name: str) -> str:
        return f"{name}: nothing"


class Shared:
    """Blocks and whom they are shared with."""

    def __init__(self) -> None:
        self.readers: dict[tuple[str, str], str] = {}

    async def share_block(self, label: str, agent_id: str, permission: str = "read_only") -> None:
        self.readers[label, agent_id] = permission

    async def unshare_block(self, label: str, agent_id: str) -> None:
        del self.readers[label, agent_id]

    async def list_shared_blocks(self) -> list[Block]:
        return [Block(label, owner="a", permission=how) for (label, _), how in self.readers.items()]  # type: ignore[arg-type]


class SayNo:
    """A person who has made up their mind, and remembers what was asked."""

    def __init__(self, answer: Verdict | None = None) -> None:
        self.answer = answer or deny("not now")
        self.asked: list[str] = []

    async def request(self, _: Any, call: Call, reason: str) -> Verdict:
        self.asked.append(f"{call.form} because {reason}")
        return self.answer


def all_given() -> dict[str, Any]:
    services = Services(
        memory=Memory(Block("persona", "I am kind.")),
        router=Outbox(),
        model=Parrot(),
        search=Shelf(),
        sources=Feeds(),
        shared_blocks=Shared(),
    )
    return {"services": services}


HIT = {"at": "", "owner": "", "parts": {}}  # what a searcher may leave out


async def write(ctx: ToolContext) -> Any:
    await ctx.memory.create_block("task", "One", kind="core")
    await ctx.memory.append_to_block("task", "two")
    await ctx.memory.persist_block("task")
    found = await ctx.memory.get_block("task")
    return found and [found.text, found.kind, found.permission]


async def send(ctx: ToolContext) -> Any:
    await ctx.router.send_message("Hello.", to="ann")
    return ctx.router.sent  # type: ignore[attr-defined]


async def share(ctx: ToolContext) -> Any:
    await ctx.shared_blocks.share_block("persona", "b")
    await ctx.shared_blocks.share_block("task", "b", "append")
    await ctx.shared_blocks.unshare_block("persona", "b")
    return [[block.label, block.permission] for block in await ctx.shared_blocks.list_shared_blocks()]


async def allowed(ctx: ToolContext) -> Any:
    await ctx.permission.request("edit persona", "it is yours")
    return "edited"


# One body in Python, the same in Hy, and what both return.
USES: list[tuple[str, Callable[[ToolContext], Any], str, Any]] = [
    (
        "memory",
        lambda ctx: ctx.memory.get_block("persona"),
        '(await (ctx.memory.get-block "persona"))',
        {
            "label": "persona",
            "text": "I am kind.",
            "kind": "working",
            "permission": "read_write",
            "description": "",
            "owner": "",
            "limit": 0,
            "version": 1,
            "created": "",
            "updated": "",
            "by": "",
        },
    ),
    (
        "memory-written",
        write,
        """(do (await (ctx.memory.create-block "task" "One" :kind "core"))
               (await (ctx.memory.append-to-block "task" "two"))
               (await (ctx.memory.persist-block "task"))
               (setv found (await (ctx.memory.get-block "task")))
               [found.text found.kind found.permission])""",
        ["One\ntwo", "core", "read_write"],
    ),
    (
        "memory-searched",
        lambda ctx: ctx.memory.search_blocks("kind"),
        '(await (ctx.memory.search-blocks "kind"))',
        [{"label": "persona", "text": "I am kind.", "score": 0.0, "source": "", **HIT}],
    ),
    (
        "router",
        send,
        '(do (await (ctx.router.send-message "Hello." :to "ann")) ctx.router.sent)',
        [["ann", "Hello."]],
    ),
    (
        "model",
        lambda ctx: ctx.model.complete("Which?", system="Be brief.", max_tokens=5),
        '(await (ctx.model.complete "Which?" :system "Be brief." :max-tokens 5))',
        "Be brief.|Which?|5",
    ),
    (
        "search",
        lambda ctx: ctx.search("colour"),
        '(await (ctx.search "colour"))',
        [{"label": "colour", "text": "agent all 10", "score": 0.0, "source": "", **HIT}],
    ),
    (
        "search-with-options",
        lambda ctx: ctx.search("colour", "shared", SearchOptions(3, "conversations")),
        """(do (import quoth [SearchOptions])
               (await (ctx.search "colour" "shared" (SearchOptions 3 "conversations"))))""",
        [{"label": "colour", "text": "shared conversations 3", "score": 0.0, "source": "", **HIT}],
    ),
    (
        "sources",
        lambda ctx: ctx.sources.read_source("news"),
        '(await (ctx.sources.read-source "news"))',
        "news: nothing",
    ),
    (
        "shared-blocks",
        share,
        """(do (await (ctx.shared-blocks.share-block "persona" "b"))
               (await (ctx.shared-blocks.share-block "task" "b" "append"))
               (await (ctx.shared-blocks.unshare-block "persona" "b"))
               (lfor  block (await (ctx.shared-blocks.list-shared-blocks))
                 [block.label block.permission]))""",
        [["task", "append"]],
    ),
    (
        "permission",
        allowed,
        '(do (await (ctx.permission.request "edit persona" "it is yours")) "edited")',
        "edited",
    ),
]


@pytest.mark.parametrize(("body", "value"), [pytest.param(b, v, id=i) for i, b, _, v in USES])
def test_a_body_in_python_uses_a_service(body: Callable[[ToolContext], Any], value: Any) -> None:
    result = gateway(tool(body=body), given=all_given(), consent=SayNo(ALLOW)).pass_through("(probe)")
    assert (result.value, result.message) == (value, "")


@pytest.mark.parametrize(("body", "value"), [pytest.param(b, v, id=i) for i, _, b, v in USES])
def test_a_body_in_hy_uses_a_service(tmp_path: Path, body: str, value: Any) -> None:
    here = gateway(hy_tool(tmp_path, f":body {body}"), given=all_given(), consent=SayNo(ALLOW))
    result = here.pass_through("(probe)")
    assert (result.value, result.message) == (value, "")


def hy_tool(folder: Path, options: str) -> Any:
    text = f"""(require quoth [def-cognitive-tool])
    (def-cognitive-tool probe "A tool for a test." {options})
    """
    return load(files(folder, {"probe.hy": text}) / "probe.hy").get("probe")


def test_a_call_inside_a_program_has_the_same_services(tmp_path: Path) -> None:
    probe = tool(body=lambda ctx: ctx.sources.read_source("news"))
    assert (
        shipped(tmp_path, probe, given=all_given(), consent=SayNo(ALLOW)).pass_through("(eval (probe))").value
        == "news: nothing"
    )


@pytest.mark.parametrize(
    ("person", "status", "message"),
    [
        (Later(), "pending", "probe waits for a person's approval: it is yours."),
        (SayNo(), "denied", "probe was denied: not now."),
    ],
)
def test_a_permission_that_is_not_given_ends_the_body(person: Any, status: str, message: str) -> None:
    done = Spy()

    async def body(ctx: ToolContext) -> Any:
        await ctx.permission.request("edit persona", "it is yours")
        return done()

    result = gateway(tool(body=body), consent=person).pass_through("(probe)")
    assert (result.status, result.message) == (status, message)
    assert not done.ran


def test_a_body_in_a_thread_waits_for_the_answer_too() -> None:
    begun, person = Spy(), SayNo(ALLOW)

    def body(ctx: ToolContext) -> str:
        begun()
        asyncio.run(ctx.permission.request("edit persona", "it is yours"))
        return "edited"

    loops: list[object] = []
    request = person.request

    async def asked(*words: Any) -> Any:
        loops.append(threading.current_thread() is threading.main_thread())
        return await request(*words)

    person.request = asked  # type: ignore[method-assign]
    assert gateway(tool(body=body), consent=person).pass_through("(probe)").value == "edited"
    assert (begun.calls, loops) == (1, [True])  # the person is asked where the door is


def test_a_body_that_hides_a_refusal_is_refused_all_the_same() -> None:
    async def body(ctx: ToolContext) -> str:
        with contextlib.suppress(Exception):
            await ctx.permission.request("edit persona", "it is yours")
        return "edited"

    result = gateway(tool(body=body), consent=SayNo(deny("no"))).pass_through("(probe)")
    assert (result.status, result.value) == ("denied", None)


def test_a_permission_is_asked_once_while_the_body_waits() -> None:
    begun, person = Spy(), SayNo(ALLOW)

    async def body(ctx: ToolContext) -> Any:
        begun()
        await ctx.permission.request("edit persona", "it is yours")
        await ctx.permission.request("edit persona", "it is yours")
        await ctx.permission.request("edit human", "it is hers")
        return "edited"

    made = tool(body=body, params={"n": {"type": int}})
    assert gateway(made, consent=person).pass_through("(probe 1)").value == "edited"
    assert person.asked == [
        '(probe :n 1 :permission? "edit persona") because it is yours',
        '(probe :n 1 :permission? "edit human") because it is hers',
    ]
    assert begun.calls == 1


def test_a_body_cannot_ask_for_ever() -> None:
    async def body(ctx: ToolContext) -> None:
        for number in range(1000):
            await ctx.permission.request(f"edit {number}", "why not")

    result = gateway(tool(body=body), consent=SayNo(ALLOW)).pass_through("(probe)")
    assert result.message == "probe asked for more than 20 permissions."


def test_a_permission_asked_for_is_no_time_of_the_body() -> None:
    class Slow:
        async def request(self, *_: Any) -> Verdict:
            await asyncio.sleep(0.3)
            return ALLOW

    async def body(ctx: ToolContext) -> str:
        await ctx.permission.request("edit persona", "it is yours")
        return "edited"

    assert gateway(tool(body=body, timeout=0.2), consent=Slow()).pass_through("(probe)").value == "edited"


@pytest.mark.parametrize(
    ("search", "sentence"),
    [
        (
            lambda ctx: ctx.search("x", "everyone"),
            "Unknown search scope everyone; use agent, shared or all.",
        ),
        (
            lambda ctx: ctx.search("x", options=SearchOptions(0)),
            f"The limit of a search {MUST_BE_1_TO} 100, not 0.",
        ),
        (
            lambda ctx: ctx.search("x", options=SearchOptions(domain="web")),  # type: ignore[arg-type]
            "Unknown search domain web; use archival_memory, conversations or all.",
        ),
    ],
)
def test_a_search_that_cannot_be_is_told(search: Callable[[ToolContext], Any], sentence: str) -> None:
    result = gateway(tool(body=search), given=all_given(), consent=SayNo(ALLOW)).pass_through("(probe)")
    assert (result.status, result.message) == ("error", sentence)


class Lacking:
    """Has half of what a router, or the first half of what a source manager, has."""

    async def list_sources(self) -> list[Source]:
        return []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"router": Lacking()}, "Services(router=…) needs a Router, but Lacking has no method send_message."),
        (
            {"sources": Lacking()},
            "Services(sources=…) needs a SourceManager, but Lacking has no method read_source.",
        ),
        (
            {"memory": None},
            "Services(memory=…) needs a MemoryStore, but NoneType has no method create_block.",
        ),
        ({"model": "local"}, "Services(model=…) needs a ModelProvider, but str has no method complete."),
        ({"search": Feeds()}, "Services(search=…) needs a Search, but Feeds has no method search."),
        (
            {"shared_blocks": Memory()},
            "Services(shared_blocks=…) needs a SharedBlocks, but Memory has no method share_block.",
        ),
    ],
)
def test_what_is_no_such_service_is_refused_at_once(given: dict[str, Any], sentence: str) -> None:
    assert complaint(UsageError, lambda: Services(**given)) == sentence


# What a guard knows, and who says so


def sure(ctx: ToolContext) -> bool:
    return ctx.knowledge is not None and "blue" in ctx.knowledge and (ctx.confidence or 0) >= 0.8


KNOWN = [
    ({"knowledge": "It is blue.", "confidence": 0.9}, "ok"),
    ({"knowledge": "It is blue.", "confidence": 0.5}, "denied"),
    ({"knowledge": "It is red.", "confidence": 0.9}, "denied"),
    ({}, "denied"),
]


@pytest.mark.parametrize(("given", "status"), KNOWN)
def test_a_guard_decides_by_knowledge_and_confidence(given: dict[str, Any], status: str) -> None:
    assert gateway(tool(guard=sure), given=given).pass_through("(probe)").status == status


@pytest.mark.parametrize(("given", "status"), KNOWN)
def test_a_guard_in_hy_does_too(tmp_path: Path, given: dict[str, Any], status: str) -> None:
    guard = '(and ctx.knowledge (in "blue" ctx.knowledge) (>= ctx.confidence 0.8) True)'
    here = gateway(hy_tool(tmp_path, f":guard {guard} :body 1"), given=given)
    assert here.pass_through("(probe)").status == status


@pytest.mark.parametrize(
    "words",
    [
        ":confidence 1.0",
        ':knowledge "It is blue."',
        ':agent-id "root"',
        ':user "root"',
        ':user-message "Yes, do it."',
        ':chat-id "s"',
        ":services {}",
        ":memory {}",
        ":permission :admin",
        ":ctx {:confidence 1.0}",
    ],
)
def test_nothing_a_form_says_sets_any_of_it(words: str) -> None:
    body = Spy()
    here = gateway(tool(body=body, guard=sure), given={"knowledge": "It is blue.", "confidence": 0.1})
    result = here.pass_through(f"(probe {words})")
    assert result.status == "invalid"
    assert not body.ran


def test_a_parameter_of_the_same_name_leaves_the_context_as_it_is() -> None:
    probe = tool(params={"confidence": {"type": float}}, body=lambda confidence: confidence, guard=sure)
    here = gateway(probe, given={"knowledge": "It is blue.", "confidence": 0.1})
    assert here.pass_through("(probe :confidence 1.0)").status == "denied"


# What the seeds name, and where a body finds it. Seed 000's raw_arg is the arguments: parameters by name.
NAMED: dict[str, Callable[[ToolContext], Any]] = {
    "000 user_message": lambda ctx: ctx.user_message == "Hi.",
    "000 user": lambda ctx: ctx.user == "ann",
    "000 chat_id": lambda ctx: ctx.chat_id == "s1",
    "000 kb_context": lambda ctx: ctx.knowledge == "It is blue.",
    "000 confidence": lambda ctx: ctx.confidence == 0.9,
    "004 agent_id": lambda ctx: ctx.agent_id == "a",
    "004 memory": lambda ctx: isinstance(ctx.memory, Memory),
    "004 router": lambda ctx: isinstance(ctx.router, Outbox),
    "004 model": lambda ctx: isinstance(ctx.model, Parrot),
    "004 permission_broker": lambda ctx: ctx.permission_broker is ctx.permission,
    "004 search": lambda ctx: callable(ctx.search) and isinstance(ctx.services.search, Shelf),
    "004 sources": lambda ctx: isinstance(ctx.sources, Feeds),
    "004 shared_blocks": lambda ctx: isinstance(ctx.shared_blocks, Shared),
}


@pytest.mark.parametrize("found", [pytest.param(found, id=name) for name, found in NAMED.items()])
def test_a_body_has_all_that_the_seeds_name(found: Callable[[ToolContext], Any]) -> None:
    known = {"user": "ann", "session": "s1", "user_message": "Hi.", "agent_id": "a"}
    rated = {"knowledge": "It is blue.", "confidence": 0.9}
    assert gateway(tool(body=found), given={**known, **rated, **all_given()}).pass_through("(probe)").value


def test_a_start_does_not_wait_for_what_services_hand_over() -> None:
    program = (
        "import sys, quoth.tools.call.context, quoth.agent.client; "
        "print('quoth.tools.call.service_types' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
