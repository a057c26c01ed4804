"""The origins of the values of calls, and the texts that the model has read, in the sessions of a host: feeds
the index of each session (tools/origin) from its transcript.

Nothing is kept before the first look-up of a session. Then all its events are read once, and later events are
added as they are written.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import hy.models as m

from quoth.tools.call.call import CLIENTS, MODEL, PROGRAMS, TYPED, Call, Route, ValueOrigin, new_call
from quoth.tools.call.context import Origins
from quoth.tools.call.redaction import Redactor
from quoth.tools.errors import InvalidCallError
from quoth.tools.history.event import Event, Kind, read_form
from quoth.tools.history.transcript import Transcript
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, canonical, from_model, head_name, kebab
from quoth.tools.lisp.printer import Code, print_string, print_value, show
from quoth.tools.lisp.reader import ReadError, read_all
from quoth.tools.origin.quotations import ReadText, close, letters, words
from quoth.tools.policy.limits import only_reads
from quoth.tools.registry.arguments import bind
from quoth.tools.registry.table import ToolTable
from quoth.tools.text import short
from quoth.tools.visible import visible

# Finds the words of a call in texts that the model has read: the call may then be a quotation and not an
# intention.
#
# The result is in ``Call.quoted``, and the door asks a person. tools/origin/quotations.py compares the texts.


MAX_INNER = 100  # maximum number of calls of one program that are searched separately
SHOWN = 60  # maximum of characters in the name of a result
KEYED_WORDS, BARE_WORDS, PROGRAM_WORDS = 3, 4, 5  # fewer words match by chance
# The name of a result is the first of these arguments, otherwise the first text.
_NAMING = ("path", "file", "url", "name", "id", "query", "pattern")


def label_of(form: CallForm, table: ToolTable) -> str:
    """The name of a call's result, for a person: ``read-file mail.txt``."""
    form = Redactor.of(form, table).form
    texts = [form.args[name] for name in _NAMING if name in form.args]
    texts += [*form.positional, *form.args.values()]
    texts = [" ".join(text) if _is_listed(text) else text for text in texts]
    main = next((text for text in texts if isinstance(text, str) and text), "")
    main = main if main.isprintable() else print_string(main)[1:-1]
    return f"{form.tool} {short(main, SHOWN)}".rstrip()


