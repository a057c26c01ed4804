"""Hermes, Qwen 2.5 and many others: JSON in ``<tool_call>``; ChatML's marks."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Family

FAMILIES = (
    Family(
        "Hermes",
        mark=r"(?=<tool_call\s+name=)",
        call=rf'<tool_call\s+(?:name="(?P<tool>{NAME})"[^<>\n]{{0,80}}>)?',
        end="</tool_call>",
        shape='<tool_call name="NAME">{…}</tool_call>',
    ),
    Family(
        "Hermes",
        mark=r"<(?i:\|?(?:tool_?calls?|function_?calls?)\|?|tool_use)>",
        ends=(
            r"<(?:/\|?|\|/)(?i:tool_?calls?|function_?calls?|tool_use)\|?>",
            r"</tool_call\Z",
            r"<\|(?:im_end|endoftext)\|>",
            r"<\|im_start\|>(?!user|tool|system)(?:assistant\n?)?",
            r"(?:\A|(?<=</think>)|(?<=</think>\n))<answer>(?=[^<]*+</answer>)",
            r"</(?:answer|s)>(?=\s*\Z)",
        ),
        results=(r"<(?:tool|function)_(?:response|result)s?>", r"<\|im_start\|>(?:user|tool)"),
        shape='<tool_call>{"name": "…", "arguments": {…}}</tool_call>',
    ),
)
