"""What remote tools cost beside their calls: to read a catalogue and show it, to start, and to wait. Parts of
remote.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.metadata
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from remote_ends import Place, called, client_of


def told(values: Sequence[float], unit: float = 1e3, digits: int = 2) -> str:
    """The median of the rounds, with the middle half of them."""
    low, middle, high = statistics.quantiles([one * unit for one in values], n=4)
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


# A catalogue, and what a turn then shows

SIZES = (10, 100, 1_000, 10_000)


def table_of(size: int) -> Any:
    """Tools with three parameters each."""
    from quoth.tools.registry.define import define_tool, registering_in
    from quoth.tools.registry.table import ToolTable

    def body(**given: Any) -> str:
        return ""

    table = ToolTable()
    params = {
        "place": {"type": str, "doc": "Which shop, by the name of its town."},
        "amount": {"type": int, "doc": "How many there are to be.", "default": 1, "min": 0},
        "kind": {"type": str, "choices": ["fresh", "dried", "frozen"], "default": "fresh"},
    }
    with registering_in(table):
        for number in range(size):
            about = f"Order fruit of sort {number} for a shop. It is delivered on the next day."
            tag = {"prefix": f"ORDER-{number}"}
            define_tool(
                f"order-fruit-{number}", about, parameters=params, body=body, effects=["net"], tag=tag
            )
    return table


async def load(place: Place, rounds: int) -> None:
    """Milliseconds until a reader has the tools of a catalogue, and until a model's turn shows them."""
    from quoth.neuro.prompt import belt
    from quoth.neuro.prompt.dialects import CALL_FORM
    from quoth.tools.catalog import load_catalog, publish_catalog
    from quoth.tools.catalog.remote_table import RemoteToolTable

    found: dict[str, dict[int, list[float]]] = {}
    blobs: dict[int, int] = {}

    def took(what: str, size: int, began: float) -> None:
        found.setdefault(what, {}).setdefault(size, []).append(time.perf_counter() - began)

    async def deliver(*_: Any) -> Any:
        return None

    async with client_of(place) as redis:
        for size in SIZES:
            version, _ = await publish_catalog(redis, table_of(size), key=place.key, prefix=f"size{size}")
            blobs[size] = await redis.strlen(f"size{size}:tools:catalog:v{version}")
        for _ in range(rounds):
            for size in SIZES:
                prefix = f"size{size}"
                gc.collect()
                cpu, began = time.process_time(), time.perf_counter()
                table = await RemoteToolTable.load(place.url, place.key, prefix, deliver)
                took("*a reader loads them*", size, began)
                more = time.process_time() - cpu
                found.setdefault("of it CPU", {}).setdefault(size, []).append(more)
                began = time.perf_counter()
                await load_catalog(redis, key=place.key, prefix=prefix)
                took("of it: read, unpacked and checked", size, began)
                belt._built.clear()
                began = time.perf_counter()
                CALL_FORM.opening(table)
                took("a turn's belt, the first time", size, began)
                began = time.perf_counter()
                CALL_FORM.opening(table)
                took("a turn's belt, from then on", size, began)
                began = time.perf_counter()
                CALL_FORM.opening(table, search=True)
                took("=--belt search=, the first time", size, began)
                catalog = belt.BeltCatalog(table)
                for when in ("the first time", "from then on"):
                    began = time.perf_counter()
                    assert len(await catalog.search("order fruit of sort 7", 10)) == 10
                    took(f"search-tools, {when}", size, began)
                for view in belt.VIEWS:
                    began = time.perf_counter()
                    belt.VIEWS[view](table.shown)
                    took(f"the view {view} alone", size, began)
    heads = " | ".join(f"{size:,} tools" for size in SIZES)
    print(
        f"{rounds} rounds; ms. Their catalogues have {', '.join(f'{blobs[size]:,}' for size in SIZES)} bytes."
    )
    print(f"| ms until | {heads} |\n|" + "---+" * len(SIZES) + "---|")
    for what, sizes in found.items():
        print(f"| {what} | " + " | ".join(told(sizes[size], digits=1) for size in SIZES) + " |")


# Starting


async def start(place: Place, rounds: int) -> None:
    """Commands that need no Redis, with the extra and without it."""
    given = {
        "with the extra": environment(place.folder / "with", ()),
        "without": environment(place.folder / "without", extra()),
    }
    commands = {"quoth --help": ["--help"], "quoth call '(echo :text \"x\")'": ["call", '(echo :text "x")']}
    for kind, python in given.items():
        tried = subprocess.run(
            [python, "-c", "import taskiq, redis, msgpack"], capture_output=True, check=False
        )
        assert (tried.returncode == 0) == (kind == "with the extra"), tried.stderr
    times: dict[tuple[str, str], list[float]] = {}
    for round in range(rounds * 3 + 1):
        for name, words in commands.items():
            for kind, python in given.items():
                began = time.perf_counter()
                subprocess.run(
                    [python, "-m", "quoth", *words], capture_output=True, check=True, cwd=place.folder
                )
                if round:
                    times.setdefault((name, kind), []).append(time.perf_counter() - began)
    print(f"{rounds * 3} rounds.\n| command, ms | with the extra | without | ratio |\n|---+---+---+---|")
    for name in commands:
        both = [times[name, kind] for kind in given]
        ratio = told([one / other for one, other in zip(*both, strict=True)], 1)
        print(f"| ={name}= | {told(both[0], digits=0)} | {told(both[1], digits=0)} | {ratio} |")


