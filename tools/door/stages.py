"""The stages of the door, in their order: ``STAGES``. A stage returns None to let the call continue, or the
Outcome that ends it.

The stages ignore anything a model says about permission. Plan mode comes after policy and guard, so that a
denied call does not become a step, and before gate and person, who judge a call when it runs: when the plan
is flown.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quoth.tools.call.call import (
    ALLOW,
    PROGRAMS,
    ROUTES,
    FailedOpen,
    Verdict,
    ask,
    deny,
)
from quoth.tools.call.canonical import as_written, checked, paths_of
from quoth.tools.call.context import Planning, place_of_wait
from quoth.tools.call.ports import Refusal, Reservation
from quoth.tools.call.redaction import SENT, Redactor
from quoth.tools.door.asking import ask_consent, require_verdict, telling_origins, weigh
from quoth.tools.door.changes import changes_of
from quoth.tools.door.execution import brief, kind_of, offered_to, run_function
from quoth.tools.door.gate import gate_verdict
from quoth.tools.door.pieces import Pieces
from quoth.tools.door.recording import record_begin
from quoth.tools.door.state import CallState, Outcome, Parts
from quoth.tools.errors import (
    InvalidCallError,
    QuothError,
    Status,
    ToolError,
    ToolFailure,
    UnknownToolError,
    raise_if_broken,
)
from quoth.tools.policy.limits import changes_nothing, is_of_own_files, only_reads
from quoth.tools.registry.code_version import place_of_error, users_traceback
from quoth.tools.registry.param_types import paths_at
from quoth.tools.registry.table import CognitiveTool, cognitive_tools
from quoth.tools.registry.values import UNKNOWN, NoDataError, plain

FILES = frozenset({"reads", "writes"})
LOOKING = ("read", "list", "output", "wait")  # operations of tools that ship and change nothing


async def note_in_plan(door: Parts, state: CallState) -> Outcome | None:
    """In plan mode, let a call that only reads continue, and note any other call as a step."""
    planning, tool = state.context.planning, state.known_tool
    if planning is None:
        return None
    if tool.name == PROGRAMS:
        planning.enters(state.call)
        return None
    paths = [*map(str, paths_of(tool, state.args))]
    operation = state.args.get("operation") if tool.ships else None
    if operation in LOOKING or (operation is None and changes_nothing(tool)):
        return _reads(planning, state, paths)
    if not FILES.issuperset(tool.effects):  # a program or a server may change anything
        paths = []
    if (fault := await _fault(planning, state, paths)) is not None:
        return Outcome("error", message=fault)
    return Outcome("denied", message=planning.note(telling_origins(state, state.call), paths))


def _reads(planning: Planning, state: CallState, paths: list[str]) -> Outcome | None:
    """Warn a call that reads files which earlier steps of the plan will change."""
    for path in paths:
        if not (step := planning.changing([path])):
            continue
        if not _exists(state, path):
            return Outcome("error", message=f"{path} does not exist yet; see step {step} of the plan.")
        state.notes.append(f"{path} is as it was before the plan; step {step} of the plan changes it.")
    return None


async def _fault(planning: Planning, state: CallState, paths: list[str]) -> str | None:
    """Why a call would fail now, unless an earlier step of the plan may change that."""
    tool = state.known_tool
    if tool.remote or planning.changing(paths, perhaps=True):
        return None
    found = await asyncio.to_thread(changes_of, tool, state.call, state.context.workspace)
    if found is None or not found.fails:
        return None
    return f"{tool.name} was not added to the plan. {found.trouble}"


def _exists(state: CallState, path: str) -> bool:
    try:
        return state.context.workspace.resolve(path).exists()
    except (ToolError, OSError):
        return True  # the body reports the error


LOG = logging.getLogger(__name__)
GUARD_SECONDS = 10.0


async def look_up(door: Parts, state: CallState) -> Outcome | None:
    call = state.call
    if call.route not in ROUTES:
        return Outcome("denied", message=f"{call.tool} was refused: unknown route {call.route}.")
    if call.depth > door.max_depth:
        return Outcome("denied", message=f"{call.tool} is nested deeper than {door.max_depth} calls.")
    try:
        state.tool = door.table.get(call.tool)
    except UnknownToolError as error:
        hint = ""
        if PROGRAMS in door.table.visible and not error.nearest:
            hint = " To compute something, give a Lisp program to eval: (eval (* 2 (+ 3 4)))."
        if call.route == "python" and call.tool in cognitive_tools:  # the author of the call wrote the tool
            return Outcome("unknown", message=f"This agent does not have {call.tool}; pass it in tools=[…].")
        return Outcome("unknown", message=f"{error}{hint}")
    if state.context.dry and not only_reads(state.tool):
        return Outcome("denied", message=f"{call.tool} does more than read, and this is a dry run.")
    return None


async def check_arguments(door: Parts, state: CallState) -> Outcome | None:
    tool, form = state.known_tool, state.call.form
    try:
        canonical_form, state.args = checked(tool, form, state.context.workspace)
    except InvalidCallError as error:
        return Outcome("invalid", message=f"{error} It is called as {tool.signature()}.")
    # From here on the call is canonical: one digest for all spellings and links.
    written = as_written(tool, state.args)
    state.call = state.call.changed(form=canonical_form, written=written)
    return None


async def find_receipt(door: Parts, state: CallState) -> Outcome | None:
    """Answer a repeated or resumed call by its receipt, unless policy or guard now deny the call."""
    found = door.receipts.find(state.known_tool, state.call)
    if found is None:
        begun = state.call.resumed and door.receipts.begun(state.known_tool, state.call)
        state.begun = begun and not _waits(state)
        if state.call.resumed or not only_reads(state.known_tool):
            with contextlib.suppress(Exception):  # then the body asks, if it may begin
                state.inside = door.consent.asked_inside(state.known_tool, state.call)
        return None
    if (ended := await ask_policy(door, state) or await ask_guard(door, state)) is not None:
        return ended
    note = f"answered by the receipt of call {found.call}"
    state.said += [found.follow_up] if found.follow_up else []
    return Outcome(found.status, found.value, found.message, note)


def _waits(state: CallState) -> bool:
    """Whether the body of this very call has saved where it waits for a person, and continues there."""
    tool, snapshots = state.known_tool, state.context.snapshots
    if snapshots is None or tool.served is None:
        return False
    try:
        return snapshots.find(place_of_wait(state.call), tool.version) is not None
    except QuothError:  # it was changed in the store: nothing is known
        return False


async def check_limits(door: Parts, state: CallState) -> Outcome | None:
    """Reserve a slot for the call. The door releases it if a later stage ends the call before the body."""
    try:
        reserved = door.limits.reserve(state.known_tool, state.call)
        if isinstance(reserved, Reservation):
            state.reservation = reserved
            return None
        if not isinstance(reserved, Refusal):
            raise TypeError(f"{reserved!r} is not a Reservation")
        over, room_at = reserved.reason, reserved.room_at
    except Exception as error:
        raise_if_broken(error)
        over, room_at = _uncounted(error), None
    at = "" if room_at is None else datetime.fromtimestamp(room_at, UTC).isoformat(timespec="seconds")
    return Outcome("limited", message=f"{state.call.tool} is limited: {over}.", room_at=at)


def _uncounted(error: Exception) -> str:
    return f"its calls could not be counted ({brief(error)})"


def not_permitted(door: Parts, state: CallState) -> Verdict | None:
    """The verdict on a call by a user who may not call the tool; None if the rules decide."""
    if door.table.is_allowed(state.known_tool.name, state.call.user):
        return None
    return deny(f"{state.call.user or 'an unnamed user'} may not call it")


async def ask_policy(door: Parts, state: CallState) -> Outcome | None:
    try:
        said = not_permitted(door, state) or door.policy.judge(
            state.known_tool, state.call, state.args, state.context
        )
        verdict = require_verdict(said)
    except Exception as error:
        raise_if_broken(error)
        verdict = deny(f"the policy failed ({brief(error)})", told=f"the policy failed ({kind_of(error)})")
    return weigh(state, "policy", verdict)


async def ask_guard(door: Parts, state: CallState) -> Outcome | None:
    """Check the targets of the call's paths, and run the tool's own guard: both must allow the call."""
    inside = _stays_inside(state)
    if inside.kind == "deny":
        return weigh(state, "guard", inside)
    ended = await _ask_own_guard(door, state)
    if ended is not None or inside.kind == "allow":
        return ended
    own = state.verdicts.get("guard")
    if isinstance(own, Verdict) and own.kind == "ask":
        state.questions.append(inside.reason)  # the guard's own question may be about only this call
        return None
    return weigh(state, "guard", inside)


def _stays_inside(state: CallState) -> Verdict:
    """The verdict on the paths of a call: deny if one leads outside the workspace, or ask if its parameter
    may do so. For a remote tool, the worker's door checks the paths, in the workspace there."""
    tool, found = state.known_tool, ALLOW
    if (
        state.call.route == "guard"
    ):  # the other agent opens the files: only rules say where its paths may lead
        return found
    for param in () if tool.remote else tool.path_params:
        value = state.args.get(param.name)
        if value is UNKNOWN and param.outside:
            found = ask(f":{param.name} is not known, and it may lead outside the workspace")
        for path in paths_at(param.type, value):
            try:
                state.context.workspace.resolve(path)
            except ToolError as error:
                why = f":{param.name} leads outside the workspace" if param.secret else str(error)
                if not param.outside:
                    return deny(why)
                found = ask(why)
    return found


