"""The functions and calls of the Berkeley Function-Calling Leaderboard, as tools and call forms.

Reads the files in $QUOTH_BFCL; knows no model and measures nothing.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.parameters import REQUIRED, Param
from quoth.tools.registry.table import CognitiveTool

PARTS = ("simple_python", "multiple")
TYPES = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": Any,
}
JSON_TYPES = {
    "string": "string",
    "integer": "integer",
    "float": "number",
    "boolean": "boolean",
    "array": "array",
    "tuple": "array",
    "dict": "object",
}


@dataclass(frozen=True)
class Case:
    """What was asked, the functions offered, and one accepted call."""

    id: str
    question: str
    docs: tuple[dict[str, Any], ...]
    name: str
    arguments: dict[str, Any]


def cases() -> Iterator[Case]:
    """Every case, in the order of the files."""
    for part in PARTS:
        answers = _lines(f"BFCL_v4_{part}_answers.json")
        for case, answer in zip(_lines(f"BFCL_v4_{part}.json"), answers, strict=True):
            ((name, accepted),) = answer["ground_truth"][0].items()
            arguments = {key: _first(values) for key, values in accepted.items()}
            yield Case(
                case["id"],
                case["question"][0][-1]["content"],
                tuple(case["function"]),
                name,
                {key: value for key, value in arguments.items() if value != ""},
            )


@dataclass(frozen=True)
class Scored:
    """A question, the functions offered as tools, and every accepted value of every argument."""

    id: str
    question: str
    tools: tuple[CognitiveTool, ...]
    name: str
    accepted: dict[str, list[Any]]

    def accepts(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether this is an accepted call: the tool, each argument with an accepted value, and none left out
        that may not be."""
        if tool != plain_name(self.name):
            return False
        accepted = {plain_name(key): values for key, values in self.accepted.items()}
        if set(args) - set(accepted):
            return False
        return all(
            any(_same(args[key], value) for value in values) if key in args else "" in values
            for key, values in accepted.items()
        )


def scored(part: str) -> list[Scored]:
    """The questions of one part, in the order of its file."""
    found = []
    answers = _lines(f"BFCL_v4_{part}_answers.json")
    for case, answer in zip(_lines(f"BFCL_v4_{part}.json"), answers, strict=True):
        ((name, accepted),) = answer["ground_truth"][0].items()
        tools = tuple(tool_of(doc) for doc in case["function"])
        found.append(Scored(case["id"], case["question"][0][-1]["content"], tools, name, accepted))
    return found


def _same(given: Any, accepted: Any) -> bool:
    """Equal as BFCL counts it: texts without regard to case, spaces and most punctuation, numbers by value;
    inside a dictionary each key has its list of accepted values."""
    if isinstance(accepted, bool) or isinstance(given, bool):
        return given is accepted
    if isinstance(accepted, str) and isinstance(given, str):
        return _plain_text(given) == _plain_text(accepted)
    if isinstance(accepted, dict) and isinstance(given, dict):
        return not set(given) - set(accepted) and all(
            any(_same(given[key], value) for value in values) if key in given else "" in values
            for key, values in accepted.items()
        )
    if isinstance(accepted, list) and isinstance(given, list):
        return len(given) == len(accepted) and all(map(_same, given, accepted))
    return type(given) in (int, float) and type(accepted) in (int, float) and given == accepted


def _plain_text(text: str) -> str:
    return re.sub(r"[ ,./\-_*^']", "", text).lower().replace('"', "")


def docs() -> list[dict[str, Any]]:
    """Every function offered in any case, as often as it is offered."""
    return [doc for case in cases() for doc in case.docs]


def plain_name(name: str) -> str:
    """A name as tools have it: ``math.hypot`` and ``gradeDict`` become ``math-hypot`` and ``gradedict``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def tool_of(doc: dict[str, Any]) -> CognitiveTool:
    """The function as a tool; its tag is its name in capitals."""
    required = doc["parameters"].get("required", ())
    params = tuple(
        _param(name, node, name in required) for name, node in doc["parameters"]["properties"].items()
    )
    name = plain_name(doc["name"])
    return CognitiveTool(name, doc["description"], params, tag=name.upper(), effects=("reads",))


def form_of(case: Case) -> CallForm:
    """The accepted call as a form."""
    return CallForm(plain_name(case.name), {plain_name(key): value for key, value in case.arguments.items()})


def openai_json(doc: dict[str, Any]) -> str:
    """The function as it would go to OpenAI: compact, with nothing added to what its doc says."""
    parameters = {
        "type": "object",
        "properties": {name: _schema(node) for name, node in doc["parameters"]["properties"].items()},
        "required": doc["parameters"].get("required", []),
    }
    function = {
        "name": doc["name"].replace(".", "_"),
        "description": doc["description"],
        "parameters": parameters,
    }
    return json.dumps({"type": "function", "function": function}, separators=(",", ":"), ensure_ascii=False)


def descriptions(node: Any) -> Iterator[str]:
    """Every description in a doc, however deep."""
    if isinstance(node, list):
        for item in node:
            yield from descriptions(item)
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "description" and isinstance(value, str):
                yield value
            else:
                yield from descriptions(value)


def _lines(name: str) -> list[dict[str, Any]]:
    folder = os.environ.get("QUOTH_BFCL")
    if not folder or not (path := Path(folder, name)).is_file():
        sys.exit(f"Set QUOTH_BFCL to the folder that holds {name} (from the package bfcl-eval).")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _first(values: Any) -> Any:
    """The first accepted value that is one; a dictionary holds lists of accepted values in its turn."""
    chosen = next((value for value in values if value != ""), "") if isinstance(values, list) else values
    return _inner(chosen)


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key: _first(values) for key, values in value.items()}
        return {key: item for key, item in found.items() if item != ""}
    return [_inner(item) for item in value] if isinstance(value, list) else value


def _param(name: str, node: dict[str, Any], required: bool) -> Param:
    default = REQUIRED if required else node.get("default")
    choices = tuple(node.get("enum", ())) if node.get("type") == "string" else ()
    return Param(plain_name(name), _type(node), _doc(node), default, choices)


def _type(node: dict[str, Any]) -> Any:
    hint = TYPES[node.get("type", "any")]
    if hint is list and "type" in node.get("items", {}):
        items = node["items"]
        return list[Literal[tuple(items["enum"])]] if items.get("enum") else list[_type(items)]  # type: ignore[misc]
    return hint


def _doc(node: dict[str, Any]) -> str:
    """The description, and those of what is inside, which a tool's parameter has no place for."""
    inner = node.get("items", node) if node.get("type") in ("array", "tuple") else node
    parts = [node.get("description", "")]
    if inner is not node and inner.get("description"):
        parts.append(f"each {inner['description']}")
    for name, part in inner.get("properties", {}).items():
        parts.append(f"{name} {part.get('type', '')}: {_doc(part)}")
    return "; ".join(filter(None, parts))


def _schema(node: dict[str, Any]) -> dict[str, Any]:
    schema = {key: node[key] for key in ("description", "enum", "default") if key in node}
    if node.get("type") in JSON_TYPES:
        schema = {"type": JSON_TYPES[node["type"]], **schema}
    if "items" in node:
        schema["items"] = _schema(node["items"])
    if "properties" in node:
        schema["properties"] = {name: _schema(part) for name, part in node["properties"].items()}
    return schema
