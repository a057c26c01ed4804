"""Operators, loops, handlers and calls of an instrumented program. Each handles unknown operands.

This file is read as source and run in the sandbox after tools/dryrun/runtime.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quoth.tools.dryrun.runtime import (
    BUILTIN,
    CHANGES,
    CLASS,
    GO,
    MARK,
    MODULE,
    STATE,
    TYPES,
    anything,
    blur,
    deep,
    form,
    hole,
    many,
    note,
    pick,
    show,
    stop,
    sure,
    unknown,
    vague,
)

# ---- operators

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "@": lambda a, b: a @ b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "is": lambda a, b: a is b,
    "is-not": lambda a, b: a is not b,
    "in": lambda a, b: a in b,
    "not-in": lambda a, b: a not in b,
}


def unary(op: str, a: Any) -> Any:
    if unknown(a):
        return form(op, [a])
    return -a if op == "-" else +a if op == "+" else ~a


def binary(op: str, a: Any, b: Any, said: str = "") -> Any:
    if STATE["unknowns"]:
        if unknown(a) or unknown(b):
            text = isinstance(a, str) and isinstance(b, str) and not (unknown(a) and unknown(b))
            return a + b if op == "+" and text else form(said or op, [a, b])
        if many(a) or ((op == "%" or isinstance(a, (set, dict))) and deep(b)):
            return form(said or op, [a, b])
    return OPERATORS[op](a, b)


def changed(op: str, a: Any, b: Any) -> Any:
    """The result of ``a op= b``: lists, dictionaries and sets change in place."""
    if not isinstance(a, (list, dict, set)):
        return binary(op, a, b, op + "=")
    if STATE["unknowns"] and (vague(b) or STATE["loops"]):
        blur(a)
    elif op == "+":
        a += b
    elif op == "*":
        a *= b
    elif op == "|":
        a |= b
    elif op == "&":
        a &= b
    elif op == "-":
        a -= b
    elif op == "^":
        a ^= b
    else:
        return OPERATORS[op](a, b)
    return a


def compared(op: str, a: Any, b: Any) -> Any:
    if STATE["unknowns"]:
        if op in ("is", "is-not"):
            if unknown(a) or unknown(b):
                return form(op, [a, b])
        elif op in ("in", "not-in") and isinstance(b, dict):
            if deep(a) or many(b):
                return form(op, [a, b])
        elif deep(a) or (deep(b) and (op not in ("in", "not-in") or isinstance(b, str) or a not in b)):
            return form(op, [a, b])
    return OPERATORS[op](a, b)


def chain(ops: list[str], values: list[Any]) -> Any:
    open_ = None
    for place in range(len(ops)):
        found = compared(ops[place], values[place], values[place + 1])
        if unknown(found):
            open_ = found
        elif not found:
            return found
    return True if open_ is None else open_


def part(o: Any, i: Any) -> Any:
    if STATE["unknowns"] and (unknown(o) or deep(i) or many(o)):
        return form("get", [o, i])
    return o[i]


def cut(o: Any, a: Any, b: Any, c: Any) -> Any:
    if unknown(o) or unknown(a) or unknown(b) or unknown(c):
        return form("cut", [o, a, b])
    return o[a:b:c]


def put(o: Any, i: Any, v: Any) -> None:
    if unknown(o):
        return
    if deep(i) and isinstance(o, list):
        blur(o)
        return
    o[i] = v
    if STATE["loops"]:
        blur(o)


def kept(v: Any, name: str) -> Any:
    """The value that a function assigns to an outer variable: unknown inside a loop over unknown items."""
    return hole(name) if STATE["loops"] else v


def formatted(v: Any, conversion: str, spec: str) -> str:
    if STATE["unknowns"]:
        if isinstance(v, str) and MARK in v and not spec and conversion != "r":
            return v
        if deep(v) or unknown(spec):
            return hole("the error") if isinstance(v, Exception) else form("str", [v])
    if conversion == "r":
        v = repr(v)
    elif conversion == "s":
        v = str(v)
    return format(v, spec) if spec else str(v)


def shaped(v: Any, spec: Any) -> Any:
    """A value that unpacks into targets like ``spec``: None is one target, a list is nested targets, "*" is
    the rest."""
    if spec is None:
        return v
    if vague(v):
        text = "part of " + show(v)
        return [anything() if each == "*" else shaped(hole(text), each) for each in spec]
    if "*" in spec or not isinstance(v, (list, tuple)) or len(v) != len(spec):
        return v
    return [shaped(v[place], spec[place]) for place in range(len(spec))]


# ---- loops


def enter(kind: str, it: Any) -> None:
    note(kind, show(it))
    STATE["loops"] += 1


def leave(depth: int) -> None:
    while STATE["loops"] > depth:
        STATE["loops"] -= 1
        note("end", "")


def each_of(it: Any) -> str:
    return hole("each of " + ("…" if many(it) else show(it)))


def loop(it: Any, spec: Any, jumps: bool) -> list[Any]:
    """For a ``for`` loop: whether its items are unknown, the items to run it with, its depth in such
    loops."""
    depth = STATE["loops"]
    if vague(it):
        if jumps and pick("loop", show(it), ["some", "none"]):
            return [False, [], depth]
        enter("each", it)
        return [True, [shaped(each_of(it), spec)], depth]
    return [False, it if spec is None or not STATE["unknowns"] else [shaped(x, spec) for x in it], depth]


def again(r: list[Any], test: Any, jumps: bool) -> bool:
    """Whether a ``while`` loop continues. ``r``: whether the number of its rounds is unknown, and the
    decisions so far."""
    if r[0]:
        return False
    found = sure(test)
    if found is None or (found and r[1] is not None and r[1] != STATE["forks"]):
        if found is None and jumps and pick("loop", show(test), ["some", "none"]):
            return False
        r[0] = True
        enter("while", test)
        return True
    r[1] = STATE["forks"]
    return found


def begin() -> list[Any]:
    before = [STATE["loops"], STATE["maybe"]]
    STATE["maybe"] = False
    return before


def source(it: Any, spec: Any) -> Any:
    """The items that a comprehension iterates over; one unknown value represents unknown items."""
    if vague(it):
        enter("each", it)
        STATE["maybe"] = True
        return [shaped(each_of(it), spec)]
    return it if spec is None or not STATE["unknowns"] else [shaped(x, spec) for x in it]


def where(x: Any) -> bool:
    found = sure(x)
    if found is None:
        STATE["maybe"] = True
        note("where", show(x))
        return True
    return found


def end(kind: str, before: list[Any], made: Any) -> Any:
    maybe = STATE["maybe"]
    leave(before[0])
    STATE["maybe"] = before[1]
    if not maybe:
        return made
    if kind == "dict":
        return {anything(): anything()}
    return {anything()} if kind == "set" else [anything()]


# ---- what may fail


def mark() -> list[Any]:
    return [STATE["loops"], STATE["unknowns"], STATE["maybe"]]


def tried(before: list[Any], labels: list[str]) -> int:
    return pick("try", "", ["well", *labels]) if STATE["unknowns"] > before[1] else 0


def back(before: list[Any]) -> None:
    leave(before[0])
    STATE["maybe"] = before[2]


def matched(subject: Any) -> Any:
    if deep(subject):
        stop("it matches " + show(subject))
    return subject


# ---- calls


def call(f: Any, a: list[Any], k: dict[str, Any]) -> Any:
    kind = type(f)
    if kind is BUILTIN or (kind is CLASS and f in TYPES):
        return builtin(f, a, k)
    if unknown(f):
        note("lost", "it calls " + show(f))
        return form(show(f), a)
    made = f(*a, **k)
    if unknown(made):
        STATE["unknowns"] += 1
    return made


def mapped(f: Any, items: list[Any]) -> list[Any]:
    if not [x for x in items if vague(x)]:
        return [call(f, list(args), {}) for args in zip(*items, strict=False)]
    depth = STATE["loops"]
    enter("each", items[0])
    call(f, [each_of(x) if vague(x) else hole("item") for x in items], {})
    leave(depth)
    return [anything()]


def builtin(f: Any, a: list[Any], k: dict[str, Any]) -> Any:
    if f is print:
        return None
    if f is map:
        return mapped(a[0], a[1:])
    if f is filter and not unknown(a[1]):
        items = list(a[1])
        tests = items if a[0] is None else mapped(a[0], [items])
        if many(items) or deep(tests):
            return [anything()]
        return [x for x, test in zip(items, tests, strict=True) if test]
    if not a or not STATE["unknowns"] or not (deep(a) or deep(k)):
        return f(*a, **k)
    x = a[0]
    if f is list or f is tuple:
        return [anything()] if vague(x) else f(*a)
    if f is enumerate or f is zip or f is reversed:
        return [anything()] if [y for y in a if vague(y)] else list(f(*a, **k))
    if f is set or f is frozenset:
        return {anything()}
    if f is range or f is sorted:
        return [anything()]
    if f is dict:
        return {anything(): anything()} if vague(x) else dict(*a, **k)
    if (f is len and not vague(x)) or ((f is isinstance or f is type or f is bool) and not unknown(x)):
        return f(*a)
    if f is str and isinstance(x, (str, Exception)):
        return x if isinstance(x, str) else hole("the error")
    return form(str(f).replace("<built-in function ", "").replace("<class '", "").strip("'>"), a)


def method(name: str, o: Any, a: list[Any], k: dict[str, Any]) -> Any:
    """The result of a method call, or GO if the method itself can be called."""
    if not STATE["unknowns"]:
        return GO
    if unknown(o):
        return form("." + name, [o, *a])
    if isinstance(o, (list, set, dict)):
        return of_collection(name, o, a, k)
    data = isinstance(o, (str, bytes, int, float))
    if not (deep(a) or deep(k)) or not (data or type(o) is MODULE):
        return GO
    if isinstance(o, str) and name == "join" and not vague(a[0]) and all(isinstance(x, str) for x in a[0]):
        return GO
    return form("." + name, [o, *a]) if data else form(name, a)


def of_collection(name: str, o: Any, a: list[Any], k: dict[str, Any]) -> Any:
    changes = name in CHANGES
    if changes and (STATE["loops"] or many(o)):
        blur(o)
        return form("." + name, [o]) if name in ("pop", "popitem", "setdefault") else None
    if name in ("append", "insert", "add"):
        return GO
    if name in ("extend", "update") and not [x for x in a if vague(x)] and not k:
        return GO
    if name in ("get", "pop", "setdefault") and a and not deep(a[0]) and not many(o):
        return GO
    strange = deep(a) or deep(k)
    if not strange and not many(o) and name in ("copy", "clear", "keys", "values", "items", "pop", "reverse"):
        return GO
    if not strange and not deep(o):
        return GO
    if changes:
        blur(o)
    return None if name == "sort" else form("." + name, [o, *a])


def pmap(function: Any, *sequences: Any) -> list[Any]:
    return mapped(function, list(sequences))