async def _ask_own_guard(door: Parts, state: CallState) -> Outcome | None:
    """Run the tool's guard, which returns a bool or a Verdict; anything else, or an error, denies the call. A
    ToolFailure of a tool that ships ends the call with its message, before a person is asked."""
    tool = state.known_tool
    guard = tool._guard
    if guard is None:
        return None
    try:
        given = bindings(guard, state, deny=deny, ask=ask)
        unknown = [name for name, value in state.args.items() if value is UNKNOWN]
        if unknown and ("call" in given or any(value is UNKNOWN for value in given.values())):
            names = ", ".join(f":{name}" for name in unknown)
            return weigh(state, "guard", ask(f"it depends on {names} for its guard"))
        said = await run_function(guard, given, state.context, GUARD_SECONDS)
    except TimeoutError:
        return weigh(state, "guard", deny(f"its guard did not answer within {GUARD_SECONDS:g} s"))
    except ToolFailure as failure:
        return Outcome(failure.status, message=failure.message)
    except Exception as error:
        raise_if_broken(error)
        place = place_of_error(error)
        written = isinstance(error, ToolError) and error.__cause__ is None  # for models
        kind = brief(error) if written else kind_of(error)
        told = f"{kind}, at {place}" if place else kind
        reason = f"its guard failed ({_told(door, state, error)})"
        return weigh(state, "guard", deny(reason, told=f"its guard failed ({told})"))
    if isinstance(said, Verdict):
        return weigh(state, "guard", said)
    if said is True:
        return weigh(state, "guard", ALLOW)
    if said is False:
        return weigh(state, "guard", deny("its guard refused these arguments"))
    return weigh(
        state,
        "guard",
        deny(f'its guard returned {said!r}; a guard returns True, False, (deny "why") or (ask "why")'),
    )


