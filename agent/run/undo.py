"""The way back of a session, with the workspace and the rules of its host.

Must not know how it is asked for or shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quoth.agent.session.undo import Undo
from quoth.tools.call.call import new_call
from quoth.tools.call.canonical import checked
from quoth.tools.history.versions import StoreVersions
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import cognitive_tools

if TYPE_CHECKING:
    from quoth.agent.run.host import SessionHost

WRITER = "write-file"  # the tool whose rules hold for what is put back


def undo_of(host: SessionHost, session: str = "") -> Undo:
    """The way back of the host's session, or of another one in its store."""

    def forbids(path: str, text: str) -> str:
        """Why a call that wrote this would be denied; asking is left to whoever undoes."""
        table = host.table if WRITER in host.table else cognitive_tools
        tool = table.get(WRITER)
        form, args = checked(tool, CallForm(WRITER, {"path": path, "content": text}), host.workspace)
        call = new_call(form, user=host.user, session=host.session, route="call")
        verdict = host.policy.judge(tool, call, args, host.context())
        return verdict.reason if verdict.kind == "deny" else ""

    def ships(name: str) -> bool:
        return name in host.table and host.table.get(name).ships

    def record(said: str) -> None:
        host.door.record("undo", said, route="call", status="ok", session=name, user=host.user)

    name = session or host.session
    versions = StoreVersions(lambda: host.store, host.workspace.root)
    return Undo(versions, host.workspace, host.transcript, name, host.user, forbids, ships, record)
