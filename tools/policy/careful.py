"""The default verdict where a policy file says ``(careful)``: what does more than read is asked about, unless
the person or a field of a result has named each place that it goes to.

It knows origins and what tools declare; it must not know rules, files or sessions. It is a fence for
destinations: what a text means is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from quoth.tools.call.call import Verdict
from quoth.tools.call.canonical import paths_in
from quoth.tools.call.values import UNKNOWN
from quoth.tools.errors import ToolError
from quoth.tools.origin.leaves import leaves, links_of
from quoth.tools.origin.links import links
from quoth.tools.policy.effects import IN_WORDS, by_effects, changes_nothing
from quoth.tools.policy.model import CAREFUL
from quoth.tools.policy.origins import in_words, is_shown, keys_in, origin_of
from quoth.tools.policy.predicates import EvaluationContext, Noted
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.roles import (
    Destination,
    always_asks,
    destinations,
    fields_of,
    names_content,
    names_destination,
)
from quoth.tools.registry.table import CognitiveTool

TOLD = 3  # arguments and links in a verdict

Careful: TypeAlias = Callable[[Mapping[str, Any], EvaluationContext], Verdict]


def careful_of(tool: CognitiveTool) -> Careful:
    """The verdict on calls of a tool that no rule decides. Its reason says which argument, and where that is
    from."""
    usual = by_effects(tool)
    if changes_nothing(tool):
        return lambda args, facts: usual
    if why := always_asks(tool) or (IN_WORDS["runs"] if "runs" in tool.effects else ""):
        return lambda args, facts: Verdict("ask", why, CAREFUL)
    named = {destination.name: destination for destination in destinations(tool)}

    def judge(args: Mapping[str, Any], facts: EvaluationContext) -> Verdict:
        known: list[Noted | str] = []
        strange: list[Noted | str] = []
        for param in tool.params:
            value = args.get(param.name)
            if param.own is not None and value is not UNKNOWN:  # what was given, and no object of its class
                value = facts.call.form.args.get(param.name)
            if value is UNKNOWN:
                strange.append(f"what :{param.name} will be is not known yet")
            elif type(value) is not type(param.default) or value != param.default:
                for noted in _destinations_in(value, param, named.get(param.name), facts):
                    is_known = not isinstance(noted, str) and noted.origin.known
                    (known if is_known else strange).append(noted)
        told = strange or known
        shown = [one if isinstance(one, str) else in_words(one, facts) for one in told[:TOLD]]
        origin = "; ".join(shown) + (f"; and {len(told) - TOLD} more" if len(told) > TOLD else "")
        reason = f"{usual.reason}, and {origin or 'names no place that it goes to'}"
        return Verdict("ask" if strange else "allow", reason, CAREFUL, origin=origin)

    return judge


def _destinations_in(
    value: Any, param: Param, named: Destination | None, facts: EvaluationContext
) -> Iterator[Noted | str]:
    """The destinations in an argument, each with its origin; a sentence where nobody can tell that."""
    if named is None:
        places = [link.text for link in links_of(value, shown=is_shown(facts)) if link.kind != "path"]
        if not param.role:
            paths = (one for one in leaves(value) if _is_path(one) and _leads_outside(one, facts))
            places = list(dict.fromkeys([*places, *paths, *_named_in(value)]))
    elif named.outside:
        places = [path for path in paths_in(value) if _leads_outside(path, facts)]
    elif named.assumed:
        inside = (link.text for link in links_of(value, shown=True) if link.kind != "path")
        assumed = (one for one in _assumed_in(value) if not _is_path(one) or _leads_outside(one, facts))
        places = list(dict.fromkeys([*inside, *assumed]))
    else:
        places = list(dict.fromkeys([*keys_in(value, fields_of(param)), *leaves(value)]))
    for place in places:
        origin = origin_of(place, facts)
        if origin is None:
            yield f"where :{param.name} comes from is not known here"
            return
        yield Noted(param.name, place, origin, named is None and place != value)


def _named_in(value: Any) -> Iterator[Any]:
    """What stands under keys that are named as destinations are, in data that its tool does not describe."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item) if names_destination(str(key)) else _named_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _named_in(item)


def _assumed_in(value: Any) -> Iterator[Any]:
    """What may be a destination in the value of a parameter that its name does not tell: not what stands
    under keys that are named as contents are, and no date, time or amount."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from () if names_content(str(key)) else _assumed_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _assumed_in(item)
    else:
        yield from (
            leaf for leaf in leaves(value) if not (isinstance(leaf, str) and _MEASURE.fullmatch(leaf))
        )


_DAY = r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?"
_AMOUNT = r"[-+]?[$€£]?\s?\d{1,3}(?:[,. ]?\d{3}){0,2}(?:[.,]\d{1,4})?\s?[$€£%]?"
_MEASURE = re.compile(rf"\s*(?:(?:{_DAY})(?:[T ]+{_TIME})?|{_TIME}|{_AMOUNT})\s*", re.ASCII)


def _is_path(value: Any) -> bool:
    """Whether a text is a path that may lead elsewhere, and nothing else."""
    found = next(links(value), None) if isinstance(value, str) else None
    return found is not None and found.kind == "path" and found.text == value.strip()


def _leads_outside(path: str, facts: EvaluationContext) -> bool:
    try:
        return facts.trail(path) is None
    except ToolError:
        return True
