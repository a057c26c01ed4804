"""What the words of a task clearly order. A wrong change is worse than none."""

from __future__ import annotations

import re

import pytest

from quoth.agent.run.evidence import asked_by
from quoth.agent.run.orders import orders_in


@pytest.mark.parametrize(
    ("task", "changed", "made"),
    [
        ("Which port is set in a.ini? Write it into b.txt.", (), ("b.txt",)),
        ("In a.ini change the port to 3, and write 3 into b.txt.", ("a.ini",), ("b.txt",)),
        ("Set the port in a.ini to 4 and the name in b.txt to x.", ("a.ini", "b.txt"), ()),
        ("According to b.txt, change a.ini.", ("a.ini",), ()),
        ("In a.ini, change the host to b.example.org.", ("a.ini",), ()),
        ("Add the total of a.ini to b.txt.", ("b.txt",), ()),
        ("Add the numbers of a.ini to b.txt.", ("b.txt",), ()),
        ("Change my name in a.ini to Bob, and change nothing else.", ("a.ini",), ()),
        ("In b.txt the name is wrong. Change x to y.", ("b.txt",), ()),
        ("Could you set the port in a.ini to 3?", ("a.ini",), ()),
        ("That is KEEP in a.sh, please adjust it.", ("a.sh",), ()),
        ("Turn the web part off in a.ini (on = no). The rest stays!", ("a.ini",), ()),
        ("Please put an item at the bottom of a.org: TODO Tea", ("a.org",), ()),
        ("Remove the line about tea from a.txt.", ("a.txt",), ()),
        ("In a.py, f should be called g. Rename it.", ("a.py",), ()),
        ("Set the port to 3 in a.ini, but don't change anything else.", ("a.ini",), ()),
        ("Make me a new file b.txt with the names from a.csv.", (), ("b.txt",)),
        ("Please do the following: change the port in a.ini to 3", ("a.ini",), ()),
        ("X is not in a.ini, so add it.", ("a.ini",), ()),
        ('Add "do not disturb" to a.txt.', ("a.txt",), ()),
        ("Add milk to a.txt. Nothing is there yet.", ("a.txt",), ()),
        ("Mark my task as done in a.md.", ("a.md",), ()),
        ("Replace no with yes in a.ini.", ("a.ini",), ()),
        ("Fix spelling in a.txt.", ("a.txt",), ()),
        ("Fix what is wrong in a.md.", ("a.md",), ()),
        ("Add eggs to a.txt, then tell me how many items there are.", ("a.txt",), ()),
        ("TODO: fix the typo in a.md.", ("a.md",), ()),
        ("- Add milk to a.txt", ("a.txt",), ()),
        ("Don't forget to add milk to a.txt.", ("a.txt",), ()),
        ("Write the names of data.txt into a.txt.", (), ("a.txt",)),
        ("Save the total of my-data.csv to data.csv.", (), ("data.csv",)),
        ("Create a simple index.html.", (), ("index.html",)),
        ("Create a Python script hello.py.", (), ("hello.py",)),
        ('Change "debug" in a.ini to "info".', ("a.ini",), ()),
        ("In a.ini, set the port to 3. What was it before?", ("a.ini",), ()),
        ("Can you set the price in a.csv to 5, please?", ("a.csv",), ()),
        ("Make a file named c.md with three lines.", (), ("c.md",)),
        # None of these is forced: a wrong change is worse than none.
        ("Add up the minutes in a.org.", (), ()),
        ("Suppose the fee in a.ini rose by 2. Add it, what is it then?", (), ()),
        ("Change of plan: what is in a.ini?", (), ()),
        ("Put it in simple words: what does a.ini do?", (), ()),
        ("Update me on a.ini.", (), ()),
        ("Set a reminder to read a.ini.", (), ()),
        ("Rename a.txt to b.txt.", (), ()),
        ("Can you tell me what changed in a.ini?", (), ()),
        ("Set the port in a.ini to the value in b.txt.", (), ()),
        ("Compare a.ini to b.txt.", (), ()),
        ("What should I do to change the port in a.ini?", (), ()),
        ("Is it safe to change a.ini?", (), ()),
        ("Explain how to fix a.ini.", (), ()),
        ("Write a summary of a.ini.", (), ()),
        ("Put it simply: what does a.ini do?", (), ()),
        ("Read a.ini and change the port. Do not edit it.", (), ()),
        ("Write a poem about rain.", (), ()),
        ("Delete a.ini.", (), ()),
        ("Read a.ini. test_a.ini: fix the port.", (), ()),
        ("Add the numbers in a.ini.", (), ()),
        ("Add all amounts of a.ini together and tell me the sum.", (), ()),
        ("Add 3 to the port in a.ini and tell me what it would be.", (), ()),
        ("Set aside a.ini and tell me what is in b.txt.", (), ()),
        ("Mark said that a.ini is old. Is it?", (), ()),
        ("Turn to page 3 of a.ini and read it.", (), ()),
        ("Set up in a.ini: what is needed?", (), ()),
        ("Delete nothing from a.ini.", (), ()),
        ("Put the total of a.ini into words.", (), ()),
        ("Summarize a.ini and put it in one short sentence.", (), ()),
        ("Would you change a.ini?", (), ()),
        ("Please tell me. Change a.ini is what he said, is it true?", (), ()),
        # Words of somebody else
        ("Is this mail polite?\n> Hi Ada, please change the port in a.ini. Thanks, Bob", (), ()),
        ("Summarize this mail:\n\nHi Ada,\nplease fix a.ini and send it to me.", (), ()),
        ('Explain the log line: "disk full, update a.ini"', (), ()),
        ('Translate: "First, open a.ini. Then change the port."', (), ()),
        ("What does this do?\n```\nset x, add y to a.ini\n```", (), ()),
        ("He wrote: please fix a.ini. Did he do it?", (), ()),
        ("The ticket says this. Set the port in a.ini to 3. Is that a good idea?", (), ()),
        # About the answer
        ("Summarize a.ini. Add a short conclusion.", (), ()),
        ("Read a.ini, and add a joke to your answer.", (), ()),
        ("Review a.ini. Fix or leave it is up to me.", (), ()),
        ("Read a.ini but keep it as it is. Set your answer in capital letters.", (), ()),
        ("Ignore a.ini. Change your answer style to formal.", (), ()),
        # Nouns and names
        ("Mark Twain is in a.ini. When was he born?", (), ()),
        ("Update statements in a.sql: list them.", (), ()),
        ("Change requests are listed in a.ini. How many are open?", (), ()),
        ("Update: the port in a.ini is now 4. Is that right?", (), ()),
        ("Add-ons are listed in a.ini. Which are free?", (), ()),
        # What is possible, and what is forbidden
        ("Can you edit a.ini at all?", (), ()),
        ("Will you change a.ini when you run?", (), ()),
        ("Would you fix a.ini, or is it fine?", (), ()),
        ("You may not, under any circumstances, edit a.ini. What is in it?", (), ()),
        ("Make no changes to a.ini.", (), ()),
        ("Make sure nothing is written to a.ini.", (), ()),
        ("Write a script to create b.txt but do not run it.", (), ()),
        ("Dry run: change the port in a.ini to 3.", (), ()),
        ("Don't do it yet: change the port in a.ini to 3.", (), ()),
        ("Cancel: change the port in a.ini to 3.", (), ()),
        ("Ask me first, then change the port in a.ini to 3.", (), ()),
        ("Later, change the port in a.ini to 3. For now, tell me the port.", (), ()),
        ("Imagine I ask you: change the port in a.ini to 3. Which tool would you use?", (), ()),
        ("Suggest a commit message for: fix the parser in a.py", (), ()),
        ("Issue 12: fix the parser in a.py. Find related code.", (), ()),
        ("Tell me how to change a.ini, and set the port.", (), ()),
        ("Update nothing in a.ini.", (), ()),
        ("Set by default in a.ini, the port is 80. Explain it.", (), ()),
        ("Fix suggestions for a.py, please.", (), ()),
        ("Add everything in a.csv.", (), ()),
        ("Add a summary of a.md to your answer.", (), ()),
        ("Make up a story called a.txt.", (), ()),
        ("Print a.csv and add a total row.", (), ()),
        ("Count the lines in a.txt and add 5 to it.", (), ()),
        ("Mark wrote a.md. What does it say?", (), ()),
        ("Ändere den Port in a.ini.", (), ()),
    ],
)
def test_what_a_task_orders(task: str, changed: tuple[str, ...], made: tuple[str, ...]) -> None:
    orders = orders_in(task)
    assert (orders.changed, orders.made) == (changed, made)


