"""Memory taken elsewhere: what is written as Org or JSON and read again is the same, whatever it says."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from memory import Make
from sentences import (
    A_NUL_CHARACTER,
    CHARACTERS_THIS_WOULD_MAKE_IT,
    IS_ALREADY_GIVEN_AT,
    IS_LIMITED_TO,
    MUST_BE_1_TO,
    ONLY_A_PERSON_CAN,
    PRINTABLE_CHARACTERS_WITHOUT_A_SPACE,
)
from words import complaint, files

from quoth.tools.call.service_types import Block, BlockPermission, BlockVersion
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.memory.checks import LIMITS, TABLE
from quoth.tools.memory.transfer import Carried, as_json, as_org, read_carried
from quoth.tools.org.document import load

HOSTILE = [
    "",
    "\n",
    "one",
    "one\n",
    "\n\none\n\n",
    "* a headline\n** another",
    "#+end_example\n#+begin_example\n#+END_EXAMPLE  ",
    "  ,* escaped before\n,,#+end_example",
    ":PROPERTIES:\n:KIND: core\n:END:",
    "trailing blanks  \n\t\n  leading ones",
    "CRLF\r\nand\ralone\r",
    "emoji 🦆, Arabic مرحبا, a\u2028separator, \x0b\x0c\x1b[31m",
    "#+TITLE: Memory\n\ufeff",
    '(block :operation "append" :label "x")',
]
LABELS = [
    "preferences", "TODO buy milk", "[#A] first", "COMMENT no", "a :tag:", "* star", "[[file:x][y]]", "DONE",
    "ending:", '"quoted"', "مرحبا", "a\\b", "x" * 100, "<2026-01-01 Thu>", "a  b", "#+TITLE: x", "{", "1.",
]  # fmt: skip

texts = st.sampled_from(HOSTILE) | st.text(
    st.sampled_from(list("*#+,:_ \t\r\nab\u2028é🦆"))
    | st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    max_size=60,
)  # fmt: skip
labels = st.sampled_from(LABELS) | st.text(min_size=1, max_size=30).filter(
    lambda label: label == label.strip() and label.isprintable()
)
times = st.sampled_from(["2026-01-31T09:30:00+00:00", "2026-11-22T23:59:59+00:00"])


@st.composite
def blocks(draw: st.DrawFn) -> Carried:
    kind = draw(st.sampled_from(sorted(LIMITS)))
    version = draw(st.integers(1, 4))
    block = Block(
        draw(labels),
        draw(texts),
        kind,
        draw(st.sampled_from(sorted(TABLE))),
        draw(texts),
        limit=draw(st.sampled_from([LIMITS[kind], 77])),
        version=version,
        created=draw(times),
        updated=draw(times),
        by=draw(texts),
    )
    earlier = [BlockVersion(one, draw(texts), draw(times), draw(texts)) for one in range(version - 1, 0, -1)]
    return Carried(block, earlier if draw(st.booleans()) else [])


def told(one: Carried) -> Carried:
    """A block as Org tells it: the limit of its kind is not said."""
    usual = one.block.limit == LIMITS[one.block.kind]
    return replace(one, block=replace(one.block, limit=0)) if usual else one


@examples(2)
@given(st.lists(blocks(), max_size=3, unique_by=lambda one: one.block.label))
def test_what_is_written_is_read_again(every: list[Carried]) -> None:
    org = as_org(every)
    assert read_carried(org, "m.org") == [told(one) for one in every]
    assert read_carried(json.dumps([as_json(one) for one in every]), "m.json") == every


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_one_block(text: str) -> None:
    org = as_org([Carried(Block("a", text)), Carried(Block("b", "after"))])
    assert [entry.title for entry in load(org.encode()).entries[1:]] == ["a", "b"]
    assert [one.block.text for one in read_carried(org, "m.org")] == [text, "after"]


def test_a_file_that_was_converted_as_a_whole_holds_the_same_texts() -> None:
    org = as_org([Carried(Block("a", "one\n\n  two"))]).replace("\n", "\r\n")
    assert [one.block.text for one in read_carried(org, "m.org")] == ["one\n\n  two"]


def test_a_file_is_easily_written_by_hand() -> None:
    above = "* likes\n:PROPERTIES:\n:Kind: core\n:ID: 5\n:END:\nWhat she said:\n"
    text = f"{above}#+begin_example\ntea\n#+end_example\n"
    assert read_carried(text, "m.org") == [Carried(Block("likes", "tea", "core"), [])]


BLOCK = "* a\n:PROPERTIES:\n:KIND: core\n{}:END:\n#+begin_example\nx\n#+end_example\n"
NO_TEXT = "The text of a block must be in one #+begin_example block; this headline has none."
WRONG = {
    "no headline": (
        "m.org does not contain memory blocks. Write a headline for each, as quoth memory export does."
    ),
    "* a\ntext": f"m.org:1: {NO_TEXT}",
    "* a\n#+begin_example\nx\n#+end_example\n": "m.org:1: a has no kind: core, working or archival.",
    BLOCK.format(
        ":PERMISION: human\n"
    ): "m.org:1: A block has no property PERMISION. Did you mean PERMISSION?",
    BLOCK.format(":PERMISSION: humen\n"): "m.org:1: a: There is no permission humen. Did you mean human?",
    BLOCK.replace("core", "x").format(
        ""
    ): "m.org:1: a: There is no kind x. The choices are core, working, archival.",
    BLOCK.format(":LIMIT: many\n"): 'm.org:1: a: limit must be a whole number, not "many".',
    BLOCK.format(":UPDATED: then\n"): (
        "m.org:1: a: updated is a date or a time such as 2026-01-31 or 2026-01-31T09:30, not 'then'."
    ),
    BLOCK.format(':BY: "ann\n'): "m.org:1: BY begins with a quote but is not a JSON string.",
    BLOCK.format("") * 2: f"m.org:8: The block a {IS_ALREADY_GIVEN_AT} m.org:1.",
    BLOCK.format("") + "** Version 1\n#+begin_example\n#+end_example\n": (
        "m.org:8: An earlier version of a text has no version number."
    ),
    BLOCK.format("") + "** v\n:PROPERTIES:\n:VERSION: 1\n:END:\n#+begin_example\n#+end_example\n": (
        "m.org:1: a is version 1; its earlier versions must be numbered 1 to 0, each once, not 1."
    ),
    BLOCK.format("") + "*** deep\n": f"m.org:8: {NO_TEXT}",
    "[1": "m.org, line 1 is not valid JSON.",
    "[1]": "m.org, block 1: A block is an object with label, kind and text, not 1.",
    '[{"kind": "core"}]': "m.org, block 1: The block has no label.",
    '[{"label": 5, "kind": "core"}]': "m.org, block 1: 5: label must be text, not 5.",
    '{"label": "a", "kind": "core", "test": "x"}': (
        "m.org, block 1: a: A block has no test. Did you mean text?"
    ),
    '{"label": "a", "kind": "core", "limit": true}': (
        "m.org, block 1: a: limit must be a whole number, not true."
    ),
    '{"label": "a", "kind": "core", "versions": [1]}': (
        "m.org, block 1: versions must be an array of objects with version and text."
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_read_is_said_with_its_place(text: str) -> None:
    assert complaint(UsageError, lambda: read_carried(text, "m.org")) == WRONG[text]


# Taken in


async def test_a_memory_is_taken_in_with_its_versions(make: Make) -> None:
    one, other = make("a", person=True), make("b", person=True)
    await one.create_block("notes", "first", kind="core", permission="human", description="of ann")
    await one.edit_block("notes", text="second")
    await one.edit_block("notes", limit=70)
    every = [Carried(await one.get_block("notes"), await one.history("notes"))]  # type: ignore[arg-type]
    assert await other.import_blocks(read_carried(as_org(every), "m.org")) == (["notes"], [])
    assert await other.list_blocks() == await one.list_blocks()
    assert await other.history("notes") == await one.history("notes")
    assert (await other.undo("notes")).text == "first"


async def test_what_is_taken_is_said_and_nothing_is_changed(make: Make) -> None:
    memory = make("a", person=True)
    for label in ("x", "y"):
        await memory.create_block(label, "old")
    await memory.share_block("x", "b", "append")
    file = [Carried(Block(label, "new", "core")) for label in ("x", "y", "z")]
    with pytest.raises(UsageError) as error:
        await memory.import_blocks(file)
    assert str(error.value) == (
        "2 blocks exist already: x, y. Nothing was changed. To replace, add --replace."
    )
    assert [block.text for block in await memory.list_blocks()] == ["old", "old"]
    assert await memory.import_blocks(file, replace=True) == (["z"], ["x", "y"])
    assert [(block.text, block.kind) for block in await memory.list_blocks()] == [("new", "core")] * 3
    assert await memory.shares("x") == {"b": "append"}


@pytest.mark.parametrize(
    ("there", "given", "then"),
    [
        ("read_only", "admin", "read_only"),
        ("human", "read_write", "human"),
        ("admin", "append", "append"),
        ("read_write", "read_write", "read_write"),
    ],
)
async def test_a_file_never_loosens_a_permission(
    there: BlockPermission, given: BlockPermission, then: BlockPermission, make: Make
) -> None:
    memory = make("a", person=True)
    await memory.create_block("x", "old", permission=there)
    file = [Carried(Block("x", "new", "core", permission=given))]
    assert await memory.import_blocks(file, replace=True) == ([], ["x"])
    block = await memory.get_block("x")
    assert block is not None
    assert (block.text, block.permission) == ("new", then)
    assert await memory.import_blocks(file, replace=True) == ([], [])


async def test_what_is_the_same_already_is_left_alone(make: Make) -> None:
    memory = make("a", person=True)
    await memory.create_block("x", "same", kind="core")
    file = read_carried(as_org([Carried(block) for block in await memory.list_blocks()]), "m.org")
    assert await memory.import_blocks(file) == ([], [])


EARLY, LATE = "2026-01-31T09:30:00+00:00", "2026-11-22T23:59:59+00:00"


@pytest.mark.parametrize(
    ("created", "updated", "then"),
    [(EARLY, LATE, (EARLY, LATE)), (EARLY, "", (EARLY, EARLY)), ("", LATE, (LATE, LATE))],
)
async def test_a_block_keeps_the_times_that_its_file_knows(
    make: Make, created: str, updated: str, then: tuple[str, str]
) -> None:
    memory = make("a", person=True)
    await memory.import_blocks([Carried(Block("x", "new", created=created, updated=updated))])
    block = await memory.get_block("x")
    assert block is not None
    assert (block.created, block.updated) == then


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (Block("b", "x" * 5_001, "core"), f"b {IS_LIMITED_TO} 5,000 {CHARACTERS_THIS_WOULD_MAKE_IT} 5,001"),
        (Block("b", "\0"), f"A block cannot contain {A_NUL_CHARACTER} 1)."),
        (Block(" b"), f"A label {MUST_BE_1_TO} 100 {PRINTABLE_CHARACTERS_WITHOUT_A_SPACE} ' b'."),
        (
            Block("b", limit=10**8),
            f"The limit of a block {MUST_BE_1_TO} 10,000,000 characters, not 100,000,000.",
        ),
    ],
)
async def test_one_that_cannot_be_stored_keeps_all_out(make: Make, wrong: Block, sentence: str) -> None:
    memory = make("a", person=True)
    with pytest.raises(QuothError) as error:
        await memory.import_blocks([Carried(Block("a", "fine")), Carried(wrong)])
    assert str(error.value).startswith(sentence)
    assert await memory.list_blocks() == []


async def test_only_a_person_takes_in(make: Make) -> None:
    with pytest.raises(QuothError) as error:
        await make("a").import_blocks([])
    assert str(error.value) == f"{ONLY_A_PERSON_CAN} import blocks: quoth memory import LABEL."


# In Emacs

if EMACS := shutil.which("emacs"):

    def test_emacs_reads_the_same_texts_and_org_lint_is_content(tmp_path: Path) -> None:
        texts = [text for text in HOSTILE if text]
        every = [
            Carried(Block(label, text, description=text)) for label, text in zip(LABELS, texts, strict=False)
        ]
        every += [
            Carried(Block(f"{label} again", "x", version=2), [BlockVersion(1, label)]) for label in LABELS
        ]
        script = """
            (require 'org) (require 'org-lint) (require 'json)
            (let ((coding-system-for-read 'utf-8-unix)) (insert-file-contents (car command-line-args-left)))
            (setq command-line-args-left nil) (org-mode)
            (princ (json-encode (list
              (vconcat (org-element-map (org-element-parse-buffer) 'example-block
                         (lambda (one) (org-element-property :value one))))
              (vconcat (mapcar (lambda (one) (aref (cadr one) 2))
                         (org-lint--generate-reports (current-buffer) org-lint--checkers))))))"""
        files(tmp_path, {"m.org": as_org(every).encode(), "script.el": script})
        run = subprocess.run(
            [EMACS, "-Q", "--batch", "-l", "script.el", "m.org"],
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
        )
        seen, complaints = json.loads(run.stdout)
        wanted = [
            text for one in every for text in (one.block.text, *(earlier.text for earlier in one.versions))
        ]
        assert [text.removesuffix("\n") for text in seen] == wanted
        assert complaints == []
