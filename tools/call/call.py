"""One call, its result, its preview, the verdicts on it and the origins of its values, as plain data.

The host sets every field; a model can set only the form.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple, Self, get_args

from quoth.tools.errors import Status
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm

# The origins of values, and of the arguments of a call as a person sees them, as plain data.
# tools/origin finds them.


OriginKind = Literal["task", "field", "text", "model"]
KINDS: tuple[OriginKind, ...] = get_args(OriginKind)  # the strongest first


class ValueOrigin(NamedTuple):
    """The origin of one value. ``in_task``: the person's words contain it. ``fields`` are the tools in whose
    results it is the whole value of a field. ``text`` names the text that contains it, such as ``read-file
    mail.txt``; it is searched only if the value is neither in the person's words nor in a field."""

    in_task: bool = False
    fields: tuple[str, ...] = ()
    text: str = ""
    # The client that sent it, ``client NAME``, or the route of the plan or form that computed it; empty for a
    # model.
    by: str = ""

    @property
    def kind(self) -> OriginKind:
        """The strongest origin; ``model`` for a value that was found in no text."""
        return "task" if self.in_task else "field" if self.fields else "text" if self.text else "model"

    @property
    def known(self) -> bool:
        """Whether it comes from the person or from a field, not from a text that another person wrote."""
        return self.in_task or bool(self.fields)

    def __str__(self) -> str:
        """About three words for a person: ``in your task``, ``field of search-contacts``."""
        own = _BY.get(self.by, self.by)
        words = {"task": "in your task", "model": own}
        words |= {"field": f"field of {', '.join(self.fields)}", "text": f"in the text of {self.text}"}
        return words[self.kind]


MODEL = ValueOrigin()  # of a value that was found in no text
_BY = {"": "the model's own", "flight": "computed by your plan"}
_BY |= dict.fromkeys(("call", "eval", "repl", "python"), "computed by your form")


class ArgumentOrigin(NamedTuple):
    """The origin of one argument, in a few ``words``. ``values`` are the values in it that have this origin,
    if it has several, and ``more`` counts the values beyond those. ``aims``: they say where something goes or
    are links. It contains no secret."""

    argument: str
    kind: str
    words: str
    values: tuple[str, ...] = ()
    more: int = 0
    aims: bool = True

    @property
    def known(self) -> bool:
        """Whether it comes from the person or from a field."""
        return self.kind in ("task", "field")

    @property
    def marked(self) -> bool:
        """Whether a person should look at it: a destination or link that neither they nor a field named."""
        return self.aims and not self.known

    def to_data(self) -> dict[str, Any]:
        more = {"values": list(self.values), "more": self.more}
        said = {"argument": self.argument, "origin": self.kind, "words": self.words, "known": self.known}
        said["aims"] = self.aims
        return said | {name: value for name, value in more.items() if value}


def to_text(origins: Sequence[ArgumentOrigin]) -> str:
    """The origins as JSON text for a store; empty for none."""
    return json.dumps([one.to_data() for one in origins]) if origins else ""


def of_text(text: str) -> tuple[ArgumentOrigin, ...]:
    """The origins in a stored text; none if the text cannot be read, because a person changed the row."""
    try:
        return tuple(_of_data(one) for one in json.loads(text)) if text else ()
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def _of_data(said: dict[str, Any]) -> ArgumentOrigin:
    values = tuple(str(value) for value in said.get("values", ()))
    return ArgumentOrigin(
        str(said["argument"]),
        str(said["origin"]),
        str(said["words"]),
        values,
        int(said.get("more", 0)),
        said.get("aims") is not False,
    )


class Record:
    """The base of a frozen dataclass that is copied often."""

    def changed(self, **fields: Any) -> Self:
        """A copy with these fields changed, not validated again; 30 times as fast as ``dataclasses.replace``.
        Raises TypeError for an unknown field."""
        made = object.__new__(type(self))
        said = made.__dict__
        said.update(self.__dict__)
        count = len(said)
        said.update(fields)
        if len(said) != count:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(fields.keys() - self.__dict__)}")
        return made


