"""A program made ready for a dry run: every operation asks first whether one of its operands is unknown.

Knows the Python that programs compile to, and the names of the helpers (tools/dryrun/runtime.py); it runs
nothing. What the helpers cannot decide they ask the host: so each condition, handler and case can be gone
both ways.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, cast

import hy

from quoth.tools.dryrun.runtime import INSTEAD, helpers
from quoth.tools.program.compiler import PRELUDES, Program

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "bnot",
    ast.Eq: "=",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is-not",
    ast.In: "in",
    ast.NotIn: "not-in",
}
_JUMPS = (ast.Break, ast.Return, ast.Raise, ast.Continue)
_OWN_SCOPE = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
_SIMPLE = (ast.Name, ast.Constant, ast.Compare, ast.UnaryOp, ast.expr_context, ast.cmpop, ast.unaryop)


def for_dry_run(program: Program, word: str) -> str:
    """The Python of ``program`` with every operation careful; unknowns are marked by ``word``."""
    tree = ast.parse(program.python)
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    given = [name for name in PRELUDES if name in own and name in INSTEAD]
    for name in given:  # the first is ours; what the program defines by that name comes after it
        tree.body.remove(next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name))
    careful = ast.fix_missing_locations(_Careful().visit(tree))
    return helpers(word) + "".join(INSTEAD[name] for name in given) + ast.unparse(careful)


def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_name(name), list(args), [])


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
    """How a target takes its value apart: None for as a whole."""
    if isinstance(target, ast.Starred):
        return "*"
    return [_spec(part) for part in target.elts] if isinstance(target, (ast.Tuple, ast.List)) else None


def _within(nodes: Iterable[ast.AST], skip: tuple[type[ast.AST], ...] = _OWN_SCOPE) -> Iterable[ast.AST]:
    """All nodes below, but for those inside of functions and classes."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, skip):
            pending.extend(ast.iter_child_nodes(node))


