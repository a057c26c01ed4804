"""What a run is, as its first event says: the task, its user, the model and how it calls tools.

Written and read here and nowhere else. Knows back ends and dialects as data; it must not know how a run is
driven.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from quoth.agent.run.output import wish_for
from quoth.neuro.backends.base import Backend, RequestOptions, takes_images
from quoth.neuro.prompt.dialects import CALL_FORM, Dialect, dialect_named

FACTS: dict[str, Callable[[Backend], Any]] = {
    "model": attrgetter("name"),
    "takes-grammar": attrgetter("takes_grammar"),
    "tool-view": attrgetter("tool_view"),
    "context": attrgetter("context"),
    "takes-images": takes_images,
    "roomier": lambda backend: getattr(backend, "roomier", False),
}
_OPTIONAL = ("takes-images", "roomier")  # left out where they do not apply


def facts_of(backend: Backend) -> dict[str, Any]:
    """The facts about a model in a run's stimulus, from which a RecordedBackend can stand in for it."""
    facts = {name: told(backend) for name, told in FACTS.items()}
    return {name: fact for name, fact in facts.items() if fact or name not in _OPTIONAL}


@dataclass(frozen=True)
class RunSpec:
    """The stimulus of a run, exactly as its event says it; it never changes."""

    task: str  # the message of the user, or what a caller wants of a sub-agent
    user: str = ""  # of the agent
    speaker: str = ""  # the user of the calls, where that is another
    turn: str = ""  # the name of the message in a conversation; empty for a task on its own
    chat: str = ""  # the chat in which it was said
    tools: tuple[str, ...] | None = None  # the names of a sub-agent's tools; None: all of the agent's
    hidden: tuple[str, ...] = ()  # tools that its model was not shown when it began
    instructions: str = ""  # in the opening of its conversation
    surroundings: str = ""  # behind them, as data
    temperature: float | None = None  # of each request; None: as the server likes it
    plan: bool = False  # whether it began in plan mode
    news: str = ""  # what has changed since the run before, shown in front of the data
    data: str = ""  # shown to the model once, behind the task
    files: tuple[Mapping[str, Any], ...] = ()  # texts and images, shown beside the task
    output: Mapping[str, Any] | None = None  # the JSON Schema of its answer
    model: Mapping[str, Any] = field(default_factory=dict)  # the facts about it: see facts_of
    dialect: Dialect = CALL_FORM  # in which the model calls tools; it says whether the run stops after calls
    search: bool = False  # whether the belt shows one line a tool
    must_act: bool = False  # whether the model has to call a tool before it answers
    limits: Mapping[str, Any] = field(default_factory=dict)  # those of RunLimits, as they were then

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> RunSpec:
        """The spec in the data of a stimulus, also of one that an older version wrote."""
        dialect = dialect_named(said["dialect"], in_text=said["in-text"])
        told = {name: said[name] for name in _TEXTS if name in said}
        return cls(
            said["text"],
            tools=None if said.get("tools") is None else tuple(said["tools"]),
            hidden=tuple(said.get("hidden", ())),
            files=tuple(said.get("files", ())),
            output=said.get("output"),
            plan=bool(said.get("plan")),
            model={name: said[name] for name in FACTS if name in said},
            dialect=replace(dialect, stops=said.get("after-tags") == "stop"),
            search=said["search"],
            must_act=said["must-act"],
            limits=said["limits"],
            **told,
        )

    def written(self) -> dict[str, Any]:
        """The data of its stimulus."""
        optional: dict[str, Any] = {
            "speaker": self.speaker,
            "chat": self.chat,
            "after-tags": "stop" if self.dialect.stops else "",
            "hidden": sorted(self.hidden),
            "instructions": self.instructions,
            "surroundings": self.surroundings,
            "plan": self.plan,
            "news": self.news,
            "data": self.data,
            "files": list(self.files),
        }
        said: dict[str, Any] = {"text": self.task, "user": self.user, "turn": self.turn}
        said |= {name: value for name, value in optional.items() if value}
        if self.tools is not None:
            said["tools"] = list(self.tools)
        if self.temperature is not None:
            said["temperature"] = self.temperature
        if self.output is not None:
            said["output"] = dict(self.output)
        return {
            **said,
            **self.model,
            "dialect": self.dialect.name,
            "in-text": not self.dialect.native,
            "search": self.search,
            "must-act": self.must_act,
            "limits": dict(self.limits),
        }

    @cached_property
    def shown(self) -> str:
        """The message with the task and all that is shown behind it."""
        texts = (f"The file {one['name']}:\n{one['text']}" for one in self.files if "text" in one)
        wish = "" if self.output is None else wish_for(self.output)
        return "\n\n".join(filter(None, [self.task, self.news, self.data, *texts, wish]))

    @property
    def request_options(self) -> RequestOptions | None:
        """What each request wants beyond the conversation."""
        return None if self.temperature is None else RequestOptions(temperature=self.temperature)


_TEXTS = ("user", "speaker", "turn", "chat", "instructions", "surroundings", "temperature", "news", "data")
