"""GLM, LongCat: the name of the tool, then ``<arg_key>`` and ``<arg_value>`` by turns, in ``<tool_call>``."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Cursor, Family

_END = r"</(?:longcat_)?tool_call>"
_KEY = r"<(?:longcat_)?arg_key>(?P<name>[^<>\n]+)</(?:longcat_)?arg_key>\s*<(?:longcat_)?arg_value>"


def read(at: Cursor) -> None:
    at.begin()
    name = at.need(NAME, "the name of the tool")[0]
    if at.take(r"(?=[{`])"):
        at.add(name, at.object(_END))
        at.take(_END)
        return
    values = at.parameters(_KEY, "</(?:longcat_)?arg_value>", _END)
    at.ends(_END)
    at.add(name, values)


FAMILIES = (
    Family(
        "GLM",
        mark=rf"<(?:longcat_)?tool_call>\s*+(?={NAME}\s*(?:<(?:longcat_)?arg_key>|{_END}|[{{`]|\n))"
        r"|<longcat_tool_call>|(?=<(?:longcat_)?arg_(?:key|value)>)",
        read=read,
        ends=(
            r"</longcat_tool_call>",
            r"<\|(?:begin|end)_of_box\|>",
            r"<\|assistant\|>",
            r"<\|(?:user|observation)\|>(?=\s*\Z)",
        ),
        results=(r"<\|observation\|>", r"<\|user\|>"),
        shape="<tool_call>NAME<arg_key>KEY</arg_key><arg_value>…</arg_value></tool_call>",
    ),
)
