"""Concurrent chats: each has its own queue and answers its messages in order of arrival.

The gateway's options name the users who may decide requests, and the field ``user`` of a line names the
decider; the text of a message is never interpreted for this.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any

from quoth.agent.chat.inbox import Accepted, Inbox
from quoth.agent.chat.lines import ChatMessage, Choice, Outgoing
from quoth.agent.events import AgentEvent
from quoth.agent.reply import CallRecord, Reply
from quoth.agent.run.runs import Runs
from quoth.agent.terminal.output import complain
from quoth.agent.terminal.question import CHANGED, origin_lines
from quoth.agent.terminal.requests import decide, pending_text
from quoth.tools.call.call import ToolResult
from quoth.tools.consent.decisions import ChangeDiffersError
from quoth.tools.consent.requests import Decision, Request
from quoth.tools.errors import BusyError, QuothError, UsageError
from quoth.tools.text import count, short

WAITING = 20  # maximum messages of a chat that wait behind the current one
IDLE_CHATS = 500  # idle conversations kept in memory; others are restored from their transcripts
WATCH_SECONDS = 1.0
BUSY_LOOKS = 60  # checks, WATCH_SECONDS apart, whether another process still drives a chat
FORM_CHARS = 500


class Chats:
    """The chats of the agent with these ``runs``. ``answers`` sends a line to the clients of its chat, and
    returns whether there is one. ``approvers`` are the users who may decide requests; ``waiting`` is the
    maximum number of waiting messages of a chat."""

    def __init__(
        self,
        runs: Runs,
        inbox: Inbox,
        answers: Callable[[Outgoing], Awaitable[bool]],
        *,
        approvers: Collection[str] = (),
        waiting: int = WAITING,
    ) -> None:
        self._runs = runs
        self._inbox = inbox
        self._answers = answers
        self._approvers = approvers
        self._most = waiting
        self._queues: dict[
            str, deque[Accepted]
        ] = {}  # of the working chats; the first message is the current one
        self._working: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[int, Accepted] = {}  # messages with calls that wait for a person
        self._talkers: dict[str, Runs] = {}  # least recently used first
        self._stopping = False

    def start(self) -> None:
        """Continue with messages that were accepted earlier and not answered."""
        for one in self._inbox.unfinished():
            if one.state == "asked":
                self._asked[one.seq] = one
            else:
                self._queue(one)
        self._take_up()

    def accept(self, message: ChatMessage) -> Outgoing | None:
        """Accept a message, or return a line with the reason for refusing it. A repeated message is ignored
        without an error."""
        if self._inbox.has(message):
            return None
        if len(self._queues.get(message.chat, ())) > self._most:  # the first is the current one
            waiting = count(self._most, "message")
            text = f"Chat {message.chat} already has {waiting} waiting. Send this one again later."
            return Outgoing(message.id, message.chat, "error", text)
        self._queue(self._inbox.accept(message))
        return None

    def decide(self, choice: Choice) -> Outgoing | None:
        """Record a decision and continue the messages that waited for it. Returns a line with the decision or
        the reason for refusing it; None for a recorded decision without an id."""
        try:
            text = self._decided(choice)
        except QuothError as error:
            return Outgoing(choice.id, choice.chat, "error", str(error))
        self.go_on()
        return None if choice.id is None else Outgoing(choice.id, choice.chat, "reply", text)

    def _decided(self, choice: Choice) -> str:
        if choice.answer is None:
            self._must_approve(choice.user)
        request = self._runs.host.broker.find(choice.request)
        if request.session != self._talker(choice.chat).host.session:
            raise UsageError(f"Request {request.id} does not belong to chat {choice.chat}.")
        if choice.user != request.user:
            self._must_approve(choice.user)
        kind: Any = "once" if choice.approved else "deny" if choice.answer is None else "answer"
        said = Decision(kind, choice.user, why=choice.why, answer=choice.answer or "")
        try:
            return str(decide(self._runs.host.broker, request.id, said))
        except ChangeDiffersError:
            shown = pending_text(self._runs.host.broker, request.id)
            raise UsageError(f"{CHANGED} nothing was decided.\n{shown}") from None

    def _must_approve(self, user: str) -> None:
        """Raise UsageError for a user who is not an approver, except for the answer of the asked user,
        because an answer grants no permission."""
        if user not in self._approvers:
            known = f"the approvers are {', '.join(sorted(self._approvers))}"
            told = known if self._approvers else "name approvers with --approvers"
            raise UsageError(f"{user} may not decide requests here; {told}.")

    async def hand_over(self, send: Callable[[bytes], Awaitable[bool]], chat: str | None = None) -> None:
        """Send the undelivered lines of a chat, or of all chats. Lines without a client are kept."""
        for seq, lines in self._inbox.kept(chat):
            for line in filter(None, lines.split("\n")):
                if not await send(f"{line}\n".encode()):
                    return
            self._inbox.handed_over(seq, lines)

    def go_on(self) -> None:
        """Continue the messages whose requests were decided, here or elsewhere. If the store is locked or
        full, ``watch`` tries again."""
        with contextlib.suppress(QuothError):
            self._take_up()

    def _take_up(self) -> None:
        """Queue the messages whose requests were decided. Raises QuothError."""
        if not self._asked or self._stopping:
            return
        still = {f"request {request.id}" for request in self._runs.host.broker.requests()}
        for one in list(self._asked.values()):
            one.decided = {told for told in one.told - still if told.startswith("request ")}
            if one.decided:
                del self._asked[one.seq]
                self._queue(one)

    async def watch(self) -> None:
        """Check regularly for decisions made outside the gateway, such as with quoth approve."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            self.go_on()

    async def finish(self, chats: Collection[str] | None = None) -> None:
        """Return after all accepted messages are answered, of these chats or of all."""
        while work := [task for chat, task in self._working.items() if chats is None or chat in chats]:
            await asyncio.wait(work)

    def begin_no_more(self) -> None:
        """Finish only the current messages. The others stay accepted, for the next start."""
        self._stopping = True

    async def stop(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the current messages; return whether they were answered."""
        self.begin_no_more()
        work = set(self._working.values())
        if not work:
            return True
        _, late = await asyncio.wait(work, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return not late

    # One chat

    def _queue(self, one: Accepted) -> None:
        chat = one.message.chat
        self._queues.setdefault(chat, deque()).append(one)
        if chat not in self._working and not self._stopping:
            self._working[chat] = asyncio.ensure_future(self._work(chat))

    async def _work(self, chat: str) -> None:
        """Answer the messages of a chat until its queue is empty."""
        queue = self._queues[chat]
        try:
            while queue and not self._stopping:
                await self._answer(queue[0])
                queue.popleft()
        finally:
            del self._working[chat]
            if not queue:
                del self._queues[chat]
        await self._let_go()

    async def _answer(self, one: Accepted) -> None:
        """Answer or continue a message, and record the sent lines."""
        chat, failed = one.message.chat, False
        try:
            talker = self._talker(chat)
            reply = await self._reply(talker, one)
            if reply is None or reply.status == "interrupted":
                return  # it stays accepted, for the next start
            waiting = [call.result for call in reply.calls if call.result.status == "pending"]
            open_here = talker.host.broker.requests(session=talker.host.session) if waiting else []
            lines = _lines(one.message, reply, [one for one in open_here if _is_of(one, waiting)])
        except Exception as error:  # one failed message must not end the others
            why = str(error)
            if not isinstance(error, QuothError):  # its words may contain details that the chat must not see
                complain(f"chat {chat}: {type(error).__name__}: {error}")
                why = f"The message could not be answered ({type(error).__name__})."
            line = Outgoing(one.message.id, chat, "error", why)
            lines, waiting, failed = [(_name(line), line)], [], True
        # A decided message that could not be continued is tried again at the next start.
        waits = bool(waiting) or (failed and one.state == "asked")
        one.told -= set() if failed else one.decided
        new = [(name, line) for name, line in lines if name not in one.told]
        for place, (name, line) in enumerate(new, 1):
            took = await self._answers(line)
            one.told.add(name)
            if place == len(new):
                one.state = "asked" if waits else "answered"
            self._save(one, b"" if took else line.to_line())
        if not new and not waits:
            one.state = "answered"
            self._save(one)
        if waiting:
            self._asked[one.seq] = one
            self.go_on()  # a person may decide as soon as the line is out

    async def _reply(self, talker: Runs, one: Accepted) -> Reply | None:
        """The Reply to a message, after other processes that drive its chat, such as quoth resume; None if
        the gateway ends first."""
        for left in reversed(range(BUSY_LOOKS)):
            try:
                return await talker.say(one.message.text, speaker=one.message.user, turn=one.turn)
            except BusyError:
                if not left:
                    raise
            await asyncio.sleep(WATCH_SECONDS)
            if self._stopping:
                break
        return None

    def _save(self, one: Accepted, kept: bytes = b"") -> None:
        try:
            self._inbox.save(one, kept)
        except QuothError as error:  # it is sent again at the next start
            complain(str(error))

    def _talker(self, chat: str) -> Runs:
        """The conversation of a chat."""
        if (talker := self._talkers.pop(chat, None)) is None:
            talker = self._runs.for_chat(chat)
            talker.host.events.on_event = partial(self._note, chat)
        self._talkers[chat] = talker
        return talker

    def _note(self, chat: str, event: AgentEvent) -> None:
        """Print notes that are not part of the reply, such as about an unreadable file, on the gateway's
        stderr."""
        if event.kind == "note":
            complain(f"chat {chat}: {event.data}")

    async def _let_go(self) -> None:
        """Drop the least recently used conversations."""
        for chat in list(self._talkers)[:-IDLE_CHATS]:
            if chat not in self._working:
                await self._talkers.pop(chat).host.aclose()


def _is_of(request: Request, waiting: Sequence[ToolResult]) -> bool:
    """Whether one of the waiting calls, or a call inside it, asks for this."""
    return any(request.id == one.request or one.id in (request.call, request.parent) for one in waiting)


def _lines(message: ChatMessage, reply: Reply, asked: Sequence[Request]) -> list[tuple[str, Outgoing]]:
    """The lines of a reply in order: the reply, its follow-ups, its waiting requests. Each comes with the
    name that records its sending."""

    def line(kind: Any, text: str, **more: Any) -> Outgoing:
        return Outgoing(message.id, message.chat, kind, text, **more)

    made = tuple(_call(record) for record in reply.calls)
    first = line("error" if reply.status == "failed" else "reply", reply.said, calls=made)
    lines = [(_name(first), first)]
    lines += [(f"follow-up {one.call}", line("followup", one.text)) for one in reply.follow_ups]
    lines += [(f"message {place}", line("followup", text)) for place, text in enumerate(reply.messages)]
    for request in asked:
        said = f"{request.form} waits for approval: {request.reason}."
        marked = [one for one in request.origins if not one.known]
        said = "\n".join([said, *origin_lines(marked, request.route)])
        told: dict[str, Any] = {"id": request.id, "tool": request.tool, "form": request.form}
        told["user"] = request.user
        if request.origins:
            told["origins"] = [one.to_data() for one in request.origins]
        if request.question is not None:
            said, told = request.question.text, {**told, "kind": "question", **request.question.to_data()}
        lines.append(
            (f"request {request.id}", line("asked", said, request=told | {"reason": request.reason}))
        )
    return lines


def _name(line: Outgoing) -> str:
    """The name of a reply or error. After an approval a message is answered again, and only new lines are
    sent."""
    return f"{line.kind} {hashlib.sha256(line.text.encode()).hexdigest()[:16]}"


def _call(record: CallRecord) -> dict[str, Any]:
    shown = short(str(record.shown or record.form), FORM_CHARS)
    return {"tool": record.form.tool, "status": record.result.status, "form": shown}
