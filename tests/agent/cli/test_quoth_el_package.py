"""plans/emacs as a package: it installs, its commands load by themselves, the linters of Emacs accept it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from emacs import EMACS, PACKAGE, emacs

LINTERS = [*Path("/usr/share/emacs/site-lisp/elpa-src").glob("*")]
# No URL is made up. Org asks for these two names. The linter knows no Emacs after 27.
ALLOWED = ("Homepage or URL header", '"org-babel-', "`org-babel-", "uninstallable in all released")
COMMANDS = (
    "send",
    "resume",
    "menu",
    "pending",
    "fly",
    "log",
    "undo",
    "agenda",
    "waits-mode",
    "flymake-setup",
)

if EMACS:

    def copied(folder: Path) -> Path:
        """A copy of the package, for what writes beside it."""
        return shutil.copytree(PACKAGE, folder / "quoth")

    def test_it_compiles_without_a_warning_and_its_texts_follow_checkdoc(tmp_path: Path) -> None:
        copy = copied(tmp_path)
        script = f"""
          (add-to-list 'load-path "{copy}")
          (setq byte-compile-error-on-warn t)
          (dolist (file '("{copy}/quoth.el" "{copy}/ob-quoth.el"))
            (princ (if (byte-compile-file file) "compiled " "failed "))
            (checkdoc-file file))
          (princ (with-current-buffer (messages-buffer) (buffer-string)))
          (when (get-buffer "*Warnings*") (princ (with-current-buffer "*Warnings*" (buffer-string))))
        """
        assert emacs(tmp_path, script=script) == "compiled compiled "

    def test_it_installs_and_its_commands_load_by_themselves(tmp_path: Path) -> None:
        start = f"""
          (require 'package)
          (setq package-user-dir "{tmp_path}/elpa" package-archives nil)
          (package-initialize)
        """
        emacs(tmp_path, script=f'{start} (package-install-file "{copied(tmp_path)}")')
        names = " ".join(f"quoth-{name}" for name in COMMANDS)
        script = f"""
          {start}
          (princ (featurep 'quoth))
          (dolist (name '({names})) (unless (commandp name) (princ name)))
          (princ (featurep 'quoth))
          (let ((it (cadr (assq 'quoth package-alist))))
            (princ (list (package-desc-version it) (package-desc-summary it) (package-desc-reqs it))))
          (org-babel-do-load-languages 'org-babel-load-languages '((quoth . t)))
          (princ (fboundp 'org-babel-execute:quoth))
        """
        assert emacs(tmp_path, script=script) == (
            "nilnil((0 1 0) An agent whose every action is a form ((emacs (28 1))))t"
        )

    def test_the_page_configures_it_as_it_says(tmp_path: Path) -> None:
        page = (PACKAGE.parents[1] / "agent" / "manual" / "emacs.org").read_text()
        blocks = re.findall(r"#\+begin_src emacs-lisp\n(.*?)#\+end_src", page, re.DOTALL)
        commands = set(re.findall(r"M-x ([\w-]+)", page)) - {"agent-shell"}
        keys = re.findall(r"^\| =(\w+)= ", page.split("C-c q=")[1].split("In the list")[0], re.MULTILINE)
        (tmp_path / "agent-shell.el").write_text("""
          (defun agent-shell-make-agent-config (&rest words) words)
          (defun acp-make-client (&rest words)
            (list (plist-get words :command) (plist-get words :command-params)))
          (provide 'agent-shell)
        """)
        script = f"""
          (setq package-user-dir "{tmp_path}/elpa" package-archives nil agent-shell-agent-configs nil)
          (package-initialize)
          (package-install-file "{PACKAGE}")
          {" ".join(blocks)}
          (load "{tmp_path}/agent-shell.el")
          (princ (funcall (plist-get (car agent-shell-agent-configs) :client-maker) (current-buffer)))
          (princ (list quoth-command inferior-lisp-program (key-binding (kbd "C-c q"))))
          (dolist (name '({" ".join(commands)})) (unless (commandp name) (princ name)))
          (require 'org)
          (princ (list quoth-waits-mode (fboundp 'org-babel-execute:quoth)))
          (princ (car (memq 'quoth-flymake-setup find-file-hook)))
          (princ (assoc-default "policy.hy" auto-mode-alist #'string-match-p))
          (dolist (key '({" ".join(f'"{key}"' for key in keys)}))
            (unless (transient-get-suffix 'quoth-menu key) (princ key)))
        """
        assert emacs(tmp_path, script=script) == (
            "(quoth (acp))((/home/ann/.venv/bin/quoth) quoth quoth-menu)(t t)quoth-flymake-setuplisp-mode"
        )
        assert len(keys) == 13

    if LINTERS:

        def test_package_lint_has_only_known_questions(tmp_path: Path) -> None:
            copy = copied(tmp_path)
            script = f"""
              (dolist (folder '({" ".join(f'"{one}"' for one in LINTERS)})) (add-to-list 'load-path folder))
              (require 'package-lint)
              (setq package-lint-main-file "{copy}/quoth.el")
              (dolist (file '("quoth.el" "ob-quoth.el"))
                (with-current-buffer (find-file-noselect (expand-file-name file "{copy}"))
                  (dolist (one (package-lint-buffer)) (princ (format "%s:%s\\n" file (nth 3 one))))))
            """
            said = emacs(tmp_path, script=script).splitlines()
            assert any(ALLOWED[0] in line for line in said), "it has looked"
            assert [line for line in said if not any(one in line for one in ALLOWED)] == []