# The routes by which a call reaches the door; the door refuses any other, so that each route has its tests.
# A model's reply, to a task or in a chat; a person's form (quoth call), program (quoth eval) or line in the
# REPL; a Python program; a form of a flight plan. Inside a call: a program in the sandbox, the body of
# another tool, or a sub-agent's model. The replay of a session, which repeats calls that only read. Another
# machine, for which a worker runs calls that have passed its caller's door.
Route = Literal[
    "reply",
    "chat",
    "call",
    "eval",
    "repl",
    "python",
    "flight",
    "program",
    "tool",
    "agent",
    "replay",
    "remote",
    "acp",
    "mcp",
    "serve",
    "mcp-server",
    "guard",
]
ROUTES: tuple[Route, ...] = get_args(Route)
# Of calls that a person typed.
TYPED: frozenset[Route] = frozenset({"call", "eval", "repl", "python"})
# Routes of other programs: "mcp-server" is what a server asks of us, "guard" a call that another agent is
# about to make itself, the others are what a client sends. A model may have written the arguments.
CLIENTS: frozenset[Route] = frozenset({"acp", "mcp", "serve", "mcp-server", "guard"})


@dataclass(frozen=True)
class Verdict:
    """The decision of a guard, rule or gate about a call: ``allow``, ``ask`` (a person decides) or ``deny``.

    ``rule`` is the text of the policy's rule that decided, for the audit; ``origin`` describes the origins
    of the values that the rule checked. An ``each_time`` question is not answered by a granted scope or by
    an approved plan of a program. If the reason contains the text of an exception, ``told`` is the reason
    without that text: models receive ``told``, the audit records the reason.
    """

    kind: Literal["allow", "ask", "deny"]
    reason: str = ""
    rule: str = field(default="", compare=False)
    each_time: bool = field(default=False, repr=False)
    origin: str = field(default="", compare=False, repr=False)
    told: str = field(default="", compare=False, repr=False)
    request: str = field(default="", compare=False, repr=False)  # the id of the request that now waits

    @property
    def for_model(self) -> str:
        return self.told or self.reason


@dataclass(frozen=True)
class GateDecision:
    """The answer of a gate (seed 000): whether the call is approved, and why not."""

    approved: bool
    reason: str = ""


@dataclass(frozen=True)
class FailedOpen(Verdict):
    """The gate failed and the tool is declared to run without it; ``reason`` is the gate's error."""


class EditedCall(NamedTuple):
    """A person replaced this call with another call of the same tool. ``by`` names the person, for the
    audit; ``call`` is the id of the new call."""

    form: CallForm
    by: str = ""
    call: str = ""


Voice = Literal["policy", "guard", "gate", "consent"]
VOICES: tuple[Voice, ...] = get_args(Voice)
Decided = Verdict | EditedCall  # the decision of one voice


ALLOW = Verdict("allow")
NO_GATE = Verdict("allow", "no gate")  # the tool asks for a gate, and the host has none


def allow() -> Verdict:
    """``(allow)``: no objection to the call."""
    return ALLOW


def deny(reason: str = "", *, told: str = "") -> Verdict:
    """``(deny "why")``: the call is refused and the reason is its result."""
    return Verdict("deny", reason, told=told)


def ask(reason: str = "") -> Verdict:
    """``(ask "why")``: the call waits until a person allows it."""
    return Verdict("ask", reason)


