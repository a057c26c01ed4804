"""Definition of tools: what ``def-cognitive-tool`` and its Python twin ``@cognitive_tool`` (function.py)
call.

Everything is checked here, at load, so that a misspelt option can never silently drop a guard.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import DefinitionError, did_you_mean
from quoth.tools.hy_loader import is_ours
from quoth.tools.lisp.forms import kebab
from quoth.tools.registry.arguments import example_of
from quoth.tools.registry.code_version import code_of, code_with_filled, own_code, place_of_function
from quoth.tools.registry.parameters import CAMEL, Param, as_word, make_param
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
from quoth.tools.registry.tool import ServedTool

if TYPE_CHECKING:
    from pydantic import BaseModel

    from quoth.tools.registry.whole_schema import GivenSchema


# The options besides :parameters, :guard, :changes and :body, in the order they are documented.
OPTIONS = (
    "effects", "cost", "gate", "gate-failure", "cooldown", "daily-limit",
    "timeout", "tag", "allow-repeat", "no-background", "ends-turn", "asks-first", "shown", "examples",
    "returns", "free-text", "replace",
)  # fmt: skip

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
    ``options`` are OPTIONS with underscores. ``input_model`` is the class of the body's only argument. Names
    may be written as ``my_tool``. Raises DefinitionError that names the faulty option."""
    name = kebab(name) if isinstance(name, str) else name
    for option in options:
        if option.replace("_", "-") not in OPTIONS:
            raise DefinitionError(f"{name}: unknown option :{option}." + did_you_mean(option, OPTIONS))
    if not isinstance(description, str):
        raise DefinitionError(f"{name} needs a description: the model chooses by it.")
    returns = options.pop("returns", None)
    if returns is not None:
        from quoth.tools.registry.returns import Returns, declared_returns  # here: few tools declare it

        returns = returns if isinstance(returns, Returns) else declared_returns(name, returns)
    if options.get("free_text", True) is not True:
        from quoth.tools.registry.returns import declared_free_text  # here: few tools declare it

        options["free_text"] = declared_free_text(name, options["free_text"], returns)
    params = tuple(_param(name, param, spec) for param, spec in parameters.items())
    examples = tuple(example_of(name, params, example) for example in options.pop("examples", ()) or ())
    effects = options.pop("effects", ()) or ()
    effects = [effects] if isinstance(effects, str) else effects
    if not isinstance(effects, (list, tuple)):
        raise DefinitionError(f"{name}: :effects must be a list, such as [:reads].")
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
        code=_code_of(module, body),
        place="" if is_ours(module) else place_of_function(body),
        _guard=guard,
        _changes=changes,
        _body=body,
        **options,
    )
    if not tool.ships:  # few tools ship, and most commands call none
        tool.prepare()
    return _target.get().register(tool)


Body = Callable[[dict[str, Any], Any, Any], Any]  # of the arguments by the system's names, call and context


def tool_from_schema(
    name: str,
    description: str,
    input_schema: GivenSchema,
    *,
    served: ServedTool | None,
    effects: Iterable[str],
    body: Body,
    output_schema: GivenSchema | None = None,
    **options: Any,
) -> CognitiveTool:
    """The tool ``name``, which a server or a client runs; it is in no table.

    ``body(arguments, call, ctx)`` receives the arguments of the call by their names in ``input_schema``,
    after a check by the whole schema. An omitted argument stays omitted: a default in the schema is shown,
    and not sent. The value of the body is checked by ``output_schema``. A schema may be a function, which is
    called at first use, if it has no secret parameter. ``options`` are fields of CognitiveTool, such as
    ``timeout`` and ``source``. Raises DefinitionError for a schema out of bounds, and for two parameters with
    one name."""
    from quoth.tools.registry.returns import Returns  # here: few commands use the tools of servers
    from quoth.tools.registry.schema_params import SchemaParams
    from quoth.tools.registry.whole_schema import WholeSchema

    try:
        params = SchemaParams(input_schema)
        returns = None if output_schema is None else Returns(WholeSchema(output_schema))
    except DefinitionError as error:
        raise DefinitionError(f"{name}: {error}") from None

    async def run(call: Any, ctx: Any) -> Any:
        made = body(params.sent(call.form.args), call, ctx)
        return await made if inspect.isawaitable(made) else made

    return CognitiveTool(
        name=name,
        description=description,
        params=params,
        effects=tuple(effects),
        returns=returns,
        served=served,
        _body=run,
        **options,
    )


def _param(tool: str, name: str, spec: Mapping[str, Any]) -> Param:
    try:
        return make_param(tool, name if CAMEL.search(name) else kebab(name), spec)
    except DefinitionError as error:
        error.parameter = name
        raise


def _code_of(module: str, body: Callable[..., Any]) -> str:
    if is_ours(module):
        return ""
    return code_with_filled(code_of(module) or own_code(module), body)
