"""What every test gets: state, settings and caches of its own, so that no test touches a person's files."""

from __future__ import annotations

import gc
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import new_stores
import npm
import pytest
from examples import many
from hypothesis import settings
from servers import PostgresServer, postgres_server, redis_server

from quoth.neuro.backends.providers import ROWS
from quoth.tools.storage.database import Store

if TYPE_CHECKING:
    from quoth.tools.shared.server import SharedRedis

_PREFIXES = itertools.count()

# No deadlines: a busy machine is no fault of the code. A few examples, the same each time: no change is
# refused for what it did not touch. ``--hypothesis-profile=explore`` looks for ten times as many others.
settings.register_profile("explore", deadline=None, max_examples=300)
settings.register_profile("quoth", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("quoth")
LEFT_OUT = "left out: two thirds of long tables (all: --hypothesis-profile=explore)"

# Folders of tests lie in memory where there is room: stores wait for each write to be on the disk.
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# Whoever runs this behind the scenes may have Ctrl-C ignored; what is started here must hear of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The Hy bytecode and the joined model are shared by all tests of a run; they hold nothing a test can change.
_STATE = tempfile.mkdtemp(prefix="quoth-test-state-")
os.environ["QUOTH_STATE"] = _STATE
for variable in (
    "QUOTH_MODEL",
    "QUOTH_MEMORY",
    "QUOTH_REDIS",
    "QUOTH_CATALOG_KEY",
    "QUOTH_SHARED",
    "QUOTH_SEARCH",
    "OPENAI_BASE_URL",
    *(row.key for row in ROWS),
):
    os.environ.pop(variable, None)
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"  # nobody's own keys
os.environ["QUOTH_EMBEDDER"] = "none"  # a model takes a second to load; tests that search by meaning name one


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """With ``-n auto`` half more processes than cores: each waits a quarter of its time, for commands it has
    started and for clocks."""
    cores = yield
    return cores * 3 // 2


def samples(config: pytest.Config) -> bool:
    """Whether a third of a long table is enough: neither all are wanted, nor some by their names."""
    return many(1) <= 30 and not config.getoption("keyword")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest tests first, so that no process waits for another at the end. Of a table of cases one is
    tried in a Redis too, and of a long table of attacks a third, always the same, unless all are wanted
    (--hypothesis-profile=explore)."""
    long = ("test_readme.py", "test_crash.py", "test_browser.py")
    items.sort(key=lambda item: item.path.name not in long)
    seen: set[str] = set()
    left: set[pytest.Item] = set()
    attacks: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and samples(config):
            attacks.setdefault(item.nodeid.partition("[")[0], []).append(item)
        given = getattr(getattr(item, "callspec", None), "params", {})
        if "redis" in (given.get("store"), given.get("counter")):
            name = item.nodeid.partition("[")[0]
            if name in seen and many(1) <= 30:
                left.add(item)
            seen.add(name)
    for name, cases in attacks.items():
        left.update(random.Random(name).sample(cases, len(cases) * 2 // 3))
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=list(left))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The closing line names the tests that need what is not here."""
    if not npm.IS_ASKED:
        terminalreporter.stats[npm.LEFT_OUT] = [SimpleNamespace()]
    if samples(terminalreporter.config):
        terminalreporter.stats[LEFT_OUT] = [SimpleNamespace()]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The tests that are found stay: let no search for garbage look at them, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def _states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the state folders lie. Among those of tests, each new one would be compared with them all."""
    return tmp_path_factory.mktemp("states")


@pytest.fixture(autouse=True)
def state(_states: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder, and no policy, of the test's own, for commands it starts too."""
    folder = _states / str(next(_PREFIXES))
    folder.mkdir(0o700)
    monkeypatch.setenv("QUOTH_STATE", str(folder))
    monkeypatch.setenv("QUOTH_CONFIG", str(folder / "config"))
    # What has failed in another test is forgotten, for a server may get the port of one that was down; and
    # the keys of other tests, which a server may say here.
    if (breaker := sys.modules.get("quoth.neuro.backends.base")) is not None:
        breaker.forget_failures()
    if (echoes := sys.modules.get("quoth.tools.call.redaction")) is not None:
        echoes.SENT.forget()
    return folder


@pytest.fixture(scope="session", autouse=True)
def _new_stores_are_copied() -> Iterator[None]:
    real = Store._migrate
    made = new_stores.copied()
    yield
    Store._migrate = real  # type: ignore[method-assign]
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An open store of the test's own."""
    opened = Store(tmp_path / "s.sqlite")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, one for all tests of this process, started for the first."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a PostgreSQL database of the test's own."""
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="session")
def _memory_url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture
def memory_url(postgres: PostgresServer, _memory_url: str) -> str:
    """The URL of a PostgreSQL database in which there are no memory blocks."""
    name = urlsplit(_memory_url).path[1:]
    if postgres.ask("SELECT 1 FROM pg_namespace WHERE nspname = 'quoth'", name):
        postgres.ask("DELETE FROM quoth.blocks", name)
    return _memory_url


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    """The URL of a Redis server, one for all tests of this process."""
    with redis_server() as url:
        yield url


@pytest.fixture
def shared(redis: str) -> Iterator[SharedRedis]:
    """That server, with keys of the test's own."""
    from quoth.tools.catalog.connection import redis_url
    from quoth.tools.shared.server import SharedRedis

    opened = SharedRedis(redis_url(redis), f"t{next(_PREFIXES)}")
    yield opened
    opened.close()
