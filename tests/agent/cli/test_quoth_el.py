"""plans/emacs/quoth.el in a real Emacs, where there is one: requests are shown and decided, a plan is flown,
a log is read as Org, and Babel runs blocks."""

from __future__ import annotations

from pathlib import Path

from emacs import EMACS, in_emacs
from sentences import THERE_IS_NO_REQUEST
from words import files, lines, quoth

WRITES = (
    '(read-file :path "a.txt")\n---\n'
    '(write-file :path "a.txt" :content "https://two.example\\n")\n'
    '(write-file :path "b.txt" :content "x")\n---\nThey wait.'
)
PLAN = lines(
    "* PLAN one",
    "#+begin_src hy",
    "(+ 1 2)",
    "#+end_src",
    "* PLAN two",
    "#+begin_src hy",
    '(read-file :path "none.txt")',
    "#+end_src",
)
TOOLS = lines(
    "(require quoth [def-cognitive-tool])",
    '(def-cognitive-tool twice "Double a number." :parameters [n {:type int}] :effects [] :body (* 2 n))',
)
BLOCKS = (
    "#+NAME: rows\n| 1 | a/b |\n| 2 | ü😀 |\n\n"
    '#+begin_src quoth :var x=5 rows=rows s="a \\"q\\" $(id) `id`"\n'
    "[x (len rows) (get (get rows 1) 1) s]\n#+end_src\n\n"
    "#+begin_src quoth\n(echo :text 5)\n#+end_src\n\n"
    "#+begin_src quoth :session babel :tools my.hy :workspace sub\n"
    '[(twice :n 21) (read-file :path "here.txt")]\n#+end_src\n'
)

