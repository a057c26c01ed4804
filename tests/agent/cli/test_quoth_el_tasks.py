"""plans/emacs/quoth.el: tasks that stream into a buffer, flights beside it, mistakes and the agenda."""

from __future__ import annotations

import json
from pathlib import Path

from emacs import EMACS, emacs_screen, in_emacs
from words import files, lines, quoth

TODO = "#+TODO: PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED"
WRITE = '(write-file :path "b.txt" :content "two\\n")'
REPLIES = f"First words.\n{WRITE}\n---\nIt is written.\n---\nAgain.\n"


def step(title: str, body: str) -> str:
    return lines(f"* PLAN {title}", "#+begin_src hy", body, "#+end_src")


if EMACS:

    def test_a_paragraph_is_sent_and_its_answer_comes_behind_it(tmp_path: Path) -> None:
        files(tmp_path, {"r.txt": "Grüße 😀\n", "a.org": "One\ntask.\n\nOther text.\n"})
        script = """
          (setq quoth-model "scripted:r.txt")
          (find-file "a.org")
          (quoth-send)
          (tell "beside")
          (settle) (tell said-last)
          (goto-char (point-max)) (insert "\\nMore.\\n") (forward-line -1)
          (quoth-send) (settle)
          (tell quoth-session)
          (save-buffer)
        """
        beside, last, session = in_emacs(tmp_path, script)
        assert (beside, last) == ("beside", f"quoth: done, session {session}")
        text = (tmp_path / "a.org").read_text()
        assert text == "One\ntask.\n\nGrüße 😀\n\nOther text.\n\nMore.\n\nGrüße 😀\n"
        (kept,) = json.loads(quoth("sessions", "--json", cwd=tmp_path).out)
        assert (kept["id"], kept["runs"], kept["task"]) == (session, 2, "One task.")

    def test_a_task_that_waits_continues_where_it_stopped_once_it_is_approved(tmp_path: Path) -> None:
        files(tmp_path, {"r.txt": REPLIES, "a.org": "Write it.\n"})
        script = """
          (setq quoth-model "scripted:r.txt")
          (fset 'y-or-n-p (lambda (question) t))
          (quoth-waits-mode)
          (find-file "a.org")
          (quoth-send) (settle)
          (tell said-last)
          (tell (quoth--waits-text))
          (quoth-pending) (settle)
          (goto-char (point-min))
          (search-forward "b.txt")
          (call-interactively #'quoth-pending-approve) (settle)
          (set-buffer "a.org")
          (tell (quoth--waits-text) ".")
          (save-buffer)
          (quoth-undo) (settle)
        """
        assert in_emacs(tmp_path, script) == ["quoth waits for you: M-x quoth-pending", " Q:1", " ."]
        assert (tmp_path / "a.org").read_text() == "Write it.\n\nFirst words.\n\nIt is written.\n"
        assert not (tmp_path / "b.txt").exists(), "undo has taken it back"

    def test_a_program_that_waited_is_resumed_and_its_value_is_shown(tmp_path: Path) -> None:
        waits = quoth("eval", WRITE, "--session", "s1", "--json", cwd=tmp_path)
        assert quoth("approve", json.loads(waits.out)["request"], cwd=tmp_path).code == 0
        script = '(find-file "a.org") (quoth-resume "s1") (settle) (tell said-last)'
        assert in_emacs(tmp_path, script) == ["quoth: ok: Created b.txt, 4 bytes."]

    def test_the_region_and_choices_are_sent(tmp_path: Path) -> None:
        files(tmp_path, {"r.txt": "Yes.", "more.hy": "(deny (write-file))"})
        script = """
          (fset 'completing-read (lambda (question &rest _)
                                   (if (string-prefix-p "Model" question) "scripted:r.txt" "")))
          (with-current-buffer (get-buffer-create "notes")
            (insert "not this THIS not that")
            (setq quoth-session "s1" quoth-plan t quoth-rules "more.hy")
            (transient-mark-mode 1)
            (goto-char 10) (push-mark 14 t t)
            (quoth-send '(4))
            (tell quoth-session)
            (settle)
            (tell (mapconcat #'identity (split-string (buffer-string) "\\n") "/")))
        """
        assert in_emacs(tmp_path, script) == ["nil", "not this THIS//Yes. not that"]
        (kept,) = json.loads(quoth("sessions", "--json", cwd=tmp_path).out)
        assert kept["task"] == "THIS"

    def test_a_mistake_of_the_settings_is_shown(tmp_path: Path) -> None:
        script = """
          (with-temp-buffer
            (insert "Hello")
            (setq quoth-model "opnai:x")
            (quoth-send) (settle) (tell said-last)
            (setq quoth-command '("no-such-quoth"))
            (tell (said #'quoth-send)))
        """
        first, second = in_emacs(tmp_path, script)
        assert "openai" in first
        assert second == "The program no-such-quoth is not found; set quoth-command"

    def test_a_task_is_stopped(tmp_path: Path) -> None:
        files(tmp_path, {"slow.hy": "(import time)\n(defn reply [#* _]\n  (time.sleep 3)\n  1)"})
        script = """
          (setq quoth-model "scripted:slow.hy")
          (with-temp-buffer
            (insert "Hello")
            (quoth-send)
            (tell (said #'quoth-send))
            (accept-process-output nil 1)
            (quoth-stop) (settle)
            (tell (said #'quoth-stop)))
        """
        first, second = in_emacs(tmp_path, script)
        assert first == "A task still writes into this buffer; M-x quoth-stop ends it"
        assert second == "No task writes into this buffer"

    def test_a_flight_shows_each_step_in_the_plan_and_says_that_it_waits(tmp_path: Path) -> None:
        plan = TODO + "\n" + step("one", "(+ 1 2)") + step("two", '(write-file :path "b.txt" :content "x")')
        files(tmp_path, {".git/HEAD": "x", "sub/plan.org": plan})
        script = """
          (find-file "sub/plan.org")
          (search-forward "PLAN two")
          (defvar seen nil)
          (add-hook 'after-revert-hook
            (lambda () (push (count-matches "^[*] [RP]" (point-min) (point-max)) seen)))
          (let ((flight (quoth-fly buffer-file-name)))
            (settle)
            (tell (and (cdr seen) (< 0 (car (last seen)))) (car seen)) ; while it flies, and at its end
            (tell (buffer-substring (line-beginning-position) (line-end-position)))
            (with-current-buffer flight
              (goto-char (point-max)) (forward-line -1)
              (tell (replace-regexp-in-string " at .*" "" (buffer-substring (point) (line-end-position))))
              (tell (count-matches "exited abnormally" (point-min) (point-max)))))
        """
        each, line, last, abnormal = in_emacs(tmp_path, script)
        assert (each, last, abnormal) == ("t 0", "Flight waits for you", "0")
        assert line == "* WAITING two"

    def test_a_flight_leaves_edits_that_are_not_saved(tmp_path: Path) -> None:
        files(tmp_path, {"plan.org": TODO + "\n" + step("one", "(+ 1 2)")})
        script = """
          (find-file "plan.org")
          (quoth-fly buffer-file-name)
          (goto-char (point-max)) (insert "mine")
          (settle)
          (tell (buffer-modified-p) (count-matches "^mine" (point-min) (point-max)))
        """
        assert in_emacs(tmp_path, script) == ["t 1"]
        assert "DONE one" in (tmp_path / "plan.org").read_text()

    def test_flymake_marks_mistakes_in_plans_and_rules(tmp_path: Path) -> None:
        plan = TODO + "\n" + step("one", '(red-file :path "a.txt")') + step("two", "(+ 1")
        files(tmp_path, {"plan.org": plan, "rules/policy.hy": "(deny (read-file))\n(alow read-file)\n"})
        script = """
          (defun marks (file edit)
            (find-file file)
            (funcall edit)
            (quoth-flymake-setup)
            (quoth-flymake (lambda (found)
              (dolist (one found)
                (tell file (line-number-at-pos (flymake-diagnostic-beg one))
                      (car (split-string (flymake-diagnostic-text one) "[.;]"))))))
            (settle))
          (marks "plan.org" #'ignore)
          (marks "plan.org" (lambda () (goto-char (point-min)) (forward-line) (insert "\\n")))
          (marks "rules/policy.hy" #'ignore)
          (tell (with-temp-buffer (org-mode) (quoth-flymake-setup) flymake-mode))
        """
        tool, closed = "There is no tool or function red-file", "This ( is never closed"
        assert in_emacs(tmp_path, script) == [
            *(f"plan.org 4 {tool}", f"plan.org 8 {closed}"),
            *(f"plan.org 5 {tool}", f"plan.org 9 {closed}"),  # of edits that are not saved
            *("rules/policy.hy 2 There is no rule alow", "nil"),
        ]

    def test_the_agenda_has_the_steps_of_plans_and_the_tasks_of_memory(tmp_path: Path) -> None:
        files(
            tmp_path,
            {
                ".quoth/x": "",
                "plans/week.org": TODO + "\n* PLAN count stock\n* DONE over\n",
                "memory.org": "#+TODO: TODO | DONE\n* TODO water plants\n",
                "notes.org": "* TODO not ours\n",
                "src/a.py": "",
            },
        )
        script = """
          (find-file "src/a.py")
          (quoth-agenda)
          (tell (buffer-substring-no-properties (point-min) (point-max)))
          (org-agenda-redo)
          (tell (count-matches "water plants" (point-min) (point-max)))
        """
        said = in_emacs(tmp_path, script)
        text = "\n".join(said)
        assert "PLAN count stock" in text
        assert "TODO water plants" in text
        assert "not ours" not in text
        assert "over" not in text
        assert said[-1] == "1"

    def test_a_frame_shows_the_menu_what_waits_and_its_number(tmp_path: Path) -> None:
        files(tmp_path, {"r.txt": REPLIES, "a.org": "Write it.\n"})
        script = """
          (setq quoth-model "scripted:r.txt")
          (quoth-waits-mode)
          (find-file "a.org")
          (global-set-key (kbd "C-c q") #'quoth-menu)
        """
        with emacs_screen(tmp_path, script) as screen:
            screen.shows("Write it.")
            screen.type("\x03q")
            screen.shows(
                "Choices", "What waits (0)", "m Model", "scripted:r.txt", "s Session new", "p Plan mode off"
            )
            screen.type("p")
            screen.shows("p Plan mode on")
            screen.type("p")
            screen.shows("p Plan mode off")
            screen.type("\r")
            screen.shows("First words.", "quoth waits for you", "Q:1")
            screen.type("\x03q")
            screen.shows("What waits (1)")
            screen.type("w")
            screen.shows('(write-file :path "b.txt"')
            screen.type("a")
            screen.shows("Approve request", "│ + two")
            screen.type("y")
            screen.shows("quoth: done")
            screen.type("\x18ba.org\r")
            screen.shows("It is written.")
            screen.hides("Q:1")
        assert (tmp_path / "b.txt").read_text() == "two\n"

    def test_you_type_while_the_model_works(tmp_path: Path) -> None:
        waits = '(for [_ (range 1200)] (when (os.path.exists "go") (break)) (time.sleep 0.05))'
        files(tmp_path, {"slow.hy": f'(import os time)\n(defn reply [#* _]\n  {waits}\n  "At last.")'})
        script = """
          (setq quoth-model "scripted:slow.hy")
          (find-file "a.txt")
          (insert "Hello")
          (global-set-key (kbd "C-c s") #'quoth-send)
        """
        with emacs_screen(tmp_path, script) as screen:
            screen.shows("Hello")
            screen.type("\x03s\x1b>mine")
            screen.shows("mine")
            assert "At last." not in screen.text
            (tmp_path / "go").touch()
            screen.shows("At last.", "mine")

    def test_every_file_of_a_project_shows_its_requests_and_its_log(tmp_path: Path) -> None:
        files(tmp_path, {".git/HEAD": "x", "src/deep/a.py": "", "r.txt": f"{WRITE}\n---\nIt waits."})
        assert quoth("run", "Write it.", "--model", "scripted:r.txt", cwd=tmp_path).code == 3
        script = """
          (find-file "src/deep/a.py")
          (quoth-pending) (settle)
          (tell (count-matches "write-file" (point-min) (point-max)) default-directory)
          (find-file "src/deep/a.py")
          (quoth-log "") (settle)
          (set-buffer (window-buffer))
          (tell (count-matches "write-file :path" (point-min) (point-max)))
        """
        waits, logged = in_emacs(tmp_path, script)
        assert waits == f"1 {tmp_path}/"
        assert int(logged) > 0
