"""Functions as tools: ``cognitive_tool`` decorates one, ``tool_of`` returns its entry, and ``register`` turns
a function of one pydantic model into a tool (seed 002).

A method, a ``functools.partial``, a closure, an async function and a generator are functions, too.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
import sys
import textwrap
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

from quoth.tools.errors import DefinitionError, did_you_mean
from quoth.tools.hy_loader import is_ours
from quoth.tools.lisp.forms import CallForm, from_json, kebab
from quoth.tools.registry.annotations import UNIONS, unwrapped
from quoth.tools.registry.arguments import built
from quoth.tools.registry.code_version import place_of_function, within_partials
from quoth.tools.registry.define import OPTIONS, current_table, define_tool, registering_in
from quoth.tools.registry.json_type import HINT, KNOWN
from quoth.tools.registry.parameters import (
    KEYS,
    REQUIRED,
    SPEC_KEYS,
    Outside,
    Secret,
    Tag,
    Wire,
    name_hint,
    role_of,
)
from quoth.tools.registry.returns import declared_returns
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import EFFECTS

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

P = ParamSpec("P")
R = TypeVar("R")

BOUNDING = ("pydantic", "annotated_types")  # whose notes in an annotation bound a value
CHECKING = "__get_pydantic_core_schema__"  # what other notes have that do
GIVEN = {"ctx": "ToolContext", "call": "Call"}  # parameters that the door fills, and their types


# Reads the docstring of a tool written in Python: its description, and the text for each parameter. It
# understands Google's and NumPy's sections and ``:param:`` fields.


_SECTION = re.compile(
    r"^(?:(?:Args|Arguments|Parameters|Params|Returns):[ \t]*$"
    r"|(?:Parameters|Returns)[ \t]*\n-{3,}[ \t]*$|:param\s)",
    re.M,
)


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring: the description for the model, and the texts for parameters and value."""

    description: str
    params: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def read_docstring(text: str) -> Docstring:
    """The parts of a docstring; a docstring without such sections is a description as a whole."""
    if not _SECTION.search(text):
        return Docstring(text)
    from docstring_parser import parse  # here: it takes 20 ms, and most tools do not need it

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


# The decorator


class ToolSettings(TypedDict, total=False):
    """The options of a tool besides its name, description, guard and changes; the same as those of the macro
    (``quoth help tools``)."""

    effects: str | Sequence[str]
    cost: Literal["free", "cheap", "expensive"]
    gate: bool
    gate_failure: Literal["closed", "open"]
    cooldown: float
    daily_limit: int
    timeout: float
    tag: str | Mapping[str, Any] | Tag
    allow_repeat: bool
    no_background: bool
    ends_turn: bool
    asks_first: bool
    shown: bool
    examples: Sequence[str | Mapping[str, Any] | CallForm]
    returns: Any
    free_text: bool | Sequence[str]
    replace: bool


class ModelSettings(ToolSettings, total=False):
    """The options of a function of one model."""

    description: str
    guard: Callable[..., Any]
    changes: Callable[..., Any]


class FunctionSettings(ModelSettings, total=False):
    """The options of a function whose parameters are the tool's."""

    name: str


