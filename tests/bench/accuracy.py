"""One call for one question of BFCL, by a real model, in each dialect: how many are right, what they cost.

Prints an Org table; not a test. The model is shown the functions of the case and one worked example, and
answers once, bound to the grammar of the dialect where there is one. A call is right when its tool and every
argument are among the accepted ones.

QUOTH_BFCL=… python tests/bench/accuracy.py [local|local-small|any --model spec] [--dialect D …] [--every N]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bfcl import PARTS, Scored, scored

from neuro.backends.base import Backend, Messages, ModelError
from neuro.backends.choose import choose_backend
from neuro.dialects import DIALECTS, RUN_TEXT, Dialect
from tools.errors import InvalidCallError
from tools.form import CallForm, Code, from_model
from tools.schema import bind, validate
from tools.sexp import ReadError, read_one
from tools.table import ToolTable

SPOKEN: dict[str, Dialect] = {**DIALECTS, "run": RUN_TEXT}
DEFAULT = ("call-form", "plist", "json", "tags", "run")
RULES = """\
Answer the question with one call and nothing else. Give every argument the question names; leave out what it
does not say.

EXAMPLE:
Question: What is the weather in Oslo tomorrow, in celsius?
{example}
"""
EXAMPLE = CallForm("weather-forecast", {"city": "Oslo", "day": "tomorrow", "unit": "celsius"})


@dataclass
class Score:
    """What became of the questions of one part."""

    asked: int = 0
    right: int = 0
    unreadable: int = 0
    tokens: int = 0
    prompt: int = 0
    seconds: list[float] = field(default_factory=list)


async def answer(case: Scored, dialect: Dialect, backend: Backend) -> tuple[CallForm | None, Any]:
    """The call the model makes, or None, and what it cost."""
    table = ToolTable(case.tools)
    example = dialect.spell(EXAMPLE, ToolTable())
    messages = Messages()
    messages.append("system", dialect.opening(with_eval(table, dialect), rules=RULES.format(example=example)))
    messages.append("user", f"Question: {case.question}")
    completion = await backend.complete(
        messages,
        grammar=dialect.grammar(table, may_answer=False) if backend.takes_grammar else None,
        max_tokens=300,
    )
    reading = dialect.read(completion, table)
    form = reading.calls[0].form if reading.calls else None
    return (inner(form) if form is not None and dialect is RUN_TEXT else form), completion.usage


def with_eval(table: ToolTable, dialect: Dialect) -> ToolTable:
    """The dialect ``run`` is one of programs, which need the tool that runs them."""
    if dialect is not RUN_TEXT:
        return table
    import_module("tools.builtin")
    from tools.table import cognitive_tools

    return ToolTable((*table.tools(), cognitive_tools.get("eval")))


def inner(form: CallForm) -> CallForm | None:
    """The one call that a program is."""
    program = form.args.get("form")
    try:
        return from_model(read_one(program)) if isinstance(program, Code) else None
    except (ReadError, InvalidCallError):
        return None


def is_right(form: CallForm | None, case: Scored) -> bool:
    """Whether the call is an accepted one, after the strict validation every call gets."""
    table = ToolTable(case.tools)
    if form is None or form.tool not in table:
        return False
    tool = table.get(form.tool)
    try:
        bound = bind(tool.name, tool.params, form.args, form.positional)
        validate(tool.name, tool.params, tool.model, bound)
    except InvalidCallError:
        return False
    return case.accepts(tool.name, bound)


async def bench(model: str, dialects: list[str], every: int) -> None:
    backend = choose_backend(model)
    chosen = {part: scored(part)[::every] for part in PARTS}
    print(
        f"| {model} | "
        + " | ".join(f"{part} right" for part in PARTS)
        + " | unreadable | tokens out | in | s |"
    )
    print("|---" + "+---" * (len(PARTS) + 4) + "|")
    try:
        for name in dialects:
            scores = {part: Score() for part in PARTS}
            for part, questions in chosen.items():
                for case in questions:
                    await ask(case, SPOKEN[name], backend, scores[part])
            print(row(name, list(scores.values())), flush=True)
    finally:
        await backend.aclose()


async def ask(case: Scored, dialect: Dialect, backend: Backend, score: Score) -> None:
    started = time.monotonic()
    try:
        form, usage = await answer(case, dialect, backend)
    except ModelError as error:
        print(f"{case.id}: {error}", flush=True)
        form, usage = None, None
    score.asked += 1
    score.unreadable += form is None
    score.right += is_right(form, case)
    score.seconds.append(time.monotonic() - started)
    if usage is not None:
        score.tokens += usage.output_tokens
        score.prompt += usage.input_tokens


def row(name: str, scores: list[Score]) -> str:
    asked = sum(score.asked for score in scores)
    rights = " | ".join(
        f"{score.right} of {score.asked} ({score.right / score.asked:.0%})" for score in scores
    )
    seconds = sum(sum(score.seconds) for score in scores) / asked
    tokens, prompt = (sum(getattr(score, what) for score in scores) / asked for what in ("tokens", "prompt"))
    unread = sum(score.unreadable for score in scores)
    return f"| {name} | {rights} | {unread} | {tokens:.1f} | {prompt:.0f} | {seconds:.1f} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default="local")
    options.add_argument(
        "--dialect", action="append", choices=list(SPOKEN), help="only this one; may be repeated"
    )
    options.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th question")
    asked = options.parse_args()
    asyncio.run(bench(asked.model, asked.dialect or list(DEFAULT), asked.every))


if __name__ == "__main__":
    main()
