"""Prints one tool for a person: its schema, guard, limits, source form and macro expansions.

Knows the definition of a tool, not how it runs. Expansion is safe here: the source is the user's own.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from quoth.neuro.reading.tag_lines import tag_line
from quoth.tools.lisp.printer import pretty, show
from quoth.tools.registry.free_text import free_text_words
from quoth.tools.registry.roles import always_asks, destinations
from quoth.tools.registry.table import CognitiveTool


def tool_page(tool: CognitiveTool) -> str:
    """Return the text that ``quoth tools NAME`` prints."""
    tag = tool.tag
    places, asks = destinations(tool), always_asks(tool)
    orders = {
        "effects": ", ".join(f":{effect}" for effect in tool.effects) or "none",
        "cost": f":{tool.cost}",
        "guard": "yes" if tool.guarded else "no",
        "gate": f"yes, fails :{tool.gate_failure}" if tool.gate else "no",
        "cooldown": f"{tool.cooldown:g} s" if tool.cooldown else "none",
        "daily limit": str(tool.daily_limit) if tool.daily_limit else "none",
        **({"made by": f"a worker of {tool.remote}"} if tool.remote else {}),
        "timeout": f"{tool.timeout:g} s",
        **({"returns": str(tool.returns)} if tool.returns else {}),
        **({"free text": free_text_words(tool.texts)} if tool.texts is not None else {}),
        **({"destinations": ", ".join(map(str, places))} if places else {}),
        **({"always asks": asks} if asks else {}),
        **({"tag": tag_line(tool)} if tag else {}),
        **({"pattern": f"{tag.pattern} for {', '.join(tag.groups)}"} if tag and tag.pattern else {}),
        **({"background": "never, it is stopped when nobody waits"} if tool.no_background else {}),
        **({"ends turn": "yes, its text is the reply"} if tool.ends_turn else {}),
        **({} if tool.shown else {"shown": "to programs only"}),
    }
    parts = [
        f"{tool.signature()}\n{tool.description}",
        "\n".join(f"{name:<12} {value}" for name, value in orders.items()),
        "Schema\n" + json.dumps(tool.schema, indent=2, ensure_ascii=False),
    ]
    if tool.examples:
        parts.append("Examples\n" + "\n".join(str(example) for example in tool.examples))
    if tool.source:
        parts.append("Source form\n" + tool.source.rstrip())
    parts += [f"Expansion\n{text}" for text in expansions(tool)]
    return "\n\n".join(parts)


def expansions(tool: CognitiveTool) -> list[str]:
    """Return the source form after each step of its macro expansion; none for a tool defined in Python."""
    if not tool.form or not tool.source.startswith("("):
        return []
    import hy
    import hy.macros
    from hy.errors import HyError

    module = sys.modules.get(tool.module)
    if module is not None and not getattr(module, "_hy_macros", None):
        # Our own files require their macros while compiling only.
        hy.macros.require("quoth.tools.macros", module, assignments="ALL")
    texts: list[str] = []
    try:
        form: Any = hy.read(tool.source)
    except HyError:  # it was written with reader macros of the person's own
        return texts
    while module is not None and _is_definition(form):
        try:
            expanded = hy.macroexpand_1(form, module)
        except HyError:
            break
        if expanded == form:
            break
        texts.append(pretty(_brief(expanded)))
        form = expanded[-1] if show(expanded[0]) == "do" else expanded
    return texts


def _is_definition(form: Any) -> bool:
    return bool(form) and isinstance(form[0], str) and str(form[0]).startswith("def-")


def _brief(model: Any) -> Any:
    """The expansion without the source text and form it carries along: they are shown above."""
    import hy.models as m

    if not isinstance(model, m.Expression):
        return model
    kept, skip = [], False
    for item in model:
        if skip or (isinstance(item, m.Keyword) and item.name in ("source", "form")):
            skip = not skip
            continue
        kept.append(_brief(item))
    return m.Expression(kept)
