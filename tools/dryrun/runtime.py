"""What a dry run's program brings along into the sandbox: functions that know what to do with an unknown.

Knows Python as the sandbox runs it, and nothing of the host but the three functions it asks there. An unknown
is a text with a mark in it, so that it crosses every wall, stands in any list, and stays part of the text it
was joined to; the mark holds a word that only this run knows, so that no data can pass for one. What is done
to an unknown is an unknown. A list, dictionary or set that holds the mark "*" may hold anything, any number
of times; what a loop over unknown things changes becomes one.
"""

from __future__ import annotations

BEGIN, END = "\ue000", "\ue001"
CHOOSE = "__choose"  # which way: kind, text, one label for each
NOTE = "__note"  # what begins, ends, or cannot be followed

HELPERS = r"""
__B = "\ue000@@"
__E = "\ue001"
__S = {"n": 0, "loops": 0, "maybe": False, "forks": 0}
__KNOWN = {}
__GO = []
__KIND = type(len)
__TYPE = type(int)
__TYPES = {str: 1, int: 1, float: 1, bool: 1, list: 1, dict: 1, set: 1, tuple: 1, bytes: 1, frozenset: 1}

def __is(x):
    return isinstance(x, str) and __B in x

def __deep(x, depth=0):
    if isinstance(x, str):
        return __B in x
    if depth > 20:
        return False
    if isinstance(x, (list, tuple, set, frozenset)):
        for item in x:
            if __deep(item, depth + 1):
                return True
    elif isinstance(x, dict):
        for key, item in x.items():
            if __deep(key) or __deep(item, depth + 1):
                return True
    elif isinstance(x, Exception):
        return __deep(x.args, depth + 1)
    return False

def __show(x):
    if isinstance(x, str):
        if __B not in x:
            short = x if len(x) < 40 else x[:39] + "…"
            return '"' + short.replace("\\", "\\\\").replace('"', "'").replace("\n", "\\n") + '"'
        parts = x.split(__B)
        shown = parts[0]
        only = not shown
        for part in parts[1:]:
            inner = part[part.index(":") + 1:part.index(__E)]
            after = part[part.index(__E) + 1:]
            only = only and not after and len(parts) == 2
            shown = shown + (inner if only else "#<" + inner + ">") + after
        return shown if only else '"' + shown + '"'
    if x is None or isinstance(x, (bool, int, float)):
        return str(x)[:40]
    if isinstance(x, (list, tuple)):
        if __many(x):
            return "a list"
        return "[" + " ".join([__show(item) for item in x[:3]]) + (" …]" if len(x) > 3 else "]")
    if isinstance(x, dict):
        return "{…}" if x else "{}"
    if isinstance(x, Exception):
        return type(x).__name__
    return "…"

def __hole(text, flag="-"):
    __S["n"] += 1
    text = text.replace("\ue000", "").replace("\ue001", "")
    if len(text) > 80:
        text = text[:79] + "…"
    return __B + flag + str(__S["n"]) + ":" + text + __E

def __form(name, items):
    return __hole("(" + " ".join([name] + [__show(item) for item in items]) + ")")

def __anything(text="anything"):
    return __hole(text, "*")

def __many(x):
    if isinstance(x, (list, tuple)):
        for item in x:
            if isinstance(item, str) and item.startswith(__B + "*"):
                return True
    elif isinstance(x, (dict, set, frozenset)):
        for item in x:
            if __deep(item):
                return True
    return False

def __vague(x):
    return __is(x) or __many(x)

def __blur(x, depth=0):
    if depth > 10:
        return
    if isinstance(x, list):
        for item in x:
            __blur(item, depth + 1)
        x.clear()
        x.append(__anything())
    elif isinstance(x, dict):
        for item in x.values():
            __blur(item, depth + 1)
        x.clear()
        x[__anything()] = __anything()
    elif isinstance(x, set):
        x.clear()
        x.add(__anything())

def __pick(kind, text, labels):
    __S["forks"] += 1
    return __choose(kind, text, labels)

def __sure(x):
    if not __S["n"]:
        return not not x
    if isinstance(x, str) and __B in x:
        rest = ""
        for part in x.split(__B):
            rest = rest + (part[part.index(__E) + 1:] if __E in part else part)
        if rest:
            return True
        return __KNOWN[x] if x in __KNOWN else None
    if __many(x):
        return None
    return not not x

def __truth(x):
    sure = __sure(x)
    if sure is None:
        sure = __pick("if", __show(x), ["yes", "no"]) == 0
        if isinstance(x, str):
            __KNOWN[x] = sure
    return sure

def __not(x):
    sure = __sure(x)
    return __form("not", [x]) if sure is None else not sure

def __assume(x):
    return __sure(x) is not False

def __stops(x, word):
    sure = __sure(x)
    return sure is not None and sure == (word == "or")

def __joined(a, b, word):
    return b if __sure(a) is not None else __form(word, [a, b])

def __un(op, a):
    if __S["n"] and __is(a):
        return __form(op, [a])
    return -a if op == "-" else +a if op == "+" else ~a

def __op(op, a, b):
    if __S["n"]:
        if op[-1] == "=" and isinstance(a, (list, dict, set)):
            if __vague(b) or __S["loops"]:
                __blur(a)
                return a
        elif __is(a) or __is(b):
            text = isinstance(a, str) and isinstance(b, str) and not (__is(a) and __is(b))
            if op[0] == "+" and text:
                return a + b
            return __form(op, [a, b])
        elif op[0] == "%" and __deep(b):
            return __form(op, [a, b])
        elif (isinstance(a, (set, dict)) and __deep(b)) or __many(a):
            return __form(op, [a, b])
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if op == "/":
        return a / b
    if op == "//":
        return a // b
    if op == "%":
        return a % b
    if op == "**":
        return a ** b
    if op == "&":
        return a & b
    if op == "|":
        return a | b
    if op == "^":
        return a ^ b
    if op == "<<":
        return a << b
    if op == ">>":
        return a >> b
    if op == "@":
        return a @ b
    if op == "+=":
        a += b
        return a
    if op == "|=":
        a |= b
        return a
    if op == "&=":
        a &= b
        return a
    if op == "-=":
        a -= b
        return a
    if op == "^=":
        a ^= b
        return a
    return __op(op[:-1], a, b)

def __one(op, a, b):
    if __S["n"]:
        if op in ("is", "is-not"):
            if __is(a) or __is(b):
                return __form(op, [a, b])
        elif op in ("in", "not-in") and isinstance(b, dict):
            if __deep(a) or __many(b):
                return __form(op, [a, b])
        elif __deep(a) or __deep(b):
            if op not in ("in", "not-in") or isinstance(b, str) or a not in b or __deep(a):
                return __form(op, [a, b])
    if op == "=":
        return a == b
    if op == "!=":
        return a != b
    if op == "<":
        return a < b
    if op == "<=":
        return a <= b
    if op == ">":
        return a > b
    if op == ">=":
        return a >= b
    if op == "is":
        return a is b
    if op == "is-not":
        return a is not b
    if op == "in":
        return a in b
    return a not in b

def __cmp(ops, values):
    unknown = None
    for place in range(len(ops)):
        found = __one(ops[place], values[place], values[place + 1])
        if __is(found):
            unknown = found
        elif not found:
            return found
    return True if unknown is None else unknown

def __get(o, i):
    if __S["n"] and (__is(o) or __deep(i) or __many(o)):
        return __form("get", [o, i])
    return o[i]

def __cut(o, a, b, c):
    if __S["n"] and (__is(o) or __is(a) or __is(b) or __is(c)):
        return __form("cut", [o, a, b])
    return o[a:b:c]

def __put(o, i, v):
    if __S["n"]:
        if __is(o):
            return
        if __deep(i) and isinstance(o, list):
            __blur(o)
            return
    o[i] = v
    if __S["loops"]:
        __blur(o)

def __kept(v, name):
    return __hole(name) if __S["loops"] else v

def __plain(o):
    return not (__S["n"] and __is(o))

def __fmt(v, conversion, spec):
    if __S["n"]:
        if isinstance(v, str) and __B in v and not spec and conversion != "r":
            return v
        if __deep(v) or __is(spec):
            return __hole("what went wrong") if isinstance(v, Exception) else __form("str", [v])
    if conversion == "r":
        v = repr(v)
    elif conversion == "s":
        v = str(v)
    return format(v, spec) if spec else str(v)

def __shape(v, spec):
    if spec is None:
        return v
    if __vague(v):
        text = "part of " + __show(v)
        return [__anything() if part == "*" else __shape(__hole(text), part) for part in spec]
    if "*" in spec or not isinstance(v, (list, tuple)) or len(v) != len(spec):
        return v
    return [__shape(v[place], spec[place]) for place in range(len(spec))]

def __enter(kind, it):
    __note(kind, __show(it))
    __S["loops"] += 1

def __leave(depth):
    while __S["loops"] > depth:
        __S["loops"] -= 1
        __note("end", "")

def __each(it):
    return __hole("each of " + ("…" if __many(it) else __show(it)))

def __loop(it, spec, jumps):
    if not __S["n"]:
        return [False, it, __S["loops"]]
    if __vague(it):
        if jumps and __pick("loop", __show(it), ["some", "none"]):
            return [False, [], __S["loops"]]
        depth = __S["loops"]
        __enter("each", it)
        return [True, [__shape(__each(it), spec)], depth]
    return [False, it if spec is None else [__shape(x, spec) for x in it], __S["loops"]]

def __again(r, test, jumps):
    if r[0]:
        return False
    sure = __sure(test)
    if sure is None or (sure and r[1] is not None and r[1] != __S["forks"]):
        if sure is None and jumps and __pick("loop", __show(test), ["some", "none"]):
            return False
        r[0] = True
        __enter("while", test)
        return True
    r[1] = __S["forks"]
    return sure

def __begin():
    before = [__S["loops"], __S["maybe"]]
    __S["maybe"] = False
    return before

def __gen(it, spec):
    if not __S["n"]:
        return it
    if __vague(it):
        __enter("each", it)
        __S["maybe"] = True
        return [__shape(__each(it), spec)]
    return it if spec is None else [__shape(x, spec) for x in it]

def __where(x):
    sure = __sure(x)
    if sure is None:
        __S["maybe"] = True
        __note("where", __show(x))
        return True
    return sure

def __end(kind, before, made):
    maybe = __S["maybe"]
    __leave(before[0])
    __S["maybe"] = before[1]
    if not maybe:
        return made
    if kind == "dict":
        return {__anything(): __anything()}
    return {__anything()} if kind == "set" else [__anything()]

def __mark():
    return [__S["loops"], __S["n"], __S["maybe"]]

def __tried(mark, labels):
    return __pick("try", "", ["well"] + labels) if __S["n"] > mark[1] else 0

def __back(mark):
    __leave(mark[0])
    __S["maybe"] = mark[2]

def __case(subject, labels):
    if __S["n"] and __deep(subject):
        return __pick("match", __show(subject), labels)
    return -1

def __call(f, a, k):
    kind = type(f)
    if kind is __KIND or (kind is __TYPE and f in __TYPES):
        return __builtin(f, a, k)
    if __is(f):
        __note("lost", "it calls " + __show(f))
        return __form(__show(f), a)
    made = f(*a, **k)
    if isinstance(made, str) and __B in made:
        __S["n"] += 1
    return made

def __builtin(f, a, k):
    if f is print:
        return None
    if f is map or f is filter:
        items = [zip(*a[1:])] if f is map else [a[1]]
        if __S["n"] and [x for x in a[1:] if __vague(x)]:
            __enter("each", a[1])
            __call(a[0], [__each(x) if __vague(x) else __hole("item") for x in a[1:]], {})
            __leave(__S["loops"] - 1)
            return [__anything()]
        if f is map:
            return [__call(a[0], list(args), {}) for args in zip(*a[1:])]
        if not __S["n"]:
            return [x for x in a[1] if (x if a[0] is None else __call(a[0], [x], {}))]
        kept, maybe = [], False
        for x in a[1]:
            sure = __sure(x if a[0] is None else __call(a[0], [x], {}))
            maybe = maybe or sure is None
            if sure is not False:
                kept.append(x)
        return [__anything()] if maybe else kept
    if not __S["n"] or not (__deep(a) or __deep(k)):
        return f(*a, **k)
    if not a:
        return f(*a, **k)
    x = a[0]
    if f is list or f is tuple:
        return [__anything()] if __vague(x) else f(*a)
    if f is enumerate or f is zip or f is reversed:
        return [__anything()] if [y for y in a if __vague(y)] else list(f(*a, **k))
    if f is range or f is sorted or f is set or f is frozenset:
        return {__anything()} if f is set or f is frozenset else [__anything()]
    if f is dict:
        return {__anything(): __anything()} if __vague(x) else dict(*a, **k)
    if (f is len and not __vague(x)) or ((f is isinstance or f is type or f is bool) and not __is(x)):
        return not not x if f is bool else f(*a)
    if f is str and isinstance(x, (str, Exception)):
        return x if isinstance(x, str) else __hole("what went wrong")
    return __form(str(f).replace("<built-in function ", "").replace("<class '", "").strip("'>"), a)

def __method(name, o, a, k):
    if not __S["n"]:
        return __GO
    if __is(o):
        return __form("." + name, [o] + a)
    strange = __deep(a) or __deep(k)
    if isinstance(o, (list, set, dict)):
        changes = name in __CHANGES
        if changes and (__S["loops"] or __many(o)):
            __blur(o)
            return __form("." + name, [o]) if name in ("pop", "popitem", "setdefault") else None
        if name in ("append", "insert", "add"):
            return __GO
        if name in ("extend", "update") and not [x for x in a if __vague(x)] and not k:
            return __GO
        if name in ("get", "pop", "setdefault") and a and not __deep(a[0]) and not __many(o):
            return __GO
        plain = not strange and not __many(o)
        if plain and name in ("copy", "clear", "keys", "values", "items", "pop", "reverse"):
            return __GO
        if strange or __deep(o):
            if changes:
                __blur(o)
            return None if name == "sort" else __form("." + name, [o] + a)
        return __GO
    if not strange or not isinstance(o, (str, bytes, int, float)) and type(o) is not __MODULE:
        return __GO
    if isinstance(o, str) and name == "join" and not __vague(a[0]):
        if not [x for x in a[0] if not isinstance(x, str)]:
            return __GO
    return __form("." + name if type(o) is not __MODULE else name, a if type(o) is __MODULE else [o] + a)

__CHANGES = {"append": 1, "insert": 1, "extend": 1, "update": 1, "add": 1, "pop": 1, "popitem": 1, "clear": 1,
             "remove": 1, "discard": 1, "setdefault": 1, "sort": 1, "reverse": 1}
import math as __math
__MODULE = type(__math)
"""

# Functions that programs are given, as a dry run has them.
INSTEAD = {
    "pmap": """
def pmap(function, *sequences):
    return __builtin(map, [function, *sequences], {})
""",
}


def helpers(word: str) -> str:
    """The functions, for a run whose unknowns are marked by ``word``."""
    return HELPERS.replace("@@", word)
