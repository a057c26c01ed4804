"""Completes at the prompt: commands, tools, arguments and their values, names, paths.

Looks up names and lists folders; runs no code of the person.
"""

from __future__ import annotations

import builtins
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from quoth.agent.repl.entries import Frame, Token, Typed, is_form, read_typed
from quoth.tools.lisp.printer import print_string, print_value
from quoth.tools.text import one_line, printable
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.tools.registry.parameters import Param
    from quoth.tools.registry.tool import CognitiveTool

MOST = 200  # maximum number of proposals
ENTRIES = 5000  # maximum number of entries read of one folder
META = 48  # characters of the note beside a proposal
NEWEST = 50  # sessions proposed

Named = tuple[str, str]  # a proposal and its note


class PromptCompleter(Completer):
    """Completes entries of the REPL. ``names`` returns the names of the person's module and macros, as
    written in Hy; ``commands`` the commands with their help."""

    def __init__(
        self,
        agent: AsyncAgent,
        names: Callable[[], Mapping[str, object]],
        commands: Callable[[], Mapping[str, str]],
        lisp: bool = True,
    ) -> None:
        self._agent = agent
        self._names = names
        self._commands = commands
        self._lisp = lisp

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        found: Iterable[Completion] = ()
        if before.startswith(","):
            found = self._in_command(before[1:])
        elif not self._lisp:
            return
        elif is_form(before):
            found = self._in_form(before)
        elif not before.strip() or not any(char in before for char in ' \n"'):
            found = _fitting(before, self._known())  # a single word may be a name
        yield from islice(found, MOST)

    # Commands

    def _in_command(self, typed: str) -> Iterable[Completion]:
        name, blank, rest = typed.partition(" ")
        if not blank:
            return _fitting(name, self._commands().items())
        return self._argument(name, rest.lstrip())

    def _argument(self, command: str, typed: str) -> Iterable[Completion]:
        if command in ("load", "fly"):
            return _paths(typed, Path.cwd(), (".org", ".md") if command == "fly" else (".hy", ".py"))
        words: Iterable[Named] = ()
        if command == "policy" and is_form(typed):
            return self._in_form(typed)
        if " " in typed:
            return ()
        if command == "tool":
            words = ((tool.name, tool.description) for tool in self._agent.table)
        elif command == "log":
            sessions = self._agent.transcript.sessions()[-NEWEST:]
            words = ((str(row[0]), "") for row in reversed(sessions))
        elif command in ("pending", "approve", "deny", "answer"):
            words = ((request.id, request.form) for request in self._agent.broker.requests())
        elif command == "help":
            words = self._commands().items()
        elif command == "model":
            from quoth.neuro.backends.providers import ROWS

            rows = (*self._agent.config.providers.values(), *ROWS)
            words = ((row.name + ":" * row.spec.startswith(f"{row.name}:"), row.spec) for row in rows)
        return _fitting(typed, words)

    # Forms

    def _in_form(self, before: str) -> Iterable[Completion]:
        typed = read_typed(before)
        if typed.in_comment or not typed.open:
            return ()
        word = _word(typed)
        tool, param = self._place(typed, word)
        if typed.in_string:
            return self._in_string(word, param)
        text = word.text if word else ""
        if text.startswith(":"):
            return _fitting(text, _arguments(typed.open[-1], tool, word))
        if word is None or word.kind == "atom":
            if values := _values(param):
                return _fitting(text, values)
            if word is None and tool is not None and (param is None or param.holds_paths):
                return _fitting("", _arguments(typed.open[-1], tool, None)) if param is None else ()
            return _fitting(text, self._dotted(text) if "." in text[1:] else self._known())
        return ()

    def _place(self, typed: Typed, word: Token | None) -> tuple[CognitiveTool | None, Param | None]:
        """The tool called at the end of the text, and the parameter whose value the cursor is in. Items of a
        list belong to the parameter of the list."""
        frames = typed.open
        frame = frames[-1]
        items = [item for item in frame.items if item is not word]
        if frame.opener.text == "[" and len(frames) > 1:
            frame = frames[-2]
            items = frame.items
        tool = self._agent.table.find(frame.head)
        if tool is None or not items:
            return tool, None
        named = items[-1]
        if named.kind == "keyword":
            return tool, next((one for one in tool.offered if one.name == _canonical(named.text[1:])), None)
        place = len(items) - 1
        if word is None or _given(items) or place >= len(tool.offered):
            return tool, None
        return tool, tool.offered[place]

    def _in_string(self, word: Token | None, param: Param | None) -> Iterable[Completion]:
        if word is None or param is None or not word.text.startswith('"'):
            return ()
        typed = word.text[1:]
        if param.choices:
            return _fitting(typed, ((str(choice), "") for choice in param.choices))
        return _paths(typed, self._agent.workspace.root, quoted=True) if param.holds_paths else ()

    def _known(self) -> Iterator[Named]:
        """Tools, macros and names, without duplicates."""
        names = self._names()
        told = set()
        for tool in self._agent.table:
            told.add(tool.name)
            yield tool.name, tool.description
        kinds = ((names, ""), (getattr(builtins, "_hy_macros", {}), "macro"), (vars(builtins), "Python"))
        for among, kind in kinds:
            for name in list(among):
                spelt = _spelt(name)
                if spelt not in told and not name.startswith("_hy_" if kind == "macro" else "_"):
                    told.add(spelt)
                    yield spelt, kind or type(among[name]).__name__

    def _dotted(self, text: str) -> Iterator[Named]:
        """The attributes of the object before the last dot. Does not evaluate properties, which may run any
        code."""
        from hy import mangle

        path, _, _ = text.rpartition(".")
        first, *more = path.split(".")
        try:
            value = self._names().get(first, vars(builtins).get(first))
            for name in more:
                value = inspect.getattr_static(value, mangle(name))
                if hasattr(type(value), "__get__") and not inspect.isroutine(value):
                    return
            kind = type if issubclass(type(value), type) else object
            attributes = kind.__dir__(value) if value is not None else []
        except Exception:  # the person's own object may raise anything
            return
        for name in attributes:
            if not name.startswith("_"):
                yield f"{path}.{_spelt(name)}", ""


