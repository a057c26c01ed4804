"""What quoth says of plans with a mistake in them: each on purpose, each with its place and exact words."""

from __future__ import annotations

from pathlib import Path

import pytest
from sentences import (
    BEFORE_THE_NEXT_FORM,
    CANNOT_BE_READ,
    CANNOT_BE_USED_IN_A,
    DID_YOU_MEAN,
    DID_YOU_MEAN_OPENAI,
    DOES_NOT_FIT_HERE,
    IS_NEVER_CLOSED,
    IS_NOT_KNOWN_HERE,
    IS_NOT_UTF_8_TEXT,
    RETRY_IS_A_WHOLE_NUMBER,
    THERE_IS_NO_BLOCK_NAMED,
    THERE_IS_NO_PHASE,
    THERE_IS_NO_STEP,
    THERE_IS_NO_TOOL_NAMED,
    THERE_IS_NO_TOOL_OR,
)

from quoth.agent.plan.check import check
from quoth.agent.plan.check_forms import tool_uses
from quoth.agent.plan.org_reader import read_plan
from quoth.tools.loading import load_tools
from quoth.tools.registry.table import ToolTable

PLANS = Path(__file__).parents[3] / "plans"
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def table() -> ToolTable:
    return load_tools([])


def said(text: str, table: ToolTable) -> list[str]:
    """The faults of a plan, each as ``line:column: message``."""
    _, plan = read_plan(text.encode("utf-8", "surrogateescape"), "p.org")
    return [f"{f.place.line}:{f.place.column}: {f.message}" for f in check(plan, table)]


def step(*properties: str, body: str = "Do it.", title: str = "a") -> str:
    """A step with properties."""
    drawer = [":PROPERTIES:", *properties, ":END:"] if properties else []
    return "\n".join([f"* PLAN {title}", *drawer, body]) + "\n"


def block(*lines: str, head: str = "hy") -> str:
    """A step of one block."""
    return "\n".join(["* PLAN a", f"#+begin_src {head}", *lines, "#+end_src"]) + "\n"


