"""One call, its result, its preview, the verdicts on it and the origins of its values, as plain data.

The host sets all of it; a model can set nothing but the form. It knows no table and no door.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, get_args

from quoth.tools.errors import Status
from quoth.tools.lisp.forms import CallForm

# Where a value comes from, and what a person is told of where the arguments of a call do, as data.
#
# It must not know how that is found (tools/origin), calls or terminals.


OriginKind = Literal["task", "field", "text", "model"]
KINDS: tuple[OriginKind, ...] = get_args(OriginKind)  # the strongest first


class ValueOrigin(NamedTuple):
    """Where one value comes from. ``fields`` are the tools in whose results it is the whole value of a field;
    ``text`` names the text in which it stands, ``read-file mail.txt``, and is looked for only where the value
    is neither in the person's words nor in a field."""

    in_task: bool = False
    fields: tuple[str, ...] = ()
    text: str = ""

    @property
    def kind(self) -> OriginKind:
        """The strongest that holds; ``model`` is a value that stands nowhere."""
        return "task" if self.in_task else "field" if self.fields else "text" if self.text else "model"

    @property
    def known(self) -> bool:
        """Whether it comes from the person or from a field, and from no text that somebody else wrote."""
        return self.in_task or bool(self.fields)

    def __str__(self) -> str:
        """In about three words, for a person: ``in your task``, ``field of search-contacts``."""
        words = {"task": "in your task", "model": "the model's own"}
        words |= {"field": f"field of {', '.join(self.fields)}", "text": f"in the text of {self.text}"}
        return words[self.kind]


MODEL = ValueOrigin()  # of a value that stands nowhere


class ArgumentOrigin(NamedTuple):
    """Where an argument comes from, in a few ``words``; or, if there are ``values``, where these in it do,
    and so many ``more``. Nothing in it is a secret."""

    argument: str
    kind: str
    words: str
    values: tuple[str, ...] = ()
    more: int = 0

    @property
    def known(self) -> bool:
        """Whether it comes from the person or from a field; all else is marked."""
        return self.kind in ("task", "field")

    def to_data(self) -> dict[str, Any]:
        more = {"values": list(self.values), "more": self.more}
        said = {"argument": self.argument, "origin": self.kind, "words": self.words, "known": self.known}
        return said | {name: value for name, value in more.items() if value}


def to_text(origins: Sequence[ArgumentOrigin]) -> str:
    """The origins as a store keeps them; an empty text for none."""
    return json.dumps([one.to_data() for one in origins]) if origins else ""


def of_text(text: str) -> tuple[ArgumentOrigin, ...]:
    """The origins that a store kept. What cannot be read, in a row that somebody changed, is left out."""
    try:
        return tuple(_of_data(one) for one in json.loads(text)) if text else ()
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def _of_data(said: dict[str, Any]) -> ArgumentOrigin:
    values = tuple(str(value) for value in said.get("values", ()))
    return ArgumentOrigin(
        str(said["argument"]), str(said["origin"]), str(said["words"]), values, int(said.get("more", 0))
    )


# A frozen dataclass that is copied often, with a field or two changed.
#
# It knows no fields of its own.


class Record:
    """The base of a frozen dataclass that checks nothing when it is made."""

    def changed(self, **fields: Any) -> Self:
        """A copy with these fields changed. ``dataclasses.replace`` does the same at thirty times the cost,
        which each step of a run would pay several times."""
        made = object.__new__(type(self))
        said = made.__dict__
        said.update(self.__dict__)
        count = len(said)
        said.update(fields)
        if len(said) != count:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(fields.keys() - self.__dict__)}")
        return made


# The ways a call can come to the door. One that is not named here is refused, so that each has its tests:
# a model's reply, to a task or in a chat; a person's form (quoth call), program (quoth eval) or line in the
# REPL; a Python program; a form of a flight plan; from inside of a call, a program in the sandbox, the body
# of another tool, or a sub-agent's model; the replay of a session, which makes calls that only read again;
# and another machine, for which a worker makes calls that have passed its caller's door.
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
]
ROUTES: tuple[Route, ...] = get_args(Route)
TYPED: frozenset[Route] = frozenset({"call", "eval", "repl", "python"})  # of what a person has typed


@dataclass(frozen=True)
class Verdict:
    """What a guard, rule or gate says of a call: ``allow``, ``ask`` (a person decides) or ``deny``.

    ``rule`` is the text of the policy's rule that decided, for the audit, and ``origin`` says where the
    values come from that it decided by. An ``each_time`` question is
    answered by no grant of a scope and by no approved plan of a program. Where the reason contains the text
    of an exception, ``told`` is the reason without it: models get that, the audit has the reason.
    """

    kind: Literal["allow", "ask", "deny"]
    reason: str = ""
    rule: str = field(default="", compare=False)
    each_time: bool = field(default=False, repr=False)
    origin: str = field(default="", compare=False, repr=False)
    told: str = field(default="", compare=False, repr=False)

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
    """A person asked for another call of the same tool instead of this one. ``by`` names the person, for
    the audit; ``call`` is the id of the new call."""

    form: CallForm
    by: str = ""
    call: str = ""


