"""The line editor: what Tab proposes, where a new line begins, what Enter runs, and what is kept of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from words import CTRL_C, CTRL_D, Terminal, files

from quoth.agent.client import AsyncAgent
from quoth.agent.repl.completion import PromptCompleter
from quoth.agent.repl.entries import is_form, read_typed
from quoth.agent.repl.line import _coloured, indentation

TOOLS = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool paint "Paint a file."
  :parameters [path   {:type path  :doc "What to paint"}
               colour {:type str  :choices ["red" "green"]  :default "red"}
               coats  {:type int  :default 1}
               wet    {:type bool  :default False}
               key    {:type str  :default ""  :secret True}
               others {:type (get list path)  :default []}]
  :body path)
"""
COMMANDS = {
    "load": "load a file",
    "log": "the session",
    "fly": "fly a plan",
    "tool": "show a tool",
    "model": "",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return files(
        tmp_path,
        {
            "paint.hy": TOOLS,
            "src/wall.txt": "",
            "src/a b.txt": "",
            "plan.org": "",
            'q"t.txt': "",
            ".kept": "",
        },
    )


@pytest.fixture
def completer(here: Path) -> PromptCompleter:
    names = {"my-price": 3, "my-shop": Path, "unless-so": print, "_own": 1}
    agent = AsyncAgent(workspace=here, tools=["paint.hy"], session="monday")
    return PromptCompleter(agent, lambda: names, lambda: COMMANDS)


def proposed(completer: PromptCompleter, typed: str) -> list[str]:
    """The lines that Tab can make of what is typed; ``|`` is the cursor."""
    before, _, after = typed.partition("|")
    document = Document(before + after, len(before))
    found = completer.get_completions(document, CompleteEvent(completion_requested=True))
    return [before[: len(before) + one.start_position] + one.text for one in found]


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        # commands, and what stands behind them
        (",l", [",load", ",log"]),
        (",none", []),
        (",load p", [",load paint.hy"]),
        (",load src/", []),  # no Hy there
        (",fly ", [",fly src/", ",fly plan.org"]),
        (",tool pai", [",tool paint"]),
        (",model scri", [",model scripted:"]),
        (",model loc", [",model local", ",model local-small"]),
        (",model openr", [",model openrouter:"]),
        (",policy (paint :c", [",policy (paint :colour", ",policy (paint :coats"]),
        # tools and names, where a name can stand
        ("(pai", ["(paint"]),
        ("(print (pai", ["(print (paint"]),
        ("(grep_s", ["(grep-search"]),
        ("(+ my-", ["(+ my-price", "(+ my-shop"]),
        ("my-p", ["my-price"]),
        ("(unless-s", ["(unless-so"]),
        ("(_o", []),
        ("(setv x (defmac", ["(setv x (defmacro"]),
        ("(my-shop.from", ["(my-shop.from-uri"] if hasattr(Path, "from_uri") else []),
        ("(my-shop.is-d", ["(my-shop.is-dir"]),
        ("(my-price.nothing.at.all.", []),
        ("(pai| x)", ["(paint"]),
        # arguments of the tool around the cursor, those it must have first
        ("(paint :", ["(paint :" + one for one in ("path", "colour", "coats", "wet", "key", "others")]),
        ("(paint ", ["(paint :" + one for one in ("path", "colour", "coats", "wet", "key", "others")]),
        ('(paint :path "x" :co', ['(paint :path "x" :colour', '(paint :path "x" :coats']),
        ("(paint :colour (f :", []),
        ('(do (paint :path (+ "a" "b") :w', ['(do (paint :path (+ "a" "b") :wet']),
        # their values
        ("(paint :wet T", ["(paint :wet True"]),
        ("(paint :wet ", ["(paint :wet True", "(paint :wet False"]),
        ("(paint :colour ", ['(paint :colour "red"', '(paint :colour "green"']),
        ('(paint :colour "g', ['(paint :colour "green']),
        ('(paint "src/wall.txt" "', ['(paint "src/wall.txt" "red', '(paint "src/wall.txt" "green']),
        # paths, as a string spells them
        ('(paint :path "s', ['(paint :path "src/']),
        ('(paint :path "src/', ['(paint :path "src/a b.txt', '(paint :path "src/wall.txt']),
        ('(paint :path "q', ['(paint :path "q\\"t.txt']),
        ('(paint :path ".k', ['(paint :path ".kept']),
        ('(paint "p', ['(paint "paint.hy', '(paint "plan.org']),
        ('(paint :others ["plan.org" "s', ['(paint :others ["plan.org" "src/']),
        ('(paint :path "none/', []),
        ('(paint :path "\\0', []),
        # and nothing where nothing is meant
        ('(print "pai', []),
        ("(print ; pai", []),
        ('(paint :key "s', []),
        ("(print)", []),
        ("fix the pai", []),
        ('say "pai', []),
    ],
)  # fmt: skip
def test_tab_proposes_what_could_stand_there(
    completer: PromptCompleter, typed: str, wanted: list[str]
) -> None:
    assert proposed(completer, typed) == wanted


