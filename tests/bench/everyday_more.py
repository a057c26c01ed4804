"""Thirty more everyday tasks, of other kinds: Org, CSV, TOML, code, dates, two files. They were written
before the prompt was given the surroundings; what was tuned then was tuned on those with an odd number, and
on the older thirty. The even ones are held out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from quoth.agent.reply import Reply


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


@dataclass(frozen=True)
class holds:
    """The run ended well and the file holds the text."""

    name: str
    text: str
    lacks: str = "\0"

    def __call__(self, reply: Reply, root: Path) -> bool:
        file = root / self.name
        content = file.read_text() if file.is_file() else ""
        return reply.status == "done" and self.text in content and self.lacks not in content


@dataclass(frozen=True)
class Task:
    """What is asked, how to see that it is done, and the files of its workspace."""

    kind: str
    text: str
    solved: Callable[[Reply, Path], bool]
    files: Mapping[str, str]

    @property
    def only_asks(self) -> bool:
        """Whether no file may be another afterwards."""
        return not isinstance(self.solved, holds)


CLUB = {
    "README.org": "#+TITLE: Garden club\nPapers of the club: figures are in data, the rest in notes.\n",
    "club.toml": '[club]\nname = "Green Thumb"\nfounded = 1987-05-02\nmembers = 14\n\n'
    '[market]\nday = "Saturday"\nstalls = 6\n',
    "notes/tasks.org": "#+TITLE: Tasks\n"
    "* TODO Mend the fence\n  DEADLINE: <2026-04-18 Sat>\n  Ask for nails.\n"
    "* DONE Order seeds\n  CLOSED: [2026-02-27 Fri]\n"
    "* TODO Paint the shed :summer:\n  DEADLINE: <2026-06-05 Fri>\n  Colour: moss green.\n"
    "* WAITING Water licence\n  The town answers within six weeks.\n"
    "* TODO Empty the barrels\n",
    "notes/minutes.org": "#+TITLE: Minutes\n* 2026-01-12\n  The fee was raised to 24.\n"
    "* 2026-03-09\n  The spring market is on 2026-05-16.\n* 2026-05-04\n  The club buys new shears.\n",
    "data/plots.csv": "plot,crop,area,rent\nA1,beans,40,18\nA2,carrots,25,12\nB1,tomatoes,60,27\n"
    "B2,empty,35,0\nC1,onions,25,12\n",
    "data/harvest.csv": "month,beans,carrots\n2026-06,3,0\n2026-07,11,4\n2026-08,9,15\n2026-09,2,12\n",
    "data/prices.csv": "item,price\nhose,39\nrake,17\nshears,22\nspade,26\n",
    "letters/water.txt": "Reference: W-7731\nThe licence for the well ends on 2026-09-30.\n",
}
PARCEL = {
    "pyproject.toml": '[project]\nname = "parcel"\nversion = "2.3.1"\nrequires-python = ">=3.11"\n'
    'dependencies = ["click", "tomlkit"]\n\n[tool.pytest]\ntimeout = 90\n',
    "parcel/weight.py": "GRAMS = 1000\n\n\ndef to_grams(kilos):\n    return kilos * GRAMS\n",
    "parcel/price.py": "from parcel.weight import to_grams\n\nRATE = 3\n\n\n"
    "def postage(kilos, express=False):\n    price = to_grams(kilos) // 100 * RATE\n"
    "    return price * 2 if express else price\n\n\ndef refund(price):\n    return price // 2\n",
    "parcel/label.py": 'class Label:\n    """What is printed on a parcel."""\n\n    WIDTH = 62\n\n'
    "    def __init__(self, name):\n        self.name = name\n\n"
    "    def line(self):  # FIXME: long names\n        return self.name[: self.WIDTH]\n",
    "tests/test_price.py": "from parcel.price import postage, refund\n\n\n"
    "def test_postage():\n    assert postage(2) == 60\n\n\n"
    "def test_express():\n    assert postage(2, express=True) == 120\n\n\n"
    "def test_refund():\n    assert refund(60) == 30\n",
    "desktop/Printer.java": "public class Printer {\n    private static final int COPIES = 2;\n\n"
    "    public void print(String text) {\n        for (int i = 0; i < COPIES; i++) {\n"
    "            System.out.println(text);\n        }\n    }\n}\n",
    "deploy/servers.toml": '[[server]]\nname = "north"\nport = 8101\n\n'
    '[[server]]\nname = "south"\nport = 8102\n',
    "CHANGES.org": "#+TITLE: Changes\n* 2.3.1 (2026-08-14)\n  - Labels are wider.\n"
    "* 2.3.0 (2026-05-30)\n  - Express parcels.\n* 2.2.0 (2025-11-02)\n  - Refunds.\n",
    "docs/returns.org": "#+TITLE: Returns\nA parcel that comes back is kept for 21 days.\n"
    "* Address\n  Harbour Road 5\n",
}
MORE = (
    Task(
        "org", "Which colour will the shed get, according to notes/tasks.org?", says_any("moss green"), CLUB
    ),
    Task("org", "How many headings in notes/tasks.org have the keyword TODO?", says_any("3", "three"), CLUB),
    Task("org", "Which task in the notes is marked as WAITING?", says_any("water licence"), CLUB),
    Task(
        "org",
        "Mark the task Mend the fence in notes/tasks.org as DONE instead of TODO.",
        holds("notes/tasks.org", "* DONE Mend the fence\n  DEADLINE", "TODO Mend"),
        CLUB,
    ),
    Task("org", "For how many days is a parcel kept that comes back?", says("21"), PARCEL),
    Task("csv", "What does a rake cost?", says("17"), CLUB),
    Task("csv", "Which crop grows on plot B1, according to data/plots.csv?", says_any("tomatoes"), CLUB),
    Task("csv", "What is the total rent of all plots in data/plots.csv?", says("69"), CLUB),
    Task("csv", "Which plot is empty?", says("B2"), CLUB),
    Task(
        "csv",
        "Add the line bucket,8 at the end of data/prices.csv.",
        holds("data/prices.csv", "rake,17\nshears,22\nspade,26\nbucket,8"),
        CLUB,
    ),
    Task("toml", "Which version of Python does the project require?", says_any("3.11"), PARCEL),
    Task("toml", "On which port does the server south listen?", says("8102"), PARCEL),
    Task(
        "toml",
        "Raise the version in pyproject.toml from 2.3.1 to 2.4.0.",
        holds("pyproject.toml", 'version = "2.4.0"\nrequires', "2.3.1"),
        PARCEL,
    ),
    Task("toml", "How many stalls does the market have, according to club.toml?", says_any("6", "six"), CLUB),
    Task(
        "toml",
        "In deploy/servers.toml, change the port of the server north to 8201.",
        holds("deploy/servers.toml", 'north"\nport = 8201\n\n[[server]]\nname = "south"\nport = 8102'),
        PARCEL,
    ),
    Task("code", "Which file defines the class Label?", says_any("label.py"), PARCEL),
    Task("code", "Which number is the constant WIDTH of a label?", says("62"), PARCEL),
    Task("code", "Which function in parcel/price.py has the parameter express?", says_any("postage"), PARCEL),
    Task("code", "How many test functions are in tests/test_price.py?", says_any("3", "three"), PARCEL),
    Task("code", "How many copies does the Java class Printer make?", says_any("2", "two"), PARCEL),
    Task(
        "dates",
        "When does the licence for the well end?",
        says_any("2026-09-30", "September 30", "September 30th", "30 September"),
        CLUB,
    ),
    Task(
        "dates",
        "What is the deadline for painting the shed?",
        says_any("2026-06-05", "June 5", "June 5th", "5 June"),
        CLUB,
    ),
    Task(
        "dates",
        "Write today's date, in the form YYYY-MM-DD, into the file out/today.txt.",
        holds("out/today.txt", date.today().isoformat()),
        CLUB,
    ),
    Task(
        "dates", "In which year was version 2.2.0 released, according to CHANGES.org?", says("2025"), PARCEL
    ),
    Task("dates", "How many days is it from 2026-03-09 to 2026-03-30?", says("21"), CLUB),
    Task(
        "two files",
        "Which crop grows on plot A1 according to data/plots.csv, "
        "and how much of it was harvested in 2026-07 according to data/harvest.csv?",
        says("11"),
        CLUB,
    ),
    Task(
        "two files",
        "notes/minutes.org says what the club buys. What is its price in data/prices.csv?",
        says("22"),
        CLUB,
    ),
    Task(
        "two files",
        "Write the address that is in docs/returns.org into the file out/address.txt.",
        holds("out/address.txt", "Harbour Road 5"),
        PARCEL,
    ),
    Task(
        "two files",
        "Is the version in pyproject.toml the newest one in CHANGES.org? Answer yes or no.",
        says_any("yes"),
        PARCEL,
    ),
    Task(
        "two files",
        "Which file of the folder parcel imports a function from another file there, and which function?",
        says("to_grams"),
        PARCEL,
    ),
)
