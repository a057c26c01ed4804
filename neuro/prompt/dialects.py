"""Dialects: how tools are shown to a model, how its reply becomes call forms, and which model uses which
dialect. Calls in every dialect become the same CallForm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, get_args

from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import NativeCall
from quoth.neuro.backends.providers import NONE, Provider, find_provider
from quoth.neuro.prompt import instructions as rules
from quoth.neuro.prompt.belt import belt, belt_bytes, few_belt
from quoth.neuro.prompt.grammar import JSON as JSON_SPELLING
from quoth.neuro.prompt.grammar import LISP, Bounds, Spelling, bound_to, grammar
from quoth.neuro.prompt.grammar import PLIST as PLIST_SPELLING
from quoth.neuro.prompt.grammar import TAGS as TAGS_SPELLING
from quoth.neuro.prompt.instructions import rules_without, tag_rules
from quoth.neuro.reading.result import Fault, FoundCall, Reading
from quoth.neuro.reading.tag_lines import Tags, prefix_of, spell_tag
from quoth.tools.errors import InvalidCallError, UsageError, did_you_mean
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, from_json, kebab, plist, to_json
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool, ToolTable


@dataclass(frozen=True)
class NativeFound(FoundCall):
    """A readable native call; ``id`` is the provider's id, which its result needs."""

    id: str = ""


@dataclass(frozen=True)
class NativeFault(Fault):
    """An unreadable native call; the provider expects a result for its ``id``, too."""

    id: str = ""


MALFORMED = Fault(
    "Your server could not read your call and left it out",
    line=0,
    column=0,
    hint="write it again: the name of one tool, and its arguments as a JSON object",
)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Dialect:
    """One notation for calls.

    ``view`` is the view of the tool list in the system message, empty for a ``native`` dialect: its tools are
    a field of the request. ``reminds`` repeats the task with every result, which small models need.
    ``stops``: a run ends with the first reply that has calls."""

    name: str
    view: str
    rules: str
    native: bool = False
    reminds: bool = True
    spelling: Spelling | None = None  # for a grammar; None: no grammar
    write: Callable[[CallForm], str] = str  # writes a call, for examples and measurements
    stops: bool = False

    @property
    def takes_few(self) -> bool:
        """Whether the tool list may be short: each tool has its own text in the system message."""
        return self.view in ("lisp", "plist", "json")

    def opening(
        self,
        table: ToolTable,
        *,
        search: bool = False,
        few: Collection[str] = (),
        view: str | None = None,
        rules: str | None = None,
    ) -> str:
        """The system message: the tool list and the rules; empty for a table without visible tools. With
        ``search`` most tools have only one line; with names in ``few`` only these are shown in full. ``view``
        and ``rules`` replace the dialect's own."""
        if not table.shown:
            return ""
        if view is None:
            view = "bare" if search else self.view
        shown = few_belt(table, view, few) if few else belt(table, view) if view else ""
        told = self.rules if rules is None else rules
        unseen = {*table.hidden, *(name for name in table.shown.names() if few and name not in few)}
        if rules is None and unseen:
            told = rules_without(told, unseen)
        return shown + told.rstrip()

    def tools(self, table: ToolTable, view: str) -> bytes | None:
        """The tools as JSON for the backend's request; None without tools, or for a dialect in text."""
        return belt_bytes(table, view) if self.native and view and table.shown else None

    def grammar(self, table: ToolTable, *, bounds: Bounds | None = None, **more: Any) -> str | None:
        """The GBNF grammar of this dialect, if any, for a reply within the ``bounds``. For ``more`` see
        neuro/prompt/grammar.py."""
        if self.spelling is None:
            return None
        more = {"several": self.stops, **more}  # as the rules say
        if bounds is not None:
            table = bound_to(table, bounds, self.spelling)
            more |= {"without": bounds.without, "lead": bounds.lead}
        return grammar(table, spelling=self.spelling, **more)

    def read(self, completion: Completion, table: ToolTable) -> Reading:
        """The calls of a reply. Never raises: ``errors`` of the Reading has the unreadable parts."""
        reading = self.read_text(completion.text, table, cut=completion.finish == "length")
        if completion.kept:
            from quoth.neuro.backends.answers import reasoning_in  # here: few replies have such thoughts

            reading.reasoning = "\n\n".join(filter(None, [reasoning_in(completion.kept), reading.reasoning]))
        if completion.finish == "malformed":
            return replace(reading, calls=[], errors=[MALFORMED])
        if completion.calls:
            reading = _read_native(completion, table, reading)
            reading.calls = [self._fitted(call, table) for call in reading.calls]
        return reading

    def read_text(self, text: str, table: ToolTable, *, cut: bool = False) -> Reading:
        """The calls of a text; ``cut``: the text was cut off at its maximum length."""
        from quoth.neuro.reading.reply import read_reply  # here: without a model there is no reply to read

        reading = read_reply(text, *self._vocabulary(table), cut=cut)
        reading.calls = [self._fitted(call, table) for call in reading.calls]
        return reading

    def stream(self, table: ToolTable) -> Callable[[str], list[CallForm]]:
        """A function that takes the pieces of a reply in order and returns the calls that each completes;
        always none for a native dialect, whose calls are not in the text."""
        if self.native:
            return lambda piece: []
        from quoth.neuro.reading.reply import ReplyStream

        reply = ReplyStream(*self._vocabulary(table))
        return lambda piece: [self._fitted(call, table).form for call in reply.feed(piece)]

    def _fitted(self, call: FoundCall, table: ToolTable) -> FoundCall:
        """The call with values of the types that its tool declares."""
        from quoth.neuro.reading.json_calls import fitted

        if call.form.tool not in table:
            return call
        form, repairs = fitted(call.form, table.get(call.form.tool))
        return call if form is call.form else replace(call, form=form, repairs=(*call.repairs, *repairs))

    def _vocabulary(self, table: ToolTable) -> tuple[Collection[str], Tags]:
        """The names that make a form a call, and the tool of each response tag."""
        return table.text_names, {}

    def result_head(self, form: CallForm, table: ToolTable) -> str:
        """The beginning of a result, instead of its call as a form; empty to use the form."""
        return ""

    def spell(self, form: CallForm, table: ToolTable | None = None) -> str:
        """A call in this dialect; for examples and measurements."""
        return self.write(form)