@overload
def cognitive_tool(function: Callable[P, R], /, **options: Unpack[FunctionSettings]) -> Callable[P, R]: ...
@overload
def cognitive_tool(
    **options: Unpack[FunctionSettings],
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def cognitive_tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """A decorator, the Python twin of ``def-cognitive-tool``: the function is the body, its signature the
    parameters, and what it is declared to return is checked.

    The docstring describes the tool, and in Google's or NumPy's sections its parameters;
    ``Annotated[str, "what it is"]`` describes one, too, and ``Annotated[str, Secret("what it is")]`` one that
    is secret; ``Destination`` and ``Content`` say its role, ``Wire`` its name in JSON, ``Outside`` that a
    path may lead out of the workspace. The door fills parameters named ``ctx``
    and ``call``; they are not shown. Options are those of the macro (``effects="reads"``, ``timeout=5``,
    ``free_text=["body"]`` …) and ``name``, ``description``, ``guard`` and ``changes``; an example is a call,
    ``"double(21)"``, or its arguments, ``{"number": 21}``.

    The function stays unchanged, and ``tool_of(function)`` is its entry in the table. A method is a tool once
    it is bound: ``tools=[shop.count]``. Raises DefinitionError."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        given = {**_options_of(function), **options}
        if _is_unbound(function):  # checked now, and made where it is bound
            _made(function, given, unbound=True)
            return _noted(function, _Note(function, given))
        return _noted(function, _Note(function, given, current_table().register(_made(function, given))))

    return decorate if function is None else decorate(function)


def tool_of(function: Callable[..., Any]) -> CognitiveTool:
    """The entry of a decorated function: its name, schema, effects, …; of any other function, method or
    partial, the tool that it makes. Raises DefinitionError."""
    if isinstance(function, CognitiveTool):
        return function
    note = _note_of(function)
    if note is not None and note.tool is not None and note.function is function:
        return note.tool
    inner, filled = within_partials(function)
    if not filled and _is_unbound(inner):
        owner, _, name = inner.__qualname__.rpartition(".")
        raise DefinitionError(
            f"{name} is a method of {owner} and needs an instance: tools=[{owner}().{name}]."
        )
    return _made(function, _options_of(function))


# The note on a decorated function


NOTE = "__cognitive_tool__"


@dataclass(frozen=True, eq=False)
class _Note:
    """A decorated function and its options; a method has a tool once it is bound."""

    function: Callable[..., Any]
    options: Mapping[str, Any]
    tool: CognitiveTool | None = None


def _noted(function: Callable[..., Any], note: _Note) -> Callable[..., Any]:
    try:
        setattr(function, NOTE, note)
    except AttributeError:  # a bound method, which is a new object at each access

        @functools.wraps(function)
        def noted(*args: Any, **named: Any) -> Any:
            return function(*args, **named)

        setattr(noted, NOTE, _Note(noted, note.options, note.tool))
        return noted
    return function


def _note_of(function: Callable[..., Any]) -> _Note | None:
    """The note on a function, or on the one within a partial."""
    while (note := getattr(function, NOTE, None)) is None and isinstance(function, functools.partial):
        function = function.func
    return note if isinstance(note, _Note) else None


def _options_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The options of the decorated function within a method, partial or wrapper."""
    note = _note_of(function)
    return {} if note is None or note.function is function else note.options


def _is_unbound(function: Callable[..., Any]) -> bool:
    """Whether it is a function in a class, whose first parameter is the instance or the class."""
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(function) or not owner or owner.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.name in ("self", "cls") and first.annotation is first.empty


# A tool made of a function


def _made(
    function: Callable[..., Any], options: Mapping[str, Any], *, unbound: bool = False
) -> CognitiveTool:
    """The tool of a function, in no table. Raises DefinitionError in the words of Python."""
    given = dict(options)
    inner, filled = within_partials(function)
    with _in_words_of_python(inner):
        name = kebab(str(given.pop("name", None) or _name_of(inner)))
        said = read_docstring(inspect.getdoc(inner) or "")
        hints = hints_of(name, inner)
        known = _signature(name, function)
        names = [one for one in known if one not in filled]
        parameters = _parameters(name, [known[one] for one in names[unbound:]], hints, said)
        for told in said.params.keys() - {"self", "cls"} - inspect.signature(inner).parameters.keys():
            hint = did_you_mean(told, known)
            raise DefinitionError(
                f"{name}: its docstring describes {told}, which is not one of its parameters.{hint}"
            )
        if (examples := given.pop("examples", None)) is not None:
            many = [examples] if isinstance(examples, str | Mapping | CallForm) else examples
            given["examples"] = [_example(name, parameters, one) for one in many]
        given.setdefault("returns", declared_returns(name, _returned(inner, hints), said.returns))
        for key in ("guard", "changes"):
            given[key] = _with_filled(given.get(key), filled)
        with registering_in(ToolTable()):
            return define_tool(
                name,
                given.pop("description", None) or said.description,
                parameters=parameters,
                body=function,
                source=source_of(inner),
                module=getattr(inner, "__module__", None) or "",
                **given,
            )


@contextlib.contextmanager
def _in_words_of_python(function: Callable[..., Any]) -> Iterator[None]:
    """A context in which errors use Python's spelling, with the place of the faulty parameter."""
    try:
        yield
    except DefinitionError as error:
        told = type(error)(in_python(str(error)))
        told.place = _place(function, error.parameter) if error.parameter else None
        if place := place_of_function(function):
            told.add_note(f"The function is defined at {place}.")
        raise told from None


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if inspect.isclass(function):
        raise DefinitionError(
            f"{name} is a class; a tool is a function, or a method: tools=[{name}().method]."
        )
    if not name or not callable(function):
        raise DefinitionError(f"{function!r} is not a function; a tool is a function, or a method.")
    if name == "<lambda>":
        raise DefinitionError("A lambda has no name, types or docstring; write the tool with def.")
    return str(name)


def _signature(tool: str, function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError) as error:
        raise DefinitionError(f"{tool}: its parameters cannot be read ({error}).") from None


def _with_filled(function: Callable[..., Any] | None, filled: Mapping[str, Any]) -> Callable[..., Any] | None:
    """A guard with the arguments that a partial fills, if it has parameters for them."""
    if function is None or not filled:
        return function
    known = inspect.signature(function).parameters
    own = {name: value for name, value in filled.items() if name in known}
    return functools.partial(function, **own) if own else function


def source_of(function: Callable[..., Any]) -> str:
    """The text of a function; empty if it is in no file."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""


def _place(function: Callable[..., Any], parameter: str) -> tuple[str, int, int] | None:
    """The file, line and column of a parameter, both from 1; None if they are not known."""
    try:
        lines, first = inspect.getsourcelines(function)
        text = "".join(lines)
        (node,) = ast.parse(textwrap.dedent(text)).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    indent = len(text) - len(text.lstrip())
    for arg in (one for one in ast.walk(node) if isinstance(one, ast.arg)):
        if kebab(arg.arg) == kebab(parameter):
            return inspect.getsourcefile(function) or "", first + arg.lineno - 1, arg.col_offset + indent + 1
    return None


# Annotations


def hints_of(tool: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function as types; local names are looked up at its definition. Raises
    DefinitionError."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError:
        pass
    except Exception as error:  # an annotation may be any expression
        raise DefinitionError(f"{tool}: its annotations cannot be read ({error}).") from None
    known = {**dict.fromkeys(GIVEN.values(), Any), **_local_names()}
    try:
        return typing.get_type_hints(function, localns=known, include_extras=True)
    except Exception as error:
        raise DefinitionError(f"{tool}: its annotations cannot be read ({error}).") from None


def _local_names() -> Mapping[str, Any]:
    """The local names of the function that defines a tool."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


GENERATORS = (Iterator, Generator, AsyncIterator, AsyncGenerator)


def _returned(function: Callable[..., Any], hints: Mapping[str, Any]) -> Any:
    """The type of a function's value. For a generator, the type of its return value, or a list of its pieces
    if it returns None."""
    hint = hints.get("return", Any)
    generates = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if not generates and typing.get_origin(hint) not in GENERATORS:
        return hint
    piece, *more = typing.get_args(hint) or (Any,)
    if len(more) == 2 and more[1] not in (None, type(None)):
        return more[1]
    return list[piece]  # type: ignore[valid-type]


def _parameters(
    tool: str, params: Iterable[inspect.Parameter], hints: Mapping[str, Any], said: Docstring
) -> dict[str, dict[str, Any]]:
    """The specs of the parameters by their names. Raises DefinitionError."""
    found: dict[str, dict[str, Any]] = {}
    for param in params:
        if param.name in GIVEN:
            continue
        try:
            found[kebab(param.name)] = _spec(tool, param, hints, said.params.get(param.name, ""))
        except DefinitionError as error:
            error.parameter = param.name
            raise
    return found


def _spec(tool: str, param: inspect.Parameter, hints: Mapping[str, Any], doc: str) -> dict[str, Any]:
    if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD, param.POSITIONAL_ONLY):
        stars = "" if param.kind is param.POSITIONAL_ONLY else str(param).partition(param.name)[0]
        why = "each needs its own name" if stars else "a tool's arguments are given by name; leave out the /"
        raise DefinitionError(f"{tool}: {stars}{param.name} cannot be a tool's parameter; {why}.")
    where = f"{tool}, parameter {param.name}"
    if kebab(param.name).replace("-", "_") != param.name:
        raise DefinitionError(
            f"{where}: a parameter's name is lower-case letters, digits and underscores."
            f"{name_hint(param.name).replace('-', '_')}"
        )
    if param.name not in hints:
        raise DefinitionError(f"{where}: it needs a type annotation.")
    hint = hints[param.name]
    for given, kind in GIVEN.items():
        if is_ours(getattr(hint, "__module__", "")) and getattr(hint, "__name__", "") == kind:
            raise DefinitionError(f"{where}: the {kind} is given to the parameter named {given}.")
    spec = _noted_spec(hint, doc)
    return spec if param.default is param.empty else {**spec, "default": param.default}


