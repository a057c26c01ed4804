"""What models get wrong when they write Lisp: the mistake is seen, and the corrected form is shown.

It only finds words for what fails anyway, and runs nothing. It must not know the sandbox, tools (only their
names), or doors. MISTAKES is the table: data for the tests and for the documentation.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import hy
import hy.models as m

from tools.errors import did_you_mean, nearest
from tools.form import kebab, print_string
from tools.idioms import IDIOMS, RULES, head_of, is_core, rewrite, symbols_in
from tools.sexp import Limits, ReadError, read_all

MAX_LESSON = 200  # characters of a message
MAX_FIXED = 110  # of the form it shows; a longer one helps less than a general example
MAX_PYTHON = 2_000  # of a text that is tried as Python
_LIMITS = Limits(max_chars=MAX_PYTHON, max_depth=60, max_forms=1_000, booleans=True)


@dataclass(frozen=True)
class Lesson:
    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Mistake:
    """``wrong`` is told ``message``, which shows ``fixed``."""

    name: str
    wrong: str
    message: str
    fixed: str


def _told(what: str, fixed: str | None, example: str = "") -> str:
    """A message that shows the corrected form, or an example when there is none or it is too long."""
    if fixed is not None and (len(fixed) > MAX_FIXED or "\n" in fixed or not _reads(fixed)):
        fixed = None
    shown = fixed or example
    message = f"{what}; write {shown}" if shown else what
    return message if len(message) <= MAX_LESSON else message[: MAX_LESSON - 1] + "…"


def _reads(text: str) -> bool:
    try:
        return bool(read_all(text, _LIMITS))
    except ReadError:
        return False


def _short(text: str, limit: int = 40) -> str:
    text = "".join(c if c.isprintable() else "\ufffd" for c in text[:limit])
    return text if len(text) < limit else text[: limit - 1] + "…"


class _Source:
    """The program's text by nodes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def span(self, node: Any) -> tuple[int, int]:
        start = self.starts[node.start_line - 1] + node.start_column - 1
        return start, self.starts[node.end_line - 1] + node.end_column

    def of(self, node: Any) -> str:
        start, stop = self.span(node)
        return " ".join(self.text[start:stop].split("\n"))

    def all(self, nodes: Iterable[Any]) -> str:
        return " ".join(map(self.of, nodes))

    def clean(self, node: Any) -> str:
        """The node without commas and JSON's colons."""
        if isinstance(node, (m.List, m.Dict, m.Expression)) and self.of(node)[:1] in "([{":
            opener, closer = self.of(node)[0], self.of(node)[-1]
            parts = [part for item in node if (part := self.clean(item))]
            return opener + " ".join(parts) + closer
        text = self.of(node).rstrip(",")
        if isinstance(node, m.Keyword) and not node.name:
            return ""
        if isinstance(node, m.Symbol) and text.endswith(":"):
            return print_string(text[:-1])
        return text


# ---- Python, said in Lisp


class _NoLisp(Exception):
    """This Python has no short Lisp."""


