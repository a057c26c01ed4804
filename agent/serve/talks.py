"""The conversations of the clients of chat completions and responses: each is a session, found by what the
client sends.

A known conversation continues in its session. One that was edited or branched, and one whose session is
busy, continues in a fork; an unknown one begins a session, with its text as data. A message whose answer was
broken off is resumed where it is sent again, or before the next message.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import re
import secrets
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.reply import Reply
from quoth.agent.run.event_stream import EventStream
from quoth.agent.run.host import SessionHost
from quoth.agent.run.options import with_longest
from quoth.agent.run.runs import Runs
from quoth.agent.run.spec import OutputType
from quoth.agent.serve.client_tools import PREFIX, ClientCall, client_call, is_for
from quoth.agent.serve.history import BEGUN, ENDED, STOPPED, KnownTalk, TalkIndex, digest_of, digests_of
from quoth.agent.serve.keys import AccessKey
from quoth.agent.serve.openai_shape import ChatRequest, TalkMessage, TurnEnd
from quoth.agent.session.index import fork_session, new_session, session_of
from quoth.agent.terminal.output import complain
from quoth.agent.terminal.question import CHANGED
from quoth.agent.terminal.requests import decide, how_the_owner_decides, pending_text
from quoth.tools.call.redaction import map_texts
from quoth.tools.consent.decisions import ChangeDiffersError
from quoth.tools.consent.requests import Decision, Request
from quoth.tools.errors import BusyError, QuothError, UsageError
from quoth.tools.text import short

IDLE = 100  # conversations that are kept open
BROKEN_OFF = "The server ended before this answer was complete. To continue, send your message again."
FIRST = "An earlier message waits for a decision, so this one was not begun. Decide, then send it again."
BUSY = "Session {} answers another message. Send this one again later."
STOP_SECONDS = 10.0  # for an answer whose client has left to end before that client's next message
LINE_CHARS = 200  # of a call in an answer
_DECISION = re.compile(r"(approve|deny|answer)\s+(\w+)(?:\s+(\S.*))?", re.DOTALL)
GOING_ON = ("pending", "interrupted")  # the states of an answer that has not ended
FINISHES = {"max-tokens": "length", "refused": "content_filter"}


class UnknownResponseError(UsageError):
    """A request continues a response that its key has not had."""


class Piece(NamedTuple):
    """A piece of an answer, in words or thoughts."""

    text: str
    thought: bool = False


class FoundTalks(NamedTuple):
    """What the index knows of a request: the conversation before its last message, the same with that
    message, and the conversation before an answer that it ends with."""

    known: KnownTalk | None
    again: KnownTalk | None
    broken: KnownTalk | None


class TurnInProgress:
    """One answer in progress: its pieces, and its end. It runs in a task of its own, so that a client that
    leaves stops it and does not break it."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        self.reply: Reply | None = None
        self.error: QuothError | None = None
        self.task: asyncio.Task[None] | None = None
        self.calls: tuple[ClientCall, ...] = ()  # for the client to run
        self.waits = ""  # the text about requests that a person decides
        self.key = ""  # the name of its client's key
        self.stops = False  # its client has left
        self.record: Callable[[], None] | None = None  # writes the end of its last run, with the run's own
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        """The words of the answer so far."""
        return "".join(self._texts)

    def end(self, thoughts: str = "") -> TurnEnd:
        """Its end, once it has ended."""
        error = "" if self.error is None else str(self.error)
        if self.reply is None:
            return TurnEnd(self.text, thoughts, error=error)
        if self.calls:
            return TurnEnd(self.waits, thoughts, "tool_calls", self.reply.usage, error, self.calls)
        finish = FINISHES.get(self.reply.reason, "stop")
        return TurnEnd(self.text, thoughts, finish, self.reply.usage, error)

    def say(self, text: str) -> None:
        """Add a block of words."""
        if text := text.strip("\n"):
            block = f"\n\n{text}" if self._texts else text
            self._texts.append(block)
            self.pieces.put_nowait(Piece(block))

    def fold(self, line: str) -> None:
        """Add a line that clients fold, and that does not belong to the answer. Open WebUI shows it only if
        something is folded below it: the command that shows all of it."""
        shown = html.escape(" ".join(short(line, LINE_CHARS).split()), quote=False)
        self.say(f"<details>\n<summary>{shown}</summary>\nquoth log {self.session}\n</details>")

    def hear(self, event: AgentEvent) -> None:
        """Add what an event of the run shows: words, thoughts, and a hidden line for a call."""
        if event.path or event.parent:
            return
        match event.kind:
            case "said" | "message":
                self.say(str(event.data))
            case "note":
                self.fold(str(event.data))
            case "thought" if event.data.reading.reasoning:
                self.pieces.put_nowait(Piece(event.data.reading.reasoning, thought=True))
            case "call" if not event.data.tool.startswith(PREFIX):
                self.fold(f"→ {event.data}")
            case "result" if event.data.result.status not in ("ok", "pending"):
                told = event.data.told
                self.fold(f"← {told.status}: {told.message}")
            case "end":
                done = event.data if isinstance(event.data, list) else [event.data]
                self.reply = next((one for one in reversed(done) if isinstance(one, Reply)), None)
                if self.record is not None:
                    self.record()

    def say_rest(self, reply: str) -> None:
        """Add the words of the answer that no event had."""
        told = " ".join(self.text.split())
        if reply and " ".join(reply.split()) not in told:
            self.say(reply)

    def stop(self) -> None:
        """The client has left: stop the run, as an interrupt does."""
        self.stops = True
        if self.task is not None:
            self.task.cancel()


