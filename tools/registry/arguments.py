"""Arguments of a call: bound to the tool's parameters, validated, and each error put into words."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import DefinitionError, InvalidCallError, ToolError, did_you_mean, nearest
from quoth.tools.lisp.forms import CallForm, from_model, halved, kebab, too_deep
from quoth.tools.lisp.printer import MAX_DEPTH, Code, code_in, print_value
from quoth.tools.registry.json_type import as_given, core_of, values, words
from quoth.tools.registry.param_types import WorkspacePath, has_json, is_json, schema_at
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.values import UNKNOWN, NoDataError, plain, secret_text
from quoth.tools.text import count, short

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import SchemaValidator


# The JSON Schema of parameters: it is shown to models, and arguments are checked by it.


_NULL = {"type": "null"}
_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    Code: {"type": "string"},
    WorkspacePath: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    list: {"items": {}, "type": "array"},
    dict: {"additionalProperties": True, "type": "object"},
    type(None): _NULL,
    None: _NULL,
    Any: {},
}
_CHOSEN = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def parameters_schema(params: Iterable[Param]) -> dict[str, Any]:
    """The schema with its keywords in pydantic's order. Read-only: parts of it are shared."""
    properties = {param.name: _property(param) for param in params}
    required = [param.name for param in params if param.required]
    schema = {"additionalProperties": False, "properties": properties}
    return {**schema, **({"required": required} if required else {}), "type": "object"}


def _property(param: Param) -> dict[str, Any]:
    made = _given(param)
    if param.default is None and made != _NULL:
        branches = _branches(made)
        made = {"anyOf": branches if _NULL in branches else [*branches, _NULL]}
    doc = {"description": param.doc} if param.doc else {}
    default = {} if param.required else {"default": param.default}
    return dict(sorted({**made, **doc, **default}.items()))


def _branches(schema: dict[str, Any]) -> list[Any]:
    """The alternative schemas of a value."""
    return schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]


def _given(param: Param) -> dict[str, Any]:
    """The schema of an argument that is given."""
    if param.choices:
        return _choices(param.choices)
    bounds = {"maximum": param.max, "minimum": param.min}
    return _type(param.type, {word: limit for word, limit in bounds.items() if limit is not None})


def _choices(choices: tuple[Any, ...]) -> dict[str, Any]:
    single = {(type(choice), choice): choice for choice in choices}  # True is 1 for a dictionary
    kinds = {_CHOSEN[kind] for kind, _ in single}
    values = {"enum": [*single.values()]} if len(single) > 1 else {"const": choices[0]}
    return {**values, "type": kinds.pop()} if len(kinds) == 1 else values


