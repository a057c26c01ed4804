"""Approved plans: stored with their request, claimed by one run of their program, used call by call.

A plan belongs to one exact program text, one session and one user. One run of the program claims the
approval, unless the request was bound to a known run. In that run a call that needs approval is allowed if it
matches a call pattern of the plan, with the same version of its tool, as often as the plan says. Any other
call asks as usual.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from quoth.tools.call.call import Call
from quoth.tools.consent.rows import RequestRow, Rows
from quoth.tools.dryrun.unknowns import digest, matches
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool

PLAN = "plan?"  # names the plan's digest in the form of its request; no parameter can have that name


def program_of(call: Call) -> str | None:
    """The digest of the program that a call runs; None for any other call, a nested one or a dry run."""
    text, dry = call.form.args.get("form"), call.form.args.get("dry-run", False)
    if text is None or dry is not False or call.parent is not None:
        return None
    from quoth.tools.program.compiler import program_digest  # here: most calls are outside programs

    return program_digest(str(text))


def request_form(tool: CognitiveTool, text: str, plan: Mapping[str, Any]) -> CallForm:
    """The form of the request to approve a plan."""
    return CallForm(tool.name, {"form": str(text), PLAN: plan["digest"]})


def claim(rows: Rows, tool: CognitiveTool, call: Call) -> None:
    """Bind an approval of this program's plan, if there is one, to this run."""
    program, root = program_of(call), call.key or call.id
    found = [
        row
        for row in rows.where(program=program, version=tool.version, state="decided", decision="once")
        if row.expires > rows.now and row.used_by in ("", root)
    ]
    if found:
        row = min(found, key=lambda row: row.used_by == "")
        rows.put(replace(row, state="used", used=rows.now, used_by=root))


def is_approved(rows: Rows, program: str, call: Call) -> bool:
    """Whether a plan of this program is approved for this very run."""
    found = rows.where(program=program, decision="once", used_by=call.key or call.id)
    return any(row.expires > rows.now for row in found)


def covering(
    rows: Rows, tool: CognitiveTool, call: Call, leads: Mapping[str, str], files: Mapping[str, str]
) -> tuple[str, str] | None:
    """The id and decider of the request whose plan allows this call of the claiming run, or None; it counts
    the call. ``leads`` are the current targets of the call's links, if the form does not name them; ``files``
    are the digests of the files it would change: from the dry run, or from an earlier call of the plan."""
    for row in of_run(rows, call):
        if row.expires <= rows.now:
            continue
        shapes, left = json.loads(row.shapes), json.loads(row.files or "{}")
        fitting = [
            shape
            for shape in shapes
            if _fits(shape, tool, call.form, leads)
            and all(
                files.get(path) in (digest, left.get(path, digest))
                for path, digest in shape.get("files", {}).items()
            )
        ]
        # The narrowest pattern first, so that an exact call does not use up a more general pattern.
        for shape in sorted(fitting, key=lambda shape: json.dumps(shape["args"]).count('"any"')):
            if shape["times"] is None or shape["times"] > 0:
                if shape["times"] is not None:
                    shape["times"] -= 1
                    rows.put(replace(row, shapes=json.dumps(shapes)))
                return row.id, row.decider
    return None


def left(rows: Rows, call: Call, path: str, digest: str) -> None:
    """Note the digest of a file after a call of an approved plan has changed it."""
    for row in of_run(rows, call):
        rows.put(replace(row, files=json.dumps({**json.loads(row.files or "{}"), path: digest})))


def of_run(rows: Rows, call: Call) -> list[RequestRow]:
    """The requests whose approved plans were claimed by the program run of this call."""
    return [row for row in rows.where(used_by=call.program_run, state="used") if row.program]


def _fits(shape: Mapping[str, Any], tool: CognitiveTool, form: CallForm, leads: Mapping[str, str]) -> bool:
    bound = (shape["tool"], shape["version"], shape.get("leads", ""))
    if bound != (tool.name, tool.version, digest(leads) if leads else ""):
        return False
    args: Mapping[str, Any] = shape["args"]
    return args.keys() == form.args.keys() and all(
        matches(pattern, form.args[name]) for name, pattern in args.items()
    )
