"""Everyday tasks on a real model: share solved, steps, repeated calls, tokens, files changed by a
task that only asks. Not a test; it prints an Org table. The prompt was tuned on the first thirty, and on
those of the others (everyday_more.py) with an odd number; the even ones of these were held out, and seen
since. Thirty more (everyday_fresh.py) were run three times, then looked at and tuned on. Only when they are
asked for run thirty later ones (everyday_later.py), on which nothing was tuned, and ten with two deeds each
(everyday_two.py).

python tests/bench/everyday.py [local|local-small|any --model spec] [--dialect D]
                               [--half older|tuned|held-out|fresh|later|two] [--task N] [--show]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from everyday_fresh import FRESH
from everyday_later import LATER
from everyday_more import MORE, Task, holds, says, says_any
from everyday_two import TWO

from quoth import ModelOptions, RunLimits
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


OLDER: tuple[tuple[str, str, Callable[[Reply, Path], bool]], ...] = (
    ("find", "Which file defines the function parse_date?", says("src/util.py")),
    ("read", "Which port is set in config/settings.ini?", says("8472")),
    ("count", "How many TODO comments are there in the files under src?", says("5")),
    ("count", "How many lines of logs/server.log contain ERROR?", says("3")),
    ("compute", "What is 37 * 43 + 58?", says("1649")),
    ("compute", "What is the sum of the numbers in docs/stock.txt?", says("137")),
    (
        "write",
        "Write the text hello quoth into the file out/greeting.txt.",
        holds("out/greeting.txt", "hello quoth"),
    ),
    (
        "edit",
        "Change the port in config/settings.ini from 8472 to 9000.",
        holds("config/settings.ini", "port = 9000\nworkers = 3", "8472"),
    ),
    (
        "two-step",
        "docs/start.txt names another file. What is the code word in that other file?",
        says("heron"),
    ),
    (
        "two-step",
        "Who leads the Test team according to docs/team.org, "
        "and what is the phone number of that person in docs/phones.txt?",
        says("522"),
    ),
    # Written after the prompt was tuned.
    ("find", "Which file under docs mentions coal?", says("cellar.txt")),
    ("find", "In which file is the function close defined?", says("db.py")),
    ("find", "Which Python file under src imports datetime?", says("util.py")),
    ("read", "What does notes.md say to buy?", says("milk")),
    ("read", "How many workers are set in config/settings.ini?", says("3")),
    ("read", "What is the phone number of Ada Brandt in docs/phones.txt?", says("301")),
    ("read", "Who leads the Build team according to docs/team.org?", says("Okafor")),
    ("read", "What is the code word in docs/rooms/cellar.txt?", says("badger")),
    ("list", "How many files are in the folder docs/rooms?", says("2")),
    ("list", "Is there a file named db.py in the folder src? Answer yes or no.", says_any("yes", "db.py")),
    ("count", "How many TODO comments are in src/db.py?", says("2")),
    ("count", "How many lines of logs/server.log contain 2026-03-02?", says("8")),
    ("compute", "What is 144 divided by 12, plus 7?", says("19")),
    ("compute", "How many apples and pears are there together according to docs/stock.txt?", says("42")),
    ("compute", "What is 2 to the power of 16?", says("65536")),
    (
        "write",
        "Make a file named todo.txt that holds the text: call Paul",
        holds("todo.txt", "call Paul"),
    ),
    (
        "write",
        "Write the number 42 into the file out/answer.txt.",
        holds("out/answer.txt", "42"),
    ),
    (
        "edit",
        "In notes.md, change the word milk to bread.",
        holds("notes.md", "Buy bread.", "milk"),
    ),
    (
        "edit",
        "In docs/phones.txt the number of Paul Lindgren is wrong. Change 522 to 533.",
        holds("docs/phones.txt", "Paul Lindgren 533", "522"),
    ),
    (
        "two-step",
        "Which port is set in config/settings.ini? Write just that number into the file out/port.txt.",
        holds("out/port.txt", "8472"),
    ),
)
TASKS = (*(Task(*one, WORKSPACE) for one in OLDER), *MORE, *FRESH, *TWO, *LATER)
HALVES = {
    "older": range(1, 31),
    "tuned": range(31, 61, 2),
    "held-out": range(32, 61, 2),
}
PARTS = HALVES | {"fresh": range(61, 91), "two": range(91, 101), "later": range(101, 131)}

REPLY = 300  # tokens: a model that has lost its way writes for ever


def tagged_table() -> ToolTable:
    """The tools that ship, each with its name as a tag; none of them has one of its own."""
    table = load_tools(())
    tags = {tool.name: tool.name.upper().replace("-", "_") for tool in table.shown}
    return ToolTable(tuple(replace(tool, tag=tags.get(tool.name, "")) for tool in table))


def now_in(root: Path) -> dict[str, str]:
    """The files that are there, but for quoth's own."""
    return {
        str(file.relative_to(root)): file.read_text()
        for file in root.rglob("*")
        if file.is_file() and ".quoth" not in file.parts
    }


