"""The table of replacements: words of other Lisps, of Python, of shells and of other programs, each with the
right form, word or hint, by the place where it is used. tools/errors.py finds the nearest of several names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

_ROWS = {
    # heads of other Lisps that a program does not know: the form to write; WORD is the word itself
    "head": {
        "setf setq set! var const atom deref reset! swap!": "(setv x 1)",
        "cadr second nth elt aref list-ref": "(get xs 1)",
        "take subs substring slice subseq": "(cut xs 0 2)",
        "drop": "(cut xs 2 None)",
        "incf": "(+= x 1)",
        "decf": "(-= x 1)",
        "expt": "(** x 2)",
        "string=": "(= x y)",
        "push append!": "(.append xs 1)",
        "cons": "(+ [1] xs)",
        "conj": "(+ xs [1])",
        "concat append concatenate string-append": "(+ xs ys)",
        "assoc": '{#** d "k" 1}',
        "hash-map": '{"k" 1}',
        "gethash": '(get d "k")',
        "contains?": '(in "k" d)',
        "vals": "(list (.values d))",
        "vector list*": "[1 2]",
        "sort": "(sorted xs)",
        "sort-by": "(sorted xs :key f)",
        "reverse": "(list (reversed xs))",
        "apply": "(f #* xs)",
        "funcall": "(f x)",
        "remove-if": "(lfor x xs :if (not (f x)) x)",
        "null null?": "(not xs)",
        "not-empty": "(len xs)",
        "zero?": "(= x 0)",
        "even?": "(= (% x 2) 0)",
        "odd?": "(= (% x 2) 1)",
        "some?": "(is-not x None)",
        "string?": "(isinstance x str)",
        "number?": "(isinstance x int)",
        "list?": "(isinstance xs list)",
        "&&": "(and x y)",
        "||": "(or x y)",
        "if-let when-let": "(do (setv x (f 1)) (if x x 2))",
        "if-not": "(if (not x) 1 2)",
        "loop recur": "(for [i (range 3)] (print i))",
        "case": '(match x 1 "a"  _ "b")',
        "catch": "(try (/ 1 0) (except [e Exception] 0))",
        "throw": '(raise (ValueError "no"))',
        "format": 'f"{x} {y}"',
        "display": "(print x)",
        "parse-int string->number": '(int "5")',
        "number->string": "(str 5)",
        "with-open": '(read-file :path "a.txt")',
        "split splitlines strip lower upper replace startswith endswith join items keys": "(.WORD x)",
    },
    # core macros of Hy that a program may not use: the alternative
    "refused": {
        "quote quasiquote": "it takes one form",
        "del": "(.pop d k) takes a key out of a dictionary; a name needs no end",
        "with": "call read-file instead of opening files",
        "defmacro": "macros are defined at the top of the program",
        "await": 'calls wait by themselves; write (read-file "a.txt")',
        "yield": "a function returns a list",
        "require": "only functions can be used here",
        "do_mac eval_and_compile eval_when_compile": "nothing runs while a program is compiled",
        "py pys": "write Lisp",
    },
    # special forms: how each is used
    "usage": {
        "if": "(if (> x 1) x 1)",
        "when": "(when (> x 1) x)",
        "while": "(while (< n 3) (+= n 1))",
        "cond": '(cond (= x 1) "a"  True "b")',
        "setv": "(setv x 1)",
        "get": '(get {"a" 1} "a")',
        "match": '(match x 1 "a"  _ "b")',
        "try except": "(try (/ 1 0) (except [e Exception] (str e)))",
        "cut": "(cut [1 2 3] 0 2)",
        "import": "(import math [sqrt])",
        "defn": "(defn double [x] (* x 2))",
        "fn": "(fn [x] (* x 2))",
        "let": "(let [x 1  y 2] (+ x y))",
        "for": "(for [x [1 2]] (print x))",
        "lfor": "(lfor x [1 2] (* x x))",
        "dfor": "(dfor x [1 2]  x (* x x))",
        "raise": '(raise (ValueError "no"))',
        "in": '(in "a" "abc")',
        "is": "(is x None)",
        "not": "(not x)",
    },
    # the character after the # of a reader macro
    "dispatch": {
        "'": "write the name alone",
        ".": "nothing is evaluated while reading",
        ":": "write the name, or the keyword, alone",
        "|": "a comment is ; to the end of the line",
        "\\": "write the character as a string",
        '"': 'write the string alone, or r"…" to keep its backslashes',
        "t": "write True",
        "f": "write False",
    },
    # the character after the backslash of an escape in a text
    "escape": {
        "4 5 6 7": r"an octal escape ends at \377",
        "x": r"write two hexadecimal digits, as in \x41",
        "u": r"write four hexadecimal digits, as in \u00e9; a character that needs more, write itself",
        "U": r"write the eight hexadecimal digits of a character, as in \U0001F600",
        "N": r"write the name of a character in braces, as in \N{EM DASH}",
    },
    # words of a shell that are not programs; LINE is the whole line, given to a shell
    "shell": {
        "cd": "name the folder by :cwd",
        "export source . alias set unset ulimit": "a shell knows it, LINE",
    },
    # commands of other programs: ours, if the spelling alone would not find it
    "command": {
        "ask prompt do exec task query": "run",
        "talk": "chat",
        "ls list history": "sessions",
        "show cat transcript": "log",
        "delete remove": "rm",
        "continue": "resume",
        "login logout auth key keys providers": "models",
        "functions": "tools",
        "flight plan plans": "fly",
        "rules permissions": "policy",
        "requests approvals": "pending",
        "init create scaffold template": "new",
        "revert restore rollback": "undo",
        "extract": "lift",
        "tool-list toollist prompt-tools": "belt",
        "budget costs usage": "stats",
        "settings config options": "help settings",
        "allow accept": "approve",
        "refuse reject": "deny",
        "check status diagnose info health": "doctor",
        "man manual docs": "help",
        "repl shell": "quoth, without a command",
        "version": "quoth --version",
    },
    # properties that others give a step of a plan
    "property": {
        "DEPENDS DEPENDS-ON DEPENDENCIES DEPENDENCY BLOCKER BLOCKED-BY REQUIRES NEEDS WAITS "
        "WAITS-FOR WAIT-FOR AFTER-ID PREREQUISITES RUN-AFTER": "AFTER",
        "ASSERT VERIFY CHECK PROOF GUARD PRECONDITION POSTCONDITION": "EXPECT",
        "TOOL ALLOW ALLOWED ALLOWED-TOOLS": "TOOLS",
        "PROVIDER LLM BACKEND": "MODEL",
        "RETRIES ATTEMPTS TRIES MAX-RETRIES": "RETRY",
        "ON-ERROR ONFAIL ONERROR ON-FAILURE ONFAILURE IF-FAILED": "ON-FAIL",
        "ALLOW-FAILURE ALLOW-FAIL CAN-FAIL OPTIONAL IGNORE-ERRORS CONTINUE-ON-ERROR FAIL-OK": "MAY-FAIL",
        "STEPS MAX-STEPS STEP-LIMIT MAX-TURNS TURNS": "BUDGET, as in steps=6",
        "TOKENS MAX-TOKENS": "BUDGET, as in tokens=2000",
        "COST MAX-COST": "BUDGET, as in cost=0.10",
        "SECONDS MAX-SECONDS TIMEOUT TIME-LIMIT DEADLINE": "BUDGET, as in seconds=60",
    },
    # header arguments of Org that a plan does not obey
    "header": {
        "noweb": ":var hands on what a block came to, #+CALL: runs it again",
        "prologue epilogue post": "write it into the block",
    },
    # languages of blocks that are other Lisps
    "language": {
        "common-lisp commonlisp cl sbcl": (
            "A block of lisp is read as Hy, and what it has of Common Lisp (defun, let, setf, mapcar …) is"
            " rewritten"
        ),
        "elisp emacs-lisp scheme racket clojure clj": "A block of hy is the nearest",
    },
}


@cache
def instead(place: str) -> Mapping[str, str]:
    """The replacements in this place of the table, by word."""
    rows = _ROWS[place].items()
    return {word: text.replace("WORD", word) for words, text in rows for word in words.split()}
