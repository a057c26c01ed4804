"""Emacs runs quoth as its inferior Lisp."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from emacs import emacs

SCRIPT = """
(require 'inf-lisp)
(setq inferior-lisp-program "quoth --model scripted:/dev/null")
(inferior-lisp inferior-lisp-program)
(defun shown (text)
  (let ((end (+ (float-time) 60)))
    (while (not (or (with-current-buffer "*inferior-lisp*"
                      (string-suffix-p text (buffer-substring-no-properties (point-min) (point-max))))
                    (> (float-time) end)))
      (accept-process-output (inferior-lisp-proc) 0.1))))
(shown "\nquoth> ")
(with-temp-buffer
  (lisp-mode)
  (insert "(let ((x 20))\n  (+ x (car [22])))")
  (lisp-eval-last-sexp))
(shown "42\nquoth> ")
(princ (with-current-buffer "*inferior-lisp*" (buffer-substring-no-properties (point-min) (point-max))))
"""


def test_a_form_is_sent_and_its_value_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    told = emacs(tmp_path, script=SCRIPT)
    assert told.endswith("42\nquoth> ")
