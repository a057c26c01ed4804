"""A JSON Schema of another system: its bounds, and the check of a value by the whole of it.

The schema is untrusted. ``jsonschema`` checks by it, imported at the first check, within a number of steps
and seconds; no reference leaves the schema, and patterns are matched with a time limit. plain_schema.py makes
the schema that a model is shown.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, cached_property
from itertools import islice
from typing import Any, Final

from quoth.tools.errors import DefinitionError, ToolError
from quoth.tools.installing import install_extra
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.registry.json_type import JsonType, in_short
from quoth.tools.registry.plain_schema import plain_schema, plain_type
from quoth.tools.safe_regex import compiled
from quoth.tools.text import count

MAX_CHARS: Final = 256 * 1024  # of a schema as JSON text
MAX_DEPTH: Final = 50  # of lists and dictionaries in a schema
MAX_STEPS: Final = 100_000  # keywords that one check may look at
MAX_SECONDS: Final = 1.0  # that one check may take
MAX_FAULTS: Final = 5  # reported of one value


class SchemaFault:
    """A place in a value that the schema refuses, its keys from the outside, and what is wrong there."""

    def __init__(self, path: tuple[str | int, ...], text: str) -> None:
        self.path, self.text = path, text


GivenSchema = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


class WholeSchema:
    """A JSON Schema by which values are checked as a whole; nothing is compiled before the first check. A
    function of it is called at first use. Raises DefinitionError for one that is out of bounds."""

    def __init__(self, schema: GivenSchema) -> None:
        self._schema = schema
        if not callable(schema):
            require_bounds(schema)

    @cached_property
    def given(self) -> Mapping[str, Any]:
        """The schema as it was given."""
        return self._schema() if callable(self._schema) else self._schema

    @cached_property
    def plain(self) -> dict[str, Any]:
        """What it says in the words of json_type.py: a value that it accepts is of this type."""
        return plain_schema(self.given, self.given)

    @cached_property
    def type(self) -> type[JsonType]:
        """The type of its values, by ``plain``."""
        return plain_type(self.plain)

    @cached_property
    def _validator(self) -> Any:
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry
        from referencing.exceptions import NoSuchResource

        def refuse(uri: str) -> Any:
            raise NoSuchResource(uri)

        try:
            require_bounds(self.given)
        except DefinitionError as error:  # of a function
            raise ToolError(str(error).replace("its JSON Schema", "it").rstrip(".")) from None
        _require_safe_patterns(self.given)
        kind = _bounded(validator_for(self.given, default=Draft202012Validator))
        registry: Any = Registry(retrieve=refuse)  # type: ignore[call-arg]
        return kind(self.given, registry=registry)

    def faults(self, value: Any) -> list[SchemaFault]:
        """What the schema refuses in a value, at most MAX_FAULTS; empty if it accepts it. Raises ToolError,
        with a clause, for a schema that cannot be checked within the bounds."""
        try:
            import jsonschema  # noqa: F401  only tools of other systems need it
        except ImportError:
            raise ToolError(f"checking it needs the package jsonschema: {install_extra('mcp')}") from None
        token = _STEPS.set(_Steps(MAX_STEPS, time.monotonic() + MAX_SECONDS, _deepest()))
        try:
            return [_fault(error) for error in islice(self._validator.iter_errors(value), MAX_FAULTS)]
        except ToolError:
            raise
        except Exception as error:  # a faulty schema may raise anything in jsonschema
            missing = getattr(error, "ref", None)
            if isinstance(missing, str):
                why = f"it refers to {in_short(missing)}, which is not in it; nothing is fetched"
                raise ToolError(why) from None
            raise ToolError(f"it is not a valid JSON Schema ({type(error).__name__})") from None
        finally:
            _STEPS.reset(token)


def require_bounds(schema: object) -> None:
    """Raise DefinitionError unless a schema is an object of JSON data within the bounds."""
    if not isinstance(schema, dict):
        raise DefinitionError(f"its JSON Schema must be an object, not {in_short(schema)}.")
    if depth_of(schema) > MAX_DEPTH:
        raise DefinitionError(f"its JSON Schema is nested deeper than {MAX_DEPTH}.")
    try:
        size = len(json.dumps(schema))
    except (TypeError, ValueError):
        raise DefinitionError("its JSON Schema contains a value that is not JSON data.") from None
    if size > MAX_CHARS:
        raise DefinitionError(f"its JSON Schema is larger than {MAX_CHARS // 1024} KB.")


def _require_safe_patterns(schema: Mapping[str, Any]) -> None:
    """Raise ToolError if jsonschema itself would match a pattern, which has no time limit there."""
    keywords = [*_mappings(schema)]
    if all(map(_UNEVALUATED.isdisjoint, keywords)):
        return
    found = (one.get("patternProperties") for one in keywords)
    for pattern in (one for each in found if isinstance(each, dict) for one in each):
        if not _LITERAL.match(pattern):
            raise ToolError(f"it has unevaluatedProperties beside the pattern {in_short(pattern)}")


_UNEVALUATED = frozenset(("unevaluatedProperties", "unevaluatedItems"))
_LITERAL = re.compile(r"\^?[\w\s:/@.,-]*\$?\Z")


def _mappings(data: Any) -> Iterator[dict[str, Any]]:
    """All dictionaries in JSON data."""
    level = [data]
    while level:
        for one in level:
            if isinstance(one, dict):
                yield one
        level = [one for each in level for one in (each.values() if isinstance(each, dict) else each)]
        level = [one for one in level if isinstance(one, (dict, list))]


def depth_of(data: Any) -> int:
    """How deep lists and dictionaries are in one another, up to MAX_DEPTH + 1."""
    level = [data]
    for depth in range(MAX_DEPTH + 1):
        level = [one for one in level if isinstance(one, (dict, list))]
        if not level:
            return depth
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return MAX_DEPTH + 1


@dataclass
class _Steps:
    """The rest of a check: its steps, the time of its end, and the greatest depth of Python's stack."""

    left: int
    end: float
    deepest: int


