"""What a person sees where a person decides: nothing is invisible, moves, or begins a row of its own."""

from __future__ import annotations

import asyncio
import io
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import ALLOW_THAT_IN_THIS_SESSION
from words import Desk, desk, tool

from quoth.agent.cli.audit import _line
from quoth.agent.events import AgentEvent
from quoth.agent.terminal.ask import AskTerminal
from quoth.agent.terminal.progress import Progress
from quoth.agent.terminal.requests import Decided, listing, page, question_of
from quoth.tools.call.call import Call
from quoth.tools.consent.requests import Decision
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.storage.database import Store
from quoth.tools.visible import mixed, visible

UNSEEN = [
    "\ufe00", "\ufe0f", "\u3164", "\uffa0", "\u115f", "\u1160", "\u2800", "\u034f", "\u17b4", "\u17b5",
    "\U000e0100", "\U000e0041", "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2060", "\u2064",
    "\ufeff", "\u061c", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068",
    "\u2069", "\u00ad", "\u180b", "\u180e", "\u180f", "\u2028", "\u2029", "\u0085", "\u00a0", "\u1680",
    "\u2003", "\u3000", "\x00", "\x07", "\x08", "\x1b", "\x7f", "\x9b", "\r", "\v", "\f", "\ud800", "\ue000",
    "\uffff", "\ufff9", "\U0001d173", "\U0001bca0", "\U000e01ef",
]  # fmt: skip


@pytest.mark.parametrize("char", UNSEEN, ids=lambda char: f"U+{ord(char):04X}")
def test_what_cannot_be_seen_is_an_escape(char: str) -> None:
    said = visible(f"a{char}b")
    assert char not in said
    assert said.startswith("a\\")
    assert visible(f"a\n{char}b", lines=True).count("\n") == 1


@given(st.text(st.characters(min_codepoint=128), max_size=6))
def test_whatever_is_left_can_be_seen(text: str) -> None:
    for char in visible(text):
        # What this Python does not know may be in use by now; what it knows to be nothing is an escape.
        assert unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp"), hex(ord(char))


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "été",
        "e\u0301te\u0301",
        "привет.txt",
        "日本語",
        "नमस्ते",
        "สวัสดี",
        "λ",
        "😀 ok",
        "µ",
        r'"a\nпривет \u202eмир"',
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert mixed(text) == ""


@pytest.mark.parametrize(
    ("text", "shown", "said"),
    [
        ("аpple", "\\u0430pple", "\\u0430pple mixes Cyrillic and Latin letters."),
        ("src/pаypal.py", "src/p\\u0430ypal.py", "p\\u0430ypal mixes Cyrillic and Latin letters."),
        ("gοοgle", "g\\u03bf\\u03bfgle", "g\\u03bf\\u03bfgle mixes Greek and Latin letters."),
        ("аοa", "\\u0430\\u03bfa", "\\u0430\\u03bfa mixes Cyrillic, Greek and Latin letters."),
        ("\u0301x", "\\u0301x", ""),
        ("a" + "\u0301" * 6, "a" + "\u0301" * 4 + "\\u0301\\u0301", ""),
    ],
)
def test_a_word_of_two_scripts_is_marked(text: str, shown: str, said: str) -> None:
    assert visible(text) == shown
    assert mixed(text) == said


# Where a person decides

ROW = '\nxxxxx  (read-file :path "x")\n       it is harmless'
ODD = f"\u202e\u3164\ufe00аpple{ROW}"
ACT = tool(
    "act", params={"text": {"default": ""}, "form": {"type": Code, "default": None}}, effects=["writes"]
)
CALLS = {
    "text": CallForm("act", {"text": ODD}),
    "program": CallForm("act", {"form": Code(f"(setv аpple 1){ROW}")}),
    "one form": CallForm("act", {"form": Code(f'(print "{ODD}")')}),
}


def asked(store: Store, call: CallForm) -> Desk:
    here = desk(store, ACT)
    assert here.pass_through(call).status == "pending"
    return here


PLACES: dict[str, Callable[[Any], str]] = {
    "pending": lambda found: listing([found]),
    "pending ID": lambda found: page(found, 0, f"plan{ODD}"),
    "approve": lambda found: str(Decided(found, Decision("once"), "", ())),
    "deny": lambda found: str(Decided(found, Decision("deny"), "", ())),
    "approve --edit": lambda found: str(Decided(found, Decision("edit", form=CALLS["program"]), "", ())),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("call", CALLS)
def test_no_argument_makes_a_row_and_nothing_hides(store: Store, place: str, call: str) -> None:
    here = asked(store, CALLS[call])
    said = PLACES[place](here.waiting[0])
    first, *rest = said.split("\n")
    assert not [row for row in rest if row.startswith("xxxxx")]
    assert not set(first + said) & set("\u202e\u3164\ufe00")
    if place.startswith("pending") and (call == "text" or place == "pending ID"):
        assert "\\u0430pple mixes Cyrillic and Latin letters." in said


@pytest.mark.parametrize("call", CALLS)
def test_the_question_shows_no_row_of_an_argument(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    class Lines:
        async def ask(self, question: str) -> str:
            return "n"

    terminal = AskTerminal(Lines())
    asyncio.run(terminal.request(ACT, Call("c", CALLS[call]), f"it is odd{ODD}"))
    said = capsys.readouterr().err
    assert "xxxxx" in said
    assert not [row for row in said.split("\n") if row.startswith("xxxxx")]
    assert not set(said) & set("\u202e\u3164\ufe00")
    assert "\\u0430pple mixes Cyrillic and Latin letters." in said


@pytest.mark.parametrize("call", CALLS)
def test_progress_and_audit_show_no_row_of_an_argument(call: str) -> None:
    out = io.StringIO()
    Progress(out, color=False)(AgentEvent("call", CALLS[call]))
    row = {
        "seq": 1, "ts": "2026-01-01T00:00:00", "status": "ok", "duration_ms": 1, "user": "u", "session": "s",
        "route": "call", "tool": "act", "form": str(CALLS[call]), "policy": "", "rule": "", "guard": "",
        "gate": "", "consent": ODD, "repairs": "", "message": ODD, "side_effects": (),
            "details": {"note": ODD},
    }  # fmt: skip
    assert "xxxxx" in _line(row)
    for said in (out.getvalue(), _line(row)):
        assert not [line for line in said.split("\n")[1:] if line.startswith("xxxxx")]
        assert not set(said) & set("\u202e\u3164\ufe00")


def test_a_scope_is_asked_about_in_words_that_can_be_seen() -> None:
    rule = '(allow (act :text "аpple \u3164" :only))'
    assert question_of(Decision("scope", rule=rule, seconds=7200)) == (
        '(allow (act :text "\\u0430pple \\u3164" :only))\n\\u0430pple mixes Cyrillic and Latin letters.\n'
        f"{ALLOW_THAT_IN_THIS_SESSION} 2 hours?"
    )