def type_schema(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a portable type."""
    return {**_type(hint, {})}


def _type(hint: Any, bounds: Mapping[str, float]) -> dict[str, Any]:
    """The schema of a portable type, whose numbers have these bounds."""
    if (known := _TYPES.get(hint)) is not None:
        return {**bounds, **known} if hint in (int, float) else known
    if is_json(hint):
        return _ordered(hint.schema)  # type: ignore[no-any-return]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return _choices(args)
    inner = [_type(arg, bounds) for arg in args]
    if origin is list:
        return {"items": inner[0], "type": "array"}
    if origin is dict:
        return {"additionalProperties": inner[1] or True, "type": "object"}
    branches = [branch for one in inner for branch in _branches(one)]
    kept = [one for place, one in enumerate(branches) if one not in branches[:place]]
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def _ordered(node: Any, of: str = "") -> Any:
    """A copy with keywords in pydantic's order; keys of ``properties`` and defaults are names, not
    keywords."""
    if isinstance(node, list):
        return [_ordered(one, of) for one in node]
    if not isinstance(node, dict):
        return node
    keys = node if of in ("properties", "default") else sorted(node)
    return {key: _ordered(node[key], key) for key in keys}


Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # raises pydantic's ValidationError

_EXACT = {str: str, Code: str, WorkspacePath: str, int: int, bool: bool}


def check_of(params: Sequence[Param]) -> Check:
    """The strict check of arguments by their JSON Schema; it returns them with defaults."""

    @cache
    def strict() -> SchemaValidator:
        from pydantic_core import SchemaValidator  # here: the arguments of most calls are plain

        fields = {param.name: {"type": "model-field", "schema": _core(param)} for param in params}
        schema: Any = {"type": "model-fields", "fields": fields, "extra_behavior": "forbid"}
        return SchemaValidator(schema, {"strict": True})

    def check(data: Mapping[str, Any]) -> Mapping[str, Any]:
        made = as_they_are(params, data)
        return strict().validate_python(data)[0] if made is None else made

    return check


def as_they_are(params: Sequence[Param], data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments, if pydantic-core would accept each unchanged; otherwise None."""
    made: dict[str, Any] = {}
    for param in params:
        if param.name in data:
            value: Any = data[param.name]
            if param.choices or type(value) is not _EXACT.get(param.type):
                return None
            made[param.name] = value
            if isinstance(value, str) and not value.isascii():  # it may contain an unpaired surrogate
                return None
            number: Any = data[param.name]  # only numbers have bounds
            if (param.min is not None and number < param.min) or (
                param.max is not None and number > param.max
            ):
                return None
        elif param.required or isinstance(param.default, (list, dict)):
            return None
        else:
            made[param.name] = param.default
    return made if len(data) == sum(param.name in data for param in params) else None


def _core(param: Param) -> dict[str, Any]:
    core: dict[str, Any] = core_of(_given(param))
    if has_json(param.type):
        core = as_given(core)
    if param.default is None:
        core = {"type": "nullable", "schema": core}
    if param.required:
        return core
    copied = {"copy_default": True} if isinstance(param.default, (list, dict)) else {}
    return {"type": "default", "schema": core, "default": param.default, **copied}


def bind(
    tool: str, params: Sequence[Param], args: Mapping[str, Any], positional: Sequence[Any]
) -> dict[str, Any]:
    """Arguments by canonical name; positional ones fill the unnamed parameters in order. Raises
    InvalidCallError for too many or too deeply nested ones."""
    bound = own_names(tool, params, args)
    for value in (*bound.values(), *positional):
        if too_deep(value):
            raise InvalidCallError(f"{tool}: an argument is nested deeper than {MAX_DEPTH}.")
    offered = [param.name for param in params if not param.hidden]
    free = [name for name in offered if name not in bound]
    if len(positional) > len(free):
        extra = print_value(positional[len(free)])
        raise InvalidCallError(f"{tool} takes {count(len(offered), 'argument')}; {extra} is one too many.")
    bound.update(zip(free, positional, strict=False))
    return bound


def own_names(tool: str, params: Sequence[Param], args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by canonical name; a call may also use the wire names. Raises InvalidCallError for an
    argument that is given by both names."""
    own = {kebab(param.wire): param.name for param in params if param.wire}
    found: dict[str, Any] = {}
    for written, value in args.items():
        name = own.get(kebab(written), kebab(written))
        if name in found:
            raise InvalidCallError(f"{tool}: :{name} is given twice.")
        found[name] = value
    return found


def example_of(name: str, params: Sequence[Param], example: Any) -> CallForm:
    """An example call of the tool, written as a text, a model or a form. Raises DefinitionError."""
    if isinstance(example, str):
        from quoth.tools.lisp.reader import read_one

        example = read_one(example)
    form = example if isinstance(example, CallForm) else from_model(example)
    if form.tool != name:
        raise DefinitionError(f"{name}: an example calls {form.tool}; examples call the tool itself.")
    bound = bind(name, params, form.args, form.positional)
    known = [param.name for param in params]
    for arg in bound:
        if arg not in known:
            raise DefinitionError(
                f"{name}: an example has the unknown argument :{arg}." + did_you_mean(arg, known)
            )
    for param in params:
        if param.required and param.name not in bound:
            raise DefinitionError(f"{name}: an example lacks the argument :{param.name}.")
    return form


def validate(
    tool: str,
    params: Sequence[Param],
    check: Check,
    bound: Mapping[str, Any],
    later: Container[str] = (),
) -> dict[str, Any]:
    """The typed arguments by canonical name, with defaults. Raises InvalidCallError that lists up to
    MAX_FAULTS errors. Arguments in ``later`` have no value yet and are not checked; if one is required, the
    result is empty."""
    by_name = {param.name: param for param in params}
    data = {
        name: plain_argument(value, by_name.get(name))
        for name, value in bound.items()
        if name not in later and not (value is None and _left_out(by_name.get(name)))
    }
    faults = [
        f":{name} takes plain data, not {_expression(code, by_name[name])}"
        for name, value in data.items()
        if name in by_name and (code := code_in(value)) is not None
    ]
    faults += [f":{name} contains a lone surrogate character" for name in data if halved(data[name])]
    if faults:
        raise InvalidCallError(_sentence(tool, faults))
    try:
        made = check({k: str(v) if isinstance(v, Code) else v for k, v in data.items()})
    except ToolError as error:
        raise InvalidCallError(_sentence(tool, [str(error)])) from None
    except ValueError as error:
        found = _told(error)
        meant = [one for one in found if _argument(one) not in later]
        if said := _faults(meant, by_name, data):
            wrong = set(map(_argument, meant))
            others = [param for param in params if param.name in data and param.name not in wrong]
            raise InvalidCallError(_sentence(tool, said + _made(others, data)[1])) from None
        return {}
    values = {param.name: made[param.name] for param in params}
    for param in params:
        if param.type is Code and values[param.name] is not None:
            values[param.name] = Code(values[param.name])
    python_values(tool, params, values)
    return values


def python_values(
    tool: str, params: Sequence[Param], values: Mapping[str, Any], root: Path | None = None
) -> dict[str, Any]:
    """The arguments for a guard or body: values of Python types are created from the call's JSON data; a Path
    is below ``root``. Raises InvalidCallError for data that only the type itself refuses."""
    made, faults = _made(params, values, root)
    if faults:
        raise InvalidCallError(_sentence(tool, faults))
    return made


def _made(
    params: Iterable[Param], values: Mapping[str, Any], root: Path | None = None
) -> tuple[dict[str, Any], list[str]]:
    """The arguments with values of Python types, and the faults of arguments that cannot be converted."""
    made, faults = dict(values), list[str]()
    for param in params:
        data = values.get(param.name)
        if param.own is None or data is None or data is UNKNOWN:
            continue
        try:
            made[param.name] = param.own_type.value_of(data, root if param.holds_paths else None)
        except ValueError as error:
            faults += _own_faults(_told(error), param, data)
    return made, faults


def _told(error: ValueError) -> list[Any]:
    """The errors of pydantic-core; any other error is raised again."""
    from pydantic_core import ValidationError  # here: most arguments are right

    if not isinstance(error, ValidationError):
        raise error
    return error.errors(include_url=False)


def built(tool: str, model: type[BaseModel], args: Mapping[str, Any]) -> BaseModel:
    """The author's model of typed arguments. Raises InvalidCallError if the model itself refuses them."""
    from pydantic import ValidationError

    given = {kebab(name): value for name, value in args.items()}
    names = {kebab(name): field.alias or name for name, field in model.model_fields.items()}
    try:
        return model.model_validate({name: given[own] for own, name in names.items() if own in given})
    except ValidationError as error:
        said = [one["msg"].partition(", ")[2] or one["msg"] for one in error.errors(include_url=False)]
        raise InvalidCallError(_sentence(tool, [short(one.rstrip("."), 200) for one in said])) from None


def _argument(detail: Any) -> str:
    """The argument that an error is about."""
    return kebab(str((*detail["loc"], "")[0]))


def _left_out(param: Param | None) -> bool:
    """Whether None can only mean that the argument is omitted, as models and Common Lisp write it."""
    return param is not None and not param.required and param.type in (str, int, float, bool, WorkspacePath)


def plain_argument(value: Any, param: Param | None) -> Any:
    """An argument as its parameter needs it: a program as text, anything else as the JSON data that it
    spells. A quoted form is the program that it quotes, as in ``(eval '(+ 1 2))``."""
    if param is not None and param.type is Code:
        if isinstance(value, Code) and value.startswith("'"):
            return str(value[1:])
        return str(value) if isinstance(value, str) else print_value(value)
    if isinstance(value, Code):
        return value if value.data is None else plain_argument(value.data, param)
    if isinstance(value, Mapping):
        items = ((key if isinstance(key, str) else str(key), item) for key, item in value.items())
        return {key: plain_argument(item, param) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [plain_argument(item, param) for item in value]
    if param is not None and param.secret and hasattr(value, "get_secret_value"):
        return secret_text(value)
    if param is None or param.own is None or type(value) in _JSON or value is UNKNOWN:
        return value
    try:
        # a Python value from a program
        return plain(value, secret=secret_text if param.secret else None)
    except NoDataError:
        return value


_JSON = (type(None), str, int, float, bool, WorkspacePath)


def program_argument(program: str) -> Code:
    """A program as an argument that ``plain_argument`` reads back: a quoted program is quoted again."""
    if "'" not in program and "(quote" not in program:
        return Code(program)
    from quoth.tools.lisp.reader import ReadError, read_all  # here: few programs quote
    from quoth.tools.lisp.syntax import begins

    try:
        forms = read_all(program)
    except ReadError:
        return Code(program)
    return Code(f"'{program}" if len(forms) == 1 and begins(forms[0], "quote") else program)


def _expression(code: str, param: Param) -> str:
    if param.secret:
        return "an expression"
    program = code.startswith(("(", "`", "'", "~"))
    hint = " (programs go into the eval tool)" if program else f'; a text is written "{code}"'
    return f"the expression {code}{hint}"


MAX_FAULTS = 20  # faults reported of one call; a reply may contain thousands


def _sentence(tool: str, faults: Sequence[str]) -> str:
    more = ["and more"] if len(faults) > MAX_FAULTS else []
    return f"{tool}: " + "; ".join([*faults[:MAX_FAULTS], *more]) + "."


def _faults(
    details: Iterable[Any], by_name: Mapping[str, Param], data: Mapping[str, Any], *, own: bool = False
) -> list[str]:
    """Each pydantic error as a clause about the argument, in the order of the call. Data that the author's
    ``own`` class refuses has the shown type, so the clause does not repeat the type."""
    faults: list[str] = []
    for detail in details:
        if len(faults) > MAX_FAULTS:
            break
        name, location = _argument(detail), detail["loc"][1:]
        param = by_name.get(name)
        missing = detail["type"] == "missing"
        places = places_in(data.get(name), location, missing=missing)
        inside = "".join(f"[{short(print_value(part), 40)}]" for part in places)
        if missing:
            fault = f":{name}{inside} is missing"
        elif detail["type"] == "extra_forbidden" and not location:
            close = nearest(name, by_name)
            names = ", ".join(f":{known}" for known, param in by_name.items() if not param.hidden)
            hint = f"did you mean :{close}?" if close else f"it takes {names}" if names else "it takes none"
            fault = f":{name} is unknown ({hint})"
        elif detail["type"] == "extra_forbidden":
            fields = schema_at(param.type, places[:-1]).get("properties", ()) if param else ()
            fault = f":{name}{inside} is unknown{_guess(str(location[-1]), fields)}"
        else:
            secret = param is not None and param.secret  # is not repeated, even to its sender
            given = "[secret]" if secret else short(print_value(detail["input"]), 80)
            about, should, wanted = _COUNTED.sub("", detail["msg"]).partition(" should ")
            if param and (shown := _shown(detail["type"], param, places)):
                wanted = f"be {shown}"
            elif param and not (inside or own or detail["type"].endswith(_OF_VALUES)):
                wanted = f"be {_A_PATH if param.kind == 'path' else param.kind}"
            if should:
                said = f" should {wanted}, not {given}{_meant(detail, param)}"
            else:  # by the author's own class
                said = " is refused" + (
                    "" if secret else f" ({short(about.partition(', ')[2] or about, 200)})"
                )
            fault = f":{name}{inside}{said}"
        if fault not in faults:
            faults.append(fault)
    return faults


def _own_faults(details: Iterable[Any], param: Param, data: Any) -> list[str]:
    """The same for data that matches its JSON Schema and that a Python type refuses. Faults of union branches
    for another kind of data are left out."""
    told = [{**one, "loc": (param.name, *one["loc"])} for one in details]
    meant = [one for one in told if not one["type"].endswith(_OF_KINDS)]
    return _faults(meant or told, {param.name: param}, {param.name: data}, own=True)


_A_PATH = 'a path, a text such as "src/a.py"'
_COUNTED = re.compile(r" after validation, not (?:more than )?\d+\Z")
_OF_KINDS = ("_type", "missing", "extra_forbidden", "literal_error", "none_required")
# An example of each text format, and the beginning of pydantic's errors about it.
_WRITTEN = {
    "date": ("date", 'a date such as "2026-11-29"'),
    "date-time": ("datetime", 'a date with a time, such as "2026-11-29T18:30:00"'),
    "time": ("time", 'a time such as "18:30"'),
    "duration": ("time_delta", 'a duration such as "PT1H30M"'),
    "uuid": ("uuid", 'a UUID such as "12345678-1234-5678-1234-567812345678"'),
    "decimal": ("decimal", 'a number, or one as a text such as "12.50"'),
    "base64": ("bytes", 'bytes in base64, such as "aGVsbG8="'),
}
_ABOUT_TEXT = re.compile(r"(.+?)_(?:type|parsing|invalid_encoding|from_date\w*)\Z")


def _shown(kind: str, param: Param, places: Sequence[int | str]) -> str:
    """An example of a text in the format of an argument; if there are few possible values, all of them."""
    if kind in ("string_type", "json_union", "literal_error"):
        schema = schema_at(param.type, places)
        if values(schema):
            return words(schema)
        return _WRITTEN.get(schema.get("format") or schema.get("contentEncoding") or "", ("", ""))[1]
    about = _ABOUT_TEXT.match(kind)
    return next((text for begin, text in _WRITTEN.values() if about and begin == about[1]), "")


def places_in(value: Any, location: Iterable[int | str], *, missing: bool = False) -> list[int | str]:
    """The places in a value that the location of an error names, without pydantic's names of union branches.
    With ``missing``, the last place does not exist."""
    places: list[int | str] = []
    *outer, last = location if (location := [*location]) else [None]
    for part in [*outer, *([] if missing or last is None else [last])]:
        inner = _ABSENT
        if isinstance(value, Mapping):
            inner = value.get(part, _ABSENT)
        elif isinstance(value, (list, tuple)):
            inner = value[part] if isinstance(part, int) and part < len(value) else _ABSENT
        elif not isinstance(value, str):
            inner = getattr(value, str(part), _ABSENT)
        if inner is not _ABSENT:
            places.append(part)
            value = inner
    return [*places, last] if missing and last is not None else places


_ABSENT: Any = object()


def _guess(word: str, known: Iterable[str]) -> str:
    """The known name nearest to an unknown word, in brackets; empty if none is near."""
    close = nearest(word, known)
    return f" (did you mean {print_value(close)}?)" if close else ""


def _meant(detail: Any, param: Param | None) -> str:
    """The probable meaning of a wrong text: the nearest choice, or a list of its words; in brackets."""
    given = detail["input"]
    if param is None or param.secret or not isinstance(given, str):
        return ""
    if param.type == list[str] and len(detail["loc"]) == 1:
        return f" (write {print_value(_words(given))})"
    return _guess(given, [one for one in param.choices if isinstance(one, str)])


def _words(text: str) -> list[str]:
    """A text of several words as a list of them, as a shell reads it."""
    import shlex

    try:
        return shlex.split(text) or [text]
    except ValueError:
        return text.split()


# The kinds of pydantic's errors about a value of the right type.
_OF_VALUES = ("_equal", "_than", "_of", "_short", "_long", "_mismatch", "value_error", "assertion_error")
