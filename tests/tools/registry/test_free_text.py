"""A tool says which of its result is text; a field that it does not return is an error with the nearest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict
from words import complaint, tool

from quoth.tools.errors import DefinitionError, QuothError
from quoth.tools.loading import load_tools
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.function import cognitive_tool, tool_of
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import entry_tool


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    file_name: str
    size: Literal["s", "l"]


class Mail(BaseModel):
    model_config = ConfigDict(extra="forbid")
    sender: str
    body: str | None
    parts: list[Part]
    pair: tuple[int, str]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    sender: str


def elsewhere(made: CognitiveTool, **changed: Any) -> CognitiveTool:
    return entry_tool({**json.loads(json.dumps(made.entry)), **changed}, lambda: "there", remote="shop")


DECLARED: list[tuple[Any, Any, str]] = [
    # as it is given, as it is kept, in the entry of the tool
    (None, None, "-"),
    (True, True, "true"),
    (False, (), "[]"),
    ([], (), "[]"),
    (["body", "Subject"], ("body", "Subject"), '["body", "Subject"]'),
]


@pytest.mark.parametrize(("given", "kept", "data"), DECLARED)
def test_what_is_declared_is_kept_here_and_elsewhere(given: Any, kept: Any, data: str) -> None:
    made = tool(free_text=given)
    assert made.free_text == kept
    assert ("free_text" in made.entry) == (kept is not None)
    assert json.dumps(made.entry.get("free_text", "-")).strip('"') == data.strip('"')
    assert elsewhere(made).free_text == kept


HOW = ":free-text is True for all of the result, or a list of its fields, such as [body subject]"
NO_FIELD = "which is not a field of its result."
WRONG: list[tuple[Any, Any, str]] = [
    # what is declared, what the tool returns, the sentence
    (7, Any, f"{HOW}; not 7."),
    ("body", Any, f'{HOW}; not "body".'),
    (["body", 7], Any, f"{HOW}; 7 names no field."),
    ([" "], Any, f'{HOW}; " " names no field.'),
    (["body", "body"], Any, ":free-text names the field body twice."),
    (["boddy"], list[Mail], f":free-text names boddy, {NO_FIELD} Did you mean body?"),
    (["zzz"], Part, f":free-text names zzz, {NO_FIELD} It has file_name, size."),
    (["body"], str, f":free-text names body, {NO_FIELD}"),
    (["body"], list[int], f":free-text names body, {NO_FIELD}"),
]


@pytest.mark.parametrize(("given", "returns", "sentence"), WRONG)
def test_a_wrong_declaration_is_told_in_a_sentence(given: Any, returns: Any, sentence: str) -> None:
    assert complaint(DefinitionError, lambda: tool(free_text=given, returns=returns)) == f"probe: {sentence}"


@pytest.mark.parametrize("returns", [Mail, list[Mail], Mail | None, Annotated[Mail, "one"]])
def test_a_field_is_found_at_any_depth_and_in_any_spelling(returns: Any) -> None:
    assert tool(free_text=["file-name", "BODY"], returns=returns).free_text == ("file-name", "BODY")


@pytest.mark.parametrize("returns", [Any, dict, list, dict[str, Mail], Open, list[Open | Part]])
def test_a_type_that_does_not_tell_its_fields_takes_any_name(returns: Any) -> None:
    assert tool(free_text=["zzz"], returns=returns).free_text == ("zzz",)


def test_what_a_pure_function_gives_is_text_unless_it_says_otherwise() -> None:
    assert tool().texts is True
    assert tool(free_text=[]).texts == ()
    assert tool(effects=["reads"]).texts is None
    assert tool(effects=["reads"], free_text=["body"]).texts == ("body",)


def test_an_entry_with_a_wrong_declaration_is_refused_with_the_tool() -> None:
    said = complaint(QuothError, lambda: elsewhere(tool(), free_text={"body": True}))
    assert said == f'The entry of the tool probe: {HOW}; not {{"body" True}}.'
    for wrong in ({"role": "payee"}, {"role": 1}):
        entry = elsewhere(tool(params={"to": {}})).entry
        params = [{**entry["params"][0], **wrong}]
        assert "role" in complaint(QuothError, lambda p=params: elsewhere(tool(params={"to": {}}), params=p))  # type: ignore[misc]


def test_older_tools_keep_their_outline_and_one_that_declares_text_has_another_version() -> None:
    assert tool(free_text=True).outline == tool().outline
    assert tool(free_text=True).version != tool().version
    one, other = ({"to": {"type": str}}, {"to": {"type": str, "role": "content"}})
    assert tool(params=one).outline == tool(params=other).outline


FILE = """
(require quoth [def-cognitive-tool def-http-tool def-shell-tool])
(def-cognitive-tool mail "Read." :parameters [box {:role destination}]
  :free-text [body :subject "reply_to"] :body 1)
(def-http-tool issue "Read." :parameters [n {:type int}] :url f"https://tracker.example/{n}")
(def-http-tool price "Read." :url "https://shop.example/price" :free-text [name])
(def-shell-tool now "Tell." :argv ["date"])
(def-shell-tool id "Tell." :argv ["id" "-u"] :free-text False)
"""


def test_macros_and_the_decorator_declare_it_and_words_of_servers_and_programs_are_text(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.hy").write_text(FILE)
    table = load_tools([str(tmp_path / "own.hy")])
    assert {name: table.get(name).free_text for name in ("mail", "issue", "price", "now", "id")} == {
        "mail": ("body", "subject", "reply_to"),
        "issue": True,
        "price": ("name",),
        "now": True,
        "id": (),
    }

    assert table.get("mail").params[0].role == "destination"
    with registering_in(ToolTable()):

        @cognitive_tool(free_text=["body"])
        def letters() -> list[Mail]:
            """Read."""
            return []

    assert tool_of(letters).free_text == ("body",)
    assert table.get("read-file").free_text is True
    assert table.get("list-files").free_text is True
