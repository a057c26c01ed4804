"""The commands ``quoth call`` and ``read``: a call without a model, and a model's reply without a call.

Knows their options and output; the work is in the door and the reader.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from quoth.agent.cli.common import read_text, run_call, text_of, tools_of
from quoth.agent.cli.options import DONE, USAGE, AgentOptions, Commands, Options, argument, switch
from quoth.agent.terminal.output import complain, print_json, print_line


@dataclass(init=False, repr=False, eq=False)
class CallOptions(AgentOptions):
    form: str = argument("FORM", "such as '(echo :text \"hi\")'; - reads it from stdin")


@dataclass(init=False, repr=False, eq=False)
class ReadOptions(Options):
    works_in_workspace, groups = False, "model tools"
    file: str = argument("FILE", "the reply (default: stdin)", nargs="?", default="-")
    display: bool = switch("--display", "show what a person would be shown of it")


def add(commands: Commands) -> None:
    commands.add("call", "Take one call form through the door, without a model.", CallOptions, call)
    commands.add("read", "Read a model's reply and show the calls in it.", ReadOptions, read)


def call(options: CallOptions) -> int:
    form = text_of(options.form)
    return run_call(options, lambda agent: agent.call(form))


def read(options: ReadOptions) -> int:
    from quoth.neuro.prompt.dialects import TAGS, named_dialect
    from quoth.tools.lisp.forms import canonical

    text = read_text(options.file)
    # Without a dialect every spelling is read, and the tags of the tools that have one.
    dialect = TAGS if options.dialect is None else named_dialect(options.dialect)
    reading = dialect.read_text(text, tools_of(options))
    if options.json:
        more: dict[str, Any] = {"display": reading.display, "confidence": reading.confidence}
        more |= {"passed": [asdict(one) for one in reading.passed]}
        print_json(reading.to_json() | (more if options.display else {}))
    else:
        if options.display and reading.display:
            print_line(reading.display)
        for found in reading.calls if not options.display else ():
            print_line(canonical(found.form))
            for repair in found.repairs:
                complain(f"line {found.line}: mended: {repair}")
        for fault in reading.errors:
            complain(str(fault))
        told = {fault.line for fault in reading.errors}
        for tag in reading.passed:
            if tag.line not in told:
                complain(str(tag))
        if not reading.calls and not reading.errors and not options.display:
            complain("There is no call in this text.")
    return USAGE if reading.errors else DONE
