"""A session as a page: calls as a tree, durations, verdicts and tokens. Nothing that was said runs in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browser import BROWSER, seen_in_browser
from sentences import THERE_IS_A_FILE
from words import files, quoth

EVIL = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
REPLIES = f"""It is {EVIL}.
(eval :form (len (read-file :path "a.txt")))
---
(write-file :path "b.txt" :content {json.dumps(EVIL)})
(read-file :path "none</pre>{EVIL.replace('"', "")}")
---
Done."""


def worked(folder: Path) -> Path:
    files(folder, {"a.txt": EVIL, "r.txt": REPLIES})
    task = ["run", f"Look at {EVIL}", "--model", "scripted:r.txt", "--session", "s1", "--no-input"]
    assert quoth(*task, cwd=folder).code == 3
    assert quoth("log", "s1", "--html", cwd=folder).out == "s1.html\n"
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worked(tmp_path_factory.mktemp("shop"))


def page(folder: Path) -> str:
    return (folder / "s1.html").read_text()


def test_a_page_tells_calls_verdicts_and_durations(folder: Path) -> None:
    text = page(folder)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))
    assert re.search(r"\(eval :form .{,60} ok \d+ ms policy: allow", words)
    assert re.search(r"\(read-file :path &quot;a.txt&quot;\) ok \d+ ms", words)
    assert re.search(r"\(write-file .* pending \d+ ms", words)
    assert "calls 4" in words
    assert text.index("(eval :form") < text.index("(read-file :path &quot;a.txt") < text.index("(write-file")


def test_no_word_of_a_session_is_markup(folder: Path) -> None:
    text = page(folder)
    assert "<script" not in text
    assert "<img" not in text
    assert "default-src 'none'" in text


def test_a_page_is_written_once_and_to_stdout_if_asked(tmp_path: Path) -> None:
    text, folder = page(worked(tmp_path)), tmp_path
    again = quoth("log", "s1", "--html", cwd=folder)
    assert (again.code, again.err) == (2, f"quoth: {THERE_IS_A_FILE} s1.html already.\n")
    assert quoth("log", "s1", "--html", "-", cwd=folder).out == text
    assert json.loads(quoth("log", "s1", "--html", "c.html", "--json", cwd=folder).out)["file"] == "c.html"


if BROWSER:

    def test_a_browser_shows_it_and_runs_nothing(folder: Path) -> None:
        seen = seen_in_browser(folder / "s1.html")
        assert "<title>Session s1</title>" in seen
        assert seen.count("<details") >= 4
        text = re.sub("<meta http-equiv[^>]*>", "", page(folder))
        evil = folder / "evil.html"  # the browser would run what is markup
        evil.write_text(text.replace("<h1>", f"{EVIL}<h1>"))
        assert "<title>ran</title>" in seen_in_browser(evil)
        evil.write_text(page(folder).replace("<h1>", f"{EVIL}<h1>"))
        assert "<title>ran</title>" not in seen_in_browser(evil)  # and the page forbids it once more