async def bench(model: str, dialect: str | None, chosen: list[int], show: bool) -> int:
    backend = choose_backend(model)
    solved = calls = again = turns = tokens = stopped = quoted = spoilt = tokens_in = 0
    spoken = f"{model}, {dialect}" if dialect else model
    print(
        f"| # | kind | {spoken} | calls | repeated | quoted | turns "
        "| tokens in | tokens out | s | changed | answer |"
    )
    print("|---+---+---+---+---+---+---+---+---+---+---+---|")
    try:
        for number in chosen:
            task = TASKS[number - 1]
            with tempfile.TemporaryDirectory(prefix="quoth-everyday-") as folder:
                root = Path(folder)
                for name, content in task.files.items():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(content)
                if show:
                    print(f"\n### {task.text}", file=sys.stderr)
                started, person = time.monotonic(), CountsQuoted()
                async with AsyncAgent(
                    workspace=root,
                    model=ModelOptions(backend, dialect=dialect),
                    tools=tagged_table() if dialect == "tags" else (),
                    limits=RunLimits(reply_tokens=REPLY),
                    consent=person,
                    on_event=Progress() if show else None,
                ) as agent:
                    reply = await agent.run(task.text)
                good = task.solved(reply, root)
                changed = task.only_asks and now_in(root) != task.files
            solved += good
            calls, again = calls + len(reply.calls), again + repeated(reply)
            turns, tokens = turns + reply.steps, tokens + reply.usage.output_tokens
            quoted += person.count
            stopped += "kept repeating" in reply.error
            spoilt, tokens_in = spoilt + changed, tokens_in + reply.usage.input_tokens
            answer = reply.said.replace("\n", " ").replace("|", "/")[:60]
            print(
                f"| {number} | {task.kind} | {'yes' if good else 'no'} | {len(reply.calls)} "
                f"| {repeated(reply)} | {person.count} | {reply.steps} "
                f"| {reply.usage.input_tokens} | {reply.usage.output_tokens} "
                f"| {time.monotonic() - started:.1f} "
                f"| {'CHANGED' if changed else ''} | {answer} |",
                flush=True,
            )
    finally:
        await backend.aclose()
    print(
        f"\nsolved {solved} of {len(chosen)} on {spoken}: {calls} calls, {again} of them repeated, "
        f"{quoted} asked as quoted, "
        f"{turns} turns, {tokens_in} tokens in, {tokens} out, {stopped} stopped by the repeat brake, "
        f"{spoilt} changed a file though the task only asks"
    )
    return solved


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default="local")
    options.add_argument("--dialect", help="how the model calls tools (default: the model's own)")
    options.add_argument("--half", choices=PARTS, action="append", help="only these; may be repeated")
    options.add_argument("--task", type=int, action="append", help="only this one; may be repeated")
    options.add_argument("--show", action="store_true", help="print the calls and results on stderr")
    asked = options.parse_args()
    chosen = asked.task or sorted(number for half in asked.half or HALVES for number in PARTS[half])
    asyncio.run(bench(asked.model, asked.dialect, chosen, asked.show))


if __name__ == "__main__":
    main()
