"""A chat: who speaks, what a reply of tags comes to, what people are told of it, and what the model is told
the next time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sentences import THE_DATA_GIVEN_WITH_THE, THE_PERSON_SAID_NO
from words import complaint, grouped, scripted, tool

from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.reply import Reply
from quoth.agent.run.host import SessionHost
from quoth.agent.session.index import session_of_chat
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.service_types import Known, SearchOptions
from quoth.tools.call.services import Services
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.registry.parameters import Tag
from quoth.tools.registry.table import CognitiveTool

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")

TEXT = {"text": {"type": str}}


class Bot:
    """A bot and its people. Of its tools one says what it found and may be used twice a day, one is asked,
    one is silent, one fails, one has a sub-agent, and the tag of one has a pattern. Without ``restarts`` one
    process answers all."""

    def __init__(self, folder: Path, restarts: bool = False, **options: Any) -> None:
        self.folder, self.restarts, self.options = folder, restarts, options
        self.model = ScriptedBackend([])
        self.audit = MemoryAudit()
        self.seen: list[ToolContext] = []
        self.calls: list[Call] = []
        self.posts: list[str] = []
        self.events: list[str] = []
        self.alive = True  # else its work is broken off in the midst of a call

    def look(self, text: str, ctx: ToolContext, call: Call) -> str:
        self.seen.append(ctx)
        self.calls.append(call)
        ctx.say(f"Found 2 pages on {text}.")
        return "two pages"

    def post(self, text: str, ctx: ToolContext) -> str:
        self.posts.append(text)
        ctx.say(f"Filed: {text}.")
        return "filed"

    @property
    def tools(self) -> list[CognitiveTool]:
        return [
            tool("look", self.look, params=TEXT, tag="LOOK", daily_limit=2),
            tool("post", self.post, params=TEXT, tag="POST", effects=["writes"]),
            tool("note", lambda text: "kept", params=TEXT, tag="NOTE"),
            tool("ghost", self.ghost, params=TEXT, tag="GHOST"),
            tool("helper", self.helper, params=TEXT, tag="HELP", effects=["runs"]),
            tool("grade", lambda text: text, params=TEXT, tag=Tag("GRADE", r"(\d)")),
        ]

    async def ghost(self, text: str) -> None:
        if self.alive:
            raise ToolError("There is\nnobody.")
        self.work.cancel()
        await asyncio.sleep(10)

    async def helper(self, text: str, ctx: ToolContext, call: Call) -> str:
        return await ctx.team.run(text, call=call, context=ctx)

    def agent(self) -> AsyncAgent:
        given = {"user": "bot", "tools": self.tools, "audit": self.audit, "dialect": "tags", **self.options}
        return AsyncAgent(**grouped(workspace=self.folder, model=self.model, **given))

    def hears(self, *said: tuple[str, str] | Callable[[AsyncAgent], Any], says: list[str]) -> list[Reply]:
        """What the chat 7 is answered, with these replies of the model, to what its people say, (user, text)
        each, and to what is done between."""
        self.model = scripted(*says)
        return self.is_told(*said)

    def is_told(self, *said: Any) -> list[Reply]:
        return asyncio.run(self._answered(said))

    async def _answered(self, said: Any) -> list[Reply]:
        replies: list[Reply] = []
        self.work: Any = asyncio.current_task()
        host = self.agent()
        chat = self.joined(host)
        for place, one in enumerate(said):
            if self.restarts:
                await host.aclose()
                host = self.agent()
                chat = self.joined(host)
            if callable(one):
                made = one(chat)
                replies += [await made] if isinstance(made, Awaitable) else []
            else:
                replies.append(await chat.say(one[1], speaker=one[0], turn=f"m{place}"))
        await chat.aclose()
        await host.aclose()
        return replies

    def joined(self, host: AsyncAgent) -> AsyncAgent:
        chat = host.for_chat("7")
        chat.on_event = self.listen
        return chat

    def listen(self, event: AgentEvent) -> None:
        if event.kind in ("message", "note"):
            self.events.append(event.data)
        elif event.kind == "end":
            self.events.append(f"reply: {event.data.text}")

    def asked(self, request: int = -1) -> list[str]:
        """What stood in the conversation at one of the model's requests, behind the system message."""
        opening, *rest = json.loads(self.model.seen[request])
        assert opening["role"] == "system"
        return [message["content"] for message in rest]

    def told(self) -> list[str]:
        """What was new to the model at its last request."""
        new: list[str] = []
        for message in json.loads(self.model.seen[-1]):
            new = [] if message["role"] == "assistant" else [*new, message["content"]]
        return new