def _noted_spec(hint: Any, doc: str) -> dict[str, Any]:
    """The spec of a parameter by its annotation: its type, and what the notes say."""
    kind, notes = _type_and_notes(hint)
    told = (note if isinstance(note, str) else getattr(note, "description", None) for note in notes)
    fields = [note for note in notes if type(note).__name__ == "FieldInfo"]
    return {
        "type": kind,
        "doc": next((str(text) for text in told if text and not isinstance(text, Wire)), doc),
        "secret": any(isinstance(note, Secret) for note in notes),
        "role": role_of(notes),
        "outside": any(isinstance(note, Outside) for note in notes),
        "wire": next((str(note) for note in notes if isinstance(note, Wire)), ""),
        "default": next((default for default in map(_default, fields) if default is not REQUIRED), REQUIRED),
    }


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return REQUIRED
    return field.get_default(call_default_factory=True, validated_data={})


def _type_and_notes(hint: Any) -> tuple[Any, list[Any]]:
    """A type with its bounds, and all notes on it, on what it is another name for, and on members of a
    union."""
    notes, found = list[Any](), list[Any]()
    while (inner := unwrapped(hint)) is not hint:
        notes += getattr(hint, "__metadata__", ())
        hint = inner
    if typing.get_origin(hint) in UNIONS:
        members = [_type_and_notes(arg) for arg in typing.get_args(hint)]
        hint = typing.Union[tuple(kind for kind, _ in members)]  # noqa: UP007
        found = [note for _, more in members for note in more if isinstance(note, str)]
    bounds = [note for note in notes if _bounds(note)]
    return typing.Annotated[(hint, *bounds)] if bounds else hint, [*notes, *found]


