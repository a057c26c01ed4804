"""Rules about the origins of values: the predicates ``(in-task)``, ``(links P)`` and others, the words by
which a verdict reports an origin, and ``(careful)``, which judges a call by the origins of its destinations
if no rule decides.

A value without content (nil, True, "", an empty list) has no origin: no rule is against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

from quoth.tools.call.call import ValueOrigin, Verdict
from quoth.tools.call.canonical import paths_of
from quoth.tools.call.redaction import redact
from quoth.tools.errors import ToolError
from quoth.tools.origin.leaves import leaves, links_of
from quoth.tools.origin.links import links
from quoth.tools.policy.limits import IN_WORDS, by_effects, changes_nothing
from quoth.tools.policy.model import CAREFUL
from quoth.tools.policy.predicates import ANOTHER, EvaluationContext, Noted, Predicate, Truth
from quoth.tools.registry.param_types import paths_at
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.roles import (
    SENDING,
    DestinationRole,
    always_asks,
    destinations,
    fields_of,
    names_content,
    names_destination,
)
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.values import UNKNOWN
from quoth.tools.text import short
from quoth.tools.visible import visible

SHOWN = 80  # characters of a value in a verdict
_VERBS = {"task": "is", "field": "is a", "text": "is", "model": "is"}


def origin_of(value: Any, facts: EvaluationContext) -> ValueOrigin | None:
    """The origin of one text or number of the call; None if it is not known."""
    if facts.origins is None or value is UNKNOWN or value is ANOTHER:
        return None
    return facts.origins.find(value, facts.call)


def keys_in(value: Any, fields: Collection[str]) -> Iterator[str]:
    """The keys in data that may be destinations themselves, ``{"mallory" "rw"}``: without ``fields`` and
    without names of destinations, such as ``email``."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in fields and not names_destination(str(key)):
                yield str(key)
            yield from keys_in(item, fields)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from keys_in(item, fields)


def comes_from(fits: Callable[[ValueOrigin], bool], *, every: bool) -> Predicate:
    """With ``every``: each text and number of a value has such an origin; otherwise: at least one has."""

    def test(value: Any, facts: EvaluationContext) -> Truth:
        keys = keys_in(value, _fields(facts)) if every else ()
        for leaf in (*keys, *leaves(value)):
            origin = origin_of(leaf, facts)
            if origin is None:
                return None
            facts.noted[facts.argument] = Noted(facts.argument, leaf, origin)
            if fits(origin) is not every:
                return not every
        return every

    return test


def _fields(facts: EvaluationContext) -> frozenset[str]:
    """The fields that the argument's type declares."""
    param = next((one for one in facts.tool.params if one.name == facts.argument), None)
    return fields_of(param) if param is not None else frozenset()


def of_origin(head: str, tools: frozenset[str] = frozenset()) -> Predicate:
    """The predicate of this name; ``in-field`` accepts fields of ``tools``, or of all if there are none."""
    if head == "in-task":
        return comes_from(lambda origin: origin.in_task, every=True)
    if head == "in-field":
        if not tools:
            return comes_from(lambda origin: bool(origin.fields), every=True)
        return comes_from(lambda origin: not tools.isdisjoint(origin.fields), every=True)
    kind = "text" if head == "in-text" else "model"
    return comes_from(lambda origin: origin.kind == kind, every=False)


PAGES = (".md", ".markdown", ".html", ".htm", ".xhtml", ".svg", ".org", ".eml")


def is_shown(facts: EvaluationContext) -> bool:
    """Whether a browser or a mail program will show the call's text: it sends something, or writes a page."""
    if not SENDING.isdisjoint(facts.tool.effects):
        return True
    return any(path.lower().endswith(PAGES) for path in paths_of(facts.tool, facts.call.form.args))


def of_links(predicate: Predicate) -> Predicate:
    """The predicate matches each address, host and account in a text."""

    def test(value: Any, facts: EvaluationContext) -> Truth:
        truth: Truth = True
        for link in links_of(value, shown=is_shown(facts)):
            said = predicate(link.text, facts)
            if (noted := facts.noted.get(facts.argument)) is not None:
                facts.noted[facts.argument] = noted._replace(inside=noted.value != value)
            if said is False:
                return False
            truth = truth and said
        return truth

    return test


def of_argument(name: str, predicate: Predicate) -> Predicate:
    """The predicate, noting its findings under the name of this argument."""

    def test(value: Any, facts: EvaluationContext) -> Truth:
        facts.argument = name
        return predicate(value, facts)

    return test


def in_words(noted: Noted, facts: EvaluationContext) -> str:
    """``:to x@evil.example is in the text of read-file mail.txt``; a secret's value is not shown."""
    name, verb = noted.argument, _VERBS[noted.origin.kind]
    origin = visible(str(noted.origin))
    if any(param.name == name and param.secret for param in facts.tool.params):
        return f":{name}, a secret, {verb} {origin}"
    value = visible(short(redact(str(noted.value)), SHOWN))
    what = f"{value}, in :{name}," if noted.inside else f":{name} {value}"
    return f"{what} {verb} {origin}"


TOLD = 3  # arguments and links in a verdict

Careful: TypeAlias = Callable[[Mapping[str, Any], EvaluationContext], Verdict]


def careful_of(tool: CognitiveTool) -> Careful:
    """The verdict on calls of a tool that no rule decides. Its reason names the argument and its origin."""
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
            if value is UNKNOWN:
                strange.append(f"the value of :{param.name} is not known yet")
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
    value: Any, param: Param, named: DestinationRole | None, facts: EvaluationContext
) -> Iterator[Noted | str]:
    """The destinations in an argument, each with its origin; a sentence if the origin is not known."""
    if named is None:
        places = [link.text for link in links_of(value, shown=is_shown(facts)) if link.kind != "path"]
        if not param.role:
            paths = (one for one in leaves(value) if _is_path(one) and _leads_outside(one, facts))
            places = list(dict.fromkeys([*places, *paths, *_named_in(value)]))
    elif named.outside:
        places = [path for path in paths_at(param.type, value) if _leads_outside(path, facts)]
    elif named.assumed:
        inside = (link.text for link in links_of(value, shown=True) if link.kind != "path")
        assumed = (one for one in _assumed_in(value) if not _is_path(one) or _leads_outside(one, facts))
        places = list(dict.fromkeys([*inside, *assumed]))
    else:
        usual = [] if named.why == "declared" else paths_at(param.type, value)
        places = [one for one in leaves(value) if one not in usual or _leads_outside(one, facts)]
        places = list(dict.fromkeys([*keys_in(value, fields_of(param)), *places]))
    for place in places:
        origin = origin_of(place, facts)
        if origin is None:
            yield f"the origin of :{param.name} is not known"
            return
        yield Noted(param.name, place, origin, named is None and place != value)


def _named_in(value: Any) -> Iterator[Any]:
    """The values under keys with names of destinations, in data that the tool does not describe."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item) if names_destination(str(key)) else _named_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _named_in(item)


def _assumed_in(value: Any) -> Iterator[Any]:
    """The possible destinations in the value of a parameter whose name decides nothing: without values under
    keys with names of contents, dates, times and amounts."""
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
