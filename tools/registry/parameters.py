"""Parameters of a tool: their declaration, and its checks when a tool is defined."""

from __future__ import annotations

import keyword
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from quoth.tools.errors import DefinitionError, ToolError, did_you_mean
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import kebab
from quoth.tools.lisp.printer import MAX_DEPTH, Code, print_value
from quoth.tools.registry.annotations import Mark
from quoth.tools.registry.param_types import (
    PLAIN,
    WorkspacePath,
    has_form,
    has_paths,
    has_values,
    hides_paths,
    hides_values,
    portable,
    type_data,
    type_name,
)
from quoth.tools.registry.values import plain
from quoth.tools.safe_regex import compiled
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.registry.python_types import PythonType


NAME = re.compile(r"[a-z][a-z0-9-]*\Z")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
MAX_WIRE: Final = 128  # characters
RESERVED = ("call", "ctx", "deny", "ask", *(word for word in keyword.kwlist if word != "as"))
SPEC_KEYS = (
    "type",
    "doc",
    "default",
    "choices",
    "min",
    "max",
    "secret",
    "hidden",
    "named",
    "role",
    "outside",
    "wire",
)
ROLES = ("destination", "content")


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


class Secret(Mark):
    """The doc of a secret parameter, for tools written in Python: ``Annotated[str, Secret("The key")]``. A
    part of a type that has it makes the whole parameter a secret."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:
        return {**handler(core), "writeOnly": True}


class Destination(Mark):
    """The doc of a parameter that is a destination: ``Annotated[str, Destination("To whom")]``."""

    role = "destination"


class Content(Mark):
    """The doc of a parameter that is not a destination, despite its name: ``Annotated[str,
    Content("T")]``."""

    role = "content"


class Wire(Mark):
    """The name of a parameter in JSON, if it differs from ours: ``Annotated[int, Wire("maxResults")]``."""


class Outside(Mark):
    """The doc of a path that may be outside the workspace: ``Annotated[WorkspacePath, Outside("File")]``."""


def role_of(notes: Iterable[object]) -> str:
    """The role that the notes of an annotation declare; empty for none."""
    return next((note.role for note in notes if isinstance(note, (Destination, Content))), "")


@dataclass(frozen=True)
class Param:
    """One declared parameter; it is required if ``default`` is REQUIRED. A ``secret`` parameter appears
    neither in the audit nor in questions to people. A ``hidden`` one is accepted by name but shown nowhere.
    An allow rule covers values of a ``named`` one other than its default only if the rule names it. Its
    ``role`` says whether its values are destinations; if it is empty, roles.py infers it from name and type.
    Its paths stay inside the workspace unless ``outside`` is True; then a call with a path outside asks.
    Schemas and JSON use ``wire`` as its name if that is not empty; rules, records and forms use ``name``. Its
    ``type`` can be checked on any machine; ``own`` is the class, or the type with a class in it, that the
    body receives here."""

    name: str
    type: Any = str
    doc: str = ""
    default: Any = REQUIRED
    choices: tuple[Any, ...] = ()
    min: float | None = None
    max: float | None = None
    secret: bool = False
    hidden: bool = False
    named: bool = field(default=False, repr=False)  # not a part of ``outline``, which is older
    role: str = field(default="", repr=False)  # as ``named``
    outside: bool = field(default=False, repr=False)  # as ``named``
    wire: str = field(default="", repr=False)  # as ``named``
    own: Any = field(default=None, repr=False)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def shown(self) -> str:
        """Its name in schemas and JSON."""
        return self.wire or self.name

    @property
    def kind(self) -> str:
        """Its choices, or its type, in words."""
        return " | ".join(map(print_value, self.choices)) or type_name(self.type)

    @property
    def holds_paths(self) -> bool:
        """Whether its type is or contains a path."""
        return has_paths(self.type)

    @cached_property
    def own_type(self) -> PythonType:
        """The converter from plain data to the body's value, if there is an ``own`` type."""
        from quoth.tools.registry.python_types import PythonType  # here: it imports pydantic

        return PythonType(self.own)

    def to_data(self) -> dict[str, Any]:
        """The parameter as JSON data: its name and type, and its other declarations."""
        data = {"name": self.name, "type": type_data(self.type)}
        for key in SPEC_KEYS[1:]:
            if (value := getattr(self, key)) is not _DEFAULTS[key]:
                data[key] = list(value) if key == "choices" else value
        return data

    def signature(self) -> str:
        """``:pattern str``, or ``[:limit int = 50]`` for an optional one."""
        text = f":{self.name} {self.kind}"
        if self.required:
            return text
        return f"[{text}]" if self.default is None else f"[{text} = {print_value(self.default)}]"


