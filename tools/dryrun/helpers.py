"""The source of a dry run's helper functions for the sandbox, made of two Python files.

Knows which files, and Python's syntax; it must not know what the helpers do, or for which program.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from functools import cache

from quoth.tools.dryrun import operations, runtime

PREFIX = "__dry_"  # of the helpers' names, which no program can say
CHOOSE, NOTE = PREFIX + "choose", PREFIX + "note"  # which the host answers


def helpers(word: str) -> str:
    """The Python source of the helpers, for a run whose unknowns are marked by ``word``."""
    return _helpers().replace(runtime.WORD, word)


@cache
def _helpers() -> str:
    """The helpers as the sandbox runs them: without types, and each name, Python's too, behind the prefix, so
    that nothing the program defines can change them."""
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
    """The variables that a statement outside of functions sets."""
    targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
    nodes = [node for target in targets if target is not None for node in ast.walk(target)]
    return [node for node in nodes if isinstance(node, ast.Name)]
