"""What each rule of the coach is worth: the everyday tasks on an embedded model, with all rules and without
each. Not a test; it prints an Org table. A rule that solves nothing more and saves nothing is deleted.

python tests/bench/coach.py [local|local-small] [--half older|tuned|held-out] [--without RULE]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from everyday import HALVES, bench

from quoth.agent.run import coach, doubts


def _never(*_: Any) -> bool:
    return False


def _without_recall(_known: Any, _task: Any) -> bool:
    return False


def _without(rule: Callable[..., Any]) -> tuple[Any, ...]:
    return tuple(one for one in coach.STEPS if one is not rule)


def _without_doubt(rule: Callable[[doubts.ModelAnswer], str]) -> Callable[[doubts.ModelAnswer], str]:
    kept = [one for one in doubts.DOUBTS if one is not rule]
    return lambda answer: next((said for one in kept if (said := one(answer))), "")


def _only_ends(tool: Any, _run: Any) -> bool:
    return bool(tool.ends_turn)


# A rule, and what stands in its place when it is left out.
RULES: dict[str, dict[str, Any]] = {
    "none": {},
    "the whole coach": {"COACH": None},
    "all steps": {"STEPS": ()},
    **{f"step {rule.__name__}": {"STEPS": _without(rule)} for rule in coach.STEPS},
    "doubts": {"_doubt": lambda text, run: ""},
    **{f"doubt {rule.__name__}": {"doubt_of": _without_doubt(rule)} for rule in doubts.DOUBTS},
    "must look": {"_must_look": _never},
    "recalls": {"may_tell": _without_recall},
    "made up": {"_is_made_up": _never},
    "blind tools": {"_is_blind": _only_ends},
    "news": {"_is_news": lambda record, _run: coach.is_informative(record)},
    "change open": {"_is_change_open": _never},
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default="local-small")
    options.add_argument("--half", choices=HALVES, action="append", help="only these; may be repeated")
    options.add_argument("--without", choices=RULES, action="append", help="only these; may be repeated")
    asked = options.parse_args()
    chosen = sorted(number for half in asked.half or HALVES for number in HALVES[half])
    print("| without | outcome |\n|---+---|")
    for rule in asked.without or RULES:
        said = io.StringIO()
        with contextlib.ExitStack() as changed, contextlib.redirect_stdout(said):
            for name, other in RULES[rule].items():
                changed.enter_context(patch.object(coach, name, other))
            asyncio.run(bench(asked.model, None, chosen, show=False))
        print(f"| {rule} | {said.getvalue().strip().splitlines()[-1]} |", flush=True)


if __name__ == "__main__":
    main()
