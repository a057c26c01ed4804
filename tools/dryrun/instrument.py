"""Instruments a program for a dry run: every operation becomes a call of a helper that handles unknown
operands.

The helpers are in tools/dryrun/runtime.py and operations.py. When an unknown value decides, a helper asks the
host, so that all ways of each condition and handler are taken. Nothing is run here."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, cast

import hy

from quoth.tools.dryrun import operations, runtime
from quoth.tools.program.compiler import PRELUDES, TOO_DEEP, Program
from quoth.tools.program.from_python import OPERATORS

# The source of a dry run's helper functions for the sandbox, made of two Python files.


PREFIX = "__dry_"  # prefix of the helpers' names, which no program can write
CHOOSE, NOTE = PREFIX + "choose", PREFIX + "note"  # functions answered by the host


def helpers(word: str) -> str:
    """The Python source of the helpers, for a run whose unknown values are marked by ``word``."""
    return _helpers().replace(runtime.WORD, word)


@cache
def _helpers() -> str:
    """The helpers as the sandbox runs them: without types, and with the prefix before each name, including
    Python's builtins, so that definitions of the program cannot change them."""
    tree = ast.parse(inspect.getsource(runtime) + inspect.getsource(operations))
    tree.body = [
        part
        for part in tree.body
        if not isinstance(part, ast.ImportFrom) and getattr(part, "name", "") not in ("choose", "note")
    ]
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    own |= {node.id for part in tree.body for node in _stored(part)}
    given = sorted(used & set(dir(builtins)) - own)
    tree = _Helper({*own, *given, "choose", "note", "math"}).visit(tree)
    aliases = "".join(f"{PREFIX}{name} = {name}\n" for name in given)
    return f"{aliases}{ast.unparse(ast.fix_missing_locations(tree))}\n"


