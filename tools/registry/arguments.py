"""Arguments of a call: bound to the tool's parameters, validated, and each error put into words.

Knows parameters and their pydantic models; it must not know doors or what runs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import InvalidCallError, nearest
from quoth.tools.lisp.forms import kebab, too_deep
from quoth.tools.lisp.printer import MAX_DEPTH, Code, code_in, print_value
from quoth.tools.registry.parameters import Param, WorkspacePath
from quoth.tools.text import count, short

if TYPE_CHECKING:
    from pydantic import BaseModel


def bind(
    tool: str, params: Sequence[Param], args: Mapping[str, Any], positional: Sequence[Any]
) -> dict[str, Any]:
    """Arguments by canonical name; positional ones fill the unnamed parameters in order. Raises
    InvalidCallError for too many or too deeply nested ones."""
    bound = {kebab(name): value for name, value in args.items()}
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


def validate(
    tool: str,
    params: Sequence[Param],
    model: type[BaseModel],
    bound: Mapping[str, Any],
    later: Container[str] = (),
) -> dict[str, Any]:
    """The typed arguments by canonical name, with defaults. Raises InvalidCallError that lists up to
    MAX_FAULTS errors. Arguments in ``later`` have no value yet and are not checked; if one is required, the
    result is empty."""
    from pydantic import ValidationError

    by_name = {param.name: param for param in params}
    data = {name: _literal(value, by_name.get(name)) for name, value in bound.items() if name not in later}
    data = {
        name: value for name, value in data.items() if not (value is None and _left_out(by_name.get(name)))
    }
    faults = [
        f":{name} takes plain data, not {_expression(code, by_name[name])}"
        for name, value in data.items()
        if name in by_name and (code := code_in(value)) is not None
    ]
    faults += [f":{name} holds half a character (a lone surrogate)" for name in data if _halved(data[name])]
    if faults:
        raise InvalidCallError(_sentence(tool, faults))
    try:
        made = model.model_validate({k: str(v) if isinstance(v, Code) else v for k, v in data.items()})
    except ValidationError as error:
        details = error.errors(include_url=False)
        if said := _faults(
            [one for one in details if kebab(str((*one["loc"], "")[0])) not in later], by_name
        ):
            raise InvalidCallError(_sentence(tool, said)) from None
        return {}
    values = {param.name: getattr(made, param.field) for param in params}
    return {
        name: Code(value) if by_name[name].type is Code and value is not None else value
        for name, value in values.items()
    }


def _left_out(param: Param | None) -> bool:
    """Whether None can only mean that it is left out, as models and Common Lisp write it."""
    return param is not None and not param.required and param.type in (str, int, float, bool, WorkspacePath)


def _literal(value: Any, param: Param | None) -> Any:
    """The value as its parameter wants it: a program as text, anything else as the data it spells."""
    if param is not None and param.type is Code:
        return str(value) if isinstance(value, str) else print_value(value)
    if isinstance(value, Code):
        return value if value.data is None else _literal(value.data, param)
    if isinstance(value, Mapping):
        return {key: _literal(item, param) for key, item in value.items()}
    return [_literal(item, param) for item in value] if isinstance(value, (list, tuple)) else value


def _halved(value: Any) -> bool:
    """Whether a text inside a value cannot be written to any file or socket."""
    if isinstance(value, str):
        return not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, Mapping):
        return any(_halved(key) or _halved(item) for key, item in value.items())
    return isinstance(value, list) and any(_halved(item) for item in value)


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


def _faults(details: Iterable[Any], by_name: Mapping[str, Param]) -> list[str]:
    """Each pydantic error as a clause about the argument, in the order of the call."""
    faults: list[str] = []
    for detail in details:
        if len(faults) > MAX_FAULTS:
            break
        location = [str(part) for part in detail["loc"]]
        name = kebab(location[0]) if location else ""
        inside = "".join(f"[{part}]" for part in location[1:] if part in _path(detail))
        if detail["type"] == "missing" and len(location) == 1:
            fault = f":{name} is missing"
        elif detail["type"] == "extra_forbidden" and len(location) == 1:
            close = nearest(name, by_name)
            names = ", ".join(f":{known}" for known, param in by_name.items() if not param.hidden)
            hint = f"did you mean :{close}?" if close else f"it takes {names}" if names else "it takes none"
            fault = f":{name} is unknown ({hint})"
        else:
            secret = name in by_name and by_name[name].secret  # is not repeated even to who gave it
            given = "[secret]" if secret else short(print_value(detail["input"]), 80)
            wanted = detail["msg"].removeprefix("Input should be ").removeprefix("Value should be ")
            if name in by_name and not inside and not detail["type"].endswith(("_equal", "_than")):
                wanted = by_name[name].signature().strip("[]").split(" = ")[0].removeprefix(f":{name} ")
            fault = f":{name}{inside} should be {wanted}, not {given}{_meant(detail, by_name.get(name))}"
        if fault not in faults:
            faults.append(fault)
    return faults


def _meant(detail: Any, param: Param | None) -> str:
    """The choice that comes nearest to what was given, in brackets."""
    given = detail["input"]
    if param is None or param.secret or not isinstance(given, str):
        return ""
    close = nearest(given, [one for one in param.choices if isinstance(one, str)])
    return f" (did you mean {print_value(close)}?)" if close else ""


def _path(detail: Any) -> list[str]:
    """Location parts that are places in the data (indexes, keys), not pydantic's union branches."""
    return [str(part) for part in detail["loc"][1:] if isinstance(part, int) or not str(part).islower()]
