"""What is approved is what runs: forms that cannot end their own arguments, versions of tools that cover what
they are made of, and rules that say what they leave open."""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from sentences import ALLOW_THAT_IN_THIS_SESSION, IT_WRITES_FILES
from words import complaint, desk, files, form, gateway, load, shipped, tool

from quoth.agent.terminal.requests import question_of
from quoth.tools.call.call import Call, new_call
from quoth.tools.call.canonical import bound_form
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.requests import Decision, request_digest
from quoth.tools.errors import DefinitionError, UsageError
from quoth.tools.lisp.forms import CallForm, canonical, from_json, from_model
from quoth.tools.lisp.printer import Code, print_value, show, to_value
from quoth.tools.lisp.reader import read_all, read_one
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.lint import check
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.policy.scope import covers, left_open, read_scope, suggested
from quoth.tools.registry.code_version import own_code
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
from quoth.tools.storage.database import Store

# Programs that stand as arguments

SMUGGLED = [
    ({"code": "(ls) :sandbox True"}, {"code": "(ls)", "sandbox": True}),
    ({"code": "(ls) (pwd)"}, {"code": "(ls)"}),
    ({"code": "(ls))  (wipe"}, {"code": "(ls)"}),
    ({"code": "(ls) ; :sandbox"}, {"code": "(ls)"}),
    ({"code": "(ls) ;"}, {"code": "(ls)"}),
    ({"code": ""}, {}),
    ({"code": "; nothing"}, {}),
    ({"code": ":sandbox True"}, {"code": "sandbox"}),
    ({"code": '"(ls)"'}, {"code": "(ls)"}),
    ({"code": "1"}, {"code": 1}),
    ({"code": "None"}, {"code": None}),
    ({"code": "[1 2]"}, {"code": [1, 2]}),
    ({"a b": 1}, {"a": 1}),
    ({"x 1 :y": 2}, {"x": 1, "y": 2}),
    ({"": 1}, {}),
]


def call_of(args: dict[str, Any]) -> CallForm:
    spelt = {
        name: Code(value) if name == "code" and isinstance(value, str) else value
        for name, value in args.items()
    }
    return CallForm("sh", spelt)


@pytest.mark.parametrize(("written", "meant"), SMUGGLED)
def test_no_argument_ends_itself(written: dict[str, Any], meant: dict[str, Any]) -> None:
    one, other = call_of(written), call_of(meant)
    assert one.digest != other.digest
    assert request_digest(one, "v", "s") != request_digest(other, "v", "s")
    assert canonical(one) != canonical(other) or [str(v) for v in one.args.values()] == [
        str(v) for v in other.args.values()
    ]


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("(ls)", "(sh :code (ls))"),
        ("(ls) :sandbox True", '(sh :code "(ls) :sandbox True")'),
        ("(ls) ; note", "(sh :code (ls) ; note\n)"),
        ('(echo ";")', '(sh :code (echo ";"))'),
        ("(ls", '(sh :code "(ls")'),
        ("(ls))", '(sh :code "(ls))")'),
        ("", '(sh :code "")'),
        ("(a)\n(b)", "(sh :code #[code[\n(a)\n(b)]code])"),
        ("(a)\n(b]code]", '(sh :code "(a)\\n(b]code]")'),
        ('"x"', '(sh :code "\\"x\\"")'),
        ("12", '(sh :code "12")'),
        ("(a)\r(b)", '(sh :code "(a)\\r(b)")'),
        ("#_ (a)", '(sh :code "#_ (a)")'),
        ("#(1 2)", '(sh :code "#(1 2)")'),
        ("name", "(sh :code name)"),
    ],
)
def test_a_program_is_printed_as_one_argument_that_reads_back(code: str, printed: str) -> None:
    assert canonical(CallForm("sh", {"code": Code(code)})) == printed
    back = from_model(read_one(printed))
    assert list(back.args) == ["code"]
    assert not back.positional
    assert same_program(back.args["code"], code)


