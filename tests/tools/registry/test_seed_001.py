"""The first seed wants functions of a list for guard and body; here both are forms, and who writes the seed's
own shape is told the Hy that says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from words import complaint, files, load

from quoth.tools.errors import UsageError

LAMBDAS = {
    ":guard (lambda (args) (inside? (getf args :path))) :body 1": (
        ":guard",
        "(inside? path)",
    ),
    ":body (lambda (args) (grep (getf args :pattern) (getf args :path)))": (":body", "(grep pattern path)"),
    ":body (lambda (args context) (print 1) (list (getf args :path)))": (
        ":body",
        "(do (print 1) (list path))",
    ),
    ":body (fn [path] (len path))": (":body", "(len path)"),
}


@pytest.mark.parametrize(("options", "told"), LAMBDAS.items())
def test_a_function_for_a_guard_or_body_is_told_at_the_definition(
    tmp_path: Path, options: str, told: tuple[str, str]
) -> None:
    head = '(require quoth [def-cognitive-tool])\n(def-cognitive-tool grep "Search."\n  :parameters [path {}]'
    path = files(tmp_path, {"my.hy": f"{head}\n  {options})\n"}) / "my.hy"
    key, form = told
    said = complaint(UsageError, lambda: load(path)).splitlines()
    assert said[0].partition(": ")[2] == (
        f"grep: {key} is a form, in which the parameters are bound by name, and not a function; "
        f"write {key} {form}"
    )
    assert said[1][said[2].index("^") :].startswith(("(lambda (args", "(fn [path]"))


def test_a_function_that_the_body_computes_with_is_fine(tmp_path: Path) -> None:
    text = '(require quoth [def-cognitive-tool])\n(def-cognitive-tool x "X." :body ((fn [y] (+ y 1)) 2))\n'
    assert "x" in load(files(tmp_path, {"my.hy": text}) / "my.hy")


def test_getf_is_told_what_hy_writes(tmp_path: Path) -> None:
    text = '(require quoth [def-cognitive-tool])\n(def-cognitive-tool x "X." :body (getf {"k" 1} :k))\n'
    said = complaint(UsageError, lambda: load(files(tmp_path, {"my.hy": text}) / "my.hy"))
    assert said.splitlines()[0].endswith('2:48: getf is of Common Lisp; write (get {"k" 1} "k").')
