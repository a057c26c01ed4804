"""Reads the predicates of policy rules: each becomes one test of a value.

A predicate is a value to be equal to (a text, a number, True, False, nil, a dictionary, a list, which may end
with ``...`` for any further items), ``_`` for any value, or ``(under "dir")``, ``(matches "regex")``, which
may match anywhere in the text, ``(one-of a b)``, ``(> n) (>= n) (< n) (<= n) (= x) (!= x)``, ``(len P)``,
``(any P)`` and ``(every P)`` of a list's items, ``(key "name" P)`` of a dictionary, ``(not P)``,
``(and P…)``, ``(or P…)``. For a web address: ``(host "example.org")``, ``(scheme "https")`` and ``(path P)``,
where ``(under "/docs")`` means the path of a page. For the origin of a value: ``(in-task)``, ``(in-field)``,
``(in-field search-contacts)``, ``(in-text)`` and ``(made-up)``; ``(links P)`` tests each address, host and
account in a text.

Recursion is bounded by the depth limit of the reader of forms.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import hy.models as m

from quoth.tools.errors import QuothError, ToolError
from quoth.tools.lisp.fields import Fields
from quoth.tools.lisp.forms import kebab
from quoth.tools.lisp.printer import CONSTANTS, show
from quoth.tools.lisp.source import SourceText
from quoth.tools.policy.model import OriginTest
from quoth.tools.policy.predicates import (
    EvaluationContext,
    Predicate,
    Truth,
    all_of,
    any_of,
    anything,
    at_key,
    compares,
    equals_dict,
    equals_list,
    equals_number,
    equals_text,
    has_rest,
    identical,
    length,
    matches,
    negated,
    of_items,
    under,
)
from quoth.tools.registry.parameters import NAME
from quoth.tools.safe_regex import compiled
from quoth.tools.storage.paths import real_path

# Argument vectors in rules: a program is the same by its name, by its path, and after a wrapper that runs it.
#
# A literal vector in a rule matches only as it is written. Another spelling of it is undecided, so it counts
# for a deny and an ask, and never for an allow.


# Programs that run the program that their arguments name.
WRAPPERS = frozenset(
    (
        *("env", "xargs", "find", "nice", "nohup", "setsid", "timeout", "time", "watch", "sudo", "doas"),
        *("parallel", "script", "strace", "ltrace", "gdb", "busybox", "toybox", "ionice", "chrt", "taskset"),
        *("stdbuf", "unshare", "nsenter", "chroot", "flock", "su", "runuser", "setpriv", "prlimit", "npx"),
        *("uvx", "pipx", "uv", "poetry", "docker", "podman", "systemd-run", "exec", "command", "fd", "entr"),
        *("ssh", "deno", "bun"),
    )
)
# Wrappers that take each word unchanged, without a shell.
PLAIN = frozenset(
    (
        *("env", "nice", "nohup", "setsid", "timeout", "time", "ionice", "chrt", "taskset", "stdbuf"),
        *("setpriv", "prlimit", "uv"),
    )
)
FED = frozenset(("xargs", "parallel"))  # wrappers that read more words from their input
# Programs that run code from an argument, from their input or from a file.
INTERPRETERS = frozenset(
    (
        *(
            "rbash",
            "sh",
            "bash",
            "dash",
            "zsh",
            "ksh",
            "ash",
            "fish",
            "csh",
            "tcsh",
            "pwsh",
            "python",
            "pypy",
            "node",
        ),
        *("perl", "ruby", "php", "lua", "luajit", "awk", "gawk", "mawk", "tclsh", "osascript"),
        *("emacs", "guile", "sbcl", "hy", "julia", "Rscript"),
    )
)
PROGRAMMED = frozenset(("awk", "gawk", "mawk"))  # their first argument is a program
# Programs whose arguments name no program; any other program may run one that its arguments name.
DATA_ONLY = frozenset(
    ("ls", "cat", "head", "tail", "echo", "printf", "wc", "uniq", "cut", "tr", "grep", "egrep", "fgrep",
     "cd", "diff", "cmp", "stat", "file", "du", "df", "mkdir", "rmdir", "touch", "cp", "mv", "ln", "chmod",
     "chown", "pwd", "date", "true", "false", "test", "basename", "dirname", "realpath", "readlink",
     "id", "whoami", "uname", "which", "type", "sleep", "seq", "tee", "base64", "od", "xxd", "tree",
     "jq", "md5sum", "sha256sum", "pytest", "ruff", "mypy", "black", "isort", "prettier", "eslint",
     "shellcheck")
)  # fmt: skip
# Commands of git that run no program named by their arguments.
_OF_GIT = frozenset(
    ("add", "commit", "status", "log", "diff", "show", "branch", "checkout", "switch", "restore",
     "stash", "tag", "merge", "blame", "ls-files", "rev-parse", "init", "mv",
     "reset", "cherry-pick", "revert", "describe", "shortlog")
)  # fmt: skip
_RUN_TEXT = ("timeit", "pdb", "code")  # modules of Python that run code from an argument
RUNNERS = WRAPPERS | INTERPRETERS
_VERSION = re.compile(r"[-\d.]+\Z")  # python3.12
_PLAIN_WORD = re.compile(r"[\w./:=,+@%-]*\Z", re.ASCII)
_SPLITS = re.compile(r"-[a-zA-Z]*S|--s(?:p|=|\Z)")  # env -S"rm a"
_EXEC = re.compile(r"-(exec|ok)")  # find runs a program only with one of these
_RUNS_MORE = re.compile(r"system|[|@]|\A(?:-[feEil]|--)")  # awk likewise
_NO_PROGRAM = "\0"
_WORDS = re.compile(r"[\w.+-]+")
_QUOTES = str.maketrans("", "", "'\"\\")  # a shell removes them: r''m
_COMPUTES = re.compile(r"`|\$[\w({]")


def program(word: str) -> str:
    """The name of a program: the last part of its path, without a version."""
    name = word.rpartition("/")[2]
    return _VERSION.sub("", name) or name


def of_vector(
    items: Sequence[Predicate], texts: Sequence[str | None], programs: Collection[str], more: bool
) -> Predicate:
    """The predicate of a literal vector, and of other spellings of a program's arguments. With ``more``,
    further words may follow. ``items`` are its parts, ``texts`` the parts that are texts, and ``programs``
    the texts that the first part equals."""
    plain, rest = equals_list(items, more), equals_list(items[1:], more)
    names = {_last_part(word) for word in programs}

    def test(value: Any, facts: EvaluationContext) -> Truth:
        truth = plain(value, facts)
        if truth is False and has_rest(value) and "runs" in facts.tool.effects and _is_vector(value[:-1]):
            return None if _is_named(value[0], facts) and _may_continue(value, facts) else False
        if truth is None or "runs" not in facts.tool.effects or not _is_vector(value):
            return truth
        if truth:
            name = _last_part(value[0])
            excluded = items[0](_NO_PROGRAM, facts) and not items[0](name, facts)
            return None if excluded or _is_of_workspace(value[0], facts) else True
        if not _is_named(value[0], facts):
            return None if _may_run(value, facts) else False
        return None if rest(value[1:], facts) is not False or _behind_options(value, facts) else False

    def _is_named(word: str, facts: EvaluationContext) -> bool:
        """Whether the rule names the program of this word, by any path."""
        name = _last_part(word)
        return name in names or any(items[0](one, facts) is not False for one in {word, name})

    def _may_continue(value: Sequence[Any], facts: EvaluationContext) -> bool:
        """Whether further words may make the words that the rule names, perhaps behind options."""
        options = any(word.startswith("-") for word in value[1:-1])
        return options or rest(value[1:], facts) is not False

    def _behind_options(value: Sequence[str], facts: EvaluationContext) -> bool:
        """Whether options precede the words that the rule names: ``git -C x push`` is a push."""
        pairs = enumerate(zip(items[1:], value[1:], strict=False), 1)
        wrong = next((place for place, (item, word) in pairs if item(word, facts) is False), len(value))
        options = any(word.startswith("-") for word in value[1 : wrong + 1])
        return options and all(text is None or text in value[wrong:] for text in texts[wrong:])

    def _may_run(value: Sequence[str], facts: EvaluationContext) -> bool:
        """Whether a program may run a program that the rule names."""
        name = program(value[0])
        if name in INTERPRETERS and not _runs_file(name, value[1:]):
            return True
        if (
            name in PROGRAMMED
            or _is_data_only(name, value[1:])
            or (name == "find" and not any(map(_EXEC.match, value)))
        ):
            return False
        named = _names(value, facts)
        if named or name not in WRAPPERS:
            return named
        wrappers = WRAPPERS.intersection(map(program, value))
        plain = wrappers <= PLAIN
        others = PROGRAMMED if FED.isdisjoint(wrappers) else PROGRAMMED | WRAPPERS
        return any(
            not (plain or _PLAIN_WORD.match(word))
            or _is_named(word, facts)
            or _SPLITS.match(word)
            or program(word) in others
            or (program(word) in INTERPRETERS and not _runs_file(program(word), value[place : place + 2]))
            for place, word in enumerate(value[1:], 2)
        )

    def _names(value: Sequence[str], facts: EvaluationContext) -> bool:
        """Whether the arguments of a program that may run others name a program, or may do so."""
        if items[0](_NO_PROGRAM, facts):  # the rule is about all programs except some
            return False
        words = [word.translate(_QUOTES) for word in takewhile(lambda word: word not in DATA_ONLY, value[1:])]
        parts = [part for word in words for part in _WORDS.findall(word)]
        parts += [part[2:] for part in parts if part[:1] == "-"]  # -Irm
        named = any(_is_named(part, facts) for part in parts)
        return (
            (named and all(text is None or text in parts for text in texts[1:]))
            or any(_COMPUTES.search(word) or _may_run_text(word) for word in words)
            or any(_interprets(value[place : place + 3]) for place in range(1, len(words) + 1))
        )

    return test


def _may_run_text(word: str) -> bool:
    """Whether a text of several words contains the name of an interpreter."""
    parts = _WORDS.findall(word)
    return len(parts) > 1 and any(program(part) in INTERPRETERS for part in parts)


def _interprets(value: Sequence[str]) -> bool:
    """Whether words after another program's may be an interpreter and its code."""
    name = program(value[0])
    return name in INTERPRETERS and (name in PROGRAMMED or not _runs_file(name, value[1:]))


