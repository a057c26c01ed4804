"""Random mutants: one comparison, ``and``, ``not`` or whole number of the product is changed, and the tests
of its own room must fail. Sizes of caches and buffers, and waits, stay as they are.

    python tests/vocabulary/mutants.py --count 40 --seed 2026      draw forty, and print which lived
        --room tools/policy --room neuro/reading                   from these rooms alone
        --seconds 240                                              how long the tests of a room may take

The product is copied to a folder of its own: the checkout is never changed. The tests are the checkout's.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    *(
        f"tools/{room}"
        for room in ("policy", "door", "consent", "history", "call", "program", "origin", "memory")
    ),
    *(f"tools/{room}" for room in ("registry", "shell", "web")),
    "neuro/reading",
)
OPERATORS: dict[type[ast.cmpop], tuple[str, str]] = {  # as it is written, and what takes its place
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}


# Numbers that only change how fast it goes, which no test can see: sizes of caches and buffers, and waits.
SIZED = ("lru_cache", "functools.lru_cache", "os.read", "time.sleep", "asyncio.sleep")
WAITS = ("timeout", "maxsize", "buffering")


@dataclass(frozen=True)
class Mutant:
    """A change of one place: bytes ``start`` to ``end`` of ``file`` become ``text``."""

    file: Path
    line: int
    start: int
    end: int
    text: str

    def of(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def described(self, source: bytes) -> str:
        line = self.of(source).splitlines()[self.line - 1].decode().strip()
        return f"{self.file.relative_to(ROOT)}:{self.line}: {line}"


def mutants(file: Path, source: bytes) -> Iterator[Mutant]:
    """Every mutant of a Python file."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def begin(node: ast.expr) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: ast.expr) -> int:
        return starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)

    def between(left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Mutant]:
        """The operator between two operands; brackets around them may stand in between."""
        gap = source[end(left) : begin(right)].decode()
        if gap.count(old) == 1:
            at = end(left) + len(gap[: gap.index(old)].encode())
            yield Mutant(file, source[:at].count(b"\n") + 1, at, at + len(old), new)

    tree = ast.parse(source)
    fast = set(speeds(tree))
    for node in ast.walk(tree):
        if node in fast:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from between(node.left, node.comparators[0], *OPERATORS[type(node.ops[0])])
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in pairwise(node.values):
                yield from between(left, right, old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            blank = source[begin(node) :].startswith(b"not ")
            yield Mutant(file, node.lineno, begin(node), begin(node) + len("not") + blank, "")
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield Mutant(file, node.lineno, begin(node), end(node), str(node.value + 1))


def speeds(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that only changes how fast it goes, or by one tick of a clock: the program is the same."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and "time.monotonic()" in ast.unparse(node):
            yield node
        if isinstance(node, ast.Call):
            sized = node.args if ast.unparse(node.func) in SIZED else []
            for one in (*sized, *(key.value for key in node.keywords if key.arg in WAITS)):
                yield from ast.walk(one)


def drawn(rooms: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """So many mutants, each file as likely as it has places."""
    files = [file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))]
    every = [mutant for file in files for mutant in mutants(file, file.read_bytes())]
    return random.Random(seed).sample(every, min(count, len(every)))


def package(folder: Path) -> None:
    """A copy of the product as the package ``quoth`` in ``folder``."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("agent", "neuro", "tools", "plans"):
        shutil.copytree(ROOT / name, folder / "quoth" / name, ignore=ignored)
    for file in (ROOT / "agent" / "public").iterdir():
        if file.is_file():
            shutil.copy(file, folder / "quoth" / file.name)


def killed(mutant: Mutant, folder: Path, seconds: float) -> bool:
    """Whether the tests of the mutant's room fail on it, or do not end."""
    copy = folder / "quoth" / mutant.file.relative_to(ROOT)
    source = copy.read_bytes()
    copy.write_bytes(mutant.of(source))
    try:
        return not passes(tests_of(mutant.file), folder, seconds)
    finally:
        copy.write_bytes(source)


def tests_of(file: Path) -> Path:
    return ROOT / "tests" / file.relative_to(ROOT).parts[0] / file.relative_to(ROOT).parts[1]


def passes(tests: Path, folder: Path, seconds: float) -> bool:
    """Whether the tests pass on the copy in ``folder``. Ends all that they have started."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", str(tests)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        try:
            return running.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--room", action="append", choices=ROOMS)
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    chosen = drawn(options.room or ROOMS, options.count, options.seed)
    lived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # tests run the command as nobody
        package(folder)
        for room in sorted({tests_of(mutant.file) for mutant in chosen}):
            if not passes(room, folder, options.seconds):
                print(f"{room.relative_to(ROOT)} fails without a mutant: its mutants prove nothing")
                return 2
        for mutant in chosen:
            dead = killed(mutant, folder, options.seconds)
            lived += not dead
            print(
                f"{'killed' if dead else 'LIVED '} {mutant.described(mutant.file.read_bytes())}", flush=True
            )
    print(f"{len(chosen) - lived} of {len(chosen)} killed")
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main())
