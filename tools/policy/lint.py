"""Finds mistakes in a policy: names that do not exist, rules that can never have an effect, and file access
that rules about files do not see (text parameters that name files, programs outside the boundary).
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

import hy.models as m

from quoth.tools.call.call import new_call
from quoth.tools.call.canonical import is_path, paths_in
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, did_you_mean, nearest
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code, print_string, print_value, show
from quoth.tools.lisp.reader import read_one
from quoth.tools.lisp.source import Place
from quoth.tools.policy.model import KINDS, Compared, Rule
from quoth.tools.policy.policy import Layer, RulesPolicy
from quoth.tools.policy.predicate_reader import INTERPRETERS, RUNNERS, WRAPPERS, program, texts_of
from quoth.tools.policy.predicates import ANY_PATH, EvaluationContext
from quoth.tools.policy.scope import URL
from quoth.tools.registry.param_types import type_name
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool, ToolTable

READER = "read-file"  # a rule about it says which files may be read
NAMES = {"path", "paths", "file", "files", "filename", "folder", "folders", "dir", "directory", "cwd"}


def unseen_paths(tool: CognitiveTool, workspace: Workspace) -> Iterator[str]:
    """A sentence for each text parameter of a user's tool that seems to name files: by its name, or because
    an example gives it the name of an existing file."""
    if tool.ships or tool.remote:
        return
    for param in tool.params:
        given = (example.args.get(param.name) for example in tool.examples)
        named = param.name.rpartition("-")[2] in NAMES
        if _is_text(param) and (named or any(_is_there(workspace, value) for value in given)):
            yield (
                f":{param.name} of {tool.name} is a text, so nothing keeps it inside the workspace. If it"
                " names a file, give it :type path (in Python: WorkspacePath)."
            )


def unconfined(tool: CognitiveTool, layers: Iterable[Layer]) -> Iterator[str]:
    """A sentence if a user's tool runs programs, which see files that a rule forbids reading."""
    if tool.ships or tool.remote or "runs" not in tool.effects:
        return
    for rule in (rule for layer in layers for rule in layer.orders.rules):
        if rule.kind != "allow" and rule.tool in (None, READER) and ANY_PATH in rule.arguments:
            yield (
                f"Programs that {tool.name} runs are not confined: they see the files that"
                f" {rule.place} forbids reading. The tool shell hides them."
            )
            return


def _is_text(param: Param) -> bool:
    """Whether a parameter's values are texts or lists of texts, without a path type or choices."""
    kinds = {param.type, *typing.get_args(param.type)}
    return str in kinds and not param.holds_paths and not param.choices


def _is_there(workspace: Workspace, value: object) -> bool:
    """Whether a value names an existing file or folder in the workspace."""
    for text in paths_in(value):
        try:
            real = workspace.locate(text)
            if text.strip(" ./") and real.exists():
                return True
        except (ToolError, OSError):
            continue
    return False


FindingKind = Literal[
    "unknown-tool",
    "unknown-argument",
    "unknown-catalogue",
    "mismatch",
    "cannot-hold",
    "duplicate",
    "conflict",
    "dead",
    "ignored",
    "too-wide",
]
VERBS = {"deny": "denies", "ask": "asks for", "allow": "allows"}


@dataclass(frozen=True)
class LintFinding:
    """One mistake, with its place and a sentence. ``str`` also shows the line and a caret."""

    kind: FindingKind
    place: Place
    message: str

    def __str__(self) -> str:
        return self.place.complaint(self.message)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "message": self.message,
            "file": self.place.source.name,
            "line": self.place.line,
            "column": self.place.column,
            "shown": str(self),
        }


def check(policy: RulesPolicy, table: ToolTable, workspace: Workspace | None = None) -> list[LintFinding]:
    """All findings, sorted by file and line. Rules are compared only within one file, because one layer may
    tighten another."""
    found: list[LintFinding] = []
    for layer in policy.layers:
        mine = [*_names(layer, table), *_types(layer, table), *_never_matter(layer)]
        mine += _paths(layer, table, workspace or Workspace("."))
        mine += _addresses(layer, table)
        mine += _programs(layer, table)
        mine += _catalogues(layer, table)
        mine += _origins(layer, table)
        mine += _kinds(layer)
        found += sorted(mine, key=lambda finding: (finding.place.line, finding.place.column))
    return found


