"""The command ``quoth new``: writes a commented beginning of a tool, a plan, a policy or a bridge, or the
folder of README's examples.

Knows the files in plans/templates, each named my-name there, and plans/examples; they are read as data.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from quoth.agent.cli.common import write_new
from quoth.agent.cli.options import DONE, Commands, Options, argument
from quoth.agent.terminal.output import print_json, print_line, tell_next
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.visible import visible

# Each kind, the ending of its file, and the commands that check it and use it.
KINDS = {
    "tool": (".hy", "quoth tools test {}", "quoth run TASK --tools {}"),
    "plan": (".org", "quoth fly {} --check", "quoth fly {}"),
    "policy": (".hy", "quoth policy check {}", "quoth run TASK --policy {}"),
    "bridge": (".py", "python {} --check", "python {} --model local"),
}
EXAMPLE, SHOP = "example", "shop"
PLANS = Path(__file__).parents[2] / "plans"
NAME = re.compile(r"[a-z][a-z0-9-]*\Z")
MARK = "my-name"


@dataclass(init=False, repr=False, eq=False)
class NewOptions(Options):
    works_in_workspace = False
    what: str = argument("KIND", "tool, plan, policy, bridge or example")
    name: str | None = argument(
        "NAME",
        "what it is called, such as word-count; its file is named so (an example is a folder: shop)",
        nargs="?",
    )


def add(commands: Commands) -> None:
    about = "Write a commented beginning of a tool, plan, policy or bridge, or the examples of README."
    commands.add("new", about, NewOptions, new)


def new(options: NewOptions) -> int:
    """Write the file into the folder that is named, else the current one; one that is there already stays."""
    if options.what not in (kinds := (*KINDS, EXAMPLE)):
        hint = did_you_mean(options.what, kinds) or f" There are {', '.join(kinds)}."
        raise UsageError(f"There is no beginning of a {visible(options.what)}.{hint}")
    ending, check, use = KINDS.get(options.what, ("", "", ""))
    if options.name is None and ending:
        raise UsageError(f"Name it: quoth new {options.what} NAME, such as word-count.")
    name = (options.name or SHOP).removesuffix(ending)
    if not NAME.match(name):
        raise UsageError(
            f"{visible(name)} is no name: it has letters a to z, digits and -, such as word-count."
        )
    folder = Path(options.workspace or ".")
    if not folder.is_dir():
        raise UsageError(f"The workspace {folder} is not a folder.")
    path = folder / f"{name}{ending}"
    if options.what == EXAMPLE:
        return _new_example(path, options)
    template = PLANS / "templates" / f"{options.what}{ending}"
    write_new(path, template.read_text(encoding="utf-8").replace(MARK, name))
    if options.json:
        print_json({"file": str(path), "check": check.format(path), "use": use.format(path)})
    else:
        print_line(f"Wrote {path}. To check it: {check.format(path)}. To use it: {use.format(path)}")
    return DONE


def _new_example(folder: Path, options: NewOptions) -> int:
    """Write the folder of the examples, whole or not at all."""
    if folder.exists():
        raise UsageError(f"{folder} exists already. Name another: quoth new example NAME")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
            whole = Path(scratch, folder.name)
            compiled = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PLANS / "examples" / SHOP, whole, copy_function=shutil.copyfile, ignore=compiled)
            whole.rename(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}.") from None
    if options.json:
        print_json({"folder": str(folder)})
    else:
        print_line(f"Wrote {folder}, with the files that the examples of README name.")
        tell_next("To begin", f"cd {shlex.quote(str(folder))}")
    return DONE
