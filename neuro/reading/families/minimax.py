"""MiniMax, Anthropic, MiniCPM: ``<invoke name="…"><parameter name="…">``."""

from __future__ import annotations

from dataclasses import replace

from quoth.neuro.reading.markup import Family, invocations

_SPACE = r"(?:(?:antml|minimax|steptml):)?"
_M3 = r"\]<\]minimax\[>\["  # before each mark of MiniMax M3

FAMILIES = (
    Family(
        "MiniMax M3",
        mark=rf"{_M3}<tool_call>|(?={_M3}<invoke\b)",
        call=rf'{_M3}<invoke\s+name="(?P<tool>[^<>"\n]+)">',
        key=rf"{_M3}<(?P<name>[\w-]+)>",
        value_end=rf"{_M3}</[\w-]+>",
        end=rf"{_M3}</invoke>",
        close=rf"{_M3}</tool_call>",
        ends=(rf"{_M3}</tool_call>",),
        shape=']<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>…]<]minimax[>[</KEY>]<]minimax[>[</invoke>',
    ),
    replace(
        invocations("MiniMax", _SPACE),
        mark=rf"<{_SPACE}(?:function_calls|tool_calls?)>\s*+(?=<{_SPACE}invoke\b)|(?=<{_SPACE}invoke\s+name=)|(?=<function\s+name=\"[^\"\n]+\">\s*<param)"
        r"|<minimax:tool_call>|<function_calls>",
        close=rf"</{_SPACE}(?:function_calls|tool_calls?)>",
        ends=(r"</(?:antml|minimax):(?:function_calls|tool_call)>", r"\[e~\["),
        results=(r"<(?:antml:)?function_results>", r"\]~b\](?:user|tool)"),
        shape='<invoke name="NAME"><parameter name="KEY">…</parameter></invoke>',
    ),
)