def _names(layer: Layer, table: ToolTable) -> Iterator[LintFinding]:
    orders = layer.orders
    named = [(rule.tool, rule.tool_place) for rule in orders.rules if rule.tool is not None]
    named += [(one.tool, one.tool_place) for one in orders.limits]
    named += [(one.tool, one.tool_place) for one in orders.effects]
    for tool, place in named:
        if tool not in table and not _may_be_served(tool, table):
            yield LintFinding(
                "unknown-tool", place, f"There is no tool named {tool}.{did_you_mean(tool, table.names())}"
            )
    everything = {param.name for tool in table for param in tool.params} | {ANY_PATH}
    for rule in orders.rules:
        if rule.tool is not None and rule.tool not in table:
            continue
        known = everything if rule.tool is None else {param.name for param in table.get(rule.tool).params}
        for argument, place in rule.arguments.items():
            if argument in known:
                continue
            whose = "No tool has an" if rule.tool is None else f"{rule.tool} has no"
            hint = did_you_mean(argument, sorted(known), "" if rule.tool is None else "It has", ":")
            yield LintFinding("unknown-argument", place, f"{whose} argument :{argument}.{hint}")
        if rule.only and rule.tool is not None:
            needed = (param.name for param in table.get(rule.tool).params if param.required)
            if missing := [name for name in needed if name not in rule.arguments]:
                name = missing[0]
                message = f"Every call of {rule.tool} has :{name}; name it before :only, as in :{name} _."
                yield LintFinding("dead", rule.tool_place, message)


def _may_be_served(tool: str, table: ToolTable) -> bool:
    """Whether this may be the tool of an MCP server that only another agent uses: ``SERVER--TOOL``, and
    neither this server nor one with a similar name is in the table."""
    server, apart, _ = tool.partition("--")
    known = {name.partition("--")[0] for name in table.names() if "--" in name}
    return bool(apart) and server not in known and nearest(server, known) is None


def _types(layer: Layer, table: ToolTable) -> Iterator[LintFinding]:
    """Arguments compared with values they never have: such a rule looks like protection but has no effect."""
    for rule in layer.orders.rules:
        if rule.tool is None or rule.tool not in table:
            continue
        params = {param.name: param for param in table.get(rule.tool).params}
        for equality in rule.equalities:
            if equality.argument not in params:
                continue
            param = params[equality.argument]
            what = "list" if equality.first else "text"
            if (typing.get_origin(param.type) or param.type) in _NEVER[what]:
                message = (
                    f":{param.name} of {rule.tool} is of type {type_name(param.type)}; it is never a {what}."
                )
            elif what == "text" and param.choices and equality.texts.isdisjoint(param.choices):
                values = ", ".join(print_value(choice) for choice in param.choices)
                message = f":{param.name} of {rule.tool} is one of {values}."
            else:
                continue
            yield LintFinding("mismatch", rule.arguments[equality.argument], message)


_NEVER = {"text": (int, float, bool, list, dict), "list": (str, int, float, bool, dict, Code)}


def _catalogues(layer: Layer, table: ToolTable) -> Iterator[LintFinding]:
    """Rules about remote tools that match none."""
    known = {tool.remote for tool in table if tool.remote}
    for rule in layer.orders.rules:
        about = any(clause.startswith("(remote") for clause in rule.clauses)
        if about and rule.tool in table and not table.get(rule.tool or "").remote:
            message = f"{rule.tool} is not a tool of a worker, so (remote) never matches its calls."
            yield LintFinding("cannot-hold", rule.place, message)
        for one in rule.compared if known else ():
            if one.argument == "(remote)" and one.how == "=" and one.text not in known:
                hint = did_you_mean(one.text, sorted(known), "There is")
                message = f"No tool comes from a catalog named {one.text}.{hint}"
                yield LintFinding("unknown-catalogue", one.place, message)


