"""The observations for the model: results and failures of tools, denied calls, replies that were unreadable
or cut off, and the line that replaces a cleared result. neuro/prompt/dialects.py makes messages of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from quoth.agent.reply import CallRecord, FollowUp, Reply
from quoth.agent.run.limits import CALLING
from quoth.agent.run.run import Run, Turn
from quoth.agent.run.spec import images_message
from quoth.agent.session.past import SentMessage
from quoth.agent.session.session import RunLog
from quoth.agent.terminal.forms import Aside, shortened, show_value
from quoth.neuro.backends.base import takes_images
from quoth.neuro.reading.result import FoundCall
from quoth.tools.call.context import running_context
from quoth.tools.call.images import images_in
from quoth.tools.call.services import USER, Router
from quoth.tools.errors import ToolError
from quoth.tools.history.long_results import more_form
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import ToolTable
from quoth.tools.text import short

LOOK_BACK = 40  # calls

# Repeated calls


@dataclass
class Repeats:
    """The calls of a turn that the run had run before."""

    records: list[CallRecord] = field(default_factory=list)  # repeated calls without an effect now
    same: set[str] = field(default_factory=set)  # keys of repeatable calls with the same result
    stuck: CallRecord | None = None  # a call repeated more often than the run allows


def find_repeats(turn: Turn, run: Run) -> Repeats:
    """The repeated calls of a turn, counted in the state of the run."""
    state, limit = run.state, run.limits.repeats
    # One record for each different call: the same call twice in one reply does not count as repeated.
    made = {call_digest(record.form, run): record for record in turn.records}
    # A call that has changed something now does not count as repeated: it had failed before.
    again = {
        one: record for one, record in made.items() if one in turn.old and not record.result.side_effects
    }
    same = same_results(turn.records, state.calls, run.door.table)
    found = Repeats(list(again.values()), set(same))
    for digest, record in again.items():
        state.repeated[digest] = state.repeated.get(digest, 0) + 1
        if state.repeated[digest] >= limit:
            found.stuck = record
    if found.stuck is None and not run.past.answers:  # a recorded run continues where it once did
        found.stuck = next((one for one in turn.records if same.get(one.key, 0) >= limit), None)
    return found


def known_calls(calls: Sequence[FoundCall], run: Run) -> set[str]:
    """The digests of the calls of a reply that the run had run before."""
    return {digest for found in calls if (digest := call_digest(found.form, run)) in run.state.seen}


def remember(record: CallRecord, run: Run) -> CallRecord:
    """Keep a record, send its event, and return it. A call with side effects makes earlier results out of
    date, so they are forgotten."""
    state, digest = run.state, call_digest(record.form, run)
    state.calls.append(record)
    if record.result.side_effects:
        state.seen.clear()
        state.repeated.clear()
        state.forgotten = len(state.calls) - 1
    state.seen[digest] = record
    run.tell("result", record, record.result.id)
    return record


def call_digest(form: CallForm, run: Run) -> str:
    """The identity of a call, independent of the order of its arguments. Each call of a repeatable tool has
    its own."""
    table = run.door.table
    repeatable = form.tool in table and table.get(form.tool).allow_repeat
    return f"{form.digest}-{len(run.state.calls)}" if repeatable else form.digest


def same_results(
    records: Sequence[CallRecord], calls: Sequence[CallRecord], table: ToolTable
) -> dict[str, int]:
    """For the records of a turn, which are the last of ``calls``: the number of earlier turns with the same
    call and the same result, by the key of the call. Counts repeatable calls, except one that reports that
    its program still runs."""
    end = len(calls) - len(records)
    earlier = calls[max(0, end - LOOK_BACK) : end]
    counted = (one for one in records if _may_be_repeated(one, table) and not _still_runs(one))
    return {one.key: turns for one in counted if (turns := _turns_with(one, earlier))}


def _turns_with(record: CallRecord, earlier: Sequence[CallRecord]) -> int:
    """The number of turns with this call and this result since a new call changed something."""
    turns = set[str]()
    for place in range(len(earlier) - 1, -1, -1):
        before = earlier[place]
        if _is_same(before, record):
            turns.add(before.key.rpartition(".")[0])
        elif before.form.digest == record.form.digest:
            break  # it had another result
        elif before.result.side_effects and not any(_is_same(one, before) for one in earlier[:place]):
            break
    return len(turns)


def _may_be_repeated(record: CallRecord, table: ToolTable) -> bool:
    tool = record.form.tool
    return tool in table and table.get(tool).allow_repeat


def _still_runs(record: CallRecord) -> bool:
    value = record.result.value
    return isinstance(value, dict) and value.get("running") is True


def _is_same(one: CallRecord, other: CallRecord) -> bool:
    a, b = one.result, other.result
    return (
        one.form.digest == other.form.digest
        and a.status == b.status
        and a.value == b.value
        and (a.ok or a.message == b.message)  # an ok message may contain the number of calls left
    )


def is_informative(record: CallRecord) -> bool:
    """Whether a call is ok with a result that is not empty and not a search without hits, or has become a
    step of a plan."""
    result = record.result
    if result.audit.get("stage") == "plan":
        return True
    return result.ok and result.value not in (None, "", [], {}) and not is_hitless(result.value)


def is_hitless(value: Any) -> bool:
    return isinstance(value, dict) and value.get("hits") == []


AFTER_RESULT = "If you know it now, say it in one plain sentence. If not, send the next call."
AFTER_RESULT_JSON = "If you know it now, answer with the JSON alone. If not, send the next call."
NOW_ANSWER_JSON = "Answer with the JSON now, from the results you have."
NOW_ANSWER = "Answer this in one plain sentence now, from the results you have."
BEGUN = "It had begun when the session was broken off, and how it ended is not known."
NOT_MADE = "It was not made: the session was broken off before it."
UNSEEN = "\nYou read text only: what it shows cannot be shown to you."
SAME_AGAIN = "\nYou have made this very call before and its result was the same. Do something else."
EMPTY = {
    "": "an empty text",
    "[]": "an empty list: nothing was found; look for something else",
    "None": "nothing",
}
REFUSAL = 1_000  # maximum of quoted characters of a model's refusal
LINE = 60  # characters about a cleared result, besides its call

# Results


def result_text(
    record: CallRecord, limit: int, aside: Aside = lambda text, head: "", called: str = ""
) -> str:
    """The observation of one call, in the same form for every status. ``called`` is the dialect's short name
    of the call; by default the observation repeats the form."""
    result = record.result
    form = called or f"{shortened(str(record.form), 200)} ->"
    if not result.ok:
        return f"{form} {result.status}: {shortened(result.message, limit, aside)}"
    value = shortened(show_value(result.value), limit, aside)
    many = f", {len(result.value)} items" if isinstance(result.value, list) and result.value else ""
    note = f"\n({result.message})" if result.message else ""
    return f"{form} ok{many}:\n{EMPTY.get(value, value)}{note}"


def waited(record: CallRecord, limit: int) -> str:
    """The later observation of a call that waited for a person while the conversation continued."""
    return result_text(record, limit, called=f"{shortened(str(record.form), 200)}, which waited, ->")


_RESULT = re.compile(r"(.{1,600}?) -> ([a-z]+(?:, \d+ items)?):", re.DOTALL)  # the beginning of a result_text


def call_observation(record: CallRecord, run: Run, again: bool) -> str:
    """The observation of one call of a run. ``again`` adds that the same call had the same result before."""
    called = run.dialect.result_head(record.form, run.door.table)
    told = result_text(record, run.limits.result_chars, part_shown(run), called)
    if images_in(record.result.value) and not takes_images(run.backend):
        told += UNSEEN
    return told + SAME_AGAIN if again else told


def result_images(records: Iterable[CallRecord], run: Run) -> list[Any]:
    """The message with the images in the results of calls, for a model that reads images."""
    values = [record.result.value for record in records if images_in(record.result.value)]
    return images_message(values, run.parts.pages) if values and takes_images(run.backend) else []


def part_shown(run: Run) -> Aside:
    """A function that describes the gap in a shortened text, given the text and the length of its head. It
    names the call that shows the rest, if there is one."""

    def say(text: str, head: int) -> str:
        id = _kept(run, text)
        return f"; {more_form(id, head + 1)} shows the next part" if id else ""

    return say


def cleared_head(content: str) -> str:
    """The short line that can replace the message of a result; empty if that would save nothing."""
    found = _RESULT.match(content)
    head = " ".join(found.group(1).split()) if found else content[:60]
    status = f" -> {found.group(2)}" if found else " …"
    if len(content) < len(head) + 2 * LINE:
        return ""
    return f"{head}{status}: cleared, {len(content):,} characters"


def cleared(run: Run, head: str, content: str) -> str:
    """The text that replaces a cleared result: its head, and how to see it again. Stores the result first."""
    id = _kept(run, content)
    return f"{head}; {f'{more_form(id)} shows it' if id else 'call it again if you need it'}"


def _kept(run: Run, text: str) -> str:
    """The id under which the tool ``more`` shows a text; empty if it cannot."""
    return (
        run.parts.pages.keep(text) if run.parts.pages is not None and "more" in run.door.table.visible else ""
    )


# Unusable replies


def cut_off(limit: int, used: int) -> str:
    """Why a reply with ``used`` tokens (0: unknown) was cut off, given its limit."""
    if 0 < used < limit * 9 // 10:
        return f"cut off after {used:,} tokens, the most its model could give"
    return f"cut off by the limit of {limit:,} tokens"


def unreadable(fault: str, cut: str) -> str:
    """The observation of an unreadable form; ``cut`` says how the reply was cut off, empty if it was not."""
    return (
        f"A form of your reply could not be read. {fault}\n{f'Your reply was {cut}.' if cut else ''}".rstrip()
    )


def empty_reply(run: Run) -> str:
    how = "Call a tool, or answer" if run.door.table.shown else "Answer"
    return f"Your reply was empty. {how} in plain words."


def complaint(text: str, run: Run) -> str:
    """The observation of an unusable reply, followed by the task."""
    return f"{text}\n\nThe task: {run.spec.task}"


def refused(model: str, words: str) -> str:
    """Why a run ends whose model refused; quotes the model."""
    said = short(" ".join(words.split()), REFUSAL)
    return f"{model} refused to answer. {f'It said: {said}' if said else 'It did not say why.'}"


# The text after the results of a turn


def reminder(run: Run, cut: str, next: str = "") -> str:
    """The text after a turn's results: how the reply was cut off, if it was, and the task for models that
    need it repeated, with its ``next`` step; may be empty."""
    said = [f"Your reply was {cut}. The text behind the last of these calls is lost."] if cut else []
    if run.dialect.reminds or run.state.must_answer:
        now = run.state.must_answer or run.budget.steps_left <= 1
        cue = NOW_ANSWER if now else next or AFTER_RESULT
        if run.output is not None:
            cue = f"{run.output.wish}\n{NOW_ANSWER_JSON if now else AFTER_RESULT_JSON}"
        said.append(f"{run.spec.task}\n{cue}")
    return "\n\n".join(said)


# The messages of a run's calls. They are recorded with the result of their call, so that a resumed run sends
# none twice. In a chat, the result of each call is a message, too.


class RunRouter:
    """The router of one run, in front of the host's. The user of a sub-agent is its caller, which gets the
    message with the sub-agent's answer."""

    def __init__(self, run: Run, router: Router) -> None:
        self._run = run
        self._router = router

    async def send_message(self, message: str, *, to: str = USER) -> None:
        run = self._run
        sent = SentMessage(CALLING.get(), message, to)
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