class _Tags(Dialect):
    def opening(self, table: ToolTable, *, rules: str | None = None, **shown: Any) -> str:
        if not table.visible.tags:
            raise UsageError("The dialect tags needs tools with a :tag, and this table has none.")
        if rules is None:
            tags = {tool.name: tool.tag.prefix for tool in table.visible if tool.tag}
            rules = tag_rules(tags, stops=self.stops)
        return super().opening(table, rules=rules, **{**shown, "search": False})

    def grammar(self, table: ToolTable, **bounds: Any) -> str | None:
        tagged = table.visible.where(lambda tool: tool.tag is not None)
        return super().grammar(tagged, **bounds)

    def _vocabulary(self, table: ToolTable) -> tuple[Collection[str], Tags]:
        return table.text_names, table.tags

    def result_head(self, form: CallForm, table: ToolTable) -> str:
        """Without the call, because a model copies text after a tagged line to its next tagged line."""
        return f"Result of {prefix_of(table.get(form.tool)) if form.tool in table else form.tool},"

    def spell(self, form: CallForm, table: ToolTable | None = None) -> str:
        if table is not None and form.tool in table:
            return spell_tag(table.get(form.tool), form)
        return f"{form.tool.upper()}: {_dumps(dict(form.args))}"


class _EveryCallIsAProgram(Dialect):
    """Every call is a program: the only tool is ``run``, which means ``eval``."""

    def opening(self, table: ToolTable, **shown: Any) -> str:
        if "eval" not in table:
            raise UsageError("The dialect run needs the tool eval, and this table has none.")
        return super().opening(table, **shown)

    def tools(self, table: ToolTable, view: str) -> bytes | None:
        return super().tools(_run_table(), view)

    def read(self, completion: Completion, table: ToolTable) -> Reading:
        reading = super().read(completion, table)
        return replace(reading, calls=[replace(call, form=_program(call.form)) for call in reading.calls])

    def _fitted(self, call: FoundCall, table: ToolTable) -> FoundCall:
        """The call, unchanged: values in a program are not converted."""
        return call

    def grammar(self, table: ToolTable, **bounds: Any) -> str | None:
        return super().grammar(table, programs=True, **bounds)

    def stream(self, table: ToolTable) -> Callable[[str], list[CallForm]]:
        found = super().stream(table)
        return lambda piece: [_program(form) for form in found(piece)]

    def _vocabulary(self, table: ToolTable) -> tuple[Collection[str], Tags]:
        return [*table.names(), "run"], {}


