"""Thirty everyday tasks on a real model: share solved, steps, repeated calls, tokens. Not a test; it prints
an Org table. The prompt was tuned on the first ten only; the others were written afterwards.

python tests/bench/everyday.py [local|local-small|any --model spec] [--dialect D] [--task N] [--show]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from quoth import ModelOptions
from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.agent.terminal.progress import Progress
from quoth.neuro.backends.select import choose_backend
from quoth.tools.call.call import Call, Verdict
from quoth.tools.consent.requests import SayYes
from quoth.tools.loading import load_tools
from quoth.tools.registry.table import CognitiveTool, ToolTable

WORKSPACE = {
    "src/app.py": "import db\n\n# TODO: read the port from settings\n"
    "def main():\n    db.connect()\n\n# TODO: logging\n",
    "src/db.py": "# TODO: pool\ndef connect():\n    pass\n\n\ndef close():\n    pass\n# TODO: retry\n",
    "src/util.py": "import datetime\n\n\ndef parse_date(text):\n    # TODO: time zones\n"
    "    return datetime.date.fromisoformat(text)\n",
    "config/settings.ini": "[server]\nhost = localhost\nport = 8472\nworkers = 3\n",
    "docs/stock.txt": "apples 12\npears 30\nplums 7\ncherries 88\n",
    "docs/start.txt": "The rest is in docs/rooms/attic.txt.\n",
    "docs/rooms/attic.txt": "An old trunk. The code word is heron.\n",
    "docs/rooms/cellar.txt": "Wine and coal. The code word is badger.\n",
    "docs/team.org": "#+TITLE: Team\n* Build\n  Lead: Ines Okafor\n* Test\n  Lead: Paul Lindgren\n",
    "docs/phones.txt": "Ada Brandt 301\nInes Okafor 417\nPaul Lindgren 522\n",
    "logs/server.log": "".join(
        f"2026-03-0{1 + i // 8} {'ERROR' if i % 6 == 5 else 'INFO'} request {i}\n" for i in range(23)
    ),
    "notes.md": "# Notes\n\nBuy milk.\n",
}


@dataclass(frozen=True)
class Task:
    """What is asked, and how to see that it is done."""

    kind: str
    text: str
    solved: Callable[[Reply, Path], bool]


def says(*wanted: str) -> Callable[[Reply, Path], bool]:
    """The answer holds every wanted word, as a whole word."""
    return lambda reply, root: (
        reply.status == "done"
        and bool(reply.calls)
        and all(
            re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", reply.text.replace(",", "")) for word in wanted
        )
    )


def says_any(*wanted: str) -> Callable[[Reply, Path], bool]:
    """The answer holds one of the wanted words, in any case."""
    return lambda reply, root: (
        reply.status == "done"
        and bool(reply.calls)
        and any(
            re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", reply.text, re.IGNORECASE) for word in wanted
        )
    )


def repeated(reply: Reply) -> int:
    """How many of its calls were answered by the receipt of an earlier one."""
    return sum(call.result.audit.get("stage") == "receipt" for call in reply.calls)


class CountsQuoted(SayYes):
    """Says yes to everything, and counts the calls that were asked about because their words stand in a
    result: none of these tasks should come to one."""

    def __init__(self) -> None:
        self.count = 0

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None:
        self.count += bool(call.quoted)
        return await super().request(tool, call, reason)


def holds(name: str, text: str, lacks: str = "\0") -> Callable[[Reply, Path], bool]:
    """The run ended well and the file holds the text."""

    def check(reply: Reply, root: Path) -> bool:
        file = root / name
        content = file.read_text() if file.is_file() else ""
        return reply.status == "done" and text in content and lacks not in content

    return check


TASKS = (
    Task("find", "Which file defines the function parse_date?", says("src/util.py")),
    Task("read", "Which port is set in config/settings.ini?", says("8472")),
    Task("count", "How many TODO comments are there in the files under src?", says("5")),
    Task("count", "How many lines of logs/server.log contain ERROR?", says("3")),
    Task("compute", "What is 37 * 43 + 58?", says("1649")),
    Task("compute", "What is the sum of the numbers in docs/stock.txt?", says("137")),
    Task(
        "write",
        "Write the text hello quoth into the file out/greeting.txt.",
        holds("out/greeting.txt", "hello quoth"),
    ),
    Task(
        "edit",
        "Change the port in config/settings.ini from 8472 to 9000.",
        holds("config/settings.ini", "port = 9000\nworkers = 3", "8472"),
    ),
    Task(
        "two-step",
        "docs/start.txt names another file. What is the code word in that other file?",
        says("heron"),
    ),
    Task(
        "two-step",
        "Who leads the Test team according to docs/team.org, "
        "and what is the phone number of that person in docs/phones.txt?",
        says("522"),
    ),
    # Written after the prompt was tuned.
    Task("find", "Which file under docs mentions coal?", says("cellar.txt")),
    Task("find", "In which file is the function close defined?", says("db.py")),
    Task("find", "Which Python file under src imports datetime?", says("util.py")),
    Task("read", "What does notes.md say to buy?", says("milk")),
    Task("read", "How many workers are set in config/settings.ini?", says("3")),
    Task("read", "What is the phone number of Ada Brandt in docs/phones.txt?", says("301")),
    Task("read", "Who leads the Build team according to docs/team.org?", says("Okafor")),
    Task("read", "What is the code word in docs/rooms/cellar.txt?", says("badger")),
    Task("list", "How many files are in the folder docs/rooms?", says("2")),
    Task(
        "list", "Is there a file named db.py in the folder src? Answer yes or no.", says_any("yes", "db.py")
    ),
    Task("count", "How many TODO comments are in src/db.py?", says("2")),
    Task("count", "How many lines of logs/server.log contain 2026-03-02?", says("8")),
    Task("compute", "What is 144 divided by 12, plus 7?", says("19")),
    Task("compute", "How many apples and pears are there together according to docs/stock.txt?", says("42")),
    Task("compute", "What is 2 to the power of 16?", says("65536")),
    Task(
        "write",
        "Make a file named todo.txt that holds the text: call Paul",
        holds("todo.txt", "call Paul"),
    ),
    Task(
        "write",
        "Write the number 42 into the file out/answer.txt.",
        holds("out/answer.txt", "42"),
    ),
    Task(
        "edit",
        "In notes.md, change the word milk to bread.",
        holds("notes.md", "Buy bread.", "milk"),
    ),
    Task(
        "edit",
        "In docs/phones.txt the number of Paul Lindgren is wrong. Change 522 to 533.",
        holds("docs/phones.txt", "Paul Lindgren 533", "522"),
    ),
    Task(
        "two-step",
        "Which port is set in config/settings.ini? Write just that number into the file out/port.txt.",
        holds("out/port.txt", "8472"),
    ),
)


def tagged_table() -> ToolTable:
    """The tools that ship, each with its name as a tag; none of them has one of its own."""
    table = load_tools(())
    tags = {tool.name: tool.name.upper().replace("-", "_") for tool in table.shown}
    return ToolTable(tuple(replace(tool, tag=tags.get(tool.name, "")) for tool in table))


async def bench(model: str, dialect: str | None, chosen: list[int], show: bool) -> int:
    backend = choose_backend(model)
    solved = calls = again = turns = tokens = stopped = quoted = 0
    spoken = f"{model}, {dialect}" if dialect else model
    print(f"| # | kind | {spoken} | calls | repeated | quoted | turns | tokens out | s | answer |")
    print("|---+---+---+---+---+---+---+---+---+---|")
    try:
        for number in chosen:
            task = TASKS[number - 1]
            with tempfile.TemporaryDirectory(prefix="quoth-everyday-") as folder:
                root = Path(folder)
                for name, content in WORKSPACE.items():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(content)
                if show:
                    print(f"\n### {task.text}", file=sys.stderr)
                started, person = time.monotonic(), CountsQuoted()
                async with AsyncAgent(
                    workspace=root,
                    model=ModelOptions(backend, dialect=dialect),
                    tools=tagged_table() if dialect == "tags" else (),
                    consent=person,
                    on_event=Progress() if show else None,
                ) as agent:
                    reply = await agent.run(task.text)
                good = task.solved(reply, root)
            solved += good
            calls, again = calls + len(reply.calls), again + repeated(reply)
            turns, tokens = turns + reply.steps, tokens + reply.usage.output_tokens
            quoted += person.count
            stopped += "again and again" in reply.error
            answer = reply.said.replace("\n", " ").replace("|", "/")[:60]
            print(
                f"| {number} | {task.kind} | {'yes' if good else 'no'} | {len(reply.calls)} "
                f"| {repeated(reply)} | {person.count} | {reply.steps} "
                f"| {reply.usage.output_tokens} | {time.monotonic() - started:.1f} | {answer} |",
                flush=True,
            )
    finally:
        await backend.aclose()
    print(
        f"\nsolved {solved} of {len(chosen)} on {spoken}: {calls} calls, {again} of them repeated, "
        f"{quoted} asked as quoted, "
        f"{turns} turns, {tokens} tokens out, {stopped} stopped by the repeat brake"
    )
    return solved


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default="local")
    options.add_argument("--dialect", help="how the model calls tools (default: the model's own)")
    options.add_argument("--task", type=int, action="append", help="only this one; may be repeated")
    options.add_argument("--show", action="store_true", help="print the calls and results on stderr")
    asked = options.parse_args()
    asyncio.run(bench(asked.model, asked.dialect, asked.task or list(range(1, len(TASKS) + 1)), asked.show))


if __name__ == "__main__":
    main()
