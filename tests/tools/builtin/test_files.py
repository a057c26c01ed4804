"""The file tools, through the door: what they read, write and find, and how they say what they cannot."""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from pathlib import Path
from typing import Any

import pytest
from pictures import png
from sentences import (
    DOES_NOT_CONTAIN_THAT_TEXT,
    IS_A_BINARY_FILE_OF,
    IS_LONGER_THAN,
    IS_NOT_A_REGULAR_EXPRESSION,
    IS_NOT_A_REGULAR_FILE,
    IS_NOT_UTF_8_TEXT,
    IS_OUTSIDE_THE_WORKSPACE,
    IT_WRITES_FILES,
    LIST_FILES_SHOWS_WHAT_IS,
    NOTHING_WAS_CHANGED,
    THERE_IS_NO_FILE,
)
from words import Gateway, complaint, files, form, gateway, shipped, tool

from quoth import cognitive_tools
from quoth.tools.call.call import ALLOW
from quoth.tools.errors import ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.param_types import WorkspacePath


class Yes:
    """Consent that is always given."""

    async def request(self, *_: Any) -> Any:
        return ALLOW


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return files(
        tmp_path / "home",
        {
            "notes.txt": "one\ntwo\nthree\n",
            "src/main.py": "def main():\n    return 1\n",
            "src/util.py": "def helper():\n    pass\n",
            "docs/read.me": "Nothing.\n",
        },
    )


@pytest.fixture
def here(home: Path) -> Gateway:
    files(home.parent, {"outside.txt": "secret"})
    return shipped(home, consent=Yes())


def call(name: str, **args: Any) -> CallForm:
    return CallForm(name, {key.replace("_", "-"): value for key, value in args.items()})


# Examples, guards


def test_every_example_of_the_tools_that_ship_fits_its_tool(here: Gateway) -> None:
    for made in here.door.table:
        for example in made.examples:
            assert here.pass_through(example).status != "invalid"


ESCAPES = ["../outside.txt", "/etc/passwd", "~/x", "out", "away/outside.txt"]
REACHING = [
    ("read-file", {}),
    ("list-files", {}),
    ("grep-search", {"pattern": "s"}),
    ("write-file", {"content": "x"}),
    ("edit-file", {"old": "secret", "new": "x"}),
]


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize(("name", "args"), REACHING)
def test_the_guard_of_every_file_tool_denies_a_way_out(
    here: Gateway, home: Path, name: str, args: dict[str, Any], path: str
) -> None:
    (home / "out").symlink_to("../outside.txt")
    (home / "away").symlink_to("..")
    result = here.pass_through(call(name, path=path, **args))
    assert (result.status, result.message) == (
        "denied",
        f"{name} was denied: {path} {IS_OUTSIDE_THE_WORKSPACE} {home}.",
    )
    assert (home.parent / "outside.txt").read_text() == "secret"


@pytest.mark.parametrize(("name", "args"), REACHING)
def test_every_tool_with_a_path_is_guarded(name: str, args: dict[str, Any]) -> None:
    made = cognitive_tools.get(name)
    assert made.guarded
    assert set(args) <= {param.name for param in made.params}
    paths = {made.name for made in cognitive_tools if "path" in {param.name for param in made.params}}
    assert paths == {name for name, _ in REACHING}


@pytest.mark.parametrize("name", ["write-file", "edit-file"])
def test_writing_asks_first(home: Path, name: str) -> None:
    args = {"content": "x"} if name == "write-file" else {"old": "one", "new": "1"}
    result = shipped(home).pass_through(call(name, path="notes.txt", **args))
    assert (result.status, result.message) == (
        "pending",
        f"{name} waits for a person's approval: {IT_WRITES_FILES}.",
    )
    assert (home / "notes.txt").read_text() == "one\ntwo\nthree\n"


# read-file


def test_a_text_is_read(here: Gateway) -> None:
    result = here.pass_through('(read-file "notes.txt")')
    assert (result.value, result.message) == ("one\ntwo\nthree\n", "")