def _word(typed: Typed) -> Token | None:
    """The token that ends at the cursor, if it can be completed."""
    last = typed.last
    if last is None or last.kind not in ("atom", "keyword", "string", "number"):
        return None
    return last if last.kind != "string" or typed.in_string else None


def _arguments(frame: Frame, tool: CognitiveTool | None, word: Token | None) -> Iterator[Named]:
    """The parameters without a value, required ones first."""
    if tool is None:
        return
    given = _given(item for item in frame.items if item is not word)
    for param in sorted(tool.offered, key=lambda one: not one.required):
        if param.name not in given:
            yield f":{param.name}", f"{param.kind}  {param.doc}"


def _given(items: Iterable[Token]) -> set[str]:
    return {_canonical(item.text[1:]) for item in items if item.kind == "keyword"}


def _values(param: Param | None) -> list[Named]:
    """All possible values of a parameter, if they are finite."""
    if param is None:
        return []
    if param.choices:
        return [(print_value(choice), "") for choice in param.choices]
    return [("True", ""), ("False", "")] if param.type is bool else []


def _fitting(typed: str, among: Iterable[Named]) -> Iterator[Completion]:
    """The names that begin with the typed text; an underscore equals a hyphen."""
    wanted = _canonical(typed)
    for name, words in among:
        if _canonical(name).startswith(wanted):
            about = visible(one_line(words, META))
            yield Completion(name, -len(typed), display=visible(name), display_meta=about)


def _paths(
    typed: str, root: Path, endings: tuple[str, ...] = (), *, quoted: bool = False
) -> Iterator[Completion]:
    """The entries of the typed folder, folders with a slash. ``quoted`` says whether the path is in a
    string."""
    folder, _, name = typed.rpartition("/")
    at = root / os.path.expanduser(folder + "/" if typed.startswith("/") or folder else ".")  # noqa: PTH111
    try:
        with os.scandir(at) as listed:
            entries = [(entry.name, entry.is_dir()) for entry in islice(listed, ENTRIES)]
    except (OSError, ValueError):
        return
    for entry, is_folder in sorted(entries, key=lambda one: (not one[1], one[0])):
        if not entry.startswith(name) or (entry.startswith(".") and not name.startswith(".")):
            continue
        if not is_folder and endings and not entry.endswith(endings):
            continue
        text = entry + "/" * is_folder
        if not quoted and printable(text) != text:
            continue  # this name cannot be typed here
        written = print_string(text)[1:-1] if quoted else text
        yield Completion(written, -len(name), display=visible(text))


def _canonical(name: str) -> str:
    return name[:1] + name[1:].replace("_", "-")


def _spelt(name: str) -> str:
    """A Python name in Hy's spelling."""
    from hy import unmangle

    try:
        return str(unmangle(name))
    except (KeyError, ValueError):
        return name
