"""The messages that the calls of a run send: recorded with the result of their call, so that a run that is
resumed knows what has been sent, and sends none twice. In a chat, what became of each call is one, too.

Knows runs and routers; it must not know how a message is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence

from quoth.agent.reply import CallRecord, FollowUp, Reply
from quoth.agent.run.coach import is_informative
from quoth.agent.run.run import CALLING, Run, Turn
from quoth.agent.session.past import Sent
from quoth.agent.session.session import RunLog
from quoth.agent.terminal.forms import show_value
from quoth.tools.call.context import running_context
from quoth.tools.call.services import USER, Router
from quoth.tools.errors import ToolError


class RunRouter:
    """The router of one run, in front of the host's. The user of a sub-agent is its caller, who gets the
    message with the sub-agent's answer."""

    def __init__(self, run: Run, router: Router) -> None:
        self._run = run
        self._router = router

    async def send_message(self, message: str, *, to: str = USER) -> None:
        run = self._run
        sent = Sent(CALLING.get(), message, to)
        if any(_said_twice(sent, one) for one in run.state.sent):
            return
        if not (to == USER and run.parent is not None):
            await self._router.send_message(message, to=to)
        run.state.sent.append(sent)

        def record() -> str:
            said = {"text": sent.text, "to": sent.to}
            run.log.add("sent", said, parent=run.log.reply, key=sent.key)
            return ""

        if (context := running_context()) is not None:
            context.written.append(record)

    async def list_channels(self) -> Sequence[str]:
        return await self._router.list_channels()


def _said_twice(sent: Sent, before: Sent) -> bool:
    """Whether two calls of one reply of the model say the same."""
    step, key = sent.key.rpartition(".")[0], before.key
    return (sent.text, sent.to) == (before.text, before.to) and key != sent.key and key.startswith(f"{step}.")


async def send_follow_ups(run: Run, reply: Reply, log: RunLog) -> None:
    """Tell the people in a chat what has become of the calls of a reply, each once. What could not be brought
    to them is tried again when the run is."""
    router = run.context.router
    host = router._router if isinstance(router, RunRouter) else router
    sent: list[FollowUp] = []
    try:
        for one in reply.follow_ups:
            if one.call not in run.past.told:
                await host.send_message(one.text)
                sent.append(one)
    except Exception as error:  # a router of the host's own may fail in any way
        run.tell("note", str(error) if isinstance(error, ToolError) else type(error).__name__)
    with log.session.transcript.together():
        for one in sent:
            run.past.told.add(one.call)
            said = {"text": one.text, "to": USER, "follow-up": True}
            log.add("sent", said, parent=log.reply, key=one.call)


def answer_of(run: Run, text: str) -> str:
    """The answer of a sub-agent to its caller: the messages it sent, and ``text``, in which the last of them
    may stand already."""
    earlier = [one.text for one in run.state.sent if one.to == USER and one not in run.state.last_words]
    return "\n\n".join([*earlier, text])


def last_words(turn: Turn, run: Run) -> tuple[str, str | None] | None:
    """How a turn ends the run, in which a call of a tool that ends it was ok: its reply, and the part of it
    that the user has not had as a message (None: all). None for any other turn."""
    said: list[str] = []
    unsent: list[str] = []
    told: set[str] = set()
    for place, record in enumerate(turn.records):
        if not _ends(record, run) or record.form.digest in told:
            continue
        told.add(record.form.digest)
        sent = [one for one in run.state.sent if one.key == f"{run.name}/{run.state.step}.{place}"]
        run.state.last_words += sent
        said += [one.text for one in sent]
        unsent += [one.text for one in sent if one.to != USER]
        own = _own_words(record, turn)
        if not sent and own not in said:
            said.append(own)
            unsent.append(own)
    return ("\n\n".join(said), None if said == unsent else "\n\n".join(unsent)) if said else None


def _ends(record: CallRecord, run: Run) -> bool:
    """Whether a call ends the run."""
    tool, table = record.form.tool, run.door.table
    return record.result.ok and tool in table and table.get(tool).ends_turn


def _own_words(record: CallRecord, turn: Turn) -> str:
    """What a call that ends the run and sends no message leaves to say: the words around it, or its value."""
    result = record.result
    return turn.text or (show_value(result.value) if is_informative(record) else result.message) or "Done."
