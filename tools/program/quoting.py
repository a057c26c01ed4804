"""Quoted forms of a program: each becomes a call of a reserved name, so that Hy never sees the quoted form.

The rewriter inserts the call; its arguments are the evaluated parts of a quasiquote. ``definitions`` writes
the definition of the name."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from typing import Any

import hy.models as m

from quoth.tools.lisp.printer import show
from quoth.tools.lisp.syntax import CONSTANTS, Builder, Names, begins

FORM, SYMBOL, KEYWORD = "__Form", "__Sym", "__Key"  # classes of the sandbox's wall
KINDS = {m.Expression: "(", m.List: "[", m.Dict: "{", m.Set: "#{", m.Tuple: "#("}
MODELS = {kind: model for model, kind in KINDS.items()}
FSTRING = 'f"'  # an f-string is one item: its text, not parsed further
# Prefix of names that no program can write. A digest of the form follows, because functions that a session
# keeps use their own names beside those of later programs.
_PREFIX = "__quoted_"
SHIMS = "len, reversed = __form_len, __form_reversed\n"
# Like SHIMS, but keeps functions of these names that the session has.
KEPT_SHIMS = """\
len = __form_len if len is __len else len
reversed = __form_reversed if reversed is __reversed else reversed
"""


class Quoted(m.Symbol):  # type: ignore[misc]
    """The head of the call that replaces a quoted form. ``python`` is the form as Python syntax, ``holes``
    are the names of the evaluated parts in it."""

    python: ast.expr
    holes: tuple[str, ...]
    _extra_kwargs: tuple[str, ...] = ()  # as of the models that the compiler opens


def quote(w: Builder, node: Any, env: Names) -> Any:
    return _quoted(w, node, 0)


def quasiquote(w: Builder, node: Any, env: Names) -> Any:
    return _quoted(w, node, 1)


def is_quoted(node: Any) -> bool:
    """Whether a rewritten form replaces a quoted one."""
    return isinstance(node, m.Expression) and bool(node) and type(node[0]) is Quoted


def _quoted(w: Builder, node: Any, level: int) -> Any:
    """The call for a quoted form; None if it contains an f-string, which the check then refuses."""
    parts: list[Any] = []
    try:
        python = _python(node[1], level, parts) if len(node) == 2 else None
    except UnquotableError:
        python = None
    if python is None:
        return None
    digest = hashlib.sha256(show(node).encode("utf-8", "surrogatepass")).hexdigest()
    head = Quoted(f"{_PREFIX}{digest[:16]}", from_parser=True).replace(node)
    head.python, head.holes = python, tuple(f"_{place}" for place in range(len(parts)))
    return w.form(node, head, *parts)


class UnquotableError(Exception):
    """A part of a quoted form cannot be represented as data."""


def constant(node: Any) -> ast.expr:
    """A quoted form as Python syntax. Raises UnquotableError."""
    return _python(node, 0, [])


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _hole(part: Any, parts: list[Any], function: str) -> ast.expr:
    if begins(part, "unpack-iterable", "unpack-mapping"):
        raise UnquotableError
    parts.append(m.String(part.name).replace(part) if isinstance(part, m.Keyword) else part)
    return _call(function, ast.Name(f"_{len(parts) - 1}", ast.Load()))


def _python(node: Any, level: int, parts: list[Any]) -> ast.expr:
    """A quoted model as Python syntax. ``level`` counts quasiquotes, 0 for a plain quote. Evaluated parts are
    added to ``parts``."""
    if isinstance(node, m.Symbol):
        name = CONSTANTS.get(str(node))
        return ast.Constant(ast.literal_eval(name)) if name else _call(SYMBOL, ast.Constant(str(node)))
    if isinstance(node, m.Keyword):
        return _call(KEYWORD, ast.Constant(str(node.name)))
    for kind, plain in ((m.String, str), (m.Integer, int), (m.Float, float), (m.Bytes, bytes)):
        if isinstance(node, kind):
            return ast.Constant(plain(node))
    if isinstance(node, m.FString):
        return _call(FORM, ast.Constant(FSTRING), ast.Tuple([ast.Constant(show(node))], ast.Load()))
    if type(node) not in KINDS:
        raise UnquotableError
    inner = level
    if level and begins(node, "unquote", "unquote-splice"):
        if level == 1 and (len(node) != 2 or not begins(node, "unquote")):
            raise UnquotableError  # a splice needs a form around it
        if level == 1:
            return _hole(node[1], parts, "__part")
        inner = level - 1
    elif level and begins(node, "quasiquote"):
        inner = level + 1
    items: list[ast.expr] = []
    for item in node:
        if inner == 1 and begins(item, "unquote-splice") and len(item) == 2:
            items.append(ast.Starred(_hole(item[1], parts, "__parts"), ast.Load()))
        else:
            items.append(_python(item, inner, parts))
    return _call(FORM, ast.Constant(KINDS[type(node)]), ast.Tuple(items, ast.Load()))


def definitions(forms: Sequence[Any]) -> str:
    """Python that defines the quoted forms in rewritten ``forms``: each is a constant, or a function of its
    evaluated parts. Empty for a program without quoted forms."""
    written, pending = dict[str, str](), list(reversed(forms))
    while pending:
        node = pending.pop()
        if is_quoted(node) and (head := node[0]) not in written:
            form = ast.unparse(head.python)
            given = f"def {head}({', '.join(head.holes)}):\n    return {form}\n" if head.holes else ""
            written[head] = given or f"{head} = {form}\n"
        if isinstance(node, m.Sequence):
            pending.extend(reversed(node))
    return "".join(written.values())


class Unquoted(ast.NodeTransformer):
    """Adapts a program with quoted forms: a constant becomes a name; ``not`` and list patterns accept
    forms."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        constant = isinstance(node.func, ast.Name) and node.func.id.startswith(_PREFIX) and not node.args
        return node.func if constant else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        negated = _call("__form_not", node.operand) if isinstance(node.op, ast.Not) else node
        return ast.copy_location(negated, node)

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = self._truth(node.test)
        return node

    visit_While = visit_IfExp = visit_If

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = list(map(self._truth, node.ifs))
        return node

    def _truth(self, test: ast.expr) -> ast.expr:
        return test if isinstance(test, ast.Compare | ast.Constant) else _call("__form_true", test)

    def visit_MatchSequence(self, node: ast.MatchSequence) -> ast.AST:
        self.generic_visit(node)
        form = ast.MatchClass(ast.Name(FORM, ast.Load()), [], ["items"], [node])
        return ast.copy_location(ast.MatchOr([node, form]), node)
