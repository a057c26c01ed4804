"""Lift: makes one Lisp program of the successful calls of a session, for ``quoth eval`` to run.

The program passes the same check as any other (tools/program/compiler.py), and its calls pass the same door.
"""

from __future__ import annotations

import builtins
import contextlib
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import hy
import hy.models as m

from quoth.agent.session.drift import versions_of
from quoth.tools.advice import instead
from quoth.tools.call.redaction import SECRET
from quoth.tools.errors import UsageError, no_such
from quoth.tools.history.event import Event, read_form
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code, print_value, show
from quoth.tools.lisp.reader import ReadError, read_all
from quoth.tools.lisp.syntax import mangled, symbols_in
from quoth.tools.program.compiler import (
    PRELUDES,
    PROGRAM_LIMITS,
    PURE_MACROS,
    ProgramError,
    compile_program,
    read_forms,
)
from quoth.tools.program.macros import MacroError, split
from quoth.tools.text import count

EVAL = "eval"
_NO_WORDS: Mapping[str, Set[str]] = {}
WORDS_OF_NAME = 4
WIDTH = 100
_WORD = re.compile(r"[a-z][a-z0-9]*")
_KNOWN = {*dir(builtins), *keyword.kwlist, *PURE_MACROS, *instead("refused"), *PRELUDES, "hy", "values"}


@dataclass(frozen=True)
class Lifted:
    """An extracted program: the name of its function, and the number of its calls."""

    session: str
    runs: tuple[str, ...]
    name: str
    calls: int
    program: str

    def __str__(self) -> str:
        return f"{count(self.calls, 'call')} of session {self.session} as the function {self.name}"

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "runs": list(self.runs)}


@dataclass
class _MadeCall:
    """A successful call: its key in the session, its form and its value."""

    key: str
    form: CallForm
    value: Any
    handed: bool = False  # whether a later call uses its value
    variable: str = ""  # the variable of that value

    @property
    def code(self) -> str | None:
        """The text of the program in a call of ``eval``; None for other calls."""
        program = self.form.args.get("form")
        return str(program) if self.form.tool == EVAL and isinstance(program, str) else None


class _Parameter(NamedTuple):
    name: str
    default: Any = None  # None for a secret


def lifted(
    session: str, events: Sequence[Event], run: str | None = None, words: Mapping[str, Set[str]] = _NO_WORDS
) -> Lifted | None:
    """The successful calls of a session, or of one run, as a program: a function and a call of it. None if
    there is none. Raises UsageError for an unknown run.

    - Dry runs and calls answered by an earlier result are left out. A call that a person changed is used in
      its changed form. Calls inside programs and sub-agents are part of the outer call; if the outer call
      still runs or waits, its finished inner calls are used.
    - A program given to ``eval`` is inserted unchanged, with its comments.
    - A text or number in an argument becomes a parameter, with its value as the default, if the task mentions
      it (as a whole word) or if it occurs more than once. It is named after the first argument that has it.
      The value of an argument with choices never becomes a parameter; ``words`` names these arguments of each
      tool.
    - A text, list or dictionary that an earlier call returned, and that equals an argument of a later one, is
      passed on in a variable, unless the task mentions it.
    - A declared secret is not in the program: it becomes a parameter without a default."""
    wanted = [event for event in events if run is None or event.run == run]
    if run is not None and not wanted:
        runs = list(dict.fromkeys(event.run for event in events if event.run and "/" not in event.run))
        raise UsageError(no_such("run", run, runs, "Its runs are", f" in session {session}"))
    made = list(_calls(wanted))
    if not made:
        return None
    tasks = [str(event.said["text"]) for event in wanted if event.kind == "stimulus" and "/" not in event.run]
    versions = [versions_of(event.said) for event in events if event.kind == "session"]
    tools = {name for known in versions for name in known} | {call.form.tool for call in made}
    return _Writer(session, made, tasks, tools, words).write()


def _calls(events: Sequence[Event]) -> Iterator[_MadeCall]:
    """The successful calls, in the order of their first runs."""
    begun: dict[str, Event] = {}
    ended: dict[str, Event] = {}
    for event in events:
        if event.kind == "call":
            begun[event.key] = event
        elif event.kind == "receipt":
            ended[event.key] = event
    for key, event in begun.items():
        if "/" in event.run or key not in ended or ended[key].status != "ok":
            continue
        start = len(event.run) + 1 if event.run else 0
        outer = (key[:at] for at in range(start, len(key)) if key[at] == "/")
        if any(one in ended and ended[one].status != "pending" for one in outer):
            continue
        done, said = key, ended[key].said
        while f"{done}/edited" in begun:
            done = f"{done}/edited"
            said = ended[done].said if done in ended else said
        form = read_form(begun[done].said["form"])
        if said.get("stage") == "receipt" or (form.tool == EVAL and form.args.get("dry-run")):
            continue
        yield _MadeCall(key, form, said.get("value"))


