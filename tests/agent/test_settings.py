"""Each setting goes once around: flag, an agent's options, the opening of a session, resume and replay. A row
without a sample fails."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from words import files

from quoth.agent.cli.common import settings_of
from quoth.agent.cli.main import parser
from quoth.agent.cli.options import Options, parsed, take_over
from quoth.agent.manual.pages import pages
from quoth.agent.replay.again import Opening, rebuilt_agent
from quoth.agent.run import options as groups
from quoth.agent.run.channels import HostServices
from quoth.agent.run.limits import RunLimits
from quoth.agent.settings import FLAGS, HOLDERS, ROWS, CommandSettings
from quoth.tools.catalog.payload import new_key
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import agents_dir

# What is typed for each, {here} being a folder with these files; another setting may be needed beside it.
SAMPLES: dict[str, list[str]] = {
    "model": ["--model", "scripted:{here}/r.txt"],
    "agent": ["--agent", "reviewer"],
    "dialect": ["--dialect", "plist"],
    "after_tags": ["--after-tags", "stop"],
    "base_url": ["--base-url", "http://127.0.0.1:9/v1"],
    "instructions": ["--instructions", "@{here}/r.txt"],
    "temperature": ["--temperature", "0"],
    "timeout": ["--timeout", "7"],
    "api_key": ["--api-key", "@{here}/key"],
    "reply_tokens": ["--max-reply-tokens", "70"],
    "workspace": ["--workspace", "{here}"],
    "tools": ["--tools", "{here}/t.py"],
    "mcp": ["--mcp", "{here}/servers.json"],
    "mcp_sampling": ["--mcp-sampling"],
    "belt": ["--belt", "search"],
    "without": ["--without", "recall"],
    "remote": ["--remote", "redis://127.0.0.1:9", "--local", "echo"],
    "local": ["--local", "echo", "--remote", "redis://127.0.0.1:9"],
    "prefix": ["--prefix", "shop", "--shared", "redis://127.0.0.1:9", "--key", "{here}/key"],
    "key": ["--key", "{here}/key", "--shared", "redis://127.0.0.1:9"],
    "redis_ca": ["--redis-ca", "{here}/r.txt", "--shared", "rediss://127.0.0.1:9", "--key", "{here}/key"],
    "shared": ["--shared", "redis://127.0.0.1:9", "--key", "{here}/key"],
    "sources": ["--source", "notes={here}/r.txt"],
    "channels": ["--channel", "ops={here}/ops.jsonl"],
    "knowledge": ["--knowledge"],
    "search": ["--search", "{here}"],
    "search_keys": [
        "--search-keys",
        "results=a,title=b,url=c",
        "--search",
        "http://127.0.0.1:9/?q={{query}}",
    ],
    "policy": ["--policy", "{here}/p.hy"],
    "gate": ["--gate", "{here}/g.hy"],
    "gate_command": ["--gate-command", "true"],
    "review": ["--review", "local :may-allow :writes"],
    "boundary": ["--boundary", "none"],
    "memory": ["--memory", "postgresql://127.0.0.1:9/x"],
    "user": ["--user", "ann"],
    "session": ["--session", "monday"],
    "trace": ["--trace", "{here}/trace.jsonl"],
    "trace_content": ["--trace-content"],
    "json": ["--json"],
    "yes": ["--yes"],
    "no_input": ["--no-input"],
    "debug": ["--debug"],
    "steps": ["--max-steps", "3"],
    "calls": ["--max-calls", "4"],
    "tokens": ["--max-tokens", "500"],
    "cost": ["--max-cost", "0.5"],
    "seconds": ["--max-seconds", "9"],
    "repeats": ["--max-repeats", "5"],
    "context": ["--max-context", "6000"],
    "window": ["--repeat-window", "0"],
    "plan_mode": ["--plan"],
    "worktree": ["--worktree"],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files(
        tmp_path,
        {
            "r.txt": "Hi.",
            "t.py": 'import quoth\n\n@quoth.cognitive_tool\ndef t() -> int:\n    """One."""\n    return 1\n',
            "p.hy": "; None.\n",
            "servers.json": '{"mcpServers": {}}',
            "g.hy": '"None."\n(defn :async check [tool call ctx] True)\n',
        },
    )
    files(agents_dir(), {"reviewer.hy": '(tools "read-*")\n'})
    new_key(tmp_path / "key")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ROWS)
def test_a_setting_goes_once_around(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[name]
    words = [word.format(here=here) for word in SAMPLES[name]]
    _, typed = parsed(parser(["run"]), ["run", "Hi.", *words])
    assert vars(typed)[name] != vars(Options())[name]
    settings, unsaid = settings_of(typed), settings_of(Options())
    part, _, keyword = row.to.partition(".")
    if part:
        assert vars(getattr(settings, part))[keyword] != vars(getattr(unsaid, part))[keyword]
    opening = settings.opening()
    kept = opening["limits"] if row.kept == "limits" else opening
    key = keyword if row.kept == "limits" else row.kept
    assert (key in kept) == bool(row.kept)
    if not row.kept:
        del opening["limits"]
        assert str(vars(typed)[name]) not in str(opening)
        return
    if opening.get("search") == "":  # an address may be secret, and is given again
        monkeypatch.setenv("QUOTH_SEARCH", words[3])
    store = Store(":memory:")
    Transcript(lambda: store).add("s", "session", {"user": "ann", **opening})
    resumed = settings_of(take_over(Options(), store, "s", "ann")).opening()
    assert resumed == opening
    assert opening[row.kept] != unsaid.opening().get(row.kept)
    if row.replayed and part:
        agent = rebuilt_agent(Opening(opening), [], workspace=here, session="s", live=True)
        assert agent.given()[row.kept] == opening[row.kept]
        other = rebuilt_agent(Opening({}), [], workspace=here, session="s", live=True, chosen=vars(typed))
        assert other.given()[row.kept] == opening[row.kept]


def test_what_is_typed_counts_more_than_what_a_session_keeps(here: Path) -> None:
    store = Store(":memory:")
    Transcript(lambda: store).add(
        "s", "session", {"user": "ann", "temperature": 0.5, "timeout": 7, "plan": True}
    )
    taken = take_over(Options(temperature=0.0, plan_mode=False), store, "s", "ann")
    assert (taken.temperature, taken.timeout, taken.plan_mode) == (0.0, 7, False)


def test_a_row_names_a_field_of_an_agents_options_and_stands_in_the_manual() -> None:
    holders = {"services": HostServices, "limits": RunLimits} | {
        part: getattr(groups, HOLDERS[part]) for part in ("model", "tools", "policy")
    }
    page = pages()["settings"].text
    for name, row in ROWS.items():
        part, _, keyword = row.to.partition(".")
        assert not part or keyword in {one.name for one in fields(holders[part])}, name
        assert f"- ={FLAGS[name]}" in page


def test_no_group_has_more_than_twenty_settings() -> None:
    shown = [row.group for row in ROWS.values()]
    assert max(map(shown.count, shown)) <= 20
    assert [one.name for one in fields(CommandSettings)] == list(SAMPLES)
