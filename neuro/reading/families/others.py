"""Families whose calls are JSON, or Python's syntax, behind a mark of their own; Llama's
``<function=…>`` is in qwen.py."""

from __future__ import annotations

from quoth.neuro.reading.markup import Family

FAMILIES = (
    Family(
        "Llama",
        mark=r"<\|python_(?:tag|start)\|>",
        ends=(
            r"<\|python_end\|>",
            r"<\|e(?:ot|om)_id\|>",
            r"<\|end_of_text\|>",
            r"<\|eo[tm]\|>",
            r"<\|start_header_id\|>assistant<\|end_header_id\|>",
        ),
        results=(r"<\|start_header_id\|>(?:ipython|tool|user)",),
        shape='<|python_tag|>{"name": "…", "parameters": {…}}',
    ),
    Family(
        "Command R",
        mark=r"<\|START_ACTION\|>",
        ends=(
            r"<\|END_ACTION\|>",
            r"<\|(?:START|END)_(?:RESPONSE|TEXT)\|>",
            r"<\|END_OF_TURN_TOKEN\|>",
            r"<\|CHATBOT_TOKEN\|>",
        ),
        results=(r"<\|START_TOOL_RESULT\|>", r"<\|START_OF_TURN_TOKEN\|><\|(?:USER|SYSTEM)_TOKEN\|>"),
        shape='<|START_ACTION|>[{"tool_name": "…", "parameters": {…}}]<|END_ACTION|>',
    ),
    Family(
        "Nemotron",
        r"<TOOLCALL>",
        ends=(r"</TOOLCALL>",),
        shape='<TOOLCALL>[{"name": "…", "arguments": {…}}]</TOOLCALL>',
    ),
    Family("Phi-4", r"functools(?=\[\s*\{)", shape='functools[{"name": "…", "arguments": {…}}]'),
    Family(
        "LFM2",
        r"<\|tool_call_start\|>",
        ends=(r"<\|tool_call_end\|>",),
        results=(r"<\|tool_response_start\|>",),
        shape='<|tool_call_start|>[NAME(key="…")]<|tool_call_end|>',
    ),
    Family(
        "InternLM",
        r"<\|action_start\|>\s*(?:<\|plugin\|>)?",
        ends=(r"<\|action_end\|>",),
        shape='<|action_start|><|plugin|>{"name": "…", "parameters": {…}}<|action_end|>',
    ),
)
