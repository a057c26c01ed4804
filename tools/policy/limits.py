"""The default policy, by declared effects only; and limits: cooldowns, daily limits and quotas, counted in
the store and so across restarts. Windows and sentences are the same for uses that are counted in Redis
(tools/shared/limits.py).

When a call takes a slot, and how long it keeps it:

- The limits stage reserves a slot for every call of a limited tool, atomically: of concurrent calls, in
  tasks, threads or processes on one store, no more pass than there are slots.
- A call that a later stage ends before its body (policy, guard, gate, consent denied or pending, cancelled)
  releases its slot. While a person is being asked, the slot stays reserved.
- When the body begins, the call is counted, even if it fails, times out or is cancelled. Calls that do not
  reach the limits stage (unknown, invalid) and refused calls are not counted.
- A slot whose process died before releasing it stays reserved. It is not known whether the body had begun, so
  the slot counts until its day, window or cooldown is over.
- A slot is written at once, and is on disk with the record of its call: before the body begins if it does
  more than read, otherwise before its result is returned.
- A call that waited in its body and is resumed keeps its slot; it counts as one call.
- A call counts in the day or window in which its slot was reserved. A cooldown runs from the start of the
  body, or from the reservation while the body has not started.

A day is a calendar day in the configured time zone, 23 or 25 hours long when clocks change; a week, an hour,
a minute or a number of seconds is a sliding window that ends now. Uses are counted by the tool's name.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quoth.tools.call.call import Call, RemainingQuota, Verdict, ask
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import Refusal, Reservation
from quoth.tools.lisp.forms import kebab
from quoth.tools.policy.spending import SECONDS, By, Calendar, Cooldown, Quota, Rule, account_of
from quoth.tools.registry.tool import HARMLESS, CognitiveTool
from quoth.tools.text import rounded_time

if TYPE_CHECKING:
    from quoth.tools.storage.database import Statement, Store


# The default policy, which judges a call by its tool's declared effects only.


READING = frozenset({"reads"})
OWN = frozenset({"reads", "writes", "deletes", "memory", "asks"})  # effects on the person's own data
# Silent effects have sentences that say why no approval is needed if no rule decides.
SILENT = {
    "memory": "it changes memory, within the blocks' permissions",
    "messages": "it sends a message",
    "asks": "it asks the person a question",
}
IN_WORDS = {
    "writes": "it writes files",
    "runs": "it runs a program",
    "net": "it uses the network",
    "deletes": "it deletes",
    "pays": "it pays",
}


class EffectsPolicy:
    """The default policy: a tool that reads, changes memory, sends messages, asks questions, or has no effect
    is allowed; any other needs approval."""

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict:
        return by_effects(tool)

    def judge_unknown(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext, depends: str
    ) -> Verdict:
        return by_effects(tool)


def by_effects(tool: CognitiveTool) -> Verdict:
    """The default verdict on any call of this tool."""
    words = IN_WORDS if tool.served is None else IN_WORDS | {"writes": "it may change something"}
    if felt := [words[effect] for effect in tool.effects if effect in words]:
        return ask(" and ".join(felt))
    if quiet := [SILENT[effect] for effect in tool.effects if effect in SILENT]:
        return Verdict("allow", " and ".join(quiet))
    return Verdict("allow", "it only reads" if tool.effects else "it touches nothing")


def with_maker(tool: CognitiveTool, reason: str) -> str:
    """The reason why a person is asked about a call of this tool; also names the worker or MCP server that
    runs it, and the server's own warning."""
    if tool.served is not None:
        warned = ", which says that it may destroy something" if "destructiveHint" in tool.served.says else ""
        return f"{reason}; the MCP server {tool.served.server} runs this call{warned}"
    return f"{reason}; a worker of {tool.remote} runs this call" if tool.remote else reason


def changes_nothing(tool: CognitiveTool) -> bool:
    """Whether the tool at most reads and asks a person: running its call twice does no harm."""
    return HARMLESS.issuperset(tool.effects)


def is_quiet(tool: CognitiveTool) -> bool:
    """Whether a task need not ask for the tool: it changes nothing, or it ships and keeps to the person's own
    memory and to messages."""
    return changes_nothing(tool) or (tool.ships and {"reads", *SILENT}.issuperset(tool.effects))


