"""Parameters of a tool: their declaration, its checks, and the strict pydantic model built from it.

Must not know guards, bodies or doors. The declaration is checked when a tool is defined. pydantic is
imported, and the model compiled, at the first use: importing it takes twice as long as starting Python.
"""

from __future__ import annotations

import contextlib
import keyword
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from quoth.tools.errors import DefinitionError, did_you_mean
from quoth.tools.lisp.printer import Code, print_value

if TYPE_CHECKING:
    from pydantic import BaseModel

NAME = re.compile(r"[a-z][a-z0-9-]*\Z")
RESERVED = ("call", "ctx", "deny", "ask")
SPEC_KEYS = ("type", "doc", "default", "choices", "min", "max", "secret", "hidden")


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


class WorkspacePath(str):
    """The type of a parameter that names a file or folder: ``path`` in Hy, ``list[WorkspacePath]`` for many.
    The door replaces it by the canonical real path, relative to the workspace if it is inside; ``written``
    keeps the original text."""

    written: str

    def __new__(cls, text: str, written: str | None = None) -> WorkspacePath:
        made = super().__new__(cls, text)
        made.written = text if written is None else written
        return made

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(str)


_PLAIN: dict[Any, str] = {kind: kind.__name__ for kind in (str, int, float, bool, list, dict)}
_PLAIN |= {type(None): "None", None: "None", Any: "any", Code: "form", WorkspacePath: "path"}
TEXTS = (str, WorkspacePath)  # what a model writes as a text


class Secret(str):
    """The doc of a secret parameter, for tools written in Python: ``Annotated[str, Secret("The key")]``."""


@dataclass(frozen=True)
class Param:
    """One declared parameter; it is required when ``default`` is REQUIRED. A ``secret`` one appears neither
    in the audit nor in questions to people. A ``hidden`` one is accepted by name but shown nowhere."""

    name: str
    type: Any = str
    doc: str = ""
    default: Any = REQUIRED
    choices: tuple[Any, ...] = ()
    min: float | None = None
    max: float | None = None
    secret: bool = False
    hidden: bool = False

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def field(self) -> str:
        """Its field name in the model, prefixed because pydantic reserves "json", "copy", "model_…"."""
        return f"arg_{self.name.replace('-', '_')}"

    @property
    def holds_paths(self) -> bool:
        """Whether its type is or contains a path."""
        return has_paths(self.type)

    def signature(self) -> str:
        """``:pattern str``, or ``[:limit int = 50]`` for an optional one."""
        kind = " | ".join(print_value(c) for c in self.choices) or type_name(self.type)
        text = f":{self.name} {kind}"
        if self.required:
            return text
        return f"[{text}]" if self.default is None else f"[{text} = {print_value(self.default)}]"


def has_paths(hint: Any) -> bool:
    """Whether a type is or contains WorkspacePath."""
    return hint is WorkspacePath or any(has_paths(arg) for arg in typing.get_args(hint))


def hides_paths(hint: Any) -> bool:
    """Whether a type has paths where they are not resolved: in a dictionary's keys or a class's fields."""
    pending = [hint]
    known: set[type] = set()
    while pending:
        kind = pending.pop()
        args = typing.get_args(kind)
        pending += args
        if typing.get_origin(kind) is dict and has_paths(args[0]):
            return True
        if isinstance(kind, type) and kind not in (*known, WorkspacePath):
            known.add(kind)  # it may have itself inside
            with contextlib.suppress(NameError, TypeError):  # nothing is known of a name that is not found
                inner = list(typing.get_type_hints(kind).values())
                if any(map(has_paths, inner)):
                    return True
                pending += inner
    return False


def with_paths(hint: Any, value: Any, change: Callable[[str], str]) -> Any:
    """``value`` with ``change`` applied to each path in it; ``hint`` is its type."""
    if hint is WorkspacePath:
        return change(value) if isinstance(value, str) and not isinstance(value, WorkspacePath) else value
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is list and isinstance(value, (list, tuple)):
        return [with_paths(args[0], item, change) for item in value]
    if origin is dict and isinstance(value, Mapping):
        return {name: with_paths(args[1], item, change) for name, item in value.items()}
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        for arg in args:
            value = with_paths(arg, value, change)
    return value


def type_name(hint: Any, path: str = "path") -> str:
    """A type in words: ``str``, ``list of int``, ``str or None``, ``form``; ``path`` stands for a path."""
    if hint is WorkspacePath:
        return path
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return f"list of {type_name(args[0], path)}"
    if origin is dict:
        return f"dict of {type_name(args[1], path)}"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(arg, path) for arg in args)
    if origin is typing.Literal:
        return " | ".join(print_value(arg) for arg in args)
    if origin is typing.Annotated:
        return type_name(args[0], path)
    return getattr(hint, "__name__", str(hint))


def _known_type(hint: Any) -> bool:
    if hint in _PLAIN or hasattr(hint, "__get_pydantic_core_schema__"):
        return True
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return True
    if origin is typing.Annotated:
        return _known_type(args[0])
    return origin in (list, dict, typing.Union, types.UnionType) and all(_known_type(arg) for arg in args)