class _Heard(EventStream):
    """A stream whose events a turn hears as they happen."""

    def __init__(self, beside: set[EventStream], turn: TurnInProgress) -> None:
        super().__init__(beside)
        self._turn = turn

    def tell(self, event: AgentEvent) -> None:
        self._turn.hear(event)


class Talks:
    """The open conversations. ``opening`` opens the agent of a key and a model."""

    def __init__(self, opening: Callable[[AccessKey, str], AsyncAgent]) -> None:
        self._opening = opening
        self._agents: dict[tuple[str, str], AsyncAgent] = {}
        self._open: dict[str, Runs] = {}  # by session, the least recently used first
        self._left: list[Runs] = []  # of sessions that another agent continues, to be closed
        self._turns: dict[str, TurnInProgress] = {}  # in progress, by session
        self._ending = False

    def agent(self, key: AccessKey, model: str) -> AsyncAgent:
        """The agent of a key and a model, whose parts their conversations share. Raises QuothError."""
        which = key.name, model
        if which not in self._agents:
            self._agents[which] = self._opening(key, model)
        return self._agents[which]

    async def finish(self, deadline: asyncio.Future[None]) -> bool:
        """Begin nothing more, and wait for the turns in progress until the deadline is done. Then stop them,
        and tell their clients; return whether there were none."""
        self._ending = True
        while (work := {turn.task for turn in self._turns.values() if turn.task}) and not deadline.done():
            await asyncio.wait({deadline, *work}, return_when=asyncio.FIRST_COMPLETED)
        late = [*self._turns.values()]
        for turn in late:
            turn.say(BROKEN_OFF)
            turn.stop()
        return not late

    async def aclose(self) -> None:
        """Stop all turns and close the agents. What waits stays in the store."""
        turns = [*self._turns.values()]
        for turn in turns:
            turn.stop()
        tasks = [turn.task for turn in turns if turn.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        for runs in (*self._open.values(), *self._left):
            await _close(runs.host)
        for agent in self._agents.values():
            await agent.aclose()

    async def begin(self, key: AccessKey, request: ChatRequest, chosen: str = "") -> TurnInProgress:
        """Begin the answer to a request; ``chosen`` names the session. Raises QuothError."""
        if self._ending:
            raise BusyError("The server is about to end. Send this message again later.")
        stopping = {
            turn.task for turn in self._turns.values() if turn.stops and turn.key == key.name and turn.task
        }
        if stopping:  # who stops an answer and writes on means the same conversation
            await asyncio.wait(stopping, timeout=STOP_SECONDS)
        agent = self.agent(key, request.model)
        history = TalkIndex(lambda: agent.store)
        digests, size = digests_of(request.model, request.talk), len(request.history)
        asked, results = digests[-1], _results_of(agent, key, request)
        known = history.find(key.name, digests[size]) if size else None
        if request.previous:
            known = history.find(key.name, _digest_after(request.model, request.previous))
            if known is None:
                id = short(request.previous, 80)
                raise UnknownResponseError(f"Previous response with id {id!r} not found.")
        own = _session_named(key, chosen, history) if chosen else ""
        if request.resumes:
            session = results[0][0].session
            turn, work = TurnInProgress(session), self._resuming(key, agent, request, results)
        elif (waits := _decided_request(agent, request.text)) is not None:
            session = own or (known.session if known else "")
            work = self._deciding(key, agent, session, waits, request)
            turn = TurnInProgress(session or new_session())
        else:
            broken = None  # the answer of which the client sends a part
            if size and request.history[-1].role == "assistant":
                broken = history.find(key.name, digests[size - 1])
            found = FoundTalks(known, history.find(key.name, asked), broken)
            session, name, data = self._place(agent, key, request, found, own)
            was_killed = (
                not name and broken is not None and (broken.session, broken.state) == (session, BEGUN)
            )
            session, name = session or new_session(), name or f"{asked[:16]}-{secrets.token_hex(4)}"
            runs = self._runs(key, agent, session, request)
            output = None if request.schema is None else OutputType.known_by(request.schema)
            files = [*request.images, *([("conversation.txt", data.encode())] if data else [])]
            text = request.text if request.text.strip() else "Look at the images."
            turn = TurnInProgress(session)

            async def work(turn: TurnInProgress) -> None:
                _answer(agent, key, [one for one in results if one[0].session == session])
                if _was_decided(runs):  # with this message, or in a terminal meanwhile
                    await _drive(turn, runs, runs.resume)
                elif was_killed and any(one.waits for one in runs.unfinished()):
                    await _finish_broken(turn, runs)
                if turn.reply is not None and turn.reply.status == "pending":
                    turn.say(FIRST)
                    return
                await _drive(
                    turn, runs, lambda: runs.say(text, turn=name, files=files, output=output), last=True
                )

        if turn.session in self._turns:
            raise BusyError(BUSY.format(turn.session))
        self._turns[turn.session] = turn
        turn.key = key.name
        if not request.resumes:
            history.save(key.name, turn.session, {asked: BEGUN})
        turn.task = asyncio.create_task(self._run(turn, work, key, request, history, asked))
        return turn

    def keep(self, key: AccessKey, model: str, session: str, response: Mapping[str, Any]) -> None:
        """Keep a response without secrets, to be read again, if the store can."""
        agent = self.agent(key, model)
        bare = map_texts(response, partial(agent.transcript.hidden, session))
        with contextlib.suppress(QuothError):
            TalkIndex(lambda: agent.store).keep(key.name, session, response["id"], json.dumps(bare))

    def kept(self, key: AccessKey, models: Sequence[str], id: str, *, forget: bool = False) -> str:
        """A response of this key with one of the models, as JSON. Raises UnknownResponseError."""
        agent = self.agent(key, models[0])  # all have one store
        history = TalkIndex(lambda: agent.store)
        for digest in (_digest_after(model, id) for model in models):
            known = history.find(key.name, digest)
            text = known and history.kept(key.name, known.session, id)
            if known and text:
                if forget:
                    history.forget(key.name, known.session, id, digest)
                return text
        raise UnknownResponseError(f"Response with id {short(id, 80)!r} not found.")

    def _place(
        self,
        agent: AsyncAgent,
        key: AccessKey,
        request: ChatRequest,
        found: FoundTalks,
        own: str,
    ) -> tuple[str, str, str]:
        """The session of a message, empty for a new one; the name of its turn, if it is resumed; and the
        conversation before it as data, if no session has it."""
        known, again, broken = found
        if again is not None and not again.ended and again.session not in self._turns:
            runs = self._open.get(again.session) or self._runs(key, agent, again.session, request)
            if (name := _unfinished(runs)) and (not own or own == again.session):
                return again.session, name, ""
        if own:
            return own, "", ""
        if not request.previous and not any(one.role == "assistant" for one in request.history):
            return "", "", _as_data(request.history)
        if known is None and broken is not None and not broken.ended:
            known = broken._replace(latest=True)
        if known is None:
            return "", "", _as_data(request.history)
        more = _as_data(request.history[1:]) if request.previous else ""
        if known.latest and known.session not in self._turns:
            return known.session, "", more
        return fork_session(agent.store, known.session, max(1, known.events))[0], "", more

    def _runs(self, key: AccessKey, agent: AsyncAgent, session: str, request: ChatRequest) -> Runs:
        """The runs of a session, with the choices of a request."""
        runs = self._open.pop(session, None)
        if runs is not None and runs.host.parts is not agent.host.parts:
            if session in self._turns:
                self._open[session] = runs
                raise BusyError(BUSY.format(session))
            self._left.append(runs)
            runs = None
        if runs is None:
            agent.broker.use_in(session, agent.table)
            runs = Runs(SessionHost(agent.host.parts, session, key.name, like=agent.host))
        self._open[session] = runs
        host, base = runs.host, agent.host
        if session not in self._turns:
            _use_tools(runs, agent, key, request)
            said = "\n\n".join(filter(None, (base.models.instructions, request.instructions)))
            changed: dict[str, Any] = {"instructions": said} if request.instructions else {}
            if request.temperature is not None:
                changed["temperature"] = request.temperature
            if request.tools.must and not request.resumes:
                changed["must_act"] = True
            host.models = base.models.overridden(changed)
            host.limits = with_longest(base.limits, request.reply_tokens)
        return runs

    async def _run(
        self,
        turn: TurnInProgress,
        work: Callable[[TurnInProgress], Coroutine[Any, Any, None]],
        key: AccessKey,
        request: ChatRequest,
        history: TalkIndex,
        asked: str,
    ) -> None:
        """Do the work of a turn, and record its answer."""
        agent = self.agent(key, request.model)
        earlier = {one.id for one in agent.broker.requests(session=turn.session)}
        saved: dict[str, int] = {}

        def record() -> bool:
            """Write the answer as it is now, if that is not done; return whether anything was written."""
            ended = turn.error is None and (turn.reply is None or turn.reply.status not in GOING_ON)
            over = {} if request.resumes else {asked: ENDED if ended else BEGUN}
            said = TalkMessage("assistant", turn.text, tuple(call.id for call in turn.calls))
            answer = digest_of(request.model, (*request.talk, said))
            if answer in saved or not request.resumes or history.find(key.name, answer) is None:
                over[answer] = ENDED  # else it was sent again
            if request.response:
                over[_digest_after(request.model, request.response)] = ENDED
            if over == saved:
                return False
            history.save(key.name, turn.session, over)
            saved.update(over)
            return True

        def record_done() -> None:
            if turn.reply is not None and turn.reply.ok:
                turn.say_rest(turn.reply.said)
                with contextlib.suppress(QuothError):
                    record()

        turn.record = record_done
        try:
            try:
                await work(turn)
            except QuothError as error:
                turn.error = error
            except asyncio.CancelledError:
                if not self._ending and not request.resumes:  # its client left
                    with contextlib.suppress(QuothError):
                        history.save(key.name, turn.session, {asked: STOPPED})
                raise
            except Exception as error:
                complain(
                    f"{type(error).__name__}: {error}"
                )  # its words may be about more than the client may see
                turn.error = QuothError(f"The message could not be answered ({type(error).__name__}).")
            reply = turn.reply
            told = "" if reply is None else reply.said
            if reply is not None and reply.status == "pending":
                asked_now = {one.result.request for one in reply.calls}
                new = [
                    one
                    for one in agent.broker.requests(session=turn.session)
                    if one.id in asked_now or one.id not in earlier
                ]
                own = (client_call(one, request.tools.tools) for one in new if is_for(one, key.name))
                turn.calls = tuple(call for call in own if call is not None)
                told = turn.waits = _waiting_text(agent, turn.session, key)
            if turn.error is not None:
                told = str(turn.error)
            if reply is not None and reply.status == "failed" and not turn.text:
                turn.error = QuothError(told)
            turn.say_rest(told)
            with contextlib.suppress(QuothError):
                if record():
                    await agent.store.on_disk(turn.session)
        finally:
            self._turns.pop(turn.session, None)
            turn.pieces.put_nowait(None)
        # Other turns begin and end during each closing.
        while idle := next((one for one in list(self._open)[:-IDLE] if one not in self._turns), None):
            await _close(self._open.pop(idle).host)
        while self._left:
            await _close(self._left.pop().host)

    def _resuming(
        self, key: AccessKey, agent: AsyncAgent, asked: ChatRequest, results: Sequence[tuple[Request, str]]
    ) -> Callable[[TurnInProgress], Coroutine[Any, Any, None]]:
        """The work of results of the client's calls, also if they were sent before."""
        request, _ = results[-1]
        runs = self._runs(key, agent, request.session, asked)

        async def work(turn: TurnInProgress) -> None:
            if not (name := runs.name_of_message(request.call)):
                raise UsageError(f"The call {request.id} is no longer in session {request.session}.")
            _answer(agent, key, results)
            await _drive(turn, runs, lambda: runs.say("Continue.", turn=name), last=True)

        return work

    def _deciding(
        self, key: AccessKey, agent: AsyncAgent, session: str, request: Request, asked: ChatRequest
    ) -> Callable[[TurnInProgress], Coroutine[Any, Any, None]]:
        """The work of a message that decides a request."""
        text = asked.text

        async def work(turn: TurnInProgress) -> None:
            if _says_more(text):
                turn.say(
                    "Nothing was decided: a message that approves must contain no other words, also none"
                    f" that the client adds. In a terminal: quoth approve {request.id}"
                )
                return
            if request.session != session:
                turn.say(
                    f"Request {request.id} belongs to another conversation; nothing was decided. Decide it"
                    f" there, or in a terminal: quoth approve {request.id}, or quoth deny {request.id}"
                )
                return
            if not key.decides:
                turn.say(f"This key may not decide. {how_the_owner_decides(request)}")
                return
            try:
                turn.say(f"{decide(agent.broker, request.id, _decision(text, key.name))}.")
            except ChangeDiffersError:
                turn.say(f"{CHANGED} nothing was decided.\n\n{pending_text(agent.broker, request.id)}")
                return
            except QuothError as error:
                turn.say(str(error))
            runs = self._runs(key, agent, session, EMPTY)
            if asked.tools.tools:
                _use_tools(runs, agent, key, asked)
            if runs.resumable():
                await _drive(turn, runs, runs.resume)

        return work


EMPTY = ChatRequest("", (), "")


def _use_tools(runs: Runs, agent: AsyncAgent, key: AccessKey, request: ChatRequest) -> None:
    """Let a session have our tools and those of the request. Raises UsageError."""
    if request.tools.tools and agent.host.parts.remote is not None:
        raise UsageError("This server has the tools of a catalog (--remote), and takes no tools of clients.")
    table, now = request.tools.beside(agent.host.table, key.name), runs.host.table
    if table is not now and (table.schema_hash, table.hidden) != (now.schema_hash, now.hidden):
        runs.use_own_tools(table)


def _results_of(agent: AsyncAgent, key: AccessKey, request: ChatRequest) -> list[tuple[Request, str]]:
    """The results that a client sends, each with its request. Raises UsageError for one of another key; other
    ids are those of a conversation with another server, which a person may continue here."""
    found = []
    for id, text in request.results:
        asked = None
        with contextlib.suppress(UsageError):
            asked = agent.broker.find(id)
        if asked is not None and asked.id == id and is_for(asked, key.name):
            found.append((asked, text))
        elif request.resumes:
            raise UsageError(f"The id {short(id, 80)!r} is not that of a call for this key.")
    if request.resumes and len({asked.session for asked, _ in found}) > 1:
        raise UsageError("The results are of calls in several conversations: send those of one.")
    known = {tool.own for tool in request.tools.tools}
    if missing := next((one for one, _ in found if one.tool not in known), None):
        name = missing.tool.removeprefix(PREFIX)
        raise UsageError(f"The call {missing.id} is of the tool {name}: send that tool again, in tools.")
    return found


def _answer(agent: AsyncAgent, key: AccessKey, results: Iterable[tuple[Request, str]]) -> None:
    """Answer the requests of calls with their results; an earlier answer stays as it is."""
    for asked, text in results:
        if agent.broker.find(asked.id).state == "pending":
            agent.broker.decide(asked.id, Decision("answer", by=f"client {key.name}", answer=text))


def _digest_after(model: str, response: str) -> str:
    """The digest of the conversation up to a response, which its id names."""
    return digest_of(model, [TalkMessage("response", response)])


async def _drive(
    turn: TurnInProgress,
    runs: Runs,
    work: Callable[[], Coroutine[Any, Any, object]],
    *,
    last: bool = False,
) -> None:
    """Run a message or resume a session; its events are heard as they happen. After the ``last`` run of the
    turn, the end of the turn is written before the run's end is synced."""
    record, turn.record = turn.record, turn.record if last else None
    try:
        async with contextlib.aclosing(_Heard(runs.host.events.streams, turn).of(work)) as events:
            async for event in events:  # the end alone
                turn.hear(event)
    finally:
        turn.record = record


async def _finish_broken(turn: TurnInProgress, runs: Runs) -> None:
    """Finish a message at which the server was killed; say so if it cannot be finished."""
    try:
        await _drive(turn, runs, runs.resume)
    except UsageError as error:
        turn.fold(str(error))


async def _close(host: SessionHost) -> None:
    """Close the host of one conversation; its agent, whose parts it uses, stays open."""
    host.broker.use_in(host.session, None)  # first: a new message may open the session again meanwhile
    await host.events.stop_all(host.interrupt)
    await host.own.programs.aclose()
    await host.own.memory.aclose()


def _unfinished(runs: Runs) -> str:
    """The name of the message of a session that was broken off; empty for none."""
    record = runs.host.record
    for one in runs.unfinished():
        if (
            one.kind == "run"
            and one.status != "pending"
            and (event := record.stimulus(one.name)) is not None
            and event.key
        ):
            return str(event.key)
    return ""


def _was_decided(runs: Runs) -> bool:
    """Whether calls of a session waited, and all of them were decided. The tools of its client may be missing
    now."""
    waited = [one for one in runs.unfinished() if one.status == "pending"]
    forms = [form for one in waited for form in runs.host.record.waiting_calls(one)]
    if any(form.tool.startswith(PREFIX) and form.tool not in runs.host.table for form in forms):
        return False
    return bool(waited) and not runs.host.broker.requests(session=runs.host.session)


def _session_named(key: AccessKey, chosen: str, history: TalkIndex) -> str:
    """The session that a client names: one that its key began, or the one of this name among its own."""
    if history.is_of(key.name, chosen):
        return chosen
    return session_of("serve", f"{key.name}\0{chosen}", 12)


def _decided_request(agent: AsyncAgent, text: str) -> Request | None:
    """The request that a message is about to decide; None for other messages."""
    found = _DECISION.fullmatch(text.strip())
    if found is None:
        return None
    with contextlib.suppress(UsageError):
        request = agent.broker.find(found[2])
        return request if request.id == found[2] else None
    return None


def _says_more(text: str) -> bool:
    """Whether a message that approves has further words, a person's or of the client."""
    found = _DECISION.fullmatch(text.strip())
    return found is not None and found[1] == "approve" and bool(found[3])


def _decision(text: str, by: str) -> Decision:
    found = _DECISION.fullmatch(text.strip())
    assert found is not None, "it was read before"
    match found[1]:
        case "approve":
            return Decision("once", by=by)
        case "deny":
            return Decision("deny", by=by, why=found[3] or "")
        case _:
            return Decision("answer", by=by, answer=found[3] or "")


def _waiting_text(agent: AsyncAgent, session: str, key: AccessKey) -> str:
    """What waits in a session, in full, and the words that decide it."""
    texts = []
    for request in agent.broker.requests(session=session):
        if is_for(request, key.name):
            continue
        shown = pending_text(agent.broker, request.id)
        if not key.decides:
            how = how_the_owner_decides(request)
        elif request.question is not None:
            how = f"To answer, send: answer {request.id} YOUR WORDS"
        else:
            how = f"To decide, send: approve {request.id}, or: deny {request.id} WHY"
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", f"`{shown}")))
        texts.append(f"{fence}text\n{shown.strip()}\n{fence}\n\n{how}")
    return "\n\n".join(texts)


def _as_data(history: tuple[TalkMessage, ...]) -> str:
    """A conversation that no session has, as a text for the model."""
    return "\n\n".join(f"{one.role}: {one.text}" for one in history)
