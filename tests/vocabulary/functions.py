"""Function docs and calls in the layout of the Berkeley leaderboard, as tools and call forms of this project.

Names are mapped to kebab-case and back by a table. Knows where nothing is: a test hands it a folder.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from quoth.tools.lisp.forms import CallForm, plist
from quoth.tools.lisp.printer import print_string, print_value
from quoth.tools.registry.arguments import bind, validate
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.registry.parameters import RESERVED
from quoth.tools.registry.table import CognitiveTool, ToolTable

_PLAIN = {"string": str, "integer": int, "float": float, "number": float, "boolean": bool, "any": Any}
_PLAIN |= {"dict": dict, "object": dict, "null": None}


def kebab_names(names: Iterable[str]) -> dict[str, str]:
    """A kebab-case name for each name, no two alike: the table that leads back."""
    table: dict[str, str] = {}
    for name in names:
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
        plain = re.sub(r"[^a-z0-9]+", "-", spaced).strip("-")
        if not plain[:1].isalpha() or plain in RESERVED or keyword.iskeyword(plain.replace("-", "_")):
            plain = f"the-{plain}".strip("-")
        unique, number = plain, 2
        while unique in table.values():
            unique, number = f"{plain}-{number}", number + 1
        table[name] = unique
    return table


@dataclass(frozen=True)
class Function:
    """A tool made from a function doc, and the names it had there."""

    tool: CognitiveTool
    schema: dict[str, Any]  # of its parameters, as the doc has it
    names: dict[str, str]  # of its parameters: theirs -> ours

    def form(self, args: dict[str, Any]) -> CallForm:
        return CallForm(self.tool.name, {self.names[name]: value for name, value in args.items()})

    def arguments(self, form: CallForm) -> dict[str, Any]:
        """What the body of the tool would get of a call, by the names of the doc; defaults left out."""
        tool = self.tool
        assert form.tool == tool.name
        bound = bind(tool.name, tool.params, form.args, form.positional)
        valid = validate(tool.name, tool.params, tool.check, bound)
        back = {ours: theirs for theirs, ours in self.names.items()}
        return {back[name]: valid[name] for name in bound}

    def contradicts(self, args: dict[str, Any]) -> bool:
        """Whether arguments are not what the doc itself asks for, as happens in a published file."""
        return not set(self.schema.get("required", ())) <= set(args) or not _fits(args, self.schema)


def function(doc: dict[str, Any]) -> Function:
    """The function of a doc ``{"name", "description", "parameters"}``."""
    schema = doc["parameters"]
    properties = schema.get("properties", {})
    required = set(schema.get("required", properties))
    # Those that may be left out stand last, as in any signature.
    ordered = sorted(properties, key=lambda name: name not in required)
    names = kebab_names(ordered)
    parameters = {names[name]: _spec(properties[name], name in required) for name in ordered}
    (tool_name,) = kebab_names([doc["name"]]).values()
    with registering_in(ToolTable()):
        tool = define_tool(
            tool_name, doc["description"] or "A function.", parameters=parameters, body=lambda: None
        )
    return Function(tool, schema, names)


def _spec(schema: dict[str, Any], required: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": _type(schema), "doc": schema.get("description", "")}
    if not required:
        spec["default"] = None
    return spec


def _type(schema: dict[str, Any]) -> Any:
    kind = schema.get("type", "any")
    if "enum" in schema and kind == "string" and all(isinstance(one, str) for one in schema["enum"]):
        return Literal[tuple(schema["enum"])]
    if kind in ("array", "tuple"):
        return list[_type(schema["items"])] if "items" in schema else list  # type: ignore[misc]
    return _PLAIN[kind]


_KINDS = {"string": str, "integer": int, "float": (int, float), "number": (int, float), "boolean": bool}
_KINDS |= {"dict": dict, "object": dict, "array": list, "tuple": list}


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    kind = schema.get("type", "any")
    if "enum" in schema and value not in schema["enum"]:
        return False
    if not isinstance(value, _KINDS.get(kind, object)) or (
        isinstance(value, bool) and kind in ("integer", "float")
    ):
        return False
    if isinstance(value, list):
        return all(_fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, dict):
        return all(_fits(item, schema.get("properties", {}).get(key, {})) for key, item in value.items())
    return True


# Ground truth


def truths(folder: Path) -> Iterator[tuple[str, Function, dict[str, Any]]]:
    """Every accepted call of every ``X.json`` with its ``X_answers.json``: id, function, arguments.

    The few that contradict their own doc are left out.
    """
    for file in sorted(folder.glob("*_answers.json")):
        docs = {}
        for line in (folder / file.name.replace("_answers", "")).read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            docs[entry["id"]] = {doc["name"]: function(doc) for doc in entry["function"]}
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            for truth in entry["ground_truth"]:
                for name, accepted in truth.items():
                    called = docs[entry["id"]][name]
                    for args in _variants(accepted):
                        if not called.contradicts(args):
                            yield entry["id"], called, args


def _variants(accepted: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Sets of arguments in which every accepted value stands at least once; "" means left out."""
    for turn in range(max((len(values) for values in accepted.values()), default=1)):
        args = {}
        for name, values in accepted.items():
            value = values[turn % len(values)]
            if value != "":
                args[name] = _inner(value)
        yield args


def _inner(value: Any) -> Any:
    """In an object each value is again a list of the accepted ones."""
    if isinstance(value, dict):
        return {
            key: _inner(next((one for one in inner if one != ""), "")) if isinstance(inner, list) else inner
            for key, inner in value.items()
        }
    return [_inner(item) for item in value] if isinstance(value, list) else value


# The same call in every dialect of text


def call_form(form: CallForm) -> str:
    return str(form)


def lisp_plist(form: CallForm) -> str:
    return plist(form)


def upper_plist(form: CallForm) -> str:
    """As Common Lisp prints it: keywords in capitals, strings as they are."""
    args = " ".join(f":{name.upper()} {print_value(value)}" for name, value in form.args.items())
    return f"(:TARGET :TOOL :ACTION :CALL :TOOL {print_string(form.tool)} :ARGS ({args}))"


def key_value(form: CallForm) -> str:
    args = "".join(f" {name}={print_value(value)}" for name, value in form.args.items())
    return f"({form.tool}{args})"


def json_object(form: CallForm) -> str:
    return json.dumps({"tool": form.tool, "args": form.args}, ensure_ascii=False)


def openai_object(form: CallForm) -> str:
    function = {"name": form.tool, "arguments": json.dumps(form.args)}
    return json.dumps({"id": "c1", "type": "function", "function": function}, indent=2)


def tool_call(form: CallForm) -> str:
    return f"<tool_call>\n{json.dumps({'name': form.tool, 'arguments': form.args})}\n</tool_call>"


def python_call(form: CallForm) -> str:
    args = ", ".join(f"{name.replace('-', '_')}={value!r}" for name, value in form.args.items())
    return f"[{form.tool.replace('-', '_')}({args})]"


DIALECTS = {
    "call form": call_form,
    "plist": lisp_plist,
    "plist, upper case": upper_plist,
    "key=value": key_value,
    "JSON object": json_object,
    "OpenAI object": openai_object,
    "tool_call": tool_call,
    "Python": python_call,
}


def tag_line(form: CallForm) -> str | None:
    """A response tag holds one argument, a text of one line; None for any other call."""
    values = list(form.args.values())
    if len(values) != 1 or not isinstance(values[0], str):
        return None
    (value,) = values
    return f"PROBE: {value}" if value.strip() == value and len(value.splitlines()) == 1 else None
