"""Kimi K2: ``functions.NAME:0`` and JSON, in a section of calls."""

from __future__ import annotations

from quoth.neuro.reading.markup import Family

_BEGIN, _END = r"<\|tool_call_begin\|>", r"<\|tool_call_end\|>"
_SECTION_END = r"<\|tool_calls?_section_end\|>"

FAMILIES = (
    Family(
        "Kimi",
        mark=r"<\|tool_calls?_section_begin\|>|(?=<\|tool_call_(?:argument_)?begin\|>)",
        call=rf"{_BEGIN}(?:\s*(?P<tool>[\w./-]{{1,140}})(?::\d+)?\s*<\|tool_call_argument_begin\|>)?",
        end=_END,
        close=_SECTION_END,
        ends=(_SECTION_END, r"<\|im_(?:assistant|middle)\|>"),
        shape="<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}"
        "<|tool_call_end|><|tool_calls_section_end|>",
    ),
)
