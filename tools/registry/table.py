"""The table of cognitive tools, by name, and the users of each.

It never runs a guard or a body: only tools/door/door.py does.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from quoth.tools.errors import DefinitionError, DuplicateToolError, UnknownToolError
from quoth.tools.lisp.forms import kebab
from quoth.tools.registry.openai_schema import wire_name
from quoth.tools.registry.tool import CognitiveTool as CognitiveTool
from quoth.tools.registry.tool import lines_hash

EVERYBODY = "*"

FOR_TESTS = ("echo",)  # tools that ship and are never shown to a model


class ToolTable:
    """Tools by name. The global one is ``cognitive_tools``; tests and agents make private ones."""

    def __init__(self, tools: Iterable[CognitiveTool] = ()) -> None:
        self._tools: dict[str, CognitiveTool] = {}
        self._names: list[str] = []  # sorted
        self.tags: dict[str, CognitiveTool] = {}  # by the prefixes of their response tags
        self.permissions: dict[str, tuple[str, ...]] = {}  # the users of each restricted tool
        self.hidden: frozenset[str] = frozenset()
        self.changes = 0  # the number of changes so far
        self._whole: ToolTable | None = None  # the table from which ``hiding`` created this one
        for tool in tools:
            self.register(tool)

    def register(self, tool: CognitiveTool, *, replace: bool = False) -> CognitiveTool:
        """Add a tool. Raises DuplicateToolError for a name that is taken, unless ``replace`` (or the tool's
        own ``:replace True``), and for a tag that is taken."""
        if not hasattr(tool, "params"):  # a decorated function
            name = getattr(tool, "__name__", "f")
            raise DefinitionError(f"{tool!r} is not the entry of a tool; write tool_of({name}).")
        if tool.name in self._tools and not (replace or tool.replace):
            how = ":replace True" if tool.form else "replace=True"
            raise DuplicateToolError(
                f"There is already a tool named {tool.name}, {self._tools[tool.name].origin}; "
                f"write {how} to replace it."
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
        if tool.name not in self._tools:
            insort(self._names, tool.name)
        self._tools[tool.name] = tool
        self._change()
        return tool

    def permit(self, users: Mapping[str, Iterable[str]]) -> None:
        """Restrict each of these tools to these users; EVERYBODY means all. Raises UnknownToolError."""
        for name, those in users.items():
            known = self.get(name).name
            self.permissions[known] = tuple(sorted(set(those)))
            if EVERYBODY in self.permissions[known]:
                del self.permissions[known]
        self._change()

    def is_allowed(self, name: str, user: str) -> bool:
        """Whether this user may use a tool. Raises UnknownToolError."""
        users = self.permissions.get(self.get(name).name)
        return users is None or user in users

    def hiding(self, names: Collection[str]) -> ToolTable:
        """The same table, with these tools hidden from models. They can still be looked up, so that the door
        answers a call of one, and they count in its hash."""
        if not names:
            return self.whole
        made = ToolTable()  # it shares the tools: one that is registered in either is in both
        made._tools, made._names = self._tools, self._names
        made.tags, made.permissions = self.tags, self.permissions
        made.hidden, made._whole = frozenset(names), self.whole
        return made

    @property
    def whole(self) -> ToolTable:
        """The table from which ``hiding`` created this one, or this one."""
        return self if self._whole is None else self._whole

    @property
    def visible(self) -> ToolTable:
        """The table of the tools that are not hidden; this one if none is."""
        return self if self._visible is None else self._visible

    def where(self, keep: Callable[[CognitiveTool], bool]) -> ToolTable:
        """The table of some of these tools, for the same users; this one if these are all."""
        return self if (made := self._some(keep)) is None else made

    def _some(self, keep: Callable[[CognitiveTool], bool]) -> ToolTable | None:
        """The same, and None if these are all: a table that refers to itself would live until the next
        garbage collection."""
        kept = tuple(tool for tool in self if keep(tool))
        return None if len(kept) == len(self) else self._of(kept)

    @cached_property
    def _visible(self) -> ToolTable | None:
        return self._some(lambda tool: tool.name not in self.hidden) if self.hidden else None

    def _of(self, tools: Collection[CognitiveTool]) -> ToolTable:
        """The table of some of these tools, which are sorted and have no conflicts."""
        made = ToolTable()
        made._tools = {tool.name: tool for tool in tools}
        made._names = list(made._tools)
        made.tags = {tool.tag.prefix: tool for tool in tools if tool.tag}
        made.permissions = {name: users for name, users in self.permissions.items() if name in made}
        return made

    def _forget(self) -> None:
        for name in _DERIVED & self.__dict__.keys():
            del self.__dict__[name]

    def _change(self) -> None:
        """Drop cached values of this table, and of the table in which its tools are hidden."""
        self._forget()
        self.whole._forget()
        self.whole.changes += 1

    def get(self, name: str) -> CognitiveTool:
        """The tool of that name, in any case, with hyphens or underscores. Raises UnknownToolError."""
        if (tool := self.find(name)) is None:
            raise UnknownToolError(name, self.visible.names())
        return tool

    def find(self, name: str) -> CognitiveTool | None:
        """The same; None for an unknown tool."""
        return self._tools.get(name) or self._tools.get(kebab(name))

    def names(self) -> list[str]:
        """All names, sorted."""
        return list(self._names)

    @cached_property
    def tool_names(self) -> tuple[str, ...]:
        """The same, as a cached tuple."""
        return tuple(self._names)

    @cached_property
    def text_names(self) -> tuple[str, ...]:
        """The names that make a form in a text a call. The name of a hidden tool that is a plain word is not
        one of them: (think about it) is prose."""
        return tuple(tool.name for tool in self if tool.shown or "-" in tool.name)

    @cached_property
    def wire_names(self) -> dict[str, str]:
        """The names of all tools, by their names for the APIs."""
        return {wire_name(name): name for name in self._names}

    def tools(self) -> list[CognitiveTool]:
        """All tools, sorted by name."""
        return [self._tools[name] for name in self._names]

    def copy(self) -> ToolTable:
        return self._of(self.tools())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._tools or kebab(name) in self._tools)

    def __iter__(self) -> Iterator[CognitiveTool]:
        return iter(self.tools())

    def __len__(self) -> int:
        return len(self._tools)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The names of all secret parameters of all tools."""
        return frozenset(param.name for tool in self for param in tool.secret_params)

    @property
    def shown(self) -> ToolTable:
        """The table of the tools that models are shown in full; this one if it has no others."""
        return self.visible if self._shown is None else self._shown

    @cached_property
    def _shown(self) -> ToolTable | None:
        return self.visible._some(lambda tool: tool.shown)

    @property
    def in_programs(self) -> ToolTable:
        """The table of the tools for models that write programs: all except tools for tests that were not
        chosen."""
        return self.visible if self._in_programs is None else self._in_programs

    @cached_property
    def _in_programs(self) -> ToolTable | None:
        return self.visible._some(lambda tool: tool.shown or tool.name not in FOR_TESTS)

    @cached_property
    def repeat_allowed_tools(self) -> frozenset[str]:
        """The names of the tools whose calls may be repeated."""
        return frozenset(tool.name for tool in self if tool.allow_repeat)

    @cached_property
    def entries(self) -> list[dict[str, Any]]:
        """The tools as plain data (tool.py), sorted by name, with ``users`` for restricted tools."""
        users = self.permissions
        return [
            {**tool.entry, "users": list(users[tool.name])} if tool.name in users else tool.entry
            for tool in self
        ]

    @property
    def schema_hash(self) -> str:
        """The hash over all tools and their users: equal to the hash of their entries, without creating
        them."""
        return self.whole._hash

    @cached_property
    def _hash(self) -> str:
        return lines_hash(map(self._line, self._names))

    def _line(self, name: str) -> bytes:
        """The line of a tool's entry; ``users`` is last in it."""
        line, users = self._tools[name].line, self.permissions.get(name)
        return line if users is None else line[:-1] + f', "users": {json.dumps(users)}}}'.encode()


# Values that a table derives from its tools.
_DERIVED = {name for name, one in vars(ToolTable).items() if isinstance(one, cached_property)}

cognitive_tools = ToolTable()
