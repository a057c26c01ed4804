"""The user's ``config.hy``, and a workspace's own: what they say, what counts, and how mistakes are told."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pages import page
from sentences import (
    DID_YOU_MEAN_OPENAI,
    HAS_CHANGED_SINCE_IT_WAS,
    HAS_NO_VALUE,
    IS_GIVEN_TWICE,
    IS_NOT_A_REGULAR_FILE,
    IS_NOT_UTF_8_TEXT,
    READ_IT_THEN_RUN,
    RESTORE_IT_OR_RUN,
    THERE_IS_NO_DIALECT,
    THERE_IS_NO_PROVIDER,
    THIS_STRING_IS_NEVER_CLOSED,
    WAS_TRUSTED_AND_IS_GONE,
)
from words import async_agent, complaint, files

from quoth import RunLimits
from quoth.agent.config.config import NO_CONFIG, Config, DailyBudget
from quoth.agent.config.loading import OWN_NAME, TRUST, load_config, own_config, user_config
from quoth.agent.config.reading import read_config
from quoth.neuro.backends.providers import PROVIDERS
from quoth.tools.errors import UsageError


def mine(text: str) -> Path:
    """The user's settings are this text."""
    path = user_config()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def owned(root: Path, text: str) -> Path:
    """A workspace's own settings are this text, and trusted."""
    path = files(root, {OWN_NAME: text}) / OWN_NAME
    data = own_config(root)
    assert data is not None
    TRUST.trust(root, data)
    return path


# What it says


def test_the_manual_shows_every_setting() -> None:
    shown = re.search(r"#\+begin_src hy :name config\n(.*?)#\+end_src", page("models"), re.DOTALL)
    assert shown
    config = read_config(shown[1], "config.hy")
    assert config.model == "cascade:work:gpt-5-mini,local"
    assert (config.dialect, config.temperature, config.timeout) == ("native", 0.2, 300)
    assert (config.instructions, config.reply_tokens) == ("Answer in one sentence.", 2000)
    assert config.budget == {"cost": 0.5, "tokens": 200_000, "seconds": 600, "steps": 40, "calls": 100}
    assert config.daily == (DailyBudget(requests=500, cost=5.0),)
    work = config.providers["work"]
    assert (work.name, work.example, work.url) == ("work", "work:gpt-5-mini", "https://models.example.org/v1")
    assert (work.key, work.needs_key, work.price) == ("WORK_API_KEY", True, "openai")


@pytest.mark.parametrize(
    ("said", "key", "needs_key", "price"),
    [
        ('"x" :like "openai" :key "TEAM_KEY"', "TEAM_KEY", True, "openai"),
        ('"x" :like "openai" :url "http://h/v1"', "", False, "openai"),
        ('"x" :like "openai"', "OPENAI_API_KEY", True, "openai"),
        ('"x" :like "ollama" :url "http://h/v1"', "", False, ""),
        ('"x" :like "llamacpp" :url "http://h/v1" :key "K"', "K", True, ""),
    ],
)
def test_a_provider_is_as_another(said: str, key: str, needs_key: bool, price: str | None) -> None:
    found = read_config(f"(provider {said})", "config.hy").providers["x"]
    assert (found.key, found.needs_key, found.price) == (key, needs_key, price)
    assert found.options == PROVIDERS[found.help.removeprefix("as ").partition(",")[0]].options