@pytest.mark.parametrize(
    ("args", "value", "message"),
    [
        ({"start": 2}, "two\nthree\n", ""),
        ({"start": 2, "limit": 1}, "two\n", "Lines 2 to 2 of 3; read on with :start 3."),
        ({"limit": 2}, "one\ntwo\n", "Lines 1 to 2 of 3; read on with :start 3."),
        ({"start": 3, "limit": 9}, "three\n", ""),
    ],
)
def test_some_lines_are_read_and_what_is_left_is_told(
    here: Gateway, args: dict[str, int], value: str, message: str
) -> None:
    result = here.pass_through(call("read-file", path="notes.txt", **args))
    assert (result.value, result.message) == (value, message)


def test_reading_on_as_told_reads_every_line_once(here: Gateway, home: Path) -> None:
    text = "".join(f"line {n} {'x' * 300}\n" for n in range(5000))
    files(home, {"long.txt": text})
    parts, start = [], 1
    while True:
        result = here.pass_through(call("read-file", path="long.txt", start=start))
        assert len(result.value) <= 200_000
        if "read on with :start " not in result.message:
            parts.append(result.value)
            break
        start = int(result.message.rsplit(" ", 1)[1].rstrip("."))
        cut = "is cut after" in result.message
        parts.append(result.value[: result.value.rindex("\n") + 1] if cut else result.value)
    assert "".join(parts) == text


def test_an_empty_file_is_an_empty_text(here: Gateway, home: Path) -> None:
    files(home, {"empty": ""})
    assert here.pass_through('(read-file "empty")').value == ""


@pytest.mark.parametrize("text", ["a\r\nb\r\n", "\ufeffbom", "a\fb\u2028c\n", "no end", "é🙂\n", "\r"])
def test_a_text_is_given_as_it_is(here: Gateway, home: Path, text: str) -> None:
    files(home, {"odd.txt": text})
    assert here.pass_through('(read-file "odd.txt")').value == text


def test_an_image_is_a_value_with_its_size(here: Gateway, home: Path) -> None:
    files(home, {"red.png": png(8, 6), "gif.txt": "GIF89a begins such a file.\n"})
    result = here.pass_through('(read-file "red.png")')
    shown = {"name": "red.png", "type": "image/png", "width": 8, "height": 6}
    assert (result.value, result.message) == ({"image": "", **shown}, "An image, 8x6.")
    assert here.pass_through('(read-file "gif.txt")').value == "GIF89a begins such a file.\n"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (png(8, 6)[:18], "x.png looks like an image (image/png), but its header is broken."),
        (
            png(8, 6) + b"0" * 5_000_000,
            "x.png is an image of more than 5,000,000 bytes, too large for a model.",
        ),
    ],
)
def test_an_image_that_cannot_be_shown_is_told(here: Gateway, home: Path, data: bytes, sentence: str) -> None:
    files(home, {"x.png": data})
    result = here.pass_through('(read-file "x.png")')
    assert (result.status, result.message) == ("error", sentence)


UNREADABLE = [
    ("bin", b"a\0b", f"bin {IS_A_BINARY_FILE_OF} 3 bytes."),
    ("latin", b"caf\xe9", f"latin {IS_NOT_UTF_8_TEXT} (4 bytes)."),
    ("utf16", "hé".encode("utf-16"), f"utf16 {IS_A_BINARY_FILE_OF} 6 bytes."),
    ("big", b"x" * 5_000_001, "big is larger than 5000000 bytes; search it with grep-search."),
]


@pytest.mark.parametrize(("name", "data", "sentence"), UNREADABLE)
def test_what_is_no_text_is_told(here: Gateway, home: Path, name: str, data: bytes, sentence: str) -> None:
    files(home, {name: data})
    for wish in (call("read-file", path=name), call("edit-file", path=name, old="a", new="b")):
        result = here.pass_through(wish)
        assert (result.status, result.message) == ("error", sentence)


