"""The linter of programs: finds the first mistake in a readable program, and the corrected form. It explains
only mistakes that would fail anyway; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import hy.models as m

from quoth.tools.advice import instead
from quoth.tools.lisp.printer import print_string
from quoth.tools.lisp.syntax import head_of, is_core, mangle, symbols_in
from quoth.tools.program.from_python import BUILTINS, INFIX, from_python, whole_python
from quoth.tools.program.hint import NodeText, PythonHint, advice
from quoth.tools.program.idioms import IDIOMS, RULES
from quoth.tools.program.quoting import is_quoted
from quoth.tools.text import excerpt

_SMART = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
_FILE = re.compile(
    r"(?:[\w.~-]*/)+[\w.*-]*|[\w-]+\.(?:org|md|txt|py|hy|json|csv|toml|ya?ml|html|js|ts|log|cfg|ini|xml|rst|sh)"
)


def spot(forms: Sequence[Any], text: str, names: Iterable[str] = ()) -> PythonHint | None:
    """The first mistake in rewritten ``forms`` that would fail later, or None. ``names`` are the names of the
    tools."""
    if not forms:
        return None
    source = NodeText(text)
    word = isinstance(forms[0], m.Symbol) or head_of(forms[0]) == "."
    infix = len(forms) > 1 and str(forms[1]) in INFIX
    python = whole_python(text) if word or infix else None
    if python and (len(forms) > 1 or python.startswith("(")):
        return PythonHint(forms[0].start_line, forms[0].start_column, advice("this is Python", python))
    tools = frozenset(names)
    seen = _Spotter(source, tools, _said(forms) | _mangled(tools))
    found = seen.first(forms)
    return PythonHint(found[0].start_line, found[0].start_column, found[1]) if found else None


@lru_cache(maxsize=16)
def _mangled(tools: frozenset[str]) -> frozenset[str]:
    return frozenset(map(mangle, tools))


def _said(forms: Sequence[Any]) -> frozenset[str]:
    """Every name used anywhere except at the head of a form: the program may have bound it."""
    found: set[str] = set()
    pending: list[Any] = [m.List(forms)]
    while pending:
        node = pending.pop()
        form, dotted = isinstance(node, m.Expression), head_of(node) == "."
        for place, item in enumerate(node):
            if isinstance(item, m.Symbol) and not dotted and (place or not form):
                found.update(symbols_in(item))
            elif isinstance(item, m.Sequence):
                pending.append(item)
    return frozenset(found)


_MAPPING = frozenset({"pmap", "map", "sorted", "reduce"})  # functions whose first argument may be an operator


class _Spotter:
    def __init__(self, source: NodeText, tools: frozenset[str], bound: frozenset[str]) -> None:
        self.source = source
        self.tools = tools
        self.bound = bound

    def first(self, forms: Sequence[Any]) -> tuple[Any, str] | None:
        """The first mistake, outer forms first. It keeps its own stack; return is allowed ``inside`` a
        function."""
        pending: list[tuple[Any, bool]] = [(form, False) for form in reversed(forms)]
        if said := self.top(forms):
            return said
        while pending:
            node, inside = pending.pop()
            if is_quoted(node):
                message = None
            elif isinstance(node, m.Symbol):
                message = self.symbol(node)
            elif isinstance(node, (m.Integer, m.Float)):
                message = self.number(node)
            elif isinstance(node, m.Expression):
                message = self.expression(node, inside)
            elif isinstance(node, (m.List, m.Dict, m.Tuple)):
                message = self.collection(node)
            else:
                message = None
            if message:
                return node, message
            if isinstance(node, m.Sequence):
                head = head_of(node)
                if head in ("import", "annotate", "."):
                    continue
                node = node[1:] if is_quoted(node) else node
                inside = inside or head in ("fn", "defn", "defclass")
                pending.extend((item, inside) for item in reversed(node))
        return None

    def free(self, name: str) -> bool:
        try:
            return mangle(name) not in self.bound
        except Exception:
            return True

    def top(self, forms: Sequence[Any]) -> tuple[Any, str] | None:
        """Finds x = 5 among other forms, and a call with the bracket after its name."""
        for place, form in enumerate(forms[:-1]):
            after = forms[place + 1]
            if not isinstance(form, m.Symbol):
                continue
            if str(after) in ("=", ":=") and place + 2 < len(forms):
                fixed = f"(setv {self.source.of(form)} {self.source.of(forms[place + 2])})"
                return form, advice("setv sets a variable", fixed)
            if isinstance(after, m.Expression) and self.source.span(form)[1] == self.source.span(after)[0]:
                whole = self.source.of(form) + self.source.of(after)
                fixed = from_python(whole) or f"({self.source.of(form)} {self.source.all(after)})"
                return form, advice("the bracket comes before the name", fixed)
        return None

    def symbol(self, node: Any) -> str | None:
        return self.word(str(node), self.unknown(str(node)))

    def word(self, name: str, unknown: bool) -> str | None:
        if name[0] in "“”„«»‘’":
            fixed = self.source.text.strip().translate(_SMART)
            return advice('a text is written in plain double quotes, "like this"', fixed)
        if name == "," or (name.endswith(",") and len(name) > 1):
            return advice("values are separated by spaces, without commas", None, name.rstrip(",") or "[1 2]")
        if name.endswith(":") and len(name) > 1:
            return advice("a word has no colon after it", name.rstrip(":"))
        if name.startswith("@") and len(name) > 1:
            return advice("a variable is its name alone", name[1:])
        if unknown and name not in RULES and _FILE.fullmatch(name) and len(name.strip("/.")) > 1:
            return advice("a text is written in double quotes", print_string(name))
        return None

    def number(self, node: Any) -> str | None:
        """Hy reads 1,2,3 as 123; only a number such as 1,000 is likely to be meant."""
        text = self.source.of(node).rstrip(",")
        if (
            "," not in text
            or text[0] not in "-0123456789"
            or re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d*)?", text)
        ):
            return None
        return advice("values are separated by spaces, without commas", text.replace(",", " "))

    def collection(self, node: Any) -> str | None:
        of = self.source.of
        if isinstance(node, m.List) and {"for", "in"} <= {str(item) for item in node}:
            return advice(
                "lfor makes a list of computed values", from_python(of(node)), "(lfor x [1 2] (* x x))"
            )
        if isinstance(node, m.Dict) and re.search(r"'\s*:", of(node)) and from_python(of(node)):
            return advice(
                "a dictionary has keys and values, without colons and commas", from_python(of(node))
            )
        if any(str(item).endswith(",") and isinstance(item, m.Symbol) for item in node) or any(
            isinstance(item, m.Keyword) and not item.name for item in node
        ):
            what = "a dictionary has keys and values, without colons and commas"
            if isinstance(node, m.List):
                what = "values are separated by spaces, without commas"
            return advice(what, from_python(of(node)) or self.source.clean(node))
        if isinstance(node, m.Dict):
            odd = len(node) % 2 and not any(head_of(item) == "unpack-mapping" for item in node)
            if odd:
                return advice("a dictionary has a value for each key", of(node)[:-1] + " None}")
        elif node and isinstance(node[0], m.Symbol) and str(node[0]) in self.tools and len(node) > 1:
            return advice("[ begins a list; a call is written in ( )", f"({self.source.all(node)})")
        return None

    def expression(self, node: Any, inside: bool) -> str | None:
        of, name = self.source.of, head_of(node)
        if not node or self.source.text[self.source.span(node)[0]] != "(":
            return self.word(of(node), self.unknown(str(node[1]))) if name == "." else None  # a dotted name
        head = node[0]
        if any(isinstance(item, m.Symbol) and str(item).endswith(",") for item in node):
            return advice("values are separated by spaces, without commas", self.source.clean(node))
        if infix := self.infix(node):
            return infix
        if isinstance(head, m.Keyword):
            return advice(
                "the name of a function has no colon",
                f"({head.name} {self.source.all(node[1:])})".replace(" )", ")"),
            )
        if isinstance(head, (m.String, m.Integer, m.Float)):
            return self.no_function(node)
        if name == "return" and not inside:
            return advice(
                "a program's value is the value of its last form", self.source.all(node[1:]) or "None"
            )
        if name == "lambda":
            python = from_python(of(node)[1:-1]) if ":" in of(node) else None
            return advice("a function is (fn [x] …)", python, "(fn [x] (* x 2))")
        if name == "except":
            return self.handler(node)
        if name == "getf" and self.free(name) and len(node) in (3, 4) and isinstance(node[2], m.Keyword):
            key = print_string(node[2].name)
            one = f"(get {of(node[1])} {key})" if len(node) == 3 else ""
            return advice("getf is not known here", one or f"(.get {of(node[1])} {key} {of(node[3])})")
        if name in instead("head") and self.free(name):
            return advice(f"{name} is not known here", instead("head")[name])
        if is_core(name):
            return None
        if name in RULES and self.unknown(name):
            row = next(row for row in IDIOMS if name in row.names.split())
            return advice(f"{name} does not fit here", row.written.replace(row.names.split()[0], name, 1))
        if isinstance(node[-1], m.Keyword) and len(node) > 1 and node[-1].name:
            given = self.source.all(node)
            return advice(f"the argument {of(node[-1])} has no value", f"({given} None)")
        return self.named(node)

    def handler(self, node: Any) -> str | None:
        """(except [Exception e] …)"""
        names = [str(name) for name in node[1]] if len(node) > 1 and isinstance(node[1], m.List) else []
        if len(names) != 2 or names[0] not in BUILTINS or names[1] in BUILTINS or names[1][0] == "(":
            return None
        return advice("except takes a name, then the exception class", instead("head")["catch"])

    def unknown(self, name: str) -> bool:
        """Whether a name cannot be defined: it is not a tool or a builtin, and is used only at heads of
        forms."""
        return self.free(name) and name not in BUILTINS and not is_core(name)

    def no_function(self, node: Any) -> str:
        """Finds (5), ("a" "b"), and f("x") inside a form, with the bracket after the name."""
        start, stop = self.source.span(node)
        found = re.search(r"[A-Za-z_][\w.-]*\Z", self.source.text[:start])
        inside = self.source.all(node)
        if found:
            python = from_python(found[0] + self.source.text[start:stop])
            return advice("the bracket comes before the name", python or f"({found[0]} {inside})")
        if len(node) > 1 and str(node[0]) in self.tools:
            return advice("the name of a function has no quotes", f"({node[0]} {self.source.all(node[1:])})")
        what = excerpt(self.source.of(node[0]))
        return advice(f"{what} is not a function; a list is [ ]", inside if len(node) == 1 else f"[{inside}]")

    def infix(self, node: Any) -> str | None:
        name = head_of(node)
        if len(node) < 3 or name in RULES or name in _MAPPING or (name and is_core(name)):
            return None
        op = ":=" if isinstance(node[1], m.Keyword) and node[1].name == "=" else str(node[1])
        if op not in INFIX | {":="} or not isinstance(node[1], (m.Symbol, m.Keyword)):
            return None
        whole = self.source.of(node)
        fixed = None if re.search(r"\w-\w", whole) else from_python(whole[1:-1].replace(":=", "="))
        if fixed is None:
            sign = {"=": "setv", ":=": "setv", "==": "="}.get(op, op)
            fixed = f"({sign} {self.source.of(node[0])} {self.source.all(node[2:])})"
        return advice("the operator comes first", fixed)

    def named(self, node: Any) -> str | None:
        """Finds path=x, path: and --path used as names of arguments."""
        for place, item in enumerate(node[1:], 1):
            found = isinstance(item, m.Symbol) and re.fullmatch(
                r"(?:--?)?([A-Za-z_][\w-]*)(=|:)?(.*)", str(item), re.DOTALL
            )
            if not found or (not found[2] and not str(item).startswith("--")) or str(item).startswith("->"):
                continue
            if found[2] == "=" and not found[3]:
                continue
            value = f" {found[3]}" if found[3] else ""
            rest = self.source.all(node[place + 1 :])
            before = self.source.all(node[:place])
            fixed = f"({before} :{found[1]}{value}{' ' if rest else ''}{rest})"
            return advice("an argument's name is a keyword before its value", fixed)
        return None
