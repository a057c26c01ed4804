"""Llama 3 and 4: JSON or calls in Python's syntax behind a tag; ``<function=…>`` is in qwen.py."""

from __future__ import annotations

from quoth.neuro.reading.markup import Family

FAMILIES = (
    Family(
        "Llama",
        mark=r"<\|python_(?:tag|start)\|>",
        ends=(
            r"<\|python_end\|>",
            r"<\|e(?:ot|om)_id\|>",
            r"<\|end_of_text\|>",
            r"<\|eo[tm]\|>",
            r"<\|start_header_id\|>assistant<\|end_header_id\|>",
        ),
        results=(r"<\|start_header_id\|>(?:ipython|tool|user)",),
        shape='<|python_tag|>{"name": "…", "parameters": {…}}',
    ),
)
