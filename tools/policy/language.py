"""The language of policy files: text is parsed into rules, and each rule is compiled to one test of a call.

Nothing in a file is evaluated. The result says only whether a rule matches a call.

A rule is ``(deny CLAUSE… :why "…")``, or the same with ``ask`` or ``allow``; all its clauses must match. A
clause is a call, ``(write-file :path PREDICATE)``, of any tool ``_`` or ``(any-tool :path PREDICATE)``, or a
circumstance: ``(effects :writes)``, ``(cost :expensive)``, ``(tool P)``, ``(route P)``, ``(user P)``,
``(client P)``, ``(depth > 1)``, ``(confidence < 0.5)``, ``(nested)``, ``(in-intent)`` for a tool that the
task needs (or ``(not (in-intent))``), ``(remote)`` for a tool of a worker,
``(remote P)`` for a tool of the catalog of that name, ``(mcp)`` for a tool of an MCP server, ``(mcp :server P
:tool P :digest P :says P)`` for one of that server, name there, digest, or with that annotation. A deny or
ask of effects matches tools that have one of these effects; an allow matches tools that have no other.
Arguments are judged as the body receives them: validated, with defaults. A call may end with ``:only``: then
all arguments that it does not name must have their defaults.

A test has three results: true, false, or undecided (a number compared with a text, a pattern that takes too
long, an argument that the named tool does not have, the confidence of a reply without one). An undecided
test counts as a match of a deny or an ask, and never as a match of an allow, even inside a ``not``. Equality
of plain data is always decided. A missing argument never satisfies an allow; a rule for any tool matches only
calls that have the arguments it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import hy.models as m

from quoth.tools.call.call import ROUTES
from quoth.tools.errors import did_you_mean, no_such
from quoth.tools.lisp.fields import read_forms
from quoth.tools.lisp.forms import kebab
from quoth.tools.lisp.printer import show
from quoth.tools.lisp.source import Place, SourceText
from quoth.tools.policy.model import (
    KINDS,
    PERS,
    UNINTENDED,
    Compared,
    EffectsOf,
    Equality,
    Kind,
    Limit,
    PolicyFile,
    Rule,
)
from quoth.tools.policy.predicate_reader import ANYTHING, ORIGINS, PREDICATES, PredicateReader, texts_of
from quoth.tools.policy.predicates import (
    ANY_PATH,
    EvaluationContext,
    Predicate,
    Truth,
    UserName,
    all_of,
    any_of,
    argument,
    each_path,
    is_intended,
    negated,
    only_these,
)
from quoth.tools.policy.spending import BYS, LONGEST, Cooldown, Quota
from quoth.tools.registry.parameters import NAME
from quoth.tools.registry.tool import COSTS, EFFECTS, CognitiveTool, ServedTool

UNITS = {"second": 1, "seconds": 1, "minute": 60, "minutes": 60, "hour": 3600, "hours": 3600}

HEADS = (*KINDS, "quota", "cooldown", "careful", "effects")
DIGEST = re.compile(r"[0-9a-f]{32,64}")  # fewer: a server could make two forms that begin alike
EXAMPLE = '(deny (write-file :path (under "secret")))'
CIRCUMSTANCES = (
    "effects",
    "cost",
    "tool",
    "route",
    "client",
    "user",
    "depth",
    "confidence",
    "nested",
    "in-intent",
    "remote",
    "mcp",
)


def read_orders(text: str, name: str) -> PolicyFile:
    """Parse a policy file called ``name``. Raises UsageError with file, line, column and a caret."""
    source = SourceText(name, text)
    return orders_in(read_forms(text, source), source)


def orders_in(forms: Sequence[Any], source: SourceText) -> PolicyFile:
    """The rules that these forms of a file say. Raises UsageError."""
    reader = _RuleReader(source)
    rules: list[Rule] = []
    quotas: list[Limit] = []
    cooldowns: list[Limit] = []
    careful: dict[Place, bool] = {}
    effects: list[EffectsOf] = []
    for form in forms:
        head = reader.head(form, HEADS, "rule", EXAMPLE)
        if head == "quota":
            quotas.append(reader.quota(form))
        elif head == "cooldown":
            cooldowns.append(reader.cooldown(form))
        elif head == "careful":
            careful[reader.place(form)] = reader.careful(form)
        elif head == "effects":
            effects.append(reader.effects(form))
        else:
            rules.append(reader.rule(form, head))
    intent = any(careful.values())
    return PolicyFile(tuple(rules), (*quotas, *cooldowns), tuple(careful), tuple(effects), intent)


def only_tools(form: Any, source: SourceText, fits: Callable[[CognitiveTool], bool]) -> Rule:
    """The rule that denies every tool which does not fit. Its text and place are those of ``form``."""
    (rule,) = orders_in(read_forms("(deny _)", source), source).rules
    place = _RuleReader(source).place(form)
    return replace(
        rule, text=show(form), place=place, tool_place=place, _of_tool=(lambda tool: not fits(tool),)
    )


class _Clause(NamedTuple):
    """One parsed clause of a rule: its canonical text, and a test of the tool or of the call."""

    text: str
    of_tool: Callable[[CognitiveTool], bool] | None = None
    test: Predicate | None = None


class _RuleReader(PredicateReader):
    """Reads the forms of one file."""

    def careful(self, form: Any) -> bool:
        """Whether a call of a tool that the task does not need is asked about."""
        if len(form) == 1 or form[1:] == _NO_INTENT:
            return len(form) == 1
        raise self.fault(
            form[1],
            "(careful) takes only :intent False. To exempt calls from it, add an (allow …) rule.",
        )

    def effects(self, form: Any) -> EffectsOf:
        """The effects of a server's tool, as a person knows them."""
        shape = "(effects github--get-issue :reads)"
        if len(form) < 3 or not isinstance(form[1], m.Symbol) or "--" not in kebab(str(form[1])):
            raise self.fault(
                form, f"This needs the name of an MCP server's tool and its effects, as in {shape}."
            )
        words, digest = list(form[2:]), ""
        if m.Keyword("digest") in words:
            at = words.index(m.Keyword("digest"))
            digest = self.text(words[at + 1], ":digest") if at + 2 == len(words) else ""
            if not DIGEST.fullmatch(digest):
                raise self.fault(
                    words[at],
                    ":digest is last, with 32 to 64 hex digits in quotes, as quoth mcp trust shows it.",
                )
            del words[at:]
        found = tuple(self.word(node, EFFECTS, "(effects …)") for node in words)
        if not found:
            raise self.fault(form, f"Name at least one effect, as in {shape}.")
        return EffectsOf(
            kebab(str(form[1])), found, digest, show(form), self.place(form), self.place(form[1])
        )

    # Rules

    def rule(self, form: Any, kind: Any) -> Rule:
        items, why = self._without_why(form)
        if not items:
            raise self.fault(form, f"This rule matches nothing; write ({kind} _) to match every call.")
        call: Any = None
        clauses: list[_Clause] = []
        equalities: list[Equality | None] = []
        compared: list[Compared] = []
        for item in items:
            if self._circumstance(item):
                clauses.append(self.circumstance(item, kind))
                for wanted in item[1:]:
                    compared += self.compared(f"({item[0]})", wanted)
            elif call is None:
                call = item
            else:
                hint = next(
                    filter(None, (did_you_mean(_head(one), CIRCUMSTANCES) for one in (item, call))), ""
                )
                raise self.fault(item, f"A rule has one call; write one rule for each call.{hint}")
        self.origins = []
        tool, arguments, only = (None, {}, False) if call is None else self.call(call)
        missing = False if kind == "allow" or tool is None else None
        for name, (_, wanted) in arguments.items():
            any_path = tool is None and name == ANY_PATH
            before, self.argument = len(self.origins), name
            predicate = self.predicate(wanted)
            self.argument = ""
            if len(self.origins) > before:
                from quoth.tools.policy.origins import of_argument  # here: few rules are about origins

                predicate = of_argument(name, predicate)
            test = (
                each_path(predicate, every=kind == "allow")
                if any_path
                else argument(name, predicate, missing)
            )
            clauses.append(_Clause(f":{name} {show(wanted)}", test=test))
            compared += self.compared(name, wanted)
            equalities.append(None if any_path else _equality(name, wanted))
        if only:  # the names are part of the clause: a rule for :a alone is not wider than one for :a :b
            named = " ".join(sorted(arguments))
            clauses.append(_Clause(f":only {named}", test=only_these(frozenset(arguments))))
        texts = {clause.text for clause in clauses} | ({tool} if tool else set())
        return Rule(
            kind,
            show(form),
            why,
            self.place(form),
            tool,
            {name: self.place(key) for name, (key, _) in arguments.items()},
            frozenset(texts),
            self.place(form if call is None else call[0] if isinstance(call, m.Expression) else call),
            tuple(filter(None, equalities)),
            only,
            tuple(name for name, (_, wanted) in arguments.items() if wanted == ANYTHING),
            tuple(compared),
            tuple(self.origins),
            tuple(clause.of_tool for clause in clauses if clause.of_tool),
            all_of([clause.test for clause in clauses if clause.test]),
        )

    def compared(self, argument: str, node: Any, how: Any = "=") -> Iterator[Compared]:
        """The texts in a predicate."""
        if isinstance(node, m.String):
            yield Compared(argument, how, str(node), self.place(node))
        elif isinstance(node, m.Sequence):
            head = str(node[0]) if node and isinstance(node, m.Expression) else ""
            if head not in ("len", "key", "scheme", "path", "in-field", "links"):
                for item in node:
                    yield from self.compared(
                        argument, item, head if head in ("under", "matches", "host") else how
                    )

    def _without_why(self, form: Any) -> tuple[list[Any], str]:
        items = list(form[1:])
        keys = [item for item in items if isinstance(item, m.Keyword)]
        if not keys:
            return items, ""
        if len(items) < 2 or items[-2] is not keys[0] or keys[0].name != "why":
            raise self.fault(
                keys[0],
                f'Unexpected {show(keys[0])}: the only keyword of a rule is :why "reason", at its end.',
            )
        return items[:-2], self.text(items[-1], ":why")

    def _circumstance(self, item: Any) -> bool:
        return (
            isinstance(item, m.Expression)
            and bool(item)
            and isinstance(item[0], m.Symbol)
            and (str(item[0]) in CIRCUMSTANCES or show(item) == UNINTENDED)
        )

    def call(self, item: Any) -> tuple[str | None, dict[str, tuple[Any, Any]], bool]:
        """The tool's name; for each argument its keyword and its predicate, both unparsed; and whether other
        arguments must have their defaults."""
        if item == ANYTHING:
            return None, {}, False
        if not isinstance(item, m.Expression) or not item:
            hint = f"; write ({item})" if isinstance(item, m.Symbol) else ""
            raise self.fault(item, f"{show(item)} is not a call{hint}.")
        if not isinstance(item[0], m.Symbol):
            raise self.fault(item[0], f"A call begins with the name of a tool, not with {show(item[0])}.")
        written = str(item[0])
        name = None if written in ("_", "any-tool") else kebab(written)
        if name is not None and not NAME.match(name):
            raise self.fault(item[0], f"{written} is not a valid tool name.")
        if written in PREDICATES:
            about = '(user (not "ann"))' if written not in ORIGINS else f"(any-tool :to ({written}))"
            inside = f"inside a clause, as in {about}"
            raise self.fault(item[0], f"{written} is a predicate; write it {inside}.")
        arguments: dict[str, tuple[Any, Any]] = {}
        rest = iter(item[1:])
        for key in rest:
            if not isinstance(key, m.Keyword):
                hint = did_you_mean(written, CIRCUMSTANCES)
                raise self.fault(key, f"An argument needs its name: ({written} :name {show(key)}).{hint}")
            if key.name == "only" and key is item[-1]:
                return name, arguments, True
            wanted = next(rest, None)
            if wanted is None or isinstance(wanted, m.Keyword):
                if key.name == "only":
                    raise self.fault(key, ":only must be at the end of a call.")
                hint = did_you_mean(written, CIRCUMSTANCES)
                raise self.fault(key, f":{key.name} has no predicate; _ is any value.{hint}")
            argument = kebab(key.name)
            if argument in arguments:
                raise self.fault(key, f":{argument} is given twice; write (and … …).")
            arguments[argument] = (key, wanted)
        return name, arguments, False

    def circumstance(self, item: Any, kind: Kind) -> _Clause:
        head, rest = str(item[0]), item[1:]
        if head in _BARE:
            if rest:
                raise self.fault(rest[0], f"({head}) takes no arguments.")
            return _Clause(show(item), test=_BARE[head])
        if head == "not":
            return _Clause(UNINTENDED, test=negated(is_intended))
        if head == "remote" and not rest:
            return _Clause("(remote)", of_tool=_is_remote)
        if head == "mcp":
            return self.mcp(item, kind)
        if not rest:
            raise self.fault(item, f"({head}) needs a value, as in {_SHAPES[head]}.")
        if head == "confidence":
            self.shares(rest)
        if head in ("depth", "confidence"):
            return _Clause(_joined(head, rest), test=_OF_CALL[head](self.number(item)))
        if head in ("effects", "cost"):
            known = EFFECTS if head == "effects" else COSTS
            words = frozenset(self.word(node, known, f"({head} …)") for node in rest)
            fits = _has_cost if head == "cost" else _keeps_to if kind == "allow" else _has_effect
            return _Clause(_joined(head, rest), of_tool=fits(words))
        if head == "route":  # a misspelt route would never match
            for node in (one for one in rest if isinstance(one, m.String) and str(one) not in ROUTES):
                raise self.fault(node, no_such("route", str(node), ROUTES))
        predicate = any_of([self.predicate(node) for node in rest])
        of_tool = _is_remote if head == "remote" else None
        return _Clause(_joined(head, rest), of_tool, _OF_CALL[head](predicate))

    def mcp(self, item: Any, kind: Kind) -> _Clause:
        predicates = []
        for key, node in self.pairs(item, _OF_SERVED):
            if key == "says" and kind == "allow":
                raise self.fault(
                    node, "An annotation is the server's own word about its tool: it allows nothing."
                )
            predicates.append(_of_served(_OF_SERVED[key], self.predicate(node)))
        return _Clause(show(item), _is_served, all_of(predicates) if predicates else None)

    def shares(self, nodes: Sequence[Any]) -> None:
        """Refuse values that confidence never has: such a rule looks like protection but has no effect."""
        for node in nodes:
            if isinstance(node, m.Expression):
                self.shares(node[1:])
            elif not isinstance(node, m.Symbol) and not (
                isinstance(node, (m.Integer, m.Float)) and 0 <= node <= 1
            ):
                raise self.fault(node, f"Confidence must be a number from 0 to 1, not {show(node)}.")

    # Quotas and cooldowns

    def quota(self, form: Any) -> Limit:
        tool, count = self._limit(form, "(quota search 3 :per :day)")
        if not isinstance(count, m.Integer) or count < 1:
            raise self.fault(count, f"A quota must be a whole number, 1 or more, not {show(count)}.")
        words: Any = self._words(form, 3, {"per": PERS, "by": BYS})
        if "per" not in words:
            raise self.fault(form, "A quota needs its window: :per :day, or :minute, :hour, :week.")
        return self._counted(form, Quota(tool, int(count), **words))

    def cooldown(self, form: Any) -> Limit:
        tool, count = self._limit(form, "(cooldown search 10 :seconds)")
        if not isinstance(count, (m.Integer, m.Float)) or not 0 < count < float("inf"):  # NaN is neither
            raise self.fault(count, f"A cooldown must be a number above 0, not {show(count)}.")
        if len(form) < 4:
            raise self.fault(form, "A cooldown needs its unit: :seconds, :minutes or :hours.")
        unit = self.word(form[3], tuple(UNITS), "(cooldown …)")
        words: Any = self._words(form, 4, {"by": BYS})
        if count > LONGEST / UNITS[unit]:
            raise self.fault(count, f"A cooldown can be at most {LONGEST / UNITS[unit]:,.0f} {unit}.")
        return self._counted(form, Cooldown(tool, float(count) * UNITS[unit], **words))

    def _counted(self, form: Any, counts: Quota | Cooldown) -> Limit:
        return Limit(counts, show(form), self.place(form), self.place(form[1]))

    def _limit(self, form: Any, shape: str) -> tuple[str, Any]:
        if len(form) < 3 or not isinstance(form[1], m.Symbol) or not NAME.match(kebab(str(form[1]))):
            raise self.fault(form, f"This limit needs the name of a tool and a number, as in {shape}.")
        return kebab(str(form[1])), form[2]

    def _words(self, form: Any, start: int, known: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """The keywords of a limit, each with a word from its own set."""
        pairs = self.pairs(form, known, start, words=True)
        return {name: self.word(value, known[name], f":{name}") for name, value in pairs}


_NO_INTENT = m.Expression([m.Keyword("intent"), m.Symbol("False")])
_BARE: dict[str, Predicate] = {
    "nested": lambda _, facts: facts.call.parent is not None,
    "in-intent": is_intended,
}
_SHAPES = {
    "effects": "(effects :writes)",
    "cost": "(cost :expensive)",
    "tool": '(tool "search")',
    "route": '(route "reply")',
    "client": '(client "zed")',
    "user": '(user "ann")',
    "depth": "(depth > 2)",
    "confidence": "(confidence < 0.5)",
}
_OF_CALL: dict[str, Callable[[Predicate], Predicate]] = {
    "tool": lambda predicate: lambda _, facts: predicate(facts.tool.name, facts),
    "remote": lambda predicate: lambda _, facts: predicate(facts.tool.remote, facts),
    "route": lambda predicate: lambda _, facts: predicate(facts.call.route, facts),
    "client": lambda predicate: lambda _, facts: predicate(facts.call.client, facts),
    "user": lambda predicate: _of_user(predicate),
    "depth": lambda predicate: lambda _, facts: predicate(facts.call.depth, facts),
    "confidence": lambda predicate: _confidence(predicate),
}


def _head(item: Any) -> str:
    return str(item[0]) if item and isinstance(item, m.Expression) else ""


def _equality(argument: str, wanted: Any) -> Equality | None:
    """The texts of which an argument, or its first item, must equal one to satisfy a predicate."""
    first = isinstance(wanted, (m.List, m.Tuple))
    texts = texts_of(wanted[0] if wanted else None) if first else texts_of(wanted)
    return Equality(argument, first, texts) if texts else None


def _joined(head: str, rest: Sequence[Any]) -> str:
    """The canonical text of a circumstance: (depth > 2) and (depth (> 2)) are the same."""
    text = " ".join(show(item) for item in rest)
    return f"({head} ({text}))" if isinstance(rest[0], m.Symbol) and len(rest) == 2 else f"({head} {text})"


def _of_user(predicate: Predicate) -> Predicate:
    def test(_: Any, facts: EvaluationContext) -> Truth:
        user = facts.call.user
        return predicate(UserName(user) if isinstance(user, str) else user, facts)

    return test


def _confidence(predicate: Predicate) -> Predicate:
    def test(_: Any, facts: EvaluationContext) -> Truth:
        sure = facts.call.confidence
        return None if sure is None else predicate(sure, facts)

    return test


# What a rule may say of the tool of an MCP server.
_OF_SERVED: dict[str, Callable[[ServedTool], Sequence[str]]] = {
    "server": lambda served: (served.server,),
    "tool": lambda served: (served.tool,),
    "digest": lambda served: (served.digest,),
    "says": lambda served: served.says,
}


def _of_served(values: Callable[[ServedTool], Sequence[str]], predicate: Predicate) -> Predicate:
    def test(_: Any, facts: EvaluationContext) -> Truth:
        served = facts.tool.served
        truths = [] if served is None else [predicate(value, facts) for value in values(served)]
        return True if True in truths else None if None in truths else False

    return test


def _is_served(tool: CognitiveTool) -> bool:
    return tool.served is not None


def _is_remote(tool: CognitiveTool) -> bool:
    return bool(tool.remote)


def _has_cost(words: frozenset[str]) -> Callable[[CognitiveTool], bool]:
    return lambda tool: tool.cost in words


def _has_effect(words: frozenset[str]) -> Callable[[CognitiveTool], bool]:
    """In a deny or an ask: the tool has one of these effects."""
    return lambda tool: not words.isdisjoint(tool.effects)


def _keeps_to(words: frozenset[str]) -> Callable[[CognitiveTool], bool]:
    """In an allow: the tool has no effect besides these; an allow never covers an effect it does not name."""
    return lambda tool: words.issuperset(tool.effects)
