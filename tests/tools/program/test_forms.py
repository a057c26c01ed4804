"""Forms are values in programs: built by quote and quasiquote, taken apart, evaluated through the door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import hy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quoth.tools.errors import Pending
from quoth.tools.history.event import content_of, event_form, read_result, result_text, value_in
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code, FormData, form_data, forms_as_code, print_value, show, to_value
from quoth.tools.lisp.reader import read_one
from quoth.tools.program.compiler import ProgramError, compile_program
from quoth.tools.registry.values import plain
from quoth.tools.sandbox.pool import SandboxLimits
from quoth.tools.sandbox.runner import Sandbox
from quoth.tools.sandbox.wall import FormValue, packed, unpacked


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    made = Sandbox(SandboxLimits(seconds=20.0, calls=20))
    yield made
    await made.aclose()


async def run(sandbox: Sandbox, text: str, calls: list[CallForm] | None = None) -> Any:
    async def answer(form: CallForm, name: str) -> Any:
        (calls if calls is not None else []).append(form)
        return [1, {"$form": "(rm)"}]

    program = compile_program(text, ["echo", "eval"])
    return plain((await sandbox.run(program, ["echo", "eval"], answer))[0])


VALUES = [
    ("'x", {"$form": "x"}),
    ("':k", {"$form": ":k"}),
    ('\'(print f"a{b}")', {"$form": '(print f"a{b}")'}),
    ("'(setv x 1)", {"$form": "(setv x 1)"}),
    ('\'"text"', "text"),
    ("'(1 [a] {b 2} #{c} #(d) \"t\" 1.5 x.y :k 'q)", {"$form": '(1 [a] {b 2} #{c} #(d) "t" 1.5 x.y :k \'q)'}),
    ("(setv e (+ 1 1) es [1 2]) `(a ~e ~@es b)", {"$form": "(a 2 1 2 b)"}),
    ("`(a `(b ~(c ~(+ 1 2))))", {"$form": "(a `(b ~(c 3)))"}),
    ('`(f ~[1 2] ~{"a" 1})', {"$form": '(f [1 2] {"a" 1})'}),
    ("(defn twice [x] `(+ ~x ~x)) (twice '(f))", {"$form": "(+ (f) (f))"}),
    ("(len '(a b))", 2),
    ("(not '())", True),
    ("(empty? '(a))", False),
    ("[(if '() 1 2) (if '(a) 1 2) (cond '() 1 True 2) (if 0 1 2)]", [2, 1, 2, 2]),
    ("(setv xs '(1 2)) (while xs (setv xs (cut xs 1 None))) xs", {"$form": "()"}),
    ("(lfor x ['() '(a)] :if x (str x))", ["(a)"]),
    ("(get '(a b) 1)", {"$form": "b"}),
    ("(cut '(a b c) 1 None)", {"$form": "(b c)"}),
    ("(first '(a b))", {"$form": "a"}),
    ("(lfor x '(1 2) (+ x 1))", [2, 3]),
    ("(map str '(a :b))", ["a", ":b"]),
    ("(in 'a '(a b))", True),
    ("(+ '(a) '(b))", {"$form": "(a b)"}),
    ("(list (reversed '(1 2)))", [2, 1]),
    ("(match '(a b) [h #* r] [(str h) (len r)])", ["a", 1]),
    ("(match [1 2] [h #* r] [h (len r)])", [1, 1]),
    ("(setv [h #* r] '(1 2 3)) r", [2, 3]),
    ('(= \'(a [b "c"]) \'(a [b "c"]))', True),
    ('(= \'(a) ["a"])', False),
    ('(= \'a "a")', False),
    ("(= '(1 2) '#(1 2))", False),
    ("(str '(a 'b \"c\"))", '(a \'b "c")'),
    ("(str '(f 1e400 -1e400 inf b\"it's\"))", '(f Inf -Inf inf b"it\'s")'),
    (r"""(str '(f b"\"'\x00\\"))""", r"""(f b"\"\'\x00\\")"""),
    ("(get {'a 1} 'a)", 1),
    ("(defn len [x] 7) [(len '(a)) (len [1])]", [7, 7]),
    ("(pmap (fn [x] `(f ~x)) [1 2])", [{"$form": "(f 1)"}, {"$form": "(f 2)"}]),
    ("(len (get (pmap (fn [x] `(f ~x)) [1 2]) 0))", 2),
    ("(mapcar 'str [1 2])", ["1", "2"]),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
