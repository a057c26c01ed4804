"""What a client of the Model Context Protocol is shown: the parts of a result as content, and tools under
names of the server's."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp_client import client, text_of
from mcp_server import PICTURE
from words import tool

from quoth.agent.serve.mcp_shape import content_of
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.history.long_results import StorePages
from quoth.tools.mcp.results import blob, parts_of
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.database import Store

IMAGE = types.ImageContent(data=base64.b64encode(PICTURE).decode(), mime_type="image/png")
SOUND = types.AudioContent(data=base64.b64encode(b"RIFF....WAVE").decode(), mime_type="audio/wav")
SVG = types.ImageContent(data=base64.b64encode(b"<svg/>").decode(), mime_type="image/svg+xml")
NOTE = types.EmbeddedResource(
    resource=types.TextResourceContents(uri="shop://note", text="Tea is out.", mime_type="text/plain")
)
FILE = types.EmbeddedResource(
    resource=types.BlobResourceContents(uri="shop://file", blob=SOUND.data, mime_type="application/zip")
)
LINK = types.ResourceLink(uri="shop://list", name="list")


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[StorePages]:
    store = Store(tmp_path / "store.db")
    yield StorePages(lambda: store, "s", "ann", 100)
    store.close()


def kept(pages: StorePages) -> ToolContext:
    return ToolContext(Workspace(Path()), pages=pages)


@pytest.mark.parametrize(
    "content",
    [
        [types.TextContent(text="one")],
        [IMAGE],
        [SOUND],
        [SVG],
        [NOTE],
        [FILE],
        [LINK],
        [types.TextContent(text="one"), IMAGE, SOUND, NOTE, FILE, LINK],
    ],
)
def test_the_content_of_a_server_is_the_content_for_a_client(pages: StorePages, content: list[Any]) -> None:
    assert content_of(parts_of(content, kept(pages)), pages) == content


def test_data_without_an_address_gets_one(pages: StorePages) -> None:
    said = blob(SOUND.data, "application/zip", "part 1", kept(pages))
    (found,) = content_of(said, pages)
    assert isinstance(found, types.EmbeddedResource)
    assert found.resource.uri == f"quoth://blob/{said['blob']}"


@pytest.mark.parametrize(
    "value",
    [
        {"tea": 3},
        ["one", "two"],
        [],
        None,
        ["one", 2],
        {"resource": "no address", "text": "x"},
        {"resource": "http:// x", "text": "x"},
        {"resource": "shop://note", "text": 3},
        {"resource": "shop://note", "text": "x", "more": "y"},
        {"blob": "missing", "name": "a", "type": "audio/wav", "bytes": 3},
        [{"resource": "shop://note", "text": "x"}, {"tea": 3}],
    ],
)
def test_any_other_value_is_json(pages: StorePages, value: Any) -> None:
    (found,) = content_of(value, pages)
    assert isinstance(found, types.TextContent)
    assert json.loads(found.text) == value


def test_the_id_of_a_text_that_is_no_such_data_stays_an_id(pages: StorePages) -> None:
    for text, size in (("a long result", 9), ("abcd", 4)):
        value = {"blob": pages.keep(text), "name": "a", "type": "audio/wav", "bytes": size}
        assert [one.type for one in content_of(value, pages)] == ["text"]


def test_an_image_inside_a_value_is_shown_beside_it(pages: StorePages) -> None:
    value = {"tea": parts_of([IMAGE], kept(pages))}
    assert [one.type for one in content_of(value, pages)] == ["text", "image"]


async def test_a_server_can_give_its_tools_other_names(tmp_path: Path) -> None:
    table = ToolTable()
    tool("tea-stock", lambda: 3, effects=["reads"], table=table)
    async with client(tmp_path, tools=table, named=lambda one: one.name.replace("-", "_")) as at:
        assert [one.name for one in (await at.list_tools()).tools] == ["tea_stock"]
        assert text_of(await at.call_tool("tea_stock", {})) == "3"
