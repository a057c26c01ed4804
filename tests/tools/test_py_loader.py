"""Tools in Python files: loaded by --tools and Agent(tools=[…]), told of by line, and nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import quoth
from words import agent, complaint, files, load

from quoth import cognitive_tool, cognitive_tools
from quoth.tools.errors import UsageError
from quoth.tools.loading import load_tools

HEAD = "from quoth import cognitive_tool\n\n"
SHOP = (
    HEAD
    + '''
@cognitive_tool(effects=["reads"])
def double(number: int) -> int:
    """Double a number."""
    return 2 * number
'''
)
CRASH = (
    HEAD
    + '''
def deeper(key):
    return {"password": "hush"}[key]


def refuse(key):
    return deeper(key + 1)


@cognitive_tool
def crash(key: int = 3) -> str:
    """Crash."""
    return deeper(key)


@cognitive_tool(guard=refuse)
def guarded(key: int = 3) -> str:
    """Crash before."""
    return "done"
'''
)


def test_a_python_file_gives_the_tools_that_it_decorates(tmp_path: Path) -> None:
    shop = files(tmp_path, {"shop.py": SHOP}) / "shop.py"
    with agent(tmp_path, tools=[shop]) as it:
        assert it.call("(double 21)").value == 42
    assert "double" not in cognitive_tools
    assert not (tmp_path / "__pycache__").exists()
    shop.write_text(SHOP.replace("2 * number", "3 * number"))
    with agent(tmp_path, tools=shop) as it:
        assert it.call("(double 21)").value == 63


def test_an_agent_has_the_functions_it_lists_and_no_others_of_the_process(tmp_path: Path) -> None:
    @cognitive_tool(name="listed-here")
    def listed() -> str:
        """It is listed."""
        return "here"

    @cognitive_tool(name="not-listed")
    def other() -> str:
        """It is not."""
        return "there"

    try:
        with agent(tmp_path, tools=[listed]) as it:
            assert it.call("(listed-here)").value == "here"
            assert "not-listed" not in it.table
            said = it.call("(not-listed)")
            assert (said.status, said.message) == (
                "unknown",
                "This agent does not have not-listed; pass it in tools=[…].",
            )
        with agent(tmp_path) as it:
            assert {"listed-here", "not-listed"}.isdisjoint(it.table.names())
    finally:
        for name in ("listed-here", "not-listed"):
            del cognitive_tools._tools[name]
            cognitive_tools._names.remove(name)
        cognitive_tools._forget()


MISTAKES = {
    "def f(:\n  pass\n": "1:7: invalid syntax\n  def f(:\n        ^",
    "x = 1\nx.no\n": "2:1: AttributeError: 'int' object has no attribute 'no'\n  x.no\n  ^",
    HEAD + "@cognitive_tool\ndef f(x):\n    'D.'\n": (
        "4:7: f, parameter x: it needs a type annotation.\n  def f(x):\n        ^"
    ),
    HEAD + "@cognitive_tool\ndef echo(x: int):\n    'D.'\n": (
        "3:2: There is already a tool named echo, which ships with quoth; write replace=True to replace"
        " it.\n  @cognitive_tool\n   ^"
    ),
    "raise SystemExit(3)\n": "1:1: SystemExit: 3\n  raise SystemExit(3)\n  ^",
}


@pytest.mark.parametrize(("text", "sentence"), MISTAKES.items())
def test_a_mistake_in_a_python_file_is_told_at_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    path = files(tmp_path, {"my.py": text}) / "my.py"
    assert complaint(UsageError, lambda: load_tools([path])) == f"{path}:{sentence}"


def test_a_file_beside_it_is_not_imported_and_that_is_told(tmp_path: Path) -> None:
    files(tmp_path, {"helper.py": "x = 1\n", "my.py": "import helper\n", "my.hy": "(import helper)\n"})
    for name, load_it in {"my.py": lambda path: load_tools([path]), "my.hy": load}.items():
        said = complaint(UsageError, lambda load_it=load_it, name=name: load_it(tmp_path / name))  # type: ignore[misc]
        assert "ModuleNotFoundError: No module named 'helper'" in said
        last = f"The folder of the file is not searched; to search it: PYTHONPATH={tmp_path} quoth …"
        assert said.splitlines()[-1] == last


def test_a_duplicate_says_where_the_other_is(tmp_path: Path) -> None:
    files(tmp_path, {"shop.py": SHOP, "more.py": SHOP})
    said = complaint(UsageError, lambda: load_tools([tmp_path / "shop.py", tmp_path / "more.py"]))
    assert f"a tool named double, defined at {tmp_path}/shop.py:4; write replace=True" in said
    files(tmp_path, {"more.py": SHOP.replace('=["reads"]', '=["reads"], replace=True')})
    assert "double" in load_tools([tmp_path / "shop.py", tmp_path / "more.py"])


def test_what_broke_is_told_with_its_line_and_the_traceback_to_who_asks(tmp_path: Path) -> None:
    files(tmp_path, {"c.py": CRASH})
    with agent(tmp_path, tools=tmp_path / "c.py") as it:
        where = f"at {tmp_path}/c.py:5"
        assert it.call("(crash)").message == f"crash failed: KeyError: 3, {where}."
        denied = f"guarded was denied: its guard failed (KeyError, {where})."
        assert it.call("(guarded)").message == denied
    traced = quoth("call", "(crash)", "--tools", "c.py", "--debug", cwd=tmp_path).err
    assert traced.startswith("Traceback (most recent call last):\n  File")
    assert 'c.py", line 15, in crash\n    return deeper(key)' in traced
    assert "execution.py" not in traced
    assert traced.endswith("KeyError: 3\nquoth: error: crash failed: KeyError: 3, at c.py:5.\n")
    files(tmp_path, {"bad.py": "import nowhere_at_all\n"})
    told = quoth("tools", "--tools", "bad.py", "--debug", cwd=tmp_path)
    assert (told.code, told.out) == (2, "")
    assert "ModuleNotFoundError: No module named 'nowhere_at_all'\n\nDuring handling" in told.err
    assert told.err.endswith("  import nowhere_at_all\n  ^\n")


def test_a_file_that_defines_no_tool_is_refused(tmp_path: Path) -> None:
    path = files(tmp_path, {"vat.py": "def vat(price: float) -> float:\n    return price\n"}) / "vat.py"
    assert complaint(UsageError, lambda: load_tools([path])) == (
        f"{path} defines no tool. Write @cognitive_tool (from quoth) above each function that is a tool."
    )
