"""plans/emacs/ob-quoth.el in a real Emacs: blocks of Org Babel."""

from __future__ import annotations

from pathlib import Path

from emacs import EMACS, in_emacs
from words import files, lines

TODO = "#+TODO: PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED"


def block(*body: str, head: str) -> str:
    return lines(f"#+begin_src {head}", *body, "#+end_src")


if EMACS:

    def after(folder: Path, text: str, script: str = "") -> tuple[str, list[str]]:
        """The text of a file after its first block was run by C-c C-c, and the lines of `tell`."""
        files(folder, {"a.org": text})
        run = '(find-file "a.org") (search-forward "begin_src") (tell (said #\'org-ctrl-c-ctrl-c))'
        said = in_emacs(folder, f"{run} {script} (settle) (save-buffer)")
        return (folder / "a.org").read_text(), said

    def test_output_is_what_the_program_prints(tmp_path: Path) -> None:
        program = '(print "one")\n(print "two") ; the value of this program is its output'
        text, _ = after(tmp_path, block(program, head="quoth :results output"))
        assert "#+RESULTS:\n: one\n: two\n" in text

    def test_a_value_is_what_the_program_returns(tmp_path: Path) -> None:
        text, _ = after(tmp_path, block('(do (print "one") 3)', head="quoth"))
        assert "#+RESULTS:\n: 3\n" in text

    def test_a_block_runs_beside_emacs_and_its_result_comes_later(tmp_path: Path) -> None:
        script = '(tell (count-matches "quoth runs this block")) (goto-char (point-max)) (insert "on\\n")'
        text, said = after(tmp_path, block("[[1 2] [3 4]]", head="quoth :async"), script)
        assert said[-1] == "1"
        assert "#+RESULTS:\n| 1 | 2 |\n| 3 | 4 |\n" in text
        assert text.endswith("on\n")
        assert "runs this block" not in text

    def test_a_block_beside_emacs_that_fails_leaves_no_result(tmp_path: Path) -> None:
        text, said = after(
            tmp_path, block("(echo :text 5)", head="quoth :async"), "(settle) (tell said-last)"
        )
        assert said[-1].startswith("invalid: echo: :text should be str, not 5.")
        assert "RESULTS" not in text

    def test_hy_in_a_plan_runs_through_quoth(tmp_path: Path) -> None:
        plan = TODO + "\n* PLAN one\n" + block('(+ 40 (len (echo :text "ab")))', head="hy")
        text, _ = after(tmp_path, plan)
        assert "#+RESULTS:\n: 42\n" in text

    def test_hy_elsewhere_is_left_alone(tmp_path: Path) -> None:
        text, said = after(tmp_path, "* TODO one\n" + block("(+ 40 2)", head="hy"))
        assert said == ["No org-babel-execute function for hy!"]
        assert "RESULTS" not in text

    def test_a_block_whose_call_waits_gets_its_result_once_that_is_approved(tmp_path: Path) -> None:
        script = """
          (fset 'y-or-n-p (lambda (_) t))
          (settle)
          (quoth-pending) (settle)
          (goto-char (point-min))
          (call-interactively #'quoth-pending-approve) (settle)
          (tell (buffer-size))
          (set-buffer "a.org")
        """
        text, said = after(
            tmp_path, block('[(write-file :path "b.txt" :content "x") 5]', head="quoth"), script
        )
        assert said[0].startswith("pending: write-file")
        assert said[1] == "0"
        assert "#+RESULTS:\n| Created b.txt, 1 byte. | 5 |\n" in text