def _is_listed(value: Any) -> bool:
    """Whether a value is the words of a command."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def quoted(form: CallForm, text: str, table: ToolTable, read: Iterable[ReadText]) -> str:
    """The name of the text that contains the words of a call; empty if there is none or the call only reads.
    ``text`` is the call as the model wrote it."""
    if form.tool not in table:
        return ""
    tool = table.get(form.tool)
    if tool.name != PROGRAMS and only_reads(tool):
        return ""
    exact, spelt = needles(form, text, table)
    typed = {letters(text), letters(str(form))} - {""}
    return next((one.name for one in read if one.quotes(typed, exact, spelt)), "")


def stands(line: str, read: Iterable[ReadText]) -> bool:
    """Whether one of the texts contains exactly this line, which is not a call."""
    typed, folded = [letters(line)], [close(line)]
    return any(one.quotes(typed, folded) for one in read)


def needles(form: CallForm, text: str, table: ToolTable) -> tuple[set[str], set[str]]:
    """The search terms: normalised texts, and sequences of words."""
    exact, spelt = {close(text), close(str(form))}, _rows(form, table)
    if form.tool == PROGRAMS:
        program = next((value for value in (*form.args.values(), *form.positional)), "")
        exact_inner, spelt_inner = _of_program(str(program), table)
        exact, spelt = exact | exact_inner, spelt_inner
    return {needle for needle in exact if needle}, spelt


def _rows(form: CallForm, table: ToolTable) -> set[str]:
    """The words of a call in every usual order of its arguments, with and without their names."""
    tool, named = table.get(form.tool), [form]
    with contextlib.suppress(InvalidCallError):  # the door reports it
        bound = bind(tool.name, tool.params, form.args, form.positional)
        named += [CallForm(tool.name, bound)]
        named += [CallForm(tool.name, {p.name: bound[p.name] for p in tool.params if p.name in bound})]
    keyed = {words(spell(one)) for one in named if one.args for spell in (str, canonical)}
    bare = {words(str(CallForm(one.tool, {}, (*one.positional, *one.args.values())))) for one in named}
    return {row for row in keyed if row.count(" ") > KEYED_WORDS} | {
        row for row in bare if row.count(" ") > BARE_WORDS
    }


def _of_program(program: str, table: ToolTable) -> tuple[set[str], set[str]]:
    """The search terms for a program, and for each of its calls that does more than read."""
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
        if name == PROGRAMS:  # a program may contain another as text
            pending.extend(form for item in node if isinstance(item, m.String) for form in _read(str(item)))
    return found


def _read(program: str) -> list[Any]:
    try:
        return list(read_all(program))
    except ReadError:
        return []


SESSIONS = 16  # sessions whose indexes are kept; others are read from their transcripts again
ASKS = "ask-person"
SUB_AGENT = "/agent"  # the end of the name of a run that works for a call
GIVEN, PLAN, MESSAGE = "the data given with the task", "the plan", "a message of the chat"
HERE = "the prompt about this folder"
NAME = 60  # maximum of characters in a name for a person
HEARD: frozenset[Kind] = frozenset({"stimulus", "memory", "intent", "call", "receipt", "approval", "flight"})
SAID, SAID_CHARS = 10, 2_000  # texts of a person that decide which tools are needed, and characters of each


def is_typed(call: Call) -> bool:
    """Whether a person has written the form of this call, or approved it as part of a plan."""
    by_hand = not call.depth and (call.route in TYPED or call.route == "flight")
    return by_hand or call.edited


@dataclass
class _PastForm:
    """A call of the transcript. Its form is parsed only when needed."""

    said: Mapping[str, Any]
    user: str
    begun: CallForm | None

    @cached_property
    def form(self) -> CallForm:
        return self.begun or read_form(self.said["form"])


class SessionOrigins:
    """The texts and values that one session has seen, from its events in order."""

    def __init__(
        self,
        tools: Callable[[], ToolTable],
        outer: Callable[[str], Call | None] | None = None,
        read: Mapping[tuple[int, str], ReadText] | None = None,
    ) -> None:
        from quoth.tools.origin.index import OriginIndex  # here: most calls are judged without it

        self.read = dict(read or {})  # the texts read by the model, by event and text, in order
        self._tools = tools
        self._outer = outer  # the calls with running bodies
        self._index = OriginIndex()
        self._users: dict[str, str] = {}  # by run and flight
        self._made: dict[int, _PastForm] = {}  # calls without a result, by event
        self._begun = 0  # the event of a call with effects whose body may not have run
        self._typed: set[str] = set()  # the ids of calls whose words have been added
        self._flights: set[int] = set()  # the events of flights
        self._approved: set[str] = set()  # the runs of steps that a person has approved
        self._said: dict[str, deque[str]] = {}  # the latest texts of each person
        self.asked_intent = False  # whether a model was asked which tools are needed
        self._new: set[str] = set()  # the people with texts since the last answer about needed tools
        self._needed: dict[str, frozenset[str]] = {}  # the tools that each person's words need

    def find(self, value: Any, call: Call) -> ValueOrigin:
        if is_typed(call):
            return ValueOrigin(in_task=True)
        self._given()
        return self._index.find(value, call.user)

    def intended(self, call: Call) -> bool | None:
        return True if is_typed(call) else self.needs({call.tool}, call.user)

    def needs(self, tools: Collection[str], user: str) -> bool | None:
        """Whether the person's words need one of these tools; None if the model did not say."""
        needed = self._needed.get(user)
        return None if needed is None else not needed.isdisjoint(tools)

    def new_words(self, user: str) -> str:
        """The person's texts, in order, if there is a new one since the model last said which tools they
        need; otherwise empty."""
        return self.words(user) if user in self._new else ""

    def words(self, user: str) -> str:
        """The person's latest texts, in order."""
        return "\n\n".join(self._said.get(user, ()))

    def _say(self, what: Any, user: str) -> None:
        """Add a person's words."""
        self._index.say(what, user)
        if text := (what if isinstance(what, str) else print_value(what)).strip():
            half = SAID_CHARS // 2
            text = text if len(text) <= SAID_CHARS else f"{text[:half]} … {text[-half:]}"
            self._said.setdefault(user, deque(maxlen=SAID)).append(text)
            self._new.add(user)

    def hear_form(self, form: CallForm, user: str, call: str) -> None:
        """Add the words of a form that a person has written, once: the words of its arguments, and also the
        texts in a program, because the program contains some of them with escapes."""
        if call in self._typed:
            return
        self._typed.add(call)
        values = _values(form)
        self._index.say(
            [*values, *(text for one in values if isinstance(one, Code) for text in _texts_in(one))], user
        )

    def hear_plan(self, form: CallForm, run: str, call: str) -> None:
        """Add the program of a step without an approval. The words of other steps are in their approval; the
        results of other steps in the program are known from those steps."""
        if call not in self._typed and run not in self._approved:
            self._typed.add(call)
            self._index.text(PLAN, "\n".join(map(str, _values(form))))

    def take(self, seq: int, kind: Kind, data: Mapping[str, Any], run: str, parent: int, key: str) -> None:
        """Add one event; it is analysed later."""
        refused = kind == "receipt" and parent == self._begun and "stage" in data
        if refused:
            self._begun = 0
        elif kind not in ("approval", "repair"):
            self._given()
        match kind:
            case "stimulus":
                self._begins(seq, data, run)
            case "memory":
                for block in data["blocks"]:
                    text = "\n".join(filter(None, (block.get("description"), block["text"])))
                    name = _named("the memory block", block["label"])
                    self._index.text(name, text)
                    self._reads(seq, name, text)
            case "intent":
                self.asked_intent = True
                self._new.discard(user := self.user_of(run))
                if "tools" in data:
                    self._needed[user] = self._needed.get(user, frozenset()).union(data["tools"])
            case "flight" if "user" in data:
                self._users[key] = data["user"]
                self._flights.add(seq)
            case "approval" if "words" in data:
                self._approved.add(run)
                for said in data["words"]:
                    self._say(said, self.user_of(run))
                    self._index.say([*_texts_in(said)], self.user_of(run))
            case "call":
                self._calls(seq, data, run, parent)
            case "receipt":
                self._ends(seq, data, parent)

    def _reads(self, seq: int, name: str, *told: Any, said: bool = False) -> None:
        """Note the texts of an event that the model saw, because it may repeat them."""
        if text := "\n".join(one if isinstance(one, str) else print_value(one) for one in told if one):
            self.read.setdefault((seq, text), ReadText(seq, name, text, said))

    def _begins(self, seq: int, data: Mapping[str, Any], run: str) -> None:
        """Add the start of a run. The task of a sub-agent is a model's words; the words of a step of a plan
        are a person's only after its approval."""
        files = [file.get("text") for file in data.get("files", ())]
        self._reads(seq, GIVEN, data.get("surroundings"), data.get("data"), *files)
        if data.get("chat"):
            self._reads(seq, MESSAGE, data["text"], said=True)
        user = self._users[run] = str(data.get("speaker") or data["user"])
        caller = data.get("caller")  # of a sub-agent in a session of its own
        if run.endswith(SUB_AGENT) or (caller and caller["route"] not in (*TYPED, "flight")):
            return
        if "/" in run or (caller and caller["route"] == "flight"):
            self._index.text(PLAN, data["text"])
        else:
            self._say(data["text"], user)
        for name, what in (("surroundings", HERE), ("data", GIVEN), ("news", GIVEN)):
            if data.get(name):
                self._index.text(what, data[name])
        for file in data.get("files", ()):
            if file.get("text"):
                self._index.text(_named("the file", file.get("name")), file["text"])

    def _calls(self, seq: int, data: Mapping[str, Any], run: str, parent: int) -> None:
        outer = self._outer(data["id"]) if self._outer is not None else None
        user = str(data.get("user") or self.user_of(run))
        made = self._made[seq] = _PastForm(data, user, None if outer is None else outer.form)
        if data.get("route") in TYPED or data.get("edited"):
            self.hear_form(made.form, user, str(data["id"]))
        elif parent in self._flights:
            self.hear_plan(made.form, run, str(data["id"]))
        if data.get("does"):
            self._begun = seq

    def _given(self) -> None:
        """Note the arguments of a call with effects whose body has run."""
        begun, self._begun = self._begun, 0
        if (made := self._made.get(begun)) is not None and made.form.tool != PROGRAMS:
            self._index.gave(_values(made.form), made.user)

    def _ends(self, seq: int, data: Mapping[str, Any], parent: int) -> None:
        status, stage = data["status"], data.get("stage", "")
        made = self._made.get(parent)
        form, table = CallForm("a call") if made is None else made.form, self._tools()
        label = label_of(form, table)
        # A program that did not run contains only the model's words; other stages contain only the host's.
        if not stage and not (status == "invalid" and form.tool == PROGRAMS):
            self._reads(seq, f"the result of {label}", data.get("value"), data.get("message"))
        if status == "pending" or made is None:
            return
        del self._made[parent]
        if stage not in ("", "receipt"):
            return
        if data.get("message"):
            self._index.text(label, data["message"])
        if status != "ok":
            return
        tool = table.find(form.tool)
        if form.tool == ASKS and tool is not None and not tool.remote:
            self._say(data.get("value"), made.user)
            return
        self._index.result(
            form.tool,
            data.get("value"),
            True if tool is None else tool.texts,
            args=_values(form),
            name=label,
            user=made.user,
        )

    def user_of(self, run: str) -> str:
        """The user of a run, of an attempt of a flight, or of work that a call of one has begun."""
        while run and run not in self._users:
            run = run.rpartition("/")[0]
        return self._users.get(run, "")


