"""Mistral: ``[TOOL_CALLS]`` and a list in JSON, or the name, ``[ARGS]`` and an object."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Family

FAMILIES = (
    Family(
        "Mistral",
        mark=rf"\[TOOL_CALLS\](?=\s*{NAME}\s*(?:\[ARGS\]|\[CALL_ID\]|\{{))",
        call=rf"(?:\[TOOL_CALLS\]\s*)?(?P<tool>{NAME})\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\]|(?=\{{))",
        shape="[TOOL_CALLS]NAME[ARGS]{…}",
    ),
    Family(
        "Mistral's lists",
        mark=r"\[TOOL_CALLS\]|(?<=[\w-])(?=\[(?:ARGS|CALL_ID)\]\s*[{\w])",
        results=(r"\[TOOL_RESULTS\]", r"\[INST\]"),
        ends=(r"\[/TOOL_CALLS\]", r"\[/INST\](?=\s*\Z)"),
        shape='[TOOL_CALLS][{"name": "…", "arguments": {…}}]',
    ),
)
