"""Thirty everyday tasks that no prompt, tool or rule of the coach was tuned on. They are frozen: a test
compares their digest. To look at single answers of a model here, and then to change the product, is to use
them up."""

from __future__ import annotations

from everyday_more import Task, holds, says, says_any

SHOP = {
    "readme.md": "# Bicycle shop\n\nOrders are in orders, the stock is in stock. Settings: shop.json.\n",
    "shop.json": '{\n  "name": "Two Wheels",\n  "currency": "EUR",\n  "vat_percent": 19,\n'
    '  "opening": {"weekday": "09:00", "saturday": "10:00"},\n  "bays": 4\n}\n',
    "stock/parts.csv": "part,shelf,count,price\nchain,A3,14,18\nbell,B1,40,6\nbrake pad,A1,26,9\n"
    "inner tube,C2,55,5\nsaddle,C4,3,32\npump,B2,0,21\n",
    "stock/reorder.txt": "Reorder a part when fewer than 5 are left.\nSupplier number: 60714\n",
    "orders/1001.org": "#+TITLE: Order 1001\n* TODO Fit a new chain\n  SCHEDULED: <2026-05-04 Mon>\n"
    "  Bay 2. One hour.\n",
    "orders/1002.org": "#+TITLE: Order 1002\n* DONE Replace both brake pads\n  CLOSED: [2026-04-28 Tue]\n"
    "  Bay 1. Half an hour.\n",
    "orders/1003.org": "#+TITLE: Order 1003\n* TODO Change the saddle\n  SCHEDULED: <2026-05-06 Wed>\n"
    "  Bay 4. A quarter of an hour.\n",
    "notes/suppliers.md": "# Suppliers\n\n- 60714: Northway Parts, delivers on Tuesdays\n"
    "- 60820: Rubber & Co, delivers on Fridays\n",
    "logs/door.log": "08:58 open\n09:12 visitor\n09:40 visitor\n10:05 delivery\n11:30 visitor\n"
    "12:00 close\n13:00 open\n14:20 visitor\n17:45 delivery\n18:00 close\n",
}
WEATHER = {
    "README.org": "#+TITLE: Weather station\n* Use\n  Start it with =python -m station=.\n"
    "* Calibrate\n  Put the sensor in ice water; it must show 0.\n",
    "station/__main__.py": "from station.sensor import read\nfrom station.store import append\n\n"
    "INTERVAL = 300\n\n\ndef main():\n    append(read())\n\n\nif __name__ == '__main__':\n    main()\n",
    "station/sensor.py": "OFFSET = -2\n\n\ndef raw():\n    return 21\n\n\n"
    "def read():\n    return raw() + OFFSET\n",
    "station/store.py": "import json\nfrom pathlib import Path\n\nFILE = Path('readings.jsonl')\n\n\n"
    "def append(value):\n    with FILE.open('a') as out:\n"
    "        out.write(json.dumps({'value': value}))\n\n\n"
    "def last():\n    return json.loads(FILE.read_text().splitlines()[-1])\n",
    "station/convert.py": "def to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 32\n\n\n"
    "def to_kelvin(celsius):\n    return celsius + 273\n",
    "tests/test_convert.py": "from station.convert import to_kelvin\n\n\n"
    "def test_kelvin():\n    assert to_kelvin(0) == 273\n\n\n"
    "def test_kelvin_warm():\n    assert to_kelvin(20) == 293\n",
    "data/may.csv": "day,low,high,rain\n1,6,14,0\n2,7,17,0\n3,9,12,11\n4,8,13,6\n5,5,18,0\n",
    "config.yaml": "station:\n  name: hill\n  height: 412\n"
    "upload:\n  host: upload.example.org\n  every: 15\n",
    "config.old.yaml": "station:\n  name: hill\n  height: 398\n",
}
FRESH = (
    Task("json", "What is the currency of the shop, according to shop.json?", says_any("EUR"), SHOP),
    Task("json", "At which time does the shop open on a Saturday?", says_any("10:00", "10"), SHOP),
    Task(
        "json",
        "In shop.json, change the number of bays from 4 to 5.",
        holds("shop.json", '"bays": 5', '"bays": 4'),
        SHOP,
    ),
    Task("csv", "On which shelf is the bell?", says("B1"), SHOP),
    Task("csv", "Which part in stock/parts.csv has a count of 0?", says_any("pump"), SHOP),
    Task("csv", "What do two saddles cost, according to stock/parts.csv?", says("64"), SHOP),
    Task("csv", "How many chains and bells are there together in stock/parts.csv?", says("54"), SHOP),
    Task(
        "csv",
        "In stock/parts.csv, set the count of the pump to 12.",
        holds("stock/parts.csv", "saddle,C4,3,32\npump,B2,12,21"),
        SHOP,
    ),
    Task("org", "In which bay is order 1003 done?", says("4"), SHOP),
    Task("org", "For which date is the new chain scheduled?", says_any("2026-05-04", "May 4", "4 May"), SHOP),
    Task(
        "org",
        "Mark the heading in orders/1001.org as DONE instead of TODO.",
        holds("orders/1001.org", "* DONE Fit a new chain\n  SCHEDULED", "TODO"),
        SHOP,
    ),
    Task("org", "Which order is already DONE?", says("1002"), SHOP),
    Task("count", "How many lines of logs/door.log contain visitor?", says_any("4", "four"), SHOP),
    Task("count", "How many files are in the folder orders?", says_any("3", "three"), SHOP),
    Task(
        "two files",
        "stock/reorder.txt has the number of a supplier. On which day does this supplier deliver, "
        "according to notes/suppliers.md?",
        says_any("Tuesday", "Tuesdays"),
        SHOP,
    ),
    Task(
        "two files",
        "Which part must be reordered by the rule in stock/reorder.txt, though some are left?",
        says_any("saddle"),
        SHOP,
    ),
    Task("write", "Write the word closed into the file out/sign.txt.", holds("out/sign.txt", "closed"), SHOP),
    Task("code", "Which number is the constant INTERVAL?", says("300"), WEATHER),
    Task("code", "Which file defines the function last?", says_any("store.py"), WEATHER),
    Task("code", "How many functions are defined in station/convert.py?", says_any("2", "two"), WEATHER),
    Task("code", "Which value does the function read in station/sensor.py return?", says("19"), WEATHER),
    Task(
        "code",
        "In station/sensor.py, change OFFSET from -2 to -3.",
        holds("station/sensor.py", "OFFSET = -3\n\n\ndef raw", "-2"),
        WEATHER,
    ),
    Task("code", "Which file under station imports json?", says_any("store.py"), WEATHER),
    Task("yaml", "What is the height of the station in config.yaml?", says("412"), WEATHER),
    Task(
        "yaml",
        "In config.yaml, change the host to backup.example.org.",
        holds("config.yaml", "host: backup.example.org\n  every: 15", "upload.example.org"),
        WEATHER,
    ),
    Task("compute", "How much rain fell in all, according to data/may.csv?", says("17"), WEATHER),
    Task("compute", "What is the highest number in the column high of data/may.csv?", says("18"), WEATHER),
    Task("compute", "What is 25 * 48 - 36?", says("1164"), WEATHER),
    Task(
        "two files",
        "By how much do the heights in config.yaml and config.old.yaml differ?",
        says("14"),
        WEATHER,
    ),
    Task(
        "two-step",
        "How is the station started, according to README.org? Write that into the file out/start.txt.",
        holds("out/start.txt", "python -m station"),
        WEATHER,
    ),
)
