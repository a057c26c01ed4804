"""The commands of the REPL: a table of names, help texts and functions.

Each function takes the REPL and the text after the command's name. None evaluates a form.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from quoth.agent.run.answers import model_answer, pending_answer, policy_answer, undo_answer
from quoth.agent.run.runs import undo_of
from quoth.agent.session.session import to_itself
from quoth.agent.session.undo import Undo, UndoPlan, changed_lines
from quoth.agent.terminal.output import tell_next
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.text import number_of, one_line

if TYPE_CHECKING:
    from quoth.agent.repl.interpreter import Interpreter


LATEST = 20  # sessions listed
WIDTH = 16  # characters of the column of names


@dataclass(frozen=True)
class Command:
    """``usage`` describes the argument; ``chat`` says whether chats have the command too."""

    name: str
    usage: str
    help: str
    do: Callable[[Interpreter, str], Awaitable[None] | None]
    chat: bool = True

    def __str__(self) -> str:
        return f"{f',{self.name} {self.usage}'.rstrip():<{WIDTH}}{self.help}"


def help_text(commands: dict[str, Command], *entries: tuple[str, str]) -> str:
    """The help of commands, followed by the other kinds of entries: a small window shows the end of a
    page."""
    rows = [f"{what:<{WIDTH}}{does}" for what, does in entries]
    return "\n".join([*map(str, commands.values()), *rows])


# Talking


async def say(repl: Interpreter, rest: str) -> None:
    if not rest:
        raise UsageError(",say needs a text.")
    await repl.say(rest)


def new(repl: Interpreter, rest: str) -> None:
    repl.agent.forget()
    repl.tell("A new conversation.")


def plan(repl: Interpreter, rest: str) -> None:
    if rest not in ("", "on", "off"):
        raise UsageError(f",plan switches plan mode: ,plan or ,plan off. To fly a plan: ,fly {rest}")
    on = rest == "on" or (not rest and not repl.agent.host.plan)
    repl.agent.host.use_plan_mode(on)
    if on:
        repl.tell(
            "Plan mode is on: the model's read-only calls run, and its other calls become a flight plan."
        )
        repl.complain("To turn it off: ,plan")
    else:
        repl.tell("Plan mode is off: calls run.")


async def resume(repl: Interpreter, rest: str) -> None:
    if rest not in ("", repl.agent.session):
        raise UsageError(f",resume continues this session. For another: quoth resume {rest}")
    for done in await repl.agent.resume():
        repl.show(done)


# Showing


def help_(repl: Interpreter, rest: str) -> None:
    if not rest:
        repl.tell(repl.help)
        return
    from quoth.agent.manual.reading import answer

    repl.tell_drawn(answer(rest.split(), min(shutil.get_terminal_size().columns, 100), command=",help"))


def tools(repl: Interpreter, rest: str) -> None:
    repl.tell("\n".join(tool.signature() for tool in repl.agent.host.listed().visible))


def tool(repl: Interpreter, rest: str) -> None:
    from quoth.agent.terminal.pages import tool_page

    if not rest:
        raise UsageError(",tool needs the name of a tool. To list them: ,tools")
    repl.tell(tool_page(repl.agent.table.get(rest)))


def belt(repl: Interpreter, rest: str) -> None:
    from quoth.neuro.prompt.belt import belt as belt_of
    from quoth.neuro.prompt.dialects import CALL_FORM

    agent = repl.agent
    repl.tell(belt_of(agent.host.parts.offers.table(agent.table, CALL_FORM, agent.user)).rstrip("\n"))


async def model(repl: Interpreter, rest: str) -> None:
    repl.tell(await model_answer(repl.agent.runs, rest))


async def models(repl: Interpreter, rest: str) -> None:
    from quoth.agent.terminal.model_list import list_models

    found = await list_models(repl.agent.config)
    repl.tell(str(found))
    for trouble in found.troubles:
        repl.complain(trouble)


def policy(repl: Interpreter, rest: str) -> None:
    repl.tell(policy_answer(repl.agent.host, rest, "repl"))


def session(repl: Interpreter, rest: str) -> None:
    if rest:
        raise UsageError(f"This is session {repl.agent.session}. To start another: quoth --session {rest}")
    agent = repl.agent
    repl.tell(f"{agent.session}, {agent.workspace.root}, {number_of(agent.runs.said, 'message')} so far")
    if agent.runs.waits:
        repl.tell_waiting()


def sessions(repl: Interpreter, rest: str) -> None:
    from quoth.agent.session.index import listed, summaries
    from quoth.agent.session.render import summary_line

    rows, count, taken_by = listed(repl.agent.store, repl.agent.user, LATEST, every=False, others=True)
    found = [one for one in summaries(repl.agent.store, rows) if one.runs or one.id in taken_by]
    width = max((len(one.id) for one in found), default=0)
    lines = [summary_line(one, width, taken_by.get(one.id, ())) for one in found]
    repl.tell("\n".join(lines) or "There is no session with a run yet.")
    if count > LATEST:
        repl.tell(f"These are the latest sessions. To show all {count}: quoth sessions --all")


def log(repl: Interpreter, rest: str) -> None:
    from quoth.agent.session.index import find_event
    from quoth.agent.session.render import as_text, one_event

    wanted, place = find_event(repl.agent.store, rest or repl.agent.session)
    events = list(repl.agent.transcript.events(wanted))
    if place is None:
        repl.tell("\n".join(as_text(events)))
        return
    found = [event for event in events if event.seq == place]
    if not found:
        raise UsageError(f"There is no event {wanted}.{place}; session {wanted} has {len(events)}.")
    repl.tell(one_event(found[0]))


def tokens(repl: Interpreter, rest: str) -> None:
    from quoth.agent.session.past import completion_of
    from quoth.agent.terminal.forms import budget_text

    agent = repl.agent
    said = [event.data for event in agent.transcript.events(agent.session, kind="reply")]
    used = [completion_of(data).usage for data in said if "text" in data]
    came, went = sum(one.input_tokens for one in used), sum(one.output_tokens for one in used)
    repl.tell(
        f"This session used {came:,} input and {went:,} output tokens in {number_of(len(used), 'request')}."
    )
    if today := agent.host.parts.funds.daily.left(agent.user):
        repl.tell(f"{budget_text({'tokens': came + went}, {'today': today})}.")


def trace(repl: Interpreter, rest: str) -> None:
    repl.tell(repl.last_trace())


# Deciding


def pending(repl: Interpreter, rest: str) -> None:
    repl.tell(pending_answer(repl.agent.host, rest))


def approve(repl: Interpreter, rest: str) -> None:
    request, when = _request_and_more(",approve needs the ID of a request", rest)
    _decide(repl, request, _approval(when.strip(), repl.agent.user))


def deny(repl: Interpreter, rest: str) -> None:
    request, why = _request_and_more(",deny needs the ID of a request", rest)
    _decide(repl, request, Decision("deny", repl.agent.user, why=why.strip()))


def answer(repl: Interpreter, rest: str) -> None:
    request, said = _request_and_more(",answer needs the ID of a question, and the answer", rest)
    _decide(repl, request, Decision("answer", repl.agent.user, answer=said))


def _request_and_more(needs: str, rest: str) -> tuple[str, str]:
    """The id of a request and the text after it. Raises UsageError if there is no id."""
    request, _, more = rest.partition(" ")
    if not request:
        raise UsageError(f"{needs}. To list them: ,pending")
    return request, more


def _decide(repl: Interpreter, request: str, decision: Decision) -> None:
    from quoth.agent.terminal.question import CHANGED
    from quoth.agent.terminal.requests import decide, pending_text
    from quoth.tools.consent.decisions import ChangeDiffersError

    try:
        decided = decide(repl.agent.broker, request, decision)
    except ChangeDiffersError:
        repl.complain(f"{CHANGED} nothing was decided.")
        repl.tell(pending_text(repl.agent.broker, request))
        return
    repl.tell(str(decided))
    for line in decided.advice():
        repl.complain(line)
    waits = decided.request.session
    how = ",resume" if waits == repl.agent.session else f"quoth resume {shlex.quote(waits)}"
    tell_next("To continue", how, name="")


def _approval(when: str, user: str) -> Decision:
    """Once, or ``for 30m``. Raises UsageError."""
    from quoth.agent.terminal.ask import seconds_of

    word, _, span = when.partition(" ")
    if not when:
        return Decision("once", user)
    if word != "for":
        raise UsageError(f"Type ,approve ID, or ,approve ID for 30m; not {when}.")
    return Decision("duration", user, seconds=seconds_of(span))


# Files


async def load(repl: Interpreter, rest: str) -> None:
    if not rest:
        raise UsageError(",load needs a file: ,load shop.hy")
    await repl.load(repl.person.files.find(_unquoted(rest)))


async def reload(repl: Interpreter, rest: str) -> None:
    changed = repl.person.files.changed()
    for path in changed:
        await repl.load(path)
    if not changed:
        repl.tell("No file has changed since it was loaded.")


async def fly(repl: Interpreter, rest: str) -> None:
    if not rest:
        raise UsageError(",fly needs a flight plan: ,fly plans/self-test.org")
    await repl.fly(_unquoted(rest))


def _unquoted(path: str) -> str:
    """A path, typed with or without quotes."""
    return path[1:-1] if len(path) > 1 and path[0] == path[-1] == '"' else path


def leave(repl: Interpreter, rest: str) -> None:
    raise EOFError


# Undo and redo


WAYS = ("", "files", "message")


def undo(repl: Interpreter, rest: str) -> None:
    """Undo the last message and the changes of files since it, or one of the two."""
    if rest not in WAYS:
        raise UsageError(f"Type ,undo, ,undo files or ,undo message; not ,undo {rest}.")
    with to_itself(repl.agent.store.path, repl.agent.session):
        _undo(repl, rest)


def _undo(repl: Interpreter, rest: str) -> None:
    told = None if rest == "files" else repl.agent.runs.last_message()
    way = undo_of(repl.agent.host)
    since = told.seq if told is not None else 0 if rest == "message" else way.last_group()
    if told is None and not since:
        if rest == "files":
            raise UsageError(way.nothing(way.plan()))
        repl.agent.runs.take_back()  # raises that there is none
    if told is not None:
        repl.tell(f"Taken back: {one_line(repl.agent.runs.take_back(), 60)}")
    if rest == "message":
        repl.complain("The next message continues from before it. The effects of its calls remain.")
        return
    plan = way.plan(since)
    _do(repl, way, plan)
    if told is not None:
        stays = " The other effects of its calls remain." if plan.uncovered else ""
        repl.complain(f"The next message continues from before it.{stays}")
    elif plan.empty:
        raise UsageError(way.nothing(plan, since))


def redo(repl: Interpreter, rest: str) -> None:
    """Redo the changes of files that the last undo reversed. An undone message stays undone."""
    way = undo_of(repl.agent.host)
    with to_itself(repl.agent.store.path, repl.agent.session):
        _do(repl, way, way.plan_redo())


def _do(repl: Interpreter, way: Undo, plan: UndoPlan) -> None:
    lines, notes = undo_answer(way, plan)
    repl.tell_colored(lines)
    for said in notes:
        repl.complain(said)


def diff(repl: Interpreter, rest: str) -> None:
    """Show the changes of files by a session."""
    from quoth.agent.session.index import find_session

    session = find_session(repl.agent.store, rest) if rest else repl.agent.session
    found, left = undo_of(repl.agent.host, session).changed()
    repl.tell_colored(lambda color: changed_lines(found, left, color=color))
    if not found and not left:
        repl.complain(f"Session {session} did not change any file.")


ALL: tuple[Any, ...] = (
    Command("say", "TEXT", "send text to the agent that would otherwise be read as Lisp", say, chat=False),
    Command("help", "TOPIC", "show a page of the manual; without TOPIC, this text", help_),
    Command("tools", "", "list the tools", tools),
    Command("tool", "NAME", "show a tool: schema, source form, expansion", tool),
    Command("belt", "", "show the tool list as the model sees it", belt),
    Command("model", "SPEC", "use another model; without SPEC, show the current one", model),
    Command("models", "", "list the models, and what is missing", models),
    Command("load", "FILE", "load a file: tools for the model, names for the prompt", load, chat=False),
    Command("reload", "", "load changed files again", reload, chat=False),
    Command("policy", "FORM", "show how the rules judge a call; without FORM, show the rules", policy),
    Command("pending", "", "list requests that wait for you; with an ID, show one in full", pending),
    Command("approve", "ID", "approve a request once; for 30 minutes: ,approve ID for 30m", approve),
    Command("deny", "ID WHY", "deny a request; the caller receives the reason", deny),
    Command("answer", "ID TEXT", "answer a question, in words or by the number of a choice", answer),
    Command("resume", "", "resume waiting calls and runs", resume),
    Command("plan", "", "turn plan mode on or off: only reads run, the rest is planned", plan),
    Command("fly", "PLAN", "fly a flight plan", fly, chat=False),
    Command("session", "", "show the current session", session),
    Command("sessions", "", "list the sessions of this workspace", sessions),
    Command("log", "ID", "show the events of a session (default: this one)", log),
    Command("tokens", "", "show the tokens that this session used", tokens),
    Command("undo", "", "undo a message and its changes of files; only the files: ,undo files", undo),
    Command("redo", "", "redo the changes of files that the last ,undo reversed", redo),
    Command("diff", "ID", "show the changes of files by a session (default: this one)", diff),
    Command("new", "", "forget the conversation", new),
    Command("trace", "", "show the full traceback of the last error", trace, chat=False),
    Command("quit", "", "leave quoth; also: exit, Ctrl-D", leave),
)  # fmt: skip
COMMANDS: dict[str, Command] = {command.name: command for command in ALL}
SHORT = {"q": "quit", "exit": "quit"}