FAULTS: list[tuple[CallForm, str]] = [
    (call("read-file", path="src"), f"src is a folder; {LIST_FILES_SHOWS_WHAT_IS}."),
    (call("read-file", path="."), f". is a folder; {LIST_FILES_SHOWS_WHAT_IS}."),
    (call("read-file", path="note.txt"), f"{THERE_IS_NO_FILE} note.txt. Did you mean notes.txt?"),
    (
        call("read-file", path="Src/main.py"),
        'There is no file Src/main.py. There is src/main.py. To read it: (read-file :path "src/main.py")',
    ),
    (call("read-file", path="notes.txt", start=4), "notes.txt has only 3 lines."),
    (call("read-file", path="pipe"), f"pipe {IS_NOT_A_REGULAR_FILE}."),
    (call("list-files", path="scr"), f"{THERE_IS_NO_FILE} scr. Did you mean src?"),
    (call("grep-search", pattern="x", path="scr"), f"{THERE_IS_NO_FILE} scr. Did you mean src?"),
    (
        call("grep-search", pattern="(", path="."),
        f"( {IS_NOT_A_REGULAR_EXPRESSION}: missing ) at position 1.",
    ),
    (call("grep-search", pattern="(a{100}){9999}"), "(a{100}){9999} repeats too much; use smaller counts."),
    (call("grep-search", pattern="x" * 2001), f"The pattern {IS_LONGER_THAN} 2000 characters."),
    (
        call("edit-file", path="notes.txt", old="four", new="4"),
        f"notes.txt {DOES_NOT_CONTAIN_THAT_TEXT}; read the file and copy it exactly.",
    ),
    (
        call("edit-file", path="notes.txt", old="t", new="T"),
        'notes.txt contains that text 2 times; give more of it, such as :old "two" or "three", or :all True.',
    ),
    (call("edit-file", path="notes.txt", old="", new="x"), "The text to replace is empty."),
    (call("edit-file", path="gone", old="a", new="x"), f"{THERE_IS_NO_FILE} gone."),
    (call("write-file", path="src", content="x"), "src is a folder."),
    (call("write-file", path="notes.txt/x", content="x"), "notes.txt/x: not a directory."),
    (
        call("write-file", path="big", content="x" * 5_000_001),
        f"big: the text {IS_LONGER_THAN} 5000000 bytes.",
    ),
]


@pytest.mark.parametrize(("wish", "sentence"), FAULTS, ids=lambda value: str(value)[:60])
def test_what_cannot_be_done_is_told_and_nothing_is_changed(
    here: Gateway, home: Path, wish: CallForm, sentence: str
) -> None:
    os.mkfifo(home / "pipe")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    result = here.pass_through(wish)
    assert (result.status, result.message, result.side_effects) == ("error", sentence, ())
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


# write-file, edit-file


def test_a_file_is_written_and_the_effect_told(here: Gateway, home: Path) -> None:
    result = here.pass_through(call("write-file", path="new/x.txt", content="é\r\n"))
    assert (result.value, result.side_effects) == ("Created new/x.txt, 4 bytes.", ("created:new/x.txt",))
    assert (home / "new/x.txt").read_bytes() == "é\r\n".encode()
    result = here.pass_through(call("write-file", path="new/x.txt", content=""))
    assert (result.value, result.side_effects) == ("Replaced new/x.txt, no bytes.", ("wrote:new/x.txt",))


def test_one_piece_is_replaced_and_the_rest_stays(here: Gateway, home: Path) -> None:
    files(home, {"crlf.txt": "a\r\nb\r\nc\r\n"})
    (home / "crlf.txt").chmod(0o751)
    result = here.pass_through(call("edit-file", path="crlf.txt", old="b\r\n", new="B$1\\n\r\n"))
    assert result.value == "Replaced 1 in crlf.txt.\n@@ line 1 @@\n a\n-b\n+B$1\\n\n c"
    assert result.side_effects == ("wrote:crlf.txt",)
    assert (home / "crlf.txt").read_bytes() == b"a\r\nB$1\\n\r\nc\r\n"
    assert (home / "crlf.txt").stat().st_mode & 0o777 == 0o751


