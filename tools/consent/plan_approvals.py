"""Approved plans: stored with their request, claimed by one run of their program, used call by call.

It knows the store and patterns of arguments; it must not know dry runs, sandboxes or people. A plan belongs
to one exact program text, one session and one user. One run of the program claims the approval, unless the
request was bound to a known run. In that run a call that needs approval is allowed if it matches a call
pattern of the plan, with the same version of its tool, as often as the plan says. Any other call asks as
usual.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quoth.tools.call.call import Call
from quoth.tools.dryrun.unknowns import digest, matches
from quoth.tools.lisp.forms import CallForm
from quoth.tools.program.compiler import program_digest
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Statement

PLAN = "plan?"  # names the plan's digest in the form of its request; no parameter can have that name
KEPT = "DELETE FROM plans WHERE request NOT IN (SELECT id FROM requests)"


def program_of(call: Call) -> str | None:
    """The digest of the program that a call runs; None for any other call, a nested one or a dry run."""
    text, dry = call.form.args.get("form"), call.form.args.get("dry-run", False)
    return program_digest(str(text)) if text is not None and dry is False and call.parent is None else None


def request_form(tool: CognitiveTool, text: str, plan: Mapping[str, Any]) -> CallForm:
    """The form of the request to approve a plan."""
    return CallForm(tool.name, {"form": str(text), PLAN: plan["digest"]})


def keep(run: Statement, request: str, plan: Mapping[str, Any]) -> None:
    run(KEPT)
    run(
        "INSERT INTO plans (request, program, shapes, text) VALUES (?, ?, ?, ?)",
        (request, plan["program"], json.dumps(plan["shapes"]), plan["text"]),
    )


def claim(run: Statement, tool: CognitiveTool, call: Call, now: float) -> None:
    """Bind an approval of this program's plan, if there is one, to this run."""
    program, root = program_of(call), call.key or call.id
    if program is None:
        return
    run(
        "UPDATE requests SET state = 'used', used = ?, used_by = ? WHERE seq = ("
        " SELECT seq FROM requests JOIN plans ON request = id"
        " WHERE program = ? AND version = ? AND session = ? AND user = ? AND state = 'decided'"
        " AND decision = 'once' AND expires > ? AND used_by IN ('', ?) ORDER BY used_by = '', seq LIMIT 1)",
        (now, root, program, tool.version, call.session, call.user, now, root),
    )


def is_approved(run: Statement, program: str, call: Call, now: float) -> bool:
    """Whether a plan of this program is approved for this very run of it."""
    found = run(
        "SELECT 1 FROM requests JOIN plans ON request = id WHERE program = ? AND session = ? AND user = ?"
        " AND decision = 'once' AND expires > ? AND used_by = ?",
        (program, call.session, call.user, now, call.key or call.id),
    )
    return bool(found)


def covering(
    run: Statement, tool: CognitiveTool, call: Call, leads: Mapping[str, str], now: float
) -> tuple[str, str] | None:
    """The id and decider of the request whose plan allows this call of the claiming run, or None; it
    counts the call. ``leads`` are the current targets of the call's links, where the form does not name
    them."""
    if call.route != "program":
        return None
    root = call.program_run
    if not root:
        return None
    found = run(
        "SELECT id, decider, shapes FROM requests JOIN plans ON request = id"
        " WHERE used_by = ? AND state = 'used' AND session = ? AND user = ? AND expires > ?",
        (root, call.session, call.user, now),
    )
    for request, decider, kept in found:
        shapes = json.loads(kept)
        fitting = [shape for shape in shapes if _fits(shape, tool, call.form, leads)]
        # The narrowest first, so that a call that is named does not use up one that may be anything.
        for shape in sorted(fitting, key=lambda shape: json.dumps(shape["args"]).count('"any"')):
            if shape["times"] is None or shape["times"] > 0:
                if shape["times"] is not None:
                    shape["times"] -= 1
                    run("UPDATE plans SET shapes = ? WHERE request = ?", (json.dumps(shapes), request))
                return str(request), str(decider)
    return None


def _fits(shape: Mapping[str, Any], tool: CognitiveTool, form: CallForm, leads: Mapping[str, str]) -> bool:
    bound = (shape["tool"], shape["version"], shape.get("leads", ""))
    if bound != (tool.name, tool.version, digest(leads) if leads else ""):
        return False
    args: Mapping[str, Any] = shape["args"]
    return args.keys() == form.args.keys() and all(
        matches(pattern, form.args[name]) for name, pattern in args.items()
    )


def text_of(run: Statement, request: str) -> str:
    """The text of a request's plan; empty for any other request."""
    found = run("SELECT text FROM plans WHERE request = ?", (request,))
    return str(found[0][0]) if found else ""
