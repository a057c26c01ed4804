"""Ten requests that each ask for two deeds, as people ask: a small model did the first and stopped. They run
only when they are asked for."""

from __future__ import annotations

from pathlib import Path

from everyday_more import CLUB, PARCEL, Task, holds, says

from quoth.agent.reply import Reply


class both(holds):
    """Each of these files holds its text."""

    def __init__(self, *wanted: holds) -> None:
        super().__init__("", "")
        object.__setattr__(self, "wanted", wanted)

    def __call__(self, reply: Reply, root: Path) -> bool:
        return all(one(reply, root) for one in vars(self)["wanted"])


TWO = (
    Task(
        "two",
        "Write the word red into the file out/a.txt and the word blue into the file out/b.txt.",
        both(holds("out/a.txt", "red"), holds("out/b.txt", "blue")),
        CLUB,
    ),
    Task(
        "two",
        "Change the price of the rake in data/prices.csv to 19, and the number of stalls in club.toml to 8.",
        both(holds("data/prices.csv", "rake,19"), holds("club.toml", "stalls = 8")),
        CLUB,
    ),
    Task(
        "two",
        "How many members does the club have according to club.toml, and when does the licence in "
        "letters/water.txt end?",
        says("14", "2026-09-30"),
        CLUB,
    ),
    Task(
        "two",
        "Read the reference in letters/water.txt and write it into the file out/reference.txt.",
        holds("out/reference.txt", "W-7731"),
        CLUB,
    ),
    Task(
        "two",
        "Add the line rope,12 to data/prices.csv, and make a file bought.txt with the text: rope",
        both(holds("data/prices.csv", "shears,22\nspade,26\nrope,12"), holds("bought.txt", "rope")),
        CLUB,
    ),
    Task(
        "two",
        "In pyproject.toml change the timeout from 90 to 60, and write the number 60 into out/timeout.txt.",
        both(holds("pyproject.toml", "timeout = 60"), holds("out/timeout.txt", "60")),
        PARCEL,
    ),
    Task(
        "two",
        "Set RATE in parcel/price.py to 4 and WIDTH in parcel/label.py to 70.",
        both(holds("parcel/price.py", "RATE = 4"), holds("parcel/label.py", "WIDTH = 70")),
        PARCEL,
    ),
    Task(
        "two",
        "What is the value of GRAMS in parcel/weight.py, and of COPIES in desktop/Printer.java?",
        says("1000", "2"),
        PARCEL,
    ),
    Task(
        "two",
        "Write the word north into out/one.txt, then write south into out/two.txt.",
        both(holds("out/one.txt", "north"), holds("out/two.txt", "south")),
        PARCEL,
    ),
    Task(
        "two",
        "Compute 17 * 23 and write the result into the file out/product.txt.",
        holds("out/product.txt", "391"),
        PARCEL,
    ),
)
