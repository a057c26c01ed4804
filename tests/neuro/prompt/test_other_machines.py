"""A tool of another machine is shown, and its arguments are checked, as on its own: from plain data."""

from __future__ import annotations

import json
from random import Random

import pytest
from examples import examples
from generated_tools import a_call, a_tool
from hypothesis import given
from hypothesis import strategies as st
from words import form, tool

from quoth.neuro.prompt.belt import VIEWS
from quoth.neuro.prompt.grammar import grammar
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, canonical
from quoth.tools.loading import load_tools
from quoth.tools.registry.arguments import parameters_schema
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import entry_tool, schema_hash


def elsewhere(tool: CognitiveTool) -> CognitiveTool:
    """The tool as another machine knows it."""
    return entry_tool(json.loads(json.dumps(tool.entry)), lambda call, ctx: None)


def assert_shown_alike(here: CognitiveTool, there: CognitiveTool) -> None:
    both = [ToolTable((here,)), ToolTable((there,))]
    for view, show in VIEWS.items():
        one, other = map(show, both)
        assert one == other, view
    assert grammar(both[0]) == grammar(both[1])
    assert here.signature() == there.signature()
    assert json.dumps(here.describe()) == json.dumps(there.describe())
    assert json.dumps(parameters_schema(here.params)) == json.dumps(parameters_schema(there.params))
    assert here.version == there.version
    assert both[0].schema_hash == both[1].schema_hash == schema_hash([there.entry])
    assert both[0].secrets == both[1].secrets


def judged(tool: CognitiveTool, form: CallForm) -> str:
    """What is said of a call: the canonical form, or why it is none."""
    try:
        return canonical(tool.checked(form)[0])
    except InvalidCallError as error:
        return str(error)


def test_the_tools_that_ship_are_the_same_elsewhere() -> None:
    shipped = load_tools([], knowledge=True)
    assert len(shipped) > 20
    for one in shipped:
        assert_shown_alike(one, elsewhere(one))


CHANCE = st.randoms(use_true_random=True)  # with a seed of hypothesis', which it tells


@examples(1)
@given(CHANCE)
def test_any_tool_is_shown_and_any_call_of_it_judged_alike_elsewhere(chance: Random) -> None:
    made = a_tool(chance)
    there = elsewhere(made)
    assert_shown_alike(made, there)
    for _ in range(6):
        form = a_call(chance, made)
        assert judged(made, form) == judged(there, form)


def test_the_comparison_can_fail() -> None:
    here, there = tool(params={"a": {"type": int}}), tool(params={"a": {"type": int, "min": 3}})
    with pytest.raises(AssertionError):
        assert_shown_alike(here, elsewhere(there))
    call = form("(probe :a 1)")
    assert judged(here, call) != judged(elsewhere(there), call)
