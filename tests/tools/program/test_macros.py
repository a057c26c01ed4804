"""Macros of a program: expanded in the sandbox, checked as if they had been written, kept, bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from sentences import IS_NOT_DEFINED

from quoth.tools.call.context import SavedValues
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import show
from quoth.tools.program.compiler import TOO_DEEP, ProgramError, program_digest
from quoth.tools.registry.values import plain
from quoth.tools.sandbox.macros import MAX_NODES, MAX_ROUNDS, compile_expanded, expand
from quoth.tools.sandbox.pool import SandboxLimits
from quoth.tools.sandbox.runner import Sandbox

TOOLS = ("echo", "eval", "read-file")
UNLESS = "(defmacro unless2 [c #* body] `(if ~c None (do ~@body)))\n"
OR = '(defmacro or2 [a b] (setv g (gensym "v")) `(do (setv ~g ~a) (if ~g ~g ~b)))\n'


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    made = Sandbox(SandboxLimits(seconds=20.0, calls=50))
    yield made
    await made.aclose()


async def run(sandbox: Sandbox, text: str, kept: Mapping[str, str] | None = None) -> Any:
    async def answer(form: CallForm, name: str) -> Any:
        return [form.tool, *form.positional]

    session = SavedValues(b"", [], macros=kept or {})
    program = await compile_expanded(text, TOOLS, sandbox, session)
    return plain((await sandbox.run(program, TOOLS, answer))[0])


def form(text: str) -> dict[str, str]:
    return {"$form": text}


EXPANDED = [
    (UNLESS + "(unless2 (= 1 2) 1 2)", 2),
    (UNLESS + '(unless2 True (echo "no"))', None),
    (UNLESS + '(unless2 False (echo "yes"))', ["echo", "yes"]),
    (UNLESS + '(setv n 3) (unless2 False f"{n}")', "3"),
    (UNLESS + "(lfor x [1 2] (unless2 False x))", [1, 2]),
    (UNLESS + "(-> False (unless2 5))", 5),
    (UNLESS + "(defn f [x] (unless2 x :key)) (f False)", "key"),
    (UNLESS + "(let ((unless2 1)) unless2)", 1),
    (UNLESS + "'(unless2 a b)", form("(unless2 a b)")),
    (UNLESS + "`(x ~(unless2 False 7))", form("(x 7)")),
    (OR + "(setv v 5) (or2 None v)", 5),
    (OR + "[(or2 0 1) (or2 0 2)]", [1, 2]),
    ("(defmacro five [] 5) (+ (five) 1)", 6),
    ('(defmacro m [x] (setv g (gensym "a-b ü") h (gensym \'k?)) `(do (setv ~g ~x ~h 1) ~g)) (m 3)', 3),
    ("(defmacro nothing [] None) (nothing)", None),
    ("(defmacro both [a [b 2]] [a b]) (both 1)", [1, 2]),
    ("(defmacro q [x] `'~x) (q (a b))", form("(a b)")),
    ("(defmacro names [#* xs] (lfor x xs (str x))) (names a :b (c))", ["a", ":b", "(c)"]),
    ("(defmacro swap [a b] `(setv #(~a ~b) #(~b ~a))) (setv x 1 y 2) (swap x y) [x y]", [2, 1]),
    ("(defmacro def1 [name x] `(defn ~name [] ~x)) (def1 one 1) (one)", 1),
    ("(defmacro a [] 1) (defmacro b [] `(+ (a) 1)) (b)", 2),
    (UNLESS + "(defmacro c [x] (unless2 False x)) (c 9)", 9),
    ("(defmacro down [n] (if (= n 0) ''done `(down ~(- n 1)))) (down 40)", form("done")),
    ("(do (defmacro six [] 6) (six))", 6),
    ("(let [x 1] (defmacro six [] 6) (+ (six) x))", 7),
    (UNLESS + "(macroexpand '(unless2 a b))", form("(if a None (do b))")),
    (UNLESS + "(macroexpand '(f a))", form("(f a)")),
    (UNLESS + "(eval (macroexpand '(unless2 False (+ 1 1))))", ["eval", "(if False None (do (+ 1 1)))"]),
    (
        "(defmacro a [] `(b)) (defmacro b [] 1) [(macroexpand '(a)) (macroexpand-1 '(a))]",
        [1, form("(b)")],
    ),
]


@pytest.mark.parametrize(("text", "value"), EXPANDED)
async def test_a_macro_is_expanded(sandbox: Sandbox, text: str, value: Any) -> None:
    assert await run(sandbox, text) == value


REFUSED = [
    ("(defmacro f)", "a macro is written (defmacro name [parameters] body …)"),
    ("(defmacro if [x] x)", "if is a form of Hy"),
    ("(defmacro eval [x] x)", "eval is a form of Hy"),
    ("(defmacro read-file [x] x)", "read-file is a tool"),
    ("(defmacro m [#** k] 1)", "no named parameters"),
    ("(print (defmacro m [] 1))", "defmacro cannot be used inside another form"),
    ("(defmacro m [] (m)) (m)", "m is used in its own body"),
    ("(defmacro m [] (import time) 1) (m)", "a macro cannot import"),
    (
        '(defmacro m [] (read-file "a")) (m)',
        f"m failed while it was expanded: NameError: read-file {IS_NOT_DEFINED}",
    ),
    ("(defmacro m [a] a) (m)", "m failed while it was expanded: TypeError"),
    ("(defmacro m [] (/ 1 0)) (m)", "ZeroDivisionError"),
    ("(defmacro m [] (fn [] 1)) (m)", "A function cannot be part of a form"),
    ("(defmacro m [] '(defmacro n [] 1)) (m)", "defmacro cannot be used inside another form"),
    ("(defmacro m [] `(m)) (m)", "too long after its macros are expanded"),
    ("(defmacro m [x] `(m (+ ~x 1))) (m 0)", f"m still expands after {MAX_ROUNDS} rounds"),
    ("(defmacro m [x] `(do (m ~x) (m [~x]))) (m 1)", TOO_DEEP),
    (f"(defmacro m [] (* [1] {MAX_NODES + 1})) (m)", f"more than {MAX_NODES} nodes"),
    ("(defmacro m [] (while True 1)) (m)", "it exceeded its time limit"),
    ("(setv _hy_gensym_v_1_00000000 1)", "is internal"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
async def test_a_wrong_macro_is_a_sentence_at_its_place(sandbox: Sandbox, text: str, why: str) -> None:
    with pytest.raises(ProgramError) as refused:
        await run(sandbox, text)
    assert why in str(refused.value)


async def test_an_error_in_an_expansion_points_to_the_call(sandbox: Sandbox) -> None:
    with pytest.raises(ProgramError, match=r"line 3, column 3: do-mac cannot be used"):
        await run(sandbox, "(defmacro m [] '(do-mac 1))\n\n  (m)")


async def test_the_same_text_always_has_the_same_expansion(sandbox: Sandbox) -> None:
    made = [await compile_expanded(OR + "(or2 1 2)", TOOLS, sandbox) for _ in range(3)]
    assert len({program_digest(program.python) for program in made}) == 1
    other = await compile_expanded(OR + "(or2 1 3)", TOOLS, sandbox)
    assert "_hy_gensym_v_1_" in other.python
    names = [program.python.partition("_hy_gensym_v_1_")[2][:8] for program in (made[0], other)]
    assert names[0] != names[1]  # a function of the session may use the first


async def test_a_session_keeps_its_macros(sandbox: Sandbox) -> None:
    program = await compile_expanded(UNLESS + OR, TOOLS, sandbox)
    assert [*program.macros] == ["unless2", "or2"]
    assert await run(sandbox, "(or2 None (unless2 False 3))", program.macros) == 3
    assert await run(sandbox, "(is_it 3)", {"is-it": "(defmacro is-it [x] x)"}) == 3
    used = await compile_expanded(
        "(unless2 False 1)", TOOLS, sandbox, SavedValues(b"", [], macros=program.macros)
    )
    assert (used.uses, used.macros) == ({"unless2"}, {})
    assert await run(sandbox, "(defmacro unless2 [x] 1) (unless2 2)", program.macros) == 1


async def test_a_program_without_macros_asks_no_worker(sandbox: Sandbox) -> None:
    class Nobody:
        def worker(self) -> None:
            raise AssertionError

    assert await expand("(+ 1 2)", TOOLS, Nobody(), {"unless2": ""}) is None  # type: ignore[arg-type]
    assert await expand('(echo "unless2")', TOOLS, Nobody(), {"unless2": ""}) is None  # type: ignore[arg-type]


# What an expansion may say is what a program may say: each of these in each of ten places.
HOSTILE = (
    """
