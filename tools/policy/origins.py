"""The predicates of rules about where a value comes from: ``(in-task)``, ``(links P)`` and the like, and the
words in which a verdict tells what they found.

It knows origins as data, and the index as a protocol; it must not know rules, sessions, or what is indexed. A
value that says nothing (nil, True, "", an empty list) comes from nowhere: no rule is against it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from quoth.tools.call.canonical import paths_in
from quoth.tools.call.origin import Origin
from quoth.tools.call.redaction import redact
from quoth.tools.call.values import UNKNOWN
from quoth.tools.origin.leaves import leaves, links_of
from quoth.tools.policy.predicates import ANOTHER, EvaluationContext, Noted, Predicate, Truth
from quoth.tools.registry.roles import SENDING, fields_of, names_destination
from quoth.tools.text import short
from quoth.tools.visible import visible

SHOWN = 80  # characters of a value in a verdict
_STANDS = {"task": "stands", "field": "is a", "text": "stands", "model": "is"}


def origin_of(value: Any, facts: EvaluationContext) -> Origin | None:
    """Where one text or number of the call comes from; None if nobody knows."""
    if facts.origins is None or value is UNKNOWN or value is ANOTHER:
        return None
    return facts.origins.find(value, facts.call)


def keys_in(value: Any, fields: Collection[str]) -> Iterator[str]:
    """The keys in data that may be a destination themselves, ``{"mallory" "rw"}``: not those of ``fields``,
    nor such as ``email``."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in fields and not names_destination(str(key)):
                yield str(key)
            yield from keys_in(item, fields)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from keys_in(item, fields)


def comes_from(fits: Callable[[Origin], bool], *, every: bool) -> Predicate:
    """Each text and number of a value has such an origin; or one of them has, unless ``every``."""

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
    """The fields that the type of the argument declares."""
    param = next((one for one in facts.tool.params if one.name == facts.argument), None)
    return fields_of(param) if param is not None else frozenset()


def of_origin(head: str, tools: frozenset[str] = frozenset()) -> Predicate:
    """The predicate of this name; ``tools`` are those whose fields ``in-field`` means, if not all."""
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
    """Whether a browser or a mail program will show what the call says: it sends something away, or writes a
    page."""
    if not SENDING.isdisjoint(facts.tool.effects):
        return True
    paths = (facts.call.form.args.get(param.name) for param in facts.tool.path_params)
    return any(path.lower().endswith(PAGES) for value in paths for path in paths_in(value))


def of_links(predicate: Predicate) -> Predicate:
    """The predicate holds of each address, host and account in a text."""

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
    """The predicate, which notes what it finds as that of the argument of this name."""

    def test(value: Any, facts: EvaluationContext) -> Truth:
        facts.argument = name
        return predicate(value, facts)

    return test


def in_words(noted: Noted, facts: EvaluationContext) -> str:
    """``:to x@evil.example stands in the text of read-file mail.txt``; a secret is only named."""
    name, verb = noted.argument, _STANDS[noted.origin.kind]
    origin = visible(str(noted.origin))
    if any(param.name == name and param.secret for param in facts.tool.params):
        return f":{name}, a secret, {verb} {origin}"
    value = visible(short(redact(str(noted.value)), SHOWN))
    what = f"{value}, in :{name}," if noted.inside else f":{name} {value}"
    return f"{what} {verb} {origin}"
