"""The body of ``eval``: runs a program in the sandbox and its calls through the door, and suspends it."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from quoth.tools.call.call import Call, owner
from quoth.tools.call.context import SavedValues, Snapshots, ToolContext
from quoth.tools.errors import Pending, ToolError, ToolFailure
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.syntax import mangle
from quoth.tools.program.compiler import Program, ProgramError, program_digest
from quoth.tools.sandbox.macros import compile_expanded
from quoth.tools.sandbox.snapshots import SnapshotError
from quoth.tools.sandbox.wall import MAX_MESSAGE
from quoth.tools.text import short

# The saved values with which the outermost program of a session began: a program that it evaluates may read
# them, but not change them. And whether they may have changed while the outermost program waited.
_OUTER: ContextVar[tuple[SavedValues | None, bool]] = ContextVar("values of the outer program")


_CHANGED = (
    "The program waited, and macros of the session that it uses may have changed meanwhile. "
    "Send it again, including their definitions, (defmacro …)."
)


async def run_in_context(text: str, ctx: ToolContext, call: Call) -> Any:
    """Run the program ``text`` with every tool of the table callable through the door.

    When an inner call needs a person's decision, the body ends as pending and the program's state is saved.
    When the call is resumed, the program continues at that inner call. If the state cannot be used (another
    version of the sandbox, another machine), it runs again from its beginning, and receipts answer the calls
    that have already run.
    """
    sandbox, dispatch, snapshots = ctx.sandbox, ctx.dispatch, ctx.snapshots
    if sandbox is None or dispatch is None:
        raise ToolError("This agent has no sandbox to run programs in.")

    async def inner(form: CallForm, name: str) -> Any:
        result = await dispatch(form, name)
        if result.ok:
            return result.value
        if result.status == "pending":
            raise Pending(result.message)
        raise ToolFailure(
            result.status, f"{short(result.message, MAX_MESSAGE)} (in {short(ctx.shown(form), 300)})"
        )

    whose = owner(call) if snapshots is not None else None
    digest = program_digest(text)
    try:
        kept = snapshots.values(*whose) if snapshots is not None and whose else None
        state = snapshots.find(call.key, digest) if snapshots is not None and call.resumed else None
    except SnapshotError as error:
        raise ToolFailure("error", str(error)) from None
    changed = state is None or state["base"] != (kept.generation if kept else "")
    if call.route == "program":
        kept, changed = _OUTER.get((None, True))
    try:
        program = await compile_expanded(text, ctx.tool_names, sandbox, kept)
    except ProgramError as error:
        raise ToolFailure("invalid", str(error)) from None
    macros = kept.macros if kept is not None else {}
    expanded = program_digest(program.python) if program.uses else ""
    unsure = changed and not program.uses.isdisjoint(macros)
    if call.resumed and (unsure if state is None else state.pop("expanded", "") != expanded):
        raise ToolFailure("error", _CHANGED)
    base = state.pop("base") if state is not None else kept.generation if kept else ""

    def keep(values: bytes, listing: list[dict[str, Any]]) -> None:
        if snapshots is not None and whose:
            # Saved with the result: a program that runs again must not begin with its own values.
            left = SavedValues(values, listing, base, _kept_macros(macros, program))
            ctx.written.append(snapshots.keep_values(*whose, left))

    outer = _OUTER.set((kept, changed))
    try:
        value, printed = await sandbox.run(
            program,
            ctx.tool_names,
            inner,
            state=state,
            values=kept.state if kept else None,
            listing=kept.listing if kept else (),
            keep=keep if whose else None,
            unnamed=ctx.unnamed,
        )
    except Pending as waits:
        if snapshots is not None and waits.state:
            bound = {"base": base, "expanded": expanded}
            snapshots.keep(call.key or call.id, call.session, digest, {**waits.state, **bound})
        raise
    except (ToolFailure, ProgramError):
        _ended(snapshots, call)
        raise
    finally:
        _OUTER.reset(outer)
    _ended(snapshots, call)
    if value is None and printed:
        return printed.rstrip("\n")
    if printed:
        ctx.say(printed.rstrip("\n"))
    return value


def _kept_macros(macros: Mapping[str, str], program: Program) -> dict[str, str]:
    """The session's macros after a program: with its own, and without macros that its functions shadow."""
    left = {name: text for name, text in macros.items() if mangle(name) not in program.globals}
    return {**left, **program.macros}


async def look_in_context(text: str, ctx: ToolContext, call: Call, how: bool | str) -> Any:
    """The calls of the program ``text``, found by a dry run: as text for a model, as data for display to a
    person."""
    from quoth.tools.dryrun.explore import dry_run  # here: few programs are looked at

    if how not in (True, "pure"):
        raise ToolFailure("invalid", 'eval: :dry-run must be True or "pure".')
    plan = await dry_run(text, ctx, call, pure=how == "pure")
    return plan.text if call.route in ("reply", "program", "tool") else plan.to_json()


def _ended(snapshots: Snapshots | None, call: Call) -> None:
    """Delete the saved state of a resumed program that has ended: it may contain secrets."""
    if snapshots is not None and call.resumed:
        snapshots.drop(call.key)
