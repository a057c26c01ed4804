"""A run goes down the list of its models, says so wherever it is written down, and never comes back up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from words import Agent, ScriptedBackend, files

from quoth import HostServices
from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.cascade import Cascade
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.ports import MemoryAudit


class Scene(ScriptedBackend):
    """A scripted model of any name, which fails where its script holds an error."""

    def __init__(
        self, name: str, *replies: Any, view: str = "openai", grammar: bool = False, window: int = 0
    ):
        rest = iter(replies)

        def reply(messages: Messages) -> Any:
            said = next(rest, ModelError(f"{name} has nothing left to say."))
            if isinstance(said, Exception):
                raise said
            return said

        super().__init__(reply, name)
        self.tool_view, self.takes_grammar, self.context = view, grammar, window or None


def small(*replies: Any, **more: Any) -> Scene:
    """An embedded model: text, a grammar, a window that is not large."""
    return Scene("local-small", *replies, **{"view": "", "grammar": True, "window": 16_384} | more)


DOWN = ModelError("Cannot reach https://api.example/v1 (no connection in 10 s).", "down")
MOVED = "openai:gpt-5-mini did not answer; local-small is asked instead. " + str(DOWN)


class Heard(list[tuple[str, Any]]):
    def __call__(self, *event: Any) -> None:
        if len(event) == 1:
            event = (event[0].kind, event[0].data)
        self.append(event)

    @property
    def notes(self) -> list[str]:
        return [data for kind, data in self if kind == "note"]


def run_with(workspace: Path, *models: Any, task: str = "What is in a.txt?", **more: Any) -> Any:
    heard = Heard()
    audit = MemoryAudit()
    with Agent(
        workspace=workspace, model=Cascade(models), on_event=heard, services=HostServices(audit=audit), **more
    ) as running:
        reply = running.run(task)
    return reply, heard, audit.rows()


def test_a_model_that_is_down_is_followed_by_the_next_which_is_told_how_to_call_in_text(
    tmp_path: Path,
) -> None:
    files(tmp_path, {"a.txt": "forty-two"})
    first = Scene("openai:gpt-5-mini", DOWN)
    second = small('(read-file :path "a.txt")', "It says forty-two.")
    reply, heard, rows = run_with(tmp_path, first, second)
    assert (reply.status, reply.text) == ("done", "It says forty-two.")
    assert first.tools[0] is not None
    assert heard.notes == [MOVED]
    assert [(row["stage"], row["status"], row["message"]) for row in rows if row["stage"] == "model"] == [
        ("model", "error", MOVED)
    ]
    asked = json.loads(second.seen[0])
    assert [m["role"] for m in asked] == ["system", "user", "user"]
    assert asked[1]["content"] == "What is in a.txt?"
    assert "(read-file" in asked[2]["content"]
    assert second.tools == [None, None]
