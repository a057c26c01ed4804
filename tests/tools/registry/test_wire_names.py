"""A parameter's wire name: schemas and JSON show it; rules, records and forms ours; a call either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field
from sentences import IS_GIVEN_TWICE
from words import complaint, files, form, gateway, load, native, story, tool

from quoth.neuro.reading.json_calls import fitted
from quoth.tools.errors import DefinitionError, InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.function import cognitive_tool, register, tool_of
from quoth.tools.registry.parameters import Secret, Wire
from quoth.tools.registry.strict_model import StrictModel
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.tool import entry_tool

SEARCH = """
"A search with names of another server."
(require quoth [def-cognitive-tool])
(def-cognitive-tool seek
  "Search."
  :parameters [query {:type str :doc "What"}
               max-results {:type int :doc "At most" :default 5 :wire "maxResults"}]
  :guard (< max-results 100)
  :body (.format "{} {}" query max-results))
"""


@pytest.fixture
def search(tmp_path: Path) -> CognitiveTool:
    files(tmp_path, {"search.hy": SEARCH})
    return load(tmp_path / "search.hy").get("seek")


def test_schemas_show_the_wire_name(search: CognitiveTool) -> None:
    assert list(search.schema["properties"]) == ["query", "maxResults"]
    assert search.schema["required"] == ["query"]
    assert search.signature() == "(seek :query str [:max-results int = 5])"


@pytest.mark.parametrize(
    "call",
    [
        '(seek "tea" :max-results 3)',
        '(seek "tea" :maxResults 3)',
        '(seek "tea" :maxresults 3)',
        '(seek :maxResults 3 :query "tea")',
    ],
)
def test_a_call_may_use_either_name_and_is_recorded_by_ours(search: CognitiveTool, call: str) -> None:
    here = gateway(search)
    assert here.pass_through(call).value == "tea 3"
    assert here.rows[-1]["form"] == '(seek :max-results 3 :query "tea")'


def test_a_guard_sees_what_came_by_the_wire_name(search: CognitiveTool) -> None:
    assert gateway(search).pass_through('(seek "tea" :maxResults 100)').status == "denied"


def test_both_names_in_one_call_are_refused(search: CognitiveTool) -> None:
    said = gateway(search).pass_through('(seek "tea" :maxResults 3 :max-results 4)')
    assert (said.status, said.message) == (
        "invalid",
        (f"seek: :max-results {IS_GIVEN_TWICE}. It is called as (seek :query str [:max-results int = 5])."),
    )


def test_a_models_value_is_read_as_the_type_by_either_name(search: CognitiveTool) -> None:
    for name in ("maxResults", "max-results"):
        made, repairs = fitted(CallForm("seek", {"query": "tea", name: "3"}), search)
        assert search.checked(made)[0] == form('(seek :query "tea" :max-results 3)')
        assert len(repairs) == 1


def test_a_place_is_not_taken_twice(search: CognitiveTool) -> None:
    made, _ = fitted(CallForm("seek", {"maxResults": 3}, ("tea",)), search)
    assert search.checked(made)[1] == {"query": "tea", "max-results": 3}


def test_a_native_call_of_a_model_runs(tmp_path: Path) -> None:
    files(tmp_path, {"search.hy": SEARCH})
    told = story(
        tmp_path,
        native(("seek", {"query": "tea", "maxResults": 2})),
        "Found.",
        tools=[str(tmp_path / "search.hy")],
        dialect="native",
    )
    assert [(one.form, one.result.value) for one in told.reply.calls] == [
        (form('(seek :query "tea" :max-results 2)'), "tea 2")
    ]


def test_an_entry_keeps_it(search: CognitiveTool) -> None:
    there = entry_tool(json.loads(json.dumps(search.entry)), lambda: "", remote="shop")
    assert list(there.schema["properties"]) == ["query", "maxResults"]
    assert there.checked(form('(seek "a" :maxResults 2)')) == search.checked(
        form('(seek "a" :max-results 2)')
    )


def test_python_says_it_in_an_annotation(tmp_path: Path) -> None:
    @cognitive_tool
    def find(query: str, limit: Annotated[int, Wire("maxResults"), "At most"] = 5) -> str:
        """Find."""
        return f"{query} {limit}"

    assert tool_of(find).schema["properties"]["maxResults"]["description"] == "At most"
    assert gateway(tool_of(find)).pass_through('(find "tea" :maxResults 1)').value == "tea 1"


class Input(StrictModel):
    since: Annotated[str, Field(alias="fromDate")]


def test_an_alias_of_a_model_is_the_wire_name() -> None:
    @register("since", Input, description="Since.")
    def since(args: Input) -> str:
        return args.since

    assert list(tool_of(since).schema["properties"]) == ["fromDate"]
    assert gateway(tool_of(since)).pass_through('(since :fromDate "May")').value == "May"


def test_a_secret_stays_secret_by_its_wire_name() -> None:
    @cognitive_tool
    def sign(pass_word: Annotated[str, Secret("The word"), Wire("passWord")]) -> str:
        """Sign."""
        return "done"

    here = gateway(tool_of(sign))
    assert here.pass_through('(sign :passWord "sesame-open")').status == "ok"
    assert "sesame" not in json.dumps(here.rows)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"a": {"wire": 5}}, ':wire is its name in JSON, such as "maxResults"; not 5.'),
        (
            {"a": {"wire": "max\u202eresults"}},
            ':wire is its name in JSON, such as "maxResults"; not "max\\u202eresults".',
        ),
        ({"a": {"wire": "theB"}, "b": {"wire": "theB"}}, "two parameters are named theb, one by its :wire."),
        ({"a": {"wire": "B"}, "b": {}}, "two parameters are named b, one by its :wire."),
    ],
)
def test_a_wrong_one_is_refused(params: dict[str, dict[str, Any]], message: str) -> None:
    assert complaint(DefinitionError, lambda: tool(params=params)).endswith(message)


def test_an_unknown_name_is_answered_with_ours(search: CognitiveTool) -> None:
    said = complaint(InvalidCallError, lambda: search.checked(form('(seek "a" :max-result 2)')))
    assert ":max-results" in said
