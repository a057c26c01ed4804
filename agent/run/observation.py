"""The observations that the model gets: results and failures of tools, denied calls, replies that were
unreadable or cut off, and what remains of a cleared result.

Knows a run and its records as data; it calls neither model nor tool. neuro/prompt/dialects.py makes messages
of the observations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from quoth.agent.reply import CallRecord
from quoth.agent.run.run import Run
from quoth.agent.terminal.forms import Aside, shortened, show_value
from quoth.neuro.backends.base import takes_images
from quoth.tools.call.images import images_in
from quoth.tools.history.long_results import more_form
from quoth.tools.text import short

AFTER_RESULT = "If you know it now, say it in one plain sentence. If not, make the next call."
AFTER_RESULT_JSON = "If you know it now, answer with the JSON alone. If not, make the next call."
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
REFUSAL = 1_000  # characters of it that are quoted
LINE = 60  # characters that are said of a result that is cleared, beside its call

# Results


def result_text(
    record: CallRecord, limit: int, aside: Aside = lambda text, head: "", called: str = ""
) -> str:
    """The observation of one call, in the same form for every status. ``called`` is what the dialect names
    the call when it does not repeat the whole of it."""
    result = record.result
    form = called or f"{shortened(str(record.form), 200)} ->"
    if not result.ok:
        return f"{form} {result.status}: {shortened(result.message, limit, aside)}"
    value = shortened(show_value(result.value), limit, aside)
    many = f", {len(result.value)} items" if isinstance(result.value, list) and result.value else ""
    note = f"\n({result.message})" if result.message else ""
    return f"{form} ok{many}:\n{EMPTY.get(value, value)}{note}"


def waited(record: CallRecord, limit: int) -> str:
    """What is told later of a call that waited for a person while the conversation went on."""
    return result_text(record, limit, called=f"{shortened(str(record.form), 200)}, which waited, ->")


_RESULT = re.compile(r"(.{1,600}?) -> ([a-z]+(?:, \d+ items)?):", re.DOTALL)  # as result_text begins


def call_observation(record: CallRecord, run: Run, again: bool) -> str:
    """The observation of one call of a run. ``again`` adds that the same call was made before, with the same
    result."""
    called = run.dialect.result_head(record.form, run.door.table)
    told = result_text(record, run.limits.result_chars, part_shown(run), called)
    if images_in(record.result.value) and not takes_images(run.backend):
        told += UNSEEN
    return told + SAME_AGAIN if again else told


def result_images(records: Iterable[CallRecord], run: Run) -> list[Any]:
    """The message with the images that calls gave, for a model that can see."""
    values = [record.result.value for record in records if images_in(record.result.value)]
    if not values or not takes_images(run.backend):
        return []
    from quoth.agent.run.attachments import result_images

    return list(result_images(values, run.parts.pages))


def part_shown(run: Run) -> Aside:
    """A function that words the gap in a shortened text, given the text and the length of its head: it names
    the call that shows the rest, if there is one."""

    def say(text: str, head: int) -> str:
        id = _kept(run, text)
        return f"; {more_form(id, head + 1)} shows the next part" if id else ""

    return say


def cleared_head(content: str) -> str:
    """The short line that can replace a result's message; empty if that would save nothing."""
    found = _RESULT.match(content)
    head = " ".join(found.group(1).split()) if found else content[:60]
    status = f" -> {found.group(2)}" if found else " …"
    if len(content) < len(head) + 2 * LINE:
        return ""
    return f"{head}{status}: cleared, {len(content):,} characters"


def cleared(run: Run, head: str, content: str) -> str:
    """The text that replaces a cleared result: its head, and how to see it again. The result itself is stored
    first."""
    id = _kept(run, content)
    return f"{head}; {f'{more_form(id)} shows it' if id else 'make the call again if you need it'}"


def _kept(run: Run, text: str) -> str:
    """The id under which the tool ``more`` shows a text; empty where it cannot."""
    return (
        run.parts.pages.keep(text) if run.parts.pages is not None and "more" in run.door.table.visible else ""
    )


# Replies that were no use


def cut_off(limit: int, used: int) -> str:
    """Why a reply with ``used`` tokens (0: unknown) was cut off, given its limit."""
    if 0 < used < limit * 9 // 10:
        return f"cut off after {used:,} tokens, the most its model could give"
    return f"cut off by the limit of {limit:,} tokens"


def unreadable(fault: str, cut: str) -> str:
    """The observation of a form that could not be read; ``cut`` says how the reply was cut off, if it was."""
    return (
        f"A form of your reply could not be read. {fault}\n{f'Your reply was {cut}.' if cut else ''}".rstrip()
    )


def empty_reply(run: Run) -> str:
    how = "Make a call, or answer" if run.door.table.shown else "Answer"
    return f"Your reply was empty. {how} in plain words."


def complaint(text: str, run: Run) -> str:
    """The observation of an unusable reply, followed by the task."""
    return f"{text}\n\nThe task: {run.spec.task}"


def refused(model: str, words: str) -> str:
    """Why a run ends whose model will not do what it was asked; its own words are quoted."""
    said = short(" ".join(words.split()), REFUSAL)
    return f"{model} refused to answer. {f'It said: {said}' if said else 'It did not say why.'}"


# What stands behind the results of a turn


def reminder(run: Run, cut: str) -> str:
    """The text after a turn's results: how the reply was cut off, if it was, and the task for models that
    need it repeated; may be empty."""
    said = [f"Your reply was {cut}. What stood behind the last of these calls is lost."] if cut else []
    if run.dialect.reminds or run.state.must_answer:
        now = run.state.must_answer or run.budget.steps_left <= 1
        cue = NOW_ANSWER if now else AFTER_RESULT
        if run.output is not None:
            cue = f"{run.output.wish}\n{NOW_ANSWER_JSON if now else AFTER_RESULT_JSON}"
        said.append(f"{run.spec.task}\n{cue}")
    return "\n\n".join(said)
