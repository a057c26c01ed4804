"""A gateway that is killed at any point of its work: no message is lost, nothing is done twice, and at most
one line comes a second time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import crash
from examples import many
from words import TalkingFunction, tool

from quoth import ModelOptions, PolicyOptions, ToolOptions
from quoth.agent.chat.chats import Chats
from quoth.agent.chat.inbox import Inbox
from quoth.agent.chat.lines import ChatMessage, Choice, Outgoing
from quoth.agent.client import AsyncAgent
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.context import ToolContext

SENT = (("7", 1, "press one"), ("8", 1, "press two"), ("7", 2, "sign deed"), ("7", 3, "hello"))


def reply(messages: Messages) -> str:
    word, _, rest = str(list(messages)[-1]["content"]).partition("\n")[0].partition(" ")
    return f"So be it.\n{word.upper()}: {rest}" if word in ("press", "sign") else "Hello."


def life(folder: Path) -> None:
    """One process of the gateway, to whom all is sent, as if it had been heard never before."""

    def note(file: str, line: str) -> None:
        with (folder / file).open("a") as written:
            written.write(f"{line}\n")

    async def hear(line: Outgoing) -> bool:
        crash.POINTS.reached("before a line goes out")
        note("lines", line.to_line().decode().strip())
        crash.POINTS.reached("after a line went out")
        return True

    def does(name: str) -> Any:
        async def body(text: str, ctx: ToolContext) -> None:
            crash.POINTS.reached("before the effect")
            note("effects", text)
            crash.POINTS.reached("after the effect")
            ctx.say(f"Done: {text}")

        tag = {"press": "PRESS", "sign": "SIGN"}[name]
        return tool(name, body, params={"text": {"type": str}}, effects=["writes"], tag=tag)

    async def work() -> None:
        agent = AsyncAgent(
            workspace=folder,
            user="host",
            model=ModelOptions(TalkingFunction(reply), dialect="tags"),
            tools=ToolOptions([does("press"), does("sign")]),
            policy=PolicyOptions(folder / "rules.hy"),
        )
        async with agent:
            chats = Chats(agent.runs, Inbox(lambda: agent.store), hear, approvers=["ann"])
            chats.start()
            for chat, id, text in SENT:
                assert chats.accept(ChatMessage(id, "ben", chat, text)) is None
            await chats.finish()
            while open_now := agent.broker.requests():
                for request in open_now:  # what was begun is not done again
                    approved = "begun" not in request.reason
                    chat = request.session.removeprefix("chat-")
                    assert chats.decide(Choice(None, "ann", chat, request.id, approved)) is None
                await chats.finish()

    asyncio.run(work())


def lived(folder: Path, at: int) -> int:
    """A life in a process of its own, killed at the point with this number; how it ended."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 99
    try:
        signal.alarm(60)
        crash.hook()
        crash.POINTS.wanted = frozenset({at})
        crash.POINTS.act = lambda: os.kill(os.getpid(), signal.SIGKILL)
        crash.POINTS.labels = []
        life(folder)
        (folder / "points").write_text(json.dumps(crash.POINTS.labels))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def place(folder: Path) -> Path:
    folder.mkdir()
    (folder / "rules.hy").write_text("(allow (press))")
    return folder


def told(folder: Path) -> list[tuple[str, int, str, str]]:
    path = folder / "lines"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [
        (one["chat"], one["id"], one["kind"], one["text"] if one["kind"] != "asked" else "") for one in found
    ]


def test_it_is_killed_at_any_point(tmp_path: Path) -> None:
    whole = place(tmp_path / "whole")
    assert lived(whole, 0) == 0
    points = json.loads((whole / "points").read_text())
    step = max(1, 10 * len(points) // many(1))  # three of them, or thirty
    wrong, killed = [], 0
    for at in range(1, len(points) + 1, step):
        here = place(tmp_path / str(at))
        ended = lived(here, at)
        assert ended in (-signal.SIGKILL, 0)  # how many points there are depends on who commits together
        killed += ended != 0
        assert lived(here, 0) == 0
        wrong += [f"{points[at - 1]} ({at}): {what}" for what in differences(here, whole)]
    assert (wrong, killed > 1) == ([], True)


def differences(here: Path, whole: Path) -> list[str]:
    """How what was heard and done differs from the story without an end."""
    effects = Counter((here / "effects").read_text().split())
    wrong = [f"{text} was done {number} times" for text, number in effects.items() if number > 1]
    heard, wanted = Counter(told(here)), Counter(told(whole))
    asked_again = [line for line in heard if "was denied" in line[3]]
    for (
        chat,
        id,
        _,
        _,
    ) in asked_again:  # its call was broken off: a request came, and a refusal for its success
        wanted[(chat, id, "asked", "")] += 1
        wanted = Counter({line: n for line, n in wanted.items() if line[:3] != (chat, id, "followup")})
        heard = Counter({line: n for line, n in heard.items() if line[:3] != (chat, id, "followup")})
    if lost := wanted - heard:
        wrong.append(f"lost: {lost}")
    if (more := heard - wanted).total() > 1:
        wrong.append(f"told again: {more}")
    return wrong
