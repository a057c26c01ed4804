"""A path is a path: however it is spelt, rules, requests, receipts and bodies mean the same file by it.

One row a finding. What is denied is told so in one sentence, and nothing is touched.
"""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sentences import A_PATH_CANNOT_CONTAIN_A, IS_OUTSIDE_THE_WORKSPACE
from words import Gateway, agent, complaint, desk, files, form, lines, load, shipped, tool

from quoth.agent.cli.main import main
from quoth.tools.call.call import new_call
from quoth.tools.call.canonical import checked
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import ToolError
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.lint import check
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.function import cognitive_tool, tool_of
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
from quoth.tools.storage.database import Store

SECRET = "the key is under the mat"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace with a file that is nobody's business, and links to it."""
    import_module("quoth.tools.builtin")
    home = tmp_path / "home"
    files(home, {"setup.py": SECRET, "src/a.py": "a = 1\n", ".env": SECRET, "secrets/key.txt": SECRET})
    files(home, {"~/x.txt": SECRET, "secrets/deep/er.txt": SECRET, "Ünï.txt": SECRET, "open.txt": "plain\n"})
    (home / "alias.py").symlink_to("setup.py")
    (home / "back").symlink_to(".")
    (home / "drawer").symlink_to("secrets")
    return home


def policy(*rules: str) -> RulesPolicy:
    return RulesPolicy([parse_layer("given", lines(rules).encode(), "rules.hy")])


def ruled(home: Path, *rules: str, more: tuple[CognitiveTool, ...] = (), **parts: Any) -> Gateway:
    """The tools that ship, under these rules; what no rule denies is allowed."""
    allowed = "(allow (write-file)) (allow (edit-file))"
    return shipped(home, *more, policy=policy(allowed, *rules), **parts)


def state(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()}


# One file, many spellings