MISTAKES = [
    ('(modle "x")', "1:2: There is no setting modle. Did you mean model?"),
    ("(key)", "1:2: There is no setting key. The choices are model, dialect, instructions, "
     "temperature, timeout, max-reply-tokens, mcp, mcp-sampling, gate-command, review, after, budget, "
     "provider, shell."),
    ("model", '1:1: model is not a setting. Example: (model "openai:gpt-5-mini")'),
    ('("model" "x")', '1:2: There is no setting "model". The choices are'),
    ("(model x)", "1:8: Expected a text in quotes, not x."),
    ('(model (+ "a" "b"))', '1:8: Expected a text in quotes, not (+ "a" "b").'),
    ('(model "opnai:x")', f"1:8: {THERE_IS_NO_PROVIDER} opnai. {DID_YOU_MEAN_OPENAI}?"),
    ('(model "cascade:wrk:x,local")\n(provider "work" :like "openai")',
     f"1:8: {THERE_IS_NO_PROVIDER} wrk. Did you mean work?"),
    ('(model "a" "b")', "1:1: (model …) takes one value."),
    ('(model "local")\n(model "b")', f"2:1: (model …) {IS_GIVEN_TWICE}."),
    ('(temperature "hot")', '1:14: Expected a number from 0 to 2, not "hot".'),
    ("(temperature -1)", "1:14: Expected a number from 0 to 2, not -1."),
    ("(temperature 5)", "1:14: Expected a number from 0 to 2, not 5."),
    ("(timeout 0)", "1:10: Expected a number of seconds above 0, not 0."),
    ('(dialect "nativ")', f"1:10: {THERE_IS_NO_DIALECT} nativ; the dialects are"),
    ("(dialect native)", "1:10: Expected a text in quotes, not native."),
    ("(max-reply-tokens 1.5)", "1:19: Expected a whole number, 1 or more, not 1.5."),
    ("(budget)", "1:1: This budget has no limit. Use :steps, :calls, :tokens, :cost, :seconds."),
    ("(budget 5)", "1:9: Expected a keyword before 5, one of :steps, :calls, :tokens, :cost, :seconds."),
    ("(budget :token 15)", "1:9: (budget …) does not accept :token. Did you mean :tokens?"),
    ("(budget :cost)", f"1:9: :cost {HAS_NO_VALUE}."),
    ("(budget :cost :steps 1)", f"1:9: :cost {HAS_NO_VALUE}."),
    ("(budget :cost 1 :cost 2)", f"1:17: :cost {IS_GIVEN_TWICE}."),
    ("(budget :cost 1)\n(budget :steps 2)", f"2:1: (budget …) {IS_GIVEN_TWICE}."),
    ('(budget :per "week" :cost 1)', '1:14: A budget is :per "day"; without :per it limits each run.'),
    ('(budget :per "day" :user "ann")', "1:1: This budget has no limit. Use :requests, :tokens, :cost."),
    ('(budget :user "ann" :cost 1)', '1:1: The budget of a user is per day. Add :per "day".'),
    ('(budget :per "day" :steps 1)', "1:20: (budget …) does not accept :steps."),
    ("(provider)", "1:1: A provider needs a name: (provider"),
    ('(provider "Work" :like "openai")', "1:11: The name of a provider consists of a-z, 0-9 and -."),
    ('(provider "openai" :like "groq")', "1:11: The provider openai already exists."),
    ('(provider "work")', '1:1: Say which API the server has: :like "openai" or'),
    ('(provider "work" :like "opnai")', "1:24: There is no API opnai. Did you mean openai?"),
    ('(provider "work" :like "local")', "1:24: There is no API local. The choices are"),
    ('(provider "work" :like "openai" :url "h:1")', "1:38: Expected an address such as https://models.example.org/v1."),
    ("(review)", '1:1: This needs a model, as in (review "local"'),
    ('(review "opnai:x")', f"1:9: {THERE_IS_NO_PROVIDER} opnai. {DID_YOU_MEAN_OPENAI}?"),
    ('(review "local" :may-allow "writes")', "1:17: Name the effects that the reviewer may allow, as in"),
    ('(review "local" :may-allow (effects :write))', "1:37: (effects …) does not accept :write."),
    ('(gate-command "x")', '1:15: A gate is a program with its arguments: ["/home/ann/gate.py"'),
    ('(gate-command ["./x"])', "1:16: Give the program's full path, or the name of a program on PATH."),
    ('(after "*.py")', '1:1: An example of a program to run after a write: (after "*.py" ["ruff"'),
    ('(after "*.py" "ruff")', '1:15: An example of a program to run after a write: (after "*.py" ["ruff"'),
    ('(after "*.py" ["x" fil])', "1:20: Expected a text in quotes, not fil."),
    ('(after "*.py" [file])', "1:16: Expected a text in quotes, not file."),
    ('(after "*.py" ["x"] :confined 1)', "1:31: Expected True or False, not 1."),
    ('(after "*.py" ["x"] :confind True)', "1:21: (after …) does not accept :confind."
     " Did you mean :confined?"),
    ('(shell :redable [])', "1:8: (shell …) does not accept :redable. Did you mean :readable?"),
    ('(shell :readable "~/.m2")', '1:18: Expected a list of texts, such as ["~/.m2"], not "~/.m2".'),
    ('(shell :writable ["~/.m2" "x"])', '1:27: A path here begins with / or ~/, unlike "x".'),
    ('(shell :variables ["A=b"])', "1:20: Give the name of a variable, such as JAVA_HOME, without a value."),
    ('(shell :memory 0)', "1:16: Expected a number of gigabytes above 0, not 0."),
    ('(model "x', f'1:8: {THIS_STRING_IS_NEVER_CLOSED}; add ") at the end'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_a_mistake_is_pointed_at(text: str, sentence: str) -> None:
    told = complaint(UsageError, lambda: read_config(text, "config.hy"))
    place, _, _ = sentence.partition(": ")
    assert told.startswith(f"config.hy:{sentence}")
    line, column = map(int, place.split(":"))
    assert told.split("\n")[1:] == [f"  {text.splitlines()[line - 1]}", f"  {' ' * (column - 1)}^"]


@pytest.mark.parametrize(
    "text",
    [
        '(provider "w" :like "openai" :url "https://ann:sec-ret@h/v1" :kee "X")',
        '(provider "w" :like "openai" :url "ann:sec-ret@h/v1")',
        '(provider "w" :like "openai" :url "https://h/v1?token=sec-ret" :kee "X")',
        '(provider "w" :like "openai" :url "https://ann:sec-ret@h/v1',
        '(provider "w" :like "openai" :key "sec-ret")',
        '(provider "w" :like "openai" :key "sk-proj-sec-ret0123456789ab")',
        '(key "sk-proj-sec-ret0123456789ab")',
        "(model sk-proj-sec-ret0123456789ab)",
        "(model sk-sec-ret)",
        '(api-key "sec-ret")',
    ],
)
def test_no_complaint_shows_a_secret(text: str) -> None:
    assert "sec-ret" not in complaint(UsageError, lambda: read_config(text, "config.hy"))


def test_what_programs_may_see_is_named_by_the_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    said = '(shell :readable ["~/.m2" "/opt/x"] :variables ["JAVA_HOME"] :memory 0.5 :processes 9)'
    assert read_config(said, "config.hy").shell == {
        "readable": (Path("/home/ann/.m2"), Path("/opt/x")),
        "variables": ("JAVA_HOME",),
        "memory": 1 << 29,
        "processes": 9,
    }
    told = complaint(UsageError, lambda: read_config(said, ".quoth/config.hy", own=False))
    assert "A workspace may not open other parts of this machine to programs." in told


def test_a_long_word_is_read_at_once_and_told_short() -> None:
    said = complaint(UsageError, lambda: read_config(f"(model {'a-' * 400_000})", "config.hy"))
    assert len(said) < 1_000


# What counts


def test_without_a_file_nothing_is_configured(tmp_path: Path) -> None:
    assert load_config(tmp_path) is NO_CONFIG


def test_a_workspace_counts_once_it_is_trusted(tmp_path: Path) -> None:
    mine('(model "groq:x")\n(temperature 0.5)\n(provider "work" :like "openai")')
    files(tmp_path, {OWN_NAME: '(model "local")'})
    config = load_config(tmp_path)
    assert (config.model, config.temperature, [*config.providers]) == ("groq:x", 0.5, ["work"])
    assert config.notes == (
        f"{tmp_path / OWN_NAME} is not trusted, so its settings do not apply; read it, then run: quoth trust",
    )
    owned(tmp_path, '(model "local")')
    config = load_config(tmp_path)
    assert (config.model, config.temperature, [*config.providers]) == ("local", 0.5, ["work"])
    assert config.notes == ()


def test_a_workspace_only_tightens_the_budgets(tmp_path: Path) -> None:
    mine('(budget :cost 1 :steps 10)\n(budget :per "day" :cost 5)')
    owned(tmp_path, '(budget :cost 2 :steps 3 :tokens 100)\n(budget :per "day" :requests 9)')
    config = load_config(tmp_path)
    assert config.budget == {"cost": 1, "steps": 3, "tokens": 100}
    assert config.daily == (DailyBudget(cost=5.0), DailyBudget(requests=9))


@pytest.mark.parametrize(
    "text",
    [
        '(provider "work" :like "openai" :url "https://h/v1")',
        '(gate-command ["true"])',
        '(review "local")',
        '(after "*.py" ["evil" file])',
        '(model "scripted:evil.hy")',
        '(model "local:/tmp/evil.gguf")',
        '(model "cascade:openai:gpt-5-mini,scripted:evil.hy")',
    ],
)
def test_a_workspace_names_no_provider_and_no_file(tmp_path: Path, text: str) -> None:
    files(tmp_path, {OWN_NAME: text})
    assert "A workspace may" in complaint(UsageError, lambda: own_config(tmp_path))
    TRUST.trust(tmp_path, text.encode())
    assert "A workspace may" in complaint(UsageError, lambda: load_config(tmp_path))


def test_settings_that_change_after_they_were_trusted_stop_everything(tmp_path: Path) -> None:
    own = owned(tmp_path, '(model "local")')
    own.write_text('(model "groq:x")')
    assert complaint(UsageError, lambda: load_config(tmp_path)) == (
        f"{own} {HAS_CHANGED_SINCE_IT_WAS}; {READ_IT_THEN_RUN}: quoth trust"
    )
    own.unlink()
    assert complaint(UsageError, lambda: load_config(tmp_path)) == (
        f"{own} {WAS_TRUSTED_AND_IS_GONE}; {RESTORE_IT_OR_RUN}: quoth trust"
    )


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    mine("").write_bytes(b'\xef\xbb\xbf(model "scripted:x")')
    assert load_config(tmp_path).model == "scripted:x"


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    path = mine("")
    path.write_bytes(b'(model "\xff")')
    assert complaint(UsageError, lambda: load_config(tmp_path)).endswith(f"config.hy {IS_NOT_UTF_8_TEXT}.")
    path.unlink()
    path.mkdir()
    assert complaint(UsageError, lambda: load_config(tmp_path)) == f"{path} {IS_NOT_A_REGULAR_FILE}."
    path.rmdir()
    os.mkfifo(path)
    assert complaint(UsageError, lambda: load_config(tmp_path)) == f"{path} {IS_NOT_A_REGULAR_FILE}."


async def test_an_agent_has_the_limits_that_are_configured_where_none_are_given(tmp_path: Path) -> None:
    mine("(budget :cost 1.5 :steps 7)\n(max-reply-tokens 99)")
    async with async_agent(tmp_path, "Hi.") as plain:
        assert (plain.limits.cost, plain.limits.steps, plain.limits.reply_tokens) == (1.5, 7, 99)
    limits = RunLimits(steps=3, cost=0.1)
    async with async_agent(tmp_path, "Hi.", limits=limits) as given:
        assert (given.limits.cost, given.limits.steps, given.limits.reply_tokens) == (0.1, 3, 99)


def test_no_tool_reads_the_settings_or_the_keys(tmp_path: Path) -> None:
    from quoth import Agent
    from quoth.tools.storage.paths import keys_path

    path = mine("")
    keys_path().write_text("OPENAI_API_KEY=sec-ret\n")
    with Agent(workspace=path.parent.parent, model="local", consent="yes") as agent:
        for file in (path, keys_path()):
            result = agent.call(f'(read-file :path "{file.relative_to(path.parent.parent)}")')
            assert not result.ok
            assert "sec-ret" not in str(result)
        (tmp_path / "notes").symlink_to(keys_path())
        said = complaint(UsageError, lambda: agent.run("Look.", files=[tmp_path / "notes"]))
        assert said == f"{tmp_path / 'notes'} is a secret of quoth, which no model may see."


def test_what_is_configured_shows_no_address() -> None:
    config = read_config('(provider "w" :like "openai" :url "https://ann:sec-ret@h/v1")', "config.hy")
    assert "sec-ret" not in repr(config)
    assert config != Config()