def _origins(layer: Layer, table: ToolTable) -> Iterator[LintFinding]:
    """Origin predicates that can never match, or match more than they seem to."""
    for place in layer.orders.careful[1:]:
        yield LintFinding("duplicate", place, f"(careful) is already given at {layer.orders.careful[0]}.")
    for rule in layer.orders.rules:
        known = table.get(rule.tool).params if rule.tool and rule.tool in table else ()
        params = {param.name: param for param in known}
        for test in rule.origins:
            for tool, place in test.tools:
                if tool not in table:
                    message = f"There is no tool named {tool}.{did_you_mean(tool, table.names())}"
                    yield LintFinding("unknown-tool", place, message)
                elif table.get(tool).texts is True:
                    message = f"{tool} returns free text, so no value is a field of its result."
                    yield LintFinding("cannot-hold", place, message)
            param = params.get(test.argument)
            if param is not None and param.type is bool:
                message = f":{param.name} of {rule.tool} is bool, and a bool has no origin."
                yield LintFinding("mismatch", test.place, message)
            of_all_links = "links" in test.around and not {"not", "any"}.intersection(test.around)
            if of_all_links and test.head in ("in-text", "made-up") and rule.kind != "allow":
                message = "A text without a link matches, too; write (not (links (or (in-task) (in-field))))."
                yield LintFinding("cannot-hold", test.place, message)


def _kinds(layer: Layer) -> Iterator[LintFinding]:
    """Numbers where only a text can match, texts where only a number can, and a depth that is not a bound."""
    for rule in layer.orders.rules:
        for node in _expressions(read_one(rule.text)):
            head, rest = str(node[0]), node[1:]
            if any(isinstance(one, m.Keyword) for one in rest):  # the call
                continue
            numbers = [one for one in rest if isinstance(one, (m.Integer, m.Float))]
            texts = [one for one in rest if isinstance(one, m.String)]
            never = f"{show(node)} never matches: it is compared with a"
            message = ""
            if head in ("tool", "route", "client", "user", "remote") and numbers:
                message = f'{never} text, as in ({head} "{show(numbers[0])}").'
            elif head in ("len", "depth") and texts:
                message = f"{never} number, as in ({head} (> 2))."
            elif head == "depth" and numbers and len(rest) == 1:
                deeper = f"(depth >= {show(numbers[0])})"
                message = f"{show(node)} matches no deeper calls; to match those too: {deeper}."
            if message:
                yield LintFinding("cannot-hold", rule.place, message)


def _expressions(node: Any) -> Iterator[Any]:
    """The forms in a form that begin with a symbol, itself included."""
    if isinstance(node, m.Expression) and node and isinstance(node[0], m.Symbol):
        yield node
    for item in node if isinstance(node, m.Sequence) else ():
        yield from _expressions(item)


# Spellings that a resolved path never has: it is relative to the workspace, without any of these.
_NEVER_SPELT = re.compile(
    r"""
    \A\^(?:\\\./|/|~)     # ^./  ^/  ^~
    | /(?:\$|\\Z)\Z       # a slash at the end
    | \\\.\\\./|//        # ../ or //
    """,
    re.VERBOSE,
)


def _paths(layer: Layer, table: ToolTable, workspace: Workspace) -> Iterator[LintFinding]:
    """Paths compared by predicates that cannot match what they seem to match."""
    for rule in layer.orders.rules:
        if rule.tool is not None and rule.tool not in table:
            continue
        for one in rule.compared:
            if message := _path_fault(rule, one, table, workspace):
                yield LintFinding("cannot-hold", one.place, message)


