"""One call, its result and the verdicts on it.

Data only, set by the host: nothing of it can be said by a model. Knows no table and no door.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from quoth.tools.errors import Status
from quoth.tools.lisp.forms import CallForm

# The ways a call can come to the door. One that is not named here is refused, so that each has its tests:
# a model's reply; a person's form (quoth call), program (quoth eval) or line in the REPL; a Python program; a
# form of a flight plan; from inside of a call, a program in the sandbox, the body of another tool, or a
# sub-agent's model; and the replay of a session, which makes calls that only read again.
Route = Literal["reply", "call", "eval", "repl", "python", "flight", "program", "tool", "agent", "replay"]
ROUTES: tuple[Route, ...] = get_args(Route)


@dataclass(frozen=True)
class Verdict:
    """What a guard, rule or gate says of a call: ``allow``, ``ask`` (a person decides) or ``deny``.

    ``rule`` is the text of the policy's rule that decided, for the audit.
    """

    kind: Literal["allow", "ask", "deny"]
    reason: str = ""
    rule: str = field(default="", compare=False)


@dataclass(frozen=True)
class GateDecision:
    """What a gate says (seed 000): whether the call is approved, and why not."""

    approved: bool
    reason: str = ""


@dataclass(frozen=True)
class FailedOpen(Verdict):
    """The gate failed, and the tool is open then; ``reason`` is how it failed."""


@dataclass(frozen=True)
class EditedCall:
    """A person wants another call of the same tool made in place of this one; ``by`` says who, for the audit,
    ``call`` is the id it is to have."""

    form: CallForm
    by: str = ""
    call: str = ""


Voice = Literal["policy", "guard", "gate", "consent"]
VOICES: tuple[Voice, ...] = get_args(Voice)
Decided = Verdict | EditedCall  # what a voice has said of a call


ALLOW = Verdict("allow")


def deny(reason: str = "") -> Verdict:
    """``(deny "why")``: the call is refused and the reason is its result."""
    return Verdict("deny", reason)


def ask(reason: str = "") -> Verdict:
    """``(ask "why")``: the call waits until a person allows it."""
    return Verdict("ask", reason)


def verdict_text(voice: Voice, said: Decided | None) -> str:
    """What a voice has said of a call, as audit and transcript have it. That policy, guard or gate allow it
    needs no reason; a person's yes has one."""
    if said is None:
        return ""
    if isinstance(said, EditedCall):
        return f"{said.by or 'edited'}: made as call {said.call}"
    if isinstance(said, FailedOpen):
        return f"failed open: {said.reason}"
    if said.kind == "allow" and voice != "consent":
        return "allow"
    if said.kind == "ask" and voice == "consent":
        return "pending"
    return f"{said.kind}: {said.reason}" if said.reason else said.kind


def verdict_columns(verdicts: Mapping[Voice, Decided]) -> dict[str, str]:
    """The columns of an audit row that say who said what of a call, and by which rule."""
    policy = verdicts.get("policy")
    rule = policy.rule if isinstance(policy, Verdict) else ""
    return {voice: verdict_text(voice, verdicts.get(voice)) for voice in VOICES} | {"rule": rule}


@dataclass(frozen=True)
class Call:
    """One call on its way through the door. All fields but ``form`` are marks set by the host.

    ``depth`` counts nesting (a call made inside a program inside a call …), ``parent`` is the id of the call
    that made this one, ``round`` is the turn of the loop and ``order`` the place within that turn.
    ``message`` is what the user had said when the call was made. ``key`` names the call across interruptions:
    a call that is carried on, ``resumed``, has the key of the one it carries on; a new one its own id.
    ``repairs`` say what was mended when the call was read. ``turn`` tells one wish of the user from another
    in the same words; it is empty where the words are enough. ``run`` is the run of the loop it is of, and
    ``event`` the place in the transcript of what it comes from. ``quoted`` names where the words of a call,
    read from the text of a reply, stand in what the model had read before: a person is asked.
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

    @property
    def tool(self) -> str:
        return self.form.tool


@dataclass(frozen=True)
class ToolResult:
    """What every call gets, exactly once, whatever happened to it.

    ``value`` is plain JSON data when ``status`` is ok. ``message`` is a sentence for a person or model when
    it is not. ``audit`` carries tool, digest, status, duration_ms and ts (UTC).
    """

    id: str
    tool: str
    status: Status
    value: Any = None
    message: str = ""
    side_effects: tuple[str, ...] = ()
    audit: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"side_effects": list(self.side_effects), "audit": dict(self.audit)}


PROGRAMS = "eval"  # the tool whose body is a program in the sandbox


def new_call(form: CallForm, **marks: Any) -> Call:
    """A Call with a fresh id; ``marks`` are the host's (route, user, session, depth, parent, round, order,
    message). With ``key`` it is the call of that key, carried on unless ``resumed`` says otherwise."""
    return Call(id=secrets.token_hex(5), form=form, **{"resumed": "key" in marks, **marks})


def _inner(call: Call, form: CallForm, name: str) -> Call:
    """A call made by the body of ``call``: one deeper, same user and session. Its key is the same whenever
    the outer call is carried on."""
    return dataclasses.replace(
        call,
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
    )


def _run_of(call: Call) -> str:
    """The run that what ``call`` makes belongs to: what a tool or a sub-agent does by itself is of none."""
    if call.tool != PROGRAMS:
        return ""
    return call.program_run if call.parent is not None else call.key or call.id


def owner(call: Call) -> tuple[str, str] | None:
    """Whose values a program may use and leave: its session's, where it is a turn's own; those inside of
    other calls have none, nor have the forms of a flight plan: what an approved one means must not depend on
    what another has defined."""
    return (call.session, call.user) if not call.depth and call.session and call.route != "flight" else None