def is_wire(name: object) -> bool:
    """Whether a name of another system can be kept: a text of one line, without invisible characters."""
    return isinstance(name, str) and 0 < len(name) <= MAX_WIRE and name == visible(name.strip())


def as_word(value: Any) -> str:
    """``:reads`` or ``"reads"`` as ``reads``."""
    return str(getattr(value, "name", value))


_DEFAULTS = {one.name: one.default for one in fields(Param)}


def name_hint(name: object) -> str:
    """A sentence with the correct spelling of a parameter name with underscores or capitals; empty for any
    other name."""
    parted = CAMEL.sub("-", str(name)).lower().replace("_", "-").strip("-")
    return f" Write {parted}." if NAME.match(parted) and parted != str(name) else ""


def make_param(tool: str, name: str, spec: Mapping[str, Any]) -> Param:
    """A checked Param. Raises DefinitionError naming the tool, the parameter and the fix."""
    where = f"{tool}, parameter {name}"
    if not NAME.match(name):
        raise DefinitionError(
            f"{where}: a parameter's name is lower-case letters, digits and hyphens.{name_hint(name)}"
        )
    if name in RESERVED:
        raise DefinitionError(f"{where}: {name} is reserved; choose another name.")
    for key in spec:
        if key not in SPEC_KEYS:
            keys = ", ".join(f":{known}" for known in SPEC_KEYS) + "." + did_you_mean(key, SPEC_KEYS)
            raise DefinitionError(f"{where}: unknown key :{key}; the keys are {keys}")
    hint = spec.get("type", str)
    kind = hint if hint in PLAIN else _checked_type(where, hint)
    choices = _checked_choices(where, hint, spec.get("choices"))
    for bound in ("min", "max"):
        limit = spec.get(bound)
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not isfinite(limit):
            raise DefinitionError(f"{where}: :{bound} is a number, not {print_value(limit)}.")
        if not set(typing.get_args(hint) or (hint,)) <= {int, float, type(None)}:
            raise DefinitionError(f"{where}: :{bound} is for int and float, not for {type_name(hint)}.")
        whole = isinstance(limit, int) or limit.is_integer()
        if not whole and float not in (hint, *typing.get_args(hint)):
            raise DefinitionError(f"{where}: :{bound} of an int is a whole number, not {print_value(limit)}.")
    for flag in ("secret", "hidden", "named", "outside"):
        if not isinstance(spec.get(flag, False), bool):
            raise DefinitionError(f"{where}: :{flag} is True or False, not {print_value(spec[flag])}.")
    wire = spec.get("wire", "")
    if wire != "" and not is_wire(wire):
        raise DefinitionError(
            f'{where}: :wire is its name in JSON, such as "maxResults"; not {print_value(wire)}.'
        )
    given = {
        **spec,
        "role": checked_role(where, spec.get("role")),
        "type": kind,
        "doc": str(spec.get("doc", "")),
        "choices": choices,
    }
    if hides_values(kind):
        given["secret"] = True
    param = Param(name, **given, own=hint if has_values(hint) else None)
    if (default := checked_default(where, param)) is not param.default:
        param = replace(param, default=default)
    if param.outside and not param.holds_paths:
        raise DefinitionError(f"{where}: :outside is for a parameter of paths, and this is {param.kind}.")
    if param.named and param.required:
        raise DefinitionError(f"{where}: a :named parameter needs a :default, which every rule covers.")
    if param.hidden and param.required:
        raise DefinitionError(f"{where}: a :hidden parameter needs a :default, as callers do not see it.")
    return param


