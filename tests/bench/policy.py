"""The door's policy stage with 200 rules beside its validation stage, in the same run. Prints an Org table,
and one of a call that walks through files.

python tests/bench/policy.py [--rounds N] [--rules N]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path

from quoth.tools.call.call import new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.door.stages import STAGES
from quoth.tools.door.state import CallState, Outcome
from quoth.tools.lisp.forms import from_model
from quoth.tools.lisp.reader import read_one
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy, Walk
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import cognitive_tools

CALLS = (
    '(write-file :path "src/a.py" :content "x = 1")',
    '(read-file :path "src/a.py")',
    '(grep-search :pattern "TODO" :path "src")',
    '(echo :text "hello")',
)
Stage = Callable[[Door, CallState], Awaitable[Outcome | None]]
REPEAT = 100  # calls in one measurement


def spread(number: int) -> str:
    """As people write them: rules about a dozen tools, a few about any tool."""
    names = ["write-file", "read-file", "edit-file", "grep-search", "list-files", "echo", "eval"]
    names += [f"tool-{n}" for n in range(13)]
    shapes = [
        '(deny ({tool} :path (under "secret{n}")))',
        '(ask ({tool} :path (matches "[.]key{n}$")))',
        '(deny ({tool}) (user "mallory{n}"))',
        "(ask ({tool} :limit (> {n}000)))",
        '(deny ({tool} :text "word{n}"))',
        '(deny ({tool} :argv ["git" "push{n}" ...]))',
        '(allow ({tool} :path (under "src")) (user "none{n}"))',
        "(deny ({tool}) (depth > 1{n}))",
        '(ask ({tool} :glob (one-of "a{n}" "b{n}")))',
        "(ask (effects :net) (depth > 2{n}))",
    ]
    known = {tool.name: {param.name for param in tool.params} for tool in cognitive_tools}
    made: list[str] = []
    n = 0
    while len(made) < number:
        tool, shape = names[n % len(names)], shapes[(n // len(names) + n) % len(shapes)]
        n += 1
        argument = shape.partition("({tool} :")[2].partition(" ")[0]
        if not argument or argument in known.get(tool, {argument}):
            made.append(shape.format(tool=tool, n=n))
    return "\n".join(made)


def crowded(number: int, tool: str, argument: str, predicate: str) -> str:
    """Every rule is about this tool and this argument, and none matches."""
    return "\n".join(f"(deny ({tool} :{argument} {predicate.format(n=n)}))" for n in range(number))


async def microseconds(stage: Stage, door: Door, state: CallState) -> float:
    started = time.process_time()
    for _ in range(REPEAT):
        await stage(door, state)
    return (time.process_time() - started) * 1e6 / REPEAT


async def measure(root: Path, number: int, rounds: int) -> None:
    print(f"| call, {number} rules | verdict | validation, us | policy, us | ratio |\n|---+---+---+---+---|")
    for text in CALLS:
        form = from_model(read_one(text))
        one = (form.tool, next(iter(form.args)))
        kinds = {
            "spread over 20 tools": spread(number),
            "all on one argument, texts": crowded(number, *one, '"never {n}"'),
            "all on one argument, (> n)": crowded(number, *one, "(len (> 1{n}000))"),
            "all on one argument, paths": crowded(number, *one, '(under "never{n}")'),
            "the same, of folders there": crowded(number, *one, '(under "folders/f{n}")'),
            "about any path of any tool": crowded(number, "any-tool", "path", '(under "folders/f{n}")'),
        }
        for how, rules in kinds.items():
            policy = RulesPolicy([parse_layer("given", rules.encode(), "bench.hy")])
            door = Door(cognitive_tools, policy=policy)
            state = CallState(new_call(form, user="ann"), ToolContext(Workspace(root)), door.dispatch)
            for name, stage in STAGES[:4]:  # as far as the policy, once, so that all is warm
                ended = await stage(door, state)
                assert ended is None, f"{name}: {ended}"
            verdict = policy.judge(state.known_tool, state.call, state.args, state.context)
            stages = dict(STAGES)
            pairs = []
            for _ in range(rounds):  # interleaved, so that a busy moment hits both alike
                first = await microseconds(stages["validation"], door, state)
                pairs.append((first, await microseconds(stages["policy"], door, state)))
            valid, judged = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(
                f"| {form.tool}, {how} | {verdict.kind} | {valid:.1f} | {judged:.1f} | {judged / valid:.2f} |"
            )


def walked(root: Path, number: int, rounds: int) -> None:
    """Rules about folders, each of which a walk must keep to."""
    print("\n| a walk past 300 files | us a file |\n|---+---|")
    tool = cognitive_tools.get("grep-search")
    call = new_call(from_model(read_one('(grep-search :pattern "TODO")')), user="ann")
    args = {"pattern": "TODO", "path": WorkspacePath(".")}
    rules = crowded(number, "read-file", "path", '(under "folders/f{n}")')
    kinds = {f"{number} rules about folders": rules, "one rule": rules.partition("\n")[0]}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, text in kinds.items():
            policy = RulesPolicy([parse_layer("given", text.encode(), "bench.hy")])
            started = time.process_time()
            walk = Walk(policy, tool, call, args, Workspace(root), cognitive_tools.get("read-file"))
            assert all(walk.may_read(f"src/{n}.py") for n in range(300))
            times[kind].append((time.process_time() - started) * 1e6 / 300)
    for kind, found in times.items():
        print(f"| {kind} | {statistics.median(found):.1f} |")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--rules", type=int, default=200)
    given = options.parse_args()
    import_module("quoth.tools.builtin")
    with tempfile.TemporaryDirectory(prefix="quoth-policy-") as folder:
        root = Path(folder)
        (root / "src").mkdir()
        (root / "src/a.py").touch()
        for n in range(given.rules):
            (root / f"folders/f{n}").mkdir(parents=True)
        time.sleep(0.2)  # as of a folder that nobody is changing: one that has just been is not remembered
        asyncio.run(measure(root, given.rules, given.rounds))
        walked(root, given.rules, given.rounds)


if __name__ == "__main__":
    main()