def test_no_place_is_offered_that_has_the_text_twice_itself(here: Gateway, home: Path) -> None:
    files(home, {"box.ini": "[web]\non = 1\non = 1 ; index\n"})
    result = here.pass_through(call("edit-file", path="box.ini", old="on = 1", new="on = 0"))
    assert result.message == "box.ini contains that text 2 times; give more of it, or :all True."


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (b"a\r\nb\r\nc\r\n", {"old": "a\nb", "new": "x\ny"}, b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", {"old": "b", "new": "x\ny"}, b"a\r\nx\r\ny\r\n"),
        (b"a\r\n", {"new": "x\ny"}, b"a\r\nx\r\ny\r\n"),
        (b"a\r\n", {"old": "\r\n", "new": "\n"}, b"a\n"),
        (b"a\nb\r\n", {"old": "a\nb", "new": "x\ny"}, b"x\ny\r\n"),
    ],
)
def test_a_line_feed_means_the_line_ends_of_the_file(
    here: Gateway, home: Path, before: bytes, edit: dict[str, str], after: bytes
) -> None:
    (home / "crlf.txt").write_bytes(before)
    assert here.pass_through(call("edit-file", path="crlf.txt", **edit)).ok
    assert (home / "crlf.txt").read_bytes() == after


def test_all_pieces_are_replaced_on_demand(here: Gateway, home: Path) -> None:
    result = here.pass_through('(edit-file "notes.txt" :old "t" :new "T" :all True)')
    assert result.value == "Replaced 2 in notes.txt.\n@@ line 1 @@\n one\n-two\n-three\n+Two\n+Three"
    assert (home / "notes.txt").read_text() == "one\nTwo\nThree\n"


def test_several_pieces_are_replaced_one_after_the_other_and_shown_where_they_are(
    here: Gateway, home: Path
) -> None:
    files(home, {"long.txt": "".join(f"line {n}\n" for n in range(1, 13))})
    edits = [["line 2\n", "second\nand more\n"], ["line 11\n", ""], ["second", "2nd"]]
    assert here.pass_through(call("edit-file", path="long.txt", edits=edits)).value == (
        "Replaced 3 in long.txt.\n"
        "@@ line 1 @@\n line 1\n-line 2\n+2nd\n+and more\n line 3\n line 4\n"
        "@@ line 10 @@\n line 9\n line 10\n-line 11\n line 12"
    )


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ("one\n", "two", "one\ntwo\n"),
        ("one\n", "two\n", "one\ntwo\n"),
        ("one", "two", "one\ntwo"),
        ("", "two", "two"),
    ],
)
def test_without_an_old_text_lines_are_added_at_the_end(
    here: Gateway, home: Path, before: str, new: str, after: str
) -> None:
    files(home, {"list.txt": before})
    told = here.pass_through(call("edit-file", path="list.txt", new=new)).value
    assert ((home / "list.txt").read_text(), told.partition("\n")[0]) == (after, "Added to list.txt.")


def test_a_long_change_is_shown_in_part(here: Gateway, home: Path) -> None:
    files(home, {"long.txt": "x" * 300 + "\n" + "a\n" * 100})
    lines = here.pass_through('(edit-file "long.txt" :old "a" :new "b" :all True)').value.splitlines()
    assert (lines[2], lines[-1], len(lines)) == (" " + "x" * 199 + "…", "… 142 more lines", 62)


def test_a_line_that_is_there_twice_is_told_with_the_line_before_it(here: Gateway, home: Path) -> None:
    (home / "box.ini").write_text("[a]\non = 1\n[b]\non = 1\n")
    result = here.pass_through(call("edit-file", path="box.ini", old="on = 1", new="on = 0"))
    assert ':old "[a]\\non = 1" or "[b]\\non = 1", or :all True.' in result.message


