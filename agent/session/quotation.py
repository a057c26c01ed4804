"""Finds the words of a call in texts that the model read before: then the call may be a quotation and no
intention.

Knows the transcript and the texts of calls; it decides nothing. What it finds is passed on in
``Call.quoted``, and the door asks a person. Texts are compared without regard to case, spaces and escapes,
and also word by word, so that another spelling of the same call is found too.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import hy.models as m

from quoth.tools.call.call import PROGRAMS
from quoth.tools.call.redaction import Redactor
from quoth.tools.errors import InvalidCallError
from quoth.tools.history.event import Event, read_form
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm, canonical, from_model, head_name, kebab
from quoth.tools.lisp.printer import print_string, print_value, show
from quoth.tools.lisp.reader import ReadError, read_all
from quoth.tools.policy.effects import only_reads
from quoth.tools.registry.arguments import bind
from quoth.tools.registry.table import ToolTable
from quoth.tools.text import short
from quoth.tools.visible import visible

MAX_INNER = 100  # calls of one program that are looked for by themselves
SHOWN = 60  # characters of what a result is called
KEYED_WORDS, BARE_WORDS, PROGRAM_WORDS = 3, 4, 5  # fewer are found anywhere by chance
_ESCAPE = re.compile(r"\\[ntr]")
_SPACE = re.compile(r"[\s\\]+")
_NO_WORD = re.compile(r"[\W_]+")
_NOTHING = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
                      "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]")  # fmt: skip
_ENVELOPE = re.compile(r" (?:args|arguments|parameters|params|input)(?= )")
# What names a result best: the first of these arguments, else the first text.
_NAMING = ("path", "file", "url", "name", "id", "query", "pattern")


def _plain(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _NOTHING.sub("", text))
    return _ESCAPE.sub(" ", text)


def letters(text: str) -> str:
    """The text without spaces, backslashes and what cannot be seen."""
    return _SPACE.sub("", _plain(text))


def close(text: str) -> str:
    """The text normalised, without spaces and backslashes."""
    return letters(text).casefold()


def words(text: str) -> str:
    """The words of the normalised text, each between spaces."""
    return _ENVELOPE.sub("", f" {_NO_WORD.sub(' ', _plain(text).casefold()).strip()} ")


@dataclass(frozen=True)
class Source:
    """A text that a model was shown in event ``seq``; ``call`` is its call's event, 0 for a task's data and
    for a memory block, whose ``label`` it has. ``said`` marks a message of a chat: people ask for a
    call in words, so that only one that stands there letter by letter is a quotation."""

    seq: int
    call: int
    text: str
    label: str = ""
    said: bool = False

    @cached_property
    def close(self) -> str:
        return letters(self.text) if self.said else close(self.text)

    @cached_property
    def words(self) -> str:
        return words(self.text)


class Sources:
    """All texts read in a session, from its transcript: the results of calls, also those of sub-agents and
    programs, data that came with a task, the messages of a chat, and memory blocks. Events are read only
    when needed, and once."""

    def __init__(self, transcript: Transcript, session: str) -> None:
        self._transcript = transcript
        self._session = session
        self._found: list[Source] = []
        self._seen = {"receipt": 0, "stimulus": 0, "memory": 0}

    def before(self, seq: int) -> Iterator[Source]:
        """The texts of events before ``seq``, in order."""
        self.read()
        return (source for source in self._found if source.seq < seq)

    def read(self) -> None:
        """Read the new events, before their secrets are deleted, for the model still remembers them."""
        new = [*self._read("receipt"), *self._read("stimulus"), *self._read_memory()]
        if new:
            self._found = sorted([*self._found, *new], key=lambda source: source.seq)

    def _read(self, kind: Any) -> Iterator[Source]:
        for event in self._transcript.events(self._session, kind=kind, after=self._seen[kind]):
            self._seen[kind] = event.seq
            data = event.data
            if "stage" in data or self._is_refused_program(event):  # the host's own words
                continue
            if kind == "receipt":
                told = [data.get("value"), data.get("message")]
            else:
                told = [
                    data.get("surroundings"),
                    data.get("data"),
                    *(file.get("text") for file in data.get("files", ())),
                ]
            texts = [one if isinstance(one, str) else print_value(one) for one in told if one]
            if texts:
                yield Source(event.seq, event.parent if kind == "receipt" else 0, "\n".join(texts))
            if kind == "stimulus" and data.get("chat"):
                yield Source(event.seq, 0, data["text"], said=True)

    def _read_memory(self) -> Iterator[Source]:
        for event in self._transcript.events(self._session, kind="memory", after=self._seen["memory"]):
            self._seen["memory"] = event.seq
            for block in event.data["blocks"]:
                words = " ".join(filter(None, [block.get("description", ""), block["text"]]))
                yield Source(event.seq, 0, words, block["label"])

    def _is_refused_program(self, event: Event) -> bool:
        """Whether a receipt is of a program that was not run: it has only the model's words."""
        if event.kind != "receipt" or event.status != "invalid" or not event.parent:
            return False
        call = next(self._transcript.events(self._session, after=event.parent - 1))
        return read_form(call.data["form"]).tool == PROGRAMS

    def name(self, source: Source, table: ToolTable) -> str:
        """The name of a text, for a person."""
        if source.said:
            return "a message of the chat"
        if source.label:
            return f"the memory block {short(visible(source.label), SHOWN)}"
        if not source.call:
            return "what was given with the task"
        event = next(self._transcript.events(self._session, after=source.call - 1))
        return f"the result of {label_of(read_form(event.data['form']), table)}"