class _Helper(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def _named(self, name: str) -> str:
        return PREFIX + name if name in self._names else name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._named(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._named(node.arg))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name, node.returns = self._named(node.name), None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None, "a helper's variable has a value"
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_Import(self, node: ast.Import) -> ast.Import:
        return ast.Import([ast.alias(each.name, self._named(each.name)) for each in node.names])


def _stored(part: ast.stmt) -> list[ast.Name]:
    """The variables set by a statement outside functions."""
    targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
    nodes = [node for target in targets if target is not None for node in ast.walk(target)]
    return [node for node in nodes if isinstance(node, ast.Name)]


MAX_ADDED = (
    10_000  # statements that forget a variable or raise: number of variables times places that change them
)
MAX_TARGETS = 200  # of one assignment; the sandbox allows 255
_JUMPS = (ast.Break, ast.Return, ast.Raise, ast.Continue)
_OWN_SCOPE = (ast.FunctionDef, ast.Lambda, ast.ClassDef)


class NotFollowedError(Exception):
    """The program cannot be instrumented within the limits; the message says where."""


def for_dry_run(program: Program, word: str) -> str:
    """The instrumented Python of ``program``, with the helpers. Unknown values are marked by ``word``. It is
    a few times as large as the program, plus at most MAX_ADDED statements. Raises NotFollowedError."""
    python, given = program.python, ""
    if python.startswith(PRELUDES["pmap"]):
        python, given = python.removeprefix(PRELUDES["pmap"]), f"pmap = {PREFIX}pmap\n"
    try:
        careful = ast.fix_missing_locations(_Careful().visit(ast.parse(python)))
        return helpers(word) + given + ast.unparse(careful)
    except RecursionError:
        raise NotFollowedError(TOO_DEEP) from None


def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def _helper(name: str, *args: ast.expr) -> ast.Call:
    """A call of a helper."""
    return ast.Call(_name(PREFIX + name), list(args), [])


def _data(value: Any) -> ast.expr:
    """A constant, or a list of them."""
    return (
        ast.List([_data(item) for item in value], ast.Load())
        if isinstance(value, list)
        else ast.Constant(value)
    )


def _let(name: str, value: ast.expr) -> ast.NamedExpr:
    return ast.NamedExpr(ast.Name(name, ast.Store()), value)


def _set(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _spec(target: ast.expr) -> Any:
    """How a target unpacks its value; None for a single target."""
    if isinstance(target, ast.Starred):
        return "*"
    return [_spec(part) for part in target.elts] if isinstance(target, (ast.Tuple, ast.List)) else None


def _within(nodes: Iterable[ast.AST], skip: tuple[type[ast.AST], ...] = _OWN_SCOPE) -> Iterable[ast.AST]:
    """All nodes below, except the ones inside functions and classes."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, skip):
            pending.extend(ast.iter_child_nodes(node))


def _changed(nodes: Sequence[ast.AST]) -> list[str]:
    """The names that these statements assign."""
    names = {
        node.id for node in _within(nodes) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return sorted(name for name in names if not name.startswith("__"))


def _jumps(nodes: Sequence[ast.AST]) -> ast.Constant:
    return ast.Constant(any(isinstance(node, _JUMPS) for node in _within(nodes)))


def shown_name(name: str) -> str:
    """A Python variable as the program spells it."""
    if name.startswith(("_hy_let_", "_hy_exc_")):
        name = name[8:].rpartition("_")[0]
    return "a value" if name.startswith("_hy_") else str(hy.unmangle(name))


_STOPPED = ast.Expr(_helper("stop", ast.Constant("it sets an attribute of a value")))


class _Careful(ast.NodeTransformer):
    def __init__(self) -> None:
        self._made = 0
        self._tries: list[tuple[str, ast.Try, list[str]]] = []  # the try statements around the current node
        self._outer: list[set[str]] = [set()]  # outer names set by functions
        self._functions = ["the program"]  # names of the functions around the current node
        self._added = 0

    def _new(self) -> str:
        self._made += 1
        return f"__v{self._made}"

    def _add(self, number: int, word: str) -> None:
        """Count statements before they are built. Raises NotFollowedError past MAX_ADDED."""
        self._added += number
        if self._added > MAX_ADDED:
            where = f"(in {self._functions[-1]}, at a {word})"
            raise NotFollowedError(f"its try forms and loops change too many variables {where}")

    def _all(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for node in nodes:
            found = self.visit(node)
            done.extend(found if isinstance(found, list) else [found])
        return done

    def _expr(self, node: ast.expr) -> ast.expr:
        return cast("ast.expr", self.visit(node))

    def _unknown(self, names: Sequence[str]) -> list[ast.stmt]:
        """Statements that make these names unknown."""
        done: list[ast.stmt] = []
        for begin in range(0, len(names), MAX_TARGETS):
            some = names[begin : begin + MAX_TARGETS]
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in some]
            made = _helper("holes", _data([shown_name(name) for name in some]))
            done.append(ast.Assign([ast.List(targets, ast.Store())], made))
        return done

    # Expressions

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        sign = OPERATORS[type(node.op)]
        return _helper("binary", ast.Constant(sign), self._expr(node.left), self._expr(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            return _helper("negated", self._expr(node.operand))
        if isinstance(node.operand, ast.Constant):
            return node
        return _helper("unary", ast.Constant(OPERATORS[type(node.op)]), self._expr(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        signs = _data([OPERATORS[type(op)] for op in node.ops])
        values: list[ast.expr] = [self._expr(value) for value in (node.left, *node.comparators)]
        return _helper("chain", signs, ast.List(values, ast.Load()))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Keeps the deciding value in a name; the operands are not nested."""
        name = self._new()
        values = [_let(name, self._expr(value)) for value in node.values]
        tests: list[ast.expr] = [_helper("truth", value) for value in values[:-1]]
        decided = ast.BoolOp(node.op, [*tests, ast.List([values[-1]], ast.Load())])
        both = ast.Tuple([decided, _name(name)], ast.Load())
        return ast.Subscript(both, ast.Constant(1), ast.Load())

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return ast.IfExp(
            _helper("truth", self._expr(node.test)), self._expr(node.body), self._expr(node.orelse)
        )

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.slice, ast.Slice):
            parts = [node.slice.lower, node.slice.upper, node.slice.step]
            given = [ast.Constant(None) if part is None else self._expr(part) for part in parts]
            return _helper("cut", self._expr(node.value), *given)
        return _helper("part", self._expr(node.value), self._expr(node.slice))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name, value = self._new(), self._expr(node.value)
        unknown = _helper("unknown", _let(name, value))
        said = _helper("form", ast.Constant(f". {node.attr}"), ast.List([_name(name)], ast.Load()))
        return ast.IfExp(unknown, said, ast.Attribute(_name(name), node.attr, ast.Load()))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        args = ast.List([self._expr(arg) for arg in node.args], ast.Load())
        named = ast.Dict(
            [None if word.arg is None else ast.Constant(word.arg) for word in node.keywords],
            [self._expr(word.value) for word in node.keywords],
        )
        if isinstance(node.func, ast.Name) and node.func.id.startswith("__"):
            return ast.Call(node.func, args.elts, [])
        if not isinstance(node.func, ast.Attribute):
            return _helper("call", self._expr(node.func), args, named)
        # The sandbox cannot look up methods by name, so a helper decides first whether to call the method.
        owner, given, words, made = (self._new() for _ in range(4))
        asked = _helper(
            "method",
            ast.Constant(node.func.attr),
            _let(owner, self._expr(node.func.value)),
            _let(given, args),
            _let(words, named),
        )
        go = ast.Compare(_let(made, asked), [ast.Is()], [_name(PREFIX + "GO")])
        method = ast.Attribute(_name(owner), node.func.attr, ast.Load())
        really = ast.Call(method, [ast.Starred(_name(given), ast.Load())], [ast.keyword(None, _name(words))])
        return ast.IfExp(go, really, _name(made))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        parts: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                spec = self._expr(part.format_spec) if part.format_spec else ast.Constant("")
                letter = ast.Constant(chr(part.conversion) if part.conversion > 0 else "")
                parts.append(_helper("formatted", self._expr(part.value), letter, spec))
            else:
                parts.append(part)
        return ast.Call(
            ast.Attribute(ast.Constant(""), "join", ast.Load()), [ast.List(parts, ast.Load())], []
        )

    def _comprehension(self, kind: str, node: Any) -> ast.AST:
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(node, name, self._expr(getattr(node, name)))
        for part in node.generators:
            part.iter = _helper("source", self._expr(part.iter), _data(_spec(part.target)))
            part.ifs = [_helper("where", self._expr(test)) for test in part.ifs]
        return _helper("end", ast.Constant(kind), _helper("begin"), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._comprehension("list", node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return self._comprehension("set", node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        return self._comprehension("dict", node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._comprehension("list", ast.ListComp(node.elt, node.generators))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        return ast.NamedExpr(node.target, self._outside(node.target, self._expr(node.value)))

    # Statements

    def _outside(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """Outer variables set by a function become unknown after a loop over unknown items."""
        if isinstance(target, ast.Name) and target.id in self._outer[-1]:
            return _helper("kept", value, ast.Constant(shown_name(target.id)))
        return value

    def _assign(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            return [ast.Expr(_helper("put", self._expr(target.value), self._expr(target.slice), value))]
        if isinstance(target, ast.Attribute):
            return [ast.Expr(value), _STOPPED]
        if isinstance(target, (ast.Tuple, ast.List)):
            value = _helper("shaped", value, _data(_spec(target)))
        return [ast.Assign([target], self._outside(target, value))]

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self._expr(node.value)
        if len(node.targets) == 1:
            return self._assign(node.targets[0], value)
        name = self._new()
        done: list[ast.stmt] = [_set(name, value)]
        for target in node.targets:
            done += self._assign(target, _name(name))
        return done

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return self._assign(node.target, self._expr(node.value)) if node.value else ast.Pass()

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        sign, value = ast.Constant(OPERATORS[type(node.op)]), self._expr(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            return self._assign(target, _helper("changed", sign, _name(target.id), value))
        if isinstance(target, ast.Attribute):
            return [ast.Expr(value), _STOPPED]
        owner, place = self._new(), self._new()
        made = _helper("changed", sign, _helper("part", _name(owner), _name(place)), value)
        return [
            _set(owner, self._expr(target.value)),
            _set(place, self._expr(target.slice)),
            ast.Expr(_helper("put", _name(owner), _name(place), made)),
        ]

    def visit_If(self, node: ast.If) -> Any:
        test = _helper("truth", self._expr(node.test))
        return ast.If(test, self._all(node.body), self._all(node.orelse))

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.Assert(_helper("assumed", self._expr(node.test)), node.msg and self._expr(node.msg))

    def visit_For(self, node: ast.For) -> Any:
        loop = self._new()
        changed = _changed([node])
        begun = _helper("loop", self._expr(node.iter), _data(_spec(node.target)), _jumps(node.body))
        items = ast.Subscript(_name(loop), ast.Constant(1), ast.Load())
        body = [*self._forget(loop, _changed(node.body)), *self._all(node.body)]
        inner = ast.For(node.target, items, body, self._all(node.orelse))
        leave = ast.Subscript(_name(loop), ast.Constant(2), ast.Load())
        return self._looped(loop, begun, inner, leave, changed)

    def visit_While(self, node: ast.While) -> Any:
        loop = self._new()
        changed = _changed([node])
        begun = ast.List([ast.Constant(False), ast.Constant(None), _helper("mark")], ast.Load())
        again = _helper("again", _name(loop), self._expr(node.test), _jumps(node.body))
        body = [*self._forget(loop, changed), *self._all(node.body)]
        inner = ast.While(again, body, self._all(node.orelse))
        mark = ast.Subscript(_name(loop), ast.Constant(2), ast.Load())
        return self._looped(loop, begun, inner, ast.Subscript(mark, ast.Constant(0), ast.Load()), changed)

    def _looped(
        self, loop: str, begun: ast.expr, inner: ast.stmt, depth: ast.expr, changed: Sequence[str]
    ) -> list[ast.stmt]:
        left: list[ast.stmt] = [ast.Expr(_helper("leave", depth))]
        whole = ast.Try([inner], [], [], left)
        return [_set(loop, begun), whole, *self._forget(loop, changed)]

    def _forget(self, loop: str, names: Sequence[str]) -> list[ast.stmt]:
        unknown = ast.Subscript(_name(loop), ast.Constant(0), ast.Load())
        self._add(len(names), "loop")
        return [ast.If(unknown, self._unknown(names), [])] if names else []

    def visit_Try(self, node: ast.Try) -> Any:
        mark = self._new()
        if not node.handlers:
            return ast.Try(self._all(node.body), [], self._all(node.orelse), self._all(node.finalbody))
        self._tries.append((mark, node, _changed(node.body)))
        body = self._all(node.body)
        body += self._fails(*self._tries.pop())
        handlers = []
        for handler in node.handlers:
            back = ast.Expr(_helper("back", _name(mark)))
            inside = [back, *self._all(handler.body)]
            handlers.append(ast.ExceptHandler(handler.type, handler.name, inside))
        whole = ast.Try(body, handlers, self._all(node.orelse), self._all(node.finalbody))
        return [_set(mark, _helper("mark")), whole]

    def _fails(self, mark: str, node: ast.Try, changed: Sequence[str]) -> list[ast.stmt]:
        """Statements that take each way in which the body of the try may fail."""
        kinds = [_kind(handler) for handler in node.handlers]
        self._add(len(kinds) + len(changed), "try")
        way = self._new()
        failed = self._unknown(changed)  # once for all failures
        for number, kind in enumerate(kinds, 1):
            raised = ast.Raise(ast.Call(_name(kind), [_helper("hole", ast.Constant("the error"))], []))
            here = ast.Compare(_name(way), [ast.Eq()], [ast.Constant(number)])
            failed.append(ast.If(here, [raised], []))
        return [_set(way, _helper("tried", _name(mark), _data(kinds))), ast.If(_name(way), failed, [])]

    def _leaving(self) -> list[ast.stmt]:
        return [statement for found in reversed(self._tries) for statement in self._fails(*found)]

    def visit_Return(self, node: ast.Return) -> Any:
        value = self._expr(node.value) if node.value else ast.Constant(None)
        if not self._tries:
            return ast.Return(value)
        name = self._new()
        return [_set(name, value), *self._leaving(), ast.Return(_name(name))]

    def visit_Break(self, node: ast.Break) -> Any:
        return [*self._leaving(), node]

    def visit_Continue(self, node: ast.Continue) -> Any:
        return [*self._leaving(), node]

    def visit_Match(self, node: ast.Match) -> Any:
        node.subject = _helper("matched", self._expr(node.subject))
        for case in node.cases:
            case.guard = case.guard and _helper("truth", self._expr(case.guard))
            case.body = self._all(case.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        outer = {
            name
            for part in _within(node.body)
            if isinstance(part, (ast.Global, ast.Nonlocal))
            for name in part.names
        }
        return self._scoped(node, outer)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self._scoped(node, set())

    def _scoped(self, node: Any, outer: set[str]) -> ast.AST:
        before, self._tries = self._tries, []
        self._outer.append(outer)
        self._functions.append(shown_name(node.name) if isinstance(node, ast.FunctionDef) else "a function")
        self._arguments(node.args)
        node.body = self._all(node.body) if isinstance(node.body, list) else self._expr(node.body)
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self._expr(item) for item in node.decorator_list]
            node.returns = None
        self._outer.pop()
        self._functions.pop()
        self._tries = before
        return cast("ast.AST", node)

    def _arguments(self, args: ast.arguments) -> None:
        args.defaults = [self._expr(value) for value in args.defaults]
        args.kw_defaults = [value and self._expr(value) for value in args.kw_defaults]
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
            if arg is not None:
                arg.annotation = None


def _kind(handler: ast.ExceptHandler) -> str:
    """An exception that this handler catches."""
    kind = handler.type
    if isinstance(kind, ast.Tuple) and kind.elts:
        kind = kind.elts[0]
    name = kind.id if isinstance(kind, ast.Name) else "Exception"
    return "Exception" if name == "BaseException" else name