def _changed(nodes: Sequence[ast.AST]) -> list[str]:
    """The names that these statements give a value to."""
    names = {
        node.id for node in _within(nodes) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return sorted(name for name in names if not name.startswith("__"))


def _jumps(nodes: Sequence[ast.AST]) -> ast.Constant:
    return ast.Constant(any(isinstance(node, _JUMPS) for node in _within(nodes)))


def shown_name(name: str) -> str:
    """A variable as its program calls it."""
    if name.startswith(("_hy_let_", "_hy_exc_")):
        name = name[8:].rpartition("_")[0]
    return "a value" if name.startswith("_hy_") else str(hy.unmangle(name))


class _Careful(ast.NodeTransformer):
    def __init__(self) -> None:
        self._made = 0
        self._tries: list[tuple[str, ast.Try, list[str]]] = []  # those whose bodies we are in
        self._outer: list[set[str]] = [set()]  # names that functions set outside of themselves

    def _new(self) -> str:
        self._made += 1
        return f"__v{self._made}"

    def _all(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for node in nodes:
            found = self.visit(node)
            done.extend(found if isinstance(found, list) else [found])
        return done

    def _expr(self, node: ast.expr) -> ast.expr:
        return cast("ast.expr", self.visit(node))

    def _unknown(self, names: Iterable[str]) -> list[ast.stmt]:
        """Statements after which nothing is known of these names."""
        return [_set(name, _call("__hole", ast.Constant(shown_name(name)))) for name in names]

    # Expressions

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        sign = _OPERATORS[type(node.op)]
        return _call("__op", ast.Constant(sign), self._expr(node.left), self._expr(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            return _call("__not", self._expr(node.operand))
        if isinstance(node.operand, ast.Constant):
            return node
        return _call("__un", ast.Constant(_OPERATORS[type(node.op)]), self._expr(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        signs = _data([_OPERATORS[type(op)] for op in node.ops])
        values: list[ast.expr] = [self._expr(value) for value in (node.left, *node.comparators)]
        return _call("__cmp", signs, ast.List(values, ast.Load()))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        word = "and" if isinstance(node.op, ast.And) else "or"
        made = self._expr(node.values[-1])
        for place in range(len(node.values) - 2, -1, -1):
            name, left = self._new(), self._expr(node.values[place])
            rest = node.values[place + 1 :]
            if all(isinstance(part, _SIMPLE) for value in rest for part in ast.walk(value)):
                # What comes after it is safe to look at: the whole is one unknown.
                stops = _call("__stops", _let(name, left), ast.Constant(word))
                made = ast.IfExp(stops, _name(name), _call("__joined", _name(name), made, ast.Constant(word)))
            elif word == "and":
                made = ast.IfExp(_call("__truth", _let(name, left)), made, _name(name))
            else:
                made = ast.IfExp(_call("__truth", _let(name, left)), _name(name), made)
        return made

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return ast.IfExp(
            _call("__truth", self._expr(node.test)), self._expr(node.body), self._expr(node.orelse)
        )

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.slice, ast.Slice):
            parts = [node.slice.lower, node.slice.upper, node.slice.step]
            given = [ast.Constant(None) if part is None else self._expr(part) for part in parts]
            return _call("__cut", self._expr(node.value), *given)
        return _call("__get", self._expr(node.value), self._expr(node.slice))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name, value = self._new(), self._expr(node.value)
        plain = _call("__plain", _let(name, value))
        said = _call("__form", ast.Constant(f". {node.attr}"), ast.List([_name(name)], ast.Load()))
        return ast.IfExp(plain, ast.Attribute(_name(name), node.attr, ast.Load()), said)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        args = ast.List([self._expr(arg) for arg in node.args], ast.Load())
        named = ast.Dict(
            [None if word.arg is None else ast.Constant(word.arg) for word in node.keywords],
            [self._expr(word.value) for word in node.keywords],
        )
        if isinstance(node.func, ast.Name) and node.func.id.startswith("__"):
            return ast.Call(node.func, args.elts, [])
        if not isinstance(node.func, ast.Attribute):
            return _call("__call", self._expr(node.func), args, named)
        # Methods cannot be got by name in the sandbox: it is asked first what is to be done.
        owner, given, words, made = (self._new() for _ in range(4))
        asked = _call(
            "__method",
            ast.Constant(node.func.attr),
            _let(owner, self._expr(node.func.value)),
            _let(given, args),
            _let(words, named),
        )
        go = ast.Compare(_let(made, asked), [ast.Is()], [_name("__GO")])
        method = ast.Attribute(_name(owner), node.func.attr, ast.Load())
        really = ast.Call(method, [ast.Starred(_name(given), ast.Load())], [ast.keyword(None, _name(words))])
        return ast.IfExp(go, really, _name(made))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        parts: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                spec = self._expr(part.format_spec) if part.format_spec else ast.Constant("")
                letter = ast.Constant(chr(part.conversion) if part.conversion > 0 else "")
                parts.append(_call("__fmt", self._expr(part.value), letter, spec))
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
            part.iter = _call("__gen", self._expr(part.iter), _data(_spec(part.target)))
            part.ifs = [_call("__where", self._expr(test)) for test in part.ifs]
        return _call("__end", ast.Constant(kind), _call("__begin"), node)

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
        """What a function sets outside of itself is not known after a loop over unknown things."""
        if isinstance(target, ast.Name) and target.id in self._outer[-1]:
            return _call("__kept", value, ast.Constant(shown_name(target.id)))
        return value

    def _assign(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            return [ast.Expr(_call("__put", self._expr(target.value), self._expr(target.slice), value))]
        if isinstance(target, ast.Attribute):
            kept = _call("__kept", value, ast.Constant(target.attr))
            owner = ast.Attribute(self._expr(target.value), target.attr, ast.Store())
            if not isinstance(target.value, ast.Name):
                name = self._new()
                owner = ast.Attribute(_name(name), target.attr, ast.Store())
                return [_set(name, self._expr(target.value)), ast.Assign([owner], kept)]
            return [ast.Assign([ast.Attribute(target.value, target.attr, ast.Store())], kept)]
        if isinstance(target, (ast.Tuple, ast.List)):
            value = _call("__shape", value, _data(_spec(target)))
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
        sign, value, target = (
            ast.Constant(_OPERATORS[type(node.op)] + "="),
            self._expr(node.value),
            node.target,
        )
        if isinstance(target, ast.Name):
            return self._assign(target, _call("__op", sign, _name(target.id), value))
        owner, place = self._new(), self._new()
        if isinstance(target, ast.Attribute):
            made = _call("__op", sign, ast.Attribute(_name(owner), target.attr, ast.Load()), value)
            kept = _call("__kept", made, ast.Constant(target.attr))
            stored = ast.Attribute(_name(owner), target.attr, ast.Store())
            return [_set(owner, self._expr(target.value)), ast.Assign([stored], kept)]
        made = _call("__op", sign, _call("__get", _name(owner), _name(place)), value)
        return [
            _set(owner, self._expr(target.value)),
            _set(place, self._expr(target.slice)),
            ast.Expr(_call("__put", _name(owner), _name(place), made)),
        ]

    def visit_If(self, node: ast.If) -> Any:
        test = _call("__truth", self._expr(node.test))
        return ast.If(test, self._all(node.body), self._all(node.orelse))

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.Assert(_call("__assume", self._expr(node.test)), node.msg and self._expr(node.msg))

    def visit_For(self, node: ast.For) -> Any:
        loop = self._new()
        changed = _changed([node])
        begun = _call("__loop", self._expr(node.iter), _data(_spec(node.target)), _jumps(node.body))
        items = ast.Subscript(_name(loop), ast.Constant(1), ast.Load())
        body = [*self._forget(loop, _changed(node.body)), *self._all(node.body)]
        inner = ast.For(node.target, items, body, self._all(node.orelse))
        leave = ast.Subscript(_name(loop), ast.Constant(2), ast.Load())
        return self._looped(loop, begun, inner, leave, changed)

    def visit_While(self, node: ast.While) -> Any:
        loop = self._new()
        changed = _changed([node])
        begun = ast.List([ast.Constant(False), ast.Constant(None), _call("__mark")], ast.Load())
        again = _call("__again", _name(loop), self._expr(node.test), _jumps(node.body))
        body = [*self._forget(loop, changed), *self._all(node.body)]
        inner = ast.While(again, body, self._all(node.orelse))
        mark = ast.Subscript(_name(loop), ast.Constant(2), ast.Load())
        return self._looped(loop, begun, inner, ast.Subscript(mark, ast.Constant(0), ast.Load()), changed)

    def _looped(
        self, loop: str, begun: ast.expr, inner: ast.stmt, depth: ast.expr, changed: Sequence[str]
    ) -> list[ast.stmt]:
        left: list[ast.stmt] = [ast.Expr(_call("__leave", depth))]
        whole = ast.Try([inner], [], [], left)
        return [_set(loop, begun), whole, *self._forget(loop, changed)]

    def _forget(self, loop: str, names: Sequence[str]) -> list[ast.stmt]:
        unknown = ast.Subscript(_name(loop), ast.Constant(0), ast.Load())
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
            back = ast.Expr(_call("__back", _name(mark)))
            inside = [back, *self._all(handler.body)]
            handlers.append(ast.ExceptHandler(handler.type, handler.name, inside))
        whole = ast.Try(body, handlers, self._all(node.orelse), self._all(node.finalbody))
        return [_set(mark, _call("__mark")), whole]

    def _fails(self, mark: str, node: ast.Try, changed: Sequence[str]) -> list[ast.stmt]:
        """Statements that go each of the ways in which what was tried may have failed."""
        kinds = [_kind(handler) for handler in node.handlers]
        way = self._new()
        done: list[ast.stmt] = [_set(way, _call("__tried", _name(mark), _data(kinds)))]
        for number, kind in enumerate(kinds, 1):
            raised = ast.Raise(_call(kind, _call("__hole", ast.Constant("what went wrong"))))
            here = ast.Compare(_name(way), [ast.Eq()], [ast.Constant(number)])
            done.append(ast.If(here, [*self._unknown(changed), raised], []))
        return done

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
        subject, way = self._new(), self._new()
        labels = [ast.unparse(case.pattern) for case in node.cases]
        total = isinstance(node.cases[-1].pattern, ast.MatchAs) and node.cases[-1].guard is None
        asked = _call("__case", _name(subject), _data(labels if total else [*labels, "no case"]))
        known: list[ast.match_case] = []
        guessed: list[ast.stmt] = []
        bodies: list[ast.stmt] = []
        for number, case in enumerate(node.cases):
            guard = case.guard and _call("__truth", self._expr(case.guard))
            known.append(ast.match_case(case.pattern, guard, [_set(way, ast.Constant(number))]))
            names = [
                found
                for part in ast.walk(case.pattern)
                for found in (getattr(part, "name", None), getattr(part, "rest", None))
                if found
            ]
            here = ast.Compare(_name(way), [ast.Eq()], [ast.Constant(number)])
            if names:
                guessed.append(ast.If(here, self._unknown(names), []))
            bodies.append(ast.If(here, self._all(case.body), []))
        unknown = ast.Compare(_name(way), [ast.Eq()], [ast.Constant(-1)])
        looks = ast.If(unknown, [ast.Match(_name(subject), known)], guessed or [ast.Pass()])
        return [_set(subject, self._expr(node.subject)), _set(way, asked), looks, *bodies]

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
        self._arguments(node.args)
        node.body = self._all(node.body) if isinstance(node.body, list) else self._expr(node.body)
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self._expr(item) for item in node.decorator_list]
            node.returns = None
        self._outer.pop()
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
