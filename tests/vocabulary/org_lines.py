"""Lines that mean something to Org, of which tests make documents, most of them broken somewhere."""

from __future__ import annotations

LINES = [
    "* PLAN one", "** TODO two :tag:", "* DONE [#B] three :a:b:", "*** COMMENT four", "* ", "*bold* text", "",
    "  ", "text", "  more text", "# remark", "#+TITLE: x", "#+TODO: PLAN | DONE", "#+NAME: n", "#+RESULTS:",
    "#+RESULTS: n", ": 5", "  :", "#+begin_src hy :var x=1", "#+end_src", "  #+BEGIN_SRC hy", "  #+END_SRC",
    "#+begin_example", "#+end_example", "#+begin_quote", "#+end_quote", ":PROPERTIES:", ":ID: a", ":END:",
    "  :PROPERTIES:", "  :X+: y z", "  :END:", ":LOGBOOK:", "- note", "| a | b |", "|---|", "#+CALL: n()",
    "SCHEDULED: <2026-13-45 Mon>", "\\begin{x}", "\\end{x}", "\tü\u2028\x0b\x0c\x00", "CLOCK: [2026]",
    "#+BEGIN: a", "#+END:", ",* escaped", "* \tPLAN  odd   :x: ", "[[file:a.png]]", "#+PROPERTY: a b",
    "\ufeff",
]  # fmt: skip