def _is_data_only(name: str, rest: Sequence[str]) -> bool:
    """Whether the arguments of a program name no programs."""
    if name != "git":
        return name in DATA_ONLY
    while rest[:1] == ["-C"] or rest[:1] == ["--no-pager"]:
        rest = rest[2 if rest[0] == "-C" else 1 :]
    return bool(rest) and rest[0] in _OF_GIT


def _last_part(word: str) -> str:
    return word.rpartition("/")[2]


def _runs_file(name: str, rest: Sequence[str]) -> bool:
    """Whether an interpreter runs a file or a module, and no code from its arguments or its input."""
    if not rest:
        return False
    if name in PROGRAMMED:
        return not any(map(_RUNS_MORE.search, rest))
    if rest[0] == "-m" and rest[1:2] and rest[1] in _RUN_TEXT:
        return False
    return not rest[0].startswith("-") or (name in ("python", "pypy") and rest[0] == "-m" and len(rest) > 1)


def _is_of_workspace(word: str, facts: EvaluationContext) -> bool:
    """Whether PATH finds the program in the workspace, perhaps through a link: a model may have written it. A
    program that is given as a path is that very file."""
    if "/" in word or (found := shutil.which(word)) is None:
        return False
    places = (real_path(Path(found).parent), real_path(Path(found)))
    return not Path(found).is_absolute() or any(place.is_relative_to(facts.root) for place in places)


