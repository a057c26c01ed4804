"""Gates that a user supplies: a Hy file that defines ``check``, or a program.

A program receives each call as JSON on stdin. It exits with 0 to allow the call, or with 2 to deny it with
its own message. The call is also denied for any other exit code, if the program cannot be started, and if it
is late.
"""

from __future__ import annotations

import inspect
import json
import os
import shlex
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from quoth.tools.call.call import Call, GateDecision
from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import SECRET, Redactor, redact, sounds_secret
from quoth.tools.door.gate import GateError, with_arguments
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.hy_loader import load_hy_file
from quoth.tools.lisp.forms import CallForm, kebab
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.values import plain
from quoth.tools.text import short
from quoth.tools.visible import visible

SECONDS = 10.0
LONGEST = 1_000  # characters of its message that are shown
MOST_OUTPUT = 100_000  # bytes of its output that are read
ALLOW, DENY = 0, 2


class GateProgram:
    """A program that is asked about every call of every tool. ``secrets`` returns the parameters whose values
    it does not receive."""

    seconds = SECONDS

    def __init__(self, argv: Sequence[str], secrets: Callable[[], Collection[str]] = tuple) -> None:
        self.argv = tuple(argv)
        self._secrets = secrets
        self._folder = Path.cwd()

    async def check(self, tool: CognitiveTool, call: Call, context: ToolContext) -> GateDecision:
        code, words = await self._asked(self._question(tool, call, context))
        if code == ALLOW:
            return GateDecision(True)
        lines = words.strip().splitlines()
        if code != DENY:
            lines = lines[-1:]  # the last line of a traceback has the error
        said = short(redact(visible(" ".join(lines))), LONGEST)
        if code == DENY:
            return GateDecision(False, said or f"{self._name} denied it without a reason")
        how = f"exited with code {code}" if code > 0 else f"was killed by signal {-code}"
        raise GateError(f"{self._name} {how}", said)

    @property
    def files(self) -> list[Path]:
        """The program, and the files that its arguments name."""
        return [path for path in map(Path, self.argv) if path.is_absolute()]

    @property
    def _name(self) -> str:
        return Path(self.argv[0]).name

    def _question(self, tool: CognitiveTool, call: Call, context: ToolContext) -> str:
        # A text is passed in full, at any length: a gate that saw only a part could be bypassed.
        hide = Redactor(call.form, tool.params, self._secrets(), by_looks=False, everywhere=True)
        form = CallForm(call.tool, _without_secrets(hide.form.args))
        asked = {
            "tool": tool.name,
            "args": plain(form.args),
            "form": str(form),
            "effects": list(tool.effects),
            "id": call.id,
            "digest": call.form.digest,
            "route": call.route,
            "depth": call.depth,
            "user": call.user,
            "session": call.session,
            "workspace": str(context.workspace.root),
        }
        return json.dumps(asked, ensure_ascii=False) + "\n"

    async def _asked(self, question: str) -> tuple[int, str]:
        """The program's exit code and its message: from stderr, or from stdout if stderr is empty."""
        from quoth.tools.shell.running import PIPE, CapturedOutput, Running
        from quoth.tools.shell.view import INSIDE

        try:
            env = {**os.environ, INSIDE: "1"}
            running = await Running.start(
                self.argv, cwd=self._folder, env=env, stdin=PIPE, stderr=PIPE, alone=True
            )
        except (OSError, ValueError) as error:
            raise GateError(f"{self._name} cannot be started: {error}") from None
        try:
            out, err = CapturedOutput(MOST_OUTPUT), CapturedOutput(MOST_OUTPUT)
            code = await running.communicate(out.add, err.add, question)
        except OSError as error:
            raise GateError(f"{self._name} cannot be started: {error.strerror}") from None
        finally:
            await running.put_away()
        return code, err.text.strip() or out.text


def _without_secrets(value: Any, name: str = "") -> Any:
    """A value without entries that are named like a secret or look like one."""
    if isinstance(value, Mapping):
        return {key: _without_secrets(one, kebab(str(key))) for key, one in value.items()}
    if sounds_secret(name) and not (value is None or isinstance(value, bool)):
        return SECRET
    if isinstance(value, list | tuple):
        return [_without_secrets(one) for one in value]
    if isinstance(value, Code):
        return Code(redact(value))
    return redact(value) if isinstance(value, str) else value


def gate_words(given: str | Sequence[str], where: str) -> tuple[str, ...]:
    """The argument vector of a gate: a program and its arguments, with absolute paths for files, so that
    neither the current folder nor PATH changes the gate. Raises UsageError that names it by ``where``."""
    try:
        words = shlex.split(given) if isinstance(given, str) else [*given]
    except ValueError as error:
        raise UsageError(f"{where} cannot be read: {str(error).lower()}; it is {given}") from None
    if not words or not all(isinstance(word, str) for word in words) or not words[0].strip():
        raise UsageError(f"{where} names no program; an example is ./gate.py --strict.")
    first = os.path.expanduser(words[0])  # noqa: PTH111  the user of "~x" may not exist
    program = shutil.which(first)
    if program is None:
        at = Path(first)
        what = f"{words[0]} cannot be run; make it executable with chmod +x" if at.is_file() else ""
        raise UsageError(f"{where}: {what or f'program {words[0]} not found'}.")
    return (str(Path(program).absolute()), *map(_absolute, words[1:]))


def _absolute(word: str) -> str:
    return str(Path(word).absolute()) if Path(word).is_file() else word


SHAPE = "(defn :async check [tool call ctx] …)"


class FileGate:
    """The gate in a Hy file. Its ``check`` may be asynchronous or not. Raises UsageError for a file without
    this function."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix != ".hy":
            raise UsageError(f"{path} is not a gate file: its name must end in .hy.")
        with registering_in(ToolTable()):  # a gate file defines no tools
            module = load_hy_file(self.path)
        self.check: Any = getattr(module, "check", None)
        if not callable(self.check):
            own = [name for name, value in vars(module).items() if inspect.isfunction(value)]
            hint = did_you_mean("check", own)
            raise UsageError(f"{path} defines no function check: {SHAPE}.{hint}")
        try:
            with_arguments(self.check, None, None, None)
        except TypeError:
            line = getattr(getattr(self.check, "__code__", None), "co_firstlineno", 1)
            names = " ".join(inspect.signature(self.check).parameters)
            raise UsageError(f"{path}:{line}: check takes [{names}]; it must take {SHAPE}.") from None
