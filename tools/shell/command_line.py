"""Reads a line of shell commands, without running it: the simple commands in it, and whether that is all.

The structure comes from tree-sitter-bash, the words from ``shell_words``. Commands are found in lists,
pipelines, groups, the bodies of compound commands and functions, and in substitutions; a wrapper
(``env``, ``sudo``, ``xargs``, ``sh -c``) gives its own command and the one it runs.

A line is exact only if a shell runs these commands with these words and does nothing else. Everything else
makes it inexact: variables, substitutions, redirections, globs, another folder, what cannot be parsed. A line
that may run commands that are not in it (``eval``, ``source``, a computed name) has one command more,
``sh -c LINE``, whose program is unknown.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from quoth.tools.shell.shell_words import HOLE, Word, read_words
from quoth.tools.shell.wrappers import inner_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MOST_BYTES = 100_000
MOST_OPERATORS = 2_000  # the parser takes quadratic time for these
MOST_COMMANDS = 1_000
DEEPEST = 200  # levels of the tree
MOST_NESTED = 8  # wrappers and ``sh -c`` in one another
MOST_FOLDERS = 8
UNREAD = "syntax that quoth does not read"

_OPERATOR = re.compile(rb"[|()`<]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BLANKS = b" \t\n"
_SPACES = (b" ", b"\t", b"\n")
_ENDS = b" \t\n;&|()<>"  # what ends a word
# Nodes that order commands and change nothing.
_STRUCTURE = frozenset(
    ("program", "list", "pipeline", "subshell", "compound_statement", "if_statement", "elif_clause",
     "else_clause", "while_statement", "do_group", "negated_command")
)  # fmt: skip
_TOKENS = frozenset(
    (";", "&&", "||", "|", "|&", "\n", "(", ")", "{", "}", "if", "then", "elif", "else", "fi", "while",
     "until", "do", "done", "!")
)  # fmt: skip
_GLUED = ("{", "!")  # operators that are part of a word unless a blank follows
_CLAUSES = ("comment", "elif_clause", "else_clause")  # need no operator before them
_WORDS = frozenset(
    ("command_name", "word", "number", "raw_string", "string", "string_content", "ansi_c_string",
     "concatenation", "command")
)  # fmt: skip
_TEXTS = ("raw_string", "ansi_c_string", "string_content", "word")
_EVALUATING = frozenset(
    ("test_command", "unset_command", "declaration_command", "variable_assignment", "arithmetic_expansion")
)  # fmt: skip
_REDIRECTIONS = ("file_redirect", "heredoc_redirect", "herestring_redirect")
_ASSIGNMENTS = ("variable_assignment", "variable_assignments")
_WHY = {
    "command_substitution": "a substitution",
    "process_substitution": "a substitution",
    "arithmetic_expansion": "a substitution",
    "simple_expansion": "a variable",
    "expansion": "a variable",
    "declaration_command": "a variable",
    "unset_command": "a variable",
    "for_statement": "a variable",
    "brace_expression": "braces",
    "function_definition": "a function",
    "case_statement": "a pattern",
    "test_command": "a test",
    "&": "a command in the background",
    **dict.fromkeys(_ASSIGNMENTS, "a variable"),
    **dict.fromkeys((*_REDIRECTIONS, "redirected_statement"), "a redirection"),
}
# Commands of the shell itself that run text as commands, or change what later commands are.
_RUNS_TEXT = frozenset(
    ("eval", "source", ".", "trap", "alias", "enable", "hash", "bind", "complete", "compgen", "mapfile",
     "readarray", "coproc", "fc", "history")
)  # fmt: skip
_CHANGES = frozenset(
    ("declare", "typeset", "local", "export", "readonly", "unset", "read", "let", "getopts", "shopt", "set",
     "unalias", "printf", "exec", "shift", "ulimit", "umask", "autoload", "setopt", "unsetopt", "zmodload")
)  # fmt: skip
_FOLDERS = frozenset(("cd", "pushd", "popd", "chdir"))
_RESERVED = frozenset(
    ("{", "}", "!", "if", "then", "elif", "else", "fi", "for", "select", "while", "until", "do", "done",
     "case", "esac", "in", "function", "[[", "]]", "((", "noglob", "nocorrect", "repeat", "foreach")
)  # fmt: skip
_ASSIGNS = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*(\[[^\]]*\])?\+?=")
_MAY_ASSIGN = re.compile(r"\w+(\[.*\])?\+?=", re.DOTALL)
_DELIMITER = re.compile(rb"(['\"]?)(\w+)\1\Z", re.ASCII)
_NO_FILES = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty")


@dataclass(frozen=True)
class SimpleCommand:
    """A command of a line. Its first ``known`` words are literal; of any other the source is given, and it
    may become several words, or none. ``inner``: a wrapper runs it."""

    argv: tuple[str, ...]
    known: int
    more: bool = False  # further words follow, which the line does not contain
    inner: bool = False

    @property
    def literal(self) -> bool:
        """Whether these are all its words."""
        return self.known == len(self.argv) and not self.more


@dataclass(frozen=True)
class CommandLine:
    """The commands of a line, and the files that its redirections read and write (None: an unknown file).
    ``why`` names what makes it inexact; it is empty if the line is exact."""

    commands: tuple[SimpleCommand, ...]
    reads: tuple[str | None, ...] = ()
    writes: tuple[str | None, ...] = ()
    why: str = ""

    @property
    def exact(self) -> bool:
        return not self.why


def read_line(line: str) -> CommandLine:
    """The commands of a line. Runs nothing, and raises nothing for any text."""
    reading = _Reading(line)
    reading.read(line, 0, inner=False)
    return CommandLine(tuple(reading.commands), tuple(reading.reads), tuple(reading.writes), reading.why)


@cache
def _parser() -> Parser | None:
    """The parser; None if the extra ``guard`` is not installed."""
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class _Reading:
    """One line that is being read."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.commands: list[SimpleCommand] = []
        self.reads: list[str | None] = []
        self.writes: list[str | None] = []
        self.why = ""
        self._opaque = False
        self._seen: set[int] = set()  # the nodes that were read together with another
        self._folders = [""]  # where the next command may run, below the first folder; empty if unknown

    def read(self, line: str, depth: int, *, inner: bool) -> None:
        if why := _strange(line):
            self._inexact(why)
        if _CONTROL.search(line):
            self._hidden("a control character")
            line = _CONTROL.sub("\ufffd", line)
        source = line.encode("utf-8", "replace")
        parser = _parser()
        if parser is None:
            self._hidden('a shell command: pip install "quoth[guard]" to read it')
        elif len(source) > MOST_BYTES or len(_OPERATOR.findall(source)) > MOST_OPERATORS:
            self._hidden("more than quoth reads")
        else:
            root = parser.parse(source).root_node
            if root.has_error:
                self._hidden("a syntax error")
            self._walk(root, source, depth, inner)

    def _inexact(self, why: str) -> None:
        self.why = self.why or why

    def _hidden(self, why: str) -> None:
        """The line may run commands that were not found in it."""
        self._inexact(why)
        if not self._opaque:
            self._opaque = True
            self.commands.append(SimpleCommand(("sh", "-c", self.line), 3, inner=True))

    def _walk(self, root: Node, source: bytes, depth: int, inner: bool) -> None:
        waiting = [(root, 0)]
        while waiting:
            node, level = waiting.pop()
            if level > DEEPEST or len(self.commands) > MOST_COMMANDS:
                self._hidden("more than quoth reads")
                return
            self._look(node, source, depth, inner)
            waiting += [(child, level + 1) for child in reversed(node.children) if child.is_named]

    def _look(self, node: Node, source: bytes, depth: int, inner: bool) -> None:
        kind = node.type
        if kind in _STRUCTURE:
            self._look_between(node, source)
        elif kind == "comment":
            before = source[node.start_byte - 1 : node.start_byte]
            if (before and before not in _ENDS) or b"\n" in source[node.start_byte : node.end_byte]:
                self._hidden("a comment that a shell may not take for one")
        elif kind not in _WORDS:
            self._inexact(_WHY.get(kind, UNREAD))
        if kind == "file_redirect":
            self._look_at_file(node, source)
        elif kind == "command_substitution" and _quotes_again(source[node.start_byte : node.end_byte]):
            self._hidden("a backslash between backquotes")
        elif kind in _TEXTS and _may_run(node.text or b"") and _is_evaluated(node):
            self._hidden("a text that a shell may evaluate")
        elif kind == "test_command" and not _ends(source, node.children[0].end_byte):
            self._hidden(UNREAD)
        elif kind == "heredoc_redirect":
            self._look_at_heredoc(node, source)
        elif kind == "variable_assignment" and not _ASSIGNS.match(source[node.start_byte : node.end_byte]):
            self._hidden(UNREAD)
        if kind == "command" and node.id not in self._seen:
            self._command(node, (), source, depth, inner)
        elif kind == "redirected_statement":
            self._redirected(node, source, depth, inner)

    def _look_between(self, node: Node, source: bytes) -> None:
        """Between commands there are only blanks, newlines and known operators, at least one."""
        place = node.start_byte if node.parent else 0
        separated = True
        for child in node.children:
            gap = source[place : child.start_byte]
            place = child.end_byte
            if not child.is_named and child.type not in _TOKENS:
                self._inexact(_WHY.get(child.type, UNREAD))
            joined = child.type in _GLUED and source[place : place + 1] not in _SPACES
            follows = child.is_named and child.type not in _CLAUSES and not (separated or b"\n" in gap)
            if joined or follows or gap.strip(_BLANKS):
                self._hidden(UNREAD)
            separated = not child.is_named
        end = node.end_byte if node.parent else len(source)
        if source[place:end].strip(_BLANKS):
            self._hidden(UNREAD)

    def _redirected(self, node: Node, source: bytes, depth: int, inner: bool) -> None:
        """A command beside its redirections. Words after a redirection are the command's."""
        redirections = [child for child in node.children if child.type in _REDIRECTIONS]
        words = [word for one in redirections for word in self._words_behind(one, source)]
        body = node.child_by_field_name("body")
        if body is not None and body.type == "command":
            self._seen.add(body.id)
            self._command(body, words, source, depth, inner)
        elif words and body is None:
            self._command(None, words, source, depth, inner)
        elif words:
            self._hidden(UNREAD)

    def _words_behind(self, node: Node, source: bytes) -> list[Node]:
        """The words in a redirection behind its own one."""
        self._seen.add(node.id)
        if node.type == "heredoc_redirect":
            words = node.children_by_field_name("argument")
            nested = [child for child in node.children if child.type in _REDIRECTIONS]
            return [*words, *(word for one in nested for word in self._words_behind(one, source))]
        words = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
        gaps = (source[one.end_byte : other.start_byte] for one, other in pairwise(words))
        if any(not gap or gap.strip(b" \t") for gap in gaps):
            self._hidden(UNREAD)
        return words[1:]

    def _command(
        self, node: Node | None, words: Sequence[Node], source: bytes, depth: int, inner: bool
    ) -> None:
        holes: list[str] = []
        parts = [*([node] if node is not None else []), *words]
        text = b" ".join(self._source(part, source, holes) for part in parts)
        found = read_words(text.decode("utf-8", "replace"), holes)
        if found is None or (found and _MAY_ASSIGN.match(found[0].text)):
            self._hidden(UNREAD)
        if found:
            self._add(found, depth, inner=inner)

    def _source(self, node: Node, source: bytes, holes: list[str]) -> bytes:
        """The source of a command: a blank for each assignment and redirection, a hole for each expansion."""
        pieces: list[bytes] = []
        place, waiting = node.start_byte, [node]
        while waiting:
            one = waiting.pop()
            if one.type in _WORDS or not one.is_named:
                waiting += reversed(one.children)
                continue
            pieces.append(source[place : one.start_byte])
            place = one.end_byte
            if one.type in (*_ASSIGNMENTS, *_REDIRECTIONS) and not _ends(source, place):
                self._hidden(UNREAD)
            if one.type in _ASSIGNMENTS:
                pieces.append(b" ")
            elif one.type in _REDIRECTIONS:
                behind = [self._source(word, source, holes) for word in self._words_behind(one, source)]
                pieces.append(b" ".join((b"", *behind, b"")))
            else:
                pieces.append(HOLE.encode())
                holes.append(source[one.start_byte : one.end_byte].decode("utf-8", "replace"))
        return b"".join((*pieces, source[place : node.end_byte]))

    def _add(self, words: Sequence[Word], depth: int, *, inner: bool, more: bool = False) -> None:
        """A command, and what it runs if it is a wrapper."""
        argv = tuple(word.text for word in words)
        known = next((place for place, word in enumerate(words) if not word.known), len(words))
        self.commands.append(SimpleCommand(argv, known, more, inner))
        if known < len(words):
            self._inexact("a word that a shell expands")
        if more:
            self._inexact("words from the input")
        name = argv[0]
        if known == 0:
            self._hidden("a computed command")
        elif name in _RESERVED or name in _RUNS_TEXT:
            self._hidden(f"the word {name}")
        elif name in _FOLDERS:
            self._change_folder(words)
        elif name in (*_CHANGES, "test", "wait") and any(
            _may_run(word.encode("utf-8", "replace")) for word in argv
        ):
            self._hidden(f"a text that {name} may evaluate")
        elif name in _CHANGES and (name != "printf" or argv[1:2] == ("-v",)):
            self._inexact(f"the command {name}")
        found = inner_of(words)
        if found is None:
            return
        if depth >= MOST_NESTED:
            self._hidden("more than quoth reads")
        elif found.line is not None:
            self.read(found.line, depth + 1, inner=True)
        elif found.words:
            self._add(found.words, depth + 1, inner=True, more=more or found.more)
        else:
            self._hidden(f"a use of {name} that quoth does not read")

    def _change_folder(self, words: Sequence[Word]) -> None:
        """A later command may run in this folder or, after a subshell, in each earlier one."""
        self._inexact(f"the command {words[0].text}")
        target = words[-1] if len(words) > 1 else Word("", known=False)
        simple = target.known and len(words) == 2 and not target.text.startswith(("-", "+"))
        if not simple or len(self._folders) > MOST_FOLDERS:
            self._folders = []  # unknown
        self._folders += [posixpath.join(folder, target.text) for folder in self._folders]

    def _look_at_file(self, node: Node, source: bytes) -> None:
        children = [child for child in node.children if child.type != "file_descriptor"]
        sign = children[0].type if children else ""
        number = node.children[0] if node.children[0].type == "file_descriptor" else None
        if number is not None:
            before = source[number.start_byte - 1 : number.start_byte]
            digits = source[number.start_byte : number.end_byte].isdigit()
            if not digits or (before and before not in _ENDS):
                self._hidden(UNREAD)
        if node.id not in self._seen and len(children) > 2:
            self._hidden(UNREAD)
        if len(children) < 2:
            return
        holes: list[str] = []
        words = read_words(self._source(children[1], source, holes).decode("utf-8", "replace"), holes)
        path = words[0].text if words is not None and len(words) == 1 and words[0].known else None
        if path is not None and sign in (">&", "<&") and re.fullmatch(r"\d*-?", path):
            return
        if path in _NO_FILES:
            return
        paths: list[str | None] = [path]
        if path is None or not (path.startswith("/") or self._folders):
            paths = [None]
        elif not path.startswith("/"):
            paths = [posixpath.join(folder, path) for folder in self._folders]
        if sign in ("<", "<>", "<&"):
            self.reads += paths
        if sign not in ("<", "<&"):
            self.writes += paths

    def _look_at_heredoc(self, node: Node, source: bytes) -> None:
        """Its text must be where a shell finds it: else commands may be taken for text, or text for
        commands."""
        by_type = {child.type: child for child in node.children}
        start, body, end = (by_type.get(f"heredoc_{part}") for part in ("start", "body", "end"))
        if start is None or body is None or end is None:
            return self._hidden("a here-document that quoth does not read")
        named = _DELIMITER.match(source, start.start_byte, start.end_byte)
        first = source.find(b"\n", start.end_byte) + 1
        lines = source[first : end.end_byte].split(b"\n")
        if "<<-" in by_type:
            lines = [line.lstrip(b"\t") for line in lines]
        closes = named is not None and lines[-1] == named[2] and named[2] not in lines[:-1]
        line_end = source[end.end_byte : end.end_byte + 1]
        if not closes or body.start_byte < first or line_end not in (b"", b"\n"):
            self._hidden("a here-document that quoth does not read")
        return None


def _may_run(text: bytes) -> bool:
    """Whether a text would run a command if the shell evaluates it: ``a[$(rm x)]`` as an index."""
    return b"[" in text and (b"$(" in text or b"`" in text)


def _is_evaluated(node: Node) -> bool:
    """Whether a quoted text is in a place where bash may evaluate it as arithmetic, now or later."""
    above = node.parent
    while above is not None and above.type not in _EVALUATING:
        above = above.parent
    return above is not None


def _quotes_again(substitution: bytes) -> bool:
    """Whether a shell removes backslashes before it reads the commands."""
    return substitution.startswith(b"`") and b"\\" in substitution


def _ends(source: bytes, place: int) -> bool:
    """Whether a word cannot continue at this place."""
    return place >= len(source) or source[place] in _ENDS


def _strange(line: str) -> str:
    """What a shell, a terminal or a person may read otherwise than it is; empty for nothing."""
    if line.isascii():
        return ""
    kinds = {unicodedata.category(char) for char in set(line) if char != " "}
    return "an invisible character" if kinds & {"Zs", "Zl", "Zp", "Cf", "Cs", "Co", "Cn"} else ""