async def ask_gate(door: Parts, state: CallState) -> Outcome | None:
    """Ask the user's programs, which judge every call, and then the gate, if the tool has ``:gate``."""
    tool = state.known_tool
    for program in door.gate_programs:
        said = await gate_verdict(
            program, tool, state.call, state.context, seconds=program.seconds, closed=True
        )
        if (ended := weigh(state, "gate", said)) is not None:
            return ended
    if not tool.gate:
        return None
    verdict = await gate_verdict(door.gate, tool, state.call, state.context)
    if isinstance(verdict, FailedOpen):
        note = f"The gate failed ({verdict.for_model}); {tool.name} continues, as it is :gate-failure :open."
        state.notes.append(note)
    return weigh(state, "gate", verdict)


async def run_body(door: Parts, state: CallState) -> Outcome | None:
    tool = state.known_tool
    try:
        require_unmoved(state)
    except ToolError as error:
        return Outcome("error", message=f"{tool.name} was not run: {error}")
    try:
        door.audit.prepare()
    except Exception as error:
        raise_if_broken(error)
        return Outcome("error", message=f"{tool.name} was not run: {brief(error)}.")
    try:
        state.reservation.commit()
    except Exception as error:
        raise_if_broken(error)
        return Outcome("limited", message=f"{tool.name} is limited: {_uncounted(error)}.")
    if tool.name == PROGRAMS and state.call.parent is None:
        with contextlib.suppress(Exception):  # then each of its calls is asked about separately
            door.consent.begins(tool, state.call)
    try:
        if bound := getattr(door.consent, "bound", None):  # a host's own consent may implement only requests
            state.bound = dict(bound(state.call))
        await record_begin(door, state)
        try:
            made = await value_of_body(door, state)
        except Exception:
            if state.ended is None:
                raise
        if state.ended is not None:
            return state.ended
        if door.after and state.files:
            from quoth.tools.door.after import after_writes  # here: few have such programs

            await after_writes(door, state)
        value = data_of(tool, made, state.context.workspace.root)
        if (returned := RETURNED.get()) is not None:
            returned.append(made)
        if not is_of_own_files(tool):
            value = SENT.data(value)
        if left := state.reservation.left:
            state.notes.append(left)
        return Outcome("ok", value)
    except TimeoutError:
        over = state.context.seconds_left() <= 0
        within = "in the time left to the run" if over else f"within {tool.timeout:g} s"
        return _failed(state, "timeout", f"{tool.name} did not finish {within}.")
    except ToolFailure as failure:
        state.request = state.request or failure.request
        return _failed(state, failure.status, failure.message)
    except (ToolError, QuothError) as error:
        raise_if_broken(error)
        return _failed(state, "error", str(error))
    except Exception as error:
        return _failed(state, "error", f"{tool.name} failed: {_told(door, state, error)}.")