LIBRARY = "* Library\n#+NAME: more\n#+begin_src hy\n(+ x 1)\n#+end_src\n"
WORDS = "The words are PLAN, APPROVED, RUNNING, WAITING, DONE, FAILED, DENIED, SKIPPED."
MISTAKES = {
    # The plan as a whole
    "no step": (
        "* Notes\nNothing here.\n",
        "1:1: This plan has no steps. A step is a headline such as * PLAN Say hello. The first word"
        " is one of "
        "PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED.",
    ),
    "not UTF-8": (step(body="caf\udce9"), f"2:4: This {IS_NOT_UTF_8_TEXT}. Save the plan as UTF-8."),
    "TODO words left out": (
        "#+TODO: PLAN RUNNING | DONE DENIED\n" + step(),
        "1:9: A plan needs all TODO words of PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED; "
        "here APPROVED, FAILED, SKIPPED are missing.",
    ),
    "a phase misspelt": (
        "* PLAN Demnad: x\n** PLAN a\nDo it.\n",
        f"1:8: {THERE_IS_NO_PHASE} Demnad. Did you mean Demand?",
    ),
    "a TODO word of three letters": (
        step() + "* PLN b\nDo it.\n",
        "3:3: PLN is not a TODO word of a plan. Did you mean PLAN?",
    ),
    "a TODO word that is no TODO word before a phase": (
        step() + "* Plan Build: b\nDo it.\n",
        "3:3: Plan is not a TODO word of a plan. Write it in capitals: PLAN.",
    ),
    "a TODO word misspelt": (
        step() + "* APROVED b\nDo it.\n",
        "3:3: APROVED is not a TODO word of a plan. Did you mean APPROVED?",
    ),
    "another TODO word": (
        "* Build\n** TODO b\nDo it.\n",
        f"2:4: TODO is not a TODO word of a plan. {WORDS}",
    ),
    "no TODO word": (
        "* Count\n#+begin_src hy\n1\n#+end_src\n" + step(),
        "2:1: This does not run: its headline has no TODO word. Write PLAN Count.",
    ),
    "no TODO word, and a name that nothing refers to": (
        "* Count\n#+NAME: n\n#+begin_src hy\n1\n#+end_src\n" + step(),
        "3:1: This does not run: its headline has no TODO word and no block refers to it. Write PLAN Count.",
    ),
    "forms above all headlines": (
        "#+begin_src hy\n1\n#+end_src\n" + step(),
        "1:1: This does not run: it is above all headlines. Put it below one, such as PLAN Say hello.",
    ),
    "a property, and no TODO word": (
        "* Say hello\n:PROPERTIES:\n:BUDGET: steps=3\n:END:\nHello.\n" + step(),
        "3:2: BUDGET has no effect here: the headline has no TODO word. Write PLAN Say hello.",
    ),
    "an expectation of a headline without TODO word": (
        "* Group\n:PROPERTIES:\n:EXPECT: True\n:END:\n*" + step(),
        "3:2: EXPECT has no effect here: the headline has no TODO word. Write PLAN Group.",
    ),
    "a TODO word in small letters": (
        "* plan say hello\nSay hello.\n" + step(),
        "1:3: plan is not a TODO word of a plan. Write it in capitals: PLAN.",
    ),
    "a TODO word in small letters above forms": (
        "* Done: count\n#+begin_src hy\n1\n#+end_src\n" + step(),
        "1:3: Done is not a TODO word of a plan. Write it in capitals: DONE.",
    ),
    "a TODO word with a colon": (
        "* PLAN: b\nDo it.\n" + step(),
        "1:3: Write the TODO word without a colon: PLAN.",
    ),
    "a TODO word behind the priority": (
        "* [#A] PLAN b\nDo it.\n" + step(),
        "1:8: PLAN is too late for a TODO word, which must follow the stars.",
    ),
    "a headline without a space": (
        step() + "**PLAN b\nDo it.\n*Build: c\n",
        "3:1: This is not a headline. Write ** PLAN b from the first column on.\n"
        "5:1: This is not a headline. Write * Build: c from the first column on.",
    ),
    "a headline that is not in the first column": (
        step() + "  * PLAN b\n  Do it.\n",
        "3:3: This is not a headline. Write * PLAN b from the first column on.",
    ),
    "a headline of Markdown": (
        step() + "## PLAN b\nDo it.\n",
        "3:1: This is not a headline. Write ** PLAN b from the first column on.",
    ),
    "a headline below a step": (
        step() + "** Details\nMore of it.\n",
        "3:4: Because of this step below it, the text above is not a step; only this step's model reads it. "
        "Write PLAN Details, or make this headline part of the text.",
    ),
    "an id twice": (
        step(":ID: x") + step(":ID: x"),
        "8:6: The id x is used twice; each headline needs its own id.",
    ),
    "an id of two words": (
        step(":ID: x y"),
        "3:6: The id x y contains a space or comma, so :AFTER: cannot name it.",
    ),
    "a property for the whole file": (
        "#+PROPERTY: EXPECT (f)\n" + step(),
        "1:20: EXPECT is a property of a single headline; it has no effect for the whole file.",
    ),
    # Properties
    "a property misspelt": (
        step(":BUGDET: steps=1"),
        "3:2: There is no property BUGDET. Did you mean BUDGET?",
    ),
    "a property of other people": (
        step(":DEPENDS: x", ":ON_ERROR: stop", ":timeout: 60"),
        "3:2: There is no property DEPENDS. Did you mean AFTER?\n"
        "4:2: There is no property ON_ERROR. Did you mean ON-FAIL?\n"
        "5:2: There is no property timeout. Did you mean BUDGET, as in seconds=60?",
    ),
    "a property as a keyword of the file": (
        "#+TOOLS: echo\n#+EXPECT: (f)\n" + step(),
        "1:1: For the whole file, write #+PROPERTY: TOOLS echo.\n"
        "2:1: EXPECT is a property. Put it into the :PROPERTIES: of a headline.",
    ),
    "a property as a keyword": (
        step(body="Do it.\n  #+RETRY: 1\n#+STEPS: 3"),
        "3:3: RETRY is a property. Put it into the :PROPERTIES: of a headline.\n"
        "4:1: There is no property STEPS. Did you mean BUDGET, as in steps=6?",
    ),
    "a property without a drawer": (
        step(body="Do it.\n:EXPECT: (f)\nRETRY: 1\n:TIMEOUT: 60"),
        "3:1: EXPECT is a property. Put it into the :PROPERTIES: of a headline.\n"
        "5:1: There is no property TIMEOUT. Did you mean BUDGET, as in seconds=60?",
    ),
    "properties as a list": (
        step(body="- TOOLS: echo\n- RETRY: 1\nDo it."),
        "2:3: TOOLS is a property. Put it into the :PROPERTIES: of a headline.\n"
        "3:3: RETRY is a property. Put it into the :PROPERTIES: of a headline.",
    ),
    "a keyword misspelt": (
        "#+PROPERTIES: TOOLS echo\n#+TITEL: x\n" + step(body="#+CALLS: x()\nDo it."),
        "1:1: There is no keyword #+PROPERTIES. Did you mean #+PROPERTY?\n"
        "2:1: There is no keyword #+TITEL. Did you mean #+TITLE?\n"
        "4:1: There is no keyword #+CALLS. Did you mean #+CALL?",
    ),
    "properties in one line": (
        step(body=":PROPERTIES: :RETRY: 1 :END:\nDo it."),
        "2:1: Put each property on its own line, between the lines :PROPERTIES: and :END:.",
    ),
    "a drawer of another name": (
        step(body=":PROPERTY:\n:RETRY: 1\n:END:\nDo it."),
        "2:1: Org does not read properties in :PROPERTY:. Put them into :PROPERTIES:.",
    ),
    "lines as they are quoted in a block": (
        ",* PLAN b\n" + step(body="Do it.\n  ,#+begin_src hy\n  1\n  ,#+end_src"),
        "1:1: A comma quotes such a line only inside a block; remove the comma here.\n"
        "4:3: A comma quotes such a line only inside a block; remove the comma here.\n"
        "6:3: A comma quotes such a line only inside a block; remove the comma here.",
    ),
    "a property twice": (step(":RETRY: 1", ":RETRY: 2"), "4:9: RETRY is given twice at this headline."),
    "properties below the text": (
        "* PLAN a\nDo it.\n:PROPERTIES:\n:RETRY: 1\n:END:\n",
        "3:1: Put properties directly below their headline; Org does not read them here.",
    ),
    "a drawer of more than properties": (
        "* PLAN a\n:PROPERTIES:\nRETRY: 1\n:END:\nDo it.\n",
        "2:1: Org does not read these properties: each line of the drawer must be like :NAME: value.",
    ),
    "a drawer without an end": (
        "* PLAN a\n:PROPERTIES:\n:RETRY: 1\nDo it.\n",
        "2:1: This drawer has no :END:.",
    ),
    "a date below the properties": (
        "* PLAN a\n:PROPERTIES:\n:RETRY: 1\n:END:\nSCHEDULED: <2026-01-01>\nDo it.\n",
        "5:1: Org reads this line only directly below the headline, above the properties.",
    ),
    "a budget of what there is not": (
        step(":BUDGET: steps=3 tokns=5"),
        "3:18: BUDGET has no tokns. Did you mean tokens?",
    ),
    "a budget without a name": (
        step(":BUDGET: 5"),
        "3:10: BUDGET needs names with numbers, such as steps=6 seconds=60, not 5.",
    ),
    "a budget that is no number": (
        step(":BUDGET: steps=many"),
        "3:10: BUDGET needs a whole number above 0 for steps, not many.",
    ),
    "a budget of nothing": (
        step(":BUDGET: cost=0"),
        "3:10: BUDGET needs a number above 0 for cost, not 0.",
    ),
    "a budget twice": (step(":BUDGET: steps=3 steps=4"), "3:18: BUDGET has steps twice."),
    "an empty budget": (
        step(":BUDGET:"),
        "3:9: BUDGET is empty; write steps=6 tokens=2000 cost=0.10 seconds=60.",
    ),
    "a retry that is no number": (
        step(":RETRY: often"),
        f"3:9: {RETRY_IS_A_WHOLE_NUMBER} 10, not often.",
    ),
    "a retry without end": (step(":RETRY: 1000"), f"3:9: {RETRY_IS_A_WHOLE_NUMBER} 10, not 1000."),
    "another way to fail": (step(":ON-FAIL: skp"), "3:11: ON-FAIL cannot be skp. Did you mean skip?"),
    "no way to fail": (step(":ON-FAIL: 7"), "3:11: ON-FAIL cannot be 7. Use stop, skip or continue."),
    "a word that is neither t nor nil": (
        step(":MAY-FAIL: yes"),
        "3:12: MAY-FAIL must be t, or nil to remove it; it cannot be yes.",
    ),
    "nothing for t": (
        step(":MAY-FAIL:"),
        "3:11: MAY-FAIL must be t, or nil to remove it; it cannot be empty.",
    ),
    "what others call it": (
        step(":ALLOW-FAILURE: t"),
        "3:2: There is no property ALLOW-FAILURE. Did you mean MAY-FAIL?",
    ),
    "an unknown tool": (
        step(":TOOLS: echo red-file"),
        f"3:14: {THERE_IS_NO_TOOL_NAMED} red-file. Did you mean read-file?",
    ),
    "all tools": (
        step(":TOOLS: all"),
        f"3:9: {THERE_IS_NO_TOOL_NAMED} all. Without the property a step has all tools.",
    ),
    "a tool twice": (step(":TOOLS: echo, echo"), "3:9: The tool echo is given twice."),
    "no tools": (step(":TOOLS:"), "3:8: TOOLS is empty. Name tools, or write nil for none."),
    "an unknown provider": (
        step(":MODEL: opnai:gpt"),
        f"3:9: There is no model provider opnai. {DID_YOU_MEAN_OPENAI}?",
    ),
    "no model": (step(":MODEL:"), "3:8: MODEL is empty. Name a model, such as local or openai:NAME."),
    "a model without a name": (
        step(":MODEL: ollama:"),
        "3:9: MODEL needs a name after the colon, as in ollama:NAME.",
    ),
    # Expectations
    "an empty expectation": (step(":EXPECT:"), "3:9: EXPECT is empty. Write a form that must be true."),
    f"an expectation that {CANNOT_BE_READ}": (
        step(":EXPECT:   (= 1 1"),
        f"3:12: This ( {IS_NEVER_CLOSED}; add ) at the end; write (= 1 1).",
    ),
    "an expectation that writes": (
        step(':EXPECT: (and True (write-file :path "a" :content "b"))'),
        "3:21: EXPECT may only call tools that read; write-file is not allowed here: it writes.",
    ),
    "an expectation that writes inside of eval": (
        step(':EXPECT: (eval "(edit-file :path \\"a\\" :old \\"b\\" :new \\"c\\")")'),
        "3:11: EXPECT may only call tools that read; edit-file is not allowed here: it writes.",
    ),
    "an expectation that asks a model": (
        step(':EXPECT: (think "Is it good?")'),
        "3:11: EXPECT may only call tools that read; think is not allowed here: it asks a model.",
    ),
    "two expectations in one": (
        step(":EXPECT: (> 1 0) (> 2 3)"),
        "3:10: EXPECT must be a single form. Combine several with (and …).",
    ),
    "an expectation in words": (
        step(":EXPECT: there are two lines"),
        "3:10: EXPECT must be a form, such as (= (+ 1 1) 2).",
    ),
    "an expectation that is a text": (
        step(':EXPECT: "two \\"lines\\""'),
        "3:10: A text is always true. EXPECT must be a form that can be false.",
    ),
    "an expectation of a variable": (
        "* PLAN a\n:PROPERTIES:\n:EXPECT: (> total 3)\n:END:\n#+NAME: total\n#+begin_src hy\n4\n#+end_src\n",
        "3:13: There is no variable total; an expectation may use tools, and result, the result of its own "
        "step.",
    ),
    "an expectation of the result of a step that has none": (
        "* PLAN a\n:PROPERTIES:\n:EXPECT: (> result 3)\n:END:\n",
        "3:13: There is no variable result; an expectation may use tools, but not results of steps.",
    ),
    "an expectation of the result of a group": (
        step(":EXPECT: (> result 3)", body="") + "** PLAN b\nDo it.\n",
        "3:13: There is no variable result; an expectation may use tools, but not results of steps.",
    ),
    "an expectation with a tool that writes as a value": (
        step(':EXPECT: (list (map write-file ["a"] ["b"]))'),
        "3:21: EXPECT may only call tools that read; write-file is not allowed here: it writes.",
    ),
    # Order
    "a phase in the place of an id": (
        step(title="Build: count") + step(":AFTER: Build", title="b"),
        f"5:9: {THERE_IS_NO_STEP} with the id Build. Did you mean build-count?",
    ),
    "a title in the place of an id": (
        step(title="Say hello") + step(":AFTER: say Hello", title="b"),
        "5:9: AFTER needs ids, but this is a title. Write say-hello.",
    ),
    "an id that may be two": (
        step() + step() + step(":AFTER: a", title="b"),
        "7:9: a may mean a or a-2, which have the same title. Give each its own :ID:.",
    ),
    "an unknown id": (
        step(":ID: build") + step(":AFTER: biuld", title="b"),
        f"8:9: {THERE_IS_NO_STEP} with the id biuld. Did you mean build?",
    ),
    "an id that is commented out": (
        step() + "* COMMENT b\n:PROPERTIES:\n:ID: b\n:END:\n" + step(":AFTER: b", title="c"),
        "9:9: b is not part of this plan: it is a comment, archived or without a TODO word.",
    ),
    "no id": (step(":AFTER:"), "3:8: AFTER is empty. Name ids, or write nil to wait for no step."),
    "itself": (step(":ID: a", ":AFTER: a"), "4:9: This step waits for itself: a after a."),
    "its own phase": (
        "* Build\n" + "*" + step(":AFTER: build"),
        "4:9: This step waits for build, which contains it.",
    ),
    "a circle": (
        step(":ID: x", ":AFTER: y") + step(":ID: y", ":AFTER: x"),
        "4:9: This step waits for itself: x after y after x.",
    ),
    # Steps
    "a step of nothing": (
        step(body=""),
        "1:3: This step is empty. Add an objective, forms or an :EXPECT:.",
    ),
    "an empty phase": (
        "* PLAN Tester\n",
        "1:3: The phase Tester is empty. Add steps, an objective, forms or an :EXPECT:.",
    ),
    "forms beside steps": (
        "* PLAN Build\n#+begin_src hy\n1\n#+end_src\n** PLAN a\nDo it.\n",
        "2:1: A headline with steps below it cannot have its own forms. Put them below another headline.",
    ),
    "a block without an end": (
        "* PLAN a\nDo it.\n#+begin_src hy\n1\n",
        "3:1: This block has no #+end_src.",
    ),
    "a headline inside of a block": (
        "* PLAN a\nDo it.\n#+begin_example\n* b\n#+end_example\n",
        "3:1: This block has no #+end_example before the headline in line 4.\n"
        "5:1: This has no #+begin_example above it.",
    ),
    "another language": (
        block("ls", head="sh"),
        "2:13: sh is not a language of plans: write forms in hy, quoth, lisp.",
    ),
    "another Lisp": (
        block("(mapcar #'1+ x)", head="common-lisp"),
        "2:13: common-lisp is not a language of plans: write forms in hy, quoth, lisp. A block of lisp is "
        "read as Hy, and what it has of Common Lisp (defun, let, setf, mapcar …) is rewritten; with :eval "
        "no it is text for the model.",
    ),
    "a Lisp that is not near": (
        block("(message x)", head="emacs-lisp"),
        "2:13: emacs-lisp is not a language of plans: write forms in hy, quoth, lisp. A block of hy is "
        "the nearest; with :eval no it is text for the model.",
    ),
    "the first of two forms is not closed": (
        block("(echo 1\n(echo 2)"),
        f"3:1: This ( {IS_NEVER_CLOSED}; add ) {BEFORE_THE_NEXT_FORM}, (echo 2).",
    ),
    "a block of src misspelt": (
        "* PLAN a\nDo it.\n#+begin_scr hy\n1\n#+end_scr\n",
        "3:1: This does not begin a block. Write #+begin_src hy and #+end_src.",
    ),
    "no language": (
        block("1", head=":var x=1"),
        "2:13: The block has no language: write one of hy, quoth, lisp after #+begin_src.",
    ),
    "a block of Markdown": (
        step(body="```hy\n(echo)\n:RETRY: 1\n```\nDo it."),
        "2:1: Org has no blocks like this. Write #+begin_src hy and #+end_src around forms, #+begin_example "
        "and #+end_example around text.",
    ),
    "a block that begins in another way": (
        step(body="#+BEGIN SRC hy\n1\n#+END SRC\n#+begin_lisp\n1\n#+end_lisp\n# +begin_src\nDo it."),
        "2:1: This does not begin a block. Write #+begin_src hy and #+end_src.\n"
        "5:1: This is not a block of forms. Write #+begin_src lisp and #+end_src.\n"
        "8:1: This does not begin a block. Write #+begin_src hy and #+end_src.",
    ),
    "an example of forms": (
        step(body="#+begin_example hy\n1\n#+end_example"),
        "2:1: This is not a block of forms. Write #+begin_src hy and #+end_src.",
    ),
    "forms in the text": (
        step(body="Do src_hy{(+ 1 1)}."),
        "2:4: This does not run. Put forms between #+begin_src hy and #+end_src.",
    ),
    "a form as text": (
        step(body='\n  (echo :text "a")'),
        "3:3: This is text for a model. To run it, put it between #+begin_src hy and #+end_src.",
    ),
    "a block inside of another": (
        step(body="#+begin_quote\n#+begin_src hy\n1\n#+end_src\n#+end_quote"),
        "3:1: This does not run, because it is inside a block.",
    ),
    "a block inside of a drawer": (
        step(body="Do it.\n:NOTE:\n#+begin_src hy\n1\n#+end_src\n:END:"),
        "4:1: This does not run, because it is inside a drawer.",
    ),
    "an empty block": (block(""), "2:1: This block is empty."),
    # Forms
    f"a form that {CANNOT_BE_READ}": (
        block("1", '  (echo :text "a"'),
        f"4:3: This ( {IS_NEVER_CLOSED}; add ) at the end.",
    ),
    "a form that does not compile": (
        block("(+ 1", "  (match))"),
        f'4:4: Match {DOES_NOT_FIT_HERE}; write (match x 1 "a"  _ "b").',
    ),
    "a form that reaches too far": (
        block("(do", "  (require os))"),
        f"4:4: Require {CANNOT_BE_USED_IN_A}; only functions can be used here.",
    ),
    "an unknown tool in a form": (
        block("   (ecko :text 1)"),
        f"3:5: {THERE_IS_NO_TOOL_OR} ecko. Did you mean echo?",
    ),
    "an argument of another type": (block("(echo :text 5)"), "3:1: echo: :text should be str, not 5."),
    "an argument of another type beside one not known yet": (
        block("(write-file :path 5 :content (str 6))"),
        '3:1: write-file: :path should be a path, a text such as "src/a.py", not 5.',
    ),
    "an unknown argument": (
        block('(echo :txt "a")'),
        f"3:1: echo: :text is missing; :txt is unknown ({DID_YOU_MEAN} :text?).",
    ),
    "a tool the step may not use": (
        step(":TOOLS: echo", body='#+begin_src hy\n(read-file :path "a")\n#+end_src'),
        "6:2: read-file is not among the :TOOLS: of this step (echo).",
    ),
    "a loop left outside of one": (block("(do", "  (break))"), "4:3: 'break' outside loop."),
    "an unknown variable": (
        block("(setv total 1)", "(let [y 2] (+ y", "  totl))"),
        "5:3: There is no variable totl; to define it: :var totl=NAME. Did you mean total?",
    ),
    "a variable of another block": (
        block("(setv y 5)") + "#+begin_src hy :var x=1\n[x\n  y]\n#+end_src\n",
        "7:3: There is no variable y; to define it: :var y=NAME.",
    ),
    "a result that is not handed on": (
        "* PLAN a\n#+NAME: rows\n| 1 |\n#+begin_src hy\n(len rows)\n#+end_src\n",
        "5:6: There is no variable rows; to define it: :var rows=rows.",
    ),
    "a variable in a text": (
        block('(fn [x] f"{x} of {number}")'),
        "3:19: There is no variable number; to define it: :var number=NAME.",
    ),
    "a module that is not imported": (
        block("(math.sqrt 4)"),
        "3:2: There is no variable math. Write (import math) first.",
    ),
    "an unknown name where the line above holds no form": (
        block("; nothing", "x", head="hy :var y=1"),
        "4:1: There is no variable x; to define it: :var x=NAME.",
    ),
    # Names
    "a name twice": (
        "#+NAME: n\n| 1 |\n" + "#+NAME: n\n" + "| 2 |\n" + step(),
        "3:9: The name n is used twice; its first use is in line 1.",
    ),
    "a variable of nothing there": (
        block("x", head="hy :var x=rows"),
        '2:21: There is no block, table or step named rows. For a text, write "rows".',
    ),
    "a variable of what comes later": (
        block("x", head="hy :var x=late") + "* PLAN b\n#+NAME: late\n#+begin_src hy\n1\n#+end_src\n",
        f"2:21: late {IS_NOT_KNOWN_HERE}: its step runs later, or this step does not wait for it.",
    ),
    "a variable without a value": (
        block("x", head="hy :var x"),
        "2:21: x does not assign a value. Write x=name or x=5.",
    ),
    "a variable that would have to be computed": (
        block("x", head="hy :var x=(f 1)"),
        "2:21: x=(f 1) is not a plain value. Write a number, text, list or name.",
    ),
    "a name that is an id": (
        block("1").replace("#+begin", "#+NAME: b\n#+begin") + step(title="b"),
        "2:9: b is also the id of the step in line 6. Use another name.",
    ),
    "a variable with the name of a tool": (
        block('(echo :text "a")', head="hy :var echo=5"),
        "2:21: echo is a tool. Give the variable another name.",
    ),
    "a variable of a group": (
        "* Build\n*" + step() + "* PLAN b\n#+begin_src hy :var x=build\nx\n#+end_src\n",
        "5:21: build is a group of steps, which has no result. Name a step or a block.",
    ),
    "blocks that need each other": (
        "* Library\n#+NAME: p\n#+begin_src hy :var x=q\nx\n#+end_src\n"
        "#+NAME: q\n#+begin_src hy :var x=p\nx\n#+end_src\n" + block("x", head="hy :var x=p"),
        "3:1: p needs its own value: p needs q needs p.",
    ),
    "data with the name of a step": (
        "#+NAME: a\n| 1 |\n" + step(),
        "1:9: a is also the id of the step in line 3. Use another name.",
    ),
    "a name above nothing": (
        step(body="#+NAME: n\n\n#+begin_src hy\n1\n#+end_src"),
        "2:1: #+NAME: has no effect here: put its block or table in the very next line.",
    ),
    "blocks put into others": (
        block("<<other>>", head="hy :noweb yes"),
        "2:16: Plans do not support :noweb; :var hands on what a block came to, #+CALL: runs it again.\n"
        "3:1: There is no variable <<other>>; plans do not insert blocks into others: use #+CALL: or :var.",
    ),
    "a variable of two headlines": (
        step() + step() + block("x", head="hy :var x=a").replace("PLAN a", "PLAN b"),
        "6:21: a may mean a or a-2, which have the same title. Give each its own :ID:.",
    ),
    "an unknown header argument": (
        block("1", head="hy :resluts value"),
        "2:16: Unknown header argument :resluts. Did you mean :results?",
    ),
    "a call that is not closed": (
        "* PLAN a\n#+CALL: count(x=1\n* PLAN b\n#+NAME: count\n#+begin_src hy :var x=0\nx\n#+end_src\n",
        f"1:3: This step is empty. Add an objective, forms or an :EXPECT:.\n2:14: This ( {IS_NEVER_CLOSED}.",
    ),
    "a call of nothing there": (
        "* PLAN a\n#+CALL: coutn(x=1)\n* PLAN b\n#+NAME: count\n#+begin_src hy :var x=0\nx\n#+end_src\n",
        f"2:1: {THERE_IS_NO_BLOCK_NAMED} coutn. Did you mean count?",
    ),
    "a call without what is needed": (
        LIBRARY + "* PLAN a\n#+CALL: more(x=5)\n#+CALL: more()\n",
        "8:1: The block more needs x, as in more(x=5).",
    ),
    "a call with what is not needed": (
        LIBRARY + "* PLAN a\n#+CALL: more(x=5, xx=5)\n",
        "7:19: The block more has no variable xx. Did you mean x?",
    ),
    "a block whose value is asked for without what is needed": (
        LIBRARY + "* PLAN a\n#+CALL: more(x=5)\n" + block("y", head="hy :var y=more").partition("\n")[2],
        "4:4: There is no variable x; to define it: :var x=NAME.",
    ),
    "a call of a call": (
        LIBRARY + "* PLAN a\n#+NAME: again\n#+CALL: more(x=5)\n#+CALL: again()\n",
        "9:1: again is itself a call; a call must name a block of forms.",
    ),
    "a call of a block that is not to be run": (
        "#+NAME: off\n#+begin_src hy :eval never\n(no-such-tool 1\n#+end_src\n* PLAN a\n#+CALL: off()\n",
        "6:1: off cannot be called: its :eval forbids running it.",
    ),
    "a variable of a block that is not to be run": (
        "* PLAN b\nDo it.\n#+NAME: off\n#+begin_src hy :eval no\n5\n#+end_src\n"
        + block("x", head="hy :var x=off"),
        "8:21: off has no result: its :eval forbids running it.",
    ),
    "a call of a block with a tool the step may not use": (
        '#+NAME: put\n#+begin_src hy\n(write-file :path "a" :content "b")\n#+end_src\n'
        + step(":TOOLS: read-file", body="#+CALL: put()"),
        "9:1: write-file is not among the :TOOLS: of this step (read-file).",
    ),
    "what Python has and programs have not": (
        block('(input "x")'),
        f"3:2: {THERE_IS_NO_TOOL_OR} input. Did you mean int?",
    ),
    "an end of a name": (
        block("(setv x 1)", "(del x)"),
        f"4:2: Del {CANNOT_BE_USED_IN_A}; (.pop d k) takes a key out of a dictionary; a name needs no end.",
    ),
    "a call of a table": (
        "#+NAME: rows\n| 1 |\n* PLAN a\n#+CALL: rows()\n",
        "4:1: rows is not a block of forms, which a call needs.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_place(name: str, table: ToolTable) -> None:
    text, expected = MISTAKES[name]
    assert "\n".join(said(text, table)) == expected


def test_what_waits_for_a_circle_is_never_reached(table: ToolTable) -> None:
    text = step(":ID: x", ":AFTER: y") + step(":ID: y", ":AFTER: x") + step(title="z")
    assert said(text, table)[1] == "13:3: This step can never begin: it waits for y, which cannot begin."


def test_a_fault_shows_its_line_and_a_caret(table: ToolTable) -> None:
    _, plan = read_plan(step(":RETRY: often").encode(), "plans/p.org")
    assert str(check(plan, table)[0]) == (
        f"plans/p.org:3:9: {RETRY_IS_A_WHOLE_NUMBER} 10, not often.\n  :RETRY: often\n          ^"
    )
    assert check(plan, table)[0].to_json()["line"] == 3


def test_all_faults_are_told_at_once_in_the_order_of_the_file(table: ToolTable) -> None:
    text = "".join(text for text, _ in list(MISTAKES.values())[9:40])
    places = [tuple(map(int, one.split(":")[:2])) for one in said(text, table)]
    assert len(places) > 25
    assert places == sorted(places)


@pytest.mark.parametrize(
    "path", [*sorted(PLANS.glob("*.org")), DATA / "morning.org"], ids=lambda path: path.name
)
def test_the_plans_that_ship_have_no_fault(path: Path) -> None:
    _, plan = read_plan(path.read_bytes(), path.name)
    table = load_tools([PLANS / "git-tools.hy"])
    assert [str(fault) for fault in check(plan, table)] == []


KEYWORDS = "".join(
    f"#+{name}: x\n"
    for name in """
    AUTHOR EMAIL DATE LANGUAGE OPTIONS STARTUP SETUPFILE DESCRIPTION KEYWORDS FILETAGS TAGS COLUMNS CONSTANTS
    PRIORITIES ARCHIVE CATEGORY LATEX LATEX_HEADER HTML HTML_HEAD TOC INCLUDE INDEX MACRO LINK BIND SUBTITLE
    EXCLUDE_TAGS CREATOR CITE_EXPORT bibliography EXPORT_FILE_NAME INFOJS_OPT TEXINFO ODT MAN BEAMER
    TEXT STYLE
    """.split()  # noqa: SIM905
)
BINDERS = """
(setv [p q] [1 2]  u 3)
(defn f [x * [y 2] #** more] (+ x y (len more)))
(defclass K [] (setv size 1) (defn more [self by] (+ by 1)))
(for [[i row] (enumerate rows)] (print i row))
[(lfor x (range n) z (range x) :if (> z 1) :setv w (* x z) [x z w]) (dfor [k v] (.items {"a" 1}) k v)]
(try (f 1) (except [e [ValueError KeyError]] (str e)) (except [] 1) (else 2) (finally 3))
(match rows [[first-one #* others]] first-one {"k" it #** rest} [it rest] _ None)
(import math json) (import re [compile :as pattern])
(when (setx m (len rows)) [m (math.floor 2.5) (json.dumps m) (pattern "x")])
(let [a 1  b (+ a 1)] (+ a b))
(defn count [] (global seen) (setv seen 1))
[(count) seen (pmap (fn [x #* ys] (+ x (len ys))) [1 2]) (->> rows (map (fn [r] (str r))) list)]
(setv one (K)) [(.more one 1) one.size (. one size) p q u f"{n} of {(len rows)}"]
[rows n t]
""".strip().split("\n")


@pytest.mark.parametrize(
    "text",
    [
        block("(lfor x [1 2] (echo :text (str x)))"),
        block("(defn ekho [x] x) (ekho 1)"),
        block('(setv f echo) (f :text "a")'),
        block("(let [g (fn [x] x)] (g 1))"),
        block('(echo #** {"text" 1})'),
        block("(pmap (fn [x] (* x 2)) [1 2])"),
        block("(x 5)", head="hy :var x=1"),
        block("ls", head="sh :eval no") + step(title="b"),
        block("(defun f (x", head="lisp :eval no"),
        step(":OWNER: somebody", ":Effort: 0:10", ":CREATED: today"),
        step(":TOOLS: nil"),
        "* Build\n" + "*" + step() + "** Remarks\nThis and that.\n",
        "* COMMENT x\n#+begin_src hy\n(\n#+end_src\n" + step(),
        step(':EXPECT: (= (read-file :path "a") "b")'),
        step(':EXPECT: (in "b" result)'),
        "* Plan for the week\nRest.\n* Done so far\n- x\n" + step(),
        "* Notes\n#+begin_src hy :eval no\n(f)\n#+end_src\n#+begin_src sh\nls\n#+end_src\n" + step(),
        LIBRARY + "* PLAN a\n#+CALL: more(x=5)\n",
        LIBRARY + "#+NAME: less\n#+begin_src hy\n1\n#+end_src\n* PLAN a\n#+CALL: more(x=5)\n",
        "* Group\n:PROPERTIES:\n:RETRY: 1\n:END:\n*" + step(),
        "* PLAN Build\nAll of it.\n** PLAN a\nDo it.\n** Blueprint: with care\nWith care.\n",
        "* Build\nIn two steps.\n** count\n#+begin_src hy\n1\n#+end_src\n** say\nSay it.\n",
        step(
            body="*PLAN B* is:\n  * Build: this\n  * done by ann\nExpect: =:EXPECT:=, and AFTER: all\n# note"
        ),
        step(":Check: yes", ":Cost: 5", ":Date: today", ":TODO: x", ":LOCATION: here", ":TRIGGER: x"),
        KEYWORDS + step(body="#+CAPTION: x\n#+ATTR_HTML: :a b\n#+NAME: t\n| 1 |\n#+TBLFM: $1=2\nDo it."),
        block(*BINDERS, head="hy :var rows='(1 2) n=5 t=5"),
    ],
)
def test_what_is_right_is_not_complained_of(text: str, table: ToolTable) -> None:
    assert said(text, table) == []


def test_a_block_may_define_macros(table: ToolTable) -> None:
    macro = "(defmacro twice [x] `(do ~x ~x))"
    assert said(block(macro, '(twice (read-file "a.txt"))'), table) == []
    assert said(block(macro, "(twice 1)", "(raed-file 1)"), table) != []
    assert said(block("(defmacro set1 [name] `(setv ~name 1 total 2))", "(set1 n)", "[n total]"), table) == []
    assert said(block(macro, "(twice 1)", "[n total]"), table) != []
    assert said(block("(macroexpand '(a))"), table) == []
    assert said(block("(defmacro twice [x])"), table) == [
        "3:1: A macro is written (defmacro name [parameters] body …)."
    ]


@pytest.mark.parametrize(
    "text",
    [
        '(defmacro m [] \'(write-file "a" "b")) (m)',
        '(defmacro m [x] x) (m (write-file "a" "b"))',
        '(eval \'(write-file "a" "b"))',
        '(eval `(write-file "a" ~(str 1)))',
        '(eval (quote (write-file "a" "b")))',
        '(eval "(write-file \\"a\\" \\"b\\")")',
    ],
)
def test_a_tool_in_a_quoted_form_or_a_macro_is_a_tool_of_the_program(text: str, table: ToolTable) -> None:
    assert "write-file" in {use.tool.name for use in tool_uses(text, table)}