_OPERATORS: Final[dict[type, str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.Eq: "=", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
    ast.NotIn: "not-in", ast.Is: "is", ast.IsNot: "is-not", ast.And: "and", ast.Or: "or", ast.Not: "not",
    ast.USub: "-",
}  # fmt: skip


def from_python(text: str) -> str | None:
    """Python as Lisp, or None: it is no Python, says nothing, or is too long. Nothing is run."""
    if len(text) > MAX_PYTHON:
        return None
    for tail in ("", "\n    pass", " pass"):
        try:
            tree = ast.parse(text.strip() + tail)
            forms = [_lisp(node) for node in tree.body if not isinstance(node, ast.Pass)]
        except (SyntaxError, ValueError, MemoryError, RecursionError, _NoLisp):
            continue
        return " ".join(forms) or None
    return None


def _lisp(node: Any) -> str:
    """One node of Python. Its depth is bounded by Python's own parser, and by the length of the text."""
    match node:
        case ast.Constant(value=str() as text):
            return print_string(text)
        case ast.Constant(value=None | bool() | int() | float() as value):
            return str(value)
        case ast.Name(id=name):
            return name
        case ast.Expr(value=value) | ast.Await(value=value):
            return _lisp(value)
        case ast.Return(value=value):
            return _lisp(value) if value else "None"
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=keywords):
            return _form(f".{name}", _lisp(owner), *_arguments(args, keywords))
        case ast.Call(func=function, args=args, keywords=keywords):
            return _form(kebab(_lisp(function)), *_arguments(args, keywords))
        case ast.Attribute(value=owner, attr=name):
            return _form(".", _lisp(owner), name)
        case ast.Subscript(value=owner, slice=ast.Slice(lower=lower, upper=upper, step=None)):
            return _form(
                "cut", _lisp(owner), _lisp(lower) if lower else "0", _lisp(upper) if upper else "None"
            )
        case ast.Subscript(value=owner, slice=key):
            return _form("get", _lisp(owner), _lisp(key))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _form(_OPERATORS[type(op)], _lisp(left), _lisp(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _form(_OPERATORS[type(op)], _lisp(left), _lisp(right))
        case ast.BoolOp(op=op, values=values):
            return _form(_OPERATORS[type(op)], *map(_lisp, values))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return f"-{number}"
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _form(_OPERATORS[type(op)], _lisp(operand))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return "[" + " ".join(map(_lisp, items)) + "]"
        case ast.Dict(keys=keys, values=values) if all(keys):
            pairs = zip(map(_lisp, keys), map(_lisp, values), strict=True)
            return "{" + " ".join(f"{key} {value}" for key, value in pairs) + "}"
        case ast.IfExp(test=test, body=body, orelse=other):
            return _form("if", *map(_lisp, (test, body, other)))
        case ast.Lambda(args=args, body=body):
            return _form("fn", _parameters(args), _lisp(body))
        case ast.ListComp(elt=item, generators=[each]) if not each.is_async:
            tests = [part for test in each.ifs for part in (":if", _lisp(test))]
            return _form("lfor", _lisp(each.target), _lisp(each.iter), *tests, _lisp(item))
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return _form("setv", name, _lisp(value))
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in _OPERATORS:
            return _form(f"{_OPERATORS[type(op)]}=", name, _lisp(value))
        case ast.For(target=target, iter=over, body=body, orelse=[]):
            return _form("for", f"[{_lisp(target)} {_lisp(over)}]", *_body(body))
        case ast.While(test=test, body=body, orelse=[]):
            return _form("while", _lisp(test), *_body(body))
        case ast.If(test=test, body=body, orelse=[]):
            return _form("when", _lisp(test), *_body(body))
        case ast.FunctionDef(name=name, args=args, body=body):
            return _form("defn", kebab(name), _parameters(args), *_body(body))
        case ast.Import(names=names) if not any(alias.asname for alias in names):
            return _form("import", *(alias.name for alias in names))
        case ast.ImportFrom(module=str() as module, names=names, level=0):
            return _form("import", module, "[" + " ".join(alias.name for alias in names) + "]")
    raise _NoLisp


def _form(*parts: str) -> str:
    return "(" + " ".join(parts) + ")"


def _arguments(args: Sequence[Any], keywords: Sequence[Any]) -> list[str]:
    if any(keyword.arg is None for keyword in keywords):
        raise _NoLisp
    return [*map(_lisp, args), *(f":{kebab(k.arg)} {_lisp(k.value)}" for k in keywords)]


def _parameters(args: Any) -> str:
    if args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg or args.defaults:
        raise _NoLisp
    return "[" + " ".join(arg.arg for arg in args.args) + "]"


def _body(body: Sequence[Any]) -> list[str]:
    return [_lisp(node) for node in body if not isinstance(node, ast.Pass)] or ["None"]


_STATEMENT = re.compile(r"\s*(def|for|while|if|return|import|from|await|async|class|with|try|lambda|not)\b")
_PYTHON_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
_ASSIGNED = re.compile(r"\s*[A-Za-z_]\w*\s*(?:[-+*/]|//)?=[^=]")


def _whole_python(text: str) -> str | None:
    """The Lisp of a program that is Python from its first word; a list, text or name alone is Lisp too."""
    start = text.lstrip()
    if start[:1] in "([{\"';#":
        return None
    if not (_STATEMENT.match(start) or _PYTHON_CALL.match(start) or _ASSIGNED.match(start) or " " in start):
        return None
    made = from_python(text)
    return made if made and made != text.strip() else None


# ---- texts that cannot be read

_SINGLE = re.compile(r"'([^'\"()\[\]{}\n]*)'")
_SMART = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
_NAMED_TEXT = re.compile(r"([A-Za-z_][\w-]*)=(?=\")")


def unreadable(text: str, error: ReadError) -> Lesson | None:
    """What to say of a text the reader refuses, if more than it says itself."""

    def lesson(what: str, fixed: str | None) -> Lesson | None:
        if fixed is None or len(fixed) > MAX_FIXED or "\n" in fixed or not _reads(fixed):
            return None
        return Lesson(error.line, error.column, _told(what, fixed))

    stripped = text.strip()
    if len(stripped) > MAX_PYTHON:
        return None
    python = _whole_python(text)
    if python:
        return lesson("this is Python", python)
    if "no form after this '" in error.message or "a symbol" in error.message or _SINGLE.search(stripped):
        found = lesson("a text stands in double quotes", _SINGLE.sub(r'"\1"', stripped))
        if found:
            return found
    if "no string has the prefix" in error.message and _NAMED_TEXT.search(stripped):
        return lesson("an argument's name is a keyword before its value", _NAMED_TEXT.sub(r":\1 ", stripped))
    if error.message.startswith("there is no open form"):
        before = text[: error.offset].strip()
        if before and before[0] not in "([{" and _reads(f"({before})"):
            return lesson("the ( before the first word is missing", f"({stripped}")
        rest = text[error.offset + 1 :].strip()
        return lesson(f"there is one {text[error.offset]} too many", f"{before} {rest}".strip())
    closers = re.search(r"add ([)\]}]+) at the end", error.hint)
    if error.incomplete and closers:
        return lesson(f"{error.message}; {error.hint}", stripped + closers[1])
    if error.message.startswith("this ") and "does not close" in error.message:
        for opener in ")]}":
            for fixed in (
                text[: error.offset] + opener + text[error.offset + 1 :],
                text[: error.offset] + opener + text[error.offset :],
            ):
                if _reads(fixed):
                    return lesson(error.message, fixed.strip())
    return None


# ---- programs that can be read


def spot(forms: Sequence[Any], text: str, names: Iterable[str] = ()) -> Lesson | None:
    """The first mistake in rewritten ``forms`` that would fail while compiling or running."""
    if not forms:
        return None
    source = _Source(text)
    word = isinstance(forms[0], m.Symbol) or head_of(forms[0]) == "."
    infix = len(forms) > 1 and str(forms[1]) in _INFIX
    python = _whole_python(text) if word or infix else None
    if python and (len(forms) > 1 or python.startswith("(")):
        return Lesson(forms[0].start_line, forms[0].start_column, _told("this is Python", python))
    tools = frozenset(names)
    seen = _Spotter(source, tools, _said(forms) | {str(hy.mangle(tool)) for tool in tools})
    for node, said in seen.walk(forms):
        return Lesson(node.start_line, node.start_column, said)
    return None


def _said(forms: Sequence[Any]) -> frozenset[str]:
    """Every name that stands anywhere but at the head of a form: the program may have bound it."""
    found: set[str] = set()
    pending: list[Any] = [m.List(forms)]
    while pending:
        node = pending.pop()
        form, dotted = isinstance(node, m.Expression), head_of(node) == "."
        for place, item in enumerate(node):
            if isinstance(item, m.Symbol) and not dotted and (place or not form):
                found.update(symbols_in(item))
            elif isinstance(item, m.Sequence):
                pending.append(item)
    return frozenset(found)


_INFIX = frozenset("+ - * / // % ** < > <= >= = == != and or in is not-in".split())  # noqa: SIM905
_BUILTINS = frozenset(dir(builtins))
_NO_FUNCTION = frozenset("None True False".split())  # noqa: SIM905
_PERCENT = re.compile(r"(?<=\s)%([12]?)(?=[\s)\]])")
_PATH = re.compile(r"(?:[\w.~-]*/)+[\w.*-]*\Z")
_FILES = frozenset("org md txt py hy json csv toml yml yaml html js ts log cfg ini xml rst sh".split())  # noqa: SIM905
_METHODS = frozenset(
    "split rsplit splitlines strip lower upper replace startswith endswith join items keys values".split()  # noqa: SIM905
)

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


_HOLE = re.compile(r"\{(\*|-?\d)\}")
_TAKES = {
    "(cut {*})": (2, 4),
    "(match {*})": (3, MAX_PYTHON),
}
_EXAMPLES = {
    "(setv {*})": "(setv x 1)",
    "(cut {*})": "(cut x 0 2)",
    "(match {*})": '(match x 1 "a"  _ "b")',
    "(defn {*})": "(defn double [x] (* 2 x))",
}


def _stands(fixed: str) -> bool:
    """Whether the outermost form is right."""
    try:
        lesson = spot(rewrite(read_all(fixed, _LIMITS)), fixed)
    except (ReadError, RecursionError):
        return False
    return lesson is None or lesson.column > 1


class _Spotter:
    def __init__(self, source: _Source, tools: frozenset[str], bound: frozenset[str]) -> None:
        self.source = source
        self.tools = tools
        self.bound = bound

    def walk(self, forms: Sequence[Any]) -> Iterator[tuple[Any, str]]:
        """Every mistake, outer ones first. It keeps its own stack; ``inside`` a function return may stand."""
        pending: list[tuple[Any, bool]] = [(form, False) for form in reversed(forms)]
        said = self.top(forms)
        if said:
            yield said
        while pending:
            node, inside = pending.pop()
            if isinstance(node, m.Symbol):
                message = self.symbol(node)
            elif isinstance(node, (m.Integer, m.Float)):
                message = self.number(node)
            elif isinstance(node, m.Expression):
                message = self.expression(node, inside)
            elif isinstance(node, (m.List, m.Dict, m.Tuple)):
                message = self.collection(node)
            else:
                message = None
            if message:
                yield node, message
            if isinstance(node, m.Sequence):
                head = head_of(node)
                if head in ("import", "quote", "quasiquote", "annotate", "."):
                    continue
                inside = inside or head in ("fn", "defn", "defclass")
                pending.extend((item, inside) for item in reversed(node))

    def free(self, name: str) -> bool:
        try:
            return hy.mangle(name) not in self.bound
        except Exception:
            return True

    def top(self, forms: Sequence[Any]) -> tuple[Any, str] | None:
        """x = 5 among other forms, and a call whose bracket stands behind its name."""
        for place, form in enumerate(forms[:-1]):
            after = forms[place + 1]
            if not isinstance(form, m.Symbol):
                continue
            if str(after) in ("=", ":=") and place + 2 < len(forms):
                fixed = f"(setv {self.source.of(form)} {self.source.of(forms[place + 2])})"
                return form, _told("a variable is set by setv", fixed)
            if isinstance(after, m.Expression) and self.source.span(form)[1] == self.source.span(after)[0]:
                whole = self.source.of(form) + self.source.of(after)
                fixed = from_python(whole) or f"({self.source.of(form)} {self.source.all(after)})"
                return form, _told("the bracket stands before the name", fixed)
        return None

    def symbol(self, node: Any) -> str | None:
        return self.word(node, str(node), self.free(str(node)))

    def word(self, node: Any, name: str, free: bool) -> str | None:
        if name[0] in "“”„«»‘’":
            fixed = self.source.text.strip().translate(_SMART)
            return _told('a text stands in plain double quotes, "so"', fixed)
        if name == "," or (name.endswith(",") and len(name) > 1):
            return _told("values stand side by side, without commas", None, name.rstrip(",") or "[1 2]")
        if name.endswith(":") and len(name) > 1:
            return _told("no colon stands behind a word", name.rstrip(":"))
        if name.startswith("@") and len(name) > 1:
            return _told("a variable is its name alone", name[1:])
        if _PATH.match(name) and len(name.strip("/.")) > 1 and free and name not in RULES:
            return _told("a text stands in double quotes", print_string(name))
        return None

    def number(self, node: Any) -> str | None:
        """1,2,3 is read as 123; only 1,000 can be meant so."""
        text = self.source.of(node).rstrip(",")
        if (
            "," not in text
            or text[0] not in "-0123456789"
            or re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d*)?", text)
        ):
            return None
        return _told("values stand side by side, without commas", text.replace(",", " "))

    def collection(self, node: Any) -> str | None:
        of = self.source.of
        if isinstance(node, m.Tuple):
            whole = of(node)
            if not _PERCENT.search(whole):
                return None
            names = "it it2" if "%2" in whole else "it"
            body = _PERCENT.sub(lambda found: "it2" if found[1] == "2" else "it", whole[1:])
            return _told("#( begins a tuple; a function is (fn [x] …)", f"(fn [{names}] {body})")
        if isinstance(node, m.List) and {"for", "in"} <= {str(item) for item in node}:
            return _told(
                "a list of computed values is made by lfor", from_python(of(node)), "(lfor x [1 2] (* x x))"
            )
        if isinstance(node, m.Dict) and re.search(r"'\s*:", of(node)) and from_python(of(node)):
            return _told(
                "a dictionary holds keys and values, without colons and commas", from_python(of(node))
            )
        if any(str(item).endswith(",") and isinstance(item, m.Symbol) for item in node) or any(
            isinstance(item, m.Keyword) and not item.name for item in node
        ):
            what = "a dictionary holds keys and values, without colons and commas"
            if isinstance(node, m.List):
                what = "values stand side by side, without commas"
            return _told(what, from_python(of(node)) or self.source.clean(node))
        if isinstance(node, m.Dict):
            odd = len(node) % 2 and not any(head_of(item) == "unpack-mapping" for item in node)
            if odd:
                return _told("a dictionary has a value for each key", of(node)[:-1] + " None}")
        elif node and isinstance(node[0], m.Symbol) and str(node[0]) in self.tools and len(node) > 1:
            return _told("[ begins a list; a call stands in ( )", f"({self.source.all(node)})")
        return None

    def expression(self, node: Any, inside: bool) -> str | None:
        of, name = self.source.of, head_of(node)
        opened = self.source.text[self.source.span(node)[0]] == "("
        if name == "." and not opened:  # a dotted name
            file = len(node) > 2 and isinstance(node[1], m.Symbol) and str(node[-1]) in _FILES
            if file and str(node[1]) != "None" and self.unknown(str(node[1])):
                return _told("a text stands in double quotes", print_string(of(node)))
            return self.word(node, of(node), self.unknown(str(node[1])))
        if not node or not opened:
            return None
        head = node[0]
        if any(isinstance(item, m.Symbol) and str(item).endswith(",") for item in node):
            return _told("values stand side by side, without commas", self.source.clean(node))
        if infix := self.infix(node):
            return infix
        if isinstance(head, m.Keyword):
            return _told(
                "what is called has no colon", f"({head.name} {self.source.all(node[1:])})".replace(" )", ")")
            )
        if isinstance(head, m.String):
            if self.called_before(node):
                return self.called_before(node)
            if len(node) > 1 and str(head) in self.tools:
                return _told("what is called has no quotes", f"({head} {self.source.all(node[1:])})")
            return _told("a text is no function; a list is [ ]", f"[{self.source.all(node)}]")
        if isinstance(head, (m.Integer, m.Float)) or (name in _NO_FUNCTION):
            if self.called_before(node):
                return self.called_before(node)
            fixed = of(head) if len(node) == 1 else f"[{self.source.all(node)}]"
            return _told(f"{_short(of(head))} is no function", fixed)
        if len(node) == 1 and head_of(head) in _INFIX:
            return _told("the value of a form is no function", of(head))
        if name == "return" and not inside:
            return _told("a program's value is that of its last form", self.source.all(node[1:]) or "None")
        if name == "lambda":
            python = from_python(of(node)[1:-1]) if ":" in of(node) else None
            return _told("a function is (fn [x] …)", python, "(fn [x] (* x 2))")
        if name in _SPECIAL:
            special: Callable[[Any], str | None] = getattr(self, "_" + name.replace("defun", "defn"))
            return special(node)
        ours = (name == "values" and len(node) == 1) or (name == "set" and len(node) == 2)  # Python's set
        if not ours and self.free(name) and (name in FOREIGN or name in _METHODS):
            return self.foreign(node, name)
        if is_core(name):
            return None
        if name in RULES and self.unknown(name):
            row = next(row for row in IDIOMS if name in row.names.split())
            return _told(f"{name} does not fit here", row.written.replace(row.names.split()[0], name, 1))
        if isinstance(node[-1], m.Keyword) and len(node) > 1 and node[-1].name:
            given = self.source.all(node)
            return _told(f"the argument {of(node[-1])} has no value", f"({given} None)")
        return self.named(node)

    def unknown(self, name: str) -> bool:
        """Not a tool, not Python's, and nowhere but in such a place: it cannot be defined."""
        return self.free(name) and name not in _BUILTINS and not is_core(name)

    def called_before(self, node: Any) -> str | None:
        """f("x") inside a form: the bracket stands behind the name."""
        start, stop = self.source.span(node)
        found = re.search(r"[A-Za-z_][\w.-]*\Z", self.source.text[:start])
        if not found:
            return None
        whole = found[0] + self.source.text[start:stop]
        return _told(
            "the bracket stands before the name",
            from_python(whole) or f"({found[0]} {self.source.all(node)})",
        )

    def infix(self, node: Any) -> str | None:
        name = head_of(node)
        if len(node) < 3 or name in RULES or (name and is_core(name)):
            return None
        op = ":=" if isinstance(node[1], m.Keyword) and node[1].name == "=" else str(node[1])
        if op not in _INFIX | {":="} or not isinstance(node[1], (m.Symbol, m.Keyword)):
            return None
        whole = self.source.of(node)
        fixed = None if re.search(r"\w-\w", whole) else from_python(whole[1:-1].replace(":=", "="))
        if fixed is None:
            sign = {"=": "setv", ":=": "setv", "==": "="}.get(op, op)
            fixed = f"({sign} {self.source.of(node[0])} {self.source.all(node[2:])})"
        return _told("the operator comes first", fixed)

    def named(self, node: Any) -> str | None:
        """path=x and path: and --path as names of arguments."""
        for place, item in enumerate(node[1:], 1):
            found = isinstance(item, m.Symbol) and re.fullmatch(
                r"(?:--?)?([A-Za-z_][\w-]*)(=|:)?(.*)", str(item), re.DOTALL
            )
            if not found or (not found[2] and not str(item).startswith("--")) or str(item).startswith("->"):
                continue
            if found[2] == "=" and not found[3]:
                continue
            value = f" {found[3]}" if found[3] else ""
            rest = self.source.all(node[place + 1 :])
            before = self.source.all(node[:place])
            fixed = f"({before} :{found[1]}{value}{' ' if rest else ''}{rest})"
            return _told("an argument's name is a keyword before its value", fixed)
        return None

    def foreign(self, node: Any, name: str) -> str | None:
        given = [self.source.of(item) for item in node[1:]]
        if name in _METHODS:
            return _told(f"{name} is a method", f"(.{name} {' '.join(given)})" if given else f'(.{name} "a")')
        shape = FOREIGN[name]
        if name == "case" and len(given) > 2 and len(given) % 2 == 0:
            given.insert(-1, "_")  # Clojure's last form is the rest
        places = {"*": " ".join(given), **{str(i): text for i, text in enumerate(given, 1)}}
        if given:
            places["-1"] = given[-1]
        least, most = _TAKES.get(shape, (1, MAX_PYTHON))
        try:
            fixed = _HOLE.sub(lambda found: places[found[1]], shape)
            if not least <= len(given) <= most or not _stands(fixed):
                raise KeyError
        except KeyError:
            fixed = _HOLE.sub("x", _EXAMPLES.get(shape, shape))
        return _told(_WHY.get(name, f"{name} is not known here"), fixed.replace("{{}}", "{}"))

    # special forms with parts that do not fit

    def inside_out(self, node: Any) -> str | None:
        """(if x > 3 1 2): the test lacks its brackets."""
        if len(node) < 5 or not isinstance(node[2], m.Symbol) or str(node[2]) not in _INFIX:
            return None
        of, sign = self.source.of, {"==": "="}.get(str(node[2]), str(node[2]))
        test = f"({sign} {of(node[1])} {of(node[3])})"
        return _told("a test is a form", f"({node[0]} {test} {self.source.all(node[4:])})")

    def _if(self, node: Any) -> str | None:
        if said := self.inside_out(node):
            return said
        parts = [
            item
            for item in node[1:]
            if str(item) not in ("then", "else") and not (isinstance(item, m.Keyword) and item.name == "else")
        ]
        if 3 <= len(node) <= 4 and len(parts) == len(node) - 1:
            return None
        texts = [self.source.of(item) for item in parts]
        if len(parts) == len(node) - 1 and len(parts) > 3:
            texts = [*texts[:2], f"(do {' '.join(texts[2:])})"]
        fixed = f"(if {' '.join(texts)})" if 2 <= len(texts) <= 3 else None
        return _told("if takes a test, a value and another value", fixed, "(if (> x 1) x 1)")

    def _try(self, node: Any) -> str | None:
        texts = [self.handler(item) or self.source.of(item) for item in node[1:]]
        if not any(self.handler(item) for item in node[1:]):
            return None
        fixed = f"(try {' '.join(texts)})"
        return _told("try takes (except [e Exception] …)", fixed, "(try (/ 1 0) (except [e Exception] 0))")

    def handler(self, node: Any) -> str | None:
        """(catch Exception e 0), (except Exception 0) and the like, as an except; None: it is right."""
        head = head_of(node)
        if len(node) < 3 if head in ("catch", "except") else True:
            return None
        names = [node[1]] if isinstance(node[1], m.Symbol) else list(node[1])
        body = node[2:]
        if isinstance(node[1], m.Symbol) and isinstance(node[2], m.Symbol) and len(node) > 3:
            names, body = [node[1], node[2]], node[3:]
        if not all(isinstance(name, m.Symbol) for name in names) or not 1 <= len(names) <= 2:
            return None
        swapped = len(names) == 2 and str(names[0]) in _BUILTINS and str(names[1]) not in _BUILTINS
        if head == "except" and isinstance(node[1], m.List) and not swapped:
            return None
        kind = [str(name) if str(name) in _BUILTINS else "Exception" for name in names][0 if swapped else -1]
        bound = [str(names[1 if swapped else 0])] if len(names) == 2 else []
        return f"(except [{' '.join([*bound, kind])}] {self.source.all(body)})"

    def _let(self, node: Any) -> str | None:
        of, all_ = self.source.of, self.source.all
        what = "let takes a list of names and values"
        if len(node) > 1 and isinstance(node[1], m.List):
            if len(node[1]) % 2 == 0:
                return None
            marks = [item for item in node[1] if str(item) not in ("=", ":=")]
            inner = all_(marks) if len(marks) % 2 == 0 else f"{all_(marks)} None"
            return _told(what, f"(let [{inner}] {all_(node[2:])})".replace(" )", ")"))
        if len(node) > 3 and isinstance(node[1], m.Symbol):
            marks = [item for item in node[1:] if str(item) not in ("=", ":=")]
            return _told(what, f"(let [{of(marks[0])} {of(marks[1])}] {all_(marks[2:])})".replace(" )", ")"))
        return _told(what, None, "(let [x 1  y 2] (+ x y))")

    def _setv(self, node: Any) -> str | None:
        marks = [item for item in node[1:] if str(item) not in ("=", ":=")]
        if len(marks) == len(node) - 1 and len(marks) % 2 == 0:
            return None
        texts = self.source.all(marks)
        python = from_python(texts)
        if len(marks) == 1 and python and python.startswith("(setv "):
            return _told("setv takes names and values", python)
        return _told(
            "setv takes names and values",
            f"(setv {texts})" if len(marks) % 2 == 0 else f"(setv {texts} None)",
        )

    def _fn(self, node: Any) -> str | None:
        if any(isinstance(item, m.List) for item in node[1:]) or head_of(node) != "fn":
            return None
        names = [item for item in node[1:-1] if isinstance(item, m.Symbol)]
        fixed = None
        if names and len(names) == len(node) - 2:
            fixed = f"(fn [{self.source.all(names)}] {self.source.of(node[-1])})"
            python = from_python("lambda " + self.source.of(node)[1:-1].partition(" ")[2])
            fixed = python if python and ":" in self.source.of(node) else fixed
        return _told("parameters stand in a list", fixed, "(fn [x] (* x 2))")

    def _defn(self, node: Any) -> str | None:
        if any(isinstance(item, m.List) for item in node[1:]) or any(
            isinstance(i, m.Keyword) for i in node[1:]
        ):
            return None
        what = "a function has a list of parameters"
        if len(node) < 2 or not isinstance(node[1], m.Symbol):
            return _told(what, None, "(defn double [x] (* x 2))")
        names = [item for item in node[2:-1] if isinstance(item, m.Symbol)]
        if len(names) != len(node[2:-1]):
            names = []
        body = self.source.all(node[2 + len(names) :]) or "None"
        return _told(what, f"(defn {node[1]} [{self.source.all(names)}] {body})")

    def _for(self, node: Any) -> str | None:
        what = "for takes a list of a name and what it goes through"
        of, all_ = self.source.of, self.source.all
        if len(node) > 1 and isinstance(node[1], m.List):
            parts = [item for item in node[1] if str(item) != "in"]
            if len(parts) == len(node[1]) and (len(parts) % 2 == 0 or not parts):
                return None
            fixed = f"(for [{all_(parts)}] {all_(node[2:])})".replace(" )", ")")
            return _told(what, fixed if len(parts) % 2 == 0 else None, "(for [x [1 2]] (print x))")
        parts = [item for item in node[1:] if str(item) != "in"]
        if len(parts) > 2 and isinstance(parts[0], m.Symbol):
            return _told(what, f"(for [{of(parts[0])} {of(parts[1])}] {all_(parts[2:])})")
        return _told(what, None, "(for [x [1 2]] (print x))")

    def _lfor(self, node: Any) -> str | None:
        if len(node) == 3 and isinstance(node[1], m.List) and len(node[1]) > 1:
            parts = [item for item in node[1] if str(item) != "in"]
            fixed = f"(lfor {self.source.all(parts)} {self.source.of(node[2])})"
            return _told("lfor takes its names without a list", fixed)
        if len(node) > 4 and str(node[2]) == "in":
            parts = [item for item in node[1:] if str(item) != "in"]
            return _told("lfor takes no in", f"(lfor {self.source.all(parts)})")
        if len(node) == 6 and isinstance(node[4], m.Symbol) and str(node[4]) in _INFIX:
            last = f"({node[4]} {self.source.of(node[3])} {self.source.of(node[5])})"
            return _told("the operator comes first", f"(lfor {self.source.all(node[1:3])} {last})")
        if len(node) < 4:
            return _told(
                "lfor takes a name, what it goes through, and a form", None, "(lfor x [1 2] (* x x))"
            )
        return None

    def _cond(self, node: Any) -> str | None:
        if len(node) % 2 or any(head_of(item) == "unpack-iterable" for item in node):
            return None
        before = self.source.all(node[1:-1])
        fixed = (
            f"(cond {before} True {self.source.of(node[-1])})"
            if before
            else f"(cond True {self.source.of(node[-1])})"
        )
        return _told("cond takes tests and values in turn", fixed)

    def _get(self, node: Any) -> str | None:
        if len(node) > 2:
            return None
        fixed = f"(get {self.source.of(node[1])} 0)" if len(node) == 2 else None
        return _told("get takes a collection and a key", fixed, '(get hit "path")')

    def _when(self, node: Any) -> str | None:
        if len(node) > 2:
            return self.inside_out(node)
        fixed = f"(when {self.source.of(node[1])} None)" if len(node) == 2 else None
        return _told("when takes a test and what follows from it", fixed, "(when (> x 1) x)")

    def _while(self, node: Any) -> str | None:
        if len(node) > 2:
            return self.inside_out(node)
        fixed = f"(while {self.source.of(node[1])} (break))" if len(node) == 2 else None
        return _told("while takes a test and what is done", fixed, "(while (< n 3) (+= n 1))")


_SPECIAL = frozenset("if let setv fn defn defun for lfor cond get when while try".split())  # noqa: SIM905
_WHY: Final = {
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


# ---- programs that do not compile

USAGE: Final = {
    "match": '(match x 1 "a"  _ "b")',
    "try": "(try (/ 1 0) (except [e Exception] (str e)))",
    "except": "(try (/ 1 0) (except [e Exception] (str e)))",
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
}


def misused(text: str, line: int, column: int) -> str | None:
    """What to say of a form Hy cannot compile: how the innermost special form there is written."""
    try:
        pending = list(read_all(text, _LIMITS))
    except ReadError:
        return None
    found = None
    while pending:
        node = pending.pop()
        if not isinstance(node, m.Sequence):
            continue
        start, stop = (node.start_line, node.start_column), (node.end_line, node.end_column)
        if start <= (line, column) <= stop:
            found = head_of(node) if head_of(node) in USAGE else found
            pending = list(node)
    return _told(f"{found} does not fit here", USAGE[found]) if found else None


# ---- programs that fail


def undefined(name: str, text: str, names: Iterable[str]) -> str:
    """A name that was not defined when the program came to it."""
    known = list(names)
    said = f"The program uses {_short(name, 80)}, which is not defined."
    close = nearest(name, known)
    hint = did_you_mean(name, known)
    try:
        pending: list[Any] = list(read_all(text, _LIMITS))
    except ReadError:
        return said + hint
    source = _Source(text)
    while pending:
        node = pending.pop()
        if not isinstance(node, m.Sequence):
            continue
        whole = source.of(node)
        spelt = str(node[0]) if _same(head_of(node), name) else ""
        if spelt and close and spelt in whole and len(whole) <= MAX_FIXED:
            return f"{said}{hint} Write {whole.replace(spelt, close, 1)}."
        if head_of(node) == "." or isinstance(node, (m.FString, m.FComponent)):
            continue
        for item in node[1:] if isinstance(node, m.Expression) else node:
            word = item[1] if head_of(item) == "." and len(item) > 2 else item
            plain = re.fullmatch(r"[A-Za-z][\w./-]*", name) and name not in _INFIX
            if not close and plain and isinstance(word, m.Symbol) and _same(str(word), name):
                (start, _), (first, last) = source.span(node), source.span(item)
                quoted = print_string(source.of(item))
                fixed = whole[: first - start] + quoted + whole[last - start :]
                if len(fixed) <= MAX_FIXED:
                    return f"{said} Set it first; a text stands in quotes: {fixed}."
        pending.extend(node[::-1])
    return said + hint


def _same(spelt: str, name: str) -> bool:
    try:
        return bool(spelt) and hy.mangle(spelt) == hy.mangle(name)
    except Exception:
        return False


def failed(kind: str, message: str, text: str, names: Iterable[str]) -> str | None:
    """What to say of an exception nobody caught, if more than its own words."""
    if kind == "NameError" and "'" in message:
        name = str(hy.unmangle(message.split("'")[1])).replace("_", "-")
        return undefined(name, text, names)
    found = re.match(r"'(\w+)' object is not callable", message)
    if kind == "TypeError" and found:
        return f"The program calls a value ({found[1]}): x is it, (x) calls it, (get x 0) is a part."
    return None


# ---- the table

MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "four parts in if",
        "(if a b c d)",
        "if takes a test, a value and another value; write (if a b (do c d))",
        "(if a b (do c d))",
    ),
    Mistake(
        "else as a word",
        "(if (> 2 1) 1 else 2)",
        "if takes a test, a value and another value; write (if (> 2 1) 1 2)",
        "(if (> 2 1) 1 2)",
    ),
    Mistake(
        "a JSON dictionary",
        '{"a": 1, "b": 2}',
        'a dictionary holds keys and values, without colons and commas; write {"a" 1 "b" 2}',
        '{"a" 1 "b" 2}',
    ),
    Mistake(
        "a Python dictionary",
        "{'a': 1, 'b': 2}",
        'a dictionary holds keys and values, without colons and commas; write {"a" 1 "b" 2}',
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
        'values stand side by side, without commas; write ["a" "b"]',
        '["a" "b"]',
    ),
    Mistake(
        "commas between arguments",
        "(max a, b)",
        "values stand side by side, without commas; write (max a b)",
        "(max a b)",
    ),
    Mistake(
        "a call in square brackets",
        '[read-file "a.txt"]',
        '[ begins a list; a call stands in ( ); write (read-file "a.txt")',
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
        "loop and recur are not known here; write (for [i (range 3)] (print i))",
        "(for [i (range 3)] (print i))",
    ),
    Mistake(
        "a macro definition",
        "(defmacro twice [x] (* 2 x))",
        "macros cannot be defined in a program; write (defn twice [x] (* 2 x))",
        "(defn twice [x] (* 2 x))",
    ),
    Mistake(
        "Clojure's short function",
        "(map #(+ % 1) [1 2])",
        "#( begins a tuple; a function is (fn [x] …); write (fn [it] (+ it 1))",
        "(fn [it] (+ it 1))",
    ),
    Mistake("Clojure's deref", "(+ @total 1)", "a variable is its name alone; write total", "total"),
    Mistake(
        "Clojure's swap!",
        "(swap! total inc)",
        "there are no atoms; a variable is set by setv; write (setv total (inc total))",
        "(setv total (inc total))",
    ),
    Mistake(
        "Clojure's case",
        '(case x 1 "a" "b")',
        'case is not known here; _ is the rest in a match; write (match x 1 "a" _ "b")',
        '(match x 1 "a" _ "b")',
    ),
    Mistake(
        "Clojure's catch",
        "(try (/ 1 0) (catch Exception e 0))",
        "try takes (except [e Exception] …); write (try (/ 1 0) (except [e Exception] 0))",
        "(try (/ 1 0) (except [e Exception] 0))",
    ),
    Mistake("car", "(car [1 2])", "car is not known here; write (first [1 2])", "(first [1 2])"),
    Mistake("setf", "(setf x 1)", "setf is not known here; write (setv x 1)", "(setv x 1)"),
    Mistake(
        "format", '(format t "~a" 1)', 'format is not known here; write (.format "{}" 1)', '(.format "{}" 1)'
    ),
    Mistake("incf", "(incf x)", "incf is not known here; write (+= x 1)", "(+= x 1)"),
    Mistake(
        "throw",
        '(throw "bad")',
        'errors are raised; write (raise (Exception "bad"))',
        '(raise (Exception "bad"))',
    ),
    Mistake(
        "an idiom that does not fit",
        "(nth [1 2] 0 5)",
        "nth does not fit here; write (nth [5 6] 1)",
        "(nth [5 6] 1)",
    ),
    Mistake(
        "a missing closing bracket",
        "(+ 1 (* 2 3)",
        "this ( is never closed; add ) at the end; write (+ 1 (* 2 3))",
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
        "this ) does not close the [ at line 1, column 6; write (let [x 1] x)",
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
        "a list of computed values is made by lfor; write (lfor x [1 2] (* x 2))",
        "(lfor x [1 2] (* x 2))",
    ),
    Mistake("a Python return", "return 5", "this is Python; write 5", "5"),
    Mistake(
        "a Python call in a form",
        '(len (print("a")))',
        'the bracket stands before the name; write (print "a")',
        '(print "a")',
    ),
    Mistake(
        "a name without a value in let",
        "(let [x] x)",
        "let takes a list of names and values; write (let [x None] x)",
        "(let [x None] x)",
    ),
    Mistake(
        "an equals sign in let",
        "(let [x = 5] x)",
        "let takes a list of names and values; write (let [x 5] x)",
        "(let [x 5] x)",
    ),
    Mistake(
        "let without a list",
        "(let x 5 (+ x 1))",
        "let takes a list of names and values; write (let [x 5] (+ x 1))",
        "(let [x 5] (+ x 1))",
    ),
    Mistake(
        "a colon before the operator",
        '(:read-file "a.txt")',
        'what is called has no colon; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake(
        "a text in single quotes",
        "(read-file 'my file.txt')",
        'a text stands in double quotes; write (read-file "my file.txt")',
        '(read-file "my file.txt")',
    ),
    Mistake(
        "smart quotes",
        "(read-file “a.txt”)",
        'a text stands in plain double quotes, "so"; write (read-file "a.txt")',
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
        "the argument :path has no value; write (read-file :path None)",
        "(read-file :path None)",
    ),
    Mistake(
        "a file without quotes",
        "(read-file :path README.org)",
        'a text stands in double quotes; write "README.org"',
        '"README.org"',
    ),
    Mistake(
        "a path without quotes",
        "(read-file src/main.py)",
        'a text stands in double quotes; write "src/main.py"',
        '"src/main.py"',
    ),
    Mistake("a number in brackets", "(5)", "5 is no function; write 5", "5"),
    Mistake(
        "a list in round brackets",
        '("a" "b")',
        'a text is no function; a list is [ ]; write ["a" "b"]',
        '["a" "b"]',
    ),
    Mistake(
        "a tool in quotes",
        '("read-file" "a.txt")',
        'what is called has no quotes; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake(
        "brackets around a form", "((+ 1 2))", "the value of a form is no function; write (+ 1 2)", "(+ 1 2)"
    ),
    Mistake(
        "await",
        '(await (read-file "a.txt"))',
        'calls wait by themselves; write (read-file "a.txt")',
        '(read-file "a.txt")',
    ),
    Mistake(
        "return outside of a function",
        "(return 5)",
        "a program's value is that of its last form; write 5",
        "5",
    ),
    Mistake(
        "setv without a value",
        "(setv x)",
        "setv takes names and values; write (setv x None)",
        "(setv x None)",
    ),
    Mistake(
        "setv with an equals sign",
        "(setv x = 5)",
        "setv takes names and values; write (setv x 5)",
        "(setv x 5)",
    ),
    Mistake(
        "defn without brackets",
        "(defn f x (* x 2))",
        "a function has a list of parameters; write (defn f [x] (* x 2))",
        "(defn f [x] (* x 2))",
    ),
    Mistake(
        "fn without brackets",
        "(fn x (* x 2))",
        "parameters stand in a list; write (fn [x] (* x 2))",
        "(fn [x] (* x 2))",
    ),
    Mistake(
        "for without brackets",
        "(for x in [1 2] (print x))",
        "for takes a list of a name and what it goes through; write (for [x [1 2]] (print x))",
        "(for [x [1 2]] (print x))",
    ),
    Mistake(
        "in in a for",
        "(for [x in [1 2]] (print x))",
        "for takes a list of a name and what it goes through; write (for [x [1 2]] (print x))",
        "(for [x [1 2]] (print x))",
    ),
    Mistake(
        "brackets in lfor",
        "(lfor [x [1 2]] (* x x))",
        "lfor takes its names without a list; write (lfor x [1 2] (* x x))",
        "(lfor x [1 2] (* x x))",
    ),
    Mistake(
        "an odd cond",
        '(cond (= 1 2) "a" "b")',
        'cond takes tests and values in turn; write (cond (= 1 2) "a" True "b")',
        '(cond (= 1 2) "a" True "b")',
    ),
    Mistake(
        "get without a key",
        '(get {"a" 1})',
        'get takes a collection and a key; write (get {"a" 1} 0)',
        '(get {"a" 1} 0)',
    ),
    Mistake(
        "a method as a function",
        '(split "a b" " ")',
        'split is a method; write (.split "a b" " ")',
        '(.split "a b" " ")',
    ),
    Mistake(
        "an empty while",
        "(while)",
        "while takes a test and what is done; write (while (< n 3) (+= n 1))",
        "(while (< n 3) (+= n 1))",
    ),
    Mistake(
        "a bad match",
        "(match)",
        'match does not fit here; write (match x 1 "a"  _ "b")',
        '(match x 1 "a"  _ "b")',
    ),
    Mistake(
        "numbers run together", "[1,2,3]", "values stand side by side, without commas; write 1 2 3", "1 2 3"
    ),
    Mistake(
        "a test without brackets",
        "(if x > 3 1 2)",
        "a test is a form; write (if (> x 3) 1 2)",
        "(if (> x 3) 1 2)",
    ),
    Mistake(
        "an except without a list",
        "(try (/ 1 0) (except Exception 0))",
        "try takes (except [e Exception] …); write (try (/ 1 0) (except [Exception] 0))",
        "(try (/ 1 0) (except [Exception] 0))",
    ),
    Mistake(
        "an except in the wrong order",
        "(try (/ 1 0) (except [Exception e] 0))",
        "try takes (except [e Exception] …); write (try (/ 1 0) (except [e Exception] 0))",
        "(try (/ 1 0) (except [e Exception] 0))",
    ),
    Mistake(
        "a colon behind a word", "(while True: (break))", "no colon stands behind a word; write True", "True"
    ),
    Mistake(
        "an infix operator in lfor",
        "(lfor i (range 3) i * 2)",
        "the operator comes first; write (lfor i (range 3) (* i 2))",
        "(lfor i (range 3) (* i 2))",
    ),
    Mistake(
        "an unknown function",
        '(ehco "a")',
        'The program uses ehco, which is not defined. Did you mean echo? Write (echo "a").',
        '(echo "a")',
    ),
    Mistake(
        "an unknown variable",
        "(len total)",
        'The program uses total, which is not defined. Set it first; a text stands in quotes: (len "total").',
        '(len "total")',
    ),
    Mistake(
        "a value that is called",
        "(do (setv xs [1 2]) (xs 0))",
        "The program calls a value (list): x is it, (x) calls it, (get x 0) is a part.",
        "(get x 0)",
    ),
)
