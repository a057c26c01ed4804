"""Harmony, the format of gpt-oss: messages in channels. A message addressed to a tool is a call."""

from __future__ import annotations

import re

from quoth.neuro.reading.literals import NotRead
from quoth.neuro.reading.markup import Cursor, Family

_MESSAGE = r"<\|message\|>"
_STOP = r"<\|(?:call|end|return)\|>"
_TO = re.compile(r"\bto=([\w./-]+)").search


def read(at: Cursor) -> None:
    header = at.begin(rf"(?:[^<{{]|<\|(?:start|channel|constrain)\|>){{0,300}}?(?:{_MESSAGE}|(?=\{{)|\Z)")
    if header is None:
        raise NotRead("<|message|> is missing", at.position, at.at_end)
    if found := _TO(header[0]):
        at.add(found[1], at.object(_STOP))
        at.take(_STOP)
    else:
        at.speaks = True


FAMILIES = (
    Family(
        "harmony",
        mark=r"(?=<\|(?:start|channel|message)\|>)|(?:assistant)?+(?=(?:commentary|analysis) to=functions\.)"
        r"|(?<![^\n])\s?(?=to=functions\.)",
        read=read,
        ends=(_STOP, "assistantfinal(?=[A-Z])"),
        results=(r"<\|start\|>(?:functions\.|user|tool)",),
        shape="<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>",
    ),
)