def verdict_text(voice: Voice, said: Decided | None) -> str:
    """A verdict as audit and transcript record it. An allow by policy, guard or gate is recorded with the
    origins that decided but without its reason; a person's allow with its reason; a missing gate as
    ``no gate``."""
    if said is None:
        return ""
    if isinstance(said, EditedCall):
        return f"{said.by or 'edited'}: made as call {said.call}"
    if isinstance(said, FailedOpen):
        return f"failed open: {said.reason}"
    if said.kind == "allow" and voice != "consent":
        return NO_GATE.reason if said is NO_GATE else f"allow: {said.origin}" if said.origin else "allow"
    if said.kind == "ask" and voice == "consent":
        return "pending"
    return f"{said.kind}: {said.reason}" if said.reason else said.kind


def verdict_columns(verdicts: Mapping[Voice, Decided]) -> dict[str, str]:
    """The columns of an audit row: each voice's verdict, and the policy rule that decided."""
    policy = verdicts.get("policy")
    rule = policy.rule if isinstance(policy, Verdict) else ""
    return {voice: verdict_text(voice, verdicts.get(voice)) for voice in VOICES} | {"rule": rule}


@dataclass(frozen=True)
class Call(Record):
    """One call on its way through the door. The host sets every field but ``form``.

    ``depth`` counts nesting (a call inside a program inside a call …), ``parent`` is the id of the enclosing
    call, ``round`` is the turn of the loop and ``order`` the index within that turn. ``message`` is
    the user's message that the call answers. ``key`` identifies the call across interruptions: a ``resumed``
    call has the key of the interrupted one, a new call its own id. ``repairs`` lists the reader's corrections
    of the model's spelling. ``turn`` distinguishes two user messages with the same text; it is empty if
    the text is enough. ``run`` is the run of the loop, ``event`` the sequence number of the transcript event
    that contains the call. ``quoted`` names the text that the model had read before and that contains the
    same words as this call; such a call needs approval. ``confidence`` (0 to 1) is the model's own estimate
    of its reply, if it gave one. ``client`` is the name of the program that a person uses, or that calls by
    itself, such as an editor; empty for quoth's own commands. An ``each_time`` call is not covered by a scope
    that was granted for another form. ``origins`` returns the origins of the arguments, to show to the
    person who is asked about the call. An ``edited`` call was written by a person to replace another.
    """

    id: str
    form: CallForm
    route: Route = "python"
    user: str = ""
    session: str = ""
    depth: int = 0
    parent: str | None = None
    round: int = 0
    order: int = 0
    message: str = ""
    key: str = ""
    program_run: str = ""  # the key of the run whose program, or a program in that program, runs this call
    resumed: bool = False
    repairs: tuple[str, ...] = ()
    written: tuple[str, ...] = ()  # the original spelling of its paths, where the judged spelling differs
    turn: str = ""
    run: str = ""
    event: int = 0
    quoted: str = ""
    confidence: float | None = None
    client: str = ""
    each_time: bool = False
    edited: bool = False
    origins: Callable[[], Sequence[ArgumentOrigin]] = field(default=tuple, compare=False, repr=False)

    @property
    def tool(self) -> str:
        return self.form.tool


@dataclass(frozen=True)
class ToolResult:
    """The result that every call gets exactly once, whether it ran or not.

    ``value`` is plain JSON data when ``status`` is ok. ``message`` is a sentence for a person or model when
    it is not. ``audit`` has the keys tool, digest, status, duration_ms and ts (UTC). ``follow_up`` is an
    additional message for the person in a chat: text from the body, or why the call failed; None for none.
    """

    id: str
    tool: str
    status: Status
    value: Any = None
    message: str = ""
    side_effects: tuple[str, ...] = ()
    audit: Mapping[str, Any] = field(default_factory=dict)
    follow_up: str | None = None

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def request(self) -> str:
        """The id of the request that a pending call waits for; of a program with several, the first. Empty
        for any other call."""
        return str(self.audit.get("request", ""))

    def to_json(self) -> dict[str, Any]:
        said = {name: value for name, value in vars(self).items() if name != "follow_up"}
        said |= {"request": self.request} if self.request else {}
        return said | {"side_effects": list(self.side_effects), "audit": dict(self.audit)}


