"""MiniMax, Anthropic, MiniCPM: ``<invoke name="…"><parameter name="…">``."""

from __future__ import annotations

from quoth.neuro.reading.markup import Cursor, Family, read_invocations

_SPACE = r"(?:(?:antml|minimax|steptml):)?"


def read(at: Cursor) -> None:
    read_invocations(at, _SPACE)
    at.take(rf"</{_SPACE}(?:function_calls|tool_calls?)>")


_M3 = r"\]<\]minimax\[>\["  # before each mark of MiniMax M3


def read_m3(at: Cursor) -> None:
    while True:
        at.begin()
        found = at.take(rf'{_M3}<invoke\s+name="([^">\n]+)">')
        if found is None:
            break
        end = rf"{_M3}</invoke>"
        values = at.parameters(rf"{_M3}<(?P<name>[\w-]+)>", rf"{_M3}</[\w-]+>", end)
        at.ends(end)
        at.add(found[1], values)
    at.take(rf"{_M3}</tool_call>")


FAMILIES = (
    Family(
        "MiniMax M3",
        mark=rf"{_M3}<tool_call>|(?={_M3}<invoke\b)",
        read=read_m3,
        ends=(rf"{_M3}</tool_call>",),
        shape=']<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>…]<]minimax[>[</KEY>]<]minimax[>[</invoke>',
    ),
    Family(
        "MiniMax",
        mark=rf"<{_SPACE}(?:function_calls|tool_calls?)>\s*+(?=<{_SPACE}invoke\b)|(?=<{_SPACE}invoke\s+name=)|(?=<function\s+name=\"[^\"\n]+\">\s*<param)"
        r"|<minimax:tool_call>|<function_calls>",
        read=read,
        ends=(r"</(?:antml|minimax):(?:function_calls|tool_call)>", r"\[e~\["),
        results=(r"<(?:antml:)?function_results>", r"\]~b\](?:user|tool)"),
        shape='<invoke name="NAME"><parameter name="KEY">…</parameter></invoke>',
    ),
)
