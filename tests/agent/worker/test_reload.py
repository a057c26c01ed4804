"""A reload runs what stands in the files now, and what is wrong with them leaves all as it was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sentences import IS_NEVER_CLOSED, THERE_IS_NO_FILE
from words import complaint, files

from quoth.agent.worker.assembly import Reloader
from quoth.tools.errors import UsageError
from quoth.tools.loading import load_tools
from quoth.tools.registry.table import ToolTable

SHOP = """(require quoth [def-cognitive-tool])
(import prices [PRICE])
(def-cognitive-tool price "Say the price." :body PRICE)
"""
MACRO = "(defmacro price [] {})\n"
RETOLD = "(require marks [price])\n(setv PRICE (price))\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of tools that imports another file."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = {*sys.modules}
    yield files(tmp_path, {"shop.hy": SHOP, "prices.py": "PRICE = 30\n"})
    for name in {*sys.modules} - before:
        del sys.modules[name]


def reloader(shop: Path) -> Reloader[ToolTable]:
    path = shop / "shop.hy"
    return Reloader(lambda: load_tools([path], ToolTable()), [path])


def price(table: ToolTable) -> object:
    body = table.get("price")._body
    assert body is not None
    return body(None, None)


def settled(files: Reloader[ToolTable]) -> bool:
    """Whether they are found changed, once nobody writes any more."""
    files.changed()
    return files.changed()


def test_a_file_that_the_tools_import_is_run_again(shop: Path) -> None:
    tools = reloader(shop)
    assert not settled(tools)
    (shop / "prices.py").write_text("PRICE = 40\n")  # as long as before, and within the same second
    assert settled(tools)
    old = tools.made
    assert (price(tools.reload()), price(old)) == (40, 30)
    assert not settled(tools)


def test_a_macro_of_another_file_is_expanded_again(shop: Path) -> None:
    files(shop, {"prices.hy": RETOLD, "marks.hy": MACRO.format(1)})
    (shop / "prices.py").unlink()
    tools = reloader(shop)
    (shop / "marks.hy").write_text(MACRO.format(2))
    assert settled(tools)
    assert price(tools.reload()) == 2


def test_what_is_still_being_written_is_left_alone(shop: Path) -> None:
    tools = reloader(shop)
    for text in ("PRICE = 4", "PRICE = 40", "PRICE = 400"):
        (shop / "prices.py").write_text(text)
        assert not tools.changed()
    assert tools.changed()


def without(name: str) -> Callable[[Path], object]:
    return lambda shop: (shop / name).unlink()


def with_(name: str, text: str) -> Callable[[Path], object]:
    return lambda shop: (shop / name).write_text(text)


@pytest.mark.parametrize(
    ("breaks", "said", "file"),
    [
        (with_("shop.hy", SHOP + "(+ 1"), f"this ( {IS_NEVER_CLOSED}", "shop.hy"),
        (without("shop.hy"), THERE_IS_NO_FILE, "shop.hy"),
        (with_("prices.py", "PRICE = 1 / 0"), "ZeroDivisionError", "prices.py"),
        (with_("shop.hy", SHOP.replace("prices", "dear")), "No module named 'dear'", "shop.hy"),
        (without("prices.py"), "No module named 'prices'", "prices.py"),
    ],
)
def test_a_broken_file_leaves_all_as_it_was(
    shop: Path, breaks: Callable[[Path], object], said: str, file: str
) -> None:
    tools = reloader(shop)
    whole, text = sys.modules["prices"], (shop / file).read_text()
    breaks(shop)
    assert settled(tools)
    assert said in complaint(UsageError, tools.reload)
    assert (price(tools.made), sys.modules["prices"]) == (30, whole)
    assert not settled(tools), "it is said once"
    (shop / file).write_text(text)
    assert settled(tools)
    assert price(tools.reload()) == 30


def test_a_file_that_a_broken_one_wants_to_import_is_watched(shop: Path) -> None:
    tools = reloader(shop)
    files(shop, {"shop.hy": SHOP.replace("prices", "dear"), "dear.py": "PRICE = 1 / 0"})
    assert "ZeroDivisionError" in complaint(UsageError, tools.reload)
    (shop / "dear.py").write_text("PRICE = 70")
    assert settled(tools)
    assert price(tools.reload()) == 70


def test_nothing_compiled_is_left_by_a_reload(shop: Path) -> None:
    tools = reloader(shop)
    kept = {path: path.stat().st_mtime_ns for path in shop.rglob("*.pyc")}
    assert kept
    (shop / "prices.py").write_text("PRICE = 40\n")
    tools.reload()
    assert {path: path.stat().st_mtime_ns for path in shop.rglob("*.pyc")} == kept
    assert sys.pycache_prefix is None
