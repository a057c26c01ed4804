"""The question about a request that waits, for the person at a client of the Model Context Protocol: by
``elicitation/create`` in revisions with a handshake, by an InputRequiredResult since 2026-07-28.

Only a client with the right to decide is asked. The request stays in the store until it is decided, and an
answer counts for the call and the difference that were shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from quoth.agent.terminal.requests import pending_text
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.requests import Decision
from quoth.tools.consent.rows import PENDING_SECONDS
from quoth.tools.errors import UsageError

ALLOW, WHY, ANSWER = "allow", "why", "answer"
QUESTION = "question"  # its name among the input requests of a result


@dataclass(frozen=True)
class AskedRequest:
    """A request as it was shown: its id, the text, the fields of the answer, and the key of its call."""

    id: str
    text: str
    fields: Mapping[str, Any]
    key: str

    @classmethod
    def of(cls, broker: Broker, id: str, key: str) -> Self:
        asked = broker.find(id).question
        allow = {"type": "boolean", "title": "Allow this call once"}
        fields: dict[str, Any] = {ALLOW: allow, WHY: {"type": "string", "title": "If not: why"}}
        if asked is not None:
            fields = {ANSWER: {"type": "string", "title": "Answer"}}
            if asked.only:
                fields[ANSWER]["enum"] = list(asked.choices)
        return cls(id, pending_text(broker, id), fields, key)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": dict(self.fields), "required": [next(iter(self.fields))]}

    @property
    def state(self) -> str:
        """What the client sends back with the answer; the SDK seals it."""
        return json.dumps({"request": self.id, "key": self.key, "shown": self._digest})

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def input_required(self) -> types.InputRequiredResult:
        asked = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=self.text, requested_schema=self.schema)
        )
        return types.InputRequiredResult(input_requests={QUESTION: asked}, request_state=self.state)

    def was_shown(self, state: Mapping[str, str]) -> bool:
        """Whether the text that the client's state was made for is the present one."""
        return state.get("shown") == self._digest

    def decided(self, broker: Broker, answer: types.ElicitResult, by: str) -> bool:
        """Record the person's answer. False if there is none, or it fits no field; the request then waits."""
        said = answer.content or {}
        if answer.action == "cancel":
            return False
        decision = Decision("deny", by=by, why=str(said.get(WHY) or ""))
        if answer.action == "accept" and ANSWER in self.fields:
            decision = Decision("answer", by=by, answer=str(said.get(ANSWER) or ""))
        elif answer.action == "accept" and said.get(ALLOW) is True:
            decision = Decision("once", by=by)
        try:
            broker.decide(self.id, decision)
        except UsageError:  # decided elsewhere meanwhile, or no answer to the question
            return all(one.id != self.id for one in broker.requests())
        return True


def seal(
    server: Server[Any], name_of: Callable[[ServerRequestContext[Any, Any]], str], secret: bytes, place: str
) -> None:
    """Let a server seal its states with ``secret``, at least 32 bytes: each is good for the client that
    ``name_of`` names, in this place, for as long as a request waits."""
    sealed = RequestStateSecurity(keys=[secret], ttl=PENDING_SECONDS, audience=place, bind_principal=name_of)
    server.middleware.append(RequestStateBoundary(sealed, default_audience=place))
