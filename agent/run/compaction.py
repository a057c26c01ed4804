"""Compaction: keeps a conversation within its model's context window by clearing old results and by
summaries.

The outcome depends only on the messages, the replies and the token counts of the server, so a replayed run is
compacted in the same way.

No other code changes the middle of a conversation. It is done in one batch: a new Messages replaces the old
one, which stays unchanged, and the listener gets an event. First the texts of old results are cleared, the
oldest first; the tool ``more`` still shows each. If that is not enough, the model writes a summary, which
replaces all but the newest turns; if it cannot, they are left out.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quoth.agent.run.observation import LINE, cleared, cleared_head
from quoth.neuro.backends.base import (
    ContextFullError,
    Gauge,
    ModelError,
    MovedError,
    RequestRefusedError,
    longest_reply,
    message_tokens,
    tokens_in,
    window_of,
)
from quoth.neuro.backends.messages import Message, Messages
from quoth.neuro.prompt.belt import NEWS
from quoth.neuro.prompt.dialects import dialect_of_next
from quoth.neuro.prompt.memory import all_blocks_text, is_memory
from quoth.tools.text import count, number_of

if TYPE_CHECKING:
    from quoth.agent.run.run import Run

# Shares of the window, in per cent.
FULL = 75  # from here the conversation is shortened
CLEARED = 50  # the goal: it leaves room for many turns, so that the prefix seldom breaks
NEWEST = 20  # the newest turns, which a summary keeps; at least one turn
WORTH = 10  # a smaller saving is not worth a summary
LONG = 20_000  # tokens; a server may refuse more than this for length, with a smaller window than announced
KEPT_TURNS = 2  # the newest turns, whose results are not cleared
SUMMARY_TOKENS = 1_000

ASK = (
    "The conversation has become too long: all the above will be taken away, and your summary put in "
    "its place. Write it now, in plain words and without any call: what was found, with names, paths and "
    "figures; decisions and actions; the work that remains. Be brief.\n\nThe task: {task}"
)
SUMMARY = "SUMMARY of what was said and done before, in its place:"
# Sessions of older versions have further words in it.
_LEFT_OUT = re.compile(r"\[… (\d+) messages? [\w ]*(?:was|were) left out: there was no room …\]")


class Compaction(NamedTuple):
    """A change of a conversation, for a listener: results were ``cleared``, or messages were replaced by a
    ``summary``; with an empty ``text`` they were left out."""

    kind: Literal["cleared", "summary"]
    messages: Messages  # the new ones
    replaced: int  # results cleared, or messages replaced
    before: int  # tokens
    after: int
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        told = {"how": self.kind, "replaced": self.replaced, "before": self.before, "after": self.after}
        return told | ({"text": self.text} if self.text else {})

    def __str__(self) -> str:
        room = f"the request takes about {self.after:,} tokens instead of {self.before:,}."
        if self.kind == "cleared":
            return f"{count(self.replaced, 'old result')} cleared; {room}"
        how = "summarised" if self.text else "left out, without a summary"
        return f"{count(self.replaced, 'old message')} {how}; {room}"


# Keeping


async def ask_within_window(run: Run, ask: Callable[[], Awaitable[Any]]) -> Any:
    """The Thought from ``ask``. Makes room first if necessary, and once more if the server says that the
    request is too long or refuses a long one for an unknown reason. After a move of a cascade, asks its next
    model. Raises ModelError."""
    full: ContextFullError | RequestRefusedError | None = None
    while True:
        try:
            if not await _made_room(run, full) and full is not None:
                raise full
            asked = len(run.messages)
            thought = await ask()
            break
        except MovedError:
            full = None
            go_on_with_next(run)
        except (ContextFullError, RequestRefusedError) as error:
            if full is not None or not (isinstance(error, ContextFullError) or _is_long(run)):
                raise
            full = error
            gauge_of(run).refused(run.messages, getattr(error, "window", 0))
    gauge_of(run).told(run.messages, asked, thought.usage.input_tokens)
    return thought


async def _made_room(run: Run, full: ModelError | None) -> bool:
    """Make room. If the server refused the request without naming a size, raises its own error."""
    try:
        return await make_room(run)
    except MovedError:
        raise
    except ModelError:
        if full is not None and not getattr(full, "window", 0):
            raise full from None
        raise


def _is_long(run: Run) -> bool:
    """Whether the request may be refused for its length."""
    gauge = gauge_of(run)
    return gauge.tokens(run.messages) > min(LONG, gauge.window.tokens * CLEARED // 100)


def go_on_with_next(run: Run) -> None:
    """Continue with the current model of the run's backend: with its window, and in a dialect that it
    speaks."""
    backend = run.backend
    run.gauge = None
    if run.parts.may_force:
        run.must_act = backend.takes_grammar
    dialect = dialect_of_next(run.dialect, backend.name, takes_tools=bool(backend.tool_view))
    if dialect is run.dialect:
        return
    run.dialect = dialect
    opening = dialect.opening(run.door.table, search=run.spec.search)
    if any(message["role"] == "assistant" for message in run.messages):
        run.messages.add({"role": "user", "content": opening})
        return
    new = Messages(run.messages.before)  # nothing was said yet: begin in the dialect of this model
    new.append("system", "\n\n".join(filter(None, [opening, run.spec.instructions, run.spec.surroundings])))
    for message in run.messages:
        if message["role"] != "system":
            new.add(message)
    run.messages = new


async def make_room(run: Run) -> bool:
    """Compact the conversation of a run if it fills its window; returns whether it changed. Raises ModelError
    if the parts that must stay are too long."""
    gauge = gauge_of(run)
    before = gauge.tokens(run.messages)
    window = gauge.window.tokens
    if before <= window * FULL // 100:
        return False
    wanted = run.limits.reply_tokens or longest_reply(run.backend.name, gauge.window)
    most = max(window - min(wanted, window // 4), 1)  # leave room for the reply
    turns = _turns(run.messages)
    old = turns[-KEPT_TURNS] if len(turns) > KEPT_TURNS else 0
    new, cleared = _clear(run, run.messages, old, window * CLEARED // 100, or_not=True)
    if cleared:
        _replace(run, Compaction("cleared", new, cleared, before, gauge.tokens(new)))
        return True
    short = await _summarised(run, gauge, turns, most)
    if short is None and before <= most:
        return False
    done = short or Compaction("cleared", run.messages, 0, before, before)
    if gauge.tokens(done.messages) > most:
        # Also clear the results of the newest turn, except the last.
        spare, cleared = _clear(run, done.messages, _newest_result(done.messages), most)
        done = Compaction(done.kind, spare, done.replaced or cleared, before, gauge.tokens(spare), done.text)
    if done.messages is not run.messages and done.replaced:
        _replace(run, done)
    roomier = getattr(run.backend, "roomier", False)  # then a refusal moves the cascade to that model
    if gauge.tokens(run.messages) > most and gauge.window.known and not roomier:
        raise ModelError(_no_room(run, gauge))
    return done.replaced > 0


def reply_tokens(run: Run) -> int:
    """The maximum of tokens in the next reply: the wanted number, or less if the known window is smaller."""
    gauge = gauge_of(run)
    wanted = run.limits.reply_tokens or longest_reply(run.backend.name, gauge.window)
    left = gauge.window.tokens - gauge.tokens(run.messages)
    run.state.reply_tokens = max(min(wanted, left), 1) if gauge.window.known else wanted
    return run.state.reply_tokens


def gauge_of(run: Run) -> Gauge:
    """The gauge of a run, created at the first use; it always counts the current tools."""
    if run.gauge is None:
        run.gauge = Gauge(window_of(run.backend, run.limits.context))
    view = run.backend.tool_view
    if run.gauge.tools != (run.dialect.name, view):
        run.gauge.tools = (run.dialect.name, view)
        run.gauge.beside = tokens_in(run.dialect.tools(run.door.table, view) or b"")
    return run.gauge


def _replace(run: Run, done: Compaction) -> None:
    run.messages = done.messages
    # The model may repeat a call to see a removed result again: that does not count as a repetition.
    run.state.seen.clear()
    run.state.repeated.clear()
    run.state.forgotten = len(run.state.calls)
    if not run.recalling:
        said = {"replaced": done.replaced, "before": done.before, "after": done.after}
        run.log.add(done.kind, {**said, "text": done.text} if done.text else said, parent=run.log.reply)
    run.tell("compaction", done)


def _turns(messages: Messages) -> list[int]:
    """The index of each turn's first message. A turn is a reply of the model and all messages up to the
    next."""
    return [place for place, message in enumerate(messages) if message["role"] == "assistant"]


def _copy(messages: Messages, start: int, end: int, into: Messages) -> None:
    for place in range(start, end):
        into.add(messages[place])


# Clearing


def _clear(run: Run, messages: Messages, end: int, goal: int, or_not: bool = False) -> tuple[Messages, int]:
    """A copy in which results before ``end`` are cleared, the oldest first, until all messages take at most
    ``goal`` tokens; and the number of cleared results. With ``or_not``, clears nothing if the goal cannot be
    reached."""
    gauge = gauge_of(run)
    size, heads = gauge.tokens(messages), dict[int, str]()
    for place in range(end):
        if size <= goal:
            break
        message = messages[place]
        if message["role"] == "tool" and (head := cleared_head(message["content"])):
            heads[place] = head
            size -= gauge.corrected(tokens_in(message["content"]) - tokens_in(head) - LINE // 3)
    if not heads or (or_not and size > goal):
        return messages, 0
    new = Messages(messages.before)
    for place, message in enumerate(messages):
        changed: Message = message
        if place in heads:
            changed = {**message, "content": cleared(run, heads[place], message["content"])}
        new.add(changed)
    return new, len(heads)


def _newest_result(messages: Messages) -> int:
    """The index of the newest result; the number of messages if there is none."""
    places = [place for place, message in enumerate(messages) if message["role"] == "tool"]
    return places[-1] if places else len(messages)


# Summaries


async def _summarised(run: Run, gauge: Gauge, turns: list[int], most: int) -> Compaction | None:
    """The conversation with a summary instead of all but the newest turns; None if that saves little."""
    window, messages = gauge.window.tokens, run.messages
    before = gauge.tokens(messages)
    begin = turns[0] if turns else len(messages)
    cut = turns[-1] if turns else len(messages)
    newest = sum(message_tokens(messages[place]) for place in range(cut, len(messages)))
    for place in reversed(turns[:-1]):
        newest += sum(message_tokens(messages[at]) for at in range(place, cut))
        if gauge.corrected(newest) > window * NEWEST // 100:
            break
        cut = place
    replaced = gauge.corrected(sum(message_tokens(messages[place]) for place in range(begin, cut)))
    if cut <= begin or (replaced < window * WORTH // 100 and before <= most):
        return None
    text = await _summary(run, gauge, cut, most)
    if gauge.corrected(tokens_in(text)) >= replaced:
        text = ""
    new = _rebuilt(run, begin, cut, text)
    return Compaction("summary", new, cut - begin, before, gauge.tokens(new), text)


async def _summary(run: Run, gauge: Gauge, cut: int, most: int) -> str:
    """The model's summary of all before ``cut``; empty when it gives none."""
    request = _request(run, gauge, cut, most)
    if request is None:
        return ""
    backend, options = run.backend, dict[str, Any]()
    tools = run.dialect.tools(run.door.table, backend.tool_view)
    if tools is not None:  # as always: the prefix must stay the same
        options = {"tools": tools, "tool_choice": "none"}
    try:
        completion = await backend.complete(
            request, max_tokens=min(SUMMARY_TOKENS, max(gauge.window.tokens // 8, 1)), **options
        )
    except MovedError:
        raise
    except ModelError:
        return ""
    run.spend(completion.usage)
    if completion.finish == "refused":
        return ""
    from quoth.neuro.reading.reply import read_reply  # here: few conversations become too long

    return read_reply(completion.text).content.strip()


def _request(run: Run, gauge: Gauge, cut: int, most: int) -> Messages | None:
    """The conversation before ``cut`` with the request for a summary: unchanged if possible, because the
    provider has cached it; otherwise without old results and the oldest turns, until it fits."""
    ask = ASK.format(task=run.spec.task)
    room = most - gauge.corrected(tokens_in(ask) + 4)
    request = Messages()
    _copy(run.messages, 0, cut, request)
    request, _ = _clear(run, request, cut, room)
    if gauge.tokens(request) > room:
        turns = _turns(request)
        size = gauge.tokens(request)
        for start, end in zip(turns, [*turns[1:], len(request)], strict=True):
            size -= gauge.corrected(sum(message_tokens(request[place]) for place in range(start, end)))
            if size <= room:
                shorter = Messages()
                _copy(request, 0, turns[0], shorter)
                _copy(request, end, len(request), shorter)
                request = shorter
                break
        else:
            return None
    request.sent = len(request)
    request.append("user", ask)
    return request


def _rebuilt(run: Run, begin: int, cut: int, summary: str) -> Messages:
    """A new conversation: the system message, the task with the summary (or a note that it is missing), and
    the messages from ``cut`` on."""
    old = run.messages
    new = Messages()
    opening = run.dialect.opening(run.door.table, search=run.spec.search, few=run.spec.few)
    for place in range(cut):  # keep later messages about tools, and how to call them in text
        text = old[place]["content"]
        if old[place]["role"] == "system" or text == opening or text.startswith(NEWS):
            new.add(old[place])
    if run.state.known:  # the current blocks replace all earlier messages about them
        new.append("user", all_blocks_text(run.state.known.values(), must_act=run.must_act))
    task = run.spec.shown
    told = any(
        old[place]["role"] == "user" and old[place]["content"] == task for place in range(cut, len(old))
    )
    firsts = [old[place]["content"] for place in range(begin) if _is_said(old[place])]
    earlier = next((text[at:] for text in firsts if (at := text.find(SUMMARY)) >= 0), "")
    if summary:
        said = f"{SUMMARY}\n{summary}"
    else:
        before = sum(int(found) for text in firsts for found in _LEFT_OUT.findall(text))
        said = "\n\n".join(
            filter(None, [_LEFT_OUT.sub("", earlier).strip(), _left_out(before + cut - begin)])
        )
    new.append("user", said if told else f"{task}\n\n{said}", images=() if told else run.images)
    _copy(old, cut, len(old), new)
    new.before = max(0, old.turn - len(new))
    return new


def _is_said(message: Message) -> bool:
    """Whether a message comes from a person or replaces one; a message of the memory may contain any
    words."""
    text = message["content"]
    return message["role"] == "user" and not (is_memory(text) or text.startswith(NEWS))


def _left_out(number: int) -> str:
    """The note that replaces omitted messages; ``_LEFT_OUT`` parses it."""
    stood = number_of(number, "message was", "messages were")
    return f"[… {stood} left out: there was no room …]"


# No room


def _no_room(run: Run, gauge: Gauge) -> str:
    """The error that says which part is too long, and how to fix it."""
    system = sum(message_tokens(message) for message in run.messages if message["role"] == "system")
    task = tokens_in(run.spec.shown)
    memory = sum(message_tokens(message) for message in run.messages if is_memory(message["content"]))
    parts = {
        "the tools": gauge.beside + system,
        "the memory": memory,
        "the task": task,
    }
    parts["the newest turn"] = sum(map(message_tokens, run.messages)) - system - memory - task
    helps = {
        "the tools": "List them with one line each (--belt search), or load fewer",
        "the memory": "Archive or shorten its core blocks",
        "the task": "Shorten the task, or put a part of it into a file",
        "the newest turn": "Ask for less in one task",
    }
    most = max(parts, key=lambda name: parts[name])
    return (
        f"{run.backend.name} can read {gauge.window.tokens:,} tokens, and {most}, which cannot be left out, "
        f"{'take' if most.endswith('s') else 'takes'} about {gauge.corrected(parts[most]):,} of "
        f"{gauge.tokens(run.messages):,}. {helps[most]}; "
        "if the model can read more, say so with --max-context N."
    )