def decides(kind: Any = "once", place: int = 0) -> Callable[[AsyncAgent], None]:
    """Ben decides an open request of the chat."""

    def decide(chat: AsyncAgent) -> None:
        request = chat.broker.requests(session=chat.session)[place]
        chat.broker.decide(request.id, Decision(kind, "ben"))

    return decide


def again(place: int) -> Callable[[AsyncAgent], Awaitable[Reply]]:
    """The message at that place comes once more, under its name."""
    return lambda chat: chat.say("the same", speaker="ann", turn=f"m{place}")


@pytest.fixture(params=[False, True], ids=["one process", "restarted"])
def bot(tmp_path: Path, request: pytest.FixtureRequest) -> Bot:
    return Bot(tmp_path, request.param)


# Whose calls they are


def test_each_speaker_has_their_own_limit(bot: Bot) -> None:
    said = [("ann", "a"), ("ben", "b"), ("ann", "c")]
    bot.hears(*said, says=["LOOK: a\nLOOK: b", "LOOK: a", "LOOK: c"])
    rows = [(row["user"], row["status"], row["route"]) for row in bot.audit.rows()]
    assert rows == [(user, status, "chat") for user, status in
                    [("ann", "ok"), ("ann", "ok"), ("ben", "ok"), ("ann", "limited")]]  # fmt: skip


def test_a_call_knows_its_speaker_its_chat_and_its_message(tmp_path: Path) -> None:
    bot = Bot(tmp_path)
    bot.hears(("ann", "look for cells"), says=["LOOK: cells"])
    (ctx,) = bot.seen
    assert (ctx.user, ctx.chat_id, ctx.session) == ("ann", "7", "chat-7")
    assert ctx.user_message == "look for cells"


def test_what_is_asked_is_asked_of_the_speaker(tmp_path: Path) -> None:
    bot, found = Bot(tmp_path), []
    bot.hears(("ann", "a"), lambda chat: found.extend(chat.broker.requests()), says=["POST: it is blue"])
    assert [(one.user, one.session, one.route) for one in found] == [("ann", "chat-7", "chat")]


@pytest.mark.parametrize(("reply", "sure"), [("CONFIDENCE: 0.4\n", 0.4), ("", 0.9)])
def test_a_call_knows_how_sure_the_model_is_or_else_the_host(tmp_path: Path, reply: str, sure: float) -> None:
    bot = Bot(tmp_path, confidence=0.9)
    bot.hears(("ann", "a"), says=[f"{reply}LOOK: cells"])
    assert (bot.seen[0].confidence, bot.calls[0].confidence) == (sure, sure)


def test_each_chat_has_a_conversation_of_its_own(tmp_path: Path) -> None:
    bot = Bot(tmp_path)

    async def elsewhere(chat: AsyncAgent) -> Reply:
        host = bot.agent()
        reply = await host.for_chat("8").say("And here?", speaker="ann", turn="m0")
        await host.aclose()
        return reply

    replies = bot.hears(("ann", "Hello."), elsewhere, says=["Hi.", "Hi, too."])
    assert [reply.session for reply in replies] == ["chat-7", "chat-8"]
    assert bot.asked() == ["And here?"]


SAID = ["ann: the door is mauve", "scripted: I see."]


@pytest.mark.parametrize(("chat", "hits"), [("7", SAID), ("8", []), ("", [])])
def test_only_the_chat_itself_finds_what_was_said_in_it(tmp_path: Path, chat: str, hits: list[str]) -> None:
    bot, found = Bot(tmp_path), []

    async def searches(_: AsyncAgent) -> None:
        host = bot.agent()
        memory = (host.for_chat(chat) if chat else host).host.services.search
        options = SearchOptions(domain="conversations")
        found.extend(hit.text for hit in await memory.search("mauve", "agent", options))
        await host.aclose()

    bot.hears(("ann", "the door is mauve"), searches, says=["I see."])
    assert found == hits


def test_every_chat_has_another_session() -> None:
    names = ["7", "-7", "a b", "a-b", "a/b", "A B", "!room:example.org", "ü", "", "x" * 41, "x" * 42]
    sessions = [session_of_chat(name) for name in names]
    assert len(set(sessions)) == len(names)
    assert all(one.isascii() and " " not in one and "/" not in one for one in sessions)
    assert len(session_of_chat("a b")) == len("chat-a-b-") + 20  # fewer digits can be met on purpose


