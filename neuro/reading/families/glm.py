"""GLM, LongCat: the name of the tool, then ``<arg_key>`` and ``<arg_value>`` by turns, in ``<tool_call>``."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Family

_BEGIN, _END = r"<(?:longcat_)?tool_call>", r"</(?:longcat_)?tool_call>"
FAMILIES = (
    Family(
        "GLM",
        mark=rf"(?={_BEGIN}\s*+{NAME}\s*(?:<(?:longcat_)?arg_key>|{_END}|[{{`]|\n)"
        r"|<longcat_tool_call>|<(?:longcat_)?arg_(?:key|value)>)",
        call=rf"{_BEGIN}\s*(?P<tool>{NAME})",
        key=r"<(?:longcat_)?arg_key>(?P<name>[^<>\n]+)</(?:longcat_)?arg_key>\s*<(?:longcat_)?arg_value>",
        value_end="</(?:longcat_)?arg_value>",
        end=_END,
        ends=(
            r"</longcat_tool_call>",
            r"<\|(?:assistant|(?:begin|end)_of_box)\|>",
            r"<\|(?:user|observation)\|>(?=\s*\Z)",
        ),
        results=(r"<\|observation\|>", r"<\|user\|>"),
        shape="<tool_call>NAME<arg_key>KEY</arg_key><arg_value>…</arg_value></tool_call>",
    ),
)