async def test_forms_work_as_values(sandbox: Sandbox, text: str, value: Any) -> None:
    assert await run(sandbox, text) == value


async def test_a_form_is_a_program_for_a_tool_and_data_for_one_that_takes_lists(sandbox: Sandbox) -> None:
    calls: list[CallForm] = []
    await run(sandbox, "(eval '(read-file \"a.txt\" [x])) (echo :text ['(a 1) 'b])", calls)
    code = calls[0].positional[0]
    assert isinstance(code, Code)
    assert (code, code.data) == ('(read-file "a.txt" [x])', ["read-file", "a.txt", ["x"]])
    assert calls[0].digest == from_model(read_one('(eval (read-file "a.txt" [x]))')).digest
    assert calls[1].args == {"text": [["a", 1], "b"]}


async def test_a_dictionary_of_a_tool_that_looks_like_a_form_stays_a_dictionary(sandbox: Sandbox) -> None:
    assert await run(sandbox, '(get (get (echo) 1) "$form")') == "(rm)"
    calls: list[CallForm] = []
    await run(sandbox, "(echo :text (get (echo) 1))", calls)
    assert calls[1].args == {"text": {"$form": "(rm)"}}


@pytest.mark.parametrize("text", ["#{'a}", "{'a 1}", "[{#('a 1) 2}]", "(pmap (fn [x] {'a x}) [1])"])
async def test_a_form_that_is_a_key_cannot_leave_the_program(sandbox: Sandbox, text: str) -> None:
    for whole in (text, f"(echo {text})", f"(echo :text {text})"):
        with pytest.raises(ProgramError, match="A form cannot leave the program in a set or as a key"):
            await run(sandbox, whole)


@pytest.mark.parametrize(
    "text",
    [
        '((type \'a) "x) (y")',
        "((type 'a) 5)",
        '((type \'(a)) "<" #(1))',
        '((type \'(a)) "(" 5)',
        '((type \'(a)) "(" #(((type \'a) "x y")))',
        "(do (setv f '(a)) (setv f.items #(f)) f)",
        "(do (setv f '(a)) (for [_ (range 60)] (setv f `(~f ~f))) f)",
        "(do (setv f '(a)) (for [_ (range 5000)] (setv f `(~f))) f)",
        '((type "__Form" #() {}))',
        '((type "__Sym" #() {"name" "a b"}))',
        "`(a ~(fn [] 1))",
        "`(a ~@5)",
    ],
)
async def test_what_cannot_be_written_as_a_form_does_not_leave(sandbox: Sandbox, text: str) -> None:
    with pytest.raises(Exception, match=r"form|program|value|data|iterable|nested"):
        await run(sandbox, text)
    with pytest.raises(Exception, match=r"form|program|value|data|iterable|nested"):
        await run(sandbox, f"(echo :text {text})" if text.startswith("(do") else f"(echo {text})")


ATOMS = st.one_of(
    st.sampled_from(["a", "b-c", "x.y", ":k", "+", "'q", "hy.R.os", "do-mac"]),
    st.integers(-1000, 1000).map(str),
    st.text('ab "\\\n{é', max_size=4).map(lambda text: show(hy.as_model(text))),
)
FORMS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"(g {' '.join(items)})"),
        st.lists(inner, max_size=4).map(lambda items: f"[{' '.join(items)}]"),
        st.lists(inner, max_size=3).map(lambda items: f"#({' '.join(items)})"),
    ),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FORMS, min_size=5, max_size=20))