SHAPE = ':edits [["old" "new"] …]'
HALVES: list[tuple[dict[str, Any], str]] = [
    ({}, f"Nothing to replace: give :old and :new, or several at once, {SHAPE}."),
    ({"old": "one"}, 'The edit is incomplete: add :new, the text to put there, or "".'),
    ({"old": "one", "new": "1", "edits": [["a", "b"]]}, f"Give either :old and :new, or {SHAPE}; not both."),
    ({"edits": []}, f":edits is empty; give {SHAPE}."),
    ({"edits": [["one", "1"], ["two"]]}, f"Edit 2 of 2 has 1 text; give {SHAPE}."),
    (
        {"edits": [["one", "1"], ["tow", "2"]]},
        f"{NOTHING_WAS_CHANGED}. Edit 2 of 2: notes.txt {DOES_NOT_CONTAIN_THAT_TEXT}; "
        'read the file and copy it exactly. The nearest line there is :old "two"',
    ),
    (
        {"edits": [["one", "two"], ["two", "2"]]},
        f"{NOTHING_WAS_CHANGED}. Edit 2 of 2: notes.txt contains that text 2 times; "
        "give more of it, or :all True.",
    ),
    ({"edits": [["", "1"], ["a", "b"]]}, "Nothing was changed. Edit 1 of 2: The text to replace is empty."),
]


@pytest.mark.parametrize(("args", "sentence"), HALVES)
def test_of_several_edits_all_are_made_or_none(
    here: Gateway, home: Path, args: dict[str, Any], sentence: str
) -> None:
    result = here.pass_through(call("edit-file", path="notes.txt", **args))
    assert (result.status, result.message, result.side_effects) == ("error", sentence, ())
    assert (home / "notes.txt").read_text() == "one\ntwo\nthree\n"


# list-files


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(list-files)", ["notes.txt", "docs/read.me", "src/main.py", "src/util.py"]),
        ('(list-files "src")', ["src/main.py", "src/util.py"]),
        ('(list-files :pattern "*.py")', ["src/main.py", "src/util.py"]),
        ('(list-files :pattern "src/*")', ["src/main.py", "src/util.py"]),
        ('(list-files "notes.txt")', ["notes.txt"]),
        ('(list-files :pattern "**/*.txt")', ["notes.txt"]),
        ('(list-files :pattern "**/*.py")', ["src/main.py", "src/util.py"]),
        ('(list-files :pattern "src/**/main.py")', ["src/main.py"]),
        ('(list-files :pattern "src*")', ["src/main.py", "src/util.py"]),
        ('(list-files :pattern "src/**")', ["src/main.py", "src/util.py"]),
        ('(list-files :pattern "*.zip")', []),
    ],
)
def test_files_are_listed(here: Gateway, text: str, found: list[str]) -> None:
    assert here.pass_through(text).value == found


def test_a_long_list_is_cut_and_says_so(here: Gateway, home: Path) -> None:
    files(home, {f"many/{n:03}": "" for n in range(20)})
    result = here.pass_through('(list-files "many" :limit 5)')
    assert result.value == [f"many/{n:03}" for n in range(5)]
    assert result.message == "There are more than 5 files; only the first are listed."
    result = here.pass_through('(list-files "many" :limit 20)')
    assert (len(result.value), result.message) == (20, "")


def test_neither_list_nor_search_follows_a_link(here: Gateway, home: Path) -> None:
    (home / "away").symlink_to("..")
    (home / "out.txt").symlink_to("../outside.txt")
    (home / "loop").symlink_to(".")
    assert len(here.pass_through("(list-files)").value) == 4
    assert here.pass_through('(grep-search "secret")').value == []


LEFT_OUT = "Skipped 1 file and 1 folder named in .gitignore; :all True includes them."


@pytest.mark.parametrize("form", ['(list-files "."{})', '(grep-search "def" "."{})'])
def test_what_gitignore_names_is_left_out_and_that_is_told(here: Gateway, home: Path, form: str) -> None:
    files(home, {".gitignore": "util.py\nbuild/\n", "build/made.py": "def made():\n"})

    def found(more: str = "") -> tuple[set[str], str]:
        result = here.pass_through(form.format(more))
        paths = {one if isinstance(one, str) else one["path"] for one in result.value}
        return {path for path in paths if path.endswith(".py")}, result.message

    assert found() == ({"src/main.py"}, LEFT_OUT)
    assert found(" :all True") == ({"src/main.py", "src/util.py", "build/made.py"}, "")
    assert here.pass_through('(list-files "build")').value == ["build/made.py"]


