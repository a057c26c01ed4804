"""Arguments of a call: bound to the tool's parameters, validated, and each error put into words.

Knows parameters and what pydantic checks; it must not know doors or what runs.
"""

from __future__ import annotations

import typing
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import DefinitionError, InvalidCallError, ToolError, did_you_mean, nearest
from quoth.tools.lisp.forms import CallForm, from_model, halved, kebab, too_deep
from quoth.tools.lisp.printer import MAX_DEPTH, Code, code_in, print_value
from quoth.tools.registry.param_types import UNIONS, WorkspacePath, fields_at
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.plain_schema import Check
from quoth.tools.text import count, short

if TYPE_CHECKING:
    from pydantic import BaseModel


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
    """Arguments by canonical name; a call may also use the wire names. Raises InvalidCallError for one that
    is given by both."""
    own = {kebab(param.wire): param.name for param in params if param.wire}
    found: dict[str, Any] = {}
    for written, value in args.items():
        name = own.get(kebab(written), kebab(written))
        if own and name in found:
            raise InvalidCallError(f"{tool}: :{name} is given twice.")
        found[name] = value
    return found


def example_of(name: str, params: Sequence[Param], example: Any) -> CallForm:
    """An example of a call of the tool, written as a text, a model or a form. Raises DefinitionError."""
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
    faults += [f":{name} holds half a character (a lone surrogate)" for name in data if halved(data[name])]
    if faults:
        raise InvalidCallError(_sentence(tool, faults))
    try:
        made = check({k: str(v) if isinstance(v, Code) else v for k, v in data.items()})
    except ToolError as error:
        raise InvalidCallError(_sentence(tool, [str(error)])) from None
    except ValueError as error:
        found = _told(error)
        if said := _faults([one for one in found if kebab(str((*one["loc"], "")[0])) not in later], by_name):
            raise InvalidCallError(_sentence(tool, said)) from None
        return {}
    values = {param.name: made[param.field] for param in params}
    for param in params:
        if values[param.name] is None:
            continue
        if param.type is Code:
            values[param.name] = Code(values[param.name])
        if param.own is not None:
            try:
                values[param.name] = param.own_type.validate_python(values[param.name])
            except ValueError as error:
                told = [{**one, "loc": (param.name, *one["loc"])} for one in _told(error)]
                faults += _faults(told, by_name, own=True)
    if faults:
        raise InvalidCallError(_sentence(tool, faults))
    return values


def _told(error: ValueError) -> list[Any]:
    """What pydantic-core refused; any other error is raised again."""
    from pydantic_core import ValidationError  # here: most arguments are right

    if not isinstance(error, ValidationError):
        raise error
    return error.errors(include_url=False)


def built(tool: str, model: type[BaseModel], args: Mapping[str, Any]) -> BaseModel:
    """The author's model of typed arguments. Raises InvalidCallError for what the model itself refuses."""
    from pydantic import ValidationError

    given = {kebab(name): value for name, value in args.items()}
    names = {kebab(name): field.alias or name for name, field in model.model_fields.items()}
    try:
        return model.model_validate({name: given[own] for own, name in names.items() if own in given})
    except ValidationError as error:
        said = [one["msg"].partition(", ")[2] or one["msg"] for one in error.errors(include_url=False)]
        raise InvalidCallError(_sentence(tool, [short(one.rstrip("."), 200) for one in said])) from None


def _left_out(param: Param | None) -> bool:
    """Whether None can only mean that it is left out, as models and Common Lisp write it."""
    return param is not None and not param.required and param.type in (str, int, float, bool, WorkspacePath)


def plain_argument(value: Any, param: Param | None) -> Any:
    """An argument as its parameter wants it: a program as text, anything else as the data it spells."""
    if param is not None and param.type is Code:
        return str(value) if isinstance(value, str) else print_value(value)
    if isinstance(value, Code):
        return value if value.data is None else plain_argument(value.data, param)
    if isinstance(value, Mapping):
        return {key: plain_argument(item, param) for key, item in value.items()}
    return [plain_argument(item, param) for item in value] if isinstance(value, (list, tuple)) else value


def _expression(code: str, param: Param) -> str:
    if param.secret:
        return "an expression"
    program = code.startswith(("(", "`", "'", "~"))
    hint = " (programs go into the eval tool)" if program else f'; a text is written "{code}"'
    return f"the expression {code}{hint}"


MAX_FAULTS = 20  # that are told of one call; a reply may hold thousands


def _sentence(tool: str, faults: Sequence[str]) -> str:
    more = ["and more"] if len(faults) > MAX_FAULTS else []
    return f"{tool}: " + "; ".join([*faults[:MAX_FAULTS], *more]) + "."


def _faults(details: Iterable[Any], by_name: Mapping[str, Param], *, own: bool = False) -> list[str]:
    """Each pydantic error as a clause about the argument, in the order of the call. What the author's ``own``
    class refuses has the type that is shown, so that its name would say nothing."""
    faults: list[str] = []
    for detail in details:
        if len(faults) > MAX_FAULTS:
            break
        name = kebab(str(detail["loc"][0])) if detail["loc"] else ""
        param = by_name.get(name)
        inside = "".join(_places(param.type if param else None, detail["loc"][1:]))
        if detail["type"] == "missing":
            fault = f":{name}{inside} is missing"
        elif detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
            close = nearest(name, by_name)
            names = ", ".join(f":{known}" for known, param in by_name.items() if not param.hidden)
            hint = f"did you mean :{close}?" if close else f"it takes {names}" if names else "it takes none"
            fault = f":{name} is unknown ({hint})"
        elif detail["type"] == "extra_forbidden":
            fields = fields_at(param.type, detail["loc"][1:-1]) if param else []
            fault = f":{name}{inside} is unknown{_guess(str(detail['loc'][-1]), fields)}"
        else:
            secret = param is not None and param.secret  # is not repeated even to who gave it
            given = "[secret]" if secret else short(print_value(detail["input"]), 80)
            about, should, wanted = detail["msg"].partition(" should ")
            if param and not (inside or own or detail["type"].endswith(_OF_VALUES)):
                wanted = f"be {param.kind}"
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


def _guess(word: str, known: Iterable[str]) -> str:
    """The known name that is nearest to an unknown word, in brackets; empty if none is near."""
    close = nearest(word, known)
    return f" (did you mean {print_value(close)}?)" if close else ""


def _meant(detail: Any, param: Param | None) -> str:
    """What was meant by a text that was given: the nearest choice, or a list of its words; in brackets."""
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


# The kinds of pydantic's errors that are about a value of the right type.
_OF_VALUES = ("_equal", "_than", "_of", "_short", "_long", "_mismatch", "value_error", "assertion_error")


def _places(hint: Any, location: Sequence[int | str]) -> Iterator[str]:
    """The places in the data that a location names, as ``[0]`` or ``["name"]``; pydantic names the branches
    of unions too."""
    for part in location:
        origin, kinds = typing.get_origin(hint), typing.get_args(hint)
        if origin in UNIONS:
            kinds = tuple(one for one in kinds if one is not type(None))
            if len(kinds) == 1:
                origin, kinds = typing.get_origin(kinds[0]), typing.get_args(kinds[0])
        if origin in UNIONS:
            label = str(part).partition("[")[0]
            named = (one for one in kinds if getattr(typing.get_origin(one), "__name__", "") == label)
            hint = next(named, None)
        elif part != "[key]":
            yield f"[{short(print_value(part), 40)}]"
            hint = kinds[-1] if origin in (list, dict) else None
