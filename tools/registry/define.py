"""Definition of tools: the functions behind ``def-cognitive-tool`` and its Python twin ``@cognitive_tool``.

Everything is checked here, at load, so that a misspelt option can never silently drop a guard. Knows the
table; must not know doors or models.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import DefinitionError, did_you_mean
from quoth.tools.hy_loader import is_ours
from quoth.tools.lisp.forms import kebab
from quoth.tools.registry.arguments import built, example_of
from quoth.tools.registry.code_version import code_of, place_of_function
from quoth.tools.registry.parameters import (
    REQUIRED,
    Outside,
    Secret,
    Wire,
    as_word,
    make_param,
    name_hint,
    role_of,
)
from quoth.tools.registry.returns import Returns, declared_free_text, declared_returns
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


# Reads the docstring of a tool written in Python: what it does, and the words for each parameter.
#
# Google's and NumPy's sections and ``:param:`` fields are known. Knows texts; it must not know tools.


_SECTION = re.compile(
    r"^(?:(?:Args|Arguments|Parameters|Params|Returns):[ \t]*$"
    r"|(?:Parameters|Returns)[ \t]*\n-{3,}[ \t]*$|:param\s)",
    re.M,
)


@dataclass(frozen=True)
class Docstring:
    """What a docstring says: the description for the model, and the words of the parameters and the value."""

    description: str
    params: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def read_docstring(text: str) -> Docstring:
    """The parts of a docstring; one without such sections is a description as a whole."""
    if not _SECTION.search(text):
        return Docstring(text)
    from docstring_parser import parse  # here: it takes 20 ms, and most tools need it not

    found = parse(text)
    said = {
        name.strip().lstrip("*"): _one_line(param.description)
        for param in found.params
        for name in param.arg_name.split(",")
    }
    parts = (found.short_description, found.long_description)
    return Docstring(
        "\n\n".join(part for part in parts if part),
        said,
        _one_line(found.returns.description if found.returns else ""),
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).removesuffix(".")


# The options besides :parameters, :guard, :changes and :body, in the order they are documented.
OPTIONS = (
    "effects", "cost", "gate", "gate-failure", "cooldown", "daily-limit",
    "timeout", "tag", "allow-repeat", "no-background", "ends-turn", "asks-first", "shown", "examples",
    "returns", "free-text", "replace",
)  # fmt: skip

BOUNDING = ("pydantic", "annotated_types")  # whose notes in an annotation bound a value

_target: contextvars.ContextVar[ToolTable] = contextvars.ContextVar("quoth_table", default=cognitive_tools)


@contextlib.contextmanager
def registering_in(table: ToolTable) -> Iterator[ToolTable]:
    """A context in which definitions register in ``table`` instead of the global one."""
    token = _target.set(table)
    try:
        yield table
    finally:
        _target.reset(token)


def current_table() -> ToolTable:
    """The table in which definitions register now."""
    return _target.get()


def define_tool(
    name: str,
    description: str,
    *,
    parameters: Mapping[str, Mapping[str, Any]],
    body: Callable[..., Any],
    guard: Callable[..., Any] | None = None,
    changes: Callable[..., Any] | None = None,
    source: str = "",
    form: str = "",
    module: str = "",
    input_model: type[BaseModel] | None = None,
    **options: Any,
) -> CognitiveTool:
    """Build a tool and register it in the current table. ``parameters`` maps each name to its spec;
    ``options`` are OPTIONS with underscores. From ``input_model`` the body makes its one
    argument. Raises DefinitionError that names the option at fault."""
    for option in options:
        if option.replace("_", "-") not in OPTIONS:
            raise DefinitionError(f"{name}: unknown option :{option}." + did_you_mean(option, OPTIONS))
    if not isinstance(description, str):
        raise DefinitionError(f"{name} needs a description: the model chooses by it.")
    returns = options.pop("returns", None)
    if returns is not None and not isinstance(returns, Returns):
        returns = declared_returns(name, returns)
    if options.get("free_text", True) is not True:
        options["free_text"] = declared_free_text(name, options["free_text"], returns)
    params = tuple(make_param(name, param, spec) for param, spec in parameters.items())
    examples = tuple(example_of(name, params, example) for example in options.pop("examples", ()) or ())
    effects = options.pop("effects", ()) or ()
    if not isinstance(effects, (list, tuple)):
        raise DefinitionError(f"{name}: :effects is a list, such as [:reads].")
    options["effects"] = tuple(as_word(value) for value in effects)
    for option in ("cost", "gate_failure"):
        if option in options:
            options[option] = as_word(options[option])
    tool = CognitiveTool(
        name=name,
        description=inspect.cleandoc(description),
        params=params,
        examples=examples,
        returns=returns,
        input_model=input_model,
        source=source,
        form=form,
        module=module,
        code=_code_of(module),
        place="" if is_ours(module) else place_of_function(body),
        _guard=guard,
        _changes=changes,
        _body=body,
        **options,
    )
    if not tool.ships:  # those are few, and most commands call none
        tool.prepare()
    return _target.get().register(tool)


def _code_of(module: str) -> str:
    if is_ours(module):
        return ""
    return code_of(module)


def cognitive_tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    guard: Callable[..., Any] | None = None,
    changes: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """A decorator, the Python twin of ``def-cognitive-tool``: the function is the body, its signature the
    parameters, and what it is declared to return is checked.

    The docstring describes the tool, and in Google's or NumPy's sections its parameters;
    ``Annotated[str, "what it is"]`` describes one, too, and ``Annotated[str, Secret("what it is")]`` one that
    is secret; ``Destination`` and ``Content`` say its role, ``Wire`` its name in JSON, ``Outside`` that a
    path may lead out of the workspace. The door fills parameters named ``ctx``
    and ``call``; they are not shown. Options are those of the macro (``effects=["reads"]``, ``timeout=5``,
    ``free_text=["body"]`` …). Returns the CognitiveTool, through which the function cannot be called
    directly."""

    def define(function: Callable[..., Any]) -> CognitiveTool:
        tool = name or kebab(function.__name__)
        said = read_docstring(inspect.getdoc(function) or "")
        hints = hints_of(tool, function)
        returns = declared_returns(tool, hints.get("return", Any), said.returns)
        return define_tool(
            tool,
            description or said.description,
            parameters=_parameters_of(tool, function, hints, said),
            body=function,
            guard=guard,
            changes=changes,
            source=source_of(function),
            module=function.__module__,
            **{"returns": returns, **options},
        )

    return define if function is None else define(function)


def source_of(function: Callable[..., Any]) -> str:
    """The text of a function; empty if it is in no file."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""