def checked_role(where: str, given: Any) -> str:
    """A role as a word, empty for None. Raises DefinitionError."""
    role = "" if given is None else as_word(given)
    if role not in ("", *ROLES):
        shown = f":{role}" if hasattr(given, "name") else print_value(given)
        hint = did_you_mean(role, ROLES, mark=":")
        raise DefinitionError(
            f"{where}: :role must be :destination, or :content for no destination; not {shown}.{hint}"
        )
    return role


def _checked_type(where: str, hint: Any) -> Any:
    """The type in portable form."""
    try:
        kind = portable(hint)
    except DefinitionError as error:
        raise DefinitionError(f"{where}: {error}") from None
    if hides_paths(kind):
        raise DefinitionError(
            f"{where}: a path is a key of a dictionary here, where no rule sees it;"
            " use path, (get list path), or (get dict #(str path))."
        )
    if kind is not Code and has_form(kind):
        raise DefinitionError(f"{where}: a form cannot be inside another type.")
    return kind


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


def checked_default(where: str, param: Param) -> Any:
    """The default as plain data."""
    default = param.default
    if default is REQUIRED or default is None:
        return default
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
    least, most = (side if isinstance(default, (int, float)) else None for side in (param.min, param.max))
    if (least is not None and default < least) or (most is not None and default > most):
        raise DefinitionError(f"{where}: the default {print_value(default)} is outside its :min and :max.")
    if param.own is not None:
        default = _plain_default(where, param)
    if not is_plain(default):
        raise DefinitionError(f"{where}: the default {print_value(default)} is not plain data.")
    if isinstance(default, tuple):
        return list(default)
    return str(default) if isinstance(default, Code) else default


