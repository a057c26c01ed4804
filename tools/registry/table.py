"""The table of cognitive tools, by name.

It never runs a guard or a body: only tools/door/door.py does. Must not know doors, models or loops.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from quoth.tools.errors import DefinitionError, DuplicateToolError, UnknownToolError
from quoth.tools.hy_loader import is_ours
from quoth.tools.lisp.forms import CallForm, canonical, kebab
from quoth.tools.registry.arguments import bind, validate
from quoth.tools.registry.parameters import NAME, Param, build_model, json_schema
from quoth.tools.registry.tag import Tag, tag_of

if TYPE_CHECKING:
    from pydantic import BaseModel

EFFECTS = ("reads", "writes", "runs", "net", "memory", "messages")
COSTS = ("free", "cheap", "expensive")


@dataclass(frozen=True, eq=False)
class CognitiveTool:
    """A tool: a name and description, parameters, a guard and a body, and its limits.

    ``effects`` lists what the body may touch, of EFFECTS; none means a pure function. ``timeout`` is in
    seconds, ``cooldown`` in seconds per user, ``daily_limit`` in calls per user and day; 0 means no limit. A
    tool that is not ``shown`` is in no belt, but can be looked up and called. When a call of one that
    ``ends_turn`` is ok, the run ends with that reply of the model. ``tag`` may be given as a text or a
    dictionary (tag.py). ``remote`` names the catalogue that it came from; empty for a tool of this process.
    ``source`` is the definition as written, ``form`` the same as one canonical form,
    ``code`` a hash of its files when it was defined (code_version.py)."""

    name: str
    description: str
    params: tuple[Param, ...] = ()
    effects: tuple[str, ...] = ()
    cost: Literal["free", "cheap", "expensive"] = "free"
    gate: bool = False
    gate_failure: Literal["closed", "open"] = "closed"
    cooldown: float = 0
    daily_limit: int = 0
    timeout: float = 30.0
    tag: Tag | None = None
    allow_repeat: bool = False
    ends_turn: bool = False
    shown: bool = True
    examples: tuple[CallForm, ...] = ()
    source: str = ""
    form: str = ""
    module: str = ""
    code: str = ""
    remote: str = ""
    replace: bool = False
    _guard: Callable[..., Any] | None = field(default=None, repr=False)
    _body: Callable[..., Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for fine, what in self._rules():
            if not fine:
                raise DefinitionError(f"{self.name}{what}")
        object.__setattr__(self, "tag", tag_of(self.name, self.tag, self.params))

    def _rules(self) -> Iterator[tuple[object, str]]:
        """What must be so, and what to say after the name of the tool where it is not."""
        kind = isinstance(self.name, str) and NAME.match(self.name)
        yield kind, ": a tool's name is lower-case letters, digits and hyphens."
        described = isinstance(self.description, str) and self.description.strip()
        yield described, " needs a description: the model chooses by it."
        known = ", ".join(f":{effect}" for effect in EFFECTS)
        for effect in self.effects:
            yield effect in EFFECTS, f": unknown effect :{effect}; the effects are {known}."
        yield self.cost in COSTS, f": :cost is :free, :cheap or :expensive, not :{self.cost}."
        yield self.gate_failure in ("closed", "open"), ": :gate-failure is :closed or :open."
        timed = _is_number(self.timeout) and self.timeout > 0
        yield timed, ": :timeout is a number of seconds above 0."
        limits = (self.cooldown, self.daily_limit)
        yield all(map(_is_number, limits)), ": :cooldown and :daily-limit are numbers."
        yield all(limit >= 0 for limit in limits), ": :cooldown and :daily-limit are not negative."
        for option in ("gate", "allow_repeat", "ends_turn", "shown", "replace"):
            flag = isinstance(getattr(self, option), bool)
            yield flag, f": :{option.replace('_', '-')} is True or False."
        names = [param.name for param in self.params]
        for name in names:
            yield names.count(name) == 1, f": the parameter {name} stands twice."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.name} is called through the door: agent.call('({self.name} …)').")

    @property
    def guarded(self) -> bool:
        return self._guard is not None

    @property
    def ships(self) -> bool:
        """Whether it was defined in this package."""
        return is_ours(self.module)

    @cached_property
    def path_params(self) -> tuple[Param, ...]:
        """The parameters whose types contain paths."""
        return tuple(param for param in self.params if param.holds_paths)

    @cached_property
    def offered(self) -> tuple[Param, ...]:
        """The parameters that are not hidden."""
        return tuple(param for param in self.params if not param.hidden)

    @cached_property
    def model(self) -> type[BaseModel]:
        """The strict input model, compiled at first use."""
        return build_model(self.name, self.params)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments: inline, no ``$ref``, ``additionalProperties`` false."""
        schema = json_schema(self.model)
        for param in self.params:
            if param.hidden:
                schema["properties"].pop(param.name, None)
        return schema

    def signature(self) -> str:
        """The signature as text: ``(grep-search :pattern str [:path str = "."])``."""
        return "(" + " ".join([self.name, *(param.signature() for param in self.offered)]) + ")"

    def checked(self, form: CallForm) -> tuple[CallForm, dict[str, Any]]:
        """The call with every argument named, and the typed arguments for the body: with defaults, paths not
        yet resolved. Raises InvalidCallError."""
        bound = bind(self.name, self.params, form.args, form.positional)
        args = validate(self.name, self.params, self.model, bound)
        return CallForm(self.name, {name: args[name] for name in bound}), args

    def describe(self) -> dict[str, Any]:
        """All that a caller may know about the tool, as JSON data."""
        return {**self._orders(), "parameters": self.schema}

    def _orders(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "signature": self.signature(),
            "effects": list(self.effects),
            "cost": self.cost,
            "guarded": self.guarded,
            "gate": self.gate,
            "gate_failure": self.gate_failure,
            "cooldown": self.cooldown,
            "daily_limit": self.daily_limit,
            "timeout": self.timeout,
            "tag": self.tag.to_json() if self.tag else "",
            "allow_repeat": self.allow_repeat,
            "examples": [canonical(example) for example in self.examples],
            **({"ends_turn": True} if self.ends_turn else {}),
            **({} if self.shown else {"shown": False}),
        }

    @cached_property
    def version(self) -> str:
        """SHA-256 of its description, schema, source text and code. Approvals are bound to it."""
        from quoth.tools.registry.code_version import own_code

        made = [self.describe(), self.source, self.code or own_code(self.module)]
        data = json.dumps(made, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(data.encode()).hexdigest()

    @cached_property
    def outline(self) -> str:
        """16 hex digits that change with the definition; unlike ``version``, no input model is compiled."""
        params = [repr(param) for param in self.params]
        data = json.dumps([self._orders(), params, self.source], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(data.encode()).hexdigest()[:16]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class ToolTable:
    """Tools by name. The global one is ``cognitive_tools``; tests and agents make private ones."""

    def __init__(self, tools: Iterator[CognitiveTool] | tuple[CognitiveTool, ...] = ()) -> None:
        self._tools: dict[str, CognitiveTool] = {}
        self.tags: dict[str, CognitiveTool] = {}  # by the prefixes of their response tags
        self.permissions: dict[str, tuple[str, ...]] = {}  # who may call a tool; "*" or none: everybody
        self.hidden: frozenset[str] = frozenset()
        for tool in tools:
            self.register(tool)

    def register(self, tool: CognitiveTool, *, replace: bool = False) -> CognitiveTool:
        """Add a tool. Raises DuplicateToolError for a name that is taken, unless ``replace`` (or the tool's
        own ``:replace True``), and for a tag that is."""
        if tool.name in self._tools and not (replace or tool.replace):
            raise DuplicateToolError(
                f"There is already a tool named {tool.name}; "
                "write :replace True to put this one in its place."
            )
        owner = tool.tag and self.tags.get(tool.tag.prefix)
        if tool.tag and owner and owner.name != tool.name:
            raise DuplicateToolError(
                f"The tools {owner.name} and {tool.name} share the tag {tool.tag.prefix}."
            )
        if (old := self._tools.get(tool.name)) and old.tag:
            del self.tags[old.tag.prefix]
        if tool.tag:
            self.tags[tool.tag.prefix] = tool
        self._tools[tool.name] = tool
        self._forget()
        return tool

    def _forget(self) -> None:
        for name in ("schema_hash", "secrets", "shown", "visible"):
            self.__dict__.pop(name, None)

    def permit(self, permissions: Mapping[str, Sequence[str]]) -> None:
        """Let only these users call these tools: ``{"count-fruit": ["ann"]}``; ``"*"`` is everybody."""
        self.permissions |= {self.get(name).name: tuple(users) for name, users in permissions.items()}
        self._forget()

    def is_allowed(self, tool: str, user: str) -> bool:
        """Whether the permissions let this user call the tool."""
        users = self.permissions.get(tool)
        return users is None or user in users or "*" in users

    def hiding(self, names: Collection[str]) -> ToolTable:
        """The same table, whose tools with these names no model is shown. They can still be looked up, so
        that the door answers a call of one, and they count in its hash."""
        if not names:
            return self.whole
        made = copy.copy(self)
        made.hidden = frozenset(names)
        made.whole = self.whole
        made._forget()
        return made

    @cached_property
    def whole(self) -> ToolTable:
        """The table that this one was made of by ``hiding``, or this one."""
        return self

    @cached_property
    def visible(self) -> ToolTable:
        """The table of the tools that are not hidden; this one if none is."""
        return ToolTable(tuple(t for t in self if t.name not in self.hidden)) if self.hidden else self

    def get(self, name: str) -> CognitiveTool:
        """The tool of that name, in any case, with hyphens or underscores. Raises UnknownToolError."""
        tool = self._tools.get(name) or self._tools.get(kebab(name))
        if tool is None:
            raise UnknownToolError(name, self.visible._tools)
        return tool

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._tools)

    def tools(self) -> list[CognitiveTool]:
        """All tools, sorted by name."""
        return [self._tools[name] for name in self.names()]

    def copy(self) -> ToolTable:
        return ToolTable(tuple(self.tools()))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._tools or kebab(name) in self._tools)

    def __iter__(self) -> Iterator[CognitiveTool]:
        return iter(self.tools())

    def __len__(self) -> int:
        return len(self._tools)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The names of all secret parameters of all tools."""
        return frozenset(param.name for tool in self for param in tool.params if param.secret)

    @cached_property
    def shown(self) -> ToolTable:
        """The table of the tools that models are shown in full; this one if it has no others."""
        seen = tuple(tool for tool in self.visible if tool.shown)
        return self if len(seen) == len(self) else ToolTable(seen)

    @cached_property
    def schema_hash(self) -> str:
        """SHA-256 over the descriptions of all tools: equal tables have equal hashes."""
        data = json.dumps([tool.describe() for tool in self.tools()], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(data.encode()).hexdigest()


cognitive_tools = ToolTable()
