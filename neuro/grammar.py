"""A GBNF grammar from the belt, for servers of the llama.cpp family: a call in it is always readable.

Knows the table's public face only. Optional arguments come in the order of the signature; the door takes any.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, get_args, get_origin

from tools.form import Code, print_value
from tools.schema import Param
from tools.table import CognitiveTool, ToolTable

_COMMON = r"""
str ::= "\"" strchar* "\""
strchar ::= [^"\\\x00-\x1f\x7f] | "\\" ["\\nt]
int ::= "-"? [0-9]+
float ::= "-"? [0-9]+ ("." [0-9]+)?
bool ::= "True" | "False"
value ::= str | float | bool | "None" | list | dict
list ::= "[" (value (" " value)*)? "]"
dict ::= "{" (str " " value ("  " str " " value)*)? "}"
strlist ::= "[" (str (" " str)*)? "]"
atom ::= [A-Za-z0-9_+*/<>=!?.:&|%^-]+
ws ::= " " | "\n" " "*
words ::= [^\x00-/:-@\[-`a-z{-\x7f] [^\x00]*
"""


# An answer begins like a sentence: with a capital, a digit or any letter beyond ASCII. A model that would
# rather call begins "read-file :path …" where a parenthesis is forbidden, which is neither.

# A model that has lost its way nests for ever; a program of its own needs less.
PROGRAM_DEPTH = 12


def grammar(
    table: ToolTable, *, may_answer: bool = True, may_call: bool = True, without: Collection[str] = ()
) -> str:
    """One or several calls, or an answer in plain words; ``may_answer`` or ``may_call`` false forbids one.

    Where the model may not answer yet, tools that can only give back its own words are left out too: small
    models answer through them. ``without`` names tools that may not be called now."""
    tools = [tool for tool in table if may_call and tool.name not in without]
    if not may_answer:
        tools = [tool for tool in tools if not _only_says(tool)] or tools
    roots = (["calls"] if tools else []) + (["words"] if may_answer or not tools else [])
    # Unbounded repeats only: llama.cpp unrolls {0,n} into n rules; the length of a reply is bounded anyway.
    rules = [f"root ::= {' | '.join(roots)}"]
    if tools:
        names = " | ".join(f"call-{tool.name}" for tool in tools)
        rules += ['calls ::= call ("\\n" call){0,7}', f"call ::= {names}"]
        rules += [_call(tool) for tool in tools]
    return "\n".join([*rules, *_programs()]) + "\n" + _COMMON.strip() + "\n"


def _only_says(tool: CognitiveTool) -> bool:
    """No effects, and nothing but texts goes in: it can tell the model nothing but what the model told it."""
    return not tool.effects and all(param.type is str for param in tool.params)


def _programs() -> list[str]:
    """``form`` to PROGRAM_DEPTH levels: lists, vectors and maps of atoms, strings and deeper levels."""
    rules = []
    for level in range(PROGRAM_DEPTH):
        name, inner = f"form{level}" if level else "form", f"item{level}"
        rules.append(f'{name} ::= "(" {inner} (ws {inner})* ")"')
        deeper = f"form{level + 1} | vector{level} | map{level} | " if level + 1 < PROGRAM_DEPTH else ""
        rules.append(f"{inner} ::= {deeper}str | atom")
        if deeper:
            rules.append(f'vector{level} ::= "[" (item{level + 1} (ws item{level + 1})*)? "]"')
            rules.append(f'map{level} ::= "{{" (item{level + 1} (ws item{level + 1})*)? "}}"')
    return rules


def _call(tool: CognitiveTool) -> str:
    parts = [_quoted(f"({tool.name}")]
    for param in tool.params:
        argument = f"{_quoted(f' :{param.name} ')} {_value(param)}"
        parts.append(argument if param.required else f"({argument})?")
    return f"call-{tool.name} ::= " + " ".join([*parts, '")"'])


def _value(param: Param) -> str:
    if param.choices:
        return "(" + " | ".join(_quoted(print_value(choice)) for choice in param.choices) + ")"
    return _type(param.type)


def _type(hint: Any) -> str:
    simple = {str: "str", int: "int", float: "float", bool: "bool", dict: "dict", list: "list", Code: "form"}
    if hint in simple:
        return simple[hint]
    if get_origin(hint) is list:
        return "strlist" if get_args(hint) == (str,) else "list"
    return "value"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