def _as_json(form: CallForm) -> str:
    return _dumps(to_json(form))


def _as_program(form: CallForm) -> str:
    return str(CallForm("run", {"program": Code(str(form))}))


CALL_FORM = Dialect("call-form", "lisp", rules.text_rules(str), spelling=LISP)
PLIST = Dialect("plist", "plist", rules.text_rules(plist), spelling=PLIST_SPELLING, write=plist)
JSON = Dialect("json", "json", rules.text_rules(_as_json), spelling=JSON_SPELLING, write=_as_json)
TAGS = _Tags("tags", "tags", "", spelling=TAGS_SPELLING)
NATIVE = Dialect("native", "", rules.NATIVE, native=True, reminds=False)
RUN = _EveryCallIsAProgram("run", "run", rules.RUN_NATIVE, native=True, reminds=False, write=_as_program)
RUN_TEXT = _EveryCallIsAProgram("run", "run", rules.RUN_TEXT, spelling=LISP, write=_as_program)

DIALECTS = {dialect.name: dialect for dialect in (CALL_FORM, PLIST, JSON, TAGS, NATIVE, RUN)}

# The best dialect of a model by the name in its spec; the first match counts. For embedded models it was
# measured; for others it is the dialect of their training. Open models on a user's own server get text,
# because a server may accept tools without showing them to the model.
FAMILIES: tuple[tuple[str, str], ...] = (
    (r"local|llamacpp:|scripted:", "call-form"),
    (r"[\w-]+:(.*/)?(gpt-[4-9]|gpt-oss|chatgpt|o\d|claude-|gemini-)", "native"),
)


SEARCHED = "The dialect native shows all tools in full, so --belt search uses the dialect run instead."


def named_dialect(name: str) -> Dialect:
    """The dialect of that name. Raises UsageError with the nearest name."""
    if name not in DIALECTS:
        raise UsageError(
            f"There is no dialect {name}; the dialects are {', '.join(DIALECTS)}."
            + did_you_mean(name, DIALECTS)
        )
    return DIALECTS[name]


def dialect_named(name: str, *, in_text: bool) -> Dialect:
    """The dialect recorded for a run; ``in_text`` chooses the text version of a native one."""
    dialect = named_dialect(name)
    return without_tools(dialect) if in_text else dialect


def choose_dialect(
    model: str,
    wanted: str | None = None,
    *,
    takes_tools: bool = True,
    search: bool = False,
    configured: Mapping[str, Provider] = NONE,
) -> tuple[Dialect, str]:
    """The dialect for a model, and a note for the user if it is not the ``wanted`` one.

    With ``search`` the model searches the tools instead of seeing them all. Native tools are always shown in
    full, so the dialect ``run`` with its single tool then replaces ``native``. ``configured`` are providers
    besides those of the table. Raises UsageError for an unknown or unsuitable dialect.
    """
    name = wanted or _usual(model, configured)
    dialect = named_dialect(name)
    notes = []
    if search and dialect is NATIVE:
        dialect = RUN
        if wanted:
            notes.append(SEARCHED)
    if search and dialect.name not in ("call-form", "run"):
        raise UsageError(f"--belt search needs the dialect call-form or run, not {name}.")
    if dialect.native and not takes_tools:
        if wanted:
            notes.append(refusal_note(dialect, f"{model} takes no native tools."))
        dialect = without_tools(dialect)
    return dialect, " ".join(notes)


def _usual(model: str, configured: Mapping[str, Provider]) -> str:
    """The usual dialect of a model: by its family, otherwise by its provider."""
    family = next((name for pattern, name in FAMILIES if re.match(pattern, model)), "")
    kind, colon, _ = model.partition(":")
    provider = find_provider(kind, configured) if colon and not family else None
    return family or (provider.dialect if provider else "") or "call-form"


def dialect_of_next(dialect: Dialect, model: str, *, takes_tools: bool) -> Dialect:
    """The dialect of a conversation that continues with another model: the same, unless its calls are native
    and that model calls better in text. Every model reads a dialect in text."""
    if not dialect.native or choose_dialect(model, takes_tools=takes_tools)[0].native:
        return dialect
    return without_tools(dialect)


