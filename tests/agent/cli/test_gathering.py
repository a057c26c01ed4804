"""--knowledge and --search: which tools and rules they bring, what a session keeps of them, and a chat with
them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from loopback import loopback, silence, status
from sentences import (
    DID_NOT_ANSWER_WITHIN,
    IT_STILL_COUNTS,
    IT_USES_THE_NETWORK,
    IT_WRITES_FILES,
    THERE_IS_ALREADY_A_TOOL,
)
from words import files, form, quoth, scripted

from quoth import HostServices, ModelOptions
from quoth.agent.client import AsyncAgent
from quoth.tools.call.call import new_call
from quoth.tools.call.workspace import Workspace
from quoth.tools.knowledge.base import FileKnowledge
from quoth.tools.knowledge.web_search import open_web_search
from quoth.tools.storage.paths import state_dir

RESEARCH = '(research "solar cells")'
IN_CHAT = ("--knowledge", "--route", "chat")
OWN = """"Own."
(require quoth [def-cognitive-tool])
(def-cognitive-tool claim "Mine." :parameters [text {}] :effects [:writes] :replace True :body text)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(
        tmp_path,
        {
            "notes/solar.org": "#+title: Solar cells\nThe cells are of silicon.\n",
            "ask.hy": "(ask (claim) :why 'look')\n".replace("'", '"'),
            "deny.hy": "(deny (effects :net))\n",
            "open.hy": '(allow (research) (route "call"))\n',
            "own.hy": OWN,
            "clash.hy": OWN.replace(" :replace True", ""),
            "look.txt": f"{RESEARCH}\n---\nThey are of silicon.\n---\nStill of silicon.\n",
        },
    )


def out(here: Path, *words: str, code: int = 0, **more: Any) -> str:
    said = quoth(*words, cwd=here, **more)
    assert said.code == code, said
    return said.out


# The rules


@pytest.mark.parametrize(
    ("text", "route", "given", "verdict"),
    [
        (RESEARCH, "chat", {}, "allow"),
        (RESEARCH, "call", {}, "ask"),
        (RESEARCH, "program", {}, "ask"),
        (RESEARCH, "chat", {"policy": "deny.hy"}, "deny"),
        (RESEARCH, "call", {"policy": "open.hy"}, "allow"),
        ('(claim "x")', "chat", {}, "allow"),
        ('(claim "x")', "chat", {"policy": "ask.hy"}, "ask"),
        ('(claim "x")', "chat", {"tools": "own.hy"}, "ask"),  # that of a user is none that ships
        ('(write-file "a" "b")', "chat", {}, "ask"),
    ],
)
def test_the_rules_that_ship_allow_just_these_tools_just_there(
    here: Path, text: str, route: Any, given: dict[str, str], verdict: str
) -> None:
    services = HostServices(knowledge_base=FileKnowledge(Workspace(here)))
    options: dict[str, Any] = {name: here / file for name, file in given.items()}
    agent = AsyncAgent(workspace=here, services=services, **options)
    wanted, args = agent.table.get(form(text).tool).checked(form(text))
    call, tool = new_call(wanted, route=route), agent.table.get(wanted.tool)
    assert agent.policy.judge(tool, call, args, agent.context()).kind == verdict
    assert agent.policy.explain(tool, call, args, agent.context()).verdict.kind == verdict


def test_the_rule_is_shown_with_its_file_and_line(here: Path) -> None:
    shown = out(here, "policy", "explain", RESEARCH, *IN_CHAT)
    assert shown.splitlines() == [
        'allow: quoth/tools/knowledge/chat_rules.hy:5 says (allow (research) (route "chat")).',
        '  quoth/tools/knowledge/chat_rules.hy:5  (allow (research) (route "chat"))  (decides)',
        f"Without rules: ask, because {IT_USES_THE_NETWORK} and {IT_WRITES_FILES}.",
    ]


