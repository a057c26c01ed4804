"""Which of several forms lacks its closing bracket: a form that begins where an open one began is the next.

Knows the frames of the reader; it must not know texts or errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from hy.models import Expression, Object

from quoth.tools.lisp.lexicon import Frame


def form_after(stack: Sequence[Frame]) -> tuple[int, int] | None:
    """How many of the frames were open where the form began that is likely to be the next one, and how many
    lines below the outermost open form that is: no further to the right. None if there is no such form."""
    outer = stack[0]
    for depth, frame in enumerate(stack, 1):
        found = [_place(item) for item in frame.items if isinstance(item, Expression)]
        if depth < len(stack) and stack[depth].opener == "(":
            found.append((stack[depth].line, stack[depth].column))
        for line, column in found:
            if line > outer.line and column == outer.column:
                return depth, line - outer.line
    return None


def _place(item: Object) -> tuple[int, int]:
    return item.start_line, item.start_column
