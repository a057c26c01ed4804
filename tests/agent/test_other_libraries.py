"""Tools as the documentation of other libraries writes them become ours by another import and decorator."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from words import agent, files

IMPORT = "from quoth import ToolContext, ToolError, cognitive_tool"


class Library(NamedTuple):
    """How the tools of a library begin, and its words with ours for them."""

    begins: str
    words: dict[str, str]


PYDANTIC_AI = Library(
    "from pydantic_ai import Agent, ModelRetry, RunContext\n\nagent = Agent('test', deps_type=str)\n",
    {
        "@agent.tool_plain": "@cognitive_tool",
        "@agent.tool": "@cognitive_tool",
        "RunContext[str]": "ToolContext",
        "ModelRetry": "ToolError",
    },
)
SMOLAGENTS = Library("from smolagents import tool\n", {"@tool": "@cognitive_tool"})
LLM = Library("import llm\n", {"(llm.Toolbox)": ""})  # its functions have no decorator

TOOLS: list[tuple[Library, str, dict[str, Any]]] = [
    (
        PYDANTIC_AI,
        '''
@agent.tool_plain
def throw_die() -> int:
    """Throw a die with six sides and say what it shows."""
    return 4
''',
        {"(throw-die)": 4},
    ),
    (
        PYDANTIC_AI,
        '''
@agent.tool
def player(ctx: RunContext[str]) -> str:
    """Say who plays."""
    return ctx.user
''',
        {"(player)": "ann"},
    ),
    (
        PYDANTIC_AI,
        '''
@agent.tool_plain
def mix(a: int, b: str, c: dict[str, list[float]]) -> str:
    """Mix three things.

    Args:
        a: how many apples
        b: which banana
        c: the weights of each carrot
    """
    return f'{a} {b} {c}'
''',
        {'(mix 1 "ripe" {"long" [0.5]})': "1 ripe {'long': [0.5]}"},
    ),
    (
        PYDANTIC_AI,
        '''
from datetime import date
from pydantic import BaseModel


class Stay(BaseModel):
    """A stay in a hotel."""

    guest: str
    first: date
    nights: int = 1


@agent.tool_plain
def book(stay: Stay) -> Stay:
    """Book a stay."""
    return stay.model_copy(update={'nights': stay.nights + 1})
''',
        {
            '(book {"guest" "ann" "first" "2026-05-01"})': {
                "guest": "ann",
                "first": "2026-05-01",
                "nights": 2,
            }
        },
    ),
    (
        PYDANTIC_AI,
        '''
from dataclasses import dataclass


@dataclass
class Place:
    lat: float
    lng: float


PLACES = {'Berlin': Place(52.5, 13.4)}


@agent.tool
async def locate(ctx: RunContext[str], description: str) -> Place:
    """Find the latitude and longitude of a place.

    Args:
        ctx: The context.
        description: A description of the place.
    """
    if description not in PLACES:
        raise ModelRetry(f'No place named {description}; try a city.')
    return PLACES[description]
''',
        {
            '(locate "Berlin")': {"lat": 52.5, "lng": 13.4},
            '(locate "Bonn")': "No place named Bonn; try a city.",
        },
    ),
    (
        SMOLAGENTS,
        '''
@tool
def most_downloaded(task: str) -> str:
    """
    This is a tool that returns the most downloaded model of a given task. It returns the name of the model.

    Args:
        task: The task for which to look.
    """
    return {'text-to-video': 'a/model'}[task]
''',
        {'(most-downloaded "text-to-video")': "a/model"},
    ),
    (
        SMOLAGENTS,
        '''
from typing import Optional


@tool
def weather(location: str, celsius: Optional[bool] = False) -> str:
    """
    Get the weather of the next days at a location.

    Args:
        location: the location
        celsius: whether the temperature is in Celsius
    """
    return f"{location}: {-10 if celsius else 14}"
''',
        {'(weather "Oslo")': "Oslo: 14", '(weather "Oslo" :celsius True)': "Oslo: -10"},
    ),
    (
        SMOLAGENTS,
        '''
from typing import Any, Dict, List


@tool
def rank(items: List[Dict[str, Any]], by: str, most: int = 2) -> list:
    """Rank things.

    Args:
        items: The things, each with its properties.
        by: The property to rank by.
        most: How many to return.

    Returns:
        The best of them.
    """
    return sorted(items, key=lambda item: item[by])[:most]
''',
        {'(rank [{"n" 2} {"n" 1} {"n" 3}] :by "n")': [{"n": 1}, {"n": 2}]},
    ),
    (
        LLM,
        '''
def count_char(text: str, character: str) -> int:
    "Count how often a character is in a text."
    return text.count(character)


def multiply(x: int, y: int) -> int:
    """Multiply two numbers."""
    return x * y


async def greet(name: str) -> str:
    "Greet somebody."
    return f"Hello, {name}"


TOOLS = [count_char, multiply, greet]
''',
        {'(count-char "strawberry" "r")': 3, "(multiply 6 7)": 42, '(greet "ann")': "Hello, ann"},
    ),
    (
        LLM,
        '''
class Memory(llm.Toolbox):
    def __init__(self):
        self._kept = {}

    def set(self, key: str, value: str):
        "Set something as a key."
        self._kept[key] = value

    def get(self, key: str):
        "Get something from a key."
        return self._kept.get(key) or ""

    def keys(self) -> list[str]:
        "Return a list of keys."
        return list(self._kept.keys())


memory = Memory()
TOOLS = [memory.set, memory.get, memory.keys]
''',
        {'(set "a" "x")': None, '(get "a")': "x", "(keys)": ["a"]},
    ),
]  # fmt: skip


def ours(library: Library, source: str) -> str:
    """The same source with our import and decorator."""
    text = f"{library.begins}{source}".replace(library.begins, f"{IMPORT}\n")
    for theirs, word in library.words.items():
        text = text.replace(theirs, word)
    return text


@pytest.mark.parametrize(("library", "source", "calls"), TOOLS, ids=[min(calls) for *_, calls in TOOLS])
def test_a_tool_of_another_library_is_one_of_ours(
    tmp_path: Path, library: Library, source: str, calls: dict[str, Any]
) -> None:
    text = ours(library, source)
    if library is LLM:  # an agent is given the functions
        names: dict[str, Any] = {"__name__": "theirs"}
        exec(text, names)
        tools = names["TOOLS"]
    else:
        tools = [files(tmp_path, {"theirs.py": text}) / "theirs.py"]
    with agent(tmp_path, tools=tools, user="ann") as it:
        for call, value in calls.items():
            result = it.call(call)
            assert (result.value if result.ok else result.message) == value


def test_the_words_for_parameters_are_read_from_their_docstrings(tmp_path: Path) -> None:
    for library, source, _ in TOOLS:
        if library is not LLM and "Args:" in source:
            path = files(tmp_path, {"theirs.py": ours(library, source)}) / "theirs.py"
            with agent(tmp_path, tools=path) as it:
                (made,) = [tool for tool in it.table if tool.module and not tool.ships]
            assert made.params
            assert all(param.doc for param in made.params), made.name