def without_tools(dialect: Dialect) -> Dialect:
    """The dialect to use instead if the server takes no native tools."""
    if not dialect.native:
        return dialect
    return RUN_TEXT if dialect.name == "run" else CALL_FORM


def refusal_note(dialect: Dialect, reason: str) -> str:
    """The note for the user that a dialect's native tools cannot be used, with the replacement."""
    return f"{reason} It is asked for {_words(without_tools(dialect))}."


def _words(dialect: Dialect) -> str:
    return "programs in text" if dialect.name == "run" else "call forms in text"


# Results for the model


def call_id(found: FoundCall | Fault) -> str:
    """The provider's id of a native call or fault; empty for a call in text."""
    return str(getattr(found, "id", ""))


def result_messages(heard: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """The messages with the results and faults of a turn for the model, from pairs of call id and text.

    Each is a role, a text and a call id, for Messages.append: every native call gets a message with its id,
    all others share one.
    """
    told = list(heard)
    rest = "\n\n".join(text for id, text in told if not id)
    return [("tool", text, id) for id, text in told if id] + ([("tool", rest, "")] if rest else [])


# Native calls


def sound_calls(calls: Iterable[NativeCall], finish: str) -> list[NativeCall]:
    """Native calls to send back to a server: misspelt arguments with only one reading become JSON."""
    from quoth.neuro.reading.json_calls import sound_arguments

    cut = finish == "length"
    return [{**call, "arguments": sound_arguments(call["arguments"], cut=cut)} for call in calls]


def _read_native(completion: Completion, table: ToolTable, words: Reading) -> Reading:
    """The native calls of a reply, with its ``words``. A call in the words is one that the server did not
    extract, not an additional one."""
    from quoth.neuro.reading.json_calls import bare_name, read_arguments

    reading = replace(words, calls=[], errors=[], passed=[])
    for call in completion.calls:
        name = bare_name(call["name"], table.wire_names)
        name = table.wire_names.get(name, name)
        try:
            read = read_arguments(call["arguments"], cut=completion.finish == "length")
            form = from_json({"name": name, "arguments": read.values})
        except InvalidCallError as error:
            reading.errors.append(_fault(call, name, error, completion.finish))
            continue
        if form.tool in table:
            form = _without_nulls(form, table.get(form.tool))
        reading.calls.append(NativeFound(form, 1, 1, 0, 0, repairs=read.repairs, id=call["id"]))
    return reading


def _fault(call: NativeCall, name: str, error: InvalidCallError, finish: str) -> NativeFault:
    hint = "the reply was cut off before its end; be brief" if finish == "length" else ""
    said = str(error).rstrip(".").replace("The arguments are", f"The arguments of {name} are")
    return NativeFault(said, 1, 1, hint, id=call["id"])


def _without_nulls(form: CallForm, tool: CognitiveTool) -> CallForm:
    """The call without nulls, which models write for missing arguments under strict schemas."""
    if None not in form.args.values():
        return form
    params = {name: param for param in tool.params for name in (param.name, kebab(param.shown))}
    args = {
        name: value
        for name, value in form.args.items()
        if value is not None or name not in params or not _left_out(params[name])
    }
    return replace(form, args=args) if len(args) < len(form.args) else form


def _left_out(param: Param) -> bool:
    return not param.required and param.type is not Any and type(None) not in get_args(param.type)


# Programs


@cache
def _run_table() -> ToolTable:
    """A table with the dialect's single tool. It is never dispatched, because it is read as a call of
    eval."""
    program = Param("program", str, rules.RUN_PROGRAM)
    return ToolTable((CognitiveTool("run", rules.RUN_TOOL, (program,)),))


def _program(form: CallForm) -> CallForm:
    """``(run :program X)`` as ``(eval :form X)``; any other call as a program."""
    if form.tool == "eval":
        return form
    if form.tool != "run":
        return CallForm("eval", {"form": Code(str(form))})
    values = [
        *form.positional,
        *(form.args[name] for name in form.args if kebab(name) in ("program", "form")),
    ]
    if len(values) != 1 or len(form.args) + len(form.positional) != 1:
        return CallForm("eval", form.args, form.positional)  # the door reports its fault
    return CallForm("eval", {"form": values[0]})
