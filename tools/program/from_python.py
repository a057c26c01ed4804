"""Translates a short Python text to Lisp. The text is parsed and never run."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence
from typing import Any, Final

from quoth.tools.lisp.forms import kebab
from quoth.tools.lisp.printer import print_string
from quoth.tools.program.hint import MAX_PYTHON

INFIX = frozenset("+ - * / // % ** < > <= >= = == != and or in is not-in".split())  # noqa: SIM905
BUILTINS = frozenset(dir(builtins))


class _NoLisp(Exception):
    """This Python has no short equivalent in Lisp."""


OPERATORS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.Eq: "=", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
    ast.NotIn: "not-in", ast.Is: "is", ast.IsNot: "is-not", ast.And: "and", ast.Or: "or", ast.Not: "not",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "bnot",
}  # fmt: skip


def from_python(text: str) -> str | None:
    """Python as Lisp; None if the text is not Python, is empty or too long, or has no short equivalent."""
    if len(text) > MAX_PYTHON:
        return None
    for tail in ("", "\n    pass", " pass"):
        try:
            tree = ast.parse(text.strip() + tail)
            forms = [_lisp(node) for node in tree.body if not isinstance(node, ast.Pass)]
        except (SyntaxError, ValueError, MemoryError, RecursionError, _NoLisp):
            continue
        return " ".join(forms) or None
    return None


def _lisp(node: Any) -> str:
    """One Python node as Lisp. Python's parser and the length of the text bound its depth."""
    match node:
        case ast.Constant(value=str() as text):
            return print_string(text)
        case ast.Constant(value=None | bool() | int() | float() as value):
            return str(value)
        case ast.Name(id=name):
            return name
        case ast.Expr(value=value) | ast.Await(value=value):
            return _lisp(value)
        case ast.Return(value=value):
            return _lisp(value) if value else "None"
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=keywords):
            return _form(f".{name}", _lisp(owner), *_arguments(args, keywords))
        case ast.Call(func=function, args=args, keywords=keywords):
            return _form(kebab(_lisp(function)), *_arguments(args, keywords))
        case ast.Attribute(value=owner, attr=name):
            return _form(".", _lisp(owner), name)
        case ast.Subscript(value=owner, slice=ast.Slice(lower=lower, upper=upper, step=None)):
            return _form(
                "cut", _lisp(owner), _lisp(lower) if lower else "0", _lisp(upper) if upper else "None"
            )
        case ast.Subscript(value=owner, slice=key):
            return _form("get", _lisp(owner), _lisp(key))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _form(OPERATORS[type(op)], _lisp(left), _lisp(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _form(OPERATORS[type(op)], _lisp(left), _lisp(right))
        case ast.BoolOp(op=op, values=values):
            return _form(OPERATORS[type(op)], *map(_lisp, values))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return f"-{number}"
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return _form(OPERATORS[type(op)], _lisp(operand))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return "[" + " ".join(map(_lisp, items)) + "]"
        case ast.Dict(keys=keys, values=values) if all(keys):
            pairs = zip(map(_lisp, keys), map(_lisp, values), strict=True)
            return "{" + " ".join(f"{key} {value}" for key, value in pairs) + "}"
        case ast.IfExp(test=test, body=body, orelse=other):
            return _form("if", *map(_lisp, (test, body, other)))
        case ast.Lambda(args=args, body=body):
            return _form("fn", _parameters(args), _lisp(body))
        case ast.ListComp(elt=item, generators=[each]) if not each.is_async:
            tests = [part for test in each.ifs for part in (":if", _lisp(test))]
            return _form("lfor", _lisp(each.target), _lisp(each.iter), *tests, _lisp(item))
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return _form("setv", name, _lisp(value))
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in OPERATORS:
            return _form(f"{OPERATORS[type(op)]}=", name, _lisp(value))
        case ast.For(target=target, iter=over, body=body, orelse=[]):
            return _form("for", f"[{_lisp(target)} {_lisp(over)}]", *_body(body))
        case ast.While(test=test, body=body, orelse=[]):
            return _form("while", _lisp(test), *_body(body))
        case ast.If(test=test, body=body, orelse=[]):
            return _form("when", _lisp(test), *_body(body))
        case ast.FunctionDef(name=name, args=args, body=body):
            return _form("defn", kebab(name), _parameters(args), *_body(body))
        case ast.Import(names=names) if not any(alias.asname for alias in names):
            return _form("import", *(alias.name for alias in names))
        case ast.ImportFrom(module=str() as module, names=names, level=0):
            return _form("import", module, "[" + " ".join(alias.name for alias in names) + "]")
    raise _NoLisp


def _form(*parts: str) -> str:
    return "(" + " ".join(parts) + ")"


def _arguments(args: Sequence[Any], keywords: Sequence[Any]) -> list[str]:
    if any(keyword.arg is None for keyword in keywords):
        raise _NoLisp
    return [*map(_lisp, args), *(f":{kebab(k.arg)} {_lisp(k.value)}" for k in keywords)]


def _parameters(args: Any) -> str:
    if args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg or args.defaults:
        raise _NoLisp
    return "[" + " ".join(arg.arg for arg in args.args) + "]"


def _body(body: Sequence[Any]) -> list[str]:
    return [_lisp(node) for node in body if not isinstance(node, ast.Pass)] or ["None"]


_STATEMENT = re.compile(r"\s*(def|for|while|if|return|import|from|await|async|class|with|try|lambda|not)\b")
_PYTHON_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
_ASSIGNED = re.compile(r"\s*[A-Za-z_]\w*\s*(?:[-+*/]|//)?=[^=]")


def whole_python(text: str) -> str | None:
    """A whole program as Lisp, if it is clearly Python (a statement, call, assignment, or several words);
    otherwise None."""
    start = text.lstrip()
    if start[:1] in "([{\"';#":
        return None
    if not (_STATEMENT.match(start) or _PYTHON_CALL.match(start) or _ASSIGNED.match(start) or " " in start):
        return None
    made = from_python(text)
    return made if made and made != text.strip() else None