def _bounds(note: object) -> bool:
    return type(note).__module__.partition(".")[0] in BOUNDING or hasattr(note, CHECKING)


# Examples


def _example(tool: str, parameters: Mapping[str, Any], example: Any) -> Any:
    """An example as a form or a text of one: a call in Python, ``double(21)``, or a dictionary of arguments
    is one, too. Raises DefinitionError."""
    if isinstance(example, Mapping):
        return from_json({"tool": tool, "args": dict(example)})
    if not isinstance(example, str) or example.lstrip().startswith("("):
        return example
    try:
        call = ast.parse(example.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError
        named = {one.arg or "": ast.literal_eval(one.value) for one in call.keywords}
        values = [ast.literal_eval(one) for one in call.args]
    except (ValueError, SyntaxError):
        raise DefinitionError(
            f"{tool}: an example is a call with its values, such as {_call(tool, parameters)},"
            f" or a dictionary of its arguments; not {example!r}."
        ) from None
    return from_json({"tool": call.func.id, "args": named, "positional": values})


def _call(tool: str, parameters: Mapping[str, Any]) -> str:
    """A call of the tool in Python, its values left out."""
    return f"{tool.replace('-', '_')}({', '.join(f'{name}=…' for name in parameters)})".replace("-", "_")


# Sentences in the words of Python


_TYPES = {
    HINT: f"{KNOWN}, WorkspacePath, Code, list[str] or str | None",
    "use path, (get list path), or (get dict #(str path))": "use WorkspacePath, list[WorkspacePath], or"
    " dict[str, WorkspacePath]",
    "[:reads]": '["reads"]',
    "[body subject]": '["body", "subject"]',
}
_WORDS = {*OPTIONS, *SPEC_KEYS, *KEYS}
_VALUES = {*EFFECTS, "free", "cheap", "expensive", "closed", "open", "destination", "content"}


def in_python(sentence: str) -> str:
    """A sentence about a definition, with options and types as Python writes them: ``gate_failure`` for
    ``:gate-failure``, ``"reads"`` for ``:reads``."""
    for lisp, python in _TYPES.items():
        sentence = sentence.replace(lisp, python)

    def word(found: re.Match[str]) -> str:
        before, name = found.groups()
        if name in _WORDS or before == "option ":
            return before + name.replace("-", "_")
        return f'{before}"{name}"' if before or name in _VALUES else found[0]

    return re.sub(r"(option |effect |not |)(?<![\w:]):([a-z]+(?:-[a-z]+)*)\b", word, sentence)


# Tools that take one pydantic model (seed 002): ``register(name, InputModel)`` decorates such a function. The
# fields of the model are the tool's parameters, so it is shown, checked and called like any other tool.


def register(
    name: str, input_model: type[BaseModel], **options: Unpack[ModelSettings]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for a function of one model: it becomes a tool of the current table, and stays unchanged.
    ``options`` are the options of ``cognitive_tool``. Raises DefinitionError, a ValueError, also for a name
    that is taken."""
    from pydantic import BaseModel

    if not (isinstance(input_model, type) and issubclass(input_model, BaseModel)):
        raise DefinitionError(
            f"{name}: its input is a pydantic model, such as a StrictModel; not {input_model!r}."
        )
    given: dict[str, Any] = dict(options)
    description = given.pop("description", None)

    def define(function: Callable[..., Any]) -> Any:
        inner, filled = within_partials(function)
        with _in_words_of_python(inner):
            said = read_docstring(inspect.getdoc(inner) or inspect.cleandoc(input_model.__doc__ or ""))
            returns = declared_returns(name, hints_of(name, inner).get("return", Any), said.returns)
            tool = define_tool(
                name,
                description or said.description,
                parameters={
                    kebab(field): _field_spec(info, said.params.get(field, ""))
                    for field, info in input_model.model_fields.items()
                },
                body=_body(name, function, filled, input_model),
                source=source_of(inner),
                module=inner.__module__,
                input_model=input_model,
                **{"returns": returns, **given},
            )
        return _noted(function, _Note(function, options, tool))

    return define


def _field_spec(field: FieldInfo, doc: str) -> dict[str, Any]:
    hint: Any = field.annotation
    if field.metadata:
        hint = typing.Annotated[(hint, *field.metadata)]
    spec = _noted_spec(hint, doc)
    said = {"doc": field.description or spec["doc"], "wire": field.alias or spec["wire"]}
    return {**spec, **said, "default": _default(field)}


def _body(
    name: str, function: Callable[..., Any], filled: Mapping[str, Any], model: type[BaseModel]
) -> Callable[..., Any]:
    """The function of the parameters that builds the model for ``function``."""
    params = _signature(name, function)
    known = [one for one in params if one not in filled]
    own = [one for one in known if one not in GIVEN]
    if len(own) != 1:
        raise DefinitionError(
            f"{name}: its function takes one {model.__name__}, and not {len(own)} parameters."
        )

    @functools.wraps(function)
    def body(**args: Any) -> Any:
        more = {one: args.pop(one) for one in GIVEN if one in known}
        given = built(name, model, args)
        if params[own[0]].kind is inspect.Parameter.KEYWORD_ONLY:
            return function(**{own[0]: given}, **more)
        return function(given, **more)

    taken = [*(kebab(field).replace("-", "_") for field in model.model_fields), *set(known) - set(own)]
    named = [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY) for one in taken]
    body.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return body
