"""The command ``quoth new``: writes a commented beginning of a tool, a plan, a policy or a bridge.

Knows the files in plans/templates, which are read as data; each is named my-name there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from quoth.agent.cli.common import write_new
from quoth.agent.cli.options import DONE, Commands, Options, argument
from quoth.agent.terminal.output import print_json, print_line
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.visible import visible

# Each kind, the ending of its file, and the commands that check it and use it.
KINDS = {
    "tool": (".hy", "quoth tools test {}", "quoth run TASK --tools {}"),
    "plan": (".org", "quoth fly {} --check", "quoth fly {}"),
    "policy": (".hy", "quoth policy check {}", "quoth run TASK --policy {}"),
    "bridge": (".py", "python {} --check", "python {} --model local"),
}
NAME = re.compile(r"[a-z][a-z0-9-]*\Z")
MARK = "my-name"


@dataclass(init=False, repr=False, eq=False)
class NewOptions(Options):
    works_in_workspace = False
    what: str = argument("KIND", "tool, plan, policy or bridge")
    name: str = argument("NAME", "what it is called, such as word-count; its file is named so")


def add(commands: Commands) -> None:
    about = "Write a commented beginning of a tool, a plan, a policy or a bridge to a chat."
    commands.add("new", about, NewOptions, new)


def new(options: NewOptions) -> int:
    """Write the file into the folder that is named, else the current one; one that is there already stays."""
    if options.what not in KINDS:
        hint = did_you_mean(options.what, KINDS) or f" There are {', '.join(KINDS)}."
        raise UsageError(f"There is no beginning of a {visible(options.what)}.{hint}")
    ending, check, use = KINDS[options.what]
    name = options.name.removesuffix(ending)
    if not NAME.match(name):
        raise UsageError(
            f"{visible(name)} is no name: it has letters a to z, digits and -, such as word-count."
        )
    folder = Path(options.workspace or ".")
    if not folder.is_dir():
        raise UsageError(f"The workspace {folder} is not a folder.")
    path = folder / f"{name}{ending}"
    template = Path(__file__).parents[2] / "plans" / "templates" / f"{options.what}{ending}"
    write_new(path, template.read_text(encoding="utf-8").replace(MARK, name))
    if options.json:
        print_json({"file": str(path), "check": check.format(path), "use": use.format(path)})
    else:
        print_line(f"Wrote {path}. To check it: {check.format(path)}. To use it: {use.format(path)}")
    return DONE