def _said_twice(sent: SentMessage, before: SentMessage) -> bool:
    """Whether two calls of one reply send the same message."""
    step, key = sent.key.rpartition(".")[0], before.key
    return (sent.text, sent.to) == (before.text, before.to) and key != sent.key and key.startswith(f"{step}.")


async def send_follow_ups(run: Run, reply: Reply, log: RunLog) -> None:
    """Send the people in a chat the result of each call of a reply, once. A message that failed is sent again
    when the run is resumed."""
    router = run.context.router
    host = router._router if isinstance(router, RunRouter) else router
    sent: list[FollowUp] = []
    try:
        for one in reply.follow_ups:
            if one.call not in run.past.told:
                await host.send_message(one.text)
                sent.append(one)
    except Exception as error:  # a router of the host may raise any error
        run.tell("note", str(error) if isinstance(error, ToolError) else type(error).__name__)
    with log.session.transcript.together():
        for one in sent:
            run.past.told.add(one.call)
            said = {"text": one.text, "to": USER, "follow-up": True}
            log.add("sent", said, parent=log.reply, key=one.call)


def answer_of(run: Run, text: str) -> str:
    """The answer of a sub-agent to its caller: the messages it sent, and ``text``, which may already contain
    the last of them."""
    earlier = [one.text for one in run.state.sent if one.to == USER and one not in run.state.last_words]
    return "\n\n".join([*earlier, text])


def last_words(turn: Turn, run: Run) -> tuple[str, str | None] | None:
    """The end of a run by an ok call of a tool that ends it: the reply, and the part of it that the user did
    not get as a message (None: all). None if the turn has no such call."""
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
    """The reply of a call that ends the run without a message: the words around it, or its value."""
    result = record.result
    return turn.text or (show_value(result.value) if is_informative(record) else result.message) or "Done."