@dataclass
class _Writer:
    session: str
    made: list[_MadeCall]
    tasks: list[str]
    tools: set[str]
    words: Mapping[str, Set[str]]  # the arguments of each tool that have choices
    parameters: dict[Any, _Parameter] = field(default_factory=dict)  # by their values
    first: dict[Any, int] = field(default_factory=dict)  # the index of the first call that returned a value
    numbers: Counter[str] = field(default_factory=Counter)  # the number of names with this beginning
    taken: set[str] = field(default_factory=set)  # names that are already defined
    known: set[str] = field(default_factory=set)  # the ones that no program defined, such as Python's

    def write(self) -> Lifted:
        self.taken = {*self.tools, *_KNOWN, *(name for call in self.made for name in _names(call.code))}
        self.macros: dict[str, str] = {}  # defined by the programs so far
        self.known = {hy.mangle(name) for name in (*self.tools, *dir(builtins))}
        secret = any(SECRET in text for call in self.made for text in (str(call.form), call.code or ""))
        words = _WORD.findall(self.tasks[0].lower()) if self.tasks and not secret else []
        name = self._new_name("-".join(words[:WORDS_OF_NAME]) or "lifted")
        self._find_parameters()
        body = [line for place in range(len(self.made)) for line in self._call(place)]
        runs = tuple(dict.fromkeys(call.key.partition("/")[0] for call in self.made if "/" in call.key))
        head = [f"; Lifted from session {self.session}: {count(len(self.made), 'call')}."]
        if not secret:
            head += [f"; The task: {' '.join(task.split())}"[:WIDTH] for task in self.tasks]
        # Parameters without a default come first.
        parameters = sorted(self.parameters.values(), key=lambda one: one.default is not None)
        without = [one.name for one in parameters if one.default is None]
        if without:
            given = " ".join(f':{one} "…"' for one in without)
            head.append(f"; Its secrets are not kept: write ({name} {given}) in the last line.")
        spelt = [
            one.name if one.default is None else f"[{one.name} {print_value(one.default)}]"
            for one in parameters
        ]
        pad = "\n" + " " * len(f"(defn {name} [")
        line = " ".join(spelt)
        vector = line if len(name) + len(line) < WIDTH - 10 else pad.join(spelt)
        program = "\n".join([*head, f"(defn {name} [{vector}]", *body]) + f")\n\n({name})\n"
        return Lifted(self.session, runs, name, len(self.made), program)

    def _new_name(self, wanted: str) -> str:
        name = wanted
        while name in self.taken or name.replace("-", "_") in self.taken:
            self.numbers[wanted] += 1
            name = f"{wanted}-{self.numbers[wanted] + 1}"
        self.taken.add(name)
        return name

    # Parameters and variables

    def _find_parameters(self) -> None:
        said: Counter[Any] = Counter()
        first: dict[Any, str] = {}
        for place, call in enumerate(self.made):
            self.first.setdefault(_key(call.value), place)
            for name, value in call.form.args.items():
                if self._is_word(call, name) or (call.code is not None and name == "form"):
                    continue
                for leaf in self._leaves(place, value):
                    if SECRET in str(leaf):
                        self._secret(name, leaf)
                    else:
                        said[_key(leaf)] += 1
                        first.setdefault(_key(leaf), name)
            if call.code is not None and (SECRET in call.code):
                self._secret("secret", SECRET)
        for key, name in first.items():
            if said[key] > 1 or self._is_spoken(key[1]):
                self.parameters[key] = _Parameter(self._new_name(name), key[1])

    def _is_word(self, call: _MadeCall, name: str) -> bool:
        """Whether an argument has choices: an equal value of another call is then a coincidence."""
        return name in self.words.get(call.form.tool, ()) and SECRET not in str(call.form.args[name])

    def _secret(self, name: str, leaf: Any) -> None:
        key = (SECRET, name, str(leaf))
        if key not in self.parameters:
            self.parameters[key] = _Parameter(self._new_name(name))

    def _leaves(self, place: int, value: Any) -> Iterator[Any]:
        """The texts and numbers of an argument that no earlier call has returned."""
        if (source := self._source(place, value)) is not None:
            source.handed = True
            return
        if isinstance(value, Mapping):
            for item in value.values():
                yield from self._leaves(place, item)
        elif isinstance(value, list) and not _is_hidden(value):
            for item in value:
                yield from self._leaves(place, item)
        elif _is_hidden(value) or (
            value not in ("", None) and isinstance(value, str | int | float) and not isinstance(value, bool)
        ):
            yield value

    def _source(self, place: int, value: Any) -> _MadeCall | None:
        """The earlier call that returned this value."""
        if not value or not isinstance(value, str | list | dict) or SECRET in str(value):
            return None
        if isinstance(value, str) and self._is_spoken(value):
            return None
        found = self.first.get(_key(value), place)
        return self.made[found] if found < place else None

    def _is_spoken(self, value: Any) -> bool:
        text = str(value)
        edges = r"(?<!\w)" if text[:1].isalnum() else "", r"(?!\w)" if text[-1:].isalnum() else ""
        pattern = f"{edges[0]}{re.escape(text)}{edges[1]}"
        return any(re.search(pattern, task) for task in self.tasks)

    # Text

    def _call(self, place: int) -> list[str]:
        call = self.made[place]
        if call.handed:
            call.variable = self._new_name(f"{call.form.tool}-result")
        if call.code is None:
            args = (f" :{name} {self._spell(place, name, value)}" for name, value in call.form.args.items())
            text = f"({call.form.tool}{''.join(args)})"
        else:
            text = self._program(call)
        if call.variable:
            text = f"(setv {call.variable} {text})"
        return [f"  ; {call.key}", f"  {text}"]

    def _spell(self, place: int, name: str, value: Any) -> str:
        if self._is_word(self.made[place], name):
            return print_value(value)
        if (source := self._source(place, value)) is not None:
            return source.variable
        if (secret := self.parameters.get((SECRET, name, str(value)))) is not None:
            return secret.name
        if isinstance(value, str | int | float) and (known := self.parameters.get(_key(value))) is not None:
            return known.name
        if isinstance(value, Mapping):
            items = (f"{print_value(k)} {self._spell(place, name, v)}" for k, v in value.items())
            return "{" + "  ".join(items) + "}"
        if isinstance(value, list):
            return "[" + " ".join(self._spell(place, name, item) for item in value) + "]"
        return print_value(str(value) if isinstance(value, Code) else value)

    def _with_macros(self, code: str) -> str:
        """A program preceded by the macros of earlier programs that it uses; notes its own macros."""
        with contextlib.suppress(ProgramError, MacroError):
            forms = read_forms(code)
            own, _ = split(forms)
            used = set(symbols_in(m.List(forms)))
            before = [text for name, text in self.macros.items() if mangled(name) in used and name not in own]
            self.macros |= {name: show(form) for name, form in own.items()}
            return "\n".join([*before, code])
        return code

    def _program(self, call: _MadeCall) -> str:
        """A program of ``eval`` as inline code if that means the same; otherwise as a text for ``eval``."""
        code = self._with_macros(call.code or "")
        hidden = self.parameters.get((SECRET, "secret", SECRET))
        if hidden is not None:
            code = code.replace(f'"{SECRET}"', hidden.name).replace(SECRET, hidden.name)
        names = sorted(self.tools)
        try:
            one = len(read_all(code, PROGRAM_LIMITS)) == 1 and "\n" not in code and ";" not in code
            inside = code if one else f"(do\n{code}\n  )"
            program = compile_program(code, names)
            # Inside a function a global becomes a local, and a variable hides the tool of the same name.
            alone = "global" in _names(code) or not self.known.isdisjoint(program.globals)
            if not alone and compile_program(inside, names).python == program.python:
                return inside
        except (ProgramError, ReadError):
            pass
        return f"({EVAL} {print_value(code)})"


def _key(value: Any) -> Any:
    """A key that distinguishes literals: 1, "1" and True are different."""
    if not isinstance(value, str | int | float | None):
        return "data", print_value(value)
    return "str" if isinstance(value, str) else type(value).__name__, value


def _is_hidden(value: Any) -> bool:
    """Whether a value is a hidden secret; a secret that was not a text reads as the list ``[secret]``."""
    return isinstance(value, list) and [str(item) for item in value] == [SECRET[1:-1]]


def _names(code: str | None) -> Iterable[str]:
    """Every name in the text of a program, even if it cannot be parsed."""
    return re.findall(r"[^\s()\[\]{}\"';]+", (code or "").replace(SECRET, ""))