@dataclass(eq=False)
class LiveOrigins:
    """The origins of a session that is being written, and the last event that was added."""

    origins: SessionOrigins
    seen: int = 0
    undone: int = 0
    behind: bool = True  # some events were not added

    def read(self, before: int) -> Iterator[ReadText]:
        """The texts that the model has read before event ``before``, in order."""
        return (one for one in tuple(self.origins.read.values()) if one.seq < before)


class HostOrigins:
    """The origins in all sessions of a host. ``outer`` returns a call with a running body by its id."""

    def __init__(
        self, transcript: Transcript, tools: Callable[[], ToolTable], outer: Callable[[str], Call | None]
    ) -> None:
        self._transcript = transcript
        self._tools = tools
        self._outer = outer
        self._latest: OrderedDict[str, LiveOrigins] = OrderedDict()
        # also the ones that a session keeps
        self._live: WeakValueDictionary[str, LiveOrigins] = WeakValueDictionary()
        transcript.observer = self._heard

    def find(self, value: Any, call: Call) -> ValueOrigin:
        if is_typed(call):
            return ValueOrigin(in_task=True)
        if not call.session:
            return MODEL
        origins = self.live(call.session).origins
        around = self._outer(call.parent) if call.parent else None
        route, computes = call.route, True  # whether only programs are between the call and its outermost one
        while around is not None:  # the event of the outer call may not be written yet
            computes, route = computes and route == "program", around.route
            if is_typed(around) and around.route == "flight":
                origins.hear_plan(around.form, around.run, around.id)
            elif is_typed(around):
                origins.hear_form(around.form, around.user, around.id)
            around = self._outer(around.parent) if around.parent else None
        found = origins.find(value, call)
        computed = computes and call.parent and (route in TYPED or route == "flight")
        if found != MODEL or not (route in CLIENTS or computed):
            return found
        return found._replace(
            by=f"client {call.client or f'on route {route}'}" if route in CLIENTS else route
        )

    def intended(self, call: Call) -> bool | None:
        """The same for a call inside others: a program of a person and a plan's step are intended with all
        their calls, and the body of an intended tool with its own."""
        tools, of_body = {call.tool}, True
        while not is_typed(call):
            inside = call.parent if call.route in ("program", "tool") else None
            if (around := self._outer(inside) if inside else None) is None:
                origins = self.live(call.session).origins if call.session else None
                return None if origins is None else origins.needs(tools, call.user)
            of_body = of_body and call.route == "tool"
            tools |= {around.tool} if of_body else set()
            call = around
        return True

    def words(self, call: Call) -> str:
        """The latest texts of the person whose call it is."""
        return self.live(call.session).origins.words(call.user) if call.session else ""

    def live(self, session: str) -> LiveOrigins:
        """The origins of a session, with all events of its transcript. While a caller keeps the object, its
        texts and their secrets stay known."""
        live, undone = self._live.get(session), self._transcript.undone
        if live is None or live.undone != undone:  # a rolled-back event may have been added
            read = None if live is None else live.origins.read
            live = LiveOrigins(SessionOrigins(self._tools, self._outer, read), undone=undone)
        self._live[session] = self._latest[session] = live
        self._latest.move_to_end(session)
        while len(self._latest) > SESSIONS:
            self._latest.popitem(last=False)
        if live.behind:
            for event in self._transcript.events(session, after=live.seen):
                _take(live.origins, event)
                live.seen = event.seq
            live.behind = False
        return live

    def _heard(
        self, session: str, seq: int, kind: Kind, data: Mapping[str, Any], run: str, parent: int, key: str
    ) -> None:
        """Add a new event. If that fails, the next look-up reads the event again and raises the error."""
        live = self._live.get(session)
        if live is None or live.behind:
            return
        if seq <= live.seen:  # the session was removed and begins again
            self._drop(session)
            return
        live.behind = seq != live.seen + 1
        if not live.behind:
            try:
                live.origins.take(seq, kind, data, run, parent, key)
            except Exception:
                self._drop(session)
            else:
                live.seen = seq

    def _drop(self, session: str) -> None:
        self._live.pop(session, None)
        self._latest.pop(session, None)


