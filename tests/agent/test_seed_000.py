"""The chat bot of the first seed: its four tools by one definition each, in Python and in Hy, and a fifth.

Nothing but the definitions tells the prompt, the parser, the limits, the display or the audit of a tool.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from words import files, scripted

from quoth import (
    AsyncAgent,
    GateDecision,
    ModelOptions,
    PolicyOptions,
    Reply,
    ToolContext,
    ToolTable,
    cognitive_tool,
    registering_in,
)
from quoth.neuro import prompt_block
from quoth.neuro.prompt.dialects import TAGS
from quoth.tools.loading import load_tools


def python_tools(table: ToolTable, folder: Path) -> None:
    @cognitive_tool(
        tag={"prefix": "RESEARCH", "pattern": r"(.+)", "example": "RESEARCH: [search query]"},
        cost="cheap",
        gate=False,
        cooldown=0,
        daily_limit=3,
    )
    async def research(query: str, ctx: ToolContext) -> list[str]:
        """Search X for recent posts on a topic. Results sent back to chat."""
        ctx.effect(f"searched:x:{query}")
        ctx.audit["hits"] = 2
        ctx.say(f"Two posts on {query}.")
        return ["one", "two"]

    @cognitive_tool(
        tag={"prefix": "SOURCE", "pattern": r"(.+)", "example": "SOURCE: [description]"},
        cost="free",
        gate=False,
        cooldown=0,
        daily_limit=0,
    )
    async def source(description: str, ctx: ToolContext) -> None:
        """Archive source material contributed by a user."""
        ctx.effect("created:inbox/queue/source.md")

    @cognitive_tool(
        tag={"prefix": "CLAIM", "pattern": r"(.+)", "example": "CLAIM: [specific assertion]"},
        cost="free",
        gate=False,
        cooldown=0,
        daily_limit=0,
    )
    async def claim(assertion: str, ctx: ToolContext) -> str:
        """Draft a KB claim from a user's assertion."""
        return f"{ctx.user} in {ctx.chat_id}: {assertion} ({ctx.confidence}, {ctx.user_message})"

    @cognitive_tool(
        tag={
            "prefix": "LEARNING",
            "pattern": r"(factual|communication|structured_data)\s+(.+)",
            "groups": ["category", "content"],
            "example": "LEARNING: [category] [what was learned]",
        },
        cost="free",
        gate=False,
        cooldown=0,
        daily_limit=0,
    )
    async def learning(category: str, content: str, ctx: ToolContext) -> None:
        """Record a correction or new fact from conversation."""
        ctx.say(f"Learned ({category}).")


HY_TOOLS = r"""
(require quoth [def-cognitive-tool])

(def-cognitive-tool research
  "Search X for recent posts on a topic. Results sent back to chat."
  :parameters  [query {:type str}]
  :tag         {:prefix "RESEARCH" :pattern r"(.+)" :example "RESEARCH: [search query]"}
  :cost        :cheap
  :gate        False
  :cooldown    0
  :daily-limit 3
  :body        (do (.effect ctx f"searched:x:{query}")
                   (setv (get ctx.audit "hits") 2)
                   (.say ctx f"Two posts on {query}.")
                   ["one" "two"]))

(def-cognitive-tool source
  "Archive source material contributed by a user."
  :parameters  [description {:type str}]
  :tag         {:prefix "SOURCE" :pattern r"(.+)" :example "SOURCE: [description]"}
  :cost        :free
  :gate        False
  :cooldown    0
  :daily-limit 0
  :body        (.effect ctx "created:inbox/queue/source.md"))

(def-cognitive-tool claim
  "Draft a KB claim from a user's assertion."
  :parameters  [assertion {:type str}]
  :tag         {:prefix "CLAIM" :pattern r"(.+)" :example "CLAIM: [specific assertion]"}
  :cost        :free
  :gate        False
  :cooldown    0
  :daily-limit 0
  :body        f"{ctx.user} in {ctx.chat-id}: {assertion} ({ctx.confidence}, {ctx.user-message})")

(def-cognitive-tool learning
  "Record a correction or new fact from conversation."
  :parameters  [category {:type str}
                content  {:type str}]
  :tag         {:prefix  "LEARNING"
                :pattern r"(factual|communication|structured_data)\s+(.+)"
                :groups  ["category" "content"]
                :example "LEARNING: [category] [what was learned]"}
  :cost        :free
  :gate        False
  :cooldown    0
  :daily-limit 0
  :body        (.say ctx f"Learned ({category})."))
"""
HY_SUMMARIZE = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool summarize
  "Generate a summary of the current conversation."
  :parameters [topic {:type str}]
  :tag        {:prefix "SUMMARIZE" :example "SUMMARIZE: [topic]"}
  :cost       :cheap
  :gate       True
  :body       (.say ctx f"In short: {topic}."))
"""


def hy_tools(table: ToolTable, folder: Path) -> None:
    load_tools([files(folder, {"tools.hy": HY_TOOLS}) / "tools.hy"], table)


def python_summarize(table: ToolTable, folder: Path) -> None:
    @cognitive_tool(tag={"prefix": "SUMMARIZE", "example": "SUMMARIZE: [topic]"}, cost="cheap", gate=True)
    async def summarize(topic: str, ctx: ToolContext) -> None:
        """Generate a summary of the current conversation."""
        ctx.say(f"In short: {topic}.")


def hy_summarize(table: ToolTable, folder: Path) -> None:
    load_tools([files(folder, {"more.hy": HY_SUMMARIZE}) / "more.hy"], table)


LANGUAGES = {"Python": (python_tools, python_summarize), "Hy": (hy_tools, hy_summarize)}


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def table_in(language: str, folder: Path, *, more: bool = False) -> ToolTable:
    four, fifth = LANGUAGES[language]
    with registering_in(ToolTable()) as table:
        four(table, folder)
        if more:
            fifth(table, folder)
    return table


PROMPT = {
    "RESEARCH: [search query]": "Search X for recent posts on a topic. Results sent back to chat.",
    "SOURCE: [description]": "Archive source material contributed by a user.",
    "CLAIM: [specific assertion]": "Draft a KB claim from a user's assertion.",
    "LEARNING: [category] [what was learned]": "Record a correction or new fact from conversation.",
}
REPLY = """Good question.

