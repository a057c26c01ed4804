"""One run of a session, driven from its stimulus: with the model, or only as far as the transcript goes; and
the conversation that it begins or ends with.

Knows a host and its session; it must not know who begins or resumes a run, commands or the public face.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quoth.agent.reply import Reply
from quoth.agent.run.host import SessionHost
from quoth.agent.run.messages import send_follow_ups
from quoth.agent.run.run import AfterTags, Run, RunLimits
from quoth.agent.run.subagents import begin, chosen, services_for
from quoth.agent.run.surroundings import surroundings_of
from quoth.agent.session.drift import changes_of
from quoth.agent.session.past import Differs, Past
from quoth.agent.session.run_log import RunLog
from quoth.agent.session.session import read_messages
from quoth.neuro.backends.base import RequestOptions
from quoth.neuro.backends.messages import Image, Messages
from quoth.neuro.prompt.dialects import Dialect, dialect_named
from quoth.tools.call.call import Route, new_call
from quoth.tools.call.services import NO_SERVICES
from quoth.tools.history.long_results import OnlyNames
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.offer import ALL_SPEAKERS
from quoth.tools.registry.table import ToolTable, cognitive_tools

if TYPE_CHECKING:
    from quoth.agent.run.output import Output

BROKEN_OFF = "The run was broken off, and the conversation went on without it."


class Driver:
    """Drives the runs of one host's session."""

    def __init__(self, host: SessionHost) -> None:
        self.host = host

    def begin_talk(self, told: Mapping[str, Any] | None = None) -> Messages:
        """A new conversation, as a run with this stimulus begins it; by default the next run."""
        stops = self.stops() if told is None else told.get("after-tags") == "stop"
        dialect = replace(self.host.dialect(), stops=stops)
        table = self.offered_in(dialect, {}, self.host.table) if told is None else self.table_of(told)
        instructions = self.host.models.instructions if told is None else told.get("instructions", "")
        here = self._surroundings(table) if told is None else told.get("surroundings", "")
        messages = begin(table, dialect, self.host.models.search, instructions, here)
        if told is None:
            self.host.record.talk_of(messages).surroundings = here
        return messages

    def _surroundings(self, table: ToolTable) -> str:
        """What the model of a new conversation is told of the place; people in a chat are elsewhere."""
        return "" if self.host.chat else surroundings_of(self.host, table)

    def offered_in(self, dialect: Dialect, told: Mapping[str, Any], table: ToolTable) -> ToolTable:
        """A table as the model of a run with this stimulus is shown it. The belt of a chat is shared by all
        who speak there."""
        before = told.get("hidden", ())
        if self.host.chat:
            return self.host.parts.offers.table(table, dialect, ALL_SPEAKERS, "chat", before)
        return self.host.parts.offers.table(table, dialect, self.host.user, "reply", before)

    def stops(self) -> bool:
        """Whether a run ends with the first reply that has calls."""
        return (self.host.models.options.after_tags or ("stop" if self.host.chat else "continue")) == "stop"

    def opened_at(self, name: str) -> Messages:
        """The conversation as it was when a run began."""
        before = self.host.record.messages_before(name)
        begun = self.host.transcript.last(self.host.session, "stimulus", run=name)
        messages = (
            read_messages(before, self._image) if before else self.begin_talk(begun.data if begun else None)
        )
        if self.host.record.goes_on(name):  # what it went on with is recorded
            self.host.record.talk_of(messages).count = len(messages)
        return messages

    async def brought_back(self, name: str, until: int = 0) -> Messages:
        """The conversation up to the end of a run, or to event ``until``, at which the next one went on from
        it. A run that was broken off is ended here; each of its calls gets a result that says so."""
        past = self.host.record.past(name)
        messages = await self._broken_off(name) if past.end is None else self._as_it_ended(name, until)
        if note := self._note(name):
            messages.append("user", note)
        return messages

    async def _broken_off(self, name: str) -> Messages:
        """End a run that was broken off where the transcript ends; its conversation."""
        with self.host.record.driven():  # nobody is at it
            past = self.host.record.past(name)
            if past.end is None:
                _, messages = await self.go(name, past, self.opened_at(name), live=False, ends=True)
                return messages
        return self._as_it_ended(name)

    def _as_it_ended(self, name: str, until: int = 0) -> Messages:
        """The conversation of a run that has ended, read from the transcript."""
        messages = read_messages(self.host.record.conversation(name, until), self._image)
        self.host.record.talk_of(messages).count = len(messages)
        return messages

    def _image(self, recorded: Mapping[str, Any]) -> Image:
        from quoth.agent.run.attachments import image_of

        return image_of(recorded, self.host.pages)

    def _note(self, run: str) -> str:
        """The sentences that tell the model of a run which tools have changed since its last request."""
        asked = self.host.transcript.last(self.host.session, "request", run=run)
        if asked is None:
            return ""
        begun = self.host.transcript.last(self.host.session, "stimulus", run=run)
        seen = self.host.table.hiding(begun.data.get("hidden", ())) if begun else self.host.table
        return changes_of(self.host.record.given(before=asked.seq), self.host.given()).told(seen)

    async def go(
        self,
        name: str,
        past: Past,
        messages: Messages,
        *,
        live: bool = True,
        ends: bool = False,
        tells: bool = False,
        after_tags: AfterTags | None = None,
        differs: Differs | None = None,
        output: Output | None = None,
        place: int = 0,
    ) -> tuple[Reply, Messages]:
        """Drive a run of this session, or of a sub-agent, from its stimulus, or from its checkpoint at event
        ``place``, behind which its ``past`` begins then; without ``live`` only to where the transcript ends;
        ``ends`` then records its end. People in a chat are told of its calls if it is ``live`` or ``tells``.
        Returns the messages at its end too."""
        from quoth.agent.run.attachments import images_of, texts_of  # here: a single call makes no run
        from quoth.agent.run.build import build_run
        from quoth.agent.run.output import Output

        assert past.stimulus is not None, "a run begins with a stimulus"
        told, ended = past.stimulus.data, past.end.data if past.end is not None else {}
        log, files = RunLog(self.host.record, name), told.get("files", ())
        if output is None and "output" in told:
            output = Output.known_by(told["output"])
        speaker = told.get("speaker") or self.host.user
        after = told.get("after-tags", "continue")
        dialect = replace(dialect_named(told["dialect"], in_text=told["in-text"]), stops=after == "stop")
        offers = partial(self.offered_in, dialect, told)
        table = offers(self.table_of(told)) if live else self.table_of(told)
        context = self.host.context(
            told["text"], user=speaker, knowledge=told.get("data", ""), services=NO_SERVICES
        )
        run = build_run(
            log,
            past,
            told["text"],
            door=self.host.door.narrowed(table),
            backend=self.host.models.for_run() if live else None,
            context=replace(context, catalog=self.host.catalog.of(table)),
            services=lambda run: services_for(self.host, run),
            messages=messages,
            limits=self.host.limits if live else RunLimits.of(told["limits"]),
            pages=self.host.pages if live else OnlyNames(),
            data="\n\n".join(
                filter(
                    None,
                    [told.get("news"), told.get("data"), *texts_of(files), output.wish if output else ""],
                )
            ),
            images=images_of(files, self.host.pages if live else None),
            output=output,
            speaker=speaker,
            route="chat" if "chat" in told else "reply",
            after_tags=after_tags or ended.get("after-tags") or after,
            turn=told.get("turn", ""),
            must_act=told["must-act"],
            may_force=self.host.models.forces and "chat" not in told,
            instructions=told.get("instructions", ""),
            surroundings=told.get("surroundings", ""),
            options=_request_options(told),
            dialect=dialect,
            search=told["search"],
            listener=None if ends else self.host.events.listener,
            differs=differs,
            note=self._note(name) if live and past.left else "",
            memory=self.host.services.memory,
            shows=lambda label: self._shows_block(label, speaker),
            known=self._known(name, messages),
            renew=None if self.host.parts.remote is None else self.host.renew,
            offers=offers,
            whole=self.host.record.talk_of(messages).table or self.host.table,
            funds=self.host.parts.funds,
        )
        if live and (told.get("plan") or self.host.plan):
            from quoth.agent.run.plan_mode import PlanMode  # here: most runs make their calls

            host = self.host
            run.planning = PlanMode(
                host.record, name, lambda: host.table, host.workspace, host.parts.call_log
            )
            run.context = replace(run.context, planning=run.planning)
        first = self._keep_checkpoints(run, place) if live else ()
        with self.host.stoppable(run):
            reply: Reply = await import_module("quoth.agent.loop").run_loop(run, first)
            reply = await run.settled(reply)
        if ends:
            waits = any(call.result.status == "pending" for call in reply.calls)
            log.ended(
                replace(reply, status="pending" if waits else "failed", text="", error=BROKEN_OFF),
                run.messages,
            )
        if run.chats and (live or tells):
            await send_follow_ups(run, reply, log)
        talk = self.host.record.talk_of(run.messages)
        talk.known, talk.table = run.known, run.whole
        run.let_go()
        return reply, run.messages

    def _keep_checkpoints(self, run: Run, place: int) -> tuple[Any, ...]:
        """Have the run keep checkpoints, and go on from the one at event ``place``; what comes next there."""
        from quoth.agent.run.checkpoint import Keeper

        keeper = Keeper(run, self.host.transcript.checkpoints(self.host.session, run.name), place)
        run.checkpoint = keeper.turn
        if not place:
            return ()
        if not (first := keeper.go_on()) and run.past is not None:  # then all of its past is repeated
            vars(run.past).update(vars(self.host.record.past(run.name).without_failures()))
        return first

    def _shows_block(self, label: str, user: str) -> bool:
        """Whether the rules let the block of that label be read without asking anybody."""
        tool = next(
            (tools.get("block") for tools in (self.host.table, cognitive_tools) if "block" in tools), None
        )
        if tool is None or not self.host.policy.strict(tool):
            return True
        args = {"operation": "read", "label": label}
        route: Route = "chat" if self.host.chat else "reply"
        call = new_call(CallForm("block", args), route=route, user=user, session=self.host.session)
        return self.host.policy.judge(tool, call, args, self.host.context(user=user)).kind == "allow"

    def _known(self, run: str, messages: Messages) -> dict[str, Any]:
        """The memory blocks that the model of a run knows from its conversation so far."""
        known = self.host.record.talk_of(messages).known
        return dict(known) if known is not None else self.host.record.known_before(run)

    def table_of(self, told: Mapping[str, Any]) -> ToolTable:
        """The tools of a run with this stimulus, hiding those that its model was not shown when it began; a
        sub-agent may have only some of the agent's."""
        table = self.host.table if told.get("tools") is None else chosen(self.host.table, told["tools"])
        return table.hiding(told.get("hidden", ()))


def _request_options(told: Mapping[str, Any]) -> RequestOptions | None:
    """What each request of a run with this stimulus wants beyond the conversation."""
    return RequestOptions(temperature=told["temperature"]) if "temperature" in told else None