# The tools


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), set[str]()),
        (("--knowledge",), {"claim", "learning", "research", "source", "summarize"}),
        (("--knowledge", "--without", "research"), {"claim", "learning", "source", "summarize"}),
    ],
)
def test_the_tools_are_there_with_a_knowledge_base(
    here: Path, words: tuple[str, ...], wanted: set[str]
) -> None:
    names = {tool["name"] for tool in json.loads(out(here, "tools", "--json", *words))}
    assert names & {"claim", "learning", "research", "source", "summarize"} == wanted


WRONG = [
    (
        ("--search", ""),
        "--search is empty. Give https://searx.example, an address with {query} in it, or a ",
    ),
    (
        ("--search", "https://a.example:x/hush"),
        "The address of --search is invalid. Give https://searx.example,",
    ),
    (("--search", "gone"), "--search is not a folder: "),
    (("--search-keys", "title=x"), "--search-keys are for the answer of a server; name it with --search."),
    (("--search", "notes", "--search-keys", "title=x"), "--search-keys are for a server, but "),
    (("--tools", "clash.hy"), f"clash.hy:3:1: {THERE_IS_ALREADY_A_TOOL} claim, which ships with quoth; "),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_what_cannot_be_used_is_told(here: Path, words: tuple[str, ...], sentence: str) -> None:
    said = quoth("call", RESEARCH, "--knowledge", *words, cwd=here)
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err
    assert "hush" not in said.err


def test_a_folder_is_named_from_where_the_command_runs(here: Path) -> None:
    files(here, {"work/a.txt": ""})
    told = out(
        here, "call", RESEARCH, "--knowledge", "--search", "notes", "--workspace", "work", "--yes", "--json"
    )
    (hit,) = json.loads(told)["value"]
    assert hit["address"] == str(here / "notes/solar.org")
    assert [path.parent.name for path in (here / "work").rglob("*.org")] == ["queue"]


# What a session keeps


def test_a_session_keeps_its_folder_and_its_knowledge(here: Path) -> None:
    given = ("--model", "scripted:look.txt", "--session", "s", "--user", "ann")
    out(here, "run", "Which?", *given, "--knowledge", "--search", "notes", code=3)
    (request,) = json.loads(out(here, "pending", "--json"))
    out(here, "approve", request["id"])
    assert out(here, "resume", "s") == "They are of silicon.\n"
    assert [path.parent.name for path in here.rglob("knowledge/*/*.org")] == ["queue"]
    assert json.loads(out(here, "replay", "s", "--json"))["same"] is True
    other = files(here, {"other/s.hy": out(here, "export", "s")}) / "other"
    out(other, "import", "s.hy")
    said = quoth("resume", "s", "And now?", cwd=other)
    assert (said.code, f"--search {here / 'notes'}" in said.err) == (2, True), said


def test_the_address_of_a_server_is_kept_nowhere(here: Path) -> None:
    url = "https://bot:tok3n@a.example/T0K3N?key=s3cret&q={query}"
    given = ("--model", "scripted:look.txt", "--session", "s", "--user", "ann")
    more = ("--knowledge", "--search", url, "--search-keys", "results=hits")
    out(here, "run", "Which?", *given, *more, code=3)
    told = out(here, "log", "s", "--json") + out(here, "export", "s") + out(here, "pending", "--json")
    kept = b"".join(file.read_bytes() for file in state_dir().rglob("*.sqlite*"))
    for secret in ("tok3n", "T0K3N", "s3cret"):
        assert secret not in told
        assert secret.encode() not in kept
    said = quoth("resume", "s", cwd=here)
    assert (said.code, said.out, said.err) == (
        2,
        "",
        "quoth: Session s searched at an address that is not kept. Give it again: --search URL, or in"
        " QUOTH_SEARCH.\n",
    )
    (request,) = json.loads(out(here, "pending", "--json"))
    out(here, "approve", request["id"], env={"QUOTH_SEARCH": url})
    answer = {"hits": [{"url": "https://a.example/", "title": "A", "content": ""}]}
    with loopback(status(200, answer)) as server:
        out(here, "resume", "s", env={"QUOTH_SEARCH": server.base_url})
        assert (
            server.requests[0][0] == "/v1/search?q=solar%20cells&format=json"
        )  # with the keys that were kept
    assert [path.parent.name for path in here.rglob("knowledge/*/*.org")] == ["queue"]


# A chat


def chats(here: Path, search: str, *replies: str, model: Any = None) -> AsyncAgent:
    services = HostServices(
        knowledge_base=FileKnowledge(Workspace(here)), web_search=open_web_search(search, root=here)
    )
    talks = ModelOptions(model or scripted(*replies), dialect="tags", after_tags="stop")
    return AsyncAgent(workspace=here, model=talks, services=services, user="host")


async def told(agent: AsyncAgent, texts: list[str]) -> list[tuple[str, list[str]]]:
    """What the chat shows after each message: the reply, and what followed it."""
    async with agent:
        chat = agent.for_chat("7")
        shown = []
        for nth, text in enumerate(texts):
            reply = await chat.say(text, speaker="ann", turn=f"m{nth}")
            shown.append((reply.text, [one.text for one in reply.follow_ups]))
        return shown


def test_a_chat_uses_them_all_and_asks_nobody(here: Path) -> None:
    replies = [
        "I look.\nRESEARCH: cells",
        "LEARNING: communication Ann is short of time.\nCLAIM: Cells are of silicon.\nSOURCE: A link",
        "SUMMARIZE: cells",
        "They spoke of cells.",  # what the tool is answered
        "RESEARCH: silicon",
        "RESEARCH: the cells",
        "RESEARCH: cells of silicon",
    ]
    texts = ["Look for cells.", "Note https://a.example/x for me.", "Sum up.", "More.", "More.", "More."]
    shown = asyncio.run(told(chats(here, "notes", *replies), texts))
    assert shown[0][0] == "I look."
    assert shown[0][1][0].startswith("Found for: cells\n- Solar cells: notes/solar.org\n")
    assert [text.partition(" is kept in ")[0] for text in shown[1][1]] == [
        "The learning",
        "The claim",
        "The source",
    ]
    assert shown[2] == ("", ["They spoke of cells.\nIt is kept in knowledge/inbox.org."])
    (last,) = shown[5][1]
    assert last.startswith("research is limited: 3 of 3 used today, next tomorrow at 00:00 UTC, in ")
    assert sorted(path.relative_to(here).parts[1] for path in here.rglob("knowledge/**/*.org")) == [
        "claims.org",
        "inbox.org",
        "learnings.org",
        "queue",
        "queue",
    ]


def test_a_chat_sums_up_what_was_said_and_nothing_else(here: Path) -> None:
    model = scripted(
        "I look.\nRESEARCH: cells", "CLAIM: Cells are of silicon.", "SUMMARIZE: cells", "Spoken."
    )
    texts = [
        "Look for cells.",
        "They are of silicon.",
        "Sum up the cells.",
    ]  # of which something is known now
    asyncio.run(told(chats(here, "notes", model=model), texts))
    (*_, asked) = json.loads(model.seen[-1])
    assert asked["content"].split("\n\n")[1].splitlines()[1:-1] == [
        "ann: Look for cells.",
        "assistant: I look.",
        "ann: They are of silicon.",
        "ann: Sum up the cells.",
    ]


def test_a_chat_is_told_why_a_search_failed_and_that_it_counted(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.knowledge.web_search.SECONDS", 0.1)
    with loopback(silence) as server:
        ((_, (sentence,)),) = asyncio.run(
            told(chats(here, server.base_url, "I look.\nRESEARCH: cells"), ["Look for cells."])
        )
    assert sentence == (
        f"The search server {server.base_url.removesuffix('/v1')} {DID_NOT_ANSWER_WITHIN} 0.1 s. "
        f"{IT_STILL_COUNTS}: 2 of 3 left today."
    )
