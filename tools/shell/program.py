"""The body of the tool ``shell``: checks the program, runs it inside the boundary, and reports its end."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from quoth.tools.advice import instead
from quoth.tools.call.call import ALLOW, Verdict, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import redact
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, ToolFailure, did_you_mean
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_string
from quoth.tools.shell.boundary import Boundary, Kind, Launch, boundary_kind, confined, why_none
from quoth.tools.shell.guarded import MOST, shown, unguarded, unread
from quoth.tools.shell.running import PIPE, STDOUT, CapturedOutput, Running
from quoth.tools.shell.view import environment, homes, places
from quoth.tools.text import escape, excerpt

MAX_OUTPUT = 2_000_000  # bytes of the output that are kept
TOLD = 4_000  # characters from the end of the output that are shown of a program that did not finish
PLAIN = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
OPERATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "<<", "2>", "2>&1", "&>"}
READ_ONLY = "Read-only file system"
# Patterns in the output of a program that failed because of the boundary, and the message for each.
NO_NETWORK = (
    "Could not resolve host|Temporary failure in name resolution|Name or service not known"
    "|Network is unreachable|EAI_AGAIN|ENOTFOUND|NameResolutionError"
)
TOLD_BY_OUTPUT = {
    NO_NETWORK: "It had no network; :network True requests it.",
    f"{READ_ONLY}|EROFS": "Programs can write only in the workspace and /tmp.",
    "could not (write|lock) config file": "The settings of git are read-only here: change them outside.",
    "Please tell me who you are": (
        "Programs cannot see the home folder; its owner may show a file of it in config.hy:"
        ' (shell :readable ["~/.gitconfig"]).'
    ),
}


# Before it


def may_run(argv: Sequence[str], cwd: str, ctx: ToolContext) -> Verdict:
    """The guard: a call that cannot run fails before a person is asked, and each program without a boundary
    needs approval. Raises ToolFailure."""
    try:
        folder = ctx.workspace.resolve(cwd)
    except ToolError as error:
        return deny(str(error))
    try:
        check(argv, folder, cwd)
    except ToolError as error:
        raise ToolFailure("invalid", str(error)) from None
    if kind := boundary_kind():
        root = ctx.workspace.root
        if any(home.is_relative_to(root) for home in homes()):
            try:
                places(Boundary(root, folder))
            except ToolError as error:
                raise ToolFailure("invalid", str(error)) from None
        if reason := why_open(root, kind, unread(root, ctx.may_read)):
            return Verdict("ask", reason, each_time=True)
        return ALLOW
    why = why_none().rstrip(".")
    reason = f"no boundary confines it, so it can do everything that you can do ({why})"
    return Verdict("ask", reason, each_time=True)


def why_open(root: Path, kind: Kind, unseen: Sequence[Path]) -> str:
    """What a boundary of this kind cannot protect from a program: repositories, and files that must not be
    read; "" for nothing."""
    if why := unguarded(root, copies=kind == "bubblewrap", boundary=kind.capitalize()):
        return f"{why}, so git outside may run commands from the program"
    if unseen and (kind != "bubblewrap" or len(unseen) > MOST):
        cannot = f"at most {MOST} can be hidden"
        if kind != "bubblewrap":
            cannot = f"{kind.capitalize()} cannot hide single files"
        return f"the rules forbid reading {shown(root, unseen)}, and {cannot}"
    return ""


def check(argv: Sequence[str], folder: Path, cwd: str) -> None:
    """Raise ToolError, with a sentence that helps, if ``argv`` names no program."""
    if not argv or not argv[0].strip():
        raise ToolError(
            'There is no program to run: the first item of :argv names it, as in ["git" "status"].'
        )
    if any("\0" in word for word in argv):
        raise ToolError("An item of :argv cannot contain a NUL character.")
    if not folder.is_dir():
        raise ToolError(f"There is no folder {cwd} to run {argv[0]} in.")
    name = argv[0]
    if "/" in name:
        _check_file(name, folder / name)
    elif not shutil.which(name):
        raise ToolError(f"There is no program {_quoted(name)} here.{_instead(argv)}")


def _check_file(name: str, file: Path) -> None:
    if not file.exists():
        raise ToolError(f"There is no program {_quoted(name)} here.")
    if file.is_dir() or not os.access(file, os.X_OK):
        what = "is a folder" if file.is_dir() else "cannot be executed: put the program that runs it first"
        raise ToolError(f"{_quoted(name)} {what}.")


def _instead(argv: Sequence[str]) -> str:
    """A suggestion instead of a program that does not exist, with a leading space."""
    name = argv[0]
    if hint := instead("shell").get(name.split()[0]):
        line = f'["sh" "-c" {print_string(" ".join(argv))}]'
        return f" It is a shell word: {hint.replace('LINE', line)}."
    if re.match(r"[A-Za-z_]\w*=", name):
        return f' To set a variable, use env: ["env" {" ".join(map(print_string, argv))}].'
    if len(words := name.split()) > 1:
        return f" Each word is a separate item: [{' '.join(map(print_string, [*words, *argv[1:]]))}]."
    names = set(_programs())
    swapped = next((one for one in sorted(names) if sorted(one) == sorted(name)), None)  # as in gti for git
    return f" Did you mean {swapped}?" if swapped else did_you_mean(name, names)


def _programs() -> Iterator[str]:
    for folder in os.get_exec_path():
        try:
            yield from os.listdir(folder)  # noqa: PTH208  there are thousands
        except OSError:
            continue


def _quoted(name: str) -> str:
    return print_string(name if len(name) < 80 else f"{name[:80]}…")


# The command


def command_for(
    argv: Sequence[str],
    folder: Path,
    workspace: Workspace,
    *,
    network: bool,
    more: Mapping[str, Any],
    unseen: Sequence[Path] = (),
) -> Launch:
    """How to start ``argv`` inside the boundary, or without it if none works: then a person has approved it.
    ``unseen`` are the files that the rules forbid reading."""
    kept, hidden = workspace.loaded, (*workspace.protected, *unseen[:MOST])
    # From a worktree the files that the rules forbid would be seen in the project itself.
    project = () if workspace.home == workspace.root else (workspace.home,)
    boundary = Boundary(
        workspace.root, folder, network=network, protected=kept, hidden=hidden, covered=project, **more
    )
    kind = boundary_kind()
    command = confined(argv, boundary, kind) if kind else Launch(tuple(argv), environment(boundary))
    return replace(command, env={**command.env, **PLAIN})


async def start(command: Launch, name: str, folder: Path, stdin: str | None = None) -> Running:
    """Start it. Raises ToolError."""
    try:
        return await Running.start(
            command.argv,
            cwd=folder,
            env=command.env,
            pass_fds=command.pass_fds,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else PIPE,
            stderr=STDOUT,
            alone=True,
            kept=not command.ends_all,
            let_go=command.let_go,
        )
    except BaseException as error:
        command.close()
        if not isinstance(error, OSError | ValueError):
            raise
        said = str(getattr(error, "strerror", None) or error).lower()  # it names the first of our words
        raise ToolError(f"{name} cannot be started: {said}.") from None


# The run


async def run(
    argv: Sequence[str],
    *,
    cwd: str = ".",
    stdin: str | None = None,
    timeout: float,  # noqa: ASYNC109  the caller's deadline comes first
    network: bool = False,
    ctx: ToolContext,
) -> dict[str, Any]:
    """Run a program to its end: ``{"exit": 0, "output": "…"}``, with the output of both streams in the order
    in which it came. Raises ToolError and ToolFailure ``timeout``."""
    folder, name = ctx.workspace.resolve(cwd), argv[0]
    check(argv, folder, cwd)
    unseen = await asyncio.to_thread(unread, ctx.workspace.root, ctx.may_read)
    command = command_for(argv, folder, ctx.workspace, network=network, more=ctx.boundary, unseen=unseen)
    ctx.effect(f"ran:{name}")
    program = await start(command, name, folder, stdin)
    output, lines = CapturedOutput(MAX_OUTPUT), OutputLines(ctx.shows)

    def take(chunk: bytes) -> None:
        output.add(chunk)
        lines.add(chunk)

    try:
        async with asyncio.timeout(timeout):
            code = await program.communicate(take, stdin=stdin)
    except TimeoutError:
        said = plain(output.text)[-TOLD:].strip()
        told = f" The end of its output:\n{said}" if said else " It printed nothing."
        raise ToolFailure(
            "timeout", f"{name} did not finish within {timeout:g} s, and was stopped.{told}"
        ) from None
    except OSError as error:
        raise ToolError(f"{name} cannot be started: {str(error.strerror).lower()}.") from None
    finally:
        lines.end()
        try:
            await program.put_away()
            for sentence in await asyncio.to_thread(command.finish):
                ctx.say(sentence)
        finally:
            command.close()
    result = {"exit": exit_code(code), "output": plain(output.text)}
    if code and command.git_read_only and READ_ONLY in output.text:
        ctx.say(command.git_read_only)
    for note in notes(argv, result, network):
        ctx.say(note)
    for note in await unseen_notes(unseen, ctx) if result["exit"] else ():
        ctx.say(note)
    return result


async def begin(
    argv: Sequence[str], *, cwd: str = ".", stdin: str | None = None, network: bool = False, ctx: ToolContext
) -> dict[str, Any]:
    """Start a program in the background: ``{"id": "sleep-3f2a"}``. Raises ToolError."""
    if ctx.programs is None:
        raise ToolError("This agent cannot run programs in the background.")
    programs = ctx.programs()
    if stdin is not None:
        raise ToolError("A program in the background has no input: leave :stdin out.")
    folder, name = ctx.workspace.resolve(cwd), argv[0]
    check(argv, folder, cwd)
    programs.require_room()
    unseen = await asyncio.to_thread(unread, ctx.workspace.root, ctx.may_read)
    command = command_for(argv, folder, ctx.workspace, network=network, more=ctx.boundary, unseen=unseen)
    ctx.effect(f"ran:{name}")
    id = programs.take(name, await start(command, name, folder), command)
    ctx.say(f'(process :id "{id}") shows its output; it ends with this session.')
    return {"id": id}


async def unseen_notes(unseen: Sequence[Path], ctx: ToolContext) -> list[str]:
    """Sentences about the files that programs do not see, with the rule that forbids reading them."""
    by_rule: dict[str, list[Path]] = {}
    for place in sorted(unseen[:MOST]):
        by_rule.setdefault(await _rule(place, ctx), []).append(place)
    return [f"Programs cannot see {shown(ctx.workspace.root, by_rule[rule])}: {rule}." for rule in by_rule]


async def _rule(place: Path, ctx: ToolContext) -> str:
    """The rule that forbids reading a file, or a file of a folder."""
    files = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
    if ctx.look is not None:
        path = next(files, place).relative_to(ctx.workspace.root).as_posix()
        look = await ctx.look(CallForm("read-file", {"path": path}), lambda value: False, True)
        if look.verdict != "allow" and look.reason:
            return look.reason
    return "the rules forbid reading it"


def exit_code(code: int) -> int:
    """An exit code as in a shell: 128 plus the number of the signal that ended the program."""
    return 128 - code if code < 0 else code


def notes(argv: Sequence[str], result: Mapping[str, Any], network: bool) -> Iterator[str]:
    """Hints that explain a failure."""
    code, output = result["exit"], result["output"]
    if not code:
        return
    if code > 128 and (name := _signal(code - 128)):
        why = " It may have used more memory than it is given." if name == "SIGKILL" else ""
        yield f"{argv[0]} was ended by {name}.{why}"
    missing = "No such file" in output
    patterns = {word for word in argv[1:] if {*word} & {*"*?"} and word in output and missing}
    if (found := OPERATORS.intersection(argv[1:]) | patterns) and argv[0] not in ("find", "test", "["):
        word = excerpt(min(found))
        yield f'No shell reads :argv: {word} was an ordinary argument. To use a shell: ["sh" "-c" "…"].'
    for pattern, said in TOLD_BY_OUTPUT.items():
        if re.search(pattern, output) and not (network and pattern == NO_NETWORK):
            yield said


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


# Its output


def plain(text: str) -> str:
    """Output as text for people and models: control characters of a terminal are visible as escapes."""
    text = text.replace("\r\n", "\n")
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else escape(char) for char in text)


class OutputLines:
    """Shows a person the output as it comes, by whole lines, without texts that look like a secret."""

    def __init__(self, show: Callable[[str], None] | None) -> None:
        self._show = show
        self._rest = b""
        self._key = ""  # the beginning of a private key whose end has not come

    def add(self, chunk: bytes) -> None:
        if self._show is None:
            return
        lines, newline, rest = (self._rest + chunk).rpartition(b"\n")
        self._rest = rest[-MAX_LINE:]
        if newline:
            self._tell(lines + newline)

    def end(self) -> None:
        """Show the rest, and signal the end by an empty text."""
        if self._show is not None:
            if self._rest:
                self._tell(self._rest)
            self._show("")

    def _tell(self, data: bytes) -> None:
        assert self._show is not None
        text = self._key + data.decode("utf-8", "replace")
        begun = text.rfind("-----BEGIN ")
        self._key = ""
        if begun >= 0 and "-----END " not in text[begun:] and len(text) - begun < MAX_LINE:
            text, self._key = text[:begun], text[begun:]
        if text:
            self._show(plain(redact(text)))


MAX_LINE = 20_000  # bytes of one line that are shown; also the limit for a key
