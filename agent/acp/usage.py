"""The usage of a session in the shape of the Agent Client Protocol: tokens in the context, and the cost."""

from __future__ import annotations

from acp.schema import Cost, UsageUpdate

from quoth.agent.run.host import SessionHost
from quoth.agent.session.past import completion_of
from quoth.neuro.backends.base import window_of
from quoth.tools.errors import UsageError


class Spent:
    """Adds up the replies of a session, each once; also those of earlier processes."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._seen = 0  # the last counted event
        self._context = 0  # tokens of the last request and its reply
        self._cost: float | None = 0.0  # US dollars; None: the price of a model is unknown

    def update(self) -> UsageUpdate | None:
        """The usage until now; None if the server reports no tokens."""
        host = self._host
        for event in host.transcript.events(host.session, kind="reply", after=self._seen):
            self._seen = event.seq
            if "text" not in event.data:  # the request failed
                continue
            used = completion_of(event.data).usage
            if "/" not in event.run:  # not a sub-agent's
                self._context = used.tokens
            begun = host.record.stimulus(event.run)
            model = str(begun.data.get("model") or "") if begun is not None else ""
            try:
                cost = host.parts.funds.cost(model, used)
            except UsageError:
                self._cost = None
            else:
                self._cost = None if self._cost is None else self._cost + cost
        if not self._context:
            return None
        return UsageUpdate(
            session_update="usage_update",
            used=self._context,
            size=window_of(host.models.backend(), host.limits.context).tokens,
            cost=Cost(amount=self._cost, currency="USD") if self._cost else None,
        )