def _path_fault(rule: Rule, one: Compared, table: ToolTable, workspace: Workspace) -> str:
    if rule.tool is not None:
        tool = table.get(rule.tool)
        param = next((param for param in tool.params if param.name == one.argument), None)
        if param is None:
            return ""
        if not param.holds_paths:
            if one.how == "under" and not _may_be_text(param):
                return f":{param.name} of {tool.name} is of type {type_name(param.type)}; it is never a path."
            if one.how == "under" or not (_may_be_text(param) and is_path(param.name, "x")):
                return ""
            return (
                f":{param.name} of {tool.name} is a text, so another spelling of the same path passes this"
                " rule; give it :type path in the tool's definition, or write (under …) in the rule."
            )
    elif one.argument != ANY_PATH:
        return ""
    if one.how == "matches":
        if "|" not in one.text and _NEVER_SPELT.search(one.text):
            return (
                "This pattern matches no path: rules see paths relative to the workspace, such as src/a.txt,"
                " without ./, ../, // or a slash at the end."
            )
        return ""
    try:
        real = workspace.locate(one.text)
        if _GLOB.search(one.text) and not real.exists():
            pattern = print_string(_as_pattern(one.text))
            return f"{one.text} is compared literally: * and ? have no meaning; write (matches {pattern})."
    except (ToolError, OSError) as error:
        return str(error)
    if not workspace.holds(real):
        return (
            f"{one.text} is outside the workspace. The built-in tools never leave it, so this rule"
            " matches none of their calls."
        )
    return ""


_GLOB = re.compile(r"[*?]")


def _as_pattern(glob: str) -> str:
    """A shell pattern as a regular expression."""
    parts = re.split(r"(\*\*/?|\*|\?)", glob.removeprefix("**/"))
    signs = {"*": "[^/]*", "?": "[^/]", "**": ".*", "**/": "(.*/)?"}
    found = "".join(signs.get(part) or re.escape(part) for part in parts)
    begins = "(^|/)" if glob.startswith("**/") else "^" if "/" in glob else ""
    if not begins and found.startswith("[^/]*"):
        found = found.removeprefix("[^/]*")
    return f"{begins}{found}$".removesuffix("[^/]*$")


# A pattern that begins with a scheme and names the whole host; a dot that is not escaped is any character.
_NAME = r"(?:[\w-]|\\[.-])"
_WHOLE_HOST = re.compile(
    rf"(?:\^|\\A)https?\??:\\?/\\?/(?:{_NAME}|\((?:\?:)?(?:{_NAME}|\|)+\)\??)+(?:\\?/|:|\$|\\Z)"
)


def _addresses(layer: Layer, table: ToolTable) -> Iterator[LintFinding]:
    """Web addresses compared by predicates that deny less, or allow more, than they seem to."""
    for rule in layer.orders.rules:
        for one in rule.compared:
            if one.argument != URL or (
                rule.tool in table and "net" not in table.get(rule.tool or "").effects
            ):
                continue
            if one.how == "matches" and rule.kind == "allow" and not _WHOLE_HOST.match(one.text):
                message = (
                    'An address of any server may match this pattern; name the server: (host "example.org").'
                )
                yield LintFinding("too-wide", one.place, message)
            elif one.how == "=" and (server := _server_of(one.text)):
                write = f"(host {print_string(server)})"
                message = f"{one.text} is not an address, so this never matches; write {write}."
                yield LintFinding("cannot-hold", one.place, message)


def _server_of(text: str) -> str:
    """The server that a text names without being an address; empty for an address."""
    from quoth.tools.policy.urls import read_pattern  # here: few policies are about addresses

    bare = text.partition("://")[2] or text.removeprefix("//")
    if "://" in text and not _GLOB.search(text):
        return ""
    try:
        read_pattern(bare.partition("/")[0])
    except ToolError:
        return ""
    return bare.partition("/")[0]


# Programs that run a program named by their arguments, besides the wrappers of predicate_reader.py.
_RUN_MORE = frozenset(
    ("git", "make", "tar", "rsync", "vim", "vi", "man", "less", "npm", "yarn", "pnpm", "pip", "hg", "svn")
)
_THEN_RUN = ("run", "exec")  # commands of wrappers: uv run, docker exec
_SEARCHES = ("find", "fd", "xargs", "parallel")  # the program they run may follow any word


