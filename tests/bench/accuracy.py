"""One call for one question of BFCL, by a real model, in each dialect: how many are right, what they cost.

Prints an Org table; not a test. The model is shown the functions of the case and one worked example, and
answers once, bound to the grammar of the dialect where there is one. A call is right when its tool and every
argument are among the accepted ones.

QUOTH_BFCL=… python tests/bench/accuracy.py [local|local-small|any --model spec] [--dialect D …] [--every N]
    [--log FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from bfcl import PARTS, Scored, scored

from quoth.neuro.backends.base import Backend, ModelError
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import choose_backend
from quoth.neuro.prompt.dialects import DIALECTS, RUN_TEXT, Dialect
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.registry.arguments import bind, validate
from quoth.tools.registry.table import ToolTable

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
    import_module("quoth.tools.builtin")
    from quoth.tools.registry.table import cognitive_tools

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
        validate(tool.name, tool.params, tool.check, bound)
    except InvalidCallError:
        return False
    return case.accepts(tool.name, bound)


async def bench(model: str, dialects: list[str], every: int, log: Path | None) -> None:
    """Every dialect answers a question before the next one is asked, so that a run cut short is fair too."""
    backend = choose_backend(model)
    scores = {name: {part: Score() for part in PARTS} for name in dialects}
    try:
        for part in PARTS:
            for case in scored(part)[::every]:
                for name in dialects:
                    said = await ask(case, SPOKEN[name], backend, scores[name][part])
                    if log is not None:
                        with log.open("a") as lines:
                            lines.write(json.dumps({"model": model, "dialect": name, **said}) + "\n")
    finally:
        print(table(model, scores), flush=True)
        await backend.aclose()


def table(model: str, scores: dict[str, dict[str, Score]]) -> str:
    """The rows of the dialects in Org."""
    head = [model, *(f"{part} right" for part in PARTS), "unreadable", "tokens out", "in", "s"]
    rows = [row(name, list(parts.values())) for name, parts in scores.items()]
    return "\n".join([f"| {' | '.join(head)} |", "|---" + "+---" * (len(head) - 1) + "|", *rows])


async def ask(case: Scored, dialect: Dialect, backend: Backend, score: Score) -> dict[str, Any]:
    started = time.monotonic()
    try:
        form, usage = await answer(case, dialect, backend)
    except ModelError as error:
        print(f"{case.id}: {error}", flush=True)
        form, usage = None, None
    right = is_right(form, case)
    score.asked += 1
    score.unreadable += form is None
    score.right += right
    score.seconds.append(time.monotonic() - started)
    if usage is not None:
        score.tokens += usage.output_tokens
        score.prompt += usage.input_tokens
    return {"id": case.id, "right": right, "form": str(form), "question": case.question}


def row(name: str, scores: list[Score]) -> str:
    asked = sum(score.asked for score in scores)
    rights = " | ".join(
        f"{score.right} of {score.asked} ({score.right / max(1, score.asked):.0%})" for score in scores
    )
    whole = max(1, asked)
    seconds = sum(sum(score.seconds) for score in scores) / whole
    tokens, prompt = (sum(getattr(score, what) for score in scores) / whole for what in ("tokens", "prompt"))
    unread = sum(score.unreadable for score in scores)
    return f"| {name} | {rights} | {unread} | {tokens:.1f} | {prompt:.0f} | {seconds:.1f} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default="local")
    options.add_argument(
        "--dialect", action="append", choices=list(SPOKEN), help="only this one; may be repeated"
    )
    options.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th question")
    options.add_argument("--log", type=Path, metavar="FILE", help="append every answer to it as a JSON line")
    asked = options.parse_args()
    asyncio.run(bench(asked.model, asked.dialect or list(DEFAULT), asked.every, asked.log))


if __name__ == "__main__":
    main()
