"""One run of a session, driven from its stimulus: with the model, or only to the end of the transcript; and
the conversation at its beginning and end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quoth.agent.reply import CallRecord, Reply
from quoth.agent.run.budget import Budget, Purse
from quoth.agent.run.compaction import gauge_of
from quoth.agent.run.host import SessionHost
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.observation import send_follow_ups
from quoth.agent.run.run import Run, RunParts
from quoth.agent.run.spec import OutputType, RunSpec, image_of
from quoth.agent.run.subagents import begin, chosen, services_for
from quoth.agent.run.surroundings import surroundings_of
from quoth.agent.session.drift import changes_of
from quoth.agent.session.past import Differs, Past
from quoth.agent.session.session import RunLog, read_messages
from quoth.neuro.backends.base import Usage
from quoth.neuro.backends.messages import Image, Messages
from quoth.neuro.prompt.dialects import Dialect
from quoth.tools.call.call import Call, Route, ToolResult, new_call
from quoth.tools.call.redaction import Redactor
from quoth.tools.history.checkpoints import Checkpoints
from quoth.tools.history.event import read_form, written_form
from quoth.tools.history.long_results import OnlyNames
from quoth.tools.history.receipts import secrets_in
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.offer import ALL_SPEAKERS
from quoth.tools.registry.table import ToolTable, cognitive_tools

if TYPE_CHECKING:
    from quoth.agent.run.plan_mode import PlanMode


BROKEN_OFF = "The run was broken off, and the conversation continued without it."


class Driver:
    """Drives the runs of one host's session."""

    def __init__(self, host: SessionHost) -> None:
        self.host = host

    def begin_talk(self, told: Mapping[str, Any] | None = None, task: str = "") -> Messages:
        """A new conversation, as the run with this stimulus begins it; by default the next run, with this
        ``task``."""
        stops = self.stops() if told is None else told.get("after-tags") == "stop"
        dialect = replace(self.host.dialect(), stops=stops)
        table = self.offered_in(dialect, {}, self.host.table) if told is None else self.table_of(told)
        instructions = self.host.models.instructions if told is None else told.get("instructions", "")
        here = self._surroundings(table) if told is None else told.get("surroundings", "")
        few = self.few_for(task, dialect, table) if told is None else tuple(told.get("few", ()))
        messages = begin(table, dialect, self.host.models.search, instructions, here, few)
        if told is None:
            self.host.record.talk_of(messages).few = few
            self.host.record.talk_of(messages).surroundings = here
        return messages

    def few_for(self, task: str, dialect: Dialect, table: ToolTable) -> tuple[str, ...]:
        """The few tools that the model sees in full for a task; empty: all, as in a chat."""
        models = self.host.models
        return () if self.host.chat else models.few_of(models.backend(), dialect, table, task)

    def _surroundings(self, table: ToolTable) -> str:
        """The message about the place for the model of a new conversation; empty in a chat, because its
        people are elsewhere."""
        return "" if self.host.chat else surroundings_of(self.host, table)

    def offered_in(self, dialect: Dialect, told: Mapping[str, Any], table: ToolTable) -> ToolTable:
        """The part of a table that the model of a run with this stimulus is shown. All speakers of a chat
        share one tool list."""
        before = {*table.hidden, *told.get("hidden", ())}
        if self.host.chat:
            return self.host.parts.offers.table(table, dialect, ALL_SPEAKERS, "chat", before)
        route: Route = "agent" if "caller" in told else "reply"
        return self.host.parts.offers.table(table, dialect, self.host.user, route, before)

    def stops(self) -> bool:
        """Whether a run ends with the first reply that has calls."""
        return (self.host.models.options.after_tags or ("stop" if self.host.chat else "continue")) == "stop"

    def opened_at(self, name: str) -> Messages:
        """The conversation as it was when a run began."""
        before = self.host.record.messages_before(name)
        begun = self.host.record.stimulus(name)
        messages = (
            read_messages(before, self._image) if before else self.begin_talk(begun.data if begun else None)
        )
        if self.host.record.goes_on(name):  # its earlier messages are recorded
            self.host.record.talk_of(messages).count = len(messages)
        return messages

    async def brought_back(self, name: str, until: int = 0) -> Messages:
        """The conversation up to the end of a run, or to event ``until``, where the next run continued it.
        Ends a run that was broken off; each of its open calls gets a result that says so."""
        past = self.host.record.past(name)
        messages = await self._broken_off(name) if past.end is None else self._as_it_ended(name, until)
        if note := self._note(name):
            messages.append("user", note)
        return messages

    async def _broken_off(self, name: str) -> Messages:
        """End a run that was broken off, where the transcript ends. Returns its conversation."""
        with self.host.record.driven():  # no other process drives it
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
        return image_of(recorded, self.host.pages)

    def _note(self, run: str) -> str:
        """The message for the model about tools that have changed since the last request of the run."""
        asked = self.host.transcript.last(self.host.session, "request", run=run)
        if asked is None:
            return ""
        begun = self.host.record.stimulus(run)
        seen = _hiding(self.host.table, begun.data) if begun else self.host.table
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
        stops: bool = False,
        differs: Differs | None = None,
        output: OutputType | None = None,
        place: int = 0,
    ) -> tuple[Reply, Messages]:
        """Drive a run of this session, or of a sub-agent, from its stimulus, or from a usable checkpoint at
        event ``place``; its ``past`` then begins after that event. Without ``live`` it is driven only to the
        end of the transcript, and ``ends`` records its end there. With ``stops`` it ends at its first reply
        with calls. People in a chat get news of its calls if it is ``live`` or ``tells``. Returns the Reply
        and the messages at its end."""
        from quoth.agent.run.recorder import build_run  # here: a single call needs no run

        assert past.stimulus is not None, "a run begins with a stimulus"
        told, ended = past.stimulus.data, past.end.data if past.end is not None else {}
        host = self.host
        spec, log = RunSpec.read(told), RunLog(host.record, name)
        speaker, talk = spec.speaker or host.user, host.record.talk_of(messages)
        caller = caller_of(told)
        checkpoints = host.transcript.checkpoints(host.session, name)
        kept = self._kept(checkpoints, place, speaker)
        if place and not kept:
            past = host.record.past(name).without_failures()
        offers = partial(self.offered_in, spec.dialect, told)
        table = offers(self.table_of(told)) if live else self.table_of(told)
        context = host.context(spec.task, user=speaker, knowledge=spec.data)
        parts = RunParts(
            door=host.door.narrowed(table),
            backend=host.models.for_run() if live else None,
            context=replace(context, catalog=host.catalog.of(table)),
            services=lambda run: services_for(host, run),
            limits=host.limits if live and caller is None else RunLimits.of(spec.limits),
            funds=host.parts.funds,
            listener=None if ends else host.events.listener,
            pages=host.pages if live else OnlyNames(),
            memory=host.services.memory,
            shows=lambda label: self._shows_block(label, speaker),
            renew=None if host.parts.remote is None else host.renew,
            offers=offers,
            planning=self._plan_of(name) if live and (spec.plan or host.plan) else None,
            may_force=host.models.forces and not spec.chat,
            output=output,
            differs=differs,
            note=self._note(name) if live and past.left else "",
        )
        talk.known, talk.table = self._known(name, messages), talk.table or host.table
        run = build_run(spec, log, past, messages, parts, caller)
        run.stops = run.stops or stops or ended.get("after-tags") == "stop"
        goes_on: tuple[Any, ...] = ()
        if live:
            keeper = Keeper(run, checkpoints, place if kept else 0)
            goes_on = keeper.go_on(kept) if kept else (), keeper.turn
        with host.stoppable(run):
            reply: Reply = await import_module("quoth.agent.loop").run_loop(run, *goes_on)
            reply = await run.settled(reply)
        if live and host.workspace.root != host.workspace.home:
            from quoth.agent.run.worktrees import keep_work  # here: most sessions work in the project

            await keep_work(host.workspace, host.session, spec.task, host.events.note)
        log.live = True  # new events from here on, even if the transcript has answered until here
        if ends:
            waits = any(call.result.status == "pending" for call in reply.calls)
            log.ended(
                replace(reply, status="pending" if waits else "failed", text="", error=BROKEN_OFF),
                run.messages,
            )
        if run.chats and (live or tells):
            await send_follow_ups(run, reply, log)
        talk = self.host.record.talk_of(run.messages)
        talk.known, talk.table = run.state.known, run.whole
        run.let_go()
        return reply, run.messages

    def _plan_of(self, run: str) -> PlanMode:
        from quoth.agent.run.plan_mode import PlanMode  # here: few runs are in plan mode

        host = self.host
        return PlanMode(host.record, run, lambda: host.table, host.workspace, host.parts.call_log)

    def _kept(self, checkpoints: Checkpoints, place: int, user: str) -> Sequence[Mapping[str, Any]]:
        """The data of the checkpoints up to event ``place``; empty if a run cannot continue from them."""
        rows = checkpoints.read(place) if place else []
        if not _is_whole(rows):
            return ()
        purse = Purse(Budget.of(self.host.limits), self.host.parts.funds, user)
        return rows if rows[-1]["priced"] or not purse.priced else ()

    def _shows_block(self, label: str, user: str) -> bool:
        """Whether the rules allow reading the block with that label without a question."""
        tool = self.host.table.find("block") or cognitive_tools.find("block")
        if tool is None or not self.host.policy.strict(tool):
            return True
        args = {"operation": "read", "label": label}
        route = "chat" if self.host.chat else "reply"
        marks = {"route": route, "user": user, "client": self.host.door.client}
        call = new_call(CallForm("block", args), session=self.host.session, **marks)
        return self.host.policy.judge(tool, call, args, self.host.context(user=user)).kind == "allow"

    def _known(self, run: str, messages: Messages) -> dict[str, Any]:
        """The memory blocks that the model of a run knows from its conversation."""
        known = self.host.record.talk_of(messages).known
        return dict(known) if known is not None else self.host.record.known_before(run)

    def table_of(self, told: Mapping[str, Any]) -> ToolTable:
        """The tools of a run with this stimulus, without the tools that were hidden from its model when it
        began; a sub-agent may have only some of the agent's tools."""
        table = self.host.table if told.get("tools") is None else chosen(self.host.table, told["tools"])
        return _hiding(table, told)