def _programs(layer: Layer, table: ToolTable) -> Iterator[LintFinding]:
    """Allows of programs that run any other program, and texts that are not the name of a program."""
    for rule in layer.orders.rules:
        about = [tool for tool in table if rule.tool in (None, tool.name) and "runs" in tool.effects]
        if not about:
            continue
        vectors = list(_vectors(read_one(rule.text)))
        for word in sorted(word for vector in vectors for word in texts_of(vector[0])):
            if " " in word and rule.kind != "allow":
                write = f"[{' '.join(map(print_string, word.split()))} ...]"
                message = f"{print_string(word)} is compared with the program's name only; write {write}."
                yield LintFinding("cannot-hold", rule.place, message)
        if rule.kind != "allow":
            continue
        if any(_runs_any_shell(rule, tool) for tool in about):
            message = "This allows a shell or an interpreter, and so all programs; name the programs instead."
            yield LintFinding("too-wide", rule.place, message)
        for vector in vectors:
            for word in sorted(texts_of(vector[0])):
                if not _runs_anything(program(word), vector[1:]):
                    continue
                message = (
                    f"{word.rpartition('/')[2]} runs any program that its arguments name, so this allows all"
                    ' programs; name the arguments, as in ["python3" "-m" "pytest" ...].'
                )
                yield LintFinding("too-wide", rule.place, message)


def _runs_any_shell(rule: Rule, tool: CognitiveTool) -> bool:
    """Whether an allow that names arguments, but no program, allows a shell."""
    named = [
        param.name for param in tool.params if param.name in rule.arguments and param.name not in rule.open
    ]
    if len(named) != 1 or any(equality.first for equality in rule.equalities):
        return False
    facts = EvaluationContext(tool, new_call(CallForm(tool.name)), Workspace("."))
    others = {param.name: param.default for param in tool.params if not param.required}
    return any(rule.test(others | {named[0]: words}, facts) is True for words in _SHELLS)


_SHELLS = (["sh", "-c", "x"], ["bash", "-c", "x"], ["python3", "-c", "x"], ["env", "x"])


def _vectors(node: Any) -> Iterator[Any]:
    """The lists in a form that represent argument vectors."""
    if isinstance(node, m.List):
        if node:
            yield node
    elif isinstance(node, m.Expression):
        for item in node:
            yield from _vectors(item)


def _runs_anything(name: str, rest: Sequence[Any]) -> bool:
    """Whether a program with these arguments, some of them left open, may run any other program."""
    known = [min(texts_of(item), default="") for item in rest]
    words = list(takewhile(bool, known))
    if len(words) == len(rest):
        return False
    if name in INTERPRETERS:
        return not words or (words[0].startswith("-") and (words[0] != "-m" or len(words) == 1))
    if name in _SEARCHES:
        return True
    if name in WRAPPERS:
        return all(
            word[0] in "-0123456789" or "=" in word or word in _THEN_RUN or program(word) in RUNNERS
            for word in words
        )
    return name in _RUN_MORE and (not words or words[0].startswith("-"))


def _may_be_text(param: Param) -> bool:
    hint = param.type
    return hint in (str, Any) or any(part in (str, Any) for part in typing.get_args(hint))


def _never_matter(layer: Layer) -> Iterator[LintFinding]:
    rules = layer.orders.rules
    for number, rule in enumerate(rules):
        if layer.ignores(rule):
            message = "A workspace's own policy may only tighten; this allow is ignored."
            yield LintFinding("ignored", rule.place, message)
            continue
        if finding := _shadow(rule, number, rules):
            yield finding


def _shadow(rule: Rule, number: int, rules: tuple[Rule, ...]) -> LintFinding | None:
    """Why a rule never has an effect: another rule is equal, or is as strong and covers more calls."""
    strength = KINDS.index(rule.kind)
    same: Rule | None = None
    wider: Rule | None = None
    for place, other in enumerate(rules):
        if other is rule or KINDS.index(other.kind) > strength or not other.clauses <= rule.clauses:
            continue
        if other.clauses == rule.clauses:
            if other.kind != rule.kind or place < number:
                same = same or other
        else:
            wider = wider or other
    if same is not None and same.kind == rule.kind:
        return LintFinding("duplicate", rule.place, f"This rule is already given at {same.place}.")
    if same is not None:
        message = f"This {rule.kind} has no effect: {same.place} {VERBS[same.kind]} the same calls."
        return LintFinding("conflict", rule.place, message)
    if wider is not None:
        message = f"This {rule.kind} has no effect: {wider.place} {VERBS[wider.kind]} these calls and more."
        return LintFinding("dead", rule.place, message)
    return None