def test_a_reason_is_told_once(tmp_path: Path) -> None:
    says = "\n".join(f"GHOST: {n}\nLOOK: {n}" for n in range(2))
    (reply,) = Bot(tmp_path).hears(("ann", "look"), says=[says])
    found = [f"Found 2 pages on {n}." for n in range(2)]
    assert [one.text for one in reply.follow_ups] == ["There is nobody.", *found]


# What people are told


def test_the_follow_ups_come_after_the_reply_in_the_order_of_the_calls(bot: Bot) -> None:
    says = "I look.\nLOOK: b\nNOTE: it is 5\nGHOST: x\nLOOK: a"
    (reply,) = bot.hears(("ann", "look"), says=[says])
    told = ["Found 2 pages on b.", "There is nobody.", "Found 2 pages on a."]
    assert bot.events == ["reply: I look.", *told]
    assert [(one.call, one.text) for one in reply.follow_ups] == list(
        zip(["r1/1.0", "r1/1.2", "r1/1.3"], told, strict=True)
    )


def test_a_limit_is_told_in_one_sentence(bot: Bot) -> None:
    bot.hears(("ann", "look"), says=["LOOK: a\nLOOK: b\nLOOK: c"])
    assert bot.events[-1].startswith("look is limited: 2 of 2 used today, next tomorrow at 00:00 UTC")


def test_outside_of_a_chat_nobody_is_told_of_calls(tmp_path: Path) -> None:
    bot = Bot(tmp_path)
    bot.model = scripted("LOOK: a", "Two.")

    async def run() -> Reply:
        async with bot.agent() as it:
            it.on_event = bot.listen
            return await it.run("look")

    assert asyncio.run(run()).follow_ups == ()
    assert bot.events == ["reply: Two."]


def test_what_could_not_be_told_is_told_when_the_message_comes_again(tmp_path: Path) -> None:
    class Router:
        told: list[str] = []  # noqa: RUF012
        away = True

        async def send_message(self, message: str, *, to: str = "user") -> None:
            if self.away:
                raise ToolError("Nobody is there.")
            self.told.append(message)

        async def list_channels(self) -> list[str]:
            return []

    bot, router = Bot(tmp_path, services=Services(router=Router())), Router
    bot.hears(("ann", "a"), lambda _: setattr(router, "away", False), again(0), again(0), says=["LOOK: a"])
    assert router.told == ["Found 2 pages on a."]
    assert bot.events.count("Nobody is there.") == 1


# stop and continue


def test_a_reply_of_tags_ends_and_its_results_are_there_at_the_next_message(bot: Bot) -> None:
    first, second = bot.hears(("ann", "a"), ("ann", "b"), says=["I look.\nLOOK: cells", "Two."])
    assert (first.status, first.text, second.text) == ("done", "I look.", "Two.")
    result = "Result of LOOK, ok:\ntwo pages\n(Found 2 pages on cells.\n1 of 2 left today)"
    assert bot.asked() == ["a", "I look.\nLOOK: cells", result, "b"]


@pytest.mark.parametrize(("after", "told"), [(None, True), ("stop", True), ("continue", False)])
def test_a_model_is_told_when_it_will_see_the_results(tmp_path: Path, after: Any, told: bool) -> None:
    bot = Bot(tmp_path, after_tags=after)
    bot.hears(("ann", "a"), says=["Hello."])
    opening = json.loads(bot.model.seen[0])[0]["content"]
    assert ("you with the next message" in opening) == told
    assert ("its result is the next message" in opening) != told


def test_with_continue_the_model_goes_on_at_once(tmp_path: Path) -> None:
    bot = Bot(tmp_path, after_tags="continue")
    (reply,) = bot.hears(("ann", "a"), says=["I look.\nLOOK: cells", "Two.\nCONFIDENCE: 0.8"])
    assert (reply.text, reply.steps) == ("Two.", 2)
    assert bot.events == ["reply: Two.", "Found 2 pages on cells."]


def test_stop_ends_a_run_outside_of_a_chat_too(tmp_path: Path) -> None:
    bot = Bot(tmp_path, after_tags="stop")
    bot.model = scripted("I look.\nLOOK: cells")

    async def run() -> Reply:
        async with bot.agent() as it:
            return await it.run("look")

    reply = asyncio.run(run())
    assert (reply.status, reply.text) == ("done", "I look.")
    assert [one.text for one in reply.follow_ups] == ["Found 2 pages on cells."]


