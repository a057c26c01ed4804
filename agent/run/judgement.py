"""How the rules of a host would judge a call, as data and as the lines that a person is shown.

Makes no call, and asks nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quoth.agent.terminal.policy_page import explanation_lines
from quoth.tools.call.call import Route, new_call
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.policy.scope import as_written, checked

if TYPE_CHECKING:
    from quoth.agent.run.host import Host
    from quoth.tools.call.call import Call
    from quoth.tools.policy.model import Limit
    from quoth.tools.policy.policy import Explanation


def judged(host: Host, text: str, route: Route, **marks: Any) -> tuple[Call, Explanation, list[Limit]]:
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


def explained(host: Host, text: str, route: Route, **marks: Any) -> str:
    """How a call of this form would be judged, as ``quoth policy explain`` prints it."""
    return "\n".join(explanation_lines(*judged(host, text, route, **marks)))
