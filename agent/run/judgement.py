"""How the rules of a host would judge a call, as data and as the lines that a person is shown.

Makes no call, and asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from quoth.agent.terminal.pages import explanation_lines
from quoth.tools.call.call import Route, Verdict, deny, new_call
from quoth.tools.call.canonical import as_written, checked
from quoth.tools.call.redaction import Redactor
from quoth.tools.errors import InvalidCallError, UsageError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.policy.effects import changes_nothing

if TYPE_CHECKING:
    from quoth.agent.run.host import SessionHost
    from quoth.tools.call.call import Call
    from quoth.tools.policy.model import Limit
    from quoth.tools.policy.policy import Explanation


def judged(host: SessionHost, text: str, route: Route, **marks: Any) -> tuple[Call, Explanation, list[Limit]]:
    """A call of a form, how the rules judge it, and the limits of its tool. Raises UsageError."""
    try:
        form: CallForm = from_model(read_one(text))
    except ReadError as error:
        raise UsageError(f"{error}\n{error.caret()}") from None
    tool = host.table.get(form.tool)
    form, args = checked(tool, form, host.workspace)
    written = as_written(tool, args)
    call = new_call(form, user=host.user, session=host.session, written=written, **{"route": route, **marks})
    return call, host.policy.explain(tool, call, args, host.context()), host.policy.limits_of(tool)


def explained(host: SessionHost, text: str, route: Route, **marks: Any) -> str:
    """How a call of this form would be judged, as ``quoth policy explain`` prints it."""
    return "\n".join(explanation_lines(*judged(host, text, route, **marks)))


@dataclass(frozen=True)
class PastCall:
    """A call of a session, and how the rules would judge it now; its form is without secrets."""

    id: str
    form: CallForm
    route: Route
    user: str
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        said = self.verdict
        told = {"verdict": said.kind, "reason": said.reason, "rule": said.rule, "origin": said.origin}
        return {"id": self.id, "form": str(self.form), "route": self.route, "user": self.user, **told}


def judged_again(host: SessionHost) -> Iterator[PastCall]:
    """The calls of the host's session that do more than read, in their order: each as the rules would judge
    it now, by what the session had seen when it was made."""
    from quoth.agent.session.origins import past_calls

    for event, call, origins in past_calls(host.transcript, host.session, lambda: host.table):
        tool = host.table.get(call.tool) if call.tool in host.table else None
        if changes_nothing(tool) if tool is not None else not event.data.get("does"):
            continue
        if tool is None:
            said = deny(f"there is no tool named {call.tool} any more")
        else:
            try:
                form, args = checked(tool, call.form, host.workspace)
                call = replace(call, form=form)
                context = replace(host.context(user=call.user), origins=origins)
                said = host.policy.explain(tool, call, args, context).verdict
            except InvalidCallError as error:
                said = deny(str(error))
        hide = Redactor(call.form, tool.params if tool else (), host.table.secrets)
        told = replace(said, reason=hide.text(said.reason.rstrip(".")), origin=hide.text(said.origin))
        yield PastCall(f"{host.session}.{event.seq}", hide.form, call.route, call.user, told)