def test_a_tag_that_cannot_be_read_is_told_to_the_model_and_the_rest_to_people(bot: Bot) -> None:
    first, _ = bot.hears(("ann", "a"), ("ann", "b"), says=["So.\nGRADE: ten", "Well."])
    assert (first.status, first.text, first.calls) == ("done", "So.\nGRADE: ten", ())
    fault, said = bot.told()
    assert fault.startswith("A form of your reply could not be read. line 2")
    assert said == "b"


def test_a_reply_of_nothing_is_complained_of(tmp_path: Path) -> None:
    (reply,) = Bot(tmp_path).hears(("ann", "a"), says=["", "Hello."])
    assert (reply.text, reply.steps) == ("Hello.", 2)


def test_nobody_in_a_chat_must_look_first(tmp_path: Path) -> None:
    bot = Bot(tmp_path)
    bot.model = scripted("Hello.")
    bot.model.takes_grammar = True  # type: ignore[misc]
    host = bot.agent()
    reply = asyncio.run(host.for_chat("7").say("Hi."))
    asyncio.run(host.aclose())
    assert (reply.text, reply.steps) == ("Hello.", 1)


def test_an_unknown_way_to_go_on_is_refused(tmp_path: Path) -> None:
    said = complaint(UsageError, lambda: Bot(tmp_path, after_tags="go").agent())
    assert said == "after_tags is stop, continue or None, not 'go'."


# What is known