Voice = Literal["policy", "guard", "gate", "consent"]
VOICES: tuple[Voice, ...] = get_args(Voice)
Decided = Verdict | EditedCall  # what a voice has said of a call


ALLOW = Verdict("allow")
NO_GATE = Verdict("allow", "no gate")  # the tool wants one, and the host has none


def allow() -> Verdict:
    """``(allow)``: nothing speaks against the call."""
    return ALLOW


def deny(reason: str = "", *, told: str = "") -> Verdict:
    """``(deny "why")``: the call is refused and the reason is its result."""
    return Verdict("deny", reason, told=told)


def ask(reason: str = "") -> Verdict:
    """``(ask "why")``: the call waits until a person allows it."""
    return Verdict("ask", reason)


def verdict_text(voice: Voice, said: Decided | None) -> str:
    """A verdict as audit and transcript record it. An allow by policy, guard or gate is recorded without
    its reason, but with the origins that decided; a person's allow with it; a gate that there is not is
    recorded as such."""
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
    """The columns of an audit row that hold each verdict, and the policy rule that decided."""
    policy = verdicts.get("policy")
    rule = policy.rule if isinstance(policy, Verdict) else ""
    return {voice: verdict_text(voice, verdicts.get(voice)) for voice in VOICES} | {"rule": rule}


@dataclass(frozen=True)
class Call(Record):
    """One call on its way through the door. The host sets every field but ``form``.

    ``depth`` counts nesting (a call inside a program inside a call …), ``parent`` is the id of the call that
    made this one, ``round`` is the turn of the loop and ``order`` the index within that turn. ``message`` is
    the user's message that the call answers. ``key`` identifies the call across interruptions: a ``resumed``
    call has the key of the interrupted one, a new call its own id. ``repairs`` list what the reader corrected
    in the model's spelling. ``turn`` distinguishes two user messages with the same text; it is empty where
    the text is enough. ``run`` is the run of the loop, ``event`` the sequence number of the transcript event
    that the call comes from. ``quoted`` is set for a call read from the text of a reply if the model had read
    the same text before, and says where: such a call needs approval. ``confidence`` (0 to 1) is the model's
    own estimate of the reply that the call stands in, if it gave one. An ``each_time`` call is covered by no
    scope that was granted for another form. ``origins`` tells whoever is asked about the call where its
    arguments come from. An ``edited`` one is what a person wrote in place of another.
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
    program_run: str = (
        ""  # the key of the run whose program, or a program in that program, makes this very call
    )
    resumed: bool = False
    repairs: tuple[str, ...] = ()
    written: tuple[str, ...] = ()  # how its paths were spelt, where that is not how they are judged
    turn: str = ""
    run: str = ""
    event: int = 0
    quoted: str = ""
    confidence: float | None = None
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
    it is not. ``audit`` holds tool, digest, status, duration_ms and ts (UTC). ``follow_up`` is what the
    person in a chat is told besides: what the body said, or why the call failed; None is silence.
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

    def to_json(self) -> dict[str, Any]:
        said = {name: value for name, value in vars(self).items() if name != "follow_up"}
        return said | {"side_effects": list(self.side_effects), "audit": dict(self.audit)}


PROGRAMS = "eval"  # the tool whose body is a program in the sandbox


def new_call(form: CallForm, **marks: Any) -> Call:
    """A Call with a fresh id; ``marks`` are further fields of Call. With ``key`` it resumes the call of
    that key, unless ``resumed`` says otherwise."""
    return Call(id=secrets.token_hex(5), form=form, **{"resumed": "key" in marks, **marks})


def _inner(call: Call, form: CallForm, name: str) -> Call:
    """A call made by the body of ``call``: one level deeper, with the same user and session. Its key is
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


# The preview of a call, as data: what would happen if the call were made, and what it would change.
#
# It knows no door; the door fills it.


@dataclass(frozen=True)
class RemainingQuota:
    """What one limit leaves: ``count`` calls, or None where only ``words`` can describe it."""

    count: int | None
    words: str


@dataclass(frozen=True)
class CallPreview:
    """The preview of one call. ``paths`` are the files it names, None where they are not known. ``leads``
    maps arguments to the targets of their links, where the form does not name the target. ``secret`` names
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


# What a call would change, as data: the files with their texts before and after, and the lines that differ.
#
# It knows no tool and no door; the door fills it, and nothing of it is stored or told to a model.


COMPARED = 2000  # lines of each text; what is longer is told as taken away and put there


class Change(NamedTuple):
    """One file that a call would change. ``before`` is None where there is no file, ``after`` is None where
    it would be removed. ``binary`` is the size of a file that is no text, which would be replaced."""

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
    """The places where two texts differ: from and to in the old one, and in the new one. What both begin and
    end with is left out first, so that a small change in a long file is quickly found."""
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