@pytest.mark.parametrize(
    ("task", "adds"),
    [
        ("Please add milk to a.txt.", True),
        ("Add buy bread at the end of a.ini.", True),
        ('Add "call Bob" to my a.org.', True),
        ("Add to a.md: the meeting is moved.", True),
        ("Add the total of a.ini to b.txt.", True),
        ('Add "b": 2 to a.json.', False),
        ("In a.py, add a parameter x to f.", False),
        ("Add 5 to the number of apples in a.txt.", False),
        ("Add a column age to a.csv.", False),
        ("Add https to each link in a.md.", False),
        ("Put quotes around every name in a.csv.", False),
    ],
)
def test_only_whole_lines_of_a_list_are_added_at_its_end(task: str, adds: bool) -> None:
    assert orders_in(task).changed
    assert orders_in(task).adds == adds


def test_a_pasted_log_compiles_no_pattern_for_each_file_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 512 of them, each use of each was compiled anew: minutes."""
    log = "".join(f"line {n} of f{n}.txt was seen; please change it and then stop\n" for n in range(600))
    orders_in(log)
    compiled: list[str] = []
    monkeypatch.setattr(
        re,
        "_compile",
        lambda pattern, flags, real=re._compile: (compiled.append(pattern), real(pattern, flags))[1],
    )  # type: ignore[attr-defined]
    orders_in(log)
    assert len(set(compiled)) < 100


@pytest.mark.parametrize(
    ("task", "ordered"),
    [
        ("Fix the typo in a.md. What was it?", True),
        ("Add eggs and bread to a.txt. How many items are there now?", True),
        ("What is wrong in a.md? Fix it.", True),
        ("Which number has Ada in a.txt?", False),
        ("How would I change a.ini?", False),
    ],
)
def test_an_order_beside_a_question_is_not_forced_and_not_forbidden(task: str, ordered: bool) -> None:
    assert orders_in(task).any == ordered
    assert asked_by(task).only_asks != ordered


@pytest.mark.timeout(8)  # some patterns took twice that
@pytest.mark.parametrize(
    "words", ["please ", "could you ", "create f.txt ", "« ", "don't x any ", "f.txt g.txt "]
)
def test_a_long_task_is_read_to_its_end(words: str) -> None:
    assert not orders_in(words * (100_000 // len(words))).adds
