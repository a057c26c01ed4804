"""Data sources: what is listed and read of the folders and files that were opened, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from sentences import (
    CANNOT_BE_OPENED,
    IS_A_BINARY_FILE_OF,
    IS_GIVEN_TWICE,
    IS_NOT_UTF_8_TEXT,
    THERE_IS_NO_FILE,
)
from words import Gateway, complaint, files, shipped

from quoth import Agent, HostServices, Services
from quoth.tools.errors import UsageError
from quoth.tools.knowledge.sources import FolderSources, sources_of


@pytest.fixture
def opened(tmp_path: Path) -> Path:
    """A folder and a file beside the workspace, with a secret beside both."""
    files(
        tmp_path,
        {
            "work/notes.txt": "mine\n",
            "manual/install.org": "".join(f"line {n}\n" for n in range(1, 6)),
            "manual/more/deep.org": "deep\n",
            "manual/picture.png": b"\x89PNG\0",
            "manual/latin.txt": "für".encode("latin-1"),
            "manual/.git/config": "hidden",
            "secret.txt": "secret",
            "facts.txt": "It is blue.\n",
        },
    )
    (tmp_path / "manual/out.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "manual/away").symlink_to(tmp_path)
    return tmp_path


def reading(opened: Path, **parts: object) -> Gateway:
    manager = FolderSources({"manual": opened / "manual", "facts": opened / "facts.txt"})
    return shipped(opened / "work", given={"services": Services(sources=manager)}, **parts)


def test_the_sources_are_listed(opened: Path) -> None:
    result = reading(opened).pass_through('(sources "list")')
    assert result.value == [
        {"name": "manual", "description": "Folder manual"},
        {"name": "facts", "description": "File facts.txt"},
    ]


READ = [
    (':name "facts"', "It is blue.\n", ""),
    (':name "manual/more/deep.org"', "deep\n", ""),
    (':name "manual/more/../more/deep.org"', "deep\n", ""),
    (':name "manual"', "manual/install.org\nmanual/latin.txt\nmanual/picture.png\nmanual/more/deep.org", ""),
    (':name "manual/more"', "manual/more/deep.org", ""),
    (
        ':name "manual/install.org" :start 2 :limit 2',
        "line 2\nline 3\n",
        "Lines 2 to 3 of 5; read on with :start 4.",
    ),
]


@pytest.mark.parametrize(("words", "text", "message"), READ)
def test_a_source_is_read(opened: Path, words: str, text: str, message: str) -> None:
    result = reading(opened).pass_through(f'(sources :operation "read" {words})')
    assert (result.status, result.value, result.message) == ("ok", text, message)


REFUSED = [
    # the arguments, the status, and the sentence
    ('"read"', "invalid", 'read needs the name of a source; (sources :operation "list") lists them.'),
    (
        '"list" :name "manual"',
        "invalid",
        'list takes no name; to read it: (sources :operation "read" :name "manual").',
    ),
    (
        '"read" :name "manul/install.org"',
        "error",
        "Unknown source manul. Did you mean manual? The sources are manual, facts.",
    ),
    ('"read" :name "manual/../secret.txt"', "error", "manual/../secret.txt is outside the source manual."),
    ('"read" :name "manual/out.txt"', "error", "manual/out.txt is outside the source manual."),
    (
        '"read" :name "manual/away/secret.txt"',
        "error",
        "manual/away/secret.txt is outside the source manual.",
    ),
    ('"read" :name "manual//etc/hostname"', "error", "manual//etc/hostname is outside the source manual."),
    ('"read" :name "facts/more"', "error", "The source facts is a single file. Read it as facts."),
    ('"read" :name "manual/picture.png"', "error", f"manual/picture.png {IS_A_BINARY_FILE_OF} 5 bytes."),
    ('"read" :name "manual/latin.txt"', "error", f"manual/latin.txt {IS_NOT_UTF_8_TEXT} (3 bytes)."),
    (
        '"read" :name "manual/instal.org"',
        "error",
        f"{THERE_IS_NO_FILE} instal.org. Did you mean install.org?",
    ),
    ('"read" :name "manual/install.org" :start 9', "error", "manual/install.org has only 5 lines."),
]


@pytest.mark.parametrize(("words", "status", "sentence"), REFUSED)
def test_what_cannot_be_read_is_told(opened: Path, words: str, status: str, sentence: str) -> None:
    result = reading(opened).pass_through(f"(sources {words})")
    assert (result.status, result.message) == (status, sentence)


def test_a_file_that_is_too_large_is_told(opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.knowledge.sources.MAX_BYTES", 10)
    result = reading(opened).pass_through('(sources "read" "manual/install.org")')
    assert result.message == "manual/install.org is larger than 10 bytes."


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ('(deny (sources :name (matches "manual/more/.*")))', "denied"),
        ('(deny (read-file :path (under "manual/more")))', "denied"),
        ('(deny (sources :name "facts"))', "ok"),
    ],
)
def test_a_rule_denies_reading_one(opened: Path, rule: str, status: str) -> None:
    files(opened, {"rules.hy": rule})
    services = HostServices(sources={"manual": opened / "manual", "facts": opened / "facts.txt"})
    with Agent(workspace=opened, policy=opened / "rules.hy", services=services) as here:
        assert here.call('(sources "read" "manual/more/deep.org")').status == status


def test_what_belongs_to_quoth_itself_is_not_read(opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_STATE", str(opened / "manual/more"))
    here = reading(opened)
    assert here.pass_through('(sources "read" "manual/more/deep.org")').status == "denied"
    assert "deep" not in here.pass_through('(sources "read" "manual")').value


def test_the_tool_is_shown_only_where_there_are_sources(opened: Path) -> None:
    with Agent(workspace=opened / "work") as here:
        assert "sources" not in here.table.shown
    with Agent(workspace=opened / "work", services=HostServices(sources={"m": opened / "manual"})) as here:
        assert "sources" in here.table.shown


NAMES = "letters, digits, dots and hyphens, not"
NONE = [
    ("manual", "--source must be NAME=PATH, such as manual=docs/manual, not 'manual'."),
    ("a b=.", f"The name of a source must be {NAMES} 'a b'."),
    ("a=", "The source a has no path. Write NAME=PATH, such as manual=docs/manual."),
    ("a=none", f"The source a {CANNOT_BE_OPENED}: none: No such file or directory."),
    ("a=/dev/null", "The source a is neither a folder nor a regular file: /dev/null."),
]


@pytest.mark.parametrize(("word", "sentence"), NONE)
def test_what_is_no_source_is_told(word: str, sentence: str) -> None:
    assert complaint(UsageError, lambda: sources_of([word])) == sentence


def test_a_name_is_given_once() -> None:
    assert complaint(UsageError, lambda: sources_of(["a=.", "a=.."])) == f"--source a {IS_GIVEN_TWICE}."
