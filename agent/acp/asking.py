"""The person at an ACP client: decides about a call that is shown with its difference, and answers questions.

Sources: session/request_permission and elicitation/create of https://agentclientprotocol.com (protocol 1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from acp.core import RequestError
from acp.helpers import text_block, tool_content, tool_diff_content
from acp.schema import (
    ContentToolCallContent,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    FileEditToolCallContent,
    PermissionOption,
    TerminalToolCallContent,
    ToolCallUpdate,
)
from pydantic import ValidationError

from quoth.agent.acp.shape import kind_of, locations_of, named_args
from quoth.tools.call.call import Call, Changes
from quoth.tools.call.ports import asks_fact
from quoth.tools.call.question import Question
from quoth.tools.call.redaction import Redactor
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import PERMISSION
from quoth.tools.policy.scope import denying, suggested
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import number_of

ANSWER = "answer"


class AcpPerson:
    """The person at the client of one session.

    ``client`` is the connection to the client, ``name`` its name, ``forms`` whether it shows questions in
    words. ``session`` and ``root``, the absolute folder of the workspace, are set once the agent is open, and
    ``may_have_typed``, which is called where their files may have changed. A client that does not answer
    delays only its own call; the request stays open in the store."""

    session = root = ""

    def __init__(self, client: Any, name: str, *, forms: bool) -> None:
        self._client, self._name = client, name
        self._open: set[asyncio.Future[Any]] = set()  # what the client is asked now
        self.may_have_typed: Callable[[], None] = lambda: None
        self._alone = False  # after an interrupt: nothing is asked until ``listen``
        self._changes: Callable[[CognitiveTool, Call], Changes | None] | None = None
        if forms:
            self.answer = self._answer  # a person without this method is asked later

    def show_changes_by(self, changes_of: Callable[[CognitiveTool, Call], Changes | None]) -> None:
        self._changes = changes_of

    @property
    def asking(self) -> bool:
        """Whether the client is asked something now."""
        return bool(self._open)

    def interrupt(self) -> None:
        """Withdraw what the client is asked, and ask nothing until ``listen``."""
        self._alone = True
        for asked in self._open:
            asked.cancel()

    def listen(self) -> None:
        self._alone = False
        self.may_have_typed()

    async def _asked(self, question: Coroutine[Any, Any, Any]) -> Any:
        """The client's answer; None if the question is withdrawn, the client has gone or its answer is not of
        the protocol."""
        asked = asyncio.ensure_future(question)
        self._open.add(asked)
        if self._alone:
            asked.cancel()
        try:
            return await asked
        except asyncio.CancelledError:
            if self._alone:
                return None
            raise
        except (RequestError, ConnectionError, ValidationError):
            return None
        finally:
            self._open.discard(asked)
            self.may_have_typed()

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Decision | None:
        if self._alone:
            return None
        hide = Redactor(call.form, tool.params, by_looks=False)
        shown = hide.form
        fact = asks_fact(reason)
        scope = "" if fact or PERMISSION in call.form.args else suggested(tool, call.form)
        options = [
            PermissionOption(option_id="once", kind="allow_once", name="Allow once"),
            PermissionOption(option_id="scope", kind="allow_always", name=f"In this session: {scope}"),
            PermissionOption(option_id="deny", kind="reject_once", name="Deny"),
            PermissionOption(
                option_id="never", kind="reject_always", name=f"In this session: {denying(scope)}"
            ),
        ]
        if not scope:
            options = [one for one in options if one.option_id in ("once", "deny")]
        why = asked = f"Asked because {reason.rstrip('.')}."
        changes = await self._changes_of(tool, call)
        while True:
            update = ToolCallUpdate(
                tool_call_id=call.id,
                title=f"{reason}: {shown}" if fact else str(shown),
                kind=kind_of(tool),
                status="pending",
                raw_input=named_args(tool, shown),
                locations=locations_of(tool, shown, self.root),
                content=self._shown(call, why, hide, changes),
            )
            answer = await self._asked(
                self._client.request_permission(session_id=self.session, options=options, tool_call=update)
            )
            picked = getattr(getattr(answer, "outcome", None), "option_id", "")
            before, allows = changes, picked in ("once", "scope")
            if not allows or (changes := await self._changes_of(tool, call)) == before:
                break
            from quoth.agent.terminal.question import CHANGED  # here: few changes differ from the shown ones

            why = f"{CHANGED}\n{asked}"
        match picked:
            case "once":
                return Decision("once", by=self._name)
            case "scope" if scope:
                return Decision("scope", by=self._name, rule=scope)
            case "never" if scope:
                return Decision("deny", by=self._name, rule=scope)
            case "deny":
                return Decision("deny", by=self._name)
        return None  # cancelled: the request stays open

    async def _changes_of(self, tool: CognitiveTool, call: Call) -> Changes | None:
        return None if self._changes is None else await asyncio.to_thread(self._changes, tool, call)

    def _shown(
        self, call: Call, why: str, hide: Redactor, found: Changes | None
    ) -> list[ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent]:
        """What the person reads beside the form: the reason, marked origins, and each file's difference."""
        lines = [why]
        lines += [f"! {one.argument}: {one.words}" for one in call.origins() if not one.known]
        files = found.files if found else ()
        if found and found.trouble:
            lines.append(found.trouble)
        lines += [
            f"It replaces the binary file {one.path}, {number_of(one.binary, 'byte')}."
            for one in files
            if one.binary is not None
        ]
        return [
            tool_content(text_block("\n".join(lines))),
            *(
                tool_diff_content(
                    f"{self.root}/{one.path}",
                    hide.text(one.after or ""),
                    one.before and hide.text(one.before),
                )
                for one in files
                if one.binary is None
            ),
        ]

    async def _answer(self, tool: CognitiveTool, call: Call, question: Question) -> str | None:
        choices = list(question.choices) or None
        field = ElicitationStringPropertySchema(type="string", title="Answer", enum=choices)
        mode = ElicitationFormSessionMode(
            session_id=self.session,
            requested_schema=ElicitationSchema(properties={ANSWER: field}, required=[ANSWER]),
        )
        said = await self._asked(self._client.create_elicitation(message=question.text, mode=mode))
        content = getattr(said, "content", None) or {}
        return str(content[ANSWER]) if content.get(ANSWER) else None