def make_param(tool: str, name: str, spec: Mapping[str, Any]) -> Param:
    """A checked Param. Raises DefinitionError naming the tool, the parameter and the fix."""
    where = f"{tool}, parameter {name}"
    if not NAME.match(name):
        raise DefinitionError(f"{where}: a parameter's name is lower-case letters, digits and hyphens.")
    if name in RESERVED or keyword.iskeyword(name.replace("-", "_")):
        raise DefinitionError(f"{where}: {name} is reserved; choose another name.")
    for key in spec:
        if key not in SPEC_KEYS:
            keys = ", ".join(f":{known}" for known in SPEC_KEYS) + "." + did_you_mean(key, SPEC_KEYS)
            raise DefinitionError(f"{where}: unknown key :{key}; the keys are {keys}")
    hint = spec.get("type", str)
    if not _known_type(hint):
        raise DefinitionError(
            f"{where}: {type_name(hint)} is no type for a parameter; "
            "use str, int, float, bool, list, dict, form, path, or (get list str), (| str None)."
        )
    if hides_paths(hint):
        raise DefinitionError(
            f"{where}: a path is a key of a dictionary here, or a field of a class, where no rule sees it;"
            " use path, (get list path), or (get dict #(str path))."
        )
    choices = _checked_choices(where, hint, spec.get("choices"))
    for bound in ("min", "max"):
        limit = spec.get(bound)
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            raise DefinitionError(f"{where}: :{bound} is a number, not {print_value(limit)}.")
        if not set(typing.get_args(hint) or (hint,)) <= {int, float, type(None)}:
            raise DefinitionError(f"{where}: :{bound} is for int and float, not for {type_name(hint)}.")
    for flag in ("secret", "hidden"):
        if not isinstance(spec.get(flag, False), bool):
            raise DefinitionError(f"{where}: :{flag} is True or False, not {print_value(spec[flag])}.")
    param = Param(name, **{**spec, "doc": str(spec.get("doc", "")), "choices": choices})
    _check_default(where, param)
    if param.hidden and param.required:
        raise DefinitionError(f"{where}: a :hidden parameter needs a :default, for nobody is told of it.")
    return param


def _checked_choices(where: str, hint: Any, given: Any) -> tuple[Any, ...]:
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)) or not given:
        raise DefinitionError(
            f"{where}: :choices is a list with at least one value, not {print_value(given)}."
        )
    if hint not in (str, int, bool):
        raise DefinitionError(f"{where}: :choices are for str, int and bool, not for {type_name(hint)}.")
    for choice in given:
        if type(choice) is not hint:
            raise DefinitionError(
                f"{where}: the choice {print_value(choice)} is not of its type, {type_name(hint)}."
            )
    return tuple(given)


def _check_default(where: str, param: Param) -> None:
    default = param.default
    if default is REQUIRED or default is None:
        return
    if param.choices and default not in param.choices:
        raise DefinitionError(f"{where}: the default {print_value(default)} is not among its choices.")
    expected = float if param.type is float and not isinstance(default, bool) else param.type
    accepts = (int, float) if expected is float else str if expected is WorkspacePath else expected
    if param.type in (str, int, float, bool, list, dict, WorkspacePath) and (
        not isinstance(default, accepts) or (isinstance(default, bool) and param.type is not bool)
    ):
        raise DefinitionError(
            f"{where}: the default {print_value(default)} is not of its type, {type_name(param.type)}."
        )
    if (param.min is not None and default < param.min) or (param.max is not None and default > param.max):
        raise DefinitionError(f"{where}: the default {print_value(default)} is outside its :min and :max.")


@lru_cache(maxsize=1)
def strict_model() -> type[BaseModel]:
    """StrictModel, the base of every input model: unknown keys and wrong types are errors."""
    from pydantic import BaseModel, ConfigDict

    class StrictModel(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=False)

    return StrictModel


def build_model(tool: str, params: Sequence[Param]) -> type[BaseModel]:
    """The strict input model of a tool; its fields have the parameters' canonical names as aliases."""
    from pydantic import Field, create_model

    fields: dict[str, Any] = {}
    for param in params:
        hint = param.type
        if hint is Code:
            hint = str
        if param.choices:
            hint = typing.Literal[param.choices]
        if param.default is None:
            hint = hint | None if not isinstance(hint, str) else hint
        bounds: dict[str, Any] = {"ge": param.min, "le": param.max}
        fields[param.field] = (
            hint,
            Field(
                default=... if param.required else param.default,
                alias=param.name,
                description=param.doc or None,
                **{key: value for key, value in bounds.items() if value is not None},
            ),
        )
    return create_model(
        "".join(part.title() for part in tool.split("-")) + "Input", __base__=strict_model(), **fields
    )


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON Schema without ``$ref`` and titles, with ``additionalProperties`` false. Raises
    DefinitionError for a type that contains itself."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})

    def inline(node: Any, within: tuple[str, ...] = ()) -> Any:
        if isinstance(node, list):
            return [inline(item, within) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            if name in within:
                raise DefinitionError(f"The type {name} contains itself; a tool's parameter cannot.")
            return inline(definitions[name], (*within, name))
        tidy = {}
        for key, value in node.items():
            if key == "properties":  # its keys are names, not words of JSON Schema
                tidy[key] = {name: inline(item, within) for name, item in value.items()}
            elif key in ("default", "const", "enum", "examples"):
                tidy[key] = value
            elif key != "title":
                tidy[key] = inline(value, within)
        return tidy

    tidy: dict[str, Any] = inline(schema)
    tidy.pop("description", None)
    tidy.setdefault("properties", {})
    return tidy
