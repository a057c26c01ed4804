"""Writes down from time to time what a run has come to, and brings a run to there again: its messages, its
calls with their results, and what it has counted.

Knows a run and what of it changes from turn to turn; it must not know how a checkpoint is kept. A run of
which only its events tell everything has none from there on, and what has happened since is repeated when it
goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quoth.agent.reply import CallRecord
from quoth.agent.run.compaction import gauge_of
from quoth.agent.run.run import Run
from quoth.neuro.backends.base import Usage
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.call import ToolResult
from quoth.tools.call.redaction import Redactor
from quoth.tools.history.call_log import secrets_in
from quoth.tools.history.checkpoints import Checkpoints
from quoth.tools.history.event import read_form, written_form
from quoth.tools.lisp.forms import CallForm

EVERY = 100  # turns
# What is the same in a run that goes on, as JSON can say it.
COUNTED = ("step", "faults", "repeated", "forgotten", "weighed", "tried", "must_answer", "known", "looked",
           "unread", "reply_tokens")  # fmt: skip
TAKEN = ("steps_taken", "calls_taken", "tokens_taken", "cost_taken")
_ATOMS = frozenset({str, int, float, bool, type(None)})


def is_plain(value: Any) -> bool:
    """Whether JSON gives the very same value back."""
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
    """Keeps the checkpoints of one run; the last, which it may go on from, is at event ``place``."""

    run: Run
    rows: Checkpoints
    place: int = 0
    calls: int = 0  # that are kept
    messages: int = 0
    talk: int = 1  # the conversation whose messages they are

    def __post_init__(self) -> None:
        run = self.run
        self._log, self._last, self._dialect = run.log, run.state.step, run.dialect
        self._special = self._is_special()
        # Those of earlier runs, which their events hold no more: no checkpoint keeps them.
        self._bygone = run.log.session.transcript.secrets_of(run.session)

    def _is_special(self) -> bool:
        """Whether its past, as far as it is repeated now, is told by its events only."""
        past = self.run.past
        return bool(
            past.tools
            or past.sent
            or past.told
            or any(":raised" in reply.text for _, reply in past.exchanges)
        )

    def turn(self, stimulus: tuple[Any, ...]) -> None:
        """Note a turn, upon which ``stimulus`` comes next; and after some write down how far the run is."""
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
        """What is new since the last checkpoint; None where it cannot be said."""
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

    def go_on(self) -> tuple[Any, ...]:
        """Bring the run to its place; what comes next there, and nothing where it cannot be gone on from."""
        rows = self.rows.read(self.place)
        if not _is_whole(rows) or (self.run.purse.priced and not rows[-1]["priced"]):
            return ()
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
            setattr(run.state, name, last["run"][name])
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
            tool = table.get(made.tool) if made.tool in table else None
            shown = Redactor(made, tool.params if tool else (), table.secrets, by_looks=False).form
            hidden = secrets_in(made, tool, table.secrets)
            self._log.session.transcript.hide(self.run.session, hidden)
        audit = {"tool": made.tool, "status": status, "stage": stage, "ts": times.get(key, "")}
        result = ToolResult(id, made.tool, status, value, message, tuple(effects), audit, follow_up)
        return CallRecord(made, result, shown, call_id, key)


def _call(record: CallRecord) -> list[Any] | None:
    """A call as its events tell of it; None where it is made again when the run goes on."""
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
    """Whether what the model was told, and what is counted, is plain."""
    told = ("messages", "told", "gauge", "usage", "taken", "run", "reply", "stimulus")
    return all(is_plain(said[name]) for name in told)


def _is_whole(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each goes on where the one before has ended."""
    calls = messages = 0
    for row in rows:
        start_calls, start = row["from"]
        if start_calls != calls or start not in (0, messages):
            return False
        calls, messages = calls + len(row["calls"]), start + len(row["messages"])
    return bool(rows)