if EMACS:

    def test_what_waits_is_listed_shown_approved_and_denied(tmp_path: Path) -> None:
        files(tmp_path, {"a.txt": "one\n", "r.txt": WRITES})
        assert quoth("run", "Do.", "--model", "scripted:r.txt", "--session", "s1", cwd=tmp_path).code == 3
        script = """
          (fset 'y-or-n-p (lambda (question) (tell question) t))
          (fset 'read-string (lambda (&rest _) "not $(id)"))
          (fset 'completing-read (lambda (question choices &rest _) (tell choices) "-2"))
          (quoth-pending) (settle)
          (tell (count-lines (point-min) (point-max)))
          (goto-char (point-min))
          (search-forward "a.txt")
          (call-interactively #'quoth-pending-answer) (settle)
          (unless (string-suffix-p "deny it with d" said-last) (tell said-last))
          (call-interactively #'quoth-pending-approve) (settle)
          (with-current-buffer "*quoth request*" (tell major-mode) (tell (buffer-string))
            (font-lock-ensure)
            (search-forward "! ")
            (tell (get-text-property (match-beginning 0) 'face)))
          (tell (count-lines (point-min) (point-max)))
          (goto-char (point-min))
          (search-forward "b.txt")
          (call-interactively #'quoth-pending-deny) (settle)
          (tell (count-lines (point-min) (point-max)))
          (quoth-pending-show "zzzzz") (settle)
          (tell said-last)
          (quoth--wait '("call" "--session" "s2"
                         "(ask-person :question \\"How many?\\" :choices [\\"1\\" \\"-2\\"])") nil)
          (quoth-pending) (settle)
          (goto-char (point-min))
          (search-forward "How many?")
          (call-interactively #'quoth-pending-answer) (settle)
          (tell (nth 1 (quoth--wait '("resume" "s2") nil)))
        """
        said = in_emacs(tmp_path, script)
        assert said[0] == "2"
        assert said[1].startswith("Approve request ")
        assert said[2] == "quoth-request-mode"
        assert [one for one in said if one.startswith("│ ")][1:] == ["│ - one", "│ + https://two.example"]
        assert "! content: the model's own" in said
        assert "warning" in said
        assert said[-6:-4] == ["1", "0"]
        assert said[-4].startswith(f"quoth: {THERE_IS_NO_REQUEST} zzzzz")
        assert said[-3:] == ["(1 -2)", "-2", ""]
        after = quoth("resume", "s1", cwd=tmp_path)
        assert "Replaced a.txt" in after.err
        assert "not $(id)" in after.err
        assert (tmp_path / "a.txt").read_text() == "https://two.example\n"

    def test_a_flight_stops_at_the_step_that_failed(tmp_path: Path) -> None:
        files(tmp_path, {"plan.org": PLAN})
        script = """
          (find-file "plan.org")
          (let ((flight (quoth-fly buffer-file-name)))
            (settle)
            (tell (with-current-buffer "plan.org" (count-matches "^[*] [DF][OA]" (point-min) (point-max))))
            (with-current-buffer flight (goto-char (point-min)))
            (next-error)
            (tell (buffer-name) (line-number-at-pos) (buffer-substring (point) (line-end-position))))
          (quoth-log "") (settle)
          (set-buffer (window-buffer))
          (tell major-mode)
          (goto-char (point-min))
          (tell (if (search-forward "read-file :path" nil t) "logged" (buffer-string)))
        """
        said = in_emacs(tmp_path, script)
        place = (tmp_path / "plan.org").read_text().splitlines().index("* FAILED two") + 1
        assert said == ["2", f"plan.org {place} * FAILED two", "org-mode", "logged"]

    def test_a_flight_is_of_the_project_of_the_current_folder(tmp_path: Path) -> None:
        plan = lines("* PLAN one", "#+begin_src hy", '(list-files :pattern "*.here")', "#+end_src")
        files(
            tmp_path, {"repo/.git/HEAD": "x", "repo/a.here": "", "repo/sub/a.txt": "", "away/plan.org": plan}
        )
        script = """
          (setq default-directory (expand-file-name "repo/sub/"))
          (let ((flight (quoth-fly "../../away/plan.org")))
            (settle)
            (tell (with-current-buffer flight (buffer-string)))
            (tell (with-temp-buffer (insert-file-contents "../../away/plan.org") (buffer-string))))
        """
        said = "\n".join(in_emacs(tmp_path, script))
        assert f'default-directory: "{tmp_path}/repo/"' in said
        assert "* DONE one" in said
        assert "a.here" in said

    def test_babel_runs_blocks_in_a_session_with_tools_and_a_workspace(tmp_path: Path) -> None:
        files(tmp_path, {"a.org": BLOCKS, "my.hy": TOOLS, "sub/here.txt": "here"})
        script = """
          (find-file "a.org")
          (search-forward "begin_src") (org-babel-execute-src-block)
          (search-forward "begin_src") (tell (said #'org-babel-execute-src-block))
          (search-forward "begin_src") (org-babel-execute-src-block)
          (save-buffer)
        """
        said = in_emacs(tmp_path, script)
        assert said[0].startswith("invalid: echo: :text should be str, not 5.")
        text = (tmp_path / "a.org").read_text()
        assert '#+RESULTS:\n| 5 | 2 | ü😀 | a "q" $(id) `id` |\n' in text
        assert "#+RESULTS:\n| 42 | here |\n" in text
        listed = quoth("sessions", "--all", cwd=tmp_path / "sub").out
        assert listed.startswith("babel ")

    def test_sessions_are_offered_latest_first_with_their_tasks(tmp_path: Path) -> None:
        files(tmp_path, {"r.txt": "Yes.\n---\nYes."})
        for session, task in (("b1", "First."), ("a2", "Second.")):
            quoth("run", task, "--model", "scripted:r.txt", "--session", session, cwd=tmp_path)
        script = """
          (fset 'completing-read
                (lambda (_ table &rest _)
                  (let* ((about (cdr (funcall table "" nil 'metadata)))
                         (all (funcall (cdr (assq 'display-sort-function about)) (all-completions "" table))))
                    (tell all (funcall (cdr (assq 'annotation-function about)) (car all)))
                    "b1")))
          (tell (quoth--read-session))
        """
        offered, chosen = in_emacs(tmp_path, script)
        assert offered.startswith("(a2 b1)   20")
        assert offered.endswith("  Second.")
        assert chosen == "b1"

    def test_a_key_typed_in_another_buffer_approves_nothing(tmp_path: Path) -> None:
        files(tmp_path, {"a.txt": "one\n", "r.txt": WRITES})
        quoth("run", "Do.", "--model", "scripted:r.txt", cwd=tmp_path)
        script = """
          (fset 'y-or-n-p (lambda (question) (tell question) t))
          (quoth-pending) (settle)
          (goto-char (point-min))
          (call-interactively #'quoth-pending-approve)
          (switch-to-buffer "elsewhere")
          (settle)
          (tell said-last)
        """
        (said,) = in_emacs(tmp_path, script)
        assert said.endswith("once? Not asked: you are in another buffer now")
