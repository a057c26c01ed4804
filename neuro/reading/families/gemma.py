"""Gemma: ``call:NAME{key:value}`` with texts between special marks; ``tool_code`` is a fence."""

from __future__ import annotations

import json
import re

from quoth.neuro.reading.literals import NotRead, read_literal
from quoth.neuro.reading.markup import NAME, Cursor, Family

_MARK = re.compile(r'(?P<quote><escape>|<\|"\|>)|(?P<end><end_function_call>|<tool_call\|>)')
_END = r"<end_function_call>|<tool_call\|>"


def _as_json(at: Cursor) -> str:
    """The arguments up to the end mark, with texts in double quotes."""
    pieces: list[str] = []
    while found := _MARK.search(at.text, at.position):
        pieces.append(at.text[at.position : found.start()])
        if found["end"]:
            at.position = found.start()
            return "".join(pieces)
        stop = at.text.find(found["quote"], found.end())
        if stop < 0:
            raise NotRead("a text is never closed", found.start(), True)
        pieces.append(json.dumps(at.text[found.end() : stop]))
        at.position = stop + len(found["quote"])
    rest = at.text[at.position :]
    at.position = len(at.text)
    return "".join(pieces) + rest


def read(at: Cursor) -> None:
    while found := at.begin(rf"call:({NAME})\s*(?=[{{(])"):
        start = at.position
        data = _as_json(at)
        if data.startswith("("):  # some models write the brackets of a call
            data = f"{{{data[1:].rstrip().removesuffix(')')}}}"
        try:
            value = read_literal(data, 0)
        except NotRead as error:
            raise NotRead(str(error), start, error.incomplete) from None
        if data[value.end :].strip():
            raise NotRead("its end mark is missing", start)
        at.take(_END)
        at.add(found[1], value.value)
        at.take(r"<start_function_call>|<\|tool_call>")


FAMILIES = (
    Family(
        "Gemma",
        mark=rf"<start_function_call>|<\|tool_call>|(?<![^\n>])(?=call:{NAME}[{{(])",
        read=read,
        ends=(_END, r"<eos>(?=\s*\Z)", r"<end_of_turn>", r"<turn\|>", r"<\|turn>model"),
        results=(r"<start_function_response>", r"<\|tool_response>", r"<start_of_turn>user", r"<\|turn>user"),
        shape="<start_function_call>call:NAME{key:<escape>…<escape>}<end_function_call>",
    ),
    Family("Gemma 3", mark="<tool_code>", ends=("</tool_code>",), shape="```tool_code\nNAME(key=…)\n```"),
)
