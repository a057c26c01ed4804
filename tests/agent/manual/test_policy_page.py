"""The page about policy has every head, circumstance, predicate, route and effect of the language, and each
example in its tables can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import PAGES, page

from quoth.tools.call.call import ROUTES
from quoth.tools.policy.language import CIRCUMSTANCES, HEADS, PREDICATES, read_orders
from quoth.tools.policy.model import PERS
from quoth.tools.policy.spending import BYS
from quoth.tools.registry.tool import COSTS, EFFECTS


def forms(of: str) -> list[str]:
    """The examples in the first column of the table with that head."""
    table = re.search(rf"^\| {of} .*\n\|-.*\n((?:\|.*\n)+)", page("policy"), re.MULTILINE)
    assert table
    return [form for row in table[1].splitlines() for form in re.findall(r"~(.+?)~", row.split(" | ")[0])]


def heads(of: str) -> list[str]:
    return list(dict.fromkeys(form[1:].split()[0].rstrip(")") for form in forms(of) if form[0] == "("))


def test_the_tables_have_every_word_of_the_language_once() -> None:
    assert heads("form") == list(HEADS)
    assert sorted(heads("circumstance")) == sorted(CIRCUMSTANCES)
    assert sorted(heads("predicate")) == sorted(PREDICATES)


@pytest.mark.parametrize("form", forms("circumstance"))
def test_each_circumstance_can_be_read(form: str) -> None:
    assert read_orders(f"(deny {form})", "page").rules


@pytest.mark.parametrize("form", [form for form in forms("predicate") if form != "..."])
def test_each_predicate_can_be_read(form: str) -> None:
    written = re.sub(r"\bP\b", "_", form)
    assert read_orders(f"(deny (any-tool :x {written}))", "page").rules


@pytest.mark.parametrize("form", forms("form"))
def test_each_rule_can_be_read(form: str) -> None:
    orders = read_orders(form.replace("CLAUSE…", "(any-tool)").replace("…", "why"), "page")
    assert orders.rules or orders.limits or orders.careful or orders.effects


def test_what_the_words_may_be_is_said_in_full() -> None:
    told = {*re.findall(r"=:?([a-z-]+)=", page("policy"))}
    assert {*ROUTES, *EFFECTS, *COSTS, *PERS, *BYS} <= told


RULES = re.compile(r"~(\((?:allow|ask|deny) .+?\))~(?= )")


@pytest.mark.parametrize(
    "path", [one for one in PAGES if one.stem.startswith("coming-from-")], ids=lambda one: one.stem
)
def test_the_rules_of_a_newcomer_can_be_read(path: Path) -> None:
    for rule in RULES.findall(path.read_text()):
        assert read_orders(rule, "page").rules


def test_the_rules_of_the_newcomers_are_found() -> None:
    assert len(RULES.findall(page("coming-from-claude-code"))) == 4
