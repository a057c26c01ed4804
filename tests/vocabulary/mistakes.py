"""What models get wrong when they write Lisp: a table, data for the tests and for the documentation.

It must not know what finds a mistake, or who is told.
"""

from __future__ import annotations

from dataclasses import dataclass

from sentences import (
    A_TEXT_IS_WRITTEN_IN,
    CANNOT_BE_USED_IN_A,
    DOES_NOT_CLOSE_THE,
    DOES_NOT_FIT_HERE,
    HAS_NO_VALUE,
    IS_NEVER_CLOSED,
    IS_NOT_KNOWN_HERE,
    THE_PROGRAM_USES,
    WHICH_IS_NOT_DEFINED,
)


@dataclass(frozen=True)
class Mistake:
    """``wrong`` is told ``message``, which shows ``fixed``."""

    name: str
    wrong: str
    message: str
    fixed: str


MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "four parts in if", "(if a b c d)", "if does not fit here; write (if (> x 1) x 1)", "(if (> x 1) x 1)"
    ),
    Mistake(
        "else as a word",
        "(if (> 2 1) 1 else 2)",
        f"if {DOES_NOT_FIT_HERE}; write (if (> x 1) x 1)",
        "(if (> x 1) x 1)",
    ),
    Mistake(
        "a JSON dictionary",
        '{"a": 1, "b": 2}',
        'a dictionary has keys and values, without colons and commas; write {"a" 1 "b" 2}',
        '{"a" 1 "b" 2}',
    ),
    Mistake(
        "a Python dictionary",
        "{'a': 1, 'b': 2}",
        'a dictionary has keys and values, without colons and commas; write {"a" 1 "b" 2}',
        '{"a" 1 "b" 2}',
    ),
    Mistake(
        "an odd dictionary",
        '{"a" 1 "b"}',
        'a dictionary has a value for each key; write {"a" 1 "b" None}',
        '{"a" 1 "b" None}',
    ),
    Mistake(
        "commas in a list",
        '["a", "b"]',
        'values are separated by spaces, without commas; write ["a" "b"]',
        '["a" "b"]',
    ),
    Mistake(
        "commas between arguments",
        "(max a, b)",
        "values are separated by spaces, without commas; write (max a b)",
        "(max a b)",
    ),
    Mistake(
        "a call in square brackets",
        '[read-file "a.txt"]',
        '[ begins a list; a call is written in ( ); write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake("an infix operator", "(1 + 2)", "the operator comes first; write (+ 1 2)", "(+ 1 2)"),
    Mistake(
        "infix operators of several ranks",
        "(1 + 2 * 3)",
        "the operator comes first; write (+ 1 (* 2 3))",
        "(+ 1 (* 2 3))",
    ),
    Mistake("an infix comparison", "(x == 5)", "the operator comes first; write (= x 5)", "(= x 5)"),
    Mistake("a sum without brackets", "1 + 2", "this is Python; write (+ 1 2)", "(+ 1 2)"),
    Mistake("an assignment", "x = 5", "this is Python; write (setv x 5)", "(setv x 5)"),
    Mistake("a walrus", "(x := 5)", "the operator comes first; write (setv x 5)", "(setv x 5)"),
    Mistake(
        "Clojure's loop",
        "(loop [i 0] (recur (+ i 1)))",
        f"loop {IS_NOT_KNOWN_HERE}; write (for [i (range 3)] (print i))",
        "(for [i (range 3)] (print i))",
    ),
    Mistake(
        "Clojure's short function",
        "(map #(+ % 1) [1 2])",
        f"{THE_PROGRAM_USES} +, {WHICH_IS_NOT_DEFINED}. An operator comes first in its form: (+ 1 2).",
        "(+ 1 2)",
    ),
    Mistake("Clojure's deref", "(+ @total 1)", "a variable is its name alone; write total", "total"),
    Mistake(
        "Clojure's swap!", "(swap! total inc)", f"swap! {IS_NOT_KNOWN_HERE}; write (setv x 1)", "(setv x 1)"
    ),
    Mistake(
        "Clojure's case",
        '(case x 1 "a" "b")',
        f'case {IS_NOT_KNOWN_HERE}; write (match x 1 "a"  _ "b")',
        '(match x 1 "a"  _ "b")',
    ),
    Mistake(
        "Clojure's catch",
        "(try (/ 1 0) (catch Exception e 0))",
        f"catch {IS_NOT_KNOWN_HERE}; write (try (/ 1 0) (except [e Exception] 0))",
        "(try (/ 1 0) (except [e Exception] 0))",
    ),
    Mistake(
        "getf", '(getf {"k" 1} :k)', 'getf is not known here; write (get {"k" 1} "k")', '(get {"k" 1} "k")'
    ),
    Mistake(
        "getf with a default",
        "(setv x {}) (getf x :k 3)",
        f'getf {IS_NOT_KNOWN_HERE}; write (.get x "k" 3)',
        '(.get x "k" 3)',
    ),
    Mistake("cadr", "(cadr [1 2])", f"cadr {IS_NOT_KNOWN_HERE}; write (get xs 1)", "(get xs 1)"),
    Mistake("setf", "(setf x 1)", f"setf {IS_NOT_KNOWN_HERE}; write (setv x 1)", "(setv x 1)"),
    Mistake("format", '(format t "~a" 1)', f'format {IS_NOT_KNOWN_HERE}; write f"{{x}} {{y}}"', 'f"{x} {y}"'),
    Mistake("incf", "(incf x)", f"incf {IS_NOT_KNOWN_HERE}; write (+= x 1)", "(+= x 1)"),
    Mistake(
        "throw",
        '(throw "bad")',
        f'throw {IS_NOT_KNOWN_HERE}; write (raise (ValueError "no"))',
        '(raise (ValueError "no"))',
    ),
    Mistake(
        "an idiom that does not fit",
        "(first [1 2] 0)",
        f"first {DOES_NOT_FIT_HERE}; write (first [4 5])",
        "(first [4 5])",
    ),
    Mistake(
        "a missing closing bracket",
        "(+ 1 (* 2 3)",
        f"this ( {IS_NEVER_CLOSED}; add ) at the end; write (+ 1 (* 2 3))",
        "(+ 1 (* 2 3))",
    ),
    Mistake("a closing bracket too many", "(+ 1 2))", "there is one ) too many; write (+ 1 2)", "(+ 1 2)"),
    Mistake(
        "a missing opening bracket",
        'read-file "a.txt")',
        'the ( before the first word is missing; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake(
        "a wrong closing bracket",
        "(let [x 1) x)",
        f"this ) {DOES_NOT_CLOSE_THE} [ at line 1, column 6; write (let [x 1] x)",
        "(let [x 1] x)",
    ),
    Mistake(
        "a Python function",
        "def f(x): return x + 1",
        "this is Python; write (defn f [x] (+ x 1))",
        "(defn f [x] (+ x 1))",
    ),
    Mistake(
        "a Python loop",
        "for x in xs: print(x)",
        "this is Python; write (for [x xs] (print x))",
        "(for [x xs] (print x))",
    ),
    Mistake(
        "only the head of a Python loop",
        "for x in xs:",
        "this is Python; write (for [x xs] None)",
        "(for [x xs] None)",
    ),
    Mistake(
        "a Python call with a named argument",
        'read_file(path="a.txt")',
        'this is Python; write (read-file :path "a.txt")',
        '(read-file :path "a.txt")',
    ),
    Mistake(
        "a Python call that is awaited",
        'await read_file("a.txt")',
        'this is Python; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake("a Python method", "s.upper()", "this is Python; write (.upper s)", "(.upper s)"),
    Mistake("a Python import", "import os", "this is Python; write (import os)", "(import os)"),
    Mistake(
        "a Python lambda",
        "(lambda x: x + 1)",
        "a function is (fn [x] …); write (fn [x] (+ x 1))",
        "(fn [x] (+ x 1))",
    ),
    Mistake(
        "a Python comprehension",
        "[x * 2 for x in [1, 2]]",
        "lfor makes a list of computed values; write (lfor x [1 2] (* x 2))",
        "(lfor x [1 2] (* x 2))",
    ),
    Mistake("a Python return", "return 5", "this is Python; write 5", "5"),
    Mistake(
        "a Python call in a form",
        '(len (print("a")))',
        'the bracket comes before the name; write (print "a")',
        '(print "a")',
    ),
    Mistake(
        "a name without a value in let",
        "(let [x] x)",
        f"let {DOES_NOT_FIT_HERE}; write (let [x 1  y 2] (+ x y))",
        "(let [x 1  y 2] (+ x y))",
    ),
    Mistake(
        "an equals sign in let",
        "(let [x = 5] x)",
        f"let {DOES_NOT_FIT_HERE}; write (let [x 1  y 2] (+ x y))",
        "(let [x 1  y 2] (+ x y))",
    ),
    Mistake(
        "let without a list",
        "(let x 5 (+ x 1))",
        f"let {DOES_NOT_FIT_HERE}; write (let [x 1  y 2] (+ x y))",
        "(let [x 1  y 2] (+ x y))",
    ),
    Mistake(
        "a colon before the operator",
        '(:read-file "a.txt")',
        'the name of a function has no colon; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake(
        "a text in single quotes",
        "(read-file 'my file.txt')",
        'a text is written in double quotes; write (read-file "my file.txt")',
        '(read-file "my file.txt")',
    ),
    Mistake(
        "smart quotes",
        "(read-file “a.txt”)",
        'a text is written in plain double quotes, "like this"; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake(
        "an argument with an equals sign",
        '(read-file path="a.txt")',
        'an argument\'s name is a keyword before its value; write (read-file :path "a.txt")',
        '(read-file :path "a.txt")',
    ),
    Mistake(
        "an argument with a colon behind",
        '(read-file path: "a.txt")',
        'an argument\'s name is a keyword before its value; write (read-file :path "a.txt")',
        '(read-file :path "a.txt")',
    ),
    Mistake(
        "an argument like an option's",
        '(read-file --path "a.txt")',
        'an argument\'s name is a keyword before its value; write (read-file :path "a.txt")',
        '(read-file :path "a.txt")',
    ),
    Mistake(
        "an argument without a value",
        "(read-file :path)",
        f"the argument :path {HAS_NO_VALUE}; write (read-file :path None)",
        "(read-file :path None)",
    ),
    Mistake(
        "a file without quotes",
        "(read-file :path README.org)",
        'a text is written in double quotes; write "README.org"',
        '"README.org"',
    ),
    Mistake(
        "a path without quotes",
        "(read-file src/main.py)",
        'a text is written in double quotes; write "src/main.py"',
        '"src/main.py"',
    ),
    Mistake("a number in brackets", "(5)", "5 is not a function; a list is [ ]; write 5", "5"),
    Mistake(
        "a list in round brackets",
        '("a" "b")',
        '"a" is not a function; a list is [ ]; write ["a" "b"]',
        '["a" "b"]',
    ),
    Mistake(
        "a tool in quotes",
        '("read-file" "a.txt")',
        'the name of a function has no quotes; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake(
        "brackets around a form",
        "((+ 1 2))",
        "The program calls a value (int): x is the value, (x) calls it, (get x 0) gets an item.",
        "(get x 0)",
    ),
    Mistake(
        "await",
        '(await (read-file "a.txt"))',
        f'await {CANNOT_BE_USED_IN_A}; calls wait by themselves; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake(
        "return outside of a function",
        "(return 5)",
        "a program's value is the value of its last form; write 5",
        "5",
    ),
    Mistake("setv without a value", "(setv x)", f"setv {DOES_NOT_FIT_HERE}; write (setv x 1)", "(setv x 1)"),
    Mistake(
        "setv with an equals sign", "(setv x = 5)", "setv does not fit here; write (setv x 1)", "(setv x 1)"
    ),
    Mistake(
        "defn without brackets",
        "(defn f x (* x 2))",
        f"defn {DOES_NOT_FIT_HERE}; write (defn double [x] (* x 2))",
        "(defn double [x] (* x 2))",
    ),
    Mistake(
        "fn without brackets",
        "(fn x (* x 2))",
        f"fn {DOES_NOT_FIT_HERE}; write (fn [x] (* x 2))",
        "(fn [x] (* x 2))",
    ),
    Mistake(
        "for without brackets",
        "(for x in [1 2] (print x))",
        f"for {DOES_NOT_FIT_HERE}; write (for [x [1 2]] (print x))",
        "(for [x [1 2]] (print x))",
    ),
    Mistake(
        "in in a for",
        "(for [x in [1 2]] (print x))",
        f"for {DOES_NOT_FIT_HERE}; write (for [x [1 2]] (print x))",
        "(for [x [1 2]] (print x))",
    ),
    Mistake(
        "brackets in lfor",
        "(lfor [x [1 2]] (* x x))",
        f"lfor {DOES_NOT_FIT_HERE}; write (lfor x [1 2] (* x x))",
        "(lfor x [1 2] (* x x))",
    ),
    Mistake(
        "an odd cond",
        '(cond (= 1 2) "a" "b")',
        f'cond {DOES_NOT_FIT_HERE}; write (cond (= x 1) "a"  True "b")',
        '(cond (= x 1) "a"  True "b")',
    ),
    Mistake(
        "get without a key",
        '(get {"a" 1})',
        f'get {DOES_NOT_FIT_HERE}; write (get {{"a" 1}} "a")',
        '(get {"a" 1} "a")',
    ),
    Mistake(
        "a method as a function",
        '(split "a b" " ")',
        f"split {IS_NOT_KNOWN_HERE}; write (.split x)",
        "(.split x)",
    ),
    Mistake(
        "an empty while",
        "(while)",
        f"while {DOES_NOT_FIT_HERE}; write (while (< n 3) (+= n 1))",
        "(while (< n 3) (+= n 1))",
    ),
    Mistake(
        "a bad match",
        "(match)",
        f'match {DOES_NOT_FIT_HERE}; write (match x 1 "a"  _ "b")',
        '(match x 1 "a"  _ "b")',
    ),
    Mistake(
        "numbers run together",
        "[1,2,3]",
        "values are separated by spaces, without commas; write 1 2 3",
        "1 2 3",
    ),
    Mistake(
        "a test without brackets",
        "(if x > 3 1 2)",
        f"if {DOES_NOT_FIT_HERE}; write (if (> x 1) x 1)",
        "(if (> x 1) x 1)",
    ),
    Mistake(
        "an except without a list",
        "(try (/ 1 0) (except Exception 0))",
        f"except {DOES_NOT_FIT_HERE}; write (try (/ 1 0) (except [e Exception] (str e)))",
        "(try (/ 1 0) (except [e Exception] (str e)))",
    ),
    Mistake(
        "an except in the wrong order",
        "(try (/ 1 0) (except [Exception e] 0))",
        "except takes a name, then the exception class; write (try (/ 1 0) (except [e Exception] 0))",
        "(try (/ 1 0) (except [e Exception] 0))",
    ),
    Mistake(
        "a colon behind a word", "(while True: (break))", "a word has no colon after it; write True", "True"
    ),
    Mistake(
        "an infix operator in lfor",
        "(lfor i (range 3) i * 2)",
        f"{THE_PROGRAM_USES} *, {WHICH_IS_NOT_DEFINED}. An operator comes first in its form: (+ 1 2).",
        "(+ 1 2)",
    ),
    Mistake(
        "an unknown function",
        '(ehco "a")',
        f'{THE_PROGRAM_USES} ehco, {WHICH_IS_NOT_DEFINED}. Did you mean echo? Write (echo "a").',
        '(echo "a")',
    ),
    Mistake(
        "an unknown variable",
        "(len total)",
        f'The program uses total, which is not defined. Set it first; {A_TEXT_IS_WRITTEN_IN}: (len "total").',
        '(len "total")',
    ),
    Mistake(
        "a value that is called",
        "(do (setv xs [1 2]) (xs 0))",
        "The program calls a value (list): x is the value, (x) calls it, (get x 0) gets an item.",
        "(get x 0)",
    ),
)