def same_program(back: Any, code: str) -> bool:
    if back != code and isinstance(back, Code):
        return [show(one) for one in read_all(back)] == [show(one) for one in read_all(code)]
    return bool(back == code)


def test_a_form_whose_text_was_clear_keeps_its_digest() -> None:
    import hashlib

    for text in ('(write-file :content "a\\nb" :path "x")', "(eval :form (+ 1 2))", "(act :n 1.5 :on True)"):
        assert form(text).digest == hashlib.sha256(text.encode()).hexdigest()


# read(print(x)) == x

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.none() | st.booleans() | st.integers() | texts | st.sampled_from(["a b", "", ":k", "x :y 1", '"'])
programs = st.text(st.sampled_from("ab1 ():;\"'#[]{}\n\\`~^_.\t\r@é\u202e"), max_size=16)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.sampled_from([10**999 - 1, -(10**998)])
    | st.floats()
    | texts
    | programs.map(lambda text: Code(text)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def equal(back: Any, value: Any) -> bool:
    if isinstance(value, Code):
        return isinstance(back, str) and same_program(back, value)
    if type(back) is not type(value):
        return False
    if isinstance(value, list):
        return len(back) == len(value) and all(map(equal, back, value))
    if isinstance(value, dict):
        return (
            list(map(type, back)) == list(map(type, value))
            and back.keys() == value.keys()
            and all(equal(back[key], item) for key, item in value.items())
        )
    if isinstance(value, float):
        return (
            math.isnan(back)
            if math.isnan(value)
            else (back, math.copysign(1, back)) == (value, math.copysign(1, value))
        )
    return bool(back == value)


@given(values)
def test_what_is_printed_is_read_back(value: Any) -> None:
    assert equal(to_value(read_one(print_value(value))), value)


@given(st.dictionaries(st.sampled_from(["a", "b", "code"]), values, max_size=3), st.lists(values, max_size=2))
def test_a_call_that_is_printed_is_read_back(args: dict[str, Any], places: list[Any]) -> None:
    back = from_model(read_one(canonical(CallForm("act", args, tuple(places)))))
    assert back.tool == "act"
    assert equal(dict(back.args), args)
    assert equal(list(back.positional), places)


@given(st.dictionaries(texts, programs, max_size=2), st.dictionaries(texts, programs, max_size=2))
def test_calls_with_one_digest_are_one_call(one: dict[str, str], other: dict[str, str]) -> None:
    def digest(args: dict[str, str], kind: Callable[[str], Any]) -> str:
        return CallForm("act", {name: kind(text) for name, text in args.items()}).digest

    assert (digest(one, Code) == digest(other, Code)) is (one == other)
    assert digest(one, Code) != digest(one, str) or not one
    assert digest(one, Code) != digest(one, lambda text: [Code(text)]) or not one


@pytest.mark.parametrize("name", ["ls :a 1", "ls)", "", 'a"b', "a b"])
def test_a_name_that_is_none_is_shown_in_quotes_and_reads_back(name: str) -> None:
    asked = from_json({"tool": name, "args": {"x": 1}})
    assert str(asked).startswith(f"(:tool {print_value(name)} ")
    assert from_model(read_one(str(asked))) == asked


# Scopes

SEND = tool(
    "send-email",
    params={
        "recipients": {"type": list},
        "subject": {"default": ""},
        "bcc": {"type": list, "default": None},
        "attachments": {"type": list, "default": None},
    },
    effects=["net"],
)
SAVE = tool(
    "save",
    params={
        "path": {"type": WorkspacePath},
        "content": {},
        "mode": {"choices": ["new", "over"], "default": "new"},
        "executable": {"type": bool, "default": False},
        "key": {"default": "", "secret": True},
    },
    effects=["writes"],
)
START = tool(
    "start",
    params={"argv": {"type": list}, "stdin": {"default": ""}, "network": {"type": bool, "default": False}},
    effects=["runs"],
)

SCOPES = [  # the tool, the call, the rule that is offered, what it leaves open, what it covers and what not
    (
        SEND,
        '(send-email :recipients ["ann@here" "bob@here" "eve@here"])',
        '(allow (send-email :recipients ["ann@here" "bob@here" "eve@here"] :only))',
        "",
        ['(send-email :recipients ["ann@here" "bob@here" "eve@here"] :bcc nil)'],
        [
            '(send-email :recipients ["ann@here" "bob@here" "eve@here"] :bcc ["x@there"])',
            '(send-email :recipients ["ann@here" "bob@here" "eve@here"] :attachments [".env"])',
            '(send-email :recipients ["ann@here" "bob@here" "x@there"])',
            '(send-email :recipients ["ann@here" "bob@here" "eve@here"] :subject "x")',
        ],
    ),
    (
        SAVE,
        '(save :path "src/a.py" :content "x" :key "hunter2")',
        '(allow (save :content _ :key _ :path (under "src") :only))',
        "It leaves :content and :key open.",
        ['(save :path "src/b.py" :content "y" :mode "new" :executable False)'],
        [
            '(save :path "src/b.py" :content "y" :executable True)',
            '(save :path "src/b.py" :content "y" :mode "over")',
            '(save :path "b.py" :content "x")',
        ],
    ),
    (
        SAVE,
        '(save :path "src/a.py" :content "x" :mode "over" :executable True)',
        '(allow (save :content _ :executable True :mode "over" :path (under "src") :only))',
        "It leaves :content open.",
        [],
        ['(save :path "src/a.py" :content "x" :mode "new" :executable True)'],
    ),
    (
        START,
        '(start :argv ["git" "push" "origin"])',
        '(allow (start :argv ["git" "push" ...] :only))',
        "It leaves the rest of :argv open.",
        ['(start :argv ["git" "push" "-f"])'],
        ['(start :argv ["git" "push"] :stdin "x")', '(start :argv ["git" "pull"])'],
    ),
    (
        START,
        '(start :argv ["wget" "https://a.example" "-q"] :network True)',
        '(allow (start :argv ["wget" "https://a.example" "-q"] :network True :only))',
        "",
        [],
        ['(start :argv ["wget" "https://a.example" "--post-file=x" "https://b.example"] :network True)'],
    ),
]


@pytest.mark.parametrize(("of", "call", "rule", "leaves", "covered", "others"), SCOPES)
def test_a_scope_drops_no_argument_and_says_what_it_leaves_open(
    tmp_path: Path,
    of: CognitiveTool,
    call: str,
    rule: str,
    leaves: str,
    covered: list[str],
    others: list[str],
) -> None:
    assert suggested(of, bound_form(of, form(call), Workspace("."))) == rule
    assert left_open(rule) == leaves
    read = read_scope(rule, of)
    for text in [call, *covered, *others]:
        asked = Call("c", bound_form(of, form(text), Workspace(".")))
        assert covers(read, of, asked, Workspace(tmp_path)) is (text not in others), text


@pytest.mark.parametrize(
    ("rule", "leaves"),
    [
        ("(allow (save))", "It leaves every argument that it does not name open."),
        ("(allow (save :path _))", "It leaves :path and every argument that it does not name open."),
        ('(allow (save :path "x" :content _ :only))', "It leaves :content open."),
        ('(allow (save :path "x" :content "" :only))', ""),
    ],
)
def test_a_rule_of_ones_own_says_what_it_leaves_open_too(rule: str, leaves: str) -> None:
    assert left_open(rule) == leaves
    decision = Decision("scope", rule=rule, seconds=7200)
    assert question_of(decision) == "\n".join(
        filter(None, [rule, leaves, f"{ALLOW_THAT_IN_THIS_SESSION} 2 hours?"])
    )


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("(allow (save :only :path _))", ":only must be at the end of a call."),
        ("(allow (save :path :only))", ":path has no predicate; _ is any value."),
        ('(allow (save :path "x" :key "k" :only))', ":key is secret, and rules are readable; write :key _."),
    ],
)
def test_only_stands_at_the_end_and_is_no_way_to_a_secret(rule: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        read_scope(rule, SAVE)


def test_policy_check_knows_a_rule_that_can_hold_for_no_call() -> None:
    rules = [
        '(allow (save :path "x" :only))',
        '(allow (save :path "x" :content _ :only))',
        '(deny (_ :path "y" :only))',
    ]
    found = check(RulesPolicy([parse_layer("user", "\n".join(rules).encode(), "p.hy")]), ToolTable((SAVE,)))
    assert [(one.place.line, one.message) for one in found] == [
        (1, "Every call of save has :content; name it before :only, as in :content _.")
    ]


# What a version covers

IN_HY = """(require quoth [def-cognitive-tool])
{}
(def-cognitive-tool act "Act." :effects [:writes] :body {})
"""
IN_PYTHON = """from quoth.tools.registry.function import cognitive_tool
{}
@cognitive_tool(effects=["writes"])
def act() -> str:
    "Act."
    {}
"""
HY, PY = "(defn go [] 1)", "def go(): return 1\n"
MADE_OF = [  # the file of the tool, the other files, the one that is changed
    (IN_HY.format("(import bm-helper [go])", "(go)"), {"bm_helper.py": PY}, "bm_helper.py"),
    (IN_HY.format("(import bm-helper)", "(bm-helper.go)"), {"bm_helper.hy": HY}, "bm_helper.hy"),
    (IN_HY.format("", "(hy.I.bm-helper.go)"), {"bm_helper.py": PY}, "bm_helper.py"),
    (IN_HY.format("", "(do (import bm-helper) (bm-helper.go))"), {"bm_helper.py": PY}, "bm_helper.py"),
    (IN_HY.format("(import bm-pack [inner])", "(inner.go)"), {"bm_pack/inner.hy": HY}, "bm_pack/inner.hy"),
    (
        IN_HY.format("(import bm-pack.inner)", "1"),
        {"bm_pack/__init__.py": "", "bm_pack/inner.py": PY},
        "bm_pack/__init__.py",
    ),
    (IN_HY.format("(import bm-one)", "1"), {"bm_one.py": "import bm_two", "bm_two.hy": HY}, "bm_two.hy"),
    (
        IN_HY.format("(import bm-one)", "1"),
        {"bm_one.py": "from bm_two import go", "bm_two.py": PY},
        "bm_two.py",
    ),
    (
        IN_HY.format("(require bm-macros [twice])", "(twice 1)"),
        {"bm_macros.hy": "(defmacro twice [x] `(+ ~x ~x))"},
        "bm_macros.hy",
    ),
    (
        IN_HY.format('(import importlib) (importlib.import-module "bm_helper")', "1"),
        {"bm_helper.py": PY},
        "bm_helper.py",
    ),
    (IN_HY.format("(defn go [] 1)", "(go)"), {}, "tool"),
    (IN_PYTHON.format("from bm_helper import go", "return go()"), {"bm_helper.py": PY}, "bm_helper.py"),
    (IN_PYTHON.format("", "import bm_helper; return bm_helper.go()"), {"bm_helper.hy": HY}, "bm_helper.hy"),
    (IN_PYTHON.format("from bm_pack import inner", "return 1"), {"bm_pack/inner.py": PY}, "bm_pack/inner.py"),
    (
        IN_PYTHON.format("import bm_pack.one", "return 1"),
        {"bm_pack/__init__.py": "", "bm_pack/one.py": "from . import two", "bm_pack/two.py": PY},
        "bm_pack/two.py",
    ),
    (
        IN_PYTHON.format("import bm_pack.one", "return 1"),
        {"bm_pack/__init__.py": "", "bm_pack/one.py": "from .two import go", "bm_pack/two.py": PY},
        "bm_pack/two.py",
    ),
    (IN_PYTHON.format("def go(): return 1", "return go()"), {}, "tool"),
]


def loaded(folder: Path, file: str) -> CognitiveTool:
    """The tool as a new process has it."""
    for name in [name for name in sys.modules if name.startswith(("bm_", "quoth_user_"))]:
        del sys.modules[name]
    importlib.invalidate_caches()
    if file.endswith(".hy"):
        return load(folder / file, ToolTable()).get("act")
    with registering_in(ToolTable()) as table:
        importlib.import_module(file.removesuffix(".py"))
    return table.get("act")


@pytest.mark.parametrize(("text", "others", "changed"), MADE_OF)
def test_a_call_that_was_approved_does_not_run_another_helper(
    tmp_path: Path,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    others: dict[str, str],
    changed: str,
) -> None:
    file = "bm_tool.hy" if text.startswith("(") else "bm_tool.py"
    files(tmp_path, {file: text, "unrelated.py": "1", **others})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = loaded(tmp_path, file)
    here = desk(store, before)
    here.pass_through("(act)")
    here.decide("once")
    files(tmp_path, {"unrelated.py": "2"})
    assert loaded(tmp_path, file).version == before.version
    path = tmp_path / (file if changed == "tool" else changed)
    path.write_text(path.read_text().replace("1", "2") + "\n")
    now = desk(store, loaded(tmp_path, file))
    assert now.pass_through("(act)").status == "pending"
    assert now.waiting[0].reason == f"{IT_WRITES_FILES}; the tool has changed since it was approved"


def test_the_same_code_elsewhere_has_the_same_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = {"bm_tool.hy": IN_HY.format("(import bm-helper)", "1"), "bm_helper.py": PY}
    versions = set()
    for name in ("one", "two"):
        folder = files(tmp_path / name, dict(text))
        with monkeypatch.context() as patch:
            patch.syspath_prepend(folder)
            versions.add(loaded(folder, "bm_tool.hy").version)
    assert len(versions) == 1


def test_the_version_of_a_tool_that_ships_covers_its_file() -> None:
    importlib.import_module("quoth.tools.builtin")
    write = cognitive_tools.get("write-file")
    assert write.code == ""
    assert own_code(write.module)


# Links that move after a person has decided


def moved(home: Path, link: str, to: str) -> None:
    """``link`` is one now, and leads to ``to``."""
    place = home / link
    if place.exists() or place.is_symlink():
        place.rename(home / f"was {link}")
    place.symlink_to(to)


KEEP = tool("keep", lambda path, text: text, params={"path": {}, "text": {}}, effects=("writes",))
NOTE = tool(
    "note", lambda path, text: text, params={"path": {"type": WorkspacePath}, "text": {}}, effects=("writes",)
)


@pytest.mark.parametrize(
    ("call", "other", "link", "to"),
    [
        ('(note :path "src/a" :text "x")', '(note :path "src/b" :text "x")', "src", "secrets"),
        ('(note :path "src/a" :text "x")', '(note :path "secrets/key" :text "x")', "src", "."),
        ('(note :path "one.txt" :text "x")', '(note :path "one.txt" :text "y")', "one.txt", "two.txt"),
        ('(keep :path "src/a" :text "x")', '(keep :path "src/b" :text "x")', "src", "secrets"),
        ('(keep :path "link.txt" :text "x")', '(keep :path "link.txt" :text "y")', "link.txt", "two.txt"),
        ('(keep :path "one.txt" :text "x")', '(keep :path "one.txt" :text "y")', "one.txt", "/etc/hosts"),
    ],
)
def test_a_scope_is_about_places_and_a_link_that_moved_asks_again(
    store: Store, tmp_path: Path, call: str, other: str, link: str, to: str
) -> None:
    files(tmp_path, {"src/a": "", "secrets/key": "", "one.txt": "", "two.txt": ""})
    (tmp_path / "link.txt").symlink_to("one.txt")
    waits = desk(store, KEEP, NOTE, workspace=tmp_path)
    assert waits.pass_through(call).status == "pending"
    waits.decide("scope")
    assert waits.pass_through(call).ok, "the link that the person saw is fine"
    moved(tmp_path, link, to)
    assert waits.pass_through(other).status == "pending"


@pytest.mark.parametrize("text", ['"x"', '(read-file :path "one.txt")'])
def test_a_link_that_moved_is_in_no_approved_plan(store: Store, tmp_path: Path, text: str) -> None:
    importlib.import_module("quoth.tools.builtin")
    files(tmp_path, {"one.txt": "1", "two.txt": "2"})
    (tmp_path / "link.txt").symlink_to("one.txt")
    program = f'(do (keep :path "link.txt" :text {text}) 1)'
    for to, status in (("one.txt", "ok"), ("two.txt", "pending")):
        waits = desk(store, *cognitive_tools, KEEP, workspace=tmp_path)
        dry = new_call(form(f"(eval :form {program} :dry-run True)"), session=to)
        plan = waits.pass_through(dry.form, session=to).value
        waits.decide(request=waits.broker.ask_for_plan(dry, plan))
        moved(tmp_path, "link.txt", to)
        (tmp_path / "was link.txt").unlink()
        assert waits.pass_through(f"(eval :form {program})", session=to).status == status


@pytest.mark.parametrize("call", ["(list-files)", '(list-files :path "src/..")', '(list-files :path "./")'])
def test_only_these_arguments_means_a_path_that_is_left_out_too(tmp_path: Path, call: str) -> None:
    files(tmp_path, {"src/a": ""})
    for rules, status in (("(deny (list-files :only))", "denied"), ("(ask (list-files :only))", "pending")):
        policy = RulesPolicy([parse_layer("given", rules.encode(), "rules.hy")])
        assert shipped(tmp_path, policy=policy).pass_through(call).status == status
        assert shipped(tmp_path, policy=policy).pass_through('(list-files :path "src")').ok


def test_the_scope_for_a_call_without_its_path_covers_it(store: Store, tmp_path: Path) -> None:
    files(tmp_path, {"src/a": "", "else/b": ""})
    (tmp_path / "link").symlink_to("src")
    for default in ("src", "./src/", "link"):
        build = tool(
            "build", lambda: 1, params={"dir": {"type": WorkspacePath, "default": default}}, effects=("runs",)
        )
        waits = desk(store, build, workspace=tmp_path)
        assert waits.pass_through("(build)", session=default).status == "pending"
        waits.decide("scope")
        assert waits.pass_through("(build)", session=default).ok
        assert waits.pass_through('(build :dir "else")', session=default).status == "pending"
        waits.decide("deny")


class Job(BaseModel):
    path: WorkspacePath


@pytest.mark.parametrize("kind", [dict[WorkspacePath, str], list[dict[WorkspacePath, int]]])
def test_no_path_stands_where_no_rule_would_see_it(kind: Any) -> None:
    said = complaint(DefinitionError, lambda: tool("t", lambda f: f, params={"f": {"type": kind}}))
    assert said == (
        "t, parameter f: a path is a key of a dictionary here, where no rule sees it;"
        " use path, (get list path), or (get dict #(str path))."
    )


@pytest.mark.parametrize(
    ("kind", "value"), [(Job, '{"path" "%s"}'), (list[Job], '[{"path" "%s"}]'), (Job | None, '{"path" "%s"}')]
)
def test_a_path_in_a_field_of_a_class_is_judged(kind: Any, value: str, tmp_path: Path) -> None:
    gate = gateway(tool("t", lambda f: "ran", params={"f": {"type": kind}}), workspace=tmp_path)
    assert gate.pass_through(f"(t :f {value % '../x'})").status == "denied"
    assert gate.pass_through(f"(t :f {value % 'x'})").value == "ran"