def test_a_name_that_would_steer_the_terminal_is_shown_escaped(
    completer: PromptCompleter, here: Path
) -> None:
    (here / "src" / "\x1b[31m\u202e.txt").touch()
    document = Document('(paint :path "src/')
    first = next(iter(completer.get_completions(document, CompleteEvent())))
    assert (first.display_text, first.text) == ("\\x1b[31m\\u202e.txt",) * 2


def test_tab_runs_nothing_of_the_objects_that_it_looks_at(completer: PromptCompleter) -> None:
    ran = []

    class Odd:
        safe = "text"

        def __dir__(self) -> list[str]:
            return ran.append("dir") or ["xyz"]  # type: ignore[func-returns-value]

        def __getattr__(self, name: str) -> str:
            return ran.append(name) or name  # type: ignore[func-returns-value]

        @property
        def table(self) -> str:
            return ran.append("table") or "read"  # type: ignore[func-returns-value]

    completer._names = lambda: {"odd": Odd(), "cls": Odd}
    found = [proposed(completer, typed) for typed in ("(odd.xy", "(odd.xyz.", "(odd.table.sp", "(odd.ta")]
    assert (found, ran) == ([[], [], [], ["(odd.table"]], [])
    assert proposed(completer, "(odd.safe.splitl") == ["(odd.safe.splitlines"]
    assert proposed(completer, "(cls.ta") == ["(cls.table"]


def test_proposals_come_with_their_words_and_are_bounded(completer: PromptCompleter, here: Path) -> None:
    found = list(completer.get_completions(Document("(paint :pa"), CompleteEvent()))
    assert [one.display_meta_text for one in found] == ["path What to paint"]
    for number in range(1000):
        (here / "src" / f"{number}.txt").touch()
    assert len(proposed(completer, '(paint :path "src/')) == 200


async def test_sessions_and_requests_are_proposed(here: Path) -> None:
    async with AsyncAgent(workspace=here, session="monday", user="ann") as agent:
        await agent.call('(write-file :path "a.txt" :content "x")')
        (request,) = agent.broker.requests()
        completer = PromptCompleter(agent, dict, lambda: COMMANDS)
        assert proposed(completer, ",approve ") == [f",approve {request.id}"]
        found = [proposed(completer, line) for line in (",log m", ",log t", ",deny x y")]
    assert found == [[",log monday"], [], []]


def test_a_chat_proposes_commands_alone(here: Path) -> None:
    completer = PromptCompleter(AsyncAgent(workspace=here), dict, lambda: COMMANDS, lisp=False)
    assert proposed(completer, ",fl") == [",fly"]
    assert proposed(completer, "(ec") == proposed(completer, "ec") == []


