"""The working rules for a model, in each dialect. The texts are tuned: measure before changing one.

The examples use only built-in tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from quoth.tools.lisp.forms import CallForm

HOW = """\
HOW TO WORK:
You know only the names of the files here: look before you answer, and never guess.
- If the task is about a file, begin with read-file. To find out which files hold a word, use grep-search.
- To change a file, use edit-file; to make one, write-file.
- To compute, use eval; never compute in your head.
Reply with one call and nothing else; its result is the next message. Then send the next call, or answer.
When the results answer the task, reply in one plain sentence.
"""

EXAMPLE = """
EXAMPLE:
Task: Which colour does <file> name, and how many lines of <other> hold it?
{read}
Result: The colour is green.
{grep}
Result: 2 items
The colour is green, and 2 lines of <other> hold it.
"""

READ = CallForm("read-file", {"path": "<file>"})
GREP = CallForm("grep-search", {"pattern": "green", "path": "<other>"})


def text_rules(spell: Callable[[CallForm], str]) -> str:
    """The rules of a dialect with calls in text; ``spell`` writes the calls of the example."""
    return HOW + EXAMPLE.format(read=spell(READ), grep=spell(GREP))


def rules_without(told: str, names: Collection[str]) -> str:
    """The rules without hints and an example that name one of these tools."""
    named = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])")
    how, example, rest = told.partition("\nEXAMPLE:\n")
    lines = []
    for line in how.splitlines():
        if line.startswith("- ") and named.search(line):
            hints = line[2:].rstrip(".").split(". ")
            kept = [hint for hint in hints if not named.search(hint)]
            line = f"- {'. '.join(kept)}." if kept else ""
        lines += [line] if line else []
    return "\n".join(lines) + "\n" + ("" if named.search(rest) else example + rest)


# A line is left out if a tool in it is missing: the tables of chat bots need not contain these tools.
TAG_HINTS = (
    (("read-file",), "- If the task names a file, begin with {}, for any question about it.\n"),
    (
        ("grep-search",),
        "- If it asks which file, or how many lines hold a word, begin with {}.\n",
    ),
    (("edit-file", "write-file"), "- To change a file, use {}; to make one, {}.\n"),
    (("eval",), "- To compute with numbers that you know, use {}; never compute in your head.\n"),
)
TAGS = """\
HOW TO WORK:
{files}ook before you answer, and never guess.
{hints}\
{ends}
"""
TAGS_GO_ON = """\
Reply with one tagged line and nothing else; its result is the next message. Then write the next, or answer.
When the results answer the task, reply in one plain sentence."""
TAGS_STOP = """\
Reply in plain words, with each tagged line on a line of its own. Its result is shown to the person, and to
you with the next message: do not tell of a result that you have not seen."""
TAG_EXAMPLES = (  # one for each tool: a model that saw two in one task began every task with the first
    (
        "read-file",
        "How many doors does <file> name?",
        "<file>",
        "A green house with 2 doors.",
        "The file <file> names 2 doors.",
    ),
    (
        "grep-search",
        "Which file under lib defines open_door?",
        '{"pattern": "open_door", "path": "lib"}',
        "lib/b.py, line 3: def open_door():",
        "It is lib/b.py.",
    ),
    ("eval", "What is 3 * 4 + 5?", "(+ (* 3 4) 5)", "17", "It is 17."),
)


def tag_rules(tags: Mapping[str, str], *, stops: bool = False) -> str:
    """The rules of the dialect tags for tools with these ``tags``, by their names. ``stops``: the model sees
    the results of a reply only with the next message."""
    told = TAGS.format(
        files="You know only the names of the files here: l" if "read-file" in tags else "L",
        hints="".join(
            hint.format(*map(tags.get, tools)) for tools, hint in TAG_HINTS if tags.keys() >= set(tools)
        ),
        ends=TAGS_STOP if stops else TAGS_GO_ON,
    )
    for tool, task, words, result, answer in TAG_EXAMPLES:
        if tool in tags and not stops:  # the examples continue to an answer
            told += f"\nEXAMPLE:\nTask: {task}\n{tags[tool]}: {words}\nResult: {result}\n{answer}\n"
    return told


NATIVE = """\
HOW TO WORK:
You know only the names of the files here: look before you answer, and never guess.
- If the task is about a file, begin with read-file. To find out which files hold a word, use grep-search.
- To change a file, use edit-file; to make one, write-file.
- To compute, use eval; never compute in your head.
Calls that do not need each other's results may be made together.
When the results answer the task, reply in plain words, briefly.
"""

RUN = """\
HOW TO WORK:
You know only the names of the files here: look before you answer, and never guess.
Everything you do is a Lisp program (Hy), whose last value is the result:
- (read-file :path "<file>") looks into a file, (+ 2 (* 3 4)) computes.
- (len (grep-search :pattern "green" :path "<folder>")) counts, and one program may do several things in a do.
{how}
When the results answer the task, reply in plain words, briefly.
"""
RUN_NATIVE = RUN.format(how="Give the program to the tool run.")
RUN_TEXT = RUN.format(
    how='Reply with one program and nothing else, so: (run :program (read-file :path "<file>"))\n'
    "Its result is the next message. Then run the next, or answer."
)
RUN_TOOL = (
    "Run a Lisp program (Hy) and get its last value. The tools you were shown are functions in it, called "
    'with keywords, as in (read-file :path "<file>"). The operator comes first: 2 + 3 * 4 is (+ 2 (* 3 4)).'
)
RUN_PROGRAM = "The program, as Lisp text"
