"""``quoth belt`` shows what the chosen model is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from words import files, quoth

from quoth.neuro.prompt.belt import HEADS


@pytest.mark.parametrize(
    ("words", "view", "dialect"),
    [
        (["--dialect", "plist"], "plist", "plist"),
        (["--dialect", "native"], "openai", "native"),
        (["--belt", "search"], "bare", "call-form"),
        (["--belt", "full"], "lisp", "call-form"),
        (["--model", "local"], "lisp", "call-form"),
        (["--model", "openai:gpt-5-mini"], "openai", "native"),
        (["--model", "openai-responses:gpt-5-mini"], "responses", "native"),
        (["--model", "anthropic:claude-haiku-5-5"], "anthropic", "native"),
        (["--model", "anthropic:claude-haiku-5-5", "--dialect", "json"], "json", "json"),
        (["--model", "openai:gpt-5-mini", "--belt", "search"], "bare", "run"),
        (["--model", "local", "--dialect", "native"], "lisp", "call-form"),  # it takes no native tools
        (["--model", "cascade:anthropic:claude-haiku-5-5,local"], "lisp", "call-form"),
    ],
)
def test_the_model_the_dialect_and_the_belt_choose_the_view(
    tmp_path: Path, words: list[str], view: str, dialect: str
) -> None:
    said = quoth("belt", *words, "--json", cwd=tmp_path)
    shown = json.loads(said.out)
    assert (shown["view"], shown["dialect"]) == (view, dialect)
    plain = quoth("belt", *words, cwd=tmp_path).out
    assert plain == (
        f"{shown['belt']}"
        if view in HEADS
        else f"{json.dumps(shown['belt'], indent=2, ensure_ascii=False)}\n"
    )
    assert ("search-tools" in shown["tools"]) == (view == "bare")


def test_the_settings_of_config_count_where_one_is_named(tmp_path: Path, state: Path) -> None:
    files(state / "config", {"config.hy": '(model "anthropic:claude-haiku-5-5")'})
    assert json.loads(quoth("belt", "--belt", "full", "--json", cwd=tmp_path).out)["view"] == "anthropic"
    assert json.loads(quoth("belt", "--json", cwd=tmp_path).out)["view"] == "lisp"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--view", "lisp", "--dialect", "json"], "Give either --view, or --model, --dialect and --belt, "),
        (
            ["--dialect", "json", "--belt", "search"],
            "--belt search needs the dialect call-form",
        ),
        (["--dialect", "plst"], "There is no dialect plst; "),
        (["--model", "nope:x"], "There is no "),
    ],
)
def test_what_does_not_go_together_is_said(tmp_path: Path, words: list[str], said: str) -> None:
    told = quoth("belt", *words, cwd=tmp_path)
    assert told.code == 2
    assert told.err.startswith(f"quoth: {said}")