def test_any_form_survives_quote_print_call_and_copy(texts: list[str]) -> None:
    import asyncio

    async def go() -> None:
        sandbox = Sandbox(SandboxLimits(seconds=20.0, calls=100))
        try:
            calls: list[CallForm] = []
            program = " ".join(f"(eval '(g {text})) (setv xs (+ xs ['(g {text})]))" for text in texts)
            told = await run(sandbox, f"(setv xs []) {program} [xs (lfor x xs (str x))]", calls)
            wanted = [show(read_one(f"(g {text})")) for text in texts]
            assert [call.positional[0] for call in calls] == wanted
            assert told[0] == [{"$form": text} for text in wanted] == json.loads(json.dumps(told[0]))
            assert [read_one(text) for text in told[1]] == [read_one(text) for text in wanted]
            for call in calls:
                assert from_model(read_one(str(call))).digest == call.digest
        finally:
            await sandbox.aclose()

    asyncio.run(go())


def test_a_copied_form_of_a_branch_is_marked_by_bytes_that_no_tool_returns() -> None:
    form = FormValue("(", (FormValue("'", ("a",)), 1))
    assert unpacked(json.loads(json.dumps(packed(form)))) == (b"form", "(", ((b"form", "'", ("a",)), 1))


QUASI = [
    "`(a ~(+ 1 1))", "`(a ~@[1 2] b)", "`[~(+ 1 2) x]", "`(a (b ~(+ 1 1) ~@[3]))", "`x", "`{k ~(+ 1 1)}",
    "`(a 'b ~'c)", "`(f :k ~(+ 1 1))", "`(a \"t\" ~(str 1))", "`(a ~@[])", "`(a `(b ~(c ~(+ 1 2))))",
]  # fmt: skip


@pytest.mark.parametrize("text", QUASI)
async def test_quasiquote_gives_what_hys_own_gives(sandbox: Sandbox, text: str) -> None:
    theirs = show(hy.as_model(hy.eval(hy.read(text), {})))
    assert await run(sandbox, text) == {"$form": theirs}


async def test_a_program_error_names_what_is_no_part_of_a_form(sandbox: Sandbox) -> None:
    with pytest.raises(ProgramError, match="cannot be part of a form"):
        await run(sandbox, "`(a ~(fn [] 1))")


async def test_a_form_in_a_call_that_waited_is_the_same_form_and_data_after_it(sandbox: Sandbox) -> None:
    program, calls = (
        compile_program("(setv f '(g 1 [x])) (echo :text f) (= f '(g 1 [x]))", ["echo"]),
        list[Any](),
    )

    async def waits(form: CallForm, name: str) -> Any:
        raise Pending("It waits.")

    async def answers(form: CallForm, name: str) -> Any:
        calls.append(form.args["text"])

    with pytest.raises(Pending) as caught:
        await sandbox.run(program, ["echo"], waits)
    state = json.loads(json.dumps(caught.value.state))
    assert (await sandbox.run(program, ["echo"], answers, state=state))[0] is True
    assert [(call, call.data) for call in calls] == [("(g 1 [x])", ["g", 1, ["x"]])]


@settings(max_examples=40, deadline=None)
@given(st.lists(FORMS, min_size=1, max_size=5))
def test_a_form_in_a_value_survives_the_record_and_a_receipt(texts: list[str]) -> None:
    value = [
        {"a": FormData(show(read_one(f"(g {text})"))), "b": text, "c": {"$form": "(rm)"}} for text in texts
    ]
    kinds = ["a", ":k", "{b 1}", "{b}", "(f {b})", "{[1] 2}", "#{b}", "[b]", 'f"{b}"', "'b", "`(b ~c)"]
    value += [{"a": FormData(text), "c": {"$form": text}} for text in kinds]
    for back in (
        form_data(to_value(forms_as_code(read_one(print_value(value))))),
        value_in(content_of(event_form("result", 1, "", "", 0, "", {"value": value}))),
        read_result(result_text({"value": value}))["value"],
    ):
        assert back == value
        assert [type(item["a"]) for item in back] == [FormData] * len(value)
        assert [type(item["c"]) for item in back] == [dict] * len(value)
    assert json.loads(json.dumps(value))[0]["a"] == {"$form": str(value[0]["a"])}
