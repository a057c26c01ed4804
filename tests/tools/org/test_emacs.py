"""A real Emacs, where there is one: org-element reads what we read, and org-lint has nothing new to say of
what we write."""

from __future__ import annotations

import json
import random
from pathlib import Path

from emacs import EMACS, emacs
from org_lines import LINES
from words import files

from quoth.agent.plan.model import TODO_WORDS
from quoth.tools.org.document import Org, dump, load
from quoth.tools.org.edit import add_to_drawer, put_entry_results, put_results, set_todo

ROOT = Path(__file__).parents[3]
MORNING = Path(__file__).parents[2] / "agent" / "data" / "morning.org"
REAL = [MORNING, ROOT / "plans" / "self-test.org", ROOT / "README.org"]
REAL += sorted((ROOT / "agent" / "manual").glob("*.org"))
REAL += sorted(Path("/usr/share/emacs").glob("*/etc/ORG-NEWS"))

SEEN = r"""
(require 'org) (require 'org-lint) (require 'json)
(defun our-line (place) (line-number-at-pos place t))
(defun our-seen ()
  (let (heads blocks)
    (org-element-map (org-element-parse-buffer 'element) '(headline src-block example-block)
      (lambda (e)
        (if (eq (org-element-type e) 'headline)
            (push (list (org-element-property :level e)
                        (or (org-element-property :todo-keyword e) "")
                        (let ((p (org-element-property :priority e))) (if p (char-to-string p) ""))
                        (org-element-property :raw-value e)
                        (vconcat (org-element-property :tags e))
                        (let ((place (org-element-property :begin e)) (found nil))
                          (dolist (one (org-entry-properties place 'standard) (vconcat found))
                            (unless (member (car one) '("CATEGORY" "FILE"))
                              (setq found (append found (list (vector (car one) (cdr one)))))))))
                  heads)
          (push (list (symbol-name (org-element-type e))
                      (our-line (org-element-property :post-affiliated e))
                      (or (org-element-property :name e) "") (or (org-element-property :language e) "")
                      (org-element-property :value e))
                blocks))))
    (list (vconcat (nreverse heads)) (vconcat (nreverse blocks)))))
(defun our-lint ()
  (vconcat (mapcar (lambda (one) (aref (cadr one) 2))
                   (org-lint--generate-reports (current-buffer) org-lint--checkers))))
(let (all)
  (dolist (file command-line-args-left)
    (with-temp-buffer
      (let ((coding-system-for-read 'utf-8-unix)) (insert-file-contents file))
      (setq tab-width 8) (let ((org-mode-hook nil)) (org-mode))
      (push (list file (our-seen) (if (getenv "LINT") (our-lint) [])) all)))
  (setq command-line-args-left nil)
  (princ (json-encode (vconcat (nreverse all)))))
"""

Seen = tuple[list[object], list[object]]


def asked(tmp_path: Path, *paths: Path, lint: bool = False) -> list[tuple[Seen, list[str]]]:
    """What org-element sees in each file, and what org-lint says of it."""
    script = '(setenv "LINT" "1")' + SEEN if lint else SEEN
    return [
        ((seen[0], seen[1]), said) for _, seen, said in json.loads(emacs(tmp_path, *paths, script=script))
    ]


def ours(org: Org) -> Seen:
    """The same, as we see it."""
    heads: list[object] = []
    blocks: list[object] = []
    for entry in org.entries:
        if entry.level:
            found: dict[str, str] = {}
            for one in entry.properties:
                name = one.name.upper()
                found[name] = f"{found[name]} {one.value}" if one.more and name in found else one.value
            title = entry.title
            heads.append(
                [entry.level, entry.todo, entry.priority, title, list(entry.tags), sorted(found.items())]
            )
        for one in entry.elements:
            if one.kind == "block" and one.name in ("SRC", "EXAMPLE"):
                name = one.key("NAME")
                language = one.value.split(maxsplit=1)[0] if one.name == "SRC" and one.value else ""
                blocks.append([one.first + 1, name.value if name else "", language])
    return heads, blocks


def theirs(seen: Seen) -> Seen:
    """What Emacs sees, without what is not compared: the texts of blocks."""
    heads = [[*head[:5], sorted((name, value) for name, value in head[5])] for head in seen[0]]  # type: ignore[index]
    return heads, [[line, name, language] for _, line, name, language, _ in seen[1]]  # type: ignore[misc]


if EMACS:

    def test_org_element_sees_what_we_see_in_real_files(tmp_path: Path) -> None:
        for path, (seen, _) in zip(REAL, asked(tmp_path, *REAL), strict=True):
            assert theirs(seen) == ours(load(path.read_bytes())), path.name

    def test_org_element_sees_what_we_see_in_made_files(tmp_path: Path) -> None:
        chance = random.Random(7)
        lines = [
            line for line in LINES if "COMMENT" not in line and "\x0b" not in line and "2026" not in line
        ]
        paths = []
        for number in range(120):
            text = "\n".join(chance.choices(lines, k=chance.randrange(1, 40))) + "\n"
            paths.append(files(tmp_path, {f"{number}.org": text}) / f"{number}.org")
        for path, (seen, _) in zip(paths, asked(tmp_path, *paths), strict=True):
            assert theirs(seen) == ours(load(path.read_bytes())), path.read_text()

    def test_org_lint_has_nothing_new_to_say_of_what_we_write(tmp_path: Path) -> None:
        texts = [
            "5",
            "",
            "* a\n#+end_example\n:END:",
            "\n".join(f"* {n}\n#+TITLE: x" for n in range(9)),
            ": 5\n| a",
        ]
        paths: list[Path] = []
        for path in REAL[:2]:
            org = load(path.read_bytes(), TODO_WORDS)
            before = [(one.level, one.title, one.tags) for one in org.entries]
            for index in range(1, len(org.entries)):
                org = add_to_drawer(set_todo(org, index, "RUNNING"), index, "LOGBOOK", "done: * x")
                org = put_entry_results(org, index, f"said-{index}", texts[index % len(texts)])
                for block in range(len(org.code(index))):
                    org = put_results(org, index, block, texts[(index + block) % len(texts)])
            assert [(one.level, one.title, one.tags) for one in org.entries] == before
            written = tmp_path / path.name
            written.write_bytes(dump(org))
            paths += [path, written]
        found = asked(tmp_path, *paths, lint=True)
        for (_, lint), (seen, now), path in zip(found[::2], found[1::2], paths[1::2], strict=True):
            assert sorted(now) == sorted(lint)
            assert theirs(seen) == ours(load(path.read_bytes()))

    def test_org_lint_would_say_it(tmp_path: Path) -> None:
        path = files(tmp_path, {"a.org": "#+begin_example\ntext\n* a\n:X:\n"}) / "a.org"
        ((_, lint),) = asked(tmp_path, path, lint=True)
        assert len(lint) == 2

    def test_our_escapes_are_those_of_org(tmp_path: Path) -> None:
        said = "\n".join(["* a", "  * b", ",* c", "#+d", ",,#+e", "*f", ": g", "h", ",i", "\t#+j"])
        org = put_results(load(b"#+begin_src hy\n1\n#+end_src\n"), 0, 0, said)
        path = tmp_path / "a.org"
        path.write_bytes(dump(org))
        (((_, blocks), _),) = asked(tmp_path, path)
        assert blocks[1][4] == said + "\n"  # type: ignore[index]