def is_foreign(tool: CognitiveTool) -> bool:
    """Whether results of the tool may contain text of others, from outside of the workspace."""
    elsewhere = tool.served is not None or bool(tool.remote) or "net" in tool.effects
    return elsewhere or (not tool.ships and bool(tool.effects))


def is_of_own_files(tool: CognitiveTool) -> bool:
    """Whether its results are the person's own files and memory, which a model may write back whole."""
    return tool.ships and OWN.issuperset(tool.effects)


def only_reads(tool: CognitiveTool) -> bool:
    """Whether a dry run may call this tool: it only reads, and is not expensive."""
    return READING.issuperset(tool.effects) and tool.cost != "expensive"


class Seen(NamedTuple):
    """The count of one rule: its uses, and the time of the use that must leave the window before there is
    room (None: there is room)."""

    used: int
    leaves: float | None = None


class Counted(NamedTuple):
    """The counts of all rules at one moment, and the slot, if one was reserved. ``held``: the call already
    has a slot."""

    now: float
    seen: Sequence[Seen] = ()
    place: Reservation | None = None
    held: bool = False


class _LimitResult(NamedTuple):
    """The result of one limit: when a call is possible again (None: now; infinity: never), and a text."""

    room_at: float | None
    words: str


class CountedLimits(Calendar, ABC):
    """The door's Limits: rules, windows and sentences, independent of where the uses are counted.

    ``rules`` apply in addition to the tools' own ``:cooldown`` and ``:daily-limit``. ``zone`` is the time
    zone of calendar days and of times in messages. Raises UsageError for an unknown zone.
    """

    def __init__(self, rules: Iterable[Rule] = (), *, zone: str = "UTC") -> None:
        super().__init__(zone)
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            self._rules.setdefault(kebab(rule.tool), []).append(rule)

    @abstractmethod
    def _count(self, tool: str, call: Call, rules: Sequence[Rule], *, take: bool) -> Counted:
        """Count the uses for each rule, and with ``take`` reserve a slot if there is room for all of them, in
        one step: no other process counts or reserves in between."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal:
        """Reserve a slot for the call, or return the reason why none is free."""
        rules = self._rules_for(tool)
        if not rules:
            return Reservation()
        counted = self._count(tool.name, call, rules, take=True)
        if counted.held:
            return Reservation()  # a resumed call has its slot
        found = [self._judge(*one, counted.now) for one in zip(rules, counted.seen, strict=True)]
        full = [one for one in found if one.room_at is not None]
        if full or counted.place is None:
            last = max(full, key=lambda one: one.room_at or 0)
            return Refusal(last.words, None if last.room_at == math.inf else last.room_at)
        counted.place.left = "; ".join(one.words for one in found)
        return counted.place

    def left(self, tool: CognitiveTool, call: Call) -> Sequence[RemainingQuota]:
        """The calls like this one that each limit still allows: their number and a text, or only a text for
        a cooldown. It reserves nothing."""
        rules = self._rules_for(tool)
        if not rules:
            return []
        counted = self._count(tool.name, call, rules, take=False)
        return [
            RemainingQuota(None, self._judge(rule, seen, counted.now).words)
            if isinstance(rule, Cooldown)
            else RemainingQuota(max(0, rule.count - seen.used), f"of {rule.count} left {_span(rule)}")
            for rule, seen in zip(rules, counted.seen, strict=True)
        ]

    def _rules_for(self, tool: CognitiveTool) -> list[Rule]:
        own: list[Rule] = []
        if tool.cooldown:
            own.append(Cooldown(tool.name, tool.cooldown))
        if tool.daily_limit:
            own.append(Quota(tool.name, math.floor(tool.daily_limit)))
        return own + self._rules.get(tool.name, [])

    def _judge(self, rule: Rule, seen: Seen, now: float) -> _LimitResult:
        if isinstance(rule, Cooldown):
            span = f"{rounded_time(rule.seconds)}{_BY[rule.by]}"
            if seen.leaves is None:
                return _LimitResult(None, f"next after a cooldown of {span}")
            room_at = seen.leaves + rule.seconds
            return _LimitResult(room_at, f"its cooldown is {span}, {self.next_at(room_at, now)}")
        span = _span(rule)
        if seen.used < rule.count:
            return _LimitResult(None, f"{rule.count - seen.used - 1} of {rule.count} left {span}")
        if not rule.count or seen.leaves is None:
            return _LimitResult(math.inf, f"its quota {span} is 0")
        # In a sliding window there is room when enough of the earliest uses have left it.
        length = length_of(rule)
        room_at = self.day(now)[1] if length is None else seen.leaves + length
        return _LimitResult(room_at, f"{seen.used} of {rule.count} used {span}, {self.next_at(room_at, now)}")


class StoreLimits(CountedLimits):
    """Limits counted in a store. ``store`` is opened at the first call of a limited tool; ``clock`` returns
    seconds since 1970."""

    def __init__(
        self,
        store: Callable[[], Store],
        rules: Iterable[Rule] = (),
        *,
        clock: Callable[[], float] = time.time,
        zone: str = "UTC",
    ) -> None:
        super().__init__(rules, zone=zone)
        self._store = store
        self._clock = clock

    def _count(self, tool: str, call: Call, rules: Sequence[Rule], *, take: bool) -> Counted:
        store, key = self._store(), call.key or call.id
        with store.transaction(synced=False) as run:
            if take and call.resumed and run("SELECT 1 FROM uses WHERE tool = ? AND call = ?", (tool, key)):
                return Counted(0.0, held=True)
            now = self._clock()  # within the transaction: later places have later times
            seen = [self._seen(run, rule, tool, call, now) for rule in rules]
            if not take or any(one.used >= count_of(rule) for rule, one in zip(rules, seen, strict=True)):
                return Counted(now, seen)
            ((place,),) = run(
                "INSERT INTO uses (tool, user, session, call, at) VALUES (?, ?, ?, ?, ?) RETURNING id",
                (tool, account_of(call.user), call.session, key, now),
            )
        return Counted(now, seen, _Place(store, self._clock, place))

    def _seen(self, run: Statement, rule: Rule, tool: str, call: Call, now: float) -> Seen:
        length, count = length_of(rule), count_of(rule)
        if length is None:
            start, before = self.day(now)
            after = math.nextafter(start, -math.inf)  # midnight itself belongs to the day it begins
        else:  # a use further in the future than the window is long was stamped by a wrong clock
            after, before = now - length, now + length
        at = "coalesce(begun, at)" if isinstance(rule, Cooldown) else "at"
        who = (whom(rule.by, call),) if rule.by != "all" else ()
        sql = f"SELECT {at} AS t FROM uses WHERE tool = ?{_SAME[rule.by]} AND t > ? AND t < ? ORDER BY t"  # noqa: S608
        used = run(sql, (tool, *who, after, before))
        return Seen(len(used), float(used[-count][0]) if 0 < count <= len(used) else None)


class _Place(Reservation):
    """A reserved slot, a row of ``uses``. The row stays until it is released, even if this process dies."""

    def __init__(self, store: Store, clock: Callable[[], float], place: int) -> None:
        self._store = store
        self._clock = clock
        self._id = place
        self._settled = False

    def commit(self) -> None:
        with self._store.transaction(synced=False) as run:
            run("UPDATE uses SET begun = ? WHERE id = ?", (self._clock(), self._id))
        self._settled = True

    def release(self) -> None:
        if not self._settled:
            with self._store.transaction(synced=False) as run:
                run("DELETE FROM uses WHERE id = ? AND begun IS NULL", (self._id,))
            self._settled = True


_PERIOD: dict[object, str] = {
    "week": "within a week",
    "day": "today",
    "hour": "within an hour",
    "minute": "within a minute",
}
_BY = {"user": "", "session": " in this session", "all": " by all users"}
_SAME = {"user": " AND user = ?", "session": " AND session = ?", "all": ""}


def count_of(rule: Rule) -> int:
    """How many uses a rule allows within its window."""
    return 1 if isinstance(rule, Cooldown) else rule.count


def length_of(rule: Rule) -> float | None:
    """How long the sliding window of a rule is, in seconds; None for a calendar day."""
    if isinstance(rule, Cooldown):
        return rule.seconds
    if rule.per == "day":
        return None
    return SECONDS[rule.per] if isinstance(rule.per, str) else float(rule.per)


def whom(by: By, call: Call) -> str:
    """The user or session whose uses a rule counts for a call; empty for all users."""
    return {"user": account_of(call.user), "session": call.session, "all": ""}[by]


def _span(rule: Quota) -> str:
    length = length_of(rule)
    return f"{_PERIOD.get(rule.per) or f'within {rounded_time(length or 0)}'}{_BY[rule.by]}"
