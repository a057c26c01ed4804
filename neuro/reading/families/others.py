"""Families whose calls are JSON or Python's syntax after a special mark; Llama's ``<function=…>`` is in
qwen.py."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Family

FAMILIES = (
    Family(
        "Llama",
        mark=r"<\|python_(?:tag|start)\|>",
        ends=(
            r"<\|(?:python_end|end_of_text|eo[tm](?:_id)?|start_header_id\|>assistant<\|end_header_id)\|>",
        ),
        results=(r"<\|start_header_id\|>(?:ipython|tool|user)",),
        shape='<|python_tag|>{"name": "…", "parameters": {…}}',
    ),
    Family(
        "Command R",
        mark=r"<\|START_ACTION\|>",
        ends=(r"<\|(?:END_ACTION|(?:START|END)_(?:RESPONSE|TEXT)|END_OF_TURN_TOKEN|CHATBOT_TOKEN)\|>",),
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
    # Functionary 3.2; ``>>>all`` begins words.
    Family(
        "functionary",
        mark=rf"(?=>>>(?:all[ \t]*\n|{NAME}[ \t]*\n\s*\{{))",
        call=rf">>>(?!all[ \t]*\n)(?P<tool>{NAME})[ \t]*\n",
        words=r">>>all[ \t]*\n",
        shape=">>>NAME\n{…}",
    ),
)
