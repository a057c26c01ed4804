"""No code of the host runs while a program is compiled: every macro, in every spelling, in every place.

Two walls are tried, each alone: the check, before Hy sees anything, and Hy's compiler with its tables closed.
Only what is made here to touch the canary is ever compiled by Hy itself.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import itertools
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import hy
import pytest
from examples import examples
from hy.compiler import hy_compile
from hypothesis import given
from hypothesis import strategies as st
from sentences import CANNOT_BE_USED_IN_A, NOTHING_RUNS_WHILE_A_PROGRAM
from words import agent, files, quoth

from quoth.tools.lisp.reader import read_one
from quoth.tools.program import compiler as program
from quoth.tools.program.closed_compiler import ClosedCompiler, sealed
from quoth.tools.program.compiler import PURE_MACROS, ProgramError, compile_program
from quoth.tools.program.macros import Definitions

CORE = sorted(builtins._hy_macros)  # type: ignore[attr-defined]
FORBIDDEN = sorted(set(CORE) - PURE_MACROS)
HOMES = ("hy.core.macros", "hy.core.result_macros")
LOOK_ALIKES = (0xFF41, 0x1D41A, 0x1D4EA)  # full width, bold, bold script: all are a to z after NFKC

# How a head can be spelt; Hy takes each of them for the macro.
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda name: hy.unmangle(name),
    "mangled": lambda name: name,
    "dotted": lambda name: f"(. {hy.unmangle(name)})",
    "dotted, mangled": lambda name: f"(. {name})",
    "in a head": lambda name: f"((. {hy.unmangle(name)}))",
    "a head of a head": lambda name: f"({hy.unmangle(name)} 1)",
    "required": lambda name: f"hy.R.{home(name)}.{hy.unmangle(name)}",
    "required, dotted": lambda name: f"(. hy R {home(name)} {name})",
    "full width": lambda name: alike(hy.unmangle(name), 0),
    "full width, dotted": lambda name: f"(. {alike(hy.unmangle(name), 0)})",
    "bold, dotted": lambda name: f"(. {alike(hy.unmangle(name), 1)})",
    "script": lambda name: alike(hy.unmangle(name), 2),
    "full width hy": lambda name: f"(. ｈｙ R {home(name)} {name})",
}

# Where a form is compiled. The first ones are Hy's own, the last ones idioms that are rewritten first.
PLACES = r"""
FORM
(do FORM 1)
(setv x FORM)
(setx x FORM)
(+= x FORM)
(f FORM)
(f :k FORM)
(f #* FORM)
(f #** FORM)
(FORM)
(.m FORM)
(.m x FORM)
(. FORM y)
(. x [FORM])
(. x (m FORM))
(get x FORM)
(cut x FORM)
(+ 1 FORM)
(< 1 FORM 3)
(chainc 1 < FORM)
(and 1 FORM)
(not FORM)
[1 FORM]
{1 FORM}
{FORM 1}
#{FORM}
#(FORM)
f"{FORM}"
f"{1 :{FORM}}"
(if FORM 1 2)
(if 1 FORM 2)
(when 1 FORM)
(cond FORM 1)
(cond True FORM)
(let [x FORM] x)
(let [x 1] FORM)
(fn [] FORM)
(fn [[x FORM]] x)
(defn f [[x FORM]] x)
(defn f [] FORM)
(defn f [* [x FORM]] x)
(defn [FORM] f [] 1)
(defn #^ FORM f [] 1)
(defn f [#^ FORM x] x)
(annotate x FORM)
(setv #^ FORM x 1)
(lfor x FORM x)
(lfor x y FORM)
(lfor x y :if FORM x)
(lfor x y :do FORM x)
(lfor x y :setv z FORM x)
(sfor x FORM x)
(dfor x y FORM x)
(dfor x y x FORM)
(gfor x y FORM)
(for [x FORM] 1)
(for [x y] FORM)
(while FORM 1)
(try FORM (except [] 1))
(try 1 (except [FORM] 1))
(try 1 (except [e FORM] 1))
(try 1 (except [] FORM))
(try 1 (except [] 1) (else FORM))
(try 1 (finally FORM))
(raise FORM)
(raise x :from FORM)
(assert FORM)
(assert 1 FORM)
(fn [] (return FORM))
(match FORM x 1)
(match 1 x FORM)
(match 1 x :if FORM 1)
(defclass A [FORM])
(defclass A [] FORM)
(defclass A [] (defn f [self] FORM))
(defclass [FORM] A [])
""".strip().splitlines()
REWRITTEN = """
(-> FORM f)
(-> 1 FORM)
(->> 1 (f FORM))
(map f FORM)
(map FORM xs)
(filter FORM xs)
(reduce FORM 0 xs)
(gather FORM)
(unless FORM 1)
(str 1 FORM)
(defun f (&optional (x FORM)) x)
(let ((x FORM)) x)
(dotimes (i FORM) i)
(first FORM)
(rest FORM)
(define (g) FORM)
(dolist (i FORM) i)
""".strip().splitlines()


def alike(name: str, kind: int) -> str:
    return "".join(chr(LOOK_ALIKES[kind] + ord(c) - 97) if c.islower() and c.isascii() else c for c in name)


def home(name: str) -> str:
    """The module of Hy's that a core macro is of, as hy.R takes it."""
    return next(m for m in HOMES if name in importlib.import_module(m)._hy_macros).replace(".", "/")


def test_the_tables_are_of_the_installed_hy() -> None:
    assert len(CORE) > 90
    assert {"do_mac", "eval_and_compile", "defmacro", "require", "py", "quote", "with"} <= set(FORBIDDEN)


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Whatever macro that is not allowed is expanded sings; and no file may appear."""
    sung: list[str] = []

    def caged(name: str) -> Any:
        def macro(*_: Any) -> Any:
            sung.append(name)
            return None

        return macro

    monkeypatch.chdir(tmp_path)
    for name in FORBIDDEN:
        for table in (
            builtins,
            *(importlib.import_module(f"hy.core.{m}") for m in ("macros", "result_macros")),
        ):
            if name in table._hy_macros:  # type: ignore[union-attr]
                monkeypatch.setitem(table._hy_macros, name, caged(name))  # type: ignore[union-attr]
    yield sung
    assert not list(tmp_path.iterdir())
    assert not sung


def touching(head: str) -> str:
    return f'({head} (do (import pathlib) (.touch (pathlib.Path "canary")) 1))'


def test_what_stands_in_each_place_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hy itself, without our check, runs the canary there: the table is of places that count."""
    monkeypatch.chdir(tmp_path)
    for place in PLACES:
        hy_compile(hy.read(place.replace("FORM", touching("(. do-mac)"))), ModuleType("open"))
        (tmp_path / "canary").unlink()


def test_a_form_that_is_allowed_is_compiled_in_each_place() -> None:
    for place in PLACES + REWRITTEN:
        assert compile_program(place.replace("FORM", "(id 1)")).python


def rows() -> Iterator[str]:
    """Every macro in every spelling, and every spelling in every place; they take turns at each other."""
    places = itertools.cycle(PLACES + REWRITTEN)
    for spelling in SPELLINGS.values():
        for name in [*FORBIDDEN, *["do_mac"] * (len(PLACES + REWRITTEN) - len(FORBIDDEN))]:
            yield next(places).replace("FORM", touching(spelling(name)))


@pytest.mark.parametrize("expanded", [False, True], ids=["written", "expanded"])
def test_the_check_refuses_every_macro_in_every_spelling_and_place(
    expanded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("Hy has seen it")

    monkeypatch.setattr(program, "hy_compile", never)
    for text in rows():
        said = refusal(text, expanded)
        if re.search(r"quote [1(]", text):  # what is quoted is data, and Hy never sees the word
            continue
        assert "Hy has seen it" not in said, text
        assert re.match(r"line 1, column \d+: .{9,200}\n.+\n *\^\Z", said), (text, said)


def test_the_macros_that_are_allowed_are_so_in_no_odd_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (spelling, spell) in product(sorted(PURE_MACROS), SPELLINGS.items()):
        if "dotted" in spelling or "hy" in spelling:
            assert refusal(f"({spell(name)} 1)").startswith("line 1, column "), name


def test_a_gap_in_the_check_finds_no_macro(canary: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "check", lambda form, text: None)
    monkeypatch.setattr(program, "spot", lambda *_: None)
    for text in itertools.islice(rows(), 0, None, 4):
        refusal(text)
        assert not canary, text


def refusal(text: str, expanded: bool = False) -> str:
    """What is said of a program, or of one whose macro expands to it; nothing if it is compiled."""
    try:
        if expanded:
            compile_program("(m)", (), Definitions({"m": ""}, expansions={"(m)": read_one(text)}))
        else:
            compile_program(text)
    except ProgramError as error:
        return str(error)
    return ""


def test_the_compiler_alone_knows_no_macro_of_anybody(canary: list[str]) -> None:
    for name, spell in product(CORE, SPELLINGS.values()):
        bare = ClosedCompiler({}, "")
        with contextlib.suppress(Exception):
            hy_compile(sealed(hy.read(f"({spell(name)} x)")), None, compiler=bare, import_stdlib=False)
        assert not canary, name
        assert not bare.module._hy_macros


HEADS = st.sampled_from(
    [*FORBIDDEN, "do-mac", "(. do-mac)", "let", ".", "hy", "R", "fn", "cond", "f", "None"]
)
FORMS = st.recursive(
    HEADS | st.sampled_from(["1", '"a"', ":k", "[x 1]", "#^ x y"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"({' '.join(items)})"),
        st.tuples(HEADS, st.lists(inner, max_size=3)).map(lambda t: f"((. {t[0]}) {' '.join(t[1])})"),
        st.lists(HEADS, max_size=4).map(lambda names: f"((. {' '.join(names)}) 1)"),
        st.lists(inner, max_size=3).map(lambda items: f"[{' '.join(items)}]"),
        inner.map(lambda item: f'f"{{{item}}}"' if '"' not in item else item),
        st.sampled_from(PLACES + REWRITTEN).flatmap(lambda p: inner.map(lambda i: p.replace("FORM", i))),
    ),
    max_leaves=8,
)


@examples(2)
@given(FORMS, st.booleans())
def test_whatever_is_compiled_expanded_allowed_macros_only(text: str, checked: bool) -> None:
    sung: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in FORBIDDEN:
            patch.setitem(builtins._hy_macros, name, lambda *_: sung.append("one"))  # type: ignore[attr-defined]
        if not checked:
            patch.setattr(program, "check", lambda form, text: None)
        refusal(text)
    assert not sung


# What a person types, and what a model says

SENTENCE = f"do-mac {CANNOT_BE_USED_IN_A}; {NOTHING_RUNS_WHILE_A_PROGRAM}"
TYPED = '((. do-mac) (do (import os) (os.system "touch PWNED") 1))'


@pytest.mark.parametrize("form", [TYPED, f"(setv x {TYPED})", f"(-> 1 (f {TYPED}))"])
@pytest.mark.parametrize("dry", [False, True, "pure"])
def test_eval_and_its_dry_runs_say_so(tmp_path: Path, form: str, dry: Any) -> None:
    with agent(tmp_path) as here:
        result = here.eval(form, dry_run=dry)
    place = form.index("(. do-mac)")
    assert (result.status, result.message.split("\n")) == (
        "invalid",
        [f"line 1, column {place + 1}: {SENTENCE}", form, " " * place + "^"],
    )
    assert not (tmp_path / "PWNED").exists()


def test_a_check_of_a_plan_says_so(tmp_path: Path) -> None:
    files(tmp_path, {"p.org": f"* PLAN one\n#+begin_src hy\n{TYPED}\n#+end_src\n"})
    said = quoth("fly", "p.org", "--check", cwd=tmp_path)
    assert said.code == 2
    assert f"p.org:3:2: {SENTENCE[0].upper()}{SENTENCE[1:]}.\n" in said.out
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".quoth") == ["p.org"]


def test_a_reply_of_a_model_says_so(tmp_path: Path) -> None:
    with agent(tmp_path, f"(eval :form {TYPED})", "done") as here:
        (call,) = here.run("go").calls
    assert call.result.message == f"line 1, column 2: {SENTENCE}\n{TYPED}\n ^"
    assert not (tmp_path / "PWNED").exists()
