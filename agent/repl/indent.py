"""Where the next line of a form begins.

By the rules of Lisp: in a list under its first item, in a call under its first argument, in a form with a
body two columns in. Knows text only.
"""

from __future__ import annotations

from quoth.agent.repl.typed import Frame, read_typed

# Forms whose further lines are a body, whatever stands on their first line; and all def… and with….
BODIES = {"fn", "lambda", "let", "when", "unless", "for", "while", "match", "except", "eval-and-compile"}
# The same, unless the first item of the body stands on the line of the name: then under that.
UNDER_FIRST = {"do", "cond", "try", "else", "finally", "lfor", "dfor", "sfor", "gfor"}


def indentation(before: str) -> str:
    """The blanks of a new line after ``before``; none outside of a form, and in a string."""
    typed = read_typed(before)
    if not typed.open or typed.in_string:
        return ""
    return " " * _column(before, typed.open[-1])


def _column(text: str, frame: Frame) -> int:
    opener = frame.opener
    inside = _width(text, opener.end)
    if opener.text != "(" or not frame.items:
        return inside
    name, first = frame.head, frame.items[1] if len(frame.items) > 1 else None
    if name in BODIES or name.startswith(("def", "with")):
        return inside + 1
    if name and first is not None and "\n" not in text[opener.start : first.start]:
        return _width(text, first.start)
    return inside + (name in UNDER_FIRST)


def _width(text: str, offset: int) -> int:
    """The column of a place in the text, on a screen: some characters take two."""
    from prompt_toolkit.utils import get_cwidth

    return get_cwidth(text[text.rfind("\n", 0, offset) + 1 : offset])