LEARNING: factual The sun is a star.
RESEARCH: solar cells
SOURCE: her notes on cells

I shall look.
CLAIM: Cells get cheaper.
LEARNING: gossip No category of ours.
CONFIDENCE: 0.7"""


def test_the_prompt_and_the_parser_follow_from_the_definitions(tmp_path: Path, language: str) -> None:
    table = table_in(language, tmp_path)
    assert table.names() == ["claim", "learning", "research", "source"]
    for example, description in PROMPT.items():
        assert example in prompt_block(table)
        assert description in prompt_block(table)
    reading = TAGS.read_text(REPLY, table)
    assert [str(call.form) for call in reading.calls] == [
        '(learning :category "factual" :content "The sun is a star.")',
        '(research :query "solar cells")',
        '(source :description "her notes on cells")',
        '(claim :assertion "Cells get cheaper.")',
    ]
    assert reading.display == "Good question.\n\nI shall look.\nLEARNING: gossip No category of ours."
    assert reading.confidence == 0.7


@asynccontextmanager
async def bot(
    folder: Path, language: str, *replies: str, more: bool = False, gate: Any = None
) -> AsyncIterator[AsyncAgent]:
    async with AsyncAgent(
        workspace=folder,
        tools=table_in(language, folder, more=more),
        model=ModelOptions(scripted(*replies), dialect="tags", after_tags="stop"),
        policy=PolicyOptions(gate=gate),
    ) as agent:
        yield agent


def told(reply: Reply) -> list[str]:
    return [one.text for one in reply.follow_ups]


async def test_follow_ups_limits_and_audit_follow_from_the_definitions(tmp_path: Path, language: str) -> None:
    again = "RESEARCH: wind\nRESEARCH: rain\nRESEARCH: snow"
    async with bot(tmp_path, language, REPLY, again) as agent:
        chat = agent.for_chat(7)
        first = await chat.say("Look for cells!", speaker="@ann")
        assert first.text == "Good question.\n\nI shall look.\nLEARNING: gossip No category of ours."
        assert told(first) == ["Learned (factual).", "Two posts on solar cells."]
        assert first.calls[3].result.value == "@ann in 7: Cells get cheaper. (0.7, Look for cells!)"
        second = await chat.say("And the weather?", speaker="@ann", turn="m2")
        assert second.text == ""
        assert told(second)[:2] == ["Two posts on wind.", "Two posts on rain."]
        assert told(second)[2].startswith("research is limited: 3 of 3 used today, next tomorrow at 00:00")
        recalled = await chat.say("And the weather?", speaker="@ann", turn="m2")
        assert told(recalled) == told(second)  # from the transcript: nothing is done again
        rows = agent.audit.rows()
    assert [(row["tool"], row["status"], row["confidence"]) for row in rows if row["stage"] != "reader"] == [
        *((name, "ok", 0.7) for name in ("learning", "research", "source", "claim")),
        ("research", "ok", None),
        ("research", "ok", None),
        ("research", "limited", None),
    ]
    assert {(row["user"], row["route"]) for row in rows} == {("@ann", "chat")}
    assert first.calls[1].result.audit["hits"] == 2
    assert [row["details"] for row in rows if row["tool"] == "research"] == [{"hits": 2}] * 3 + [{}]
    done = [effect for row in rows for effect in row["side_effects"]]
    assert done[:2] == ["searched:x:solar cells", "created:inbox/queue/source.md"]
    assert all(row["ts"] and row["duration_ms"] >= 0 for row in rows)


async def test_a_new_tool_is_one_definition(tmp_path: Path, language: str) -> None:
    before = prompt_block(table_in(language, tmp_path))
    after = prompt_block(table_in(language, tmp_path, more=True))
    new = [line for line in after.splitlines() if line not in before.splitlines()]
    assert "SUMMARIZE: [topic]" in "\n".join(new)
    assert "Generate a summary of the current conversation." in "\n".join(new)

    class EvalGate:
        async def check(self, tool: Any, ctx: ToolContext, call: Any) -> GateDecision:
            return GateDecision(call.form.args["topic"] == "the sun", f"{tool.cost} enough, but off topic")

    replies = ("Here.\nSUMMARIZE: the sun\nSUMMARIZE: gossip", "SUMMARIZE: the moon")
    async with bot(tmp_path, language, *replies, more=True, gate=EvalGate()) as agent:
        reply = await agent.for_chat("7").say("Sum up.", speaker="@ann")
        assert reply.text == "Here."
        assert told(reply) == [
            "In short: the sun.",
            "summarize was denied: cheap enough, but off topic.",
        ]
        rows = [(row["tool"], row["status"], row["gate"]) for row in agent.audit.rows()]
    assert rows == [
        ("summarize", "ok", "allow"),
        ("summarize", "denied", "deny: cheap enough, but off topic"),
    ]
    async with bot(tmp_path, language, replies[1], more=True) as agent:  # the default of the seed: no gate
        assert told(await agent.for_chat("8").say("Sum up.", speaker="@ann")) == ["In short: the moon."]
        assert agent.audit.rows()[-1]["gate"] == "no gate"
