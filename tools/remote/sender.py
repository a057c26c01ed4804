"""The body of every remote tool: sends the call to a worker, answers the worker's questions, and waits for
the result or reports why there is none. The line (line.py) talks to Redis."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import secrets
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from quoth.tools.call.call import Call, ToolResult
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import LOST_REQUEST, Audit
from quoth.tools.catalog.connection import RedisUrl
from quoth.tools.catalog.payload import Key
from quoth.tools.errors import STATUSES, CatalogStale, QuothError, Status, ToolError, ToolFailure, UsageError
from quoth.tools.history.audit import row_of_host
from quoth.tools.lisp.forms import CallForm, from_json, to_json
from quoth.tools.policy.limits import only_reads
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.values import plain
from quoth.tools.remote.line import LAST_SECONDS, BrokerLine, Patience, SentCall
from quoth.tools.remote.wire import (
    Asks,
    Begin,
    Begins,
    Cancel,
    Delegated,
    Ended,
    Nested,
    NestedAnswer,
    ProgressReport,
    Stale,
    WireError,
)
from quoth.tools.text import one_line

SEND_AGAIN = "send it again"  # the permission to send a call that may have been run already
MOST_REASON = 1_000  # characters of a worker's reason that a person is shown
MARGIN = 5.0  # seconds; we give up earlier than the door by this much, to say why
REFUSED_SECONDS = 60.0  # between two audit rows about rejected replies


class Sender:
    """Sends calls to the workers of one prefix and waits for their results. Its connections belong to the
    event loop of its calls; close it there (``aclose``).

    ``on_progress`` is called with each progress message of a body. Replies that are not authentic are counted
    in ``refused`` and recorded in ``audit``."""

    def __init__(
        self,
        url: RedisUrl,
        key: Key,
        prefix: str,
        *,
        audit: Audit | None = None,
        on_progress: Callable[[Call, str], None] | None = None,
        patience: Patience = Patience(),  # noqa: B008  it is frozen
    ) -> None:
        self._url, self._key, self.prefix = url, key, prefix
        self._audit, self._on_progress, self._patience = audit, on_progress, patience
        self._line: BrokerLine | None = None
        self.refused = 0
        self._told = 0.0  # when a rejected reply was last written to the audit

    async def __call__(self, tool: CognitiveTool, call: Call, context: ToolContext, schema_hash: str) -> Any:
        """The value of a call that a worker runs. Raises ToolFailure with the status and message if the call
        did not end well, CatalogStale if the worker's tools differ."""
        sending = _Sending(self, self._open_line(), tool, call, context)
        ended = False
        try:
            await sending.send(schema_hash)
            value = await sending.result()
            ended = True
            return value
        except (_Over, CatalogStale) as over:
            ended = True
            raise over.failure if isinstance(over, _Over) else over from None
        finally:
            sending.stop(given_up=not ended)

    async def aclose(self) -> None:
        """Stop everything it started. Waiting calls are given up."""
        line, self._line = self._line, None
        if line is not None and line.loop is asyncio.get_running_loop():
            await line.aclose()

    def _open_line(self) -> BrokerLine:
        line = self._line
        if line is None or line.loop.is_closed():
            caller = secrets.token_hex(16)
            line = self._line = BrokerLine(
                self._url, self._key, self.prefix, caller, self._patience, self.refuse
            )
        if line.loop is not asyncio.get_running_loop():
            raise ToolError("An agent must run its remote calls on one event loop; this is a second one.")
        return line

    def refuse(self, why: str) -> None:
        """Count a rejected reply. At most one row in REFUSED_SECONDS is written to the audit."""
        self.refused += 1
        if self._audit is None or (self._told and time.monotonic() - self._told < REFUSED_SECONDS):
            return
        self._told = time.monotonic()
        said = f"A reply from Redis was rejected ({self.refused} in total): {why}"
        with contextlib.suppress(QuothError):  # the reply is counted even if the row cannot be written
            self._audit.write(row_of_host("reply", said))

    def progressed(self, call: Call, text: str) -> None:
        """Notify the listener. An error in the listener does not affect the call."""
        if self._on_progress is not None:
            with contextlib.suppress(Exception):
                self._on_progress(call, text)


class _Over(Exception):
    """The call has failed and is over at the worker, too."""

    def __init__(self, failure: ToolFailure) -> None:
        self.failure = failure