def caller_of(told: Mapping[str, Any]) -> Call | None:
    """The call that the run with this stimulus works for, if that is in another session: a sub-agent in a
    worktree keeps its depth and route, also when its own session is resumed."""
    said = told.get("caller")
    return said and Call(said["id"], CallForm("cognitive-loop"), said["route"], depth=said["depth"])


def _hiding(table: ToolTable, told: Mapping[str, Any]) -> ToolTable:
    """The table without the tools that were hidden from the model of a run with this stimulus."""
    return table.hiding({*table.hidden, *told.get("hidden", ())})


# Checkpoints: saves the state of a run from time to time and restores it: its messages, its calls with their
# results, and its counts.
#
# A state that a checkpoint cannot express ends the checkpoints of a run; the events since the last one are
# repeated when the run is resumed.


EVERY = 100  # turns
# The fields of RunState that JSON can express and a resumed run takes over.
COUNTED = ("step", "faults", "repeated", "forgotten", "weighed", "tried", "doubted", "must_answer", "known",
           "looked", "unread", "reply_tokens")  # fmt: skip
TAKEN = ("steps_taken", "calls_taken", "tokens_taken", "cost_taken")
_ATOMS = frozenset({str, int, float, bool, type(None)})


def is_plain(value: Any) -> bool:
    """Whether JSON returns exactly this value."""
    kind = type(value)
    if kind is list:
        return all(map(is_plain, value))
    if kind is dict:
        return all(type(name) is str and is_plain(one) for name, one in value.items())
    return kind in _ATOMS


