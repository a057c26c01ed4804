"""Families whose calls are JSON, or Python's syntax, behind a mark of their own."""

from __future__ import annotations

from quoth.neuro.reading.markup import Family

FAMILIES = (
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