# grep-search


def test_hits_have_path_line_and_text(here: Gateway) -> None:
    assert here.pass_through('(grep-search "def (m|h)" "src")').value == [
        {"path": "src/main.py", "line": 1, "text": "def main():"},
        {"path": "src/util.py", "line": 1, "text": "def helper():"},
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('(grep-search "def")', 2),
        ('(grep-search "def" :glob "main*")', 1),
        ('(grep-search "two" "notes.txt")', 1),
        ('(grep-search "^t")', 2),
        ('(grep-search "(?i)NOTHING")', 1),
        ('(grep-search "zzz")', 0),
        (r'(grep-search r"\d{1,3}")', 1),
        ('(grep-search "[({]")', 2),
    ],
)
def test_a_search_finds_what_is_there(here: Gateway, text: str, count: int) -> None:
    assert len(here.pass_through(text).value) == count


def test_many_hits_are_cut_and_long_lines_too(here: Gateway, home: Path) -> None:
    files(home, {"x.txt": "hit\n" * 10, "y.txt": "hit" + "y" * 1000})
    result = here.pass_through('(grep-search "hit" :limit 3)')
    assert [hit["line"] for hit in result.value] == [1, 2, 3]
    assert result.message == "There are more than 3 hits; only the first are shown."
    result = here.pass_through('(grep-search "hit" :limit 11)')
    assert (len(result.value), result.message) == (11, "")
    assert len(result.value[-1]["text"]) == 300


def test_binary_and_huge_files_are_passed_over(here: Gateway, home: Path) -> None:
    files(home, {"bin": b"hit\0", "huge": b"hit\n" + b"x" * 5_000_000, "latin": b"hit caf\xe9\n"})
    result = here.pass_through('(grep-search "hit")')
    assert result.value == [{"path": "latin", "line": 1, "text": "hit caf\ufffd"}]
    assert result.message == "Skipped 1 file larger than 5 MB (huge)."


def test_a_huge_file_is_passed_over_by_its_size_alone(
    here: Gateway, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefilter = importlib.import_module("quoth.tools.builtin.prefilter")
    read: list[str] = []
    real = prefilter._bytes_of
    monkeypatch.setattr(prefilter, "_bytes_of", lambda file: read.append(file.name) or real(file))
    for name in ("a.log", "b.log", "c.log", "d.log"):
        (home / name).touch()
        os.truncate(home / name, 2_000_000_000)
    result = here.pass_through('(grep-search "hit")')
    assert (result.value, result.message) == (
        [],
        "Skipped 4 files larger than 5 MB (a.log, b.log, c.log and 1 more).",
    )
    assert read
    assert not [name for name in read if name.endswith(".log")]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("**/*.py", {"src/main.py", "top.py"}),
        ("src/*.py", {"src/main.py"}),
        ("src/**/*.py", {"src/main.py"}),
        ("*.py", {"src/main.py", "top.py"}),
        ("**/main.py", {"src/main.py"}),
        ("**/top.py", {"top.py"}),
    ],
)
def test_a_search_takes_the_patterns_that_a_list_takes(
    here: Gateway, home: Path, glob: str, found: set[str]
) -> None:
    files(home, {"top.py": "needle", "src/main.py": "needle", "needle.txt": "needle"})
    hits = here.pass_through(call("grep-search", pattern="needle", glob=glob)).value
    listed = here.pass_through(call("list-files", pattern=glob)).value
    assert {hit["path"] for hit in hits} == found
    assert found <= set(listed)


def test_a_search_that_takes_too_long_gives_the_hits_it_has(
    here: Gateway, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("quoth.tools.builtin.search"), "SECONDS", 0.3)
    files(home, {"early.txt": "aaa\n", "late.txt": "aa\n" + "a" * 60 + "b\n"})
    result = here.pass_through('(grep-search "(a|aa)+$" :glob "*te.txt")')
    assert [(hit["path"], hit["line"]) for hit in result.value] == [("late.txt", 1)]
    result = here.pass_through('(grep-search "(a|aa)+$" :glob "*.txt")')
    assert [hit["path"] for hit in result.value] == ["early.txt", "late.txt"]
    assert result.message == (
        "The search took longer than 0.3 s; use a simpler pattern or a smaller folder."
        " These hits were found before it stopped."
    )