def _is_vector(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(word, str) for word in value)


PREDICATES = (
    "under", "matches", "one-of", "len", "any", "every", "not", "and", "or", "key", "host", "scheme", "path",
    ">", ">=", "<", "<=", "=", "!=", "in-task", "in-field", "in-text", "made-up", "links",
)  # fmt: skip
ORIGINS = ("in-task", "in-field", "in-text", "made-up")
_SIGNS = (">", ">=", "<", "<=", "=", "!=")
ANYTHING, _AND_SO_ON = m.Symbol("_"), m.Symbol("...")


class PredicateReader(Fields):
    """Reads the predicates of one file."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self.origins: list[OriginTest] = []  # of the rule that is being read
        self.argument = ""  # the argument whose predicate is being read
        self._around: list[str] = []

    def number(self, item: Any) -> Predicate:
        """The rest of ``(depth …)`` or ``(len …)``: a predicate, or a comparison without its parentheses."""
        rest = item[1:]
        if len(rest) == 2 and isinstance(rest[0], m.Symbol) and str(rest[0]) in _SIGNS:
            return self.comparison(str(rest[0]), rest[1])
        return self.predicate(self.one(item, "(> 2)"))

    def one(self, item: Any, example: str) -> Any:
        if len(item) != 2:
            raise self.fault(item, f"({item[0]} …) takes one predicate, as in ({item[0]} {example}).")
        return item[1]

    def predicate(self, node: Any) -> Predicate:
        if node == ANYTHING:
            return anything
        if not isinstance(node, m.Expression):
            return self.literal(node)
        head = str(node[0]) if node and isinstance(node[0], m.Symbol) else ""
        if head == "in-intent":
            raise self.fault(node, "(in-intent) is a clause, as in (ask (send-file) (not (in-intent))).")
        if head not in PREDICATES:
            at = node[0] if node else node
            raise self.unknown(at, f"There is no predicate {show(at)}", head, PREDICATES)
        self._around.append(head)
        found = self.called(head, node)
        self._around.pop()
        return found

    def called(self, head: str, node: Any) -> Predicate:
        rest = node[1:]
        if head in ORIGINS:
            return self.of_origin(head, node)
        if head == "links":
            from quoth.tools.policy.origins import of_links  # here: few policies are about origins

            return of_links(self.predicate(self.one(node, "(or (in-task) (in-field))")))
        if head in _SIGNS:
            if len(rest) != 1:
                raise self.fault(node, f"({head} …) takes one value.")
            return self.comparison(head, rest[0])
        if head in ("and", "or", "one-of", "host", "scheme") and not rest:
            raise self.fault(node, f"({head}) is empty: write at least one value in it.")
        if head == "and":
            heads = {str(item[0]) for item in rest if item and isinstance(item, m.Expression)}
            known, strange = heads.intersection(ORIGINS[:2]), heads.intersection(ORIGINS[2:])
            if known and strange:
                raise self.fault(
                    node, f"This never matches: a ({min(strange)}) value is in no task and no field."
                )
            return all_of([self.predicate(item) for item in rest])
        if head == "or":
            return any_of([self.predicate(item) for item in rest])
        if head == "one-of":
            return any_of([self.literal(item) for item in rest])
        if head == "not":
            return negated(self.predicate(self.one(node, '"x"')))
        if head in ("host", "scheme", "path"):
            return self.of_url(head, node)
        if head == "len":
            argument, self.argument = self.argument, ""  # a length has no origin
            found = length(self.number(node))
            self.argument = argument
            return found
        if head in ("any", "every"):
            return of_items(self.predicate(self.one(node, '"x"')), every=head == "every")
        if head == "key":
            if len(rest) != 2:
                raise self.fault(node, '(key …) takes a name and a predicate: (key "name" "x").')
            return at_key(self.text(rest[0], "a key"), self.predicate(rest[1]))
        if len(rest) != 1:
            raise self.fault(node, f'({head} …) takes one text: ({head} "x").')
        text = self.text(rest[0], f"({head} …)")
        if head == "under":
            return self.under(rest[0], text)
        try:
            return matches(compiled(text))
        except QuothError as error:
            raise self.fault(rest[0], str(error)) from None

    def of_origin(self, head: str, node: Any) -> Predicate:
        """A predicate about the origin of a value."""
        from quoth.tools.policy.origins import of_origin  # here: few policies are about origins

        if not self.argument:
            raise self.fault(node, f"{show(node)} must be in an argument of a call.")
        if head != "in-field" and len(node) > 1:
            raise self.fault(node[1], f"({head}) takes nothing.")
        tools = [(self.tool_name(item), self.place(item)) for item in node[1:]]
        self.origins.append(
            OriginTest(self.argument, head, tuple(tools), tuple(self._around), self.place(node))
        )
        return of_origin(head, frozenset(name for name, _ in tools))

    def tool_name(self, node: Any) -> str:
        name = kebab(str(node)) if isinstance(node, (m.Symbol, m.String)) else ""
        if not NAME.match(name) or isinstance(node, m.FString):
            raise self.fault(node, f"(in-field …) takes names of tools, not {show(node)}.")
        return name

    def under(self, node: Any, folder: str) -> Predicate:
        if "\0" in folder:
            raise self.fault(node, "A path cannot contain a NUL character.")
        return under(folder)

    def of_url(self, head: str, node: Any) -> Predicate:
        """A predicate about a web address."""
        from quoth.tools.call.web_url import PORTS  # here: few policies are about addresses
        from quoth.tools.policy.urls import has_host, has_path, has_scheme, read_pattern

        if head == "path":
            return has_path(_UrlPathReader(self.source).predicate(self.one(node, '(under "/docs")')))
        if head == "scheme":
            for item in node[1:]:
                if self.text(item, "a scheme") not in PORTS:
                    raise self.fault(item, f'A scheme must be "https" or "http", not {show(item)}.')
            return has_scheme(frozenset(map(str, node[1:])))
        try:
            return has_host([read_pattern(self.text(item, "a host")) for item in node[1:]])
        except ToolError as error:
            raise self.fault(node, str(error)) from None

    def comparison(self, sign: str, node: Any) -> Predicate:
        if sign == "=":
            return self.literal(node)
        if sign == "!=":
            return negated(self.literal(node))
        if not isinstance(node, (m.Integer, m.Float)) or node != node:
            raise self.fault(node, f"({sign} …) takes a number, not {show(node)}.")
        return compares(sign, int(node) if isinstance(node, m.Integer) else float(node))

    def literal(self, node: Any) -> Predicate:
        """Equality with a value. Lists and dictionaries may contain predicates instead of values."""
        if isinstance(node, (m.Bytes, m.FString, m.Complex, m.Set)):
            pass
        elif isinstance(node, m.String):
            return equals_text(str(node))
        elif isinstance(node, m.Integer):
            return equals_number(int(node))
        elif isinstance(node, m.Float):
            if node == node:
                return equals_number(float(node))
        elif isinstance(node, (m.List, m.Tuple)):
            more = bool(node) and node[-1] == _AND_SO_ON
            parts = node[:-1] if more else node
            items = [self.predicate(item) for item in parts]
            if not items:
                return equals_list(items, more)

            texts = [str(part) if isinstance(part, m.String) else None for part in parts]
            return of_vector(items, texts, texts_of(parts[0]), more)
        elif isinstance(node, m.Dict):
            if len(node) % 2:
                raise self.fault(node, "This dictionary has a key without a value.")
            pairs = zip(node[::2], node[1::2], strict=True)
            return equals_dict({self.text(key, "a key"): self.predicate(item) for key, item in pairs})
        elif isinstance(node, m.Symbol):
            name = str(node)
            if name in CONSTANTS:
                return identical(CONSTANTS[name])
            if node == _AND_SO_ON:
                raise self.fault(node, '... must be at the end of a list: ["git" ...].')
            meant = f"write the predicate as ({name})" if name in ORIGINS else f'write a text as "{name}"'
            raise self.fault(node, f"{name} is not a value; {meant}.")
        elif isinstance(node, m.Keyword):
            raise self.fault(node, f'{show(node)} is not a value; write a text as "{node.name}".')
        raise self.fault(
            node, f"{show(node)} is not a value; use a text, a number, True, False, nil, […] or {{…}}."
        )


class _UrlPathReader(PredicateReader):
    """Reads the predicate inside ``(path …)``, where a path is the path of a page."""

    def under(self, node: Any, folder: str) -> Predicate:
        if not folder.startswith("/"):
            raise self.fault(node, f'The path of a page begins with a slash: (under "/{folder}").')
        from quoth.tools.policy.urls import below

        return below(folder)

    def of_url(self, head: str, node: Any) -> Predicate:
        raise self.fault(node, f"({head} …) is about an address, and this is only its path.")

    def of_origin(self, head: str, node: Any) -> Predicate:
        raise self.fault(node, f"({head}) is about a whole address, and this is only its path.")


def texts_of(node: Any) -> frozenset[str]:
    """The texts that a predicate compares for equality; none for any other predicate."""
    if isinstance(node, m.Expression):
        if not node or node[0] not in (m.Symbol("one-of"), m.Symbol("=")):
            return frozenset()
        parts = [texts_of(item) for item in node[1:]]
        return frozenset().union(*parts) if all(parts) else frozenset()
    plain = isinstance(node, m.String) and not isinstance(node, m.FString)
    return frozenset({str(node)}) if plain else frozenset()
