"""Shows rules to a person: which count and where they come from, and how a call was judged by them.

Knows policies and calls as data; it makes no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quoth.tools.lisp.forms import canonical
from quoth.tools.policy.model import CAREFUL
from quoth.tools.text import number_of, short
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.call.call import Call, Verdict
    from quoth.tools.policy.model import Limit
    from quoth.tools.policy.policy import Explanation, Layer, Match, RulesPolicy

FORM = 400  # characters of a call of a session


def rules_line(policy: RulesPolicy) -> str:
    """Which rules count, on one line: ``3 rules of ~/.config/quoth/policy.hy``."""
    told = [f"{layer_contents(layer)} of {layer.name}" for layer in policy.layers if layer.kind != "shipped"]
    return ", ".join(told) or "none of yours; you are asked before anything is changed"


def layer_contents(layer: Layer) -> str:
    rules, limits = len(layer.orders.rules), len(layer.orders.limits)
    told = [number_of(rules, "rule")] if rules or not layer.orders.careful else []
    told += [number_of(limits, "limit")] if limits else []
    return ", ".join([*told, *(["(careful)"] if layer.orders.careful else [])])


def rules_page(policy: RulesPolicy) -> str:
    """All rules that count, each with its place."""
    lines = []
    for layer in policy.layers:
        for rule in layer.orders.rules:
            passed = "  (passed over, for a workspace may only tighten)" if layer.ignores(rule) else ""
            lines.append(f"{rule.place}  {visible(rule.text)}{passed}")
        lines += [f"{limit.place}  {visible(limit.text)}  (a limit)" for limit in layer.orders.limits]
        lines += [f"{place}  (careful)  (where no rule decides)" for place in layer.orders.careful]
    lines += policy.notes
    return "\n".join(lines) or "There is no rule of yours; you are asked before anything is changed."


def explanation_lines(call: Call, why: Explanation, limits: list[Limit]) -> list[str]:
    lines = []
    if call.written:
        lines.append(f"It is judged as {canonical(call.form)}, for {'; '.join(call.written)}.")
    lines.append(f"{why.verdict.kind}: {visible(why.verdict.reason)}.")
    lines += [
        f"  {match.rule.place}  {visible(match.rule.text)}{_standing(match, why)}" for match in why.matches
    ]
    lines += [f"  {limit.place}  {limit.text}  (a limit)" for limit in limits]
    if why.decided is not None:
        rule = "Without rules" if why.default.rule != CAREFUL else "By (careful) alone"
        lines.append(f"{rule}: {why.default.kind}, for {visible(why.default.reason)}.")
    elif why.verdict.rule == CAREFUL:
        lines.append("No rule decides; (careful) does.")
    elif not why.matches and not limits:
        named = " One that allows it has to name :network." if call.form.args.get("network") is True else ""
        lines.append(f"No rule matches.{named}")
    return lines


def _standing(match: Match, why: Explanation) -> str:
    notes = []
    if match == why.decided:
        notes.append("decides")
    if match.layer.ignores(match.rule):
        notes.append("passed over, for a workspace may only tighten")
    elif match.truth is None:
        counts = "counts" if match.counts else "does not count"
        notes.append(f"cannot be decided, so it {counts}")
    return f"  ({'; '.join(notes)})" if notes else ""


def past_call_lines(name: str, form: str, said: Verdict) -> list[str]:
    """How a call of a session is judged now."""
    return [f"{name}  {said.kind:<5}  {short(visible(form), FORM)}", f"    {visible(said.reason)}."]


def past_calls_line(session: str, counts: Mapping[str, int]) -> str:
    """How many of a session's calls are judged in which way."""
    whole = sum(counts.values())
    if not whole:
        return f"No call of session {session} does more than read."
    told = f"asked about: {counts['ask']}, denied: {counts['deny']}, made unasked: {counts['allow']}"
    return f"Calls that do more than read: {whole}; {told}."