SLOW = '(grep-search "(a|aa)+$" "slow.txt")'


def test_a_pattern_that_backtracks_for_ever_ends_and_holds_nobody_up(
    here: Gateway, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("quoth.tools.builtin.search"), "SECONDS", 0.3)
    files(home, {"slow.txt": "a" * 60 + "b\n"})
    beats: list[float] = []

    async def beat() -> None:
        while True:
            beats.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def go() -> Any:
        heart = asyncio.create_task(beat())
        result = await here.enter(SLOW)
        heart.cancel()
        return result

    result = asyncio.run(go())
    assert (result.status, result.message) == (
        "error",
        "The search took longer than 0.3 s; use a simpler pattern or a smaller folder.",
    )
    assert len(beats) > 5


@pytest.mark.parametrize(
    "pattern",
    [
        "(((a{100}){100}){100}){100}",
        "(" * 150 + "a" + "+)" * 150,
        "(?:(?:a{0,999}){0,999}){0,999}",
        "a{9999999}",
    ],
)
def test_a_pattern_that_would_swallow_the_memory_is_refused_unread(here: Gateway, pattern: str) -> None:
    assert here.pass_through(call("grep-search", pattern=pattern)).message == (
        f"{pattern} repeats too much; use smaller counts."
    )


@pytest.mark.parametrize(
    "pattern",
    [
        r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
        r"(\d{1,3}\.){3}\d{1,3}",
        r"\{\d+\}{2}[(){}]{5}",
        r"((a+)+)+",
        r"^.{0,200}$",
    ],
)
def test_an_everyday_pattern_is_not_mistaken_for_such_a_one(here: Gateway, pattern: str) -> None:
    assert here.pass_through(call("grep-search", pattern=pattern)).status == "ok"


@pytest.mark.parametrize("pattern", ["(" * 400, ")", "[", "*", "a{2,1}", "(?P<x", "\\", "(?<=a+)b\\"])
def test_a_broken_pattern_is_told(here: Gateway, pattern: str) -> None:
    result = here.pass_through(call("grep-search", pattern=pattern))
    assert result.status == "error"
    assert result.message.startswith(f"{pattern} {IS_NOT_A_REGULAR_EXPRESSION}: ")


def test_the_helpers_complain_with_a_sentence() -> None:
    search = importlib.import_module("quoth.tools.builtin.search")
    assert complaint(ToolError, lambda: search.compiled("(")).startswith(f"( {IS_NOT_A_REGULAR_EXPRESSION}")
    assert form("(echo)").tool == "echo"


@pytest.mark.parametrize("call", ["write-file :content 1", "read-file", "edit-file :old 1 :new 2"])
def test_a_line_feed_in_a_name_is_shown_as_an_escape(call: str, home: Path) -> None:
    (home / "a\nb.txt").write_bytes(b"\0")
    name, _, rest = call.replace("1", '"x"').replace("2", '"y"').partition(" ")
    for path in ("a\\nb.txt", "a\\nc.txt"):
        result = shipped(home, consent=Yes()).pass_through(f'({name} :path "{path}" {rest})')
        said = f"{result.value or ''}{result.message}"
        assert "a\\n" in said
        assert "\n" not in said


def test_a_tool_s_own_text_has_the_path_as_it_is(home: Path) -> None:
    (home / "Shot 3.00\u202fPM.txt").write_text("abc")
    read = tool("read", lambda ctx, path: Path(f"{ctx.workspace.root}/{path}").read_text(),
                params={"path": {"type": WorkspacePath}})  # fmt: skip
    assert gateway(read, workspace=home).pass_through('(read "Shot 3.00\u202fPM.txt")').value == "abc"