def _holds(value: Any, secrets: Sequence[str]) -> bool:
    """Whether one of the secrets is in a text of the value."""
    if not secrets:
        return False
    if isinstance(value, str):
        return any(secret in value for secret in secrets)
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    return isinstance(value, (list, tuple)) and any(_holds(one, secrets) for one in value)


@dataclass
class Keeper:
    """Keeps the checkpoints of one run; the last, from which it may be resumed, is at event ``place``."""

    run: Run
    rows: Checkpoints
    place: int = 0
    calls: int = 0  # the number of calls in the checkpoints
    messages: int = 0
    talk: int = 1  # the number of the conversation of its messages

    def __post_init__(self) -> None:
        run = self.run
        self._log, self._last, self._dialect = run.log, run.state.step, run.dialect
        self._special = self._is_special()
        # The secrets of earlier runs, which the events no longer contain: no checkpoint may keep them.
        self._bygone = run.log.session.transcript.secrets_of(run.session)

    def _is_special(self) -> bool:
        """Whether only the events contain the past that is repeated now."""
        past = self.run.past
        return bool(
            past.tools
            or past.sent
            or past.told
            or any(":raised" in reply.text for _, reply in past.exchanges)
        )

    def turn(self, stimulus: tuple[Any, ...]) -> None:
        """Note the end of a turn; ``stimulus`` is the next one. Every EVERY turns, write a checkpoint."""
        run = self.run
        if run.state.step - self._last < EVERY or run.recalling:
            return
        if (said := self._said(stimulus)) is None:
            self._special = True
            return
        if place := self.rows.add(said, self.place):
            self.place, self._last, self.talk = place, run.state.step, said["talk"]
            self.calls, self.messages = len(run.state.calls), len(run.messages)

    def _said(self, stimulus: tuple[Any, ...]) -> dict[str, Any] | None:
        """The changes since the last checkpoint; None if a checkpoint cannot express them."""
        run, log = self.run, self._log
        if self._special or not log.plain or log.broken or run.dialect != self._dialect:
            return None
        if run.state.sent or run.state.last_words or run.parts.planning:
            return None
        talk, number = log.session.talk_of(run.messages), log.number(run.messages)
        start = self.messages if number == self.talk else 0
        calls = [_call(record) for record in run.state.calls[self.calls :]]
        said = {
            "calls": calls,
            "from": [self.calls, start],
            "messages": run.messages.since(start),
            "talk": number,
            "before": run.messages.before,
            "told": [talk.count, talk.reply],
            "gauge": gauge_of(run).counts,
            "usage": vars(run.state.usage),
            "taken": {name: getattr(run.budget, name) for name in TAKEN},
            "priced": run.purse.priced,
            "run": {name: getattr(run.state, name) for name in COUNTED},
            "avoided": sorted(run.state.avoided),
            "reply": log.reply,
            "stimulus": [list(message) for message in stimulus],
        }
        images = any(message.get("images") for message in run.messages.since(start))
        plain = None not in calls and not images and _is_written(said)
        return said if plain and not _holds(said, self._bygone) else None

    def go_on(self, rows: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
        """Restore the run from the checkpoints up to its place. Returns the next stimulus."""
        run, log, last = self.run, self._log, rows[-1]
        talk = log.session.talk_of(run.messages)
        first = max(place for place, row in enumerate(rows) if not row["from"][1])
        messages = Messages.of((one for row in rows[first:] for one in row["messages"]), last["before"])
        log.session.let_go(run.messages)
        log.numbers = {-number: number for number in range(1, last["talk"])}
        run.messages, log.reply = messages, last["reply"]
        now = log.session.talk_of(messages)
        now.known, now.table, now.surroundings = talk.known, talk.table, talk.surroundings
        now.count, now.reply = last["told"]
        self.talk = log.number(messages)
        times = self.rows.times(self.place)
        run.state.calls.extend(self._record(said, times) for row in rows for said in row["calls"])
        for name in COUNTED:
            setattr(run.state, name, last["run"].get(name, getattr(run.state, name)))
        run.state.avoided = set(last["avoided"])
        run.state.seen = {record.form.digest: record for record in run.state.calls[run.state.forgotten :]}
        run.state.usage = Usage(**last["usage"])
        for name in TAKEN:
            setattr(run.budget, name, last["taken"][name])
        run.budget.earlier = run.state.usage.seconds
        gauge_of(run).go_on(messages, last["gauge"])
        self.calls, self.messages, self._last = len(run.state.calls), len(messages), run.state.step
        return tuple(tuple(message) for message in last["stimulus"])

    def _record(self, said: Sequence[Any], times: Mapping[str, str]) -> CallRecord:
        key, call_id, form, id, status, stage, value, message, effects, follow_up = said
        made = CallForm(form[0], form[1], tuple(form[2])) if type(form) is list else read_form(form["form"])
        shown, table = made, self.run.door.table
        if table.secrets:
            shown = Redactor.of(made, table, by_looks=False).form
            hidden = secrets_in(made, table.find(made.tool), table.secrets)
            self._log.session.transcript.hide(self.run.session, hidden)
        audit = {"tool": made.tool, "status": status, "stage": stage, "ts": times.get(key, "")}
        result = ToolResult(id, made.tool, status, value, message, tuple(effects), audit, follow_up)
        return CallRecord(made, result, shown, call_id, key)


def _call(record: CallRecord) -> list[Any] | None:
    """A call as its events describe it; None if a resumed run runs it again."""
    form, result = record.form, record.result
    if result.status in ("pending", "cancelled") or not is_plain(result.value):
        return None
    args = dict(form.args)
    plain = is_plain(args) and all(map(is_plain, form.positional))
    told = [form.tool, args, list(form.positional)] if plain else {"form": written_form(form)}
    stage, value = result.audit.get("stage", "body"), result.value if result.ok else None
    follow_up = result.follow_up if result.ok else result.message or None
    effects = list(result.side_effects)
    return [record.key, record.call_id, told, result.id, result.status, stage, value, result.message, effects,
            follow_up]  # fmt: skip


def _is_written(said: Mapping[str, Any]) -> bool:
    """Whether the messages for the model and the counts are plain data."""
    told = ("messages", "told", "gauge", "usage", "taken", "run", "reply", "stimulus")
    return all(is_plain(said[name]) for name in told)


def _is_whole(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each checkpoint begins where the one before ends."""
    calls = messages = 0
    for row in rows:
        start_calls, start = row["from"]
        if start_calls != calls or start not in (0, messages):
            return False
        calls, messages = calls + len(row["calls"]), start + len(row["messages"])
    return bool(rows)
