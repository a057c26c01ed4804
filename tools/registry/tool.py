"""A cognitive tool: its name, description, parameters and limits, its guard and body, and its changes.

It never runs guard or body: only tools/door does.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quoth.tools.errors import DefinitionError, QuothError, did_you_mean
from quoth.tools.hy_loader import is_ours
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, canonical, kebab
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.arguments import (
    Check,
    bind,
    built,
    check_of,
    example_of,
    parameters_schema,
    program_argument,
    python_values,
    validate,
)
from quoth.tools.registry.json_type import core_of, in_short
from quoth.tools.registry.param_types import type_of
from quoth.tools.registry.parameters import NAME, Param, Tag, make_param, tag_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from quoth.tools.registry.returns import Returns
    from quoth.tools.registry.schema_params import SchemaParams


EFFECTS = ("reads", "writes", "runs", "net", "memory", "messages", "asks", "deletes", "pays")
HARMLESS = frozenset({"reads", "asks"})  # a call with only these effects can be repeated without harm
COSTS = ("free", "cheap", "expensive")
_FLAGS = ("allow_repeat", "no_background", "ends_turn", "asks_first", "shown", "replace")


@dataclass(frozen=True)
class ServedTool:
    """The tool of an MCP server: the server's name here, the tool's name there, the digest of all that the
    server says of it, and the names of the annotations that it claims, such as ``readOnlyHint``. These are
    claims: nothing is allowed because of them."""

    server: str
    tool: str
    digest: str
    says: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class CognitiveTool:
    """A tool: a name and description, parameters, a guard and a body, and its limits.

    ``effects`` lists what the body may touch, of EFFECTS; none means a pure function. ``timeout`` is in
    seconds, ``cooldown`` in seconds per user, ``daily_limit`` in calls per user and day; 0 means no limit. A
    tool that is not ``shown`` is in no tool list, but can be looked up and called. If a call of an
    ``ends_turn`` tool is ok, the run ends with that reply of the model. A ``no_background`` tool is stopped
    when its caller no longer waits. ``tag`` may be given as a text or a dictionary. ``returns`` is the type
    of the body's value; ``free_text`` says which part of that value is text that a person wrote, and not
    data: all of it (True), or only the fields with these names at any depth; with None, long values are
    (tools/origin). ``input_model`` is the class of the body's only argument. ``source`` is the definition as
    written, ``form`` the same as one canonical form, ``place`` its file and line, ``code`` a hash of its
    files when it was defined (code_version.py). ``remote`` names the catalog of a tool of another machine;
    its guard is there, and its body here waits ``patience`` seconds longer than its ``timeout`` there;
    ``there`` is its entry, because its code is not here. ``served`` is for a tool of an MCP server; its
    digest is then the version. ``_changes`` only reads: it returns ``[path, old
    text, new text]`` for each file that a call would change, so that a person sees it before deciding
    (tools/door/changes.py)."""

    name: str
    description: str
    params: Sequence[Param] = ()
    effects: tuple[str, ...] = ()
    cost: Literal["free", "cheap", "expensive"] = "free"
    gate: bool = False
    gate_failure: Literal["closed", "open"] = "closed"
    cooldown: float = 0
    daily_limit: int = 0
    timeout: float = 30.0
    tag: Tag | None = None
    allow_repeat: bool = False
    no_background: bool = False
    ends_turn: bool = False
    asks_first: bool = False
    shown: bool = True
    examples: tuple[CallForm, ...] = ()
    returns: Returns | None = None
    free_text: tuple[str, ...] | bool | None = None
    input_model: type[BaseModel] | None = field(default=None, repr=False)
    source: str = ""
    form: str = ""
    module: str = ""
    code: str = ""
    place: str = field(default="", repr=False)
    replace: bool = False
    remote: str = ""
    patience: float = 0
    there: dict[str, Any] | None = field(default=None, repr=False)
    served: ServedTool | None = field(default=None, repr=False)
    _guard: Callable[..., Any] | None = field(default=None, repr=False)
    _body: Callable[..., Any] | None = field(default=None, repr=False)
    _changes: Callable[..., Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for fine, what in self._rules():
            if not fine:
                raise DefinitionError(f"{self.name}{what}")
        object.__setattr__(self, "tag", tag_of(self.name, self.tag, self.params))

    def _rules(self) -> Iterator[tuple[object, str]]:
        """The conditions on a tool, each with the message after the tool's name if it fails."""
        kind = isinstance(self.name, str) and NAME.match(self.name)
        yield kind, ": a tool's name is lower-case letters, digits and hyphens."
        described = isinstance(self.description, str) and self.description.strip()
        yield described, " needs a description: the model chooses by it."
        for effect in set(self.effects) - set(EFFECTS):
            known = ", ".join(f":{one}" for one in EFFECTS)
            yield False, f": unknown effect :{effect}; the effects are {known}."
        yield self.cost in COSTS, f": :cost is :free, :cheap or :expensive, not :{self.cost}."
        yield self.gate_failure in ("closed", "open"), ": :gate-failure is :closed or :open."
        timed = _is_number(self.timeout) and self.timeout > 0
        yield timed, ": :timeout is a number of seconds above 0."
        limits = (self.cooldown, self.daily_limit)
        yield all(map(_is_number, limits)), ": :cooldown and :daily-limit are numbers."
        yield all(limit >= 0 for limit in limits), ": :cooldown and :daily-limit are not negative."
        for option in ("gate", *_FLAGS):
            if not isinstance(getattr(self, option), bool):
                yield False, f": :{option.replace('_', '-')} is True or False."
        if self._schema_params is not None:
            return  # its names have been checked
        names = [param.name for param in self.params]
        for name in names:
            yield names.count(name) == 1, f": the parameter {name} is given twice."
        wires = [kebab(param.wire) for param in self.params if kebab(param.wire) not in ("", param.name)]
        for wire in wires:
            yield [*names, *wires].count(wire) == 1, f": two parameters are named {wire}, one by its :wire."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.name} is called through the door: agent.call('({self.name} …)').")

    @property
    def _schema_params(self) -> SchemaParams | None:
        if isinstance(self.params, tuple):
            return None
        from quoth.tools.registry.schema_params import (
            SchemaParams,  # here: only the tools of servers have them
        )

        return self.params if isinstance(self.params, SchemaParams) else None

    @property
    def wire(self) -> str:
        """Its name at the server that runs it; empty for any other tool. Only that server receives it."""
        return "" if self.served is None else self.served.tool

    @property
    def guarded(self) -> bool:
        return self._guard is not None or self.guarded_there

    @property
    def guarded_there(self) -> bool:
        """Whether its guard is on another machine."""
        return self.there is not None and bool(self.there["guarded"])

    @property
    def may_begin_again(self) -> bool:
        """Whether its body does nothing before its questions, so that it can begin again after one."""
        return self.asks_first or HARMLESS.issuperset(self.effects)

    @cached_property
    def ships(self) -> bool:
        """Whether it was defined in this package."""
        return is_ours(self.module)

    @property
    def origin(self) -> str:
        """The origin of the tool, as a clause: the file and line of its definition."""
        if self.ships:
            return "which ships with quoth"
        if self.remote:
            return f"of a worker of {self.remote}"
        if self.served is not None:
            return f"of the MCP server {self.served.server}"
        return f"defined at {self.place}" if self.place else "defined before"

    @property
    def texts(self) -> tuple[str, ...] | bool | None:
        """``free_text``, if it is declared. The result of a pure function is text: it is computed from its
        arguments, so its fields contain no facts."""
        return True if self.free_text is None and not self.effects else self.free_text

    @cached_property
    def path_params(self) -> tuple[Param, ...]:
        """The parameters whose types contain paths."""
        return tuple(param for param in self.params if param.holds_paths)

    @property
    def secret_params(self) -> Iterable[Param]:
        """The secret parameters; found without reading a schema that is known to have none."""
        nothing = self._schema_params is not None and self._schema_params.hides_nothing
        return () if nothing else (param for param in self.params if param.secret)

    @cached_property
    def offered(self) -> tuple[Param, ...]:
        """The parameters that are not hidden."""
        return tuple(param for param in self.params if not param.hidden)

    @cached_property
    def check(self) -> Check:
        """The check of a call's arguments, compiled at first use."""
        return check_of(self.params)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments: inline, no ``$ref``, ``additionalProperties`` false."""
        return copy.deepcopy(self._schema()) if self.there is None else self.there["parameters"]

    def _schema(self) -> dict[str, Any]:
        if self._schema_params is not None:
            return self._schema_params.schema
        schema = parameters_schema(self.params)
        for param in self.params:
            if param.hidden:
                schema["properties"].pop(param.name, None)
        if wires := {param.name: param.wire for param in self.params if param.wire}:
            properties = schema["properties"].items()
            schema = {**schema, "properties": {wires.get(name, name): node for name, node in properties}}
            if "required" in schema:
                schema["required"] = [wires.get(name, name) for name in schema["required"]]
        return schema

    def signature(self) -> str:
        """The signature as text: ``(grep-search :pattern str [:path str = "."])``."""
        return "(" + " ".join([self.name, *(param.signature() for param in self.offered)]) + ")"

    def checked(self, form: CallForm) -> tuple[CallForm, dict[str, Any]]:
        """The call with every argument named, and its arguments as JSON data: with defaults, paths not yet
        resolved. Raises InvalidCallError."""
        bound = bind(self.name, self.params, form.args, form.positional)
        if self._schema_params is not None:
            bound = self._schema_params.given(bound)
        args = validate(self.name, self.params, self.check, bound)
        if self.input_model is not None:
            built(self.name, self.input_model, self.python_values(args))
        given = {name: args[name] for name in bound}
        if self._schema_params is not None:
            self._schema_params.require(self.name, given)
        programs = {name: program_argument(one) for name, one in given.items() if isinstance(one, Code)}
        return CallForm(self.name, given | programs), args

    def python_values(self, args: dict[str, Any], root: Path | None = None) -> dict[str, Any]:
        """The arguments for a guard or body in the workspace at ``root``, created from the call's
        arguments."""
        return python_values(self.name, self.params, args, root) if self._has_own else args

    @cached_property
    def _has_own(self) -> bool:
        return any(param.own is not None for param in self.params)

    def describe(self) -> dict[str, Any]:
        """All public facts about the tool, as JSON data."""
        wire = {"wire": self.wire} if self.wire else {}
        return {**self._orders(), **wire, "parameters": self.schema}

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
            **({"no_background": True} if self.no_background else {}),
            **({"ends_turn": True} if self.ends_turn else {}),
            **({} if self.shown else {"shown": False}),
            **({"returns": self.returns.to_data()} if self.returns else {}),
            **({"free_text": True} if self.free_text is True else {}),
            **({"free_text": [*self.free_text]} if isinstance(self.free_text, tuple) else {}),
        }

    @cached_property
    def entry(self) -> dict[str, Any]:
        """The tool's entry as JSON data, from which ``entry_tool`` creates a tool."""
        if self.there is not None:
            return {**self.there, "shown": self.shown}
        return {**self._entry(self._orders(), self.schema), "version": self.version}

    def _entry(self, orders: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
        return {
            **{name: value for name, value in orders.items() if name != "signature"},
            "params": [param.to_data() for param in self.params],
            "parameters": schema,
            "no_background": self.no_background,
            "ends_turn": self.ends_turn,
            "shown": self.shown,
            "examples": [str(example) for example in self.examples],
        }

    @cached_property
    def line(self) -> bytes:
        """The line of its entry in the hash of a table (table.py). A server's tool, which is never in a
        catalog, has a line without its schema, which need not be read for that."""
        if self.served is not None:
            return json.dumps({"name": self.name, "effects": self.effects, **vars(self.served)}).encode()
        return line_of(self._entry(self._orders(), self._schema()))

    def prepare(self) -> None:
        """Compute the values that the first call in a table needs from each tool, to save time at that
        call."""
        self.line, self.outline  # noqa: B018  cached

    @cached_property
    def version(self) -> str:
        """SHA-256 of its description, schema, source text and code. Approvals are bound to it."""
        if self.there is not None:
            return str(self.there["version"])
        if self.served is not None:
            return self.served.digest
        from quoth.tools.registry.code_version import own_code

        made = [self.describe(), self.source, self.code or own_code(self.module)]
        data = json.dumps(made, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(data.encode()).hexdigest()

    @cached_property
    def outline(self) -> str:
        """16 hex digits that change with the definition, but not with its code. They are in the openings of
        sessions: if the same definition had other digits, a model that continues an older session would be
        notified that all tools have changed."""
        if self.there is not None or self.served is not None:
            return self.version[:16]
        params = [repr(param) if param.own is None else param.to_data() for param in self.params]
        orders = {key: value for key, value in self._orders().items() if key != "free_text"}  # added later
        data = json.dumps([orders, params, self.source], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(data.encode()).hexdigest()[:16]


def line_of(entry: Mapping[str, Any]) -> bytes:
    """The part of an entry that a hash of tools includes. The order of its fields does not count, the order
    of a parameter's properties or default does; the version, which changes with its code, is excluded."""
    return json.dumps({key: entry[key] for key in sorted(entry) if key != "version"}).encode()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Entries: tools as plain data, which may come from another machine, and their one hash.
#
# An entry contains everything that its tool shows, so that a table of entries prints the same views and
# refuses the same arguments. It is untrusted: its content is checked, and nothing in it runs.


# The fields of an entry and their types; a type in square brackets is a list of this type.
FIELDS: dict[str, Any] = {
    "name": str, "description": str, "effects": [str], "cost": str, "guarded": bool, "gate": bool,
    "gate_failure": str, "cooldown": float, "daily_limit": int, "timeout": float, "tag": (str, dict),
    "allow_repeat": bool, "no_background": bool, "ends_turn": bool, "shown": bool, "examples": [str],
    "params": [dict], "parameters": dict, "version": str, "users": [str], "returns": dict,
    "free_text": object,
}  # fmt: skip
_NEEDED = tuple(key for key in FIELDS if key not in ("users", "returns", "free_text"))
PARAM_FIELDS: dict[str, Any] = {
    "name": str, "type": (str, dict), "doc": str, "default": object, "choices": [object], "min": float,
    "max": float, "secret": bool, "hidden": bool, "named": bool, "role": str, "outside": bool, "wire": str,
}  # fmt: skip
_NAMES: dict[Any, str] = {
    str: "a text", bool: "True or False", float: "a number", int: "a whole number", dict: "a dictionary",
    (str, dict): "a text or a dictionary",
}  # fmt: skip
MAX_NAME = 200  # characters
MAX_VALUES = 20_000  # in one entry
MAX_DEPTH = 60  # of lists and dictionaries in one another


def schema_hash(entries: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 over the shown parts of the tools: equal tools have equal hashes, in any order. The version of
    a tool, which changes with its code, is excluded."""
    # One by one: with thousands in memory, garbage collection would take most of the time.
    return lines_hash(map(line_of, sorted(entries, key=lambda entry: str(entry["name"]))))


def lines_hash(lines: Iterable[bytes]) -> str:
    """The same for the lines of the entries, sorted by name."""
    hashed = hashlib.sha256()
    for line in lines:
        hashed.update(line + b"\n")
    return hashed.hexdigest()


def entry_tool(
    entry: Any, body: Callable[..., Any], *, remote: str = "", patience: float = 0
) -> CognitiveTool:
    """The tool of an entry, with this body. ``users`` in the entry are for the table. Raises QuothError that
    names the tool and the fault of its entry."""
    name: Any = entry.get("name") if isinstance(entry, dict) else None
    if not _is_name(name):
        raise QuothError(f"An entry of a catalog needs a tool's name, and this has none: {in_short(entry)}.")
    try:
        return _entry_tool(entry, body, remote, patience)
    except QuothError as error:
        said = str(error).removeprefix(name).removeprefix(",").removeprefix(":").lstrip()
        raise QuothError(f"The entry of the tool {name}: {said}") from None


def _entry_tool(
    entry: dict[str, Any], body: Callable[..., Any], remote: str, patience: float
) -> CognitiveTool:
    from quoth.tools.registry.returns import declared_free_text, returns_of_data  # here: only remote tools

    _check_data(entry)
    _check_fields(entry, FIELDS, _NEEDED)
    name = entry["name"]
    params = tuple(_param_of(name, data) for data in entry["params"])
    core_of(entry["parameters"])
    if set(entry["parameters"].get("properties", "?")) != {one.shown for one in params if not one.hidden}:
        raise DefinitionError("parameters has other properties than its params.")
    returns = returns_of_data(entry["returns"]) if "returns" in entry else None
    return CognitiveTool(
        params=params,
        effects=tuple(entry["effects"]),
        examples=tuple(example_of(name, params, text) for text in entry["examples"]),
        returns=returns,
        free_text=declared_free_text(name, entry.get("free_text"), returns),
        there={key: value for key, value in entry.items() if key != "users"},
        remote=remote,
        patience=patience,
        _body=body,
        **{key: entry[key] for key in _AS_THEY_ARE},
    )


_MADE = ("params", "effects", "examples", "guarded", "parameters", "version", "users", "returns", "free_text")
_AS_THEY_ARE = tuple(key for key in FIELDS if key not in _MADE)


def _param_of(tool: str, data: dict[str, Any]) -> Param:
    if not _is_name(data.get("name")):
        raise DefinitionError(f"{in_short(data.get('name'))} is not a parameter name.")
    try:
        _check_fields(data, PARAM_FIELDS, ("name", "type"))
        spec = {key: value for key, value in data.items() if key != "name"}
        spec["type"] = type_of(spec["type"])
    except DefinitionError as error:
        raise DefinitionError(f"parameter {data['name']}: {error}") from None
    return make_param(tool, data["name"], spec)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and len(name) <= MAX_NAME and NAME.match(name) is not None


def _check_fields(data: Mapping[str, Any], fields: Mapping[str, Any], needed: Iterable[str]) -> None:
    for key, value in data.items():
        kind = fields.get(key)
        if type(value) is kind or kind is object:
            continue
        if kind is None:
            raise DefinitionError(f"there is no field {in_short(key)}.{did_you_mean(str(key), fields)}")
        if not _is(value, kind):
            raise DefinitionError(f"{key} is {_meaning(kind)}, not {in_short(value)}.")
    for key in needed:
        if key not in data:
            raise DefinitionError(f"the field {key} is missing.")


def _is(value: Any, kind: Any) -> bool:
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is(item, kind[0]) for item in value)
    if kind is float:
        return isinstance(value, int) and not isinstance(value, bool)
    return kind is object or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))


def _meaning(kind: Any) -> str:
    if isinstance(kind, list):
        return "a list" if kind[0] is object else f"a list, each item {_NAMES[kind[0]]}"
    return _NAMES[kind]


def _check_data(entry: dict[str, Any]) -> None:
    """Raise DefinitionError unless an entry is JSON data of limited size and depth."""
    level: list[Any] = [entry]
    count = 0
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        keys: set[type] = set()
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
                keys.update(map(type, item))
            else:
                inner += item
        count += len(inner)
        if count > MAX_VALUES:
            raise DefinitionError(f"it has more than {MAX_VALUES:,} values.")
        kinds = set(map(type, inner))
        if not keys <= {str} or not kinds <= _DATA:
            raise DefinitionError("it contains a value that is not JSON data.")
        if kinds.isdisjoint(_HOLDING):
            return
        level = [item for item in inner if type(item) in _HOLDING]
    raise DefinitionError(f"it is nested deeper than {MAX_DEPTH}.")


_HOLDING = {list, dict}
_DATA = {str, int, float, bool, type(None), *_HOLDING}
