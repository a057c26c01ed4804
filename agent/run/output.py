"""The output of a run: the type its answer has to have, how the model is told, and what is wrong with one.

Knows a type, or only its JSON Schema where a run goes on in another process; it must not know the loop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from quoth.tools.errors import DefinitionError, UsageError
from quoth.tools.registry.json_type import json_type
from quoth.tools.registry.param_types import inline
from quoth.tools.text import short

MOST_FAULTS = 5  # that are told at once
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Output:
    """The type of an answer by its JSON ``schema``. ``adapter`` is pydantic's, which checks a value."""

    schema: Mapping[str, Any]
    adapter: Any = field(repr=False, compare=False)

    @classmethod
    def of(cls, wanted: Any) -> Output:
        """That of a pydantic model, a dataclass, a TypedDict or any other type with a JSON Schema. Raises
        UsageError."""
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        try:
            adapter = TypeAdapter(wanted)
            return cls(_inline(adapter.json_schema()), adapter)
        except (PydanticUserError, TypeError) as error:
            why = short(str(error).splitlines()[0], 200).rstrip(".")
            raise UsageError(
                f"output is a type with a JSON Schema, such as a pydantic model, not {wanted!r} ({why})."
            ) from None

    @classmethod
    def known_by(cls, schema: Mapping[str, Any]) -> Output:
        """That of a recorded run: its values are plain data, checked by the schema as far as it can be."""
        from pydantic import TypeAdapter

        try:
            return cls(schema, TypeAdapter(json_type(dict(schema))))
        except DefinitionError:
            return cls(schema, TypeAdapter(Any))

    @property
    def wish(self) -> str:
        """The sentence that asks the model for it."""
        return wish_for(self.schema)

    def read(self, text: str) -> tuple[Any, str]:
        """The value in an answer, and the sentence that says what is wrong with it; empty for nothing."""
        from pydantic import ValidationError

        for said in _candidates(text):
            try:
                json.loads(said)
            except (ValueError, RecursionError):
                continue
            try:
                return self.adapter.validate_json(said), ""
            except ValidationError as error:
                found = error.errors(include_url=False)
                more = "; …" if len(found) > MOST_FAULTS else ""
                faults = "; ".join(map(_fault, found[:MOST_FAULTS]))
                return None, f"Your answer is not what was asked for: {faults}{more}."
        return None, NO_JSON


def wish_for(schema: Mapping[str, Any]) -> str:
    """The sentence that asks a model for an answer by a JSON Schema."""
    text = json.dumps(schema, ensure_ascii=False)
    return f"Give the answer as JSON alone, without other words, by this JSON Schema: {text}"


NO_JSON = "Your answer is no JSON."


def _candidates(text: str) -> Iterator[str]:
    """Where the JSON of an answer may stand: it is the whole, or in a fence, or has words around it."""
    yield text.strip()
    yield from _FENCE.findall(text)
    for first, last in ("{}", "[]"):
        start, end = text.find(first), text.rfind(last)
        if 0 <= start < end:
            yield text[start : end + 1]


def _fault(detail: Any) -> str:
    place = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in detail["loc"])
    if detail["type"] == "missing":
        return f"{place.lstrip('.')} is missing"
    said = f"{detail['msg'][:1].lower()}{detail['msg'][1:]}"
    given = short(json.dumps(detail["input"], ensure_ascii=False, default=str), 80)
    return f"{place.lstrip('.')}: {said}, not {given}" if place else f"{said}, not {given}"


def _inline(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        return inline(json.loads(json.dumps(schema)))
    except DefinitionError:  # it contains itself
        return schema