def extra() -> set[str]:
    """The names of what the extra ``redis`` alone brings."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    return _closed(project["optional-dependencies"]["redis"]) - _closed(project["dependencies"])


def _closed(lines: Sequence[str]) -> set[str]:
    """The names of what these lines ask for, and of what that needs."""
    seen: set[str] = set()
    left = [*lines]
    while left:
        line = left.pop()
        name = _flat(re.split(r"[^\w.-]", line.strip(), maxsplit=1)[0])
        if name in seen or "extra ==" in line:
            continue
        seen.add(name)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            left += importlib.metadata.requires(name) or ()
    return seen


def _flat(name: str) -> str:
    return name.lower().replace("_", "-")


def environment(folder: Path, left_out: set[str]) -> str:
    """The Python of a new environment with all that this one has, but what is left out."""
    venv.create(folder, symlinks=True)
    (there,) = folder.glob("lib/python*/site-packages")
    gone: set[str] = set()
    for found in importlib.metadata.distributions():
        if _flat(found.metadata["Name"]) in left_out:
            gone |= {str(file).split("/")[0] for file in found.files or ()}
    for place in (Path(one) for one in sys.path if one.endswith("site-packages")):
        for one in place.iterdir():
            target = there / one.name
            if one.name not in gone and one.suffix != ".pth" and not target.exists():
                target.symlink_to(one)
    return str(folder / "bin" / "python")


# Waiting

WAITING = 1_000


def resident(pid: int) -> int:
    """The memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def waiting(place: Place) -> None:
    """What calls cost that wait: in Redis, with their caller, and in a worker; and who has connections."""
    state = place.fast / "state"
    rows: list[tuple[str, dict[str, int], float, float]] = []
    async with client_of(place) as redis:

        async def kept() -> dict[str, int]:
            """The bytes in Redis that calls have left, by the kind of their keys."""
            found: dict[str, int] = {}
            async for key in redis.scan_iter("wait:tools:*", count=1000):
                kind = key.decode().split(":")[2]
                if kind not in ("catalog", "workers"):
                    found[kind] = found.get(kind, 0) + await redis.memory_usage(key, samples=0)
            return found

        async def connections() -> int:
            return len(await redis.client_list())

        async def clean() -> list[int]:
            async for key in redis.scan_iter("wait:tools:*", count=1000):
                if key.decode().split(":")[2] in ("call", "grant", "replies"):
                    await redis.delete(key)
            gc.collect()
            return [resident(os.getpid()), resident(worker)]

        async def told_of(what: str, before: list[int]) -> None:
            more = [resident(os.getpid()) - before[0], resident(worker) - before[1]]
            rows.append((what, await kept(), *more))

        async def wait_at_once(once: Callable[[], Any]) -> list[asyncio.Task[Any]]:
            calls = [asyncio.create_task(once()) for _ in range(WAITING)]
            while await redis.xlen("wait:tools:calls") != WAITING:
                await asyncio.sleep(0.05)
            return calls

        alone = await connections()
        async with place.worker("wait", WAITING, state) as worker:
            held = [await connections() - alone]
            async with place.agent("wait", state) as agent:
                held.append(await connections() - alone - held[0])
                await asyncio.gather(*(called(agent, "rest", seconds=0.0)() for _ in range(100)))
                before = await clean()
                calls = await wait_at_once(called(agent, "rest", seconds=20.0))
                await asyncio.sleep(5)  # all are at work
                held.append(await connections() - alone)
                await told_of("at work", before)
                await asyncio.gather(*calls)
                await told_of("ended, of a tool that reads", before)
                before = await clean()
                for _ in range(10):
                    await asyncio.gather(*(called(agent, "keep")() for _ in range(WAITING // 10)))
                await told_of("ended, of a tool with receipts", before)
                before = await clean()
                os.kill(worker, signal.SIGSTOP)
                try:
                    calls = await wait_at_once(called(agent, "rest", seconds=0.0))
                    await told_of("in the queue", before)
                finally:
                    os.kill(worker, signal.SIGCONT)
                await asyncio.gather(*calls)
    print(f"{WAITING:,} calls; bytes of each. A worker has {held[0]} connections, a caller {held[1]};")
    print(f"with {WAITING:,} calls at work in one worker both had {held[2]} together.")
    kinds = sorted({kind for _, found, *_ in rows for kind in found})
    print(f"| calls | in Redis | {' | '.join(kinds)} | with the caller | in the worker |")
    print("|" + "---+" * (len(kinds) + 3) + "---|")
    for what, found, *more in rows:
        sizes = [sum(found.values()), *(found.get(kind, 0) for kind in kinds), *more]
        print(f"| {what} | " + " | ".join(f"{size / WAITING:,.0f}" for size in sizes) + " |")