def _told(door: Parts, state: CallState, error: BaseException) -> str:
    """The exception of a guard or body and its place, in a line. Logs the traceback for ``quoth --debug``."""
    if LOG.isEnabledFor(logging.DEBUG):
        hide = Redactor(state.call.form, state.known_tool.params, door.table.secrets, by_looks=False)
        LOG.debug("%s", SENT.without(hide.text(users_traceback(error))))
    place = place_of_error(error)
    return f"{brief(error)}, at {place}" if place else brief(error)


# Where the caller of a call wants the values that bodies return, before they are made plain data.
RETURNED: ContextVar[list[Any] | None] = ContextVar("quoth_returned", default=None)


def data_of(tool: CognitiveTool, made: Any, root: Path) -> Any:
    """A body's return value as plain data. Raises ToolError for other data, or a value of the wrong type."""
    if tool.returns is not None:
        tool.returns.check(tool.name, made)
    try:
        return plain(made, root=root)
    except NoDataError as error:
        raise ToolError(f"{tool.name} returned {error.sentence}") from None


def bindings(function: Callable[..., Any], state: CallState, **more: Any) -> dict[str, Any]:
    """The keyword arguments that a guard or body accepts: the call's arguments, ``call`` and ``ctx``."""
    args = state.known_tool.python_values(state.args, state.context.workspace.root)
    return offered_to(function, {"call": state.call, "ctx": state.context, **more}, args)


async def value_of_body(door: Parts, state: CallState) -> Any:
    """Run the body of a call, and return its value; the pieces of a generator are shown to the person as they
    come. Raises the body's exception, or TimeoutError."""
    tool = state.known_tool
    body, left = tool._body, max(0.0, state.context.seconds_left())
    assert body is not None, "define_tool gives every tool a body"
    seconds = min(tool.timeout + tool.patience, left)
    pieces = Pieces(state, door.table.secrets)
    try:
        return await run_function(
            body, bindings(body, state), state.context, seconds, state.clock, take=pieces.show
        )
    finally:
        pieces.end()


def _failed(state: CallState, status: Status, message: str) -> Outcome:
    """The outcome of a call whose body failed; its message says if the call still counts."""
    if status != "pending" and (left := state.reservation.left):
        message = f"{message} It still counts: {left}."
    return Outcome(status, message=SENT.without(message))


STAGES: tuple[tuple[str, Callable[[Parts, CallState], Awaitable[Outcome | None]]], ...] = (
    ("look-up", look_up),
    ("validation", check_arguments),
    ("receipt", find_receipt),
    ("limits", check_limits),
    ("policy", ask_policy),
    ("guard", ask_guard),
    ("plan", note_in_plan),
    ("gate", ask_gate),
    ("consent", ask_consent),
    ("body", run_body),
)


def require_unmoved(state: CallState) -> None:
    """Raise ToolError if a path leads elsewhere than when the call was judged and approved."""
    if state.known_tool.remote:
        return  # its worker checks
    workspace = state.context.workspace
    for path in paths_of(state.known_tool, state.args):
        workspace.unmoved(path, workspace.locate(path))
