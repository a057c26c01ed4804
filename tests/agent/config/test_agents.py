"""The user's own agents, ``agents/NAME.hy``: what a file may say, what it changes, how mistakes are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import page
from sentences import IS_GIVEN_TWICE, THERE_IS_NO_PROVIDER
from words import agent, complaint, files, quoth

from quoth.agent.config.agents import agent_names, faults_of_agents, load_agent
from quoth.agent.config.config import Config
from quoth.tools.errors import UsageError
from quoth.tools.storage.paths import agents_dir

READER = """
(instructions "You only read.")
(tools "read-*" "list-files")
(policy
  (deny (read-file :path "secret.txt") :why "it is secret")
  (ask (list-files)))
"""


def named(**texts: str) -> None:
    """The user's agents have these files."""
    files(agents_dir(), {f"{name}.hy": text for name, text in texts.items()})


def test_the_manual_shows_every_form() -> None:
    shown = re.search(r"#\+begin_src hy :name agent\n(.*?)#\+end_src", page("models"), re.DOTALL)
    assert shown
    named(reviewer=shown[1])
    found = load_agent("reviewer")
    assert (found.config.model, found.config.temperature) == ("anthropic:claude-sonnet-4-5", 0.2)
    assert found.config.instructions
    assert found.config.budget == {"cost": 0.5}
    assert [pattern for pattern, _ in found.patterns] == ["read-*", "list-files", "grep-search"]
    assert [rule.kind for rule in found.layer.orders.rules] == ["deny", "ask"]  # the first is of (tools …)


MISTAKES = [
    ('(modle "x")', "1:2: There is no setting of an agent modle. Did you mean model?"),
    ('(mcp ["/x"])', "1:2: There is no setting of an agent mcp."),
    ('(model "opnai:x")', f"1:8: {THERE_IS_NO_PROVIDER} opnai."),
    ('(tools "a")\n(tools "b")', f"2:1: (tools …) {IS_GIVEN_TWICE}."),
    ("(policy)\n(policy)", f"2:1: (policy …) {IS_GIVEN_TWICE}."),
    ("(tools)", "1:1: This agent has no tools."),
    ("(tools read)", "1:8: Expected a text in quotes, not read."),
    ('(tools "a" "Read file")', '1:12: Expected the name of a tool, or a pattern such as "read-*".'),
    ("(policy\n  (allow (shell)))", "2:3: The rules of an agent only deny and ask."),
    ("(policy (effects a--b :reads))", "1:9: An agent does not set effects."),
    ("(policy (dney (shell)))", "1:10: There is no rule dney. Did you mean deny?"),
    ('(policy (deny (shell :argv ["x" ...)))', "1:36:"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_told_with_its_place(text: str, said: str) -> None:
    named(bad=text)
    told = complaint(UsageError, lambda: load_agent("bad"))
    assert f"bad.hy:{said}" in told
    assert [*faults_of_agents()] == [told]


def test_an_unknown_agent_has_a_nearest_name_and_only_names_are_listed() -> None:
    with pytest.raises(UsageError, match=r"There is no agent reader\. Write .*/NAME.hy"):
        load_agent("reader")
    named(reader=READER, **{"Not-A-Name": "", "x_y": ""})
    (agents_dir() / "notes.txt").touch()
    assert agent_names() == ["reader"]
    for name in ("raeder", "../reader", "reader.hy", ""):
        with pytest.raises(UsageError, match="There is no agent"):
            load_agent(name)


def test_its_settings_replace_the_others_and_its_budget_only_tightens() -> None:
    named(tight='(model "work:b")\n(budget :cost 1 :steps 50)')
    config = Config(model="local", instructions="Hi.", budget={"cost": 2, "steps": 10}, notes=("x",))
    with pytest.raises(UsageError, match="There is no provider work"):
        load_agent("tight", config)
    named(tight='(model "local-small")\n(budget :cost 1 :steps 50)')
    found = load_agent("tight", config).config
    assert (found.model, found.instructions, found.notes) == ("local-small", "Hi.", ("x",))
    assert found.budget == {"cost": 1, "steps": 10}


def test_it_calls_only_its_tools_under_its_rules(tmp_path: Path) -> None:
    named(reader=READER)
    root = files(tmp_path / "shop", {"a.txt": "one\n", "secret.txt": "two\n"})
    with agent(root, agent="reader") as reader:
        shown = str(reader.belt())
        assert reader.call('(read-file :path "a.txt")').status == "ok"
        assert reader.call('(read-file :path "secret.txt")').status == "denied"
        assert reader.call("(list-files)").status == "pending"
        other = reader.call('(write-file :path "b.txt" :content "x")')
        assert other.status == "denied"
        assert 'reader.hy:3 says (tools "read-*" "list-files")' in other.message
        inner = reader.eval('(write-file :path "b.txt" :content "x")')
        assert inner.status != "ok"
    assert "read-file" in shown
    assert not (root / "b.txt").exists()


def test_the_command_takes_one_and_its_session_keeps_it(tmp_path: Path) -> None:
    replies = ['(write-file :path "b.txt" :content "x")', "Done."] * 2
    root = files(tmp_path / "shop", {"r.txt": "\n---\n".join(replies)})
    named(reader=f'(model "scripted:{root}/r.txt")\n{READER}', loose='(tools "read-flie")')
    assert quoth("run", "--agent", "raeder", "x", cwd=root).err.endswith("Did you mean reader?\n")
    done = quoth("run", "--agent", "reader", "--session", "s1", "Write.", cwd=root)
    assert (done.code, done.out) == (0, "Done.\n")
    assert "denied" in done.err
    again = quoth("resume", "s1", "Again.", cwd=root)
    assert "denied" in again.err, again
    assert not (root / "b.txt").exists()
    loose = quoth("call", "--agent", "loose", "(list-files)", cwd=root)
    assert "loose.hy:1: no tool matches read-flie. Did you mean read-file?" in loose.err
