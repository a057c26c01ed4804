"""Law: a path parameter stays inside. Each value of a parameter that holds paths is checked at the guard
stage, whatever the tool's own guard says; ``:outside True`` asks instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from far_tools import FarTools
from sentences import IS_OUTSIDE_THE_WORKSPACE, IS_TRUE_OR_FALSE_NOT, ITS_GUARD_REFUSED_THESE_ARGUMENTS
from words import Spy, files, gateway, load, quoth, tool

from quoth.tools.call.call import ALLOW
from quoth.tools.errors import DefinitionError
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.function import cognitive_tool, tool_of
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.parameters import Outside
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.tool import entry_tool

PATH = WorkspacePath
ALL = RulesPolicy([parse_layer("given", b"(allow (any-tool))", "rules.hy")])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = files(tmp_path / "home", {"a.txt": "a", "sub/b.txt": "b"})
    files(tmp_path, {"out.txt": "out"})
    (home / "link.txt").symlink_to("../out.txt")
    (home / "away").symlink_to("..")
    return home


# Each type that holds paths, and how a path stands in an argument of it.
TYPES: dict[str, tuple[Any, str]] = {
    "path": (PATH, '"{}"'),
    "list": (list[PATH], '["a.txt" "{}"]'),
    "list of lists": (list[list[PATH]], '[["a.txt"] ["{}"]]'),
    "dictionary": (dict[str, PATH], '{{"x" "{}"}}'),
    "or None": (PATH | None, '"{}"'),
    "or a list": (PATH | list[PATH], '["{}"]'),
    "or a number": (int | PATH, '"{}"'),
    "list of either": (list[int | PATH], '[1 "{}"]'),
}
OUTSIDE = [
    "../out.txt",
    "{root}/out.txt",
    "sub/../../out.txt",
    "link.txt",
    "away/out.txt",
    "~/x",
    "/etc/passwd",
]
GUARDS = {"no guard": None, "True": lambda: True, "ALLOW": lambda: ALLOW}


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("kind", TYPES)
def test_no_value_of_a_path_parameter_leads_out(home: Path, kind: str, guard: str) -> None:
    hint, form = TYPES[kind]
    body = Spy("done")
    probe = tool("probe", body, guard=GUARDS[guard], params={"where": {"type": hint}}, effects=["writes"])
    here = gateway(probe, policy=ALL, workspace=home)
    for path in OUTSIDE:
        written = path.format(root=home.parent)
        result = here.pass_through(f"(probe :where {form.format(written)})")
        assert (result.status, result.message) == (
            "denied",
            f"probe was denied: {written} {IS_OUTSIDE_THE_WORKSPACE} {home}.",
        )
    assert body.calls == 0
    for path in ("a.txt", "sub/b.txt", "new/c.txt", f"{home}/a.txt"):
        assert here.pass_through(f"(probe :where {form.format(path)})").ok


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("default", ["../out.txt", "link.txt"])
def test_a_default_that_leads_out_is_refused_too(home: Path, default: str, hidden: bool) -> None:
    body = Spy("done")
    params = {"where": {"type": PATH, "default": default, "hidden": hidden}}
    here = gateway(tool("probe", body, params=params), policy=ALL, workspace=home)
    assert here.pass_through("(probe)").status == "denied"
    assert body.calls == 0
    assert here.pass_through('(probe :where "a.txt")').ok


def test_the_own_guard_still_decides(home: Path) -> None:
    no = tool("no", guard=lambda: False, params={"where": {"type": PATH}})
    said = gateway(no, policy=ALL, workspace=home).pass_through('(no :where "a.txt")')
    assert said.message == f"no was denied: {ITS_GUARD_REFUSED_THESE_ARGUMENTS}."


def test_a_secret_path_is_not_told(home: Path) -> None:
    probe = tool("probe", params={"where": {"type": PATH, "secret": True}})
    said = gateway(probe, policy=ALL, workspace=home).pass_through('(probe :where "../hidden-name")')
    assert said.message == "probe was denied: :where leads outside the workspace."


OUT = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool probe "Look anywhere."
  :parameters [where {:type path  :outside True}]
  :effects    [:reads]
  :body       (str where))
"""


def test_a_parameter_that_may_lead_outside_asks(home: Path) -> None:
    (probe,) = load(files(home, {"t.hy": OUT}) / "t.hy")
    here = gateway(probe, policy=ALL, workspace=home)
    said = here.pass_through('(probe :where "../out.txt")')
    assert said.status == "pending"
    assert f"../out.txt {IS_OUTSIDE_THE_WORKSPACE}" in said.message
    assert here.pass_through('(probe :where "a.txt")').ok