PROGRAMS = "eval"  # the tool whose body is a program in the sandbox


def new_call(form: CallForm, **marks: Any) -> Call:
    """A Call with a fresh id; ``marks`` are further fields of Call. With ``key`` it resumes the call of
    that key, unless ``resumed`` says otherwise."""
    return Call(id=secrets.token_hex(5), form=form, **{"resumed": "key" in marks, **marks})


def _inner(call: Call, form: CallForm, name: str) -> Call:
    """A call inside the body of ``call``: one level deeper, with the same user and session. Its key is
    the same each time the outer call is resumed."""
    return call.changed(
        id=secrets.token_hex(5),
        form=form,
        route="program" if call.tool == PROGRAMS else "tool",
        depth=call.depth + 1,
        parent=call.id,
        program_run=_run_of(call),
        key=f"{call.key or call.id}/{name}",
        event=0,
        repairs=(),
        quoted="",
        edited=False,
    )


def _run_of(call: Call) -> str:
    """The program run that the inner calls of ``call`` belong to; empty for calls by other tools and
    sub-agents."""
    if call.tool != PROGRAMS:
        return ""
    return call.program_run if call.parent is not None else call.key or call.id


def owner(call: Call) -> tuple[str, str] | None:
    """The session and user whose saved values a program may read and write, or None. Only a top-level call
    in a session has them. A form of a flight plan has none, since its meaning must not depend on values
    that another form has defined."""
    return (call.session, call.user) if not call.depth and call.session and call.route != "flight" else None


# The preview of a call, as data that the door fills in: the verdict, effects and changes if it ran.


@dataclass(frozen=True)
class RemainingQuota:
    """The calls that one limit still allows: ``count``, or None if only ``words`` can describe it."""

    count: int | None
    words: str


@dataclass(frozen=True)
class CallPreview:
    """The preview of one call. ``paths`` are the files it names, None if they are not known. ``leads``
    maps arguments to the targets of their links, if the form does not name the target. ``secret`` names
    the arguments that must not be shown."""

    form: CallForm
    verdict: Literal["allow", "ask", "deny", "invalid", "unknown"]
    reason: str = ""
    effects: tuple[str, ...] = ()
    cost: str = "free"
    gate: bool = False
    version: str = ""
    left: tuple[RemainingQuota, ...] = ()
    paths: tuple[str, ...] | None = None
    leads: Mapping[str, str] = field(default_factory=dict)
    secret: frozenset[str] = field(default_factory=frozenset)


# The changes of a call, as data that the door fills in: each file's text before and after, and the lines
# that differ. They are neither stored nor shown to a model.


COMPARED = 2000  # lines of each text; a longer text is shown as removed and added as a whole


class Change(NamedTuple):
    """One file that a call would change. ``before`` is None for a new file, ``after`` is None for a file
    that would be removed. ``binary`` is the size in bytes of a binary file that would be replaced."""

    path: str
    before: str | None
    after: str | None
    binary: int | None = None


@dataclass(frozen=True)
class Changes:
    """What one call would change. With ``trouble``, a sentence, that is not known, or the call ``fails``."""

    files: tuple[Change, ...] = ()
    trouble: str = ""
    fails: bool = field(default=False, compare=False)


def lines_of(text: str | None) -> list[str]:
    """The lines of a text with their ends, as editors count them."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text) if text else []


def differing(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The places where two texts differ: from and to in the old one, and in the new one. The common beginning
    and end are skipped first, so that a small change in a long file is found quickly."""
    import difflib  # here: most calls change nothing

    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[begin : len(old) - end], new[begin : len(new) - end]
    if max(len(before), len(after)) > COMPARED:
        yield begin, len(old) - end, begin, len(new) - end
        return
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if kind != "equal":
            yield begin + a, begin + b, begin + c, begin + d