class _Sending:
    """One call that was sent and has not ended."""

    def __init__(
        self, sender: Sender, line: BrokerLine, tool: CognitiveTool, call: Call, context: ToolContext
    ) -> None:
        self._sender, self._line, self._key = sender, line, sender._key
        self._tool, self._call, self._context = tool, call, context
        self._nested: dict[str, asyncio.Task[ToolResult]] = {}
        self._promised: set[str] = set()  # answers that will be sent when they are known
        self._telling: set[asyncio.Task[None]] = set()
        self._begun = ""  # the first delivery that was allowed to begin the body
        self._progressed = Counter[str]()  # progress messages already passed on
        self._seconds = tool.timeout + max(tool.patience - MARGIN, tool.patience / 2)
        self._since = time.monotonic()
        self._waiting = SentCall(self._late, LAST_SECONDS + int(self._seconds))

    def _late(self) -> bool:
        return self._seconds_left() < 0

    def _seconds_left(self) -> float:
        clocks = self._context.inner_clocks
        return self._seconds - (time.monotonic() - self._since - (clocks[-1].held if clocks else 0.0))

    async def send(self, schema_hash: str) -> None:
        call, context = self._call, self._context
        form = call.form
        if not all(map(_travels, form.args.values())):
            form = CallForm(form.tool, {name: plain(value) for name, value in form.args.items()})
        until = await self._line.now() + self._seconds
        self._delegated = Delegated(
            grant=secrets.token_hex(16),
            prefix=self._sender.prefix,
            schema_hash=schema_hash,
            form=to_json(form),
            digest=form.digest,
            id=call.id,
            key=call.key or call.id,
            user=call.user,
            session=call.session,
            depth=call.depth,
            parent=call.parent or "",
            message=call.message,
            chat=context.chat,
            confidence=call.confidence,
            resumed=call.resumed,
            approved=self._approved(),
            deadline=until,
            expires=until,
            replies=self._line.replies,
        )
        await self._send()

    async def _send(self) -> None:
        grant = self._delegated.grant
        try:
            packed = self._delegated.pack(self._key)
        except WireError as error:
            raise ToolError(f"The call of {self._tool.name} was not sent. {error}") from None
        await self._line.send(self._waiting, grant, packed, lambda: Cancel(grant).pack(self._key))

    async def _send_again(self) -> None:
        """Send the call again, with a new grant and the same key. If a result is kept under that key, the
        worker replies with it."""
        until = await self._line.now() + self._seconds_left()
        self._delegated = dataclasses.replace(
            self._delegated,
            grant=secrets.token_hex(16),
            approved=self._approved(),
            deadline=until,
            expires=until,
        )
        await self._send()

    def _approved(self) -> list[str]:
        return sorted(getattr(self._context.permission, "given", ()))

    async def result(self) -> Any:
        """Wait for the result, and handle the worker's requests until then."""
        name, waiting = self._tool.name, self._waiting
        while True:
            news = await waiting.news.get()
            if isinstance(news, Ended):
                if (news.key, news.digest) == (self._delegated.key, self._delegated.digest):
                    return self._ended(news)
                self._sender.refuse("It is the result of another call.")
            elif isinstance(news, Asks):
                if news.question in self._delegated.approved or news.question.startswith(SEND_AGAIN):
                    again = f"The worker asked again after an approval: {news.reason}."
                    raise _Over(ToolFailure("denied", again))
                await self._ask(news.question, one_line(news.reason, MOST_REASON), waits=news.number != 0)
                if news.number:
                    self._answer(news)
                else:
                    self._begun = ""  # it was asked before the body began
                    await self._send_again()
            elif isinstance(news, Nested):
                self._make(news)
            elif isinstance(news, Begins):
                self._begun = self._begun or news.by
                self._let(news)
            elif isinstance(news, ProgressReport):
                self._progressed[news.text] += 1
                self._sender.progressed(self._call, news.text)
            elif isinstance(news, Stale):
                run = "was not run"
                if self._begun:  # Redis has lost the record that a worker was allowed to begin
                    run = "was begun by a worker that ended; whether it ran to its end is unknown"
                raise CatalogStale(
                    f"{name} {run} (CATALOG_STALE): the workers' tools have changed. Look at its parameters"
                    " again before the next call.",
                    news.schema_hash,
                )
            elif news == "unheard":
                await self._send_again()
            elif news == "lost":
                if await self._line.take_back(waiting, stop=False):
                    continue  # a worker has it, after all
                if not only_reads(self._tool):
                    await self._ask(self._once_more(), LOST_REQUEST)
                await self._send_again()
            elif news == "nobody":
                if not await self._line.take_back(waiting, stop=False):
                    run = "was begun; its result is unknown" if self._begun else "was not run"
                    nobody = f"{name} {run}: no worker offers these tools now. Start one: quoth worker."
                    raise _Over(ToolFailure("error", nobody))
            elif news == "late":
                await self._give_up()
            else:
                raise ToolFailure("cancelled", f"{name} was given up: this agent was closed.")

    def _ended(self, ended: Ended) -> Any:
        # A progress message is sent separately: it can arrive after the result, or be lost.
        for text in ended.said:
            self._progressed[text] -= 1
            if self._progressed[text] < 0:
                self._sender.progressed(self._call, text)
        for effect in ended.side_effects:
            self._context.effect(effect)
        self._context.audit.update(ended.details)
        if ended.status != "ok":
            known = ended.status in STATUSES and ended.status != "pending"  # a worker that waits sends Asks
            status: Status = ended.status if known else "error"  # type: ignore[assignment]
            raise _Over(ToolFailure(status, ended.message))
        for text in ended.said:
            self._context.say(text)
        return ended.value

    def _once_more(self) -> str:
        """The permission to send the call again. Each is for one loss of the request."""
        given = sum(name.startswith(SEND_AGAIN) for name in self._delegated.approved)
        return f"{SEND_AGAIN} ({given + 1})" if given else SEND_AGAIN

    async def _ask(self, question: str, reason: str, *, waits: bool = False) -> None:
        """Ask a person while the call waits. If the body ``waits`` on the worker and the person does not
        approve, the body is stopped."""
        try:
            await self._context.permission.request(question, reason)
        except ToolFailure as asked:
            if waits:
                raise
            raise _Over(asked) from None

    async def _give_up(self) -> None:
        """End a call whose deadline has passed, and say whether a worker had begun it."""
        name, seconds = self._tool.name, f"{self._seconds:g} s"
        try:
            taken = await asyncio.wait_for(self._line.take_back(self._waiting), MARGIN / 2)
        except (ToolError, TimeoutError):
            why = self._line.trouble or "Redis does not answer."
            said = f"{name} was sent {seconds} ago; whether it was run is unknown. {why}"
            raise ToolFailure("timeout", said) from None
        begun = (
            f"{name} was begun by a worker and did not end within {seconds}; the worker was asked to stop."
        )
        free = f"{name} was not run: no worker was free within {seconds}."
        raise _Over(ToolFailure("timeout", begun if taken or self._begun else free))

    # Calls from inside the body

    def _make(self, nested: Nested) -> None:
        """Run a call for the worker's body, through the door of this call, and send its result. A body that
        began again and asks for the same call gets the same answer: the call is run only once."""
        same = f"{nested.name or nested.number} {nested.form}"
        made = self._nested.get(same)
        if made is None:
            made = self._nested[same] = asyncio.create_task(self._result(nested))
        promise = f"{nested.grant} {nested.number} {same}"
        if promise not in self._promised:
            self._promised.add(promise)
            telling = asyncio.create_task(self._tell(nested, made, promise))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    def _answer(self, asks: Asks) -> None:
        """Notify the waiting body on the worker that a person has approved."""
        yes = ToolResult(secrets.token_hex(5), self._tool.name, "ok")
        self._tell_of(asks.grant, NestedAnswer(asks.grant, asks.number, yes.to_json()).pack(self._key))

    def _let(self, begins: Begins) -> None:
        """Tell a worker whether it is the first to begin this call."""
        packed = Begin(begins.grant, begins.by, begins.by == self._begun).pack(self._key)
        self._tell_of(begins.grant, packed)

    def _tell_of(self, grant: str, packed: bytes) -> None:
        telling = asyncio.create_task(self._told(grant, packed))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _told(self, grant: str, packed: bytes) -> None:
        with contextlib.suppress(ToolError):  # the worker asks again, or the call is late
            await self._line.tell(grant, packed)

    async def _result(self, nested: Nested) -> ToolResult:
        dispatch = self._context.dispatch
        try:
            if dispatch is None:
                raise UsageError("A tool cannot call other tools here.")
            return await dispatch(from_json(nested.form), nested.name, nested.dry)
        except QuothError as error:
            tool = str(nested.form.get("tool", ""))
            return ToolResult(secrets.token_hex(5), tool, "error", message=str(error))

    async def _tell(self, nested: Nested, made: asyncio.Task[ToolResult], promise: str) -> None:
        result = await asyncio.shield(made)
        self._promised.discard(promise)
        try:
            packed = NestedAnswer(nested.grant, nested.number, result.to_json()).pack(self._key)
        except WireError as error:
            lost = f"Its result cannot be sent to the worker. {error}"
            short = ToolResult(result.id, result.tool, "error", message=lost)
            packed = NestedAnswer(nested.grant, nested.number, short.to_json()).pack(self._key)
        await self._told(nested.grant, packed)

    def stop(self, *, given_up: bool) -> None:
        """Stop everything that was started for the call."""
        for task in (*self._nested.values(), *self._telling):
            task.cancel()
        self._line.forget(self._waiting, given_up=given_up)


def _travels(value: Any) -> bool:
    """Whether an argument can be sent unchanged, without ``plain``; most can."""
    return type(value) in (int, bool) or value is None or (type(value) is str and value.isascii())