def past_calls(
    transcript: Transcript, session: str, tools: Callable[[], ToolTable]
) -> Iterator[tuple[Event, Call, Origins]]:
    """The calls of a session in order, each once, with its event and the origins at that time. The next
    iteration changes these origins."""
    origins, routes, made = SessionOrigins(tools), _Routes(), set[str]()
    for event in transcript.events(session):
        if event.kind == "call" and event.key not in made:
            made.add(event.key)
            data = event.data
            user = str(data.get("user") or origins.user_of(event.run))
            depth = event.key.removeprefix(f"{event.run}/").count("/") + event.run.count(SUB_AGENT)
            depth += routes.inside.get(event.run, 0)
            marks = {"user": user, "session": session, "depth": depth, "key": event.key, "run": event.run}
            marks |= {"edited": bool(data.get("edited"))}
            call = new_call(read_form(data["form"]), route=routes.of(event, data, depth), **marks)
            yield event, call, origins
        routes.take(event)
        _take(origins, event)


class _Routes:
    """The routes of the calls of a transcript. The events contain them only for calls without a run."""

    def __init__(self) -> None:
        self._chats: set[str] = set()
        self._flights: set[int] = set()
        self._programs: set[int] = set()
        self.inside: dict[str, int] = {}  # the depth of runs that work for a call in another session

    def take(self, event: Event) -> None:
        if event.kind == "stimulus" and "chat" in event.data:
            self._chats.add(event.run)
        elif event.kind == "stimulus" and "caller" in event.data:
            self.inside[event.run] = event.data["caller"]["depth"] + 1
        elif event.kind == "flight":
            self._flights.add(event.seq)
        elif event.kind == "call" and read_form(event.data["form"]).tool == PROGRAMS:
            self._programs.add(event.seq)

    def of(self, event: Event, data: Mapping[str, Any], depth: int) -> Route:
        if not event.run:
            route: Route = data["route"]
            return route
        if event.parent in self._programs:
            return "program"
        if event.parent in self._flights:
            return "flight"
        if event.run.endswith(SUB_AGENT) or event.run in self.inside:
            return "agent"
        return "tool" if depth else "chat" if event.run in self._chats else "reply"


def _take(origins: SessionOrigins, event: Event) -> None:
    data = event.data if event.kind in HEARD else {}
    origins.take(event.seq, event.kind, data, event.run, event.parent, event.key)


def _named(what: str, name: Any) -> str:
    return f"{what} {short(visible(str(name or '')), NAME)}".rstrip()


def _values(form: CallForm) -> list[Any]:
    return [*form.positional, *form.args.values()]


def _texts_in(program: Any) -> Iterator[str]:
    """The texts in a value that is a program."""
    try:
        pending = list(read_all(program)) if isinstance(program, str) else []
    except ReadError:
        return
    while pending:
        node = pending.pop()
        if isinstance(node, m.String):
            yield str(node)
        elif isinstance(node, m.Sequence):
            pending.extend(node)
