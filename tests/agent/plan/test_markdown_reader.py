"""Plans in Markdown: the same plan as in Org, with places in the Markdown file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import RETRY_IS_A_WHOLE_NUMBER, THERE_IS_NO_PHASE, THERE_IS_NO_TOOL_OR

from quoth.agent.plan.check import check
from quoth.agent.plan.markdown_reader import read_markdown
from quoth.agent.plan.model import StepBudget
from quoth.agent.plan.org_reader import read_plan
from quoth.tools.loading import load_tools

MARKDOWN = """# Say hello

- RETRY: 1
- MAY-FAIL: t

Twice.

## PLAN Demand: what must be true

- ID: demand
- EXPECT: (= 1 1)

## Build ##

### PLAN Count
- TOOLS: echo, eval
- BUDGET: steps=3

```hy name=count
(+ 1 2)
```

### Say it
<!-- for people -->
Say *hello* as often.

~~~sh
# no heading
~~~

## COMMENT PLAN Not this
```hy
(
```

## PLAN Tester
```hy name=proof :var n=count
(= n 3)
```
"""
ORG = """#+TITLE: Say hello
#+PROPERTY: RETRY 1
#+PROPERTY: MAY-FAIL t
* PLAN Demand: what must be true
:PROPERTIES:
:ID: demand
:EXPECT: (= 1 1)
:END:
* Build
** PLAN Count
:PROPERTIES:
:TOOLS: echo, eval
:BUDGET: steps=3
:END:
#+NAME: count
#+begin_src hy
(+ 1 2)
#+end_src
** Say it
Say *hello* as often.
* PLAN Tester
#+NAME: proof
#+begin_src hy :var n=count
(= n 3)
#+end_src
"""


def test_markdown_and_org_make_the_same_plan() -> None:
    one, (_, other) = read_markdown(MARKDOWN.encode(), "p.md"), read_plan(ORG.encode(), "p.org")
    assert (one.title, [part.id for part in one.parts]) == (other.title, [part.id for part in other.parts])
    assert one.waits == other.waits
    same = [step.id for step in one.steps if one.digest(step) == other.digest(other.find(step.id))]
    assert same == ["demand", "count", "tester"]  # the other one quotes a block of sh
    assert one.find("count").budget == StepBudget(steps=3)
    assert one.find("say-it").objective == "Say *hello* as often.\n\n~~~sh\n# no heading\n~~~"
    assert check(one, load_tools([])) == []


def test_places_are_those_of_the_markdown_file() -> None:
    text = "# t\n## PLAN Biuld: x\n- RETRY: no\n\n  ```hy :var x=nope\n  (ecko 1)\n  ```\n"
    text = (text + "## PLAN b\n```hy\n1\n").replace("\n", "\r\n")
    plan = read_markdown(text.encode(), "p.md")
    assert [f"{f.place.line}:{f.place.column}: {f.message}" for f in check(plan, load_tools([]))] == [
        f"2:9: {THERE_IS_NO_PHASE} Biuld. Did you mean Build?",
        f"3:10: {RETRY_IS_A_WHOLE_NUMBER} 10, not no.",
        '5:14: There is no block, table or step named nope. For a text, write "nope".',
        f"6:4: {THERE_IS_NO_TOOL_OR} ecko. Did you mean echo?",
        "9:1: This block has no ``` at its end.",
    ]


MISTAKES = {
    "a property below the text": (
        "Do it.\n- TOOLS: echo\n",
        "3:1: This is text. Put a property directly below its heading: - TOOLS: echo",
    ),
    "a property in small letters": (
        "- tools: echo\nDo it.\n",
        "2:1: This is text. Put a property directly below its heading: - TOOLS: echo",
    ),
    "a property that is no item": (
        "RETRY: 1\nDo it.\n",
        "2:1: This is text. Put a property directly below its heading: - RETRY: 1",
    ),
    "a property of other people": (
        "- TIMEOUT: 60\nDo it.\n",
        "2:3: There is no property TIMEOUT. Did you mean BUDGET, as in seconds=60?",
    ),
    "Org": (
        "Do it.\n* PLAN b\n:PROPERTIES:\n#+begin_src hy\n",
        "3:1: This is Org. In Markdown, write # PLAN a, - KEY: value, and ```hy name=x around forms.",
    ),
    "a property without a colon": (
        "- RETRY 3\n- TOOLS: nil\nDo it.\n",
        "2:1: A property needs a colon: - RETRY: 3.",
    ),
    "a block in a language that does not run": (
        "Do it.\n```python\nprint(1)\n```\n",
        "3:1: python is not a language of plans: write forms in hy, quoth, lisp. With ```text it is"
        " text for the "
        "model.",
    ),
    "forms in a block without a language": (
        "```\n(+ 1 2)\n```\n",
        "2:1: The block has no language: write one of hy, quoth, lisp after ```.",
    ),
    "a heading without a space": ("Do it.\n##PLAN b\n", "3:1: This is not a heading. Write ## PLAN b."),
    "a heading in a step": (
        "Do it.\n## Details\nMore.\n",
        "3:4: Because of this step below it, the text above is not a step; only this step's model reads it. "
        "Write PLAN Details, or make this headline part of the text.",
    ),
    "no TODO word": (
        "Do it.\n# Count\n```hy\n1\n```\n",
        "4:1: This does not run: its headline has no TODO word. Write PLAN Count.",
    ),
    "a name that is an id": (
        "```hy name=b\n1\n```\n# PLAN b\nDo it.\n",
        "2:12: b is also the id of the step in line 5. Use another name.",
    ),
    "a variable header that gives none": (
        "```hy :var\n1\n```\n",
        "2:7: :var has no name or value. Write :var x=name or :var x=5.",
    ),
    "an unknown variable": (
        "```hy\n(+ x 1)\n```\n",
        "3:4: There is no variable x; to define it: :var x=NAME.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_markdown_is_told_with_its_place(name: str) -> None:
    text, expected = MISTAKES[name]
    faults = check(read_markdown(f"# PLAN a\n{text}".encode(), "p.md"), load_tools([]))
    assert "\n".join(f"{f.place.line}:{f.place.column}: {f.message}" for f in faults) == expected


@given(
    st.text(alphabet=st.sampled_from("#` -~:AX\n(hyPLAN<!>="), max_size=200)
    | st.binary(max_size=200).map(repr)
)
def test_any_text_makes_a_plan(text: str) -> None:
    plan = read_markdown(text.encode(), "p.md")
    for fault in check(plan, load_tools([])):
        assert str(fault).startswith("p.md:")