def _plain_default(where: str, param: Param) -> Any:
    """The default of a Python type as JSON data, from which the type can recreate it."""
    if hides_values(param.type):
        raise DefinitionError(f"{where}: a secret of its own type can have no :default but None.")
    try:
        default = plain(param.default)
        param.own_type.value_of(default)
    except (ToolError, ValueError):
        shown = print_value(param.default)
        raise DefinitionError(f"{where}: the default {shown} is not of its type, {param.kind}.") from None
    return default


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is JSON data."""
    if isinstance(value, dict):
        return depth < MAX_DEPTH and all(
            isinstance(key, str) and is_plain(item, depth + 1) for key, item in value.items()
        )
    if isinstance(value, (list, tuple)):
        return depth < MAX_DEPTH and all(is_plain(item, depth + 1) for item in value)
    return value is None or isinstance(value, (str, int, float))


# Response tags as tools declare them: the line ``PREFIX: words`` that calls a tool, and its pattern.
# neuro/reading/ finds the lines.


PREFIX = re.compile(r"[A-Z][A-Z0-9_-]*\Z")
CONFIDENCE = "CONFIDENCE"  # how sure a model says it is, on a line like those of tags


@dataclass(frozen=True)
class Tag:
    """A response tag. Without a ``pattern``, plain words fill the required parameters; with one, the words
    must match it as a whole, and its groups are the parameters named by ``groups``. ``example`` is the line
    that a model is shown, and ``strip`` says whether the lines are hidden from people."""

    prefix: str
    pattern: str = ""
    groups: tuple[str, ...] = ()
    example: str = ""
    strip: bool = True

    def to_json(self) -> str | dict[str, Any]:
        """Only the prefix if all else is default, otherwise all values that are not defaults."""
        found = {name: getattr(self, name) for name in KEYS if getattr(self, name) != _TAG_DEFAULTS.get(name)}
        if not found.keys() - {"prefix"}:
            return self.prefix
        return {name: list(value) if name == "groups" else value for name, value in found.items()}


KEYS = tuple(field.name for field in fields(Tag))
_TAG_DEFAULTS = {field.name: field.default for field in fields(Tag)}
_MEANING = {"prefix": "a text", "pattern": "a text", "example": "a text", "strip": "True or False"}


def tag_of(tool: str, written: Any, params: Sequence[Param]) -> Tag | None:
    """The tag in a definition: a text, a dictionary or a Tag; None for none. A pattern without groups fills
    the first required parameter. Raises DefinitionError."""
    if written is None or written == "":
        return None
    if isinstance(written, str):
        written = {"prefix": written}
    elif isinstance(written, Tag):
        written = {name: getattr(written, name) for name in KEYS}
    elif not isinstance(written, Mapping):
        raise DefinitionError(f"{tool}: :tag is a text such as RESEARCH, or a dictionary with :prefix.")
    given = {str(getattr(key, "name", key)): value for key, value in written.items()}
    for key in given:
        if key not in KEYS:
            known = " ".join(f":{name}" for name in KEYS)
            hint = did_you_mean(key, KEYS, mark=":")
            raise DefinitionError(f"{tool}, :tag: there is no option :{key}; the options are {known}.{hint}")
    for key, meaning in _MEANING.items():
        if not isinstance(given.get(key, _TAG_DEFAULTS[key]), bool if key == "strip" else str):
            raise DefinitionError(f"{tool}, :tag: :{key} is {meaning}.")
    groups = given.pop("groups", None) or ()
    if not isinstance(groups, Sequence) or isinstance(groups, str):
        raise DefinitionError(
            f'{tool}, :tag: :groups is a list of parameters, such as ["category" "content"].'
        )
    tag = Tag(**given, groups=tuple(kebab(as_word(name)) for name in groups))
    if not PREFIX.match(tag.prefix):
        raise DefinitionError(
            f"{tool}, :tag: a prefix is upper-case letters, digits, hyphens and underscores after a first "
            f"letter, such as RESEARCH, not {tag.prefix!r}."
        )
    if tag.prefix == CONFIDENCE:
        raise DefinitionError(f"{tool}, :tag: CONFIDENCE is how sure a model says it is; choose another.")
    if tag.example and ("\n" in tag.example or not tag.example.startswith(f"{tag.prefix}: ")):
        raise DefinitionError(
            f"{tool}, :tag: :example is one line that begins with {tag.prefix}: and a blank."
        )
    return _with_groups(tool, tag, params) if tag.pattern or tag.groups else tag


def _with_groups(tool: str, tag: Tag, params: Sequence[Param]) -> Tag:
    """The tag with its pattern and the parameter of each of its groups, checked."""
    names = [param.name for param in params]
    for name in tag.groups:
        if name not in names:
            raise DefinitionError(
                f"{tool}, :tag: the group {name} is not a parameter; the parameters are "
                f"{', '.join(names) or 'none'}.{did_you_mean(name, names)}"
            )
        if tag.groups.count(name) > 1:
            raise DefinitionError(f"{tool}, :tag: the group {name} is given twice.")
    required = [param.name for param in params if param.required]
    groups = tag.groups or tuple((required or names)[:1])
    pattern = tag.pattern or "(.+)"
    try:
        count = compiled(pattern).groups
    except ToolError as error:
        raise DefinitionError(f"{tool}, :tag: {error}") from None
    if count != len(groups):
        raise DefinitionError(
            f"{tool}, :tag: {pattern} has {count} group{'' if count == 1 else 's'} in brackets, and the "
            f"parameters for them are {', '.join(groups) or 'none'}; each group is one parameter. To group "
            "without a parameter, write (?:."
        )
    for name in required:
        if name not in groups:
            raise DefinitionError(f"{tool}, :tag: the required parameter {name} has no group in {pattern}.")
    return Tag(tag.prefix, pattern, groups, tag.example, tag.strip)
