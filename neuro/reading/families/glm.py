"""GLM: the name of the tool, then ``<arg_key>`` and ``<arg_value>`` by turns, in ``<tool_call>``."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Cursor, Family

_END = r"</tool_call>"


def read(at: Cursor) -> None:
    at.begin()
    name = at.need(NAME, "the name of the tool")[0]
    if at.take(r"(?=[{`])"):
        at.add(name, at.object(_END))
        at.take(_END)
        return
    values = at.parameters(r"<arg_key>(?P<name>[^<>\n]+)</arg_key>\s*<arg_value>", "</arg_value>", _END)
    at.ends(_END)
    at.add(name, values)


FAMILIES = (
    Family(
        "GLM",
        mark=rf"<tool_call>\s*+(?={NAME}\s*(?:<arg_key>|</tool_call>|[{{`]|\n))|(?=<arg_(?:key|value)>)",
        read=read,
        ends=(r"<\|assistant\|>", r"<\|(?:user|observation)\|>(?=\s*\Z)"),
        results=(r"<\|observation\|>", r"<\|user\|>"),
        shape="<tool_call>NAME<arg_key>KEY</arg_key><arg_value>…</arg_value></tool_call>",
    ),
)
