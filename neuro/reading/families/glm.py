"""GLM: the name of the tool, then ``<arg_key>`` and ``<arg_value>`` by turns, in ``<tool_call>``."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Cursor, Family, tool_name

_END = r"</tool_call>"


def read(at: Cursor) -> None:
    at.begin()
    name = at.need(NAME, "the name of the tool")[0]
    if at.take(r"(?=[{`])"):
        at.add(tool_name(name), at.object(_END))
        at.take(_END)
        return
    values = at.parameters(r"<arg_key>(?P<name>[^<>\n]+)</arg_key>\s*<arg_value>", "</arg_value>", _END)
    at.ends(_END)
    at.add(tool_name(name), values)


FAMILIES = (
    Family(
        "GLM",
        mark=rf"<tool_call>\s*+(?={NAME}\s*(?:<arg_key>|</tool_call>|[{{`]|\n))|(?=<arg_key>)",
        read=read,
        ends=(r"<\|assistant\|>", r"<\|(?:user|observation)\|>(?=\s*\Z)"),
        results=(r"<\|observation\|>", r"<\|user\|>"),
        shape="<tool_call>NAME<arg_key>KEY</arg_key><arg_value>…</arg_value></tool_call>",
    ),
)
