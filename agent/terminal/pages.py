"""Pages about rules and tools: the rules that apply, how they judge a call, and the description of a tool.

Runs no call. Macro expansion is safe here, because the user wrote the source of the tool.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quoth.neuro.reading.tag_lines import tag_line
from quoth.tools.lisp.forms import canonical
from quoth.tools.lisp.printer import pretty, show
from quoth.tools.policy.model import CAREFUL, Limit
from quoth.tools.registry.returns import free_text_words
from quoth.tools.registry.roles import always_asks, destinations
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.tool import ServedTool
from quoth.tools.text import number_of, short
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.call.call import Call, Verdict
    from quoth.tools.policy.policy import Explanation, Layer, Match, RulesPolicy


# Rules


FORM = 400  # characters shown of a session's call


def rules_line(policy: RulesPolicy) -> str:
    """The rules that apply, on one line: ``3 rules of ~/.config/quoth/policy.hy``."""
    told = [f"{layer_contents(layer)} of {layer.name}" for layer in policy.layers if layer.kind != "shipped"]
    return ", ".join(told) or "none of yours; quoth asks you before it changes anything"


def layer_contents(layer: Layer) -> str:
    rules, limits = len(layer.orders.rules), len(layer.orders.limits)
    told = [number_of(rules, "rule")] if rules or not layer.orders.careful else []
    told += [number_of(limits, "limit")] if limits else []
    told += [f"effects of {number_of(stated, 'tool')}"] if (stated := len(layer.orders.effects)) else []
    return ", ".join([*told, *([layer.orders.careful_text] if layer.orders.careful else [])])


def rules_page(policy: RulesPolicy, session: Sequence[str] = ()) -> str:
    """All rules that apply, each with its place; first those of the ``session``."""
    lines = [*map(visible, session)]
    for layer in policy.layers:
        for rule in layer.orders.rules:
            passed = (
                "  (ignored, because a workspace may only tighten the rules)" if layer.ignores(rule) else ""
            )
            lines.append(f"{rule.place}  {visible(rule.text)}{passed}")
        lines += [f"{limit.place}  {visible(limit.text)}  (a limit)" for limit in layer.orders.limits]
        lines += [f"{one.place}  {visible(one.text)}" for one in layer.orders.effects]
        careful = f"{layer.orders.careful_text}  (where no rule decides)"
        lines += [f"{place}  {careful}" for place in layer.orders.careful]
    lines += policy.notes
    return "\n".join(lines) or "You have no rules; quoth asks you before it changes anything."


def explanation_lines(call: Call, why: Explanation, limits: list[Limit]) -> list[str]:
    lines = []
    if call.written:
        lines.append(f"The rules see {canonical(call.form)}, because {'; '.join(call.written)}.")
    lines.append(f"{why.verdict.kind}: {visible(why.verdict.reason)}.")
    lines += [
        f"  {match.rule.place}  {visible(match.rule.text)}{_standing(match, why)}" for match in why.matches
    ]
    lines += [f"  {limit.place}  {limit.text}  (a limit)" for limit in limits]
    if why.decided is not None:
        rule = "Without rules" if why.default.rule != CAREFUL else "By (careful) alone"
        lines.append(f"{rule}: {why.default.kind}, because {visible(why.default.reason)}.")
    elif why.verdict.rule == CAREFUL:
        lines.append("No rule decides; (careful) does.")
    elif not why.matches and not limits:
        named = (
            " A rule that allows this call must name :network."
            if call.form.args.get("network") is True
            else ""
        )
        lines.append(f"No rule matches.{named}")
    return lines


def _standing(match: Match, why: Explanation) -> str:
    notes = []
    if match == why.decided:
        notes.append("decides")
    if match.layer.ignores(match.rule):
        notes.append("ignored, because a workspace may only tighten the rules")
    elif match.truth is None:
        counts = "applies" if match.counts else "does not apply"
        notes.append(f"cannot be decided, so it {counts}")
    return f"  ({'; '.join(notes)})" if notes else ""


def past_call_lines(name: str, form: str, said: Verdict) -> list[str]:
    """The present verdict on a call of a session, in two lines."""
    return [f"{name}  {said.kind:<5}  {short(visible(form), FORM)}", f"    {visible(said.reason)}."]


def past_calls_line(session: str, counts: Mapping[str, int]) -> str:
    """The number of a session's calls with each verdict."""
    whole = sum(counts.values())
    if not whole:
        return f"No call of session {session} does more than read."
    told = f"asked about: {counts['ask']}, denied: {counts['deny']}, allowed: {counts['allow']}"
    return f"Calls that do more than read: {whole}; {told}."


# One tool


def _served_lines(served: ServedTool) -> dict[str, str]:
    """Where a tool of an MCP server runs, and what that says of it."""
    says = {"says": ", ".join(served.says)} if served.says else {}
    called = visible(served.tool) if served.tool else "its resources or prompts"
    return {"run by": f"the MCP server {served.server}: {called}", "digest": served.digest, **says}


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
        **({"run by": f"a worker of {tool.remote}"} if tool.remote else {}),
        **(_served_lines(tool.served) if tool.served is not None else {}),
        "timeout": f"{tool.timeout:g} s",
        **({"returns": str(tool.returns)} if tool.returns else {}),
        **({"free text": free_text_words(tool.texts)} if tool.texts is not None else {}),
        **({"destinations": ", ".join(map(str, places))} if places else {}),
        **({"always asks": asks} if asks else {}),
        **({"tag": tag_line(tool)} if tag else {}),
        **({"pattern": f"{tag.pattern} for {', '.join(tag.groups)}"} if tag and tag.pattern else {}),
        **(
            {"background": "never; it is stopped when its caller stops waiting"} if tool.no_background else {}
        ),
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
    """Return the source form after each step of its macro expansion; empty for a tool defined in Python."""
    if not tool.form or not tool.source.startswith("("):
        return []
    import hy
    import hy.macros
    from hy.errors import HyError

    module = sys.modules.get(tool.module)
    if module is not None and not getattr(module, "_hy_macros", None):
        # quoth's own files require their macros only while compiling.
        hy.macros.require("quoth.tools.macros", module, assignments="ALL")
    texts: list[str] = []
    try:
        form: Any = hy.read(tool.source)
    except HyError:  # it uses reader macros of the person
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
    """The expansion without its copies of the source text and form, which the page shows above."""
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
