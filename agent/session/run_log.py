"""Writes the events of one run into the transcript of its session.

Knows a session and its events; it must not know what the events mean to a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quoth.agent.reply import Reply
from quoth.agent.session.session import Session
from quoth.neuro.backends.messages import Messages
from quoth.tools.history.event import Kind

SPECIAL: Final[tuple[Kind, ...]] = ("tools", "sent", "plan")


@dataclass(eq=False)
class RunLog:
    """Writes the events of one run, if it is ``live``. ``reply`` is the place of the model's latest reply;
    ``recalled`` says that it came from an earlier process, which may have begun its calls."""

    session: Session
    run: str
    reply: int = 0
    recalled: bool = False
    broken: str = ""  # why what has happened could not be written down
    numbers: dict[int, int] = field(default_factory=dict)  # of the run's conversations, by identity
    live: bool = True
    plain: bool = True  # nothing was written from which only its events bring a run back

    def add(
        self, kind: Kind, data: Mapping[str, Any], *, parent: int = 0, key: str = "", status: str = ""
    ) -> int:
        if not self.live:
            return 0
        if kind in SPECIAL or (kind == "reply" and "raised" in data):
            self.plain = False
        return self.session.transcript.add(
            self.session.id, kind, data, run=self.run, parent=parent, key=key, status=status
        )

    async def on_disk(self) -> None:
        """Wait until all that was written by now is on disk. Raises StoreError."""
        if self.live:
            await self.session.transcript.on_disk(self.session.id)

    def number(self, messages: Messages) -> int:
        """The number of a conversation within the run, from 1; compaction begins a new one."""
        return self.numbers.setdefault(id(messages), len(self.numbers) + 1)

    def ended(self, reply: Reply, messages: Messages, after_tags: str = "") -> None:
        """Write the end of the run, on disk after ``on_disk``, with the messages that are not recorded yet,
        and with what came ``after_tags`` if it is given, because the run was begun otherwise."""
        if not self.live:
            return
        talk = self.session.talk_of(messages)
        start, rest = talk.new()
        data: dict[str, Any] = {"status": reply.status, "text": reply.said, "steps": reply.steps}
        if reply.bounded:
            data |= {"spent": dict(reply.spent), "left": dict(reply.left)}
        if (number := self.number(messages)) != 1:
            data["talk"] = number
        if after_tags:
            data["after-tags"] = after_tags
        if rest:
            data |= {"from": start, "messages": rest}
            talk.count, talk.reply = len(messages), None
        with self.session.transcript.together(synced=False):
            self.add("end", data, parent=self.reply, status=reply.status)
        if reply.status == "done":
            self.session.forget_secrets(self.run)
