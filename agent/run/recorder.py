"""The model of a run as the loop sees it: the transcript answers what was asked before, and what is asked now
is written to it.

So a run is resumed, and replayed, by running the same loop again (its door: recorded_door.py). Knows sessions
and back ends; it must not know how tools are called.
"""

from __future__ import annotations

import asyncio
import hashlib
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from quoth.agent.run.budget import BudgetError, Purse
from quoth.agent.run.compaction import gauge_of
from quoth.agent.run.run import Run, RunParts
from quoth.agent.run.spec import FACTS, facts_of
from quoth.agent.session.past import Past, completion_of, reply_data
from quoth.agent.session.session import RunLog
from quoth.neuro.backends.base import (
    NO_OPTIONS,
    Backend,
    Completion,
    ContextFullError,
    ModelError,
    MovedError,
    RequestOptions,
    RequestRefusedError,
    ToolsRefusedError,
)
from quoth.neuro.backends.cascade import CascadeRun
from quoth.neuro.backends.messages import Message, Messages
from quoth.neuro.prompt.dialects import TAGS
from quoth.neuro.reading.result import Reading
from quoth.neuro.reading.tag_lines import SHOWN
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.history.call_log import secrets_in
from quoth.tools.history.event import Event
from quoth.tools.text import short


class RecordedBackend:
    """A model whose replies come from the transcript as long as it has any. Then ``live`` is asked; without
    it the run is interrupted."""

    def __init__(self, parts: RunParts, past: Past, log: RunLog) -> None:
        self._live = parts.backend
        self._past = past
        self._log = log
        self._differs = parts.differs
        self._note = parts.note  # told to the model once, when it is asked again
        self._recalls = bool(past.exchanges)
        self._known = dict[str, Any](past.stimulus.data) if past.stimulus is not None else {}
        self._measured: tuple[Messages | None, int] = None, 0  # the last request, and its tokens
        self._run: Callable[[], Run | None] = lambda: None

    @property
    def run(self) -> Run | None:
        """Its run, which holds it."""
        return self._run()

    @run.setter
    def run(self, run: Run) -> None:
        self._run = weakref.ref(run)

    def _fact(self, name: str) -> Any:
        """A recorded fact about the model, or, once the recording is used up, the real model's."""
        if self._live is None or self._past.place < len(self._past.exchanges):
            return self._known.get(name)
        return FACTS[name](self._live())

    @property
    def name(self) -> str:
        return str(self._fact("model") or "")

    @property
    def context(self) -> int | None:
        context: int | None = self._fact("context")
        return context

    @property
    def takes_grammar(self) -> bool:
        return bool(self._fact("takes-grammar"))

    @property
    def takes_images(self) -> bool:
        return bool(self._fact("takes-images"))

    @property
    def roomier(self) -> bool:
        """Whether there is a model to go on with that reads more."""
        return bool(self._fact("roomier"))

    @property
    def tool_view(self) -> str:
        return str(self._fact("tool-view") or "")

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
        tools: bytes | None = None,
        tool_choice: Any = "auto",
        options: RequestOptions = NO_OPTIONS,
    ) -> Completion:
        if (exchange := self._past.next()) is not None:
            return self._recalled(messages, *exchange, _told(tools, tool_choice))
        if self._live is None:
            assert self.run is not None, "a run that is recalled is known"
            self.run.state.interrupted = True
            raise asyncio.CancelledError
        if self._log.broken:  # the model may not be shown what could not be written down
            raise StoreError(self._log.broken)
        if self._note and self._recalls:
            messages.append("user", self._note)
        transcript = self._log.session.transcript
        await self._log.on_disk()  # what it is told
        request = self._request(messages, _told(tools, tool_choice))
        self._note = ""
        if self.run is not None and self.run.listener is not None and options.on_wait is None:
            options = replace(options, on_wait=self.run.waits)
        more: dict[str, Any] = {} if tools is None else {"tools": tools, "tool_choice": tool_choice}
        live, purse = self._live(), self._purse
        try:
            async with purse.paying(live, lambda: self._size(messages), max_tokens) as payment:
                if (asked := purse.options(payment, options)) != NO_OPTIONS:
                    more["options"] = asked
                most, hear = payment.reply_tokens, payment.hearing(on_text)
                completion = await self._asking(live)(
                    messages, grammar=grammar, max_tokens=most, on_text=hear, **more
                )
                purse.settle(payment, completion)
        except ModelError as error:
            said = _raised(error)
            if isinstance(error, MovedError):
                said["to"] = {**facts_of(live), "place": error.place}
            self._log.reply = self._log.add("reply", said, parent=request)
            if isinstance(error, MovedError) and self.run is not None:
                self._tell_move(self.run, str(error))
            raise
        data = reply_data(completion) | payment.record(max_tokens, completion.usage)
        self._limited(data)
        reading = self._read(completion)
        with transcript.together(synced=False):
            self._log.reply = self._log.add("reply", data, parent=request)
            self._keep_tags(completion.text, reading)
        self._log.recalled = False
        self._answered(messages, completion)
        return completion

    def _asking(self, live: Backend) -> Callable[..., Awaitable[Completion]]:
        """How the model is asked: in a span, where there is a tracer."""
        if self.run is None or self.run.tracer is None:
            return live.complete
        transcript, session = self._log.session.transcript, self._log.session.id
        return partial(
            self.run.tracer.request, live, hide=partial(transcript.hidden, session), learn=self._read
        )

    @property
    def _purse(self) -> Purse:
        """What pays for the requests."""
        assert self.run is not None, "who asks the model is known"
        return self.run.purse

    def _size(self, messages: Messages) -> int:
        """The tokens of a request: an estimate, but no fewer than the server told of its beginning."""
        assert self.run is not None, "who asks the model is known"
        asked, told = self._measured
        return max(gauge_of(self.run).tokens(messages), told if asked is messages else 0)

    def _limited(self, reply: Mapping[str, Any]) -> None:
        """Let the run know of a reply that was shorter than it wanted, because no more could be paid."""
        if self.run is not None and "limit" in reply:
            self.run.state.reply_tokens = reply["limit"]

    def _tell_move(self, run: Run, why: str) -> None:
        run.tell("note", why)
        who = {"user": run.user, "session": run.session, "route": run.route}
        run.door.record("model", why, status="error", **who)

    def _move_to(self, model: Mapping[str, Any]) -> None:
        """Go on with the model that the cascade had moved on to."""
        self._known |= {"roomier": False, **model}
        if self._live is not None and isinstance(live := self._live(), CascadeRun):
            live.stand_at(model["place"], model["model"])

    def live(self) -> Backend:
        """The real model. Raises UsageError in a run without one."""
        if self._live is None:
            raise UsageError("There is no model in what is brought back from a transcript.")
        return self._live()

    async def aclose(self) -> None:
        """Do nothing: the real model is closed by whoever opened it."""

    def _request(self, messages: Messages, more: dict[str, Any]) -> int:
        """Record the messages that are new to the model."""
        talk = self._log.session.talk_of(messages)
        start, new = talk.new()
        data: dict[str, Any] = {"talk": self._log.number(messages), "from": start, "messages": new, **more}
        if self._note and self._recalls:
            data["noted"] = True
        with self._log.session.transcript.together(synced=False):
            seq = self._log.add("request", data, parent=self._log.reply)
        talk.count, talk.reply = len(messages), None
        return seq

    def _read(self, completion: Completion) -> Reading | None:
        """Read a reply as far as the record needs it, and hide its declared secrets in everything that is
        written from here on."""
        run = self.run
        if run is None or not (run.door.table.secrets or run.dialect.name == TAGS.name):
            return None
        table = run.door.table
        reading = run.dialect.read(completion, table)
        for found in reading.calls if table.secrets else ():
            tool = table.get(found.form.tool) if found.form.tool in table else None
            self._log.session.transcript.hide(run.session, secrets_in(found.form, tool, table.secrets))
        return reading

    def _keep_tags(self, text: str, reading: Reading | None) -> None:
        """Record the lines of the latest reply that are tags, each with the place of its call in the turn,
        and those that look like tags, each with the reason why it is no call."""
        if reading is None:
            return
        lines: list[list[int | str]] = [
            [found.line, short(text[found.start : found.end], SHOWN), place]
            for place, found in enumerate(reading.calls)
            if found.tag
        ]
        lines += [[passed.line, passed.text, passed.reason] for passed in reading.passed]
        if lines:
            self._log.add(
                "tags", {"lines": sorted(lines, key=lambda line: int(line[0]))}, parent=self._log.reply
            )

    def _recall_request(self, messages: Messages, request: Event, more: dict[str, Any]) -> None:
        """Let the conversation end with what a request told, which is not quite what it would tell now."""
        asked, talk = request.data, self._log.session.talk_of(messages)
        told: list[Message] = asked["messages"]
        if asked.get("noted"):  # the host said it when it went on with the run
            messages.append(told[-1]["role"], told[-1]["content"])
        start, new = talk.new()
        if self._differs is not None:
            number = self._log.number(messages)
            self._differs(request, {"talk": number, "from": start, "messages": new, **more})
        if (start, new) != (asked["from"], told):  # what the model was shown then is what it goes on with
            messages.end_with(asked["from"], told)

    def _answered(self, messages: Messages, completion: Completion) -> None:
        talk = self._log.session.talk_of(messages)
        talk.count, talk.reply = len(messages), completion.text
        self._measured = messages, completion.usage.input_tokens

    def _recalled(self, messages: Messages, request: Event, reply: Event, more: dict[str, Any]) -> Completion:
        said = reply.data
        talk = self._log.session.talk_of(messages)
        start, new = talk.new()
        now = {"talk": self._log.number(messages), "from": start, "messages": new, **more}
        if request.says(now):  # writing it once more costs less than reading it
            if self._differs is not None:
                self._differs(request, request)
        else:
            self._recall_request(messages, request, more)
        self._log.reply, self._log.recalled = reply.seq, True
        if said.get("raised"):
            talk.count, talk.reply = len(messages), None
            if said["raised"] == "tools":
                self._known["tool-view"] = ""
                raise ToolsRefusedError(said["text"])
            if said["raised"] == "full":
                raise ContextFullError(said["text"], said["window"])
            if said["raised"] == "moved":
                self._move_to(said["to"])
                raise MovedError(said["text"])
            raise (RequestRefusedError if said.get("refused") else ModelError)(said["text"])
        completion = completion_of(said)
        if self.run is not None:
            self.run.purse.recall(self.name, completion.usage, said, live=self._live is not None)
        self._limited(said)
        self._read(completion)
        self._answered(messages, completion)
        return completion


def _raised(error: ModelError) -> dict[str, Any]:
    """The data of a ``reply`` event for a request that failed."""
    if isinstance(error, ContextFullError):
        return {"raised": "full", "text": str(error), "window": error.window}
    if isinstance(error, BudgetError):
        return {"raised": "budget", "text": str(error)}
    if isinstance(error, MovedError):
        return {"raised": "moved", "text": str(error)}
    if isinstance(error, RequestRefusedError):
        return {"raised": "model", "text": str(error), "refused": True}
    return {"raised": "tools" if isinstance(error, ToolsRefusedError) else "model", "text": str(error)}


def _told(tools: bytes | None, choice: str) -> dict[str, Any]:
    """The data of a ``request`` event about native tools."""
    return {} if tools is None else {"tools": hashlib.sha256(tools).hexdigest()[:16], "choice": choice}