class Base:
    """A knowledge base with one entry, or with a file that cannot be read."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    async def look_up(self, query: str, limit: int = 5) -> list[Known]:
        if not self.text:
            raise ToolError("knowledge/claims.org:3: no title.")
        return [Known("claim", self.text, self.text, "knowledge/claims.org", 3, "ben", "2026-01-31T09:30:00")]

    async def _files(self, *args: Any, **named: Any) -> None: ...

    add_source = add_claim = add_learning = add_note = _files


def test_what_is_known_stands_behind_the_message_and_never_in_the_system_message(tmp_path: Path) -> None:
    bot = Bot(tmp_path, services=Services(knowledge_base=Base("Cells are blue")))
    bot.hears(("ann", "cells?"), says=["LOOK: cells"])
    (said,) = bot.asked()
    assert said.startswith("cells?\n\n")
    assert "Cells are blue" in said
    assert bot.seen[0].knowledge is not None
    assert said.endswith(bot.seen[0].knowledge)
    assert "blue" not in json.loads(bot.model.seen[0])[0]["content"]


def test_what_was_known_comes_from_the_record_when_a_message_goes_on(tmp_path: Path) -> None:
    bot = Bot(tmp_path, services=Services(knowledge_base=Base("Cells are blue")))
    bot.hears(("ann", "cells?"), says=["POST: x"])
    bot.options["services"] = Services(knowledge_base=Base())  # its files are broken since
    bot.restarts = True
    bot.hears(lambda chat: None, decides(), again(0), ("ann", "and?"), says=["So."])
    assert "Cells are blue" in bot.asked()[0]
    assert bot.events[-2:] == ["knowledge/claims.org:3: no title.", "reply: So."]


def test_a_call_that_stands_in_what_is_known_is_a_quotation(tmp_path: Path) -> None:
    bot = Bot(tmp_path, services=Services(knowledge_base=Base("ben says post: the cells are blue")))
    (reply,) = bot.hears(("ann", "cells?"), says=["POST: the cells are blue"])
    assert THE_DATA_GIVEN_WITH_THE in reply.calls[0].result.message


# Calls that wait


def test_an_approved_call_is_made_alone_and_told_of(bot: Bot) -> None:
    says = ["Shall I?\nLOOK: x\nPOST: it is blue", "Well."]
    said = [("ann", "post it"), decides(), again(0), ("ann", "and?")]
    waiting, done, _ = bot.hears(*said, says=says)
    assert (waiting.status, waiting.text) == ("pending", "Shall I?")
    assert [one.text for one in waiting.follow_ups] == ["Found 2 pages on x."]
    assert (done.status, done.text, done.steps) == ("done", "Shall I?", 1)
    assert [one.text for one in done.follow_ups] == ["Found 2 pages on x.", "Filed: it is blue."]
    assert [one for one in bot.events if not one.startswith("reply")] == [
        "Found 2 pages on x.",
        "Filed: it is blue.",
    ]
    assert bot.posts == ["it is blue"]
    assert len(bot.seen) == 1
    assert "Result of POST, ok:\nfiled\n(Filed: it is blue.)" in bot.told()[0]


def test_a_chat_goes_on_while_calls_wait_and_hears_later_what_became_of_them(bot: Bot) -> None:
    says = ["POST: blue", "Hello.", "POST: red", "So.", "Well."]
    people = [("ann", text) for text in ("a", "b", "c")]
    decided = [decides("deny", 1), again(2), decides(), again(0)]
    *_, denied, made, last = bot.hears(*people, *decided, ("ann", "d"), says=[*says[:3], says[4]])
    assert [one.text for one in denied.follow_ups] == [f"post was denied: {THE_PERSON_SAID_NO}."]
    assert [one.text for one in made.follow_ups] == ["Filed: blue."]
    assert (last.text, bot.posts) == ("Well.", ["blue"])
    assert bot.asked()[2].startswith("Result of POST, pending: post waits for a person's approval")
    assert bot.told()[-1] == 'd\n\n(post :text "blue"), which waited, -> ok:\nfiled\n(Filed: blue.)'


def test_what_was_said_stays_as_it_was(bot: Bot) -> None:
    said = [("ann", "a"), ("ben", "b"), decides(), again(0), ("ann", "c"), ("ben", "d")]
    bot.hears(*said, says=["POST: blue\nLOOK: x", "LOOK: y", "NOTE: z", "Well."])
    for earlier, later in zip(bot.model.seen, bot.model.seen[1:], strict=False):
        assert later.startswith(earlier[:-1])


def test_a_message_that_comes_twice_is_answered_once(bot: Bot) -> None:
    says = ["I look.\nLOOK: a", "Hello."]
    first, *_, same = bot.hears(("ann", "a"), ("ann", "b"), again(0), says=says)
    assert replace(same, usage=first.usage).to_json() == first.to_json() | {"calls": same.to_json()["calls"]}
    assert len(bot.seen) == 1
    assert bot.events.count("Found 2 pages on a.") == 1


def test_a_message_that_was_broken_off_goes_on(tmp_path: Path) -> None:
    bot = Bot(tmp_path)

    bot.alive = False
    with pytest.raises(asyncio.CancelledError):
        bot.hears(("ann", "a"), says=["LOOK: a\nGHOST: x"])
    bot.alive = True
    (reply,) = bot.hears(again(0), says=[])
    statuses = [(call.form.tool, call.result.status) for call in reply.calls]
    assert (statuses, len(bot.seen)) == ([("look", "ok"), ("ghost", "error")], 1)
    assert [one.text for one in reply.follow_ups] == ["Found 2 pages on a.", "There is nobody."]


def test_the_name_of_a_message_is_one_word(tmp_path: Path) -> None:
    async def say() -> None:
        async with Bot(tmp_path).agent() as it:
            await it.say("Hi.", turn="a b")

    assert (
        complaint(UsageError, lambda: asyncio.run(say())) == "The name of a message is one word, not 'a b'."
    )


# The record


def test_a_chat_is_replayed_as_it_was(bot: Bot) -> None:
    said = [("ann", "a"), ("ann", "b"), decides(), again(0), ("ann", "c"), ("ben", "d")]
    bot.hears(*said, says=["POST: blue\nLOOK: x", "LOOK: y", "So.", "Well."])

    async def replayed() -> str:
        async with bot.agent() as it:
            found = await it.replay("chat-7")
            return f"{found}{found.diff}{found.notes}"

    assert asyncio.run(replayed()) == "chat-7: 4 runs, 4 requests, 3 calls: as recorded.[]"


def test_a_call_that_was_made_when_the_chat_had_gone_on_is_recalled_and_replayed_as_it_was(
    tmp_path: Path,
) -> None:
    bot = Bot(tmp_path, after_tags="continue")
    said = [("ann", "a"), ("ann", "b"), decides(), again(0), again(0)]
    *_, made, same = bot.hears(*said, says=["I ask.\nPOST: blue", "Well."])
    assert (made.status, made.text, bot.posts) == ("done", "I ask.", ["blue"])
    assert (same.status, same.text, same.follow_ups) == (made.status, made.text, made.follow_ups)

    async def replayed() -> str:
        async with bot.agent() as it:
            return str(await it.replay("chat-7"))

    assert asyncio.run(replayed()) == "chat-7: 2 runs, 2 requests, 1 call: as recorded."


def test_a_message_that_was_broken_off_while_the_model_worked_is_replayed_as_it_was(tmp_path: Path) -> None:
    bot = Bot(tmp_path)
    bot.hears(("ann", "a"), says=["NOTE: x"])

    async def broken_off(messages: Messages) -> str:
        bot.work.cancel()
        await asyncio.sleep(10)
        return ""

    bot.model = ScriptedBackend(broken_off)
    with pytest.raises(asyncio.CancelledError):
        bot.is_told(again(1))
    bot.hears(again(1), again(2), says=["Yes.", "Well."])
    assert bot.asked()[-3:] == ["the same", "Yes.", "the same"]

    async def replayed() -> str:
        async with bot.agent() as it:
            found = await it.replay("chat-7")
            return f"{found}{found.diff}"

    assert asyncio.run(replayed()) == "chat-7: 3 runs, 3 requests, 1 call: as recorded."


def test_the_calls_of_a_sub_agent_are_the_speakers_and_replayed(tmp_path: Path) -> None:
    bot = Bot(tmp_path, consent="yes")
    bot.hears(("ann", "a"), says=["HELP: look for cells", "LOOK: cells", "Two."])
    rows = [(row["tool"], row["user"], row["route"]) for row in bot.audit.rows()]
    assert rows == [("look", "ann", "agent"), ("helper", "ann", "chat")]

    async def replayed() -> str:
        async with bot.agent() as it:
            return str(await it.replay("chat-7"))

    assert asyncio.run(replayed()) == "chat-7: 2 runs, 3 requests, 2 calls: as recorded."


def test_whoever_resumes_its_session_makes_the_calls_of_the_chat(tmp_path: Path) -> None:
    bot = Bot(tmp_path)
    bot.hears(("ann", "a"), decides(), says=["POST: blue"])

    async def resumed() -> Reply:
        bot.options["session"] = "chat-7"
        async with bot.agent() as it:
            (reply,) = await it.resume()
            assert isinstance(reply, Reply)
            return reply

    assert [one.text for one in asyncio.run(resumed()).follow_ups] == ["Filed: blue."]
    last = bot.audit.rows()[-1]
    assert (last["tool"], last["user"], last["route"]) == ("post", "ann", "chat")


def test_whoever_goes_on_with_its_session_speaks_in_the_chat(tmp_path: Path) -> None:
    bot = Bot(tmp_path)
    bot.hears(("ann", "a"), says=["NOTE: x"])
    bot.options["session"], bot.model = "chat-7", scripted("LOOK: y", "Well.")

    async def said() -> Reply:
        async with bot.agent() as it:
            reply = await it.follow("b")
            await it.follow("c")
            return reply

    assert [one.text for one in asyncio.run(said()).follow_ups] == ["Found 2 pages on y."]
    last = bot.audit.rows()[-1]
    assert (last["tool"], last["user"], last["route"]) == ("look", "bot", "chat")
    assert [bot.asked()[0], bot.asked()[-1]] == ["a", "c"]


@pytest.mark.parametrize("resumes", [True, False])
def test_the_memory_of_the_chat_is_closed_after_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    bot = Bot(tmp_path)
    bot.hears(("ann", "a"), decides(), says=["POST: blue"])
    bot.options["session"], bot.model = "chat-7", scripted("Well.")
    closed: list[str] = []
    for_chat = SessionHost.for_chat

    def watched(self: SessionHost, chat: str, session: str = "") -> SessionHost:
        host = for_chat(self, chat, session)
        aclose = host.own.memory.aclose

        async def close() -> None:
            closed.append(chat)
            await aclose()

        monkeypatch.setattr(host.own.memory, "aclose", close)
        return host

    monkeypatch.setattr(SessionHost, "for_chat", watched)

    async def said() -> None:
        async with bot.agent() as it:
            await (it.resume() if resumes else it.follow("b"))
            assert closed == ["7"]

    asyncio.run(said())


def test_what_another_process_has_said_in_the_chat_is_part_of_it(tmp_path: Path) -> None:
    bot = Bot(tmp_path)
    bot.model = scripted("One.", "Two.", "Three.")

    async def said() -> None:
        async with bot.agent() as host, bot.agent() as other:
            chat, there = host.for_chat("7"), other.for_chat("7")
            for one, text in ((chat, "a"), (there, "b"), (chat, "c")):
                await one.say(text)
            await chat.aclose()
            await there.aclose()

    asyncio.run(said())
    assert bot.asked() == ["a", "One.", "b", "Two.", "c"]
