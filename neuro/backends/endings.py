"""What the finish reasons of servers mean: one table for all protocols.

Data, and the look-up in it. A reason that is not in the table is not the end of an answer.
"""

from __future__ import annotations

import re
from typing import Any

# By what a reply with that reason is; the reasons in lower case, with underscores.
_REASONS = {
    "stop": "stop tool_calls tool_call tool_use function_call end_turn end_of_turn end stop_sequence "
    "stop_token eos eos_token done complete completed finished",
    "length": "length max_tokens max_output_tokens max_completion_tokens max_length model_length token_limit "
    "model_context_window_exceeded",
    "refused": "content_filter content_filtered refusal safety sensitive recitation blocklist "
    "prohibited_content spii image_safety guardrail_intervened moderation data_inspection_failed",
    "malformed": "malformed_function_call malformed_response malformed_tool_use malformed_model_output "
    "malformed_tool_call unexpected_tool_call too_many_tool_calls",
}
FINISHES = (None, *_REASONS)  # of an answer; None is a stream whose server did not say it
ENDINGS = {reason: ending for ending, reasons in _REASONS.items() for reason in reasons.split()}


def ending_of(reason: Any) -> str:
    """How a reply ended: ``stop``, ``length``, ``refused``, ``malformed`` (its calls could not be read by the
    server), or the reason itself where that is none of them. Gateways put words and a colon before it."""
    said = str(reason)
    plain = (re.sub(r"[^a-z0-9]+", "_", one.lower()).strip("_") for one in (said, said.rpartition(":")[2]))
    return next((ENDINGS[one] for one in plain if one in ENDINGS), said)
