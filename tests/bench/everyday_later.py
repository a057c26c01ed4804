"""Thirty everyday tasks, written after everyday_fresh.py was looked at. No prompt, tool or rule of the coach
was tuned on them. They are frozen: a test compares their digest."""

from __future__ import annotations

from everyday_more import Task, holds, says, says_any

LIBRARY = {
    "README.md": "# Village library\n\nThe tables hold the books and the members; loans go by month.\n"
    "What readers must know is in rules.txt.\n",
    "rules.txt": "A book may be kept for 28 days.\nEvery late day costs 15 cents.\n"
    "Whoever loses the card pays 35 crowns for another.\nNobody borrows more than 6 books at once.\n",
    "tables/books.csv": "code,title,author,year,copies\nK11,Salt Road,Holm,1974,2\n"
    "K12,The Blue Kiln,Adeyemi,2009,4\nK13,Winter Bees,Sorel,1958,1\nK14,A Map of Rain,Holm,1981,3\n"
    "K15,Iron Lanterns,Vance,1996,2\nK16,Quiet Harbour,Sorel,2013,7\n",
    "tables/members.csv": "card,name,fine\n204,Jonas Pell,0\n207,Amira Said,75\n211,Greta Lund,30\n"
    "216,Ivo Marek,120\n",
    "loans/may.txt": "K12 card 207 back 2026-05-21\nK13 card 211 open\nK15 card 204 back 2026-05-30\n"
    "K11 card 207 open\nK16 card 216 open\nK14 card 211 back 2026-05-12\nK16 card 204 open\n",
    "loans/june.txt": "K14 card 204 open\nK12 card 216 back 2026-06-18\n",
    "events.org": "#+TITLE: Events\n* DONE Puppet show\n  CLOSED: [2026-03-21 Sat]\n  Guest: Leo Strand.\n"
    "* TODO Reading night\n  SCHEDULED: <2026-10-09 Fri>\n  Guest: Noor Haddad.\n"
    "* TODO Book sale\n  SCHEDULED: <2026-11-14 Sat>\n  Bring the cash box.\n",
    "budget.json": '{\n  "year": 2026,\n  "books": 2400,\n  "heating": 1350,\n  "repairs": 620,\n'
    '  "events": 380\n}\n',
    "letters/plumber.txt": "The pipe in the cellar was mended on 2026-04-02.\nInvoice 88214, to be paid.\n",
    "letters/school.txt": "Class 4b would like to visit, with 23 children.\n",
}
CHOIR = {
    "README.org": "#+TITLE: Harbour choir\n* Rehearsals\n  Every Wednesday in the old school.\n"
    "* Papers\n  The pieces are in programme, the money is in cash.\n",
    "singers.csv": "name,voice,joined\nBea Ortiz,alto,2011\nDunja Petric,soprano,2019\n"
    "Emil Roth,tenor,2015\nCarl Nyman,bass,2003\nFay Osei,alto,2022\nGus Tran,bass,2017\n"
    "Hana Weil,alto,2008\n",
    "programme/spring.txt": "River Song: 7 minutes\nThree Lanterns: 12 minutes\nMorning Hymn: 4 minutes\n"
    "The Ferryman: 15 minutes\n",
    "programme/autumn.txt": "Harvest Round: 9 minutes\nGrey Geese: 11 minutes\nRiver Song: 7 minutes\n",
    "cash/income.csv": "date,from,amount\n2026-01-15,fees,840\n2026-03-02,town,500\n"
    "2026-03-29,tickets,1260\n",
    "cash/costs.csv": "date,for,amount\n2026-01-20,hall,310\n2026-02-11,scores,275\n2026-04-03,robes,690\n",
    "tour.toml": '[tour]\ncity = "Lisbon"\ndeparture = 2026-09-24\nreturn = 2026-10-03\nseats = 32\n\n'
    '[bus]\ncompany = "Kestrel Coaches"\nprice = 1480\n\n[hotel]\nname = "Alameda"\nprice = 2150\n',
    "minutes/february.org": "#+TITLE: February\n* Present\n  Bea, Carl, Emil, Hana\n* Decisions\n"
    "  - The new robes are green.\n  - The fee stays at 60.\n",
    "minutes/april.org": "#+TITLE: April\n* Decisions\n  - Gus looks after the scores.\n"
    "  - The summer break begins on 2026-07-06.\n* Open\n** TODO Tune the piano\n"
    "   SCHEDULED: <2026-05-27 Wed>\n   Mr Falk has the key.\n** TODO Print the posters\n",
}
SHUTTER = {
    "pyproject.toml": '[project]\nname = "shutter"\nversion = "0.9.4"\nlicense = "MIT"\n'
    'dependencies = ["pillow", "rich"]\n\n[project.scripts]\nshutter = "shutter.cli:main"\n',
    "shutter/cli.py": "import argparse\n\nfrom shutter.naming import new_name\n"
    "from shutter.scan import photos\n\n\ndef main():\n    parser = argparse.ArgumentParser()\n"
    '    parser.add_argument("folder")\n    parser.add_argument("--dry-run", action="store_true")\n'
    '    parser.add_argument("--depth", type=int, default=6)\n    asked = parser.parse_args()\n'
    "    for number, photo in enumerate(photos(asked.folder, asked.depth)):\n"
    "        target = new_name(photo, number)\n        print(photo, target)\n"
    "        if not asked.dry_run:\n            photo.rename(target)\n",
    "shutter/naming.py": 'PREFIX = "img"\nDIGITS = 5\n\n\ndef new_name(photo, number):\n'
    '    return photo.with_name(f"{PREFIX}-{number:0{DIGITS}}{photo.suffix}")\n\n\n'
    "def clean(text):\n    if not text:\n        raise ValueError(text)\n"
    '    return text.strip().replace(" ", "_")\n',
    "shutter/scan.py": "from pathlib import Path\n\nfrom shutter.size import LIMIT\n\n"
    'ENDINGS = (".jpg", ".png", ".heic", ".tif")\n\n\nclass ScanError(Exception):\n    pass\n\n\n'
    "def photos(folder, depth):\n    root = Path(folder)\n    if not root.is_dir():\n"
    "        raise ScanError(folder)\n    for file in sorted(root.iterdir()):\n"
    "        if file.is_dir() and depth:\n            yield from photos(file, depth - 1)\n"
    "        elif file.suffix in ENDINGS and file.stat().st_size > LIMIT:\n            yield file\n",
    "shutter/size.py": "# Smaller photos are thumbnails.\nBLOCK = 512\nLIMIT = BLOCK * 24\n",
    "tests/test_naming.py": "from shutter.naming import clean\n\n\n"
    'def test_clean():\n    assert clean(" a b ") == "a_b"\n',
    "tests/test_scan.py": "import pytest\n\nfrom shutter.scan import ScanError, photos\n\n\n"
    "def test_missing():\n    with pytest.raises(ScanError):\n"
    '        list(photos("nowhere", 1))\n',
    "ci.yaml": "jobs:\n  test:\n    image: python-3.12\n    timeout: 25\n  lint:\n"
    "    image: python-3.12\n    timeout: 10\n",
    "docs/usage.md": "# Usage\n\nshutter FOLDER renames the photos in a folder.\n\n"
    "- `--dry-run` shows the new names only\n- `--depth N` looks N folders deep\n"
    "- `--quiet` prints nothing\n",
    "samples/export.json": '[\n  {"photo": "dune.heic", "bytes": 48210},\n'
    '  {"photo": "ferry.jpg", "bytes": 9875},\n  {"photo": "kite.png", "bytes": 102400},\n'
    '  {"photo": "moss.tif", "bytes": 97300}\n]\n',
}
LATER = (
    Task("read", "How many crowns does a reader pay after losing the library card?", says("35"), LIBRARY),
    Task("find", "I need the letter with invoice 88214. Which file is it?", says_any("plumber.txt"), LIBRARY),
    Task("org", "Who is the guest of the reading night in events.org?", says_any("Noor Haddad"), LIBRARY),
    Task("csv", "What is the title of the oldest book we have?", says_any("Winter Bees"), LIBRARY),
    Task(
        "compute",
        "Add up the copies of all the books in tables/books.csv. How many do we own?",
        says("19"),
        LIBRARY,
    ),
    Task("count", "How many of the loans in loans/may.txt are still open?", says_any("4", "four"), LIBRARY),
    Task(
        "two files",
        "Winter Bees was borrowed in May and never came back. Which member has it?",
        says_any("Greta Lund", "Greta", "Lund"),
        LIBRARY,
    ),
    Task(
        "compute",
        "A reader brings a book back 9 days late. How many cents is that, going by rules.txt?",
        says("135"),
        LIBRARY,
    ),
    Task(
        "json",
        "How much more money is planned for books than for heating in budget.json?",
        says("1050"),
        LIBRARY,
    ),
    Task(
        "json",
        "The repairs get more money this year: please set them to 700 in budget.json.",
        holds("budget.json", '"heating": 1350,\n  "repairs": 700,\n  "events": 380\n', "620"),
        LIBRARY,
    ),
    Task(
        "csv",
        "Amira Said has paid what she owed. Set her fine to 0 in tables/members.csv.",
        holds(
            "tables/members.csv", "204,Jonas Pell,0\n207,Amira Said,0\n211,Greta Lund,30\n216,Ivo Marek,120"
        ),
        LIBRARY,
    ),
    Task(
        "write",
        "Create a file signs/door.txt with this text: Closed in August",
        holds("signs/door.txt", "Closed in August"),
        LIBRARY,
    ),
    Task("csv", "Who joined the choir first, going by singers.csv?", says_any("Carl Nyman"), CHOIR),
    Task(
        "two files",
        "One piece is sung both in spring and in autumn. What is it called?",
        says_any("River Song"),
        CHOIR,
    ),
    Task(
        "two-step",
        "How many minutes does the spring programme take in all? Save the sum as out/length.txt.",
        holds("out/length.txt", "38"),
        CHOIR,
    ),
    Task(
        "two files",
        "What remains of all the income in cash/income.csv after all the costs in cash/costs.csv?",
        says("1325"),
        CHOIR,
    ),
    Task("compute", "How much is 346 * 27, less 1958?", says("7384"), CHOIR),
    Task("toml", "Which bus company takes the choir on tour?", says_any("Kestrel Coaches", "Kestrel"), CHOIR),
    Task(
        "toml",
        "The bus got dearer, it is 1540 now. Correct its price in tour.toml.",
        holds("tour.toml", 'Coaches"\nprice = 1540\n\n[hotel]\nname = "Alameda"\nprice = 2150', "1480"),
        CHOIR,
    ),
    Task(
        "dates",
        "How many nights is the choir away, from the departure to the return in tour.toml?",
        says_any("9", "nine"),
        CHOIR,
    ),
    Task(
        "dates",
        "On which day does the summer break of the choir begin?",
        says_any("2026-07-06", "July 6", "July 6th", "6 July", "6th July", "6th of July"),
        CHOIR,
    ),
    Task(
        "org",
        "The piano is tuned a week later. In minutes/april.org, put 2026-06-03 in place of 2026-05-27.",
        holds(
            "minutes/april.org",
            "** TODO Tune the piano\n   SCHEDULED: <2026-06-03 Wed>\n   Mr Falk has the key.\n** TODO Print",
            "2026-05-27",
        ),
        CHOIR,
    ),
    Task("list", "Name the files in the tests folder.", says("test_naming.py", "test_scan.py"), SHUTTER),
    Task(
        "code",
        "Which exception does the function photos raise if the folder is missing?",
        says_any("ScanError"),
        SHUTTER,
    ),
    Task("code", "What is the default value of the option --depth?", says_any("6", "six"), SHUTTER),
    Task("code", "What does LIMIT in shutter/size.py come to, as a number?", says("12288"), SHUTTER),
    Task(
        "code",
        "In shutter/naming.py, let the PREFIX be snap instead of img.",
        holds("shutter/naming.py", 'PREFIX = "snap"\nDIGITS = 5\n\n\ndef new_name', '"img"'),
        SHUTTER,
    ),
    Task(
        "yaml",
        "The lint job runs out of time. Set its timeout in ci.yaml to 15.",
        holds("ci.yaml", "timeout: 25\n  lint:\n    image: python-3.12\n    timeout: 15", "timeout: 10"),
        SHUTTER,
    ),
    Task("json", "Which photo in samples/export.json is the largest?", says_any("kite.png", "kite"), SHUTTER),
    Task(
        "two files",
        "docs/usage.md describes an option that shutter/cli.py does not have. Which one?",
        says_any("--quiet", "quiet"),
        SHUTTER,
    ),
)
