"""Qwen 3 Coder, Qwen 3.5, Nemotron 3, Seed: ``<function=…>`` with ``<parameter=…>``; Llama's and
functionary's ``<function=…>{…}``."""

from __future__ import annotations

import re

from quoth.neuro.reading.literals import NotRead
from quoth.neuro.reading.markup import NAME, Cursor, Family

_OPENER = r"<parameter=(?P<name>[^<>\n]+)>"
_END = r"</function>"
# The mark of the last value is left out in long conversations; then its end is that of the call.
_CLOSER = r"</parameter>|(?=\n\s*+</function>\s*+(?:</tool_call>|\Z))"
_STRAY = re.compile(r"<function=|(?P<stray></(?:function|parameter)>)").search


def read(at: Cursor) -> None:
    while True:
        at.begin()
        found = at.take(rf"<function=(?P<tool>{NAME})>")
        if found is None:
            break
        if at.take(r"(?=\{)"):
            values = at.object(_END)
            at.take(_END)
        else:
            values = at.parameters(_OPENER, _CLOSER, _END)
            at.ends(_END)
            if (stray := _STRAY(at.text, at.position)) and stray["stray"]:
                raise NotRead("a value contains an end mark, so its end is ambiguous", at.start)
        at.add(found["tool"], values)
    at.take(r"</(?:seed:)?tool_call>")


FAMILIES = (
    Family(
        "Qwen",
        mark=r"(?:<(?:seed:)?tool_call>\s*+)?+(?=<function=)|(?=<parameter=[^<>\n]+>)",
        read=read,
        ends=(r"</seed:tool_call>",),
        shape="<tool_call><function=NAME><parameter=KEY>…</parameter></function></tool_call>",
    ),
)
