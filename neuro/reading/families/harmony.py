"""Harmony, the format of gpt-oss: messages in channels. One that is addressed to a tool is a call."""

from __future__ import annotations

import re

from quoth.neuro.reading.markup import Cursor, Family

_STOP = r"<\|(?:call|end|return)\|>"
_TO = re.compile(r"\bto=([\w./-]+)").search


def read(at: Cursor) -> None:
    at.begin()
    header = at.need(
        r"(?:[^<{]|<\|(?:start|channel|constrain)\|>){0,300}?(?:<\|message\|>|(?=\{)|\Z)", "<|message|>"
    )[0]
    if found := _TO(header):
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