def test_python_says_so_by_an_annotation(home: Path) -> None:
    with registering_in(ToolTable()):

        @cognitive_tool
        def probe(where: Annotated[WorkspacePath, Outside("Any file")], other: WorkspacePath) -> str:
            """Look anywhere."""
            return str(where)

    where, other = tool_of(probe).params
    assert (where.outside, where.doc, other.outside) == (True, "Any file", False)
    here = gateway(tool_of(probe), policy=ALL, workspace=home)
    assert here.pass_through('(probe "../out.txt" ".")').status == "pending"


def test_outside_is_for_paths_and_is_true_or_false() -> None:
    for spec, said in (
        ({"type": str, "outside": True}, ":outside is for a parameter of paths, and this is str."),
        ({"type": PATH, "outside": 1}, f":outside {IS_TRUE_OR_FALSE_NOT} 1."),
    ):
        with pytest.raises(DefinitionError) as error:
            tool("probe", params={"where": spec})
        assert str(error.value) == f"probe, parameter where: {said}"


def test_an_entry_tells_of_it_and_older_entries_are_as_they_were() -> None:
    probe = tool("probe", params={"a": {"type": PATH, "outside": True}, "b": {"type": PATH}})
    a, b = json.loads(json.dumps(probe.entry))["params"]
    assert (a["outside"], "outside" in b) == (True, False)
    assert [param.outside for param in entry_tool(probe.entry, lambda: None).params] == [True, False]


def test_what_a_dry_run_says_of_it(home: Path) -> None:
    (home / "t.hy").write_text(OUT.replace("  :outside True", ""))
    program = '(do (probe :where "a.txt") (probe :where "../out.txt"))'
    said = quoth("eval", program, "--dry-run", "--tools", "t.hy", cwd=home)
    assert f"../out.txt {IS_OUTSIDE_THE_WORKSPACE} {home}" in said.out
    assert f"a.txt {IS_OUTSIDE_THE_WORKSPACE} {home}" not in said.out


def test_paths_of_a_remote_tool_are_checked_where_the_worker_is(redis: str, home: Path) -> None:
    """Outside of the caller's workspace, and inside of the worker's; then the other way round."""
    far = FarTools(redis, tool("probe", lambda where: "done", params={"where": {"type": PATH}}))
    probe = entry_tool(far.table.get("probe").entry, lambda: "done", remote="far")
    assert gateway(probe, policy=ALL, workspace=home).pass_through('(probe :where "/srv/x.txt")').ok
    said = gateway(far.table.get("probe"), policy=ALL, workspace=home).pass_through(
        '(probe :where "/srv/x.txt")'
    )
    assert said.message == f"probe was denied: /srv/x.txt {IS_OUTSIDE_THE_WORKSPACE} {home}."


# What cannot be seen

TEXTS = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool one "One." :parameters [out-file {:type str}] :effects [:reads]
  :examples [(one :out-file "x")] :body out-file)
(def-cognitive-tool two "Two." :parameters [which {:type str}  many {:type (get list str)  :default []}]
  :effects [:reads] :examples [(two :which "stock.txt")] :body which)
(def-cognitive-tool three "Three." :parameters [which {:type str}  path {:type path  :default "."}]
  :effects [:reads] :examples [(three :which "pears" :path "stock.txt")] :body which)
"""
SAID = (
    ":out-file of one is a text, so nothing keeps it inside the workspace. If it names a file, give it"
    " :type path (in Python: WorkspacePath).\n"
    ":which of two is a text, so nothing keeps it inside the workspace. If it names a file, give it"
    " :type path (in Python: WorkspacePath).\n"
)


@pytest.mark.parametrize("words", [("tools", "test", "t.hy"), ("policy", "check", "--tools", "t.hy")])
def test_a_text_that_names_a_file_is_told(home: Path, words: tuple[str, ...]) -> None:
    files(home, {"t.hy": TEXTS, "stock.txt": ""})
    said = quoth(*words, cwd=home)
    assert (said.code, said.err) == (0, "".join(f"quoth: {line}\n" for line in SAID.splitlines()))


def test_a_new_tool_says_which_type_is_seen(home: Path) -> None:
    quoth("new", "tool", "look", cwd=home)
    assert "Use path, not str, for a file or folder" in (home / "look.hy").read_text()
