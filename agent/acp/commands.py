"""The commands of ``quoth acp``: a prompt that begins with ``/``, run without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.agent.run.runs import undo_of
from quoth.agent.session.session import to_itself
from quoth.agent.terminal.forms import show_value
from quoth.tools.errors import UsageError, did_you_mean

# What each does, and the hint for its argument; empty where it takes none.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "eval": ("Run a Lisp program in the sandbox; the rules judge each call in it.", "(program)"),
    "fly": ("Run a flight plan, an Org file.", "PLAN.org"),
    "policy": ("Show the rules, or how they judge a call.", "(form)"),
    "pending": ("Show what waits for your decision in this session.", ""),
    "model": ("Show the model of this session, or continue with another one.", "SPEC"),
    "resume": ("Continue a turn that was broken off, or be asked again about a call that waits.", ""),
    "undo": ("Take back the latest changes of files in this session.", ""),
}


def command_in(text: str) -> tuple[str, str] | None:
    """The command of a prompt and its argument; None for a prompt that is for the model. Raises UsageError
    for a misspelt command; a path such as ``/etc/hosts`` is not one."""
    if not text.startswith("/"):
        return None
    word = re.split(r"\s", text[1:], maxsplit=1)[0]
    rest = text[1 + len(word) :]
    if word in COMMANDS:
        return word, rest.strip()
    if word.isalpha() and (hint := did_you_mean(word, COMMANDS, mark="/")):
        raise UsageError(f"Unknown command /{word}.{hint}")
    return None


def with_attached(name: str, rest: str, blocks: Sequence[Any]) -> tuple[str, str]:
    """A command with its argument, which may be a file that is attached instead of typed. Raises UsageError
    for attachments that the command would ignore."""
    attached = [block for block in blocks if block.type != "text"]
    if not attached:
        return name, rest
    links = [block.uri for block in attached if block.type == "resource_link"]
    if name == "fly" and not rest and len(attached) == 1 and links and links[0].startswith("file:"):
        return name, unquote(urlsplit(links[0]).path)
    raise UsageError(f"/{name} takes no attachments. Send it without, or write the task in words.")


async def run_command(agent: AsyncAgent, name: str, rest: str) -> str:
    """Run a command and return the text for the person. Raises QuothError."""
    from quoth.agent.run import answers  # here: few sessions run a command

    match name:
        case "eval":
            if not rest:
                raise UsageError("/eval needs a program, such as /eval (+ 1 2).")
            result = await agent.eval(rest, route="acp")
            return show_value(result.value) if result.ok else f"{result.status}: {result.message}"
        case "fly":
            if not rest:
                raise UsageError("/fly needs a plan, such as /fly week.org.")
            return str(await agent.fly(Path(agent.workspace.root, rest)))
        case "policy":
            return answers.policy_answer(agent.host, rest, "acp")
        case "pending":
            return answers.pending_answer(agent.host, rest)
        case "resume":
            done = await agent.resume()
            return "\n".join(
                str(one.error if isinstance(one, Reply) else one.message) for one in done
            ).strip()
        case "model":
            return await answers.model_answer(agent.runs, rest)
        case _:
            return _undo(agent)


def _undo(agent: AsyncAgent) -> str:
    from quoth.agent.run.answers import undo_answer

    with to_itself(agent.store.path, agent.session):
        way = undo_of(agent.host)
        since = way.last_group()
        plan = way.plan(since)
        if not since or plan.empty:
            raise UsageError(way.nothing(plan, since))
        lines, notes = undo_answer(way, plan)
    return "\n".join([*lines(False), *notes])
