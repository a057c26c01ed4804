"""The working rules for a model, in each dialect. The texts are tuned: measure before changing one.

Knows how a dialect spells a call, and no tool but those that ship, which the examples use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quoth.tools.lisp.forms import CallForm

LOOK = "You know nothing of the files here: look before you answer, and never guess.\n"
Hints = tuple[tuple[tuple[str, ...], str], ...]
HINTS: Hints = (  # and the tools that each names
    (
        ("read-file", "grep-search"),
        "- If the task names a file, begin with {}. To find out which files hold a word, use {}.\n",
    ),
    (("edit-file", "write-file"), "- To change a file, use {}; to make one, {}.\n"),
    (("eval",), "- To compute, use {}; never compute in your head.\n"),
)
THEN_ANSWER = """\
Reply with one {call} and nothing else; its result is the next message. Then {again}, or answer.
When the results answer the task, reply in one plain sentence.
"""


def hints(called: Mapping[str, str], of: Hints = HINTS) -> str:
    """Which tool is for what; ``called`` has the tools there are, and how the dialect calls each."""
    return "".join(
        hint.format(*(called[tool] for tool in tools))
        for tools, hint in of
        if all(tool in called for tool in tools)
    )


EXAMPLE = """
EXAMPLE:
Task: Which colour does a.txt name, and how many lines of b.txt hold it?
{read}
Result: The colour is green.
{grep}
Result: 2 items
The colour is green, and 2 lines of b.txt hold it.
"""

READ = CallForm("read-file", {"path": "a.txt"})
GREP = CallForm("grep-search", {"pattern": "green", "path": "b.txt"})


NAMES = {tool: tool for tools, _ in HINTS for tool in tools}
HOW = "HOW TO WORK:\n" + LOOK + hints(NAMES)


def text_rules(spell: Callable[[CallForm], str]) -> str:
    """The rules of a dialect whose calls are text; ``spell`` writes the calls of the example."""
    how = HOW + THEN_ANSWER.format(call="call", again="make the next call")
    return how + EXAMPLE.format(read=spell(READ), grep=spell(GREP))


TAG_HINTS: Hints = (
    (("read-file",), "- If the task names a file, begin with {}, whatever it asks of the file.\n"),
    (("grep-search",), "- To find out which files or lines hold a word, or how many, use {}.\n"),
    HINTS[1],
    (("eval",), "- To compute with numbers, use {}, never your head; it does not see the files.\n"),
)
TAG_EXAMPLE = """
EXAMPLE:
Task: Which file mentions green, and which colour does a.txt name?
{grep}
Result: b.txt, line 3: A green door.
{read}
Result: The colour is blue.
The file b.txt mentions green, and a.txt names blue.
"""


def tag_rules(tags: Mapping[str, str], spell: Callable[[CallForm], str]) -> str:
    """The rules of the dialect tags for tools with these ``tags``, by their names: the tables of chat bots
    need not hold those that ship."""
    look = LOOK if "read-file" in tags else "Look before you answer, and never guess.\n"
    how = "HOW TO WORK:\n" + look + hints(tags, TAG_HINTS)
    how += THEN_ANSWER.format(call="tagged line", again="write the next")
    if READ.tool in tags and GREP.tool in tags:
        how += TAG_EXAMPLE.format(read=spell(READ), grep=spell(CallForm("grep-search", {"pattern": "green"})))
    return how


NATIVE = (
    HOW
    + """\
Calls that do not need each other's results may be made together.
When the results answer the task, reply in plain words, briefly.
"""
)

RUN = """\
HOW TO WORK:
You know nothing of the files here: look before you answer, and never guess.
Everything you do is a Lisp program (Hy), whose last value is the result:
- (read-file :path "a.txt") looks into a file, (+ 2 (* 3 4)) computes.
- (len (grep-search :pattern "green" :path "src")) counts, and one program may do several things in a do.
{how}
When the results answer the task, reply in plain words, briefly.
"""
RUN_NATIVE = RUN.format(how="Give the program to the tool run.")
RUN_TEXT = RUN.format(
    how='Reply with one program and nothing else, so: (run :program (read-file :path "a.txt"))\n'
    "Its result is the next message. Then run the next, or answer."
)
RUN_TOOL = (
    "Run a Lisp program (Hy) and get its last value. The tools you were told of are functions in it, called "
    'with keywords, as in (read-file :path "a.txt"). The operator comes first: 2 + 3 * 4 is (+ 2 (* 3 4)).'
)
RUN_PROGRAM = "The program, as Lisp text"