def label_of(form: CallForm, table: ToolTable) -> str:
    """The name of a call's result, for a person: ``read-file mail.txt``."""
    params = table.get(form.tool).params if form.tool in table else ()
    form = Redactor(form, params, table.secrets).form
    texts = [form.args[name] for name in _NAMING if name in form.args]
    texts += [*form.positional, *form.args.values()]
    texts = [" ".join(text) if _is_listed(text) else text for text in texts]
    main = next((text for text in texts if isinstance(text, str) and text), "")
    main = main if main.isprintable() else print_string(main)[1:-1]
    return f"{form.tool} {short(main, SHOWN)}".rstrip()


def _is_listed(value: Any) -> bool:
    """Whether a value is the words of a command."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def quoted(form: CallForm, text: str, table: ToolTable, sources: Sources, seq: int) -> str:
    """The name of a text before event ``seq`` that contains the words of a call; empty if there is none, and
    for a call that only reads. ``text`` is the call as the model wrote it."""
    if form.tool not in table:
        return ""
    tool = table.get(form.tool)
    if tool.name != PROGRAMS and only_reads(tool):
        return ""
    exact, spelt = needles(form, text, table)
    typed = {letters(text), letters(str(form))} - {""}
    for source in sources.before(seq):
        close_to, near = (typed, set()) if source.said else (exact, spelt)
        if any(needle in source.close for needle in close_to) or any(n in source.words for n in near):
            return sources.name(source, table)
    return ""


def stands(line: str, sources: Sources, seq: int) -> bool:
    """Whether a line that is no call stands, letter by letter, in a text before event ``seq``."""
    typed, folded = letters(line), close(line)
    return any((typed if one.said else folded) in one.close for one in sources.before(seq))


def needles(form: CallForm, text: str, table: ToolTable) -> tuple[set[str], set[str]]:
    """What to search for: normalised texts, and sequences of words."""
    exact, spelt = {close(text), close(str(form))}, _rows(form, table)
    if form.tool == PROGRAMS:
        program = next((value for value in (*form.args.values(), *form.positional)), "")
        exact_inner, spelt_inner = _of_program(str(program), table)
        exact, spelt = exact | exact_inner, spelt_inner
    return {needle for needle in exact if needle}, spelt


def _rows(form: CallForm, table: ToolTable) -> set[str]:
    """The words of a call with the names of its arguments, in every usual order, and without."""
    tool, named = table.get(form.tool), [form]
    with contextlib.suppress(InvalidCallError):  # the door will say so
        bound = bind(tool.name, tool.params, form.args, form.positional)
        named += [CallForm(tool.name, bound)]
        named += [CallForm(tool.name, {p.name: bound[p.name] for p in tool.params if p.name in bound})]
    keyed = {words(spell(one)) for one in named if one.args for spell in (str, canonical)}
    bare = {words(str(CallForm(one.tool, {}, (*one.positional, *one.args.values())))) for one in named}
    return {row for row in keyed if row.count(" ") > KEYED_WORDS} | {
        row for row in bare if row.count(" ") > BARE_WORDS
    }


def _of_program(program: str, table: ToolTable) -> tuple[set[str], set[str]]:
    """The same for a program, and for those of its calls that do more than read."""
    exact = {close(program)} if program.lstrip().startswith("(") else set()
    row = words(program)
    spelt = {row} if row.count(" ") > PROGRAM_WORDS else set()
    for call in _calls_in(program, table):
        exact.add(close(show(call)))
        with contextlib.suppress(InvalidCallError):
            spelt |= _rows(from_model(call), table)
    return exact, spelt


def _calls_in(program: str, table: ToolTable) -> list[Any]:
    """The calls in a program that do more than read."""
    found: list[Any] = []
    pending = _read(program)
    while pending and len(found) < MAX_INNER:
        node = pending.pop()
        if not isinstance(node, m.Sequence):
            continue
        name = kebab((head_name(node[0]) or "") if isinstance(node, m.Expression) and node else "")
        if name in table and not only_reads(table.get(name)):
            found.append(node)
        pending.extend(node)
        if name == PROGRAMS:  # a program may be a text
            pending.extend(form for item in node if isinstance(item, m.String) for form in _read(str(item)))
    return found


def _read(program: str) -> list[Any]:
    try:
        return list(read_all(program))
    except ReadError:
        return []
