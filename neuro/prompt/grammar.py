"""A GBNF grammar made from the tool list, for servers of the llama.cpp family, so that every call is
readable.

Required arguments come first, in the order of the signature; optional ones follow in any order, each at most
once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, get_args, get_origin

from quoth.neuro.reading.tag_lines import prefix_of, takes_line
from quoth.tools.lisp.printer import Code, print_string, print_value
from quoth.tools.registry.param_types import TEXTS
from quoth.tools.registry.parameters import REQUIRED, Param
from quoth.tools.registry.table import CognitiveTool, ToolTable

_COMMON = r"""
str ::= "\"" strchar* "\""
strchar ::= [^"\\\x00-\x1f\x7f] | "\\" ["\\nt]
int ::= "-"? digits
float ::= "-"? digits ("." digits)?
digits ::= [0-9]{1,15}
bool ::= "True" | "False"
value ::= str | float | bool | "None" | list | dict
list ::= "[" (value (" " value)*)? "]"
dict ::= "{" (str " " value ("  " str " " value)*)? "}"
strlist ::= "[" (str (" " str)*)? "]"
jbool ::= "true" | "false"
jvalue ::= str | float | jbool | "null" | jlist | jdict
jlist ::= "[" (jvalue (", " jvalue)*)? "]"
jdict ::= "{" (str ": " jvalue (", " str ": " jvalue)*)? "}"
jstrlist ::= "[" (str (", " str)*)? "]"
line ::= [^ {"\\\x00-\x1f\x7f] [^\x00-\x1f\x7f]*
atom ::= [A-Za-z0-9_+*/<>=!?.:&|%^-]+
ws ::= " " | "\n" " "*
words ::= [^\x00-/:-@\[-`a-z{-\x7f] [^\x00]*
sure ::= ("CONFIDENCE: " [0-9.]+ "\n")?
sum ::= "(" ("sum" | "max" | "min" | "mean") " " numbers ")" | "(" sumhead (" " (float | sum1)){2,} ")"
sum1 ::= "(" sumhead (" " (float | sum2)){2,} ")"
sum2 ::= "(" sumhead (" " float){2,} ")"
sumhead ::= "+" | "-" | "*" | "/" | "**"
numbers ::= "[" float (" " float)* "]"
untagged ::= sure ([A-Z] [A-Z]? [A-Z]? ([^\x00A-Z0-9_:-] [^\x00]*)? | [^\x00-/:-`a-z{-\x7f] [^\x00]*)
"""


# An answer begins like a sentence: with a capital, a digit or any letter beyond ASCII. Where calls are
# forbidden, a model that wants to call begins "read-file :path …" without the parenthesis, which is neither a
# call nor an answer. In the dialect tags it begins "EVAL, (…" instead of "EVAL: (…", so there no answer
# begins with four capitals or more.

# A confused model nests forever; real programs need less depth.
PROGRAM_DEPTH = 12


# Maximum of optional arguments in any order, because each set of remaining arguments needs a rule.
FREE_ORDER = 4


class Spelling(NamedTuple):
    """The notation of a call in a dialect: the texts that open it, precede the first argument, separate two
    arguments, name an argument, and close the call. ``json``: values are JSON."""

    opened: Callable[[CognitiveTool], str]
    first: str
    between: str
    named: Callable[[str], str]
    closed: str
    json: bool = False


LISP = Spelling(lambda tool: f"({tool.name}", " ", " ", lambda name: f":{name} ", ")")
PLIST = Spelling(
    lambda tool: f"(:target :tool :action :call :tool {print_string(tool.name)} :args (",
    "",
    " ",
    lambda name: f":{name} ",
    "))",
)
JSON = Spelling(
    lambda tool: f'{{"tool": {json.dumps(tool.name)}, "args": {{',
    "",
    ", ",
    lambda name: f"{json.dumps(name)}: ",
    "}}",
    json=True,
)
TAGS = Spelling(
    lambda tool: f"{prefix_of(tool)}: {{",
    "",
    ", ",
    lambda name: f"{json.dumps(name)}: ",
    "}",
    json=True,
)
# The allowed first names of a program in the dialect run, besides tools; inside it any name is allowed.
HEADS = """do let if when cond for while lfor dfor sfor setv defn try not and or + - * / // % ** = != < > <=
    >= in len sum max min abs round sorted reversed str int float bool list dict set range zip enumerate any
    all get cut . print pmap gather values""".split()  # noqa: SIM905


class Bounds(NamedTuple):
    """What the next reply of a model may be: it calls no tool of ``without``; it may begin with ``lead``
    although it must call; ``only`` are the only values of parameters, which it must give, by their names;
    it gives each parameter of ``needed`` and none of ``unused``; with ``arithmetic`` its programs are of
    numbers alone."""

    without: Collection[str] = ()
    lead: str = ""
    only: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
    needed: Collection[str] = ()
    unused: Collection[str] = ()
    arithmetic: bool = False


NO_BOUNDS = Bounds()


def grammar(
    table: ToolTable,
    *,
    spelling: Spelling = LISP,
    may_answer: bool = True,
    may_call: bool = True,
    without: Collection[str] = (),
    several: bool = True,
    programs: bool = False,
    lead: str = "",
    answer: str = "",
) -> str:
    """The grammar for a reply: one call or ``several``, or an answer in plain words; ``may_answer`` or
    ``may_call`` false forbids one of them. With ``programs`` a call is a program for ``run``.

    If the model may not answer yet, tools that can only repeat its own words are left out as well, because
    small models answer through them; an answer that begins with ``lead`` is then allowed, too. ``without``
    names tools that may not be called now. ``answer`` is the rule of an answer other than plain words."""
    tools = [tool for tool in table.shown if may_call and tool.name not in without]
    if not may_answer:
        tools = [tool for tool in tools if not _only_says(tool)] or tools
    words = answer or ("untagged" if spelling is TAGS else "words")
    roots = (["calls"] if tools else []) + ([words] if may_answer or not tools else [])
    if lead and not answer and words not in roots:
        roots.append(f"{_quoted(lead)} words")
    # Unbounded repeats only: llama.cpp unrolls {0,n} into n rules; the length of a reply is bounded anyway.
    rules = [f"root ::= {' | '.join(roots)}"]
    if tools:
        names = " | ".join(f"call-{tool.name}" for tool in tools)
        more = ' ("\\n" call){0,7}' if several else ""
        # A model may stop after its line: it repeated the line when another call was required.
        rules.append(f'calls ::= sure call{more} "\\n"?' if spelling is TAGS else f"calls ::= call{more}")
        if programs:
            heads = " | ".join(map(_quoted, HEADS))
            rules += ['call ::= "(run :program " program ")"', f"program ::= {names} | known"]
            rules += ['known ::= "(" head (ws item0)* ")"', f"head ::= {heads}"]
        else:
            rules.append(f"call ::= {names}")
        rules += [rule for number, tool in enumerate(tools) for rule in _call(tool, number, spelling)]
    return "\n".join([*rules, *_programs()]) + "\n" + _COMMON.strip() + "\n"


class Arithmetic(Code):
    """A program of numbers alone."""


def bound_to(table: ToolTable, bounds: Bounds, spelling: Spelling) -> ToolTable:
    """The shown tools with parameters within the ``bounds``."""

    def bound(param: Param) -> Param:
        if param.name in bounds.only:
            return replace(param, default=REQUIRED, choices=bounds.only[param.name])
        if param.name in bounds.needed:
            return replace(param, default=REQUIRED)
        if bounds.arithmetic and param.type is Code and not spelling.json:
            return replace(param, type=Arithmetic)
        return param

    def narrowed(tool: CognitiveTool) -> CognitiveTool:
        kept = (one for one in tool.params if one.required or one.name not in bounds.unused)
        return replace(tool, params=tuple(map(bound, kept)))

    return ToolTable(tuple(map(narrowed, table.shown)))


def _only_says(tool: CognitiveTool) -> bool:
    """Whether a tool has no effects and takes at most one text: such a tool can only repeat the model's
    words. The author of a tool with more arguments has probably forgotten to declare effects."""
    return not tool.effects and len(tool.offered) <= 1 and all(param.type in TEXTS for param in tool.offered)


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


def _call(tool: CognitiveTool, number: int, spelling: Spelling) -> list[str]:
    """The rule of a tool's calls, and the rules of its optional arguments, named by its ``number``."""
    if spelling is TAGS and tool.tag and tool.tag.pattern:
        return [f"call-{tool.name} ::= {_quoted(f'{prefix_of(tool)}: ')} {_matching(tool.tag.pattern)}"]
    required = [param for param in tool.offered if param.required]
    optional = tuple((place, param) for place, param in enumerate(tool.offered) if not param.required)
    parts = [_quoted(spelling.opened(tool))]
    parts += [_argument(param, spelling, begun=place > 0) for place, param in enumerate(required)]
    rules: dict[str, str] = {}
    if optional:
        parts.append(_optional(number, optional, spelling, bool(required), rules))
    parts.append(_quoted(spelling.closed))
    if spelling is TAGS and takes_line(tool):
        if required[0].type is Code:  # as JSON, its quotes would be inside quotes
            parts = [
                _quoted(f"{prefix_of(tool)}: "),
                "form",
            ]
        else:
            parts = [f"({' '.join(parts)} | {_quoted(f'{prefix_of(tool)}: ')} line)"]
    return [
        f"call-{tool.name} ::= {' '.join(parts)}",
        *(f"{name} ::= {body}" for name, body in rules.items()),
    ]


# The pieces of a tag's pattern that a grammar can express: alternatives, blanks, the rest of the line.
_PIECE = re.compile(
    r"\((?P<words>[\w -]+(?:\|[\w -]+)*)\)|(?P<blank>\\s\+?| )|(?P<line>\(\.\+\)\Z)"
    r"|(?P<digits>\(\\d\+\))|(?P<word>\(\\[wS]\+\))"
)
_SAID = {"blank": '" "', "line": "line", "digits": "[0-9]+", "word": "[A-Za-z0-9_]+"}


def _matching(pattern: str) -> str:
    """A rule that matches the pattern, if it consists of such pieces; for any other pattern, a line."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        found = _PIECE.match(pattern, position)
        if found is None:
            return "line"
        position = found.end()
        words = " | ".join(_quoted(word) for word in (found["words"] or "").split("|"))
        parts.append(_SAID.get(str(found.lastgroup), f"({words})"))
    return " ".join(parts)


def _argument(param: Param, spelling: Spelling, *, begun: bool) -> str:
    lead = (spelling.between if begun else spelling.first) + spelling.named(
        param.shown if spelling.json else param.name
    )
    return f"{_quoted(lead)} {_value(param, spelling)}"


def _optional(
    tool: int, left: tuple[tuple[int, Param], ...], spelling: Spelling, begun: bool, rules: dict[str, str]
) -> str:
    """The name of the rule for the optional arguments that are ``left``; it is added to ``rules``."""
    # Numbers, because the hyphenated names of two tools could give the same rule name.
    name = f"opt-{tool}-{'-'.join(str(place) for place, _ in left)}{'' if begun else '-first'}"
    if name not in rules:
        rules[name] = ""
        ways = []
        for place, (_, param) in enumerate(left):
            rest = left[:place] + left[place + 1 :] if len(left) <= FREE_ORDER else left[place + 1 :]
            way = _argument(param, spelling, begun=begun)
            ways.append(f"{way} {_optional(tool, rest, spelling, True, rules)}" if rest else way)
        rules[name] = f"({' | '.join(ways)})?"
    return name


def _value(param: Param, spelling: Spelling) -> str:
    if param.choices:
        write = _json if spelling.json else str if param.type is Code else print_value
        return "(" + " | ".join(_quoted(write(choice)) for choice in param.choices) + ")"
    return _type(param.type, "j" if spelling.json else "")


def _type(hint: Any, kind: str) -> str:
    if hint in TEXTS:
        return "str"
    if hint in (int, float):
        return str(hint.__name__)
    if hint is Code:
        return "str" if kind else "form"
    if hint is Arithmetic:
        return "sum"
    if hint in (bool, dict, list):
        return f"{kind}{hint.__name__}"
    if get_origin(hint) is list:
        return f"{kind}strlist" if get_args(hint)[0] in TEXTS else f"{kind}list"
    return f"{kind}value"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def any_of_these(names: Iterable[str], none: str) -> str:
    """A grammar of one or more of these names, separated by commas, or of the word for none of them."""
    name = " | ".join(print_string(one) for one in names)
    return f'root ::= {print_string(none)} | name (", " name)*\nname ::= {name}\n'
