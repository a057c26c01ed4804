"""Qwen 3 Coder, Qwen 3.5, Nemotron 3, Seed: ``<function=…>`` with ``<parameter=…>``; Llama's and
functionary's ``<function=…>{…}``."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Family

FAMILIES = (
    Family(
        "Qwen",
        mark=r"(?:<(?:seed:)?tool_call>\s*+)?+(?=<function=)|(?=<parameter=[^<>\n]+>)",
        call=rf"<function=(?P<tool>{NAME})>",
        key=r"<parameter=(?P<name>[^<>\n]+)>",
        # In long conversations models omit the mark of the last value; it then ends with the call.
        value_end=r"</parameter>|(?=\n\s*+</function>\s*+(?:</tool_call>|\Z))",
        end="</function>",
        stray="<function=|(?P<stray></(?:function|parameter)>)",
        close=r"</(?:seed:)?tool_call>",
        ends=(r"</seed:tool_call>",),
        shape="<tool_call><function=NAME><parameter=KEY>…</parameter></function></tool_call>",
    ),
)
