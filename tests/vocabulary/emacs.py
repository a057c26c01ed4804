"""A real Emacs, where there is one. Knows how it is started in a batch and on a screen, and how our package
is loaded into it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands import callable_command
from screens import Screen

EMACS = shutil.which("emacs")
# Not what Org loads beside itself for links into mail and news: that takes twice as long as all else. And no
# code for the processor: a second Emacs would compile it beside the first.
PLAIN = "(setq org-modules nil native-comp-deferred-compilation nil native-comp-jit-compilation nil)\n"


def emacs(tmp_path: Path, *words: str | Path, script: str) -> str:
    """What Emacs prints when it runs a script with these words."""
    assert EMACS
    path = tmp_path / "script.el"
    path.write_text(PLAIN + script)
    run = subprocess.run(
        [EMACS, "-Q", "--batch", "-l", path, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "LANG": "C.UTF-8"},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


# Our package

PACKAGE = Path(__file__).parents[2] / "plans" / "emacs"
LOADED = f"""
(setq load-prefer-newer t org-confirm-babel-evaluate nil make-backup-files nil inhibit-message t)
(add-to-list 'load-path "{PACKAGE}")
(require 'quoth)
(org-babel-do-load-languages 'org-babel-load-languages '((quoth . t)))
(setq quoth-command command-line-args-left command-line-args-left nil)
(defvar said-last nil "The latest message.")
(defun heard (form &rest words) (when form (setq said-last (apply #'format form words))))
(advice-add 'message :before #'heard)
(defun tell (&rest words) (princ (concat (mapconcat (lambda (one) (format "%s" one)) words " ") "\\n")))
(defun settle ()
  "Wait until what was started is over."
  (let ((end (+ (float-time) 60)))
    (while (and (or quoth--running (seq-some #'process-live-p (mapcar #'get-buffer-process (buffer-list))))
                (< (float-time) end))
      (accept-process-output nil 0.02)))
  (accept-process-output nil 0.05))
(defun said (words) (condition-case it (funcall words) (error (error-message-string it))))
"""


def in_emacs(folder: Path, script: str) -> list[str]:
    """The lines that a script has told, in an Emacs with our package, in this folder."""
    script = LOADED + f'(setq default-directory "{folder}/")\n' + script
    with tempfile.TemporaryDirectory() as place, callable_command(Path(place)) as words:
        return emacs(folder, *words, script=script).splitlines()


@contextmanager
def emacs_screen(folder: Path, script: str, size: tuple[int, int] = (100, 30)) -> Iterator[Screen]:
    """An Emacs with our package on a screen, where the script has run."""
    assert EMACS
    start = folder / "start.el"
    with tempfile.TemporaryDirectory() as place, callable_command(Path(place)) as words:
        quoted = " ".join(f'"{word}"' for word in words)
        lisp = LOADED.replace(" inhibit-message t", "").replace("command-line-args-left nil)", "", 1)
        start.write_text(
            PLAIN
            + lisp.replace("quoth-command command-line-args-left ", f"quoth-command '({quoted}))")
            + script
        )
        (folder / "start.py").write_text(
            f"import os\nos.execv({EMACS!r}, [{EMACS!r}, '-Q', '-nw', '-l', {str(start)!r}])\n"
        )
        environment = {"LANG": "C.UTF-8", "TERM": "xterm-256color"}
        with Screen(str(folder / "start.py"), cwd=folder, env=environment, size=size) as screen:
            yield screen