(hy.R.os.system "id")|((. hy R os system) "id")|(do-mac (print 1))|(eval-and-compile 1)|(eval-when-compile 1)
(py "1")|(pys "1")|(require os)|(defreader r 1)|(defmacro n [] 1)|(get-macro n)
(pragma :hy 1)|(export :objects [a])
((. do-mac) 1)|((. hy R) 1)|(hy.eval 1)|(hy.macroexpand 1)|(exec "1")|(__Form "(" 1)
(__fits 1)|(__guarded 1)
(__wall___answer 1)|(setv __Form 1)|(._hy_x y)|(. x __class__)
(deftype x int)|(hy.gensym)|(hy.R.os)|(globals)
(locals)
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
PLACES = [
    "(defmacro m [] '%s) (m)",
    "(defmacro m [] '%s) (+ 1 (m))",
    "(defmacro m [] '%s) ((m) 1)",
    "(defmacro m [] '(fn [] %s)) (m)",
    "(defmacro m [] '(fn [[x %s]] x)) (m)",
    "(defmacro m [] '(let [x %s] x)) (m)",
    "(defmacro m [x] x) (m %s)",
    "(defmacro m [x] `(do ~x)) (m %s)",
    "(defmacro m [] '(lfor x [1] %s)) (m)",
    '(defmacro m [] \'(setv x f"{%s}")) (m)',
]


@pytest.mark.parametrize("form", HOSTILE)
async def test_what_no_program_may_say_no_expansion_says(sandbox: Sandbox, form: str) -> None:
    for place in PLACES:
        with pytest.raises(ProgramError):
            await compile_expanded(place % form, TOOLS, sandbox)


async def test_a_macro_that_is_given_any_form_gets_it_whole(sandbox: Sandbox) -> None:
    text = '(a [b {"c" #{d}} #(e)] \'f `g ~h :k 1.5 b"x" f"{i}" None True x.y #* z)'
    given = await expand(f"(defmacro same [x] `'~x) (same {text})", TOOLS, sandbox)
    assert given is not None
    ((_, expansion),) = given.expansions.items()
    assert show(expansion) == f"'{text}"
