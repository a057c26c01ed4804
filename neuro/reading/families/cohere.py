"""Command R and A: a list in JSON between marks of an action."""

from __future__ import annotations

from quoth.neuro.reading.markup import Family

FAMILIES = (
    Family(
        "Command R",
        mark=r"<\|START_ACTION\|>",
        ends=(
            r"<\|END_ACTION\|>",
            r"<\|(?:START|END)_(?:RESPONSE|TEXT)\|>",
            r"<\|END_OF_TURN_TOKEN\|>",
            r"<\|CHATBOT_TOKEN\|>",
        ),
        results=(r"<\|START_TOOL_RESULT\|>", r"<\|START_OF_TURN_TOKEN\|><\|(?:USER|SYSTEM)_TOKEN\|>"),
        shape='<|START_ACTION|>[{"tool_name": "…", "parameters": {…}}]<|END_ACTION|>',
    ),
)