_STEPS: ContextVar[_Steps] = ContextVar("quoth_schema_steps")


def _deepest() -> int:
    """The depth of the stack that leaves room for a library: an error there because of the depth could end
    the process (``referencing`` compares with Rust)."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return min(depth + 600, sys.getrecursionlimit() - 150)


def _step() -> float:
    """Count a step of the running check, and return the seconds that are left. Raises ToolError."""
    steps = _STEPS.get()
    steps.left -= 1
    seconds = steps.end - time.monotonic()
    if steps.left < 0 or seconds <= 0:
        raise ToolError("checking a value by it takes too long")
    try:
        sys._getframe(steps.deepest)
    except ValueError:  # the stack is not so deep
        return seconds
    raise ToolError("a value is nested too deeply, or it refers to itself without end")


Keyword = Callable[[Any, Any, Any, Mapping[str, Any]], Any]


@cache
def _bounded(kind: Any) -> Any:
    """A validator class of jsonschema whose keywords count their steps, and match patterns safely."""
    from jsonschema.validators import extend

    own = {name: one for name, one in _OWN.items() if name in kind.VALIDATORS}
    keywords = {name: _counted(one) for name, one in {**kind.VALIDATORS, **own}.items()}
    # jsonschema asks for each schema in which it looks for evaluated properties whether it is a boolean.
    types = kind.TYPE_CHECKER.redefine("boolean", lambda _, value: _step() > 0 and isinstance(value, bool))
    return extend(kind, keywords, type_checker=types)


def _counted(check: Keyword) -> Keyword:
    def counted(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
        _step()
        if instance is None and schema.get("nullable") is True:  # OpenAPI's
            return ()
        return check(validator, value, instance, schema) or ()

    return counted


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text. Raises ToolError for a pattern that cannot be matched safely."""
    try:
        return _pattern(pattern).search(text, timeout=max(_step(), 0.01)) is not None
    except TimeoutError:
        raise ToolError(f"it takes too long to look for {in_short(pattern)}") from None


@cache
def _pattern(pattern: str) -> Any:
    return compiled(pattern)


def _error(text: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(text)


def _check_pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield _error("")


def _check_pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
    for pattern, inner in patterns.items() if isinstance(instance, dict) else ():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _check_more_properties(validator: Any, more: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [name for name in instance if name not in known]
    extra = [name for name in extra if not any(_matches(pattern, name) for pattern in patterns)]
    for name in extra:
        if more is False:
            yield _error(name)
        else:
            yield from validator.descend(instance[name], more, path=name)


def _check_unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if wanted and isinstance(instance, list):
        seen = {repr(_hashable(item)) for item in instance}
        if len(seen) < len(instance):
            yield _error("")


def _hashable(value: Any) -> Any:
    """JSON data such that equal data have equal representations: 1 and 1.0 are equal, 1 and True are not."""
    if isinstance(value, dict):
        return sorted((name, repr(_hashable(item))) for name, item in value.items())
    if isinstance(value, list):
        return list(map(_hashable, value))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


_OWN: dict[str, Keyword] = {
    "pattern": _check_pattern,
    "patternProperties": _check_pattern_properties,
    "additionalProperties": _check_more_properties,
    "uniqueItems": _check_unique,
}


def _fault(error: Any) -> SchemaFault:
    """An error of jsonschema in words; it quotes the schema, and no value."""
    keyword, wanted = error.validator, error.validator_value
    path = tuple(error.absolute_path)
    if keyword is None:  # the schema false
        return SchemaFault(path, "is not allowed")
    if keyword == "required":
        lacking = [name for name in wanted if name not in error.instance]
        return SchemaFault((*path, *lacking[:1]), "is missing")
    if keyword == "additionalProperties":
        return SchemaFault((*path, error.message), "is unknown")
    if keyword in ("anyOf", "oneOf"):
        how = "exactly one" if keyword == "oneOf" else "one"
        return SchemaFault(path, f"must match {how} of {count(len(wanted), 'alternative')}")
    if keyword == "type":
        return SchemaFault(path, f"must be {' or '.join(wanted) if isinstance(wanted, list) else wanted}")
    return SchemaFault(path, f"must match {keyword} {in_short(wanted)}")
