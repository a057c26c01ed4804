"""Tools that take one pydantic model (seed 002): ``register(name, InputModel)`` decorates such a function.

The fields of the model are the tool's parameters, so that it is shown, checked and called as any other.
Knows models and definitions; it must not know doors.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import DefinitionError
from quoth.tools.lisp.forms import kebab
from quoth.tools.registry.arguments import built
from quoth.tools.registry.define import define_tool, hints_of, read_docstring, source_of
from quoth.tools.registry.parameters import REQUIRED, role_of
from quoth.tools.registry.returns import declared_returns
from quoth.tools.registry.table import CognitiveTool

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


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
