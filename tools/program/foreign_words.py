"""Words of other Lisps (and Pythons) that are not read here, and what says the same: a table.

It must not know how such a word is found, or what is read here.
"""

from __future__ import annotations

import re
from typing import Final

from quoth.tools.program.hint import MAX_PYTHON

# Heads of other Lisps (and Pythons) that are not read here: {*} is all that follows, {1} the first of it.
FOREIGN: Final[dict[str, str]] = {
    **dict.fromkeys(("setf", "setq", "set!", "set", "var", "const"), "(setv {*})"),
    "car": "(first {1})",
    "cdr": "(rest {1})",
    "cadr": "(second {1})",
    "null": "(not {1})",
    "incf": "(+= {1} 1)",
    "decf": "(-= {1} 1)",
    "push": "(.append {2} {1})",
    "gethash": "(get {2} {1})",
    **dict.fromkeys(("aref", "elt", "list-ref"), "(get {1} {2})"),
    **dict.fromkeys(("subs", "substring", "slice", "subseq"), "(cut {*})"),
    "string-append": "(str {*})",
    "display": "(print {*})",
    "parse-int": "(int {1})",
    "number->string": "(str {1})",
    "string->number": "(int {1})",
    "throw": "(raise (Exception {1}))",
    "defmacro": "(defn {*})",
    "await": "{1}",
    "async": "{1}",
    "atom": "{1}",
    "deref": "{1}",
    "reset!": "(setv {1} {2})",
    "swap!": "(setv {1} ({2} {1}))",
    "yield": "[{*}]",
    "not-empty": "(len {1})",
    "append!": "(.append {1} {2})",
    "string?": "(isinstance {1} str)",
    "number?": "(isinstance {1} int)",
    "list?": "(isinstance {1} list)",
    "loop": "(for [i (range 3)] (print i))",
    "recur": "(for [i (range 3)] (print i))",
    "case": "(match {*})",
    "format": '(.format "{{}}" {-1})',
    "with-open": '(read-file :path "a.txt")',
}

HOLE = re.compile(r"\{(\*|-?\d)\}")
TAKES = {
    "(cut {*})": (2, 4),
    "(match {*})": (3, MAX_PYTHON),
}
EXAMPLES = {
    "(setv {*})": "(setv x 1)",
    "(cut {*})": "(cut x 0 2)",
    "(match {*})": '(match x 1 "a"  _ "b")',
    "(defn {*})": "(defn double [x] (* 2 x))",
}
WHY: Final = {
    "await": "calls wait by themselves",
    "async": "calls wait by themselves",
    "atom": "there are no atoms; a variable is set by setv",
    "swap!": "there are no atoms; a variable is set by setv",
    "reset!": "there are no atoms; a variable is set by setv",
    "defmacro": "macros cannot be defined in a program",
    "loop": "loop and recur are not known here",
    "recur": "loop and recur are not known here",
    "yield": "a function returns a list",
    "throw": "errors are raised",
    "case": "case is not known here; _ is the rest in a match",
    "with-open": "files are read by tools",
}