# A new line


@pytest.mark.parametrize(
    ("before", "column"),
    [
        ("", 0),
        ("(+ 1 2)", 0),
        ("(+ 1", 3),
        ("(+", 1),
        ("(print x\n       y", 7),
        ("(print\n  x", 1),
        ("(defn f [x]", 2),
        ("(def-cognitive-tool f", 2),
        ("(when x", 2),
        ("(with [f g]", 2),
        ("(let [a 1", 6),
        ("[1 2", 1),
        ("{:a 1", 1),
        ("#{1", 2),
        ("#(1", 2),
        ("((f x) y", 1),
        ("(do", 2),
        ("(do a", 4),
        ("(lfor", 2),
        ("(lfor x xs", 6),
        ("(if a", 4),
        ("(f (g 1)\n   (h [2", 7),
        ('(f "a ( b"', 3),
        ("(f ; a ( b", 1),
        ('(f "日本" [', 11),
        ('(f "an open string', 0),
        ("'(a", 2),
        (")(f x", 4),
    ],
)
def test_a_new_line_of_a_form_begins_where_lisp_has_it(before: str, column: int) -> None:
    assert len(indentation(before)) == column


@pytest.mark.parametrize(
    ("text", "form", "unfinished"),
    [
        ("(+ 1 2", True, True),
        ("(+ 1 2)", True, False),
        ("  (+ 1", True, True),
        ("(+ 1]", True, False),  # wrong: the reader tells what
        ("(+ 1))", True, False),
        ('(f ")"', True, True),
        ('(f "(")', True, False),
        ('(f "', True, True),
        ('(f "\\"")', True, False),
        ("(f #[[ ) ]])", True, False),
        ("(f #[x[ ]] ]x])", True, False),
        ("(f #[x[ )", True, True),
        ("(f ; )", True, True),
        ("[1 2", True, True),
        ("'(1", True, True),
        ("#{1", True, True),
        ("`(a ~@b", True, True),
        ("what is (this", False, False),
        ("1", False, False),
        ('"text', False, False),
        ("", False, False),
    ],
)
def test_enter_runs_what_is_closed(text: str, form: bool, unfinished: bool) -> None:
    assert is_form(text) is form
    assert (form and read_typed(text).unfinished) is unfinished


@pytest.mark.parametrize(
    "text", ["(" * 5000, "(f " + '"' * 5001, "]" * 5000, "(#[" * 2000, "(" + "\\" * 5000]
)
def test_what_is_typed_may_be_anything(text: str) -> None:
    typed = read_typed(text)
    assert "".join(token.text for token in typed.tokens) == text
    assert "\n".join("".join(piece[1] for piece in line) for line in _coloured(text)) == text
    indentation(text)


# At a terminal


def test_the_history_is_kept_without_secrets_and_comes_back_with_up_and_ctrl_r(
    here: Path, state: Path
) -> None:
    with Terminal("--tools", "paint.hy", cwd=here) as terminal:
        terminal.prompted()
        terminal.enter('(paint :path "plan.org" :key "hunter2x")')
        terminal.see('\n"plan.org"\n')
        terminal.prompted()
        terminal.enter("(do\r(+ 40 2))")
        terminal.see("\n42\n")
        terminal.prompted()
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    kept = (state / "history").read_text()
    assert "hunter2x" not in kept
    assert '+(paint :path "plan.org" :key "[secret]")\n' in kept
    assert "+(do\n+  (+ 40 2))\n" in kept
    assert (state / "history").stat().st_mode & 0o777 == 0o600
    with Terminal("--tools", "paint.hy", cwd=here) as terminal:
        terminal.prompted()
        terminal.type("\x1b[A\r")
        terminal.see("\n42\n")
        terminal.prompted()
        terminal.type("\x12plan")
        terminal.see("plan.org")
        terminal.type(CTRL_C)
        terminal.type(CTRL_C)
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
