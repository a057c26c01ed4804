"""quoth is a guest in other people's projects: one package is installed, and it is found whatever lies
around."""

from __future__ import annotations

import ast
import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from words import files, quoth, rooms

import quoth as public
from quoth.agent.cli.doctor import NEWEST

ROOT = Path(__file__).parents[1]
OWN = {  # a project with folders of the same names
    "tools/__init__.py": "raise RuntimeError('theirs')",
    "agent/__init__.py": "raise RuntimeError('theirs')",
    "neuro/__init__.py": "raise RuntimeError('theirs')",
    "plans/first.org": "* PLAN Build: count\n  #+begin_src hy\n  (+ 1 2)\n  #+end_src\n",
    "mine.hy": '(require quoth [def-cognitive-tool])\n(def-cognitive-tool mine "Mine." :body 7)\n',
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return files(tmp_path / "theirs", OWN)


def python(
    *words: str, cwd: Path, python: str = sys.executable, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *words],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_works_in_a_project_with_rooms_of_the_same_names(project: Path) -> None:
    said = quoth("call", "(mine)", "--tools", "mine.hy", cwd=project, real=True)
    assert (said.code, said.out) == (0, "7\n"), said.err
    said = quoth("fly", "plans/first.org", "--json", cwd=project, real=True)
    assert (said.code, json.loads(said.out)["status"]) == (0, "done"), said.err


@pytest.mark.parametrize("path", ["", "."])
def test_python_m_quoth_works_there_too(project: Path, path: str) -> None:
    done = python("-m", "quoth", "call", "(mine)", "--tools", "mine.hy", cwd=project, PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


LURES = ("argparse", "asyncio", "httpx", "json", "pydantic", "regex", "signal", "typing")


@pytest.mark.parametrize(
    "module",
    [
        ["quoth", "call", '(grep-search :pattern "lure" :path ".")'],
        ["quoth", "models"],
        ["quoth.plans.bridges.telegram"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_python_m_runs_no_file_of_the_workspace(tmp_path: Path, module: list[str]) -> None:
    """Python puts the current folder first on sys.path; from the first line of quoth on it is not there."""
    lure = "open('lured', 'a').write(__name__)\nraise SystemExit('lured')\n"
    files(tmp_path, {f"{name}.py": lure for name in LURES})
    done = python("-m", *module, cwd=tmp_path, TELEGRAM_TOKEN="")
    assert not (tmp_path / "lured").exists(), done.stderr
    assert "lured" not in done.stderr


def test_the_bridge_is_a_command_that_needs_no_m(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["scripts"]["quoth-telegram"].partition(":")
    program = f"import sys; from {module} import {name}; sys.exit({name}())"  # as pip writes it
    done = python("-P", "-c", program, cwd=tmp_path, TELEGRAM_TOKEN="")
    assert (done.returncode, done.stderr) == (1, "telegram: Set TELEGRAM_TOKEN to the token of the bot.\n")


def test_import_quoth_works_there_too(project: Path) -> None:
    program = (
        "from quoth import Agent, cognitive_tool\n"
        "with Agent(tools=['mine.hy']) as agent:\n"
        "    print(agent.call('(mine)').value)\n"
    )
    done = python("-c", program, cwd=project)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


@pytest.mark.parametrize("room", ["tools", "neuro", "agent"])
def test_a_room_imported_bare_refuses_with_a_sentence(room: str) -> None:
    """Else there would be two tables of tools."""
    done = python("-c", f"import {room}", cwd=rooms()[0].resolve().parent)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: {room} is a part of quoth: import quoth.{room}, not {room}."
    )


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "(require tools.macros [def-cognitive-tool])",
            "old.hy:1:10: tools is a part of quoth: (require quoth [def-cognitive-tool]).",
        ),
        ("(import tools [deny])", "old.hy:1:9: tools is a part of quoth: (import quoth [deny])."),
        (
            "(import agent.testing [replays])",
            "old.hy:1:9: agent is a part of quoth: (import quoth.agent.testing [replays]).",
        ),
    ],
)
def test_an_old_spelling_in_a_tool_file_is_answered_by_the_new_one(
    tmp_path: Path, source: str, sentence: str
) -> None:
    files(tmp_path, {"old.hy": source + "\n"})
    said = quoth("tools", "--tools", "old.hy", cwd=tmp_path)
    assert said.code == 2
    assert sentence in said.err
    assert "Traceback" not in said.err


def test_what_quoth_gives_is_its_sorted_list_of_names() -> None:
    assert public.__all__ == sorted(public.__all__)
    assert dir(public) == public.__all__
    assert all(getattr(public, name) is not None for name in public.__all__)


def test_each_name_is_said_once_to_readers_and_once_to_type_checkers() -> None:
    text = Path(str(public.__file__)).read_text(encoding="utf-8")
    block = next(node for node in ast.parse(text).body if isinstance(node, ast.If))  # if TYPE_CHECKING
    checked = {
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("quoth.")
        for alias in node.names
    }
    in_hy = {"think", "ask_neuro", "begin_conversation"}  # no type checker reads them
    assert {*public._HOME_OF} == checked | in_hy
    assert {*public.__all__} == {*public._HOME_OF, "StrictModel", "__version__"}


def test_a_name_that_quoth_has_not_is_an_error() -> None:
    with pytest.raises(AttributeError, match="module 'quoth' has no attribute 'Agnet'"):
        public.Agnet  # noqa: B018


def checkout(place: Path) -> Path:
    """A copy of the checkout, so that building leaves nothing in it."""
    copy = place / "checkout"
    copy.mkdir(parents=True)
    for name in ("pyproject.toml", "README.org", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, copy)
    for name in (".ci", "agent", "neuro", "tools", "plans"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def build(copy: Path, into: Path, how: str) -> Path:
    """The archive that the back end of pyproject.toml builds, as pip would have it built."""
    system = tomllib.loads((copy / "pyproject.toml").read_text())["build-system"]
    into.mkdir(exist_ok=True)
    hook = f"import {system['build-backend']} as b; print(b.{how}({str(into)!r}, {SETTINGS.get(how)}))"
    done = python("-c", hook, cwd=copy, PYTHONPATH=str(copy / system["backend-path"][0]))
    assert done.returncode == 0, done.stderr
    return into / done.stdout.splitlines()[-1]


SETTINGS = {"build_editable": "{'editable_mode': 'strict'}"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A copy of the checkout, and the wheel of it."""
    folder = tmp_path_factory.mktemp("built")
    copy = checkout(folder)
    return copy, build(copy, folder, "build_wheel")


def test_the_wheel_holds_the_one_package(built: tuple[Path, Path]) -> None:
    copy, archive = built
    with zipfile.ZipFile(archive) as wheel:
        names = wheel.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"quoth"}
    source = {
        path.relative_to(copy).as_posix()
        for room in ("agent", "neuro", "tools")
        for path in (copy / room).rglob("*")
        if path.suffix in (".py", ".hy")
    }
    held = {f"quoth/{name.removeprefix('agent/public/')}" for name in source}
    code = {name for name in names if name.endswith((".py", ".hy")) and not name.startswith("quoth/plans/")}
    assert code == held
    assert {"quoth/py.typed", "quoth/__main__.py", "quoth/plans/bridges/telegram.py"} <= set(names)


def test_an_editable_install_is_the_same_package(tmp_path: Path, project: Path) -> None:
    copy = checkout(tmp_path)
    with zipfile.ZipFile(build(copy, tmp_path, "build_editable")) as wheel:
        (path,) = (wheel.read(name).decode().strip() for name in wheel.namelist() if name.endswith(".pth"))
    program = "import quoth.neuro.think, quoth; print(quoth.__file__); print(quoth.Agent.__module__)"
    done = python("-c", program, cwd=project, PYTHONPATH=path)
    assert done.stdout.splitlines() == [f"{path}/quoth/__init__.py", "quoth.agent.client"], done.stderr
    assert (Path(path) / "quoth/agent/client.py").samefile(copy / "agent/client.py")  # edited in place


def test_archives_are_the_same_whoever_builds_them(tmp_path: Path, built: tuple[Path, Path]) -> None:
    """Other times, other rights, and a wheel from the source archive."""

    def others(folder: Path) -> Path:
        for path in folder.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
            os.utime(path, (10**9, 10**9))
        return folder

    here, wheel = built
    source = build(here, tmp_path / "here", "build_sdist")
    other = build(others(checkout(tmp_path)), tmp_path / "there", "build_sdist")
    assert other.read_bytes() == source.read_bytes()

    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
        roots = {name.split("/")[1] for name in archive.getnames()}
    (unpacked,) = tmp_path.glob("quoth-*")
    again = build(others(unpacked), tmp_path / "again", "build_wheel")
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())
    files = {".ci", "LICENSE", "NOTICE", "PKG-INFO", "README.org", "pyproject.toml", "setup.cfg"}
    assert roots == {*files, "quoth.egg-info", "agent", "neuro", "tools", "plans"}


def test_each_package_is_listed_once() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent for room in ("agent", "neuro", "tools") for path in (ROOT / room).rglob("*.py")}
    named = {".".join(["quoth", *path.relative_to(ROOT).parts]) for path in folders}
    assert listed == sorted({*named, "quoth", "quoth.plans"} - {"quoth.agent.public"})


def test_the_classifiers_are_the_pythons_that_the_readme_says_are_tested() -> None:
    rows = re.findall(r"^\| [^|]+\| +(3\.\d+) \| [^|]+\| (\S+)", (ROOT / "README.org").read_text(), re.M)
    tried = {python for python, tests in rows if tests != "untried"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {one.rpartition(" ")[2] for one in project["classifiers"] if ":: 3." in one} == tried
    assert max(tried) == ".".join(map(str, NEWEST))  # doctor calls those after it untried


def test_the_index_gets_the_readme_as_markdown(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        metadata = email.message_from_string(wheel.read(name).decode())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert (metadata["Author"], metadata["Author-email"], metadata.get_all("Project-URL")) == (
        "The quoth authors",
        None,
        None,
    )
    org, page = (ROOT / "README.org").read_text(), MarkdownIt().enable("table").parse(metadata.get_payload())
    blocks = re.findall(r"^#\+begin_(?:src|example).*\n((?:.*\n)*?)#\+end_(?:src|example)$", org, re.M)
    shown = [token.content for token in page if token.type == "fence"]
    assert shown == [re.sub(r"^,(?=\*|#\+)|^(  ),(?=#\+)", r"\1", block, flags=re.M) for block in blocks]
    kinds = Counter(token.type for token in page)
    assert kinds["heading_open"] == len(re.findall(r"^\*+ ", org, re.M)) + 1
    assert kinds["table_open"] == len(re.findall(r"^[^|\n].*\n+\|", org, re.M))
    words = " ".join(
        child.content for token in page for child in token.children or () if child.type == "text"
    )
    assert not re.search(r"\[\[|\]\]|#\+|(?<!\S)[=~]\S+[=~](?!\S)", words)
    assert ".png" not in metadata.get_payload()