SPELLINGS = {
    "as it is": "setup.py",
    "dot": "./setup.py",
    "dots": "././/./setup.py",
    "up and down": "x/../setup.py",
    "up and down of a real folder": "src/../setup.py",
    "slash at the end": "setup.py/",
    "dot at the end": "setup.py/.",
    "link": "alias.py",
    "link of a folder": "back/setup.py",
    "links of links": "back/back/alias.py",
    "out and in again": "../home/setup.py",
    "absolute": "{home}/setup.py",
    "absolute, untidy": "{home}//src/..//setup.py",
    "two slashes": "/{home}/setup.py",
}
RULES = {
    "literal": '(deny (_ :path "setup.py"))',
    "literal, untidy": '(deny (_ :path "./src/../setup.py"))',
    "literal of a link": '(deny (_ :path "alias.py"))',
    "absolute literal": '(deny (_ :path "{home}/setup.py"))',
    "one of": '(deny (_ :path (one-of "x" "setup.py")))',
    "equal": '(deny (_ :path (= "setup.py")))',
    "not others": '(deny (_ :path (not (or "open.txt" (under "src")))))',
    "pattern": r'(deny (_ :path (matches "^setup\\.py$")))',
    "ending": r'(deny (_ :path (matches "\\.py$")))',
    "under": '(deny (_ :path (under "setup.py")))',
    "any tool": '(deny (any-tool :path "setup.py"))',
}
CALLS = {
    "read-file": '(read-file :path "{path}")',
    "write-file": '(write-file :path "{path}" :content "x")',
    "edit-file": '(edit-file :path "{path}" :old "the" :new "a")',
    "grep-search": '(grep-search :pattern "key" :path "{path}")',
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_about_a_file_holds_however_the_file_is_spelt(home: Path, rule: str) -> None:
    before = state(home)
    for of_tool, call in CALLS.items():
        written = RULES[rule].replace("{home}", str(home))
        gateway = ruled(home, written if "any-tool" in rule else written.replace("(_ ", f"({of_tool} "))
        for spelling in SPELLINGS.values():
            result = gateway.pass_through(call.format(path=spelling.format(home=home)))
            assert result.status == "denied", (of_tool, spelling, result)
            assert "rules.hy:2 says (deny" in result.message
    assert state(home) == before


def test_a_call_that_is_allowed_is_shown_judged_and_made_in_one_spelling(home: Path) -> None:
    for spelling in SPELLINGS.values():
        path = spelling.format(home=home)
        gateway = ruled(home, '(ask _) (deny (_ :path (not "setup.py")))')
        gateway.door.consent = yes = Remembers()
        result = gateway.pass_through(f'(read-file :path "{path}")')
        assert result.value == SECRET
        assert [str(one) for one in yes.asked] == ['(read-file :path "setup.py")']
        row = gateway.rows[-1]
        assert row["form"] == '(read-file :path "setup.py")'
        assert row["digest"] == form('(read-file :path "setup.py")').digest
        assert row["repairs"] == ("" if path == "setup.py" else f':path was written "{path}"')


class Remembers:
    """A person who says yes, and knows to what."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def request(self, tool: Any, call: Any, reason: str) -> Any:
        from quoth.tools.call.call import ALLOW

        self.asked.append(call.form)
        return ALLOW

    def begins(self, *_: Any) -> None: ...
    def waits(self, *_: Any) -> None: ...


parts = st.sampled_from(
    [".", "", "src/..", "back", "x/..", "src/../back/.", "drawer/..", "secrets/deep/../.."]
)


@st.composite
def spelt(draw: st.DrawFn, place: str) -> str:
    """Some spelling of a place in the workspace."""
    ways = {"setup.py": ["setup.py", "alias.py"], "secrets/key.txt": ["secrets/key.txt", "drawer/key.txt"]}
    lead = draw(st.sampled_from(["", "./", ".//", "{home}/", "{home}/./", "/{home}//", "../home/"]))
    inside = "/".join(draw(st.lists(parts, max_size=4)))
    last = draw(st.sampled_from(ways.get(place, [place])))
    end = draw(st.sampled_from(["", "/", "/.", "//", "/./"]))
    rest = f"{inside}{'/' if inside else ''}{last}{end}"
    return lead + (rest if lead else rest.lstrip("/"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), place=st.sampled_from(["setup.py", ".env", "secrets/key.txt", "~/x.txt", "Ünï.txt"]))
def test_whatever_the_spelling_a_rule_about_the_file_holds(home: Path, data: Any, place: str) -> None:
    path = data.draw(spelt(place)).replace("{home}", str(home))
    if path.startswith("~"):
        path = f"./{path}"
    literal = f"./{place}" if place.startswith("~") else place
    call = form(f'(read-file :path "{path}")')
    reader = cognitive_tools.get("read-file")
    bound, args = checked(reader, call, Workspace(home))
    context = ToolContext(Workspace(home))
    for rule in (f'(deny (any-tool :path "{literal}"))', f'(deny (read-file :path (under "{literal}")))'):
        assert policy(rule).judge(reader, new_call(bound), args, context).kind == "deny", (rule, path)
    other = policy('(deny (any-tool :path "open.txt"))')
    assert other.judge(reader, new_call(bound), args, context).kind == "allow"
    assert str(bound) == str(form(f'(read-file :path "{literal}")'))


@given(text=st.text(max_size=12))
@example("~/x")
@example("a\0b")
@example("x" * 300)
def test_the_one_spelling_is_the_spelling_of_itself(text: str) -> None:
    here = Workspace("/usr/share")
    try:
        once = here.canonical(text)
    except ToolError:
        return
    again = here.canonical(str(once))
    assert (str(again), again.written) == (str(once), str(once))
    assert here.locate(once) == here.locate(text)


def test_a_hard_link_to_what_a_rule_names_cannot_be_decided(home: Path) -> None:
    (home / "twin.py").hardlink_to(home / "setup.py")
    assert ruled(home, '(deny (_ :path "setup.py"))').pass_through('(read-file "twin.py")').status == "denied"
    gateway = ruled(home, '(ask _) (allow (read-file :path "setup.py"))')
    assert gateway.pass_through('(read-file "twin.py")').status == "pending"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/etc/passwd", f"{{call}} was denied: /etc/passwd {IS_OUTSIDE_THE_WORKSPACE} {{home}}."),
        ("../x", f"{{call}} was denied: ../x {IS_OUTSIDE_THE_WORKSPACE} {{home}}."),
        ("round", "{call}: :path: round cannot be resolved: symlink loop"),
        ("x" * 300, "{call}: :path: " + "x" * 300 + " cannot be resolved: file name too long."),
        ("a\\0b", f"{{call}}: :path: {A_PATH_CANNOT_CONTAIN_A}."),
    ],
)
def test_what_is_no_path_of_the_workspace_is_told_as_it_was_written(home: Path, path: str, said: str) -> None:
    (home / "round").symlink_to("round")
    for name, call in CALLS.items():
        result = ruled(home).pass_through(call.format(path=path))
        assert result.message.startswith(said.format(call=name, home=home))


def test_a_folder_named_as_a_file_to_write_is_told(home: Path) -> None:
    result = ruled(home).pass_through('(write-file :path "docs/" :content "x")')
    assert result.message == "docs/ names a folder; name a file in it."
    assert not (home / "docs").exists()


# Lists of paths, other names, other ways to declare them

HY_TOOLS = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool pack "Pack files."
  :parameters [inputs {:type (get list path)}  into {:type (| path None)  :default None}
               by-name {:type (get dict #(str path))  :default {}}]
  :body       [inputs into by-name])
(def-cognitive-tool look "Look at a file that is a link perhaps."
  :parameters [book {:type path  :default "alias.py"}]
  :effects    [:writes]
  :body       (with [file (.open-read ctx.workspace book)] (.read file)))
"""


def test_paths_are_paths_in_lists_too_and_by_any_name(home: Path) -> None:
    table = load(files(home.parent, {"t.hy": HY_TOOLS}) / "t.hy")

    def said(rule: str, call: str) -> str:
        return ruled(home, rule, more=tuple(table)).pass_through(call).status

    rules = ['(deny (any-tool :path (under "secrets")))', '(deny (pack :inputs (any (under "./secrets/"))))']
    rules += ['(deny (pack :inputs ["src/a.py" "secrets/key.txt" ...]))']
    for rule in rules:
        assert said(rule, '(pack ["./src/a.py" "drawer/key.txt"])') == "denied"
        assert said(rule, '(pack ["./src/a.py"])') == "ok"
    assert said(rules[0], '(pack [] :into "back/secrets/new")') == "denied"
    assert said(rules[0], '(pack [] :by-name {"a" "drawer"})') == "denied"
    assert (
        said('(ask _) (allow (any-tool :path (under "src")))', '(pack ["src/a.py" "open.txt"])') == "pending"
    )
    result = ruled(home, more=tuple(table)).pass_through('(pack ["./src//a.py" "alias.py"] :into "drawer/x")')
    assert result.value == [["src/a.py", "setup.py"], "secrets/x", {}]


def test_a_tool_in_python_says_so_by_its_annotations(home: Path) -> None:
    with registering_in(ToolTable()):

        @cognitive_tool(effects=["reads"])
        def size(of: WorkspacePath, ctx: ToolContext) -> int:
            """How long a file is."""
            with ctx.workspace.open_read(of) as file:
                return len(file.read())

    tool = tool_of(size)
    assert tool.signature() == "(size :of path)"
    assert tool.schema["properties"] == {"of": {"type": "string"}}
    assert ruled(home, more=(tool,)).pass_through('(size "alias.py")').value == len(SECRET)
    rule = '(deny (any-tool :path "setup.py"))'
    assert ruled(home, rule, more=(tool,)).pass_through('(size "alias.py")').status == "denied"


# Tools that walk

WALKS = {
    "of the search": '(deny (grep-search :path (under "secrets")))',
    "of the search, a pattern": r'(deny (grep-search :path (matches "^secrets/")))',
    "of reading": '(deny (read-file :path (under "secrets")))',
    "of reading, by a link": '(deny (read-file :path (under "drawer")))',
    "of reading, asked": '(ask (read-file :path (under "secrets")))',
    "of any tool": '(deny (any-tool :path (under "secrets")))',
    "of any tool, asked": '(ask (any-tool :path (under "secrets")))',
    "of all reading": '(deny (effects :reads) (_ :path (under "secrets")))',
    "undecided": r'(deny (read-file :path (and (matches "^secrets/") (> 3))))',
}


@pytest.mark.parametrize("rule", WALKS)
@pytest.mark.parametrize("start", [".", "back", "{home}"])
def test_a_search_does_not_read_what_a_rule_denies_to_read(home: Path, rule: str, start: str) -> None:
    call = f'(grep-search :pattern "key|plain" :path "{start.format(home=home)}")'
    result = ruled(home, WALKS[rule]).pass_through(call)
    assert "secrets" not in {hit["path"].partition("/")[0] for hit in result.value}
    assert "open.txt" in {hit["path"] for hit in result.value}
    assert result.message == "Skipped 2 files: the rules forbid reading."


def test_a_search_of_one_file_does_not_read_it_either(home: Path) -> None:
    result = ruled(home, '(deny (read-file :path "setup.py"))').pass_through(
        '(grep-search :pattern "key" :path "alias.py")'
    )
    assert (result.value, result.message) == ([], "Skipped 1 file: the rules forbid reading.")


def test_what_is_near_names_no_file_that_could_not_be_listed_and_read_and_no_hidden_one(home: Path) -> None:
    calls = ('(read-file :path "src/key.txt")', '(grep-search :pattern "under the MAT" :path "src")')
    for denied in ("", "list-files", "read-file"):
        rule = denied and f'(deny ({denied} :path (under "secrets")))'
        for call in calls:
            message = ruled(home, rule).pass_through(call).message or ""
            assert ("secrets" in message, ".env" in message) == (not rule, False), (rule, message)


def test_what_a_person_allowed_of_the_walk_is_not_asked_of_each_file(home: Path) -> None:
    for rule in ("(ask (grep-search))", "(ask _)", '(ask (any-tool :path (not (under "src"))))'):
        gateway = ruled(home, rule, consent=Remembers())
        found = gateway.pass_through('(grep-search :pattern "key")')
        assert len(found.value) >= 4, rule
        assert found.message == ""


def test_a_listing_leaves_out_what_no_tool_may_touch_and_names_what_is_only_not_to_be_read(
    home: Path,
) -> None:
    listed = ruled(home, '(deny (any-tool :path (under "secrets")))').pass_through("(list-files)")
    assert not [name for name in listed.value if name.startswith("secrets")]
    assert listed.message == "Skipped 2 files: the rules forbid listing."
    listed = ruled(home, '(deny (read-file :path (under "secrets")))').pass_through("(list-files)")
    assert "secrets/key.txt" in listed.value


def test_a_rule_about_reading_holds_where_the_tool_that_reads_is_not_given(home: Path) -> None:
    gateway = ruled(home, '(deny (read-file :path (under "secrets")))')
    gateway.door = gateway.door.narrowed(ToolTable([cognitive_tools.get("grep-search")]))
    assert {hit["path"] for hit in gateway.pass_through('(grep-search "key")').value}.isdisjoint(
        {"secrets/key.txt"}
    )


def test_a_walk_of_many_files_costs_little_more_with_rules(tmp_path: Path) -> None:
    files(tmp_path, {f"d{n % 20}/f{n}.txt": "x\n" for n in range(400)})
    rules = [f'(deny (read-file :path (under "no{n}")))' for n in range(20)]
    rules += [f'(deny (any-tool :path "no{n}.txt"))' for n in range(20)]

    def seconds(*rules: str) -> float:
        gateway = ruled(tmp_path, *rules)
        began = time.process_time()
        assert gateway.pass_through('(grep-search "x" :limit 500)').ok
        return time.process_time() - began

    seconds()
    assert seconds(*rules) < seconds() + 3


def test_thinking_does_not_read_a_script_that_a_rule_denies(home: Path) -> None:
    files(home, {"secrets/model.txt": SECRET})
    call = '(think :prompt "Say it." :model "scripted:./secrets/model.txt")'
    for rule in ('(deny (read-file :path (under "secrets")))', '(deny (any-tool :path (under "secrets")))'):
        with agent(home, policy=files(home.parent, {"p.hy": rule}) / "p.hy", consent="yes") as made:
            result = made.call(call)
            assert (result.status, result.message) == (
                "denied",
                "think was denied: ./secrets/model.txt cannot be used as a model: the rules forbid"
                " reading it.",
            )
    with agent(home, consent="yes") as made:
        assert made.call(call).value == SECRET


# What is approved is what runs


def asked(home: Path, store: Store, call: str, *more: CognitiveTool) -> Any:
    made = desk(store, *cognitive_tools, *more, workspace=home, policy=policy("(ask _)"))
    assert made.pass_through(call, session="s").status == "pending"
    return made


def move(link: Path, to: str) -> None:
    link.unlink()
    link.symlink_to(to)


LOOK = '(def-cognitive-tool old "An old one." :parameters [path {:type str}] :effects [:writes] :body path)'


@pytest.mark.parametrize(
    ("call", "touches"),
    [
        ('(write-file :path "alias.py" :content "new")', "setup.py"),
        ('(write-file :path "drawer/key.txt" :content "new")', "secrets/key.txt"),
        ("(look)", "setup.py"),
        ('(look "alias.py")', "setup.py"),
        ('(old "alias.py")', "setup.py"),
        ('(old "drawer/key.txt")', "secrets/key.txt"),
    ],
)
def test_a_link_that_moved_after_the_approval_asks_again(
    home: Path, store: Store, call: str, touches: str
) -> None:
    table = load(files(home.parent, {"t.hy": HY_TOOLS + LOOK}) / "t.hy")
    made = asked(home, store, call, *table)
    (request,) = made.waiting
    assert request.touches == (touches,)
    made.decide("once")
    move(home / "alias.py", "open.txt")
    move(home / "drawer", "src")
    before = state(home)
    assert made.pass_through(call, session="s").status == "pending"
    assert state(home) == before
    move(home / "alias.py", "setup.py")
    move(home / "drawer", "secrets")
    assert made.pass_through(call, session="s").ok


def test_a_link_put_in_place_while_a_person_is_asked_is_not_followed(home: Path) -> None:
    class Slow(Remembers):
        async def request(self, *args: Any) -> Any:
            (home / "src").rename(home / "src.old")
            (home / "src").symlink_to("secrets")
            return await super().request(*args)

    files(home, {"src/key.txt": "mine"})
    before = (home / "secrets/key.txt").read_bytes()
    gateway = shipped(home, consent=Slow())
    result = gateway.pass_through('(write-file :path "src/key.txt" :content "new")')
    assert (result.status, result.message) == (
        "error",
        "write-file was not run: src/key.txt now leads to secrets/key.txt, which was not judged; repeat"
        " the call.",
    )
    assert (home / "secrets/key.txt").read_bytes() == before


def test_a_link_put_in_place_while_a_body_runs_is_not_followed(home: Path) -> None:
    workspace = Workspace(home)
    path = workspace.canonical("src/a.py")
    (home / "src/a.py").unlink()
    (home / "src/a.py").symlink_to("../setup.py")
    sentence = "src/a.py now leads to setup.py, which was not judged; repeat the call."
    assert complaint(ToolError, lambda: workspace.open_read(path)) == sentence
    assert complaint(ToolError, lambda: workspace.write(path, b"x")) == sentence
    assert complaint(ToolError, lambda: list(workspace.walk(path))) == sentence
    assert (home / "setup.py").read_text() == SECRET


def test_a_request_says_how_the_path_was_written(home: Path, store: Store) -> None:
    (request,) = asked(home, store, '(write-file :path "./x/../alias.py" :content "")').waiting
    assert request.form == '(write-file :path "setup.py" :content "")'
    assert request.touches == ("setup.py",)
    assert ':path was written "./x/../alias.py"' in request.reason


def test_the_plan_of_a_program_names_the_place_and_covers_no_other(home: Path) -> None:
    with agent(home, session="s") as made:
        program = '(write-file :path "alias.py" :content "new")'
        plan = made.eval(program, dry_run=True).value
        assert '(write-file :path "setup.py" :content "new")' in plan["text"]
        request = made.ask_for_plan(program, plan)
        made.broker.decide(request, Decision("once"))
        move(home / "alias.py", "open.txt")
        assert made.eval(program).status == "pending"
    assert (home / "open.txt").read_text() == "plain\n"


# What policy check and explain say

CHECKED = [
    (r'(deny (read-file :path (matches "^\\./secrets")))', "This pattern matches no path"),
    (r'(deny (read-file :path (matches "^/home/ann/")))', "This pattern matches no path"),
    (r'(deny (read-file :path (matches "secrets/$")))', "This pattern matches no path"),
    (r'(deny (any-tool :path (matches "\\.\\./")))', "This pattern matches no path"),
    ('(deny (read-file :path "/etc/passwd"))', "/etc/passwd is outside the workspace"),
    ('(deny (read-file :path (not (under "../x"))))', "../x is outside the workspace"),
    ('(deny (any-tool :path (under "~/.ssh")))', "~/.ssh is outside the workspace"),
    ('(deny (old :path "a.txt"))', ":path of old is a text, so another spelling"),
    (r'(deny (old :path (matches "a")))', ":path of old is a text, so another spelling"),
    ('(deny (read-file :limit (under "a")))', ":limit of read-file is of type int; it is never a path."),
    ('(deny (read-file :path (under "secrets")))', ""),
    ('(deny (any-tool :path (one-of "a" "b/c")))', ""),
    (r'(deny (read-file :path (matches "(^|/)\\.env$")))', ""),
    ('(deny (old :path (under "a")))', ""),
    ('(deny (write-file :content (matches "^/")))', ""),
]


@pytest.mark.parametrize(("rule", "said"), CHECKED)
def test_policy_check_says_what_cannot_hold(home: Path, rule: str, said: str) -> None:
    old = tool("old", params={"path": {}})
    found = check(policy(rule), ToolTable([*cognitive_tools, old]), Workspace(home))
    assert [one.message.startswith(said) for one in found] == ([True] if said else []), found


def test_policy_explain_shows_the_spelling_that_is_judged(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files(home, {"rules.hy": '(deny (read-file :path "setup.py"))'})
    monkeypatch.chdir(home)
    assert main(["policy", "explain", '(read-file "./src/../alias.py")', "--policy", "rules.hy"]) == 0
    assert capsys.readouterr().out.startswith(
        'The rules see (read-file :path "setup.py"), because :path was written "./src/../alias.py".\n'
        'deny: rules.hy:1 says (deny (read-file :path "setup.py")).\n'
    )


# A search ends in time

SLOW = {
    "one long line": ("a" * 4_000_000, "[a-z]+[0-9]"),
    "one long line that repeats": ("a" * 4_000_000, "a.*a.*b"),
    "many lines": ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" * 20_000 + "b", "(a|aa)+$b"),
}


@pytest.mark.parametrize("kind", SLOW)
def test_a_search_looks_at_its_deadline_within_a_file_and_a_line(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quoth.tools.builtin.prefilter as prefilter
    import quoth.tools.builtin.search as search

    text, pattern = SLOW[kind]
    monkeypatch.setattr(prefilter, "SECONDS", 0.1)
    files(tmp_path, {"big.txt": text})
    monkeypatch.setattr(search, "SECONDS", 0.3)
    result = ruled(tmp_path).pass_through(f'(grep-search "{pattern}")')  # to its end it would take hours
    assert result.status == "error"
    assert result.message.startswith("The search took longer than 0.3 s")


def test_a_search_that_finds_nothing_to_open_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quoth.tools.builtin.search as search

    files(tmp_path, {"a.txt": ""})
    monkeypatch.setattr(search, "SECONDS", -1)
    result = ruled(tmp_path).pass_through('(grep-search "a" :glob "*.zzz")')
    assert result.message.startswith("The search took longer")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("needle", "x" * 250_000 + "needle" + "y" * 250_000, True),
        ("needle", "x" * 99_997 + "needle" + "y" * 10, True),
        ("^needle", "needle" + "y" * 250_000, True),
        ("x$", "x" * 250_000 + "y", False),
        ("x$", "y" * 250_000 + "x", True),
        ("n.*", "n" + "y" * 250_000, True),
        ("n.*z", "n" + "y" * 150_000 + "nz", True),
        ("q", "x" * 250_000, False),
    ],
)
def test_a_long_line_is_searched_to_its_end(tmp_path: Path, pattern: str, text: str, found: bool) -> None:
    files(tmp_path, {"a.txt": text})
    assert bool(ruled(tmp_path).pass_through(f'(grep-search "{pattern}")').value) is found
