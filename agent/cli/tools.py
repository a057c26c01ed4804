"""The commands ``quoth tools`` and ``belt``: list the tools, and print the belt as a model reads it.

Knows how tools are printed and calls none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoth.agent.cli.common import tools_of
from quoth.agent.cli.options import DONE, Options, argument, option
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.tools.registry.table import ToolTable


@dataclass(init=False, repr=False, eq=False)
class ToolsOptions(Options):
    groups = "tools policy"
    name: str | None = argument("NAME", "the tool to show; test makes the examples of a FILE", nargs="?")
    file: str | None = argument("FILE", "test: the file of tools", nargs="?")


@dataclass(init=False, repr=False, eq=False)
class BeltOptions(Options):
    groups = "tools policy"
    view: str = option(
        "--view",
        "VIEW",
        "lisp, plist, json, tags, run, bare, openai, responses, anthropic or mcp (default: lisp)",
        default="lisp",
    )


def tools(options: ToolsOptions) -> int:
    if options.file is not None:
        if options.name != "test":
            raise UsageError(f"quoth tools shows one tool; to test a file: quoth tools test {options.file}")
        from quoth.agent.cli.tool_tests import test_tools

        return test_tools(options, options.file)
    table = _for_user(options, tools_of(options))
    if options.name == "test" and "test" not in table:
        raise UsageError("Name the file whose examples are to be tested: quoth tools test FILE")
    if options.name or options.json:
        from quoth.tools.registry.roles import roles_data
    if options.name:
        from quoth.agent.terminal.pages import expansions, tool_page

        tool = table.get(options.name)
        if options.json:
            more = {"source": tool.source, "form": tool.form, "expansion": expansions(tool)}
            print_json(tool.describe() | roles_data(tool) | more | {"version": tool.version})
        else:
            print_line(tool_page(tool))
    elif options.json:
        print_json([tool.describe() | roles_data(tool) for tool in table.visible])
    else:
        for line in listed(table.visible):
            print_line(line)
    return DONE


def _for_user(options: Options, table: ToolTable, route: str = "", *, programs: bool = False) -> ToolTable:
    """The table, hiding what the rules deny the user always: by this route of a run, or by any."""
    from quoth.tools.policy.places import has_rules

    if not (has_rules(options.folder, options.policy) or table.permissions):  # those that ship deny none
        return table
    from quoth.tools.policy.files import load_policy
    from quoth.tools.policy.offer import offered, ways

    policy = load_policy(options.folder, options.policy)
    for note in policy.notes:
        complain(note)
    routes = ways(table, policy, options.asker, route, programs=programs) if route else ()
    seen = offered(table, policy, options.asker, routes)
    if hidden := ", ".join(sorted(seen.hidden)):
        complain(f"Not shown, because {options.asker} may not call it in any way: {hidden}")
    return seen


def listed(table: ToolTable) -> Iterator[str]:
    """Two lines for each tool: what it does, and its signature."""
    width = max((len(tool.name) for tool in table), default=0)
    for tool in table:
        first = " ".join(tool.description.split()).split(". ")[0].rstrip(".")
        yield f"{tool.name:<{width}}  {first}."
        yield f"{'':<{width}}  {tool.signature()}"


def belt(options: BeltOptions) -> int:
    from quoth.neuro.prompt.belt import belt as view_of
    from quoth.neuro.prompt.belt import belt_json

    table = _for_user(options, tools_of(options), "reply", programs=options.view == "run")
    if options.json:
        print_json(belt_json(table, options.view))
    else:
        print_line(view_of(table, options.view).rstrip("\n"))
    return DONE
