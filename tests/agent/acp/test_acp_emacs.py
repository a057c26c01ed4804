"""``quoth acp`` with another client: Emacs in batch, which writes and reads lines of JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from commands import callable_command
from emacs import EMACS, emacs
from words import files

WRITE = '(write-file :path "b.txt" :content "two\\n")'
CLIENT = r"""
(require 'json)
(require 'seq)
(defvar lines nil "What has come, as objects, the latest first.")
(defvar rest "")
(defvar agent
  (make-process :name "agent" :command command-line-args-left :connection-type 'pipe :coding 'utf-8-unix
    :noquery t
    :filter (lambda (_ text)
      (let ((parts (split-string (concat rest text) "\n")))
        (setq rest (car (last parts)))
        (dolist (line (butlast parts))
          (princ (concat line "\n"))
          (took (json-parse-string line :object-type 'alist)))))))
(setq command-line-args-left nil)
(defun send (object)
  (process-send-string agent (concat (json-serialize `((jsonrpc . "2.0") ,@object)) "\n")))
(defun took (object)
  "Keep the object; a question gets the option PICK."
  (push object lines)
  (when (equal (alist-get 'method object) "session/request_permission")
    (send `((id . ,(alist-get 'id object))
            (result . ((outcome . ((outcome . "selected") (optionId . ,pick)))))))))
(defvar pick "once")
(defvar number 0)
(defun ask (method params)
  "The result of a request."
  (setq number (1+ number))
  (send `((id . ,number) (method . ,method) (params . ,params)))
  (let ((mine number) (end (+ (float-time) 60)) answer)
    (while (not (or (setq answer (seq-find (lambda (one) (and (equal (alist-get 'id one) mine)
                                                              (not (assq 'method one)))) lines))
                    (> (float-time) end)))
      (accept-process-output agent 0.05))
    (alist-get 'result answer)))
(defun prompt (session text)
  (ask "session/prompt" `((sessionId . ,session) (prompt . [((type . "text") (text . ,text))]))))
(ask "initialize" '((protocolVersion . 1) (clientCapabilities . ((fs . ((readTextFile . :false)))))))
"""
START = """
(setq session (alist-get 'sessionId (ask "session/new" `((cwd . ,default-directory) (mcpServers . [])))))
"""

if EMACS:

    def spoken(folder: Path, script: str) -> list[dict[str, Any]]:
        """The lines that ``quoth acp`` wrote to Emacs, which works in this folder."""
        script = f'(setq default-directory "{folder}/")\n{CLIENT}{START}{script}'
        with tempfile.TemporaryDirectory() as place, callable_command(Path(place)) as words:
            options = ("--model", f"scripted:{folder}/r.txt")
            out = emacs(folder, *words, *options, "acp", script=script)
        return [json.loads(line) for line in out.splitlines()]

    def updates(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
        found = [one["params"]["update"] for one in lines if one.get("method") == "session/update"]
        return [one for one in found if one["sessionUpdate"] == kind]

    def test_a_prompt_is_answered_and_its_call_approved(tmp_path: Path) -> None:
        files(tmp_path, {"r.txt": f"{WRITE}\n---\nGrüße 😀\n"})
        lines = spoken(tmp_path, '(prompt session "Write it.")')
        assert lines[0]["result"]["protocolVersion"] == 1
        (asked,) = [one["params"] for one in lines if one.get("method") == "session/request_permission"]
        assert (asked["toolCall"]["title"], [one["optionId"] for one in asked["options"]]) == (
            WRITE,
            ["once", "scope", "deny", "never"],
        )
        said = "".join(one["content"]["text"] for one in updates(lines, "agent_message_chunk"))
        assert said.strip() == "Grüße 😀"
        assert lines[-1]["result"]["stopReason"] == "end_turn"
        assert (tmp_path / "b.txt").read_text() == "two\n"

    def test_a_denied_call_changes_nothing(tmp_path: Path) -> None:
        files(tmp_path, {"r.txt": f"{WRITE}\n---\nNo.\n"})
        lines = spoken(tmp_path, '(setq pick "deny") (prompt session "Write it.")')
        assert [one["status"] for one in updates(lines, "tool_call_update")][-1] == "failed"
        assert not (tmp_path / "b.txt").exists()

    def test_a_session_is_loaded_by_a_second_emacs(tmp_path: Path) -> None:
        files(tmp_path, {"r.txt": f"{WRITE}\n---\nDone.\n---\nAgain.\n"})
        first = spoken(tmp_path, '(prompt session "Write it.")')
        session = next(one["result"]["sessionId"] for one in first if "sessionId" in one.get("result", {}))
        load = (
            f'(ask "session/load" `((sessionId . "{session}") (cwd . ,default-directory) (mcpServers . [])))'
        )
        lines = spoken(tmp_path, load)
        assert [one["content"]["text"] for one in updates(lines, "user_message_chunk")] == ["Write it."]
        assert [one["title"] for one in updates(lines, "tool_call")] == [WRITE]