def hints_of(tool: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function as types. Raises DefinitionError."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # annotations are any expression at all
        raise DefinitionError(f"{tool}: its annotations cannot be read ({error}).") from None


def _parameters_of(
    tool: str, function: Callable[..., Any], hints: Mapping[str, Any], said: Docstring
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    names = inspect.signature(function).parameters
    for name in said.params:
        if name not in names:
            hint = did_you_mean(name, names)
            raise DefinitionError(
                f"{tool}: its docstring describes {name}, which is no parameter of it.{hint}"
            )
    for param in names.values():
        if param.name in ("ctx", "call"):
            continue
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD, param.POSITIONAL_ONLY):
            raise DefinitionError(
                f"{tool}: *{param.name} cannot be a tool's parameter; each needs its own name."
            )
        if kebab(param.name).replace("-", "_") != param.name:
            raise DefinitionError(
                f"{tool}, parameter {param.name}: "
                "a parameter's name is lower-case letters, digits and underscores."
                f"{name_hint(param.name).replace('-', '_')}"
            )
        if param.name not in hints:
            raise DefinitionError(f"{tool}, parameter {param.name}: it needs a type annotation.")
        role, outside, wire = "", False, ""
        hint, doc = hints[param.name], said.params.get(param.name, "")
        if typing.get_origin(hint) is typing.Annotated:
            hint, *notes = typing.get_args(hint)
            wire = next((str(note) for note in notes if isinstance(note, Wire)), "")
            notes = [note for note in notes if not isinstance(note, Wire)]
            said_here = (
                note if isinstance(note, str) else getattr(note, "description", None) for note in notes
            )
            role = role_of(notes)
            outside = any(isinstance(note, Outside) for note in notes)
            doc = next(filter(None, said_here), doc)
            bounds = [note for note in notes if type(note).__module__.partition(".")[0] in BOUNDING]
            hint = typing.Annotated[(hint, *bounds)] if bounds else hint
        default = REQUIRED if param.default is param.empty else param.default
        spec = {
            "type": hint,
            "doc": str(doc),
            "default": default,
            "secret": isinstance(doc, Secret),
            "role": role,
            "outside": outside,
            "wire": wire,
        }
        found[kebab(param.name)] = spec
    return found


# Tools that take one pydantic model (seed 002): ``register(name, InputModel)`` decorates such a function.
#
# The fields of the model are the tool's parameters, so that it is shown, checked and called as any other.
# Knows models and definitions; it must not know doors.


def register(
    name: str, input_model: type[BaseModel], *, description: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], CognitiveTool]:
    """A decorator for a function of one model: it becomes a tool of the current table. ``options`` are a
    ``guard`` and those of ``cognitive_tool``. Raises DefinitionError, which is a ValueError, also for a name
    that is taken."""
    from pydantic import BaseModel

    if not (isinstance(input_model, type) and issubclass(input_model, BaseModel)):
        raise DefinitionError(
            f"{name}: its input is a pydantic model, such as a StrictModel; not {input_model!r}."
        )

    def define(function: Callable[..., Any]) -> CognitiveTool:
        said = read_docstring(inspect.getdoc(function) or inspect.cleandoc(input_model.__doc__ or ""))
        hints = hints_of(name, function)
        returns = declared_returns(name, hints.get("return", Any), said.returns)
        return define_tool(
            name,
            description or said.description,
            parameters={
                kebab(field): _spec(info, said.params.get(field, ""))
                for field, info in input_model.model_fields.items()
            },
            body=_body(name, function, input_model),
            source=source_of(function),
            module=function.__module__,
            input_model=input_model,
            **{"returns": returns, **options},
        )

    return define


def _spec(field: FieldInfo, doc: str) -> dict[str, Any]:
    hint: Any = field.annotation
    if field.metadata:
        hint = typing.Annotated[(hint, *field.metadata)]
    default = (
        REQUIRED if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
    )
    role = role_of(field.metadata)
    doc = field.description or doc
    return {"type": hint, "doc": doc, "default": default, "role": role, "wire": field.alias or ""}


def _body(name: str, function: Callable[..., Any], model: type[BaseModel]) -> Callable[..., Any]:
    """The function of the parameters that builds the model for ``function``."""
    known = inspect.signature(function).parameters
    own = [one for one in known if one not in ("ctx", "call")]
    if len(own) != 1:
        raise DefinitionError(
            f"{name}: its function takes one {model.__name__}, and not {len(own)} parameters."
        )

    @functools.wraps(function)
    def body(**args: Any) -> Any:
        more = {one: args.pop(one) for one in ("ctx", "call") if one in known}
        return function(built(name, model, args), **more)

    taken = [*(kebab(field).replace("-", "_") for field in model.model_fields), *known.keys() - own]
    params = [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY) for one in taken]
    body.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
    return body
