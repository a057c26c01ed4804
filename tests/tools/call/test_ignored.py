"""What .gitignore files leave out: as git itself would, within bounds that a hostile one cannot exceed."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from words import files, quoth

from quoth.agent.run.surroundings import list_files
from quoth.tools.call import ignored as module
from quoth.tools.call.ignored import Ignored, files_below
from quoth.tools.call.workspace import Workspace

NAMES = ["a", "b", "build", "x.o", "y.o", "keep.o", "foo", "doc", "a b", "#h", "!n", "éé"]
PATTERNS = [
    *("*.o", "!keep.o", "build/", "/build", "a/", "foo", "!foo", "doc/*", "!doc/a", "a/**", "**/b", "a/**/b"),
    *(
        "**/foo/*",
        "foo/**",
        "!foo/a",
        "/*",
        "!/a",
        "*",
        "!*/",
        "!*.o",
        "[ab]",
        "?",
        "\\#h",
        "\\!n",
        "# c",
        "",
    ),
    *("  ", "x.o ", "a\\ b", "doc/a/", "b/*", "!b/x.o", "/a/b", "./a", "a//b", "*/b", "***", "**", "/"),
    *("!", "[", "[!a]", "[^b]*", "éé", "foo/*/a", "build/**/x.o", "\\", "a\\", "{a,b}", "*.[oc]", "*a*o*b*"),
]


def grow(folder: Path, depth: int, chance: random.Random) -> None:
    for name in chance.sample(NAMES, chance.randint(2, 5)):
        if depth and chance.random() < 0.5:
            (folder / name).mkdir()
            grow(folder / name, depth - 1, chance)
            if chance.random() < 0.4:
                say(folder / name / ".gitignore", chance, 4)
        else:
            (folder / name).write_text("")


def say(file: Path, chance: random.Random, most: int) -> None:
    file.write_text("\n".join(chance.sample(PATTERNS, chance.randint(0, most))) + "\n")


@pytest.mark.parametrize("seed", range(12))
def test_the_same_is_left_out_as_by_git(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    grow(tmp_path, 3, chance)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    say(tmp_path / ".gitignore", chance, 5)
    say(tmp_path / ".git/info/exclude", chance, 2)
    command = ["git", "-c", "core.excludesFile=", "ls-files", "-o", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    found = [file.relative_to(tmp_path).as_posix() for file in files_below(tmp_path, Ignored(tmp_path))]
    assert sorted(found) == sorted(filter(None, done.stdout.split("\0")))


@pytest.mark.parametrize(
    "pattern",
    [
        *("[[:digit:]]*", "x[[:alpha:]_]", "[![:upper:]]1", "[[:punct:]]*", "[[:space:]a]*", "[[:graph:]]1"),
        *(
            "[:alpha:]1",
            "\\[[:alpha:]]",
            "[^[:lower:]]*",
            "[[:xdigit:]]1",
            "[[:other:]]1",
            "[[a]1",
            "[a&&b]1",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")  # pytest forgets the module's own filter
def test_sets_of_characters_are_those_of_git(tmp_path: Path, pattern: str) -> None:
    names = ["1", "a1", "A1", "h1", "g1", "z1", "x_", "xa", "x1", "-1", "~1", " 1", "[a", "[a]", "&1", ":1"]
    files(tmp_path, {**dict.fromkeys(names, ""), ".gitignore": f"{pattern}\n"})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "-c", "core.excludesFile=", "ls-files", "-o", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    found = [file.name for file in files_below(tmp_path, Ignored(tmp_path))]
    assert sorted(found) == sorted(filter(None, done.stdout.split("\0")))


def test_of_an_odd_set_nobody_is_warned(tmp_path: Path) -> None:
    files(tmp_path, {"a": "", "b": "", ".gitignore": "[[a]\n"})
    assert quoth("call", "(list-files)", cwd=tmp_path).err == (
        "quoth: Skipped 1 file named in .gitignore; :all True includes them.\n"
    )


def test_a_repository_within_another_has_its_own_rules(tmp_path: Path) -> None:
    files(tmp_path, {".gitignore": "*.o\n", "own/.git/info/exclude": "b\n", "own/a.o": "", "own/b": ""})
    assert [file.name for file in Workspace(tmp_path).walk(".")] == [".gitignore", "a.o"]


def test_what_is_left_out_is_counted_and_shown_on_demand(tmp_path: Path) -> None:
    files(
        tmp_path, {".gitignore": "*.o\nbuild\n", "a.o": "", "b.o": "", "build/c": "", "d/.gitignore": "!b.o"}
    )
    files(tmp_path, {"d/b.o": "", "node_modules/x": ""})
    workspace, ignored = Workspace(tmp_path), Ignored(tmp_path)
    shown = [workspace.shown(file) for file in workspace.walk(".", ignored=ignored)]
    assert shown == [".gitignore", "d/.gitignore", "d/b.o"]
    said: list[str] = []
    ignored.tell(said.append)
    assert said == ["Skipped 2 files and 1 folder named in .gitignore; :all True includes them."]
    assert len([*workspace.walk(".", all=True)]) == 7
    assert [file.name for file in workspace.walk("a.o")] == ["a.o"]
    assert list_files(workspace, lambda path: True) == (["d/b.o"], 0)


def test_only_a_regular_file_is_read_and_only_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, {"rules": "*\n", "a": "", "d/b": "", "e/c": "", "e/.gitignore": "#" * 50 + "\nc\n"})
    (tmp_path / ".gitignore").symlink_to("rules")
    os.mkfifo(tmp_path / "d/.gitignore")
    monkeypatch.setattr(module, "MAX_BYTES", 51)
    names = [file.name for file in files_below(tmp_path, Ignored(tmp_path))]
    assert names == ["a", "rules", "b", ".gitignore", "c"]


def test_a_pattern_that_was_made_to_take_for_ever_is_not_heeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def for_ever(*_: object, timeout: float, **__: object) -> None:
        assert timeout == module.SECONDS
        raise TimeoutError

    monkeypatch.setattr("regex.fullmatch", for_ever)
    files(tmp_path, {".gitignore": "*.py\n" + "*a" * 12 + "[bc]\n", "a": "", "z.py": ""})
    ignored, said = Ignored(tmp_path), list[str]()
    assert [file.name for file in files_below(tmp_path, ignored)] == [".gitignore", "a", "z.py"]
    ignored.tell(said.append)
    assert said == [".gitignore was ignored: a pattern in it takes too long."]
