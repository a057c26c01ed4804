"""Hermes, Qwen 2.5 and many others: JSON in ``<tool_call>``; ChatML's marks."""

from __future__ import annotations

from quoth.neuro.reading.markup import Family

FAMILIES = (
    Family(
        "Hermes",
        mark=r"<(?i:\|?(?:tool_?calls?|function_?calls?)\|?|tool_use)>",
        ends=(
            r"<(?:/\|?|\|/)(?i:tool_?calls?|function_?calls?|tool_use)\|?>",
            r"<\|im_end\|>(?:\s*<\|im_start\|>assistant)?",
            r"<\|endoftext\|>",
            r"</s>(?=\s*\Z)",
        ),
        results=(r"<(?:tool|function)_(?:response|result)s?>", r"<\|im_start\|>(?:user|tool)"),
        shape='<tool_call>{"name": "…", "arguments": {…}}</tool_call>',
    ),
)
