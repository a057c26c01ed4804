"""The commands ``quoth help``, ``new`` and ``completion``: the manual, beginnings, and a script for shells.

Knows options and output; the pages are in agent/manual, the beginnings in plans/.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from quoth.agent.cli.common import write_new
from quoth.agent.cli.options import DONE, Options, Parser, argument, switch
from quoth.agent.terminal.output import is_dumb, is_terminal, print_json, print_line, tell_next
from quoth.tools.errors import UsageError, no_such
from quoth.tools.visible import visible


class HelpOptions(Options):
    works_in_workspace = False
    words: Sequence[str] = argument("TOPIC", "a page, or a question in your own words", nargs="*", default=())
    org: bool = switch("--org", "print the Org text")


def read_manual(options: HelpOptions) -> int:
    from quoth.agent.manual.reading import answer, as_data

    if options.json:
        print_json(as_data(options.words))
        return DONE
    width = shutil.get_terminal_size((100, 24)).columns
    text = answer(options.words, width, org=options.org)
    if is_terminal(sys.stdout) and not options.org and not is_dumb():
        from quoth.agent.manual.reading import page_by_page

        page_by_page(text)
    else:
        print_line(text.rstrip("\n"))
    return DONE


SHELLS = ("bash", "zsh", "fish")
# What the arguments may be of which the parser knows no choices, and the parts of a name that mean a file.
WORDS = {
    "ACTION": ("login", "logout"),
    "KIND": ("tool", "plan", "policy", "bridge"),
    "SHELL": SHELLS,
    "verify": ("verify",),
}
FILES = ("FILE", "PATH", "PLAN", "SESSION")


class CompletionOptions(Options):
    works_in_workspace = False
    shell: str = argument("SHELL", "the shell: bash, zsh or fish")


def completion(options: CompletionOptions) -> int:
    import shtab

    if options.shell not in SHELLS:
        raise UsageError(no_such("completion for", options.shell, SHELLS))
    whole: Parser = import_module("quoth.agent.cli.main").parser()  # it imports this file by name, too
    for action in (action for parser in each(whole) for action in parser._actions):
        name = action.metavar if isinstance(action.metavar, str) else ""
        if name in WORDS and not (action.option_strings or action.choices):
            action.choices = WORDS[name]
        elif name == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif any(part in name for part in FILES):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    script = shtab.complete(whole, options.shell)
    print_json({"shell": options.shell, "script": script}) if options.json else print_line(script)
    return DONE


def each(parser: Parser) -> Iterator[Parser]:
    """A parser, and those of its commands and their actions, each with all its options."""
    if parser.fill is not None:
        fill, parser.fill = parser.fill, None
        fill(parser)
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from each(inner)


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


class NewOptions(Options):
    works_in_workspace = False
    what: str = argument("KIND", "what to write: tool, plan, policy, bridge or example")
    name: str | None = argument(
        "NAME",
        "name of the new tool or plan and of its file, such as word-count (an example: shop)",
        nargs="?",
    )


def new(options: NewOptions) -> int:
    """Write the file into the folder that is named, else the current one; one that is there already stays."""
    if options.what not in (kinds := (*KINDS, EXAMPLE)):
        raise UsageError(no_such("template", options.what, kinds))
    ending, check, use = KINDS.get(options.what, ("", "", ""))
    if options.name is None and ending:
        raise UsageError(f"Give a name: quoth new {options.what} NAME, such as word-count.")
    name = (options.name or SHOP).removesuffix(ending)
    if not NAME.match(name):
        raise UsageError(
            f"{visible(name)} is not a name: a name has letters a to z, digits and -. Example: word-count."
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
